"""`gemma-st` over the real SDKs: what is asked, what is made of a reply, and everything that a model can get wrong."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cli_child
import pytest
from api_server import Server, serving
from typer.testing import CliRunner

from katha.agents.context import make_plan
from katha.app.cli.main import app
from katha.config import Settings
from katha.errors import KathaError, ModelError, PlanError, ReplyError, UsageError
from katha.models import client
from katha.models.base import strict_schema
from katha.planners.base import ABOUT, parts_without, tokens_of, validate_plan
from katha.planners.draft import Shape, reply_schema, windows_of
from katha.planners.gemma_st import GemmaPlanner
from katha.protocols import Planner, PlanRequest
from katha.registry import default_registry
from katha.schema import Plan, StoryRecord
from katha.stories import load_story

ROOT = Path(__file__).parents[2]
TEXT = "A letter came with bad news. Leo read it and wept. Samantha gave him bread. They laughed."
MODELS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-4o"}


def story(text: str = TEXT, **fields: Any) -> StoryRecord:
    return StoryRecord.model_validate({"story_id": "s", "title": "The Letter", "story_text": text, **fields})


def draft(starts: tuple[int, ...] = (1, 3)) -> dict[str, Any]:
    """A reply that can be used, with a panel for each of `starts`."""
    panel = {
        "place": "kitchen", "time_of_day": "evening",
        "links": [{"phrase": "bad news", "visible": "a sad face over an open letter"}],
        "shot_size": "close-up", "shot_angle": "eye level", "characters": ["Leo", "Samantha"],
        "must_show": ["an open letter"], "prompt": "Leo sits at a table. Samantha gives bread to the man.",
    }  # fmt: skip
    asked = {
        "dimension": "causal",
        "question": "Why does Leo weep?",
        "answer": "The news is bad",
        "accepted": ["bad news"],
    }
    transition = {
        "transition_type": "cause_effect", "action": "Samantha gives Leo bread.", "causality": "Leo is sad.",
        "intention": "Samantha wants to comfort Leo.", "emotion": "Leo changes from sad to happy.",
        "consequence": "Leo laughs.", "moral_target": "kindness", "questions": [asked],
    }  # fmt: skip
    return {
        "tells_events": True,
        "characters": [
            {"name": "Leo", "kind": "man", "appearance": "a tall man in a blue coat"},
            {"name": "Samantha", "kind": "woman", "appearance": "a woman with red hair"},
        ],
        "panels": [{"first_sentence": start, **panel} for start in starts],
        "transitions": [transition] * (len(starts) - 1),
    }


def without(value: dict[str, Any], switches: frozenset[str]) -> dict[str, Any]:
    """The reply as a model held to the schema of `switches` would have written it."""
    schema = reply_schema(Shape(2, 1, (1, 4)), switches)

    def keep(item: Any, rule: dict[str, Any]) -> Any:
        if rule.get("type") == "object":
            return {name: keep(item[name], part) for name, part in rule["properties"].items()}
        return [keep(one, rule["items"]) for one in item] if rule.get("type") == "array" else item

    kept: dict[str, Any] = keep(value, schema)
    return kept


Planned = Callable[..., tuple[Plan, Server]]


@pytest.fixture(params=sorted(MODELS))
def planned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Plan a story with a model that answers `replies` in turn."""
    provider = str(request.param)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    def plan(*replies: Any, record: StoryRecord | None = None, panels: int = 2, tokens: int | None = None,
             **options: Any) -> tuple[Plan, Server]:  # fmt: skip
        steps = [item if isinstance(item, dict) and "text" in item else {"text": json.dumps(item)} for item in replies]
        with serving(provider, lambda number, body: steps[min(number, len(steps) - 1)]) as server:
            name = f"gemma-st:{provider}:{MODELS[provider]}"
            planner = default_registry("planners").create(name, base_url=server.url, **options)
            given = record or story()
            try:
                return planner.plan(given, PlanRequest(panels=panels, prompt_tokens=tokens)), server
            finally:
                client = vars(planner._model).get("_client")
                if client is not None:
                    client.close()
                vars(plan)["server"] = server

    return plan


def test_a_reply_becomes_a_plan_that_holds_together(planned: Planned) -> None:
    made, server = planned(draft())
    validate_plan(made, story())
    assert isinstance(GemmaPlanner("openai:x", base_url="http://127.0.0.1:1"), Planner)
    assert (made.planner, made.information) == ("gemma-st", ["story_text"])
    assert "".join(panel.source for panel in made.panels) == TEXT
    assert made.panels[0].source == "A letter came with bad news. Leo read it and wept. "
    first = made.panels[0]
    assert first.prompt == (
        "Close-up. Kitchen, evening. Leo, the tall man in a blue coat, sits at a table. Samantha, the woman with red "
        "hair, gives bread to the man. An open letter. A sad face over an open letter."
    )
    assert first.characters == ["Leo", "Samantha"]
    assert (first.links[0].phrase, first.shot_size, first.place) == ("bad news", "close-up", "kitchen")
    assert made.characters[0].anchor_prompt == "A tall man in a blue coat, alone, full body, plain background."
    assert made.transitions[0].pair == (1, 2)
    assert made.transitions[0].moral_target == "kindness"
    asked = made.questions[0]
    assert (asked.gold_answer, asked.accepted_answers) == ("The news is bad", ["The news is bad", "bad news"])
    assert asked.target_transition == (1, 2)
    assert len(server.bodies) == 1


def test_the_model_is_held_to_the_schema_by_its_own_sdk(planned: Planned) -> None:
    _, server = planned(draft())
    body = server.body(0)
    schema = json.dumps(body.get("output_config") or body["response_format"])
    assert '"first_sentence"' in schema
    assert '"transitions"' in schema
    if server.provider == "openai":
        assert body["response_format"]["json_schema"]["strict"] is True
        assert not re.search(r'"(minItems|maxLength|minimum)"', schema)


def test_the_prompt_numbers_the_sentences_and_says_the_rules(planned: Planned) -> None:
    _, server = planned(draft(), tokens=77)
    (asked,) = server.said(0)
    assert "[3] Samantha gave him bread." in asked
    for rule in (
        "No pronouns",
        "speech bubbles",
        "33 words at most",
        '"bad news"',
        "first scene begins with sentence 1",
    ):
        assert rule in asked


def test_a_record_brings_its_scenes_and_nothing_else(planned: Planned) -> None:
    record = load_story(str(ROOT / "examples" / "lion_and_mouse.json"))
    reply = draft((1,) * 5)
    for panel in reply["panels"]:
        del panel["first_sentence"]
    reply["characters"] = [{"name": "lion", "kind": "lion", "appearance": "a big lion"}]
    for panel in reply["panels"]:
        panel["characters"] = ["lion"]
    made, server = planned(reply, record=record, panels=5)
    assert made.information == ["story_text", "scene_count", "scene_text"]
    assert [panel.source for panel in made.panels] == [scene.scene_text for scene in record.scenes]
    (asked,) = server.said(0)
    assert record.scenes[2].scene_text in asked
    for hidden in (record.scenes[0].generation_prompt, record.transitions[0].causality, "visual_must_show"):
        assert hidden not in asked


def test_prompts_fit_the_renderer(planned: Planned) -> None:
    made, _ = planned(draft(), tokens=20)
    assert all(0 < tokens_of(panel.prompt) <= 20 for panel in made.panels)
    assert made.panels[0].prompt.startswith("Leo")


@pytest.mark.parametrize("switch", sorted(ABOUT))
def test_each_switch_removes_its_part(planned: Planned, switch: str) -> None:
    switches = parts_without([switch])
    made, server = planned(without(draft(), switches), without=(switch,))
    whole, _ = planned(draft())
    first, other = made.panels[0], whole.panels[0]
    gone = {
        "sheets": (made.characters, []),
        "look": ("tall man in a blue coat" in first.prompt, False),
        "place": ((first.place, "Kitchen" in first.prompt), ("", False)),
        "links": ((first.links, "sad face" in first.prompt), ([], False)),
        "shots": ((first.shot_size, "Close-up" in first.prompt), ("", False)),
        "questions": (made.questions, []),
    }[switch]
    assert gone[0] == gone[1]
    assert made != whole
    assert other.prompt
    (asked,) = server.said(0)
    named = {"sheets": '"characters":', "place": '"time_of_day"', "links": '"links"', "shots": '"shot_size"',
             "questions": '"questions":'}.get(switch)  # fmt: skip
    assert named is None or named not in asked


def test_an_unknown_switch_is_refused() -> None:
    with pytest.raises(UsageError, match="no part 'colour'"):
        GemmaPlanner("openai:x", base_url="http://127.0.0.1:1", without=("colour",))


def changed(**fields: Any) -> dict[str, Any]:
    """The good reply with something else in its first panel, or at its top."""
    value = copy.deepcopy(draft())
    for name, given in fields.items():
        (value["panels"][0] if name in value["panels"][0] else value)[name] = given
    return value


def with_cast(name: str) -> dict[str, Any]:
    """The good reply with one character more."""
    value = draft()
    return {**value, "characters": [*value["characters"], {"name": name, "kind": "man", "appearance": "a man"}]}


BAD: dict[str, tuple[Any, str]] = {
    "prose": ({"text": "Certainly! Here is your storyboard."}, "not one whole JSON object"),
    "half": ({"text": json.dumps(draft())[:200]}, "not one whole JSON object"),
    "panels": (draft((1, 2, 3)), "There are 3 panels; there must be 2"),
    "invented": (with_cast("Zorro"), "'Zorro' is not in the story"),
    "stranger": (changed(characters=["Zorro"]), "'Zorro' is not among the characters"),
    "pronoun": (changed(prompt="He weeps over the letter."), "says 'He'"),
    "her": (changed(prompt="Samantha gives her bread."), "says 'her'"),
    "words": (changed(prompt="Leo holds a sign that says HELP."), "asks for words"),
    "foreign": (changed(prompt="Лео читает письмо и плачет."), "must be in English"),
    "order": (draft((1, 9)), "must rise from 1 to at most 4"),
    "lost": (draft((2, 3)), "must rise from 1"),
    "missing": ({"text": json.dumps({"tells_events": True})}, "Field panels"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_bad_reply_is_repaired_once_with_what_is_wrong(planned: Planned, name: str) -> None:
    bad, message = BAD[name]
    made, server = planned(bad, draft())
    assert len(made.panels) == 2
    assert len(server.bodies) == 2
    asked, wrote, repair = server.said(1)
    assert asked == server.said(0)[0]
    assert wrote
    assert message in repair


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_second_bad_reply_is_a_typed_failure(planned: Planned, name: str) -> None:
    bad, message = BAD[name]
    with pytest.raises(ReplyError, match="not even after a repair") as caught:
        planned(bad)
    assert message in caught.value.message
    assert (caught.value.status, bool(caught.value.raw), bool(caught.value.hint)) == ("unparseable", True, True)
    assert len(vars(planned)["server"].bodies) == 2


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
    empty = {
        "tells_events": False,
        "characters": [],
        "panels": draft()["panels"],
        "transitions": draft()["transitions"],
    }
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


def test_other_languages_keep_their_names_and_get_english_prompts(planned: Planned) -> None:
    text = "獅子が森で眠っていた。小さなねずみが鼻の上を走った。獅子は怒った。ねずみは逃げた。"
    reply = draft()
    reply["characters"] = [{"name": "獅子", "kind": "lion", "appearance": "a big golden lion"}]
    for panel in reply["panels"]:
        panel |= {"characters": ["獅子"], "prompt": "A lion sleeps under a tree."}
    reply["transitions"][0]["action"] = "獅子は怒った。"
    made, _ = planned(reply, record=story(text))
    assert made.panels[0].prompt.startswith("Close-up. Kitchen, evening. The big golden lion sleeps")
    assert "".join(panel.source for panel in made.panels) == text
    assert made.transitions[0].action == "獅子は怒った。"


def _window_reply(number: int, body: dict[str, Any]) -> dict[str, Any]:
    """What a model would write for one window of a long story: as many panels and transitions as it is asked for."""
    asked = body["messages"][0]["content"]
    numbers = [int(found) for found in re.findall(r"^\[(\d+)\]", asked, re.MULTILINE)]
    count = int(re.search(r"Divide them into (\d+) scenes", asked)[1])  # type: ignore[index]
    wanted = int(re.search(r'"transitions": (\d+) in order', asked)[1])  # type: ignore[index]
    step = len(numbers) // count
    reply = draft(tuple(numbers[at * step] for at in range(count)))
    reply["transitions"] = [draft()["transitions"][0]] * wanted
    if "already drawn" in asked:
        reply["characters"] = []
    return {"text": json.dumps(reply)}


def chapter(words: int) -> str:
    lines = [
        f"On day {number} Leo walked to Samantha and gave her letter number {number}." for number in range(words // 13)
    ]
    return "\n\n".join(" ".join(lines[at : at + 9]) for at in range(0, len(lines), 9))


def test_a_long_chapter_is_split_without_losing_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    text = chapter(20_000)
    assert len(text.split()) > 19_000
    with serving("openai", _window_reply) as server:
        planner = GemmaPlanner("openai:gpt-4o", base_url=server.url)
        made = planner.plan(story(text), PlanRequest(panels=14))
        vars(planner._model)["_client"].close()
    validate_plan(made, story(text))
    assert "".join(panel.source for panel in made.panels) == text
    assert [item.pair for item in made.transitions] == [(at, at + 1) for at in range(1, 14)]
    assert [item.name for item in made.characters] == ["Leo", "Samantha"]
    assert len(server.bodies) == 4
    assert "This is part 2 of 4" in server.said(1)[0]
    assert "a tall man in a blue coat" in server.said(1)[0]
    assert "The picture before this part shows: Close-up. Kitchen" in server.said(1)[0]


@pytest.mark.parametrize("panels", [2, 5, 7, 13, 24])
@pytest.mark.parametrize("sentences", [24, 25, 400])
def test_windows_share_out_every_panel_and_every_sentence(panels: int, sentences: int) -> None:
    text = "".join(f"Leo sees {number}. " + ("x " * 400 if number % 7 == 0 else "") for number in range(sentences))
    windows = windows_of(story(text), panels)
    assert "".join("".join(window.sentences) for window in windows) == story(text).story_text
    assert [index for window in windows for index in window.panels] == list(range(1, panels + 1))
    assert all(len(window.sentences) >= len(window.panels) > 0 for window in windows)
    assert [window.joined for window in windows] == [False] + [True] * (len(windows) - 1)


def test_too_few_sentences_are_said(planned: Planned) -> None:
    with pytest.raises(PlanError, match="4 sentences, too few for 9 panels"):
        planned(draft(), panels=9)


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
        config = Settings(planner="gemma-st:openai:gpt-4o", panels=2)
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
    words = ["run", str(tmp_path / "letter.txt"), "--planner", "gemma-st:openai:gpt-4o", "--panels", "2",
             "--seeds", "42",
             "--renderer", "block", "--judge", "pixel", "--size", "96x64", "--out", str(tmp_path / "out")]  # fmt: skip
    with serving("openai", lambda number, body: {"text": json.dumps(draft())}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        done = CliRunner().invoke(app, [*words, "--planner-option", "without=shots"], catch_exceptions=False)
    assert done.exit_code == 0
    assert json.loads((tmp_path / "out" / "plan.json").read_text())["planner"] == "gemma-st"
    kept = StoryRecord.model_validate_json((tmp_path / "out" / "story.jsonl").read_text())
    assert [item.gold_answer for item in kept.recoverability_questions] == ["The news is bad"]
    assert "shot_size" not in server.said(0)[0]
