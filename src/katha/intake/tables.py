"""Shot lists as tables: with pipes, tabs, or as CSV."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence

from katha.intake.drafts import TextDraft, plain_marks
from katha.intake.fields import LABEL, NOBODY, finished, label_kind, passage_of, people
from katha.intake.names import Names, words

_TITLE = 80

Row = Sequence[str]


def tables_of(text: str) -> tuple[list[list[list[str]]], list[str]]:
    """Return the tables of a text (pipes or tabs), row by row, and its other lines."""
    found: list[list[list[str]]] = []
    rest: list[str] = []
    current: list[list[str]] = []
    for line in [*text.split("\n"), ""]:
        row = _row(line)
        if row is not None:
            if any(re.search(r"[^\s:|+=-]", cell) for cell in row):
                current.append(row)
            continue
        if len(current) > 1:
            found.append(current)
        elif current:
            rest.append(line)
        current = []
        rest.append(line)
    return found, rest


def _row(line: str) -> list[str] | None:
    told = line.strip()
    if (
        told.count("|") >= 2
        or (told.startswith("|") and told.count("|") >= 1)
        or re.match(r"^[-:| ]+\|[-:| ]+$", told)
        or " | " in told
    ):
        return [cell.replace("\0", "|").strip() for cell in told.replace("\\|", "\0").strip("|").split("|")]
    if line.count("\t") >= 2 or (line.count("\t") == 1 and not line.startswith("\t") and len(line.split("\t")[0]) < 30):
        return [cell.strip() for cell in line.strip("\n").split("\t")]
    if re.match(r"^\s*\+[-=+]+\+\s*$", line):
        return [""]
    return None


def csv_rows(text: str, *, headless: bool = False) -> list[list[str]] | None:
    """Return the rows of a text with commas, semicolons or tabs between cells; None where it is none.

    headless: no row names the columns; the one with most words is what happens.
    """
    lines = [f"{line}\n" for line in text.strip().split("\n")]
    for mark in (",", ";", "\t", "|"):
        try:
            rows = [[cell.strip() for cell in row] for row in csv.reader(iter(lines), delimiter=mark) if any(row)]
        except csv.Error:
            continue
        if len(rows) < 2 or len(rows[0]) < 2:
            continue
        if headless:
            return with_head(rows)
        if head_of(rows) is not None:
            return rows
    return None


def with_head(rows: Sequence[Row]) -> list[list[str]]:
    """Return rows that nothing names the columns of under a head: the one with most words is what happens."""
    width = max(map(len, rows))
    told = [sum(len(row[at].split()) for row in rows if at < len(row)) for at in range(width)]
    return [["action" if at == told.index(max(told)) else "notes" for at in range(width)], *map(list, rows)]


def head_of(rows: Sequence[Row]) -> list[str] | None:
    """Return what stands in each column of a table by its first row: "" where that is not known; None where the row
    is not a head of shots."""
    kinds = [label_kind(cell) or "" for cell in rows[0]]
    tells = set(kinds) & {str(one) for one in words()["tells"]}
    known = sum(bool(kind) for kind in kinds)
    return kinds if tells and known >= max(1, (len(kinds) + 1) // 2) else None


def read_rows(tables: Sequence[Sequence[Row]], rest: Iterable[str], kind: str) -> TextDraft | None:
    """Return the shots of tables; None where none of them tells any. A table of names and looks is the cast."""
    every = "\n".join(" ".join(row) for rows in tables for row in rows)
    names, draft, told = Names(every), TextDraft(kind, shots=True), False
    unread: list[str] = []
    for rows in tables:
        kinds = head_of(rows)
        if _is_cast(rows):
            for row in rows[1:]:
                names.add(row[0], ", ".join(cell for cell in row[1:] if cell))
            continue
        if kinds is None:
            unread += [" ".join(row) for row in rows]
            continue
        told = True
        _take_rows(rows, kinds, names, draft)
    if not told:
        return None
    _take_lines([line.strip() for line in rest if line.strip()], unread, draft)
    return finished(draft, names)


def _take_lines(lines: Sequence[str], unread: Sequence[str], draft: TextDraft) -> None:
    """Take the title from the lines beside tables, and note the others."""
    front = {found["label"].lower(): found["said"] for line in lines if (found := LABEL.match(plain_marks(line)))}
    heading = next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), "")
    plain = [line for line in lines[:1] if not line.startswith("#") and len(line) < _TITLE and not line.endswith(".")]
    draft.title = plain_marks(front.get("title") or heading or ("" if front else next(iter(plain), ""))).strip(" *_:")
    draft.leave(
        "lines beside the table", [*(one for one in lines if draft.title not in one), *unread], "they are no shots"
    )


def _is_cast(rows: Sequence[Row]) -> bool:
    head = [cell.lower().strip(" *_") for cell in rows[0]]
    return (
        head[0] in ("name", "character", "characters", "role")
        and len(head) in (2, 3)
        and head[1] not in ("action", "dialogue")
    )


def _take_rows(rows: Sequence[Row], kinds: Sequence[str], names: Names, draft: TextDraft) -> None:
    for at, kind in enumerate(kinds):
        if kind == "characters":
            people(",".join(row[at] for row in rows[1:] if at < len(row)), names)
    number = 0
    last: dict[str, list[str]] = {}
    for row in rows[1:]:
        fields: dict[str, list[str]] = {}
        for kind, cell in zip(kinds, row, strict=False):
            if kind and cell.strip() and cell.strip().lower() not in NOBODY:
                fields.setdefault(kind, []).append(cell)
        if not set(fields) & {"action", "prompt", "dialogue", "narration"}:
            if fields:
                draft.leave("a row", [" ".join(row)], "it tells nothing")
            last |= {kind: fields[kind] for kind in ("place", "time", "inside") if kind in fields}
            continue
        for kind in ("place", "time", "inside"):  # a cell that is left empty goes on with the one above
            if kind in fields:
                last[kind] = fields[kind]
            elif kind in last:
                fields[kind] = last[kind]
        number += 1
        draft.passages.append(passage_of(fields, names))
    aside = [rows[0][at] for at, kind in enumerate(kinds) if kind in ("camera", "aside", "") and rows[0][at].strip()]
    if aside:
        draft.left_out.append(f"Not read: the columns {', '.join(map(repr, aside))}: they are not of what is told.")
