"""The desk's page in a real browser: find, click, fill, wait, and what axe says of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

from desk import DeskProcess
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

AXE = Path(__file__).parents[1] / "data" / "axe.min.js"
LIMIT = 20.0


class Page:
    """A tab on a desk."""

    def __init__(self, driver: Chrome, desk: DeskProcess) -> None:
        self.driver, self._desk, self.board = driver, desk, ""
        driver.get(desk.address)
        self.idle()

    @property
    def desk(self) -> DeskProcess:
        """The desk, asked about the board that the address names."""
        hash_ = str(self.driver.execute_script("return location.hash")).split("/")
        self._desk.run = unquote(hash_[2]) if hash_[1:2] == ["board"] else ""
        return self._desk

    def go(self, address: str) -> None:
        """Open an address of the desk afresh, as a bookmark does."""
        self.driver.get("about:blank")
        self.driver.get(self._desk.address.partition("#")[0] + address)
        self.idle()

    def __call__(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def until(self, script: str, *values: object, seconds: float = LIMIT) -> Any:
        """Wait until a script gives something true."""
        return WebDriverWait(self.driver, seconds, 0.05).until(
            lambda driver: driver.execute_script(f"return {script}", *values), script
        )

    def idle(self) -> None:
        """Wait until the page has heard that nothing is under way."""
        self.until("document.body.dataset.ready === 'idle'")

    def shown(self, selector: str) -> WebElement:
        """Wait until something can be seen."""
        self.until("document.querySelector(arguments[0])?.checkVisibility()", selector)
        return self(selector)

    def gone(self, selector: str) -> None:
        self.until("!document.querySelector(arguments[0])?.checkVisibility()", selector)

    def ready(self) -> None:
        """Wait until the board can be changed."""
        handles = "[...document.querySelectorAll('#cards .handle')]"
        self.until(f"{handles}.length > 0 && {handles}.every(b => !b.disabled)")
        self.idle()

    def click(self, selector: str) -> None:
        element = self.shown(selector)
        self.until("!arguments[0].disabled", element)
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def fill(self, selector: str, words: str) -> None:
        element = self.shown(selector)
        element.clear()
        element.send_keys(words)

    def captions(self) -> list[str]:
        return list(
            self.driver.execute_script(
                "return [...document.querySelectorAll('#cards figcaption > p:nth-of-type(1)')].map(p => p.textContent)"
            )
        )

    def pictures(self) -> list[str]:
        found = self.driver.execute_script(
            "return [...document.querySelectorAll('#cards img')].map(i => i.getAttribute('src'))"
        )
        return [source.removeprefix("panels/")[:64] for source in found]

    def changed(self, act: Any) -> None:
        """Do something that changes the board, and wait until the page shows the next version of it."""
        before = self.desk.page()["version"]
        act()
        WebDriverWait(self.driver, LIMIT, 0.05).until(lambda _: self.desk.page()["version"] not in ("", before))
        self.idle()
        self.until("[...document.querySelectorAll('#cards .handle')].every(b => !b.disabled)")


def faults(page: Page) -> list[str]:
    """What axe finds that is serious or critical."""
    page.driver.execute_script(AXE.read_text(encoding="utf-8"))
    found = page.driver.execute_async_script("axe.run().then(arguments[0])")
    bad = [item for item in found["violations"] if item["impact"] in ("serious", "critical")]
    return [
        f"{item['id']}: {node['html'][:120]} {node['failureSummary'][:200]}" for item in bad for node in item["nodes"]
    ]
