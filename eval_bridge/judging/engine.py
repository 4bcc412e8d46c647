"""The judging engine: packets in, typed answers out, for run, redo, eval, ablate, compare and tune alike.

The failure policy, decided here once:

- What a judge raises that is not a `KathaError` is a bug of that judge and costs one question: a typed failure with the
  status `transport_failed` and the error `ValueError: ...`. The next question is asked. So it is with and without a
  budget, for a reply that is not a `JudgeReply`, and for a plug-in that would end the process (`SystemExit`).
- A `TransientJudgeError` or an `OSError` is tried again with the same bytes, with growing waits; what still fails is
  `transport_failed`, and so are the packet's other questions.
- Any other `KathaError` says that the judge cannot be asked at all (a wrong key, no credit): it ends the command.
- A failure is never cached, never scored, and counted by its cause (`answers.py`). Only what is `ok` is cached.
- Questions that are asked together are one call to the budget and to all of this: what fails of the call fails for each
  of them, and what is wrong with one row of its reply for that question alone.
- A judge whose replies cannot be read, so many in a row, is asked no more (`brake.py`): that ends the command, too.
- A question beyond the budget is `budget_stopped`, or ends the command with a `BudgetError`: `when_spent` says which.

The cache key holds everything that can change a reply: condition, ordered pixel hashes and their preprocessing, text,
the exact prompt, and the judge's own specification (revision, decoding, reuse mode). It holds neither method, story nor
question id, so a text-only answer is asked once for all methods, and equal boards are judged once. An answer that was
given together with others depends on them: its prompt is the whole call. Those of a packet that are not in the cache
are one call, with a key of its own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, get_args

from katha.errors import KathaError, TransientJudgeError
from katha.eval_bridge.judging.abilities import asked_as, price_of, threads_of
from katha.eval_bridge.judging.answers import OutcomeCounter
from katha.eval_bridge.judging.brake import brake_of
from katha.eval_bridge.judging.budget import (
    STOPPED,
    Account,
    Budget,
    CallTally,
    PrefixCache,
    estimate_together,
    estimate_tokens,
    expected_cost,
    portions,
    require_prices,
    written_tokens,
)
from katha.eval_bridge.matching.match import UNCERTAIN, normalise
from katha.eval_bridge.packets.instructions import (
    AnswersFormat,
    Ask,
    judge_prompt,
    plain_sha256,
    prompt_sha256,
    together_sha256,
)
from katha.eval_bridge.packets.packets import PREPROCESSING, packet_sha256
from katha.eval_bridge.packets.sizes import fit_packet
from katha.jsonio import canonical, digest
from katha.protocols import (
    Evidence,
    Judge,
    JudgePrompt,
    JudgeReply,
    PlainPrompt,
    can,
)
from katha.schema import Answer, AnswerStatus, Confidence, Packet, Question
from katha.store import AnswerCache, Store

OnAnswer = Callable[[Answer, bool], None]
"""Called with each answer as soon as it exists, and whether it was reused (not paid for)."""

OnReply = Callable[[str, JudgeReply], None]
"""Called with a judge's name and each reply that it gave."""

_EVIDENCE = frozenset(("recoverable", "unclear", "omitted", "contradicted"))
_SUPPORT = frozenset(("supported", "omitted", "contradicted", "ambiguous"))
_FEW = "the judge gave fewer replies than questions"
# A server in a loop can answer without end; the archive keeps what shows that.
_LONGEST_RAW = 100_000
_LONGEST_USAGE = 100_000
_OWN_QUESTIONS_ONLY = "the judge answers katha's own questions only, no prompts of other measures"
_NO_GUESS = "asked for its best guess, the judge gave none"


@dataclass(frozen=True)
class Retry:
    """How a transient failure is tried again: `attempts` in all, waits that grow by `factor` from `first_wait` s."""

    attempts: int = 4
    first_wait: float = 0.5
    factor: float = 2.0
    sleep: Callable[[float], None] = time.sleep

    def wait(self, failures: int) -> None:
        """Wait after the `failures`-th failure in a row (from 1)."""
        if self.first_wait > 0:
            self.sleep(self.first_wait * self.factor ** (failures - 1))


@dataclass(frozen=True)
class PlainQuestion:
    """A prompt that is put as it stands, and the id that its answer carries (`vinabench-vqa/time/2`)."""

    question_id: str
    prompt: PlainPrompt

    @property
    def role(self) -> None:
        """It belongs to neither half: no board is chosen by it."""
        return


@dataclass(frozen=True)
class Inquiry:
    """Questions about one packet, and how they are put.

    method: the board that the packet shows; None for a text-only packet, whose answers hold for every method. variant:
    the prompt variant, and answers: the form of the answers, which plain questions have in themselves. cached: whether
    answers that are there already count, and new ones are kept. ask: whether a judge that can is asked the questions
    together; plain ones are always asked singly.
    """

    packet: Packet
    evidence: Evidence
    questions: Sequence[Question | PlainQuestion]
    method: str | None
    variant: str = ""
    answers: AnswersFormat = "free"
    cached: bool = True
    ask: Ask = "singly"


def reply_key(packet: str, prompt: str, judge: str) -> str:
    """Return the cache key from the hashes of packet, prompt and judge's specification."""
    return digest({"images": PREPROCESSING, "judge": judge, "packet": packet, "prompt": prompt})


# From a reply to a typed answer: whatever breaks the reply's form is a typed failure that carries no answer.


def _sound(text: str | None) -> str | None:
    """Return `text` as every file can hold it: a lone surrogate is written out."""
    return text if text is None or text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _literal(answer: str | None, options: tuple[str, ...] | None) -> str | None:
    """Return the option that `answer` names (case, punctuation and blanks aside), or the answer itself when free."""
    if answer is None or not answer.strip():
        return None
    if options is None or answer in options:
        return answer
    wanted = normalise(answer)
    return next((option for option in options if normalise(option) == wanted), None)


def _sound_usage(usage: Mapping[str, object]) -> dict[str, object]:
    """Return a reply's account as JSON with numbers where they are counted; anything else is an error."""
    size = len(canonical(dict(usage)))
    tokens = usage.get("tokens")
    numbers = [usage.get("cost"), *(tokens.values() if isinstance(tokens, Mapping) else ())]
    if any(number is not None and not (isinstance(number, int | float) and number >= 0) for number in numbers):
        raise TypeError("the usage of a reply holds what is no number from 0")
    if size > _LONGEST_USAGE:
        raise ValueError(f"the usage of a reply holds {size:,} bytes")
    return dict(usage)


def _put(judge: Judge, evidence: Evidence, prompts: Sequence[JudgePrompt | PlainPrompt]) -> Iterator[JudgeReply]:
    """Yield the replies of one way of asking; a judge that takes no plain prompts is not asked any."""
    plain = [prompt for prompt in prompts if isinstance(prompt, PlainPrompt)]
    if not plain:
        yield from judge.ask(evidence, [prompt for prompt in prompts if isinstance(prompt, JudgePrompt)])
    elif can(judge, Judge.ask_plainly):
        yield from judge.ask_plainly(evidence, plain)
    else:
        yield from (JudgeReply("not_asked", error=_OWN_QUESTIONS_ONLY) for _ in plain)


def _checked(reply: object, prompt: JudgePrompt | PlainPrompt) -> JudgeReply:
    """Return a judge's reply as a sound one: a typed failure when it breaks the reply's form, without an answer."""
    try:
        if not isinstance(reply, JudgeReply):
            raise TypeError(f"the judge gave a {type(reply).__name__}, not a JudgeReply")
        usage = _sound_usage(reply.usage)
        raw, error = _sound(reply.raw), _sound(reply.error)
        if raw is not None and len(raw) > _LONGEST_RAW:
            usage["cut"], raw = f"the raw reply had {len(raw):,} letters", raw[:_LONGEST_RAW]
        if raw != reply.raw and "cut" not in usage:
            usage["replaced"] = "half of a surrogate pair was written out"
        if reply.status != "ok":
            known = reply.status in get_args(AnswerStatus)
            said = error if known else f"unknown status {reply.status!r}"
            return JudgeReply(reply.status if known else "unparseable", raw=raw, error=said, usage=usage)
        given = _sound(reply.answer)
        answer = _literal(given, prompt.options if isinstance(prompt, JudgePrompt) else None)
        checks = (
            (answer is not None, f"answer {given!r} is not one of the options" if given else "no answer"),
            (reply.evidence_status in {None, *_EVIDENCE}, f"evidence status {reply.evidence_status!r}"),
            (reply.image_support in {None, *_SUPPORT}, f"image support {reply.image_support!r}"),
            (reply.confidence in {None, *get_args(Confidence)}, f"confidence {reply.confidence!r}"),
        )
        wrong = next((message for fine, message in checks if not fine), None)
        if wrong is not None:
            return JudgeReply("unparseable", raw=raw if raw is not None else given, error=wrong, usage=usage)
        return replace(reply, answer=answer, raw=raw, error=None, usage=usage)
    except Exception as error:  # a reply of the wrong types is a bug of the judge's, like an error that it raises
        return JudgeReply("transport_failed", error=_cause(error))


def _all_checked(given: Sequence[object], prompts: Sequence[JudgePrompt]) -> list[JudgeReply]:
    """Return the replies of one call as sound ones, which say of how many questions it was."""
    replies, count = [], len(prompts)
    for place, (reply, prompt) in enumerate(zip(given, prompts, strict=True)):
        sound = _checked(reply, prompt)
        # The first answer carries the price of the call; sums over answers then count it once.
        usage = {name: value for name, value in sound.usage.items() if name != "shared"} | {"together": count}
        replies.append(replace(sound, usage=usage | {"shared": count} if place else usage))
    return replies


def _cause(error: BaseException) -> str:
    """Return what an error of a judge's own says in one line: `ValueError: half a body`."""
    said = _sound(next(iter(str(error).strip().splitlines()), ""))
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


@dataclass(frozen=True)
class _Call:
    """One question of a packet with everything that labels its answer."""

    prompt: JudgePrompt | PlainPrompt
    key: str
    labels: Mapping[str, object]

    def answer(self, reply: JudgeReply) -> Answer:
        if self.labels["condition"] == "none" and reply.status == "ok" and normalise(reply.answer or "") in UNCERTAIN:
            reply = replace(reply, status="refused", answer=None, raw=reply.raw or reply.answer, error=_NO_GUESS)
        return Answer.model_validate({**self.labels, **vars(reply), "usage": dict(reply.usage)})

    def key_for(self, judge: Judge) -> str:
        """Return the cache key of a reply that came as `judge` is asked now."""
        return reply_key(str(self.labels["packet_sha256"]), str(self.labels["prompt_sha256"]), asked_as(judge))

    def relabel(self, stored: Answer) -> Answer:
        """Return an answer under the labels of this question; how it was put stays as it was."""
        return stored.model_copy(update={name: label for name, label in self.labels.items() if name != "prompt_sha256"})

    def put_as(self, prompt_hash: str) -> _Call:
        """Return the question as it is put with others."""
        return replace(self, labels={**self.labels, "prompt_sha256": prompt_hash})


class _Line:
    """One judge as the engine asks it: within its budget, so often at once as it allows, by the failure policy."""

    def __init__(
        self,
        name: str,
        judge: Judge,
        budget: Budget,
        when_spent: Literal["count", "stop"],
        on_reply: OnReply | None = None,
    ) -> None:
        self.name, self.judge, self._on_reply = name, judge, on_reply
        self.threads, self.price = threads_of(judge), price_of(judge)
        self.tally, self._brake = CallTally(), brake_of(judge)
        self._budget, self._when_spent = budget, when_spent
        self._free = threading.BoundedSemaphore(self.threads)

    @property
    def alone(self) -> bool:
        """Return whether one thread at a time may ask it."""
        return self.threads == 1

    def whole_packet(self) -> AbstractContextManager[object]:
        """Hold a judge of one thread while all questions of a packet are put to it."""
        return self._free if self.alone else nullcontext()

    def one(self, evidence: Evidence, prompt: JudgePrompt | PlainPrompt, retry: Retry) -> JudgeReply:
        """Return the reply to one question, as one of several that are asked side by side."""
        # A judge of one thread is held for its whole packet already; to take it again would wait for ever.
        with nullcontext() if self.alone else self._free:
            (reply,) = self.replies(evidence, [prompt], retry)
            return reply

    def replies(
        self, evidence: Evidence, prompts: Sequence[JudgePrompt | PlainPrompt], retry: Retry
    ) -> Iterator[JudgeReply]:
        """Yield one sound reply per prompt, in order. What came before a failure stands.

        Raises:
            KathaError: the judge cannot be asked at all. BudgetError: the budget is used up and that ends the command.
        """
        price, side = self.price, self.judge.picture_side
        read = max((estimate_tokens(evidence, item, side) for item in prompts), default=0)
        each = expected_cost(price, read, written_tokens(1, self.judge.thoughts))
        done = failures = 0
        while done < len(prompts):
            under_way = self._budget.grant(len(prompts) - done, each)
            if not under_way:
                if self._when_spent == "stop":
                    raise self._budget.used_up()
                yield from (JudgeReply("budget_stopped", error=STOPPED) for _ in prompts[done:])
                return
            before, wrong, few = done, "", ""
            try:
                with self._brake.call(self.name):
                    for reply in islice(_put(self.judge, evidence, prompts[done : done + under_way]), under_way):
                        under_way, done = under_way - 1, done + 1
                        yield self._heard(reply, prompts[done - 1], each)
                        if self._brake.spent:
                            break
                    else:
                        wrong = few = _FEW if under_way else ""
            except (TransientJudgeError, OSError) as error:
                under_way -= 1
                self._budget.settle(each, 0.0)
                wrong = str(error) if isinstance(error, TransientJudgeError) else _cause(error)
            except KathaError:
                if not self._brake.spent:  # it was asked
                    under_way -= 1
                    self._budget.settle(each, 0.0)
                raise
            except (Exception, SystemExit) as error:
                under_way, done = under_way - 1, done + 1
                yield self._heard(JudgeReply("transport_failed", error=_cause(error)), prompts[done - 1], each)
            finally:
                self._budget.give_back(under_way, each)
            if wrong:
                failures = 1 if done > before else failures + 1
                if failures >= retry.attempts:
                    failed = JudgeReply("transport_failed", error=f"{wrong} ({retry.attempts} attempts)")
                    yield from (failed for _ in prompts[done:])
                    return
                if not few:  # a plug-in that loses count is not a network that comes back
                    retry.wait(failures)

    def in_one_call(self, evidence: Evidence, prompts: Sequence[JudgePrompt], retry: Retry) -> list[JudgeReply]:
        """Return one sound reply per prompt, in order, from one call; it is one of the budget's, too.

        Raises:
            KathaError: the judge cannot be asked at all. BudgetError: the budget is used up and that ends the command.
        """
        tokens, wrong = estimate_together(evidence, prompts, self.judge.picture_side), ""
        each = expected_cost(self.price, tokens, written_tokens(len(prompts), self.judge.thoughts))
        with nullcontext() if self.alone else self._free:
            for failures in range(1, retry.attempts + 1):
                if not self._budget.grant(1, each):
                    if self._when_spent == "stop":
                        raise self._budget.used_up()
                    return [JudgeReply("budget_stopped", error=STOPPED) for _ in prompts]
                cost, sent = 0.0, True
                try:
                    with self._brake.call(self.name):
                        given = list(islice(self.judge.ask_together(evidence, prompts), len(prompts)))
                    few = JudgeReply("transport_failed", error=_FEW)
                    replies = _all_checked([*given, *(few for _ in prompts[len(given) :])], prompts)
                    cost = sum(float(reply.usage.get("cost") or 0.0) for reply in replies)
                    sent = any(reply.status != "not_asked" for reply in replies)
                    return self._all_counted(replies)
                except (TransientJudgeError, OSError) as error:
                    wrong = str(error) if isinstance(error, TransientJudgeError) else _cause(error)
                except KathaError:
                    raise
                except (Exception, SystemExit) as error:
                    failed = JudgeReply("transport_failed", error=_cause(error))
                    return self._all_counted(_all_checked([failed for _ in prompts], prompts))
                finally:
                    if sent:
                        self._budget.settle(each, cost)
                    else:
                        self._budget.give_back(1, each)
                if failures < retry.attempts:
                    retry.wait(failures)
        return [JudgeReply("transport_failed", error=f"{wrong} ({retry.attempts} attempts)") for _ in prompts]

    def _all_counted(self, replies: list[JudgeReply]) -> list[JudgeReply]:
        self._brake.heard(replies)
        for reply in replies:
            self.count(reply)
        return replies

    def _heard(self, reply: object, prompt: JudgePrompt | PlainPrompt, each: float) -> JudgeReply:
        """Return one reply of the judge's as a sound one, and put it on the account."""
        sound = _checked(reply, prompt)
        if sound.status == "not_asked":
            self._budget.give_back(1, each)
        else:
            self._budget.settle(each, float(sound.usage.get("cost") or 0.0))
        self._brake.heard([sound])
        self.count(sound)
        return sound

    def count(self, reply: JudgeReply) -> None:
        """Put a reply on the account."""
        self.tally.count(reply)
        if self._on_reply is not None:
            self._on_reply(self.name, reply)


def prefix_caches(judges: Mapping[str, Judge]) -> dict[str, PrefixCache]:
    """Return what the prefix caches of judges' servers counted since each judge was first asked, where they count."""
    counted = {name: judge.prefix_hits() for name, judge in judges.items()}
    return {name: PrefixCache(found=row[0], looked_up=row[1]) for name, row in counted.items() if row is not None}


class JudgingEngine:
    """Puts packets to judges: budget, retries, cache, claims, and how many threads may ask a judge at once.

    `outcome` counts every answer that was handed over, `tallies` what each judge was asked and what it cost.
    """

    def __init__(
        self,
        judges: Mapping[str, Judge],
        store: Store | None = None,
        *,
        budget: Budget | None = None,
        when_spent: Literal["count", "stop"] = "count",
        paid: Collection[str] = (),
        retry: Retry | None = None,
        on_reply: OnReply | None = None,
    ) -> None:
        """judges: by the name that their answers carry. store: the cache that commands share.

        budget: over all metered judges but those of `paid`, whose replies a batch has brought. when_spent: whether
        questions beyond the budget are counted as `budget_stopped`, or end the command. on_reply: called with each
        reply of a judge (never with what the cache held), from several threads.

        Raises:
            UsageError: the budget is in dollars and a judge's price is unknown.
        """
        limits, free = budget or Budget(), Budget()
        require_prices({name: judge for name, judge in judges.items() if name not in paid}, limits)
        self._lines = {
            name: _Line(name, judge, limits if judge.metered and name not in paid else free, when_spent, on_reply)
            for name, judge in judges.items()
        }
        self._store, self._retry = store, retry or Retry()
        self.outcome = OutcomeCounter()

    @property
    def tallies(self) -> dict[str, CallTally]:
        """Return what each judge was asked by this engine."""
        return {name: line.tally for name, line in self._lines.items()}

    def accounts(self) -> dict[str, Account]:
        """Return what each judge was asked, and what its server's prefix cache counted meanwhile."""
        caches = prefix_caches(self.judges)
        return {
            name: line.tally.account().model_copy(update={"prefix_cache": caches.get(name)})
            for name, line in self._lines.items()
        }

    @property
    def judges(self) -> dict[str, Judge]:
        """The judges by name, in order."""
        return {name: line.judge for name, line in self._lines.items()}

    def let_go(self, name: str) -> None:
        """Have a judge give back the memory or the connections that it holds."""
        self._lines[name].judge.close()

    def ask(self, name: str, inquiry: Inquiry, on_answer: OnAnswer | None = None) -> list[Answer]:
        """Return the answers of one judge to the questions of a packet, in their order.

        A hit in the cache is not paid for; of two equal questions one is asked. What is left is one call where the
        inquiry wants it and the judge can. Otherwise, where the judge may be asked from several threads, the first
        question is asked alone and the rest side by side. `on_answer` is called on the caller's thread, for each answer
        when it is there and kept.

        Raises:
            UsageError: a question cannot be put in this form. JudgeError: the judge cannot be asked at all (a wrong
            key). BudgetError: the budget is used up and that ends the command.
        """
        line, inquiry = self._lines[name], self.shown(name, inquiry)
        asking = _Asking(line, inquiry, self._store.answers if self._store is not None else None, self._retry)
        shown = asking.packet_hash if inquiry.packet.condition != "none" else f"none:{inquiry.packet.story_id}"
        claim = self._store.claim(f"answers:{name}:{shown}") if self._store is not None else nullcontext()
        with line.whole_packet(), claim:
            return asking.run(lambda answer, reused: self._tell(line, answer, reused, on_answer))

    def kept(self, name: str, inquiry: Inquiry) -> list[Answer | None]:
        """Return the answers of one judge that the cache holds to the questions of a packet; nothing is asked."""
        if self._store is None:
            return [None for _ in inquiry.questions]
        asking = _Asking(self._lines[name], self.shown(name, inquiry), self._store.answers, self._retry)
        return [self._store.answers.get(key) for key in asking.keys]

    def shown(self, name: str, inquiry: Inquiry) -> Inquiry:
        """Return an inquiry as a judge is shown it: its pictures within the limits of the judge's vendor.

        Raises:
            UsageError: there are more pictures than the judge takes.
        """
        packet, evidence = fit_packet(inquiry.packet, inquiry.evidence, self._lines[name].judge.picture_limits)
        return inquiry if packet is inquiry.packet else replace(inquiry, packet=packet, evidence=evidence)

    def heard(self, answer: Answer, *, reused: bool) -> None:
        """Put an answer on the account that another process has got from a judge of this engine."""
        line = self._lines[answer.judge]
        self.outcome.add(answer)
        if reused:
            line.tally.count_reused()
        else:
            line.count(JudgeReply(answer.status, usage=dict(answer.usage)))

    def _tell(self, line: _Line, answer: Answer, reused: bool, on_answer: OnAnswer | None) -> None:
        self.outcome.add(answer)
        if reused:
            line.tally.count_reused()
        if on_answer is not None:
            on_answer(answer, reused)


class _Asking:
    """One inquiry put to one judge."""

    def __init__(self, line: _Line, inquiry: Inquiry, cache: AnswerCache | None, retry: Retry) -> None:
        self._line, self._judge, self._retry = line, line.judge, retry
        self._evidence = inquiry.evidence
        self._cache = cache if inquiry.cached else None
        self.packet_hash = packet_sha256(inquiry.packet)
        self._calls = [self._plan(inquiry, item, asked_as(line.judge)) for item in inquiry.questions]
        self._inquiry = inquiry
        self._given: dict[str, Answer] = {}
        self._waiting: dict[str, list[_Call]] = {}

    @property
    def keys(self) -> list[str]:
        """The cache keys of the questions, in their order."""
        return [call.key_for(self._judge) for call in self._calls]

    def _plan(self, inquiry: Inquiry, question: Question | PlainQuestion, spec_hash: str) -> _Call:
        packet = inquiry.packet
        prompt: JudgePrompt | PlainPrompt
        if isinstance(question, PlainQuestion):
            prompt = question.prompt
            prompt_hash = plain_sha256(prompt)
        else:
            form: AnswersFormat = "choice" if self._judge.always_chooses else inquiry.answers
            prompt = judge_prompt(
                question, packet.condition, variant=inquiry.variant, answers_format=form, count=len(packet.images)
            )
            prompt_hash = prompt_sha256(prompt)
        labels = {
            "method": inquiry.method,
            "judge": self._line.name,
            "story_id": packet.story_id,
            "question_id": question.question_id,
            "condition": packet.condition,
            "role": question.role,
            "prompt_sha256": prompt_hash,
            "packet_sha256": self.packet_hash,
        }
        return _Call(prompt, reply_key(self.packet_hash, prompt_hash, spec_hash), labels)

    def run(self, tell: OnAnswer) -> list[Answer]:
        """Ask what neither the judge knows by name nor the cache holds."""
        self._told = tell
        named = {at: answer for at, call in enumerate(self._calls) if (answer := self._recalled(call)) is not None}
        for answer in named.values():
            tell(answer, True)
        for at, call in enumerate(self._calls):
            if at not in named:
                self._waiting.setdefault(call.key, []).append(call)
        unlike = [equal[0] for equal in self._waiting.values()]
        if self._inquiry.ask == "together" and self._judge.asks_together:
            rest = iter(unlike)
            for count in portions(len(unlike)):
                self._together(list(islice(rest, count)))
        else:
            self._singly(unlike)
        return [
            named[at] if at in named else call.relabel(self._given[call.key]) for at, call in enumerate(self._calls)
        ]

    def _together(self, calls: Sequence[_Call]) -> None:
        """Ask in one call what of `calls` the cache does not hold; it holds answers by the call that they came from."""
        left = list(calls)
        while len(prompts := [call.prompt for call in left if isinstance(call.prompt, JudgePrompt)]) == len(left) > 1:
            put = [call.put_as(hashed) for call, hashed in zip(left, together_sha256(prompts), strict=True)]
            missing = [at for at, call in enumerate(put) if not self._known(call.key_for(self._judge), call)]
            if len(missing) == len(left):
                replies = self._line.in_one_call(self._evidence, prompts, self._retry)
                kept = [self._keep(call, reply) for call, reply in zip(put, replies, strict=True)]
                for call, answer in kept:
                    self._hand_over(call, answer, False)
                return
            left = [left[at] for at in missing]
        self._singly(left)

    def _singly(self, calls: Sequence[_Call]) -> None:
        pending = [call for call in calls if not self._known(call.key, call)]
        if self._line.alone or len(pending) < 2:
            prompts = [call.prompt for call in pending]
            replies = self._line.replies(self._evidence, prompts, self._retry) if pending else iter(())
            for call, reply in zip(pending, replies, strict=True):
                self._hand_over(*self._keep(call, reply), False)
        else:
            self._side_by_side(pending)

    def _recalled(self, call: _Call) -> Answer | None:
        """Return the answer that the judge knows by name: it is as it was given, and no call."""
        packet, question = self._inquiry.packet, str(call.labels["question_id"])
        reply = self._judge.recall(self._inquiry.method, packet.story_id, question, packet.condition)
        return None if reply is None else call.answer(reply)

    def _side_by_side(self, pending: Sequence[_Call]) -> None:
        self._hand_over(*self._one(pending[0]), False)  # a server keeps the prefix once it began to answer the first
        rest = pending[1:]
        now = rest[0].key_for(self._judge)
        if now != rest[0].key:
            # The first call found that the server has to be asked in another way: it may have been asked so before.
            rest = [call for call in rest if not self._known(call.key_for(self._judge), call)]
        pool = ThreadPoolExecutor(min(self._line.threads, max(1, len(rest))), thread_name_prefix="asking")
        try:
            under_way, failed = [pool.submit(self._one, call) for call in rest], None
            for done in as_completed(under_way):
                if done.cancelled():
                    continue
                try:
                    answered = done.result()
                except KathaError as error:  # what was paid for beside it is kept
                    failed = failed or error
                    for waiting in under_way:
                        waiting.cancel()
                else:
                    self._hand_over(*answered, False)
            if failed is not None:
                raise failed
        finally:
            pool.shutdown(cancel_futures=True)

    def _one(self, call: _Call) -> tuple[_Call, Answer]:
        return self._keep(call, self._line.one(self._evidence, call.prompt, self._retry))

    def _known(self, key: str, call: _Call) -> bool:
        """Hand over the answer that is stored under `key`, if there is one."""
        stored = self._cache.get(key) if self._cache is not None else None
        if stored is None or stored.status != "ok":
            return False
        self._hand_over(call, stored, True)
        return True

    def _keep(self, call: _Call, reply: JudgeReply) -> tuple[_Call, Answer]:
        """Store an answer before it is reported."""
        answer = call.answer(reply)
        if answer.status == "ok" and self._cache is not None:
            self._cache.put(call.key_for(self._judge), answer)
        return call, answer

    def _hand_over(self, call: _Call, answer: Answer, reused: bool) -> None:
        self._given[call.key] = answer
        for position, equal in enumerate(self._waiting[call.key]):
            self._told(equal.relabel(answer), reused or position > 0)
