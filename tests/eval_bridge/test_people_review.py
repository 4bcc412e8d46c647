"""Review of records: pages, votes, adjudication, rates and agreement, against a count by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import chromium
from raters import answer_file, one
from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.review import pack_review, score_review
from katha.errors import RecordError
from katha.eval_bridge.people.study import Screen, Study, StudyItem, StudyPage
from katha.experiments.people import read_study

EXAMPLES = Path(__file__).parents[2] / "examples"
STORIES = ("fox_and_crow", "lion_and_mouse")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "stories").mkdir()
    for name in STORIES:
        (tmp_path / "stories" / f"{name}.json").write_text((EXAMPLES / f"{name}.json").read_text())
    pack_review(str(tmp_path / "stories"), tmp_path / "review")
    return tmp_path


def hand_in(folder: Path, study: Study, minds: dict[str, dict[tuple[str, str], str]]) -> None:
    """Reviewers who find everything as the first decision says, but for what is named by kind and place."""
    (folder / "back").mkdir(exist_ok=True)
    for page, (name, odd) in zip(study.pages, minds.items(), strict=True):
        text = answer_file(study, page, lambda screen, item, odd=odd: said(screen, item, odd), rater=name)
        (folder / "back" / f"{name}.json").write_text(text)


def said(screen: Screen, item: StudyItem, odd: dict[tuple[str, str], str]) -> int | list[str]:
    if item.kind == "note":
        return "the wolf is missing" if (screen.story_id, item.question_id) in odd else ""  # type: ignore[return-value]
    wanted = odd.get((screen.story_id, item.question_id or ""))
    return item.options.index(wanted) if wanted is not None else 0


def kinds(page: StudyPage) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, item in page.items():
        if item.kind == "choice":
            found[item.criterion or ""] = found.get(item.criterion or "", 0) + 1
    return found


def test_every_unit_of_a_record_is_reviewed_by_three(folder: Path) -> None:
    study, records = read_study(folder / "review")
    assert len(study.pages) == 3
    wanted = {
        "scenes": 2,
        "transition": sum(len(record.transitions) for record in records),
        "question": sum(len(record.recoverability_questions) for record in records),
    }
    for page in study.pages:
        found = kinds(page)
        assert {name: found[name] for name in wanted} == wanted
    html = (folder / "review/pages/reviewer-01.html").read_text()
    assert "are the accepted answers enough" in html


def test_votes_decide_and_what_they_leave_open_is_adjudicated(folder: Path) -> None:
    study, records = read_study(folder / "review")
    first, second = records
    bad, doubted = first.recoverability_questions[0].question_id, first.recoverability_questions[1].question_id
    fox, lion = first.story_id, second.story_id
    minds = {
        "a": {(fox, bad): "invalid", (fox, doubted): "invalid", (lion, "scenes"): "unusable"},
        "b": {(fox, bad): "invalid", (fox, doubted): "needs edit", (lion, "scenes"): "unusable"},
        "c": {(fox, "1 to 2"): "corrected"},
    }
    hand_in(folder, study, minds)
    words = ["people", "adjudicate", str(folder / "back"), "--study", str(folder / "review")]
    done = CliRunner().invoke(app, [*words, "--out", str(folder / "out"), "--json"], catch_exceptions=False)
    rows = {row["unit"]: row for row in json.loads(done.stdout)["units"]}
    count = sum(len(record.recoverability_questions) for record in records)
    question = rows["question"]
    assert (question["items"], question["judgments"], question["open"]) == (count, 3 * count, 1)
    assert (question["unanimous"], question["majority"]) == (count - 2, 1)
    assert question["rejected"] == pytest.approx(100 / (count - 1))
    assert (question["final"], rows["scenes"]["rejected"]) == (count - 2, 50.0)
    assert rows["transition"]["edit_or_reject"] == 0.0
    labels = [["valid"] * 3 for _ in range(count - 2)] + [["invalid", "invalid", "valid"]]
    labels.append(["invalid", "needs edit", "valid"])
    table, _ = aggregate_raters([[("valid", "needs edit", "invalid").index(word) for word in row] for row in labels])
    assert question["fleiss_kappa"] == pytest.approx(fleiss_kappa(table))
    kept = [json.loads(line) for line in (folder / "out/stories.jsonl").read_text().splitlines()]
    assert [story["story_id"] for story in kept] == [fox]
    assert bad not in {item["question_id"] for item in kept[0]["recoverability_questions"]}
    assert kept[0]["validation_status"] == "reviewed: open"
    (still,) = [json.loads(line) for line in (folder / "out/adjudicate.jsonl").read_text().splitlines()]
    assert (still["id"], still["notes"]) == (doubted, dict.fromkeys("ab", "the wolf is missing"))
    (folder / "decided.jsonl").write_text(json.dumps({**still, "decision": "valid", "note": "clear"}) + "\n")
    found = score_review([folder / "back"], folder / "review", folder / "out", folder / "decided.jsonl")
    settled = next(verdict for verdict in found.verdicts if verdict.id == doubted)
    assert (settled.standing, settled.effect, settled.notes["adjudicator"]) == ("adjudicated", "pass", "clear")
    (folder / "decided.jsonl").write_text(json.dumps({**still, "decision": "fine"}) + "\n")
    with pytest.raises(RecordError, match="'fine' about question"):
        score_review([folder / "back"], folder / "review", folder / "out", folder / "decided.jsonl")


def test_what_is_to_be_edited_is_corrected_by_field(folder: Path) -> None:
    study, records = read_study(folder / "review")
    first = records[0]
    fox, asked = first.story_id, first.recoverability_questions[0]
    odd = {(fox, asked.question_id): "needs edit", (fox, "1 to 2"): "corrected", (fox, "scenes"): "flawed"}
    hand_in(folder, study, {"a": odd, "b": odd, "c": {}})
    score_review([folder / "back"], folder / "review", folder / "out")
    still = {row["unit"]: row for row in map(json.loads, (folder / "out/adjudicate.jsonl").read_text().splitlines())}
    assert {unit: row["decision"] for unit, row in still.items()} == {
        "question": "needs edit",
        "transition": "corrected",
        "scenes": "flawed",
    }
    right = {"gold_answer": "The vixen", "accepted_answers": ["The vixen", "a fox"]}
    new = {"question": right, "transition": {"emotion": "The fox is vain."}, "scenes": {"2": "A crow sits on a wall."}}
    lines = [json.dumps({**row, "corrected": new[unit]}) for unit, row in still.items()]
    (folder / "decided.jsonl").write_text("\n".join(lines) + "\n")
    found = score_review([folder / "back"], folder / "review", folder / "out", folder / "decided.jsonl")
    assert {verdict.standing for verdict in found.verdicts} == {"unanimous", "majority"}
    assert (folder / "out/adjudicate.jsonl").read_text() == ""
    kept = next(
        row
        for row in map(json.loads, (folder / "out/stories.jsonl").read_text().splitlines())
        if row["story_id"] == fox
    )
    wanted = first.model_dump(mode="json")
    wanted["recoverability_questions"][0] |= right
    next(row for row in wanted["transitions"] if row["from_scene"] == 1)["emotion"] = "The fox is vain."
    next(row for row in wanted["scenes"] if row["scene_index"] == 2)["scene_text"] = "A crow sits on a wall."
    for name in ("recoverability_questions", "transitions", "scenes"):
        assert kept[name] == wanted[name]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"decision": "valid", "corrected": {"question": "Who?"}}, "edits nothing"),
        ({"decision": "needs edit", "corrected": {"role": "steering"}}, "'role' of question"),
        ({"decision": "needs edit", "corrected": {"accepted_answers": 3}}, "does not fit"),
    ],
)
def test_a_correction_that_cannot_be_made_is_named(folder: Path, change: dict[str, object], said: str) -> None:
    study, records = read_study(folder / "review")
    hand_in(folder, study, {"a": {}, "b": {}, "c": {}})
    key = {"story_id": records[0].story_id, "unit": "question"}
    line = {**key, "id": records[0].recoverability_questions[0].question_id, **change}
    (folder / "decided.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(RecordError, match=said):
        score_review([folder / "back"], folder / "review", folder / "out", folder / "decided.jsonl")


@pytest.mark.browser
def test_a_reviewer_writes_a_note_in_a_browser(folder: Path) -> None:
    with chromium(folder / "profile") as driver:
        driver.get((folder / "review/pages/reviewer-01.html").as_uri())
        one(driver, "input[name=agree]").click()
        one(driver, "#intro button[type=submit]").click()
        for field in driver.find_elements("css selector", "#items fieldset"):
            for radio in field.find_elements("css selector", "input")[:1]:
                driver.execute_script("arguments[0].click()", radio)
        one(driver, "#items textarea").send_keys("a note with 1")
        one(driver, "#trial button[type=submit]").click()
        kept = json.loads(str(driver.execute_script("return Object.values(localStorage)[0]")))
    values = [answer["value"] for answer in kept["answers"]]
    assert "a note with 1" in values
    assert "" in values
