"""Verdicts that a model decides, archived so that scoring with them is offline and repeatable."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from katha.errors import InputFileError, StoreError, UsageError, unreadable
from katha.eval_bridge.matching.match import RULES, Rule, Verdict, accepted_set, literal_verdict, normalise
from katha.jsonio import canonical, digest, loads, write_bytes_atomic
from katha.schema import Answer, Question, StoryRecord
from katha.schema.scores import Scores

# One object a line, of two kinds. What decided: `{"rule", "spec_sha256", "spec"}`. A verdict: `{"rule",
# "spec_sha256", "question_sha256", "story_id", "question_id", "answer", "right", "score", "reason"}`, where
# `question_sha256` covers the question's words and its accepted set and `answer` is normalised. The last line of a
# verdict's key counts and a torn last line is ignored, as in `answers.jsonl`. A verdict that could not be had is not
# written: it is asked for again.

VERDICTS = "verdicts.jsonl"
"""The name of the file that lies beside `answers.jsonl`."""

Key = tuple[str, str]


@dataclass(frozen=True)
class Pair:
    """An answer (as it was said) and the question that it is held against."""

    answer: str
    question: Question

    @property
    def key(self) -> Key:
        """What a verdict depends on: the question's words with its accepted set, and the normalised answer."""
        accepted = sorted(accepted_set(self.question))
        return digest([self.question.question_type, self.question.question, accepted]), normalise(self.answer)


@dataclass(frozen=True)
class Decision:
    """What a model said of a pair: `right` is None where it gave no verdict, and `reason` says why."""

    right: bool | None
    reason: str
    score: float | None = None


class Decider(Protocol):
    """A model that says whether an answer means what one of the accepted answers means."""

    def spec(self) -> Mapping[str, Any]:
        """Model, revision, wording, threshold: everything that can change a decision."""
        ...

    def decide(self, pairs: Sequence[Pair]) -> Iterator[Decision]:
        """One decision a pair, in order, each as soon as it is there."""
        ...


class ModelRule:
    """A rule whose verdicts come from an archive and, if there is a `decider`, from that.

    archives: files of verdicts, of which later ones win; those that do not exist are left out. keep: the file that new
    verdicts are added to. With a decider only verdicts of its very specification count.
    """

    def __init__(
        self,
        name: str,
        archives: Sequence[Path] = (),
        *,
        decider: Decider | None = None,
        keep: Path | None = None,
    ) -> None:
        """Read the archives.

        Raises:
            InputFileError: a line of an archive is broken (named by file and number).
        """
        self.name = name
        self._decider, self._keep = decider, keep
        self._lock = threading.RLock()
        self._spec = digest(dict(decider.spec())) if decider is not None else None
        self._known: dict[Key, tuple[Verdict, str]] = {}
        self._used: set[str] = set()
        self._declared = False
        for row, key, verdict in _read_verdicts(archives):
            if row["rule"] == name and self._spec in (None, row["spec_sha256"]):
                self._known[key] = (verdict, str(row["spec_sha256"]))

    @property
    def version(self) -> str:
        """The short hashes of the specifications whose verdicts were used, or would be."""
        used = self._used or ({self._spec} if self._spec else {spec for _, spec in self._known.values()})
        return "+".join(sorted(item[:12] for item in used)) or "without verdicts"

    def verdict(self, answer: str, question: Question) -> Verdict:
        """The archived verdict; a missing one is decided now, or refused where there is no model.

        Raises:
            UsageError: there is no verdict and nobody to ask.
        """
        pair = Pair(answer, question)
        if normalise(answer) in accepted_set(question):
            return Verdict(True, "in the accepted set")
        with self._lock:
            found = self._known.get(pair.key)
            if found is None:
                if self._decider is None:
                    raise UsageError(*self._missing(1, pair))
                self._decide([pair])
                found = self._known.get(pair.key)
            if found is None:
                return Verdict(None, "the rule's model gave no verdict")
            self._used.add(found[1])
            return found[0]

    def settle(self, pairs: Iterable[Pair]) -> int:
        """Decide every pair that has no verdict yet, together; the number that still has none.

        Raises:
            UsageError: verdicts are missing and there is nobody to ask.
        """
        with self._lock:
            open_ones: dict[Key, Pair] = {}
            for pair in pairs:
                if normalise(pair.answer) not in accepted_set(pair.question) and pair.key not in self._known:
                    open_ones.setdefault(pair.key, pair)
            if open_ones and self._decider is None:
                raise UsageError(*self._missing(len(open_ones), next(iter(open_ones.values()))))
            if open_ones:
                self._decide(list(open_ones.values()))
            return sum(key not in self._known for key in open_ones)

    def _missing(self, count: int, pair: Pair) -> tuple[str]:
        return (
            f"{count:,} answers have no verdict by {self.name!r}, {pair.answer[:60]!r} for one. Decide them first: "
            f"`katha score ... --matching {self.name} --decide` asks the model and keeps {VERDICTS}.",
        )

    def _decide(self, pairs: Sequence[Pair]) -> None:
        assert self._decider is not None
        assert self._spec is not None
        with _Writer(self._keep) as write:
            if not self._declared:
                write({"rule": self.name, "spec_sha256": self._spec, "spec": dict(self._decider.spec())})
                self._declared = True
            for pair, decision in zip(pairs, self._decider.decide(pairs), strict=False):
                if decision.right is not None:
                    self._known[pair.key] = (Verdict(decision.right, decision.reason), self._spec)
                    write(_verdict_row(self.name, self._spec, pair, decision))

    def tidy(self) -> None:
        """Leave each line of the kept file once, the last of its key, sorted: the same verdicts give the same bytes."""
        if self._keep is None or not self._keep.is_file():
            return
        _write_rows(self._keep, read_rows(self._keep))


def pairs_of(records: Iterable[StoryRecord], answers: Iterable[Answer]) -> Iterator[Pair]:
    """The answers whose verdict is a matter of the rule (no option, label, uncertainty or failure)."""
    questions = {
        (record.story_id, item.question_id): item for record in records for item in record.recoverability_questions
    }
    for row in answers:
        question = questions.get((row.story_id, row.question_id))
        if question is None or row.status != "ok" or row.answer is None:
            continue
        if literal_verdict(row.answer, question) is None:
            yield Pair(row.answer, question.model_copy(update={"story_id": row.story_id}))


class _Writer:
    """Appends rows to a file, if there is one; durable when closed. A torn last line is cut off first."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._file = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                if path.exists() and (data := path.read_bytes()) and not data.endswith(b"\n"):
                    os.truncate(path, data.rfind(b"\n") + 1)
                self._file = path.open("ab", buffering=0)
            except OSError as error:
                raise StoreError(f"Cannot open {str(path)!r}: {error.strerror}.") from error

    def __call__(self, row: Mapping[str, Any]) -> None:
        if self._file is not None:
            try:
                self._file.write(canonical(dict(row)) + b"\n")
            except OSError as error:
                raise StoreError(f"Cannot write {str(self.path)!r}: {error.strerror}.") from error

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *failure: object) -> None:
        if self._file is not None:
            os.fsync(self._file.fileno())
            self._file.close()


def read_rows(path: Path) -> Iterator[Mapping[str, object]]:
    """The lines of a file of verdicts; a torn last line is left out.

    Raises:
        InputFileError: the file cannot be read, or a line is broken (named by number).
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                row = _row(line)
                if row is not None:
                    yield row
                elif line.strip() and line.endswith(b"\n"):
                    raise InputFileError(f"{str(path)!r}, line {number}, is no verdict.", hint="Remove the line.")
    except OSError as error:
        raise unreadable(path, error) from error


def _read_verdicts(archives: Iterable[Path]) -> Iterator[tuple[Mapping[str, object], Key, Verdict]]:
    """The verdicts of the archives that are there, in order: the row, its key, and what it says."""
    for path in archives:
        for row in read_rows(path) if path.is_file() else ():
            if "answer" in row:
                key = (str(row["question_sha256"]), str(row["answer"]))
                yield row, key, Verdict(bool(row["right"]), str(row["reason"]))


def _write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write each row once, the last of its key, sorted: the same verdicts give the same bytes."""
    names = ("rule", "spec_sha256", "question_sha256", "answer")
    latest = {tuple(str(row.get(name, "")) for name in names): canonical(row) + b"\n" for row in rows}
    write_bytes_atomic(path, b"".join(latest[key] for key in sorted(latest)))


def _verdict_row(rule: str, spec_sha256: str | None, pair: Pair, decision: Decision) -> Mapping[str, object]:
    question_sha256, answer = pair.key
    return {
        "rule": rule,
        "spec_sha256": spec_sha256,
        "question_sha256": question_sha256,
        "story_id": pair.question.story_id,
        "question_id": pair.question.question_id,
        "answer": answer,
        "right": decision.right,
        "score": decision.score,
        "reason": decision.reason,
    }


def _row(line: bytes) -> Mapping[str, object] | None:
    try:
        row = loads(line.decode("utf-8"))
    except ValueError:
        return None
    if not isinstance(row, dict) or not isinstance(row.get("rule"), str) or not isinstance(row.get("spec_sha256"), str):
        return None
    whole = isinstance(row.get("spec"), dict) or (
        isinstance(row.get("right"), bool) and {"question_sha256", "answer", "reason"} <= set(row)
    )
    return row if whole else None


# Verdicts of a words' rule that changes with its version, kept beside the scores so that a later version can be told.
#
# `lemma-set` is code, and code of an earlier version is not kept. Its verdicts are: in `verdicts.jsonl` beside
# `scores.json`, in the form of a model's verdicts, with rule and version as the specification. Scoring again with
# `--before` then names every verdict that the new version changes.

CHANGING = frozenset(("lemma-set",))
"""The rules whose verdicts are kept: those that words decide, and not by membership alone."""
_NOTE = re.compile(r"Matching (?P<rule>.+), version (?P<version>.+)\.")


def _spec(rule: str, version: str) -> dict[str, str]:
    return {"rule": rule, "version": version}


class RecordingRule:
    """A words' rule that remembers what it decided, until `write`."""

    def __init__(self, rule: Rule) -> None:
        self.name, self.version = rule.name, rule.version
        self._rule = rule
        self._rows: dict[Key, Mapping[str, object]] = {}
        self._met: dict[tuple[int, str], Question] = {}  # holds the questions, so that their ids stay their own

    def verdict(self, answer: str, question: Question) -> Verdict:
        """The rule's verdict; kept unless the answer is in the accepted set."""
        found = self._rule.verdict(answer, question)
        at = (id(question), answer)
        if at not in self._met and normalise(answer) not in accepted_set(question):
            self._met[at] = question
            pair = Pair(answer, question)
            decision = Decision(found.right, found.reason)
            self._rows[pair.key] = _verdict_row(self.name, digest(_spec(self.name, self.version)), pair, decision)
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
        _write_rows(path, rows)


class KeptRule:
    """A rule of an earlier version: only its kept verdicts are known. `missing` counts answers without one."""

    def __init__(self, name: str, version: str, archives: Iterable[Path]) -> None:
        self.name, self.version, self.missing = name, version, 0
        wanted = digest(_spec(name, version))
        found = _read_verdicts(archives)
        self._known = {key: verdict for row, key, verdict in found if row["spec_sha256"] == wanted}

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


def version_of(scores: Scores) -> str | None:
    """The version of the rule that made `scores`, from its notes; None where they do not say."""
    found = (_NOTE.fullmatch(note) for note in scores.notes)
    return next((match["version"] for match in found if match and match["rule"] == scores.matching), None)
