"""Boards that others drew: taken in from a project, a PDF or a folder, judged, and a bridge proposed; bombs refused."""

from __future__ import annotations

import io
import json
import os
import socket
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cli_child
import pypdf
import pytest
from click.testing import Result
from PIL import Image
from reportlab.pdfgen.canvas import Canvas
from typer.testing import CliRunner

from katha.agents.context import make_planner, plan_within
from katha.agents.editor.imported_boards import told_story, with_scenes
from katha.app.cli.main import app
from katha.app.exports import export
from katha.app.imports import FINDS, import_board
from katha.config import Settings
from katha.errors import InputFileError, UsageError
from katha.pictures import decode
from katha.protocols import FrameRequest, PanelWords
from katha.renderers.folder import FolderRenderer

COLOURS = ["#c33", "#3c3", "#33c", "#cc3"]
TOLD = ["A fox saw a crow with a cheese.", "The fox praised the crow.", "The crow sang.", "The fox ate the cheese"]
STORY = (
    "A fox saw a crow with a cheese. The fox praised the crow. The crow sang and dropped it. The fox ate the cheese."
)
Katha = Callable[..., Result]


@pytest.fixture
def katha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Katha:
    """Call the command line in an empty folder with the judge that knows pixels; errors are raised as they are."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)
    (tmp_path / "story.txt").write_text(STORY)

    def call(*words: object) -> Result:
        given = ["run", *map(str, words), "--judge", "pixel", "--json"]
        return CliRunner().invoke(app, given, catch_exceptions=False)

    return call


def project(folder: Path, **first: Any) -> Path:
    """A project as Storyboarder saves it: boards in layers, words, times; `first` replaces keys of board 1."""
    (folder / "images").mkdir(parents=True)
    boards = []
    for at, (colour, told) in enumerate(zip(COLOURS, TOLD, strict=True), 1):
        name = f"board-{at}-AAAA{at}"
        Image.new("RGBA", (90, 60), colour).save(folder / "images" / f"{name}-fill.png")
        ink = Image.new("RGBA", (90, 60), (0, 0, 0, 0))
        ink.paste((0, 0, 0, 128), (0, 0, 45, 60))
        ink.save(folder / "images" / f"{name}-ink.png")
        layers = {key: {"url": f"{name}-{key}.png"} for key in ("ink", "fill")}
        boards.append({"uid": f"AAAA{at}", "url": f"{name}.png", "layers": layers, "action": told, "number": at})
    boards[0] |= {"dialogue": "What a voice!", "notes": "wide", "duration": 3500, **first}
    path = folder / "fox tale.storyboarder"
    path.write_text(json.dumps({"version": "3.0.0", "defaultBoardTiming": 1500, "boards": boards}))
    return path


def pages(path: Path, *, size: tuple[float, float] = (300, 200), words: bool = True) -> Path:
    """A PDF of one page a colour."""
    canvas = Canvas(str(path), pagesize=size)
    for colour in COLOURS:
        canvas.setFillColor(f"#{''.join(2 * letter for letter in colour[1:])}")
        canvas.rect(0, 0, *size, stroke=0, fill=1)
        canvas.setFillColor("#000000")
        if words:
            canvas.drawString(10, 10, "What the page says")
        canvas.showPage()
    canvas.save()
    return path


def drawn(source: Path, count: int = 4, **options: str) -> list[Image.Image]:
    """Every frame that the renderer takes from there, read by Pillow alone."""
    requests = [FrameRequest(f"scene {at}", 1, 768, 512, scene=at, story_id="fox") for at in range(1, count + 1)]
    made = FolderRenderer(str(source), **options).render_board(requests)
    return [Image.open(io.BytesIO(png)).convert("RGB") for png in made]


def rgb(colour: str) -> tuple[int, ...]:
    return tuple(17 * int(letter, 16) for letter in colour[1:])


def test_a_project_is_judged_and_its_weakest_cut_found(tmp_path: Path, katha: Katha) -> None:
    place = project(tmp_path / "board")
    done = katha("--import", place.parent, "--out", "out")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["mode"], told["frames"]) == (0, FINDS, 4), done.output
    assert told["weakest"] in ([1, 2], [2, 3], [3, 4])
    assert f"from scene {told['weakest'][0]} to {told['weakest'][1]}" in told["reason"]
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    first, second = plan["panels"][:2]
    assert first["dialogue"] == "What a voice!"
    assert (first["action"], first["notes"], first["duration"]) == (TOLD[0], "wide", 3.5)
    assert second["duration"] == 1.5
    assert "dialogue" not in second
    assert [panel["caption"].rstrip(".") for panel in plan["panels"][1:]] == [text.rstrip(".") for text in TOLD[1:]]
    story = json.loads((tmp_path / "out" / "story.jsonl").read_text())
    assert story["story_id"] == "fox_tale"
    assert story["story_text"] == f'{TOLD[0]} "What a voice!" {TOLD[1]} {TOLD[2]} {TOLD[3]}.'
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.json")}
    assert json.loads(katha("--import", place, "--out", "out").stdout)["reused"]
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "out").glob("*.json")}
    assert CliRunner().invoke(app, ["score", "out/story.jsonl", "--answers", "out/answers.jsonl"]).exit_code == 0


def test_the_order_of_pictures_is_told_and_two_readings_are_refused(tmp_path: Path, katha: Katha) -> None:
    place = tmp_path / "shots"
    place.mkdir()
    for at in range(1, 4):
        shown = Image.linear_gradient("L").rotate(40 * at).convert("RGB").resize((90, 60))
        shown.save(place / f"{at}_{4 - at}.png")
    with pytest.raises(InputFileError, match=r"two orders: .*by first number: 1 1_3.png.*--order second"):
        katha("story.txt", "--import", place, "--out", "out")
    assert not (tmp_path / "out").exists()
    done = katha("story.txt", "--import", place, "--order", "second", "--out", "out")
    assert "Order: 1 3_1.png, 2 2_2.png, 3 1_3.png (by second number)" in done.stderr
    assert json.loads(done.stdout)["frames"] == 3
    with pytest.raises(UsageError, match="--order is of the pictures of --import"):
        katha("story.txt", "--order", "second")


def test_pictures_that_are_no_frames_are_named(tmp_path: Path, katha: Katha) -> None:
    place = tmp_path / "shots"
    place.mkdir()
    for at in range(1, 5):
        Image.linear_gradient("L").rotate(40 * at).convert("RGB").resize((90, 60)).save(place / f"shot {at}.png")
    for name in ("cover.png", "back cover.jpg", "cover.heic", ".hidden.png"):
        (place / name).write_bytes(b"not read")
    (place / "notes.txt").write_text("for the printer")
    (place / "older").mkdir()
    said = f"Left out of {str(place)!r}: back cover.jpg, cover.heic, cover.png; the frames are"
    first = json.loads(katha("story.txt", "--import", place).stdout)
    again = json.loads(katha("story.txt", "--import", place).stdout)
    assert (first["frames"], first["reused"], again["reused"]) == (4, False, True)
    for told in (first, again):
        (note,) = told["notes"]
        assert note.startswith(said)
    assert said in (tmp_path / "out" / "story" / "report.html").read_text().replace("&#39;", "'")
    (place / "shot 1.png").rename(place / "first.png")
    with pytest.raises(InputFileError, match="Frame 1 is missing"):
        katha("story.txt", "--import", place, "--out", "missing")
    for at in (2, 3):
        (place / f"shot {at}.png").unlink()
    (place / "shot 4.png").rename(place / "shot 1.png")
    with pytest.raises(
        InputFileError, match=r"has 1 frame; .* Left out of .*: back cover.jpg, cover.heic, cover.png, first.png"
    ):
        katha("story.txt", "--import", place, "--out", "few")


def test_each_panel_is_planned_from_its_own_board_s_words(tmp_path: Path) -> None:
    words = [PanelWords(action="A fox saw a crow. The fox ran to the tree. The fox sat down. The fox looked up.")]
    words += [PanelWords(action="The crow sang."), PanelWords(notes="The fox ate the cheese")]
    record = told_story(words, "fox")
    plan = plan_within(make_planner(Settings()), record, Settings(panels=3), None, None, words)
    assert [panel.caption for panel in plan.panels[1:]] == ["The crow sang.", "The fox ate the cheese."]
    assert (plan.panels[2].model_extra or {})["notes"] == "The fox ate the cheese"
    other = record.model_copy(update={"story_text": STORY})
    assert with_scenes(other, words) is other


def test_a_bridge_is_proposed_between_the_project_s_own_pictures(tmp_path: Path, katha: Katha) -> None:
    place = project(tmp_path / "board")
    done = katha("story.txt", "--import", place, "--bridge-renderer", "block", "--mode", "caption_bridge")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["frames"], told["accepted"]) == (0, 5, True), done.output
    board = json.loads((tmp_path / "out" / "story" / "storyboard.json").read_text())
    assert [frame.get("renderer") for frame in board["frames"] if frame["kind"] == "bridge"] == ["block"]
    scenes = [frame for frame in board["frames"] if frame["kind"] == "scene"]
    for frame, colour in zip(scenes, COLOURS, strict=True):
        with Image.open(tmp_path / "out" / "story" / frame["image"]) as image:
            assert image.size == (90, 60)
            assert image.convert("RGB").getpixel((80, 30)) == rgb(colour)
            half = tuple(round(value * 127 / 255) for value in rgb(colour))
            assert all(abs(a - b) <= 1 for a, b in zip(image.convert("RGB").getpixel((5, 30)), half, strict=True))


def test_what_katha_exports_to_storyboarder_comes_back(tmp_path: Path, katha: Katha) -> None:
    katha("--import", project(tmp_path / "board"), "--out", "out")
    again = import_board(export(tmp_path / "out", "storyboarder", tmp_path / "again"))
    assert again.changes["panels"] == 4
    assert again.story.story_text.startswith(f'{TOLD[0]} "What a voice!" {TOLD[1]}')


def test_a_pdf_s_pages_are_frames(tmp_path: Path, katha: Katha) -> None:
    place = pages(tmp_path / "board.pdf")
    for image, colour in zip(drawn(place), COLOURS, strict=True):
        assert image.size == (1536, 1024)
        assert image.getpixel((768, 300)) == rgb(colour)
    assert [image.getpixel((768, 300)) for image in drawn(place, 2, pages="2,4")] == [rgb("#3c3"), rgb("#cc3")]
    assert "4 of the board's pages hold words" in FolderRenderer(str(place)).remarks()[0]
    assert not FolderRenderer(str(pages(tmp_path / "bare.pdf", words=False))).remarks()
    done = katha("story.txt", "--import", place, "--renderer-option", "pages=2-4", "--out", "out")
    assert json.loads(done.stdout)["frames"] == 3
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["config"]["renderer"] == f"folder:{place}"
    with pytest.raises(InputFileError, match="holds no words"):
        katha("--import", place)


def test_a_page_of_any_size_gives_a_picture_of_one_size(tmp_path: Path) -> None:
    assert drawn(pages(tmp_path / "huge.pdf", size=(14_000, 7_000)))[0].size == (1536, 768)
    with pytest.raises(InputFileError, match=r"page 1 is 10000 x 5 points"):
        FolderRenderer(str(pages(tmp_path / "thin.pdf", size=(10_000, 5))))


def pdf(*objects: str) -> bytes:
    """A PDF by hand, without the table of its objects, which readers make again."""
    body = "".join(f"{at} 0 obj\n{item}\nendobj\n" for at, item in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer << /Root 1 0 R >>\n%%EOF\n".encode("latin-1")


def page(resources: str, stream: str) -> tuple[str, ...]:
    """The objects of a document of one page."""
    return (
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << {resources} >> >>",
        stream,
    )


def bomb() -> bytes:
    """A page with a picture of ten thousand million pixels in a few bytes."""
    packed = zlib.compress(b"\0" * 1000).decode("latin-1")
    image = "<< /Type /XObject /Subtype /Image /Width 100000 /Height 100000 /ColorSpace /DeviceGray"
    held = f"{image} /BitsPerComponent 8 /Filter /FlateDecode /Length {len(packed)} >>\nstream\n{packed}\nendstream"
    drawing = "<< /Length 27 >>\nstream\n300 0 0 200 0 0 cm /A Do  \nendstream"
    return pdf(*page("/XObject << /A 5 0 R >>", drawing), held)


def locked() -> bytes:
    writer, held = pypdf.PdfWriter(), io.BytesIO()
    writer.add_blank_page(300, 200)
    writer.encrypt("secret")
    writer.write(held)
    return held.getvalue()


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.pdf", bomb(), r"picture on page 1 has 100000 x 100000 pixels"),
        ("a.pdf", locked(), r"cannot be read: .*[Pp]assword"),
        ("a.pdf", b"<html>", r"is not a PDF"),
        ("a.pdf", b"%PDF-1.7\n" + bytes(range(256)) * 40, r"'.*a.pdf' cannot be read"),
        ("a.pdf", pdf("<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [] /Count 0 >>"), "cannot be read"),
        ("a.zip", b"PK", r"a.zip' is not a board that can be read"),
        ("a.storyboarder", b"[1]", r"has no list of boards"),
        ("a.storyboarder", b'{"boards": {"a": 1}}', r"has no list of boards"),
        ("a.storyboarder", b'{"boards": [3]}', r"has no list of boards"),
        ("a.storyboarder", b'{"boards": [{"url": 3}]}', r"board 1, names no picture"),
        ("a.storyboarder", b"[" * 100_000, r"is not JSON"),
        ("a.storyboarder", b'{"boards": [{"url": "a.png"}]}', r"board 1: the picture 'a.png' is missing"),
    ],
)
def test_a_file_that_is_no_board_is_one_sentence(
    tmp_path: Path, katha: Katha, name: str, data: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UsageError, match=words) as refused:
        katha("story.txt", "--import", name)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "url",
    ["../fox tale.storyboarder", "/etc/passwd", "..\\x.png", "C:\\x.png", "a/b.png", "..", "x\0.png", "a" * 5_000],
)
def test_a_picture_outside_of_a_project_is_not_read(tmp_path: Path, url: str) -> None:
    place = project(tmp_path / "board", layers={}, url=url)
    with pytest.raises(InputFileError, match=r"board 1, names the picture .* which is not a file of images/"):
        FolderRenderer(str(place))
    place = project(tmp_path / "layer", layers={"ink": {"url": url}})
    with pytest.raises(InputFileError, match=r"board 1, names the picture .* which is not a file of images/"):
        FolderRenderer(str(place))


def test_a_link_out_of_its_folder_is_not_followed(tmp_path: Path) -> None:
    Image.new("RGB", (90, 60), "#fff").save(tmp_path / "secret.png")
    place = project(tmp_path / "board", layers={}, url="board-1.png")
    os.symlink(tmp_path / "secret.png", place.parent / "images" / "board-1.png")
    with pytest.raises(InputFileError, match=r"'board-1.png' is a link out of its folder"):
        FolderRenderer(str(place))
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (90, 60), "#000").save(folder / "1.png")
    os.symlink(tmp_path / "secret.png", folder / "2.png")
    with pytest.raises(InputFileError, match=r"'2.png' is a link out of its folder"):
        drawn(folder, 2)


def test_layers_lie_on_one_another_as_they_are_seen(tmp_path: Path) -> None:
    fill = {"url": "board-2-AAAA2-fill.png"}
    both = {"fill": {**fill, "opacity": 0.5}, "reference": {"url": "board-1-AAAA1-fill.png"}}
    (image, *_) = drawn(project(tmp_path / "board", layers=both))
    mixed = [(above + below) / 2 for above, below in zip(rgb(COLOURS[1]), rgb(COLOURS[0]), strict=True)]
    assert all(abs(a - b) <= 1 for a, b in zip(image.getpixel((5, 5)), mixed, strict=True))


def test_odd_values_of_a_project_do_no_harm(tmp_path: Path) -> None:
    place = project(tmp_path / "board", dialogue=["no"], notes=None, duration=-4, number={}, extra=[[]])
    (words, *_) = FolderRenderer(str(place)).panel_words()
    assert (words.dialogue, words.notes, words.duration) == ("", "", 1.5)
    odd = {"fill": {"url": "board-1-AAAA1-fill.png", "opacity": 10**400}, "ink": 7, "notes": {"url": ""}}
    assert drawn(project(tmp_path / "odd", layers=odd))[0].getpixel((5, 5)) == rgb("#c33")
    with pytest.raises(InputFileError, match="'notes' has 30,000 letters"):
        FolderRenderer(str(project(tmp_path / "long", notes="x" * 30_000)))


def test_wrong_uses_name_what_to_do(tmp_path: Path, katha: Katha) -> None:
    place = project(tmp_path / "board", action="", dialogue="", notes="")
    for words, told in (
        ((), "There is no STORY"),
        (("--import", "nowhere"), "no board 'nowhere'"),
        (("--import", place), r"Nothing in 'fox tale' tells what frame 1 should show.*Give the STORY"),
        (("story.txt", "--import", place, "--renderer", "block"), "nothing for --renderer to draw"),
        (("story.txt", "--import", place, "--panels", "5"), "has 4 frames, the --panels 5"),
        (("story.txt", "--import", place, "--renderer-option", "pages=1"), "has 1 frame; 2 to 24"),
        (("story.txt", "--import", place, "--renderer-option", "pages=3-5"), "no number 5"),
        (("story.txt", "--import", place, "--renderer-option", "pages=4-2"), "'pages' is '4-2'"),
        (("story.txt", "--import", place, "--mode", "full"), "Give --bridge-renderer NAME"),
    ):
        with pytest.raises(UsageError, match=told):
            katha(*words)
    done = CliRunner().invoke(app, ["run", "story.txt", "--import", str(place), "--judge", "pixel", "--out", "told"])
    assert "give --bridge-renderer NAME" in done.stdout


def many_pages(count: int) -> bytes:
    kids = " ".join(f"{at + 3} 0 R" for at in range(count))
    each = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] >>"
    whole = (f"<< /Type /Pages /Kids [{kids}] /Count {count} >>", *[each] * count)
    return pdf("<< /Type /Catalog /Pages 2 0 R >>", *whole)


def header_of(width: int, height: int) -> bytes:
    """A PNG that says how large it is, and holds next to nothing."""
    held = io.BytesIO()
    Image.new("1", (8, 8)).save(held, "PNG")
    data = held.getvalue()
    told = b"IHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + data[24:29]
    return data[:12] + told + zlib.crc32(told).to_bytes(4, "big") + data[33:]


def zipped() -> bytes:
    """Sixteen megabytes of zeros in sixteen kilobytes."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.png", bytes(2**24))
    return held.getvalue()


def toned(colour: str) -> Image.Image:
    image = Image.new("RGB", (90, 60), colour)
    image.paste("#000", (10, 10, 40, 40))
    return image


def spoil(path: Path, how: str) -> None:
    """Put something else in the place of a picture."""
    path.unlink(missing_ok=True)
    if how == "bomb":
        path.write_bytes(header_of(100_000, 100_000))
    elif how == "zip":
        path.write_bytes(zipped())
    elif how == "sparse":
        with path.open("wb") as file:
            file.truncate(2**40)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"")


@pytest.mark.parametrize("how", ["bomb", "zip", "sparse", "pipe", "folder", "empty"])
@pytest.mark.parametrize("kind", ["project", "folder"])
def test_what_lies_in_the_place_of_a_picture_is_one_sentence(tmp_path: Path, katha: Katha, kind: str, how: str) -> None:
    if kind == "project":
        source = project(tmp_path / "board")
        spoil(source.parent / "images" / "board-2-AAAA2-fill.png", how)
    else:
        source = tmp_path / "pictures"
        source.mkdir()
        for at, colour in enumerate(COLOURS, 1):
            toned(colour).save(source / f"{at}.png")
        spoil(source / "2.png", how)
    with pytest.raises(UsageError) as refused:
        katha("story.txt", "--import", source, "--out", "out")
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out" / "storyboard.json").exists()


def test_a_blank_page_is_named_with_the_pages_to_choose(tmp_path: Path, katha: Katha) -> None:
    canvas = Canvas(str(tmp_path / "a.pdf"), pagesize=(300, 200))
    for colour in ("#cc3333", "", "#3333cc", "#33cc33"):
        if colour:
            canvas.setFillColor(colour)
            canvas.rect(50, 50, 100, 100, stroke=0, fill=1)
        canvas.showPage()
    canvas.save()
    with pytest.raises(InputFileError, match=r"Page 2 of 'a.pdf' is of one colour.*pages=1,3,4\.") as refused:
        katha("story.txt", "--import", "a.pdf", "--out", "out")
    assert refused.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_a_picture_bomb_is_told_of_in_our_own_words(tmp_path: Path) -> None:
    spoil(tmp_path / "2.png", "bomb")
    with pytest.raises(InputFileError, match=r"far more pixels than the 40,000,000 that are read\.") as refused:
        decode((tmp_path / "2.png").read_bytes(), "Frame 2")
    assert "decompression" not in str(refused.value).lower()


def test_a_pdf_of_ten_thousand_pages_is_refused(tmp_path: Path, katha: Katha) -> None:
    (tmp_path / "long.pdf").write_bytes(many_pages(10_000))
    with pytest.raises(InputFileError, match=r"has 10000 pages; 1 to 500 are read"):
        katha("story.txt", "--import", "long.pdf")
    (tmp_path / "book.pdf").write_bytes(many_pages(40))
    with pytest.raises(InputFileError, match=r"has 40 frames; 2 to 24.*pages=1-24"):
        katha("story.txt", "--import", "book.pdf")


def test_a_folder_of_two_thousand_pictures_says_how_to_choose(tmp_path: Path, katha: Katha) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    toned("#c33").save(folder / "1.png")
    for at in range(2, 2_001):
        os.link(folder / "1.png", folder / f"{at}.png")
    with pytest.raises(InputFileError, match=r"has 2000 frames; 2 to 24.*pages=1-24"):
        katha("story.txt", "--import", folder)
    done = katha("story.txt", "--import", folder, "--renderer-option", "pages=7-10", "--out", "out")
    assert json.loads(done.stdout)["frames"] == 4


def test_what_a_pdf_would_do_is_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        url = f"http://127.0.0.1:{trap.getsockname()[1]}/"
        catalog, pages_, sheet, stream = page("", "<< /Length 0 >>\nstream\n\nendstream")
        script = f"<< /S /JavaScript /JS (app.launchURL\\('{url}'\\)) >>"
        acts = f"/OpenAction << /S /URI /URI ({url}) >> /AA << /WC {script} >>"
        link = f"/Annots [<< /Type /Annot /Subtype /Link /Rect [0 0 300 200] /A << /S /URI /URI ({url}) >> >>] >>"
        launch = "<< /Type /Filespec /F (file:///etc/passwd) >>"
        done = pdf(catalog.replace(">>", f"{acts} >>"), pages_, f"{sheet[:-2]}{link}", stream, launch)
        (tmp_path / "a.pdf").write_bytes(done)
        (image,) = drawn(tmp_path / "a.pdf", 1)
        assert image.size == (1536, 1024)
        with pytest.raises(BlockingIOError):
            trap.accept()
