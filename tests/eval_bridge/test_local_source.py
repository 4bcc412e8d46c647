"""What a local model's folder must hold, and what is said when it does not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_vlm import build

from katha.errors import InputFileError, KathaError, MissingExtraError, ModelError, UsageError
from katha.eval_bridge.judges import local as local_source
from katha.eval_bridge.judges.local import LocalJudge, reusable
from katha.eval_bridge.packets.instructions import reply_schema
from katha.models.checkpoints import ModelSource
from katha.protocols import Evidence, JudgePrompt

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("idefics3", tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "model"))


def put(folder: Path, **options: Any) -> str:
    judge = LocalJudge(str(folder), **({"device": "cpu"} | options))
    asked = JudgePrompt("Why?", "causal", "Choose.", ("A", "Unclear"), reply_schema("text", ("A", "Unclear")))
    return next(judge.ask(Evidence("text", (), "A fox sleeps."), [asked])).status


def change(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def drop_weight(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    path = next(folder.glob("*.safetensors"))
    weights = load_file(path)
    weights.pop(next(name for name in weights if "q_proj" in name))
    save_file(weights, path, metadata={"format": "pt"})


def cut_weights(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    path.write_bytes(path.read_bytes()[:-100])


BREAKS: dict[str, tuple[Callable[[Path], object], type[KathaError], str]] = {
    "no config": (lambda at: (at / "config.json").unlink(), InputFileError, "no config.json"),
    "half a config": (lambda at: (at / "config.json").write_text('{"arch'), InputFileError, "config.json"),
    "no architecture": (
        lambda at: change(at / "config.json", lambda value: value.pop("architectures")),
        InputFileError,
        "names no architecture",
    ),
    "a language model": (
        lambda at: change(
            at / "config.json", lambda value: value.update(model_type="gpt2", architectures=["GPT2LMHeadModel"])
        ),
        UsageError,
        "GPT2LMHeadModel, not a vision-language model",
    ),
    "no weights": (lambda at: next(at.glob("*.safetensors")).unlink(), InputFileError, "holds no weights"),
    "cut weights": (cut_weights, InputFileError, "cannot be loaded"),
    "a weight missing": (drop_weight, InputFileError, "lacks 1 weights"),
    "another shape": (
        lambda at: change(at / "config.json", lambda value: value["text_config"].update(intermediate_size=48)),
        InputFileError,
        "cannot be loaded",
    ),
    "no tokenizer": (
        lambda at: [path.unlink() for path in at.glob("tokenizer*")],
        InputFileError,
        "cannot be loaded",
    ),
    "a template that is cut": (
        lambda at: (at / "chat_template.jinja").write_text("{% for message in messages %}{{ mess"),
        InputFileError,
        "holds what cannot be",
    ),
    "a stop that is not a number": (
        lambda at: change(at / "generation_config.json", lambda value: value.update(eos_token_id=["x", {}])),
        InputFileError,
        "holds what cannot be",
    ),
    "a list of layers that is none": (
        lambda at: change(at / "config.json", lambda value: value["text_config"].update(layer_types=7)),
        InputFileError,
        "holds what cannot be",
    ),
    "architectures that are none": (
        lambda at: change(at / "config.json", lambda value: value.update(architectures={"a": 1})),
        InputFileError,
        "names no architecture",
    ),
    "no chat template": (lambda at: (at / "chat_template.jinja").unlink(), InputFileError, "no chat template"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_folder_is_named(folder: Path, name: str) -> None:
    break_it, error, words = BREAKS[name]
    break_it(folder)
    with pytest.raises(error, match=words) as caught:
        put(folder)
    assert caught.value.hint
    assert str(folder) in caught.value.message


def test_a_whole_folder_answers(whole: Path) -> None:
    assert put(whole) == "ok"


@pytest.mark.parametrize(
    ("argument", "error", "words"),
    [
        (None, UsageError, "needs a model"),
        ("/no/such/folder", InputFileError, "no model folder"),
        ("./missing", InputFileError, "no model folder"),
        ("not a model", InputFileError, "no model folder"),
        ("nobody/has-this-model", ModelError, "is not on this machine.*hf download nobody/has-this-model"),
    ],
)
def test_a_missing_model_is_named(argument: str | None, error: type[KathaError], words: str) -> None:
    with pytest.raises(error, match=words):
        LocalJudge(argument)


@pytest.mark.parametrize(
    ("stored", "device", "dtype"),
    [
        ("float32", "cuda", "bfloat16"),
        (None, "cuda:1", "bfloat16"),
        ("float16", "cuda", "float16"),
        ("bfloat16", "mps", "bfloat16"),
        ("bfloat16", "cpu", "float32"),
    ],
)
def test_weights_stored_in_float32_are_read_in_half_on_an_accelerator(
    folder: Path, stored: str | None, device: str, dtype: str
) -> None:
    def edit(value: dict[str, Any]) -> None:
        for part in (value, value["text_config"]):
            part.pop("torch_dtype", None)
            part["dtype"] = stored

    change(folder / "config.json", edit)
    assert LocalJudge(str(folder), device=device).spec()["dtype"] == dtype
    assert LocalJudge(str(folder), device=device, dtype="float32").spec()["dtype"] == "float32"
    source = ModelSource("x", folder, "r", json.loads((folder / "config.json").read_text()))
    whole = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    if stored == "float32":
        assert source.bytes_in("bfloat16") == whole // 2


def test_a_missing_revision_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="hf download o/n --revision v2"):
        LocalJudge("o/n", revision="v2")


def test_a_downloaded_model_is_known_by_its_commit(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "models--o--n"
    shutil.copytree(whole, repository / "snapshots" / COMMIT)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    spec = LocalJudge("o/n", device="cpu").spec()
    assert (spec["name"], spec["revision"]) == ("local:o/n", COMMIT)
    assert LocalJudge("o/n", revision=COMMIT, device="cpu").spec() == spec


def test_missing_packages_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = local_source.find_spec
    monkeypatch.setattr(local_source, "find_spec", lambda name: None if name in {"xgrammar", "torch"} else found(name))
    with pytest.raises(MissingExtraError, match=r"torch, xgrammar.*pip install .*\[local\]"):
        LocalJudge("x")


def test_wrong_settings_are_named(whole: Path) -> None:
    with pytest.raises(UsageError, match="reuse is batched, sequential, off"):
        LocalJudge(str(whole), reuse="sometimes")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="has no revision"):
        LocalJudge(str(whole), revision="main")
    with pytest.raises(UsageError, match="cannot be put on 'nowhere'"):
        put(whole, device="nowhere")


def test_the_spec_tells_everything_apart(whole: Path, folder: Path) -> None:
    def spec(at: Path = whole, **options: Any) -> dict[str, Any]:
        return {**LocalJudge(str(at), **({"device": "cpu"} | options)).spec(), "name": ""}

    assert spec() == spec(folder)
    json.dumps(spec())
    assert spec()["revision"].startswith("sha256:")
    assert spec()["dtype"] == "float32"
    different = [spec(), spec(dtype="bfloat16"), spec(reuse="off"), spec(reuse="sequential"), spec(max_new_tokens=9)]
    drop_weight(folder)
    different += [spec(folder), spec(structured=False)]
    assert len({json.dumps(one, sort_keys=True) for one in different}) == len(different)


def test_an_architecture_off_the_list_is_asked_without_reuse(folder: Path) -> None:
    def reason(architecture: str, **text: Any) -> str | None:
        return reusable(ModelSource("x", folder, "r", {"architectures": [architecture], "text_config": text}))[0]

    assert "not known to share" in (reason("MllamaForConditionalGeneration") or "")
    assert reason("Gemma3ForConditionalGeneration", layer_types=["sliding_attention", "full_attention"]) is None
    # LLaVA over Mistral names a window and nothing else; over Qwen it names one that is not used.
    assert "sliding window" in (reason("LlavaNextForConditionalGeneration", sliding_window=4096) or "")
    assert reason("LlavaNextForConditionalGeneration", sliding_window=None) is None
    assert reason("Qwen2VLForConditionalGeneration", sliding_window=32768, use_sliding_window=False) is None
    change(folder / "config.json", lambda value: value["text_config"].update(use_sliding_window=True))
    judge = LocalJudge(str(folder), device="cpu")
    assert judge.spec()["reuse"] == "off"
    assert "sliding window" in judge.spec()["note"]
    assert judge.spec()["note"].endswith("asked without reuse")
    assert put(folder) == "ok"
