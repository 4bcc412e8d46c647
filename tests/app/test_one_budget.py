"""One budget over all that a command pays for: plans, captions, questions, pictures, answers and verdicts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from api_server import serving
from doubles import PixelJudge, plugins, tale

from katha.agents.context import load_plugins, make_similarity
from katha.app.studies import read_records
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.errors import BudgetError, UsageError
from katha.eval_bridge.judging.budget import STOPPED, Budget
from katha.eval_bridge.matching.match import Pair
from katha.eval_bridge.matching.rules import make_decider
from katha.experiments.ablate.job import AblationJob
from katha.experiments.needs import run_needs
from katha.experiments.runner import PluginPool
from katha.models.base import Turn
from katha.models.registry import make_model
from katha.planners.fragments import FragmentPlanner
from katha.protocols import PlanRequest
from katha.schema import Question, StoryRecord

FABLE = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def fable() -> list[StoryRecord]:
    return read_records(FABLE)


def pairs(count: int) -> list[Pair]:
    asked = Question(
        question_id="q", story_id="s", question_type="causal", question="Why?", gold_answer="rain",
        accepted_answers=["rain"],
    )  # fmt: skip
    return [Pair(f"because of water {number}", asked) for number in range(count)]


@pytest.mark.parametrize("planner", ["fragments:openai:gpt-4o", "constrained:gemma-st:openai:gpt-4o"])
def test_every_planner_with_a_model_is_paid_from_the_budget(planner: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("openai", lambda number, body: {"text": json.dumps({"caption": "A fox.", "scenes": []})}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        config = Settings(planner=planner, panels=2)
        shelf = PluginPool({}, make_similarity(config), Budget(max_calls=0))
        for planned in (load_plugins(config, Budget(max_cost=0.0)), shelf.plugins(config)):
            with pytest.raises(BudgetError, match="used up"):
                planned.planner.plan(tale("s"), PlanRequest(panels=len(tale("s").scenes)))
        assert server.number == 0


def test_captions_are_reckoned_with() -> None:
    planner, record = FragmentPlanner("openai:gpt-4o"), tale("s")
    told = planner.expected(record, 3)
    assert told.calls == 3
    assert planner.cost(told.tokens)
    plain = record.model_copy(update={"scenes": []})
    assert planner.expected(plain, 3).calls == 4


def test_verdicts_are_paid_from_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(number: int, body: object) -> dict[str, str]:
        return {"text": "1: same\n2: different\n3: same"}

    with serving("openai", reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        spent = Budget(max_calls=0)
        decider = make_decider("llm:openai:gpt-4o", None, spent)
        assert decider is not None
        assert {found.reason for found in decider.decide(pairs(3))} == {STOPPED}
        assert {found.right for found in decider.decide(pairs(1))} == {None}
        assert spent.stopped
        assert server.number == 0
        budget = Budget(max_cost=1.0)
        decider = make_decider("llm:openai:gpt-4o", None, budget)
        assert decider is not None
        assert [found.right for found in decider.decide(pairs(3))] == [True, False, True]
        assert budget.calls == server.number == 1
        assert 0 < budget.cost < 0.01


def test_a_verdict_without_a_price_is_refused_under_a_limit_in_dollars() -> None:
    with pytest.raises(UsageError, match=r"nobody-knows.*price|price.*nobody-knows"):
        make_decider("llm:openai:nobody-knows", None, Budget(max_cost=1.0))


def test_an_ablation_s_verdicts_are_paid_from_its_plug_ins_budget(tmp_path: Path) -> None:
    budget = Budget(max_calls=0)
    config = Settings(renderer="block", planner="scenes", judges=("pixel",), matching="llm:openai:gpt-4o")
    given = plugins(judges={"pixel": PixelJudge()}, budget=budget)
    job = AblationJob([tale("s")], load_suite("terms"), config, given=given)
    found = job.rule(config.matching, tmp_path).verdict("because of water", pairs(1)[0].question)
    assert found.right is None
    assert budget.stopped


def test_a_dry_run_counts_verdicts() -> None:
    config = Settings(
        planner="gemma-st:openai:gpt-4o", renderer="openai:gpt-image-2.6-flare", judges=("openai:gpt-4o",),
        matching="llm:openai:gpt-4o-mini", mode="base",
    )  # fmt: skip
    needs = run_needs(fable(), config)
    (verdicts,) = (need for need in needs.needs if need.kind == "verdicts")
    assert verdicts.calls > 0
    assert verdicts.cost
    assert not [
        need
        for need in run_needs(fable(), config.model_copy(update={"answers": "choice"})).needs
        if need.kind == "verdicts"
    ]


def test_thoughts_that_a_server_leaves_out_of_its_count_are_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "id": "c", "object": "chat.completion", "created": 1, "model": "gemini-3.8-flash",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 620},
    }  # fmt: skip
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    with serving("openai", lambda number, body: {"body": said}) as server:
        monkeypatch.setenv("GEMINI_BASE_URL", server.url)
        usage = make_model("gemini:gemini-3.8-flash").complete([Turn("user", "Think.")], None).usage
    assert usage["tokens"]["output"] == 520
    assert usage["cost"] == pytest.approx((100 * 0.75 + 520 * 3.75) / 1e6)


def test_what_a_model_thinks_is_reckoned_with_and_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    config = Settings(
        planner="scene", renderer="openai:gpt-image-2.6-flare", judges=("anthropic:claude-haiku-5-5",), mode="base"
    )
    (thinks,) = (need for need in run_needs(fable(), config).needs if need.kind == "answers")
    plain = config.model_copy(update={"judges": ("anthropic:claude-haiku-4-5",)})
    (short,) = (need for need in run_needs(fable(), plain).needs if need.kind == "answers")
    assert thinks.output_tokens > 2 * short.output_tokens
