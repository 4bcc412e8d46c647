"""A vision-language model in memory: how its packets are written, its replies held to a schema, its prefixes shared.

Imported only where torch and transformers are to be loaded.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import attrgetter
from typing import Any, NamedTuple

import torch
from PIL import Image
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from katha.errors import InputFileError, JudgeError, UsageError, first_line
from katha.eval_bridge.packets.instructions import grammar_schema, question_text
from katha.jsonio import sha256_hex
from katha.models.base import neutral
from katha.models.checkpoints import ModelSource, load_pretrained, sound_configuration
from katha.models.local import in_four_bits
from katha.pictures import decode
from katha.protocols import Evidence, JudgePrompt, JudgeReply, PlainPrompt

_KINDS = ("mm_token_type_ids", "token_type_ids")
"""What a processor calls the kind of each id. By the first a model counts positions; by the second Gemma 3 lets the ids
of one picture see each other."""
_SEQUENCES = ("input_ids", "attention_mask", *_KINDS)


@dataclass(frozen=True)
class EncodedPacket:
    """The prompts of one packet as token ids.

    vision: what the processor made of the pictures, tensors by name. pictures_end: how many ids at the start of every
    prompt reach past the last picture; 0 without pictures. kinds: the kind of each of those ids (0 text, 1 picture),
    for models that ask for it, under the name `kinds_name`.
    """

    prompts: tuple[tuple[int, ...], ...]
    vision: Mapping[str, Any]
    pictures_end: int
    kinds: tuple[int, ...] | None
    kinds_name: str

    def only(self, kept: Sequence[bool]) -> EncodedPacket:
        """Return the packet with those prompts alone that are `kept`."""
        return replace(self, prompts=tuple(ids for ids, keep in zip(self.prompts, kept, strict=True) if keep))


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to be asked. stops: ids that end a reply. window: the longest sequence that it reads, in tokens."""

    model: Any
    processor: Any
    device: str
    stops: tuple[int, ...]
    pad: int
    vocabulary: int
    window: int

    @property
    def tokenizer(self) -> Any:
        """The processor's tokenizer."""
        return self.processor.tokenizer

    @property
    def cache_name(self) -> str:
        """Return what the model calls its cache: transformers renamed `past_key_values` to `cache` in 5.24."""
        return "cache" if "cache" in inspect.signature(self.model.forward).parameters else "past_key_values"

    def messages(
        self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool, decoded: bool = True
    ) -> list[dict[str, Any]]:
        """Return one user turn: pictures with their numbers, then the story, the instruction and the question.

        decoded: whether the pictures come with their pixels, which the text of a prompt does not need.
        """
        content: list[dict[str, Any]] = []
        for number, png in enumerate(evidence.images, 1):
            pixels = {"image": _decode(png)} if decoded else {}
            content += [{"type": "text", "text": f"Picture {number}"}, {"type": "image", **pixels}]
        parts = [evidence.text, prompt.instruction, question_text(prompt, plain=plain)]
        words = "\n".join(neutral(part, self.tokenizer) for part in parts if part)
        return [{"role": "user", "content": [*content, {"type": "text", "text": words}]}]

    def try_prompt(self) -> None:
        """Prepare a prompt that is not asked: a template or a processor that is none raises what it raises."""
        shown = [{"type": "image", "image": Image.new("RGB", (64, 64))}, {"type": "text", "text": "x"}]
        self.full_inputs([{"role": "user", "content": shown}])

    def full_inputs(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return tensors of one whole prompt, pictures included, by the processor's own chat template."""
        batch = self.processor.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        return {name: value.to(self.device) for name, value in batch.items()}

    def encode(self, evidence: Evidence, prompts: Sequence[JudgePrompt], *, plain: bool) -> EncodedPacket:
        """Return all prompts of a packet; pictures are prepared once.

        What follows the last picture is tokenised by itself, which is the same because a picture ends with a special
        token; the first prompt is checked against the processor's own ids, and a difference means that each is
        processed whole.
        """
        first = self.full_inputs(self.messages(evidence, prompts[0], plain=plain))
        vision = {name: value for name, value in first.items() if name not in _SEQUENCES}
        whole = tuple(first["input_ids"][0].tolist())
        end = len(whole) - whole[::-1].index(self.model.config.image_token_id) if evidence.images else 0
        named = next((name for name in _KINDS if name in first), "")
        kinds = tuple(first[named][0, :end].tolist()) if named else None
        tails = [self._tail(evidence, prompt, plain=plain) for prompt in prompts] if evidence.images else []
        if tails and whole[end:][-len(tails[0]) :] == tails[0]:
            start = whole[: len(whole) - len(tails[0])]
            return EncodedPacket(tuple(start + tail for tail in tails), vision, end, kinds, named)
        others = [self.full_inputs(self.messages(evidence, prompt, plain=plain)) for prompt in prompts[1:]]
        ids = (whole, *(tuple(inputs["input_ids"][0].tolist()) for inputs in others))
        return EncodedPacket(ids, vision, end, kinds, named)

    def _tail(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> tuple[int, ...]:
        messages = self.messages(evidence, prompt, plain=plain, decoded=False)
        text = self.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        mark = self.processor.image_token
        after = text[text.rindex(mark) + len(mark) :]
        return tuple(self.tokenizer(after, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of generated ids."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def _decode(png: bytes) -> Any:
    return decode(png)


def load_model(source: ModelSource, *, device: str, dtype: str, quantize: str | None = None) -> LoadedModel:
    """Load weights (safetensors only) and processor from the model's folder; nothing is fetched.

    quantize: `nf4` holds the linear layers in 4 bits.

    Raises:
        InputFileError: weights or processor are missing, damaged or of another shape. UsageError: no such device.
        JudgeError: the model does not fit into memory.
    """
    from transformers import AutoModelForImageTextToText, AutoProcessor

    held = in_four_bits(device, dtype) if quantize else {}
    try:
        model, processor = load_pretrained(
            AutoModelForImageTextToText, AutoProcessor, source.folder, source.name, dtype=dtype, **held
        )
    except MemoryError as error:
        raise JudgeError(f"{source.name!r} does not fit into memory.", hint="Use a smaller dtype or model.") from error
    if not getattr(processor, "chat_template", None):
        raise InputFileError(f"{source.name!r} has no chat template.", hint="Use an instruction-tuned model.")
    with sound_configuration(source.name):
        return _ready(model, processor, device, placed=bool(quantize))


def _ready(model: Any, processor: Any, device: str, *, placed: bool) -> LoadedModel:
    """Put the model on its device, unless it is `placed`, and replace its sampling defaults with plain greedy
    decoding."""
    try:
        (model if placed else model.to(device)).eval()
    except torch.OutOfMemoryError as error:
        raise JudgeError(
            f"The judge's model does not fit into the memory of {device!r}.",
            hint="Use a smaller dtype or model, or device=cpu.",
        ) from error
    except (RuntimeError, AssertionError) as error:
        reason = first_line(error)
        raise UsageError(f"The model cannot be put on {device!r}: {reason}", hint="Choose another device.") from error
    given, text = model.generation_config, model.config.get_text_config()
    ends = [processor.tokenizer.eos_token_id, given.eos_token_id if given is not None else None]
    stops = sorted({one for end in ends if end is not None for one in (end if isinstance(end, list) else [end])})
    pad = processor.tokenizer.pad_token_id
    pad = stops[0] if pad is None else pad
    model.generation_config = GenerationConfig(
        do_sample=False, num_beams=1, repetition_penalty=1.0, eos_token_id=stops, pad_token_id=pad, use_cache=True
    )
    return LoadedModel(
        model=model,
        processor=processor,
        device=device,
        stops=tuple(stops),
        pad=pad,
        vocabulary=model.get_output_embeddings().weight.shape[0],
        window=int(text.max_position_embeddings),
    )


# Grammars that hold a local model to a reply's JSON schema: xgrammar's masks over the model's own tokens.


WRITING: Mapping[str, Any] = {"any_whitespace": False, "strict_mode": True}
"""How grammars are compiled. Free white space lets a model write blanks up to the limit."""

_GRAMMAR_CACHE = 1 << 28
"""Bytes of compiled grammars that are kept."""


def grammar_sha256(schema: Mapping[str, Any]) -> str:
    """Return the hash of the schema that a reply's grammar is compiled from."""
    return sha256_hex(_grammar_text(schema).encode("utf-8"))


def _grammar_text(schema: Mapping[str, Any]) -> str:
    return json.dumps(grammar_schema(schema), ensure_ascii=False)  # unsorted: fields are written in this order


class Grammars:
    """Grammars of one tokenizer; the compiler keeps what it has compiled.

    tokenizer: a transformers tokenizer. vocabulary: the width of the model's logits. stops: ids that end a reply.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, stops: Sequence[int]) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary, stop_token_ids=list(stops))
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_limit_bytes=_GRAMMAR_CACHE)

    def processor(self, prompts: Sequence[JudgePrompt]) -> Any:
        """Return a logits processor for one batch, row by row; it serves one `generate` call."""
        from xgrammar.contrib.hf import LogitsProcessor

        texts = [_grammar_text(prompt.schema) for prompt in prompts]
        return LogitsProcessor([self._compiler.compile_json_schema(text, **WRITING) for text in texts])


# Asking a loaded model: the naive way, and with the prefix of a packet's prompts computed once.
#
# The prefix is computed in two fixed steps, up to the end of the last picture and on to where the prompts part, and
# the cache after the first step is kept: the next packet with the same pictures (another condition or prompt variant)
# begins there, with the same numbers as if it had begun anew.


@contextmanager
def _inference() -> Iterator[None]:
    """Run forward passes without gradients; an accelerator that is too small is named."""
    try:
        with torch.inference_mode():
            yield
    except torch.OutOfMemoryError as error:
        raise JudgeError(
            "The packet does not fit into the accelerator's memory.",
            hint="Lower cache_bytes, use reuse='sequential', or a smaller model or dtype.",
        ) from error


def _check_scores(input_ids: Any, scores: Any) -> Any:
    """A logits processor that changes nothing; scores of shape (rows, vocabulary)."""
    if bool(scores.isnan().any()):
        raise JudgeError("The model's numbers are not finite.", hint="Load it with dtype float32 or bfloat16.")
    return scores


class Generated(NamedTuple):
    """One reply's ids, whether the model ended it, and how many ids of its prompt were read and how many reused."""

    ids: tuple[int, ...]
    ended: bool
    read: int
    reused: int


@dataclass(frozen=True)
class Prefix:
    """The cache of `length` ids that several prompts share; `position` is the model's position state after them."""

    ids: tuple[int, ...]
    cache: Any
    position: Any

    @property
    def bytes_per_token(self) -> int:
        """Memory of one id of one row, over all layers."""
        tensors = [tensor for layer in self.cache.layers for tensor in (layer.keys, layer.values)]
        total: int = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return total // max(1, len(self.ids))


@dataclass
class Asker:
    """Generates replies. position_state: see `configs/local.yaml`. cache_bytes: the limit of one batch's caches."""

    loaded: LoadedModel
    grammars: Grammars | None
    position_state: str | None
    max_new_tokens: int
    cache_bytes: int
    _pictures: tuple[str, Prefix] | None = field(default=None, repr=False)

    def naive(self, inputs: Mapping[str, Any], prompt: JudgePrompt) -> Generated:
        """Answer one whole prompt, as `LoadedModel.full_inputs` makes it, with nothing shared."""
        self._set_position(None)
        length = inputs["input_ids"].shape[1]
        return self._generate(dict(inputs), [prompt], [length], 0)[0]

    def shared(
        self, packet: EncodedPacket, prompts: Sequence[JudgePrompt], pictures: str, *, batched: bool
    ) -> Iterator[Generated]:
        """Answer all prompts of a packet; `pictures` is the hash under which the cache of its pictures is kept."""
        prefix, paid = self._prefix(packet, pictures)
        start = len(prefix.ids)
        rows = self._rows(prefix, packet) if batched else 1
        for first in range(0, len(prompts), rows):
            chunk = slice(first, first + rows)
            replies = self._follow(prefix, packet, packet.prompts[chunk], prompts[chunk])
            for place, reply in enumerate(replies, first):
                yield reply if place else reply._replace(reused=start - paid)

    def _rows(self, prefix: Prefix, packet: EncodedPacket) -> int:
        """Return how many questions fit beside the prefix: their own keys and values, and one layer's
        scores (float32)."""
        start = len(prefix.ids)
        own = max(map(len, packet.prompts)) - start
        heads = int(self.loaded.model.config.get_text_config().num_attention_heads)
        row = (own + self.max_new_tokens) * prefix.bytes_per_token + 4 * heads * own * start
        return max(1, (self.cache_bytes - start * prefix.bytes_per_token) // row)

    def _prefix(self, packet: EncodedPacket, pictures: str) -> tuple[Prefix, int]:
        """Return the prefix of all prompts, one id short of the shortest, and how many ids of it were computed now."""
        shortest = min(packet.prompts, key=len)[:-1]
        apart = (place for place, column in enumerate(zip(*packet.prompts, strict=False)) if len(set(column)) > 1)
        common = shortest[: next(apart, len(shortest))]
        end, paid = packet.pictures_end, 0
        start: Prefix | None = None
        if end:
            key = f"{pictures}:{end}"
            if self._pictures is None or self._pictures[0] != key or self._pictures[1].ids != common[:end]:
                self._pictures = None
                self._pictures = (key, self._read(None, common[:end], packet))
                paid = end
            start = self._pictures[1]
            if len(common) == end:
                return start, paid
        return self._read(start, common, packet), paid + len(common) - end

    def _read(self, start: Prefix | None, ids: tuple[int, ...], packet: EncodedPacket) -> Prefix:
        """Run one forward pass over what `ids` adds to `start`."""
        done = len(start.ids) if start is not None else 0
        cache = extend(start.cache) if start is not None else DynamicCache()
        self._set_position(start.position if start is not None else None)
        inputs: dict[str, Any] = {"input_ids": torch.tensor([ids[done:]], device=self.loaded.device)}
        if start is None and packet.pictures_end:
            inputs |= packet.vision
            if packet.kinds is not None:
                inputs[packet.kinds_name] = torch.tensor([packet.kinds], device=self.loaded.device)
        with _inference():
            self.loaded.model(**inputs, **{self.loaded.cache_name: cache}, use_cache=True, logits_to_keep=1)
        return Prefix(ids, cache, self._position())

    def _follow(
        self, prefix: Prefix, packet: EncodedPacket, prompts: Sequence[tuple[int, ...]], asked: Sequence[JudgePrompt]
    ) -> list[Generated]:
        """One batch of questions behind the prefix: ids are prefix, pads, question; the mask is zero on pads."""
        start, rows = len(prefix.ids), len(prompts)
        width = max(map(len, prompts))
        ids = [[*prefix.ids, *[self.loaded.pad] * (width - len(one)), *one[start:]] for one in prompts]
        mask = [[1] * start + [0] * (width - len(one)) + [1] * (len(one) - start) for one in prompts]
        tensors = {"input_ids": ids, "attention_mask": mask}
        if packet.kinds is not None and packet.kinds_name == _KINDS[0]:  # the others are for pictures, read already
            kinds = (*packet.kinds[:start], *[0] * (width - min(start, len(packet.kinds))))
            tensors[packet.kinds_name] = [list(kinds)] * rows
        inputs: dict[str, Any] = {
            name: torch.tensor(value, device=self.loaded.device) for name, value in tensors.items()
        }
        self._set_position(None if prefix.position is None else prefix.position.repeat_interleave(rows, dim=0))
        inputs[self.loaded.cache_name] = follow(prefix.cache)
        return self._generate(inputs, asked, [len(one) for one in prompts], start)

    def _generate(
        self, inputs: dict[str, Any], prompts: Sequence[JudgePrompt], lengths: Sequence[int], reused: int
    ) -> list[Generated]:
        held = [_check_scores] + ([self.grammars.processor(prompts)] if self.grammars is not None else [])
        width = inputs["input_ids"].shape[1]
        with _inference():
            output = self.loaded.model.generate(**inputs, max_new_tokens=self.max_new_tokens, logits_processor=held)
        replies = []
        for row, length in zip(output, lengths, strict=True):
            ids = row[width:].tolist()
            stop = next((place for place, one in enumerate(ids) if one in self.loaded.stops), None)
            replies.append(Generated(tuple(ids[:stop]), stop is not None, length, reused))
        return replies

    def _position(self) -> Any:
        """Return the position state after a forward pass, copied; zero where the model left none (no pictures)."""
        if self.position_state is None:
            return None
        state = attrgetter(self.position_state)(self.loaded.model)
        if state is None:
            return torch.zeros((1, 1), dtype=torch.long, device=self.loaded.device)
        return state.clone()

    def _set_position(self, value: Any) -> None:
        if self.position_state is not None:
            *path, last = self.position_state.split(".")
            setattr(reduce(getattr, path, self.loaded.model), last, value)


# A key-value cache whose beginning all rows of a batch share, and attention over it.
#
# transformers' own batch holds and reads the beginning once a row, which for a long one costs more than the model's
# arithmetic. Here it is there once: the queries of all rows meet it in one product, and each row's own ids
# separately.


_NAME = "katha_shared_prefix"


class SharedStates(NamedTuple):
    """Keys or values. shared: of shape (1, heads, prefix, size); own: of shape (rows, heads, own ids, size)."""

    shared: torch.Tensor
    own: torch.Tensor


class SharedLayer(DynamicLayer):  # type: ignore[misc]
    """What the rows of a batch write behind the keys and values of `shared`, a layer of one row that is only read."""

    def __init__(self, shared: Any) -> None:
        super().__init__()
        self.shared = shared

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Append what is new; the attention gets both parts."""
        keys, values = super().update(key_states, value_states)
        return SharedStates(self.shared.keys, keys), SharedStates(self.shared.values, values)

    def get_seq_length(self) -> int:
        """Return ids so far, shared and own."""
        own: int = super().get_seq_length()
        return own + int(self.shared.keys.shape[-2])


def extend(cache: DynamicCache) -> DynamicCache:
    """Return a cache of one row that goes on from `cache`, which stays as it is."""
    extended = copy.copy(cache)
    extended.layers = [copy.copy(layer) for layer in cache.layers]  # a layer replaces its tensors, never writes in them
    return extended


def follow(cache: DynamicCache) -> DynamicCache:
    """Return a cache for any number of rows that all begin with `cache`; needs `use_shared_attention`."""
    following = copy.copy(cache)
    following.layers = [SharedLayer(layer) for layer in cache.layers]
    return following


def use_shared_attention(model: Any) -> None:
    """Let the language model attend over `follow`'s caches; over every other it attends as before (`sdpa`)."""
    AttentionInterface.register(_NAME, attend)
    AttentionMaskInterface.register(_NAME, shared_mask)
    model.set_attn_implementation({"text_config": _NAME})


def shared_mask(
    *, q_length: int, q_offset: Any, attention_mask: torch.Tensor | None, local_size: int | None = None, **options: Any
) -> torch.Tensor | None:
    """transformers' mask interface: `sdpa`'s own, of shape (rows, 1, ids, all ids), but for rows with pads in a window.

    There transformers counts how far an id is from another by their columns. Behind a shared beginning the pads stand
    between the two, and a window would end too early by as many ids: here pads have no place of their own.
    """
    if local_size is None or attention_mask is None or bool(attention_mask.all()):
        theirs: torch.Tensor | None = sdpa_mask(
            q_length=q_length, q_offset=q_offset, attention_mask=attention_mask, local_size=local_size, **options
        )
        return theirs
    there, columns = attention_mask.bool(), torch.arange(attention_mask.shape[1], device=attention_mask.device)
    places, asking = there.cumsum(-1), columns[q_offset : q_offset + q_length]
    near = places[:, asking, None] - places[:, None, :] < local_size
    return (near & there[:, None, :] & (columns <= asking[:, None]))[:, None]


def attend(
    module: Any, query: torch.Tensor, key: Any, value: Any, attention_mask: torch.Tensor | None, **options: Any
) -> tuple[torch.Tensor, None]:
    """transformers' attention interface. query: of shape (rows, heads, ids, size); the result (rows, ids, heads, size).

    Every id sees the whole shared part, but for a layer with a window, where the mask says how much of its end. Scores
    and their sum are in float32, and one softmax goes over both parts.
    """
    if not isinstance(key, SharedStates):
        result: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return result
    rows, heads, count, size = query.shape
    few = key.own.shape[1]  # several query heads share one head of keys and values
    asked = (query.float() * options["scaling"]).reshape(rows, few, -1, size)
    window = options.get("sliding_window") or key.shared.shape[-2]
    before, values = key.shared[0, :, -window:].float(), value.shared[0, :, -window:].float()
    shared = _together(asked) @ before.mT
    if attention_mask is not None and options.get("sliding_window"):
        ends = attention_mask.shape[-1] - key.own.shape[-2]
        seen = attention_mask[..., ends - before.shape[-2] : ends].expand(rows, heads // few, -1, -1)
        shared = shared.masked_fill_(~seen.reshape(-1, before.shape[-2]), -torch.inf)
    own = (asked @ key.own.float().mT).view(rows, few, heads // few, count, -1)
    if attention_mask is not None:
        own = own.masked_fill(~attention_mask[:, :, None, :, -own.shape[-1] :], -torch.inf)
    own = _together(own.reshape(rows, few, -1, own.shape[-1]))
    top = torch.maximum(shared.amax(-1, keepdim=True), own.amax(-1, keepdim=True))
    shared, own = shared.sub_(top).exp_(), own.sub_(top).exp_()
    total = shared.sum(-1, keepdim=True) + own.sum(-1, keepdim=True)
    found = _apart(shared @ values, rows) + _apart(own, rows) @ value.own.float()
    found = found / _apart(total, rows)
    return found.reshape(rows, heads, count, size).transpose(1, 2).to(query.dtype).contiguous(), None


def _together(tensor: torch.Tensor) -> torch.Tensor:
    """From (rows, heads, n, size) to (heads, rows * n, size)."""
    return tensor.transpose(0, 1).flatten(1, 2)


def _apart(tensor: torch.Tensor, rows: int) -> torch.Tensor:
    """Back from `_together`."""
    return tensor.reshape(tensor.shape[0], rows, -1, tensor.shape[-1]).transpose(0, 1)


def answer_plainly(loaded: LoadedModel, evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
    """Return the reply to one prompt: greedy at temperature 0 (or none), else drawn with the prompt's `sample` as seed.

    A word's probability is that of its first token, alone or after a blank, of the whole vocabulary and before any
    temperature.
    """
    inputs = loaded.full_inputs(_messages(loaded, evidence, prompt))
    length = inputs["input_ids"].shape[1]
    if length + prompt.max_tokens > loaded.window:
        error = f"The prompt is longer than the model's {loaded.window} tokens."
        return JudgeReply("not_asked", error=error)
    drawn: dict[str, object] = {}
    if prompt.temperature:
        drawn = {"do_sample": True, "temperature": prompt.temperature, "top_p": prompt.top_p or 1.0, "top_k": 0}
    devices = [loaded.device] if loaded.device.startswith("cuda") else []
    with torch.inference_mode(), torch.random.fork_rng(devices):
        torch.manual_seed(prompt.sample)
        made = loaded.model.generate(
            **inputs, **drawn, max_new_tokens=prompt.max_tokens, return_dict_in_generate=True, output_logits=True
        )
    ids = made.sequences[0][length:].tolist()
    stop = next((place for place, one in enumerate(ids) if one in loaded.stops), None)
    text = loaded.decode(ids[:stop])
    usage: dict[str, object] = {"tokens": {"input": length, "output": len(ids)}}
    if prompt.words:
        usage["probabilities"] = _probabilities(loaded, made.logits[0][0], prompt.words)
    elif stop is None:
        error = f"the reply did not end within {prompt.max_tokens} tokens"
        return JudgeReply("truncated", raw=text, error=error, usage=usage)
    if not text.strip():
        return JudgeReply("ok" if prompt.words else "unparseable", answer="-", raw=text, usage=usage)
    return JudgeReply("ok", answer=text, raw=text, usage=usage)


def _messages(loaded: LoadedModel, evidence: Evidence, prompt: PlainPrompt) -> list[dict[str, Any]]:
    def turn(role: str, parts: Sequence[str | int]) -> dict[str, Any]:
        content = [
            {"type": "text", "text": neutral(part, loaded.tokenizer)}
            if isinstance(part, str)
            else {"type": "image", "image": decode(evidence.images[part])}
            for part in parts
        ]
        return {"role": role, "content": content}

    messages = [turn("system", (prompt.system,))] if prompt.system else []
    for example in prompt.examples:
        messages += [turn("user", example.parts), turn("assistant", (example.answer,))]
    return [*messages, turn("user", prompt.parts)]


def _probabilities(loaded: LoadedModel, logits: Any, words: Sequence[str]) -> dict[str, float]:
    """Return the probability of each word's first token; words that begin alike share it, so it counts once."""
    shares, taken = torch.softmax(logits.float(), dim=-1), set[int]()
    found: dict[str, float] = {}
    for word in words:
        firsts = {loaded.tokenizer(form, add_special_tokens=False)["input_ids"][0] for form in (word, f" {word}")}
        fresh = firsts - taken
        taken |= fresh
        found[word] = float(sum(shares[one] for one in fresh))
    return found
