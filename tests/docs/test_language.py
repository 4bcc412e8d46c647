"""The worst of the sentences that CONTRIBUTING says not to write."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from benchmarks import names

ROOT = Path(__file__).parents[2]
WORST = {
    "somebody": r"\b[Ss]omebody\b",
    "told of": r"\btold of\b",
    "by whom": r"\bby whom\b",
    "speaking names": r"\bspeaking names\b",
    "X is no Y": (
        r"(?<![Tt]here)(?<![Ww]hat)(?<!where)(?<!here) is no "
        r"(?!such|longer|better|worse|further|more|less|reason|one|other|doubt|need|room|limit|default|improvement)"
        r"(?!fair|scores|mistake|different)\w"
    ),
    "Whether, What, How as a function's first word": (
        r'def [^\n]*->(?! None)[^\n]*:\n\s+"""(?:Whether|What|How|Who|Where|When|Which) '
    ),
}
SPOKEN = ("src/katha/intake/comics.py", "src/katha/intake/fields.py", "src/katha/intake/prompts.py")
"""They name a speaker whom a text does not name: "somebody" is what the story then says."""


def written() -> list[Path]:
    """Return the library's modules and the documents; not prompts, whose bytes recordings hold, nor the stand-in."""
    kinds = (
        "app",
        "agents",
        "compass",
        "configs",
        "eval_bridge",
        "experiments",
        "planners",
        "renderers",
        "src",
        "docs",
    )
    listed = subprocess.run(
        ["git", "ls-files", *kinds, "README.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / path for path in listed.stdout.splitlines() if path.endswith((".py", ".md")) and path not in SPOKEN]


@pytest.mark.parametrize("name", WORST)
def test_nobody_writes_the_worst_of_them(name: str) -> None:
    pattern = re.compile(WORST[name])
    found = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0][-60:]}"
        for path in written()
        for text in [path.read_text(encoding="utf-8")]
        for hit in pattern.finditer(text)
    ]
    assert found == []


def test_names_and_sentences_of_the_audit_are_gone_or_have_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert names.main() == 0, capsys.readouterr().out


def test_a_name_without_a_reason_and_a_reason_without_a_name_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(names, "NAMES", (*names.NAMES, "modes.Mode"))
    assert names.main() == 1
    assert "modes.Mode: left, and no reason is given" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(names, "STAY", {**names.STAY, "border": "no reason"})
    assert names.main() == 1
    assert "border: gone, and a reason is still given" in capsys.readouterr().out
    monkeypatch.undo()
    monkeypatch.setattr(names, "SENTENCES", ("The worst of the sentences that CONTRIBUTING says not to write",))
    assert names.main() == 1
    assert "tests/docs/test_language.py:1: The worst" in capsys.readouterr().out


def test_the_patterns_find_what_they_are_for() -> None:
    old = (
        "a folder that somebody else made\nit is told of\nand by whom\na folder with speaking names\n"
        "'x' is no number\n"
        'def one(a: int) -> bool:\n    """Whether a is one."""\n'
    )
    assert [name for name, pattern in WORST.items() if not re.search(pattern, old)] == []
    assert not re.search(WORST["X is no Y"], "there is no such file, and it is no longer there")
