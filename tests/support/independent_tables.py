"""A second computation of what holds a gap up (docs/tables.md, section 13), slow and on its own.

Plain loops over the outcomes of `independent_scorer`; nothing of katha is imported. NumPy draws, SciPy correlates.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from independent_scorer import CONDITIONS, DIMENSIONS, Independent, Key, correlation_span, gap_span, percentiles
from scipy import stats

BLOCKS = ("raw", "filtered", "common_valid")
METHODS = ("flux", "ideal", "none", "sdxl")
JUDGES = ("gemini", "qwen")
SOURCES = ("aesop", "panchatantra", None)


def write_archive(folder: Path, *, stories: int = 14, seed: int = 3, methods: tuple[str, ...] = METHODS) -> Path:
    """Stories of three sources and two types, four methods of different worth, two judges that fail at times."""
    draw = random.Random(seed)
    records, rows = [], []
    for number in range(stories):
        story, questions = f"s{number:02d}", []
        for at in range(draw.randint(2, 7)):
            gold = f"answer {at}"
            questions.append(
                {
                    "question_id": f"q{at}",
                    "question_type": draw.choice(DIMENSIONS),
                    "question": "What?",
                    "gold_answer": gold,
                    "accepted_answers": [gold],
                    "role": "reporting",
                }
            )
            for judge in JUDGES:
                for method in (None, *methods):
                    for condition in CONDITIONS if method else ("text",):
                        if method and condition == "text":
                            continue
                        worth = 0.85 if condition != "image" else 0.3 + 0.15 * METHODS.index(method or "none")
                        right = draw.random() < worth
                        status = "ok" if draw.random() < 0.95 else "refused"
                        rows.append(
                            {
                                "method": method,
                                "judge": judge,
                                "story_id": story,
                                "question_id": f"q{at}",
                                "condition": condition,
                                "status": status,
                                "answer": gold if right else "else",
                            }
                        )
        source = SOURCES[number % 3]
        records.append(
            {
                "story_id": story,
                "story_text": "A story.",
                "narrative_type": ("symbolic", "action")[number % 2],
                "provenance": {"source_dataset": source} if source else {},
                "recoverability_questions": questions,
            }
        )
    for name, items in (("stories.jsonl", records), ("answers.jsonl", rows)):
        (folder / name).write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return folder


def gap(found: Independent, names: Sequence[Key], method: str, judge: str) -> float | None:
    means = found.means(list(names), method, judge)
    return None if means is None else means["text"] - means["image"]


def spearman(first: Sequence[float | None], second: Sequence[float | None]) -> float | None:
    if None in first or None in second:
        return None
    one, two = ([round(value, 12) for value in side if value is not None] for side in (first, second))
    if len(set(one)) < 2 or len(set(two)) < 2:
        return None
    return float(stats.spearmanr(one, two).statistic)


def rank_correlation(found: Independent, one: tuple[str, str], two: tuple[str, str]) -> dict[str, Any]:
    """Two rankings of the methods, each by a judge and a block of questions."""

    def ranking(judge: str, block: str) -> list[float | None]:
        return [gap(found, found.kept(method, judge, block), method, judge) for method in found.methods]

    def drawn(judge: str, block: str) -> list[list[float | None]]:
        columns = [
            [None if row is None else row["text"] - row["image"] for row in found.resampled(method, judge, block)]
            for method in found.methods
        ]
        return [list(row) for row in zip(*columns, strict=True)]

    rhos = [spearman(a, b) for a, b in zip(drawn(*one), drawn(*two), strict=True)]
    kept = [rho for rho in rhos if rho is not None]
    span = percentiles(kept)
    return {
        "n": len(found.methods),
        "rho": spearman(ranking(*one), ranking(*two)),
        "ci95": None if span is None else [value / 100 for value in span],
    }


def board_correlation(found: Independent, a: str, b: str) -> dict[str, Any]:
    pairs = []
    for method in found.methods:
        for story in found.stories:
            both = [
                gap(found, [name for name in found.kept(method, judge, "filtered") if name[0] == story], method, judge)
                for judge in (a, b)
            ]
            if None not in both:
                pairs.append(both)
    return {"n": len(pairs), "rho": spearman([pair[0] for pair in pairs], [pair[1] for pair in pairs])}


def half_data(found: Independent, judge: str, halves: int) -> dict[str, Any]:
    numbers = np.random.default_rng(found.seed).random((halves, len(found.stories)))
    kept = {method: found.kept(method, judge, "common_valid") for method in found.methods}
    whole = [gap(found, kept[method], method, judge) for method in found.methods]
    size = len(found.stories) // 2
    rhos = []
    for row in numbers:
        inside = {story for _, story in sorted(zip(row, found.stories, strict=True))[:size]}
        own = [
            gap(found, [name for name in kept[method] if name[0] in inside], method, judge) for method in found.methods
        ]
        rho = spearman(own, whole)
        rhos += [] if rho is None else [rho]
    span = percentiles(rhos)
    return {
        "n_stories": size,
        "rho": sum(rhos) / len(rhos),
        "ci95": None if span is None else [value / 100 for value in span],
    }


def group(found: Independent, judge: str, method: str, stories: set[str]) -> dict[str, Any]:
    own = {block: [name for name in found.kept(method, judge, block) if name[0] in stories] for block in BLOCKS}
    gaps = {block: gap(found, names, method, judge) for block, names in own.items()}
    means = found.means(own["common_valid"], method, judge)
    left = found.without_each(own["common_valid"], method, judge)
    ci95 = gap_span(means, left, "text", "image") if means else None
    scored, valid = len(own["raw"]), len(own["filtered"])
    return {
        "n_stories": len(stories),
        "n_questions": scored,
        "stg": {block: None if value is None else 100 * value for block, value in gaps.items()},
        "ci95": ci95,
        "ambiguity_rate": 100 * (scored - valid) / scored if scored else None,
    }


def reliability(found: Independent, judge: str, method: str, divisions: int) -> dict[str, Any]:
    questions = sorted(found.questions)
    numbers = np.random.default_rng(found.seed).random((divisions, len(questions)))
    valid = set(found.kept(method, judge, "filtered"))
    boards = [story for story in found.stories if sum(name[0] == story for name in valid) > 1]
    halves: list[list[tuple[float, float]]] = []
    for row in numbers:
        key = dict(zip(questions, row, strict=True))
        pairs = []
        for story in boards:
            own = sorted((name for name in valid if name[0] == story), key=lambda name: key[name])
            middle = len(own) // 2
            one, two = (gap(found, part, method, judge) for part in (own[:middle], own[middle:]))
            assert one is not None
            assert two is not None
            pairs.append((one, two))
        halves.append(pairs)

    def stepped(chosen: Sequence[int]) -> float | None:
        rs = []
        for pairs in halves:
            one, two = (np.array([pairs[at][side] for at in chosen]) for side in (0, 1))
            if one.std() > 1e-6 and two.std() > 1e-6:
                rs.append(float(np.corrcoef(one, two)[0, 1]))
        if not rs:
            return None
        mean = sum(rs) / len(rs)
        return 2 * mean / (1 + mean) if mean > 0 else mean

    everyone = list(range(len(boards)))
    value, left = stepped(everyone), [stepped([at for at in everyone if at != out]) for out in everyone]
    return {"n_boards": len(boards), "value": value, "ci95": correlation_span(value, left)}


def ceiling(found: Independent, judge: str, method: str) -> dict[str, Any]:
    cells = found.cells[method, judge]
    scored, valid = (found.kept(method, judge, block) for block in ("raw", "filtered"))
    means = found.means(valid, method, judge)
    assert means is not None
    apart = [name for name in valid if not cells[name]["text"] and not cells[name]["image"]]
    rest = gap(found, [name for name in valid if name not in apart], method, judge)
    patterns: dict[tuple[bool, ...], int] = {}
    for name in scored:
        key = tuple(cells[name][condition] for condition in CONDITIONS)
        patterns[key] = patterns.get(key, 0) + 1
    return {
        "n_scored": len(scored),
        "n_valid": len(valid),
        "text": 100 * means["text"],
        "image": 100 * means["image"],
        "reached": 100 * means["image"] / means["text"],
        "only_together": len(apart),
        "stg": 100 * (means["text"] - means["image"]),
        "stg_without": None if rest is None else 100 * rest,
        "patterns": patterns,
    }


def pairs_of(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(combinations(names, 2))
