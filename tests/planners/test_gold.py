"""What `scene` and `oracle` draw of a record: its own words, to the letter, whoever it tells of."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from katha.planners.base import covered
from katha.planners.gold import OraclePlanner, ScenePlanner, look_of
from katha.planners.narrated import CaptionPlanner, DirectPlanner
from katha.planners.training_data import make_examples
from katha.protocols import Planner, PlanRequest
from katha.schema import Plan, Scene, StoryRecord
from katha.stories import load_story

RECORDS = sorted((Path(__file__).parents[2] / "examples").glob("*.json"))
PLANNERS = (ScenePlanner, OraclePlanner)
GIRL = "the freckled girl in a green raincoat"
NAMES = ("captain", "doctor", "butterfly", "policeman", GIRL, "two sisters", "zorblax", "Anna", "Dr. B.", "狮子")


def record(scenes: Sequence[Mapping[str, Any]], **change: Any) -> StoryRecord:
    """A record of these scenes; every transition has the fields of `change`, if it has none."""
    texts = [scene.get("scene_text", f"Scene {at} is told here.") for at, scene in enumerate(scenes, 1)]
    rows = [{"scene_index": at, "scene_text": text, **scene}
            for at, (text, scene) in enumerate(zip(texts, scenes, strict=True), 1)]  # fmt: skip
    pairs = [{"from_scene": at, "to_scene": at + 1, "action": "", **change} for at in range(1, len(scenes))]
    return StoryRecord.model_validate(
        {"story_id": "s", "story_text": " ".join(texts), "scenes": rows, "transitions": pairs}
    )


def plan(made: type[Planner], story: StoryRecord) -> Plan:
    return made().plan(story, PlanRequest(panels=len(story.scenes)))


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("name", NAMES)
def test_a_listed_name_is_name_kind_and_look_to_the_letter(planner: type[Planner], name: str) -> None:
    made = plan(planner, record([{"characters": [name], "generation_prompt": "A pier at night."}, {}, {}]))
    [sheet] = made.characters
    assert (sheet.name, sheet.kind, sheet.appearance, sheet.anchor_prompt) == (name, name, name, name)
    assert [panel.characters for panel in made.panels] == [[name], [], []]
    assert name.lower() in made.panels[0].prompt.lower()


@pytest.mark.parametrize("planner", PLANNERS)
def test_nobody_appears_whom_the_record_does_not_name(planner: type[Planner]) -> None:
    story = record(
        [
            {"characters": ["captain", "policeman"], "emotion": "proud", "action": "salutes the policeman",
             "generation_prompt": "The captain salutes the policeman."},
            {"characters": ["captain", "butterfly"], "emotion": "calm", "state": "the captain rests",
             "generation_prompt": "The captain looks at the butterfly."},
            {"characters": ["doctor"], "emotion": "afraid", "generation_prompt": "The doctor runs."},
        ],
        action="The captain rests.", emotion="The captain changes from proud to calm.", consequence="The pier is bare.",
    )  # fmt: skip
    made = plan(planner, story)
    told = words(story.model_dump_json())
    assert not {"soldier", "man", "grasshopper"} & told
    for panel in made.panels:
        assert words(panel.prompt) <= told
    assert [item.name for item in made.characters] == ["captain", "policeman", "butterfly", "doctor"]
    assert made.panels[2].characters == (["captain", "doctor"] if planner is OraclePlanner else ["doctor"])


@pytest.mark.parametrize("planner", PLANNERS)
@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_prompt_has_no_word_that_is_not_the_records(planner: type[Planner], path: Path) -> None:
    story = load_story(str(path))
    for panel, scene in zip(plan(planner, story).panels, story.scenes, strict=True):
        into = [item for item in story.transitions if item.to_scene == scene.scene_index]
        assert words(panel.prompt) <= words(json.dumps([scene.model_dump(), *(item.model_dump() for item in into)]))


def test_the_look_that_prompts_repeat_is_look_and_anchor() -> None:
    girl, captain = "freckled girl in a green raincoat", "grey-bearded captain"
    prompts = [
        f"A harbour at dawn. The {girl} opens the gate. The {captain} smiles.",
        f"The harbour. An angry {captain} shouts at the {girl}. The girl runs.",
        f"A ship. The {girl} hands a letter to the tired {captain}.",
    ]
    story = record([{"characters": ["girl", "captain"], "generation_prompt": prompt} for prompt in prompts])
    made = plan(OraclePlanner, story)
    assert [(item.appearance, item.anchor_prompt) for item in made.characters] == [(girl, girl), (captain, captain)]
    assert [panel.prompt for panel in made.panels] == prompts
    # `scene` sees no prompt, and so no look beyond the name.
    assert [item.appearance for item in plan(ScenePlanner, story).characters] == ["girl", "captain"]


@pytest.mark.parametrize(
    ("prompts", "look"),
    [
        (["The small grey mouse runs.", "A lion hugs the small grey mouse."], "small grey mouse"),
        (["The small grey mouse runs.", "The mouse sleeps."], "mouse"),
        (["The sad old mouse runs.", "The sly old mouse runs.", "The old mouse dies."], "old mouse"),
        (["The mouse in a red hat runs.", "A cat sees the mouse in a red hat."], "mouse in a red hat"),
        (["The mouse is sad.", "The mouse is glad."], "mouse"),
        (["The cat looks at the mouse.", "The dog looks at the mouse."], "mouse"),
        (["Tom greets mouse.", "Lea greets mouse."], "mouse"),
        (["The small grey mouse runs."], "mouse"),
        (["The small grey mouse runs."] * 2, "mouse"),
        (["A grey dormouse runs.", "A grey dormouse sleeps."], "mouse"),
        ([], "mouse"),
    ],
)
def test_a_look_is_what_every_prompt_that_has_the_name_repeats(prompts: list[str], look: str) -> None:
    assert look_of("mouse", prompts) == look


def test_a_feeling_is_told_in_the_records_own_sentence() -> None:
    felt = "Out of her doctor's calm, the captain grows wistful"
    story = record([{"characters": ["captain"], "generation_prompt": "A pier."}] * 2, emotion=felt)
    assert [panel.prompt for panel in plan(OraclePlanner, story).panels] == [
        "A pier. Captain.",
        f"A pier. Captain. {felt}.",
    ]


def test_whoever_of_the_cast_a_prompt_names_is_in_its_panel() -> None:
    cast = [{"characters": ["man", "Old Man", "old man", "hen"]}]
    prompts = ["The old man waves.", "A man waves.", "The woman strokes a HEN.", "Hens and a mannequin."]
    story = record([*cast, *({"generation_prompt": prompt} for prompt in prompts)])
    made = plan(OraclePlanner, story)
    assert [item.name for item in made.characters] == ["man", "Old Man", "hen"]
    assert [panel.characters for panel in made.panels[1:]] == [["Old Man"], ["man"], ["hen"], []]


def test_names_are_found_where_no_blanks_part_words() -> None:
    story = record([{"characters": ["狮子"]}, {"generation_prompt": "森林里狮子睡觉。"}])
    assert plan(OraclePlanner, story).panels[1].characters == ["狮子"]


@pytest.mark.parametrize(
    ("item", "text", "said"),
    [
        ("a doctor", "The doctors wait.", True),
        ("running captain", "The captain runs. He is running.", True),
        ("captain", "A soldier stands.", False),
        ("policeman with a lamp", "A policeman.", False),
        ("7", "At 7 they leave.", True),
        ("7", "At 17 they leave.", False),
        ("on the", "A pier.", False),
        ("狮子", "森林里狮子睡觉。", True),
    ],
)
def test_what_is_covered_is_there_literally_or_word_by_word(item: str, text: str, said: bool) -> None:
    assert covered(item, text) is said


def test_a_gold_plan_that_tells_no_place_and_hour_teaches_none() -> None:
    scenes = [{"characters": ["captain"], "scene_text": f"The captain waves {at} times in the forest at night.",
               "generation_prompt": "In the forest at night the captain waves."} for at in (1, 2)]  # fmt: skip
    story = record(scenes, action="The captain waves.", consequence="The captain is seen.")
    found = make_examples([story])
    assert found.rejected == {}
    panels = json.loads(found.kept[0].reply)["panels"]
    assert [(item["place"], item["time_of_day"]) for item in panels] == [("", "unclear")] * 2


NAMES = (Path(__file__).parents[2] / "sketch" / "tests" / "data" / "names.txt").read_text("utf-8").split()


@pytest.mark.parametrize("planner", [ScenePlanner, CaptionPlanner, DirectPlanner])
def test_no_name_becomes_a_look(planner: type[Planner]) -> None:
    """Nobody is drawn black, green, young or little because of a surname."""
    assert len(set(NAMES)) >= 200
    for name in NAMES:
        who = f"Mr. {name}"
        texts = [f"{who} opened the door.", f"A dog ran to {who}.", f"{who} laughed."]
        scenes = [
            Scene(story_id="s", scene_index=at, scene_text=text, characters=[who], generation_prompt=text)
            for at, text in enumerate(texts, 1)
        ]
        story = StoryRecord(story_id="s", story_text=" ".join(texts), scenes=scenes)
        made = planner().plan(story, PlanRequest(panels=3))
        for one in made.characters:
            left = one.appearance.replace(who, "").replace(one.name, "")
            assert name.lower() not in left.lower().split(), one
