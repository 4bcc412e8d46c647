"""Several questions in one call: what is sent, how the reply is read, under which key it is kept, what it costs."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from io import BytesIO
from typing import Any

import pytest
from api_server import KEY, Server, Step, serving
from asked import asked_in, chosen, reply_to
from doubles import KeptAnswers
from PIL import Image

from katha.errors import BudgetError, JudgeError, TransientJudgeError, UsageError
from katha.eval_bridge.judges.anthropic import AnthropicJudge
from katha.eval_bridge.judges.api import ApiJudge
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judges.served import VllmJudge
from katha.eval_bridge.judging.budget import MOST_TOGETHER, Budget, CallEstimate, Weighed, estimate_together, portions
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine, Retry
from katha.eval_bridge.packets.instructions import (
    judge_prompt,
    parse_together,
    together_schema,
    together_sha256,
    together_text,
)
from katha.eval_bridge.packets.packets import make_packet
from katha.models.client import Backoff
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Answer, Condition, Dimension, Question

JUDGES: dict[str, tuple[type[ApiJudge], str]] = {
    "anthropic": (AnthropicJudge, "claude-haiku-4-5-20251001"),
    "openai": (OpenAIJudge, "gpt-4o-2024-11-20"),
}
AT_ONCE = Retry(attempts=2, first_wait=0.0)
_DIMENSIONS: Sequence[Dimension] = ("causal", "emotional", "consequence")


def picture(width: int = 40, height: int = 30) -> bytes:
    out = BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(out, "PNG")
    return out.getvalue()


def question(number: int, **changes: Any) -> Question:
    told: dict[str, Any] = {
        "question_id": f"q{number}",
        "story_id": "s",
        "question_type": _DIMENSIONS[number % 3],
        "question": f"Who is it ({number})?",
        "gold_answer": f"fox {number}",
        "accepted_answers": [f"fox {number}"],
        "options": [f"fox {number}", "a crow", "Unclear"],
    }
    return Question.model_validate({**told, **changes})


def inquiry(*numbers: int, condition: Condition = "image", **changes: Any) -> Inquiry:
    packet = make_packet("s", condition, () if condition == "text" else (picture(), picture()), "A fox runs.")
    asked = [question(number) for number in numbers]
    told: dict[str, Any] = {"method": "m", "variant": "strict", "answers": "choice", "ask": "together"}
    return Inquiry(*packet, asked, **{**told, **changes})


def prompts(count: int, condition: Condition = "image", answers: Any = "choice") -> list[JudgePrompt]:
    return [
        judge_prompt(question(number), condition, variant="strict", answers_format=answers, count=2)
        for number in range(count)
    ]


Serve = Callable[..., tuple[Server, ApiJudge]]


@pytest.fixture(params=sorted(JUDGES))
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serve(provider: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def start(
        rule: Callable[[int, dict[str, Any]], Step] = lambda number, body: {"text": reply_to(body)}, **options: Any
    ) -> tuple[Server, ApiJudge]:
        server = running.enter_context(serving(provider, rule))
        kind, model = JUDGES[provider]
        backoff = Backoff(max_retries=1, busy_retries=1, sleep=lambda seconds: None)
        judge = kind(model, base_url=server.url, backoff=backoff, **options)
        running.callback(judge.close)
        return server, judge

    with ExitStack() as running:
        yield start


class Pairs(Judge):
    """A judge that asks together and notes its calls; `faults` are raised by the calls that they are for, in turn."""

    asks_together = True
    metered = True

    def __init__(self, *faults: BaseException | None, give: int | None = None) -> None:
        self.calls: list[list[str]] = []
        self._faults, self._give = list(faults), give
        self.bad: set[str] = set()

    def spec(self) -> dict[str, Any]:
        return {"name": "pairs"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            self.calls.append([prompt.question])
            yield self._reply(prompt)

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        self.calls.append([prompt.question for prompt in prompts])
        fault = self._faults.pop(0) if self._faults else None
        if fault is not None:
            raise fault
        yield from (self._reply(prompt) for prompt in prompts[: self._give])

    def _reply(self, prompt: JudgePrompt) -> JudgeReply:
        if prompt.question in self.bad:
            return JudgeReply("unparseable", error="no row", usage={"cost": 1.0})
        return JudgeReply("ok", answer=chosen(prompt.question, prompt.options or ("x",)), confidence="high")


def engine(judge: Any, kept: KeptAnswers | None = None, **options: Any) -> JudgingEngine:
    store: Any = kept
    return JudgingEngine({"j": judge}, store, retry=AT_ONCE, **options)


# What is sent.


def test_a_request_holds_the_pictures_and_the_instruction_once(serve: Serve, provider: str) -> None:
    server, judge = serve()
    asked = prompts(3, "text+image")
    evidence = Evidence("text+image", (picture(), picture()), "A fox runs.")
    replies = list(judge.ask_together(evidence, asked))
    assert [(reply.status, reply.answer) for reply in replies] == [
        ("ok", chosen(prompt.question, prompt.options or ())) for prompt in asked
    ]
    assert server.number == 1
    body = server.body(0)
    content = body["messages"][0]["content"]
    list(judge.ask(evidence, asked[:1]))
    alone = server.body(1)["messages"][0]["content"]
    assert content[:5] == alone[:5]  # the prefix of a question that is asked by itself
    told = "\n".join(part["text"] for part in content if part["type"] == "text")
    assert told.count("You see 2 pictures of a storyboard") == 1
    for number, prompt in enumerate(asked, 1):
        assert f"Question {number}: {prompt.question}\n{prompt.instruction.splitlines()[-1]}\n" in told
        assert all(f"- {option}" in told for option in prompt.options or ())
    assert "by itself" in told
    assert "no evidence for another" in told
    schema = json.dumps(body.get("output_config", body.get("response_format")))
    assert all(name in schema for name in ("answers", "number", "source_answer", "image_support", "fox 2"))
    assert body["max_tokens"] > server.body(1)["max_tokens"]


def test_a_schema_admits_every_option_and_text_says_what_is_left_open() -> None:
    schema = json.dumps(together_schema(prompts(2)))
    assert json.loads(schema)["properties"]["answers"]["items"]["properties"]["answer"]["enum"] == [
        *("fox 0", "a crow", "Unclear", "fox 1"),
    ]
    free = together_schema(prompts(2, answers="free"))
    assert "enum" not in json.dumps(free["properties"]).split("evidence_status")[0]  # type: ignore[index]
    assert '"Unclear" is right' in together_text(prompts(2))[1]
    assert '"Ambiguous" is right' in together_text(prompts(2, "text+image", "free"))[1]
    assert "JSON schema" in together_text(prompts(2), plain=True)[1]


def test_a_server_without_schemas_is_told_them_in_words(serve: Serve, provider: str) -> None:
    def rule(number: int, body: dict[str, Any]) -> Step:
        if "output_config" in body or "response_format" in body:
            return {"status": 400, "message": "json_schema is not supported"}
        return {"text": f"```json\n{reply_to(body)}\n```"}

    server, judge = serve(rule)
    replies = list(judge.ask_together(Evidence("image", (picture(),)), prompts(3)))
    assert [(reply.status, reply.usage["schema_mode"]) for reply in replies] == [("ok", "plain")] * 3
    assert server.number == 2


def test_who_is_asked_together(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    assert serve()[1].asks_together
    monkeypatch.setenv("VLLM_BASE_URL", "http://127.0.0.1:9/v1")
    assert not VllmJudge("m").asks_together  # its server keeps the pictures, and takes no money


def test_pictures_are_sent_no_larger_than_wanted(serve: Serve, provider: str) -> None:
    server, judge = serve(picture_side=64)
    evidence = Evidence("image", (picture(200, 100), picture(40, 30)))
    list(judge.ask_together(evidence, prompts(2)))
    list(judge.ask(evidence, prompts(1)))
    together, alone = (
        [part for part in server.body(number)["messages"][0]["content"] if part["type"] != "text"] for number in (0, 1)
    )
    assert together == alone
    assert [Image.open(BytesIO(_bytes(part))).size for part in together] == [(64, 32), (40, 30)]
    assert judge.spec()["picture_side"] == 64
    assert "picture_side" not in serve()[1].spec()
    assert estimate_together(evidence, prompts(2), 64) < estimate_together(evidence, prompts(2))
    with pytest.raises(UsageError, match="picture_side is 8 pixels"):
        serve(picture_side=8)


def _bytes(part: dict[str, Any]) -> bytes:
    data = part["source"]["data"] if part["type"] == "image" else part["image_url"]["url"].partition(",")[2]
    return b64decode(data)


# How a reply is read.


def rows(*told: object) -> str:
    return json.dumps({"answers": told})


def row(number: object, **changes: object) -> dict[str, object]:
    return {"number": number, "answer": "a crow", "confidence": "high", **changes}


@pytest.mark.parametrize(
    ("raw", "statuses"),
    [
        (rows(row(1), row(2)), "ok ok"),
        (rows(row(2), row(1)), "ok ok"),
        (rows(row(2)), "unparseable ok"),
        (rows(row(1), row(2), row(3), row(0), "prose", None), "ok ok"),
        (rows(row(1), row(2), row(2)), "ok unparseable"),
        (rows(row(1, answer="fox 1"), row(2)), "unparseable ok"),
        (rows(row(1, answer=None), row(2, extra="x")), "unparseable unparseable"),
        (rows(row(True), row("2")), "unparseable unparseable"),
        (rows(row(1, answer={"a": [[["deep"]]]}), row(2)), "unparseable ok"),
        (rows(), "unparseable unparseable"),
        ('{"answers": {}}', "unparseable unparseable"),
        (json.dumps({"answers": [row(1), row(2)], "more": 1}), "unparseable unparseable"),
        (json.dumps([row(1), row(2)]), "unparseable unparseable"),
        ("It is a fox.", "unparseable unparseable"),
        ("", "unparseable unparseable"),
        (rows(row(1), row(2))[:-5], "unparseable unparseable"),
        ("x" * 2_000_000, "unparseable unparseable"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_bad_row_is_one_question_s_failure(raw: str, statuses: str) -> None:
    replies = parse_together(raw, prompts(2), {"cost": 2.0, "tokens": {"input": 7}}, plain=False)
    assert " ".join(reply.status for reply in replies) == statuses
    assert all((reply.answer is None) == (reply.status != "ok") == bool(reply.error) for reply in replies)
    assert [reply.usage.get("cost") for reply in replies] == [2.0, None]
    assert [reply.usage.get("tokens") for reply in replies] == [{"input": 7}, None]
    assert [reply.usage.get("shared") for reply in replies] == [None, 2]
    assert all(reply.usage["together"] == 2 and len(reply.raw or "") <= 2_000 for reply in replies)


def test_what_fails_of_a_call_fails_for_each_question(serve: Serve, provider: str) -> None:
    cut = {"anthropic": "max_tokens", "openai": "length"}[provider]
    steps: list[Step] = [{"stop": cut}, {"status": 500}, {"status": 500}, {"status": 413}]
    server, judge = serve(lambda number, body: steps[number])
    evidence = Evidence("image", (picture(),))
    assert [[reply.status for reply in judge.ask_together(evidence, prompts(2))] for _ in range(3)] == [
        *(["truncated"] * 2, ["transport_failed"] * 2, ["transport_failed"] * 2),
    ]
    assert server.number == 4
    _, wrong = serve(lambda number, body: {"status": 401})
    with pytest.raises(UsageError, match="refused the key"):
        list(wrong.ask_together(evidence, prompts(2)))


# Keys, the cache and the log.


def test_a_key_holds_all_questions_of_the_call_in_order() -> None:
    asked = prompts(3)
    hashes = [*together_sha256(asked), *together_sha256(asked[:2]), *together_sha256(asked[1::-1])]
    assert len(set(hashes)) == len(hashes)
    assert together_sha256(asked) == together_sha256(prompts(3))


def test_what_the_cache_holds_is_not_asked_again() -> None:
    judge, kept = Pairs(), KeptAnswers()
    first = engine(judge, kept).ask("j", inquiry(1, 2, 3))
    told: list[tuple[str, bool]] = []
    again = engine(judge, kept).ask("j", inquiry(1, 2, 3), lambda row, reused: told.append((row.question_id, reused)))
    assert again == first
    assert told == [("q1", True), ("q2", True), ("q3", True)]
    assert len(judge.calls) == 1
    assert all(row.usage["together"] == 3 for row in first)
    assert len({row.prompt_sha256 for row in first}) == 3
    other = engine(judge, kept).ask("j", inquiry(1, 2))
    assert judge.calls[1:] == [["Who is it (1)?", "Who is it (2)?"]]
    assert {row.prompt_sha256 for row in other}.isdisjoint(row.prompt_sha256 for row in first)
    engine(judge, kept).ask("j", inquiry(1, 2, 3, ask="singly"))
    assert len(judge.calls) == 5


def test_what_is_missing_is_one_call_with_a_key_of_its_own() -> None:
    judge, kept = Pairs(), KeptAnswers()
    judge.bad = {"Who is it (1)?", "Who is it (3)?"}
    first = engine(judge, kept).ask("j", inquiry(1, 2, 3))
    assert [row.status for row in first] == ["unparseable", "ok", "unparseable"]
    judge.bad = {"Who is it (3)?"}
    second = engine(judge, kept).ask("j", inquiry(1, 2, 3))
    assert judge.calls[1:] == [["Who is it (1)?", "Who is it (3)?"]]
    assert [row.status for row in second] == ["ok", "ok", "unparseable"]
    judge.bad = set()
    third = engine(judge, kept).ask("j", inquiry(1, 2, 3))
    assert judge.calls[2:] == [["Who is it (3)?"]]
    assert [row.status for row in third] == ["ok"] * 3
    before = len(judge.calls)
    assert engine(judge, kept).ask("j", inquiry(1, 2, 3)) == third
    assert len(judge.calls) == before


def test_of_equal_questions_one_is_asked_and_one_alone_is_asked_singly() -> None:
    judge, kept = Pairs(), KeptAnswers()
    packet, evidence = make_packet("s", "image", (picture(),), "")
    twice = [question(1), question(1, question_id="again"), question(2)]
    answers = engine(judge, kept).ask("j", Inquiry(packet, evidence, twice, "m", "strict", "choice", ask="together"))
    assert [row.question_id for row in answers] == ["q1", "again", "q2"]
    assert answers[0].answer == answers[1].answer
    assert judge.calls == [["Who is it (1)?", "Who is it (2)?"]]
    alone = engine(judge, kept).ask("j", inquiry(3))
    assert "together" not in alone[0].usage
    assert engine(judge, kept).ask("j", inquiry(3, ask="singly")) == alone


def test_many_questions_are_calls_of_about_the_same_size() -> None:
    judge, kept = Pairs(), KeptAnswers()
    count = 2 * MOST_TOGETHER + 1
    answers = engine(judge, kept).ask("j", inquiry(*range(count)))
    assert list(map(len, judge.calls)) == portions(count) == [27, 27, 27]
    assert [row.question_id for row in answers] == [f"q{number}" for number in range(count)]
    assert engine(judge, kept).ask("j", inquiry(*range(count))) == answers
    assert len(judge.calls) == 3


def test_every_answer_is_kept_before_anybody_is_told_of_one() -> None:
    judge, kept = Pairs(), KeptAnswers()

    def stop(answer: Answer, reused: bool) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine(judge, kept).ask("j", inquiry(1, 2, 3), stop)
    assert len(kept) == 3
    engine(judge, kept).ask("j", inquiry(1, 2, 3))
    assert len(judge.calls) == 1


# The failure policy and the budget.


def test_a_passing_failure_is_tried_again_as_a_whole() -> None:
    judge = Pairs(TransientJudgeError("busy"))
    made = engine(judge, budget=Budget())
    assert [row.status for row in made.ask("j", inquiry(1, 2))] == ["ok", "ok"]
    assert judge.calls[0] == judge.calls[1]
    judge = Pairs(OSError("cut"), OSError("cut"))
    rows_ = engine(judge).ask("j", inquiry(1, 2))
    assert {(row.status, row.error) for row in rows_} == {("transport_failed", "OSError: cut (2 attempts)")}


@pytest.mark.parametrize("fault", [ValueError("half a body"), SystemExit(3)], ids=["bug", "exit"])
def test_a_judge_s_bug_costs_its_call_and_no_more(fault: BaseException) -> None:
    judge, kept = Pairs(fault), KeptAnswers()
    made = engine(judge, kept)
    failed = made.ask("j", inquiry(1, 2))
    assert [row.status for row in failed] == ["transport_failed"] * 2
    assert made.tallies["j"].calls == 1
    assert [row.status for row in made.ask("j", inquiry(1, 2))] == ["ok", "ok"]


def test_a_judge_that_cannot_be_asked_ends_the_command() -> None:
    with pytest.raises(JudgeError, match="no credit"):
        engine(Pairs(JudgeError("no credit"))).ask("j", inquiry(1, 2))


def test_a_judge_that_loses_count_leaves_the_rest_unanswered() -> None:
    made = engine(Pairs(give=1))
    statuses = [row.status for row in made.ask("j", inquiry(1, 2, 3))]
    assert statuses == ["ok", "transport_failed", "transport_failed"]


def test_a_call_is_one_of_the_budget_and_costs_are_counted_once(serve: Serve) -> None:
    server, judge = serve()
    budget = Budget(max_calls=1)
    made = engine(judge, budget=budget)
    answers = made.ask("j", inquiry(1, 2, 3))
    assert (budget.calls, made.tallies["j"].calls, server.number) == (1, 1, 1)
    spent = [row.usage.get("cost") for row in answers]
    assert spent == [pytest.approx(budget.cost), None, None]
    account = made.accounts()["j"]
    assert account.cost == pytest.approx(budget.cost)
    assert account.tokens["output"] == 20
    assert account.statuses == {"ok": 3}
    assert [row.status for row in made.ask("j", inquiry(4, 5))] == ["budget_stopped"] * 2
    assert server.number == 1
    assert budget.stopped
    with pytest.raises(BudgetError):
        engine(judge, budget=Budget(max_cost=0.0), when_spent="stop").ask("j", inquiry(4, 5))


def test_a_call_that_is_cut_off_is_off_the_budget_s_hands() -> None:
    budget = Budget(max_calls=3)
    with pytest.raises(KeyboardInterrupt):
        engine(Pairs(KeyboardInterrupt()), budget=budget).ask("j", inquiry(1, 2))
    assert (budget.calls, budget.grant(5, 0.0)) == (1, 2)


def test_a_dry_run_counts_the_call_and_its_evidence_once(serve: Serve) -> None:
    _, judge = serve()
    sums = {name: CallEstimate() for name in ("together", "singly")}
    for name, found in sums.items():
        engine(Weighed(judge, found)).ask("j", inquiry(*range(12), condition="text+image", ask=name))
    assert (sums["together"].calls, sums["singly"].calls) == (1, 12)
    assert sums["together"].output_tokens == sums["singly"].output_tokens
    assert sums["together"].input_tokens < sums["singly"].input_tokens / 2
    assert (sums["together"].cost or 0.0) < (sums["singly"].cost or 0.0)


def test_the_rule_of_the_tests_reads_what_is_sent(serve: Serve) -> None:
    server, judge = serve()
    list(judge.ask_together(Evidence("image", (picture(),)), prompts(2)))
    asked = asked_in(server.body(0))
    assert asked.questions == tuple((prompt.question, prompt.options or ()) for prompt in prompts(2))
