"""Rules by their names: those that a model decides with their archived verdicts, and verdicts that a rule has kept."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from katha.errors import InputFileError, UsageError
from katha.eval_bridge.judging.answers import LineLog, iter_log
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.matching.match import (
    ACCEPTED,
    MODEL_RULES,
    Decider,
    Key,
    MatchReply,
    Pair,
    Rule,
    Verdict,
    WordRule,
    accepted_set,
    literal_verdict,
    named_rule,
    normalise,
    not_installed,
    require_rule,
)
from katha.jsonio import canonical, digest, loads, write_bytes_atomic
from katha.schema import Answer, Question, StoryRecord
from katha.schema.scores import Scores

# Verdicts that a model decides, archived so that scoring with them is offline and repeatable.
#
# One object a line, of two kinds. What decided: `{"rule", "spec_sha256", "spec"}`. A verdict: `{"rule",
# "spec_sha256", "question_sha256", "story_id", "question_id", "answer", "right", "score", "reason"}`, where
# `question_sha256` covers the question's words and its accepted set and `answer` is normalised. The last line of a
# verdict's key counts and a torn last line is ignored, as in `answers.jsonl`. A verdict that could not be had is not
# written: it is asked for again.

UNSETTLED = "got no verdict by"
"""What the note of answers without a verdict says of them."""
VERDICTS = "verdicts.jsonl"
"""The name of the file that lies beside `answers.jsonl`."""


class ModelRule:
    """A rule whose verdicts come from an archive and, if there is a `decider`, from that.

    archives: files of verdicts, of which later ones win; those that do not exist are left out. keep: the file that new
    verdicts are added to. With a decider only verdicts of its very specification count. settled: the archive was
    scored before, so that a verdict which a model's rule lacks could not be had: such an answer is unscored, as then.
    """

    def __init__(
        self,
        name: str,
        archives: Sequence[Path] = (),
        *,
        decider: Decider | None = None,
        keep: Path | None = None,
        settled: bool = False,
    ) -> None:
        """Read the archives.

        Raises:
            InputFileError: a line of an archive is broken (named by file and number).
        """
        self.name = name
        self._decider, self._keep, self._settled = decider, keep, settled
        self._lock = threading.RLock()
        self._spec = digest(dict(decider.spec())) if decider is not None else None
        self._known = read_verdicts(name, archives, self._spec)
        self._used: set[str] = set()
        self._declared = False

    @property
    def version(self) -> str:
        """The short hashes of the specifications whose verdicts were used, or would be."""
        used = self._used or ({self._spec} if self._spec else {spec for _, spec in self._known.values()})
        return "+".join(sorted(item[:12] for item in used)) or "without verdicts"

    def verdict(self, answer: str, question: Question) -> Verdict:
        """Return the archived verdict; a missing one is decided now, or refused where there is no model.

        Raises:
            UsageError: there is no verdict and nobody to ask.
        """
        if normalise(answer) in accepted_set(question):
            return ACCEPTED
        pair = Pair(answer, question)
        with self._lock:
            if self.settle([pair]):
                return Verdict(None, "the rule's model gave no verdict")
            found, spec = self._known[pair.key]
            self._used.add(spec)
            return found

    def settle(self, pairs: Iterable[Pair]) -> int:
        """Decide every pair that has no verdict yet, together; return how many still have none.

        Raises:
            UsageError: verdicts are missing and there is nobody to ask.
        """
        with self._lock:
            missing: dict[Key, Pair] = {}
            for pair in pairs:
                if normalise(pair.answer) not in accepted_set(pair.question) and pair.key not in self._known:
                    missing.setdefault(pair.key, pair)
            if self._settled and self.name.partition(":")[0] in MODEL_RULES:
                return len(missing)
            if missing and self._decider is None:
                without = f"{len(missing):,} answers have no verdict by {self.name!r}"
                one = f"{next(iter(missing.values())).answer[:60]!r} for one."
                if self.name.partition(":")[0] not in MODEL_RULES:
                    raise UsageError(f"{without}, which is not installed here, {one}", hint=not_installed())
                raise UsageError(
                    f"{without}, {one} Decide them first: "
                    f"`katha score ... --matching {self.name} --decide` asks the model and keeps {VERDICTS}."
                )
            if missing:  # in an order of their own: answers come as they come, and a recording is asked the same again
                self._decide([missing[key] for key in sorted(missing)])
            return sum(key not in self._known for key in missing)

    def _decide(self, pairs: Sequence[Pair]) -> None:
        assert self._decider is not None
        assert self._spec is not None
        with LineLog(self._keep) if self._keep is not None else nullcontext() as log:
            rows = self._decided(pairs, self._decider, self._spec)
            for row in rows:
                if log is not None:
                    log.write(canonical(row) + b"\n")

    def _decided(self, pairs: Sequence[Pair], decider: Decider, spec: str) -> Iterator[Mapping[str, object]]:
        """Ask `decider`, and yield each row to keep as soon as it is there."""
        if not self._declared:
            self._declared = True
            yield {"rule": self.name, "spec_sha256": spec, "spec": dict(decider.spec())}
        for pair, decision in zip(pairs, decider.decide(pairs), strict=False):
            if decision.right is not None:
                self._known[pair.key] = (Verdict(decision.right, decision.reason), spec)
                yield _verdict_row(self.name, spec, pair, decision)

    def tidy(self) -> None:
        """Leave each line of the kept file once, the last of its key, sorted: the same verdicts give the same bytes."""
        if self._keep is not None and self._keep.is_file():
            _write_rows(self._keep, _read_rows(self._keep))


def pairs_of(records: Iterable[StoryRecord], answers: Iterable[Answer]) -> Iterator[Pair]:
    """Yield the answers whose verdict is a matter of the rule (no option, label, uncertainty or failure)."""
    questions = {
        (record.story_id, item.question_id): item for record in records for item in record.recoverability_questions
    }
    for row in answers:
        question = questions.get((row.story_id, row.question_id))
        if question is None or row.status != "ok" or row.answer is None:
            continue
        if literal_verdict(row.answer, question) is None:
            yield Pair(row.answer, question.model_copy(update={"story_id": row.story_id}))


def _read_rows(path: Path) -> Iterator[Mapping[str, object]]:
    """Stream the lines of a file of verdicts; a torn last line is left out.

    Raises:
        InputFileError: the file cannot be read, or a line is broken (named by number).
    """

    def parse(line: bytes, number: int) -> Mapping[str, object]:
        try:
            row = loads(line.decode("utf-8"))
        except ValueError:
            row = None
        if isinstance(row, dict) and isinstance(row.get("rule"), str) and isinstance(row.get("spec_sha256"), str):
            whole = {"question_sha256", "answer", "reason"} <= set(row) and isinstance(row.get("right"), bool)
            if whole or isinstance(row.get("spec"), dict):
                return row
        raise InputFileError(f"{str(path)!r}, line {number}, is not a verdict.", hint="Remove the line.")

    return iter_log(path, parse)


def read_verdicts(rule: str, archives: Iterable[Path], spec: str | None) -> dict[Key, tuple[Verdict, str]]:
    """Return the verdicts of a rule with the hash of what decided each, `spec` where it is given; later ones win.

    Raises:
        InputFileError: an archive cannot be read, or a line of it is broken. One that does not exist is left out.
    """
    found: dict[Key, tuple[Verdict, str]] = {}
    for path in archives:
        for row in _read_rows(path) if path.is_file() else ():
            if "answer" in row and row["rule"] == rule and spec in (None, row["spec_sha256"]):
                key = (str(row["question_sha256"]), str(row["answer"]))
                found[key] = (Verdict(bool(row["right"]), str(row["reason"])), str(row["spec_sha256"]))
    return found


def _write_rows(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write each row once, the last of its key, sorted: the same verdicts give the same bytes."""
    names = ("rule", "spec_sha256", "question_sha256", "answer")
    latest = {tuple(str(row.get(name, "")) for name in names): canonical(row) + b"\n" for row in rows}
    write_bytes_atomic(path, b"".join(latest[key] for key in sorted(latest)))


def _verdict_row(rule: str, spec_sha256: str | None, pair: Pair, decision: MatchReply) -> Mapping[str, object]:
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


# Verdicts of a words' rule that changes with its version, kept beside the scores so that a later version can be told.
#
# A rule that decides by code of its own (`WordRule.changing`) is there in its present version only; verdicts of older
# ones are kept: in `verdicts.jsonl` beside `scores.json`, in the form of a model's verdicts, with rule and version as
# the specification. Scoring again with `--before` then names every verdict that the new version changes.


class RecordingRule:
    """A words' rule that remembers what it decided, until `write`."""

    def __init__(self, rule: Rule) -> None:
        self.name, self.version = rule.name, rule.version
        self._rule = rule
        self._met: dict[tuple[int, str], tuple[Pair, Verdict]] = {}  # holds the questions: their ids stay their own

    def prepare(self, pairs: Iterable[Pair]) -> None:
        """Let the rule get ready for many answers."""
        prepare(self._rule, pairs)

    def verdict(self, answer: str, question: Question) -> Verdict:
        """Return the rule's verdict; it is kept unless the answer is in the accepted set."""
        found = self._rule.verdict(answer, question)
        if (id(question), answer) not in self._met and normalise(answer) not in accepted_set(question):
            self._met[id(question), answer] = (Pair(answer, question), found)
        return found

    def write(self, path: Path) -> None:
        """Add the verdicts to `path`, sorted, each once. Nothing is written where there is none.

        Raises:
            InputFileError: the file that is there is broken. StoreError: it cannot be written.
        """
        if not self._met:
            return
        spec = {"rule": self.name, "version": self.version}
        rows = [*(_read_rows(path) if path.is_file() else ())]
        rows.append({"rule": self.name, "spec_sha256": digest(spec), "spec": spec})
        for pair, found in self._met.values():
            rows.append(_verdict_row(self.name, digest(spec), pair, MatchReply(found.right, found.reason)))
        _write_rows(path, rows)


class KeptRule:
    """A rule of an earlier version: only its kept verdicts are known. `missing` counts answers without one."""

    def __init__(self, name: str, version: str, archives: Iterable[Path]) -> None:
        self.name, self.version, self.missing = name, version, 0
        self._known = read_verdicts(name, archives, digest({"rule": name, "version": version}))

    def verdict(self, answer: str, question: Question) -> Verdict:
        """Return the kept verdict; one without a right or wrong where it was not kept."""
        if normalise(answer) in accepted_set(question):
            return ACCEPTED
        found = self._known.get(Pair(answer, question).key)
        self.missing += found is None
        return found[0] if found is not None else Verdict(None, "the verdict was not kept")


def keeps_verdicts(rule: Rule) -> bool:
    """Return whether another version of a rule may decide otherwise, so that its verdicts are kept."""
    return isinstance(rule, (KeptRule, RecordingRule)) or (isinstance(rule, WordRule) and rule.changing)


def recording(rule: Rule) -> Rule:
    """Return `rule`, remembering what it decides if its verdicts are to be kept."""
    return RecordingRule(rule) if keeps_verdicts(rule) else rule


# A matching rule by its name, opened with the verdicts that it needs.


def make_decider(name: str, base_url: str | None = None, budget: Budget | None = None) -> Decider | None:
    """Return the model behind a rule; None for a rule that words alone decide. Weights are not read yet.

    base_url: where that model is, if not where its vendor is. budget: what its verdicts are paid from.

    Raises:
        UsageError: no such rule or model. MissingExtraError: a package is missing. ModelError: the model is not here.
    """
    family, _, argument = require_rule(name).partition(":")
    if family not in MODEL_RULES:
        return None
    # Not at the top: these classes are only needed where a model decides.
    from katha.eval_bridge.matching import models

    if family == "llm":
        return models.LlmDecider(argument, base_url=base_url, budget=budget)
    return models.NliDecider(argument) if family == "nli" else models.EmbeddingDecider(argument)


def open_rule(
    name: str, archives: Sequence[Path] = (), *, decider: Decider | None = None, keep: Path | None = None
) -> Rule:
    """Open the rule `name`. A model's reads `archives` and asks `decider` for what they lack, into the file `keep`.

    Raises:
        UsageError: no such rule. InputFileError: an archive is broken.
    """
    return archived_rule(require_rule(name), archives, decider=decider, keep=keep)


def archived_rule(
    name: str,
    archives: Sequence[Path] = (),
    *,
    decider: Decider | None = None,
    keep: Path | None = None,
    settled: bool = False,
) -> Rule:
    """Open the rule that a folder names (settled: whose scores are there, see `ModelRule`).

    One of a matcher that is not installed here is refused where an answer needs it: choices and labels do not, nor do
    answers whose verdict was kept.

    Raises:
        InputFileError: an archive is broken.
    """
    rule = named_rule(name)
    return rule if rule is not None else ModelRule(name, archives, decider=decider, keep=keep, settled=settled)


def scored_rule(scores: Scores, folder: Path, others: Sequence[Path] = ()) -> Rule:
    """Return the rule that `scores` were made with, of the version that their notes name, so that it replays.

    folder: where the scores lie, with its verdicts. others: more archives of verdicts, read before.

    Raises:
        UsageError: no such rule is known here. InputFileError: an archive is broken.
    """
    name, archives = scores.matching, [*others, folder / VERDICTS]
    noted = [re.fullmatch(rf"Matching {re.escape(name)}, version (.+)\.", note) for note in scores.notes]
    version = next((found[1] for found in noted if found), None)
    rule = named_rule(name)
    if rule is None and version is not None and name.partition(":")[0] not in MODEL_RULES:
        return KeptRule(name, version, archives)  # of a matcher that is not installed here
    if rule is None or not rule.changing or version in (None, rule.version):
        return archived_rule(name, archives, settled=True)
    return KeptRule(name, version or "", archives)


def folder_rule(name: str, folder: Path) -> Rule:
    """Return the rule `name` with the verdicts that a run or an evaluation left in its folder."""
    return archived_rule(name, [folder / VERDICTS])


def prepare(rule: Rule, pairs: Iterable[Pair]) -> None:
    """Let a words' rule get ready for many answers together; nothing for another rule."""
    if isinstance(rule, (WordRule, RecordingRule)):
        rule.prepare(pairs)


def kept_rule(name: str, folder: Path, base_url: str | None = None, budget: Budget | None = None) -> Rule:
    """Return the rule `name`; what a model decides for it is kept in `folder`, and not asked again.

    base_url, budget: see `make_decider`.
    """
    path = folder / VERDICTS
    decider = make_decider(name, base_url, budget) if name.partition(":")[0] in MODEL_RULES else None
    return archived_rule(name, [path], decider=decider, keep=path)


def settle(rule: Rule, records: Iterable[StoryRecord], answers: Iterable[Answer]) -> list[str]:
    """Have every verdict that scoring `answers` needs, before it begins; a note where some could not be had.

    Raises:
        UsageError: verdicts are missing and there is no model to ask.
    """
    if not isinstance(rule, ModelRule):
        prepare(rule, pairs_of(records, answers))
        return []
    without = rule.settle(pairs_of(records, answers))
    rule.tidy()
    return [f"{without:,} different answers {UNSETTLED} {rule.name} and are unscored."] if without else []
