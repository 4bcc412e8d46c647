"""One answer held against one accepted answer: is it said, and does nothing contradict it?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from katha_sketch.english.words import load_words
from katha_sketch.matching.asked import Asked, read_question
from katha_sketch.matching.doers import another_doer, another_owner, beside_the_point, is_kind, kept_from, turned
from katha_sketch.matching.statements import Frame, Statement, Word, read_statements
from katha_sketch.matching.wordnet import Lemma, apart, entails, explains, is_somebody, opposed, same, sex, usage

NOT_SAID = "no accepted answer is said"
EXCHANGED = "roles exchanged"
_TAKING_PART = ("agent", "other", "adjunct")
_LEADS = frozenset(["through", "with", "in", "on", "at", "over", "across", "under", "into"])
_ABOUT = frozenset(["at", "to", "for", "with", "about", "of", "from", "in"])
_QUERIES = frozenset(["where", "who", "when", "why", "how", "whether"])
SUBJECTS = {"him": "he", "her": "she", "it": "it", "them": "they"}
_SEXES = {"he": "male", "she": "female"}
NAMED = ("agent", "other", "what", "number")
Pairs = Sequence[tuple[Word, Word]]
"""Each word of an accepted answer with the word of the answer that says it."""


@dataclass(frozen=True)
class Accepted:
    """All accepted answers to a question as read: who acts in any of them, and every word in them."""

    asked: Asked
    items: tuple[Statement, ...]
    agents: tuple[Lemma, ...]
    words: tuple[Lemma, ...]

    def shares(self, lemma: Lemma) -> bool:
        """Return whether every accepted answer has this word, so that it is no detail."""
        texts = {item.given.lower() for item in self.items}
        return len(texts) > 1 and all(any(same(word.lemma, lemma) for word in item.words) for item in self.items)


@lru_cache(maxsize=2048)
def read_accepted(question: str, texts: tuple[str, ...]) -> Accepted:
    """Return the accepted answers as read."""
    asked = read_question(question)
    items = tuple(item for item in read_statements(texts, asked.asks) if item.words)
    main = ("", "conj", "because", "advcl")
    agents = [
        word.lemma
        for item in items
        for frame in item.frames
        if frame.link in main
        for word in item.filled(frame.agents)
    ]
    if not asked.topic:  # what is asked for acts
        agents += [word.lemma for item in items for word in item.words if word.frame < 0 and word.lemma[0] == "n"]
    purpose = any(item.lead == "to" for item in items)
    if not agents and not purpose and asked.asks == "why" and asked.verb and asked.verb[1] in usage().sets["repaying"]:
        agents = [lemma for lemma in asked.others if lemma in asked.people]  # "he" is who is scolded
    words = dict.fromkeys(word.lemma for item in items for word in item.words)
    return Accepted(asked, items, tuple(dict.fromkeys(agents)), tuple(words))


def _plain(word: Word) -> bool:
    """Whether a word is no name and stands under no negation of its own."""
    return not word.proper and not word.denied


def _any(lemma: Lemma, known: Iterable[Lemma]) -> bool:
    """Whether a word is one of those known, a kind of one, or what one is a kind of."""
    return any(entails(lemma, other) or entails(other, lemma) for other in known)


@dataclass(frozen=True)
class Trial:
    """One answer held against one accepted answer."""

    wanted: Statement
    said: Statement
    known: Accepted

    @property
    def asked(self) -> Asked:
        """What the question asks."""
        return self.known.asked

    def why_not(self) -> str | None:
        """Return why the answer does not say it, None if it does."""
        needed = self.needed()
        pairs = self.pair(needed)
        met = {word.at for word, _ in pairs}
        fresh = [word for word in needed if not self.asked.has(word.lemma) and word.part != "adjunct"]
        told = [word for word in fresh if word.at in met]
        if not told and (fresh or len(pairs) < len(needed) or not pairs):
            return NOT_SAID
        if any(word.at not in met and not self.spared(word, told, pairs) for word in needed):
            return NOT_SAID
        return self.problem(pairs)

    def problem(self, pairs: Pairs) -> str | None:
        """Return what speaks against it although its words are said, None if nothing does."""
        if self.wanted.lead != self.said.lead and {self.wanted.lead, self.said.lead} <= _QUERIES:
            return NOT_SAID  # "who wrote it" is not "where it is"
        return (
            self._denial(pairs)
            or self._exchange(pairs)
            or self._stranger(pairs)
            or ("another subject" if another_doer(self, pairs) else None)
            or self._misplaced(pairs)
            or self._amount(pairs)
            or self._more(pairs)
            or self._contrary(pairs)
        )

    def others_act(self, pairs: Pairs) -> bool:
        """Return whether who acts is another, or exchanged with whom it acts on."""
        return bool(self._exchange(pairs) or self._stranger(pairs))

    def weight(self) -> int:
        """Return how many accepted words the answer says that the question does not."""
        return sum(not self.asked.has(word.lemma) for word, _ in self.pair(self.wanted.words))

    def literal(self) -> bool:
        """Whether the answer has the accepted answer's own words for what is the case, not synonyms."""
        telling = [word for word in self.wanted.words if word.part in ("verb", "state", "head")]
        said = {word.lemma[1] for word in self.said.words}
        return bool(telling) and all(word.lemma[1] in said for word in telling)

    def needed(self) -> list[Word]:
        """Return the accepted words that an answer has to say."""
        return [word for word in self.wanted.words if self._needed(word)]

    def _needed(self, word: Word) -> bool:
        return word.part != "modifier" or (word.lemma[0] in "na" and self.wanted.word(word.owner) is not None)

    def pair(self, needed: Sequence[Word]) -> list[tuple[Word, Word]]:
        """Return each accepted word with the word that says it, none twice: the same word first, then the like part."""
        wanted, said = (
            [each.lemma for each in text.words if not each.denied and not self.asked.has(each.lemma)]
            for text in (self.wanted, self.said)
        )
        ranked = sorted(
            (word.lemma[1] != other.lemma[1], not same(other.lemma, word.lemma), other.part != word.part, i, other.at)
            for i, word in enumerate(needed)
            for other in self.said.words
            if not self._hedged(other, word)
            if entails(other.lemma, word.lemma)
            or (_plain(word) and _plain(other) and explains(other.lemma, word.lemma, said, wanted))
        )
        pairs: dict[int, int] = {}
        for *_, i, at in ranked:
            if i not in pairs and at not in pairs.values():
                pairs[i] = at
        by_place = {word.at: word for word in self.said.words}
        return [(needed[i], by_place[at]) for i, at in sorted(pairs.items())]

    def _hedged(self, other: Word, word: Word) -> bool:
        """Whether a word only says that it is some kind of it: "some thing" for a broom, "some kind of help"."""
        owner = self.said.word(other.owner)
        if other.lemma[1] in usage().sets["hollow"] and other.part != "verb" and other.lemma[1] != word.lemma[1]:
            return True  # "a nice colour" for a bright green
        if word.part == "verb" and other.part == "adjunct" and other.lemma[1] != word.lemma[1]:
            verbs = [each for each in self.said.words if each.frame == other.frame and each.part == "verb"]
            if any(each.lemma[1].partition("_")[0] not in usage().sets["light"] for each in verbs):
                return True  # "reads it by the fire" for "burns it"
        if any(each.amount == "some" and each.lemma[1] in usage().sets["kinds"] for each in self.wanted.words):
            return False
        return any(
            each is not None and each.amount == "some" and each.lemma[1] in usage().sets["kinds"]
            for each in (other, owner)
        )

    def spared(self, word: Word, told: Sequence[Word], pairs: Pairs) -> bool:
        """Return whether an accepted word may go unsaid: the question or a pronoun says it, or it is a detail."""
        if (word.denied and word.part != "verb") or word.lemma[1] in ("nothing", "nobody", "none"):
            return False
        if self.asked.has(word.lemma):
            return True
        if word.part in ("modifier", "adjunct") and self.known.shares(word.lemma):
            return False
        if word.part == "modifier":
            owner = self.wanted.word(word.owner)
            hollow = owner is not None and (owner.lemma[1] == "one" or owner.lemma[1] in usage().sets["hollow"])
            if owner is not None and owner.part == "head" and (word.lemma[0] != "a" or hollow):
                return False
            if owner is not None and owner.lemma[1] in usage().sets["thin"] and word.lemma[0] == "r":
                return False  # "work together"
            return (owner is None or not owner.denied) and any(
                item.at == word.owner or item.part in ("verb", "state") for item in told
            )
        if word.part == "adjunct":
            idle = usage().sets["wide"]
            if word.preposition in _ABOUT:
                goes = any(each.preposition == "to" for each in self.said.words)
                idle = idle | usage().sets["thin"] | (frozenset() if goes else usage().sets["moving"])
            return any(item.part in ("verb", "state") and item.lemma[1].partition("_")[0] not in idle for item in told)
        if word.part not in _TAKING_PART:
            return False
        frames = [
            self.said.frames[found.frame] for item, found in pairs if found.frame >= 0 and item.frame == word.frame
        ]
        if word.part == "agent":
            return any(not each.agents and self._stands_for(each.agent_pronoun, word) for each in frames)
        frame = self.wanted.frame_of(word)
        if word.preposition == "to" and frame is not None and frame.other_pronoun in ("it", "them"):
            return False  # in "brings it to its owner" no "it" is the owner
        return any(self._may_be(each.other_pronoun, word) and not self.said.filled(each.others) for each in frames)

    def _may_be(self, pronoun: str, word: Word) -> bool:
        """Whether a pronoun that is acted on may stand for a word: "him" is no tail, unless both have "him" as well."""
        frame = self.wanted.frame_of(word)
        somebody = word.proper or is_somebody(word.lemma[1]) or word.lemma in self.asked.people
        both = frame is not None and frame.other_pronoun == pronoun
        return bool(pronoun) and (somebody or both or pronoun not in ("him", "her"))

    def _stands_for(self, pronoun: str, word: Word) -> bool:
        """Whether a pronoun that acts may be `word`, whom the question does not name, and not the one asked about."""
        topic = self.asked.topic
        if not pronoun:
            return False
        if pronoun in ("they", "it") or not any(lemma in self.asked.people for lemma in topic):
            return True
        another = {"he": "female", "him": "female", "she": "male", "her": "male"}.get(pronoun, "")
        return bool(another) and all(sex(lemma[1]) == another for lemma in topic)

    def denied(self, statement: Statement, word: Word) -> bool:
        """Return whether `statement` denies what the word says."""
        frame, denied = statement.frame_of(word), word.denied
        if frame is None or word.part == "modifier":
            return denied
        if word.denied and frame.negated and word.part in _TAKING_PART:
            return True  # "there is no fog": one negation, seen twice
        above = statement.frames[frame.above] if frame.above >= 0 and frame.link == "content" else None
        return denied ^ (frame.negated or (above is not None and above.negated))

    def _denial(self, pairs: Pairs) -> str | None:
        """Whether one denies what the other says, or only wants what the other does."""
        spoken = {word.frame for word, _ in pairs if word.part in ("verb", "state")}
        for word, found in pairs:
            if word.part == "modifier" and found.part == "modifier":
                if self._of_denied_one(word, found):
                    return "negation"
                continue
            says = (
                (word.part in _TAKING_PART and word.frame not in spoken)
                or word.part in ("verb", "state", "head")
                or found.part in ("verb", "state", "head")
            )
            if (says or found.denied or word.denied) and self.denied(self.wanted, word) != self.denied(
                self.said, found
            ):
                return "negation"
            one, two = self.wanted.frame_of(word), self.said.frame_of(found)
            if one is not None and two is not None and two.unreal and not one.unreal and self.asked.asks != "why":
                return "it is not done"
        return None

    def _of_denied_one(self, word: Word, found: Word) -> bool:
        """Whether it is said of a "one" that is denied: "never give it a new one"."""
        owner, one, two = self.said.word(found.owner), self.wanted.frame_of(word), self.said.frame_of(found)
        stands = owner is not None and owner.lemma[1] == "one" and two is not None
        return stands and two is not None and two.negated and not (one is not None and one.negated)

    def _frames(self, pairs: Pairs) -> list[tuple[int, int]]:
        """The clauses of both that say the same thing."""
        seen = dict.fromkeys(
            (word.frame, found.frame)
            for word, found in pairs
            if word.frame >= 0 and found.frame >= 0 and word.part in ("verb", "state")
        )
        return list(seen)

    def _exchange(self, pairs: Pairs) -> str | None:
        """Whether who acts in one is acted on in the other."""
        for first, second in self._frames(pairs):
            one, two = self.wanted.frames[first], self.said.frames[second]
            acted = SUBJECTS.get(one.other_pronoun, "")
            if acted == self._said_pronoun(two) not in ("", one.agent_pronoun) and not two.other_pronoun:
                wrong = one.agent_pronoun in self.wanted.given.lower().split()  # "he lied" for "they lied to him"
                mutual = {one.verb[1], two.verb[1]} & usage().sets["mutual"]
                wrong = wrong or (not mutual and (self._swapped(one, two, pairs) or self._acts_itself(one, two)))
            elif one.stative and not two.stative:
                wrong = not two.passive and self._caused_otherwise(one, two)
            else:
                wrong = self._swapped(one, two, pairs) or self._acts_itself(one, two)
            if wrong or self.crossed(acted, two) or turned(self, one, two):
                return EXCHANGED
            if self._another_object(one, two):
                return "another one is acted on"
        if self._pronoun_acts(pairs) or self._given_away(pairs) or kept_from(self, pairs):
            return EXCHANGED
        if any(turned(self, None, frame) for frame in self.said.frames):
            return EXCHANGED
        for word, found in pairs:
            # "he feels respect for her" has the deed in a noun.
            light, deed = self.wanted.frame_of(word), self.said.frame_of(found)
            noun = word.part == "other" and found.part == "verb" and light is not None and light.stative
            if noun and deed is not None and any(w.part == "other" and f.at in deed.agents for w, f in pairs):
                return EXCHANGED
        return None

    def _given_away(self, pairs: Pairs) -> bool:
        """Whether who receives is what is given: "gives the girl to the kitten"."""
        for word, found in pairs:
            frame = self.said.frame_of(found)
            if word.preposition == "to" and found.part == word.part == "other" and not found.preposition and frame:
                to = [each for each in self.said.filled(frame.others) if each.preposition == "to"]
                if any(each.part == "other" and each.at > found.at for each in to):
                    return True
        return False

    def _pronoun_acts(self, pairs: Pairs) -> bool:
        """Whether a pronoun does it, and who should is named only later: "he stands there so that the goat waits"."""
        clauses = dict(self._frames(pairs))
        for word, found in pairs:
            frame = self.said.frames[clauses[word.frame]] if word.frame in clauses else None
            if word.part != "agent" or frame is None or not frame.agent_pronoun or frame.agents:
                continue
            verb = next((other.at for each, other in pairs if each.frame == word.frame and each.part == "verb"), -1)
            if found.part == "agent" and found.at > verb >= 0 and found.frame != clauses[word.frame]:
                return True
        return False

    @staticmethod
    def crossed(acted: str, two: Frame) -> bool:
        """Return whether a "he" acts on a "her" where "him" is acted on, or the other way round."""
        other = {"he": "her", "she": "him"}.get(acted, "")
        return acted == two.agent_pronoun and two.other_pronoun == other != ""

    def _said_pronoun(self, frame: Frame) -> str:
        """The pronoun that acts, if the answer has it and in no mere circumstance."""
        given = frame.agent_pronoun in self.said.given.lower().split() and frame.link != "advcl"
        return frame.agent_pronoun if given else ""

    def _another_object(self, one: Frame, two: Frame) -> bool:
        """Whether something is acted on of which nobody speaks: "he saves a dog" for "he saves the girl", or her."""
        wanted, said = (
            [word.lemma for word in text.filled(frame.others) if word.part == "other" and not word.preposition]
            for text, frame in ((self.wanted, one), (self.said, two))
        )
        if not wanted and one.other_pronoun in ("him", "her"):
            said = [lemma for lemma in said if load_words().sort(lemma[1]) == "animal"]
        if not said or not (wanted or one.other_pronoun in ("him", "her")):
            return False
        known = (*self.asked.words, *self.known.words)
        vague = usage().sets["anyone"]
        said += [word.lemma for word in self.said.words if word.part == "modifier" and word.owner in two.others]
        return not any(each[1] in vague or _any(each, known) for each in said)

    def _caused_otherwise(self, one: Frame, two: Frame) -> bool:
        """Whether a deed is no cause of the state wanted: "he breaks the window" for "he is broken"."""
        verb, acted = two.verb[1], [word.lemma for word in self.said.filled(two.others) if word.part == "other"]
        if load_words().feelings.get(verb) is None:
            return bool(acted) and not self._meet(acted, (*self._parts(self.wanted, one.agents), *self.asked.topic))
        # "he is afraid of it" is "it scares him" and "he fears it", not "he scares it".
        felt = self._meet(self._parts(self.wanted, one.others), self._parts(self.said, two.others))
        return felt and verb not in usage().sets["feels"]

    def _swapped(self, one: Frame, two: Frame, pairs: Pairs) -> bool:
        """Whether two clauses with one verb have their parts exchanged."""
        acting, acted = self._parts(self.wanted, one.agents), self._parts(self.wanted, one.others)
        agents, others = self._parts(self.said, two.agents), self._parts(self.said, two.others)
        owns = one.stative and two.verb[1] == "have"
        doing = {word.at for word in self.wanted.words if word.at in one.agents or word.owner in one.agents}
        found = [found for word, found in pairs if word.at in doing and found.at not in two.agents]
        if not owns and self.said.filled(two.agents) and any(each.part in ("other", "adjunct") for each in found):
            return True
        if self._meet(acting, others) and not self._meet(acting, agents):
            return True
        return not owns and any(self._meet([each], agents) and not self._meet([each], others) for each in acted)

    def _acts_itself(self, one: Frame, two: Frame) -> bool:
        """Whether what is acted on acts on another: "it catches the hunters" for "it is caught in a net"."""
        acted = [word.lemma for word in self.said.filled(two.others) if word.part == "other"]
        known = (*self.asked.topic, *self._parts(self.wanted, one.others))
        return one.passive and not two.passive and bool(acted) and not self._meet(acted, known)

    @staticmethod
    def _parts(statement: Statement, places: Iterable[int]) -> list[Lemma]:
        """The words at these places with the nouns that they are joined to by name: "the enemy army" is the enemy."""
        words = statement.filled(places)
        names = [word for word in statement.words if word.part == "modifier" and word.lemma[0] == "n"]
        return [word.lemma for word in words] + [
            word.lemma for word in names if any(word.owner == item.at for item in words)
        ]

    @staticmethod
    def _meet(some: Iterable[Lemma], others: Sequence[Lemma]) -> bool:
        return any(same(one, other) for one in some for other in others if one[0] == other[0])

    def _stranger(self, pairs: Pairs) -> str | None:
        """Whether somebody acts, feels or speaks in the answer who does not in the accepted one."""
        matched = {found.at: word for word, found in pairs}
        wanted = {found.frame: self.wanted.frame_of(word) for word, found in pairs if word.part != "modifier"}
        numbers = {
            found.frame
            for word, found in pairs
            if found.frame >= 0 and found.part != "modifier" and not self._describes(word, found)
        }
        numbers |= {n for n, frame in enumerate(self.said.frames) if self.asks_of(frame) and frame.link != "noun"}
        numbers |= {self.said.frames[number].above for number in numbers} - {-1}
        for number in sorted(numbers):
            frame, one = self.said.frames[number], wanted.get(number)
            if one is not None and self._another_sex(one.agent_pronoun, frame.agent_pronoun):
                return "another subject"
            for who in self._who(number, frame, pairs):
                word = matched.get(who.at)
                turned = one is not None and one.stative and not frame.stative
                turned |= frame.link == "content"  # "that her father will be angry" for "her father's anger"
                fits = word is not None and (word.part in ("agent", "head", "state", "verb") or turned)
                if self.asks_of(frame) and not frame.stative and self._takes_over(who):
                    return "another subject"
                if (not fits and not self._may_act(who, frame, one)) or self._other_of_two(who):
                    return "another subject"
        return None

    def _other_of_two(self, who: Word) -> bool:
        """Whether the other of two acts: "the younger otter", where the question is about the older one."""
        told = [word.lemma for word in self.said.words if word.part == "modifier" and word.owner == who.at]
        known = [lemma for lemma in self.known.words if lemma in told]
        return who.lemma in self.asked.topic and any(
            opposed(lemma, other) for lemma in told if lemma not in known for other in self.asked.words
        )

    def _describes(self, word: Word, found: Word) -> bool:
        """Whether a clause only says of what something is: "proud of what he did" for "proud of him"."""
        frame = self.said.frames[found.frame]
        told = word.part == "adjunct" and (frame.stative or found.part == "verb")
        return told and frame.link in ("pcomp", "noun")

    def _takes_over(self, who: Word) -> bool:
        """Whether somebody else does what the question says of those that it asks about."""
        asked = self.asked
        if asked.asks in ("agent", "event", "order", "number") or not any(each in asked.people for each in asked.topic):
            return False
        known = who.lemma in asked.people or (is_somebody(who.lemma[1]) and who.lemma in self.known.words)
        return known and not _any(who.lemma, asked.topic)

    def _about_persons(self) -> bool:
        """Whether the question is about a person, who is no "it"."""
        return any(load_words().sort(lemma[1]) == "person" or lemma in self.asked.names for lemma in self.asked.topic)

    def _another_sex(self, wanted: str, said: str) -> bool:
        """Whether a "she" acts where a "he" does, and the question has both."""
        if wanted == "it" and said in _SEXES:
            return self._about_persons()
        if {wanted, said} != {"he", "she"}:
            return False
        if any(agent not in self.asked.words for agent in self.known.agents):
            return True  # who acts is not the one asked about, and a "he" for her is that one
        words = load_words()
        people = [each for each in self.asked.people if words.has("kin", each[1]) or not words.has("titles", each[1])]
        return len(people) > 1 or any(sex(lemma[1]) == _SEXES[said] for lemma in people)

    def _who(self, number: int, frame: Frame, pairs: Pairs) -> list[Word]:
        """Whom a clause is about: who acts, is acted on in a passive, or is made to feel."""
        if frame.passive and frame.agent_pronoun:
            return []
        if frame.passive and not frame.agents:
            return [word for word in self.said.filled(frame.others) if word.part == "other"]
        agents = self.said.filled(frame.agents)
        of = [word for word in self.said.words if word.preposition == "of" or word.owner in frame.agents]
        one = [each for word in agents for each in of if word.lemma[1] == "one" and each.owner == word.at]
        things = [word for word in one if word.lemma[0] == "n" and not is_somebody(word.lemma[1])]
        return things or agents  # "one of the carrots"

    def asks_of(self, frame: Frame) -> bool:
        """Return whether a clause of the answer has the verb of the question."""
        if self.asked.verb is not None and same(frame.verb, self.asked.verb):
            return True
        return any(word[1] == frame.verb[1] for word in self.asked.words)

    def _may_act(self, who: Word, frame: Frame, one: Frame | None) -> bool:
        """Whether `who` may do what `frame` of the answer says, where `one` is the clause that it stands for."""
        lemma, asked, known = who.lemma, self.asked, self.known
        settled = self._settled(who, frame, one) if one is not None else None
        if settled is not None:
            return settled
        person = is_somebody(lemma[1]) or lemma in asked.people
        among = any(same(lemma, other) for other in asked.others)
        among &= person or (self.asks_of(frame) and bool(asked.topic))
        if (
            _any(lemma, asked.topic)
            or _any(lemma, known.agents)
            or (not among and lemma not in known.words and is_kind(lemma, asked.topic))
        ):
            return not among or any(same(lemma, other) for other in (*known.agents, *asked.topic))
        if (
            one is not None
            and frame.stative
            and not one.stative
            and self._meet([lemma], self._parts(self.wanted, one.others))
        ):
            return True  # "the cat gets soaked" for "she soaks the cat"
        if among:  # "the boy gets it from her"
            return asked.verb is not None and opposed(frame.verb, asked.verb)
        named = any(topic in asked.people and not is_somebody(topic[1]) for topic in asked.topic)
        if self._anybody(who) or (named and lemma[1] in usage().sets["names"]):
            return True
        if one is not None and one.passive and not one.agents and not frame.passive and not frame.stative:
            owned = any(word.owner == who.at and word.proper for word in self.said.words)
            return owned or not any(is_somebody(agent[1]) for agent in known.agents)
        if asked.asks == "agent":
            return frame.stative or (not person and not self.asks_of(frame))
        if not person:
            held = one is None or one.agent_pronoun not in _SEXES or (frame.stative and frame.link == "content")
            return asked.asks != "deed" and held
        about = one is not None and bool(one.agent_pronoun or one.agents or (one.passive and one.other_pronoun))
        return asked.asks in ("why", "event", "how", "order", "what") and not known.agents and not about

    def _told_to(self) -> bool:
        """Whether the question is about what somebody shall do, and not what is told ("that he left his heart")."""
        return self.asked.asks == "deed" or (self.asked.verb is not None and self.asked.verb[1] != "tell")

    def _anybody(self, who: Word) -> bool:
        """Whether a word may be anybody: "the man", or a name that no accepted answer has."""
        return who.lemma[1] in usage().sets["anyone"] or (who.proper and who.lemma not in self.known.words)

    def _settled(self, who: Word, frame: Frame, one: Frame) -> bool | None:
        """What the accepted clause `one` decides about who may act; None if nothing."""
        lemma, asked, known, words = who.lemma, self.asked, self.known, load_words()
        if {sex(lemma[1]), _SEXES.get(one.agent_pronoun, "")} == {"male", "female"}:
            return False
        told = asked.verb is not None and words.has("told_to", asked.verb[1]) and not words.has("say", frame.verb[1])
        pronoun, elsewhere = bool(one.agent_pronoun or one.other_pronoun), lemma in asked.others
        if pronoun and elsewhere and not _any(lemma, (*asked.topic, *known.agents)):
            return told and self._told_to() and lemma in asked.people
        if one.agent_pronoun and lemma in asked.topic:
            if told and any(other in asked.people for other in asked.others):
                return False  # what the doctor tells Maria to do is for Maria to do
            if lemma not in known.agents and any(agent in asked.others for agent in known.agents):
                return False  # "he" is somebody else of the question
        if frame.passive and not frame.agents and not one.passive and not one.stative:
            given = [word.lemma for word in self.wanted.filled(one.others)]
            return _any(lemma, (*given, *asked.words) if given or one.other_pronoun else asked.topic)
        named = [word.lemma for word in self.wanted.filled(one.agents)]
        if not named or _any(lemma, named) or (lemma not in asked.words and _any(lemma, known.agents)):
            return None
        place = lemma[1] in usage().sets["vague"] and not is_somebody(lemma[1])
        return lemma not in asked.words and (place or self._anybody(who))

    def _misplaced(self, pairs: Pairs) -> str | None:
        """Whether what was asked for has another part in its clause: "who" is acted on, or "what" acts."""
        asks, lead = self.asked.asks, self.wanted.lead
        if another_owner(self, pairs, self.known.items):
            return "another owner"
        told = {found.at: word.at for word, found in pairs}
        for word, found in pairs:
            owned = word.part == found.part == "modifier" and is_somebody(word.lemma[1]) and told.get(found.owner)
            if (owned and owned != word.owner) or self._owns(word, found, told):
                return "another owner"
            frame = self.said.frame_of(found)
            if word.part == "head" and frame is not None and frame.link == "pcomp" and self._elsewhere(told):
                return "another place or time"
            if frame is not None and found.part == "agent" and word.part in ("head", "other") and not frame.passive:
                acted = [each.lemma for each in self.said.filled(frame.others)]
                if asks in ("other", "deed", "number") and any(lemma in self.asked.topic for lemma in acted):
                    return EXCHANGED
            if word.part == "head" and beside_the_point(self, found, told):
                return "named as something else's object"
            if word.part != "head" or frame is None or frame.stative:
                continue
            doers = self.said.filled(frame.agents)
            topical = bool(frame.agent_pronoun) or self._meet([each.lemma for each in doers], self.asked.topic)
            lifeless = bool(doers) and not any(is_somebody(each.lemma[1]) or each.proper for each in doers)
            if found.part == "agent" and not frame.passive:
                through = lead in _LEADS and self._meet(self._parts(self.said, frame.others), self.asked.topic)
                if through or self.asked.received or (asks in ("other", "number") and self.asks_of(frame)):
                    return EXCHANGED
            object_ = found.part == "other" or (found.part == "verb" and word.lemma[0] == "n")
            if asks == "why" and object_ and topical and frame.verb[1] not in usage().sets["undergo"]:
                return "named as something else's object"
            if asks == "agent" and found.part in ("other", "adjunct") and not lifeless and not frame.passive:
                return "named as something else's object"
        return None

    def _owns(self, word: Word, found: Word, told: Mapping[int, int]) -> bool:
        """Whether somebody is only named by whose another is: "the boy's father" for "the boy"."""
        owner = self.said.word(found.owner)
        if word.part not in ("head", "agent") or owner is None or owner.at in told or not found.preposition:
            return False
        person = is_somebody(owner.lemma[1]) and load_words().sort(owner.lemma[1]) != "group"
        return person and (is_somebody(word.lemma[1]) or word.proper)

    def _elsewhere(self, told: Mapping[int, int]) -> bool:
        """Whether the answer names something of its own, and what is wanted only in "after leaving it"."""
        return any(
            word.frame < 0 and word.part in ("head", "other") and word.at not in told for word in self.said.words
        )

    def _amount(self, pairs: Pairs) -> str | None:
        """Whether both tell how many, and differ."""
        counted = self.asked.asks == "number"
        for word, found in pairs:
            given = found.amount or next(
                (item.amount for item in self.said.words if item.owner == found.at and item.amount), ""
            )
            if word.part == "modifier" or word.amount == given:
                continue
            single = re.search(rf"\ban?\b[\w ]*\b{re.escape(word.lemma[1])}\b", self.wanted.text)
            if given.isdigit() and given != "1" and single:
                return "another amount"
            if (word.amount and given) or counted:
                return "another amount"
            if word.amount in ("many", "more", "half") and word.part in ("head", "agent", "other") and not given:
                return "another amount"
        return None

    def _more(self, pairs: Pairs) -> str | None:
        """Whether something is named beside what was asked for that no accepted answer names."""
        if self.asked.asks not in NAMED and self.asked.asks != "deed":
            return None
        at = {found.at for word, found in pairs if word.part != "modifier"}
        known = (*self.known.words, *(() if self.asked.asks in NAMED else self.asked.words))
        for group in self.said.joined:
            if not at & set(group):
                continue
            for each in self.said.filled(group):
                if each.at not in at and not any(entails(each.lemma, other) for other in known):
                    return "something else is named as well"
        return None

    def _contrary(self, pairs: Pairs) -> str | None:
        """Whether a word beside those that are met says the opposite."""
        for word, found in pairs:
            sides = [usage().sides.get(each.preposition, frozenset()) for each in (word, found)]
            if all(sides) and sides[0].isdisjoint(sides[1]):
                return "the opposite is said as well"
            ours = [each.lemma for each in self.wanted.words if each.part == "modifier" and each.owner == word.at]
            theirs = [each.lemma for each in self.said.words if each.part == "modifier" and each.owner == found.at]
            if any(opposed(one, two) or apart(one, two) for one in ours for two in theirs):
                return "the opposite is said as well"
        at = {found.at for _, found in pairs}
        wanted = [word for word, _ in pairs if word.part != "modifier"]
        for word in self.said.words:
            if word.at in at or word.part == "modifier":
                continue
            turned = self.asked.verb is not None and word.part == "verb" and opposed(word.lemma, self.asked.verb)
            doers = self._who(word.frame, self.said.frames[word.frame], pairs) if turned else []
            topic = self.asked.topic or [each.lemma for each in wanted if each.part in ("head", "agent")]
            if turned and (not doers or any(_any(each.lemma, topic) for each in doers)):
                return "the opposite is said as well"
            if any(opposed(word.lemma, other.lemma) for other in wanted) and not self.denied(self.said, word):
                return "the opposite is said as well"
        return None
