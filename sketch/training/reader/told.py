"""Stories whose moments the reader learns from beside random scenes: `stories/*.txt` beside this file.

A story begins with "# " and its title; then comes a line for each sentence, and an empty line after the last.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FOLDER", "Told", "told"]

FOLDER = Path(__file__).parent / "stories"


@dataclass(frozen=True)
class Told:
    """A story. name: its file's, with its number there."""

    name: str
    title: str
    sentences: tuple[str, ...]

    def text(self, chance: random.Random) -> str:
        """Return the story with a paragraph every few sentences."""
        parts, run = list[str](), 0
        for sentence in self.sentences:
            new = run >= chance.choice((3, 4, 5))
            parts += ["\n\n" if new else " ", sentence]
            run = 0 if new else run + 1
        return f"{self.title}\n\n{''.join(parts[1:])}\n"


def told(folder: Path = FOLDER) -> Iterator[Told]:
    """Yield the stories of a folder in the order of its files."""
    for path in sorted(folder.glob("*.txt")):
        for number, block in enumerate(re.split(r"\n\s*\n", path.read_text("utf-8").strip())):
            head, *sentences = block.split("\n")
            yield Told(f"{path.stem}:{number}", head.lstrip("# "), tuple(sentences))
