"""VinaBench's measures counted a second time, by plain loops: `paper` from its text alone (Secs. 4.1 to 4.3 and S2),
`code` from what its published scripts do (evaluation/minicpm_vqa_*.py and LLaVA-NeXT/*rank*.py at 52b9c16).

The model is a hash: what it says depends on what is asked and on the pictures, so that a question about wrong pictures,
a missing one or another average shows in the numbers.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from metric_boards import HandEncoder, make_board, make_context, plain_picture

from katha.eval_bridge.metrics import MetricBoard, measure_board
from katha.eval_bridge.metrics.ranking import ClipRank, Pool, VqaRank
from katha.eval_bridge.metrics.vinabench import VinaBench
from katha.eval_bridge.packets.packets import clean_image
from katha.protocols import Evidence, JudgeReply, PlainPrompt
from katha.schema.metrics import MetricMode, MetricValue
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


def asked(prompt: PlainPrompt) -> tuple[str, str]:
    """Return which question a prompt is, and of what."""
    kind, content = next((kind, found[1]) for kind, words in ASKED if (found := re.search(words, prompt.text)))
    if kind == "attributes":
        content = prompt.text.partition("Do characters")[0].strip().partition("\n")[2]
    return kind, content


def model(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
    if "How many characters" in prompt.text:
        shares = {str(digit): chance("number", str(digit), evidence.images) / 10 for digit in range(10)}
        return JudgeReply("ok", answer="1", usage={"probabilities": shares})
    return scripted_words(Yes=chance(*asked(prompt), evidence.images), No=0.0)


def answered(kind: str, content: str, images: Sequence[bytes]) -> bool:
    return chance(kind, content, images) >= 0.5


def told_number(image: bytes) -> int:
    return int(4 * chance("how many", "", [image]))


def hard(evidence: Evidence, prompt: PlainPrompt) -> str:
    """Answer in words, as the published scripts read them."""
    if "How many characters" in prompt.text:
        return f"{told_number(evidence.images[0])} characters."
    kind, content = asked(prompt)
    return "Yes, it is." if answered(kind, content, evidence.images) else "No."


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


def average(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def published(made: Sequence[MetricBoard]) -> dict[str, list[float]]:
    """Return the list of which each published script prints the mean, by measure."""
    found: dict[str, list[float]] = {}
    for board in made:
        assert board.narrative is not None
        profile, scenes = board.narrative.profile, board.narrative.scenes
        seen = [clean_image(data).png for data in board.images]
        for scene, image in zip(scenes, seen, strict=True):
            # Entities with a capital are taken for names, whoever they are; a scene's share first.
            own = [answered("entity", each, [image]) for each in scene.entities if not each[0].isupper()]
            if own:
                found.setdefault("entities", []).append(average(own))
            # A narrative without profile is passed over.
            if profile:
                found.setdefault("number", []).append(told_number(image) == len(scene.characters))
                if scene.characters:
                    lines = "\n".join(f"{name}: {profile[name]}" for name in scene.characters)
                    found.setdefault("attributes", []).append(answered("attributes", lines, [image]))
            if scene.time in TIMES:
                found.setdefault("time", []).append(answered("where", scene.time, [image]))
            # Nothing asks whether a location is unclear, neither here nor among the shared ones.
            found.setdefault("location", []).append(answered("where", scene.location, [image]))
        found.setdefault("same_style", []).append(answered("style", "style", seen))
        shared = {name: [name in scene.characters for scene in scenes] for name in profile}
        places = {place: [scene.location == place for scene in scenes] for place in (*PLACES, "unclear")}
        for measure, kind, items in (("same_character", "character", shared), ("same_location", "same place", places)):
            own = [
                answered(kind, name, [image for image, there in zip(seen, where, strict=True) if there])
                for name, where in items.items()
                if sum(where) > 1
            ]
            if own:  # a narrative's share first
                found.setdefault(measure, []).append(average(own))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_eight_averages_of_code_are_those_of_the_published_scripts(tmp_path: Path, seed: int) -> None:
    made = boards(seed)
    lone = made[-1].narrative
    assert lone is not None
    empty = [scene.model_copy(update={"characters": (), "number": 0}) for scene in lone.scenes]
    made[-1] = replace(made[-1], narrative=Narrative(profile={}, scenes=tuple(empty)))
    context = make_context(tmp_path, ScriptedJudge(hard), mode="code")
    values = [value for board in made for value in measure_board(VinaBench(), board, context)]
    for part, numbers in published(made).items():
        found = [value for value in values if value.part == part and not value.item]
        assert weighted(found) == pytest.approx(average(numbers), abs=1e-6), part
        assert sum(value.n for value in found if value.value is not None) == len(numbers), part


@pytest.mark.parametrize("mode", ["paper", "code"])
@pytest.mark.parametrize("seed", range(3))
def test_the_judged_reciprocal_rank(tmp_path: Path, seed: int, mode: MetricMode) -> None:
    """paper: among the 100 of the whole pool that the judge itself finds most fitting. code: among CLIP's 100 best."""
    draw = np.random.default_rng(seed)
    texts = ["Scene 0.", "Scene 1."]
    frames = [plain_picture(20_000 + 100 * seed + at) for at in range(2)]
    pool = [plain_picture(70_000 + 1_000 * seed + at) for at in range(115)]
    vectors = {data: draw.normal(size=3) for data in [*frames, *pool]}
    words = {text: draw.normal(size=3) for text in texts}

    def judge(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
        line = re.fullmatch(r"Storyline: (.*)\nDoes this image fit into the given storyline\? .*", prompt.text)
        assert line is not None
        share = chance("fits", line[1], evidence.images)
        return scripted_words(Yes=0.5 * share, yes=0.3 * share, YES=0.2 * share, No=1.0 - share)

    def fits(picture: bytes, text: str) -> float:
        return chance("fits", text, [clean_image(picture).png])

    def similar(picture: bytes, text: str) -> float:
        return float(vectors[picture] @ words[text] / np.linalg.norm(vectors[picture]))

    expected = []
    for text, frame in zip(texts, frames, strict=True):
        first = fits if mode == "paper" else similar
        candidates = sorted(pool, key=lambda data: first(data, text), reverse=True)[:100]
        expected.append(1 / (1 + sum(fits(data, text) > fits(frame, text) for data in candidates)))
    metric = VqaRank(model="none@none")
    metric._encoder = HandEncoder(vectors, words)  # type: ignore[assignment]
    metric._pool = Pool(metric._encoder)
    gold = [(f"gold{at}", data) for at, data in enumerate([*pool, *pool[:5]])]  # a picture of two stories counts once
    context = make_context(tmp_path, ScriptedJudge(judge), mode=mode, pool=gold)
    found = list(measure_board(metric, make_board(texts, images=frames), context))
    assert [value.value for value in found] == pytest.approx(expected, abs=1e-6)
