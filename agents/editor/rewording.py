"""A panel's prompt after a field of it, or of a character in it, has changed: its words are what is drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from katha.agents.editor.edits import ChangeCharacter, EditedWords
from katha.composing import LOOK_FIELDS, LookField, dressed, says
from katha.configs import load_config
from katha.schema import Character, Panel
from katha.shots import read_shot

WORDS = tuple(name for name in EditedWords.model_fields if name != "prompt")
_ALWAYS = frozenset(Character.model_fields)
SETTING = ("place", "time_of_day", "shot_size", "shot_angle", "weather", "light")
_IN_WORDS = frozenset(SETTING[:4])
"""The fields that a prompt says in words of its own; the others are said where it is drawn."""
_SENTENCE = re.compile(r"[^.!?]+[.!?]+\s*")
_ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
_PLACED = "in|on|at|by|inside|outside|near|under|behind|beside"
_LEADS = re.compile(rf"^(?:{_PLACED})\b", re.IGNORECASE)
_PLACE_ALONE = re.compile(rf"(?:{_PLACED}) (?:the|an?) [\w-]+", re.IGNORECASE)
_AT_A_PLACE = re.compile(r"(?:in|on|at|inside|outside) ((?:the|an?) [\w -]+)", re.IGNORECASE)
_CLOSE = re.compile(r"\b(close)-(?=up\b)", re.IGNORECASE)
_SHOT = re.compile(
    r"\b(?:close[- ]?up|(?:wide|medium|long|full|close|establishing)[- ]shot|(?:low|high|eye)[- ](?:angle|level))\b",
    re.IGNORECASE,
)
_TIMED = "by|at|in the|before|after|around"
_TIMES = "day|night|dawn|dusk|morning|noon|midday|afternoon|evening|sunset|sunrise|midnight|twilight"
_WORD = re.compile(r"[\w'\u2019-]+")
_SMALL = frozenset((*re.split(r"\W", f"{_PLACED}|{_TIMED}|{_TIMES}"), *("a", "an", "of", "from", "over")))
"""The words of a sentence that says where and when, beside those of the place itself."""


def listed(value: object) -> object:
    """Return a tuple as the list that a record has in its place."""
    return list(value) if isinstance(value, tuple) else value


def reworded(panel: Panel, edit: EditedWords) -> Panel:
    """Return `panel` with what the edit says; a new place, time or shot goes into a prompt that is not new itself."""
    told = {name: value for name in WORDS if (value := listed(getattr(edit, name))) is not None}
    prompt = edit.prompt.strip() if edit.prompt is not None else panel.prompt
    if prompt != panel.prompt:
        prompt, shot = spoken(prompt, panel.place)
        prompt, told = prompt or panel.prompt, {**shot, **told}
    if prompt == panel.prompt:
        changed = {name: str(told[name]) for name in SETTING if name in told and told[name] != getattr(panel, name)}
        prompt = resettled(panel, changed)
    return panel.model_copy(update={**told, "prompt": prompt})


def spoken(prompt: str, place: str = "") -> tuple[str, dict[str, Any]]:
    """Return a person's prompt without the words of the camera at its head, and these by their fields.

    place: that of the panel, whose field follows where the first sentence names a known place alone: "On the street."
    """
    plain, shot = read_shot(prompt)
    told: dict[str, Any] = {str(name): value for name, value in shot.items()}
    first = _SENTENCE.match(plain)
    where = _AT_A_PLACE.fullmatch(first[0].strip(" .!?\n")) if first is not None and place else None
    if where is not None and _ARTICLE.sub("", where[1]).lower() in load_config("desk.yaml")["places"]:
        told["place"] = where[1]
    return plain, told


def resettled(panel: Panel, changed: Mapping[str, str]) -> str:
    """Return the panel's prompt in another place, at another time or in another shot."""
    prompt, left = panel.prompt, dict(changed)
    for name, new in changed.items():
        old = str(getattr(panel, name))
        if old and new and not _LEADS.match(new) and re.search(rf"\b{re.escape(old)}\b", prompt, re.IGNORECASE):
            bare = _ARTICLE.sub("", new)
            prompt = swapped(prompt, old, (new if bare != new else f"the {new}") if _ARTICLE.match(old) else bare)
            del left[name]
    if left.keys().isdisjoint(_IN_WORDS):
        return prompt
    shots, settings, prompt = _led(prompt, panel, changed)
    asked = [left[name] for name in ("shot_size", "shot_angle") if left.get(name)]
    if asked:  # a bird's eye in a sentence is a bird: what no prompt of old had is said by its field alone
        shots = [
            _CLOSE.sub(r"\1 ", ", ".join(filter(_SHOT.fullmatch, asked)))
        ]  # with a hyphen, at the head of a sentence, it is read as a name
    if "place" in left or "time_of_day" in left:
        settings = [_where(left, *_place_and_time(settings, panel))]
    return " ".join(part for part in (*map(_sentence, (*shots, *settings)), prompt) if part)


def _led(prompt: str, panel: Panel, changed: Mapping[str, str]) -> tuple[list[str], list[str], str]:
    """Return what the first sentences say of the shot, and of where and when, as far as they say nothing else; and the
    rest of the prompt."""
    new = (changed.get(name, "") for name in ("place", "time_of_day"))
    known = _SMALL.union(_words(" ".join((panel.place, panel.time_of_day, *new))))
    shots: list[str] = []
    settings: list[str] = []
    while (found := _SENTENCE.match(prompt)) is not None and found.end() < len(prompt):
        setting = re.sub(r"^of ", "", _SHOT.sub("", found[0]).strip(" ,;:.!?\n"))
        unknown = [word for word in _words(setting) if word not in known]
        if unknown and (panel.place or not _place_alone(setting, panel)):
            break
        shots += _SHOT.findall(found[0])
        settings += [setting] if setting else []
        prompt = prompt[found.end() :]
    return shots, settings, prompt


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _place_alone(setting: str, panel: Panel) -> bool:
    """Return whether a setting that no field knows has one word for the place, and that is nobody of the cast: "In the
    meadow", "Meadow by day"."""
    place, time = _place_and_time([setting], panel)
    cast = _words(" ".join(panel.characters))
    alone = _PLACE_ALONE.fullmatch(place) is not None or (bool(time) and len(_words(place)) == 1)
    return alone and _words(place)[-1] not in cast


def _place_and_time(settings: Sequence[str], panel: Panel) -> tuple[str, str]:
    """Return where, with its preposition, and when: "In the kitchen", "night"; empty words where they say neither."""
    times = "|".join((*([re.escape(panel.time_of_day)] if panel.time_of_day else []), _TIMES))
    pattern = re.compile(
        rf"(?:(?:^|,? )(?:{_TIMED}) |^|, )(?P<time>{times})(?=$|,| (?:{_PLACED})\b)", re.IGNORECASE
    )  # "in the night market" says no time
    places: list[str] = []
    hours: list[str] = []
    for told in settings:
        hours += [found["time"].lower() for found in pattern.finditer(told)]
        places += [place] if (place := pattern.sub("", told).strip(" ,")) else []
    return next(iter(places), ""), next(iter(hours), "")


def _where(changed: Mapping[str, str], place: str, time: str) -> str:
    place, time = (
        changed.get(name, old).replace("_", " ").strip() for name, old in (("place", place), ("time_of_day", time))
    )
    if "place" in changed and place and not _LEADS.match(place):
        place = f"in {place}" if _ARTICLE.match(place) else f"in the {place}"
    return " ".join(part for part in (place, f"by {time}" if time else "") if part)


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def redressed(prompt: str, old: Character, new: Character) -> str:
    """Return a prompt in which a character is what it is now and looks as it looks now.

    A prompt that calls it by a name of its own has no look put in: whoever draws it knows the look by that name.
    """
    look = _ARTICLE.sub("", old.appearance).strip()
    dress = _ARTICLE.sub("", new.appearance).strip()
    if look and look != old.kind and re.search(rf"\b{re.escape(look)}\b", prompt, re.IGNORECASE):
        return swapped(prompt, look, dress or new.kind)
    text, who = recalled(prompt, old, new), called(new)
    named = old.name[:1].isupper() and re.search(rf"\b{re.escape(old.name)}\b", prompt) is not None
    if dress and new.kind and new.appearance != old.appearance and dress != who and not named:
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
    fields = ("kind", "age", "color", *LOOK_FIELDS, "appearance", "anchor_prompt", "reference")
    told = {name: " ".join(value.split()) for name in fields if (value := getattr(edit, name)) is not None}
    if not told.get("kind", True):
        del told["kind"]  # everybody is something
    told |= dict.fromkeys(_overwritten(old, told), "")
    given = {**old.model_dump(), **told, "name": (edit.new_name or "").strip() or old.name}
    new = Character.model_validate({key: value for key, value in given.items() if value or key in _ALWAYS})
    look = recalled(old.appearance, old, new) if edit.appearance is None else _outfitted(new)
    alone = recalled(old.anchor_prompt, old, new) if edit.anchor_prompt is None else new.anchor_prompt
    worn = _worn(new, told, whole=edit.appearance is not None)
    if worn and look.casefold() == new.kind.casefold():
        look = f"{'an' if look[:1].lower() in tuple('aeiou') else 'a'} {called(new)}"
    before, look = look, dressed(look, worn, new.kind)
    if worn and edit.anchor_prompt is None and alone:
        alone = _outfitted_alone(alone, before, look, worn, new.kind)
    return _relooked(old, new.model_copy(update={"appearance": look, "anchor_prompt": alone}))


def _worn(new: Character, told: Mapping[str, str], *, whole: bool) -> dict[LookField, str]:
    """The words that a look is to have of its fields now. told: what an edit changed; whole: the look itself, too."""
    sheet = new.model_extra or {}
    return {
        name: str(sheet.get(name, ""))
        for name in LOOK_FIELDS
        if (sheet.get(name) and (name in told or whole)) or (name in told and not whole)
    }


def _relooked(old: Character, new: Character) -> Character:
    """A character with the look that a cast sheet was drawn from, where it has another now."""
    first = str((old.model_extra or {}).get("first_look") or old.appearance)
    told = {**new.model_dump(), "first_look": first}
    if first in ("", new.appearance):
        del told["first_look"]
    return Character.model_validate(told)


def _outfitted_alone(alone: str, before: str, look: str, worn: Mapping[LookField, str], kind: str) -> str:
    """A portrait's words with a new look: in the place of the old one, or field by field where they do not say that."""
    if before and before.casefold() in alone.casefold():
        return swapped(alone, before, look)
    plain = alone.rstrip(". ")
    return f"{dressed(plain, worn, kind)}{alone[len(plain) :]}"


def _overwritten(old: Character, told: Mapping[str, str]) -> list[str]:
    """The fields of a look that a new look says otherwise: they go."""
    look = told.get("appearance", "")
    sheet = old.model_extra or {}
    return [
        name for name in LOOK_FIELDS if name not in told and sheet.get(name) and look and says(look, name, old.kind)
    ]


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


def renamed(text: str, old: str, new: str) -> str:
    """Return `text` in which a character named `old` is `new`: "Mia sleeps" is "The lion sleeps"."""
    if old[:1].islower() or not re.search(rf"\b{re.escape(old)}\b", text):
        return text
    said = re.sub(rf"\b{re.escape(old)}\b", f"the {new}" if new[:1].islower() else new, text)
    return re.sub(r"(?:^|[.!?]\s+)the\b", lambda found: f"{found[0][:-3]}The", said)


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
