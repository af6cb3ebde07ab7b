"""The exception tree.

Exception
  StaticError      a program refused before it ran: problems and a status (2 syntax, 1 types)
  Incomplete       the text ends inside an open form (the REPL asks for more)
  Fault            a program failure, a value of the machine: status, reason, message, place
BaseException
  Exit             `exit n` on its way to the run boundary
  Cancelled        (in `ral.cancel`) a cancellation; outside the tree of failures on purpose
"""

from ral.diag.source import Problem, Source


class StaticError(Exception):
    """A program that is refused before anything runs."""

    def __init__(self, problems: list[Problem], status: int) -> None:
        super().__init__(problems[0].message if problems else "")
        self.problems = problems
        self.status = status


class Incomplete(Exception):
    """The source ends while a form is open. `problem` says which, for hosts that can't ask for more."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


Reason = tuple[str, object]


class Fault(Exception):
    """A failure of a running program.

    reason: ("exited", n) ("signaled", n) ("cancelled", tag) ("not-found", None) ("not-runnable", None) ("raised", None).
    site: where it happened, filled in by the innermost frame that knows; (source, start, end) or None.
    """

    def __init__(
        self,
        message: str,
        status: int = 1,
        cmd: str = "<runtime>",
        reason: Reason = ("raised", None),
        hint: str = "",
        code: str = "R0001",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.cmd = cmd
        self.reason = reason
        self.hint = hint
        self.code = code
        self.site: tuple[Source, int, int] | None = None


class Exit(BaseException):
    """`exit n`: leaves the run; `try` and `?` don't see it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status
