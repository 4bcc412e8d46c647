"""The rule `lemma-set` 4: does an answer say what one of the accepted answers says? Decided on the parse.

An answer is right when every word that an accepted answer needs is said in it, by the same word, a synonym or a
narrower word, or by a pronoun for somebody who takes part, and

- it denies nothing that the accepted answer does not deny, and the other way round (an opposite denied is the same);
- who acts and who is acted on are not exchanged, and nobody else acts or speaks;
- amounts agree, and where somebody or something is asked for, nothing else is named beside it;
- what is put in order is in the same order, and nothing in it is the opposite of what was accepted.

An answer that contradicts one accepted answer in its own words is wrong, whatever it has in common with others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product

from katha_sketch.matching.asked import Asking, read_question
from katha_sketch.matching.families import in_plain_words
from katha_sketch.matching.lemmas import read_words
from katha_sketch.matching.nearly import nearly_says
from katha_sketch.matching.orders import Moment, moment_of, order_of
from katha_sketch.matching.statements import Statement, read_statements
from katha_sketch.matching.trial import NOT_SAID, Accepted, Trial, read_accepted
from katha_sketch.matching.wordnet import opposed, same, usage, verb_form

_YES_OR_NO = re.compile(r"\W*(?:(yes)\b|no\s*(?:[,.;:!\u2013\u2014-]|$))", re.IGNORECASE)
_DENYING = re.compile(r"\b(?:no|not|never|nothing|nobody|none|cannot|without)\b|n't\b", re.IGNORECASE)
_REFUTING = frozenset(("negation", "roles exchanged", "another subject", "the opposite is said as well"))


def _ordered(wanted: str, said: str) -> str | None:
    """Whether an answer puts the same things in the same order; only asked where the accepted answer has an order."""
    order, found = order_of(wanted), order_of(said)
    if order is None:
        return NOT_SAID
    if found is None:
        return "no order is said"
    surfaces = {word.stem: word.surface for text in (wanted, said) for word in read_words(text)}
    met = all(
        stem == "but" or any(stem == each or _alike(surfaces[stem], surfaces[each]) for each in there)
        for here, there in zip(order, found, strict=True)
        for stem in here
    )
    return None if met else "another order"


def _alike(one: str, two: str) -> bool:
    """Whether two words as written may say the same, whatever they are in their sentences."""
    forms = ([*((pos, word) for pos in "na"), ("v", verb_form(word) or word)] for word in (one, two))
    return any(same(*pair) for pair in product(*forms))


def _flipped(trial: Trial) -> bool:
    """Whether the answer denies the opposite of a one-word statement: "not honest" for "lied"."""
    for word in trial.wanted.words:
        if word.part not in ("verb", "state", "head"):
            continue
        for other in trial.said.words:
            if opposed(other.lemma, word.lemma) and trial.denied(trial.said, other) != trial.denied(trial.wanted, word):
                rest = [item for item in trial.wanted.words if item.at != word.at and item.part != "modifier"]
                pairs = [(word, other), *trial.pair(rest)]
                met = {item.at for item, _ in pairs}
                if all(item.at in met or trial.spared(item, [word], pairs) for item in rest):
                    return not trial.others_act(pairs)
    return False


def _without_exceptions(answer: str, accepted: Sequence[str]) -> str:
    """An answer without what it excepts, which it does not say ("anything but a stone").

    "Nothing except a stone" says the stone, and where an accepted answer excepts something as well, all is kept.
    """
    for pattern, instead in usage().excepted:
        if pattern.search(answer) and not any(pattern.search(text) for text in accepted):
            answer = pattern.sub(partial(_kept, instead=instead), answer)
    return answer


def _kept(found: re.Match[str], *, instead: str) -> str:
    """What is kept of an exception: all of it where something is denied before it."""
    return found[0] if _DENYING.search(found.string[: found.start()]) else found.expand(instead)


def same_meaning(answer: str, accepted: Sequence[str], question: str) -> tuple[bool, str]:
    """Return whether `answer` says the same as one of `accepted`, and the reason in one phrase.

    What it does not say as it stands it may say in plain words, but not in another order or with the opposite.
    """
    answer = _without_exceptions(answer, accepted)
    found = _decide(answer, accepted, question)
    if found[0] or found[1].startswith("another order") or found[1] == "the opposite is said as well":
        return found
    plain = in_plain_words(answer), list(map(in_plain_words, accepted))
    found = found if plain == (answer, list(accepted)) else _decide(*plain, question)
    return _in_near_words(answer, accepted, question) if found == (False, NOT_SAID) else found


def _in_near_words(answer: str, accepted: Sequence[str], question: str) -> tuple[bool, str]:
    known = read_accepted(question, tuple(dict.fromkeys(accepted)))
    (said,) = read_statements([answer], known.asked.asks)
    item = nearly_says(said, known)
    return (False, NOT_SAID) if item is None else (True, f"nearly says {item.text!r}")


def _decide(answer: str, accepted: Sequence[str], question: str) -> tuple[bool, str]:
    known = read_accepted(question, tuple(dict.fromkeys(accepted)))
    (said,) = read_statements([answer], known.asked.asks)
    moment, told = moment_of(read_words(question)), moment_of(read_words(answer))
    if moment and told and told[0] != moment[0] and told[1] & moment[1]:
        return False, "another order than the question's"
    problems = [_against(item, said, known, moment) for item in known.items]
    says = [item for item, problem in zip(known.items, problems, strict=True) if problem is None]
    against = [problem for problem in problems if problem not in (None, NOT_SAID)]
    strength = max((Trial(item, said, known).weight() for item in says), default=0)
    refuting = [
        (problem, Trial(item, said, known))
        for item, problem in zip(known.items, problems, strict=True)
        if problem in _REFUTING
    ]
    refuted = next((why for why, trial in refuting if trial.weight() >= strength and trial.literal()), None)
    if says and refuted is None:
        return True, f"says {says[0].text!r}"
    return False, refuted or next(iter(against), None) or NOT_SAID


def _against(item: Statement, said: Statement, known: Accepted, moment: Moment | None) -> str | None:
    """Return why an answer does not say one accepted answer, None if it does."""
    trial = Trial(item, said, known)
    says = [_YES_OR_NO.match(each.given) for each in (item, said)]
    if says[0] and says[1] and bool(says[0][1]) != bool(says[1][1]):
        return "negation"
    changes = known.asked.ordered or known.asked.asks == "state"
    if order_of(item.given) is not None and changes:
        denied = [any(frame.negated for frame in each.frames) for each in (item, said)]
        return "negation" if denied[0] != denied[1] else _ordered(item.text, said.text)
    order = order_of(said.given)
    if changes and known.asked.asks != "order" and order is not None:
        # One state of a change is where it ends: "delighted" is said by "from boredom to delight" alone.
        ends, other = order if known.asked.ordered and moment and moment[0] == "before" else order[::-1]
        states = {word.stem for word in read_words(item.given) if word.content}
        if states & other and not states & ends:
            return "another order"
    if known.asked.asks == "order" and order is not None:
        first = {word.stem for word in read_words(item.text) if word.content} - {"first", "come", "happen"}
        return None if first & order[0] and not first & order[1] else "another order"
    amounts = {word.amount for word in item.words} - {""}
    if known.asked.asks == "number" and amounts:
        told = {word.amount for word in said.words if not word.denied} - {""}
        return None if amounts == told and not any(frame.negated for frame in said.frames) else "another amount"
    problem = trial.why_not()
    return None if problem == NOT_SAID and _flipped(trial) else problem


def prepare(said: Iterable[tuple[str, str]]) -> None:
    """Parse answers to questions together, which takes a fifth of the time; (question, answer) each."""
    by_kind: dict[Asking, list[str]] = defaultdict(list)
    for question, answer in said:
        by_kind[read_question(question).asks] += dict.fromkeys((answer, in_plain_words(answer)))
    for asks, answers in by_kind.items():
        read_statements(answers, asks)
