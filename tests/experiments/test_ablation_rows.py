"""Rows whose model is not on this machine, and what a table may conclude from the pairs that are left."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from doubles import PixelJudge, plugins, story

from katha.app.cli.studies import _line
from katha.app.reports.study_pages import write_ablation_report
from katha.compass.modes import Suite, load_suite
from katha.config import Settings
from katha.errors import ModelError, UsageError
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.scoring.reliability import split_half
from katha.eval_bridge.scoring.rows import choose_questions
from katha.eval_bridge.scoring.scores import score
from katha.experiments.ablate.conclusions import conclude, sentence_of
from katha.experiments.ablate.job import AblationFolder, AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.ablate.table import _moral
from katha.experiments.ablate.tally import SuiteFolder
from katha.experiments.offline.robustness import read_study
from katha.jsonio import write_json
from katha.schema import Answer, StoryRecord
from katha.schema.scores import RowDifference, WilcoxonTest
from katha.schema.tables import RowComparison

ABSENT = "planner: gemma-st:nobody/no-such-model"
UNDRAWN = "renderer: sdxl:nobody/no-such-checkpoint"


@dataclass
class DeafJudge(PixelJudge):
    ignores_instructions: bool = True


def forest(number: int) -> StoryRecord:
    text = story(f"story{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text)


STORIES = [forest(number) for number in range(6)]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def suite(folder: Path, rows: str, baseline: str = "base") -> Suite:
    path = folder / "mine.yaml"
    path.write_text(f"about: x\nbaseline: {baseline}\nrows:\n{rows}\n")
    return load_suite(str(path))


def job(made: Suite, records: list[StoryRecord], **more: Any) -> AblationJob:
    doubles = plugins()
    config = Settings(planner="doubles:ScenePlanner", renderer="doubles:BlockRenderer", judges=tuple(doubles.judges))
    return AblationJob(records, made, config, given=doubles, resamples=200, **more)


def test_a_row_whose_model_is_not_here_is_listed_and_the_others_are_compared(tmp_path: Path) -> None:
    rows = f"  base:\n  planned: {{mode: base, {ABSENT}}}\n  drawn: {{mode: base, {UNDRAWN}}}\n  rerank_only:"
    table = run_ablation(job(suite(tmp_path, rows), STORIES), tmp_path / "out").table
    assert [row.mode for row in table.rows] == ["base", "planned", "drawn", "rerank_only"]
    planned, drawn = table.rows[1:3]
    assert "'nobody/no-such-model' is not on this machine. Run `hf download" in planned.not_run
    assert "'nobody/no-such-checkpoint' is not on this machine. Run `hf download" in drawn.not_run
    told = [row.model_dump(mode="json") for row in (planned, drawn, table.rows[0])]
    assert {value for row in told[:2] for value in row.values() if isinstance(value, int | float)} == {False}
    assert told[0].keys() == told[2].keys()
    assert table.rows[0].not_run is None
    assert table.rows[3].delta_stg is not None
    assert [(item.a, item.b, item.family) for item in table.comparisons] == [("rerank_only", "base", 3)]
    assert any(note.startswith("planned: not run, so it has no number.") for note in table.notes)
    assert "not run: The model" in _line(planned)
    page = write_ablation_report(tmp_path / "out").read_text()
    assert "Not run" in page
    assert "no-such-checkpoint" in page
    assert "None" not in page.split("<main>")[1].split('id="repeat"')[0]


def test_a_baseline_that_is_not_here_is_replaced_and_the_table_says_so(tmp_path: Path) -> None:
    rows = f"  far: {{mode: base, {UNDRAWN}}}\n  base:\n  rerank_only:"
    table = run_ablation(job(suite(tmp_path, rows, "far"), STORIES), tmp_path / "out").table
    assert table.baseline == "base"
    assert "far was not run, so base is the baseline instead." in table.notes


def test_one_row_alone_is_compared_with_nothing(tmp_path: Path) -> None:
    rows = f"  base:\n  planned: {{mode: base, {ABSENT}}}"
    table = run_ablation(job(suite(tmp_path, rows), STORIES), tmp_path / "out").table
    assert table.conclusion.verdict == "undecided"
    assert table.conclusion.text == "Only base was run, so there is nothing to compare it with."
    assert 'id="compared"' not in write_ablation_report(tmp_path / "out").read_text()


def test_rows_that_were_asked_for_by_name_must_be_here(tmp_path: Path) -> None:
    rows = f"  base:\n  planned: {{mode: base, {ABSENT}}}"
    with pytest.raises(ModelError, match="row 'planned': The model"):
        run_ablation(job(suite(tmp_path, rows), STORIES, strict=True), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_suite_of_which_nothing_can_be_run_is_refused(tmp_path: Path) -> None:
    rows = f"  far: {{mode: base, {UNDRAWN}}}"
    with pytest.raises(UsageError, match=r"No row of the suite 'mine' can be run here. far: The checkpoint"):
        run_ablation(job(suite(tmp_path, rows, "far"), STORIES), tmp_path / "out")


def pair(a: str, b: str, ci: tuple[float, float], **more: Any) -> RowComparison:
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


def verdict(*rows: RowComparison, focus: str | None = "full") -> tuple[str, str]:
    found = conclude(rows, focus, "base")
    return found.verdict, found.text


GAIN = pair("full", "base", (-9, -5))


def designed(other: str, ci: tuple[float, float], **more: Any) -> RowComparison:
    return pair("bridge", other, ci, what="equal length", **more)


def test_the_declared_contrast_decides_and_the_others_stand_beside_it() -> None:
    rows = [
        pair("bridge", "extra", (-4, -1), role="primary", family=1),
        pair("full", "base", (2, 9)),
        pair("x", "base", (-3, 1)),
    ]
    found = conclude(rows, "full", "base")
    assert found.verdict == "shown"
    assert found.text == (
        "bridge against extra: STG -2.5 points on 40 stories (95% -4.0 to -1.0, p 0.001 by 9 stories that differ): "
        "bridge loses less."
    )
    assert found.sentences == [
        "Shown to lose more, of 7 secondary contrasts: full than base (+5.5, +2.0 to +9.0).",
        "No difference is shown in 1 further pair.",
    ]


def test_harm_to_the_baseline_is_in_the_conclusion() -> None:
    rows = [pair("full", "base", (-9, 1)), pair("random_bridge", "base", (1, 5))]
    found = conclude(rows, "full", "base")
    assert found.verdict == "not shown"
    assert found.sentences[0].startswith("Shown to lose more")
    assert "random_bridge than base" in found.sentences[0]


def test_controls_of_equal_length_that_are_not_beaten_are_named() -> None:
    found = conclude([GAIN, designed("extra", (-4, -1)), designed("caption", (-4, 1))], "full", "base")
    assert found.verdict == "shown"
    assert "Not shown at equal length and budget: bridge on caption" in found.sentences[1]


def test_a_conclusion_has_at_most_seven_sentences_whatever_the_suite() -> None:
    open_, harm = (-4.0, 1.0), (1.0, 4.0)
    rows = [pair(f"r{at}", "base", (open_, harm, (-4.0, -1.0))[at % 3], spread=20.0) for at in range(40)]
    rows += [designed(f"c{at}", open_) for at in range(9)] + [pair("a", "b", open_, role="primary", spread=20.0)]
    found = conclude(rows, "full", "base")
    told = " ".join([found.text, *found.sentences])
    assert len(found.sentences) <= 6
    assert "By the spread of these stories (20 points), with 40 stories a true difference of 9 points" in told


def test_a_contrast_of_which_a_row_was_not_run_is_said_to_be_so() -> None:
    found = conclude([GAIN], "full", "base", asked=("bridge", "extra"))
    assert (found.verdict, found.text) == ("undecided", "The suite's contrast, bridge against extra, was not run.")


def test_the_common_valid_block_decides_and_signs_that_disagree_are_told() -> None:
    test = WilcoxonTest(p=0.0001, n_nonzero=9, rank_biserial=None)
    common = RowDifference(
        n_stories=40, difference=3.0, ci95=(1.0, 5.0), wilcoxon=test, p_corrected=0.01, p_bootstrap_corrected=0.01
    )
    row = pair("full", "base", (-9, -5), common_valid=common, raw=common, disagree=True)
    found = conclude([row], "full", "base")
    assert found.verdict == "refuted"
    assert "STG +3.0 points on 40 stories [common valid; own valid -7.0, raw +3.0; the signs disagree]" in found.text


def test_rows_without_a_declared_contrast_are_open_or_shown() -> None:
    other = pair("path", "random_path", (-3, -1))
    assert verdict(pair("path", "base", (-2, 1)), focus=None) == ("open", "No row is shown to differ from another.")
    assert verdict(pair("path", "base", (-2, 1)), other, focus=None) == ("shown", "Rows are shown to differ.")


def test_a_lower_gap_of_the_same_boards_is_no_better_board() -> None:
    row = pair("unfiltered", "protocol", (-9, -5), same="boards")
    found = conclude([row], None, "protocol")
    assert found.verdict == "measured"
    assert sentence_of(row).endswith("a lower STG is measured on the same boards.")
    assert found.text.endswith("the boards are the same, so this is about how they are measured.")


def test_scoring_rows_are_known_to_have_the_same_boards(tmp_path: Path) -> None:
    table = run_ablation(job(load_suite("components"), STORIES), tmp_path / "out").table
    assert {row.same for row in table.comparisons} == {"boards"}
    assert {row.ambiguity_leakage for row in table.rows} == {None}  # nobody has said which questions are defective
    assert "Leakage" not in write_ablation_report(tmp_path / "out").read_text()
    assert {row.common_valid for row in table.rows} == {None}  # each scoring is the row's own


def test_a_row_without_a_gap_is_compared_with_nothing(tmp_path: Path) -> None:
    table = run_ablation(job(load_suite("conditions"), STORIES), tmp_path / "out").table
    by = {row.a: row for row in table.comparisons}
    assert by["image_only"].difference is None
    assert by["image_only"].nothing == "image_only has no answers under text, so it has no STG"
    assert by["text_and_both"].nothing == "text_and_both has no answers under image, so it has no STG"
    assert {row.family for row in by.values()} == {0, 1}
    for row in table.rows:
        compared = by.get(row.mode)
        assert row.delta_stg == (compared.difference if compared else None)
        assert row.harmed is None
    assert "image_only" not in table.conclusion.text
    told = {row.mode: row.stg_reliability for row in table.rows}
    assert {name for name, value in told.items() if value is None} >= {"image_only", "image_and_both", "text_and_both"}
    study = read_study(tmp_path / "out")
    outcomes = study.outcomes()
    boards = study.members(outcomes)["full_protocol"]
    wanted = split_half(outcomes, choose_questions(outcomes, boards), "full_protocol")
    assert wanted.n_boards > 3
    assert told["full_protocol"] == pytest.approx(wanted.value)


def test_rows_that_cannot_differ_are_said_to_be_that(tmp_path: Path) -> None:
    matching = run_ablation(job(load_suite("matching"), STORIES[:2]), tmp_path / "matching").table
    assert any("which every matching rule reads alike" in note for note in matching.notes)
    together = load_suite("aggregation").for_judges(("pixel",))
    judges = run_ablation(job(together, STORIES[:2]), tmp_path / "judges").table
    assert any("There is one judge, pixel, so the ensemble is that judge" in note for note in judges.notes)
    assert not any("one judge" in note for note in matching.notes)
    assert not any("reads alike" in note for note in judges.notes)


def test_the_chance_of_a_moral_label_is_that_of_the_options_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["patience", "humility", "perseverance", "kindness", "Unclear"]
    asked = {"question_type": "moral", "gold_answer": "patience", "role": "reporting", "options": options}
    question = STORIES[0].recoverability_questions[0].model_copy(update=asked)
    made = job(load_suite("moral"), STORIES[:1])
    tally = SuiteFolder(made, AblationFolder(tmp_path))
    tally.__dict__["stories"] = [STORIES[0].model_copy(update={"recoverability_questions": [question]})]
    assert {row.name: _moral(tally, row) for row in made.suite.rows} == {
        "binary": {"labels": 2, "chance": 75},
        "coarse": {"labels": 4, "chance": 50},
        "ten": {"labels": 10, "chance": 50},
        "twelve": {"labels": 12, "chance": 25},
    }
    monkeypatch.setattr(PixelJudge, "always_chooses", False)
    freely = replace(made, config=made.config.model_copy(update={"answers": "free"}))
    tally = SuiteFolder(freely, AblationFolder(tmp_path))
    tally.__dict__["stories"] = [STORIES[0].model_copy(update={"recoverability_questions": [question]})]
    assert _moral(tally, made.suite.rows[0]) == {"labels": 2, "chance": 50}


def test_too_few_stories_decide_nothing_in_a_suite_without_a_focus() -> None:
    row = pair("rule", "base", (0, 0), ci95=None)
    assert verdict(row, focus=None)[0] == "undecided"


def test_planners_are_not_compared_by_questions_that_one_of_them_read(tmp_path: Path) -> None:
    plain = [StoryRecord(story_id=item.story_id, title=item.title, story_text=item.story_text) for item in STORIES[:2]]
    rows = "  direct: {mode: base, planner: direct}\n  rule: {mode: base, planner: rule}\n"
    rows += "  caption: {mode: base, planner: caption}"
    own = suite(tmp_path, rows, "direct")
    table = run_ablation(job(own, plain), tmp_path / "plain").table
    by = {row.a: row for row in table.comparisons}
    assert by["rule"].nothing == "the questions of 2 stories, which bring none, were read by the planner 'rule' itself"
    assert by["rule"].difference is table.row("rule").delta_stg is None
    assert "were read by" not in (by["caption"].nothing or "")
    known = run_ablation(job(own, STORIES[:2]), tmp_path / "known").table
    assert not any("were read by" in (row.nothing or "") for row in known.comparisons)


def test_a_row_without_a_board_shows_dashes_without_a_unit(tmp_path: Path) -> None:
    table = run_ablation(job(suite(tmp_path, "  base:\n  rerank_only:"), STORIES), tmp_path / "out").table
    rows = [table.rows[0], table.rows[1].model_copy(update={"copy_rate": None})]
    made = table.model_copy(update={"rows": rows})
    write_json(tmp_path / "out" / "table.json", made.model_dump(mode="json"))
    assert "–%" not in write_ablation_report(tmp_path / "out").read_text()


def test_a_judge_that_chose_does_not_report_and_its_optimism_is_a_column(tmp_path: Path) -> None:
    doubles = plugins(judges={"pixel": PixelJudge(), "own": PixelJudge(name="own")})
    doubles = replace(doubles, steering=("own",))
    made = job(load_suite("length").only(("base", "rerank_only")), STORIES)
    made.given = doubles
    out = tmp_path / "out"
    table = run_ablation(made, out).table
    rows = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    assert {row["judge"] for row in rows} == {"pixel"}
    kept = [path.read_text().splitlines() for path in out.glob("stories/*/steering.jsonl")]
    steering = [json.loads(line) for lines in kept for line in lines]
    assert {row["judge"] for row in steering} == {"own"}
    base, best = table.rows
    assert base.optimism is None
    stories = [StoryRecord.model_validate_json(line) for line in (out / "stories.jsonl").read_text().splitlines()]

    def gain(pattern: str) -> float:
        lines = [line for path in sorted(out.glob(pattern)) for line in path.read_text().splitlines()]
        answers = [Answer.model_validate_json(line) for line in lines]
        pooled = {"base": [f"base@{seed}" for seed in (42, 123, 2026)]}
        found = score(stories, answers, matching="lemma-set", resamples=0, pooled=pooled).methods
        judge = next(iter(found["base"].judges))
        return found["rerank_only"].judges[judge].raw.image - found["base"].judges[judge].raw.image

    own, others = gain("stories/*/answers.own.jsonl"), gain("stories/*/answers.jsonl")
    assert best.optimism == pytest.approx(own - others)
    assert any(note.startswith("optimism: what own, which chose the boards") for note in table.notes)
    alone = run_ablation(job(load_suite("length").only(("base", "rerank_only")), STORIES[:2]), tmp_path / "both").table
    assert any("Held out by question, not by judge: pixel chose the boards of" in note for note in alone.notes)
    assert alone.rows[1].optimism is None


def test_what_an_inserted_frame_was_told_is_counted_and_the_rest_stands_apart(tmp_path: Path) -> None:
    made = job(load_suite("length").only(("base", "bridge_always")), STORIES)
    table = run_ablation(made, tmp_path / "out").table
    base, always = table.rows
    assert base.given_away is None
    assert always.given_away > 0
    lines = (tmp_path / "out" / "stories.jsonl").read_text().splitlines()
    stories = [StoryRecord.model_validate_json(line) for line in lines]
    results = [json.loads(path.read_text()) for path in (tmp_path / "out").glob("stories/*/result.json")]
    told: dict[str, str] = defaultdict(str)
    for result in results:
        for board in result["boards"]:
            told[result["story_id"]] += " | ".join(
                f["prompt"] for f in board["board"]["frames"] if f["kind"] != "scene"
            )
    asked = [(s.story_id, q) for s in stories for q in s.recoverability_questions if q.role == "reporting"]
    held = sum(
        any(normalise(text) in normalise(told[story]) for text in (q.gold_answer, *q.accepted_answers) if " " in text)
        for story, q in asked
    )
    assert always.given_away == pytest.approx(100 * held / len(asked))
    assert always.rest.n < always.common_valid.n or held == 0
    assert always.rest.n == base.rest.n
    assert table.comparisons[0].rest is not None


def test_prompts_that_no_judge_reads_are_said_to_be_inert(tmp_path: Path) -> None:
    made = job(load_suite("heldout").only(("base_same_prompts", "base_held_out")), STORIES[:2])
    made.given = replace(made.given, judges={"deaf": DeafJudge(name="deaf")})
    made.config = made.config.model_copy(update={"judges": ("deaf",)})
    notes = run_ablation(made, tmp_path / "out").table.notes
    assert any(
        note.startswith("deaf reads no instruction, so rows that differ by their prompts alone") for note in notes
    )


def test_each_of_several_judges_reports_the_boards_that_the_others_chose(tmp_path: Path) -> None:
    names = ("a", "b", "c")
    made = job(load_suite("length").only(("base", "rerank_only", "full")), STORIES)
    made.given = plugins(judges={name: PixelJudge(name=name) for name in names})
    out = tmp_path / "out"
    table = run_ablation(made, out).table
    results = [json.loads(path.read_text()) for path in sorted(out.glob("stories/*/result.json"))]
    rows = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
    for result in results:
        boards = {(item["row"], item["judge"]): item for item in result["boards"]}
        assert {judge for row, judge in boards if row == "full"} == set(names)
        assert {judge for row, judge in boards if row == "base"} == {None}
        shown = {key: tuple(frame["sha256"] for frame in item["board"]["frames"]) for key, item in boards.items()}
        for name in names:  # what a judge reports as a row's was asked about the board that it did not choose
            packets = {
                row["packet_sha256"]
                for row in rows
                if row["story_id"] == result["story_id"] and row["judge"] == name and row["method"] == "full"
            }
            assert len(packets) == 2, "image, and text with image, of one board"
            others = [key[1] for key in shown if key[0] == "full" and shown[key] != shown["full", name]]
            strange = {
                row["packet_sha256"]
                for row in rows
                if row["story_id"] == result["story_id"] and row["method"] == "full" and row["judge"] in others
            }
            assert not packets & strange
        told = (out / "stories" / result["story_id"] / "steering.jsonl").read_text().splitlines()
        assert {json.loads(line)["judge"] for line in told} == set(names)
    looks = [
        {tuple(f["sha256"] for f in item["board"]["frames"]) for item in r["boards"] if item["judge"]} for r in results
    ]
    assert any(len(found) > 1 for found in looks), "leaving a judge out changes no choice, so this shows nothing"

    stories = [StoryRecord.model_validate_json(line) for line in (out / "stories.jsonl").read_text().splitlines()]

    def seen(pattern: str, judge: str, method: str) -> float:
        lines = [line for path in sorted(out.glob(pattern)) for line in path.read_text().splitlines()]
        answers = [Answer.model_validate_json(line) for line in lines]
        kept = [row for row in answers if row.method in (None, method) and row.judge == judge]
        found = score(stories, kept, matching="lemma-set", resamples=0).methods[method].judges[judge].raw.image
        assert found is not None
        return found

    surplus = []
    for name in names:
        pooled = [
            Answer.model_validate_json(line)
            for path in sorted(out.glob("stories/*/answers.own.jsonl"))
            for line in path.read_text().splitlines()
        ]
        mine = [row for row in pooled if row.judge == name]
        labels = sorted({row.method for row in mine if row.method and row.method.startswith("full, ")})
        assert labels == [f"full, reported by {other}" for other in names if other != name]
        own = score(stories, mine, matching="lemma-set", resamples=0, pooled={"full": labels}).methods["full"]
        surplus.append(own.judges[name].raw.image - seen("stories/*/answers.jsonl", name, "full"))
    full = table.row("full")
    assert full.optimism == pytest.approx(sum(surplus) / 3)
    assert full.boards_per_story == 3
    assert table.row("base").optimism is None
    assert any(
        note.startswith("Held out by judge: a, b, c each report the boards of rerank_only, full")
        for note in table.notes
    )
    assert not any("flatters" in note for note in table.notes)
    assert run_ablation(made, out).table == table
