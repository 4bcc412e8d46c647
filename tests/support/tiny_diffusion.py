"""Diffusion pipelines with random weights and trained tokenizers, saved to disk as a user has them.

FLUX.2 klein and dev and Qwen-Image-Edit have their prompts read by a chat model, some of them with pictures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from diffusers import (
    AutoencoderDC,
    AutoencoderKL,
    AutoencoderKLFlux2,
    AutoencoderKLQwenImage,
    AutoencoderKLWan,
    ChromaPipeline,
    ChromaTransformer2DModel,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    Flux2KleinKVPipeline,
    Flux2KleinPipeline,
    Flux2Pipeline,
    Flux2Transformer2DModel,
    FluxKontextPipeline,
    FluxPipeline,
    FluxTransformer2DModel,
    HiDreamImagePipeline,
    HiDreamImageTransformer2DModel,
    Krea2Pipeline,
    Krea2Transformer2DModel,
    Lumina2Pipeline,
    Lumina2Transformer2DModel,
    QwenImageEditPlusPipeline,
    QwenImagePipeline,
    QwenImageTransformer2DModel,
    SanaPipeline,
    SanaTransformer2DModel,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
    WanImageToVideoPipeline,
    WanPipeline,
    WanTransformer3DModel,
    ZImagePipeline,
    ZImageTransformer2DModel,
)
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    CLIPImageProcessor,
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    CLIPVisionConfig,
    CLIPVisionModel,
    Gemma2Config,
    Gemma2Model,
    LlamaConfig,
    LlamaForCausalLM,
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
    Qwen3VLConfig,
    Qwen3VLModel,
    T5Config,
    T5EncoderModel,
    T5Tokenizer,
    UMT5Config,
    UMT5EncoderModel,
)

_CORPUS = (
    "the lion roars at a small grey mouse in the forest by day and the mouse gnaws the net while the afraid hare "
    "walks past tree number one two three four five, happy; sad. An old woman gives the apple to the crocodile's wife "
    "at night: snow, river, palace! wide shot close-up watercolour"
)
_WORDS = _CORPUS.split()
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


def _clip_tokenizer(pad: str) -> CLIPTokenizer:
    """A byte-level BPE with word ends, as CLIP's; every text can be written with it."""
    inner = Tokenizer(models.BPE(end_of_word_suffix="</w>"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(False)])
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, end_of_word_suffix="</w>", show_progress=False
    )
    inner.train_from_iterator([_CORPUS] * 4, trainer)
    state = json.loads(inner.to_str())["model"]
    pieces = sorted({*state["vocab"], *(f"{letter}</w>" for letter in alphabet)} - {"!"})
    vocab = {piece: number for number, piece in enumerate(["!", *pieces, "<|startoftext|>", "<|endoftext|>"])}
    merges = [tuple(pair) for pair in state["merges"]]
    return CLIPTokenizer(vocab=vocab, merges=merges, pad_token=pad, model_max_length=77)


def _t5_tokenizer() -> T5Tokenizer:
    letters = sorted(
        {letter for word in _WORDS for letter in word} | set("abcdefghijklmnopqrstuvwxyz0123456789.,;:!'-")
    )
    words = sorted({f"▁{word}" for word in _WORDS})
    special = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -5.0)]
    vocab = [*special, *((word, -3.0) for word in words), *((letter, -6.0) for letter in letters)]
    return T5Tokenizer(vocab=vocab, extra_ids=0, model_max_length=512)


def _clip_config(tokenizer: CLIPTokenizer, width: int = 32, positions: int = 77) -> CLIPTextConfig:
    return CLIPTextConfig(
        vocab_size=len(tokenizer), hidden_size=width, intermediate_size=37, num_hidden_layers=3, num_attention_heads=4,
        max_position_embeddings=positions, projection_dim=width, hidden_act="gelu",
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip


def _sdxl() -> StableDiffusionXLPipeline:
    first, second = _clip_tokenizer("<|endoftext|>"), _clip_tokenizer("!")
    unet = UNet2DConditionModel(
        block_out_channels=(16, 32, 32), layers_per_block=1, sample_size=16, in_channels=4, out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4, 4), use_linear_projection=True, addition_embed_type="text_time",
        addition_time_embed_dim=8, transformer_layers_per_block=(1, 1, 2), norm_num_groups=4,
        projection_class_embeddings_input_dim=6 * 8 + 48, cross_attention_dim=80,
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(16, 16), in_channels=3, out_channels=3, norm_num_groups=4, sample_size=32,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4,
    )  # fmt: skip
    scheduler = EulerDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, steps_offset=1, beta_schedule="scaled_linear", timestep_spacing="leading"
    )
    return StableDiffusionXLPipeline(
        vae, CLIPTextModel(_clip_config(first)), CLIPTextModelWithProjection(_clip_config(second, 48)), first, second,
        unet, scheduler, add_watermarker=False,
    )  # fmt: skip


def _flux_parts(guidance: bool) -> dict[str, Any]:
    first, second = _clip_tokenizer("<|endoftext|>"), _t5_tokenizer()
    t5 = T5Config(
        vocab_size=len(second), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, is_encoder_decoder=False,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip
    transformer = FluxTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, pooled_projection_dim=32, axes_dims_rope=(4, 4, 8), guidance_embeds=guidance,
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(8, 8), in_channels=3, out_channels=3, norm_num_groups=4, sample_size=32,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4,
        use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.0609, scaling_factor=1.5035,
    )  # fmt: skip
    return {
        "scheduler": FlowMatchEulerDiscreteScheduler(), "vae": vae, "text_encoder": CLIPTextModel(_clip_config(first)),
        "tokenizer": first, "text_encoder_2": T5EncoderModel(t5), "tokenizer_2": second, "transformer": transformer,
    }  # fmt: skip


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


def _klein(corpus: str, distilled: bool, kv: bool = False) -> Flux2KleinPipeline | Flux2KleinKVPipeline:
    """FLUX.2 klein: the 28 layers of which the pipeline reads three are of width 16."""
    tokenizer = _qwen_tokenizer(corpus, _QWEN_MARKS[:3])
    text = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=28, head_dim=8,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512,
        )
    )  # fmt: skip
    kind = Flux2KleinKVPipeline if kv else Flux2KleinPipeline
    return kind(**_flux2_parts(48, guidance=False), text_encoder=text, tokenizer=tokenizer, is_distilled=distilled)


def _z_image(corpus: str) -> ZImagePipeline:
    """Z-Image: the last layer but one of a two-layer Qwen3 reads the prompt."""
    tokenizer = _qwen_tokenizer(corpus, _QWEN_MARKS[:3])
    text = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer), hidden_size=16, intermediate_size=16, num_hidden_layers=2, head_dim=8,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=512,
        )
    )  # fmt: skip
    transformer = ZImageTransformer2DModel(
        all_patch_size=(2,), all_f_patch_size=(1,), in_channels=16, dim=32, n_layers=2, n_refiner_layers=1, n_heads=2,
        n_kv_heads=2, cap_feat_dim=16, axes_dims=[8, 4, 4], axes_lens=[1536, 512, 512],
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(8, 8), in_channels=3, out_channels=3, norm_num_groups=4, sample_size=32,
        down_block_types=("DownEncoderBlock2D",) * 2, up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=16,
        use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1159, scaling_factor=0.3611,
    )  # fmt: skip
    scheduler = FlowMatchEulerDiscreteScheduler(shift=3.0)
    return ZImagePipeline(scheduler, vae, text, tokenizer, transformer)


def _flux2_dev(corpus: str) -> Flux2Pipeline:
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


def _qwen_edit(corpus: str) -> QwenImageEditPlusPipeline:
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


def _qwen_image(corpus: str) -> QwenImagePipeline:
    """Qwen-Image: the parts of its editing model that read no picture."""
    parts = _qwen_edit(corpus).components
    return QwenImagePipeline(**{name: part for name, part in parts.items() if name != "processor"})


def _sd3() -> StableDiffusion3Pipeline:
    """Stable Diffusion 3: two CLIPs and a T5 read the prompt."""
    parts = _flux_parts(guidance=False)
    first, second, third = _clip_tokenizer("<|endoftext|>"), _clip_tokenizer("!"), _t5_tokenizer()
    t5 = T5Config(
        vocab_size=len(third), d_model=64, d_kv=8, d_ff=37, num_layers=2, num_heads=4, is_encoder_decoder=False,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip
    transformer = SD3Transformer2DModel(
        sample_size=32, patch_size=2, in_channels=4, out_channels=4, num_layers=1, attention_head_dim=8,
        num_attention_heads=4, caption_projection_dim=32, joint_attention_dim=64, pooled_projection_dim=64,
    )  # fmt: skip
    return StableDiffusion3Pipeline(
        transformer=transformer, scheduler=FlowMatchEulerDiscreteScheduler(), vae=parts["vae"],
        text_encoder=CLIPTextModelWithProjection(_clip_config(first)), tokenizer=first,
        text_encoder_2=CLIPTextModelWithProjection(_clip_config(second)), tokenizer_2=second,
        text_encoder_3=T5EncoderModel(t5), tokenizer_3=third,
    )  # fmt: skip


def _plain_tokenizer(side: str) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=_trained(_CORPUS, _MISTRAL_MARKS), bos_token="<s>", eos_token="</s>", unk_token="<unk>",
        pad_token="<pad>", padding_side=side, model_max_length=512,
    )  # fmt: skip


def _gemma() -> dict[str, Any]:
    tokenizer = _plain_tokenizer("right")
    text = Gemma2Config(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=16, num_hidden_layers=2, head_dim=8,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=1024,
    )  # fmt: skip
    return {"tokenizer": tokenizer, "text_encoder": Gemma2Model(text)}


def _lumina2() -> Lumina2Pipeline:
    """Lumina 2: Gemma 2 reads the prompt."""
    transformer = Lumina2Transformer2DModel(
        sample_size=4, patch_size=2, in_channels=4, hidden_size=24, num_layers=1, num_refiner_layers=1,
        num_attention_heads=2, num_kv_heads=1, multiple_of=2, axes_dim_rope=(4, 4, 4), axes_lens=(512, 64, 64),
        cap_feat_dim=8,
    )  # fmt: skip
    vae = AutoencoderKL(
        block_out_channels=(8, 8, 8, 8), in_channels=3, out_channels=3, norm_num_groups=4, sample_size=32,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4,
        use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.0609, scaling_factor=1.5035,
    )  # fmt: skip
    return Lumina2Pipeline(transformer, FlowMatchEulerDiscreteScheduler(), vae, **_gemma())


def _sana() -> SanaPipeline:
    """Sana: Gemma 2 reads the prompt, a deep-compression decoder makes the picture."""
    transformer = SanaTransformer2DModel(
        patch_size=1, in_channels=4, out_channels=4, num_layers=1, num_attention_heads=2, attention_head_dim=4,
        num_cross_attention_heads=2, cross_attention_head_dim=4, cross_attention_dim=8, caption_channels=8,
        sample_size=32,
    )  # fmt: skip
    vae = AutoencoderDC(
        in_channels=3, latent_channels=4, attention_head_dim=2, encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"), encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)),
        encoder_layers_per_block=(1, 1), decoder_layers_per_block=(1, 1), downsample_block_type="conv",
        upsample_block_type="interpolate", decoder_norm_types="rms_norm", decoder_act_fns="silu",
        scaling_factor=0.41407,
    )  # fmt: skip
    scheduler = DPMSolverMultistepScheduler(
        use_flow_sigmas=True, prediction_type="flow_prediction", flow_shift=3.0, algorithm_type="dpmsolver++"
    )
    return SanaPipeline(**_gemma(), vae=vae, transformer=transformer, scheduler=scheduler)


def _chroma() -> ChromaPipeline:
    """Chroma: T5 alone reads the prompt."""
    parts = _flux_parts(guidance=False)
    transformer = ChromaTransformer2DModel(
        patch_size=1, in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=16, num_attention_heads=2,
        joint_attention_dim=32, axes_dims_rope=(4, 4, 8), approximator_hidden_dim=32, approximator_layers=1,
        approximator_num_channels=16,
    )  # fmt: skip
    return ChromaPipeline(parts["scheduler"], parts["vae"], parts["text_encoder_2"], parts["tokenizer_2"], transformer)


def _hidream() -> HiDreamImagePipeline:
    """HiDream: two CLIPs, a T5 and a Llama read the prompt."""
    parts = _flux_parts(guidance=False)
    first, second, fourth = _clip_tokenizer("<|endoftext|>"), _clip_tokenizer("!"), _plain_tokenizer("right")
    llama = LlamaConfig(
        vocab_size=len(fourth), hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, max_position_embeddings=512,
    )  # fmt: skip
    transformer = HiDreamImageTransformer2DModel(
        patch_size=2, in_channels=4, out_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=8,
        num_attention_heads=4, caption_channels=[32, 16], text_emb_dim=64, num_routed_experts=4,
        num_activated_experts=2, axes_dims_rope=(4, 2, 2), max_resolution=(32, 32), llama_layers=(0, 1),
    )  # fmt: skip
    return HiDreamImagePipeline(
        scheduler=parts["scheduler"], vae=parts["vae"],
        text_encoder=CLIPTextModelWithProjection(_clip_config(first, positions=248)), tokenizer=first,
        text_encoder_2=CLIPTextModelWithProjection(_clip_config(second, positions=248)), tokenizer_2=second,
        text_encoder_3=parts["text_encoder_2"], tokenizer_3=parts["tokenizer_2"],
        text_encoder_4=LlamaForCausalLM(llama), tokenizer_4=fourth, transformer=transformer,
    )  # fmt: skip


def _krea2(corpus: str) -> Krea2Pipeline:
    """Krea 2: two layers' hidden states of a Qwen3-VL are fused."""
    tokenizer = _qwen_tokenizer(corpus, _QWEN_MARKS)
    config = Qwen3VLConfig(
        text_config={
            "vocab_size": len(tokenizer), "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 1024,
            "rope_scaling": {"mrope_section": [2, 1, 1], "rope_type": "default", "mrope_interleaved": True},
        },
        vision_config={"depth": 1, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16,
                       "deepstack_visual_indexes": [0], "num_position_embeddings": 16},
    )  # fmt: skip
    transformer = Krea2Transformer2DModel(
        in_channels=16, num_layers=1, attention_head_dim=16, num_attention_heads=2, num_key_value_heads=1,
        intermediate_size=32, timestep_embed_dim=32, text_hidden_dim=16, num_text_layers=2, text_num_attention_heads=2,
        text_num_key_value_heads=2, text_intermediate_size=32, num_layerwise_text_blocks=1, num_refiner_text_blocks=1,
        axes_dims_rope=(4, 6, 6),
    )  # fmt: skip
    vae = _qwen_edit(corpus).vae
    return Krea2Pipeline(
        FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True), vae, Qwen3VLModel(config), tokenizer, transformer,
        text_encoder_select_layers=(1, 2),
    )  # fmt: skip


def _wan_parts(pictures: bool) -> dict[str, Any]:
    """Wan 2.1: UMT5 reads the prompt; image to video reads both pictures by a CLIP, too."""
    tokenizer = _t5_tokenizer()
    text = UMT5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, is_encoder_decoder=False,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip
    transformer = WanTransformer3DModel(
        patch_size=(1, 2, 2), num_attention_heads=2, attention_head_dim=12, in_channels=36 if pictures else 16,
        out_channels=16, text_dim=32, freq_dim=256, ffn_dim=32, num_layers=2, cross_attn_norm=True,
        qk_norm="rms_norm_across_heads", rope_max_seq_len=32, image_dim=16 if pictures else None,
        added_kv_proj_dim=24 if pictures else None, pos_embed_seq_len=2 * 17 if pictures else None,
    )  # fmt: skip
    vae = AutoencoderKLWan(base_dim=4, z_dim=16, dim_mult=[1, 1, 1, 1], num_res_blocks=1)
    return {
        "tokenizer": tokenizer, "text_encoder": UMT5EncoderModel(text), "vae": vae, "transformer": transformer,
        "scheduler": FlowMatchEulerDiscreteScheduler(shift=5.0),
    }  # fmt: skip


def _wan_between() -> WanImageToVideoPipeline:
    """Wan 2.1 of first and last picture."""
    eye = CLIPVisionConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8
    )
    return WanImageToVideoPipeline(
        **_wan_parts(pictures=True), image_encoder=CLIPVisionModel(eye),
        image_processor=CLIPImageProcessor(size=32, crop_size=32),
    )  # fmt: skip


FAMILIES: Mapping[str, Callable[[], Any]] = {
    "sdxl": _sdxl,
    "flux": lambda: FluxPipeline(**_flux_parts(guidance=True)),
    "schnell": lambda: FluxPipeline(**_flux_parts(guidance=False)),
    "klein": lambda: _klein(_CORPUS, distilled=True),
    "klein-base": lambda: _klein(_CORPUS, distilled=False),
    "klein-kv": lambda: _klein(_CORPUS, distilled=True, kv=True),
    "z-image": lambda: _z_image(_CORPUS),
    "flux2-dev": lambda: _flux2_dev(_CORPUS),
    "kontext": lambda: FluxKontextPipeline(**_flux_parts(guidance=True)),
    "qwen-edit": lambda: _qwen_edit(_CORPUS),
    "qwen-image": lambda: _qwen_image(_CORPUS),
    "sd3": _sd3,
    "chroma": _chroma,
    "hidream": _hidream,
    "krea2": lambda: _krea2(_CORPUS),
    "lumina2": _lumina2,
    "sana": _sana,
    "wan": lambda: WanPipeline(**_wan_parts(pictures=False)),
    "wan-between": _wan_between,
}


def _spread(pipe: Any) -> None:
    """Weights wide enough that different prompts lead to different pictures."""
    for part in pipe.components.values():
        if isinstance(part, torch.nn.Module):
            for parameter in part.parameters():
                if parameter.ndim > 1:
                    parameter.data.normal_(0.0, 1.2 * parameter[0].numel() ** -0.5)


def build(family: str, folder: Path, *, seed: int = 0) -> Path:
    """Save a pipeline of `family` into `folder`; torch's global generator is as it was before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        pipe = FAMILIES[family]()
        _spread(pipe)
    pipe.save_pretrained(folder)
    return folder


def save_lora(pipe: Any, part: str, file: Path, *, targets: list[str], rank: int = 2, seed: int = 1) -> Path:
    """A LoRA of random weights for `part` ("unet" or "transformer") of `pipe`, in the format diffusers writes."""
    from peft import LoraConfig, get_peft_model_state_dict

    model = getattr(pipe, part)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.add_adapter(LoraConfig(r=rank, lora_alpha=rank, target_modules=targets, init_lora_weights=False))
    layers = get_peft_model_state_dict(model)
    pipe.save_lora_weights(file.parent, **{f"{part}_lora_layers": layers}, weight_name=file.name)
    model.delete_adapters("default")
    return file


def shrink(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures that the pipeline of Qwen-Image scales to a million pixels have 64x64 here."""
    monkeypatch.setattr("diffusers.pipelines.qwenimage.pipeline_qwenimage_edit_plus.VAE_IMAGE_SIZE", 64 * 64)
