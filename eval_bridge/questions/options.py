"""Prepare questions for a run: the steering and reporting halves, and the fixed options of each question."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from katha.eval_bridge.matching.match import match_text, moral_label, normalise
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.questions.wording import find_words, inflected_like, sentence
from katha.jsonio import digest
from katha.language import ConceptKind, Vocabulary, load_vocabulary, read_phrase
from katha.schema import MORAL_LABELS, ContrastiveVariant, Question, Role

# Other answers that sound like the right one, by rule and from the vocabulary: what distractors are made of.
#
# Each differs from the right answer in one thing and is said in the same way: the same names, counts and feelings.

_SWAPPED: tuple[ConceptKind, ...] = ("action", "emotion", "character", "prop")
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


# Preparing questions for a run: the steering and reporting halves, and the fixed options of each question.
#
# Halves. Split once per story by a hash of seed and question id, dimension by dimension, so that each half has every
# dimension that has two questions (an odd one goes to steering). Of the dimensions with one question, moral goes to
# reporting (selection has no business with the lesson of the whole) and the rest take turns, reporting first. Then a
# transition without a steering question gets one by an exchange within its dimension, or else by moving one whose
# dimension keeps another reporting question.
#
# Options (E.5, Table 36). The canonical answer, three distractors of the same dimension and `Unclear`, last.
# Distractors come from the question's own `distractors`, its contrastive variants, the story's other answers, one-
# concept changes of the canonical answer, and other stories, in this order; none may match an accepted answer or
# another option. All of it depends on seed and question id alone.

DISTRACTORS = 3
_RULE = "lemma-set"
_ORDERED = " before "
_LESSONS = (
    "Those who think only of themselves end alone",
    "A quick tongue wins more than patience",
    "Strength alone settles every quarrel",
    "It is best never to trust a stranger",
    "Fine looks matter more than deeds",
)


def _rank(seed: int, question: Question) -> str:
    return digest([seed, question.story_id, question.question_id])


def _by_dimension(questions: Iterable[Question]) -> dict[str, list[Question]]:
    groups: dict[str, list[Question]] = {}
    for question in questions:
        groups.setdefault(question.question_type, []).append(question)
    return groups


def _first_split(questions: Sequence[Question], seed: int) -> dict[str, Role]:
    """Roles by question id, dimension by dimension."""
    roles: dict[str, Role] = {}
    single: list[Question] = []
    for members in _by_dimension(sorted(questions, key=lambda item: _rank(seed, item))).values():
        if len(members) == 1:
            single += members
            continue
        steering = (len(members) + 1) // 2
        roles |= {item.question_id: "steering" if at < steering else "reporting" for at, item in enumerate(members)}
    turns: tuple[Role, Role] = ("reporting", "steering")
    morals = [item for item in single if item.question_type == "moral"]
    roles |= {item.question_id: "reporting" for item in morals}
    others = [item for item in single if item.question_type != "moral"]
    return roles | {item.question_id: turns[at % 2] for at, item in enumerate(others)}


def _cover_transitions(questions: Sequence[Question], roles: dict[str, Role], seed: int) -> None:
    """Give each transition a steering question where that leaves the dimensions balanced."""
    ranked = sorted(questions, key=lambda item: _rank(seed, item))

    def steering_at(pair: tuple[int, int] | None) -> list[Question]:
        return [q for q in ranked if q.target_transition == pair and roles[q.question_id] == "steering"]

    for pair in sorted({q.target_transition for q in questions if q.target_transition is not None}):
        if steering_at(pair):
            continue
        own = [q for q in ranked if q.target_transition == pair and q.question_type != "moral"]
        for question in own:
            mates = [q for q in ranked if q.question_type == question.question_type and q is not question]
            spare = [
                q
                for q in mates
                if roles[q.question_id] == "steering"
                and (q.target_transition is None or len(steering_at(q.target_transition)) > 1)
            ]
            if spare:
                roles[spare[0].question_id], roles[question.question_id] = "reporting", "steering"
                break
            if any(roles[q.question_id] == "reporting" for q in mates):
                roles[question.question_id] = "steering"
                break


def assign_roles(questions: Sequence[Question], seed: int = 42) -> list[Question]:
    """`questions` of one or more stories with `role` filled in; roles that are there already stay."""
    stories: dict[str, list[Question]] = {}
    for question in questions:
        stories.setdefault(question.story_id, []).append(question)
    done: dict[tuple[str, str], Role] = {}
    for story, members in stories.items():
        open_ones = [item for item in members if item.role is None]
        roles = _first_split(open_ones, seed)
        _cover_transitions(open_ones, roles, seed)
        done |= {(story, name): role for name, role in roles.items()}
    return [
        item if item.role else item.model_copy(update={"role": done[item.story_id, item.question_id]})
        for item in questions
    ]


def _concepts(questions: Iterable[Question]) -> tuple[str, ...]:
    """The vocabulary's concepts that the answers name, sorted."""
    return tuple(sorted({name for question in questions for name in _named(question.gold_answer)}))


@lru_cache(maxsize=256)
def _named(text: str) -> frozenset[str]:
    """The concepts in one answer: every question of a story asks for those of the others."""
    return frozenset(name for ids in read_phrase(text).concepts.values() for name in ids)


def _moral_pool(question: Question) -> list[str]:
    return list(_LESSONS if moral_label(question.gold_answer) is None else MORAL_LABELS)


def _reversed(text: str) -> list[str]:
    """The same two events the other way round."""
    if _ORDERED not in text:
        return []
    first, second = sentence(text).split(_ORDERED, 1)
    return [f"{sentence(second)}{_ORDERED}{first[:1].lower()}{first[1:]}"]


def _tiers(
    question: Question,
    story: Sequence[Question],
    pool: Sequence[Question],
    variants: Sequence[ContrastiveVariant],
    seed: int,
) -> list[Callable[[], list[str]]]:
    """Where distractors come from, best source first; each is made only when it is needed."""
    kind, key = question.question_type, f"{seed}:{question.question_id}"

    def mates(others: Iterable[Question]) -> list[str]:
        found = {item.gold_answer for item in others if item.question_type == kind}
        return random.Random(key).sample(sorted(found), len(found))

    def own() -> list[str]:
        given = (question.model_extra or {}).get("distractors") or []
        return [item for item in given if isinstance(item, str)]

    def contrast() -> list[str]:
        ours = [item for item in variants if item.base_story_id == question.story_id]
        morals = sorted({item.contrastive_moral for item in ours if item.contrastive_moral})
        return morals if kind == "moral" else []

    def labels() -> list[str]:
        known = _moral_pool(question) if kind == "moral" else []
        return random.Random(key).sample(known, len(known))

    def changed() -> list[str]:
        return [] if kind == "moral" else swaps(question.gold_answer, key, _concepts(story))

    def reversed_order() -> list[str]:
        return _reversed(question.gold_answer) if kind == "temporal_order" else []

    def feelings() -> list[str]:
        words = [concept.words[0] for concept in load_vocabulary().concepts("emotion")] if kind == "emotional" else []
        return random.Random(key).sample(words, len(words))

    def other_stories() -> list[str]:
        return mates(pool)

    def same_story() -> list[str]:
        told = [] if kind == "moral" else mates(item for item in story if item is not question)
        # An order that the story tells elsewhere is true here as well; the other way round it is not.
        return [other for text in told for other in _reversed(text)] if kind == "temporal_order" else told

    def happenings() -> list[str]:
        found = sorted({item.gold_answer for item in (*story, *pool) if item.question_type not in ("moral", kind)})
        return random.Random(key).sample(found, len(found)) if kind != "moral" else []

    return [own, contrast, reversed_order, labels, same_story, changed, feelings, other_stories, happenings]


def _equivalent(text: str, chosen: Sequence[str], question: Question) -> bool:
    """Whether `text` would be accepted, or says what an option already says."""
    if match_text(text, question.model_copy(update={"options": None}), _RULE).right:
        return True
    for other in chosen:
        probe = question.model_copy(update={"gold_answer": other, "accepted_answers": [], "options": None})
        if match_text(text, probe, _RULE).right:
            return True
    return False


def fill_options(
    question: Question,
    story: Sequence[Question],
    pool: Sequence[Question] = (),
    variants: Sequence[ContrastiveVariant] = (),
    seed: int = 42,
) -> Question:
    """`question` with its options; fewer than three distractors only if nothing else is left to say."""
    if question.options:
        return question
    chosen: list[str] = []
    for source in _tiers(question, story, pool, variants, seed):
        for text in source() if len(chosen) < DISTRACTORS else ():
            said = text if question.question_type == "moral" else sentence(text)
            if len(chosen) < DISTRACTORS and normalise(said) and not _equivalent(said, chosen, question):
                chosen.append(said)
    gold = question.gold_answer if question.question_type == "moral" else sentence(question.gold_answer)
    options = [gold, *chosen]
    random.Random(f"{seed}:{question.question_id}:order").shuffle(options)
    return question.model_copy(update={"options": [*options, UNCLEAR]})


def prepare_questions(
    questions: Sequence[Question],
    others: Sequence[Question] = (),
    seed: int = 42,
    *,
    variants: Sequence[ContrastiveVariant] = (),
) -> list[Question]:
    """`questions` of one or more stories with roles and options; `others` is a pool of questions of other stories."""
    ready = assign_roles(questions, seed)
    pool = sorted(others, key=lambda item: (item.story_id, item.question_id))
    stories: dict[str, list[Question]] = {}
    for question in sorted(ready, key=lambda item: item.question_id):
        stories.setdefault(question.story_id, []).append(question)
    return [fill_options(item, stories[item.story_id], pool, variants, seed) for item in ready]


def chance_level(questions: Iterable[Question]) -> float | None:
    """The share of right answers, in 0..1, of a guess among each question's options without `Unclear`."""
    rates = [1 / (len(item.options) - 1) for item in questions if item.options and len(item.options) > 1]
    return sum(rates) / len(rates) if rates else None
