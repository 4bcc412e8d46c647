"""What katha exports and imports again has every word as it was, in its order, with the pictures that it had."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import cli_child
import pypdf
import pytest
from PIL import Image
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.exports import FORMATS, ExportOptions, export, read_sheet
from katha.app.imports import put_files
from katha.errors import InputFileError
from katha.jsonio import sha256_hex
from katha.renderers.exported import Exported
from katha.renderers.folder import FolderRenderer

COLOURS = ["#c33", "#3c3", "#33c", "#cc3"]
CAPTIONS = ["A fox saw a crow.", 'The fox praised the crow & "sang".', "The fox ate the cheese; it was <good>."]
BRIDGE = "The crow looks down at the fox."
SAID = {"dialogue": "What a voice!", "action": "bows", "notes": "low  light", "sound": "wind", "duration": 3.25}
FORMS = {
    "cbz": {}, "epub": {}, "otio": {}, "otioz": {}, "fcpxml": {}, "pdf": {},
    "list.pdf": {"layout": "list"}, "book.pdf": {"layout": "book", "bleed": 3, "text": "facing"},
    "contact.pdf": {"layout": "contact"}, "fcp7": {}, "storyboarder": {},
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run of three scenes and a bridge, with an artist's words."""
    folder = tmp_path / "tale"
    (folder / "panels").mkdir(parents=True)
    frames: list[dict[str, Any]] = []
    for at, colour in enumerate(COLOURS, 1):
        held = io.BytesIO()
        image = Image.new("RGB", (96, 64), colour)
        image.paste("#000", (10, 10, 40, 40))
        image.save(held, "PNG")
        digest = sha256_hex(held.getvalue())
        (folder / "panels" / f"{digest}.png").write_bytes(held.getvalue())
        kind, scene = ("bridge", None) if at == 3 else ("scene", {1: 1, 2: 2, 4: 3}[at])
        frames.append(
            {"index": at, "kind": kind, "scene": scene, "transition": [2, 3] if at == 3 else None, "sha256": digest,
             "image": f"panels/{digest}.png", "prompt": BRIDGE, "seed": 42}
        )  # fmt: skip
    panels: list[dict[str, Any]] = [
        {"index": at, "prompt": text, "caption": text} for at, text in enumerate(CAPTIONS, 1)
    ]
    panels[1] |= {**SAID, "place": "the wood", "time_of_day": "night", "shot_size": "wide", "shot_angle": "low angle"}
    panels[1] |= {"camera": "as frame 1", "camera_move": "pan left", "weather": "snow", "light": "moonlight"}
    board = {"story_id": "tale", "method": "full", "mode": "full", "planner": "rule", "renderer": "sketch", "seed": 42}
    files = {
        "run.json": {"status": "finished"},
        "storyboard.json": {**board, "plan_sha256": "", "frames": frames},
        "plan.json": {"story_id": "tale", "planner": "rule", "characters": [], "panels": panels, "transitions": []},
        "story.jsonl": {"story_id": "tale", "title": "The Fox", "story_text": " ".join(CAPTIONS)},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
    return folder


def told(folder: Path) -> list[tuple[str, ...]]:
    """Every word of a board by its frames, and how long they stand."""
    names = ("caption", "dialogue", "action", "notes", "sound", "seconds")
    return [tuple(str(getattr(shot, name)) for name in names) for shot in read_sheet(folder, ExportOptions()).shots]


def exported(run: Path, form: str) -> Path:
    to, options = form.rpartition(".")[2], ExportOptions.model_validate(FORMS.get(form, {}))
    place = export(run, to, run.parent / f"sent{FORMATS[to].suffix}", options)
    return next(place.glob("*.storyboarder")) if to == "storyboarder" else place


@pytest.mark.parametrize("form", FORMS)
def test_words_and_order_are_the_same_after_a_round_trip(
    run: Path, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)
    place = exported(run, form)
    words = ["run", "--import", str(place), "--out", "again", "--judge", "pixel", "--json"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert (done.exit_code, json.loads(done.stdout)["frames"]) == (0, 4), done.output
    assert told(tmp_path / "again") == told(run)
    second = read_sheet(tmp_path / "again", ExportOptions()).shots[1]
    assert (second.scene, second.shot) == ("the wood, night, moonlight, snow", "wide, low angle")
    assert (second.filmed, second.light, second.weather) == ("pan left, as frame 1", "moonlight", "snow")
    frames = json.loads((tmp_path / "again" / "storyboard.json").read_text())["frames"]
    for frame, colour in zip(frames, COLOURS, strict=True):
        with Image.open(tmp_path / "again" / frame["image"]) as image:
            picture = image.convert("RGB")
        wide, tall = picture.size
        found = picture.getpixel((wide * 3 // 4, tall * 3 // 4))
        wanted = tuple(17 * int(letter, 16) for letter in colour[1:])
        assert isinstance(found, tuple)
        assert all(abs(a - b) <= 2 for a, b in zip(found, wanted, strict=True))
        assert wide / tall == pytest.approx(1.5, abs=0.1 if form == "book.pdf" else 0.02)  # the paper cuts it


def test_what_premiere_shows_of_a_shot_comes_back(run: Path) -> None:
    words = FolderRenderer(str(export(run, "fcp7", run.parent / "again.xml"))).panel_words()
    assert [one.caption for one in words] == [*CAPTIONS[:2], BRIDGE, CAPTIONS[2]]
    assert (words[1].dialogue, words[1].action, words[1].notes) == ("What a voice!", "bows", "low light")
    assert words[1].duration == 3.25


def test_what_is_changed_in_storyboarder_is_what_comes_back(run: Path) -> None:
    place = exported(run, "storyboarder")
    project = json.loads(place.read_text("utf-8"))
    one, two, bridge, _ = project["boards"]
    one["action"], two["notes"], two["duration"], bridge["dialogue"] = "A fox ran.", "closer", 1500, "Oh!"
    place.write_text(json.dumps(project), "utf-8")
    words = FolderRenderer(str(place)).panel_words()
    assert [(one.caption, one.action) for one in words[:2]] == [("A fox ran.", ""), (CAPTIONS[1], "bows")]
    assert (words[1].notes, words[1].duration, words[1].light) == ("closer", 1.5, "moonlight")
    assert (words[2].notes, words[2].dialogue) == ("", "Oh!")


def test_a_folder_of_pictures_has_its_words(run: Path) -> None:
    words = FolderRenderer(str(export(run, "png", run.parent / "frames"))).panel_words()
    assert [one.caption for one in words] == CAPTIONS  # an inserted frame is no scene of the board
    assert words[1].dialogue == "What a voice!"


def zipped(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def clip(address: str) -> dict[str, Any]:
    return {
        "OTIO_SCHEMA": "Clip.2",
        "metadata": {"katha": {"caption": "x"}},
        "media_reference": {"target_url": address},
    }


def listing(*names: object) -> bytes:
    return json.dumps({"frames": [{"file": name, "caption": "A fox."} for name in names]}).encode()


BOMB = b"""<!DOCTYPE xmeml [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]><xmeml>&b;</xmeml>"""


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.cbz", b"no", "cannot be read"),
        ("a.cbz", {"1.png": b"x"}, r"holds no file 'frames\.json'"),
        ("a.cbz", {"frames.json": b"[" * 100_000}, "is not JSON"),
        ("a.cbz", {"frames.json": b"{}"}, "has no list of frames"),
        ("a.cbz", {"frames.json": listing(3)}, "has no list of frames"),
        ("a.cbz", {"frames.json": listing()}, "has 0 frames"),
        ("a.cbz", {"frames.json": listing("../../etc/passwd")}, "holds no file"),
        ("a.epub", {"META-INF/katha.frames.json": listing("1.svg"), "OEBPS/1.svg": b"<svg/>"}, "cannot be drawn"),
        ("a.otio", b"{}", "has 0 frames"),
        ("a.otio", json.dumps({"children": [clip("/etc/passwd")]}).encode(), "lies outside"),
        ("a.otio", json.dumps({"children": [clip("media/../../x.png")]}).encode(), "lies outside"),
        ("a.otio", json.dumps({"children": [clip("C:%5Cx.png")]}).encode(), "lies outside"),
        ("a.otio", json.dumps({"children": [clip("none.png")]}).encode(), "is missing"),
        ("a.otioz", {"content.otio": json.dumps({"children": [clip("media/1.png")]}).encode()}, "holds no file"),
        ("a.xml", BOMB, "is not XML that is read"),
        ("a.xml", b"<html/>", "is not an edit timeline"),
        ("a.fcpxml", b"<fcpxml>", "is not XML that is read"),
    ],
)
def test_a_file_that_is_no_board_of_ours_is_one_sentence(
    tmp_path: Path, name: str, data: bytes | dict[str, bytes], said: str
) -> None:
    path = tmp_path / name
    if isinstance(data, bytes):
        path.write_bytes(data)
    else:
        zipped(path, data)
    with pytest.raises(InputFileError, match=said) as refused:
        list(Exported(path).pngs([0], "fox"))
    assert "\n" not in str(refused.value)


def test_words_without_end_and_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    rows = json.dumps({"frames": [{"file": "1.png", "caption": "x" * 30_000}]}).encode()
    with pytest.raises(InputFileError, match="'caption' has 30,000 letters"):
        Exported(zipped(tmp_path / "a.cbz", {"frames.json": rows}))
    (tmp_path / "secret.png").write_bytes(b"x")
    place = tmp_path / "board"
    place.mkdir()
    (place / "1.png").symlink_to(tmp_path / "secret.png")
    (place / "a.otio").write_text(json.dumps({"children": [clip("1.png")]}))
    with pytest.raises(InputFileError, match="is a link out of its folder"):
        Exported(place / "a.otio")


def test_a_pdf_that_lies_about_its_frames_is_read_by_its_pages(run: Path) -> None:
    path = export(run, "pdf", run.parent / "a.pdf")
    assert len(FolderRenderer(str(path)).panel_words()) == 4
    for told in (
        "no",
        '{"frames": [{"page": 9, "box": [0, 0, 1, 1]}]}',
        '{"frames": [{"page": 1, "box": [0, 0, 9, 1]}]}',
    ):
        writer = pypdf.PdfWriter(clone_from=pypdf.PdfReader(path))
        writer.add_metadata({"/KathaFrames": told})
        writer.write(run.parent / "b.pdf")
        renderer = FolderRenderer(str(run.parent / "b.pdf"))
        assert (renderer.panel_words(), renderer.count("fox")) == ((), 1)


def test_the_desk_takes_what_holds_its_pictures_itself(run: Path, tmp_path: Path) -> None:
    for form in ("cbz", "epub", "otioz"):
        data = exported(run, form).read_bytes()
        board = put_files(tmp_path / form, [(f"again.{form}", data)])
        assert len(FolderRenderer(str(board)).panel_words()) == 4
    with pytest.raises(InputFileError, match="is of no board"):
        put_files(tmp_path / "x", [("a.otio", b"{}")])
