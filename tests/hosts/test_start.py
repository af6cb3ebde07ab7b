"""What a start imports, and how the command line is read."""

import subprocess
import sys
from pathlib import Path

import pytest

import ral
from support import code, run

FORBIDDEN = [
    "re",
    "enum",
    "typing",
    "dataclasses",
    "signal",
    "subprocess",
    "threading",
    "argparse",
    "json",
    "pathlib",
    "asyncio",
    "psutil",
    "prompt_toolkit",
    "os",
    "contextlib",
    "functools",
    "collections",
    "site",
]
PROBE = """
import sys
sys.path.append(sys.argv[1])
from ral import cli
status = cli.start(["-c", "let x = 1; echo hi | cat; echo $x > /dev/null"])
sys.stderr.write(" ".join(sys.modules))
import posix
posix._exit(status)
"""


def test_a_start_imports_nothing_that_is_slow() -> None:
    parent = str(Path(ral.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PROBE, parent], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "hi\n")
    assert [name for name in FORBIDDEN if name in done.stderr.split()] == []


def test_version_names_the_floor() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.decode().startswith(f"ral {ral.__version__} (Python ")
    twin = run("--version", env={"RAL_FLOOR": "python"})
    assert b"twin" in twin.stdout


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["--bogus"], 2),
        (["-c"], 2),
        (["-z"], 2),
        (["--grace", "x", "-c", ""], 2),
        (["--audit", "-c", ""], 2),
        (["--help"], 0),
    ],
)
def test_the_command_line(argv: list[str], status: int) -> None:
    done = run(*argv)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr


def test_a_last_false_is_status_one() -> None:
    assert code("false").returncode == 1
    assert code("true").returncode == 0
    assert code("$[1 > 2]").returncode == 1
