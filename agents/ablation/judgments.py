"""People's judgments of an ablation's boards, read and checked against the suite before any work.

The file has the columns of `katha bench calibrate` and `katha score --human`, one judgment a row. `method` names a row,
a row's board (`ROW@SEED`), or the mode of rows that change nothing about it. Without it a judgment is about every row,
where all rows have the same boards, or about the text alone. Judgments of modes that the suite lacks are left out, so
that one study serves several suites.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from katha.compass.modes import load_modes
from katha.compass.suites import Row, Suite
from katha.errors import RecordError
from katha.eval_bridge.human_files import read_judgments
from katha.jsonio import sha256_hex

__all__ = ["Judgment", "Judgments"]

Judgment = Mapping[str, Any]


@dataclass(frozen=True)
class Judgments:
    """A file of judgments, read and checked against a suite before any work."""

    path: Path
    suite: Suite
    seeds: tuple[int, ...]
    rows: tuple[Judgment, ...]

    @classmethod
    def read(cls, path: Path, suite: Suite, seeds: tuple[int, ...]) -> Judgments:
        """The judgments in `path`.

        Raises:
            InputFileError, RecordError: see `read_judgments`; or a judgment is about boards that no suite has, or does
                not say which.
        """
        rows = tuple(row for row in read_judgments(path) if "story_id" in row)
        if not rows:
            raise RecordError(f"{str(path)!r} has no judgment of a story.", hint="Give the column story_id.")
        made = cls(path, suite, seeds, rows)
        for row in rows:
            made._check(row)
        return made

    def mark(self) -> dict[str, str]:
        """The file's name and hash, kept with the table."""
        return {"file": self.path.name, "sha256": sha256_hex(self.path.read_bytes())}

    def _check(self, row: Judgment) -> None:
        where = f"{str(self.path)!r}, line {row['line']}"
        names = {name for item in self.suite.rows for name in _names(item)}
        if "method" in row:
            name, _, seed = row["method"].partition("@")
            if name not in {*names, *load_modes()} or (seed and seed not in map(str, self.seeds)):
                raise RecordError(
                    f"{where}: the suite has no boards {row['method']!r}.",
                    hint=f"They are {', '.join(sorted(names))}, each with @SEED for one board.",
                )
        elif row.get("condition") != "text" and not self._alike:
            raise RecordError(f"{where}: it does not say which boards it is about.", hint="Give the column method.")

    @cached_property
    def _alike(self) -> bool:
        """Whether all rows have the same boards."""
        return len({row.mode for row in self.suite.rows}) == 1 and all(map(_plain, self.suite.rows))

    def unused(self, stories: Collection[str]) -> int:
        """Judgments of other stories than these, or of boards that the suite lacks."""
        used = {item["line"] for row in self.suite.rows for item in self.about(row) if item["story_id"] in stories}
        return len(self.rows) - len(used)

    def about(self, row: Row) -> list[Judgment]:
        """The judgments of the row's boards; of what was said about the text alone, everything."""
        return [item for item in self.rows if self._is_about(item, row)]

    def _is_about(self, item: Judgment, row: Row) -> bool:
        if "method" not in item:
            return self._alike or item.get("condition") == "text"
        return item["method"].partition("@")[0] in _names(row)


def _plain(row: Row) -> bool:
    return not (row.change or row.compass or row.planner or row.renderer or row.renderer_options)


def _names(row: Row) -> set[str]:
    return {row.name, row.mode} if _plain(row) else {row.name}
