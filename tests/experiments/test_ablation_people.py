"""People's judgments beside a suite's rows: human recoverability, HMR, localization, correlation and agreement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from doubles import plugins, story
from typer.testing import CliRunner

from katha.agents.context import Plugins
from katha.app.cli.main import app
from katha.app.cli.studies import _people
from katha.app.reports.study_pages import write_ablation_report
from katha.app.reports.study_tables import ablation_tables
from katha.compass.modes import Suite, load_suite
from katha.config import Settings
from katha.errors import InputFileError, RecordError
from katha.eval_bridge.matching.match import normalise
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.schema import StoryRecord
from katha.schema.tables import AblationTable, HumanColumns
from katha.tables import number_of


def forest(number: int) -> StoryRecord:
    text = story(f"story{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text)


STORIES = [forest(number) for number in range(6)]
SUITES = {"components": load_suite("components"), "length": load_suite("length").only(("base", "rerank_only"))}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("people")


@pytest.fixture(autouse=True)
def cache(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(home / "cache"))


def run(home: Path, suite: str, human: Path | None, given: Plugins | None = None) -> AblationTable:
    made = given or plugins()
    config = Settings(planner="doubles:ScenePlanner", renderer="doubles:BlockRenderer", judges=tuple(made.judges))
    chosen: Suite = SUITES[suite]
    job = AblationJob(STORIES, chosen, config, given=made, resamples=200, human=human)
    return run_ablation(job, home / suite).table


def csv(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join((header, *rows)) + "\n")
    return path


def by_row(table: AblationTable) -> dict[str, HumanColumns]:
    return {row.mode: row.human for row in table.rows if row.human is not None}


def answers(home: Path, suite: str, method: str | None, condition: str) -> list[dict[str, Any]]:
    lines = (home / suite / "answers.jsonl").read_text().splitlines()
    return [row for line in lines if (row := json.loads(line))["condition"] == condition and row["method"] == method]


def gold(home: Path, suite: str) -> dict[str, tuple[set[str], str]]:
    """Each question's right answers and its type, by story and id."""
    lines = (home / suite / "stories.jsonl").read_text().splitlines()
    found = [item for line in lines for item in json.loads(line)["recoverability_questions"]]
    return {
        f"{item['story_id']} {item['question_id']}": (
            {normalise(text) for text in (item["gold_answer"], *item["accepted_answers"])},
            item["question_type"],
        )
        for item in found
    }


def judgments(home: Path, method: str | None, condition: str, *, agree: bool) -> list[str]:
    """One row for each of the judge's answers, by somebody who finds it right, or not, as the score does (`agree`)."""
    known, made = gold(home, "components"), []
    for row in answers(home, "components", "full_protocol@42" if method else None, condition):
        right, kind = known[f"{row['story_id']} {row['question_id']}"]
        found = (normalise(row["answer"]) in right) == agree
        made.append(f"a,{row['story_id']},{row['question_id']},{kind},{condition},{int(found)},{method or ''}")
    return made


HEADER = "rater,story_id,question_id,question_type,condition,right,method"


def test_without_judgments_the_human_columns_are_null_and_the_table_says_so(home: Path) -> None:
    table = run(home, "components", None)
    assert table.human is None
    assert {row.human for row in table.rows} == {None}
    assert any("no judgments by people were given (--human FILE)" in note for note in table.notes)
    assert 'id="people"' not in write_ablation_report(home / "components").read_text()


def test_judgments_make_the_table_again_and_nothing_else(home: Path, tmp_path: Path) -> None:
    run(home, "components", None)
    before = (home / "components" / "answers.jsonl").read_bytes()
    people, made = csv(tmp_path / "people.csv", "rater,story_id,ncs", "a,story0,4", "b,story0,2"), plugins()
    table = run(home, "components", people, made)
    assert made.renderer.drawn == made.judges["pixel"].asked == []
    assert (home / "components" / "answers.jsonl").read_bytes() == before
    assert table.human.file == "people.csv"
    assert by_row(table)["full_protocol"].ncs.mean == 3
    assert run(home, "components", None).human is None


def test_people_who_answer_like_the_judge_agree_with_it(home: Path, tmp_path: Path) -> None:
    run(home, "components", None)
    conditions = ((None, "text"), ("base@42", "image"), ("base@42", "text+image"))
    rows = [line for method, name in conditions for line in judgments(home, method, name, agree=True)]
    table = run(home, "components", csv(tmp_path / "people.csv", HEADER, *rows))
    human = by_row(table)
    assert human["full_protocol"].agreement.agreement == 100
    assert human["full_protocol"].agreement.false_accept == 0
    assert human["full_protocol"].ambiguity_detected.detected == 100
    leaked = {name: table.row(name).ambiguity_leakage for name in ("full_protocol", "without_filter")}
    assert leaked == {"full_protocol": 0, "without_filter": 100}  # of what people find defective, what a row keeps
    assert human["without_filter"].ambiguity_detected.detected == 0
    assert human["without_filter"].ambiguity_detected.n == human["full_protocol"].ambiguity_detected.n > 0
    recovered = human["full_protocol"].recoverability
    assert recovered.stg == pytest.approx(recovered.text - recovered.image)
    single = json.loads((home / "components" / "scores.json").read_text())
    assert recovered.n_questions * 3 == single["methods"]["full_protocol"]["judges"]["pixel"]["n_questions"]
    words = _people("full_protocol", table.row("full_protocol").human)
    assert "agreement 100.0" in words
    assert "human STG" in words
    page = write_ablation_report(home / "components").read_text()
    assert "Better / worse" not in page
    assert "fill gain" not in page
    assert 'id="people"' in page
    assert "defects found" in page
    assert "HMR@1" not in page.split('id="people"')[1].split("</section>")[0]


def test_people_who_answer_otherwise_do_not(home: Path, tmp_path: Path) -> None:
    run(home, "components", None)
    rows = judgments(home, "base@42", "image", agree=False)
    human = by_row(run(home, "components", csv(tmp_path / "people.csv", HEADER, *rows)))["full_protocol"]
    told = {"n": len(rows), "agreement": 0, "false_accept": 100, "false_reject": 100}
    assert human.agreement.model_dump() == told


def test_each_row_has_the_judgments_of_its_own_boards(home: Path, tmp_path: Path) -> None:
    header = "rater,story_id,method,target,top1,top2,top3,human_score,failing"
    rows = [
        *(f"a,story{n},base,wisdom,wisdom,courage,honesty,{n},causal" for n in range(6)),
        *(f"a,story{n},rerank_only,wisdom,courage,wisdom,honesty,{6 - n},emotional" for n in range(6)),
        "a,elsewhere,base,wisdom,courage,,,1,causal",
        "a,story0,full,wisdom,courage,,,1,causal",
    ]
    table = run(home, "length", csv(tmp_path / "people.csv", header, *rows))
    human = by_row(table)
    assert human["base"].moral.model_dump() == {"n": 6, "hmr1": 100, "hmr3": 100}
    assert human["rerank_only"].moral.model_dump() == {"n": 6, "hmr1": 0, "hmr3": 100}
    for name in ("base", "rerank_only"):
        assert human[name].localization.n == 6
        assert 0 < human[name].human_score.n <= 6
        assert human[name].recoverability is None
    assert any("14 judgments of people.csv; 2 are about other stories or boards" in note for note in table.notes)


def test_rows_of_one_dimension_locate_nothing(home: Path, tmp_path: Path) -> None:
    people = csv(tmp_path / "people.csv", "story_id,failing", *(f"story{n},causal" for n in range(6)))
    human = by_row(run(home, "components", people))
    assert human["full_protocol"].localization.n == 6
    assert human["without_dimensions"].localization is None


@pytest.mark.parametrize(
    ("suite", "text", "message"),
    [
        ("length", "story_id,failing\nstory0,causal\n", "line 2: it does not say which boards"),
        ("length", "story_id,method,failing\nstory0,basis,causal\n", "line 2: the suite has no boards 'basis'"),
        ("length", "story_id,method,failing\nstory0,base@7,causal\n", "the suite has no boards 'base@7'"),
        ("components", "story_id,failing\nstory0,boredom\n", "column 'failing'"),
        ("components", "target,top1\nwisdom,courage\n", "has no judgment of a story"),
        ("components", "rater,story_id,ncs\na,story0,3\na,story0,4\n", "line 3: repeats line 2"),
    ],
)
def test_judgments_that_cannot_be_used_are_refused(
    home: Path, tmp_path: Path, suite: str, text: str, message: str
) -> None:
    (tmp_path / "people.csv").write_text(text)
    with pytest.raises(RecordError, match=message):
        run(home, suite, tmp_path / "people.csv")


def test_a_file_that_is_not_there_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(InputFileError):
        run(tmp_path, "length", tmp_path / "nobody.csv")
    assert not (tmp_path / "length").exists()


def test_the_command_takes_the_file_of_judgments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--human FILE` was read by no one: not even a missing file was told."""
    monkeypatch.chdir(tmp_path)
    Path("stories.jsonl").write_text(STORIES[0].model_dump_json() + "\n")
    csv(Path("people.csv"), "rater,story_id,method,ncs", "a,story0,base,4")
    plug_ins = "--planner doubles:ScenePlanner --renderer doubles:BlockRenderer --judge doubles:PixelJudge"
    command = f"ablate stories.jsonl --rows base --seeds 42 --json {plug_ins} --similarity doubles:PixelSimilarity"
    with pytest.raises(InputFileError, match=r"nobody\.csv"):
        CliRunner().invoke(app, [*command.split(), "--human", "nobody.csv"], catch_exceptions=False)
    done = CliRunner().invoke(app, [*command.split(), "--human", "people.csv"], catch_exceptions=False)
    table = AblationTable.model_validate(json.loads(done.stdout)["table"])
    assert table.human.file == "people.csv"
    assert by_row(table)["base"].ncs.mean == 4


def test_the_command_ends_with_a_failure_where_nothing_could_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    Path("stories.jsonl").write_text(STORIES[0].model_dump_json() + "\n")
    plug_ins = "--planner doubles:ScenePlanner --renderer doubles:BuggyRenderer --judge doubles:PixelJudge"
    command = f"ablate stories.jsonl --rows base --seeds 42 {plug_ins} --similarity doubles:PixelSimilarity"
    done = CliRunner().invoke(app, command.split(), catch_exceptions=False)
    assert done.exit_code == 1
    assert "No question could be scored" in done.output
    assert "ValueError: half a brush" in done.output


def test_people_s_visual_quality_and_mean_score_are_columns(home: Path, tmp_path: Path) -> None:
    run(home, "components", None)
    rows = ("a,story0,4,3.5", "b,story0,2,4.5", "a,story1,3,1")
    table = run(home, "components", csv(tmp_path / "people.csv", "rater,story_id,visual,human_score", *rows))
    human = by_row(table)["full_protocol"]
    assert (human.visual.mean, human.visual.n, human.human_mean.mean, human.human_mean.n) == (3.0, 3, 3.0, 3)
    told = next(item for item in ablation_tables(table) if item.name == "people")
    columns = [column.heading for column in told.columns]
    first = dict(zip(columns, told.rows[0], strict=True))
    assert number_of(first["Visual"]) == number_of(first["Human score"]) == 3.0
    assert "visual 3.00" in _people("full_protocol", human)
    assert "human score 3.00" in _people("full_protocol", human)
