"""What an answer or a question says, from its parse: its content words, each with its part in a clause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from katha_sketch.english.clauses import Clause, clauses_of, conjuncts
from katha_sketch.english.parsing import load_parser
from katha_sketch.english.words import load_words
from katha_sketch.matching.asked import Asking
from katha_sketch.matching.lemmas import lexicon
from katha_sketch.matching.wordnet import (
    PARTS,
    Lemma,
    is_somebody,
    lemma_of,
    names_somebody,
    usage,
    verb_form,
    wordnet,
)

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_LEAD = re.compile(
    r"^(?:it(?: i|')s |it was )?(?:just |simply )?"
    r"(?:because(?! of)|since|so that|so|that|thanks to|due to|because of|how)\s+(?=\S)"
)
Part = Literal["verb", "state", "agent", "other", "adjunct", "modifier", "head"]
"""verb and state say what is the case; agent, other (acted on, given to) and adjunct (where, with what) take part in
it; a modifier belongs to a noun; head: of a phrase."""
_BEFORE = {"poss": "of", "compound": "-"}
_ACTIVE = ("deed", "event", "why")
_THINGS = ("thing", "furniture")


@dataclass(frozen=True)
class Word:
    """A content word: its lemma, its part, the frame it stands in, and what is said of it.

    at: its place in the text. owner: for a modifier, the place of its noun. amount: "2", "half", "no" or "" of a noun.
    denied: it stands under a negation of its own ("no coat", "without a sound"). proper: it is a name. preposition:
    before its phrase, "of" for whose something is, "-" in a compound.
    """

    lemma: Lemma
    part: Part
    frame: int
    at: int
    owner: int = -1
    amount: str = ""
    denied: bool = False
    proper: bool = False
    preposition: str = ""


@dataclass(frozen=True)
class Frame:
    """One clause: the places of its words by part, pronouns as written, and how it is said.

    above: the frame that it depends on, by `link`. unreal: wanted, tried, asked for or nearly done.
    """

    verb: Lemma
    agents: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    agent_pronoun: str = ""
    other_pronoun: str = ""
    negated: bool = False
    passive: bool = False
    unreal: bool = False
    stative: bool = False
    above: int = -1
    link: str = ""


@dataclass(frozen=True)
class Statement:
    """A text as read.

    given: the text as it was given. joined: the places of nouns that are joined ("the fox and the crow"), by group.
    """

    text: str
    given: str
    words: tuple[Word, ...]
    frames: tuple[Frame, ...]
    joined: tuple[tuple[int, ...], ...] = ()
    _by_place: dict[int, Word] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the words by their place."""
        self._by_place.update({word.at: word for word in self.words})

    @property
    def lead(self) -> str:
        """The first word as given."""
        return self.given.strip().partition(" ")[0].lower()

    def word(self, at: int) -> Word | None:
        """Return the content word at a place, None if there is none."""
        return self._by_place.get(at)

    def frame_of(self, word: Word) -> Frame | None:
        """Return the clause that a word stands in; None in a phrase."""
        return self.frames[word.frame] if word.frame >= 0 else None

    def filled(self, places: Iterable[int]) -> list[Word]:
        """Return the content words at these places."""
        return [word for at in places if (word := self.word(at)) is not None]


class _Reader:
    """Collects the words and frames of one tree."""

    def __init__(self, doc: Doc) -> None:
        self.doc = doc
        self.clauses = clauses_of(doc, [False] * len(doc))
        self.words: dict[int, Word] = {}
        self.frames: list[Frame] = []
        self.numbers = {id(clause): number for number, clause in enumerate(self.clauses)}
        self.absorbed: set[int] = set()
        self.idioms: set[int] = set()

    def read(self, text: str, given: str) -> Statement:
        for token in self.doc:
            below = token.dep_ == "pobj" and token.head.dep_ == "ROOT"
            if (token.dep_ == "ROOT" or below) and token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM"):
                for each in [token, *(child for child in token.children if child.dep_ == "conj")]:
                    if each.pos_ in ("NOUN", "PROPN", "ADJ", "NUM"):
                        self._enter(each, lemma_of(each), "head", -1, modify=True)
        for clause in self.clauses:
            self._clause(clause)
        for token in self.doc:
            self._rest(token)
        joined = [
            tuple(item.i for item in group)
            for token in self.doc
            if token.dep_ != "conj" and token.pos_ in ("NOUN", "PROPN", "PRON") and len(group := _group(token)) > 1
        ]
        if text.lower().split(" ")[0].strip(",") in usage().sets["denying"]:
            for at, word in self.words.items():
                if word.frame < 0 or word.part == "head":
                    self.words[at] = replace(word, denied=True)
        return Statement(
            text, given, tuple(self.words[at] for at in sorted(self.words)), tuple(self.frames), tuple(joined)
        )

    def _clause(self, clause: Clause) -> None:
        number = len(self.frames)
        for filler in [each for each in clause.fillers if _is_state(clause, each.token)]:
            clause.fillers.remove(filler)
            clause.state.append(filler.token)
        verb = self._predicate(clause, number)
        stative = clause.verb.i not in self.words or self.words[clause.verb.i].part != "verb"
        agents, others = clause.of("agent"), [f.token for f in clause.fillers if f.role != "agent"]
        suffers = verb[1] in usage().sets["suffered"] and not clause.passive
        if suffers:  # "he dies" is "he is killed"
            agents, others = [], agents + others
        acted = [f.token for f in clause.fillers if f.role in ("patient", "recipient") or f.token.lower_ != "it"]
        near: dict[str, Part] = {"agent": "other" if suffers else "agent", "patient": "other", "recipient": "other"}
        for filler in clause.fillers:
            self._noun(filler.token, near.get(filler.role, "adjunct"), number)
        agents = agents or self._misread(clause, number)
        nearly = any(child.lower_ in ("almost", "nearly") for child in clause.verb.children)
        parent = self.numbers.get(id(clause.parent), -1) if clause.parent is not None else -1
        # What is wanted, feared or tried; what a purpose or "because" says counts as said.
        chained = len(clause.chain) > 1 and clause.standing in ("intended", "imagined")
        self.frames.append(
            Frame(
                verb,
                tuple(token.i for token in agents if token.pos_ != "PRON" or token.i in self.words),
                tuple(token.i for token in others if token.pos_ != "PRON" or token.i in self.words),
                next((token.lower_ for token in agents if token.lower_ in usage().sets["pronouns"]), ""),
                next((t.lower_ for t in others if t.lower_ in usage().sets["pronouns"] and t in acted), ""),
                negated=clause.negated
                or _gives_up(clause)
                or (number not in self.idioms and self._lexical_negation(clause)),
                passive=clause.passive or suffers,
                unreal=nearly or chained or clause.modality in ("try", "may"),
                stative=stative,
                above=parent,
                link=clause.link,
            )
        )
        self._controlled(clause, number)

    def _controlled(self, clause: Clause, number: int) -> None:
        """Have whom another makes do it act: "get the cat to tie bells"."""
        frame, parent = self.frames[number], clause.parent
        if parent is None or frame.link not in ("content", "purpose") or frame.agents or frame.above < 0:
            return
        made = [token for token in parent.of("patient", "recipient") if token.i in self.words]
        to = any(child.lower_ == "to" for child in clause.chain[0].children)
        if to and made and parent.lemma in usage().sets["controlling"] and made[0].i < clause.chain[0].i:
            self.frames[number] = replace(frame, agents=tuple(token.i for token in made), agent_pronoun="")

    def _misread(self, clause: Clause, number: int) -> list[Token]:
        """The subject that the parser took for an attribute of the verb: "The geese fall"."""
        first = clause.chain[0] if clause.chain else clause.verb
        before = first.nbor(-1) if first.i and not clause.passive else None
        if before is None or before.dep_ not in ("amod", "compound", "npadvmod"):
            return []
        if any(filler.role == "agent" for filler in clause.fillers) or not is_somebody(lemma_of(before)[1]):
            return []
        self.words.pop(before.i, None)
        self._enter(before, ("n", lemma_of(before)[1]), "agent", number)
        return [before]

    def _lexical_negation(self, clause: Clause) -> bool:
        """ "fails to", "instead of", "no longer": a negation that is no "not"."""
        parent = clause.parent
        if parent is not None and clause.link in ("content", "purpose") and parent.lemma in usage().sets["negators"]:
            return True
        whole = f"{clause.lemma}_{clause.particle}".strip("_")
        helpers = [child for child in clause.verb.children if child.dep_ in ("aux", "auxpass")]
        if not clause.negated and any(child.dep_ == "neg" for helper in helpers for child in helper.children):
            return True  # "does not get stuck"
        return clause.phase == "stop" or whole in usage().sets["cancelling"]

    def _predicate(self, clause: Clause, number: int) -> Lemma:
        """Enter what the clause says; return its verb."""
        verb, lemma = clause.verb, clause.lemma
        if verb.tag_ in ("VBD", "VBN"):
            lemma = lexicon().irregular.get(lemma, lemma)
        whole = f"{lemma}_{clause.particle.replace(' ', '_')}" if clause.particle else lemma
        key: Lemma = ("v", whole if clause.particle and ("v", whole) in wordnet().senses else lemma)
        idiom = self._idiom(clause, lemma)
        support = self._supported(clause) if lemma in usage().sets["support"] else None
        light = lemma in usage().sets["light"] and not clause.particle
        if idiom:
            self.idioms.add(number)
            key = ("v", idiom)
            self._enter(verb, key, "verb", number)
        elif support is not None:
            noun = str(support.lemma_.lower())
            key = ("v", noun) if ("v", noun) in wordnet().senses else ("n", noun)
            self.absorbed.add(support.i)
            self._enter(verb, key, "verb", number)
        elif not light:
            self._enter(verb, key, "verb", number)
        elif lemma in usage().sets["carrying"]:
            self._enter(verb, key, "modifier" if clause.state else "verb", number)
        for token in clause.chain[:-1]:
            if clause.negated and token.lemma_ in usage().sets["negators"]:
                # "refuses to open": the refusal itself is no denial.
                self.words[token.i] = Word(lemma_of(token), "verb", number, token.i, denied=True)
        for token in clause.state:
            if token.i != verb.i or token.i not in self.words:
                self._enter(token, lemma_of(token), "state", number, modify=True)
        return key

    def _idiom(self, clause: Clause, lemma: str) -> str | None:
        """The idiom that the verb makes with a word near it: "set free", "stop working", "lose temper"."""
        following = [token for token in self.doc[clause.verb.i + 1 : clause.verb.i + 5] if token.pos_ != "PUNCT"]
        heads = [clause.chain[0]] if len(clause.chain) > 1 else []
        for start in (lemma, *(str(head.lemma_.lower()) for head in heads)):
            inside = following if start == lemma else [clause.verb]
            for token in inside:
                found = usage().idioms.get((start, token.lower_)) or usage().idioms.get(
                    (start, str(token.lemma_.lower()))
                )
                if found:
                    self.absorbed.add(token.i) if token.i != clause.verb.i else None
                    return found
        return None

    def _supported(self, clause: Clause) -> Token | None:
        """The noun that carries the meaning of a verb like "have": "has a snooze", "gives him a call"."""
        for token in clause.of("patient", "recipient"):
            indefinite = any(child.lower_ in ("a", "an") for child in token.children)
            described = any(child.dep_ == "amod" for child in token.children)
            if described and load_words().sort(lemma_of(token)[1]) in _THINGS:
                continue  # a new cage is no caging
            if indefinite and token.pos_ == "NOUN" and token.lemma_.lower() in wordnet().deeds:
                return token
        return None

    def _noun(self, token: Token, part: Part, number: int) -> None:
        if token.i in self.absorbed or (token.pos_ == "PRON" and token.lower_ not in ("nothing", "nobody", "none")):
            return
        if token.pos_ in ("ADV", "ADP", "DET") and token.lower_ not in ("home", "together", "away"):
            part = "modifier"
        self._enter(token, lemma_of(token), part, number, modify=True)

    def _enter(
        self, token: Token, lemma: Lemma, part: Part, frame: int, *, modify: bool = False, owner: int = -1
    ) -> None:
        mutual = token.lower_ in ("other", "another") and token.i and token.nbor(-1).lower_ in ("each", "one")
        if token.i in self.words or token.i in self.absorbed or mutual:
            return
        self.words[token.i] = Word(
            lemma,
            part,
            frame,
            token.i,
            owner,
            _amount(token),
            _denied(token),
            token.pos_ == "PROPN" and token.text[0].isupper(),
            token.head.lower_ if token.dep_ == "pobj" else _BEFORE.get(token.dep_, ""),
        )
        if modify:
            for child in token.children:
                if (
                    child.dep_ in ("amod", "compound", "nmod", "poss", "appos", "advmod", "nummod")
                    and child.pos_ in PARTS
                ):
                    self._enter(child, lemma_of(child), "modifier", frame, modify=True, owner=token.i)
                elif child.dep_ == "prep" and child.lower_ == "of" and token.pos_ in ("NOUN", "PROPN", "NUM", "PRON"):
                    for inner in child.children:
                        if inner.dep_ == "pobj":
                            self._enter(inner, lemma_of(inner), "modifier", frame, modify=True, owner=token.i)

    def _rest(self, token: Token) -> None:
        """Enter a content word that no clause has a part for."""
        folded = any(token in clause.chain[:-1] for clause in self.clauses)
        if (
            folded
            or token.i in self.words
            or token.i in self.absorbed
            or token.pos_ not in PARTS
            or token.pos_ == "AUX"
        ):
            return
        lemma = lemma_of(token)
        if token.pos_ == "VERB" and lemma[1] in usage().sets["light"]:
            return
        if token.lower_ in usage().sets["small"]:
            return
        owner = next((number for number, clause in enumerate(self.clauses) if token in set(clause.verb.subtree)), -1)
        if token.dep_ in ("ROOT", "conj", "appos") and owner < 0:
            part: Part = "head"
        else:
            part = "modifier" if token.pos_ in ("ADV", "ADJ", "NUM") else "other"
        head = token.head.i if part == "modifier" else -1
        self._enter(token, lemma, part, owner, modify=part == "head", owner=head)


def _gives_up(clause: Clause) -> bool:
    """Whether a deed ends: "gives up reading"."""
    return (
        clause.lemma == "give"
        and clause.particle == "up"
        and any(f.token.tag_ == "VBG" or f.token.lower_.endswith("ing") for f in clause.fillers)
    )


def _is_state(clause: Clause, token: Token) -> bool:
    """Whether the parser took a state for an object: "gets wet"."""
    bare = not any(child.dep_ in ("det", "amod", "nummod", "poss") for child in token.children)
    became = clause.lemma in ("get", "go", "turn", "grow") and not clause.particle and token.dep_ in ("dobj", "attr")
    return became and bare and token.pos_ in ("NOUN", "ADJ") and ("a", token.lower_) in wordnet().senses


def _group(token: Token) -> list[Token]:
    """A noun with the nouns that are joined to it, "both of them" not counted."""
    found = conjuncts(token)
    for child in token.children:
        if child.dep_ == "prep" and child.lower_ in ("with", "without"):
            found += [inner for inner in child.children if inner.dep_ == "pobj" and names_somebody(inner)]
    return found


def _amount(token: Token) -> str:
    """How many or how much of a noun is meant, "" if nothing is said."""
    numbers = load_words().numbers
    for child in token.children:
        low = child.lower_
        if low in numbers:
            return str(numbers[low])
        if child.pos_ == "NUM" or low.isdigit():
            return low
        if child.dep_ in ("det", "predet", "nummod", "amod", "quantmod") and low in usage().sets["quantities"]:
            return low
    low = token.lower_
    return str(numbers[low]) if low in numbers else low if low.isdigit() else ""


def _denied(token: Token) -> bool:
    """Whether a word stands under a "no", "without", "not" or "neither" of its own."""
    low = {child.lower_ for child in token.children}
    if low & {"no", "not", "neither", "nor", "n't", "never"} and token.pos_ not in ("VERB", "AUX"):
        return True
    if token.dep_ != "pobj":
        return False
    head = token.head
    # "right here, not in the tree"
    before = head.nbor(-1).lower_ if head.i else ""
    verbal = head.head.pos_ in ("VERB", "AUX") and head.i and head.nbor(-1).head == head.head and head.head.i < head.i
    return head.lower_ == "without" or (before == "not" and not (verbal and head.head.i == head.i - 2))


# Answers that are the rest of a sentence, made whole for the parser.


def plain(text: str) -> str:
    """Return an answer without what judges say around it."""
    made = " ".join(text.replace("\u2019", "'").split()).strip(" .!\"'")
    for pattern, instead in lexicon().around:
        made = re.sub(pattern.pattern, instead, made, flags=re.IGNORECASE)
    for pattern, instead in usage().sayings:
        made = pattern.sub(instead, made)
    return made


def complete(text: str, asks: Asking) -> str:
    """Return an answer as a sentence where it is the rest of one: "ripping it up" becomes "they are ripping it up".

    asks: what the question asks for; after "what does she do" a first word that can be a verb is one, and after "what
    happens to it" a participle tells what is done to it.
    """
    deed = asks == "deed"
    made = _LEAD.sub("", plain(text), count=1) if len(text.split()) > 1 else plain(text)
    first, _, rest = made.partition(" ")
    low = first.lower()
    if low == "by" and rest.split(" ")[0].endswith("ing"):
        return f"they are {rest}"
    if low == "not" and rest:
        inner = complete(rest, asks)
        return inner.replace("they are ", "they are not ", 1) if inner.startswith("they are ") else made
    if low == "to" and verb_form(rest.split(" ")[0].lower()):
        return f"they {rest}"
    thing = ("n", low) in wordnet().senses and asks in ("other", "what", "event", "order")
    object_next = rest.split(" ")[0].lower() in usage().sets["determiners"]
    if low.endswith("ing") and len(low) > 4 and verb_form(low) and (not thing or object_next):
        return f"they are {made}"
    if low in ("never", "always", "then") or (low.endswith("ly") and deed):
        second = rest.split(" ")[0].lower()
        return f"they {made}" if verb_form(second) else made
    determined = rest.split(" ")[0].lower() in (*usage().sets["determiners"], "out", "into")
    participle = low in lexicon().irregular or low.endswith("ed")
    if asks in ("event", "state") and not determined and participle and verb_form(low) != low:
        return f"they {made}" if low in usage().sets["past"] else f"they are {made}"
    if asks == "event" and low.endswith("s") and verb_form(low):
        return f"they {made}"
    if deed and verb_form(low) and low not in ("a", "an", "the"):
        return f"they are {made}" if low.endswith("ed") and rest.startswith("by ") else f"they {made}"
    return made


_KEPT = 50_000


@cache
def _shelf() -> dict[tuple[str, Asking], Statement]:
    """The statements that were read, kept so that no answer is parsed twice."""
    return {}


def read_statements(texts: Sequence[str], asks: Asking = "what") -> list[Statement]:
    """Return what answers to a question of this kind say; those that are new are parsed together."""
    shelf = _shelf()
    if len(shelf) + len(texts) > _KEPT:
        shelf.clear()
    new = list(dict.fromkeys(text for text in texts if (text, asks) not in shelf))
    sentences = [complete(text, asks) for text in new]
    docs = load_parser().parse(sentences) if new else []
    again = {at: mended for at, doc in enumerate(docs) if (mended := _with_verb(doc, asks))}
    for at, doc in zip(again, load_parser().parse(again.values()) if again else (), strict=True):
        sentences[at], docs[at] = again[at], doc
    for text, sentence, doc in zip(new, sentences, docs, strict=True):
        shelf[text, asks] = _Reader(doc).read(sentence, text)
    return [shelf[text, asks] for text in texts]


def _with_verb(doc: Doc, asks: Asking) -> str | None:
    """The sentence with the verb that the parser took for a noun: "Her brother waves" as "Her brother did wave"."""
    root = next((token for token in doc if token.dep_ == "ROOT"), None)
    several = root is not None and any(child.tag_ == "NNS" and child.dep_ == "compound" for child in root.lefts)
    if root is None or (root.tag_ != "NNS" and not (several and root.tag_ == "NN")):
        return None
    subject = any(child.dep_ in ("amod", "compound", "poss") for child in root.lefts)
    acted_on = any(child.pos_ in ("NOUN", "PROPN") for child in root.rights)
    base = verb_form(root.lower_)
    somebody = any(child.dep_ == "compound" and is_somebody(lemma_of(child)[1]) for child in root.lefts)
    acts = asks in _ACTIVE or acted_on or (asks == "how" and somebody and any(c.dep_ == "prep" for c in root.rights))
    if not subject or not acts or base is None or (base == root.lower_ and not several):
        return None
    return f"{doc.text[: root.idx]}did {base}{doc.text[root.idx + len(root) :]}"
