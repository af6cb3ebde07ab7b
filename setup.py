"""The parts of the build that pyproject.toml can't say: the C floor, optional; the bundle of modules; the launcher.

The launcher is made at build time because its first line depends on the machine: where env can start a program with
signals blocked, a signal that comes while ral starts is held until ral's handlers stand.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

build_scripts: Any = import_module("distutils.command.build_scripts").build_scripts  # setuptools brings distutils

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


class Launcher(build_scripts):  # type: ignore[misc]
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


class Modules(build_py):
    """Builds the bundle beside the modules: a start then opens one file instead of sixty."""

    def run(self) -> None:
        super().run()
        sys.path.insert(0, "scripts")
        from bundle import build

        if not getattr(self, "editable_mode", False):
            build(Path(self.build_lib) / "ral")

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        bundle = [str(Path(self.build_lib) / "ral" / name) for name in ("_bundle.bin", "_rest.bin")]
        return [*super().get_outputs(include_bytecode), *bundle]


floor = Extension(
    "ral._floor",
    ["ral/_floor.c"],
    depends=["ral/_floor_scope.h", "ral/_floor_handlers.h", "ral/_floor_spawn.h"],
    extra_compile_args=["-O2", "-Wall", "-Wextra"],
    optional=True,
)

setup(
    ext_modules=[floor] if sys.platform == "linux" else [],
    scripts=["scripts/launcher"],
    cmdclass={"build_py": Modules, "build_scripts": Launcher},
)
