"""A comparison with a real diffusion renderer at toy size, beside one that cannot draw some of the stories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
import torch
from doubles import BlockRenderer, PixelJudge, PixelSimilarity, ScenePlanner, prepare, tale
from tiny_diffusion import build

from katha.agents.context import Plugins
from katha.app.reports.study_pages import write_compare_report
from katha.config import Settings
from katha.errors import RefusedFrameError
from katha.experiments.comparison.compare import CompareJob, run_comparison
from katha.experiments.comparison.methods import cross_methods
from katha.protocols import Evidence, FrameRequest, JudgePrompt, JudgeReply
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer
from katha.schema import StoryRecord
from katha.schema.tables import CompareTable

INVALID = {"s1", "s4"}
STORIES = 9


@dataclass
class Shy(BlockRenderer):
    """Refuses two of the stories."""

    version: int = 2

    def _draw(self, request: FrameRequest) -> bytes:
        if request.story_id in INVALID:
            raise RefusedFrameError("The service would not draw it.")
        return super()._draw(replace(request, prompt=f"{request.prompt} {self.version}"))


@dataclass
class Reader(PixelJudge):
    """Knows everything from the text, and guesses from the pixels."""

    gold: dict[str, str] = field(default_factory=dict)

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt, reply in zip(prompts, super().ask(evidence, prompts), strict=True):
            yield reply if evidence.text is None else replace(reply, answer=self.gold[prompt.question])


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[CompareTable, str]]:
    """The table and the report."""
    folder = tmp_path_factory.mktemp("compare")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    records = [_short(tale(f"s{number}")) for number in range(STORIES)]
    judge = Reader(gold={item.question: item.gold_answer for item in records[0].recoverability_questions})
    names = {
        "sdxl": SdxlRenderer(str(build("sdxl", folder / "model")), SdxlOptions(steps=1, device="cpu")),
        "block": BlockRenderer(),
        "shy": Shy(),
    }
    config = Settings(planner="scenes", judges=("pixel",), mode="base", seeds=(42,), size=(32, 32))
    methods = cross_methods(config, renderers=list(names))
    given = {
        method.name: Plugins(ScenePlanner(), names[method.name], {"pixel": judge}, PixelSimilarity())
        for method in methods
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(folder / "cache"))
        job = CompareJob(records, methods, config, prepare, resamples=500, given=given)
        made = run_comparison(job, folder / "out").table
        yield made, write_compare_report(folder / "out").read_text(encoding="utf-8")
    process_pool().release()
    torch.set_num_threads(threads)


def _short(record: StoryRecord) -> StoryRecord:
    """The story's first two scenes."""
    return record.model_copy(
        update={
            "scenes": record.scenes[:2],
            "transitions": record.transitions[:1],
            "recoverability_questions": record.recoverability_questions[:3],
        }
    )


def test_invalid_generations_are_logged_and_never_dropped(compared: tuple[CompareTable, str]) -> None:
    table = compared[0]
    rows = {row.name: row for row in table.methods}
    assert {name: (row.boards, row.boards_valid) for name, row in rows.items()} == {
        "sdxl": (STORIES, STORIES), "block": (STORIES, STORIES), "shy": (STORIES, STORIES - 2),
    }  # fmt: skip
    assert rows["shy"].invalid_rate == pytest.approx(100 * 2 / STORIES)
    assert {(item.board, item.story_id) for item in table.invalid} == {("shy", story) for story in INVALID}
    assert all(row.text == 100.0 and row.filtered_stg is not None for row in rows.values())


def test_differences_are_paired_and_their_p_values_corrected(compared: tuple[CompareTable, str]) -> None:
    table = compared[0]
    pairs = {(row.a, row.b): row for row in table.comparisons if row.block == "common_valid"}
    assert {frozenset(pair) for pair in pairs} == {
        frozenset(pair) for pair in (("sdxl", "block"), ("sdxl", "shy"), ("block", "shy"))
    }
    for row in pairs.values():
        assert row.n_stories == STORIES - len(INVALID)
        assert row.difference == pytest.approx(row.stg_b - row.stg_a) or row.difference == pytest.approx(
            row.stg_a - row.stg_b
        )
        assert row.ci95[0] <= row.difference <= row.ci95[1]
        assert row.family >= len(pairs)
        p = row.wilcoxon.p
        assert row.p_corrected == (None if p is None else pytest.approx(min(1.0, row.family * p)))
    assert any(row.p_corrected is not None for row in pairs.values())


def test_the_report_shows_every_board_beside_the_others(compared: tuple[CompareTable, str]) -> None:
    page = compared[1]
    assert page.count("The service would not draw it.") >= len(INVALID)
    assert all(name in page for name in ("sdxl", "block", "shy"))
