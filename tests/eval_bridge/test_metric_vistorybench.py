"""ViStoryBench's measures on boards whose characters are coloured squares, and the real models at toy size."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from metric_boards import CLIP_CONFIG, make_board, make_context, plain_picture, tiny_clip
from PIL import Image, ImageDraw

from katha.errors import InputFileError, UnknownPluginError, UsageError
from katha.eval_bridge.metrics import Features, MetricBoard, measure_board, measure_set
from katha.eval_bridge.metrics.detectors import (
    DetectedBox,
    Finder,
    GroundingDino,
    crop,
    make_detector,
    mirrored,
    resized,
)
from katha.eval_bridge.metrics.encoders import make_encoder
from katha.eval_bridge.metrics.vistory_characters import VistoryCharacters, VistoryStyle
from katha.eval_bridge.metrics.vistory_judged import VistoryPrompts
from katha.eval_bridge.metrics.vistory_sets import VistoryAesthetics, VistoryInception
from katha.pictures import decode
from katha.protocols import Evidence, PlainPrompt
from katha.registry import default_registry
from katha.schema import StoryRecord
from katha.schema.metrics import MetricValue
from katha.testing import ScriptedJudge

RED, GREEN, BLUE = (220, 30, 40), (30, 200, 60), (40, 60, 210)
SIDE = 16


@default_registry("detectors").register("squares")
class Squares:
    """Finds squares of SIDE pixels that are not white, on a grid."""

    looked = 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "squares"}

    def find(self, image: bytes, what: str) -> list[DetectedBox]:
        assert what == "character"
        type(self).looked += 1
        pixels = np.asarray(decode(image)).astype(int)
        places = itertools.product(range(0, pixels.shape[0], SIDE), range(0, pixels.shape[1], SIDE))
        return [
            DetectedBox(x, y, x + SIDE, y + SIDE, 0.9)
            for y, x in places
            if pixels[y : y + SIDE, x : x + SIDE].mean() < 250
        ]


@default_registry("encoders").register("colour")
class Colour:
    """The mean colour of a picture's left and right half."""

    def spec(self) -> Mapping[str, Any]:
        return {"name": "colour"}

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        return np.stack([colour(data) for data in images])


@default_registry("encoders").register("brightness")
class Brightness:
    """One number a picture."""

    def spec(self) -> Mapping[str, Any]:
        return {"name": "brightness"}

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        return np.array([[np.asarray(decode(data)).mean() / 25] for data in images])


@default_registry("encoders").register("halves")
class Halves:
    """Two classes, by the left upper pixel's red."""

    def spec(self) -> Mapping[str, Any]:
        return {"name": "halves"}

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        share = [np.asarray(decode(data))[0, 0, 0] / 255 for data in images]
        return np.array([[each, 1 - each] for each in share])


def colour(data: bytes) -> np.ndarray:
    pixels = np.asarray(decode(data)).astype(float)
    half = max(1, pixels.shape[1] // 2)
    return np.concatenate([pixels[:, :half].mean(axis=(0, 1)), pixels[:, -half:].mean(axis=(0, 1))])


def scene(*squares: tuple[int, ...], size: tuple[int, int] = (64, 32)) -> bytes:
    """Return a white picture with squares of these colours in its upper row."""
    picture = Image.new("RGB", size, "white")
    for at, shade in enumerate(squares):
        ImageDraw.Draw(picture).rectangle((at * SIDE, 0, at * SIDE + SIDE - 1, SIDE - 1), fill=shade)
    held = io.BytesIO()
    picture.save(held, "PNG")
    return held.getvalue()


def near(shade: tuple[int, ...], by: int) -> tuple[int, ...]:
    return tuple(min(255, max(0, value + by)) for value in shade)


REFERENCES = {"Ann": [scene(RED, size=(SIDE, SIDE)), scene(near(RED, 25), size=(SIDE, SIDE))], "Ben": [scene(BLUE)]}
FRAMES = [scene(near(BLUE, 30), near(RED, 20)), scene(near(RED, -15)), scene()]
CAST = [["Ann", "Ben"], ["Ann", "Ben"], []]


def board_of(
    frames: Sequence[bytes] = FRAMES,
    cast: Sequence[Sequence[str]] = CAST,
    references: Mapping[str, Sequence[bytes]] = REFERENCES,
) -> MetricBoard:
    """Return a board of ViStoryBench's form."""
    board = make_board([f"Scene {at}." for at in range(len(frames))], images=frames, characters=references)
    scenes = [
        {**item.model_dump(), "characters": list(names), "setting_description": "A white room",
         "shot_perspective": "Wide shot", "static_shot": f"{' and '.join(names)} stand."}
        for item, names in zip(board.record.scenes, cast, strict=True)
    ]  # fmt: skip
    record = StoryRecord.model_validate({**board.record.model_dump(), "scenes": scenes})
    return replace(board, record=record)


def only(found: Sequence[MetricValue], part: str) -> MetricValue:
    (value,) = [value for value in found if value.part == part and value.frame is None]
    return value


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


OWN = {"detector": "squares", "encoder": "colour"}


@pytest.mark.parametrize("mode", ["paper", "code"])
def test_characters_against_a_count_by_hand(tmp_path: Path, mode: Any) -> None:
    looked = Squares.looked
    context = make_context(tmp_path, mode=mode)
    found = list(measure_board(VistoryCharacters(**OWN), board_of(), context))
    assert Squares.looked - looked == 6, "a picture is looked at once, references too"

    def piece(shade: tuple[int, ...]) -> np.ndarray:
        return colour(scene(shade, size=(SIDE, SIDE)))

    crops = {"Ann": [piece(near(RED, 20)), piece(near(RED, -15))], "Ben": [piece(near(BLUE, 30))]}
    pictures = {"Ann": [piece(RED), piece(near(RED, 25))], "Ben": [piece(BLUE)]}
    table = {name: [[cosine(row, one) for one in pictures[name]] for row in rows] for name, rows in crops.items()}
    own = cosine(*crops["Ann"])
    assert only(found, "occm").value == pytest.approx((100 + 100 * math.exp(-1 / 2)) / 2, abs=1e-3)
    if mode == "paper":
        best = [max(row) for rows in table.values() for row in rows]
        assert only(found, "cids_cross").value == pytest.approx(sum(best) / 3, abs=1e-6)
        assert only(found, "cids_self").value == pytest.approx(own, abs=1e-6)
        rates = [1 / (1 + math.exp((row[1] - row[0]) / 0.01)) for row in table["Ann"]]
        assert only(found, "copy_paste").value == pytest.approx(sum(rates) / 2, abs=1e-5)
    else:
        cross = [float(np.mean(table["Ann"])), float(np.mean(table["Ben"]))]
        assert only(found, "cids_cross").value == pytest.approx(sum(cross) / 2, abs=1e-6)
        assert only(found, "cids_self").value == pytest.approx((own + 1) / 2, abs=1e-6)
        assert only(found, "copy_paste").value == pytest.approx(0.5, abs=1e-5), "squares are their own mirror image"


@pytest.mark.parametrize(
    ("board", "reasons"),
    [
        (
            board_of(references={}),
            dict.fromkeys(("cids_cross", "cids_self", "copy_paste"), "there is no reference picture of its characters"),
        ),
        (
            board_of(cast=[[], [], []]),
            dict.fromkeys(
                ("occm", "cids_cross", "cids_self", "copy_paste"), "the story says of no frame who is on stage"
            ),
        ),
        (
            board_of(frames=[scene(), scene(), scene()]),
            dict.fromkeys(("cids_cross", "cids_self", "copy_paste"), "no character was found in any frame"),
        ),
        (
            board_of(frames=FRAMES[1:2], cast=[["Ben"]]),
            {
                "cids_self": "no character was found twice",
                "copy_paste": "no character has two references",
            },
        ),
        (board_of(), {}),
    ],
)
def test_what_characters_cannot_be_measured_on(tmp_path: Path, board: MetricBoard, reasons: dict[str, str]) -> None:
    found = list(measure_board(VistoryCharacters(**OWN), board, make_context(tmp_path)))
    assert {value.part: value.reason for value in found if value.value is None} == reasons


def test_photographed_characters_need_a_face_model(tmp_path: Path) -> None:
    record = board_of().record.model_dump() | {"cast": {name: {"tag": "realistic_human"} for name in REFERENCES}}
    board = replace(board_of(), record=StoryRecord.model_validate(record))
    found = list(measure_board(VistoryCharacters(**OWN), board, make_context(tmp_path)))
    reason = only(found, "cids_cross").reason
    assert reason is not None
    assert "face=PLUGIN" in reason
    found = list(measure_board(VistoryCharacters(**OWN, face="colour"), board, make_context(tmp_path)))
    assert only(found, "cids_cross").value is not None


def test_style_of_frames_and_of_references(tmp_path: Path) -> None:
    found = list(measure_board(VistoryStyle(encoder="colour"), board_of(), make_context(tmp_path)))
    frames, first = [colour(data) for data in FRAMES], [colour(REFERENCES[name][0]) for name in REFERENCES]
    pairs = [cosine(one, other) for one, other in itertools.combinations(frames, 2)]
    cross = [sum(cosine(row, one) for one in first) / 2 for row in frames]
    assert only(found, "csd_self").value == pytest.approx(sum(pairs) / 3, abs=1e-6)
    assert only(found, "csd_cross").value == pytest.approx(sum(cross) / 3, abs=1e-6)
    one = list(measure_board(VistoryStyle(encoder="colour"), board_of(FRAMES[:1], CAST[:1]), make_context(tmp_path)))
    assert only(one, "csd_self").reason == "one frame has no pair"
    with pytest.raises(UsageError, match="encoder of style"):
        VistoryStyle()


def test_prompt_alignment_asks_three_of_the_frame_and_one_of_each_character(tmp_path: Path) -> None:
    def reply(evidence: Evidence, prompt: PlainPrompt) -> str:
        width = Image.open(io.BytesIO(evidence.images[0])).width
        if "Character name: Ann" in prompt.text:
            assert width == SIDE, "an action is asked of the character's own crop"
            return "Analysis: fine.\nScore: 3"
        if "Character name: Ben" in prompt.text:
            return "Score: 2"
        assert width == 64
        for words, score in (("shot type", 4), ("background", 1), ("main character", 2)):
            if words in prompt.text:
                return f"Score: {score}"
        raise AssertionError(prompt.text)

    judge = ScriptedJudge(reply)
    found = list(measure_board(VistoryPrompts(**OWN), board_of(), make_context(tmp_path, judge)))
    assert only(found, "action").value == pytest.approx((2.5 + 3) / 2)
    assert only(found, "alignment").value == pytest.approx((1 + 4 + 2 + 2.75) / 4)
    assert {value.part for value in found if value.frame == 3} == {"scene", "shot", "interaction"}
    code = list(measure_board(VistoryPrompts(**OWN), board_of(), make_context(tmp_path, judge, mode="code")))
    assert only(code, "action").value == round((round(2.5) + 3) / 2)


def test_an_alignment_without_a_score_is_asked_again_and_then_a_null(tmp_path: Path) -> None:
    replies = ["hm", "Score: 9", "Score: 1", *["hm"] * 40]
    judge = ScriptedJudge(replies)
    board = board_of(FRAMES[:1], CAST[:1], {})
    found = list(measure_board(VistoryPrompts(), board, make_context(tmp_path, judge)))
    assert [value.value for value in found if value.frame == 1] == [1.0, None, None]
    assert [prompt.temperature for _, prompt in judge.asked[:3]] == [0.0, 0.1, 0.2]
    assert only(found, "action").reason == "there is no reference picture of its characters"
    assert only(found, "alignment").reason == "no score of: shot, interaction, action"
    plain = list(
        measure_board(VistoryPrompts(), make_board(), make_context(tmp_path, ScriptedJudge(lambda *_: "Score: 4")))
    )
    assert {value.reason for value in plain if value.frame == 1 and value.value is None} == {
        "the script does not tell the setting",
        "the script does not tell the camera",
    }


def test_inception_and_aesthetics(tmp_path: Path) -> None:
    boards = [board_of(FRAMES), board_of(FRAMES[:2], CAST[:2])]
    (found,) = measure_set(VistoryInception(encoder="halves"), "mine", boards, make_context(tmp_path))
    rows = Halves().encode_images([*FRAMES, *FRAMES[:2]]).astype(np.float32).astype(float)
    mean = rows.mean(axis=0)
    kl = [sum(p * math.log(p / q) for p, q in zip(row, mean, strict=True) if p > 0) for row in rows]
    assert found.value == pytest.approx(math.exp(sum(kl) / len(kl)), abs=1e-9)
    assert found.n == 5
    (none,) = measure_set(VistoryInception(encoder="halves"), "mine", [], make_context(tmp_path))
    assert none.reason == "fewer than two frames in all"

    scores = list(measure_board(VistoryAesthetics(encoder="brightness"), board_of(), make_context(tmp_path)))
    assert [value.value for value in scores] == pytest.approx(
        [float(row[0]) for row in Brightness().encode_images(FRAMES)], abs=1e-5
    )
    wide = list(measure_board(VistoryAesthetics(encoder="colour"), board_of(), make_context(tmp_path)))
    assert wide[0].reason == "the predictor gives 6 numbers a picture, not one"
    with pytest.raises(UsageError, match="predictor") as refused:
        VistoryAesthetics()
    assert "AGPL-3.0" in str(refused.value.hint)


def test_pictures_are_cut_mirrored_and_resized() -> None:
    picture = scene(RED, BLUE)
    piece = crop(picture, DetectedBox(SIDE - 4, -5, SIDE + 4, 8, 1.0))
    assert piece is not None
    assert decode(piece).size == (8, 8)
    assert crop(picture, DetectedBox(70, 0, 90, 10, 1.0)) is None
    assert np.array_equal(np.asarray(decode(mirrored(picture))), np.asarray(decode(picture))[:, ::-1])
    assert decode(resized(picture, 240)).size == (480, 240)


def test_plugins_are_named_and_checked() -> None:
    with pytest.raises(UnknownPluginError):
        make_encoder("nothing")
    with pytest.raises(UsageError, match="find"):
        make_detector("pathlib:PurePath:x")
    for spec, told in (("csd", "checkpoint"), ("grounding-dino", "model")):
        with pytest.raises(UsageError, match=told):
            (make_detector if spec == "grounding-dino" else make_encoder)(spec)
    with pytest.raises(InputFileError, match="no file"):
        make_encoder("inception:nowhere.pth")


def test_grounding_dino_of_transformers_finds_boxes_within_the_picture(tmp_path: Path) -> None:
    from tiny_detector import tiny_grounding_dino

    name = tiny_grounding_dino(tmp_path)
    eager = GroundingDino(name, box_threshold=0.0, text_threshold=0.0)
    boxes = eager.find(plain_picture(1), "character")
    assert 0 < len(boxes) <= 6
    assert [box.score for box in boxes] == sorted((box.score for box in boxes), reverse=True)
    assert GroundingDino(name, box_threshold=1.0).find(plain_picture(1), "character") == []
    features = Features(tmp_path / "cache")
    finder = Finder(eager)
    first, again = (finder.boxes(features, [plain_picture(1)]) for _ in range(2))
    assert first == again
    assert len(first[0]) == len(boxes)
    assert (features.computed, features.reused) == (1, 1)


def test_csd_is_a_clip_tower_and_its_style_layer(tmp_path: Path) -> None:
    import open_clip
    import torch

    model, _, weights = tiny_clip(tmp_path).partition("@")
    state = torch.load(weights, weights_only=True)
    visual = {name.removeprefix("visual."): value for name, value in state.items() if name.startswith("visual.")}
    visual.pop("proj")
    torch.manual_seed(1)
    style = torch.randn(CLIP_CONFIG["vision_cfg"]["width"], 6)
    kept = {f"module.backbone.{name}": value for name, value in visual.items()} | {"module.last_layer_style": style}
    path = tmp_path / "csd.pth"
    torch.save({"model_state_dict": kept}, path)
    encoder = make_encoder(f"csd:{model}@{path}")
    rows = encoder.encode_images([plain_picture(1), plain_picture(2)])
    assert rows.shape == (2, 6)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1], abs=1e-6)

    tower = open_clip.create_model(model)
    tower.load_state_dict(state)
    picture = decode(plain_picture(1)).resize((32, 32), Image.Resampling.BICUBIC)
    pixels = (np.asarray(picture) / 255 - open_clip.OPENAI_DATASET_MEAN) / open_clip.OPENAI_DATASET_STD
    tower.visual.proj = None
    with torch.inference_mode():
        row = (tower.visual.eval()(torch.tensor(pixels).permute(2, 0, 1)[None].float()) @ style)[0].numpy()
    assert rows[0] == pytest.approx(row / np.linalg.norm(row), abs=1e-5)
    torch.save({"last_layer_style": style}, path)
    with pytest.raises(InputFileError, match="not a CSD checkpoint"):
        make_encoder(f"csd:{model}@{path}").encode_images([plain_picture(1)])


def test_inception_of_torchvision_gives_probabilities(tmp_path: Path) -> None:
    import torch
    from torchvision.models import inception_v3

    torch.manual_seed(0)
    path = tmp_path / "inception.pth"
    torch.save(inception_v3(weights=None, init_weights=False).state_dict(), path)
    rows = make_encoder(f"inception:{path}").encode_images([plain_picture(1)])
    assert rows.shape == (1, 1000)
    assert rows.sum() == pytest.approx(1.0, abs=1e-5)
