"""Who and what is in a story: mentions joined into entities over the whole text.

The text is gone through several times. What was certain about names ("her brother Tom", a title, a pronoun with one
possible antecedent) is used from the first word on, and of those of whom it is not told whether they are he or she,
that is supposed with which the pronouns fit best. Names say nothing about sex by themselves: there is no list of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from katha_sketch.english.antecedents import Antecedents
from katha_sketch.english.beasts import apart, beast_named
from katha_sketch.english.clauses import is_row
from katha_sketch.english.known import ALIVE, Known, Memory, Speaking
from katha_sketch.english.mentions import Key, Mention
from katha_sketch.english.repairs import lemma_of
from katha_sketch.english.types import EntityKind
from katha_sketch.english.words import Words

if TYPE_CHECKING:
    from spacy.tokens import Token

__all__ = ["Resolver"]

_NOWHERE = Speaking()
_COUPLE = 2
_KIN_NEAR = 4
_OPENING = 2
_INITIALS = re.compile(r"(?:[A-Z]\.? ?)+")


class Resolver:
    """One pass over a text's mentions."""

    def __init__(self, mentions: Mapping[Key, Mention], words: Words, sexes: Mapping[Key, str]) -> None:
        """Begin. sexes: what this pass supposes of those first named by a word."""
        self.mentions = mentions
        self.words = words
        self.memory = Memory(mentions, words, sexes)
        self.entities = self.memory.entities
        self.pronouns = Antecedents(self.memory, self.resolve)
        self.towns = _named_places(mentions.values(), words)
        self.speaking: Mapping[int, Speaking] = {}

    def told(self) -> None:
        """Resolve what the narrator says."""
        self._all(mention for mention in self.mentions.values() if not mention.quoted)

    def said(self, speaking: Mapping[int, Speaking]) -> None:
        """Resolve what stands in quotes. speaking: by the number of the piece."""
        self.speaking = speaking
        self._all(mention for mention in self.mentions.values() if mention.quoted)

    def _all(self, mentions: Iterable[Mention]) -> None:
        for mention in sorted(mentions, key=lambda item: item.key):
            self.resolve(mention)
            if mention.joined:
                self._join(mention)

    def resolve(self, mention: Mention) -> Known | None:
        """Return whom or what a mention names, and note it."""
        if mention.entity is not None:
            return self.entities[mention.entity]
        if mention.pronoun and mention.form == "own":
            found = self._own(mention)
        elif mention.pronoun:
            said = self.speaking.get(mention.key[0], _NOWHERE) if mention.quoted else _NOWHERE
            found = self.pronouns.resolve(mention, said)
        else:
            found = self._noun(mention)
        if found is not None:
            self._note(found, mention)
        return found

    def _at(self, key: Key | None) -> Known | None:
        """The entity of a word, found now if it was not before."""
        mention = self.mentions.get(key) if key is not None else None
        return self.resolve(mention) if mention is not None else None

    def _owner(self, mention: Mention) -> str | None:
        owner = self._at(mention.owner)
        return owner.id if owner is not None else None

    def _own(self, mention: Mention) -> Known | None:
        """ "His", "mine": another of what was named last, whose owner the pronoun is."""
        like = max(
            (
                e
                for e in self.memory.near(mention, 2)
                if e.kind == "thing" and e.noun and not e.members and self.words.sort(e.noun) != "body"
            ),
            key=lambda e: e.last.key if e.last is not None else (0, 0),
            default=None,
        )
        mention.form = "poss"
        owner = self.pronouns.resolve(mention, self.speaking.get(mention.key[0], _NOWHERE))
        if like is None or owner is None:
            return owner
        one = self.memory.new(like.kind)
        one.noun, one.nouns, one.owner, one.phrases = like.noun, list(like.nouns), owner.id, [f"his {like.noun}"]
        return one

    # ---- groups

    def _join(self, mention: Mention) -> None:
        """Make a group of what is joined ("Priya and her brother"), once its last one is known."""
        found = [self._at(key) for key in mention.joined]
        members = tuple(dict.fromkeys(one.id for one in found if one is not None))
        if len(members) > 1 and not self._spelt_out(members, mention):
            self.memory.group(members, mention)

    def _spelt_out(self, members: tuple[str, ...], mention: Mention) -> bool:
        """Whether the names say who a group is: "two brothers, Aarav and Dev"."""
        head = self.mentions.get((mention.key[0], mention.token.head.i))
        group = self.memory.of(head) if mention.token.dep_ == "appos" else None
        if group is None or not group.plural or (head is not None and is_row(head.token, mention.token)):
            return False
        group.members, group.count = members, len(members)
        self.memory.groups.append(group.id)
        for one in members:
            self.characterise(self.entities[one], group.nouns, group.adjectives)
            if self.words.has("kin_equal", group.noun):
                for other in members:
                    self.memory.tie(self.entities[one], group.noun, other)
        return True

    # ---- nouns and names

    def _noun(self, mention: Mention) -> Known | None:
        words = self.words
        if mention.article == "no" or mention.noun in words.sets["negative"]:
            return None
        if mention.inner is not None and mention.inner in self.mentions:
            return self._at(mention.inner)  # "a slice of bread" is bread, "the middle of the road" the road
        same = self._equal(mention) if mention.token.dep_ in ("appos", "attr") else None
        owner = self._owner(mention) if same is None or words.has("kin", mention.noun) else None
        if same is not None:
            if owner is not None and not same.plural and owner != same.id:
                self.memory.tie(same, self._canonical(mention.noun), owner)  # "Gus, her grandson"
            return same
        owner = owner or self._having(mention)
        if mention.name and not words.has("kin", mention.name.lower()):
            return self._named(mention, owner)
        kin = self._kin(mention, owner) if mention.name or owner or words.has("kin", mention.noun) else None
        return kin or self._described(mention, owner)

    def _having(self, mention: Mention) -> str | None:
        """Whose kin is told of as had: "Tilda had a brother, Max"."""
        clause = mention.clause
        told = clause is not None and clause.lemma == "have" and mention.role == "patient" and mention.article == "a"
        if clause is None or not told or clause.negated or not self.words.has("kin", mention.noun):
            return None
        agent = next(iter(clause.of("agent")), None)
        who = self._at((mention.key[0], agent.i)) if agent is not None else None
        return who.id if who is not None and who.alive else None

    def _equal(self, mention: Mention) -> Known | None:
        """Who an apposition or a predicate speaks of: "Mr Brown was the baker"."""
        head: Token | None = mention.token.head
        if mention.token.dep_ == "attr" and head is not None:
            told = not any(child.dep_ in ("neg", "expl") for child in head.children) and head.lemma_ == "be"
            above = head.head if head.dep_ == "relcl" else None
            head = next((child for child in head.children if child.dep_ == "nsubj"), None) if told else None
            if head is not None and head.lower_ == "who" and above is not None:
                head = above  # "Defne, who had been his apprentice for a day"
            if head is not None and head.lemma_ == "name" and mention.name:
                return self._at(self.mentions[mention.key[0], head.i].owner)
        elif any(child.dep_ == "cc" for child in mention.token.children):
            return None
        other = self.mentions.get((mention.key[0], head.i)) if head is not None else None
        known = self.memory.of(other)
        if known is None or mention.plural or (mention.owner is not None and self._owner(mention) == known.id):
            return None
        sorts = {self.words.sort(noun) for noun in (known.noun, mention.noun)}
        if {"person", "animal"} <= sorts:
            return None  # "The only one who saw it was his parrot"
        alive = known.kind in ALIVE or known.acts or known.vague
        lives = mention.name or self._kind(mention) in ALIVE or (known.narrator and self._speaks_as(mention))
        return known if alive and lives else None

    def _speaks_as(self, mention: Mention) -> bool:
        """Whether a thing tells its own story: "I am an old tram"."""
        plain = not any(child.dep_ in ("prep", "relcl", "compound") for child in mention.token.children)
        begins = mention.sentence <= _OPENING and mention.article == "a" and mention.token.head.lower_ in ("am", "'m")
        return begins and plain and self._kind(mention) in ("thing", "place")

    def _family(self, mention: Mention) -> Known | None:
        """The family of somebody who is known by its name: "the Bianchis"."""
        name = mention.name.removesuffix("s")
        members = [e.id for e in self.entities.values() if name in e.names and not e.plural] if mention.plural else []
        ties = [e.id for e in self.entities.values() if any(kin.other in members for kin in e.kin) and e.alive]
        whole = tuple(dict.fromkeys((*members, *ties)))
        return self.memory.group(whole, mention) if len(whole) > 1 else None

    def _named(self, mention: Mention, owner: str | None) -> Known:
        family = self._family(mention)
        if family is not None:
            return family
        names, same = set(mention.name.split()), list[Known]()
        for entity in self.entities.values():
            if not entity.names or entity.plural != mention.plural:
                continue
            titles = (*entity.titles, *mention.titles)
            sexes: set[str] = {sex for title in titles if (sex := self.words.sexes.get(title.lower()))}
            sexes |= {str(entity.told_sex)} if entity.sure and entity.told_sex else set()
            sexes |= {sex for kind, noun in mention.also if kind == "noun" and (sex := self.words.sexes.get(noun))}
            shared = any(names & set(known.split()) for known in entity.names)
            whole = any(names <= set(known.split()) or set(known.split()) <= names for known in entity.names)
            if shared and whole and len(sexes) < 2 and not apart(entity, mention, self.words):
                same.append(entity)
        if same:
            beast = self.words.sort(mention.noun) in ("animal", "being") and not mention.titles
            return (self.memory.nearest(same, mention) if beast else None) or same[0]
        trades = {self.words.lemmas.get(title.lower(), title.lower()) for title in mention.titles}
        for entity in self.entities.values():
            if trades & set(entity.nouns) and not entity.names and not entity.plural and not entity.members:
                return entity  # "the doctor", then "Dr Lund"
        unnamed = self._unnamed(mention)
        if unnamed is not None:
            return unnamed
        kin = next((title.lower() for title in mention.titles if self.words.has("kin", title.lower())), None)
        if kin is not None and owner is not None:
            entity = self.memory.new("person")  # "my little brother Kwame"
            self.memory.tie(entity, self._canonical(kin), owner)
            return entity
        if mention.noun and mention.owner:
            return self._described(mention, owner)
        return self.memory.new("group" if mention.plural else self._kind(mention))

    def _unnamed(self, mention: Mention) -> Known | None:
        """The one who is told of as kin without a name, and then by name: "saw her brother slip. Jonas hung there"."""
        elder = {title.lower() for title in mention.titles if self.words.has("elders", title.lower())}
        titled = bool(mention.titles) and not elder
        bare = not (titled or mention.noun or mention.also or mention.plural or mention.quoted)
        known = mention.token.dep_ not in ("conj", "appos", "poss") and len(mention.joined) < _COUPLE
        here = mention.clause is not None and mention.clause.existential  # "There was Biscuit"
        if not bare or not known or here or mention.role not in ("agent", "patient", "recipient"):
            return None
        near = [e for e in self.memory.near(mention, _KIN_NEAR) if e.kin and e.kind == "person" and not e.plural]
        unnamed = [
            e
            for e in near
            if not e.names
            and not e.members
            and (
                elder & self.words.sets.get(f"elders.{e.noun}", frozenset())
                or (not elder and not self.words.has("kin_parent", e.noun))
            )
        ]  # "his grandfather ... Baba Karim"
        free = [e for e in unnamed if e.id not in self._beside(mention)]
        return free[0] if len(free) == len(unnamed) == 1 else None

    def _kind(self, mention: Mention) -> EntityKind:
        words, noun = self.words, mention.noun
        sort = words.sort(noun)
        if mention.made and not mention.name and sort in ("person", "animal"):
            return "thing"  # a plastic dancer
        if noun and (words.has("kin", noun) or sort == "person"):
            return "person"
        if words.has("group", noun):
            return "group"
        if sort in ("animal", "being"):
            return "animal" if sort == "animal" else "being"
        if mention.name and mention.name in self.towns:
            return "place"
        if mention.name and not sort and mention.article == "the" and not mention.titles and not mention.plural:
            return "thing"  # "the bow of the Halcyon"
        if mention.name and not sort:
            return "abstract" if _INITIALS.fullmatch(mention.name) and not self._acts(mention) else "person"
        if words.is_place(noun) and sort != "vehicle" and not words.has("movable", noun):
            return "place"
        return "abstract" if sort in ("abstract", "feeling", "time") else "thing"

    def _acts(self, mention: Mention) -> bool:
        return _acts(mention, self.words)

    def _canonical(self, noun: str) -> str:
        return self.words.group("kin_same", noun) or noun

    def _kin(self, mention: Mention, owner: str | None) -> Known | None:
        """The one who is somebody's mother, brother, friend: "her mother", "Mum"."""
        noun = self._canonical((mention.name or mention.noun).lower())
        if not self.words.has("kin", noun) or mention.plural:
            return None
        every = self.entities.values()
        same = [e for e in every if noun in {self._canonical(known) for known in e.nouns} and not e.plural]
        if owner is not None:
            tied = [e for e in every if not e.plural and self._is_tied(e, noun, owner)]
            owner = owner if tied else self._known_kin(mention, noun, same) or owner
            tied = tied or [e for e in every if not e.plural and self._is_tied(e, noun, owner)]
            free = [e for e in same if not any(kin.relation == noun for kin in e.kin)]
            found = tied or self._mutual(noun, owner) or self._spouse(noun, owner) or free
        else:
            found = same if mention.name or mention.article in ("the", "this") else []
        entity = self.memory.nearest(found, mention) if found else None
        if entity is None and (owner is not None or mention.name):
            entity = self.memory.new("person")
        if entity is not None and owner is not None:
            self.memory.tie(entity, noun, owner)
        return entity

    def _known_kin(self, mention: Mention, noun: str, same: Sequence[Known]) -> str | None:
        """Whose brother "her brother" must be who was told of: hers, whom this sentence does not name for once."""
        whose = self.mentions.get(mention.owner or (0, 0))
        if whose is None or whose.pronoun not in ("he", "she"):
            return None
        named = (one for one in self.mentions.values() if one.sentence == mention.sentence and one is not whose)
        if any(one.entity == whose.entity for one in named):
            return None
        ties = [kin.other for e in same for kin in e.kin if kin.relation == noun]
        sex = "male" if whose.pronoun == "he" else "female"
        found = {key for key in ties if self.entities[key].told_sex == sex and not self.entities[key].plural}
        if len(found) == 1:
            whose.entity = next(iter(found))
        return whose.entity if found else None

    def _is_tied(self, entity: Known, relation: str, owner: str) -> bool:
        """Whether one is the other's mother; what is a member's is the group's."""
        others = {owner, *self.entities[owner].members} if relation not in self.words.sets["kin_equal"] else {owner}
        return any(
            kin.relation == relation and (kin.other in others or owner in self.entities[kin.other].members)
            for kin in entity.kin
        )

    def _mutual(self, noun: str, owner: str) -> list[Known]:
        """Who must be meant because of the tie the other way: Kofi, if "his sister Abena" and "her brother"."""
        sex, words, found = self.words.sexes.get(noun), self.words, []
        for kin in self.entities[owner].kin:
            sides = ((noun, kin.relation), (kin.relation, noun))
            alike = words.has("kin_equal", noun) and words.has("kin_equal", kin.relation)
            across = any(words.has("kin_child", a) and words.has("kin_parent", b) for a, b in sides)
            other = self.entities.get(kin.other)
            if (alike or across) and other is not None and not other.plural and other.sex in (sex, None):
                found.append(other)
        return found

    def _spouse(self, noun: str, owner: str) -> list[Known]:
        """Who makes a couple with somebody: "Rosa and Henry ... her husband"."""
        if noun not in ("husband", "wife"):
            return []
        pairs = [self.entities[key].members for key in self.memory.groups if owner in self.entities[key].members]
        others = [self.entities[one] for pair in pairs if len(pair) == _COUPLE for one in pair if one != owner]
        sex = self.words.sexes.get(noun)
        return [one for one in others if one.kind == "person" and one.sex in (sex, None) and one.age != "child"]

    def _described(self, mention: Mention, owner: str | None) -> Known:
        noun = mention.noun
        same = [e for e in self.entities.values() if noun in e.nouns and e.plural == mention.plural and not e.members]
        if owner is not None:
            ours = self._is_ours(owner)
            same = [e for e in same if e.owner in (owner, None) or (ours and self._is_ours(e.owner))]
        known = mention.article in ("the", "this") or owner is not None
        other = ("other", "second", "third", "new", "next", "another")
        fresh = mention.article in ("a", "other") or any(word in other for word in mention.adjectives)
        if same and not fresh and (known or mention.count != 1 or mention.article == ""):
            called = _in_words(mention).lower().split()[1:]  # "the country mouse" is not the town mouse
            like = [e for e in same if set(e.adjectives) & set(mention.adjectives)]
            like = like or [
                e for e in same if len(called) > 1 and any(called == p.lower().split()[1:] for p in e.phrases)
            ]
            unlike = [e for e in same if self._contrast(e.adjectives, mention.adjectives)]
            named = {name for kind, name in mention.also if kind == "name"}
            same = [e for e in same if not (named and e.names) or named & set(e.names)]
            found = self.memory.nearest([e for e in like if e in same] or [e for e in same if e not in unlike], mention)
            if found is not None:
                found.owner = found.owner or owner
                return found
        alias = self._alias(mention) if known and not fresh else None
        if alias is not None:
            return alias
        entity = self.memory.new("group" if mention.plural and self._kind(mention) in ALIVE else self._kind(mention))
        entity.owner = owner
        return entity

    def _is_ours(self, key: str | None) -> bool:
        """Whether somebody is the narrator, or several with the narrator: "our snowman"."""
        one = self.entities.get(key or "")
        among = (
            (*one.members, *(kin.other for kin in one.kin if kin.relation == "including")) if one is not None else ()
        )
        return one is not None and (one.narrator or any(self.entities[other].narrator for other in among))

    def _contrast(self, one: Sequence[str], two: Sequence[str]) -> bool:
        opposite = self.words.groups["opposites"]
        return any(b in opposite.get(a, "").split() for a in one for b in two)

    def _alias(self, mention: Mention) -> Known | None:
        """Somebody known by another word: "the girl" for Lena, "the captain" for Captain Ruiz, "the bird" for the crow,
        "the friends" for the two of them."""
        words, noun, memory = self.words, mention.noun, self.memory
        beside = self._named_beside(mention)
        near = [e for e in memory.near(mention) if not beside & self._names(e) and not self._acts_here(e, mention)]
        if mention.plural:
            return self._plural_alias(mention, near)
        alone = [e for e in near if not e.plural]
        wide = words.sets.get(f"general.{noun}", frozenset())
        titled = [e for e in alone if (wide | {noun}) & {title.lower() for title in e.titles}]
        under = [e for e in alone if e.noun in wide]
        doers = [e for e in alone if e.kind == "person" and e.deeds & _deeds_of(noun)]
        if titled or under or doers:
            return memory.nearest(titled or under or doers, mention)
        if noun in ("animal", "creature", "beast"):
            return memory.nearest([e for e in alone if e.kind in ("animal", "being")], mention)
        if words.has("pair", noun) and not (noun == "pair" and mention.adjectives):  # "the twelfth pair" of needles
            return self._plural_alias(mention, near)
        if words.has("beast_words", noun) and not any(e.kind == "person" and not e.narrator for e in alone):
            return memory.nearest([e for e in alone if e.kind in ("animal", "being")], mention)
        if not words.has("plain_person", noun):
            return None
        after = mention.token.nbor(1).lower_ if mention.token.i + 1 < len(mention.token.doc) else ""
        if words.has("apart", after):
            return None  # "the girl behind him", "the man at the desk" are others
        if any(
            child.tag_ == "JJS" or (child.dep_ == "amod" and child.text[0].isupper()) for child in mention.token.lefts
        ):
            return None  # "the tallest man" is one of several, "the Dutch girl" another
        able = [e for e in alone if self._could_be(e, mention)]
        age = words.ages.get(noun)
        sex = self.words.sexes.get(noun)
        known = [e for e in able if sex is not None and e.told_sex == sex]
        known = known or [e for e in able if sex is None and age == e.age == "child"]
        looks = set(mention.adjectives) - {"old", "young", "little", "poor", "good", "big"}
        other = [
            e
            for e in known
            if not (e.last is not None and e.last.role == "agent" and e.last.sentence >= mention.sentence - 1)
        ]
        known = other if looks and other else known  # "the sick man" is not the one who acts all the time
        # Who else is named in the clause is hardly the only one whom the words fit: it may be somebody new.
        return memory.nearest(known or (able if not beside else []), mention)

    def _names(self, entity: Known) -> set[str]:
        """The names of somebody, or of a group's members."""
        return {*entity.names, *(name for one in entity.members for name in self.entities[one].names)}

    def _beside(self, mention: Mention) -> set[str]:
        """Who else has a part in the same clause: "He asked the man" is no talk to himself."""
        fillers = mention.clause.fillers if mention.clause is not None else ()
        others = self.memory.beside(mention, (filler.token for filler in fillers))
        return {one.entity for one in others if one is not mention and one.entity is not None}

    def _acts_here(self, entity: Known, mention: Mention) -> bool:
        """Whether somebody does the deed itself: "The lawyer accused the man" is about two."""
        last, owned = entity.last, self.memory.owned.get(mention.key)
        clause = mention.clause or (owned.clause if owned is not None else None)
        above = clause.parent if clause is not None and clause.link == "content" else clause
        here = last is not None and last.clause is not None and (last.clause is clause or last.clause is above)
        same = last is not None and last.clause is clause and mention.role == "agent"
        own = last is not None and last.role == "agent" and not last.plural and not same
        return here and own

    def _named_beside(self, mention: Mention) -> set[str]:
        """The names in the same clause: "The young man helped Henry up" is not about Henry alone."""
        owned = self.memory.owned.get(mention.key)  # "Vera fell into the old man's arms": no more about Vera
        clause = mention.clause or (owned.clause if owned is not None else None)
        fillers = clause.fillers if clause is not None else ()
        others = self.memory.beside(mention, (filler.token for filler in fillers))
        return {other.name for other in others if other is not mention and other.name}

    def _could_be(self, entity: Known, mention: Mention) -> bool:
        if entity.kind != "person" or entity.narrator:
            return False
        sex, age = self.words.sexes.get(mention.noun), self.words.ages.get(mention.noun)
        if sex is not None and entity.sex not in (sex, None):
            return False
        if self._contrast(entity.adjectives, mention.adjectives):
            return False  # "a young nurse" is not "the old man"
        old = "old" in mention.adjectives
        if entity.age is not None and age is not None and (entity.age == "child") != (age == "child" and not old):
            return False
        persons = [noun for noun in entity.nouns if self.words.sexes.get(noun) or self.words.ages.get(noun)]
        plain = not entity.names and not persons and sex is not None and entity.sex is None
        return not plain and not (old and entity.age == "child")

    def _plural_alias(self, mention: Mention, near: Sequence[Known]) -> Known | None:
        noun, pair = mention.noun, self.words.has("pair", mention.noun)
        if any(child.dep_ == "relcl" for child in mention.token.children):
            return None  # "the young couple who had bought the flat" are told of as new
        if not pair and self.words.sort(noun) not in ALIVE and not self.words.has("kin", noun):
            return None
        count = 2 if pair else mention.count
        groups = [e for e in near if e.members and count in (0, len(e.members))]
        groups = [e for e in groups if pair or not any(self.entities[one].narrator for one in e.members)]
        kin = self.words.has("kin_equal", noun) and noun != "friend"
        fits = [e for e in groups if all(self._member_fits(self.entities[item], noun) for item in e.members)]
        several = [e for e in near if e.plural and not e.members and self._same_people(e, noun)]
        fits = fits or [e for e in several if count in (0, e.count) or not e.count]
        if fits:
            return self.memory.nearest(fits, mention)
        single = [e for e in near if e.alive and not e.narrator and self._member_fits(e, noun)]
        named = [e for e in single if e.names]
        single = named if len(named) > 1 else single
        single.sort(key=lambda e: e.sentences[-1] if e.sentences else 0, reverse=True)
        many = count or (len(single) if len(single) < 4 else 2)
        if len(single) < max(2, many) or (kin and len({e.age for e in single[: max(2, many)]}) > 1):
            return None
        return self.memory.group(tuple(e.id for e in single[: max(2, many)]), mention)

    def _same_people(self, entity: Known, noun: str) -> bool:
        """Whether a group without names can be called so: "the girls" of "her two daughters"."""
        words, other = self.words, entity.noun
        sexes, ages = (words.sexes.get(noun), words.sexes.get(other)), (words.ages.get(noun), words.ages.get(other))
        young = [age == "child" or words.has("kin_child", one) for one, age in zip((noun, other), ages, strict=True)]
        alike = sexes[0] is not None and sexes[0] == sexes[1]
        return words.has("plain_person", noun) and (alike or noun in ("child", "kid")) and young[0] == young[1]

    def _member_fits(self, entity: Known, noun: str) -> bool:
        if noun in entity.nouns or noun in ("friend", "two"):
            return True
        if self.words.has("pair", noun):
            return entity.kind == "person"
        sex, age = self.words.sexes.get(noun), self.words.ages.get(noun)
        if self.words.sort(noun) == "animal":
            return entity.kind == "animal" and noun == "animal"
        if not (self.words.has("plain_person", noun) or self.words.has("kin", noun)):
            return False  # "the firemen" are told of as new
        if self.words.has("kin", noun) and not (self.words.has("kin_equal", noun) or noun in ("parent", "grandparent")):
            return False
        old = entity.age in (age, None) or (age is None and self.words.has("kin", noun))
        right = entity.kind == "person" and entity.sex in (sex, None) and old
        return right and (sex is not None or age is not None)

    # ---- what a mention tells

    def _note(self, entity: Known, mention: Mention) -> None:
        words, clause = self.words, mention.clause
        mention.entity = entity.id
        if entity.first is None:
            entity.first, entity.unreal = mention, mention.unreal
            entity.given = self.memory.sexes.get(mention.key)
        entity.unreal = entity.unreal and (mention.unreal or bool(mention.pronoun))
        aside = mention.quoted or mention.token.dep_ in ("appos", "attr")
        if mention.form == "poss" and entity.last is not None and entity.last.sentence == mention.sentence:
            aside = True  # "It lost its battery": what counts is that it was the subject
        self.memory.heard(entity, mention.sentence)
        if entity.last is None or not aside:
            entity.last = mention
        entity.placed = entity.placed or not mention.quoted
        if clause is not None and mention.role == "agent" and not clause.negated:
            entity.deeds.add(clause.lemma)
            goes = entity.kind == "thing" and words.has("things_do", clause.lemma)  # an engine runs
            bears = (
                entity.kind != "person"
                and words.has("say", clause.lemma)
                and _bears_words(mention.noun or entity.noun, mention, words)
            )
            goes |= bears
            entity.acts |= (words.has("volition", clause.lemma) or clause.lemma == "say") and not goes
            entity.speaks = entity.speaks or (mention.speaks and not bears)
        if mention.pronoun:
            entity.names += [name for kind, name in mention.also if kind == "name" and name not in entity.names]
        if mention.pronoun or mention.inner is not None:
            return
        self._describe(entity, mention)

    def _describe(self, entity: Known, mention: Mention) -> None:
        words, also = self.words, mention.also
        own = [mention.name] if mention.name and not words.has("kin", mention.name.lower()) else []
        nouns = [self._canonical(mention.noun), mention.noun, *(noun for kind, noun in also if kind == "noun")]
        titles = [title.lower() for title in mention.titles]
        tells = not entity.noun or words.has("kin", entity.noun)
        beasts = [beast_named(name, (), words) for kind, name in also if kind == "name" and tells]
        beasts += [noun for noun in nouns if tells and words.sort(noun) == "animal"]
        entity.noun = next(filter(None, beasts), entity.noun)  # "her friend Mole", "her friend the town mouse"
        nouns += beasts
        nouns += [one for one in titles if words.group("titles", one) == "any" or words.has("kin", one)]
        told: tuple[tuple[list[str], Iterable[str]], ...] = (
            (entity.names, [*own, *(name for kind, name in also if kind == "name")]),
            (entity.nouns, filter(None, nouns)),
            (entity.titles, mention.titles),
            (entity.adjectives, mention.adjectives),
            (entity.phrases, [_in_words(mention)]),
        )
        for known, new in told:
            known += [one for one in dict.fromkeys(new) if one not in known]
        titled = words.has("titles.any", mention.noun) and mention.name
        entity.noun = entity.noun or ("" if titled else mention.noun or self.towns.get(mention.name, ""))
        entity.vague = False
        entity.plural = entity.plural or mention.plural
        if mention.plural and not entity.members and entity.count in (0, 1):
            entity.count = mention.count
        played = mention.article == "the" and not any(one.tag_ == "JJS" for one in mention.token.lefts)
        self.characterise(entity, [*filter(None, nouns), *titles], mention.adjectives, role=played)
        for member in entity.members:
            self.characterise(self.entities[member], [mention.noun], ())

    def characterise(
        self, entity: Known, nouns: Sequence[str], adjectives: Sequence[str], *, role: bool = False
    ) -> None:
        """Take sex, age and kind from nouns, titles and adjectives. role: it may only be played ("was the wolf")."""
        words = self.words
        for noun in nouns:
            sex = self.words.sexes.get(noun)
            if sex is not None and not entity.plural:
                entity.votes[sex] += 3.0
                entity.sure = True
            age = self.words.ages.get(noun)
            if age is not None and (entity.age is None or age == "old") and entity.kind != "thing":
                entity.age = age
            sort = words.sort(noun)
            made = entity.first is not None and entity.first.made
            changes = (
                not made
                and entity.kind in ("person", "thing", "abstract")
                and not (role and entity.names and sort != "being")
            )
            if sort in ("animal", "being") and changes and noun not in words.sets["titles"]:
                entity.kind = "animal" if sort == "animal" else "being"
        if entity.kind in ALIVE:
            if any(words.has("old_looks", word) for word in (*adjectives, *nouns)) and entity.age != "child":
                entity.age = "old"
            small = ("young", "baby") if entity.kind != "person" else words.sets["young_looks"]
            if entity.age is None and any(word in small for word in adjectives):
                entity.age = "child"
            if entity.age is None and entity.kind == "person" and "little" in nouns:
                entity.age = "child"  # Little Erik
            if entity.age is None and any(words.has("grown_titles", noun) for noun in nouns):
                entity.age = "adult"
            if entity.kind != "person" and any(words.has("young_titles", noun) for noun in nouns):
                entity.age = "child"  # Little Owl


def _acts(mention: Mention, words: Words) -> bool:
    """Whether a name does what no country does, or is given something: "Maria stood in the kitchen"."""
    verb = mention.clause.lemma if mention.clause is not None else ""
    idle = verb in ("", "be", "have", "lie", "become") or words.has("motion", verb)
    given = mention.role == "recipient" and mention.preposition != "for"
    return (mention.role == "agent" and not idle) or given or mention.role == "companion" or mention.speaks


def _in_words(mention: Mention) -> str:
    """How a text calls it; a noun that only begins a sentence has no capital: "Men in overalls came"."""
    text, first = mention.text, mention.token.left_edge
    begins = not mention.name and first.is_sent_start and first.pos_ == "NOUN" and text.startswith(first.text)
    return f"{text[:1].lower()}{text[1:]}" if begins and first.text.istitle() else text


def _bears_words(noun: str, mention: Mention, words: Words) -> bool:
    """Whether something only bears words: "the label said", "the clock said", but not "said the clock"."""
    shows = words.has("shows_words", noun) and mention.token.i < mention.token.head.i
    return words.is_a("text", noun) or shows


def _named_places(mentions: Iterable[Mention], words: Words) -> dict[str, str]:
    """The names of places, with the noun that is in them ("hotel" of "Hotel Miramar") or "": what things are in, at or
    from, and what never does what only somebody does."""
    alive: set[str] = set()
    placed: dict[str, str] = {}
    for mention in mentions:
        sorts = {words.sort(noun) for noun in (mention.noun, *(noun for kind, noun in mention.also if kind == "noun"))}
        if not mention.name:
            continue
        first, last = mention.name.lower().split()[0], mention.name.lower().split()[-1]
        ends = not (words.has("surnames_too", last) or _acts(mention, words))  # "Kestrel Park"
        either = dict.fromkeys((last, first) if ends else (first,))
        nouns = [one for one in either if words.is_place(one) and words.sort(one) != "vehicle"]
        whole = " " in mention.name and nouns and not mention.titles
        if mention.titles or sorts & {"person", "animal", "being"} or (_acts(mention, words) and not whole):
            alive |= set(mention.name.split())
        elif whole or words.sort(mention.name.lower()) == "region" or _is_where(mention, words):
            placed[mention.name] = nouns[0] if nouns else ""
    return {name: noun for name, noun in placed.items() if not alive & set(name.split())}


def _is_where(mention: Mention, words: Words) -> bool:
    """Whether a name tells where: "stopped at Brzeg", "the keeper from Los Olivos", "the colony on Ceres"."""
    prep, clause = mention.token.head, mention.clause
    if mention.token.dep_ != "pobj" or prep.dep_ != "prep":
        return False
    above, verb = prep.head, clause.lemma if clause is not None else ""
    noun = lemma_of(above) if above.pos_ in ("NOUN", "NUM") else ""
    lives = words.sort(noun) in ("person", "animal", "being") or words.has("group", noun)
    moves = words.has("motion", verb) and not words.has("carrying", verb)
    if prep.lower_ in ("in", "into", "near", "outside", "across", "through"):
        return True
    if prep.lower_ in ("at", "on"):
        return not (words.has("look_verbs", verb) or words.has("give", verb) or words.has("say", verb))
    if prep.lower_ in ("from", "of") and noun:
        told = words.is_place(noun) or words.has("of_places", noun)
        return told if prep.lower_ == "of" else lives or words.has("ways_from", noun)
    if prep.lower_ == "for" and words.has("works_for", verb):
        return True
    if prep.lower_ in ("to", "for", "towards", "toward"):
        return moves or words.sort(noun) == "vehicle" or words.has("ways_from", noun) or above.pos_ == "NUM"
    return prep.lower_ == "from" and moves


def _deeds_of(noun: str) -> set[str]:
    """The verbs that a noun for who does something may come of: "driver" of "drive", "runner" of "run"."""
    stem = noun[:-2] if noun.endswith("er") else ""
    return {stem, f"{stem}e", stem[:-1] if stem[-2:-1] == stem[-1:] else stem} - {"", "e"}
