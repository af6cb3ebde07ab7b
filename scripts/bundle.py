"""Builds `ral/_bundle.bin` and `ral/_rest.bin`: the package's modules in two files, so that a start opens one, not sixty.

The first: four bytes of the interpreter's magic number, then a marshalled pair: the code of the finder below, and the modules
that `ral -c` needs, in the order in which they finish loading; they run without the import system. The second: the others.
The build writes the bundle beside the modules that it holds, from the same sources.
"""

import __future__

import importlib.util
import marshal
import subprocess
import sys
from pathlib import Path

FINDER = '''
LAZY = {}
import sys
import marshal
import _frozen_importlib as _b
Module = type(sys)
for name, file, package, code in EAGER:
    module = Module(name)
    module.__file__ = directory + file
    if package:
        module.__path__ = [module.__file__.rpartition("/")[0]]
        module.__package__ = name
    else:
        module.__package__ = name.rpartition(".")[0]
    sys.modules[name] = module
    parent, dot, child = name.rpartition(".")
    if dot:
        if parent not in sys.modules:
            holder = sys.modules[parent] = Module(parent)
            holder.__path__ = [module.__file__.rpartition("/")[0]]
            holder.__package__ = parent
        setattr(sys.modules[parent], child, module)
class Bundle:
    """Finds and loads the modules that no start needs."""
    @staticmethod
    def find_spec(name, path=None, target=None):
        if not name.startswith("ral."):
            return None
        if not LAZY:
            with open(directory + "/_rest.bin", "rb", 0) as file:
                LAZY.update(marshal.loads(file.read()))
        entry = LAZY.get(name)
        if entry is None:
            return None
        file, package, _ = entry
        spec = _b.ModuleSpec(name, Bundle, origin=directory + file, is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [(directory + file).rpartition("/")[0]]
        return spec
    @staticmethod
    def create_module(spec):
        return None
    @staticmethod
    def exec_module(module):
        exec(marshal.loads(LAZY[module.__name__][2]), module.__dict__)
sys.meta_path.insert(0, Bundle)
for name, file, package, code in EAGER:
    exec(code, sys.modules[name].__dict__)
'''

# Which modules a start loads, in the order in which they finish.
TRACE = """
import sys
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import importlib.machinery as m
done = []
class Loader(m.SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        done.append(module.__name__)
m.SourceFileLoader.exec_module, keep = (lambda self, module: (keep(self, module), done.append(module.__name__))[0]), \\
    m.SourceFileLoader.exec_module
import ral.cli, ral.batch
code = ral.batch.run(ral.batch.checked_source("-c", "let x = 1; echo $x", None), [], None, None)
sys.stderr.write("\\n".join(n for n in done if n == "ral" or n.startswith("ral.")))
"""


def eager(root: Path) -> list[str]:
    """The modules that a start loads, dependencies first."""
    trace = subprocess.run(
        [sys.executable, "-I", "-c", TRACE, str(root)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    return trace.stderr.split()


def build(package: Path) -> None:
    """Write the bundle of a package directory; its parent is on the path when ral runs."""
    codes: dict[str, tuple[str, bool, object]] = {}
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package.parent)
        name = ".".join(relative.with_suffix("").parts)
        is_package = name.endswith(".__init__")
        name = name.removesuffix(".__init__")
        if name in ("ral._start", "ral.__main__"):
            continue
        # Annotations stay text and docstrings stay out: neither is read at run time, and both cost at every start.
        code = compile(
            path.read_text(encoding="utf-8"),
            str(relative),
            "exec",
            flags=__future__.annotations.compiler_flag,
            dont_inherit=True,
            optimize=2,
        )
        codes[name] = ("/" + str(path.relative_to(package)), is_package, code)
    first = [name for name in eager(package.parent) if name in codes and name != "ral.cancel._twin"]
    lazy = {name: (f, p, marshal.dumps(code)) for name, (f, p, code) in codes.items() if name not in first}
    finder = compile(FINDER, "ral/_bundle", "exec", optimize=2)
    data = marshal.dumps((finder, [(name, *codes[name]) for name in first]))
    (package / "_bundle.bin").write_bytes(importlib.util.MAGIC_NUMBER + data)
    (package / "_rest.bin").write_bytes(marshal.dumps(lazy))


if __name__ == "__main__":
    build(Path(sys.argv[1]))
