"""Other ways to say an answer, and other answers that sound like it: by rule and from the vocabulary (Sec. C.5).

A paraphrase says the same and is accepted. A distractor differs from the right answer in one thing and is said in the
same way: the same names, counts and feelings."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from katha.eval_bridge.questions.build import ORDERED, sentence
from katha_sketch.english.phrases import Claim, read_phrase
from katha_sketch.vocabulary import ConceptKind, VerbForm, load_vocabulary

_SYNONYMS = 4
_MOST = 12
_LONGEST_NAME = 3
_ARTICLES = frozenset(("a", "an", "the"))
_BE = frozenset(("is", "are", "was", "were"))
_FORMS: Mapping[str, VerbForm] = {"third": "third", "past": "past", "participle": "participle", "ing": "ing"}
_FEELING_FIRST = re.compile(r"^(.+?) (?:is|are|was|were|feels?|felt) ([\w ]+?) and (.+)$")
_ONLY_FEELING = re.compile(r"^.+? (?:is|are|was|were|feels?|felt|becomes?|became) ([\w ]+)$")
_PRONOUNS = ("it", "he", "she")
_SWAPPED: tuple[ConceptKind, ...] = ("action", "emotion", "character", "prop")
Place = tuple[int, int]
"""The first of some words and the one after the last."""


def _find(words: Sequence[str], concept: str, kind: ConceptKind) -> Place | None:
    """Return where `words` name the concept, the longest name first."""
    senses = load_vocabulary().senses
    for length in range(_LONGEST_NAME, 0, -1):
        for start in range(len(words) - length + 1):
            text = " ".join(word.strip(".,;!'\"").lower() for word in words[start : start + length])
            if any(sense.id == concept and sense.kind == kind for sense in senses.get(text, ())):
                return start, start + length
    return None


def _replaced(words: Sequence[str], place: Place, new: str) -> str:
    return " ".join((*words[: place[0]], new, *words[place[1] :]))


def _inflected(kind: ConceptKind, word: str, said: Sequence[str], concept: str) -> str:
    """`word` in the form that `said` has among the forms of the concept's words; only a verb has several."""
    vocabulary = load_vocabulary()
    text = " ".join(said).strip(".,;!").lower()
    inflector = vocabulary.inflector
    for known in vocabulary.get("action", concept).words if kind == "action" else ():
        if known == text:
            return word
        for form in inflector.verb_forms(known):
            if form.surface == text and form.form in _FORMS:
                return inflector.verb(word, _FORMS[form.form])
    return word


# How a story names its people and their feelings.


def called(concept: str, text: str) -> tuple[str, bool]:
    """Return how `text` calls a character ("hare" for a rabbit, "three mice"), and whether it is several; its commonest
    noun where `text` does not name it."""
    vocabulary, words = load_vocabulary(), [word.strip(".,;!'\"").lower() for word in text.split()]
    place = _find(words, concept, "character")
    if place is None:
        return vocabulary.get("character", concept).words[0], False
    said = " ".join(words[place[0] : place[1]])
    many = any(sense.plural for sense in vocabulary.senses.get(said, ()) if sense.id == concept)
    counted = many and place[0] > 0 and words[place[0] - 1] in vocabulary.numbers
    return f"{words[place[0] - 1]} {said}" if counted else said, many


def feeling(character: str, before: str | None, after: str, text: str = "") -> str:
    """A feeling or its change, as one readable sentence ("The lion changes from afraid to happy"); the character is
    called as `text` calls it."""
    words = load_vocabulary()
    late = words.get("emotion", after).words[0]
    who, many = called(character, text)
    if before is None or before == after:
        return f"The {who} {'feel' if many else 'feels'} {late}"
    return f"The {who} {'change' if many else 'changes'} from {words.get('emotion', before).words[0]} to {late}"


def without_feeling(text: str) -> str | None:
    """`text` without a feeling told before an action ("The lion is angry and takes the mouse" is "The lion takes the
    mouse"); None if it tells nothing but a feeling."""
    plain, find = sentence(text), load_vocabulary().find
    both = _FEELING_FIRST.match(plain)
    if both is not None and find(both[2], "emotion"):
        return f"{both[1]} {both[3]}"
    only = _ONLY_FEELING.match(plain)
    return None if only is not None and find(only[1], "emotion") else plain


# Other ways to say it.


def _event_words(event: Claim, text: str) -> Iterator[str]:
    """`text` with its verb exchanged for the concept's other verbs, in the same form; the verb that `text` uses and
    the concept's commonest words come first."""
    if event.action is None:
        return
    vocabulary, words = load_vocabulary(), text.split()
    place = _find(words, event.action, "action")
    if place is None:
        return
    known, forms = vocabulary.get("action", event.action).words, vocabulary.inflector.verb_forms
    used = [word for word in known if any(form.surface in text.lower() for form in forms(word))]
    for verb in list(dict.fromkeys((*used[:1], *known)))[:_SYNONYMS]:
        if not verb.startswith("be "):
            yield _replaced(words, place, _inflected("action", verb, words[slice(*place)], event.action))


def _feeling_words(text: str) -> Iterator[str]:
    vocabulary, reading = load_vocabulary(), read_phrase(text)
    who = [vocabulary.get("character", concept).words[0] for concept in reading.concepts.get("character", ())]
    if reading.change is not None and reading.change[0] is not None and reading.change[1] is not None:
        early, late = (vocabulary.get("emotion", str(concept)).words[:_SYNONYMS] for concept in reading.change)
        for before, after in product(early[:3], late[:3]):
            yield f"from {before} to {after}"
            yield f"{before} to {after}"
        return
    for concept in reading.concepts.get("emotion", ())[-1:]:
        for word in vocabulary.get("emotion", concept).words[:_SYNONYMS]:
            yield word
            yield from (f"the {name} is {word}" for name in who[:1])


def paraphrases(text: str) -> list[str]:
    """Accepted ways to say `text`: itself, without articles, with a pronoun, and with the vocabulary's synonyms."""
    plain = sentence(text)
    reading = read_phrase(plain)
    lower = plain[:1].lower() + plain[1:]
    said = [plain, " ".join(word for word in lower.split() if word.lower() not in _ARTICLES)]
    if plain.lower().startswith("the ") and reading.concepts.get("character"):
        rest = lower.split()[2:]
        said += [" ".join((pronoun, *rest)) for pronoun in _PRONOUNS if rest]
    events = [event for event in reading.events if not event.negated]
    if len(events) == 1 and events[0].emotion is None and not reading.order:
        said += _event_words(events[0], plain)
    if not any(event.action for event in reading.events):
        said += _feeling_words(plain)
    if reading.order == "before" and ORDERED in lower:
        first, second = lower.split(ORDERED, 1)
        said += [
            f"{first}, then {second}",
            f"first {first}, then {second}",
            f"{second} after {first}",
            f"{first} first",
        ]
    return list(dict.fromkeys(said))[:_MOST]


# Other answers that sound like the right one: what distractors are made of.


def other_feelings(right: str, known: Sequence[str], seed: str) -> list[str]:
    """Feelings that are not `right`: those of the story first, each group in an order fixed by `seed`."""
    generator = random.Random(seed)
    told = [concept for concept in known if concept != right]
    rest = [item.id for item in load_vocabulary().concepts("emotion") if item.id not in (*told, right)]
    return generator.sample(told, len(told)) + generator.sample(rest, len(rest))


def other_actions(text: str, story: Sequence[str], seed: str) -> list[str]:
    """Events that `text` could be taken for: the story's own with the same doer first, then other things it might do.

    Without a doer and an action that the vocabulary knows, the story's other events.
    """
    vocabulary, generator = load_vocabulary(), random.Random(seed)
    event = next((item for item in read_phrase(text).events if item.action and item.actor), None)
    if event is None:
        return generator.sample(list(story), len(story))

    def doer(told: str) -> str | None:
        return next((item.actor for item in read_phrase(told).events if item.actor), None)

    same = [other for other in dict.fromkeys(story) if doer(other) == event.actor]
    used = {item.action for other in (text, *story) for item in read_phrase(other).events}
    free = [item.id for item in vocabulary.concepts("action") if item.id not in used]
    made = [
        told for action in generator.sample(free, len(free)) for told in _other_deed(text, str(event.action), action)
    ]
    return generator.sample(same, len(same)) + made


def _other_deed(text: str, concept: str, other: str) -> list[str]:
    """`text` with the deed `concept` exchanged for `other`, the rest as it was ("The three doves hide near the net");
    nothing where nobody does it, or where the other deed needs an object that is not there."""
    parts = text.split(ORDERED)
    for at, part in enumerate(parts):
        event = next((event for event in read_phrase(part).events if event.action == concept), None)
        place = _find(part.split(), concept, "action")
        if event is None or event.actor is None or place is None:
            continue
        if not _may(other, event.target):
            return []
        parts[at] = _exchanged(part.split(), place, concept, other, event.target is not None)
        return [sentence(ORDERED.join(parts))]
    return []


def _may(action: str, target: str | None) -> bool:
    """Return whether a deed can be done to `target`: nobody plants a lion, or pulls nothing."""
    vocabulary = load_vocabulary()
    if target is None:
        return not vocabulary.has("objects", action)
    somebody = any(concept.id == target for concept in vocabulary.concepts("character"))
    return vocabulary.has("to_somebody" if somebody else "to_something", action)


def _exchanged(words: list[str], place: Place, concept: str, other: str, aimed: bool) -> str:
    """`words` with the verb at `place` exchanged, with the preposition that the other verb takes."""
    vocabulary = load_vocabulary()
    head, said, rest = words[: place[0]], words[place[0] : place[1]], words[place[1] :]
    says = vocabulary.says[other]
    plural = False
    if head and head[-1].lower() in _BE:  # "is trapped in the net"
        plural = head.pop().lower() in {"are", "were"}
        verb = vocabulary.inflector.verb(says.verb, "base" if plural else "third")
    else:
        verb = _inflected("action", says.verb, said, concept)
    if says.verb.startswith("be "):
        verb = f"{'are' if plural or verb == says.verb else 'is'} {says.verb[3:]}"
    at = max((place for place, word in enumerate(rest) if word == "to"), default=0)
    rest = rest[at:] if aimed and concept == "give" else rest  # "gives the gold to the merchant": about the merchant
    while aimed and rest and vocabulary.has("prepositions", rest[0].lower()):
        rest = rest[1:]
    return " ".join([*head, verb, *([says.preposition] if aimed and says.preposition else []), *rest])


def _other_concept(words: Sequence[str], place: Place, kind: ConceptKind, concept: str, other: str) -> str:
    """The sentence with the concept at `place` exchanged for another one."""
    word = load_vocabulary().get(kind, other).words[0]
    return sentence(_replaced(words, place, _inflected(kind, word, words[slice(*place)], concept)))


def reworded(text: str, kind: ConceptKind, instead: Mapping[str, str]) -> Iterator[str]:
    """Sentences in which one concept of `kind` is replaced as `instead` says (ids of the vocabulary)."""
    plain = sentence(text)
    words = plain.split()
    for concept in read_phrase(plain).concepts.get(kind, ()):
        place = _find(words, concept, kind)
        if place is not None and concept in instead:
            yield _other_concept(words, place, kind, concept, instead[concept])


def swaps(text: str, seed: str, prefer: Sequence[str] = (), kinds: Sequence[ConceptKind] = _SWAPPED) -> list[str]:
    """Sentences that differ from `text` in one concept each, in an order fixed by `seed`.

    Concepts of `prefer` (those the story knows) are used before the rest of the vocabulary.
    """
    vocabulary, generator = load_vocabulary(), random.Random(seed)
    plain = sentence(text)
    words, reading = plain.split(), read_phrase(plain)
    made: list[tuple[bool, str]] = []
    for kind in kinds:
        used = reading.concepts.get(kind, ())
        others = [item.id for item in vocabulary.concepts(kind) if item.id not in used]
        for concept in used:
            place = _find(words, concept, kind)
            if place is None:
                continue
            for other in generator.sample(others, min(6, len(others))) + [item for item in others if item in prefer]:
                if kind != "action":
                    made.append((other in prefer, _other_concept(words, place, kind, concept, other)))
                elif other not in prefer:  # a deed that is in the story too might be true
                    made += [(False, told) for told in _other_deed(plain, concept, other)]
    generator.shuffle(made)
    return list(dict.fromkeys(text for _, text in sorted(made, key=lambda item: not item[0])))
