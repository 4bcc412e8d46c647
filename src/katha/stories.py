"""Reading stories: a text of any kind (`katha.intake`), a KathaBench record, or `PATH#story_id` in JSON Lines."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from json import JSONDecodeError
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.errors import InputFileError, RecordError, UsageError, unreadable
from katha.ids import apart, id_of_name, is_safe_id
from katha.intake import SUFFIXES, Intake, take_in, take_in_object
from katha.intake.decoding import decode_file
from katha.intake.names import bare
from katha.jsonio import MOST_JSON, iter_lines, loads
from katha.mapping import RecordMapping
from katha.protocols import allows
from katha.schema import MORAL_LABELS, StoryRecord
from katha.schema.narratives import read_narratives, records_of

MAX_STORY_BYTES = 200_000
"""A longer plain text is refused: it is a book, not a story for one storyboard."""

VARIANTS_FILE = "contrastive_variants.jsonl"
"""A record's contrastive variants lie beside it under this name (Table 15)."""

_MARKED_UP = (".fdx", ".html", ".htm", ".tex", ".srt", ".vtt", ".ass", ".twee")
_MOST_MARKUP = 10
"""So many times longer may a file be that is mostly markup."""
_RECORD_SUFFIXES = (".json", ".jsonl")
_WORDS = (".md", ".txt", ".markdown")
_NO_STORIES = re.compile(r"(?:readme|licen[cs]e|changelog|contributing|notice|copying|authors|index)\b", re.IGNORECASE)
"""Files of a folder of stories that tell none, by how their names begin."""
# Longer first lines are the first sentence of the story.
_TITLE_LIMIT = 120
_SMALL_WORD = 3
_LISTED = re.compile(r"\s*(?:[-*+•–]\s|\d+[.)]\s|(?:INT|EXT|EST|I/E)[. /])")
_SPOKEN = re.compile(r"[^\n:]{1,25}(?::\d\d[^\n:]{0,25})?:\s")
"""How a point of a list, a scene of a script, and a line of a conversation begin: none of them is a title."""


def load_story(spec: str, mapping: RecordMapping | None = None) -> StoryRecord:
    """Return the one story that `spec` names; `mapping` as for `iter_records`.

    Raises:
        InputFileError: the file cannot be read as text or JSON, is empty or too long, or holds several stories and
            none was named. RecordError: the record breaks the schema; file, line, story and field are named.
    """
    path, wanted = _named(spec)
    if path.is_dir():
        raise InputFileError(f"{str(path)!r} is a folder.", hint="Give one story: a text file, or FILE.jsonl#story_id.")
    if path.suffix.lower() in _RECORD_SUFFIXES:
        return _pick(path, wanted, mapping)
    if wanted is not None:
        raise InputFileError(f"{str(path)!r} is a plain text and holds no story {wanted!r}.")
    taken = read_file(path)
    return story_of_intake(taken, path.stem)


def _named(spec: str) -> tuple[Path, str | None]:
    """Return the file of `FILE#story_id`, and the id where one is named: a '#' may stand in a path, too."""
    path = Path(spec)
    try:
        if path.exists() or "#" not in spec:
            return path, None
        at = spec.rfind("#")
        while at > 0:
            if Path(spec[:at]).is_file():
                return Path(spec[:at]), spec[at + 1 :]
            at = spec.rfind("#", 0, at)
    except (OSError, ValueError) as error:
        raise unreadable(spec, error if isinstance(error, OSError) else FileNotFoundError(2, "No such file")) from error
    name, _, wanted = spec.rpartition("#")
    suffix = Path(name).suffix.lower()
    return (Path(name), wanted) if suffix in _RECORD_SUFFIXES and "/" not in wanted else (path, None)


def read_file(path: Path, encoding: str | None = None) -> Intake:
    """Return what is made of a file that is not a record (`katha.intake`).

    encoding: what it is in, where its bytes do not say.

    Raises:
        InputFileError: it cannot be read as text, is empty or too long, or is of a kind that tells no story.
    """
    most = MAX_STORY_BYTES * (_MOST_MARKUP if path.suffix.lower() in _MARKED_UP else 1)
    decoded = decode_file(path, limit=most, encoding=encoding)
    if not decoded.text.strip("\ufeff \t\r\n"):
        raise InputFileError(f"{str(path)!r} is empty.", hint="Give a text file with a story in it.")
    try:
        taken = take_in(decoded.text, path.name)
    except ValueError as error:
        said, _, todo = str(error).partition("; ")
        raise InputFileError(f"{str(path)!r} cannot be read: {said}.", hint=_hint(todo)) from error
    if not any(map(str.isalnum, taken.text)):
        raise InputFileError(f"{str(path)!r} holds no word of a story.", hint=" ".join(taken.left_out) or None)
    return replace(taken, encoding=decoded.encoding)


def _hint(todo: str) -> str | None:
    return f"{todo[:1].upper()}{todo[1:].rstrip('.')}." if todo else None


def story_of_intake(taken: Intake, name: str) -> StoryRecord:
    """Return the story record of what was taken in; its id is made of `name`."""
    stem = id_of_name(name)
    values = taken.values(stem, "")
    if taken.draft is None:
        title, body = _titled(taken.text, taken.title)
        values |= {"title": title, "story_text": body}
    values["title"] = values["title"] or _title_of(name)
    return StoryRecord.model_validate(values)


def _title_of(name: str) -> str:
    words = re.sub(r"[^\w]+|_", " ", name).strip()
    return words.title() if words.isascii() else words


def _pick(path: Path, wanted: str | None, mapping: RecordMapping | None) -> StoryRecord:
    found: list[str] = []
    for record in iter_records(path, mapping):
        if record.story_id == wanted:
            return record
        found.append(record.story_id)
    if wanted is not None or not found:
        missing = f"holds no story {wanted!r}" if wanted else "holds no story"
        raise InputFileError(f"{str(path)!r} {missing}.", hint=f"It has: {', '.join(found[:8])}." if found else None)
    if len(found) > 1:
        raise InputFileError(
            f"{str(path)!r} holds {len(found)} stories.", hint=f"Name one, for example {path}#{found[0]}."
        )
    return record


def holds_several(spec: str) -> bool:
    """Return whether `spec` is a folder, or a JSON Lines file of several records: no story by itself.

    Raises:
        InputFileError: the file cannot be read.
    """
    path = Path(spec)
    try:
        if spec and path.is_dir():  # nothing at all is not the folder that one is in
            return True
        listed = path.suffix.lower() == ".jsonl" and path.is_file()
    except (OSError, ValueError):  # a story's own words are no path
        return False
    return listed and len(list(islice(iter_lines(path), 2))) > 1


def load_stories(spec: str | Path, mapping: Path | None = None) -> list[StoryRecord]:
    """Read every story of a JSON Lines file, a record, a plain text, `FILE.jsonl#story_id`, or a folder of them.

    Args:
        spec: The path. A folder's records come first, so that a text beside its record does not hide the questions.
        mapping: A YAML file of keys and values: how the records name things.

    Returns:
        The stories, each id once.

    Raises:
        InputFileError: There is nothing to read. RecordError: A line is broken; file and number are named.
        UsageError: A file holds a story twice.

    Example:
        >>> [story.title for story in load_stories("examples")]
    """
    records: dict[str, StoryRecord] = {}
    for record in _every(spec, RecordMapping(mapping)):
        there = records.setdefault(record.story_id, record)
        if there is not record and (there != record or not Path(spec).is_dir()):
            hint = "Remove one of them, or give it another id."
            raise UsageError(f"{str(spec)!r} holds the story {record.story_id!r} twice.", hint=hint)
    if not records:
        raise InputFileError(f"{str(spec)!r} holds no story.", hint="Give a JSON Lines file or a folder of stories.")
    return list(records.values())


def _every(spec: str | Path, mapping: RecordMapping) -> Iterator[StoryRecord]:
    path = Path(spec)
    if path.is_dir():
        yield from _of_folder(path, mapping)
    elif path.is_file() and path.suffix.lower() in _RECORD_SUFFIXES:
        yield from iter_records(path, mapping)
    else:
        yield load_story(str(spec), mapping)


def _of_folder(path: Path, mapping: RecordMapping) -> Iterator[StoryRecord]:
    """Yield the stories of a folder: its records, then its texts but those that lie beside a record of their name. Two
    texts whose names make one id are kept apart: the one that is not called so has a mark.

    Raises:
        UsageError: a text has the id of a record that tells another story.
    """
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    beside, told, texts = set[str](), dict[str, StoryRecord](), list[tuple[str, Path]]()
    for file in files:
        suffix, stem = file.suffix.lower(), unicodedata.normalize("NFC", file.stem)
        if suffix in _RECORD_SUFFIXES and file.name != VARIANTS_FILE:
            beside.add(stem)
            for record in iter_records(file, mapping):
                told[record.story_id] = record
                yield record
        elif suffix in SUFFIXES and not (suffix in _WORDS and _NO_STORIES.match(file.stem)):
            texts.append((id_of_name(file.stem), file))
    taken, kept = {file.stem for name, file in texts if name == file.stem} - told.keys(), set[str]()
    for name, file in texts:
        if unicodedata.normalize("NFC", file.stem) in beside:
            continue
        story = load_story(str(file), mapping)
        if (known := told.get(story.story_id)) is not None:
            if story.story_text.split() == known.story_text.split():
                continue
            said = f"{str(file)!r} and a record beside it are two stories of the id {story.story_id!r}."
            raise UsageError(said, hint="Rename the text.")
        first = name == file.stem and name not in kept
        own = story.story_id if first else apart(story.story_id, file.name, taken)
        kept.add(own)
        taken.add(own)
        scenes = [one.model_copy(update={"story_id": own}) for one in story.scenes]
        yield story if own == story.story_id else story.model_copy(update={"story_id": own, "scenes": scenes})


def iter_records(path: Path, mapping: RecordMapping | None = None) -> Iterator[StoryRecord]:
    """Stream the records of a `.jsonl` file (or the one of a `.json` file); memory does not grow with the file.

    mapping: how other keys and spellings are read; what is built in unless told. What was assumed stands in a record's
    provenance (see `katha.mapping.assumptions`).

    Raises:
        InputFileError: a line is not JSON. RecordError: a record breaks the schema or repeats an id.
    """
    forms = mapping or RecordMapping()
    if path.suffix.lower() == ".json":
        yield from _of_json(path, forms)
        return
    seen: set[str] = set()
    for number, line in iter_lines(path):
        where = f"{path}, line {number}"
        record = _record(_parsed(line, where), where, forms, f"{path.stem}_{number}")
        if record.story_id in seen:
            raise RecordError(f"{where}: the story id {record.story_id!r} was used before.")
        seen.add(record.story_id)
        yield record


def _of_json(path: Path, forms: RecordMapping) -> Iterator[StoryRecord]:
    """Yield the stories of a JSON file: a record, a list of them, or what another tool tells a story in."""
    value = _parsed(decode_file(path, limit=MOST_JSON).text, str(path))
    if not isinstance(value, list):
        yield _record(value, str(path), forms, path.stem)
        return
    if value and all(isinstance(row, dict) and isinstance(row.get("narrative"), list) for row in value):
        yield from records_of(read_narratives(path))  # VinaBench
        return
    if not any(isinstance(row, dict) and _has_text(row, forms) for row in value):
        yield _of_other(value, str(path), path.stem)  # the shots of one story
        return
    for number, row in enumerate(value, 1):
        yield _record(row, f"{path}, story {number}", forms, f"{path.stem}_{number}")


def _parsed(text: str, where: str) -> Any:
    """Return the value of a JSON text; `where` (file, and line if known) opens every message."""
    try:
        return loads(text)
    except JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text.strip() else f"column {error.colno}"
        raise InputFileError(f"{where} is not JSON: {error.msg} ({place}).") from error
    except ValueError as error:
        raise InputFileError(f"{where} is not JSON: {error}.") from error


def _has_text(value: Mapping[str, Any], forms: RecordMapping) -> bool:
    """Return whether an object has a story's own words under a key that is known for them."""
    told = forms.canonical({key: item for key, item in value.items() if not isinstance(item, (list, dict))})[0]
    return any(isinstance(told.get(key), str) and told[key].strip() for key in ("story_text", "text", "story"))


def _of_other(value: Any, where: str, name: str) -> StoryRecord:
    """Return the story of an object of another tool (`katha.intake.objects`).

    Raises:
        RecordError: no field of it tells a story.
    """
    try:
        taken = take_in_object(value)
    except ValueError as error:
        said, _, todo = str(error).partition("; ")
        raise RecordError(f"{where} cannot be read: {said}.", hint=_hint(todo)) from error
    if taken is None:
        raise RecordError(
            f"{where} holds no story: no field of it is known to tell one.",
            hint="Known are story_text, and lists of scenes, shots or panels with what happens in each.",
        )
    return story_of_intake(taken, name)


def _with_own_moral(value: dict[str, Any]) -> dict[str, Any]:
    """Return a record that nobody is asked about with its moral in its authors' own words, which is none of the twelve,
    kept beside."""
    told = value.get("moral_label")
    if not isinstance(told, str) or told in MORAL_LABELS:
        return value
    return {**value, "moral_label": None, "moral_label_as_shipped": told}


def _record(value: Any, where: str, forms: RecordMapping, name: str) -> StoryRecord:
    """Return the checked record of a JSON value; `name` is for one that has none."""
    if not isinstance(value, dict):
        raise RecordError(f"{where}: a story record must be a JSON object.")
    with suppress(ValidationError):  # most records are in the released form already
        record = StoryRecord.model_validate(value)
        if next(record_problems(record), None) is None and forms.fits(record):
            return record
    given, (value, _) = value, forms.canonical(value)
    asked = isinstance(value.get("recoverability_questions"), list) and bool(value["recoverability_questions"])
    if not asked and not value.get("transitions"):
        if not _has_text(given, forms):
            return _of_other(given, where, str(value.get("story_id") or name))
        value = _with_own_moral({**value, "story_id": value.get("story_id") or id_of_name(name)})
    try:
        record = StoryRecord.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        story = value.get("story_id", "?")
        raise RecordError(f"{where}: story {story!r}, field {field!r}: {first['msg']}.") from error
    for problem in record_problems(record):
        raise RecordError(f"{where}: story {record.story_id!r}: {problem}")
    return record


def check_scene_count(record: StoryRecord, panels: int) -> None:
    """Refuse an annotated record whose number of scenes is not the number of panels.

    Raises:
        RecordError: the counts differ.
    """
    count = len(record.scenes)
    if count and not allows(panels, count):
        raise RecordError(
            f"Story {record.story_id!r} has {count} scenes where {panels} panels are to be drawn.",
            hint=f"Complete the record, or give --panels {count}.",
        )


def story_of_text(words: str, name: str | None = None) -> StoryRecord:
    """Return the story that a text tells, whatever its kind (`katha.intake`); the title of a plain one is its first
    line, where that reads like one.

    name: what it is called where it has no title of its own; its first words unless told. The story's id is made of it.

    Raises:
        InputFileError: it is of a kind that tells no story.
    """
    stem = name or " ".join(words.split()[:5])
    try:
        taken = take_in(words)
    except ValueError as error:
        said, _, todo = str(error).partition("; ")
        raise InputFileError(f"The text cannot be read: {said}.", hint=_hint(todo)) from error
    return story_of_intake(taken, stem)


def _titled(text: str, title: str) -> tuple[str, str]:
    """Return the title and the body of a plain text; the first line is the title where it reads like one and no other
    is known."""
    text = text.strip()
    first, _, rest = text.partition("\n\n")
    if _is_heading(text.partition("\n")[0]):
        first, _, rest = text.partition("\n")
    if title:
        again = bare(first).lower() == bare(title).lower() and bool(rest.strip())
        return title, rest.strip() if again else text
    alike = all(_SPOKEN.match(line) for line in text.split("\n", 2)[:2])
    told = first[-1:] in tuple(".!?\"'") or _LISTED.match(first) is not None or alike
    has_title = bool(rest.strip()) and "\n" not in first and len(first) <= _TITLE_LIMIT and not told
    return (first.strip("# ").strip(), rest.strip()) if has_title else ("", text)


def _is_heading(line: str) -> bool:
    """Return whether a first line is a title without an empty line after it: its long words are capitalised."""
    words = re.findall(r"[^\W\d_]+", line)
    named = [word for word in words if len(word) > _SMALL_WORD]
    return len(words) > 1 and all(word[0].isupper() for word in [words[0], *named, words[-1]])


def scene_texts(story: StoryRecord) -> list[str]:
    """Return the scenes' texts, each ending as a sentence."""
    texts = [scene.scene_text for scene in story.scenes]
    return [text if text.endswith((".", "!", "?", '"')) else f"{text}." for text in texts]


def record_problems(record: StoryRecord) -> Iterator[str]:
    """Yield what the schema's types cannot refuse: unsafe ids, gaps in scenes or transitions, doubled ids, a sentence
    each."""
    if not is_safe_id(record.story_id):
        yield "a story id may hold letters, digits, dots, hyphens and underscores only, and is never a path."
    if not record.story_text:
        yield "field 'story_text' is empty."
    if record.moral_label is not None and record.moral_label not in MORAL_LABELS:
        yield f"field 'moral_label' is {record.moral_label!r}; it must be one of {', '.join(MORAL_LABELS)}."
    indices = [scene.scene_index for scene in record.scenes]
    if indices != list(range(1, len(indices) + 1)):
        yield f"field 'scenes' must be numbered 1 to {len(indices)} in order; it is {indices}."
    wanted = [(index, index + 1) for index in range(1, len(indices))]
    pairs = [transition.pair for transition in record.transitions]
    missing = [pair for pair in wanted if pair not in pairs]
    if missing:
        yield f"field 'transitions' lacks the transition from scene {missing[0][0]} to scene {missing[0][1]}."
    if pairs != wanted:
        yield f"field 'transitions' must join adjacent scenes in order, each once; it has {pairs}."
    seen: set[str] = set()
    for question in record.recoverability_questions:
        name = question.question_id
        if name in seen:
            yield f"the question id {name!r} is used twice."
        seen.add(name)
        if not any(map(str.isalnum, question.gold_answer)):
            told = "holds no word, so that no answer could match it" if question.gold_answer.strip() else "is empty"
            yield f"question {name!r}: field 'gold_answer' {told}."
        pair = question.target_transition
        if pair is not None and pairs and pair not in pairs:
            yield f"question {name!r}: field 'target_transition' names {list(pair)}, which is not a transition."
