"""A second scorer, slow and on its own: from the two files to scores.json, by FORMATS and the paper's equations.

Plain loops over dictionaries; nothing of katha is imported. NumPy draws the resamples, SciPy ranks and has
Student's t. Contrastive pairs and agreement with people come last.
"""

from __future__ import annotations

import json
import math
import string
from collections import defaultdict
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

CONDITIONS = ("text", "image", "text+image")
DIMENSIONS = ("action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral")
LATENT = ("causal", "emotional", "consequence", "moral")
MORALS = (
    *("compassion", "courage", "generosity", "gratitude", "honesty", "humility", "kindness", "patience"),
    *("perseverance", "responsibility", "self_control", "wisdom"),
)
Key = tuple[str, str]
Cell = dict[str, bool]


def plain(text: str) -> str:
    kept = "".join(char for char in text.lower() if char not in string.punctuation)
    return " ".join(kept.split())


def right(row: dict[str, Any], question: dict[str, Any]) -> bool | None:
    if row["status"] != "ok" or row.get("answer") is None:
        return None
    accepted = {plain(text) for text in [question["gold_answer"], *question.get("accepted_answers", [])]}
    said = plain(row["answer"])
    if said not in accepted:
        return False
    if said in ("unclear", "ambiguous"):
        return True
    if row["condition"] == "text+image":
        return row.get("image_support") not in ("contradicted", "ambiguous")
    return row.get("evidence_status") not in ("unclear", "omitted", "contradicted")


class Independent:
    """Everything in one archive, scored slowly. `scores` is the part of scores.json that is numbers."""

    def __init__(
        self, stories: Path, answers: Path, selection: str, resamples: int, seed: int, ensemble: Path | None = None
    ) -> None:
        self.resamples, self.seed, self.source = resamples, seed, stories
        self.fitted = json.loads(ensemble.read_text()) if ensemble is not None else None
        self.questions: dict[Key, dict[str, Any]] = {}
        self.families: dict[str, str] = {}
        for line in stories.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if source := record.get("provenance", {}).get("source_dataset"):
                self.families[record["story_id"]] = source
            for question in record["recoverability_questions"]:
                if selection == "all" or question.get("role") in (selection, None):
                    self.questions[record["story_id"], question["question_id"]] = question
        rows: dict[tuple[Any, ...], dict[str, Any]] = {}
        for line in answers.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if (row["story_id"], row["question_id"]) in self.questions:
                rows[row["method"], row["judge"], row["story_id"], row["question_id"], row["condition"]] = row
        self.stories = sorted({story for story, _ in self.questions})
        self.methods = sorted({key[0] for key in rows if key[0] is not None})
        self.people = sorted({key[1] for key in rows})
        self.judges = [*self.people, "ensemble"] if len(self.people) > 1 else list(self.people)
        self.judges += ["ensemble-calibrated"] if self.fitted else []
        self.rows = rows
        self.cells = {
            (method, judge): {name: self._cell(rows, method, judge, name) for name in self.questions}
            for method in self.methods
            for judge in self.judges
        }
        self.draws = np.random.default_rng(seed).integers(0, len(self.stories), (resamples, len(self.stories)))

    def _cell(self, rows: dict[tuple[Any, ...], dict[str, Any]], method: str, judge: str, name: Key) -> Cell:
        cell = {}
        for condition in CONDITIONS:
            if judge == "ensemble-calibrated":
                verdict = self._weighed(method, name, condition)
            elif judge != "ensemble":
                row = self._row(method, judge, name, condition)
                verdict = right(row, self.questions[name]) if row is not None else None
            else:
                votes = [self._cell(rows, method, person, name).get(condition) for person in self.people]
                cast = [vote for vote in votes if vote is not None]
                verdict = sum(cast) > len(cast) / 2 if cast and len(cast) >= len(votes) / 2 else None
            if verdict is not None:
                cell[condition] = verdict
        return cell

    def _row(self, method: str, judge: str, name: Key, condition: str) -> dict[str, Any] | None:
        """The method's own row, else for text the one that holds for every method."""
        row = self.rows.get((method, judge, *name, condition))
        return self.rows.get((None, judge, *name, condition)) if row is None and condition == "text" else row

    def _weighed(self, method: str, name: Key, condition: str) -> bool | None:
        """The fitted ensemble: each vote counts as its stated confidence, with the sign of its verdict."""
        assert self.fitted is not None
        total, cast = self.fitted["intercept"], 0
        for judge, weight in zip(self.fitted["judges"], self.fitted["weights"], strict=True):
            row = self._row(method, judge, name, condition)
            vote = right(row, self.questions[name]) if row is not None else None
            if row is not None and vote is not None:
                size = {"low": 1 / 6, "medium": 1 / 2, "high": 5 / 6}.get(row.get("confidence"), 1 / 2)
                total, cast = total + weight * (size if vote else -size), cast + 1
        if not cast or 2 * cast < len(self.fitted["judges"]):
            return None
        return bool(self.fitted["slope"] * total + self.fitted["offset"] > 0)

    def left_out(self, method: str) -> set[str]:
        """Stories without a row about this method's images."""
        there = {key[2] for key in self.rows if key[0] == method and key[4] != "text"}
        return set(self.stories) - there

    def guess(self, judge: str, name: Key) -> bool | None:
        """What one judge, or most of them, made of a question without any evidence."""
        if judge.startswith("ensemble"):
            cast = [vote for person in self.people if (vote := self.guess(person, name)) is not None]
            return sum(cast) > len(cast) / 2 if cast and len(cast) >= len(self.people) / 2 else None
        row = self.rows.get((None, judge, *name, "none"))
        return right(row, self.questions[name]) if row is not None else None

    @property
    def guessed(self) -> bool:
        return any(self.guess(judge, name) is not None for judge in self.people for name in self.questions)

    def kept(self, method: str, judge: str, block: str) -> list[Key]:
        if block == "unguessed":
            return [name for name in self.kept(method, judge, "common_valid") if self.guess(judge, name) is False]
        scored = [name for name, cell in self.cells[method, judge].items() if len(cell) == 3]
        if block == "raw":
            return scored
        methods = self.methods if block == "common_valid" else [method]
        everywhere = [self.cells[other, judge] for other in methods]
        return [
            name
            for name in self.questions
            if all(cells[name].get("text+image") and len(cells[name]) == 3 for cells in everywhere)
        ]

    def means(self, names: list[Key], method: str, judge: str) -> dict[str, float] | None:
        per: dict[str, list[Cell]] = defaultdict(list)
        for name in names:
            per[self.questions[name]["question_type"]].append(self.cells[method, judge][name])
        if not per:
            return None
        return {
            condition: sum(sum(cell[condition] for cell in cells) / len(cells) for cells in per.values()) / len(per)
            for condition in CONDITIONS
        } | self._guess_mean(names, judge)

    def _guess_mean(self, names: list[Key], judge: str) -> dict[str, float]:
        per: dict[str, list[bool]] = defaultdict(list)
        for name in names:
            per[self.questions[name]["question_type"]].append(bool(self.guess(judge, name)))
        return {"none": sum(sum(own) / len(own) for own in per.values()) / len(per)}

    def guesses(self, method: str, judge: str) -> dict[str, Any]:
        """Which scored questions were right without any evidence."""
        scored = self.kept(method, judge, "raw")
        names = [name for name in scored if self.guess(judge, name) is not None]
        shares = {
            dimension: self._share(
                [name for name in names if self.questions[name]["question_type"] == dimension], judge
            )
            for dimension in DIMENSIONS
        }
        told = {"n": len(names), "n_unscored": len(scored) - len(names), "by_dimension": shares}
        return {
            "guessable": self._share(names, judge)["none"],
            "guesses": told | {"by_family": self._by_family(names, judge)},
        }

    def _share(self, names: list[Key], judge: str) -> dict[str, Any]:
        hits = sum(bool(self.guess(judge, name)) for name in names)
        return {"n": len(names), "none": 100 * hits / len(names) if names else None}

    def gain(self, method: str, judge: str, block: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """What evidence adds to guesses on those of a block's questions that were asked without, and the intervals."""
        names = [name for name in self.kept(method, judge, block) if self.guess(judge, name) is not None]
        means = self.means(names, method, judge)
        if means is None:
            return {}, {}
        numbers = {"none": 100 * means["none"]}
        numbers |= {f"gain_{name}": 100 * (means[name] - means["none"]) for name in ("image", "text")}
        left = self.without_each(names, method, judge)
        spans: dict[str, Any] = {"none": share_span(means["none"], [item["none"] for item in left])}
        for name in ("image", "text"):
            spans[f"gain_{name}"] = gap_span(means, left, name, "none")
        return numbers, {name: span for name, span in spans.items() if span is not None}

    def without_each(self, names: list[Key], method: str, judge: str) -> list[dict[str, float]]:
        """The averages with each story that has a question left out in turn."""
        found = [
            self.means([name for name in names if name[0] != story], method, judge)
            for story in sorted({name[0] for name in names})
        ]
        return [item for item in found if item is not None]

    def _by_family(self, names: list[Key], judge: str) -> dict[str, Any]:
        return {
            family: self._share([name for name in names if self.families.get(name[0]) == family], judge)
            for family in set(self.families.values())
        }

    def resampled(self, method: str, judge: str, block: str) -> list[dict[str, float] | None]:
        owned: dict[str, list[Key]] = defaultdict(list)
        for name in self.kept(method, judge, block):
            owned[name[0]].append(name)
        return [
            self.means([name for place in row for name in owned[self.stories[place]]], method, judge)
            for row in self.draws
        ]

    def hidden(self, method: str, judge: str) -> bool:
        """Whether the judge cannot measure the method: docs/scores.md, section 6, measurability."""
        scored, valid = self.kept(method, judge, "raw"), self.kept(method, judge, "filtered")
        if not scored:
            return False
        stories = {name[0] for name in scored}
        if len(valid) < min(2, len(scored)) or len(valid) < 0.4 * len(scored):
            return True
        if len({name[0] for name in valid}) < 6 <= len(stories):
            return True
        above = [(name[0], self.cells[method, judge][name]["text"] - self.chance(name)) for name in scored]
        if not _clear(above, 0.1):
            return True
        asked = [name for name in scored if self.guess(judge, name) is not None]
        gains = [
            (name[0], float(self.cells[method, judge][name]["text"]) - bool(self.guess(judge, name))) for name in asked
        ]
        return bool(gains) and not _clear(gains, 0.0, signed=True)

    def chance(self, name: Key) -> float:
        offered = [text for text in self.questions[name].get("options") or [] if text != "Unclear"]
        return 1 / len(offered) if offered else 0.0

    def thin(self, method: str, judge: str, block: str) -> bool:
        held = {name[0] for name in self.kept(method, judge, block)}
        return 0 < len(held) < 6 <= len(self.stories)

    def block(self, method: str, judge: str, block: str) -> dict[str, Any]:
        """One block; without what cannot be had where the judge cannot measure."""
        found = self._block(method, judge, block)
        if not self.hidden(method, judge) and not self.thin(method, judge, block):
            return found
        raw = block == "raw"
        gone = ["stg", "latent_gap", "by_story", *([] if raw else ["text", "image", "text_image"])]
        found |= dict.fromkeys(gone) | {"inspect": False}
        found["ci95"] = {**found["ci95"], "stg": None} if raw else dict.fromkeys(("text", "image", "stg"))
        for entry in found["dimensions"].values():
            entry.update(dict.fromkeys(["gap", *([] if raw else ["text", "image"])]))
        for name in () if raw else ("none", "gain_image", "gain_text"):
            found.pop(name, None)
        return found

    def _block(self, method: str, judge: str, block: str) -> dict[str, Any]:
        names = self.kept(method, judge, block)
        means = self.means(names, method, judge)
        dimensions = {}
        for dimension in DIMENSIONS:
            own = [
                self.cells[method, judge][name] for name in names if self.questions[name]["question_type"] == dimension
            ]
            entry: dict[str, Any] = {"n": len(own), "text": None, "image": None, "gap": None}
            if own:
                text, image = (100 * sum(cell[c] for cell in own) / len(own) for c in ("text", "image"))
                entry = {"n": len(own), "text": text, "image": image, "gap": text - image}
            dimensions[dimension] = entry
        gaps = [dimensions[name]["gap"] for name in LATENT if dimensions[name]["n"]]
        ci95: dict[str, Any] = {"text": None, "image": None, "stg": None}
        if means is not None:
            left = self.without_each(names, method, judge)
            ci95["text"] = share_span(means["text"], [item["text"] for item in left])
            ci95["image"] = share_span(means["image"], [item["image"] for item in left])
            ci95["stg"] = gap_span(means, left, "text", "image")
        gain, spans = self.gain(method, judge, block) if self.guessed else ({}, {})
        return gain | {
            "n": len(names),
            "text": 100 * means["text"] if means else None,
            "image": 100 * means["image"] if means else None,
            "text_image": 100 * means["text+image"] if means else None,
            "stg": 100 * (means["text"] - means["image"]) if means else None,
            "ci95": ci95 | spans,
            "dimensions": dimensions,
            "latent_gap": sum(gaps) / len(gaps) if gaps else None,
            "by_story": self.by_story(names, method, judge),
            "thin": [dimension for dimension in DIMENSIONS if dimensions[dimension]["n"] in (1, 2)],
            "inspect": means is not None and means["text"] - means["image"] < -1e-11,
        }

    def by_story(self, names: list[Key], method: str, judge: str) -> dict[str, Any]:
        """The macro average over stories: each story's own average over its dimensions, all stories alike."""
        own = [
            self.means([name for name in names if name[0] == story], method, judge)
            for story in sorted({name[0] for name in names})
        ]
        if not own:
            return {"n_stories": 0, "text": None, "image": None, "stg": None}
        text, image = (100 * sum(item[c] for item in own if item) / len(own) for c in ("text", "image"))
        return {"n_stories": len(own), "text": text, "image": image, "stg": text - image}

    def moral_target(self, method: str, judge: str) -> dict[str, Any]:
        labels = {plain(label) for label in MORALS}
        names = [
            name
            for name in self.kept(method, judge, "filtered")
            if self.questions[name]["question_type"] == "moral" and plain(self.questions[name]["gold_answer"]) in labels
        ]
        entry: dict[str, Any] = {"text": None, "image": None, "gap": None, "chance": 100 / 12, "majority": None}
        if names:
            offered = [self.questions[name].get("options") for name in names]
            rates = [100 / sum(text != "Unclear" for text in texts) if texts else 100 / 12 for texts in offered]
            entry["chance"] = sum(rates) / len(rates)
            cells = [self.cells[method, judge][name] for name in names]
            golds = [plain(self.questions[name]["gold_answer"]) for name in names]
            text, image = (100 * sum(cell[c] for cell in cells) / len(cells) for c in ("text", "image"))
            most = max(golds.count(label) for label in golds)
            entry |= {"text": text, "image": image, "gap": text - image, "majority": 100 * most / len(golds)}
        return entry

    def judge(self, method: str, judge: str) -> dict[str, Any]:
        scored, valid = self.kept(method, judge, "raw"), self.kept(method, judge, "filtered")
        return {
            "n_questions": len(self.questions),
            "n_unscored": len(self.questions) - len(scored),
            "n_valid": len(valid),
            "ambiguity_rate": 100 * (len(scored) - len(valid)) / len(scored) if scored else None,
            **{block: self.block(method, judge, block) for block in self.blocks},
            **(self.guesses(method, judge) if self.guessed else {}),
            "moral_target": self.moral_target(method, judge),
        }

    @property
    def blocks(self) -> list[str]:
        return ["raw", "filtered", "common_valid", *(["unguessed"] if self.guessed else [])]

    def story_gap(self, method: str, judge: str, block: str, story: str) -> float | None:
        means = self.means([name for name in self.kept(method, judge, block) if name[0] == story], method, judge)
        return means["text"] - means["image"] if means else None

    def differences(self, a: str, b: str, judge: str) -> dict[str, float | None]:
        found: dict[str, float | None] = {}
        for block in self.blocks:
            one, two = (self.means(self.kept(method, judge, block), method, judge) for method in (a, b))
            gaps = [100 * (item["text"] - item["image"]) for item in (one, two) if item]
            found[block] = gaps[0] - gaps[1] if len(gaps) == 2 else None
        return found

    def compare(self, a: str, b: str, judge: str, block: str) -> dict[str, Any]:
        if any(self.hidden(method, judge) or self.thin(method, judge, block) for method in (a, b)):
            gone = dict.fromkeys(("stg_a", "stg_b", "difference", "ci95", "p_bootstrap"))
            told = {"a": a, "b": b, "judge": judge, "block": block, "n_stories": 0}
            return gone | told | {"wilcoxon": {"p": None, "n_nonzero": 0, "rank_biserial": None}, "empty": True}
        stg = [self.block(method, judge, block)["stg"] for method in (a, b)]
        pairs = [[self.story_gap(method, judge, block, story) for method in (a, b)] for story in self.stories]
        found = [(one, two) for one, two in pairs if one is not None and two is not None]
        drawn = zip(self.resampled(a, judge, block), self.resampled(b, judge, block), strict=True)
        spread = [(one["text"] - one["image"]) - (two["text"] - two["image"]) for one, two in drawn if one and two]
        p = None
        if spread:
            signs = [round(value, 12) for value in spread]
            tail = min(sum(value <= 0 for value in signs), sum(value >= 0 for value in signs))
            p = min(1.0, 2 * (1 + tail) / (1 + len(spread)))
        return {
            "a": a,
            "b": b,
            "judge": judge,
            "block": block,
            "n_stories": len(found),
            "stg_a": stg[0],
            "stg_b": stg[1],
            "difference": stg[0] - stg[1] if None not in stg else None,
            "ci95": self.difference_span(a, b, judge, block),
            "p_bootstrap": p,
            "wilcoxon": signed_ranks([one - two for one, two in found]),
        }

    def difference_span(self, a: str, b: str, judge: str, block: str) -> list[float] | None:
        """The interval of a difference of STG, over the stories that hold a question of either method."""
        names = [self.kept(method, judge, block) for method in (a, b)]
        held = [{name[0] for name in own} for own in names]
        if len(held[0] & held[1]) < 6:
            return None

        def difference(without: str | None) -> float | None:
            gaps = []
            for method, own in zip((a, b), names, strict=True):
                means = self.means([name for name in own if name[0] != without], method, judge)
                gaps += [means["text"] - means["image"]] if means else []
            return gaps[0] - gaps[1] if len(gaps) == 2 else None

        value, left = difference(None), [difference(story) for story in sorted(held[0] | held[1])]
        return None if value is None else difference_span(value, left)

    def scores(self) -> dict[str, Any]:
        """Methods and comparisons, as in scores.json."""
        methods = {method: {judge: self.judge(method, judge) for judge in self.judges} for method in self.methods}
        pairs = list(combinations(self.methods, 2))
        rows = [
            self.compare(a, b, judge, block) for a, b in pairs for judge in self.judges for block in self.blocks[1:]
        ]
        for row in rows:
            row["family"] = len(pairs)  # one block by one judge; what stands beside it is no further test
            for name, p in (("p_corrected", row["wilcoxon"]["p"]), ("p_bootstrap_corrected", row["p_bootstrap"])):
                row[name] = None if p is None else min(1.0, p * len(pairs))
            voted = "ensemble" if len(self.people) > 1 else self.people[0]
            row["headline"] = (row["judge"], row["block"]) == (voted, "common_valid")
            empty = row.pop("empty", False)
            row["differences"] = {} if empty else self.differences(row["a"], row["b"], row["judge"])
            told = [value for value in row["differences"].values() if value is not None and abs(value) > 1e-9]
            row["disagree"] = min(told, default=0) < 0 < max(told, default=0)
        return {"methods": methods, "comparisons": rows}


def _clear(above: list[tuple[str, float]], level: float, *, signed: bool = False) -> bool:
    """Whether a mean lies above a level with its whole interval: over stories, of fewer than six over answers."""
    stories = sorted({story for story, _ in above})
    groups = [[value for name, value in above if name == story] for story in stories]
    groups = groups if len(stories) >= 6 else [[value] for _, value in above]
    values = [value for own in groups for value in own]
    mean = sum(values) / len(values)
    if len(groups) < 6:
        return mean > level
    left = [(sum(values) - sum(own)) / (len(values) - len(own)) for own in groups]
    span = difference_span(mean, list(left)) if signed or min(values) < 0 else share_span(mean, left)
    return span is not None and span[0] / 100 > level


# Intervals by the delete-one jackknife with Student's t: docs/scores.md, section 6.


def jackknife(left: list[float]) -> float:
    mean = sum(left) / len(left)
    return math.sqrt((len(left) - 1) / len(left) * sum((value - mean) ** 2 for value in left))


def share_ends(value: float, left: list[float]) -> list[float]:
    """A share with its interval on the logit scale; at an end, the exact bound of a mean within 0 and 1."""
    count, error = len(left), jackknife(left)
    reach = stats.t.ppf(0.975, count - 1) * error
    if error <= 1e-12 or not 0 < value < 1:
        bound = 0.025 ** (1 / count)
        bound = min(bound, 1 - reach) if error > 1e-12 else bound
        return [max(0.0, value - 1 + bound), min(1.0, value + 1 - bound)]
    width = reach / (value * (1 - value))
    return [float(special.expit(special.logit(value) + sign * width)) for sign in (-1, 1)]


def share_span(value: float, left: list[float]) -> list[float] | None:
    return [100 * end for end in share_ends(value, left)] if len(left) >= 6 else None


def gap_span(means: dict[str, float], left: list[dict[str, float]], first: str, second: str) -> list[float] | None:
    """Zou and Donner: two intervals joined, with the correlation of the two shares."""
    if len(left) < 6:
        return None
    one, two = ([item[name] for item in left] for name in (first, second))
    still = [jackknife(side) <= 1e-12 for side in (one, two)]
    ends = []
    for value, side, fixed in zip((means[first], means[second]), (one, two), still, strict=True):
        ends.append([value, value] if fixed and not all(still) else share_ends(value, side))
    r = 0.0 if any(still) else float(stats.pearsonr(one, two).statistic)
    a, b, gap = means[first], means[second], means[first] - means[second]
    (la, ua), (lb, ub) = ends
    low = gap - math.sqrt(max(0.0, (a - la) ** 2 + (ub - b) ** 2 - 2 * r * (a - la) * (ub - b)))
    high = gap + math.sqrt(max(0.0, (ua - a) ** 2 + (b - lb) ** 2 - 2 * r * (ua - a) * (b - lb)))
    return [100 * low, 100 * high]


def difference_span(value: float, left: list[float | None]) -> list[float] | None:
    """Symmetric, with degrees of freedom by the kurtosis of what each story adds."""
    known = [item for item in left if item is not None]
    count = len(known)
    if count < 6 or count < len(left):
        return None
    error = jackknife(known)
    reach = 1 - 0.025 ** (1 / count)
    if error > 1e-12:
        away = [item - sum(known) / count for item in known]
        tails = count * sum(item**4 for item in away) / sum(item**2 for item in away) ** 2
        reach = error * stats.t.ppf(0.975, max(1, min(count - 1, 2 * count / (tails - (count - 3) / (count - 1)))))
    return [100 * (value - reach), 100 * (value + reach)]


def correlation_span(value: float | None, left: list[float | None]) -> list[float] | None:
    """Like a difference, on Fisher's scale."""
    known = [math.atanh(max(-0.999999, min(0.999999, item))) for item in left if item is not None]
    if value is None or len(known) < max(6, len(left)) or jackknife(known) <= 1e-12:
        return None
    span = difference_span(math.atanh(value), list(known))
    return None if span is None else [math.tanh(end / 100) for end in span]


def hit_span(hits: dict[str, list[bool]]) -> list[float] | None:
    """The interval of a share of hits, by story."""
    told = {story: own for story, own in hits.items() if own}
    if len(told) < 6:
        return None

    def rate(without: str | None) -> float:
        kept = [hit for story, own in told.items() if story != without for hit in own]
        return sum(kept) / len(kept)

    return share_span(rate(None), [rate(story) for story in told])


def percentiles(values: list[float]) -> list[float] | None:
    """The 2.5th and 97.5th percentile in percentage points, interpolated linearly between order statistics."""
    if not values:
        return None
    ordered = sorted(values)
    ends = []
    for level in (0.025, 0.975):
        place = level * (len(ordered) - 1)
        low = int(place)
        high = min(low + 1, len(ordered) - 1)
        ends.append(100 * (ordered[low] + (place - low) * (ordered[high] - ordered[low])))
    return ends


def signed_ranks(differences: list[float]) -> dict[str, Any]:
    """Wilcoxon's test with zeros dropped, exact by every way to flip the signs, and the rank-biserial (Eq. 49)."""
    kept = [round(value, 12) for value in differences if abs(value) > 1e-12]
    if not kept:
        return {"p": None, "n_nonzero": 0, "rank_biserial": None}
    sizes = sorted(abs(value) for value in kept)
    ranks = {size: sum(at + 1 for at, other in enumerate(sizes) if other == size) / sizes.count(size) for size in sizes}
    plus = sum(ranks[abs(value)] for value in kept if value > 0)
    minus = sum(ranks[abs(value)] for value in kept if value < 0)
    places = [ranks[abs(value)] for value in kept]
    sums = [
        sum(rank for rank, up in zip(places, signs, strict=True) if up) for signs in product((0, 1), repeat=len(kept))
    ]
    low, high = sum(value <= plus + 1e-9 for value in sums), sum(value >= plus - 1e-9 for value in sums)
    p = min(1.0, 2 * min(low, high) / len(sums))
    return {"p": p, "n_nonzero": len(kept), "rank_biserial": (plus - minus) / (plus + minus)}


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
    every = [hit for own in hits.values() for hit in own]
    agree = [np.sign(round(one[0] - two[0], 12)) == np.sign(one[1] - two[1]) for one, two in combinations(pairs, 2)]
    ours, theirs = [round(one, 12) for one, _ in pairs], [two for _, two in pairs]
    spearman, pearson = float(stats.spearmanr(ours, theirs)[0]), float(stats.pearsonr(ours, theirs)[0])
    z = {name: float(np.arctanh(value)) for name, value in (("spearman_z", spearman), ("pearson_z", pearson))}
    return {
        "localization": {
            "n": len(every),
            "right": 100 * sum(every) / len(every),
            "chance": 100 / 6,
            "ci95": hit_span(hits),
        },
        "human_score": {
            "n": len(pairs),
            "spearman": spearman,
            "pearson": pearson,
            "kendall": float(stats.kendalltau(ours, theirs)[0]),
            **z,
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


def pair_scores(variants: Path, stories: Path, answers: Path) -> dict[str, dict[str, dict[str, Any]]]:
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

    def entry(hits: list[bool | None]) -> dict[str, Any]:
        return _pair_entry(hits, list(ids.values()), [kinds[name] for name in ids])

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


def _pair_entry(hits: list[bool | None], story_of: list[str], kinds: list[str]) -> dict[str, Any]:
    scored = [hit for hit in hits if hit is not None]
    rate = 100 * sum(scored) / len(scored) if scored else None
    own: dict[str, list[bool]] = defaultdict(list)
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for hit, story, kind in zip(hits, story_of, kinds, strict=True):
        if hit is not None:
            own[story].append(hit)
            by_kind[kind].append(hit)
    return {
        "n": len(scored),
        "n_unscored": len(hits) - len(scored),
        "pair_accuracy": rate,
        "confusion": None if rate is None else 100 - rate,
        "ci95": hit_span(own),
        "by_change_type": {kind: 100 * sum(values) / len(values) for kind, values in by_kind.items()},
    }
