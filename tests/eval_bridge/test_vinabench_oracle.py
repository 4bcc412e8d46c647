"""VinaBench's measures counted a second time, from the paper alone (Secs. 4.1 to 4.3 and S2), by plain loops.

The model is a hash: what it says depends on what is asked and on the pictures, so that a question about wrong pictures,
a missing one or another average shows in the numbers.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from metric_boards import HandEncoder, make_board, make_context, plain_picture

from katha.eval_bridge.metrics import MetricBoard, measure_board
from katha.eval_bridge.metrics.ranking import ClipRank, Pool
from katha.eval_bridge.metrics.vinabench import VinaBench
from katha.eval_bridge.packets.packets import clean_image
from katha.protocols import Evidence, JudgeReply, PlainPrompt
from katha.schema.metrics import MetricValue
from katha.schema.narratives import Narrative, SceneConstraints
from katha.testing import ScriptedJudge, scripted_words

TIMES = ("early morning", "morning", "noon", "afternoon", "evening", "night")
PLACES = ("kitchen", "old barn", "harbour")
PEOPLE = {"Samantha": "adult female, wife", "Tom": "adult male", "Rex": "dog"}
ENTITIES = ("soup", "Christmas tree", "a letter", "to run", "Samantha", "Tom")


def chance(kind: str, content: str, images: Sequence[bytes]) -> float:
    """Return the model's probability of what is asked about pictures."""
    told = hashlib.sha256(f"{kind}|{content}".encode() + b"".join(hashlib.sha256(data).digest() for data in images))
    return int.from_bytes(told.digest()[:6], "big") / 2**48


ASKED = (
    ("entity", r"contain or imply '(.*)'\?"),
    ("style", r"in the same (style)"),
    ("character", r"contain the same cha\w+ (.*?):"),
    ("same place", r"taken at the same (.*)\?"),
    ("attributes", r"(Do characters in this image fit)"),
    ("where", r"Is this image taken (?:at|in) (?:the |an? )?(.*)\?"),
)


def model(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
    if "How many characters" in prompt.text:
        shares = {str(digit): chance("number", str(digit), evidence.images) / 10 for digit in range(10)}
        return JudgeReply("ok", answer="1", usage={"probabilities": shares})
    kind, content = next((kind, found[1]) for kind, words in ASKED if (found := re.search(words, prompt.text)))
    if kind == "attributes":
        content = prompt.text.partition("Do characters")[0].strip().partition("\n")[2]
    return scripted_words(Yes=chance(kind, content, evidence.images), No=0.0)


def narrative(draw: random.Random) -> Narrative:
    scenes = []
    for at in range(draw.randint(2, 6)):
        present = tuple(sorted(draw.sample(list(PEOPLE), draw.randint(0, 3))))
        scenes.append(
            SceneConstraints(
                text=f"Line {at}.",
                entities=tuple(draw.sample(ENTITIES, draw.randint(0, 4))),
                characters=present,
                number=len(present),
                time=draw.choice((*TIMES, "unclear")),
                location=draw.choice((*PLACES, "unclear")),
            )
        )
    return Narrative(profile=PEOPLE, scenes=tuple(scenes))


def boards(seed: int, count: int = 4) -> list[MetricBoard]:
    draw, made = random.Random(seed), []
    for at in range(count):
        given = narrative(draw)
        pictures = [plain_picture(1000 * seed + 100 * at + place) for place in range(len(given.scenes))]
        texts = [scene.text for scene in given.scenes]
        made.append(make_board(texts, story_id=f"story{at}", images=pictures, narrative=given))
    return made


def counted(made: Sequence[MetricBoard]) -> dict[str, list[float]]:
    """Return every probability that the paper averages, by measure."""
    found: dict[str, list[float]] = {}

    def add(measure: str, kind: str, content: str, images: Sequence[bytes]) -> None:
        found.setdefault(measure, []).append(chance(kind, content, images))

    for board in made:
        assert board.narrative is not None
        seen = [clean_image(data).png for data in board.images]
        scenes = board.narrative.scenes
        for scene, image in zip(scenes, seen, strict=True):
            for entity in scene.entities:
                if entity not in PEOPLE:
                    add("entities", "entity", entity, [image])
            found.setdefault("number", []).append(chance("number", str(len(scene.characters)), [image]) / 10)
            if scene.characters:
                lines = "\n".join(f"{name}: {PEOPLE[name]}" for name in scene.characters)
                add("attributes", "attributes", lines, [image])
            if scene.time != "unclear":
                add("time", "where", scene.time, [image])
            if scene.location != "unclear":
                add("location", "where", scene.location, [image])
        add("same_style", "style", "style", seen)
        for name in PEOPLE:
            with_them = [image for scene, image in zip(scenes, seen, strict=True) if name in scene.characters]
            if len(with_them) > 1:
                add("same_character", "character", name, with_them)
        for place in PLACES:
            there = [image for scene, image in zip(scenes, seen, strict=True) if scene.location == place]
            if len(there) > 1:
                add("same_location", "same place", place, there)
    return found


def weighted(values: Sequence[MetricValue]) -> float:
    told = [(value.value, value.n) for value in values if value.value is not None]
    return sum(value * count for value, count in told) / sum(count for _, count in told)


@pytest.mark.parametrize("seed", range(6))
def test_the_eight_averages_are_those_of_the_paper(tmp_path: Path, seed: int) -> None:
    made = boards(seed)
    context = make_context(tmp_path, ScriptedJudge(model))
    values = [value for board in made for value in measure_board(VinaBench(), board, context)]
    expected = counted(made)
    assert set(expected) <= {part.name for part in VinaBench.card.parts}
    for part, numbers in expected.items():
        found = [value for value in values if value.part == part]
        assert weighted(found) == pytest.approx(sum(numbers) / len(numbers), abs=1e-6), part
        assert sum(value.n for value in found if value.value is not None) == len(numbers), part


@pytest.mark.parametrize("seed", range(6))
def test_the_reciprocal_rank_is_that_of_the_paper(tmp_path: Path, seed: int) -> None:
    """For each scene: 1 / rank of the frame among the 100 pictures of the pool that fit the text best (Sec. 4.1)."""
    draw = np.random.default_rng(seed)
    texts = [f"Scene {at}." for at in range(4)]
    frames = [plain_picture(10_000 + 100 * seed + at) for at in range(4)]
    pool = [plain_picture(50_000 + 1_000 * seed + at) for at in range(130)]
    vectors = {data: draw.normal(size=3) for data in [*frames, *pool]}
    words = {text: draw.normal(size=3) for text in texts}

    def fit(picture: bytes, text: str) -> float:
        one, other = np.float32(vectors[picture]).astype(float), np.float32(words[text]).astype(float)
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    expected = []
    for text, frame in zip(texts, frames, strict=True):
        best = sorted((fit(data, text) for data in pool), reverse=True)[:100]
        expected.append(1 / (1 + sum(score > fit(frame, text) for score in best)))
    metric = ClipRank(model="none@none")
    metric._encoder = HandEncoder(vectors, words)  # type: ignore[assignment]
    metric._pool = Pool(metric._encoder)
    context = make_context(tmp_path, pool=[(f"gold{at}", data) for at, data in enumerate(pool)])
    found = list(measure_board(metric, make_board(texts, images=frames), context))
    assert [value.value for value in found if value.frame] == pytest.approx(expected, abs=1e-6)
