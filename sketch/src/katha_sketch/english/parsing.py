"""The parser: spaCy with the model that is shipped beside this file, loaded when it is first needed."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from katha.errors import CorruptEntryError
from katha.intake.names import names_at
from katha_sketch.english.words import Words, load_words

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

__all__ = ["MODEL_SHA256", "NAME", "Parser", "load_parser", "model_sha256"]

MODEL_SHA256 = "9dbd3281ca948d5d608a528bf9279708cd8a8a29d56b1fa0ec846b036ccdbdb4"
"""Of the files of the folder `model` (en_core_web_sm 3.8.0 without its parts for entities and sentences)."""
_HYPHENED = re.compile(r"[^\W_]+(?:-[^\W\d_]+)+")
_UNUSED = ("ner", "senter")
_BARE = "katha.Bare.v1"
"""A tokenizer without rules, which reads the model's: spaCy's own would lay out the same 1,300 exceptions twice."""


def _folder() -> Path:
    return Path(str(resources.files("katha_sketch.english").joinpath("model")))


def model_sha256() -> str:
    """Return the hash of the model's files, in the order of their names."""
    digest, folder = hashlib.sha256(), _folder()
    for path in sorted(item for item in folder.rglob("*") if item.is_file() and item.suffix != ".pyc"):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """Hide from spaCy, while it is imported, what this model does not need: torch (four seconds and 500 MB where it is
    installed) and spaCy's own command line with its downloads (a quarter of the import)."""
    info, hidden = ModuleType("spacy.cli.info"), ("torch", "spacy.cli", "spacy.cli.info")
    vars(info)["info"] = lambda *given, **named: import_module("spacy.cli.info").info(*given, **named)
    stand_ins = dict(zip(hidden, (None, ModuleType("spacy.cli"), info), strict=True))
    added = {name: stand_ins[name] for name in hidden if name not in sys.modules}
    sys.modules.update(added)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in added:
            if sys.modules.get(name) is added[name]:
                sys.modules.pop(name, None)


class Parser:
    """Turns sentences into dependency trees; one sentence in is one tree out."""

    def __init__(self) -> None:
        """Load the model.

        Raises:
            CorruptEntryError: its files are not the ones that were shipped.
        """
        found = model_sha256()
        if found != MODEL_SHA256:
            raise CorruptEntryError(
                f"The parser's model in {_folder()} is damaged (sha256 {found[:12]}, not {MODEL_SHA256[:12]}).",
                hint="Install katha again: pip install --force-reinstall katha",
            )
        with _alone():
            import spacy
            from spacy.util import registry

            make = import_module("spacy.tokenizer").Tokenizer
            registry.tokenizers.register(_BARE, func=lambda: lambda nlp: make(nlp.vocab))
            tokenizer = {"@tokenizers": _BARE}
            self._nlp: Language = spacy.load(_folder(), exclude=list(_UNUSED), config={"nlp": {"tokenizer": tokenizer}})
        lemmatizer: Any = self._nlp.get_pipe("lemmatizer")
        index: Mapping[str, Collection[str]] = lemmatizer.lookups.get_table("lemma_index")
        self._verbs = frozenset(index["verb"])
        self._adverbs, self._adjectives = frozenset(index["adv"]), frozenset(index["adj"])
        irregular: Mapping[str, list[str]] = lemmatizer.lookups.get_table("lemma_exc")["verb"]
        self._irregular = {form: bases[0] for form, bases in irregular.items() if form not in self._verbs}
        self._listed = frozenset().union(*(index[part] for part in ("adj", "adv", "verb", "noun")))
        words = self._words = load_words()
        self._plural = words.sets["plural_only"]
        self._past = {word: words.lemmas.get(word, "") for word in words.sets["past_forms"]} | {"thought": "think"}

    def parse(self, sentences: Iterable[str], names: Collection[str] = ()) -> list[Doc]:
        """Return one tree for each sentence. names: those that are words too ("Will"), read as names are."""
        docs = [self._nlp.make_doc(sentence) for sentence in sentences]
        for doc in docs:
            with doc.retokenize() as merging:
                # "co-pilot" and "seven-year-old" are words; the tokenizer parts them.
                for match in _HYPHENED.finditer(doc.text):
                    span = doc.char_span(*match.span())
                    if span is not None and len(span) > 1:
                        merging.merge(span)
                if len(doc) > 1 and doc[-1].text == "I.":  # "Only two were left, Ben and I."
                    merging.split(doc[-1], ["I", "."], heads=[(doc[-1], 0), (doc[-1], 0)])
            for token in doc:
                token.is_sent_start = token.i == 0
        named = {at: given for at, doc in enumerate(docs) if names and (given := _named(doc, names))}
        own = {at: docs[at] for at in named}
        for at, called in named.items():
            docs[at] = _with(docs[at], called, ())
        parsed = self._trees(docs)
        for at, called in named.items():
            parsed[at] = _renamed(parsed[at], own[at], called, ())
            for i in called:
                parsed[at][i].ent_type_ = NAME
        return parsed

    def _trees(self, docs: list[Doc]) -> list[Doc]:
        """Parse sentences, and those again in which the parser is helped by another word or a comma."""
        parsed = list(self._nlp.pipe(docs))
        hints = {
            at: found for at, doc in enumerate(parsed) if any(found := (self._hints(doc), _unparted(doc, self._words)))
        }
        again = [_with(parsed[at], *found) for at, found in hints.items()]
        for at, doc in zip(hints, self._nlp.pipe(again), strict=True):
            parsed[at] = _renamed(doc, parsed[at], *hints[at])
        for token in (token for doc in parsed for token in doc):
            if token.lower_ in self._plural:
                token.lemma_ = token.lower_  # "shorts" are no "short"
            elif token.pos_ == "VERB" and token.lemma_ == token.lower_ in self._irregular:
                token.lemma_ = self._irregular[token.lower_]  # "They ate, drank and danced"
                token.tag_ = "VBD" if token.tag_ in ("VB", "VBP") else token.tag_
        return parsed

    def _hints(self, doc: Doc) -> dict[int, Hint]:
        """The words that the tagger must have taken for something else: "Ewa claps, and ..." has a verb."""
        found: dict[int, Hint] = {}
        told = any(token.tag_ in _FINITE for token in doc)
        for token in doc:
            low, tag = token.lower_, token.tag_
            before, _after = doc[token.i - 1] if token.i else None, doc[token.i + 1] if token.i + 1 < len(doc) else None
            listed = low in (self._adverbs if tag == "RB" else self._listed)  # Molly is a fish, but no adverb
            if (
                token.text[0].isupper()
                and tag in _NO_NAME
                and low.isalpha()
                and not (listed or token.is_stop)
                and len(low) > _SHORT
                and low not in self._words.sets["indefinite_pronouns"]
            ):
                found[token.i] = Hint("Anna", "NNP", token.text)
                continue
            one = self._words.lemmas.get(low, low)
            if tag == "JJ" and one != low and self._words.sort(one) in ("animal", "person"):
                found[token.i] = Hint("dogs", "NNS", one)  # "The two geese talk"
                continue
            called = tag == "NNP" and before is not None and before.lower_ in _CALLED and token.i + 1 < len(doc)
            if called and doc[token.i + 1].tag_ == "VBN":
                found[token.i] = Hint("Tom", tag, token.text)  # "a boy called Temir painted rain"
                continue
            if "-" in low and (tag, token.dep_) in (("JJ", "advmod"), ("JJ", "oprd")) and self._words.number(low):
                found[token.i] = Hint("forty", "CD", low)
                continue
            last = token.i + 1 == len(doc) or doc[token.i + 1].tag_ not in ("NN", "NNS", "JJ", "NNP", "VB")
            cannot = token.i + 1 < len(doc) and doc[token.i + 1].lower_ in ("not", "n't", "n\u2019t")
            tin = before if (low, tag) == ("can", "MD") and last and not cannot else None
            lives = tin is None or tin.tag_ not in ("NN", "VBG") or self._words.sort(tin.lower_) in ("person", "animal")
            if tin is not None and not lives and _opens(tin) is not None:
                found[token.i] = Hint("box", "NN", low)  # "filled the watering can"
                continue
            more = tag == "JJR" and last and before is not None and before.tag_ in ("DT", "PRP$", "JJ")
            more = more and low[:-1] not in self._adjectives and low[:-2] not in self._adjectives
            more |= tag == "JJR" and last and self._words.sort(low) == "thing"
            if more or (tag == "JJ" and before is not None and self._known_thing(token, low)):
                found[token.i] = Hint("man", "NN", low)  # "found a hermit, old and blind", "fixed the photocopier"
                continue
            stems = (low, low[:-1], low[:-2], f"{low[:-3]}y", low[:-3], f"{low[:-3]}e")
            base = self._irregular.get(low) or next((one for one in stems if one in self._verbs), "")
            if before is None or token.text != low or not (base or low in self._past):
                continue
            hint = self._shown_to_act(token, base) if told and base and tag in ("NN", "JJ", "RB") else None
            named = before.tag_ == "NNP" or before.i in found or _numbers(before)
            hint = hint or self._hint(token, base, named=named, told=told)
            if hint is not None:
                found[token.i] = hint
        return found

    def _shown_to_act(self, token: Token, base: str) -> Hint | None:
        """What to put in place of a noun that must be a deed without a tense: "heard the door slam", "made the baby
        laugh", "a coin lying in the grass", "They sat there, singing", "went swimming", "his scarf flapping"."""
        words, before, low = self._words, token.nbor(-1), token.lower_
        after = _after(token)
        alive = words.sort(before.lemma_) in ("person", "animal", "being", "body")
        lives = before.tag_ == "NNP" or (before.tag_ in ("NN", "NNS") and alive)
        thing = words.sort(low) not in ("", "abstract", "time", "feeling") and not words.has("things_do", base)
        if (
            (thing and not lives)
            or words.sort(low) in ("person", "animal")
            or (after is not None and after.tag_ in ("NN", "NNS", "NNP", "POS", "JJ"))
        ):
            return None
        shown = words.has("perceive", token.head.lemma_) or words.has("make", token.head.lemma_)
        doer = (lives or before.dep_ in ("compound", "nsubj")) and token.dep_ in ("dobj", "ccomp")
        doer = doer and before.head == token
        if low.endswith("ing") and base != low:
            goes = before.lemma_ == "go" or (before.lower_ == "on" and before.head.lemma_ in ("go", "keep"))
            placed = doer and (shown or (after is not None and after.tag_ in ("IN", "RB", "RP")))
            listed = token.dep_ == "conj" and any(child.dep_ == "cc" for child in token.head.children)
            apart = before.text == "," and token.dep_ in _APART and not listed
            opens = _opens(before) if before.tag_ in ("NN", "NNS") and (after is None or after.tag_ != "CC") else None
            beside = opens is not None and (opens.i == 0 or opens.nbor(-1).lower_ in (",", "with"))
            return Hint("walking", "VBG", base) if goes or placed or apart or beside else None
        wants = after is not None and after.tag_ in ("DT", "PRP$", "PRP", "CD")
        able = lives or words.has("motion", base) or words.has("things_do", base) or not words.sort(low) or not wants
        return Hint("take" if wants else "go", "VB", base) if doer and shown and able and low == base else None

    def _hint(self, token: Token, base: str, *, named: bool, told: bool) -> Hint | None:
        """Return what to put in place of one word, if it must be another part of speech.

        named: a name stands before it. told: the sentence has a verb.
        """
        found = self._no_deed(token, base, told=told) or self._shown_beside(token, base)
        found = found or self._told_deed(token, base, named=named, told=told)
        return found or self._deed_of_now(token, base, named=named, told=told)

    def _no_deed(self, token: Token, base: str, *, told: bool) -> Hint | None:
        """Return what to put in place of a thing, a look or a "round" that was taken for a deed."""
        before, after, tag, low = token.nbor(-1), _after(token), token.tag_, token.lower_
        counted = before.tag_ in ("DT", "CD") or (before.dep_ == "pobj" and not _has_doer(token))
        if tag == "VBZ" and told and not token.is_stop and counted and not _numbers(before):
            return Hint("things", "NNS", base)  # "both chairs", "from the church steps"
        if tag == "VBG" and before.text == "," and before.i > 1 and after is not None and after.tag_ == "NN":
            first, opens_it = before.nbor(-1), before.nbor(-2)
            if first.tag_ == "JJ" and opens_it.tag_ in ("DT", "PRP$"):
                return Hint("big", "JJ", low)  # "the cold, driving rain"
        held = tag == "VBZ" and before.text == "," and self._words.sort(base) == "body"
        if held and after is not None and after.tag_ == "IN":
            return Hint("things", "NNS", base)  # "She waited, hands behind her back"
        if tag == "VB" and before.lower_ == "to" and before.i and before.nbor(-1).lower_ == low:
            return Hint("place", "NN", low)  # "from side to side", "from hedge to hedge"
        if tag in ("VB", "VBP") and self._is_joined_thing(token):
            return Hint("paint", "NN", low)
        placed = before.tag_ in ("NN", "NNS", "VBD", "VBN", "VBG", "PRP", "RB", ",", "CC")
        placed = placed and (tag in ("VB", "VBP") or _determines(after))
        if low == "round" and tag != "IN" and placed and after is not None:
            return Hint("around", "IN", low)  # "a towel round his neck", "crowded round the bench"
        return Hint("things", "NNS", low[:-1]) if self._is_row_of_things(token) else None

    def _is_row_of_things(self, token: Token) -> bool:
        """Tell whether what stands in a told past as if it were a deed of now is one of several things: "the lifeboat,
        the crab pots and the mast"."""
        low = token.lower_
        thing = low.endswith("s") and self._words.sort(low[:-1]) not in ("", "abstract", "time", "feeling")
        thing |= low.endswith(("ers", "ors"))
        if not (token.tag_ == "VBZ" and thing and token.nbor(-1).tag_ == "NN" and low not in _HELPS):
            return False
        tags = {one.tag_ for one in token.doc if one != token}
        return "VBD" in tags and not tags & {"``", "VBZ", "VBP"}

    def _shown_beside(self, token: Token, base: str) -> Hint | None:
        """Return what to put in place of a look or a noun of which the words beside it show what it is."""
        before, after, tag, low, words = token.nbor(-1), _after(token), token.tag_, token.lower_, self._words
        helped = _has_helper(token)
        if tag == "JJ" and low.endswith("ing") and helped:
            return Hint("walking", "VBG", base)  # "had been diving"
        if tag == "JJ" and low.endswith("ed") and _has_doer(token) and not helped and token.dep_ in ("conj", "ROOT"):
            return Hint("walked", "VBD", base)  # "somebody tittered"
        if self._known_thing(token, base):
            return Hint("thing", "NN", low)
        starts = before.i > 0 and before.lower_ == "to" and before.nbor(-1).tag_ in _FINITE
        if starts and words.group("phase", before.nbor(-1).lemma_) is not None and tag == "NN" and base == low:
            return Hint("go", "VB", base)  # "begins to ache"
        if low in words.sets["colours"] and tag == "NN" and after is not None and after.tag_ in ("NN", "NNS"):
            return Hint("big", "JJ", low)  # "a thin grey wolf"
        schooled = tag == "JJ" and low.endswith("ed") and words.sort(before.lower_) == "person" and _opens(before)
        if schooled and after is not None and after.tag_ in ("VBG", "TO", "DT"):
            return Hint("began", "VBD", base)  # "a schoolgirl tried barking"
        return None

    def _told_deed(self, token: Token, base: str, *, named: bool, told: bool) -> Hint | None:
        """Return what to put in place of a past form that was taken for a noun or a look."""
        before, after, tag, low = token.nbor(-1), _after(token), token.tag_, token.lower_
        noun, put = tag in _NOUNS, "took" if _takes(after) else "walked"
        beside = before.tag_ in ("CC", ",", "NN", "NNS", "CD") or before.lower_ in _SOME
        if noun and low in self._past and (named or _is_doer(before) or beside):
            return Hint(put, "VBD", self._past[low])
        whole = _opens(before) is not None and (after is None or after.is_punct) and base == low
        whole = whole and noun and _has_doer(token) and not _has_helper(token)
        if whole and (token.dep_ == "advcl" or (token.dep_ == "ROOT" and not told)):
            return Hint("fell", "VBD", base)  # "The balloon burst"
        if tag == "VBN" and token.dep_ == "acl" and not told and _may_follow(after) and low not in _CALLED:
            return Hint(put, "VBD", self._past.get(low) or base)
        return None

    def _deed_of_now(self, token: Token, base: str, *, named: bool, told: bool) -> Hint | None:
        """Return what to put in place of a present form that was taken for a noun or a look."""
        before, after, tag, low = token.nbor(-1), _after(token), token.tag_, token.lower_
        around, opens, wants = _segment(token), _may_follow(after), _takes(after)
        if not base or tag not in _NOUNS or any(one.tag_ in _FINITE for one in around):
            return None
        third, joined = low.endswith("s") and low != base, before.tag_ == "CC" and token.dep_ == "conj"
        bare = joined and tag == "NN" and base == low and not list(token.lefts)
        if bare and opens and _opens(token.head) is not None and token.doc[:].root.tag_ == "VBP":
            return Hint("go", "VBP", base)  # "I open my mouth and roar"
        if _is_doer(before):
            return Hint("take" if wants else "go", "VBP", base)
        subject = (before.tag_ == "NN" and (tag == "NNS" or not told)) or (before.tag_ == "JJ" and not told)
        subject = subject and any(one.tag_ in ("DT", "PRP$") for one in around)
        subject = subject and not any(one.tag_ == "VBD" for one in token.doc)
        joined = joined and tag == "NNS" and (_determined(token.head) or wants or token.head.tag_ == "VBZ")
        joined = joined and any(one.tag_ == "VBZ" for one in token.doc)
        if third and ((opens and (named or subject)) or joined):
            return Hint("takes" if wants else "goes", "VBZ", base)
        row = not told and not third and tag in ("NN", "NNS") and any(one.tag_ == "CC" for one in token.doc[: token.i])
        if row and opens and before.tag_ in ("NN", "NNP"):
            return Hint("took" if wants else "walked", "VBP", base)
        return None

    def _is_joined_thing(self, token: Token) -> bool:
        """Whether what stands in a told past as if it were a deed of now is one more thing: "came with a sack and chalk
        on his gloves"."""
        low, head, words = token.lower_, token.head, self._words
        past = token.dep_ == "conj" and head.tag_ == "VBD" and token.nbor(-1).tag_ == "CC"
        now = any(one.tag_ in ("VBP", "VBZ", "``", "MD", "TO") for one in token.doc if one != token)
        return past and not now and low not in _SAME_PAST and words.sort(low) not in ("", "abstract", "time", "feeling")

    def _known_thing(self, token: Token, base: str) -> bool:
        """Whether what was taken for a verb or a look is a thing, an animal or somebody: "takes the silver ring", "a
        seal pup on the stones", "found a hermit, old and blind"."""
        low, tag, before, words = token.lower_, token.tag_, token.nbor(-1), self._words
        sort, first = words.sort(low), _opens(before) if before.tag_ in _PHRASE else None
        after = _after(token)
        if first is None or (after is not None and after.tag_[:2] == "NN"):
            return False
        if tag in ("VB", "VBP") and before.tag_ == "JJ" and first.tag_ == "DT":
            return True  # "on the third try"
        if sort in ("", "abstract", "time", "feeling"):
            return False
        if tag == "JJ":
            alone = before.tag_ in ("DT", "JJ") and (after is None or after.is_punct)
            return sort in ("person", "animal", "being") and alone
        early = any(one.tag_ in ("VBD", "VBZ", "VBP") for one in token.doc[: first.i])
        odd = tag == "VBG" and not low.endswith("ing")
        pup = tag in ("VB", "VBP") and base == low and not words.has("things_do", base) and before.tag_ != "DT"
        alive = words.sort(before.lemma_) in ("person", "body") or before.tag_ == "NNP"
        return early and (odd or (pup and not alive))


_SAME_PAST = frozenset(
    (
        "put",
        "cut",
        "let",
        "set",
        "hit",
        "shut",
        "read",
        "beat",
        "hurt",
        "cast",
        "burst",
        "spread",
        "split",
        "cost",
        "bet",
    )
)
"""Verbs whose past is spelt as their present is."""
_CALLED = frozenset(("called", "named"))
_HELPS = frozenset(("is", "has", "does", "was", "'s"))
_FINITE = frozenset(("VBD", "VBZ", "VBP", "MD", "VB"))
_NO_NAME = frozenset(("JJ", "RB", "VB", "VBP", "VBN", "VBD", "NN", "NNS", "FW"))
_AFTER_VERB = frozenset(
    ("DT", "IN", "TO", "RB", "RP", "PRP", "PRP$", "NNP", "CC", ",", ".", "CD", "JJ", "NNS", "NN", "''")
)
_DOERS = frozenset(("i", "he", "she", "we", "they"))
_APART = frozenset(("advcl", "appos", "dep", "conj", "prep", "npadvmod"))
_NOUNS = frozenset(("NN", "NNS", "JJ", "NNP", "NNPS"))
_PHRASE = frozenset(("DT", "PRP$", "JJ", "NN", "POS", "NNP"))
_SOME = frozenset(("some", "others", "all", "both"))
_SHORT = 2
_TIMED = re.compile(
    r"(?:\b(?:half|quarter) (?:past|to) \w+|\b(?:New Year's|Christmas|Midsummer|Midsummer's) Eve|^Soon|^[Tt]hat \w+) "
    r"(?=only |half |two |three |the |my |our |his |her |I |we |he |she |they |one )"
)
"""Times that open a clause and that the parser takes for a part of what follows: "by half past ten only two"."""
_ANYBODY = ("nobody", "somebody", "someone", "everybody", "everyone")
_CLOCK = ("at", "by", "before", "after", "until")
_AT_LAST = ("at last", "at first", "at once")


class Hint(NamedTuple):
    """Another word with which a sentence is parsed again, and what the word in its place then is."""

    word: str
    tag: str
    lemma: str


def _numbers(token: Token) -> bool:
    """Whether a number belongs to a name with which the sentence begins: "Unit 40 reads the letter"."""
    if token.i != 1 or not token.text.isdigit():
        return False
    name = token.nbor(-1)
    return name.text[0].isupper() and name.tag_[:2] == "NN"


def _opens(noun: Token) -> Token | None:
    """The article or owner with which a noun's phrase begins, right before it or its adjectives; None for none."""
    first = noun
    while first.i and first.tag_ not in ("DT", "PRP$") and first.nbor(-1).tag_ in _PHRASE:
        first = first.nbor(-1)
    bare = first == noun and first.i and first.nbor(-1).text == ","  # "rain dripping from his hat"
    return first if bare or first.tag_ in ("DT", "PRP$", "NNP") else None


def _after(token: Token) -> Token | None:
    """Return the word behind one."""
    return token.nbor(1) if token.i + 1 < len(token.doc) else None


def _has_doer(token: Token) -> bool:
    """Tell whether a word has a subject."""
    return any(child.dep_ in ("nsubj", "nsubjpass") for child in token.children)


def _has_helper(token: Token) -> bool:
    """Tell whether a word has a helping verb."""
    return any(child.dep_ in ("aux", "cop") for child in token.children)


def _is_doer(token: Token) -> bool:
    """Tell whether a word is a pronoun that a deed follows."""
    return token.lower_ in _DOERS and token.tag_ == "PRP"


def _may_follow(token: Token | None) -> bool:
    """Tell whether a word may stand right behind a verb, as the end of a sentence may."""
    return token is None or token.tag_ in _AFTER_VERB


def _takes(token: Token | None) -> bool:
    """Tell whether a verb before a word has an object in it."""
    return token is not None and token.tag_ in ("DT", "PRP$", "NNP", "PRP", "NNS", "CD", "JJ", "NN")


def _determines(token: Token | None) -> bool:
    """Whether a phrase begins with a word: "the", "his", "Anna"."""
    return token is not None and token.tag_ in ("DT", "PRP$", "NNP")


def _segment(token: Token) -> list[Token]:
    """The words around one up to the next comma or "and", without it."""
    doc, begin, end = token.doc, token.i, token.i
    while begin > 0 and doc[begin - 1].tag_ not in ("CC", ",", ":", "``", "''"):
        begin -= 1
    while end + 1 < len(doc) and doc[end + 1].tag_ not in ("CC", ",", ".", ":", "``", "''"):
        end += 1
    return [one for one in doc[begin : end + 1] if one.i != token.i]


def _determined(token: Token) -> bool:
    return token.pos_ == "PRON" or any(child.tag_ in ("DT", "PRP$") for child in token.children)


def _unparted(doc: Doc, words: Words) -> frozenset[int]:
    """The words before which a comma helps the parser, which took them into the phrase that opens a clause: "by morning
    Rosa left", "on the day of the race the other children came", "by ten o'clock strangers played"."""
    found = {token.i for token in doc for timed in _TIMED.finditer(doc.text) if token.idx == timed.end()}
    for first in doc:
        opens = first.i == 0 or (first.nbor(-1).tag_ == "CC" and first.tag_ == "IN")
        if not opens or first.tag_ not in ("IN", "DT", "PDT", "CD", "RB"):
            continue
        for token in doc[first.i + 2 :]:
            before = token.nbor(-1)
            if token.is_punct or token.tag_ in _FINITE or before.tag_ in _FINITE:
                break
            hour = before.lower_ == "o'clock" and before.head.i >= token.i
            name = (token.tag_, token.pos_) == ("NNP", "PROPN")
            at_last = before.i == first.i + 1 and f"{first.lower_} {before.lower_}" in _AT_LAST
            starts = (
                at_last or token.tag_ in ("DT", "PRP$") or token.lower_ in _DOERS or name or token.lower_ in _ANYBODY
            )
            noun = (before.tag_ in ("NN", "NNS") or at_last) and before.text.islower()
            inside = starts and noun and any(first.i <= up.i < token.i for up in token.ancestors)
            told = words.is_time(before.lower_, "NOUN") or at_last
            told = told or (before.tag_ == "CD" and first.lower_ in ("at", "in"))  # "at half past four Oscar sat"
            named = name or token.lower_ in _ANYBODY or (token.tag_ == "JJ" and token.head.tag_ == "NNP")
            inside = inside or (named and told and before.head.i >= token.i)
            clock = before.tag_ == "CD" and before.i > 1 and before.nbor(-1).lower_ in _CLOCK
            hour |= clock and (name or token.tag_ in ("DT", "PRP$"))  # "every morning at six Ludmila climbs"
            if hour or (inside and any(one.tag_ in ("VBD", "MD") for one in doc[token.i :])):
                found.add(token.i)
                break
    return frozenset(found)


NAME = "PERSON"  # the kind of entity that a name is which is a word, too
_NAMES = ("Peter", "Anna", "Thomas", "Mary")  # what stands for them while a sentence is parsed


def _named(doc: Doc, names: Collection[str]) -> dict[int, Hint]:
    """The words of a sentence that are names there, and the name in whose place each is parsed."""
    found = {at: name for name in names for at in names_at(name, doc.text, known=True)}
    tokens = [token for token in doc if found.get(token.idx) == token.text]
    return {token.i: Hint(_NAMES[at % len(_NAMES)], "NNP", token.text) for at, token in enumerate(tokens)}


def _with(doc: Doc, hints: Mapping[int, Hint], parted: Collection[int]) -> Doc:
    """The sentence with other words in some places, and commas before some, not parsed yet."""
    words: list[tuple[str, bool]] = []
    for token in doc:
        words += [(",", True)] if token.i in parted else []
        words.append((hints[token.i].word if token.i in hints else token.text, bool(token.whitespace_)))
    made = type(doc)(doc.vocab, words=[word for word, _ in words], spaces=[space for _, space in words])
    for token in made:
        token.is_sent_start = token.i == 0
    return made


def _renamed(parsed: Doc, doc: Doc, hints: Mapping[int, Hint], parted: Collection[int]) -> Doc:
    """A parsed sentence with its own words again, without the commas put in."""
    added = {at + more for more, at in enumerate(sorted(parted))}
    kept = [token for token in parsed if token.i not in added]
    place = {token.i: at for at, token in enumerate(kept)}
    return type(doc)(
        doc.vocab,
        words=[token.text for token in doc],
        spaces=[bool(token.whitespace_) for token in doc],
        heads=[place.get(token.head.i, at) for at, token in enumerate(kept)],
        deps=[token.dep_ for token in kept],
        pos=["VERB" if at in hints and hints[at].tag[:2] == "VB" else token.pos_ for at, token in enumerate(kept)],
        tags=[hints[at].tag if at in hints else token.tag_ for at, token in enumerate(kept)],
        lemmas=[hints[at].lemma if at in hints else token.lemma_ for at, token in enumerate(kept)],
    )


@lru_cache(maxsize=1)
def load_parser() -> Parser:
    """Return the one parser of this process."""
    return Parser()
