"""`openai:` against a real server of the OpenAI protocol: `transformers serve` over a tiny model on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_vlm import STORY, build, pictures

from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.packets.instructions import judge_prompt
from katha.eval_bridge.packets.packets import make_packet
from katha.protocols import Evidence, JudgePrompt
from katha.schema import Question

WAIT = 240.0


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=5) as reply:
            return bool(reply.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("qwen2_5_vl", tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    """The real console script in a process of its own."""
    port = _free_port()
    script = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
    words = ["serve", str(model), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    child = subprocess.Popen([sys.executable, "-c", script, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    address, tick = f"http://127.0.0.1:{port}", threading.Event()
    try:
        for _ in range(int(WAIT / 0.2)):
            if child.poll() is not None or _answers(address):
                break
            tick.wait(0.2)
        assert child.poll() is None, child.communicate()[0].decode()[-2000:]
        yield f"{address}/v1"
    finally:
        child.terminate()
        child.communicate(timeout=30)


def _asked() -> tuple[Evidence, list[JudgePrompt]]:
    made = {"question_id": "q", "story_id": "s", "question_type": "causal", "gold_answer": "The lion roars",
            "options": ["The lion roars", "The mouse runs", "Unclear"]}  # fmt: skip
    questions = [Question.model_validate(made | {"question": f"Why {number}?"}) for number in range(2)]
    _, evidence = make_packet("s", "text+image", list(pictures()), STORY)
    count = len(evidence.images)
    prompts = [
        judge_prompt(one, "text+image", variant="strict", answers_format="choice", count=count) for one in questions
    ]
    return evidence, prompts


@pytest.mark.timeout(400)
@pytest.mark.parametrize("structured", [False, True])
def test_a_real_server_reads_the_request_and_its_replies_are_typed(model: Path, url: str, structured: bool) -> None:
    """Random weights write no JSON, and the server ignores `response_format`: nothing may count as an answer."""
    judge = OpenAIJudge(str(model), base_url=url, structured=structured)
    judge._card["max_tokens"] = 24
    evidence, prompts = _asked()
    try:
        replies = list(judge.ask(evidence, prompts))
    finally:
        judge.close()
    assert {reply.status for reply in replies} <= {"truncated", "unparseable"}
    assert {reply.answer for reply in replies} == {None}
    for reply in replies:
        assert reply.usage["schema_mode"] == ("native" if structured else "plain")
        assert reply.usage["tokens"]["input"] > 100
        assert 0 < reply.usage["tokens"]["output"] <= 24
        assert reply.raw
