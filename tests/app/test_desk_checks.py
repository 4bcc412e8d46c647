"""What the desk says of a board: what can be checked, no grade by the stand-in, and of a bridge its own effect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, resize
from desk import DeskProcess
from desk_page import Page, faults
from selenium.webdriver import Chrome

from katha.app.reports.checks import own_effect, stale_bridges
from katha.app.reports.page import load_run
from katha.compass.effects import effect_of

pytestmark = pytest.mark.browser
TALE = """A crow sat in a tree with a piece of cheese. She was proud. A fox wanted the cheese. "On purpose."
The crow sang, and the cheese fell to the ground. The fox ate the cheese."""
SEEDS = "42,7"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        resize(driver, 1440, 1000)
        yield driver


def drawn(page: Page, title: str, text: str = TALE) -> Path:
    """Draw a story and insert the bridge that is proposed; the run's folder."""
    page.fill("#story [name=title]", title)
    page.fill("#story [name=text]", text)
    page.click("#story button[type=submit]")
    page.shown("#draft")
    page.click("#draw")
    page.until("document.querySelector('#review')?.checkVisibility()", seconds=90)
    assert "%" not in page.driver.execute_script("return document.body.innerText")
    page.click("[data-choice=accept]")
    page.shown("#cards .card.bridge")
    page.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)", seconds=60)
    page.idle()
    return page.desk.home / page.desk.run


def test_the_stand_in_gives_no_grade(browser: Chrome, tmp_path: Path) -> None:
    with DeskProcess(tmp_path, "--seeds", "42", "--mode", "full_always", "--size", "384x256", doubles=False) as desk:
        page = Page(browser, desk)
        run = drawn(page, "Crow")
        page.driver.execute_script("for (const one of document.querySelectorAll('details')) one.open = true")
        text = page.driver.execute_script("return document.body.innerText")
        for praise in ("%", "understands", "understood", "read back", "score"):
            assert praise not in text, praise
        coverage = json.loads((run / "plan.json").read_text())["coverage"]
        whole = coverage["drawn"] - len(coverage.get("in_part", ()))
        assert (
            f"{whole} of {coverage['visible']} sentences that can be shown were given a frame" in page("#verdict").text
        )
        assert "Nobody has checked whether the pictures show them" in page("#verdict").text
        assert "no viewer was asked" in page("#weakest").text
        assert faults(page) == []
        header = (run / "report.html").read_text().partition("</header>")[0].partition("<body")[2]
        assert "%" not in header
        assert "read back" not in header

        # The bridge is told stale when a neighbour changes, is drawn again, and taken out.
        at = page.desk.page()["board"]["cards"]
        bridge = next(card["number"] for card in at if card["kind"] == "bridge")
        assert not page.all("#cards .stale")
        page.click(f'.card[data-number="{bridge + 1}"] [data-act=edit]')
        page.fill("#edit [name=prompt]", "The crow sits on a rock by night.")
        page.changed(lambda: page.click("#edit [value=save]"))
        assert "neighbours have changed" in page.shown(f'.card[data-number="{bridge}"] .stale').text
        assert "neighbours have changed" in page("#checks").text
        assert stale_bridges(load_run(run))
        page.changed(lambda: page.click(f'.card[data-number="{bridge}"] [data-act=again]'))
        page.gone("#cards .stale")
        page.changed(lambda: page.click(f'.card[data-number="{bridge}"] [data-act=remove]'))
        assert page.all("#cards .card.bridge") == []
        page.changed(lambda: page.click("[data-do=back]"))
        assert len(page.all("#cards .card.bridge")) == 1
        resize(browser, 390, 844, dark=True)
        assert faults(page) == []
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= 390
        resize(browser, 1440, 1000)


def test_what_a_model_could_not_answer_is_listed_and_an_edit_ends_the_comparison(
    browser: Chrome, tmp_path: Path
) -> None:
    words = ("--renderer", "block", "--judge", "pixel", "--seeds", SEEDS, "--mode", "full_always", "--size", "96x64")
    with DeskProcess(tmp_path, *words) as desk:
        page = Page(browser, desk)
        run = load_run(drawn(page, "Crow"))
        board = page.desk.page()["board"]
        (asked,) = [check for check in board["checks"] if check["name"] == "asked"]
        assert asked["said"].startswith("pixel was asked ")
        assert len(asked["points"]) == int(asked["said"].split()[3]) - int(asked["said"].rstrip(".").split()[-1])
        pair = tuple(board["weakest"]["pair"])
        effect = own_effect(run, pair)
        given = [(item["before_right"], item["after_right"]) for item in board["weakest"]["asked"]]
        gain = sum(after is True for _, after in given) - sum(before is True for before, _ in given)
        expected = "helps" if gain > 0 else "changes nothing" if gain == 0 else "harms"
        assert f" {expected}: of {len(given)} question" in effect
        found = effect_of(run.candidates)
        assert found is not None
        told = found.told()
        first = next(item for item in run.candidates.candidates if item.kind == "base")
        chosen = next(item for item in run.candidates.candidates if item.name == run.candidates.decision.selected)
        assert (told == "") == (first.name == chosen.name)
        if told:
            assert f"from {first.score.total:.3f} to {chosen.score.total:.3f}" in told
        page.click('.card[data-number="1"] [data-act=edit]')
        page.fill("#edit [name=caption]", "A crow sat in a tree.")
        page.changed(lambda: page.click("#edit [value=save]"))
        assert page.desk.page()["board"]["numbers"]["before"] is None
        report = (run.folder / "report.html").read_text()
        assert "compared with none of before" in report
        assert 'class="from"' not in report.partition("</header>")[0]
