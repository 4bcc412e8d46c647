"""Several stories on one desk, in a real Chromium: addresses, leaving one that waits, and the list of boards."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, resize
from desk import DeskProcess
from desk_page import LIMIT, Page, faults
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.support.ui import WebDriverWait

pytestmark = pytest.mark.browser
WORDS = ("--renderer", "block", "--judge", "pixel", "--seeds", "42", "--mode", "full_always", "--size", "96x64")
FOX = "A fox saw a crow with a cheese. The fox praised the crow. The crow sang. The fox ate the cheese."
DOG = "A dog found a bone. The dog saw another dog in the river. He barked. The bone fell into the river."


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        resize(driver, 1440, 1000)
        yield driver


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeskProcess]:
    """A desk with two finished boards."""
    with DeskProcess(tmp_path_factory.mktemp("desk"), *WORDS) as made:
        for title, text in (("Fox", FOX), ("Dog", DOG)):
            assert made.post("draw", story={"title": title, "text": text}).status == 200
            made.until("asks")
            assert made.post("choose", action="reject").status == 200
            assert made.until("idle")["failed"] == ""
        yield made


@pytest.fixture
def page(browser: Chrome, desk: DeskProcess) -> Page:
    """The list of boards, freshly opened."""
    resize(browser, 1440, 1000)
    page = Page(browser, desk)
    page.go("#/")
    page.shown("#runs-list li")
    return page


def place(page: Page) -> str:
    return str(page.driver.execute_script("return location.hash"))


def begin(page: Page, title: str, text: str) -> None:
    """Read a story and begin to draw it."""
    page.fill("#story [name=title]", title)
    page.fill("#story [name=text]", text)
    page.click("#story button[type=submit]")
    page.shown("#draft")
    page.click("#draw")
    page.until(f"location.hash === '#/board/{title}'")


def test_one_story_waits_while_another_is_begun_and_drawn(browser: Chrome, tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)
        begin(page, "Fox", FOX)
        page.shown("#review")
        assert "when you have chosen" in page.shown("#why").text
        assert "when you have chosen" in str(page("#tools [data-do=cast]").get_attribute("title"))
        page.click("#tools a[href='#/']")
        page.shown("#story")
        assert page("#story [name=text]").get_property("value") == ""
        assert "waits for your choice" in page.shown("#others").text
        assert faults(page) == []
        begin(page, "Dog", DOG)
        page.shown("#review")
        browser.refresh()
        page.shown("#review")
        assert place(page) == "#/board/Dog"
        assert "Fox" in page.shown("#others").text
        page.click("#others a")
        page.until("location.hash === '#/board/Fox'")
        page.shown("#review")
        assert page("h1").text == "Fox"
        page.click("[data-choice=reject]")
        page.idle()
        page.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
        browser.back()
        page.until("document.querySelector('h1').textContent === 'Dog'")
        page.shown("#review")
        page.click("[data-choice=accept]")
        page.shown("#cards .card.bridge")
        page.idle()
        assert not page("#others").is_displayed()
        states = [json.loads(path.read_text())["status"] for path in sorted(desk.home.glob("*/run.json"))]
        assert states == ["finished", "finished"]


def test_a_change_waits_for_its_turn_and_says_behind_what(browser: Chrome, tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS, SLOW="0.3") as desk:
        assert desk.post("draw", story={"title": "Fox", "text": FOX}).status == 200
        assert desk.post("draw", story={"title": "Dog", "text": DOG}).status == 200
        page = Page(browser, desk)
        browser.get(desk.address + "#/board/Dog")
        page.until("document.querySelector('#progress-title').textContent.includes('behind “Drawing Fox”')")
        page.click("#progress [data-do=stop]")  # who waits stops at once
        page.until("document.querySelector('#alert').textContent.includes('Stopped')")
        page.shown("#story")
        assert page("#story [name=title]").get_property("value") == ""  # it was not typed here
        desk.run = "Fox"
        desk.post("stop")
        assert "Stopped" in desk.until("idle")["failed"]


def test_every_board_frame_and_dialog_has_an_address(page: Page) -> None:
    driver = page.driver
    page.click("#runs-list li[data-run=Fox] a.link")
    page.shown("#cards .card")
    page.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
    assert place(page) == "#/board/Fox"
    page.click("#told-list a.where")
    page.until("document.querySelector('.card.shown').dataset.number === '1'")
    assert place(page) == "#/board/Fox/frame/1"
    page.click('.card[data-number="2"] [data-act=edit]')
    page.shown("#edit")
    assert place(page) == "#/board/Fox/frame/2/edit"
    driver.back()
    page.gone("#edit")
    assert place(page) == "#/board/Fox/frame/1"
    driver.forward()
    page.shown("#edit")
    driver.refresh()
    page.shown("#edit")
    assert page("#edit-title").text == "Frame 2"
    page("#edit [name=notes]").send_keys(Keys.ESCAPE)
    page.gone("#edit")
    page.until("location.hash === '#/board/Fox/frame/2'")
    for address, dialog in (("frame/3/takes", "#takes"), ("frame/3/part", "#inpaint"), ("cast", "#cast")):
        page.go(f"#/board/Fox/{address}")
        page.shown(dialog)
        assert faults(page) == []
    page.go("#/board/Dog/history")
    page.shown("#history-list .version")
    assert page("h1").text == "Dog"
    page.go("#/board/Fox/frame/77/edit")
    assert "no frame 77" in page.shown("#alert").text
    page.go("#/board/Nobody")
    assert "no board called 'Nobody'" in page.shown("#alert").text
    page.shown("#story")
    assert place(page) == "#/"
    driver.execute_script("location.hash = '#main'")
    page.until("location.hash === '#/'")


def test_what_is_typed_of_a_frame_moves_with_it_and_stays_when_its_picture_changes(page: Page) -> None:
    notes = "document.querySelector('#edit [name=notes]').value"

    def opened(number: int) -> str:
        page.go(f"#/board/Fox/frame/{number}/edit")
        page.shown("#edit")
        return str(page.driver.execute_script(f"return {notes}"))

    assert opened(2) == ""
    page.fill("#edit [name=notes]", "Of the second.")
    page("#edit [name=notes]").send_keys(Keys.ESCAPE)
    page.gone("#edit")
    page.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
    page.until("(document.querySelector('[data-focus=move2]').focus(), true)")
    page.changed(lambda: page.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT))
    assert opened(2) == ""
    assert opened(3) == "Of the second."
    page.click("#edit .close")
    version = page.desk.page()["version"]
    assert page.desk.done("edit", base=version, edits=[{"op": "take", "frame": 3, "seed": 99}])["failed"] == ""
    assert opened(3) == "Of the second."
    page.click("#edit .typed button")
    page.until(f"{notes} === ''")
    page.click("#edit .close")
    for _ in range(2):
        page.changed(lambda: page.click("[data-do=back]"))


def test_a_board_is_renamed_removed_and_put_back(page: Page, desk: DeskProcess) -> None:
    row = "#runs-list li[data-run=Dog]"
    assert page.until("document.querySelector(arguments[0] + ' img').naturalWidth > 0", row)
    assert "frames" in page(row).text
    assert faults(page) == []
    page.click(f"{row} .row button:nth-child(1)")
    page.fill(f"{row} [name=title]", "The Dog & <b>his</b> Bone")
    page(f"{row} [name=title]").send_keys(Keys.ENTER)
    page.until("document.querySelector(arguments[0] + ' a.link')?.textContent === 'The Dog & <b>his</b> Bone'", row)
    desk.run = "Dog"
    assert desk.page()["board"]["title"] == "The Dog & <b>his</b> Bone"
    assert b"The Dog &amp; &lt;b&gt;his&lt;/b&gt; Bone</h1>" in desk.ask("GET", "report").body
    page.click(f"{row} .row button:nth-child(2)")
    page.until("document.activeElement.id === 'undo-remove'")
    assert page.all(row) == []
    assert not (desk.home / "Dog").exists()
    page.driver.switch_to.active_element.send_keys(Keys.ENTER)
    page.shown(row)
    assert (desk.home / "Dog.txt").is_file()
    page.click(f"{row} .row button:nth-child(2)")
    page.driver.refresh()
    page.click("#removed summary")
    assert faults(page) == []
    page.click("#removed-list button.danger")
    assert page.all("#removed-list li"), "it asks first"
    page.click("#removed-list button.danger")
    page.gone("#removed")
    assert list((desk.home / ".removed").iterdir()) == []
    assert page.all(row) == []


def test_the_keyboard_alone_does_the_work(page: Page) -> None:
    """Tab, Enter, Space and Escape, from the list to a changed frame and back; the focus is never lost."""

    def press(*keys: str) -> None:
        ActionChains(page.driver, duration=0).send_keys(*keys).perform()

    def tab_to(selector: str) -> None:
        for _ in range(150):
            if page.driver.execute_script("return document.activeElement.matches(arguments[0])", selector):
                return
            press(Keys.TAB)
        raise AssertionError(f"{selector} is not reached by Tab")

    tab_to("#runs-list li[data-run=Fox] a.link")
    press(Keys.ENTER)
    page.shown("#cards .card")
    page.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")
    tab_to("[data-focus=edit2]")
    press(Keys.ENTER)
    page.shown("#edit")
    tab_to("#edit [name=notes]")
    press("By keyboard.")
    tab_to("#edit [value=save]")
    page.changed(lambda: press(Keys.ENTER))
    assert "By keyboard." in page('.card[data-number="2"]').text
    page.until("document.activeElement.matches('[data-focus=edit2]')")
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert page.until("document.activeElement.closest('.card')?.dataset.number") == "2"
    page.until("(document.querySelector('[data-do=cast]').focus(), true)")
    press(Keys.ENTER)
    page.shown("#cast")
    tab_to("#cast-new [name=name]")
    press(Keys.ESCAPE)
    page.gone("#cast")
    page.until("document.activeElement.matches('[data-do=cast]')")
    page.changed(lambda: page.click("[data-do=back]"))


def test_sixty_frames_are_shown_and_shown_again_at_once(page: Page) -> None:
    """The page's own work, without the desk's: 60 cards, and one of them changed."""
    first, again, kept = page.driver.execute_async_script(
        """const done = arguments[0];
        import('./static/desk_board.js').then(async (made) => {
          const page = await (await fetch('api/board?run=Fox')).json(), cards = page.board.cards;
          const numbered = (at) => ({ ...cards[at % cards.length], number: at + 1, scene: at + 1 });
          page.board.cards = Array.from({ length: 60 }, (_, at) => numbered(at));
          let begun = performance.now();
          made.showBoard(page, {}, true);
          document.body.getBoundingClientRect();
          const first = performance.now() - begun;
          page.board.cards[29] = { ...page.board.cards[29], caption: 'Another.' };
          begun = performance.now();
          const before = [...document.querySelectorAll('#cards .card')];
          made.showBoard(page, {}, true);
          document.body.getBoundingClientRect();
          const again = performance.now() - begun, now = [...document.querySelectorAll('#cards .card')];
          done([first, again, before.filter((card, at) => now[at] === card).length]);
        });"""
    )
    assert first < 3000
    assert again < 1000
    assert kept == 59, "what has not changed is not built again"


@pytest.mark.parametrize(("width", "dark"), [(1440, True), (390, False), (390, True)])
def test_the_list_fits_a_phone(page: Page, width: int, dark: bool) -> None:
    resize(page.driver, width, 844, dark=dark)
    assert faults(page) == []
    assert page.driver.execute_script("return document.documentElement.scrollWidth") <= width


def test_a_story_whose_start_fails_waits_where_another_is_typed(browser: Chrome, tmp_path: Path) -> None:
    words = tuple(word if word != "block" else "sketch" for word in WORDS)
    with DeskProcess(tmp_path, *words) as desk:
        forms = {"story Fox": {"title": "Fox", "text": FOX, "panels": "", "style": "noir"}, "story": {"title": "Dog"}}
        desk.home.mkdir()
        (desk.home / "typed.json").write_text(json.dumps(forms))
        page = Page(browser, desk)
        assert "Fox" in page.shown("#unfinished").text
        assert faults(page) == []
        page.click("#unfinished button")
        page.until("document.querySelector('#story [name=title]').value === 'Fox'")
        assert page("#story [name=style]").get_property("value") == "noir"
        assert page.shown("#unfinished").text.count("Dog") >= 1
        page.click("#unfinished button")
        page.until("document.querySelector('#story [name=title]').value === 'Dog'")
        kept = json.loads((desk.home / "typed.json").read_text())
        WebDriverWait(browser, LIMIT, 0.05).until(lambda _: kept["story Fox"]["text"] == FOX)
