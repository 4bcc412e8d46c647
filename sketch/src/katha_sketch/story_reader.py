"""What katha's core asks of a reader of plain texts, answered by rules of English (group `katha.readers`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from katha.errors import PlanError
from katha.eval_bridge.matching.match import accepted_set, literal_verdict, normalise
from katha.protocols import PlanRequest, StoryReader
from katha.schema import Coverage, Panel, Plan, Question, StoryRecord, Transition


class EnglishReader(StoryReader):
    """Reads short English stories; of other texts it says that it does not read them."""

    def panels_for(self, text: str, usual: int) -> int:
        """Return how many panels a plain text calls for; `usual` where it cannot be read."""
        from katha_sketch.planner.rule import panels_for

        return panels_for(text, usual)

    def outline(self, story: StoryRecord, panels: int) -> Plan:
        """Return the plan that planner `rule` makes.

        Raises:
            PlanError: the story cannot be planned by rule.
        """
        from katha_sketch.planner.rule import RulePlanner

        return RulePlanner().plan(story, PlanRequest(panels=panels, style="", prompt_tokens=None))

    def captions(self, text: str, panels: int) -> list[str] | None:
        """Return of each part the sentence, or the act of one, that holds its main event; None where nothing happens
        that can be read."""
        from katha_sketch.planner.captions import main_captions

        return main_captions(text, panels)

    def linked(self, story_id: str, texts: Sequence[str]) -> list[Transition]:
        """Return the transitions between pictures that are told in `texts`; none where nothing in them can be read."""
        from katha_sketch.planner.rule import linked

        try:
            return linked(story_id, texts)
        except PlanError:
            return []

    def acts(self, text: str) -> bool:
        """Return whether `text` tells of anybody who does or is something."""
        from katha_sketch.english import read_story

        return any(event.who("agent") or event.state for event in read_story(text).events)

    def covered(self, known: Coverage, record: StoryRecord, panels: Sequence[Panel]) -> Coverage:
        """Return which visible sentences of the text are in the panels' captions."""
        from katha_sketch.planner.coverage import counted

        return counted(known, record, panels)

    def questions(self, record: StoryRecord, plan: Plan) -> list[Question]:
        """Return what the record's transitions call for (Tables 28 and 29), or what a plain text tells."""
        from katha_sketch.questions.build import rule_questions

        return rule_questions(record, plan)

    def distractors(self, question: Question, names: Sequence[str], seed: int) -> Iterator[str]:
        """Yield the question's answer with one thing changed, those of the story's own people and things first."""
        from katha_sketch.questions.build import wrong_answers

        return wrong_answers(question, names, seed)

    def characters(self, text: str) -> tuple[str, ...]:
        """Return whom a sentence tells of, by their concepts."""
        from katha_sketch.english.phrases import read_phrase

        return tuple(read_phrase(text).concepts.get("character", ()))

    def felt(self, text: str) -> str | None:
        """Return how somebody feels in a sentence, as a plain sentence; None where it tells of no feeling."""
        from katha_sketch.questions.build import felt_in

        return felt_in(text)

    def accepts(self, text: str, question: Question) -> bool:
        """Return whether `text` has the words of an accepted answer, by their stems."""
        from katha_sketch.matching.lemmas import stands_for

        literal = literal_verdict(text, question)
        if literal is not None:
            return bool(literal.right)
        return normalise(text) in accepted_set(question) or stands_for(text, question)
