"""Boards that were sent to somebody and come back: shot lists, comments and statuses, copies of a run's folder."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from typer.testing import CliRunner, Result

from katha.agents.editor.editing import edit_board, read_board
from katha.agents.editor.edits import ChangeFrame, InsertBridge, MoveFrame, RemoveFrame
from katha.agents.editor.talk import comments_of, status_of
from katha.app.cli.main import app
from katha.app.exports import ExportOptions, export, read_sheet
from katha.app.exports.shots import COLUMNS
from katha.errors import InputFileError, UsageError
from katha.schema import Frame

STORY = Path(__file__).parents[2] / "examples" / "fox_and_crow.txt"
Rows = list[dict[str, str]]


def katha(*words: object) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a bridge after scene 2."""
    base = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(base / "cache"))
        katha("run", STORY, "--seeds", "42", "--panels", 4, "--mode", "rerank_only", "--out", base / "fox")
        edit_board(base / "fox", [InsertBridge(pair=(2, 3), prompt="The crow looks down.")])
    return base


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "fox"


def frame(run: Path, number: int) -> Frame:
    return read_board(run).board.frames[number - 1]


def panel(run: Path, number: int) -> dict[str, Any]:
    return read_board(run).plan.panels[number - 1].model_dump()


def pictures(run: Path) -> list[str]:
    return [item.sha256 for item in read_board(run).board.frames]


def listed(run: Path, change: Callable[[Rows], None], **how: str) -> Path:
    """The run's shot list, changed as a person would."""
    path = export(run, "shots", run.parent / "shots.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    change(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter=how.get("delimiter", ","))
        writer.writeheader()
        writer.writerows(rows)
    return path


def put(number: int, **cells: str) -> Callable[[Rows], None]:
    return lambda rows: rows[number - 1].update({name.replace("_", " "): value for name, value in cells.items()})


def test_a_shot_list_has_a_row_for_every_frame(run: Path) -> None:
    path = export(run, "shots", run.parent / "shots.csv")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert [row["frame"] for row in rows] == ["1", "2", "3 (bridge)", "4", "5"]
    assert [row["id"] for row in rows] == [f"v002-{at:02d}-{sha[:8]}" for at, sha in enumerate(pictures(run), 1)]
    assert [row["caption"] for row in rows] == [shot.caption for shot in read_sheet(run, ExportOptions()).shots]


def test_a_list_says_who_is_in_a_shot_what_it_shows_and_what_a_caption_has_spoken(run: Path) -> None:
    edit_board(run, [
        ChangeFrame(frame=1, caption='"Give it to me," said the fox. "Please!" He meant the "old" cheese.'),
        ChangeFrame(frame=2, caption='"No!" said the crow.', dialogue="Never."),
    ])  # fmt: skip
    path = export(run, "shots", run.parent / "shots.csv")
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert next(iter(rows[0])) == "frame"
    assert list(rows[0])[-1] == "id"
    first = panel(run, 1)
    assert rows[0]["who"] == ", ".join(first["characters"]) != ""
    assert rows[0]["picture"] == first["prompt"]
    assert rows[2]["picture"] == "The crow looks down."
    assert [row["dialogue"] for row in rows[:2]] == ["Give it to me Please!", "Never."]
    for order in (list(rows[0]), ["id", *list(rows[0])[:-1]]):  # as it is now, and as older lists have it
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, order)
            writer.writeheader()
            writer.writerows(rows)
        assert "Nothing else was changed there" in katha("redo", run, "--shots", path).output


def test_what_a_picture_shows_is_changed_in_a_list_and_who_is_in_it_is_told(run: Path) -> None:
    told = katha("redo", run, "--shots", listed(run, put(1, picture="A fox sleeps.", who="Nobody")))
    assert panel(run, 1)["prompt"] == "A fox sleeps."
    assert "Row 2: who is in frame 1 is changed at the desk, in its editor; 'Nobody' is left out." in told.output


def test_an_unchanged_list_changes_nothing(run: Path) -> None:
    for name in ("shots.csv", "shots.xlsx"):
        path = export(run, "shots", run.parent / name)
        assert "Nothing else was changed there" in katha("redo", run, "--shots", path).output
    assert read_board(run).version == "002"


def test_edits_of_a_list_become_edits_of_the_board(run: Path) -> None:
    before = pictures(run)

    def change(rows: Rows) -> None:
        put(1, caption="A fox; hungry.", seconds="3,5", notes="low light", status="Approved")(rows)
        put(3, caption="Down she looks.", seconds="1")(rows)
        put(4, dialogue="What a voice!", sound="wind", camera_move="pan left", light="moonlight")(rows)

    katha("redo", run, "--shots", listed(run, change, delimiter=";"))
    assert (panel(run, 1)["caption"], panel(run, 1)["duration"]) == ("A fox; hungry.", 3.5)
    assert (panel(run, 3)["dialogue"], panel(run, 3)["sound"]) == ("What a voice!", "wind")
    fourth = read_sheet(run, ExportOptions()).shots[3]
    assert (fourth.filmed, fourth.light, panel(run, 3)["light"]) == ("pan left", "moonlight", "moonlight")
    assert status_of(frame(run, 1)) == "approved"
    shown = read_sheet(run, ExportOptions()).shots[2]
    assert (shown.caption, shown.seconds, shown.prompt) == ("Down she looks.", 1.0, "The crow looks down.")
    assert pictures(run) == before
    told = katha("redo", run, "--diff").output
    assert "frame 3, caption: - -> Down she looks." in told
    assert "frame 1, status: - -> approved" in told
    katha("redo", run, "--undo")
    assert "duration" not in panel(run, 1)
    assert status_of(frame(run, 1)) == ""


def test_a_workbook_comes_back_and_its_words_are_no_formulas(run: Path) -> None:
    edit_board(run, [ChangeFrame(frame=1, caption="=1+1")])
    path = export(run, "shots", run.parent / "shots.xlsx")
    book = openpyxl.load_workbook(path)
    page = book.active
    assert page["M2"].data_type == "s"
    page["M3"], page["J3"] = "The fox praised her.", 5.5
    book.save(path)
    katha("redo", run, "--shots", path)
    assert (panel(run, 2)["caption"], panel(run, 2)["duration"]) == ("The fox praised her.", 5.5)
    assert panel(run, 1)["caption"] == "=1+1"


def test_a_list_follows_its_frames_and_keeps_what_was_changed_since(run: Path) -> None:
    path = listed(run, lambda rows: (put(1, caption="Theirs.")(rows), put(5, caption="The end.")(rows)))
    edit_board(run, [ChangeFrame(frame=1, caption="Ours."), MoveFrame(frame=5, to=4)])
    done = katha("redo", run, "--shots", path)
    assert "Row 2: Frame 1, caption: changed here to 'Ours.' and there to 'Theirs.'; what is here stays." in done.output
    assert panel(run, 1)["caption"] == "Ours."
    assert panel(run, 3)["caption"] == "The end."  # it was frame 5 and is frame 4, its third scene
    edit_board(run, [RemoveFrame(frame=4)])
    again = katha("redo", run, "--shots", listed_rows(path, 4, caption="Gone?"))
    assert "Row 5: Frame 4 is not on this board any more" in again.output


def listed_rows(path: Path, number: int, **cells: str) -> Path:
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    put(number, **cells)(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_what_does_not_fit_is_a_sentence(run: Path, tmp_path: Path) -> None:
    done = katha("redo", run, "--shots", listed(run, put(3, place="the moon", notes="dark")))
    assert "Row 4: Frame 3 was inserted and has no place; 'the moon' is left out." in done.output
    assert read_sheet(run, ExportOptions()).shots[2].notes == "dark"
    for change, said in (
        (put(2, seconds="long"), r"row 3, 'seconds': 'long' is not a number"),
        (put(2, seconds="0"), r"row 3, 'seconds': '0' is not a number"),
        (put(2, status="fine"), r"row 3, 'status': 'fine' is none"),
        (put(2, id="v009-02-00000000"), r"row 3: this board has no version '009'"),
        (put(2, id="v002-99-00000000"), r"row 3: there is no frame 99"),
        (put(2, id="two"), r"row 3: 'two' is not an id of a frame"),
        (put(2, caption="x" * 5_000), r"row 3, 'caption': 5,000 letters"),
    ):
        with pytest.raises(InputFileError, match=said):
            katha("redo", run, "--shots", listed(run, change))
    (tmp_path / "no.csv").write_text("a,b\n1,2\n")
    (tmp_path / "no.xlsx").write_bytes(b"PK\x03\x04 no")
    for name, said in (("no.csv", "is not a shot list"), ("no.xlsx", "cannot be read"), ("nothing.xlsx", "no file")):
        with pytest.raises(InputFileError, match=said):
            katha("redo", run, "--shots", tmp_path / name)
    with zipfile.ZipFile(tmp_path / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("xl/workbook.xml", bytes(250_000_000))
    with pytest.raises(InputFileError, match="holds too much"):
        katha("redo", run, "--shots", tmp_path / "bomb.xlsx")
    assert read_board(run).version == "003"


def test_comments_and_statuses_are_kept_with_the_frame(run: Path) -> None:
    before = pictures(run)
    katha("redo", run, "--frame", 2, "--comment", "Too dark.", "--by", "Ana", "--status", "changes")
    katha("redo", run, "--frame", 2, "--comment", "Mended.")
    assert [(one.by, one.text) for one in comments_of(frame(run, 2))] == [("Ana", "Too dark."), ("", "Mended.")]
    assert status_of(frame(run, 2)) == "changes"
    assert pictures(run) == before
    katha("redo", run, "--frame", 2, "--seed", 7)  # another picture, the same talk
    assert len(comments_of(frame(run, 2))) == 2
    katha("redo", run, "--frame", 2, "--status", "none")
    assert status_of(frame(run, 2)) == ""
    with export(run, "shots", run.parent / "a.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[1]["comments"] == "Ana: Too dark. / Mended."
    for words, said in (
        (("--comment", "x"), "--comment needs a frame"),
        (("--frame", 2, "--comment", "x", "--seed", 3), "--comment takes no --seed"),
        (("--frame", 2, "--by", "Ana", "--status", "open"), "--by goes with --comment"),
        (("--shots", "a.csv", "--frame", 2, "--seed", 3), "--shots takes no --frame"),
        (("--frame", 99, "--status", "open"), "There is no frame 99"),
    ):
        with pytest.raises(UsageError, match=said):
            katha("redo", run, *words)


def test_a_copy_that_was_sent_comes_back_merged(run: Path) -> None:
    copy = run.parent / "sent"
    shutil.copytree(run, copy)
    katha("redo", copy, "--frame", 4, "--prompt", "In the forest. The fox hugs the crow.")
    katha("redo", copy, "--frame", 1, "--comment", "Good.", "--by", "Ben", "--status", "approved")
    katha("redo", copy, "--frame", 5, "--seed", 99)
    edit_board(copy, [ChangeFrame(frame=2, caption="Theirs.", dialogue="Sing!"), ChangeFrame(frame=3, notes="slow")])
    katha("redo", run, "--frame", 5, "--seed", 3)
    katha("redo", run, "--frame", 1, "--comment", "Mine.", "--by", "Ana")
    edit_board(run, [ChangeFrame(frame=2, caption="Ours.")])
    was = pictures(run)
    done = katha("redo", run, "--merge", copy)
    assert "Frame 5 has another picture here and there; the one here stays." in done.output
    assert "Frame 2, caption: changed here to 'Ours.' and there to 'Theirs.'" in done.output
    assert pictures(run) == [*was[:3], pictures(copy)[3], was[4]]
    assert frame(run, 4).prompt == "In the forest. The fox hugs the crow."
    assert {one.text for one in comments_of(frame(run, 1))} == {"Good.", "Mine."}
    assert status_of(frame(run, 1)) == "approved"
    assert (panel(run, 2)["caption"], panel(run, 2)["dialogue"]) == ("Ours.", "Sing!")
    assert read_sheet(run, ExportOptions()).shots[2].notes == "slow"
    katha("redo", run, "--undo")
    assert pictures(run) == was
    katha("redo", run, "--forward")
    assert "Nothing else was changed there" in katha("redo", run, "--merge", copy).output  # not twice


def test_what_was_done_to_the_order_there_is_told(run: Path) -> None:
    copy = run.parent / "sent"
    shutil.copytree(run, copy)
    edit_board(copy, [MoveFrame(frame=1, to=2), RemoveFrame(frame=5)])
    told = katha("redo", run, "--merge", copy).output
    assert "Taken away there, and kept here: frame 3, 5 of the board that was sent." in told
    assert "Frames were moved there; the order here stays." in told
    assert read_board(run).version == "002"


def test_another_run_is_no_copy(run: Path) -> None:
    other = run.parent / "other"
    shutil.copytree(run, other)
    for place in (other, *(other / "versions").iterdir()):
        if (place / "storyboard.json").is_file():
            told = json.loads((place / "storyboard.json").read_text())
            (place / "storyboard.json").write_text(json.dumps({**told, "note": "another"}))
    with pytest.raises(UsageError, match="no version in common"):
        katha("redo", run, "--merge", other)
    with pytest.raises(UsageError, match="is the run itself"):
        katha("redo", run, "--merge", run)


def test_a_picture_that_is_none_is_left_out(run: Path) -> None:
    copy = run.parent / "sent"
    shutil.copytree(run, copy)
    katha("redo", copy, "--frame", 4, "--seed", 99)
    (copy / "panels" / f"{frame(copy, 4).sha256}.png").write_bytes(b"not it")
    assert "The new picture of frame 4 is missing" in katha("redo", run, "--merge", copy).output
    assert read_board(run).version == "002"
