"""The desk in a browser: from the command to the first screen, from a click to the new picture, and 60 panels scrolled.

The times of the page are taken in the page, up to the moment at which the picture is decoded and on the board. A step
of work is followed to its end before the next, so that no judging of the last one is in a figure.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from katha import run_story
from katha.agents.editor.editing import edit_board, read_board
from katha.agents.editor.edits import AddFrame
from katha.config import cache_folder

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))

from browser import chromium, resize
from desk import DeskProcess
from selenium.webdriver import Chrome

__all__ = ["measure"]

_STORY = Path(__file__).parents[1] / "examples" / "lion_and_mouse.txt"
_REDRAWS, _MANY = 3, 60
_TARGET_FIRST, _TARGET_REDRAW = 3.0, 1.0
_SHOWN = """
const done = arguments[arguments.length - 1];
const look = () => {
  const within = (img) => img.getBoundingClientRect().top < innerHeight;
  const seen = [...document.querySelectorAll("#cards img")].filter(within);
  const ready = document.body?.dataset.ready === "idle" && seen.length && seen.every((img) => img.complete);
  ready ? done(performance.now()) : requestAnimationFrame(look);
};
look();
"""
_REDRAW = """
const [number, prompt, done] = arguments, image = () => document.querySelector(`.card[data-number="${number}"] img`);
const before = image().getAttribute("src").slice(0, 71);
image().scrollIntoView({ block: "center", behavior: "instant" });  // as a person has it; pictures out of sight wait
document.querySelector(`.card[data-number="${number}"] [data-act=edit]`).click();
document.querySelector("#edit [name=prompt]").value = prompt;
const start = performance.now();
document.querySelector("#edit [value=save]").click();
const look = () => {
  const now = image();
  const drawn = now && now.complete && now.getAttribute("src").slice(0, 71) !== before;
  drawn ? done(performance.now() - start) : requestAnimationFrame(look);
};
look();
"""
_SCROLL = """
const done = arguments[arguments.length - 1], times = [], bottom = document.documentElement.scrollHeight - innerHeight;
let last = performance.now(), at = 0;
const step = (now) => {
  times.push(now - last); last = now; at += 40; scrollTo({ top: at, behavior: "instant" });
  at < bottom ? requestAnimationFrame(step) : done(times.slice(1));
};
requestAnimationFrame(step);
"""
_IDLE = """
const done = arguments[arguments.length - 1];
const look = () => {
  const free = [...document.querySelectorAll("#cards .handle")].every((button) => !button.disabled);
  const shut = !document.querySelector("dialog[open]");
  document.body.dataset.ready === "idle" && free && shut ? done(true) : setTimeout(look, 50);
};
look();
"""


def _redraws(driver: Chrome, last: int, place: str) -> list[float]:
    """Seconds from the click on Save to the picture, for some prompts of frames that are spread over the board."""
    found = []
    for turn in range(_REDRAWS):
        number = 1 + turn * (last - 1) // (_REDRAWS - 1)
        prompt = f"{place} The lion sits. The mouse dances near {turn + 2} trees."
        found.append(driver.execute_async_script(_REDRAW, number, prompt) / 1000)
        driver.execute_async_script(_IDLE)
    return found


def _screen(run: Path, folder: Path, driver: Chrome, cache: str, place: str) -> dict[str, Any]:
    """The figures of one board, on a desk of its own. place: where the redrawn frames are, as none of it was before."""
    begun = time.perf_counter()
    with DeskProcess(folder, run, doubles=False, KATHA_CACHE=cache) as desk:
        started = time.perf_counter() - begun
        driver.get(desk.address)
        shown = driver.execute_async_script(_SHOWN) / 1000
        redraws = _redraws(driver, len(read_board(run).board.frames), place)
        scrolled = sorted(driver.execute_async_script(_SCROLL))
    return {
        "frames": len(read_board(run).board.frames),
        "start_seconds": round(started, 2),
        "first_screen_seconds": round(shown, 2),
        "redraw_seconds": {"median": round(statistics.median(redraws), 2), "most": round(max(redraws), 2)},
        "scroll_frame_ms": {
            "median": round(statistics.median(scrolled), 1),
            "p95": round(scrolled[int(0.95 * len(scrolled))], 1),
        },
    }


def measure() -> dict[str, Any]:
    """Measure the embedded default's own board of a story, and one of 60 panels, at 1440x1000 pixels."""
    with tempfile.TemporaryDirectory() as place, chromium(Path(place) / "profile") as driver:
        folder, cache = Path(place), str(cache_folder())
        driver.set_script_timeout(300)
        resize(driver, 1440, 1000)
        run = folder / "home" / "lion"
        run_story(_STORY, seeds=(42,), mode="base", out=run)
        few = _screen(run, folder, driver, cache, "In the forest by night.")
        more = _MANY - len(read_board(run).board.frames)
        edit_board(run, [AddFrame(at=1, prompt=f"The lion walks past {at} trees.") for at in range(2, more + 2)])
        many = _screen(run, folder, driver, cache, "In the snow.")
    return {
        "few": few,
        "many": many,
        "target_first_screen_seconds": _TARGET_FIRST,
        "target_redraw_seconds": _TARGET_REDRAW,
    }
