"""The report in a real Chromium: nothing leaves the file, it can be read by everyone, and hostile text stays text."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cli_child
import pytest
import reportlab
from browser import chromium, resize
from PIL import Image
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.reports.page import load_run
from katha.app.reports.run_page import write_report
from katha.app.reports.sheet import write_sheet
from katha.schema import Board

pytestmark = pytest.mark.browser
HOSTILE = """<script>document.title='owned'</script><img src=x onerror="document.title='owned'">"""
TEXT = f"""The "Lion" & </title><b id=evil>Mouse</b>

A lion slept in the forest. A mouse ran over his paw and woke him. {HOSTILE} The angry lion caught the mouse.
The mouse begged, and the lion let her go. Hunters caught the lion in a net. The mouse bit the rope.
The happy lion thanked the mouse."""
SEEDS = range(1, 40)


def _run(folder: Path, story: Path, seed: int, mode: str = "bridge_only") -> Path:
    out = folder / f"run{seed}"
    words = ["run", str(story), "--judge", "pixel", "--size", "384x256", "--mode", mode, "--seeds", str(seed)]
    words += ["--panels", "5"]
    done = CliRunner().invoke(app, [*words, "--out", str(out)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A run of a hostile story whose bridge was accepted."""
    folder = tmp_path_factory.mktemp("report")
    story = folder / "lion.txt"
    story.write_text(TEXT, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(folder / "cache"))
        cli_child.install(patch)
        runs = (_run(folder, story, seed) for seed in SEEDS)
        yield next(out for out in runs if json.loads((out / "candidates.json").read_text())["decision"]["accepted"])


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser: Chrome, run: Path) -> Chrome:
    """The report, freshly opened at the width of a laptop."""
    browser.get_log("performance")
    browser.get_log("browser")
    resize(browser, 1440, 900)
    browser.get((run / "report.html").as_uri())
    return browser


def all_of(page: Chrome, selector: str) -> list[WebElement]:
    return page.find_elements(By.CSS_SELECTOR, selector)


def requests(page: Chrome) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]


def test_no_request_leaves_the_file_and_nothing_is_complained_of(page: Chrome, run: Path) -> None:
    for details in all_of(page, "details"):
        page.execute_script("arguments[0].open = true", details)
    asked = [url for url in requests(page) if not url.startswith("data:")]
    assert asked == [(run / "report.html").as_uri()]
    assert page.get_log("browser") == []
    policy = all_of(page, "meta[http-equiv=Content-Security-Policy]")[0].get_attribute("content") or ""
    assert policy.startswith("default-src 'none'")


def test_the_policy_stops_what_would_leave(page: Chrome) -> None:
    page.execute_script("const i = new Image(); i.src = 'http://127.0.0.1:9/x.png'; document.body.append(i)")
    assert any("Content Security Policy" in entry["message"] for entry in page.get_log("browser"))


def test_every_picture_is_decoded_and_described(page: Chrome) -> None:
    page.execute_async_script(
        "const done = arguments[0]; Promise.all([...document.images].map(i => i.decode())).then(() => done())"
    )
    widths = page.execute_script("return [...document.images].map(i => i.naturalWidth)")
    assert widths
    assert min(widths) > 0
    alts = [image.get_attribute("alt") or "" for image in all_of(page, "img")]
    assert all(len(alt) > 15 and alt.startswith("Frame ") for alt in alts)
    rings = all_of(page, ".gap svg")
    assert rings
    assert all("Transition from scene" in (ring.get_attribute("aria-label") or "") for ring in rings)


def test_headings_and_landmarks_are_in_order(page: Chrome) -> None:
    levels = [int(head.tag_name[1]) for head in all_of(page, "h1, h2, h3, h4, h5, h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    for landmark in ("body > header", "main", "nav[aria-label]"):
        assert len(all_of(page, landmark)) == 1, landmark
    named = page.execute_script(
        "return [...document.querySelectorAll('section')].map(s => s.ariaLabelledByElements?.[0]?.innerText)"
    )
    assert len(named) >= 6
    assert all(named)
    assert page.execute_script("return document.documentElement.lang") == "en"
    ids = [item.get_attribute("id") for item in all_of(page, "[id]")]
    assert len(ids) == len(set(ids))
    for link in all_of(page, "a[href^='#']"):
        assert (link.get_attribute("href") or "").partition("#")[2] in ids


def test_hostile_text_stays_text(page: Chrome) -> None:
    assert page.title.endswith("storyboard report")
    assert "owned" not in page.title
    assert all_of(page, "#evil") == []
    assert all_of(page, "script[src], [onerror], [onclick]") == []
    assert len(all_of(page, "script")) == 1
    assert "</title>" in all_of(page, "h1")[0].text  # a tag that marks words up is not part of a text's title
    story = page.execute_script("return document.querySelector('.told').textContent")
    assert HOSTILE in story


def test_before_after_and_the_bridge_are_marked(page: Chrome, run: Path) -> None:
    board = Board.model_validate_json((run / "storyboard.json").read_bytes())
    assert len(all_of(page, "#after li.frame")) == len(board.frames) == 6
    assert len(all_of(page, "#before li.frame")) == 5
    assert all_of(page, "#before li.bridge") == []
    (bridge,) = all_of(page, "#after li.bridge")
    assert "Bridge" in bridge.text
    place = next(frame.index for frame in board.frames if frame.kind == "bridge")
    kinds = [(item.get_attribute("class") or "").split()[1] for item in all_of(page, "#after li.frame")]
    assert kinds.index("bridge") == place - 1
    assert len(all_of(page, "#after .gap:not(.joint)")) == 4
    (repaired,) = all_of(page, "#after .gap.repaired")
    pair = next(frame.transition for frame in board.frames if frame.kind == "bridge")
    assert pair is not None
    assert f"{pair[0]}→{pair[1]}" in repaired.text
    assert len(all_of(page, ".candidate")) == 2
    assert len(all_of(page, ".candidate.accepted")) == 1


def test_the_page_shows_the_numbers_and_the_decision_of_the_run(page: Chrome, run: Path) -> None:
    scores = json.loads((run / "scores.json").read_text())
    shown = all_of(page, ".numbers > div")[0].text
    for method, tag in (("base", ".from"), ("bridge_only", "strong")):
        row = scores["methods"][method]["judges"]["pixel"]
        measured = row["n_valid"] >= 2 and 3 * row["n_valid"] >= row["n_questions"] - row["n_unscored"]
        value = row["filtered"]["image"] if measured else None
        assert all_of(page, f".numbers {tag}")[0].text == ("–" if value is None else f"{value:.1f}"), shown
    decision = json.loads((run / "candidates.json").read_text())["decision"]
    assert decision["reason"] in all_of(page, "body > header")[0].text
    assert decision["weakest_reason"] in all_of(page, "#weakest")[0].text
    rows = (run / "story.jsonl").read_text()
    assert len(all_of(page, "#asked > .scroll tbody tr")) == rows.count('"role":"reporting"')


def test_everything_can_be_reached_by_keyboard(page: Chrome) -> None:
    reached: list[str] = []
    for _ in range(60):
        ActionChains(page).send_keys(Keys.TAB).perform()
        reached.append(page.execute_script("const e = document.activeElement; return e.tagName + '.' + e.className"))
    assert reached[0] == "A.skip"
    assert "INPUT." in reached
    assert "SUMMARY." in reached
    assert any(name.startswith("DIV.scroll") for name in reached)


def test_a_details_element_opens_by_keyboard(page: Chrome) -> None:
    summary = all_of(page, "#repeat summary")[0]
    page.execute_script("arguments[0].focus()", summary)
    ActionChains(page).send_keys(Keys.ENTER).perform()
    assert all_of(page, "#repeat .told")[0].is_displayed()


def test_the_filter_works_from_the_keyboard(page: Chrome) -> None:
    rows = all_of(page, "#asked > .scroll tbody tr")
    flags = [row.get_attribute("data-flag") for row in rows]
    first = all_of(page, "fieldset.filter input")[0]
    page.execute_script("arguments[0].focus()", first)
    for wanted in ("recovered", "harmed", "lost"):
        ActionChains(page).send_keys(Keys.ARROW_RIGHT).perform()
        assert [row.is_displayed() for row in rows] == [flag == wanted for flag in flags]
    status = page.execute_script("return document.querySelector('fieldset.filter output').textContent")
    assert status == f"{flags.count('lost')} of {len(rows)} questions shown"


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_needs_no_sideways_scrolling(page: Chrome, dark: bool) -> None:
    resize(page, 390, 800, dark=dark)
    for details in all_of(page, "details"):
        page.execute_script("arguments[0].open = true", details)
    assert page.execute_script("return document.documentElement.scrollWidth") <= 390
    frames = [frame.rect for frame in all_of(page, "#after li.frame")]
    assert all(rect["width"] > 300 for rect in frames)
    assert [rect["y"] for rect in frames] == sorted(rect["y"] for rect in frames)


def _contrast(page: Chrome, selector: str) -> float:
    script = """const e = document.querySelector(arguments[0]);
      let back = e; const paint = x => getComputedStyle(x).backgroundColor;
      while (back.parentElement && paint(back) === 'rgba(0, 0, 0, 0)') back = back.parentElement;
      return [getComputedStyle(e).color, paint(back)]"""

    def light(colour: str) -> float:
        parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted(light(colour) for colour in page.execute_script(script, selector))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_in_light_and_dark(page: Chrome, dark: bool) -> None:
    resize(page, 1440, 900, dark=dark)
    for selector in (
        "h1",
        ".verdict",
        ".note",
        "figcaption small",
        ".bridge b",
        ".gold",
        ".mark",
        ".chip",
        ".tag",
        "pre",
    ):
        assert _contrast(page, selector) >= 4.5, selector
    paper = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(31, 29, 36)") == dark


def test_it_prints_on_pages(page: Chrome) -> None:
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")
    assert 2 <= pdf.count(b"/Type /Page\n") + pdf.count(b"/Type/Page/") <= 30
    assert pdf.count(b"/Subtype /Image") + pdf.count(b"/Subtype/Image") >= 6
    resize(page, 700, 900, dark=False)  # about the width that paper leaves
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not all_of(page, "nav")[0].is_displayed()
    cut = "return [...document.querySelectorAll('table')].filter(t => t.scrollWidth > t.parentNode.clientWidth).length"
    assert page.execute_script(cut) == 0
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_scripts_every_question_is_there(browser: Chrome, run: Path) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get((run / "report.html").as_uri())
        html = browser.page_source
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert '<fieldset class="filter" hidden' in html
    assert html.count("data-flag=") >= 5


def _heavy(folder: Path, run: Path) -> Path:
    """A copy of `run` whose panels are big noisy PNGs, as a real renderer leaves them."""
    noise = Image.effect_noise((1344, 896), 90).convert("RGB")
    buffer = io.BytesIO()
    noise.save(buffer, "PNG")
    for path in run.rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(run)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(buffer.getvalue() if path.suffix == ".png" else path.read_bytes())
    return folder


def test_big_pictures_leave_the_report_light(tmp_path: Path, run: Path) -> None:
    heavy = _heavy(tmp_path / "heavy", run)
    panels = sum(path.stat().st_size for path in (heavy / "panels").iterdir())
    size = write_report(heavy).stat().st_size
    assert panels > 10_000_000
    assert size < 8_000_000


def test_the_sheet_writes_any_script(tmp_path: Path, run: Path) -> None:
    made = load_run(run)

    def drawn(*captions: str) -> bytes:
        for panel, caption in zip(made.plan.panels, captions, strict=False):
            panel.caption = caption
        with Image.open(write_sheet(made.board, run, tmp_path / "sheet.png", made.plan)) as sheet:
            return sheet.tobytes()

    arabic = "\u0642\u0627\u0644", "\u0644\u0627\u0642"
    assert drawn(arabic[0]) != drawn(arabic[1])  # boxes would be the same
    assert drawn("w" * 60) != drawn("w" * 60 + "i")


def test_the_sheet_is_written_in_a_font_of_one_s_own(tmp_path: Path, run: Path) -> None:
    folder = Path(reportlab.__file__).parent / "fonts"
    made, mono = load_run(run), folder / "VeraBd.ttf"
    drawn = [
        write_sheet(made.board, run, tmp_path / f"{len(own)}.png", made.plan, own).read_bytes() for own in ((), (mono,))
    ]
    assert drawn[0] != drawn[1]
    told = CliRunner().invoke(app, ["report", str(run), "--font", str(mono)])
    assert "--font is of the sheet" in str(told.exception)
    told = CliRunner().invoke(app, ["report", str(run), "--sheet", str(tmp_path / "a.png"), "--font", "none.ttf"])
    assert "none.ttf" in str(told.exception)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "pdf"])
def test_the_sheet_shows_every_frame(tmp_path: Path, run: Path, suffix: str) -> None:
    made = load_run(run)
    board = made.board
    path = write_sheet(board, run, tmp_path / "deep" / f"sheet.{suffix}", made.plan)
    if suffix == "pdf":
        assert path.read_bytes().startswith(b"%PDF")
        return
    with Image.open(path) as sheet:
        assert sheet.width > 3 * 480
        colours: Any = sheet.convert("RGB").getcolors(10**7)
    if suffix == "png":
        assert (194, 87, 26) in {colour for _, colour in colours}
