"""A judge that cannot read the renderer's pictures is refused before anything is drawn, and one that can is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import katha
from katha.agents.fitting import fitting_judge, unfit_judge
from katha.app.cli.main import app
from katha.app.needs import needs_of_run, needs_of_runs
from katha.config import Settings, resolve
from katha.errors import UsageError

STORY = Path(__file__).parents[2] / "examples" / "fox_and_crow.txt"
PAID = "openai:gpt-image-2.6-flare"


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("call", [katha.run_story, needs_of_run, needs_of_runs, katha.run_stories])
def test_it_is_refused_with_another_and_its_price(call: object, tmp_path: Path) -> None:
    where = {"out": tmp_path / "out"} if call in (katha.run_story, katha.run_stories) else {}
    with pytest.raises(UsageError) as refused:
        call(STORY, renderer=PAID, **where)  # type: ignore[operator]
    assert refused.value.message == (
        f"The judge 'sketch-reader' reads sketches alone, and {PAID!r} draws other pictures: it would refuse all."
    )
    hint = str(refused.value.hint)
    assert hint.startswith("Give --judge openai:gpt-6-luna (at most $0.")
    assert hint.endswith(" for this), or --judge none to plan and draw only.")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("renderer", "judge", "unfit"),
    [
        (PAID, "sketch-reader", True),
        ("gemini:any", "sketch-reader", True),
        ("vector:anthropic:any", "sketch-reader", True),
        ("flux", "sketch-reader", True),
        (PAID, "none", False),
        (PAID, "openai:gpt-4o", False),
        ("sketch", "sketch-reader", False),
        ("sketch:loose", "sketch-reader", False),
        ("folder:boards", "sketch-reader", False),
        ("doubles:BlockRenderer", "sketch-reader", False),
    ],
)
def test_a_judge_is_unfit_only_where_that_is_known(renderer: str, judge: str, unfit: bool) -> None:
    assert unfit_judge(Settings(renderer=renderer, judges=(judge,))) == (judge if unfit else None)


def test_the_proposal_is_of_the_renderer_s_vendor_or_of_a_key_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fitting_judge(Settings(renderer="gemini:any")).startswith("gemini:")
    assert fitting_judge(Settings(renderer="vector:openai:any")).startswith("openai:")
    assert fitting_judge(Settings(renderer="flux")).startswith("anthropic:")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert fitting_judge(Settings(renderer="flux")).startswith("openai:")


def test_nobody_as_judge_plans_and_draws_one_board(tmp_path: Path) -> None:
    assert resolve({"judges": "none"}, environment={}).mode == "base"
    assert resolve({"judges": "none", "mode": "full"}, environment={}).mode == "full", "a mode that is named stays"
    assert resolve({}, environment={}).mode == "full"
    done = CliRunner().invoke(app, ["run", str(STORY), "--judge", "none", "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "STG" not in done.stdout
    assert "Not judged: no judge was named (--judge)." in done.stdout
    candidates = json.loads((tmp_path / "out" / "candidates.json").read_text())["candidates"]
    assert len(candidates) == 1
    needs = needs_of_run(STORY, renderer=PAID, judges="none")
    assert needs.unjudged
    assert [need.kind for need in needs.needs if need.calls] == ["plans", "pictures"]
