"""Studies with people: what a study is made of, its folder, and the scores of what came back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args

from pydantic import BaseModel, ConfigDict, Field

from katha.config import Flag, Settings, katha_version
from katha.configs import load_config
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.bench.boards import BoardProblem, JudgedBoard, MethodBoards, read_board
from katha.eval_bridge.matching.match import require_rule, usual_rule
from katha.eval_bridge.matching.rules import folder_rule
from katha.eval_bridge.people.analysis import Analysis
from katha.eval_bridge.people.calibration import Archive
from katha.eval_bridge.people.collected import participant, read_answer_files, to_judgments, write_rows
from katha.eval_bridge.people.design import Material, StudyPlan, needed
from katha.eval_bridge.people.judgments import Judgment, read_judgments
from katha.eval_bridge.people.preferences import criteria
from katha.eval_bridge.people.study import ON_REQUEST, STUDY, Design, Rules, Study, Task
from katha.eval_bridge.scoring.intervals import METHOD
from katha.experiments.inputs.stories import choose_questions, prepare_stories
from katha.experiments.offline.scoring import read_archive
from katha.jsonio import canonical, digest, sha256_hex, write_bytes_atomic
from katha.ordering import ORDER_HELP
from katha.schema import StoryRecord
from katha.schema.people import BoardJudgments, Participant, PeopleScores
from katha.schema.scores import Bootstrap
from katha.store import State, StoreKind, Workspace
from katha.stories import iter_records

TASKS: tuple[Task, ...] = tuple(task for task in get_args(Task) if task != "review")
_FEW = 5
"""Intervals over fewer participants are coarse."""
STORIES = "stories.jsonl"
JUDGMENTS = "judgments.jsonl"
SCORES = StoreKind("scoring of people", "people.json", State, early=frozenset((JUDGMENTS,)))


class PeopleStudyOptions(BaseModel):
    """How a study with people is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    raters: int = Field(default=6, ge=1, le=999, description="How many people, with a page each; 6 unless told.")
    per_item: int = Field(
        default=3, ge=1, description="How many people judge the same thing, as far as they go round; 3 unless told."
    )
    design: Design = Field(
        default="between",
        description="between: nobody meets a story under two conditions (unless told); within: everybody under all.",
    )
    tasks: str | None = Field(
        default=None,
        description=f"Any of {', '.join(TASKS)}, with commas; all that the boards allow but the last two unless told.",
    )
    criteria: str | None = Field(default=None, description="Criteria of Table 51, Q1,Q12,Q15; all 15 unless told.")
    questions: str | None = Field(
        default=None, description="all, reporting or steering; reporting where stories carry roles."
    )
    no_moral: bool = Field(default=False, description="Ask for no moral labels (HMR).")
    no_guesses: bool = Field(default=False, description="Ask nothing without evidence, as studies did before.")
    order: str | None = Field(default=None, description=ORDER_HELP)
    checks: int = Field(default=2, ge=0, description="Attention checks a page; 2 unless told.")
    repeats: int = Field(default=2, ge=0, description="Repeated items a page; 2 unless told.")
    failed_checks: int = Field(default=0, ge=0, description="Leave out who fails more checks than this; 0 unless told.")
    min_seconds: float = Field(
        default=1.5, ge=0, description="Leave out whose median time an item is below this; 1.5 unless told."
    )
    inconsistent: float = Field(
        default=0.5,
        ge=0,
        le=1,
        description="Leave out who answers a larger share of repeats otherwise; 0.5 unless told.",
    )
    min_answered: float = Field(
        default=0.5, ge=0, le=1, description="Leave out who answers a smaller share of the page; 0.5 unless told."
    )
    groups: str | None = Field(
        default=None, description="Groups that people put themselves in, with commas: artists,readers."
    )
    consent: Path | None = Field(default=None, description="A text file with a consent text of your own.")
    title: str = Field(default="Storyboards", description="What the pages are called; Storyboards unless told.")
    seed: int = Field(default=42, description="Order, sides and assignment depend on it; 42 unless told.")


@dataclass(frozen=True)
class StudyJob:
    """Stories, boards and options of a study. source: where the stories came from."""

    records: Sequence[StoryRecord]
    boards: Sequence[MethodBoards]
    options: PeopleStudyOptions
    source: str | Path | None = None


@dataclass(frozen=True)
class Packed:
    """A study, and what its pages show: the records as asked, and the boards by method and story."""

    study: Study
    records: Mapping[str, StoryRecord]
    boards: Mapping[str, Mapping[str, JudgedBoard]]
    invalid: Mapping[str, Mapping[str, str]]


def make_study(job: StudyJob) -> Packed:
    """Lay out the study. Reads every board; writes nothing.

    Raises:
        UsageError: a task, criterion or text cannot be used, no board can, or there are too few people.
    """
    options = job.options
    named = _names("--criteria", options.criteria, [item.name for item in criteria()])
    selected = choose_questions(options.questions, job.records)
    ready = [_asked(record, selected) for record in prepare_stories(job.source)(job.records)]
    boards, invalid = _boards(job.boards, ready)
    held = {name: frozenset(own) for name, own in boards.items()}
    bridged = {
        name: frozenset(story for story, board in own.items() if any(frame.kind != "scene" for frame in board.frames))
        for name, own in boards.items()
    }
    kept = [record for record in ready if any(record.story_id in own for own in held.values())]
    if not kept:
        why = next((f"{name}, {story}: {reason}" for name, own in invalid.items() for story, reason in own.items()), "")
        raise UsageError(f"No board can be shown ({why}).", hint="Give folders with one folder per story.")
    material = Material(kept, held, bridged, guesses=not options.no_guesses, scenes=_scenes(boards))
    tasks = _tasks(options, material)
    if options.design == "between" and "questions" in tasks and options.raters < needed(material):
        raise UsageError(
            f"{options.raters} people cannot be asked about each story under every condition: {needed(material)} are "
            "needed, because nobody meets a story twice.",
            hint="Give --raters, or --design within, or other --tasks.",
        )
    plan = StudyPlan(
        design=options.design,
        tasks=tasks,
        people=options.raters,
        per_item=options.per_item,
        criteria=named,
        checks=options.checks,
        repeats=options.repeats,
        moral=not options.no_moral,
        seed=options.seed,
    )
    pages, notes = plan.pages(material)
    identity = _identity(job, kept, boards)
    study = Study(
        katha=katha_version(),
        identity_sha256=identity,
        study=identity[:12],
        title=options.title,
        design=options.design,
        tasks=tasks,
        per_item=options.per_item,
        seed=options.seed,
        methods={item.name: str(item.folder) for item in job.boards},
        rules=Rules.model_validate(options.model_dump(include=set(Rules.model_fields))),
        groups=tuple(_names("--groups", options.groups, None)) if options.groups else (),
        guesses=material.guesses and "questions" in tasks,
        consent=_consent(options),
        pages=tuple(pages),
        notes=tuple(notes),
    )
    return Packed(study, {record.story_id: record for record in kept}, boards, invalid)


def _scenes(boards: Mapping[str, Mapping[str, JudgedBoard]]) -> dict[str, dict[str, frozenset[int]]]:
    return {
        name: {story: frozenset(frame.scene for frame in board.frames if frame.scene) for story, board in own.items()}
        for name, own in boards.items()
    }


def _asked(record: StoryRecord, selected: str) -> StoryRecord:
    roles = (selected, None)
    own = [item for item in record.recoverability_questions if selected == "all" or item.role in roles]
    return record.model_copy(update={"recoverability_questions": own})


def _boards(
    given: Sequence[MethodBoards], records: Sequence[StoryRecord]
) -> tuple[dict[str, dict[str, JudgedBoard]], dict[str, dict[str, str]]]:
    found: dict[str, dict[str, JudgedBoard]] = {}
    invalid: dict[str, dict[str, str]] = {}
    for item in given:
        found[item.name], invalid[item.name] = {}, {}
        for record in records:
            try:
                found[item.name][record.story_id] = read_board(item, record)
            except BoardProblem as problem:
                invalid[item.name][record.story_id] = problem.message
    return found, invalid


def _names(flag: str, given: str | None, known: Sequence[str] | None) -> list[str]:
    """The names in a list with commas; all of those known where nothing was given."""
    if given is None:
        return list(known or ())
    names = [name.strip() for name in given.split(",") if name.strip()]
    strange = [name for name in names if known is not None and name not in known]
    if strange or not names or len(set(names)) < len(names):
        what = f"{strange[0]!r} is not known" if strange else "give each name once, and at least one"
        raise UsageError(f"{flag} {given!r}: {what}.", hint=f"Known: {', '.join(known)}." if known else None)
    return names


def _tasks(options: PeopleStudyOptions, material: Material) -> tuple[Task, ...]:
    """The tasks that were asked for, in the order in which they are given out; all that there is something for."""
    wanted = _names("--tasks", options.tasks, TASKS)
    if options.tasks is None:
        wanted = [task for task in wanted if task not in ON_REQUEST]
    can = [task for task in TASKS if material.cells(task)]
    for task in wanted if options.tasks is not None else ():
        if task not in can:
            why = {
                "bridge": "no board holds an inserted frame",
                **dict.fromkeys(("pairs", "pictures"), "there are not two methods with one story"),
            }
            raise UsageError(f"--tasks {task}: {why.get(task, 'the stories have no question')}.", hint="Leave it out.")
    return tuple(task for task in TASKS if task in wanted and task in can)


def _consent(options: PeopleStudyOptions) -> str:
    if options.consent is None:
        return str(load_config("people.yaml")["consent"])
    try:
        text = options.consent.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputFileError(f"--consent {str(options.consent)!r} cannot be read as UTF-8 text.") from error
    if not text:
        raise InputFileError(f"--consent {str(options.consent)!r} is empty.")
    return text


def _identity(job: StudyJob, records: Sequence[StoryRecord], boards: Mapping[str, Mapping[str, JudgedBoard]]) -> str:
    """The hash of everything that the pages are made from."""
    shown = {
        name: {story: [sha256_hex(data) for data in board.images] for story, board in own.items()}
        for name, own in boards.items()
    }
    options = job.options.model_dump(mode="json", exclude={"consent"}) | {"consent": _consent(job.options)}
    words = load_config("people.yaml")
    return digest([options, [record.model_dump(mode="json") for record in records], shown, words])


# Scores.


class PeopleOptions(BaseModel):
    """How what people gave is scored."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    study: Path | None = Field(default=None, description="The folder of `katha people pack`: the key to its answers.")
    archive: Annotated[tuple[Path, ...], Flag("--archive", many=True)] = Field(
        default=(), description="answers.jsonl of judges on the same boards; may be given several times."
    )
    matching: str = Field(default_factory=usual_rule, description=Settings.model_fields["matching"].description)
    everybody: bool = Field(default=False, description="Leave nobody out, to see what the rules change.")
    seed: int = Field(default=42, description="The seed of the bootstrap; 42 unless told.")


@dataclass(frozen=True)
class Scored:
    """The scores of what people gave, and the rows that they are made of."""

    scores: PeopleScores
    rows: list[Judgment]


def read_study(folder: Path) -> tuple[Study, list[StoryRecord]]:
    """Return a study and its stories.

    Raises:
        InputFileError: the folder holds none.
    """
    study = Workspace(folder, STUDY).read() if folder.is_dir() else None
    if study is None or not (folder / STORIES).is_file():
        raise InputFileError(f"{str(folder)!r} holds no study.", hint="Make one with `katha people pack`.")
    return study, list(iter_records(folder / STORIES))


def score_people(answers: Sequence[Path], options: PeopleOptions) -> Scored:
    """Score what people gave: the files of a study's pages, or files of judgments.

    Raises:
        UsageError: a file is none of the study's, or a judgment cannot be used; nothing is written.
    """
    analysis = Analysis(
        " and ".join(repr(str(path)) for path in answers),
    )
    people, notes, rows, archive = list[Participant](), list[str](), list[Judgment](), None
    study, records = read_study(options.study) if options.study is not None else (None, [])
    if study is None and options.archive:
        raise UsageError("--archive needs --study: only a study says which questions were asked.")
    if study is None:
        rows = [row for path in answers for row in read_judgments(path)]
    else:
        rule = folder_rule(require_rule(options.matching), options.study or Path())
        collected, notes = read_answer_files(answers, study)
        people = [participant(one, study) for one in collected]
        kept = [one for one, who in zip(collected, people, strict=True) if options.everybody or not who.excluded]
        notes += _left_out(people, options.everybody)
        if len(kept) < _FEW:
            notes.append(f"{len(kept)} participants are few: what other people would say is hardly known.")
        rows = to_judgments(kept, records, rule)
        if not rows:
            why = next(iter(_left_out(people, options.everybody)), "no answer is a judgment.")
            raise UsageError(f"Nobody's answers count: {why}", hint="See what they say with --everybody.")
        archive = Archive(records, read_archive(options.archive), rule) if options.archive else None
    found = analysis.whole(rows, always=study is not None)
    if archive is not None:
        unknown = [name for name in found.methods or {} if name not in archive.outcomes.methods]
        known = ", ".join(archive.outcomes.methods)
        notes += [f"{name}: the archive has no answers about boards of that name (it has {known})." for name in unknown]
        found = found.model_copy(update=_beside(archive, found.methods or {}, found.preferences or [], rows))
    scores = PeopleScores.model_validate(
        {
            **found.model_dump(mode="json"),
            "notes": [*notes, *(study.notes if study is not None else ()), *found.notes],
            "study": study.study if study is not None else None,
            "matching": options.matching,
            "bootstrap": Bootstrap(resamples=0, seed=0, intervals=METHOD),
            "participants": people,
        }
    )
    return Scored(scores, rows)


def _left_out(people: Sequence[Participant], everybody: bool) -> list[str]:
    out = [who for who in people if who.excluded]
    if not out:
        return []
    words = "would be left out, but count here" if everybody else "are left out"
    return [
        f"{len(out)} of {len(people)} participants {words}: "
        + "; ".join(f"{who.rater} ({', '.join(who.excluded)})" for who in out)
        + "."
    ]


def _beside(
    archive: Archive, methods: Mapping[str, BoardJudgments], preferences: Sequence[Any], rows: Sequence[Judgment]
) -> Mapping[str, object]:
    """Return what judges add: agreement by method, and pairwise agreement by comparison."""
    judged = {
        name: own.model_copy(update={"judges": archive.boards(name, rows) or None}) for name, own in methods.items()
    }
    compared = [pair.model_copy(update={"judges": archive.pairs(pair, rows)}) for pair in preferences]
    return {"methods": judged, **({"preferences": compared} if compared else {})}


def write_scored(out: Path, scored: Scored) -> None:
    """Write `people.json` and `judgments.jsonl` into a folder that is held; the judgments first."""
    lines = b"".join(canonical(row) + b"\n" for row in write_rows(scored.rows))
    write_bytes_atomic(out / JUDGMENTS, lines)
    told = {**scored.scores.model_dump(mode="json"), "katha": katha_version()}
    Workspace(out, SCORES).finish(State.model_validate(told))
