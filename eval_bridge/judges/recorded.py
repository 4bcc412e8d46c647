"""`recorded:FILE`: replays an archive of answers; what it does not hold is typed `not_asked`, never invented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, UsageError
from katha.eval_bridge.judging.answers import iter_answers
from katha.eval_bridge.packets.instructions import prompt_sha256
from katha.eval_bridge.packets.packets import evidence_sha256
from katha.jsonio import read_bytes, sha256_hex
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Answer, Condition


class RecordedJudge(Judge):
    """Answers from `FILE` (`answers.jsonl`), or from one of its judges: `FILE#JUDGE`.

    A row that katha wrote is found by the hashes of the evidence and of the prompt that it was given for, whichever
    board or story shows them. A row without hashes, as other programs write them, is found by its method, story,
    question and condition. Answers keep the name of the judge who gave them.
    """

    def __init__(self, source: str | None = None) -> None:
        """Read the archive.

        Raises:
            UsageError: no file is named, or it holds several judges and none is chosen.
            InputFileError: it cannot be read, or holds no answer.
        """
        if not source:
            raise UsageError("The judge 'recorded' needs an archive.", hint="Write recorded:answers.jsonl.")
        path, _, wanted = source.partition("#") if not Path(source).exists() else (source, "", "")
        rows = list(iter_answers(Path(path)))
        names = sorted({row.judge for row in rows})
        if not rows:
            raise InputFileError(f"{path!r} holds no answer, so nothing can be replayed.")
        if (wanted and wanted not in names) or (not wanted and len(names) > 1):
            raise UsageError(
                f"{path!r} holds the judges {', '.join(names)}.", hint=f"Choose one: recorded:{path}#{names[0]}."
            )
        self._name = wanted or names[0]
        self._answers: dict[tuple[str, str], Answer] = {}
        self._named: dict[tuple[str, str, Condition], dict[str | None, Answer]] = {}
        for row in rows:
            if row.judge != self._name:
                continue
            if row.prompt_sha256 and row.packet_sha256:
                self._answers[row.packet_sha256, row.prompt_sha256] = row
            else:
                self._named.setdefault((row.story_id, row.question_id, row.condition), {})[row.method] = row
        self._boards = sorted({name for found in self._named.values() for name in found if name is not None})
        self._archive = sha256_hex(read_bytes(Path(path)))

    def spec(self) -> Mapping[str, Any]:
        """Return the recorded judge's name and the archive's hash."""
        return {"name": self._name, "recorded": self._archive}

    def recall(self, method: str | None, story_id: str, question_id: str, condition: Condition) -> JudgeReply | None:
        """Return the archived reply of a row without hashes; None where the archive has none, or all are hashed.

        A text that was asked for each board stands for all where the answers are one; else none of them does.
        """
        found = self._named.get((story_id, question_id, condition), {})
        if method in found:
            return _reply(found[method])
        if method is None and found:
            said = {(row.status, row.answer): row for row in found.values()}
            if len(said) == 1:
                return _reply(next(iter(said.values())))
            names = ", ".join(sorted(map(str, found)))
            return JudgeReply("not_asked", error=f"the archive has other answers to the text for each of {names}")
        if method is not None and self._boards and method not in self._boards and not self._answers:
            there = ", ".join(self._boards)
            return JudgeReply(
                "not_asked", error=f"the archive has no board {method!r}, only {there} (--boards NAME=DIR)"
            )
        return None

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield the archived reply of each prompt, or `not_asked`."""
        packet = evidence_sha256(evidence)
        for prompt in prompts:
            row = self._answers.get((packet, prompt_sha256(prompt)))
            yield _reply(row) if row is not None else JudgeReply("not_asked", error="not in the archive")


def _reply(row: Answer) -> JudgeReply:
    return JudgeReply(**{field.name: getattr(row, field.name) for field in fields(JudgeReply)})
