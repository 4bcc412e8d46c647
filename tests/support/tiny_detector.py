"""A Grounding DINO of transformers at toy size with random weights, in a folder as the hub has them."""

from __future__ import annotations

from pathlib import Path


def tiny_grounding_dino(folder: Path) -> str:
    """Write model, tokenizer and image processor into `folder`; return its path."""
    import torch
    from transformers import (
        BertConfig,
        BertTokenizerFast,
        GroundingDinoConfig,
        GroundingDinoForObjectDetection,
        GroundingDinoImageProcessor,
        GroundingDinoProcessor,
        SwinConfig,
    )

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "?", "character", "fox"]
    (folder / "vocab.txt").write_text("\n".join(words))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"))
    config = GroundingDinoConfig(
        backbone_config=SwinConfig(
            image_size=128,
            patch_size=4,
            embed_dim=8,
            depths=[1, 1, 1, 1],
            num_heads=[1, 1, 1, 1],
            window_size=4,
            out_features=["stage2", "stage3", "stage4"],
        ),
        text_config=BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
        ),
        d_model=32,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=6,
        max_text_len=16,
        num_feature_levels=4,
    )
    torch.manual_seed(3)
    GroundingDinoForObjectDetection(config).save_pretrained(folder)
    size = {"height": 128, "width": 128}
    GroundingDinoProcessor(GroundingDinoImageProcessor(size=size, do_pad=False), tokenizer).save_pretrained(folder)
    return str(folder)
