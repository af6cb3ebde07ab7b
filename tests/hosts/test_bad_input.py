"""Bad input: one clear message, the right status, nothing half-written, never a traceback."""

import os
import subprocess
from pathlib import Path

import pytest

from support import RAL, code, run


def check(done: "subprocess.CompletedProcess[bytes]", status: int, *words: str) -> None:
    errors = done.stderr.decode("utf-8", "replace")
    assert done.returncode == status, errors
    assert "Traceback" not in errors
    assert "R9999" not in errors
    for word in words:
        assert word in errors


def test_a_script_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.ral").write_bytes(b"echo \xff\n")
    check(run("a.ral", cwd=tmp_path), 2, "UTF-8")
    (tmp_path / "b.ral").write_bytes(b"echo \0\n")
    check(run("b.ral", cwd=tmp_path), 2, "NUL")
    (tmp_path / "d").mkdir()
    check(run("d", cwd=tmp_path), 1, "directory")
    check(run("nope.ral", cwd=tmp_path), 1, "nope.ral")


@pytest.mark.parametrize(
    "program", ["echo {", "echo [1, ", "echo 'abc", 'echo "abc', "echo !{x", "a |", "let x =", "if $[1"]
)
def test_unclosed(program: str) -> None:
    check(code(program), 2)


def test_a_ten_megabyte_line(tmp_path: Path) -> None:
    (tmp_path / "long.ral").write_text("let s = '" + "x" * 10_000_000 + "'; echo !{length $s}\n")
    done = run("long.ral", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"10000000\n")
    (tmp_path / "error.ral").write_text("echo " + "x" * 10_000_000 + " ]\n")
    done = run("error.ral", cwd=tmp_path)
    check(done, 2)
    assert len(done.stderr) < 2000


def test_programs_that_cannot_run(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    check(code("./script", cwd=tmp_path), 126, "/no/such/interpreter")
    script.write_text("no interpreter line\n")
    check(code("./script", cwd=tmp_path), 126)
    (tmp_path / "folder").mkdir()
    check(code("./folder", cwd=tmp_path), 126, "directory")
    check(code("no-such-command-q"), 127, "no-such-command-q")
    check(code("gti", env={"PATH": "/usr/bin:/bin"}), 127, "did you mean git?")


@pytest.mark.parametrize(("program", "status"), [("echo hi", 1), ("/bin/echo hi", 1), ("let x = 1", 0)])
def test_closed_stdout(program: str, status: int) -> None:
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *RAL, "-c", program], stderr=subprocess.PIPE, check=False)
    check(done, status)
    if program == "echo hi":
        assert done.stderr.count(b"\n") == 1


def test_closed_stdin() -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *RAL, "-c", "cat; echo end"], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"end\n")


def test_full_stdout() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*RAL, "-c", "echo hi"], stdout=full, stderr=subprocess.PIPE, check=False)
    check(done, 1, "No space left")
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_left() -> None:
    script = 'set -o pipefail; "$@" | head -n 1; exit ${PIPESTATUS[0]}'
    program = "let go = { |n| echo x; go $[$n + 1] }; go 0"
    done = subprocess.run(["bash", "-c", script, "bash", *RAL, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (141, b"x\n", b"")


def test_an_atomic_redirect_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "f"
    target.write_text("old")
    assert code("sh -c 'echo new; exit 3' > f", cwd=tmp_path).returncode == 3
    assert target.read_text() == "old"
    assert code("echo new > f", cwd=tmp_path).returncode == 0
    assert target.read_text() == "new\n"
    assert os.listdir(tmp_path) == ["f"]


def test_here_strings_and_captures_have_bounds() -> None:
    check(code("let x = head -c 17000000 /dev/zero; echo no"), 1, "16 MiB")
    done = code("let t = !{ printf 'a%.0s' ...!{map { |n| str $n } !{range 0 200000}} }; let n = wc -c << $t; echo $n")
    assert done.stdout.strip() in (b"", b"200000")


def test_deep_recursion_is_an_error_of_ours() -> None:
    check(code("let f = { |n| return $[1 + !{f $[$n + 1]}] }; echo !{f 0}"), 1, "recursion limit")
    done = code("let f = { |n| if $[$n == 0] { return 0 } else { return $[1 + !{f $[$n - 1]}] } }; echo !{f 99000}")
    assert (done.returncode, done.stdout) == (0, b"99000\n")
