"""Tuning: array arithmetic that follows the run's own rules, a choice with its uncertainty, and a lock that holds."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import BuggyJudge, plugins, story
from hypothesis import given, settings
from hypothesis import strategies as st
from tuning_data import by_rules, random_stories

from katha.agents.context import Plugins, protocol_of_config
from katha.app.reports.study_pages import advice
from katha.compass import lock as lock_module
from katha.compass.lock import code_sha256, read_lock, require_tested
from katha.compass.lock import tests_of as beside_of
from katha.compass.modes import load_suite
from katha.compass.tuning import (
    FeatureTable,
    Grid,
    Setting,
    StoryData,
    best_setting,
    choose,
    fold_gaps,
    sample_settings,
)
from katha.config import Settings
from katha.errors import InputFileError, JudgeError, UsageError
from katha.eval_bridge.scoring.rows import row_numbers
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.tune import TuneJob, tune
from katha.schema import CompassSettings, StoryRecord
from katha.schema.tables import TuningGain, TuningResult

SEEDS = (42, 123, 2026)
DEFAULT = Setting(3, **CompassSettings().model_dump())


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_arrays_decide_what_the_rules_decide(seed: int) -> None:
    stories = random_stories(6, seed)
    tried = sample_settings(Grid(), 40, DEFAULT, seed)
    table = FeatureTable(stories, [item.delta for item in tried])
    boards = table.boards(tried)
    for at, setting in enumerate(tried):
        assert table.of(boards[at]).tolist() == [by_rules(item, setting) for item in stories]


def test_stories_of_different_sizes_fit_one_table() -> None:
    stories = [*random_stories(3, 1), *random_stories(3, 2, (42,)), *random_stories(2, 3, (42, 123))]
    tried = sample_settings(Grid(), 60, DEFAULT)
    table = FeatureTable(stories, [item.delta for item in tried])
    boards = table.boards(tried)
    for at, setting in enumerate(tried):
        assert table.of(boards[at]).tolist() == [by_rules(item, setting) for item in stories]


def test_sums_by_fold_add_up() -> None:
    stories = random_stories(20, 5)
    tried = sample_settings(Grid(), 300, DEFAULT)
    table = FeatureTable(stories, [item.delta for item in tried])
    boards = table.boards(tried)
    folds = np.arange(20) % 4
    sums = table.sums(boards, folds, 4, chunk=7)
    for at in (0, 11, 299):
        own = table.of(boards[at])
        assert np.array_equal(sums[at].sum(axis=0), own.sum(axis=0))
        assert np.array_equal(sums[at, 2], own[folds == 2].sum(axis=0))


def test_the_sample_begins_with_the_default_and_prefers_what_is_cheaper() -> None:
    tried = sample_settings(Grid(), 500, DEFAULT)
    assert tried[0] == DEFAULT
    assert len(tried) == len(set(tried)) == 500
    assert [item.candidates for item in tried[1:]] == sorted(item.candidates for item in tried[1:])
    assert tried == sample_settings(Grid(), 500, DEFAULT)
    assert best_setting(np.array([0.3, 0.1 + 1e-15, 0.1])) == 1


def test_the_choice_is_the_smallest_gap_of_all_that_were_tried() -> None:
    stories = random_stories(30, 9)
    found = choose(stories, SEEDS, CompassSettings(), 400, 200, 42)
    grid = Grid.fitting(stories)
    gaps = []
    for item in sample_settings(grid, 400, DEFAULT):
        counts = np.array([by_rules(one, item) for one in stories])
        gaps.append(float(fold_gaps(counts.sum(axis=0))))
    assert found.stg == pytest.approx(100 * min(gaps))
    assert found.default_stg == pytest.approx(100 * gaps[0])
    assert found.gain.difference == pytest.approx(found.stg - found.default_stg)
    assert found.gain.difference <= 0


def test_the_curve_has_an_interval_at_every_point_and_goes_through_the_choice() -> None:
    found = choose(random_stories(30, 9), SEEDS, CompassSettings(), 200, 200, 42)
    for name, points in found.curve.items():
        assert [point.value for point in points] == sorted(point.value for point in points)
        (own,) = [point for point in points if point.chosen]
        assert own.value == found.setting[name]
        assert own.stg == pytest.approx(found.stg)
        assert own.difference == 0
        for point in points:
            low, high = point.ci95
            assert low <= point.stg <= high


def test_the_gain_on_unseen_parts_is_told_beside_the_gain_on_seen_ones() -> None:
    """On noise the best of many settings looks better than it is; stories that it was not chosen on show that."""
    found = [choose(random_stories(40, seed), SEEDS, CompassSettings(), 400, 0, 42) for seed in range(5)]
    seen = np.mean([item.stg - item.default_stg for item in found])
    unseen = np.mean([item.cross_validated - item.default_stg for item in found])
    assert unseen > seen


def test_few_stories_give_a_choice_and_no_interval() -> None:
    found = choose(random_stories(4, 1), SEEDS, CompassSettings(), 50, 200, 42)
    assert found.ci95 is None
    assert found.gain.ci95 is None
    assert any("too few for an interval" in note for note in found.notes)


# A whole tuning with real plug-ins, and the lock it leaves.


def wood(number: int, split: str) -> StoryRecord:
    text = story(f"{split}{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text).model_copy(update={"split": split})


VALIDATION = [wood(number, "validation") for number in range(6)]
TEST = [wood(number, "test") for number in range(10, 12)]
CONFIG = Settings(planner="scenes", renderer="block", judges=("pixel",))


def tuning(out: Path, made: Plugins, records: list[StoryRecord] | None = None) -> TuningResult:
    job = TuneJob(records or VALIDATION, TEST, CONFIG, settings=200, resamples=100, given=made, keep=True)
    return tune(job, out, out.parent / "compass.lock.yaml").chosen


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TuningResult, Plugins]:
    folder, made = tmp_path_factory.mktemp("tuned"), plugins()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(folder / "cache"))
        return folder, tuning(folder / "tuning", made), made


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def test_tuning_again_measures_nothing(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    folder, chosen, first = tuned
    again = plugins()
    lock = (folder / "compass.lock.yaml").read_bytes()
    assert first.renderer.drawn
    assert tuning(folder / "tuning", again).model_copy(update={"seconds": chosen.seconds}) == chosen
    assert again.renderer.drawn == again.judges["pixel"].asked == []
    assert (folder / "compass.lock.yaml").read_bytes() == lock


def test_the_tuned_outcome_is_the_one_that_a_run_with_the_lock_has(
    tuned: tuple[Path, TuningResult, Plugins], tmp_path: Path
) -> None:
    folder, chosen, _ = tuned
    lock = read_lock(folder / "compass.lock.yaml")
    config = CONFIG.model_copy(update={"compass": lock.settings, "seeds": SEEDS[: lock.candidates]})
    suite = load_suite("length").only(("full",))
    if lock.candidates == len(SEEDS):
        job = AblationJob(VALIDATION, suite, config, given=plugins(), resamples=0)
        own = run_ablation(job, tmp_path / "out").table.rows[0]
        assert own.stg == pytest.approx(chosen.blocks["filtered"].stg)
        assert own.raw is None or own.raw.stg == pytest.approx(chosen.blocks["raw"].stg)
    assert CompassSettings.model_validate(lock.settings.model_dump()) == lock.settings


def test_a_lock_names_what_it_froze(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    lock = read_lock(tuned[0] / "compass.lock.yaml")
    assert lock.stories.tuned_on == [record.story_id for record in VALIDATION]
    assert set(lock.stories.questions) == {record.story_id for record in (*VALIDATION, *TEST)}
    assert set(lock.models) == {"planner", "renderer", "bridge_renderer", "judges", "similarity"}
    assert "judge/image.j2" in lock.prompts
    lock.require_stories(TEST, "lock")


def test_a_story_that_was_tuned_on_cannot_test(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    lock = read_lock(tuned[0] / "compass.lock.yaml")
    with pytest.raises(UsageError, match="'validation2' is one that 'lock' was tuned on"):
        lock.require_stories([*TEST, VALIDATION[2]], "lock")


def test_questions_that_changed_since_are_refused(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    lock = read_lock(tuned[0] / "compass.lock.yaml")
    first, *rest = TEST[0].recoverability_questions
    eased = first.model_copy(update={"accepted_answers": [*first.accepted_answers, "anything"]})
    changed = TEST[0].model_copy(update={"recoverability_questions": [eased, *rest]})
    with pytest.raises(UsageError, match="questions of 'test10' are not those"):
        lock.require_stories([changed], "lock")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"protocol": {"answers": "choice"}}, "answers 'choice' instead of 'free'"),
        ({"models": {"renderer": "0"}}, "other renderer"),
        ({"prompts": {"judge/image.j2": "0"}}, r"other prompts \(judge/image.j2\)"),
    ],
)
def test_a_lock_of_something_else_is_refused(
    tuned: tuple[Path, TuningResult, Plugins], change: dict[str, dict[str, str]], message: str
) -> None:
    lock = read_lock(tuned[0] / "compass.lock.yaml")
    given = {name: {**getattr(lock, name), **change.get(name, {})} for name in ("protocol", "models", "prompts")}
    lock.require(lock.protocol, lock.models, lock.prompts, "lock")
    with pytest.raises(UsageError, match=message):
        lock.require(**given, name="lock")


def test_a_lock_that_was_edited_is_refused(tuned: tuple[Path, TuningResult, Plugins], tmp_path: Path) -> None:
    text = (tuned[0] / "compass.lock.yaml").read_text()
    path = tmp_path / "edited.yaml"
    path.write_text(text.replace("lambda_r: 1.0", "lambda_r: 2.0", 1))
    with pytest.raises(InputFileError, match="changed after it was frozen"):
        read_lock(path)
    path.write_text("settings: [")
    with pytest.raises(InputFileError, match="is not YAML"):
        read_lock(path)
    path.write_text("settings: 1\n")
    with pytest.raises(InputFileError, match="is not a lock"):
        read_lock(path)


def test_nothing_is_chosen_by_what_was_not_answered(tmp_path: Path) -> None:
    # Two stories of which the judge, once mended, answers some by the text: it answers by a hash of the question.
    made = plugins(judges={"pixel": BuggyJudge(broken=True)})
    with pytest.raises(JudgeError, match="No question could be scored"):
        tuning(tmp_path / "tuning", made, VALIDATION[2:4])
    assert not (tmp_path / "compass.lock.yaml").exists()
    made.judges["pixel"].broken = False
    assert tuning(tmp_path / "tuning", made, VALIDATION[2:4]).stories == 2
    assert (tmp_path / "compass.lock.yaml").exists()


def test_a_test_story_in_the_tuning_set_is_refused() -> None:
    with pytest.raises(UsageError, match="'test10' is in the tuning set and outside it"):
        TuneJob([*VALIDATION, TEST[0]], TEST, CONFIG)


def test_nothing_is_chosen_on_a_test_split() -> None:
    with pytest.raises(UsageError, match="'test10' is of the split 'test'"):
        TuneJob([*VALIDATION, TEST[0]], TEST[1:], CONFIG)


def test_one_text_under_two_ids_is_no_held_out_story(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    words = VALIDATION[2].story_text.upper().replace(".", " !")
    twin = TEST[0].model_copy(update={"story_id": "twin", "story_text": words})
    with pytest.raises(UsageError, match="'validation2', in the tuning set, and 'twin', outside it"):
        TuneJob(VALIDATION, [*TEST, twin], CONFIG)
    with pytest.raises(UsageError, match="'twin' has the words of one that 'lock' was tuned on"):
        read_lock(tuned[0] / "compass.lock.yaml").require_stories([*TEST, twin], "lock")


def test_a_story_that_differs_in_a_sentence_is_no_held_out_story(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    sentences = VALIDATION[2].story_text.split(". ")
    assert len(sentences) > 3
    words = ". ".join(["Long ago something else was told", *sentences[1:]])
    near = TEST[0].model_copy(update={"story_id": "near", "story_text": words})
    with pytest.raises(UsageError, match="'validation2', in the tuning set, and 'near', outside it, tell the same"):
        TuneJob(VALIDATION, [*TEST, near], CONFIG)
    with pytest.raises(UsageError, match="'near' tells nearly all of 'validation2', which 'lock' was tuned on"):
        read_lock(tuned[0] / "compass.lock.yaml").require_stories([near], "lock")


def test_options_that_a_lock_fixes_are_refused_and_not_ignored(tuned: tuple[Path, TuningResult, Plugins]) -> None:
    lock = read_lock(tuned[0] / "compass.lock.yaml")
    lock.require_options(CONFIG, ("judges",), "lock")
    other = CONFIG.model_copy(update={"seeds": (7, 8)})
    with pytest.raises(UsageError, match="The lock 'lock' fixes seeds, and 7,8 was given"):
        lock.require_options(other, ("seeds",), "lock")
    with pytest.raises(UsageError, match="fixes seeds"):  # out of a preset
        lock.require_options(other, (), "lock")


@pytest.mark.parametrize("change", [{"style": "ink"}, {"size": (320, 200)}, {"panels": 4}, {"judge_options": {"a": 1}}])
def test_a_lock_binds_what_changes_a_picture_or_an_answer(
    tuned: tuple[Path, TuningResult, Plugins], change: dict[str, Any]
) -> None:
    lock = read_lock(tuned[0] / "compass.lock.yaml")
    asked = protocol_of_config(CONFIG.model_copy(update=change))
    with pytest.raises(UsageError, match=f"{next(iter(change))} .* instead of"):
        lock.require(asked, lock.models, lock.prompts, "lock")


def test_a_lock_binds_the_code_that_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_sha256()
    names = [path for path, _ in lock_module._files(files("katha.eval_bridge"))]
    assert {"scoring/scores.py", "questions/build.py", "matching/match.py", "judging/engine.py"} <= set(names)
    with monkeypatch.context() as patch:
        patch.setattr(lock_module, "_PLUGGED", ())  # the matcher and the reader that are installed
        assert code_sha256() != before
    monkeypatch.setattr(lock_module, "_BOUND", ("compass", "agents"))
    assert code_sha256() != before


def test_a_story_is_tested_under_a_lock_as_it_was_first(
    tuned: tuple[Path, TuningResult, Plugins], tmp_path: Path
) -> None:
    path = tmp_path / "compass.lock.yaml"
    path.write_bytes((tuned[0] / "compass.lock.yaml").read_bytes())
    lock, new = read_lock(path), TEST[0].model_copy(update={"story_id": "new", "story_text": "A new tale. It ends."})
    require_tested(lock, path, [new])
    kept = beside_of(path).read_bytes()
    require_tested(lock, path, [new])
    assert beside_of(path).read_bytes() == kept
    first, *rest = new.recoverability_questions
    eased = first.model_copy(update={"accepted_answers": [*first.accepted_answers, "anything"]})
    for change in ({"story_text": "A new tale. It goes on."}, {"recoverability_questions": [eased, *rest]}):
        with pytest.raises(UsageError, match="'new' is not as it was when it was first tested under"):
            require_tested(lock, path, [new.model_copy(update=change)])
    assert beside_of(path).read_bytes() == kept


def test_nothing_better_writes_no_lock_and_says_so(tmp_path: Path) -> None:
    job = TuneJob(VALIDATION, TEST, CONFIG, settings=1, resamples=100, given=plugins())
    found = tune(job, tmp_path / "tuning", tmp_path / "compass.lock.yaml")
    assert found.lock is None
    assert not (tmp_path / "compass.lock.yaml").exists()
    assert advice(found.chosen) == "Nothing that was tried is better than the settings before."
    job.keep = True
    assert tune(job, tmp_path / "tuning", tmp_path / "compass.lock.yaml").lock == tmp_path / "compass.lock.yaml"
    assert (tmp_path / "compass.lock.yaml").exists()


def test_the_choice_is_made_on_questions_that_no_setting_can_make_invalid(
    tuned: tuple[Path, TuningResult, Plugins],
) -> None:
    folder, chosen, _ = tuned
    for record in VALIDATION:
        kept = (folder / "tuning" / "stories" / record.story_id / "features.json").read_text()
        data = StoryData.model_validate_json(kept)
        boards = [one for item in data.candidates for one in (item, *(b for row in item.repairs.values() for b in row))]
        sizes = {tuple(row[0] for row in board.counts) for board in boards}
        assert len(sizes) == 1  # the same questions for every board
        for board in boards:
            own, raw = board.on("filtered"), board.on("raw")
            assert all(c[0] <= o[0] <= r[0] for c, o, r in zip(board.counts, own, raw, strict=True))
    assert chosen.stg == chosen.blocks["common_valid"].stg
    assert chosen.blocks["common_valid"].n == chosen.blocks["common_valid"].default_n


def test_numbers_of_no_row_are_none() -> None:
    assert row_numbers({}) == {}


@pytest.mark.parametrize(
    ("unseen", "before", "span", "told"),
    [
        (14.9, 13.2, [-17.7, 3.7], "no better than the settings before (13.2)"),
        (11.0, 13.2, [-4.0, 0.5], "the interval holds zero"),
        (11.0, 13.2, [-4.0, -0.5], ""),
        (None, None, None, "too few stories to show"),
    ],
)
def test_a_choice_that_is_not_shown_to_be_better_is_told(
    unseen: float | None, before: float | None, span: list[float] | None, told: str
) -> None:
    gain = TuningGain(difference=None, ci95=span, p_bootstrap=None)
    made = {"setting": {"gamma": 1.0}, "default": {"gamma": 0.9}, "gain": gain}
    tuning = TuningResult.model_construct(cross_validated=unseen, default_stg=before, **made)
    found = advice(tuning)
    assert tuning.better != bool(told)
    assert told in found
    assert bool(told) == bool(found)
