"""What a frame's fields say, in parts that can be kept or left out one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from katha.composing.families import PromptFamily, composing_data
from katha.composing.words import (
    ARTICLE,
    WORD,
    aimed,
    alone,
    clean,
    content,
    distinct,
    inner,
    label,
    named_in,
    of_one,
    said,
    sentences_of,
    standing,
    taken_off,
    told_of,
    within,
    without,
)
from katha.protocols import FrameRequest
from katha.schema import Character, Gaze, Prop, Seen
from katha.shots import offered, worded_shot

_HEAD_WORDS = 6
_SPLIT = re.compile(r" (?=(?:with|wearing|dressed|who|whose)\b)")
_REFERS = re.compile(
    r"\s*\b(?:as )?(?:in |of |from )?(?:frame|panel|picture|scene|shot)\s*\d+|\s*\bas (?:in )?\d+", re.IGNORECASE
)
_PLACED = re.compile(r"^(?:in|at|on)\s+(?=(?:the|an?|my|our|his|her|their|its)\b)", re.IGNORECASE)
_SAME = re.compile(r"^(?:the )?same\s+", re.IGNORECASE)
_SAME_AS = re.compile(r"^the same\s+", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_GROUPS = {"contact": "contacts", "place": "setting", "time": "setting", "light": "setting", "weather": "setting"}
_GROUPS |= {"shot": "shot", "angle": "shot", "camera": "shot"}


@dataclass(frozen=True)
class PromptPart:
    """A piece of a prompt: its kind (`ranks` of the data file), its words, the group and the line that it stands in,
    and what joins it to the words before it there. A part that is joined by a blank cannot stand without those."""

    kind: str
    text: str
    group: str
    line: str = ""
    glue: str = ", "
    depth: int = 0

    @property
    def about(self) -> str:
        """Return what it is, for people: "light", "details of looks"."""
        return composing_data().about[self.kind]


def parts_of(request: FrameRequest, family: PromptFamily) -> list[PromptPart]:
    """Return everything that `request` says, in the order of lines and words; nothing that its sentences say already
    is said again, but for what tells its people apart."""
    told = [PromptPart("act", text, "act", depth=at) for at, text in enumerate(sentences_of(request.prompt))]
    act = " ".join(part.text for part in told)
    seen = _visible(request, act)
    return [
        *told,
        *_cast(request, family, act),
        *_things(request, act, seen),
        *(PromptPart("contact", inner(of_one(item)), "contacts") for item in _unsaid(request.contacts, act)),
        *(PromptPart("visible", item, "visible") for item in seen),
        *_setting(request, act),
        *_shot(request, act),
        *([PromptPart("style", style, "style")] if (style := clean(request.style).strip(" .,;")) else []),
    ]


def _unsaid(items: Sequence[str], text: str) -> list[str]:
    plain = (clean(item).strip(" .,;:!?") for item in items)
    return [item for item in distinct(plain) if content(item) and not said(item, text)]


def _visible(request: FrameRequest, act: str) -> list[str]:
    """Return what has to be seen and is in no sentence, nor a name of the cast."""
    names = " ".join(one.name for one in request.characters)
    moods = " ".join(one.mood for one in request.state)
    items = [item for item in _unsaid(request.must_show, act) if not said(item, f"{act} {names} {moods}")]
    people = [(one.name, f"{one.kind} {one.appearance}") for one in request.characters]
    return [inner(named_in(item, people)) for item in items]


def _key(name: str) -> str:
    return label(name).lower()


def _about(states: Sequence[Seen], name: str) -> list[Seen]:
    return [one for one in states if _key(one.name) == _key(name)]


def _cast(request: FrameRequest, family: PromptFamily, act: str) -> Iterator[PromptPart]:
    """Each cast member once: its look, its state and mood in this frame, and where it looks."""
    shown = {name for name, _ in request.pictures} if family.references else set()
    known: set[str] = set()
    for one in request.characters:
        if _key(one.name) in known:
            continue
        known.add(_key(one.name))
        who, states = label(one.name), _about(request.state, one.name)
        gone = taken_off(" , ".join(seen.state for seen in states))
        look = [] if one.name in shown else _worn(_look(one, who, act), gone)
        for depth, (glue, text) in enumerate(look):
            yield PromptPart("look" if depth else "cast", text, "cast", who, glue, depth)
        had = " ".join(text for _, text in look)
        for kind, texts in (("state", [seen.state for seen in states]), ("mood", [seen.mood for seen in states])):
            fresh = [", ".join(item for item in told_of(given, one.name) if _new(item, had)) for given in texts]
            new = list(dict.fromkeys(text for text in fresh if text))
            yield from (PromptPart(kind, text, "cast", who, depth=at) for at, text in enumerate(new))
            had = " ".join([had, *new])
        yield from (PromptPart("gaze", text, "cast", who) for text in _gazes(request, one.name))


def _worn(look: list[tuple[str, str]], gone: frozenset[str]) -> list[tuple[str, str]]:
    """Return a look without what a state says is not worn now: "orange overalls and orange cap" of who is capless."""
    return [*look[:1], *((glue, text) for glue, told in look[1:] if (text := without(told, gone)))]


def _new(text: str, had: str) -> bool:
    return text.lower() not in composing_data().unknown and not said(text, had)


def _gazes(request: FrameRequest, name: str) -> list[str]:
    names = {_key(one.name): one.name for one in request.characters}
    return [text for gaze in request.gaze if _key(gaze.who) == _key(name) and (text := _gaze(gaze, names))]


def _gaze(gaze: Gaze, names: dict[str, str]) -> str:
    """Return where a character looks, as a phrase without a finite verb: "looking at the window"."""
    (at, more), (away, _) = (_aim(text, names) for text in (gaze.at, gaze.not_at))
    if not at:
        return f"not looking {away}" if away else ""
    data = composing_data()
    manner = [item for item in more if item.split(" ")[0].lower() in data.ways | data.manners]
    first = [item for item in manner if at.startswith("at ") and item.split(" ")[0].lower() in data.ways]
    last = [item for item in manner if item not in first]
    rest = [item for item in more if item not in manner]
    return ", ".join([" ".join(["looking", *first, at, *last]), *([f"not {away}"] if away else []), *rest])


def _aim(text: str, names: dict[str, str]) -> tuple[str, list[str]]:
    """Return what is looked at, and what is said beside it: "the clerk, pleading"."""
    told = alone(text)
    return (_aimed(told[0], names), told[1:]) if told else ("", [])


def _aimed(aim: str, names: dict[str, str]) -> str:
    return aimed(within(aim) if _key(aim) in names else aim)


def _look(one: Character, who: str, act: str) -> list[tuple[str, str]]:
    """A look in phrases, each with what joins it to the one before; nothing where the sentences have it whole. The
    first says what kind of being it is, as models know no names."""
    whole = ARTICLE.sub("", clean(one.appearance).strip(" .,;"))
    if whole and re.search(rf"\b{re.escape(whole)}\b", act, re.IGNORECASE):
        return []
    kind = ARTICLE.sub("", clean(one.kind).strip(" .,;:"))
    found = _merged([_SAME_AS.sub("", text) for text in told_of(one.appearance, one.name)], kind)
    if found and said(found[0], who):
        found = found[1:]
    named = bool(found) and _says(found[0], kind)
    if kind and not named and not said(kind, f"{who} {' '.join(found)}"):
        found[:1] = [", ".join([kind, *found[:1]])]
    if not found:
        return []
    head, *more = found
    return [*_halves(head), *((", ", text) for text in more)]


def _merged(found: list[str], kind: str) -> list[str]:
    """Phrases whose first is whole: the adjectives of "a tall, thin man" go with what they are of."""
    for at, text in enumerate(found):
        if _says(text, kind):
            short = all(len(item.split()) <= 3 for item in found[:at])
            return [", ".join(found[: at + 1]), *found[at + 1 :]] if at and short else found
    return found


def _says(text: str, kind: str) -> bool:
    """Return whether a phrase says of what kind a person is: "a Norwegian fisherwoman" is a woman."""
    stem, words = content(kind)[-1:], WORD.findall(kind.lower())[-1:]
    return bool(stem) and (
        stem[0] in content(text) or any(word.endswith(words[0]) for word in WORD.findall(text.lower()))
    )


def _halves(head: str) -> list[tuple[str, str]]:
    """The first phrase of a look, in two where it is long: "a tall man" and "with a curled black moustache"."""
    cut = _SPLIT.search(head, 4)
    if len(head.split()) <= _HEAD_WORDS or cut is None:
        return [("", head)]
    return [("", head[: cut.start()].rstrip(",")), (", " if head[cut.start() - 1] == "," else " ", head[cut.end() :])]


def _things(request: FrameRequest, act: str, seen: Sequence[str]) -> Iterator[PromptPart]:
    """Props with their looks and states; and others of whom a state or a gaze is told."""
    names = {_key(one.name): one.name for one in request.characters}
    props = {_key(item.name): item for item in request.props if _key(item.name) not in names}
    others = [one.name for one in (*request.state, *(Seen(name=gaze.who) for gaze in request.gaze))]
    for name in others:
        props.setdefault(_key(name), Prop(name=name))
    for key, item in props.items():
        if key in names or not WORD.search(item.name):
            continue
        who = label(_BRACKETS.sub("", item.name) or item.name)
        new = [one for one in _thing(request, item, who, seen) if _new(one[1], act) or one[0] != "state"]
        for at, (kind, text) in enumerate(new):
            then = kind == "state" and at and new[at - 1][0] == "prop" and "now" not in text.lower().split()
            yield PromptPart(kind, text, "props", who, glue=", now " if then else ", ", depth=at)


def _thing(request: FrameRequest, item: Prop, who: str, seen: Sequence[str]) -> list[tuple[str, str]]:
    """Return kind and text of the parts about one thing: its looks, its states, and where it looks."""
    states = [text for one in _about(request.state, item.name) for text in (one.state, one.mood)]
    looks = [("prop", text) for text in told_of(item.looks, item.name) if not _only(text, who)]
    # A state is said whole or not at all: "all others whole" makes no sense without what stands before it.
    told = [("state", text) for given in states if (text := ", ".join(told_of(given, item.name)))]
    known = " ".join(text for _, text in looks)
    told = [one for one in told if len(content(one[1])) < 2 or not said(one[1], known)]
    told = [one for one in told if not any(said(f"{who} {one[1]}", line) for line in seen)]
    return list(dict.fromkeys([*looks, *told, *(("gaze", text) for text in _gazes(request, item.name))]))


def _only(look: str, who: str) -> bool:
    """Return whether a thing's look is hardly more than its name: "third rung of the ladder" of the third rung."""
    bare = ARTICLE.sub("", who).lower()
    return look.lower().startswith(bare) and len(content(look)) <= len(content(who)) + 1


def _setting(request: FrameRequest, act: str) -> Iterator[PromptPart]:
    unknown = composing_data().unknown
    place = _SAME.sub("", _PLACED.sub("", _REFERS.sub("", clean(request.place)))).strip(" .,;()")
    time, light = clean(request.time_of_day).strip(" .,;"), alone(request.light)
    found = [("place", place), ("time", "" if said(time, " ".join(light)) else time)]
    found += [("light", text) for text in light]
    found += [("weather", worded_shot("weather", request.weather))]
    had = act
    for kind, text in found:
        if text and text.lower() not in unknown and not said(text, had):
            yield PromptPart(kind, text, _GROUPS[kind])
            had = f"{had} {text}"


def _shot(request: FrameRequest, act: str) -> Iterator[PromptPart]:
    given, angle = (clean(text).strip(" .,;") for text in (request.shot_size, request.shot_angle))
    size = given
    if size and len(size.split()) == 1 and size.lower() not in offered("shot_size") and "-" not in size:
        size = f"{size} shot" if not size.lower().endswith("shot") else size
    found = [("shot", worded_shot("shot_size", size)), ("angle", worded_shot("shot_angle", angle))]
    found += [("camera", standing(text)) for text in alone(request.camera)]
    had = act
    for kind, text in found:
        if content(text) and not said(text, had) and not (kind == "shot" and act.lower().startswith(given.lower())):
            yield PromptPart(kind, text, _GROUPS[kind])
            had = f"{had} {text}"


def look_head(one: Character) -> str:
    """Return the first phrase of a look as prompts have it; "" where the name says all of it."""
    return next((text for _, text in _look(one, label(one.name), "")), "")
