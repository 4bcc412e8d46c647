"""What is read in a text: its sentences, what happens in them, who and what is in it, where and when."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "Entity",
    "EntityKind",
    "Event",
    "InputKind",
    "Kin",
    "Place",
    "Reading",
    "Role",
    "Sentence",
    "Speech",
    "Standing",
    "TextCheck",
]

_WORD = re.compile(r"[^\W_]+(?:['-][^\W_]+)*")
EntityKind = Literal["person", "animal", "being", "thing", "place", "group", "abstract"]
Standing = Literal["told", "said", "reported", "intended", "imagined"]
"""told: it happens in the story. said: only in direct speech. reported: in indirect speech ("said that ..."). intended:
wanted, asked for, promised, or the purpose of a deed. imagined: thought, dreamed, feared, or under an "if"."""
RoleName = Literal["agent", "patient", "recipient", "instrument", "companion", "place", "goal", "source", "topic"]
InputKind = Literal[
    "story",
    "empty",
    "code",
    "language",
    "poem",
    "recipe",
    "conversation",
    "list",
    "one_sentence",
    "long",
    "no_event",
]


@dataclass(frozen=True)
class Role:
    """One filler of a role: the words, their head's lemma, the entity, and the preposition (or "" for none).

    An adverb ("home", "upstairs") is a role without an entity. `start` is where the head stands in the text, -1
    for the "you" that an order leaves out.
    """

    role: RoleName
    text: str
    head: str
    entity: str | None = None
    preposition: str = ""
    start: int = 0


@dataclass(frozen=True)
class Event:
    """One thing that happens, holds or is felt.

    Attributes:
        id: its place in `Reading.events`, which is the order of the text.
        sentence: index of its sentence.
        verb: lemma of the verb, "be" for a state. particle: "out" of "blew out".
        text: the words of the clause.
        roles: who and what takes part, where, whereto.
        state: what is said of the agent ("happy", "pilot") or of the thing changed ("green" of "painted it green").
        feeling: one of `feelings.yaml`'s names, where the clause tells one; it is the agent's.
        manner, time, reason: the words of the clause that tell how, when and why.
        purpose: ids of the events that this one is for. because: ids of the events that the text names as its reason.
        negated: it did not happen. modality: "can", "try", "must", "want", "will", "may" or "" ("could not reach" is
            negated, "can"). phase: "begin", "keep", "stop" or "".
        tense: past, present or future. perfect: "had eaten", before the story's now.
        standing: see `Standing`. within: the event it depends on (what is said, wanted, seen).
        passive, existential: how the clause is built. speech: index in `Reading.speeches` for what stands in quotes.
        to: whom somebody speaks to, where the event tells that and no role does.
        aside: told in passing, of somebody or for the background ("who sold matches", "tired by the climb").
        joint: where the clause begins, for one joined to a deed before it ("..., dropped her bag and"); else -1.
        shared: the subject's words that such a clause leaves out.
    """

    id: int
    sentence: int
    verb: str
    text: str
    start: int
    particle: str = ""
    roles: tuple[Role, ...] = ()
    state: tuple[str, ...] = ()
    feeling: str | None = None
    manner: tuple[str, ...] = ()
    time: tuple[str, ...] = ()
    reason: tuple[str, ...] = ()
    purpose: tuple[int, ...] = ()
    because: tuple[int, ...] = ()
    negated: bool = False
    modality: str = ""
    phase: str = ""
    tense: Literal["past", "present", "future"] = "past"
    perfect: bool = False
    standing: Standing = "told"
    within: int | None = None
    passive: bool = False
    existential: bool = False
    speech: int | None = None
    to: tuple[str, ...] = ()
    visible: bool = True
    aside: bool = False
    joint: int = -1
    shared: str = ""

    @property
    def predicate(self) -> str:
        """Return verb and particle: "blow out"."""
        return f"{self.verb} {self.particle}".strip()

    @property
    def happens(self) -> bool:
        """Whether it takes place in the story's world: told, and not negated."""
        return self.standing == "told" and not self.negated

    def all(self, *names: RoleName) -> tuple[Role, ...]:
        """Return the fillers of any of these roles, in the text's order."""
        return tuple(role for role in self.roles if role.role in names)

    def who(self, *names: RoleName) -> tuple[str, ...]:
        """Return the entities that fill any of these roles."""
        return tuple(role.entity for role in self.all(*names) if role.entity is not None)


@dataclass(frozen=True)
class Kin:
    """A tie between two characters: the other is this one's `relation` ("mother", "owner", "friend")."""

    relation: str
    other: str


@dataclass(frozen=True)
class Entity:
    """Somebody or something of the story, one id for all its mentions.

    Attributes:
        id: stable within the reading ("e3").
        name: what to call it: a name, else "the old man".
        noun: the noun that says what it is ("robot"), "" when the text never says.
        kind: see `EntityKind`. sort: finer, from the noun table ("vehicle", "building", "food", ...).
        character: it acts, speaks, feels, or is somebody.
        sex: "male", "female" or None: unknown stays neutral. age: "child", "adult", "old" or None.
        aliases: every other name and noun phrase for it. titles: "Mr", "Captain".
        looks: what the text says of its looks and state for good ("small", "red"), as told.
        count: 1, a number, or 0 for "several". members: of a group whose members are named.
        owner: whose it is. kin: its ties. narrator: it says "I".
        sentences: where it is mentioned, pronouns included.
    """

    id: str
    name: str
    noun: str = ""
    kind: EntityKind = "thing"
    sort: str = ""
    character: bool = False
    named: bool = False
    sex: Literal["male", "female"] | None = None
    age: Literal["child", "adult", "old"] | None = None
    aliases: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    count: int = 1
    members: tuple[str, ...] = ()
    owner: str | None = None
    kin: tuple[Kin, ...] = ()
    narrator: bool = False
    sentences: tuple[int, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where something happens: the noun ("library"), the words ("the old library"), its entity, and the sentence
    `since` which it holds. `sort` is the kind of place ("building", "water")."""

    noun: str
    text: str
    since: int
    entity: str | None = None
    preposition: str = ""
    sort: str = ""


@dataclass(frozen=True)
class Speech:
    """Words in quotes: who says them to whom. `sentence` is where they begin."""

    sentence: int
    text: str
    start: int
    speaker: str | None = None
    addressees: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sentence:
    """One sentence as a reader counts them (what is said in quotes belongs to it), and what holds in it.

    Attributes:
        visible: it tells something that a picture can show.
        read: something visible of it was understood: an event with somebody or something in it.
        understood, missed: its content words that have a place in what was read, and those that have none.
        place, time, weather, season: what holds at its end; None where the text has not said.
    """

    index: int
    text: str
    start: int
    end: int
    paragraph: int
    events: tuple[int, ...] = ()
    visible: bool = False
    read: bool = False
    understood: tuple[str, ...] = ()
    missed: tuple[str, ...] = ()
    place: Place | None = None
    time: str | None = None
    weather: str | None = None
    season: str | None = None


@dataclass(frozen=True)
class Reading:
    """A whole text as read. `title`: a first line that is no sentence; `text` is the rest."""

    text: str
    sentences: tuple[Sentence, ...]
    events: tuple[Event, ...]
    entities: tuple[Entity, ...]
    speeches: tuple[Speech, ...] = ()
    title: str = ""
    _index: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the entities."""
        self._index.update({entity.id: at for at, entity in enumerate(self.entities)})

    def entity(self, key: str) -> Entity:
        """Return the entity with this id.

        Raises:
            KeyError: there is none.
        """
        return self.entities[self._index[key]]

    @property
    def cast(self) -> tuple[Entity, ...]:
        """Return the characters; a group whose members are known is left to them."""
        return tuple(entity for entity in self.entities if entity.character and not entity.members)

    def of(self, sentence: int) -> tuple[Event, ...]:
        """Return the events of one sentence."""
        return tuple(self.events[at] for at in self.sentences[sentence].events)

    def surface(self, event: Event) -> str:
        """Return an event's verb as the text has it, in lower case: "chased"."""
        found = _WORD.match(self.text, event.start)
        return found.group().lower() if found else event.verb

    @property
    def coverage(self) -> tuple[int, int]:
        """Return how many sentences were read, of those that tell something visible."""
        seen = [sentence for sentence in self.sentences if sentence.visible]
        return sum(sentence.read for sentence in seen), len(seen)


@dataclass(frozen=True)
class TextCheck:
    """What kind of text it is. `message` is one sentence for a person, "" for a plain story; `usable` whether it can be
    read on (a poem that tells something, a long text: yes; a recipe, another language: no)."""

    kind: InputKind
    message: str = ""
    usable: bool = True
