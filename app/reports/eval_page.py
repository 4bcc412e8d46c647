"""`report.html` of an evaluation: one self-contained file made from the evaluation's files alone."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from katha.app.reports.charts import calibration_plots, confidence_lines
from katha.app.reports.page import DIMENSION_WORDS, panel_uri, points
from katha.errors import InputFileError
from katha.jsonio import iter_lines, loads, read_json, write_bytes_atomic
from katha.schema import DIMENSIONS, Answer, Condition, Question, StoryRecord

if TYPE_CHECKING:
    from katha.eval_bridge.matching.match import Rule

# ---
# The stories of an evaluation in its report: each board's pictures, every answer and its verdict.


STORY_PAGES = "stories"
"""The folder of the pages of those stories that are not in the report itself."""
_INLINE, _PAGE = 30, 25
_VERDICTS = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("none", "\u2013")}
_Index = dict[tuple[str | None, str, str, str, str], Answer]
_Column = tuple[str, str | None, Condition]


def story_views(out: Path, state: Mapping[str, Any], left: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every story with links to its boards; the ones that lost most questions (30 at most) in full, with pictures.

    The others have a `page`, which `story_pages` makes.
    """
    order, shown, pages = _divided(out, left)
    index = _index(_answers(out), shown)
    rule = _rule(out, state)
    page_of = {
        record.story_id: f"{STORY_PAGES}/{_name(number)}#{record.story_id}"
        for number, page in enumerate(pages)
        for record in page
    }
    return [
        _story(record, out, state, index, rule, pictures=True)
        if record.story_id in shown
        else _story(record, out, state, {}, rule, page=page_of[record.story_id])
        for record in order
    ]


def story_pages(
    out: Path, state: Mapping[str, Any], left: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and content of each page of 25 stories, one after the other: `answers.jsonl` is read once, in order."""
    _, _, pages = _divided(out, left)
    place = {record.story_id: number for number, page in enumerate(pages) for record in page}
    groups = groupby((row for row in _answers(out) if row.story_id in place), key=lambda row: place[row.story_id])
    waiting = next(groups, None)
    rule = _rule(out, state)
    for number, page in enumerate(pages):
        index: _Index = {}
        if waiting is not None and waiting[0] == number:
            index = _index(waiting[1], place)
            waiting = next(groups, None)
        folder = out / STORY_PAGES
        yield (
            _name(number),
            {
                "first": number * _PAGE + 1,
                "last": number * _PAGE + len(page),
                "before": _name(number - 1) if number else None,
                "after": _name(number + 1) if number + 1 < len(pages) else None,
                "stories": [_story(record, folder, state, index, rule) for record in page],
            },
        )


def _name(number: int) -> str:
    return f"{number + 1:04d}.html"


def _rule(out: Path, state: Mapping[str, Any]) -> Rule:
    from katha.eval_bridge.matching.rules import folder_rule

    return folder_rule(state["config"]["matching"], out)


def _divided(
    out: Path, left: Sequence[Mapping[str, Any]]
) -> tuple[list[StoryRecord], frozenset[str], list[list[StoryRecord]]]:
    """The stories, those that lost most questions first; who is shown in the report; the others by page, as given."""
    losses = Counter(str(item["story_id"]) for item in left)
    records = [StoryRecord.model_validate_json(line) for _, line in iter_lines(out / "stories.jsonl")]
    order = sorted(records, key=lambda record: (-losses[record.story_id], record.story_id))
    shown = frozenset(record.story_id for record in order[:_INLINE])
    others = [record for record in records if record.story_id not in shown]
    return order, shown, [others[at : at + _PAGE] for at in range(0, len(others), _PAGE)]


def _answers(out: Path) -> Iterator[Answer]:
    """The answers of an evaluation, if it has any."""
    from katha.eval_bridge.judging.answers import iter_answers

    path = out / "answers.jsonl"
    yield from iter_answers(path) if path.exists() else ()


def _index(rows: Iterable[Answer], stories: Container[str]) -> _Index:
    return {
        (row.method, row.judge, row.story_id, row.question_id, row.condition): row
        for row in rows
        if row.story_id in stories
    }


def _story(
    record: StoryRecord,
    base: Path,
    state: Mapping[str, Any],
    index: _Index,
    rule: Rule,
    *,
    pictures: bool = False,
    page: str | None = None,
) -> dict[str, Any]:
    """One story. base: the folder that links start from. page: where it is told in full, if that is elsewhere."""
    boards = [_board(name, Path(place), record, base, state, pictures) for name, place in state["boards"].items()]
    columns = _columns([board["name"] for board in boards if board["judged"]])
    judges, asked = list(state["judges"]), state["config"]["questions"]
    return {
        "id": record.story_id,
        "title": record.title or record.story_id,
        "text": record.story_text,
        "steered": any(item.role == "steering" for item in record.recoverability_questions),
        "boards": boards,
        "inline": page is None,
        "page": page,
        "columns": [name for name, _, _ in columns],
        "several": len(judges) > 1,
        "rows": [
            _stories_row(item, record, columns, judges, index, rule)
            for item in record.recoverability_questions
            if page is None and len(columns) > 1 and asked in ("all", item.role or asked)
        ],
    }


def _columns(methods: Sequence[str]) -> list[_Column]:
    columns: list[_Column] = [("Text", None, "text")]
    for method in methods:
        columns += [(f"Images, {method}", method, "image"), (f"Text and images, {method}", method, "text+image")]
    return columns


def _board(
    name: str, folder: Path, record: StoryRecord, base: Path, state: Mapping[str, Any], pictures: bool
) -> dict[str, Any]:
    from katha.eval_bridge.bench.boards import BoardProblem, Boards, read_board

    invalid = state["invalid"].get(name, {}).get(record.story_id)
    note, frames = f"Not judged: {invalid}" if invalid else "", []
    if pictures and not invalid:
        try:
            board = read_board(Boards(name, folder), record)
            frames = [
                {
                    "uri": panel_uri(frame.path, small=True),
                    "kind": frame.kind,
                    "alt": f"{name}, frame {place}" + ("" if frame.kind == "scene" else f" ({frame.kind})"),
                }
                for place, frame in enumerate(board.frames, 1)
            ]
        except (BoardProblem, InputFileError) as error:
            note = f"Changed since it was judged: {error.message}"
    place = folder / record.story_id
    told = (place / "report.html").is_file()
    target = place / "report.html" if told else place
    link = quote(Path(os.path.relpath(target.resolve(), base.resolve())).as_posix()) if place.is_dir() else None
    opens = "open its report" if told else "open the folder"
    return {"name": name, "judged": not invalid, "note": note, "frames": frames, "link": link, "opens": opens}


def _stories_row(
    question: Question,
    record: StoryRecord,
    columns: Sequence[_Column],
    judges: Sequence[str],
    index: _Index,
    rule: Rule,
) -> dict[str, Any]:
    def find(method: str | None, judge: str, condition: str) -> Answer | None:
        return index.get((method, judge, record.story_id, question.question_id, condition))

    pair = question.target_transition
    return {
        "pair": f"{pair[0]}→{pair[1]}" if pair else "whole story",
        "dimension": DIMENSION_WORDS[question.question_type],
        "question": question.question,
        "gold": question.gold_answer,
        "options": question.options or [],
        "cells": [
            [_stories_cell(find(method, judge, condition), question, judge, rule) for judge in judges]
            for _, method, condition in columns
        ],
    }


def _stories_cell(answer: Answer | None, question: Question, judge: str, rule: Rule) -> dict[str, str]:
    from katha.eval_bridge.matching.match import match

    if answer is None:
        return {"judge": judge, "verdict": "none", "mark": "–", "answer": "not asked", "note": ""}
    if answer.status != "ok":
        return {"judge": judge, "verdict": "none", "mark": "!", "answer": answer.status, "note": answer.error or ""}
    verdict = match(answer, question, rule)
    name, sign = _VERDICTS[verdict.right]
    return {"judge": judge, "verdict": name, "mark": sign, "answer": answer.answer or "", "note": verdict.reason}


# ---
# From an evaluation's files to what its report shows: plain dictionaries, every number already worded.


_LEFT_SHOWN = 300
_BLOCKS = (
    ("filtered", "Each board's own valid set"),
    ("common_valid", "Questions valid for every board"),
    ("raw", "Every scored question, before the filter"),
)
_WHY = {
    "invalid_story": "no board that can be judged",
    "unscored": "not scored: a condition has no answer",
    "ambiguous": "ambiguous: wrong even with text and images",
}


def build_view(out: Path) -> dict[str, Any]:
    """Everything `eval.html.j2` shows.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    state, scores = read_json(out / "eval.json"), read_json(out / "scores.json")
    judges = _judges(scores)
    left = _read_left(out)
    stories = story_views(out, state, left)
    return {
        "steered": scores["questions"] != "reporting" and any(story["steered"] for story in stories),
        "state": state,
        "scores": scores,
        "judges": judges,
        "headline": judges[0] if judges else None,
        "boards": [_leaderboard(scores, judge) for judge in judges],
        "heat": _heat(scores, judges[0]) if judges else None,
        "comparisons": _comparisons(scores, judges[0]) if judges else [],
        "morals": _morals(scores, judges[0]) if judges else [],
        "pairs": _pairs(scores),
        "controls": [_control(item) for item in state["controls"]],
        "confidence": confidence_lines(state["confidence"]),
        "plots": calibration_plots(state["confidence"]),
        "invalid": [(name, sorted(reasons.items())) for name, reasons in state["invalid"].items()],
        "left_counts": [{**item, "why": _WHY[item["why"]]} for item in state["left"]],
        "left": [_left(item) for item in left if not judges or item["judge"] == judges[0]][:_LEFT_SHOWN],
        "left_total": sum(not judges or item["judge"] == judges[0] for item in left),
        "stories": stories,
        "repeat": _repeat(state),
    }


def build_pages(out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name and content of each page of those stories that the report does not hold itself.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    yield from story_pages(out, read_json(out / "eval.json"), _read_left(out))


def _read_left(out: Path) -> list[dict[str, Any]]:
    path = out / "left.jsonl"
    return [loads(line) for _, line in iter_lines(path)] if path.exists() else []


def _pairs(scores: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Pair accuracy and confusion by board and judge; nothing where no pair was asked."""
    return [
        {
            "method": method,
            "judge": judge,
            "accuracy": points(row["pair_accuracy"]),
            "ci": _interval(row["ci95"]),
            "confusion": points(row["confusion"]),
            "n": row["n"],
            "unscored": row["n_unscored"],
        }
        for method, judges in scores.get("contrastive", {}).get("methods", {}).items()
        for judge, row in judges.items()
    ]


def _judges(scores: Mapping[str, Any]) -> list[str]:
    """The ensemble first, then the judges by name."""
    names = sorted({judge for method in scores["methods"].values() for judge in method["judges"]})
    return sorted(names, key=lambda name: (name != "ensemble", name))


def _leaderboard(scores: Mapping[str, Any], judge: str) -> dict[str, Any]:
    return {
        "judge": judge,
        "blocks": [{"name": title, "rows": _rows(scores, judge, block)} for block, title in _BLOCKS],
    }


def _rows(scores: Mapping[str, Any], judge: str, block: str) -> list[dict[str, Any]]:
    """The methods, the smallest gap first; those without a number last. Bars share one axis."""
    entries = [(name, method, method["judges"].get(judge)) for name, method in scores["methods"].items()]
    known = [entry[block] for _, _, entry in entries if entry and entry[block]["stg"] is not None]
    ends = [end for item in known for end in (item["ci95"]["stg"] or [item["stg"]])]
    low, high = min([0.0, *ends, *(item["stg"] for item in known)]), max([1.0, *ends, *(item["stg"] for item in known)])
    rows = [_row(name, method, entry, block, low, high) for name, method, entry in entries]
    return sorted(rows, key=lambda row: (row["value"] is None, row["value"], row["name"]))


def _row(
    name: str, method: Mapping[str, Any], entry: Mapping[str, Any] | None, block: str, low: float, high: float
) -> dict[str, Any]:
    values = entry[block] if entry else {"n": 0, "text": None, "image": None, "stg": None, "latent_gap": None}
    ci = entry[block]["ci95"] if entry else {"text": None, "image": None, "stg": None}

    def place(value: float) -> float:
        return 100.0 * (value - low) / (high - low)

    stg, interval = values["stg"], ci["stg"]
    ends = interval or ([stg, stg] if stg is not None else None)
    return {
        "name": name,
        "value": stg,
        "stories": method["stories"],
        "left": len(method["invalid_stories"]),
        "valid": f"{values['n']} of {entry['n_questions']}" if entry else "–",
        "unscored": entry["n_unscored"] if entry else "–",
        "ambiguity": points(entry["ambiguity_rate"]) if entry else "–",
        **{key: points(values[key]) for key in ("text", "image", "stg", "latent_gap")},
        **{f"{key}_ci": _interval(ci[key]) for key in ("text", "image", "stg")},
        "zero": place(0.0),
        "bar": None
        if stg is None or ends is None
        else (place(min(0.0, stg)), place(max(0.0, stg)), place(ends[0]), place(ends[1])),
    }


def _interval(value: Sequence[float] | None) -> str:
    return f"{value[0]:.1f} to {value[1]:.1f}" if value else ""


def _heat(scores: Mapping[str, Any], judge: str) -> dict[str, Any]:
    """Gaps by dimension and method (filtered): deeper is a larger loss in the images."""
    known = [name for name in scores["methods"] if judge in scores["methods"][name]["judges"]]
    methods = [row["name"] for row in _rows(scores, judge, "filtered") if row["name"] in known]
    rows = []
    for dimension in DIMENSIONS:
        cells = [scores["methods"][name]["judges"][judge]["filtered"]["dimensions"][dimension] for name in methods]
        rows.append({"name": DIMENSION_WORDS[dimension], "cells": [_cell(cell) for cell in cells]})
    return {"methods": methods, "rows": rows}


def _cell(cell: Mapping[str, Any]) -> dict[str, Any]:
    gap = cell["gap"]
    return {
        "gap": points(gap),
        "n": cell["n"],
        "text": points(cell["text"]),
        "image": points(cell["image"]),
        "tone": "none" if gap is None else "loss" if gap > 0 else "gain",
        "depth": 0.0 if gap is None else min(60.0, abs(gap) * 0.6),
    }


def _comparisons(scores: Mapping[str, Any], judge: str) -> list[dict[str, Any]]:
    return [
        {
            "pair": f"{item['a']} against {item['b']}",
            "block": dict(_BLOCKS)[item["block"]],
            "n": item["n_stories"],
            "difference": points(item["difference"]),
            "ci": _interval(item["ci95"]),
            "p": _p(item["p_bootstrap"]),
            "wilcoxon": _p(item["wilcoxon"]["p"]),
            "corrected": _p(item["p_corrected"]),
        }
        for item in scores["comparisons"]
        if item["judge"] == judge
    ]


def _morals(scores: Mapping[str, Any], judge: str) -> list[dict[str, str]]:
    """Moral-target recoverability by board, beside its two baselines; nothing where no target is a label."""
    found = [(name, method["judges"].get(judge)) for name, method in scores["methods"].items()]
    return [
        {"name": name, **{key: points(value) for key, value in entry["moral_target"].items()}}
        for name, entry in found
        if entry and entry["moral_target"]["text"] is not None
    ]


def _p(value: float | None) -> str:
    return "–" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _control(item: Mapping[str, Any]) -> dict[str, Any]:
    focus = item.get("focus") or item
    again = item["control"] == "repeat"
    verdicts = {True: ("right", "✓"), False: ("wrong", "✗"), None: ("none", "–")}
    name, sign = verdicts[item["passes"]]
    return {
        "control": item["control"],
        "judge": item["judge"],
        "n": focus["n"],
        "unscored": item["n_unscored"],
        "what": "same answer"
        if again
        else DIMENSION_WORDS[item["dimension"]]
        if item["dimension"]
        else "all questions",
        "value": points(item["agreement"] if again else focus["image"]),
        "ci": _interval(focus["ci95"]),
        "board": "" if again else points(focus["board"]),
        "chance": "" if again else points(focus["chance"]),
        "unclear": "" if again else points(item["unclear"]),
        "verdict": name,
        "sign": sign,
        "reading": item["reading"],
    }


def _left(item: Mapping[str, Any]) -> dict[str, Any]:
    return {**item, "why": _WHY[item["why"]], "dimension": DIMENSION_WORDS[item["dimension"]]}


def _repeat(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    from katha.jsonio import dumps

    names = ("command", "katha", "config", "boards", "judges", "prompts", "statuses", "calls", "budget", "leakage")
    words = {"command": " ".join(state["command"])}
    shown = [(name, words.get(name, state[name])) for name in names]
    return [(name, value if isinstance(value, str) else dumps(value).strip()) for name, value in shown]


# ---
# `report.html` of an evaluation: one self-contained file made from the evaluation's files alone.


def write_eval_report(out: Path) -> Path:
    """Write `out/report.html`, and pages of the stories that are not in it; return its path. Nothing asks the network.

    Raises:
        InputFileError: a file of the evaluation is missing or broken.
    """
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    own, shared = files("katha.app.reports.templates"), files("katha.app.reports.templates")

    def source(name: str) -> str:
        return own.joinpath(name).read_text(encoding="utf-8")

    environment = Environment(
        loader=FunctionLoader(source), undefined=StrictUndefined, autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    css = shared.joinpath("report.css").read_text(encoding="utf-8") + source("eval.css")
    pages = out / STORY_PAGES
    written = set()
    for name, page in build_pages(out):
        pages.mkdir(exist_ok=True)
        html = environment.get_template("stories.html.j2").render(page=page, css=css)
        write_bytes_atomic(pages / name, html.encode("utf-8"))
        written.add(name)
    for old in pages.glob("*.html"):
        if old.name not in written:
            old.unlink()
    html = environment.get_template("eval.html.j2").render(view=build_view(out), css=css)
    path = out / "report.html"
    write_bytes_atomic(path, html.encode("utf-8"))
    return path
