"""Words to chunks: noun phrases, verb groups, feelings, connectives. Longest phrases first, senses chosen by context."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from katha.language.lexicon import Sense, Vocabulary
from katha.language.tokens import Word

__all__ = ["Chunk", "Noun", "Verb", "chunk_words"]

ChunkType = Literal[
    "noun", "verb", "feeling", "look", "prep", "and", "comma", "sub", "rel", "to", "end", "mood", "label"
]
_SUFFERED = frozenset(
    {"carry", "take", "chase", "eat", "free", "bite", "fight", "hug", "give", "throw", "pull", "push"}
)


@dataclass(frozen=True)
class Noun:
    """A noun phrase. `kind` is character, prop, setting, time, weather, pronoun, referring, name or known (no concept).

    `owner` is the noun phrase of a possessor ("the lion's paw"), `labels` are modifiers that tell apart ("town mouse").
    """

    kind: str
    concept: str | None
    word: str
    plural: bool = False
    count: int = 1
    attributes: tuple[str, ...] = ()
    emotion: str | None = None
    labels: tuple[str, ...] = ()
    definite: bool = False
    fresh: bool = False
    none: bool = False
    owner: Noun | None = None
    name: str | None = None


@dataclass(frozen=True)
class Verb:
    """A verb group. `action` is None for verbs that are not drawn; `emotion` is what the verb tells of
    its subject, `stirs` what it makes its object feel ("frightened")."""

    lemma: str
    action: str | None
    emotion: str | None
    form: str
    stirs: str | None = None
    passive: bool = False
    negated: bool = False
    modal: bool = False
    copula: bool = False


@dataclass(frozen=True)
class Chunk:
    """One chunk: its type, its word(s), and the noun phrase, verb group or concept it holds."""

    type: ChunkType
    text: str
    speech: bool
    noun: Noun | None = None
    verb: Verb | None = None
    concept: str | None = None


@dataclass
class _Phrase:
    """The noun phrase under construction."""

    open: bool = False
    count: int = 1
    plural: bool = False
    definite: bool = False
    fresh: bool = False
    none: bool = False
    attributes: list[str] = field(default_factory=list)
    emotion: str | None = None
    labels: list[str] = field(default_factory=list)
    owner: Noun | None = None
    pending: list[tuple[str, str | None]] = field(default_factory=list)


class _Chunker:
    """One pass over a sentence's words."""

    def __init__(self, words: Sequence[Word], vocabulary: Vocabulary, names: frozenset[str]) -> None:
        self.words = words
        self.vocabulary = vocabulary
        self.grammar = vocabulary.grammar
        self.names = names
        self.chunks: list[Chunk] = []
        self.unread: list[str] = []
        self.phrase = _Phrase()
        self.at = 0

    # -- reading the input -------------------------------------------------------------------------------------

    def run(self) -> list[Chunk]:
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

    def _span(self, length: int, at: int | None = None) -> str:
        start = self.at if at is None else at
        return " ".join(word.lower for word in self.words[start : start + length])

    def _match(self, test: Callable[[str], bool], at: int | None = None) -> int:
        """The length in words of the longest phrase at `at` that passes `test`, 0 if none."""
        start = self.at if at is None else at
        if start >= len(self.words):
            return 0
        longest = self.vocabulary.longest.get(self.words[start].lower, 1)
        for length in range(min(longest, len(self.words) - start), 0, -1):
            if test(self._span(length, start)):
                return length
        return 0

    def _senses(self, at: int) -> tuple[int, tuple[Sense, ...]]:
        length = self._match(self.vocabulary.senses.__contains__, at)
        return (length, self.vocabulary.senses[self._span(length, at)]) if length else (0, ())

    def _emit(self, kind: ChunkType, length: int, **parts: object) -> None:
        speech = self.words[min(self.at, len(self.words) - 1)].speech
        text = " ".join(word.text for word in self.words[self.at : self.at + length])
        self.chunks.append(Chunk(kind, text, speech, **parts))  # type: ignore[arg-type]
        self.at += length

    # -- closed classes ----------------------------------------------------------------------------------------

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
        self.phrase = _Phrase(open=True, definite=True, owner=noun)
        self.at += 1
        return True

    def _name(self) -> bool:
        word = self.words[self.at]
        if word.text not in self.names:
            return False
        self._close()
        self._emit("noun", 1, noun=Noun("name", None, word.lower, name=word.text, definite=True))
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
        if self.phrase.pending:
            self._close()
        self.phrase.open = True
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

    def _noun_ahead(self, at: int) -> bool:
        """Whether a noun phrase goes on at `at` (a noun or an adjective before one)."""
        if at >= len(self.words) or not self.words[at].text[0].isalnum():
            return False
        word = self._span(1, at)
        if self.grammar.has("determiners", word) or word in self.grammar.numbers:
            return word not in {"the", "a", "an"}
        if self.grammar.has("be", word) or self.grammar.has("modals", word) or self.grammar.has("prepositions", word):
            return False
        if word in self.grammar.pronouns or self.grammar.has("auxiliaries", word):
            return False
        _, senses = self._senses(at)
        parts = {sense.part for sense in senses}
        if not parts:
            return not word.endswith("ly") and not self.grammar.has("conjunctions", word)
        if "noun" in parts or "feeling" in parts:
            return True
        return "adjective" in parts and self._noun_ahead(at + 1)

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

    # -- verbs -------------------------------------------------------------------------------------------------

    def _verb_group(self) -> bool:
        at, negated, modal, has_be, has_have, helper = self.at, False, False, False, False, False
        while at < len(self.words):
            word = self._span(1, at)
            if self.grammar.has("be", word) and not (word == "'s" and at == self.at and not self._after_noun()):
                has_be = helper = True
            elif self.grammar.has("modals", word):
                modal = helper = True
            elif self.grammar.has("auxiliaries", word) and (helper or self._helps(at)):
                has_have, helper = has_have or word.startswith("ha"), True
            elif (length := self._match(lambda text: self.grammar.has("negations", text), at)) and word != "without":
                if not helper and word in {"nor", "neither"}:
                    return False
                negated, at = True, at + length
                continue
            elif helper and self._is_adverb(at):
                at += self._senses(at)[0]
                continue
            else:
                break
            at += 1
        return self._main_verb(at, negated, modal, has_be, has_have, helper)

    def _is_adverb(self, at: int) -> bool:
        length, senses = self._senses(at)
        if not length:
            return self._span(1, at).endswith("ly") and len(self._span(1, at)) > 4
        return bool(senses) and all(sense.part == "adverb" for sense in senses)

    def _after_noun(self) -> bool:
        return bool(self.chunks) and self.chunks[-1].type == "noun"

    def _helps(self, at: int) -> bool:
        """Whether the auxiliary at `at` is followed by a verb, so that it is not the main verb itself."""
        following = at + 1
        while following < len(self.words) and (
            self._is_adverb(following) or self.grammar.has("negations", self._span(1, following))
        ):
            following += 1
        if following >= len(self.words):
            return False
        if self.grammar.has("be", self._span(1, following)):
            return True
        forms = {sense.form for sense in self._senses(following)[1] if sense.part in {"verb", "passive"}}
        word = self._span(1, at)
        if word in {"do", "does", "did"}:
            return "base" in forms
        return bool(forms & {"participle", "ing"})

    def _main_verb(self, at: int, negated: bool, modal: bool, be: bool, have: bool, helper: bool) -> bool:
        length, senses = self._senses(at) if at < len(self.words) else (0, ())
        verbs = [sense for sense in senses if sense.part == "verb"]
        passives = [sense for sense in senses if sense.part == "passive"]
        participle = [sense for sense in [*passives, *verbs] if sense.form in {"participle"}]
        if be and participle and not any(sense.form == "ing" for sense in verbs):
            self._close()
            self._put_verb(at, length, participle, passive=True, negated=negated, modal=modal)
            return True
        if not helper and not self.phrase.labels and self._reduced(at, length, passives, verbs):
            self._close()
            self._put_verb(at, length, participle or passives, passive=True, negated=negated, modal=modal)
            return True
        wanted = [sense for sense in verbs if self._fits(sense, be, have, modal)] if helper else verbs
        if wanted and (helper or self._verb_here(at, length, senses)):
            self._close()
            self._put_verb(at, length, wanted, passive=False, negated=negated, modal=modal)
            return True
        if not helper and passives and not self.phrase.open:
            self._close()
            self._put_verb(at, length, passives, passive=True, negated=negated, modal=modal)
            return True
        if be or helper or negated:
            return self._copula(at, negated, modal, be or helper)
        return False

    def _reduced(self, at: int, length: int, passives: Sequence[Sense], verbs: Sequence[Sense]) -> bool:
        """Whether a bare participle is passive: "a lion trapped in a net", "a mouse chased by a cat"."""
        if self.phrase.open and not self.phrase.pending:
            return False
        if not (self._after_noun() or self._after("look") or self._after("comma") or self.phrase.pending):
            return False
        following = self._span(1, at + length) if at + length < len(self.words) else ""
        suffers = any(sense.id in _SUFFERED and sense.form == "participle" for sense in verbs)
        return bool(passives and following in {"in", "by", "under", "inside"}) or (suffers and following == "by")

    @staticmethod
    def _fits(sense: Sense, be: bool, have: bool, modal: bool) -> bool:
        if be:
            return sense.form == "ing"
        if have:
            return sense.form == "participle"
        return sense.form == "base"

    def _copula(self, at: int, negated: bool, modal: bool, helper: bool) -> bool:
        if not helper:
            return False
        self._close()
        verb = Verb("be", None, None, "past", negated=negated, modal=modal, copula=True)
        self._emit("verb", max(at - self.at, 1), verb=verb)
        return True

    def _put_verb(
        self, at: int, length: int, senses: Sequence[Sense], *, passive: bool, negated: bool, modal: bool
    ) -> None:
        action = next((sense for sense in senses if sense.kind == "action"), None)
        emotion = next((sense.id for sense in senses if sense.kind == "emotion"), None)
        best = action or senses[0]
        forms = {sense.form for sense in senses if sense.kind == best.kind}
        form = best.form if not (best.form == "participle" and "past" in forms) else "past"
        drawn = action.id if action is not None else None
        stirs = next((sense.id for sense in senses if sense.kind == "stirs"), None)
        verb = Verb(best.lemma, drawn, emotion, form, stirs, passive=passive, negated=negated, modal=modal)
        self._emit("verb", at + length - self.at, verb=verb)

    def _verb_here(self, at: int, length: int, senses: Sequence[Sense]) -> bool:
        """Choose between a verb and a noun or adjective reading of the same form, from what stands before it."""
        others = [sense for sense in senses if sense.part in {"noun", "adjective", "feeling"}]
        verbs = [sense for sense in senses if sense.part == "verb"]
        forms = {sense.form for sense in verbs}
        after_to = bool(self.chunks) and self.chunks[-1].type == "to" and not self.phrase.open
        if after_to:
            return "base" in forms
        if self.phrase.open:
            if self.phrase.pending and not others:
                return True
            if self.phrase.pending:
                return bool(forms & {"third", "past"}) and not self._noun_ahead(at + length)
            return False
        if not others:
            return not (forms <= {"base"} and self._after("prep"))
        if self._after("prep"):
            return False
        return (
            self._after_noun()
            or self._after("look")
            or self._after("rel")
            or (self._after("and") and not self._noun_before_and())
        )

    def _after(self, kind: str) -> bool:
        return bool(self.chunks) and self.chunks[-1].type == kind

    def _noun_before_and(self) -> bool:
        return len(self.chunks) > 1 and self.chunks[-2].type == "noun"

    # -- noun phrases ------------------------------------------------------------------------------------------

    def _concept(self) -> bool:
        length, senses = self._senses(self.at)
        if not length:
            return False
        nouns = [sense for sense in senses if sense.part == "noun"]
        looks = [sense for sense in senses if sense.part == "adjective"]
        if nouns and not (looks and self._noun_ahead(self.at + length) and self._goes_on(self.at + length)):
            if not self.phrase.open and self.grammar.has("weak_nouns", self._span(length)) and not self._after("prep"):
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

    def _goes_on(self, at: int) -> bool:
        return at < len(self.words) and any(sense.part == "noun" for sense in self._senses(at)[1])

    def _noun(self, length: int, nouns: Sequence[Sense]) -> bool:
        text = self._span(length)
        sense = self._prefer(nouns)
        if self.phrase.pending and sense.kind in {"known", "referring"} and self.phrase.pending[-1][0] == "character":
            # "a mouse king" never occurs; "the lion skin" and "crow feathers" do: the last noun is the head.
            pass
        self.phrase.open = True
        self.phrase.pending.append((text, None))
        self._heads = getattr(self, "_heads", [])
        self._heads.append(sense)
        self.at += length
        if not self._compound_ahead():
            self._close()
        return True

    @staticmethod
    def _prefer(nouns: Sequence[Sense]) -> Sense:
        order = {"character": 0, "prop": 1, "setting": 2}
        return min(nouns, key=lambda sense: order.get(sense.kind, 3))

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
        after_determiner = self.phrase.open and not self.phrase.pending
        self.at += 1
        if after_determiner and not self._noun_follows():
            self.phrase.pending.append((lower, None))
            self._heads = getattr(self, "_heads", [])
            self._heads.append(Sense("known", None, "noun", lower))
            self._close()
        return True

    def _noun_follows(self) -> bool:
        return self.at < len(self.words) and any(
            sense.part in {"noun", "adjective"} for sense in self._senses(self.at)[1]
        )

    def _close(self) -> None:
        """Finish the noun phrase under construction, if it has a head."""
        phrase, self.phrase = self.phrase, _Phrase()
        heads: list[Sense] = getattr(self, "_heads", [])
        self._heads = []
        if not heads:
            return
        head = heads[-1]
        labels = (*phrase.labels, *(sense.lemma for sense in heads[:-1]))
        plural = head.plural or phrase.plural
        noun = Noun(
            kind=head.kind,
            concept=head.id,
            word=head.lemma,
            plural=plural,
            count=max(phrase.count, 3 if plural and phrase.count < 2 else 1),
            attributes=tuple(dict.fromkeys(phrase.attributes)),
            emotion=phrase.emotion,
            labels=labels if head.kind == "character" else (),
            definite=phrase.definite,
            fresh=phrase.fresh,
            none=phrase.none,
            owner=phrase.owner,
        )
        first = heads[0]
        if head.kind == "known" and len(heads) > 1 and first.kind == "character":
            noun = replace(noun, owner=Noun("character", first.id, first.lemma, definite=True))
        elif head.kind == "known" and len(heads) > 1 and first.kind in {"setting", "prop"}:
            noun = replace(noun, kind=first.kind, concept=first.id, word=first.lemma)
        speech = self.words[min(self.at, len(self.words)) - 1].speech
        self.chunks.append(Chunk("noun", head.lemma, speech, noun=noun))


def chunk_words(
    words: Sequence[Word], vocabulary: Vocabulary, names: frozenset[str] = frozenset()
) -> tuple[list[Chunk], list[str]]:
    """The chunks of one sentence, and the content words that the vocabulary does not know."""
    chunker = _Chunker(words, vocabulary, names)
    return chunker.run(), chunker.unread
