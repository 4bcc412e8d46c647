"""Who and what is in a story: mentions joined into entities over the whole text, pronouns resolved.

The text is gone through twice: the first time what is certain about names (a pronoun with one possible antecedent, a
title, "her brother Tom") is gathered, the second time it is used from the first word on. Names say nothing about sex by
themselves: the reader has no list of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from katha.text.mentions import Key, Mention
from katha.text.types import Entity, EntityKind, Kin
from katha.text.words import Words

if TYPE_CHECKING:
    from spacy.tokens import Token

__all__ = ["Known", "Resolver", "Speaking"]

_ALIVE = ("person", "animal", "being")
_SEX = {"he": "male", "she": "female"}
_FAR = 7
_SURE = 0.7
_DEEPEST = 3


@dataclass
class Known:
    """An entity while it is gathered."""

    id: str
    kind: EntityKind
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
    owner: str | None = None
    kin: list[Kin] = field(default_factory=list)
    narrator: bool = False
    acts: bool = False
    placed: bool = False
    sentences: list[int] = field(default_factory=list)
    last: Mention | None = None

    @property
    def sex(self) -> Literal["male", "female"] | None:
        """Return what most of the evidence says, if it is enough."""
        male, female = self.votes["male"], self.votes["female"]
        if max(male, female) < 0.2 or male == female:
            return None
        return "male" if male > female else "female"


@dataclass(frozen=True)
class Speaking:
    """Who says the words in quotes of a piece, and to whom."""

    speaker: str | None = None
    addressees: tuple[str, ...] = ()


class Resolver:
    """One pass over a text's mentions."""

    def __init__(self, mentions: Mapping[Key, Mention], words: Words, sexes: Mapping[str, str]) -> None:
        """Begin. sexes: by name, as the pass before found them."""
        self.mentions = mentions
        self.words = words
        self.sexes = sexes
        self.entities: dict[str, Known] = {}
        self.groups: list[str] = []
        self.speaking: Mapping[int, Speaking] = {}
        self.owned = {mention.owner: mention for mention in mentions.values() if mention.owner is not None}

    def told(self) -> None:
        """Resolve what the narrator says."""
        self._all(mention for mention in self.mentions.values() if not mention.quoted)

    def said(self, speaking: Mapping[int, Speaking]) -> None:
        """Resolve what stands in quotes. speaking: by the number of the piece."""
        self.speaking = speaking
        self._all(mention for mention in self.mentions.values() if mention.quoted)

    def _all(self, mentions: Iterable[Mention]) -> None:
        for mention in sorted(mentions, key=lambda item: item.key):
            if mention.entity is None:
                found = self._pronoun(mention) if mention.pronoun else self._noun(mention)
                if found is not None:
                    self._note(found, mention)
            if mention.joined:
                self._later_group(mention)

    def _later_group(self, mention: Mention) -> None:
        """Make a group of what is joined ("Priya and her brother"), once its last one is known."""
        for key in mention.joined[1:]:
            other = self.mentions.get(key)
            if other is not None and other.entity is None:
                owner = self.mentions.get(other.owner) if other.owner is not None else None
                if owner is not None and owner.entity is None and owner.pronoun:
                    owned = self._pronoun(owner)
                    if owned is not None:
                        self._note(owned, owner)
                found = self._pronoun(other) if other.pronoun else self._noun(other)
                if found is not None:
                    self._note(found, other)
        ids = [self.mentions[key].entity for key in mention.joined if key in self.mentions]
        members = tuple(dict.fromkeys(item for item in ids if item is not None))
        if len(members) > 1 and not self._spelt_out(members, mention):
            self._group(members, mention)

    def _spelt_out(self, members: tuple[str, ...], mention: Mention) -> bool:
        """Whether the names say who a group is: "two brothers, Aarav and Dev"."""
        head = self.mentions.get((mention.key[0], mention.token.head.i))
        group = self.entities.get(head.entity or "") if head is not None and mention.token.dep_ == "appos" else None
        if group is None or not group.plural:
            return False
        group.members, group.count = members, len(members)
        self.groups.append(group.id)
        for one in members:
            self.characterise(self.entities[one], group.nouns, group.adjectives)
            if self.words.has("kin_equal", group.noun):
                for other in members:
                    if other != one:
                        self._tie(self.entities[one], group.noun, other)
        return True

    def _group(self, members: tuple[str, ...], mention: Mention) -> str:
        known = next((key for key in self.groups if set(self.entities[key].members) == set(members)), None)
        if known is None:
            kinds = {self.entities[item].kind for item in members}
            known = self._new("group" if kinds & set(_ALIVE) else "thing").id
            entity = self.entities[known]
            entity.members, entity.count, entity.plural = members, len(members), True
            entity.acts = any(self.entities[item].acts or self.entities[item].kind in _ALIVE for item in members)
            self.groups.append(known)
        entity = self.entities[known]
        entity.last = mention
        entity.sentences.append(mention.sentence)
        return known

    def _new(self, kind: EntityKind) -> Known:
        entity = Known(f"e{len(self.entities) + 1}", kind)
        self.entities[entity.id] = entity
        return entity

    # ---- nouns and names

    def _noun(self, mention: Mention) -> Known | None:
        if mention.article == "no":
            return None
        token = mention.token
        whole = self.mentions.get(mention.inner) if mention.inner is not None else None
        if whole is not None:
            # "a slice of bread" is bread, "the middle of the road" the road.
            if (
                whole.entity is None
                and (known := self._pronoun(whole) if whole.pronoun else self._noun(whole)) is not None
            ):
                self._note(known, whole)
            return self.entities.get(whole.entity or "")
        if token.dep_ in ("appos", "attr") and mention.noun not in self.words.sets["negative"]:
            same = self._equal(mention)
            if same is not None:
                return same
        if mention.noun in self.words.sets["negative"]:
            return None
        if mention.name:
            return self._named(mention)
        owner = self._owner(mention)
        kin = self._kin(mention, owner) if owner is not None or self.words.has("kin", mention.noun) else None
        return kin or self._described(mention, owner)

    def _equal(self, mention: Mention) -> Known | None:
        """Who an apposition or a predicate speaks of: "Mr Brown was the baker"."""
        head: Token | None = mention.token.head
        if mention.token.dep_ == "attr" and head is not None:
            told = not any(child.dep_ in ("neg", "expl") for child in head.children) and head.lemma_ == "be"
            head = next((child for child in head.children if child.dep_ == "nsubj"), None) if told else None
            if head is not None and head.lemma_ == "name" and mention.name:
                named = self.mentions.get((mention.key[0], head.i))
                return self.entities.get((self._owner(named) if named is not None else None) or "")
        elif any(child.dep_ == "cc" for child in mention.token.children):
            return None
        other = self.mentions.get((mention.key[0], head.i)) if head is not None else None
        known = self.entities.get(other.entity or "") if other is not None else None
        alive = known is not None and (known.kind in _ALIVE or known.acts)
        if known is not None and mention.owner is not None and self._owner(mention) == known.id:
            return None
        return known if alive and (mention.name or self._kind(mention) in _ALIVE) and not mention.plural else None

    def _owner(self, mention: Mention) -> str | None:
        if mention.owner is None:
            return None
        owner = self.mentions.get(mention.owner)
        if owner is None:
            return None
        if owner.entity is None:
            found = self._pronoun(owner) if owner.pronoun else self._noun(owner)
            if found is not None:
                self._note(found, owner)
        return owner.entity

    def _named(self, mention: Mention) -> Known:
        names = mention.name.split()
        kin = self.words.has("kin", mention.name.lower())
        if kin:
            return self._kin(mention, self._owner(mention)) or self._described(mention, None)
        for entity in self.entities.values():
            if not entity.names or entity.plural != mention.plural:
                continue
            sexes = {sex for title in (*entity.titles, *mention.titles) if (sex := self._title_sex(title))}
            shared = any(set(names) & set(known.split()) for known in entity.names)
            whole = any(set(names) <= set(known.split()) or set(known.split()) <= set(names) for known in entity.names)
            if shared and whole and len(sexes) < 2:
                return entity
        trades = {self.words.lemmas.get(title.lower().rstrip("."), title.lower()) for title in mention.titles}
        for entity in self.entities.values():
            if trades & set(entity.nouns) and not entity.names and not entity.plural and entity.id not in self.groups:
                return entity  # "the doctor", then "Dr Lund"
        described = self._described(mention, self._owner(mention)) if mention.noun and mention.owner else None
        entity = described or self._new(self._kind(mention))
        return entity

    def _title_sex(self, title: str) -> str | None:
        found = self.words.group("titles", title.lower()) or self.words.group("kin", title.lower())
        return found if found in ("male", "female") else None

    def _kind(self, mention: Mention) -> EntityKind:
        sort = self.words.sort(mention.noun)
        if mention.noun and (self.words.has("kin", mention.noun) or sort == "person"):
            return "person"
        if self.words.has("group", mention.noun):
            return "group"
        if sort in ("animal", "being"):
            return "animal" if sort == "animal" else "being"
        if mention.name and not sort:
            where = mention.role in ("place", "goal", "source") and mention.token.head.lower_ in (
                "in",
                "to",
                "from",
                "into",
                "at",
                "near",
            )
            return "place" if where and not mention.titles else "person"
        if self.words.is_place(mention.noun) and sort != "vehicle" and not self.words.has("movable", mention.noun):
            return "place"
        return "abstract" if sort in ("abstract", "feeling", "time") else "thing"

    def _canonical(self, noun: str) -> str:
        return self.words.group("kin_same", noun) or noun

    def _kin(self, mention: Mention, owner: str | None) -> Known | None:
        """The one who is somebody's mother, brother, friend: "her mother", "Mum"."""
        noun = self._canonical((mention.name or mention.noun).lower())
        if not self.words.has("kin", noun) or mention.plural:
            return None
        same = [
            e for e in self.entities.values() if noun in {self._canonical(known) for known in e.nouns} and not e.plural
        ]
        if owner is not None:
            tied = [e for e in same if any(kin.relation == noun and kin.other == owner for kin in self._ties(e))]
            free = [e for e in same if not any(kin.relation == noun for kin in e.kin)]
            found = tied or self._mutual(noun, owner) or free
        else:
            found = same if mention.name or mention.article in ("the", "this") else []
        entity = self._nearest(found, mention) if found else None
        if entity is None and (owner is not None or mention.name):
            entity = self._new("person")
        if entity is not None and owner is not None and owner != entity.id:
            self._tie(entity, noun, owner)
        return entity

    def _mutual(self, noun: str, owner: str) -> list[Known]:
        """Who must be meant because of the tie the other way: Kofi, if "his sister Abena" and "her brother"."""
        sex, words, found = self._noun_sex(noun), self.words, []
        for kin in self.entities[owner].kin:
            sides = ((noun, kin.relation), (kin.relation, noun))
            alike = words.has("kin_equal", noun) and words.has("kin_equal", kin.relation)
            across = any(words.has("kin_child", a) and words.has("kin_parent", b) for a, b in sides)
            other = self.entities.get(kin.other)
            if (alike or across) and other is not None and not other.plural and other.sex in (sex, None):
                found.append(other)
        return found

    def _ties(self, entity: Known) -> list[Kin]:
        groups = [item for item in self.groups if item in self.entities]
        return entity.kin + [
            Kin(kin.relation, group)
            for kin in entity.kin
            for group in groups
            if kin.other in self.entities[group].members
        ]

    def _tie(self, entity: Known, relation: str, other: str) -> None:
        tie = Kin(relation, other)
        if tie not in entity.kin:
            entity.kin.append(tie)

    def _nearest(self, entities: Iterable[Known], mention: Mention) -> Known | None:
        """The one that was mentioned last; in quotes the one mentioned nearest."""
        return max(
            entities,
            key=lambda e: (-abs(mention.sentence - self._at(e, mention)), e.last.key if e.last else (0, 0)),
            default=None,
        )

    def _at(self, entity: Known, mention: Mention) -> int:
        before = [at for at in entity.sentences if at <= mention.sentence]
        return before[-1] if before else (entity.sentences[0] + _FAR if entity.sentences else -99)

    def _described(self, mention: Mention, owner: str | None) -> Known:
        noun = mention.noun
        same = [e for e in self.entities.values() if noun in e.nouns and e.plural == mention.plural and not e.members]
        if owner is not None:
            same = [e for e in same if e.owner in (owner, None)]
        known = mention.article in ("the", "this") or owner is not None
        fresh = mention.article in ("a", "other") or any(
            word in ("other", "second", "third", "new") for word in mention.adjectives
        )
        if same and not fresh and (known or mention.count != 1 or mention.article == ""):
            like = [e for e in same if set(e.adjectives) & set(mention.adjectives)]
            unlike = [e for e in same if self._contrast(e.adjectives, mention.adjectives)]
            found = self._nearest(like or [e for e in same if e not in unlike], mention)
            if found is not None:
                return found
        if known and not fresh:
            alias = self._alias(mention)
            if alias is not None:
                return alias
        entity = self._new("group" if mention.plural and self._kind(mention) in _ALIVE else self._kind(mention))
        entity.owner = owner
        return entity

    def _contrast(self, one: Sequence[str], two: Sequence[str]) -> bool:
        opposite = self.words.groups["opposites"]
        return any(b in opposite.get(a, "").split() for a in one for b in two)

    def _alias(self, mention: Mention) -> Known | None:
        """Somebody known by another word: "the girl" for Lena, "the captain" for Captain Ruiz, "the bird" for the crow,
        "the friends" for the two of them."""
        words, noun = self.words, mention.noun
        near = [e for e in self.entities.values() if e.last is not None and mention.sentence - e.last.sentence <= _FAR]
        titled = [e for e in near if noun in {title.lower() for title in e.titles} and not e.plural]
        if titled:
            return self._nearest(titled, mention)
        if mention.plural:
            return self._plural_alias(mention, near)
        under = [e for e in near if not e.plural and e.noun in words.sets.get(f"general.{noun}", frozenset())]
        if under:
            return self._nearest(under, mention)
        if noun in ("animal", "creature", "beast"):
            return self._nearest([e for e in near if e.kind in ("animal", "being") and not e.plural], mention)
        sex, age = self._noun_sex(noun), self._noun_age(noun)
        if (sex is None and age is None) or words.has("kin", noun):
            return None
        if not words.has("plain_person", noun):
            return None
        fits = [e for e in near if self._could_be(e, sex, age, mention)]
        return self._nearest(fits, mention) if fits else None

    def _could_be(self, entity: Known, sex: str | None, age: str | None, mention: Mention) -> bool:
        if entity.kind != "person" or entity.plural or entity.narrator:
            return False
        if sex is not None and entity.sex not in (sex, None):
            return False
        old = "old" in mention.adjectives
        known = "old" if entity.age == "old" else entity.age
        if known is not None and age is not None and (known == "child") != (age == "child" and not old):
            return False
        persons = [noun for noun in entity.nouns if self._noun_sex(noun) or self._noun_age(noun)]
        plain = not entity.names and not persons and sex is not None and entity.sex is None
        return not plain and not (old and entity.age == "child")

    def _plural_alias(self, mention: Mention, near: Sequence[Known]) -> Known | None:
        person = self.words.sort(mention.noun) in _ALIVE or self.words.has("kin", mention.noun)
        if not person:
            return None
        groups = [e for e in near if e.members and (mention.count in (0, len(e.members)))]
        fits = [e for e in groups if all(self._member_fits(self.entities[item], mention.noun) for item in e.members)]
        if fits:
            return self._nearest(fits, mention)
        single = [e for e in near if e.kind in _ALIVE and not e.plural and self._member_fits(e, mention.noun)]
        named = [e for e in single if e.names]
        single = named if len(named) > 1 else single
        single.sort(key=lambda e: e.sentences[-1] if e.sentences else 0, reverse=True)
        many = mention.count if mention.count else len(single) if len(single) < 4 else 2
        if len(single) >= max(2, many):
            return self.entities[self._group(tuple(e.id for e in single[: max(2, many)]), mention)]
        return None

    def _member_fits(self, entity: Known, noun: str) -> bool:
        if noun in entity.nouns or noun in ("friend", "two", "pair"):
            return True
        sex, age = self._noun_sex(noun), self._noun_age(noun)
        if self.words.sort(noun) == "animal":
            return entity.kind == "animal" and noun == "animal"
        right = entity.kind == "person" and entity.sex in (sex, None) and entity.age in (age, None)
        return right and (sex is not None or age is not None)

    def _noun_sex(self, noun: str) -> Literal["male", "female"] | None:
        kin = self.words.group("kin", noun)
        if kin == "male" or self.words.has("male", noun):
            return "male"
        return "female" if kin == "female" or self.words.has("female", noun) else None

    def _noun_age(self, noun: str) -> Literal["child", "adult", "old"] | None:
        words = self.words
        if words.has("old", noun) or words.has("kin_old", noun):
            return "old"
        if words.has("child", noun):
            return "child"
        return "adult" if words.has("adult", noun) or words.has("kin_adult", noun) else None

    # ---- pronouns

    def _pronoun(self, mention: Mention) -> Known | None:
        who = mention.pronoun
        speaking = self.speaking.get(mention.key[0], Speaking()) if mention.quoted else Speaking()
        if who == "i":
            return self.entities.get(speaking.speaker or "") if mention.quoted else self._narrator()
        if who == "you":
            return self.entities.get(speaking.addressees[0]) if speaking.addressees else None
        if who == "we":
            return self._we(mention, speaking)
        if mention.form == "reflexive":
            agent = self._agent(mention)
            if agent is not None and who in _SEX:
                agent.votes[_SEX[who]] += 1.0
            return agent
        if who in ("he", "she"):
            return self._person(mention, speaking)
        if who == "it":
            return self._thing(mention)
        if who == "they":
            everybody = any(child.lower_ == "all" for child in mention.token.children) or any(
                child.lower_ == "all" and child.i == mention.token.i + 1 for child in mention.token.head.children
            )
            return (self._all_of_them(mention) if everybody else None) or self._they(mention)
        if who in ("everyone", "everybody", "all", "others", "both"):
            return self._everyone(mention)
        if who in ("one", "each", "another", "none"):
            return self._one_of(mention)
        if who in ("someone", "somebody", "something"):
            return self._new("person" if who.startswith("some") and not who.endswith("thing") else "thing")
        return None

    def _narrator(self) -> Known:
        found = next((entity for entity in self.entities.values() if entity.narrator), None)
        if found is None:
            found = self._new("person")
            found.narrator = True
        return found

    def _we(self, mention: Mention, speaking: Speaking) -> Known | None:
        one = self.entities.get(speaking.speaker or "") if mention.quoted else self._narrator()
        if one is None:
            return None
        mine = [self.entities[key] for key in self.groups if one.id in self.entities[key].members]
        known = self._nearest(mine, mention)
        if known is not None:
            return known
        alive = [
            e for e in self.entities.values() if e.kind in _ALIVE and not e.plural and e.sentences and e.id != one.id
        ]
        best = max(alive, key=lambda e: (self._score(e, mention), e.id), default=None)
        others = speaking.addressees or ((best.id,) if best is not None else ())
        if others:
            return self.entities[self._group((one.id, *others[:1]), mention)]
        group = self._new("group")
        group.plural, group.count, group.acts, group.members = True, 0, True, ()
        self.groups.append(group.id)
        group.kin.append(Kin("including", one.id))
        return group

    def _everyone(self, mention: Mention) -> Known | None:
        if mention.pronoun == "both":
            return self._they(mention)
        groups = [e for e in self.entities.values() if e.plural and (e.kind == "group" or e.members)]
        near = [e for e in groups if e.last is not None and mention.sentence - e.last.sentence <= 2]
        if near:
            return self._nearest(near, mention)
        group = self._new("group")
        group.plural, group.count, group.acts = True, 0, True
        return group

    def _one_of(self, mention: Mention) -> Known | None:
        """ "One of them": somebody new of the group's kind; "each of them": the group."""
        inner = next(
            (c for p in mention.token.children if p.lower_ == "of" for c in p.children if c.dep_ == "pobj"), None
        )
        other = self.mentions.get((mention.key[0], inner.i)) if inner is not None else None
        if other is None or mention.pronoun == "none":
            return None
        if other.entity is None and (known := self._pronoun(other) if other.pronoun else self._noun(other)) is not None:
            self._note(known, other)
        group = self.entities.get(other.entity or "")
        if group is None or mention.pronoun == "each":
            return group
        one = self._new(self._kind(other) if other.noun else "person" if group.kind == "group" else group.kind)
        one.noun, one.nouns = group.noun, list(group.nouns)
        one.kind = self._sorted_kind(group.noun) or one.kind
        return one

    def _sorted_kind(self, noun: str) -> EntityKind | None:
        sort = self.words.sort(noun)
        return "person" if sort == "person" else "animal" if sort == "animal" else "being" if sort == "being" else None

    def _all_of_them(self, mention: Mention) -> Known | None:
        near = [
            e.id
            for e in self.entities.values()
            if (e.kind in _ALIVE or e.acts)
            and not e.plural
            and not e.narrator
            and mention.sentence - self._at(e, mention) <= 5
        ]
        return self.entities[self._group(tuple(near), mention)] if len(near) > 1 else None

    def _agent(self, mention: Mention) -> Known | None:
        clause = mention.clause
        for token in clause.of("agent", "patient") if clause is not None else ():
            other = self.mentions.get((mention.key[0], token.i))
            if other is not None and other is not mention and other.entity is not None:
                return self.entities[other.entity]
        return None

    def _others(self, mention: Mention) -> set[str]:
        """Entities of the same clause that a pronoun which is not possessive cannot mean."""
        clause = mention.clause
        if clause is None or mention.form == "poss":
            return set()
        keys = [(mention.key[0], filler.token.i) for filler in clause.fillers if filler.token.i != mention.token.i]
        owned = self.mentions.get(mention.key)
        found = {
            self.mentions[key].entity
            for key in keys
            if key in self.mentions and not (owned and self.mentions[key].owner == owned.key)
        }
        ids = {item for item in found if item is not None}
        return ids | {one for item in ids for one in self.entities[item].members}

    def _score(self, entity: Known, mention: Mention) -> float:
        """How likely a pronoun means this entity: near, a subject, in the same role, talked of before."""
        last = entity.last
        if last is None:
            return -9.0
        far = max(0, mention.sentence - self._at(entity, mention))
        score = -0.8 * far
        score += {"agent": 0.6, "patient": 0.25, "recipient": 0.25, "companion": 0.1}.get(last.role, 0.0)
        score += 0.0 if last.role != mention.role else 0.35 if mention.pronoun == "it" else 0.2
        score += 0.1 if entity.names else 0.0
        score += 0.03 * min(len(entity.sentences), 5)
        score += 0.25 if last.pronoun == mention.pronoun == "it" else 0.0
        if last.key[0] == mention.key[0]:
            score -= 0.01 * abs(mention.key[1] - last.key[1])
            score += 0.3 if last.role == mention.role == "agent" else 0.0
        if last.key[0] == mention.key[0] and mention.form == "poss":
            agents = mention.clause.of("agent") if mention.clause is not None else self._head_agents(mention)
            score += 0.5 if any(token.i == last.key[1] for token in agents) else 0.0
        return score

    def _head_agents(self, mention: Mention) -> list[Token]:
        """The agents of the clause that holds what a possessive owns."""
        owned = self.owned.get(mention.key)
        return list(owned.clause.of("agent")) if owned is not None and owned.clause is not None else []

    def _person(self, mention: Mention, speaking: Speaking) -> Known | None:
        sex = _SEX[mention.pronoun]
        barred = self._others(mention) | ({speaking.speaker} if speaking.speaker else set()) | set(speaking.addressees)
        found = [
            e
            for e in self.entities.values()
            if (e.kind in _ALIVE or (e.acts and e.kind == "thing"))
            and not e.plural
            and not e.narrator
            and e.id not in barred
            if e.sex in (sex, None) and e.last is not None and mention.sentence - self._at(e, mention) <= _FAR
            if not self._owned_by_itself(e, mention)
        ]
        scored = sorted(
            (
                (
                    self._score(e, mention)
                    + (0.7 if e.sex == sex else 0.0)
                    - (0.0 if e.kind == "person" else 0.35 if e.kind == "animal" else 0.6),
                    e.id,
                )
                for e in found
            ),
            reverse=True,
        )
        if not scored:
            return self._new("person") if not mention.quoted else None
        best = self.entities[scored[0][1]]
        margin = scored[0][0] - scored[1][0] if len(scored) > 1 else 9.0
        best.votes[sex] += 1.0 if len(scored) == 1 else 0.6 if margin > 0.6 else 0.3
        return best

    def _owned_by_itself(self, entity: Known, mention: Mention) -> bool:
        """ "her brother": whose brother it is cannot be the brother."""
        owned = self.owned.get(mention.key)
        return owned is not None and owned.entity == entity.id

    def _thing(self, mention: Mention) -> Known | None:
        if self._dummy(mention):
            return None
        barred = self._others(mention)
        verb = mention.clause.lemma if mention.clause is not None else ""
        alive = mention.role == "agent" and self.words.has("volition", verb)
        scored: list[tuple[float, str]] = []
        for entity in self.entities.values():
            far = mention.sentence - self._at(entity, mention)
            if entity.plural or entity.id in barred or entity.last is None or not -1 < far <= 4:
                continue
            if entity.kind in ("person", "abstract", "group") or entity.narrator:
                continue
            score = self._score(entity, mention) - (0.3 if entity.sex and entity.names else 0.0)
            score -= 0.6 if entity.kind == "place" else 0.0
            score -= {"body": 0.8, "weather": 0.8}.get(self.words.sort(entity.noun), 0.0)
            living = entity.kind in _ALIVE
            score += (0.7 if living else -0.6) if alive else 0.2 if mention.role == "patient" and not living else 0.0
            score += 0.3 if mention.form == "poss" and living else 0.0
            scored.append((score, entity.id))
        return self.entities[max(scored)[1]] if scored else None

    def _dummy(self, mention: Mention) -> bool:
        """Whether "it" means nothing: "it was raining", "it was late", "it took an hour"."""
        clause, words = mention.clause, self.words
        if clause is None or mention.role != "agent":
            return False
        if words.has("weather_verbs", clause.lemma) or clause.lemma in ("take", "seem", "happen"):
            return clause.lemma != "take" or not any(
                f.role == "patient" and words.sort(f.token.lemma_) not in ("time", "abstract") for f in clause.fillers
            )
        states = [token.lemma_.lower() for token in clause.state]
        if any(
            state in words.sets["seasons"] or words.has("time_nouns", state) or words.group("times", state)
            for state in states
        ):
            return True
        if not states and clause.time and clause.lemma == "be":
            return True
        return any(words.has("dummy_adjectives", state) for state in states) and clause.lemma in (
            "be",
            "get",
            "become",
            "grow",
        )

    def _they(self, mention: Mention) -> Known | None:
        barred = self._others(mention)
        verb = mention.clause.lemma if mention.clause is not None else ""
        acts = (mention.role == "agent" and self.words.has("volition", verb)) or mention.form == "poss"
        scored: list[tuple[float, str]] = []
        for entity in self.entities.values():
            far = mention.sentence - self._at(entity, mention)
            if (
                not (entity.plural or entity.kind == "group")
                or entity.id in barred
                or entity.last is None
                or not -1 < far <= _FAR
            ):
                continue
            if (
                entity.narrator
                or entity.kind == "abstract"
                or any(self.entities[item].narrator for item in entity.members)
            ):
                continue
            living = entity.kind in ("group", *_ALIVE) or entity.acts
            score = self._score(entity, mention) + (0.5 if living and (acts or mention.role == "agent") else 0.0)
            score -= 0.8 if self.words.sort(entity.noun) in ("body", "clothing") and mention.role == "agent" else 0.0
            scored.append((score + (0.2 if entity.members else 0.0), entity.id))
        best = max(scored, default=None)
        if best is not None and best[0] > -1.6:
            return self.entities[best[1]]
        near = [
            e
            for e in self.entities.values()
            if e.kind in _ALIVE
            and not e.plural
            and e.last
            and mention.sentence - e.last.sentence <= 3
            and not e.narrator
        ]
        near.sort(key=lambda e: e.last.key if e.last else (0, 0), reverse=True)
        free = [e for e in near if e.id not in barred]
        if len(free) >= 2:
            return self.entities[self._group(tuple(e.id for e in reversed(free[:2])), mention)]
        return self.entities[best[1]] if best else free[0] if free else None

    # ---- what a mention tells

    def _note(self, entity: Known, mention: Mention) -> None:
        mention.entity = entity.id
        if not entity.sentences or entity.sentences[-1] != mention.sentence:
            entity.sentences.append(mention.sentence)
            entity.sentences.sort()
        aside = mention.quoted or mention.token.dep_ in ("appos", "attr")
        if mention.form == "poss" and entity.last is not None and entity.last.sentence == mention.sentence:
            aside = True  # "It lost its battery": what counts is that it was the subject
        if entity.last is None or not aside:
            entity.last = mention
        entity.placed = entity.placed or not mention.quoted
        clause = mention.clause
        if (
            clause is not None
            and mention.role == "agent"
            and (self.words.has("volition", clause.lemma) or clause.lemma in ("say",))
        ):
            entity.acts = entity.acts or not clause.negated
        if mention.pronoun or mention.inner is not None:
            return
        self._describe(entity, mention)

    def _describe(self, entity: Known, mention: Mention) -> None:
        words = self.words
        names = [mention.name] if mention.name and not words.has("kin", mention.name.lower()) else []
        names += [name for kind, name in mention.also if kind == "name"]
        nouns = [
            noun
            for noun in (
                self._canonical(mention.noun),
                mention.noun,
                *(n for kind, n in mention.also if kind == "noun"),
            )
            if noun
        ]
        nouns += [
            title.lower()
            for title in mention.titles
            if words.group("titles", title.lower()) == "any" or words.has("kin", title.lower())
        ]
        entity.names += [item for item in names if item not in entity.names]
        entity.nouns += [item for item in nouns if item not in entity.nouns]
        entity.titles += [item for item in mention.titles if item not in entity.titles]
        entity.adjectives += [item for item in mention.adjectives if item not in entity.adjectives]
        if mention.text not in entity.phrases:
            entity.phrases.append(mention.text)
        entity.noun = entity.noun or (
            mention.noun if not words.has("titles.any", mention.noun) or not mention.name else ""
        )
        entity.plural = entity.plural or mention.plural
        entity.count = (
            mention.count if mention.plural and not entity.members and entity.count in (0, 1) else entity.count
        )
        self.characterise(entity, [*nouns, *(title.lower() for title in mention.titles)], mention.adjectives)
        for member in entity.members:
            self.characterise(self.entities[member], [mention.noun], ())
        for name in names:
            if name in self.sexes:
                entity.votes[self.sexes[name]] += _SURE

    def characterise(self, entity: Known, nouns: Sequence[str], adjectives: Sequence[str]) -> None:
        """Take sex, age and kind from nouns, titles and adjectives."""
        words = self.words
        for noun in nouns:
            sex = self._noun_sex(noun) or self._title_sex(noun)
            if sex is not None and not entity.plural:
                entity.votes[sex] += 3.0
            age = self._noun_age(noun)
            if age is not None and (entity.age is None or age == "old") and entity.kind != "thing":
                entity.age = age
            sort = words.sort(noun)
            if sort in _ALIVE and entity.kind in ("person", "thing", "abstract") and noun not in words.sets["titles"]:
                entity.kind = "animal" if sort == "animal" else "being" if sort == "being" else entity.kind
        if entity.kind in _ALIVE:
            if any(words.has("old_looks", word) for word in (*adjectives, *nouns)) and entity.age != "child":
                entity.age = "old"
            person = entity.kind == "person"
            little = any(
                words.has("young_looks", word) and (person or word in ("young", "baby")) for word in adjectives
            )
            if little and entity.age is None:
                entity.age = "child"
            if entity.age is None and any(noun.rstrip(".") in ("mr", "mrs", "madam", "sir") for noun in nouns):
                entity.age = "adult"


def finish(entity: Known, entities: Mapping[str, Known], words: Words) -> Entity:
    """Return the record of a gathered entity."""
    alive = entity.kind in (*_ALIVE, "group")
    name = _called(entity, entities, words)
    return Entity(
        id=entity.id,
        name=name,
        noun=entity.noun,
        kind=entity.kind,
        sort=words.sort(entity.noun),
        character=(alive or entity.acts) and entity.placed,
        named=bool(entity.names),
        sex=entity.sex if not entity.plural else None,
        age=entity.age,
        aliases=tuple(dict.fromkeys(item for item in (*entity.names, *entity.phrases) if item and item != name)),
        titles=tuple(entity.titles),
        looks=tuple(entity.adjectives),
        count=entity.count,
        members=entity.members,
        owner=entity.owner,
        kin=tuple(entity.kin),
        narrator=entity.narrator,
        sentences=tuple(dict.fromkeys(entity.sentences)),
    )


def _called(entity: Known, entities: Mapping[str, Known], words: Words, depth: int = 0) -> str:
    """What to call it: its name with its title, whose brother it is, or what the text first calls it."""
    if entity.names:
        title = next((t for t in entity.titles if words.group("titles", t.lower().rstrip("."))), "")
        return f"{title} {max(entity.names, key=len)}".strip()
    if entity.narrator:
        return "the narrator"
    if entity.members and depth < _DEEPEST:
        return " and ".join(_called(entities[item], entities, words, depth + 1) for item in entity.members)
    owner = next((kin.other for kin in entity.kin), entity.owner) if not entity.plural else entity.owner
    phrase = next((phrase for phrase in entity.phrases if phrase), "")
    first, _, rest = phrase.partition(" ")
    if words.has("pronouns", first.lower()) and owner is not None and owner in entities and depth < _DEEPEST:
        if entities[owner].narrator:
            return f"my {rest}"
        return f"{_called(entities[owner], entities, words, depth + 1)}'s {rest}"
    if first.lower() in ("a", "an", "the", "some", "this", "that", *words.sets["pronouns"]):
        return f"the {rest}" if rest else "someone"
    if not phrase:
        return "everyone" if entity.plural else "someone"
    return phrase if phrase != phrase.lower() or entity.kind not in _ALIVE else f"the {phrase}"
