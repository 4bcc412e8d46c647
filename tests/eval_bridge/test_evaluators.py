"""Evaluator baselines, contrastive pairs asked with the boards, and agreement with people on what fails."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from choosers import Chooser
from evals import draw
from typer.testing import CliRunner

from benchmarks.synthetic import stories as synthetic
from benchmarks.synthetic import variants as synthetic_variants
from katha.app.cli.main import app
from katha.app.reports.eval_page import write_eval_report
from katha.errors import RecordError, UsageError
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.instructions import judge_prompt
from katha.eval_bridge.people.agreement import alignment
from katha.eval_bridge.questions.evaluators import evaluator_names, load_evaluator
from katha.eval_bridge.scoring.contrastive import PAIR_PREFIX
from katha.eval_bridge.scoring.scores import score
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.experiments.inputs.stories import prepare_stories
from katha.protocols import Evidence, JudgePrompt
from katha.schema import CONDITIONS, Answer, ContrastiveVariant, Question, StoryRecord
from katha.schema.scores import Scores
from katha.store import Store
from katha_sketch.reader.sketch_reader import SketchReaderJudge, at_scene, from_scenes, numbered_scenes

EXAMPLES = Path(__file__).parents[2] / "examples"
BUILT = [name for name in evaluator_names() if load_evaluator(name).written is None]
BASELINES = [name for name in BUILT if not load_evaluator(name).own]


def examples() -> list[StoryRecord]:
    paths = sorted(EXAMPLES.glob("*.json"))
    return [StoryRecord.model_validate_json(path.read_text(encoding="utf-8")) for path in paths]


def prepared(name: str) -> list[StoryRecord]:
    return prepare_stories(str(EXAMPLES), evaluator=load_evaluator(name))(examples())


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_asks_about_scenes_and_never_about_transitions(name: str) -> None:
    spec, records = load_evaluator(name), prepared(name)
    assert records == prepared(name)
    for record in records:
        asked = record.recoverability_questions
        assert {item.question_id.split("_")[-2] for item in asked} == {name}
        assert all(item.target_transition is None for item in asked)
        for item in asked:
            assert item.options is not None
            right = [
                option for option in item.options if normalise(option) in set(map(normalise, item.accepted_answers))
            ]
            assert len(right) == 1, (item.question, item.options)
            assert len(item.options) >= 4
    parents = [q for r in records for q in r.recoverability_questions if (q.model_extra or {}).get("depends_on")]
    assert bool(parents) is spec.depends


@pytest.mark.parametrize("name", BUILT)
def test_a_text_names_its_scenes_where_the_questions_do(name: str) -> None:
    spec, record = load_evaluator(name), prepared(name)[0]
    told = spec.text_of(record)
    named = {int(at) for item in record.recoverability_questions for at in re.findall(r"scene (\d+) of", item.question)}
    assert {int(at) for at in re.findall(r"^Scene (\d+) of", told, re.MULTILINE)} == named
    if not named:
        assert told == record.story_text
    for scene in record.scenes if named else ():
        assert f"Scene {scene.scene_index} of {len(record.scenes)}: {scene.scene_text}" in told.splitlines()


@pytest.mark.parametrize("name", ["tifa", "dsg"])
def test_questions_about_numbered_scenes_have_a_text_ceiling(name: str) -> None:
    """From a story without numbers one in eight is right; the embedded judge finds a scene by its number."""
    spec, right = load_evaluator(name), []
    for record in prepared(name):
        asked = [
            judge_prompt(item, "text", variant="strict", answers_format="choice")
            for item in record.recoverability_questions
        ]
        replies = SketchReaderJudge().ask(Evidence("text", (), spec.text_of(record)), asked)
        for item, reply in zip(record.recoverability_questions, replies, strict=True):
            right.append(normalise(reply.answer or "") in set(map(normalise, item.accepted_answers)))
    assert sum(right) / len(right) > 0.7


def test_the_text_that_is_told_scene_by_scene_is_what_is_put(tmp_path: Path) -> None:
    record = next(record for record in prepared("dsg") if record.story_id == "fox_and_crow")
    seen: set[tuple[str, str | None]] = set()

    def rule(evidence: Evidence, prompt: JudgePrompt) -> str:
        seen.add((evidence.condition, evidence.text))
        return (prompt.options or ("",))[0]

    run(tmp_path, Chooser(rule), [record], evaluator="dsg")
    told = load_evaluator("dsg").text_of(record)
    assert told.startswith("Scene 1 of ")
    assert seen == {("text", told), ("text+image", told), ("image", None), ("none", None)}


def test_a_scene_is_found_by_its_number_only_where_numbers_are_scenes() -> None:
    texts = numbered_scenes("Scene 1 of 2: The fox sleeps. A crow is there.\nScene 2 of 2: The crow flies")
    assert texts == ["The fox sleeps. A crow is there.", "The crow flies."]
    assert numbered_scenes("Scene 1 of 2: The fox sleeps.\nThe crow flies.") is None
    assert numbered_scenes("The fox sleeps.") is None
    moments = from_scenes(texts)
    assert [moment.scene for moment in moments] == sorted(moment.scene for moment in moments)
    second = at_scene("What happens in scene 2 of 2?", moments)
    assert second
    assert {moment.scene for moment in second} == {2}
    assert {name for moment in second for figure in moment.figures for name in figure.names} == {"crow"}
    assert at_scene("What happens in scene 2 of 3?", moments) == moments
    assert at_scene("What happens?", moments) == moments


def test_without_dimensions_nothing_tells_them_apart() -> None:
    own, merged = prepared("kathatrace")[0], prepared("no-dimensions")[0]
    assert [q.gold_answer for q in own.recoverability_questions] == [
        q.gold_answer for q in merged.recoverability_questions
    ]
    assert len({q.question_type for q in merged.recoverability_questions}) == 1
    told = {
        judge_prompt(q, "image", variant="strict", answers_format="choice", count=5).instruction
        for q in merged.recoverability_questions
    }
    assert len(told) == 1
    assert "outcome" not in told.pop()


def test_without_contrastives_no_variant_is_a_distractor(tmp_path: Path) -> None:
    rows = list(synthetic(3))
    source = tmp_path / "stories.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    twins = [row | {"contrastive_scene_text": "The zealot burns the mill."} for row in synthetic_variants(3)]
    (tmp_path / "contrastive_variants.jsonl").write_text("".join(json.dumps(row) + "\n" for row in twins))
    records = [StoryRecord.model_validate(row) for row in rows]
    found = {}
    for name in ("kathatrace", "no-contrastives"):
        ready = prepare_stories(str(source), evaluator=load_evaluator(name))(records)
        found[name] = any("zealot" in str(q.options) for record in ready for q in record.recoverability_questions)
    assert found == {"kathatrace": True, "no-contrastives": False}


def test_a_statement_about_what_was_not_recognised_is_wrong() -> None:
    record = next(record for record in prepared("dsg") if record.story_id == "fox_and_crow")

    def rows(evaluator: StoryRecord, wrong: str) -> list[Answer]:
        return [
            Answer(
                method="m",
                judge="j",
                story_id=record.story_id,
                question_id=item.question_id,
                condition=condition,
                status="ok",
                answer="Unclear" if condition == "image" and item.question_id == wrong else item.gold_answer,
            )
            for item in evaluator.recoverability_questions
            for condition in CONDITIONS
        ]

    first = record.recoverability_questions[0]
    children = [
        item
        for item in record.recoverability_questions
        if first.question_id in ((item.model_extra or {}).get("depends_on") or ())
    ]
    assert children
    alone = record.model_copy(
        update={
            "recoverability_questions": [
                item.model_copy(update={"depends_on": []}) for item in record.recoverability_questions
            ]
        }
    )
    lost = []
    for given in (alone, record):
        scores = score([given], rows(given, first.question_id), matching="exact-set", questions="all")
        block = scores.methods["m"].judges["j"].raw
        shares = [(row.n, row.image) for row in block.dimensions.values() if row.image is not None]
        lost.append(sum(round(n * (100 - image) / 100) for n, image in shares))
        assert block.text == 100.0
    assert lost == [1, 1 + len(children)]


def test_baselines_are_refused_where_they_cannot_be_asked() -> None:
    bare = StoryRecord(story_id="s", story_text="Nothing at all.")
    with pytest.raises(RecordError, match="no scene annotation"):
        prepare_stories("x.jsonl", evaluator=load_evaluator("tifa"))([bare])
    with pytest.raises(UsageError, match=r"Known: .*object-overlap"):
        load_evaluator("magic")
    words = ["eval", str(EXAMPLES), "--boards", str(EXAMPLES), "--out", "nowhere", "--evaluator", "dsg"]
    told = CliRunner().invoke(app, [*words, "--answers", "free"])
    assert isinstance(told.exception, UsageError)
    assert "choices" in told.exception.message


def run(tmp: Path, judge: Chooser, records: Sequence[StoryRecord], **options: Any) -> Any:
    settings = EvalSettings(resamples=50, evaluator=options.pop("evaluator", "kathatrace"))
    boards = [draw(tmp / "boards", records)]
    job = EvalJob(records, boards, {"chooser": judge}, settings, **options)
    with Store(tmp / "cache") as store:
        return evaluate(job, tmp / "out", store)


def test_contrastive_pairs_are_asked_with_the_images_alone(tmp_path: Path) -> None:
    records = [StoryRecord.model_validate(row) for row in synthetic(4)]
    records = prepare_stories(str(tmp_path / "none.jsonl"))(records)
    twins = [ContrastiveVariant.model_validate(row) for row in synthetic_variants(4)]
    texts = {text for record in records for text in (record.story_text, *(scene.scene_text for scene in record.scenes))}
    seen: list[str] = []

    def rule(evidence: Evidence, prompt: JudgePrompt) -> str:
        options = prompt.options or ()
        if not prompt.question.startswith("Which of these two"):
            return options[0]
        assert (evidence.condition, evidence.text, options[-1]) == ("image", None, "Unclear")
        seen.append(prompt.question)
        right = next(option for option in options if option in texts)
        return right if len(seen) % 4 else "Unclear"

    judge = Chooser(rule)
    result = run(tmp_path, judge, records, variants=twins)
    assert len(seen) == len(twins) == 8
    entry = result.scores.contrastive.methods["boards"]["chooser"]
    assert (entry.n, entry.n_unscored) == (8, 0)
    assert entry.pair_accuracy == pytest.approx(75.0)
    assert entry.confusion == pytest.approx(25.0)
    questions = sum(len(record.recoverability_questions) for record in records)
    # Without evidence two stories' equal questions are one.
    blind = {
        (item.question_type, item.question, *(item.options or ()))
        for one in records
        for item in one.recoverability_questions
    }
    assert judge.asked == 3 * questions + len(blind) + 8
    asked = judge.asked
    assert run(tmp_path, judge, records, variants=twins).reused
    assert judge.asked == asked
    out = tmp_path / "out"
    page = write_eval_report(out).read_text(encoding="utf-8")
    assert "Contrastive pairs" in page
    assert "75.0" in page[page.index('id="pairs"') : page.index('id="ledger"')]
    assert "not KathaTrace" not in page
    words = [
        "score",
        out / "stories.jsonl",
        "--answers",
        out / "answers.jsonl",
        "--questions",
        "all",
        "--resamples",
        "50",
    ]
    told = CliRunner().invoke(
        app,
        [*map(str, words), "--variants", str(out / "contrastive_variants.jsonl"), "--out", str(tmp_path / "s.json")],
    )
    assert told.exit_code == 0, told.output
    again = Scores.model_validate_json((tmp_path / "s.json").read_bytes())
    assert again.contrastive == result.scores.contrastive
    assert again.methods == result.scores.methods
    rows = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    pairs = [row for row in rows if row["question_id"].startswith(PAIR_PREFIX)]
    assert {(row["condition"], row["method"]) for row in pairs} == {("image", "boards")}


def test_a_baselines_report_says_that_it_is_one(tmp_path: Path) -> None:
    records = [record for record in prepared("tifa") if record.story_id in ("fox_and_crow", "lion_and_mouse")]
    result = run(tmp_path, Chooser(lambda evidence, prompt: (prompt.options or ("",))[0]), records, evaluator="tifa")
    assert result.scores.methods["boards"].judges["chooser"].raw.n > 20
    page = write_eval_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "<b>tifa</b>" in page


def story(name: str, kinds: Sequence[str]) -> StoryRecord:
    questions = [
        Question(question_id=f"q{at}", question_type=kind, question="?", gold_answer="yes")  # type: ignore[arg-type]
        for at, kind in enumerate(kinds)
    ]
    return StoryRecord(story_id=name, story_text="x", recoverability_questions=questions)


def answered(record: StoryRecord, wrong: set[str], method: str = "m") -> list[Answer]:
    return [
        Answer(
            method=method,
            judge="j",
            story_id=record.story_id,
            question_id=item.question_id,
            condition=condition,
            status="ok",
            answer="no" if condition == "image" and item.question_type in wrong else "yes",
        )
        for item in record.recoverability_questions
        for condition in CONDITIONS
    ]


def test_localization_is_the_share_of_failing_dimensions_found() -> None:
    kinds = ("causal", "emotional", "consequence")
    records = [story(name, kinds) for name in "abcd"] + [story("e", ("causal", "causal"))]
    wrong = {"a": {"causal"}, "b": {"emotional"}, "c": {"causal", "emotional"}, "d": set(), "e": {"causal"}}
    rows = [row for record in records for row in answered(record, wrong[record.story_id])]
    labels = {"a": "causal", "b": "causal", "c": "causal", "d": "causal", "e": "causal"}
    scores = {"a": 3.0, "b": 3.0, "c": 2.0, "d": 5.0, "e": 1.0}
    judgments = [{"line": 1, "story_id": name, "failing": labels[name], "human_score": scores[name]} for name in labels]
    judgments.append({"line": 7, "story_id": "stranger", "failing": "causal"})
    found = alignment(records, rows, judgments, matching="exact-set", questions="all")
    entry = found.judges["j"]
    assert entry.localization is not None
    assert entry.localization.n == 5
    assert entry.localization.right == pytest.approx(20.0)
    assert entry.localization.chance == pytest.approx(100 / 6)
    assert entry.human_score is not None
    assert entry.human_score.n == 5
    assert entry.human_score.spearman == pytest.approx(1.0)
    assert found.notes == ["1 judgments are about stories that are not scored and are left out."]
    with pytest.raises(RecordError, match="the method 'other' is none of those scored: m"):
        alignment(
            records, rows, [{"line": 2, "story_id": "a", "failing": "causal", "method": "other"}], matching="exact-set"
        )


def test_the_verb_reads_peoples_judgments(tmp_path: Path) -> None:
    records = [story("a", ("causal", "emotional")), story("b", ("causal", "emotional"))]
    rows = [
        row for record, wrong in zip(records, ("causal", "emotional"), strict=True) for row in answered(record, {wrong})
    ]
    told, given = tmp_path / "stories.jsonl", tmp_path / "answers.jsonl"
    told.write_text("".join(record.model_dump_json() + "\n" for record in records))
    given.write_text("".join(row.model_dump_json() + "\n" for row in rows))
    people = tmp_path / "people.csv"
    people.write_text("story_id,failing\na,causal\nb,causal\n")
    words = ["score", told, "--answers", given, "--out", tmp_path / "s.json", "--human", people, "--resamples", "20"]
    shown = CliRunner().invoke(app, [str(word) for word in words])
    assert shown.exit_code == 0, shown.output
    assert "j: finds the failing dimension in 50.0% of 2" in shown.output
    assert json.loads((tmp_path / "s.json").read_text())["alignment"]["judges"]["j"]["human_score"] is None
