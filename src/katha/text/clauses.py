"""The clauses of one parsed sentence: which words fill which role of which verb.

A verb that only says how another verb happens ("began to", "could", "wanted to") is folded into that verb's clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from katha.text.words import Words, load_words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from katha.text.types import RoleName, Standing

__all__ = ["Clause", "Filler", "clauses_of", "conjuncts"]

_NOT_CLAUSE = frozenset(
    ("acomp", "aux", "auxpass", "amod", "compound", "prep", "det", "case", "punct", "nmod", "npadvmod", "mark", "prt")
)
_AT_LAST = frozenset(("at last", "at first", "at once", "at least", "at half", "at quarter"))
_MODALS = {"could": "can", "ca": "can", "might": "may", "shall": "will", "wo": "will", "ought": "should", "'ll": "will"}
_SPAN = frozenset(("after", "before", "during", "until", "since"))
_WHOM = frozenset(("him", "her", "me", "us", "them", "you"))
_SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj", "expl"))


@dataclass
class Filler:
    """A word in a role; `token` is the head of its phrase, or an adverb."""

    role: RoleName
    token: Token
    preposition: str = ""


@dataclass
class Clause:
    """One clause. `chain` runs from the outermost folded verb to the verb itself."""

    verb: Token
    chain: list[Token]
    lemma: str
    particle: str = ""
    fillers: list[Filler] = field(default_factory=list)
    state: list[Token] = field(default_factory=list)
    manner: list[str] = field(default_factory=list)
    manner_words: list[str] = field(default_factory=list)
    time: list[str] = field(default_factory=list)
    reason: list[str] = field(default_factory=list)
    negated: bool = False
    modality: str = ""
    phase: str = ""
    standing: Standing = "told"
    passive: bool = False
    existential: bool = False
    imperative: bool = False
    parent: Clause | None = None
    link: str = ""

    def of(self, *roles: str) -> list[Token]:
        """Return the heads in these roles."""
        return [filler.token for filler in self.fillers if filler.role in roles]

    def add(self, role: RoleName, tokens: Sequence[Token], preposition: str = "") -> None:
        """Put words into a role, each once."""
        for token in tokens:
            if not any(filler.token.i == token.i and filler.role == role for filler in self.fillers):
                self.fillers.append(Filler(role, token, preposition))


def conjuncts(token: Token) -> list[Token]:
    """Return a noun with the nouns joined to it."""
    found = [token]
    for child in token.children:
        if child.dep_ in ("conj", "appos") and child.pos_ in ("NOUN", "PROPN", "PRON", "NUM"):
            listed = token.tag_ not in ("NNS", "NNPS") and any(word.dep_ == "cc" for word in child.children)
            joined = child.dep_ == "conj" or listed
            found += conjuncts(child) if joined else []
    return found


def _child(token: Token, *deps: str) -> Token | None:
    return next((child for child in token.children if child.dep_ in deps), None)


def _has_to(token: Token) -> bool:
    """Whether a verb is an infinitive with "to"."""
    return any(child.lower_ == "to" and child.dep_ == "aux" for child in token.children)


def _marks(token: Token) -> set[str]:
    """The words that tie a clause to another: "because", "so that", "when"."""
    return {child.lower_ for child in token.children if child.dep_ in ("mark", "advmod")}


def _lower(token: Token) -> str:
    return str(token.lemma_.lower())


_CLOSED = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")


def _verb_lemma(token: Token, words: Words) -> str:
    """The verb's lemma; "hoped" is no form of "hop", which doubles its last letter."""
    lemma, form = _lower(token), token.lower_
    if form in (f"{lemma}ed", f"{lemma}ing") and _CLOSED.fullmatch(lemma):
        return f"{lemma}e"
    return words.lemmas.get(lemma, lemma)


def repair(doc: Doc, quoted: Sequence[bool], words: Words) -> None:
    """Put right what the parser gets wrong again and again in stories.

    A subject taken for an adverbial ("The wolf huffed"), a subject after "said" taken for its object, two objects taken
    for a small clause ("made her a crown"), a preposition taken for a particle ("chased up a tree").
    """
    _repair_opening(doc)
    for token in doc:
        _repair_subjects(token, words)
        if token.dep_ == "ROOT" and token.pos_ in ("NOUN", "PROPN") and words.has("past_forms", token.lower_):
            token.pos_, token.tag_, token.lemma_ = "VERB", "VBD", words.lemmas.get(token.lower_, token.lower_)
            late = _child(token, "appos")
            if late is not None:
                late.dep_ = "dobj"
        if token.lower_ == "home" and token.dep_ == "pobj" and (ride := _child(token, "compound")) is not None:
            ride.head, ride.dep_ = token.head, "pobj"
            token.dep_ = "nmod"
        finite = token.pos_ in ("VERB", "AUX") and token.tag_ in ("VBD", "VBZ", "VBP")
        if finite and not quoted[token.i] and words.has("say", _lower(token)):
            for child in token.children:
                if child.dep_ == "nsubj" and quoted[child.i]:
                    child.dep_ = "intj"
        bare = not any(
            child.dep_ in _SUBJECTS and (child.dep_ != "expl" or _lower(token) == "be") for child in token.children
        )
        if finite and bare and token.dep_ != "conj":
            _find_subject(token, words)
        if token.dep_ == "ccomp" and token.pos_ in ("NOUN", "PROPN"):
            owner = _child(token, "nsubj")
            if owner is not None and owner.i == token.i - 1 and owner.tag_ in ("NN", "NNP") and list(owner.lefts):
                # "found a teddy bear": one thing, not a bear for a teddy
                for child in list(owner.lefts):
                    child.head = token
                owner.dep_, token.dep_ = "compound", "dobj"
            elif owner is not None and token.head.i < owner.i:
                owner.head, owner.dep_ = token.head, "dative"
                token.dep_ = "dobj"
        if token.dep_ == "dobj" and words.has("give", _lower(token.head)):
            _split_objects(token)
        if token.dep_ == "dobj" and token.pos_ == "PROPN" and words.has("naming", _lower(token.head)):
            _split_name(token)
        _repair_objects(token, words)
        if token.dep_ == "prt" and words.has("not_particle", token.lower_) and token.i + 1 < len(doc):
            thing = _child(token.head, "dobj")
            passive = any(child.dep_ == "nsubjpass" for child in token.head.children)
            moves = words.has("motion", _lower(token.head)) and not words.has("carrying", _lower(token.head))
            if thing is not None and (passive or moves) and thing.left_edge.i == token.i + 1:
                token.dep_, thing.head, thing.dep_ = "prep", token, "pobj"


def _repair_opening(doc: Doc) -> None:
    """Part "At last" from the subject behind it: "At last Grandpa sent a message"."""
    if len(doc) < len(("at", "last", "who", "does")) or f"{doc[0].lower_} {doc[1].lower_}" not in _AT_LAST:
        return
    first, noun, verb = doc[1], doc[1].head, doc[:].root
    if noun.i > 1 and noun.dep_ == "pobj" and noun.head.i == 0 and verb.pos_ == "VERB" and verb.i > noun.i:
        late = next((child for child in verb.children if child.dep_ == "nsubj" and child.i > verb.i), None)
        if late is not None:
            late.dep_ = "dobj"
        if _child(verb, "nsubj") is None:
            first.head, first.dep_ = doc[0], "pobj"
            noun.head, noun.dep_ = verb, "nsubj"


def _repair_subjects(token: Token, words: Words) -> None:
    """Give subjects to the verbs that they were taken from: "and it was raining", "Emil and I hid", "her husband Jon
    slept", "held the string and Bo ran", "On the way it broke down"."""
    if token.dep_ in _SUBJECTS and token.head.dep_ in ("aux", "auxpass"):
        token.head = token.head.head
    subjects = [child for child in token.children if child.dep_ == "nsubj"]
    if token.dep_ == "ROOT" and token.pos_ == "ADP" and (noun := _child(token, "pobj")) is not None:
        verb = _child(noun, "relcl")
        if verb is not None and _child(verb, "nsubj") is not None:
            verb.head, verb.dep_ = verb, "ROOT"
            token.head, token.dep_ = verb, "prep"
    late = _child(token, "relcl") if token.dep_ == "ROOT" and _is_time(token, words) else None
    if late is not None and _child(late, "nsubj") is not None:
        late.head, late.dep_ = late, "ROOT"  # "One winter evening a woman knocked"
        token.head, token.dep_ = late, "npadvmod"
    _join_name(token, subjects, words)
    if len(subjects) > 1:
        first, second = subjects[:2]
        filled = _child(first, "acl")
        between = first.doc[first.i + 1 : second.i].text
        if second.tag_ == "NNP" and (not between or (between == "," and first.tag_ == "NNS")):
            second.head, second.dep_ = first, "appos"
        elif filled is not None and filled.tag_ == "VBN" and filled.i < second.i and _child(first, "cc") is not None:
            filled.head, filled.dep_, filled.tag_, first.head = token, "advcl", "VBD", filled
    elif subjects and subjects[0].i > 1 and subjects[0].nbor(-1).tag_ == "CC":
        before = subjects[0].nbor(-2)
        if before.head == token and before.tag_ == "NNP" and before.dep_ in ("npadvmod", "dep"):
            before.dep_, subjects[0].head, subjects[0].dep_ = "nsubj", before, "conj"
    if token.dep_ == "ccomp" and subjects and token.head.i < subjects[0].i and token.tag_ in ("VBD", "VBZ", "VBP"):
        other = _child(subjects[0], "conj")
        known = any(words.has(name, _lower(token.head)) for name in ("fact", "report", "say", "think", "wish", "make"))
        known = known or words.has("have", _lower(token)) or _child(token.head, "dobj") is not None
        if other is not None and not known:
            subjects[0].head, subjects[0].dep_ = token.head, "dobj"
            other.head, other.dep_, token.dep_ = token, "nsubj", "conj"


def _join_name(verb: Token, subjects: Sequence[Token], words: Words) -> None:
    """Give a name to the kin before it: "His grandson Tim sat down"."""
    for child in verb.children:
        stray = child.tag_ == "NNP" and child.dep_ in ("npadvmod", "dep", "advmod", "oprd")
        for subject in subjects if stray else ():
            if child.i == subject.i + 1 and words.has("kin", _lower(subject)) and child.i < verb.i:
                child.head, child.dep_ = subject, "appos"
                return


def _split_objects(thing: Token) -> None:
    """Part two objects that were taken for one noun phrase: "served the guests hot soup"."""
    first = _child(thing, "compound")
    between = [child for child in thing.children if child.dep_ == "amod" and first is not None and child.i > first.i]
    if first is not None and first.tag_ == "NNS" and between:
        for child in list(thing.children):
            if child.i < first.i:
                child.head = first
        first.head, first.dep_ = thing.head, "dative"


def _repair_objects(token: Token, words: Words) -> None:
    """Put right what belongs to an object: "put on his coat", "painted the fence green", "threw his sister the towel",
    "saw a fox cross the line"."""
    below, beside = _child(token, "pobj"), _child(token, "compound")
    verb = token.head
    if token.dep_ == "dative" and token.pos_ == "PRON" and _child(verb, "dobj") is None:
        token.dep_ = "dobj"  # "gave it all to him"
    beside_verb = token.dep_ == "appos" and verb.pos_ == "VERB" and token.i > verb.i and token.pos_ == "NOUN"
    if beside_verb and _child(verb, "dobj") is None and "," not in verb.doc[verb.i : token.i].text:
        token.dep_ = "dobj"  # "the mouse bites the rope"
    if token.dep_ == "dobj" and words.has("hand_over", _lower(verb)) and _child(verb, "dative") is None:
        whose, doer = _child(token, "poss"), _child(verb, "nsubj")
        told = whose is not None and whose.lower_ == "her" and words.sort(_lower(token)) not in ("body", "person")
        other = doer is not None and doer.lower_ != "she" and not any(c.lower_ == "to" for c in verb.children)
        if whose is not None and told and other:
            whose.head, whose.dep_, whose.tag_ = verb, "dative", "PRP"  # "gave her water"
    if token.dep_ == "prt" and below is not None:
        if _child(verb, "dobj") is None:
            below.head, below.dep_ = verb, "dobj"
        else:
            token.dep_ = "prep"
    elif token.dep_ == "dobj" and words.has("colours", token.lower_) and beside is not None:
        for child in [child for child in token.lefts if child.i < beside.i]:
            child.head = beside
        beside.head, beside.dep_ = verb, "dobj"
        token.dep_, token.pos_ = "oprd", "ADJ"
    elif token.dep_ == "npadvmod" and words.has("give", _lower(verb)) and not _is_time(token, words):
        first = _child(verb, "dobj")
        if (
            first is not None
            and verb.i < token.i > first.i
            and words.sort(_lower(first)) in ("person", "animal", "being")
        ):
            first.dep_, token.dep_ = "dative", "dobj"
    elif token.dep_ == "ccomp" and token.tag_ == "VB" and beside is not None and beside.pos_ == "NOUN":
        beside.dep_ = "nsubj"


def _split_name(name: Token) -> None:
    """Part who is named from the name: "They called the puppy Max"."""
    named = _child(name, "compound")
    if named is not None and named.text.islower():
        for child in list(name.children):
            if child.i < named.i:
                child.head = named
        named.head, named.dep_ = name.head, "dobj"
        name.dep_ = "oprd"


def _find_subject(verb: Token, words: Words) -> None:
    stray = [child for child in verb.lefts if child.dep_ in ("npadvmod", "dep", "nmod", "compound", "amod")]
    for child in stray:
        if child.pos_ == "ADJ" and words.sort(child.lower_) in ("person", "animal", "being"):
            child.pos_, child.tag_, child.lemma_ = "NOUN", "NN", child.lower_
    nouns = [child for child in stray if child.pos_ in ("NOUN", "PROPN", "PRON") and not _is_time(child, words)]
    if nouns and verb.pos_ == "VERB":
        nouns[-1].dep_ = "nsubj"
        for child in verb.children:
            if child.dep_ in ("det", "amod") and child.i < nouns[-1].i:
                child.head = nouns[-1]
        return
    before = any(child.dep_ in ("ccomp", "punct", "intj", "dobj") and child.i < verb.i for child in verb.children)
    thing = _child(verb, "dobj", "oprd", "attr", "npadvmod")
    quoted = verb.i > 0 and verb.nbor(-1).text in ('"', ",", "!", "?")
    if thing is None or thing.i < verb.i:
        return
    first = min((child.i for child in verb.subtree if child.dep_ != "punct"), default=verb.i)
    ahead = any(child.dep_ in ("prep", "advmod", "prt", "expl") and child.i < verb.i for child in verb.children)
    moves = words.has("motion", _lower(verb)) or _lower(verb) in ("lie", "stand", "sit", "hang", "appear", "live")
    if (words.has("say", _lower(verb)) and (before or quoted)) or (ahead and moves and first < verb.i):
        thing.dep_ = "nsubj"


def _is_time(token: Token, words: Words) -> bool:
    return words.is_time(_lower(token), token.pos_)


def _folded(verb: Token, words: Words) -> tuple[Token, str, str, str] | None:
    """The verb that `verb` only modifies: that verb, and modality, phase, "not" or standing that it gives."""
    lemma = _verb_lemma(verb, words)
    inner = _child(verb, "xcomp")
    able = _child(verb, "acomp")
    if lemma == "be" and able is not None and able.lower_ in ("able", "unable", "about"):
        inner = _child(able, "xcomp")
        if inner is not None and able.lower_ == "about":
            return inner, "will", "", "intended"
        if inner is not None:
            return inner, "can", "", "not" if able.lower_ == "unable" else ""
    if inner is None or inner.pos_ not in ("VERB", "AUX") or _child(verb, "dobj", "dative") is not None:
        return None
    if _child(inner, "nsubj") is not None:
        return None
    to = _has_to(inner)
    phase = words.group("phase", lemma)
    if phase is not None:
        return None if phase == "stop" and to else (inner, "", phase, "")
    if lemma == "go":
        going = verb.tag_ == "VBG" and to
        return (inner, "will", "", "intended") if going else None if to else (inner, "", "", "")
    if lemma == "have" and to:
        return inner, "must", "", ""
    if lemma == "come" and not to:
        return inner, "", "", ""
    if lemma == "use" and to:
        return inner, "", "", ""
    for name, modality, mark in (("try", "try", ""), ("manage", "can", ""), ("fail", "try", "not")):
        if words.has(name, lemma) and (to or lemma in ("try", "dare", "help")):
            return inner, modality if lemma not in ("refuse", "help", "remember") else "", "", mark
    if words.has("pretend", lemma) and to:
        return inner, "", "", "imagined"
    if words.has("intend", lemma) and (to or inner.tag_ == "VBG"):
        loved = lemma in ("love", "like", "hate") and inner.tag_ == "VBG"
        return inner, "" if loved else "want", "", "" if loved else "intended"
    return None


def _heads(doc: Doc, words: Words) -> list[Clause]:
    """A clause for each verb that heads one, folded verbs in its chain."""
    found: list[Clause] = []
    folded: dict[int, list[tuple[Token, str, str, str]]] = {}
    for token in doc:
        gerund = token.tag_ == "VBG" and token.dep_ in ("pobj", "nsubj", "dobj", "attr")
        clausal = token.dep_ not in _NOT_CLAUSE or any(child.dep_ in ("nsubj", "nsubjpass") for child in token.children)
        if token.pos_ not in ("VERB", "AUX") or not clausal or gerund:
            continue
        if token.dep_ == "acl" and words.has("naming", _lower(token)):
            continue
        fold = _folded(token, words)
        if fold is not None:
            folded[fold[0].i] = [*folded.pop(token.i, []), (token, *fold[1:])]
            continue
        uppers = folded.get(token.i, [])
        clause = Clause(token, [upper[0] for upper in uppers] + [token], _verb_lemma(token, words))
        for _, modality, phase, mark in uppers:
            clause.modality = clause.modality or modality
            clause.phase = clause.phase or phase
            if mark == "not":
                clause.negated = not clause.negated
            elif mark:
                clause.standing = "imagined" if mark == "imagined" else "intended"
        found.append(clause)
    return found


class _Builder:
    """Fills the clauses of one tree; `quoted` tells which words stand in quotes."""

    def __init__(self, doc: Doc, quoted: Sequence[bool], words: Words) -> None:
        self.words = words
        self.quoted = quoted
        self.clauses = _heads(doc, words)
        self.by_token = {token.i: clause for clause in self.clauses for token in clause.chain}

    def build(self) -> list[Clause]:
        for clause in self.clauses:
            self._parent(clause)
        for clause in sorted(self.clauses, key=self._depth):
            self._auxiliaries(clause)
            self._subjects(clause)
        for clause in self.clauses:
            self._complements(clause)
            for token in clause.chain:
                for child in token.children:
                    self._modifier(clause, child)
        for clause in self.clauses:
            self._share(clause)
            self._negation(clause)
            self._perceived(clause)
            clause.standing = self._standing(clause)
            self._statal(clause)
        return self.clauses

    def _depth(self, clause: Clause) -> int:
        return 0 if clause.parent is None else 1 + self._depth(clause.parent)

    def _parent(self, clause: Clause) -> None:
        top = clause.chain[0]
        head = top.head
        while head.i not in self.by_token and head.dep_ != "ROOT":
            head = head.head
        parent = self.by_token.get(head.i)
        clause.parent = parent if parent is not clause else None
        dep = top.dep_
        mark, to = _marks(top), _has_to(top)
        if dep == "advcl" and (mark & {"because", "since"}):
            clause.link = "because"
        elif dep in ("advcl", "xcomp") and (to or ("so" in mark and "that" in mark)):
            clause.link = "purpose" if dep == "advcl" or not self._controlled(parent) else "content"
        elif dep in ("ccomp", "xcomp"):
            first, last = sorted((top.i, top.head.i))
            beside = dep == "ccomp" and any(token.text == ";" for token in top.doc[first:last])
            clause.link = "" if beside else "content"
        elif dep in ("relcl", "acl"):
            clause.link = "noun"
        else:
            clause.link = dep if dep in ("conj", "advcl", "pcomp") else ""

    def _controlled(self, parent: Clause | None) -> bool:
        if parent is None:
            return False
        lemma = parent.lemma
        return any(self.words.has(name, lemma) for name in ("control", "intend", "make", "report")) or lemma == "be"

    def _auxiliaries(self, clause: Clause) -> None:
        for token in clause.chain:
            for child in token.children:
                word = child.lower_
                if child.dep_ == "auxpass":
                    clause.passive = True
                elif child.dep_ == "prt" and token is clause.verb:
                    clause.particle = f"{clause.particle} {word}".strip()
                elif child.dep_ == "aux" and child.tag_ == "MD":
                    clause.modality = clause.modality or _modality(_lower(child), word)
                elif child.dep_ == "expl" and word == "there":
                    clause.existential = True
        verb = clause.verb
        bare = verb.tag_ == "VBN" and not any(child.dep_ in ("aux", "auxpass") for child in verb.children)
        if bare and (verb.dep_ == "acl" or (verb.dep_ == "advcl" and _child(verb, "nsubj") is None)):
            clause.passive = True
        if bare and verb.dep_ == "conj" and clause.parent is not None and clause.parent.passive:
            clause.passive = _child(verb, "nsubj") is None

    def _subjects(self, clause: Clause) -> None:
        role: RoleName = "patient" if clause.passive else "agent"
        for token in clause.chain:
            subjects = [child for child in token.children if child.dep_ in ("nsubj", "nsubjpass")]
            if len(subjects) > 1 and any(child.pos_ not in ("NOUN", "PROPN") for child in subjects):
                subjects = subjects[:1]
            for subject in subjects:
                clause.add(role, conjuncts(self._antecedent(subject)))
            if subjects:
                return
        clause.add(role, self._borrowed(clause))

    def _antecedent(self, token: Token) -> Token:
        """The noun that "who", "which" or "that" stands for."""
        if token.tag_ in ("WP", "WDT") or (token.lower_ == "that" and token.pos_ in ("PRON", "SCONJ", "DET")):
            node = token.head
            while node.dep_ in ("conj", "xcomp", "ccomp") and node.head is not node:
                node = node.head
            if node.dep_ in ("relcl", "acl") and node.head.i < token.i:
                return node.head
        return token

    def _borrowed(self, clause: Clause) -> list[Token]:
        """The subject that a clause without one has from where it hangs."""
        top = clause.chain[0]
        parent = clause.parent
        if top.tag_ == "VB" and self.quoted[top.i] and (parent is None or not self.quoted[parent.verb.i]):
            clause.imperative = True
            return []
        if top.dep_ in ("acl", "relcl") and top.head.pos_ in ("NOUN", "PROPN", "PRON"):
            to = any(child.lower_ == "to" for child in top.children)
            return conjuncts(top.head) if not to else self._agent_of(parent)
        if parent is None:
            clause.imperative = top.tag_ == "VB" and top.dep_ in ("ROOT", "ccomp")
            return []
        own = top.head.dep_ == "acomp" and top.head.head == parent.verb and self.words.has("intransitive", clause.lemma)
        if top.dep_ == "conj" and (top.head.i in self.by_token or own):  # "was ashamed and slept"
            clause.imperative = parent.imperative
            return parent.of("patient") if parent.passive else parent.of("agent")
        if top.dep_ in ("xcomp", "ccomp"):
            controlled = self.words.has("control", parent.lemma) or self.words.has("make", parent.lemma)
            bare = top.tag_ == "VB" and not any(child.lower_ == "to" for child in top.children)
            if bare and not controlled and (top.dep_ == "ccomp" or self.quoted[top.i]):
                clause.imperative = True
                return []
            objects = parent.of("recipient") or parent.of("patient")
            if objects and (controlled or self.words.has("perceive", parent.lemma)):
                return objects
            late = self._late_objects(parent)
            if late and (controlled or self.words.has("perceive", parent.lemma)):
                return late
        if top.dep_ in ("xcomp", "ccomp", "advcl", "pcomp", "prep", "dobj"):
            return parent.of("patient") if parent.passive else self._agent_of(parent)
        return []

    def _late_objects(self, parent: Clause) -> list[Token]:
        found = _child(parent.verb, "dobj", "dative")
        return conjuncts(found) if found is not None and found.pos_ in ("NOUN", "PROPN", "PRON") else []

    def _agent_of(self, parent: Clause | None) -> list[Token]:
        if parent is None:
            return []
        return parent.of("agent") or (parent.of("patient") if parent.passive else [])

    def _complements(self, clause: Clause) -> None:
        verb, words = clause.verb, self.words
        things = [child for child in verb.children if child.dep_ == "dobj" and not _is_time(child, words)]
        if len(things) == 2 and words.has("give", clause.lemma):
            things[0].dep_ = "dative"
        for child in verb.children:
            noun = child.pos_ in ("NOUN", "PROPN", "PRON", "NUM", "DET", "ADJ")
            if child.dep_ == "dobj" and noun:
                self._object(clause, child)
            elif child.dep_ == "dative":
                heads = [child] if noun else [word for word in child.children if word.dep_ == "pobj"]
                whom = [each for head in heads for each in conjuncts(head)]
                clause.add("recipient", whom, "" if noun else child.lower_)
            elif child.dep_ in ("acomp", "attr", "oprd") or (child.dep_ == "advmod" and child.pos_ == "ADJ"):
                self._state(clause, child)
            elif child.dep_ == "ccomp" and child.pos_ == "ADJ" and not any(w.dep_ in _SUBJECTS for w in child.children):
                clause.state.append(child)
        if clause.link == "noun" and clause.chain[0].dep_ == "relcl" and not clause.of("patient"):
            self._gap(clause)

    def _gap(self, clause: Clause) -> None:
        """Give a relative clause without a relative pronoun its noun: "the ball he kicked"."""
        noun = clause.chain[0].head
        subject = {token.i for token in clause.of("agent")}
        bare = not any(child.dep_ in ("attr", "acomp") for child in clause.verb.children)
        where = any(child.lower_ in ("where", "when", "why", "whose") for child in clause.verb.subtree)
        stranded = any(child.dep_ == "prep" and not list(child.children) for child in clause.verb.children)
        if (
            noun.i not in subject
            and not _is_time(noun, self.words)
            and bare
            and not where
            and not stranded
            and clause.lemma != "be"
        ):
            clause.add("patient", [noun])

    def _object(self, clause: Clause, child: Token) -> None:
        words = self.words
        if _is_time(child, self.words) and clause.lemma != "spend":
            clause.time += [_phrase(child)] if not words.has("greet_verbs", clause.lemma) else []
            return
        antecedent = self._antecedent(child)
        if clause.passive and self.words.has("give", clause.lemma):
            # "The queen was given a bird": who is the subject receives.
            for filler in clause.fillers:
                filler.role = "recipient" if filler.role == "patient" else filler.role
        whom = self._lives(child) or words.has("group", _lower(child))
        told = words.has("told_to", clause.lemma) and (whom or child.lower_ in _WHOM)
        clause.add("recipient" if told else "patient", conjuncts(antecedent))
        self._inner_places(clause, child)

    def _inner_places(self, clause: Clause, noun: Token) -> None:
        """A place told with the object: "saw a cat on the roof", "there was a castle on a hill"."""
        for prep in noun.children:
            if prep.dep_ == "prep" and prep.lower_ == "for" and self.words.has("give", clause.lemma):
                self._preposition(clause, prep)
            if prep.dep_ == "prep" and self.words.has("prep_place", prep.lower_):
                target = _child(prep, "pobj")
                sort = self.words.sort(_lower(target)) if target is not None else ""
                worn = ("clothing", "body") if prep.lower_ == "in" else ()
                placed = sort not in ("time", "feeling", "abstract", "", *worn)
                if target is not None and (placed or self.words.is_place(_lower(target))):
                    self._preposition(clause, prep)

    def _state(self, clause: Clause, child: Token) -> None:
        if child.dep_ == "attr" and clause.existential:
            role: RoleName = "agent"
            clause.add(role, conjuncts(child))
            self._inner_places(clause, child)
            return
        if child.pos_ in ("PRON", "DET") and child.tag_ in ("WP", "WDT"):
            return
        if child.dep_ == "attr" and child.i < clause.verb.i and not clause.of("agent"):
            clause.add("agent", conjuncts(child))
            return
        states = [child, *(word for word in child.children if word.dep_ == "conj" and not self._acts(word))]
        clause.state += [word for word in states if word.pos_ not in ("PUNCT",)]

    def _acts(self, token: Token) -> bool:
        """Whether what stands beside a state is a deed, which nobody has done to them: "was ashamed and slept"."""
        return token.tag_ in ("VBD", "VBN") and self.words.has("intransitive", _lower(token))

    def _modifier(self, clause: Clause, child: Token) -> None:
        words, dep, word = self.words, child.dep_, child.lower_
        if dep in ("prep", "agent"):
            self._preposition(clause, child)
        elif dep == "prt" or dep == "advmod":
            self._adverb(clause, child)
        elif dep == "npadvmod":
            if self.quoted[child.i] and not self.quoted[clause.verb.i]:
                return
            if _is_time(child, words):
                clause.time.append(_phrase(child))
            elif words.has("here", word):
                self._place_adverb(clause, child)
            elif child.tag_ == "NNP" or self.quoted[child.i]:
                clause.add("topic", [], "")
        elif dep == "acomp":
            for prep in child.children:
                if prep.dep_ == "prep":
                    self._preposition(clause, prep)

    def _adverb(self, clause: Clause, child: Token) -> None:
        words, word = self.words, child.lower_
        if words.has("here", word):
            self._place_adverb(clause, child)
        elif words.has("time_adverbs", word):
            clause.time.append(word)
        elif child.dep_ == "advmod" and words.has("away", word):
            if not any(part.dep_ == "prep" for part in child.children):
                clause.manner_words.append(word)
            if word in ("away", "back", "off", "out") and not clause.particle and child.i > clause.verb.i:
                clause.particle = word
        elif (child.dep_, child.pos_, child.tag_) == ("advmod", "ADV", "RB") and word not in ("not", "never", "n't"):
            clause.manner.append(word)
        for prep in child.children:
            if prep.dep_ == "prep":
                self._preposition(clause, prep)
            elif prep.dep_ == "npadvmod" and _is_time(prep, words):
                clause.time.append(_phrase(child))

    def _place_adverb(self, clause: Clause, child: Token) -> None:
        moves = self.words.has("motion", clause.lemma)
        clause.add("goal" if moves else "place", [child])

    def _preposition(self, clause: Clause, prep: Token) -> None:
        word = prep.lower_
        if word == "according":
            return
        inner = [child for child in prep.children if child.dep_ in ("prep", "pcomp") and child.pos_ in ("ADP", "SCONJ")]
        for child in inner:
            nested = _child(child, "pobj")
            if nested is not None:
                whole = "of" if child.lower_ == "of" else child.lower_
                self._place_noun(clause, nested, "out" if whole == "of" and word == "out" else child.lower_)
        heads = [child for child in prep.children if child.dep_ == "pobj"]
        for head in heads:
            self._place_noun(clause, head, word)
            if head.dep_ == "pobj":
                for late in head.children:
                    # "across the field, away from the hunters", "to the shop in the village"
                    target = _child(late, "pobj")
                    if late.dep_ == "prep" and late.lower_ == "with" and target is not None and self._lives(target):
                        clause.add("companion", conjuncts(target), "with")  # "stood at the door with Biscuit"
                    placed = late.dep_ == "prep" and self.words.has("prep_place", late.lower_)
                    if placed and target is not None and self.words.is_place(_lower(target)):
                        self._place_noun(clause, target, late.lower_)

    def _lives(self, token: Token) -> bool:
        return token.tag_ == "NNP" or self.words.sort(_lower(token)) in ("person", "animal", "being")

    def _place_noun(self, clause: Clause, head: Token, prep: str) -> None:
        words, lemma = self.words, _lower(head)
        nouns = conjuncts(self._antecedent(head))
        sort = words.sort(lemma)
        alive = self._lives(head) or words.has("group", lemma) or head.pos_ == "PRON"
        phrase = f"{prep} {_phrase(head)}"
        bound = words.has("prepositional", f"{clause.lemma}_{prep}") and clause.particle in ("", "on")
        if bound and not clause.of("patient"):
            after_on = head.head.i > 0 and head.head.nbor(-1).lower_ == "on"
            clause.particle = clause.particle or ("on" if after_on else prep)
            clause.add("patient", nouns)
        elif prep == "by" and clause.passive and not _is_time(head, words):
            clause.add("agent", nouns, prep)
        elif (
            (_is_time(head, words) and prep not in ("to", "with", "from"))
            or (head.pos_ == "NUM" and prep == "at")
            or phrase in _AT_LAST
            or ({prep} <= _SPAN and not alive)
        ):
            whole = " ".join(word.text for word in head.subtree)
            clause.time.append(f"{prep} {whole}" if head.pos_ == "NUM" else phrase)
        elif prep == "with":
            self._with(clause, nouns, head, phrase)
        elif prep == "by" and sort == "vehicle":
            clause.add("instrument", nouns, prep)
        elif prep == "for":
            if alive:
                clause.add("recipient", nouns, prep)
            else:
                clause.reason.append(phrase)
        elif prep == "because":
            clause.reason.append(phrase)
        elif prep in ("like", "as", "without", "despite"):
            clause.manner.append(phrase)
        elif words.has("prep_topic", prep):
            clause.add("topic", nouns, prep)
        else:
            self._local(clause, nouns, prep, alive=alive, phrase=phrase)

    def _with(self, clause: Clause, nouns: list[Token], head: Token, phrase: str) -> None:
        sort = self.words.sort(_lower(head))
        group = self.words.has("group", _lower(head))
        if sort in ("person", "animal", "being") or group or head.pos_ in ("PRON", "PROPN"):
            clause.add("companion", nouns, "with")
        elif sort in ("feeling", "abstract") or _lower(head) in self.words.feelings:
            clause.manner.append(phrase)
        else:
            clause.add("instrument", nouns, "with")

    def _local(self, clause: Clause, nouns: list[Token], prep: str, *, alive: bool, phrase: str) -> None:
        words, lemma = self.words, clause.lemma
        head = nouns[0]
        worn = prep == "in" and words.sort(_lower(head)) == "clothing" and _child(head, "poss") is None
        if worn or (words.has("mood_place", _lower(head)) and prep in ("in", "at", "with", "on")):
            clause.manner.append(phrase)
        elif prep in ("to", "at") and alive and words.has("give", lemma):
            clause.add("recipient", nouns, prep)
        elif words.has("prep_source", prep) or (prep == "out" and lemma not in ("look", "stare", "peer", "lean")):
            clause.add("source", nouns, prep)
        elif (
            prep in ("to", "into", "onto", "towards", "toward", "up")
            or (prep == "at" and alive)
            or (
                words.has("motion", lemma)
                and not clause.state
                and (not words.has("still", prep) or words.has("landing", lemma))
                and head.i > clause.verb.i
            )
        ):
            clause.add("goal", nouns, prep)
        elif words.has("prep_place", prep) or words.has("prep_goal", prep) or prep == "out":
            clause.add("place", nouns, prep)

    def _share(self, clause: Clause) -> None:
        """Give a verb its partner's object: "washed and dried the plates"."""
        if clause.of("patient") or clause.passive or not self.words.has("share_object", clause.lemma):
            return
        partner = next((other for other in self.clauses if other.parent is clause and other.link == "conj"), None)
        if partner is not None and not any(child.dep_ in ("prep", "advmod") for child in clause.verb.children):
            clause.add("patient", partner.of("patient"))

    def _perceived(self, clause: Clause) -> None:
        """Make who is seen to act the object of the seeing, who is told something its recipient, and "too tired to
        walk" a deed that does not happen."""
        parent, words = clause.parent, self.words
        if parent is None or clause.link not in ("content", "purpose"):
            return
        bare = not any(child.dep_ in ("mark",) for child in clause.chain[0].children)
        finite = clause.verb.tag_ in ("VBD", "VBZ", "VBP") and parent.lemma in ("feel", "see", "hear")
        if words.has("perceive", parent.lemma) and bare and not finite and not parent.of("patient"):
            parent.add("patient", clause.of("patient" if clause.passive else "agent"))
        if words.has("control", parent.lemma) and not parent.of("recipient") and clause.chain[0].dep_ == "xcomp":
            for filler in parent.fillers:
                filler.role = "recipient" if filler.role == "patient" else filler.role
        if any(child.lower_ == "too" for state in parent.state for child in state.children):
            clause.negated, clause.modality, clause.link = True, "can", "result"

    def _negation(self, clause: Clause) -> None:
        words = self.words
        for token in clause.chain:
            for child in token.children:
                no = (
                    child.dep_ == "neg"
                    or child.lower_ in ("never", "hardly", "barely")
                    or (child.dep_ in ("preconj", "cc") and child.lower_ in ("neither", "nor"))
                )
                if no and child.i < clause.verb.i + 2:
                    clause.negated = True
        parent = clause.parent
        if clause.link == "conj" and parent is not None and parent.negated:
            joined = [child.lower_ for child in parent.verb.children if child.dep_ == "cc"]
            own = _child(clause.verb, *_SUBJECTS, "aux") is not None
            clause.negated |= ("or" in joined or "nor" in joined) and not own
        for filler in clause.fillers:
            token = filler.token
            none = token.lower_ in words.sets["negative"] or any(
                child.lower_ in ("no", "not", "neither") and child.dep_ in ("det", "neg", "preconj", "cc")
                for child in token.children
            )
            clause.negated |= none and filler.role in ("agent", "patient")
        if clause.verb.dep_ == "pcomp" and clause.verb.head.lower_ == "without":
            clause.negated = True

    def _standing(self, clause: Clause) -> Standing:
        if self.quoted[clause.verb.i]:
            return "said"
        if clause.parent is not None and self.quoted[clause.parent.verb.i]:
            return "told"
        own = clause.standing
        if own == "told":
            own = self._from_modality(clause)
        if own == "told":
            own = self._from_edge(clause)
        if clause.link == "result":
            return "told"
        hangs = clause.link in ("content", "conj", "purpose", "advcl", "because", "pcomp")
        if own == "told" and clause.parent is not None and hangs:
            higher = clause.parent.standing if clause.parent.verb.i < clause.verb.i or clause.link != "conj" else "told"
            # Joined verbs share what they hang from; a finite verb with a subject of its own stands alone.
            alone = clause.link == "conj" and _child(clause.verb, "nsubj", "nsubjpass") is not None
            if clause.link == "advcl" and higher == "said":
                higher = "told"
            own = "told" if alone or self._real_subject_clause(clause) else higher
        return own

    def _real_subject_clause(self, clause: Clause) -> bool:
        """Whether a joined finite verb has left an infinitive: "wanted to go and cried"."""
        finite = clause.verb.tag_ in ("VBD", "VBZ", "VBP")
        return clause.link == "conj" and finite and clause.parent is not None and clause.parent.verb.tag_ == "VB"

    def _from_modality(self, clause: Clause) -> Standing:
        if clause.modality == "will" and not clause.negated:
            return "intended"
        return "imagined" if clause.modality in ("may", "should") else "told"

    def _from_edge(self, clause: Clause) -> Standing:
        top, parent = clause.chain[0], clause.parent
        marks = _marks(top)
        if top.dep_ == "advcl" and (marks & {"if", "unless"} or {"as", "though"} <= marks):
            return "imagined"
        if clause.link == "purpose":
            return "intended" if not {"so", "that"} <= marks or clause.modality or clause.verb.tag_ == "VB" else "told"
        if top.dep_ in ("acl", "relcl") and _has_to(top):
            return "intended"
        if parent is None or clause.link != "content":
            return "told"
        return self._content(clause, parent, top)

    def _content(self, clause: Clause, parent: Clause, top: Token) -> Standing:
        words, lemma = self.words, parent.lemma
        if words.has("make", lemma):
            return "told"
        if top.dep_ == "xcomp":
            if words.has("perceive", lemma) or top.tag_ == "VBG":
                return "told"
            return "intended" if words.has("control", lemma) or words.has("intend", lemma) or lemma == "be" else "told"
        marked = any(child.dep_ == "mark" or child.tag_ in ("WRB", "WP") for child in top.children)
        if words.has("fact", lemma) and not (lemma in ("feel",) and not marked):
            return "told"
        if words.has("wish", lemma) or (words.has("intend", lemma) and not words.has("report", lemma)):
            return "intended"
        if words.has("report", lemma):
            return "reported" if marked or top.i > parent.verb.i else "said"
        if words.has("say", lemma) and not words.has("think", lemma):
            return "said"
        if any(child.lower_ == "so" for state in parent.state for child in state.children):
            return "told"
        if words.has("think", lemma) or lemma == "be" or parent.state:
            return "imagined"
        return "told"

    def _statal(self, clause: Clause) -> None:
        """A passive that tells how something is, not what is done to it: "the door was locked"."""
        plain = [child for child in clause.verb.children if child.dep_ in ("aux", "auxpass")]
        still = [(_lower(child), child.tag_ in ("VBD", "VBZ", "VBP")) for child in plain] == [("be", True)]
        if clause.passive and still and self.words.has("statal", clause.lemma) and not clause.of("agent"):
            clause.state.append(clause.verb)
            clause.lemma, clause.passive = "be", False
            for filler in clause.fillers:
                filler.role = "agent" if filler.role == "patient" else filler.role


def _modality(lemma: str, word: str) -> str:
    if lemma == "would" or word in ("would", "'d"):
        return ""
    return _MODALS.get(word, _MODALS.get(lemma, lemma))


def _phrase(token: Token) -> str:
    """The words of a noun phrase without the clauses in it."""
    return " ".join(word.text for word in _inside(token)).replace(" 's", "'s").replace(" ,", ",")


def _inside(token: Token) -> Iterator[Token]:
    skipped = {"relcl", "acl", "conj", "cc", "punct", "appos", "prep", "preconj"}
    part = [
        word for child in token.children if child.dep_ not in skipped and child.i < token.i for word in child.subtree
    ]
    yield from sorted([token, *part], key=lambda word: word.i)


def phrase_of(token: Token) -> str:
    """Return the words of a noun phrase, with "of ..." but without clauses."""
    words = list(_inside(token))
    for child in token.children:
        if child.dep_ == "prep" and child.lower_ == "of":
            words += list(child.subtree)
    words = [word for word in words if word.dep_ != "case" or word.head.i != token.i]
    return (
        " ".join(word.text for word in sorted(words, key=lambda word: word.i)).replace(" 's", "'s").replace(" ,", ",")
    )


def clauses_of(doc: Doc, quoted: Sequence[bool]) -> list[Clause]:
    """Return the clauses of a tree in the order of their verbs. quoted: for each word, whether it is in quotes."""
    words = load_words()
    repair(doc, quoted, words)
    return _Builder(doc, quoted, words).build()
