"""Other ways to say an answer, by rule and from the vocabulary: the accepted set of Sec. C.5."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from katha.language import ConceptKind, PhraseEvent, Vocabulary, load_vocabulary, read_phrase
from katha.language.inflect import VerbForm

_SYNONYMS = 4
_MOST = 12
_LONGEST_NAME = 3
_ARTICLES = frozenset(("a", "an", "the"))
_FORMS: Mapping[str, VerbForm] = {"third": "third", "past": "past", "participle": "participle", "ing": "ing"}
_FEELING_FIRST = re.compile(r"^(.+?) (?:is|are|was|were|feels?|felt) ([\w ]+?) and (.+)$")
_ONLY_FEELING = re.compile(r"^.+? (?:is|are|was|were|feels?|felt|becomes?|became) ([\w ]+)$")
_PRONOUNS = ("it", "he", "she")


def sentence(text: str) -> str:
    """`text` as a sentence without its full stop: "the mouse bites the net." is "The mouse bites the net"."""
    clean = " ".join(text.split()).rstrip(" .;,!")
    return clean[:1].upper() + clean[1:]


def called(concept: str, text: str) -> tuple[str, bool]:
    """How `text` calls a character ("hare" for a rabbit, "three mice"), and whether it is several; its commonest noun
    where `text` does not name it."""
    vocabulary, words = load_vocabulary(), [word.strip(".,;!'\"").lower() for word in text.split()]
    place = find_words(words, concept, "character")
    if place is None:
        return vocabulary.get("character", concept).words[0], False
    said = " ".join(words[place[0] : place[1]])
    many = any(sense.plural for sense in vocabulary.senses.get(said, ()) if sense.id == concept)
    counted = many and place[0] > 0 and words[place[0] - 1] in vocabulary.grammar.numbers
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


def _bare(text: str) -> str:
    return " ".join(word for word in text.split() if word.lower() not in _ARTICLES)


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
    place = find_words(words, event.action, "action")
    if place is None:
        return
    start, end = place
    said = words[start:end]
    for verb in _verbs(vocabulary, event.action, text):
        if not verb.startswith("be "):
            new = inflected_like(verb, said, event.action)
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


def find_words(words: Sequence[str], concept: str, kind: ConceptKind) -> tuple[int, int] | None:
    """Where `words` name the concept (first and last place, the last one not included), the longest name first."""
    senses = load_vocabulary().senses
    for start, end in _spans(words):
        text = " ".join(word.strip(".,;!'\"").lower() for word in words[start:end])
        if any(sense.id == concept and sense.kind == kind for sense in senses.get(text, ())):
            return start, end
    return None


def inflected_like(verb: str, said: Sequence[str], action: str) -> str:
    """`verb` in the form that `said` has among the forms of the action's words."""
    vocabulary = load_vocabulary()
    text = " ".join(said).strip(".,;!").lower()
    inflector = vocabulary.grammar.inflector
    for known in vocabulary.get("action", action).words:
        if known == text:
            return verb
        for form in inflector.verb_forms(known):
            if form.surface == text and form.form in _FORMS:
                return inflector.verb(verb, _FORMS[form.form])
    return verb
