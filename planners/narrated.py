"""The planners that pass on what others wrote: the story's own words (`direct`, `caption`), and another planner's plan,
its prompts written as VinaBench feeds constraints to a renderer (`constrained:PLANNER`).

Sec. S3 of VinaBench: the description with its links, then `[Characters] ... [Time of Day] ... [Location] ...`. Nothing
is planned anew there: the constraints are the plan's own fields, so that every other planner can write them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from katha.errors import PlanError, UsageError
from katha.models.base import Purse, TextModel
from katha.planners.base import NEGATIVE_PROMPT, SEES_SCENES, SEES_TEXT, LadderPlanner, clip
from katha.plugin_boundary import checked, spec_of
from katha.protocols import Expected, Planner, PlanRequest
from katha.reading import story_reader
from katha.registry import default_registry
from katha.schema import Panel, Plan, StoryRecord
from katha.schema.narratives import narrative_of, serialise
from katha.sentences import raw_sentences


def cut(pieces: Sequence[str], parts: int) -> list[list[str]]:
    """Return `pieces` in order in `parts` groups of about the same length, none empty where there are pieces enough.

    With fewer pieces than parts the last ones are held: a group repeats the piece before it.
    """
    if len(pieces) <= parts:
        return [[pieces[min(at * len(pieces) // parts, len(pieces) - 1)]] for at in range(parts)]
    total = sum(len(piece) for piece in pieces)
    middles = [end - len(piece) / 2 for end, piece in zip(accumulate(map(len, pieces)), pieces, strict=True)]
    wanted = [min(int(middle * parts / total), parts - 1) for middle in middles]
    groups: list[list[str]] = [[] for _ in range(parts)]
    at = 0
    for place, piece in enumerate(pieces):
        left = len(pieces) - place
        if groups[at] and at < parts - 1 and (wanted[place] > at or left <= parts - 1 - at):
            at += 1
        groups[at].append(piece)
    return groups


class DirectPlanner(LadderPlanner):
    """The raw story, cut into equal pieces: the weakest prompts, in any language.

    It sees the story's text and how many panels there are, and no scene boundary.
    """

    name = "direct"
    sees = SEES_TEXT

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a plan of one piece of the story, or one caption, a panel."""
        seen, information = self.seen(story, request)
        texts = self._texts(seen, request.panels)
        if not all(text.strip() for text in texts):
            raise PlanError(f"Story {story.story_id!r} has a scene without a text.", hint="Fill in its 'scene_text'.")
        panels = [
            Panel(index=at, prompt=clip(text, request.prompt_tokens), negative_prompt=NEGATIVE_PROMPT, caption=text)
            for at, text in enumerate(texts, 1)
        ]
        return self.made(story, request, information, panels)

    def _texts(self, story: StoryRecord, panels: int) -> list[str]:
        return [" ".join("".join(group).split()) for group in cut(raw_sentences(story.story_text), panels)]


class CaptionPlanner(DirectPlanner):
    """One caption a scene, as the story tells it: no looks, no transitions, in any language.

    It sees the text of each scene. A plain text is cut and captioned by the reader that is installed (`katha.readers`),
    else, and where that does not read it, into equal pieces.
    """

    name = "caption"
    sees = SEES_SCENES

    def _texts(self, story: StoryRecord, panels: int) -> list[str]:
        if story.scenes:
            return [scene.scene_text for scene in story.scenes]
        captions = story_reader().captions(story.story_text, panels)
        return super()._texts(story, panels) if captions is None else captions


class ConstrainedPlanner(Planner):
    """Another planner's plan with VinaBench's constraints in its prompts: `constrained:PLANNER`."""

    def __init__(self, inner: str | None = None) -> None:
        """Make the inner planner.

        Raises:
            UsageError: none is named, or this one. UnknownPluginError: there is none of that name.
        """
        registry = default_registry("planners")
        name = inner or ""
        if name.partition(":")[0] in ("", "constrained"):
            known = ", ".join(one for one in registry.names() if one != "constrained")
            said = "The planner 'constrained' cannot plan by itself: it writes the prompts of another one anew."
            raise UsageError(said, hint=f"Write constrained:PLANNER with one of: {known}.")
        self._inner: Planner = checked(registry.create(name), Planner, f"planner {name!r}")

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the inner planner's own."""
        return {"name": "constrained", "version": 1, "inner": spec_of(self._inner, "planner")}

    @property
    def question_writer(self) -> TextModel | None:  # type: ignore[override]
        """The inner planner's."""
        return self._inner.question_writer

    def expected(self, story: StoryRecord, panels: int) -> Expected:
        """Return what the inner planner's plan is reckoned at."""
        return self._inner.expected(story, panels)

    def cost(self, tokens: Mapping[str, int]) -> float | None:
        """Return the inner planner's price of tokens."""
        return self._inner.cost(tokens)

    def pay_from(self, purse: Purse, each: float) -> None:
        """Have the inner planner's calls paid."""
        self._inner.pay_from(purse, each)

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return the inner plan with the constraints written into each prompt."""
        plan = self._inner.plan(story, request)
        narrative = narrative_of(plan)
        panels = [
            panel.model_copy(update={"prompt": serialise(scene, narrative.profile)})
            for panel, scene in zip(plan.panels, narrative.scenes, strict=True)
        ]
        return plan.model_copy(update={"planner": f"constrained:{plan.planner}", "panels": panels})
