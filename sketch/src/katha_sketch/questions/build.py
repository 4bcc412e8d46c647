"""Questions by rule: what a record's transitions call for (Sec. C.5, Tables 28 and 29), or what a plain text tells; and
what could be wrong answers to them.

Every transition is asked for its action, cause, feeling and consequence; neighbouring transitions for their order; the
story for its lesson if that is known. A question finds its moment by what happened before it, never by what it asks
for. Each has a canonical answer in one plain sentence and paraphrases of it."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

from katha.eval_bridge.matching.match import moral_label, normalise
from katha.eval_bridge.questions.build import gives_away, new_question, sentence
from katha.schema import Plan, Question, StoryRecord, Transition
from katha_sketch.data import load_config
from katha_sketch.english.phrases import Phrase, read_phrase
from katha_sketch.questions.told import Draft, text_questions
from katha_sketch.questions.wording import (
    called,
    feeling,
    other_actions,
    other_feelings,
    paraphrases,
    swaps,
    without_feeling,
)
from katha_sketch.vocabulary import load_vocabulary

_WORDS = load_config("questions.yaml")
_SMALL = frozenset(_WORDS["small"])
_LONGEST_CUE = 14
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")


def _clause(text: str) -> str:
    """`text` as a clause inside a sentence ("the mouse bites the net"); names keep their capital."""
    plain = sentence(text)
    first = plain.split(" ", 1)[0].lower()
    return plain[:1].lower() + plain[1:] if first in _SMALL | {"two", "three", "some", "many"} else plain


def _feelings(reading: Phrase) -> tuple[str, ...]:
    return reading.concepts.get("emotion", ())


def _usable(text: str | None) -> TypeGuard[str]:
    return text is not None and 2 <= len(text.split()) <= _LONGEST_CUE


def _stands(text: str) -> bool:
    """Return whether `text` can be understood alone: nobody in it is only "he", and it does not go on."""
    return set(normalise(text).split()).isdisjoint(_WORDS["leaning"])


def _asking(asks: str, texts: Sequence[str | None], answer: str, otherwise: str) -> str:
    """Return the question about the first of `texts` that does not hold the answer."""
    fitting = (text for text in texts if _usable(text) and not gives_away(text, answer))
    return next((asks.format(_clause(text)) for text in fitting), otherwise)


def _cause(item: Transition) -> str:
    return item.causality.rsplit(" because ", 1)[-1]


def _who(text: str) -> tuple[str, bool] | None:
    """The doer of the first event of `text`, else the first character named, as `text` calls it; whether several."""
    reading = read_phrase(text)
    actors = [event.actor for event in reading.events if event.actor]
    characters = reading.concepts.get("character", ())
    named = next((actor for actor in actors if actor in characters), characters[0] if characters else None)
    return called(named, text) if named else None


class _Builder:
    """Drafts of one story's questions, transition by transition."""

    def __init__(self, plan: Plan) -> None:
        self.transitions = sorted(plan.transitions, key=lambda item: item.pair)
        self.captions = {panel.index: [*panel.must_show[:1], panel.caption] for panel in plan.panels}
        self.actions = [without_feeling(item.action) for item in self.transitions]
        self.feelings = tuple(
            dict.fromkeys(
                concept for item in self.transitions for concept in _feelings(read_phrase(item.emotion or ""))
            )
        )

    def _moment(self, at: int, answer: str, asking: str = "") -> str:
        """ " after ..." what happened before the transition at `at`, so that the question does not hold its answer."""
        earlier = self.actions[at - 1] if at else None
        shown = self.captions.get(self.transitions[at].from_scene, [])
        # Only what happens can be pointed at: a title tells of no event.
        told = [text for text in (earlier, *shown) if _usable(text) and read_phrase(text).events]
        cues = [f" after {_clause(text)}" for text in told if _stands(text)]
        fallback = " at the start" if at == 0 else " next"
        return next((cue for cue in cues if not gives_away(asking + cue, answer)), fallback)

    def action(self, at: int, item: Transition) -> Iterator[Draft]:
        """Ask what somebody is seen to do."""
        action = self.actions[at]
        if not _usable(action):
            return
        who = _who(action)
        asking = f"What {'do' if who[1] else 'does'} the {who[0]} do" if who else "What happens"
        asked = f"{asking}{self._moment(at, action, asking)}?"
        others = other_actions(action, [text for text in self.actions if text and text != action], asked)
        yield Draft("action_visibility", asked, action, item.pair, (item.action,), tuple(others))

    def causal(self, at: int, item: Transition) -> Iterator[Draft]:
        """Ask why the later scene follows from the earlier."""
        cause = _cause(item)
        if not _usable(cause):
            return
        outcomes = (item.action, item.consequence, item.expected_change)
        asked = _asking("Why is it that {}?", outcomes, cause, "What causes the change?")
        accepted = (item.causality, f"because {_clause(cause)}")
        others = other_actions(cause, [text for text in self.actions[at + 1 :] if text], asked)
        yield Draft("causal", asked, cause, item.pair, accepted, tuple(others))

    def emotional(self, at: int, item: Transition) -> Iterator[Draft]:
        """Ask how somebody feels, and how that has changed."""
        for told in _SENTENCE_END.split(item.emotion or ""):
            yield from self._felt(at, item, told)

    def _felt(self, at: int, item: Transition, told: str) -> Iterator[Draft]:
        """The questions about one sentence of a transition's feelings."""
        reading = read_phrase(told)
        who, feelings = reading.concepts.get("character", ()), _feelings(reading)
        action = self.actions[at]
        cue = f"when {_clause(action)}" if _usable(action) else self._moment(at, told).strip()
        if not who or not feelings:
            if _usable(told):
                yield Draft("emotional", f"What feeling is there {cue}?", told, item.pair)
            return
        before, after = reading.change or (None, feelings[-1])
        if after is None:
            return
        name, many = called(who[0], told)
        do = "do" if many else "does"
        plain, asked = feeling(who[0], None, after, told), f"How {do} the {name} feel {cue}?"
        others = other_feelings(after, self.feelings, asked)
        made = tuple(feeling(who[0], None, other, told) for other in others)
        yield Draft("emotional", asked, plain, item.pair, (told,), made)
        if before is not None and before != after:
            asked = f"How does the feeling of the {name} change {cue}?"
            wrong = [(after, before), *((before, other) for other in others), *((other, after) for other in others)]
            made = tuple(feeling(who[0], early, late, told) for early, late in wrong if early != late)
            yield Draft("emotional", asked, feeling(who[0], before, after, told), item.pair, (told,), made)

    def consequence(self, at: int, item: Transition) -> Iterator[Draft]:
        """Ask what comes of it."""
        outcome = without_feeling(item.consequence) or item.consequence
        if not _usable(outcome):
            return
        causes = (self.actions[at], _cause(item))
        asked = _asking("What comes of it that {}?", causes, outcome, "What is the outcome of this?")
        others = self._other_outcomes(at, outcome, asked)
        yield Draft("consequence", asked, outcome, item.pair, (item.consequence,), tuple(others))

    def _other_outcomes(self, at: int, outcome: str, seed: str) -> list[str]:
        """Outcomes of the same sort: a feeling beside a feeling, an event beside an event."""
        reading = read_phrase(outcome)
        who, feelings = reading.concepts.get("character", ()), _feelings(reading)
        if without_feeling(outcome) is None and who and feelings:
            name, many = called(who[0], outcome)
            words = [load_vocabulary().get("emotion", other).words[0] for other in self.feelings]
            rest = [load_vocabulary().get("emotion", item).words[0] for item in other_feelings(feelings[-1], (), seed)]
            return [f"The {name} {'are' if many else 'is'} {word}" for word in dict.fromkeys((*words, *rest))]
        return other_actions(outcome, [text for text in self.actions[:at] if text], seed)

    def temporal(self, at: int, item: Transition) -> Iterator[Draft]:
        """Ask which of two neighbouring events comes first; the question names them in alphabetical order."""
        told = [text or step.action for text, step in zip(self.actions, self.transitions, strict=True)]
        if at == 0 or not _usable(told[at - 1]) or not _usable(told[at]):
            return
        first, second = told[at - 1], told[at]
        named = sorted({_clause(first), _clause(second)})
        if len(named) < 2:
            return
        later = [text for text in told[at + 1 :] if _usable(text)]
        earlier = [text for text in told[: at - 1] if _usable(text)]
        pairs = [(second, first), *((text, first) for text in later), *((text, second) for text in later)]
        pairs += [(second, text) for text in earlier] + [(first, text) for text in earlier]
        wrong = tuple(f"{sentence(a)} before {_clause(b)}" for a, b in pairs if normalise(a) != normalise(b))
        asked = f"In which order do these happen: {named[0]}; {named[1]}?"
        right = f"{sentence(first)} before {_clause(second)}"
        yield Draft("temporal_order", asked, right, item.pair, (), wrong)

    def drafts(self) -> Iterator[Draft]:
        """Every question of the story, transition by transition."""
        for at, item in enumerate(self.transitions):
            for make in (self.action, self.causal, self.emotional, self.consequence, self.temporal):
                yield from make(at, item)


def _moral(record: StoryRecord, transitions: Sequence[Transition]) -> list[Draft]:
    """The story's lesson, if the record tells it: what a planner guesses of a plain text is no gold answer."""
    named = [record.moral_label, *(item.moral_target for item in reversed(record.transitions))]
    label = next(filter(None, map(moral_label, named)), None)
    if label is None or not transitions:
        return []
    made_from = "" if record.transitions else "label"
    asked = "Which lesson does the whole story carry?"
    return [Draft("moral", asked, label, transitions[-1].pair, (label,), made_from=made_from)]


def _question(record: StoryRecord, draft: Draft, number: int) -> Question:
    moral = draft.dimension == "moral"
    gold = draft.answer if moral else sentence(draft.answer)
    accepted = draft.accepted if moral else (*paraphrases(gold), *map(sentence, draft.accepted))
    return new_question(
        record,
        number,
        draft.dimension,
        draft.pair,
        question=draft.question,
        gold_answer=gold,
        accepted_answers=list(dict.fromkeys(accepted)),
        required_evidence=gold,
        **({"distractors": list(draft.distractors)} if draft.distractors else {}),
        **({"made_from": draft.made_from} if draft.made_from else {}),
    )


def rule_questions(record: StoryRecord, plan: Plan) -> list[Question]:
    """Return the questions of a story that has none of its own.

    A record with transitions is asked what these call for. A plain text is asked what the text itself tells, sentence
    by sentence, whatever the plan makes of it; one that cannot be read here (another language), what the plan's own
    transitions call for. No two have the same wording.
    """
    builder = _Builder(plan)
    seen: set[str] = set()
    questions: list[Question] = []
    own = None if record.transitions else text_questions(record, plan)
    drafts = list(builder.drafts()) if own is None else own
    if not record.transitions:  # nobody's annotation: of the plan alone, where the text was not read
        drafts = [draft if draft.made_from else replace(draft, made_from="plan") for draft in drafts]
    for draft in (*drafts, *_moral(record, builder.transitions)):
        key = normalise(draft.question)
        if key not in seen:
            seen.add(key)
            questions.append(_question(record, draft, len(questions) + 1))
    return questions


# Wrong answers.


@lru_cache(maxsize=256)
def _named(text: str) -> frozenset[str]:
    """The concepts in one answer: every question of a story asks for those of the others."""
    return frozenset(name for ids in read_phrase(text).concepts.values() for name in ids)


def wrong_answers(question: Question, others: Sequence[str], seed: int) -> Iterator[str]:
    """Yield the question's answer with one concept changed, those of the story's other answers first; to a question
    about a feeling then the other feelings."""
    key = f"{seed}:{question.question_id}"
    yield from swaps(question.gold_answer, key, sorted({name for text in others for name in _named(text)}))
    if question.question_type == "emotional":
        words = [concept.words[0] for concept in load_vocabulary().concepts("emotion")]
        yield from random.Random(key).sample(words, len(words))


def felt_in(text: str) -> str | None:
    """Return how somebody feels in a sentence, as a plain sentence; None where it tells of no feeling."""
    reading = read_phrase(text)
    who, felt = reading.concepts.get("character", ()), _feelings(reading)
    return feeling(who[0], None, felt[-1], text) if who and felt else None
