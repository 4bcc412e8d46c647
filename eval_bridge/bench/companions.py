"""The files that a release says of itself (Table 23): statistics, moral balance, sources and Croissant metadata.

Their layout is not published, so numbers are found by the names that stand beside them, at any depth, and held against
what the annotations themselves hold; a name that is not known is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from katha.errors import InputFileError
from katha.eval_bridge.bench.files import MORALS, SOURCES, FileProblem
from katha.jsonio import file_sha256, read_json

Tables = Mapping[str, Mapping[str, int]]
_OBSERVED = ("observed", "count", "actual", "n", "stories")
_EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def check_companions(folder: Path, tables: Tables) -> Iterator[FileProblem]:
    """Yield what the companion files in `folder` say that its records do not hold. A file that is absent says nothing.

    tables: the counts of the release's stories by field and value (`Inspection.summary`).
    """
    for name, check in _CHECKS.items():
        path = folder / name
        if not path.is_file():
            continue
        try:
            value = read_json(path)
        except InputFileError as error:
            yield FileProblem(name, None, "", "", error.message)
            continue
        for field, message in check(value, folder, tables):
            yield FileProblem(name, None, "", field, message)


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, (*path, str(key)))
    elif not isinstance(value, list):
        yield path, value


def _plain(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().casefold())


def _statistics(value: Any, _: Path, tables: Tables) -> Iterator[tuple[str, str]]:
    """Every number under a name that is a counted value, within its own field where the file names it."""
    counts: dict[str, list[tuple[str, int]]] = {}
    for field, rows in tables.items():
        for name, count in rows.items():
            counts.setdefault(_plain(name), []).append((field, count))
    totals = tables.get("components", {})
    for path, number in _leaves(value):
        if isinstance(number, bool) or not isinstance(number, int):
            continue
        name = _plain(path[-1]).removeprefix("total_").removeprefix("num_").removeprefix("n_")
        if name in totals and len(path) <= 2:
            wanted: int | None = totals[name]
        else:
            near = [(field, count) for field, count in counts.get(name, ()) if field in map(_plain, path[:-1])]
            wanted = near[0][1] if len(near) == 1 else None
        if wanted is not None and wanted != number:
            yield ".".join(path), f"it is {number:,}; the records hold {wanted:,}."


def _moral_balance(value: Any, _: Path, tables: Tables) -> Iterator[tuple[str, str]]:
    """The observed number of every moral label."""
    held = tables.get("moral_label", {})
    for path, number in _leaves(value):
        parts = [_plain(part) for part in path]
        label = next((part for part in parts if part in MORALS), None)
        if label is None or isinstance(number, bool) or not isinstance(number, int):
            continue
        observed = parts[-1] in _OBSERVED or any(part.startswith("observed") for part in parts)
        if observed and number != held.get(label, 0):
            yield ".".join(path), f"it is {number:,}; the records hold {held.get(label, 0):,}."


def _manifest(value: Any, folder: Path, tables: Tables) -> Iterator[tuple[str, str]]:
    """Every source of the records is named, and files that it lists with a hash are those that are there."""
    text = str(value).casefold()
    for source, count in tables.get("source_dataset", {}).items():
        if count and source in SOURCES and source not in text:
            yield "", f"it does not name the source {source!r}, which {count:,} records have."
    yield from _hashes(value, folder, ("path", "file", "filename", "name"))


def _croissant(value: Any, folder: Path, _: Tables) -> Iterator[tuple[str, str]]:
    """The distribution's files are there with their hashes; with mlcroissant installed, its own checks as well."""
    rows = value.get("distribution") if isinstance(value, Mapping) else None
    if not isinstance(rows, list) or not rows:
        yield "distribution", "it lists no file."
    yield from _hashes(rows, folder, ("contentUrl", "name"))
    try:
        import mlcroissant
    except ImportError:
        return
    try:
        mlcroissant.Dataset(jsonld=value)
    except Exception as error:  # rdflib and mlcroissant raise many kinds, all meaning that this is not a Croissant file
        yield "", f"Croissant: {' '.join(str(error).partition('warning(s)')[0].split())[:300]}"


def _hashes(value: Any, folder: Path, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield files that are listed with a sha256 and lie in the folder with another one, or not at all."""
    for row in _objects(value):
        wanted = row.get("sha256")
        name = next((row[key] for key in names if isinstance(row.get(key), str)), None)
        if not isinstance(wanted, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", wanted) or name is None:
            continue
        # The name comes with the data: only what lies in the folder itself is opened.
        path = folder / Path(name).name
        if _EXTERNAL.match(name) or Path(name).name != name.removeprefix("./"):
            continue
        if not path.is_file():
            yield name, "the file is not there."
        elif file_sha256(path) != wanted.casefold():
            yield name, "the file has another sha256."


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
    for item in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _objects(item)


_Check = Callable[[Any, Path, Tables], Iterator[tuple[str, str]]]
_CHECKS: Mapping[str, _Check] = {
    "statistics.json": _statistics,
    "moral_balance_requirements.json": _moral_balance,
    "source_manifest.json": _manifest,
    "croissant_metadata.json": _croissant,
}
