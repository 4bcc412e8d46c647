"""Questions from transitions (Sec. C.5, Tables 28 and 29): what each transition must let a viewer tell.

Every transition is asked for its action, cause, feeling and consequence; neighbouring transitions for their order; the
story for its lesson if that is known. A question finds its moment by what happened before it, never by what it asks
for. Each has a canonical answer in one plain sentence and paraphrases of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from katha.eval_bridge.matching.match import moral_label, normalise
from katha.eval_bridge.questions.options import other_actions, other_feelings
from katha.eval_bridge.questions.wording import called, feeling, paraphrases, sentence, without_feeling
from katha.language import PhraseReading, load_vocabulary, read_phrase
from katha.schema import DIMENSIONS, Dimension, Plan, Question, StoryRecord, Transition

_LONGEST_CUE = 14
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_LEANING = frozenset(("he", "she", "it", "they", "him", "her", "them", "then", "but", "so"))
_SMALL = frozenset(
    (
        *("the", "a", "an", "of", "to", "in", "on", "at", "by", "with", "and", "his", "her", "its", "their", "it"),
        *("he", "she", "they", "him", "them", "is", "are", "was"),
    )
)


@dataclass(frozen=True)
class _Draft:
    """One question before it has an id."""

    dimension: Dimension
    question: str
    answer: str
    pair: tuple[int, int]
    accepted: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()


def _clause(text: str) -> str:
    """`text` as a clause inside a sentence ("the mouse bites the net"); names keep their capital."""
    plain = sentence(text)
    first = plain.split(" ", 1)[0].lower()
    return plain[:1].lower() + plain[1:] if first in _SMALL | {"two", "three", "some", "many"} else plain


def _feelings(reading: PhraseReading) -> tuple[str, ...]:
    return reading.concepts.get("emotion", ())


def _usable(text: str | None) -> bool:
    return bool(text) and 2 <= len(str(text).split()) <= _LONGEST_CUE


def _tells(text: str) -> bool:
    """Whether `text` is short and says that something happens (a title does not)."""
    return _usable(text) and bool(read_phrase(text).events)


def _stands(text: str) -> bool:
    """Whether `text` can be understood alone: nobody in it is only "he", and it does not go on from elsewhere."""
    words = set(normalise(text).split())
    return not words & _LEANING


def gives_away(question: str, answer: str) -> bool:
    """Whether every content word of the answer is in the question."""
    words = set(normalise(answer).split()) - _SMALL
    return bool(words) and words <= set(normalise(question).split())


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
        cues = [f" after {_clause(text)}" for text in (earlier, *shown) if text and _tells(text) and _stands(text)]
        fallback = " at the start" if at == 0 else " next"
        return next((cue for cue in cues if not gives_away(asking + cue, answer)), fallback)

    def action(self, at: int, item: Transition) -> Iterator[_Draft]:
        """What somebody is seen to do."""
        action = self.actions[at]
        if not _usable(action):
            return
        who = _who(str(action))
        asking = f"What {'do' if who[1] else 'does'} the {who[0]} do" if who else "What happens"
        asked = f"{asking}{self._moment(at, str(action), asking)}?"
        others = other_actions(str(action), [text for text in self.actions if text and text != action], asked)
        yield _Draft("action_visibility", asked, str(action), item.pair, (item.action,), tuple(others))

    def causal(self, at: int, item: Transition) -> Iterator[_Draft]:
        """Why the later scene follows from the earlier."""
        cause = item.causality.rsplit(" because ", 1)[-1]
        if not _usable(cause):
            return
        outcomes = [text for text in (item.action, item.consequence, item.expected_change) if _usable(text)]
        fitting = [text for text in outcomes if not gives_away(text, cause)]
        asked = f"Why is it that {_clause(fitting[0])}?" if fitting else "What causes the change?"
        accepted = (item.causality, f"because {_clause(cause)}")
        others = other_actions(cause, [text for text in self.actions[at + 1 :] if text], asked)
        yield _Draft("causal", asked, cause, item.pair, accepted, tuple(others))

    def emotional(self, at: int, item: Transition) -> Iterator[_Draft]:
        """How somebody feels, and how that has changed."""
        for told in _SENTENCE_END.split(item.emotion or ""):
            yield from self._felt(at, item, told)

    def _felt(self, at: int, item: Transition, told: str) -> Iterator[_Draft]:
        """The questions about one sentence of a transition's feelings."""
        reading = read_phrase(told)
        who, feelings = reading.concepts.get("character", ()), _feelings(reading)
        action = self.actions[at]
        cue = f"when {_clause(str(action))}" if _usable(action) else self._moment(at, told).strip()
        if not who or not feelings:
            if _usable(told):
                yield _Draft("emotional", f"What feeling is there {cue}?", told, item.pair)
            return
        before, after = reading.change or (None, feelings[-1])
        if after is None:
            return
        name, many = called(who[0], told)
        do = "do" if many else "does"
        plain, asked = feeling(who[0], None, after, told), f"How {do} the {name} feel {cue}?"
        others = other_feelings(after, self.feelings, asked)
        made = tuple(feeling(who[0], None, other, told) for other in others)
        yield _Draft("emotional", asked, plain, item.pair, (told,), made)
        if before is not None and before != after:
            asked = f"How does the feeling of the {name} change {cue}?"
            wrong = [(after, before), *((before, other) for other in others), *((other, after) for other in others)]
            made = tuple(feeling(who[0], early, late, told) for early, late in wrong if early != late)
            yield _Draft("emotional", asked, feeling(who[0], before, after, told), item.pair, (told,), made)

    def consequence(self, at: int, item: Transition) -> Iterator[_Draft]:
        """What comes of it."""
        outcome = without_feeling(item.consequence) or item.consequence
        if not _usable(outcome):
            return
        causes = [self.actions[at], item.causality.rsplit(" because ", 1)[-1]]
        fitting = [text for text in causes if text and _usable(text) and not gives_away(text, outcome)]
        asked = f"What comes of it that {_clause(fitting[0])}?" if fitting else "What is the outcome of this?"
        others = self._other_outcomes(at, outcome, asked)
        yield _Draft("consequence", asked, outcome, item.pair, (item.consequence,), tuple(others))

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

    def temporal(self, at: int, item: Transition) -> Iterator[_Draft]:
        """Which of two neighbouring events comes first; the question names them in alphabetical order."""
        told = [text or step.action for text, step in zip(self.actions, self.transitions, strict=True)]
        events = [text if _usable(text) else None for text in told]
        if at == 0 or events[at - 1] is None or events[at] is None:
            return
        first, second = str(events[at - 1]), str(events[at])
        named = sorted({_clause(first), _clause(second)})
        if len(named) < 2:
            return
        later = [text for text in events[at + 1 :] if text]
        earlier = [text for text in events[: at - 1] if text]
        pairs = [(second, first), *((text, first) for text in later), *((text, second) for text in later)]
        pairs += [(second, text) for text in earlier] + [(first, text) for text in earlier]
        wrong = tuple(f"{sentence(a)} before {_clause(b)}" for a, b in pairs if normalise(a) != normalise(b))
        asked = f"In which order do these happen: {named[0]}; {named[1]}?"
        right = f"{sentence(first)} before {_clause(second)}"
        yield _Draft("temporal_order", asked, right, item.pair, (), wrong)

    def drafts(self) -> Iterator[_Draft]:
        """Every question of the story, transition by transition."""
        for at, item in enumerate(self.transitions):
            for make in (self.action, self.causal, self.emotional, self.consequence, self.temporal):
                yield from make(at, item)


_OTHERWISE = (
    ("What does the ", "What is seen of the "),
    ("What do the ", "What is seen of the "),
    ("Why is it that ", "What is the reason that "),
    ("How does the feeling of the ", "In what way does the feeling of the "),
    ("How does the ", "In what mood is the "),
    ("How do the ", "In what mood are the "),
    ("What comes of it that ", "What follows when "),
    ("In which order do these happen: ", "Which of these comes first, and which later: "),
)


def _asked_otherwise(drafts: Sequence[_Draft]) -> Iterator[_Draft]:
    """A second wording for each dimension that has one question, so that both halves of the split have it."""
    for dimension in DIMENSIONS:
        own = [draft for draft in drafts if draft.dimension == dimension]
        for known, other in _OTHERWISE if len(own) == 1 else ():
            if own[0].question.startswith(known):
                asked = (other + own[0].question.removeprefix(known)).replace(" feel when ", " when ")
                asked = asked.replace(" do after ", " after ") if dimension == "action_visibility" else asked
                yield replace(own[0], question=asked)
                break


def _moral(record: StoryRecord, transitions: Sequence[Transition]) -> list[_Draft]:
    """The story's lesson, if its label is known."""
    named = [record.moral_label, *(item.moral_target for item in reversed(transitions))]
    label = next(filter(None, map(moral_label, named)), None)
    if label is None or not transitions:
        return []
    return [_Draft("moral", "Which lesson does the whole story carry?", label, transitions[-1].pair, (label,))]


def _question(record: StoryRecord, draft: _Draft, number: int) -> Question:
    moral = draft.dimension == "moral"
    gold = draft.answer if moral else sentence(draft.answer)
    accepted = list(draft.accepted) if moral else [*paraphrases(gold), *map(sentence, draft.accepted)]
    extra = {"distractors": list(draft.distractors)} if draft.distractors else {}
    return Question(
        question_id=f"{record.story_id}_q{number}",
        story_id=record.story_id,
        question_type=draft.dimension,
        question=draft.question,
        gold_answer=gold,
        accepted_answers=list(dict.fromkeys(accepted)),
        target_scene=draft.pair[1],
        target_transition=draft.pair,
        evidence_scenes=list(draft.pair),
        required_evidence=gold,
        **extra,  # type: ignore[arg-type]
    )


def build_questions(record: StoryRecord, plan: Plan) -> list[Question]:
    """The questions that `plan`'s transitions call for; a record that brings its own is asked those, unchanged.

    Two questions never have the same wording: the same words with another answer could not be told apart.
    """
    if record.recoverability_questions:
        return list(record.recoverability_questions)
    builder = _Builder(plan)
    seen: set[str] = set()
    questions: list[Question] = []
    drafts = list(builder.drafts())
    for draft in (*drafts, *_asked_otherwise(drafts), *_moral(record, builder.transitions)):
        key = normalise(draft.question)
        if key not in seen:
            seen.add(key)
            questions.append(_question(record, draft, len(questions) + 1))
    return questions
