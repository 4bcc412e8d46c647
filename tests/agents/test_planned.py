"""Plans are kept between commands where no model is called for them, by everything that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from doubles import ScenePlanner, story

from katha.agents import planned
from katha.agents.context import plan_within
from katha.config import Settings
from katha.protocols import Expected, PlanRequest
from katha.schema import Plan, StoryRecord
from katha.store import Store


class Counting(ScenePlanner):
    """Counts how often it plans; `told` is in its spec, `tokens` are a model's."""

    def __init__(self, told: str = "", tokens: int = 0) -> None:
        self.told, self.tokens, self.made = told, tokens, 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "counting", "told": self.told}

    def expected(self, story: StoryRecord, panels: int) -> Expected:
        return Expected(1, {"input": self.tokens} if self.tokens else {})

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        self.made += 1
        return super().plan(story, request)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "cache") as kept:
        yield kept


def planned_by(planner: Counting, store: Store, record: StoryRecord | None = None, **changes: Any) -> Plan:
    return plan_within(planner, record or story("one"), Settings(**changes), None, plans=store.plans)


def test_a_plan_is_made_once_for_the_same_story_and_wishes(store: Store) -> None:
    first, second = Counting(), Counting()
    made = planned_by(first, store)
    assert planned_by(second, store) == made
    assert (first.made, second.made) == (1, 0)
    other = story("one").model_copy(update={"story_text": "Another text. " + story("one").story_text})
    for changed in ({"record": other}, {"style": "ink"}):
        planned_by(second, store, **changed)
    planned_by(third := Counting("another model"), store)
    assert (second.made, third.made) == (2, 1)


def test_what_a_model_plans_is_made_of_its_own_kept_calls(store: Store) -> None:
    planner = Counting(tokens=900)
    for _ in range(2):
        planned_by(planner, store)
    assert planner.made == 2


def test_other_code_makes_another_plan(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = Counting()
    planned_by(planner, store)
    monkeypatch.setattr(planned, "code_of", lambda module: "edited")
    planned_by(planner, store)
    assert planner.made == 2
    monkeypatch.setattr(planned, "code_of", lambda module: None)
    for _ in range(2):
        planned_by(planner, store)
    assert planner.made == 4, "code without a file cannot be told from other code"


def test_the_hash_of_code_is_that_of_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_planner.py").write_text("A = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("their_planner")
    planned.code_of.cache_clear()
    first = planned.code_of("their_planner.inner")
    (tmp_path / "their_planner.py").write_text("A = 2\n")
    planned.code_of.cache_clear()
    assert first is not None
    assert planned.code_of("their_planner") not in (None, first)
    assert planned.code_of("__main__") is None
    planned.code_of.cache_clear()


def test_a_kept_plan_that_cannot_be_read_is_made_again(store: Store) -> None:
    store.index.put("plan", "key", b'{"no": "plan"}')
    assert store.plans.get("key") is None
    made = planned_by(Counting(), store)
    store.plans.put("key", made)
    assert store.plans.get("key") == made
