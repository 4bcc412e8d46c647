"""The words that name somebody or something: noun phrases, names, pronouns, possessives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from katha.intake.names import MARKS
from katha_sketch.english.beasts import beast_named, looks_named
from katha_sketch.english.clauses import Clause, conjuncts, phrase_of
from katha_sketch.english.parsing import NAME
from katha_sketch.english.repairs import is_time, lemma_of
from katha_sketch.english.sentences import Piece
from katha_sketch.english.words import Words

if TYPE_CHECKING:
    from spacy.tokens import Token

__all__ = ["Key", "Mention", "Parsed", "mentions_of"]

Key = tuple[int, int]
"""A word: the number of its piece, its number in that piece."""


@dataclass
class Parsed:
    """A piece with its words, which of them are quoted, and its clauses."""

    piece: Piece
    number: int
    tokens: Sequence[Token]
    quoted: Sequence[bool]
    clauses: list[Clause]


@dataclass
class Mention:
    """One naming of an entity.

    pronoun: its nominative; poss, reflexive, own ("his" alone): its form. noun: the lemma of a common noun.
    unreal: what another is like, or a picture of it. speaks: it says what stands in quotes there.
    part: only some of it is meant. made: it is a figure of plastic, wood or the like.
    """

    key: Key
    token: Token
    sentence: int
    text: str
    quoted: bool
    noun: str = ""
    name: str = ""
    titles: tuple[str, ...] = ()
    pronoun: str = ""
    form: Literal["", "poss", "reflexive", "own"] = ""
    article: Literal["", "the", "a", "this", "no", "other"] = ""
    plural: bool = False
    count: int = 1
    adjectives: tuple[str, ...] = ()
    owner: Key | None = None
    inner: Key | None = None
    role: str = ""
    preposition: str = ""
    unreal: bool = False
    speaks: bool = False
    part: bool = False
    made: bool = False
    clause: Clause | None = None
    joined: tuple[Key, ...] = ()
    also: tuple[tuple[str, str], ...] = ()
    entity: str | None = field(default=None)


_ARTICLES: Mapping[str, Literal["the", "a", "this", "no", "other"]] = {
    **dict.fromkeys(("the",), "the"),
    **dict.fromkeys(("a", "an", "some", "one", "each", "every", "any"), "a"),
    **dict.fromkeys(("this", "that", "these", "those"), "this"),
    "no": "no",
    "another": "other",
}


def _name_parts(token: Token, words: Words) -> tuple[str, tuple[str, ...], str]:
    """The name, the titles before it, and a common noun before it ("brother Tom")."""
    before: list[Token] = []
    for child in sorted((c for c in token.children if c.dep_ in ("compound", "nmod")), key=lambda c: -c.i):
        if child.i == token.i - 1 - len(before):
            before.insert(0, child)
    titles = [c for c in before if words.has("titles", c.lower_.rstrip(".")) or words.has("kin", c.lower_)]
    nouns = [c for c in before if c not in titles and c.pos_ == "NOUN" and c.text.islower()]
    rest = [c.text for c in before if c not in titles and c not in nouns and not words.has("time_adverbs", c.lower_)]
    rest = [part for part in rest if part[0].isalpha() or part[0] in "'\u2019"]  # "70-year-old Rosa", "| Ben"
    after = token.nbor(1) if token.i + 1 < len(token.doc) else token
    numbered = [after.text] if _numbers_name(after, words) else []  # "Unit Nine"
    return (
        " ".join(MARKS.sub(" ", " ".join([*rest, token.text, *numbered])).split()) or token.text,
        tuple(c.text.rstrip(".") for c in titles),
        nouns[-1].lemma_ if nouns else "",
    )


def _numbers_name(token: Token, words: Words) -> bool:
    """Whether a word is the number of a name: the "Nine" of "Unit Nine"."""
    number = token.i > 0 and ((words.number(token.lower_) > 0 and token.text[0].isupper()) or token.text.isdigit())
    before = token.nbor(-1) if number else token
    return number and before.text[0].isupper() and before.pos_ in ("PROPN", "NOUN") and token.head == before


def _ends_numbered(token: Token, words: Words) -> bool:
    """Whether a word is the number that the parser takes for the name itself: "Unit Six paused"."""
    before = token.nbor(-1) if token.i else token
    called = before.dep_ in ("compound", "nmod") and before.head == token and before.text[0].isupper()
    return called and token.text[0].isupper() and words.number(token.lower_) > 0


def _common_first(token: Token, words: Words) -> str:
    """The singular of a sentence's first word that is a common noun, though the parser takes it for a name: "Water ran
    into the cellar", "Firefighters came"; "" for any other."""
    first = token.i == 0 or token.nbor(-1).text in ('"', "'")
    if not first or token.pos_ != "PROPN" or token.dep_ in ("compound", "poss", "appos"):
        return ""
    if any(child.dep_ in ("compound", "nmod", "det") for child in token.children):
        return ""
    lower = token.lower_
    if words.has("mass", lower):
        return lower
    one = lower[:-1] if lower.endswith("s") and not lower.endswith("ss") else ""
    known = words.sort(one) if one else ""
    return one if known and known not in ("place", "water", "land", "region", "time") else ""


def _is_name(token: Token, words: Words, names: Set[str] = frozenset()) -> bool:
    """Whether a word is a name: a capital that is no sentence's beginning, or a word that is no known noun."""
    if _ends_numbered(token, words) or token.ent_type_ == NAME:
        return True
    if not token.text[0].isupper() or words.number(token.lower_) or (token.text.isupper() and len(token.text) > 3):
        return False
    has_article = any(child.lower_ in ("a", "an", "the") for child in token.children if child.dep_ == "det")
    known = words.sort(token.lemma_.lower())
    if token.i + 1 < len(token.doc) and _numbers_name(token.nbor(1), words):
        return True
    if _common_first(token, words):
        return False
    if token.text in names and not has_article:
        return True
    if has_article:
        return token.pos_ == "PROPN" and not known
    first = token.i == 0 or token.nbor(-1).text in ('"', "'")
    if first and words.has("sounds", token.lower_):
        return False
    kin = words.has("kin", token.lower_) and not any(child.dep_ == "poss" for child in token.children)
    if kin and token.lower_ not in ("friend", "friends", "child"):
        return True
    if first and known == "abstract" and token.head.lemma_ == "be":
        what = next((words.sort(child.lemma_) for child in token.head.children if child.dep_ == "attr"), "")
        return token.tag_ == "NNP" and what in ("animal", "being", "person")  # "Otis was a young owl"
    if first and token.pos_ == "NOUN":
        return not known and token.tag_ == "NN"
    return token.pos_ == "PROPN" or (token.pos_ in ("NOUN", "X") and not first)


def _wanted(token: Token, words: Words) -> bool:
    if token.ent_type_ == NAME and token.dep_ not in ("compound", "nmod", "amod"):
        return True
    if token.pos_ == "PRON" or token.tag_ in ("PRP", "PRP$"):
        return token.tag_ not in ("WP", "WDT", "WP$", "EX")
    if _numbers_name(token, words):
        return False
    whole = token.head.head if token.tag_ == "NNP" and token.dep_ == "pobj" and token.head.lower_ == "of" else token
    if whole.i and whole != token and whole.text[0].isupper() and whole.pos_ in ("NOUN", "PROPN"):
        return False  # "the Wolf of Hunger"
    if token.dep_ == "pobj" and token.head.lower_ == "in" and words.has("in_bare", token.lower_):
        return any(child.i < token.i for child in token.children)  # "came in person", "marched in pairs"
    if token.lower_ == "one" and token.dep_ == "pobj" and any(child.dep_ == "amod" for child in token.children):
        return True  # "bit into the first one"
    if token.pos_ not in ("NOUN", "PROPN") and not (
        token.pos_ in ("X", "NUM", "ADJ") and token.dep_ in ("nsubj", "nsubjpass", "dobj")
    ):
        return False
    if token.dep_ in ("compound", "nmod", "amod", "npadvmod") and not (
        token.dep_ == "npadvmod" and token.tag_ == "NNP"
    ):
        return False
    return not is_time(token, words) and not (
        words.has("here", token.lower_) and token.dep_ in ("npadvmod", "advmod", "ROOT")
    )


def _is_measure(token: Token) -> bool:
    """Whether a noun only says what somebody told before is like: "laughed at so small a friend"."""
    before = [word.lower_ for word in token.doc[token.left_edge.i : token.i]]
    return before[:1] == ["so"] and before[-1] in ("a", "an")


def _is_noun(token: Token, words: Words) -> bool:
    """Whether what could be a pronoun has an article: "in the mine"."""
    return words.has("own_pronouns", token.lower_) and any(child.dep_ in ("det", "amod") for child in token.children)


def _pronoun(mention: Mention, token: Token, words: Words) -> None:
    lower = token.lower_
    name = next(
        (key for key in ("he", "she", "it", "they", "i", "we", "you") if words.has(f"pronouns.{key}", lower)), ""
    )
    mention.pronoun = name or lower
    if "sel" in lower and lower.endswith(("self", "selves")):
        mention.form = "reflexive"
    elif words.has("own_pronouns", lower) and token.dep_ != "poss":
        mention.form = "own"
    elif token.dep_ == "poss" or token.tag_ == "PRP$":
        mention.form = "poss"
    mention.plural = name in ("they", "we")
    if lower in ("one", "other", "ones"):
        mention.adjectives = tuple(child.lower_ for child in token.children if child.dep_ == "amod")
    mention.also = tuple(_also(token, words))
    if token.tag_ == "CD" and not mention.also:
        mention.pronoun, mention.count = "one", words.number(lower)
        mention.plural = mention.count != 1
    elif lower == "ones":
        numbers = [words.numbers.get(child.lower_, 0) for child in token.children if child.dep_ == "nummod"]
        mention.pronoun, mention.plural, mention.count = "one", True, next(iter(numbers), 0)


def _noun_phrase(mention: Mention, token: Token, words: Words, names: Set[str]) -> None:
    """Note what a noun and the words that hang from it say: who or what, how many, which, whose."""
    if _is_name(token, words, names):
        _named(mention, token, words, names)
    else:
        _common(mention, token, words)
    mention.plural = mention.plural or token.tag_ == "NNS" or (token.tag_ == "NNPS" and not mention.name)
    _determiners(mention, token, words)
    mention.made = any(words.has("figures", child.lower_) for child in token.children if child.i < token.i)
    beside = [child.lower_ for child in token.children if child.dep_ == "compound" and child.text.islower()]
    whole = words.sort(mention.noun) not in ("body", "clothing", "food")  # a chicken leg is no chicken
    thing = whole and words.sort(mention.noun) not in ("person", "animal", "being", "")
    # A cuckoo clock is no cuckoo, and yet a robot arm may act.
    made = tuple(("noun", word) for word in beside if whole and words.sort(word) in ("person", "animal", "being")
                 and (not thing or words.has("machines", word)))  # fmt: skip
    mention.also = (*_also(token, words), *made)
    machine = next((word for word in beside if words.has("machines", word)), None)
    if machine is not None and words.sort(mention.noun) == "person":
        mention.noun = machine  # a robot cleaner is no cleaner


def _named(mention: Mention, token: Token, words: Words, names: Set[str]) -> None:
    """Note a name with its titles, and what it says that somebody is: "Mr and Mrs Tran", "Wolf", "the Trans"."""
    mention.name, mention.titles, mention.noun = _name_parts(token, words)
    known = mention.name.lower()
    if any(known in words.sets[name] for name in ("kin", "animal", "being")):
        mention.noun = mention.noun or token.lower_
    if beast := beast_named(mention.name, mention.titles, words):
        mention.noun, mention.adjectives = beast, looks_named(mention.name, mention.titles, words)
    married = next((c for c in token.children if c.dep_ == "conj" and c.tag_ == "NNP"), None)
    if married is not None and words.has("titles", known):
        # "Mr and Mrs Tran"
        mention.name, mention.titles = _name_parts(married, words)[0], (token.text,)
    family = token.tag_ == "NNPS" or mention.name.removesuffix("s") in names - {mention.name}
    mention.plural = family and any(c.lower_ == "the" for c in token.children)


def _common(mention: Mention, token: Token, words: Words) -> None:
    """Note a common noun, and of what it is a part or an amount: "a cup of tea"."""
    plain = _common_first(token, words)
    mention.noun = plain or words.noun_lemma(token.lemma_.lower().removeprefix("great-").removeprefix("ex-"))
    mention.plural = bool(plain) and plain != token.lower_
    inner = next((c for c in token.children if c.dep_ == "prep" and c.lower_ == "of"), None)
    goods = next((c for c in inner.children if c.dep_ == "pobj"), None) if inner is not None else None
    if goods is not None and (words.has("quantity", mention.noun) or words.has("relational", mention.noun)):
        mention.inner = (mention.key[0], goods.i)


def _determiners(mention: Mention, token: Token, words: Words) -> None:
    """Note what articles, numbers, adjectives and owners say of a noun."""
    for child in token.children:
        if child.dep_ in ("det", "predet"):
            mention.article = _ARTICLES.get(child.lower_, mention.article)
            if child.lower_ == "both":
                mention.plural, mention.count = True, 2
        elif child.dep_ == "nummod" and not _numbers_name(child, words):
            mention.count = words.number(child.lower_)
            mention.plural = mention.plural or mention.count > 1
        elif child.dep_ == "amod" or child.lower_.endswith("year-old"):
            found = [child, *(c for c in child.children if c.dep_ == "conj")]
            mention.adjectives += tuple(c.lower_ for c in found)
            if child.lower_ == "other":
                mention.article = "other"
        elif child.dep_ == "poss":
            up = next((one for one in child.ancestors if one.dep_ == "relcl"), None) if child.tag_ == "WP$" else None
            mention.owner = (mention.key[0], up.head.i if up is not None else child.i)
    if any(child.lower_ in ("a", "an", "another", "each", "every") for child in token.children):
        mention.plural = False  # "a trout"
    if mention.plural and mention.count == 1:
        mention.count = 2 if mention.noun == "twin" else 0


def _also(token: Token, words: Words) -> list[tuple[str, str]]:
    """Other names and nouns of the same one: "a robot named Pip", "Mr Brown, the baker", "her brother Tom"."""
    found: list[tuple[str, str]] = []
    names = token.dep_ == "nsubj" and any(child.dep_ in ("dobj", "ccomp") for child in token.head.children)
    if token.dep_ in ("nsubjpass", "nsubj", "dobj") and words.has("naming", token.head.lemma_.lower()) and not names:
        named = [word for word in token.head.rights if word.dep_ in ("oprd", "attr", "dobj") and word.i != token.i]
        found += [("name", _name_parts(word, words)[0]) for word in named if word.pos_ == "PROPN"]
    for child in (one for one in token.children if not words.is_time(one.lemma_.lower(), "NOUN")):
        lives = {words.sort(lemma_of(one)) in ("person", "animal", "being") for one in (token, child)}
        alike = len(lives) == 1 or {token.pos_, child.pos_} != {"NOUN"} or token.dep_ not in ("pobj", "dobj")
        appositive = child.dep_ == "appos" and not any(word.dep_ == "cc" for word in child.children) and alike
        if appositive:
            name = _is_name(child, words)
            found.append(("name", _name_parts(child, words)[0]) if name else ("noun", child.lemma_.lower()))
        for verb in (child, *(child.children if appositive else ())):
            if verb.dep_ == "acl" and words.has("naming", verb.lemma_.lower()):
                named = [word for word in verb.children if word.dep_ in ("oprd", "dobj", "attr")]
                found += [("name", _name_parts(word, words)[0]) for word in named]
    return found


def _unreal(token: Token, words: Words) -> bool:
    """Whether a noun is no thing of the story: "like a stone", "drew a whale", "a photo of a girl"."""
    new = not any(child.lower_ == "the" or child.dep_ == "poss" for child in token.children)
    head, sort = token.head, words.sort(token.lemma_.lower())
    if token.dep_ == "dobj" and head.lemma_ == "play" and sort in ("person", "animal", "being"):
        return True  # "the girl who played the queen"
    if token.dep_ == "poss" and sort == "person" and not words.has("kin", token.lower_):
        whose = words.sort(head.lemma_.lower())
        shop = whose in ("building", "place") and not any(child.lower_ == "the" for child in token.children)
        worn = whose == "clothing" and (new or head.head.lower_ == "in")
        return shop or worn  # "his barber's shop", "a clown's costume", "in the enemy's uniform"
    bare = token.tag_ == "NN" and token.dep_ in ("pobj", "dobj") and not list(token.lefts) and token.text.islower()
    if bare and words.sort(token.lower_) == "animal":
        return True  # "a recipe for mole", "they ate chicken": no animal of the story
    if token.dep_ == "pobj" and new:
        picture = head.lower_ == "of" and words.has("pictures", head.head.lemma_.lower())
        picture |= (
            head.lower_ == "of" and head.head.dep_ == "pobj" and _unreal(head.head, words)
        )  # "like maps of isles"
        return picture or words.has("likening", head.lower_)
    return token.dep_ in ("dobj", "conj") and new and words.has("draw", head.lemma_.lower())


def mentions_of(parsed: Sequence[Parsed], words: Words, names: Set[str]) -> dict[Key, Mention]:
    """Return every mention of a text, by its word, in the order of the text. names: words known to be names."""
    found: dict[Key, Mention] = {}
    for part in parsed:
        deeds = {clause.noun.i for clause in part.clauses if clause.noun is not None}  # "gave a shout"
        for token in part.tokens:
            if token.i in deeds:
                continue
            skipped = token.dep_ in ("oprd",) and words.has("naming", token.head.lemma_.lower())
            if not _wanted(token, words) or skipped or _is_measure(token) or token.text in "\"'":
                continue
            key = (part.number, token.i)
            mention = Mention(key, token, part.piece.sentence, phrase_of(token), part.quoted[token.i])
            listed = token.lower_ in words.sets["indefinite_pronouns"] or token.lower_ in words.sets["pronouns"]
            parts = [word.lower_ for one in token.children if one.lower_ == "of" for word in one.children]
            counted = token.pos_ == "NUM" and bool({"them", "us", "you"} & set(parts))  # "the two of them"
            most = token.tag_ in ("JJS", "JJR") and any(child.lower_ == "the" for child in token.children)
            whole = token.tag_ == "CD" and token.dep_ in ("dobj", "nsubj", "nsubjpass") and not token.text.isdigit()
            whole = whole and words.number(token.lower_) > 0 and not list(token.lefts)  # "drank one", "found sixty-one"
            whole = whole and not parts and not counted
            pronoun = token.pos_ == "PRON" or token.tag_ in ("PRP", "PRP$") or listed or counted or most or whole
            if pronoun and not _is_noun(token, words):
                _pronoun(mention, token, words)
                mention.pronoun = "all" if counted and not listed else "one" if most else mention.pronoun
                mention.adjectives = (token.lower_,) if most else mention.adjectives  # "the youngest"
            else:
                _noun_phrase(mention, token, words, names)
                mention.unreal = _unreal(token, words)
            joined = conjuncts(token)
            if len(joined) > 1 and token.dep_ != "conj":
                mention.joined = tuple((part.number, other.i) for other in joined)
            found[key] = mention
        for clause in part.clauses:
            for filler in clause.fillers:
                mention_here = found.get((part.number, filler.token.i))
                owns = clause.link != "noun" and (clause.link != "conj" or filler.role != "agent")
                if mention_here is None or (mention_here.clause is not None and not owns):
                    continue
                if mention_here.clause is None or mention_here.role != "agent":
                    mention_here.role, mention_here.clause = filler.role, clause
                    mention_here.preposition = filler.preposition
                    says = filler.role == "agent" and words.has("say", clause.lemma)
                    mention_here.speaks = says and any(part.quoted) and not mention_here.quoted
    return found
