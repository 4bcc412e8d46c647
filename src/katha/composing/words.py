"""Small pieces of English: names as labels, sentences closed once, descriptions as lists of phrases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from katha.composing.families import composing_data

ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)
WORD = re.compile(r"[^\W_]+")
_SMALL = frozenset(
    ("a", "an", "the", "of", "in", "on", "at", "with", "and", "over", "to", "is", "are", "by", "s", "it")
)
# As in `planners.base`: whether a prompt says a word already.
_STEM = 5
_STOPS = ".!?\u2026\u3002\uff01\uff1f"
_CLOSERS = "\"'\u201d\u2019\u00bb)]\u300d\u300f"
_ONE_OF = re.compile(r"^(.+?)['\u2019]s? one (\w+)\b")
_NEARER = re.compile(
    r"(?:^|(?<= and )|(?<=, ))(?:nearer to|closer|nearer|(?:farther|further)(?: (?:back|away|off))?|lower|higher)"
    r"(?![\w-])",
    re.IGNORECASE,
)
_WITHOUT = re.compile(r"\b(?:without|no longer wearing)\s+(?:(?:the|an?|any|his|her|its|their)\s+)?([\w' -]+)")
_HE_OR_SHE = re.compile(r"\b(?:he|him|his|she|hers?)\b", re.IGNORECASE)
_ACTING = re.compile(r"\bwith\b|ing\b")
_OWNS = re.compile(r"\s+\w")
_SHORT = re.compile(r"\b(?:Mr|Mrs|Ms|Dr|St|vs|e\.g|i\.e)\.$")
_SENTENCE_END = re.compile(rf"(?<=[{_STOPS}])[{re.escape(_CLOSERS)}]*(?:\s+|(?<=[\u3002\uff01\uff1f])(?=\S))")
_OPEN, _CLOSE = "([\u201c\u300c", ")]\u201d\u300d"
_AFTER_NOUN = re.compile(r" (?:with|of|in|on|from|for|at|to|that|which)\b|[(,:;]")
_ONE = re.compile(r"(?:ss|us|is|as|ness)$")
_HANGS = re.compile(r"\s+of\b", re.IGNORECASE)
_PRONOUN = re.compile(r"^(?:he|she|it|they)(?:['\u2019](?:s|re)\s+|\s+)(?=\S)", re.IGNORECASE)
_COLON = re.compile(r": (.+)$")
_AND = re.compile(r"^and\s+", re.IGNORECASE)
_TAIL = re.compile(
    r"(?:\s+(?:a|an|the|of|in|on|at|with|and|or|over|to|by|his|her|its|their|from|into|onto|for|but|as|who|whose|which"
    r"|that|while|when|under|through|near|behind|beside|is|are))+$"
)
_ELSEWHERE = re.compile(
    r"\b(?:frame|panel|picture|scene|shot)s?\s*\d|\bas (?:in )?\d|\bas before\b"
    r"|\b(?:the )?(?:same|previous|next|last|first|earlier)\s+(?:frame|panel|picture|shot)\b"
    r"|\bin (?:any|every|all|each) (?:other )?(?:frame|panel|picture|shot)s?\b|\bsame sides?\b"
    r"|^the only\b|^(?:later|at first|originally|eventually|afterwards)\b",
    re.IGNORECASE,
)
_AS_THERE = re.compile(
    r"\b(?:the )?same (?:view|height|camera|angle|distance|framing|position|eye|axis|(?:back)?ground)s?\b",
    re.IGNORECASE,
)


def clean(text: str) -> str:
    """Return `text` on one line, without doubled articles, and without doubled or dangling marks."""
    one = re.sub(r"\b(the|an?) \1\b", r"\1", " ".join(text.split()), flags=re.IGNORECASE)
    one = re.sub(r"\bthe own\b", "their own", one)
    one = re.sub(r"\.{3,}", "\u2026", one)
    one = re.sub(r"\.\.", ".", one)
    one = re.sub(r"\s+([,;.!?\u2026])", r"\1", one)
    one = re.sub(r"[,;](?:\s*[,;])+", ",", one)
    return re.sub(r"[,;:]+(?=[.!?])", "", one)


def capital(text: str) -> str:
    """Return `text` with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    """Return `text` with a capital at its beginning and one stop at its end; empty stays empty."""
    whole = capital(clean(text)).rstrip(",;: ")
    if not whole or whole.rstrip(_CLOSERS)[-1:] in tuple(_STOPS):
        return whole
    return f"{whole}."


def sentences_of(text: str) -> list[str]:
    """Return the sentences of `text`, each closed."""
    found: list[str] = []
    one, start = clean(text), 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(one)), len(one)):
        piece = one[start:end].strip()
        if end < len(one) and (_SHORT.search(piece) or (one[end].islower() and piece[-1:] != ".")):
            continue
        start = end
        if WORD.search(piece):
            found.append(as_sentence(piece))
        elif piece and found:
            found[-1] = f"{found[-1]}{piece}" if piece not in _STOPS else found[-1]
    return found


def label(name: str) -> str:
    """Return a name at the head of its line: proper names as they are, others with their article ("The old woman")."""
    plain = clean(name).rstrip(":;, ")
    first = plain.split(" ", 1)[0].lower()
    if first in composing_data().determiners:
        return capital(plain)
    bare = ARTICLE.sub("", plain)
    return f"The {bare}" if first == "the" or bare[:1].islower() or bare[:1].isdigit() else bare


def within(name: str) -> str:
    """Return a name inside a sentence."""
    return inner(label(name))


def aimed(told: str) -> str:
    """Return where a gaze goes, after the verb: "at the window", "back over the shoulder"."""
    first = told.lower().split(" ")[:2]
    way = first[0] == "at" or not composing_data().ways.isdisjoint(first[: 2 if first[0].endswith("ly") else 1])
    return told if way else f"at {told}"


def looks_at(who: str, at: str, not_at: str) -> str:
    """Return a gaze as a sentence without its stop: "the hens look at Helve, not at the road"."""
    away = f", not {aimed(not_at)}" if not_at else ""
    return f"{who} {'look' if plural(who) else 'looks'} {aimed(at)}{away}"


def noun(name: str) -> str:
    """Return the noun of a name: "duck" of "the cloth duck with one eye"; "" where it has no word."""
    words = WORD.findall(_AFTER_NOUN.split(name, maxsplit=1)[0])
    return words[-1] if words else ""


def plural(name: str) -> bool:
    """Return whether a name stands for several, as its noun tells; a proper name never does."""
    last = noun(name)
    many = last in composing_data().several or (last[-1:] == "s" and not _ONE.search(last))
    return " and " in name or (last.islower() and many)


def inner(told: str) -> str:
    """Return a text inside a sentence: an article at its beginning is small there."""
    return f"{told[0].lower()}{told[1:]}" if ARTICLE.match(told) else told


def content(text: str) -> list[str]:
    """Return the stems of the words that mean something."""
    return [word[:_STEM] for word in map(str.lower, WORD.findall(text)) if word not in _SMALL]


def said(item: str, text: str) -> bool:
    """Return whether `text` has every content word of `item`, whatever their endings; an empty one is said anywhere."""
    return set(content(item)) <= set(content(text))


def of_one(text: str) -> str:
    """Return a text in which "the man's one hand" is "one hand of the man"."""
    return _ONE_OF.sub(lambda found: f"one {found[2]} of {inner(found[1])}", text)


def standing(view: str) -> str:
    """Return where the eye is, said of this picture alone: "closer to the step" is "close to the step"."""
    return _NEARER.sub(lambda found: composing_data().nearer[found[0].lower()], view)


def taken_off(state: str) -> frozenset[str]:
    """Return what a state says is not worn or had now: "cap" of "capless", "apron" of "without the apron"."""
    known, found = composing_data().bare, set[str]()
    for told in _WITHOUT.findall(state.lower()):
        found.add(noun(told))
    for word in WORD.findall(state.lower()):
        found.update(known.get(word, ()))
        found.update([word.removesuffix("less")] if word.endswith("less") else [])
    return frozenset(found - {""})


def without(look: str, gone: frozenset[str]) -> str:
    """Return a phrase of a look without those of its things that are gone; "" where nothing is left."""
    if gone.isdisjoint(WORD.findall(look.lower())):
        return look
    return " and ".join(part for part in look.split(" and ") if gone.isdisjoint(WORD.findall(part.lower())))


def named_in(item: str, people: Sequence[tuple[str, str]]) -> str:
    """Return a phrase that is read alone, whose first he or she has the name of the one who can be meant.

    people: names, and what tells men from women. A phrase stays as it is where a person in it may be meant.
    """
    found = _HE_OR_SHE.search(item)
    if found is None:
        return item
    data = composing_data()
    persons = data.he | data.she | {word for name, _ in people for word in WORD.findall(name.lower())}
    before = WORD.findall(item[: found.start()].lower())
    own = found[0].lower() in ("his", "hers") or (found[0].lower() == "her" and _OWNS.match(item[found.end() :]))
    if set(before) & (persons - data.determiners - _SMALL) or (before and (own or _ACTING.search(" ".join(before)))):
        return item
    wanted = data.he if found[0].lower() in ("he", "him", "his") else data.she
    meant = [name for name, told in people if wanted & set(WORD.findall(told.lower()))]
    if len(meant) != 1:
        return item
    name = within(meant[0])
    return f"{item[: found.start()]}{name}{_possessive(name) if own else ''}{item[found.end() :]}"


def _possessive(name: str) -> str:
    return "'" if name.endswith("s") and plural(name) else "'s"


def phrases(text: str) -> list[str]:
    """Return what stands between the commas, semicolons and stops of a description; brackets and quotes stay whole."""
    found, depth, start, one = list[str](), 0, 0, clean(text)
    for at, letter in enumerate(one):
        depth = max(0, depth + (letter in _OPEN) - (letter in _CLOSE))
        ends = at + 1 == len(one) or one[at + 1] == " "
        wide = letter in "\u3001\uff0c\u3002\uff1b"
        stop = letter in ".!?;," and ends and not _SHORT.search(one[: at + 1])
        stop = stop and not (letter == "," and ": " in one[start:at])  # a list of its own
        if depth == 0 and (stop or wide):
            found.append(one[start:at])
            start = at + 1
    found.append(one[start:])
    plain = (piece.strip(" .,;:!?\u2026\u3002") for piece in found)
    return list(dict.fromkeys(_AND.sub("", piece) for piece in plain if WORD.search(piece)))


def told_of(text: str, name: str) -> list[str]:
    """Return the phrases of a description, without its subject and verb: "She has red hair" is "red hair"."""
    verbs = composing_data().verbs
    found = []
    for phrase in phrases(text):
        if _ELSEWHERE.search(phrase):
            continue
        plain = _PRONOUN.sub("", _without_name(phrase, name))
        verb, _, more = plain.partition(" ")
        stands = plain != phrase or verb.endswith("s") or verb in ("are", "have")
        if stands and more and verb.lower() in verbs:
            plain = f"{verbs[verb.lower()]} {more}".strip()
        found.append(inner(_listing(plain)))
    return list(dict.fromkeys(piece for piece in found if WORD.search(piece)))


def _listing(text: str) -> str:
    """Return a phrase of a line, which has its colon already, with what its own colon leads to in brackets."""
    return text if "(" in text else _COLON.sub(r" (\1)", text)


def _without_name(phrase: str, name: str) -> str:
    """Return a phrase without the name it begins with; a possessive ("Mila's coat") stays, and so does a name that the
    rest hangs on ("the third rung of the ladder")."""
    for known in (name, ARTICLE.sub("", name), label(name)):
        if known and phrase.lower().startswith(known.lower()):
            rest = phrase[len(known) :]
            if _HANGS.match(rest):
                return phrase
            if re.match(r"\s*[:\u2013\u2014-]\s+|\s+", rest):
                return re.sub(r"^\s*[:\u2013\u2014-]?\s+", "", rest)
    return phrase


def alone(text: str) -> list[str]:
    """Return the phrases that mean something to whoever sees this frame only: "as frame 1, closer" has none."""
    found = phrases(text)
    kept = [phrase for phrase in found if not _ELSEWHERE.search(phrase) and not _AS_THERE.search(phrase)]
    return kept if len(kept) == len(found) else [phrase for phrase in kept if " " in phrase]


def listed(items: Sequence[str]) -> str:
    """Return a list in one line; semicolons where an item has a comma or a colon of its own."""
    return ("; " if any("," in item or ":" in item for item in items) else ", ").join(items)


def distinct(items: Iterable[str]) -> list[str]:
    """Return items without those that say no more than an earlier or a longer one."""
    given = list(dict.fromkeys(item for item in items if WORD.search(item)))
    kept: list[str] = []
    for at, item in enumerate(given):
        others = [*kept, *(other for other in given[at + 1 :] if len(content(other)) > len(content(item)))]
        if not any(said(item, other) for other in others):
            kept.append(item)
    return kept


def without_tail(words: Sequence[str]) -> str:
    """Return words that were cut off somewhere as a whole sentence."""
    return as_sentence(_TAIL.sub("", " ".join(words)).rstrip(" ,;:-"))
