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
    CLIPImageProcessor,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3ImageProcessor,
    Gemma3Processor,
    GotOcr2ImageProcessor,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3ImageProcessor,
    Idefics3Processor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    InternVLProcessor,
    InternVLVideoProcessor,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaNextConfig,
    LlavaNextForConditionalGeneration,
    LlavaNextImageProcessor,
    LlavaNextProcessor,
    LlavaProcessor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    Qwen3VLProcessor,
    Qwen3VLVideoProcessor,
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
_LLAVA_CHAT = (
    "{% for m in messages %}{{ m['role'] | upper }}: {% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<image>{% else %}{{ c['text'] }}{% endif %}"
    "{% endfor %}</s>{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
)
_INTERN_CHAT = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<IMG_CONTEXT>\n{% else %}{{ c['text'] }}{% endif %}"
    "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_INTERN_SPECIAL = {
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "context_image_token": "<IMG_CONTEXT>",
    "video_token": "<video>",
}
_GEMMA_CHAT = (
    "<bos>{% for m in messages %}<start_of_turn>{{ m['role'] }}\n{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}<start_of_image>{% else %}{{ c['text'] | trim }}{% endif %}"
    "{% endfor %}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
_GEMMA_SPECIAL = {
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
}
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
        tokenizer_object=inner, eos_token=end, pad_token=special[0], additional_special_tokens=special
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


def _qwen2(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    model, processor = _qwen(text, side)
    older = Qwen2VLProcessor(
        processor.image_processor, processor.tokenizer, processor.video_processor, chat_template=_QWEN_CHAT
    )
    given = model.config
    config = Qwen2VLConfig(
        text_config={**given.text_config.to_dict(), "model_type": "qwen2_vl_text"},
        vision_config={"depth": 2, "embed_dim": 32, "num_heads": 2, "patch_size": 8, "mlp_ratio": 2,
                       "hidden_size": text["hidden_size"]},
        image_token_id=given.image_token_id, video_token_id=given.video_token_id,
        vision_start_token_id=given.vision_start_token_id, vision_end_token_id=given.vision_end_token_id,
    )  # fmt: skip
    return Qwen2VLForConditionalGeneration(config), older


def _qwen3(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    model, processor = _qwen(text, side)
    pixels = {"shortest_edge": 16 * 16, "longest_edge": side * side}
    videos = Qwen3VLVideoProcessor(size=pixels, patch_size=8, temporal_patch_size=2, merge_size=2)
    newer = Qwen3VLProcessor(processor.image_processor, processor.tokenizer, videos, chat_template=_QWEN_CHAT)
    given = model.config
    size = text["hidden_size"] // text["num_attention_heads"]
    rope = {**given.text_config.rope_parameters, "mrope_interleaved": True}
    config = Qwen3VLConfig(
        text_config={**text, "vocab_size": given.text_config.vocab_size, "head_dim": size, "rope_parameters": rope,
                     "eos_token_id": given.text_config.eos_token_id, "bos_token_id": None},
        vision_config={"depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "patch_size": 8,
                       "out_hidden_size": text["hidden_size"], "deepstack_visual_indexes": [0],
                       "num_position_embeddings": 64},
        image_token_id=given.image_token_id, video_token_id=given.video_token_id,
        vision_start_token_id=given.vision_start_token_id, vision_end_token_id=given.vision_end_token_id,
    )  # fmt: skip
    return Qwen3VLForConditionalGeneration(config), newer


def _intern(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    special = [*_QWEN_SPECIAL, *_INTERN_SPECIAL.values()]
    trained = _tokenizer(special, "<|im_end|>")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained.backend_tokenizer, eos_token="<|im_end|>", pad_token="<|im_start|>",
        extra_special_tokens=dict(_INTERN_SPECIAL),
    )  # fmt: skip
    images = GotOcr2ImageProcessor(size={"height": 32, "width": 32}, crop_to_patches=False)
    videos = InternVLVideoProcessor(size={"height": 32, "width": 32})
    processor = InternVLProcessor(images, tokenizer, videos, image_seq_length=4, chat_template=_INTERN_CHAT)
    config = InternVLConfig(
        text_config={"model_type": "qwen2", **text, "vocab_size": len(tokenizer) + 3, "bos_token_id": None,
                     "eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id},
        vision_config={"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2,
                       "image_size": [32, 32], "patch_size": [8, 8]},
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"), image_seq_length=4, downsample_ratio=0.5,
    )  # fmt: skip
    return InternVLForConditionalGeneration(config), processor


def _gemma(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    """Layers with a window and without one in turn, as Gemma 3 has them; the window ends within a question."""
    special = ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>", *_GEMMA_SPECIAL.values()]
    trained = _tokenizer(special, "<eos>")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained.backend_tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>",
        extra_special_tokens=dict(_GEMMA_SPECIAL),
    )  # fmt: skip
    images = Gemma3ImageProcessor(size={"height": 32, "width": 32})
    processor = Gemma3Processor(images, tokenizer, chat_template=_GEMMA_CHAT, image_seq_length=4)
    ends = {"eos_token_id": tokenizer.eos_token_id, "pad_token_id": tokenizer.pad_token_id,
            "bos_token_id": tokenizer.bos_token_id}  # fmt: skip
    config = Gemma3Config(
        text_config={"sliding_window": 9, "layer_types": ["sliding_attention", "full_attention"],
                     "query_pre_attn_scalar": 1, **text, **ends,
                     "vocab_size": len(tokenizer) + 3, "head_dim": text["hidden_size"] // text["num_attention_heads"]},
        vision_config=_vision(text), mm_tokens_per_image=4,
        image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"),
    )  # fmt: skip
    model = Gemma3ForConditionalGeneration(config)
    model.generation_config.eos_token_id = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("<end_of_turn>")]
    return model, processor


def _clip(text: Mapping[str, Any]) -> dict[str, Any]:
    return {"model_type": "clip_vision_model", **_vision(text), "projection_dim": 16}


def _llava(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    tokenizer = _tokenizer(["<s>", "</s>", "<image>"], "</s>")
    images = CLIPImageProcessor(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor = LlavaProcessor(
        images, tokenizer, patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        chat_template=_LLAVA_CHAT,
    )  # fmt: skip
    tokenizer.pad_token = "<s>"
    config = LlavaConfig(
        text_config=_llama(text, tokenizer), vision_config=_clip(text), vision_feature_layer=-2,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"), image_seq_length=16,
    )  # fmt: skip
    return LlavaForConditionalGeneration(config), processor


def _llava_next(text: Mapping[str, Any], side: int) -> tuple[Any, Any]:
    tokenizer = _tokenizer(["<s>", "</s>", "<image>"], "</s>")
    tokenizer.pad_token = "<s>"
    grid = [[32, 64], [64, 32], [64, 64]]
    images = LlavaNextImageProcessor(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}, image_grid_pinpoints=grid
    )
    processor = LlavaNextProcessor(
        images, tokenizer, patch_size=8, vision_feature_select_strategy="default", num_additional_image_tokens=1,
        chat_template=_LLAVA_CHAT,
    )  # fmt: skip
    config = LlavaNextConfig(
        text_config=_llama(text, tokenizer), vision_config=_clip(text), vision_feature_layer=-2,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"), image_grid_pinpoints=grid,
    )  # fmt: skip
    return LlavaNextForConditionalGeneration(config), processor


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
    "qwen2_vl": _qwen2,
    "qwen3_vl": _qwen3,
    "internvl": _intern,
    "llava": _llava,
    "llava_next": _llava_next,
    "gemma3": _gemma,
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
