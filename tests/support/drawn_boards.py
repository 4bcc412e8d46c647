"""A plan and a scripted model for boards that are drawn as SVG: one girl, one kettle, two frames."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from katha.models.base import Completion, Turn
from katha.protocols import Evidence, FrameRequest, Judge, JudgePrompt, JudgeReply
from katha.schema import Character, Gaze, Panel, Plan, Prop, Question, Seen, StoryRecord, Transition, Visual

CAST = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1600 1240"><defs>
<!-- neck 0,-300 -->
<g id="mi-body"><rect x="-60" y="-300" width="120" height="300" fill="#2b9c95"/></g>
<g id="mi-head-glad"><circle cx="0" cy="-60" r="60" fill="#f2c29b"/></g>
<g id="mi-head-afraid"><circle cx="0" cy="-60" r="60" fill="#f7e0cc"/></g>
<g id="hd-open"><circle r="20" fill="currentColor"/></g>
<g id="ke-shut"><path d="M0,0H60V40H0Z" fill="#c03030"/></g>
</defs><rect width="1600" height="1240" fill="#eee"/><use href="#mi-body" x="300" y="600"/>
<use href="#mi-head-glad" x="300" y="300"/><use href="#mi-head-afraid" x="700" y="300"/>
<use href="#hd-open" x="900" y="300"/><use href="#ke-shut" x="1100" y="300"/></svg>"""


def frame(x: int = 400, colour: str = "#88aacc", group: str = "the-red-kettle", more: str = "") -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 720">'
        f'<rect width="1280" height="720" fill="{colour}"/>'
        f'<g id="f-mila"><use href="#mi-body" x="{x}" y="700"/><use href="#mi-head-glad" x="{x}" y="400"/></g>'
        f'<g id="{group}"><use href="#ke-shut" transform="translate(800 400) scale(3)"/></g>{more}</svg>'
    )


def plan() -> Plan:
    mila = Character(name="Mila", kind="girl", appearance="a girl of eight in a dotted green dress")
    panels = [
        Panel(
            index=number,
            prompt=f"Mila looks at the red kettle, moment {number}.",
            characters=["Mila"],
            must_show=["the red kettle"],
            place="kitchen",
            light="morning light",
            state=[Seen(name="Mila", mood="glad" if number == 1 else "afraid")],
            gaze=[Gaze(who="Mila", at="the red kettle", not_at="the door")],
        )
        for number in (1, 2)
    ]
    change = Transition(from_scene=1, to_scene=2, action="it boils", device="one prop two states", shown="Steam rises.")
    visual = Visual(geography="stove right", pivot="the red kettle", props=[Prop(name="kettle", states=["shut"])])
    return Plan(
        story_id="kettle", planner="hand", characters=[mila], panels=panels, transitions=[change], visual=visual
    )


def requests(seed: int = 42) -> list[FrameRequest]:
    made = plan()
    return [
        FrameRequest(
            panel.prompt, seed, 640, 360, scene=panel.index, characters=tuple(made.characters), plan=made,
            must_show=tuple(panel.must_show), place=panel.place,
        )
        for panel in made.panels
    ]  # fmt: skip


class Sees(Judge):
    """A judge that can tell the change from three pictures and not from two."""

    def spec(self) -> Mapping[str, Any]:
        return {"name": "sees"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for _ in prompts:
            told = evidence.text is not None or len(evidence.images) > 2
            yield JudgeReply("ok", answer="steam rises" if told else "Unclear")


def story() -> StoryRecord:
    asked = [
        Question(
            question_id=f"kettle_q{number}", story_id="kettle", question_type="causal", question=f"What, {number}?",
            gold_answer="steam rises", accepted_answers=["steam rises"], target_transition=(1, 2),
            role="steering" if number < 3 else "reporting",
        )
        for number in range(1, 5)
    ]  # fmt: skip
    text = "Mila looks at the kettle. The kettle boils."
    return StoryRecord(story_id="kettle", title="Kettle", story_text=text, recoverability_questions=asked)


class Scripted:
    """A model that answers by rule what it was asked last, and remembers the conversations."""

    def __init__(self, answer: Callable[[Sequence[Turn]], str]) -> None:
        self.answer, self.asked = answer, list[tuple[Turn, ...]]()
        self._lock = threading.Lock()

    def spec(self) -> Mapping[str, Any]:
        return {"name": "scripted"}

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: object = None) -> Completion:
        assert schema is None
        with self._lock:
            self.asked.append(tuple(turns))
        text = self.answer(turns)
        return Completion("ok", text, usage={"tokens": {"input": 10, "output": len(text)}, "cost": 0.01, "model": "s"})


def usual(turns: Sequence[Turn]) -> str:
    last = turns[-1].text
    if "Now draw the cast sheet" in last:
        return f"```svg\n{CAST}\n```"
    if last.startswith(("Draw frame", "Draw a frame")):
        return f"```svg\n{frame()}\n```"
    return "FINE"
