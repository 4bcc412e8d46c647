"""What a renderer is asked for: fields in words where it draws from the prompt alone; what it has stand-ins for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from katha.agents.frames import _dump
from katha.agents.requests import in_part, in_words, panel_request, stand_ins
from katha.errors import UsageError
from katha.protocols import Capabilities, FrameRequest, Renderer, can
from katha.schema import Character, Coverage, Gaze, Panel, Plan, Prop, Seen, Visual
from katha_sketch.drawing.renderer import SketchRenderer

THEO = Character(name="Theo", kind="boy", appearance="a boy with red hair")
ASKED = FrameRequest(
    "Theo plays the guitar.",
    seed=1,
    width=64,
    height=64,
    characters=(THEO,),
    place="the kitchen",
    time_of_day="evening",
    shot_size="wide",
    must_show=("guitar", "lamp"),
)


def test_a_renderer_of_prompts_gets_the_fields_in_words() -> None:
    told = in_words(ASKED, Capabilities()).prompt
    assert told == (
        "Theo plays the guitar. Theo: a boy with red hair. Visible: lamp. Setting: the kitchen, evening. Wide shot."
    )
    short = in_words(ASKED, Capabilities(prompt_tokens=17))
    assert short.prompt == "Theo plays the guitar. Theo: a boy with red hair. Visible: lamp."
    assert (short.composed, short.dropped) == (True, ("the shot", "the place", "the hour"))


def test_a_renderer_says_its_family_and_counts_in_its_own_tokens() -> None:
    phrases = in_words(replace(ASKED, style="ink"), Capabilities(prompt_family="clip", prompt_tokens=75), len)
    assert phrases.prompt == "Theo plays the guitar. Theo: a boy with red hair; lamp; wide shot; ink."
    with pytest.raises(UsageError, match="no family of prompts 'runes'"):
        in_words(ASKED, Capabilities(prompt_family="runes"))


def test_fields_that_only_the_prompt_tells_change_no_key_that_was_there() -> None:
    old = {"prompt", "seed", "width", "height", "negative_prompt", "style", "kind", "scene", "characters"}
    seen = replace(ASKED, light="dusk", state=(Seen(name="Theo", mood="glad"),), gaze=(Gaze(who="Theo", at="her"),))
    assert set(_dump(ASKED, panel=False)) == old
    assert set(_dump(ASKED, panel=True)) == old | {"place", "time_of_day", "shot_size", "must_show"}
    assert _dump(seen, panel=False) == _dump(ASKED, panel=False)
    assert _dump(in_words(seen, Capabilities()), panel=False) != _dump(in_words(ASKED, Capabilities()), panel=False)
    assert _dump(seen, panel=True)["state"] == [{"name": "Theo", "state": "", "mood": "glad"}]


def test_props_are_those_that_a_panel_names() -> None:
    props = [Prop(name=name, looks="red") for name in ("cloth duck", "tin duck", "lamp with a cord", "snowman")]
    panel = Panel(index=1, prompt="Theo hugs his tin duck. Where the snowman stood is a puddle.", must_show=["lamp"])
    plan = Plan(story_id="s", planner="p", panels=[panel], visual=Visual(props=props))
    asked = panel_request(plan, panel, 1, (64, 64))
    assert [item.name for item in asked.props] == ["tin duck", "lamp with a cord"]


def test_what_is_said_already_or_drawn_from_the_fields_is_not_said_again() -> None:
    assert in_words(ASKED, Capabilities(panel=True)) is ASKED
    full = replace(
        ASKED, prompt="Wide: Theo, a boy with red hair, plays the guitar by a lamp in the kitchen this evening."
    )
    assert in_words(full, Capabilities()).prompt == full.prompt


def test_the_sketch_knows_what_it_has_no_picture_for() -> None:
    sketch = SketchRenderer()
    assert can(sketch, Renderer.not_drawn)
    asked = replace(ASKED, prompt="Theo plays the guitar. Theo holds a qwertzu.", must_show=())
    assert "qwertzu" in " ".join(sketch.not_drawn(asked))
    assert sketch.not_drawn(replace(asked, seed=9)) == sketch.not_drawn(asked)


def test_acts_of_one_sentence_with_stand_ins_are_one_sentence() -> None:
    source = "Theo cracked the eggs and stirred the qwertzu."
    acts = [("Theo cracked the eggs.", "crack"), ("Theo stirred the qwertzu.", "qwertzu")]
    panels = [Panel(index=1, prompt=text, caption=text, source=source, not_drawn=[word]) for text, word in acts]
    assert in_part(panels, []) == {(source, "crack"): None, (source, "qwertzu"): None}
    assert in_part(panels[1:], ["Theo cracked the eggs."]) == {}


def test_a_sentence_with_a_stand_in_counts_as_lost() -> None:
    panel = Panel(
        index=1,
        prompt="Theo cracks the eggs.",
        caption="The day was fine. Theo cracked the eggs.",
        not_drawn=["crack", "lake"],
    )
    assert list(stand_ins(panel)) == [("Theo cracked the eggs.", "crack")]
    known = Coverage(visible=4, read=4, drawn=4, in_part=["Theo cracked the eggs."], stand_ins=["crack"])
    assert (known.whole, known.share, known.low) == (3, 75.0, True)
    assert known.warning() == "Only 3 of 4 sentences are wholly in this board."
    assert "1 with a plain stand-in for crack" in known.told()


def test_the_weather_is_a_field_or_a_sentence_and_never_said_twice() -> None:
    snow = replace(ASKED, weather="snow")
    assert in_words(snow, Capabilities(panel=True)).prompt == "Theo plays the guitar. In the snow."
    assert in_words(snow, Capabilities(panel=True, sky=True)) is snow
    said = replace(snow, prompt="Theo plays the guitar in the snow.")
    assert in_words(said, Capabilities(panel=True)) is said
    assert _dump(snow, panel=True)["weather"] == "snow"
    assert "weather" not in _dump(ASKED, panel=True)


@pytest.mark.parametrize("weather", ["rain", "snow", "fog", "storm"])
def test_the_sketch_draws_the_weather_of_the_field(weather: str) -> None:
    sketch, outside = SketchRenderer(), replace(ASKED, width=256, height=192, place="park", must_show=())
    requests = [in_words(one, sketch.capabilities) for one in (outside, replace(outside, weather=weather))]
    plain, told = (list(sketch.render_board([request])) for request in requests)
    assert plain != told
