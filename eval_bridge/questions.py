"""Questions from transitions (Sec. C.5, Tables 28 and 29): what each transition must let a viewer tell.

Every transition is asked for its action, cause, feeling and consequence; neighbouring transitions for their order; the
story for its lesson if that is known. A question finds its moment by what happened before it, never by what it asks
for. Each has a canonical answer in one plain sentence and paraphrases of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from katha.eval_bridge.normal import normalise
from katha.eval_bridge.wording import feeling, paraphrases, sentence
from katha.language import PhraseReading, load_vocabulary, read_phrase
from katha.schema import MORAL_LABELS, Dimension, Plan, Question, StoryRecord, Transition

__all__ = ["build_questions"]

_LONGEST_CUE = 14
_SMALL = frozenset("the a an of to in on at by with and his her its their it he she they him them is are was".split())


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


def _usable(text: str | None) -> bool:
    return bool(text) and 2 <= len(str(text).split()) <= _LONGEST_CUE


def _gives_away(question: str, answer: str) -> bool:
    """Whether every content word of the answer is in the question."""
    words = set(normalise(answer).split()) - _SMALL
    return bool(words) and words <= set(normalise(question).split())


def _who(reading: PhraseReading) -> str | None:
    """The doer of the first event, else the first character named."""
    actors = [event.actor for event in reading.events if event.actor]
    characters = reading.concepts.get("character", ())
    named = next((actor for actor in actors if actor in characters), characters[0] if characters else None)
    return load_vocabulary().get("character", named).words[0] if named else None


class _Builder:
    """Drafts of one story's questions, transition by transition."""

    def __init__(self, plan: Plan) -> None:
        self.transitions = sorted(plan.transitions, key=lambda item: item.pair)
        self.captions = {panel.index: panel.caption for panel in plan.panels}

    def _before(self, at: int) -> str | None:
        """What happened just before the transition at place `at`, as a clause."""
        earlier = self.transitions[at - 1].action if at else ""
        caption = self.captions.get(self.transitions[at].from_scene, "")
        return next((_clause(text) for text in (earlier, caption) if _usable(text)), None)

    def _moment(self, at: int, answer: str) -> str:
        """ " after ..." or nothing, so that the question does not hold its answer."""
        cue = self._before(at)
        phrase = f" after {cue}" if cue else (" at the start" if at == 0 else " next")
        return phrase if not _gives_away(phrase, answer) else " next"

    def action(self, at: int, item: Transition) -> Iterator[_Draft]:
        who = _who(read_phrase(item.action))
        moment = self._moment(at, item.action)
        asked = f"What does the {who} do{moment}?" if who else f"What happens{moment}?"
        yield _Draft("action_visibility", asked, item.action, item.pair)

    def causal(self, at: int, item: Transition) -> Iterator[_Draft]:
        outcomes = [text for text in (item.action, item.consequence, item.expected_change) if _usable(text)]
        fitting = [text for text in outcomes if not _gives_away(text, item.causality)]
        asked = f"What is the reason that {_clause(fitting[0])}?" if fitting else "What causes the change?"
        yield _Draft("causal", asked, item.causality, item.pair)

    def emotional(self, at: int, item: Transition) -> Iterator[_Draft]:
        reading = read_phrase(item.emotion or "")
        who, feelings = reading.concepts.get("character", ()), reading.concepts.get("emotion", ())
        cue = f"when {_clause(item.action)}" if _usable(item.action) else "then"
        if not who or not feelings:
            if _usable(item.emotion):
                yield _Draft("emotional", f"What feeling is there {cue}?", str(item.emotion), item.pair)
            return
        before, after = reading.change or (None, feelings[-1])
        name = load_vocabulary().get("character", who[0]).words[0]
        if after is None:
            return
        plain = feeling(who[0], None, after)
        asked = f"How does the {name} feel {cue}?"
        yield _Draft("emotional", asked, plain, item.pair, (str(item.emotion),))
        if before is not None and before != after:
            change = feeling(who[0], before, after)
            asked = f"How does the feeling of the {name} change {cue}?"
            yield _Draft("emotional", asked, change, item.pair, (str(item.emotion),))

    def consequence(self, at: int, item: Transition) -> Iterator[_Draft]:
        fits = _usable(item.action) and not _gives_away(item.action, item.consequence)
        asked = f"What comes of it that {_clause(item.action)}?" if fits else "What is the outcome?"
        yield _Draft("consequence", asked, item.consequence, item.pair)

    def temporal(self, at: int, item: Transition) -> Iterator[_Draft]:
        if at == 0:
            return
        first, second = self.transitions[at - 1].action, item.action
        if not (_usable(first) and _usable(second)) or normalise(first) == normalise(second):
            return
        right = f"{sentence(first)} before {_clause(second)}"
        wrong = f"{sentence(second)} before {_clause(first)}"
        yield _Draft("temporal_order", "In which order do these things happen?", right, item.pair, (), (wrong,))

    def drafts(self) -> Iterator[_Draft]:
        """Every question of the story, transition by transition."""
        for at, item in enumerate(self.transitions):
            if _usable(item.action):
                yield from self.action(at, item)
            if _usable(item.causality):
                yield from self.causal(at, item)
            yield from self.emotional(at, item)
            if _usable(item.consequence):
                yield from self.consequence(at, item)
            yield from self.temporal(at, item)


def _moral(record: StoryRecord, transitions: Sequence[Transition]) -> list[_Draft]:
    """The story's lesson, if its label is known."""
    known = {normalise(label): label for label in MORAL_LABELS}
    named = [record.moral_label, *(item.moral_target for item in reversed(transitions))]
    label = next((known[normalise(text)] for text in named if text and normalise(text) in known), None)
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
    for draft in (*builder.drafts(), *_moral(record, builder.transitions)):
        key = draft.question if draft.dimension != "temporal_order" else f"{draft.question} {draft.answer}"
        if normalise(key) not in seen:
            seen.add(normalise(key))
            questions.append(_question(record, draft, len(questions) + 1))
    return questions
