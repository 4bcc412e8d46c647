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
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import Answer


class RecordedJudge:
    """Answers from `FILE` (`answers.jsonl`), or from one of its judges: `FILE#JUDGE`.

    An answer is found by the hashes of the evidence and of the prompt that it was given for, whichever board or story
    shows them. Answers keep the name of the judge who gave them.
    """

    def __init__(self, source: str | None = None) -> None:
        """Read the archive.

        Raises:
            UsageError: no file is named, or it holds several judges and none is chosen.
            InputFileError: it cannot be read, or none of its rows carries the hashes that a replay needs.
        """
        if not source:
            raise UsageError("The judge 'recorded' needs an archive.", hint="Write recorded:answers.jsonl.")
        path, _, wanted = source.partition("#") if not Path(source).exists() else (source, "", "")
        rows = [row for row in iter_answers(Path(path)) if row.prompt_sha256 and row.packet_sha256]
        names = sorted({row.judge for row in rows})
        if not rows:
            raise InputFileError(
                f"{path!r} holds no row with prompt_sha256 and packet_sha256, so nothing can be replayed.",
                hint="Score it with `katha score` instead.",
            )
        if (wanted and wanted not in names) or (not wanted and len(names) > 1):
            raise UsageError(
                f"{path!r} holds the judges {', '.join(names)}.", hint=f"Choose one: recorded:{path}#{names[0]}."
            )
        self._name = wanted or names[0]
        self._answers = {(row.packet_sha256, row.prompt_sha256): row for row in rows if row.judge == self._name}
        self._archive = sha256_hex(read_bytes(Path(path)))

    def spec(self) -> Mapping[str, Any]:
        """Return the recorded judge's name and the archive's hash."""
        return {"name": self._name, "recorded": self._archive}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield the archived reply of each prompt, or `not_asked`."""
        packet = evidence_sha256(evidence)
        for prompt in prompts:
            row = self._answers.get((packet, prompt_sha256(prompt)))
            yield _reply(row) if row is not None else JudgeReply("not_asked", error="not in the archive")


def _reply(row: Answer) -> JudgeReply:
    return JudgeReply(**{field.name: getattr(row, field.name) for field in fields(JudgeReply)})
