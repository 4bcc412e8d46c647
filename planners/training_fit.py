"""Fitting an adapter with peft and the transformers Trainer: on one device, or on several by one process each.

`torchrun` and `accelerate launch` start the processes; the stories of a step are shared out among them, so that a step
is the same step however many there are. The first process writes the folder, the others compute.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from katha.errors import ModelError, UsageError
from katha.models.checkpoints import best_device
from katha.planners.training_data import Collator, TrainingExample, encode, pack

_TARGETS = r".*(?:language_model|model)\.layers\.\d+\.(?:self_attn|mlp)\.(?:q|k|v|o|gate|up|down)_proj"
"""Every linear layer of the language model; a vision tower keeps its weights."""
OnStep = Callable[[int, int, float | None], None]
_LOGITS = 1 << 26
"""How many scores of words are held at once while the loss is taken: 256 tokens of a vocabulary of 262,144."""
# PyTorch's cross entropy leaves targets of this number out.
_IGNORED = -100
_SCALED = ("final_logit_softcapping", "logit_scale", "logits_scaling")
"""What a configuration calls a change of the scores after the head."""


class TrainSettings(BaseModel):
    """Everything that decides the adapter's weights, apart from base model and data.

    max_length: tokens of prompt and plan together; longer examples are left out and counted. batch and accumulation:
    examples on a device at once, and batches per step, over all processes together. rank, alpha, dropout: of the LoRA
    matrices, on every linear layer of the language model. steps: None trains `epochs` times through the data.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_length: int = Field(default=4096, ge=64, description="Longest example, in tokens.")
    batch: int = Field(default=1, ge=1, description="Stories on a device at once.")
    accumulation: int = Field(default=16, ge=1, description="Batches per step, over all processes together.")
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
    quantize: Literal["nf4"] | None = Field(
        default=None, description="nf4 holds the base model in 4 bits while it learns (QLoRA; needs bitsandbytes)."
    )
    packing: bool = Field(default=False, description="Put several stories into one sequence; none sees another.")
    best: bool = Field(default=False, description="Keep the checkpoint with the least held-out loss, not the last.")

    def decisive(self) -> dict[str, object]:
        """Return what decides the weights; what came later than the first adapters only where it is used."""
        later = {"quantize", "packing", "best"}
        return {name: value for name, value in self.model_dump().items() if name not in later or value}


@dataclass(frozen=True)
class Processes:
    """The processes of one training; one alone is a world of one. device: that of this process."""

    device: str
    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Return whether this process writes."""
        return self.rank == 0

    def share(self, settings: TrainSettings) -> int:
        """Return the batches of a step that are this process's.

        Raises:
            UsageError: they cannot be shared out evenly.
        """
        if settings.accumulation % self.size:
            raise UsageError(
                f"{settings.accumulation} batches a step cannot be shared out among {self.size} processes.",
                hint=f"Give --accumulation a multiple of {self.size}, or start another number of processes.",
            )
        return settings.accumulation // self.size

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            import torch.distributed

            torch.distributed.barrier()

    def end(self) -> None:
        """Take leave of the other processes."""
        if self.size > 1:
            import torch.distributed

            torch.distributed.barrier()
            torch.distributed.destroy_process_group()


def join_processes(device: str | None) -> Processes:
    """Return this process's place among those that `torchrun` or `accelerate launch` started, and its device.

    Raises:
        UsageError: one device was named for several processes.
    """
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Processes(device or best_device())
    kind = device or best_device()
    if ":" in kind:
        raise UsageError(
            f"{size} processes cannot share {kind!r}.", hint="Leave --device out: each process takes one of its own."
        )
    from accelerate import PartialState

    state = PartialState(cpu=kind == "cpu")
    # A processor has no index, although accelerate gives it one.
    there = "cpu" if state.device.type == "cpu" else str(state.device)
    return Processes(there, state.process_index, size)


def hold_to_one_device(arguments: Any, device: str) -> None:
    """Have the Trainer use `device` (`cuda` or `cuda:3`) and no other.

    Left alone it takes every accelerator that it sees into one process (nn.DataParallel), which multiplies the batch,
    and begins with the first whatever device was named.
    """
    import torch

    named = torch.device(device)
    there = torch.device(named.type, torch.cuda.current_device() if named.index is None else named.index)
    torch.cuda.set_device(there)
    arguments.__dict__["_setup_devices"] = arguments.distributed_state.device = there
    arguments._n_gpu = 1


def training_arguments(settings: TrainSettings, out: Path, processes: Processes, *, measured: bool) -> Any:
    """Return the Trainer's arguments. measured: whether there are held-out stories."""
    from transformers import TrainingArguments

    device, best = processes.device, settings.best and measured
    arguments = TrainingArguments(
        output_dir=str(out / "checkpoints"),
        per_device_train_batch_size=settings.batch,
        per_device_eval_batch_size=settings.batch,
        gradient_accumulation_steps=processes.share(settings),
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=settings.warmup,
        num_train_epochs=settings.epochs,
        max_steps=settings.steps or -1,
        bf16=settings.dtype == "bfloat16" and device.startswith("cuda"),
        logging_steps=1,
        save_steps=settings.save_every,
        save_total_limit=2,
        eval_strategy="steps" if best else "no",
        eval_steps=settings.save_every if best else None,
        load_best_model_at_end=best,
        metric_for_best_model="eval_loss" if best else None,
        seed=settings.seed,
        data_seed=settings.seed,
        use_cpu=device == "cpu",
        ddp_find_unused_parameters=False,
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
    )
    if device.startswith("cuda") and processes.size == 1:
        hold_to_one_device(arguments, device)
    return arguments


@dataclass(frozen=True)
class Fit:
    """What a training did. sequences: what a step takes `batch * accumulation` of; stories, unless packed."""

    examples: int
    held_out: int
    too_long: list[str]
    sequences: int
    steps: int
    best_step: int | None
    first_loss: float | None
    last_loss: float | None
    held_out_before: float | None
    held_out_after: float | None
    tokens: int
    seconds: float


def fit_adapter(
    loaded: tuple[Any, Any],
    examples: tuple[Sequence[TrainingExample], Sequence[TrainingExample]],
    out: Path,
    settings: TrainSettings,
    processes: Processes,
    on_step: OnStep | None,
) -> Fit:
    """Train an adapter of `loaded` (model and tokenizer) into `out`, on examples and held-out ones.

    Raises:
        UsageError: every example is too long, or the best checkpoint is wanted and nothing is held out.
        ModelError: it does not fit into memory.
    """
    import torch
    from transformers import set_seed

    (model, tokenizer), (learnt, measured) = loaded, examples
    set_seed(settings.seed)
    rows, too_long = encode(learnt, tokenizer, settings.max_length)
    others, _ = encode(measured, tokenizer, settings.max_length)
    if not rows:
        raise UsageError(f"Every example is longer than {settings.max_length} tokens.", hint="Raise --max-length.")
    if settings.best and not others:
        raise UsageError("The best checkpoint is that of the least held-out loss, and no story is held out.",
                         hint="Name records with --held-out, or leave --best out.")  # fmt: skip
    taken = pack(rows, settings.max_length) if settings.packing else rows
    adapted = _with_adapter(model, settings)
    collator = _collator(model, tokenizer)
    arguments = training_arguments(settings, out, processes, measured=bool(others))
    trainer = _trainer(adapted, arguments, (taken, others), collator, on_step, processes)
    started = time.perf_counter()
    try:
        # A new adapter changes nothing: this is the base model's loss, also where training goes on at a checkpoint.
        before = _loss(trainer) if others else None
        trainer.train(resume_from_checkpoint=_last_checkpoint(out))
        after = _loss(trainer) if others else None
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise ModelError(
            f"Training does not fit into {processes.device}'s memory; the last checkpoint in {str(out)!r} is kept.",
            hint="Lower --max-length or --batch, use --quantize nf4, or a smaller base model.",
        ) from error
    if processes.first:
        adapted.save_pretrained(str(out))
    state = trainer.state
    losses = [row["loss"] for row in state.log_history if "loss" in row] or [None]
    return Fit(
        examples=len(rows),
        held_out=len(others),
        too_long=too_long,
        sequences=len(taken),
        steps=state.global_step,
        best_step=state.best_global_step if arguments.load_best_model_at_end else None,
        first_loss=losses[0],
        last_loss=losses[-1],
        held_out_before=before,
        held_out_after=after,
        tokens=sum(len(row["input_ids"]) for row in rows),
        seconds=time.perf_counter() - started,
    )


def chunked_loss(hidden: Any, labels: Any, head: Any, items: Any = None) -> Any:
    """Return the cross-entropy of the next tokens, as transformers takes it, without the scores of all tokens at once.

    hidden: of shape (B, S, D), what the head reads. labels: (B, S), -100 where nothing is learnt: there no score is
    made. head: from D to the vocabulary. items: what the sum is divided by, else the number of labels. The scores of a
    part are made again on the way back.
    """
    from torch.nn.functional import cross_entropy
    from torch.utils.checkpoint import checkpoint

    def part(states: Any, targets: Any) -> Any:
        return cross_entropy(head(states).float(), targets, reduction="sum")

    wanted = labels[:, 1:].to(hidden.device)
    kept = wanted != _IGNORED
    states, targets = hidden[:, :-1][kept], wanted[kept]
    size = max(1, _LOGITS // head.weight.shape[0])
    total = states[:0].float().sum()  # of nothing at all, too, the way back leads through the model
    for at in range(0, len(targets), size):
        total = total + checkpoint(part, states[at : at + size], targets[at : at + size], use_reentrant=False)
    return total / (len(targets) if items is None else items)


def take_loss_in_parts(model: Any) -> None:
    """Patch a causal language model to compute its loss by `chunked_loss`, if its scores are its head's alone."""
    from transformers.modeling_outputs import CausalLMOutputWithPast

    head, text = model.get_output_embeddings(), model.config.get_text_config()
    if head is None or not hasattr(model, "model") or any(getattr(text, name, None) is not None for name in _SCALED):
        return
    whole = model.forward

    @functools.wraps(whole)
    def forward(*args: Any, **inputs: Any) -> Any:
        if args or inputs.get("labels") is None:
            return whole(*args, **inputs)
        labels, items = inputs.pop("labels"), inputs.pop("num_items_in_batch", None)
        hidden = model.model(**{**inputs, "return_dict": True}).last_hidden_state
        return CausalLMOutputWithPast(loss=chunked_loss(hidden, labels, head, items))

    model.forward = forward


def free_memory() -> None:
    """Give back what models that nobody names any more held."""
    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _with_adapter(model: Any, settings: TrainSettings) -> Any:
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    if settings.quantize:
        model = prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    take_loss_in_parts(model)
    # A cache would hide from the model's mask where a packed example ends, and nobody reads it.
    model.config.get_text_config().use_cache = False
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
    return adapted


def _collator(model: Any, tokenizer: Any) -> Collator:
    typed = "token_type_ids" in inspect.signature(model.forward).parameters
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    return Collator(pad, typed)


def _trainer(
    model: Any,
    arguments: Any,
    rows: tuple[list[dict[str, list[int]]], list[dict[str, list[int]]]],
    collator: Collator,
    on_step: OnStep | None,
    processes: Processes,
) -> Any:
    """Return the Trainer of these rows; an epoch that has too few for every process ends in blank ones."""
    from accelerate.data_loader import SeedableRandomSampler
    from torch.utils.data import Sampler
    from transformers import PrinterCallback, Trainer, TrainerCallback

    class Filled(Sampler[int]):
        """The rows in the order in which one process takes them, and blank ones behind."""

        def __init__(self, count: int) -> None:
            self.inner = SeedableRandomSampler(range(count), data_seed=arguments.data_seed)

        def __iter__(self) -> Iterator[int]:
            yield from self.inner
            yield from [len(self.inner)] * blanks

        def __len__(self) -> int:
            return len(self.inner) + blanks

        def set_epoch(self, epoch: int) -> None:
            self.inner.set_epoch(epoch)

    class Shared(Trainer):  # type: ignore[misc]
        def _get_train_sampler(self, train_dataset: Any = None) -> Any:
            return Filled(count) if blanks else super()._get_train_sampler(train_dataset)

    class StepReporter(TrainerCallback):  # type: ignore[misc]
        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
            if on_step is not None and processes.first and logs is not None and "loss" in logs:
                on_step(state.global_step, state.max_steps, logs["loss"])

        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            # The Trainer saves the last step without measuring it: it could then never be the best.
            if args.load_best_model_at_end and state.global_step >= state.max_steps:
                control.should_evaluate = control.should_save = True

    train, held_out = rows
    count, each = len(train), arguments.per_device_train_batch_size * processes.size
    blanks = -count % each if processes.size > 1 else 0
    if blanks:  # of such a row nothing is learnt
        train = [*train, {**train[0], "labels": [_IGNORED] * len(train[0]["labels"])}]
    trainer = Shared(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=held_out or None,
        data_collator=collator,
        callbacks=[StepReporter()],
    )
    trainer.remove_callback(PrinterCallback)  # it writes to standard output, which belongs to --json
    return trainer


def _loss(trainer: Any) -> float:
    return float(trainer.evaluate()["eval_loss"])


def _last_checkpoint(out: Path) -> str | None:
    """Return the last whole checkpoint, if there is one."""
    found = [path for path in (out / "checkpoints").glob("checkpoint-*") if (path / "trainer_state.json").is_file()]
    return str(max(found, key=lambda path: int(path.name.rpartition("-")[2]))) if found else None
