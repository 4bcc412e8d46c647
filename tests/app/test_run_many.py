"""`katha run` over many stories: each in its own folder, one after another or by workers, with the same bytes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cli_child
import crews
import pytest
from click.testing import Result
from crews import settings
from doubles import story, tale
from typer.testing import CliRunner

import katha
from katha.agents.run import run_story
from katha.app.cli.main import app
from katha.app.many import StoryEnd, StoryPlan, plan_stories, run_stories
from katha.config import Settings
from katha.errors import OutputFolderError, UsageError
from katha.experiments.cluster.progress import Standing
from katha.schema import StoryRecord

LOOSE = (".lock", "run.json", "report.html", "graph.sqlite")
"""Files that say of the process when, how long and where."""
REFUSED = "s1: The lion walks past tree number 4"
TEXTS = Path(__file__).parents[2] / "examples"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(Path(crews.__file__).parent))
    return tmp_path


def many() -> list[StoryRecord]:
    """Three stories; the last has a scene too many for the run."""
    return [tale("s0"), tale("s1"), story("long", scenes=6)]


def by(name: str, workers: str | None = None, **drawing: str) -> list[StoryEnd]:
    """Run the stories into the folder `name`, with a cache of its own."""
    os.environ["KATHA_CACHE"] = str(Path(f"{name}.work/cache").absolute())
    Path(f"{name}.work").mkdir(exist_ok=True)
    config = settings(Path(f"{name}.work").absolute(), drawing=drawing, panels=5)
    said: list[str] = []

    def heard(standing: Standing, sentence: str) -> None:
        said.extend([sentence] if sentence else [])

    ends = run_stories(many(), config, out=name, workers=workers, on_workers=heard)
    assert not said
    return ends


def files(out: Path) -> dict[str, bytes]:
    """Every file that must be the same, by its path."""
    found = {str(path.relative_to(out)): path for path in sorted(out.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if path.name not in LOOSE}


def test_many_stories_are_those_of_single_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", "")
    ends = by("many")
    assert [(end.story_id, end.status, end.failed[:28]) for end in ends] == [
        ("s0", "finished", ""),
        ("s1", "finished", ""),
        ("long", "incomplete", "Story 'long' has 6 scenes wh"),
    ]
    os.environ["KATHA_CACHE"] = str(place / "single.cache")
    for record in many()[:2]:
        run_story(record, settings(place / "many.work", panels=5), place / "single" / record.story_id)
    assert files(place / "single") == files(place / "many")
    drawn = crews.lines(place / "many.work/frames")
    assert [end.reused for end in by("many")] == [True, True, False]
    assert crews.lines(place / "many.work/frames") == drawn


def test_many_stories_by_workers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes, nothing drawn twice, and what was drawn is on the account of the story's own run."""
    monkeypatch.setenv("KATHA_CACHE", "")
    alone, ours = by("alone", refused=REFUSED), by("ours", "cpu:1", refused=REFUSED)
    assert [(end.failed, end.status) for end in alone] == [(end.failed, end.status) for end in ours]
    assert [bool(end.failed) for end in ours] == [False, True, True]
    assert "Not this one" in ours[1].failed
    made = files(place / "ours")
    assert {name: data for name, data in made.items() if name[:8] != "workers/"} == files(place / "alone")
    frames = [sorted(crews.lines(place / f"{name}.work/frames")) for name in ("alone", "ours")]
    assert frames[0] == frames[1]
    paid = [json.loads((place / name / "s0/run.json").read_bytes())["paid"] for name in ("alone", "ours")]
    assert paid[0] == paid[1]
    assert "done" in (place / "ours/workers/worker-1.log").read_text()


def test_another_run_in_a_folder_is_refused_before_any_work(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(place / "cache"))
    config = settings(place)
    run_story(tale("s1"), config.model_copy(update={"seeds": (5,)}), place / "out/s1")
    before = crews.lines(place / "frames")
    with pytest.raises(OutputFolderError, match="holds a katha run of 's1' with other settings"):
        run_stories(many(), config, out="out")
    assert crews.lines(place / "frames") == before
    with pytest.raises(UsageError, match="asks a person about one story"):
        run_stories(many(), config.model_copy(update={"review": True}), out="out")


def test_a_folder_and_a_file_of_many_by_the_command_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(place / "cache"))
    cli_child.install(monkeypatch)
    (place / "tales").mkdir()
    for name in ("lion_and_mouse", "fox_and_crow"):
        (place / f"tales/{name}.txt").write_bytes((TEXTS / f"{name}.txt").read_bytes())

    def call(*words: object) -> Result:
        options = ("--renderer", "block", "--judge", "pixel", "--size", "96x64", "--mode", "base", "--seeds", "42")
        return CliRunner().invoke(app, [str(word) for word in (*words, *options)])

    dry = json.loads(call("run", "tales", "--dry-run", "--json").stdout)
    assert dry["stories"] == 2
    assert not (place / "out").exists()
    done = call("run", "tales", "--out", "boards")
    assert done.exit_code == 0
    assert "2 stories: 2 finished, 0 lack answers, 0 failed." in done.stdout
    assert (place / "boards/fox_and_crow/report.html").is_file()
    one = json.loads(call("run", "tales", "--out", "boards", "--ids", "fox_and_crow", "--json").stdout)
    assert [(end["story_id"], end["reused"]) for end in one["stories"]] == [("fox_and_crow", True)]
    for words in (
        ("tales/fox_and_crow.txt", "--ids", "a"),
        ("tales", "--plan", "plan.json"),
        ("tales", "--import", "."),
    ):
        assert isinstance(call("run", *words).exception, UsageError)


def planned(name: str, workers: str | None = None, **options: object) -> list[StoryPlan]:
    """Plan the stories into the folder `name`, by a planner that keeps a model."""
    place = Path(f"{name}.work").absolute()
    place.mkdir(exist_ok=True)
    told: dict[str, object] = {"log": str(place / "plans"), "refused": "s1", **options}
    own: dict[str, Any] = {"planner": "crews:FullPlanner", "planner_options": told, "workers": workers}
    return plan_stories([*many(), tale("s2"), tale("s3")], settings(place, panels=5), out=name, **own)


def test_many_plans_by_workers(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bytes as by one process, one of the workers dying; what is there is kept and not planned again."""
    monkeypatch.setenv("KATHA_CACHE", str(place / "cache"))
    alone, ours = planned("alone"), planned("ours", "cpu:2", dies=str(place / "mark"))
    assert (place / "mark").is_file()
    assert [end.story_id for end in alone if end.plan is not None] == ["s0", "s2", "s3"]
    assert [end.failed for end in alone] == [end.failed for end in ours]
    assert [bool(end.failed) for end in ours] == [False, True, True, False, False]
    for name in ("s0", "s2", "s3"):
        assert (place / "ours" / name / "plan.json").read_bytes() == (place / "alone" / name / "plan.json").read_bytes()
    by = [line.split() for line in crews.lines(place / "ours.work/plans")]
    assert {story for _, story in by} == {"s0", "s1", "s2", "s3"}
    assert len(by) <= 5  # who dies at its second story may take with it the word that it has ended its first
    assert str(os.getpid()) not in {process for process, _ in by}
    log = crews.lines(place / "alone.work/plans")
    alone[0].path.write_bytes(alone[0].path.read_bytes().replace(b"a lion", b"an old lion"))
    again = planned("alone")
    assert [end.reused for end in again] == [True, False, False, True, True]
    assert again[0].plan is not None
    assert again[0].plan.characters[0].appearance == "an old lion"
    assert crews.lines(place / "alone.work/plans")[len(log) :] == [f"{os.getpid()} s1"]  # what failed is tried again
    alone[0].path.write_text("{}")
    assert "is not a plan of this version" in planned("alone")[0].failed
    with pytest.raises(OutputFolderError, match="a katha planning with another planner or other settings"):
        planned("alone", model="another")
    with pytest.raises(OutputFolderError, match="another version of 's0'"):
        plan_stories(
            [tale("s0", scenes=4)],
            settings(place, panels=5),
            out="alone",
            planner="crews:FullPlanner",
            planner_options={"log": str(place / "alone.work/plans"), "refused": "s1"},
        )


def asking(name: str) -> Settings:
    """Settings with a planner that notes in `asked` each plan that it is asked for."""
    work = Path(f"{name}.work").absolute()
    work.mkdir()
    os.environ["KATHA_CACHE"] = str(work / "cache")
    own = {"planner": "crews:FullPlanner", "planner_options": {"log": str(Path("asked").absolute())}}
    return settings(work).model_copy(update=own)


def test_many_stories_are_drawn_by_their_plans(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is edited, one is missing, one has another number of panels: as by single runs, alone and by workers."""
    monkeypatch.setenv("KATHA_CACHE", str(place / "cache"))
    found = plan_stories([tale("s0"), tale("s2", 3)], settings(place), out="plans")
    found[0].path.write_bytes(found[0].path.read_bytes().replace(b"a lion", b"an old lion"))
    stories = [tale("s0"), tale("s1"), tale("s2", 3)]
    alone = run_stories(stories, asking("alone"), out="alone", plans="plans")
    ours = run_stories(stories, asking("ours"), out="ours", plans="plans", workers="cpu:1")
    assert [(end.story_id, end.status) for end in alone] == [
        ("s0", "finished"),
        ("s1", "incomplete"),
        ("s2", "finished"),
    ]
    assert alone[1].failed.startswith(
        "'plans' holds no plan of the story 's1'. `katha plan STORIES --out plans` makes "
    )
    assert [(end.failed, end.frames) for end in ours] == [(end.failed, end.frames) for end in alone]
    made = {name: data for name, data in files(place / "ours").items() if name[:8] != "workers/"}
    assert made == files(place / "alone")
    assert b"an old lion" in made["s0/plan.json"]
    assert crews.lines(place / "asked") == []
    config = asking("single")
    for record, plan in ((stories[0], "plans/s0/plan.json"), (stories[2], "plans")):
        katha.run_story(record, config, out=f"single/{record.story_id}", plan=plan)
    assert files(place / "single") == made
    with pytest.raises(UsageError, match="is not a folder, and many stories have many plans"):
        run_stories(stories, config, out="other", plans="plans/s0/plan.json")
    with pytest.raises(OutputFolderError, match="another plan"):
        run_stories(stories, config, out="single")


def test_many_plans_by_the_command_line(place: Path) -> None:
    (place / "tales").mkdir()
    for name in ("lion_and_mouse", "fox_and_crow"):
        (place / f"tales/{name}.txt").write_bytes((TEXTS / f"{name}.txt").read_bytes())

    def call(*words: str) -> Result:
        return CliRunner().invoke(app, ["plan", *words])

    done = call("tales", "--panels", "4")
    assert done.exit_code == 0
    assert "fox_and_crow: 4 panels, out/plans/fox_and_crow/plan.json" in done.stdout
    (place / "out/plans/lion_and_mouse/plan.json").unlink()
    dry = CliRunner().invoke(app, ["run", "tales", "--plan", "out/plans", "--dry-run", "--json"])
    needs = json.loads(dry.stdout)
    assert [need["name"] for need in needs["needs"] if need["kind"] == "plans"] == []
    assert any(note.startswith("lion_and_mouse: not counted. 'out/plans' holds no plan") for note in needs["notes"])
    one = call("tales/fox_and_crow.txt", "--panels", "4")
    assert json.loads(one.stdout) == json.loads((place / "out/plans/fox_and_crow/plan.json").read_bytes())
    rows = json.loads(call("tales", "--panels", "4", "--ids", "fox_and_crow", "--json").stdout)["stories"]
    assert rows == [
        {"story_id": "fox_and_crow", "plan": "out/plans/fox_and_crow/plan.json", "reused": True, "failed": ""}
    ]
    for flag, value in (("--workers", "cpu:2"), ("--out", "x"), ("--ids", "a")):
        assert f"{flag} is for many stories" in str(call("tales/fox_and_crow.txt", flag, value).exception)
