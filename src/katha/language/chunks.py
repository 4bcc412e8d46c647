"""Words to chunks: noun phrases, verb groups, feelings, connectives. Longest phrases first, senses by context."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from katha.language.lexicon import Vocabulary
from katha.language.nounphrases import NounReader
from katha.language.scanner import Chunk, ChunkType, Noun, Verb
from katha.language.tokens import Word
from katha.language.verbgroups import VerbReader

__all__ = ["Chunk", "Noun", "Verb", "chunk_words"]


class _Chunker(VerbReader, NounReader):
    """One pass over a sentence's words."""

    def run(self) -> list[Chunk]:
        """Every chunk of the sentence, in order."""
        readers: tuple[Callable[[], bool], ...] = (
            self._punctuation,
            self._possessive,
            self._name,
            self._accessory,
            self._verb_group,
            self._number,
            self._determiner,
            self._connective,
            self._concept,
            self._unknown,
        )
        while self.at < len(self.words):
            if not any(reader() for reader in readers):
                self.at += 1
        self._close()
        return self.chunks

    def _punctuation(self) -> bool:
        mark = self.words[self.at].text
        if mark[0].isalnum() or mark[0] == "'":
            return False
        self._close()
        kinds: dict[str, ChunkType] = {",": "comma", "-": "comma", "(": "comma", ")": "comma", ":": "comma"}
        if mark == '"':
            self._emit("mood", 1)
        else:
            self._emit(kinds.get(mark, "end"), 1)
        return True

    def _connective(self) -> bool:
        length = self._match(lambda text: self.grammar.has("subordinators", text))
        if length and not (
            self._span(length) in {"after", "before", "as", "since", "until", "till"} and self._plain_prep()
        ):
            self._close()
            self._emit("sub", length)
            return True
        if self._span(1) == "to":
            self._close()
            verb_next = self._verb_at(self.at + 1)
            self._emit("to" if verb_next else "prep", 1)
            return True
        for group, kind in (("relatives", "rel"), ("conjunctions", "and"), ("prepositions", "prep")):
            length = self._match(lambda text, group=group: self.grammar.has(group, text))  # type: ignore[misc]
            if length:
                self._close()
                self._emit(kind, length)  # type: ignore[arg-type]
                return True
        return False

    def _plain_prep(self) -> bool:
        """Whether the ambiguous word here is a preposition: no finite verb before the next break."""
        for at in range(self.at + 1, len(self.words)):
            word = self.words[at]
            if not word.text[0].isalnum():
                return True
            if self.grammar.has("be", word.lower) or self.grammar.has("modals", word.lower):
                return False
            if at > self.at + 1 and any(sense.part == "verb" for sense in self._senses(at)[1]):
                return False
        return True

    def _verb_at(self, at: int) -> bool:
        """Whether a base-form verb stands at `at` (adverbs skipped)."""
        while at < len(self.words) and any(s.part == "adverb" for s in self._senses(at)[1]):
            at += 1
        if at >= len(self.words):
            return False
        if self._span(1, at) in {"be", "have", "do"}:
            return True
        return any(sense.part == "verb" and sense.form == "base" for sense in self._senses(at)[1])


def chunk_words(
    words: Sequence[Word], vocabulary: Vocabulary, names: frozenset[str] = frozenset()
) -> tuple[list[Chunk], list[str]]:
    """The chunks of one sentence, and the content words that the vocabulary does not know."""
    chunker = _Chunker(words, vocabulary, names)
    return chunker.run(), chunker.unread
