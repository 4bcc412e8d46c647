"""What prompts say: characters' looks, deeds, feelings, signs, within a renderer's limit in tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from katha.language import (
    Actor,
    Event,
    SceneReading,
    describe_actor,
    describe_scene,
    load_vocabulary,
    read_phrase,
    read_scene,
)
from katha.language.looks import clash
from katha.schema import Character, Scene

_ACCESSORIES = ("red_scarf", "blue_scarf", "green_cap", "yellow_hat", "crowned")
Key = tuple[str, str | None]


@dataclass(frozen=True)
class Role:
    """One character of the story: its name in the plan and how it is drawn when it does nothing.

    `alike` holds when another character is of the same kind, so that its looks have to be said every time.
    """

    name: str
    actor: Actor
    word: str
    alike: bool = False

    @property
    def plain(self) -> Actor:
        """The actor as a sentence names it: with its looks only where they are needed to tell it apart."""
        return self.actor if self.alike else replace(self.actor, attributes=())

    @property
    def words(self) -> Mapping[str, str]:
        """The story's own noun for it, as the `words` of `describe_scene`."""
        return {self.actor.concept: self.word}

    def character(self) -> Character:
        """The plan's record of it: its appearance, and a prompt in which it is alone."""
        alone = describe_scene(SceneReading((self.actor,)), self.words)
        appearance = describe_actor(self.actor, "a", self.words)
        return Character(name=self.name, kind=self.word, appearance=appearance, anchor_prompt=alone)


def role_key(event: Event) -> Key:
    """What tells the actor of `event` from every other character."""
    return (event.actor or "", event.actor_name)


def _word(concept: str, word: str | None) -> str:
    vocabulary = load_vocabulary()
    known = word is not None and vocabulary.find(word, "character") == concept
    return word if known and word is not None else vocabulary.get("character", concept).words[0]


def cast_of(events: Iterable[Event]) -> dict[Key, Role]:
    """Every character of the events, in order of appearance.

    Characters of one kind that their looks do not tell apart each get an accessory, always the same.
    """
    order = {concept.id: at for at, concept in enumerate(load_vocabulary().concepts("attribute"))}
    first: dict[Key, Event] = {}
    spoken: set[Key] = set()  # characters that are only spoken of: nobody sees them, so nobody can confuse them
    for event in sorted(events, key=lambda event: event.speech):
        known = set(first)
        if event.actor is not None:
            first.setdefault(role_key(event), event)
        if event.target is not None and _is_character(event.target):
            stranger = Event(event.sentence, event.text, actor=event.target, actor_name=event.target_name)
            first.setdefault((event.target, event.target_name), stranger)
        spoken |= (set(first) - known) if event.speech else set()
    kinds = Counter(key[0] for key in first if key not in spoken)
    roles: dict[Key, Role] = {}
    for key, event in first.items():
        looks = tuple(sorted(set(event.attributes), key=order.__getitem__))
        actor = Actor(key[0], attributes=looks, count=event.count)
        same = [role.actor for role in roles.values() if role.actor.concept == actor.concept]
        rivals = [
            replace(actor, attributes=other.attributes, count=other.count)
            for at, other in first.items()
            if at[0] == key[0] and at != key and at not in spoken
        ]
        if any(not _differs(actor, other) for other in [*rivals, *same]):
            looks = (*looks, _accessory(same, looks))
            actor = replace(actor, attributes=tuple(sorted(looks, key=order.__getitem__)))
        word = _word(key[0], event.actor_word) if kinds[key[0]] == 1 else _word(key[0], None)
        name = key[1] or _plural(_word(key[0], event.actor_word), event.count)
        roles[key] = Role(_unique(name, roles), actor, word, alike=kinds[key[0]] > 1)
    return roles


def _is_character(concept: str) -> bool:
    return load_vocabulary().find(concept, "character") == concept


def _plural(word: str, count: int) -> str:
    return load_vocabulary().grammar.inflector.plural(word) if count > 1 else word


def _differs(actor: Actor, other: Actor) -> bool:
    return clash(actor.attributes, other.attributes) or (actor.count > 1) != (other.count > 1)


def _accessory(same: list[Actor], looks: tuple[str, ...]) -> str:
    taken = {look for actor in same for look in actor.attributes}
    free = [look for look in _ACCESSORIES if look not in taken and not clash(looks, (look,))]
    return free[0] if free else _ACCESSORIES[len(same) % len(_ACCESSORIES)]


def _unique(name: str, roles: Mapping[Key, Role]) -> str:
    taken = {role.name for role in roles.values()}
    number, candidate = 2, name
    while candidate in taken:
        candidate, number = f"{name} {number}", number + 1
    return candidate


NEGATIVE_PROMPT = "text, letters, speech bubbles, watermark, extra limbs"
"""What no panel may hold. Words in the picture would tell the story instead of the drawing."""
_PER_WORD = 4 / 3
_WIDE = 0x2E80


def tokens_of(text: str) -> int:
    """About how many tokens `text` has: 4/3 a word, one for every East Asian character."""
    wide = sum(ord(letter) >= _WIDE for letter in text)
    return -int(-(len(text.split()) * _PER_WORD + wide) // 1)


def fits(text: str, limit: int | None) -> bool:
    """Whether `text` is within `limit` tokens; None is no limit."""
    return limit is None or tokens_of(text) <= limit


def as_sentence(text: str) -> str:
    """`text` with a capital at its beginning and a full stop at its end; empty stays empty."""
    clean = " ".join(text.split())
    if not clean:
        return ""
    return f"{clean[0].upper()}{clean[1:]}" + ("" if clean[-1] in ".!?\"'\u3002" else ".")


def clip(text: str, limit: int | None) -> str:
    """`text`, cut at the end of a word where it is longer than `limit` tokens."""
    if fits(text, limit):
        return text
    words = text.split(" ")
    while len(words) > 1 and not fits(" ".join(words), limit):
        words.pop()
    return " ".join(words).rstrip(" ,;:")


def fit(sentences: Sequence[str], limit: int | None, *, first: Iterable[int] = ()) -> str:
    """The sentences in their order, without those that `limit` leaves no room for.

    first: the places of the sentences that are kept before all others; the rest is kept from the beginning. The very
    first stays, clipped where it alone is too long.
    """
    order = list(dict.fromkeys([*first, *range(len(sentences))]))
    if sentences and not fits(sentences[order[0]], limit):
        return clip(sentences[order[0]], limit)
    kept: list[int] = []
    for at in order:
        trial = " ".join(sentences[place] for place in sorted([*kept, at]))
        if fits(trial, limit):
            kept.append(at)
    return " ".join(sentences[place] for place in sorted(kept))


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
