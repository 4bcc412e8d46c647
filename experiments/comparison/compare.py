"""Several methods over the same stories, plans, questions and judges (Sec. K.3, Tables 53 and 57)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from katha.agents.context import RunContext
from katha.agents.folder import by_service
from katha.agents.frames import keep_drawn, missing_portraits, missing_scenes
from katha.agents.state import OF_ONE_STORY, ignore_event
from katha.compass.modes import load_mode
from katha.errors import BudgetError, RecordError, UsageError
from katha.eval_bridge.bench.boards import MethodBoards
from katha.eval_bridge.judging.answers import iter_answers, outcome_of
from katha.eval_bridge.judging.entrance import results_of
from katha.eval_bridge.matching.match import require_rule
from katha.eval_bridge.matching.rules import UNSETTLED, archived_rule, make_decider
from katha.eval_bridge.scoring.gate import CANNOT
from katha.eval_bridge.scoring.intervals import METHOD
from katha.eval_bridge.scoring.outcomes import Outcomes, collect
from katha.eval_bridge.scoring.rows import row_counts
from katha.eval_bridge.scoring.scores import score
from katha.eval_bridge.scoring.statistics import averages
from katha.experiments.cluster.drawn import Again, BoardPart, BoardsByStages
from katha.experiments.cluster.fleet import Fleet
from katha.experiments.cluster.progress import OnWorkers, unheard
from katha.experiments.cluster.stage_models import Memory, stages_of
from katha.experiments.cluster.work import Drains, Turns
from katha.experiments.comparison.job import (
    COMPARISON,
    BoardDrawer,
    CompareJob,
    CompareResult,
    CompareState,
    Failure,
)
from katha.experiments.comparison.methods import Method
from katha.experiments.evaluation.batches import BatchFolder, draw_in_batches, talk_in_batches
from katha.experiments.evaluation.eval_folder import EvalFolder, EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, EvalResult, evaluate
from katha.experiments.runner import (
    Experiment,
    ExperimentEnd,
    OnStep,
    read_kept,
    read_records,
    write_records,
)
from katha.jsonio import write_json
from katha.models.batches import DrawsInBatches
from katha.models.client import ChatClient, TalksInBatches
from katha.protocols import FrameRequest, Renderer
from katha.schema import DIMENSIONS, Board, Dimension, Frame, Plan, StoryRecord
from katha.schema.scores import Comparison, JudgeScores, Scores, ServiceUse
from katha.schema.tables import CompareTable, InvalidBoard, MethodRow, Standing, StoryCell, StoryRow
from katha.store import Workspace

_TEXT, _IMAGE = range(2)
LOSS_WORDS: dict[Dimension, str] = {
    "action_visibility": "missing action",
    "causal": "weak causality",
    "emotional": "emotional drift",
    "consequence": "consequence loss",
    "temporal_order": "order lost",
    "moral": "moral-target loss",
}
"""The failure types of Table 69, by the dimension whose questions the text answers and the images do not."""

_NOTES = (
    "Visual quality and character consistency (Table 69) are not judged here: they need people.",
    "Failure types are by rule: the dimension that loses most of the story's valid questions from text to images.",
)


FEWEST_STORIES = 6
"""With fewer, stories that are drawn anew say nothing of others: no interval is given."""
FEW_NOTE = f"With fewer than {FEWEST_STORIES} stories no interval is given."


def _with_enough(row: Comparison) -> Comparison:
    """Return a difference, without an interval where too few stories stand behind it."""
    return row if row.n_stories >= FEWEST_STORIES else row.model_copy(update={"ci95": None})


_UNEQUAL = "Boards are not of equal length"
_BECAUSE = "questions are valid for every method, because"


def warnings_of(table: CompareTable) -> list[str]:
    """Return the notes of a comparison that change how its table is read: boards of unequal length, methods that cannot
    be measured or leave few questions for all, answers that nobody matched, and too few stories for an interval."""
    marks = (_UNEQUAL, _BECAUSE, CANNOT, UNSETTLED)
    told = [note for note in table.notes if any(mark in note for mark in marks)]
    few = any(row.common_valid_stg is not None and row.common_valid_ci95 is None for row in table.methods)
    return told + [note for note in table.notes if few and note == FEW_NOTE]


def _length_notes(rows: Sequence[MethodRow]) -> list[str]:
    """Return a warning where boards are not of equal length: whoever shows more frames tells more."""
    lengths = {row.name: row.frames for row in rows if row.frames is not None}
    if len({round(value, 6) for value in lengths.values()}) < 2:
        return []
    told = ", ".join(f"{name} {value:.1f}" for name, value in lengths.items())
    return [f"{_UNEQUAL}, and a frame more tells more (frames a board: {told}; `katha ablate`)."]


def _emptied(rows: Sequence[MethodRow]) -> list[str]:
    """Return who takes half or more of the questions out of those that are valid for every method."""
    valid = {row.name: row.n_valid or 0 for row in rows}
    if len(valid) < 2:
        return []
    worst = min(valid, key=lambda name: valid[name])
    rest = min(count for name, count in valid.items() if name != worst)
    common = next((row.n_common for row in rows if row.n_common is not None), 0) or 0
    if 2 * common >= rest or 2 * valid[worst] > rest:
        return []
    scored = next((row.n_scored for row in rows if row.name == worst), None) or 0
    return [
        f"{common} {_BECAUSE} {worst} has {valid[worst]} that are ({scored} scored);"
        f" without it there may be {rest}. See why its answers are missing or wrong, or compare without it."
    ]


def _beside(entry: JudgeScores | None) -> dict[str, Any]:
    """Return the numbers of a row that stand beside those on its own valid questions; None for a row without any."""
    names = ("raw_stg", "ambiguity_rate", "n_common", "n_valid", "n_scored", "none", "gain_image", "unguessed_stg")
    common = [f"common_valid_{name}" for name in ("stg", "ci95", "text", "image")]
    if entry is None:
        return dict.fromkeys((*names, *common))
    valid, rest = entry.common_valid, entry.unguessed
    numbers = (entry.raw.stg, entry.ambiguity_rate, valid.n, entry.n_valid, entry.raw.n, valid.none, valid.gain_image)
    told = dict(zip(names, (*numbers, rest.stg if rest is not None else None), strict=True))
    return told | dict(zip(common, (valid.stg, valid.ci95.stg, valid.text, valid.image), strict=True))


@dataclass(frozen=True)
class JudgedMethods:
    """What a table is made from: methods (Table 57), where they lose, and stories side by side (Tables 69, 70).

    scores: of methods, their seeds counted together. outcomes: of single boards. reasons: why a board is not there or
    cannot be judged, by board and story. services: which services drew a method's frames, by method.
    lengths: how many frames each of a method's boards has.
    """

    job: CompareJob
    records: Sequence[StoryRecord]
    scores: Scores
    outcomes: Outcomes
    reasons: Mapping[str, Mapping[str, str]]
    services: Mapping[str, Sequence[ServiceUse]]
    lengths: Mapping[str, Sequence[int]]

    @property
    def judge(self) -> str | None:
        """The judge whose numbers are shown: the ensemble where there are several."""
        return self.outcomes.judges[-1] if self.outcomes.judges else None

    def table(self, status: Standing) -> CompareTable:
        """Return everything that the report shows."""
        methods, rows = self.job.methods, [self._method(method) for method in self.job.methods]
        return CompareTable(
            judge=self.judge,
            intervals=METHOD,
            questions=self.job.selection,
            methods=rows,
            comparisons=[_with_enough(row) for row in self.scores.comparisons if row.judge == self.judge],
            stories=[
                StoryRow(
                    story_id=record.story_id,
                    title=record.title or record.story_id,
                    moral=record.moral_label or "",
                    methods={method.name: self._cell(record.story_id, method) for method in methods},
                )
                for record in self.records
            ],
            invalid=[
                InvalidBoard(board=name, story_id=story, reason=reason)
                for name, reasons in sorted(self.reasons.items())
                for story, reason in sorted(reasons.items())
            ],
            notes=[
                *(note for note in (*self.scores.notes, self.job.config.matching_note) if note),
                *self._same_judge(),
                *_length_notes(rows),
                *_emptied(rows),
                *([FEW_NOTE] if any(0 < row.stories_valid < FEWEST_STORIES for row in rows) else []),
                *_NOTES,
            ],
            status=status,
        )

    def _same_judge(self) -> list[str]:
        """Return a warning for methods whose boards were chosen by the judges that report them."""
        chosen = [method.name for method in self.job.methods if load_mode(method.config.mode).steers]
        if not chosen:
            return []
        told = f"{', '.join(self.job.judges)} chose the boards of {', '.join(chosen)} and reports them"
        return [f"Held out by question, not by judge: {told}, and a judge flatters its own choice (`katha ablate`)."]

    def _method(self, method: Method) -> MethodRow:
        boards, scored = self.job.boards(method), self.scores.methods[method.name]
        total = len(self.records) * len(boards)
        invalid = sum(len(self.reasons.get(name, {})) for name in boards)
        entry = scored.judges.get(self.judge) if self.judge is not None else None
        block = entry.filtered if entry else None
        dimensions = block.dimensions if block else {}
        losses = [(row.gap, name) for name, row in dimensions.items() if row.n and row.gap is not None and row.gap > 0]
        services, lengths = list(self.services.get(method.name, ())), self.lengths.get(method.name, ())
        enough = scored.stories >= FEWEST_STORIES
        return MethodRow(
            name=method.name,
            planner=method.config.planner,
            renderer=method.config.renderer,
            mode=method.config.mode,
            seeds=list(boards.values()),
            closed=bool(services),
            services=services,
            boards=total,
            boards_valid=total - invalid,
            invalid_rate=100.0 * invalid / total if total else None,
            stories=len(self.records),
            stories_valid=scored.stories,
            text=block.text if block else None,
            image=block.image if block else None,
            filtered_stg=block.stg if block else None,
            ci95=block.ci95.stg if block and enough else None,
            latent_gap=block.latent_gap if block else None,
            dimensions=dimensions,
            **_beside(entry) | ({} if enough else {"common_valid_ci95": None}),
            frames=sum(lengths) / len(lengths) if lengths else None,
            thin=entry.common_valid.thin if entry else [],
            inspect=entry.common_valid.inspect if entry else False,
            signature=[LOSS_WORDS[name] for _, name in sorted(losses, key=lambda item: (-item[0], item[1]))[:2]],
        )

    def _cell(self, story: str, method: Method) -> StoryCell:
        """Return one method on one story: what is recovered of its valid questions, and where it fails."""
        boards, outcomes = list(self.job.boards(method)), self.outcomes
        why = [self.reasons[name][story] for name in boards if story in self.reasons.get(name, {})]
        judged = [name for name in boards if name in outcomes.methods and story not in self.reasons.get(name, {})]
        counts = np.zeros((len(DIMENSIONS), 4))
        if story in outcomes.stories:
            counts = row_counts(outcomes, judged, outcomes.stories).pooled()[outcomes.stories.index(story)]
        entry = self.scores.methods[method.name].judges.get(self.judge or "")
        hidden = entry is not None and entry.unmeasured is not None
        text = image = None
        recovered: Literal["yes", "partial", "no", "none"] = "none"
        if counts[:, 0].any() and not hidden:
            text, image = (100.0 * float(averages(counts)[at]) for at in (_TEXT, _IMAGE))
            recovered = "yes" if image == 100.0 else "no" if image == 0.0 else "partial"
        gaps = (counts[:, 1 + _TEXT] - counts[:, 1 + _IMAGE]) / np.maximum(counts[:, 0], 1)
        lost = [] if hidden else [at for at in np.argsort(-gaps, kind="stable") if gaps[at] > 0]
        return StoryCell(
            reason=why[0] if len(why) == len(boards) else None,
            boards_invalid=len(why),
            n=int(counts[:, 0].sum()),
            text=text,
            image=image,
            stg=text - image if text is not None and image is not None else None,
            recovered=recovered,
            failures=[LOSS_WORDS[DIMENSIONS[at]] for at in lost],
        )


def run_comparison(
    job: CompareJob,
    out: Path,
    *,
    on_story: OnStep | None = None,
    fleet: Fleet | None = None,
    heard: OnWorkers = unheard,
    batch: bool = False,
) -> CompareResult:
    """Compare into the folder `out`: boards, answers, `scores.json` and `table.json`.

    The same call again does nothing; after a kill it goes on, draws and asks nothing twice. A story that a method
    cannot draw is invalid for it, with the reason, and stops nothing. A budget that is used up leaves the comparison
    unfinished: what was paid for is kept, and the same call with a larger one goes on. The workers of a `fleet`
    draw and judge. Without one, models of a method that fill the memory take turns: every plan, then every picture,
    then every answer that a repair needs; `heard` is told how that stands. With `batch`, scenes and portraits of image
    services come in batches, which are waited for before anything else is drawn; `on_story` is told how many ended.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`); or a service
        refuses the key. JudgeError, StoreError: the work failed; call again to go on.
    """
    require_rule(job.config.matching)
    for record in job.records:  # a story's id becomes the name of a folder
        if re.fullmatch(r"[^/\\\x00]{1,200}", record.story_id) is None or set(record.story_id) == {"."}:
            raise RecordError(f"The story id {record.story_id!r} cannot be the name of a folder.", hint="Rename it.")
    made = job.plugins.values() if batch else ()
    if batch and not any(isinstance(one.renderer, DrawsInBatches) or _talks(one.renderer) for one in made):
        message = "--batch is given, but no renderer here has a batch API."
        raise UsageError(message, hint="Use --renderer openai:MODEL, gemini:MODEL or vector:anthropic:MODEL.")
    return _Comparison(job, Workspace(out, COMPARISON), fleet, heard, batch=batch, told=on_story).run(on_story)


def _talks(renderer: Renderer) -> ChatClient | None:
    """Return the client of a renderer whose conversations are answered in batches."""
    return renderer.batched_client() if isinstance(renderer, TalksInBatches) else None


def _converse(renderer: Renderer, contexts: Sequence[RunContext], seeds: Sequence[int]) -> None:
    """Draw the boards that are not there, as far as the replies are known; nothing is kept but these."""
    for context in contexts:
        for seed in seeds:
            with suppress(*OF_ONE_STORY, BudgetError):
                missing = list(missing_scenes(context, (seed,), ignore_event).values())
                for _ in renderer.render_board(missing) if missing else ():
                    pass


def _keep(whose: Mapping[str, RunContext], wanted: Mapping[str, FrameRequest], key: str, png: bytes) -> None:
    keep_drawn(whose[key], key, wanted[key], png)


class _Comparison(Experiment[CompareState, CompareTable]):
    def __init__(
        self,
        job: CompareJob,
        folder: Workspace[CompareState],
        fleet: Fleet | None,
        heard: OnWorkers,
        *,
        batch: bool = False,
        told: OnStep | None = None,
    ) -> None:
        super().__init__(folder)
        self._batch, self._told = batch, told
        self._job, self._out, self._fleet, self._heard = job, folder.path, fleet, heard
        self._records: list[StoryRecord] = []
        self._failures: dict[str, dict[str, Failure]] = {}

    def begin(self) -> CompareState:
        return self._job.state()

    def stored(self, known: CompareState, fresh: CompareState) -> CompareTable | None:
        return read_kept(self._out / "table.json", CompareTable) if known.status == "finished" else None

    def work(self) -> Iterator[str]:
        path = self._out / "stories.jsonl"
        if not path.is_file():  # the questions that every method is asked, made once
            write_records(path, self._job.prepare(self._job.records))
        self._records = read_records(path, StoryRecord)
        for judge in self._job.judges.values() if self._fleet is None else ():
            judge.require_room()
        self._failures = {name: dict(found) for name, found in self.state.failures.items()}
        self._drawer = BoardDrawer(self._job, self._out, self.store)
        if self._batch:
            self._draw_in_batches()
        turns = Turns(self._heard) if any(map(self._take_turns, self._job.methods)) else None
        brought = self._by_stages(self._fleet or turns)
        del turns  # its models are not those that judge
        again = Again(self._drawer) if brought else None
        for method in self._job.methods:
            for record in self._records:
                for name, seed in self._job.boards(method).items():
                    if not self._open(name, record.story_id):
                        continue
                    memory = brought.get((name, record.story_id))
                    if again is not None and memory is not None:
                        failed = again.draw(BoardPart(method, name, seed, record), memory)
                    else:
                        failed = self._drawer.draw(method, name, seed, record)
                    self._note(name, record.story_id, failed)
                self.save(failures=self._failures)
                yield f"{method.name}: {record.story_id}"

    def _draw_in_batches(self) -> None:
        """Have the vendors draw the missing portraits of every board, then its scenes; what they do not bring is drawn
        by calls later."""
        folder = BatchFolder(self._out / "batches")
        for method in self._job.methods:
            renderer, contexts = self._job.plugins[method.name].renderer, list[RunContext]()
            client = _talks(renderer)
            if client is None and not isinstance(renderer, DrawsInBatches):
                continue
            renderer.require_served()
            for record in self._records:
                if any(self._open(name, record.story_id) for name in self._job.boards(method)):
                    with suppress(*OF_ONE_STORY):  # told when its board is drawn
                        contexts.append(self._drawer.scenes(method, record))
            seeds = method.config.seeds if method.repairs else self._job.seeds(method)
            name = method.config.renderer
            if client is not None:
                draw = partial(_converse, renderer, contexts, seeds)
                talk_in_batches(name, renderer, client, draw, folder, self._job.budget, self._tell_batch)
            if not isinstance(renderer, DrawsInBatches):
                continue
            for missing in (missing_portraits, partial(missing_scenes, emit=ignore_event)):
                whose: dict[str, RunContext] = {}
                wanted: dict[str, FrameRequest] = {}
                for context in contexts:
                    with suppress(*OF_ONE_STORY, BudgetError):
                        found = missing(context, seeds)
                        wanted |= found
                        whose |= dict.fromkeys(found, context)
                keep = partial(_keep, whose, wanted)
                draw_in_batches(name, renderer, wanted, keep, folder, self._job.budget, self._tell_batch)
        folder.close()

    def _tell_batch(self, name: str, ended: int, of: int) -> None:
        if self._told is not None:
            self._told(f"{name}: {ended} of {of} batches have ended", 0)

    def _open(self, name: str, story: str) -> bool:
        """Return whether a board may be drawn: nothing is known against it that another try would not change."""
        known = self._failures.setdefault(name, {})
        return story not in known or known[story].again

    def _note(self, name: str, story: str, failed: Failure | None) -> None:
        self._failures[name].pop(story, None)
        if failed is not None:
            self._failures[name][story] = failed

    def _take_turns(self, method: Method) -> bool:
        """Return whether a board of `method` needs several models, which would have each other let go for every one."""
        made = self._job.plugins[method.name]
        used = made if method.repairs else replace(made, judges={}, bridge=None)
        return len(stages_of(method.config, used)) > 1

    def _by_stages(self, drains: Drains | None) -> dict[tuple[str, str], Memory]:
        """Have boards drawn stage by stage; by board and story, what the models gave that is not in the cache."""
        if drains is None:
            return {}
        brought: dict[tuple[str, str], Memory] = {}

        def keep(part: BoardPart, plan: Plan | None, memory: Memory) -> None:
            if plan is not None and self._drawer.kept_plan(part.method, part.record) is None:
                self._drawer.keep_plan(part.method, part.record, plan)
            if not part.plans:
                brought[part.name, part.record.story_id] = memory

        def parts() -> list[BoardPart]:
            return [
                BoardPart(method, name, seed, record, self._drawer.kept_plan(method, record))
                for method in self._job.methods
                for record in self._records
                for name, seed in self._job.boards(method).items()
                if self._open(name, record.story_id)
            ]

        work = BoardsByStages(drains, self._job, self.state.identity_sha256[:32], self._out / "workers", keep)
        work.plan(parts())
        work.draw(parts())
        return brought

    def conclude(self) -> ExperimentEnd[CompareTable]:
        evaluated = self._evaluate()
        reasons = {name: dict(found) for name, found in evaluated.state.done.invalid.items()}
        for name, failures in self._failures.items():  # what a renderer said tells more than that a file is missing
            reasons.setdefault(name, {}).update({story: failure.reason for story, failure in failures.items()})
        judged = self._score(EvalFolder(evaluated.out), reasons)
        rows = iter_answers(evaluated.out / "answers.jsonl")
        told = [reason for found in reasons.values() for reason in found.values()]
        outcome = outcome_of(rows, unusable=told, first=evaluated.outcome.first)
        calls = {name: call.prefix_cache for name, call in evaluated.state.done.calls.items()}
        outcome = outcome.with_caches({name: cache for name, cache in calls.items() if cache is not None})
        lost = any(failure.again for failures in self._failures.values() for failure in failures.values())
        again = lost or evaluated.state.status != "finished"
        table = judged.table("incomplete" if again or outcome.nothing else "finished")
        write_json(self._out / "table.json", table.model_dump(mode="json"))
        return ExperimentEnd(table, outcome, "incomplete" if again else None)

    def _evaluate(self) -> EvalResult:
        """Put the same questions about every board."""
        job, config = self._job, self._job.config
        boards = [
            MethodBoards(name, self._drawer.folder(method, seed))
            for method in job.methods
            for name, seed in job.boards(method).items()
        ]
        for board in boards:
            board.folder.mkdir(parents=True, exist_ok=True)
        made = EvalJob(
            records=self._records,
            methods=boards,
            judges=job.judges,
            settings=EvalSettings(
                answers=config.answers,
                variant=config.variant,
                matching=config.matching,
                questions=job.selection,
                resamples=0,
                seed=job.seed,
            ),
            decider=make_decider(config.matching, config.base_url, job.budget),
            command=tuple(job.command),
            config=config,
        )
        return evaluate(made, self._out / "judging", self.store, budget=job.budget, fleet=self._fleet)

    def _score(self, folder: EvalFolder, reasons: Mapping[str, Mapping[str, str]]) -> JudgedMethods:
        """Write `scores.json`, where a method's seeds count together, and return what the table is made from."""
        job, records = self._job, self._records
        boards = {method.name: list(job.boards(method)) for method in job.methods}
        missing = {
            name: {
                record.story_id: reasons[members[0]][record.story_id]
                for record in records
                if all(record.story_id in reasons.get(member, {}) for member in members)
            }
            for name, members in boards.items()
        }
        rule = archived_rule(job.config.matching, [folder.verdicts], settled=True)
        scores = score(
            records,
            iter_answers(folder.answers),
            matching=rule,
            questions=job.selection,
            resamples=job.resamples,
            seed=job.seed,
            invalid=missing,
            pooled=boards,
            reference=job.reference,
        )
        scores = scores.with_notes(results_of(job.judges, self.store)).with_empty(missing)
        write_json(self._out / "scores.json", scores.model_dump(mode="json"))
        outcomes = collect(records, iter_answers(folder.answers), matching=rule, selection=job.selection)
        frames = {
            method.name: [
                path.stem
                for seed in job.seeds(method)
                for path in self._drawer.folder(method, seed).glob("*/panels/*.png")
            ]
            for method in job.methods
        }
        services = {name: by_service(self.store, hashes) for name, hashes in frames.items()}
        lengths = {
            method.name: [len(frames) for seed in job.seeds(method) for frames in self._boards_of(method, seed)]
            for method in job.methods
        }
        return JudgedMethods(job, records, scores, outcomes, reasons, services, lengths)

    def _boards_of(self, method: Method, seed: int) -> Iterator[Sequence[Frame]]:
        """Yield the frames of each board of a method that is there."""
        for path in sorted(self._drawer.folder(method, seed).glob("*/storyboard.json")):
            board = read_kept(path, Board)
            if board is not None:
                yield board.frames
