"""The characters of a plan: who they are, and a look that stays the same in every panel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from katha.language import Actor, Event, describe_actor, describe_scene, load_vocabulary
from katha.language.looks import clash
from katha.language.types import SceneReading
from katha.schema import Character

__all__ = ["Role", "cast_of", "role_key"]

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
