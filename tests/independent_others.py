"""The independent scorer's other numbers: contrastive pairs, and agreement with people. Plain loops, as beside it."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from independent_scorer import Independent, Key, percentiles, plain
from scipy import stats


def alignment(mine: Independent, people: Path) -> dict[str, Any]:
    """Localization and rank correlation with people's judgments, by judge."""
    judged = [json.loads(line) for line in people.read_text(encoding="utf-8").splitlines()]
    return {judge: _aligned(mine, judge, judged) for judge in mine.judges}


def _aligned(mine: Independent, judge: str, judged: list[dict[str, Any]]) -> dict[str, Any]:
    hits: dict[str, list[bool]] = defaultdict(list)
    pairs = []
    for row in judged:
        names = [name for name in mine.kept(row["method"], judge, "filtered") if name[0] == row["story_id"]]
        hits[row["story_id"]].append(_worst(mine, names, row["method"], judge) == row["failing"])
        means = mine.means(names, row["method"], judge)
        pairs += [(means["image"], row["human_score"])] if means else []
    own = sorted(hits)
    draws = np.random.default_rng(mine.seed).integers(0, len(own), (mine.resamples, len(own)))
    drawn = [[hit for place in line for hit in hits[own[place]]] for line in draws]
    every = [hit for story in own for hit in hits[story]]
    agree = [np.sign(round(one[0] - two[0], 12)) == np.sign(one[1] - two[1]) for one, two in combinations(pairs, 2)]
    return {
        "localization": {
            "n": len(every),
            "right": 100 * sum(every) / len(every),
            "chance": 100 / 6,
            "ci95": percentiles([sum(line) / len(line) for line in drawn]),
        },
        "human_score": {
            "n": len(pairs),
            "spearman": float(stats.spearmanr([round(one, 12) for one, _ in pairs], [two for _, two in pairs])[0]),
            "pairwise_agreement": sum(agree) / len(agree),
        },
    }


def _worst(mine: Independent, names: list[Key], method: str, judge: str) -> str | None:
    """The dimension with the one largest positive gap; None for a tie, no gap, or a single dimension."""
    gaps: dict[str, list[int]] = defaultdict(list)
    for name in names:
        cell = mine.cells[method, judge][name]
        gaps[mine.questions[name]["question_type"]].append(int(cell["text"]) - int(cell["image"]))
    means = {dimension: Fraction(sum(values), len(values)) for dimension, values in gaps.items()}
    top = max(means.values(), default=Fraction(0))
    first = [dimension for dimension, value in means.items() if value == top]
    return first[0] if len(means) > 1 and len(first) == 1 and top > 0 else None


def pair_scores(
    variants: Path, stories: Path, answers: Path, resamples: int, seed: int
) -> dict[str, dict[str, dict[str, Any]]]:
    """PairAcc and confusion (Eqs. 29 and 30) by method and judge, from the three files."""
    texts: dict[str, set[str]] = {}
    for line in stories.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        texts[record["story_id"]] = {
            plain(record["story_text"]),
            *(plain(item["scene_text"]) for item in record["scenes"]),
        }
    twins = [json.loads(line) for line in variants.read_text(encoding="utf-8").splitlines()]
    ids = {row["variant_id"]: row["base_story_id"] for row in twins if row["base_story_id"] in texts}
    kinds = {row["variant_id"]: row["change_type"] for row in twins}
    owners = sorted(set(ids.values()))
    draws = np.random.default_rng(seed).integers(0, len(owners), (resamples, len(owners)))

    def entry(hits: list[bool | None]) -> dict[str, Any]:
        return _pair_entry(hits, list(ids.values()), [kinds[name] for name in ids], owners, draws)

    last: dict[tuple[str, str, str], bool | None] = {}
    for row in map(json.loads, answers.read_text(encoding="utf-8").splitlines()):
        name = row["question_id"].removeprefix("pair:")
        if row["question_id"].startswith("pair:") and name in ids:
            chosen = plain(row["answer"]) in texts[ids[name]] if row["status"] == "ok" else None
            last[row["method"], row["judge"], name] = chosen
    found: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    judges = sorted({judge for _, judge, _ in last})
    for method in sorted({method for method, _, _ in last}):
        for judge in judges:
            hits = [last.get((method, judge, name)) for name in ids]
            found[method][judge] = entry(hits)
        votes = [[last.get((method, judge, name)) for judge in judges] for name in ids]
        if len(judges) > 1:
            found[method]["ensemble"] = entry([_vote(cast) for cast in votes])
    return found


def _vote(votes: list[bool | None]) -> bool | None:
    cast = [vote for vote in votes if vote is not None]
    return sum(cast) > len(cast) / 2 if cast and len(cast) >= len(votes) / 2 else None


def _pair_entry(
    hits: list[bool | None], story_of: list[str], kinds: list[str], owners: list[str], draws: Any
) -> dict[str, Any]:
    scored = [hit for hit in hits if hit is not None]
    rate = 100 * sum(scored) / len(scored) if scored else None
    own: dict[str, list[bool]] = defaultdict(list)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for hit, story, kind in zip(hits, story_of, kinds, strict=True):
        if hit is not None:
            own[story].append(hit)
            by_kind[kind].append(hit)
    drawn = [[hit for place in row for hit in own[owners[place]]] for row in draws]
    return {
        "n": len(scored),
        "n_unscored": len(hits) - len(scored),
        "pair_accuracy": rate,
        "confusion": None if rate is None else 100 - rate,
        "ci95": percentiles([sum(row) / len(row) for row in drawn if row]),
        "by_change_type": {kind: 100 * sum(values) / len(values) for kind, values in by_kind.items()},
    }
