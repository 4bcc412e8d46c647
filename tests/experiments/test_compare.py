"""Methods compared on the same stories, plans, questions and judges; what cannot be drawn is counted, never dropped."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from browser import chromium, resize
from doubles import BlockRenderer, BuggyJudge, PixelSimilarity, ScenePlanner, prepare, story, tale

from katha.agents.context import Plugins
from katha.app.cli.studies import _tell_comparison
from katha.app.reports.study_pages import write_compare_report
from katha.config import Settings
from katha.errors import (
    OutputFolderError,
    PlanError,
    RecordError,
    RefusedFrameError,
    TransientRenderError,
    UnknownPluginError,
    UsageError,
)
from katha.eval_bridge.judging.answers import read_answers
from katha.eval_bridge.judging.engine import Retry
from katha.eval_bridge.scoring.scores import score
from katha.experiments.comparison.compare import CompareJob, CompareResult, run_comparison, warnings_of
from katha.experiments.comparison.methods import Method, cross_methods, read_methods
from katha.jsonio import read_json
from katha.pictures import decode
from katha.protocols import Capabilities, Evidence, FrameRequest, JudgePrompt, JudgeReply, PlanRequest
from katha.schema import Plan, StoryRecord
from katha.schema.scores import Scores

SEEDS = (42, 123)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


@dataclass
class Reader(BuggyJudge):
    """Knows everything from the text, and guesses from the pixels."""

    gold: dict[str, str] = field(default_factory=dict)

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt, reply in zip(prompts, super().ask(evidence, prompts), strict=True):
            yield reply if evidence.text is None else replace(reply, answer=self.gold[prompt.question])


@dataclass
class Picky(BlockRenderer):
    """Refuses, fails or finds its key refused at a story; counts as another version, so that its pictures differ."""

    at: str = "s2"
    error: Exception | None = None

    def _draw(self, request: FrameRequest) -> bytes:
        if self.error is not None and request.story_id == self.at and request.scene == 3:
            raise self.error
        return super()._draw(replace(request, prompt=f"{request.prompt} {self.version}"))


class Trial:
    """Three stories and two or three methods that share a planner and a judge."""

    def __init__(self, error: Exception | None = None, **config: Any) -> None:
        self.records = [tale(name) for name in ("s1", "s2", "s3")]
        self.planner, self.judge = ScenePlanner(), Reader()
        for record in self.records:
            self.judge.gold |= {item.question: item.gold_answer for item in record.recoverability_questions}
        self.config = Settings(planner="scenes", judges=("pixel",), mode="base", seeds=SEEDS, **config)
        self.renderers: dict[str, BlockRenderer] = {"block": BlockRenderer(), "picky": Picky(version=2, error=error)}

    def job(self, methods: Sequence[Method] | None = None) -> CompareJob:
        made = methods or cross_methods(self.config, renderers=list(self.renderers))
        given = {
            method.name: Plugins(
                planner=self.planner,
                renderer=self.renderers[method.config.renderer],
                judges={"pixel": self.judge},
                similarity=PixelSimilarity(),
            )
            for method in made
        }
        return CompareJob(self.records, made, self.config, prepare, resamples=200, given=given)

    def run(self, out: Path, **more: Any) -> CompareResult:
        return run_comparison(self.job(), out, **more)


def files(out: Path) -> dict[str, bytes]:
    """What a comparison that was taken up again has to end with."""
    names = ["table.json", "scores.json", "stories.jsonl", "judging/answers.jsonl"]
    panels = sorted(path for path in out.rglob("panels/*.png"))
    return {name: (out / name).read_bytes() for name in names} | {
        str(path.relative_to(out)): path.read_bytes() for path in panels
    }


def test_every_method_gets_the_same_plan_and_questions_and_nothing_is_done_twice(tmp_path: Path) -> None:
    trial = Trial()
    table = trial.run(tmp_path / "out").table
    assert trial.planner.calls == 3
    assert [len(made.drawn) for made in trial.renderers.values()] == [30, 30]
    rows = read_answers(tmp_path / "out" / "judging" / "answers.jsonl")
    asked = {}
    for row in rows:
        asked.setdefault((row.method, row.condition), set()).add((row.story_id, row.question_id))
    assert len({frozenset(questions) for questions in asked.values()}) == 1
    assert {method for method, _ in asked} == {
        None,
        *(f"{name}@{seed}" for name in ("block", "picky") for seed in SEEDS),
    }
    assert Counter(row.condition for row in rows if row.method is None) == {"none": 36, "text": 36}
    assert [row.boards for row in table.methods] == [6, 6]
    assert [row.invalid_rate for row in table.methods] == [0.0, 0.0]
    assert table.status == "finished"
    drawn, questions = [len(made.drawn) for made in trial.renderers.values()], len(trial.judge.asked)
    before = files(tmp_path / "out")
    assert trial.run(tmp_path / "out").reused
    assert ([len(made.drawn) for made in trial.renderers.values()], len(trial.judge.asked)) == (drawn, questions)
    assert files(tmp_path / "out") == before


def test_the_numbers_are_those_of_the_score_over_both_seeds(tmp_path: Path) -> None:
    trial = Trial()
    table = trial.run(tmp_path / "out").table
    lines = (tmp_path / "out" / "stories.jsonl").read_text(encoding="utf-8").splitlines()
    records = [StoryRecord.model_validate_json(line) for line in lines]
    rows = read_answers(tmp_path / "out" / "judging" / "answers.jsonl")
    pooled = {name: [f"{name}@{seed}" for seed in SEEDS] for name in ("block", "picky")}
    again = score(records, rows, matching="lemma-set", questions="all", resamples=200, pooled=pooled)
    assert Scores.model_validate(read_json(tmp_path / "out" / "scores.json")).methods == again.methods
    for row in table.methods:
        entry = again.methods[row.name].judges["pixel"]
        assert (row.raw_stg, row.filtered_stg) == (entry.raw.stg, entry.filtered.stg)
        assert row.common_valid_stg == entry.common_valid.stg
    # Three stories are too few for an interval, which the scores have all the same.
    assert table.comparisons == [row.model_copy(update={"ci95": None}) for row in again.comparisons]
    assert {row.ci95 for row in table.methods} == {row.common_valid_ci95 for row in table.methods} == {None}
    assert "With fewer than 6 stories no interval is given." in table.notes
    for found in table.stories:
        for name, cell in found.methods.items():
            mine = [record for record in records if record.story_id == found.story_id]
            own = [row for row in rows if row.story_id == found.story_id]
            single = score(mine, own, matching="lemma-set", questions="all", resamples=0, pooled=pooled)
            block = single.methods[name].judges["pixel"].filtered
            assert cell.n == block.n
            assert cell.stg == pytest.approx(block.stg) if block.n else cell.stg is None


def test_what_cannot_be_drawn_is_invalid_with_its_reason_and_leaves_the_common_block(tmp_path: Path) -> None:
    trial = Trial(RefusedFrameError("The service would not draw scene 3.", hint="Change it."))
    table = trial.run(tmp_path / "out").table
    block, picky = table.methods
    assert (block.boards_valid, picky.boards_valid, picky.boards) == (6, 4, 6)
    assert picky.invalid_rate == pytest.approx(100 / 3)
    assert (block.stories_valid, picky.stories_valid) == (3, 2)
    reasons = {(item.board, item.story_id): item.reason for item in table.invalid}
    assert reasons == {(f"picky@{seed}", "s2"): "The service would not draw scene 3. Change it." for seed in SEEDS}
    cell = next(item for item in table.stories if item.story_id == "s2").methods
    assert cell["picky"].reason == "The service would not draw scene 3. Change it."
    assert cell["block"].reason is None
    common = [row for row in table.comparisons if row.block == "common_valid"]
    assert [row.n_stories for row in common] == [2]
    assert table.status == "finished"
    assert trial.run(tmp_path / "out").reused


@pytest.mark.parametrize("error", [TransientRenderError("The network is gone."), ValueError("half a brush")])
def test_what_may_come_back_leaves_it_unfinished_and_the_same_call_draws_the_rest(
    tmp_path: Path, error: Exception
) -> None:
    trial = Trial(error)
    table = trial.run(tmp_path / "out").table
    assert table.status == "incomplete"
    assert table.methods[1].boards_valid == 4
    trial.renderers["picky"] = Picky(version=2)
    result = trial.run(tmp_path / "out")
    assert not result.reused
    assert (result.table.status, result.table.methods[1].boards_valid) == ("finished", 6)
    assert len(trial.renderers["picky"].drawn) == 6
    fresh = Trial()
    fresh.run(tmp_path / "fresh")
    assert files(tmp_path / "out") == files(tmp_path / "fresh")


def test_a_comparison_in_which_nothing_could_be_scored_is_not_finished_and_says_why(
    tmp_path: Path,
) -> None:
    trial = Trial()
    trial.judge.broken = True
    result = trial.run(tmp_path / "out")
    assert (result.status, result.table.status, result.outcome.exit_code) == ("incomplete", "incomplete", 1)
    assert result.outcome.sentences()[0].startswith("No question could be scored: 0 of")
    assert "the judge is out" in result.outcome.sentences()[1]
    trial.judge.broken = False
    assert (again := trial.run(tmp_path / "out")).status == "finished"
    assert again.outcome.exit_code == 0


def test_a_killed_comparison_goes_on_with_the_same_bytes(tmp_path: Path) -> None:
    class Killed(BaseException):
        """What a kill looks like from inside."""

    def stop(name: str, done: int) -> None:
        if name == "picky: s1":
            raise Killed

    trial = Trial()
    with pytest.raises(Killed):
        trial.run(tmp_path / "out", on_story=stop)
    trial.run(tmp_path / "out")
    assert [len(made.drawn) for made in trial.renderers.values()] == [30, 30]
    Trial().run(tmp_path / "fresh")
    assert files(tmp_path / "out") == files(tmp_path / "fresh")


def test_a_wrong_key_stops_at_once(tmp_path: Path) -> None:
    trial = Trial(UsageError("The service refused the key.", hint="Check SOME_KEY."))
    with pytest.raises(UsageError, match="SOME_KEY"):
        trial.run(tmp_path / "out")
    assert trial.judge.asked == []


def test_a_story_that_a_planner_cannot_plan_is_invalid_for_it(tmp_path: Path) -> None:
    class Stuck(ScenePlanner):
        def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
            if story.story_id == "s3":
                raise PlanError("There is no event.")
            return super().plan(story, request)

    trial = Trial()
    trial.planner = Stuck()
    table = trial.run(tmp_path / "out").table
    assert {item.reason for item in table.invalid} == {"no plan by 'scenes': There is no event."}
    assert [row.stories_valid for row in table.methods] == [2, 2]


def test_the_strictest_prompt_limit_holds_for_all(tmp_path: Path) -> None:
    asked: list[PlanRequest] = []

    class Asked(ScenePlanner):
        def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
            asked.append(request)
            return super().plan(story, request)

    trial = Trial()
    trial.planner = Asked()
    trial.renderers["block"].capabilities = Capabilities(default_size=(64, 48), prompt_tokens=77)
    trial.renderers["picky"].capabilities = Capabilities(default_size=(64, 48), prompt_tokens=512, deterministic=False)
    table = trial.run(tmp_path / "out").table
    assert [request.prompt_tokens for request in asked] == [77, 77, 77]
    assert [row.seeds for row in table.methods] == [[42, 123], [42]]


def test_the_headline_is_common_valid_and_a_reference_names_the_other_side(tmp_path: Path) -> None:
    trial = Trial()
    trial.renderers["third"] = BlockRenderer()
    job = trial.job()
    job.reference = "block"
    table = run_comparison(job, tmp_path / "out").table
    assert {(row.a, row.b) for row in table.comparisons} == {("picky", "block"), ("third", "block")}
    assert {row.family for row in table.comparisons} == {2}
    assert {row.block for row in table.comparisons if row.headline} == {"common_valid"}
    for row in table.methods:
        assert row.n_common <= row.n_valid <= row.n_scored
    assert len({row.n_common for row in table.methods}) == 1
    assert not any("not by judge" in note for note in table.notes)


def test_modes_are_methods_and_only_reporting_questions_count(tmp_path: Path) -> None:
    trial = Trial()
    trial.renderers = {"block": BlockRenderer()}
    made = cross_methods(trial.config.model_copy(update={"renderer": "block"}), modes=["base", "caption_bridge"])
    assert [method.name for method in made] == ["base", "caption_bridge"]
    table = run_comparison(trial.job(made), tmp_path / "out").table
    assert table.questions == "reporting"
    assert [row.seeds for row in table.methods] == [[42, 123], [42]]
    rows = read_answers(tmp_path / "out" / "judging" / "answers.jsonl")
    assert {row.role for row in rows} == {"reporting"}
    folder = next((tmp_path / "out" / "boards").glob("caption_bridge-*")) / "42" / "s1"
    kinds = [frame["kind"] for frame in read_json(folder / "storyboard.json")["frames"]]
    assert kinds.count("bridge") == 1
    assert any("pixel chose the boards of caption_bridge and reports them" in note for note in table.notes)


def test_another_comparison_and_a_foreign_folder_are_refused(tmp_path: Path) -> None:
    trial = Trial()
    trial.run(tmp_path / "out")
    other = Trial()
    other.records = other.records[:2]
    with pytest.raises(OutputFolderError, match="with other stories, methods or settings"):
        other.run(tmp_path / "out")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "mine.txt").write_text("mine")
    with pytest.raises(OutputFolderError, match=r"mine\.txt"):
        trial.run(tmp_path / "foreign")
    other.records = [story("../up")]
    with pytest.raises(RecordError, match="cannot be the name of a folder"):
        other.run(tmp_path / "up")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- {name: a, renderer: sketch}", "one method only"),
        ("- {name: a}\n- {name: a}", "Two methods are called 'a'"),
        ("- {name: a}\n- {name: b, color: red}", r"method 2 \('b'\) has the unknown field 'color'"),
        ("- {name: a}\n- {name: b, size: big}", r"'size': a size is WIDTHxHEIGHT"),
        ("- {name: a}\n- {name: b, mode: best}", "No mode is called 'best'"),
        ("- {name: a}\n- {name: 'b@1'}", "cannot name a method"),
        ("a: 1", "must be a list of methods"),
        ("- [", "is not YAML"),
    ],
)
def test_a_methods_file_that_does_not_fit_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "methods.yaml"
    path.write_text(text)
    with pytest.raises((UsageError, UnknownPluginError), match=words):
        read_methods(path, Settings())


def test_a_name_says_what_varies() -> None:
    config = Settings()
    names = [method.name for method in cross_methods(config, ["rule", "scene"], ["sketch", "folder:/a/b/boards"])]
    assert names == ["rule + sketch", "rule + folder:boards", "scene + sketch", "scene + folder:boards"]
    assert [method.name for method in cross_methods(config, ["rule", "scene"])] == ["rule", "scene"]
    assert len({method.slug for method in cross_methods(config, renderers=["a:x/y", "a:z/y2"])}) == 2


@pytest.fixture
def page(tmp_path: Path) -> Path:
    Trial(RefusedFrameError("The service would not draw scene 3.")).run(tmp_path / "out")
    return write_compare_report(tmp_path / "out")


def test_the_report_is_one_file_that_holds_every_board_and_reason(page: Path) -> None:
    html = page.read_text(encoding="utf-8")
    assert "http" not in html.replace("http-equiv", "")
    assert html.count('class="film"') == 5
    assert html.count("Invalid: The service would not draw scene 3.") == 1
    for words in ("Common gap", "Paired differences", "Where meaning is lost", "need people"):
        assert words in html


@pytest.mark.browser
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1366, 900)])
def test_the_report_fits_phones_and_desktops(page: Path, tmp_path: Path, width: int, height: int) -> None:
    with chromium(tmp_path / "profile") as driver:
        resize(driver, width, height)
        driver.get(page.as_uri())
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width
        shown = driver.execute_script(
            "return [...document.images].filter(i => i.closest('details').open).every(i => i.decode())"
            ".valueOf() && [...document.querySelectorAll('.film li')].length"
        )
        assert shown == 25
        logs = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        asked = [entry["params"]["request"]["url"] for entry in logs if entry["method"] == "Network.requestWillBeSent"]
        assert page.as_uri() in asked
        assert [url for url in asked if url.startswith(("http", "ws"))] == []


@dataclass
class Busy(BlockRenderer):
    """Is busy at every other call for a third scene."""

    calls: int = 0

    def _draw(self, request: FrameRequest) -> bytes:
        self.calls += request.scene == 3
        if request.scene == 3 and self.calls % 2:
            raise TransientRenderError("The server is busy.")
        return super()._draw(request)


def test_a_busy_service_is_asked_again_as_in_a_run(tmp_path: Path) -> None:
    trial, waited = Trial(), list[float]()
    trial.renderers["block"] = Busy()
    job = replace(trial.job(), retry=Retry(sleep=waited.append))
    table = run_comparison(job, tmp_path / "out").table
    assert table.invalid == []
    assert table.status == "finished"
    assert waited == [0.5] * 6
    trial.renderers["block"] = Picky(version=7, error=TransientRenderError("The server is down."), at="s1")
    again, waits = replace(trial.job(), retry=Retry(sleep=waited.append)), len(waited)
    lost = run_comparison(again, tmp_path / "other").table
    assert {item.story_id for item in lost.invalid} == {"s1"}
    assert waited[waits:] == [0.5, 1.0, 2.0] * len(SEEDS)


def test_boards_of_another_length_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trial = Trial()
    config = trial.config.model_copy(update={"renderer": "block", "seeds": (42,)})
    methods = [Method("plain", config), Method("more", config.model_copy(update={"mode": "random_bridge"}))]
    table = run_comparison(trial.job(methods), tmp_path / "out").table
    plain, more = (row.frames for row in table.methods)
    assert plain is not None
    assert more == plain + 1
    assert any(note.startswith("Boards are not of equal length") for note in warnings_of(table))
    _tell_comparison(table)
    printed = capsys.readouterr().out
    assert "  Boards are not of equal length" in printed
    assert "  With fewer than 6 stories no interval is given." in printed
    assert not any("equal length" in note for note in Trial().run(tmp_path / "same").table.notes)


def test_the_method_that_empties_the_common_questions_is_named(tmp_path: Path) -> None:
    class Refusing(Reader):
        """Refuses the pictures of one method."""

        def spec(self) -> dict[str, Any]:
            return {**super().spec(), "refuses": True}

        def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
            hidden = evidence.images and decode(evidence.images[0]).tobytes() in foreign
            for reply in super().ask(evidence, prompts):
                yield JudgeReply("refused", error="Not a sketch.") if hidden else reply

    trial = Trial()
    seen, foreign = Trial(), set[bytes]()
    seen.run(tmp_path / "seen")
    for path in (tmp_path / "seen" / "boards" / seen.job().methods[1].slug).rglob("panels/*.png"):
        foreign.add(decode(path.read_bytes()).tobytes())
    refusing = Refusing()
    refusing.gold = trial.judge.gold
    trial.judge = refusing
    table = trial.run(tmp_path / "out").table
    (note,) = (one for one in warnings_of(table) if "because picky has" in one)
    assert note.startswith("0 questions are valid for every method, because picky has 0")
    assert not any("because" in one for one in Trial().run(tmp_path / "fine").table.notes)
