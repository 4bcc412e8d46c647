"""Answers and releases taken to other tools, each read again by the tool's own reader."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from evals import Watcher, go, records
from huggingface_hub import DatasetCard, parse_eval_result_entries
from inspect_ai import eval as run_inspect
from inspect_ai.log import list_eval_logs, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.exports.inspect_task import recoverability
from katha.errors import UsageError
from katha.eval_bridge.bench.publish import publish
from katha.eval_bridge.scoring.scores import score
from katha.protocols import JudgeReply
from katha.schema import Answer, ContrastiveVariant, StoryRecord
from katha.stories import load_stories


@pytest.fixture
def judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An evaluation of three stories on two boards by two judges, one of which refuses once."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "store"))
    go(tmp_path, [Watcher([*[None] * 35, JudgeReply("refused", error="not today")], name="a"), Watcher(name="b/c:1")])
    return tmp_path / "out"


def split(record: StoryRecord) -> StoryRecord:
    """The story with halves: one question steers, the others report."""
    roles = ("steering", "reporting", "reporting")
    asked = zip(record.recoverability_questions, roles, strict=True)
    return record.model_copy(
        update={"recoverability_questions": [item.model_copy(update={"role": role}) for item, role in asked]}
    )


def export(*words: str) -> Any:
    return CliRunner().invoke(app, ["export", *words])


def logs(folder: Path) -> dict[str, Any]:
    return {Path(item.name).name: read_eval_log(item) for item in list_eval_logs(str(folder))}


def test_an_evaluation_becomes_inspect_logs_with_its_own_numbers(judged: Path, tmp_path: Path) -> None:
    assert export(str(judged), "--to", "inspect", "--out", str(tmp_path / "logs")).exit_code == 0
    found = logs(tmp_path / "logs")
    assert len(found) == 4
    assert {name.split("_")[0] for name in found} == {"all"}
    told = json.loads((judged / "scores.json").read_text())["methods"]
    statuses = set()
    for log in found.values():
        assert (log.status, log.version) == ("success", 2)
        board, judge = log.eval.metadata["board"], log.eval.model
        own = told[board]["judges"][judge]
        metrics = {name: item.value for name, item in log.results.scores[0].metrics.items()}
        for name in ("text", "image", "stg", "latent_gap"):
            assert metrics.get(name) == pytest.approx(own["filtered"][name], abs=1e-9)  # neither: it cannot be measured
        assert metrics["stg_raw"] == pytest.approx(own["raw"]["stg"], abs=1e-9)
        assert metrics["n_unscored"] == own["n_unscored"]
        for name in ("none", "gain_image", "gain_text"):
            assert metrics[name] == pytest.approx(own["filtered"][name], abs=1e-9)
        assert metrics["guessable"] == pytest.approx(own["guessable"])
        assert len(log.samples) == 36
        assert sum(item.metadata["condition"] == "none" for item in log.samples) == 9
        statuses |= {sample.scores["recovered"].reason for sample in log.samples}
        sample = next(item for item in log.samples if item.metadata["condition"] == "image")
        assert sample.target
        assert sample.metadata["dimension"]
        assert sample.scores["recovered"].value in ("C", "I")
    assert statuses == {None, "refused"}


def test_steering_and_reporting_are_never_in_one_log(judged: Path, tmp_path: Path) -> None:
    stories = [StoryRecord.model_validate_json(line) for line in (judged / "stories.jsonl").read_text().splitlines()]
    halved = [split(one) for one in stories]
    (judged / "stories.jsonl").write_text("".join(one.model_dump_json() + "\n" for one in halved))
    role = {(one.story_id, item.question_id): item.role for one in halved for item in one.recoverability_questions}
    assert set(role.values()) == {"steering", "reporting"}
    assert export(str(judged), "--to", "inspect", "--out", str(tmp_path / "logs")).exit_code == 0
    found = logs(tmp_path / "logs")
    assert {name.split("_")[0] for name in found} == {"steering", "reporting"}
    for name, log in found.items():
        halves = {role[sample.metadata["story_id"], sample.metadata["question_id"]] for sample in log.samples}
        assert halves == {name.split("_")[0]} == set(log.eval.tags)
        assert ("stg" in log.results.scores[0].metrics) <= (halves == {"reporting"})


@pytest.fixture
def swept() -> Iterator[None]:
    """Lets go of the streams that inspect leaves open while their warnings are still this test's."""
    yield
    gc.collect()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("swept")
def test_inspect_runs_the_task_and_its_numbers_are_the_scorers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "store"))
    go(tmp_path, [Watcher()])
    source = tmp_path / "stories.jsonl"
    source.write_text("".join(record.model_dump_json() + "\n" for record in records()))
    made = recoverability(stories=str(source), boards=str(tmp_path / "flux"))
    assert len(made.dataset) == 36
    parts = [[part.type for part in sample.input[0].content].count("image") for sample in made.dataset]
    assert sorted(set(parts)) == [0, 5]

    def answer(at: int, sample: Any) -> str:
        options = sample.metadata["question"]["options"]
        said = {"confidence": "high", "answer": options[0 if at % 3 else 1]}
        if sample.metadata["condition"] == "text+image":
            said = {"source_answer": "x", "image_support": "supported", "final_answer": options[0], "confidence": "low"}
        return "I would rather not." if at == 4 else json.dumps(said)

    said = [ModelOutput.from_content("mockllm", answer(at, sample)) for at, sample in enumerate(made.dataset)]
    for output in said:  # else inspect counts tokens with a table that it downloads
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    model = get_model("mockllm/model", custom_outputs=said)
    (log,) = run_inspect(
        made, model=model, log_dir=str(tmp_path / "logs"), display="none", max_connections=1, max_samples=1
    )
    assert log.status == "success", log.error
    rows = [
        Answer(
            method="flux" if "image" in sample.metadata["condition"] else None,
            judge="m",
            story_id=sample.metadata["story_id"],
            question_id=sample.metadata["question_id"],
            condition=sample.metadata["condition"],
            status="ok" if sample.scores["recovered"].answer else "unparseable",
            answer=sample.scores["recovered"].answer,
        )
        for sample in log.samples
    ]
    assert [row.status for row in rows].count("unparseable") == 1
    own = (
        score(load_stories(source), rows, matching="lemma-set", questions="all", resamples=0)
        .methods["flux"]
        .judges["m"]
        .filtered
    )
    metrics = {name: item.value for name, item in log.results.scores[0].metrics.items()}
    assert metrics["valid"] == own.n > 0
    for name, told in (
        ("text", "text"),
        ("image", "image"),
        ("stg", "stg"),
        ("none", "none"),
        ("image_gain", "gain_image"),
    ):
        expected = getattr(own, told)
        assert metrics[name] == pytest.approx(expected if expected is not None else float("nan"), abs=1e-9, nan_ok=True)
    assert own.stg is None, "two of three answers from the text are right: that is no judge to measure with"


def test_the_task_never_asks_both_halves(tmp_path: Path) -> None:
    halved = [split(one) for one in records()]
    source = tmp_path / "stories.jsonl"
    source.write_text("".join(record.model_dump_json() + "\n" for record in halved))
    with pytest.raises(UsageError, match="never in one log"):
        recoverability(stories=str(source), boards=str(tmp_path), half="all")


def test_results_for_the_hub_are_read_by_its_own_client(judged: Path, tmp_path: Path) -> None:
    refused = export(str(judged), "--to", "hub-results", "--out", str(tmp_path / "none"))
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / "none").exists()
    words = (str(judged), "--to", "hub-results", "--dataset", "tales/bench", "--out", str(tmp_path / "hub"))
    assert export(*words).exit_code == 0
    told = json.loads((judged / "scores.json").read_text())["methods"]
    for method, entry in told.items():
        path = tmp_path / "hub" / method / ".eval_results" / "katha.yaml"
        entries = {item.task_id: item for item in parse_eval_result_entries(yaml.safe_load(path.read_text()))}
        own = entry["judges"]["ensemble"]["filtered"]
        assert entries["semantic_trajectory_gap"].value == pytest.approx(own["stg"], abs=1e-4)
        assert entries["image_recoverability"].value == pytest.approx(own["image"], abs=1e-4)
        assert {item.dataset_id for item in entries.values()} == {"tales/bench"}
        assert "Judged by a, b/c:1;" in entries["image_recoverability"].notes


def test_a_release_is_laid_out_for_the_hub_without_its_hidden_answers(tmp_path: Path) -> None:
    splits = ("train", "public_test", "hidden_test")
    given = [one.model_copy(update={"split": split}) for one, split in zip(records(3), splits, strict=True)]
    source = tmp_path / "stories.jsonl"
    source.write_text("".join(one.model_dump_json() + "\n" for one in given))
    variant = ContrastiveVariant(variant_id="v1", base_story_id=given[0].story_id, modification_type="causal")
    made = publish(
        source, tmp_path / "hub", "tales/bench", [variant, variant.model_copy(update={"base_story_id": "s9"})]
    )
    assert (made.stories, made.variants, made.hidden) == ({"public_test": 1, "train": 1}, 1, 1)
    everything = b"".join(path.read_bytes() for path in (tmp_path / "hub").rglob("*") if path.is_file())
    assert given[2].story_id.encode() not in everything
    card = DatasetCard.load(tmp_path / "hub" / "README.md").data.to_dict()
    files = [item for config in card["configs"] for item in config["data_files"]]
    assert {item["split"] for item in files} == {"public_test", "train"}
    assert all((tmp_path / "hub" / item["path"]).is_file() for item in files)
    benchmark = yaml.safe_load((tmp_path / "hub" / "eval.yaml").read_text())
    assert {"name", "description", "evaluation_framework", "tasks"} == benchmark.keys()
    assert {task["split"] for task in benchmark["tasks"]} == {"public_test"}
    back = load_stories(tmp_path / "hub" / "data" / "stories" / "train.jsonl")
    assert [one.story_text for one in back] == [given[0].story_text]
    with pytest.raises(UsageError, match="something in it"):
        publish(source, tmp_path / "hub", "tales/bench")
    told = CliRunner().invoke(app, ["bench", "publish", str(source), "--name", "no", "--out", str(tmp_path / "x")])
    assert isinstance(told.exception, UsageError)
