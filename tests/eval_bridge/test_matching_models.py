"""Rules that a model decides: real tiny encoders, real judges against a loopback server, and archived verdicts."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from api_server import Server, Step
from evals import draw
from tiny_encoders import save_encoder, save_nli
from tiny_vlm import build
from typer.testing import CliRunner

from katha.agents.context import RunContext, load_plugins
from katha.agents.folder import RunFolder
from katha.app.cli.main import app
from katha.app.exports.archives import JudgedFolder
from katha.app.reports.eval_page import write_eval_report
from katha.config import Settings
from katha.configs import load_prompt
from katha.errors import InputFileError, ModelError, UsageError
from katha.eval_bridge.matching import models
from katha.eval_bridge.matching.match import Pair
from katha.eval_bridge.matching.models import LlmDecider, NliDecider, claim
from katha.eval_bridge.matching.report import measure_file
from katha.eval_bridge.matching.rules import ModelRule, make_decider, open_rule, read_verdicts
from katha.eval_bridge.scoring.outcomes import recoverability
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.jsonio import digest
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import CONDITIONS, Answer, Question, StoryRecord
from katha.store import Store

ASKED = "What does the mouse do?"
ACCEPTED = ("The mouse bites the net", "mouse cuts rope")
SAID = {"it nibbles the net": True, "the mouse sleeps": False, "the net bites the mouse": False}
PAIRS = [
    {
        "question": ASKED, "gold_answer": ACCEPTED[0], "accepted_answers": [ACCEPTED[1]], "question_type": "causal",
        "answer": answer, "label": "right" if right else "wrong", "kind": "free",
    }
    for answer, right in SAID.items()
]  # fmt: skip


def question(**changes: Any) -> Question:
    fields = {"question_id": "q", "question_type": "causal", "question": ASKED, "story_id": "s"}
    values = {"gold_answer": ACCEPTED[0], "accepted_answers": [ACCEPTED[1]]}
    return Question.model_validate(fields | values | changes)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def katha(*words: str | Path) -> Any:
    result = CliRunner().invoke(app, [*map(str, words), "--json"])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Knows that nibbling a net entails biting it, but not the other way round."""
    pairs = []
    for answer, right in SAID.items():
        label = "entailment" if right else "contradiction"
        pairs.append((claim(ASKED, answer), claim(ASKED, ACCEPTED[0]), label))
        pairs.append((claim(ASKED, ACCEPTED[0]), claim(ASKED, answer), "neutral"))
        pairs += [(claim(ASKED, answer), claim(ASKED, ACCEPTED[1]), "neutral")]
    return save_nli(tmp_path_factory.mktemp("nli"), pairs, ["contradiction", "entailment", "neutral"])


def test_entailment_of_an_accepted_answer_in_the_questions_context(nli: Path) -> None:
    rule = open_rule(f"nli:{nli}", decider=NliDecider(str(nli)))
    for answer, right in SAID.items():
        verdict = rule.verdict(answer, question())
        assert verdict.right is right, verdict.reason
    assert "entails 'The mouse bites the net'" in rule.verdict("it nibbles the net", question()).reason
    turned = question(gold_answer="it nibbles the net", accepted_answers=[])
    assert rule.verdict(ACCEPTED[0], turned).right is False
    assert rule.verdict("THE MOUSE bites the net!", question()).reason == "in the accepted set"


def test_what_is_no_nli_model_is_refused(nli: Path, tmp_path: Path) -> None:
    config = json.loads((nli / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"id2label": {"0": "bad", "1": "good"}}))
    with pytest.raises(InputFileError, match="no weights"):
        make_decider(f"nli:{tmp_path}")
    (tmp_path / "model.safetensors").write_bytes((nli / "model.safetensors").read_bytes())
    with pytest.raises(UsageError, match=r"no label .entailment. .its labels: bad, good"):
        make_decider(f"nli:{tmp_path}")
    with pytest.raises(InputFileError, match="There is no model folder"):
        make_decider("nli:./nowhere")
    with pytest.raises(ModelError, match="not on this machine") as caught:
        make_decider("nli:nobody/nothing")
    assert "hf download nobody/nothing" in str(caught.value)
    with pytest.raises(UsageError, match=r"needs a model.*nli:MODEL"):
        make_decider("nli")


def test_embeddings_are_mean_pooled_unit_vectors(tmp_path: Path) -> None:
    folder = save_encoder(tmp_path / "encoder", [*ACCEPTED, *SAID])
    rule = open_rule("embedding:x", decider=make_decider(f"embedding:{folder}"))
    same = rule.verdict("The mouse, the net: bites", question())
    assert same.right is not None
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def vector(text: str) -> torch.Tensor:
        with torch.inference_mode():
            mean = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
        return mean / mean.norm()

    decider = make_decider(f"embedding:{folder}")
    assert decider is not None
    for answer in SAID:
        (decision,) = decider.decide([Pair(answer, question())])
        wanted = max(float(vector(answer) @ vector(text)) for text in ACCEPTED)
        assert decision.score == pytest.approx(wanted, abs=1e-5)
        assert decision.right is (wanted >= 0.75)


def says(rule: Callable[[str], Step]) -> Callable[[int, dict[str, Any]], Step]:
    """A server's rule on the answers that are to be compared: many by a line each, one by a choice."""

    def act(number: int, body: dict[str, Any]) -> Step:
        text = json.dumps(body)
        asked = sorted((text.index(f"The answer to compare: {one}"), one) for one in SAID if f"compare: {one}" in text)
        steps = [rule(answer) for _, answer in asked]
        if len(steps) == 1:
            return steps[0]
        said = [re.search("same|different", str(step["text"])) for step in steps]
        return {"text": "\n".join(f"{at}: {word[0]}" for at, word in enumerate(said, 1) if word)}

    return act


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    started: list[Server] = []

    def start(rule: Callable[[str], Step]) -> Server:
        server = Server("openai", says(rule))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        started.append(server)
        return server

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def told(right: bool) -> Step:
    return {"text": json.dumps({"answer": "same" if right else "different"})}


def test_a_language_model_decides_once_and_is_archived(serve: Callable[..., Server], tmp_path: Path) -> None:
    server = serve(lambda answer: told(SAID[answer]))
    pairs, kept = write(tmp_path / "pairs.jsonl", PAIRS), tmp_path / "verdicts.jsonl"
    words = ("bench", "match", pairs, "--rule", "llm:openai:gpt-4o", "--verdicts", kept)
    report = katha(*words)
    assert (report["n"], report["false_accept"], report["false_reject"]) == (3, 0.0, 0.0)
    assert len(server.bodies) == 1, "answers are compared in one call"
    asked = json.loads(server.bodies[0])["messages"][0]["content"]
    assert ACCEPTED[1] in asked[0]["text"]
    assert ASKED in asked[0]["text"]
    before = kept.read_bytes()
    assert katha(*words) == report
    assert len(server.bodies) == 1
    assert kept.read_bytes() == before
    assert b"sk-secret" not in before
    other = katha(*words[:4], "llm:openai:gpt-4o-mini", "--verdicts", kept)
    assert (other["n"], len(server.bodies)) == (3, 2)


def test_a_failed_verdict_is_no_verdict(serve: Callable[..., Server], tmp_path: Path) -> None:
    faults: dict[str, Step] = {
        "it nibbles the net": {"text": "I think so."},
        "the mouse sleeps": {"text": "", "refusal": "no"},
    }
    server = serve(lambda answer: faults.get(answer, told(False)))
    pairs, kept = write(tmp_path / "pairs.jsonl", PAIRS), tmp_path / "verdicts.jsonl"
    words = ("bench", "match", pairs, "--rule", "llm:openai:gpt-4o", "--verdicts", kept)
    report = katha(*words)
    assert (report["n"], report["undecided"], report["false_accept"]) == (1, 2, 0.0)
    faults.clear()
    asked = len(server.bodies)
    assert katha(*words)["undecided"] == 0
    assert len(server.bodies) == asked + 1


def test_a_verdict_that_could_not_be_had_stops_no_report(serve: Callable[..., Server], tmp_path: Path) -> None:
    """What was scored stays: the report and every export show such an answer as unscored, and call nobody."""
    server = serve(lambda answer: {"text": "", "refusal": "no"})
    name, out = "llm:openai:gpt-4o", tmp_path / "out"
    record = StoryRecord(story_id="s", story_text="A mouse.", recoverability_questions=[question()])
    settings = EvalSettings(answers="free", matching=name, resamples=10)
    board = draw(tmp_path / "boards", [record])
    job = EvalJob([record], [board], {"phrases": Phrases()}, settings, decider=make_decider(name))
    with Store(tmp_path / "cache") as store:
        result = evaluate(job, out, store)
    asked = len(server.bodies)
    assert any("got no verdict by llm:openai:gpt-4o and are unscored" in note for note in result.scores.notes)
    assert write_eval_report(out).is_file()
    folder = JudgedFolder(out)
    assert {folder.right(row) for part in folder.parts() for row in part.rows} == {None}
    assert len(server.bodies) == asked
    assert result.state.status == "incomplete"
    server.rule = says(lambda answer: told(True))
    with Store(tmp_path / "cache") as store:
        again = evaluate(job, out, store)
    assert again.state.status == "finished", "the same command asks for the verdicts again"
    assert not any("got no verdict" in note for note in again.scores.notes)


def archive(folder: Path, **changes: Any) -> tuple[Path, Path]:
    record = {"story_id": "s", "story_text": "A mouse.", "recoverability_questions": [question().model_dump()]}
    rows = [
        {"method": "m", "judge": "j", "story_id": "s", "question_id": "q", "condition": name, "status": "ok",
         "answer": "the mouse sleeps" if name == "image" else "it nibbles the net", **changes}
        for name in CONDITIONS
    ]  # fmt: skip
    folder.mkdir(exist_ok=True)
    return write(folder / "stories.jsonl", [record]), write(folder / "answers.jsonl", rows)


def test_scoring_again_is_offline(nli: Path, tmp_path: Path) -> None:
    stories, answers = archive(tmp_path / "a")
    out, name = tmp_path / "scores.json", f"nli:{nli}"
    words = ("score", stories, "--answers", answers, "--matching", name, "--out", out)
    with pytest.raises(UsageError, match=r"2 answers have no verdict by .*--decide"):
        katha(*words)
    scores = katha(*words, "--decide")["scores"]
    block = scores["methods"]["m"]["judges"]["j"]["raw"]
    assert (scores["matching"], block["text"], block["image"]) == (name, 100.0, 0.0)
    before = out.read_bytes()
    moved = nli.rename(tmp_path / "gone")
    try:
        katha(*words)
        assert out.read_bytes() == before
        kept = answers.with_name("verdicts.jsonl")
        with kept.open("ab") as file:
            file.write(b'{"rule": "nl')
        katha(*words)
        assert out.read_bytes() == before
        kept.write_bytes(b"{}\n" + kept.read_bytes())
        with pytest.raises(InputFileError, match="line 1, is not a verdict"):
            katha(*words)
    finally:
        moved.rename(nli)


def test_a_models_row_of_the_matching_table_comes_from_one_command(nli: Path, tmp_path: Path) -> None:
    """The commands that docs/protocol.md gives for the rows of Table 61 that need a model."""
    pairs, kept = write(tmp_path / "pairs.jsonl", PAIRS), tmp_path / "verdicts.jsonl"
    encoder = save_encoder(tmp_path / "encoder", [*ACCEPTED, *SAID])
    rates = {}
    for name in (f"nli:{nli}", f"embedding:{encoder}"):
        words = ("bench", "match", pairs, "--rule", name, "--verdicts", kept)
        rates[name] = katha(*words)
        assert (rates[name]["rule"], rates[name]["n"]) == (name, len(PAIRS))
        assert katha(*words) == rates[name]
    assert [rates[f"nli:{nli}"][name] for name in ("false_accept", "false_reject")] == [0.0, 0.0]
    assert rates[f"embedding:{encoder}"]["false_accept"] is not None


def test_what_changed_against_a_models_rule(nli: Path, tmp_path: Path) -> None:
    stories, answers = archive(tmp_path / "a")
    words = ("score", stories, "--answers", answers, "--out")
    katha(*words, tmp_path / "old.json", "--matching", f"nli:{nli}", "--decide")
    found = katha(*words, tmp_path / "new.json", "--matching", "exact-set", "--before", tmp_path / "old.json")
    assert {row["condition"] for row in found["changes"]} == {"text", "text+image"}
    assert all("entails" in row["why"] for row in found["changes"])


def test_a_changed_accepted_set_asks_anew(nli: Path) -> None:
    first, second = Pair("x", question()), Pair("x", question(accepted_answers=["mouse cuts rope", "another"]))
    assert first.key != second.key
    assert first.key == Pair("X!", question(accepted_answers=["Mouse cuts rope."])).key


def test_the_paper_judges_own_kind_can_compare(tmp_path: Path) -> None:
    folder = build("smolvlm", tmp_path / "vlm")
    (decision,) = LlmDecider(f"local:{folder}").decide([Pair("it nibbles the net", question())])
    assert decision.right in (True, False)
    assert decision.reason in ("judged same", "judged different")
    with pytest.raises(UsageError, match="cannot compare answers"):
        LlmDecider("sketch-reader")


class Phrases(Judge):
    """Answers freely: rightly with the text, wrongly from the images alone."""

    def spec(self) -> dict[str, str]:
        return {"name": "phrases"}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for _ in prompts:
            yield JudgeReply("ok", "it nibbles the net" if evidence.text else "the mouse sleeps")


def test_an_evaluation_of_free_answers_archives_its_verdicts(nli: Path, tmp_path: Path) -> None:
    name = f"nli:{nli}"
    record = StoryRecord(story_id="s", story_text="A mouse.", recoverability_questions=[question()])
    settings = EvalSettings(answers="free", matching=name, resamples=10)
    decider = make_decider(name)
    job = EvalJob([record], [draw(tmp_path / "boards", [record])], {"phrases": Phrases()}, settings, decider=decider)
    with Store(tmp_path / "cache") as store:
        result = evaluate(job, tmp_path / "out", store)
    block = result.scores.methods["boards"].judges["phrases"].raw
    assert (result.scores.matching, block.text, block.image) == (name, 100.0, 0.0)
    moved = nli.rename(tmp_path / "gone")
    try:
        out = tmp_path / "out"
        assert "does not entail" in write_eval_report(out).read_text(encoding="utf-8")
        words = ("score", out / "stories.jsonl", "--answers", out / "answers.jsonl", "--matching", name)
        again = katha(*words, "--questions", "all", "--resamples", 10, "--out", tmp_path / "s.json")["scores"]
        assert again["methods"] == result.scores.model_dump(mode="json")["methods"]
    finally:
        moved.rename(nli)


def test_a_run_settles_its_free_answers_by_the_same_rule(nli: Path, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    config = Settings(matching=f"nli:{nli}", answers="free")
    with Store(tmp_path / "cache") as store:
        record = StoryRecord(story_id="s", story_text="A mouse.")
        context = RunContext.open(record, config, load_plugins(config), store, folder)
        rows = [
            Answer(method="b", judge="j", story_id="s", question_id="q", condition="image", status="ok", answer=said)
            for said in ("it nibbles the net",)
        ]
        found = recoverability(rows, [question()], context.matching)
    assert found.mean == 1.0
    kept = (folder.path / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line).get("answer") for line in kept] == [None, "it nibbles the net"]


def test_a_runs_matching_model_is_called_where_its_judges_are(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(lambda answer: told(SAID[answer]))
    monkeypatch.delenv("OPENAI_BASE_URL")
    config = Settings(matching="llm:openai:gpt-4o", answers="free", judges=("openai:gpt-4o",), base_url=server.url)
    with Store(tmp_path / "cache") as store:
        record = StoryRecord(story_id="s", story_text="A mouse.")
        context = RunContext.open(record, config, load_plugins(config), store, RunFolder(tmp_path / "run"))
        row = Answer(
            method="b",
            judge="j",
            story_id="s",
            question_id="q",
            condition="image",
            status="ok",
            answer="the mouse sleeps",
        )
        found = recoverability([row], [question()], context.matching)
    assert (found.mean, len(server.bodies)) == (0.0, 1)


def test_answers_are_compared_in_an_order_of_their_own(serve: Callable[..., Server], tmp_path: Path) -> None:
    """Whoever answers first: the same answers make the same call, which a recording knows."""
    server = serve(lambda answer: told(SAID[answer]))
    for number, said in enumerate((list(SAID), list(reversed(SAID)))):
        rule = open_rule("llm:openai:gpt-4o", [], decider=make_decider("llm:openai:gpt-4o", server.url))
        assert isinstance(rule, ModelRule)
        assert rule.settle([Pair(answer, question()) for answer in said]) == 0, number
    assert server.bodies[0] == server.bodies[1]


def test_no_verdict_is_paid_for_twice(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the default rule: an evaluation that is gone on with, looked at again or scored asks for no verdict anew."""
    server = serve(lambda answer: told(SAID[answer]))
    config = Settings(judges=("openai:gpt-4o",), base_url=server.url)
    assert (config.answers, config.matching) == ("free", "llm:openai:gpt-4o")
    record, out = StoryRecord(story_id="s", story_text="A mouse.", recoverability_questions=[question()]), tmp_path
    settings = EvalSettings(answers=config.answers, matching=config.matching, resamples=10)
    board = draw(tmp_path / "boards", [record])

    def go() -> Any:
        decider = make_decider(config.matching, config.base_url)
        job = EvalJob([record], [board], {"phrases": Phrases()}, settings, decider=decider, config=config)
        with Store(tmp_path / "cache") as store:
            return evaluate(job, out / "eval", store)

    first = go()
    paid = len(server.bodies)
    assert paid == 1
    assert any(note.startswith("Free answers are matched by llm:openai:gpt-4o") for note in first.scores.notes)
    wanted = first.scores.model_dump(mode="json")
    state = json.loads((out / "eval" / "eval.json").read_text(encoding="utf-8"))
    assert state["config"]["matching"] == config.matching, "what was chosen replays"
    for cut in (False, True):  # as it stands, and as a command leaves it that is killed while it scores
        if cut:
            (out / "eval" / "eval.json").write_text(json.dumps(state | {"status": "running", "results": None}))
            (out / "eval" / "scores.json").unlink()
        assert go().scores.model_dump(mode="json") == wanted
    monkeypatch.delenv("OPENAI_API_KEY")  # scoring takes the archive's rule with its verdicts, and calls nobody
    words = ("score", out / "eval" / "stories.jsonl", "--answers", out / "eval", "--resamples", 10)
    again = katha(*words, "--questions", "all", "--out", out / "again.json")["scores"]
    assert (again["matching"], again["methods"]) == (config.matching, wanted["methods"])
    assert len(server.bodies) == paid


def test_another_wording_of_the_prompt_is_another_rule(
    serve: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(lambda answer: told(SAID[answer]))
    name, kept = "llm:openai:gpt-4o", tmp_path / "verdicts.jsonl"
    for prompt in ("same", "together"):
        before = make_decider(name)
        assert before is not None
        rule = open_rule(name, [kept], decider=before, keep=kept)
        assert isinstance(rule, ModelRule)
        rule.settle([Pair("the mouse sleeps", question())])
        assert len(read_verdicts(name, [kept], digest(dict(before.spec())))) == 1
        with monkeypatch.context() as changed:  # the claim's wording stands for the prompt's, changed
            changed.setattr(models, "load_prompt", lambda at, of=prompt: load_prompt(at.replace(of, "claim")))
            after = make_decider(name)
            assert after is not None
            assert read_verdicts(name, [kept], digest(dict(after.spec()))) == {}


HARD_PAIRS = Path(__file__).parents[1] / "data" / "answer_pairs"


def test_a_language_model_is_right_about_answers_that_were_written_to_be_hard() -> None:
    rule = ModelRule("llm:openai:frontier", [HARD_PAIRS / "verdicts.jsonl"])
    found = measure_file(HARD_PAIRS / "pairs.jsonl", rule)
    assert found.n == 324
    assert found.undecided == 0
    assert found.false_accept is not None
    assert found.false_accept <= 0.02
    assert found.false_reject is not None
    assert found.false_reject <= 0.10
