"""What words mean where they stand: whom or what a pronoun means, and what a picture of each sentence shows.

One small network reads a whole text: the six layers of all-MiniLM-L6-v2 (CONTEXT_LICENSE beside this file), trained on
by `python -m training.text.context` with stories whose sentences somebody has read: who and what is seen in each.
Two heads weigh what the layers give: a pronoun with what was named before it (the likelihood of all antecedents
together, as in Lee et al. 2017), and a naming with a later sentence.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "KINDS",
    "ROLES",
    "SINCE",
    "Context",
    "Spot",
    "apart",
    "kind_of",
    "near",
    "pieces",
    "read_network",
    "rows_of",
]

Floats = NDArray[np.float32]
ROLES = ("", "agent", "patient", "recipient", "companion", "instrument", "place", "goal", "source", "topic")
KINDS = ("", "he", "she", "it", "they", "i", "we", "you", "other", "name")
"""What a naming is: a noun, one of the pronouns, another pronoun, a name."""
SINCE = 8
"""How many sentences a naming may be back."""
_WINDOW, _BEFORE = 256, 96
"""How many word pieces the network reads at once, and how many of those it has read before."""
_LONGEST = 100
"""A word of more letters is not looked up, as in the encoder's own tokenizer."""
_FIRST, _LAST, _UNKNOWN = "[CLS]", "[SEP]", "[UNK]"
_SPLIT = re.compile(r"[^\W_]+|[^\s\w]|_")


@dataclass(frozen=True)
class Spot:
    """One naming of somebody or something. start: where its word stands; kind: its place in `KINDS`."""

    start: int
    sentence: int
    role: str = ""
    kind: int = 0


def kind_of(pronoun: str, *, named: bool) -> int:
    """Return the number of a naming's kind."""
    if pronoun:
        return KINDS.index(pronoun if pronoun in KINDS else "other")
    return KINDS.index("name") if named else 0


def near(sentences: int) -> int:
    """Return the class of a distance in sentences."""
    return min(max(sentences, 0), SINCE)


def apart(namings: int) -> int:
    """Return the class of a distance in namings: up to nine, then fewer than 16, 32, and more."""
    return namings if namings < 10 else 10 + (namings >= 16) + (namings >= 32)


def pieces(text: str, vocabulary: Mapping[str, int]) -> tuple[list[int], list[int]]:
    """Return the word pieces of a text (WordPiece, small letters without accents), and where each one's word begins."""
    found, starts = list[int](), list[int]()
    for match in _SPLIT.finditer(text):
        spread = unicodedata.normalize("NFD", match[0].lower())
        word = "".join(letter for letter in spread if unicodedata.category(letter) != "Mn")
        own, at = list[int](), 0
        if len(word) > _LONGEST:
            own, word = [vocabulary[_UNKNOWN]], ""
        while at < len(word):
            stem = "##" * (at > 0)
            end = next((end for end in range(len(word), at, -1) if stem + word[at:end] in vocabulary), at)
            if end == at:
                own = [vocabulary[_UNKNOWN]]
                break
            own.append(vocabulary[stem + word[at:end]])
            at = end
        found += own
        starts += [match.start()] * len(own)
    return found, starts


@dataclass(frozen=True)
class _Network:
    """The layers, and what the heads weigh with, by name."""

    layers: Any
    heads: Mapping[str, Floats]
    vocabulary: Mapping[str, int]

    def read(self, numbers: Sequence[int]) -> Floats:
        """Return a row of 384 numbers for each word piece."""
        framed = [self.vocabulary[_FIRST], *numbers, self.vocabulary[_LAST]]
        rows: Floats = self.layers.run(None, {"pieces": np.array([framed], dtype=np.int64)})[0][0, 1:-1]
        return rows


@cache
def _network() -> _Network:
    return read_network(files("katha_sketch.english"))


def read_network(folder: Traversable) -> _Network:
    """Return the network whose two files, `context.onnx` and `context.npz`, are in a folder."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    layers = onnxruntime.InferenceSession(
        folder.joinpath("context.onnx").read_bytes(), options, providers=["CPUExecutionProvider"]
    )
    with np.load(io.BytesIO(folder.joinpath("context.npz").read_bytes()), allow_pickle=False) as held:
        vocabulary = held["words"].tobytes().decode().split("\n")
        heads = {name: held[name].astype(np.float32) for name in held.files if name != "words"}
    return _Network(layers, heads, {word: at for at, word in enumerate(vocabulary)})


@lru_cache(maxsize=64)
def _read(numbers: tuple[int, ...]) -> Floats:
    """What the network gives of word pieces, kept for who asks for places after the reading has asked for people."""
    return _network().read(numbers)


def rows_of(text: str, title: str, sentences: Sequence[tuple[int, int]]) -> Floats:
    """Return four rows for each sentence: its pieces by how much each tells, all its pieces alike, those of the whole
    text, and those of the title."""
    return Context(text, title, sentences, (), ()).four


class Context:
    """A text as the network has read it.

    Args:
        text: the text as it is cut into sentences. title: what stands before it, read with it.
        sentences: where each sentence begins and ends.
        spots: what is named, in the order of the text. keys: what each is known by.
    """

    def __init__(
        self,
        text: str,
        title: str,
        sentences: Sequence[tuple[int, int]],
        spots: Sequence[Spot],
        keys: Sequence[tuple[int, int]],
    ) -> None:
        """Read the text."""
        self.spots, network = tuple(spots), _network()
        self._keys, self._numbers = tuple(keys), {key: at for at, key in enumerate(keys)}
        self._meant: dict[tuple[int, int], Mapping[tuple[int, int], float]] = {}
        self._weigh = network.heads
        before = f"{title}. " if title else ""
        numbers, starts = pieces(before + text, network.vocabulary)
        self._starts = np.array(starts) - len(before)
        self._rows = self._read(numbers)
        self._of = np.full(len(numbers), -1)
        for at, (begin, end) in enumerate(sentences):
            self._of[(self._starts >= begin) & (self._starts < end)] = at
        self._count = len(sentences)

    def _read(self, numbers: Sequence[int]) -> Floats:
        """The rows of all pieces; of a long text window by window, each with some of what came before."""
        rows = [_read(tuple(numbers[:_WINDOW]))]
        for begin in range(_WINDOW, len(numbers), _WINDOW - _BEFORE):
            end = begin + _WINDOW - _BEFORE
            rows.append(_read(tuple(numbers[begin - _BEFORE : end]))[_BEFORE:])
        return np.concatenate(rows)

    @cached_property
    def _named(self) -> Floats:
        """A row for each naming: the mean of its word's pieces."""
        found = [self._rows[self._starts == spot.start] for spot in self.spots]
        empty = np.zeros(self._rows.shape[1], np.float32)
        return np.stack([rows.mean(axis=0) if len(rows) else empty for rows in found]) if found else empty[None]

    @cached_property
    def _heard(self) -> Floats:
        """A row for each sentence: its pieces by how much each tells."""
        told = np.exp(self._rows @ self._weigh["tells"] - (self._rows @ self._weigh["tells"]).max())
        own = (self._of[None] == np.arange(self._count)[:, None]) * told[None]
        rows: Floats = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-6) @ self._rows
        return rows

    @property
    def four(self) -> Floats:
        """Four rows for each sentence, as `rows_of` gives them."""
        own = (self._of[None] == np.arange(self._count)[:, None]).astype(np.float32)
        alike = own / np.maximum(own.sum(axis=1, keepdims=True), 1.0) @ self._rows
        parts = [self._rows[self._starts >= 0], self._rows[self._starts < 0]]
        whole, title = (rows.mean(axis=0) if len(rows) else np.zeros(self._rows.shape[1]) for rows in parts)
        again = (np.broadcast_to(row, alike.shape) for row in (whole, title))
        return np.asarray(np.stack([self._heard, alike, *again], axis=1), dtype=np.float32)

    def _part(self, name: str, rows: Floats) -> Floats:
        return np.asarray(rows @ self._weigh[f"{name}.weight"].T + self._weigh[f"{name}.bias"], dtype=np.float32)

    def _is(self, head: str) -> Floats:
        """What a head takes of each naming's role and kind."""
        roles = [ROLES.index(spot.role) if spot.role in ROLES else 0 for spot in self.spots]
        return self._weigh[f"{head}.roles"][roles] + self._weigh[f"{head}.kinds"][[spot.kind for spot in self.spots]]

    @cached_property
    def _pairs(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Of each naming, what it brings as a pronoun and as an antecedent, added and multiplied."""
        rows = self._named
        return (
            self._part("pronoun", rows) + self._is("pronoun"),
            self._part("antecedent", rows) + self._is("antecedent"),
            self._part("pronoun_by", rows),
            self._part("antecedent_by", rows),
        )

    def meant(self, key: tuple[int, int]) -> Mapping[tuple[int, int], float]:
        """Return what a pronoun may mean: the namings before it by their keys, and how likely each is, together 1."""
        if key not in self._meant:
            at = self._numbers.get(key, 0)
            among = [
                one
                for one in range(at)
                if self.spots[at].sentence - self.spots[one].sentence <= SINCE
                and KINDS[self.spots[one].kind] not in ("i", "you", "we")
            ]
            logits = self._antecedents(at, among) if among else np.zeros(1, np.float32)
            odds = np.exp(logits - logits.max())
            shares = (odds / odds.sum())[: len(among)]
            self._meant[key] = {
                self._keys[one]: round(float(share), 3) for one, share in zip(among, shares, strict=True)
            }
        return self._meant[key]

    def _antecedents(self, at: int, among: Sequence[int]) -> Floats:
        """How likely naming number `at` means what each of `among` names: logits."""
        pronoun, antecedent, pronoun_by, antecedent_by = self._pairs
        chosen, spots = list(among), self.spots
        since = [near(spots[at].sentence - spots[one].sentence) for one in chosen]
        steps = [apart(at - one) for one in chosen]
        sums = pronoun[at] + antecedent[chosen] + self._weigh["since"][since] + self._weigh["steps"][steps]
        added = self._part("pair", np.maximum(sums, 0.0))[:, 0]
        return np.asarray(added + antecedent_by[chosen] @ pronoun_by[at] / 8, dtype=np.float32)

    @cached_property
    def _shown(self) -> Floats:
        """The likelihood of each naming (a row) for each sentence (a column)."""
        rows, heard = self._named, self._heard
        own = self._part("named", rows) + self._is("named")
        said = self._part("sentence", heard)
        gaps = np.array([[near(at - spot.sentence) for at in range(self._count)] for spot in self.spots])
        sums = own[:, None] + said[None] + self._weigh["ago"][gaps]
        added = self._part("shown", np.maximum(sums, 0.0))[..., 0]
        logits = added + self._part("named_by", rows) @ self._part("sentence_by", heard).T / 8
        return np.asarray(1 / (1 + np.exp(-logits)), dtype=np.float32)

    def seen(self, entities: Mapping[tuple[int, int], str]) -> list[Mapping[str, float]]:
        """Return for each sentence how likely a picture of it shows whom and what was named so far.

        entities: of whom or what each naming is. Of several namings the last ones tell it.
        """
        found: list[Mapping[str, float]] = []
        told = [(at, entities[key], self.spots[at].sentence) for at, key in enumerate(self._keys) if key in entities]
        for sentence in range(self._count):
            last, shares = dict[str, int](), dict[str, float]()
            for at, entity, since in told:
                if not sentence - SINCE <= since <= sentence:
                    continue
                share = round(float(self._shown[at, sentence]), 2)
                shares[entity] = max(share, shares[entity] if last.get(entity) == since else 0.0)
                last[entity] = since
            found.append(shares)
        return found
