"""Options made by a model, for people and for judges that cannot write (E.5): wrong ones are what would be right in a
story that goes another way at that place.

A reader without evidence takes each question with its options in two orders, `Unclear` not among them. Options whose
right one it takes both times are written once more; then the question goes free. So do others, until over the set the
right one is taken at most ten points above chance. The program's own distractors (`build.fill_options`) stay as they
were, for whoever replays them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from pydantic import BaseModel

from katha.configs import load_prompt
from katha.eval_bridge.matching.match import moral_label, normalise
from katha.eval_bridge.packets.instructions import UNCLEAR, object_schema
from katha.eval_bridge.questions.build import DISTRACTORS, chance_level, equivalent, gives_away, sentence
from katha.eval_bridge.questions.rows import MOST_ANSWER, rows_schema, text_field
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import MORAL_LABELS, Question, StoryRecord

PROMPTS = ("options", "blind_options")
"""The prompts of `prompts/build` that are asked here."""
MOST_ABOVE = 0.10
"""How far above chance, 0 to 1, the right options of a set may be taken without evidence."""
TAKEN, WHY = "taken_blind", "options_why"
"""Fields of a question: what a reader without evidence took of its options, and why it has none."""


class _Options(BaseModel):
    wrong: list[str]


class _AllOptions(BaseModel):
    options: list[_Options]


class _Taken(BaseModel):
    answers: list[int]


@dataclass(frozen=True)
class Leak:
    """How often the right option is taken without evidence, 0 to 1, of so many answers, and by chance alone."""

    answers: int
    share: float
    chance: float

    @property
    def leaks(self) -> bool:
        """Return whether it is more than chance explains, by the limit that options are kept by."""
        return self.share > self.chance + MOST_ABOVE

    def told(self) -> str:
        """Return it in words: "45.0% of 40 answers without evidence take the right option, by chance 25.0%"."""
        some = f"{100 * self.share:.1f}% of {self.answers} answers without evidence"
        return f"{some} take the right option, by chance {100 * self.chance:.1f}%"


@dataclass
class ChoiceCounts:
    """How options were made: questions that got some at first, whose right one was taken in both orders, that were
    written again, and that go free; and of those that have options, the share taken, and chance (0 to 1)."""

    asked: int = 0
    taken: int = 0
    rewritten: int = 0
    free: int = 0
    share: float | None = None
    chance: float | None = None


@dataclass(frozen=True)
class WrittenOptions:
    """Questions with their options, or without and why, in their order; and the counts."""

    questions: tuple[Question, ...]
    counts: ChoiceCounts

    def dump(self) -> dict[str, object]:
        """Return the counts as a record keeps them."""
        return asdict(self.counts)


def write_choices(
    model: TextModel, reader: TextModel, record: StoryRecord, questions: Sequence[Question], seed: int = 42
) -> WrittenOptions:
    """Return `questions` of one story with options by `model`, tried by `reader`. Who has options keeps them; one that
    asks for a label is told among the twelve.

    Raises:
        ReplyError: the model or the reader wrote nothing that can be read. ModelError: no answer was given.
    """
    labelled = {item.question_id: item if item.options else _labelled(item, seed) for item in questions}
    done = {name: item for name, item in labelled.items() if item is not None}
    open_ones = [item for item in questions if item.question_id not in done]
    counts = ChoiceCounts(asked=len(open_ones))
    first = _tried(reader, record, _written(model, record, open_ones, questions, {}, seed))
    bad = {item.question_id: why for item in first if (why := _fault(item)) is not None}
    counts.taken = sum(_took_both(item) for item in first)
    again = [item for item in open_ones if item.question_id in bad]
    counts.rewritten = len(again)
    second = _tried(reader, record, _written(model, record, again, questions, bad, seed))
    made = {item.question_id: item for item in (*first, *second)}
    for name, item in made.items():
        why = _fault(item)
        made[name] = item if why is None else _freed(item, why)
    _within_chance(made)
    found = [(done | made)[item.question_id] for item in questions]
    counts.free = sum(item.options is None for item in made.values())
    leak = leaking(made.values())
    if leak is not None:
        counts.share, counts.chance = leak.share, leak.chance
    return WrittenOptions(tuple(found), counts)


def leaking(questions: Iterable[Question], answers: Mapping[str, Sequence[str]] | None = None) -> Leak | None:
    """Return how often the right option is taken without evidence; None where nobody was asked.

    answers: by question id, the texts that were taken; those kept with the questions (`taken_blind`) unless told.
    Options that ask for a label of the twelve are counted like others: their chance is lower.
    """
    hits, asked, chance = 0, 0, 0.0
    for item in questions:
        taken = _taken(item) if answers is None else list(answers.get(item.question_id, ()))
        level = chance_level([item])
        if level is None:
            continue
        right = {normalise(text) for text in (item.gold_answer, *item.accepted_answers)}
        hits += sum(normalise(text) in right for text in taken)
        asked += len(taken)
        chance += level * len(taken)
    return Leak(asked, hits / asked, chance / asked) if asked else None


def _labelled(question: Question, seed: int) -> Question | None:
    """Return a question whose answer is one of the twelve labels with all of them; None for any other."""
    if question.question_type != "moral" or moral_label(question.gold_answer) is None:
        return None
    options = random.Random(f"{seed}:{question.question_id}:order").sample(MORAL_LABELS, len(MORAL_LABELS))
    return question.model_copy(update={"options": [*options, UNCLEAR]})


def _written(
    model: TextModel,
    record: StoryRecord,
    asked: Sequence[Question],
    board: Sequence[Question],
    why: Mapping[str, str],
    seed: int,
) -> list[Question]:
    """Return questions with options as a model writes them; without, and why, where they cannot be offered."""
    if not asked:
        return []
    names = {item.question_id for item in asked}
    prompt = load_prompt("build/options").render(
        title=record.title,
        story=record.story_text,
        count=DISTRACTORS,
        questions=[
            {
                "question": item.question,
                "right": item.gold_answer,
                "accepted": item.accepted_answers,
                "why": why.get(item.question_id, ""),
            }
            for item in asked
        ],
        others=[
            {"question": item.question, "answer": item.gold_answer} for item in board if item.question_id not in names
        ],
    )
    wrong = {"type": "array", "items": text_field(MOST_ANSWER), "minItems": DISTRACTORS, "maxItems": DISTRACTORS}
    schema = rows_schema("options", object_schema({"wrong": wrong}), len(asked))
    rows = write_one(model, prompt, schema, _AllOptions, "options").options
    made = [_with_options(item, row, board, seed) for item, row in zip(asked, rows, strict=False)]
    return [*made, *(_freed(item, "no options were written") for item in asked[len(made) :])]


def _with_options(question: Question, row: _Options, board: Sequence[Question], seed: int) -> Question:
    """Return a question with its options, `Unclear` last; without, and why, where one of them is none."""
    right, wrong = sentence(question.gold_answer), [sentence(text) for text in row.wrong[:DISTRACTORS]]
    accepted = {normalise(text) for item in board for text in (item.gold_answer, *item.accepted_answers)}
    bad = next((text for text in wrong if normalise(text) in accepted or equivalent(text, [right], question)), None)
    if bad is not None:
        return _freed(question, f"the wrong option {bad!r} is an answer to this question or another")
    if len({normalise(text) for text in (right, *wrong)} - {""}) != DISTRACTORS + 1:
        return _freed(question, "there are not so many different options")
    if any(gives_away(question.question, text) for text in wrong):
        return _freed(question, "the question tells one of the options")
    options = [right, *wrong]
    # In the order of the program's own options, so that no place tells.
    random.Random(f"{seed}:{question.question_id}:order").shuffle(options)
    return question.model_copy(update={"options": [*options, UNCLEAR], WHY: ""})


def _tried(reader: TextModel, record: StoryRecord, made: Sequence[Question]) -> list[Question]:
    """Return the questions with what a reader without evidence takes of their options, in two orders."""
    asked = [item for item in made if item.options]
    if not asked:
        return list(made)
    taken: dict[str, list[str]] = {item.question_id: [] for item in asked}
    for turn in (0, 1):
        order = random.Random(f"{record.story_id}:options:{turn}").sample(asked, len(asked))
        shown = [(item.options or [])[:-1][:: -1 if turn else 1] for item in order]
        rows = [{"question": item.question, "options": texts} for item, texts in zip(order, shown, strict=True)]
        prompt = load_prompt("build/blind_options").render(questions=rows)
        number = {"type": "integer", "minimum": 1, "maximum": DISTRACTORS + 1}
        schema = rows_schema("answers", number, len(asked))
        given = write_one(reader, prompt, schema, _Taken, "choices").answers
        for item, texts, answer in zip(order, shown, given, strict=False):
            if 0 < answer <= len(texts):
                taken[item.question_id].append(texts[answer - 1])
    return [item.model_copy(update={TAKEN: taken[item.question_id]}) if item.options else item for item in made]


def _taken(question: Question) -> list[str]:
    told = (question.model_extra or {}).get(TAKEN)
    return [text for text in told if isinstance(text, str)] if isinstance(told, list) else []


def _hits(question: Question) -> int:
    """Return how often its right option was taken."""
    right = {normalise(text) for text in (question.gold_answer, *question.accepted_answers)}
    return sum(normalise(text) in right for text in _taken(question))


def _took_both(question: Question) -> bool:
    return bool(question.options) and _hits(question) > 1


def _fault(question: Question) -> str | None:
    """Return why a question's options cannot stay; None where they do."""
    if not question.options:
        return str((question.model_extra or {}).get(WHY) or "it has no options")
    if len(_taken(question)) < 2:
        return "a reader without evidence took none of them"
    return "a reader without evidence took the right one in both orders" if _took_both(question) else None


def _freed(question: Question, why: str) -> Question:
    return question.model_copy(update={"options": None, WHY: why})


def _within_chance(made: dict[str, Question]) -> None:
    """Free questions whose right option was taken once, until over the set it is taken near chance."""
    leak = leaking(made.values())
    while leak is not None and leak.leaks:
        name = next(name for name, item in made.items() if item.options and _hits(item))
        made[name] = _freed(made[name], "over the set the right options are taken too often without evidence")
        leak = leaking(made.values())
