"""Other ways to say an answer, and other answers that sound like it: both by rule, from the vocabulary.

`paraphrases` keeps the meaning (the accepted set of Sec. C.5); `swaps` changes exactly one concept (a distractor).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from katha.language import ConceptKind, PhraseEvent, Vocabulary, load_vocabulary, read_phrase
from katha.language.inflect import VerbForm

__all__ = [
    "feeling",
    "other_actions",
    "other_feelings",
    "paraphrases",
    "sentence",
    "swaps",
    "without_feeling",
]

_SYNONYMS = 4
_MOST = 12
_LONGEST_NAME = 3
_ARTICLES = frozenset(("a", "an", "the"))
_SWAPPED: tuple[ConceptKind, ...] = ("action", "emotion", "character", "prop")
_FORMS: Mapping[str, VerbForm] = {"third": "third", "past": "past", "participle": "participle", "ing": "ing"}
_FEELING_FIRST = re.compile(r"^(.+?) (?:is|are|was|were|feels?|felt) ([\w ]+?) and (.+)$")
_ONLY_FEELING = re.compile(r"^.+? (?:is|are|was|were|feels?|felt|becomes?|became) ([\w ]+)$")
_PRONOUNS = ("it", "he", "she")


def sentence(text: str) -> str:
    """`text` as a sentence without its full stop: "the mouse bites the net." is "The mouse bites the net"."""
    clean = " ".join(text.split()).rstrip(" .;,!")
    return clean[:1].upper() + clean[1:]


def feeling(character: str, before: str | None, after: str) -> str:
    """A feeling or its change, as one readable sentence ("The lion changes from afraid to happy")."""
    words = load_vocabulary()
    late = words.get("emotion", after).words[0]
    who = words.get("character", character).words[0]
    if before is None or before == after:
        return f"The {who} feels {late}"
    return f"The {who} changes from {words.get('emotion', before).words[0]} to {late}"


def without_feeling(text: str) -> str | None:
    """`text` without a feeling told before an action ("The lion is angry and takes the mouse" is "The lion takes the
    mouse"); None if it tells nothing but a feeling."""
    plain, find = sentence(text), load_vocabulary().find
    both = _FEELING_FIRST.match(plain)
    if both is not None and find(both[2], "emotion"):
        return f"{both[1]} {both[3]}"
    only = _ONLY_FEELING.match(plain)
    return None if only is not None and find(only[1], "emotion") else plain


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
    if event is None or event.actor is None:
        return generator.sample(list(story), len(story))
    same = [other for other in dict.fromkeys(story) if _doer(other) == event.actor]
    used = {item.action for other in (text, *story) for item in read_phrase(other).events}
    free = [item.id for item in vocabulary.concepts("action") if item.id not in used]
    made = [_told(vocabulary, event.actor, action, event.target) for action in generator.sample(free, len(free))]
    return generator.sample(same, len(same)) + made


def _doer(text: str) -> str | None:
    return next((event.actor for event in read_phrase(text).events if event.actor), None)


def _told(vocabulary: Vocabulary, actor: str, action: str, target: str | None) -> str:
    """Actor, action and target as the vocabulary says it ("The fox jumps toward the crow")."""
    says = vocabulary.says[action]
    verb = vocabulary.grammar.inflector.verb(says.verb, "third")
    aim = f" {says.preposition} the {_thing(vocabulary, target)}".replace("  ", " ") if target else ""
    return f"The {_thing(vocabulary, actor)} {verb}{aim}"


def _bare(text: str) -> str:
    return " ".join(word for word in text.split() if word.lower() not in _ARTICLES)


def _thing(vocabulary: Vocabulary, concept: str) -> str:
    kind: ConceptKind = "character" if any(c.id == concept for c in vocabulary.concepts("character")) else "prop"
    return vocabulary.get(kind, concept).words[0]


def _verbs(vocabulary: Vocabulary, action: str, text: str) -> list[str]:
    """The verb used in `text` first, then the concept's commonest words."""
    words, said = vocabulary.get("action", action).words, text.lower()
    forms = vocabulary.grammar.inflector.verb_forms
    used = [word for word in words if any(form.surface in said for form in forms(word))]
    return list(dict.fromkeys((*used[:1], *words)))[:_SYNONYMS]


def _event_words(event: PhraseEvent, text: str) -> Iterator[str]:
    """`text` with its verb exchanged for the concept's other verbs, in the same form."""
    vocabulary = load_vocabulary()
    if event.action is None:
        return
    words = text.split()
    place = _find(words, event.action, "action")
    if place is None:
        return
    start, end = place
    said = words[start:end]
    for verb in _verbs(vocabulary, event.action, text):
        if not verb.startswith("be "):
            new = _inflected_verb(verb, said, event.action)
            yield " ".join((*words[:start], new, *words[end:]))


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
    said = [plain, _bare(lower)]
    if plain.lower().startswith("the ") and reading.concepts.get("character"):
        rest = lower.split()[2:]
        said += [" ".join((pronoun, *rest)) for pronoun in _PRONOUNS if rest]
    events = [event for event in reading.events if not event.negated]
    if len(events) == 1 and events[0].emotion is None and not reading.order:
        said += _event_words(events[0], plain)
    if not any(event.action for event in reading.events):
        said += _feeling_words(plain)
    if reading.order == "before" and " before " in lower:
        first, second = lower.split(" before ", 1)
        said += [
            f"{first}, then {second}",
            f"first {first}, then {second}",
            f"{second} after {first}",
            f"{first} first",
        ]
    return list(dict.fromkeys(said))[:_MOST]


def _spans(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    for length in range(_LONGEST_NAME, 0, -1):
        for start in range(len(words) - length + 1):
            yield start, start + length


def _find(words: Sequence[str], concept: str, kind: ConceptKind) -> tuple[int, int] | None:
    """Where `words` name the concept, the longest name first."""
    senses = load_vocabulary().senses
    for start, end in _spans(words):
        text = " ".join(word.strip(".,;!'\"").lower() for word in words[start:end])
        if any(sense.id == concept and sense.kind == kind for sense in senses.get(text, ())):
            return start, end
    return None


def _inflected_verb(verb: str, said: Sequence[str], action: str) -> str:
    """`verb` in the form that `said` has among the forms of the action's words."""
    vocabulary = load_vocabulary()
    text = " ".join(said).strip(".,;!").lower()
    inflector = vocabulary.grammar.inflector
    for known in vocabulary.get("action", action).words:
        for form in inflector.verb_forms(known):
            if form.surface == text and form.form in _FORMS:
                return inflector.verb(verb, _FORMS[form.form])
    return verb


def _inflected(kind: ConceptKind, new: str, old: Sequence[str], concept: str) -> str:
    """The new concept's word in the form that the old one had."""
    word = load_vocabulary().get(kind, new).words[0]
    return _inflected_verb(word, old, concept) if kind == "action" else word


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
            start, end = place
            for other in generator.sample(others, min(6, len(others))) + [item for item in others if item in prefer]:
                new = _inflected(kind, other, words[start:end], concept)
                made.append((other in prefer, sentence(" ".join((*words[:start], new, *words[end:])))))
    generator.shuffle(made)
    return list(dict.fromkeys(text for _, text in sorted(made, key=lambda item: not item[0])))
