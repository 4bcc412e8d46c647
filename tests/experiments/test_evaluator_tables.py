"""Tables 3, 54, 58, 60, 61 and 62 by one command each: numbers against a second computation, and all files."""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from evals import draw
from independent_scorer import DIMENSIONS, Independent, Key
from independent_tables import gap, spearman, write_archive
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.evaluator_tables import evaluate_table
from katha.app.reports.data_tables import dagger, score_tables
from katha.app.reports.figures import table_figure
from katha.errors import RecordError, UsageError
from katha.eval_bridge.questions.elements import WRITTEN
from katha.eval_bridge.questions.evaluators import evaluator_questions, load_evaluator
from katha.eval_bridge.scoring.scores import score
from katha.experiments.offline.evaluator_tables import LETTER_RULES, evaluator_table, load_table, matching_rows
from katha.experiments.offline.robustness import read_study
from katha.experiments.offline.scoring import score as score_files
from katha.schema import Answer, StoryRecord
from katha.schema.scores import Comparison
from katha.stories import load_stories
from katha.tables import Column, DataTable, NumberWithInterval

EXAMPLES = Path(__file__).parents[2] / "examples"
JUDGE = "ensemble"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def other(archive: Path) -> Independent:
    return Independent(archive / "stories.jsonl", archive / "answers.jsonl", "reporting", 40, 42)


def judgments(other: Independent) -> list[dict[str, Any]]:
    """What made-up people say: of each board a score and what fails, of some questions that they are defective."""
    throw, rows = random.Random(5), []
    for method in other.methods:
        for story in other.stories:
            said = {"human_score": throw.randint(1, 5), "failing": throw.choice(DIMENSIONS)}
            rows.append({"line": len(rows), "method": method, "story_id": story, **said})
    for story, question in sorted(other.questions):
        for rater in range(3):
            right = throw.random() < 0.6
            named = {"rater": str(rater), "story_id": story, "question_id": question, "condition": "text+image"}
            rows.append({"line": len(rows), **named, "right": right})
    return rows


def slow_row(
    other: Independent, people: Sequence[dict[str, Any]], *, filtered: bool, dimensions: Sequence[str]
) -> dict[str, Any]:
    """One row of Table 58 or 60 by loops: all boards together on their own valid questions."""

    def names(method: str) -> list[Key]:
        kept = other.kept(method, JUDGE, "filtered" if filtered else "raw")
        return [name for name in kept if other.questions[name]["question_type"] in dimensions]

    cells: dict[str, list[dict[str, bool]]] = defaultdict(list)
    for method in other.methods:
        for name in names(method):
            cells[other.questions[name]["question_type"]].append(other.cells[method, JUDGE][name])
    means = {
        condition: sum(sum(cell[condition] for cell in own) / len(own) for own in cells.values()) / len(cells)
        for condition in ("text", "image")
    }
    hits, pairs = [], []
    for row in people:
        if "human_score" not in row:
            continue
        own = [name for name in names(row["method"]) if name[0] == row["story_id"]]
        board = other.means(own, row["method"], JUDGE)
        if board is not None:
            pairs.append((board["image"], row["human_score"]))
        types = sorted({other.questions[name]["question_type"] for name in own}, key=DIMENSIONS.index)
        gaps = {
            kind: gap(other, [n for n in own if other.questions[n]["question_type"] == kind], row["method"], JUDGE) or 0
            for kind in types
        }
        best = max(gaps.values(), default=0)
        most = [kind for kind, value in gaps.items() if abs(value - best) < 1e-12]
        hits.append(len(types) > 1 and best > 0 and most == [row["failing"]])
    votes = defaultdict(list)
    for row in people:
        if "right" in row:
            votes[row["story_id"], row["question_id"]].append(row["right"])
    kept = [
        not filtered or bool(other.cells[method, JUDGE][name].get("text+image"))
        for name, cast in votes.items()
        if sum(cast) < len(cast) / 2
        for method in other.methods
    ]
    return {
        "image": 100 * means["image"],
        "stg": 100 * (means["text"] - means["image"]),
        "localization": 100 * sum(hits) / len(hits) if len(dimensions) > 1 else None,
        "human": spearman([a for a, _ in pairs], [b for _, b in pairs]),
        "leakage": 100 * sum(kept) / len(kept),
        "n_valid": sum(len(names(method)) for method in other.methods),
    }


@pytest.mark.parametrize(
    ("table", "row", "filtered", "dimensions"),
    [
        (58, "full", True, DIMENSIONS),
        (58, "without_filter", False, DIMENSIONS),
        (60, "causal_consequence", True, ("causal", "consequence")),
        (60, "moral_only", True, ("moral",)),
        (72, "without_moral", True, tuple(name for name in DIMENSIONS if name != "moral")),
    ],
)
def test_a_row_agrees_with_a_second_computation(
    archive: Path, other: Independent, table: int, row: str, filtered: bool, dimensions: Sequence[str]
) -> None:
    study = read_study(archive / "stories.jsonl", [archive / "answers.jsonl"], matching="exact-set")
    studies = dict.fromkeys(load_table(table).studies, study)
    people = judgments(other)
    found = next(item for item in evaluator_table(table, studies, people).rows if item.row == row)
    wanted = slow_row(other, people, filtered=filtered, dimensions=dimensions)
    assert found.human_score is not None
    value = found.localization.right if found.localization is not None else None
    mine = {
        "image": found.image,
        "stg": found.stg,
        "localization": value,
        "n_valid": found.n_valid,
        "human": found.human_score.spearman,
        "leakage": found.ambiguity_leakage,
    }
    for name, number in wanted.items():
        assert mine[name] == (None if number is None else pytest.approx(number, abs=1e-6, rel=0)), name


def test_tables_name_evaluators_and_rows_that_there_are() -> None:
    assert list(load_table(58).rows)[-1] == list(load_table(60).rows)[-1] == "full"
    assert len(load_table(58).rows) == len(load_table(60).rows) == 7
    third = [load_evaluator(row.evaluator) for row in load_table(3).rows.values()]
    assert [item.written for item in third[4:7]] == ["tifa", "dsg", "geneval"]
    built_up = third[7:]
    parts = [(item.own, item.dimensions, item.contrastives) for item in built_up]
    assert parts == [(False, False, False), (True, False, False), (True, True, False), (True, True, True)]
    assert [row.evaluator for row in load_table(54).rows.values()][4:] == [
        *("no-contrastives", "no-dimensions", "kathatrace"),
    ]
    prompts = load_table(72).studies
    assert {asked["variant"] for asked in prompts.values()} == {"neutral", "strict", "uncertain"}
    assert list(prompts) == ["kathatrace-neutral", "kathatrace-strict", "kathatrace-uncertain"]
    with pytest.raises(UsageError, match="Table 72 chooses its prompts"):
        evaluate_table("s.jsonl", "boards", "out", table=72, variant="paper")
    with pytest.raises(UsageError, match="Table 59 is none"):
        load_table(59)


def test_questions_without_dimensions_are_under_one_instruction() -> None:
    record = load_stories(str(EXAMPLES))[0]
    for name in ("qa-only", "transitions"):
        asked = evaluator_questions(record, load_evaluator(name))
        assert len(asked) > 3
        assert {(item.question_type, (item.model_extra or {}).get("instruction")) for item in asked} == {
            ("consequence", "undivided")
        }
    scenes = evaluator_questions(record, load_evaluator("no-transitions"))
    assert [item.question for item in scenes] == [
        item.question for item in evaluator_questions(record, load_evaluator("qa-only"))
    ]
    assert len({item.question_type for item in scenes}) > 1


def with_elements(record: StoryRecord, *kinds: str) -> StoryRecord:
    """A record with two questions of each kind that a model is taken to have written."""
    names = ["fox", "crow", "cheese", "tree", "river"]
    rows = [
        {
            "question_id": f"{record.story_id}_element_{at}",
            "story_id": record.story_id,
            "question_type": "action_visibility",
            "question": f"What is in scene {at}?",
            "gold_answer": names[at],
            "accepted_answers": [names[at]],
            "options": [*names, "Unclear"],
        }
        for at in (1, 2)
    ]
    return StoryRecord.model_validate({**record.model_dump(mode="json"), WRITTEN: dict.fromkeys(kinds, rows)})


@pytest.mark.parametrize("table", [3, 58, 60, 72])
def test_one_command_asks_for_every_row_and_writes_the_table(
    table: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KATHA_ALLOW_CODE", "choosers:HashChooser")
    stories = load_stories(str(EXAMPLES))[:2]
    source = tmp_path / "stories.jsonl"
    if table == 3:  # two of the three kinds of questions by a model are there
        stories = [with_elements(record, "tifa", "geneval") for record in stories]
    source.write_text("".join(record.model_dump_json() + "\n" for record in stories))
    draw(tmp_path / "flux", stories)
    people = [
        {"story_id": record.story_id, "human_score": at, "failing": "causal"} for at, record in enumerate(stories)
    ]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in people))
    words = ["eval", str(source), "--boards", str(tmp_path / "flux"), "--judge", "choosers:HashChooser"]
    words += ["--table", str(table), "--out", str(tmp_path / "out")]
    dry = CliRunner().invoke(app, [*words, "--dry-run"])
    assert dry.exit_code == 0, dry.output
    assert not (tmp_path / "out").exists()
    done = CliRunner().invoke(app, [*words, "--human", str(tmp_path / "people.jsonl"), "--resamples", "20"])
    assert done.exit_code == 0, done.output
    spec = load_table(table).asked_of(stories)
    assert ("tifa_model" in spec.rows, "dsg_model" in spec.rows, "geneval" in spec.rows) == (
        (True, False, True) if table == 3 else (False, False, False)
    )
    notes = json.loads((tmp_path / "out" / f"table-{table}.json").read_text())["notes"]
    assert any("dsg-model" in note for note in notes) == (table == 3)
    assert all((tmp_path / "out" / name / "eval.json").is_file() for name in spec.studies)
    rows = list(csv.DictReader((tmp_path / "out" / f"table-{table}.csv").read_text().splitlines()))
    assert [row["Row"] for row in rows] == list(spec.rows)
    assert all(int(row["Scored"]) > 0 for row in rows)
    assert "toprule" in (tmp_path / "out" / f"table-{table}.tex").read_text()


def test_records_are_scored_as_their_file_is(archive: Path) -> None:
    stories, answers = archive / "stories.jsonl", archive / "answers.jsonl"
    by_file = score_files(stories, answers, matching="exact-set", resamples=20)
    records = load_stories(str(stories))
    assert score_files(records, answers, matching="exact-set", resamples=20) == by_file
    frame = by_file.to_frame()
    block = by_file.methods[frame.loc[0, "method"]].judges[frame.loc[0, "judge"]].raw
    assert (frame.loc[0, "block"], frame.loc[0, "stg"], frame.loc[0, "n"]) == ("raw", block.stg, block.n)
    with pytest.raises(RecordError, match="No story has a recoverability question"):
        score_files([record.model_copy(update={"recoverability_questions": []}) for record in records], answers)


def test_people_without_a_table_are_refused() -> None:
    words = ["eval", "x", "--boards", "y", "--out", "z", "--human", "h"]
    with pytest.raises(UsageError, match="--human goes with --table"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_matching_rules_agree_with_a_second_computation(archive: Path, other: Independent, tmp_path: Path) -> None:
    pairs = [
        ("the fox", "fox", ["a fox"], "wrong"),
        ("fox", "fox", ["a fox"], "right"),
        ("a fox", "fox", ["a fox"], "right"),
        ("the crow", "fox", [], "wrong"),
        ("crow", "crow", [], "wrong"),
    ]
    rows = [
        {"question": "Who?", "gold_answer": gold, "accepted_answers": accepted, "answer": said, "label": label}
        for said, gold, accepted, label in pairs
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    study = read_study(archive / "stories.jsonl", [archive / "answers.jsonl"], matching="exact-set")
    people = [row for row in judgments(other) if "human_score" in row]
    found = {row.rule: row for row in matching_rows(study, pairs=tmp_path / "pairs.jsonl", judgments=people)}
    assert tuple(found) == (*LETTER_RULES, "lemma-set")
    exact = found["exact-set"]
    assert (exact.n_pairs, exact.false_accept, exact.false_reject) == (5, pytest.approx(100 / 3), 0.0)
    assert (found["exact-string"].false_accept, found["exact-string"].false_reject) == (pytest.approx(100 / 3), 50.0)
    wanted = slow_row(other, people + judgments(other), filtered=True, dimensions=DIMENSIONS)["human"]
    assert exact.human_correlation == pytest.approx(wanted, abs=1e-6, rel=0)


def test_one_command_writes_every_table_of_an_archive(archive: Path, other: Independent, tmp_path: Path) -> None:
    gold = [row for row in judgments(other) if "right" in row]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in gold))
    scored = [row | {"visual": 4} for row in judgments(other) if "human_score" in row]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored))
    words = ["bench", "tables", str(archive / "stories.jsonl"), "--answers", str(archive / "answers.jsonl")]
    words += ["--human", str(tmp_path / "people.jsonl"), "--gold", str(tmp_path / "gold.jsonl"), "--resamples", "20"]
    done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "tables"), "--matching", "exact-set", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    written = {Path(name).name for name in told["files"]}
    stems = ("table-2", "table-4", "table-30", "table-56", "table-57", "table-59-reliability", "table-62", "table-68")
    assert {f"{stem}{end}" for stem in stems for end in (".csv", ".tex")} <= written
    assert {f"{stem}{end}" for stem in ("table-2", "table-4", "table-57") for end in (".svg", ".png")} <= written
    assert all((tmp_path / "tables" / name).stat().st_size for name in written)
    first = next(csv.DictReader((tmp_path / "tables" / "table-2.csv").read_text().splitlines()))
    method = first["Method"]
    own = [row["human_score"] for row in scored if row["method"] == method]
    assert float(first["Human score"]) == pytest.approx(sum(own) / len(own))
    assert float(first["Visual"]) == 4.0 if first["Visual"] else True
    image = other.block(method, JUDGE, "common_valid")["image"]
    assert float(first["Image"]) == pytest.approx(image, abs=1e-6, rel=0)


def paired(a: str, b: str, p: float, *, headline: bool = True) -> Comparison:
    told = {"a": a, "b": b, "judge": JUDGE, "block": "common_valid", "n_stories": 12, "headline": headline, "family": 3}
    numbers = dict.fromkeys(("stg_a", "stg_b", "difference", "ci95", "p_bootstrap", "p_corrected"))
    test = {"p": None, "n_nonzero": 0, "rank_biserial": None}
    return Comparison.model_validate({**told, **numbers, "wilcoxon": test, "p_bootstrap_corrected": p})


def test_the_dagger_is_over_the_strongest_of_the_others_that_is_under_control() -> None:
    stg = {"ours": 10.0, "next": 20.0, "far": 40.0, "closed": 15.0, "lost": None}
    pairs = [paired("next", "ours", 0.009), paired("far", "ours", 0.0001), paired("closed", "ours", 0.0001)]
    assert dagger(pairs, stg, ["closed"]) == ("ours", "next")
    assert dagger(pairs[1:], stg, ["closed"]) is None, "better than a weak one is no finding"
    assert dagger([paired("next", "ours", 0.01)], stg, ["closed"]) is None
    assert dagger([paired("next", "ours", 0.001, headline=False)], stg, ["closed"]) is None
    assert dagger(pairs, {"ours": 10.0}) is None


def test_table_2_has_its_dagger_where_the_bootstrap_shows_it(tmp_path: Path) -> None:
    """One method answers every question and the other none, on twelve stories."""
    records = [
        {
            "story_id": f"s{at}",
            "story_text": "A fox ran.",
            "recoverability_questions": [
                {"question_id": f"q{n}", "question": "Who?", "question_type": kind, "gold_answer": "fox"}
                for n, kind in enumerate(DIMENSIONS)
            ],
        }
        for at in range(12)
    ]
    (tmp_path / "stories.jsonl").write_text("".join(json.dumps(row) + "\n" for row in records))
    rows = [
        {"method": method if "image" in condition else None, "judge": "j", "story_id": row["story_id"],
         "question_id": item["question_id"], "condition": condition, "status": "ok",
         "answer": "owl" if (method, condition) == ("poor", "image") else "fox"}
        for row in records for item in row["recoverability_questions"]
        for method in ("good", "poor") for condition in ("text", "image", "text+image")
    ]  # fmt: skip
    scores = score(load_stories(tmp_path / "stories.jsonl"), [Answer.model_validate(row) for row in rows],
                   matching="exact-set", questions="all", resamples=1000)  # fmt: skip
    told = next(table for table in score_tables(scores) if table.name == "table-2").latex()
    assert told.count(r"\textsuperscript{\textdagger}}") == 2, "the column's room, and the one number"
    assert r"\textdagger{}: loses less than poor, the strongest of the others" in told
    line = next(row for row in told.splitlines() if row.startswith("good"))
    assert r"0.0{\textsuperscript{\textdagger}}" in line


def test_a_chart_shows_the_rows_and_columns_that_have_intervals() -> None:
    columns = (Column(heading="Of"), Column(heading="Rho", digits=2), Column(heading="STG"))
    rows = (("ranks", NumberWithInterval(0.5, (0.1, 0.9)), None), ("group", None, 41.0))
    drawn = table_figure(DataTable(name="t", title="T", columns=columns, rows=rows))
    assert drawn is not None
    assert drawn.alt == "ranks: Rho 0.5"
    assert b"group" not in drawn.svg
    assert drawn.png.startswith(b"\x89PNG")
    assert table_figure(DataTable(name="t", title="T", columns=columns[::2], rows=(("group", 41.0),))) is None
