"""The clauses of one parsed sentence: which words fill which role of which verb.

A verb that only says how another verb happens ("began to", "could", "wanted to") is folded into that verb's clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from katha_sketch.english.repairs import child_of, has_to, is_time, lemma_of, repair
from katha_sketch.english.words import Words, load_words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

    from katha_sketch.english.types import RoleName, Standing

__all__ = ["Clause", "Filler", "age_of", "clauses_of", "conjuncts", "is_row", "phrase_of"]

_NOT_CLAUSE = frozenset(
    ("acomp", "aux", "auxpass", "amod", "compound", "prep", "det", "case", "punct", "nmod", "npadvmod", "mark", "prt")
)
_AT_LAST = frozenset(("at last", "at first", "at once", "at least", "at half", "at a quarter", "at quarter"))
_MODALS = {"could": "can", "ca": "can", "might": "may", "shall": "will", "wo": "will", "ought": "should", "'ll": "will"}
_SPAN = frozenset(("after", "before", "during", "until", "since"))
_CLOSED = re.compile(r"[^aeiou]*[aeiou][^aeiouwxy]")
_NOT = frozenset(("never", "hardly", "seldom", "rarely", "scarcely", "almost", "nearly"))
_BEHIND = frozenset(("though", "although", "after", "before", "until", "where", "with", "since"))
"""What begins a clause that tells the background of the deed that it hangs from."""
_JUST = frozenset(("only", "even", "just", "then"))  # "only one boy" is called one boy
_WHOM = frozenset(("him", "her", "me", "us", "them", "you"))
_SOMEBODY = frozenset(("he", "she", "i", "we", "who"))
_PORTABLE = frozenset(("tool", "container", "thing", "device", "document", "toy", "food", "drink", "music"))
"""Sorts of things that somebody has in the hand, one at a time: "with glasses", "with freckles" tell of looks."""
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
    noun: Token | None = None
    """The noun that says what is done where the verb is as good as empty ("gave a shout")."""
    aside: bool = False

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
        if child.lower_ == "all":
            continue  # "cage and all"
        if child.dep_ in ("conj", "appos") and child.pos_ in ("NOUN", "PROPN", "PRON", "NUM"):
            many = token.tag_ in ("NNS", "NNPS")
            listed = any(word.dep_ == "cc" for word in child.children) and (not many or is_row(token, child))
            joined = child.dep_ == "conj" or listed
            found += conjuncts(child) if joined else []
    return found


def is_row(things: Token, other: Token) -> bool:
    """Return whether what follows a plural is more of a list, not who they are: "seven marbles, a tooth and a key"."""
    rest = [other, *(one for one in other.subtree if one.dep_ == "conj")]
    count = child_of(things, "nummod")
    told = count is not None and load_words().number(count.lower_) == len(rest)
    return not told and other.pos_ == "NOUN" and any(one.lower_ in ("a", "an", "the") for one in other.lefts)


def _marks(token: Token) -> set[str]:
    """The words that tie a clause to another: "because", "so that", "when"."""
    return {child.lower_ for child in token.children if child.dep_ in ("mark", "advmod")}


def _verb_lemma(token: Token, words: Words) -> str:
    """The verb's lemma; "hoped" is no form of "hop", which doubles its last letter."""
    lemma, form = lemma_of(token), token.lower_
    if form == "wound" or (form == "lay" and child_of(token, "dobj", "prt") is None):
        return "wind" if form == "wound" else "lie"  # "wounded" is the other's
    if form in (f"{lemma}ed", f"{lemma}ing") and _CLOSED.fullmatch(lemma):
        return f"{lemma}e"
    return words.lemmas.get(lemma, lemma)


def _folded(verb: Token, words: Words) -> tuple[Token, str, str, str] | None:
    """The verb that `verb` only modifies: that verb, and modality, phase, "not" or standing that it gives."""
    lemma = _verb_lemma(verb, words)
    inner = child_of(verb, "xcomp") or _going(verb, lemma, words)
    released = child_of(verb, "ccomp", "xcomp")
    if released is not None and words.group("folded_into", f"{lemma}_{_verb_lemma(released, words)}"):
        return (released, "", "", "") if released.i == verb.i + 1 else None  # "let go of the rope"
    able = child_of(verb, "acomp")
    if lemma == "be" and able is not None and able.lower_ in ("able", "unable", "about"):
        inner = child_of(able, "xcomp")
        if inner is not None and able.lower_ == "about":
            return inner, "will", "", "intended"
        if inner is not None:
            return inner, "can", "", "not" if able.lower_ == "unable" else ""
    attr = child_of(verb, "attr")
    if lemma == "be" and attr is not None and attr.lower_ in ("first", "last", "only") and inner is not None:
        return inner, "", "", ""  # "was the first to reach her"
    things = [one for one in verb.children if one.dep_ in ("dobj", "dative")]
    spent = inner is not None and inner.tag_ == "VBG" and all(is_time(one, words) for one in things)
    if inner is None or inner.pos_ not in ("VERB", "AUX") or (things and not spent):
        return None
    if things:
        return inner, "", "", ""  # "spent the morning fixing the roof"
    if child_of(inner, "nsubj") is not None:
        return None
    to = has_to(inner)
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
        if name == "manage" and lemma != "turn" and child_of(verb, "prt") is not None:
            continue  # "got out to walk"
        if words.has(name, lemma) and (to or name == "fail" or lemma in ("try", "dare", "help")):
            return inner, modality if lemma not in ("refuse", "avoid", "help", "remember") else "", "", mark
    if words.has("pretend", lemma) and to:
        return inner, "", "", "imagined"
    if words.has("intend", lemma) and (to or inner.tag_ == "VBG"):
        loved = words.has("enjoy", lemma) and inner.tag_ == "VBG"
        return inner, "" if loved else "want", "", "" if loved else "intended"
    return None


def _going(verb: Token, lemma: str, words: Words) -> Token | None:
    """The deed that somebody goes to do, goes on with or longs for: "went swimming", "kept on walking"."""
    on = next((child for child in verb.rights if child.dep_ in ("prep", "prt") and child.lower_ == "on"), None)
    above = [verb] if on is None else [verb, on]
    if lemma in ("go", "come", "keep") or words.has("enjoy", lemma):
        inner = next((one for up in above for one in up.rights if one.tag_ == "VBG" and one.i == above[-1].i + 1), None)
        if inner is not None and lemma == "come" and not words.has("motion", _verb_lemma(inner, words)):
            return None  # "came panting after her"
        if inner is not None:
            inner.dep_ = "xcomp"
        return inner
    aim = child_of(verb, "advcl") if words.has("intend", lemma) else None
    return aim if aim is not None and has_to(aim) and aim.left_edge.i == verb.i + 1 else None


def _heads(doc: Doc, words: Words) -> list[Clause]:
    """A clause for each verb that heads one, folded verbs in its chain."""
    found: list[Clause] = []
    folded: dict[int, list[tuple[Token, str, str, str]]] = {}
    for token in doc:
        gerund = token.tag_ == "VBG" and token.dep_ in ("pobj", "nsubj", "dobj", "attr")
        gerund = gerund and token.i not in folded
        gerund = gerund or (token.dep_ == "pcomp" and token.head.head.pos_ == "NOUN")  # "years of laying bricks"
        clausal = token.dep_ not in _NOT_CLAUSE or any(child.dep_ in ("nsubj", "nsubjpass") for child in token.children)
        if token.pos_ not in ("VERB", "AUX") or not clausal or gerund or token.tag_ == "MD":
            continue  # "as fast as she could" is no deed
        if token.lower_ == "according" or (token.dep_ == "acl" and words.has("naming", lemma_of(token))):
            continue
        fold = _folded(token, words)
        if fold is not None:
            folded[fold[0].i] = [*folded.pop(token.i, []), (token, *fold[1:])]
            continue
        uppers = folded.get(token.i, [])
        lemma = _verb_lemma(token, words)
        before = _verb_lemma(token.nbor(-1), words) if token.i else ""
        whole = words.group("folded_into", f"{before}_{lemma}")
        clause = Clause(token, [upper[0] for upper in uppers] + [token], whole or lemma)
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
            self._lighten(clause)
            self._turn(clause)
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
        mark, to = _marks(top), has_to(top)
        if dep == "advcl" and (mark & {"because", "since"}):
            clause.link = "because"
        elif dep in ("advcl", "xcomp") and (to or ("so" in mark and "that" in mark)):
            clause.link = "purpose" if dep == "advcl" or not self._controlled(parent) else "content"
        elif dep in ("ccomp", "xcomp"):
            first, last = sorted((top.i, top.head.i))
            beside = dep == "ccomp" and any(token.text == ";" for token in top.doc[first:last])
            # "The window was broken, the box lay empty": what comes first is not what lying is about.
            apart = dep == "ccomp" and top.i < top.head.i and not self.quoted[top.i] and not self._speaks(top.head)
            clause.link = "" if beside or apart else "content"
        elif dep in ("relcl", "acl"):
            clause.link = "noun"
        else:
            clause.link = dep if dep in ("conj", "advcl", "pcomp") else ""
        clause.aside = self._in_passing(clause)

    def _in_passing(self, clause: Clause) -> bool:
        """Whether a clause only tells more of a noun, or what lies behind the deed that it hangs from."""
        top, parent = clause.chain[0], clause.parent
        if clause.link == "conj" and parent is not None:
            return parent.aside and child_of(top, "nsubj", "nsubjpass") is None
        if clause.link == "noun":
            return not (top.dep_ == "acl" and top.head.dep_ == "attr")  # "there was a man sleeping"
        marks = _marks(top)
        behind = clause.link == "because" or bool(marks & _BEHIND) or (top.i < top.head.i and "when" in marks)
        if top.dep_ == "pcomp":
            return True
        state = top.tag_ == "VBN" and not any(child.dep_ == "aux" for child in top.children)
        return top.dep_ == "advcl" and (behind or state)

    def _speaks(self, verb: Token) -> bool:
        return any(self.words.has(name, lemma_of(verb)) for name in ("say", "think", "report"))

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
                    clause.modality = clause.modality or _modality(lemma_of(child), word)
                elif child.dep_ == "expl" and word == "there":
                    clause.existential = True
        verb = clause.verb
        bare = verb.tag_ == "VBN" and not any(child.dep_ in ("aux", "auxpass") for child in verb.children)
        had = verb.dep_ == "ccomp" and any(self.words.has(name, lemma_of(verb.head)) for name in ("make", "found_so"))
        had = had and verb.head.i < verb.i
        left = child_of(verb, "nsubj") is None or any(one.lower_ == "with" for one in verb.children)
        alone = self.words.has("acts_alone", clause.lemma) and not had
        clause.aside = clause.aside and not (bare and alone and verb.dep_ == "acl")
        if bare and not alone and (had or verb.dep_ == "acl" or (verb.dep_ == "advcl" and left)):
            clause.passive = True
        if bare and verb.dep_ == "conj" and clause.parent is not None and clause.parent.passive:
            clause.passive = child_of(verb, "nsubj") is None

    def _subjects(self, clause: Clause) -> None:
        role: RoleName = "patient" if clause.passive else "agent"
        for token in clause.chain:
            subjects = [child for child in token.children if child.dep_ in ("nsubj", "nsubjpass")]
            if len(subjects) > 1 and any(child.pos_ not in ("NOUN", "PROPN") for child in subjects):
                subjects = subjects[:1]
            for subject in subjects:
                whole = conjuncts(self._antecedent(subject))  # "Ann, who had a dog, and Bo": it is Ann's
                clause.add(role, [one for one in whole if one.i <= subject.i or subject.tag_ not in ("WP", "WDT")])
                self._along(clause, subject)
                if clause.existential:
                    self._inner_places(clause, subject)  # "There stood a man on the roof"
            if subjects:
                return
        clause.add(role, self._borrowed(clause))

    def _along(self, clause: Clause, subject: Token) -> None:
        """What the subject has along: "a woman with a basket came in"."""
        for prep in subject.children if self._lives(subject) else ():
            had = child_of(prep, "pobj") if prep.dep_ == "prep" and prep.lower_ == "with" else None
            if had is not None and had.tag_ == "NN" and self.words.sort(lemma_of(had)) in _PORTABLE:
                clause.add("instrument", [had], "with")

    def _antecedent(self, token: Token) -> Token:
        """The noun that "who", "which" or "that" stands for."""
        if token.tag_ in ("WP", "WDT") or (token.lower_ == "that" and token.pos_ in ("PRON", "SCONJ", "DET")):
            node = token.head
            while node.dep_ in ("conj", "xcomp", "ccomp") and node.head is not node:
                node = node.head
            pointed = child_of(node, "attr") if lemma_of(node) == "be" else None
            if pointed is not None and node != token.head and pointed.i < token.i:
                return pointed  # "It was Miguel who caught the ball"
            if node.dep_ == "relcl" and node.head.pos_ == "VERB":  # "Under one of them sat Farid, who ..."
                found = child_of(node.head, "nsubj", "dobj")
                return found if found is not None and found.i < token.i else token
            if node.dep_ in ("relcl", "acl") and node.head.i < token.i:
                return self._living(node.head) if token.lower_ == "who" else node.head
        return token

    def _living(self, noun: Token) -> Token:
        """Who must be meant by "who" after a thing: "Mr Kral from next door, who ..."."""
        above, town = noun.head.head, noun.tag_ == "NNP" and noun.head.lower_ in ("from", "in", "at", "near")
        alive = noun.pos_ == "PRON" or any(self.words.has(name, lemma_of(noun)) for name in ("group",))
        if noun.dep_ != "pobj" or alive or (self._lives(noun) and not (town and above.pos_ == "NOUN")):
            return noun
        doers = [child for child in above.children if child.dep_ in _SUBJECTS and child.i < noun.i]
        able = (one for one in (above, *doers) if one.pos_ in ("NOUN", "PROPN"))
        return next((one for one in able if self._lives(one) or self.words.has("group", lemma_of(one))), noun)

    def _borrowed(self, clause: Clause) -> list[Token]:
        """The subject that a clause without one has from where it hangs."""
        top = clause.chain[0]
        parent = clause.parent
        if clause.existential:
            return []  # "Snow had closed the pass, and there were eleven cars"
        if top.tag_ == "VB" and self.quoted[top.i] and (parent is None or not self.quoted[parent.verb.i]):
            clause.imperative = True
            return []
        if top.dep_ in ("acl", "relcl") and top.head.pos_ in ("NOUN", "PROPN", "PRON"):
            to = any(child.lower_ == "to" for child in top.children)
            # "a weight made from a stone, and a bell": the bell is not
            return [one for one in conjuncts(top.head) if one.i < top.i] if not to else self._agent_of(parent)
        if parent is None:
            clause.imperative = top.tag_ == "VB" and top.dep_ in ("ROOT", "ccomp")
            return []
        own = self._acts(top) and (top.head.dep_ in ("acomp", "attr", "prep") or top.head.pos_ in ("NOUN", "PRON"))
        if top.dep_ == "conj" and (top.head.i in self.by_token or own):  # "was ashamed and slept"
            clause.imperative = parent.imperative
            return parent.of("patient") if parent.passive else parent.of("agent")
        left = top.tag_ == "VBG" and (self.words.has("found_so", parent.lemma) or parent.lemma == "send")
        left = left and any(self._lives(one) and one.i < top.i for one in self._late_objects(parent))
        if top.dep_ in ("xcomp", "ccomp") or (left and top.dep_ == "advcl" and top.nbor(-1).text != ","):
            controlled = self.words.has("control", parent.lemma) or self.words.has("make", parent.lemma)
            controlled = controlled or parent.lemma == "take"  # "It took him an hour to climb the tower"
            bare = top.tag_ == "VB" and not any(child.lower_ == "to" for child in top.children)
            if bare and not controlled and (top.dep_ == "ccomp" or self.quoted[top.i]):
                clause.imperative = True
                return []
            objects = parent.of("recipient") or parent.of("patient")
            if objects and (controlled or self.words.has("perceive", parent.lemma)):
                return objects
            controlled = controlled or left  # "left the baby sleeping"
            late = self._late_objects(parent)
            if late and (controlled or self.words.has("perceive", parent.lemma)):
                return late
        apart = top.dep_ == "advcl" and top.tag_ == "VBG" and parent.link == "advcl" and parent.parent is not None
        if apart and not any(self._lives(one) or one.pos_ == "PRON" for one in self._agent_of(parent)):
            return self._agent_of(parent.parent)  # "They sat until the sun went down, sharing an apple"
        if top.dep_ in ("xcomp", "ccomp", "advcl", "pcomp", "prep", "dobj"):
            return parent.of("patient") if parent.passive else self._agent_of(parent)
        return []

    def _late_objects(self, parent: Clause) -> list[Token]:
        found = child_of(parent.verb, "dobj", "dative")
        named = found is not None and found.pos_ in ("NOUN", "PROPN", "PRON", "NUM") and not is_time(found, self.words)
        return conjuncts(found) if found is not None and named else []

    def _agent_of(self, parent: Clause | None) -> list[Token]:
        if parent is None:
            return []
        return parent.of("agent") or (parent.of("patient") if parent.passive else [])

    def _complements(self, clause: Clause) -> None:
        verb, words = clause.verb, self.words
        things = [child for child in verb.children if child.dep_ == "dobj" and not is_time(child, words)]
        gives = len(things) == 2 and self._lives(things[0]) and not self._lives(things[1])
        if len(things) == 2 and (words.has("give", clause.lemma) or gives):
            things[0].dep_ = "dative"  # "cut the boy a piece of cake"
        for child in verb.children:
            noun = child.pos_ in ("NOUN", "PROPN", "PRON", "NUM", "DET", "ADJ")
            if child.dep_ == "dobj" and noun:
                self._object(clause, child)
            elif child.dep_ == "dative" and child.tag_ == "WDT":
                self._object(clause, child)  # "the box that Ben had found"
            elif child.dep_ == "dative":
                heads = [child] if noun else [word for word in child.children if word.dep_ == "pobj"]
                whom = [each for head in heads for each in conjuncts(head)]
                clause.add("recipient", whom, "" if noun else child.lower_)
            elif child.dep_ == "advmod" and child.lower_ in ("last", "first", "most", "least"):
                continue  # "got there at last", "Last of all came a man"
            elif child.dep_ == "attr" and clause.lemma == "feel" and child.pos_ == "NOUN" and _is_the(child):
                self._object(clause, child)  # "felt his coat"
            elif child.dep_ == "attr" and words.has("bears", clause.lemma):
                self._object(clause, child)  # "grew pumpkins"
            elif child.dep_ in ("acomp", "attr", "oprd") or (child.dep_ == "advmod" and child.pos_ == "ADJ"):
                self._state(clause, child)
            elif child.dep_ == "ccomp" and child.pos_ == "ADJ" and not any(w.dep_ in _SUBJECTS for w in child.children):
                clause.state.append(child)
        gives = words.has("give", clause.lemma) and not clause.of("recipient")
        if clause.link == "noun" and clause.chain[0].dep_ == "relcl" and (gives or not clause.of("patient")):
            self._gap(clause)

    def _lighten(self, clause: Clause) -> None:
        """Give a clause whose verb says nothing the deed of its noun: "took a sip of water" is "sipped water"."""
        whole = f"{clause.lemma}_{clause.particle}" if clause.particle else clause.lemma
        own = f"light.{whole}" in self.words.sets
        plain = not clause.particle or self.words.has("ways", clause.particle)  # "took a step back", not "a photo out"
        name = whole if own else clause.lemma if plain else ""
        nouns = self.words.sets.get(f"light.{name}", frozenset())
        noun = next((token for token in clause.of("patient") if lemma_of(token) in nouns), None) or self._outing(clause)
        definite = noun is not None and any(
            child.dep_ == "poss" or child.lower_ in ("the", "this", "that") for child in noun.children
        )
        if noun is None or definite or clause.passive:
            return  # who takes the bow from the wall holds a weapon
        clause.lemma = self.words.group("acted", lemma_of(noun)) or lemma_of(noun)
        if clause.lemma == "drink" and self.words.sort(lemma_of(noun)) == "food":
            return  # who has tea drinks tea
        clause.noun, clause.particle = noun, "" if own else clause.particle
        clause.fillers = [filler for filler in clause.fillers if filler.token.i != noun.i]
        for filler in clause.fillers:
            filler.role = "patient" if filler.role == "recipient" else filler.role
        for prep in noun.children:
            if prep.dep_ == "prep" and prep.lower_ == "of":
                heads = [head for head in prep.children if head.dep_ == "pobj"]
                clause.add("patient", [each for head in heads for each in conjuncts(head)])
            elif prep.dep_ == "prep":
                self._preposition(clause, prep)

    def _turn(self, clause: Clause) -> None:
        """Say what becomes of who or what goes so: "went quiet", "turned pale", "went as red as a beet"."""
        so = next((token.lower_ for token in clause.state if self.words.group("turned", token.lower_)), "")
        if clause.lemma not in ("go", "turn") or clause.particle or not so:
            return
        done = str(self.words.group("turned", so))
        alive = any(self._lives(one) or one.lower_ in _SOMEBODY for one in clause.of("agent"))
        if alive and done != "turn":
            clause.lemma, clause.state = done, []
        elif not alive and not any(self.words.has("group", lemma_of(one)) for one in clause.of("agent")):
            clause.lemma = "turn"
        clause.fillers = [one for one in clause.fillers if one.role != "goal"]  # "pink to the top of his head"

    def _outing(self, clause: Clause) -> Token | None:
        """What somebody goes or takes another for: "took the dog for a walk"."""
        nouns = self.words.sets.get(f"light.{clause.lemma}_for", frozenset())
        preps = [
            prep for token in (clause.verb, *clause.of("patient")) for prep in token.children if prep.lower_ == "for"
        ]
        targets = (child_of(prep, "pobj") for prep in preps)
        return next((token for token in targets if token is not None and lemma_of(token) in nouns), None)

    def _gap(self, clause: Clause) -> None:
        """Give a relative clause without a relative pronoun its noun: "the ball he kicked"."""
        noun = clause.chain[0].head
        subject = {token.i for token in clause.of("agent")}
        bare = not any(child.dep_ in ("attr", "acomp") or child.tag_ == "WP" for child in clause.verb.children)
        where = any(child.lower_ in ("where", "when", "why", "whose") for child in clause.verb.subtree)
        where |= any(word.tag_ == "WDT" for child in clause.verb.children for word in child.children)  # "from which"
        gives = self.words.has("give", clause.lemma) and noun.i not in subject
        whom = child_of(clause.verb, "dobj") if gives else None
        if whom is not None and not where and whom.tag_ != "WDT" and (whom.pos_ == "PRON" or self._lives(whom)):
            clause.fillers = [one for one in clause.fillers if one.token != whom]
            clause.add("recipient", [whom])  # "the ring that the old woman gave her"
        stranded = any(child.dep_ == "prep" and not list(child.children) for child in clause.verb.children)
        if (
            noun.i not in subject
            and not is_time(noun, self.words)
            and bare
            and not where
            and not stranded
            and clause.lemma != "be"
        ):
            clause.add("patient", [noun])

    def _object(self, clause: Clause, child: Token) -> None:
        words = self.words
        if is_time(child, self.words) and clause.lemma != "spend":
            clause.time += [_phrase(child)] if not words.has("greet_verbs", clause.lemma) else []
            return
        antecedent = self._antecedent(child)
        if clause.passive and self.words.has("give", clause.lemma):
            # "The queen was given a bird": who is the subject receives.
            for filler in clause.fillers:
                filler.role = "recipient" if filler.role == "patient" else filler.role
        whom = self._lives(child) or words.has("group", lemma_of(child))
        told = words.has("told_to", clause.lemma) and (whom or child.lower_ in _WHOM)
        clause.add("recipient" if told else "patient", conjuncts(antecedent))
        self._inner_places(clause, child)

    def _inner_places(self, clause: Clause, noun: Token) -> None:
        """A place told with the object: "saw a cat on the roof", "there was a castle on a hill"."""
        for prep in noun.children:
            whom = child_of(prep, "pobj") if prep.dep_ == "prep" and prep.lower_ == "to" else None
            given = (prep.dep_ == "prep" and prep.lower_ == "for") or (whom is not None and self._lives(whom))
            if given and self.words.has("give", clause.lemma):
                self._preposition(clause, prep)  # "handed the key to the old man"
            if prep.dep_ == "prep" and prep.lower_ in ("with", "for") and not self._lives(noun):
                self._beside_object(clause, prep)
            if prep.dep_ == "prep" and self.words.has("prep_place", prep.lower_):
                target = child_of(prep, "pobj")
                sort = self.words.sort(lemma_of(target)) if target is not None else ""
                own = self.words.sort(lemma_of(noun)) == "body"  # "with his face in his hands"
                worn = ("clothing", "body") if prep.lower_ == "in" and not own else ()
                placed = sort not in ("time", "feeling", "abstract", "", *worn)
                if target is not None and (placed or self.words.is_place(lemma_of(target))):
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
        if child.tag_ in ("JJR", "RBR") and any(one.lower_ in ("no", "than", "more") for one in child.subtree):
            return  # "was no bigger than a dog", "met him once more"
        states = [child, *(word for word in child.children if word.dep_ == "conj" and not self._acts(word))]
        clause.state += [word for word in states if word.pos_ not in ("PUNCT",)]

    def _acts(self, token: Token) -> bool:
        """Whether what stands beside a state is a deed, which nobody has done to them: "was ashamed and slept"."""
        own = self.words.has("intransitive", lemma_of(token)) or self.words.has("motion", lemma_of(token))
        return token.tag_ in ("VBG", "VBD", "VBZ") or (token.tag_ == "VBN" and own)

    def _modifier(self, clause: Clause, child: Token) -> None:
        words, dep, word = self.words, child.dep_, child.lower_
        if dep in ("prep", "agent"):
            self._preposition(clause, child)
        elif dep == "prt" or dep == "advmod":
            self._adverb(clause, child)
        elif dep == "npadvmod":
            if self.quoted[child.i] and not self.quoted[clause.verb.i]:
                return
            if is_time(child, words):
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
            if word in ("away", "back", "off", "out", "apart") and not clause.particle and child.i > clause.verb.i:
                clause.particle = word
        elif (child.dep_, child.pos_, child.tag_) == ("advmod", "ADV", "RB") and word not in ("not", "never", "n't"):
            clause.manner.append(word)
        for prep in child.children:
            beside = child_of(prep, "pobj") if word == "next" and prep.lower_ == "to" else None
            if beside is not None:
                self._place_noun(clause, beside, "beside")
            elif prep.dep_ == "prep" and (word, prep.lower_) == ("ahead", "of"):
                for target in [one for one in prep.children if one.dep_ == "pobj"]:
                    clause.add("place", conjuncts(target), "ahead of")
            elif prep.dep_ == "prep":
                self._preposition(clause, prep)
            elif prep.dep_ == "npadvmod" and is_time(prep, words):
                clause.time.append(_phrase(child))

    def _place_adverb(self, clause: Clause, child: Token) -> None:
        moves = self.words.has("motion", clause.lemma)
        clause.add("goal" if moves else "place", [child])

    def _beside_object(self, clause: Clause, prep: Token) -> None:
        """With whom or for whom something is done, told behind the thing: "played chess with his uncle"."""
        target = child_of(prep, "pobj")
        known = target is not None and (
            target.tag_ == "NNP"
            or target.pos_ == "PRON"
            or any(child.dep_ == "poss" or child.lower_ == "the" for child in target.children)
        )
        given = prep.lower_ == "for" and self.words.has("give", clause.lemma)
        if target is None or not known or given or not (self._lives(target) or target.lower_ in _WHOM):
            return
        self._preposition(clause, prep)

    def _preposition(self, clause: Clause, prep: Token) -> None:
        word = prep.lower_
        if word in ("according", "than") or _likened(prep):
            return
        inner = [child for child in prep.children if child.dep_ in ("prep", "pcomp") and child.pos_ in ("ADP", "SCONJ")]
        for child in inner:
            nested = child_of(child, "pobj")
            if nested is not None:
                whole = "of" if child.lower_ == "of" else child.lower_
                self._place_noun(clause, nested, "out" if whole == "of" and word == "out" else child.lower_)
        for joined in [child for child in prep.children if child.dep_ == "conj" and child.tag_ == "IN"]:
            self._preposition(clause, joined)  # "under the tables, behind the radiator and in the tray"
        if prep.i and prep.nbor(-1).lower_ == "not" and clause.lemma != "be":
            return  # "not to the lion but to a cupboard"
        heads = [child for child in prep.children if child.dep_ == "pobj"]
        before = prep.nbor(-1) if prep.i else prep
        held = word == "in" and before.dep_ == "pobj" and self.words.sort(lemma_of(before)) != "body"
        if held and before.head.lower_ == "with" and before.head.head == prep.head:
            mine = [one for one in heads if child_of(one, "poss") is not None]
            heads = [one for one in heads if one not in mine or self.words.sort(lemma_of(one)) != "body"]
            # "stood there with his helmet in his hands"
        for head in heads:
            self._place_noun(clause, head, word)
            if head.dep_ == "pobj" and word != "like":  # "watched like an old man at a bus stop"
                for late in head.children:
                    # "across the field, away from the hunters", "to the shop in the village"
                    target = child_of(late, "pobj")
                    if late.dep_ == "prep" and late.lower_ == "with" and target is not None and self._lives(target):
                        clause.add("companion", conjuncts(target), "with")  # "stood at the door with Biscuit"
                    elif late.dep_ == "prep" and late.lower_ == "with" and target is not None:
                        at_a_run = self.words.sort(lemma_of(head)) in ("abstract", "") and head.tag_ == "NN"
                        if self._held(target) or (at_a_run and word == "at"):
                            clause.add("instrument", conjuncts(target), "with")
                    placed = late.dep_ == "prep" and self.words.has("prep_place", late.lower_)
                    if placed and target is not None and self.words.is_place(lemma_of(target)):
                        self._place_noun(clause, target, late.lower_)

    def _held(self, thing: Token) -> bool:
        """Whether a thing is told to be in the hands: "sat in the mud with the ball in her arms"."""
        below = (word for prep in thing.children if prep.dep_ == "prep" for word in prep.children)
        return any(word.dep_ == "pobj" and self.words.sort(lemma_of(word)) == "body" for word in below)

    def _lives(self, token: Token) -> bool:
        return token.tag_ == "NNP" or self.words.sort(lemma_of(token)) in ("person", "animal", "being")

    def _place_noun(self, clause: Clause, head: Token, prep: str) -> None:
        words, lemma = self.words, lemma_of(head)
        nouns = conjuncts(self._antecedent(head))
        sort = words.sort(lemma)
        alive = self._lives(head) or words.has("group", lemma) or head.pos_ == "PRON"
        phrase = f"{prep} {_phrase(head)}"
        bound = words.has("prepositional", f"{clause.lemma}_{prep}") and clause.particle in ("", "on")
        before = clause.verb.nbor(-1).lemma_ if clause.verb.i else ""
        if prep == "of" and words.has("folded_into", f"{before}_{clause.verb.lemma_}"):
            clause.add("patient", nouns)
        elif bound and not clause.of("patient") and not is_time(head, words):
            after_on = head.head.i > 0 and head.head.nbor(-1).lower_ == "on"
            clause.particle = clause.particle or ("on" if after_on else prep)
            clause.add("patient", nouns)
        elif prep == "by" and clause.passive and not is_time(head, words):
            clause.add("agent", nouns, prep)
        elif (
            (is_time(head, words) and prep not in ("to", "with", "from", "into", "onto"))
            or (prep == "at" and (head.pos_ == "NUM" or head.lower_ == "past"))
            or (prep == "by" and _is_hour(head))
            or phrase in _AT_LAST
            or ({prep} <= _SPAN and not alive and not (prep == "before" and self._stops_before(clause, head)))
        ):
            whole = " ".join(word.text for word in head.subtree)
            clause.time.append(f"{prep} {whole}" if head.pos_ == "NUM" else phrase)
        elif prep == "with":
            self._with(clause, nouns, head, phrase)
        elif prep == "by" and sort == "vehicle":
            clause.add("instrument", nouns, prep)
        elif prep == "for":
            if alive and not clause.existential:  # "There was shade for six people"
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

    def _stops_before(self, clause: Clause, head: Token) -> bool:
        """Whether somebody is before a thing, not earlier: "stopped before a lime tree"."""
        still = self.words.has("stays", clause.lemma) or clause.lemma in ("stop", "kneel", "bow", "pause")
        sort = self.words.sort(lemma_of(head))
        return self.words.has("faced", lemma_of(head)) or (still and sort not in ("", "abstract", "time", "feeling"))

    def _with(self, clause: Clause, nouns: list[Token], head: Token, phrase: str) -> None:
        of = child_of(head, "prep") if lemma_of(head) == "pair" else None  # "a pair of scissors"
        whole = child_of(of, "pobj") if of is not None else None
        sort = self.words.sort(lemma_of(whole or head))
        group = self.words.has("group", lemma_of(head)) and (whole is None or self.words.has("group", lemma_of(whole)))
        off = sort == "clothing" and head.i + 1 < len(head.doc) and head.nbor(1).lower_ == "off"
        if off:
            return  # "sat there with her shoes off"
        if sort in ("person", "animal", "being") or group or head.pos_ in ("PRON", "PROPN"):
            clause.add("companion", nouns, "with")
        elif sort in ("feeling", "abstract") or lemma_of(head) in self.words.feelings:
            clause.manner.append(phrase)
        else:
            clause.add("instrument", nouns, "with")
            below = (child_of(prep, "pobj") for prep in head.children if prep.dep_ == "prep")
            if sort == "body" or all(one is None or self.words.sort(lemma_of(one)) != "body" for one in below):
                self._inner_places(clause, head)  # "sits with a newspaper on the bench", "with her hands over her ears"

    def _local(self, clause: Clause, nouns: list[Token], prep: str, *, alive: bool, phrase: str) -> None:
        words, lemma = self.words, clause.lemma
        head = nouns[0]
        worn = prep == "in" and words.sort(lemma_of(head)) == "clothing" and child_of(head, "poss") is None
        if worn or (words.has("mood_place", lemma_of(head)) and prep in ("in", "at", "with", "on")):
            clause.manner.append(phrase)
        elif alive and (
            (prep in ("to", "at") and words.has("give", lemma)) or (prep == "to" and words.has("say", lemma))
        ):
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
        told = words.has("control", parent.lemma) and clause.chain[0].dep_ == "ccomp" and has_to(clause.chain[0])
        if told and not parent.of("recipient", "patient"):
            parent.add("recipient", clause.of("agent"))  # "warned Peter not to smoke"
        if any(child.lower_ == "too" for state in parent.state for child in state.children):
            clause.negated, clause.modality, clause.link = True, "can", "result"

    def _negation(self, clause: Clause) -> None:
        words = self.words
        for token in clause.chain:
            for child in token.children:
                no = (
                    child.dep_ == "neg"
                    or child.lower_ in _NOT
                    or (child.lower_ == "longer" and child.i and child.nbor(-1).lower_ in ("no", "any"))
                    or (child.dep_ in ("preconj", "cc") and child.lower_ in ("neither", "nor"))
                )
                if no and child.i < clause.verb.i + 2:
                    clause.negated = True
        parent = clause.parent
        if clause.link == "conj" and parent is not None and parent.negated:
            joined = [child.lower_ for child in parent.verb.children if child.dep_ == "cc"]
            own = child_of(clause.verb, *_SUBJECTS, "aux") is not None
            clause.negated |= ("or" in joined or "nor" in joined) and not own
        for filler in clause.fillers:
            token = filler.token
            none = token.lower_ in words.sets["negative"] or any(
                child.lower_ in ("no", "not", "neither") and child.dep_ in ("det", "neg", "preconj", "cc")
                for child in token.children
            )
            others = clause.of(filler.role)[:1]  # "eleven cars and no way out" are there
            clause.negated |= none and filler.role in ("agent", "patient") and others == [token]
        top = clause.chain[0]
        before = top.head.nbor(-1).lower_ if top.head.i else ""
        if top.dep_ == "pcomp" and (top.head.lower_ == "without" or before == "instead"):
            clause.negated = True
        if clause.negated and clause.phase == "stop":
            clause.negated, clause.phase = False, ""  # who would not stop crying cries

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
        if clause.link == "result" or self._cleft(clause):
            return "told"
        hangs = clause.link in ("content", "conj", "purpose", "advcl", "because", "pcomp")
        if own == "told" and clause.parent is not None and hangs:
            higher = clause.parent.standing if clause.parent.verb.i < clause.verb.i or clause.link != "conj" else "told"
            # Joined verbs share what they hang from; a finite verb with a subject of its own stands alone.
            alone = clause.link == "conj" and child_of(clause.verb, "nsubj", "nsubjpass") is not None
            alone = alone and not _marks(clause.chain[0]) & {"that", "whether", "if"}
            late = clause.link == "advcl" and _marks(clause.chain[0]) == {"when"} and clause.verb.tag_ == "VBD"
            first = clause.chain[0].left_edge
            apart = clause.parent.modality == "will" or (first.i > 0 and first.nbor(-1).text == ",")
            late = late and (apart or (higher == "intended" and self._had(clause.parent)))
            if clause.link == "advcl" and (higher == "said" or late):
                higher = "told"  # "with nobody to talk to, when the phone rang"
            own = "told" if alone or self._real_subject_clause(clause) else higher
        return own

    def _had(self, clause: Clause) -> bool:
        """Whether a deed hangs from what had been or was meant: "had asked me to stop when", "was supposed to"."""
        above = (clause.verb, *clause.verb.ancestors)
        meant = any(lemma_of(one) == "suppose" for one in above)
        return meant or any(child.lower_ == "had" for one in above for child in one.children if child.dep_ == "aux")

    def _real_subject_clause(self, clause: Clause) -> bool:
        """Whether a joined finite verb has left an infinitive: "wanted to go and cried"."""
        finite = clause.verb.tag_ in ("VBD", "VBZ", "VBP")
        return clause.link == "conj" and finite and clause.parent is not None and clause.parent.verb.tag_ == "VB"

    def _from_modality(self, clause: Clause) -> Standing:
        helpers = {child.lower_ for token in clause.chain for child in token.children if child.dep_ == "aux"}
        if clause.modality == "will" and not clause.negated:
            return "intended"
        if helpers & {"must", "could", "would"} and "have" in helpers:
            return "imagined"  # "must have dropped his key"
        hangs = [child for token in clause.chain for child in token.children if child.dep_ == "advcl"]
        if helpers & {"would", "could", "'d"} and any(_marks(child) & {"if", "unless"} for child in hangs):
            return "imagined"  # "If the rain stopped, they would go"
        return "imagined" if clause.modality in ("may", "should") else "told"

    def _from_edge(self, clause: Clause) -> Standing:
        top, parent, words = clause.chain[0], clause.parent, self.words
        marks = _marks(top)
        if top.dep_ == "advcl" and (marks & {"if", "unless"} or {"as", "though"} <= marks):
            return "imagined"
        if top.dep_ == "advcl" and "before" in marks and clause.modality == "can":
            return "intended"  # "shut the window before the wasp could get in"
        above = top.head.head
        above = above.head if above.dep_ == "acomp" else above
        if top.dep_ == "pcomp" and parent is not None and above.i == parent.verb.i < top.i:
            spoken = any(words.has(name, parent.lemma) for name in ("think", "wish", "intend", "report"))
            spoken |= words.feelings.get(top.head.head.lower_) == "afraid"  # "so afraid of dropping it"
            spoken = spoken and top.head.lower_ in ("of", "about")
            return "imagined" if spoken else "told"  # "dreamed of sailing"
        thought = parent is not None and words.has("think", parent.lemma) and not words.has("perceive", parent.lemma)
        within = parent is not None and (top.dep_ in ("xcomp", "ccomp") or top.head in parent.of("patient"))
        if thought and within and top.tag_ == "VBG" and top.i > top.head.i:
            return "imagined"  # "imagined a dragon eating the teacher"
        if clause.link == "purpose":
            if self._comes_upon(clause, parent):
                return "told"
            return "intended" if not {"so", "that"} <= marks or clause.modality or clause.verb.tag_ == "VB" else "told"
        if top.dep_ in ("acl", "relcl") and has_to(top):
            return "intended"
        if top.dep_ in ("acl", "relcl") and top.head.dep_ == "pobj" and top.head.head.lower_ == "like":
            return "imagined"  # "like a man leading an elephant"
        if parent is None or clause.link != "content":
            return "told"
        return self._content(clause, parent, top)

    def _comes_upon(self, clause: Clause, parent: Clause | None) -> bool:
        """Whether an infinitive tells what comes of a deed: "woke to hear a note", "came home to find it gone"."""
        if parent is None or clause.negated or parent.standing != "told":
            return False
        return self.words.has("comes_upon", f"{parent.lemma}_to_{clause.lemma}")

    def _content(self, clause: Clause, parent: Clause, top: Token) -> Standing:
        words, lemma = self.words, parent.lemma
        so = any((child.lower_, child.dep_) == ("so", "advmod") for child in top.head.children)
        if words.has("make", lemma) or so:
            return "told"  # "laughed so hard that she fell"
        if words.has("perceive", lemma) and top.tag_ == "VB" and not has_to(top):
            return "told"  # "felt a hand touch her shoulder"
        if has_to(top) and any(child.tag_ in ("WRB", "WP") for child in top.children):
            return "intended"  # "explained how to open it"
        if self._comes_upon(clause, parent):
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

    def _cleft(self, clause: Clause) -> bool:
        """Whether what a clause hangs from only points at a part of it: "It was in the attic that they found
        the chest", "It was the dog that ate it", "It took him an hour to climb the tower"."""
        top, parent = clause.chain[0], clause.parent
        if parent is None or [token.lower_ for token in parent.of("agent")] != ["it"]:
            return False
        placed = parent.lemma == "be" and top.dep_ == "ccomp" and not parent.state and bool(parent.of("place"))
        who = parent.lemma == "be" and top.dep_ == "relcl" and top.head.dep_ == "attr" and top.head.head == parent.verb
        who = who or (parent.lemma == "be" and top.dep_ == "ccomp" and any(one.tag_ == "WP" for one in top.lefts))
        if not (placed or who or (parent.lemma == "take" and has_to(top) and clause.link != "noun")):
            return False
        parent.standing, clause.aside = "imagined", False
        clause.fillers += [filler for filler in parent.fillers if placed and filler.role == "place"]
        return True

    def _statal(self, clause: Clause) -> None:
        """A passive that tells how something is, not what is done to it: "the door was locked"."""
        plain = [child for child in clause.verb.children if child.dep_ in ("aux", "auxpass")]
        still = [(lemma_of(child), child.tag_ in ("VBD", "VBZ", "VBP")) for child in plain] == [("be", True)]
        if clause.passive and still and self.words.has("statal", clause.lemma) and not clause.of("agent"):
            clause.state.append(clause.verb)
            clause.lemma, clause.particle, clause.passive = "be", "", False  # "tied on"
            for filler in clause.fillers:
                filler.role = "agent" if filler.role == "patient" else filler.role


def _is_hour(number: Token) -> bool:
    """Whether a bare number is an hour by which something is so: "By nine he was cold", not "by one of them"."""
    bare = all(child.dep_ in ("punct", "advmod") or child.lower_ == "in" for child in number.children)
    return number.lower_ in ("half", "past") or (number.pos_ == "NUM" and bare)


def _likened(prep: Token) -> bool:
    """Whether where something is done is only likened: "walked as if along a wall", "fell like coins into a box"."""
    before = prep.nbor(-1) if prep.i else prep
    if before.lower_ in ("if", "though") and before.i and before.nbor(-1).lower_ == "as":
        return True
    return before.dep_ == "pobj" and before.head.lower_ == "like" and before.head.i < before.i and before.head != prep


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
    part = [word for word in part if word.lower_ not in _JUST]
    yield from sorted([token, *part], key=lambda word: word.i)


def _told_of(word: Token, above: Token) -> bool:
    """Whether a word stands in a relative clause under a noun: "cards that I had not seen"."""
    while word.i != above.i and word.head.i != word.i:
        if word.dep_ == "relcl":
            return True
        word = word.head
    return False


def age_of(token: Token) -> Token | None:
    """Return the number of "a boy of about seven"."""
    told = (child for child in token.children if child.dep_ == "prep" and child.lower_ == "of")
    numbers = (word for child in told for word in child.children if word.dep_ == "pobj" and word.pos_ == "NUM")
    return next(numbers, None) if lemma_of(token) in load_words().sets["plain_person"] else None


def phrase_of(token: Token) -> str:
    """Return the words of a noun phrase, with "of ..." but without clauses."""
    words = list(_inside(token))
    for child in token.children:
        if child.dep_ == "prep" and child.lower_ == "of" and age_of(token) is None:
            words += [word for word in child.subtree if not _told_of(word, token)]
    words = [word for word in words if word.dep_ != "case" or word.head.i != token.i]
    while words and words[-1].is_punct and words[-1].text == ",":
        words.pop()
    return (
        " ".join(word.text for word in sorted(words, key=lambda word: word.i)).replace(" 's", "'s").replace(" ,", ",")
    )


def clauses_of(doc: Doc, quoted: Sequence[bool]) -> list[Clause]:
    """Return the clauses of a tree in the order of their verbs. quoted: for each word, whether it is in quotes."""
    words = load_words()
    repair(doc, quoted, words)
    return _Builder(doc, quoted, words).build()


def _is_the(noun: Token) -> bool:
    """Whether a noun is a certain thing, somebody's or "the": nobody feels themselves to be that."""
    return any(child.dep_ == "poss" or child.lower_ == "the" for child in noun.children)
