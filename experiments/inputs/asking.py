"""Free questions for many stories, by a model and checked by another: `katha bench questions STORIES --model MODEL`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from katha.configs import load_prompt
from katha.errors import ModelError, ReplyError, UsageError
from katha.eval_bridge.questions import choices as choosing
from katha.eval_bridge.questions.choices import Leak, leaking, write_choices
from katha.eval_bridge.questions.elements import MAKING, WRITTEN, ElementCounts, Kind, write_elements
from katha.eval_bridge.questions.free import even_mix, paper_mix, write_free_questions
from katha.eval_bridge.questions.labels import label_question
from katha.eval_bridge.questions.renaming import renamed
from katha.jsonio import canonical, refuse_overwriting, sha256_hex, write_bytes_atomic
from katha.models.base import TextModel
from katha.models.calls import current_calls, forgetting_calls, remembered, today
from katha.models.registry import make_model
from katha.schema import Question, QuestionMaking, StoryRecord
from katha.sqlite_index import told
from katha.stories import iter_records, load_stories

_COUNTED = ("written", "guessed", "partly", "unsettled", "told", "invisible", "rewritten", "dropped", "kept")


class AskingOptions(BaseModel):
    """How free questions are written, beside who writes them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    reader: str | None = Field(
        default=None, description="Who answers their checks, better another model; else --model."
    )
    each: int | None = Field(
        default=None, description="Questions of each dimension; else 12 in the shares of Table 14."
    )
    labels: bool = Field(
        default=False, description="One more for the moral by the twelve labels, where the text settles it."
    )
    rename: bool = Field(default=False, description="First tell each story with other names and places.")
    choices: bool = Field(
        default=False, description="Make options, too; kept where they are taken near chance without evidence."
    )
    evaluator: Kind | None = Field(
        default=None, description="Another evaluator's questions of each scene instead: tifa, dsg or geneval."
    )


@dataclass(frozen=True)
class Asking:
    """How questions are written: by which models, and what. each: of every dimension; None: in the shares of Table 14.
    labels: one more for the moral by the twelve labels. rename: names are changed first. choices: options are made.
    evaluator: those of another evaluator are written instead, beside the record's own."""

    model: str
    reader: str | None = None
    each: int | None = None
    labels: bool = False
    rename: bool = False
    choices: bool = False
    seed: int = 42
    evaluator: Kind | None = None


@dataclass(frozen=True)
class UnaskedStory:
    """A story that has no questions yet: the kind of error, of a reply its status, and what was said."""

    story: str
    error: str
    status: str
    reason: str


@dataclass(frozen=True)
class QuestionSet:
    """How many stories have questions, and of them those that had some before; the counts of every stage summed; how
    far their options leak; and which stories failed."""

    stories: int
    before: int
    making: dict[str, int]
    leak: Leak | None = None
    failed: list[UnaskedStory] = field(default_factory=list)

    @property
    def summary(self) -> QuestionMaking:
        """Return the sums as one making."""
        return QuestionMaking.model_validate(self.making)


def failed_file(out: Path) -> Path:
    """Return where the stories are listed that failed, a line of JSON each."""
    return out.with_name(f"{out.name}.failed")


def write_question_set(
    stories: Path,
    out: Path,
    asking: Asking,
    *,
    base_url: str | None = None,
    heard: Callable[[str], None] | None = None,
) -> QuestionSet:
    """Write stories with free questions into `out`, each as soon as it is done; those that are there already stay.

    heard: told each story as it is done or fails. What fails is listed beside `out` (`failed_file`), and is tried again
    when the same is asked for again. A record's own questions are kept as `earlier_questions`.

    Raises:
        UsageError: a story or a model is wrong, or `out` holds questions that were made otherwise.
    """
    if asking.evaluator is not None and (asking.each or asking.labels or asking.rename or asking.choices):
        raise UsageError(
            "--each, --labels, --rename and --choices are for katha's own questions.",
            hint="Leave --evaluator or them out.",
        )
    if asking.each is not None and asking.each < 1:
        raise UsageError(f"--each {asking.each} is not a number of questions.", hint="Use 1 or more.")
    refuse_overwriting(out, [stories, failed_file(out)])
    records = load_stories(stories)
    done = _done(out, records, asking)
    before = sum(record.story_id in done for record in records)
    model, reader = _models(asking, base_url)
    with told("Cannot write", out):  # before anything is paid for
        out.parent.mkdir(parents=True, exist_ok=True)
        out.open("ab").close()
    # A replay has the date of its recording, so that it gives the same bytes.
    date = remembered(current_calls(), "katha", "clock", {"about": "date"}, today)
    failed: list[UnaskedStory] = []
    for record in records:
        if record.story_id in done:
            continue
        try:
            with forgetting_calls(ReplyError):
                made = _asked(record, model, reader, asking, date)
        except ModelError as error:  # ReplyError is one
            failed.append(_failure(record, error))
            _say(heard, f"Not written: {record.story_id}: {error.message}")
            continue
        _append(out, made)
        done[record.story_id] = made
        _say(heard, f"{record.story_id}: {_summary(made, asking)}")
    _settle(out, records, done, failed)
    ready = [done[record.story_id] for record in records if record.story_id in done]
    sums: Counter[str] = Counter()
    for record in ready:
        told_of = _made_how(record, asking)
        sums.update({name: int(told_of.get(name, 0)) for name in _COUNTED})
    asked = [question for record in ready for question in record.recoverability_questions]
    return QuestionSet(len(ready), before, {name: sums[name] for name in _COUNTED}, leaking(asked), failed)


def _failure(record: StoryRecord, error: ModelError) -> UnaskedStory:
    status = error.status if isinstance(error, ReplyError) else "transport_failed"
    return UnaskedStory(record.story_id, type(error).__name__, status, error.message)


def _models(asking: Asking, base_url: str | None) -> tuple[TextModel, TextModel]:
    """Return who writes and who reads; a base URL is the reader's, too, where both are of one kind."""
    model = make_model(asking.model, base_url=base_url)
    if asking.reader is None or asking.reader == asking.model:
        return model, model
    alike = asking.reader.partition(":")[0] == asking.model.partition(":")[0]
    return model, make_model(asking.reader, base_url=base_url if alike else None)


def _asked(given: StoryRecord, model: TextModel, reader: TextModel, asking: Asking, date: str) -> StoryRecord:
    """Return a story with its questions and how they were made.

    Raises:
        ReplyError: a model wrote nothing that can be used. ModelError: it gave no answer.
    """
    if asking.evaluator is not None:
        return _elements(given, model, reader, asking, asking.evaluator, date)
    record = renamed(model, given) if asking.rename else given
    mix = even_mix(asking.each) if asking.each is not None else paper_mix()
    written = write_free_questions(model, record, reader=reader, mix=mix)
    if not written.kept:
        raise ReplyError("No question holds: all were guessed, told, or not settled by the text.")
    asked: tuple[Question, ...] = written.kept
    making = (written.making or QuestionMaking()).model_dump()
    names = ["rename"] if asking.rename else []
    if asking.labels:
        labelled = label_question(model, reader, record)
        asked += (labelled.question,) if labelled.question is not None else ()
        making["label"] = labelled.why or "settled"
        names.append("label")
    if asking.choices:
        chosen = write_choices(model, reader, record, asked, asking.seed)
        asked, making["choices"] = chosen.questions, chosen.dump()
        names += choosing.PROMPTS
    making["prompts"] |= {name: load_prompt(f"build/{name}").sha256 for name in names}
    making |= {"date": date, "asked": _mark(given, asking)}
    own = [item.model_dump(mode="json") for item in given.recoverability_questions]
    update: dict[str, Any] = {"recoverability_questions": list(asked), "question_making": making}
    return record.model_copy(update=update | ({"earlier_questions": own} if own else {}))


def _elements(
    given: StoryRecord, model: TextModel, reader: TextModel, asking: Asking, kind: Kind, date: str
) -> StoryRecord:
    """Return a story with another evaluator's questions beside its own."""
    found = write_elements(model, reader, given, kind, asking.seed)
    if not found.questions:
        raise ReplyError("No question holds: the reader of the scenes answered all of them otherwise.")
    extra, rows = given.model_extra or {}, [item.model_dump(mode="json") for item in found.questions]
    making = found.dump() | {"date": date, "asked": _mark(given, asking)}
    return given.model_copy(
        update={
            WRITTEN: {**(extra.get(WRITTEN) or {}), kind: rows},
            MAKING: {**(extra.get(MAKING) or {}), kind: making},
        }
    )


def _mark(record: StoryRecord, asking: Asking) -> dict[str, object]:
    """Return what a story's questions depend on, beside the models' moods."""
    asked = {name: value for name, value in asdict(asking).items() if (name, value) != ("evaluator", None)}
    return {**asked, "story": sha256_hex(f"{record.title}\n{record.story_text}".encode())}


def _made_how(record: StoryRecord, asking: Asking) -> dict[str, Any]:
    """Return how a story's questions were made: its own, or another evaluator's."""
    extra = record.model_extra or {}
    if asking.evaluator is not None:
        kept = dict((extra.get(MAKING) or {}).get(asking.evaluator) or {})
        return kept | {"dropped": kept.get("unusable", 0) + kept.get("unread", 0)}
    made = QuestionMaking.model_validate(extra.get("question_making") or {})
    return made.model_dump() | (made.model_extra or {})


def _summary(record: StoryRecord, asking: Asking) -> str:
    made = _made_how(record, asking)
    if asking.evaluator is None:
        return QuestionMaking.model_validate(made).summary()
    counts = {name: made[name] for name in ("written", "unusable", "unread", "kept")}
    return ElementCounts(**counts).summary()


def _done(out: Path, records: Sequence[StoryRecord], asking: Asking) -> dict[str, StoryRecord]:
    """Return the stories that `out` has by their ids; a line that a kill has torn is cut off.

    Raises:
        UsageError: one of them was made otherwise.
    """
    if not out.exists():
        return {}
    with told("Cannot read", out):
        data = out.read_bytes()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            write_bytes_atomic(out, whole)
    found = {record.story_id: record for record in iter_records(out)}
    for record in records:
        there = found.get(record.story_id)
        if there is None:
            continue
        mark = _made_how(there, asking).get("asked")
        wanted = _mark(record, asking)
        if mark != wanted:
            other = [name for name, value in wanted.items() if not isinstance(mark, dict) or mark.get(name) != value]
            raise UsageError(
                f"{str(out)!r} holds the story {record.story_id!r} with questions that were made otherwise "
                f"(by {', '.join(other)}).",
                hint="Give the options that it was made with, or another --out.",
            )
    return found


def _append(out: Path, record: StoryRecord) -> None:
    """Write a story behind those that are there, durably."""
    with told("Cannot write", out, "Free some space and give the same command again."), out.open("ab") as file:
        file.write(f"{record.model_dump_json()}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def _settle(
    out: Path, records: Sequence[StoryRecord], done: dict[str, StoryRecord], failed: Sequence[UnaskedStory]
) -> None:
    """Write the stories in their order, others that `out` had after them, and list what failed beside it."""
    first = [record.story_id for record in records if record.story_id in done]
    order = [*first, *(name for name in done if name not in set(first))]
    write_bytes_atomic(out, "".join(f"{done[name].model_dump_json()}\n" for name in order).encode())
    listed = failed_file(out)
    if failed:
        write_bytes_atomic(listed, b"".join(canonical(asdict(item)) + b"\n" for item in failed))
    else:
        listed.unlink(missing_ok=True)


def _say(heard: Callable[[str], None] | None, text: str) -> None:
    if heard is not None:
        heard(text)
