"""`katha ablate` and `katha tune` as commands: suites that ship, locks, bad input, and the reports in Chromium."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, resize
from doubles import BlockRenderer, PixelJudge, PixelSimilarity, ScenePlanner, story
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.reports.study_pages import write_ablation_report, write_tuning_report
from katha.compass.modes import load_suite, suite_names
from katha.errors import KathaError
from katha.registry import default_registry
from katha.schema import CompassSettings, StoryRecord

WITH_DOUBLES = ("--planner", "test-scenes", "--renderer", "test-block", "--judge", "test-pixel")
SIMILARITY = ("--similarity", "test-pixels")


def wood(number: int, split: str) -> StoryRecord:
    text = story(f"{split}{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text).model_copy(update={"split": split})


RECORDS = [wood(number, "validation") for number in range(6)] + [wood(number, "public_test") for number in range(6, 12)]


def _eased(record: StoryRecord) -> StoryRecord:
    """`record` with one more accepted answer."""
    first, *rest = record.recoverability_questions
    first = first.model_copy(update={"accepted_answers": [*first.accepted_answers, "anything"]})
    return record.model_copy(update={"recoverability_questions": [first, *rest]})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stories on disk; plug-ins registered as the command names them."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "stories.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in RECORDS))
    odd = "about: x\nbaseline: base\nrows:\n  base:\n  far: {mode: base, renderer: telescope}\n"
    (folder / "odd.yaml").write_text(odd)
    (folder / "unknown.yaml").write_text(odd.replace("mode: base, renderer: telescope", "mode: telepathy"))
    (folder / "outside.yaml").write_text(odd.replace("renderer: telescope", "compass: {delta: 2}"))
    (folder / "preset.yaml").write_text("compass: {repair_threshold: 1.5}\n")
    (folder / "eased.jsonl").write_text("".join(_eased(record).model_dump_json() + "\n" for record in RECORDS))
    default_registry("planners").register("test-scenes")(ScenePlanner)
    default_registry("renderers").register("test-block")(BlockRenderer)
    default_registry("judges").register("test-pixel")(PixelJudge)
    default_registry("similarities").register("test-pixels")(PixelSimilarity)
    return folder


@pytest.fixture(autouse=True)
def cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(home / "cache"))


def call(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def ablate(home: Path, name: str, *more: str) -> dict[str, Any]:
    given = (*WITH_DOUBLES, *SIMILARITY, "--resamples", "200", "--out", str(home / name))
    return call("ablate", str(home / "stories.jsonl"), *given, *more)


@pytest.fixture(scope="module")
def lock(home: Path) -> Path:
    """The lock of a tuning on the validation stories."""
    path = home / "compass.lock.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(home / "cache"))
        given = (*WITH_DOUBLES, *SIMILARITY, "--settings", "300", "--resamples", "200")
        places = ("--keep", "--lock", str(path), "--out", str(home / "tuning"))
        found = call("tune", str(home / "stories.jsonl"), *given, *places)["tuning"]
    assert found["stories"] == 6
    return path


def test_the_suites_that_ship_can_be_read() -> None:
    known = {
        "length",
        "terms",
        "heldout",
        "evidence",
        "conditions",
        "components",
        "questions",
        "matching",
        "aggregation",
        "moral",
    }
    assert known | {"dimensions", "planners", "renderers"} <= set(suite_names())
    for name in suite_names():
        assert load_suite(name).rows


def test_the_terms_suite_has_all_seven_combinations_and_their_copy_rates(home: Path) -> None:
    table = ablate(home, "terms", "--suite", "terms", "--split", "test")["table"]
    suite = load_suite("terms")
    weights = {tuple(row.settings(CompassSettings()).model_dump().items())[:3] for row in suite.rows}
    assert len(weights) == 7
    assert len(table["rows"]) == 8
    assert all(row["copy_rate"] is not None for row in table["rows"])
    assert table["budget"]["frames_distinct"] == table["rows"][0]["frames_rendered"]


def test_scoring_suites_draw_and_ask_what_the_plain_boards_need(home: Path) -> None:
    plain = ablate(home, "dimensions", "--suite", "dimensions", "--split", "test")["table"]
    rows = {row["mode"]: row for row in plain["rows"]}
    assert plain["budget"]["frames_distinct"] == plain["rows"][0]["frames_rendered"]
    assert rows["action"]["valid"] + rows["no_action_no_moral"]["valid"] == rows["all_dimensions"]["valid"]
    evidence = ablate(home, "conditions", "--suite", "conditions", "--split", "test")["table"]
    rows = {row["mode"]: row for row in evidence["rows"]}
    assert rows["image_only"]["text"] is None
    assert rows["image_only"]["stg"] is None
    assert rows["text_and_both"]["image"] is None
    assert rows["text_and_image"]["valid_rate"] == 100
    assert {row["ambiguity_leakage"] for row in rows.values()} == {None}
    assert rows["full_protocol"]["valid"] <= rows["answer_filter"]["valid"] < rows["text_and_image"]["valid"]


def test_held_out_rows_are_told_from_steered_ones(home: Path) -> None:
    table = ablate(home, "heldout", "--suite", "heldout", "--split", "test")["table"]
    steered = {row["mode"] for row in table["rows"] if row["steered"]}
    assert steered == {row["mode"] for row in table["rows"]} - {"full_held_out", "base_held_out"}
    scores = json.loads((home / "heldout" / "scores.json").read_text())
    assert set(scores["methods"]) == {"full_held_out", "base_held_out"}
    assert "not held out" in (home / "heldout" / "report.html").read_text()


def test_judges_alone_and_together(home: Path) -> None:
    default_registry("judges").register("test-other")(lambda: PixelJudge(name="other"))
    more = ("--suite", "aggregation", "--split", "test", "--judge", "test-other")
    table = ablate(home, "aggregation", *more)["table"]
    assert [row["mode"] for row in table["rows"]] == ["ensemble", "alone: test-pixel", "alone: test-other"]
    assert len({row["image"] for row in table["rows"]}) > 1


def test_a_run_under_the_lock_is_frozen_and_one_without_is_not(home: Path, lock: Path) -> None:
    more = ("--split", "test", "--rows", "base,full", "--lock", str(lock))
    frozen = ablate(home, "frozen", *more)["table"]
    assert frozen["frozen"]
    assert frozen["lock"] == "compass.lock.yaml"
    assert json.loads((home / "frozen" / "scores.json").read_text())["frozen"]
    open_one = ablate(home, "open", "--split", "test", "--rows", "base,full")["table"]
    assert not open_one["frozen"]
    assert not json.loads((home / "open" / "scores.json").read_text())["frozen"]
    assert "Unfrozen" in (home / "open" / "report.html").read_text()


def test_a_single_run_takes_the_lock_s_settings(home: Path, lock: Path) -> None:
    import yaml

    spec = f"{home / 'stories.jsonl'}#public_test7"
    call("run", spec, *WITH_DOUBLES, *SIMILARITY, "--lock", str(lock), "--out", str(home / "one"))
    frozen = yaml.safe_load(lock.read_text())
    candidates = json.loads((home / "one" / "candidates.json").read_text())
    assert candidates["settings"] == frozen["settings"]
    assert sum(item["kind"] == "base" for item in candidates["candidates"]) == frozen["candidates"]
    assert json.loads((home / "one" / "scores.json").read_text())["frozen"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("ablate", "eased.jsonl", "--split", "test", "--lock", "LOCK"), "are not those that"),
        (("tune", "stories.jsonl", "--split", "public_test"), "is of the split 'public_test'"),
        (("--suite", "unknown.yaml"), "row 'far': No mode is called 'telepathy'"),
        (("--suite", "outside.yaml"), "row 'far': delta: Input should be less than or equal to 1"),
        (("--preset", "preset.yaml"), "repair_threshold"),
        (("--lock", "LOCK"), "was tuned on"),
        (("--split", "test", "--lock", "LOCK", "--answers", "free"), "answers 'free' instead of 'choice'"),
        (("--split", "test", "--lock", "LOCK", "--similarity", "reader"), "other similarity"),
        (("--split", "test", "--lock", "stories.jsonl"), "No lock"),
        (("--split", "nowhere"), "no story of the split 'nowhere'"),
        (("--suite", "telepathy"), "No suite is called 'telepathy'"),
        (("--suite", "odd.yaml", "--split", "test"), "needs renderers that are not installed: telescope"),
        (("--rows", "base,loudest"), "has no row 'loudest'"),
        (("--metrics", "telepathy"), "No metric is called 'telepathy'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(home: Path, lock: Path, more: tuple[str, ...], message: str) -> None:
    words = more if more[0] in ("ablate", "tune") else ("ablate", "stories.jsonl", *more)
    given = [str(lock) if part == "LOCK" else str(home / part) if (home / part).is_file() else part for part in words]
    plugins = [*WITH_DOUBLES, *SIMILARITY, "--out", str(home / "refused")]
    done = CliRunner().invoke(app, [*given[:2], *plugins, *given[2:]])
    assert isinstance(done.exception, KathaError)
    assert done.exception.exit_code == 2
    assert message in str(done.exception)
    assert not (home / "refused").exists()


def test_the_text_output_ends_with_the_conclusion(home: Path) -> None:
    given = (*WITH_DOUBLES, *SIMILARITY, "--resamples", "200", "--split", "test", "--rows", "base,full")
    done = CliRunner().invoke(app, ["ablate", str(home / "stories.jsonl"), *given, "--out", str(home / "text")])
    assert done.exit_code == 0, done.output
    assert "full against base: STG" in done.output
    assert "Conclusion: " in done.output
    assert "Drawn: " in done.output


DECODED = """
const done = arguments[0], images = [...document.images];
for (const image of images) image.loading = "eager";
Promise.all(images.map(image => image.decode().then(() => true, () => false))).then(all => done(all.every(Boolean)));
"""


@pytest.mark.browser
def test_the_reports_fit_a_phone_and_a_desktop(home: Path, lock: Path, tmp_path: Path) -> None:
    ablate(home, "shown", "--split", "test")
    pages = [write_ablation_report(home / "shown"), write_tuning_report(home / "tuning")]
    with chromium(tmp_path) as driver:
        for page in pages:
            for width, dark in ((390, False), (1280, True)):
                resize(driver, width, 900, dark=dark)
                driver.get(page.as_uri())
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width
                assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
                assert "built-in method" not in driver.page_source
                assert driver.execute_async_script(DECODED)  # those below the fold, too, which load when they are near
