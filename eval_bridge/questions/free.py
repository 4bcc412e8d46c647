"""Free questions by a language model, each checked by calls of their own: settled by the text, and not guessed.

The writer sees the whole story and no plan. What fails a check (`checks`) is written once more, then dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from katha.configs import load_config, load_prompt
from katha.eval_bridge.questions.checks import PROMPTS, Finding, check_rows
from katha.eval_bridge.questions.replay import checked_as_recorded
from katha.eval_bridge.questions.rows import WrittenQuestion, WrittenQuestions, questions_schema
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.models.recordings import UnrecordedError
from katha.schema import DIMENSIONS, Dimension, Question, QuestionMaking, StoryRecord

EACH = 2
"""Questions of each dimension, where a run writes them."""
USUAL = EACH * len(DIMENSIONS)
_KINDS = ("guessed", "unsettled", "told", "invisible")


@dataclass(frozen=True)
class Dropped:
    """A question that was not kept, and why."""

    question: str
    why: str


@dataclass(frozen=True)
class FreeQuestions:
    """The questions that stay, those that were dropped after one more try, and the counts of every stage; None where
    nothing was checked, or a recording is replayed that has not counted."""

    kept: tuple[Question, ...]
    dropped: tuple[Dropped, ...] = ()
    making: QuestionMaking | None = None


def even_mix(each: int = EACH) -> dict[Dimension, int]:
    """Return so many questions of every dimension."""
    return dict.fromkeys(DIMENSIONS, each)


def paper_mix(count: int = USUAL) -> dict[Dimension, int]:
    """Return how many of `count` questions are of which dimension in the shares of Table 14, one of each at least."""
    shares = load_config("kathabench.yaml")["questions"]
    made: dict[Dimension, int] = dict.fromkeys(DIMENSIONS, 1)
    for _ in range(count - len(DIMENSIONS)):  # to whom the next one is owed most (Sainte-Lague's divisors)
        owed = max(DIMENSIONS, key=lambda kind: shares[kind] / (2 * made[kind] + 1))
        made[owed] += 1
    return made


def write_free_questions(
    model: TextModel,
    record: StoryRecord,
    *,
    reader: TextModel | None = None,
    mix: Mapping[Dimension, int] | None = None,
    check: bool = True,
) -> FreeQuestions:
    """Return free questions about `record`, two for each dimension unless told.

    reader: who answers the checks, the writer unless told. mix: how many of each dimension. check: ask the reader.

    Raises:
        ReplyError: the model wrote none. ModelError: it gave no answer.
    """
    wanted = dict(mix or even_mix())
    counts = set(wanted.values())
    prompt = load_prompt("build/free").render(
        title=record.title,
        story=record.story_text,
        count=sum(wanted.values()),
        each=counts.pop() if len(counts) == 1 else 0,
        wanted=wanted,
    )
    schema = questions_schema(sum(wanted.values()))
    rows = write_one(model, prompt, schema, WrittenQuestions, "questions").questions
    if not check:
        return FreeQuestions(_numbered(record, rows))
    try:
        return _checked(model, reader or model, record, prompt, rows)
    except UnrecordedError as unknown:
        try:
            kept, lost = checked_as_recorded(model, record, prompt, rows)
        except UnrecordedError:
            raise unknown from None
        return FreeQuestions(_numbered(record, kept), tuple(Dropped(*item) for item in lost))


def _checked(
    model: TextModel, reader: TextModel, record: StoryRecord, prompt: str, rows: Sequence[WrittenQuestion]
) -> FreeQuestions:
    first = check_rows(reader, record, rows)
    good = [row for row, found in zip(rows, first, strict=True) if not found.faults]
    bad = [(at, found) for at, found in enumerate(first) if found.faults]
    fresh = _rewritten(model, prompt, rows, bad, good)
    second = check_rows(reader, record, fresh, good)
    kept, lost = list(rows), list[Dropped]()
    for place, (at, found) in reversed(list(enumerate(bad))):
        still = second[place].why if place < len(fresh) else found.why
        if still:
            lost.append(Dropped(fresh[place].question if place < len(fresh) else rows[at].question, still))
            del kept[at]
        else:
            kept[at] = fresh[place]
    lost.reverse()
    told = _counted(second)
    making = QuestionMaking(
        written=len(rows),
        **_counted(first),
        rewritten=len(fresh),
        again={kind: count for kind, count in told.items() if count},
        dropped=len(lost),
        kept=len(kept),
        lost=[f"{item.question}: {item.why}" for item in lost],
        model=str(model.spec().get("name", "")),
        reader=str(reader.spec().get("name", "")),
        prompts={name: load_prompt(f"build/{name}").sha256 for name in ("free", *PROMPTS, "again")},
    )
    return FreeQuestions(_numbered(record, kept), tuple(lost), making)


def _rewritten(
    model: TextModel,
    prompt: str,
    rows: Sequence[WrittenQuestion],
    bad: Sequence[tuple[int, Finding]],
    good: Sequence[WrittenQuestion],
) -> list[WrittenQuestion]:
    """Return another question in the place of each that cannot stay; fewer where the model writes fewer."""
    if not bad:
        return []
    told = [{"number": f"{rows[at].dimension}, {rows[at].question!r}", "why": found.why} for at, found in bad]
    again = load_prompt("build/again").render(faults=told, kept=[row.question for row in good])
    schema = questions_schema(len(bad))
    found = write_one(model, f"{prompt}\n\n{again}", schema, WrittenQuestions, "questions").questions
    return found[: len(bad)]


def _counted(findings: Sequence[Finding]) -> dict[str, int]:
    """Return how many questions have which fault, and how many were guessed in part."""
    found = Counter(kind for item in findings for kind in item.faults)
    return {**{kind: found[kind] for kind in _KINDS}, "partly": sum(item.partly for item in findings)}


def _numbered(record: StoryRecord, rows: Sequence[WrittenQuestion]) -> tuple[Question, ...]:
    return tuple(
        Question(
            question_id=f"{record.story_id}_q{number}",
            story_id=record.story_id,
            question_type=row.dimension,
            question=row.question,
            gold_answer=row.answer,
            accepted_answers=row.accepts,
            answerability="answerable" if row.visible else "not_visible",
        )
        for number, row in enumerate(rows, 1)
    )
