"""What a prompt already says, and what an annotation adds to it: deeds, feelings, things that must be visible."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from katha.language import SceneReading, load_vocabulary, read_phrase, read_scene
from katha.planners.fitting import as_sentence
from katha.schema import Scene

__all__ = ["Feeling", "covered", "feeler", "feeling_in", "feeling_of", "named", "read_deed", "worded"]

_LONGEST_MOOD = 3
_STEM = 5
_WORD = re.compile(r"[^\W\d_]+")
_SMALL = frozenset(("a", "an", "the", "of", "in", "on", "at", "with", "and", "over", "to", "is", "are", "by"))
_ARTICLE = re.compile(r"^(?:the|a|an)\s+", re.IGNORECASE)


@dataclass(frozen=True)
class Feeling:
    """Who feels what, as one sentence. `who` and `emotion` are concept ids, None where the vocabulary knows neither."""

    who: str | None
    emotion: str | None
    sentence: str


def named(name: str) -> str:
    """A character inside a sentence: proper names as they are, all others with their article ("the old woman")."""
    bare = _ARTICLE.sub("", name.strip())
    return bare if bare[:1].isupper() else f"the {bare}"


def covered(item: str, text: str) -> bool:
    """Whether `text` already says `item`: literally, or every concept that the vocabulary finds in it."""
    if re.search(rf"\b{re.escape(item.strip(' .').lower())}\b", text.lower()):
        return True
    wanted, reading = read_scene(item), read_scene(text)
    known = bool(wanted.actors or wanted.props or wanted.setting)
    return known and not wanted.unread and _holds(wanted, reading)


def worded(item: str, text: str) -> bool:
    """Whether `text` has every content word of `item`, whatever their endings."""
    words = [word for word in _WORD.findall(item.lower()) if word not in _SMALL]
    told = {word[:_STEM] for word in _WORD.findall(text.lower())}
    return all(word[:_STEM] in told for word in words)


def _holds(wanted: SceneReading, reading: SceneReading) -> bool:
    """Whether everything of `wanted` is in `reading`: who, doing and feeling what, which things, where."""
    actors = {actor.concept for actor in reading.actors}
    deeds = {(actor.concept, actor.action) for actor in reading.actors}
    felt = {(actor.concept, actor.emotion) for actor in reading.actors}
    things = {*reading.props, *(prop for actor in reading.actors for prop in actor.carries)}
    return (
        all(actor.concept in actors for actor in wanted.actors)
        and all(actor.action is None or (actor.concept, actor.action) in deeds for actor in wanted.actors)
        and all(actor.emotion is None or (actor.concept, actor.emotion) in felt for actor in wanted.actors)
        and {*wanted.props, *(prop for actor in wanted.actors for prop in actor.carries)} <= things
        and wanted.setting in {None, reading.setting}
    )


def read_deed(action: str, characters: Sequence[str]) -> str:
    """An action as a clause with its doer ("hugs the mouse" of the lion: "the lion hugs the mouse"); may be empty."""
    text = action.strip()
    claims = read_phrase(text).events
    if not text or not characters or not claims or claims[0].actor is not None:
        return text
    return f"{named(characters[0])} {text}"


def feeling_of(text: str, *, after: bool, who: Sequence[str] = ()) -> Feeling | None:
    """The feeling in an annotation: after the change that it tells of, or before it; None where it has none.

    who: the name of whoever feels it where the text names nobody.
    """
    clean = text.strip()
    reading = read_phrase(clean)
    vocabulary = load_vocabulary()
    found = reading.concepts.get("emotion", ())
    change = reading.change or (None, found[-1] if found else vocabulary.find(clean.lower(), "emotion"))
    emotion = change[1] if after else change[0]
    kinds = reading.concepts.get("character", ())
    name = vocabulary.get("character", kinds[0]).words[0] if kinds else who[0] if who else None
    concept = kinds[0] if kinds else vocabulary.find(_ARTICLE.sub("", name), "character") if name else None
    if emotion is not None and name is not None:
        word = vocabulary.get("emotion", emotion).words[0]
        return Feeling(concept, emotion, as_sentence(f"{named(name)} is {word}"))
    if not clean or not after or emotion is not None:
        return None
    if name is not None and not kinds and len(clean.split()) <= _LONGEST_MOOD:
        return Feeling(concept, None, as_sentence(f"{named(name)} is {clean.lower()}"))
    return Feeling(concept, None, as_sentence(clean))


def feeler(scene: Scene) -> list[str]:
    """Whose feeling a scene's `emotion` is: whoever its text says feels so, else its doer, else the first it lists."""
    vocabulary = load_vocabulary()
    emotion = vocabulary.find(scene.emotion or "", "emotion")
    felt = [one.concept for one in read_scene(scene.scene_text).actors if one.emotion and one.emotion == emotion]
    doers = [event.actor for event in read_phrase(scene.action).events if event.actor]
    kinds = {name: vocabulary.find(_ARTICLE.sub("", name), "character") for name in scene.characters}
    chosen = [name for concept in (*felt, *doers) for name, kind in kinds.items() if kind == concept]
    return (chosen or scene.characters)[:1]


def feeling_in(text: str, feeling: Feeling) -> bool:
    """Whether `text` already shows a feeling of that character (of anybody, where it is not known who feels)."""
    if feeling.emotion is None:
        return feeling.sentence.lower() in text.lower()
    actors = read_scene(text).actors
    return any(actor.emotion for actor in actors if feeling.who in {None, actor.concept})
