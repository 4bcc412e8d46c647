"""LoRA training of a local language model as a planner, with peft and the transformers Trainer; resumable.

It learns from examples: the very prompt that the planner asks with, and the gold plan as its reply, as token ids.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from katha.config import katha_version, read_settings
from katha.configs import config_names, load_config
from katha.errors import KathaError, ModelError, UnknownPluginError, UsageError
from katha.jsonio import digest, write_json
from katha.models.checkpoints import ADAPTER_NOTE, ModelSource, best_device, require_local
from katha.models.local import find_language_model, load_weights
from katha.planners.base import parts_without, restrict
from katha.planners.draft import TIMES, draft_problems, read_draft, windows_of
from katha.planners.gemma_st import plan_prompt
from katha.planners.gold import OraclePlanner
from katha.planners.quality import FIELDS
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, Question, StoryRecord, Transition
from katha.store import Kind, State, Workspace
from katha.text import read_story

LEFT_OUT = ("links", "shots")
"""What no KathaBench record annotates: an adapter is trained, and used, without them."""
_LONGEST = {"prompt": 400, "must_show": 80, "appearance": 120, "name": 40, "kind": 40, "field": 160, "answer": 100}
_MOST_SHOWN, _MOST_ASKED, _MOST_ACCEPTED = 4, 4, 4


@dataclass(frozen=True)
class Example:
    """One story as the planner sees it, and the reply that is learnt."""

    story_id: str
    prompt: str
    reply: str


@dataclass
class Examples:
    """What can be learnt from, and why the rest cannot (by story)."""

    kept: list[Example] = field(default_factory=list)
    rejected: dict[str, str] = field(default_factory=dict)


def make_examples(records: Iterable[StoryRecord]) -> Examples:
    """Return an example of each record whose gold plan the planner's own validator accepts."""
    found = Examples()
    for record in records:
        try:
            made, problem = _example(record)
        except KathaError as error:
            made, problem = None, error.message
        if made is None:
            found.rejected[record.story_id] = problem
        else:
            found.kept.append(made)
    return found


def _example(record: StoryRecord) -> tuple[Example | None, str]:
    parts, panels = parts_without(LEFT_OUT), len(record.scenes)
    plan = OraclePlanner().plan(record, PlanRequest(panels=panels))
    seen, _ = restrict(record, "gemma-st")
    windows = windows_of(seen, panels)
    if len(windows) > 1:
        return None, f"It has {panels} scenes, more than are planned at once."
    value = _reply(record, plan)
    reply = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    draft, problems = read_draft(reply)
    if draft is not None:
        told = f"{record.story_text}\n{windows[0].text}"
        problems = [*problems, *draft_problems(draft, windows[0].shape, parts, told)]
    if problems:
        return None, problems[0]
    return Example(record.story_id, plan_prompt(seen, windows[0], parts, None), reply), ""


def _reply(record: StoryRecord, plan: Plan) -> dict[str, Any]:
    sheet = ("name", "kind", "appearance")
    return {
        "tells_events": True,
        "characters": [{name: _cut(getattr(item, name), name) for name in sheet} for item in plan.characters],
        "panels": [_panel(panel) for panel in plan.panels],
        "transitions": [_transition(item, record.recoverability_questions) for item in plan.transitions],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    told = read_story(panel.prompt).sentences[-1:]
    place = next((one.place.noun for one in told if one.place is not None), "unclear")
    time = next((one.time for one in told if one.time in TIMES), "unclear")
    shown = [_cut(item, "must_show") for item in panel.must_show[:_MOST_SHOWN]]
    return {
        "place": place,
        "time_of_day": time,
        "characters": panel.characters[:6],
        "must_show": shown or [_cut(panel.caption, "must_show")],
        "prompt": _cut(panel.prompt, "prompt"),
    }


def _transition(item: Transition, questions: Sequence[Question]) -> dict[str, Any]:
    asked = [one for one in questions if one.target_transition == item.pair and one.question_type != "moral"]
    return {
        "transition_type": item.transition_type,
        **{name: _cut(getattr(item, name) or "none", "field") for name in FIELDS},
        "moral_target": item.moral_target or None,
        "questions": [_question(one) for one in asked[:_MOST_ASKED]],
    }  # fmt: skip


def _question(item: Question) -> dict[str, Any]:
    accepted = [text for text in item.accepted_answers if text != item.gold_answer] or [item.gold_answer]
    return {
        "dimension": item.question_type,
        "question": _cut(item.question, "field"),
        "answer": _cut(item.gold_answer, "answer"),
        "accepted": [_cut(text, "answer") for text in accepted[:_MOST_ACCEPTED]],
    }


def _cut(text: str, kind: str) -> str:
    """Return `text` within what the reply's schema allows, cut at a word."""
    clean, most = " ".join(text.split()), _LONGEST[kind]
    return clean if len(clean) <= most else clean[:most].rsplit(" ", 1)[0]


_IGNORED = -100
"""The label that transformers leaves out of the loss."""


def encode(examples: Sequence[Example], tokenizer: Any, longest: int) -> tuple[list[dict[str, list[int]]], list[str]]:
    """Return `input_ids` and `labels` of each example, and the stories that are longer than `longest` tokens."""
    rows: list[dict[str, list[int]]] = []
    too_long: list[str] = []
    # The chat format's own mark ends a turn where the tokenizer has one.
    marked = tokenizer.convert_tokens_to_ids("<end_of_turn>") not in {None, tokenizer.unk_token_id}
    end = "<end_of_turn>" if marked else tokenizer.eos_token
    for item in examples:
        asked = [{"role": "user", "content": item.prompt}]
        prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
        start = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        reply = tokenizer(f"{item.reply}{end}", add_special_tokens=False)["input_ids"]
        if len(start) + len(reply) > longest:
            too_long.append(item.story_id)
            continue
        rows.append({"input_ids": [*start, *reply], "labels": [_IGNORED] * len(start) + list(reply)})
    return rows, too_long


@dataclass(frozen=True)
class Collator:
    """Rows to one batch, padded on the right. typed: the model asks which tokens are pictures (none are)."""

    pad: int
    typed: bool

    def __call__(self, rows: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Any]:
        """Return tensors of shape (B, T)."""
        import torch
        from torch.nn.utils.rnn import pad_sequence

        given = [{**row, "attention_mask": [1] * len(row["input_ids"])} for row in rows]
        fills = {"input_ids": self.pad, "labels": _IGNORED, "attention_mask": 0}
        batch = {
            name: pad_sequence([torch.tensor(row[name]) for row in given], batch_first=True, padding_value=fill)
            for name, fill in fills.items()
        }
        if self.typed:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        return batch


class TrainSettings(BaseModel):
    """Everything that decides the adapter's weights, apart from base model and data.

    max_length: tokens of prompt and plan together; longer examples are left out and counted. batch and accumulation:
    examples on the device at once, and batches per step. rank, alpha, dropout: of the LoRA matrices, on every linear
    layer of the language model. steps: None trains `epochs` times through the data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_length: int = Field(default=4096, ge=64, description="Longest example, in tokens.")
    batch: int = Field(default=1, ge=1, description="Stories on the device at once.")
    accumulation: int = Field(default=16, ge=1, description="Batches per step.")
    rank: int = Field(default=16, ge=1, description="The rank of the adapter's matrices.")
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.05, ge=0, lt=1)
    learning_rate: float = Field(default=2e-4, gt=0, description="The highest learning rate.")
    warmup: float = Field(default=0.03, ge=0, lt=1)
    epochs: float = Field(default=2.0, gt=0, description="How often every story is seen.")
    steps: int | None = Field(default=None, ge=1, description="Stop after so many steps instead.")
    save_every: int = Field(default=50, ge=1, description="Steps between checkpoints.")
    seed: int = Field(default=42, ge=0)
    dtype: Literal["float32", "bfloat16"] | None = None
    gradient_checkpointing: bool = False


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


def model_card(source: ModelSource, settings: TrainSettings, report: Report) -> str:
    """Return the card as Markdown; a number that was not measured is a dash."""
    rows = [
        ("Base model", f"`{source.name}` ({source.architecture}, revision `{source.revision}`)"),
        ("Method", "LoRA, rank {rank}, alpha {alpha}, dropout {dropout}, all linear layers".format(**dict(settings))),
        ("Learnt from", f"{report.examples} stories, {report.tokens:,} tokens; loss on the plan alone"),
        ("Left out", f"{len(report.rejected)} that the planner's validator rejects, {len(report.too_long)} too long"),
        ("Steps", f"{report.steps}, {settings.batch * settings.accumulation} stories each, seed {settings.seed}"),
        ("Training loss", f"{_number(report.first_loss)} at the first step, {_number(report.last_loss)} at the last"),
        ("Held-out stories", str(report.held_out)),
        ("Held-out loss", f"{_number(report.held_out_before)} before, {_number(report.held_out_after)} after"),
        ("Versions", ", ".join(f"{name} {version(name)}" for name in ("torch", "transformers", "peft"))),
    ]
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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


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


TRAINING = Kind("training", "train.json", TrainState)
_TARGETS = r".*(?:language_model|model)\.layers\.\d+\.(?:self_attn|mlp)\.(?:q|k|v|o|gate|up|down)_proj"
"""Every linear layer of the language model; a vision tower keeps its weights."""


@dataclass
class Report:
    """What a training did: counts, losses (first and last of training; of held-out stories before and after)."""

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


def train_planner(
    records: Iterable[StoryRecord],
    held_out: Iterable[StoryRecord],
    out: Path,
    settings: TrainSettings,
    *,
    base: str | None = None,
    device: str | None = None,
    on_step: Callable[[int, int, float | None], None] | None = None,
) -> Report:
    """Train an adapter of `base` into `out`. The same call again goes on at the last checkpoint, or does nothing.

    on_step: told the step, the number of steps and the loss.

    Raises:
        MissingExtraError: a package is missing. UsageError: no record can be learnt from. OutputFolderError: `out`
        holds another training. ModelError: the model is not here or does not fit into memory.
    """
    require_local("Training a planner")
    source = find_language_model(base)
    examples, kept_out = make_examples(records), make_examples(held_out)
    if not examples.kept:
        reason = next(iter(examples.rejected.values()), "there is none")
        raise UsageError(f"No record can be learnt from: {reason}", hint="Give records with scenes and transitions.")
    fresh = TrainState(
        katha=katha_version(),
        base=source.name,
        base_revision=source.revision,
        settings=settings.model_dump(),
        data=digest([[item.prompt, item.reply] for item in examples.kept]),
        held_out=digest([[item.prompt, item.reply] for item in kept_out.kept]),
        without=list(LEFT_OUT),
    )
    folder = Workspace(out, TRAINING)
    with folder.claim():
        known = folder.resume(fresh)
        if known is not None and known.finished:
            kept = TypeAdapter(Report).validate_python({**(known.report or {}), "folder": out})
            return replace(kept, notes=["It was finished before; nothing was done."])
        folder.write(fresh)
        where = device or best_device()
        model, tokenizer = load_weights(source, where, settings.dtype or ("float32" if where == "cpu" else "bfloat16"))
        report = _fit(model, tokenizer, examples, kept_out, out, settings, where, on_step)
        # The note binds the adapter to its base.
        note = {"base": source.name, "base_revision": source.revision, "without": list(LEFT_OUT)}
        write_json(out / ADAPTER_NOTE, note)
        (out / "README.md").write_text(model_card(source, settings, report), encoding="utf-8")
        kept_report = {name: value for name, value in vars(report).items() if name != "folder"}
        folder.finish(fresh.model_copy(update={"finished": True, "report": kept_report}))
    return report


def _fit(
    model: Any,
    tokenizer: Any,
    examples: Examples,
    held_out: Examples,
    out: Path,
    settings: TrainSettings,
    device: str,
    on_step: Callable[[int, int, float | None], None] | None,
) -> Report:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import set_seed

    set_seed(settings.seed)
    rows, too_long = encode(examples.kept, tokenizer, settings.max_length)
    others, _ = encode(held_out.kept, tokenizer, settings.max_length)
    if not rows:
        raise UsageError(f"Every example is longer than {settings.max_length} tokens.", hint="Raise --max-length.")
    lora = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        target_modules=_TARGETS,
        task_type="CAUSAL_LM",
    )
    adapted = get_peft_model(model, lora)
    if settings.gradient_checkpointing:
        adapted.enable_input_require_grads()
        adapted.gradient_checkpointing_enable({"use_reentrant": False})
    typed = "token_type_ids" in inspect.signature(model.forward).parameters
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    trainer = _trainer(adapted, rows, others, Collator(pad, typed), out, settings, device, on_step)
    started = time.perf_counter()
    try:
        # A new adapter changes nothing: this is the base model's loss, also where training goes on at a checkpoint.
        before = _loss(trainer) if others else None
        trainer.train(resume_from_checkpoint=_last_checkpoint(out))
        after = _loss(trainer) if others else None
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise ModelError(
            f"Training does not fit into the memory of {device}; the last checkpoint in {str(out)!r} is kept.",
            hint="Lower --max-length or --batch, or use a smaller base model.",
        ) from error
    adapted.save_pretrained(str(out))
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    return Report(
        folder=out,
        examples=len(rows),
        held_out=len(others),
        rejected=examples.rejected,
        too_long=too_long,
        steps=trainer.state.global_step,
        first_loss=losses[0] if losses else None,
        last_loss=losses[-1] if losses else None,
        held_out_before=before,
        held_out_after=after,
        tokens=sum(len(row["input_ids"]) for row in rows),
        seconds=time.perf_counter() - started,
    )


def _trainer(
    model: Any,
    rows: list[dict[str, list[int]]],
    others: list[dict[str, list[int]]],
    collator: Collator,
    out: Path,
    settings: TrainSettings,
    device: str,
    on_step: Callable[[int, int, float | None], None] | None,
) -> Any:
    from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

    class Teller(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
            if on_step is not None and logs is not None and "loss" in logs:
                on_step(state.global_step, state.max_steps, logs["loss"])

    arguments = TrainingArguments(
        output_dir=str(out / "checkpoints"),
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=settings.accumulation,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=settings.warmup,
        num_train_epochs=settings.epochs,
        max_steps=settings.steps or -1,
        bf16=settings.dtype == "bfloat16" and device.startswith("cuda"),
        logging_steps=1,
        save_steps=settings.save_every,
        save_total_limit=2,
        seed=settings.seed,
        data_seed=settings.seed,
        use_cpu=device == "cpu",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=others or None,
        data_collator=collator,
        callbacks=[Teller()],
    )
    trainer.remove_callback(PrinterCallback)  # it writes to standard output, which belongs to --json
    return trainer


def _loss(trainer: Any) -> float:
    return float(trainer.evaluate()["eval_loss"])


def _last_checkpoint(out: Path) -> str | None:
    """Return the last whole checkpoint, if there is one."""
    found = [path for path in (out / "checkpoints").glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return str(max(found, key=lambda path: int(path.name.rpartition("-")[2]))) if found else None
