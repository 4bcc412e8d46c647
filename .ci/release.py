#!/usr/bin/env python3
"""Check that this checkout can be released: `make release`. Prints every reason why not, and exits with 2.

The version is that of pyproject.toml. sketch/pyproject.toml and CITATION.cff have the same; the newest dated section
of CHANGELOG.md is of it, and nothing stands under "Unreleased"; no file differs from the commit; and the tag
v<VERSION>, if it is there, is at this commit.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]


def version_of(project: Path) -> str:
    """Return the version that a pyproject.toml states."""
    return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def git(root: Path, *words: str) -> str:
    """Return what git prints; "" where it fails."""
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True).stdout.strip()


def reasons(root: Path) -> Iterator[str]:
    """Yield each reason why the checkout at `root` is not a release."""
    version = version_of(root / "pyproject.toml")
    other = version_of(root / "sketch" / "pyproject.toml")
    if other != version:
        yield f"sketch/pyproject.toml has version {other}, pyproject.toml {version}: set both to one."
    cited = re.search(r"^version: (\S+)", (root / "CITATION.cff").read_text(encoding="utf-8"), re.M)
    if cited is None or cited[1] != version:
        yield f"CITATION.cff has version {cited[1] if cited else 'none'}, not {version}: change it."
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.findall(r"^## \[?(\d+\.\d+\.\d+)\]? - (\d{4}-\d\d-\d\d)$", text, re.M)
    if not dated or dated[0][0] != version:
        yield f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD' on top: date what is unreleased."
    unreleased = re.search(r"^## Unreleased\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if unreleased and unreleased[1].strip():
        yield "CHANGELOG.md has lines under 'Unreleased': move them to the version that is released."
    if changed := git(root, "status", "--porcelain"):
        yield f"{len(changed.splitlines())} files differ from the commit: commit them or take them back."
    at = git(root, "rev-list", "-n", "1", f"v{version}")
    if at and at != git(root, "rev-parse", "HEAD"):
        yield f"The tag v{version} is at another commit ({at[:8]}): raise the version."


def main() -> int:
    """Print the reasons, or what to tag."""
    found = list(reasons(ROOT))
    for reason in found:
        print(f"release: {reason}", file=sys.stderr)
    if not found:
        print(f"This commit can be released as v{version_of(ROOT / 'pyproject.toml')}.")
    return 2 if found else 0


if __name__ == "__main__":
    sys.exit(main())
