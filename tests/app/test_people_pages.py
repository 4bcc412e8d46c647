"""A study from its boards to its scores, with two raters who click in a real Chromium, one by mouse and one by keys."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium, resize
from raters import answer_all, answer_step, attentive, begin, downloads, keys_of, one, save, shown
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from study_material import draw_boards, records
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.eval_bridge.people.study import Screen, Study, StudyItem
from katha.experiments.people import read_study

pytestmark = pytest.mark.browser


def katha(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four boards and a study of them for two."""
    folder = tmp_path_factory.mktemp("people")
    draw_boards(folder / "boards")
    (folder / "stories.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records()[:2]))
    boards = [word for name in ("fixed", "plain") for word in ("--boards", folder / "boards" / name)]
    words = ["people", "pack", folder / "stories.jsonl", *boards, "--raters", 2, "--per-item", 2, "--design", "within"]
    words += ["--criteria", "Q1,Q14,Q15", "--min-seconds", "0", "--groups", "artists,readers"]
    assert "2 pages of" in katha(*words, "--out", folder / "study")
    return folder


@pytest.fixture(scope="module")
def study(home: Path) -> Study:
    return read_study(home / "study")[0]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chrome]:
    with chromium(tmp_path / "profile") as driver:
        resize(driver, 1440, 900)
        yield driver


def page_of(home: Path, number: int) -> Path:
    return home / "study" / "pages" / f"rater-{number:02}.html"


def keen(screen: Screen, item: StudyItem) -> int | list[str]:
    """Sees what is right, and the bridge as better."""
    if item.kind == "ranking":
        return ["courage", "honesty"]
    if item.kind == "choice":
        return item.options.index("gold" if "gold" in item.options else "Unclear")
    return (0 if screen.boards[0] == screen.favoured else 4) if item.kind == "preference" else 3


def lost(screen: Screen, item: StudyItem) -> int | list[str]:
    """Sees nothing in pictures alone."""
    if item.kind == "choice" and screen.condition == "image":
        return item.options.index("Unclear")
    return keen(screen, item)


def test_two_people_take_part_and_are_scored(home: Path, study: Study, browser: Chrome, tmp_path: Path) -> None:
    back = tmp_path / "back"
    back.mkdir()
    downloads(browser, back)
    for number, (mind, keys) in enumerate(((keen, False), (lost, True)), 1):
        browser.get_log("performance")
        begin(browser, page_of(home, number), "artists" if keys else "readers")
        answer_all(browser, study.pages[number - 1], attentive(mind), keys=keys)
        assert shown(browser) == "end"
        kept = json.loads(save(browser, back).read_text(encoding="utf-8"))
        assert len(kept["answers"]) == sum(1 for _ in study.pages[number - 1].items())
        assert kept["finished"] is not None
        events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        own = ("data:", "blob:", "chrome:")  # the last: what the browser's own windows are made of
        assert [url for url in asked if not url.startswith(own)] == [page_of(home, number).as_uri()]
        assert browser.get_log("browser") == []
    out = tmp_path / "scores"
    told = katha("people", "score", back, "--study", home / "study", "--out", out)
    assert "2 participants, 0 against the rules" in told
    found = json.loads((out / "people.json").read_text(encoding="utf-8"))
    for own in found["methods"].values():
        assert own["recoverability"]["text"] in (None, 100.0)  # too few valid questions of one method: no number
        assert own["moral"]["hmr1"] == 100.0
        assert own["ncs"]["mean"] == 4.0
    told_rows = csv.DictReader((out / "recoverability.csv").read_text(encoding="utf-8").splitlines())
    told_images = {row["Method"]: float(row["Image"]) if row["Image"] else None for row in told_rows}
    assert told_images == {name: own["recoverability"]["image"] for name, own in found["methods"].items()}
    assert {path.stem for path in out.glob("*.tex")} == {
        *("agreement", "comparisons", "preferences", "ratings", "recoverability"),
    }
    # Who saw which method's pictures is by lot, but one of the two sees nothing.
    images = [own["recoverability"]["image"] for own in found["methods"].values()]
    assert None in images or sum(images) == pytest.approx(100.0, abs=67.0)
    pairs = {(pair["task"], pair["a"], pair["b"]): pair["criteria"] for pair in found["preferences"]}
    assert set(pairs) == {("bridge", "fixed", "fixed without its bridge"), ("pairs", "fixed", "plain")}
    assert {test["mean"] for tests in pairs.values() for test in tests.values()} == {2.0}
    assert {path.suffix for path in (out / "figures").iterdir()} == {".svg", ".png"}
    again = katha("bench", "calibrate", out / "judgments.jsonl", "--json")
    for name, own in json.loads(again)["methods"].items():
        assert own == found["methods"][name]
    browser.get((out / "report.html").as_uri())
    for width in (1440, 390):
        resize(browser, width, 900)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []
    assert "What was preferred" in one(browser, "main").text


def test_it_goes_on_where_it_was_left_also_from_a_file(
    home: Path, study: Study, browser: Chrome, tmp_path: Path
) -> None:
    downloads(browser, tmp_path)
    page, path = study.pages[0], page_of(home, 1)
    begin(browser, path, "artists")
    known = keys_of(page)
    for _ in range(3):
        answer_step(browser, known, attentive(keen))
    at = one(browser, ".along output").text
    saved = save(browser, tmp_path)
    browser.get("about:blank")
    browser.get(path.as_uri())
    assert shown(browser) == "trial"
    assert one(browser, ".along output").text == at == f"4 of {one(browser, 'progress').get_attribute('max')}"
    browser.execute_script("localStorage.clear()")
    browser.get(path.as_uri())
    assert shown(browser) == "intro"
    one(browser, "details summary").click()
    wrong = tmp_path / "wrong.json"
    wrong.write_text(saved.read_text().replace('"rater-01"', '"rater-02"'))
    one(browser, "input[type=file]").send_keys(str(wrong))
    wait = WebDriverWait(browser, 20)
    assert wait.until(lambda driver: "not one that this page saved" in one(driver, "#trouble").text)
    assert shown(browser) == "intro"
    one(browser, "input[type=file]").send_keys(str(saved))
    assert wait.until(lambda driver: shown(driver) == "trial")
    assert one(browser, ".along output").text == at
    first = json.loads(saved.read_text())
    answer_step(browser, known, attentive(keen))
    later = json.loads(save(browser, tmp_path).read_text())
    assert later["rater"] == first["rater"]
    assert later["answers"][:-1] == first["answers"]


def test_nothing_is_skipped_and_consent_comes_first(home: Path, browser: Chrome) -> None:
    browser.get(page_of(home, 1).as_uri())
    button = one(browser, "#intro button[type=submit]")
    button.click()
    assert "say which of these you are" in one(browser, "#intro .message").text
    one(browser, "input[name=group]").click()
    button.click()
    assert "agree first" in one(browser, "#intro .message").text
    assert browser.execute_script("return localStorage.length") == 0
    one(browser, "input[name=agree]").click()
    button.click()
    before = one(browser, "#items legend").text
    one(browser, "#trial button[type=submit]").click()
    assert "Please answer the question" in one(browser, "#trial .message").text
    assert one(browser, "#items legend").text == before
    assert browser.execute_script("return document.activeElement.type") == "radio"


def test_it_can_be_used_without_a_mouse_and_read_aloud(home: Path, study: Study, browser: Chrome) -> None:
    resize(browser, 390, 844)
    begin(browser, page_of(home, 1), "artists")
    known = keys_of(study.pages[0])
    assert browser.execute_script("return document.activeElement.id") == "h-trial"
    seen = set()
    while shown(browser) == "trial":
        screen, _ = known[str(one(browser, "#items fieldset").get_attribute("id"))]
        if (screen.task, screen.condition) not in seen:
            seen.add((screen.task, screen.condition))
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
            small = browser.execute_script(
                "return [...document.querySelectorAll('main label, main button')]"
                ".filter(e => e.offsetParent && e.getBoundingClientRect().height < 43).length"
            )
            assert small == 0, screen.task
            boxes = browser.find_elements(By.CSS_SELECTOR, "#trial input, #trial select")
            assert all(box.accessible_name for box in boxes)
            fields = browser.find_elements(By.CSS_SELECTOR, "#items fieldset")
            assert [field.accessible_name for field in fields] == [
                each.text for each in screen.items if each.item in {field.get_attribute("id") for field in fields}
            ]
            for image in browser.find_elements(By.CSS_SELECTOR, "#evidence img"):
                assert "icture " in image.accessible_name
        answer_step(browser, known, attentive(keen), keys=True)
    assert len(seen) == 8
    browser.execute_script("localStorage.clear()")
    begin(browser, page_of(home, 1), "artists")
    while not browser.find_elements(By.CSS_SELECTOR, ".frame"):  # the guesses come first
        answer_step(browser, known, attentive(keen), keys=True)
    one(browser, ".frame").send_keys(Keys.ENTER)
    assert one(browser, "dialog").get_attribute("open") is not None
    one(browser, "dialog").send_keys(Keys.ESCAPE)
    assert one(browser, "dialog").get_attribute("open") is None
