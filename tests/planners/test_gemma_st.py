"""`gemma-st` over the real SDKs: what is asked, what is made of a reply, and everything that a model can get wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import cli_child
import pytest
from api_server import Server, serving
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from katha.agents.context import check_plan, load_plugins, make_plan, protocol_of_config
from katha.app.cli.main import app
from katha.config import Settings, resolve
from katha.configs import load_prompt
from katha.errors import BudgetError, KathaError, ModelError, PlanError, RecordError, ReplyError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.needs import run_needs
from katha.models import client
from katha.models.base import strict_schema
from katha.planners.base import ABOUT, parts_without, validate_plan
from katha.planners.draft import (
    DEVICES,
    PlanShape,
    draft_problems,
    mended,
    read_draft,
    reply_schema,
    within,
)
from katha.planners.gemma_st import GemmaPlanner, letters_for, parts_of, plan_prompt
from katha.protocols import Planner, PlanRequest, Span, allows
from katha.registry import default_registry
from katha.schema import Plan, Question, StoryRecord
from katha.stories import check_scene_count, load_story

ROOT = Path(__file__).parents[2]
TEXT = "A letter came with bad news. Leo read it and wept. Samantha gave him bread. They laughed."
MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4o"}


def story(text: str = TEXT, **fields: Any) -> StoryRecord:
    return StoryRecord.model_validate({"story_id": "s", "title": "The Letter", "story_text": text, **fields})


def draft(starts: tuple[int, ...] = (1, 3)) -> dict[str, Any]:
    """A reply that can be used, with a panel for each of `starts`."""
    panel = {
        "place": "kitchen", "time_of_day": "evening", "light": "lamp light",
        "links": [{"phrase": "bad news", "visible": "a sad face over an open letter"}],
        "shot_size": "close-up", "shot_angle": "eye level", "camera": "across the table",
        "characters": ["Leo", "Samantha"],
        "state": [{"name": "Leo", "state": "holds the letter", "mood": "sad"}],
        "gaze": [{"who": "Leo", "at": "the letter", "not_at": "Samantha"}], "contacts": ["Leo's hand on the letter"],
        "causes_next": "Leo's tears", "must_show": ["an open letter", "bread"],
    }  # fmt: skip
    transition = {
        "transition_type": "cause_effect", "action": "Samantha gives Leo bread.", "causality": "Leo is sad.",
        "intention": "Samantha wants to comfort Leo.", "emotion": None,
        "consequence": "Leo laughs.", "moral_target": "kindness", "device": "planted pivot",
        "shown": "The bread on the table is in Leo's hand.",
        "questions": [{"dimension": "causal", "question": "Why does Leo weep?", "answer": "The news is bad",
                       "accepted": ["bad news"]}],
    }  # fmt: skip
    board = {
        "geography": "door on the left", "direction": "in is to the right", "places": ["kitchen: yellow"],
        "pivot": "letter", "pivot_colour": "blue", "order": "telling", "left_out": ["the laughter"], "added": [],
    }  # fmt: skip
    return {
        "tells_events": True,
        "cast": [
            {"name": "Leo", "in_text": "Leo", "kind": "man", "appearance": "tall man with a black beard"},
            {"name": "Samantha", "in_text": "Samantha", "kind": "woman", "appearance": "woman with red hair"},
        ],
        "props": [{"name": "letter", "looks": "blue paper", "states": ["closed", "open"]}],
        "visual": board,
        "panels": [
            {"first_sentence": start, **panel, "prompt": f"Leo sits over letter {at}. Samantha gives him bread."}
            for at, start in enumerate(starts)
        ],
        "transitions": [transition] * (len(starts) - 1),
    }


Planned = Callable[..., tuple[Plan, Server]]


@pytest.fixture(params=sorted(MODELS))
def planned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Plan a story with a model that answers `replies` in turn."""
    provider = str(request.param)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    def plan(*replies: Any, record: StoryRecord | None = None, panels: int = 2, asked: Mapping[str, Any] | None = None,
             **options: Any) -> tuple[Plan, Server]:  # fmt: skip
        steps = [item if isinstance(item, dict) and "text" in item else {"text": json.dumps(item)} for item in replies]
        with serving(provider, lambda number, body: steps[min(number, len(steps) - 1)]) as server:
            name = f"gemma-st:{provider}:{MODELS[provider]}"
            planner = default_registry("planners").create(name, base_url=server.url, **options)
            given = record or story()
            try:
                return planner.plan(given, PlanRequest(panels=panels, **(asked or {}))), server
            finally:
                client = vars(planner._model).get("_client")
                if client is not None:
                    client.close()
                vars(plan)["server"] = server

    vars(plan)["provider"] = provider
    return plan


def test_a_reply_becomes_a_plan_that_holds_together(planned: Planned) -> None:
    made, server = planned(draft())
    validate_plan(made, story())
    assert isinstance(GemmaPlanner("openai:x", base_url="http://127.0.0.1:1"), Planner)
    assert (made.planner, made.information) == ("gemma-st", ["story_text"])
    assert "".join(panel.source for panel in made.panels) == TEXT
    first = made.panels[0]
    assert first.source == "A letter came with bad news. Leo read it and wept. "
    assert first.prompt == "Leo sits over letter 0. Samantha gives him bread."
    assert first.characters == ["Leo", "Samantha"]
    assert (first.links[0].phrase, first.shot_size, first.place) == ("bad news", "close-up", "kitchen")
    assert (first.light, first.camera, first.contacts) == (
        "lamp light",
        "across the table",
        ["Leo's hand on the letter"],
    )
    assert (first.state[0].mood, first.gaze[0].not_at, first.causes_next) == ("sad", "Samantha", "Leo's tears")
    assert made.characters[0].anchor_prompt == "Leo: tall man with a black beard, alone, full body, plain background."
    change = made.transitions[0]
    assert (change.pair, change.moral_target, change.emotion) == ((1, 2), "kindness", None)
    assert (change.device, change.shown) == ("planted pivot", "The bread on the table is in Leo's hand.")
    assert made.visual is not None
    assert (made.visual.pivot, made.visual.props[0].name, made.visual.left_out) == (
        "letter",
        "letter",
        ["the laughter"],
    )
    assert made.questions == []
    assert len(server.bodies) == 1


def test_the_model_is_held_to_the_schema_by_its_own_sdk(planned: Planned) -> None:
    _, server = planned(draft())
    body = server.body(0)
    schema = json.dumps(body.get("output_config") or body["response_format"])
    assert '"first_sentence"' in schema
    assert '"transitions"' in schema
    assert '"coverage"' not in schema
    if server.provider == "openai":
        assert body["response_format"]["json_schema"]["strict"] is True
        assert not re.search(r'"(minItems|maxLength|minimum)"', schema)


def test_the_prompt_numbers_the_sentences_and_teaches_the_grammar(planned: Planned) -> None:
    _, server = planned(draft(), asked={"prompt_tokens": 77, "most_panels": 4})
    (asked,) = server.said(0)
    for told in ("[3] Samantha gave him bread.", "in 2 to 4 panels", "33 words at most", '"bad news"', *DEVICES):
        assert told in asked or told == '"bad news"'
    assert "will be asked" not in asked


def test_the_worked_example_is_what_is_asked_for() -> None:
    shape, switches = PlanShape(3, 3, (1, 3), asked=1), parts_without([])
    form = reply_schema(shape, switches)
    value = json.loads(load_prompt("planner/example").text)
    assert within(value, form) == value
    read, problems = read_draft(value)
    assert read is not None
    assert [*problems, *draft_problems(read, shape, switches)] == []
    prompt = plan_prompt(story(), parts_of(story(), PlanRequest(3), 10**6), 1, parts_without(ABOUT), PlanRequest(3))
    assert not re.search('"(?:cast|light|place|device|questions|coverage)":', prompt)


def test_a_record_brings_its_scenes_and_nothing_else(planned: Planned) -> None:
    record = load_story(str(ROOT / "examples" / "lion_and_mouse.json"))
    reply = draft((1,) * 5)
    for panel in reply["panels"]:
        del panel["first_sentence"]
    made, server = planned(reply, record=record, panels=4, asked={"most_panels": 6})
    assert made.information == ["story_text", "scene_count", "scene_text"]
    assert [panel.source for panel in made.panels] == [scene.scene_text for scene in record.scenes]
    (asked,) = server.said(0)
    assert record.scenes[2].scene_text in asked
    for hidden in (record.scenes[0].generation_prompt, record.transitions[0].causality, "visual_must_show"):
        assert hidden not in asked


def test_questions_are_planned_for_and_placed(planned: Planned) -> None:
    questions = tuple(
        Question(question_id=f"q{number}", question_type="causal", question=text, gold_answer="bad news")
        for number, text in enumerate(("Why does Leo weep?", "Who wrote?", "What is left?"))
    )
    rows = [{"question": 1, "panel": 1}, {"question": 3, "panel": 2}, {"question": 2, "panel": None}]
    made, server = planned({**draft(), "coverage": rows}, asked={"questions": questions})
    (asked,) = server.said(0)
    assert "1. Why does Leo weep? (bad news)" in asked
    assert [item.question_id for item in made.questions] == ["q0", "q1", "q2"]
    assert [item.target_transition for item in made.questions] == [(1, 2), None, (1, 2)]
    assert [item.evidence_scenes for item in made.questions] == [[1], [], [2]]
    assert made.visual is not None
    assert made.visual.unseen == ["Who wrote?"]
    assert made.information == ["story_text", "steering_questions"]


@pytest.mark.parametrize("switch", sorted(ABOUT))
def test_each_switch_removes_its_part(planned: Planned, switch: str) -> None:
    made, server = planned(draft(), without=(switch,), questions=True)
    whole, _ = planned(draft(), questions=True)
    first, visual = made.panels[0], made.visual
    gone: tuple[Any, Any] = {
        "sheets": (made.characters, []),
        "place": (first.place, ""),
        "links": (first.links, []),
        "shots": (first.shot_size, ""),
        "visual": ((visual, first.light, first.state, made.transitions[0].device), (None, "", [], "")),
        "questions": (made.questions, []),
    }[switch]
    assert gone[0] == gone[1]
    assert made != whole
    assert [item.gold_answer for item in whole.questions] == ["The news is bad"]
    (asked,) = server.said(0)
    named = {"sheets": '"cast":', "place": '"time_of_day"', "links": '"links"', "shots": '"shot_size"',
             "questions": '"questions":', "visual": '"device"'}[switch]  # fmt: skip
    assert named not in asked


def test_an_unknown_switch_is_refused() -> None:
    with pytest.raises(UsageError, match="no part 'colour'"):
        GemmaPlanner("openai:x", base_url="http://127.0.0.1:1", without=("colour",))


def test_what_surrounds_the_reply_is_left_out(planned: Planned) -> None:
    text = f"<think>{{hm}}</think>Here it is {{in full}}:\n```json\n{json.dumps(draft())}\n```\nGood {{luck}}."
    made, server = planned({"text": text})
    assert (len(made.panels), len(server.bodies)) == (2, 1)


def test_nulls_labels_and_articles_need_no_repair(planned: Planned) -> None:
    reply = draft()
    reply["cast"][0] |= {"name": "the man who reads", "in_text": None}
    for panel in reply["panels"]:
        panel |= {"characters": ["Man who reads", "letter"], "links": None, "camera": None, "time_of_day": "unclear"}
        panel["gaze"][0] |= {"who": "man who reads", "not_at": None}
        panel["state"][0]["name"] = "letter"
        panel["prompt"] += " He gives her a hug, and they smile."
    made, server = planned(reply)
    assert len(server.bodies) == 1
    assert made.panels[0].characters == ["the man who reads"]
    assert (made.panels[0].gaze[0].who, made.panels[0].time_of_day) == ("the man who reads", "")
    assert made.panels[0].prompt.endswith("He gives her a hug, and they smile.")


def changed(path: str, value: Any) -> dict[str, Any]:
    """The good reply with something else at a path."""
    shape = PlanShape(1, 9, (1, 9))
    made, wrong = mended(draft((1, 2, 3)), [{"path": path, "value": value}], reply_schema(shape, parts_without([])))
    assert not wrong
    return made


BAD: dict[str, tuple[Any, str, Any]] = {
    "panels": (draft((1, 2, 3, 4)), "panels: there are 4; there must be 3",
               [{"path": "panels[3]", "value": None}, {"path": "transitions[2]", "value": None}]),
    "transitions": (changed("transitions[1]", None), "3 panels have 2",
                    [{"path": "transitions[1]", "value": draft()["transitions"][0]}]),
    "stranger": (changed("panels[1].characters", ["Zorro"]), "panels[1].characters: 'Zorro' is not in the cast",
                 [{"path": "panels[1].characters[0]", "value": "Leo"}]),
    "twins": (changed("cast[1].name", "Leo"), "cast[1].name: 'Leo' is there already",
              [{"path": "cast[1].name", "value": "Samantha"}]),
    "words": (changed("panels[0].prompt", 'Leo holds a sign that says "HELP".'), "asks for words in the picture",
              [{"path": "panels[0].prompt", "value": "Leo cries for help."}]),
    "foreign": (changed("panels[2].prompt", "Лео читает письмо и плачет."), "panels[2].prompt: write it in English",
                [{"path": "panels[2].prompt", "value": "Leo weeps."}]),
    "order": (draft((1, 3, 2)), "panels[2].first_sentence: 2 is before the 3",
              [{"path": "visual.order", "value": "time"}]),
    "missing": (changed("panels[0].prompt", None), "panels[0].prompt: Field required",
                [{"path": "panels[0].prompt", "value": "Leo weeps."}]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_fault_is_mended_field_by_field(planned: Planned, name: str) -> None:
    bad, message, fixes = BAD[name]
    made, server = planned(bad, {"fixes": fixes}, panels=3)
    validate_plan(made, story())
    assert (len(made.panels), len(server.bodies)) == (3, 2)
    asked, wrote, repair = server.said(1)
    assert asked == server.said(0)[0]
    assert json.loads(wrote)["panels"]
    assert message in repair
    assert "fixes" in json.dumps(server.body(1).get("output_config") or server.body(1)["response_format"])
    assert "".join(panel.source for panel in made.panels) == TEXT or name == "order"


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_fault_that_stays_is_a_typed_failure(planned: Planned, name: str) -> None:
    bad, message, _ = BAD[name]
    with pytest.raises(ReplyError, match="not even after a repair") as caught:
        planned(bad, {"fixes": [{"path": "panels[77].nose", "value": 3}]}, panels=3)
    assert message in caught.value.message
    assert (caught.value.status, bool(caught.value.raw), bool(caught.value.hint)) == ("unparseable", True, True)
    assert len(vars(planned)["server"].bodies) == 3
    assert "panels[77].nose: no field has this path" in vars(planned)["server"].said(2)[2]


@pytest.mark.parametrize("text", ["Certainly! Here is your storyboard.", json.dumps(draft())[:200], '{"panels": []}'])
def test_what_is_no_plan_is_asked_for_again_whole(planned: Planned, text: str) -> None:
    made, server = planned({"text": text}, draft())
    assert (len(made.panels), len(server.bodies)) == (2, 2)
    assert "Write the whole plan" in server.said(1)[2]


SOFT: dict[str, tuple[str, Any, str]] = {
    "device": ("transitions[0].device", "", "transitions[0].device: '' is none of: cause in frame"),
    "unseen": ("transitions[1].shown", "A dragon burns castles.", "transitions[1].shown: what it speaks of"),
    "pivot": ("visual.pivot", "umbrella", "visual.pivot: 'umbrella' is seen in no panel before the last"),
    "light": ("panels[1].time_of_day", "night", "panels[1].light: it is the light of the panel before, but evening"),
    "stranger": ("panels[1].state[0].name", "the wolf", "panels[1].state: 'the wolf' is neither in the cast"),
    "twice": ("panels[1].prompt", draft()["panels"][0]["prompt"], "panels[1].prompt: it is the one before again"),
    "empty": ("panels[1].must_show", [], "panels[1].must_show: it is empty"),
}


@pytest.mark.parametrize("name", sorted(SOFT))
def test_what_only_makes_a_plan_worse_is_asked_about_once(planned: Planned, name: str) -> None:
    path, value, message = SOFT[name]
    bad = draft((1, 2, 3))
    place: Any = bad
    for step in re.findall(r"\w+", path)[:-1]:
        place = place[int(step) if step.isdigit() else step]
    place[path.rpartition(".")[2]] = value
    made, server = planned(bad, {"fixes": []}, panels=3)
    assert (len(made.panels), len(server.bodies)) == (3, 2)
    assert message in server.said(1)[2]


@pytest.mark.parametrize(
    "fine",
    [
        {"prompt": "A round balloon without letters shows an egg. The girl with the letters in her hand reads on."},
        {"prompt": "Leo reads a letter under a sign. Samantha stands by a page of music."},
        {"must_show": ["a thought cloud with an egg, struck out in red"]},
        {"place": "", "light": "", "time_of_day": "unclear"},
    ],
)
def test_what_is_no_fault_is_left_alone(planned: Planned, fine: dict[str, Any]) -> None:
    reply = draft()
    reply["panels"][0] |= fine
    made, server = planned(reply)
    assert len(server.bodies) == 1
    never = made.panels[0].negative_prompt
    assert ("speech bubbles" in never) == ("balloon" not in str(fine) and "cloud" not in str(fine))


def test_a_failed_repair_of_a_plan_that_can_be_drawn_does_no_harm(planned: Planned) -> None:
    bad = draft()
    bad["transitions"][0]["shown"] = ""
    stop = {"anthropic": "max_tokens", "openai": "length"}
    provider = vars(planned).get("provider", "openai")
    made, server = planned(bad, {"text": '{"fix', "stop": stop[provider]})
    assert (len(made.panels), len(server.bodies)) == (2, 2)


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ({"text": '{"tells', "stop": {"anthropic": "max_tokens", "openai": "length"}}, "truncated"),
        ({"text": "no", "stop": {"anthropic": "refusal", "openai": "content_filter"}}, "refused"),
    ],
)
def test_a_refusal_or_a_loop_to_the_limit_is_not_asked_again(
    planned: Planned, reply: dict[str, Any], status: str
) -> None:
    for provider, stop in reply["stop"].items():
        try:
            planned({**reply, "stop": stop})
        except ReplyError as error:
            if error.status == status:
                assert len(vars(planned)["server"].bodies) == 1
                assert vars(planned)["server"].provider == provider
                return
    pytest.fail("no typed failure")


def test_a_story_without_an_event_is_refused(planned: Planned) -> None:
    for empty in ({**draft(), "tells_events": False}, {"tells_events": False}):
        with pytest.raises(PlanError, match="tells of no event"):
            planned(empty)


def test_a_dead_server_and_a_wrong_key_are_errors_without_the_key(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = partial(client.Backoff, sleep=lambda seconds: None)
    monkeypatch.setattr("katha.models.client.Backoff", quiet)
    with pytest.raises(ModelError, match="transport_failed") as dead:
        planned({"text": "", "status": 500, "message": "sk-secret"})
    assert "sk-secret" not in str(dead.value)
    with pytest.raises(UsageError, match="refused the key"):
        planned({"text": "", "status": 401})


def test_a_server_without_schemas_is_told_in_words(planned: Planned) -> None:
    made, server = planned({"text": "", "status": 400, "message": "unknown response_format / output_config"}, draft())
    assert len(made.panels) == 2
    assert "It must satisfy this JSON schema" in server.said(1)[0]
    assert "response_format" not in server.body(1)
    assert "output_config" not in server.body(1)


def test_other_languages_get_english_prompts_and_say_who_is_meant(planned: Planned) -> None:
    text = "獅子が森で眠っていた。小さなねずみが鼻の上を走った。獅子は怒った。ねずみは逃げた。"
    reply = json.loads(json.dumps(draft()).replace("Leo", "Shishi"))
    reply["cast"][0] |= {"in_text": "獅子", "kind": "lion", "appearance": "big golden lion"}
    made, server = planned(reply, record=story(text))
    assert len(server.bodies) == 1
    assert made.characters[0].in_text == "獅子"
    assert "".join(panel.source for panel in made.panels) == text


def test_a_story_of_few_sentences_may_have_many_panels(planned: Planned) -> None:
    made, server = planned(draft((1, 1, 2)), record=story("Leo read the letter. Samantha gave him bread."), panels=3)
    assert len(server.bodies) == 1
    assert [panel.source for panel in made.panels] == ["Leo read the letter. ", "", "Samantha gave him bread."]
    assert made.panels[1].caption == "Leo read the letter."


def test_a_story_told_backwards_is_drawn_in_the_order_of_time(planned: Planned) -> None:
    reply = draft((4, 3, 1))
    reply["visual"]["order"] = "time"
    made, _ = planned(reply, panels=3)
    assert [panel.source for panel in made.panels] == [
        "They laughed.", "Samantha gave him bread. ", "A letter came with bad news. Leo read it and wept. ",
    ]  # fmt: skip


def _part_reply(number: int, body: dict[str, Any]) -> dict[str, Any]:
    """What a model would write for one part of a long story: as many panels and transitions as it is asked for."""
    asked = body["messages"][0]["content"]
    numbers = [int(found) for found in re.findall(r"^\[(\d+)\]", asked.partition("# An example")[0], re.MULTILINE)]
    count = int(re.search(r"in exactly (\d+) panels", asked)[1])  # type: ignore[index]
    step = len(numbers) // count
    reply = draft(tuple(numbers[at * step] for at in range(count)))
    reply["transitions"] = [draft()["transitions"][0]] * (count - 1 + ("The panels so far" in asked))
    reply["visual"]["left_out"] = [f"part {number}"]
    if "The cast so far" in asked:
        reply["cast"] = []
    return {"text": json.dumps(reply)}


def chapter(words: int) -> str:
    lines = [
        f"On day {number} Leo walked to Samantha and gave her letter number {number}." for number in range(words // 13)
    ]
    told = [" ".join(lines[at : at + 9]) for at in range(0, len(lines), 9)]
    return "\n\n".join(
        f"{'Chapter two' if at == len(told) // 2 else ''}\n\n{one}" for at, one in enumerate(told)
    ).strip()


def test_only_what_no_model_could_read_is_cut_without_losing_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    text = chapter(20_000)
    assert len(text.split()) > 19_000
    with serving("openai", _part_reply) as server:
        planner = GemmaPlanner("openai:gpt-4o", base_url=server.url)
        monkeypatch.setattr("katha.planners.gemma_st._context", lambda model: 32_000)
        made = planner.plan(story(text), PlanRequest(panels=14))
        vars(planner._model)["_client"].close()
    validate_plan(made, story(text))
    assert "".join(panel.source for panel in made.panels) == text
    assert [item.pair for item in made.transitions] == [(at, at + 1) for at in range(1, 14)]
    assert [item.name for item in made.characters] == ["Leo", "Samantha"]
    assert made.visual is not None
    assert made.visual.left_out == ["part 0", "part 1"]
    assert len(server.bodies) == 2
    first, second = server.said(0)[0], server.said(1)[0]
    assert "This is part 2 of 2" in second
    for told in (
        "7. Leo sits over letter 6.",
        "tall man with a black beard",
        "the blue letter",
        "first of all one from",
    ):
        assert told in second
    assert "\n] Chapter two" not in first
    assert re.search(r"^\[\d+\] Chapter two", second.partition("On day")[0], re.MULTILINE)
    assert len(re.findall(r"^\d+\. On day", first, re.MULTILINE)) in range(8, 13)


@pytest.mark.parametrize("panels", [2, 5, 7, 13, 24])
@pytest.mark.parametrize("letters", [900, 5_000, 10**6])
def test_parts_share_out_every_panel_and_every_sentence(panels: int, letters: int) -> None:
    text = "".join(f"Leo sees {number}. " + ("x " * 40 if number % 7 == 0 else "") for number in range(60))
    if -(-len(text) // letters) > panels:
        with pytest.raises(PlanError, match="too many for"):
            parts_of(story(text), PlanRequest(panels=panels), letters)
        return
    parts = parts_of(story(text), PlanRequest(panels=panels, most_panels=panels + 3), letters)
    assert "".join("".join(part.sentences) for part in parts) == story(text).story_text
    assert sum(part.shape.least for part in parts) == panels
    assert sum(part.shape.most for part in parts) == panels + 3
    assert all(part.shape.least > 0 for part in parts)
    assert [part.shape.joined for part in parts] == [False] + [True] * (len(parts) - 1)


def test_scripts_have_their_own_number_of_letters_a_token() -> None:
    assert [letters_for(text, 1000) for text in ("A lion.", "Лев спит.", "獅子が森で眠っていた。")] == [2400, 1800, 600]


FORM = reply_schema(PlanShape(2, 6, (1, 9)), parts_without([]))
PATHS = st.text("abcdehlnoprsty_[]0123456789.", max_size=30) | st.sampled_from(
    ["panels[0].prompt", "panels[1].must_show", "panels[1].must_show[0]", "panels[2].gaze", "cast[0]", "visual.pivot",
     "transitions[0].emotion", "panels[0].gaze[0].at", "panels[0].first_sentence", "props", "panels", "fixes[0]"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["who", "at", "name"]), inner),
    max_leaves=5,
)


@given(st.lists(st.fixed_dictionaries({"path": PATHS, "value": VALUES}), max_size=6))
def test_fixes_change_what_they_name_and_nothing_else(fixes: list[dict[str, Any]]) -> None:
    before = draft((1, 2, 3))
    made, wrong = mended(before, fixes, FORM)
    assert before == draft((1, 2, 3))
    assert set(made) == set(before)
    assert len(wrong) <= len(fixes)
    roots = {re.match(r"\w*", fix["path"])[0] for fix in fixes}  # type: ignore[index]
    assert all(made[name] == before[name] for name in before if name not in roots)
    if len(fixes) == len(wrong):
        assert made == before
    again, _ = mended(made, [], FORM)
    assert again == made


@given(st.sampled_from([0, 1, 2]), st.text(max_size=40), st.lists(st.text(min_size=1, max_size=9), max_size=4))
def test_a_fix_is_read_back_from_its_path(at: int, text: str, items: list[str]) -> None:
    fixes = [{"path": f"panels[{at}].prompt", "value": text}, {"path": f"panels[{at}].must_show", "value": items}]
    made, wrong = mended(draft((1, 2, 3)), fixes, FORM)
    expected = draft((1, 2, 3))
    expected["panels"][at] |= {"prompt": text, "must_show": items}
    assert (made, wrong) == (expected, [])


def test_fixes_add_and_take_away_items_and_are_typed() -> None:
    fixes: list[dict[str, Any]] = [
        {"path": "panels[0].must_show[0]", "value": None},
        {"path": "panels[0].must_show[2]", "value": "tears"},
        {"path": "panels[0].must_show[9]", "value": "tears"},
        {"path": "panels[0].first_sentence", "value": "two"},
        {"path": "panels[1].time_of_day", "value": "teatime"},
        {"path": "transitions[0].emotion", "value": "sad to glad"},
    ]
    made, wrong = mended(draft(), fixes, FORM)
    assert made["panels"][0]["must_show"] == ["bread", "tears"]
    assert made["transitions"][0]["emotion"] == "sad to glad"
    assert [item.path for item in wrong] == [fix["path"] for fix in fixes[2:5]]
    assert "takes a whole number" in wrong[1].said
    assert "afternoon" in wrong[2].said
    assert mended(draft(), "nothing", FORM) == (draft(), [])


def test_panels_are_a_number_or_a_range() -> None:
    ranged = resolve({"panels": "4-8"})
    assert isinstance(ranged.panels, Span)
    assert (int(ranged.panels), ranged.panels.most, f"{ranged.panels}") == (4, 8, "4-8")
    assert ranged.model_dump()["panels"] == "4-8"
    assert Settings.model_validate_json(ranged.model_dump_json()) == ranged == resolve({"style": ""}, base=ranged)
    assert ranged != resolve({"panels": 4})
    assert protocol_of_config(ranged)["panels"] == "4-8"
    assert [resolve({"panels": given}).panels for given in (6, "6", "6-6", None)] == [6, 6, 6, None]
    assert [allows(ranged.panels, count) for count in (3, 4, 8, 9)] == [False, True, True, False]
    for wrong, said in (
        ("8-4", "from fewer panels to more"),
        ("1-3", "greater than"),
        ("2-99", "less than"),
        ("x", "integer"),
    ):
        with pytest.raises(UsageError, match=said):
            resolve({"panels": wrong})


@pytest.mark.parametrize(
    ("given", "said"), [(None, "in exactly 5 panels"), ("2-4", "in 2 to 4 panels"), (3, "exactly 3")]
)
def test_the_model_chooses_within_the_range(monkeypatch: pytest.MonkeyPatch, given: Any, said: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr("katha.agents.context.story_reader", None)
    starts = (1, 2, 3, 3, 4) if given is None else (1, 2, 4)
    with serving("openai", lambda number, body: {"text": json.dumps(draft(starts))}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        made = make_plan(
            story(),
            resolve({"planner": "gemma-st:openai:gpt-4o", "planner_options": {"writes": False}, "panels": given}),
        )
        assert said in server.said(0)[0]
    assert len(made.panels) == len(starts)


def test_other_planners_stay_within_the_range() -> None:
    for asked, count in (("3-4", 4), ("2-3", 3)):
        assert len(make_plan(story(), resolve({"panels": asked})).panels) == count
    record = load_story(str(ROOT / "examples" / "lion_and_mouse.json"))
    assert len(make_plan(record, resolve({"panels": "4-8"})).panels) == 5
    check_scene_count(record, Span(4, 8))
    with pytest.raises(RecordError, match="5 scenes where 6-8 panels"):
        check_scene_count(record, Span(6, 8))
    with pytest.raises(PlanError, match="5 panels, the run 2-3"):
        check_plan(make_plan(record, Settings()), record, resolve({"panels": "2-3"}))


def test_strict_schemas_keep_fields_that_are_called_like_keywords() -> None:
    schema = {"type": "object", "properties": {"pattern": {"type": "string", "pattern": "a", "maxLength": 3}}}
    assert strict_schema(schema) == {"type": "object", "properties": {"pattern": {"type": "string"}}}


def test_options_belong_to_their_kind_of_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no option 'adapter'"):
        GemmaPlanner("openai:gpt-4o", base_url="http://127.0.0.1:1", adapter=tmp_path)
    with pytest.raises(KathaError, match="no option 'base_url'"):
        GemmaPlanner("local:x/y", base_url="http://127.0.0.1:1")
    with pytest.raises(UsageError, match="needs a name"):
        GemmaPlanner("openai")


def test_a_failed_plan_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from katha.agents.run import run_story

    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    with serving("openai", lambda number, body: {"text": "Certainly!"}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        config = Settings(planner="gemma-st:openai:gpt-4o", planner_options={"writes": False}, panels=2)
        with pytest.raises(ReplyError, match=r"planner_reply\.txt"):
            run_story(story(), config, tmp_path / "out")
        assert (tmp_path / "out" / "planner_reply.txt").read_text() == "Certainly!"
    with serving("openai", lambda number, body: {"text": json.dumps(draft())}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert make_plan(story(), config).planner == "gemma-st"


def test_it_goes_through_a_whole_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    cli_child.install(monkeypatch)
    (tmp_path / "letter.txt").write_text(TEXT)
    words = ["run", str(tmp_path / "letter.txt"), "--planner", "gemma-st:openai:gpt-4o",
             "--planner-option", "writes=false", "--panels", "2-3", "--seeds", "42",
             "--renderer", "block", "--judge", "pixel", "--size", "96x64", "--out", str(tmp_path / "out")]  # fmt: skip
    with serving("openai", lambda number, body: {"text": json.dumps(draft())}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = CliRunner().invoke(
            app,
            [*words, "--planner-option", "without=shots", "--planner-option", "questions=true"],
            catch_exceptions=False,
        )
    assert done.exit_code == 0
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["planner"] == "gemma-st"
    kept = StoryRecord.model_validate_json((tmp_path / "out" / "story.jsonl").read_text())
    assert [item.gold_answer for item in kept.recoverability_questions] == ["The news is bad"]
    assert "shot_size" not in server.said(0)[0]


def test_plans_are_paid_from_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    with serving("openai", lambda number, body: {"text": json.dumps(draft())}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        config = Settings(planner="gemma-st:openai:gpt-4o", planner_options={"writes": False}, panels=2)
        with pytest.raises(BudgetError, match="used up"):
            load_plugins(config, Budget(max_calls=0)).planner.plan(story(), PlanRequest(panels=2))
        with pytest.raises(BudgetError, match="used up"):
            load_plugins(config, Budget(max_cost=0.000001)).planner.plan(story(), PlanRequest(panels=2))
        assert server.number == 0
        paid = Budget(max_cost=1.0)
        load_plugins(config, paid).planner.plan(story(), PlanRequest(panels=2))
        assert (server.number, paid.calls) == (1, 1)
        assert 0 < paid.cost < 1
        unknown = config.model_copy(update={"planner": "gemma-st:openai:nobody-knows"})
        with pytest.raises(UsageError, match="price of the planner"):
            load_plugins(unknown, Budget(max_cost=1.0))


def test_a_dry_run_prices_the_plan_and_its_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for writes, calls in ((True, 9), (False, 1)):
        config = Settings(planner="gemma-st:openai:gpt-4o", planner_options={"writes": writes})
        (need,) = (one for one in run_needs([story()], config).needs if one.kind == "plans")
        assert need.calls == calls
        assert need.cost is not None
        assert need.cost > 0.01
