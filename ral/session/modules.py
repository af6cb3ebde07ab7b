"""`use`: a file evaluated in a fresh top level, its public bindings as a record."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell
    from ral.session.session import Session

from ral.core import Names
from ral.diag import Fault, Incomplete, Source, StaticError, normalise, render
from ral.machine.faults import FAILS, as_fault
from ral.pipeline.lookup import absolute
from ral.syntax import parse

DEEPEST_LOAD = 100


def use(session: "Session", sh: "Shell", path: str, script: str | None) -> "dict[str, Any]":
    """Load a module. Every failure keeps its status and is prefixed with `use:`."""
    from ral.session.session import bound

    file = find(sh, path, script)
    if file in session.loading:
        chain = [*session.loading[session.loading.index(file) :], file]
        shown = " -> ".join(f.rpartition("/")[2] for f in chain)
        raise Fault(
            f"use: circular dependency: {shown}", 1, "use", hint="move what both need into a third file", code="R0170"
        )
    if len(session.loading) >= DEEPEST_LOAD:
        raise Fault(f"use: more than {DEEPEST_LOAD} modules are being loaded", 1, "use", code="R0170")
    source = Source(path, normalise(read(file, path)), file)
    names = Names({}, session.natives, session.names.bases, file)
    try:
        compiled, seq = session.compile(source, parse(source), names)
    except Incomplete as e:
        raise Fault(f"use: {render(e.problem).rstrip()}", 2, "use", code="R0171") from None
    except StaticError as e:
        raise Fault(f"use: {render(e.problems[0]).rstrip()}", e.status, "use", code="R0171") from None
    session.loading.append(file)
    space = session.globals
    outer = space.get("sh"), space.get("_result")
    space["sh"] = sh
    try:
        exec(compiled.code, space)
    except FAILS as e:
        fault = as_fault(e)
        if not fault.message.startswith("use:"):
            fault.message = f"use: {fault.message}"
        raise fault from None
    finally:
        session.loading.pop()
        space["sh"], space["_result"] = outer
    record: dict[str, Any] = {}
    for item in seq.items:
        for var in bound(item):
            if not var.name.startswith("_"):
                record[var.name] = space[var.py]
    return record


def find(sh: "Shell", path: str, script: str | None) -> str:
    """The module's file: beside the containing file or in the directory, then along RAL_PATH."""
    if path.startswith(("/", "~")):
        places = [absolute(sh, path)]
    else:
        base = script.rpartition("/")[0] if script else sh.cwd
        places = [f"{base}/{path}"]
        places += [absolute(sh, d) + "/" + path for d in sh.env.get("RAL_PATH", "").split(":") if d]
    for place in places:
        try:
            if posix.stat(place).st_mode & 0o170000 == 0o100000:
                return absolute(sh, place)
        except (OSError, ValueError):
            continue
    raise Fault(f"use: there is no module {path}", 1, "use", hint="looked at " + ", ".join(places), code="R0172")


def read(file: str, shown: str) -> str:
    try:
        fd = posix.open(file, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            parts: list[bytes] = []
            while data := posix.read(fd, 1 << 20):
                parts.append(data)
        finally:
            posix.close(fd)
        return b"".join(parts).decode()
    except OSError as e:
        raise Fault(f"use: can't read {shown}: {e.strerror}", 1, "use", code="R0172") from None
    except UnicodeDecodeError:
        raise Fault(f"use: {shown} is not UTF-8 text", 2, "use", code="R0171") from None
