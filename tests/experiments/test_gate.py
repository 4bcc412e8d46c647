"""With a judge at chance no output prints a gap: every file that a study leaves is walked."""

from __future__ import annotations

import csv
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import PixelJudge, _hash, plugins, story
from evals import draw
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.reports.page import own_numbers, unscored
from katha.app.reports.study_pages import write_ablation_report
from katha.app.reports.study_tables import ablation_tables
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.errors import UsageError
from katha.eval_bridge.people.recoverability import RaterAnswers, recoverability
from katha.eval_bridge.scoring.gate import CANNOT, doubts, unmeasured
from katha.eval_bridge.scoring.rows import RowCounts
from katha.eval_bridge.scoring.scores import score
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.offline.robustness import read_study, robustness
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import CONDITIONS, DIMENSIONS, Answer, Question, StoryRecord
from katha.schema.scores import JudgeScores, Scores
from katha.stories import load_stories
from katha.tables import write_tables

ROOT = Path(__file__).parents[2]
GAPS = {
    *("stg", "stg_ci95", "delta_stg", "gap", "latent_gap", "difference", "stg_a", "stg_b", "ci95_stg"),
    *("text_minus_image", "default_stg", "cross_validated", "filtered_stg", "raw_stg", "common_valid_stg"),
    *("common_valid_ci95", "unguessed_stg", "stg_before", "stg_after"),
}


def gaps(value: Any, where: str = "") -> Iterator[str]:
    """Yield every place of a JSON value where a gap stands."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name in GAPS and item is not None and not isinstance(item, dict):
                yield f"{where}/{name}: {item}"
            yield from gaps(item, f"{where}/{name}")
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from gaps(item, f"{where}/{at}")


def archive(text: float, *, stories: int = 12, options: bool = True) -> tuple[list[StoryRecord], list[Answer]]:
    """Stories whose judge has so many of the questions right from the text, and guesses among four from images."""
    dice, records, rows = random.Random(7), [], []
    for number in range(stories):
        asked = [
            Question(
                question_id=f"q{at}",
                question_type=DIMENSIONS[at % 6],
                question="?",
                gold_answer="a",
                accepted_answers=["a"],
                options=["a", "b", "c", "d", "Unclear"] if options else None,
                role="reporting",
            )
            for at in range(10)
        ]
        records.append(StoryRecord(story_id=f"s{number:02d}", story_text="x", recoverability_questions=asked))
        for item in asked:
            for method, condition, right in (
                (None, "text", text),
                *(
                    (name, seen, rate)
                    for name in ("m", "n")
                    for seen, rate in (("image", 0.25), ("text+image", max(text, 0.5)))
                ),
            ):
                said = "a" if dice.random() < right else "b"
                told = {"method": method, "judge": "j", "story_id": f"s{number:02d}", "question_id": item.question_id}
                rows.append(Answer.model_validate(told | {"condition": condition, "status": "ok", "answer": said}))
    return records, rows


def scored(text: float, **more: Any) -> Scores:
    return score(*archive(text, **more), matching="exact-set", resamples=50)


def entries(scores: Scores) -> list[JudgeScores]:
    return [entry for method in scores.methods.values() for entry in method.judges.values()]


def test_a_judge_at_chance_has_no_gap_in_the_scores() -> None:
    scores = scored(0.25)
    assert not list(gaps(scores.model_dump(mode="json")))
    for entry in entries(scores):
        assert entry.unmeasured is not None
        assert "a guess is right in 25%" in entry.unmeasured
        assert entry.raw.text is not None
        assert entry.filtered.text is None
    assert own_numbers(scores, "m").stg is None
    assert any(f"{CANNOT} (j): from the text" in line for line in unscored(scores))
    assert not any("STG is" in note or "disagree" in note for note in scores.notes)


def test_a_judge_that_understands_has_one() -> None:
    scores = scored(0.9)
    assert all(entry.unmeasured is None and entry.filtered.stg is not None for entry in entries(scores))
    assert list(gaps(scores.model_dump(mode="json")))
    few = scored(0.9, stories=2)
    assert all(entry.filtered.stg is not None and entry.filtered.ci95.stg is None for entry in entries(few))


def test_what_is_guessed_without_evidence_is_no_understanding() -> None:
    records, rows = archive(0.6, options=False)
    guesses = [row.model_copy(update={"condition": "none"}) for row in rows if row.condition == "text"]
    found = entries(score(records, [*rows, *guesses], matching="exact-set", resamples=50))
    assert all("adds nothing to what is guessed" in (entry.unmeasured or "") for entry in found)


def test_a_file_of_before_the_rule_is_held_to_it() -> None:
    told = scored(0.9).methods["m"].judges["j"]
    assert unmeasured(told) is None
    assert "valid" in (unmeasured(told.model_copy(update={"n_valid": 30})) or "")
    low = told.raw.model_copy(update={"text": 12.0, "ci95": told.raw.ci95.model_copy(update={"text": (4.0, 20.0)})})
    assert "from the text 12%" in (unmeasured(told.model_copy(update={"raw": low})) or "")


@dataclass
class Guesser(PixelJudge):
    """Answers by a hash, whatever it is shown."""

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            options = prompt.options or ("a", "b")
            number = _hash(evidence.condition, prompt.question, len(evidence.images))[0]
            yield JudgeReply("ok", options[number % len(options)], image_support="supported", confidence="medium")


@pytest.fixture
def ablated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    records = [
        StoryRecord.model_validate_json(
            story(f"s{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
        )
        for number in range(6)
    ]
    config = Settings(planner="doubles:ScenePlanner", renderer="doubles:BlockRenderer", judges=("pixel",), seeds=(42,))
    suite = load_suite("length").only(("base", "bridge_always", "full"))
    made = AblationJob(records, suite, config, given=plugins(judges={"pixel": Guesser()}), resamples=50)
    table = run_ablation(made, tmp_path / "out").table
    write_ablation_report(tmp_path / "out")
    write_tables(tmp_path / "out", ablation_tables(table))
    return tmp_path / "out"


def test_an_ablation_by_a_judge_at_chance_prints_no_gap_anywhere(ablated: Path) -> None:
    for path in ablated.glob("*.json"):
        assert not list(gaps(json.loads(path.read_text()), path.name))
    table = json.loads((ablated / "table.json").read_text())
    assert all(row["unmeasured"] for row in table["rows"])
    assert table["conclusion"]["verdict"] == "undecided"
    assert CANNOT in table["conclusion"]["text"] + " ".join(table["notes"])
    assert table["cases"] is None
    page = (ablated / "report.html").read_text()
    assert CANNOT in page
    assert not re.search(r"STG [+-]?\d", page)
    tables = [path for path in ablated.rglob("*") if path.suffix in (".csv", ".tex", ".md") and path.is_file()]
    assert tables
    for path in tables:
        for row in csv.DictReader(path.read_text().splitlines()) if path.suffix == ".csv" else ():
            told = {name: value for name, value in row.items() if name and ("STG" in name or "hange" in name)}
            assert not any(re.search(r"\d", value or "") for value in told.values()), (path.name, told)
    assert any(path.suffix == ".csv" for path in tables)


def test_tables_of_a_study_that_cannot_be_measured_are_refused(ablated: Path) -> None:
    with pytest.raises(UsageError, match=CANNOT):
        robustness(read_study(ablated), resamples=20)


SHOWN = re.compile(r"STG (?:of |is )?(?:<b>)?[+-]?\d+(?!\d*%)|[+-]?\d+\.\d points|difference [+-]?\d")
"""A gap in words; a table's cells are read by their columns."""


def shown(text: str) -> list[str]:
    """Return what a terminal or a page says of a gap: in words, or under a column STG of a table of fixed columns."""
    found = SHOWN.findall(text)
    lines = text.splitlines()
    for at, head in enumerate(lines):
        end = re.search(r"\bSTG\b(?=\s{2,}|$)", head)
        if end is not None and not head.lstrip().startswith(("Note", "image, STG")):
            rows = lines[at + 1 : at + 4]
            found += [row for row in rows if re.search(r"\d\s*$", row[: end.end()][-8:].rstrip()[-3:] + " ")]
    return found


def walked(folder: Path) -> list[str]:
    """Return every gap in the files of a folder, whatever their kind."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".jsonl"):
            whole = [path.read_text()] if path.suffix == ".json" else path.read_text().splitlines()
            found += [f"{path.name}{place}" for text in whole for place in gaps(json.loads(text))]
        elif path.suffix == ".csv":
            for row in csv.DictReader(path.read_text().splitlines()):
                told = {name: value for name, value in row.items() if name and re.search("STG|hange|[Dd]iff", name)}
                found += (
                    [f"{path.name}: {told}"] if any(re.search(r"\d", value or "") for value in told.values()) else []
                )
        elif path.suffix in (".html", ".md", ".tex", ".yaml"):
            found += [f"{path.name}: {item}" for item in SHOWN.findall(path.read_text())]
    return found


@pytest.fixture
def chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six of the examples, and boards of theirs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KATHA_ALLOW_CODE", "choosers:HashChooser doubles:BlockRenderer doubles:ScenePlanner")
    records = load_stories(str(ROOT / "examples"))[:6]
    Path("stories.jsonl").write_text("".join(record.model_dump_json() + "\n" for record in records))
    Path("one.jsonl").write_text(records[0].model_dump_json() + "\n")
    draw(Path("flux"), records)
    draw(Path("other"), records, 1)
    return tmp_path


DRAWN = ("--renderer", "doubles:BlockRenderer", "--planner", "doubles:ScenePlanner", "--judge", "choosers:HashChooser")
VERBS = {
    "eval": ("eval", "stories.jsonl", "--boards", "flux", "--boards", "other", *DRAWN[4:], "--resamples", "20"),
    "run": ("run", "one.jsonl", *DRAWN),
    "compare": ("compare", "stories.jsonl", *DRAWN, "--mode", "base", "--mode", "full", "--seeds", "42"),
    "tune": ("tune", "stories.jsonl", *DRAWN, "--seeds", "42", "--settings", "50", "--lock", "lock.yaml", "--keep"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_by_a_judge_at_chance_prints_no_gap(verb: str, chance: Path) -> None:
    done = CliRunner().invoke(app, [*VERBS[verb], "--out", "out"])
    assert done.exit_code in (0, 1), done.output
    assert CANNOT in done.output
    assert shown(done.output) == []
    assert walked(chance / "out") == []
    pages = list((chance / "out").rglob("report.html"))
    assert pages
    assert all(CANNOT in page.read_text() for page in pages)
    if verb == "eval":
        scored = CliRunner().invoke(
            app, ["score", "stories.jsonl", "--answers", "out/answers.jsonl", "--out", "s.json"]
        )
        assert CANNOT in scored.output
        assert shown(scored.output) == list(gaps(json.loads(Path("s.json").read_text()))) == []
        sent = CliRunner().invoke(app, ["export", "out", "--to", "hub-results", "--dataset", "a/b", "--out", "hub"])
        assert isinstance(sent.exception, UsageError)
        assert CANNOT in str(sent.exception)
        assert not Path("hub").exists()


def test_the_walk_finds_a_gap_in_every_kind_of_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"rows": [{"stg": 3.2}]}')
    (tmp_path / "b.csv").write_text("Method,STG\nflux,12.0\n")
    (tmp_path / "c.html").write_text("<p>The best reaches an STG of 4.1, of others STG of <b>2</b>.</p>")
    assert len(walked(tmp_path)) == 4
    assert shown("  board   image     STG   valid\n  flux     61.0    12.5   3 of 6\n")
    assert not shown("  board   image     STG   valid\n  flux     61.0       -   3 of 6\n")


def test_rows_that_rest_on_next_to_nothing_are_named_together() -> None:
    rows = [("base", ["moral"], False), ("full", ["moral"], True), ("other", [], False)]
    told = doubts([(name, [*thin], below) for name, thin, below in rows])
    assert told[0].startswith("base, full: moral rest on one or two questions")
    assert told[1].startswith("full: STG below zero")
    assert doubts([("other", [], False)]) == []
    counts = np.zeros((3, 2, len(DIMENSIONS), 4))
    counts[:, 0, 0, 0], counts[:, 1, 0, 0], counts[:, 1, 1, 0] = 1, 2, 2  # three boards of each story
    assert RowCounts(counts, 0, 0).thin == [DIMENSIONS[1]], "two questions, whatever the number of boards"


def test_people_at_chance_have_no_gap() -> None:
    dice = random.Random(1)
    rows = [
        {"rater": f"r{rater}", "story_id": f"s{at}", "question_id": "q", "question_type": "causal"}
        | {"condition": condition, "method": "m", "right": dice.random() < (0.7 if condition == "text+image" else 0.08)}
        for rater in range(3)
        for at in range(9)
        for condition in CONDITIONS
    ]
    found, notes = recoverability(RaterAnswers.of(rows), 0)
    assert not list(gaps(found.model_dump(mode="json")))
    assert any("no gap can be measured" in note for note in notes)
