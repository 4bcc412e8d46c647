"""The parser: spaCy with the model that is shipped beside this file, loaded when it is first needed."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import CorruptEntryError

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

__all__ = ["MODEL_SHA256", "Parser", "load_parser", "model_sha256"]

MODEL_SHA256 = "9dbd3281ca948d5d608a528bf9279708cd8a8a29d56b1fa0ec846b036ccdbdb4"
"""Of the files of the folder `model` (en_core_web_sm 3.8.0 without its parts for entities and sentences)."""
_HYPHENED = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_UNUSED = ("ner", "senter")


def _folder() -> Path:
    return Path(str(resources.files("katha.text").joinpath("model")))


def model_sha256() -> str:
    """Return the hash of the model's files, in the order of their names."""
    digest, folder = hashlib.sha256(), _folder()
    for path in sorted(item for item in folder.rglob("*") if item.is_file() and item.suffix != ".pyc"):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@contextmanager
def _without_torch() -> Iterator[None]:
    """Hide torch while spaCy is imported: it loads torch where that is installed, for nothing that this model needs,
    and takes four seconds and 500 MB more."""
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if hidden and sys.modules.get("torch") is None:
            sys.modules.pop("torch", None)


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
        with _without_torch():
            import spacy

            self._nlp: Language = spacy.load(_folder(), exclude=list(_UNUSED))

    def parse(self, sentences: Iterable[str]) -> list[Doc]:
        """Return one tree for each sentence."""
        docs = [self._nlp.make_doc(sentence) for sentence in sentences]
        for doc in docs:
            with doc.retokenize() as merging:
                # "co-pilot" and "seven-year-old" are words; the tokenizer parts them.
                for match in _HYPHENED.finditer(doc.text):
                    span = doc.char_span(*match.span())
                    if span is not None and len(span) > 1:
                        merging.merge(span)
            for token in doc:
                token.is_sent_start = token.i == 0
        parsed = list(self._nlp.pipe(docs))
        lemmatizer: Any = self._nlp.get_pipe("lemmatizer")
        verbs: Collection[str] = lemmatizer.lookups.get_table("lemma_index")["verb"]
        for doc in parsed:
            if not any(token.tag_ in _FINITE for token in doc):
                _find_verb(doc, verbs)
        return parsed


_FINITE = frozenset(("VBD", "VBZ", "VBP", "MD", "VB"))


def _find_verb(doc: Doc, verbs: Collection[str]) -> None:
    """Give a sentence without a verb the noun that must be one: "The crab bites the crane" is no list of two things.

    That is a plural right after the singular noun that it was joined to ("crab bites"), or, of several doers, the noun
    that ends the row ("Ann and the goalkeeper hug").
    """
    for token in doc:
        before = doc[token.i - 1] if token.i else token
        joined = (
            before.head == token and before.dep_ in ("compound", "amod", "nmod", "nsubj") and before.i == token.i - 1
        )
        base = token.lemma_.lower()
        if not joined or token.pos_ not in ("NOUN", "PROPN") or base not in verbs:
            continue
        row = token.dep_ == "conj" and token.tag_ in ("NN", "NNP")
        if not row and (token.tag_ not in ("NNS", "NNPS") or token.dep_ not in ("ROOT", "conj")):
            continue
        after = doc[token.i + 1] if token.i + 1 < len(doc) else None
        if after is None or after.pos_ not in (
            "ADP",
            "DET",
            "PUNCT",
            "ADV",
            "PRON",
            "PROPN",
            "PART",
            "NUM",
            "ADJ",
            "NOUN",
        ):
            continue
        _make_verb(token, before, row)
        return


def _make_verb(token: Token, subject: Token, row: bool) -> None:
    """Turn a noun into the verb of its sentence, `subject` being who does it: the last of a row, or alone."""
    first = token.head
    for child in list(token.children):
        if child.i < subject.i and child.dep_ in ("det", "amod", "compound", "poss", "nummod", "nmod"):
            child.head = subject
        elif child.i > token.i and child.dep_ in ("appos", "conj", "nmod", "dep", "npadvmod") and child.pos_ != "VERB":
            child.dep_ = "dobj"
    token.pos_, token.tag_, token.lemma_ = "VERB", "VBP" if row else "VBZ", token.lemma_.lower()
    if subject.pos_ == "ADJ":
        subject.pos_, subject.tag_, subject.lemma_ = "NOUN", "NN", subject.lower_
    subject.dep_ = "nsubj"
    if row:
        subject.head, subject.dep_ = first, "conj"
        top = first
        while top.dep_ in ("conj", "appos") and top.head.i != top.i:
            top.dep_ = "conj"
            top = top.head
        token.head, token.dep_ = token, "ROOT"
        top.head, top.dep_ = token, "nsubj"
        for child in list(top.children):
            if child.i > token.i:
                child.head = token
    elif token.dep_ == "conj" and first.pos_ in ("NOUN", "PROPN") and first.i < subject.i:
        # "The cake, the tree bites ...": whatever it hung on is no verb either.
        token.head, token.dep_ = token, "ROOT"
        first.head, first.dep_ = token, "dep"


@lru_cache(maxsize=1)
def load_parser() -> Parser:
    """Return the one parser of this process."""
    return Parser()
