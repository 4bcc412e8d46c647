"""Who is who in a story: mentions, names and pronouns to the same character, by looks, number, gender and recency."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from katha.language.chunks import Noun
from katha.language.lexicon import Grammar
from katha.language.looks import clash

__all__ = ["Cast", "Member"]

_MANY = 3
"""How many of "the animals" are shown."""


@dataclass
class Member:
    """One character of a story, or a group of one kind (`count` at least 2). `heard` counts its mentions."""

    concept: str
    word: str
    name: str | None = None
    attributes: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    gender: str = "any"
    count: int = 1
    heard: int = 0
    last: int = 0
    unsure: bool = False

    @property
    def plural(self) -> bool:
        """Whether this is a group."""
        return self.count > 1


class Cast:
    """The characters met so far. Every method is deterministic; nothing is ever guessed at random."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.members: list[Member] = []
        self.subject: list[Member] = []
        self.thing: str | None = None
        self.things: str | None = None
        self.clock = 0
        self.kinfolk: dict[int, tuple[Noun, list[Member]]] = {}  # "his father hid and spoke": one father, not his own

    def meet(
        self,
        noun: Noun,
        *,
        others: list[Member] | None = None,
        speaker: list[Member] | None = None,
        quiet: bool = False,
    ) -> list[Member]:
        """Whom `noun` means: one member, several for "they", none for a thing or a stranger in a pronoun.

        `others` are the members that it cannot mean (the subject, for an object); `speaker` is who "I" is. A `quiet`
        mention (in speech) does not make anybody the one that was named last.
        """
        self.clock += 1
        if noun.none:
            return []
        if id(noun) in self.kinfolk:
            return self.kinfolk[id(noun)][1]
        if noun.kind == "pronoun":
            found = self._pronoun(noun, others or [], speaker or [], quiet)
        elif noun.kind == "referring":
            found = self._referring(noun, others or [])
        elif noun.kind in {"character", "name"}:
            found = self._described(noun)
        else:
            found = []
        if self._own(noun):
            self.kinfolk[id(noun)] = (noun, found)
        for member in found:
            member.heard += 1
            if not quiet:
                member.last = self.clock
        return found

    def introduce(self, name: str, kind: Noun | None) -> None:
        """Somebody known by name alone ("Ravi ran"), or told to be of a kind ("Moti was a donkey").

        Without a kind it is a man, until "she" says that it is a woman.
        """
        if any(member.name == name for member in self.members):
            return
        if kind is not None:
            self._described(replace(kind, name=name))
        else:
            self.members.append(Member("man", "man", name, unsure=True, last=self.clock))

    # -- descriptions ------------------------------------------------------------------------------------------

    def _described(self, noun: Noun) -> list[Member]:
        if noun.kind == "name":
            return self._named(noun)
        namesake = next((member for member in self.members if noun.name and member.name == noun.name), None)
        if namesake is not None and namesake.unsure:  # "Dharma, the merchant" was only a name until now
            namesake.concept, namesake.word, namesake.unsure = str(noun.concept), noun.word, False
        apart = self._all_of_a_kind(noun)
        if apart:
            return apart
        member = self._match(noun) or self._hypernym(noun)
        if member is None:
            member = self._join(noun)
        member.attributes.extend(look for look in noun.attributes if look not in member.attributes)
        member.labels.extend(label for label in noun.labels if label not in member.labels)
        member.name = member.name or noun.name
        if noun.plural and not member.plural:
            member.count = noun.count
        return [member]

    def _all_of_a_kind(self, noun: Noun) -> list[Member]:
        """ "the two mice" for the two that were met one by one."""
        single = [member for member in self.members if member.concept == noun.concept and not member.plural]
        group = any(member.concept == noun.concept and member.plural for member in self.members)
        meant = noun.plural and noun.definite and not group and len(single) > 1
        return single if meant and noun.count in {len(single), 3} else []

    def _named(self, noun: Noun) -> list[Member]:
        return [member for member in self.members if member.name == noun.name][:1]

    def _match(self, noun: Noun) -> Member | None:
        same = [member for member in self.members if member.concept == noun.concept and self._fits(member, noun)]
        if not same and noun.definite and self.grammar.has("titles", noun.word):
            same = [member for member in self.members if noun.word in member.labels and not member.plural]
        if noun.fresh or ("other" in noun.labels and len(same) < 2):
            return next((member for member in same if "other" in member.labels and not noun.fresh), None)
        if "other" in noun.labels:
            return min(same, key=lambda member: member.last)
        exact = [member for member in same if set(noun.attributes) <= set(member.attributes)]
        shared = [member for member in exact if noun.labels and set(noun.labels) & set(member.labels)]
        candidates = shared or exact or same
        return max(candidates, key=lambda member: ("other" not in member.labels, member.last)) if candidates else None

    def _fits(self, member: Member, noun: Noun) -> bool:
        either = noun.definite and self.grammar.inflector.plural(noun.word) == noun.word  # "the sheep" of a flock
        if member.plural != noun.plural and not either:
            return False
        if noun.name is not None and member.name not in {None, noun.name}:
            return False
        if clash(tuple(member.attributes), noun.attributes):
            return False
        mine, theirs = set(noun.labels), set(member.labels)
        if mine and theirs and not mine & theirs and "other" not in mine:
            return False
        if self._by_name_alone(member, noun):
            return False
        if self._own(noun) and member in self.subject:
            return False
        gender = self._gender_of(noun.word)
        if gender != "any" and member.gender not in {"any", gender}:
            return False
        family = self.grammar.words["plain_people"]
        if member.word == noun.word or noun.concept not in family or noun.word in family or member.word in family:
            return True
        return any(member.word in kin and noun.word in kin for kin in self.grammar.kin)

    def _by_name_alone(self, member: Member, noun: Noun) -> bool:
        """Whether all that is known of `member` is a name, and so not that it is "the judge" or a father."""
        plain = self.grammar.words["plain_people"]
        return member.name is not None and member.word in plain and noun.name is None and noun.word not in plain

    def _by_trade(self, member: Member) -> bool:
        """Whether `member` is a man or woman told apart by what they are ("the judge"), and so nobody's father yet."""
        plain = self.grammar.words["plain_people"]
        kin = frozenset().union(*self.grammar.kin)
        return member.concept in plain and member.word not in plain | kin

    def _own(self, noun: Noun) -> bool:
        """Whether this is somebody's father, son or wife, and so not that somebody."""
        return noun.possessor is not None and any(noun.word in kin for kin in self.grammar.kin)

    def _hypernym(self, noun: Noun) -> Member | None:
        """ "the bird" for the crow, "the man" for the farmer: only for a definite mention."""
        kinds = self.grammar.hypernyms.get(noun.word, ())
        if not noun.definite or noun.plural or noun.attributes:
            return None
        fits = [member for member in self.members if member.concept in kinds and not member.plural]
        fits = [member for member in fits if not (self._own(noun) and member in self.subject)]
        fits = [member for member in fits if not self._by_name_alone(member, noun)]
        fits = [member for member in fits if not (self._own(noun) and self._by_trade(member))]
        plain = self.grammar.words["plain_people"]
        return max(fits, key=lambda one: (one.concept not in plain or one.word in plain, one.last)) if fits else None

    def _human(self, noun: Noun) -> str | None:
        return noun.concept if noun.concept in self.grammar.words["people"] else None

    def _join(self, noun: Noun) -> Member:
        assert noun.concept is not None
        labels = ["other"] if noun.fresh else []
        member = Member(
            noun.concept,
            noun.word,
            noun.name,
            labels=labels,
            gender=self._gender_of(noun.word, self._human(noun)),
            count=noun.count,
        )
        self.members.append(member)
        return member

    def _gender_of(self, word: str, concept: str | None = None) -> str:
        names = {word, (concept or "").replace("_", " ")}
        if names & self.grammar.words["feminine"]:
            return "f"
        return "m" if names & self.grammar.words["masculine"] else "any"

    # -- pronouns ----------------------------------------------------------------------------------------------

    def _pronoun(self, noun: Noun, others: list[Member], speaker: list[Member], quiet: bool) -> list[Member]:
        pronoun = self.grammar.pronouns[noun.word]
        gender = pronoun["gender"]
        if gender == "speaker":
            return speaker
        if gender == "hearer":
            rest = [member for member in self._recent() if member not in speaker]
            return rest[:1]
        if gender not in {"m", "f", "n", "any"}:
            return []
        if noun.word.endswith(("self", "selves")):
            return list(self.subject)
        if noun.plural:
            return self._they(others)
        fits = [m for m in self._recent() if not m.plural and m not in others and self._agrees(m, gender)]
        sure = [member for member in fits if member.gender == gender]
        subject = [member for member in self.subject if member in fits and member.gender in {"any", gender}]
        if len(self.subject) > 1 and len(subject) != 1:  # "the lions made him king. He ...": none of several
            subject = []
            fits = [member for member in fits if member not in self.subject] or fits
        chosen = ((subject if not others else []) or (sure if others else []) or fits)[:1]
        if chosen and chosen[0].gender == "n" and sure:
            chosen = sure[:1]
        for member in [] if quiet else chosen:
            member.gender = gender if member.gender == "any" else member.gender
            if member.unsure and gender == "f":
                member.concept = member.word = "woman"
            member.unsure = member.unsure and gender not in {"m", "f"}
        return chosen

    def _agrees(self, member: Member, gender: str) -> bool:
        human = member.concept in self.grammar.words["people"]
        if gender == "n":
            return not human
        return member.gender in {"any", "n", gender} and not (human and member.gender == "n")

    def _they(self, others: list[Member]) -> list[Member]:
        groups = [member for member in self._recent() if member.plural and member not in others]
        if len(self.subject) > 1 and not others:
            return list(self.subject)
        if groups:
            return groups[:1]
        pair = [member for member in self._recent() if member not in others][:2]
        return pair if len(pair) > 1 or not others else []

    def _referring(self, noun: Noun, others: list[Member]) -> list[Member]:
        if not noun.definite:
            return []
        people = self.grammar.words["people"]
        if noun.plural and self.grammar.has("beasts", noun.word):
            fits = [member for member in self._recent() if member.concept not in people and not member.plural]
            fits = [member for member in fits if member not in [*others, *self.subject] and member.last]
            kinds = dict.fromkeys(member.concept for member in fits)
            fits = [next(member for member in fits if member.concept == kind) for kind in kinds]
            return fits[:_MANY]
        beasts = self.grammar.has("beasts", noun.word)
        owner = self.subject if noun.word in self.grammar.words["mates"] else []
        fits = [
            member
            for member in self._recent()
            if member not in others and member not in owner and not (beasts and member.concept in people)
        ]
        if noun.plural:
            alike = [member for member in fits if member.plural and owner and member.concept == owner[0].concept]
            return alike[:1] if owner else fits[:2]
        return fits[:1]

    def _recent(self) -> list[Member]:
        return sorted(self.members, key=lambda member: -member.last)
