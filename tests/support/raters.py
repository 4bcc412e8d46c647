"""Participants: who click through a study's page in a real Chromium and save the file, or who only leave the file."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select

from katha.eval_bridge.people.study import Screen, Study, StudyItem, StudyPage

Mind = Callable[[Screen, StudyItem], int | list[str]]
"""What somebody thinks: the place of the option, or the labels in order."""


def answer_file(
    study: Study, page: StudyPage, mind: Mind, *, rater: str, ms: int = 4000, group: str | None = None
) -> str:
    """Return what the page would save, had it been answered."""

    def value(screen: Screen, item: StudyItem) -> str | int | list[str]:
        chosen = mind(screen, item)
        return item.options[chosen] if item.kind == "choice" and isinstance(chosen, int) else chosen

    answers = [{"item": item.item, "value": value(screen, item), "ms": ms} for screen, item in page.items()]
    told = {"format": 1, "study": study.study, "page": page.page, "rater": rater, "group": group, "answers": answers}
    when = "2026-01-01T10:00:00.000Z"
    return json.dumps({**told, "consent": when, "saved": when, "finished": when})


def hand_in(folder: Path, study: Study, minds: list[Mind], **options: object) -> list[Path]:
    """Write what people of these minds would hand in, and return the files."""
    folder.mkdir(exist_ok=True)
    paths = []
    for number, mind in enumerate(minds):
        path = folder / f"r{number}.json"
        path.write_text(answer_file(study, study.pages[number], mind, rater=f"r{number}", **options))  # type: ignore[arg-type]
        paths.append(path)
    return paths


def attentive(mind: Mind) -> Mind:
    """Return the same mind, which also passes every attention check."""

    def also(screen: Screen, item: StudyItem) -> int | list[str]:
        return mind(screen, item) if item.expected is None else item.options.index(item.expected)

    return also


def one(driver: Chrome, selector: str) -> WebElement:
    return driver.find_element(By.CSS_SELECTOR, selector)


def shown(driver: Chrome) -> str:
    """Which part of the page is there: intro, trial or end."""
    return str(driver.execute_script("return document.querySelector('main > section:not([hidden])').id"))


def begin(driver: Chrome, page: Path, group: str | None = None) -> None:
    """Open the page and agree."""
    driver.get(page.as_uri())
    if group is not None:
        one(driver, f"input[name=group][value={group}]").click()
    one(driver, "input[name=agree]").click()
    one(driver, "#intro button[type=submit]").click()


def keys_of(page: StudyPage) -> Mapping[str, tuple[Screen, StudyItem]]:
    return {item.item: (screen, item) for screen, item in page.items()}


def answer_step(
    driver: Chrome, known: Mapping[str, tuple[Screen, StudyItem]], mind: Mind, *, keys: bool = False
) -> None:
    """Answer everything that is asked now, and go on."""
    for field in driver.find_elements(By.CSS_SELECTOR, "#items fieldset"):
        screen, item = known[str(field.get_attribute("id"))]
        chosen = mind(screen, item)
        if isinstance(chosen, list):
            for box, label in zip(field.find_elements(By.TAG_NAME, "select"), chosen, strict=False):
                Select(box).select_by_value(label)
            field.find_element(By.CSS_SELECTOR, "input[type=checkbox]").click()
        elif keys:
            driver.execute_script("arguments[0].focus()", field.find_element(By.TAG_NAME, "legend"))
            driver.switch_to.active_element.send_keys(str(chosen + 1))
        else:
            field.find_elements(By.CSS_SELECTOR, "input[type=radio]")[chosen].click()
    if keys:
        driver.execute_script("arguments[0].focus()", field.find_element(By.CSS_SELECTOR, "input"))
        driver.switch_to.active_element.send_keys(Keys.ENTER)
    else:
        one(driver, "#trial button[type=submit]").click()


def answer_all(driver: Chrome, page: StudyPage, mind: Mind, *, keys: bool = False) -> None:
    """Answer until the page says thank you."""
    known = keys_of(page)
    while shown(driver) == "trial":
        answer_step(driver, known, mind, keys=keys)


def downloads(driver: Chrome, folder: Path) -> None:
    """Have files that pages save land in a folder."""
    driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})


def save(driver: Chrome, folder: Path) -> Path:
    """Press the button and return the file that it saved."""
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    section = "#end" if shown(driver) == "end" else "header"
    one(driver, f"{section} [data-do=save]").click()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for path in folder.glob("*.json"):
            if path.stat().st_mtime_ns == before.get(path):
                continue
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                continue
            return path
    raise AssertionError("the page saved no file")
