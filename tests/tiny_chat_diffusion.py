"""Toy pipelines whose prompts a chat model reads, some of them with pictures: FLUX.2 klein and dev, Qwen-Image-Edit."""

from __future__ import annotations

import json
from typing import Any

from diffusers import (
    AutoencoderKLFlux2,
    AutoencoderKLQwenImage,
    FlowMatchEulerDiscreteScheduler,
    Flux2KleinPipeline,
    Flux2Pipeline,
    Flux2Transformer2DModel,
    QwenImageEditPlusPipeline,
    QwenImageTransformer2DModel,
)
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import (
    Mistral3Config,
    Mistral3ForConditionalGeneration,
    PixtralImageProcessor,
    PixtralProcessor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen2VLProcessor,
    Qwen2VLVideoProcessor,
    Qwen3Config,
    Qwen3ForCausalLM,
)

__all__ = ["flux2_dev", "klein", "qwen_edit"]

_TURNS = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}assistant\n"
_PARTS = (
    "{{ bos_token }}{% for m in messages %}[INST]{% for part in m['content'] %}{{ part['text'] }}{% endfor %}[/INST]"
    "{% endfor %}"
)
_QWEN_MARKS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
    "<|video_pad|>",
]  # fmt: skip
_MISTRAL_MARKS = ["<unk>", "<s>", "</s>", "<pad>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"]


def _trained(corpus: str, marks: list[str]) -> Tokenizer:
    """A byte-level BPE, as both vendors use; every text can be written with it."""
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.train_from_iterator(
        [corpus] * 4,
        trainers.BpeTrainer(
            vocab_size=400, special_tokens=marks, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )  # fmt: skip
    return inner


def _qwen_tokenizer(corpus: str, marks: list[str]) -> Qwen2Tokenizer:
    state = json.loads(_trained(corpus, marks).to_str())["model"]
    return Qwen2Tokenizer(
        vocab=state["vocab"], merges=[tuple(pair) for pair in state["merges"]],
        additional_special_tokens=marks[1:], chat_template=_TURNS, model_max_length=4096,
    )  # fmt: skip


def _flux2_parts(joint: int, guidance: bool) -> dict[str, Any]:
    transformer = Flux2Transformer2DModel(
        in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=joint, timestep_guidance_channels=32, axes_dims_rope=(4, 4, 4, 4),
        guidance_embeds=guidance,
    )  # fmt: skip
    vae = AutoencoderKLFlux2(
        block_out_channels=(8, 8), norm_num_groups=4, latent_channels=4, sample_size=32, layers_per_block=1,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2,
    )  # fmt: skip
    scheduler = FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True)
    return {"scheduler": scheduler, "vae": vae, "transformer": transformer}


def klein(corpus: str, distilled: bool) -> Flux2KleinPipeline:
    """FLUX.2 klein: the 28 layers of which the pipeline reads three are of width 16."""
    tokenizer = _qwen_tokenizer(corpus, _QWEN_MARKS[:3])
    text = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=28, head_dim=8,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512,
        )
    )  # fmt: skip
    return Flux2KleinPipeline(
        **_flux2_parts(48, guidance=False), text_encoder=text, tokenizer=tokenizer, is_distilled=distilled
    )


def flux2_dev(corpus: str) -> Flux2Pipeline:
    """FLUX.2 dev: the 30 layers of which the pipeline reads three are of width 16."""
    inner = _trained(corpus, _MISTRAL_MARKS)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>",
        additional_special_tokens=_MISTRAL_MARKS[4:], padding_side="left", model_max_length=512,
    )  # fmt: skip
    processor = PixtralProcessor(PixtralImageProcessor(), tokenizer, patch_size=6, chat_template=_PARTS)
    text = {
        "model_type": "mistral", "vocab_size": len(tokenizer), "hidden_size": 16, "intermediate_size": 16,
        "num_hidden_layers": 30, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8,
        "max_position_embeddings": 512,
    }  # fmt: skip
    vision = {
        "model_type": "pixtral", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "image_size": 30, "patch_size": 6,
    }  # fmt: skip
    config = Mistral3Config(
        text_config=text, vision_config=vision, image_token_index=tokenizer.convert_tokens_to_ids("[IMG]")
    )
    return Flux2Pipeline(
        **_flux2_parts(48, guidance=True), text_encoder=Mistral3ForConditionalGeneration(config), tokenizer=processor
    )


def qwen_edit(corpus: str) -> QwenImageEditPlusPipeline:
    """Qwen-Image-Edit-Plus: prompt and pictures are read together by a two-layer Qwen2.5-VL."""
    tokenizer = _qwen_tokenizer(corpus, _QWEN_MARKS)
    processor = Qwen2VLProcessor(Qwen2VLImageProcessor(), tokenizer, Qwen2VLVideoProcessor(), chat_template=_TURNS)
    ids = {name: tokenizer.convert_tokens_to_ids(f"<|{name}|>") for name in ("vision_start", "vision_end")}
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 4096,
            "rope_scaling": {"mrope_section": [1, 1, 2], "rope_type": "default", "type": "default"},
            "bos_token_id": None, "eos_token_id": 0,
        },
        vision_config={"depth": 2, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16,
                       "fullatt_block_indexes": [1]},
        image_token_id=tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        vision_start_token_id=ids["vision_start"], vision_end_token_id=ids["vision_end"],
    )  # fmt: skip
    transformer = QwenImageTransformer2DModel(
        patch_size=2, in_channels=16, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=16, axes_dims_rope=(8, 4, 4),
    )  # fmt: skip
    vae = AutoencoderKLQwenImage(
        base_dim=8, z_dim=4, dim_mult=[1, 2, 2], num_res_blocks=1, temperal_downsample=[False, True],
        latents_mean=[0.0] * 4, latents_std=[1.0] * 4,
    )  # fmt: skip
    return QwenImageEditPlusPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True), vae=vae,
        text_encoder=Qwen2_5_VLForConditionalGeneration(config), tokenizer=tokenizer, processor=processor,
        transformer=transformer,
    )  # fmt: skip
