"""What words mean where they stand: the shipped network on short stories, and the training of a toy one."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from katha_sketch.english import Reading, context, read_story
from katha_sketch.english.context import Context, Spot, apart, kind_of, near, pieces

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "play", "##ed", "cafe", "it", ".", "she", "the", "drum", "ann", "a"]
STORY = """# The Drum
cast: Ann=girl; owl=owl
Ann found a drum. ## attic ## Ann ## drum
The owl blinked. ## attic ## owl, Ann ## +drum
She played it. ## attic ## Ann, owl ## it=drum
It was noon. ## - ## - ##
"""


def meant(reading: Reading, sentence: int, verb: str, role: str) -> str:
    (event,) = [one for one in reading.of(sentence) if one.verb == verb]
    return reading.entity(event.who(role)[0]).noun  # type: ignore[arg-type]


def test_words_are_cut_into_the_pieces_of_the_vocabulary() -> None:
    known = {word: at for at, word in enumerate(WORDS)}
    found, starts = pieces("She played Caf\u00e9.", known)
    assert [WORDS[at] for at in found] == ["she", "play", "##ed", "cafe", "."]
    assert starts == [0, 4, 4, 11, 15]
    assert pieces("xyz", known) == ([known["[UNK]"]], [0])
    assert pieces("a" * 101 + " it", known) == ([known["[UNK]"], known["it"]], [0, 102])


def test_distances_and_kinds_have_their_classes() -> None:
    assert [near(one) for one in (-1, 0, 8, 30)] == [0, 0, 8, 8]
    assert [apart(one) for one in (1, 9, 10, 15, 16, 32)] == [1, 9, 10, 10, 11, 12]
    assert [kind_of("he", named=False), kind_of("myself", named=False)] == [1, 8]
    assert [kind_of("", named=True), kind_of("", named=False)] == [9, 0]


def test_what_is_only_likened_or_beside_is_not_what_it_means() -> None:
    story = (
        "He hung his accordion on a nail. My mother dusted round the thing as though it were a sleeping dog. "
        "I was twelve when I took it down. I carried it to the hayloft."
    )
    assert meant(read_story(story), 3, "carry", "patient") == "accordion"


def test_a_picture_shows_what_its_sentence_does_not_name() -> None:
    reading = read_story("Kwame opened the matchbox on his desk. The snail in it crawled out. Kwame laughed at it.")
    names = {one.id: one.noun or one.name for one in reading.entities}
    seen = {names[key]: share for key, share in reading.sentences[2].seen.items()}
    assert seen["snail"] > 0.5 > seen.get("desk", 0.0)
    assert all(0 <= share <= 1 for one in reading.sentences for share in one.seen.values())
    assert "snail" not in {names[key] for key in reading.sentences[0].seen}


def test_a_long_text_is_read_window_by_window() -> None:
    text = " ".join(f"Ann saw the owl number {at}. It flew." for at in range(60))
    ends = [at + 1 for at, letter in enumerate(text) if letter == "."]
    spans = list(zip([0, *(end + 1 for end in ends[:-1])], ends, strict=True))
    spots = [
        Spot(begin, at, "agent", kind_of("it", named=False) if at % 2 else 9) for at, (begin, _) in enumerate(spans)
    ]
    read = Context(text, "", spans, spots, [(at, 0) for at in range(len(spots))])
    shares = read.meant((119, 0))
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.02)
    assert min(at for at, _ in shares) >= 119 - context.SINCE
    assert read.meant((0, 0)) == {}


def test_reading_with_the_network_imports_no_torch() -> None:
    said = (
        "import sys\n"
        "from katha_sketch.english import read_story\n"
        "read_story('Ann ran. She fell.'); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_toy_network_is_trained_and_read_as_it_was(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertModel

    from training.text import context as training
    from training.text.told import Line, lesson, told

    shape = BertConfig(
        vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=4, num_attention_heads=2, intermediate_size=32
    )
    encoder = tmp_path / "encoder"
    torch.manual_seed(0)
    BertModel(shape, add_pooling_layer=False).save_pretrained(str(encoder))
    vocabulary = {word: at for at, word in enumerate(WORDS)}
    (encoder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}}))
    stories, out = tmp_path / "stories", tmp_path / "out"
    stories.mkdir(), out.mkdir()
    (stories / "a.txt").write_text("\n".join([STORY] * 12))
    (story, *_) = told(stories)
    assert story.lines[2] == Line("She played it.", "attic", ("Ann", "owl"), ("drum",), {"it": "drum"})
    taught = lesson(story, random.Random(0))
    drum = next(at for at, spot in enumerate(taught.spots) if taught.text[spot.start :].startswith("drum"))
    assert [right for at, among, truth in taught.antecedents for one, right in zip(among, truth, strict=True)
            if one == drum and taught.text[taught.spots[at].start :].startswith("it")] == [True]  # fmt: skip
    assert (drum, 1, True) in taught.shown
    assert (drum, 3, False) in taught.shown

    options = ["--stories", str(stories), "--out", str(out), "--epochs", "1", "--layers", "4"]
    assert training.main([str(encoder), *options]) == 0

    network = context.read_network(out)
    net, words = training.load(encoder, 4)
    training.export(net.eval(), words, out)
    own = training.Seen(taught, words, net)
    rows = net.read([own.rows])[0]
    assert (
        np.abs(
            context.read_network(out).read(pieces("The Drum. " + taught.text, words)[0]) - rows.detach().numpy()
        ).max()
        < 0.05
    )
    assert len(network.vocabulary) == len(WORDS)
