"""`katha redo` on the embedded default: another prompt, takes, back and forth, what differs, and an edited plan."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import cli_child
import pytest
from PIL import Image, ImageChops
from typer.testing import CliRunner, Result

from katha.app.cli.main import app
from katha.app.cli.pictures import iterm, kitty
from katha.errors import UsageError

STORY = Path(__file__).parents[2] / "examples" / "fox_and_crow.txt"


def katha(*words: object) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def refused(*words: object) -> str:
    with pytest.raises(UsageError) as error:
        katha(*words)
    return str(error.value)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(base / "cache"))
        katha("run", STORY, "--seeds", "42", "--mode", "rerank_only", "--out", base / "fox")
    return base


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "fox"


def board(run: Path) -> list[dict[str, object]]:
    frames: list[dict[str, object]] = json.loads((run / "storyboard.json").read_text())["frames"]
    return frames


def test_another_prompt_its_difference_and_back(run: Path) -> None:
    before, plan = board(run), json.loads((run / "plan.json").read_text())
    done = katha("redo", run, "--frame", 2, "--prompt", "In the forest. The fox hugs the crow.")
    assert "Version 002." in done.output
    assert "Read again from the new prompts" in done.output
    assert board(run)[1]["prompt"] == "In the forest. The fox hugs the crow."
    assert board(run)[1]["sha256"] != before[1]["sha256"]
    told = json.loads((run / "plan.json").read_text())["transitions"]
    assert "hug" in told[0]["action"]
    assert told[2:] == plan["transitions"][2:]
    assert "The questions are those of the text, and stay" in done.output
    asked = json.loads((run / "story.jsonl").read_text())["recoverability_questions"]
    assert not any("hug" in item["gold_answer"] for item in asked)
    told = katha("redo", run, "--diff").output
    assert "panel 2, prompt" in told
    pictures = [run / "takes" / f"0{at}_frame_2_{when}.png" for at, when in ((1, "before"), (2, "after"))]
    assert "frame 2, another picture: " in told
    assert f"    {pictures[0]} -> {pictures[1]}" in told
    assert pictures[0].read_bytes() != pictures[1].read_bytes()
    listed = katha("redo", run, "--list").output
    assert "* 002" in listed
    assert (run / "versions" / "001" / "sheet.png").is_file()
    assert "Version 001." in katha("redo", run, "--undo").output
    assert board(run) == before
    assert "Version 002." in katha("redo", run, "--forward").output
    assert board(run)[1]["prompt"] == "In the forest. The fox hugs the crow."
    assert "Nothing was made from version 002" in refused("redo", run, "--forward")
    katha("redo", run, "--to", "001")
    assert board(run) == before
    katha("redo", run, "--to", "002")
    rows = json.loads(katha("redo", run, "--list", "--json").output)
    assert [(row["version"], row["current"]) for row in rows] == [("001", False), ("002", True)]


def test_a_part_of_a_frame_is_drawn_inside_a_mask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    cli_child.install(monkeypatch)
    words = ("--renderer", "block", "--judge", "pixel", "--seeds", "42", "--mode", "rerank_only", "--size", "96x64")
    katha("run", STORY, *words, "--out", tmp_path / "fox")
    run, before = tmp_path / "fox", board(tmp_path / "fox")

    def shown(frame: dict[str, object]) -> Image.Image:
        return Image.open(run / str(frame["image"])).convert("RGB")

    katha("redo", run, "--frame", 2, "--mask", "50,0,50,100", "--prompt", "The crow sleeps.")
    after = board(run)
    assert [one["sha256"] == two["sha256"] for one, two in zip(before, after, strict=True)].count(False) == 1
    assert ImageChops.difference(shown(before[1]), shown(after[1])).getbbox() == (48, 0, 96, 64)
    assert (after[1]["seed"], str(after[1]["prompt"])[:16]) == (43, "The crow sleeps.")
    assert "inside a mask" in katha("redo", run, "--list").output
    katha("redo", run, "--undo")
    assert board(run) == before
    hole = Image.new("L", (96, 64))
    hole.paste(255, (0, 0, 10, 64))
    hole.save(tmp_path / "hole.png")
    katha("redo", run, "--frame", 2, "--mask", tmp_path / "hole.png", "--seed", 9, "--prompt", "The fox hums.")
    assert ImageChops.difference(shown(before[1]), shown(board(run)[1])).getbbox() == (0, 0, 10, 64)


def test_takes_are_put_into_a_folder_under_their_names(run: Path) -> None:
    before = board(run)
    done = katha("redo", run, "--frame", 1, "--takes", 3)
    names = sorted(path.name for path in (run / "takes").iterdir())
    assert len(names) == 4
    assert names[0].startswith("01_frame_01_a_crow_sat_in_a_tree")
    assert "Take one: katha redo" in done.output
    assert board(run) == before


def test_an_edited_plan_is_drawn(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_text())
    plan["panels"][0]["place"] = "kitchen"
    (run / "plan.json").write_text(json.dumps(plan))
    katha("redo", run)
    assert board(run)[0]["prompt"] == json.loads((run / "plan.json").read_text())["panels"][0]["prompt"]
    assert board(run)[0]["prompt"] == "The crow sits with a piece of cheese in a tree in the kitchen."
    assert "nothing to do" in refused("redo", run)


def test_pictures_of_characters_are_put_on_their_sheets(run: Path, tmp_path: Path) -> None:
    cast = tmp_path / "cast"
    cast.mkdir()
    Image.radial_gradient("L").resize((300, 200)).convert("RGB").save(cast / "The_Fox.png")
    done = katha("redo", run, "--characters", cast)
    assert "'sketch' draws from words alone: the picture of fox is kept, and changes no frame." in done.output
    plan = json.loads((run / "plan.json").read_text())
    (fox,) = [item for item in plan["characters"] if item["name"] == "fox"]
    assert (run / "panels" / f"{fox['reference']}.png").is_file()
    fox |= {"color": "blue", "age": "old"}  # an edited plan is an edit
    (run / "plan.json").write_text(json.dumps(plan))
    katha("redo", run)
    assert any("old blue fox" in str(frame["prompt"]) for frame in board(run))
    assert "character fox, color: - -> blue" in katha("redo", run, "--diff").output
    (cast / "The_Fox.png").rename(cast / "rabbit.png")
    assert "None of the reference pictures (rabbit.png)" in refused("redo", run, "--characters", cast)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--frame", 1), "Nothing is to change in frame 1"),
        (("--frame", 99, "--seed", 1), "no frame 99"),
        (("--takes", 3), "--takes needs a frame"),
        (("--seed", 7), "--seed needs a frame"),
        (("--prompt", "The fox sleeps."), "--prompt needs a frame"),
        (("--frame", 1, "--takes", 3, "--seed", 7), "--takes takes no --seed"),
        (("--frame", 1, "--seed", 7, "--undo"), "--undo takes no --frame"),
        (("--list", "--memory", "full"), "--list takes no --memory"),
        (("--list", "--renderer-option", "a=b"), "--list takes no --renderer-option"),
        (("--diff", "--forward"), "--diff and --forward are two commands"),
        (("--undo",), "nothing to undo"),
        (("--to", "../x"), "no version"),
        (("--change", "a red hat"), "--change needs a frame"),
        (("--part", "f-hat"), "--part goes with --change"),
        (("--frame", 1, "--change", " "), "The change of frame 1 is empty"),
        (("--frame", 1, "--change", "a red hat"), "'sketch' changes no finished drawing"),
        (("--frame", 1, "--change", "a red hat", "--seed", 7), "--change alters a drawing, and --seed makes a new one"),
        (("--mask", "1,2,3,4"), "--mask needs a frame"),
        (("--frame", 1, "--mask", "half"), "neither four numbers nor a picture"),
        (("--frame", 1, "--mask", "100,0,10,10"), "Nothing of the mask is in the picture"),
        (("--frame", 99, "--mask", "1,2,3,4"), "no frame 99"),
        (("--frame", 1, "--mask", "1,2,30,40"), "'sketch' has no masks"),
        (("--frame", 1, "--mask", "1,2,30,40", "--takes", 2), "Leave one of them out"),
        (("--diff",), "as it was drawn"),
        (("--place", "kitchen"), "--place needs a frame"),
        (("--frames", "2-1", "--weather", "snow"), "'2-1' names no frames"),
        (("--set", "hair=red"), "--set goes with --cast or --prop"),
        (("--cast", "nobody", "--set", "hair=red"), "no character 'nobody'"),
        (("--cast", "nobody"), "Nothing is to change of nobody"),
        (("--cast", "nobody", "--set", "nose=red"), "'nose=red' says nothing that --cast can change"),
        (("--cast", "nobody", "--set", "picture=none.png"), "no file 'none.png'"),
        (("--cast", "nobody", "--set", "hair=red", "--weather", "snow"), "--cast takes no --weather"),
        (("--frames", "1,99", "--weather", "snow"), "no frame 99"),
        (("--frames", "1-2", "--prompt", "A fox."), "--prompt is for one frame"),
        (("--frame", 1, "--frames", "2-3", "--move", "tilt up"), "--frame and --frames both name frames"),
        (("--find", "zeppelin"), "No frame says 'zeppelin'"),
        (("--frame", 1, "--picture", "no.jpg"), "no file 'no.jpg'"),
        (("--frame", 1, "--crop", "1,2,3,4"), "--crop goes with --picture"),
        (("--frame", 1, "--picture", "no.jpg", "--seed", 3), "--picture takes no --seed"),
        (("--remove", "1", "--frame", 2), "--remove takes no --frame"),
        (("--remove", "99"), "no frame 99"),
        (("--duplicate",), "--duplicate needs a frame"),
        (("--copy", "nowhere"), "--copy 'nowhere' names no frame of a board"),
        (("--copy", "nowhere:1"), "holds no run"),
        (("--at", "1"), "--at goes with --copy"),
    ],
)
def test_wrong_use_changes_nothing(run: Path, words: tuple[object, ...], message: str) -> None:
    before = (run / "run.json").read_bytes()
    assert message in refused("redo", run, *words)
    assert (run / "run.json").read_bytes() == before


def test_several_frames_get_the_same_words_and_are_found_by_them(run: Path) -> None:
    done = katha("redo", run, "--frames", "2-3,5", "--weather", "snow", "--move", "push in", "--place", "kitchen")
    assert "No still picture shows the camera move of frames 2, 3, 5: films and the player follow it." in done.output
    panels = json.loads((run / "plan.json").read_text())["panels"]
    assert [panel["index"] for panel in panels if panel.get("weather") == "snow"] == [2, 3, 5]
    assert [line.split()[0] for line in katha("redo", run, "--find", "snow kitchen").output.splitlines()] == [
        "2",
        "3",
        "5",
    ]
    katha("redo", run, "--find", "push in", "--angle", "low angle", "--sound", "wind")
    panels = json.loads((run / "plan.json").read_text())["panels"]
    assert [panel["index"] for panel in panels if panel["shot_angle"] == "low angle"] == [2, 3, 5]
    assert "low angle" in panels[1]["not_drawn"]
    found = json.loads(katha("redo", run, "--find", "snow", "--json").output)
    assert [item["frame"] for item in found] == [2, 3, 5]


def test_the_weather_of_a_field_is_drawn(run: Path) -> None:
    katha("redo", run, "--frame", 1, "--weather", "snow")
    white = Image.open(run / "panels" / f"{board(run)[0]['sha256']}.png").convert("RGB").getcolors(1 << 20)
    assert sum(count for count, colour in white or [] if min(colour) > 250) > 500, "flakes"
    assert board(run)[0]["prompt"] == json.loads((run / "plan.json").read_text())["panels"][0]["prompt"]
    katha("export", run, "--to", "svg", "--out", run.parent / "layers")
    first = json.loads((run.parent / "layers" / "frames.json").read_text())["frames"][0]
    assert (first["file"][-4:], "weather" in first["layers"]) == (".svg", True)


def test_pictures_of_one_s_own_copies_and_frames_that_are_taken_off(run: Path, tmp_path: Path) -> None:
    before = board(run)
    Image.radial_gradient("L").resize((900, 600)).convert("RGB").save(tmp_path / "mine.jpg")
    options = ("--crop", "10,10,80,80", "--levels", "auto", "--fill")
    katha("redo", run, "--frame", 3, "--picture", tmp_path / "mine.jpg", *options)
    own = board(run)[2]
    assert (own["sha256"] != before[2]["sha256"], own["own"]) == (True, True)
    with Image.open(run / str(own["image"])) as picture:
        assert picture.size == (768, 512)
    katha("redo", run, "--frame", 3, "--duplicate")
    assert [frame["sha256"] for frame in board(run)][2:4] == [own["sha256"]] * 2
    katha("redo", run, "--copy", f"{run}:3", "--at", 1)
    assert board(run)[0]["sha256"] == own["sha256"]
    katha("redo", run, "--remove", "1,4-5")
    assert [frame["sha256"] for frame in board(run)] == [frame["sha256"] for frame in [*before[:2], *before[3:]]]
    katha("redo", run, "--undo")
    assert len(board(run)) == len(before) + 2


def test_a_frame_is_changed_without_the_machine_that_draws_boards(run: Path) -> None:
    code = (
        "import sys; from katha.app.cli.main import app\n"
        f"try: app(['redo', {str(run)!r}, '--frame', '2', '--seed', '5'])\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'langgraph', 'langchain_core', 'torch', 'scipy'}\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]", "each costs every command half a second of a processor"


def test_the_sheet_has_room_for_title_and_captions(run: Path) -> None:
    target = run.parent / "fox.png"
    katha("report", run, "--sheet", target)
    with Image.open(target) as sheet:
        title = sheet.crop((0, 0, sheet.width, 60)).convert("L")
        assert title.getextrema()[0] < 100


@pytest.mark.parametrize("change", ["no transitions", "two panels"])
def test_small_plans_are_drawn_to_their_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    plan = json.loads(katha("plan", STORY, "--panels", 5 if change == "no transitions" else 2).stdout)
    if change == "no transitions":
        plan["transitions"] = []
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    out = tmp_path / "out"
    katha("run", STORY, "--plan", tmp_path / "plan.json", "--seeds", "42", "--out", out)
    assert (out / "report.html").is_file()
    assert sum(frame["kind"] == "scene" for frame in board(out)) == len(plan["panels"])
    katha("redo", out, "--frame", 1, "--prompt", "The fox sleeps.")
    assert board(out)[0]["prompt"] == "The fox sleeps."


def test_terminals_that_can_draw_are_told_how() -> None:
    picture = Image.effect_noise((120, 80), 90).convert("RGB")
    code = kitty(picture)
    assert code.startswith("\x1b_Gf=100,a=T,m=1;")
    assert code.rstrip("\x1b\\").count("m=0;") == 1
    assert max(map(len, code.split("\x1b\\"))) < 4200
    assert iterm(picture).startswith("\x1b]1337;File=inline=1;width=120px;height=80px:")
