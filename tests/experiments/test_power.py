"""What a suite can show, and whether steering predicts reporting."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from katha.compass.modes import load_suite, suite_names
from katha.eval_bridge.matching.match import match
from katha.eval_bridge.matching.rules import ModelRule
from katha.eval_bridge.scoring.rows import smallest_difference, stories_needed
from katha.eval_bridge.scoring.steering import BY_CHANCE, steering_agreement, steering_words
from katha.experiments.ablate.power import Pilot, planned
from katha.schema import Answer, StoryRecord

DATA = Path(__file__).parents[1] / "data" / "evidence"


def test_the_spread_that_suites_are_planned_with_is_measured() -> None:
    rule = ModelRule("llm:openai:matcher", [DATA / "verdicts.jsonl"])
    records = [StoryRecord.model_validate_json(line) for line in (DATA / "stories.jsonl").read_text().splitlines()]
    asked = {(one.story_id, item.question_id): item for one in records for item in one.recoverability_questions}
    right = {}
    for line in (DATA / "answers.jsonl").read_text().splitlines():
        row = Answer.model_validate({"method": None, **json.loads(line)})
        key = (row.method, row.condition, row.story_id, row.question_id)
        right[key] = bool(match(row, asked[row.story_id, row.question_id], rule).right)
    gaps = defaultdict(list)
    for (method, condition, story, question), seen in right.items():
        if (method, condition) == ("vector", "image"):
            gaps[story].append(right[None, "text", story, question] - seen)
    spread = 100 * float(np.std([np.mean(own) for own in gaps.values()], ddof=1))
    assert len(gaps) == 20
    assert Pilot.load().spread == pytest.approx(math.sqrt(2) * spread, abs=0.1)


@pytest.mark.parametrize("stories", [7, 12, 48, 200])
def test_the_smallest_difference_is_found_in_four_of_five(stories: int) -> None:
    least = smallest_difference(20.0, stories)
    assert least is not None
    power = TTestPower().power(least / 20.0, stories * 3 / math.pi, 0.05)
    assert power == pytest.approx(0.8, abs=0.02)
    assert stories_needed(20.0, least + 1e-9) == stories


def test_a_suite_says_what_it_can_show_before_it_runs() -> None:
    told = planned(load_suite("length"), 12)
    assert told.startswith("Planned (full_always against reranked_non_semantic): with 12 stories a true difference of ")
    assert "and 10 points take 49 stories" in told
    assert "no difference can be shown" in planned(load_suite("length"), 1)


def test_every_suite_that_ships_declares_its_contrast() -> None:
    # The rows of `aggregation` have the names of the judges that are asked.
    assert [name for name in suite_names() if load_suite(name).primary is None] == ["aggregation"]


def test_steering_is_held_against_reporting_within_a_story() -> None:
    dice = np.random.default_rng(3)
    boards = []
    for story in range(12):
        easy = dice.random()
        boards += [(f"s{story}", easy + one, easy + one + 0.1 * dice.random()) for one in dice.random(3)]
    found = steering_agreement(boards)
    centred = np.concatenate([np.array([b[1:] for b in boards[at : at + 3]]) for at in range(0, 36, 3)])
    centred -= np.repeat(centred.reshape(12, 3, 2).mean(axis=1), 3, axis=0)
    assert found.correlation == pytest.approx(float(np.corrcoef(centred.T)[0, 1]))
    assert (found.boards, found.stories, found.predicts) == (36, 12, True)
    assert BY_CHANCE not in steering_words(found)


def test_steering_that_predicts_nothing_is_choosing_by_chance() -> None:
    dice = np.random.default_rng(4)
    found = steering_agreement([(f"s{at % 12}", *dice.random(2)) for at in range(36)])
    assert not found.predicts
    assert steering_words(found).endswith(f"jackknife-t): {BY_CHANCE}.")
    assert BY_CHANCE in steering_words(steering_agreement([("s", 0.5, 0.5), ("s", 0.5, 0.5)]))
