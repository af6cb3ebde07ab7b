"""How tests start ral, and how they look for what it left behind."""

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def command() -> list[str]:
    """The installed command, the launcher included; in a bare checkout the same without it."""
    beside = Path(sys.executable).parent / "ral"
    if beside.exists():
        return [str(beside)]
    found = shutil.which("ral")
    return [found] if found else [sys.executable, "-I", "-S", str(ROOT / "ral" / "_start.py")]


RAL = command()


def run(*args: str, stdin: bytes = b"", cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 60
        ) -> subprocess.CompletedProcess[bytes]:  # fmt: skip
    """Run ral to its end."""
    return subprocess.run(
        [*RAL, *args], input=stdin, capture_output=True, cwd=cwd, timeout=timeout, check=False,
        env={**os.environ, **(env or {})},
    )  # fmt: skip


def code(program: str, *args: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    return run("-c", program, *args, **options)  # type: ignore[arg-type]


def until(condition: Callable[[], object], seconds: float = 15) -> None:
    """Wait for a condition, with a deadline."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition never came true"
        time.sleep(0.002)


class Mark:
    """An environment mark by which survivors are counted, whoever their parent is."""

    def __init__(self) -> None:
        self.name = "RALT_MARK"
        self.value = uuid.uuid4().hex

    def env(self) -> dict[str, str]:
        return {self.name: self.value}

    def carriers(self) -> list[str]:
        """Living processes that carry the mark, as `pid name`."""
        wanted = f"{self.name}={self.value}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(f"{entry.name} {(entry / 'comm').read_text().strip()}")
            except OSError:
                continue
        return found
