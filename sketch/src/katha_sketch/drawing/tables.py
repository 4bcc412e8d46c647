"""The sketch's YAML tables: read once, and the words that their entries list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, TypeVar

from katha.errors import RenderError
from katha.jsonio import shipped_table

__all__ = ["entry", "load_table", "words_of"]


_Entry = TypeVar("_Entry")


class _Worded(Protocol):
    @property
    def id(self) -> str: ...

    @property
    def words(self) -> tuple[str, ...]: ...


def load_table(package: str, name: str) -> Mapping[str, Any]:
    """Return a YAML file of `katha_sketch.drawing.PACKAGE` as the mapping that it is, read once."""
    data: Mapping[str, Any] = shipped_table(f"katha_sketch.drawing.{package}", name)
    return data


def entry(entries: Mapping[str, _Entry], name: str, what: str, file: str) -> _Entry:
    """Return the entry called `name`.

    Raises:
        RenderError: there is none.
    """
    found = entries.get(name)
    if found is None:
        raise RenderError(f"The sketch has no {what} {name!r}.", hint=f"Its ids are the keys of {file}.")
    return found


def words_of(entries: Iterable[_Worded]) -> Mapping[str, str]:
    """Return the id of each word that the entries list; the first entry that lists a word has it."""
    found: dict[str, str] = {}
    for one in entries:
        for word in one.words:
            found.setdefault(word, one.id)
    return found
