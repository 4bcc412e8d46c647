"""A suite over many stories with real LangGraph and SQLite: shared work, exact costs, resume, and what is concluded."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import BlockRenderer, BuggyJudge, BuggyRenderer, plugins, story

from katha.agents.context import Plugins
from katha.compass.modes import Suite, load_modes, load_suite
from katha.config import Settings
from katha.errors import (
    OutputFolderError,
    RecordError,
    RefusedFrameError,
    RenderError,
    TransientRenderError,
    UsageError,
)
from katha.eval_bridge.matching.match import word_rule
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.eval_bridge.scoring.audit import require_separate
from katha.eval_bridge.scoring.outcomes import recoverability
from katha.eval_bridge.scoring.scores import Compared, score
from katha.experiments.ablate.conclusions import conclude, sentence_of
from katha.experiments.ablate.job import AblationJob, StoryResult
from katha.experiments.ablate.story import run_ablation
from katha.jsonio import dumps, read_json
from katha.protocols import FrameRequest
from katha.schema import Answer, Event, StoryRecord
from katha.schema.scores import WilcoxonTest
from katha.schema.tables import AblationTable, RowComparison
from katha.stories import load_stories


def forest(number: int) -> StoryRecord:
    """A story among trees of its own, so that its pictures are not another story's."""
    text = story(f"story{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text)


STORIES = [forest(number) for number in range(6)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def job(suite: Suite | None = None, records: list[StoryRecord] | None = None, **changes: Any) -> AblationJob:
    made: Plugins = changes.pop("given", None) or plugins()
    config = Settings(planner="scenes", renderer="block", judges=tuple(made.judges), compass={"repair_threshold": 1.0})
    return AblationJob(
        records if records is not None else STORIES,
        suite or load_suite("length"),
        config,
        given=made,
        **{"resamples": 500, **changes},
    )


def rows(path: Path) -> list[Answer]:
    return [Answer.model_validate_json(line) for line in path.read_text().splitlines()]


def results(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in ("table.json", "scores.json", "answers.jsonl", "stories.jsonl")}


@pytest.fixture(scope="module")
def length(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AblationTable, Plugins]:
    """The length suite over six stories, its table, and the plug-ins that did the work."""
    out, made = tmp_path_factory.mktemp("length") / "out", plugins()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(out.parent / "cache"))
        table = run_ablation(job(given=made), out).table
    return out, table, made


def test_the_length_suite_has_every_mode_of_the_paper() -> None:
    suite = load_suite("length")
    paper = ["base", "random_frame", "non_semantic_frame", "caption_bridge", "random_bridge", "rerank_only"]
    always = ["bridge_always", "full_always"]
    own_length = [f"reranked_{name}" for name in ("random", "non_semantic", "caption", "random_bridge")]
    assert [row.name for row in suite.rows] == [*paper, "bridge_only", "full", *always, *own_length]
    assert suite.baseline == "base"
    assert suite.family == len(suite.pairs) == 13 + 8 + 4
    assert (suite.primary, suite.secondary) == (("full_always", "reranked_non_semantic"), 24)
    assert {row.mode for row in suite.rows} <= set(load_modes())


def test_every_distinct_frame_is_drawn_once_and_every_distinct_question_asked_once(
    length: tuple[Path, AblationTable, Plugins],
) -> None:
    _, table, made = length
    budget = table.budget
    drawn = Counter((request.prompt, request.seed, request.kind, request.scene) for request in made.renderer.drawn)
    assert len(made.renderer.drawn) == budget.frames_distinct
    assert len(made.judges["pixel"].asked) == budget.questions_distinct
    assert budget.frames_naive > 4 * budget.frames_distinct
    assert budget.questions_naive > 1.5 * budget.questions_distinct
    assert budget.frames_naive > budget.frames_by_rows > budget.frames_distinct
    assert max(drawn.values()) == 1


def test_steering_answers_are_those_of_one_board(length: tuple[Path, AblationTable, Plugins]) -> None:
    """Rows of several modes end with a board that is called `bridge:SEED`, each with its own answers."""
    out, _, _ = length
    boards, names = 0, set()
    for path in sorted(out.glob("stories/*/result.json")):
        told = {row.story_id: row for row in load_stories(path.parent / "story.jsonl")}
        answers = rows(path.parent / "steering.jsonl")
        keys = {(row.method, row.question_id, row.condition, row.prompt_sha256) for row in answers}
        assert len(keys) == len(answers), "a key names one answer, whichever line is last"
        for item in StoryResult.model_validate(read_json(path)).boards:
            own = [row for row in answers if str(row.method).endswith(f"#{item.mark}")]
            questions = told[item.board.story_id].recoverability_questions
            score = recoverability(own, questions, word_rule("exact-set")).mean
            assert item.score.recoverability == pytest.approx(score)
            boards += 1
            names.add(str(own[0].method).partition("#")[0])
    assert boards > 50
    assert any(name.startswith("bridge") for name in names)


def test_the_table_agrees_with_the_scores_and_with_the_rows(length: tuple[Path, AblationTable, Plugins]) -> None:
    out, table, _ = length
    stories = [StoryRecord.model_validate_json(line) for line in (out / "stories.jsonl").read_text().splitlines()]
    scores = json.loads((out / "scores.json").read_text())
    pools = {row.mode: [f"{row.mode}@{seed}" for seed in (42, 123, 2026)] for row in table.rows}
    suite = load_suite("length")
    again = score(
        stories,
        rows(out / "answers.jsonl"),
        matching="lemma-set",
        resamples=500,
        pooled={name: members for name, members in pools.items() if suite.row(name).build_mode().report != "selected"},
        compared=Compared(tuple(suite.pairs), suite.secondary, steps=True, primary=suite.primary),
    ).model_dump(mode="json")
    assert {**again, "methods": None} == {**scores, "methods": None}
    assert again["methods"] == scores["methods"]
    assert set(scores["methods"]) == set(pools)
    for row in table.rows:
        block = scores["methods"][row.mode]["judges"]["pixel"]["filtered"]
        assert row.image == pytest.approx(block["image"])
        assert row.stg == pytest.approx(block["stg"])
        assert row.stg_ci95 == pytest.approx(block["ci95"]["stg"])
        common = scores["methods"][row.mode]["judges"]["pixel"]["common_valid"]
        fewer = {name for name in row.thin if common["dimensions"][name]["n"] > 2 * row.boards_per_story}
        assert fewer == set()
        assert set(common["thin"]) <= set(row.thin)
        assert row.inspect == (row.common_valid.stg is not None and row.common_valid.stg < 0)
        assert (row.common_valid.n, row.common_valid.stg) == (common["n"], pytest.approx(common["stg"]))
        assert row.raw.stg == pytest.approx(scores["methods"][row.mode]["judges"]["pixel"]["raw"]["stg"])
    found = {(item["a"], item["b"], item["block"]): item for item in scores["comparisons"]}
    for row in table.comparisons:
        for block, mine in (("filtered", row), ("common_valid", row.common_valid)):
            item = found[row.a, row.b, block]
            assert mine.difference == pytest.approx(item["difference"])
            assert mine.ci95 == pytest.approx(item["ci95"])
            assert mine.p_bootstrap == (item["p_bootstrap"] if mine.n_stories > 5 else None)
            assert mine.family == (1 if row.role == "primary" else load_suite("length").secondary)
            if row.nothing is None and mine.n_stories > 5:
                assert item["family"] == mine.family
                assert item["p_corrected"] == pytest.approx(mine.p_corrected)
                assert item["p_bootstrap_corrected"] == pytest.approx(mine.p_bootstrap_corrected)
            assert mine.wilcoxon.p is None or mine.p_corrected is None or mine.wilcoxon.p <= mine.p_corrected
        assert row.raw.difference == pytest.approx(found[row.a, row.b, "filtered"]["differences"]["raw"])
    for row in table.rows[1:]:
        assert row.delta_stg == pytest.approx(row.stg - table.row("base").stg)


def test_the_headline_is_common_valid_with_the_other_blocks_beside_it(tmp_path: Path) -> None:
    made = job(load_suite("length").only(("base", "full")), STORIES)
    made.config = made.config.model_copy(update={"seeds": (42,)})
    table = run_ablation(made, tmp_path / "out").table
    base, full = table.rows
    assert 0 < base.common_valid.n == full.common_valid.n < base.raw.n
    assert base.common_valid.n <= min(base.valid, full.valid)
    assert full.common_valid.delta_stg == pytest.approx(full.common_valid.stg - base.common_valid.stg)
    compared = table.comparisons[0]
    assert compared.headline is compared.common_valid
    assert compared.headline.difference == pytest.approx(full.common_valid.delta_stg)
    assert "[common valid; own valid " in sentence_of(compared)
    assert full.headline == full.common_valid


def test_a_table_that_is_read_and_written_again_has_the_same_bytes(length: tuple[Path, AblationTable, Plugins]) -> None:
    out, table, _ = length
    assert AblationTable.model_validate(read_json(out / "table.json")) == table
    assert dumps(table.model_dump(mode="json")) == (out / "table.json").read_text(encoding="utf-8")


def test_a_row_s_mean_over_seeds_is_the_pool_of_its_boards(length: tuple[Path, AblationTable, Plugins]) -> None:
    out = length[0]
    stories = [StoryRecord.model_validate_json(line) for line in (out / "stories.jsonl").read_text().splitlines()]
    single = score(stories, rows(out / "answers.jsonl"), matching="lemma-set", resamples=0).methods
    blocks = [single[f"base@{seed}"].judges["pixel"].raw for seed in (42, 123, 2026)]
    pooled = (
        score(
            stories,
            rows(out / "answers.jsonl"),
            matching="lemma-set",
            resamples=0,
            pooled={"base": ["base@42", "base@123", "base@2026"]},
        )
        .methods["base"]
        .judges["pixel"]
        .raw
    )
    assert pooled.n == sum(block.n for block in blocks)
    assert pooled.image == pytest.approx(np.mean([block.image for block in blocks if block.image is not None]))


def test_budgets_of_the_visual_controls(length: tuple[Path, AblationTable, Plugins]) -> None:
    _, table, _ = length
    by = {row.mode: row for row in table.rows}
    assert by["base"].frames == by["rerank_only"].frames == 5
    for name in ("random_frame", "non_semantic_frame", "caption_bridge", "random_bridge"):
        assert by[name].frames == 6
    assert by["base"].frames_rendered == by["rerank_only"].frames_rendered == 15 * len(STORIES)
    assert by["random_frame"].accepted_bridges == 0
    assert by["random_bridge"].accepted_bridges == len(STORIES)
    assert by["full"].frames == pytest.approx(5 + by["full"].accepted_bridges / len(STORIES))
    assert 0 < by["full"].accepted_bridges <= len(STORIES)


def test_equal_length_is_by_design(length: tuple[Path, AblationTable, Plugins]) -> None:
    _, table, _ = length
    arms = [name for name in table.rows if name.mode in {one for pair in load_suite("length").controls for one in pair}]
    assert {row.frames for row in arms} == {6}
    one_board = [
        "full_always",
        *(f"reranked_{name}" for name in ("random", "non_semantic", "caption", "random_bridge")),
    ]
    assert {row.mode: row.boards_per_story for row in arms if row.boards_per_story != 3} == dict.fromkeys(one_board, 1)
    modes = [load_suite("length").row(row.mode).build_mode() for row in arms]
    assert {(mode.select, mode.draws, mode.when, mode.accept) for mode in modes} == {
        (select, "every", "always", "always") for select in ("first", "best")
    }
    even = {(row.a, row.b): row for row in table.comparisons if row.what == "equal length"}
    assert set(even) == set(load_suite("length").controls)
    # Nothing is left out because a repair was declined: every story counts.
    assert all(0 < row.n_stories <= len(STORIES) for row in even.values())
    assert all(row.stories == len(STORIES) for row in table.rows)


def test_the_family_is_what_the_suite_declares_whichever_rows_are_run(tmp_path: Path) -> None:
    few = load_suite("length").only(("base", "full"))
    assert few.family == load_suite("length").family
    table = run_ablation(job(few, STORIES), tmp_path / "out").table
    assert {row.family for row in table.comparisons} == {load_suite("length").secondary}


def test_a_reference_is_what_the_others_are_held_against() -> None:
    suite = load_suite("length").against_row("random_frame")
    assert suite.baseline == "random_frame"
    assert ("base", "random_frame") in suite.pairs
    with pytest.raises(UsageError, match="no row 'nobody'"):
        suite.against_row("nobody")


def test_one_candidate_makes_the_best_of_one_and_equal_boards_are_said_to_be_equal(tmp_path: Path) -> None:
    made = job(load_suite("length").only(("base", "rerank_only", "bridge_only", "full")), STORIES[:3])
    made.config = made.config.model_copy(update={"candidates": 1})
    table = run_ablation(made, tmp_path / "out").table
    by = {(row.a, row.b): row for row in table.comparisons}
    assert by["rerank_only", "base"].same == "all"
    assert by["rerank_only", "base"].nothing == "these are the same boards"
    assert table.row("rerank_only").common_valid.stg == table.row("base").common_valid.stg
    assert table.row("rerank_only").boards_per_story == 3
    assert any("rerank_only, full: the lock has one candidate" in note for note in table.notes)


def test_the_same_command_again_does_nothing(length: tuple[Path, AblationTable, Plugins]) -> None:
    out, table, _ = length
    again = plugins()
    before = results(out)
    found = run_ablation(job(given=again), out)
    assert found.reused
    assert found.table == table
    assert again.renderer.drawn == again.judges["pixel"].asked == []
    assert results(out) == before


class Stopped(Exception):
    pass


def test_a_stopped_suite_goes_on_and_pays_for_nothing_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(name: str, done: int) -> None:
        if done == 2:
            raise Stopped

    def small(made: Plugins) -> AblationJob:
        return job(load_suite("length").only(("base", "full")), STORIES[:3], given=made)

    whole, first, second = plugins(), plugins(), plugins()
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    run_ablation(small(whole), tmp_path / "whole")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    with pytest.raises(Stopped):
        run_ablation(small(first), tmp_path / "out", on_story=stop)
    assert not (tmp_path / "out" / "table.json").exists()
    run_ablation(small(second), tmp_path / "out")
    assert results(tmp_path / "out") == results(tmp_path / "whole")
    assert len(first.renderer.drawn) + len(second.renderer.drawn) == len(whole.renderer.drawn)
    asked = [made.judges["pixel"].asked for made in (first, second, whole)]
    assert asked[0]
    assert asked[1]
    assert len(asked[0]) + len(asked[1]) == len(asked[2])


def test_two_halves_are_joined_and_nothing_is_paid_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite = load_suite("length").only(("base", "full"))
    halves = {"first": STORIES[:2], "second": STORIES[2:4]}
    for name, stories in {**halves, "whole": STORIES[:4]}.items():
        monkeypatch.setenv("KATHA_CACHE", str(tmp_path / f"{name}-cache"))
        run_ablation(job(suite, stories), tmp_path / name)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "joined-cache"))
    made = plugins()
    folders = [tmp_path / name for name in halves]
    run_ablation(job(suite, STORIES[:4], given=made), tmp_path / "joined", join=folders)
    assert made.renderer.drawn == made.judges["pixel"].asked == []
    assert results(tmp_path / "joined") == results(tmp_path / "whole")
    other = job(load_suite("length").only(("base", "rerank_only")), STORIES[:4])
    with pytest.raises(UsageError, match="holds none of these stories as this suite would make them"):
        run_ablation(other, tmp_path / "other", join=folders)


def test_who_listens_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Event] = []
    for name, listen in (("heard", heard.append), ("unheard", None)):
        monkeypatch.setenv("KATHA_CACHE", str(tmp_path / f"{name}-cache"))
        suite = load_suite("length").only(("base", "full"))
        run_ablation(job(suite, STORIES[:1]), tmp_path / name, on_event=listen)
    assert results(tmp_path / "heard") == results(tmp_path / "unheard")
    assert {event["stage"] for event in heard} >= {"plan", "render", "critique", "select", "bridge", "decide", "judge"}


def test_another_suite_in_the_folder_is_refused_and_shares_the_cache(tmp_path: Path) -> None:
    suite = load_suite("length").only(("base", "full"))
    run_ablation(job(suite, STORIES[:2]), tmp_path / "out")
    with pytest.raises(OutputFolderError, match="katha ablation of the suite 'length' with other rows"):
        run_ablation(job(load_suite("length").only(("base", "rerank_only")), STORIES[:2]), tmp_path / "out")
    made = plugins()
    run_ablation(job(load_suite("length").only(("base", "rerank_only")), STORIES[:2], given=made), tmp_path / "two")
    assert made.renderer.drawn == made.judges["pixel"].asked == []


class Failing(BlockRenderer):
    """Cannot draw one story's first scene."""

    def _draw(self, request: FrameRequest) -> bytes:
        if "number 3." in request.prompt and request.seed == 123:
            raise RenderError("The canvas is torn.")
        return super()._draw(request)


def test_a_story_whose_board_is_invalid_is_named_and_stops_nothing(tmp_path: Path) -> None:
    suite = load_suite("length").only(("base", "rerank_only"))
    table = run_ablation(job(suite, STORIES[:2], given=plugins(renderer=Failing())), tmp_path / "out").table
    base, rerank = table.rows
    assert base.boards_per_story == 2
    assert rerank.invalid_stories == {"story0": "The canvas is torn.", "story1": "The canvas is torn."}
    assert rerank.stg is None
    assert any("rerank_only: 2 stories have no board" in note for note in table.notes)


@pytest.mark.parametrize(
    ("error", "at", "lost"),
    [
        (ValueError("half a brush"), "", 3),
        (ValueError("half a brush"), "story1", 1),
        (TransientRenderError("The network is gone."), "story1", 1),
    ],
)
def test_what_may_come_back_leaves_a_suite_incomplete_and_the_same_call_draws_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, at: str, lost: int
) -> None:
    suite, renderer = load_suite("length").only(("base", "full")), BuggyRenderer(error=error, at=at)
    result = run_ablation(job(suite, STORIES[:3], given=plugins(renderer=renderer)), tmp_path / "out")
    base = result.table.row("base")
    assert (result.status, base.stories, len(base.invalid_stories)) == ("incomplete", 3 - lost, lost)
    assert result.outcome.nothing == (lost == 3)
    assert result.outcome.exit_code == int(lost == 3)
    if lost == 3:
        told = result.outcome.sentences()
        assert told[0].startswith("No question could be scored")
        assert str(error) in told[1]
    drawn, renderer.error = len(renderer.drawn), None
    again = run_ablation(job(suite, STORIES[:3], given=plugins(renderer=renderer)), tmp_path / "out")
    assert (again.status, again.reused, again.table.row("base").invalid_stories) == ("finished", False, {})
    assert run_ablation(job(suite, STORIES[:3]), tmp_path / "out").reused
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    fresh = plugins()
    run_ablation(job(suite, STORIES[:3], given=fresh), tmp_path / "fresh")
    assert results(tmp_path / "out") == results(tmp_path / "fresh")
    assert len(renderer.drawn) == len(fresh.renderer.drawn) > drawn


def test_what_a_service_refuses_is_refused_again_and_asked_for_once(tmp_path: Path) -> None:
    suite, renderer = (
        load_suite("length").only(("base",)),
        BuggyRenderer(error=RefusedFrameError("No lions."), at="story1"),
    )
    result = run_ablation(job(suite, STORIES[:3], given=plugins(renderer=renderer)), tmp_path / "out")
    assert (result.status, result.table.row("base").invalid_stories) == ("finished", {"story1": "No lions."})
    assert run_ablation(job(suite, STORIES[:3], given=plugins(renderer=renderer)), tmp_path / "out").reused


def test_answers_that_failed_are_asked_again_by_the_same_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suite, made = load_suite("length").only(("base", "full")), plugins(judges={"pixel": BuggyJudge(broken=True)})
    result = run_ablation(job(suite, STORIES[:2], given=made), tmp_path / "out")
    assert (result.status, result.outcome.answered, result.outcome.exit_code) == ("incomplete", 0, 1)
    whole = run_ablation(job(suite, STORIES[:2]), tmp_path / "out")
    assert (whole.status, whole.reused) == ("finished", False)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    run_ablation(job(suite, STORIES[:2]), tmp_path / "fresh")
    assert results(tmp_path / "out") == results(tmp_path / "fresh")


def test_too_few_stories_are_said_instead_of_an_interval(tmp_path: Path) -> None:
    table = run_ablation(job(load_suite("length").only(("base", "full")), STORIES[:5]), tmp_path / "out").table
    assert all(row.ci95 is None and row.p_corrected is None for row in table.rows)
    assert table.rows[1].delta_stg is not None
    assert any("fewer than 6: intervals" in note for note in table.notes)
    assert table.conclusion.verdict == "undecided"


def comparison(a: str, b: str, ci: tuple[float, float], **more: Any) -> RowComparison:
    """Forty stories, nine of which differ, in a family of seven."""
    shown = {
        "what": "all stories",
        "p_corrected": 0.001,
        "p_bootstrap_corrected": 0.001,
        "family": 7,
        "difference": sum(ci) / 2,
        "n_stories": 40,
    }
    test = WilcoxonTest(p=0.0001, n_nonzero=9, rank_biserial=None)
    return RowComparison.model_validate({"a": a, "b": b, "ci95": ci, "wilcoxon": test, **shown, **more})


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([comparison("full", "base", (-9, -5))], "shown"),
        ([comparison("full", "base", (-9, 1))], "not shown"),
        ([comparison("full", "base", (-9, -5), p_corrected=0.2)], "not shown"),
        ([comparison("full", "base", (-9, -5), p_bootstrap_corrected=0.2)], "not shown"),
        ([comparison("full", "base", (2, 5))], "refuted"),
        ([comparison("full", "base", (-9, 1)), comparison("full", "c", (-3, -1), role="primary")], "shown"),
    ],
)
def test_the_conclusion_is_the_one_that_the_intervals_support(rows: list[RowComparison], verdict: str) -> None:
    found = conclude(rows, "full", "base")
    assert found.verdict == verdict
    assert len(found.sentences) <= 6


def test_an_interval_that_correction_undoes_is_told_as_that() -> None:
    rows = [comparison("full", "base", (-9, -5), p_corrected=0.2)]
    text = conclude(rows, "full", "base").text
    assert "not after correction for 7 comparisons" in text
    rows = [comparison("full", "base", (-9, 1), p_corrected=0.2)]
    assert "holds zero" in conclude(rows, "full", "base").text


def test_cases_are_chosen_by_their_numbers(length: tuple[Path, AblationTable, Plugins]) -> None:
    _, table, _ = length
    cases = table.cases
    assert cases.repaired == table.row("full").accepted_bridges
    groups = [case.group for case in cases.cases]
    assert groups == sorted(groups, key=("success", "boundary", "harm").index)
    for case in cases.cases:
        assert len(case.frames) == len(case.frames_before) + 1
        assert (case.delta < 0) == (case.group == "success") or case.group == "boundary"
        assert case.before != case.after


def halves() -> tuple[StoryRecord, list[Answer], list[Answer]]:
    """A prepared story with a reporting and a steering row for each question of its half."""
    from katha.eval_bridge.questions.build import prepare_questions

    record = story()
    questions = prepare_questions(record.recoverability_questions)
    record = record.model_copy(update={"recoverability_questions": questions})
    made = [
        Answer(
            method="full",
            judge="j",
            story_id=record.story_id,
            question_id=item.question_id,
            condition="image",
            status="ok",
            answer="x",
            role=item.role,
            prompt_sha256=f"{item.role} {item.question_id}",
        )
        for item in questions
    ]
    return record, [row for row in made if row.role == "reporting"], [row for row in made if row.role == "steering"]


def test_halves_that_are_apart_pass() -> None:
    require_separate(*halves())


def test_a_steering_question_cannot_be_reported() -> None:
    record, reporting, steering = halves()
    leaked = steering[0].model_copy(update={"role": "reporting", "prompt_sha256": "new"})
    with pytest.raises(RecordError, match="is in the report"):
        require_separate(record, [*reporting, leaked], steering)


def test_a_steering_prompt_cannot_be_reported() -> None:
    record, reporting, steering = halves()
    leaked = reporting[0].model_copy(update={"prompt_sha256": steering[0].prompt_sha256})
    with pytest.raises(RecordError, match="prompt that steered"):
        require_separate(record, [leaked], steering)


def test_a_reporting_question_cannot_steer() -> None:
    record, reporting, steering = halves()
    with pytest.raises(RecordError, match="was used to steer"):
        require_separate(record, reporting, [*steering, reporting[0]])


def test_a_question_cannot_be_in_both_halves_under_two_names(tmp_path: Path) -> None:
    record = story("twins")
    first = record.recoverability_questions[0].model_copy(update={"role": "steering"})
    twin = first.model_copy(update={"question_id": "twin", "role": "reporting"})
    rest = record.recoverability_questions[1:]
    leaking = record.model_copy(update={"recoverability_questions": [first, twin, *rest]})
    with pytest.raises(RecordError, match="steering reaches reporting"):
        run_ablation(job(load_suite("length").only(("base",)), [leaking]), tmp_path / "out")


def test_steering_prompts_that_reach_the_report_stop_the_suite(tmp_path: Path) -> None:
    leaking = job(load_suite("length").only(("base",)), STORIES[:1])
    leaking.config = leaking.config.model_copy(update={"variant": STEERING_VARIANT})
    with pytest.raises(RecordError, match="with a prompt that steered"):
        run_ablation(leaking, tmp_path / "out")
    assert not (tmp_path / "out" / "table.json").exists()


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def test_a_suite_of_one_s_own_needs_no_code(tmp_path: Path) -> None:
    text = """
about: Is a lower threshold enough?
baseline: base
rows:
  base:
  eager: {mode: full, compass: {repair_threshold: 1.0}, change: {accept: always}}
"""
    table = run_ablation(job(load_suite(write(tmp_path, text)), STORIES[:2]), tmp_path / "out").table
    assert [row.mode for row in table.rows] == ["base", "eager"]
    assert table.rows[1].frames == 6


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("  base:\n  odd: {mode: telepathy}", "row 'odd': No mode is called 'telepathy'"),
        (
            "  base:\n  odd: {mode: full, compass: {gamma: 3}}",
            "row 'odd': gamma: Input should be less than or equal to 1",
        ),
        ("  base:\n  odd: {mode: full, compass: {lambda_t: -1}}", "lambda_t"),
        ("  base:\n  odd: {mode: full, change: {select: loudest}}", "row 'odd': select"),
        ("  base:\n  odd: {mode: full, sharpen: 1}", "rows.1.sharpen"),
        ("  base:\n  odd: {mode: base, scoring: {conditions: [image]}}", "validity needs the condition"),
        ("  other: {mode: base}", "there is no row 'base'"),
        ("  []", "must be a mapping with rows"),
    ],
)
def test_a_suite_that_cannot_be_run_is_refused(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        load_suite(write(tmp_path, f"about: x\nbaseline: base\nrows:\n{rows}\n"))


def test_a_planner_that_is_not_installed_is_named(tmp_path: Path) -> None:
    text = "about: x\nbaseline: base\nrows:\n  base:\n  odd: {mode: base, planner: clairvoyant}\n"
    with pytest.raises(UsageError, match="planners that are not installed: clairvoyant") as caught:
        run_ablation(job(load_suite(write(tmp_path, text)), STORIES[:1]), tmp_path / "out")
    assert "Installed planners: " in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_no_story_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no story"):
        run_ablation(job(records=[]), tmp_path / "out")
