"""From the files that participants hand back to judgments: whose count (Sec. F.1), and what each answer says.

Rules are the study's own, fixed when its pages were made. Nobody is left out for what they think, only for failed
attention checks, unrealistic speed, other answers to the same thing, or too few of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from pydantic import ValidationError

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.matching.match import Rule, match
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.people.study import AnswerFile, GivenAnswer, Screen, Study, StudyItem, StudyPage
from katha.jsonio import read_json
from katha.schema import Answer, StoryRecord
from katha.schema.people import Participant

_RATINGS = ("visual", "ncs", "mas", "ees")
_FROM_ZERO = ("identity", "environment", "aesthetics")
"""Ratings of ViStoryBench's user study, from 0 to 4."""


@dataclass(frozen=True)
class Collected:
    """A file that fits the study: what it holds, its page, and the answers to items that the page has."""

    path: Path
    file: AnswerFile
    page: StudyPage
    answers: Mapping[str, GivenAnswer]


def read_answer_files(paths: Iterable[Path], study: Study) -> tuple[list[Collected], list[str]]:
    """Return the files of `paths` (or of folders) that are of this study, one a participant, and what was set aside.

    Of two files of one participant the one that was saved last counts.

    Raises:
        InputFileError: a file is not a file of answers, of another study, or answers what its page does not ask.
    """
    pages, found, notes = {page.page: page for page in study.pages}, dict[str, Collected](), []
    for path in _files(paths):
        one = _read(path, study, pages)
        other = found.get(one.file.rater)
        if other is not None and other.page.page != one.page.page:
            raise InputFileError(f"{str(path)!r} and {str(other.path)!r} are of one participant, but of two pages.")
        if other is None or one.file.saved > other.file.saved:
            found[one.file.rater] = one
        if other is not None:
            kept = found[one.file.rater].path
            lost = other.path if kept == path else path
            notes.append(f"{lost.name} is of the same participant as {kept.name}, which was saved later and counts.")
    if not found:
        raise InputFileError(
            "There is no file of answers.", hint="Give the files that the pages saved, or their folder."
        )
    return [found[name] for name in sorted(found)], notes


def _files(paths: Iterable[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])]


def _read(path: Path, study: Study, pages: Mapping[str, StudyPage]) -> Collected:
    try:
        file = AnswerFile.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise InputFileError(
            f"{str(path)!r} is not a file of answers: field {field!r}: {first['msg']}.",
            hint="Give the file as the page saved it.",
        ) from error
    if file.study != study.study:
        raise InputFileError(f"{str(path)!r} is of the study {file.study!r}, not of {study.study!r}.")
    if file.page not in pages:
        raise InputFileError(f"{str(path)!r} is of the page {file.page!r}, which the study has not.")
    items = {item.item: item for _, item in pages[file.page].items()}
    answers: dict[str, GivenAnswer] = {}
    for given in file.answers:
        item = items.get(given.item)
        if item is None or not _fits(given.value, item):
            raise InputFileError(
                f"{str(path)!r}: the answer {given.value!r} to {given.item!r} is none that its page offers.",
                hint="Give the file as the page saved it.",
            )
        answers[given.item] = given
    return Collected(path, file, pages[file.page], answers)


def _fits(value: object, item: StudyItem) -> bool:
    if item.kind == "choice":
        return value in item.options
    if item.kind == "note":
        return isinstance(value, str)
    if item.kind == "ranking":
        return (
            isinstance(value, tuple)
            and len(value) <= 3
            and len(set(value)) == len(value)
            and set(value) <= {*item.options}
        )
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(item.options)


def participant(one: Collected, study: Study) -> Participant:
    """Return who it was, how the checks went, and by which rules the answers do not count."""
    rules, answers = study.rules, one.answers
    asked = list(one.page.items())
    checks = [item for _, item in asked if item.expected is not None and item.item in answers]
    failed = sum(_said(answers[item.item], item) != item.expected for item in checks)
    by_id = {item.item: item for _, item in asked}
    pairs = [
        (by_id[item.repeats], item)
        for _, item in asked
        if item.repeats is not None and item.repeats in answers and item.item in answers
    ]
    otherwise = sum(_otherwise(answers[first.item], first, answers[again.item], again) for first, again in pairs)
    seconds = median(given.ms for given in answers.values()) / 1000 if answers else None
    reasons = []
    if failed > rules.failed_checks:
        reasons.append(f"failed {failed} of {len(checks)} attention checks")
    if seconds is not None and seconds < rules.min_seconds:
        reasons.append(f"took {seconds:.1f} seconds an item (median), less than {rules.min_seconds:g}")
    if len(pairs) > 1 and otherwise / len(pairs) > rules.inconsistent:
        reasons.append(f"answered {otherwise} of {len(pairs)} repeated items otherwise")
    if len(answers) < rules.min_answered * len(asked):
        reasons.append(f"answered {len(answers)} of {len(asked)} items, less than {100 * rules.min_answered:g}%")
    return Participant(
        rater=one.file.rater,
        page=one.page.page,
        file=one.path.name,
        group=one.file.group,
        answered=len(answers),
        of=len(asked),
        checks_failed=failed,
        checks=len(checks),
        repeats_inconsistent=otherwise,
        repeats=len(pairs),
        median_seconds=seconds,
        excluded=reasons,
    )


def _said(given: GivenAnswer, item: StudyItem) -> str:
    return given.value if isinstance(given.value, str) else item.options[int(given.value)]  # type: ignore[arg-type]


def _otherwise(first: GivenAnswer, item: StudyItem, again: GivenAnswer, repeated: StudyItem) -> bool:
    """Return whether the same thing was answered otherwise: another option, a preference for the other board (sides
    were changed), a rating more than one step off."""
    if item.kind == "choice":
        return first.value != again.value
    one, two = int(first.value), int(again.value)  # type: ignore[arg-type]
    if item.kind == "preference":
        return (_middle(item) - one) * (_middle(item) - two) > 0
    return abs(one - two) > 1


def _middle(item: StudyItem) -> int:
    """A preference is this minus the option's place: above zero for the left board, below for the right one."""
    return len(item.options) // 2


def to_judgments(collected: Sequence[Collected], records: Sequence[StoryRecord], rule: Rule) -> list[Judgment]:
    """Return one row a judgment, in the columns of `read_judgments`; checks and repeats are none.

    A choice is matched as a judge's is (Eq. 56). A label is the option's place in the story's own order, so that
    raters who saw the options in other orders agree, and a guess among them is what chance is.

    Raises:
        RecordError: a question of the study is not in the records, which were changed.
    """
    stories = {record.story_id: record for record in records}
    rows: list[Judgment] = []
    for one in collected:
        for screen, item in one.page.items():
            given = one.answers.get(item.item)
            if given is None or item.expected is not None or item.repeats is not None:
                continue
            told = _row(given, item, screen, stories[screen.story_id], rule)
            who: Judgment = {"rater": one.file.rater, "story_id": screen.story_id, "line": len(rows) + 1}
            rows.append({**who, **({"group": one.file.group} if one.file.group else {}), **told})
    return rows


def _row(given: GivenAnswer, item: StudyItem, screen: Screen, record: StoryRecord, rule: Rule) -> Judgment:
    method = {"method": screen.boards[0].method} if screen.boards else {}
    if item.kind == "preference":
        left = _middle(item) - int(given.value)  # type: ignore[arg-type]
        favoured, other = screen.favoured, next(board for board in screen.boards if board != screen.favoured)
        value = left if screen.boards[0] == favoured else -left
        # A bridge is one method's board with and without it.
        against = other.method if screen.task != "bridge" else f"{other.method} without its bridge"
        named = favoured.method if favoured is not None else ""
        if screen.task == "pictures":
            scene = screen.boards[0].scene
            return {"task": screen.task, "method": named, "against": other.method, "scene": scene, "picture": value}
        return {
            "task": screen.task,
            "method": named,
            "against": against,
            "criterion": item.criterion,
            "preference": value,
        }
    if item.kind == "scale":
        if item.criterion in _FROM_ZERO:
            return {**method, item.criterion: int(given.value)}  # type: ignore[arg-type]
        value = 1 + int(given.value)  # type: ignore[arg-type]
        own = {item.criterion: value} if item.criterion in _RATINGS else {"criterion": item.criterion, "rating": value}
        return {**method, **own}
    if item.kind == "ranking":
        labels = [label.replace(" ", "_") for label in given.value] or ["unclear"]  # type: ignore[union-attr]
        tops = {f"top{place}": label for place, label in enumerate(labels, 1)}
        return {**method, "target": record.moral_label, **tops}
    return {**method, **_answered(str(given.value), item, screen, record, rule)}


def _answered(said: str, item: StudyItem, screen: Screen, record: StoryRecord, rule: Rule) -> Judgment:
    question = next((one for one in record.recoverability_questions if one.question_id == item.question_id), None)
    if question is None:
        raise RecordError(
            f"Story {record.story_id!r} has no question {item.question_id!r}.", hint="Keep the study's stories.jsonl."
        )
    answer = Answer(
        method=screen.boards[0].method if screen.boards else None,
        judge="people",
        story_id=record.story_id,
        question_id=question.question_id,
        condition=screen.condition,
        status="ok",
        answer=said,
    )
    order = list(question.options or ())
    return {
        "question_id": question.question_id,
        "question_type": question.question_type,
        "condition": screen.condition,
        "right": bool(match(answer, question, rule).right),
        "label": f"option {order.index(said) + 1}" if said in order else said,
        "answer": said,
    }


def majority(rows: Iterable[Judgment]) -> dict[tuple[str | None, str, str, str], str]:
    """Return the answer that most people gave by (method, story, question, condition); a tie for the first place gives
    none."""
    votes: dict[tuple[str | None, str, str, str], list[str]] = {}
    for row in rows:
        if "answer" in row:
            key = (row.get("method"), row["story_id"], row["question_id"], row["condition"])
            votes.setdefault(key, []).append(row["answer"])
    found = {}
    for key, given in votes.items():
        counts: dict[str, int] = {}
        for said in given:
            counts[said] = counts.get(said, 0) + 1
        best = [said for said, count in counts.items() if count == max(counts.values())]
        if len(best) == 1:
            found[key] = best[0]
    return found


def write_rows(rows: Sequence[Judgment]) -> Iterable[Judgment]:
    """Yield the rows as a file of judgments holds them: without the line, which is the line they stand on."""
    for row in rows:
        yield {name: value for name, value in row.items() if name != "line"}
