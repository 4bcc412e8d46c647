"""open_clip's real classes with small random models: unit vectors, features kept by content, a run that uses them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from doubles import BlockRenderer, PixelJudge, ScenePlanner, story
from PIL import Image

from katha.agents.context import Plugins
from katha.agents.run import run_story
from katha.compass.openclip import OpenClipSimilarity
from katha.config import Settings
from katha.errors import AbsentModelError, UsageError
from katha.registry import default_registry

TEXT = {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1}
MODELS: dict[str, dict[str, Any]] = {
    "tiny-clip": {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 8},
        "text_cfg": TEXT,
    },
    "tiny-sigmoid": {
        "embed_dim": 64,
        "init_logit_bias": -10,
        "custom_text": True,
        "vision_cfg": {"image_size": 160, "timm_model_name": "test_vit", "timm_pool": "", "timm_proj": "linear"},
        "text_cfg": {**TEXT, "width": 64, "no_causal_mask": True, "proj_bias": True, "pool_type": "last"},
    },
}
"""CLIP's own form, and SigLIP's: a timm tower, a logit bias, text without a causal mask, pooled at the last place."""


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Each small model's name with a checkpoint of random values."""
    folder = tmp_path_factory.mktemp("models")
    found = {}
    for name, config in MODELS.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    for name in MODELS:
        torch.manual_seed(7)
        model = open_clip.create_model(name)
        torch.save(model.state_dict(), folder / f"{name}.pt")
        found[name] = f"{name}@{folder / f'{name}.pt'}"
    return found


def picture(shade: int) -> bytes:
    values = np.random.default_rng(shade).integers(0, 255, (48, 64, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("name", MODELS)
def test_vectors_are_unit_and_are_the_model_s_own(weights: dict[str, str], name: str) -> None:
    similarity = OpenClipSimilarity(weights[name])
    image, text = similarity.encode_image(picture(1)), similarity.encode_text("The mouse bites the net.")
    assert image.shape == text.shape
    assert np.linalg.norm(image) == pytest.approx(1.0)
    assert np.linalg.norm(text) == pytest.approx(1.0)
    assert not np.allclose(image, similarity.encode_image(picture(2)))
    model, _, prepare = open_clip.create_model_and_transforms(name, pretrained=weights[name].partition("@")[2])
    model.eval()
    with torch.inference_mode():
        batch = prepare(Image.open(io.BytesIO(picture(1))).convert("RGB")).unsqueeze(0)
        expected = model.encode_image(batch, normalize=True)[0].numpy()
        words = model.encode_text(open_clip.get_tokenizer(name)(["The mouse bites the net."]), normalize=True)[
            0
        ].numpy()
    assert np.allclose(image, expected, atol=1e-5)
    assert np.allclose(text, words, atol=1e-5)


def test_features_are_computed_once_and_outlive_the_process(weights: dict[str, str], tmp_path: Path) -> None:
    first = OpenClipSimilarity(weights["tiny-clip"], cache=tmp_path)
    kept = first.encode_image(picture(1)), first.encode_text("The mouse bites the net.")
    second = OpenClipSimilarity(weights["tiny-clip"], cache=tmp_path)
    second._image = second._text = None  # type: ignore[method-assign,assignment]
    assert np.allclose(second.encode_image(picture(1)), kept[0])
    assert np.allclose(second.encode_text("The mouse bites the net."), kept[1])


def test_the_frames_of_a_board_are_encoded_in_one_go(weights: dict[str, str], tmp_path: Path) -> None:
    one, many = (OpenClipSimilarity(weights["tiny-clip"], cache=tmp_path / name) for name in ("one", "many"))
    batches: list[int] = []
    encode = many._encoder.encode_images

    def counted(images: Sequence[bytes]) -> Any:
        batches.append(len(images))
        return encode(images)

    many._encoder.encode_images = counted  # type: ignore[method-assign]
    frames = [picture(number) for number in (1, 2, 1, 3)]
    found = many.encode_images(frames)
    assert batches == [3]
    assert found == pytest.approx(np.stack([one.encode_image(png) for png in frames]), abs=1e-6)
    assert np.array_equal(many.encode_images(frames[:1]), found[:1])
    assert batches == [3]


def test_it_computes_on_the_accelerator(weights: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("katha.eval_bridge.metrics.encoders.best_device", lambda: "meta")
    named = {None: "meta", "cpu": None, "cuda:1": "cuda"}  # the values differ in their last places: other features
    for given, kind in named.items():
        encoder = OpenClipSimilarity(weights["tiny-clip"], device=given)._encoder
        encoder.__dict__["_weights_sha256"] = "0"
        assert encoder._device == (given or "meta")
        assert encoder.spec().get("device") == kind


@pytest.mark.parametrize("argument", ["ViT-B-32@laion2b_s34b_b79k", "hf-hub:timm/ViT-B-16-SigLIP"])
def test_nothing_is_fetched(argument: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*_: object, **__: object) -> None:
        raise AssertionError("open_clip was asked to load what is not here")

    monkeypatch.setattr(open_clip, "create_model_and_transforms", fetched)
    with pytest.raises(AbsentModelError, match="is not on this machine") as caught:
        OpenClipSimilarity(argument).spec()
    assert caught.value.hint is not None
    assert "hf download " in caught.value.hint


def test_weights_that_were_fetched_are_read_from_their_folder(
    weights: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = OpenClipSimilarity(weights["tiny-clip"]).encode_image(picture(1))
    (tmp_path / "open_clip_pytorch_model.bin").write_bytes(Path(weights["tiny-clip"].partition("@")[2]).read_bytes())
    monkeypatch.setattr(open_clip, "get_pretrained_cfg", lambda name, tag: {"hf_hub": "owner/tiny/"})
    asked: list[str] = []
    monkeypatch.setattr("katha.eval_bridge.metrics.encoders.find_folder", lambda name: asked.append(name) or tmp_path)
    assert OpenClipSimilarity("tiny-clip@tag").encode_image(picture(1)) == pytest.approx(given)
    assert asked == ["owner/tiny"]


def test_other_weights_are_another_model(weights: dict[str, str], tmp_path: Path) -> None:
    torch.manual_seed(8)
    model = open_clip.create_model("tiny-clip")
    torch.save(model.state_dict(), tmp_path / "other.pt")
    other = OpenClipSimilarity(f"tiny-clip@{tmp_path / 'other.pt'}", cache=tmp_path)
    same = OpenClipSimilarity(weights["tiny-clip"], cache=tmp_path)
    assert other.spec() != same.spec()
    assert not np.allclose(other.encode_image(picture(1)), same.encode_image(picture(1)))


def test_a_long_text_is_read_to_its_end(weights: dict[str, str]) -> None:
    similarity = OpenClipSimilarity(weights["tiny-clip"])
    long = "The mouse bites the net. " * 8
    assert not np.allclose(
        similarity.encode_text(f"{long}The lion is free."), similarity.encode_text(f"{long}The lion weeps at night.")
    )


def test_a_run_measures_coverage_and_copies_with_it(
    weights: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    similarity = default_registry("similarities").create(f"open-clip:{weights['tiny-clip']}")
    made = Plugins(ScenePlanner(), BlockRenderer(), {"pixel": PixelJudge()}, similarity)
    config = Settings(planner="scenes", renderer="block", judges=("pixel",), mode="rerank_only")
    result = run_story(story(), config, tmp_path / "out", plugins=made)
    found = result.candidates.candidates[0]
    frames = [(tmp_path / "out" / frame.image).read_bytes() for frame in found.board.frames]
    vectors = [similarity.encode_image(png) for png in frames]
    assert found.transitions[0].adjacent == pytest.approx(float(vectors[0] @ vectors[1]))
    assert json.loads((tmp_path / "out" / "run.json").read_text())["similarity"]["model"] == "tiny-clip"


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (None, "needs a model"),
        ("ViT-B-32", "names no weights"),
        ("no-such-model@x", "cannot be loaded"),
        ("ViT-B-32@/no/such/file.pt", "cannot be loaded"),
    ],
)
def test_a_model_that_cannot_be_had_is_a_sentence(argument: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        OpenClipSimilarity(argument).spec()
