"""A Gemma 3 with random weights, two layers and a trained tokenizer, saved to disk as a user has it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    Gemma3Config,
    Gemma3ForCausalLM,
    Gemma3ForConditionalGeneration,
    Gemma3TextConfig,
    PreTrainedTokenizerFast,
)

_SPECIAL = [
    "<pad>",
    "<eos>",
    "<bos>",
    "<unk>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<start_of_image>",
    "<image_soft_token>",
]
_CHAT = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>{{ 'model' if m['role'] == 'assistant' else m['role'] }}\n"
    "{{ m['content'] }}<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)


def _tokenizer(texts: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """A byte-level BPE trained on `texts`; every text can be written with it."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=_SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    inner.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>",
        additional_special_tokens=_SPECIAL[4:], chat_template=_CHAT,
    )  # fmt: skip


def build_gemma(folder: Path, texts: Iterable[str], *, pictures: bool = False, seed: int = 0, size: int = 1200,
                hidden: int = 64) -> Path:  # fmt: skip
    """Save a model into `folder`; `pictures` makes it the class of the checkpoints that also see (4B and up)."""
    torch.manual_seed(seed)
    tokenizer = _tokenizer(texts, size)
    ends: dict[str, Any] = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": tokenizer.bos_token_id,
                            "pad_token_id": tokenizer.pad_token_id}  # fmt: skip
    text = {
        "vocab_size": len(tokenizer), "hidden_size": hidden, "intermediate_size": 2 * hidden, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 8192,
        "sliding_window": 512, "layer_types": ["sliding_attention", "full_attention"], **ends,
    }  # fmt: skip
    if pictures:
        sight = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
                 "image_size": 28, "patch_size": 14}  # fmt: skip
        model: Any = Gemma3ForConditionalGeneration(
            Gemma3Config(text_config=text, vision_config=sight, mm_tokens_per_image=4, **ends,
                         image_token_index=tokenizer.convert_tokens_to_ids("<image_soft_token>"))
        )  # fmt: skip
    else:
        model = Gemma3ForCausalLM(Gemma3TextConfig(**text))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
