"""A question as `sketch-reader` understands it: what it takes for granted, where to look, and what an answer is about.

The claims of a question ("after the crow sings", "when the lion is caught") find its moment; its connective or its
dimension says on which side of that moment the answer lies; "at first" and "in the end" look at the ends. What the
question takes for granted is no answer to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from katha.schema import Dimension
from katha_sketch.reader.claims import Claim, Statement, Term, read_statement, same_claim, term_of
from katha_sketch.reader.moments import Moment, likelihoods, posterior, stems

__all__ = ["Asked", "read_question"]

_LATE = re.compile(
    r"\b(?:in the end|at the end|at last|finally|last|outcome|end for|does it end|end up|at the close)\b", re.IGNORECASE
)
_BECOMES_OF = re.compile(r"\b(?:becomes? of|happens? to)\b", re.IGNORECASE)
_BECOMES = re.compile(r"\b(?:becomes? of|happens? to|result|comes? of)\b", re.IGNORECASE)
_EARLY = re.compile(r"\b(?:at first|first|at the start|at the beginning|in the beginning|begins?)\b", re.IGNORECASE)
_CONNECTIVE = re.compile(r"\b(after|before|when|while|once|until)\b", re.IGNORECASE)
_CUE = re.compile(
    r"\b(?:after|before|when|while|once|until|because|is it that|comes of it that|the reason that|follows when) (.+)$",
    re.IGNORECASE,
)
"""What stands behind these is taken for granted."""
_BOTH = re.compile(r"^(.*? )((?:right )?after .+?),? and ((?:right )?before .+)$", re.IGNORECASE)
"""A question that tells what is on both sides of its moment."""
_DOING = re.compile(r"\b(?:comes? of|results? of|because of|outcome of) (.+?)['\u2019]s (\w+ing\b.*)$", re.IGNORECASE)
"""A deed as a noun: "the ant's laughing" takes for granted that the ant laughs."""
_SUBJECT = re.compile(
    r"^(?:what|how|why|where|in what (?:mood|way)) (?:do|does|did|is|are|was|were|happens to|becomes of) "
    r"(?:seen of |the (?:feeling|mood) of )?(.+?)"
    r"(?: (?:do|doing|done|feel|feeling|look|change|end up|end|go|become|react|get|come|try|seen)\b|"
    r" (?:at|in|after|before|when|while|once|until|next|first|last)\b|\?|$)",
    re.IGNORECASE,
)
_OF_WHOM = re.compile(
    r"\b(?:outcome|result|feeling|end) (?:for|of) (.+?)(?: change| look| (?:at|in|after|when)\b|\?|$)", re.IGNORECASE
)
_HAPPENS_TO = re.compile(r"\b(?:becomes? of|happens? to) (.+?)(?: (?:at|in|after|when|before)\b|\?|$)", re.IGNORECASE)
_SCENE = re.compile(r" (?:in|of) scene \d+ of \d+\b", re.IGNORECASE)
"""Which moments are looked at (`at_scene`), and nothing that is seen in them."""
_AGAIN = re.compile(r"^(?:he|she|they)\b", re.IGNORECASE)
"""Whom a question is about, in what it takes for granted of them."""
_NOBODY = frozenset({"mood", "feeling"})
_ORDER = re.compile(r":\s*(.+?);\s*(.+?)\W*$")
_ASKING = stems(
    "what which when does that there have happen happens come comes become becomes feel look first last things two "
    "these order outcome result after before while start beginning place middle during about front answer change causes"
)
_SIDES: Mapping[str, int] = {"after": 1, "once": 1, "before": -1, "until": -1, "when": 0, "while": 0}
_OWN_SIDE: Mapping[Dimension, int] = {"causal": -1, "consequence": 1}
_STEPS: Mapping[int, Mapping[int, float]] = {
    1: {-1: 0.02, 0: 0.12, 1: 0.75, 2: 0.15, 3: 0.05},
    -1: {1: 0.02, 0: 0.12, -1: 0.75, -2: 0.15, -3: 0.05},
    0: {-1: 0.15, 0: 0.6, 1: 0.2},
    2: {0: 0.5, 1: 0.3, 2: 0.1, 3: 0.05},
    -2: {0: 0.5, -1: 0.3, -2: 0.1, -3: 0.05},
    3: {0: 0.1, 1: 0.4, 2: 0.3, 3: 0.15, 4: 0.1, 5: 0.05},
    -3: {0: 0.1, -1: 0.4, -2: 0.3, -3: 0.15, -4: 0.1, -5: 0.05},
}
"""How probably an answer is so many moments behind what the question names, by the side on which it lies; twice that
for causes and what comes of them, which one picture often shows together, three times for what may be farther off."""
_ANYWHERE = 0.005
"""How probably it is anywhere."""
_AT_THE_END = 0.35
"""How much less probable each moment is that is farther from the end that is asked for."""
_WORDS_ALONE = 5.0
"""The log-likelihood ratio of a moment whose words are all that the question has."""
_OTHER_SUBJECT = 0.2
_OTHER_NAME = 0.6
"""What an answer is worth of somebody whom it calls otherwise than the question does."""
_GIVEN = 0.15
_CONTESTED = 0.5
"""How far a moment that shows an answer better is taken from the event that a question takes for granted."""
_OFF_TOPIC = 0.75
_WITHOUT_SUBJECT = 0.85
_OWN_NAME = 0.7
_ANSWERED = frozenset({"action_visibility", "consequence"})
_ABOUT_SUBJECT = frozenset({"action_visibility", "emotional"})


@dataclass(frozen=True)
class Asked:
    """A question as read.

    subject: the character it is about. given: the events it takes for granted. things: props it names outside of them.
    others: further characters. side: -1 for an answer before what the question names, 1 for one after it.
    where: how probably each moment is the one asked for. tilt: -1 for the first of several, 1 for the last, else 0.
    about_subject: whether an answer tells of the subject itself. signs: how much speaks for each moment being the one
    that the question names, None where it names none. step: the side with its strength. crowd: how much each moment
    speaks for the options together. other: the same question by what is on the other side of its moment.
    """

    dimension: Dimension
    subject: Term | None
    given: tuple[Claim, ...]
    things: tuple[Term, ...]
    others: tuple[Term, ...]
    side: int
    where: tuple[float, ...]
    tilt: int
    about_subject: bool
    signs: tuple[float, ...] | None = None
    step: int = 0
    crowd: tuple[float, ...] = ()
    other: Asked | None = None

    def along(self, other: Asked) -> Asked:
        """Return this question where `other` tells its moment too: what both take for granted, where both look."""
        where = tuple(_shares([one * two for one, two in zip(self.where, other.where, strict=True)]))
        subject = self.subject or other.subject
        return replace(self, subject=subject, given=(*self.given, *other.given), where=where, other=other)

    def beside(self, crowd: tuple[float, ...]) -> Asked:
        """Return the question where `crowd` is how much each moment speaks for the options together: the event that it
        takes for granted is sooner where less speaks for them."""
        if self.other is not None:
            alone = replace(self, given=self.given[: len(self.given) - len(self.other.given)], other=None)
            return replace(alone.beside(crowd).along(self.other.beside(crowd)), crowd=crowd)
        if self.signs is None or not self.given or len(crowd) != len(self.signs):
            return replace(self, crowd=crowd)
        signs = [one + _CONTESTED * min(0.0, one - other) for one, other in zip(self.signs, crowd, strict=True)]
        return replace(self, crowd=crowd, where=_where(signs, self.step, self.tilt, len(signs)))

    def relevance(self, option: Statement) -> float:
        """Return how well an option fits the question's words, whatever was seen: 1 for one that could answer it."""
        value = 1.0
        actors = [claim.actor for claim in option.claims if claim.actor is not None]
        if self.subject is not None and actors and self.about_subject and not _named(self.subject, actors):
            value *= _OTHER_NAME
        if self.subject is not None and actors and not _among(self.subject, actors):
            if self.about_subject:
                value *= _OTHER_SUBJECT
            elif self.dimension in {"causal", "consequence"} and not _among(self.subject, option.terms):
                value *= _WITHOUT_SUBJECT
        told = [claim for claim in option.claims if claim.tells]
        if told and all(any(same_claim(claim, known) for known in self.given) for claim in told):
            value *= _GIVEN
        named = [*option.terms, *(claim.target for claim in option.claims if claim.target is not None)]
        if self.things and not any(_among(thing, named) for thing in self.things):
            value *= _OFF_TOPIC
        answers = self.dimension in _ANSWERED and not self.given
        if self.others and answers and not any(_among(other, named) for other in self.others):
            value *= _OFF_TOPIC
        return value


def _named(term: Term, others: Sequence[Term]) -> bool:
    return any(term.names & other.names for other in others)


def _among(term: Term, others: Sequence[Term]) -> bool:
    return any(term.same(other) for other in others)


@lru_cache(maxsize=1024)
def _parts(question: str) -> tuple[Term | None, Statement, Statement]:
    """Whom a question is about, what it takes for granted, and the rest of what it names."""
    question = _SCENE.sub("", question)
    order = _ORDER.search(question)
    if order is not None:
        one, two = read_statement(order[1]), read_statement(order[2])
        return None, Statement((*one.claims, *two.claims), (*one.terms, *two.terms)), Statement()
    cue, doing = _CUE.search(question), _DOING.search(question)
    told = f"{doing[1]} is {doing[2]}" if doing is not None else cue[1] if cue is not None else ""
    cue = doing or cue
    asked = question[: cue.start()] if cue is not None else question
    found = _HAPPENS_TO.search(asked) or _OF_WHOM.search(asked) or _SUBJECT.match(asked)
    if found is not None:
        told = _AGAIN.sub(found[1].replace("\\", ""), told)
    given = read_statement(told.strip(" ?.")) if told else Statement()
    subject = term_of(found[1]) if found is not None else None
    if subject is not None and subject.names <= _NOBODY:
        subject = None
    if subject is None and given.claims:
        subject = given.claims[0].actor
    rest = Statement() if found is not None or cue is not None else read_statement(asked.strip(" ?"))
    return subject, given, rest


def read_question(question: str, dimension: Dimension, moments: Sequence[Moment]) -> Asked:
    """Read `question` and find where `moments` have to be looked at for its answer."""
    both = _BOTH.match(question)
    if both is None or dimension == "temporal_order":
        return _read_one(question, dimension, moments)
    asking, early, late = both.groups()
    one = _read_one(f"{asking}{early}", dimension, moments, far=not early.startswith("right"))
    other = _read_one(f"{asking}{late}", dimension, moments, far=not late.startswith("right"))
    return one.along(other)


def _read_one(question: str, dimension: Dimension, moments: Sequence[Moment], *, far: bool = False) -> Asked:
    """Read a question that tells its moment by one thing. far: which may be some moments off."""
    subject, told, rest = _parts(question)
    subject = subject or next(iter(rest.living), None)
    given = told.claims
    others = tuple(term for term in (*rest.living, *told.living) if subject is None or not term.same(subject))
    things = rest.things
    places = (*rest.places, *told.places)
    found = _CONNECTIVE.search(question)
    side = _SIDES[found[1].lower()] if found else _OWN_SIDE.get(dimension, 0)
    tilt = 1 if _LATE.search(question) else -1 if _EARLY.search(question) else 0
    becomes = _BECOMES.search(question) is not None
    if not given and (becomes or dimension == "consequence"):
        tilt = tilt or 1
    close = 3 if far else 2 if found is None and dimension in _OWN_SIDE else 1
    signs = _signs(question, (subject, given, things, places), moments)
    where = _where(signs, close * side, tilt, len(moments))
    of_itself = dimension in _ABOUT_SUBJECT or (_BECOMES_OF.search(question) is not None and not given)
    said = _SIDES[found[1].lower()] if found else 0
    found_by = tuple(signs) if signs is not None else None
    return Asked(
        dimension, subject, given, things, others, said, where, tilt, of_itself, signs=found_by, step=close * side
    )


def _signs(
    question: str,
    named: tuple[Term | None, Sequence[Claim], Sequence[Term], Sequence[str]],
    moments: Sequence[Moment],
) -> list[float] | None:
    """Return how much speaks for each moment being the one that the question speaks of: its events, else its things and
    places, else the words of the story; None for a question that speaks of none."""
    subject, given, things, places = named
    claims = [*given] or [Claim(subject, place=place) for place in places[:1]]
    if things and not given:
        claims.append(Claim(subject, also=tuple(things)))
    signs = [sum(values) for values in zip(*(likelihoods(claim, moments, subject) for claim in claims), strict=True)]
    if any(moment.words for moment in moments):
        told = _word_signs(question, subject, moments)
        signs = [value + _WORDS_ALONE * word for value, word in zip(signs or [0.0] * len(told), told, strict=True)]
    return signs or None


def _word_signs(question: str, subject: Term | None, moments: Sequence[Moment]) -> list[float]:
    """Return where the story uses the question's own rarer words ("in winter", "the threat"); frames have no words.

    The name of whom it is about counts less: it stands elsewhere too.
    """
    own = stems(" ".join(subject.names)) if subject is not None else set()
    asked = sorted(stems(question) - _ASKING)
    rare = [word for word in asked if 0 < sum(word in moment.words for moment in moments) <= len(moments) / 2]
    worth = {word: _OWN_NAME if word in own else 1.0 for word in rare}
    whole = sum(worth.values()) or 1.0
    return [sum(worth[word] for word in rare if word in moment.words) / whole for moment in moments]


def _where(signs: Sequence[float] | None, side: int, tilt: int, count: int) -> tuple[float, ...]:
    """Return how probably each of `count` moments is the one that holds the answer."""
    if signs is None:
        falling = [_AT_THE_END**place for place in range(count)] if tilt else [1.0] * count
        return tuple(_shares(falling[::-1] if tilt > 0 else falling))
    steps, places = _STEPS[side], posterior(signs)
    found = [sum(p * (steps.get(place - at, 0.0) + _ANYWHERE) for at, p in enumerate(places)) for place in range(count)]
    return tuple(_shares(found))


def _shares(weights: Sequence[float]) -> list[float]:
    whole = sum(weights) or 1.0
    return [weight / whole for weight in weights]
