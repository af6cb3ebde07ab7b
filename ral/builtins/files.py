"""Paths and file queries."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ral.machine.shell import Shell

from ral.cancel import check
from ral.diag import Fault
from ral.machine.values import Variant
from ral.pipeline.lookup import absolute, joined

KINDS = {0o100000: "file", 0o040000: "dir", 0o120000: "symlink"}


def refused(name: str, path: str, e: "OSError | ValueError") -> Fault:
    reason = e.strerror if isinstance(e, OSError) else str(e)
    return Fault(f"{path}: {reason}", 1, name, hint="check the path", code="R0140")


def mode_of(sh: "Shell", path: str, follow: bool) -> int:
    """The type bits of a path, 0 when there is nothing."""
    try:
        full = joined(sh, path)
        return (posix.stat(full) if follow else posix.lstat(full)).st_mode & 0o170000
    except (OSError, ValueError):
        return 0


def cwd_(sh: "Shell") -> str:
    return sh.cwd


def absolute_path_(sh: "Shell", path: str) -> str:
    return absolute(sh, path)


def resolve_path_(sh: "Shell", path: str) -> str:
    import os.path

    try:
        return os.path.realpath(joined(sh, path), strict=True)
    except (OSError, ValueError) as e:
        raise refused("resolve-path", path, e) from None


def exists_(sh: "Shell", path: str) -> bool:
    return mode_of(sh, path, False) != 0


def is_file_(sh: "Shell", path: str) -> bool:
    return mode_of(sh, path, True) == 0o100000


def is_dir_(sh: "Shell", path: str) -> bool:
    return mode_of(sh, path, True) == 0o040000


def is_link_(sh: "Shell", path: str) -> bool:
    return mode_of(sh, path, False) == 0o120000


def accessible(sh: "Shell", path: str, mode: int) -> bool:
    try:
        return posix.access(joined(sh, path), mode)
    except ValueError:
        return False


def is_readable_(sh: "Shell", path: str) -> bool:
    return accessible(sh, path, posix.R_OK)


def is_writable_(sh: "Shell", path: str) -> bool:
    return accessible(sh, path, posix.W_OK)


def file_empty_(sh: "Shell", path: str) -> bool:
    try:
        return posix.stat(joined(sh, path)).st_size == 0
    except (OSError, ValueError) as e:
        raise refused("file-empty", path, e) from None


def info(sh: "Shell", path: str, name: str) -> "dict[str, Any]":
    full = joined(sh, path)
    st = posix.lstat(full)
    kind = KINDS.get(st.st_mode & 0o170000, "other")
    target = Variant("just", posix.readlink(full)) if kind == "symlink" else Variant("none")
    return {
        "name": name,
        "type": kind,
        "size": st.st_size,
        "modified": int(st.st_mtime),
        "accessed": int(st.st_atime),
        "created": int(getattr(st, "st_birthtime", 0)),
        "readonly": not posix.access(full, posix.W_OK),
        "target": target,
    }


def file_info_(sh: "Shell", path: str) -> "dict[str, Any]":
    try:
        return info(sh, path, path.rstrip("/").rpartition("/")[2] or "/")
    except (OSError, ValueError) as e:
        raise refused("file-info", path, e) from None


def list_dir_(sh: "Shell", path: str) -> "list[Any]":
    try:
        names = sorted(posix.listdir(joined(sh, path)))
    except (OSError, ValueError) as e:
        raise refused("list-dir", path, e) from None
    out: list[Any] = []
    for name in names:
        if sh.flag:
            check(sh)
        try:
            out.append(info(sh, f"{path}/{name}", name))
        except OSError:
            continue  # it went while we looked
    return out


def line_count_(sh: "Shell", path: str) -> int:
    """Counted in pieces of 64 KiB; a last line need not be ended."""
    try:
        fd = posix.open(joined(sh, path), posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (OSError, ValueError) as e:
        raise refused("line-count", path, e) from None
    try:
        count, last = 0, b"\n"
        while True:
            if sh.flag:
                check(sh)
            data = posix.read(fd, 65536)
            if not data:
                return count + (last != b"\n")
            count += data.count(b"\n")
            last = data[-1:]
    except OSError as e:
        raise refused("line-count", path, e) from None
    finally:
        posix.close(fd)


def extension_(sh: "Shell", path: str) -> Variant:
    name = path.rstrip("/").rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    return Variant("just", suffix) if dot and stem and suffix else Variant("none")


def glob_(sh: "Shell", pattern: str) -> list[str]:
    import glob

    base = sh.cwd
    found = glob.iglob(pattern, root_dir=base, recursive=True)
    out: list[str] = []
    for path in found:
        if sh.flag:
            check(sh)
        out.append(path)
    return sorted(out)


def temp_dir_(sh: "Shell") -> str:
    import tempfile

    return tempfile.mkdtemp(prefix="ral-", dir=sh.env.get("TMPDIR"))


def temp_file_(sh: "Shell") -> str:
    import tempfile

    fd, path = tempfile.mkstemp(prefix="ral-", dir=sh.env.get("TMPDIR"))
    posix.close(fd)
    return path
