"""A moment to the prompt that asks for it: the inverse of `read_scene`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from katha.language.lexicon import Vocabulary, load_vocabulary
from katha.language.looks import clash
from katha.language.types import Actor, SceneReading

__all__ = ["describe_actor", "describe_aim", "describe_deed", "describe_scene", "describe_thing"]

_NO_WORDS: Mapping[str, str] = MappingProxyType({})
_SHOTS = {"close_up": "Close-up", "medium": "Medium shot", "wide": "Wide shot"}
_NUMBERS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_FROM = {"take": "from", "carry": "to", "give": "to", "throw": "at"}


def _article(phrase: str) -> str:
    return f"{'an' if phrase[0] in 'aeio' or phrase.startswith('umb') else 'a'} {phrase}"


def describe_thing(concept: str, article: str = "a", words: Mapping[str, str] = _NO_WORDS) -> str:
    """A prop in words: "a net", "the net", "bread". `words` overrides the noun for a concept."""
    vocabulary = load_vocabulary()
    word = words.get(concept, vocabulary.get("prop", concept).words[0])
    if vocabulary.grammar.has("mass", word) and article == "a":
        return word
    return f"the {word}" if article == "the" else _article(word)


def _looks(actor: Actor, vocabulary: Vocabulary) -> tuple[list[str], list[str]]:
    """Adjectives, and looks that are things worn ("red scarf")."""
    words = [vocabulary.get("attribute", look).words[0] for look in actor.attributes]
    return [word for word in words if " " not in word], [word for word in words if " " in word]


def _other_word(word: str, actor: Actor, vocabulary: Vocabulary) -> str:
    """Another word for the look that `word` names: an aged man is not "old man", which is a concept of its own."""
    looks = (vocabulary.get("attribute", look).words for look in actor.attributes)
    return next((words[1] for words in looks if words[0] == word and len(words) > 1), word)


def describe_actor(actor: Actor, article: str = "the", words: Mapping[str, str] = _NO_WORDS) -> str:
    """Who an actor is, with every look and what it carries without doing anything with it: "the small grey mouse with
    a red scarf", "three crows"."""
    vocabulary = load_vocabulary()
    adjectives, worn = _looks(actor, vocabulary)
    noun = words.get(actor.concept, vocabulary.get("character", actor.concept).words[0])
    if adjectives and f"{adjectives[-1]} {noun}" in vocabulary.senses:
        adjectives[-1] = _other_word(adjectives[-1], actor, vocabulary)
    number = ""
    if actor.count > 1:
        noun = vocabulary.grammar.inflector.plural(noun)
        number = _NUMBERS[actor.count] if actor.count < len(_NUMBERS) else str(actor.count)
    phrase = " ".join(part for part in (number, *adjectives, noun) if part)
    if article != "a":
        phrase = f"{article} {phrase}"
    elif actor.count == 1:
        phrase = _article(phrase)
    held = [_article(word) for word in worn]
    return f"{phrase} with {' and '.join(held)}" if held else phrase


@dataclass
class _Writer:
    """Writes one prompt; a character's looks are given at its first mention. `base` keeps verbs in their base form."""

    reading: SceneReading
    vocabulary: Vocabulary
    words: Mapping[str, str] = field(default_factory=dict)
    base: bool = False
    named: set[int] = field(default_factory=set)
    things: set[str] = field(default_factory=set)

    def text(self) -> str:
        sentences = [self._where(), *(self.actor(at) for at in range(len(self.reading.actors))), self._rest()]
        return " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences if sentence)

    def _where(self) -> str:
        reading, parts = self.reading, []
        if reading.setting is not None:
            parts.append(self._lead("setting", reading.setting, "the"))
        if reading.time is not None:
            parts.append(self._lead("time", reading.time, ""))
        shot = f"{_SHOTS[reading.shot]}. " if reading.shot is not None else ""
        where = " ".join(parts)
        if reading.weather is not None:
            weather = self._lead("weather", reading.weather, "")
            where = f"{where}, {weather}" if where else weather
        where = where[:1].upper() + where[1:]
        return f"{shot}{where}." if where else shot.strip()

    def _lead(self, kind: str, concept: str, article: str) -> str:
        word = self.words.get(concept, self.vocabulary.get(kind, concept).words[0])  # type: ignore[arg-type]
        return " ".join(part for part in (self.vocabulary.leads[concept], article, word) if part)

    def _name(self, at: int) -> str:
        actor = self.reading.actors[at]
        same = [other for other in self.reading.actors if other.concept == actor.concept]
        first = at not in self.named
        self.named.add(at)
        if not first and len(same) == 1:
            return describe_actor(Actor(actor.concept, count=actor.count), words=self.words)
        earlier = [
            other
            for position, other in enumerate(self.reading.actors)
            if position < at and other.concept == actor.concept and (other.count > 1) == (actor.count > 1)
        ]
        alike = any(not clash(other.attributes, actor.attributes) for other in earlier)
        return describe_actor(actor, "another" if alike else "the", self.words)

    def _target(self, target: str, subject: Actor) -> str:
        fits = [at for at, actor in enumerate(self.reading.actors) if actor.concept == target]
        others = [at for at in fits if self.reading.actors[at] is not subject]
        if fits:
            return self._name((others or fits)[0])
        if target in {concept.id for concept in self.vocabulary.concepts("prop")}:
            self.things.add(target)
            return describe_thing(target, "the", self.words)
        return describe_actor(Actor(target), words=self.words)

    def actor(self, at: int) -> str:
        """The sentence about the actor at index `at`."""
        actor = self.reading.actors[at]
        known = at in self.named
        who = self._name(at)
        handled = actor.action in _FROM and bool(actor.carries)
        held = actor.carries[1:] if handled else actor.carries
        if held:
            glue = "and" if " with " in who else "with"
            who = f"{who} {glue} {' and '.join(describe_thing(prop, words=self.words) for prop in held)}"
        feels = self._emotion(actor)
        does = self._does(actor, handled)
        be = "are" if actor.count > 1 else "is"
        if feels and does:
            return f"{who} {be} {feels} and {does}."
        if feels:
            return f"{who} {be} {feels}."
        if does:
            return f"{who} {does}."
        stand = "stand" if actor.count > 1 else "stands"
        return "" if known and not held else f"{who} {stand} nearby."

    def aim(self, at: int) -> str:
        """What the actor at index `at` does, without saying who."""
        actor = self.reading.actors[at]
        return self._does(actor, actor.action in _FROM and bool(actor.carries))

    def _emotion(self, actor: Actor) -> str:
        return self.vocabulary.get("emotion", actor.emotion).words[0] if actor.emotion is not None else ""

    def _does(self, actor: Actor, handled: bool) -> str:
        if actor.action is None:
            return ""
        say = self.vocabulary.says[actor.action]
        verb = self._conjugated(say.verb, actor.count > 1)
        if handled:
            thing = actor.carries[0]
            self.things.add(thing)
            direct = f"{verb} {describe_thing(thing, 'the', self.words)}"
            if actor.target is None or actor.target == thing:
                return direct
            return f"{direct} {_FROM[actor.action]} {self._target(actor.target, actor)}"
        if actor.target is None:
            return verb
        return " ".join(part for part in (verb, say.preposition, self._target(actor.target, actor)) if part)

    def _conjugated(self, verb: str, plural: bool) -> str:
        if verb.startswith("be "):
            return f"{'are' if plural else 'is'} {verb[3:]}"
        return self.vocabulary.grammar.inflector.verb(verb, "base" if plural or self.base else "third")

    def _rest(self) -> str:
        rest = [prop for prop in self.reading.props if prop not in self.things]
        return ", ".join(describe_thing(prop, words=self.words) for prop in rest) + "." if rest else ""


def describe_scene(reading: SceneReading, words: Mapping[str, str] = _NO_WORDS) -> str:
    """A prompt in plain sentences, without pronouns, that `read_scene` reads back as `reading`.

    `words` overrides the noun for a concept id ({"rabbit": "hare"}). Names and unread words are not part of a prompt;
    two actors of one kind have to differ in their looks.
    """
    return _Writer(reading, load_vocabulary(), words).text()


def describe_aim(actor: Actor, others: Sequence[Actor] = (), words: Mapping[str, str] = _NO_WORDS) -> str:
    """What one actor does, in base form without a subject: "give the cheese to the lion"; "" for no action."""
    reading = SceneReading((actor, *others))
    return _Writer(reading, load_vocabulary(), words, base=True).aim(0)


def describe_deed(actor: Actor, others: Sequence[Actor] = (), words: Mapping[str, str] = _NO_WORDS) -> str:
    """What one actor does and feels, as a sentence: "The mouse is happy and gives the cheese to the
    lion." `others` are the actors that its target may be."""
    writer = _Writer(SceneReading((actor, *others)), load_vocabulary(), words)
    sentence = writer.actor(0)
    return sentence[0].upper() + sentence[1:]
