"""katha without its stand-in, in an environment that has pytest and nothing else (`make alone`): it says what it lacks
in one sentence, and what needs no reader of texts and no clip art works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("katha_sketch") is not None:
    pytest.skip("katha_sketch is installed here: `make alone` is without it", allow_module_level=True)

from api_server import serving
from typer.main import get_command
from typer.testing import CliRunner

import katha
from katha.app.cli.main import app
from katha.config import Settings, resolve, usual_preset
from katha.errors import KathaError, UsageError
from katha.protocols import Capabilities, Evidence, JudgePrompt, JudgeReply, PlainPrompt
from katha.registry import default_registry
from katha.testing import ScriptedJudge, ScriptedRenderer, picture, scripted_words

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("katha")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL")
TEXT = "A crow was thirsty. It found a jug with little water. It dropped stones into the jug. The water rose to it."
RECORDS = (ROOT / "examples" / "fox_and_crow.json", ROOT / "examples" / "lion_and_mouse.json")
INSTALL = f"{sys.executable} -m pip install {ROOT / 'sketch'}"
STAND_IN = ("rule", "sketch", "sketch-reader", "lemma-set", "reader")


@pytest.fixture(autouse=True)
def _nothing_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for key in (*KEYS, *(name for name in os.environ if name.startswith("KATHA_"))):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KATHA_NO_PROBE", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renderer and a judge of `katha.testing` under the name `scripted`."""

    def answer(evidence: Evidence, prompt: JudgePrompt | PlainPrompt) -> JudgeReply:
        if isinstance(prompt, PlainPrompt):
            return scripted_words(Yes=0.75, No=0.25)
        seen = len(evidence.images) + len(prompt.question)
        options = prompt.options or ("Unclear",)
        told = {"image_support": "supported"} if evidence.condition == "text+image" else {}
        return JudgeReply("ok", options[seen % len(options)], evidence_status="recoverable", **told)

    def draw() -> ScriptedRenderer:
        return ScriptedRenderer([f"frame {at}" for at in range(400)], capabilities=Capabilities(default_size=(96, 64)))

    for family, make in (("renderers", draw), ("judges", lambda: ScriptedJudge(answer))):
        monkeypatch.setitem(default_registry(family)._local, "scripted", make)


def said(*words: object, code: int = 0) -> str:
    """What a command tells on both streams, its refusal with it; it ends with `code`."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    refused = done.exception if isinstance(done.exception, KathaError) else None
    ended = done.exit_code if refused is None else refused.exit_code
    assert ended == code, f"{done.output} {done.exception!r}"
    return " ".join(f"{done.output} {refused or ''}".split())


def records(folder: Path) -> Path:
    """Two annotated stories with questions of their own."""
    path = folder / "stories.jsonl"
    path.write_text("".join(json.dumps(json.loads(file.read_text())) + "\n" for file in RECORDS), encoding="utf-8")
    return path


def boards(folder: Path, name: str = "boards") -> Path:
    """A folder with a board of five pictures for each of these stories."""
    for file in RECORDS:
        for number in range(1, 6):
            place = folder / name / file.stem / f"{number}.png"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(picture(f"{name} {file.stem} {number}", (96, 64)))
    return folder / name


def planned() -> dict[str, Any]:
    """What a model replies that plans TEXT in two panels."""
    panel = {
        "place": "field", "time_of_day": "day", "light": "sun", "links": [], "shot_size": "wide", "shot_angle": "level",
        "camera": "in front", "characters": ["crow"], "state": [], "gaze": [], "contacts": [], "causes_next": "",
        "must_show": ["a jug"],
    }  # fmt: skip
    step = {
        "transition_type": "cause_effect", "action": "The crow drops stones.", "causality": "It is thirsty.",
        "intention": None, "emotion": None, "consequence": "The water rises.", "moral_target": None,
        "device": "planted pivot", "shown": "The stones lie in the jug.", "questions": [],
    }  # fmt: skip
    board = {
        "geography": "a jug in the middle", "direction": "", "places": ["field: green"], "pivot": "jug",
        "pivot_colour": "red", "order": "telling", "left_out": [], "added": [],
    }  # fmt: skip
    return {
        "tells_events": True,
        "cast": [{"name": "crow", "in_text": "crow", "kind": "crow", "appearance": "a black crow"}],
        "props": [{"name": "jug", "looks": "red clay", "states": ["low water", "full"]}],
        "visual": board,
        "panels": [{"first_sentence": at, **panel, "prompt": f"The crow at the jug, {at}."} for at in (1, 3)],
        "transitions": [step],
    }


def test_no_part_of_the_core_reaches_for_the_stand_in() -> None:
    asked = "import katha.compass.repair, katha.planners, katha.eval_bridge.scoring.scores, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [name for name in done.stdout.split() if name.startswith("katha_sketch")]


def test_every_verb_has_its_help() -> None:
    def verbs(command: Any, *above: str) -> Iterator[tuple[str, ...]]:
        yield above
        for name, inner in getattr(command, "commands", {}).items():
            yield from verbs(inner, *above, name)

    found = list(verbs(get_command(app)))
    assert len(found) > 30
    for words in found:
        assert "Usage:" in said(*words, "--help"), words
    assert subprocess.run([SCRIPT, "--help"], capture_output=True).returncode == 0


def test_nobody_is_the_default() -> None:
    config = Settings()
    assert usual_preset() == ("", {})
    assert (config.planner, config.renderer, config.judges) == ("", "", ())
    assert (config.similarity, config.matching) == ("none", "exact-set")
    assert resolve({"seeds": "7"}).judges == (), "settings are read again without a judge"
    with pytest.raises(UsageError, match="No planner and no renderer and no judge"):
        katha.run_story(TEXT)


@pytest.mark.parametrize("verb", ["planners", "renderers", "judges"])
def test_a_list_names_what_is_installed(verb: str) -> None:
    names = [row["name"] for row in json.loads(CliRunner().invoke(app, [verb, "--json"]).stdout)]
    assert len(names) >= 7
    assert not set(names) & set(STAND_IN)


def test_doctor_says_what_to_do_next() -> None:
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).stdout)
    assert INSTALL in found["next"]["without a model"]
    assert "ANTHROPIC_API_KEY" in found["next"]["for a model"]
    assert found["free answers"]["default"] == "exact-set"
    assert "embedded" not in found["would run"]
    assert [state for state in found["would run"].values() if state.endswith("(ready)")] == []
    assert found["best here"] == {}
    assert INSTALL in said("doctor")


@pytest.mark.parametrize(
    ("words", "lacking"),
    [
        (("run",), "No planner and no renderer and no judge is chosen"),
        (("plan",), "No planner is chosen"),
        (("run", "--planner", "direct", "--renderer", "folder:boards"), "No judge is chosen"),
        (("run", "--planner", "direct", "--judge", "none", "--mode", "base"), "No renderer is chosen"),
        (("run", "--renderer", "folder:boards", "--judge", "none", "--mode", "base"), "No planner is chosen"),
        (("run", "--dry-run"), "No planner and no renderer and no judge is chosen"),
        (("run", "--preset", "api"), INSTALL),
    ],
)
def test_a_verb_that_lacks_somebody_says_whom(tmp_path: Path, words: tuple[str, ...], lacking: str) -> None:
    (tmp_path / "crow.txt").write_text(TEXT)
    told = said(words[0], "crow.txt", *words[1:], code=2)
    assert lacking in told
    assert INSTALL in told
    assert "Traceback" not in told
    assert not (tmp_path / "out").exists()


def test_the_command_prints_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "crow.txt").write_text(TEXT)
    words = ("run", "crow.txt", "--planner", "direct", "--judge", "none", "--mode", "base")
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    python = SCRIPT.read_text(encoding="utf-8").splitlines()[0].removeprefix("#!")  # the same program by another name
    assert done.stderr.replace(python, sys.executable) == (
        "katha: No renderer is chosen, and none is installed that works without a model. "
        f"Set a key (see `katha doctor`), name one with --renderer, or install the stand-in: {INSTALL}.\n"
    )


def test_what_needs_a_reader_says_so(tmp_path: Path) -> None:
    stories = records(tmp_path)
    told = said("bench", "questions", stories, "--out", "made.jsonl", code=2)
    assert "none is installed" in told
    assert INSTALL in told
    assert not (tmp_path / "made.jsonl").exists()
    told = said("eval", stories, "--boards", boards(tmp_path), "--out", "out/eval", code=2)
    assert "No judge is chosen" in told
    told = said("score", stories, "--answers", "none.jsonl", "--matching", "lemma-set", code=2)
    assert "none.jsonl" in told or "lemma-set" in told


def test_a_story_is_planned_by_a_server_and_drawn_from_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "crow.txt").write_text(TEXT)
    place = tmp_path / "frames"
    place.mkdir()
    for number in (1, 2):
        (place / f"{number}.png").write_bytes(picture(f"crow {number}", (96, 64)))
    with serving("openai", lambda number, body: {"text": json.dumps(planned())}) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-nothing")
        words = ("--planner", "gemma-st:openai:any", "--base-url", server.url, "--panels", "2")
        drawn = ("--renderer", f"folder:{place}", "--judge", "none", "--mode", "base")
        plan = json.loads(CliRunner().invoke(app, ["plan", "crow.txt", *words]).stdout)
        told = said("run", "crow.txt", *words, *drawn, "--out", "out/crow")
        assert server.number >= 1
    assert [panel["prompt"] for panel in plan["panels"]] == ["The crow at the jug, 1.", "The crow at the jug, 3."]
    assert "Report:" in told
    board = json.loads((tmp_path / "out/crow/storyboard.json").read_text())
    assert [frame["scene"] for frame in board["frames"]] == [1, 2]
    assert (tmp_path / "out/crow/report.html").stat().st_size > 1000
    assert json.loads((tmp_path / "out/crow/run.json").read_text())["config"]["similarity"] == "none"


@pytest.mark.usefixtures("scripted")
def test_a_judge_alone_chooses_boards_and_it_is_said_that_nothing_else_was_measured(tmp_path: Path) -> None:
    stories = records(tmp_path)
    story = f"{stories}#lion_and_mouse"
    who = ("--planner", "oracle", "--renderer", "scripted", "--judge", "scripted", "--seeds", "1,2")
    told = said("run", story, *who, "--out", "out/full")
    assert "Report:" in told
    scores = json.loads((tmp_path / "out/full/scores.json").read_text())
    assert any("Coverage was not measured" in note for note in scores["notes"])
    candidates = json.loads((tmp_path / "out/full/candidates.json").read_text())["candidates"]
    assert {item["score"]["coverage"] for item in candidates} == {0.0}
    assert {item["score"]["copy_penalty"] for item in candidates} == {0.0}
    assert any(item["score"]["recoverability"] is not None for item in candidates)
    told = said("run", story, *who[:-4], "--judge", "none", "--mode", "full", "--out", "out/nobody", code=2)
    assert "nobody judges and no similarity is chosen" in told


@pytest.mark.usefixtures("scripted")
def test_boards_are_judged_scored_and_measured(tmp_path: Path) -> None:
    stories = records(tmp_path)
    out = tmp_path / "out" / "eval"
    said("eval", stories, "--boards", boards(tmp_path), "--judge", "scripted", "--out", out, "--resamples", "50")
    scores = json.loads((out / "scores.json").read_text())
    assert scores["matching"] == "exact-set"
    again = json.loads(said("score", stories, "--answers", out / "answers.jsonl", "--questions", "all",
                            "--resamples", "50", "--json"))  # fmt: skip
    assert again
    story = f"{stories}#lion_and_mouse"
    who = ("--planner", "oracle", "--renderer", "scripted", "--judge", "scripted", "--mode", "base", "--seeds", "1")
    said("run", story, *who, "--out", "out/base")
    measured = ("metrics", "out/base", "--metric", "vqascore", "--out", "out/metrics")
    assert "No judge is chosen" in said(*measured, code=2)
    assert "0.750" in said(*measured, "--judge", "scripted")


@pytest.mark.usefixtures("scripted")
def test_what_was_scored_by_a_rule_that_is_not_here_is_read_and_refused_only_where_it_decides(tmp_path: Path) -> None:
    story = f"{records(tmp_path)}#lion_and_mouse"
    who = ("--planner", "oracle", "--renderer", "scripted", "--judge", "scripted", "--mode", "base", "--seeds", "1")
    said("run", story, *who, "--out", "out/base")
    state = json.loads((tmp_path / "out/base/run.json").read_text())
    state["config"]["matching"] = "lemma-set"
    (tmp_path / "out/base/run.json").write_text(json.dumps(state))
    scores = json.loads((tmp_path / "out/base/scores.json").read_text())
    scores["matching"] = "lemma-set"
    (tmp_path / "out/base/scores.json").write_text(json.dumps(scores))
    said("report", "out/base")
    said("metrics", "out/base", "--metric", "continuity", "--out", "out/metrics", code=1)  # no shot says its size
    answers = tmp_path / "out/base/answers.jsonl"
    rows = [json.loads(line) for line in answers.read_text().splitlines()]
    answers.write_text("".join(json.dumps({**row, "answer": "somebody sleeps"}) + "\n" for row in rows))
    told = said("metrics", "out/base", "--metric", "continuity", "--out", "out/other", code=2)
    assert "have no verdict by 'lemma-set', which is not installed here" in told
    assert INSTALL in told


@pytest.mark.usefixtures("scripted")
def test_a_suite_is_run(tmp_path: Path) -> None:
    who = ("--planner", "oracle", "--renderer", "scripted", "--judge", "scripted", "--seeds", "1,2")
    rows = ("--suite", "length", "--rows", "base,rerank_only,full")
    told = said("ablate", records(tmp_path), *rows, *who, "--resamples", "50", "--out", "out/length")
    assert "rerank_only" in told
    table = json.loads((tmp_path / "out/length/table.json").read_text())
    assert [row["mode"] for row in table["rows"]] == ["base", "rerank_only", "full"]
