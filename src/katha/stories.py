"""Reading stories: a plain text file, a KathaBench record, or `PATH#story_id` in a JSON Lines file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from json import JSONDecodeError
from pathlib import Path

from pydantic import ValidationError

from katha.errors import InputFileError, RecordError, UsageError, unreadable
from katha.jsonio import MOST_JSON, iter_lines, loads, read_text
from katha.mapping import RecordMapping
from katha.protocols import allows
from katha.schema import MORAL_LABELS, StoryRecord

MAX_STORY_BYTES = 200_000
"""A longer plain text is refused: it is a book, not a story for one storyboard."""

VARIANTS_FILE = "contrastive_variants.jsonl"
"""A record's contrastive variants lie beside it under this name (Table 15)."""

_RECORD_SUFFIXES = (".json", ".jsonl")
_SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
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
    path, wanted = Path(spec), None
    try:
        if not path.exists() and "#" in spec:
            name, _, wanted = spec.rpartition("#")
            path = Path(name)
    except OSError as error:
        raise unreadable(spec, error) from error
    if path.is_dir():
        raise InputFileError(f"{str(path)!r} is a folder.", hint="Give one story: a text file, or FILE.jsonl#story_id.")
    if path.suffix.lower() in _RECORD_SUFFIXES:
        return _pick(path, wanted, mapping)
    if wanted is not None:
        raise InputFileError(f"{str(path)!r} is a plain text and holds no story {wanted!r}.")
    text = read_text(path, limit=MAX_STORY_BYTES)
    if not text.strip():
        raise InputFileError(f"{str(path)!r} is empty.", hint="Give a text file with a story in it.")
    return story_of_text(text, path.stem)


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
        if record.story_id in records and not Path(spec).is_dir():
            raise UsageError(f"{str(spec)!r} holds the story {record.story_id!r} twice.", hint="Remove one of them.")
        records.setdefault(record.story_id, record)
    if not records:
        raise InputFileError(f"{str(spec)!r} holds no story.", hint="Give a JSON Lines file or a folder of stories.")
    return list(records.values())


def _every(spec: str | Path, mapping: RecordMapping) -> Iterator[StoryRecord]:
    path = Path(spec)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
        for file in files:
            if file.suffix.lower() in _RECORD_SUFFIXES and file.name != VARIANTS_FILE:
                yield from iter_records(file, mapping)
        yield from (load_story(str(file)) for file in files if file.suffix.lower() == ".txt")
    elif path.is_file() and path.suffix.lower() in _RECORD_SUFFIXES:
        yield from iter_records(path, mapping)
    else:
        yield load_story(str(spec), mapping)


def iter_records(path: Path, mapping: RecordMapping | None = None) -> Iterator[StoryRecord]:
    """Stream the records of a `.jsonl` file (or the one of a `.json` file); memory does not grow with the file.

    mapping: how other keys and spellings are read; what is built in unless told. What was assumed stands in a record's
    provenance (see `katha.mapping.assumptions`).

    Raises:
        InputFileError: a line is not JSON. RecordError: a record breaks the schema or repeats an id.
    """
    forms = mapping or RecordMapping()
    if path.suffix.lower() == ".json":
        yield _record(read_text(path, limit=MOST_JSON), str(path), forms)
        return
    seen: set[str] = set()
    for number, line in iter_lines(path):
        where = f"{path}, line {number}"
        record = _record(line, where, forms)
        if record.story_id in seen:
            raise RecordError(f"{where}: the story id {record.story_id!r} was used before.")
        seen.add(record.story_id)
        yield record


def _record(text: str, where: str, forms: RecordMapping) -> StoryRecord:
    """Return the checked record of a JSON text; `where` (file, and line if known) opens every message."""
    try:
        value = loads(text)
    except JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text.strip() else f"column {error.colno}"
        raise InputFileError(f"{where} is not JSON: {error.msg} ({place}).") from error
    except ValueError as error:
        raise InputFileError(f"{where} is not JSON: {error}.") from error
    if not isinstance(value, dict):
        raise RecordError(f"{where}: a story record must be a JSON object.")
    with suppress(ValidationError):  # most records are in the released form already
        record = StoryRecord.model_validate(value)
        if next(record_problems(record), None) is None and forms.fits(record):
            return record
    value, _ = forms.canonical(value)
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
    """Return the story that a plain text tells; its title is the first line, where that reads like one.

    name: what it is called where it has no title of its own; its first words unless told. The story's id is made of it.
    """
    text = words.replace("\r\n", "\n").strip()
    stem = re.sub(r"[^A-Za-z0-9]+", "_", name or " ".join(text.split()[:5])).strip("_")[:64] or "story"
    first, _, rest = text.partition("\n\n")
    if _is_heading(text.partition("\n")[0]):
        first, _, rest = text.partition("\n")
    alike = all(_SPOKEN.match(line) for line in text.split("\n", 2)[:2])
    told = first[-1:] in tuple(".!?\"'") or _LISTED.match(first) is not None or alike
    has_title = bool(rest.strip()) and "\n" not in first and len(first) <= _TITLE_LIMIT and not told
    title, body = (first.strip("# ").strip(), rest.strip()) if has_title else (stem.replace("_", " ").title(), text)
    return StoryRecord(story_id=stem, title=title, story_text=body)


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
    if not _SAFE_ID.fullmatch(record.story_id) or ".." in record.story_id:
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
            yield f"question {name!r}: field 'target_transition' names {list(pair)}, which is no transition."
