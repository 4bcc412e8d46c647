"""`katha metrics` as a study: boards of every origin, nothing measured twice, failures counted, beside STG."""

from __future__ import annotations

import csv
import json
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from commands import Liked
from doubles import story
from evals import Watcher, draw, go, records
from PIL import Image
from scipy import stats

from katha.app.reports.metrics_page import write_metrics_report
from katha.errors import JudgeError, OutputFolderError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.engine import Retry
from katha.eval_bridge.metrics import MetricBoard, MetricContext, unit
from katha.eval_bridge.metrics.continuity import Continuity
from katha.experiments.metrics.job import MetricsJob, MetricsResult, estimate, measure
from katha.experiments.metrics.relation import board_gaps, rank_correlation, relations
from katha.experiments.metrics.sources import Beside, find_sources
from katha.experiments.metrics.tables import latex
from katha.pictures import decode
from katha.protocols import Evidence, JudgeReply, PlainPrompt
from katha.schema.metrics import GapRow, MetricCard, MetricPart, MetricValue
from katha.testing import ScriptedJudge, scripted_words


class Good(Liked):
    """The same by a name that has to be escaped."""

    card: ClassVar[MetricCard] = Liked.card.model_copy(update={"name": "good", "title": "Good & fair"})


class Bright:
    """How bright a frame is; and how bright a method's frames are together."""

    card: ClassVar[MetricCard] = MetricCard(
        name="bright",
        title="Brightness",
        paper="none",
        formula="mean",
        level="board",
        parts=(MetricPart(name="mean", about="mean", high=255.0),),
    )

    def spec(self) -> Mapping[str, Any]:
        return {"name": "bright"}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        yield board.value("mean", float(np.mean([np.asarray(decode(data)) for data in board.images])))


class Together(Bright):
    card: ClassVar[MetricCard] = Bright.card.model_copy(
        update={
            "name": "together",
            "level": "set",
            "parts": (MetricPart(name="mean", about="mean", high=255.0, average="set"),),
        }
    )
    measure = None  # type: ignore[assignment]

    def spec(self) -> Mapping[str, Any]:
        return {"name": "together"}

    def measure_set(self, boards: Iterable[MetricBoard], context: MetricContext) -> Iterable[MetricValue]:
        means = [float(np.mean([np.asarray(decode(data)) for data in board.images])) for board in boards]
        yield MetricValue(metric="together", part="mean", method="", value=float(np.mean(means)), n=len(means))


def judge(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
    share = evidence.images[0][-20] / 255.0
    return scripted_words(Yes=share, No=1.0 - share)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def run(tmp: Path, metrics: list[Any], out: str = "out", scripted: Any = judge, **options: Any) -> MetricsResult:
    stories = records(3)
    given = options.pop("boards", None) or [
        f"{name}={draw(tmp / name, stories, shift).folder}" for shift, name in enumerate(("flux", "kontext"))
    ]
    job = MetricsJob(
        sources=find_sources(given, stories, Beside()),
        metrics=options.pop("named", None) or {metric.card.name: metric for metric in metrics},
        judge=ScriptedJudge(scripted) if not hasattr(scripted, "ask") else scripted,
        judge_name="scripted",
        retry=Retry(attempts=1, first_wait=0.0),
        **options,
    )
    result = measure(job, tmp / out)
    write_metrics_report(result.out, job.sources)
    return result


def test_every_method_has_its_number_and_nothing_is_measured_twice(tmp_path: Path) -> None:
    scripted = ScriptedJudge(judge)
    first = run(tmp_path, [Good(), Bright(), Together()], scripted=scripted)
    table = first.table
    assert [column.name for column in table.columns] == ["good/yes", "bright/mean", "together/mean"]
    assert [(row.method, row.boards) for row in table.rows] == [("flux", 3), ("kontext", 3)]
    for row in table.rows:
        assert row.cells["together/mean"].value == pytest.approx(row.cells["bright/mean"].value)
        assert row.cells["bright/mean"].boards == 3
    asked = len(scripted.asked)
    assert 0 < asked < 30, "equal pictures of two boards are asked about once"
    again = run(tmp_path, [Good(), Bright(), Together()], scripted=scripted)
    assert (again.reused, again.table, len(scripted.asked)) == (True, table, asked)
    other = run(tmp_path, [Good(), Bright(), Together()], out="other", scripted=scripted)
    assert (other.table, len(scripted.asked)) == (table, asked)
    for name in ("values.jsonl", "table.json", "table.csv", "table.tex", "values.csv"):
        assert (first.out / name).read_bytes() == (other.out / name).read_bytes(), name
    with (first.out / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert float(rows[1]["value"]) == pytest.approx(table.rows[0].cells["bright/mean"].value)
    assert r"Good \& fair" in latex(table)
    page = (first.out / "report.html").read_text()
    assert "Good &amp; fair" in page
    assert "No judge has answered about these boards" in page


def test_a_part_of_the_stories_stands_beside_all_of_them_in_one_table(tmp_path: Path) -> None:
    """ViStoryBench's Table S2: the lite set beside the full one, each mean over its own stories."""
    stories = records(3)
    full = draw(tmp_path / "full", stories).folder
    for record in stories[:2]:
        shutil.copytree(full / record.story_id, tmp_path / "lite" / record.story_id)
    result = run(tmp_path, [Bright()], boards=[f"full={full}", f"lite={tmp_path / 'lite'}"])
    light = [
        np.mean([np.asarray(Image.open(path).convert("RGB")) for path in sorted((full / record.story_id).iterdir())])
        for record in stories
    ]
    cells = {row.method: row.cells["bright/mean"] for row in result.table.rows}
    assert (cells["full"].boards, cells["lite"].boards) == (3, 2)
    assert cells["full"].value == pytest.approx(np.mean(light), abs=1e-6)
    assert cells["lite"].value == pytest.approx(np.mean(light[:2]), abs=1e-6)
    assert result.table.nulls == []


class Slow(Bright):
    """Takes its time over every picture."""

    card: ClassVar[MetricCard] = Bright.card.model_copy(update={"name": "slow"})

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        time.sleep(0.02 * len(board.images))
        yield board.value("mean", 1.0)


def test_what_a_metric_takes_is_told_by_picture(tmp_path: Path) -> None:
    begun = time.perf_counter()
    result = run(tmp_path, [Slow(), Together()])
    whole = time.perf_counter() - begun
    took = result.state.seconds
    assert {name: (one.pieces, one.pictures) for name, one in took.items()} == {"slow": (6, 30), "together": (2, 30)}
    assert 30 * 0.02 <= took["slow"].seconds < whole
    assert took["slow"].seconds + took["together"].seconds < whole
    kept = json.loads((result.out / "metrics.json").read_text())["seconds"]
    assert kept["slow"] == took["slow"].model_dump()


def test_a_killed_measurement_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    whole = run(tmp_path, [Good(), Bright()], out="whole")
    (tmp_path / "cache").rename(tmp_path / "old")
    count = 0

    def failing(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
        nonlocal count
        count += 1
        if count > 6:
            raise JudgeError("The key is wrong.")
        return judge(evidence, prompt)

    with pytest.raises(JudgeError):
        run(tmp_path, [Good(), Bright()], scripted=failing)
    scripted = ScriptedJudge(judge)
    result = run(tmp_path, [Good(), Bright()], scripted=scripted)
    assert result.status == "finished"
    for name in ("values.jsonl", "table.json", "table.csv"):
        assert (result.out / name).read_bytes() == (whole.out / name).read_bytes(), name
    with pytest.raises(OutputFolderError, match="other boards, metrics, mode or judge"):
        run(tmp_path, [Bright()])


def test_what_fails_on_the_way_is_tried_again_and_what_a_judge_refuses_is_not(tmp_path: Path) -> None:
    def broken(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
        return JudgeReply("transport_failed", error="the line is dead")

    first = run(tmp_path, [Good(), Bright()], scripted=broken)
    assert (first.status, first.table.rows[0].cells["good/yes"].value) == ("incomplete", None)
    assert [(item.column, item.reason, item.count) for item in first.table.nulls] == [
        ("good/yes", "transport_failed: the line is dead", 6)
    ]
    second = run(tmp_path, [Good(), Bright()])
    assert (second.status, second.table.nulls) == ("finished", [])
    refusing = ScriptedJudge(lambda evidence, prompt: JudgeReply("refused", error="no"), name="refusing")
    done = run(tmp_path, [Good()], out="refused", scripted=refusing)
    assert (done.status, done.table.rows[0].cells["good/yes"].nulls) == ("finished", 3)


def test_a_budget_stops_it_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    short = run(tmp_path, [Good()], budget=Budget(max_calls=4))
    assert short.status == "budget_stopped"
    assert {item.reason.partition(":")[0] for item in short.table.nulls} == {"budget_stopped"}
    assert run(tmp_path, [Good()]).status == "finished"


def test_a_dry_run_counts_what_the_cache_lacks_and_asks_nothing(tmp_path: Path) -> None:
    stories = records(3)
    boards = [str(draw(tmp_path / "flux", stories).folder)]
    scripted = ScriptedJudge(judge)
    job = MetricsJob(find_sources(boards, stories, Beside()), {"good": Good()}, judge=scripted, judge_name="scripted")
    found = estimate(job)
    pictures = len({path.read_bytes() for path in (tmp_path / "flux").rglob("*.png")})
    assert (found.calls, found.reused + found.calls, scripted.asked) == (pictures, 15, [])
    measure(job, tmp_path / "out")
    after = estimate(job)
    assert (after.calls, after.reused, len(scripted.asked)) == (0, 15, pictures)


def test_a_metric_is_asked_for_by_another_name_than_its_card_s(tmp_path: Path) -> None:
    """A class path (`pkg:Class`) is no card's name; the table has the card's."""
    named = run(tmp_path, [], named={"shop:Bright": Bright(), "shop:Together": Together()})
    plain = run(tmp_path, [Bright(), Together()], out="plain")
    assert [column.name for column in named.table.columns] == ["bright/mean", "together/mean"]
    assert (named.out / "values.jsonl").read_bytes() == (plain.out / "values.jsonl").read_bytes()
    with pytest.raises(UsageError, match="both call themselves 'bright'"):
        run(tmp_path, [], out="twice", named={"bright": Bright(), "shop:Bright": Bright()})


def test_several_workers_give_the_same_bytes(tmp_path: Path) -> None:
    one = run(tmp_path, [Bright(), Continuity()], out="one")
    four = run(tmp_path, [Bright(), Continuity()], out="four", workers=4)
    assert (one.out / "table.json").read_bytes() == (four.out / "table.json").read_bytes()


def test_a_board_that_cannot_be_used_is_counted(tmp_path: Path) -> None:
    draw(tmp_path / "flux", records(3))
    (tmp_path / "flux" / "s1" / "3.png").unlink()
    found = run(tmp_path, [Bright()], boards=[f"flux={tmp_path / 'flux'}"])
    assert [(item.reason, item.count) for item in found.table.nulls] == [
        ("the board cannot be used: frame 3 is missing", 1)
    ]
    assert found.table.rows[0].cells["bright/mean"].boards == 2


def test_a_plain_folder_needs_stories_and_a_judge_its_metric(tmp_path: Path) -> None:
    draw(tmp_path / "flux", records(3))
    with pytest.raises(UsageError, match="nobody says of which stories"):
        find_sources([str(tmp_path / "flux")], None, Beside())
    sources = find_sources([str(tmp_path / "flux")], records(3), Beside())
    with pytest.raises(UsageError, match="'good' needs a judge"):
        MetricsJob(sources, {"good": Good()})
    with pytest.raises(UsageError, match="answers katha's own questions only"):
        MetricsJob(sources, {"good": Good()}, judge=Watcher(), judge_name="watcher")
    with pytest.raises(UsageError, match="There is no board"):
        find_sources([str(tmp_path / "flux")], [story()], Beside())


def test_an_evaluation_brings_its_boards_stories_and_stg(tmp_path: Path) -> None:
    stories = records(8)
    evaluated = go(tmp_path, [Watcher()], stories=stories)
    sources = find_sources([str(tmp_path / "out")], None, Beside())
    gaps = [gap for source in sources for gap in board_gaps(source)]
    assert len(gaps) == 16
    by_method = {name: [gap.filtered for gap in gaps if gap.method == name] for name in ("flux", "kontext")}
    block = evaluated.scores.methods["flux"].judges["watcher"].filtered
    assert np.mean([value for value in by_method["flux"] if value is not None]) == pytest.approx(block.stg, abs=30)
    job = MetricsJob(sources, {"bright": Bright()})
    table = measure(job, tmp_path / "measured").table
    assert {item.block for item in table.relations} == {"raw", "filtered", "common_valid"}
    write_metrics_report(tmp_path / "measured", sources)
    page = (tmp_path / "measured" / "report.html").read_text()
    assert "Beside STG" in page
    assert json.loads((tmp_path / "measured" / "table.json").read_text())["gaps"]


def test_rank_correlations_are_scipy_s_and_intervals_leave_out_stories() -> None:
    generator = np.random.default_rng(0)
    keys = [("m", f"s{at:02d}") for at in range(40)]
    x = generator.integers(0, 12, 40).astype(float)
    y = 100 - 3 * x + generator.normal(0, 8, 40)
    gaps = [
        GapRow(method=method, story_id=name, filtered=value, raw=value)
        for (method, name), value in zip(keys, y, strict=True)
    ]
    found = relations(["c/p"], {"c/p": dict(zip(keys, x, strict=True))}, gaps)
    assert {item.block: item.n for item in found} == {"raw": 40, "filtered": 40, "common_valid": 0}
    expected = stats.spearmanr(x, y).statistic
    assert found[0].spearman == pytest.approx(expected, abs=1e-12)
    # Student's t of the jackknife on Fisher's scale, its degrees of freedom by how unevenly stories carry it.
    left = np.arctanh([stats.spearmanr(np.delete(x, at), np.delete(y, at)).statistic for at in range(40)])
    error, tails = np.sqrt(39 * left.var()), stats.moment(left, 4) / left.var() ** 2
    reach = stats.t.ppf(0.975, min(39, 80 / (tails - 37 / 39))) * error
    middle = np.arctanh(expected)
    assert found[0].ci95 == pytest.approx((np.tanh(middle - reach), np.tanh(middle + reach)), abs=1e-8)
    assert found[2].spearman is None
    assert rank_correlation(np.ones(5), np.arange(5.0)) is None
    assert unit(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]
