"""`katha bench questions` and `katha bench variants`: made by rule or by a model, checked, the rejected ones listed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from katha.cli import options

if TYPE_CHECKING:
    from katha.protocols import Judge
    from katha.schema import Question, StoryRecord

__all__ = ["questions", "variants"]

Stories = Annotated[Path, typer.Argument(help="Records (.jsonl or .json).")]
By = Annotated[str, typer.Option("--by", help="rule, or a model: anthropic:MODEL, openai:MODEL, local:PATH.")]
JudgeName = Annotated[str | None, typer.Option("--judge", help="Also ask this judge, from the text alone.")]
Url = Annotated[str | None, typer.Option("--base-url", help="Where a compatible server is called.")]


def questions(
    stories: Stories,
    out: Annotated[Path, typer.Option("--out", help="The stories with their questions, as JSON Lines.")],
    by: By = "rule",
    planner: Annotated[str, typer.Option("--planner", help="Who reads transitions where a record has none.")] = "rule",
    judge: JudgeName = None,
    base_url: Url = None,
    as_json: options.Json = False,
) -> None:
    """Write recoverability questions for STORIES from their transitions; what fails a check is listed, not kept."""
    from katha.eval_bridge.building import check_questions
    from katha.stories import iter_records

    reader = _judge(judge, base_url)
    made: list[StoryRecord] = []
    rejected: list[dict[str, str]] = []
    for record in iter_records(stories):
        built = check_questions(_asked(record, by, planner, base_url), record.story_text, reader)
        made.append(record.model_copy(update={"recoverability_questions": built.kept}))
        rejected += [{"story": record.story_id, **vars(item)} for item in built.rejected]
    _write(out, (record.model_dump_json() for record in made))
    kept = sum(len(record.recoverability_questions) for record in made)
    _tell(kept, rejected, "questions", out, as_json)


def variants(
    stories: Stories,
    out: Annotated[Path, typer.Option("--out", help="The variants, as `contrastive_variants.jsonl`.")],
    by: By = "rule",
    judge: JudgeName = None,
    base_url: Url = None,
    as_json: options.Json = False,
) -> None:
    """Write two contrastive variants of each story with scenes; what fails a check is listed, not kept."""
    from katha.eval_bridge.building import check_variants, rule_variants, write_variants
    from katha.models import make_model
    from katha.stories import iter_records

    reader = _judge(judge, base_url)
    model = None if by == "rule" else make_model(by, base_url=base_url)
    kept: list[str] = []
    rejected: list[dict[str, str]] = []
    for record in iter_records(stories):
        made = rule_variants(record) if model is None else write_variants(model, record)
        built = check_variants(made, record, reader)
        kept += [variant.model_dump_json() for variant in built.kept]
        rejected += [{"story": record.story_id, **vars(item)} for item in built.rejected]
    _write(out, kept)
    _tell(len(kept), rejected, "variants", out, as_json)


def _asked(record: StoryRecord, by: str, planner: str, base_url: str | None) -> list[Question]:
    from katha.agents import make_plan
    from katha.config import RunConfig
    from katha.eval_bridge import build_questions
    from katha.eval_bridge.building import write_questions
    from katha.models import make_model

    config = RunConfig(planner="oracle" if record.transitions else planner)
    plan = make_plan(record, config.model_copy(update={"panels": len(record.scenes) or config.panels}))
    if by == "rule":
        return build_questions(record.model_copy(update={"recoverability_questions": []}), plan)
    return write_questions(make_model(by, base_url=base_url), record, plan.transitions)


def _judge(name: str | None, base_url: str | None) -> Judge | None:
    from katha.eval_bridge.judges.making import make_judges

    # A base URL is also the model's: a judge that calls no server does without it.
    takes = base_url if name is not None and name.startswith(("openai:", "anthropic:")) else None
    return make_judges([name], base_url=takes)[0][1] if name is not None else None


def _write(out: Path, lines: Iterable[str]) -> None:
    from katha.jsonio import write_bytes_atomic

    write_bytes_atomic(out, "".join(f"{line}\n" for line in lines).encode("utf-8"))


def _tell(kept: int, rejected: list[dict[str, str]], what: str, out: Path, as_json: bool) -> None:
    found: dict[str, Any] = {"out": str(out), "kept": kept, "rejected": rejected}
    if as_json:
        typer.echo(json.dumps(found, ensure_ascii=False))
        return
    for item in rejected:
        typer.echo(f"Rejected {item['item']} ({item['text']}): {item['reason']}")
    typer.echo(f"{kept} {what} kept, {len(rejected)} rejected: {out}")
