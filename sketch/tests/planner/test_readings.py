"""The gold readings are whole, and the measure over them can fail."""

from __future__ import annotations

from typing import Any

import pytest
from measures.readings import compare, main, readings


@pytest.fixture(scope="module")
def gold() -> dict[str, dict[str, Any]]:
    return {one["story"]: one for one in readings()}


def test_every_reading_is_of_its_own_story(gold: dict[str, dict[str, Any]]) -> None:
    assert len(gold) == 128
    for name, one in gold.items():
        said = " ".join(one["text"].split())
        cast = {member["name"] for member in one["cast"]}
        for sentence in one["sentences"]:
            assert " ".join(sentence["text"].split()) in said, (name, sentence["text"])
            shown = {who for entry in sentence["shows"] for who in (*entry["who"], *entry.get("with", ()))}
            assert shown <= cast, (name, shown - cast)


def test_a_story_that_is_read_scores_and_another_ones_reading_does_not(gold: dict[str, dict[str, Any]]) -> None:
    read = compare(gold["e05"])
    assert read.share("who") > 60
    assert read.counts["place_all"] > 5
    strangers = {"cast": gold["e07"]["cast"], "sentences": []}
    names = [member["name"] for member in strangers["cast"]]
    for at, sentence in enumerate(gold["e05"]["sentences"]):
        shows = [
            {**entry, "who": [names[at % len(names)]], "with": [], "what": ["zeppelin"]} for entry in sentence["shows"]
        ]
        strangers["sentences"].append({**sentence, "place": "space", "shows": shows})
    false = compare({**gold["e05"], **strangers})
    assert false.share("who") < 20
    assert false.share("place") < 20
    assert false.share("what") == 0
    assert false.share("extra") > 80
    assert any("place" in miss for miss in false.misses)


def test_the_command_prints_both_halves(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["e05", "--verbose"]) == 0
    said = capsys.readouterr().out
    assert "## e05" in said
    assert "odd: who" in said
    assert "even: who 0.0% of 0" in said
