"""A chat window at the desk, by copy and paste: where its prompts stand, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, resize
from desk import DeskProcess
from desk_page import Page, faults
from drawn_boards import CAST, frame
from selenium.webdriver import Chrome

pytestmark = pytest.mark.browser
WORDS = ("--planner", "rule", "--renderer", "vector:paste", "--judge", "none", "--seeds", "42", "--mode", "base")
DOG = "A dog found a bone. He carried it over a bridge. He saw a dog in the water. He lost the bone."


def drawn(count: int) -> str:
    """The reply that holds every frame."""
    return "".join(f"FRAME {number}\n```svg\n{frame()}\n```\n" for number in range(1, count + 1))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        resize(driver, 1440, 1000)
        yield driver


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A desk's folder with a board that a chat window has drawn."""
    place = tmp_path_factory.mktemp("desk")
    with DeskProcess(place, *WORDS) as desk:
        assert desk.post("draw", story={"title": "Dog", "text": DOG, "panels": 4}).status == 200
        for at in range(8):
            now = desk.until("exchange")
            if not now["running"]:
                break
            asked = now["exchange"]
            desk.post("reply", number=asked["number"], text=drawn(4) if at else f"```svg\n{CAST}\n```")
        assert now["failed"] == ""
    return place


def test_a_change_in_words_makes_way_for_what_the_chat_window_is_asked(browser: Chrome, folder: Path) -> None:
    with DeskProcess(folder, *WORDS) as desk:
        page = Page(browser, desk)
        page.go("#/board/Dog/frame/3/drawing")
        page.ready()
        page.fill("#drawing [name=words]", "A bigger dog.")
        page.click("[data-drawing=ask]")
        page.shown("#exchange")
        page.gone("#drawing")
        assert "A bigger dog." in (page("#exchange [name=prompt]").get_attribute("value") or "")
        assert page.until("document.querySelector('#exchange-title').getBoundingClientRect().top >= 0")
        page.until("document.activeElement.id === 'exchange-title'")
        assert faults(page) == []
        page.click("#progress [data-do=stop]")
        assert "Stopped" in page.shown("#drawing .problem").text, "what was asked is there again"
        assert page("#drawing [name=words]").get_attribute("value") == "A bigger dog."
        page.click("#drawing .close")

        page.click("[data-focus=takes2]")
        page.click("#takes button[value=draw]")
        page.shown("#exchange")
        page.gone("#takes")
        page.click("#progress [data-do=stop]")
        page.shown("#takes .problem")
        page.click("#takes .close")


def test_a_card_shows_the_whole_frame(browser: Chrome, folder: Path) -> None:
    with DeskProcess(folder, *WORDS) as desk:
        page = Page(browser, desk)
        fits = "[...document.querySelectorAll(arguments[0])].map(i => getComputedStyle(i).objectFit).join()"
        assert page.until(fits, "#runs-list img") == "contain"
        page.go("#/board/Dog")
        page.ready()
        assert set(str(page.until(fits, "#cards img")).split(",")) == {"contain"}
        width, height = page.until(
            "document.querySelector('#cards img').naturalWidth > 0 &&"
            "['naturalWidth', 'naturalHeight'].map(n => document.querySelector('#cards img')[n])"
        )
        assert abs(width / height - 16 / 9) < 0.02


def test_what_is_carried_by_hand_is_neither_paid_for_nor_done_by_this_machine(browser: Chrome, tmp_path: Path) -> None:
    with DeskProcess(tmp_path, *WORDS) as desk:
        page = Page(browser, desk)
        page.fill("#story [name=text]", DOG)
        page.fill("#story [name=panels]", "4")
        page.click("#story button[type=submit]")
        said = page.shown("#draft-cost").text
        assert "this machine" not in said
        assert "you carry every prompt to a chat window" in said
        page.click("#draw")
        page.until("location.hash.startsWith('#/board/')")
        given = 0
        while (now := page.desk.until("exchange"))["running"]:
            given += 1
            desk.post("reply", number=now["exchange"]["number"], text=drawn(4) if given > 1 else f"```svg\n{CAST}\n```")
        assert now["failed"] == ""
        page.ready()
        assert page.shown("#spent").text == f"{given} exchanges by hand."
        assert "Every sentence has a panel" not in page.driver.execute_script("return document.body.innerText")
