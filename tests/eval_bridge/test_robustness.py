"""Table 4, reliability, the text's ceiling and cases by rule: every number against a second computation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import independent_tables as slow
import pytest
from independent_scorer import Independent
from independent_tables import JUDGES, METHODS, write_archive

from katha.errors import RecordError, UsageError
from katha.eval_bridge.scoring.reliability import DIVISIONS, qualitative_groups, split_half
from katha.eval_bridge.scoring.robustness import HALVES, MethodOutcomes, effects, half_data
from katha.eval_bridge.scoring.rows import choose_questions
from katha.experiments.offline.robustness import people_columns, read_study, robustness
from katha.schema.robustness import Robustness

RESAMPLES = 60


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_archive(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="module")
def found(archive: Path) -> Robustness:
    study = read_study(archive / "stories.jsonl", [archive / "answers.jsonl"], matching="exact-set")
    return robustness(study, resamples=RESAMPLES)


@pytest.fixture(scope="module")
def other(archive: Path) -> Independent:
    return Independent(archive / "stories.jsonl", archive / "answers.jsonl", "reporting", RESAMPLES, 42)


def close(value: object, wanted: object) -> bool:
    """No difference above 1e-6, whatever is nested in whatever."""
    if isinstance(wanted, dict):
        return isinstance(value, dict) and all(close(value[name], item) for name, item in wanted.items())
    if isinstance(wanted, list):
        return value is not None and all(close(a, b) for a, b in zip(list(value), wanted, strict=True))  # type: ignore[call-overload]
    return value == wanted if wanted is None else value == pytest.approx(wanted, abs=1e-6, rel=0)


def test_rankings_by_block_agree_with_a_second_computation(found: Robustness, other: Independent) -> None:
    assert found.judge == "ensemble"
    assert [(row.a, row.b) for row in found.blocks] == slow.pairs_of(slow.BLOCKS)
    for row in found.blocks:
        wanted = slow.rank_correlation(other, ("ensemble", row.a), ("ensemble", row.b))
        assert close(row.model_dump(), wanted), (row, wanted)
    assert any(row.rho not in (None, 1.0) for row in [*found.blocks, *found.judges])


def test_rankings_by_judge_agree_with_a_second_computation(found: Robustness, other: Independent) -> None:
    methods, boards = found.judges
    assert close(methods.model_dump(), slow.rank_correlation(other, *((name, "common_valid") for name in JUDGES)))
    assert close(boards.model_dump(), slow.board_correlation(other, *JUDGES))
    assert boards.n > 40


def test_half_of_the_data_agrees_with_a_second_computation(found: Robustness, other: Independent) -> None:
    assert found.half_data is not None
    assert close(found.half_data.model_dump(), slow.half_data(other, "ensemble", HALVES))
    assert found.half_data.rho not in (None, 1.0)


def test_groups_agree_with_a_second_computation(found: Robustness, other: Independent) -> None:
    sources, types = found.groups
    assert (sources.by, types.by) == ("source_family", "narrative_type")
    assert (sources.without, types.without) == (4, 0)
    records = [json.loads(line) for line in Path(sources_file(other)).read_text().splitlines()]
    for groups, field in ((sources, None), (types, "narrative_type")):
        names = {
            record["story_id"]: record[field] if field else record["provenance"].get("source_dataset")
            for record in records
        }
        for row in groups.rows:
            inside = {story for story, name in names.items() if name == row.group}
            assert close(row.model_dump(), slow.group(other, "ensemble", row.method, inside)), row
        for name, mean in groups.means.items():
            own = [row.stg["common_valid"] for row in groups.rows if row.group == name]
            assert mean == pytest.approx(sum(value for value in own if value is not None) / len(METHODS))
        assert groups.spread == pytest.approx(max(groups.means.values()) - min(groups.means.values()))
    assert any(row.ci95 is None for row in sources.rows), "a group of fewer than six stories has no interval"
    assert any(row.ci95 is not None for row in types.rows)


def sources_file(other: Independent) -> str:
    return str(other.source)


def test_reliability_agrees_with_a_second_computation(found: Robustness, other: Independent) -> None:
    assert [row.method for row in found.reliability] == list(METHODS)
    for row in found.reliability[:2]:
        assert row.divisions == DIVISIONS
        assert close(row.model_dump(), slow.reliability(other, "ensemble", row.method, DIVISIONS)), row


def test_the_texts_ceiling_agrees_with_a_second_computation(found: Robustness, other: Independent) -> None:
    for row in found.ceiling:
        wanted = slow.ceiling(other, "ensemble", row.method)
        patterns = wanted.pop("patterns")
        assert close(row.model_dump(), wanted), row
        assert {(item.text, item.image, item.text_image): item.n for item in row.patterns if item.n} == patterns
        assert sum(item.share for item in row.patterns) == pytest.approx(100.0)
    assert any(row.only_together for row in found.ceiling)


def test_cases_are_those_that_the_rule_names(found: Robustness, other: Independent) -> None:
    for method in METHODS:
        valid = other.kept(method, "ensemble", "filtered")
        gaps = {
            story: value
            for story in other.stories
            if (value := slow.gap(other, [name for name in valid if name[0] == story], method, "ensemble")) is not None
        }
        ordered = sorted(gaps.values())
        place = 0.75 * (len(ordered) - 1)
        low, high = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
        quartile = low + (place - int(place)) * (high - low)
        assert found.cases.quartile[method] == pytest.approx(100 * quartile, abs=1e-6)
        own = [case for case in found.cases.cases if case.method == method]
        chosen = {case.story_id for case in own if case.group == "high_collapse"}
        assert chosen == {story for story, value in gaps.items() if value >= quartile - 1e-12 and value > 1e-12}
        typical = [case for case in own if case.group == "typical"]
        far = sorted(abs(100 * value - found.cases.median[method]) for value in gaps.values())
        distances = sorted(abs((case.stg or 0) - found.cases.median[method]) for case in typical)
        assert distances == pytest.approx(far[:3], abs=1e-6)
        assert all(case.gap and case.gap > 0 for case in own if case.group == "dimension")
    assert {case.group for case in found.cases.cases} == {"high_collapse", "typical", "dimension"}


def test_two_methods_have_no_rank_correlation_and_that_is_said(tmp_path: Path) -> None:
    folder = write_archive(tmp_path, stories=4, methods=("flux", "sdxl"))
    study = read_study(folder / "stories.jsonl", [folder / "answers.jsonl"], matching="exact-set")
    found = robustness(study, resamples=0)
    assert [row.rho for row in found.blocks] == [None] * 3
    assert found.half_data is None
    assert any("needs three" in note for note in found.notes)


def test_what_two_halves_share_is_reliable(tmp_path: Path) -> None:
    """Boards that lose everything or nothing are told apart by any half of their questions."""
    folder = write_archive(tmp_path)
    lines = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    for row in lines:
        lost = row["condition"] == "image" and int(row["story_id"][1:]) % 2
        row |= {"status": "ok", "answer": "else" if lost else f"answer {row['question_id'][1:]}"}
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    study = read_study(folder / "stories.jsonl", [folder / "answers.jsonl"], matching="exact-set")
    outcomes = study.outcomes()
    row = split_half(outcomes, choose_questions(outcomes, ["flux"]), "flux")
    assert row.value == pytest.approx(1.0)
    assert row.ci95 is None, "no board differs"


def test_effects_are_ranges_over_methods_that_differ_in_one_thing() -> None:
    varied = {
        "direct": ("direct", "flux", "base"),
        "rule": ("rule", "flux", "base"),
        "gemma": ("gemma", "flux", "base"),
        "gemma sdxl": ("gemma", "sdxl", "base"),
        "odd": ("other", "other", "full"),
    }
    stg = {"direct": 35.2, "rule": 30.0, "gemma": 24.0, "gemma sdxl": 28.1, "odd": 1.0}
    found = effects(stg, varied)
    assert found is not None
    assert (found.planner, found.renderer) == (pytest.approx(11.2), pytest.approx(4.1))
    assert (found.planner_groups, found.renderer_groups) == (1, 1)
    assert effects({"odd": 1.0}, varied) is None


def test_people_columns_are_means_by_method() -> None:
    rows: list[dict[str, Any]] = [
        {"line": 1, "story_id": "a", "method": "x", "rater": "r", "visual": 4, "human_score": 3.5},
        {"line": 2, "story_id": "b", "method": "x", "rater": "r", "visual": 2},
        {"line": 3, "story_id": "b", "method": "y@42", "human_score": 1.0},
    ]
    x, y = people_columns(rows, ["x", "y"])
    assert x.visual is not None
    assert x.human_score is not None
    assert (x.visual.mean, x.visual.n, x.human_score.mean) == (3.0, 2, 3.5)
    assert y.visual is None
    assert y.human_score is not None
    assert y.human_score.mean == 1.0
    with pytest.raises(RecordError, match=r"line 9 is about 'z'"):
        people_columns([{"line": 9, "story_id": "a", "method": "z", "visual": 1}], ["x", "y"])


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder of katha eval"):
        read_study(tmp_path)


def test_other_halves_give_another_ranking(archive: Path) -> None:
    """The seed decides which halves are drawn."""
    study = read_study(archive / "stories.jsonl", [archive / "answers.jsonl"], matching="exact-set")
    outcomes = study.outcomes()
    one, two = (half_data(MethodOutcomes(outcomes, study.members(outcomes), 0, seed)) for seed in (1, 2))
    assert one is not None
    assert two is not None
    assert one.rho != two.rho


def test_the_data_sets_own_examples_have_five_scenes(archive: Path) -> None:
    study = read_study(archive / "stories.jsonl", [archive / "answers.jsonl"], matching="exact-set")
    scenes = [{"scene_index": at, "scene_text": f"Scene {at}."} for at in range(1, 6)]
    raw = [record.model_dump() | {"scenes": scenes, "moral_label": "kindness"} for record in study.records]
    records = [type(study.records[0]).model_validate(item) for item in raw]
    outcomes = study.outcomes()
    groups = qualitative_groups(MethodOutcomes(outcomes, study.members(outcomes), 0), records)
    own = [case for case in groups.cases if case.group == "dataset"]
    assert [case.source for case in own] == [None] * 3 + ["aesop"] * 3 + ["panchatantra"] * 3
