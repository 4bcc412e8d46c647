"""The report of an evaluation: every story's answers can be opened, and calibration is drawn from what was answered."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from evals import Watcher, go, records

from katha.app.reports import eval_page as stories
from katha.app.reports.charts import calibration_plots
from katha.app.reports.eval_page import write_eval_report
from katha.schema.scores import ConfidenceRow


class Links(HTMLParser):
    """The targets of a page's links, and the ids in it."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.targets += [found["href"] or ""] if tag == "a" and "href" in found else []
        self.ids |= {found["id"] or ""} if "id" in found else set()


def opens(page: Path, target: str) -> bool:
    """Whether a link of `page` leads to a file or folder that is there, and to an id in it."""
    name, _, place = unquote(target).partition("#")
    found = page if not name else (page.parent / name).resolve()
    return found.exists() and (not place or place in Links(found).ids)


def test_every_story_has_its_boards_and_answers_behind_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stories, "_INLINE", 2)
    monkeypatch.setattr(stories, "_PAGE", 2)
    asked = records(7)
    go(tmp_path, [Watcher()], stories=asked)
    boards = Path(json.loads((tmp_path / "out" / "eval.json").read_text())["boards"]["flux"])
    (boards / "s3" / "report.html").write_text("<!doctype html>")
    report = write_eval_report(tmp_path / "out")
    pages = sorted((tmp_path / "out" / "stories").iterdir())
    assert [page.name for page in pages] == ["0001.html", "0002.html", "0003.html"]
    for page in (report, *pages):
        targets = Links(page).targets
        assert targets
        assert [target for target in targets if not opens(page, target)] == []
        assert "http" not in page.read_text(encoding="utf-8").replace("http-equiv", "")
    linked = [target.partition("#")[2] for target in Links(report).targets if target.startswith("stories/")]
    inside = set(re.findall(r'<span class="chip">(s\d)</span>', report.read_text(encoding="utf-8")))
    assert len(inside) == 2
    assert set(linked) | inside == {record.story_id for record in asked}
    told = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert all(f"What about {name} and moral?" in told for name in linked)
    assert "not asked" not in told
    everything = told + report.read_text(encoding="utf-8")
    assert "s3/report.html" in everything
    monkeypatch.setattr(stories, "_INLINE", 30)
    write_eval_report(tmp_path / "out")
    assert not list((tmp_path / "out" / "stories").iterdir())


def test_the_report_shows_all_blocks_moral_targets_and_boards_that_changed(tmp_path: Path) -> None:
    """A board that is gone keeps its answers in the report; one that was never judged says why."""
    lesson = {"gold_answer": "honesty", "accepted_answers": ["gold"]}
    told = [
        record.model_copy(
            update={
                "recoverability_questions": [
                    item.model_copy(update=lesson if item.question_type == "moral" else {})
                    for item in record.recoverability_questions
                ]
            }
        )
        for record in records(3)
    ]
    go(tmp_path, [Watcher()], stories=told, spoil=["kontext/s1/2.png"])
    (tmp_path / "flux" / "s0" / "3.png").unlink()
    text = write_eval_report(tmp_path / "out").read_text(encoding="utf-8")
    for words in ("Each board&#39;s own valid set", "Questions valid for every board", "Every scored question, before"):
        assert words in text
    assert "Moral targets" in text
    assert 'data-label="Chance">25.0' in text  # four labels were offered
    assert "Changed since it was judged: frame 3 is missing." in text
    assert "Not judged: frame 2 is missing." in text
    assert "What about s0 and causal?" in text


def test_calibration_is_drawn_from_what_was_answered() -> None:
    table = [
        ConfidenceRow(judge="a", condition="image", confidence=level, n=n, right=right)
        for level, n, right in (("low", 10, 20.0), ("medium", 0, None), ("high", 40, 50.0))
    ]
    table.append(ConfidenceRow(judge="silent", condition="image", confidence="low", n=0, right=None))
    (plot,) = calibration_plots(table)
    (series,) = plot.series
    assert plot.judge == "a"
    assert [(dot.x, dot.y) for dot in series.dots] == [("38.7", "88.0"), ("105.3", "58.0")]
    assert float(series.dots[0].r) < float(series.dots[1].r)
    # 10 answers are 3.3 points off, 40 are 33.3 points off
    assert series.error == "27.3"
    assert calibration_plots([]) == []


def test_the_report_says_how_questions_were_made_and_whose_options_leak(tmp_path: Path) -> None:
    made = {"written": 4, "guessed": 1, "rewritten": 1, "kept": 3, "dropped": 1, "model": "openai:any"}
    first, second, third = records(3)
    taken = [item.model_copy(update={"taken_blind": [item.gold_answer] * 2}) for item in first.recoverability_questions]
    leaky = first.model_copy(update={"question_making": made, "recoverability_questions": taken})
    kept = [item.model_copy(update={"taken_blind": ["other", "other"]}) for item in second.recoverability_questions]
    fair = second.model_copy(update={"question_making": made, "recoverability_questions": kept})
    go(tmp_path, [Watcher()], stories=[leaky, fair, third])
    text = write_eval_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "8 questions written, 2 guessed without evidence; 2 rewritten, 2 dropped." in text
    assert re.findall(r"The options of (\w+) leak: (\d+\.\d)%", text) == [("s0", "100.0")]
    go(tmp_path / "plain", [Watcher()])
    assert "questions written" not in write_eval_report(tmp_path / "plain" / "out").read_text(encoding="utf-8")
