"""The judged measures of VCMS, ViStoryBench and criterial rating as one study: table, nulls, dry run, resumption."""

from __future__ import annotations

from pathlib import Path

import pytest
from evals import draw, records

from katha.eval_bridge.metrics.criterial import BaselineRating, CriterialRating
from katha.eval_bridge.metrics.vcms import VcmsMetric
from katha.eval_bridge.metrics.vistory_judged import VistoryPrompts
from katha.experiments.metrics.job import MetricsJob, estimate, measure
from katha.experiments.metrics.sources import Beside, find_sources
from katha.protocols import Evidence, PlainPrompt
from katha.schema import Scene
from katha.testing import ScriptedJudge


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def reply(evidence: Evidence, prompt: PlainPrompt) -> str:
    if not evidence.images:
        return "1. Somebody is seen\n2. It is day"
    if "half-point" in prompt.text:
        return "1.5"
    if "Criteria Responses" in prompt.text:
        return "1. Somebody is seen ✓\n2. It is day ?"
    return "Score: 3" if "Score: <Your Score>" in prompt.text else "0.5"


def job(folder: Path, judge: ScriptedJudge) -> MetricsJob:
    scenes = [Scene(scene_index=at, scene_text=f"Somebody does thing {at}.") for at in range(1, 6)]
    stories = [record.model_copy(update={"scenes": scenes}) for record in records(3)]
    boards = find_sources([str(draw(folder, stories).folder)], stories, Beside())
    metrics = [VcmsMetric(), VistoryPrompts(), CriterialRating(), BaselineRating()]
    return MetricsJob(boards, {item.card.name: item for item in metrics}, judge=judge, judge_name="scripted")


def test_a_dry_run_counts_what_is_asked_and_the_table_has_every_part(tmp_path: Path) -> None:
    judge = ScriptedJudge(reply)
    work = job(tmp_path / "flux", judge)
    weighed = estimate(work)
    assert judge.asked == []
    result = measure(work, tmp_path / "out")
    shared = 3 * 5  # a dry run keeps no answer, so the criteria that both raters ask for are weighed for each
    assert weighed.calls == len(judge.asked) + shared
    (row,) = result.table.rows
    cells = {name: cell.value for name, cell in row.cells.items()}
    assert cells["vcms/overall"] == 0.5
    assert (cells["criterial/share"], cells["criterial/points"]) == (0.75, 1.5)
    assert "Somebody is seen" in (result.out / "values.csv").read_text(encoding="utf-8")
    assert cells["criterial-baseline/share"] == 0.75
    assert cells["vistory-prompts/interaction"] == 3.0
    assert (cells["vistory-prompts/action"], cells["vistory-prompts/alignment"]) == (None, None)
    nulls = {(item.column, item.reason): item.count for item in result.table.nulls}
    assert nulls["vcms/character", "the first frame has none before it"] == 3
    assert nulls["vistory-prompts/action", "there is no reference picture of its characters"] == 3
    asked = len(judge.asked)
    assert measure(work, tmp_path / "out").reused
    assert len(judge.asked) == asked
