"""`katha read`: what every verb makes of a file, before anything is planned."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from katha.app.cli.console import echo_json
from katha.app.cli.options import Json
from katha.errors import UsageError
from katha.intake import noted
from katha.schema import StoryRecord
from katha.stories import load_stories, read_file, story_of_intake

_SHOWN = 12
_LONGEST = 100


def read(
    file: Annotated[
        str, typer.Argument(help="A file of any kind that tells a story, FILE.jsonl#STORY_ID, or a folder.")
    ],
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="The code page of a file that is not in UTF-8 (cp1252, shift_jis).")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="Print the story's words alone, in UTF-8.")] = False,
    mapping: Annotated[
        Path | None, typer.Option("--mapping", help="A YAML file of keys and values: how your records name things.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what FILE is read as: its kind, scenes, cast, shots and words, and what of it is not read and why."""
    if text and as_json:
        raise UsageError("--text and --json are two forms of one answer.", hint="Leave one of them out.")
    if encoding is not None and Path(file).is_dir():
        raise UsageError("--encoding is for one file.", hint="Name the file.")
    told = "utf-8"
    if encoding is not None:
        taken = read_file(Path(file), encoding)
        records, told = [story_of_intake(taken, Path(file).stem)], encoding
    else:
        records = load_stories(file, mapping)
        told = _encoding(file)
    if text:
        typer.echo("\n\n".join(record.story_text for record in records))
    elif as_json:
        rows = [_row(record, told) for record in records]
        echo_json({"file": file, "stories": rows})
    else:
        typer.echo("\n\n".join("\n".join(_lines(record, told)) for record in records))


def _encoding(file: str) -> str:
    """Return a text file's encoding; records are always UTF-8 or UTF-16, as their own mark says."""
    from katha.intake.decoding import decode_file
    from katha.jsonio import MOST_JSON

    path = Path(file)
    if not path.is_file() or path.suffix.lower() == ".jsonl":
        return "utf-8"
    return decode_file(path, limit=MOST_JSON).encoding


def _row(record: StoryRecord, encoding: str) -> dict[str, Any]:
    structure = record.structure
    return {
        "story_id": record.story_id,
        "title": record.title,
        "kind": structure.kind if structure is not None else "record" if record.scenes else "story",
        "encoding": encoding,
        "words": len(record.story_text.split()),
        "cast": [one.model_dump(mode="json") for one in structure.cast] if structure is not None else [],
        "scenes": [one.model_dump(mode="json") for one in structure.scenes] if structure is not None else [],
        "shots": [one.model_dump(mode="json") for one in record.scenes],
        "notes": noted(record),
        "text": record.story_text,
    }


def _lines(record: StoryRecord, encoding: str) -> list[str]:
    """Return what a person is shown of one story."""
    row = _row(record, encoding)
    lines = [f"{record.title} ({record.story_id})", f"  kind      {row['kind']}, {encoding}, {row['words']:,} words"]
    cast = [f"{one['name']} ({one['look']})" if one["look"] else one["name"] for one in row["cast"]]
    lines += [f"  cast      {', '.join(cast)}"] if cast else []
    scenes = [_where(one["place"], one["time_of_day"], one["number"]) for one in row["scenes"]]
    lines += _listed("scenes", scenes)
    shots = [f"{_short(one.scene_text)}{_bracket(one.place, one.time_of_day)}" for one in record.scenes]
    lines += _listed("shots", shots)
    if not shots:
        lines.append(f"  begins    {_short(record.story_text)}")
    return [*lines, *(f"  {one}" for one in row["notes"])]


def _listed(name: str, items: list[str]) -> list[str]:
    more = [f"  {'':<10}... and {len(items) - _SHOWN} more"] if len(items) > _SHOWN else []
    heads = [name, *("" for _ in items)]
    return [
        f"  {head:<10}{at}. {item}" for at, (head, item) in enumerate(zip(heads, items[:_SHOWN], strict=False), 1)
    ] + more


def _where(place: str, time: str, number: str) -> str:
    told = ", ".join(part for part in (place, time) if part) or "(no place)"
    return f"{told} [{number}]" if number else told


def _bracket(place: str, time: str) -> str:
    told = ", ".join(part for part in (place, time) if part)
    return f" ({told})" if told else ""


def _short(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST].rsplit(' ', 1)[0]} ..."
