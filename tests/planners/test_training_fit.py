"""How an adapter is fitted: on one device of several, by several processes, packed, in four bits, and what is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_gemma import build_gemma
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.app.cli.train import steering_score
from katha.errors import InputFileError, MissingExtraError, OutputFolderError, UsageError
from katha.models import local
from katha.models.local import merge_adapter
from katha.planners import training, training_fit
from katha.planners.gemma_st import GemmaPlanner
from katha.planners.gold import OraclePlanner
from katha.planners.training import load_settings, train_planner
from katha.planners.training_data import Collator, encode, make_examples, pack
from katha.planners.training_fit import (
    Processes,
    TrainSettings,
    join_processes,
    take_loss_in_parts,
    training_arguments,
)
from katha.protocols import PlanRequest
from katha.schema import StoryRecord

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
TINY = {"steps": 2, "batch": 1, "accumulation": 2, "learning_rate": 1e-2, "rank": 4, "save_every": 1, "dropout": 0.0}


def record(number: int, split: str = "train") -> StoryRecord:
    who, other = [("fox", "hen"), ("lion", "mouse"), ("crow", "fox"), ("dog", "cat"), ("hen", "crow")][number]
    scenes = [
        {"scene_index": at, "scene_text": f"The {name} {does}.", "characters": [name],
         "generation_prompt": f"The {name} {does}.", "visual_must_show": [name]}
        for at, name, does in ((1, who, "runs"), (2, other, "hides"))
    ]  # fmt: skip
    transition = {"from_scene": 1, "to_scene": 2, "action": f"The {other} hides.", "causality": f"The {who} runs.",
                  "intention": f"The {other} wants to live.", "emotion": f"The {other} is afraid.",
                  "consequence": f"The {who} is alone."}  # fmt: skip
    return StoryRecord.model_validate({
        "story_id": f"s{number}", "story_text": f"The {who} ran. The {other} hid.", "split": split, "scenes": scenes,
        "transitions": [transition],
    })  # fmt: skip


TRAIN, HELD_OUT = [record(number) for number in range(4)], [record(4, "validation")]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [item.prompt + item.reply for item in make_examples(TRAIN).kept]
    return build_gemma(tmp_path_factory.mktemp("gemma") / "base", texts, pictures=True, size=900)


def trained(gemma: Path, out: Path, held_out: list[StoryRecord] | None = None, **changes: Any) -> Path:
    settings = load_settings(None, {**TINY, **changes})
    train_planner(TRAIN, held_out or [], out, settings, base=str(gemma), device="cpu")
    return out


@pytest.fixture(scope="module")
def adapter(gemma: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(gemma, tmp_path_factory.mktemp("adapter") / "out")


@pytest.mark.parametrize(("device", "index"), [("cuda:3", 3), ("cuda", 0)])
def test_one_process_uses_the_one_device_that_was_named(
    device: str, index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine with eight, the Trainer left alone takes all eight, multiplies the batch, and begins with cuda:0."""
    from accelerate.state import AcceleratorState

    chosen: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_device", lambda there: chosen.append(torch.device(there)))
    settings = load_settings("80gb", {"dtype": "float32"})
    try:
        arguments = training_arguments(settings, tmp_path, Processes(device), measured=False)
        assert (arguments.n_gpu, arguments.train_batch_size) == (1, settings.batch)
        assert arguments.device == arguments.distributed_state.device == chosen[-1] == torch.device("cuda", index)
    finally:
        AcceleratorState._reset_state(reset_partial_state=True)


def test_processes_share_a_step_and_a_device_is_not_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TrainSettings(accumulation=8)
    assert [Processes("cpu", 0, size).share(settings) for size in (1, 2, 8)] == [8, 4, 1]
    with pytest.raises(UsageError, match=r"8 batches a step cannot be shared out among 3 processes"):
        Processes("cpu", 0, 3).share(settings)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="2 processes cannot share 'cuda:3'"):
        join_processes("cuda:3")


def by_two_processes(gemma: Path, tmp_path: Path, records: list[StoryRecord], steps: int) -> Path:
    """What a real gloo group makes of these stories."""
    stories, out = tmp_path / "stories.jsonl", tmp_path / "out"
    stories.write_text("".join(item.model_dump_json() + "\n" for item in records))
    shown = tmp_path / "main.py"
    # The settings that the command line has no option for are those of the fixture.
    shown.write_text(
        "import sys\nfrom pathlib import Path\nfrom katha.planners.training import load_settings, train_planner\n"
        "from katha.stories import iter_records\n"
        f"report = train_planner(iter_records(Path({str(stories)!r})), [], Path({str(out)!r}),\n"
        f"    load_settings(None, {TINY | {'steps': steps}!r}), base={str(gemma)!r}, device='cpu')\n"
        "print('TOLD', report.processes, report.steps, flush=True)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(shown)]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=quiet, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count(f"TOLD 2 {steps}") == 2
    return out


def test_two_processes_take_the_same_steps_as_one(gemma: Path, adapter: Path, tmp_path: Path) -> None:
    """The weights are those of one process with the same batches a step, and one of them wrote."""
    out = by_two_processes(gemma, tmp_path, TRAIN, 2)
    alone, together = (load_file(at / "adapter_model.safetensors") for at in (adapter, out))
    assert alone.keys() == together.keys()
    for name, weight in alone.items():
        assert torch.allclose(weight, together[name], atol=2e-5), name
    assert (
        "| Steps | 2, 2 stories each (1 at once x 1 batches x 2 processes), seed 42 |"
        in (out / "README.md").read_text()
    )
    assert "| Steps | 2, 2 stories each (1 at once x 2 batches), seed 42 |" in (adapter / "README.md").read_text()
    assert json.loads((out / "train.json").read_text())["report"]["processes"] == 2


@pytest.mark.timeout(600)
def test_two_processes_are_one_where_stories_do_not_divide(gemma: Path, tmp_path: Path) -> None:
    """Three stories by two processes: the fourth row of an epoch is nobody's, not the first one again."""
    records, steps = [record(number) for number in range(3)], 3
    alone = tmp_path / "alone"
    train_planner(records, [], alone, load_settings(None, TINY | {"steps": steps}), base=str(gemma), device="cpu")
    out = by_two_processes(gemma, tmp_path, records, steps)
    one, two = (load_file(at / "adapter_model.safetensors") for at in (alone, out))
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=2e-5), name


def test_packed_stories_do_not_see_one_another(gemma: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(gemma)
    model = AutoModelForCausalLM.from_pretrained(gemma, dtype=torch.float32).eval()
    model.config.get_text_config().use_cache = False
    rows, _ = encode(make_examples(TRAIN).kept, tokenizer, 8192)
    longest = sum(sorted(len(row["input_ids"]) for row in rows)[-2:])
    packed = pack(rows, longest)
    assert len(packed) == 2
    assert sum(len(row["input_ids"]) for row in packed) == sum(len(row["input_ids"]) for row in rows)
    assert all(len(row["input_ids"]) <= longest for row in packed)
    collate = Collator(tokenizer.pad_token_id, typed=True)

    def losses(given: list[dict[str, list[int]]]) -> tuple[float, int]:
        batch = collate(given)
        learnt = int((batch["labels"][:, 1:] != -100).sum())
        with torch.no_grad():
            return float(model(**batch).loss) * learnt, learnt

    apart = [losses([row]) for row in rows]
    together, learnt = losses(packed)  # two rows of different lengths: the shorter one is padded
    assert learnt == sum(count for _, count in apart)
    assert together == pytest.approx(sum(loss for loss, _ in apart), rel=1e-5)
    # Without positions that begin again, the later examples do see the earlier ones, and the loss is another.
    blind = [{name: row[name] for name in ("input_ids", "labels")} for row in packed]
    assert losses(blind)[0] != pytest.approx(together, rel=1e-4)


class Largest(TorchDispatchMode):  # type: ignore[misc]
    """Counts the bytes of the largest tensor that is made with a row of `width` numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, self.nbytes = width, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        found = made if isinstance(made, list | tuple) else [made]
        tensors = [one for one in found if isinstance(one, torch.Tensor) and one.shape[-1:] == (self.width,)]
        self.nbytes = max([self.nbytes, *(one.nbytes for one in tensors)])
        return made


@pytest.mark.parametrize("pictures", [True, False])
@pytest.mark.parametrize("items", [None, 37])
def test_the_loss_is_taken_in_parts(
    tmp_path: Path, pictures: bool, items: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same loss and gradients as transformers', two stories at once, of which one is padded; far fewer bytes."""
    examples = make_examples(TRAIN).kept
    folder = build_gemma(tmp_path / "base", [item.prompt + item.reply for item in examples], pictures=pictures)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = Collator(tokenizer.pad_token_id, typed=pictures)(encode(examples, tokenizer, 8192)[0][:2])
    given = batch if items is None else {**batch, "num_items_in_batch": items}
    monkeypatch.setattr(training_fit, "_LOGITS", 96 * len(tokenizer))
    found = []
    for parts in (False, True):
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).train()
        if parts:
            take_loss_in_parts(model)
        with Largest(len(tokenizer)) as largest:
            loss = model(**given).loss
            loss.backward()
        layer = next(value for name, value in model.named_parameters() if name.endswith("0.mlp.up_proj.weight"))
        found.append((float(loss), layer.grad, largest.nbytes))
    (loss, gradient, whole), (own, mine, less) = found
    assert own == pytest.approx(loss, rel=1e-6)
    assert torch.allclose(mine, gradient, rtol=1e-4, atol=1e-6)
    assert whole == 4 * batch["labels"].numel() * len(tokenizer)
    assert less == 4 * 96 * len(tokenizer) < whole / 10


def test_scores_that_are_changed_after_the_head_are_left_to_the_model(gemma: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(gemma)
    model.config.get_text_config().final_logit_softcapping = 30.0
    take_loss_in_parts(model)
    assert "forward" not in vars(model)


def test_a_packed_training_says_what_a_step_took(gemma: Path, tmp_path: Path) -> None:
    out = trained(gemma, tmp_path / "out", packing=True, steps=1, accumulation=1, max_length=8192)
    card = (out / "README.md").read_text()
    assert "| Steps | 1, 1 sequences of 4.0 stories each (1 at once x 1 batches), seed 42 |" in card


def test_the_best_checkpoint_is_kept(gemma: Path, tmp_path: Path) -> None:
    """At a learning rate far too high the last step is not the best one."""
    out, wild = tmp_path / "out", {"best": True, "learning_rate": 1.0, "steps": 3, "accumulation": 1, "warmup": 0.0}
    settings = load_settings(None, {**TINY, **wild})
    report = train_planner(TRAIN, HELD_OUT, out, settings, base=str(gemma), device="cpu")
    last = max((out / "checkpoints").glob("checkpoint-*/trainer_state.json"), key=lambda path: path.stat().st_mtime)
    measured = {
        row["step"]: row["eval_loss"] for row in json.loads(last.read_text())["log_history"] if "eval_loss" in row
    }
    seen = {step: loss for step, loss in measured.items() if step}
    assert report.best_step == min(seen, key=lambda step: seen[step])
    assert report.held_out_after == pytest.approx(min(seen.values()), abs=1e-4)
    assert f"the checkpoint of step {report.best_step}" in (out / "README.md").read_text()
    with pytest.raises(UsageError, match="no story is held out"):
        train_planner(TRAIN, [], tmp_path / "none", settings, base=str(gemma), device="cpu")


def test_the_base_learns_in_four_bits(gemma: Path, tmp_path: Path) -> None:
    pytest.importorskip("bitsandbytes")
    out = trained(gemma, tmp_path / "out", quantize="nf4", steps=1, accumulation=1)
    assert "nf4, QLoRA" in (out / "README.md").read_text()
    model, _ = local.load_weights(local.find_language_model(str(gemma)), "cpu", "float32", quantize="nf4")
    assert any(type(layer).__name__ == "Linear4bit" for layer in model.modules())


def test_four_bits_without_the_package_are_refused(
    gemma: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = local.find_spec
    monkeypatch.setattr(local, "find_spec", lambda name: None if name == "bitsandbytes" else found(name))
    with pytest.raises(MissingExtraError, match=r"need bitsandbytes.*pip install .*\[qlora\]"):
        trained(gemma, tmp_path / "out", quantize="nf4")
    assert not (tmp_path / "out").exists()


def test_settings_that_came_later_leave_older_folders_as_they_are() -> None:
    assert not {"quantize", "packing", "best"} & TrainSettings().decisive().keys()
    assert TrainSettings(packing=True).decisive()["packing"] is True


def test_a_merged_model_is_base_and_adapter(gemma: Path, adapter: Path, tmp_path: Path) -> None:
    out = tmp_path / "merged"
    done = CliRunner().invoke(app, ["train", "merge", str(adapter), "--out", str(out)], catch_exceptions=False)
    assert f"gemma-st:{out}" in done.stdout
    source = local.find_language_model(str(gemma))
    model, tokenizer = local.load_weights(source, "cpu", "float32")
    ids = tokenizer("The fox runs.", return_tensors="pt")["input_ids"]
    merged = AutoModelForCausalLM.from_pretrained(out, dtype=torch.float32).eval()
    with torch.no_grad():
        plain = model.eval()(input_ids=ids).logits
        taught = local.load_adapter(model, adapter, str(gemma)).eval()(input_ids=ids).logits
        found = merged(input_ids=ids).logits
    assert torch.allclose(found, taught, atol=1e-4)
    assert not torch.allclose(found, plain, atol=1e-3)
    assert GemmaPlanner(str(out)).spec()["without"] == ["links", "shots", "visual", "questions"]
    with pytest.raises(OutputFolderError, match="is there already"):
        merge_adapter(adapter, out)
    with pytest.raises(InputFileError, match="names no base model"):
        merge_adapter(tmp_path, tmp_path / "other")


def test_what_the_trained_planner_writes_is_counted(
    gemma: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(None, {**TINY, "steps": 1, "accumulation": 1})
    out = tmp_path / "random"
    monkeypatch.setattr(training, "GemmaPlanner", lambda *args, **more: GemmaPlanner(*args, **more, max_tokens=60))
    report = train_planner(TRAIN, HELD_OUT, out, settings, base=str(gemma), device="cpu", plans=5)
    assert report.plans is not None
    assert (report.plans.asked, report.plans.valid, report.plans.fields, report.plans.score) == (1, 0, None, None)
    assert "s4" in report.plans.failed
    assert "| Held-out plans | 0 of 1 valid, -% of the transition fields filled |" in (out / "README.md").read_text()

    class Gold(OraclePlanner):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__()

        def close(self) -> None:
            """Nothing to let go of."""

    monkeypatch.setattr(training, "GemmaPlanner", Gold)
    report = train_planner(TRAIN, HELD_OUT, tmp_path / "gold", settings, base=str(gemma), device="cpu", plans=5,
                           score=lambda record, plan: 40.0)  # fmt: skip
    assert report.plans is not None
    assert (report.plans.valid, report.plans.failed, report.plans.score) == (1, {}, 40.0)
    assert report.plans.fields == pytest.approx(100 * 5 / 6)


def test_the_steering_score_is_read_from_a_sketch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    story = record(1)
    plan = OraclePlanner().plan(story, PlanRequest(panels=2))
    assert steering_score(story, plan) is None
    # Two dimensions and two answers: one question is for steering, the other one for reporting.
    asked = [
        {"question_id": f"q_{kind}", "story_id": "s1", "question_type": kind, "question": question, "gold_answer": gold,
         "accepted_answers": [gold], "options": ["the lion", "the mouse", "the fox", "Unclear"], "target_scene": 2,
         "target_transition": [1, 2], "evidence_scenes": [1, 2]}
        for kind, question, gold in (("action_visibility", "Who runs?", "the lion"),
                                     ("consequence", "Who hides?", "the mouse"))
    ]  # fmt: skip
    whole = StoryRecord.model_validate({**story.model_dump(), "recoverability_questions": asked})
    assert steering_score(whole, plan) in {0.0, 100.0}
