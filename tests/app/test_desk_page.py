"""The desk in a real Chromium, from a pasted story to an exported PDF, by mouse and by keyboard, wide and narrow."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pypdf
import pytest
from browser import chromium, resize
from desk import DeskProcess
from desk_page import LIMIT, Page, faults
from PIL import Image
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

pytestmark = pytest.mark.browser
HOSTILE = """<script>document.title='owned'</script><img src=x onerror="document.title='owned'">"""
STORY = f"""A lion slept in the forest. A mouse ran over his paw and woke him. {HOSTILE} The angry lion caught her.
The mouse begged, and the lion let her go. Hunters caught the lion in a net. The mouse bit the rope.
The happy lion thanked the mouse."""
TITLE = 'The "Lion" & Mouse'
WORDS = (
    *("--renderer", "block", "--judge", "pixel", "--seeds", "42,123", "--mode", "full_always"),
    "--size",
    "384x256",
)

_READING = 120.0
"""A stop is heard when the story has been read."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        resize(driver, 1440, 1000)
        yield driver


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(scope="module")
def desk(home: Path) -> Iterator[DeskProcess]:
    with DeskProcess(home, *WORDS) as made:
        yield made


def told_and_drawn(page: Page) -> None:
    """Paste a story, read, draw and review it as a person does, and accept the second bridge."""
    page.click("#story button[type=submit]")
    assert "Paste a story first" in str(page("#story [name=text]").get_property("validationMessage"))
    page.fill("#story [name=title]", TITLE)
    page.fill("#story [name=text]", STORY)
    page.fill("#story [name=panels]", "5")
    page.click("#story button[type=submit]")
    assert "free" in page.shown("#draft-cost").text
    assert len(page.all("#draft-panels li")) == 5
    page.click("#draw")
    review = page.shown("#review")
    assert len(page.all("#review .takes li")) == 2
    assert "What was asked about the pictures alone" in review.text
    assert "Leave the board as it is" in review.text
    assert "so that no frame goes in that you have not seen" in review.text
    assert faults(page) == []
    page.click("#review .takes li:nth-child(2) input")
    page.click("[data-choice=accept]")
    page.shown("#cards .card.bridge")
    page.idle()
    assert len(page.all("#cards .card.bridge")) == 1


@pytest.fixture(scope="module")
def drawn(browser: Chrome, desk: DeskProcess) -> Page:
    """A story that was pasted, read, drawn and reviewed."""
    page = Page(browser, desk)
    assert faults(page) == []
    told_and_drawn(page)
    page.board = page.desk.run
    return page


@pytest.fixture
def page(drawn: Page) -> Page:
    """The drawn board, freshly opened, wide."""
    resize(drawn.driver, 1440, 1000)
    drawn.go(f"#/board/{quote(drawn.board)}")
    drawn.shown("#cards .card")
    drawn.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
    return drawn


def test_hostile_text_stays_text(page: Page) -> None:
    assert "owned" not in page.driver.title
    assert page.all("#evil, #open script, [onerror]") == []
    assert page("h1").text == TITLE
    assert HOSTILE in page("#told-list").get_property("textContent")


def test_nothing_is_asked_of_the_network(page: Page) -> None:
    page.driver.get_log("performance")
    page.driver.refresh()
    page.idle()
    page.shown("#cards img")
    events = [json.loads(entry["message"])["message"] for entry in page.driver.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith((page.desk.address, "data:", "blob:"))] == []
    assert [entry for entry in page.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def drag_first_to_third(page: Page) -> None:
    """Move the first frame with the mouse until it stands third."""
    first, third = page.all("#cards .handle")[0], page.all("#cards .card")[2]
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", first)

    def drag() -> None:
        chain = ActionChains(page.driver, duration=80).click_and_hold(first).move_to_element(third)
        chain.move_by_offset(int(third.size["width"] * 0.35), 0).release().perform()

    page.changed(drag)


def bridges_on_the_way(page: Page) -> int:
    """How many bridges stand among the first three frames: their scenes part, and they are taken off."""
    return [card["kind"] for card in page.desk.page()["board"]["cards"][:3]].count("bridge")


def test_a_frame_is_moved_with_the_mouse_and_back_by_undo(page: Page) -> None:
    before, parted = page.captions(), bridges_on_the_way(page)
    drag_first_to_third(page)
    moved = page.captions()
    assert moved != before
    assert moved.index(before[0]) == 2 - parted
    page.changed(lambda: page.click("[data-do=back]"))
    assert page.captions() == before


def test_a_frame_is_moved_by_keyboard_and_keeps_the_focus(page: Page) -> None:
    before = page.captions()
    page.until("(document.querySelector('.card[data-number=\"1\"] .handle').focus(), true)")
    page.changed(lambda: page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT))
    assert page.captions()[:2] == [before[1], before[0]]
    page.until("document.activeElement?.matches('.card[data-number=\"2\"] .handle')")
    page.changed(lambda: ActionChains(page.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform())
    assert page.captions() == before


def test_a_frame_is_edited_and_only_its_picture_changes(page: Page) -> None:
    before = page.pictures()
    page.click('.card[data-number="1"] [data-act=edit]')
    page.fill("#edit [name=prompt]", "The lion sleeps under a tree by night.")
    page.fill("#edit [name=caption]", "A lion slept.")
    page.fill("#edit [name=notes]", "Slow pan.")
    page.fill("#edit [name=duration]", "3.5")
    page.changed(lambda: page.click("#edit [value=save]"))
    page.gone("#edit")
    after = page.pictures()
    assert after[0] != before[0]
    assert after[1:] == before[1:]
    card = page('.card[data-number="1"]').text
    assert all(words in card for words in ("A lion slept.", "Slow pan.", "3.5 s"))


def test_three_takes_stand_side_by_side_and_one_is_chosen(page: Page) -> None:
    before = page.pictures()
    page.click('.card[data-number="3"] [data-act=takes]')
    page.click("#takes [value=draw]")
    page.until("document.querySelectorAll('#takes-list li').length === 4")
    tops = {element.rect["y"] for element in page.all("#takes-list img")}
    assert len(tops) == 1
    wanted = (page("#takes-list li:nth-child(3) img").get_attribute("src") or "").rpartition("/")[2][:64]
    page.changed(lambda: page.click("#takes-list li:nth-child(3) button"))
    assert page.pictures() == [*before[:2], wanted, *before[3:]]


def test_a_part_is_painted_over_and_drawn_and_the_rest_stays(page: Page) -> None:
    before = page.pictures()

    def pixels(sha256: str) -> Image.Image:
        return Image.open(io.BytesIO(page.desk.ask("GET", f"panels/{sha256}").body)).convert("RGB")

    page.click('.card[data-number="4"] [data-act=edit]')
    page.click("#edit-part")
    page.until(
        "document.querySelector('#inpaint-mask').width === document.querySelector('#inpaint-picture').naturalWidth"
    )
    page.click("#inpaint [value=draw]")
    assert "Nothing of the mask is white" in page.shown("#inpaint .problem").text
    page.until("!document.querySelector('#inpaint [data-mask=add]').disabled")
    for name, value in (("left", "50"), ("top", "0"), ("width", "50"), ("height", "100")):
        page.fill(f"#inpaint [name={name}]", value)
    page.fill("#inpaint [name=prompt]", "The mouse sings.")
    page.click("#inpaint [data-mask=add]")
    assert faults(page) == []
    page.changed(lambda: page.click("#inpaint [value=draw]"))
    page.gone("#inpaint")
    WebDriverWait(page.driver, LIMIT, 0.05).until(lambda _: page.pictures() != before)
    after = page.pictures()
    assert [one == other for one, other in zip(before, after, strict=True)] == [at != 3 for at in range(len(before))]
    old, new = pixels(before[3]), pixels(after[3])
    half = old.width // 2
    assert old.crop((0, 0, half, old.height)).tobytes() == new.crop((0, 0, half, old.height)).tobytes()
    assert old.crop((half, 0, *old.size)).tobytes() != new.crop((half, 0, *old.size)).tobytes()
    page.changed(lambda: page.click("[data-do=back]"))
    WebDriverWait(page.driver, LIMIT, 0.05).until(lambda _: page.pictures() == before)
    resize(page.driver, 390, 844)
    page.click('.card[data-number="4"] [data-act=edit]')
    page.click("#edit-part")
    canvas = page.shown("#inpaint-mask")
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", canvas)
    ActionChains(page.driver, duration=50).click_and_hold(canvas).move_by_offset(40, 10).release().perform()
    painted = (
        "[...document.querySelector('#inpaint-mask').getContext('2d').getImageData(0, 0, 999, 999).data].some(Boolean)"
    )
    page.until(painted)
    page.click("#inpaint [data-mask=clear]")
    page.until(f"!{painted}")
    assert page.driver.execute_script("return document.querySelector('#inpaint').scrollWidth") <= 390
    page.click("#inpaint .close")


def test_a_drawing_is_changed_by_hand_and_taken_back(page: Page, home: Path) -> None:
    """Layers are scaled, moved, recoloured, hidden and given another part of the cast, and all of it is one version."""
    run = page.desk.home / page.desk.ask("GET", "api/runs").json[0]["name"]
    svg = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 384 256">
        <defs><g id="mi-head-glad"><circle r="30" fill="#fc0"/></g></defs>
        <rect width="384" height="256" fill="#88aacc"/>
        <g id="f-mila"><use href="#mi-head-glad" x="100" y="100"/></g>
        <g id="the-kettle"><rect x="200" y="150" width="60" height="40" fill="#c03030"/></g></svg>"""
    (run / "cast.svg").write_text(svg.replace("glad", "sad").replace("#fc0", "#0cf"), "utf-8")
    picture = page.desk.post("drawing", frame=1, svg=svg).json["sha256"]
    refused = page.desk.post("drawing", frame=1, svg="<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>")
    assert (refused.status, "frame 1 cannot be used" in refused.json["error"]) == (400, True)
    edits = [{"op": "picture", "frame": 1, "picture": picture}]
    page.changed(lambda: page.desk.post("edit", base=page.desk.page()["version"], edits=edits))

    page.click("[data-focus=edit1]")
    page.click("#edit-drawing")
    page.shown("#drawing-layers button")
    assert [item.text for item in page.all("#drawing-layers button")] == ["the kettle", "a shape", "mila", "a shape"]
    assert not page("#drawing-words").is_displayed()  # `block` draws no change that is asked for in words
    page.click("[data-drawing=larger]")
    page("#drawing-picture").send_keys(Keys.ARROW_RIGHT * 3, Keys.SHIFT, Keys.ARROW_UP)
    page.driver.execute_script("document.querySelector('#drawing [name=hue]').value = '#00aa44'")
    page.click("[data-drawing=recolour]")
    page.click("#drawing-layers li:nth-child(3) button")
    page.click("[data-drawing=swap]")
    page.click("#drawing-layers li:last-child button")
    page.click("[data-drawing=hide]")
    assert page("#drawing-layers li:last-child button").text == "a shape (hidden)"
    page.click("[data-drawing=undo]")
    assert page("#drawing-layers li:last-child button").text == "a shape"
    assert faults(page) == []
    page.changed(lambda: page.click("#drawing button[value=save]"))
    drawing = (run / "panels" / f"{page.pictures()[0]}.svg").read_text("utf-8")
    assert 'transform="translate(260 189) scale(1.111) translate(-230 -190)"' in drawing
    assert all(part in drawing for part in ("#00aa44", "mi-head-sad", "#88aacc"))
    assert "display" not in drawing
    page.changed(lambda: page.click("[data-do=back]"))
    assert page.pictures()[0] == picture

    # A run may be somebody else's: what stands in its folder is read again before a browser is given it.
    (run / "panels" / f"{picture}.svg").write_text(svg.replace("<g id=", "<script>1</script><g id=", 1), "utf-8")
    assert "script" in page.desk.ask("GET", f"drawings/{picture}").json["error"]
    page.click("[data-focus=edit1]")
    page.click("#edit-drawing")
    assert "lost or cannot be used" in page.shown("#edit .problem").text
    page.click("#edit .close")
    (run / "panels" / f"{picture}.svg").write_text(svg, "utf-8")


def test_a_locked_frame_keeps_its_picture_and_says_so(page: Page) -> None:
    before = page.pictures()
    page.changed(lambda: page.click('.card[data-number="2"] [data-act=lock]'))
    page.click('.card[data-number="2"] [data-act=edit]')
    page.fill("#edit [name=seed]", "77")
    page.fill("#edit [name=notes]", "Typed.")
    page.click("#edit [value=save]")
    assert "locked" in page.shown("#edit .problem").text
    assert page("#edit [name=notes]").get_property("value") == "Typed."
    page.fill("#edit [name=seed]", str(page.desk.page()["board"]["cards"][1]["seed"]))
    page.fill("#edit [name=prompt]", "A mouse dances.")
    page.changed(lambda: page.click("#edit [value=save]"))
    assert page.pictures() == before
    assert "its picture stays" in page("#status").text
    assert "Read again" not in page("#status").text
    page.changed(lambda: page.click('.card[data-number="2"] [data-act=lock]'))


def test_a_panel_is_added_split_and_removed(page: Page) -> None:
    before = page.captions()
    last = len(before)  # behind it stands no bridge whose scenes would part
    page.click(f'.card[data-number="{last}"] [data-act=edit]')
    page.fill("#edit [name=notes]", "Typed before.")
    page.click("#edit [data-edit=add]")
    page.fill("#more [name=prompt]", "The mouse looks at the moon. The mouse sleeps.")
    page.changed(lambda: page.click("#more [type=submit]"))
    page.gone("#edit")
    assert len(page.captions()) == len(before) + 1
    assert "moon" in page.captions()[last]
    assert "Typed before." in page(f'.card[data-number="{last}"]').text  # what was typed is one step with it
    page.click(f'.card[data-number="{last + 1}"] [data-act=edit]')
    page.click("#edit [data-edit=split]")
    halves = [page(f"#more [name={name}]").get_property("value") for name in ("first", "prompt")]
    assert halves == ["The mouse looks at the moon.", "The mouse sleeps."]
    page.changed(lambda: page.click("#more [type=submit]"))
    assert len(page.captions()) == len(before) + 2
    prompts = [card["prompt"] for card in page.desk.page()["board"]["cards"]]
    assert prompts[last:] == halves
    for _ in range(2):
        page.click(f'.card[data-number="{last + 1}"] [data-act=edit]')
        page.changed(lambda: page.click("#edit [data-edit=remove]"))
    page.changed(lambda: page.click("[data-do=back]"))
    page.changed(lambda: page.click("[data-do=forth]"))
    assert len(page.captions()) == len(before)
    page.click("#add-frame")
    page("#more [name=at]").send_keys(Keys.HOME)
    page.fill("#more [name=prompt]", "A forest by night.")
    page.changed(lambda: page.click("#more [type=submit]"))
    assert page.captions() == ["A forest by night.", *before]
    page.changed(lambda: page.click("[data-do=back]"))


def test_the_story_beside_the_board_leads_to_the_frames_as_they_are_counted(page: Page) -> None:
    cards, story = (page.desk.page()["board"][name] for name in ("cards", "story"))
    behind = next(card for card in cards if card["kind"] == "scene" and card["scene"] != card["number"])
    told = next(at for at, sentence in enumerate(story, 1) if sentence["scene"] == behind["scene"])
    link = page(f"#told-list p:nth-of-type({told}) a.where")
    assert link.text == str(behind["number"])
    assert f"{behind['number']} · scene {behind['scene']}" in page(f'.card[data-number="{behind["number"]}"]').text
    link.click()
    page.until("document.querySelector('.card.shown').dataset.number === arguments[0]", str(behind["number"]))
    assert "Frame" in page("#weakest .around").text
    assert "Scene" not in page("#weakest .around").text


def test_a_sentence_that_is_not_drawn_is_told_by_a_frame_of_its_own(browser: Chrome, tmp_path: Path) -> None:
    resize(browser, 1440, 1000)
    lost = '"On purpose."'
    told = f"""Ravi spilled coffee on his laptop before the big meeting. His colleague Ana laughed, but then she gave
him her own. Ravi showed the slides and everybody clapped. {lost} A pigeon stole her sandwich. They both laughed."""
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)
        page.fill("#story [name=text]", told)
        page.click("#story button[type=submit]")
        page.shown("#draft-cost")
        assert "Who is in it: Ravi (man)" in page("#draft-cast").text
        assert page("#draft-story .unread").text.split("\n")[-1].removeprefix("not drawn ") == lost
        page.click("#draw")
        page.click("[data-choice=reject]")
        page.ready()
        page.idle()
        page.click("#told-list button.where")
        assert page("#more [name=caption]").get_property("value") == lost
        page.changed(lambda: page.click("#more [type=submit]"))
        page.gone("#told-list .unread")
        at = page.captions().index(lost) + 1
        (link,) = [line for line in page.all("#told-list p") if lost in line.text]
        assert link.find_element(By.CSS_SELECTOR, "a").text == str(at)
        assert "6 drawn" in page("#told-list").text


def test_the_cast_is_changed_and_the_versions_are_listed(page: Page) -> None:
    page.click("[data-do=cast]")
    page.fill("#cast-list .member:first-child textarea", "an old lion with a white mane")
    page.changed(lambda: page.click("#cast-list .member:first-child .save"))
    page.click("[data-do=history]")
    page.shown("#history-list .version")
    rows = page.all("#history-list .version")
    assert len(rows) >= 2
    page.changed(lambda: page.click("#history-list .version:first-child > button"))
    assert page.desk.page()["version"] == "001"
    page.changed(lambda: page.click("[data-do=forth]"))


def test_a_sheet_holds_age_colour_and_a_picture_and_is_undone(page: Page, tmp_path: Path) -> None:
    before = page.desk.page()["board"]["cast"][0]
    first = f"#cast-list .member[data-name={json.dumps(before['name'])}]"
    lion, text = tmp_path / "lion.png", tmp_path / "lion.txt"
    Image.radial_gradient("L").resize((300, 200)).convert("RGB").save(lion)
    text.write_text("a lion")
    page.click("[data-do=cast]")
    page.shown(f"{first} [type=file]").send_keys(str(text))
    assert "not a picture" in page.shown("#cast .problem").text
    page(f"{first} [type=file]").send_keys(str(lion))
    page.until("document.querySelector(arguments[0] + ' .reference img')?.complete", first)
    page.fill(f"{first} [name=age]", "old")
    page.fill(f"{first} [name=color]", "red")
    page.fill(f"{first} [name=hair]", "long white")
    assert faults(page) == []
    page.changed(lambda: page.click(f"{first} .save"))
    page.gone("#cast")
    assert "words alone" in page("#status").text
    after = page.desk.page()["board"]
    assert [after["cast"][0][name] for name in ("age", "color", "hair")] == ["old", "red", "long white"]
    assert "long white hair" in after["cast"][0]["appearance"]
    assert page.desk.ask("GET", f"panels/{after['cast'][0]['reference']}").status == 200
    shown = [card["prompt"] for card in after["cards"] if before["name"] in card["characters"]]
    assert all("old red" in prompt for prompt in shown)
    page.click("[data-do=cast]")
    page.click(f"{first} .reference button")
    page.changed(lambda: page.click(f"{first} .save"))
    assert page.desk.page()["board"]["cast"][0]["reference"] == ""
    page.changed(lambda: page.click("[data-do=back]"))
    page.changed(lambda: page.click("[data-do=back]"))
    assert page.desk.page()["board"]["cast"][0] == before


def test_a_character_is_added_made_one_and_taken_off_at_the_desk(page: Page) -> None:
    before = page.desk.page()["board"]["cast"]
    page.click("[data-do=cast]")
    page.fill("#cast-new [name=name]", "Mia")
    page.fill("#cast-new [name=kind]", "girl")
    page("#cast-new [name=kind]").send_keys(Keys.ESCAPE)
    page.gone("#cast")
    page.click("[data-do=cast]")
    assert page("#cast-new [name=name]").get_property("value") == "Mia"  # typed, and not lost
    assert faults(page) == []
    page.changed(lambda: page.click("#cast-new [type=submit]"))
    assert [one["name"] for one in page.desk.page()["board"]["cast"]][-1] == "Mia"
    page.click('.card[data-number="1"] [data-act=edit]')
    page.click("#edit [name=who][value=Mia]")
    page.fill("#edit [name=prompt]", "The lion sleeps and Mia laughs.")
    page.changed(lambda: page.click("#edit [value=save]"))
    page.click("[data-do=cast]")
    mia = "#cast-list .member[data-name=Mia]"
    page.changed(lambda: page.click(f"{mia} [data-cast=merge]"))
    now = page.desk.page()["board"]
    assert [one["name"] for one in now["cast"]] == [one["name"] for one in before]
    assert "Mia" not in now["cards"][0]["prompt"]
    page.changed(lambda: page.click("[data-do=back]"))
    page.click("[data-do=cast]")
    page.changed(lambda: page.click(f"{mia} [data-cast=remove]"))
    assert "may still name Mia" in page("#status").text
    assert page.desk.page()["board"]["cards"][0]["prompt"] == "The lion sleeps and Mia laughs."
    for _ in range(3):
        page.changed(lambda: page.click("[data-do=back]"))
    assert page.desk.page()["board"]["cast"] == before


def test_the_bridge_is_taken_out_proposed_again_and_put_in(page: Page) -> None:
    page.changed(
        lambda: page.driver.execute_script(
            "[...document.querySelectorAll('#weakest button')].find(b => b.textContent.startsWith('Take')).click()"
        )
    )
    assert page.all("#cards .card.bridge") == []
    page.driver.execute_script(
        "[...document.querySelectorAll('#weakest button')].find(b => b.textContent.startsWith('Draw')).click()"
    )
    page.shown("#proposals")
    page.idle()
    page.changed(lambda: page.click("#proposals li:first-child button"))
    assert len(page.all("#cards .card.bridge")) == 1


def test_what_could_be_drawn_is_asked_for_tried_and_taken(page: Page) -> None:
    ask = "[...document.querySelectorAll('#weakest button')].find(b => b.textContent.startsWith('Ask what')).click()"
    page.driver.execute_script(ask)
    offered = page.shown("#moves")
    page.idle()
    assert "free" in offered.text
    kinds = [item.text for item in page.all("#moves li b")]
    assert any("drawn anew" in kind for kind in kinds)
    assert not any("cene" in kind for kind in kinds), "frames are counted, as the cards count them"
    assert faults(page) == []
    at, before = next(at for at, kind in enumerate(kinds, 1) if "drawn anew" in kind), page.pictures()
    page.click(f"#moves li:nth-child({at}) button")
    page.shown("#proposals")
    page.idle()
    assert page.pictures() == before, "nothing is on the board yet"
    assert "Take drawing 1" in page("#proposals").text
    shown = "return [...document.querySelectorAll('#proposals img')].map((item) => item.src.match(/[0-9a-f]{64}/)[0])"
    new = next(at for at, sha256 in enumerate(page.driver.execute_script(shown), 1) if sha256 not in before)
    page.changed(lambda: page.click(f"#proposals li:nth-child({new}) button"))
    after = page.pictures()
    assert len(after) == len(before)
    assert sum(one != two for one, two in zip(before, after, strict=True)) == 1
    page.changed(lambda: page.click("[data-do=back]"))
    assert page.pictures() == before


def test_what_is_typed_outlives_esc_reload_and_another_address(page: Page) -> None:
    notes = "document.querySelector('#edit [name=notes]').value"
    page.click('.card[data-number="2"] [data-act=edit]')
    page.fill("#edit [name=notes]", "Not saved yet.")
    page("#edit [name=notes]").send_keys(Keys.ESCAPE)
    page.gone("#edit")
    page.click('.card[data-number="2"] [data-act=edit]')
    assert page.until(notes) == "Not saved yet."
    assert "not saved" in page.shown("#edit .typed").text
    page.go(f"#/board/{quote(page.board)}/frame/2/edit")
    page.shown("#edit")
    assert page.until(notes) == "Not saved yet."
    page.click("#edit .close")
    page.click('.card[data-number="1"] [data-act=edit]')
    assert not page("#edit .typed").is_displayed(), "it is the other frame's"
    page.click("#edit .close")
    page.click('.card[data-number="2"] [data-act=edit]')
    page.changed(lambda: page.click("#edit [value=save]"))
    assert "Not saved yet." in page('.card[data-number="2"]').text
    page.click('.card[data-number="2"] [data-act=edit]')
    assert not page("#edit .typed").is_displayed()
    page.fill("#edit [name=notes]", "Second thoughts.")
    page.click("#edit .close")
    page.click('.card[data-number="2"] [data-act=edit]')
    page.click("#edit .typed button")
    assert page.until(notes) == "Not saved yet."
    page.click("#edit .close")
    page.changed(lambda: page.click("[data-do=back]"))


def test_a_story_that_cannot_be_drawn_stays_in_its_form_over_a_crash(browser: Chrome, tmp_path: Path) -> None:
    resize(browser, 1440, 1000)
    told = "['title', 'text', 'style'].map(n => document.querySelector('#story').elements[n].value).join('|')"
    sketched = tuple(word if word != "block" else "sketch" for word in WORDS)
    with DeskProcess(tmp_path, *sketched) as desk:
        page = Page(browser, desk)
        page.fill("#story [name=title]", "Crows")
        page.fill("#story [name=text]", "A crow drank. A fox came. The crow flew away.")
        page.click("#how summary")
        page.fill("#story [name=style]", "watercolor")
        page.click("#story button[type=submit]")
        page.click("#draw")
        page.until("document.querySelector('#alert').textContent.includes('style')")
        page.shown("#story")
        typed = "Crows|A crow drank. A fox came. The crow flew away.|watercolor"
        page.until(f"{told} === arguments[0]", typed)
        page.fill("#story [name=title]", "Crows!")
        kept = desk.home / "typed.json"
        WebDriverWait(browser, LIMIT, 0.05).until(lambda _: kept.is_file() and "Crows!" in kept.read_text("utf-8"))
        desk.end(signal.SIGKILL)
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)
        page.until(f"{told} === arguments[0]", typed.replace("Crows|", "Crows!|"))


def test_the_later_of_two_tabs_is_told_and_loses_nothing(page: Page) -> None:
    page.click('.card[data-number="1"] [data-act=edit]')
    page.fill("#edit [name=notes]", "Mine.")
    version = page.desk.page()["version"]
    done = page.desk.done("edit", base=version, edits=[{"op": "change", "frame": 1, "dialogue": "Theirs."}])
    assert done["failed"] == ""
    page.driver.execute_script("document.querySelector('#edit .problem').hidden = true")
    old = page.desk.post("edit", base=version, edits=[{"op": "change", "frame": 1, "notes": "Lost?"}])
    assert (old.status, old.json["stale"]) == (409, True)
    page.idle()
    page.changed(lambda: page.click("#edit [value=save]"))
    card = page('.card[data-number="1"]').text
    assert "Mine." in card
    assert "Theirs." in card

    # The same field: what the other tab wrote is told before it is written over.
    page.click('.card[data-number="1"] [data-act=edit]')
    page.fill("#edit [name=dialogue]", "Mine too.")
    version = page.desk.page()["version"]
    page.desk.done("edit", base=version, edits=[{"op": "change", "frame": 1, "dialogue": "Theirs again."}])
    page.until("document.querySelector('.card[data-number=\"1\"]').textContent.includes('Theirs again.')")
    page.idle()
    page.click("#edit [value=save]")
    assert "dialogue is “Theirs again.” now" in page.shown("#edit .problem").text
    page.changed(lambda: page.click("#edit [value=save]"))
    assert "Mine too." in page('.card[data-number="1"]').text


def test_no_serious_fault_of_accessibility(page: Page) -> None:
    assert faults(page) == []
    page.click('.card[data-number="1"] [data-act=edit]')
    assert faults(page) == []
    page.click("#edit .close")
    resize(page.driver, 390, 844, dark=True)
    assert faults(page) == []


DIALOGS = {"#takes": '.card[data-number="1"] [data-act=takes]', "#edit": '.card[data-number="1"] [data-act=edit]'}
DIALOGS |= {f"#{name}": f"[data-do={name}]" for name in ("cast", "history", "export")} | {"#more": "#add-frame"}


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (390, False), (390, True)])
def test_no_dialog_and_no_error_has_a_serious_fault_or_is_wider_than_the_page(
    page: Page, width: int, dark: bool
) -> None:
    resize(page.driver, width, 844, dark=dark)
    for dialog, opener in DIALOGS.items():
        page.click(opener)
        page.shown(dialog)
        page.driver.execute_script("document.querySelector(arguments[0] + ' .problem').hidden = false", dialog)
        page.driver.execute_script("document.querySelector(arguments[0] + ' .problem').textContent = 'No.'", dialog)
        assert (dialog, faults(page)) == (dialog, [])
        assert page.driver.execute_script(f"return document.querySelector('{dialog}').scrollWidth") <= width
        page.click(f"{dialog} .close")
        page.gone(dialog)
    page.driver.execute_script("document.querySelector('#agree').showModal()")
    assert faults(page) == []
    page.driver.execute_script("document.querySelector('#agree').close()")
    page.driver.execute_async_script(
        "import('./static/desk_parts.js').then((parts) => { parts.alarm('It did not work.'); arguments[0](); })"
    )
    assert page.shown("#alert").text == "It did not work."
    assert faults(page) == []
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_everything_in_its_width(page: Page, dark: bool) -> None:
    resize(page.driver, 390, 844, dark=dark)
    for selector in ("#board", "#weakest", "#tools"):
        assert page.shown(selector).rect["width"] <= 390
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= 390
    page.click('.card[data-number="1"] [data-act=edit]')
    assert page.driver.execute_script("return document.querySelector('#edit').scrollWidth") <= 390
    page.click("#edit .close")


def test_frames_stand_on_their_cards_as_they_are_drawn(browser: Chrome, tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS, SLOW="0.2") as desk:
        page = Page(browser, desk)
        page.fill("#story [name=text]", "A fox saw a crow. The fox praised the crow. The crow sang. The fox ran away.")
        page.click("#story button[type=submit]")
        page.click("#draw")
        page.until("document.querySelector('#cards img') && document.querySelector('#cards .blank')")
        page.until("document.querySelector('#cards img').naturalWidth > 0")
        assert not page.desk.page()["board"]["finished"]
        page.click("[data-do=stop]")
        page.shown("#stopped")
        assert page.all("#cards img")


def test_a_text_file_is_opened_in_its_encoding_and_names_are_ordered_as_told(page: Page, tmp_path: Path) -> None:
    page.driver.refresh()
    page.click("#tools a[href='#/']")
    (tmp_path / "wide.txt").write_bytes("Zoë ran. It rained.".encode("utf-16"))
    (tmp_path / "old.txt").write_bytes("Zoë ran. It rained.".encode("cp1252"))
    page("#story [name=file]").send_keys(str(tmp_path / "wide.txt"))
    page.until("document.querySelector('#story').elements.text.value === 'Zoë ran. It rained.'")
    page("#story [name=file]").send_keys(str(tmp_path / "old.txt"))
    page.until("document.querySelector('#alert').textContent.includes('old.txt is a text in an old encoding')")
    Image.new("RGB", (9, 9)).save(tmp_path / "drawn.png")
    (tmp_path / "named.txt").write_bytes((tmp_path / "drawn.png").read_bytes())
    (tmp_path / "paged.txt").write_bytes(b"%PDF-1.7 ...")
    (tmp_path / "packed.txt").write_bytes(b"PK\x03\x04....")
    (tmp_path / "odd.txt").write_bytes(b"\x00\x01\x02 odd")
    kinds = {"drawn.png": "a picture", "named.txt": "a picture", "paged.txt": "a PDF", "packed.txt": "an archive"}
    for name, kind in (kinds | {"odd.txt": "a file of a program"}).items():
        page("#story [name=file]").send_keys(str(tmp_path / name))
        page.until("document.querySelector('#alert').textContent.includes(arguments[0])", f"{name} is {kind}")
        page.until("document.querySelector('#story [name=file]').value === ''")
        assert ("drawn already" in page("#alert").text) is (kind in ("a picture", "a PDF"))
        assert page("#story [name=text]").get_property("value") == "Zoë ran. It rained."
    page.click("#bring summary")
    for at in (1, 2, 3):
        image = Image.linear_gradient("L").resize((90, 60)).convert("RGB")
        image.paste("red", (10 * at, 5, 60, 40))
        image.save(tmp_path / f"{at}_{4 - at}.tif")
    page("#import [name=files]").send_keys("\n".join(str(tmp_path / f"{at}_{4 - at}.tif") for at in (1, 2, 3)))
    page.fill("#import [name=title]", "Two orders")
    page.fill("#import [name=text]", "A fox saw a crow. The fox praised the crow. The crow sang.")
    page.click("#import button")
    page.until("document.querySelector('#alert').textContent.includes('two orders')")
    page.fill("#import [name=order]", "second")
    page.click("#import button")
    page.shown("#review")
    page.click("[data-choice=reject]")
    page.idle()


def test_a_board_is_imported_and_a_stopped_run_goes_on(page: Page, tmp_path: Path) -> None:
    for at, colour in enumerate(("red", "green"), 1):
        image = Image.linear_gradient("L").resize((64, 96)).convert("RGB")
        image.paste(colour, (10 * at, 5, 60, 40))
        image.save(tmp_path / f"Shot {at}.png")
    (tmp_path / "Shot 3.HEIC").write_bytes((Path(__file__).parents[1] / "data" / "photo.heic").read_bytes())
    page.click("#tools a[href='#/']")
    page.click("#bring summary")
    assert faults(page) == []
    page("#import [name=files]").send_keys("\n".join(map(str, sorted(tmp_path.glob("Shot *")))))
    page.fill("#import [name=title]", "Three shots")
    page.fill("#import [name=text]", "A fox saw a crow. The fox praised the crow. The crow sang.")
    page.click("#import button")
    page.shown("#review")
    page.desk.post("stop")
    page.click("[data-do=go-on]")
    page.shown("#review")
    page.click("[data-choice=reject]")
    page.ready()
    page.idle()
    assert len(page.all("#cards .card")) == 3
    page.click("#tools a[href='#/']")
    page.shown("#runs-list a.link")
    page.driver.execute_script(
        "[...document.querySelectorAll('#runs-list a.link')].find(b => !/^(Three|Two)/.test(b.textContent)).click()"
    )
    page.shown("#cards .card.bridge")


def test_an_export_is_downloaded_and_nothing_is_lost_by_a_kill(page: Page, home: Path, tmp_path: Path) -> None:
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    page.click("[data-do=export]")
    Select(page("#export [name=layout]")).select_by_value("list")
    Select(page("#export [name=turn]")).select_by_value("landscape")
    page.fill("#export [name=date]", "1 May 2031")
    assert not page("#export [name=author]").is_displayed()
    page.click("#export [value=save]")
    WebDriverWait(page.driver, LIMIT, 0.1).until(lambda _: list(tmp_path.glob("*.pdf")))
    (made,) = tmp_path.glob("*.pdf")
    box = pypdf.PdfReader(made).pages[0].mediabox
    assert box.width > box.height
    assert made.stem == "The_Lion_Mouse", "the title, as a file is called"
    text = " ".join(sheet.extract_text() for sheet in pypdf.PdfReader(made).pages)
    assert "Mine." in text
    assert "1 May 2031" in text
    before = page.desk.page()["board"]
    assert page.desk.end(signal.SIGKILL) == -signal.SIGKILL
    page.until("document.body.dataset.ready === 'lost'")
    (run,) = [
        path.parent
        for path in (home / "home").glob("*/run.json")
        if not path.parent.name.startswith(("Three_shots", "Two_orders"))
    ]
    with DeskProcess(home, run) as again:
        assert again.page()["board"] == before
        reopened = Page(page.driver, again)
        reopened.shown("#cards .card")
        assert reopened("h1").text == TITLE


def test_reload_and_the_browser_s_buttons_lose_nothing_at_any_step(browser: Chrome, tmp_path: Path) -> None:
    resize(browser, 1440, 1000)
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)

        def at_every_turn(selector: str, seen: str) -> None:
            for turn in ("reload", "back and forth"):
                if turn == "reload":
                    browser.refresh()
                else:
                    browser.get("about:blank")
                    browser.back()
                page.shown(selector)
                page.until(f"{seen} !== undefined")
                page.until(f"{seen} === arguments[0]", known)
                assert not page("#alert").is_displayed(), turn

        page.fill("#story [name=title]", TITLE)
        page.fill("#story [name=text]", STORY)
        page.fill("#story [name=panels]", "5")
        typed = "['title', 'text', 'panels'].map(n => document.querySelector('#story').elements[n].value).join()"
        known = page.until(typed)
        at_every_turn("#story", typed)
        page.click("#story button[type=submit]")
        read = "document.querySelectorAll('#draft-panels li').length"
        page.shown("#draft")
        known = page.until(read)
        assert known == 5
        at_every_turn("#draft", read)
        page.click("#how summary")
        page.fill("#story [name=style]", "ink")
        page.gone("#draft")
        browser.refresh()
        page.idle()
        assert not page("#draft").is_displayed()  # it was read in another style
        page.click("#story button[type=submit]")
        page.click("#draw")
        asked = "document.querySelectorAll('#review .takes li').length"
        page.shown("#review")
        known = page.until(asked)
        at_every_turn("#review", asked)
        page.click("#review .takes li:nth-child(2) input")
        page.click("[data-choice=accept]")
        page.ready()
        page.idle()
        cards = "[...document.querySelectorAll('#cards img')].map(i => i.getAttribute('src')).join()"
        known = page.until(cards)
        at_every_turn("#cards .card", cards)
        page.click("#tools a[href='#/']")
        page.shown("#runs-list a.link")
        assert page("#story [name=text]").get_attribute("value") == ""  # it was drawn


def test_a_long_story_tells_how_far_its_reading_is_and_stops(browser: Chrome, tmp_path: Path) -> None:
    resize(browser, 1440, 1000)
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)
        text = (STORY + "\n\n") * 30  # read in seconds, of which a click takes few
        page.shown("#story")
        browser.execute_script("document.querySelector('#story [name=text]').value = arguments[0]", text)
        page.click("#story button[type=submit]")
        page.until("document.querySelector('#stages').textContent.includes('words.')")
        page.click("[data-do=stop]")
        page.until("document.querySelector('#alert').textContent.startsWith('Stopped.')", seconds=_READING)
        page.shown("#story")
        assert page("#story [name=text]").get_attribute("value").strip() == text.strip()
        assert not page("#draft").is_displayed()


def test_the_whole_walk_from_a_pasted_story_to_a_pdf_and_past_a_kill(browser: Chrome, tmp_path: Path) -> None:
    resize(browser, 1440, 1000)
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)
        told_and_drawn(page)
        page.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
        captions, parted = page.captions(), bridges_on_the_way(page)
        drag_first_to_third(page)
        assert page.captions().index(captions[0]) == 2 - parted
        page.click('.card[data-number="1"] [data-act=edit]')
        page.fill("#edit [name=prompt]", "The mouse dances by night.")
        page.fill("#edit [name=notes]", "Held for long.")
        pictures = page.pictures()
        page.changed(lambda: page.click("#edit [value=save]"))
        redrawn = page.pictures()
        assert redrawn[0] not in pictures
        page.click('.card[data-number="2"] [data-act=takes]')
        page.click("#takes [value=draw]")
        page.until("document.querySelectorAll('#takes-list li').length === 4")
        page.changed(lambda: page.click("#takes-list li:nth-child(2) button"))
        assert page.pictures()[1] != redrawn[1]
        page.changed(lambda: page.click("[data-do=back]"))
        WebDriverWait(page.driver, LIMIT, 0.05).until(lambda _: page.pictures() == redrawn)
        page.click("[data-do=export]")
        page.click("#export [value=save]")
        WebDriverWait(browser, LIMIT, 0.1).until(lambda _: list(tmp_path.glob("*.pdf")))
        (made,) = tmp_path.glob("*.pdf")
        assert "Held for long." in " ".join(sheet.extract_text() for sheet in pypdf.PdfReader(made).pages)
        before, (run,) = desk.page(), [path.parent for path in desk.home.glob("*/run.json")]
        page.click('.card[data-number="3"] [data-act=edit]')
        page.fill("#edit [name=prompt]", "The lion falls into the net.")
        page.click(
            "#edit [value=save]"
        )  # the kill comes in the middle of this change, which is there whole or not at all
        assert desk.end(signal.SIGKILL) == -signal.SIGKILL
    with DeskProcess(tmp_path, run) as again:
        after = again.page()
        kept = [card["prompt"] for card in after["board"]["cards"]]
        known = [card["prompt"] for card in before["board"]["cards"]]
        assert [*kept[:2], *kept[3:]] == [*known[:2], *known[3:]]
        assert kept[2] in (known[2], "The lion falls into the net.")
        reopened = Page(browser, again)
        reopened.shown("#cards .card")
        reopened.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
        reopened.changed(lambda: reopened.click("[data-do=back]"))  # the history is there, too
        reopened.changed(lambda: reopened.click("[data-do=forth]"))
        assert [card["prompt"] for card in again.page()["board"]["cards"]] == kept


def test_a_chat_window_is_asked_by_copy_and_paste(browser: Chrome, tmp_path: Path) -> None:
    """`paste`: the prompt stands on the page, a reply that cannot be used is told, and Stop ends the wait."""
    folder = str(tmp_path / "pasted")
    with DeskProcess(tmp_path, *WORDS, "--planner", "gemma-st:paste", KATHA_PASTE=folder) as desk:
        page = Page(browser, desk)
        page.fill("#story [name=text]", "A fox saw a crow with a piece of cheese. She praised its voice. It sang.")
        page.click("#story button[type=submit]")
        page.shown("#exchange")
        prompt = page("#exchange [name=prompt]").get_attribute("value") or ""
        assert "A fox saw a crow" in prompt
        page.click("#exchange-copy")
        page.until("document.querySelector('#exchange-copy').textContent === 'Copied'")
        assert faults(page) == []
        page.fill("#exchange [name=reply]", "Sorry, I only talk about cooking.")
        page.click("#exchange button[type=submit]")
        assert "it holds no JSON object" in page.shown("#exchange .problem").text
        assert page("#exchange [name=reply]").get_attribute("value") == ""
        assert page.shown("#spent").text == "1 exchange by hand."
        page.click("#exchange-whole summary")
        assert page.shown("#exchange [name=whole]").get_attribute("value") == prompt, "for a chat that was closed"
        page.click("#exchange-copy-whole")
        page.until("document.querySelector('#exchange-copy-whole').textContent === 'Copied'")
        assert faults(page) == []
        resize(browser, 390, 844)
        assert page.until("document.documentElement.scrollWidth <= 390")
        resize(browser, 1440, 1000)
        page.click("#progress [data-do=stop]")
        page.gone("#exchange")
        page.idle()
        assert "Stopped" in page("#status").text or "Stopped" in page("#alert").text
        assert "A fox saw a crow" in (page("#story [name=text]").get_attribute("value") or "")


def test_what_is_typed_after_the_desk_is_gone_is_given_back(browser: Chrome, tmp_path: Path) -> None:
    resize(browser, 1440, 700)
    sent = "JSON.stringify(Object.keys(localStorage).filter(k => k.startsWith('katha desk')))"
    with DeskProcess(tmp_path, *WORDS[:-4], "--mode", "base", "--size", "384x256") as desk:
        desk.post("draw", story={"title": "Crow", "text": "A crow drank. A fox came. The crow flew away.", "panels": 3})
        assert desk.until("idle")["failed"] == ""
        page = Page(browser, desk)
        page.go("#/board/Crow/frame/2/edit")
        page.ready()
        page.fill("#edit [name=notes]", "Kept by the desk.")
        page.until(f"{sent} === '[]'")
        assert desk.end(signal.SIGKILL) == -signal.SIGKILL
        page.until("document.body.dataset.ready === 'lost'")
        page.fill("#edit [name=dialogue]", "Kept by the browser.")
        page.click("#edit [value=save]")
        said = page.shown("#edit .row > .problem")
        page.until("document.querySelector('#edit .problem').textContent.includes('kept in this browser')")
        assert "Failed to fetch" not in page.driver.execute_script("return document.body.innerText")
        within = "(({top, bottom}) => top >= 0 && bottom <= innerHeight)(arguments[0].getBoundingClientRect())"
        assert page.until(within, said), "beside Save, in sight"
        assert page("#edit [value=save]").get_property("disabled") is False
    with DeskProcess(tmp_path, *WORDS) as again:
        assert again.port == desk.port
        page.until("document.querySelector('#alert').textContent.includes('closed')")  # this is the old one's page
        page = Page(browser, again)
        page.go("#/board/Crow/frame/2/edit")
        page.ready()
        told = "['notes', 'dialogue'].map(n => document.querySelector('#edit form').elements[n].value).join('|')"
        page.until(f"{told} === 'Kept by the desk.|Kept by the browser.'")
        assert "not saved" in page.shown("#edit .typed").text
        page.until(f"{sent} === '[]'")
        assert "Kept by the browser." in (again.home / "typed.json").read_text("utf-8")
        page.changed(lambda: page.click("#edit [value=save]"))
        assert "Kept by the browser." in page('.card[data-number="2"]').text
