"""The two parts of the build that pyproject.toml can't say: the C floor, optional, and the launcher.

The launcher is made at build time because its first line depends on the machine: where env can start a program with
signals blocked, a signal that comes while ral starts is held until ral's handlers stand.
"""

import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup  # isort: skip  (brings its own distutils for the next line)
from distutils.command.build_scripts import build_scripts

BLOCKING = "/usr/bin/env -S --block-signal=INT,TERM,HUP,QUIT /bin/sh"


def shebang() -> str:
    """The first line of the launcher, without `#!`: the blocking form where this machine's env knows it."""
    try:
        probe = subprocess.run(
            ["/usr/bin/env", "-S", "--block-signal=INT,TERM,HUP,QUIT true"], capture_output=True, check=False
        )
    except OSError:
        return "/bin/sh"
    return BLOCKING if probe.returncode == 0 else "/bin/sh"


class Launcher(build_scripts):  # type: ignore[misc,unused-ignore]
    """Copies scripts/launcher to the build as `ral`, with the first line for this machine."""

    def run(self) -> None:
        target = Path(self.build_dir)
        target.mkdir(parents=True, exist_ok=True)
        body = Path("scripts/launcher").read_text().partition("\n")[2]
        out = target / "ral"
        out.write_text(f"#!{shebang()}\n{body}")
        out.chmod(0o755)

    def get_source_files(self) -> list[str]:
        return ["scripts/launcher"]


floor = Extension("ral._floor", ["ral/_floor.c"], extra_compile_args=["-O2", "-Wall", "-Wextra"], optional=True)

setup(
    ext_modules=[floor] if sys.platform == "linux" else [],
    scripts=["scripts/launcher"],
    cmdclass={"build_scripts": Launcher},
)
