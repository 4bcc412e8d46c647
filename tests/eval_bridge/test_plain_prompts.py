"""Plain prompts word by word: through the real SDKs against servers on this machine, and through a model in memory."""

from __future__ import annotations

import math
from base64 import b64encode
from pathlib import Path

import pytest
import torch
from api_server import KEY, serving
from tiny_vlm import build, pictures

from katha.eval_bridge.judges.anthropic import AnthropicJudge
from katha.eval_bridge.judges.local import LocalJudge
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine, PlainQuestion, Retry
from katha.eval_bridge.metrics.context import share_of
from katha.eval_bridge.packets.packets import make_packet
from katha.pictures import decode
from katha.protocols import Evidence, PlainPrompt, PromptExample
from katha.store import Store

EVIDENCE = Evidence("image", (b"png-one", b"png-two"))
PROMPT = PlainPrompt(
    ("First:", 0, "Then:", 1, "Is it the same fox?"),
    examples=(PromptExample((1, "Is it a fox?"), "No"),),
    system="Be brief.",
    words=("Yes", "yes", "No"),
    temperature=0.5,
    top_p=0.2,
    max_tokens=7,
)


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def test_openai_gets_the_words_as_they_stand_and_gives_probabilities() -> None:
    step = {
        "text": "Yes",
        "words": {"Yes": math.log(0.5), " Yes": math.log(0.2), "No": math.log(0.1)},
        "stop": "length",
    }
    with serving("openai", lambda number, body: step) as server:
        judge = OpenAIJudge("gpt-4o-2024-11-20", base_url=server.url)
        (reply,) = judge.ask_plainly(EVIDENCE, [PROMPT])
        judge.close()
        body = server.body(0)
    one, two = (f"data:image/png;base64,{b64encode(data).decode()}" for data in EVIDENCE.images)
    assert [turn["role"] for turn in body["messages"]] == ["system", "user", "assistant", "user"]
    shown = [part.get("text") or part["image_url"]["url"] for part in body["messages"][3]["content"]]
    assert shown == ["First:", one, "Then:", two, "Is it the same fox?"]
    assert body["messages"][1]["content"][0]["image_url"]["url"] == two
    assert (body["logprobs"], body["top_logprobs"], body["temperature"], body["top_p"]) == (True, 20, 0.5, 0.2)
    assert "response_format" not in body
    assert reply.status == "ok", "the first token of a reply that was cut is there"
    assert reply.usage["probabilities"] == {"Yes": pytest.approx(0.7), "yes": 0.0, "No": pytest.approx(0.1)}


def test_a_server_without_probabilities_gives_none_and_a_cut_reply_is_typed() -> None:
    steps = [{"text": "Yes."}, {"text": "Yes, beca", "stop": "length"}, {"text": " "}]
    with serving("openai", lambda number, body: steps[number]) as server:
        judge = OpenAIJudge("gpt-4o-2024-11-20", base_url=server.url)
        replies = list(judge.ask_plainly(EVIDENCE, [PROMPT] * 3))
        judge.close()
    assert [(reply.status, reply.answer) for reply in replies] == [
        *(("ok", "Yes."), ("truncated", None), ("unparseable", None)),
    ]
    assert "probabilities" not in replies[0].usage


def test_anthropic_has_the_system_s_words_beside_and_no_probabilities() -> None:
    with serving("anthropic", lambda number, body: {"text": "No"}) as server:
        judge = AnthropicJudge("claude-haiku-4-5-20251001", base_url=server.url)
        (reply,) = judge.ask_plainly(EVIDENCE, [PROMPT])
        judge.close()
        body = server.body(0)
    assert body["system"] == "Be brief."
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    assert [part["type"] for part in body["messages"][2]["content"]] == ["text", "image", "text", "image", "text"]
    assert (reply.answer, "probabilities" in reply.usage) == ("No", False)


def test_the_engine_keeps_plain_answers_by_prompt_picture_and_draw(tmp_path: Path) -> None:
    packet, evidence = make_packet("fox", "image", pictures()[:1])
    prompts = [PlainPrompt((0, "Rate it."), sample=sample, temperature=1.0) for sample in (0, 1, 0)]
    questions = [PlainQuestion(f"rate/{at}", prompt) for at, prompt in enumerate(prompts)]
    with serving("openai", lambda number, body: {"text": str(number)}) as server, Store(tmp_path) as store:
        for _ in range(2):
            judge = OpenAIJudge("gpt-4o-2024-11-20", base_url=server.url, concurrency=1)
            engine = JudgingEngine({"judge": judge}, store, retry=Retry(first_wait=0.0))
            answers = engine.ask("judge", Inquiry(packet, evidence, questions, "mine"))
            judge.close()
            assert [answer.answer for answer in answers] == ["0", "1", "0"]
            assert [answer.question_id for answer in answers] == ["rate/0", "rate/1", "rate/2"]
        assert server.number == 2


def test_a_model_in_memory_gives_the_probabilities_of_its_own_logits(tmp_path: Path) -> None:
    judge = LocalJudge(str(build("smolvlm", tmp_path / "model")), device="cpu")
    evidence = Evidence("image", pictures()[:2])
    prompt = PlainPrompt((0, "Is it", 1, "a lion?"), words=("lion", "mouse"), max_tokens=3)
    (reply,) = judge.ask_plainly(evidence, [prompt])
    loaded = judge._load().loaded
    given = reply.usage["probabilities"]
    content = [
        {"type": "image", "image": part} if not isinstance(part, str) else {"type": "text", "text": part}
        for part in (_decoded(evidence, 0), "Is it", _decoded(evidence, 1), "a lion?")
    ]
    with torch.inference_mode():
        inputs = loaded.full_inputs([{"role": "user", "content": content}])
        shares = torch.softmax(loaded.model(**inputs).logits[0, -1].float(), dim=-1)
    for word in prompt.words:
        firsts = {loaded.tokenizer(form, add_special_tokens=False)["input_ids"][0] for form in (word, f" {word}")}
        assert given[word] == pytest.approx(float(sum(shares[one] for one in firsts)), abs=1e-5)
    (again,) = judge.ask_plainly(evidence, [prompt])
    assert again.usage["probabilities"] == given
    drawn = [
        PlainPrompt((0, "Tell."), temperature=1.0, max_tokens=8, sample=sample, words=("lion",)) for sample in (0, 1, 0)
    ]
    texts = [one.raw for one in judge.ask_plainly(evidence, drawn)]
    assert texts[0] == texts[2] != texts[1]
    judge.close()


def _decoded(evidence: Evidence, at: int) -> object:
    return decode(evidence.images[at])


def test_a_share_is_of_the_words_that_are_asked_for(tmp_path: Path) -> None:
    packet, evidence = make_packet("fox", "image", pictures()[:1])
    step = {"text": "Yes", "words": {"Yes": math.log(0.75), "no": math.log(0.25)}}
    with serving("openai", lambda number, body: step) as server:
        judge = OpenAIJudge("gpt-4o-2024-11-20", base_url=server.url)
        engine = JudgingEngine({"judge": judge}, None)
        asked = PlainQuestion("q", PlainPrompt((0, "Same?"), words=("Yes", "yes", "No", "no")))
        (answer,) = engine.ask("judge", Inquiry(packet, evidence, [asked], "mine"))
        judge.close()
    assert share_of(answer, ("Yes", "yes")) == pytest.approx(0.75)
    assert share_of(answer, ("No", "no")) == pytest.approx(0.25)
