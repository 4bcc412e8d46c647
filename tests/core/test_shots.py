"""The artist's words: what a prompt's head says of the camera, and how prompts say what stands in a field."""

from __future__ import annotations

import json

import pytest

from katha.composing import compose, load_family
from katha.protocols import FrameRequest, tokens_of
from katha.schema import Panel
from katha.shots import SHOT_FIELDS, offered, read_shot, worded_shot


@pytest.mark.parametrize(
    ("prompt", "rest", "shot"),
    [
        ("Close-up. The golden cup.", "The golden cup.", {"shot_size": "close-up"}),
        ("Close up of the cup", "The cup", {"shot_size": "close-up"}),
        ("Insert: a clock shows midnight.", "A clock shows midnight.", {"shot_size": "insert"}),
        ("Two-shot of Leo and Mia", "Leo and Mia", {"shot_size": "two-shot"}),
        ("A wide shot of Leo.", "Leo.", {"shot_size": "wide"}),
        ("Low angle. Wide shot. A tiny Leo", "A tiny Leo", {"shot_angle": "low angle", "shot_size": "wide"}),
        ("Bird\u2019s eye view of the park", "The park", {"shot_angle": "bird's eye"}),
        ("Over the shoulder of Leo we see Mia", "Mia", {"shot_angle": "over the shoulder of Leo"}),
        ("Over Leo's shoulder, Mia laughs.", "Mia laughs.", {"shot_angle": "over the shoulder of Leo"}),
        ("POV: the door opens", "The door opens", {"shot_angle": "point of view"}),
        ("From Leo's point of view: the door.", "The door.", {"shot_angle": "point of view of Leo"}),
        ("Pan left. Leo runs", "Leo runs", {"camera_move": "pan left"}),
        ("Silhouette of Leo on a hill", "Leo on a hill", {"light": "silhouette"}),
        ("Close-up.", "", {"shot_size": "close-up"}),
        # What only begins with such a word is something to see.
        ("Wide awake, Leo runs.", "Wide awake, Leo runs.", {}),
        ("The medium speaks.", "The medium speaks.", {}),
        ("Insert the coin", "Insert the coin", {}),
        ("From behind the tree a fox looks.", "From behind the tree a fox looks.", {}),
        ("A bird's eye glitters.", "A bird's eye glitters.", {}),
    ],
)
def test_the_words_of_the_camera_go_from_the_head_of_a_prompt_to_their_fields(
    prompt: str, rest: str, shot: dict[str, str]
) -> None:
    assert read_shot(prompt) == (rest, shot)


def test_each_field_offers_words_and_each_word_is_said() -> None:
    for name in SHOT_FIELDS:
        assert len(offered(name)) >= 8
        assert all(worded_shot(name, word) or word in ("eye level", "eye-level") for word in offered(name))
    assert worded_shot("shot_angle", "through the keyhole") == "through the keyhole"


def test_prompts_say_every_field_that_a_picture_can_show() -> None:
    told = {"shot_size": "insert", "shot_angle": "bird's eye", "weather": "snow", "light": "moonlight"}
    request = FrameRequest("Leo runs.", 1, 64, 64, time_of_day="night", place="park", **told)  # type: ignore[arg-type]
    for family in ("clip", "t5-512", "qwen", "services", "paragraph"):
        text = compose(request, load_family(family), tokens_of).text.lower()
        for word in ("insert shot", "bird's-eye view", "in the snow", "moonlight", "night", "park"):
            assert word in text, family
    again = FrameRequest("Leo runs in the snow.", 1, 64, 64, weather="snow")
    assert compose(again, load_family("paragraph"), tokens_of).text == "Leo runs in the snow."


def test_a_panel_without_the_new_words_is_written_as_before() -> None:
    new = {"weather", "camera_move", "sound"}
    assert new.isdisjoint(json.loads(Panel(index=1, prompt="Leo runs.").model_dump_json()))
    whole = Panel(index=1, prompt="Leo runs.", weather="snow", camera_move="pan left", sound="wind")
    assert new < json.loads(whole.model_dump_json()).keys()
    assert Panel.model_validate_json(whole.model_dump_json()) == whole
