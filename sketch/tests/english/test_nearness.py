"""How near words are: the table that ships, and the script that makes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from katha_sketch.english.nearness import rarity, similarity


def test_words_that_mean_much_the_same_are_nearer_than_strangers() -> None:
    for one, two, stranger in [
        ("sofa", "couch", "river"),
        ("puppy", "dog", "cupboard"),
        ("sprint", "run", "bake"),
        ("delighted", "happy", "wooden"),
        ("pavement", "sidewalk", "soup"),
    ]:
        near, far = similarity(one, two), similarity(one, stranger)
        assert near is not None
        assert far is not None
        assert near > far + 0.2, (one, two, stranger)


def test_a_word_is_known_in_capitals_in_its_forms_and_in_a_phrase() -> None:
    assert similarity("Puppies", "puppy") == pytest.approx(similarity("puppies", "puppy"))
    assert (similarity("gnaws", "chew") or 0) > 0.3
    assert similarity("rowing_boat", "rowing boat") == pytest.approx(1)
    assert (similarity("old wooden boat", "boat") or 0) > 0.5


def test_what_nobody_knows_is_near_nothing() -> None:
    assert similarity("qwxzv", "dog") is None


def test_rare_words_tell_more() -> None:
    assert 0 <= rarity("the") < rarity("house") < rarity("fishbone") <= rarity("qwxzv") == 1


def test_the_numbers_are_the_same_everywhere() -> None:
    assert similarity("horse", "pony") == 0.5672077465559097


def test_torch_is_not_imported() -> None:
    code = (
        "import sys\n"
        "from katha_sketch.english.nearness import similarity\n"
        "similarity('a', 'b'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_script_makes_a_table_of_any_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from training.text import vectors

    listed = ["the", "horse", "dog", "run", "gate", "zzyzx"]
    encoder = tmp_path / "encoder"
    encoder.mkdir()
    (encoder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *listed, *"abcdefgh"]))
    transformers.BertTokenizer(str(encoder / "vocab.txt")).save_pretrained(encoder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=32, hidden_size=72, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertModel(config).save_pretrained(encoder)
    (tmp_path / "words.txt").write_text("\n".join(listed))
    monkeypatch.setattr(vectors, "own_words", lambda: iter(["horse", "rowing boat", "it's"]))
    vectors.main(encoder, tmp_path / "words.txt", tmp_path / "made.npz", kept=4)
    with np.load(tmp_path / "made.npz") as made:
        words = made["words"].tobytes().decode().split("\n")
        assert words == ["dog", "horse", "rowing boat", "the"]
        assert made["rows"].dtype == np.int8
        assert made["rows"].shape[0] == len(made["rarities"]) == 4
        assert made["rarities"][words.index("horse")] < made["rarities"][words.index("rowing boat")]
