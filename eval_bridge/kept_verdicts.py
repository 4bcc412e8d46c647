"""Verdicts of a words' rule that changes with its version, kept beside the scores so that a later version can be told.

`lemma-set` is code, and code of an earlier version is not kept. Its verdicts are: in `verdicts.jsonl` beside
`scores.json`, in the form of a model's verdicts, with rule and version as the specification. Scoring again with
`--before` then names every verdict that the new version changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from katha.eval_bridge.matching import RULES, Rule, Verdict, accepted_set
from katha.eval_bridge.normal import normalise
from katha.eval_bridge.verdicts import Pair, read_rows
from katha.jsonio import canonical, digest, write_bytes_atomic
from katha.schema import Question

__all__ = ["CHANGING", "KeptRule", "RecordingRule", "kept_rule", "recording", "version_of"]

CHANGING = frozenset(("lemma-set",))
"""The rules whose verdicts are kept: those that words decide, and not by membership alone."""
_NOTE = re.compile(r"Matching (?P<rule>.+), version (?P<version>.+)\.")
_NAMES = ("rule", "spec_sha256", "question_sha256", "answer")


def _spec(rule: str, version: str) -> dict[str, str]:
    return {"rule": rule, "version": version}


class RecordingRule:
    """A words' rule that remembers what it decided, until `write`."""

    def __init__(self, rule: Rule) -> None:
        self.name, self.version = rule.name, rule.version
        self._rule = rule
        self._rows: dict[tuple[str, str], dict[str, Any]] = {}
        self._met: dict[tuple[int, str], Question] = {}  # holds the questions, so that their ids stay their own

    def verdict(self, answer: str, question: Question) -> Verdict:
        """The rule's verdict; kept unless the answer is in the accepted set."""
        found = self._rule.verdict(answer, question)
        at = (id(question), answer)
        if at not in self._met and normalise(answer) not in accepted_set(question):
            self._met[at] = question
            pair = Pair(answer, question)
            self._rows[pair.key] = {
                "rule": self.name,
                "spec_sha256": digest(_spec(self.name, self.version)),
                "question_sha256": pair.key[0],
                "story_id": question.story_id,
                "question_id": question.question_id,
                "answer": pair.key[1],
                "right": found.right,
                "score": None,
                "reason": found.reason,
            }
        return found

    def write(self, path: Path) -> None:
        """Add the verdicts to `path`, sorted, each once. Nothing is written where there is none.

        Raises:
            InputFileError: the file that is there is broken. StoreError: it cannot be written.
        """
        if not self._rows:
            return
        spec = _spec(self.name, self.version)
        told = {"rule": self.name, "spec_sha256": digest(spec), "spec": spec}
        rows = [*(read_rows(path) if path.is_file() else ()), told, *self._rows.values()]
        latest = {tuple(str(row.get(name, "")) for name in _NAMES): canonical(row) + b"\n" for row in rows}
        write_bytes_atomic(path, b"".join(latest[key] for key in sorted(latest)))


class KeptRule:
    """A rule of an earlier version: only its kept verdicts are known. `missing` counts answers without one."""

    def __init__(self, name: str, version: str, archives: Iterable[Path]) -> None:
        self.name, self.version, self.missing = name, version, 0
        wanted = digest(_spec(name, version))
        self._known: dict[tuple[str, str], Verdict] = {}
        for path in archives:
            for row in read_rows(path) if path.is_file() else ():
                if row["spec_sha256"] == wanted and "answer" in row:
                    key = (str(row["question_sha256"]), str(row["answer"]))
                    self._known[key] = Verdict(bool(row["right"]), str(row["reason"]))

    def verdict(self, answer: str, question: Question) -> Verdict:
        """The kept verdict; one without a right or wrong where it was not kept."""
        if normalise(answer) in accepted_set(question):
            return Verdict(True, "in the accepted set")
        found = self._known.get(Pair(answer, question).key)
        self.missing += found is None
        return found or Verdict(None, "the verdict was not kept")


def recording(rule: Rule) -> Rule:
    """`rule`, remembering what it decides if its verdicts are to be kept."""
    return RecordingRule(rule) if rule.name in CHANGING else rule


def kept_rule(name: str, version: str | None, archives: Iterable[Path]) -> KeptRule | None:
    """The rule `name` as it was in an earlier `version`; None where that is today's, or not a rule of this kind."""
    if name not in CHANGING or version in (None, RULES[name].version):
        return None
    return KeptRule(name, version or "", archives)


def version_of(scores: Mapping[str, Any]) -> str | None:
    """The version of the rule that made `scores`, from its notes; None where they do not say."""
    found = (_NOTE.fullmatch(str(note)) for note in scores.get("notes") or ())
    return next((match["version"] for match in found if match and match["rule"] == scores.get("matching")), None)
