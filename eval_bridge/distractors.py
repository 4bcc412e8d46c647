"""Other answers that sound like the right one, by rule and from the vocabulary: what distractors are made of.

Each differs from the right answer in one thing and is said in the same way: the same names, counts and feelings.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from katha.eval_bridge.wording import find_words, inflected_like, sentence
from katha.language import ConceptKind, Vocabulary, load_vocabulary, read_phrase

__all__ = ["other_actions", "other_feelings", "reworded", "swaps"]

_SWAPPED: tuple[ConceptKind, ...] = ("action", "emotion", "character", "prop")
_ORDERED = " before "
_BE = frozenset(("is", "are", "was", "were"))


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
    made = [
        told for action in generator.sample(free, len(free)) for told in _other_deed(text, str(event.action), action)
    ]
    return generator.sample(same, len(same)) + made


def _doer(text: str) -> str | None:
    return next((event.actor for event in read_phrase(text).events if event.actor), None)


def _other_deed(text: str, concept: str, other: str) -> list[str]:
    """`text` with the deed `concept` exchanged for `other`, the rest as it was ("The three doves hide near the net");
    nothing where nobody does it, or where the other deed needs an object that is not there."""
    vocabulary = load_vocabulary()
    parts = text.split(_ORDERED)
    for at, part in enumerate(parts):
        event = next((event for event in read_phrase(part).events if event.action == concept), None)
        place = find_words(part.split(), concept, "action")
        if event is None or event.actor is None or place is None:
            continue
        if not _may(vocabulary, other, event.target):
            return []
        parts[at] = _exchanged(vocabulary, part.split(), place, concept, other, event.target is not None)
        return [sentence(_ORDERED.join(parts))]
    return []


def _may(vocabulary: Vocabulary, action: str, target: str | None) -> bool:
    """Whether a deed can be done to `target`: nobody plants a lion, or pulls nothing."""
    if target is None:
        return not vocabulary.grammar.has("objects", action)
    somebody = any(concept.id == target for concept in vocabulary.concepts("character"))
    return vocabulary.grammar.has("to_somebody" if somebody else "to_something", action)


def _exchanged(
    vocabulary: Vocabulary, words: list[str], place: tuple[int, int], concept: str, other: str, aimed: bool
) -> str:
    """`words` with the verb at `place` exchanged, with the preposition that the other verb takes."""
    head, said, rest = words[: place[0]], words[place[0] : place[1]], words[place[1] :]
    says = vocabulary.says[other]
    plural = False
    if head and head[-1].lower() in _BE:  # "is trapped in the net"
        plural = head.pop().lower() in {"are", "were"}
        verb = vocabulary.grammar.inflector.verb(says.verb, "base" if plural else "third")
    else:
        verb = inflected_like(says.verb, said, concept)
    if says.verb.startswith("be "):
        verb = f"{'are' if plural or verb == says.verb else 'is'} {says.verb[3:]}"
    at = max((place for place, word in enumerate(rest) if word == "to"), default=0)
    rest = rest[at:] if aimed and concept == "give" else rest  # "gives the gold to the merchant": about the merchant
    while aimed and rest and vocabulary.grammar.has("prepositions", rest[0].lower()):
        rest = rest[1:]
    return " ".join([*head, verb, *([says.preposition] if aimed and says.preposition else []), *rest])


def _inflected(kind: ConceptKind, new: str, old: Sequence[str], concept: str) -> str:
    """The new concept's word in the form that the old one had."""
    word = load_vocabulary().get(kind, new).words[0]
    return inflected_like(word, old, concept) if kind == "action" else word


def reworded(text: str, kind: ConceptKind, instead: Mapping[str, str]) -> Iterator[str]:
    """Sentences in which one concept of `kind` is replaced as `instead` says (ids of the vocabulary)."""
    plain = sentence(text)
    words = plain.split()
    for concept in read_phrase(plain).concepts.get(kind, ()):
        place = find_words(words, concept, kind)
        if place is not None and concept in instead:
            start, end = place
            new = _inflected(kind, instead[concept], words[start:end], concept)
            yield sentence(" ".join((*words[:start], new, *words[end:])))


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
            place = find_words(words, concept, kind)
            if place is None:
                continue
            start, end = place
            for other in generator.sample(others, min(6, len(others))) + [item for item in others if item in prefer]:
                if kind == "action" and other in prefer:
                    continue  # in the story too, so that it might be true
                if kind == "action":
                    made += [(other in prefer, told) for told in _other_deed(plain, concept, other)]
                    continue
                new = _inflected(kind, other, words[start:end], concept)
                made.append((other in prefer, sentence(" ".join((*words[:start], new, *words[end:])))))
    generator.shuffle(made)
    return list(dict.fromkeys(text for _, text in sorted(made, key=lambda item: not item[0])))
