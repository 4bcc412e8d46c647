"""What `make release` refuses, and which tests `make touched` runs."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RELEASE = runpy.run_path(str(ROOT / ".ci" / "release.py"))
TOUCHED = runpy.run_path(str(ROOT / ".ci" / "touched.py"))
LOG = "# Changelog\n\n## Unreleased\n\n## 0.9.0 - 2026-11-30\n\n- One.\n"


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that can be released."""
    for path, text in {
        "pyproject.toml": '[project]\nversion = "0.9.0"\n',
        "sketch/pyproject.toml": '[project]\nversion = "0.9.0"\n',
        "CITATION.cff": "version: 0.9.0\n",
        "CHANGELOG.md": LOG,
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "all")
    return tmp_path


def why_not(checkout: Path) -> list[str]:
    return list(RELEASE["reasons"](checkout))


def test_a_checkout_that_says_one_version_everywhere_is_a_release(checkout: Path) -> None:
    assert why_not(checkout) == []
    git(checkout, "tag", "v0.9.0")
    assert why_not(checkout) == []


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("sketch/pyproject.toml", '[project]\nversion = "0.8.0"\n', "sketch/pyproject.toml has version 0.8.0"),
        ("CITATION.cff", "version: 0.8.0\n", "CITATION.cff has version 0.8.0"),
        ("CHANGELOG.md", LOG.replace("0.9.0", "0.8.0"), "no section '## 0.9.0 - YYYY-MM-DD'"),
        ("CHANGELOG.md", LOG.replace("Unreleased\n", "Unreleased\n\n- Two.\n"), "lines under 'Unreleased'"),
    ],
)
def test_what_differs_is_named(checkout: Path, path: str, text: str, said: str) -> None:
    (checkout / path).write_text(text)
    git(checkout, "commit", "-qam", "changed")
    (reason,) = why_not(checkout)
    assert said in reason


def test_a_changed_file_or_a_tag_elsewhere_is_no_release(checkout: Path) -> None:
    git(checkout, "tag", "v0.9.0")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "more")
    (checkout / "new.txt").write_text("new")
    assert [reason.split(":")[1].strip() for reason in why_not(checkout)] == [
        "commit them or take them back.",
        "raise the version.",
    ]


def test_both_distributions_and_the_citation_have_one_version() -> None:
    found: list[Any] = [RELEASE["version_of"](ROOT / path) for path in ("pyproject.toml", "sketch/pyproject.toml")]
    assert found[0] == found[1]
    assert f"\nversion: {found[0]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_a_change_touches_the_tests_that_import_it_or_name_it() -> None:
    tests = {
        "tests/a/test_direct.py": "from katha.compass.moves import within\n",
        "tests/a/test_package.py": "from katha.compass import moves\n",
        "tests/a/test_user.py": "from katha.compass.writer import Task\n",
        "tests/a/test_prompt.py": 'load("repair/moves.j2")\n',
        "tests/a/test_other.py": "from katha.jsonio import sha256_hex\nfrom katha.compass.moves_of import x\n",
    }
    assert TOUCHED["touched"](["compass/moves.py"], tests) == sorted(
        set(tests) - {"tests/a/test_prompt.py", "tests/a/test_other.py"}
    )
    assert TOUCHED["touched"](["prompts/repair/moves.j2"], tests) == ["tests/a/test_prompt.py"]
    assert TOUCHED["touched"](["tests/a/test_other.py"], tests) == ["tests/a/test_other.py"]
    assert TOUCHED["touched"](["docs/index.md"], tests) == []
