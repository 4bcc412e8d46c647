"""A vision-language model in memory: its weights, its processor, and the grammar that holds its replies to a schema."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from katha.errors import InputFileError, JudgeError, UsageError, first_line
from katha.eval_bridge.packets.instructions import question_text
from katha.jsonio import sha256_hex
from katha.models.base import neutral
from katha.models.checkpoints import ModelSource
from katha.protocols import Evidence, JudgePrompt

# ---
# A vision-language model in memory: its weights, its processor, and packets turned into token ids.


_SEQUENCES = ("input_ids", "attention_mask", "mm_token_type_ids")


@dataclass(frozen=True)
class EncodedPacket:
    """The prompts of one packet as token ids.

    vision: what the processor made of the pictures, tensors by name. pictures_end: how many ids at the start of every
    prompt reach past the last picture; 0 without pictures. kinds: the kind of each of those ids (0 text, 1 picture),
    for models that ask for it.
    """

    prompts: tuple[tuple[int, ...], ...]
    vision: Mapping[str, Any]
    pictures_end: int
    kinds: tuple[int, ...] | None

    def only(self, kept: Sequence[bool]) -> EncodedPacket:
        """The packet with those prompts alone that are `kept`."""
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

    def messages(
        self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool, decoded: bool = True
    ) -> list[dict[str, Any]]:
        """One user turn: pictures with their numbers, then the story, the instruction and the question.

        decoded: whether the pictures come with their pixels, which the text of a prompt does not need.
        """
        content: list[dict[str, Any]] = []
        for number, png in enumerate(evidence.images, 1):
            pixels = {"image": _decode(png)} if decoded else {}
            content += [_text(f"Picture {number}"), {"type": "image", **pixels}]
        parts = [evidence.text, prompt.instruction, question_text(prompt, plain=plain)]
        words = "\n".join(neutral(part, self.tokenizer) for part in parts if part)
        return [{"role": "user", "content": [*content, _text(words)]}]

    def full_inputs(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Tensors of one whole prompt, pictures included, by the processor's own chat template."""
        batch = self.processor.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        )
        return {name: value.to(self.device) for name, value in batch.items()}

    def encode(self, evidence: Evidence, prompts: Sequence[JudgePrompt], *, plain: bool) -> EncodedPacket:
        """All prompts of a packet; pictures are prepared once.

        What follows the last picture is tokenised by itself, which is the same because a picture ends with a special
        token; the first prompt is checked against the processor's own ids, and a difference means that each is
        processed whole.
        """
        first = self.full_inputs(self.messages(evidence, prompts[0], plain=plain))
        vision = {name: value for name, value in first.items() if name not in _SEQUENCES}
        whole = tuple(first["input_ids"][0].tolist())
        end = len(whole) - whole[::-1].index(self.picture_token) if evidence.images else 0
        kinds = tuple(first["mm_token_type_ids"][0, :end].tolist()) if "mm_token_type_ids" in first else None
        tails = [self._tail(evidence, prompt, plain=plain) for prompt in prompts] if evidence.images else []
        if tails and whole[end:][-len(tails[0]) :] == tails[0]:
            start = whole[: len(whole) - len(tails[0])]
            return EncodedPacket(tuple(start + tail for tail in tails), vision, end, kinds)
        others = [self.full_inputs(self.messages(evidence, prompt, plain=plain)) for prompt in prompts[1:]]
        ids = (whole, *(tuple(inputs["input_ids"][0].tolist()) for inputs in others))
        return EncodedPacket(ids, vision, end, kinds)

    @property
    def picture_token(self) -> int:
        """The id that stands for a piece of a picture."""
        return int(self.model.config.image_token_id)

    def _tail(self, evidence: Evidence, prompt: JudgePrompt, *, plain: bool) -> tuple[int, ...]:
        messages = self.messages(evidence, prompt, plain=plain, decoded=False)
        text = self.processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        mark = self.processor.image_token
        after = text[text.rindex(mark) + len(mark) :]
        return tuple(self.tokenizer(after, add_special_tokens=False)["input_ids"])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of generated ids."""
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _decode(png: bytes) -> Any:
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return image.convert("RGB")


def load_model(source: ModelSource, *, device: str, dtype: str) -> LoadedModel:
    """Load weights (safetensors only) and processor from the model's folder; nothing is fetched.

    Raises:
        InputFileError: weights or processor are missing, damaged or of another shape. UsageError: no such device.
        JudgeError: the model does not fit into memory.
    """
    from transformers import AutoModelForImageTextToText, AutoProcessor

    try:
        processor = AutoProcessor.from_pretrained(source.folder, local_files_only=True)
        model, report = AutoModelForImageTextToText.from_pretrained(
            source.folder, dtype=dtype, local_files_only=True, use_safetensors=True, output_loading_info=True
        )
    except MemoryError as error:
        raise JudgeError(f"{source.name!r} does not fit into memory.", hint="Use a smaller dtype or model.") from error
    except Exception as error:  # from_pretrained raises many kinds, all meaning that these files are no model
        reason = first_line(error)
        raise InputFileError(f"{source.name!r} cannot be loaded: {reason}", hint="Download it again.") from error
    missing = sorted(report["missing_keys"])
    if missing:
        raise InputFileError(
            f"{source.name!r} lacks {len(missing)} weights, the first {missing[0]!r}.", hint="Download it again."
        )
    if not getattr(processor, "chat_template", None):
        raise InputFileError(f"{source.name!r} has no chat template.", hint="Use an instruction-tuned model.")
    return _ready(model, processor, device)


def _ready(model: Any, processor: Any, device: str) -> LoadedModel:
    """Put the model on its device and replace its sampling defaults with plain greedy decoding."""
    from transformers import GenerationConfig

    try:
        model.to(device).eval()
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


# ---
# Grammars that hold a local model to a reply's JSON schema: xgrammar's masks over the model's own tokens.


WRITING: Mapping[str, Any] = {"any_whitespace": False, "strict_mode": True}
"""How grammars are compiled. Free white space lets a model write blanks up to the limit."""

_KEPT = 512
_PHRASE = re.compile(r"\^\[\^(?P<left_out>.*)\]\{(?P<least>\d+),(?P<most>\d+)\}\$")
_LONGEST_REPEAT = 100


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """`schema` with patterns that are safe inside a JSON string, for patterns of the form `^[^...]{least,most}$`.

    xgrammar matches a pattern against the raw bytes between the quotation marks, so a negated class must also leave out
    the quotation mark and the backslash: otherwise a model can close the string early and the reply is not JSON. Its
    compiler fails on repeats of more than 128 (mlc-ai/xgrammar#863), so longer ones are written as several.
    """
    fields = {name: _safe(rule) for name, rule in schema.get("properties", {}).items()}
    return {**schema, "properties": fields}


def _safe(rule: Mapping[str, Any]) -> dict[str, Any]:
    phrase = _PHRASE.fullmatch(str(rule.get("pattern", "")))
    if phrase is None:
        return dict(rule)
    sign = '[^"\\\\' + phrase["left_out"] + "]"
    least, most = int(phrase["least"]), int(phrase["most"])
    repeats = [f"{sign}{{{min(least, _LONGEST_REPEAT)},{min(most, _LONGEST_REPEAT)}}}"]
    for done in range(_LONGEST_REPEAT, most, _LONGEST_REPEAT):
        low, high = (max(0, min(limit - done, _LONGEST_REPEAT)) for limit in (least, most))
        repeats.append(f"{sign}{{{low},{high}}}")
    return {**rule, "pattern": f"^{''.join(repeats)}$"}


def grammar_sha256(schema: Mapping[str, Any]) -> str:
    """The hash of the schema that a reply's grammar is compiled from."""
    return sha256_hex(_grammar_text(schema).encode("utf-8"))


def _grammar_text(schema: Mapping[str, Any]) -> str:
    return json.dumps(grammar_schema(schema), ensure_ascii=False)  # unsorted: fields are written in this order


class Grammars:
    """Compiled grammars of one tokenizer, the latest 512 kept.

    tokenizer: a transformers tokenizer. vocabulary: the width of the model's logits. stops: ids that end a reply.
    """

    def __init__(self, tokenizer: Any, vocabulary: int, stops: Sequence[int]) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary, stop_token_ids=list(stops))
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1)
        self._compiled: dict[str, Any] = {}

    def processor(self, prompts: Sequence[JudgePrompt]) -> Any:
        """A logits processor for one batch, row by row; it serves one `generate` call."""
        from xgrammar.contrib.hf import LogitsProcessor

        return LogitsProcessor([self._compile(prompt.schema) for prompt in prompts])

    def _compile(self, schema: Mapping[str, Any]) -> Any:
        text = _grammar_text(schema)
        if text not in self._compiled:
            if len(self._compiled) >= _KEPT:
                self._compiled.pop(next(iter(self._compiled)))
            self._compiled[text] = self._compiler.compile_json_schema(text, **WRITING)
        return self._compiled[text]
