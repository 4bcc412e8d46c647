"""The matcher `lemma-set`: an answer is right if it says what an accepted one says, in whatever words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from katha.eval_bridge.matching.match import ACCEPTED, Pair, Verdict, WordRule, accepted_set, normalise
from katha.schema import Question

_BATCH = 1024


def _meaning(answer: str, question: Question) -> Verdict:
    # Not at the top: it loads the parser's tables, which only free answers need.
    from katha_sketch.matching.meaning import same_meaning

    accepted = accepted_set(question)
    if normalise(answer) in accepted:
        return ACCEPTED
    options = set(map(normalise, question.options or ()))
    if normalise(answer) in options and options & accepted:
        return Verdict(False, "another of the options")
    return Verdict(*same_meaning(answer, (question.gold_answer, *question.accepted_answers), question.question))


def _parse(pairs: Iterable[Pair]) -> None:
    from katha_sketch.matching.meaning import prepare

    doubtful = (pair for pair in pairs if normalise(pair.answer) not in accepted_set(pair.question))
    while batch := [(pair.question.question, pair.answer) for pair in islice(doubtful, _BATCH)]:
        prepare(batch)


LEMMA_SET = WordRule("lemma-set", "4", _meaning, _parse, changing=True)
"""The same meaning in other words, decided on the parse."""


def lemma_set() -> WordRule:
    """Return the matcher."""
    return LEMMA_SET
