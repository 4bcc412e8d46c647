"""Logs of inspect_ai from a judged folder: one for each half, judge and board, so that what steered is never beside
what is reported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from katha.app.exports.archives import JudgedFolder, JudgedQuestions
from katha.app.exports.board import ExportOptions
from katha.config import katha_version
from katha.jsonio import digest
from katha.models.checkpoints import need
from katha.schema import Answer
from katha.schema.scores import JudgeScores

SCORER = "recovered"
"""What the verdict on an answer is called in a log."""


def write_inspect(folder: JudgedFolder, target: Path, options: ExportOptions) -> None:
    """Write a folder of `.eval` files, for `inspect view --log-dir` and inspect's data frames.

    A sample is one question under one condition. Its score is C or I by katha's matching; what is no answer is unscored
    with its status as the reason. The metrics are those of `scores.json` for this judge and board, in percentage points
    (`text`, `image`, `stg`, `none`, `gain_image` on the board's own valid questions); the log of steering answers has
    the share right alone.

    Raises:
        MissingExtraError: inspect_ai is not installed.
    """
    log = need("inspect_ai.log", "The export 'inspect'", "inspect")
    target.mkdir()
    for part in folder.parts():
        log.write_eval_log(_log(folder, part), str(target / f"{part.name}.eval"))


def _log(folder: JudgedFolder, part: JudgedQuestions) -> Any:
    """Return one `EvalLog`; the same folder gives the same ids."""
    log = need("inspect_ai.log", "The export 'inspect'", "inspect")
    samples = [_sample(folder, part, row) for row in sorted(part.rows, key=_name)]
    values = [sample.scores[SCORER].value for sample in samples]
    scored = [value for value in values if isinstance(value, str)]
    told = folder.numbers(part)
    metrics = _reported(told) if told is not None else _share(scored)
    score = log.EvalScore(
        name=SCORER,
        scorer=SCORER,
        scored_samples=len(scored),
        unscored_samples=len(samples) - len(scored),
        metrics={name: log.EvalMetric(name=name, value=value) for name, value in metrics.items()},
    )
    ids = [sample.id for sample in samples]
    identity = digest([folder.name, part.name, ids])
    spec = log.EvalSpec(
        eval_id=identity[:22],
        run_id=digest([folder.name, folder.created])[:22],
        task_id=digest(["task", part.half, part.method])[:22],
        created=folder.created,
        task="katha/recoverability",
        task_args={"half": part.half, "board": part.method},
        tags=[part.half],
        dataset=log.EvalDataset(name=folder.name, samples=len(samples), sample_ids=ids),
        model=part.judge,
        config=log.EvalConfig(),
        packages={"katha": katha_version()},
        metadata={"half": part.half, "board": part.method, "matching": folder.scores.matching},
    )
    return log.EvalLog(
        status="success",
        eval=spec,
        results=log.EvalResults(total_samples=len(samples), completed_samples=len(samples), scores=[score]),
        stats=log.EvalStats(started_at=folder.created, completed_at=folder.created),
        samples=samples,
    )


def _name(row: Answer) -> str:
    return "/".join((row.story_id, row.question_id, row.condition, row.method or ""))


def _sample(folder: JudgedFolder, part: JudgedQuestions, row: Answer) -> Any:
    """Return one `EvalSample`: the question, what was answered and what came of it; pictures by their packet's hash."""
    log = need("inspect_ai.log", "The export 'inspect'", "inspect")
    model = need("inspect_ai.model", "The export 'inspect'", "inspect")
    question = folder.questions[row.story_id, row.question_id]
    said = row.raw if row.raw is not None else row.answer or ""
    kept = row.model_dump(mode="json", exclude={"raw", "usage", "status", "error", "answer"})
    return log.EvalSample(
        id=_name(row) if part.method is None else f"{row.story_id}/{row.question_id}/{row.condition}",
        epoch=1,
        input=question.question,
        choices=question.options or None,
        target=list(dict.fromkeys([question.gold_answer, *question.accepted_answers])),
        messages=[model.ChatMessageUser(content=question.question), model.ChatMessageAssistant(content=said)],
        output=model.ModelOutput.from_content(part.judge, said),
        scores={SCORER: _score(folder, row)},
        metadata={
            **kept,
            "half": part.half,
            "board": part.method,
            "dimension": question.question_type,
            "transition": list(question.target_transition) if question.target_transition else None,
        },
    )


def _score(folder: JudgedFolder, row: Answer) -> Any:
    scorer = need("inspect_ai.scorer", "The export 'inspect'", "inspect")
    right = folder.right(row)
    if right is None:
        return scorer.Score.unscored(reason=row.status, explanation=row.error)
    return scorer.Score(value=scorer.CORRECT if right else scorer.INCORRECT, answer=row.answer)


def _reported(scores: JudgeScores) -> Mapping[str, float]:
    own = scores.filtered
    named = {
        "text": own.text,
        "image": own.image,
        "stg": own.stg,
        "text_image": own.text_image,
        "latent_gap": own.latent_gap,
        "none": own.none,
        "gain_image": own.gain_image,
        "gain_text": own.gain_text,
        "guessable": scores.guessable,
        "image_raw": scores.raw.image,
        "stg_raw": scores.raw.stg,
        "ambiguity_rate": scores.ambiguity_rate,
        "n_valid": float(scores.n_valid),
        "n_unscored": float(scores.n_unscored),
    }
    return {name: value for name, value in named.items() if value is not None}


def _share(values: list[str]) -> Mapping[str, float]:
    """Return the share of right answers in percentage points: all that answers about single boards amount to."""
    return {"right": 100.0 * values.count("C") / len(values)} if values else {}
