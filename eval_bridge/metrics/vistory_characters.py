"""ViStoryBench's measures of characters and style: CIDS, OCCM and copy-paste over found boxes, and CSD over frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from katha.errors import UsageError
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured
from katha.eval_bridge.metrics.detectors import DETECTOR, Finder, crop, make_detector, mirrored
from katha.eval_bridge.metrics.encoders import make_encoder
from katha.eval_bridge.metrics.features import Features, ImageEncoder
from katha.eval_bridge.metrics.vistorybench import (
    Cids,
    Floats,
    cids,
    copy_paste,
    copy_paste_mirrored,
    csd_cross,
    match_characters,
    nearest,
    occm,
    pair_mean,
)
from katha.plugin_boundary import spec_of
from katha.schema import Panel, Scene
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

REALISTIC = "realistic_human"
"""The tag of a photographed character, whose identity the paper measures by faces; all others by CLIP."""


@dataclass(frozen=True)
class ShotScript:
    """A shot's script: the setting without characters, the camera, and what the characters do. Empty where not told."""

    setting: str = ""
    camera: str = ""
    action: str = ""
    characters: tuple[str, ...] = ()


def shot_script(board: MetricBoard, scene: int | None) -> ShotScript:
    """Return a scene's script: ViStoryBench's own fields, else the plan's place and shot and the scene's text."""
    if scene is None:
        return ShotScript()
    scenes = board.record.scenes
    told = scenes[scene - 1] if scene <= len(scenes) else None
    panels = [panel for panel in board.plan.panels if panel.index == scene] if board.plan is not None else []
    panel = panels[0] if panels else None
    names = tuple(told.characters) if told is not None and told.characters else _names(panel)
    return ShotScript(
        setting=_extra(told, "setting_description") or _joined(panel, "place", "time_of_day"),
        camera=_extra(told, "shot_perspective") or _joined(panel, "shot_size", "shot_angle"),
        action=_extra(told, "static_shot") or board.text_of(scene) or "",
        characters=names,
    )


def character_tags(board: MetricBoard) -> Mapping[str, str]:
    """Return the tag of each character of a ViStoryBench story; empty for others."""
    found = (board.record.model_extra or {}).get("cast")
    return {str(name): str(row.get("tag", "")) for name, row in found.items()} if isinstance(found, Mapping) else {}


def _extra(scene: Scene | None, field: str) -> str:
    value: Any = (scene.model_extra or {}).get(field) if scene is not None else None
    return value.strip() if isinstance(value, str) else ""


def _joined(panel: Panel | None, *fields: str) -> str:
    values = [str(getattr(panel, field)).strip() for field in fields] if panel is not None else []
    return ", ".join(value for value in values if value and value != "unclear")


def _names(panel: Panel | None) -> tuple[str, ...]:
    return tuple(panel.characters) if panel is not None else ()


CLIP = "open-clip:ViT-L-14@openai"
NO_REFERENCES = "there is no reference picture of its characters"
NO_CHARACTERS = "the story says of no frame who is on stage"


@dataclass
class CharactersFound:
    """What was found of a story's characters over all frames.

    crops: by character, the pictures of its matched boxes. by_frame: the same, frame by frame (from 0). counts: by
    frame with expected characters, how many boxes were found and how many were expected.
    """

    crops: dict[str, list[bytes]] = field(default_factory=dict)
    by_frame: dict[int, dict[str, bytes]] = field(default_factory=dict)
    counts: dict[int, tuple[int, int]] = field(default_factory=dict)


class CharacterFinder:
    """Finds a story's characters in its frames: boxes, and which box is whom by the nearest reference (App. I.1)."""

    def __init__(self, detector: str, encoder: str, face: str | None) -> None:
        self._finder = Finder(make_detector(detector))
        self._encoder = make_encoder(encoder)
        self._face = make_encoder(face) if face is not None else None

    def spec(self) -> dict[str, Any]:
        """Return detector and encoders."""
        face = spec_of(self._face, "the face encoder") if self._face is not None else None
        return {"finder": self._finder.spec(), "encoder": spec_of(self._encoder, "the encoder"), "face": face}

    def encoder_of(self, tag: str) -> ImageEncoder | None:
        """Return the encoder of a kind of character; None for a photographed one without a face model."""
        return self._face if tag == REALISTIC else self._encoder

    def references(self, board: MetricBoard, features: Features) -> dict[str, list[bytes]]:
        """Return each character's reference pictures, cut to the surest box; whole where nothing was found.

        Raises:
            Unmeasured: no character has one.
        """
        found: dict[str, list[bytes]] = {}
        for name, pictures in board.characters.items():
            cut = [
                crop(data, boxes[0]) if boxes else None
                for data, boxes in zip(pictures, self._finder.boxes(features, list(pictures)), strict=True)
            ]
            kept = [piece for piece in cut if piece is not None] or list(pictures)
            if kept:
                found[name] = kept
        if not found:
            raise Unmeasured(NO_REFERENCES)
        return found

    def look(
        self, board: MetricBoard, references: Mapping[str, Sequence[bytes]], features: Features
    ) -> CharactersFound:
        """Return who was found where.

        Raises:
            Unmeasured: no frame says who is on stage.
        """
        names = [shot_script(board, frame.scene).characters for frame in board.frames]
        if not any(names):
            raise Unmeasured(NO_CHARACTERS)
        seen, tags = CharactersFound(), character_tags(board)
        boxes = self._finder.boxes(features, board.images)
        for at, (frame, expected, there) in enumerate(zip(board.frames, names, boxes, strict=True)):
            if not expected:
                continue
            pieces = [piece for box in there if (piece := crop(frame.data, box)) is not None]
            seen.counts[at] = (len(pieces), len(expected))
            wanted = [name for name in expected if name in references]
            seen.by_frame[at] = self._matched(pieces, {name: references[name] for name in wanted}, tags, features)
            for name, piece in seen.by_frame[at].items():
                seen.crops.setdefault(name, []).append(piece)
        return seen

    def _matched(
        self,
        pieces: Sequence[bytes],
        references: Mapping[str, Sequence[bytes]],
        tags: Mapping[str, str],
        features: Features,
    ) -> dict[str, bytes]:
        """Return whose piece is whose. Each character is compared in its own encoder's space, all assigned together."""
        known = {name: self.encoder_of(tags.get(name, "")) for name in references}
        able = {name: encoder for name, encoder in known.items() if encoder is not None}
        if not pieces or not able:
            return {}
        similarity = {
            name: nearest(features.images(encoder, pieces), features.images(encoder, list(references[name])))
            for name, encoder in able.items()
        }
        return {name: pieces[at] for name, at in match_characters(similarity).items()}


class VistoryCharacters:
    """CIDS (cross and self), OCCM and copy-paste of a story's characters."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vistory-characters",
        title="ViStoryBench characters",
        paper="ViStoryBench, Apps. I (CIDS), K (OCCM) and L (copy-paste, Eq. S1)",
        formula="CIDS: mean cosine of matched crops with references, and with each other; "
        "OCCM: 100 exp(-|D - E| / (E + 1e-6)); copy-paste: softmax(cos / 0.01) of the first reference",
        level="board",
        parts=(
            MetricPart(name="cids_cross", about="characters like their references", low=-1.0),
            MetricPart(name="cids_self", about="characters like themselves", low=-1.0),
            MetricPart(name="occm", about="as many characters as there should be", high=100.0),
            MetricPart(name="copy_paste", about="the reference was pasted", better="lower"),
        ),
        modes=("paper", "code"),
        differs="code: a character never found counts 0, one found once has self 1, cross is over all references, and "
        "copy-paste is against the reference's own mirror image",
        needs=("images", "characters", "detector"),
        models=(CLIP, DETECTOR),
        licence="detector Apache-2.0, CLIP MIT; face models (antelopev2: research only) are plug-ins of the user's",
        cost="one detector pass a frame, one encoder pass a crop",
        vector="App. K's counts and slow loops in tests/eval_bridge/test_metric_formulas.py",
    )

    def __init__(self, *, detector: str = DETECTOR, encoder: str = CLIP, face: str | None = None) -> None:
        """detector, encoder: plug-ins. face: an encoder of faces for photographed characters; none is shipped."""
        self._cast = CharacterFinder(detector, encoder, face)

    def spec(self) -> Mapping[str, Any]:
        """Name, version, detector and encoders."""
        return {"name": "vistory-characters", "version": 1, **self._cast.spec()}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield four values of a board; OCCM needs no reference pictures."""
        seen = self._cast.look(board, {}, context.features)
        scores = [score for found, wanted in seen.counts.values() if (score := occm(found, wanted)) is not None]
        yield board.value("occm", math.fsum(scores) / len(scores), n=len(scores))
        references = self._cast.references(board, context.features)
        seen = self._cast.look(board, references, context.features)
        result, pasted, faceless = self._similarities(board, references, seen, context)
        if not result.characters:
            raise Unmeasured("its characters are photographed, and there is no face model: give face=PLUGIN")
        missing = f"; {faceless} photographed without a face model" if faceless else ""
        nobody = f"no character was found in any frame{missing}"
        crops = sum(map(len, seen.crops.values()))
        yield board.value("cids_cross", result.cross, n=crops, reason=None if result.cross is not None else nobody)
        once = "no character was found twice" if seen.crops else nobody
        reason = None if result.own is not None else once
        yield board.value("cids_self", result.own, n=result.characters - len(result.unmatched), reason=reason)
        alone = nobody if not seen.crops else "no character has two references"
        value = math.fsum(pasted) / len(pasted) if pasted else None
        yield board.value("copy_paste", value, n=len(pasted), reason=None if pasted else alone)

    def _similarities(
        self,
        board: MetricBoard,
        references: Mapping[str, Sequence[bytes]],
        seen: CharactersFound,
        context: MetricContext,
    ) -> tuple[Cids, list[float], int]:
        """Return CIDS, each character's copy-paste rate, and how many characters had no encoder."""
        tags, features = character_tags(board), context.features
        crops: dict[str, Floats] = {}
        known: dict[str, Floats] = {}
        pasted: list[float] = []
        for name, pictures in references.items():
            encoder = self._cast.encoder_of(tags.get(name, ""))
            if encoder is None:
                continue
            known[name] = features.images(encoder, list(pictures))
            if not seen.crops.get(name):
                continue
            crops[name] = features.images(encoder, seen.crops[name])
            if context.mode == "code":
                other = features.images(encoder, [mirrored(pictures[0])])[0]
                rates = [copy_paste_mirrored(row, known[name][0], other) for row in crops[name]]
            else:
                rates = [copy_paste(row, known[name]) for row in crops[name]] if len(known[name]) > 1 else []
            if rates:
                pasted.append(math.fsum(rates) / len(rates))
        return cids(crops, known, context.mode), pasted, len(references) - len(known)


class VistoryStyle:
    """CSD: how alike a board's frames are in style, and how like the references of their characters."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vistory-style",
        title="ViStoryBench style (CSD)",
        paper="ViStoryBench, App. J; CSD of Somepalli et al. 2024",
        formula="self: mean cosine of all pairs of frames; cross: of a frame with its characters' references",
        level="board",
        parts=(
            MetricPart(name="csd_cross", about="style of the references", low=-1.0),
            MetricPart(name="csd_self", about="one style throughout", low=-1.0),
        ),
        needs=("images",),
        models=("csd:FILE",),
        licence="the checkpoint is its authors'; fetch it from them (encoder=csd:FILE)",
        cost="one ViT-L/14 pass a frame, kept by content",
        vector="slow loops in tests/eval_bridge/test_metric_formulas.py",
    )

    def __init__(self, *, encoder: str | None = None) -> None:
        """encoder: `csd:FILE`, or any encoder of pictures.

        Raises:
            UsageError: none is named.
        """
        if encoder is None:
            raise UsageError(
                "vistory-style needs an encoder of style.",
                hint="Fetch CSD's checkpoint and give --metric-option encoder=csd:FILE.",
            )
        self._encoder = make_encoder(encoder)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and encoder."""
        return {"name": "vistory-style", "version": 1, "encoder": spec_of(self._encoder, "the encoder")}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield both values of a board. One frame has no self-similarity (the code says 0)."""
        frames = context.features.images(self._encoder, board.images)
        own = pair_mean(frames)
        count = len(frames) * (len(frames) - 1) // 2
        yield board.value("csd_self", own, n=count, reason=None if own is not None else "one frame has no pair")
        first = {name: pictures[0] for name, pictures in board.characters.items() if pictures}
        if not first:
            raise Unmeasured(NO_REFERENCES)
        rows = dict(zip(first, context.features.images(self._encoder, list(first.values())), strict=True))
        given = []
        for frame in board.frames:
            names = [name for name in shot_script(board, frame.scene).characters if name in rows] or list(rows)
            given.append(np.stack([rows[name] for name in names]))
        cross = csd_cross(frames, given)
        yield board.value("csd_cross", cross, n=len(frames), reason=None if cross is not None else NO_REFERENCES)
