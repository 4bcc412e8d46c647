"""`katha score`: what changes nothing, what changed and why, contrastive pairs, and how many stories are needed."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.synthetic import stories, variants
from katha.app.cli.main import app
from katha.errors import InputFileError, KathaError, RecordError, UsageError
from katha.eval_bridge.matching.match import Verdict, WordRule, named_rule
from katha.eval_bridge.scoring.contrastive import PAIR_PREFIX, PairScorer, pair_question
from katha.eval_bridge.scoring.rows import power_estimate, stories_needed
from katha.registry import default_registry
from katha.schema import CONDITIONS, Answer, ContrastiveVariant, StoryRecord

Row = dict[str, Any]
METHODS = ("base", "full")
JUDGES = ("owl", "crow", "jay")
WRONG = "no idea at all"


def rows_of(records: list[Row], seed: int = 1, methods: tuple[str, ...] = METHODS) -> list[Row]:
    draw = random.Random(seed)
    chance = {"text": 0.9, "image": 0.5, "text+image": 0.9}
    return [
        {
            "method": method,
            "judge": judge,
            "story_id": record["story_id"],
            "question_id": question["question_id"],
            "condition": condition,
            "status": "ok" if draw.random() < 0.95 else "refused",
            "answer": question["gold_answer"]
            if draw.random() < chance[condition] + 0.2 * (method == "full" and condition == "image")
            else WRONG,
        }
        for record in records
        for question in record["recoverability_questions"]
        for method in methods
        for judge in JUDGES
        for condition in CONDITIONS
    ]


def write(path: Path, rows: list[Row]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(*words: str | Path) -> str:
    result = CliRunner().invoke(app, ["score", *map(str, words), "--resamples", "200"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def records() -> list[Row]:
    return list(stories(12))


@pytest.fixture
def archive(tmp_path: Path, records: list[Row]) -> tuple[Path, Path]:
    return write(tmp_path / "stories.jsonl", records), write(tmp_path / "answers.jsonl", rows_of(records))


def test_order_of_judges_stories_and_writers_changes_nothing(
    tmp_path: Path, archive: tuple[Path, Path], records: list[Row]
) -> None:
    told, given = archive
    run(told, "--answers", given, "--out", tmp_path / "one.json")
    first = (tmp_path / "one.json").read_bytes()
    rows = rows_of(records)
    for seed in (1, 2):
        random.Random(seed).shuffle(rows)
        shards = [write(tmp_path / f"shard{at}.jsonl", rows[at::4]) for at in range(4)]
        turned = write(tmp_path / "turned.jsonl", records[seed:] + records[:seed])
        named = [word for shard in shards[::-1] for word in ("--answers", shard)]
        run(turned, *named, "--out", tmp_path / "other.json")
        assert (tmp_path / "other.json").read_bytes() == first
    renamed = {"owl": "jay", "jay": "owl", "crow": "crow"}
    write(tmp_path / "swapped.jsonl", [row | {"judge": renamed[row["judge"]]} for row in rows])
    run(told, "--answers", tmp_path / "swapped.jsonl", "--out", tmp_path / "swapped.json")
    one, two = json.loads(first), json.loads((tmp_path / "swapped.json").read_text())
    for method in METHODS:
        before, after = one["methods"][method]["judges"], two["methods"][method]["judges"]
        assert after["ensemble"] == before["ensemble"]
        assert after["owl"] == before["jay"]


def test_headline_table_and_later_file_wins(tmp_path: Path, archive: tuple[Path, Path], records: list[Row]) -> None:
    told, given = archive
    rows = rows_of(records)
    fixed = [row | {"status": "ok", "answer": "deed 1"} for row in rows if row["judge"] == "owl"]
    shown = run(told, "--answers", given, "--answers", write(tmp_path / "later.jsonl", fixed), "--out", tmp_path / "s")
    scores = json.loads((tmp_path / "s").read_text())
    assert scores["matching"] == "lemma-set"
    assert scores["methods"]["base"]["judges"]["owl"]["n_unscored"] == 0
    stg = scores["methods"]["full"]["judges"]["crow"]["filtered"]["stg"]
    line = next(line for line in shown.splitlines() if line.split()[:2] == ["full", "crow"])
    assert f"{stg:.1f}" in line.split()


def test_which_verdicts_changed_and_why(tmp_path: Path, records: list[Row]) -> None:
    question = records[0]["recoverability_questions"][0]
    question |= {"question_type": "causal", "gold_answer": "the mouse bites the net", "accepted_answers": []}
    told = write(tmp_path / "stories.jsonl", records[:1])
    base = {"method": "m", "judge": "owl", "story_id": records[0]["story_id"], "status": "ok"}
    key = base | {"question_id": question["question_id"]}
    rows = [key | {"condition": name, "answer": "a mouse bit the net"} for name in CONDITIONS]
    given = write(tmp_path / "answers.jsonl", rows)
    run(told, "--answers", given, "--matching", "exact-set", "--out", tmp_path / "old.json")
    shown = run(told, "--answers", given, "--before", tmp_path / "old.json", "--out", tmp_path / "new.json")
    assert "3 verdicts changed." in shown
    assert "m, owl, kb25k_0001, kb25k_0001_q1, image: wrong -> right: 'a mouse bit the net': " in shown
    assert "not in the accepted set (exact-set)" in shown
    later = write(tmp_path / "later.jsonl", [row | {"answer": "Unclear"} for row in rows[:1]] + rows[1:2])
    words = ("--before", tmp_path / "new.json", "--before-answers", given, "--out", tmp_path / "last.json", "--json")
    changed = {row["condition"]: row for row in json.loads(run(told, "--answers", later, *words))["changes"]}
    assert set(changed) == {"text", "text+image"}
    assert (changed["text"]["before"], changed["text"]["after"]) == (True, False)
    assert "then 'Unclear'" in changed["text"]["why"]
    assert changed["text+image"]["after"] is None
    same = run(told, "--answers", given, "--before", tmp_path / "new.json", "--out", tmp_path / "same.json")
    assert "No verdict changed." in same


def test_verdicts_of_an_earlier_version_are_kept_and_explained(
    tmp_path: Path, records: list[Row], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of lemma-set judges otherwise: what it changes is named, from the verdicts kept by the scores."""
    question = records[0]["recoverability_questions"][0]
    question |= {"question_type": "causal", "gold_answer": "the mouse bites the net", "accepted_answers": []}
    told = write(tmp_path / "stories.jsonl", records[:1])
    key = {"method": "m", "judge": "owl", "story_id": records[0]["story_id"], "status": "ok"}
    said = {"text": "a mouse bit the net", "image": "the net is bitten", "text+image": "the mouse bites the net"}
    rows = [
        key | {"question_id": question["question_id"], "condition": name, "answer": said[name]} for name in CONDITIONS
    ]
    given = write(tmp_path / "answers.jsonl", rows)
    (tmp_path / "old").mkdir()
    with monkeypatch.context() as patch:
        no = WordRule("lemma-set", "0", lambda answer, question: Verdict(False, "too long ago"), changing=True)
        patch.setitem(default_registry("matchers")._local, "lemma-set", lambda: no)
        run(told, "--answers", given, "--out", tmp_path / "old" / "scores.json")
    kept = (tmp_path / "old" / "verdicts.jsonl").read_text().splitlines()
    assert [json.loads(line).get("right") for line in kept] == [None, False, False]
    words = ("--answers", given, "--before", tmp_path / "old" / "scores.json", "--out", tmp_path / "new.json")
    shown = run(told, *words)
    rule = named_rule("lemma-set")
    assert rule is not None
    assert "text: wrong -> right: 'a mouse bit the net': too long ago (lemma-set 0), says" in shown
    assert f"(lemma-set {rule.version})" in shown
    changed = {row["condition"] for row in json.loads(run(told, *words, "--json"))["changes"]}
    assert "text" in changed
    assert "text+image" not in changed
    (tmp_path / "old" / "verdicts.jsonl").unlink()
    blind = run(told, *words)
    assert "No verdict changed." in blind
    assert "2 answers were scored by an earlier version of the rule" in blind


def test_the_same_scoring_keeps_the_same_verdicts(tmp_path: Path, archive: tuple[Path, Path]) -> None:
    told, given = archive
    run(told, "--answers", given, "--matching", "exact-set", "--out", tmp_path / "a" / "scores.json")
    assert not (tmp_path / "a" / "verdicts.jsonl").exists()
    run(told, "--answers", given, "--out", tmp_path / "b" / "scores.json")
    first = (tmp_path / "b" / "verdicts.jsonl").read_bytes()
    run(told, "--answers", given, "--out", tmp_path / "b" / "scores.json")
    assert (tmp_path / "b" / "verdicts.jsonl").read_bytes() == first


def test_a_folder_is_no_place_for_scores(tmp_path: Path, archive: tuple[Path, Path]) -> None:
    told, given = archive
    shown = CliRunner().invoke(app, ["score", str(told), "--answers", str(given), "--out", str(tmp_path)])
    assert isinstance(shown.exception, UsageError)
    assert "is a folder" in shown.exception.message


def test_pairs_are_scored_by_the_source_text(tmp_path: Path, archive: tuple[Path, Path], records: list[Row]) -> None:
    told, given = archive
    twins = list(variants(12))
    parsed = {record["story_id"]: StoryRecord.model_validate(record) for record in records}
    rows = []
    for at, twin in enumerate(twins):
        question = pair_question(parsed[twin["base_story_id"]], ContrastiveVariant.model_validate(twin))
        answer = (question.gold_answer, twin["contrastive_scene_text"], "Unclear", None)[at % 4]
        rows += [
            {
                "method": "base",
                "judge": judge,
                "story_id": twin["base_story_id"],
                "question_id": question.question_id,
                "condition": "image",
                "status": "ok" if answer else "refused",
                "answer": answer,
            }
            for judge in ("owl", "crow")
        ]
    write(tmp_path / "pairs.jsonl", rows)
    write(tmp_path / "twins.jsonl", twins)
    answers = ("--answers", given, "--answers", tmp_path / "pairs.jsonl")
    run(told, *answers, "--variants", tmp_path / "twins.jsonl", "--out", tmp_path / "s.json")
    scores = json.loads((tmp_path / "s.json").read_text())
    entry = scores["contrastive"]["methods"]["base"]["ensemble"]
    assert (entry["n"], entry["n_unscored"]) == (18, 6)
    assert entry["pair_accuracy"] == pytest.approx(100 / 3)
    assert entry["confusion"] == pytest.approx(200 / 3)
    assert entry["ci95"][0] < 100 / 3 < entry["ci95"][1]
    run(told, "--answers", given, "--out", tmp_path / "plain.json")
    plain = json.loads((tmp_path / "plain.json").read_text())
    assert "contrastive" not in plain
    assert plain["methods"] == scores["methods"]


def test_pair_options_do_not_give_the_source_away(records: list[Row]) -> None:
    parsed = [StoryRecord.model_validate(record) for record in records]
    twins = [ContrastiveVariant.model_validate(twin) for twin in variants(12)]
    scorer = PairScorer(parsed, twins)
    first = [question.options[0] == question.gold_answer for question in scorer.questions.values() if question.options]
    assert len(first) == 24
    assert 4 < sum(first) < 20
    assert all(name.startswith(PAIR_PREFIX) for name in scorer.questions)
    same = {"contrastive_scene_text": parsed[0].scenes[2].scene_text}
    with pytest.raises(RecordError, match="changes no text"):
        pair_question(parsed[0], twins[0].model_copy(update=same))


def test_stories_needed_against_the_normal_formula() -> None:
    for spread, difference in ((40.0, 5.0), (30.0, 2.0)):
        formula = ((1.959964 + 0.841621) * spread / difference) ** 2 * math.pi / 3
        assert stories_needed(spread, difference) == pytest.approx(formula, rel=0.02)
    assert stories_needed(1.0, 50.0) == 3
    assert stories_needed(40.0, 5.0, power=0.9) > stories_needed(40.0, 5.0)
    with pytest.raises(UsageError, match="must be positive"):
        stories_needed(0.0, 5.0)


def test_power_from_an_archive(archive: tuple[Path, Path], tmp_path: Path, records: list[Row]) -> None:
    told, given = archive
    words = ("--power", "5", "--power", "10", "--out", tmp_path / "s.json")
    found = json.loads(run(told, "--answers", given, *words, "--json"))["power"]
    (row,) = found["estimates"]
    assert row["between"] == "base against full"
    small, large = row["needed"]
    assert small["stories"] > large["stories"] > 3
    assert small["judge_calls"] == math.ceil(small["stories"] * found["questions_per_story"]) * 4
    assert "to find 5 points" in run(told, "--answers", given, *words)
    parsed = [StoryRecord.model_validate(record) for record in records]
    lone = [Answer.model_validate(item) for item in rows_of(records, methods=("base",))]
    single = power_estimate(parsed, lone, matching="exact-set")
    assert (single.estimates[0].spread or 0) > 0
    assert power_estimate(parsed, [], matching="exact-set").notes


def test_only_the_chosen_half_counts(tmp_path: Path, records: list[Row]) -> None:
    for record in records:
        for at, question in enumerate(record["recoverability_questions"]):
            question["role"] = "steering" if at % 2 else "reporting"
    told = write(tmp_path / "stories.jsonl", records)
    given = write(tmp_path / "answers.jsonl", rows_of(records))
    counts = {}
    for half in ("reporting", "steering", "all"):
        run(told, "--answers", given, "--questions", half, "--out", tmp_path / "s.json")
        scores = json.loads((tmp_path / "s.json").read_text())
        assert scores["questions"] == half
        counts[half] = scores["methods"]["base"]["judges"]["owl"]["n_questions"]
    assert counts["reporting"] + counts["steering"] == counts["all"]


def bad(records: list[Row], **changes: Any) -> list[Row]:
    return [records[0], records[1] | changes]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda records: bad(records, story_id="../up"), r"line 2.*never a path"),
        (lambda records: bad(records, story_id=records[0]["story_id"]), r"line 2.*used before"),
        (lambda records: bad(records, scenes=records[1]["scenes"][:4]), r"line 2.*transitions"),
        (lambda records: bad(records, moral_label="zeal"), r"line 2.*moral_label"),
        (lambda records: [row | {"recoverability_questions": []} for row in records], "no recoverability question"),
    ],
)
def test_bad_stories_are_refused(tmp_path: Path, records: list[Row], edit: Any, message: str) -> None:
    told = write(tmp_path / "stories.jsonl", edit(records))
    given = write(tmp_path / "answers.jsonl", rows_of(records))
    with pytest.raises(KathaError, match=message):
        run(told, "--answers", given, "--out", tmp_path / "s.json")
    assert not (tmp_path / "s.json").exists()


def test_bad_answers_and_scores_are_refused(tmp_path: Path, archive: tuple[Path, Path]) -> None:
    told, given = archive
    broken = tmp_path / "broken.jsonl"
    broken.write_text(given.read_text() + "{torn\n" + given.read_text(), encoding="utf-8")
    count = len(given.read_text().splitlines())
    with pytest.raises(InputFileError, match=f"line {count + 1}"):
        run(told, "--answers", broken, "--out", tmp_path / "s.json")
    with pytest.raises(UsageError, match="No matching rule"):
        run(told, "--answers", given, "--matching", "magic", "--out", tmp_path / "s.json")
    (tmp_path / "other.json").write_text("[1]")
    with pytest.raises(InputFileError, match=r"no scores\.json"):
        run(told, "--answers", given, "--before", tmp_path / "other.json", "--out", tmp_path / "s.json")
    with pytest.raises(InputFileError, match="holds no stories"):
        run(tmp_path / "..", "--answers", given, "--out", tmp_path / "s.json")
