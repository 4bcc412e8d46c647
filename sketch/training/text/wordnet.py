"""Make matching/wordnet.txt.gz: the synonyms, wider words, derived words and opposites of common words.

python -m training.text.wordnet WORDNET/dict MODEL/vocab/strings.json sketch/src/katha_sketch/matching/wordnet.txt.gz
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

SENSES = {"noun": 4, "verb": 8, "adj": 5, "adv": 3}  # of a word, the most frequent first
DEEDS = ("04", "10", "11", "26")  # WordNet's files of acts, communication, events and states
LETTER = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}
GLOSSES = 2  # of the first senses
KEPT = 12  # words of a gloss, the rarest
COMMON = 0.02  # a word of more glosses than this share tells nothing
_DENYING = re.compile(r"\b(?:not|no|without|lack|lacking|absence|opposite|free (?:of|from))\b")
_WORD = re.compile(r"[a-z]{3,}")
_ENDINGS = (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ing", "e"), ("ed", ""), ("ed", "e"), ("es", "e"), ("s", ""))
WIDER = frozenset(("@", "*", "$", "&", "\\", "="))
"""Hypernym, entailment, verb group, similar adjective, adjective of an adverb, attribute."""


@dataclass
class Synset:
    """A synset: its words, the synsets that its pointers name, pointers between its words and others', its gloss."""

    words: list[str]
    near: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    derived: list[tuple[str, str, int]] = field(default_factory=list)
    opposed: list[tuple[str, str, int]] = field(default_factory=list)
    deed: bool = False
    told: str = ""


def read_synsets(folder: Path) -> dict[str, Synset]:
    """Return every synset by its part of speech's letter and offset; adjective satellites count as adjectives."""
    found: dict[str, Synset] = {}
    for name, letter in LETTER.items():
        for line in (folder / f"data.{name}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            part = line.partition(" | ")[0].split()
            count = int(part[3], 16)
            synset = Synset(
                [word.partition("(")[0].lower() for word in part[4 : 4 + 2 * count : 2]],
                deed=part[1] in DEEDS,
                told=line.partition(" | ")[2].partition('; "')[0].lower(),
            )
            at = 4 + 2 * count
            for i in range(int(part[at])):
                kind, offset, pos, ends = part[at + 1 + 4 * i : at + 5 + 4 * i]
                target = f"{'a' if pos == 's' else pos}{offset}"
                if kind == "+" or kind == "!":
                    pairs = synset.derived if kind == "+" else synset.opposed
                    pairs.append((synset.words[int(ends[:2], 16) - 1], target, int(ends[2:], 16) - 1))
                elif kind in WIDER:
                    synset.near[kind].append(target)
            found[f"{letter}{part[0]}"] = synset
    return found


def read_words(folder: Path, common: set[str]) -> dict[tuple[str, str], list[str]]:
    """Return the senses of the words to keep: those in use, and verbs of two or three words."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, letter in LETTER.items():
        for line in (folder / f"index.{name}").read_text(encoding="utf-8").splitlines():
            if line.startswith("  "):
                continue
            part = line.split()
            word, count, used = part[0], int(part[2]), int(part[-int(part[2]) - 1])
            phrase = name == "verb" and word.count("_") in (1, 2) and word.replace("_", "").isalpha()
            plain = word.replace("-", "").isalpha() and len(word) > 1
            if phrase or (plain and (used or word in common)):
                found[letter, word] = [f"{letter}{offset}" for offset in part[-count:]][: SENSES[name]]
    return found


def gloss_rows(synsets: dict[str, Synset], words: dict[tuple[str, str], list[str]], common: set[str]) -> list[str]:
    """Return a row for each word: the telling words of its glosses, those that few glosses have."""
    glosses = {
        key: dict.fromkeys(
            _base(word, words)
            for each in senses[:GLOSSES]
            for word in _WORD.findall(synsets[each].told)
            if not _DENYING.search(synsets[each].told)
        )
        for key, senses in words.items()
    }
    known = {word for _, word in words}
    counts = Counter(word for gloss in glosses.values() for word in gloss)
    rows = []
    for (letter, word), gloss in sorted(glosses.items()):
        telling = [each for each in gloss if counts[each] < len(glosses) * COMMON and each in known and each != word]
        telling = sorted(telling, key=counts.__getitem__)[:KEPT]
        if telling and word in common:
            rows.append(f"g {letter} {word} {' '.join(telling)}")
    return rows


def _base(word: str, words: dict[tuple[str, str], list[str]]) -> str:
    """The word that an inflected one of a gloss comes from, as far as its ending tells."""
    for ending, instead in _ENDINGS:
        base = word.removesuffix(ending) + instead
        if word.endswith(ending) and len(base) > 2 and any((letter, base) in words for letter in "nv"):
            return base
    return word


def main(folder: Path, strings: Path, out: Path) -> None:
    """Write the table."""
    synsets = read_synsets(folder)
    common = set(json.loads(strings.read_text(encoding="utf-8")))
    words = read_words(folder, common)
    kept = {sense for senses in words.values() for sense in senses}
    numbers: dict[str, int] = {}

    def number(offset: str) -> str:
        return format(numbers.setdefault(offset, len(numbers)), "x")

    rows = [
        "WordNet 3.1 Copyright 2011 by Princeton University; its licence is katha/text/WORDNET_LICENSE. "
        "Made by training/text/wordnet.py. w: pos, word, senses; s: sense, relation, senses; "
        "d, o: derived, opposite words; e: nouns of deeds; g: words of glosses"
    ]
    for (letter, word), senses in sorted(words.items()):
        rows.append(f"w {letter} {word} {' '.join(map(number, senses))}")
    pairs: set[tuple[str, ...]] = set()
    for offset in sorted(kept, key=lambda item: numbers[item]):
        synset = synsets[offset]
        for kind, targets in sorted(synset.near.items()):
            rows.append(f"s {number(offset)} {kind} {' '.join(map(number, targets))}")
        for code, links in (("d", synset.derived), ("o", synset.opposed)):
            for word, target, at in links:
                other = (target[0], synsets[target].words[at])
                if (offset[0], word) in words and other in words and target in kept:
                    pairs.add((code, offset[0], word, number(offset), *other, number(target)))
    rows += [" ".join(pair) for pair in sorted(pairs)]
    verbal = {pair[2] for pair in pairs if pair[0] == "d" and pair[1] == "n" and pair[4] == "v"}
    verbal |= {word for letter, word in words if letter == "v"}
    deeds = [
        word
        for (letter, word), senses in words.items()
        if letter == "n" and any(synsets[each].deed for each in senses[:2])
    ]
    rows.append(f"e {' '.join(sorted(verbal.intersection(deeds)))}")
    rows += gloss_rows(synsets, words, common)
    with out.open("wb") as file, gzip.GzipFile("", "wb", 9, file, 0) as packed:
        packed.write("\n".join(rows).encode() + b"\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
