"""Scores again, the slow way: plain loops over `story.jsonl` and `answers.jsonl`, none of katha's own scoring.

It knows the case that an embedded run makes: one judge, options chosen literally.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONDITIONS = ("text", "image", "text+image")


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _plain(text: str) -> str:
    """Lower case, without punctuation and extra blanks."""
    return " ".join("".join(mark if mark.isalnum() else " " for mark in text.lower()).split())


def _right(row: dict[str, Any], question: dict[str, Any]) -> bool:
    if row["status"] != "ok" or row["answer"] is None:
        return False
    accepted = {_plain(text) for text in (question["gold_answer"], *question["accepted_answers"])}
    if _plain(row["answer"]) not in accepted:
        return False
    if row["condition"] == "text+image":
        return row.get("image_support") not in ("contradicted", "ambiguous")
    return row.get("evidence_status") not in ("unclear", "omitted", "contradicted")


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _block(questions: list[dict[str, Any]], right: dict[tuple[str, str], bool]) -> dict[str, Any]:
    """The mean over dimensions of the share of right answers, in points, of each condition."""
    by_dimension: dict[str, list[dict[str, Any]]] = {}
    for question in questions:
        by_dimension.setdefault(question["question_type"], []).append(question)
    shares = {
        condition: _mean(
            [
                100 * sum(right[item["question_id"], condition] for item in members) / len(members)
                for members in by_dimension.values()
            ]
        )
        for condition in CONDITIONS
    }
    text, image = shares["text"], shares["image"]
    gap = None if text is None or image is None else text - image
    return {"n": len(questions), "text": text, "image": image, "text_image": shares["text+image"], "stg": gap}


def slow_scores(folder: Path) -> dict[str, dict[str, Any]]:
    """`raw` and `filtered` of each method of the run in `folder`, from its answers alone."""
    (story,) = _rows(folder / "story.jsonl")
    questions = [item for item in story["recoverability_questions"] if item["role"] == "reporting"]
    rows = [row for row in _rows(folder / "answers.jsonl") if row["role"] == "reporting"]
    found: dict[str, dict[str, Any]] = {}
    for method in sorted({row["method"] for row in rows if row["method"] is not None}):
        right: dict[tuple[str, str], bool] = {}
        for row in rows:
            question = next(item for item in questions if item["question_id"] == row["question_id"])
            if row["method"] in (None, method):
                right[row["question_id"], row["condition"]] = _right(row, question)
        scored = [item for item in questions if all((item["question_id"], where) in right for where in CONDITIONS)]
        valid = [item for item in scored if right[item["question_id"], "text+image"]]
        found[method] = {"raw": _block(scored, right), "filtered": _block(valid, right)}
    return found
