"""Where lines come from: prompt_toolkit on a terminal, plain reads elsewhere.

The editor must not own a signal: it is told to leave SIGINT alone, and the session's root scope wakes it, so that SIGTERM and
SIGHUP end an idle prompt with the terminal restored.
"""

import os
import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from ral.session import Session

    class Keyboard(Protocol):
        """A source of entries. `gone`: there will never be another one."""

        gone: bool

        def read(self) -> str: ...


from ral.cancel import Cancelled
from ral.diag import Incomplete, Source, StaticError, normalise
from ral.pipeline.streams import watcher
from ral.syntax import parse


def open_keyboard(session: "Session") -> "Keyboard":
    """The editor when there is a terminal to edit on, else plain lines."""
    if session.terminal is None or not posix.isatty(1) or session.shell.env.get("TERM", "dumb") == "dumb":
        return Plain(session)
    return Editor(session)


def incomplete(text: str) -> bool:
    """Whether the parser asks for more."""
    try:
        parse(Source("<prompt>", normalise(text)))
    except Incomplete:
        return True
    except StaticError:
        return False
    return False


class Ended(Exception):
    """The root scope was cancelled while the editor waited."""


class Editor:
    """prompt_toolkit with history on disk and multi-line entries."""

    def __init__(self, session: "Session") -> None:
        # A terminal that answers no cursor query must not hold the prompt for seconds.
        os.environ.setdefault("PROMPT_TOOLKIT_NO_CPR", "1")
        from prompt_toolkit import PromptSession

        self.gone = False
        self.session = session
        self.prompt: PromptSession[str] = PromptSession(
            history=history(session), key_bindings=bindings(), multiline=True, enable_suspend=False,
            enable_open_in_editor=False, prompt_continuation=lambda *_: "… ",
        )  # fmt: skip

    def read(self) -> str:
        import asyncio

        root = self.session.root

        def watch() -> None:
            from prompt_toolkit.application import get_app

            app = get_app()
            running = asyncio.get_running_loop()
            running.add_reader(root.fileno(), lambda: ended(app, running, root.fileno()))
            if root.cause():
                ended(app, running, root.fileno())

        try:
            return self.prompt.prompt(self.message(), handle_sigint=False, pre_run=watch, set_exception_handler=False)
        except Ended:
            return ""
        except EOFError:
            # Ctrl-D; or the terminal is gone, and no second prompt may follow.
            self.gone = not alive()
            raise
        except OSError:
            self.gone = True
            raise EOFError from None

    def message(self) -> str:
        from ral.session.prims import ambient

        return f"{ambient(self.session.shell, 'CWD')} ❯ "


def ended(app: "Any", running: "Any", fd: int) -> None:
    running.remove_reader(fd)
    if app.is_running and not app.is_done:
        app.exit(exception=Ended())


def alive() -> bool:
    """Whether the terminal still answers."""
    try:
        posix.tcgetpgrp(0)
        return True
    except OSError:
        return False


def bindings() -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: "KeyPressEvent") -> None:
        buffer = event.current_buffer
        if buffer.text.strip() and incomplete(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("c-\\")
    @keys.add("c-z")
    def _(event: "KeyPressEvent") -> None:
        """Nothing: at the prompt there is nothing to stop."""

    return keys


def history(session: "Session") -> "Any":
    """The history file, or memory where no file can be had."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    env = session.shell.env
    base = env.get("XDG_CONFIG_HOME") or (env["HOME"] + "/.config" if env.get("HOME") else "")
    if not base:
        return InMemoryHistory()
    try:
        os.makedirs(base + "/ral", mode=0o700, exist_ok=True)
        path = base + "/ral/history"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
        return FileHistory(path)
    except OSError:
        return InMemoryHistory()


class Plain:
    """Plain lines: standard input is no terminal, or one that can't edit."""

    def __init__(self, session: "Session") -> None:
        self.session = session
        self.gone = False
        self.rest = b""
        self.terminal = posix.isatty(0)

    def read(self) -> str:
        if self.terminal:
            posix.write(1, b"> ")
        text = ""
        while True:
            text += self.line()
            if not incomplete(text):
                return text
            if self.terminal:
                posix.write(1, b". ")

    def line(self) -> str:
        root = self.session.root
        poll = watcher(root, (0,))
        while b"\n" not in self.rest:
            ready = poll.poll()
            if root.cause():
                raise Cancelled(root.cause(), root)
            if any(fd == 0 for fd, _ in ready):
                try:
                    data = posix.read(0, 65536)
                except OSError:
                    data = b""
                if not data:
                    self.gone = not self.terminal or not alive()
                    if self.rest:
                        break
                    raise EOFError
                self.rest += data
        line, newline, self.rest = self.rest.partition(b"\n")
        return (line + newline).decode("utf-8", "replace")
