"""`--batch`: first every question or picture that is needed is collected and sent in batches, then what came is read.

Requests say the same as those of single calls and carry the key of the answer's or frame's cache entry, so one from a
batch and one from a call are the same. Nothing is asked twice: what waits in a batch that was sent before a kill
is not collected again, and a batch whose id was lost in the kill is looked for before it is made anew.

`OUT/batches/` holds them, and every step is durable before the next one is taken: a batch's requests are written first,
then its record with the state `ready`; the uploaded file's id and the batch's id (`sent`) go into the record before
anything is waited for; its results (`ended`) are a file before they are used; and when their answers are in the log it
is `closed`. A kill between two steps is made good from the record alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict

from katha.errors import RenderError, UnfitFrameError, UsageError
from katha.eval_bridge.judging.abilities import AsksInBatches
from katha.eval_bridge.judging.budget import (
    STOPPED,
    Budget,
    estimate_tokens,
    expected_cost,
    require_prices,
    written_tokens,
)
from katha.eval_bridge.judging.engine import JudgingEngine, reply_key
from katha.eval_bridge.packets.instructions import prompt_sha256
from katha.eval_bridge.packets.packets import evidence_sha256
from katha.jsonio import canonical, digest, read_record, write_json
from katha.models.batches import Batcher, BatchResult, DrawsInBatches, Sent
from katha.models.client import ChatClient, ClientBatches
from katha.protocols import Evidence, FrameRequest, Judge, JudgePrompt, JudgeReply, Renderer
from katha.store import Store

OnBatch = Callable[[str, int, int], None]
"""Called with the judge's name, how many of its batches have ended, and how many there are."""


class Chunk(BaseModel):
    """One batch: whose it is (a judge, or a renderer and a kind of request, and the hash of its specification), how far
    it is, and the keys of its requests."""

    model_config = ConfigDict(frozen=True)

    number: int
    judge: str
    spec: str
    state: Literal["ready", "sent", "ended", "closed"]
    since: str
    keys: tuple[str, ...]
    file_id: str | None = None
    batch_id: str | None = None

    @property
    def sent(self) -> Sent:
        """Return what a vendor may be asked about it."""
        return Sent(len(self.keys), datetime.fromisoformat(self.since), self.file_id)


class BatchFolder:
    """`OUT/batches/`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def every(self) -> list[Chunk]:
        """Return all batches in order, closed ones included."""
        return [read_record(path, Chunk) for path in sorted(self.path.glob("[0-9]*.json"))]

    def chunks(self, judge: str | None = None) -> list[Chunk]:
        """Return the batches that are not closed, in order."""
        return [chunk for chunk in self.every() if chunk.state != "closed" and judge in (None, chunk.judge)]

    def requests(self, chunk: Chunk) -> Path:
        """Return the file of a batch's requests."""
        return self.path / f"{chunk.number:06d}.requests.jsonl"

    def results(self, chunk: Chunk) -> Path:
        """Return the file of a batch's results."""
        return self.path / f"{chunk.number:06d}.results.jsonl"

    def keep(self, chunk: Chunk, **changes: object) -> Chunk:
        """Write a batch's record, durably."""
        fresh = chunk.model_copy(update=changes)
        write_json(self.path / f"{chunk.number:06d}.json", fresh.model_dump(mode="json"))
        return fresh

    def begin(self, judge: str, spec: str) -> Chunk:
        """Return a new batch to write requests for; several may be written at once, each with its file from here on."""
        self.path.mkdir(parents=True, exist_ok=True)
        number = max((int(path.name.partition(".")[0]) for path in self.path.glob("[0-9]*")), default=0) + 1
        now = datetime.now(UTC).isoformat()
        chunk = Chunk(number=number, judge=judge, spec=spec, state="ready", since=now, keys=())
        self.requests(chunk).touch()
        return chunk

    def keep_results(self, chunk: Chunk, results: Iterator[BatchResult]) -> None:
        """Write what came of a batch, then say so; its requests are not needed any more."""
        target = self.results(chunk)
        fresh = target.with_suffix(".part")
        with fresh.open("wb") as file:
            for one in results:
                file.write(canonical({"key": one.key, "body": one.body, "error": one.error}) + b"\n")
            _sync(file)
        fresh.replace(target)
        self.keep(chunk, state="ended")
        self.requests(chunk).unlink(missing_ok=True)

    def close(self) -> None:
        """Say that the answers of every batch that has ended are in the log."""
        for chunk in self.chunks():
            if chunk.state == "ended":
                self.keep(chunk, state="closed")

    def index(self, judge: str) -> dict[str, tuple[Path, int]]:
        """Return where the result of each key is, over the judge's batches that have ended."""
        places: dict[str, tuple[Path, int]] = {}
        for chunk in (chunk for chunk in self.chunks(judge) if chunk.state == "ended"):
            path, wanted, start = self.results(chunk), set(chunk.keys), 0
            with path.open("rb") as lines:
                for line in lines:
                    key = json.loads(line)["key"]
                    if key in wanted:
                        places[key] = (path, start)
                    start += len(line)
        return places


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def batchable(judges: Mapping[str, Judge]) -> dict[str, AsksInBatches]:
    """Return the judges that can be asked in batches.

    Raises:
        UsageError: none can.
    """
    able = {name: judge for name, judge in judges.items() if isinstance(judge, AsksInBatches)}
    found = {name: judge for name, judge in able.items() if judge.batch_terms}
    if not found:
        raise UsageError(
            "--batch is given, but no judge here has a batch API.",
            hint="Use --judge anthropic:MODEL, openai:MODEL or gemini:MODEL.",
        )
    return found


class Outbox:
    """Writes requests into batches of one sender, and sends each when it is full. What waits already is left out."""

    def __init__(self, name: str, sender: Batcher, folder: BatchFolder, spec: str) -> None:
        """spec: the hash of the specification that the requests are made by."""
        self._name, self._sender, self._folder, self._spec = name, sender, folder, spec
        self.waiting = {key for chunk in folder.chunks(name) for key in chunk.keys if chunk.spec == spec}
        self._draft: _Draft | None = None

    def add(self, key: str, request: Mapping[str, Any]) -> None:
        """Write one request."""
        self.waiting.add(key)
        terms = self._sender.batch_terms
        if self._draft and (len(self._draft.keys) >= terms["requests"] or self._draft.size >= terms["bytes"]):
            self.finish()
        if self._draft is None:
            chunk = self._folder.begin(self._name, self._spec)
            self._draft = _Draft(chunk, self._folder.requests(chunk).open("wb"))
        line = canonical({"key": key, "request": dict(request)}) + b"\n"
        self._draft.file.write(line)
        self._draft.keys.append(key)
        self._draft.size += len(line)

    def finish(self) -> None:
        """Send what has been collected: keep the requests, then the record."""
        draft, self._draft = self._draft, None
        if draft is not None:
            with draft.file as file:
                _sync(file)
            _send(self._sender, self._folder, self._folder.keep(draft.chunk, keys=tuple(draft.keys)))


class BatchedJudge(Judge):
    """Stands in for a judge on both passes, with the same specification and so with the same keys.

    On the first it writes what has to be asked into batches, within the budget, and sends each when it is full. Once
    `read` was called it answers from what the batches brought; what they did not bring is a typed failure.
    """

    def __init__(self, name: str, judge: AsksInBatches, folder: BatchFolder, budget: Budget) -> None:
        require_prices({name: judge}, budget)
        self._name, self._judge, self._folder, self._budget = name, judge, folder, budget
        self._spec = digest(dict(judge.spec()))
        self._outbox = Outbox(name, judge, folder, self._spec)
        price, share = judge.price, judge.batch_terms["price"]
        self._price = {kind: value * share for kind, value in price.items()} if price is not None else None
        self._denied: set[str] = set()
        self.picture_limits = judge.picture_limits
        self._places: dict[str, tuple[Path, int]] | None = None

    def spec(self) -> Mapping[str, Any]:
        """Return the judge's own."""
        return self._judge.spec()

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield each prompt's reply: `not_asked` on the first pass, because the answer comes later."""
        packet = evidence_sha256(evidence)
        for prompt in prompts:
            key = reply_key(packet, prompt_sha256(prompt), self._spec)
            if self._places is None:
                self._collect(key, evidence, prompt)
                yield JudgeReply("not_asked", error="waits for a batch")
            elif key in self._denied:
                yield JudgeReply("budget_stopped", error=STOPPED)
            elif key not in self._places:
                yield JudgeReply("transport_failed", error="the batch brought no result for this question")
            else:
                yield self._judge.batch_reply(_read_result(*self._places[key]), prompt)

    def _collect(self, key: str, evidence: Evidence, prompt: JudgePrompt) -> None:
        if key in self._outbox.waiting:
            return
        written = written_tokens(1, self._judge.thoughts)
        cost = expected_cost(self._price, estimate_tokens(evidence, prompt), written)
        if not self._budget.grant(1, cost):
            self._denied.add(key)
            return
        self._budget.settle(cost, cost)
        self._outbox.add(key, self._judge.batch_request(evidence, prompt))

    def finish(self) -> None:
        """Send what has been collected."""
        self._outbox.finish()

    def read(self) -> None:
        """Answer from now on, by what the batches have brought."""
        self._places = self._folder.index(self._name)


@dataclass
class _Draft:
    """A batch whose requests are being written."""

    chunk: Chunk
    file: BinaryIO
    keys: list[str] = field(default_factory=list)
    size: int = 0


def _read_result(path: Path, start: int) -> BatchResult:
    with path.open("rb") as file:
        file.seek(start)
        row = json.loads(file.readline())
    return BatchResult(row["key"], row["body"], row["error"])


def _send(sender: Batcher, folder: BatchFolder, chunk: Chunk, *, tried: bool = False) -> None:
    """Upload and make one batch, once; each id is on the disk before the next step.

    tried: it may have been made before a kill. Then, and after an answer that never came, the vendor is asked first.
    """
    batches = sender.batches

    def find() -> str | None:
        known = (other.batch_id for other in folder.every())
        return batches.find(chunk.sent, frozenset(name for name in known if name is not None))

    def create() -> str:
        nonlocal tried
        made, tried = find() if tried else None, True
        return made if made is not None else batches.create(folder.requests(chunk), chunk.sent)

    made = sender.patiently(find) if tried else None
    if made is None and chunk.file_id is None:
        file_id = sender.patiently(lambda: batches.upload(folder.requests(chunk)))
        if file_id is not None:
            chunk = folder.keep(chunk, file_id=file_id)
    tried = False
    folder.keep(chunk, state="sent", batch_id=made if made is not None else sender.patiently(create))


def _fetch(senders: Mapping[str, Batcher], folder: BatchFolder, on_batch: OnBatch | None) -> None:
    """Wait until every batch of `senders` has ended, and keep what came of each as soon as it has."""
    told: dict[str, tuple[int, int]] = {}
    while True:
        open_ones = [chunk for chunk in folder.chunks() if chunk.judge in senders and chunk.state == "sent"]
        left = [senders[chunk.judge] for chunk in open_ones if not _fetched(senders[chunk.judge], folder, chunk)]
        for name in senders:
            chunks = folder.chunks(name)
            state = (sum(chunk.state == "ended" for chunk in chunks), len(chunks))
            if on_batch is not None and chunks and told.get(name) != state:
                told[name] = state
                on_batch(name, *state)
        if not left:
            return
        left[0].rest(left[0].batch_terms["poll"])


def _fetched(sender: Batcher, folder: BatchFolder, chunk: Chunk) -> bool:
    batch_id = chunk.batch_id or ""
    if not sender.patiently(lambda: sender.batches.ended(batch_id)):
        return False
    sender.patiently(lambda: folder.keep_results(chunk, sender.batches.results(batch_id)))
    return True


def _take_up(senders: Mapping[str, Batcher], folder: BatchFolder) -> None:
    """Send what a kill left about to be sent, or sent without its id having come back; drop what it left unwritten."""
    known = {folder.requests(chunk) for chunk in folder.every()}
    for path in set(folder.path.glob("*.requests.jsonl")) - known:
        path.unlink()
    for chunk in folder.chunks():
        if chunk.judge in senders and chunk.state == "ready":
            _send(senders[chunk.judge], folder, chunk, tried=True)


def ask_in_batches(
    judges: Mapping[str, AsksInBatches],
    collect: Callable[[JudgingEngine], None],
    folder: BatchFolder,
    budget: Budget,
    store: Store,
    on_batch: OnBatch | None = None,
) -> dict[str, BatchedJudge]:
    """Let `collect` ask everything of stand-ins for `judges`, send it, wait for it: stand-ins that answer.

    Batches that a kill left about to be sent, or sent without their id having come back, are taken up first.

    Raises:
        UsageError, JudgeError: a vendor refuses, or stays broken; the batches go on there, and the same command comes
        back to them.
    """
    _take_up(judges, folder)
    asked = {name: BatchedJudge(name, judge, folder, budget) for name, judge in judges.items()}
    collect(JudgingEngine(asked, store))
    for judge in asked.values():
        judge.finish()
    _fetch(judges, folder, on_batch)
    for judge in asked.values():
        judge.read()
    return asked


def talk_in_batches(
    name: str,
    renderer: Renderer,
    client: ChatClient,
    draw: Callable[[], None],
    folder: BatchFolder,
    budget: Budget | None = None,
    on_batch: OnBatch | None = None,
) -> None:
    """Have the conversations that `draw` holds answered in batches, a round of calls in each: the casts, the frames,
    the looks at them. What was answered is kept as calls are, so that drawing afterwards finds it.

    draw: draws every board, and lets a call without a reply end its board. Batches of an earlier call are come back
    to. What the budget does not cover is not sent.

    Raises:
        UsageError, RenderError: the vendor refuses, or stays broken; the same command comes back to the batches.
    """
    sender = ClientBatches(client, client.batches, dict(client.vendor.card["batch"]))
    sent_by, spec = f"{name}, words", digest(dict(renderer.spec()))
    each = (renderer.frame_price or 0.0) * sender.batch_terms["price"]
    _take_up({sent_by: sender}, folder)
    while True:
        box, fresh = Outbox(sent_by, sender, folder, spec), set[str]()

        def take(key: str, body: Mapping[str, Any], box: Outbox = box, fresh: set[str] = fresh) -> None:
            if key in box.waiting or (budget is not None and not budget.grant(1, each)):
                return
            if budget is not None:
                budget.settle(each, each)
            fresh.add(key)
            box.add(key, body)

        with client.collecting(take):
            draw()
        box.finish()
        _fetch({sent_by: sender}, folder, on_batch)
        kept = [client.keep_batched(_read_result(*place)) for place in folder.index(sent_by).values()]
        if not any(kept):
            return


def draw_in_batches(
    name: str,
    renderer: DrawsInBatches,
    wanted: Mapping[str, FrameRequest],
    keep: Callable[[str, bytes], None],
    folder: BatchFolder,
    budget: Budget | None = None,
    on_batch: OnBatch | None = None,
) -> dict[str, str]:
    """Have the vendor draw what is `wanted`, by key, in batches; wait for them, and `keep` each picture that came.

    Batches of an earlier call are come back to first, and stay until `folder.close`: what they brought may be wanted by
    a later call. Gives by key why there is no picture. What the budget does not
    cover is not sent, and has no entry.

    Raises:
        UsageError, RenderError: the vendor refuses, or stays broken; the batches go on there, and the same command
        comes back to them.
    """
    senders = {f"{name}, {kind}": sender for kind, sender in renderer.batchers().items()}
    spec, failed = digest(dict(renderer.spec())), dict[str, str]()
    _take_up(senders, folder)
    boxes = {sent_by: Outbox(sent_by, sender, folder, spec) for sent_by, sender in senders.items()}
    waiting = set[str]().union(*(box.waiting for box in boxes.values()))
    for key, request in wanted.items():
        if key in waiting:
            continue
        try:
            kind, body = renderer.batch_request(request)
        except UnfitFrameError as error:
            failed[key] = error.message
            continue
        cost = (renderer.frame_price or 0.0) * senders[f"{name}, {kind}"].batch_terms["price"]
        if budget is not None and not budget.grant(1, cost):
            break
        if budget is not None:
            budget.settle(cost, cost)
        boxes[f"{name}, {kind}"].add(key, body)
    for box in boxes.values():
        box.finish()
    _fetch(senders, folder, on_batch)
    for sent_by in senders:
        for key, place in folder.index(sent_by).items():
            try:
                if key in wanted:
                    keep(key, renderer.batch_frame(_read_result(*place), wanted[key]))
            except RenderError as error:
                failed[key] = error.message
    return failed
