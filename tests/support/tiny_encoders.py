"""A word-level BERT of one layer: one taught entailment on a few pairs, one sentence encoder with random weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, BertModel, PreTrainedTokenizerFast

_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def _tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    words = sorted({word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())})
    vocabulary = {word: at for at, word in enumerate([*_SPECIAL, *words])}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _config(words: int, **more: object) -> BertConfig:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    return BertConfig(vocab_size=words, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **sizes, **more)


def save_nli(folder: Path, pairs: Sequence[tuple[str, str, str]], labels: Sequence[str]) -> Path:
    """Fit (premise, hypothesis, label) pairs by heart and save the model; `labels` in the order of its outputs."""
    torch.manual_seed(0)
    tokenizer = _tokenizer([text for premise, hypothesis, _ in pairs for text in (premise, hypothesis)])
    names = dict(enumerate(labels))
    model = BertForSequenceClassification(
        _config(len(tokenizer), id2label=names, label2id={name: at for at, name in names.items()})
    )
    batch = tokenizer([p for p, _, _ in pairs], [h for _, h, _ in pairs], padding=True, return_tensors="pt")
    wanted = torch.tensor([labels.index(label) for _, _, label in pairs])
    optimiser = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(80):
        loss = torch.nn.functional.cross_entropy(model(**batch).logits, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.05
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_encoder(folder: Path, texts: Sequence[str]) -> Path:
    """A sentence encoder with random weights."""
    torch.manual_seed(1)
    tokenizer = _tokenizer(texts)
    BertModel(_config(len(tokenizer)), add_pooling_layer=False).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
