"""The questions that a plain text itself calls for: one for each sentence that tells something visible, read or not.

They come from the reading of the text (`katha.text`), never from a plan, so that a board which leaves a sentence out is
asked about it all the same. Of the plan, only which panel stands for which sentence is used."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from katha.configs import load_config
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.questions.wording import ORDERED, sentence
from katha.schema import Dimension, Plan, StoryRecord
from katha.text import Entity, Event, Reading, Sentence, Teller, read_text

__all__ = ["Draft", "TextQuestions", "gives_away", "text_questions"]

_WORDS = load_config("questions.yaml")
_SMALL = frozenset(_WORDS["small"])
_MOST_DISTRACTORS = 6
_STATES = ("be", "feel", "become")
_ARTICLE = re.compile(r"(?:the|an?|his|her|its|their|my|our)\s+$", re.IGNORECASE)


@dataclass(frozen=True)
class Draft:
    """One question before it has an id. `made_from`: the reading of the text, or a sentence that was not read."""

    dimension: Dimension
    question: str
    answer: str
    pair: tuple[int, int]
    accepted: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    made_from: str = ""


def gives_away(question: str, answer: str) -> bool:
    """Return whether every content word of the answer is in the question."""
    words = set(normalise(answer).split()) - _SMALL
    return bool(words) and words <= set(normalise(question).split())


def text_questions(record: StoryRecord, plan: Plan) -> list[Draft] | None:
    """Return the drafts for a record without transitions of its own; None where its text cannot be read."""
    texts = [scene.scene_text for scene in sorted(record.scenes, key=lambda scene: scene.scene_index)]
    _, reading = read_text("\n\n".join(texts) if texts else record.story_text)
    if reading is None or not any(one.visible for one in reading.sentences):
        return None
    pieces = texts or [panel.source or panel.caption for panel in plan.panels]
    return list(TextQuestions(reading, pieces).drafts())


class TextQuestions:
    """Drafts of a reading's questions. pieces: what each scene stands for, a part of the text."""

    def __init__(self, reading: Reading, pieces: Sequence[str]) -> None:
        self.reading = reading
        self.teller = Teller(reading)
        self._pieces = [" ".join(piece.split()) for piece in pieces]
        self._alike: dict[str, list[Entity]] = {}

    def drafts(self) -> Iterator[Draft]:
        """Yield every question in the order of the text."""
        seen = [one for one in self.reading.sentences if one.visible]
        for at, one in enumerate(seen):
            event = self._main(one)
            # What happened before finds the moment; a sentence without an event of its own cannot be pointed at.
            before = next((found for other in reversed(seen[:at]) if (found := self._main(other)) is not None), None)
            if event is None:
                yield self._by_itself(one, before)
            elif not (event.verb in _STATES and event.feeling in _WORDS["feelings"]):
                yield self._action(one, event, before)
            yield from self._feelings(one, event, before)
            yield from self._reasons(one)
        yield from self._orders(seen)

    def pair(self, one: Sentence) -> tuple[int, int]:
        """Return the transition that leads into the scene which stands for a sentence."""
        text = " ".join(one.text.split())
        scene = next((at for at, piece in enumerate(self._pieces, 1) if text in piece), None)
        if scene is None:
            count = len(self.reading.sentences)
            scene = min(one.index * len(self._pieces) // count + 1, len(self._pieces))
        return (scene - 1, scene) if scene > 1 else (1, 2)

    def _main(self, one: Sentence) -> Event | None:
        """The event that a sentence is asked about: a deed to somebody or something before any other."""
        shown = [event for event in self.reading.of(one.index) if self.teller.shows(event)]
        return max(shown, key=self._weight, default=None)

    def _weight(self, event: Event) -> tuple[bool, bool, bool, int]:
        people = bool(self.teller.people(self.teller.doers(event)))
        things = [key for key in event.who("patient", "recipient") if self.reading.entity(key).kind != "abstract"]
        return event.verb not in _STATES, event.within is None, people and bool(things), -event.id

    @cached_property
    def _told(self) -> list[tuple[Event, str]]:
        """Every event that is told, with its sentence."""
        shown = (event for event in self.reading.events if self.teller.shows(event))
        return [(event, sentence(self.teller.sentence(event))) for event in shown]

    @cached_property
    def _untrue(self) -> list[str]:
        """Every sentence, changed so that it did not happen: made once, as a long text asks for them often."""
        return [self._changed(one) for one in self.reading.sentences]

    # Questions.

    def _cue(self, before: Event | None, asking: str, answer: str) -> str:
        """ " after ..." what happened before, where that does not hold the answer."""
        if before is None:
            return " at the start"
        cue = f" after {self.teller.clause(before)}"
        return " next" if gives_away(asking + cue, answer) else cue

    def _action(self, one: Sentence, event: Event, before: Event | None) -> Draft:
        """Ask what somebody is seen to do, or what happens."""
        answer = sentence(self.teller.sentence(event))
        people = self.teller.people(self.teller.doers(event))
        asking = "What happens"
        if people and len(people) == len(self.teller.doers(event)) and event.verb != "be" and not event.passive:
            several = len(people) > 1 or self.reading.entity(people[0]).count != 1
            names = [self.teller.name(key) for key in people]
            asking = f"What {'do' if several else 'does'} {' and '.join(names)} do"
        asked = f"{asking}{self._cue(before, asking, answer)}?"
        return Draft("action_visibility", asked, answer, self.pair(one), (), tuple(self._others(event, answer)), "text")

    def _by_itself(self, one: Sentence, before: Event | None) -> Draft:
        """Ask for a sentence that was not read: which of these happens, the others being the story's own, changed."""
        answer = sentence(one.text)
        asked = f"Which of these happens{self._cue(before, 'Which of these happens', answer)}?"
        others = [text for other, text in zip(self.reading.sentences, self._untrue, strict=True) if other is not one]
        others = [text for text in others if text]
        wrong = [self._changed(one), *random.Random(one.text).sample(others, len(others))]
        made = tuple(sentence(text) for text in wrong if text)[:_MOST_DISTRACTORS]
        return Draft("action_visibility", asked, answer, self.pair(one), (), made, "sentence")

    def _feelings(self, one: Sentence, main: Event | None, before: Event | None) -> Iterator[Draft]:
        """Ask how somebody feels, where the sentence tells it."""
        names = _WORDS["feelings"]
        for event in self.reading.of(one.index):
            people = self.teller.people(self.teller.doers(event))
            feeling = event.feeling or ""
            if feeling not in names or not people or not event.happens:
                continue
            many = len(people) > 1 or self.reading.entity(people[0]).count != 1
            who = " and ".join(self.teller.name(key) for key in people)
            answer = f"{sentence(who)} {'are' if many else 'is'} {feeling}"
            other = main is not None and main is not event and feeling not in self.teller.sentence(main)
            cue = f" when {self.teller.clause(main)}" if other and main is not None else self._cue(before, "", answer)
            asked = f"How {'do' if many else 'does'} {who} feel{cue}?"
            told = {found.feeling or "" for found in self.reading.events if found.feeling in names} - {feeling}
            rest = [name for name in names if name != feeling and name not in told]
            order = [*sorted(told), *random.Random(asked).sample(rest, len(rest))]
            wrong = tuple(f"{answer.removesuffix(feeling)}{name}" for name in order)
            own = tuple(f"{answer.removesuffix(feeling)}{word}" for word in event.state)
            yield Draft("emotional", asked, answer, self.pair(one), own, wrong[:_MOST_DISTRACTORS], "text")

    def _reasons(self, one: Sentence) -> Iterator[Draft]:
        """Ask why something happens and what comes of it, where the text says so."""
        for event in self.reading.of(one.index):
            if not self.teller.shows(event):
                continue
            clause = self.teller.clause(event)
            wrong = tuple(text for _, text in self._told if text not in (sentence(clause),))
            reasons = [sentence(self.teller.sentence(reason)) for reason in self.teller.reasons(event)]
            for reason in reasons[:1]:
                asked = f"Why is it that {clause}?"
                others = tuple(text for text in wrong if text not in reasons)
                if not gives_away(asked, reason):
                    yield Draft("causal", asked, reason, self.pair(one), (), _some(others, asked), "text")
            outcome = sentence(self.teller.outcome(event))
            asked = f"What comes of it that {clause}?"
            if outcome and not gives_away(asked, outcome):
                others = tuple(text for text in wrong if text != outcome)
                yield Draft("consequence", asked, outcome, self.pair(one), (), _some(others, asked), "text")

    def _orders(self, seen: Sequence[Sentence]) -> Iterator[Draft]:
        """Ask which of two events comes first: the first events of two scenes that follow each other."""
        first: dict[int, tuple[Event, Sentence]] = {}
        for one in seen:
            event = self._main(one)
            if event is not None:
                first.setdefault(self._scene(one), (event, one))
        steps = [first[scene] for scene in sorted(first)]
        texts = [sentence(self.teller.sentence(event)) for event, _ in steps]
        for at in range(1, len(steps)):
            early, late = texts[at - 1], texts[at]
            clauses = [self.teller.clause(event) for event, _ in steps]
            if early == late:
                continue
            named = sorted((clauses[at - 1], clauses[at]))
            pairs = [(at, at - 1), *((other, at) for other in range(at + 1, len(steps)))]
            pairs += [(other, at - 1) for other in range(at + 1, len(steps))]
            pairs += [(at, other) for other in range(at - 1)] + [(at - 1, other) for other in range(at - 1)]
            wrong = tuple(f"{texts[a]}{ORDERED}{clauses[b]}" for a, b in pairs if texts[a] != texts[b])
            asked = f"In which order do these happen: {named[0]}; {named[1]}?"
            right = f"{early}{ORDERED}{clauses[at]}"
            pair = self.pair(steps[at][1])
            yield Draft("temporal_order", asked, right, pair, (), wrong[:_MOST_DISTRACTORS], "text")

    def _scene(self, one: Sentence) -> int:
        text = " ".join(one.text.split())
        return next((at for at, piece in enumerate(self._pieces, 1) if text in piece), self.pair(one)[1])

    # What the right answer could be taken for.

    def _others(self, event: Event, answer: str) -> list[str]:
        """Events of the same kind: another doer, another thing of the sort, and what the same doer does elsewhere."""
        told = {text for _, text in self._told}
        made = [self._swapped(event, answer, "agent"), self._swapped(event, answer, "patient")]
        doers = self.teller.doers(event)
        own = [text for other, text in self._told if self.teller.doers(other) == doers and text != answer]
        rest = [text for other, text in self._told if self.teller.doers(other) != doers]
        wrong = [text for text in made if text and text not in told]
        wrong += [*_some(own, answer)[:2], *_some(rest, answer)]
        return list(dict.fromkeys(wrong))[:_MOST_DISTRACTORS]

    def _swapped(self, event: Event, answer: str, role: str) -> str:
        """The event with somebody or something of the same kind in the place of one that fills `role`."""
        keys = [one.entity for one in event.roles if one.role == role and one.entity is not None]
        for key in keys:
            entity = self.teller.one(key)
            there = {one.entity for one in event.roles}
            others = [one for one in self._like(entity) if one.id not in there]
            said = (
                self.teller.name(key)
                if entity.id in self.teller.names
                else self.teller.filler(next(one for one in event.roles if one.entity == key), self.teller.doers(event))
            )
            found = answer.lower().find(said.lower()) if said else -1
            if others and found >= 0:
                other = self.teller.name(random.Random(answer).choice(others).id)
                return sentence(f"{answer[:found]}{other}{answer[found + len(said) :]}")
        return ""

    def _like(self, entity: Entity) -> list[Entity]:
        """The other entities of the story of the same kind and number: characters for a character, else of its sort."""
        if entity.id not in self._alike:
            self._alike[entity.id] = self._found_like(entity)
        return self._alike[entity.id]

    def _found_like(self, entity: Entity) -> list[Entity]:
        if entity.id in self.teller.names:
            found = [self.reading.entity(key) for key in self.teller.names if key != entity.id]
            return [one for one in found if (one.count == 1) == (entity.count == 1)]
        found = [
            one
            for one in self.reading.entities
            if one.id != entity.id and one.kind == entity.kind and one.id not in self.teller.names
            if not one.members and one.name != entity.name and (one.count == 1) == (entity.count == 1)
            if one.kind != "abstract" and one.sort != "body"
        ]
        return [one for one in found if one.sort == entity.sort] or found

    def _changed(self, one: Sentence) -> str:
        """A sentence of the story with another name or thing in it, so that it did not happen; "" where none fits."""
        for entity in self.reading.entities:
            for alias in (entity.name, *entity.aliases):
                start = one.text.find(alias)
                others = self._like(entity) if start >= 0 else []
                if not others:
                    continue
                other = self.teller.name(random.Random(one.text).choice(others).id)
                before = one.text[:start]
                if other.startswith("the "):
                    before = _ARTICLE.sub("", before)
                return f"{before}{other}{one.text[start + len(alias) :]}"
        return ""


def _some(texts: Sequence[str], seed: str) -> tuple[str, ...]:
    unique = sorted(set(texts))
    return tuple(random.Random(seed).sample(unique, len(unique)))[:_MOST_DISTRACTORS]
