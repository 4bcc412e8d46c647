"""What the benchmarks count in recordings: checks of first replies, and the prompts that recorded plans come to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.composed import main, plans_in, said_of
from benchmarks.drawn import checked
from katha.composing.families import composing_data

RECORDED = Path(__file__).parents[1] / "data" / "repair" / "recorded"


def test_first_replies_of_a_recording_are_checked() -> None:
    rows = list(checked(RECORDED / "the_grey_feather" / "board.katha"))
    assert Counter(row.kind for row in rows) == {"cast": 1, "frame": 4}
    assert all(not row.back for row in rows)


def test_a_recorded_plan_is_said_in_the_words_of_every_family() -> None:
    (plan,) = plans_in(RECORDED / "red_bands" / "board.katha")
    told = list(said_of(plan))
    assert {family for family, _ in told} == {*composing_data().families, "vector"}
    assert len(told) == len(plan.panels) * (len(composing_data().families) + 1)
    assert all("Einar" in text for _, text in told)


def test_a_sample_is_numbered_and_the_same_for_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(RECORDED / "red_bands" / "board.katha"), "--sample", "9", "--seed", "4"]
    main(words)
    first = capsys.readouterr().out
    main(words)
    assert capsys.readouterr().out == first
    heads = [line.partition(". ")[0] for line in first.splitlines() if line[:1].isdigit()]
    assert heads == [str(number) for number in range(1, 10)]
