"""When the system runs out of something, the program fails like any other and can recover."""

import subprocess

import pytest

from support import RAL


def limited(limit: str, program: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        ["bash", "-c", f'ulimit {limit} && exec "$@"', "bash", *RAL, "-c", program],
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("descriptors", [22, 23, 24, 25, 26, 28])
def test_descriptors(descriptors: int) -> None:
    """Again and again: what a launch that failed had taken is given back."""
    once = "try { let x = echo hi | cat | cat | cat | cat | cat | cat; echo $x } { |e| echo 'caught' }"
    done = limited(f"-n {descriptors}", f"each {{ |_| {once} }} !{{range 0 30}}; echo on; echo a | cat")
    assert done.stdout in (b"caught\n" * 30 + b"on\na\n", b"hi\n" * 30 + b"on\na\n"), done.stderr.decode()
    assert (done.returncode, b"R9999" in done.stderr) == (0, False)


def test_memory() -> None:
    done = limited("-v 500000", "try { let xs = range 0 150000000; echo no } { |e| echo $e[message] }")
    assert (done.returncode, done.stdout) == (0, b"out of memory\n")
