"""What an answer or a question says, from its parse: its content words, each with its part in a clause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

from katha.eval_bridge.matching.lemmas import lexicon
from katha.eval_bridge.matching.wordnet import Lemma, same, usage, verb_form, wordnet
from katha.text.clauses import Clause, clauses_of, conjuncts
from katha.text.parsing import load_parser
from katha.text.words import load_words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

Part = Literal["verb", "state", "agent", "other", "adjunct", "modifier", "head"]
"""verb and state say what is the case; agent, other (acted on, given to) and adjunct (where, with what) take part in it; a
modifier belongs to a noun; head: of a phrase."""
_POS = {"NOUN": "n", "PROPN": "n", "VERB": "v", "AUX": "v", "ADJ": "a", "ADV": "r", "NUM": "a", "INTJ": "n", "X": "n"}
_LEAD = re.compile(
    r"^(?:it(?: i|')s |it was )?(?:just |simply )?(?:because(?! of)|since|so that|so|that|thanks to|due to|because of|how)\s+(?=\S)"
)
_PRONOUNS = frozenset(
    [
        "i",
        "you",
        "he",
        "she",
        "it",
        "we",
        "they",
        "me",
        "him",
        "her",
        "us",
        "them",
        "himself",
        "herself",
        "itself",
        "themselves",
        "who",
    ]
)
_PAST = frozenset(
    [
        "fell",
        "ran",
        "went",
        "broke",
        "flew",
        "ate",
        "took",
        "gave",
        "got",
        "came",
        "rose",
        "sank",
        "grew",
        "was",
        "were",
        "has",
        "had",
        "does",
        "is",
        "are",
        "drowned",
        "escaped",
    ]
)
_ACTIVE = ("deed", "event", "why")
Asking = Literal["agent", "other", "deed", "event", "state", "why", "how", "number", "order", "what"]


@dataclass(frozen=True)
class Word:
    """A content word: its lemma, its part, the frame it stands in, and what is said of it.

    at: its place in the text. owner: for a modifier, the place of its noun. amount: "2", "half", "no" or "" of a noun.
    denied: it stands under a negation of its own ("no coat", "without a sound"). proper: it is a name.
    """

    lemma: Lemma
    part: Part
    frame: int
    at: int
    owner: int = -1
    amount: str = ""
    denied: bool = False
    proper: bool = False


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
    """A text as read. `lead`: its first word as given. `joined`: places of nouns that are joined ("the fox and the crow"), the first ones of each group first."""

    text: str
    lead: str
    words: tuple[Word, ...]
    frames: tuple[Frame, ...]
    joined: tuple[tuple[int, ...], ...] = ()
    _by_place: dict[int, Word] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the words by their place."""
        self._by_place.update({word.at: word for word in self.words})

    def word(self, at: int) -> Word | None:
        """Return the content word at a place, None if there is none."""
        return self._by_place.get(at)

    def frame_of(self, word: Word) -> Frame | None:
        """Return the clause that a word stands in; None in a phrase."""
        return self.frames[word.frame] if word.frame >= 0 else None

    def filled(self, places: Iterable[int]) -> list[Word]:
        """Return the content words at these places."""
        return [word for at in places if (word := self.word(at)) is not None]


def plain(text: str) -> str:
    """Return an answer in lower-case-insensitive plain words, without what judges say around it."""
    made = " ".join(text.replace("\u2019", "'").split()).strip(" .!\"'")
    for pattern, instead in lexicon().around:
        made = re.sub(pattern.pattern, instead, made, flags=re.IGNORECASE)
    made = re.sub(r"\bwed\b", "married", made)  # the tokenizer reads "we'd"
    made = re.sub(r"\b(?:is|are|was|were) (?:anything but|far from|no longer)\b", "is not", made, flags=re.IGNORECASE)
    return made


def complete(text: str, asks: Asking) -> str:
    """Return an answer as a sentence where it is the rest of one: "ripping it up" becomes "they are ripping it up".

    asks: what the question asks for; after "what does she do" a first word that can be a verb is one, and after "what happens
    to it" a participle tells what is done to it.
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
    object_next = rest.split(" ")[0].lower() in ("a", "an", "the", "his", "her", "its", "their", "him", "it", "them")
    if low.endswith("ing") and len(low) > 4 and verb_form(low) and (not thing or object_next):
        return f"they are {made}"
    if low in ("never", "always", "then") or (low.endswith("ly") and deed):
        second = rest.split(" ")[0].lower()
        return f"they {made}" if verb_form(second) else made
    alone = rest.split(" ")[0].lower() not in (
        "a",
        "an",
        "the",
        "it",
        "him",
        "her",
        "them",
        "his",
        "its",
        "their",
        "out",
        "into",
    )
    if (
        asks in ("event", "state")
        and alone
        and (low in lexicon().irregular or low.endswith("ed"))
        and verb_form(low) != low
    ):
        return f"they are {made}" if low not in _PAST else f"they {made}"
    if asks == "event" and verb_form(low) and low not in ("a", "an", "the") and low.endswith("s"):
        return f"they {made}"
    if deed and verb_form(low) and low not in ("a", "an", "the") and (rest or low not in wordnet_nouns()):
        return f"they {made}" if not (low.endswith("ed") and rest.startswith("by ")) else f"they are {made}"
    return made


def wordnet_nouns() -> frozenset[str]:
    """Return words that alone are rather nouns than verbs."""
    return usage().sets["vague"]


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

    def read(self, text: str, lead: str) -> Statement:
        for token in self.doc:
            below = token.dep_ == "pobj" and token.head.dep_ == "ROOT"
            if (token.dep_ == "ROOT" or below) and token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM"):
                for each in [token, *(child for child in token.children if child.dep_ == "conj")]:
                    if each.pos_ in ("NOUN", "PROPN", "ADJ", "NUM"):
                        self._enter(each, _lemma(each), "head", -1, modify=True)
        for clause in self.clauses:
            self._clause(clause)
        for token in self.doc:
            self._rest(token)
        joined = [
            tuple(item.i for item in group)
            for token in self.doc
            if token.dep_ != "conj" and token.pos_ in ("NOUN", "PROPN", "PRON") and len(group := _group(token)) > 1
        ]
        if text.lower().split(" ")[0].strip(",") in (
            "not",
            "no",
            "nothing",
            "never",
            "neither",
            "nobody",
            "none",
            "without",
        ):
            for at, word in self.words.items():
                if word.frame < 0 or word.part == "head":
                    self.words[at] = replace(word, denied=True)
        return Statement(
            text, lead, tuple(self.words[at] for at in sorted(self.words)), tuple(self.frames), tuple(joined)
        )

    def _clause(self, clause: Clause) -> None:
        number = len(self.frames)
        verb = self._predicate(clause, number)
        stative = clause.verb.i not in self.words or self.words[clause.verb.i].part != "verb"
        agents, others = clause.of("agent"), [f.token for f in clause.fillers if f.role != "agent"]
        for filler in clause.fillers:
            near = {"agent": "agent", "patient": "other", "recipient": "other"}
            self._noun(filler.token, near.get(filler.role, "adjunct"), number)  # type: ignore[arg-type]
        if not any(filler.role == "agent" for filler in clause.fillers) and not clause.passive and clause.verb.i:
            before = clause.verb.nbor(-1)
            if before.dep_ in ("amod", "compound", "npadvmod") and load_words().sort(_lemma(before)[1]) in (
                "person",
                "animal",
                "being",
            ):
                agents = [before]  # a noun that the parser took for an attribute: "The geese fall"
                self.words.pop(before.i, None)
                self._enter(before, ("n", _lemma(before)[1]), "agent", number)
        nearly = any(child.lower_ in ("almost", "nearly") for child in clause.verb.children)
        parent = self.numbers.get(id(clause.parent), -1) if clause.parent is not None else -1
        # What is wanted, feared or tried; what a purpose or "because" says counts as said.
        chained = len(clause.chain) > 1 and clause.standing in ("intended", "imagined")
        self.frames.append(
            Frame(
                verb,
                tuple(token.i for token in agents if token.pos_ != "PRON" or token.i in self.words),
                tuple(token.i for token in others if token.pos_ != "PRON" or token.i in self.words),
                next((token.lower_ for token in agents if token.lower_ in _PRONOUNS), ""),
                next((token.lower_ for token in others if token.lower_ in _PRONOUNS), ""),
                negated=clause.negated or (number not in self.idioms and self._lexical_negation(clause)),
                passive=clause.passive,
                unreal=nearly or chained or clause.modality in ("try", "may"),
                stative=stative,
                above=parent,
                link=clause.link,
            )
        )

    def _lexical_negation(self, clause: Clause) -> bool:
        """ "fails to", "instead of", "no longer": a negation that is no "not"."""
        parent = clause.parent
        if parent is not None and clause.link in ("content", "purpose") and parent.lemma in usage().sets["negators"]:
            return True
        return clause.phase == "stop" or self._cancels(clause)

    def _predicate(self, clause: Clause, number: int) -> Lemma:
        """Enter what the clause says; return its verb."""
        verb, lemma = clause.verb, clause.lemma
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
        elif lemma in ("give", "take", "get", "make", "go", "turn", "let", "pay", "grow", "stand", "appear", "look"):
            self._enter(verb, key, "modifier" if clause.state else "verb", number)
        for token in clause.chain[:-1]:
            if clause.negated and token.lemma_ in usage().sets["negators"]:
                # "refuses to open": the refusal itself is no denial.
                self.words[token.i] = Word(_lemma(token), "verb", number, token.i, denied=True)
        for token in clause.state:
            if token.i != verb.i or token.i not in self.words:
                self._enter(token, _lemma(token), "state", number, modify=True)
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
            if indefinite and token.pos_ == "NOUN" and token.lemma_.lower() in wordnet().deeds:
                return token
        return None

    def _noun(self, token: Token, part: Part, number: int) -> None:
        if token.i in self.absorbed or (token.pos_ == "PRON" and token.lower_ not in ("nothing", "nobody", "none")):
            return
        if token.pos_ in ("ADV", "ADP", "DET") and token.lower_ not in ("home", "together", "away"):
            part = "modifier"
        self._enter(token, _lemma(token), part, number, modify=True)

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
        )
        if modify:
            for child in token.children:
                if (
                    child.dep_ in ("amod", "compound", "nmod", "poss", "appos", "advmod", "nummod")
                    and child.pos_ in _POS
                ):
                    self._enter(child, _lemma(child), "modifier", frame, modify=True, owner=token.i)
                elif child.dep_ == "prep" and child.lower_ == "of" and token.pos_ in ("NOUN", "PROPN", "NUM", "PRON"):
                    for inner in child.children:
                        if inner.dep_ == "pobj":
                            self._enter(inner, _lemma(inner), "modifier", frame, modify=True, owner=token.i)

    @staticmethod
    def _cancels(clause: Clause) -> bool:
        return clause.lemma in ("cancel", "prevent", "stop", "avoid", "lack") or (clause.lemma, clause.particle) == (
            "call",
            "off",
        )

    def _rest(self, token: Token) -> None:
        """Enter a content word that no clause has a part for."""
        folded = any(token in clause.chain[:-1] for clause in self.clauses)
        if folded or token.i in self.words or token.i in self.absorbed or token.pos_ not in _POS or token.pos_ == "AUX":
            return
        lemma = _lemma(token)
        if token.pos_ == "VERB" and lemma[1] in usage().sets["light"]:
            return
        if token.lower_ in (
            "not",
            "n't",
            "never",
            "so",
            "very",
            "too",
            "then",
            "just",
            "only",
            "also",
            "there",
            "when",
            "why",
            "how",
        ):
            return
        owner = next((number for number, clause in enumerate(self.clauses) if token in _span(clause)), -1)
        if token.dep_ in ("ROOT", "conj", "appos") and owner < 0:
            part: Part = "head"
        else:
            part = "modifier" if token.pos_ in ("ADV", "ADJ", "NUM") else "other"
        head = token.head.i if part == "modifier" else -1
        self._enter(token, lemma, part, owner, modify=part == "head", owner=head)


def _span(clause: Clause) -> set[Token]:
    return set(clause.verb.subtree)


def _group(token: Token) -> list[Token]:
    """A noun with the nouns that are joined to it, "both of them" not counted."""
    found = conjuncts(token)
    for child in token.children:
        if child.dep_ == "prep" and child.lower_ in ("with", "without"):
            found += [inner for inner in child.children if inner.dep_ == "pobj" and _is_somebody(inner)]
    return found


def _lemma(token: Token) -> Lemma:
    pos = _POS.get(token.pos_, "n")
    word = token.lower_ if token.pos_ == "PROPN" else str(token.lemma_.lower())
    if pos == "v":
        word = lexicon().irregular.get(token.lower_, word)
    known = wordnet().senses
    if (pos, word) not in known:
        others = [each for each in "nvar" if (each, word) in known]
        singular = word.removesuffix("s")
        if not others and pos == "n" and ("n", singular) in known:
            word = singular
        elif others:
            pos = others[0]
    return pos, load_words().lemmas.get(word, word)


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
    return token.dep_ == "pobj" and token.head.lower_ in ("without",)


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
        shelf[text, asks] = _Reader(doc).read(sentence, text.strip().partition(" ")[0].lower())
    return [shelf[text, asks] for text in texts]


def _with_verb(doc: Doc, asks: Asking) -> str | None:
    """The sentence with the verb that the parser took for a noun: "Her brother waves" as "Her brother did wave"."""
    root = next((token for token in doc if token.dep_ == "ROOT"), None)
    if (
        root is None
        or root.tag_ != "NNS"
        or not any(child.dep_ in ("amod", "compound", "poss") for child in root.lefts)
    ):
        return None
    base = verb_form(root.lower_)
    return (
        f"{doc.text[: root.idx]}did {base}{doc.text[root.idx + len(root) :]}"
        if base not in (None, root.lower_)
        else None
    )


@dataclass(frozen=True)
class Asked:
    """What a question is about: what it asks for, whom it is about, everybody else in it, its verb, every word, and people."""

    asks: Asking
    topic: tuple[Lemma, ...]
    others: tuple[Lemma, ...]
    verb: Lemma | None
    words: tuple[Lemma, ...]
    people: tuple[Lemma, ...]
    ordered: bool

    def has(self, lemma: Lemma) -> bool:
        """Whether the question says this word or one that means the same."""
        return any(lemma[1] == word[1] or (lemma[0] == word[0] and same(lemma, word)) for word in self.words)


def _is_somebody(token: Token) -> bool:
    return token.pos_ == "PROPN" or is_somebody(_lemma(token)[1])


def is_somebody(noun: str) -> bool:
    """Return whether a noun is a person, an animal, a being or a group of them."""
    words = load_words()
    return words.sort(noun) in ("person", "animal", "being", "group") or words.has("kin", noun)


_ORDERING = frozenset(("first", "before", "after", "order", "change", "changes"))


@lru_cache(maxsize=2048)
def read_question(question: str) -> Asked:
    """Return what a question asks, and about whom."""
    text = " ".join(question.replace("\u2019", "'").split())
    (doc,) = load_parser().parse([text])
    low = re.findall(r"[a-z']+", text.lower())
    root = next((token for token in doc if token.dep_ == "ROOT"), doc[0])
    content = [
        token for token in doc if token.pos_ in _POS and token.pos_ != "AUX" and token.tag_ not in ("WRB", "WP", "WDT")
    ]
    happens = any(token.lemma_ in ("happen", "become") for token in doc)
    subjects = [token for token in root.children if token.dep_ in ("nsubj", "nsubjpass")]
    topic = [noun for token in subjects for noun in conjuncts(token) if noun.tag_ not in ("WP", "WDT")]
    if happens:
        after = [
            token for token in doc if token.dep_ == "pobj" and token.head.lower_ in ("to", "between", "with", "of")
        ]
        topic = conjuncts(after[0]) if after else topic
    if not topic and (happens or not subjects):
        topic = [
            token for token in doc if token.dep_ in ("nsubj", "nsubjpass", "attr") and token.pos_ in ("NOUN", "PROPN")
        ][:1]
    if not topic and low[1:2] and low[1] in ("do", "does", "did"):
        topic = [token for token in content if token.pos_ in ("NOUN", "PROPN")][:1]
    topic = list(dict.fromkeys(topic))
    if topic and all(
        token.pos_ != "PROPN" and load_words().sort(_lemma(token)[1]) in ("", "abstract", "time", "feeling")
        for token in topic
    ):
        topic += (
            [token for token in doc if token.pos_ in ("NOUN", "PROPN") and _is_somebody(token)]
            if happens or low[0] == "how"
            else []
        )
    nouns = [token for token in content if token.pos_ in ("NOUN", "PROPN")]
    others = [token for token in nouns if token not in topic]
    verb = _lemma(root) if root.pos_ == "VERB" and not happens and root.lemma_ not in ("do", "feel") else None
    return Asked(
        _asks(low, doc, happens),
        tuple(map(_lemma, topic)),
        tuple(map(_lemma, others)),
        verb,
        tuple(_lemma(token) for token in content if token.lemma_ not in ("do", "feel", "happen")),
        tuple(_lemma(token) for token in nouns if _is_somebody(token)),
        bool(_ORDERING.intersection(low)),
    )


def _asks(low: Sequence[str], doc: Doc, happens: bool) -> Asking:
    first = low[0] if low else ""
    if "first" in low and "or" in low:
        return "order"
    if "feel" in low or "feels" in low or "feeling" in low:
        return "state"
    if "many" in low[:2] or "much" in low[:2]:
        return "number"
    if first == "why":
        return "why"
    if happens:
        return "event"
    if "do" in low[1:] or "does" in low[2:]:
        return (
            "deed"
            if first in ("what", "how") and doc[-2 if doc[-1].is_punct else -1] is not None and _does(doc)
            else "other"
        )
    if first == "who":
        return "agent"
    return "how" if first == "how" else "other" if first in ("what", "whom", "which", "where") else "what"


def _does(doc: Doc) -> bool:
    """Whether "do" is the question's own verb: "What does she do with it?" """
    return any(token.lemma_ == "do" and token.pos_ == "VERB" for token in doc) or any(
        token.lemma_ == "do" and token.dep_ == "ROOT" for token in doc
    )
