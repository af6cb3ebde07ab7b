"""Language behaviour as data: every case of tests/cases through the installed command."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from support import run

FOLDER = Path(__file__).parent.parent / "cases"
NOT_YET = frozenset((FOLDER / "not-yet.txt").read_text().split())
CASES: list[dict[str, Any]] = [
    case for file in sorted(FOLDER.glob("*.toml")) for case in tomllib.loads(file.read_text(encoding="utf-8"))["case"]
]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: dict[str, Any], tmp_path: Path) -> None:
    if case["id"] in NOT_YET:
        pytest.skip("not yet supported")
    for name, content in case.get("files", {}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
    argv = case.get("argv")
    if argv is None:
        (tmp_path / "prog.ral").write_bytes(case["program"].encode())
        argv = ["prog.ral", *case.get("args", [])]
    done = run(*argv, stdin=case.get("stdin", "").encode(), cwd=tmp_path)
    errors = done.stderr.decode("utf-8", "replace")
    assert done.returncode == case.get("status", 0), f"{case['why']}\n{errors}"
    if "stdout" in case:
        assert done.stdout.decode("utf-8", "replace") == case["stdout"], case["why"]
    for words in case.get("stderr_has", []):
        assert words in errors
    for name, content in case.get("files_after", {}).items():
        assert (tmp_path / name).read_bytes() == content.encode()
    assert "Traceback" not in errors


def test_the_exception_list_names_real_cases() -> None:
    assert {case["id"] for case in CASES} >= NOT_YET
