"""An artist's hands at the desk: the words of a shot, several frames at once, a pen over a frame, and own pictures."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browser import chromium, resize
from desk import DeskProcess
from desk_page import LIMIT, Page, faults
from PIL import Image, ImageDraw
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.interaction import POINTER_PEN, POINTER_TOUCH
from selenium.webdriver.common.actions.pointer_input import PointerInput
from selenium.webdriver.support.ui import WebDriverWait

from katha.photographs import PictureEdit, prepared_png
from katha.shots import SHOT_FIELDS, offered

pytestmark = pytest.mark.browser
FOX = (
    "A fox saw a crow in a tree. The crow held a cheese. The fox asked her to sing. The crow sang, and the cheese fell."
)
DOG = "A dog found a bone. He carried it over a bridge. He saw a dog in the water. He lost the bone."
WORDS = ("--renderer", "block", "--judge", "pixel", "--seeds", "42", "--mode", "base", "--size", "384x256")
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 768 512"><rect id="sky" width="768" height="512"
    fill="#88aacc"/><g id="f-fox"><circle cx="300" cy="300" r="60" fill="#c03030"/></g></svg>"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskProcess]:
    """A desk with two finished boards of four frames."""
    with DeskProcess(tmp_path_factory.mktemp("desk"), *WORDS) as made:
        for title, text in (("Dog", DOG), ("Fox", FOX)):
            assert made.post("draw", story={"title": title, "text": text, "panels": 4}).status == 200
            assert made.until("idle")["failed"] == ""
        yield made


@pytest.fixture
def page(browser: Chrome, desk: DeskProcess) -> Page:
    """The fox's board, freshly opened, wide."""
    resize(browser, 1440, 1000)
    page = Page(browser, desk)
    page.go("#/board/Fox")
    page.ready()
    return page


def cards(page: Page) -> list[Any]:
    """What the desk knows of the frames."""
    return list(page.desk.page()["board"]["cards"])


def back(page: Page) -> None:
    page.changed(lambda: page.click("[data-do=back]"))


def pixels(page: Page, number: int) -> Any:
    """The colours of a frame's picture: rows, columns, three bytes."""
    png = page.desk.ask("GET", f"panels/{cards(page)[number - 1]['sha256']}").body
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


_BOX = """const box = document.querySelector('#pen-canvas').getBoundingClientRect();
    return [box.left, box.top, box.width, box.height];"""
_SLIDE = """const range = document.querySelector(`[data-onion=${arguments[0]}]`);
    range.value = arguments[1];
    range.dispatchEvent(new Event('input', { bubbles: true }));"""
_LAYERS = """return [...document.querySelectorAll('#pen-place img')].map((image) =>
    [image.src.match(/panels.([0-9a-f]{64})/)[1], image.style.opacity]);"""
_LIT = """const form = document.querySelector('#own form');
    form.elements.levels.value = 'auto';
    form.elements.fill.value = '1';
    form.elements.fill.dispatchEvent(new Event('input', { bubbles: true }));"""
_DIALOGS = {"several/1,3": "#bulk", "copy/1,3": "#copy"}
_DIALOGS |= {"frame/2/pen": "#pen", "frame/2/own": "#own", "frame/2/edit": "#edit"}


# The words of a shot.


def test_the_words_of_a_shot_are_offered_in_lists_and_kept_in_the_plan(page: Page) -> None:
    page.click("[data-focus=edit2]")
    for field in SHOT_FIELDS:
        known = page(f"#edit [name={field}]").get_attribute("list")
        options = f"return [...document.querySelectorAll('#{known} option')].map((item) => item.textContent)"
        assert tuple(page.driver.execute_script(options)) == offered(field)
    said = {"shot_size": "insert", "shot_angle": "low angle", "camera_move": "pan left", "weather": "snow"}
    said |= {"light": "moonlight", "sound": "A bell, far away", "time_of_day": "dusk"}
    for name, words in said.items():
        page.fill(f"#edit [name={name}]", words)
    page.fill("#edit [name=comment]", "Colder, please.")
    page.driver.execute_script("document.querySelector('#edit [name=status]').value = 'changes'")
    assert faults(page) == []
    page.changed(lambda: page.click("#edit [value=save]"))
    card = cards(page)[1]
    assert {name: card[name] for name in said} == said
    plan = json.loads((page.desk.home / "Fox" / "plan.json").read_text("utf-8"))
    assert {name: plan["panels"][1][name] for name in said} == said
    told = page('.card[data-number="2"]').text
    assert all(words in told for words in (*said.values(), "to be changed", "1 comment"))
    page.click("[data-focus=edit2]")
    assert "Colder, please." in page.shown("#edit-comments").text
    page.click("#edit .close")
    back(page)
    assert cards(page)[1]["weather"] == ""


# Several frames.


def test_frames_are_found_as_the_terminal_finds_them_chosen_and_changed_as_one_step(page: Page) -> None:
    before = cards(page)
    page.fill("#find", "cheese")
    page.until("document.querySelector('#found').textContent.includes(' of 4')")
    found = page.desk.ask("GET", "api/find?words=cheese").json
    assert 0 < len(found) < 4
    seen = [int(str(card.get_attribute("data-number"))) for card in page.all("#cards .card") if card.is_displayed()]
    assert seen == found
    other = next(number for number in range(1, 5) if number not in found)
    page.driver.execute_script("location.hash = arguments[0]", f"#/board/Fox/frame/{other}")
    page.shown(f"#frame-{other}")  # what is led to is shown, whatever was searched for
    page.fill("#find", "cheese")
    page.gone(f"#frame-{other}")
    page.click("#choose-all")
    assert f"{len(found)} frame" in page.shown("#several-said").text
    page.click("[data-several=change]")
    page.shown("#bulk")
    assert page.driver.execute_script("return location.hash") == f"#/board/Fox/several/{','.join(map(str, found))}"
    page.fill("#bulk [name=weather]", "rain")
    page.fill("#bulk [name=place]", "kitchen")
    page.until("fetch('api/typed').then(r => r.text()).then(t => t.includes('kitchen'))")
    page.driver.refresh()
    page.idle()
    assert page.shown("#bulk [name=place]").get_property("value") == "kitchen", "what was typed is kept"
    page.changed(lambda: page.click("#bulk [value=save]"))
    after = cards(page)
    for old, new in zip(before, after, strict=True):
        wanted = ("kitchen", "rain") if new["number"] in found else (old["place"], old["weather"])
        assert (new["place"], new["weather"]) == wanted
        assert (new["caption"], new["shot_size"]) == (old["caption"], old["shot_size"])
    page.click("[data-several=none]")
    page.click('.card[data-number="1"] .pick')
    other = next(number for number in range(1, 5) if (number in found) != (1 in found))
    page.click(f'.card[data-number="{other}"] .pick')
    page.click("[data-several=change]")
    assert page.shown("#bulk [name=weather]").get_attribute("placeholder") == "they differ"
    page.changed(lambda: (page.click("#bulk-empty [value=weather]"), page.click("#bulk [value=save]")))
    emptied = cards(page)
    assert [emptied[number - 1]["weather"] for number in (1, other)] == ["", ""]
    assert {card["place"] for card in emptied if card["number"] in found} == {"kitchen"}
    back(page)
    back(page)
    assert cards(page) == before


def test_chosen_frames_are_locked_doubled_and_taken_off(page: Page) -> None:
    before = cards(page)
    for number in (1, 3):
        page.click(f'.card[data-number="{number}"] .pick')
    page.changed(lambda: page.click("[data-several=lock]"))
    assert [card["locked"] for card in cards(page)] == [True, False, True, False]
    page.changed(lambda: page.click("[data-several=unlock]"))
    page.changed(lambda: page.click("[data-several=duplicate]"))
    order = [card["sha256"] for card in before]
    doubled = [card["sha256"] for card in cards(page)]
    assert doubled == [order[0], order[0], order[1], order[2], order[2], order[3]]
    page.click("[data-several=none]")
    for number in (2, 5):
        page.click(f'.card[data-number="{number}"] .pick')
    page.changed(lambda: page.click("[data-several=remove]"))
    assert [card["sha256"] for card in cards(page)] == order
    page.click("[data-focus=edit4]")
    page.changed(lambda: page.click("#edit [data-edit=duplicate]"))
    assert [card["sha256"] for card in cards(page)] == [*order, order[3]]
    for _ in range(5):
        back(page)
    assert cards(page) == before


def test_frames_are_copied_to_another_board_and_it_is_shown(page: Page) -> None:
    before = cards(page)
    for number in (2, 4):
        page.click(f'.card[data-number="{number}"] .pick')
    page.click("[data-several=copy]")
    page.shown("#copy")
    assert [item.text for item in page.all("#copy option")] == ["Dog"]
    assert faults(page) == []
    page.click("#copy [type=submit]")
    page.until("location.hash === '#/board/Dog' && document.querySelectorAll('#cards .card').length === 6")
    page.ready()
    assert page.pictures()[4:] == [before[1]["sha256"], before[3]["sha256"]]
    assert [card["caption"] for card in cards(page)[4:]] == [before[1]["caption"], before[3]["caption"]]
    back(page)
    assert len(cards(page)) == 4
    assert "another board" in page.desk.post("copy", to="Dog", frames=[1]).json["error"]
    assert page.desk.post("copy", to="nobody", frames=[1]).status == 400
    page.go("#/board/Fox")
    assert cards(page) == before
    assert "no frame 9" in page.desk.post("copy", to="Dog", frames=[9]).json["error"]


def test_what_a_copy_costs_is_asked_first(tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        for title, text in (("Fox", FOX), ("Dog", DOG)):
            assert desk.post("draw", story={"title": title, "text": text, "panels": 2}).status == 200
            assert desk.until("idle")["failed"] == ""
    run = tmp_path / "home" / "Dog" / "run.json"
    run.write_text(run.read_text("utf-8").replace('"pixel"', '"anthropic:claude-haiku-4-5"'), "utf-8")
    with DeskProcess(tmp_path, *WORDS, ANTHROPIC_API_KEY="x") as desk:
        desk.run = "Fox"
        asked = desk.post("copy", to="Dog", frames=[1])
        assert (asked.status, asked.json["price"]["free"]) == (200, False)
        desk.run = "Dog"
        assert not desk.until("idle")["running"]
        assert len(desk.page()["board"]["cards"]) == 2


# The pen.


def open_pen(page: Page, number: int) -> Any:
    page.click(f"[data-focus=pen{number}]")
    page.shown("#pen")
    canvas = page("#pen-canvas")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    return canvas


def draw(page: Page, *points: tuple[float, float], kind: str = "mouse", pressures: tuple[float, ...] = ()) -> None:
    """Draw through points, in shares of the picture, with a pointer of that kind."""
    box = page.driver.execute_script(_BOX)
    pointer = PointerInput(kind, f"one {kind}")
    actions = ActionBuilder(page.driver, mouse=pointer, duration=60)
    for at, (x, y) in enumerate(points):
        place = (round(box[0] + x * box[2]), round(box[1] + y * box[3]))
        pressure = {"pressure": pressures[at]} if pressures else {}
        pointer.create_pointer_move(60 if at else 0, *place, **pressure)
        if at == 0:
            pointer.create_pointer_down(button=0, **pressure)
    pointer.create_pointer_up(0)
    before = strokes(page)
    actions.perform()
    page.until("document.querySelector('#pen [name=strokes]').value !== arguments[0]", before)


def strokes(page: Page) -> str:
    return str(page("#pen [name=strokes]").get_property("value"))


def choose(page: Page, **tools: str) -> None:
    for name, value in tools.items():
        page.click(f'#pen [name={name}][value="{value}"]')


def test_strokes_are_kept_over_esc_and_reload_and_saved_into_the_picture(page: Page) -> None:
    before, old = cards(page), pixels(page, 2)
    open_pen(page, 2)
    assert page("[data-pen=undo]").get_property("disabled")
    choose(page, hue="#c0392b", width="40")
    draw(page, (0.2, 0.5), (0.5, 0.5), (0.8, 0.5))
    one = strokes(page)
    choose(page, hue="#2c6fb0", width="3")
    draw(page, (0.1, 0.1), (0.1, 0.3))
    two = strokes(page)
    assert two.startswith(one)
    assert len(two.split("\n")) == 2
    page.click("[data-pen=undo]")
    assert strokes(page) == one
    page.click("[data-pen=redo]")
    assert strokes(page) == two
    ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    assert strokes(page) == one
    page.click("[data-pen=redo]")
    ActionChains(page.driver).send_keys(Keys.ESCAPE).perform()
    page.gone("#pen")
    open_pen(page, 2)
    assert "You drew this before" in page.shown("#pen .typed").text
    assert strokes(page) == two
    page.driver.refresh()
    page.idle()
    page.shown("#pen")
    assert strokes(page) == two, "a reload leads back to the pen with what was drawn"
    assert faults(page) == []

    # The eraser parts the red line in its middle, and one step back mends it.
    choose(page, tool="eraser", width="16")
    draw(page, (0.5, 0.4), (0.5, 0.6))
    parted = strokes(page)
    assert len(parted.split("\n")) == 3
    page.click("[data-pen=undo]")
    assert strokes(page) == two
    page.click("[data-pen=redo]")

    page.changed(lambda: page.click("#pen [value=save]"))
    assert page('.card[data-number="2"] .facts').text.endswith("own picture")
    after, new = cards(page), pixels(page, 2)
    assert [card["number"] for card, was in zip(after, before, strict=True) if card["sha256"] != was["sha256"]] == [2]
    height, width = new.shape[:2]
    red = (abs(new - np.array([0xC0, 0x39, 0x2B])).sum(axis=2)) < 12
    assert red[height // 2, round(0.3 * width)]
    assert red[height // 2, round(0.7 * width)]
    assert not red[height // 2, width // 2], "the middle was rubbed out"
    changed = np.argwhere((new != old).any(axis=2))
    rows, columns = changed[:, 0] / height, changed[:, 1] / width
    far = (abs(rows - 0.5) > 0.1) & ~((columns < 0.15) & (rows < 0.35))
    assert not far.any(), "what was not drawn on stays, pixel for pixel"
    open_pen(page, 2)
    assert strokes(page) == "", "what was saved is no draft any more"
    page.click("#pen .close")
    back(page)
    assert cards(page) == before


def test_neighbours_shine_through_and_paper_takes_the_picture_s_place(page: Page) -> None:
    before = cards(page)
    open_pen(page, 2)
    assert page.driver.execute_script(_LAYERS) == [
        [before[1]["sha256"], "1"], [before[0]["sha256"], "0"], [before[2]["sha256"], "0"]
    ]  # fmt: skip
    page.driver.execute_script(_SLIDE, "before", 40)
    page.driver.execute_script(_SLIDE, "after", 25)
    page.driver.execute_script(_SLIDE, "picture", 50)
    assert [opacity for _, opacity in page.driver.execute_script(_LAYERS)] == ["0.5", "0.4", "0.25"]
    page.click("#pen-shown")
    assert page("#pen-canvas").value_of_css_property("opacity") == "0"
    page.click("#pen-shown")
    page.click("#pen [name=paper]")
    draw(page, (0.3, 0.3), (0.6, 0.6))
    page.changed(lambda: page.click("#pen [value=save]"))
    new = pixels(page, 2)
    assert (new == 255).all(axis=2).mean() > 0.9
    assert (new[round(0.45 * len(new)), round(0.45 * new.shape[1])] < 80).all()
    back(page)
    page.click("[data-focus=pen1]")
    page.shown("#pen")
    assert not page("#pen-before-layer").is_displayed()
    page.click("#pen .close")


def test_strokes_over_a_drawing_are_a_layer_of_it(page: Page) -> None:
    picture = page.desk.post("drawing", frame=3, svg=SVG).json["sha256"]
    edits = [{"op": "picture", "frame": 3, "picture": picture}]
    page.changed(lambda: page.desk.post("edit", base=page.desk.page()["version"], edits=edits))
    for _ in range(2):
        open_pen(page, 3)
        choose(page, hue="#2c7a4b", width="40")
        draw(page, (0.25, 0.5), (0.75, 0.5))
        page.changed(lambda: page.click("#pen [value=save]"))
    sha256 = cards(page)[2]["sha256"]
    svg = (page.desk.home / "Fox" / "panels" / f"{sha256}.svg").read_text("utf-8")
    assert re.findall(r'id="([^"]+)"', svg) == ["sky", "f-fox", "pen", "pen-2"]
    assert "#2c7a4b" in svg
    new = pixels(page, 3)
    green = abs(new - np.array([0x2C, 0x7A, 0x4B])).sum(axis=2) < 12
    assert green[128, 192], "the middle of the picture, whatever the drawing's own units are"
    assert not green[60].any()
    page.click("[data-focus=edit3]")
    page.click("#edit-drawing")
    page.shown("#drawing-layers button")
    assert page.all("#drawing-layers button")[0].text == "pen 2"
    page.click("#drawing .close")
    for _ in range(3):
        back(page)


def test_strokes_go_into_the_frame_they_were_drawn_on_wherever_it_was_moved(page: Page) -> None:
    before = cards(page)
    open_pen(page, 2)
    draw(page, (0.2, 0.5), (0.8, 0.5))
    moved = [{"op": "move", "frame": 2, "to": 4}]
    page.changed(lambda: page.desk.post("edit", base=page.desk.page()["version"], edits=moved))
    page.changed(lambda: page.click("#pen [value=save]"))
    after = cards(page)
    assert [card["sha256"] for card in after[:3]] == [before[at]["sha256"] for at in (0, 2, 3)]
    assert after[3]["own"]
    open_pen(page, 3)
    draw(page, (0.2, 0.5), (0.8, 0.5))
    taken = [{"op": "take", "frame": 3, "seed": 77}]
    page.changed(lambda: page.desk.post("edit", base=page.desk.page()["version"], edits=taken))
    page.click("#pen [value=save]")
    assert "was changed meanwhile" in page.shown("#pen .problem").text
    page.click("#pen .close")
    open_pen(page, 3)
    assert strokes(page), "the strokes are kept, over the new picture"
    page.click("#pen .typed button")
    page.click("#pen .close")
    for _ in range(3):
        back(page)


def test_a_finger_a_pen_and_the_keyboard_draw(page: Page) -> None:
    resize(page.driver, 390, 844)
    open_pen(page, 1)
    assert page.driver.execute_script("return document.querySelector('#pen').scrollWidth") <= 390
    draw(page, (0.2, 0.2), (0.5, 0.4), kind=POINTER_TOUCH)
    assert strokes(page).split(" ")[2] == "0"
    draw(page, (0.2, 0.6), (0.4, 0.6), (0.6, 0.6), kind=POINTER_PEN, pressures=(0.2, 0.5, 0.9))
    by_pen = strokes(page).split("\n")[1].split(" ")
    pressed = [int(point.split(",")[2]) for point in by_pen[3:]]
    assert by_pen[2] == "1"
    assert min(pressed) < 30 < 80 < max(pressed), "the pressure of a pen is kept"
    page.driver.execute_script("document.querySelector('#pen-canvas').focus()")
    ActionChains(page.driver).send_keys(
        Keys.ARROW_LEFT, Keys.SPACE, *[Keys.ARROW_RIGHT] * 4, Keys.ARROW_DOWN, Keys.SPACE
    ).perform()
    page.until("document.querySelector('#pen [name=strokes]').value.split('\\n').length === 3")
    points = [tuple(map(float, point.split(",")[:2])) for point in strokes(page).split("\n")[2].split(" ")[3:]]
    assert (points[0], points[-1]) == ((176.0, 128.0), (240.0, 144.0))
    page.click("[data-pen=clear]")
    assert strokes(page) == ""
    page.click("[data-pen=undo]")
    assert len(strokes(page).split("\n")) == 3
    page.click("#pen .typed button") if page("#pen .typed").is_displayed() else page.click("[data-pen=clear]")
    page.click("#pen .close")


def test_a_full_layer_is_told_and_a_locked_frame_has_no_pen(page: Page) -> None:
    open_pen(page, 1)
    draw(page, (0.2, 0.2), (0.5, 0.4))
    kept = strokes(page)
    page.driver.execute_script(
        """const list = Array.from({ length: 45000 }, (_, at) => `${at % 380},100,50`).join(' ');
        const field = document.querySelector('#pen [name=strokes]');
        field.value = `${field.value}\\n#222222 3 0 ${list}`;
        document.querySelector('#pen form').dispatchEvent(new Event('input'));"""
    )
    page.click("#pen .close")
    open_pen(page, 1)
    full = strokes(page)
    assert full != kept
    box = page("#pen-canvas")
    ActionChains(page.driver, duration=60).move_to_element(box).click_and_hold().move_by_offset(
        60, 40
    ).release().perform()
    assert "layer is full" in page.shown("#pen .problem").text
    assert strokes(page) == full
    page.click("[data-pen=clear]")
    page.click("#pen .close")
    page.changed(lambda: page.click('.card[data-number="1"] [data-act=lock]'))
    assert page.all('.card[data-number="1"] [data-act=pen]') == []
    page.click("[data-focus=edit1]")
    page.shown("#edit")
    assert not page("#edit-pen").is_displayed()
    assert not page("#edit-own").is_displayed()
    page.click("#edit .close")
    back(page)


# Own pictures.


def photograph(folder: Path) -> bytes:
    """A drawing on a sheet in uneven light, with a dark table around it."""
    made = Image.linear_gradient("L").resize((1500, 1100)).point(lambda value: 110 + value // 3).convert("RGB")
    pen = ImageDraw.Draw(made)
    pen.rectangle((0, 0, 1500, 200), fill=(60, 40, 30))
    pen.ellipse((500, 400, 900, 800), outline=(70, 66, 70), width=20)
    made.save(folder / "photo.png")
    return (folder / "photo.png").read_bytes()


def test_a_photograph_is_cut_lit_and_put_into_a_frame(page: Page, tmp_path: Path) -> None:
    before, data = cards(page), photograph(tmp_path)
    page.click("[data-focus=edit4]")
    page.click("#edit-own")
    page.shown("#own")
    assert page("#own [value=save]").get_property("disabled")
    page("#own [name=file]").send_keys(str(tmp_path / "photo.png"))
    page.until("document.querySelector('#own-shown').naturalWidth === 384")
    source = page.shown("#own-source")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", source)
    width, height = source.size["width"], source.size["height"]
    chain = ActionChains(page.driver, duration=60).move_to_element_with_offset(
        source, round(-0.3 * width), round(-0.3 * height)
    )
    chain.click_and_hold().move_by_offset(round(0.6 * width), round(0.6 * height)).release().perform()
    dragged = [float(page(f"#own [name={name}]").get_property("value")) for name in ("left", "top", "width", "height")]
    assert all(abs(found - wanted) < 2 for found, wanted in zip(dragged, (20, 20, 60, 60), strict=True))
    part = {"left": "10", "top": "25", "width": "80", "height": "70"}
    for name, value in part.items():
        page.fill(f"#own [name={name}]", value)
    shown = str(page("#own-shown").get_property("src"))
    page.driver.execute_script(_LIT)
    page.until("document.querySelector('#own-shown').src !== arguments[0]", shown)
    assert faults(page) == []
    page.changed(lambda: page.click("#own [value=save]"))
    sha256 = cards(page)[3]["sha256"]
    how = PictureEdit((10, 25, 80, 70), "auto", fill=True)
    assert page.desk.ask("GET", f"panels/{sha256}").body == prepared_png(data, "It", (384, 256), how)
    assert [card["sha256"] for card in cards(page)[:3]] == [card["sha256"] for card in before[:3]]
    back(page)
    assert cards(page) == before


def test_what_cannot_be_an_own_picture_gets_a_sentence_and_nothing_is_kept(page: Page, tmp_path: Path) -> None:
    (tmp_path / "notes.png").write_text("no picture", "utf-8")
    panels = sorted((page.desk.home / "Fox" / "panels").iterdir())
    page.go("#/board/Fox/frame/4/own")
    page.shown("#own")
    page("#own [name=file]").send_keys(str(tmp_path / "notes.png"))
    assert "picture" in page.shown("#own .problem").text
    assert page("#own [value=save]").get_property("disabled")
    photograph(tmp_path)
    page("#own [name=file]").send_keys(str(tmp_path / "photo.png"))
    page.until("!document.querySelector('#own [value=save]').disabled")
    page.gone("#own .problem")
    page.click("#own .close")
    assert sorted((page.desk.home / "Fox" / "panels").iterdir()) == panels, "a look keeps nothing"
    assert page.desk.ask("POST", "api/own", b"x", {"content-type": "text/plain"}).status == 415
    bad = page.desk.ask(
        "POST", "api/own?crop=90,0,50,50", (tmp_path / "photo.png").read_bytes(), {"content-type": "image/png"}
    )
    assert (bad.status, "not part of a picture" in bad.json["error"]) == (400, True)


# Every state, wide and narrow, light and dark.


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_no_state_has_a_serious_fault_or_is_wider_than_the_page(page: Page, width: int, dark: bool) -> None:
    resize(page.driver, width, 844, dark=dark)
    for address, dialog in _DIALOGS.items():
        page.go(f"#/board/Fox/{address}")
        page.shown(dialog)
        page.driver.execute_script(
            "const p = document.querySelector(arguments[0] + ' .problem'); p.hidden = false; p.textContent = 'No.'",
            dialog,
        )
        assert (dialog, faults(page)) == (dialog, [])
        assert page.driver.execute_script(f"return document.querySelector('{dialog}').scrollWidth") <= width
        page.click(f"{dialog} .close")
    page.go("#/board/Fox")
    page.ready()
    page.click("#choose-all")
    assert faults(page) == []
    page.fill("#find", "zebra")
    page.until("document.querySelector('#found').textContent === 'No frame says this.'")
    assert faults(page) == []
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_keyboard_alone_chooses_changes_and_copies(page: Page) -> None:
    def press(*keys: str) -> None:
        ActionChains(page.driver, duration=0).send_keys(*keys).perform()

    def tab_to(selector: str) -> None:
        for _ in range(150):
            if page.driver.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
            press(Keys.TAB)
        raise AssertionError(f"{selector} is not reached by Tab")

    tab_to('.card[data-number="1"] .pick')
    press(Keys.SPACE)
    tab_to('.card[data-number="2"] .pick')
    press(Keys.SPACE)
    tab_to("[data-several=change]")
    press(Keys.ENTER)
    page.shown("#bulk")
    tab_to("#bulk [name=weather]")
    press("fog")
    tab_to("#bulk [value=save]")
    page.changed(lambda: press(Keys.ENTER))
    assert [card["weather"] for card in cards(page)] == ["fog", "fog", "", ""]
    WebDriverWait(page.driver, LIMIT).until(
        lambda driver: driver.execute_script("return document.activeElement.matches('[data-several=change]')")
    )
    back(page)
