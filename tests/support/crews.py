"""Plug-ins for workers: each fills its process, so that every one has a stage of its own, and dies when it is told to."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from doubles import BlockRenderer, PixelJudge, note

from katha.errors import ModelError
from katha.protocols import BoardContext, Evidence, FrameRequest, JudgePrompt, JudgeReply


def _die_once(mark: Path | None) -> None:
    """End the process as a kill does, the first time that anybody comes here."""
    if mark is not None:
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return
        os._exit(9)


@dataclass
class FullJudge(PixelJudge):
    """dies: a file that the first process to ask makes before it dies. refuses: every question of these ids is refused.
    here: the machine that has the model; any, unless it is named."""

    exclusive: bool = True
    dies: Path | None = None
    after: int = 3
    absent: Path | None = None
    refused: int = 0

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for number, reply in enumerate(super().ask(evidence, prompts)):
            if number == self.after:
                _die_once(self.dies)
            refused = self.refused and int.from_bytes(prompts[number].question.encode()) % 5 < self.refused
            yield JudgeReply("refused", error="no") if refused else reply


@dataclass
class AbsentJudge(FullJudge):
    """Is on one machine only: the first process that asks for it."""

    def __post_init__(self) -> None:
        if self.absent is not None:
            self.absent.mkdir(exist_ok=True)
            if (self.absent / str(os.getpid())).exists():
                return
            (self.absent / str(os.getpid())).touch()
            if len(list(self.absent.iterdir())) == 2:
                raise ModelError(f"The model is not on {socket.gethostname()}.")


@dataclass
class FullRenderer(BlockRenderer):
    """See `FullJudge`."""

    exclusive: bool = True
    dies: Path | None = None

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        _die_once(self.dies)
        return super().insert_frame(request, context)


def paid(log: Path) -> list[str]:
    """What was done, as it was noted."""
    return log.read_text().splitlines() if log.exists() else []


__all__ = ["AbsentJudge", "FullJudge", "FullRenderer", "note", "paid"]
