"""The model card of an adapter: what it was made of, how, and how well it does on stories that it has not seen."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from katha.models.source import ModelSource
from katha.planners.training.examples import LEFT_OUT
from katha.planners.training.settings import TrainSettings

if TYPE_CHECKING:
    from katha.planners.training.train import Report

__all__ = ["model_card"]


def model_card(source: ModelSource, settings: TrainSettings, report: Report) -> str:
    """The card as Markdown; a number that was not measured is a dash."""
    rows = [
        ("Base model", f"`{source.name}` ({source.architecture}, revision `{source.revision}`)"),
        (
            "Method",
            f"LoRA, rank {settings.rank}, alpha {settings.alpha}, dropout {settings.dropout}, all linear layers",
        ),
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
