"""Ask in batches: collect every question, send them, and read the answers back; every step is durable before the
next.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from katha.errors import UsageError
from katha.eval_bridge.judging.abilities import AsksInBatches, BatchResult, Sent
from katha.eval_bridge.judging.budget import STOPPED, Budget, estimate_tokens, expected_cost, require_prices
from katha.eval_bridge.judging.engine import JudgingEngine, reply_key
from katha.eval_bridge.packets.instructions import prompt_sha256
from katha.eval_bridge.packets.packets import evidence_sha256
from katha.experiments.judging import Evaluator
from katha.jsonio import canonical, digest, read_json, write_json
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.store import Store

# The batches of one evaluation on disk: `OUT/batches/`, where every step is durable before the next one is taken.
#
# A batch's requests are written first, then its record with the state `ready`; the uploaded file's id and the batch's
# id (`sent`) go into the record before anything is waited for; its results (`ended`) are a file before they are used;
# and when their answers are in the log it is `closed`. A kill between two steps is made good from the record alone.


@dataclass(frozen=True)
class Chunk:
    """One batch: whose it is (judge and the hash of its specification), how far it is, and the keys of its requests."""

    number: int
    judge: str
    spec: str
    state: str
    since: str
    keys: tuple[str, ...]
    file_id: str | None = None
    batch_id: str | None = None

    @property
    def sent(self) -> Sent:
        """What a vendor may be asked about it."""
        return Sent(len(self.keys), datetime.fromisoformat(self.since), self.file_id)


class BatchFolder:
    """`OUT/batches/`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def chunks(self, judge: str | None = None) -> list[Chunk]:
        """The batches that are not closed, in order."""
        return [chunk for chunk in self._all() if chunk.state != "closed" and judge in (None, chunk.judge)]

    def ids(self) -> frozenset[str]:
        """The vendors' ids of all batches, closed ones included."""
        return frozenset(chunk.batch_id for chunk in self._all() if chunk.batch_id is not None)

    def _all(self) -> Iterator[Chunk]:
        for path in sorted(self.path.glob("[0-9]*.json")):
            value = read_json(path)
            yield Chunk(**{**value, "keys": tuple(value["keys"])})

    def requests(self, chunk: Chunk) -> Path:
        """The file of a batch's requests."""
        return self.path / f"{chunk.number:06d}.requests.jsonl"

    def results(self, chunk: Chunk) -> Path:
        """The file of a batch's results."""
        return self.path / f"{chunk.number:06d}.results.jsonl"

    def keep(self, chunk: Chunk, **changes: Any) -> Chunk:
        """Write a batch's record, durably."""
        fresh = replace(chunk, **changes)
        write_json(self.path / f"{chunk.number:06d}.json", asdict(fresh))
        return fresh

    def keep_results(self, chunk: Chunk, results: Iterable[BatchResult]) -> Chunk:
        """Write what came of a batch, then say so; its requests are not needed any more."""
        lines = (canonical({"key": one.key, "body": one.body, "error": one.error}) + b"\n" for one in results)
        target = self.results(chunk)
        fresh = target.with_suffix(".part")
        with fresh.open("wb") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
        done = self.keep(chunk, state="ended")
        self.requests(chunk).unlink(missing_ok=True)
        return done

    def close(self) -> None:
        """The answers of every batch that has ended are in the log."""
        for chunk in self.chunks():
            if chunk.state == "ended":
                self.keep(chunk, state="closed")

    def begin(self, judge: str, spec: str) -> ChunkWriter:
        """A new batch to write requests into."""
        self.path.mkdir(parents=True, exist_ok=True)
        taken = [int(path.name.partition(".")[0]) for path in self.path.glob("[0-9]*.json")]
        now = datetime.now(UTC).isoformat()
        return ChunkWriter(self, Chunk(max(taken, default=0) + 1, judge, spec, "ready", now, ()))

    def index(self, judge: str) -> dict[str, tuple[Path, int]]:
        """Where the result of each key is, over the judge's batches that have ended."""
        places: dict[str, tuple[Path, int]] = {}
        for chunk in self.chunks(judge):
            if chunk.state == "ended":
                path, wanted = self.results(chunk), set(chunk.keys)
                places |= {key: (path, start) for key, start in _starts(path) if key in wanted}
        return places


def read_result(place: tuple[Path, int]) -> BatchResult:
    """The result at a place of the index."""
    with place[0].open("rb") as file:
        file.seek(place[1])
        row = json.loads(file.readline())
    return BatchResult(row["key"], row["body"], row["error"])


class ChunkWriter:
    """Writes the requests of one batch; `seal` makes the batch known."""

    def __init__(self, folder: BatchFolder, chunk: Chunk) -> None:
        self._folder, self._chunk = folder, chunk
        self._file: BinaryIO = folder.requests(chunk).open("wb")
        self.keys: list[str] = []
        self.size = 0

    def add(self, key: str, request: Mapping[str, Any]) -> None:
        """Write one request."""
        line = canonical({"key": key, "request": dict(request)}) + b"\n"
        self._file.write(line)
        self.keys.append(key)
        self.size += len(line)

    def seal(self) -> Chunk:
        """Everything is written: keep the requests, then the record."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return self._folder.keep(self._chunk, keys=tuple(self.keys))


def _starts(path: Path) -> Iterator[tuple[str, int]]:
    start = 0
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)["key"], start
            start += len(line)


# `--batch`: first every question that has to be asked is collected and sent in batches, then the answers are read.
#
# Requests are the same bytes as those of single calls and carry the key of the answer's cache entry, so an answer
# from a batch and one from a call are the same answer. Nothing is asked twice: what waits in a batch that was sent
# before a kill is not collected again, and a batch whose id was lost in the kill is looked for before it is made
# anew.


OnBatch = Callable[[str, int, int], None]
"""Called with the judge's name, how many of its batches have ended, and how many there are."""


def batchable(judges: Mapping[str, Judge]) -> dict[str, AsksInBatches]:
    """The judges that can be asked in batches.

    Raises:
        UsageError: none can.
    """
    found = {name: judge for name, judge in judges.items() if isinstance(judge, AsksInBatches)}
    if not found:
        raise UsageError(
            "--batch is given, but no judge here has a batch API.",
            hint="Use --judge anthropic:MODEL, openai:MODEL or gemini:MODEL.",
        )
    return found


class _Keyed:
    """What stands in for a judge on both passes: the same specification, so the same keys."""

    def __init__(self, judge: AsksInBatches) -> None:
        self._judge, self._spec = judge, digest(dict(judge.spec()))

    def spec(self) -> Mapping[str, Any]:
        """The judge's own."""
        return self._judge.spec()

    def _keyed(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[tuple[str, JudgePrompt]]:
        packet = evidence_sha256(evidence)
        for prompt in prompts:
            yield reply_key(packet, prompt_sha256(prompt), self._spec), prompt


class Collector(_Keyed):
    """The first pass: writes what has to be asked into batches, within the budget, and sends each when it is full."""

    def __init__(self, name: str, judge: AsksInBatches, folder: BatchFolder, budget: Budget) -> None:
        super().__init__(judge)
        self._name, self._folder, self._budget = name, folder, budget
        self._writer: ChunkWriter | None = None
        self.denied: set[str] = set()
        self._waiting = {key for chunk in folder.chunks(name) for key in chunk.keys if chunk.spec == self._spec}
        price, share = judge.price, judge.batch_terms["price"]
        self._price = {kind: value * share for kind, value in price.items()} if price is not None else None
        require_prices({name: judge}, budget)

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Collect each prompt; yields `not_asked`, because the answer comes later."""
        for key, prompt in self._keyed(evidence, prompts):
            if key not in self._waiting:
                self._collect(key, evidence, prompt)
            yield JudgeReply("not_asked", error="waits for a batch")

    def _collect(self, key: str, evidence: Evidence, prompt: JudgePrompt) -> None:
        cost = expected_cost(self._price, estimate_tokens(evidence, prompt), 1)
        if not self._budget.grant(1, cost):
            self.denied.add(key)
            return
        self._budget.settle(cost, cost)
        self._waiting.add(key)
        terms = self._judge.batch_terms
        if self._writer is not None and (
            len(self._writer.keys) >= terms["requests"] or self._writer.size >= terms["bytes"]
        ):
            self.finish()
        if self._writer is None:
            self._writer = self._folder.begin(self._name, self._spec)
        self._writer.add(key, self._judge.batch_request(evidence, prompt))

    def finish(self) -> None:
        """Send what has been collected."""
        if self._writer is not None:
            chunk, self._writer = self._writer.seal(), None
            _send(self._judge, self._folder, chunk)


def _send(judge: AsksInBatches, folder: BatchFolder, chunk: Chunk) -> Chunk:
    """Upload and make one batch; each id is on the disk before the next step."""
    batches, requests = judge.batches, folder.requests(chunk)
    if chunk.file_id is None:
        file_id = judge.patiently(lambda: batches.upload(requests))
        if file_id is not None:
            chunk = folder.keep(chunk, file_id=file_id)
    batch_id = _create(judge, folder, chunk)
    return folder.keep(chunk, state="sent", batch_id=batch_id)


def _create(judge: AsksInBatches, folder: BatchFolder, chunk: Chunk) -> str:
    """Make the batch once: after an answer that never came, the vendor is asked whether it was made."""
    batches, tried = judge.batches, [False]

    def once() -> str:
        if tried[0]:
            made = _find(judge, folder, chunk)
            if made is not None:
                return made
        tried[0] = True
        return batches.create(folder.requests(chunk), chunk.sent)

    return judge.patiently(once)


def _find(judge: AsksInBatches, folder: BatchFolder, chunk: Chunk) -> str | None:
    return judge.batches.find(chunk.sent, folder.ids())


def fetch(judges: Mapping[str, AsksInBatches], folder: BatchFolder, on_batch: OnBatch | None = None) -> None:
    """Wait until every batch of `judges` has ended, and keep what came of each as soon as it has.

    Raises:
        UsageError, JudgeError: a vendor refuses, or stays broken; the batches go on there, and the same command comes
        back to them.
    """
    told: dict[str, tuple[int, int]] = {}
    while True:
        open_ones = [chunk for chunk in folder.chunks() if chunk.judge in judges and chunk.state == "sent"]
        left = [chunk for chunk in open_ones if not _fetched(judges[chunk.judge], folder, chunk)]
        for name in judges:
            chunks = folder.chunks(name)
            state = (sum(chunk.state == "ended" for chunk in chunks), len(chunks))
            if on_batch is not None and chunks and told.get(name) != state:
                told[name] = state
                on_batch(name, *state)
        if not left:
            return
        judge = judges[left[0].judge]
        judge.rest(judge.batch_terms["poll"])


def _fetched(judge: AsksInBatches, folder: BatchFolder, chunk: Chunk) -> bool:
    batch_id = chunk.batch_id or ""
    if not judge.patiently(lambda: judge.batches.ended(batch_id)):
        return False
    judge.patiently(lambda: folder.keep_results(chunk, judge.batches.results(batch_id)))
    return True


def recover(judges: Mapping[str, AsksInBatches], folder: BatchFolder) -> None:
    """Take up what a kill left: batches that were about to be sent, or sent without their id having come back."""
    for chunk in folder.chunks():
        judge = judges.get(chunk.judge)
        if judge is None or chunk.state != "ready":
            continue
        made = judge.patiently(partial(_find, judge, folder, chunk))
        if made is not None:
            folder.keep(chunk, state="sent", batch_id=made)
        else:
            _send(judge, folder, chunk)


class BatchAnswers(_Keyed):
    """The second pass: answers from what the batches brought; what they did not bring is a typed failure."""

    def __init__(self, name: str, judge: AsksInBatches, folder: BatchFolder, denied: set[str]) -> None:
        super().__init__(judge)
        self._places, self._denied = folder.index(name), denied

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield each prompt's reply."""
        for key, prompt in self._keyed(evidence, prompts):
            if key in self._denied:
                yield JudgeReply("budget_stopped", error=STOPPED)
            elif key not in self._places:
                yield JudgeReply("transport_failed", error="the batch brought no result for this question")
            else:
                yield self._judge.batch_reply(read_result(self._places[key]), prompt)


def ask_in_batches(
    judges: Mapping[str, AsksInBatches],
    evaluator: Evaluator,
    folder: BatchFolder,
    budget: Budget,
    store: Store,
    on_batch: OnBatch | None = None,
) -> dict[str, BatchAnswers]:
    """Collect what `evaluator` would ask of `judges`, send it, wait for it: judges that answer from what came.

    Raises:
        UsageError, JudgeError: see `fetch`.
    """
    recover(judges, folder)
    collectors = {name: Collector(name, judge, folder, budget) for name, judge in judges.items()}
    replace(evaluator, engine=JudgingEngine(collectors, store)).run()
    for collector in collectors.values():
        collector.finish()
    fetch(judges, folder, on_batch)
    return {name: BatchAnswers(name, judge, folder, collectors[name].denied) for name, judge in judges.items()}
