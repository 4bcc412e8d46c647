"""Editing a finished board: what each edit changes, what it leaves alone, and that no version is ever lost."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from doubles import BlockRenderer, plugins, story
from PIL import Image

from katha.agents import folder, graph
from katha.agents.editor import edit_session, names
from katha.agents.editor.edit_session import Edited
from katha.agents.editor.editing import (
    copied_from,
    draw_takes,
    edit_board,
    find_frames,
    keep_own,
    keep_picture,
    propose_bridge,
    read_board,
)
from katha.agents.editor.edits import (
    EDIT,
    AddCharacter,
    AddFrame,
    ChangeCharacter,
    ChangeFrame,
    ChangeProp,
    ChangeTransition,
    DuplicateFrame,
    Edit,
    GivePicture,
    InsertBridge,
    LockFrame,
    MergeCharacters,
    MoveFrame,
    RemoveCharacter,
    RemoveFrame,
    ReplacePlan,
    SplitFrame,
    TakeFrame,
)
from katha.agents.editor.rewording import recast, redressed, resettled
from katha.agents.editor.splitting import divided
from katha.agents.editor.versions import diff_versions, forward, go_to, list_versions, undo
from katha.agents.folder import RunFolder
from katha.agents.pictures import unfollowed
from katha.agents.run import run_story
from katha.agents.state import RunResult
from katha.app.desk.view import sentences
from katha.compass.effects import is_stale
from katha.compass.effects import stale_told as sentences_of_stale
from katha.config import Settings
from katha.errors import InputFileError, KathaError, OutputFolderError, PlanError, UsageError
from katha.jsonio import digest, sha256_hex
from katha.protocols import Capabilities, Renderer
from katha.schema import Character, Panel, Plan
from katha_sketch.drawing import SketchRenderer
from katha_sketch.english.reading import read_story

FILES = ("run.json", "storyboard.json", "candidates.json", "answers.jsonl", "scores.json", "plan.json", "story.jsonl")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of five scenes without an inserted frame, and its cache: made once, copied by every test."""
    base = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(base / "cache"))
        run(base / "out")
    return base


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def out(tmp_path: Path, made: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


def run(out: Path, mode: str = "base", **changes: Any) -> RunResult:
    config = Settings(planner="scenes", renderer="block", judges=("pixel",), seeds=(42, 123), mode=mode)
    return run_story(story(), config, out, plugins=plugins(**changes))


def edit(out: Path, *edits: Edit, **more: Any) -> Edited:
    return edit_board(out, edits, plugins=more.pop("plugins", None) or plugins(), **more)


def picture_file(size: tuple[int, int], kind: str) -> bytes:
    """A picture as a person might have it."""
    data = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert("RGB").save(data, kind)
    return data.getvalue()


def contents(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in FILES}


def prompts(out: Path) -> list[str]:
    return [frame.prompt for frame in read_board(out).board.frames]


def trees(out: Path) -> list[str]:
    """Which tree each frame shows."""
    return [prompt.rpartition(" ")[2].rstrip(".") for prompt in prompts(out)]


def named(out: Path) -> list[str]:
    return sorted(path.name for path in (out / "frames").iterdir())


# One edit at a time.


def test_a_new_prompt_draws_its_frame_and_no_other(out: Path) -> None:
    before, made = read_board(out), plugins()
    done = edit(out, ChangeFrame(frame=2, prompt="The lion sleeps under a tree."), plugins=made)
    after = read_board(out)
    assert [request.prompt for request in made.renderer.drawn] == ["The lion sleeps under a tree."]
    assert (done.drawn, done.version) == ((2,), "002")
    assert [a == b for a, b in zip(before.board.frames, after.board.frames, strict=True)] == [
        True,
        False,
        True,
        True,
        True,
    ]
    assert after.plan.panels[1].prompt == "The lion sleeps under a tree."
    assert after.board.frames[1].seed == before.board.frames[1].seed
    assert json.loads((out / "run.json").read_text())["redone"][0]["says"] == "frame 2 got another prompt"


def test_words_that_no_picture_shows_draw_nothing(out: Path) -> None:
    made = plugins()
    done = edit(out, ChangeFrame(frame=1, dialogue="Roar!", notes="slow", duration=3.5), plugins=made)
    assert made.renderer.drawn == []
    assert done.drawn == ()
    panel = json.loads((out / "plan.json").read_text())["panels"][0]
    assert (panel["dialogue"], panel["notes"], panel["duration"]) == ("Roar!", "slow", 3.5)


def test_a_new_place_goes_into_the_prompt_and_is_drawn(out: Path) -> None:
    done = edit(out, ChangeFrame(frame=1, place="kitchen", time_of_day="night"))
    assert done.drawn == (1,)
    assert prompts(out)[0] == "In the kitchen by night. The lion walks past tree number 1."
    edit(out, ChangeFrame(frame=1, place="a forest", shot_size="close-up"))
    assert prompts(out)[0] == "Close up. In the forest by night. The lion walks past tree number 1."
    assert "person" not in {one.kind for one in read_story(prompts(out)[0]).entities}  # "Close-up" was somebody's name


def test_a_place_at_the_head_of_a_prompt_is_the_frame_s(out: Path) -> None:
    edit(out, ChangeFrame(frame=1, place="classroom"))
    done = edit(out, ChangeFrame(frame=1, prompt="On the street. The lion sleeps."))
    panel = read_board(out).plan.panels[0]
    assert (done.drawn, panel.prompt, panel.place) == ((1,), "On the street. The lion sleeps.", "the street")
    edit(out, ChangeFrame(frame=1, prompt="On the table. The lion sleeps."))
    assert read_board(out).plan.panels[0].place == "the street", "a table is in a place"
    edit(out, ChangeFrame(frame=1, prompt="In the park. The lion sleeps.", place="kitchen"))
    assert read_board(out).plan.panels[0].place == "kitchen"
    plan = json.loads((out / "plan.json").read_text())
    plan["panels"][0]["prompt"] = "At the harbour. The lion sleeps."
    edit(out, ReplacePlan(plan=Plan.model_validate(plan)))
    assert read_board(out).plan.panels[0].place == "the harbour"


ZORBLAX = {"place": "the Zorblax"}
AT_DUSK = {"time_of_day": "dusk"}


@pytest.mark.parametrize(
    ("prompt", "fields", "changed", "after"),
    [
        # The words of the panel's own place and time say where and when, whether or not anybody knows them.
        ("In the Zorblax. Pip runs.", ZORBLAX, AT_DUSK, "In the Zorblax by dusk. Pip runs."),
        ("Zorblax by day. Pip runs.", ZORBLAX, AT_DUSK, "Zorblax by dusk. Pip runs."),
        ("By night. In the Zorblax. Pip runs.", ZORBLAX, AT_DUSK, "In the Zorblax by dusk. Pip runs."),
        ("In the day care. Pip runs.", {"place": "day care"}, AT_DUSK, "In the day care by dusk. Pip runs."),
        ("At the blorp at tea. Pip runs.", {"time_of_day": "tea"}, ZORBLAX, "In the Zorblax by tea. Pip runs."),
        ("Wide shot of the Zorblax, night. Pip runs.", ZORBLAX, {**AT_DUSK, "shot_size": "full shot"},
         "Full shot. The Zorblax by dusk. Pip runs."),
        # One noun behind a preposition or before an hour is a place, unless it is somebody.
        ("At the blorp. Pip runs.", {}, ZORBLAX, "In the Zorblax. Pip runs."),
        ("Near the lion. Pip runs.", {"characters": ["lion"]}, ZORBLAX, "In the Zorblax. Near the lion. Pip runs."),
        # A sentence that says anything else stays, whether or not anything happens in it.
        ("In the garden Mila. Pip runs.", {}, ZORBLAX, "In the Zorblax. In the garden Mila. Pip runs."),
        ("Low angle, Mila. Pip runs.", {}, {"shot_size": "full shot"}, "Full shot. Low angle, Mila. Pip runs."),
        ("In the Zorblax.", ZORBLAX, AT_DUSK, "By dusk. In the Zorblax."),
    ],
)  # fmt: skip
def test_a_setting_is_known_by_the_panel_s_own_fields(
    prompt: str, fields: dict[str, Any], changed: dict[str, str], after: str
) -> None:
    assert resettled(Panel(index=1, prompt=prompt, **fields), changed) == after


def test_neither_bridges_nor_edits_need_a_reader_of_english() -> None:
    told = "import katha.compass.repair, katha.agents.editor.rewording, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert "katha.compass.repair" in done.stdout.split()
    assert not [name for name in done.stdout.split() if name.startswith("katha_sketch")]


def test_a_character_changes_in_every_prompt(out: Path) -> None:
    done = edit(out, ChangeCharacter(name="lion", kind="tiger", appearance="a small striped tiger"))
    assert done.drawn == (1, 2, 3, 4, 5)
    assert prompts(out)[0] == "The small striped tiger walks past tree number 1."
    with pytest.raises(UsageError, match=r"no character 'bear'.*Known: lion"):
        edit(out, ChangeCharacter(name="bear", kind="cat"))


def test_a_character_s_age_and_colour_are_said_in_every_prompt_and_taken_back(out: Path) -> None:
    done = edit(out, ChangeCharacter(name="lion", age="old", color="red"))
    assert done.drawn == (1, 2, 3, 4, 5)
    assert prompts(out)[0] == "The old red lion walks past tree number 1."
    (sheet,) = read_board(out).plan.characters
    assert (sheet.model_extra or {}) == {"age": "old", "color": "red", "first_look": "a lion"}
    assert "old red lion" in sheet.appearance
    edit(out, ChangeCharacter(name="lion", color="blue"))
    assert prompts(out)[4] == "The old blue lion walks past tree number 5."
    found = {item.what: (item.before, item.after) for item in diff_versions(out)}
    assert found["character lion, color"] == ("red", "blue")
    edit(out, ChangeCharacter(name="lion", age="", color=""))
    assert prompts(out)[0] == "The lion walks past tree number 1."
    assert (read_board(out).plan.characters[0].model_extra or {}) == {}


def test_a_look_that_a_person_writes_keeps_the_age_and_the_colour(out: Path) -> None:
    edit(out, ChangeCharacter(name="lion", age="old", appearance="a lion with a white mane"))
    assert prompts(out)[0] == "The old lion with a white mane walks past tree number 1."
    edit(out, ChangeCharacter(name="lion", age="old", kind="owl", appearance="an old owl"))
    assert prompts(out)[0] == "The old owl walks past tree number 1."


def test_a_character_gets_another_name(out: Path) -> None:
    edit(out, ChangeCharacter(name="lion", new_name="Leo"))
    view = read_board(out)
    assert [item.name for item in view.plan.characters] == ["Leo"]
    assert {name for panel in view.plan.panels for name in panel.characters} == {"Leo"}
    assert prompts(out)[0] == "The lion walks past tree number 1."
    assert list_versions(out)[-1].says == "the character lion got another name"
    made = plugins()
    edit(out, AddFrame(at=1, prompt="Leo sleeps."), ChangeCharacter(name="Leo", new_name="Leander"), plugins=made)
    assert prompts(out)[0] == "Leander sleeps."
    # The renderer draws from words alone, and a name does not say what somebody is.
    assert "Leander sleeps. Leander: a lion." in [request.prompt for request in made.renderer.drawn]


def test_a_character_is_added_shown_made_one_with_another_and_taken_off(out: Path) -> None:
    before = prompts(out)
    done = edit(out, AddCharacter(name="Mia", kind="girl", age="young", appearance="a girl with red hair"))
    assert (done.drawn, prompts(out)) == ((), before)
    assert list_versions(out)[-1].says == "the character Mia was added"
    (lion, mia) = read_board(out).plan.characters
    assert (lion.name, mia.name, mia.kind, (mia.model_extra or {})["age"]) == ("lion", "Mia", "girl", "young")
    assert mia.appearance == "a young girl with red hair"
    for wrong, said in (("mia", "already"), ("  ", "no name")):
        with pytest.raises(UsageError, match=said):
            edit(out, AddCharacter(name=wrong))
    edit(out, ChangeFrame(frame=2, prompt="Mia walks past tree number 2.", characters=("lion", "Mia")))
    done = edit(out, MergeCharacters(name="Mia", into="lion"))
    assert prompts(out)[1] == "The lion walks past tree number 2."
    view = read_board(out)
    assert [item.name for item in view.plan.characters] == ["lion"]
    assert view.plan.panels[1].characters == ["lion"]
    with pytest.raises(UsageError, match="cannot be made one with itself"):
        edit(out, MergeCharacters(name="lion", into="lion"))
    with pytest.raises(UsageError, match=r"no character 'Mia'.*Known: lion"):
        edit(out, RemoveCharacter(name="Mia"))
    undo(out)
    done = edit(out, RemoveCharacter(name="Mia"))
    assert "frame 2 may still name Mia" in " ".join(done.remarks)
    assert read_board(out).plan.panels[1].characters == ["lion"]
    assert prompts(out)[1] == "Mia walks past tree number 2."


def test_a_character_s_picture_goes_to_renderers_that_draw_from_one(out: Path) -> None:
    made = plugins(renderer=BlockRenderer(Capabilities(default_size=(64, 48), pictures=True)))
    sha256 = keep_picture(out, picture_file((40, 30), "JPEG"))
    before = prompts(out)
    done = edit(out, ChangeCharacter(name="lion", reference=sha256), plugins=made)
    assert prompts(out) == before
    assert done.remarks == ()
    assert {name for request in made.renderer.drawn for name, _ in request.pictures} == {"lion"}
    assert {sha256_hex(data) for request in made.renderer.drawn for _, data in request.pictures} == {sha256}
    (change,) = diff_versions(out)[:1]
    assert (change.what, change.before, change.after) == ("character lion, reference", None, "a picture")
    assert change.pictures == (None, sha256)
    made.renderer.drawn.clear()
    (out / "panels" / f"{sha256}.png").unlink()  # lost, and taken from the cache
    edit(out, TakeFrame(frame=1, seed=9), plugins=made)
    assert [name for request in made.renderer.drawn for name, _ in request.pictures] == ["lion"]
    undo(out)
    edit(out, ChangeCharacter(name="lion", reference=""), plugins=made)
    made.renderer.drawn.clear()
    edit(out, TakeFrame(frame=2, seed=9), plugins=made)
    assert [request.pictures for request in made.renderer.drawn] == [()]


def test_what_a_renderer_cannot_follow_is_said(out: Path) -> None:
    made = plugins()
    sha256 = keep_picture(out, picture_file((40, 30), "PNG"))
    done = edit(out, ChangeCharacter(name="lion", reference=sha256), plugins=made)
    assert (made.renderer.drawn, done.drawn) == ([], ())  # nothing it is drawn from has changed
    assert done.remarks == ("'block' draws from words alone: the picture of lion is kept, and changes no frame.",)
    lion = read_board(out).plan.characters[0]
    assert list(
        unfollowed(SketchRenderer(), "sketch", (), [recast(lion, ChangeCharacter(name="lion", color="magenta"))])
    ) == [
        "'sketch' draws from words alone: the picture of lion is kept, and changes no frame.",
        "'sketch' has no drawing for 'magenta': lion is drawn without it.",
    ]
    edit(out, ChangeFrame(frame=2, prompt="Somebody sleeps."))
    done = edit(out, ChangeCharacter(name="lion", color="red"))
    assert "No word for lion was found in the prompt of frame 2: write it there yourself." in done.remarks
    edit(out, ChangeCharacter(name="lion", new_name="Mr Green", kind="man"))
    edit(out, ChangeFrame(frame=2, prompt="Mr Green sits down.", characters=["Mr Green"]))
    done = edit(out, ChangeCharacter(name="Mr Green", age="old"))
    assert not [said for said in done.remarks if "frame 2" in said and "No word" in said], "his name stands there"


@pytest.mark.parametrize("sha256", ["0" * 64, "../../run"])
def test_a_picture_that_the_run_does_not_keep_is_refused(out: Path, sha256: str) -> None:
    before = contents(out)
    plan = json.loads((out / "plan.json").read_text())
    plan["characters"][0]["reference"] = sha256
    with pytest.raises(UsageError, match="is not a picture that this run keeps"):
        edit(out, ReplacePlan(plan=Plan.model_validate(plan)))
    assert contents(out) == before
    for data, said in ((b"<svg/>", "not a picture"), (picture_file((9, 9), "PNG"), "9x9 pixels"), (b"", "empty")):
        with pytest.raises(InputFileError, match=said):
            keep_picture(out, data)


def test_frames_are_moved_added_and_removed_and_what_stays_is_not_drawn(out: Path) -> None:
    made = plugins()
    edit(out, MoveFrame(frame=5, to=2), plugins=made)
    assert trees(out) == ["1", "5", "2", "3", "4"]
    assert made.renderer.drawn == []
    edit(out, RemoveFrame(frame=1))
    assert trees(out) == ["5", "2", "3", "4"]
    done = edit(out, AddFrame(at=5, prompt="The lion rests at tree 9"))
    assert trees(out) == ["5", "2", "3", "4", "9"]
    assert done.drawn == (5,)
    view = read_board(out)
    assert [panel.index for panel in view.plan.panels] == [1, 2, 3, 4, 5]
    assert [frame.scene for frame in view.board.frames] == [1, 2, 3, 4, 5]
    assert view.plan.panels[4].characters == ["lion"]


def test_transitions_and_questions_move_with_their_scenes(out: Path) -> None:
    edit(out, RemoveFrame(frame=1))
    view = read_board(out)
    assert [item.pair for item in view.story.transitions] == [(1, 2), (2, 3), (3, 4)]
    assert view.story.transitions[0].action == "The lion runs to tree number 3."
    asked = view.story.recoverability_questions
    assert {item.target_transition for item in asked} == {(1, 2), (2, 3), (3, 4)}
    assert {item.question for item in asked if item.target_transition == (1, 2)} == {
        f"{kind} between scenes 2 and 3?" for kind in ("action_visibility", "causal", "emotional")
    }
    assert len(view.story.scenes) == 4
    rows = RunFolder(out).read_answers()
    assert {row.question_id for row in rows} <= {item.question_id for item in asked}


def test_own_questions_that_go_are_told(out: Path) -> None:
    done = edit(out, RemoveFrame(frame=3))
    assert "6 of the story's own questions went with the scenes that they ask about." in done.remarks


def test_a_frame_is_split(out: Path) -> None:
    done = edit(out, SplitFrame(frame=2, second="The lion looks back."))
    assert trees(out) == ["1", "2", "back", "3", "4", "5"]
    assert done.drawn == (3,)


def test_what_is_said_of_a_split_frame_is_divided(out: Path) -> None:
    pointed, lied = "The lion pointed at the table and cried.", '"A dog stole it," Ruby told the cat at the door.'
    told = {"place": "the shop", "time_of_day": "evening", "light": "lamp", "weather": "rain", "shot_size": "medium"}
    whole = ChangeFrame(
        frame=2, prompt="The lion points at the table. Ruby talks about the dog.", caption=f"{pointed} {lied}",
        characters=("lion", "Ruby"), must_show=("table", "door"), dialogue="A dog stole it,", **told,
    )  # fmt: skip
    edit(out, AddCharacter(name="Ruby", kind="girl"), AddCharacter(name="Tom", kind="cat"), whole)
    done = edit(out, SplitFrame(frame=2, first="The lion points at the table.", second="Ruby talks about the dog."))
    first, second = (panel.model_dump() for panel in read_board(out).plan.panels[1:3])
    said = ("caption", "characters", "must_show", "dialogue")
    assert [first[name] for name in said] == [pointed, ["lion"], ["table"], ""]
    assert [second[name] for name in said] == [lied, ["Ruby", "Tom"], ["door"], "A dog stole it,"]
    assert {name: second[name] for name in told} == told
    assert done.drawn == (2, 3)
    assert "Ruby left frame 2, whose words do not name them any more." in done.remarks


def test_a_split_frame_s_piece_of_the_story_is_divided_and_who_is_only_he_stays() -> None:
    pieces = "Mr Green pointed at the table.", "He cried.", '"A dog stole it," Ruby said.'
    panel = Panel(index=1, prompt="He points and cries.", caption="It was late.", source="\n\n".join(pieces),
                  characters=["Mr Green"], place="shop", shot_size="wide")  # fmt: skip
    cast = [Character(name="Mr Green", kind="man", appearance=""), Character(name="Ruby", kind="girl", appearance="")]
    first, second = divided(panel, panel.prompt, "Close-up of Ruby. She talks about the dog.", cast)
    assert (first["source"], second["source"]) == ("\n\n".join(pieces[:2]), pieces[2])
    assert (first["caption"], second["caption"]) == ("It was late.", pieces[2])
    assert (first["characters"], second["characters"]) == (["Mr Green"], ["Ruby"])
    two = [panel.model_copy(update=first), panel.model_copy(update={"index": 2, "prompt": "Ruby talks.", **second})]
    plan = Plan(story_id="s", planner="p", characters=cast, panels=two, transitions=[])
    assert [item.scene for item in sentences(" ".join(pieces), plan)] == [1, 1, 2]


def test_a_second_frame_keeps_the_shot_that_its_own_words_begin_with(out: Path) -> None:
    edit(out, ChangeFrame(frame=2, shot_size="wide", time_of_day="evening"))
    edit(out, SplitFrame(frame=2, second="Close-up. The lion looks back."))
    panel = read_board(out).plan.panels[2]
    assert (panel.shot_size, panel.time_of_day, panel.characters) == ("close-up", "evening", ["lion"])


def test_a_locked_frame_keeps_its_picture(out: Path) -> None:
    sha256 = read_board(out).board.frames[1].sha256
    edit(out, LockFrame(frame=2))
    assert read_board(out).locked == (2,)
    for refused in (TakeFrame(frame=2, seed=7), RemoveFrame(frame=2)):
        with pytest.raises(UsageError, match="Frame 2 is locked"):
            edit(out, refused)
    done = edit(out, ChangeCharacter(name="lion", kind="tiger"))
    assert done.drawn == (1, 3, 4, 5)
    assert read_board(out).board.frames[1].sha256 == sha256
    assert "Frame 2 is locked: its picture stays, although its words have changed." in done.remarks
    edit(out, MoveFrame(frame=2, to=1))
    assert read_board(out).locked == (1,)
    assert edit(out, LockFrame(frame=1, locked=False)).drawn == (1,)
    assert read_board(out).board.frames[0].sha256 != sha256


def test_a_transition_in_a_person_s_words(out: Path) -> None:
    edit(out, ChangeTransition(pair=(2, 3), action="The lion flies."))
    assert read_board(out).story.transitions[1].action == "The lion flies."


def test_a_new_look_is_not_put_into_a_prompt_that_names_its_character() -> None:
    tom = Character(name="Tom", kind="boy", appearance="boy of eight, black hair", anchor_prompt="Tom")
    prompt = "Tom holds out the key, and her balloon shows the boy alone at the gate."
    assert redressed(prompt, tom, tom.model_copy(update={"appearance": "boy of eight, red hair"})) == prompt
    bare = "The boy holds out the key."
    assert "red hair" in redressed(bare, tom, tom.model_copy(update={"appearance": "boy of eight, red hair"}))


def test_what_a_model_said_of_a_change_is_not_written_over_by_a_rule(out: Path) -> None:
    plan = json.loads((out / "plan.json").read_text("utf-8"))
    told = [item["action"] for item in plan["transitions"]]
    plan["transitions"] = [{**item, "device": "trail", "shown": "paw prints"} for item in plan["transitions"]]
    (out / "plan.json").write_text(json.dumps(plan), "utf-8")
    done = edit(out, ChangeFrame(frame=2, prompt="Furious, the lion climbs a hill at tree 2"))
    assert [item.action for item in read_board(out).plan.transitions] == told
    assert any("because a model wrote them: the transitions of scenes 1 to 2, 2 to 3." in one for one in done.remarks)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (ChangeFrame(frame=9, prompt="x"), "no frame 9.*1 to 5"),
        (ChangeFrame(frame=1, prompt=" "), "prompt of frame 1 is empty"),
        (ChangeFrame(frame=1, characters=("bear",)), "unknown character 'bear'"),
        (AddFrame(at=9, prompt="x"), "cannot be number 9"),
        (AddFrame(at=1), "no prompt"),
        (MoveFrame(frame=1, to=0), "no frame 0"),
        (InsertBridge(pair=(1, 3)), "no neighbours"),
        (ChangeTransition(pair=(5, 6), action="x"), "no neighbours"),
    ],
)
def test_what_cannot_be_done_changes_nothing(out: Path, wrong: Edit, message: str) -> None:
    before = contents(out)
    with pytest.raises(UsageError, match=message):
        edit(out, ChangeFrame(frame=1, notes="not even this"), wrong)
    assert contents(out) == before


def test_the_last_two_panels_stay(tmp_path: Path) -> None:
    out = tmp_path / "two"
    config = Settings(planner="scenes", renderer="block", judges=("pixel",), seeds=(42,), mode="full", panels=2)
    run_story(story(scenes=2), config, out, plugins=plugins())
    with pytest.raises(UsageError, match="needs 2 panels"):
        edit(out, RemoveFrame(frame=1))


def test_edits_are_read_from_json() -> None:
    assert EDIT.validate_python({"op": "move", "frame": 1, "to": 2}) == MoveFrame(frame=1, to=2)
    for bad in (
        {"op": "eval", "frame": 1},
        {"op": "change", "frame": 1, "image": "x"},
        {"op": "take", "frame": 1, "seed": -1},
    ):
        with pytest.raises(ValueError):
            EDIT.validate_python(bad)


# Bridges.


def test_a_bridge_is_proposed_and_put_in_and_taken_out(out: Path) -> None:
    before = contents(out)
    found = propose_bridge(out, plugins=plugins())
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    assert {item.seed for item in found} == {42, 123}
    assert contents(out) == before
    best, made = found[0], plugins()
    done = edit(out, InsertBridge(pair=best.pair, seed=best.seed, prompt=best.prompt), plugins=made)
    assert made.renderer.drawn == []
    bridge = next(frame for frame in done.result.board.frames if frame.kind == "bridge")
    assert (bridge.sha256, bridge.transition) == (best.sha256, best.pair)
    assert done.result.candidates.decision.accepted
    score = next(item for item in done.result.candidates.candidates if item.name == "edit:002").score.total
    assert score == pytest.approx(best.score)
    with pytest.raises(UsageError, match="already"):
        edit(out, InsertBridge(pair=best.pair))
    again = edit(out, ChangeFrame(frame=bridge.index, prompt="The lion yawns."))
    assert again.result.board.frames[bridge.index - 1].prompt == "The lion yawns."
    edit(out, RemoveFrame(frame=bridge.index))
    assert [frame.kind for frame in read_board(out).board.frames] == ["scene"] * 5
    assert not edit(out, LockFrame(frame=1)).result.candidates.decision.accepted


def test_a_bridge_goes_where_its_scenes_part(out: Path) -> None:
    edit(out, InsertBridge(pair=(2, 3)))
    assert [frame.kind for frame in read_board(out).board.frames][2] == "bridge"
    done = edit(out, MoveFrame(frame=1, to=6))
    assert done.result.board.frames[1].transition == (1, 2)
    done = edit(out, AddFrame(at=2, prompt="The lion waits at 7"))
    assert {frame.kind for frame in done.result.board.frames} == {"scene"}
    assert any("bridge frame was taken off" in item for item in done.remarks)


# Takes.


def test_takes_are_drawn_and_the_board_does_not_change(out: Path) -> None:
    before, made = contents(out), plugins()
    takes = draw_takes(out, 3, count=3, plugins=made)
    assert contents(out) == before
    assert [take.chosen for take in takes] == [True, False, False, False]
    assert len({take.sha256 for take in takes}) == 4
    assert len(made.renderer.drawn) == 3
    assert all((out / "panels" / f"{take.sha256}.png").is_file() for take in takes)
    again = plugins()
    done = edit(out, TakeFrame(frame=3, seed=takes[2].seed), plugins=again)
    assert again.renderer.drawn == []
    assert done.result.board.frames[2].sha256 == takes[2].sha256


def test_takes_of_another_prompt(out: Path) -> None:
    takes = draw_takes(out, 1, (5, 6), prompt="The lion sings.", plugins=plugins())
    assert [take.prompt for take in takes[1:]] == ["The lion sings."] * 2
    done = edit(out, TakeFrame(frame=1, seed=6, prompt="The lion sings."))
    assert done.result.board.frames[0].sha256 == takes[2].sha256
    assert read_board(out).plan.panels[0].prompt == "The lion sings."


def test_a_batch_renderer_draws_an_edit_among_the_others(tmp_path: Path) -> None:
    out, able = tmp_path / "out", Capabilities(identity="batch", insertion="reference", default_size=(64, 48))
    run(out, renderer=BlockRenderer(capabilities=able))
    made = plugins(renderer=BlockRenderer(capabilities=able))
    done = edit(
        out, ChangeFrame(frame=2, prompt="one"), AddFrame(at=3, prompt="two"), InsertBridge(pair=(1, 2)), plugins=made
    )
    assert done.drawn == (2, 3, 4)
    assert len(made.renderer.drawn) == 3


# Versions.


def test_undo_and_forward_over_the_whole_history(out: Path) -> None:
    states = [contents(out)]
    steps_: Sequence[Edit] = (ChangeFrame(frame=1, prompt="one"), MoveFrame(frame=1, to=3), RemoveFrame(frame=2))
    for step in steps_:
        edit(out, step)
        states.append(contents(out))
    for state in reversed(states[:-1]):
        undo(out)
        assert contents(out) == state
    with pytest.raises(UsageError, match="nothing to undo"):
        undo(out)
    for state in states[1:]:
        forward(out)
        assert contents(out) == state
    with pytest.raises(UsageError, match="Nothing was made from version 004"):
        forward(out)


def test_an_edit_after_an_undo_is_a_branch_and_nothing_is_lost(out: Path) -> None:
    edit(out, ChangeFrame(frame=1, prompt="one"))
    one = contents(out)
    undo(out)
    edit(out, ChangeFrame(frame=1, prompt="two"))
    listed = list_versions(out)
    assert [(item.name, item.parent, item.current) for item in listed] == [
        ("001", None, False),
        ("002", "001", False),
        ("003", "001", True),
    ]
    assert [item.says for item in listed] == ["as it was drawn", *["frame 1 got another prompt"] * 2]
    go_to(out, "002")
    assert contents(out) == one
    with pytest.raises(UsageError, match=r"no version '009'.*001, 002, 003"):
        go_to(out, "009")
    with pytest.raises(UsageError, match="no version"):
        go_to(out, "../../x")


def test_two_people_do_not_write_over_each_other(out: Path) -> None:
    seen = read_board(out).version
    edit(out, ChangeFrame(frame=1, prompt="one"), base=seen)
    with pytest.raises(UsageError, match="version 002 by now"):
        edit(out, ChangeFrame(frame=1, prompt="two"), base=seen)
    assert prompts(out)[0] == "one"


def test_what_differs_between_two_versions(out: Path) -> None:
    old = read_board(out).board.frames
    edit(out, ChangeFrame(frame=2, prompt="one"), LockFrame(frame=3))
    found = {item.what: item for item in diff_versions(out)}
    assert found["frame 2"].pictures == (old[1].sha256, read_board(out).board.frames[1].sha256)
    assert (found["panel 2, prompt"].before, found["panel 2, prompt"].after) == (old[1].prompt, "one")
    assert found["frame 3, lock"].after == "True"
    edit(out, MoveFrame(frame=1, to=5))
    moved = {item.what: item for item in diff_versions(out)}
    assert (moved["frame 5"].before, moved["frame 5"].after) == ("number 1", "number 5")
    assert diff_versions(out, "001", "001") == ()


# An edited plan.json.


def rewrite(out: Path, change: Any) -> None:
    plan = json.loads((out / "plan.json").read_text())
    change(plan)
    (out / "plan.json").write_text(json.dumps(plan))


def test_an_edited_plan_is_an_edit(out: Path) -> None:
    before = contents(out)

    def change(plan: Any) -> None:
        plan["panels"][1]["prompt"] = "The lion dances."
        plan["panels"][3]["place"] = "forest"
        del plan["panels"][4]

    rewrite(out, change)
    done = edit(out)
    assert done.drawn == (2, 4)
    assert [frame.prompt for frame in done.result.board.frames][1] == "The lion dances."
    assert len(done.result.board.frames) == 4
    assert run(out).reused
    undo(out)
    assert contents(out) == before


def test_the_same_run_again_takes_an_edited_plan_over(out: Path) -> None:
    rewrite(out, lambda plan: plan["panels"][0].update(prompt="The lion dances."))
    result = run(out)
    assert result.board.frames[0].prompt == "The lion dances."
    assert not (out / "damaged").exists()
    assert run(out).reused


def test_a_cast_that_was_edited_in_the_file_is_drawn(out: Path) -> None:
    rewrite(out, lambda plan: plan["characters"][0].update(kind="tiger", appearance="a tiger"))
    assert edit(out).drawn == (1, 2, 3, 4, 5)
    assert prompts(out)[0] == "The tiger walks past tree number 1."


def test_an_untaken_plan_is_not_undone_by_accident(out: Path) -> None:
    edit(out, ChangeFrame(frame=1, prompt="one"))
    rewrite(out, lambda plan: plan["panels"][0].update(prompt="two"))
    with pytest.raises(UsageError, match="was edited"):
        undo(out)
    edit(out, ChangeFrame(frame=2, prompt="three"))
    assert prompts(out)[:2] == ["two", "three"]
    assert [item.name for item in list_versions(out)] == ["001", "002", "003", "004"]


def test_a_plan_that_cannot_be_taken_is_still_there(out: Path) -> None:
    rewrite(out, lambda plan: plan["panels"][0].update(characters=["bear"]))
    edited = (out / "plan.json").read_text()
    with pytest.raises(UsageError, match="unknown character 'bear'"):
        edit(out)
    assert json.loads((out / "plan.json").read_text())["panels"][0] == json.loads(edited)["panels"][0]


def test_panels_without_a_number_or_with_the_same_are_panels(out: Path) -> None:
    def change(plan: Any) -> None:
        plan["panels"][1]["index"] = 1
        plan["panels"].append({"prompt": "The lion dances."})

    before = prompts(out)
    rewrite(out, change)
    edit(out)
    assert prompts(out) == [*before, "The lion dances."]


def test_a_prompt_without_end_is_refused_before_it_is_read(out: Path) -> None:
    rewrite(out, lambda plan: plan["panels"][1].update(prompt="The lion sits. " * 20_000))
    with pytest.raises(PlanError, match=r"'panels\[2\].prompt' holds 300,000 characters"):
        edit(out)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"format": 1,, "panels": []}', "line 1, column 14"),
        ('{"story_id": "s", "planner": "p", "panels": {}}', "panels: Input should be a valid list"),
        ('{"panels": []}', "story_id: Field required"),
    ],
)
@pytest.mark.parametrize("again", [edit, undo, run])
def test_an_edited_plan_that_is_none_is_named_and_kept(
    out: Path, again: Callable[[Path], object], text: str, said: str
) -> None:
    (out / "plan.json").write_text(text)
    with pytest.raises(PlanError, match=said) as found:
        again(out)
    assert "versions/001/plan.json" in str(found.value)
    assert (out / "plan.json").read_text() == text


def test_a_run_that_was_left_half_way_goes_on_with_the_edited_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "half"

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(graph, "judge_boards", die)
    with pytest.raises(KeyboardInterrupt):
        run(out)
    monkeypatch.undo()
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    rewrite(out, lambda plan: plan["panels"][0].update(prompt="The lion dances."))
    assert run(out).board.frames[0].prompt == "The lion dances."
    assert run(out).reused


# Kills and losses.


class _Killed(BaseException):
    pass


def kill_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Make the `number`th write of a file die before it happens; the names of those that were written."""
    written: list[str] = []
    from katha import jsonio

    real = jsonio.write_bytes_atomic

    def write(path: Path, data: bytes, *, durable: bool = True) -> None:
        if len(written) == number:
            raise _Killed
        written.append(path.name)
        real(path, data, durable=durable)

    for module in (jsonio, folder, names):
        monkeypatch.setattr(module, "write_bytes_atomic", write)
    return written


@pytest.mark.parametrize("how", ["prompt", "plan", "undo"])
def test_a_kill_between_any_two_writes_leaves_the_old_version_or_the_new(
    out: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    def work() -> None:
        if how == "prompt":
            edit(out, ChangeFrame(frame=2, prompt="The lion dances."), LockFrame(frame=1))
        elif how == "plan":
            edit(out)
        else:
            undo(out)

    if how == "undo":
        edit(out, ChangeFrame(frame=2, prompt="The lion sings."))
    before, number = contents(out), 0
    while True:
        if (
            how == "plan"
            and "dances" not in (out / "plan.json").read_text()
            and not (out / "versions/edited.json").is_file()
        ):
            rewrite(out, lambda plan: plan["panels"][1].update(prompt="The lion dances."))
        with monkeypatch.context() as patch:
            kill_at(patch, number)
            try:
                work()
            except _Killed:
                killed = True
            else:
                killed = False
        if not killed:
            break
        RunFolder(out).restore()
        if how == "plan":
            kept = [path for path in (out / "plan.json", out / "versions/edited.json") if path.is_file()]
            assert any("dances" in path.read_text() for path in kept)
        state = json.loads((out / "run.json").read_text())
        if how != "plan" and contents(out) != before:
            assert state.get("version", "001") == ("001" if how == "undo" else "002")
            break
        number += 1
    assert number > 5
    done = read_board(out)
    assert done.board.frames[1].prompt == (
        "The lion walks past tree number 2." if how == "undo" else "The lion dances."
    )
    assert run(out).board.frames == done.board.frames


def test_lost_files_are_made_again_with_every_edit(out: Path) -> None:
    edit(out, ChangeFrame(frame=2, prompt="The lion dances."))
    edit(out, MoveFrame(frame=2, to=4))
    edit(out, TakeFrame(frame=1, seed=9))
    board = read_board(out).board
    (out / "scores.json").write_text("{}")
    (out / "candidates.json").unlink()
    again = run(out)
    assert again.board.frames == board.frames
    assert [item.get("says") for item in json.loads((out / "run.json").read_text())["redone"]][:2] == [
        "frame 2 got another prompt",
        "frame 2 was moved to place 4",
    ]
    assert run(out).reused


def test_a_kill_while_lost_files_are_made_again_loses_no_edit(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(out, ChangeFrame(frame=2, prompt="The lion dances."))
    edit(out, TakeFrame(frame=1, seed=9))
    board = read_board(out).board
    (out / "candidates.json").unlink()

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for module in (graph, edit_session):
        with monkeypatch.context() as patch:
            patch.setattr(module, "judge_boards", die)
            with pytest.raises(KeyboardInterrupt):
                run(out)
    with pytest.raises(OutputFolderError, match="Finish it first"):
        edit(out, TakeFrame(frame=1, seed=10))
    assert run(out).board.frames == board.frames


def test_a_judge_that_fails_leaves_the_board_as_it_was(out: Path) -> None:
    from doubles import BuggyJudge

    before = contents(out)
    with pytest.raises(KathaError, match="the judge is out"):
        edit(out, ChangeFrame(frame=2, prompt="one"), plugins=plugins(judges={"pixel": BuggyJudge(broken=True)}))
    assert contents(out) == before
    assert not (out / "versions" / "pending").exists()


def test_a_link_in_the_way_is_refused(out: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    for path in (out / "versions").iterdir():
        path.rename(tmp_path / "elsewhere" / path.name)
    (out / "versions").rmdir()
    (out / "versions").symlink_to(tmp_path / "elsewhere")
    before = sorted(path.name for path in (tmp_path / "elsewhere").rglob("*"))
    with pytest.raises(OutputFolderError, match="is a link"):
        edit(out, ChangeFrame(frame=2, prompt="one"))
    assert sorted(path.name for path in (tmp_path / "elsewhere").rglob("*")) == before


# Names.


def test_frames_have_names_that_follow_the_board(out: Path) -> None:
    first = "01_the_lion_walks_past_tree_number.png"
    assert named(out)[0] == first
    board = read_board(out).board
    assert (out / "frames" / first).read_bytes() == (out / board.frames[0].image).read_bytes()
    edit(out, AddFrame(at=1, prompt="A mouse appears."))
    assert named(out)[:2] == ["01_a_mouse_appears.png", "02_the_lion_walks_past_tree_number.png"]
    assert len(named(out)) == 6
    undo(out)
    assert named(out)[0] == first


def test_a_picture_that_somebody_put_there_is_kept(out: Path) -> None:
    name = named(out)[0]
    (out / "frames" / name).write_bytes(b"painted over")
    (out / "frames" / "mine.psd").write_bytes(b"layers")
    run(out)
    assert (out / "damaged" / name).read_bytes() == b"painted over"
    assert (out / "frames" / "mine.psd").read_bytes() == b"layers"
    assert (out / "frames" / name).read_bytes() == (out / read_board(out).board.frames[0].image).read_bytes()


def test_plans_stay_valid(out: Path) -> None:
    edit(out, SplitFrame(frame=1, second="The lion sits."), MoveFrame(frame=6, to=1), LockFrame(frame=2))
    plan = Plan.model_validate_json((out / "plan.json").read_bytes())
    assert read_board(out).board.plan_sha256 == digest(plan.model_dump(mode="json"))


# A part of a frame, inside a mask.


def mask_file(size: tuple[int, int] = (64, 48), white: tuple[int, int, int, int] | None = (0, 0, 32, 48)) -> bytes:
    data, mask = io.BytesIO(), Image.new("L", size)
    if white is not None:
        mask.paste(255, white)
    mask.save(data, "PNG")
    return data.getvalue()


def shown(out: Path, number: int) -> Image.Image:
    with Image.open(out / read_board(out).board.frames[number - 1].image) as image:
        return image.convert("RGB")


def test_a_part_is_drawn_inside_a_mask_and_the_rest_stays_pixel_for_pixel(out: Path) -> None:
    before, old, made = read_board(out).board, shown(out, 2), plugins()
    mask = keep_picture(out, mask_file())
    done = edit(out, TakeFrame(frame=2, seed=9, prompt="The lion sings.", mask=mask), plugins=made)
    after, new = read_board(out).board, shown(out, 2)
    assert (done.drawn, [request.prompt for request in made.renderer.drawn]) == ((2,), ["The lion sings."])
    assert new.crop((32, 0, 64, 48)).tobytes() == old.crop((32, 0, 64, 48)).tobytes()
    assert new.crop((0, 0, 32, 48)).tobytes() != old.crop((0, 0, 32, 48)).tobytes()
    assert after.frames[2:] == before.frames[2:]
    inpainted = (after.frames[1].model_extra or {})["inpainted"]
    assert inpainted == {"picture": before.frames[1].sha256, "mask": mask}
    assert "inside a mask" in list_versions(out)[-1].says
    undo(out)
    assert read_board(out).board == before
    again = plugins()
    edit(out, TakeFrame(frame=2, seed=9, prompt="The lion sings.", mask=mask), plugins=again)
    assert (again.renderer.drawn, read_board(out).board.frames) == ([], after.frames)  # it is kept like any frame
    edit(out, TakeFrame(frame=2, seed=10))
    whole = read_board(out).board.frames[1]
    assert (whole.model_extra or {})["inpainted"] is None
    assert whole.sha256 not in (after.frames[1].sha256, before.frames[1].sha256)


def test_another_mask_is_another_picture_and_a_lost_cache_draws_it_again(out: Path, tmp_path: Path) -> None:
    left, right = (keep_picture(out, mask_file(white=part)) for part in ((0, 0, 32, 48), (32, 0, 64, 48)))
    one = edit(out, TakeFrame(frame=1, seed=9, mask=left)).result.board.frames[0]
    undo(out)
    two = edit(out, TakeFrame(frame=1, seed=9, mask=right)).result.board.frames[0]
    assert one.sha256 != two.sha256
    shutil.rmtree(tmp_path / "cache")
    undo(out)
    assert edit(out, TakeFrame(frame=1, seed=9, mask=right)).result.board.frames[0] == two


@pytest.mark.parametrize(
    ("mask", "said"),
    [
        (mask_file(white=None), "Nothing of the mask is white"),
        (mask_file((64, 64), (0, 0, 9, 9)), "64x64 pixels, and the frame 64x48"),
        (None, "not a picture that this run keeps"),
    ],
    ids=("black", "square", "stray"),
)
def test_a_mask_that_cannot_be_used_is_refused_and_nothing_changes(out: Path, mask: bytes | None, said: str) -> None:
    before = contents(out)
    kept = keep_picture(out, mask) if mask is not None else "0" * 64
    with pytest.raises(UsageError, match=said):
        edit(out, TakeFrame(frame=2, seed=9, mask=kept))
    assert contents(out) == before


def test_a_locked_frame_and_a_renderer_without_masks_refuse_one(out: Path) -> None:
    mask = keep_picture(out, mask_file())

    class WholeFrames(BlockRenderer):
        inpaint_frame = Renderer.inpaint_frame

    with pytest.raises(UsageError, match="has no masks"):
        edit(out, TakeFrame(frame=2, seed=9, mask=mask), plugins=plugins(renderer=WholeFrames()))
    edit(out, LockFrame(frame=2))
    with pytest.raises(UsageError, match="locked"):
        edit(out, TakeFrame(frame=2, seed=9, mask=mask))


# A person's own pictures, several frames at once, and what is said of a shot.


def test_a_picture_of_one_s_own_stays_until_the_frame_is_drawn_again(out: Path) -> None:
    own = keep_own(out, picture_file((640, 480), "JPEG"))
    done = edit(out, GivePicture(frame=2, picture=own))
    assert done.drawn == (2,)
    assert read_board(out).board.frames[1].sha256 == own
    said = edit(out, ChangeFrame(frame=2, prompt="The lion sleeps."))
    assert said.remarks[0] == "Frame 2 is a picture of your own: it stays, although its words have changed."
    assert read_board(out).board.frames[1].sha256 == own
    assert edit(out, TakeFrame(frame=2, seed=9)).drawn == (2,)
    frame = read_board(out).board.frames[1]
    assert (frame.sha256 != own, (frame.model_extra or {})["own"]) == (True, None)
    undo(out)
    assert read_board(out).board.frames[1].sha256 == own


def test_a_scene_is_doubled_with_its_picture_and_a_bridge_is_not(out: Path) -> None:
    made = plugins()
    before = read_board(out).board.frames
    edit(out, DuplicateFrame(frame=2), plugins=made)
    after = read_board(out)
    assert made.renderer.drawn == []
    assert [frame.sha256 for frame in after.board.frames] == [
        frame.sha256 for at in (0, 1, 1, 2, 3, 4) for frame in [before[at]]
    ]
    assert [panel.index for panel in after.plan.panels] == [1, 2, 3, 4, 5, 6]
    edit(out, InsertBridge(pair=(1, 2), prompt="Between."))
    with pytest.raises(UsageError, match="Frame 2 was inserted and cannot be doubled"):
        edit(out, DuplicateFrame(frame=2))


def test_a_frame_comes_from_another_board_with_its_words(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out, tmp_path / "other")
    edit(tmp_path / "other", ChangeFrame(frame=3, prompt="A ship sails.", caption="A ship.", weather="storm"))
    theirs = read_board(tmp_path / "other").board.frames[2]
    edit(out, *copied_from(out, tmp_path / "other", 3, at=2))
    ours = read_board(out)
    assert ours.board.frames[1].sha256 == theirs.sha256
    panel = ours.plan.panels[1]
    assert (panel.prompt, panel.caption, panel.weather) == ("A ship sails.", "A ship.", "storm")
    edit(out, *copied_from(out, tmp_path / "other", 3))
    assert read_board(out).board.frames[-1].sha256 == theirs.sha256
    with pytest.raises(UsageError, match="no frame 9 in"):
        copied_from(out, tmp_path / "other", 9)


def test_frames_are_found_by_any_words_that_are_said_of_them(out: Path) -> None:
    edit(out, ChangeFrame(frame=2, place="Kitchen", camera_move="pan left"), ChangeFrame(frame=4, sound="Pan lids"))
    assert find_frames(out, "kitchen") == (2,)
    assert find_frames(out, "PAN") == (2, 4)
    assert find_frames(out, "pan kitchen") == (2,)
    assert find_frames(out, " ") == find_frames(out, "zeppelin") == ()


def test_a_bridge_is_marked_when_a_picture_beside_it_changes_and_not_for_others(out: Path) -> None:
    edit(out, InsertBridge(pair=(2, 3), prompt="Between."))
    edit(out, TakeFrame(frame=1, seed=7), ChangeFrame(frame=2, caption="Other words."))
    assert (stale(out), told_stale(out)) == ([], None)
    edit(out, TakeFrame(frame=4, seed=7))
    assert (stale(out), told_stale(out)) == ([3], [3])
    (said,) = sentences_of_stale(read_board(out).board, "fox")
    assert said.startswith("Frame 3, the bridge between scenes 2 and 3, is older")
    assert said.endswith("katha redo fox --remove 3.")
    edit(out, TakeFrame(frame=3, seed=8))
    assert (stale(out), told_stale(out)) == ([], None)
    undo(out)
    assert told_stale(out) == [3]
    edit(out, RemoveFrame(frame=3))
    assert (stale(out), told_stale(out)) == ([], None)


def stale(out: Path) -> list[int]:
    return [frame.index for frame in read_board(out).board.frames if is_stale(frame)]


def told_stale(out: Path) -> list[int] | None:
    told: list[int] | None = json.loads((out / "run.json").read_text()).get("stale")
    return told


def test_the_words_of_a_shot_are_drawn_kept_and_compared(out: Path) -> None:
    made = plugins()
    done = edit(out, ChangeFrame(frame=1, weather="snow", light="moonlight", camera_move="pan left"), plugins=made)
    assert done.drawn == (1,)
    assert "in the snow" in made.renderer.drawn[0].prompt
    assert "moonlight" in made.renderer.drawn[0].prompt
    assert done.remarks == ("No still picture shows the camera move of frame 1: films and the player follow it.",)
    assert prompts(out)[0] == "The lion walks past tree number 1.", "the panel's own words stay"
    found = {item.what: item.after for item in diff_versions(out)}
    assert found["panel 1, camera move"] == "pan left"
    edit(out, ChangeFrame(frame=1, sound="wind"), plugins=made)
    assert len(made.renderer.drawn) == 1, "a sound draws nothing"


def test_a_prompt_s_words_of_the_camera_go_to_its_fields(out: Path) -> None:
    made = plugins()
    edit(out, ChangeFrame(frame=1, prompt="Bird's eye view of the lion's tree"), plugins=made)
    panel = read_board(out).plan.panels[0]
    assert (panel.prompt, panel.shot_angle) == ("The lion's tree", "bird's eye")
    assert "seen from straight above" in made.renderer.drawn[0].prompt
    edit(out, ChangeFrame(frame=1, prompt="Insert."))
    panel = read_board(out).plan.panels[0]
    assert (panel.prompt, panel.shot_size) == ("The lion's tree", "insert")
    edit(out, AddFrame(at=1, prompt="Low angle. A tree."))
    assert (read_board(out).plan.panels[0].prompt, read_board(out).plan.panels[0].shot_angle) == (
        "A tree.",
        "low angle",
    )


def test_frames_that_get_the_same_words_are_told_together(out: Path) -> None:
    edit(out, *(ChangeFrame(frame=at, weather="rain") for at in (2, 3, 4)), ChangeFrame(frame=5, weather="fog"))
    assert list_versions(out)[-1].says == "frames 2, 3, 4 got another weather; frame 5 got another weather"


def test_a_look_by_fields_reaches_every_prompt_and_can_be_taken_away(out: Path) -> None:
    made, before = plugins(), read_board(out).plan.characters[0]
    done = edit(out, ChangeCharacter(name=before.name, hair="a curly mane", clothing="a red scarf"), plugins=made)
    now = read_board(out).plan.characters[0]
    assert now.appearance == f"{before.appearance} with a curly mane, wearing a red scarf"
    first = {"first_look": before.appearance}
    assert now.model_extra == {"hair": "a curly mane", "clothing": "a red scarf"} | first
    alone = recast(before.model_copy(update={"anchor_prompt": "A lion."}), ChangeCharacter(name="lion", hair="red"))
    assert alone.anchor_prompt == "A lion with red hair."
    assert done.drawn
    asked = [request for request in made.renderer.drawn if request.characters]
    assert asked
    assert all("a curly mane" in request.prompt and "a red scarf" in request.prompt for request in asked)
    assert all(not request.characters[0].model_extra for request in asked), "the sheet is in no cache key"
    assert {item.what: item.after for item in diff_versions(out)}[f"character {now.name}, hair"] == "a curly mane"
    assert list_versions(out)[-1].says == f"the character {now.name} got another hair and clothing"
    edit(out, ChangeCharacter(name=now.name, hair="", clothing="a hat"), plugins=made)
    assert read_board(out).plan.characters[0].appearance == f"{before.appearance}, wearing a hat"
    edit(out, ChangeCharacter(name=now.name, appearance="a lion in a yellow coat"), plugins=made)
    told = read_board(out).plan.characters[0]
    assert (told.appearance, told.model_extra) == ("a lion in a yellow coat", first), "the newer words count"


def test_a_prop_looks_as_it_is_said_in_the_frames_that_name_it(out: Path) -> None:
    made = plugins()
    edit(out, ChangeFrame(frame=2, prompt="The lion looks at the kettle."), plugins=made)
    done = edit(out, ChangeProp(name="kettle", looks="a dented red kettle"), plugins=made)
    assert done.drawn == (2,)
    assert "a dented red kettle" in made.renderer.drawn[-1].prompt
    assert done.remarks == ("kettle is a new prop of this board; the prompt of frame 2 names it.",)
    found = {item.what: item.after for item in diff_versions(out)}
    assert found["prop kettle, looks"] == "a dented red kettle"
    with pytest.raises(UsageError, match="There is a prop 'Kettle' already"):
        edit(out, ChangeProp(name="spoon"), ChangeProp(name="spoon", new_name="Kettle"))
    picture = keep_picture(out, picture_file((40, 30), "PNG"))
    done = edit(out, ChangeProp(name="Kettle", reference=picture), plugins=made)
    assert any("draws no things from pictures: the picture of kettle is kept" in said for said in done.remarks)
    with pytest.raises(UsageError, match="The reference picture of 'kettle' is not a picture that this run keeps"):
        edit(out, ChangeProp(name="kettle", reference="0" * 64))
