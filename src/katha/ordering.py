"""The order of pictures that are known by their names alone: which number of a name is its place in the board.

Words beside the numbers say what each counts (`configs/naming.yaml`): a scene and a shot are places, a take and a seed
are not. Where two readings are possible, or two pictures have one place, nothing is guessed: `UnorderedNames` says it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from katha.errors import InputFileError
from katha.numbering import NUMBER, SIGNS, Key, Name, Number, natural, plain, read_name, value_of, vocabulary
from katha.pictures import ENDINGS

BY_NAMES = "names"
ORDER_HELP = "What pictures' names are ordered by where that is not plain: a word (shot), first, last, names."
"""The help of `--order`, of every command that takes a folder of pictures."""
_NTH = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
LAST = "last"
_SHOWN = 8
# 2014 to 2039 in Unix seconds: a number between is a time.
_EPOCH = (1_400_000_000, 2_200_000_000)
_FORTNIGHT = 14 * 86_400
_LOOSE = 1_000
_WIDE = 4
# Numbers that people leave gaps in: 10, 20, 30 are one, two, three.
_STEPS = (1_000, 100, 10, 5)
_SPARSE = 6
"""Apart as far as this, numbers are those of a film's frames and not of a board's."""


class UnorderedNames(InputFileError):
    """Names that give no order, or more than one; the sentence names no folder and begins with a small letter."""


@dataclass(frozen=True)
class Ordering:
    """Pictures in order. by: what the order was read from. left_out: pictures that are no frames of it."""

    names: tuple[str, ...]
    by: str
    left_out: tuple[str, ...] = ()

    def told(self) -> str:
        """Return the order in a line: `1 shot1_take2.png, 2 shot2_take3.png (by shot)`."""
        return f"{_listed(self.names)} (by {_called(self.by)})"


@dataclass(frozen=True)
class _Column:
    """One number of every name: what it is called, and its values in the order of the names."""

    called: str
    kind: str
    keys: tuple[Key, ...]
    rank: int = 0
    loose: bool = False

    @property
    def varies(self) -> bool:
        return len(set(self.keys)) > 1

    @property
    def unique(self) -> bool:
        return len(set(self.keys)) == len(self.keys)

    @property
    def counts(self) -> bool:
        """Return whether it numbers the pictures one after the other, from 0 or 1."""
        values = sorted(key[1] for key in self.keys)
        return self.unique and values[0] in (0, 1) and values == list(range(values[0], values[0] + len(values)))

    @property
    def seedlike(self) -> bool:
        """Return whether its values lie anywhere: drawn numbers, unless they are seconds or milliseconds of one
        fortnight."""
        values = sorted(key[1] for key in self.keys)
        span = values[-1] - values[0]
        seconds = any(_EPOCH[0] * unit < values[0] and values[-1] < _EPOCH[1] * unit for unit in (1, 1000))
        unit = 1000 if values[0] > _EPOCH[1] else 1
        return values[-1] >= _LOOSE and span >= 20 * len(values) and not (seconds and span < _FORTNIGHT * unit)


# What the names have in common.


def _labelled(found: Sequence[Name]) -> list[Name]:
    """Take a word behind a number as what it counts, where it is the same in every name (`1st panel`, `第3幕`)."""
    known = vocabulary().kinds
    shared = set.intersection(*({each.behind for each in name.numbers if each.kind == "plain"} for name in found))
    words = {word for word in shared if word in known}
    if not words:
        return list(found)

    def told(each: Number) -> Number:
        if each.kind != "plain" or each.behind not in words:
            return each
        return replace(each, kind=known[each.behind][0], label=known[each.behind][1])

    named = {each.label for name in found for each in name.numbers}
    words = {word for word in words if known[word][1] not in named}
    return [replace(name, numbers=tuple(map(told, name.numbers))) for name in found]


def _even(found: Sequence[Name]) -> list[Name]:
    """Take the single number of a name without words as what the others count (`1.png` beside `Scene2.png`), and drop
    the letter before a number where it is one in all names."""
    labels = {each.label for name in found for each in name.numbers if each.kind == "place"}
    leads = {each.lead for name in found for each in name.numbers}
    evened = []
    for name in found:
        numbers = [each if len(leads) > 1 and "" not in leads else replace(each, lead="") for each in name.numbers]
        if len(labels) == 1 and not any(each.kind == "place" for each in numbers):
            plain = [at for at, each in enumerate(numbers) if each.kind == "plain"]
            if len(plain) == 1:
                numbers[plain[0]] = replace(numbers[plain[0]], kind="place", label=next(iter(labels)))
        evened.append(replace(name, numbers=tuple(numbers)))
    return evened


def _unlabelled(name: Name) -> Name:
    """Return a name whose numbers are places of no kind: no kind of place is in all names."""
    told = (replace(each, kind="plain", label="") if each.kind == "place" else each for each in name.numbers)
    return replace(name, numbers=tuple(told))


# From names to columns of numbers.


def _columns(found: Sequence[Name]) -> list[_Column]:
    """Return the numbers that every name has, by what they count."""
    ranks = {label: rank for kind, label, rank in vocabulary().kinds.values() if kind == "place"}
    made: list[_Column] = []
    for kind in ("place", "beside", "copy", "time", "total"):
        labels = dict.fromkeys(each.label for name in found for each in name.numbers if each.kind == kind)
        for label in labels:
            rows = [[each for each in name.numbers if (each.kind, each.label) == (kind, label)] for name in found]
            if all(rows):
                keys = tuple(row[0].key for row in rows)
                made.append(_Column(label, kind, keys, ranks.get(label, 0), loose=kind == "time"))
    return made + _plain_columns(found) + _programs(found)


def _plain_columns(found: Sequence[Name]) -> list[_Column]:
    plain = [[each for each in name.numbers if each.kind == "plain"] for name in found]
    made = []
    for at, (called, row) in enumerate(_rows(plain, found) if all(plain) else ()):
        loose = max(each.value for each in row) >= _LOOSE or max(each.width for each in row) > _WIDE
        lettered = any(each.lead for each in row)
        made.append(_Column("letter" if lettered else called, "plain", tuple(each.key for each in row), at, loose))
        if lettered:
            # A1, B2, C3 are read by the letter; without it the number may be another reading.
            keys = tuple(("", each.value, each.letter) for each in row)
            made.append(_Column(called, "plain", keys, at, loose))
    return made


def _rows(plain: Sequence[Sequence[Number]], found: Sequence[Name]) -> list[tuple[str, tuple[Number, ...]]]:
    """Return the numbers of all names that stand at one place, with what the place is called."""
    most = max(map(len, plain))
    if min(map(len, plain)) == most:
        called = ["number"] if most == 1 else _NTH
        return list(zip(called, zip(*plain, strict=True), strict=False))
    rows = []
    before = {name.words[: name.words.index(NUMBER)] for name in found}
    if all(row[0].opens for row in plain) or len(before) == 1:
        rows.append(("first", tuple(row[0] for row in plain)))
    if all(row[-1].closes for row in plain):
        rows.append((LAST, tuple(row[-1] for row in plain)))
    padded = [[*row, *(Number(-1) for _ in range(most - len(row)))] for row in plain]
    return rows or list(zip(_NTH, zip(*padded, strict=True), strict=False))


def _programs(found: Sequence[Name]) -> list[_Column]:
    """Return the place in the names of a program, where all names are of one."""
    for label, (pattern, loose) in vocabulary().programs.items():
        rows = [pattern.fullmatch(Path(name.name).stem) for name in found]
        if all(rows):
            keys = tuple(("", value_of(row["n"]), "") for row in rows if row is not None)
            return [_Column(label, "program", keys, loose=loose)]
    return []


def _worded(found: Sequence[Name]) -> list[_Column]:
    """Return the column of what counts without digits, where every name has it: letters, Roman numbers, words."""
    rows = [[word for word in name.words if word not in SIGNS] for name in found]
    if not all(rows):
        return []
    for at in (-1, 0):
        column = [row[at] for row in rows]
        for called, values in _spelt(column):
            made = _Column(called, "plain", tuple(("", value, "") for value in values))
            if made.unique and (made.counts or (called == "letter" and _runs(made))):
                return [made]
    return []


def _spelt(column: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the readings of words that count, each a number for every word."""
    if len(set(column)) < 2:
        return
    for words in vocabulary().counters:
        if set(column) <= set(words):
            yield "word", [words.index(word) + 1 for word in column]
    romans = [_roman(word) for word in column]
    if all(romans) and max(map(len, column)) > 1:
        yield "Roman number", romans
    if all(len(word) == 1 and word.isascii() for word in column):
        yield "letter", [ord(word) - ord("a") + 1 for word in column]


_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50}


def _roman(word: str) -> int:
    """Return a Roman number below 90; 0 for another word."""
    if not re.fullmatch(r"(?:x{0,3}|xl|lx{0,3})(?:i{0,3}|iv|vi{0,3}|ix)", word):
        return 0
    values = [_ROMAN[letter] for letter in word]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


# From columns to an order.


def order_names(
    names: Sequence[str], by: str | None = None, total: int | None = None, *, gaps: bool = False
) -> Ordering | None:
    """Return the pictures among `names` in the order that their names give; None where no name has a number.

    by: what to order by, where the names have several readings: a word of theirs (`shot`, `take`), `first`, `second` or
    `last` number, or `names` (as a file manager sorts them). total: how many there should be, as errors name it. gaps:
    whether places may be missing, as in a choice made by hand.

    Raises:
        UnorderedNames: there are two readings, two pictures at one place, or a gap.
    """
    pictures = sorted(name for name in names if Path(name).suffix.lower() in ENDINGS and not name.startswith("."))
    if by == BY_NAMES:
        return Ordering(tuple(sorted(pictures, key=natural)), BY_NAMES) if pictures else None
    read = [read_name(name) for name in pictures]
    found = _without_companions(read)
    if not any(name.numbers for name in found):
        return _by_words(found, pictures, by)
    found = _even(_labelled(_numbered(found)))
    kept = {name.name for name in found}
    columns = _columns(found) or _columns([_unlabelled(name) for name in found])
    chosen = _asked_for(columns, found, by) if by is not None else _chosen(columns, found)
    if chosen is None:
        return None
    order = sorted(range(len(found)), key=lambda at: chosen.keys[at])
    if not chosen.unique:
        raise _twice(chosen, found, order)
    if by is None and not gaps:
        _require_run(chosen, columns, found, order, total)
    left = tuple(name for name in pictures if name not in kept)
    return Ordering(tuple(found[at].name for at in order), chosen.called, left)


def _by_words(found: Sequence[Name], pictures: Sequence[str], by: str | None) -> Ordering | None:
    columns = _worded(found) if len(found) > 1 else []
    if not columns or (by is not None and by != columns[0].called):
        return None
    keys = columns[0].keys
    order = sorted(range(len(found)), key=lambda at: keys[at])
    kept = tuple(found[at].name for at in order)
    return Ordering(kept, columns[0].called, tuple(name for name in pictures if name not in kept))


def _without_companions(read: Sequence[Name]) -> list[Name]:
    """Return the names but for those of masks, thumbnails and the like, where frames are left."""
    companions = vocabulary().companions
    frames = [name for name in read if not companions & set(name.words)]
    return frames if sum(bool(name.numbers) for name in frames) > 1 else list(read)


def _numbered(found: Sequence[Name]) -> list[Name]:
    """Return the names that have a number, and one without that is the first of copies."""
    kept = [name for name in found if name.numbers or _is_first(name, found)]
    return [name if name.numbers else _begun(name, kept) for name in kept]


def _is_first(name: Name, found: Sequence[Name]) -> bool:
    """Return whether a name without a number is the first of copies: `frame.png` before `frame (1).png`."""
    words = [word for word in name.words if word not in SIGNS]
    numbered = [other for other in found if other.numbers]
    alike = all([word for word in other.words if word not in SIGNS] == words for other in numbered)
    if not words or not alike or any(len(other.numbers) != 1 for other in numbered):
        return False
    values = [other.numbers[0].value for other in numbered]
    return min(values) == 2 or (min(values) == 1 and all(other.numbers[0].kind == "copy" for other in numbered))


def _begun(name: Name, found: Sequence[Name]) -> Name:
    """Return the first of copies with the number that it would have."""
    first = next(other.numbers[0] for other in found if other.numbers)
    least = min(other.numbers[0].value for other in found if other.numbers)
    return replace(name, numbers=(replace(first, value=least - 1, letter=""),))


def _asked_for(columns: Sequence[_Column], found: Sequence[Name], by: str) -> _Column:
    """Return the column that was asked for.

    Raises:
        UnorderedNames: not every name has such a number.
    """
    wanted = vocabulary().kinds.get(plain(by), ("", plain(by), 0))[1]
    rows = [[each for each in name.numbers if each.kind != "total"] for name in found]
    if wanted in (*_NTH, LAST):
        at = -1 if wanted == LAST else _NTH.index(wanted)
        if all(len(row) > max(at, 0) for row in rows):
            return _Column(wanted, "plain", tuple(row[at].key for row in rows))
    known = {column.called: column for column in columns if column.varies}
    if wanted not in known:
        offered = ", ".join(dict.fromkeys((*known, "first", LAST, BY_NAMES)))
        raise UnorderedNames(f"not every picture's name has a number for --order {by!r}", hint=f"There is {offered}.")
    column = known[wanted]
    finer = [other for other in columns if other.varies and other.kind == "place" and other.rank > column.rank]
    return column if column.unique or column.kind != "place" else _joined([column, *finer])


def _joined(columns: Sequence[_Column]) -> _Column:
    """Return several columns as one: the first counts most."""
    if len(columns) == 1:
        return columns[0]
    keys = tuple(
        tuple(part for key in row for part in key) for row in zip(*(each.keys for each in columns), strict=True)
    )
    return _Column(" and ".join(each.called for each in columns), columns[0].kind, keys, loose=True)


def _chosen(columns: Sequence[_Column], found: Sequence[Name]) -> _Column | None:
    """Return the column that is the order.

    Raises:
        UnorderedNames: there are two readings.
    """
    if len(found) == 1:
        return next((column for column in columns if column.kind not in ("beside", "total")), None)
    varied = [column for column in columns if column.varies]
    places = sorted(_of(varied, "place"), key=lambda column: column.rank)
    counted = [column for column in _of(varied, "plain") if not column.seedlike]
    copies = _of(varied, "copy")
    if places:
        return _by_places(places, [*counted, *copies], found)
    programs = [column for column in _of(varied, "program") if column.unique]
    if programs:
        return programs[0]
    times = [column for column in _of(varied, "time") if column.unique]
    if counted and not (times and not any(column.counts for column in counted)):
        return _only(_plain_readings(counted, copies), found)
    for column in (*copies, *times, *_of(varied, "time")):
        return column
    _refuse_unplaced([*_of(varied, "beside"), *_of(varied, "plain")])
    return next((column for kind in ("beside", "place", "plain", "program") for column in _of(columns, kind)), None)


def _of(columns: Sequence[_Column], kind: str) -> list[_Column]:
    return [column for column in columns if column.kind == kind]


def _by_places(places: Sequence[_Column], others: Sequence[_Column], found: Sequence[Name]) -> _Column:
    """Return places as the order, finer ones within larger ones; others: columns that could be another reading."""
    reading = _joined(places)
    if not reading.unique:
        reading = next((finer for finer in _finer(places, others) if finer.unique), reading)
    rivals = [column for column in others if column.counts and column.called not in reading.called]
    return _only([reading, *rivals], found)


def _refuse_unplaced(columns: Sequence[_Column]) -> None:
    """Refuse names of which no number can be a place.

    Raises:
        UnorderedNames: they say which take or seed a picture is, or their numbers lie anywhere.
    """
    if not columns or [column.called for column in columns] == ["setting"]:
        return
    asked = columns[0].called
    said = f"the names say which {asked} a picture is, and not its place in the board"
    drawn = "the numbers of the names look like seeds, not like places in the board"
    raise UnorderedNames(
        drawn if columns[0].kind == "plain" else said,
        hint=f"Give --order {asked} if that is the order, or name the pictures 1.png, 2.png and on.",
    )


def _finer(places: Sequence[_Column], others: Sequence[_Column]) -> Iterator[_Column]:
    for count in range(1, len(others) + 1):
        yield _joined([*places, *others[:count]])


def _plain_readings(counted: Sequence[_Column], copies: Sequence[_Column]) -> list[_Column]:
    """Return the columns, or columns together, that could be the order of names whose words say nothing of it."""
    whole = [column for column in (*counted, *copies) if column.counts]
    unique = [column for column in counted if column.unique]
    several = _joined(list(counted))
    nested = [several] if len(counted) > 1 and not counted[0].unique and several.unique else []
    if whole:
        return [*whole, *(nested if _runs(counted[0]) else [])]
    return [*unique, *nested] or [several]


def _runs(column: _Column) -> bool:
    """Return whether the values of a column, each once, follow one another."""
    values = sorted({key[1] for key in column.keys})
    return values == list(range(values[0], values[0] + len(values)))


def _only(readings: Sequence[_Column], found: Sequence[Name]) -> _Column:
    """Return the first of several readings that give one order.

    Raises:
        UnorderedNames: they give several.
    """
    orders = [tuple(sorted(range(len(found)), key=lambda at: one.keys[at])) for one in readings]
    other = next((at for at, order in enumerate(orders) if order != orders[0]), None)
    if other is None:
        return readings[0]
    told = [
        f"by {_called(readings[at].called)}: {_listed([found[place].name for place in orders[at]], 5)}"
        for at in (0, other)
    ]
    first, second = (readings[at].called.split(" and ")[0] for at in (0, other))
    if first == second:
        second = LAST
    raise UnorderedNames(
        f"the names can be read in two orders: {'; or '.join(told)}",
        hint=f"Give --order {first} or --order {second}, or name the pictures 1.png, 2.png and on.",
    )


def _twice(column: _Column, found: Sequence[Name], order: Sequence[int]) -> UnorderedNames:
    pairs = pairwise(order)
    one, two = next(pair for pair in pairs if column.keys[pair[0]] == column.keys[pair[1]])
    called = "frame" if column.called in ("number", *_NTH, LAST) else column.called.split(" and ")[0]
    names = f"{found[one].name} and {found[two].name}"
    hint = "Leave one picture for each place in the folder, or give --order."
    return UnorderedNames(f"{called} {_written(column.keys[one])} is there twice: {names}", hint=hint)


def _written(key: Key) -> str:
    return "-".join(f"{key[at]}{key[at + 1]}{key[at + 2]}" for at in range(0, len(key), 3))


def _require_run(
    chosen: _Column, columns: Sequence[_Column], found: Sequence[Name], order: Sequence[int], total: int | None
) -> None:
    """Refuse a gap in the places: they run from 0 or 1, in steps of one or of ten, with others in between.

    Raises:
        UnorderedNames: a place is not taken.
    """
    loose = any(column.kind == "program" and column.loose and column.keys == chosen.keys for column in columns)
    if loose or chosen.loose or any(len(key) > 3 or key[0] for key in chosen.keys):
        return
    stated = [column.keys[0][1] for column in columns if column.kind == "total" and not column.varies]
    values = sorted({key[1] for key in chosen.keys})
    gaps = [after - before for before, after in pairwise(values)]
    if chosen.kind == "place" and values[0] not in _STEPS and min(gaps, default=1) >= _SPARSE:
        return  # the frames of a film that a board was taken from
    missing = _missing(values, min(stated[0], 4 * len(found)) if stated else 0)
    if missing:
        more = f" and {len(missing) - _SHOWN} more" if missing[_SHOWN:] else ""
        rest = f" (there is {found[order[0]].name}: frames count from 1)" if total and values[0] > 1 else ""
        held = _listed([found[at].name for at in order], numbered=False)
        said = f"frame {', '.join(map(str, missing[:_SHOWN]))}{more} is missing{rest}"
        raise UnorderedNames(said, hint=f"It holds {held}.")


def _missing(values: Sequence[int], stated: int) -> list[int]:
    """Return the places that are not taken between 1, or 0, and the last; stated: how many the names say there are."""
    step = next((step for step in _STEPS if values[0] == step and sum(value % step == 0 for value in values) > 1), 1)
    grid = {value // step for value in values if value % step == 0}
    first, last = min(grid), max(grid)
    if step == 1 and not stated and first > len(values) and last - first + 1 == len(grid):
        return []  # pages 12 to 16 of a book
    last = max(last, stated) if step == 1 else last
    return [number * step for number in range(min(first, 1), last + 1) if number not in grid]


def _called(by: str) -> str:
    return f"{by} number" if by in (*_NTH, LAST) else by


def _listed(names: Sequence[str], most: int = _SHOWN, *, numbered: bool = True) -> str:
    told = [f"{at} {name}" if numbered else name for at, name in enumerate(names[:most], 1)]
    return ", ".join(told) + (f" and {len(names) - most} more" if len(names) > most else "")
