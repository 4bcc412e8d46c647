"""Which method's pictures a rater chooses, and what it marked, in table, page and command."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from evals import draw, records
from independent_measures import win_rate_p

from katha.app.cli.metrics import tell_measures
from katha.app.reports.metrics_page import write_metrics_report
from katha.eval_bridge.metrics.criterial import BaselineRating, CriterialRating
from katha.eval_bridge.metrics.detectors import resized
from katha.eval_bridge.packets.packets import clean_image
from katha.experiments.metrics.choices import choices
from katha.experiments.metrics.job import MetricsJob, measure
from katha.experiments.metrics.sources import Beside, find_sources
from katha.protocols import Evidence, PlainPrompt
from katha.schema import Scene
from katha.schema.metrics import MetricColumn, MetricValue
from katha.testing import ScriptedJudge

COLUMN = MetricColumn(
    name="criterial/share", metric="criterial", part="share", mode="paper", title="", about="", level="frame",
    average="macro", better="higher", choice=True,
)  # fmt: skip
MARKS = "✓?✗"
POINTS = {"✓": 1.0, "?": 0.5, "✗": 0.0}
WORDS = {"✓": "satisfied", "?": "maybe", "✗": "not"}
CRITERIA = ("Somebody is seen", "It is day")


def rated(method: str, story: str, numbers: Sequence[float | None], skip: int = 0) -> list[MetricValue]:
    """Return a board's values, a scene a number; `skip` inserted frames come first, and every scene has an item."""
    made = []
    for scene, number in enumerate(numbers, 1):
        reason = None if number is not None else "refused"
        about = {"metric": "criterial", "part": "share", "method": method, "story_id": story, "scene": scene}
        made.append(MetricValue(**about, frame=scene + skip, value=number, reason=reason))
        made.append(MetricValue(**about, frame=scene + skip, value=1.0, item="A fox is seen"))
    return made


def test_pictures_are_paired_by_scene_and_boards_by_the_scenes_that_both_have() -> None:
    values = [
        *rated("a", "fox", [1.0, 0.5, 0.25, None]),
        *rated("b", "fox", [0.5, 0.5, 0.75, 1.0], skip=1),
        *rated("a", "owl", [0.9, 0.8]),
        *rated("b", "owl", [0.1, 0.2]),
        *rated("a", "hen", [1.0]),
    ]
    found = {(item.unit, item.method): item for item in choices([COLUMN], ["a", "b"], {COLUMN.name: values})}
    scenes = found["scene", "a"]
    assert (scenes.pairs, scenes.chosen, scenes.undecided, scenes.unscored) == (5, 3, 1, 1)
    assert scenes.rate == pytest.approx(3 / 5)
    assert scenes.chance == pytest.approx((1 - 1 / 5) / 2)
    assert scenes.p == pytest.approx(win_rate_p(3, 1, 5), abs=1e-9)
    assert (found["scene", "b"].chosen, found["scene", "b"].undecided) == (1, 1)
    boards = found["board", "a"]
    assert (boards.pairs, boards.chosen, boards.undecided) == (2, 1, 1), "1.75 / 3 each of the fox, without its scene 4"


def test_a_failed_board_is_unscored_and_other_columns_choose_nothing() -> None:
    failed = [MetricValue(metric="criterial", part="share", method="b", story_id="fox", n=0, reason="no picture")]
    values = {COLUMN.name: [*rated("a", "fox", [1.0, 0.5]), *failed]}
    scene, board = choices([COLUMN], ["a", "b"], values)[:2]
    assert (scene.pairs, scene.unscored, scene.rate, scene.p) == (0, 2, None, None)
    assert (board.pairs, board.unscored) == (0, 1)
    assert choices([COLUMN.model_copy(update={"choice": False})], ["a", "b"], values) == []
    assert choices([COLUMN], ["a"], values) == []


def marks_of(png: bytes) -> str:
    """Return the two marks that the rater gives a picture, by its content."""
    told = hashlib.sha256(png).digest()
    return MARKS[told[0] % 3] + MARKS[told[1] % 3]


def reply(evidence: Evidence, prompt: PlainPrompt) -> str:
    if not evidence.images:
        return "\n".join(f"{at}. {words}" for at, words in enumerate(CRITERIA, 1))
    first, second = marks_of(evidence.images[0])
    if "half-point" in prompt.text:
        return str(2 * POINTS[first])
    return f"1. {CRITERIA[0]} {first}\n2. {CRITERIA[1]} {second}"


def test_table_page_and_command_tell_choices_and_criteria(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    scenes = [Scene(scene_index=at, scene_text=f"Somebody does thing {at}.") for at in range(1, 6)]
    stories = [record.model_copy(update={"scenes": scenes}) for record in records(2)]
    boards = [str(draw(tmp_path / name, stories, shift).folder) for shift, name in enumerate(("flux", "kontext"))]
    job = MetricsJob(
        find_sources(boards, stories, Beside()),
        {"criterial": CriterialRating(), "criterial-baseline": BaselineRating()},
        judge=ScriptedJudge(reply),
        judge_name="scripted",
    )
    result = measure(job, tmp_path / "out")

    marks = {
        (name, record.story_id, scene): marks_of(
            clean_image(resized((tmp_path / name / record.story_id / f"{scene}.png").read_bytes(), 240)).png
        )
        for name in ("flux", "kontext")
        for record in stories
        for scene in range(1, 6)
    }
    wins = ties = 0
    for record in stories:
        for scene in range(1, 6):
            one, other = (
                sum(POINTS[mark] for mark in marks[name, record.story_id, scene]) for name in ("flux", "kontext")
            )
            wins, ties = wins + (one > other), ties + (one == other)
    chosen = next(item for item in result.table.choices if (item.unit, item.method) == ("scene", "flux"))
    assert (chosen.column, chosen.chosen, chosen.undecided, chosen.pairs) == ("criterial/share", wins, ties, 10)
    assert chosen.p == pytest.approx(win_rate_p(wins, ties, 10), abs=1e-9)
    assert {item.column for item in result.table.choices} == {"criterial/share", "criterial-baseline/share"}

    write_metrics_report(result.out, job.sources)
    page = (result.out / "report.html").read_text(encoding="utf-8")
    assert "flux over kontext" in page
    section = page.partition('id="criteria"')[2].partition("</section>")[0]
    story = section.partition("<details")[2].partition("</details>")[0]
    rows = re.findall(r'<td data-label="flux">(\w+)</td><td data-label="kontext">(\w+)</td>', story)
    name = stories[0].story_id
    order = [1, 0]  # criteria stand in the order of the alphabet
    assert rows == [
        tuple(WORDS[marks[method, name, scene][at]] for method in ("flux", "kontext"))
        for scene in range(1, 6)
        for at in order
    ]
    tell_measures(result.table)
    assert (
        f"criterial/share chooses flux over kontext in {wins} of 10 pictures ({ties} undecided)"
        in capsys.readouterr().out
    )
