"""Every verb and flag of the command line, in process and through the real console script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cli_child
import pytest
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.cli.options import GROUPS
from katha.config import Settings

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "examples" / "lion_and_mouse.txt"
RECORD = ROOT / "examples" / "lion_and_mouse.json"
KATHA = Path(sys.executable).parent / "katha"
DOUBLES = ("--renderer", "block", "--judge", "pixel", "--size", "96x64")
VERBS = ("run", "plan", "redo", "report", "renderers", "planners", "judges", "doctor")
Katha = Callable[..., Result]


@pytest.fixture
def katha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Katha:
    """Call the command line in this process, in an empty folder; errors are raised as they are."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)

    def call(*words: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)

    return call


def script(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real console script."""
    command = [str(KATHA), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_help_lists_every_verb_and_every_verb_has_help() -> None:
    page = script("--help")
    assert page.returncode == 0
    assert [verb for verb in VERBS if f" {verb} " not in page.stdout] == []
    for verb in VERBS:
        done = CliRunner().invoke(app, [verb, "--help"])
        assert done.exit_code == 0, verb


def test_the_help_of_run_is_in_groups_and_names_the_environment() -> None:
    done = CliRunner().invoke(app, ["run", "--help"], terminal_width=160)
    assert [done.stdout.count(f"─ {heading} ─") for heading in GROUPS] == [1] * len(GROUPS)
    fields = {name for names in GROUPS.values() for name in names.split()}
    shown = {
        name
        for name, field in Settings.model_fields.items()
        if not any(getattr(one, "hidden", 0) for one in field.metadata)
    }
    assert shown <= fields, "each option has a heading"
    assert all(f"(KATHA_{name.upper()})" in done.stdout for name in shown)


def test_the_script_knows_its_version_and_its_wrong_uses() -> None:
    assert script("--version").stdout.startswith("katha ")
    for words in (["nonsense"], ["run"], ["redo", "x", "--frame", "0", "--seed", "1"], ["run", "x", "--wat"], ["plan"]):
        done = script(*words)
        assert done.returncode == 2, words
        assert done.stderr
        assert "Traceback" not in done.stderr


def test_the_command_line_imports_nothing_heavy() -> None:
    heavy = ["torch", "numpy", "langgraph", "onnxruntime", "scipy", "PIL", "jinja2", "spacy", "openai", "anthropic"]
    code = f"import sys, katha.app.cli.main; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_an_embedded_run_never_imports_what_it_does_not_need_and_stays_small(tmp_path: Path) -> None:
    # On Linux a child's ru_maxrss begins at what its parent had, which ran other tests before.
    code = (
        "import re, resource, sys; from katha.app.cli.main import app\n"
        f"app(args={['run', str(TEXT), '--out', str(tmp_path / 'out')]!r}, standalone_mode=False)\n"
        "idle = ('torch', 'scipy', 'langsmith.types.issue', 'langgraph_sdk.client')\n"
        "print([name for name in idle if name in sys.modules])\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+) kB', open('/proc/self/status').read())[1]) // 1024\n"
        "      if sys.platform == 'linux' else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024**2)"
    )
    where = {**os.environ, "KATHA_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=where)
    heavy, megabytes = done.stdout.splitlines()[-2:]
    assert heavy == "[]", done.stderr
    assert int(megabytes) < 700


def test_the_packages_that_langgraph_brings_are_whole_when_they_are_asked_for() -> None:
    code = (
        "import sys, katha.agents.graph, langgraph_sdk\n"
        "from langsmith.types import Issue, run_select_field\n"
        "assert 'langgraph_sdk.client' not in sys.modules\n"
        "assert not hasattr(langgraph_sdk, '__nothing__') and not hasattr(langgraph_sdk, 'nothing')\n"
        "from langgraph_sdk import get_client\n"
        "print(Issue.__name__, run_select_field.__name__, get_client.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["Issue", "langsmith.types.run_select_field", "langgraph_sdk._async.client"], (
        done.stderr
    )


@pytest.mark.parametrize("story", [TEXT, RECORD])
def test_a_run_says_the_numbers_and_where_the_report_is(katha: Katha, tmp_path: Path, story: Path) -> None:
    done = katha("run", story, *DOUBLES, "--out", "board")
    assert done.exit_code == 0
    assert "before" in done.stdout
    assert "full" in done.stdout
    assert "Report: board/report.html" in done.stdout
    assert (tmp_path / "board" / "report.html").read_bytes().startswith(b"<!doctype html>")
    assert done.stderr == ""


def test_json_is_one_object_with_the_numbers_of_the_scores(katha: Katha, tmp_path: Path) -> None:
    value = json.loads(katha("run", TEXT, *DOUBLES, "--json", "--seeds", "7,8").stdout)
    assert value["out"] == "out/lion_and_mouse"
    assert value["reused"] is False
    scores = json.loads((tmp_path / value["out"] / "scores.json").read_text())
    assert set(value["methods"]) == {"base", "full"} == set(scores["methods"])
    for name, row in value["methods"].items():
        block = scores["methods"][name]["judges"]["pixel"]
        measured = block["n_valid"] >= 2 and 3 * block["n_valid"] >= block["n_questions"] - block["n_unscored"]
        assert (row["stg"], row["n_valid"]) == (block["filtered"]["stg"] if measured else None, block["n_valid"])
    assert value["frames"] == len(json.loads((tmp_path / value["out"] / "storyboard.json").read_text())["frames"])


def test_the_same_command_again_does_nothing(katha: Katha, tmp_path: Path) -> None:
    katha("run", TEXT, *DOUBLES, "--out", "board")
    before = files(tmp_path / "board")
    again = json.loads(katha("run", TEXT, *DOUBLES, "--out", "board", "--json").stdout)
    assert again["reused"] is True
    assert files(tmp_path / "board") == before


def _settings(out: Path) -> Settings:
    return Settings.model_validate(json.loads((out / "run.json").read_text())["config"])


def test_every_flag_reaches_the_run(katha: Katha, tmp_path: Path) -> None:
    words = "--planner rule --renderer block --judge pixel --mode rerank_only --seeds 3,1 --panels 4 --size 160x96"
    done = katha(
        "run", TEXT, *words.split(), "--style", "ink", "--answers", "choice", "--matching", "exact-set", "--out", "x"
    )
    assert done.exit_code == 0
    known = _settings(tmp_path / "x")
    assert (known.planner, known.renderer, known.judges, known.mode) == ("rule", "block", ("pixel",), "rerank_only")
    assert (known.seeds, known.panels, known.size, known.style) == ((3, 1), 4, (160, 96), "ink")
    assert (known.answers, known.matching) == ("choice", "exact-set")
    board = json.loads((tmp_path / "x" / "storyboard.json").read_text())
    assert len(board["frames"]) == 4
    with Image.open(tmp_path / "x" / board["frames"][0]["image"]) as panel:
        assert panel.size == (160, 96)


def test_a_flag_beats_a_preset_beats_the_environment(
    katha: Katha, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.yaml").write_text("renderer: block\njudges: [pixel]\nseeds: [5]\nmode: base\nsize: 96x64\n")
    monkeypatch.setenv("KATHA_MODE", "full")
    monkeypatch.setenv("KATHA_PANELS", "3")
    assert katha("run", TEXT, "--preset", "mine.yaml", "--seeds", "6", "--out", "x").exit_code == 0
    known = _settings(tmp_path / "x")
    assert (known.seeds, known.mode, known.panels, known.renderer) == ((6,), "base", 3, "block")


def test_several_judges_make_an_ensemble(katha: Katha, tmp_path: Path) -> None:
    done = katha("run", TEXT, *DOUBLES, "--judge", "second", "--out", "x", "--json")
    assert json.loads(done.stdout)["methods"]["full"]["judge"] == "ensemble"
    judges = json.loads((tmp_path / "x" / "scores.json").read_text())["methods"]["full"]["judges"]
    assert set(judges) == {"pixel", "second", "ensemble"}


def test_a_board_that_leaves_sentences_out_says_how_to_draw_them(katha: Katha, tmp_path: Path) -> None:
    (tmp_path / "six.txt").write_text(
        "The man fed the dog. The girl watered the flowers. The boy opened the door. "
        "The woman closed the window. The girl sang a song. The boy slept in a chair."
    )
    done = katha("plan", "six.txt", "--planner", "rule", "--panels", 2)
    assert "sentences are in this board" in done.stderr
    assert "Draw more of them: --panels 6." in done.stderr
    assert "--panels" not in katha("plan", "six.txt", "--planner", "rule", "--panels", 6).stderr


def _plan(katha: Katha) -> dict[str, Any]:
    done = katha("plan", TEXT)
    assert "sentences that can be shown" in done.stderr
    plan: dict[str, Any] = json.loads(done.stdout)
    return plan


def test_a_plan_can_be_edited_and_drawn(katha: Katha, tmp_path: Path) -> None:
    plan = _plan(katha)
    assert len(plan["panels"]) == 14
    assert len(json.loads(katha("plan", TEXT, "--panels", "5").stdout)["panels"]) == 5
    plan["panels"][1]["prompt"] = "A golden lion laughs beside a lake."
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    assert katha("run", TEXT, *DOUBLES, "--plan", "plan.json", "--out", "x").exit_code == 0
    assert "A golden lion laughs beside a lake." in (tmp_path / "x" / "storyboard.json").read_text()
    kept = json.loads((tmp_path / "x" / "plan.json").read_text())
    fields = ("prompt", "caption", "characters", "must_show", "place", "source")
    assert [[row[name] for name in fields] for row in kept["panels"]] == [
        [row[name] for name in fields] for row in plan["panels"]
    ]
    assert kept["transitions"][2:] == plan["transitions"][2:]
    assert "transitions from panel 1 to 2, 2 to 3." in kept["renewed"][0]


def test_a_plan_of_four_panels_needs_no_flag(katha: Katha, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(katha("plan", TEXT, "--panels", "4").stdout)
    assert katha("run", TEXT, *DOUBLES, "--plan", "plan.json", "--out", "x", "--mode", "base").exit_code == 0
    assert len(json.loads((tmp_path / "x" / "storyboard.json").read_text())["frames"]) == 4


def test_redo_draws_one_frame_and_keeps_the_others_and_the_old_version(katha: Katha, tmp_path: Path) -> None:
    katha("run", TEXT, *DOUBLES, "--out", "x", "--mode", "rerank_only")
    out = tmp_path / "x"
    before, old = files(out / "panels"), json.loads((out / "storyboard.json").read_text())
    done = katha("redo", "x", "--frame", "3", "--seed", "777")
    assert done.exit_code == 0
    new = json.loads((out / "storyboard.json").read_text())
    changed = [a["index"] for a, b in zip(old["frames"], new["frames"], strict=True) if a["sha256"] != b["sha256"]]
    assert changed == [3]
    assert new["frames"][2]["seed"] == 777
    after = files(out / "panels")
    assert {name: after.get(name) for name in before} == before
    kept = [json.loads(path.read_text()) for path in (out / "versions").rglob("storyboard.json")]
    assert kept == [old]
    assert "seed 777" in (out / "report.html").read_text()


def test_report_writes_the_same_bytes_again_and_a_sheet(katha: Katha, tmp_path: Path) -> None:
    katha("run", TEXT, *DOUBLES, "--out", "x")
    report = (tmp_path / "x" / "report.html").read_bytes()
    (tmp_path / "x" / "report.html").unlink()
    done = katha("report", "x", "--sheet", "board.png")
    assert done.stdout.splitlines() == ["Sheet: board.png", "Report: x/report.html"]
    assert (tmp_path / "x" / "report.html").read_bytes() == report
    with Image.open(tmp_path / "board.png") as sheet:
        assert sheet.width > 1000


def test_the_report_says_how_a_models_questions_were_made(katha: Katha, tmp_path: Path) -> None:
    katha("run", TEXT, *DOUBLES, "--out", "x")
    assert "questions written" not in (tmp_path / "x" / "report.html").read_text()
    plan = json.loads((tmp_path / "x" / "plan.json").read_text())
    plan["question_making"] = {"written": 12, "guessed": 2, "rewritten": 2, "dropped": 1, "kept": 11}
    (tmp_path / "x" / "plan.json").write_text(json.dumps(plan))
    katha("report", "x")
    said = "12 questions written, 2 guessed without evidence; 2 rewritten, 1 dropped."
    assert said in (tmp_path / "x" / "report.html").read_text()


@pytest.mark.parametrize(("verb", "name"), [("renderers", "sketch"), ("planners", "rule"), ("judges", "sketch-reader")])
def test_the_lists_name_the_embedded_plugins(katha: Katha, verb: str, name: str) -> None:
    text = katha(verb).stdout
    assert name in text
    rows = {row["name"]: row for row in json.loads(katha(verb, "--json").stdout)}
    assert len(rows[name]["about"]) > 20


@pytest.mark.parametrize("family", ["renderers", "planners", "judges", "metrics"])
def test_the_lists_need_no_extra(family: str) -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('torch', 'transformers', 'diffusers', 'skimage', 'starlette')))\n"
        "from katha.registry import default_registry\n"
        f"known = default_registry({family!r})\n"
        "print(*(known.load(name)[0].__name__ for name in known.names()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_broken_plugin_hides_no_other(katha: Katha, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "katha_sketch.reader.sketch_reader", None)
    done = katha("judges")
    assert done.exit_code == 0
    assert "recorded" in done.stdout
    assert "cannot be imported" in done.stdout


def test_doctor_says_what_is_there_and_never_a_key(katha: Katha, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-1234")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("GEMINI_API_KEY", "sk-secret-5678")
    for name in ("ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_BASE_URL", "http://127.0.0.1:9")
    text, machine = katha("doctor").stdout, katha("doctor", "--json").stdout
    assert "sk-secret" not in text + machine
    value = json.loads(machine)
    assert value["keys"] == {"ANTHROPIC_API_KEY": "set", "OPENAI_API_KEY": "not set", "GEMINI_API_KEY": "set"}
    assert value["packages"]["langgraph"][0].isdigit()
    assert value["would run"]["embedded"].startswith("rule + sketch + sketch-reader")
    assert value["would run"]["embedded"].endswith("(ready)")
    assert "(not now: " in value["would run"]["sdxl"]
    assert {f"extra [{name}]" for name in ("sketch", "stats", "ocr", "local", "gemini")} <= set(value["packages"])
    assert "extra [dev]" not in value["packages"]
    assert {"devices", "folders", "katha"} <= set(value)


def test_no_key_reaches_a_file(katha: Katha, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-1234")
    katha("run", TEXT, *DOUBLES, "--out", "x")
    assert [name for name, data in files(tmp_path).items() if b"sk-secret" in data] == []


def test_debug_shows_the_traceback_wherever_it_stands(tmp_path: Path) -> None:
    missing = tmp_path / "none.txt"
    assert "Traceback" not in script("run", missing).stderr
    for words in (["--debug", "run", missing], ["run", missing, "--debug"]):
        done = script(*words)
        assert done.returncode == 2
        assert "Traceback" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("katha: ")
