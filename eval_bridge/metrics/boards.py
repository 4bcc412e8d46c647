"""A board as a metric sees it: pictures in order, the story, and what lies beside: plan, references, annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from katha.eval_bridge.bench.boards import JudgedFrame
from katha.schema import Plan, StoryRecord
from katha.schema.metrics import MetricValue
from katha.schema.narratives import Narrative


@dataclass(frozen=True)
class MetricBoard:
    """One story's board of one method.

    frames: in order, inserted ones among them (`kind`, and `scene` from 1 or None). references: the story's gold
    pictures, scene by scene, empty where there are none. characters: pictures of each character by its name. plan: of a
    board that katha planned. narrative: VinaBench's annotations.
    """

    method: str
    record: StoryRecord
    frames: tuple[JudgedFrame, ...]
    plan: Plan | None = None
    references: tuple[bytes, ...] = ()
    characters: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    narrative: Narrative | None = None

    @property
    def story_id(self) -> str:
        """The story's id."""
        return self.record.story_id

    @property
    def images(self) -> list[bytes]:
        """The pictures' bytes, in order."""
        return [frame.data for frame in self.frames]

    def texts(self) -> list[str | None]:
        """Return what each frame is of: its scene's text, or None where nobody says (an inserted frame)."""
        return [self.text_of(frame.scene) for frame in self.frames]

    def text_of(self, scene: int | None) -> str | None:
        """Return a scene's text: of the record, else the plan's source or caption, else the narrative's line."""
        if scene is None:
            return None
        if scene <= len(self.record.scenes):
            return self.record.scenes[scene - 1].scene_text
        panels = [panel for panel in self.plan.panels if panel.index == scene] if self.plan is not None else []
        if panels and (panels[0].source or panels[0].caption):
            return panels[0].source or panels[0].caption
        if self.narrative is not None and scene <= len(self.narrative.scenes):
            return self.narrative.scenes[scene - 1].text or None
        return None

    def value(
        self,
        part: str,
        value: float | None,
        *,
        frame: int | None = None,
        item: str = "",
        n: int = 1,
        reason: str | None = None,
    ) -> MetricValue:
        """Return a value of this board, or of its frame (from 1); the metric's name is filled in by the runner."""
        return MetricValue(
            metric="",
            part=part,
            method=self.method,
            story_id=self.story_id,
            frame=frame,
            item=item,
            value=value,
            n=n if value is not None else 0,
            reason=reason,
        )
