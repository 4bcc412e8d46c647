"""Story records as people ship them, read into the released form (Tables 7, 8 and 13), and what was assumed.

Other keys, spellings and shapes are data (`configs/record_mapping.yaml`, and a file of the user's own). What a record
says in another way is read and told; a record that is in the released form comes back as it is. What nobody can read
(a label that is none, a question without an answer) is left for the schema to refuse, or left out and told where the
caller asks for as much as can be had.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from katha.configs import load_config
from katha.errors import InputFileError
from katha.jsonio import read_yaml
from katha.schema import DIMENSIONS, MORAL_LABELS, Question, Scene, StoryRecord, Transition, TransitionType

READ_AS = "read_as"
"""Under this key a record's provenance keeps what was assumed, a sentence each."""

_QUESTIONS = "recoverability_questions"
_ITEMS: Mapping[str, type[BaseModel]] = {"scenes": Scene, "transitions": Transition, _QUESTIONS: Question}
_LABELS: Mapping[str, tuple[str, ...]] = {
    "question_type": DIMENSIONS,
    "transition_type": get_args(TransitionType),
    "moral_label": MORAL_LABELS,
    "moral_target": MORAL_LABELS,
}
_NUMBERS = re.compile(r"\d+")
_SHIPPED = "{}_as_shipped"

Items = list[dict[str, Any]]


class _Tables(BaseModel):
    """The form of a mapping file."""

    model_config = ConfigDict(extra="forbid")

    keys: dict[str, dict[str, list[str]]] = {}
    values: dict[str, dict[str, str | None]] = {}


def _plain(name: object) -> str:
    """Return a key or label without case, blanks, hyphens and underscores."""
    return re.sub(r"[\s_-]+", "", str(name)).casefold()


class _UnreadableError(Exception):
    """Something is of no shape that anybody ships: the schema says what."""


@dataclass
class _Reading:
    """One record while it is read: what was assumed so far, and by how much its scenes are numbered too low."""

    assumed: list[str] = field(default_factory=list)
    shift: int = 0
    lossy: bool = False

    def note(self, sentence: str) -> None:
        """Remember an assumption, once."""
        if sentence not in self.assumed:
            self.assumed.append(sentence)


class RecordMapping:
    """Which keys and values stand for the released ones.

    Args:
        path: A mapping of the user's own, tried before what is built in.

    Raises:
        InputFileError: it cannot be read, or is not a mapping; the field is named.
    """

    def __init__(self, path: Path | None = None) -> None:
        own = _read_tables(path) if path is not None else _Tables()
        self._own = path is not None
        built_in = _Tables.model_validate(load_config("record_mapping.yaml"))
        self._keys: dict[str, dict[str, str]] = {}
        for kind in ("story", *_ITEMS):
            found = self._keys.setdefault(kind, {})
            for tables in (own, built_in):
                for key, others in tables.keys.get(kind, {}).items():
                    for other in others:
                        found.setdefault(_plain(other), key)
        self._first = {
            kind: {_plain(o) for rows in own.keys.get(kind, {}).values() for o in rows} for kind in self._keys
        }
        names = own.values.keys() | built_in.values.keys()
        self._values = {
            name: {_plain(k): v for tables in (built_in, own) for k, v in tables.values.get(name, {}).items()}
            for name in names
        }

    def fits(self, record: StoryRecord) -> bool:
        """Return whether a record that the schema accepts says all it has to say under the released keys."""
        if self._own:
            return False
        questions = record.recoverability_questions
        items: dict[str, Sequence[BaseModel]] = {
            "story": [record], "scenes": record.scenes, "transitions": record.transitions, _QUESTIONS: questions
        }  # fmt: skip
        if any(item.moral_target not in (None, *MORAL_LABELS) for item in record.transitions):
            return False
        if any(_plain(item.answerability) in self._values.get("answerability", {}) for item in questions):
            return False
        for kind, rows in items.items():
            if any(_plain(key) in self._keys[kind] for row in rows for key in row.model_extra or ()):
                return False
        spare = (record.model_extra or {}).items()
        known = {_plain(name) for name in StoryRecord.model_fields}
        if any(_plain(key) in known for key, _ in spare):
            return False
        return bool(questions) or not any(isinstance(value, list) for _, value in spare)

    def canonical(self, value: Mapping[str, Any], name: str | None = None) -> tuple[dict[str, Any], list[str]]:
        """Return a record in the released form, and what was assumed, a sentence each.

        Args:
            value: The JSON object as it was read.
            name: The story's id where it has none. With it, what cannot be read is left out and told; without it, it
                stays for the schema to refuse.
        """
        try:
            return self._canonical(value, name, _Reading(lossy=name is not None))
        except _UnreadableError:
            return dict(value), []

    def _canonical(self, value: Mapping[str, Any], name: str | None, at: _Reading) -> tuple[dict[str, Any], list[str]]:
        record = self._renamed(dict(value), "story", StoryRecord, at)
        if name is not None and not record.get("story_id"):
            record["story_id"] = name
            at.note(f"there is no id; {name!r} is used")
        if at.lossy:
            record["story_id"] = str(record["story_id"])
        self._find_questions(record, at)
        for kind in _ITEMS:
            if kind in record:
                record[kind] = self._items(record[kind], kind, at)
        self._number(record, at)
        self._transitions(record, at)
        record[_QUESTIONS] = [item for item in map(self._question_of(record, at), record.get(_QUESTIONS) or ()) if item]
        self._text(record, at)
        self._label(record, "moral_label", at, lost="no moral of the twelve is known")
        for key in ("provenance", "evidence_status"):
            if key in record and not isinstance(record[key], dict):
                shipped = record.pop(key)
                if shipped is not None:
                    record[_SHIPPED.format(key)] = shipped
                at.note(f"{key!r} is {_form(shipped)}; it is read as an empty object")
        if not at.assumed:
            return dict(value), []
        record["provenance"] = {**(record.get("provenance") or {}), READ_AS: at.assumed}
        return record, at.assumed

    def _renamed(self, item: dict[str, Any], kind: str, model: type[BaseModel], at: _Reading) -> dict[str, Any]:
        """Return `item` with released keys; one that is there is replaced by the user's own mapping only."""
        known = {name for name, info in model.model_fields.items()} | _aliases(model)
        renamed = dict(item)
        for key in item:
            plain = _plain(key)
            target = self._keys[kind].get(plain)
            if key in known and plain not in self._first[kind]:
                continue
            if target is None:
                target = next((name for name in known if _plain(name) == plain), None)
            if target is None or target == key or (_has(renamed, target, model) and plain not in self._first[kind]):
                continue
            renamed[target] = renamed.pop(key)
            at.note(f"{key!r} of {_SAID[kind]} is read as {target!r}")
        return renamed

    def _find_questions(self, record: dict[str, Any], at: _Reading) -> None:
        """Take the questions from a key that nobody knows, if there are none elsewhere."""
        if _has(record, _QUESTIONS, StoryRecord):
            for alias in _aliases(StoryRecord) & record.keys():
                if isinstance(record[alias], (list, dict)):
                    record[_QUESTIONS] = record.pop(alias)
            return
        asked = {_plain(name) for name in ("question", *self._aliases_of(_QUESTIONS, "question"))}
        for key, value in record.items():
            rows = value if isinstance(value, list) else ()
            if (
                key not in _ITEMS
                and rows
                and all(isinstance(row, dict) and asked & set(map(_plain, row)) for row in rows)
            ):
                record[_QUESTIONS] = record.pop(key)
                at.note(f"{key!r} of a story is read as {_QUESTIONS!r}")
                return

    def _aliases_of(self, kind: str, key: str) -> list[str]:
        return [alias for alias, target in self._keys[kind].items() if target == key]

    def _items(self, value: Any, kind: str, at: _Reading) -> Items:
        """Return a list of objects, whatever holds them: null, an object by number, a list of texts."""
        if value is None:
            at.note(f"{kind!r} is null; it is read as an empty list")
            return []
        if isinstance(value, Mapping):
            at.note(f"{kind!r} is an object; its values are read in order")
            value = [
                {"scene_index": number, **row} if isinstance(row, dict) and number else row
                for number, row in ((_number(key) if kind == "scenes" else None, row) for key, row in value.items())
            ]
        if not at.lossy and not (isinstance(value, list) and all(isinstance(row, (str, Mapping)) for row in value)):
            raise _UnreadableError
        if not isinstance(value, list):
            return []
        rows: Items = []
        for row in value:
            if isinstance(row, str) and kind == "scenes":
                at.note("a scene is a text alone")
                row = {"scene_text": row}
            if not isinstance(row, Mapping) and not at.lossy:
                raise _UnreadableError
            if not isinstance(row, Mapping):
                at.note(f"{kind!r} holds something that is not an object; it is left out")
                continue
            named = self._renamed(dict(row), kind, _ITEMS[kind], at)
            self._label(named, "answerability", at)
            rows.append(self._shaped(named, _ITEMS[kind], kind, at))
        return rows

    def _shaped(self, row: dict[str, Any], model: type[BaseModel], kind: str, at: _Reading) -> dict[str, Any]:
        """Return `row` with texts where the schema has texts, and lists of texts where it has these."""
        for name, info in model.model_fields.items():
            if name not in row:
                continue
            value, wanted = row[name], str(info.annotation)
            if wanted == "list[str]" or info.annotation == list[str]:
                made: Any = _texts(value)
            elif info.annotation is str or "str |" in wanted or "StringConstraints" in wanted:
                made = value if value is None and "None" in wanted else _text(value)
            else:
                continue
            if made != value:
                row[name] = made
                at.note(f"{name!r} of {_SAID[kind]} is {_form(value)}; it is read as {_form(made)}")
        return row

    def _number(self, record: dict[str, Any], at: _Reading) -> None:
        """Number the scenes from 1."""
        scenes = record.get("scenes") or []
        for position, scene in enumerate(scenes, 1):
            found = _number(scene.get("scene_index"))
            if found is None:
                at.note("scenes have no number; their order counts")
            elif found != scene.get("scene_index"):
                at.note(f"'scene_index' is {_form(scene['scene_index'])}; its number is read")
            scene["scene_index"] = position if found is None else found
        told = [scene["scene_index"] for scene in scenes]
        told += [
            number
            for item in record.get("transitions") or ()
            for number in [_number(item.get("from_scene"))]
            if number is not None
        ]
        if told and min(told) == 0:
            at.shift = 1
            at.note("scenes are numbered from 0; they are read from 1")
            for scene in scenes:
                scene["scene_index"] += 1

    def _transitions(self, record: dict[str, Any], at: _Reading) -> None:
        for position, item in enumerate(record.get("transitions") or (), 1):
            ends = [_number(item.get(name)) for name in ("from_scene", "to_scene")]
            if None in ends:
                at.note("transitions do not name their scenes; their order counts")
                item["from_scene"], item["to_scene"] = position, position + 1
            else:
                item["from_scene"], item["to_scene"] = (end + at.shift for end in ends if end is not None)
            self._label(item, "transition_type", at, lost="it is left open")
            if item.get("transition_type") is None:
                item.pop("transition_type", None)
            self._label(item, "moral_target", at, lost="no moral of the twelve is known")
        if record.get("transitions"):
            record["transitions"].sort(key=lambda item: item["from_scene"])
        elif at.lossy and len(record.get("scenes") or ()) > 1:
            at.note("there are no transitions; empty ones join neighbouring scenes")
            record["transitions"] = [
                {"from_scene": scene, "to_scene": scene + 1} for scene in range(1, len(record["scenes"]))
            ]

    def _question_of(
        self, record: Mapping[str, Any], at: _Reading
    ) -> Callable[[dict[str, Any]], dict[str, Any] | None]:
        """Return what makes one question canonical, None where nothing can be asked."""
        count = iter(range(1, 1_000_000))

        def read(item: dict[str, Any]) -> dict[str, Any] | None:
            number = next(count)
            if not item.get("question_id"):
                item["question_id"] = f"{record.get('story_id')}_q{number}"
                at.note("questions have no id; they are numbered")
            if isinstance(item["question_id"], int):
                item["question_id"] = str(item["question_id"])
            self._label(item, "question_type", at, lost="the question is left out")
            lacks = item.get("question_type") is None or not item.get("question") or not item.get("gold_answer")
            if at.lossy and lacks:
                at.note("a question without a known type, wording or answer is left out")
                return None
            self._targets(item, at)
            return item

        return read

    def _targets(self, item: dict[str, Any], at: _Reading) -> None:
        """Read which scenes and which transition a question is about."""
        scenes = _numbers(item.get("evidence_scenes"))
        target = item.get("target_scene")
        found = _numbers(target)
        if isinstance(target, (list, str, Mapping)):
            at.note(f"'target_scene' is {_form(target)}; its number is read")
        if len(found) > 1:
            scenes = scenes or found
            found = []
        item["target_scene"] = found[0] + at.shift if found else None
        item["evidence_scenes"] = [number + at.shift for number in scenes]
        pair = item.get("target_transition")
        if pair is None:
            return
        ends = _numbers(pair)
        if not isinstance(pair, list) or not all(isinstance(end, int) for end in pair):
            at.note(f"'target_transition' is {_form(pair)}; its scenes are read")
        if len(ends) == 1:
            ends = [ends[0], ends[0] + 1]
        adjacent = len(ends) == 2 and ends[1] == ends[0] + 1
        if not adjacent and ends and item.get("question_type") != "moral" and not at.lossy:
            return  # which moment it is about cannot be known
        if not adjacent:
            at.note("'target_transition' names no two neighbours; the question is about the whole story")
        item["target_transition"] = [end + at.shift for end in ends] if adjacent else None

    def _label(self, item: dict[str, Any], key: str, at: _Reading, *, lost: str = "it is kept") -> None:
        """Bring one label into its released spelling; what is not known is kept beside under `KEY_as_shipped`."""
        value = item.get(key)
        if value is None:
            return
        told, allowed = self._values.get(key, {}), _LABELS.get(key)
        if allowed is not None and value in allowed and _plain(value) not in told:
            return
        plain = _plain(value)
        same = next((name for name in allowed or () if _plain(name) == plain), None)
        if plain in told or same is not None:
            made = told.get(plain, same)
        elif allowed is None:
            return
        else:
            made = None
        if made == value or (made is None and plain not in told and not at.lossy):
            return
        item[key] = made
        if made is None:
            item[_SHIPPED.format(key)] = value
            at.note(f"{key!r} is {value!r}; {lost}")
        else:
            at.note(f"{key!r} is {value!r}; it is read as {made!r}")

    def _text(self, record: dict[str, Any], at: _Reading) -> None:
        """Make the story's text of its scenes where it has none."""
        there = {"story_text", "text", "story"} & record.keys()
        if _has(record, "story_text", StoryRecord) or not record.get("scenes") or (there and not at.lossy):
            return
        record["story_text"] = " ".join(str(scene.get("scene_text") or "").strip() for scene in record["scenes"])
        at.note("there is no story text; the scenes' texts are joined")


_SAID = {"story": "a story", "scenes": "a scene", "transitions": "a transition", _QUESTIONS: "a question"}


def _read_tables(path: Path) -> _Tables:
    value = read_yaml(path)
    try:
        return _Tables.model_validate(value or {})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputFileError(
            f"{str(path)!r} is not a mapping: field {where!r}: {first['msg']}.",
            hint="It has `keys` and `values`; see the documentation of `katha bench convert`.",
        ) from error


def _aliases(model: type[BaseModel]) -> set[str]:
    """Return the other keys that the schema itself accepts."""
    found: set[str] = set()
    for info in model.model_fields.values():
        found |= {choice for choice in getattr(info.validation_alias, "choices", ()) if isinstance(choice, str)}
    return found


def _has(record: Mapping[str, Any], key: str, model: type[BaseModel]) -> bool:
    """Return whether a record says something under the key or an alias of the schema's own."""
    choices = getattr(model.model_fields[key].validation_alias, "choices", ()) if key in model.model_fields else ()
    return any(record.get(name) not in (None, "", []) for name in (key, *choices))


def _form(value: Any) -> str:
    """Return what kind of JSON value it is, in words; a short text as itself."""
    if isinstance(value, str):
        return repr(value) if len(value) <= 20 else "a text"
    names = {type(None): "null", bool: "true or false", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "; ".join(map(_text, value))
    if isinstance(value, Mapping):
        return next((_text(value[key]) for key in ("name", "text", "label") if key in value), "")
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return [text for text in map(_text, value if isinstance(value, (list, tuple)) else [value]) if text]


def _number(value: Any) -> int | None:
    """Return the scene that a number, a text such as `scene_2` or a list of one names."""
    found = _numbers(value)
    return found[0] if len(found) == 1 else None


def _numbers(value: Any) -> list[int]:
    """Return every number in a value of any shape, in order."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [int(value)]
    if isinstance(value, str):
        return [int(digits) for digits in _NUMBERS.findall(value)[:8] if len(digits) < 6]
    if isinstance(value, Mapping):
        ordered: Iterable[Any] = sorted(value.items(), key=lambda pair: str(pair[0])[:1] not in ("f", "s"))
        return [number for _, item in ordered for number in _numbers(item)]
    return [number for item in value for number in _numbers(item)] if isinstance(value, (list, tuple)) else []


def assumptions(records: Sequence[StoryRecord]) -> list[str]:
    """Return what was assumed while records were read, a sentence each with the number of records."""
    counts = Counter(sentence for record in records for sentence in dict.fromkeys(record.provenance.get(READ_AS) or ()))
    return [f"{sentence} ({count} of {len(records)} records)." for sentence, count in counts.most_common()]
