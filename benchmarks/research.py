"""The figures of `docs/research` and of the README, made from the archives in the repository: `make research`.

    python -m benchmarks.research [--check]

Each block of a page stands between `<!-- research: NAME -->` and `<!-- research: end -->`, and is written by the
function of that name from recorded answers, verdicts and viewers' words; no model is called and nothing is drawn.
With `--check` nothing is written, and the exit code is 1 where a page says something else.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.ordinary_boards import ROWS, totals
from katha.eval_bridge.matching.match import Matching, match
from katha.eval_bridge.matching.report import measure_file
from katha.eval_bridge.matching.rules import ModelRule, open_rule
from katha.eval_bridge.people.agreement import rank_correlation
from katha.eval_bridge.scoring import intervals
from katha.eval_bridge.scoring.intervals import share_interval
from katha.eval_bridge.scoring.scores import score
from katha.schema import DIMENSIONS, Answer, StoryRecord
from katha.schema.scores import Interval

__all__ = ["BLOCKS", "PAGES", "main", "written"]

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
EVIDENCE, REPAIR, PAIRS = DATA / "evidence", DATA / "repair", DATA / "answer_pairs"
WORDS = ROOT / "sketch" / "tests" / "data"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs" / "research").glob("*.md")))
_BLOCK = re.compile(r"(<!-- research: ([a-z-]+) -->\n)(.*?)(<!-- research: end -->)", flags=re.S)
Asked = tuple[str, str]
Key = tuple[str | None, str, str, str]
"""A board's method (None: no board), story, question and condition."""


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines)


def _span(ends: Interval | None, digits: int = 1) -> str:
    return "no interval" if ends is None else f"95% {ends[0]:.{digits}f} to {ends[1]:.{digits}f}"


def _of(part: float, whole: int) -> str:
    return f"{part:g} of {whole} ({100 * part / whole:.1f}%)"


# Twenty-four ordinary stories, boards of three kinds, and what a judge has right under each condition.


@cache
def _stories() -> list[StoryRecord]:
    return [StoryRecord.model_validate(row) for row in _rows(EVIDENCE / "stories.jsonl")]


@cache
def _right() -> Mapping[Key, bool]:
    """Return every answer as right or wrong, by the verdicts that were kept."""
    rule = ModelRule("llm:openai:matcher", [EVIDENCE / "verdicts.jsonl"])
    asked = {
        (story.story_id, item.question_id): item for story in _stories() for item in story.recoverability_questions
    }
    found: dict[Key, bool] = {}
    for name in ("answers.jsonl", "blank.jsonl"):
        for row in _rows(EVIDENCE / name):
            answer = Answer.model_validate({"method": None, **row})
            verdict = match(answer, asked[answer.story_id, answer.question_id], rule).right
            if verdict is None:
                raise SystemExit(f"{name}: no verdict on {answer.question_id}.")
            found[answer.method, answer.story_id, answer.question_id, answer.condition] = verdict
    return found


def _told(method: str | None, condition: str, among: Iterable[Asked] | None = None) -> dict[Asked, bool]:
    """Return what was right of one board or none under a condition, by question."""
    kept = None if among is None else set(among)
    return {
        (story, question): value
        for (name, story, question, under), value in _right().items()
        if (name, under) == (method, condition) and (kept is None or (story, question) in kept)
    }


def _share(told: Mapping[Asked, bool]) -> float:
    return 100.0 * sum(told.values()) / len(told)


def evidence() -> str:
    """Return what the answers owe to the evidence: right under each condition, the evidence gain, dimension by
    dimension."""
    images, whole = _told("vector", "image"), len(_told(None, "text"))
    nothing = _told(None, "none", images)
    guesses = _rows(EVIDENCE / "guesses.jsonl")
    mixed = sum(row["first"] for row in guesses)
    shown = [
        ("the text", _share(_told(None, "text")), whole, "at least 97%"),
        (
            "nothing, the questions mixed over all stories",
            100.0 * mixed / len(guesses),
            len(guesses),
            "at most 5%: met",
        ),
        (
            "nothing (`none`), the questions of one board in one call",
            _share(nothing),
            len(nothing),
            "at most 5%: missed",
        ),
        ("the pictures of the vector boards", _share(images), len(images), "nothing + 60: met"),
        ("blank frames in their place", _share(blank := _told("blank", "image")), len(blank), "no more than nothing"),
        ("the stand-in's pictures (eight boards)", _share(stand := _told("sketch", "image")), len(stand), ""),
        ("eight damaged vector boards", _share(damaged := _told("damaged", "image")), len(damaged), ""),
    ]
    gains = [float(images[name]) - float(nothing[name]) for name in images]
    span = share_interval([story for story, _ in images], gains, signed=True)
    types = {
        (story.story_id, item.question_id): item.question_type
        for story in _stories()
        for item in story.recoverability_questions
    }
    by = [
        (
            dimension,
            *(f"{_share({n: told[n] for n in told if types[n] == dimension}):.1f}" for told in (nothing, images)),
        )
        for dimension in DIMENSIONS
    ]
    return "\n\n".join(
        [
            _table(("shown", "right", "wanted"), [(a, f"{b:.1f}% of {c}", d) for a, b, c, d in shown]),
            f"Evidence gain (images minus nothing) is **{100 * sum(gains) / len(gains):.1f} points** ({_span(span)}).",
            _table(("dimension", "nothing", "images"), by),
        ]
    )


def viewers() -> str:
    """Return whether a board whose pictures answer more is one whose frames viewers recognise: Spearman over boards."""
    rho, span, count = _viewers()
    return f"Spearman's rho over {count} boards is **{rho:.2f}** ({_span(span, 2)}); at least .5 was wanted."


@cache
def _viewers() -> tuple[float, Interval | None, int]:
    seen: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for row in _rows(EVIDENCE / "viewers.jsonl"):
        seen[row["method"], row["story_id"]] += [verdict == "y" for verdict in row["frames"]]
    points = []
    for (method, story), frames in seen.items():
        told = {name: value for name, value in _told(method, "image").items() if name[0] == story}
        guessed = _told(None, "none", told)
        points.append((float(np.mean([value for name, value in told.items() if not guessed[name]])), np.mean(frames)))
    judge, people = np.array(points, dtype=np.float64).T
    left = [rank_correlation([*np.delete(judge, at)], [*np.delete(people, at)]) for at in range(len(judge))]
    rho = rank_correlation([*judge], [*people]) or 0.0
    return rho, intervals.correlation(rho, np.array(left, dtype=np.float64)), len(judge)


def fables() -> str:
    """Ten known fables with the questions that their records bring, by two judges."""
    rule = ModelRule("llm:openai:matcher", [EVIDENCE / "examples_verdicts.jsonl"])
    stories = [
        StoryRecord.model_validate_json(path.read_text("utf-8")) for path in sorted((ROOT / "examples").glob("*.json"))
    ]
    answers = [Answer.model_validate({"method": None, **row}) for row in _rows(EVIDENCE / "examples_answers.jsonl")]
    judges = score(stories, answers, matching=rule, questions="all", resamples=0).methods["drawn"].judges
    lines = []
    for name, entry in judges.items():
        block = entry.raw
        numbers = [f"{value:.1f}" for value in (block.text, block.none, block.image) if value is not None]
        gain = f"{block.gain_image:.1f} ({_span(block.ci95.gain_image)})"
        lines += [(name.replace("openai:judge", "judge "), *numbers, gain)] if name != "ensemble" else []
    head = ("all scored questions, macro average over dimensions", "text", "nothing", "images", "images minus nothing")
    return _table(head, lines)


# Matching rules on labelled pairs.


def matching() -> str:
    """False accepts and rejects of three rules on pairs that were written to be hard."""
    path = PAIRS / "pairs.jsonl"
    return _rules([(path, "exact-set"), (path, "lemma-set"), (path, _llm())])


def matching_words() -> str:
    """The same of the words' rule on the stand-in's own pairs (its own tests hold these numbers, too)."""
    asked = [path for path in sorted(WORDS.glob("*pairs.jsonl")) if path.name != "eval_pairs.jsonl"]
    return _rules([(path, "lemma-set") for path in asked])


def _llm() -> Matching:
    return open_rule("llm:openai:frontier", [PAIRS / "verdicts.jsonl"], decider=None, keep=None)


def _rules(asked: Iterable[tuple[Path, Matching]]) -> str:
    lines = []
    for path, rule in asked:
        found = measure_file(path, rule)
        name = rule if isinstance(rule, str) else "llm:"
        rates = (found.false_accept, found.false_accept_ci95), (found.false_reject, found.false_reject_ci95)
        lines.append((f"`{path.name}`", str(found.n), f"`{name}`", *(_rate(*rate) for rate in rates)))
    return _table(("pairs", "n", "rule", "false accepts (95%)", "false rejects (95%)"), lines)


def _rate(value: float | None, ends: tuple[float, float] | None) -> str:
    return "-" if value is None or ends is None else f"{100 * value:.1f} ({100 * ends[0]:.1f} to {100 * ends[1]:.1f})"


# Boards that a language model drew, and what viewers said.


def boards() -> str:
    """Return what viewers said of the boards of the ordinary stories, by condition."""
    rows, lines = _rows(ROWS), []
    for condition in dict.fromkeys(row["condition"] for row in rows):
        own = [row for row in rows if row["condition"] == condition]
        told = totals(own)
        yes, partly, no = told["frames yes / partly / no"]
        right, half, wrong = told["questions right / partly / wrong"]
        asked, days = right + half + wrong, sorted({row["date"] for row in own})
        frames = f"{yes} / {partly} / {no} ({100 * yes / (yes + partly + no):.0f}%)"
        stands = (frames, told["that story"], told["cast constant"], f"{_of(right, asked)}; {half} partly")
        lines.append((condition, " to ".join(dict.fromkeys((days[0], days[-1]))), *stands))
    return _table(
        ("boards", "day", "frames yes / partly / no", "that story", "cast constant", "questions right"), lines
    )


def repair() -> str:
    """The reporting questions of the first repaired boards, before and after."""
    before, after, asked = _first_boards()
    return f"{_of(before, asked)} right before, **{_of(after, asked)} after**."


def _first_boards() -> tuple[float, float, int]:
    rows = _rows(REPAIR / "first_boards.jsonl")
    before, after = ([row["right"] for row in rows if row["board"] == board] for board in ("before", "after"))
    return sum(before), sum(after), len(before)


def newest() -> str:
    """Return what katha can claim today, each line with its day and where it is told."""
    images = _told("vector", "image")
    nothing = _told(None, "none", images)
    gains = [float(images[name]) - float(nothing[name]) for name in images]
    span = share_interval([story for story, _ in images], gains, signed=True)
    seen = totals(row for row in _rows(ROWS) if row["condition"] == "vector")
    yes, right = seen["frames yes / partly / no"], seen["questions right / partly / wrong"]
    llm = measure_file(PAIRS / "pairs.jsonl", _llm())
    before, after, asked = _first_boards()
    base = "docs/research"
    rows = [
        (
            "frames of `vector` boards that show their sentence, two viewers a board",
            _of(yes[0], sum(yes)),
            "2026-11-28",
            f"[boards]({base}/boards.md)",
        ),
        (
            "free questions that viewers have right from those pictures alone",
            _of(right[0], sum(right)),
            "2026-11-28",
            f"[boards]({base}/boards.md)",
        ),
        (
            "what a model as judge owes to the pictures (images minus nothing)",
            f"{100 * sum(gains) / len(gains):.1f} points ({_span(span)})",
            "2026-11-29",
            f"[evidence]({base}/evidence.md)",
        ),
        (
            "whether its answers go with what viewers recognise (Spearman)",
            f"{_viewers()[0]:.2f} ({_span(_viewers()[1], 2)})",
            "2026-11-29",
            f"[evidence]({base}/evidence.md)",
        ),
        (
            "wrong answers taken, right ones missed by `llm:` matching",
            f"{_percent(llm.false_accept)} and {_percent(llm.false_reject)} of {llm.n}",
            "2026-11-29",
            f"[matching]({base}/matching.md)",
        ),
        (
            "reporting questions right on five boards, before and after repair: **no gain is shown**",
            f"{before:g} and {after:g} of {asked}",
            "2026-11-30",
            f"[repair]({base}/repair.md)",
        ),
    ]
    return _table(("what", "measured", "recorded", "told in"), rows)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f}%"


BLOCKS: Mapping[str, Callable[[], str]] = {
    "evidence": evidence,
    "viewers": viewers,
    "fables": fables,
    "matching": matching,
    "matching-words": matching_words,
    "boards": boards,
    "repair": repair,
    "newest": newest,
}


def written(page: str, folder: str = "") -> str:
    """Return a page with each of its blocks made anew; links of a page in `folder` begin there."""

    def made(found: re.Match[str]) -> str:
        text = BLOCKS[found[2]]()
        return f"{found[1]}\n{text.replace(f']({folder}/', '](') if folder else text}\n\n{found[4]}"

    return _BLOCK.sub(made, page)


def main(words: Sequence[str] | None = None) -> None:
    """Write every block, or with `--check` say which pages differ."""
    check, differ = "--check" in (sys.argv[1:] if words is None else words), []
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        made = written(page, str(path.parent.relative_to(ROOT)) if path.parent != ROOT else "")
        if made != page:
            differ.append(str(path.relative_to(ROOT)))
            if not check:
                path.write_text(made, encoding="utf-8")
    print("\n".join(differ) or "Every figure is that of its archive.")
    if check and differ:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
