"""Vision-language models with random weights and a trained tokenizer, as a user has them, and pictures for them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessor,
    Idefics3Processor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
    SmolVLMImageProcessor,
    SmolVLMProcessor,
    SmolVLMVideoProcessor,
)

SIZES = ((60, 40), (40, 60), (48, 48))
STORY = "The mouse bites the net and the lion is free."
TEXT: Mapping[str, int] = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
}
_QWEN_CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ c['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_SMOL_CHAT = (
    "<|im_start|>{% for m in messages %}{{ m['role'] | capitalize }}: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}"
    "{% endfor %}<end_of_utterance>\n{% endfor %}{% if add_generation_prompt %}Assistant:{% endif %}"
)
_QWEN_SPECIAL = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
_SMOL_SPECIAL = [
    "<|im_start|>",
    "<|im_end|>",
    "<end_of_utterance>",
    "<fake_token_around_image>",
    "<image>",
    "<global-img>",
]
_GRID = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
_CORPUS = [
    "You see pictures of a storyboard, in order and numbered from 1. Choose one of the given options. Unclear.",
    "Return only a JSON object of the required form. The lion roars at the mouse; the mouse gnaws the net. Café.",
    '{"answer": "The mouse frees the lion", "confidence": "high"} Question: Options: - Picture',
]


def _tokenizer(special: list[str], end: str) -> PreTrainedTokenizerFast:
    """A byte-level BPE trained on a few sentences; every text can be written with it."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400 + len(special),
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(_CORPUS * 4, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=end, pad_token="<|im_start|>", additional_special_tokens=special
    )


def _qwen(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    tokenizer = _tokenizer(_QWEN_SPECIAL, "<|im_end|>")
    ids = {name: tokenizer.convert_tokens_to_ids(name) for name in _QWEN_SPECIAL}
    sizes = {"patch_size": 8, "temporal_patch_size": 2, "merge_size": 2}
    pixels = {"shortest_edge": 16 * 16, "longest_edge": side * side}
    images = Qwen2VLImageProcessor(size=pixels, **sizes)
    processor = Qwen2_5_VLProcessor(
        images, tokenizer, Qwen2VLVideoProcessor(size=pixels, **sizes), chat_template=_QWEN_CHAT
    )
    heads = text["hidden_size"] // text["num_attention_heads"]
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [heads // 8, heads // 8, heads // 4]}
    config = Qwen2_5_VLConfig(
        text_config={
            **text, "vocab_size": len(tokenizer) + 5, "rope_parameters": rope, "eos_token_id": ids["<|im_end|>"],
            "bos_token_id": None,
        },
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "patch_size": 8, "window_size": 32,
            "out_hidden_size": text["hidden_size"], "fullatt_block_indexes": [1],
        },
        image_token_id=ids["<|image_pad|>"], video_token_id=ids["<|video_pad|>"],
        vision_start_token_id=ids["<|vision_start|>"], vision_end_token_id=ids["<|vision_end|>"],
    )  # fmt: skip
    return Qwen2_5_VLForConditionalGeneration(config), processor


def _vision(text: Mapping[str, Any]) -> dict[str, int]:
    return {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
        "patch_size": 8,
    }  # fmt: skip


def _llama(text: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": 0}
    return {"model_type": "llama", **text, "vocab_size": len(tokenizer) + 3, **ends}


def _smol(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    tokenizer = _tokenizer(_SMOL_SPECIAL + _GRID, "<|im_end|>")
    sizes = {"size": {"longest_edge": side}, "max_image_size": {"longest_edge": 32}}
    processor = SmolVLMProcessor(
        SmolVLMImageProcessor(**sizes),
        tokenizer,
        SmolVLMVideoProcessor(**sizes),
        image_seq_len=4,
        chat_template=_SMOL_CHAT,
    )
    config = SmolVLMConfig(
        text_config=_llama(text, tokenizer),
        vision_config={"model_type": "smolvlm_vision", **_vision(text)},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = SmolVLMForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids("<end_of_utterance>")
    return model, processor


def _idefics(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    tokenizer = _tokenizer(_SMOL_SPECIAL + _GRID, "<|im_end|>")
    images = Idefics3ImageProcessor(
        size={"longest_edge": 32}, max_image_size={"longest_edge": 32}, do_image_splitting=False
    )
    processor = Idefics3Processor(images, tokenizer, image_seq_len=4, chat_template=_SMOL_CHAT)
    config = Idefics3Config(
        text_config=_llama(text, tokenizer),
        vision_config={"model_type": "idefics3_vision", **_vision(text)},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Idefics3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = tokenizer.convert_tokens_to_ids("<end_of_utterance>")
    return model, processor


FAMILIES: Mapping[str, Callable[[Mapping[str, Any], int], tuple[Any, Any]]] = {
    "qwen2_5_vl": _qwen,
    "smolvlm": _smol,
    "idefics3": _idefics,
}


def build(family: str, folder: Path, *, seed: int = 0, side: int = 64, **text: Any) -> Path:
    """Save a model of `family` into `folder`; `text` overrides the language model's sizes.

    side: the bound of a picture's sides in pixels (not for Idefics3). Weights are spread widely, so that different
    prompts lead to different answers.
    """
    torch.manual_seed(seed)
    model, processor = FAMILIES[family]({**TEXT, **text}, side)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.normal_(0.0, 1.5 * parameter[0].numel() ** -0.5)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def pictures(seed: int = 0) -> tuple[bytes, ...]:
    rng, found = np.random.default_rng(seed), []
    for width, height in SIZES:
        buffer = io.BytesIO()
        Image.fromarray(rng.integers(0, 255, (height, width, 3), dtype=np.uint8)).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return tuple(found)
