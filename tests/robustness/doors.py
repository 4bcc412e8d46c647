"""What people bring to katha's doors: texts, names of pictures, folders of stories, replies of models.

Each function makes the case of a number and says what is wrong with how katha took it; None where nothing is. So a
failure can be made again: `python tests/robustness/doors.py texts 1234`.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from forms import FORMS, Told

from katha.errors import KathaError
from katha.intake.names import MARKS
from katha.models.replies import read_object
from katha.ordering import UnorderedNames, order_names
from katha.schema import StoryRecord
from katha.stories import load_stories, load_story, story_of_text

NAMES = (
    *("Mia", "Otto", "Nora", "Will", "May", "Dawn", "Ray", "Grace", "June", "Summer", "Élise", "Zoë", "McAdam"),
    *("Jean-Luc", "Ben", "Ólafur", "Müller", "Hope", "Art", "Rose", "Mark"),
)
PLACES = ("kitchen", "station", "garden", "barn", "beach", "attic")
TIMES = ("day", "night", "morning", "evening")
VERBS = ("opens", "finds", "drops", "washes", "carries", "paints")
THINGS = ("box", "kite", "lantern", "ladder", "trumpet", "basket", "suitcase")
SAID = ("Look at that!", "I found it.", "Where is my hat?")
LABELS = frozenset(
    (
        *("panel", "page", "shot", "scene", "location", "characters", "character", "action", "setting", "title"),
        *("author", "draft", "nobody", "known", "sfx", "caption", "mood", "chapter", "opening", "catalyst", "midpoint"),
        *("finale", "size", "description", "camera", "int", "ext", "part", "gutenberg"),
    )
)
"""Words of the forms: nobody's name."""
LINES = (
    *("INT. BARN - DAY", "MIA", "(beat)", "Panel 1", "PAGE ONE", "| a | b |", "|---|---|", "[Mia] runs", "Location: x"),
    *(
        "::",
        ":: A",
        "1",
        "00:00:01,000 --> 00:00:02,000",
        "{",
        "[",
        "<p>",
        "</p>",
        "\\begin{document}",
        "***",
        "#",
        "# T",
    ),
    *(
        "I. A",
        "A. B",
        "Mia: Hi",
        "@",
        "@MIA",
        "~",
        "/*",
        "[[",
        "]]",
        "Mia runs.",
        "",
        "Title:",
        "WEBVTT",
        "<FinalDraft",
    ),
    *(
        "script = '''",
        "--settings",
        "a,b,c",
        "\t\t",
        "CUT TO:",
        "DR. LEE",
        "Shot 1 - WS",
        "Cast:",
        "Mia - a girl",
        "=",
        "^",
    ),
)
_ENDS, _CODES = ("\n", "\r\n", "\r"), ("utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252")
_UNSEEN = ("", "", "\u200b", "\u00ad", "\ufeff")


def dice(part: str, number: int) -> random.Random:
    return random.Random(f"{part} {number}")


def scenes_of(die: random.Random) -> list[Told]:
    kinds = (NAMES, PLACES, TIMES, VERBS, THINGS, SAID)
    return [Told(*map(die.choice, kinds)) for _ in range(die.randint(2, 6))]


def text_of(number: int) -> tuple[str, bytes, str, list[Told]]:
    """Return a file's name and bytes, its kind, and what is told in it: half are whole, the rest damaged or noise."""
    die = dice("texts", number)
    name = die.choice(sorted(FORMS))
    kind, write = FORMS[name]
    told = scenes_of(die)
    text, end, code = write(told), die.choice(_ENDS), die.choice(_CODES)
    sort = die.random()
    if sort < 0.5:
        data = text.replace("basket", f"bas{die.choice(_UNSEEN) if code != 'cp1252' else ''}ket").replace("\n", end)
        return name, data.encode("utf-8" if code == "cp1252" else code), kind, told
    lines = text.split("\n")
    for _ in range(die.randint(1, 6)):
        other = FORMS[die.choice(sorted(FORMS))][1](scenes_of(die)).split("\n")
        at = die.randrange(len(lines) + 1)
        lines[at : at + die.choice((0, 1, 2))] = die.choice(([], [die.choice(LINES)], [die.choice(other)], [""]))
    if sort > 0.8:
        lines = [
            die.choice((die.choice(LINES), "".join(chr(die.randrange(9, 0x3000)) for _ in range(12))))
            for _ in range(14)
        ]
    return name, end.join(lines).encode(code, "replace"), "", []


def text(number: int) -> str | None:
    name, data, kind, told = text_of(number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        try:
            record = load_story(str(path))
        except KathaError as error:
            said = str(error)
            return f"a whole story is refused: {said}" if told else "several lines" if "\n" in said else None
    return _of_whole(record, kind, told) or _of_cast(record)


def _cast(record: StoryRecord) -> list[str]:
    cast = [one.name for one in record.structure.cast] if record.structure is not None else []
    return cast + [person for scene in record.scenes for person in scene.characters]


def _of_whole(record: StoryRecord, kind: str, told: Sequence[Told]) -> str | None:
    if not told:
        return None
    found = record.structure.kind if record.structure is not None else "story"
    if record.structure is not None and found != kind:
        return f"{kind} is read as {found}"
    lost = [one.act for one in told if not re.search(rf"{re.escape(one.who)}\W.*{one.thing}", record.story_text)]
    labels = {word.lower() for one in _cast(record) for word in one.split()} & LABELS
    return f"lost: {lost}" if lost else f"labels in the cast: {labels}" if labels else None


def _of_cast(record: StoryRecord) -> str | None:
    marked = [one for one in _cast(record) if MARKS.search(one)]
    return f"marks in {marked}" if marked else None


_PREFIXES = ("", "fox_", "My Board-", "狐狸_", "kettle.", "final ", "v2_", "2024-")
_WORDS = ("scene", "shot", "panel", "frame", "Szene", "plan", "page", "镜头", "", "sh", "Scene ", "img")
_BESIDE = ("", "_seed_{}", "_take{}", "-v{}", "_cfg{}", " take {}", "_{}steps", " ({})")


def names(number: int) -> str | None:
    die = dice("names", number)
    count, word, gap = die.randint(2, 12), die.choice(_WORDS), die.choice(("_", "-", " ", ""))
    step, width = die.choice(((1, 1), (1, 2), (1, 3), (10, 3)))
    prefix, beside, ending = (
        die.choice(_PREFIXES),
        die.choice(_BESIDE),
        die.choice((".png", ".jpg", ".tif", ".WEBP", ".gif")),
    )
    digits = die.choice(("0123456789", "०१२३४५६७८९", "٠١٢٣٤٥٦٧٨٩", "０１２３４５６７８９"))
    written = [str(at * step).zfill(width).translate(str.maketrans("0123456789", digits)) for at in range(1, count + 1)]
    board = [f"{prefix}{word}{gap}{one}{beside.format(die.randrange(100_000))}{ending}" for one in written]
    listed = die.sample(board, count)
    try:
        found = order_names(listed)
    except UnorderedNames as error:
        return None if error.message and "\n" not in str(error) else f"{listed}: says nothing"
    return None if found is None or list(found.names) == board else f"{board}: taken as {found.told()}"


_STEMS = (
    "ein Löwe",
    "狐狸",
    "قصة",
    "сказка",
    "a/b"[0],
    "The Fox",
    "the fox",
    "THE_FOX",
    "fox",
    "fox ",
    "Ñandú",
    "1",
    "#1",
    "x#y",
)


def folder(number: int) -> str | None:
    die = dice("folder", number)
    more = ("", " 2", "!", "(1)", "é", "e\u0301", "二")
    stems = [die.choice(_STEMS) + die.choice(more) for _ in range(die.randint(2, 6))]
    with tempfile.TemporaryDirectory() as place:
        for at, stem in enumerate(stems):
            Path(place, f"{stem}{die.choice(('.txt', '.md', '.fountain'))}").write_text(
                f"{NAMES[at]} opens the {THINGS[at]}.\n"
            )
        written = len(list(Path(place).iterdir()))
        try:
            found = load_stories(place)
        except KathaError as error:
            return f"{stems}: {error}"
    ids = {record.story_id for record in found}
    return None if len(found) == len(ids) == written else f"{written} stories {stems}, {len(found)} read: {sorted(ids)}"


_AROUND = (
    *("<think>", "</think>", "{", "}", "[", "]", '"', "```json\n", "```", "{a bird}", "Sure!", "\n", "\\", ",", "{}"),
    *(
        "[THINK]",
        "[/THINK]",
        "<|end|>",
        "null",
        "Answer:",
        "'",
        "<answer>",
        "</answer>",
        "\ufeff",
        "...",
        "\x00",
        "<|im_end|>",
    ),
)


def reply(number: int) -> str | None:
    die = dice("reply", number)
    said = {"answer": die.choice(("a fox", 'a "fox"', "{x}", "</think>", "```", "é\n")), "confidence": "high"}
    before, after = ("".join(die.choices(_AROUND, k=die.randint(0, 6))) for _ in range(2))
    whole = json.dumps(said, ensure_ascii=die.random() < 0.5)
    if die.random() < 0.2:
        whole = whole[: die.randrange(len(whole))]
    problem, value = read_object(before + whole + after, fields=said)
    if (problem is None) != (value is not None):
        return f"{before + whole + after!r}: {problem!r} and {value!r}"
    right = not isinstance(value, dict) or set(value) != set(said) or value == said
    return None if right else f"{before + whole + after!r}: read as {value!r}"


def typed(number: int) -> str | None:
    """Any text that is typed: a story, or one sentence."""
    die = dice("typed", number)
    told = "\n".join(die.choice(LINES) if die.random() < 0.7 else die.choice(SAID) for _ in range(die.randint(0, 14)))
    try:
        record = story_of_text(told, "typed")
    except KathaError as error:
        return "several lines" if "\n" in str(error) else None
    return _of_cast(record)


DOORS: Mapping[str, Callable[[int], str | None]] = {
    "texts": text, "typed": typed, "names": names, "folders": folder, "replies": reply,
}  # fmt: skip


def tried(door: str, number: int) -> str | None:
    """Return what is wrong with a case, be it an error that nobody expects."""
    try:
        return DOORS[door](number)
    except Exception as error:
        return f"Unexpected {type(error).__name__}: {error}"


if __name__ == "__main__":
    print(tried(sys.argv[1], int(sys.argv[2])) or "Nothing is wrong.")
