"""A panel's prompt after a field of it, or of somebody in it, has changed: its words are what is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from katha.agents.editor.edits import ChangeCharacter, PanelWords
from katha.schema import Character, Panel
from katha_sketch.english import read_story

WORDS = tuple(name for name in PanelWords.model_fields if name != "prompt")
_ALWAYS = frozenset(Character.model_fields)
SETTING = ("place", "time_of_day", "shot_size", "shot_angle")
_SENTENCE = re.compile(r"[^.!?]+[.!?]+\s*")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_LEADS = re.compile(r"^(?:in|on|at|by|inside|outside|near|under|behind|beside)\b", re.IGNORECASE)
_CLOSE = re.compile(r"\b(close)-(?=up\b)", re.IGNORECASE)
_SHOT = re.compile(
    r"\b(?:close[- ]?up|(?:wide|medium|long|full|close|establishing)[- ]shot|(?:low|high|eye)[- ](?:angle|level))\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"(?:^|,? )(?:by|at|in the|before|after|around) "
    r"(?P<time>day|night|dawn|dusk|morning|noon|midday|afternoon|evening|sunset|sunrise|midnight|twilight)\b",
    re.IGNORECASE,
)
_LIVING = ("person", "animal", "being", "group")


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def listed(value: object) -> object:
    """Return a tuple as the list that a record has in its place."""
    return list(value) if isinstance(value, tuple) else value


def reworded(panel: Panel, edit: PanelWords) -> Panel:
    """Return `panel` with what the edit says; a new place, time or shot goes into a prompt that is not new itself."""
    told = {name: value for name in WORDS if (value := listed(getattr(edit, name))) is not None}
    prompt = edit.prompt.strip() if edit.prompt is not None else panel.prompt
    if prompt == panel.prompt:
        changed = {name: str(told[name]) for name in SETTING if name in told and told[name] != getattr(panel, name)}
        prompt = resettled(panel, changed)
    return panel.model_copy(update={**told, "prompt": prompt})


def resettled(panel: Panel, changed: Mapping[str, str]) -> str:
    """Return the panel's prompt in another place, at another time or in another shot."""
    prompt, left = panel.prompt, dict(changed)
    for name, new in changed.items():
        old = str(getattr(panel, name))
        if old and new and not _LEADS.match(new) and re.search(rf"\b{re.escape(old)}\b", prompt, re.IGNORECASE):
            bare = _ARTICLE.sub("", new)
            prompt = swapped(prompt, old, (new if bare != new else f"the {new}") if _ARTICLE.match(old) else bare)
            del left[name]
    if not left:
        return prompt
    leads: list[str] = []
    while (found := _SENTENCE.match(prompt)) is not None and found.end() < len(prompt) and _sets(found[0]):
        leads.append(found[0].strip())
        prompt = prompt[found.end() :]
    shot = ", ".join(left[name] for name in ("shot_size", "shot_angle") if left.get(name))
    shot = _CLOSE.sub(r"\1 ", shot)  # with a hyphen, at the head of a sentence, it is read as somebody's name
    kept = [lead for lead in leads if not (shot and _SHOT.search(lead))]
    if "place" in left or "time_of_day" in left:
        where = [lead for lead in kept if not _SHOT.search(lead)]
        kept = [lead for lead in kept if lead not in where]
        kept.append(_where(left, " ".join(where)))
    return " ".join(part for part in (_sentence(shot), *kept, prompt) if part)


@dataclass(frozen=True)
class _Lead:
    """A sentence that says where and when, with its preposition: "In the kitchen", "night"."""

    place: str
    time: str


def _lead(text: str) -> _Lead:
    """What of where and when stands in such a sentence; empty words where it says neither."""
    told = text.strip().rstrip(".!?")
    time = _TIME.search(told)
    place = (_TIME.sub("", told) if time is not None else told).strip(" ,")
    return _Lead(place if _LEADS.match(place) else "", time["time"].lower() if time is not None else "")


def _sets(text: str) -> bool:
    """Whether a sentence says where, when or how near, and nothing else."""
    if _SHOT.search(text):
        return not read_story(text).events
    found = _lead(text)
    if not found.place and not found.time:
        return False
    reading = read_story(text)
    return not reading.events and not any(one.kind in _LIVING for one in reading.entities)


def _where(changed: Mapping[str, str], old: str) -> str:
    lead = _lead(old)
    place = changed.get("place", lead.place).replace("_", " ").strip()
    time = changed.get("time_of_day", lead.time).replace("_", " ").strip()
    if place and not _LEADS.match(place):
        place = f"in {place}" if _ARTICLE.match(place) else f"in the {place}"
    return _sentence(" ".join(part for part in (place, f"by {time}" if time else "") if part))


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def redressed(prompt: str, old: Character, new: Character) -> str:
    """Return a prompt in which a character is what it is now and looks as it looks now."""
    look = _ARTICLE.sub("", old.appearance).strip()
    dress = _ARTICLE.sub("", new.appearance).strip()
    if look and look != old.kind and re.search(rf"\b{re.escape(look)}\b", prompt, re.IGNORECASE):
        return swapped(prompt, look, dress or new.kind)
    text, who = recalled(prompt, old, new), called(new)
    if dress and new.kind and new.appearance != old.appearance and dress != who:
        text = re.sub(
            rf"\b{re.escape(who)}\b",
            lambda _: dress if new.kind.lower() in dress.lower() else f"{who} with {new.appearance}",
            text,
            count=1,
            flags=re.IGNORECASE,
        )
    return text


def recast(old: Character, edit: ChangeCharacter) -> Character:
    """Return a character with what the edit says of it; its look and its portrait's words follow."""
    fields = ("kind", "age", "color", "appearance", "anchor_prompt", "reference")
    told = {name: " ".join(value.split()) for name in fields if (value := getattr(edit, name)) is not None}
    if not told.get("kind", True):
        del told["kind"]  # everybody is something
    given = {**old.model_dump(), **told, "name": (edit.new_name or "").strip() or old.name}
    new = Character.model_validate({key: value for key, value in given.items() if value or key in _ALWAYS})
    look = recalled(old.appearance, old, new) if edit.appearance is None else _outfitted(new)
    alone = recalled(old.anchor_prompt, old, new) if edit.anchor_prompt is None else new.anchor_prompt
    return new.model_copy(update={"appearance": look, "anchor_prompt": alone})


def _outfitted(character: Character) -> str:
    """A look that a person wrote, with the age and the colour that it does not say itself."""
    told, look = character.model_extra or {}, character.appearance
    said = {word.lower() for word in re.findall(r"[\w-]+", look)}
    parts = [str(part) for name in ("age", "color") if (part := told.get(name)) and str(part).lower() not in said]
    return _put(look, character.kind, " ".join((*parts, character.kind)))


def called(character: Character) -> str:
    """Return a character's kind with its age and colour: "old red lion"."""
    told = character.model_extra or {}
    return " ".join(str(part) for part in (told.get("age"), told.get("color"), character.kind) if part)


def recalled(text: str, old: Character, new: Character) -> str:
    """Return `text` in which what a character is, its age and its colour are those of now, also in the plural."""
    return _put(text, called(old), called(new), ending=r"(?:e?s)?")


def swapped(text: str, old: str, new: str) -> str:
    """Return `text` with another word in the place of `old`."""
    return _put(text, old, new)


def _put(text: str, old: str, new: str, ending: str = "") -> str:
    if not old or old == new:
        return text

    def put(found: re.Match[str]) -> str:
        article = found[1] or ""
        if article.strip().lower() in ("a", "an"):
            right = "an" if new[:1].lower() in tuple("aeiou") else "a"
            article = (right.capitalize() if article[0].isupper() else right) + article.lstrip("aAnN")
        begins = found[0][len(found[1] or "") :][:1]
        raised = begins.isupper() and old[:1].islower()
        return f"{article}{new[:1].upper() + new[1:] if raised else new}{found[2]}"

    return re.sub(rf"(\ban?\s+)?\b{re.escape(old)}({ending})\b", put, text, flags=re.IGNORECASE)
