"""The measures that everybody knows, on vectors by hand and on the real classes at toy size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from metric_boards import make_board, make_context, plain_picture, tiny_clip
from PIL import Image
from skimage.metrics import structural_similarity
from torchmetrics.functional.image import learned_perceptual_image_patch_similarity
from torchvision.models import squeezenet1_1
from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

from katha.eval_bridge.metrics import measure_board, unit
from katha.eval_bridge.metrics.encoders import OpenClipEncoder
from katha.eval_bridge.metrics.general import (
    ClipImage,
    ClipText,
    DinoLikeness,
    NeighbourDistance,
    NeighbourSsim,
    VqaScore,
)
from katha.pictures import decode
from katha.protocols import JudgeReply
from katha.testing import ScriptedJudge, scripted_words


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_clip(tmp_path_factory.mktemp("clip"))


def test_clip_t_is_the_cosine_of_the_model_s_own_vectors(clip: str, tmp_path: Path) -> None:
    board = make_board(["A fox sleeps.", None, "The fox runs."])
    found = list(measure_board(ClipText(model=clip), board, make_context(tmp_path)))
    assert [(value.frame, value.reason) for value in found] == [
        *((1, None), (2, "the frame has no text of its own"), (3, None)),
    ]
    name, _, weights = clip.partition("@")
    model, _, prepare = open_clip.create_model_and_transforms(name, pretrained=weights)
    with torch.inference_mode():
        for at, text in ((0, "A fox sleeps."), (2, "The fox runs.")):
            path = tmp_path / "frame.png"
            path.write_bytes(board.images[at])
            picture = model.eval().encode_image(prepare(Image.open(path).convert("RGB")).unsqueeze(0), normalize=True)
            words = model.encode_text(open_clip.get_tokenizer(name)([text]), normalize=True)
            assert found[at].value == pytest.approx(float((picture * words).sum()), abs=1e-5)


def test_a_board_without_texts_has_no_clip_t(clip: str, tmp_path: Path) -> None:
    found = list(measure_board(ClipText(model=clip), make_board([None, None]), make_context(tmp_path)))
    assert [value.reason for value in found] == ["no frame has a text of its own: the story has no scenes and no plan"]
    assert np.all([value.value is None for value in found])


def test_clip_i_is_held_against_gold_pictures_and_neighbours(clip: str, tmp_path: Path) -> None:
    pictures = [plain_picture(at) for at in range(3)]
    board = make_board(["one", None, "two"], images=pictures, references=[pictures[0], pictures[1]])
    context = make_context(tmp_path)
    found = list(measure_board(ClipImage(model=clip), board, context))
    rows = unit(context.features.images(OpenClipEncoder(clip, cut=True), pictures))
    values = {(value.part, value.frame): value.value for value in found}
    assert values == {
        ("neighbours", 2): pytest.approx(rows[0] @ rows[1]),
        ("neighbours", 3): pytest.approx(rows[1] @ rows[2]),
        ("reference", 1): pytest.approx(1.0),
        ("reference", 2): None,
        ("reference", 3): pytest.approx(rows[2] @ rows[1]),
    }
    alone = list(measure_board(ClipImage(model=clip), make_board(["one"]), context))
    assert {value.part: value.reason for value in alone} == {
        "neighbours": "the board has one frame",
        "reference": "the story has no reference pictures: give --references",
    }


def test_dino_is_the_cosine_of_class_tokens(tmp_path: Path) -> None:
    folder = tmp_path / "dino"
    torch.manual_seed(3)
    config = Dinov2Config(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, image_size=28, patch_size=14, mlp_ratio=2
    )
    Dinov2Model(config).save_pretrained(folder)
    BitImageProcessor(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}).save_pretrained(folder)
    board = make_board(["one", "two"])
    found = list(measure_board(DinoLikeness(model=str(folder)), board, make_context(tmp_path)))
    model, processor = Dinov2Model.from_pretrained(folder).eval(), BitImageProcessor.from_pretrained(folder)
    with torch.inference_mode():
        batch = processor(images=[decode(data) for data in board.images], return_tensors="pt")
        rows = torch.nn.functional.normalize(model(**batch).last_hidden_state[:, 0], dim=-1)
    assert found[0].value == pytest.approx(float(rows[0] @ rows[1]), abs=1e-5)


def test_vqascore_is_the_probability_of_yes(tmp_path: Path) -> None:
    judge = ScriptedJudge([scripted_words(Yes=0.6, yes=0.1, No=0.3), JudgeReply("refused", error="no")])
    found = list(
        measure_board(VqaScore(), make_board(["A fox sleeps.", None, "It runs."]), make_context(tmp_path, judge))
    )
    assert [(value.frame, value.value, value.reason) for value in found] == [
        (1, pytest.approx(0.7), None),
        (2, None, "the frame has no text of its own"),
        (3, None, "refused: no"),
    ]
    assert judge.asked[0][1].text == 'Does this figure show "A fox sleeps."? Please answer yes or no.'


def test_lpips_is_torchmetrics_own_and_nothing_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    images = [plain_picture(1), plain_picture(1), plain_picture(2)]
    board = make_board(["one", "two", "three"], images=images)
    missing = list(measure_board(NeighbourDistance(net="squeeze"), board, make_context(tmp_path)))
    assert "The weights of LPIPS are not on this machine" in str(missing[0].reason)
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    torch.manual_seed(5)
    torch.save(squeezenet1_1().state_dict(), tmp_path / "hub" / "checkpoints" / "squeezenet1_1-b8a52dc0.pth")
    found = list(measure_board(NeighbourDistance(net="squeeze"), board, make_context(tmp_path)))
    assert [(value.frame, value.reason) for value in found] == [(2, None), (3, None)]
    assert found[0].value == pytest.approx(0.0, abs=1e-6)
    tensors = [
        torch.from_numpy(np.asarray(decode(data).resize((256, 256)), np.float32) / 255).permute(2, 0, 1)[None]
        for data in images[1:]
    ]
    own = learned_perceptual_image_patch_similarity(*tensors, net_type="squeeze", normalize=True)
    assert found[1].value == pytest.approx(float(own), abs=1e-6)
    assert float(own) > 0


def test_ssim_is_scikit_image_s_with_the_paper_s_window(tmp_path: Path) -> None:
    images = [plain_picture(1), plain_picture(1), plain_picture(2)]
    found = list(measure_board(NeighbourSsim(), make_board(["a", "b", "c"], images=images), make_context(tmp_path)))
    grey = [np.asarray(decode(data).convert("L").resize((256, 256)), float) for data in images]
    own = structural_similarity(
        grey[1], grey[2], gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=255
    )
    assert [value.value for value in found] == [pytest.approx(1.0), pytest.approx(own, abs=1e-6)]
    assert 0 < own < 0.9


def test_one_frame_has_no_neighbour(tmp_path: Path) -> None:
    found = list(measure_board(NeighbourDistance(), make_board(["one"]), make_context(tmp_path)))
    assert [value.reason for value in found] == ["the board has one frame"]
