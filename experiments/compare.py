"""Several methods over the same stories, plans, questions and judges (Sec. K.3, Tables 53 and 57)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from katha import __version__
from katha.agents.boards import draw_board
from katha.agents.context import RunContext
from katha.agents.plan import plan_within
from katha.agents.run import run_story
from katha.agents.state import OF_ONE_STORY, Emit, unheard
from katha.config import cache_folder
from katha.errors import BudgetError, InputFileError, OutputFolderError, RecordError, TransientRenderError, UsageError
from katha.eval_bridge.bench.boards import Boards
from katha.eval_bridge.judging.answers import iter_answers
from katha.eval_bridge.matching.match import Rule, require_rule
from katha.eval_bridge.matching.rules import make_decider, open_rule
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, Outcomes, collect
from katha.eval_bridge.scoring.scores import score
from katha.experiments.eval_folder import EvalFolder
from katha.experiments.evaluate import EvalJob, EvalResult, evaluate
from katha.experiments.judging import EvalSettings
from katha.experiments.methods import CompareJob, CompareResult, Method
from katha.jsonio import canonical, digest, dumps, iter_lines, read_json, write_bytes_atomic, write_json
from katha.schema import DIMENSIONS, Answer, Dimension, Plan, StoryRecord
from katha.store import LockTaken, RunFolder, Store, file_lock

# ---
# The boards of a comparison: the same plan for every renderer, a folder a board, and each failure with its reason.


Failure = dict[str, Any]


@dataclass
class Artist:
    """Draws what is missing of a comparison in `out`. `failures` says by board and story why there is none."""

    job: CompareJob
    out: Path
    store: Store
    emit: Emit
    failures: dict[str, dict[str, Failure]] = field(default_factory=dict)

    def folder(self, method: Method, seed: int) -> Path:
        """Where a method's boards of one seed are, a folder a story."""
        return self.out / "boards" / method.slug / str(seed)

    def draw(self, method: Method, record: StoryRecord) -> None:
        """The boards of one story by one method.

        Raises:
            UsageError: the renderer cannot be used at all (a wrong key). StoreError: the disk failed.
        """
        for name, seed in self.job.boards(method).items():
            known = self.failures.setdefault(name, {})
            if record.story_id in known and not known[record.story_id]["again"]:
                continue
            known.pop(record.story_id, None)
            try:
                plan = self._plan(method, record)
                (self._repair if method.repairs else self._board)(method, name, seed, record, plan)
            except _NoPlan as error:
                known[record.story_id] = {"reason": str(error), "again": False}
            except (*OF_ONE_STORY, BudgetError) as error:
                again = isinstance(error, (TransientRenderError, BudgetError))
                known[record.story_id] = {"reason": str(error), "again": again}

    def _plan(self, method: Method, record: StoryRecord) -> Plan:
        """The plan of one planner, made once for all renderers and kept.

        Raises:
            _NoPlan: the planner cannot plan the story.
        """
        config = method.config
        planner = self.job.plugins[method.name].planner
        limit, panels = self.job.prompt_tokens, len(record.scenes) or config.panels
        key = digest([dict(planner.spec()), panels, config.style, limit])
        path = self.out / "plans" / key[:12] / f"{record.story_id}.json"
        if path.is_file():
            return Plan.model_validate(read_json(path))
        try:
            plan = plan_within(planner, record, config.model_copy(update={"panels": panels}), limit)
        except UsageError as error:
            raise _NoPlan(f"no plan by {config.planner!r}: {error.message}") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, plan.model_dump(mode="json"))
        return plan

    def _board(self, method: Method, name: str, seed: int, record: StoryRecord, plan: Plan) -> None:
        folder = RunFolder(self.folder(method, seed) / record.story_id)
        folder.panels.mkdir(parents=True, exist_ok=True)
        update = {"mode": "base", "seeds": (seed,), "matching": "exact-set", "panels": len(plan.panels)}
        config = method.config.model_copy(update=update)
        context = RunContext(record, config, self.job.plugins[method.name], self.store, folder, plan)
        context.use(plan, record)
        board = draw_board(context, plan, seed, self.emit).model_copy(update={"method": name})
        _write_once(folder.storyboard, board.model_dump(mode="json"))

    def _repair(self, method: Method, name: str, seed: int, record: StoryRecord, plan: Plan) -> None:
        config = method.config.model_copy(update={"panels": len(plan.panels)})
        made = self.job.plugins[method.name]
        run_story(
            record,
            config,
            self.folder(method, seed) / record.story_id,
            plan=plan,
            on_event=self.emit,
            plugins=made,
        )


class _NoPlan(Exception):
    """A planner cannot plan a story."""


def _write_once(path: Path, value: Any) -> None:
    """Write a JSON file unless it holds that already: its time tells whether a board has changed."""
    data = dumps(value).encode("utf-8")
    if not path.is_file() or path.read_bytes() != data:
        write_bytes_atomic(path, data)


# ---
# `table.json`: each method's validity (Table 57), where it loses, and the same story side by side (Tables 69, 70).


_TEXT, _IMAGE, _BOTH = range(3)
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


def build_table(
    job: CompareJob,
    records: Sequence[StoryRecord],
    scores: Mapping[str, Any],
    reasons: Mapping[str, Mapping[str, str]],
    answers: Callable[[], Iterable[Answer]],
    matching: Rule,
    services: Mapping[str, Any],
) -> dict[str, Any]:
    """Everything that the report shows. Percentages are percentage points; what cannot be computed is None."""
    outcomes = collect(records, answers(), matching=matching, selection=job.selection)
    judge = outcomes.judges[-1] if outcomes.judges else None
    return {
        "format": 1,
        "judge": judge,
        "questions": job.selection,
        "methods": [
            _method(job, place, records, scores, reasons, judge, services) for place in range(len(job.methods))
        ],
        "comparisons": [row for row in scores["comparisons"] if row["judge"] == judge],
        "stories": [_story(job, record, outcomes, reasons) for record in records],
        "invalid": [
            {"board": name, "story_id": story, "reason": reason}
            for name, found in sorted(reasons.items())
            for story, reason in sorted(found.items())
        ],
        "notes": [*scores["notes"], *_NOTES],
    }


def _method(
    job: CompareJob,
    place: int,
    records: Sequence[StoryRecord],
    scores: Mapping[str, Any],
    reasons: Mapping[str, Mapping[str, str]],
    judge: str | None,
    services: Mapping[str, Any],
) -> dict[str, Any]:
    method = job.methods[place]
    boards = job.boards(method)
    total = len(records) * len(boards)
    invalid = sum(len(reasons.get(name, {})) for name in boards)
    entry = scores["methods"][method.name]["judges"].get(judge)
    dimensions = entry["filtered"]["dimensions"] if entry else {}
    losses = [(row["gap"], name) for name, row in dimensions.items() if row["n"] and row["gap"] > 0]
    block = entry["filtered"] if entry else {}
    return {
        "name": method.name,
        "planner": method.config.planner,
        "renderer": method.config.renderer,
        "mode": method.config.mode,
        "seeds": list(boards.values()),
        "closed": bool(services.get(method.name)),
        "services": services.get(method.name, []),
        "boards": total,
        "boards_valid": total - invalid,
        "invalid_rate": 100.0 * invalid / total if total else None,
        "stories": len(records),
        "stories_valid": scores["methods"][method.name]["stories"],
        "text": block.get("text"),
        "image": block.get("image"),
        "raw_stg": entry["raw"]["stg"] if entry else None,
        "filtered_stg": block.get("stg"),
        "common_valid_stg": entry["common_valid"]["stg"] if entry else None,
        "ci95": block.get("ci95", {}).get("stg"),
        "latent_gap": block.get("latent_gap"),
        "ambiguity_rate": entry["ambiguity_rate"] if entry else None,
        "dimensions": dimensions,
        "signature": [LOSS_WORDS[name] for _, name in sorted(losses, key=lambda item: (-item[0], item[1]))[:2]],
    }


def _story(
    job: CompareJob, record: StoryRecord, outcomes: Outcomes, reasons: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    return {
        "story_id": record.story_id,
        "title": record.title or record.story_id,
        "moral": record.moral_label or "",
        "methods": {
            method.name: _cell(record.story_id, list(job.boards(method)), outcomes, reasons) for method in job.methods
        },
    }


def _cell(
    story: str, boards: Sequence[str], outcomes: Outcomes, reasons: Mapping[str, Mapping[str, str]]
) -> dict[str, Any]:
    """One method on one story: what is recovered of its valid questions, and where it fails (Tables 69 and 70)."""
    why = [reasons[name][story] for name in boards if story in reasons.get(name, {})]
    counts = np.zeros((len(DIMENSIONS), 3), dtype=int)
    if story in outcomes.stories:
        mine = outcomes.story_of == outcomes.stories.index(story)
        for name in boards:
            if name in outcomes.methods and story not in reasons.get(name, {}):
                cells = outcomes.cells[outcomes.methods.index(name), -1]
                valid = mine & (cells != MISSING).all(axis=0) & (cells[_BOTH] == RIGHT)
                for row, right in enumerate((None, cells[_TEXT] == RIGHT, cells[_IMAGE] == RIGHT)):
                    chosen = valid if right is None else valid & right
                    counts[:, row] += np.bincount(outcomes.dimension_of[chosen], minlength=len(DIMENSIONS))
    return {"reason": why[0] if len(why) == len(boards) else None, "boards_invalid": len(why), **_verdict(counts)}


def _verdict(counts: np.ndarray[Any, np.dtype[np.int_]]) -> dict[str, Any]:
    """counts: (dimensions, 3), valid questions and those right under text and under images."""
    has = counts[:, 0] > 0
    if not has.any():
        return {"n": 0, "text": None, "image": None, "stg": None, "recovered": "none", "failures": []}
    rates = counts[has, 1:] / counts[has, :1]
    text, image = (100.0 * float(value) for value in rates.mean(axis=0))
    gaps = {
        name: float(counts[at, 1] - counts[at, 2]) / float(counts[at, 0])
        for at, name in enumerate(DIMENSIONS)
        if has[at]
    }
    worst = sorted((name for name in gaps if gaps[name] > 0), key=lambda name: (-gaps[name], DIMENSIONS.index(name)))
    recovered = "yes" if image == 100.0 else "no" if image == 0.0 else "partial"
    return {
        "n": int(counts[:, 0].sum()),
        "text": text,
        "image": image,
        "stg": text - image,
        "recovered": recovered,
        "failures": [LOSS_WORDS[name] for name in worst],
    }


# ---
# Draw every method's boards, judge them all alike, and make the table. After a kill it goes on where it stopped.


OnStory = Callable[[str, str], None]
_FILE, _LOCK, _HINT = "compare.json", ".lock", "Choose another --out."


def run_comparison(
    job: CompareJob,
    out: Path,
    *,
    on_story: OnStory | None = None,
    on_event: Emit | None = None,
) -> CompareResult:
    """Compare into the folder `out`: boards, answers, `scores.json` and `table.json`.

    The same call again does nothing; after a kill it goes on, draws and asks nothing twice. A story that a method
    cannot draw is invalid for it, with the reason, and stops nothing. A budget that is used up leaves the comparison
    unfinished: what was paid for is kept, and the same call with a larger one goes on.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`); or a service
        refuses the key. JudgeError, StoreError: the work failed; call again to go on.
    """
    require_rule(job.config.matching)
    _check_ids(job)
    identity, _ = job.identity(), job.judges
    with _claim(out):
        state = _state(out, job, identity)
        if state["status"] == "finished" and (out / "table.json").is_file():
            return CompareResult(out, read_json(out / "table.json"), reused=True)
        records = _prepared(job, out)
        with Store(cache_folder(), owner=identity[:32]) as store:
            artist = Artist(job, out, store, on_event or unheard, state["failures"])
            write_json(out / _FILE, state)
            for method in job.methods:
                for record in records:
                    artist.draw(method, record)
                    write_json(out / _FILE, {**state, "failures": artist.failures})
                    if on_story is not None:
                        on_story(method.name, record.story_id)
            judged = _judge(job, artist, records, store)
            store.flush()
            services = _services(job, artist, records, store)
        table = _finish(job, artist, records, judged, services)
        again = any(failure["again"] for found in artist.failures.values() for failure in found.values())
        status = "incomplete" if again or judged.state["status"] != "finished" else "finished"
        table["status"] = status
        write_json(out / "table.json", table)
        write_json(out / _FILE, {**state, "failures": artist.failures, "status": status})
        return CompareResult(out, table, reused=False)


def _check_ids(job: CompareJob) -> None:
    """A story's id becomes the name of a folder: refuse what is none."""
    for record in job.records:
        if re.fullmatch(r"[^/\\\x00]{1,200}", record.story_id) is None or set(record.story_id) == {"."}:
            raise RecordError(f"The story id {record.story_id!r} cannot be the name of a folder.", hint="Rename it.")


@contextmanager
def _claim(out: Path) -> Iterator[None]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        entries = {entry.name for entry in out.iterdir()}
    except OSError as error:
        raise OutputFolderError(f"Cannot use {str(out)!r}: {error.strerror}.", hint=_HINT) from error
    if entries - {_LOCK} and _FILE not in entries:
        named = sorted(entries - {_LOCK})[0]
        raise OutputFolderError(f"{str(out)!r} holds files of something else, {named!r} for one.", hint=_HINT)
    try:
        with file_lock(out / _LOCK, wait=False):
            yield
    except LockTaken as error:
        raise OutputFolderError(f"Another katha is working in {str(out)!r}.", hint=f"Wait for it. {_HINT}") from error


def _state(out: Path, job: CompareJob, identity: str) -> dict[str, Any]:
    """What the folder says of itself, or a new state.

    Raises:
        OutputFolderError: it holds another comparison.
    """
    path = out / _FILE
    if path.is_file():
        try:
            known = read_json(path)
        except InputFileError as error:
            raise OutputFolderError(error.message, hint=_HINT) from error
        if not isinstance(known, dict) or known.get("identity") != identity:
            raise OutputFolderError(
                f"{str(out)!r} holds a comparison of other stories, methods or settings.", hint=_HINT
            )
        return known
    return {
        "format": 1,
        "katha": __version__,
        "identity": identity,
        "status": "running",
        "command": list(job.command),
        "config": job.config.model_dump(mode="json"),
        "methods": [
            {
                "name": method.name,
                "slug": method.slug,
                "config": method.config.model_dump(mode="json"),
                **_specs(job, method.name),
            }
            for method in job.methods
        ],
        "failures": {},
    }


def _specs(job: CompareJob, name: str) -> dict[str, Any]:
    return {"plugins": job.plugins[name].specs()}


def _prepared(job: CompareJob, out: Path) -> list[StoryRecord]:
    """The stories with the questions that every method is asked, made once."""
    path = out / "stories.jsonl"
    if path.is_file():
        return [StoryRecord.model_validate_json(line) for _, line in iter_lines(path)]
    records = job.prepare(job.records)
    write_bytes_atomic(path, b"".join(canonical(record.model_dump(mode="json")) + b"\n" for record in records))
    return records


def _judge(job: CompareJob, artist: Artist, records: Sequence[StoryRecord], store: Store) -> EvalResult:
    config = job.config
    boards = [
        Boards(name, artist.folder(method, seed)) for method in job.methods for name, seed in job.boards(method).items()
    ]
    for board in boards:
        board.folder.mkdir(parents=True, exist_ok=True)
    settings = EvalSettings(
        answers=config.answers,
        variant=config.variant,
        matching=config.matching,
        questions=job.selection,
        resamples=0,
        seed=job.seed,
    )
    made = EvalJob(
        records=records,
        methods=boards,
        judges=job.judges,
        settings=settings,
        decider=make_decider(config.matching, config.base_url),
        command=tuple(job.command),
    )
    return evaluate(made, artist.out / "judging", store, budget=job.budget)


def _services(job: CompareJob, artist: Artist, records: Sequence[StoryRecord], store: Store) -> dict[str, Any]:
    """By method, which services drew its frames: model, served version, dates, frames and dollars (G.5)."""
    from katha.agents.record import by_service

    found = {}
    for method in job.methods:
        panels = [
            path.stem
            for seed in job.boards(method).values()
            for record in records
            for path in sorted((artist.folder(method, seed) / record.story_id / "panels").glob("*.png"))
        ]
        drawn = by_service(store, panels)
        if drawn:
            found[method.name] = drawn
    return found


def _finish(
    job: CompareJob, artist: Artist, records: Sequence[StoryRecord], judged: EvalResult, services: dict[str, Any]
) -> dict[str, Any]:
    """Write `scores.json`, where a method's seeds count together, and make the table."""
    folder = EvalFolder(artist.out / "judging")
    reasons = _reasons(judged.state["invalid"], artist)
    boards = {method.name: list(job.boards(method)) for method in job.methods}
    missing = {
        name: {
            record.story_id: reasons[members[0]][record.story_id]
            for record in records
            if all(record.story_id in reasons.get(member, {}) for member in members)
        }
        for name, members in boards.items()
    }
    rule = open_rule(job.config.matching, [folder.verdicts])
    scores = score(
        records,
        iter_answers(folder.answers),
        matching=rule,
        questions=job.selection,
        resamples=job.resamples,
        seed=job.seed,
        invalid=missing,
        pooled=boards,
    )
    for name, found in missing.items():
        if name not in scores["methods"]:
            scores["methods"][name] = {"stories": 0, "invalid_stories": found, "judges": {}}
            scores["notes"].append(f"{name}: no story has a board that can be judged.")
    write_json(artist.out / "scores.json", scores)
    return build_table(job, records, scores, reasons, lambda: iter_answers(folder.answers), rule, services)


def _reasons(invalid: dict[str, dict[str, str]], artist: Artist) -> dict[str, dict[str, str]]:
    """Why a board is not there or cannot be judged: what its renderer said, else what the reader of boards found."""
    merged = {name: dict(found) for name, found in invalid.items()}
    for name, failures in artist.failures.items():
        merged.setdefault(name, {}).update({story: failure["reason"] for story, failure in failures.items()})
    return merged
