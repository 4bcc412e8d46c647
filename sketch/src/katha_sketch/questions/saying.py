"""A deed in a few words, as a careful annotator of a story would write it: the thing, and at most one place or person.

The words are the story's own, in the present tense. What is told beside the deed (when, how, lists, clauses) is left
out, and a pronoun only stays where the words before it say who is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from katha_sketch.data import load_config
from katha_sketch.english import Entity, Event, Reading, Role, Teller
from katha_sketch.english.telling import joined, names_many, present
from katha_sketch.english.words import load_words

__all__ = ["Deed", "Sayer"]

_WORDS = load_config("questions.yaml")
_TABLE = {name: frozenset(words.split()) for name, words in _WORDS["deeds"].items()}
_LONGEST = 8
"""How many words a deed has behind its doer."""
_OWN = "\0"
"""Stands for the doer's own "his", "her" or "their" until it is known who is said to do it."""
_TOKEN = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*['’]?|[,;:—–-]")
_BREAK = re.compile(r"[,;:—–\"“”()]")
_GERUND = re.compile(r"\b(?:of|from|by|for|without|after|before|in|about|instead|than|like) $", re.IGNORECASE)
"""A deed behind it is only spoken of: "forty years of laying bricks"."""
_WHERE = re.compile(r"(?:onto|into|to|from|over|across|out|down|up) ", re.IGNORECASE)
_OWNING = re.compile(r" (['’] )")
_TITLES = re.compile(r"^(?:Old|Young|Little|Poor) (?=[A-Z])")
_POSSESSIVES = {"his": "male", "her": "female", "its": "", "their": "", "my": "", "our": "", "your": ""}
_OBJECTS = frozenset(("him", "her", "it", "them", "me", "us", "you"))
_THINGS = frozenset(("it", "its", "them", "these", "those"))
"""Pronouns that a thing may be meant by."""
_OWNER = {"male": "his", "female": "her"}
_PRONOUN = {"male": "he", "female": "she"}
_ALIVE = frozenset(("person", "animal", "being", "group"))
_ONE = re.compile(r"(?:an?|one|each|every) (?!few |lot |couple |dozen |hundred |number )", re.IGNORECASE)
_LEADS = frozenset(("the", "a", "an"))
_UNKNOWN = "someone"
_MANY = 3
"""How many are named one by one."""
_NEAR = 1
"""How many sentences back what "it" is may have been named."""
_FULL, _GOOD, _POOR = 3, 2, 0
"""From which worth on a deed can point out a moment, and below which it is asked about only for want of another."""


_Said = tuple[tuple[str, str], str, bool]
"""A verb of one and of several, what stands behind it, and whether nothing in it is guessed."""


@dataclass(frozen=True)
class Deed:
    """What somebody or something does, ready to be said of it or of somebody else.

    who: how the doer is called inside a sentence. people: who does it, entities. verb: as said of one and of several.
    rest: what stands behind it, with `_OWN` for "his". worth: how well it stands for what its sentence tells. guessed:
    who does it is not known. sure: what "it" is in it is known, or there is none.
    """

    event: Event
    who: str
    people: tuple[str, ...]
    plural: bool
    verb: tuple[str, str]
    rest: str
    own: str
    worth: float
    sex: str | None = None
    guessed: bool = False
    sure: bool = True

    @property
    def clause(self) -> str:
        """The deed inside another sentence: "the boy opens his bag"."""
        return self._by(self)

    @property
    def sentence(self) -> str:
        """The deed as a sentence, without a full stop."""
        return _capital(self.clause)

    @property
    def again(self) -> str:
        """The clause where its doer was named just before: "he opens his bag"; "" where no pronoun is sure."""
        pronoun = "they" if self.plural else _PRONOUN.get(self.sex or "", "")
        return replace(self, who=pronoun).clause if pronoun and self.people else ""

    @property
    def passive(self) -> bool:
        """Whether it is told as done to somebody."""
        return self.event.passive and not self.event.who("agent")

    @property
    def clear(self) -> bool:
        """Whether it can point out a moment: it is told as a deed of its own and nothing in it is guessed."""
        return self.worth >= _FULL

    @property
    def fair(self) -> bool:
        """Whether it can be asked about as it is."""
        return self.worth >= _POOR

    @property
    def good(self) -> bool:
        """Whether it can stand as an answer: a deed with all that belongs to it."""
        return self.sure and self.worth >= _GOOD

    @property
    def still(self) -> bool:
        """Whether it lasts, or is a state: it may be so elsewhere too."""
        return self.event.verb in _TABLE["states"] | _TABLE["still"]

    @property
    def spoken(self) -> bool:
        """Whether somebody only speaks."""
        return self.event.verb in _TABLE["talk"]

    def of(self, other: Deed) -> str:
        """The deed as done by whoever does `other`, as a sentence."""
        return _capital(self._by(other))

    def instead(self, verb: str, rest: str) -> str:
        """Another deed of the same doer, as a sentence."""
        return replace(self, verb=_both(verb), rest=rest).sentence

    def with_thing(self, old: str, new: str) -> str:
        """The deed done to another thing, as a sentence; "" where the old one is not said."""
        if f" of {old}" in self.rest:
            return ""
        found = re.search(rf"(?:(?:the|an?|{_OWN}|his|her|their|its) )?(?:[\w-]+ )*?{re.escape(old)}(?!\w)", self.rest)
        if found is None:
            return ""
        return _capital(replace(self, rest=f"{self.rest[: found.start()]}{new}{self.rest[found.end() :]}").clause)

    def _by(self, doer: Deed) -> str:
        said = f"{doer.who} {self.verb[doer.plural]} {self.rest}".strip().replace(_OWN, doer.own)
        return _OWNING.sub(r"\1", said)


class Sayer:
    """Says the events of a reading in few words."""

    def __init__(self, reading: Reading, teller: Teller) -> None:
        self.reading = reading
        self.teller = teller
        self.deed = cache(self._deed)

    def _deed(self, at: int) -> Deed | None:
        """Return an event of the reading, by its place, in few words; None for what cannot be said so."""
        event = self.reading.events[at]
        if event.existential or not self.teller.shows(event):
            return None
        doers = self.teller.doers(event)
        alive = [key for key in doers if self.teller.one(key).kind in _ALIVE]
        doers = tuple(alive) or doers  # "two streets and a dog" that run are a dog
        who = self._doers(event, doers)
        if not who:
            return None
        first = self.teller.one(doers[0])
        one = " and " not in who and (len(doers) > 1 or bool(first.members) or (first.named and " " not in who))
        plural = self._plural(event, doers) and not one
        found = self._speech(event) or self._does(event, doers)
        if found is None:
            return None
        verb, rest, sure = found
        rest = rest.replace(f"{who}'s ", f"{_OWN} ")
        own, people = self._own(doers, plural=plural), tuple(self.teller.people(doers))
        worth, sex = self._worth(event, rest, sure=sure), self.teller.one(doers[0]).sex
        guessed = any(self._vague(key) for key in doers)
        return Deed(event, who, people, plural, verb, rest, own, worth, sex, guessed, sure)

    def spoken(self, sentence: int) -> Deed | None:
        """Return who speaks where a sentence is nothing but what is said."""
        speech = next((one for one in self.reading.speeches if one.sentence == sentence and one.speaker), None)
        if speech is None or speech.speaker is None or self.teller.one(speech.speaker).kind not in _ALIVE:
            return None
        who = self.name(speech.speaker)
        events = self.reading.of(sentence)
        if not who or not events:
            return None
        to = [name for key in speech.addressees if (name := self.name(key)) and name != who]
        doers = (speech.speaker,)
        plural = self._plural(events[0], doers)
        rest = f"to {joined(to)}" if to else ""
        people = tuple(self.teller.people(doers))
        return Deed(events[0], who, people, plural, _both("speak"), rest, self._own(doers, plural=plural), _FULL - 1)

    # Who does it.

    def name(self, key: str) -> str:
        """Return how somebody or something is called inside a sentence; "" where no plain name is known."""
        entity = self.teller.one(key)
        if entity.members:
            alive = [key for key in entity.members if self.teller.one(key).kind in _ALIVE]
            return self._listed(alive or entity.members) if len(alive) <= _MANY else "everyone"
        called = self.teller.name(key)
        old = _TITLES.match(called)
        if old is not None and entity.named:
            title = next((one for one in entity.titles if one.lower() not in _TABLE["ages"]), "")
            called = f"{title or called[: old.end()].strip().lower()} {called[old.end() :]}"
        words = called.split()
        if words[:2] and words[0].lower() in _LEADS:
            twice = _LEADS | set(_POSSESSIVES)  # "the my family"
            rest = [word for at, word in enumerate(words[1:]) if at or word.lower() not in twice]
            words = [words[0].lower(), *(word for word in rest if word.lower() not in _TABLE["adverbs"])]
        return "" if len(words) > _LONGEST // 2 or _broken(words) else " ".join(words)

    def _listed(self, keys: Sequence[str]) -> str:
        """Several as a list: "Tesfaye and his two sons"; "" where one has no plain name."""
        names: list[str] = []
        for key in keys:
            name = self.name(key)
            for known, other in zip(list(names), keys, strict=False):
                own = _OWNER.get(self.teller.one(other).sex or "", "")
                if own and name.startswith(f"{known}'s "):
                    name = f"{own} {name.removeprefix(known)[3:]}"
            names.append(name)
        return joined(names) if names and all(names) else ""

    def _doers(self, event: Event, doers: Sequence[str]) -> str:
        roles = [role for role in event.roles if role.entity in doers and role.role in ("agent", "patient")]
        if len(roles) > 1:
            return self._listed([str(role.entity) for role in roles])
        return self._called(roles[0], event) if roles else ""

    def _called(self, role: Role, event: Event) -> str:
        """Return how the filler of a role is called: a thing by the words that stand there."""
        entity = self.teller.one(str(role.entity))
        if entity.id in self.teller.names or entity.members:
            return self.name(entity.id)
        if role.text.lower() in _TABLE["pronouns"]:
            return self.name(entity.id) if self._sure(entity, event, role.text.lower()) else ""
        words = self._trimmed(role.text.split(), 4)
        if words[0].lower() in _POSSESSIVES and entity.owner is not None:
            owner = "" if self._vague(entity.owner) else self.name(entity.owner)
            return f"{_whose(owner)} {' '.join(words[1:])}" if owner and "'s" not in owner else ""
        said = " ".join(self._phrase(words, event, self.teller.doers(event))).replace(_OWN, "the")
        first, _, rest = said.partition(" ")
        bare = entity.named and first.lower() not in _LEADS
        plain = first if bare or first.lower() not in _TABLE["small"] else first.lower()
        if not rest and not entity.named:
            plain = plain.lower()
        return "" if _broken(said.split()) or said.count("'s ") > 1 else f"{plain} {rest}".strip()

    def _plural(self, event: Event, doers: Sequence[str]) -> bool:
        if len(doers) > 1:
            return True
        if any(role.entity == doers[0] and _ONE.match(role.text) for role in event.roles):
            return False
        entity = self.teller.one(doers[0])
        if entity.name.lower() in _TABLE["everyone"] or self.name(doers[0]) in _TABLE["everyone"]:
            return False
        return entity.count != 1 or bool(entity.members) or (not entity.named and names_many(entity.name))

    def _own(self, doers: Sequence[str], *, plural: bool) -> str:
        if plural:
            return "their"
        entity = self.teller.one(doers[0])
        alive = entity.kind in _ALIVE
        return _OWNER.get(entity.sex or "", "the") if alive else "its"

    # What is done.

    def _speech(self, event: Event) -> _Said | None:
        """Return how somebody speaks, and to whom where the text tells it; None for any other deed."""
        if event.verb not in _TABLE["talk"] or event.particle or event.negated or event.passive:
            return None
        if event.who("patient") and event.verb not in _TABLE["said"]:
            return None
        speech = next((one for one in self.reading.speeches if one.sentence == event.sentence), None)
        if speech is None and event.feeling:
            return None  # "Tom cried"
        to = event.who("recipient") or (speech.addressees if speech is not None else ())
        own = {self.name(key) for key in self.teller.doers(event)}
        names = [name for key in to if (name := self.name(key)) and name not in own]
        verb = event.verb if event.verb in _TABLE["loud"] else "shout" if event.verb in ("call", "cry") else "speak"
        lead = "to" if verb in ("speak", "whisper") else "at"
        return _both(verb), f"{lead} {joined(names)}" if names else "", True

    def _does(self, event: Event, doers: Sequence[str]) -> _Said | None:
        """Return the verb, what stands behind it, and whether nothing in it is guessed."""
        surface = self.reading.surface(event)
        words = _TOKEN.findall(event.text)
        at = next((at for at, word in enumerate(words) if word.lower() == surface), None)
        if at is None:
            return None
        tail, sure = self._tail(event, words[at + 1 :], doers)
        named = {word for word in self._doers(event, doers).split() if word[:1].isupper()}
        if set(tail[:2]) & named or f" {self._doers(event, doers)} " in f" {' '.join(tail)} ":
            tail = []  # "in the wings stood Mr Fenwick"
        if event.verb == "be" and (not tail or tail[-1] in self._doers(event, doers).split()):
            return None
        after = ""
        verb = event.verb
        if event.passive and not event.who("agent"):
            verb, after = "be", f" {surface}"
        elif event.negated and verb != "be":
            return (f"cannot {verb}",) * 2, " ".join(tail), sure
        elif event.negated:
            after = " not"
        elif event.modality == "try":
            verb, after = "try", f" to {verb}"
        elif event.phase in ("stop", "begin"):
            verb, after = event.phase, f" {surface}" if event.phase == "stop" else f" to {verb}"
        one, many = _both(verb)
        return (f"{one}{after}", f"{many}{after}"), " ".join(self._led(event, words, at, tail)), sure

    def _led(self, event: Event, words: Sequence[str], at: int, tail: list[str]) -> list[str]:
        """What stands behind a verb with the thing that stands before it: "a box that she took to her son"."""
        if event.passive or not at or words[0].lower() not in ("that", "which", "whom"):
            return tail
        role = next((role for role in event.all("patient") if role.start < event.start), None)
        name = self.name(str(role.entity)) if role is not None and role.entity is not None else ""
        last = words[-1].lower()
        return [*tail, last, *name.split()] if name and last in _TABLE["prepositions"] else [*name.split(), *tail]

    def _tail(self, event: Event, words: Sequence[str], doers: Sequence[str]) -> tuple[list[str], bool]:
        """Return what stands behind the verb, cut to the thing and one place or person."""
        at = next((at for at in range(len(words)) if self._ends(words, at, event)), len(words))
        kept = [word for word in _without(words[:at], event.time) if not self._manner(word, event)]
        kept = self._trimmed(kept, _LONGEST)
        said = self._phrase(kept, event, doers)
        if said[-2:-1] in (["a"], ["an"]) and re.search(rf"{re.escape(said[-1])}, (?!and|but|or|then)", event.text):
            said.pop()  # "of a large, bad-tempered beast"
        said = _once(said, event.verb)
        while said and said[-1].lower() in _TABLE["loose"]:
            said.pop()
        if said[-3:-1] == ["with", _OWN] and load_words().has("parts", said[-1].rstrip("s")):
            said = said[:-3]  # "dances with her arms held high"
        guessed = {word.lower() for word in said} & (_OBJECTS | {"one", "ones"})
        return said, not guessed

    def _ends(self, words: Sequence[str], at: int, event: Event) -> bool:
        lower = words[at].lower()
        if any(role.preposition == lower for role in event.roles):
            return False  # "stands before him"
        if _BREAK.fullmatch(lower) or lower in _TABLE["ends"]:
            return True
        # "the bread and the cheese" is one thing too many; "up and down", "between this and that" belong together.
        directed = at + 1 < len(words) and words[at + 1].lower() in _TABLE["directions"]
        both = {"between", "both"} & {word.lower() for word in words[:at]}
        return lower in ("and", "or") and not directed and not both

    def _manner(self, word: str, event: Event) -> bool:
        lower = word.lower()
        told = lower in event.manner and event.verb != "be" and lower not in _TABLE["directions"]
        return lower in _TABLE["adverbs"] or told or (len(lower) > 4 and lower.endswith("ly") and lower in event.manner)

    def _trimmed(self, words: Sequence[str], most: int) -> list[str]:
        """Return the words up to the end of the first phrase with a preposition, or before it where that is long."""
        lower = [word.lower() for word in words]
        leads = [at for at, word in enumerate(lower) if word in _TABLE["prepositions"] and not self._of(lower, at)]
        leads = leads[1:] if leads[:1] == [0] else leads  # "up the glove", "in"
        cut = list(words[: leads[1]]) if len(leads) > 1 else list(words)
        if len(cut) > most and leads:
            cut = list(words[: leads[0]])
        if len(cut) > most:
            at = next((at for at, word in enumerate(cut) if word.lower() == "of" and at > 1), len(cut))
            cut = cut[:at]
        return cut

    def _of(self, words: Sequence[str], at: int) -> bool:
        """Whether a preposition only goes with the one before it: "out of", "next to"."""
        return words[at] == "of" or (at > 0 and words[at - 1] in _TABLE["doubled"])

    def _phrase(self, words: Sequence[str], event: Event, doers: Sequence[str]) -> list[str]:
        """Return the words with names in place of pronouns where they are known."""
        said: list[str] = []
        for at, word in enumerate(words):
            lower = word.lower()
            if lower in _POSSESSIVES and not self._object(lower, words[at + 1 :]):
                said.append(self._possessive(lower, words[at + 1 :], event, doers))
            elif lower in _OBJECTS:
                said.append(self._pronoun(lower, event, doers))
            else:
                said.append(word)
        return " ".join(said).replace(f"{_OWN} own ", f"{_OWN} ").split()

    def _object(self, lower: str, rest: Sequence[str]) -> bool:
        """Whether "her" is somebody and not whose."""
        follows = rest[0].lower() if rest else ""
        return lower == "her" and (not rest or follows in _TABLE["small"] or follows in _TABLE["prepositions"])

    def _possessive(self, lower: str, rest: Sequence[str], event: Event, doers: Sequence[str]) -> str:
        """Return whose a thing is: the doer's, as far as the words allow it, else somebody's by name."""
        sex = _POSSESSIVES[lower]
        doer = self.teller.one(doers[0])
        plural = self._plural(event, doers)
        alive = doer.kind in _ALIVE
        fits = plural if lower in ("their", "our") else not plural and (not sex or doer.sex in (None, sex))
        if lower in ("my", "our"):
            return _OWN
        if not alive and doer.owner is not None and self.teller.one(doer.owner).sex in (None, sex):
            return lower  # "her hand flies to her mouth"
        if lower == "its":
            return _OWN if not alive or doer.kind == "animal" else "its"
        if fits and alive and lower != "your":
            return _OWN if doer.sex is not None or plural else lower
        owner = self._owner(rest, event)
        return owner or "the"

    def _owner(self, rest: Sequence[str], event: Event) -> str:
        for role in event.roles:
            if role.entity is None or not rest or rest[0].lower() not in role.text.lower().split():
                continue
            owner = self.teller.one(role.entity).owner
            if owner is not None and (name := self.name(owner)) and not self._vague(owner):
                return _whose(name)
        return ""

    def _vague(self, key: str) -> bool:
        return self.teller.one(key).name == _UNKNOWN

    def _pronoun(self, lower: str, event: Event, doers: Sequence[str]) -> str:
        """Return who "him" is; the pronoun itself where that is not sure."""
        role = next((one for one in event.roles if one.text.lower() == lower and one.entity is not None), None)
        if role is None or role.entity is None or role.entity in doers:
            return lower
        entity = self.teller.one(role.entity)
        name = "" if self._vague(role.entity) else self.name(role.entity)
        return name if name and self._sure(entity, event, lower) else lower

    def _sure(self, entity: Entity, event: Event, pronoun: str) -> bool:
        """Whether a pronoun can only mean one: people by their sex and number, a thing where no other was near."""
        if entity.name == _UNKNOWN:
            return False
        plain = entity.id in self.teller.names or bool(entity.members)
        if pronoun in ("it", "its") and plain:
            return True
        return pronoun not in _THINGS or not any(self._rivals(entity, event))

    def _rivals(self, entity: Entity, event: Event) -> Iterator[Entity]:
        """Other things of the same number that were spoken of in the sentences before, and not before the thing itself
        was last spoken of."""
        near = range(event.sentence - _NEAR, event.sentence + 1)
        core = [one for at in near if at >= 0 for one in self.reading.of(at) if one.start < event.start]
        latest = max((one.start for one in core if entity.id in one.who("patient", "agent")), default=-1)
        for other in self.reading.entities:
            if other.id == entity.id or other.kind not in ("thing", "animal") or other.id in self.teller.names:
                continue
            if (other.count == 1) != (entity.count == 1) or other.sort in ("body", "abstract", "time", "feeling"):
                continue
            if load_words().has("parts", other.noun) or not set(other.sentences) & set(near):
                continue
            if any(other.id in one.who("patient", "agent") for one in core if one.start >= latest):
                yield other

    # How well it stands for its sentence.

    def _worth(self, event: Event, rest: str, *, sure: bool) -> float:
        words = " ".join(_without(event.text.split(), event.time)).lower().split()
        doers = self.teller.doers(event)
        worth = 3.0
        opening = words[: next((at for at, word in enumerate(words) if word == self.reading.surface(event)), 2)][:3]
        if set(opening[:1]) & _TABLE["earlier"]:
            worth -= 5
        elif set(opening) & _TABLE["within"] or event.within is not None:
            worth -= 1.5
        elif not opening and self.reading.surface(event).endswith("ing"):
            worth -= 0.5
        if event.verb in _TABLE["states"]:
            worth -= 2
        elif event.verb in _TABLE["still"]:
            worth -= 0.5
        elif event.verb in _TABLE["talk"]:
            worth -= 0.75
        if event.perfect:
            worth -= 2.5
        if self.reading.surface(event).endswith("ing") and _GERUND.search(self.reading.text[: event.start]):
            worth -= 4
        if event.passive and not rest:
            worth -= 1.5
        if event.passive and not set(words) & _TABLE["auxiliaries"]:
            worth -= 3
        alive = any(self.teller.one(key).kind in _ALIVE for key in doers)
        if event.verb in _TABLE["misread"] or (not alive and event.verb in _TABLE["talk"]):
            worth -= 5
        if event.verb in _TABLE["sending"] and not set(rest.split()) & _TABLE["prepositions"]:
            worth -= 1.5
        if any(one in _TABLE["unseen"] or one in load_words().numbers for one in event.state):
            worth -= 2
        if event.negated:
            worth -= 0.5
        if event.negated or event.modality in ("can", "try") or event.passive or event.verb in _TABLE["empty"]:
            worth -= 0.5
        if not sure:
            worth -= 2
        if any(self._vague(key) for key in doers):
            worth -= 2.5
        if not rest and not self._alone(event):
            worth -= 4
        if self.teller.people(doers):
            worth += 0.75
        things = [key for key in event.who("patient", "recipient") if self.reading.entity(key).kind != "abstract"]
        return worth + 0.5 * bool(things)

    def _alone(self, event: Event) -> bool:
        """Whether a verb can stand without more ("laughs"), where "puts" cannot."""
        words = load_words()
        return any(words.has(name, event.verb) for name in ("intransitive", "feel_verbs", "watchers_do")) or (
            event.verb in _TABLE["alone"]
        )


def _without(words: Sequence[str], told: Sequence[str]) -> list[str]:
    """The words without what tells when."""
    text = " ".join(words)
    for one in sorted((one for one in told if not _WHERE.match(one)), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(one)}(?!\w| of )", "", text, flags=re.IGNORECASE)
    return text.split()


def _once(words: Sequence[str], verb: str) -> list[str]:
    """The words without the deed itself told as a thing: "jerks a jerk", "steps five steps back"."""
    at = next((at for at, word in enumerate(words) if word.lower() in (verb, f"{verb}s")), None)
    if at is None:
        return list(words)
    leads = (one for one in range(at - 1, -1, -1) if words[one].lower() in _TABLE["small"])
    first = next(leads, at)
    return [*words[:first], *words[at + 1 :]] if first < at else list(words)


def _whose(name: str) -> str:
    """A name as an owner's: "Tom's", "the brothers'"."""
    return f"{name}'" if name.endswith("s") and name.islower() else f"{name}'s"


def _broken(words: Sequence[str]) -> bool:
    """Whether a name is a phrase that was cut wrongly: "the whose son", "the of the two"."""
    lower = [word.lower() for word in words]
    if len(lower) == 1 and lower[0] in _TABLE["small"]:
        return True
    headless = "of" in lower[:2] and lower[0] in (*_LEADS, "of")
    return not words or headless or bool(set(lower) & _TABLE["broken"])


def _both(verb: str) -> tuple[str, str]:
    """A verb in the present, of one and of several: "carries", "carry"."""
    return present(verb), present(verb, plural=True)


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"
