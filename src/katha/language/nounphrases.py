"""Noun phrases: determiners, numbers, adjectives, compounds, possessors, names and looks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from katha.language.lexicon import Sense
from katha.language.scanner import Chunk, Noun, Phrase, Scanner

__all__ = ["NounReader"]

_POSSESSORS = {"his": "he", "her": "she", "its": "it", "their": "they"}
_HEAD_ORDER = {"character": 0, "prop": 1, "setting": 2}


class NounReader(Scanner):
    """Reads the parts of a noun phrase at the position, and closes it at its head."""

    def _possessive(self) -> bool:
        if self.words[self.at].lower not in {"'s", "'"}:
            return False
        last = self.chunks[-1] if self.chunks else None
        noun = last.noun if last is not None else None
        following = self._senses(self.at + 1)[1]
        if noun is None or (self.words[self.at].lower == "'" and not noun.plural):
            self.at += 1
            return True
        if any(sense.part == "verb" and sense.form == "ing" for sense in following):
            return False
        self.chunks.pop()
        self.phrase = Phrase(open=True, definite=True, owner=noun)
        self.at += 1
        return True

    def _name(self) -> bool:
        word = self.words[self.at]
        cue = word.lower in self.grammar.words["name_cues"]
        at = self.at + 1 if cue else self.at
        if at >= len(self.words) or self.words[at].text not in self.names:
            return False
        self._close()
        self.at = at
        last = self.chunks[-1] if self.chunks else None
        if last is not None and last.noun is not None and last.noun.kind == "character" and last.noun.name is None:
            self.chunks[-1] = replace(last, noun=replace(last.noun, name=self.words[at].text, definite=True))
            self.at += 1
            return True
        name = self.words[at]
        self._emit("noun", 1, noun=Noun("name", None, name.lower, name=name.text, definite=True))
        return True

    def _accessory(self) -> bool:
        """A look that is a phrase ("with a red scarf"): it belongs to the noun phrase before it."""
        start = self.at
        for skip in ("with", "wearing", "in"):
            if self._span(1, start) == skip:
                start += 1
                break
        if start < len(self.words) and self._span(1, start) in {"a", "an", "the", "his", "her", "its", "their"}:
            start += 1
        length, senses = self._senses(start)
        look = next(
            (sense.id for sense in senses if sense.kind == "attribute" and " " in self._span(length, start)), None
        )
        if look is None or (" " not in self._span(length, start)):
            return False
        if start == self.at and self.phrase.open:
            return False
        self._close()
        self.chunks.append(Chunk("look", self._span(length, start), self.words[start].speech, concept=look))
        self.at = start + length
        return True

    def _number(self) -> bool:
        word = self._span(1)
        if self._span(2) == "no longer":
            return False
        length = self._match(self.grammar.numbers.__contains__)
        if not length and not word.isdigit():
            return False
        value = self.grammar.numbers[self._span(length)] if length else min(int(word[:3]), 99)
        self.phrase.open = True
        self.phrase.count = value
        self.phrase.plural = value > 1
        self.at += length or 1
        return True

    def _determiner(self) -> bool:
        word = self._span(1)
        length, senses = self._senses(self.at)
        if length > 1 and all(sense.part == "adverb" for sense in senses):
            self.at += length
            return True
        pronoun = self.grammar.pronouns.get(word)
        if pronoun is not None and not (word == "her" and self._her_own()):
            self._close()
            plural = pronoun["number"] == 2
            self._emit(
                "rel" if pronoun["gender"] == "rel" else "noun", 1, noun=Noun("pronoun", None, word, plural=plural)
            )
            return True
        if not self.grammar.has("determiners", word):
            return False
        if word in {"that", "what", "whose", "this", "these", "those"} and not self._noun_ahead(self.at + 1):
            self._close()
            self._emit("rel" if word in {"that", "whose", "what"} else "label", 1)
            return True
        if self.phrase.heads:
            self._close()
        self.phrase.open = True
        self.phrase.possessor = _POSSESSORS.get(word, self.phrase.possessor)
        self.phrase.definite = self.phrase.definite or self.grammar.has("definite", word)
        self.phrase.fresh = self.phrase.fresh or word in {"another"}
        self.phrase.none = self.phrase.none or word in {"no", "neither"}
        if word in {"many", "several", "few", "these", "those", "some", "all", "both"}:
            self.phrase.count = max(self.phrase.count, 2 if word == "both" else 1)
        if word in {"another", "other"}:
            self.phrase.labels.append("other")
        self.at += 1
        return True

    def _her_own(self) -> bool:
        """Whether "her" here is a possessive: a noun follows, or a gerund after a preposition ("of her boasting")."""
        following = self._senses(self.at + 1)[1] if self.at + 1 < len(self.words) else ()
        gerund = self._after("prep") and any(sense.form == "ing" for sense in following)
        return gerund or self._noun_ahead(self.at + 1)

    def _concept(self) -> bool:
        length, senses = self._senses(self.at)
        if not length:
            return False
        nouns = [sense for sense in senses if sense.part == "noun"]
        looks = [sense for sense in senses if sense.part == "adjective"]
        if nouns and not (looks and self._noun_ahead(self.at + length) and self._goes_on(self.at + length)):
            if self._weak(length):
                self.at += length
                return True
            return self._noun(length, nouns)
        if looks:
            return self._adjective(length, looks)
        kind = next((sense for sense in senses if sense.kind in {"emotion", "shot"}), None)
        if kind is not None:
            self._close()
            self._emit("feeling" if kind.kind == "emotion" else "label", length, concept=kind.id)
            return True
        self.at += length
        return True

    def _weak(self, length: int) -> bool:
        """Whether the word here is hardly a noun: no determiner, no preposition, not a caption of its own ("Snow by
        day.")."""
        if self.phrase.open or self._after("prep") or not self.grammar.has("weak_nouns", self._span(length)):
            return False
        at = self.at + length
        caption = self.at == 0 and (at >= len(self.words) or self._span(1, at) in {"by", "at", "in", ",", "."})
        return not caption

    def _goes_on(self, at: int) -> bool:
        return at < len(self.words) and any(sense.part == "noun" for sense in self._senses(at)[1])

    def _noun(self, length: int, nouns: Sequence[Sense]) -> bool:
        self.phrase.open = True
        self.phrase.heads.append(min(nouns, key=lambda sense: _HEAD_ORDER.get(sense.kind, len(_HEAD_ORDER))))
        self.at += length
        if not self._compound_ahead():
            self._close()
        return True

    def _compound_ahead(self) -> bool:
        if self.at >= len(self.words):
            return False
        length, senses = self._senses(self.at)
        parts = {sense.part for sense in senses}
        closed = self.grammar.has("prepositions", self._span(1)) or self.grammar.has("be", self._span(1))
        return bool(length) and "noun" in parts and "verb" not in parts and "adverb" not in parts and not closed

    def _adjective(self, length: int, looks: Sequence[Sense]) -> bool:
        sense = next((sense for sense in looks if sense.kind in {"emotion", "attribute"}), looks[0])
        at = self.at + length
        joins = self._span(1, at) in {",", "and"} and self._adjective_ahead(at + 1) and self._noun_ahead(at + 1)
        attributive = self.phrase.open or self._noun_ahead(at) or joins
        if sense.kind == "shot":
            self._close()
            self._emit("label", length, concept=f"shot/{sense.id}")
            return True
        if not attributive:
            if sense.kind == "known":
                self.at += length
                return True
            self._emit("feeling" if sense.kind == "emotion" else "look", length, concept=sense.id)
            return True
        self.phrase.open = True
        if sense.kind == "emotion":
            self.phrase.emotion = sense.id
        elif sense.kind == "attribute" and sense.id is not None:
            self.phrase.attributes.append(sense.id)
        elif self.grammar.has("labels", sense.lemma):
            self.phrase.labels.append(sense.lemma)
        self.at = at
        if self._span(1, at) in {",", "and"} and self._adjective_ahead(at + 1):
            self.at += 1
        return True

    def _adjective_ahead(self, at: int) -> bool:
        parts = {sense.part for sense in self._senses(at)[1]} if at < len(self.words) else set()
        return "adjective" in parts and "noun" not in parts

    def _unknown(self) -> bool:
        word = self.words[self.at]
        lower = word.lower
        if not lower[0].isalpha():
            return False
        if not (lower.endswith("ly") and len(lower) > 4):
            self.unread.append(lower)
        after_determiner = self.phrase.open and not self.phrase.heads
        self.at += 1
        if after_determiner and not self._noun_follows():
            self.phrase.heads.append(Sense("known", None, "noun", lower))
            self._close()
        return True

    def _noun_follows(self) -> bool:
        return self.at < len(self.words) and any(
            sense.part in {"noun", "adjective"} for sense in self._senses(self.at)[1]
        )
