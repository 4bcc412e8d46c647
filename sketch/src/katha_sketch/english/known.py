"""What is known of who and what a story tells of while it is read, and the record that comes of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from katha_sketch.english.mentions import Key, Mention
from katha_sketch.english.types import Entity, EntityKind, Kin
from katha_sketch.english.words import Words

if TYPE_CHECKING:
    from spacy.tokens import Token

__all__ = ["ALIVE", "Known", "Memory", "Speaking", "finish"]

ALIVE = ("person", "animal", "being")
FAR = 7
"""For how many sentences somebody may be meant by "he" or "the girl"."""
_DEEPEST = 3
_ALL = re.compile(r"^(?:all|both) (?=(?:the|of|his|her|their|its|my|our|these|those)\b)(?:of )?", re.IGNORECASE)


@dataclass
class Known:
    """An entity while it is gathered.

    given: the sex that this pass supposes. sure: a noun or title tells the sex. group: what it is one of. its: it was
    "it". vague: "something". unreal: so far it was only drawn, or what another is like.
    """

    id: str
    kind: EntityKind
    given: str | None = None
    noun: str = ""
    names: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    nouns: list[str] = field(default_factory=list)
    phrases: list[str] = field(default_factory=list)
    adjectives: list[str] = field(default_factory=list)
    votes: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    age: Literal["child", "adult", "old"] | None = None
    count: int = 1
    plural: bool = False
    members: tuple[str, ...] = ()
    group: str | None = None
    owner: str | None = None
    kin: list[Kin] = field(default_factory=list)
    narrator: bool = False
    acts: bool = False
    speaks: bool = False
    placed: bool = False
    its: bool = False
    sure: bool = False
    vague: bool = False
    unreal: bool = False
    deeds: set[str] = field(default_factory=set)
    sentences: list[int] = field(default_factory=list)
    first: Mention | None = None
    last: Mention | None = None

    @property
    def told_sex(self) -> Literal["male", "female"] | None:
        """Return what most of the evidence says, if it is enough."""
        male, female = self.votes["male"], self.votes["female"]
        if max(male, female) < 0.2 or male == female:
            return None
        return "male" if male > female else "female"

    @property
    def sex(self) -> str | None:
        """Return what the evidence says, else what this pass supposes."""
        return self.given or self.told_sex

    @property
    def alive(self) -> bool:
        """Return whether it is somebody, alone."""
        return self.kind in ALIVE and not self.plural

    def at(self, sentence: int) -> int:
        """Return the last sentence up to `sentence` that names it; far off if only later ones do."""
        if self.sentences and self.sentences[-1] <= sentence:
            return self.sentences[-1]
        before = bisect_right(self.sentences, sentence)
        return self.sentences[before - 1] if before else (self.sentences[0] + FAR if self.sentences else -99)


@dataclass(frozen=True)
class Speaking:
    """Who says the words in quotes of a piece, and to whom."""

    speaker: str | None = None
    addressees: tuple[str, ...] = ()


class Memory:
    """The entities found so far. sexes: of whoever is first named by a word, as this pass supposes."""

    def __init__(self, mentions: Mapping[Key, Mention], words: Words, sexes: Mapping[Key, str]) -> None:
        self.mentions = mentions
        self.words = words
        self.sexes = sexes
        self.entities: dict[str, Known] = {}
        self.groups: list[str] = []
        outside = [mention for mention in mentions.values() if not mention.quoted]
        told = sum(mention.pronoun == "you" and mention.role == "agent" for mention in outside)
        self._second_person = told > 1 and not any(mention.pronoun == "i" for mention in outside)
        self.owned = {mention.owner: mention for mention in mentions.values() if mention.owner is not None}

    def told_to(self, mention: Mention) -> bool:
        """Whether somebody is whom the whole story is told to: "You climb a tree"."""
        return self._second_person and mention.pronoun == "you" and not mention.quoted

    def new(self, kind: EntityKind) -> Known:
        """Return a new entity."""
        entity = Known(f"e{len(self.entities) + 1}", kind)
        self.entities[entity.id] = entity
        return entity

    def of(self, mention: Mention | None) -> Known | None:
        """Return the entity of a mention, if that is known by now."""
        return self.entities.get(mention.entity or "") if mention is not None else None

    def beside(self, mention: Mention, tokens: Iterable[Token]) -> list[Mention]:
        """Return the mentions that begin at these words of a mention's piece."""
        return [found for token in tokens if (found := self.mentions.get((mention.key[0], token.i))) is not None]

    def group(self, members: tuple[str, ...], mention: Mention) -> Known:
        """Return the group with just these members."""
        known = next((key for key in self.groups if set(self.entities[key].members) == set(members)), None)
        if known is None:
            alive = any(self.entities[item].kind in ALIVE for item in members)
            known = self.new("group" if alive else "thing").id
            entity = self.entities[known]
            entity.members, entity.count, entity.plural = members, len(members), True
            entity.acts = any(self.entities[item].acts or self.entities[item].kind in ALIVE for item in members)
            self.groups.append(known)
        entity = self.entities[known]
        entity.last = mention
        self.heard(entity, mention.sentence)
        return entity

    def heard(self, entity: Known, sentence: int) -> None:
        """Note that a sentence names an entity, and with a group its members."""
        for one in (entity, *(self.entities[item] for item in entity.members)):
            at = bisect_right(one.sentences, sentence)
            if at == 0 or one.sentences[at - 1] != sentence:
                one.sentences.insert(at, sentence)

    def crowd(self, narrator: Known | None = None) -> Known:
        """Return a new group of nobody knows whom, with the narrator or without."""
        group = self.new("group")
        group.plural, group.count, group.acts = True, 0, True
        if narrator is not None:
            self.groups.append(group.id)
            group.kin.append(Kin("including", narrator.id))
        return group

    def narrator(self) -> Known:
        """Return who says "I"."""
        found = next((entity for entity in self.entities.values() if entity.narrator), None)
        if found is None:
            found = self.new("person")
            found.narrator = True
        return found

    def nearest(self, entities: Iterable[Known], mention: Mention) -> Known | None:
        """Return the one that was mentioned last; in quotes the one mentioned nearest."""
        return max(
            entities,
            key=lambda e: (-abs(mention.sentence - e.at(mention.sentence)), e.last.key if e.last else (0, 0)),
            default=None,
        )

    def recent(self, mention: Mention, far: int = FAR) -> list[Known]:
        """Return the entities that a pronoun may mean: named in the last sentences, groups by a member too."""
        begin, end = mention.sentence - far, mention.sentence
        return [e for e in self.entities.values() if e.last is not None and begin <= e.at(end) <= end]

    def near(self, mention: Mention, far: int = FAR) -> list[Known]:
        """Return the entities named in the last sentences."""
        return [e for e in self.entities.values() if e.last is not None and mention.sentence - e.last.sentence <= far]

    def tie(self, entity: Known, relation: str, other: str) -> None:
        """Note that an entity is another's mother, brother, friend."""
        tie = Kin(relation, other)
        if tie not in entity.kin and other != entity.id:
            entity.kin.append(tie)


def finish(entity: Known, entities: Mapping[str, Known], words: Words) -> Entity:
    """Return the record of a gathered entity."""
    alive = entity.kind in (*ALIVE, "group")
    name = _called(entity, entities, words)
    called = (*entity.names, *entity.phrases, _called(entity, entities, words, whole=True))
    return Entity(
        id=entity.id,
        name=name,
        noun=entity.noun,
        kind=entity.kind,
        sort=words.sort(entity.noun),
        character=(alive or (entity.acts and entity.kind not in ("place", "abstract")))
        and entity.placed
        and not entity.unreal,
        named=bool(entity.names),
        sex=entity.told_sex if not entity.plural else None,
        age=entity.age,
        aliases=tuple(dict.fromkeys(item for item in called if item and item != name)),
        titles=tuple(entity.titles),
        looks=tuple(entity.adjectives),
        count=entity.count,
        members=entity.members,
        owner=entity.owner,
        kin=tuple(entity.kin),
        narrator=entity.narrator,
        sentences=tuple(dict.fromkeys(entity.sentences)),
    )


def _titled(entity: Known, title: str, words: Words) -> bool:
    """Whether a title belongs to what somebody is called: "Papa Bear", not "brother Tom"."""
    return words.has("titles", title) or (entity.kind in ("animal", "being") and words.has("kin", title))


def _called(entity: Known, entities: Mapping[str, Known], words: Words, depth: int = 0, *, whole: bool = False) -> str:
    """What to call it: its name with its title, whose brother it is, or what the text first calls it. whole: whose it
    is in any case; "Emre and Deniz's grandfather", "Mina's mother's brother" are no names to draw by."""
    if entity.names:
        title = next((t for t in entity.titles if t[0].isupper() and _titled(entity, t.lower(), words)), "")
        return f"{title} {max(entity.names, key=len)}".strip()
    if entity.narrator:
        return "the narrator"
    if entity.members and depth < _DEEPEST:
        return " and ".join(_called(entities[item], entities, words, depth + 1) for item in entity.members)
    if entity.group is not None and depth < _DEEPEST:
        group = _called(entities[entity.group], entities, words, depth + 1)
        return f"one of the {group}" if " " not in group and group.islower() else f"one of {group}"
    owner = next((kin.other for kin in entity.kin), entity.owner) if not entity.plural else entity.owner
    phrases = [phrase for phrase in entity.phrases if phrase]
    beast = [phrase for phrase in phrases if entity.kind == "animal" and phrase.split()[-1] == entity.noun]
    phrase = next(iter((*beast, *phrases)), "")  # "her friend the town mouse" is the town mouse
    phrase = _ALL.sub("", phrase)  # "All the boys", "all her aunts"
    phrase = re.sub(r"^both (?:of )?", "the two ", phrase, flags=re.IGNORECASE)  # "Both boys"
    first, _, rest = phrase.partition(" ")
    owns = words.has("pronouns", first.lower()) or first.lower() == "whose"
    if owns and owner is not None and owner in entities and depth < _DEEPEST:
        whose = entities[owner]
        if first.lower() in ("my", "our") and (whose.narrator or whose.plural):
            return f"{first.lower()} {rest}"
        rest = rest.rsplit("'s ", 1)[-1]  # "their grandmother's doorbell"
        if not whole and (whose.members or (not whose.names and whose.kin)):
            return f"the {rest}"
        who = _called(whose, entities, words, depth + 1, whole=whole)
        return f"{who}' {rest}" if whose.plural and who.endswith("s") else f"{who}'s {rest}"
    if first.lower() in ("a", "an", "the", "some", "this", "that", "these", "those", *words.sets["pronouns"]):
        return f"the {rest}" if rest else "someone"
    if not phrase:
        return "everyone" if entity.plural else "someone"
    return phrase if phrase != phrase.lower() or entity.kind not in ALIVE else f"the {phrase}"
