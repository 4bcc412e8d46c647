"""`katha metrics` on the command line, `--metrics` beside a comparison, `katha new metric`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import cli_child
import numpy as np
import pytest
from evals import Watcher, draw, go, records
from PIL import Image
from typer.testing import CliRunner

import katha
from katha.app.cli.main import app
from katha.app.cli.plugins import new_plugin
from katha.app.measuring import MetricOptions
from katha.app.reports.metrics_page import read_measures
from katha.config import read_settings
from katha.errors import UsageError
from katha.eval_bridge.metrics.base import metric_cards
from katha.jsonio import canonical

SHIPPED = {"clip-t", "clip-i", "dino", "vqascore", "lpips", "ssim", "vinabench", "clip-t-mrr", "vqa-mrr", "continuity"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def stories(tmp: Path) -> str:
    path = tmp / "stories.jsonl"
    path.write_bytes(b"".join(canonical(record.model_dump(mode="json")) + b"\n" for record in records(3)))
    return str(path)


def test_the_metrics_that_ship_are_listed_with_what_they_need() -> None:
    told = CliRunner().invoke(app, ["metrics", "--list"])
    assert told.exit_code == 0
    assert set(metric_cards()) >= SHIPPED
    for name, card in metric_cards().items():
        assert name in told.stdout
        assert card.name == name
        assert card.paper
        assert card.formula
        assert card.licence


def test_a_table_a_report_and_a_second_call_that_does_nothing(tmp_path: Path) -> None:
    go(tmp_path, [Watcher()])
    arguments = ["metrics", str(tmp_path / "out"), "--metric", "continuity", "--out", str(tmp_path / "measured")]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 1, "no board has a plan, so there is no number at all"
    assert "continuity/direction: 6 without a value: the board has no plan" in first.stdout
    again = CliRunner().invoke(app, [*arguments, "--json"])
    told = json.loads(again.stdout)
    assert (told["reused"], told["status"]) == (True, "finished")
    assert len(told["table"]["gaps"]) == 6
    assert (tmp_path / "measured" / "report.html").is_file()


def test_a_dry_run_needs_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    draw(tmp_path / "flux", records(3))
    arguments = ["metrics", str(tmp_path / "flux"), "--stories", stories(tmp_path), "--metric", "vinabench"]
    asked = [*arguments, "--judge", "openai:gpt-4o", "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(app, [*asked, "--dry-run"])
    assert told.exit_code == 0, told.output
    assert "3 boards. Nothing was asked." in told.stdout
    assert not (tmp_path / "out").exists()
    wrong = CliRunner().invoke(app, asked)
    assert wrong.exit_code != 0
    assert "needs a key" in str(wrong.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "There is no board"),
        (["BOARDS", "--metric", "clip-x"], "No metric is called 'clip-x'"),
        (["BOARDS", "--mode", "letter"], "--mode is paper or code"),
        (["BOARDS", "--metric", "clip-t", "--metric-option", "lpips.net=vgg"], "is not METRIC.KEY=VALUE"),
        (["BOARDS", "--metric", "lpips", "--metric-option", "net=mlp"], "LPIPS has no network 'mlp'"),
        (["BOARDS", "--metric", "vinabench"], "answers katha's own questions only"),
        (["BOARDS", "--references", "nowhere"], "--references: there is no folder"),
    ],
)
def test_wrong_use_is_one_sentence(tmp_path: Path, arguments: list[str], message: str) -> None:
    draw(tmp_path / "flux", records(3))
    given = [str(tmp_path / "flux") if item == "BOARDS" else item for item in arguments]
    told = CliRunner().invoke(app, ["metrics", *given, "--stories", stories(tmp_path), "--out", str(tmp_path / "out")])
    assert message in str(told.exception)
    assert not (tmp_path / "out").exists()


def test_python_measures_as_the_command_line_does(tmp_path: Path) -> None:
    go(tmp_path, [Watcher()])
    heard: list[tuple[str, int, int]] = []
    result = katha.measure(
        tmp_path / "out", tmp_path / "measured", on_progress=lambda *told: heard.append(told), metric=["continuity"]
    )
    assert [item[1:] for item in heard] == [(at, 6) for at in range(1, 7)]
    assert result.table.columns[0].name == "continuity/direction"


def test_a_comparison_shows_other_papers_measures_beside_its_own(tmp_path: Path) -> None:
    out = tmp_path / "compared"
    story = Path(__file__).parents[2] / "examples" / "fox_and_crow.json"
    arguments = ["compare", str(story), "--renderer", "sketch", "--renderer", "sketch:ink", "--seeds", "42"]
    told = CliRunner().invoke(app, [*arguments, "--metrics", "ssim,continuity", "--out", str(out)])
    assert told.exit_code == 0, told.output
    assert "ssim/similarity" in told.stdout
    table = read_measures(out)
    assert table is not None
    for row in table.rows:
        assert 0.0 < (row.cells["ssim/similarity"].value or 0.0) < 1.0
        assert row.cells["continuity/direction"].value is None
    assert table.gaps, "the comparison's answers stand beside them"
    assert "Other papers' measures" in (out / "report.html").read_text().replace("&#39;", "'")
    again = CliRunner().invoke(app, [*arguments, "--metrics", "ssim,continuity", "--out", str(out), "--json"])
    assert json.loads(again.stdout)["metrics"]["columns"][0]["name"] == "ssim/similarity"


def test_an_ablation_shows_other_papers_measures_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_child.install(monkeypatch)
    out = tmp_path / "ablated"
    story = Path(__file__).parents[2] / "examples" / "fox_and_crow.txt"
    made = ["--renderer", "block", "--judge", "pixel", "--size", "96x64", "--seeds", "1", "--resamples", "0"]
    arguments = ["ablate", str(story), "--rows", "base,full", *made, "--metrics", "ssim", "--out", str(out)]
    told = CliRunner().invoke(app, arguments)
    assert told.exit_code == 0, told.output
    assert "ssim/similarity" in told.stdout
    table = read_measures(out)
    assert table is not None
    assert [row.method.partition("@")[0] for row in table.rows] == ["base", "full"]
    assert all(0.0 < (row.cells["ssim/similarity"].value or 0.0) < 1.0 for row in table.rows)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "SSIM" in page
    (linked,) = set(re.findall(r'href="(metrics/[^"]+)"', page))
    assert (out / linked).is_file()


PREDICTOR = """
import io
import numpy as np
from PIL import Image

class Lightness:
    def spec(self):
        return {"name": "lightness", "version": 1}

    def encode_images(self, images):
        grey = [np.asarray(Image.open(io.BytesIO(data)).convert("L"), float) for data in images]
        return np.array([[1.0 + 9.0 * each.mean() / 255.0] for each in grey])

class Deaf:
    pass
"""


def test_a_predictor_of_the_user_s_measures_aesthetics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy_aesthetics.py").write_text(PREDICTOR, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toy_aesthetics", raising=False)
    for shift, name in enumerate(("flux", "kontext")):
        draw(tmp_path / name, records(3), shift)
    boards = ["metrics", str(tmp_path / "flux"), str(tmp_path / "kontext"), "--stories", stories(tmp_path)]
    asked = [*boards, "--metric", "vistory-aesthetics", "--metric-option"]
    told = CliRunner().invoke(
        app, [*asked, "encoder=toy_aesthetics:Lightness", "--out", str(tmp_path / "out"), "--json"]
    )
    assert told.exit_code == 0, told.output
    for row in json.loads(told.stdout)["table"]["rows"]:
        pictures = sorted((tmp_path / row["method"]).rglob("*.png"))
        light = [1.0 + 9.0 * np.asarray(Image.open(path).convert("L"), float).mean() / 255.0 for path in pictures]
        cell = row["cells"]["vistory-aesthetics/aesthetics"]
        assert (cell["value"], cell["boards"]) == (pytest.approx(np.mean(light), abs=1e-5), 3)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Aesthetics (ViStoryBench)" in page
    deaf = CliRunner().invoke(app, [*asked, "encoder=toy_aesthetics:Deaf", "--out", str(tmp_path / "deaf")])
    assert "has no encode_images" in str(deaf.exception)
    assert not (tmp_path / "deaf").exists()


def test_a_metric_s_skeleton_keeps_its_contract(tmp_path: Path) -> None:
    new_plugin("metric", "sharp-edges", tmp_path / "plugin")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(tmp_path / "plugin")],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "plugin"), "PATH": "/usr/bin:/bin", "KATHA_CACHE": str(tmp_path / "cache")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert "katha metrics BOARDS" in (tmp_path / "plugin" / "README.md").read_text()


@pytest.mark.parametrize(
    ("given", "at_once", "alone"),
    [(None, 1, True), (4, 4, True), ("4", 4, True), ("cpu:2", 1, False), ("cuda:0-1", 1, False)],
)
def test_a_number_of_workers_is_how_many_are_measured_side_by_side(given: object, at_once: int, alone: bool) -> None:
    options = read_settings(MetricOptions, {"workers": given} if given is not None else {})
    assert options.at_once == at_once
    assert (options.fleet(None) is None) == alone
    for wrong in ("0", "-1"):
        with pytest.raises(UsageError, match="measures nothing"):
            _ = read_settings(MetricOptions, {"workers": wrong}).at_once
