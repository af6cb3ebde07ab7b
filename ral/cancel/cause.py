"""The causes of a cancellation, in order, and the only place that knows their words and exit statuses."""

INTERRUPT = 1
EXPLICIT = 2
DEADLINE = 3
TERMINATE = 4
ROOT_ABORT = 5
CAUSES = (INTERRUPT, EXPLICIT, DEADLINE, TERMINATE, ROOT_ABORT)

READER_GONE = 141
"""Not a cause of a scope: the status of a run whose reader left (128 + SIGPIPE)."""

_MESSAGES = ("", "interrupted", "cancelled", "timed out", "terminated", "aborted")
_TAGS = ("", "interrupted", "cancelled", "timed-out", "terminated", "aborted")
_STATUSES = (0, 130, 130, 130, 143, 130)


def message(cause: int) -> str:
    """What a person reads, such as `timed out`. `cause` is 1 to 5."""
    return _MESSAGES[cause]


def tag(cause: int) -> str:
    """The word in records and on wires, such as `timed-out`. `cause` is 1 to 5."""
    return _TAGS[cause]


def status(cause: int) -> int:
    """The exit status of a run that this cause cancelled: 130, or 143 for TERMINATE. `cause` is 1 to 5."""
    return _STATUSES[cause]
