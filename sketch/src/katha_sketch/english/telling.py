"""Say again what was read: an event as one plain sentence in the present tense, with names in place of pronouns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from katha_sketch.english.types import Entity, Event, Place, Reading, Role, RoleName
from katha_sketch.english.words import load_words
from katha_sketch.vocabulary.inflect import is_plural, singular, third

__all__ = ["Teller", "joined", "names_many", "present"]

_ARTICLE = re.compile(
    r"^(?:(?:suddenly|then|now|once),?\s+)?(?:the|an?|some|each|every)\s+(?:(?:each|every)\s+)?", re.IGNORECASE
)
_ONLY = re.compile(r"^(?:only|even|just|also)\s+|\b(?:very|rather|quite)\s+(?=\w+ )", re.IGNORECASE)
_POSSESSIVE = re.compile(r"^(?:my|your|his|her|its|our|their|whose)\s+(?:own\s+)?", re.IGNORECASE)
_INNER = re.compile(r"\b(?:my|your|his|her|its|our|their|whose)\s+(?:own\s+)?", re.IGNORECASE)
_OF_SOMEBODY = re.compile(r"\s+of (?:me|you|him|her|it|us|them)$", re.IGNORECASE)
_WORD = re.compile(r"[a-z']+")
_BARE_PRONOUN = re.compile(
    r"^(?:(?:all|both|one|some|each|half) of )?(?:i|me|you|he|him|she|her|it|we|us|they|them|this|that|these|those|"
    r"my|mine|his|hers|ours|theirs|\w+self|\w+selves|who|whom|which|what|"
    r"whatever|whichever|one|ones|each other|one another|both|all)$",
    re.IGNORECASE,
)
_COUNTED = re.compile(r"^(?:the |every )?(\w+) of (?:them|us|these|those)$", re.IGNORECASE)
_ONE_OF = re.compile(r"^one of ", re.IGNORECASE)
_OWN = re.compile(r"\b(the|\w+'s?) own (?=\w)")
_BE_DONE = r"\b(?:am|is|are|was|were|been|being|be|get|gets|got)\s+(?:\w+ly\s+|not\s+|so\s+|all\s+)?(\w+)"
_UNKNOWN = "someone"
_CROWD = frozenset(("everyone", "everybody", "anyone", "anybody", "nobody"))
_BROKEN = frozenset(("can", "could", "will", "would", "shall", "should", "may", "might", "must"))
"""What the parser makes of a clause whose verb was left out ("as fast as she could")."""
_REFLEXIVE = frozenset(("himself", "herself", "itself", "themselves"))
_WHAT = frozenset(("what", "whatever", "whichever"))
_POINTED = frozenset(("it", "this", "that", "they", "these", "those"))
_NO_THINGS = frozenset(("", "abstract", "time", "feeling", "person", "animal", "being", "body", "weather", "place"))
_GENERAL = frozenset(("thing", "one", "way", "time", "reason", "part"))
_AGES = frozenset(("old", "young", "little"))
_LOUD = frozenset(("shout", "yell", "scream", "whisper"))
_DIRECTIONS = frozenset(("back", "away", "in", "home", "along", "around", "together", "apart"))
"""Particles that stand behind a thing too; "blows out the candles" has its own before it."""
_PREPOSITIONS = frozenset(("after", "for", "at", "into", "to", "with", "from", "through", "towards", "past", "of"))
_PLAINER = {"round": "around"}
"""Prepositions by those that are never a verb ("they sit round the table" is read as two deeds)."""
_TALK = frozenset(
    ("say", "call", "claim", "insist", "complain", "order", "ask", "answer", "reply", "tell", "talk", "speak",
     "explain", "add", "announce", "beg", "plead", "murmur", "mutter", "exclaim", "promise", "warn", "report",
     "remark", "remind", "suggest", "inquire", "enquire", "respond", "agree", "boast", "confess", *_LOUD)
)  # fmt: skip
_NEEDS_OBJECT = frozenset(
    ("find", "take", "give", "bring", "put", "hold", "carry", "buy", "catch", "throw", "show", "hug", "push", "want")
)
_STATES = frozenset(
    ("be", "feel", "become", "seem", "look", "get", "turn", "fall", "stay", "remain", "stand", "lie", "hang", "go")
)
"""Verbs that tell in what state somebody or something is."""
_TAKES_PART: tuple[RoleName, ...] = (
    "agent",
    "patient",
    "recipient",
    "instrument",
    "companion",
    "place",
    "goal",
    "source",
)
_LIVING = ("person", "animal", "being")


def present(verb: str, *, plural: bool = False) -> str:
    """Return a verb's lemma in the present tense: "carry" is "carries", "be" of several "are"."""
    if plural:
        return "are" if verb == "be" else verb
    return third(verb)


def names_many(phrase: str) -> bool:
    """Return whether a phrase names several living beings: "the geese", "the others", "the police of the town"."""
    noun = next(reversed(phrase.lower().partition(" of ")[0].split()), "")
    return noun in ("others", "police") or (is_plural(noun) and load_words().sort(singular(noun)) in _LIVING)


def joined(names: Sequence[str]) -> str:
    """Return names as a list in words: "Ben, Ivy and Tom"."""
    unique = list(dict.fromkeys(name for name in names if name))
    return " and ".join([", ".join(unique[:-1]), unique[-1]] if len(unique) > 1 else unique)


class Teller:
    """Names of a reading's characters, and its events in plain words.

    `names` holds one name for each character, without an article: "Lena", "old man", "Lena's mother".
    """

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self._children: dict[int, list[Event]] = {}
        for event in reading.events:
            if event.within is not None:
                self._children.setdefault(event.within, []).append(event)
        self.names: dict[str, str] = {}
        self._same: dict[str, str] = {}
        acting = {who for event in reading.events if event.happens for who in event.who("agent", "recipient")}
        cast = [
            entity
            for entity in reading.entities
            if entity in reading.cast or (entity.named and entity.kind == "place" and entity.id in acting)
            if entity.kind != "place" or load_words().sort(entity.name.lower()) != "region"
            if self._somebody(entity)
        ]
        self._capitals = frozenset(word for entity in reading.entities if entity.named for word in entity.name.split())
        nouns = Counter(self._noun(entity) for entity in cast)
        for entity in cast:
            other = self._other(entity, cast)
            name = self._named(entity, alone=nouns[self._noun(entity)] == 1)
            part = _ONE_OF.match(entity.name) is not None and not entity.noun  # "one of Ben and Anna"
            alike = (
                key
                for key, known in self.names.items()
                if (known == name and entity.named) or (part and known in entity.name)
            )
            other = other or next(alike, None)
            if other is not None:
                self._same[entity.id] = other
                continue
            taken = set(self.names.values())
            numbered = (f"{name} {at}" for at in range(2, len(taken) + 3))
            self.names[entity.id] = name if name not in taken else next(one for one in numbered if one not in taken)

    def one(self, key: str) -> Entity:
        """Return an entity; whom it stands for, where "she" could not be told at first."""
        return self.reading.entity(self._same.get(key, key))

    def _somebody(self, entity: Entity) -> bool:
        """Whether it can have a look of its own: "everyone" and somebody's hands have none."""
        return entity.name not in _CROWD and not load_words().has("parts", entity.noun)

    def _other(self, entity: Entity, cast: Sequence[Entity]) -> str | None:
        """Who an unknown "she" is: whoever was named last before and can be a she."""
        if entity.name != _UNKNOWN or not entity.sentences:
            return None
        at = entity.sentences[0]
        doing = {(event.sentence, who) for event in self.reading.events for who in event.who("agent")}
        near = [
            (
                (last := max((one for one in other.sentences if one <= at), default=-1)),
                (last, other.id) in doing,
                other.id,
            )
            for other in cast
            if other.name != _UNKNOWN and other.count == 1 and other.id in self.names
            # An animal is "he" here and "she" there in many a tale.
            if other.sex in (None, entity.sex) or other.kind == "animal"
        ]
        last, _, key = max(near, default=(-1, False, ""), key=lambda found: found[:2])
        return key if last >= 0 else None

    def _noun(self, entity: Entity) -> str:
        """The last words of a name: "the three fishermen" is "fishermen"."""
        bare = _ONLY.sub("", _ARTICLE.sub("", entity.name))
        looks = {*entity.looks, *load_words().numbers}
        words = bare.split()
        while len(words) > 1 and (words[0].lower() in looks or load_words().has("colours", words[0].lower())):
            words = words[1:]
        return " ".join(words)

    def _lower(self, text: str) -> str:
        """A noun phrase from the beginning of a sentence, inside one."""
        first = text.split(" ", 1)[0].removesuffix("'s")
        return (
            text
            if first in self._capitals or first in self.names.values() or first.isupper()
            else f"{text[:1].lower()}{text[1:]}"
        )

    def _named(self, entity: Entity, *, alone: bool) -> str:
        if entity.narrator:
            return "narrator"
        if entity.name == _UNKNOWN:
            return {"male": "man", "female": "woman"}.get(entity.sex or "", "stranger")
        if entity.named:
            kin, _, rest = entity.name.partition(" ")
            return rest if kin.islower() and rest[:1].isupper() else entity.name
        owner = next((tie for tie in entity.kin if tie.other in self.names and entity.noun == tie.relation), None)
        if owner is not None:
            return f"{_whose(self.names[owner.other])} {entity.noun}"
        plain = load_words().sets["plain_person"]
        called = next((last for alias in entity.aliases if (last := alias.split()[-1]) in plain), "")
        if called and load_words().has("relations", entity.noun) and called not in self.names.values():
            return called  # "their owner, a girl of thirteen"
        bare, noun = self._lower(_ONLY.sub("", _ARTICLE.sub("", entity.name))), self._noun(entity)
        if _ONE_OF.match(entity.name) and entity.noun:
            return entity.noun  # "one of the tourists"
        if not alone or entity.count > 1 or "'s " in bare:
            return bare
        age = next((word for word in bare.split() if word in _AGES), "")
        return f"{age} {noun}" if age and noun in plain and not noun.startswith(age) else noun

    # Somebody or something inside a sentence.

    def name(self, key: str) -> str:
        """Return an entity as a sentence names it: "Lena", "the old man", "Lena and Tom", "the ball"."""
        entity = self.one(key)
        if entity.members:
            return joined([self.name(member) for member in entity.members])
        name = self.names.get(entity.id)
        if name is None:
            return self._owned(entity, entity.name, ())
        return name if name[:1].isupper() or name.startswith(("my ", "our ")) else f"the {name}"

    def people(self, keys: Iterable[str]) -> list[str]:
        """Return the characters among some entities, each member of a group by itself."""
        found: list[str] = []
        for key in keys:
            entity = self.one(key)
            found += [self.one(one).id for one in entity.members or (key,) if self.one(one).id in self.names]
        return list(dict.fromkeys(found))

    def filler(self, role: Role, doers: Sequence[str] = ()) -> str:
        """Return what fills a role without a pronoun; "" where it is nobody or nothing that is known.

        doers: who does the deed; what is theirs needs no owner's name.
        """
        if role.entity is None:
            bare = _BARE_PRONOUN.match(role.text) or load_words().has("negative", role.head)
            return "" if bare else self._lower(role.text)
        entity = self.one(role.entity)
        if role.entity in doers and _BARE_PRONOUN.match(role.text):
            return role.text.lower() if role.text.lower() in _REFLEXIVE else ""
        if entity.name == _UNKNOWN and entity.id not in self.names and _BARE_PRONOUN.match(role.text):
            return ""
        # A name stands for its bearer; for a part of somebody ("a basket of fish") the text's own words do.
        many = _COUNTED.match(role.text)
        if many is not None and entity.count != 1 and not entity.members and entity.noun:
            return self._counted(entity, many[1].lower(), doers)
        if many is not None and _ONE_OF.match(entity.name) and entity.noun and entity.id not in self.names:
            return f"{'an' if entity.noun[0] in 'aeiou' else 'a'} {entity.noun}"
        if entity.members or entity.id in self.names:
            counted = " of " in role.text and not _BARE_PRONOUN.match(role.text)
            if counted and load_words().has("relational", role.head):
                return f"{role.text.split(' of ')[0]} of {self.name(role.entity)}"  # "on top of her"
            return _inner(role.text) if counted and not entity.members else self.name(role.entity)
        text = self._owned(entity, entity.name if _BARE_PRONOUN.match(role.text) else role.text, doers)
        front = re.match(r"((?:front|top|middle|side|edge|back|bottom) of) ", role.text)
        if _OF_SOMEBODY.search(role.text) and front is not None:
            return f"{front[1]} {self._owned(entity, entity.name, doers)}"
        return f"{front[1]} {text}" if front is not None and not text.startswith(front[1]) else text

    def _counted(self, entity: Entity, count: str, doers: Sequence[str]) -> str:
        """Some of several, by what they are: "two of them" are "two letters"."""
        whole = self.name(entity.id) if entity.id in self.names else self._owned(entity, entity.name, doers)
        first, _, rest = whole.partition(" ")
        told = rest and (first.lower() in ("the", "a", "an", "some", "all") or first.lower() in load_words().numbers)
        return f"{count} {rest if told else whole}" if count in load_words().numbers and count != "one" else whole

    def _owned(self, entity: Entity, text: str, doers: Sequence[str]) -> str:
        """A thing's words with its owner's name in place of "his", or "the" where the owner is the doer."""
        plain = _OF_SOMEBODY.sub("", _plain(text) if entity.named else self._lower(_plain(text)))
        if entity.owner is not None and _POSSESSIVE.match(plain):
            rest = _inner(_POSSESSIVE.sub("", plain)).rsplit("'s ", 1)[-1]
            own = set(self.people((entity.owner,))) == set(self.people(doers)) != set()
            return f"the {rest}" if own or entity.owner in doers else f"{_whose(self.name(entity.owner))} {rest}"
        if entity.owner in doers and "'s " in plain:
            return "the " + plain.rsplit("'s ", 1)[1]
        owner = self.name(entity.owner) if entity.owner is not None else ""
        if owner and "'s" not in owner and self.one(str(entity.owner)).id in self.names and plain.count("'s ") == 1:
            return f"{_whose(owner)} " + plain.split("'s ", 1)[1]  # one name for whose hand it is
        return _inner(plain)

    def place(self, place: Place | None) -> str:
        """Return where a scene is, without a preposition: "the kitchen"; "" for what is no place to stand in."""
        if place is None or load_words().has("relational", place.noun):
            return ""
        entity = self.reading.entity(place.entity) if place.entity is not None else None
        text = place.text
        if entity is not None:
            text = self._owned(entity, entity.name, ())
        return re.sub(r"^(?:front|middle|top|side|edge|back|inside|outside) of ", "", text)

    # An event.

    def doers(self, event: Event) -> tuple[str, ...]:
        """Return who or what does it; whom it is done to where nobody does it."""
        found = event.who("agent")
        return found if found or not (event.passive or event.state) else event.who("patient")

    def shows(self, event: Event) -> bool:
        """Return whether a picture can show the event: it is told, visible, and known who or what takes part."""
        failed = event.negated and event.modality in ("can", "try")
        told = event.standing == "told" and (not event.negated or failed) and event.verb not in _BROKEN
        return told and event.visible and bool(self.sentence(event))

    def reasons(self, event: Event) -> list[Event]:
        """Return the events that the text names as an event's reason, those that can be said."""
        return [one for one in (self.reading.events[at] for at in event.because) if self.sentence(one)]

    def outcome(self, event: Event) -> str:
        """Return what the text tells to come of an event, as a sentence: what happens because of it, or at once to whom
        or what it was done; "" where it tells nothing of the kind."""
        later = [one for one in self.reading.events if one.id > event.id and one.sentence - event.sentence <= 1]
        because = [one for one in self.reading.events if event.id in one.because]
        done_to = {*event.who("patient", "recipient")}
        answers = [one for one in later if one.within != event.id and done_to & set(self.doers(one))]
        told = (self.sentence(one) for one in (*because, *answers) if self.shows(one))
        return next((text for text in told if text != self.sentence(event)), "")

    def sentence(self, event: Event) -> str:
        """Return the event as a sentence: "Lena blows out the candles."; "" where nobody known takes part.

        What only makes another deed happen ("made him laugh") is left to that deed.
        """
        words = load_words()
        if event.verb == "cry" and any(self._spoken(one.sentence, event, one.speaker) for one in self.reading.speeches):
            event = replace(event, verb="shout")  # "A wolf!" cried the boy
        children = [one for one in self._children.get(event.id, ()) if one.speech is None]
        if words.has("make", event.verb) and any(one.standing == "told" for one in children):
            return ""
        if (felt := self._felt(event) or self._pointed_out(event)) is not None:
            return felt
        subject, doers, plural = self._subject(event)
        unsaid = all(_BARE_PRONOUN.match(one.text) or one.entity is None for one in event.all("patient"))
        named = event.passive and words.has("naming", event.verb)  # "was called Bao"
        if not subject or named or (event.verb == "do" and unsaid):
            return ""
        if event.modality == "want" and event.standing == "intended":
            wants = "do not want" if plural else "does not want"
            told = f"{wants if event.negated else present('want', plural=plural)} to {self.infinitive(event)}"
            said = f"{subject} {told}"
            return f"{said[:1].upper()}{said[1:]}."
        told = self._predicate(event, doers, plural)
        if not told or told == subject:
            return ""
        said = _OWN.sub(r"\1 ", " ".join(f"{subject} {told}".split()))
        return f"{said[:1].upper()}{said[1:]}."

    def _pointed_out(self, event: Event) -> str | None:
        """What "it" turns out to be, as that which is there: "It was a red scarf" is "A red scarf is there."."""
        words, roles = load_words(), event.all("agent")
        if event.verb != "be" or event.negated or len(event.state) != 1 or len(roles) != 1:
            return None
        noun = event.state[0]
        sort = words.sort(noun)
        if roles[0].text.lower() not in _POINTED or sort in _NO_THINGS or words.is_place(noun):
            return None
        count = "|".join(("an?", *words.numbers))
        told = re.search(rf"\b({count}) ((?:[\w-]+ ){{0,2}}?{re.escape(noun)}\w{{0,2}})\b", event.text.lower())
        if told is None:
            return None
        several = told[1] in words.numbers and told[1] != "one"
        return f"{told[1].capitalize()} {_ONLY.sub('', told[2])} {'are' if several else 'is'} there."

    def _felt(self, event: Event) -> str | None:
        """What nobody does and somebody feels, as that: "The news shocked Emma" is "Emma is shocked."."""
        words, whom = load_words(), self.people(event.who("patient"))
        done = self.reading.surface(event).lower()
        lifeless = all(self.reading.entity(key).kind == "abstract" for key in event.who("agent"))
        if len(whom) != 1 or event.negated or not event.who("agent") or not lifeless or done not in words.feelings:
            return None
        name = self.name(whom[0])
        return f"{name[:1].upper()}{name[1:]} {'are' if self._several(self.one(whom[0])) else 'is'} {done}."

    def clause(self, event: Event) -> str:
        """Return the event inside another sentence, without a full stop: names keep their capital."""
        said = self.sentence(event).rstrip(".")
        subject = self._subject(event)[0]
        return said if subject[:1].isupper() else f"{said[:1].lower()}{said[1:]}"

    def infinitive(self, event: Event) -> str:
        """Return the deed without its doer: "blow out the candles"."""
        doers = self.doers(event)
        told = self._complements(event, doers)
        head = event.verb if self._apart(event, doers) else event.predicate
        return " ".join(f"{head} {told}".split())

    def _subject(self, event: Event) -> tuple[str, tuple[str, ...], bool]:
        """The subject, its entities, and whether it is several."""
        roles = event.all("agent")
        if not roles and (event.passive or event.state):
            roles = event.all("patient")
        known = [role for role in roles if role.entity is not None]
        names = [self.filler(role) for role in known]
        keys = tuple(str(role.entity) for role in known)
        many = len({name for name in names if name}) > 1 or any(self._several(self.one(key)) for key in keys)
        return joined(names), keys, many

    def _several(self, entity: Entity) -> bool:
        if entity.name.lower() in _CROWD:
            return False
        return entity.count != 1 or (not entity.named and names_many(entity.name))

    def _predicate(self, event: Event, doers: Sequence[str], plural: bool) -> str:
        verb, particle = event.verb, "" if self._apart(event, doers) else event.particle
        rest = self._complements(event, doers)
        if event.passive and not event.who("agent") and not self._goes(event):
            done = self.reading.surface(event)
            return f"{present('be', plural=plural)} {'not ' * event.negated}{done} {rest}"
        whole = event.particle or (event.all("place") and not self.people(doers))
        objects = event.all("patient")
        if objects and all(role.text.lower() in _WHAT for role in objects):
            return ""  # "saved what he was holding"
        if verb in _NEEDS_OBJECT and not event.all("patient") and not whole:
            return ""  # but "the plane took off", "the kite caught on a branch"
        speaks = verb in _TALK and not event.particle and not event.negated
        if speaks and not event.who("patient") and not self._that(event):
            return self._speaking(event, plural)
        if event.modality in ("can", "try") and (event.negated or event.modality == "try"):
            able = "cannot" if event.negated else f"{present('try', plural=plural)} to"
            return f"{able} {event.verb} {particle} {rest}"
        if event.negated:
            no = "not" if verb == "be" else ""
            head = f"{present('be', plural=plural)} {no}" if no else f"{present('do', plural=plural)} not {verb}"
            return f"{head} {particle} {rest}"
        if verb in ("be", "live") and not rest.strip():
            return ""
        said = f"{present(verb, plural=plural)} {particle}"
        if event.phase == "stop":
            said = f"{present('stop', plural=plural)} {verb.removesuffix('e') if verb[-2:] != 'ee' else verb}ing"
        return f"{said} {rest} {self._partner(event)} {self._that(event)}"

    def _partner(self, event: Event) -> str:
        """To whom, with whom or from whom something is done that takes two, where no role says it: "shares the bread
        with Pip"."""
        words = load_words()
        preposition = words.group("partners", event.predicate.replace(" ", "_"))
        if preposition is None or self.people(event.who("patient", "recipient", "companion", "goal", "place")):
            return ""
        whom = joined([self.name(key) for key in self.addressees(event)])
        return f"{preposition} {whom}" if whom else ""

    def _goes(self, event: Event) -> bool:
        """Whether a passive is none: "An ant passed by"."""
        return load_words().has("motion", event.verb) and re.search(_BE_DONE, event.text) is None

    def _that(self, event: Event) -> str:
        """What is noticed, ordered or asked for: " that the gate is open", " to come in"."""
        for child in self._children.get(event.id, ()):
            if child.speech is not None or (child.purpose and child.id in event.purpose):
                continue
            if child.verb in _TALK and event.verb in _TALK:
                continue  # "asked her to say nothing"
            if any(role.text.lower() in _WHAT for role in child.all("patient")):
                continue  # "told him what to do"
            asked = load_words().has("control", event.verb)  # how to do it is only explained
            if asked and child.standing == "intended" and event.who("recipient") and child.id not in event.purpose:
                return f"{'not ' * child.negated}to {self.infinitive(child)}"
            if child.standing in ("told", "reported") and load_words().has("fact", event.verb):
                perceived = set(self.doers(child)) & set(event.who("patient"))
                return "" if perceived else f"that {self.clause(child)}" if self.sentence(child) else ""
        return ""

    def speaks(self, event: Event) -> bool:
        """Return whether an event tells that somebody speaks."""
        called = event.verb == "cry" and event.speech is None
        called = called and any(self._spoken(one.sentence, event, one.speaker) for one in self.reading.speeches)
        return (called or event.verb in _TALK) and event.happens

    def says(self, who: str, to: Sequence[str], events: Sequence[Event]) -> str:
        """Return as a sentence that somebody speaks, as loudly as one of the events tells: "Ben whispers to Ida."."""
        loud = (one.verb for one in events if one.verb in _LOUD and who in self.people(one.who("agent")))
        verb, whom = next(loud, "talk"), joined([self.name(key) for key in to])
        told = present(verb if whom or verb != "talk" else "speak", plural=self._several(self.one(who)))
        name = self.name(who)
        rest = f" {'at' if verb in ('shout', 'yell', 'scream') else 'to'} {whom}" if whom else ""
        about = next((topic for one in events[:1] for topic in self.topics(one)), None)
        rest += f" about {about}" if about is not None else ""
        return f"{name[:1].upper()}{name[1:]} {told}{rest}."

    def does(self, who: str, deed: str, whom: Sequence[str]) -> str:
        """Return as a sentence that somebody does something to others: "Mia looks at the man."."""
        verb, _, rest = deed.partition(" ")
        name, others = self.name(who), joined([self.name(key) for key in whom])
        told = f"{name} {present(verb, plural=self._several(self.one(who)))} {rest} {others}."
        return " ".join(f"{told[:1].upper()}{told[1:]}".split())

    def addressees(self, event: Event) -> list[str]:
        """Return to whom an event of speaking, or of what takes two, turns: as told, else whoever else is there."""
        own = {self.one(key).id for key in self.doers(event)}
        return [key for key in event.to if self.one(key).id not in own]

    def topics(self, event: Event) -> list[str]:
        """Return the things that are spoken of in what is quoted or reported, as words: "the flowers"."""
        seen = {key for one in self.reading.of(event.sentence) if one.happens for key in one.who(*_TAKES_PART)}
        words, text = load_words(), self.reading.sentences[event.sentence].text.lower()
        found: list[tuple[bool, int, str]] = []
        for entity in self.reading.entities:
            if event.sentence not in entity.sentences or entity.id in seen:
                continue
            if entity.id in self.names and entity.kind != "animal":
                continue
            known = entity.kind in ("thing", "animal") and entity.sort not in (
                "",
                "body",
                "abstract",
                "time",
                "feeling",
            )
            at = text.find(entity.noun)
            if known and entity.noun and at >= 0 and not words.has("parts", entity.noun):
                found.append((entity.sort in ("material", "substance"), at, entity.noun))
        return [f"the {noun}" for _, _, noun in sorted(found)] or self._subjects(event.sentence)

    def _subjects(self, sentence: int) -> list[str]:
        """What is spoken of in quotes that name no thing, by their words: "I am tired" is about sleep."""
        said = " ".join(one.text for one in self.reading.speeches if one.sentence == sentence).lower()
        found = (load_words().group("topics", word) for word in _WORD.findall(said))
        return [f"the {topic}" for topic in dict.fromkeys(found) if topic is not None]

    def _speaking(self, event: Event, plural: bool) -> str:
        whom = joined([self.name(key) for key in self.addressees(event)])
        verb = event.verb if event.verb in _LOUD else "shout" if event.verb == "call" else "talk"
        told = present("speak" if verb == "talk" else verb, plural=plural)
        if whom:
            told = f"{present(verb, plural=plural)} {'at' if verb in ('shout', 'yell') else 'to'} {whom}"
        about = (
            self.topics(event)[:1] if not event.all("topic") else [self._object(one, ()) for one in event.all("topic")]
        )
        return f"{told} about {about[0].removeprefix('about ')}" if about and about[0] else told

    def _spoken(self, sentence: int, event: Event, speaker: str | None) -> bool:
        return sentence == event.sentence and speaker in event.who("agent")

    def _object(self, role: Role, doers: Sequence[str]) -> str:
        text = self.filler(role, doers)
        return f"{role.preposition} {text}".strip() if text else ""

    def _complements(self, event: Event, doers: Sequence[str]) -> str:
        """Everything after the verb: the thing, the receiver, what becomes of it, with what, where and whereto."""
        gone = event.passive and not event.who("agent")
        apart = self._apart(event, doers)
        objects = [] if gone else [self._object(role, doers) for role in self._objects(event)]
        things = re.sub(r"\bno\b", "any", joined(objects)) if event.negated else joined(objects)
        told = {self.filler(role, doers) for role in event.all("patient")}
        to = [
            role for role in event.all("recipient") if self.filler(role, doers) and self.filler(role, doers) not in told
        ]
        parts = [things, event.particle if apart else ""]
        parts += self._states(event) if event.verb in _STATES else event.state if things else ()
        if gone and len(to) > 1:
            to = [role for role in to if not role.preposition]
            parts.append(f"to {joined([self.filler(role, doers) for role in to])}")
            to = []
        for role in to:
            whom = self.filler(role, doers)
            given = "for" if load_words().has("for_verbs", event.verb) else "to"
            before = role.preposition or (given if things or gone else "")
            parts.append(f"{before} {whom}")
        seen = {role.start for role in self._objects(event)}
        where = event.all("companion", "instrument", "source", "place", "goal", "topic")
        listed: list[tuple[str, list[str]]] = []
        for role in sorted(where, key=lambda role: (role.role not in ("companion", "instrument"), role.start)):
            text = self.filler(role, doers)
            adverb = role.entity is None and role.preposition and not event.particle
            if load_words().has("no_thing", role.head):
                continue  # "in opposite directions", "under her breath"
            if text and role.entity not in doers and not adverb and role.start not in seen:
                before = "out of" if role.role == "source" and role.preposition == "out" else role.preposition
                before = _PLAINER.get(before, before)
                # "with Ann and Bo" are two of a kind, "in a tree in the forest" is one place within the other
                same = (
                    texts
                    for lead, texts in listed
                    if before and lead == before and (role.role != "place" or lead == "between")
                )
                if (texts := next(same, None)) is not None:
                    texts.append(text)
                else:
                    listed.append((before, [text]))
        parts += [f"{before} {joined(texts)}" if before else joined(texts) for before, texts in listed]
        return " ".join(part for part in parts if part.strip())

    def _objects(self, event: Event) -> tuple[Role, ...]:
        """The objects of a deed; of "read the name on the envelope" the envelope."""
        found, on = event.all("patient"), [role for role in event.all("place") if role.preposition == "on"]
        words = [role for role in found if load_words().sort(role.head) in ("abstract", "")]
        written = event.verb == "read" and len(words) == len(found) == len(on) == 1
        return (replace(on[0], preposition=""),) if written else found

    def _states(self, event: Event) -> tuple[str, ...]:
        """What somebody is: "cold and hungry", "a jackal"; nothing for what is only "a thing"."""
        words = load_words()
        told = [state for state in event.state if state not in _GENERAL]
        nouns = [state for state in told if words.sort(state) in ("animal", "person", "being")]
        own = {one: found[0] for one in nouns if (found := re.search(rf"\b{re.escape(one)}\w*", event.text))}
        said = [
            f"{'an' if one[0] in 'aeiou' else 'a'} {one}" if own.get(one) == one and event.verb == "be"
            else own.get(one, one) for one in told
        ]  # fmt: skip
        return (joined(said),) if said else ()

    def _apart(self, event: Event, doers: Sequence[str]) -> bool:
        """Whether a particle goes behind its object: "carries Oliver back", "licks it up"."""
        if not event.particle or (event.passive and not event.who("agent")):
            return False
        objects = [self._object(role, doers) for role in event.all("patient")]
        if event.particle in _PREPOSITIONS:
            return False  # "runs after Lily", "asks for the puppet"
        somebody = bool(self.people(event.who("patient"))) or event.particle in _DIRECTIONS
        return bool(objects) and all(objects) and somebody


def _whose(name: str) -> str:
    """A name as an owner's: "Tom's", "the brothers'"."""
    return f"{name}'" if name.endswith("s") and name.split()[-1].islower() else f"{name}'s"


def _plain(text: str) -> str:
    """A noun phrase without what is told of it in a clause of its own."""
    told = _ONLY.sub("", re.split(r",? (?:who|which|that|where|whose) ", text)[0])
    return re.sub(r"^one (?=[a-z]+ [a-z])(?!of )", "a ", told)  # "one striped sock" reads as somebody


def _inner(text: str) -> str:
    return _INNER.sub("the ", _OF_SOMEBODY.sub("", text))
