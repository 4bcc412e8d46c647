"""What the API judges share: the vendor's client, a request from evidence and question, typed failures, and batches."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, ClassVar, TypeVar

from katha.errors import JudgeError, ModelError, UsageError
from katha.eval_bridge.judging.abilities import AsksInBatches
from katha.eval_bridge.packets.instructions import (
    failed_together,
    parse_reply,
    parse_together,
    question_text,
    together_schema,
    together_text,
)
from katha.eval_bridge.packets.sizes import fit_images, sent_bytes, smaller
from katha.models.batches import BatchApi, BatchResult
from katha.models.client import Backoff, ChatClient, Fault, Received, Request, RequestOutcome, find_vendor
from katha.protocols import Evidence, JudgePrompt, JudgeReply, PictureLimits, PlainPrompt

T = TypeVar("T")
_STOPPED = {
    "refused": "the judge refused to answer",
    "truncated": "the reply was cut at the limit of its length",
    "unparseable": "the server's reply is of no shape that is known",
}
LAYOUT = 1
"""Version of the order and wording of a request's parts."""
_ROW_TOKENS = 160
"""What the limit of a reply's length grows by for each further question of a call."""
# Below this nobody could tell what is drawn.
_LEAST_SIDE = 64
_TOO_LARGE = "HTTP 413"
_LEAST_BYTES = 100_000
"""Of pictures of a call: a server that finds them too many wants none."""
_DECODING = ("temperature", "max_tokens", "api_version", "reasoning_effort")


class ApiJudge(AsksInBatches):
    """Questions over a vendor's own SDK, each in a call of its own or all of a packet in one. `CLIENT` is the vendor's,
    `PROVIDER` its section of `configs/providers.yaml`."""

    CLIENT: ClassVar[type[ChatClient]]
    PROVIDER: ClassVar[str]
    metered = True
    asks_together = True

    def __init__(
        self,
        argument: str | None = None,
        *,
        base_url: str | None = None,
        max_retries: int = 4,
        timeout: float = 120.0,
        structured: bool = True,
        concurrency: int = 16,
        poll: float | None = None,
        patience: float | None = None,
        picture_side: int | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """Read the model's data and the key; nothing is called yet. poll: seconds between two looks at a batch.
        patience: seconds that the server may fail without one answer before it is given up; 120. picture_side: the
        longest side in pixels of a picture that is sent; None: as they are.

        Raises:
            UsageError: no model is named, the key's variable is not set, or `picture_side` is too small.
        """
        if not argument:
            raise UsageError(f"The judge {self.PROVIDER!r} needs a model.", hint=f"Write {self.PROVIDER}:MODEL.")
        self._vendor = find_vendor(self.PROVIDER, argument, base_url=base_url)
        self._card = self._vendor.card
        self._client = self.CLIENT(
            self._vendor,
            timeout=timeout,
            backoff=backoff or Backoff(max_retries=max_retries),
            at_once=concurrency,
            plain=not structured,
            patience=patience,
        )
        if picture_side is not None and picture_side < _LEAST_SIDE:
            raise UsageError(
                f"picture_side is {picture_side} pixels, which show nothing.", hint=f"Give at least {_LEAST_SIDE}."
            )
        self._structured, self.concurrency, self._poll = structured, concurrency, poll
        self.picture_side, self.price = picture_side, self._card.get("price")
        self.thoughts = int(self._card.get("thoughts", 0))
        self._most: int | None = None
        self._lock = Lock()
        limits = self._card.get("pictures")
        self.picture_limits = PictureLimits(**limits) if limits else None

    def _picture(self, shown: str) -> dict[str, Any]:
        """Return the part of a message that shows a picture, given as `_shown` returns it."""
        return self._client.picture(shown)

    def _shown(self, png: bytes) -> str:
        """Return a picture as it is sent: its PNG in base64."""
        return b64encode(png).decode("ascii")

    def _sent(self, evidence: Evidence) -> Sequence[bytes]:
        """Return the pictures at the size at which they are sent."""
        side, most = self.picture_side, self._most
        images = evidence.images if side is None else tuple(smaller(png, side) for png in evidence.images)
        return images if most is None or not images else fit_images(images, PictureLimits(request=most))

    def _exchange(self, evidence: Evidence, build: Callable[[bool], Request]) -> RequestOutcome:
        """Make one call; a server that refuses it as too large is sent smaller pictures from then on.

        Raises:
            JudgeError: the account has no credit left, or a replay does not know the call.
        """
        sent = sent_bytes(self._sent(evidence))
        while True:
            try:
                done = self._client.exchange(build)
            except ModelError as error:
                raise JudgeError(error.message) from None
            if not (done.error or "").startswith(_TOO_LARGE) or sent < _LEAST_BYTES:
                return done
            with self._lock:
                self._most = min(sent // 2, self._most if self._most is not None else sent)
            before, sent = sent, sent_bytes(self._sent(evidence))
            if sent >= before:
                return done

    def _evidence(self, evidence: Evidence) -> list[dict[str, Any]]:
        """Return the parts of the message that come first, so that their prefix can be shared: pictures and text."""
        parts: list[dict[str, Any]] = []
        for number, png in enumerate(self._sent(evidence), 1):
            parts += [_text(f"Picture {number}"), self._picture(self._shown(png))]
        return parts if evidence.text is None else [*parts, _text(evidence.text)]

    def _request(self, evidence: Evidence, prompt: JudgePrompt, plain: bool) -> Request:
        asked = [_text(prompt.instruction), _text(question_text(prompt, plain=plain))]
        messages = [{"role": "user", "content": [*self._evidence(evidence), *asked]}]
        return self._client.request(messages, None if plain else prompt.schema, self._card["max_tokens"])

    def _together_request(self, evidence: Evidence, prompts: Sequence[JudgePrompt], plain: bool) -> Request:
        """Return the body of one call that puts several questions."""
        instruction, questions = together_text(prompts, plain=plain)
        asked = [_text(part) for part in (instruction, questions) if part]
        messages = [{"role": "user", "content": [*self._evidence(evidence), *asked]}]
        limit = self._card["max_tokens"] + _ROW_TOKENS * (len(prompts) - 1)
        return self._client.request(messages, None if plain else together_schema(prompts), limit)

    def _plain_request(self, evidence: Evidence, prompt: PlainPrompt) -> Request:
        """Return the body of one call that puts a prompt as it stands."""
        shown = [self._shown(png) for png in self._sent(evidence)]

        def turn(role: str, parts: Sequence[str | int]) -> dict[str, Any]:
            content = [_text(part) if isinstance(part, str) else self._picture(shown[part]) for part in parts]
            return {"role": role, "content": content}

        messages = [{"role": "system", "content": prompt.system}] if prompt.system else []
        for example in prompt.examples:
            messages += [turn("user", example.parts), turn("assistant", (example.answer,))]
        # What a model thinks counts against the limit of its reply.
        limit = prompt.max_tokens + (self._card["max_tokens"] if self.thoughts else 0)
        request = self._client.request([*messages, turn("user", prompt.parts)], None, limit)
        # A model that takes no temperature is asked without one, unless a draw is wanted.
        fixed = self._card.get("temperature") is None and not prompt.temperature
        drawn = {"temperature": None if fixed else prompt.temperature, "top_p": prompt.top_p}
        return {**request, **{name: value for name, value in drawn.items() if value is not None}}

    @property
    def batches(self) -> BatchApi:
        """The vendor's batches: asked within a day, at a lower price."""
        return self._client.batches

    def spec(self) -> Mapping[str, Any]:
        """Return model, endpoint's host, decoding, schema mode and layout; never the key."""
        decoding = {name: self._card.get(name) for name in _DECODING}
        return {
            "name": f"{self.PROVIDER}:{self._vendor.model}",
            "model": self._vendor.model,
            "endpoint": self._vendor.endpoint,
            "decoding": decoding,
            "schema_mode": "native" if self._structured else "plain",
            "layout": LAYOUT,
            **({"picture_side": self.picture_side} if self.picture_side is not None else {}),
        }

    @property
    def amended(self) -> Mapping[str, Any]:  # type: ignore[override]  # it changes by what the server says
        """Return what of `spec` does not hold for calls from now on: the schema mode, once the server has rejected one,
        and the bytes of pictures, once it has found them too many."""
        plain = {"schema_mode": "plain"} if self._client.plain and self._structured else {}
        return plain | ({"picture_bytes": self._most} if self._most is not None else {})

    def require_served(self) -> None:
        """Refuse a model that its vendor has taken away (UsageError); its answers in the cache can still be used."""
        self._vendor.require_served()

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order. May be called from `concurrency` threads and more: calls are paced.

        Raises:
            UsageError: the key or the model is wrong; nothing more is asked.
            JudgeError: the account has no credit left.
        """
        for prompt in prompts:
            done = self._exchange(evidence, partial(self._request, evidence, prompt))
            if done.received is None:
                yield JudgeReply("transport_failed", error=_refusal(done.error), usage=done.usage)
            else:
                yield _reply(done.received, prompt, done.usage, plain=done.plain)

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, from one call; what it took is in the first one's usage.

        Raises:
            UsageError: the key or the model is wrong. JudgeError: the account has no credit left.
        """
        done = self._exchange(evidence, partial(self._together_request, evidence, prompts))
        if done.received is None:
            yield from failed_together(
                JudgeReply("transport_failed", error=_refusal(done.error), usage=done.usage), len(prompts)
            )
        elif done.received.stop is not None:
            yield from failed_together(_halted(done.received, done.usage), len(prompts))
        else:
            yield from parse_together(done.received.text, prompts, done.usage, plain=done.plain)

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order; probabilities come with it where the server gives them.

        Raises:
            UsageError: the key or the model is wrong. JudgeError: the account has no credit left.
        """
        for prompt in prompts:
            try:
                done = self._client.exchange(
                    partial(_as_it_stands, self._plain_request(evidence, prompt)), draw=prompt.sample
                )
            except ModelError as error:
                raise JudgeError(error.message) from None
            if done.received is None:
                yield JudgeReply("transport_failed", error=_refusal(done.error), usage=done.usage)
            else:
                yield _plain_reply(done.received, prompt, done.usage)

    def batch_request(self, evidence: Evidence, prompt: JudgePrompt) -> dict[str, Any]:
        """Return the body of one call for a batch: the same as a call of its own would have."""
        return self._request(evidence, prompt, not self._structured)

    def batch_reply(self, result: BatchResult, prompt: JudgePrompt) -> JudgeReply:
        """Return what a batch brought, at the batch's price; a call that failed in it is `transport_failed`."""
        plain = not self._structured
        if result.body is None:
            usage = self._vendor.usage(None, 0, plain=plain)
            return JudgeReply("transport_failed", error=f"batch: {result.error}", usage=usage | {"batch": True})
        try:
            received = self._client.read_body(result.body)
        except Exception as error:  # pydantic and the SDKs raise many kinds for a body of another shape
            message = f"batch: the reply cannot be read: {type(error).__name__}"
            return JudgeReply("transport_failed", error=message, usage={"batch": True, "cost": None})
        usage = self._vendor.usage(received, 0, plain=plain) | {"batch": True}
        if usage["cost"] is not None:
            usage["cost"] *= self._card["batch"]["price"]
        return _reply(received, prompt, usage, plain=plain)

    @property
    def batch_terms(self) -> Mapping[str, float]:
        """Of one batch: most `requests` and `bytes`, its `price` (a share of the usual), `poll` in seconds."""
        terms: dict[str, float] = dict(self._card["batch"])
        return terms if self._poll is None else terms | {"poll": self._poll}

    def patiently(self, call: Callable[[], T]) -> T:
        """Make `call` through the vendor's SDK, tried again while the server is busy or broken.

        Raises:
            UsageError: the key is wrong. JudgeError: the server stayed broken or refused the call.
        """
        try:
            return self._client.patiently(call)
        except ModelError as error:
            raise JudgeError(error.message) from None
        except Fault as fault:
            raise JudgeError(
                f"{self.PROVIDER} did not take the batch call: {fault.message}", hint="Give the same command again."
            ) from None

    def rest(self, seconds: float) -> None:
        """Wait before the next look at a batch."""
        self._client.backoff.sleep(seconds)

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        self._client.close()


def _refusal(error: str | None) -> str | None:
    """Return what a server refused a call with, and what to do where the pictures were too large for it."""
    large = error is not None and error.startswith(_TOO_LARGE)
    return f"{error}; send smaller pictures: --judge-option picture_side=1024" if large else error


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _as_it_stands(request: Request, plain: bool) -> Request:
    return request


def _plain_reply(received: Received, prompt: PlainPrompt, usage: dict[str, Any]) -> JudgeReply:
    """Return the text as it came; a reply that was cut still has its first token."""
    if prompt.words and received.words is not None:
        usage = {**usage, "probabilities": {word: received.words.get(word, 0.0) for word in prompt.words}}
        if received.stop == "truncated" and received.text.strip():
            return JudgeReply("ok", answer=received.text, raw=received.text, usage=usage)
    if received.stop is not None:
        return _halted(received, usage)
    if not received.text.strip():
        return JudgeReply("unparseable", raw=received.text, error="the reply is empty", usage=usage)
    return JudgeReply("ok", answer=received.text, raw=received.text, usage=usage)


def _halted(received: Received, usage: Mapping[str, Any]) -> JudgeReply:
    """Return what a reply is that its server stopped."""
    assert received.stop is not None
    return JudgeReply(received.stop, raw=received.text[:2_000], error=_STOPPED[received.stop], usage=usage)


def _reply(received: Received, prompt: JudgePrompt, usage: dict[str, Any], *, plain: bool) -> JudgeReply:
    if received.stop is not None:
        return _halted(received, usage)
    return parse_reply(received.text, prompt, usage, plain=plain)
