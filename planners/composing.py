"""A model's drafts to a plan: prompts completed with looks, signs, place and shot, and cut to the renderer's limit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from katha.planners.draft import Draft, DraftCharacter, DraftPanel, DraftTransition
from katha.planners.fitting import NEGATIVE_PROMPT, as_sentence, fit
from katha.planners.mentions import named, worded
from katha.planners.switches import Switches
from katha.planners.windows import Window
from katha.schema import Character, Panel, Question, Transition

__all__ = ["Composer"]

_SHOTS: Mapping[str, str] = {"close-up": "Close-up", "medium": "Medium shot", "wide": "Wide shot"}
_SENTENCE_END = re.compile(r"(?<=[.!?]) ")
_NO_PLACE = frozenset({"", "unclear", "unknown", "none"})


@dataclass(frozen=True)
class Composer:
    """Makes records of drafts. limit: the renderer's, in tokens."""

    story_id: str
    switches: Switches
    limit: int | None

    def characters(self, drafts: Sequence[DraftCharacter]) -> list[Character]:
        """One sheet each, with a prompt in which the character is alone."""
        return [
            Character(
                name=item.name,
                kind=item.kind,
                appearance=item.appearance,
                anchor_prompt=as_sentence(f"{item.appearance}, alone, full body, plain background"),
            )
            for item in drafts
        ]

    def panels(self, window: Window, draft: Draft, sheets: Sequence[Character]) -> list[Panel]:
        """The window's panels; their `source` texts joined are the window's text."""
        sources = _sources(window, draft)
        return [
            self._panel(index, item, source, sheets)
            for index, item, source in zip(window.panels, draft.panels, sources, strict=True)
        ]

    def _panel(self, index: int, draft: DraftPanel, source: str, sheets: Sequence[Character]) -> Panel:
        told = as_sentence(draft.prompt)
        shown = [item for item in sheets if item.name in draft.characters]
        if self.switches.look:
            told = _with_looks(told, shown)
        for item in [*draft.must_show, *(link.visible for link in draft.links)]:
            if not worded(item, told):
                told = f"{told} {as_sentence(item)}"
        sentences = _SENTENCE_END.split(told)
        lead = [text for text in (self._shot(draft), self._place(draft)) if text]
        order = range(len(lead), len(lead) + len(sentences))
        return Panel(
            index=index,
            prompt=fit([*lead, *sentences], self.limit, first=order),
            negative_prompt=NEGATIVE_PROMPT,
            caption=" ".join(source.split()),
            characters=[item.name for item in shown],
            must_show=draft.must_show,
            source=source,
            place=draft.place,
            time_of_day=draft.time_of_day,
            shot_size=draft.shot_size,
            shot_angle=draft.shot_angle,
            links=draft.links,
        )

    def _shot(self, draft: DraftPanel) -> str:
        size = _SHOTS.get(draft.shot_size, "")
        angle = draft.shot_angle if draft.shot_angle not in {"", "eye level"} else ""
        return as_sentence(", ".join(part for part in (size, angle) if part))

    def _place(self, draft: DraftPanel) -> str:
        parts = [text.strip() for text in (draft.place, draft.time_of_day) if text.strip().lower() not in _NO_PLACE]
        return as_sentence(", ".join(parts))

    def transitions(self, window: Window, draft: Draft) -> list[Transition]:
        """The window's transitions, the first from the panel before it where it is joined."""
        first = window.panels.start - window.joined
        return [
            Transition(
                story_id=self.story_id,
                from_scene=first + at,
                to_scene=first + at + 1,
                transition_type=item.transition_type,
                action=item.action,
                causality=item.causality,
                intention=item.intention,
                emotion=item.emotion,
                consequence=item.consequence,
                expected_change=item.consequence,
                moral_target=item.moral_target,
                recoverability_target=item.action,
            )
            for at, item in enumerate(draft.transitions)
        ]

    def questions(self, pairs: Sequence[tuple[Transition, DraftTransition]]) -> list[Question]:
        """The questions of all transitions, the canonical answer among the accepted ones."""
        found: list[Question] = []
        for transition, draft in pairs:
            for item in draft.questions:
                found.append(
                    Question(
                        question_id=f"{self.story_id}_q{len(found) + 1}",
                        story_id=self.story_id,
                        question_type=item.dimension,
                        question=item.question,
                        gold_answer=item.answer,
                        accepted_answers=list(dict.fromkeys([item.answer, *item.accepted])),
                        target_scene=transition.to_scene,
                        target_transition=transition.pair,
                        evidence_scenes=list(transition.pair),
                        required_evidence=transition.action,
                    )
                )
        return found


def _sources(window: Window, draft: Draft) -> list[str]:
    if window.scenes:
        return list(window.scenes)
    starts = [(panel.first_sentence or window.first_sentence) - window.first_sentence for panel in draft.panels]
    ends = [*starts[1:], len(window.sentences)]
    return ["".join(window.sentences[start:end]) for start, end in zip(starts, ends, strict=True)]


def _with_looks(prompt: str, shown: Sequence[Character]) -> str:
    """Each character's whole look in the place of its first mention, by name or by kind; else added at the end."""
    for item in shown:
        if item.appearance.lower() in prompt.lower():
            continue
        words = sorted({item.name, item.kind}, key=len, reverse=True)
        names = "|".join(re.escape(word) for word in words if word)
        found = re.search(rf"\b(?:(?:the|an?)\s+)?(?:{names})\b", prompt, re.IGNORECASE)
        look = named(_bare(item.appearance))
        if found is None:
            prompt = f"{prompt} {as_sentence(look)}"
            continue
        # A proper name stays beside the look; a kind ("the lion") is a part of it.
        said = f"{found[0]}, {look}," if found[0] == item.name and item.name[:1].isupper() else look
        prompt = f"{prompt[: found.start()]}{said}{prompt[found.end() :]}"
    return prompt[:1].upper() + prompt[1:]


def _bare(phrase: str) -> str:
    return re.sub(r"^(?:the|an?)\s+", "", phrase.strip(), flags=re.IGNORECASE)
