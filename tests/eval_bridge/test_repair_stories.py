"""The stories of the table of repair are those that were locked before anything was drawn of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from katha.jsonio import file_sha256
from katha.stories import load_stories

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data" / "repair"
PAGE = (ROOT / "docs" / "research" / "repair.md").read_text(encoding="utf-8")


def test_the_files_are_those_that_the_page_names() -> None:
    named = re.findall(r"`([0-9a-f]{64})`", PAGE)
    assert named == [file_sha256(DATA / "held_out.jsonl"), file_sha256(DATA / "tuning.jsonl")]


def test_no_story_is_on_both_sides_and_the_counts_are_those_of_the_page() -> None:
    held_out, tuning = (load_stories(DATA / f"{name}.jsonl") for name in ("held_out", "tuning"))
    assert (len(held_out), len(tuning)) == (24, 12)
    assert {one.story_id for one in held_out}.isdisjoint(one.story_id for one in tuning)
    for side in (held_out, tuning):
        kinds = [one.source_family for one in side]
        assert kinds.count("ordinary") == kinds.count("renamed fables") == len(side) // 2
    counts = [sum(len(one.recoverability_questions) for one in side) for side in (held_out, tuning)]
    assert f"**{sum(counts)} stay**: {counts[0]} of the held-out stories, {counts[1]} of those to tune on" in PAGE


def test_what_the_first_boards_report_is_what_the_page_says() -> None:
    rows = [json.loads(line) for line in (DATA / "first_boards.jsonl").read_text(encoding="utf-8").splitlines()]
    known = {
        item.question_id: item for one in load_stories(DATA / "tuning.jsonl") for item in one.recoverability_questions
    }
    assert all(row["question_id"] in known for row in rows)
    right = {board: sum(row["right"] for row in rows if row["board"] == board) for board in ("before", "after")}
    asked = [row["board"] for row in rows]
    assert asked.count("before") == asked.count("after") == 30
    told = "{:.0f} of 30 (53.3%) right before, **{:.0f} of 30 (56.7%) after**"
    assert told.format(right["before"], right["after"]) in PAGE
    seen = {(row["judge"], row["story_id"]): row["board"] for row in rows}
    assert len(seen) == 10, "no judge saw a story twice"
