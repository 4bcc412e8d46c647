"""Make english/nearness.npz: for each common English word where it stands among others, from a sentence encoder.

python -m training.text.vectors ENCODER WORDS

ENCODER is a folder with a transformers encoder (sentence-transformers/all-MiniLM-L6-v2), WORDS a text file with one
word a line, the most frequent first (the vocabulary of GloVe's 6B vectors). Each word is embedded by itself; of what
comes out the 64 directions are kept in which the most frequent words differ most.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from spacy.lang.en.stop_words import STOP_WORDS

from katha_sketch.english.words import load_words
from katha_sketch.matching.lemmas import lexicon
from katha_sketch.matching.wordnet import verb_form, wordnet
from katha_sketch.reader.words import load_words as meanings

OUT = Path(__file__).parents[2] / "src" / "katha_sketch" / "english" / "nearness.npz"
KEPT = 30_000
DIRECTIONS = 64
TYPICAL = 6_000  # the words by which directions are found
EVEN = 1e-3  # the share of a text from which on a word is a frequent one
FIRST = 0.1  # by Zipf's law the word of rank n has this share of a text, divided by n
BATCH = 128
RARE = 200_000
ENDINGS = (
    ("s", ""), ("es", ""), ("ies", "y"), ("ves", "f"), ("ves", "fe"), ("men", "man"),
    ("er", ""), ("er", "e"), ("ier", "y"), ("est", ""), ("est", "e"), ("iest", "y"),
)  # fmt: skip
Floats = np.ndarray[Any, np.dtype[np.float32]]


def own_words() -> Iterator[str]:
    """Yield the nouns, verbs and places that the sketch knows, and the words of the reader's tables."""
    known, seen = load_words(), meanings()
    for table in (seen.nouns, seen.places, seen.verbs, seen.moods, seen.by_state):
        yield from (word.replace("_", " ") for word in table)
    yield from known.feelings
    yield from (word.replace("_", " ") for words in known.sets.values() for word in words)


def is_english(word: str) -> bool:
    """Whether WordNet or the reader knows a word, or what it is a form of."""
    senses, nouns, known = wordnet().senses, load_words().sorts, lexicon()
    forms = {word, verb_form(word) or word, known.forms.get(word, word), load_words().lemmas.get(word, word)}
    for ending, instead in ENDINGS:
        if word.endswith(ending):
            stem = word.removesuffix(ending)
            forms |= {stem + instead, stem[:-1]} if stem[-2:-1] == stem[-1:] else {stem + instead}
    return word in STOP_WORDS or any(form in nouns or any((pos, form) in senses for pos in "nvar") for form in forms)


def choose(ranked: Sequence[str], kept: int = KEPT) -> list[str]:
    """Return the words of the table: katha's own, then the most frequent English ones."""
    own = {word for word in own_words() if word and word.replace(" ", "").replace("-", "").isalpha() and word.isascii()}
    found = dict.fromkeys(sorted(own))
    for word in ranked:
        if len(found) >= kept:
            break
        if word.isalpha() and word.isascii() and (len(word) > 1 or word in "ai") and is_english(word):
            found.setdefault(word)
    return sorted(found)


def encode(folder: Path, words: Sequence[str]) -> Floats:
    """Return each word's vector: the mean over its pieces, as long as every other."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    found = []
    for start in range(0, len(words), BATCH):
        batch = tokenizer(list(words[start : start + BATCH]), padding=True, truncation=True, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).float()
        found.append(torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1).numpy())
    return np.concatenate(found)


def directed(vectors: Floats, typical: Floats, directions: int = DIRECTIONS) -> np.ndarray[Any, np.dtype[np.int8]]:
    """Return vectors as small integers along the directions in which the typical ones differ most.

    Each is divided by the root of how much they differ there, or the first few would decide alone.
    """
    middle = typical.mean(axis=0)
    _, spread, axes = np.linalg.svd(typical - middle, full_matrices=False)
    turned = (vectors - middle) @ axes[:directions].T / np.sqrt(spread[:directions])
    largest = np.abs(turned).max(axis=1, keepdims=True)
    whole: np.ndarray[Any, np.dtype[np.int8]] = np.rint(turned / np.maximum(largest, 1e-9) * 127).astype(np.int8)
    return whole


def rarities(words: Sequence[str], ranks: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return how much each word tells, by its rank; a phrase as much as its rarest word."""
    shares = [FIRST / (2 + max(ranks.get(part, RARE) for part in word.replace("-", " ").split())) for word in words]
    return np.array([round(255 * EVEN / (EVEN + share)) for share in shares], dtype=np.uint8)


def main(folder: Path, listed: Path, out: Path = OUT, kept: int = KEPT) -> None:
    """Write the table."""
    ranked = listed.read_text(encoding="utf-8").split()
    words = choose(ranked, kept)
    typical = [word for word in ranked if word.isalpha()][:TYPICAL]
    rows = directed(encode(folder, words), encode(folder, typical))
    text = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
    ranks = {word: rank for rank, word in enumerate(ranked)}
    np.savez(out, words=text, rows=rows, rarities=rarities(words, ranks))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
