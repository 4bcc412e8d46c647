"""The report and the terminal after a board was changed by hand, and of a board that nobody judged."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from katha.agents.editor.edit_session import said
from katha.agents.editor.editing import edit_board
from katha.agents.editor.edits import AddFrame, AmendFrame, ChangeFrame, MoveFrame, RemoveFrame
from katha.app.cli.main import app
from katha.app.reports.checks import planned_checks
from katha.app.reports.page import load_run
from katha.app.reports.run_page import write_report
from katha.schema import Visual

STORY = Path(__file__).parents[2] / "examples" / "fox_and_crow.txt"


def katha(*words: object) -> str:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody judged, as it was drawn, and its cache."""
    base = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(base / "cache"))
        words = ("--judge", "none", "--seeds", "42,43", "--mode", "full", "--size", "96x64")
        (base / "told.txt").write_text(katha("run", STORY, *words, "--out", base / "fox"))
    return base


@pytest.fixture
def run(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "fox"


def strip(run: Path, section: str) -> list[tuple[str, str]]:
    """Each frame of a section's strip: its picture and the words under it."""
    page = write_report(run).read_text()
    part = page[page.index(f'<section id="{section}"') :].partition("</section>")[0]
    found = re.findall(r'<img src="([^"]*)".*?<figcaption><b>.*?</b> <span>(.*?)</span>', part, re.DOTALL)
    return [(picture, words) for picture, words in found]


def test_the_board_before_has_the_words_that_it_had(run: Path) -> None:
    drawn = strip(run, "after")
    edit_board(run, [AddFrame(at=1, prompt="A crow sat in a tree.", caption="A frame by hand.")])
    assert strip(run, "before") == drawn
    assert strip(run, "after")[0][1] == "A frame by hand."
    edit_board(run, [ChangeFrame(frame=2, caption="Words of now."), MoveFrame(frame=4, to=2)])
    assert strip(run, "before") == drawn
    assert "Words of now." in [words for _, words in strip(run, "after")]


def test_another_caption_alone_is_a_change(run: Path) -> None:
    drawn = strip(run, "after")
    edit_board(run, [ChangeFrame(frame=2, caption="Words of now.")])
    assert strip(run, "before") == drawn
    assert "Nothing was changed" not in (run / "report.html").read_text()


def test_without_the_version_that_was_drawn_there_is_no_board_before(run: Path) -> None:
    edit_board(run, [AddFrame(at=1, prompt="A crow sat in a tree.")])
    (run / "versions" / "001" / "plan.json").unlink()
    assert '<section id="before"' not in write_report(run).read_text()


def test_what_nobody_judged_has_pictures_and_words_and_no_scores(made: Path, run: Path) -> None:
    told = (made / "told.txt").read_text()
    assert "score" not in told
    assert "weakest" not in told
    changed = katha("redo", run, "--frame", 2, "--caption", "Words of now.")
    assert "Then frame 2 got another caption, by hand." in changed
    assert "score" not in changed
    assert "score" not in katha("redo", run, "--list")
    page = (run / "report.html").read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["after", "before", "repeat"]
    body = page[page.index("<body") :]
    for word in ('class="numbers"', "not_asked", "not asked", "weakest", "<svg", "not covered", "score"):
        assert word not in body.partition('<section id="repeat"')[0], word
    assert "Words of now." in page
    assert "p-values" not in body


def test_a_change_in_words_ends_in_no_two_marks() -> None:
    words = said([AmendFrame(frame=1, words="Tom holds the key in his hand, round the bow of the key.")])
    assert words.endswith("the bow of the key")


def test_what_was_left_out_is_told_until_a_frame_says_it(run: Path) -> None:
    def told() -> list[str]:
        plan = load_run(run).plan
        visual = Visual(left_out=["The crow proud of her feathers", "The fox snatching a feather"])
        checks = planned_checks(plan.model_copy(update={"visual": visual}))
        return [point.words for check in checks if check.name == "left-out" for point in check.points]

    assert told() == ["The crow proud of her feathers", "The fox snatching a feather"]
    edit_board(run, [ChangeFrame(frame=1, caption="The sly fox snatched a feather.")])
    assert len(told()) == 2, "a caption is the story's text, whether it is drawn or not"
    edit_board(run, [AddFrame(at=1, prompt="The sly fox snatched a feather.")])
    assert told() == ["The crow proud of her feathers"]
    edit_board(run, [AddFrame(at=2, prompt="The proud crow looked at her feathers.")])
    assert told() == []
    edit_board(run, [RemoveFrame(frame=1)])
    assert told() == ["The fox snatching a feather"]
