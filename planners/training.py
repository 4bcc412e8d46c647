"""LoRA training of a local language model as a planner, with peft and the transformers Trainer; resumable.

It learns from examples: the very prompt that the planner asks with, and the gold plan as its reply, as token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from katha.config import katha_version, read_settings
from katha.configs import config_names, load_config
from katha.errors import KathaError, UnknownPluginError, UsageError
from katha.jsonio import digest, write_json
from katha.models.checkpoints import ADAPTER_NOTE, ModelSource, require_local
from katha.models.local import find_language_model, load_weights, require_quantiser
from katha.planners.base import validate_plan
from katha.planners.gemma_st import GemmaPlanner
from katha.planners.quality import plan_quality
from katha.planners.training_data import LEFT_OUT, Examples, make_examples
from katha.planners.training_fit import (
    Fit,
    OnStep,
    Processes,
    TrainSettings,
    fit_adapter,
    free_memory,
    join_processes,
)
from katha.protocols import PlanRequest
from katha.schema import Plan, StoryRecord
from katha.store import State, StoreKind, Workspace

Score = Callable[[StoryRecord, Plan], float | None]
"""How well a board made from a plan can be read, in percentage points; None where it has no question."""


def load_settings(preset: str | None, changes: Mapping[str, Any]) -> TrainSettings:
    """Return the settings of a preset with `changes` on top; a change that is None was not given.

    Raises:
        UnknownPluginError: no such preset. UsageError: a setting is unknown or has a value it cannot have.
    """
    values: dict[str, Any] = {}
    if preset is not None:
        if preset not in config_names("train"):
            known = ", ".join(config_names("train"))
            raise UnknownPluginError(f"No preset is called {preset!r}.", hint=f"Known: {known}.")
        values.update(load_config("train", f"{preset}.yaml"))
    values.update({name: value for name, value in changes.items() if value is not None})
    return read_settings(TrainSettings, values)


@dataclass(frozen=True)
class PlanCheck:
    """Plans that the trained planner wrote of held-out stories.

    asked: stories. valid: those whose plan the validator takes. failed: why the others have none, by story. fields: the
    mean share of transition fields that say something. score: the mean of what a board of the plan can be read for
    (its steering questions, sketched and read), where it was asked for. The last two in percentage points.
    """

    asked: int
    valid: int
    failed: dict[str, str]
    fields: float | None
    score: float | None


@dataclass
class Report:
    """What a training did: counts, losses (first and last of training; of held-out stories before and after).

    sequences: what a step takes `per_step` of: stories, or several of them packed. processes: how many computed.
    best_step: the step whose checkpoint was kept, None where it is the last. plans: what came of held-out stories.
    """

    folder: Path
    examples: int
    held_out: int
    rejected: dict[str, str]
    too_long: list[str]
    steps: int
    first_loss: float | None
    last_loss: float | None
    held_out_before: float | None
    held_out_after: float | None
    tokens: int
    seconds: float
    notes: list[str] = field(default_factory=list)
    sequences: int = 0
    per_step: int = 0
    processes: int = 1
    best_step: int | None = None
    plans: PlanCheck | None = None


def model_card(source: ModelSource, settings: TrainSettings, report: Report) -> str:
    """Return the card as Markdown; a number that was not measured is a dash."""
    method = "LoRA, rank {rank}, alpha {alpha}, dropout {dropout}, all linear layers".format(**dict(settings))
    rows = [
        ("Base model", f"`{source.name}` ({source.architecture}, revision `{source.revision}`)"),
        ("Method", f"{method}, over a base in 4 bits (nf4, QLoRA)" if settings.quantize else method),
        ("Learnt from", f"{report.examples} stories, {report.tokens:,} tokens; loss on the plan alone"),
        ("Left out", f"{len(report.rejected)} that the planner's validator rejects, {len(report.too_long)} too long"),
        ("Steps", _steps(settings, report)),
        ("Training loss", f"{_number(report.first_loss)} at the first step, {_number(report.last_loss)} at the last"),
        ("Held-out stories", str(report.held_out)),
        ("Held-out loss", f"{_number(report.held_out_before)} before, {_number(report.held_out_after)} after"),
    ]
    rows += (
        [("Kept", f"the checkpoint of step {report.best_step}, of the least held-out loss")] if settings.best else []
    )
    rows += [("Held-out plans", _plans(report.plans))] if report.plans is not None else []
    rows.append(("Versions", ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "peft"))))
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        "---\nlibrary_name: peft\n"
        f"base_model: {source.name}\ntags: [storyboards, katha]\n---\n\n# A planner of storyboards\n\n"
        "An adapter that turns a story into a transition-aware plan. Use it with\n"
        f"`katha run STORY --planner gemma-st:{source.name} --adapter DIR`.\n\n"
        f"| | |\n|---|---|\n{table}\n\n"
        f"It writes no {' and no '.join(LEFT_OUT)}, which its data does not annotate. The loss says how likely the\n"
        "gold plans are, not how well storyboards made from its plans can be read: `katha compare` measures that.\n"
    )


def _steps(settings: TrainSettings, report: Report) -> str:
    """Return how many steps there were and what one of them took, over all processes together."""
    mean = report.examples / max(1, report.sequences)
    what = f"sequences of {mean:.1f} stories" if settings.packing else "stories"
    parts = [f"{settings.batch} at once", f"{settings.accumulation // report.processes} batches"]
    parts += [f"{report.processes} processes"] if report.processes > 1 else []
    return f"{report.steps}, {report.per_step} {what} each ({' x '.join(parts)}), seed {settings.seed}"


def _plans(found: PlanCheck) -> str:
    said = f"{found.valid} of {found.asked} valid, {_number(found.fields, 1)}% of the transition fields filled"
    return said if found.score is None else f"{said}, steering score {_number(found.score, 1)}"


def _number(value: float | None, digits: int = 3) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


class TrainState(State):
    """`train.json`: what an adapter is made of, and what came of it. Files of an older katha have no format."""

    format: Literal[1] = 1
    base: str
    base_revision: str
    settings: dict[str, object]
    data: str
    held_out: str
    without: list[str]
    finished: bool = False
    report: dict[str, object] | None = None

    def identity(self) -> Mapping[str, object]:
        """Return everything that decides the adapter's weights."""
        return {
            "another base model": self.base,
            "another version of the base model": self.base_revision,
            "other settings": self.settings,
            "other stories": self.data,
            "other held-out stories": self.held_out,
            "other fields left out": self.without,
        }


TRAINING = StoreKind("training", "train.json", TrainState)


def train_planner(
    records: Iterable[StoryRecord],
    held_out: Iterable[StoryRecord],
    out: Path,
    settings: TrainSettings,
    *,
    base: str | None = None,
    device: str | None = None,
    plans: int = 0,
    score: Score | None = None,
    on_step: OnStep | None = None,
) -> Report:
    """Train an adapter of `base` into `out`. The same call again goes on at the last checkpoint, or does nothing.

    Under `torchrun` or `accelerate launch` every process makes this call; the first one writes.

    plans: of how many held-out stories the trained planner writes a plan, to be counted. score: how such a plan is
    scored. on_step: told the step, the number of steps and the loss.

    Raises:
        MissingExtraError: a package is missing. UsageError: no record can be learnt from. OutputFolderError: `out`
        holds another training. ModelError: the model is not here or does not fit into memory.
    """
    require_local("Training a planner")
    if settings.quantize:
        require_quantiser()
    source, measured = find_language_model(base), list(held_out)
    examples, kept_out = make_examples(records), make_examples(measured)
    if not examples.kept:
        reason = next(iter(examples.rejected.values()), "there is none")
        raise UsageError(f"No record can be learnt from: {reason}", hint="Give records with scenes and transitions.")
    processes = join_processes(device)
    processes.share(settings)
    fresh = TrainState(
        katha=katha_version(),
        base=source.name,
        base_revision=source.revision,
        settings=settings.decisive(),
        data=digest([[item.prompt, item.reply] for item in examples.kept]),
        held_out=digest([[item.prompt, item.reply] for item in kept_out.kept]),
        without=list(LEFT_OUT),
    )
    folder = Workspace(out, TRAINING)
    with folder.claim() if processes.first else nullcontext():
        known = folder.resume(fresh) if processes.first else None
        if processes.first and (known is None or not known.finished):
            folder.write(fresh)
        processes.wait()
        known = known or (None if processes.first else folder.read())
        if known is not None and known.finished:
            processes.end()
            kept = TypeAdapter(Report).validate_python({**(known.report or {}), "folder": out})
            return replace(kept, notes=["It was finished before; nothing was done."])
        report = _fitted(source, examples, kept_out, out, settings, processes, on_step)
        processes.end()  # the rest can take longer than others would wait
        if processes.first:
            told = [item for item in measured if item.story_id not in kept_out.rejected][:plans]
            report.plans = _checked(source, out, processes.device, told, score) if told else None
            _finish(folder, fresh, source, settings, report)
    return report


def _fitted(
    source: ModelSource,
    examples: Examples,
    held_out: Examples,
    out: Path,
    settings: TrainSettings,
    processes: Processes,
    on_step: OnStep | None,
) -> Report:
    dtype = settings.dtype or ("float32" if processes.device == "cpu" else "bfloat16")
    loaded = load_weights(source, processes.device, dtype, quantize=settings.quantize)
    found: Fit = fit_adapter(loaded, (examples.kept, held_out.kept), out, settings, processes, on_step)
    return Report(
        folder=out,
        rejected=examples.rejected,
        per_step=settings.batch * settings.accumulation,
        processes=processes.size,
        **asdict(found),
    )


def _finish(
    folder: Workspace[TrainState], state: TrainState, source: ModelSource, settings: TrainSettings, report: Report
) -> None:
    # The note binds the adapter to its base.
    note = {"base": source.name, "base_revision": source.revision, "without": list(LEFT_OUT)}
    write_json(report.folder / ADAPTER_NOTE, note)
    (report.folder / "README.md").write_text(model_card(source, settings, report), encoding="utf-8")
    kept = {name: value for name, value in asdict(report).items() if name != "folder"}
    folder.finish(state.model_copy(update={"finished": True, "report": kept}))


def _checked(
    source: ModelSource, adapter: Path, device: str, records: Sequence[StoryRecord], score: Score | None
) -> PlanCheck:
    """Return what comes of plans that the trained planner writes, in the way that it is used."""
    free_memory()
    # The note is written when all is done; until then what was not taught is said here.
    planner = GemmaPlanner(str(source.folder), adapter=adapter, without=LEFT_OUT, device=device)
    failed: dict[str, str] = {}
    fields: list[float] = []
    scores: list[float] = []
    for record in records:
        try:
            plan = planner.plan(record, PlanRequest(panels=len(record.scenes)))
            validate_plan(plan, record)
        except KathaError as error:
            failed[record.story_id] = error.message
            continue
        filled = plan_quality(plan, record)["fields"]
        found = score(record, plan) if score is not None else None
        fields += [] if filled is None else [filled]
        scores += [] if found is None else [found]
    planner.close()
    return PlanCheck(len(records), len(records) - len(failed), failed, _mean(fields), _mean(scores))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
