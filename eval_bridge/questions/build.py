"""The questions of a run: a record's own, or those that the installed reader makes of it (Sec. C.5), halved, and given
options."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence

from katha.configs import load_config
from katha.eval_bridge.matching.match import moral_label, normalise
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.questions.halves import assign_roles
from katha.reading import story_reader
from katha.schema import (
    DIMENSIONS,
    MORAL_LABELS,
    ContrastiveVariant,
    Dimension,
    Plan,
    Question,
    StoryRecord,
)

# The paper's prompts offer four answers and `Unclear` (E.5).
DISTRACTORS = 3
ORDERED = " before "
"""What stands between two events that are told in their order."""
_WORDS = load_config("questions.yaml")
_SMALL = frozenset(_WORDS["small"])
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")


def sentence(text: str) -> str:
    """Return `text` as a sentence without its full stop: "the mouse bites the net." is "The mouse bites the net"."""
    clean = " ".join(text.split()).rstrip(" .;,!")
    return clean[:1].upper() + clean[1:]


def gives_away(question: str, answer: str) -> bool:
    """Return whether every content word of the answer is in the question."""
    words = set(normalise(answer).split()) - _SMALL
    return bool(words) and words <= set(normalise(question).split())


def new_question(
    record: StoryRecord, number: int, dimension: Dimension, pair: tuple[int, int], **fields: object
) -> Question:
    """Return a question about one transition of `record`, under the next number of its story."""
    return Question.model_validate(
        {
            "question_id": f"{record.story_id}_q{number}",
            "story_id": record.story_id,
            "question_type": dimension,
            "target_scene": pair[1],
            "target_transition": pair,
            "evidence_scenes": list(pair),
            **fields,
        }
    )


def build_questions(record: StoryRecord, plan: Plan) -> list[Question]:
    """Return the questions of a story: its record's own, unchanged, or those that the installed reader makes of it.

    Two questions never have the same wording: the same words with another answer could not be told apart.
    """
    if record.recoverability_questions:
        return list(record.recoverability_questions)
    return story_reader().questions(record, plan)


def made_by_rule(questions: Iterable[Question]) -> bool:
    """Return whether nobody wrote any of a story's questions: they were made by rule of a text that brought none."""
    return all((item.model_extra or {}).get("made_from") for item in questions)


# Options (E.5, Table 36): the canonical answer, three distractors of the same dimension and `Unclear`, last. None may
# match an accepted answer or another option. A moral label is told among all twelve (Table 35, Eqs. 39 to 41).
# All of it depends on seed and question id alone.


def _reversed(text: str) -> list[str]:
    """The same two events the other way round."""
    if ORDERED not in text:
        return []
    first, second = sentence(text).split(ORDERED, 1)
    return [f"{sentence(second)}{ORDERED}{first[:1].lower()}{first[1:]}"]


def _distractors(
    question: Question,
    story: Sequence[Question],
    pool: Sequence[Question],
    variants: Sequence[ContrastiveVariant],
    seed: int,
    told_text: str = "",
) -> Iterator[str]:
    """Yield what could be a wrong option, best source first: its contrastive variants, the question's own distractors,
    the story's other answers, one-concept changes of the canonical answer, and other stories."""
    kind, key = question.question_type, f"{seed}:{question.question_id}"

    def shuffled(texts: Sequence[str]) -> list[str]:
        return random.Random(key).sample(texts, len(texts))

    def answers(others: Iterable[Question], *kinds: str) -> list[str]:
        return shuffled(sorted({item.gold_answer for item in others if item.question_type in kinds}))

    ours = [item for item in variants if item.base_story_id == question.story_id and item.has_variant]
    if kind == "moral":
        yield from sorted({item.contrastive_moral for item in ours if item.contrastive_moral})
    else:
        yield from _near_misses(question, ours, told_text)
    yield from (item for item in (question.model_extra or {}).get("distractors") or () if isinstance(item, str))
    if kind == "moral":
        yield from shuffled(_WORDS["lessons"] if moral_label(question.gold_answer) is None else MORAL_LABELS)
        yield from answers(pool, kind)
        return
    told = answers((item for item in story if item is not question), kind)
    if kind == "temporal_order":
        # An order that the story tells elsewhere is true here as well; the other way round it is not.
        told = [other for text in (question.gold_answer, *told) for other in _reversed(text)]
    yield from told
    yield from story_reader().distractors(question, [item.gold_answer for item in story], seed)
    yield from answers(pool, kind)
    yield from answers((*story, *pool), *(other for other in DIMENSIONS if other not in ("moral", kind)))


def _near_misses(question: Question, variants: Sequence[ContrastiveVariant], told_text: str) -> Iterator[str]:
    """Yield what a contrastive variant tells in place of the question's answer: the changed sentences of its changed
    scene, for what happens and why; the feelings in them, for how a character feels (Secs. 3.7, C.7)."""
    scenes = {question.target_scene, *(question.target_transition or ()), *question.evidence_scenes}
    known = normalise(told_text)
    for variant in variants:
        if variant.changed_scene_id not in scenes:
            continue
        for part in _SENTENCE_END.split(variant.contrastive_scene_text.strip()):
            if not part or normalise(part) in known:
                continue
            if question.question_type in ("action_visibility", "causal", "consequence"):
                yield part
            elif question.question_type == "emotional" and (felt := story_reader().felt(part)) is not None:
                yield felt


def equivalent(text: str, chosen: Sequence[str], question: Question) -> bool:
    """Return whether `text` would be accepted, or says what an option already says."""
    asked = question.model_copy(update={"options": None})
    probes = (asked.model_copy(update={"gold_answer": other, "accepted_answers": []}) for other in chosen)
    reader = story_reader()
    return any(reader.accepts(text, probe) for probe in (asked, *probes))


def fill_options(
    question: Question,
    story: Sequence[Question],
    pool: Sequence[Question] = (),
    variants: Sequence[ContrastiveVariant] = (),
    seed: int = 42,
    told_text: str = "",
) -> Question:
    """`question` with its options; fewer than three distractors only if nothing else is left to say.

    told_text: the story, so that no sentence of it becomes a wrong option by way of a contrastive variant.
    """
    if question.options:
        return question
    moral = question.question_type == "moral"
    most = len(MORAL_LABELS) if moral and moral_label(question.gold_answer) is not None else DISTRACTORS
    chosen: list[str] = []
    for text in _distractors(question, story, pool, variants, seed, told_text):
        if most > DISTRACTORS and moral_label(text) is None:
            continue
        said = text if moral else sentence(text)
        if question.question_type != "temporal_order" and gives_away(question.question, said):
            continue  # what the question tells already
        if normalise(said) and not equivalent(said, chosen, question):
            chosen.append(said)
        if len(chosen) == most:
            break
    options = [question.gold_answer if moral else sentence(question.gold_answer), *chosen]
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
