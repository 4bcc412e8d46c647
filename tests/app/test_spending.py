"""Pictures that cost money within a budget, and failures that stop everything told from those of one story."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from doubles import BlockRenderer, PixelJudge, ScenePlanner, plugins, prepare, story, tale

from katha.agents.context import require_prices
from katha.agents.editor.editing import edit_board
from katha.agents.editor.edits import ChangeFrame, MoveFrame, RemoveFrame, TakeFrame
from katha.agents.editor.versions import undo
from katha.agents.run import run_story
from katha.app.reports.run_page import write_report
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.configs import load_config
from katha.errors import BudgetError, TransientRenderError, UnfitFrameError, UsageError
from katha.eval_bridge.judges.none import NOBODY, NoJudge
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.comparison.compare import CompareJob, run_comparison
from katha.experiments.comparison.methods import Method
from katha.experiments.needs import run_needs
from katha.jsonio import read_json
from katha.protocols import Evidence, FrameRequest, JudgePrompt, JudgeReply
from katha.renderers.hosted.openai import OpenAIRenderer
from katha.renderers.hosted.service import HostedOptions

PRICE = 0.25
CONFIG = Settings(renderer="block", planner="scenes", judges=("pixel",), seeds=(1, 2), mode="base")


@dataclass
class Sold(BlockRenderer):
    """Blocks at a price a frame; expected to cost twice as much as they do. Fails at a story's third scene."""

    price: float | None = PRICE
    at: str = ""
    error: Exception | None = None

    @property
    def frame_price(self) -> float | None:
        return None if self.price is None else 2 * self.price

    def receipt(self) -> Mapping[str, Any]:
        return {
            "service": "sold", "model": "m", "served": "m", "date": "2026-01-01", "tokens": {}, "cost": self.price,
        }  # fmt: skip

    def _draw(self, request: FrameRequest) -> bytes:
        if self.error is not None and request.scene == 3 and request.story_id == self.at:
            raise self.error
        return super()._draw(request)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def comparison(renderer: Sold, budget: Budget | None = None) -> CompareJob:
    records = [tale("s1"), tale("s2")]
    methods = [Method("sold", CONFIG), Method("free", CONFIG)]
    judges = {"pixel": PixelJudge()}
    given = {
        "sold": plugins(renderer=renderer, judges=judges, budget=budget),
        "free": plugins(renderer=BlockRenderer(version=9), judges=judges, budget=budget),
    }
    return CompareJob(records, methods, CONFIG, prepare, resamples=0, budget=budget, given=given)


def test_a_comparison_stops_before_the_limit_and_goes_on_with_what_it_paid_for(tmp_path: Path) -> None:
    sold = Sold()
    budget = Budget(max_cost=9 * PRICE)
    table = run_comparison(comparison(sold, budget), tmp_path / "out").table
    assert len(sold.drawn) == 8
    assert budget.cost == pytest.approx(8 * PRICE)
    assert table.status == "incomplete"
    first, second = table.methods
    assert (first.boards_valid, second.boards_valid) == (1, 4)
    reasons = {item.reason.split(" Give")[0] for item in table.invalid}
    assert reasons == {"The budget is used up; what was paid for is kept."}
    again = Sold()
    table = run_comparison(comparison(again, Budget(max_cost=100.0)), tmp_path / "out").table
    assert table.status == "finished"
    assert len(again.drawn) == 20 - 8
    assert table.methods[0].services[0].cost == pytest.approx(20 * PRICE)


def test_a_run_stops_before_the_limit_and_the_same_call_pays_for_nothing_twice(tmp_path: Path) -> None:
    sold, config = Sold(), CONFIG.model_copy(update={"mode": "random_bridge", "seeds": (1,)})
    with pytest.raises(BudgetError, match=r"The budget is used up; what was paid for is kept\. Give the same command"):
        run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=sold, budget=Budget(max_cost=1.3)))
    assert len(sold.drawn) == 4
    assert read_json(tmp_path / "out" / "run.json")["spent"] == pytest.approx(4 * PRICE), "a run that stopped says it"
    with pytest.raises(BudgetError):
        run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=sold, budget=Budget(max_calls=1)))
    assert len(sold.drawn) == 5
    result = run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=sold, budget=Budget(max_cost=9.0)))
    assert len(sold.drawn) == 6
    assert [frame.kind for frame in result.board.frames].count("bridge") == 1
    assert read_json(tmp_path / "out" / "run.json")["spent"] == pytest.approx(6 * PRICE)
    undone = plugins(renderer=sold, budget=Budget())
    edit_board(tmp_path / "out", [TakeFrame(frame=1, seed=9)], plugins=undone)
    undo(tmp_path / "out")
    assert read_json(tmp_path / "out" / "run.json")["spent"] == pytest.approx(7 * PRICE), "money does not come back"
    assert f"Spent: ${7 * PRICE:.2f}." in write_report(tmp_path / "out").read_text()


@dataclass
class Slow(Sold):
    """Draws a board's first three frames only while all three are under way."""

    concurrency: int = 4
    meet: threading.Barrier = field(default_factory=lambda: threading.Barrier(3))

    def _draw(self, request: FrameRequest) -> bytes:
        if (request.scene or 0) <= 3:
            self.meet.wait(30)
        return super()._draw(request)


def test_a_picture_waits_for_what_is_under_way_and_costs_less_than_it_could(tmp_path: Path) -> None:
    # Three could cost 1.50 of 1.75, so that a fourth has no room before they are paid for.
    slow, budget = Slow(), Budget(max_cost=1.75)
    run_story(
        story(),
        CONFIG.model_copy(update={"seeds": (1,)}),
        tmp_path / "out",
        plugins=plugins(renderer=slow, budget=budget),
    )
    assert len(slow.drawn) == 5
    assert (budget.cost, budget.stopped) == (pytest.approx(5 * PRICE), False)


def test_parts_of_a_budget_are_counted_apart_under_its_limits() -> None:
    whole = Budget(max_cost=1.0)
    one, two = whole.part(), whole.part()
    assert one.grant(2, 0.4) == 2
    assert two.grant(1, 0.4) == 0
    assert two.stopped
    one.settle(0.4, 0.1)
    one.give_back(1, 0.4)
    assert two.grant_in_turn(0.4)
    two.settle(0.4, 0.3)
    assert [round(item.cost, 2) for item in (one, two, whole)] == [0.1, 0.3, 0.4]
    assert [item.calls for item in (one, two, whole)] == [1, 1, 2]
    assert not two.grant_in_turn(0.7)
    assert whole.told() == "$0.40 of $1.00, 2 calls"


def test_a_run_stops_when_its_judges_have_spent_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, config = PixelJudge(), CONFIG.model_copy(update={"seeds": (1,)})
    limited = plugins(judges={"pixel": judge}, budget=Budget(max_calls=7))
    with pytest.raises(BudgetError):
        run_story(story(), config, tmp_path / "out", plugins=limited)
    assert len(judge.asked) == 7
    run_story(story(), config, tmp_path / "out", plugins=plugins(judges={"pixel": judge}))
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "another"))
    whole = PixelJudge()
    run_story(story(), config, tmp_path / "other", plugins=plugins(judges={"pixel": whole}))
    assert len(judge.asked) == len(whole.asked)


def test_only_calls_that_are_sent_are_counted(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"seeds": (1,), "judges": (NOBODY,)})
    drawn = config.model_copy(update={"renderer": "openai:gpt-image-2.6-flare", "planner": "scene"})
    told = sum(need.calls for need in run_needs([story()], drawn).needs if need.cost != 0.0)
    sold, budget = Sold(price=None), Budget(max_calls=told)
    given = plugins(renderer=sold, judges={NOBODY: NoJudge()}, budget=budget)
    run_story(story(), config, tmp_path / "out", plugins=given)
    assert (budget.calls, len(sold.drawn), budget.stopped) == (5, 5, False)
    edit_board(tmp_path / "out", [ChangeFrame(frame=1, caption="The first."), MoveFrame(frame=2, to=4)], plugins=given)
    edit_board(tmp_path / "out", [RemoveFrame(frame=5)], plugins=given)
    assert (budget.calls, budget.stopped) == (5, False), "nothing was drawn, and nobody was asked"
    with pytest.raises(BudgetError, match=rf"{told} of {told} calls are used"):
        edit_board(tmp_path / "out", [TakeFrame(frame=at, seed=9) for at in (1, 2, 3)][: told - 4], plugins=given)


class Silent(PixelJudge):
    """Calls a service, and leaves every second question unasked."""

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for place, reply in enumerate(super().ask(evidence, prompts)):
            yield JudgeReply("not_asked", error="does not fit") if place % 2 else reply


def test_a_question_that_a_judge_leaves_unasked_is_no_call(tmp_path: Path) -> None:
    budget = Budget()
    given = plugins(judges={"pixel": Silent()}, budget=budget)
    run_story(story(), CONFIG.model_copy(update={"seeds": (1,)}), tmp_path / "out", plugins=given)
    rows = (tmp_path / "out" / "answers.jsonl").read_text().splitlines()
    statuses = [json.loads(row)["status"] for row in rows]
    assert 0 < budget.calls == statuses.count("ok") < len(statuses)


def test_an_unknown_price_is_refused_under_a_limit_in_dollars() -> None:
    unknown = Sold(price=None)
    with pytest.raises(UsageError, match=r"a picture by 'sold:m' is unknown.*price=DOLLARS, or .*--max-calls"):
        require_prices(Budget(max_cost=1.0), {"sold:m": unknown})
    require_prices(Budget(max_calls=1), {"sold:m": unknown, "block": BlockRenderer(), "none": None})
    require_prices(None, {"sold:m": unknown})


def test_what_a_picture_is_expected_to_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    known = OpenAIRenderer("gpt-image-1.5", HostedOptions(quality="low"))
    whole = OpenAIRenderer("gpt-image-1.5-2026")
    assert known.frame_price == pytest.approx((1_000 * 5 + 4 * 6500 * 8 + 408 * 32) / 1e6)
    assert whole.frame_price == pytest.approx((1_000 * 5 + 4 * 6500 * 8 + 6240 * 32) / 1e6)
    # From words alone, a low quality costs what it costs: the pictures that are not sent are not reckoned.
    flare = OpenAIRenderer("gpt-image-2.6-flare", HostedOptions(quality="low"))
    assert flare.price_of(0, (1024, 1024)) == pytest.approx((1_000 * 5 + 196 * 30) / 1e6)
    assert flare.price_of(0, (2048, 2048)) == pytest.approx((1_000 * 5 + 4 * 196 * 30) / 1e6)
    assert flare.price_of(2, (1024, 1024)) == pytest.approx((1_000 * 5 + 2 * 1536 * 8 + 196 * 30) / 1e6)
    assert OpenAIRenderer("brand-new").frame_price is None
    assert OpenAIRenderer("brand-new", HostedOptions(price=0.04)).frame_price == 0.04
    assert OpenAIRenderer("brand-new", HostedOptions(price=0.04)).spec() == OpenAIRenderer("brand-new").spec()


def test_every_price_has_a_date_and_a_source() -> None:
    services = [provider["pictures"] for provider in load_config("providers.yaml").values() if "pictures" in provider]
    for service in services:
        for row in service["models"].values():
            assert row["date"].year >= 2026
            assert row["source"].startswith("https://")
            card = service["default"] | row
            priced = card["picture_tokens"] or (card.get("dollars") or {}).get("drawn", {})
            assert (min(priced.values()) > 0) if priced else ("no price" in row["source"])


@pytest.mark.parametrize("stops", [True, False])
def test_a_comparison_tells_a_story_s_failure_from_everybody_s(tmp_path: Path, stops: bool) -> None:
    error = UsageError("The device is taken.") if stops else UnfitFrameError("The prompt of scene 3 is too long.")
    job = comparison(Sold(at="s1", error=error))
    if stops:
        with pytest.raises(UsageError, match="taken"):
            run_comparison(job, tmp_path / "out")
        return
    table = run_comparison(job, tmp_path / "out").table
    assert (table.status, table.methods[0].boards_valid) == ("finished", 2)
    assert {item.reason for item in table.invalid} == {"The prompt of scene 3 is too long."}


@pytest.mark.parametrize("error", [TransientRenderError("No network."), UsageError("Wrong key.")])
def test_an_ablation_that_cannot_go_on_is_not_finished(tmp_path: Path, error: Exception) -> None:
    def job(renderer: Sold) -> AblationJob:
        suite = load_suite("length").only(("base",))
        config = CONFIG.model_copy(update={"seeds": (1,)})
        made = plugins(renderer=renderer, planner=ScenePlanner())
        return AblationJob([tale("s1"), tale("s2")], suite, config, given=made, resamples=0)

    if isinstance(error, UsageError):
        with pytest.raises(UsageError):
            run_ablation(job(Sold(at="s2", error=error)), tmp_path / "out")
    else:
        first = run_ablation(job(Sold(at="s2", error=error)), tmp_path / "out")
        assert (first.status, first.table.rows[0].invalid_stories) == ("incomplete", {"s2": "No network."})
    assert read_json(tmp_path / "out" / "ablation.json")["status"] in ("running", "incomplete")
    mended = Sold()
    table = run_ablation(job(mended), tmp_path / "out").table
    assert {request.story_id for request in mended.drawn} == {"s2"}
    assert table.rows[0].invalid_stories == {}
