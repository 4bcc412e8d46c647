"""Comics, picture books and films cut into frames: against pages and films that are drawn here, box by box."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import av
import cli_child
import numpy as np
import pytest
import yaml
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from typer.testing import CliRunner

from benchmarks.cutting import SIZE, draw_page, measure, overlap
from katha.app.cli.main import app
from katha.app.cutting.boxes import Box, in_order
from katha.app.cutting.panels import find_panels
from katha.app.cutting.shots import find_shots, frames_at
from katha.errors import InputFileError, UsageError
from katha.lettering import WordScanner
from katha.pictures import decode

Katha = Callable[..., Result]
LAYOUT = [Box(40, 40, 330, 290), Box(350, 40, 660, 290), Box(40, 310, 240, 950), Box(260, 310, 660, 620)]
LAYOUT += [Box(260, 640, 660, 950)]
MANGA = [1, 0, 3, 4, 2]
"""The same page from right to left: by their places in `LAYOUT`."""
STORY = "A fox saw a crow. The fox begged. The crow sang. The cheese fell. The fox ate it."


def film(path: Path, shots: Sequence[tuple[float, tuple[int, int, int]]], rate: int = 25) -> Path:
    """A film of one colour a shot, over which a disc moves: seconds and colours."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("h264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        for seconds, colour in shots:
            for at in range(round(seconds * rate)):
                picture = Image.new("RGB", (160, 96), colour)
                ImageDraw.Draw(picture).ellipse((10 + 2 * at, 30, 40 + 2 * at, 60), fill="white")
                container.mux(stream.encode(av.VideoFrame.from_image(picture)))
        container.mux(stream.encode())
    return path


@pytest.fixture
def katha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Katha:
    """Call the command line in an empty folder with the judge that knows pixels; errors are raised as they are."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)
    (tmp_path / "story.txt").write_text(STORY)
    return lambda *words: CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)


@pytest.mark.parametrize("paper", ["#fbf8f0", "#ffffff", "#101010"], ids=["cream", "white", "black"])
def test_every_panel_of_a_drawn_page_is_found(paper: str) -> None:
    found = find_panels(draw_page(LAYOUT, paper=paper, words="HELLO"))
    least = 0.93 if paper == "#101010" else 0.97  # a black frame on black is gutter
    assert [overlap(one, other) > least for one, other in zip(found, LAYOUT, strict=True)] == [True] * 5
    right_to_left = find_panels(draw_page(LAYOUT, paper=paper), "rtl")
    assert [max(range(5), key=lambda at: overlap(box, LAYOUT[at])) for box in right_to_left] == MANGA


def test_a_balloon_over_a_gutter_joins_no_panels() -> None:
    made = draw_page(LAYOUT)
    ImageDraw.Draw(made).ellipse((250, 50, 450, 110), fill="white", outline="black", width=2)
    found = find_panels(made)
    assert len(found) == 5
    assert all(overlap(one, other) > 0.9 for one, other in zip(found, LAYOUT, strict=True))


def test_a_panel_without_a_frame_is_found_between_framed_ones() -> None:
    made = draw_page([LAYOUT[0], *LAYOUT[2:]])
    ImageDraw.Draw(made).ellipse((420, 80, 600, 240), fill="#3355aa")
    found = find_panels(made)
    assert len(found) == 5
    assert found[1].left >= 340
    assert found[1].overlap(Box(420, 80, 600, 240)) >= 0.98 * Box(420, 80, 600, 240).area


def test_a_panel_without_a_line_that_is_open_to_the_gutter_is_whole() -> None:
    """Snow and clouds at a panel's edge have the paper's colour: what they leave falls into pieces."""
    made = Image.new("RGB", (1000, 700), "white")
    panels = [Box(left, top, left + 470, top + 320) for top in (20, 360) for left in (20, 510)]
    pen = ImageDraw.Draw(made)
    for box in panels:
        pen.rectangle((box.left, box.top, box.right - 1, box.bottom - 1), fill="#33557f")
        for at in range(3):
            left = box.left + 60 + 130 * at
            pen.polygon([(left, box.top), (left + 90, box.top), (left + 45, box.top + 190)], fill="white")
    assert find_panels(made) == panels


@pytest.mark.parametrize("paper", ["white", "#99aacc"])
def test_a_page_without_gutters_is_one_frame(paper: str) -> None:
    made = Image.new("RGB", SIZE, paper)
    pen = ImageDraw.Draw(made)
    pen.ellipse((100, 200, 300, 500), fill="#883311")
    pen.polygon([(400, 200), (650, 700), (350, 600)], fill="#225588")
    assert find_panels(made) == [Box(0, 0, *SIZE)]


@given(st.lists(st.lists(st.integers(120, 300), min_size=1, max_size=4), min_size=1, max_size=5), st.randoms())
@settings(max_examples=60, deadline=None)
def test_rows_of_a_grid_are_read_as_they_were_laid(rows: list[list[int]], chance: random.Random) -> None:
    laid: list[Box] = []
    top = 10
    for widths in rows:
        left, high = 10, 200
        for width in widths:
            laid.append(Box(left, top + chance.randint(0, 15), left + width, top + high - chance.randint(0, 15)))
            left += width + 12
        top += high + 12
    mixed = laid[:]
    chance.shuffle(mixed)
    assert in_order(mixed) == laid
    mirrored = {Box(-box.right, box.top, -box.left, box.bottom): at for at, box in enumerate(laid)}
    assert [mirrored[box] for box in in_order(list(mirrored), "rtl")] == list(range(len(laid)))
    assert [box.top for box in in_order(mixed, "ttb")] == sorted(box.top for box in laid)


def test_the_shots_of_a_film_begin_where_it_was_cut(tmp_path: Path) -> None:
    shots = [(1.2, (200, 60, 60)), (0.8, (60, 160, 60)), (1.6, (70, 80, 200)), (1.0, (220, 200, 70))]
    made = film(tmp_path / "film.mp4", shots)
    found = find_shots(made)
    starts = [0.0, 1.2, 2.0, 3.6]
    assert [shot.start for shot in found] == pytest.approx(starts, abs=0.001)
    assert found[-1].end == pytest.approx(4.6, abs=0.001)
    for shot, (_, colour) in zip(found, shots, strict=True):
        (picture,) = frames_at(made, [shot.at])
        assert np.abs(np.asarray(picture)[80:, :10].mean(axis=(0, 1)) - colour).max() < 8
    with pytest.raises(InputFileError, match="no frame at 9 s"):
        frames_at(made, [1.0, 9.0])


def test_a_comic_becomes_a_board_without_its_words(tmp_path: Path, katha: Katha) -> None:
    with zipfile.ZipFile(tmp_path / "comic.cbz", "w") as archive:
        out = io.BytesIO()
        draw_page(LAYOUT, words="GIVE IT BACK").save(out, "PNG")
        archive.writestr("pages/10.png", out.getvalue())
        archive.writestr("ComicInfo.xml", "<ComicInfo/>")
    done = katha("cut", "comic.cbz", "--out", "boards/fox", "--json")
    told = json.loads(done.stdout)
    assert (told["frames"], told["by"], told["corrected"], told["text"]) == (5, "panels", False, 5)
    board = json.loads((tmp_path / "boards/fox/storyboard.json").read_text())
    scanner = WordScanner()
    strip = Image.new("RGB", (420, 700), "white")
    for at, frame in enumerate(board["frames"]):
        with Image.open(tmp_path / "boards/fox" / frame["image"]) as picture:
            strip.paste(picture.crop((0, 0, 200, 200)), (at % 2 * 210, at // 2 * 210))
    strip.save(tmp_path / "strip.png")
    assert scanner.words((tmp_path / "strip.png").read_bytes()) == ()
    assert board["story_id"] == "fox"
    assert (tmp_path / "boards/fox/preview.html").read_text().count("<img ") == 6
    kept = json.loads(katha("cut", "comic.cbz", "--out", "kept", "--text", "keep", "--json").stdout)
    first = json.loads((tmp_path / "kept/storyboard.json").read_text())["frames"][0]
    assert kept["text"] == 0
    assert any("GIVE" in line for line in scanner.words((tmp_path / "kept" / first["image"]).read_bytes()))


def test_a_corrected_file_is_obeyed_and_the_board_is_judged(tmp_path: Path, katha: Katha) -> None:
    place = tmp_path / "pages"
    place.mkdir()
    draw_page(LAYOUT).save(place / "1.png")
    draw_page(LAYOUT, seed=2).save(place / "2.png")
    command = ("cut", "pages", "--out", "boards/fox", "--text", "keep", "--json")
    assert json.loads(katha(*command).stdout)["frames"] == 10
    record = tmp_path / "boards/fox/cut.yaml"
    told = yaml.safe_load(record.read_text())
    told["pages"] = told["pages"][1:]
    told["pages"][0]["panels"] = [[40, 40, 660, 290], *told["pages"][0]["panels"][2:], [100, 100, 200, 260]]
    record.write_text(yaml.safe_dump(told))
    again = json.loads(katha(*command).stdout)
    assert (again["frames"], again["corrected"]) == (5, True)
    frames = json.loads((tmp_path / "boards/fox/storyboard.json").read_text())["frames"]
    pictures = [decode((tmp_path / "boards/fox" / frame["image"]).read_bytes()) for frame in frames]
    assert [picture.size for picture in pictures][::4] == [(620, 250), (100, 160)]
    assert np.array_equal(np.asarray(pictures[4]), np.asarray(draw_page(LAYOUT, seed=2))[100:260, 100:200])
    assert len(list((tmp_path / "boards/fox/panels").iterdir())) == 5
    run = json.loads(katha("run", "story.txt", "--import", "boards/fox", "--judge", "pixel", "--json").stdout)
    assert run["frames"] == 5
    story = json.loads((tmp_path / "out/story/story.jsonl").read_text()) | {"story_id": "fox"}
    (tmp_path / "fox.jsonl").write_text(json.dumps(story))
    judged = katha("eval", "fox.jsonl", "--boards", "boards", "--judge", "pixel", "--out", "judged", "--json")
    assert json.loads(judged.stdout)["invalid"] == {"boards": {}}, judged.output


def test_the_pages_of_a_picture_book_and_chosen_shots(tmp_path: Path, katha: Katha) -> None:
    canvas = Canvas(str(tmp_path / "book.pdf"), pagesize=(350, 500))
    for seed in range(4):
        canvas.drawImage(ImageReader(draw_page(LAYOUT, seed=seed)), 0, 0, 350, 500)
        canvas.showPage()
    canvas.save()
    told = json.loads(
        katha("cut", "book.pdf", "--by", "pages", "--pages", "2-4", "--text", "keep", "--out", "book", "--json").stdout
    )
    assert (told["frames"], told["by"]) == (3, "pages")
    made = film(tmp_path / "film.mp4", [(1.0, (200, 60, 60)), (1.0, (60, 160, 60))])
    (tmp_path / "shots.txt").write_text("# by hand\n0 0.4\n0:00.4\t0:01 the first\n1.0 2.0\n")
    told = json.loads(katha("cut", made, "--shots", "shots.txt", "--text", "keep", "--out", "shots", "--json").stdout)
    assert told["frames"] == 3
    assert [shot["at"] for shot in yaml.safe_load((tmp_path / "shots/cut.yaml").read_text())["shots"]] == [
        0.2,
        0.7,
        1.5,
    ]
    (tmp_path / "shots.txt").write_text("2.0 1.0\n")
    with pytest.raises(InputFileError, match="line 1, is not a shot"):
        katha("cut", made, "--shots", "shots.txt", "--text", "keep", "--out", "other")


def test_what_cannot_be_cut_is_refused(tmp_path: Path, katha: Katha) -> None:
    draw_page(LAYOUT).save(tmp_path / "page.png")
    (tmp_path / "bad.cbz").write_bytes(b"PK no archive")
    (tmp_path / "bad.mp4").write_bytes(b"no film at all")
    (tmp_path / "empty").mkdir()
    common = ("--text", "keep", "--out", "out")
    for source, said in {
        "bad.cbz": "not an archive",
        "bad.mp4": "not a film that can be read",
        "empty": "holds no picture",
        "none.png": "There is no",
        "story.txt": "nothing that frames are cut from",
    }.items():
        with pytest.raises(InputFileError, match=said):
            katha("cut", source, *common)
    for wrong, said in {
        ("page.png", "--by", "shots"): "not a film",
        ("page.png", "--pages", "3"): "no page 3",
        ("page.png", "--order", "up"): "--order 'up' is not known",
        ("page.png", "--shots", "s.txt"): "--shots is for films",
    }.items():
        with pytest.raises(UsageError, match=said):
            katha("cut", *wrong, *common)
    assert not (tmp_path / "out").exists()
    katha("cut", "page.png", *common)
    with pytest.raises(UsageError, match="says order ltr, the command rtl"):
        katha("cut", "page.png", *common, "--order", "rtl")
    draw_page(LAYOUT, seed=9).save(tmp_path / "page.png")
    with pytest.raises(InputFileError, match=r"is not what cut\.yaml was made from"):
        katha("cut", "page.png", *common)
    record = tmp_path / "out/cut.yaml"
    record.write_text(record.read_text().replace("[40, ", "[-40, ", 1))
    with pytest.raises(InputFileError, match=r"the panel \[-40, .* is not on the page"):
        katha("cut", "page.png", *common)


def test_most_panels_of_pages_drawn_at_random_are_found_in_order() -> None:
    found = measure(12)
    assert found["panels_found"] >= 0.93 * found["panels"]
    assert found["pages_in_order"] >= 10
