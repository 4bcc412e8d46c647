"""Measuring boards that share frames: a transition is measured once, and what failed is asked again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from doubles import PixelJudge, plugins, story

from katha.agents import critique
from katha.agents.run import run_story
from katha.config import Settings
from katha.jsonio import sha256_hex
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import Answer

CONFIG = Settings(planner="scenes", renderer="block", judges=("pixel",), compass={"repair_threshold": 1.0})
PAIRS = ("1-2", "2-3", "3-4", "4-5")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def steering(out: Path) -> dict[str, list[Answer]]:
    """The answers about transitions, by board and transition."""
    found: dict[str, list[Answer]] = {}
    for line in (out / "answers.jsonl").read_text().splitlines():
        row = Answer.model_validate_json(line)
        if row.method and "/transition:" in row.method:
            found.setdefault(row.method, []).append(row)
    return found


def test_boards_that_show_a_transition_by_the_same_frames_share_its_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, ...]] = []
    real = critique.make_packet

    def packet(story_id: str, condition: Any, images: Sequence[bytes] = (), text: str | None = None) -> Any:
        shown.append(tuple(sha256_hex(png) for png in images))
        return real(story_id, condition, images, text)

    monkeypatch.setattr(critique, "make_packet", packet)
    result = run_story(story(), CONFIG, tmp_path / "out", plugins=plugins())
    pairs = [images for images in shown if len(images) in (2, 3)]
    assert len(pairs) == len(set(pairs)) == 3 * 4 + 3  # of three boards, and where each of three bridges stands
    found = steering(tmp_path / "out")
    boards = [item.name for item in result.candidates.candidates]
    assert set(found) == {f"{name}/transition:{pair}" for name in boards for pair in PAIRS}
    decision = result.candidates.decision
    assert decision.weakest is not None
    weak = "-".join(map(str, decision.weakest))
    for name in boards[3:]:
        for pair in PAIRS:
            ours, theirs = (
                [(row.question_id, row.packet_sha256, row.answer) for row in found[f"{board}/transition:{pair}"]]
                for board in (name, decision.selected)
            )
            assert (ours == theirs) == (pair != weak)


class Shy(PixelJudge):
    """Refuses what it is asked about two pictures for the first time."""

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt, reply in zip(prompts, super().ask(evidence, prompts), strict=True):
            known = f"{[sha256_hex(png) for png in evidence.images]} {prompt.question}"
            first = len(evidence.images) == 2 and known not in self.asked
            self.asked.append(known)
            yield JudgeReply("refused", error="too shy") if first else reply


def test_a_failure_about_a_transition_is_asked_again_for_the_next_board(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"mode": "full_always"})
    result = run_story(story(), config, tmp_path / "out", plugins=plugins(judges={"pixel": Shy()}))
    decision = result.candidates.decision
    assert decision.weakest is not None
    weak = "-".join(map(str, decision.weakest))
    found = steering(tmp_path / "out")
    for pair in (pair for pair in PAIRS if pair != weak):
        assert {row.status for row in found[f"{decision.selected}/transition:{pair}"]} == {"refused"}
        for seed in config.seeds:
            assert {row.status for row in found[f"bridge:{seed}/transition:{pair}"]} == {"ok"}
