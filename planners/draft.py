"""What a language model wrote in a planner's place: the form that is asked for, read, checked, and mended by fields."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from katha.jsonio import loads
from katha.models.replies import without_thoughts
from katha.planners.base import ARTICLE, WORD
from katha.schema import (
    DIMENSIONS,
    MORAL_LABELS,
    SHOT_ANGLES,
    SHOT_SIZES,
    Device,
    Dimension,
    Gaze,
    Link,
    Prop,
    Seen,
    TransitionType,
    Visual,
)

Json = dict[str, Any]
"""An object of JSON: a reply, or the schema of one."""
TIMES = ("dawn", "morning", "day", "afternoon", "evening", "night", "unclear")
DEVICES: tuple[str, ...] = get_args(Device)
_MOST_CAST = 16


@dataclass(frozen=True)
class PlanShape:
    """How much is asked for: panels, the numbers of the first and last sentence (None: scenes are given), whether a
    transition leads in from a panel that is there already, and how many questions a viewer will be asked."""

    least: int
    most: int
    sentences: tuple[int, int] | None = None
    joined: bool = False
    asked: int = 0

    def transitions(self, panels: int) -> int:
        """Return how many transitions so many panels have."""
        return panels - 1 + self.joined


# The form.


def _text(most: int, least: int = 0) -> Json:
    return {"type": "string", "minLength": least, "maxLength": most}


def _list(items: Mapping[str, Any], least: int, most: int) -> Json:
    return {"type": "array", "items": dict(items), "minItems": least, "maxItems": most}


def _object(fields: Mapping[str, Any]) -> Json:
    return {"type": "object", "properties": dict(fields), "required": list(fields), "additionalProperties": False}


def _enum(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


def _or_null(rule: Mapping[str, Any]) -> Json:
    return {"anyOf": [dict(rule), {"type": "null"}]}


def _number(first: int, last: int) -> Json:
    return {"type": "integer", "minimum": first, "maximum": last}


def _board(shape: PlanShape) -> Json:
    order = _enum("telling", "time") if shape.sentences is not None else _enum("telling")
    fields: Json = {"geography": _text(240), "direction": _text(120), "places": _list(_text(120, 1), 0, 8)}
    fields |= {"pivot": _text(80), "pivot_colour": _text(40), "order": order}
    return _object(fields | {name: _list(_text(200, 1), 0, 8) for name in ("left_out", "added")})


def _panel(shape: PlanShape, parts: Collection[str]) -> Json:
    visual, fields = "visual" in parts, Json()
    if shape.sentences is not None:
        fields["first_sentence"] = _number(*shape.sentences)
    if "place" in parts:
        fields |= {"place": _text(80), "time_of_day": _enum(*TIMES)}
    if visual:
        fields["light"] = _text(120)
    if "links" in parts:
        fields["links"] = _list(_object({"phrase": _text(80, 1), "visible": _text(120, 1)}), 0, 3)
    if "shots" in parts:
        fields |= {"shot_size": _enum(*SHOT_SIZES), "shot_angle": _enum(*SHOT_ANGLES)}
    if visual:
        fields["camera"] = _text(120)
    if "sheets" in parts:
        fields["characters"] = _list(_text(60, 1), 0, 8)
    if visual:
        fields["state"] = _list(_object({"name": _text(60, 1), "state": _text(140), "mood": _text(60)}), 0, 10)
        fields["gaze"] = _list(_object({"who": _text(60, 1), "at": _text(80), "not_at": _text(80)}), 0, 8)
        fields |= {"contacts": _list(_text(120, 1), 0, 6), "causes_next": _text(200)}
    return _object(fields | {"must_show": _list(_text(120, 1), 1, 5), "prompt": _text(600, 1)})


def _transition(parts: Collection[str]) -> Json:
    fields: Json = {"transition_type": _enum(*get_args(TransitionType))}
    fields |= {"action": _text(200, 1), "causality": _text(240)}
    fields |= {"intention": _or_null(_text(200)), "emotion": _or_null(_text(200)), "consequence": _text(200)}
    fields["moral_target"] = _or_null(_enum(*MORAL_LABELS))
    if "visual" in parts:
        fields |= {"device": _enum(*DEVICES), "shown": _text(300, 1)}
    if "questions" in parts:
        asked = {"dimension": _enum(*DIMENSIONS), "question": _text(160, 1), "answer": _text(100, 1)}
        fields["questions"] = _list(_object({**asked, "accepted": _list(_text(100, 1), 1, 4)}), 0, 4)
    return _object(fields)


def reply_schema(shape: PlanShape, parts: Collection[str]) -> Json:
    """Return what is asked for, in the order of thinking it out: who, by what means, what is seen, what changes."""
    fields: Json = {"tells_events": {"type": "boolean"}}
    if "sheets" in parts:
        sheet = {"name": _text(60, 1), "in_text": _text(120), "kind": _text(60, 1), "appearance": _text(240, 1)}
        fields["cast"] = _list(_object(sheet), 0, _MOST_CAST)
    if "visual" in parts:
        prop = {"name": _text(60, 1), "looks": _text(160), "states": _list(_text(100, 1), 0, 6)}
        fields |= {"props": _list(_object(prop), 0, 12), "visual": _board(shape)}
    fields["panels"] = _list(_panel(shape, parts), shape.least, shape.most)
    fields["transitions"] = _list(_transition(parts), *map(shape.transitions, (shape.least, shape.most)))
    if shape.asked:
        row = {"question": _number(1, shape.asked), "panel": _or_null(_number(1, shape.most))}
        fields["coverage"] = _list(_object(row), shape.asked, shape.asked)
    return _object(fields)


def fixes_schema(form: Mapping[str, Any]) -> Json:
    """Return the form of a repair of a plan of `form`: paths, and for each the new value."""
    lists = [rule for rule in _fields(form) if rule["type"] == "array"]
    of_panels = [rule for rule in _fields(form["properties"]["panels"]["items"]) if rule.get("type") == "array"]
    objects = [rule["items"] for rule in (*lists, *of_panels) if rule["items"]["type"] == "object"]
    small = [_list(rule, 0, 16) for rule in objects if "prompt" not in rule["properties"]]
    plain = [_text(600), {"type": "integer"}, {"type": "null"}, _list(_text(300), 0, 16)]
    fix = {"path": _text(80, 1), "value": {"anyOf": [*plain, *objects, *small]}}
    return _object({"fixes": _list(_object(fix), 0, 40)})


def _fields(rule: Mapping[str, Any]) -> list[Json]:
    return list(rule["properties"].values())


def within(value: Any, rule: Mapping[str, Any]) -> Any:
    """Return `value` without the fields that `rule`, a part of a form, has not got."""
    if rule.get("type") == "object" and isinstance(value, Mapping):
        return {name: within(value[name], part) for name, part in rule["properties"].items() if name in value}
    if rule.get("type") == "array" and isinstance(value, list):
        return [within(one, rule["items"]) for one in value]
    return value


# What was written.


class _Written(BaseModel):
    model_config = ConfigDict(extra="ignore")


class DraftCharacter(_Written):
    """A character as the model describes it: by name or label, and as the story calls them."""

    name: str
    in_text: str = ""
    kind: str = ""
    appearance: str = ""


class DraftPanel(_Written):
    """A panel as the model describes it; what a switch turned off is left out."""

    prompt: str
    must_show: list[str] = []
    first_sentence: int | None = None
    place: str = ""
    time_of_day: str = ""
    light: str = ""
    links: list[Link] = []
    shot_size: str = ""
    shot_angle: str = ""
    camera: str = ""
    characters: list[str] = []
    state: list[Seen] = []
    gaze: list[Gaze] = []
    contacts: list[str] = []
    causes_next: str = ""

    @property
    def seen(self) -> str:
        """Everything that the panel is told to show."""
        looks = [f"{one.name} {one.state}" for one in self.state]
        return " ".join(
            (self.prompt, *self.must_show, *self.contacts, *looks, self.light, self.place, self.causes_next)
        )


class DraftQuestion(_Written):
    """A question of a transition."""

    dimension: Dimension
    question: str
    answer: str
    accepted: list[str] = []


class DraftTransition(_Written):
    """The six fields of a transition, how it is seen, and its questions."""

    transition_type: TransitionType
    action: str = ""
    causality: str = ""
    intention: str | None = None
    emotion: str | None = None
    consequence: str = ""
    moral_target: str | None = None
    device: str = ""
    shown: str = ""
    questions: list[DraftQuestion] = []


class Covered(_Written):
    """In which panel, from 1, the answer to a question is seen."""

    question: int
    panel: int | None = None


class PlanDraft(_Written):
    """The whole reply."""

    tells_events: bool = True
    cast: list[DraftCharacter] = []
    props: list[Prop] = []
    visual: Visual = Visual()
    panels: list[DraftPanel] = []
    transitions: list[DraftTransition] = []
    coverage: list[Covered] = []


@dataclass(frozen=True)
class FieldProblem:
    """What is wrong with a field, and what would be right. soft: the plan can be used as it is."""

    path: str
    said: str
    soft: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.said}" if self.path else self.said


_FENCED = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_TRIES = 8
_KNOWN = frozenset(("tells_events", "panels", "fixes"))


def read_reply(text: str) -> tuple[Json | None, str]:
    """Return the JSON object of a reply, whatever stands around it: thoughts, a sentence, a fence; or what is wrong."""
    bare = without_thoughts(text) or ""
    end = bare.rfind("}") + 1
    starts = (found.start() for found in islice(re.finditer(r"\{", bare), _TRIES))
    wrong = "it holds none"
    for said in (*_FENCED.findall(bare), *(bare[start:end] for start in starts if start < end)):
        try:
            value = loads(said)
        except (ValueError, RecursionError) as error:
            wrong = wrong if wrong != "it holds none" else str(error)
            continue
        if isinstance(value, dict) and _KNOWN & value.keys():
            return value, ""
    return None, f"It is not one whole JSON object: {wrong}."


def read_draft(value: Mapping[str, Any], known: Collection[str] = ()) -> tuple[PlanDraft | None, list[FieldProblem]]:
    """Return a reply as records, its names as the cast has them, or what is missing or of another kind.

    known: the names of the cast so far.
    """
    try:
        draft = PlanDraft.model_validate(_without_nulls(value))
    except ValidationError as error:
        return None, [FieldProblem(_path(item["loc"]), f"{item['msg']}.") for item in error.errors()]
    names = {_bare(name): name for name in (*known, *(one.name for one in draft.cast))}
    props = {_bare(prop.name) for prop in draft.props} - names.keys()
    for panel in draft.panels:
        told = (names.get(_bare(name), name) for name in panel.characters if _bare(name) not in props)
        panel.characters = list(dict.fromkeys(told))
        for one in panel.state:
            one.name = names.get(_bare(one.name), one.name)
        for look in panel.gaze:
            look.who = names.get(_bare(look.who), look.who)
    return draft, []


def _without_nulls(value: Any) -> Any:
    """Return what is null is what the field is without a value."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value if one is not None] if isinstance(value, list) else value


def _path(steps: Iterable[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")


def _bare(name: str) -> str:
    return ARTICLE.sub("", name.strip()).casefold()


# What is wrong with it.

_SIGN = re.compile(
    r"\b(?i:sign|banner|label|poster|page|caption|subtitle|balloon|bubble)s? (?i:that |which )?"
    r"(?i:says?|reads?|saying|reading):? [\"'\u2018\u201cA-Z]"
    r"|\bwith the (?:text|words?|caption):? [\"'\u2018\u201c]"
)
_STEM = 5
_EMPTY_WORDS = frozenset((
    *("the", "and", "for", "with", "from", "that", "this", "then", "there", "their", "they", "them", "her", "his"),
    *("its", "are", "has", "was", "who", "what", "when", "where", "which", "while", "into", "over", "under", "still"),
    *("only", "frame", "frames", "panel", "panels", "picture", "viewer", "earlier", "later", "first", "second", "same"),
))  # fmt: skip
_LEAST_SHARE = 0.25
"""Of the words of how a change is seen, those that its two panels have to have."""


def draft_problems(
    draft: PlanDraft, shape: PlanShape, parts: Collection[str], known: Collection[str] = ()
) -> Iterator[FieldProblem]:
    """Yield what is wrong with a draft, a sentence each that says what would be right. known: the cast so far."""
    count, transitions = len(draft.panels), len(draft.transitions)
    if not shape.least <= count <= shape.most:
        wanted = f"{shape.least}" if shape.least == shape.most else f"{shape.least} to {shape.most}"
        yield FieldProblem("panels", f"there are {count}; there must be {wanted}.")
    if transitions != shape.transitions(count):
        said = f"there are {transitions}; {count} panels have {shape.transitions(count)}, one from each to the next"
        yield FieldProblem("transitions", f"{said}{', the first from the part before' if shape.joined else ''}.")
    yield from _order(draft, shape)
    names = [one.name for one in draft.cast]
    for at, one in enumerate(draft.cast):
        if one.name in names[:at]:
            yield FieldProblem(
                f"cast[{at}].name", f"{one.name!r} is there already; give a label that tells the two apart."
            )
        if not _latin(f"{one.kind} {one.appearance}"):
            yield FieldProblem(f"cast[{at}].appearance", "write kind and appearance in English.")
    for at, panel in enumerate(draft.panels):
        yield from _panel_problems(f"panels[{at}]", panel, {*known, *names} if "sheets" in parts else None)
    for at, (before, after) in enumerate(pairwise(draft.panels)):
        if before.prompt.split() == after.prompt.split():
            yield FieldProblem(
                f"panels[{at + 1}].prompt", "it is the one before again; show another moment.", soft=True
            )
    if "visual" in parts:
        yield from _unseen(draft, shape)


def _order(draft: PlanDraft, shape: PlanShape) -> Iterator[FieldProblem]:
    """Check that the panels follow the text, unless they follow the time that it tells of."""
    if shape.sentences is None:
        return
    first, last = shape.sentences
    before = first
    for at, panel in enumerate(draft.panels):
        number, path = panel.first_sentence, f"panels[{at}].first_sentence"
        if number is None or not first <= number <= last:
            yield FieldProblem(path, f"give the number of a sentence, from {first} to {last}.")
        elif number < before and draft.visual.order != "time":
            said = f"{number} is before the {before} of the panel before it; the numbers rise"
            yield FieldProblem(path, f'{said} unless visual.order is "time".')
        else:
            before = number


def _panel_problems(where: str, panel: DraftPanel, names: Collection[str] | None) -> Iterator[FieldProblem]:
    if not panel.prompt.strip():
        yield FieldProblem(f"{where}.prompt", "it is empty; say what is seen.")
    if not _latin(panel.prompt):
        yield FieldProblem(f"{where}.prompt", "write it in English.")
    if _SIGN.search(panel.prompt):
        yield FieldProblem(
            f"{where}.prompt", "it asks for words in the picture; show a thing or a pictured word instead."
        )
    if not any(item.strip() for item in panel.must_show):
        yield FieldProblem(
            f"{where}.must_show", "it is empty; name two to five things that have to be seen.", soft=True
        )
    strangers = [name for name in panel.characters if names is not None and name not in names]
    if strangers:
        said = f"{strangers[0]!r} is not in the cast; use one of {', '.join(sorted(names or ()))}, or add to the cast."
        yield FieldProblem(f"{where}.characters", said)


def _unseen(draft: PlanDraft, shape: PlanShape) -> Iterator[FieldProblem]:
    """Check, generously and by words alone, that panels hold what their changes are to be seen by."""
    known = _stems(" ".join([*(f"{one.name} {one.kind}" for one in draft.cast), *(one.name for one in draft.props)]))
    for at, panel in enumerate(draft.panels if not shape.joined else []):
        told = known | _stems(" ".join((panel.prompt, *panel.must_show)))
        for field, listed in (("state", [one.name for one in panel.state]), ("gaze", [one.who for one in panel.gaze])):
            stray = next((name for name in listed if _stems(name) and not _stems(name) & told), None)
            if stray is not None:
                said = f"{stray!r} is neither in the cast, nor among the props, nor in the prompt."
                yield FieldProblem(f"panels[{at}].{field}", said, soft=True)
    for at, (one, two) in enumerate(pairwise(draft.panels)):
        passed = one.time_of_day != two.time_of_day and "unclear" not in (one.time_of_day, two.time_of_day)
        if passed and one.light and one.light.casefold() == two.light.casefold():
            said = f"it is the light of the panel before, but {one.time_of_day} has become {two.time_of_day}."
            yield FieldProblem(f"panels[{at + 1}].light", f"{said} Give each its own sky.", soft=True)
    pivot, before = _stems(draft.visual.pivot), " ".join(panel.seen for panel in draft.panels[:-1])
    if pivot and len(draft.panels) > 2 and not shape.joined and not pivot & _stems(before):
        said = f"{draft.visual.pivot!r} is seen in no panel before the last"
        yield FieldProblem(
            "visual.pivot", f"{said}; add it to must_show of an earlier one, or name another.", soft=True
        )
    for at, change in enumerate(draft.transitions):
        panels = draft.panels[max(0, at - shape.joined) : at - shape.joined + 2]
        yield from _by_no_means(f"transitions[{at}]", change, " ".join(panel.seen for panel in panels))


def _by_no_means(where: str, change: DraftTransition, seen: str) -> Iterator[FieldProblem]:
    """Check that a change has a means, and that the words of how it is seen are in its panels."""
    if change.device.strip().lower() not in DEVICES:
        yield FieldProblem(f"{where}.device", f"{change.device!r} is none of: {', '.join(DEVICES)}.", soft=True)
    words = _stems(change.shown)
    if not words:
        yield FieldProblem(f"{where}.shown", "it is empty; say what in the two panels lets a viewer see it.", soft=True)
    elif len(words & _stems(seen)) < _LEAST_SHARE * len(words):
        said = "what it speaks of is in neither panel"
        yield FieldProblem(f"{where}.shown", f"{said}; put those things into their must_show and prompt.", soft=True)


def _stems(text: str) -> set[str]:
    words = {word.lower() for word in WORD.findall(text)}
    return {word[:_STEM] for word in words if len(word) > 2 and word not in _EMPTY_WORDS}


def _latin(text: str) -> bool:
    """Return whether most letters are Latin: a prompt in another script was not translated."""
    letters = [letter for letter in text if letter.isalpha()]
    return not letters or sum(letter.isascii() for letter in letters) >= 0.7 * len(letters)


# A repair by fields.

_STEP = re.compile(r"(?:^|\.)([A-Za-z_]{1,40})|\[(\d{1,4})\]")
_KINDS: Mapping[str, type | tuple[type, ...]] = {"string": str, "array": list, "object": dict, "boolean": bool}


def mended(value: Mapping[str, Any], fixes: object, form: Mapping[str, Any]) -> tuple[Json, list[FieldProblem]]:
    """Return a copy of `value` with `fixes` (a list of path and value), and why some of them could not be made.

    A path leads by `form`. The position after the last adds to a list, and null takes an item of it away, after
    everything else was done.
    """
    made, wrong = copy.deepcopy(dict(value)), list[FieldProblem]()
    gone: dict[tuple[int, int], list[Any]] = {}
    for fix in fixes if isinstance(fixes, list) else []:
        path, new = (fix.get("path"), fix.get("value")) if isinstance(fix, Mapping) else (None, None)
        steps = _steps(path) if isinstance(path, str) else []
        rule, place = _led(form, made, steps[:-1])
        last = steps[-1] if steps else None
        if isinstance(last, int) and isinstance(place, list) and last <= len(place):
            rule = rule.get("items", {})
            if new is None and last < len(place):
                gone[id(place), last] = place
                continue
            fits = new is not None and _fits(new, rule)
        else:
            known = isinstance(last, str) and isinstance(place, dict) and last in rule.get("properties", {})
            rule = rule["properties"][last] if known else {}
            fits = known and _fits(new, rule)
        if not fits or place is None or last is None:
            said = f"this takes {_said(rule)}" if rule else "no field has this path"
            wrong.append(FieldProblem(str(path)[:80], f"{said}; nothing was changed.", soft=True))
        elif isinstance(last, int) and last == len(place):
            place.append(copy.deepcopy(new))
        else:
            place[last] = copy.deepcopy(new)
    for (_, at), place in sorted(gone.items(), key=lambda item: -item[0][1]):
        del place[at]
    return made, wrong


def _steps(path: str) -> list[str | int]:
    """Return the names and positions of a path; nothing where it is none."""
    steps, at = list[str | int](), 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            return []
        steps.append(found[1] or int(found[2]))
        at = found.end()
    return steps


def _led(rule: Mapping[str, Any], place: Any, steps: Sequence[str | int]) -> tuple[Mapping[str, Any], Any]:
    """Return the rule and the value that `steps` lead to; nothing where they lead nowhere."""
    for step in steps:
        inner = rule.get("items") if isinstance(step, int) else rule.get("properties", {}).get(step)
        there = isinstance(place, list) and step < len(place) if isinstance(step, int) else isinstance(place, dict)
        if inner is None or not there or (isinstance(step, str) and step not in place):
            return {}, None
        rule, place = inner, place[step]
    return rule, place


def _fits(value: Any, rule: Mapping[str, Any]) -> bool:
    """Return whether a value is of the kind that a rule wants; null stands for a text that there is none of."""
    if "anyOf" in rule:
        return any(_fits(value, one) for one in rule["anyOf"])
    kind = rule["type"]
    if kind == "array":
        return isinstance(value, list) and all(_fits(one, rule["items"]) for one in value)
    if kind == "object":
        known = rule["properties"]
        return isinstance(value, dict) and all(_fits(one, known[name]) for name, one in value.items() if name in known)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind in ("null", "string") and value is None:
        return True
    return isinstance(value, _KINDS.get(kind, ())) and value in rule.get("enum", [value])


def _said(rule: Mapping[str, Any]) -> str:
    """Return in words what a rule wants."""
    if "anyOf" in rule:
        return " or ".join(_said(one) for one in rule["anyOf"])
    if "enum" in rule:
        return f"one of: {', '.join(rule['enum'])}"
    names = {"string": "a text", "integer": "a whole number", "boolean": "true or false", "null": "null"}
    if rule["type"] == "array":
        return f"a list, each item {_said(rule['items'])}"
    return names.get(rule["type"]) or f"an object with {', '.join(rule.get('properties', {}))}"
