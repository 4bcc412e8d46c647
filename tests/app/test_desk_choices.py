"""What is chosen at the desk before a story is drawn; a judge that cannot read the pictures is refused first."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, resize
from desk import DeskProcess
from desk_page import Page, faults
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from katha.agents.fitting import unfit_judge
from katha.app.desk.choices import choices_of, chosen, sample
from katha.app.desk.desk import PastedStory
from katha.app.desk.room import Room
from katha.config import Settings
from katha.configs import load_config
from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.registry import default_registry

TALE = "A fox saw a crow with a cheese. The fox praised the crow. The crow sang. The fox ate the cheese."
OWN = Settings(planner="rule", renderer="sketch", judges=("sketch-reader",), seeds=(42,))
PAID = "openai:gpt-image-2.6-flare"


def test_every_place_and_look_of_the_lists_is_drawn() -> None:
    table, sketch = load_config("desk.yaml"), default_registry("renderers").create("sketch")
    for place in table["places"]:
        asked = FrameRequest(prompt="A man stands.", seed=1, width=384, height=256, place=place)
        assert sketch.not_drawn(asked) == (), place
    seen = set()
    for style in table["styles"]["sketch"]:
        data = sample("sketch", style)
        assert data is not None
        with Image.open(io.BytesIO(data)) as picture:
            assert picture.size == (192, 128)
        seen.add(data)
    assert len(seen) == 3
    assert sample("sketch", "watercolour") is None
    assert sample("openai", "ink") is None


def test_shapes_are_those_that_the_renderer_draws() -> None:
    (drawer,) = choices_of(OWN, everything=False).drawers
    assert drawer.price == 0.0
    assert [one.name for one in drawer.styles] == ["colour", "ink", "pencil"]
    for size in drawer.sizes[1:]:
        width, height = map(int, size.value.split("x"))
        assert width % 8 == height % 8 == 0
        assert 0.9 < width * height / (768 * 512) < 1.1
    assert drawer.sizes[0].value == ""


def test_a_judge_that_cannot_read_the_pictures_is_refused_with_one_that_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-of-the-tests")
    for key in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    assert unfit_judge(OWN) is None
    room = Room(tmp_path / "home", OWN)
    draft = room.front.draft(PastedStory(text=TALE, renderer=PAID))
    assert draft.unfit is not None
    assert draft.unfit.proposed.startswith("openai:")
    assert draft.unfit.dollars is not None
    assert draft.unfit.dollars > 0
    with pytest.raises(UsageError, match="sketch-reader reads the pictures of sketch alone"):
        room.draw(PastedStory(text=TALE, renderer=PAID), agreed=True)
    assert not (tmp_path / "home").exists()
    fitting = room.front.draft(PastedStory(text=TALE, renderer=PAID, judge=draft.unfit.proposed))
    assert fitting.unfit is None
    assert fitting.cost.dollars is not None
    assert fitting.cost.dollars > draft.unfit.dollars
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(UsageError, match="needs a key"):
        Room(tmp_path / "home", OWN).front.draft(PastedStory(text=TALE, renderer=PAID))


def test_what_goes_with_a_renderer_comes_with_it() -> None:
    made = chosen(OWN, "sdxl:stabilityai/stable-diffusion-xl-base-1.0", "none", "640x360")
    assert made["renderer_options"] == {"variant": "fp16"}
    assert (made["judges"], made["mode"], made["size"]) == (("none",), "base", "640x360")
    assert "watercolour" in made["style"]
    assert made["similarity"] == "none"
    assert chosen(OWN, "", "", "") == {}
    with pytest.raises(UsageError, match="is installed"):
        chosen(OWN, "os:system", "", "")


def test_a_chat_window_is_chosen_without_a_key_and_plans_as_well() -> None:
    own, hand, *_ = choices_of(OWN).drawers
    assert (own.name, hand.name, hand.price, hand.lacks) == (OWN.renderer, "vector:paste", 0.0, "")
    assert hand.label == "a chat window, by copy and paste (free)"
    picked = chosen(OWN, "vector:paste", "", "")
    wanted = {"planner": "gemma-st:paste", "judges": ("none",), "mode": "base", "seeds": (42,)}
    assert {name: picked[name] for name in wanted} == wanted
    assert "planner" not in chosen(OWN, "", "", "")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        resize(driver, 1440, 1000)
        yield driver


@pytest.mark.browser
def test_look_shape_and_who_draws_are_chosen_from_lists(browser: Chrome, tmp_path: Path) -> None:
    words = (
        "--planner",
        "rule",
        "--renderer",
        "sketch",
        "--judge",
        "sketch-reader",
        "--seeds",
        "42",
        "--max-cost",
        "2",
    )
    key = {"OPENAI_API_KEY": "sk-a-key-of-the-tests", "ANTHROPIC_API_KEY": "", "GEMINI_API_KEY": ""}
    with DeskProcess(tmp_path, *words, doubles=False, **key) as desk:
        page = Page(browser, desk)
        assert "$0.00 of $2.00, 0 paid calls" in page.shown("#spent").text
        page.fill("#story [name=text]", TALE)
        page.click("#how summary")
        page.until("document.querySelectorAll('#story [name=renderer] option').length > 3", seconds=90)
        page.until("[...document.querySelectorAll('#looks img')].every(i => i.naturalWidth === 192)")
        assert [look.text for look in page.all("#looks button")] == ["colour", "ink", "pencil"]
        assert faults(page) == []

        # A renderer that is paid for, with the desk's judge: nothing is drawn before another is chosen.
        Select(page("#story [name=renderer]")).select_by_value(PAID)
        assert "cannot read what" in page.shown("#how-note").text
        page.click("#story button[type=submit]")
        assert "sketch-reader reads the pictures of sketch alone" in page.shown("#draft-unfit").text
        assert page("#draw").get_property("disabled")
        assert faults(page) == []
        (other, _) = page("#draft-unfit").find_elements(By.TAG_NAME, "button")
        assert "$" in other.text
        page.click("#draft-unfit [data-judge=none]")
        page.gone("#draft-unfit")
        page.shown("#draft")
        assert not page("#draw").get_property("disabled")
        assert "$" in page("#draft-cost").text

        # Back to the free one, in another look and shape; a reload keeps what was chosen.
        Select(page("#story [name=renderer]")).select_by_value("")
        Select(page("#story [name=judge]")).select_by_value("")
        page.click("#looks [data-look=ink]")
        wide = page.until(
            "[...document.querySelectorAll('#story [name=size] option')].find(o => o.text.startsWith('16:9')).value"
        )
        Select(page("#story [name=size]")).select_by_value(wide)
        page.until("document.querySelector('#looks [data-look=ink]').ariaPressed === 'true'")
        chosen_now = "['size', 'style', 'renderer'].map(n => document.querySelector('#story').elements[n].value).join()"
        known = page.until(chosen_now)
        page.click("#story button[type=submit]")
        page.shown("#draft")
        browser.refresh()
        page.shown("#draft")
        assert page.until(chosen_now) == known
        page.click("#draw")
        page.shown("#cards .card img")
        page.until(
            "document.querySelector('#review').checkVisibility() || document.body.dataset.ready === 'idle'", seconds=90
        )
        state = json.loads((page.desk.home / page.desk.run / "run.json").read_text())
        assert state["config"]["style"] == "ink"
        size = state["config"]["size"]
        assert [size[0] / size[1] > 1.7, f"{size[0]}x{size[1]}"] == [True, wide]
        assert page.until("document.querySelectorAll('#places option').length") > 200
