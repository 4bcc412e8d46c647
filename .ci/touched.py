#!/usr/bin/env python3
"""Print the test modules that a change touches: `make touched` runs them.

A change is what differs from main's merge base, committed or not. A test is touched if it changed, if it imports a
changed module, or one that imports it directly. A changed prompt, preset or template touches the tests that name it.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from docs.make_architecture import module_imports

ROOT = Path(__file__).parents[1]


def changed(base: str) -> list[str]:
    """Return the paths that differ from the merge base with `base`, or are new."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    start = git("merge-base", "HEAD", base).strip()
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", start).split(), *new.split()})


def module_of(path: str) -> str:
    """Return the module that a path of the package is; "" for other files."""
    parts = Path(path.removeprefix("src/katha/")).with_suffix("").parts
    return ".".join(("katha", *(part for part in parts if part != "__init__"))) if path.endswith(".py") else ""


def touched(paths: list[str], tests: dict[str, str]) -> list[str]:
    """Return the names of `tests` (their texts by path) that these changed paths touch."""
    graph = module_imports()
    modules = {module for path in paths if (module := module_of(path)) in graph}
    wide = modules | {user for user, others in graph.items() if others & modules}
    words = {re.escape(one) for one in wide}
    words |= {rf"from {re.escape(one.rpartition('.')[0])} import [^\n]*\b{one.rpartition('.')[2]}\b" for one in wide}
    words |= {re.escape(Path(path).name) for path in paths if not path.endswith(".py")}
    found = re.compile("|".join(rf"(?:{word})(?![\w.])" for word in sorted(words)) or r"(?!)")
    return [path for path, text in sorted(tests.items()) if path in paths or found.search(text)]


def main() -> None:
    """Print them, a line each."""
    files = (path for folder in ("tests", "sketch/tests") for path in (ROOT / folder).rglob("test_*.py"))
    tests = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    known = subprocess.run(["git", "rev-parse", "-q", "--verify", "origin/main"], cwd=ROOT, capture_output=True)
    base = "main" if known.returncode else "origin/main"
    print("\n".join(touched(changed(base), tests)))


if __name__ == "__main__":
    main()
