"""`katha eval`: durable, resumable, bounded, and no score made of failures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evals import Together, Watcher, draw, go, records
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.reports.eval_page import write_eval_report
from katha.errors import JudgeError, OutputFolderError, TransientJudgeError, UsageError
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.answers import read_answers
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.scoring.scores import score
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, estimate, name_judges
from katha.experiments.offline.scoring import score as score_again
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema.scores import Scores
from katha.store import Store


def test_text_is_asked_once_for_all_boards_and_nothing_twice(tmp_path: Path) -> None:
    judge = Watcher()
    result = go(tmp_path, [judge])
    assert judge.asked == 9 * (2 + 2 * 2)
    rows = read_answers(tmp_path / "out" / "answers.jsonl")
    assert [row.story_id for row in rows] == sorted(row.story_id for row in rows)
    assert {row.condition for row in rows if row.method is None} == {"none", "text"}
    again = go(tmp_path, [judge])
    assert (judge.asked, again.reused) == (54, True)
    assert again.scores == result.scores == Scores.model_validate_json((tmp_path / "out" / "scores.json").read_bytes())
    assert go(tmp_path, [judge], out="second").scores == result.scores
    assert judge.asked == 54
    first, second = (tmp_path / name / "answers.jsonl" for name in ("out", "second"))
    assert first.read_bytes() == second.read_bytes()
    fresh = score(
        records(), rows, matching="lemma-set", questions="all", resamples=50, invalid=result.state.done.invalid
    )
    assert fresh == result.scores


def test_a_spoiled_board_leaves_with_its_reason(tmp_path: Path) -> None:
    result = go(tmp_path, [Watcher()], spoil=["kontext/s1/3.png"])
    assert result.state.done.invalid == {"flux": {}, "kontext": {"s1": "frame 3 is missing"}}
    assert result.scores.methods["kontext"].stories == 2
    assert {(item.method, item.why, item.n) for item in result.state.done.left} == {("kontext", "invalid_story", 3)}
    assert result.state.done.leakage.detected == 0.0


def test_a_killed_run_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    whole = go(tmp_path, [Watcher()], out="whole")
    (tmp_path / "cache").rename(tmp_path / "old")
    with pytest.raises(JudgeError):
        go(tmp_path, [Watcher([None] * 20 + [JudgeError("The key is wrong.")])])
    log = tmp_path / "out" / "answers.jsonl"
    with log.open("ab") as file:
        file.write(b'{"method": "fl')
    (tmp_path / "cache").rename(tmp_path / "lost")
    judge = Watcher()
    result = go(tmp_path, [judge])
    assert judge.asked == 54 - 20
    assert log.read_bytes() == (tmp_path / "whole" / "answers.jsonl").read_bytes()
    assert result.scores == whole.scores


@pytest.mark.parametrize("limit", [{"max_calls": 7}, {"max_cost": 3.6}])
def test_a_budget_stops_cleanly_and_a_larger_one_goes_on(tmp_path: Path, limit: dict[str, Any]) -> None:
    judge = Watcher()
    result = go(tmp_path, [judge], budget=Budget(**limit))
    assert result.state.status == "budget_stopped"
    assert judge.asked <= 9
    assert sum(result.state.done.statuses.values()) == 54
    assert result.state.done.statuses["ok"] == judge.asked
    finished = go(tmp_path, [judge])
    assert (finished.state.status, judge.asked) == ("finished", 54)
    assert finished.state.done.statuses == {"ok": 54}


def test_faults_are_accounted_for_and_make_no_score(tmp_path: Path) -> None:
    fault = [JudgeReply("refused"), ValueError("half a body"), TransientJudgeError("busy")]
    judge = Watcher([None, None, fault[0], None, None, fault[1], None, None, None, fault[2]])
    result = go(tmp_path, [judge])
    assert sum(result.state.done.statuses.values()) == 54
    assert result.state.done.statuses["ok"] < 54
    for method in result.scores.methods.values():
        block = method.judges["watcher"]
        assert block.n_unscored + block.raw.n == block.n_questions == 9
        assert block.ambiguity_rate in (0.0, None)
    unscored = [item for item in result.state.done.left if item.why == "unscored"]
    assert sum(item.n for item in unscored) == sum(
        method.judges["watcher"].n_unscored for method in result.scores.methods.values()
    )
    refusing = go(tmp_path, [Watcher([JudgeReply("refused", error="no sketch")], name="no")], out="none")
    assert refusing.scores.methods["flux"].judges["no"].raw.stg is None


def test_controls_are_kept_apart_and_read_beside_chance(tmp_path: Path) -> None:
    plain = go(tmp_path, [Watcher()], out="plain")
    judge = Watcher(name="watcher")
    result = go(tmp_path, [judge], controls=("blank", "shuffled", "foreign", "repeat"))
    assert result.scores == plain.scores
    found = {item.control: item for item in result.state.done.controls}
    assert found["repeat"].agreement == 100.0
    assert found["blank"].chance == pytest.approx(25.0)
    assert found["shuffled"].dimension == "temporal_order"
    assert found["shuffled"].focus.n == 3
    assert {name: found[name].n for name in found} == {"blank": 9, "shuffled": 9, "foreign": 9, "repeat": 9}
    before = judge.asked
    assert go(tmp_path, [judge], controls=("blank", "shuffled", "foreign", "repeat")).reused
    assert judge.asked == before
    text = write_eval_report(tmp_path / "out").read_text(encoding="utf-8")
    assert all(
        word in text for word in ("Leaderboard", "Controls", "Gaps by dimension", "foreign", "What about s2 and moral?")
    )
    assert "http" not in text.replace("http-equiv", "")


def test_several_judges_make_an_ensemble_and_another_folder_is_refused(tmp_path: Path) -> None:
    result = go(tmp_path, [Watcher(name="a"), Watcher(name="b"), Watcher(name="c")])
    assert set(result.scores.methods["flux"].judges) == {"a", "b", "c", "ensemble"}
    with pytest.raises(OutputFolderError, match="other stories"):
        go(tmp_path, [Watcher()], stories=records(2))
    with pytest.raises(UsageError, match="twice"):
        name_judges([("x", Watcher()), ("x", Watcher())])


def test_a_dry_run_asks_nothing_and_weighs_everything(tmp_path: Path) -> None:
    stories, judge = records(), Watcher()
    job = EvalJob(stories, [draw(tmp_path / "flux", stories)], {"watcher": judge}, EvalSettings())
    with Store(tmp_path / "cache") as store:
        sums, _ = estimate(job, store)
    assert judge.asked == 0
    assert (sums["watcher"].calls, sums["watcher"].reused) == (36, 0)
    assert sums["watcher"].input_tokens > 36
    assert sums["watcher"].cost == pytest.approx((sums["watcher"].input_tokens + sums["watcher"].output_tokens) / 1e6)


def test_questions_of_a_packet_are_one_call_where_that_is_asked_for(tmp_path: Path) -> None:
    judges = {ask: Together() for ask in ("singly", "together")}
    found = {ask: go(tmp_path / ask, [judge], ask=ask) for ask, judge in judges.items()}
    packets = 3 * (2 + 2 * 2)  # stories, by nothing and by the text once, by two boards in two conditions
    assert {ask: judge.calls for ask, judge in judges.items()} == {"singly": 54, "together": packets}
    assert found["singly"].scores.methods == found["together"].scores.methods
    with pytest.raises(UsageError, match="other"):
        go(tmp_path / "together", [Together()], ask="singly")
    stories = records()
    job = EvalJob(stories, [draw(tmp_path / "flux", stories)], {"watcher": Together()}, EvalSettings(ask="together"))
    with Store(tmp_path / "cache") as store:
        sums, _ = estimate(job, store)
        assert sums["watcher"].calls == 3 * 4
        url = "http://127.0.0.1:9/v1"
        api = replace(job, judges={"api": OpenAIJudge("gpt-4o-2024-11-20", base_url=url)})
        with pytest.raises(UsageError, match="--batch asks each question singly"):
            estimate(api, store, batch=True)


def test_a_dry_run_of_batches_weighs_at_their_price(tmp_path: Path) -> None:
    stories, url = records(), "http://127.0.0.1:9/v1"
    judge = OpenAIJudge("gpt-4o-2024-11-20", base_url=url)
    job = EvalJob(stories, [draw(tmp_path / "flux", stories)], {"api": judge}, EvalSettings())
    with Store(tmp_path / "cache") as store:
        full, batch = (estimate(job, store, batch=wanted)[0]["api"] for wanted in (False, True))
        repeated = replace(job, settings=EvalSettings(controls=("repeat",)))
        with pytest.raises(UsageError, match="repeat"):
            estimate(repeated, store, batch=True)
    assert (batch.calls, batch.input_tokens) == (full.calls, full.input_tokens)
    assert full.cost is not None
    assert batch.cost == pytest.approx(full.cost * judge.batch_terms["price"])


def test_the_verb_replays_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    result = go(tmp_path, [Watcher()])
    source = tmp_path / "stories.jsonl"
    source.write_bytes(b"\n".join(record.model_dump_json().encode() for record in records()))
    arguments = ["eval", str(source), "--boards", str(tmp_path / "flux"), "--boards", f"kontext={tmp_path / 'kontext'}"]
    arguments += ["--judge", f"recorded:{tmp_path / 'out' / 'answers.jsonl'}", "--resamples", "50", "--json"]
    told = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "replay")])
    assert told.exit_code == 0, told.output
    value = json.loads(told.stdout)
    assert (value["status"], value["questions"]) == ("finished", 9)
    assert Scores.model_validate_json((tmp_path / "replay" / "scores.json").read_bytes()) == result.scores
    wrong = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "no"), "--controls", "ghost"])
    assert isinstance(wrong.exception, UsageError)
    assert not (tmp_path / "no").exists()


KEYS = ("method", "judge", "story_id", "question_id", "condition", "status", "answer")
"""Of `answers.jsonl`, what any program can write; the other keys of FORMATS may be there."""


def outside(tmp_path: Path, change: dict[str, str] | None = None) -> tuple[Path, Path]:
    """Stories and an archive as another program would write it, from an evaluation made beside."""
    go(tmp_path, [Watcher()])
    rows = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    archive, source = tmp_path / "theirs.jsonl", tmp_path / "stories.jsonl"
    kept = [{key: row[key] for key in (*KEYS, "evidence_status", "image_support", "confidence")} for row in rows]
    archive.write_text("".join(json.dumps(row | (change or {})) + "\n" for row in kept))
    source.write_text("".join(record.model_dump_json() + "\n" for record in records()))
    return source, archive


def replay(tmp_path: Path, source: Path, archive: Path, boards: str) -> Any:
    given = ["eval", str(source), "--boards", boards, "--judge", f"recorded:{archive}", "--resamples", "50"]
    given += ["--boards", f"kontext={tmp_path / 'kontext'}", "--json", "--out", str(tmp_path / "replay")]
    return CliRunner().invoke(app, given)


def test_an_archive_of_another_program_gives_the_whole_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    source, archive = outside(tmp_path)
    told = replay(tmp_path, source, archive, f"flux={tmp_path / 'flux'}")
    assert told.exit_code == 0, told.output
    value = json.loads(told.stdout)
    assert (value["status"], value["questions"], value["statuses"]) == ("finished", 9, {"ok": 54})
    assert value["calls"]["watcher"]["calls"] == 0
    before, after = (json.loads((tmp_path / name / "scores.json").read_text()) for name in ("out", "replay"))
    for name in ("flux", "kontext"):
        for block in ("raw", "filtered", "common_valid"):
            ours = after["methods"][name]["judges"]["watcher"][block]
            assert ours["stg"] == before["methods"][name]["judges"]["watcher"][block]["stg"]
    page = (tmp_path / "replay" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/") >= 10


def test_an_archive_says_which_boards_it_is_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    source, archive = outside(tmp_path)
    told = replay(tmp_path, source, archive, f"mine={tmp_path / 'flux'}")
    rows = [json.loads(line) for line in (tmp_path / "replay" / "answers.jsonl").read_text().splitlines()]
    wrong = {row["error"] for row in rows if row["method"] == "mine"}
    assert wrong == {"the archive has no board 'mine', only flux, kontext (--boards NAME=DIR)"}
    assert {row["status"] for row in rows if row["method"] == "mine"} == {"not_asked"}
    assert "only flux, kontext (--boards NAME=DIR)" in json.dumps(json.loads(told.stdout)["failures"])


class Moralist(Watcher):
    """Knows each story's moral label from its text; takes every picture for patience."""

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            if prompt.options is not None and "patience" in prompt.options:
                self.asked += 1
                told = "kindness" if evidence.text is not None else "patience"
                yield JudgeReply("ok", told, confidence="high")
            else:
                yield from super().ask(evidence, [prompt])


def test_a_story_whose_moral_is_a_sentence_is_asked_for_its_label_beside(tmp_path: Path) -> None:
    labels = ("kindness", "patience", "wisdom")
    told = [one.model_copy(update={"moral_label": label}) for one, label in zip(records(), labels, strict=True)]
    result = go(tmp_path, [Moralist()], stories=told)
    plain = go(tmp_path, [Watcher()], out="plain")
    for name in ("flux", "kontext"):
        own, other = (found.scores.methods[name].judges["watcher"] for found in (result, plain))
        assert (own.raw, own.n_questions, own.n_unscored) == (other.raw, 9, 0)
        assert other.moral_target.text is None
        # Only the first story's label is told from text and images together; its images say patience.
        assert (own.moral_target.text, own.moral_target.image) == (100.0, 0.0)
        assert (own.moral_target.chance, own.moral_target.majority) == (pytest.approx(100 / 12), 100.0)
    rows = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    asked = [row for row in rows if row["question_id"].startswith("label:")]
    assert len(asked) == 3 * (1 + 2 * 2)
    again = score_again(tmp_path / "out", tmp_path / "out", questions="all", resamples=50)
    assert again.methods == result.scores.methods
    assert not any("no selected question" in note for note in again.notes)
