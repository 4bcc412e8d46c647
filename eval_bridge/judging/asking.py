"""Asking a judge: one question a call, nothing paid twice, and a failure is never an answer.

The cache key holds everything that can change a reply: condition, ordered pixel hashes and their preprocessing, text,
the exact prompt, and the judge's own specification (revision, decoding, reuse mode). It holds neither method, story nor
question id, so a text-only answer is asked once for all methods, and equal boards are judged once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, get_args

from katha.errors import TransientJudgeError
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.packets.images import PREPROCESSING
from katha.eval_bridge.packets.instructions import AnswersFormat, judge_prompt, prompt_sha256
from katha.eval_bridge.packets.packets import packet_sha256
from katha.jsonio import digest
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Answer, AnswerStatus, Confidence, Packet, Question

OnAnswer = Callable[[Answer, bool], None]
"""Called with each answer as soon as it exists, and whether it was reused (not paid for)."""

_EVIDENCE = frozenset(("recoverable", "unclear", "omitted", "contradicted"))
_SUPPORT = frozenset(("supported", "omitted", "contradicted", "ambiguous"))


class AnswerCache(Protocol):
    """Answers by key, kept across runs. Only answers with status `ok` are ever put."""

    def get(self, key: str) -> Answer | None:
        """The answer stored under `key`."""
        ...

    def put(self, key: str, answer: Answer) -> None:
        """Store `answer` durably under `key`."""
        ...


@dataclass(frozen=True)
class Retry:
    """How a transient failure is tried again: `attempts` in all, waits that grow by `factor` from `first_wait` s."""

    attempts: int = 4
    first_wait: float = 0.5
    factor: float = 2.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, failures: int) -> None:
        """Wait after the `failures`-th failure in a row (from 1)."""
        seconds = self.first_wait * self.factor ** (failures - 1)
        if seconds > 0:
            self.sleep(seconds)


def judge_name(judge: Judge) -> str:
    """The name under which a judge's answers are kept."""
    return str(judge.spec().get("name", type(judge).__name__))


def concurrency_of(judge: Judge) -> int:
    """How many threads may ask `judge` at once: its attribute `concurrency`, 1 where there is none."""
    return max(1, int(getattr(judge, "concurrency", 1)))


def answer_key(packet: Packet, prompt: JudgePrompt, spec: Mapping[str, Any]) -> str:
    """The cache key of one reply."""
    return reply_key(packet_sha256(packet), prompt_sha256(prompt), digest(dict(spec)))


def reply_key(packet: str, prompt: str, judge: str) -> str:
    """The cache key from the hashes of packet, prompt and judge's specification."""
    return digest({"images": PREPROCESSING, "judge": judge, "packet": packet, "prompt": prompt})


def _spec_sha256(judge: Judge) -> str:
    """The hash of how `judge` is asked now: its specification, and what of it a server has made it change."""
    return digest({**judge.spec(), **getattr(judge, "amended", {})})


def _literal(answer: str | None, options: tuple[str, ...] | None) -> str | None:
    """The option that `answer` names (case, punctuation and blanks aside), or the answer itself when free."""
    if answer is None or not answer.strip():
        return None
    if options is None or answer in options:
        return answer
    wanted = normalise(answer)
    return next((option for option in options if normalise(option) == wanted), None)


def _checked(reply: JudgeReply, prompt: JudgePrompt) -> JudgeReply:
    """`reply`, or a typed failure when it breaks the reply's form. A failure carries no answer."""
    if reply.status != "ok":
        known = reply.status in get_args(AnswerStatus)
        error = reply.error if known else f"unknown status {reply.status!r}"
        return JudgeReply(reply.status if known else "unparseable", raw=reply.raw, error=error, usage=reply.usage)
    answer = _literal(reply.answer, prompt.options)
    checks = (
        (answer is not None, f"answer {reply.answer!r} is not one of the options" if reply.answer else "no answer"),
        (reply.evidence_status in {None, *_EVIDENCE}, f"evidence status {reply.evidence_status!r}"),
        (reply.image_support in {None, *_SUPPORT}, f"image support {reply.image_support!r}"),
        (reply.confidence in {None, *get_args(Confidence)}, f"confidence {reply.confidence!r}"),
    )
    wrong = next((message for fine, message in checks if not fine), None)
    if wrong is not None:
        raw = reply.raw if reply.raw is not None else reply.answer
        return JudgeReply("unparseable", raw=raw, error=wrong, usage=reply.usage)
    return JudgeReply(
        "ok", answer, reply.evidence_status, reply.image_support, reply.confidence, reply.raw, None, reply.usage
    )


def _replies(judge: Judge, evidence: Evidence, prompts: Sequence[JudgePrompt], retry: Retry) -> Iterator[JudgeReply]:
    """One reply per prompt. What was yielded before a transient failure stands; only the rest is asked again."""
    done, failures, error = 0, 0, ""
    while done < len(prompts) and failures < retry.attempts:
        before = done
        try:
            for reply in islice(judge.ask(evidence, prompts[done:]), len(prompts) - done):
                done += 1
                yield reply
            error = "the judge gave fewer replies than questions"
        except TransientJudgeError as failure:
            error = str(failure)
        if done < len(prompts):
            failures = 1 if done > before else failures + 1
            if failures < retry.attempts:
                retry.wait(failures)
    for _ in prompts[done:]:
        yield JudgeReply("transport_failed", error=f"{error} ({retry.attempts} attempts)")


@dataclass(frozen=True)
class _Call:
    """One question of a packet with everything that labels its answer."""

    question: Question
    prompt: JudgePrompt
    key: str
    labels: Mapping[str, Any]

    def answer(self, reply: JudgeReply) -> Answer:
        fields = {
            "status": reply.status,
            "answer": reply.answer,
            "evidence_status": reply.evidence_status,
            "image_support": reply.image_support,
            "confidence": reply.confidence,
            "raw": reply.raw,
            "error": reply.error,
            "usage": dict(reply.usage),
        }
        return Answer.model_validate({**self.labels, **fields})

    def key_for(self, judge: Judge) -> str:
        """The cache key of a reply that came as `judge` is asked now."""
        return reply_key(self.labels["packet_sha256"], self.labels["prompt_sha256"], _spec_sha256(judge))

    def relabel(self, stored: Answer) -> Answer:
        return stored.model_copy(update=dict(self.labels))


def _plan_calls(
    packet: Packet,
    questions: Sequence[Question],
    judge: Judge,
    *,
    method: str | None,
    variant: str,
    answers_format: AnswersFormat,
    name: str,
) -> list[_Call]:
    packet_hash, spec_hash = packet_sha256(packet), _spec_sha256(judge)
    form: AnswersFormat = "choice" if getattr(judge, "always_chooses", False) else answers_format
    calls = []
    for question in questions:
        prompt = judge_prompt(
            question, packet.condition, variant=variant, answers_format=form, count=len(packet.images)
        )
        prompt_hash = prompt_sha256(prompt)
        labels = {
            "method": method,
            "judge": name,
            "story_id": packet.story_id,
            "question_id": question.question_id,
            "condition": packet.condition,
            "role": question.role,
            "prompt_sha256": prompt_hash,
            "packet_sha256": packet_hash,
        }
        calls.append(_Call(question, prompt, reply_key(packet_hash, prompt_hash, spec_hash), labels))
    return calls


def ask(
    evidence: Evidence,
    packet: Packet,
    questions: Sequence[Question],
    judge: Judge,
    *,
    method: str | None,
    variant: str,
    answers_format: AnswersFormat,
    cache: AnswerCache | None = None,
    on_answer: OnAnswer | None = None,
    name: str | None = None,
    retry: Retry | None = None,
) -> list[Answer]:
    """Every question of one packet put to one judge; the answers in the order of the questions.

    A hit in the cache is not paid for; of two equal questions one is asked. Where the judge has a `concurrency`, the
    first question is asked alone and the rest side by side. A transient failure is tried again with
    the same bytes; what still fails is a typed answer (`transport_failed`), never cached and never scored. Text-only
    answers hold for every method: give `method=None`. `name` labels the answers (default: the judge's own name).

    Raises:
        UsageError: a question cannot be put in this form. JudgeError: the judge cannot be asked at all (a wrong key).
    """
    calls = _plan_calls(
        packet,
        questions,
        judge,
        method=method,
        variant=variant,
        answers_format=answers_format,
        name=name or judge_name(judge),
    )
    given: dict[str, Answer] = {}
    waiting: dict[str, list[_Call]] = {}
    for call in calls:
        waiting.setdefault(call.key, []).append(call)

    def hand_over(key: str, answer: Answer, reused: bool) -> None:
        given[key] = answer
        for position, call in enumerate(waiting[key]):
            if on_answer is not None:
                on_answer(call.relabel(answer), reused or position > 0)

    pending: list[_Call] = []
    for key, equal in waiting.items():
        stored = cache.get(key) if cache is not None else None
        if stored is not None and stored.status == "ok":
            hand_over(key, stored, True)
        else:
            pending.append(equal[0])
    _ask_pending(evidence, pending, judge, retry or Retry(), cache, hand_over)
    return [call.relabel(given[call.key]) for call in calls]


def _ask_pending(
    evidence: Evidence,
    calls: Sequence[_Call],
    judge: Judge,
    retry: Retry,
    cache: AnswerCache | None,
    hand_over: Callable[[str, Answer, bool], None],
) -> None:
    """Ask what the cache does not hold; each answer is stored before it is handed over, on the caller's thread."""

    def keep(call: _Call, reply: JudgeReply) -> tuple[str, Answer]:
        answer = call.answer(_checked(reply, call.prompt))
        if answer.status == "ok" and cache is not None:
            cache.put(call.key_for(judge), answer)
        return call.key, answer

    def alone(call: _Call) -> tuple[str, Answer]:
        (reply,) = _replies(judge, evidence, [call.prompt], retry)
        return keep(call, reply)

    side = concurrency_of(judge)
    if side == 1 or len(calls) < 2:
        replies = _replies(judge, evidence, [call.prompt for call in calls], retry) if calls else iter(())
        for call, reply in zip(calls, replies, strict=True):
            hand_over(*keep(call, reply), False)
        return
    hand_over(*alone(calls[0]), False)  # a server keeps the prefix once it has begun to answer the first
    rest = calls[1:]
    if cache is not None and rest[0].key_for(judge) != rest[0].key:
        # The first call found that the server has to be asked in another way: it may have been asked so before.
        rest = [call for call in rest if not _kept(call, judge, cache, hand_over)]
    pool = ThreadPoolExecutor(min(side, max(1, len(rest))), thread_name_prefix="asking")
    try:
        for done in as_completed([pool.submit(alone, call) for call in rest]):
            hand_over(*done.result(), False)
    finally:
        pool.shutdown(cancel_futures=True)


def _kept(call: _Call, judge: Judge, cache: AnswerCache, hand_over: Callable[[str, Answer, bool], None]) -> bool:
    stored = cache.get(call.key_for(judge))
    if stored is None or stored.status != "ok":
        return False
    hand_over(call.key, stored, True)
    return True
