"""Make english/nouns.yaml: for each common English noun the kind of thing it is, by WordNet's first sense.

python -m training.text.nouns WORDNET/dict MODEL/vocab/strings.json > sketch/src/katha_sketch/english/nouns.yaml
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

# From the narrowest to the widest: the first synset on the way up decides. Offsets would change with every release, so
# a synset is named by its first word and a word that its gloss must hold.
KINDS = {
    "weather": [("atmospheric_phenomenon", ""), ("precipitation", "water"), ("weather", "")],
    "person": [("person", "human being")],
    "animal": [("animal", "")],
    "being": [("imaginary_being", ""), ("spiritual_being", ""), ("automaton", "")],
    "vehicle": [("conveyance", "")],
    "clothing": [("clothing", ""), ("footwear", ""), ("jewelry", ""), ("headdress", "")],
    "furniture": [("furniture", "")],
    "music": [("musical_instrument", "")],
    "building": [
        ("building", "structure"),
        ("shop", ""),
        ("marketplace", ""),
        ("room", "building"),
        ("housing", "structures"),
        ("house", "dwelling"),
    ],
    "structure": [
        ("structure", "constructed"),
        ("way", "artifact"),
        ("area", "structure"),
        ("surface", "outer boundary"),
    ],
    "water": [("body_of_water", "")],
    "land": [("geological_formation", ""), ("land", "solid part"), ("biome", ""), ("vegetation", "")],
    "region": [("region", ""), ("location", "point or extent")],
    "plant": [("plant", "living organism"), ("plant_part", "")],
    "food": [("food", "")],
    "body": [("body_part", ""), ("body_covering", "")],
    "group": [("social_group", ""), ("gathering", "group of persons"), ("people", "")],
    "thing": [("artifact", ""), ("physical_object", ""), ("object", "tangible"), ("substance", ""), ("part", "object")],
    "time": [("time_period", ""), ("time_unit", "")],
    "feeling": [("feeling", "")],
}


Node = tuple[str, str, list[str], bool]
"""A synset: its first word, its gloss, its hypernyms, and whether it is a name."""
# Kinds that a story may act with or stand in: their rare words are kept too.
WHOLE = {"person", "animal", "vehicle", "building", "furniture", "music", "clothing", "food", "being"}


def synsets(folder: Path) -> tuple[dict[str, Node], dict[str, list[str]], dict[str, int]]:
    """Read the nouns: every synset, each word's synsets by frequency, and how many of them are in use."""
    nodes: dict[str, Node] = {}
    for line in (folder / "data.noun").read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            continue
        data, _, gloss = line.partition(" | ")
        part = data.split()
        count = int(part[3], 16)
        at = 4 + 2 * count
        pointers = [part[at + 1 + 4 * i : at + 5 + 4 * i] for i in range(int(part[at]))]
        named = any(pointer[0] == "@i" for pointer in pointers)
        up = [pointer[1] for pointer in pointers if pointer[0] == "@"]
        nodes[part[0]] = (part[4].lower(), gloss, up, named)
    words: dict[str, list[str]] = {}
    used: dict[str, int] = {}
    for line in (folder / "index.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith("  "):
            part = line.split()
            words[part[0]] = part[-int(part[2]) :]
            used[part[0]] = int(part[-int(part[2]) - 1])
    return nodes, words, used


def main(folder: Path, strings: Path) -> None:
    """Print the table."""
    nodes, words, used = synsets(folder)
    common = set(json.loads(strings.read_text(encoding="utf-8")))
    roots = {
        offset: kind
        for kind, names in KINDS.items()
        for name, gloss in names
        for offset, node in nodes.items()
        if node[0] == name and gloss in node[1]
    }

    def kind(offset: str) -> str | None:
        level, seen = [offset], set()
        while level:
            found = [roots[item] for item in level if item in roots]
            if found:
                return found[0]
            seen.update(level)
            level = [up for item in level for up in nodes[item][2] if up not in seen]
        return None

    table: dict[str, list[str]] = defaultdict(list)
    for word, senses in sorted(words.items()):
        if not (word.isalpha() and word.islower() and word.isascii() and 1 < len(word) < 14):
            continue
        plain = [sense for sense in senses if not nodes[sense][3]]
        found = kind(plain[0]) if plain else None
        if found in WHOLE or word in common or used[word]:
            table[found or "abstract"].append(word)
    print("# The kind of each common noun by WordNet 3.1's first sense, made by training/text/nouns.py. WordNet 3.1")
    print("# Copyright 2011 by Princeton University; its licence stands in WORDNET_LICENSE beside this file.")
    for name in sorted(table):
        print(f"{name}:")
        row = " "
        for word in table[name]:
            if len(row) + len(word) > 118:
                print(row)
                row = " "
            row += " " + word
        print(row)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
