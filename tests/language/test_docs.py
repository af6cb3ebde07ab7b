"""The examples of docs/language.md print what stands under them."""

from pathlib import Path

import pytest

from support import ROOT, code

TEXT = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
EXAMPLES = [part.split("\n```\n```text\n") for part in TEXT.split("```ral\n")[1:]]


@pytest.mark.parametrize(("program", "rest"), EXAMPLES, ids=[f"example-{i}" for i in range(len(EXAMPLES))])
def test_example(program: str, rest: str, tmp_path: Path) -> None:
    done = code(program, cwd=tmp_path)
    assert done.stdout.decode() == rest.split("```")[0], done.stderr.decode()
