"""The sketch renderer: what is placed where, that the boxes hold the ink, the camera, and the plug-in's contract."""

from __future__ import annotations

import io
import random
import struct
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from katha.errors import UsageError
from katha.language import Actor, SceneReading, load_vocabulary
from katha.protocols import BoardContext, FrameRequest, Renderer
from katha.renderers.sketch import Composition, SketchRenderer, compose, compose_scene, rasterise
from katha.renderers.sketch.camera import SHOTS, roll
from katha.renderers.sketch.layout import arrange
from katha.renderers.sketch.pieces import Piece

W, H = 768, 512
PROMPT = "A small brown mouse with a red scarf talks to a big angry lion in the forest at night."


def scene(*actors: Actor, props: tuple[str, ...] = (), **more: str) -> SceneReading:
    return SceneReading(actors=actors, props=props, **more)  # type: ignore[arg-type]


def pixels(frame: Composition) -> NDArray[np.float64]:
    png = rasterise(frame.svg, frame.width, frame.height)
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=np.float64)


def ink_box(frame: Composition) -> tuple[float, float, float, float]:
    """The box of dark pixels inside the border of a frame on plain paper."""
    m = round(0.03 * frame.height)
    dark = pixels(frame)[m:-m, m:-m].mean(axis=2) < 120
    ys, xs = np.nonzero(dark)
    return (xs.min() + m, ys.min() + m, xs.max() + m + 1, ys.max() + m + 1)


def pieces(reading: SceneReading, seed: int = 0) -> dict[str, Piece]:
    return {piece.concept: piece for piece in arrange(reading, Random(seed))}


@pytest.mark.parametrize("concept", ["lion", "mouse", "king", "girl", "elephant", "fisherman"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_figures_box_is_tight_and_nothing_sticks_out(concept: str, seed: int) -> None:
    frame = compose_scene(scene(Actor(concept), shot="medium"), seed, W, H)
    (placed,) = frame.placed
    x0, y0, x1, y1 = ink_box(frame)
    a0, b0, a1, b1 = placed.bbox
    slack = max(6.0, 0.08 * max(a1 - a0, b1 - b0))
    for gap in (x0 - a0, y0 - b0, a1 - x1, b1 - y1):
        assert -4.0 <= gap <= slack
    assert placed.visible > 0.95


@pytest.mark.parametrize("prop", ["basket", "tree", "table", "well", "sword", "apple"])
def test_a_props_box_holds_its_ink(prop: str) -> None:
    frame = compose_scene(scene(props=(prop,), shot="medium"), 4, W, H)
    (placed,) = frame.placed
    x0, y0, x1, y1 = ink_box(frame)
    a0, b0, a1, b1 = placed.bbox
    assert (x0, x1) == pytest.approx((a0, a1), abs=12.0)
    assert (max(b0, 15.4), min(b1, H - 15.4)) == pytest.approx((y0, y1), abs=12.0)


def test_the_head_circle_is_on_the_head() -> None:
    frame = compose_scene(scene(Actor("girl", emotion="happy"), shot="medium"), 0, W, H)
    (girl,) = frame.placed
    assert girl.head is not None
    cx, cy, r = girl.head
    x0, y0, x1, y1 = girl.bbox
    assert x0 < cx < x1
    assert y0 - r < cy < (y0 + y1) / 2
    face = pixels(frame)[int(cy - 0.5 * r) : int(cy + 0.8 * r), int(cx - 0.8 * r) : int(cx + 0.8 * r)].mean(axis=2)
    assert (face < 90).mean() > 0.01
    assert np.median(face) > 90


@pytest.mark.parametrize("size", [(768, 512), (256, 171), (512, 512)])
def test_two_frames_of_one_seed_have_the_same_bytes_and_the_size_asked(size: tuple[int, int]) -> None:
    first, second = (compose(PROMPT, 3, *size) for _ in range(2))
    assert first == second
    png = rasterise(first.svg, *size)
    assert png == rasterise(second.svg, *size)
    assert Image.open(io.BytesIO(png)).size == size


def test_the_png_has_no_metadata() -> None:
    png, at, kinds = rasterise(compose(PROMPT, 0, 256, 171).svg, 256, 171), 8, set()
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kinds.add(png[at + 4 : at + 8])
        at += 12 + length
    assert kinds == {b"IHDR", b"IDAT", b"IEND"}


def test_global_random_state_is_neither_read_nor_moved() -> None:
    random.seed(5)
    before = random.getstate()
    frame = compose(PROMPT, 1, W, H)
    assert random.getstate() == before
    random.seed(6)
    assert compose(PROMPT, 1, W, H) == frame


def test_no_letters_and_no_foreign_content() -> None:
    svg = compose(PROMPT, 2, W, H).svg
    assert "<text" not in svg
    assert "href" not in svg


def test_shots_have_their_shares_and_a_prompt_may_ask_for_one() -> None:
    drawn = Counter(roll(Random(seed), None).shot for seed in range(2000))
    for shot, share in SHOTS.items():
        assert drawn[shot] / 2000 == pytest.approx(share, abs=0.04)
        assert {compose_scene(scene(Actor("fox"), shot=shot), seed, W, H).shot for seed in range(4)} == {shot}


def test_frames_of_one_board_take_different_shots() -> None:
    prompts = [f"A fox looks at {thing}." for thing in ("an apple", "a tree", "a well", "a bone", "a crown", "a bell")]
    assert len({compose(prompt, 0, W, H).shot for prompt in prompts}) > 1


def test_a_wide_shot_makes_faces_small_and_a_close_up_crops_bodies() -> None:
    reading = scene(Actor("king", action="sit", target="throne"), Actor("thief", action="bow", target="king"),
                    props=("throne", "sack"), setting="palace")  # fmt: skip
    radius: dict[str, float] = {}
    seen: dict[str, float] = {}
    for shot in SHOTS:
        frames = [compose_scene(replace(reading, shot=shot), seed, W, H) for seed in range(6)]
        heads = [
            placed.head[2] for frame in frames for placed in frame.placed if placed.head and placed.concept == "king"
        ]
        radius[shot] = float(np.mean(heads))
        seen[shot] = float(np.mean([placed.visible for frame in frames for placed in frame.placed]))
    assert radius["wide"] < 0.07 * H < radius["medium"] < 0.6 * radius["close_up"]
    assert seen["close_up"] < 0.7 * seen["wide"]


@pytest.mark.parametrize("shot", list(SHOTS))
def test_nothing_that_the_prompt_names_is_dropped(shot: str) -> None:
    reading = scene(
        Actor("lion", action="trapped", target="net"),
        Actor("mouse", action="bite", target="net", carries=("knife",)),
        Actor("sheep", count=3),
        props=("net", "knife", "tree", "stone", "window"),
        shot=shot,
    )
    count = Counter(placed.concept for placed in compose_scene(reading, 1, W, H).placed)
    assert count == {"lion": 1, "mouse": 1, "sheep": 3, "net": 1, "knife": 1, "tree": 1, "stone": 1, "window": 1}


def test_a_crowd_is_at_most_four() -> None:
    frame = compose_scene(scene(Actor("sheep", count=30)), 0, W, H)
    assert len(frame.placed) == 4
    assert len({placed.bbox for placed in frame.placed}) == 4


@pytest.mark.parametrize("seed", range(4))
def test_partners_face_each_other_and_the_chased_runs_ahead(seed: int) -> None:
    met = pieces(scene(Actor("fox", action="talk", target="hen" if seed < 0 else "goat"), Actor("goat")), seed)
    assert met["fox"].facing == (1 if met["goat"].x > met["fox"].x else -1)
    assert met["goat"].facing == -met["fox"].facing
    hunt = pieces(scene(Actor("hunter", action="chase", target="deer"), Actor("deer", action="run")), seed)
    assert hunt["hunter"].facing == hunt["deer"].facing == (1 if hunt["deer"].x > hunt["hunter"].x else -1)


def test_the_seed_decides_who_stands_left() -> None:
    reading = scene(Actor("fox", action="talk", target="goat"), Actor("goat"))
    assert {pieces(reading, seed)["fox"].x < pieces(reading, seed)["goat"].x for seed in range(8)} == {True, False}


def test_standing_characters_do_not_cover_each_other() -> None:
    reading = scene(Actor("man", action="talk", target="woman"), Actor("woman"), Actor("boy"), props=("table", "pot"))
    for placed in compose_scene(replace(reading, shot="medium"), 2, W, H).placed:
        if placed.kind == "character":
            assert placed.visible > 0.9


def test_a_rider_sits_above_the_mount_and_a_crown_on_the_head() -> None:
    ride = pieces(scene(Actor("boy", action="ride", target="horse"), Actor("horse")))
    assert ride["boy"].head is not None
    assert ride["horse"].head is not None
    assert ride["boy"].head[1] < ride["horse"].head[1] - ride["horse"].head[2]
    assert ride["boy"].facing == ride["horse"].facing
    worn = pieces(scene(Actor("girl", carries=("crown",)), props=("crown",)))
    cx, cy, r = worn["girl"].head or (0, 0, 0)
    x0, _, x1, y1 = worn["crown"].box
    assert x0 < cx < x1
    assert cy - 1.3 * r < y1 < cy


def test_a_held_thing_is_at_the_hand_and_a_net_lies_over_the_caught() -> None:
    held = pieces(scene(Actor("girl", carries=("apple",)), props=("apple",)))
    hx, hy = held["girl"].anchor("hand")
    x0, y0, x1, y1 = held["apple"].box
    assert x0 <= hx <= x1
    assert y0 <= hy <= y1
    caught = pieces(scene(Actor("lion", action="trapped", target="net"), props=("net",)))
    assert caught["net"].depth > caught["lion"].depth
    assert caught["net"].box[0] < caught["lion"].box[0]
    assert caught["net"].box[2] > caught["lion"].box[2]
    assert "fill-opacity" in caught["net"].svg


def test_a_net_lets_the_caught_be_seen_and_is_drawn_once() -> None:
    reading = scene(Actor("lion", action="trapped", target="net"), props=("net",), shot="medium")
    seen = {placed.concept: placed.visible for placed in compose_scene(reading, 0, W, H).placed}
    assert seen["lion"] > 0.95
    bed = scene(Actor("girl", carries=("bed",)), Actor("boy", action="sleep"), props=("bed",))
    assert Counter(placed.concept for placed in compose_scene(bed, 0, W, H).placed)["bed"] == 1


def test_captives_are_held_by_what_the_picture_names_and_by_a_cage_only_without_it() -> None:
    bare = pieces(scene(Actor("lion", action="trapped")))["lion"].svg
    netted = pieces(scene(Actor("lion", action="trapped", target="net"), props=("net",)))["lion"].svg
    bound = pieces(scene(Actor("lion", action="trapped", target="rope"), props=("rope",)))["lion"].svg
    assert len(netted) < len(bare)
    assert len(netted) < len(bound)


def test_a_net_goes_over_all_that_it_caught() -> None:
    reading = scene(Actor("dove", action="trapped", target="net", count=3), props=("net",), shot="medium")
    placed = compose_scene(reading, 0, W, H).placed
    net = next(one.bbox for one in placed if one.concept == "net")
    for dove in (one.head for one in placed if one.concept == "dove"):
        assert dove is not None
        assert net[0] < dove[0] < net[2]


def test_somebody_flying_is_above_those_who_stand() -> None:
    flight = pieces(scene(Actor("bear", action="fly"), Actor("rabbit", action="look", target="bear")))
    assert flight["bear"].box[3] < flight["rabbit"].box[3] - 20


def test_birds_sit_in_trees_and_people_under_them() -> None:
    def seat(who: str) -> float:
        return pieces(scene(Actor(who, action="sit", target="tree"), props=("tree",)))[who].y

    assert seat("crow") < -40
    assert seat("monkey") < -40
    assert seat("old_man") == 0


def test_somebody_hiding_keeps_the_face_free() -> None:
    hidden = pieces(scene(Actor("wolf", action="hide", target="bush"), props=("bush",)))
    assert hidden["bush"].depth > hidden["wolf"].depth
    _, cy, r = hidden["wolf"].head or (0, 0, 0)
    assert hidden["bush"].box[1] > cy - 0.3 * r


def test_swimmers_are_in_the_water_of_the_setting() -> None:
    reading = scene(
        Actor("girl", action="swim"), Actor("boy", action="look", target="girl"), setting="river", shot="medium"
    )
    placed = {one.concept: one for one in compose_scene(reading, 1, W, H).placed}
    assert placed["girl"].bbox[3] < placed["boy"].bbox[3] - 20


def test_a_character_is_the_same_drawing_in_every_frame() -> None:
    actor = Actor("fox", attributes=("small", "red_scarf"))
    drawings = {pieces(scene(actor), seed)["fox"].svg for seed in range(12)}
    assert len(drawings) <= 2  # facing left or right, nothing else


def test_what_the_frame_cuts_off_is_not_visible() -> None:
    reading = scene(
        Actor("man", action="talk", target="woman"), Actor("woman"), props=("tree", "well"), shot="close_up"
    )
    frame = compose_scene(reading, 3, W, H)
    outside = [one for one in frame.placed if one.bbox[2] < 0 or one.bbox[0] > W]
    assert all(one.visible == 0 for one in outside)
    assert min(one.visible for one in frame.placed) < 0.5
    assert all(0 <= one.visible <= 1 for one in frame.placed)


def test_random_scenes_drop_nothing_and_leave_faces_free() -> None:
    rng, vocabulary = Random(7), load_vocabulary()
    people = ("lion", "fox", "mouse", "elephant", "man", "girl", "king", "old_woman", "hunter")
    ids = {kind: [one.id for one in vocabulary.concepts(kind)] for kind in ("prop", "action", "emotion", "setting")}
    faces = covered = 0
    for seed in range(150):
        cast, props = rng.sample(people, rng.randint(1, 3)), rng.sample(ids["prop"], rng.randint(0, 3))
        actors = [
            Actor(
                who,
                action=rng.choice(ids["action"]),
                target=rng.choice([*(other for other in cast if other != who), *props, None]),
                emotion=rng.choice(ids["emotion"]),
                carries=tuple(props[:1]) if nth == 0 and rng.random() < 0.5 else (),
            )
            for nth, who in enumerate(cast)
        ]
        frame = compose_scene(scene(*actors, props=tuple(props), setting=rng.choice(ids["setting"])), seed, W, H)
        assert Counter(placed.concept for placed in frame.placed) == Counter([*cast, *props])
        for nth, placed in enumerate(frame.placed):
            if placed.head is not None:
                nearer = [one for one in frame.placed[nth + 1 :] if one.concept not in {"net", "cage", "web"}]
                faces += 1
                covered += any(holds(one.bbox, placed.head[:2]) for one in nearer)
    assert covered <= 0.02 * faces


def holds(box: tuple[float, float, float, float], point: tuple[float, float]) -> bool:
    """Whether `point` is in the inner part of `box`."""
    x0, y0, x1, y1 = box
    dx, dy = 0.15 * (x1 - x0), 0.15 * (y1 - y0)
    return x0 + dx < point[0] < x1 - dx and y0 + dy < point[1] < y1 - dy


def test_a_prompt_that_names_nothing_is_an_empty_sheet() -> None:
    frame = compose("zzz qqq", 0, W, H)
    assert frame.placed == ()
    assert pixels(frame)[30:-30, 30:-30].mean() > 220


def request(style: str = "", seed: int = 0, width: int = 256, height: int = 176) -> FrameRequest:
    return FrameRequest(prompt=PROMPT, seed=seed, width=width, height=height, style=style)


def test_the_renderer_keeps_the_contract() -> None:
    renderer = SketchRenderer()
    assert isinstance(renderer, Renderer)
    board = list(renderer.render_board([request(seed=seed) for seed in range(3)]))
    assert len(set(board)) == 3
    context = BoardContext(tuple(request(seed=seed) for seed in range(3)), tuple(board), 1)
    assert renderer.insert_frame(request(seed=1), context) == board[1]
    assert renderer.spec() == SketchRenderer().spec()
    assert renderer.spec() != SketchRenderer("ink").spec()


def test_styles_change_the_colours_only() -> None:
    renderer = SketchRenderer()
    frames = {style: next(iter(renderer.render_board([request(style)]))) for style in ("", "colour", "ink", "pencil")}
    assert frames[""] == frames["colour"]
    spread = {
        style: np.ptp(np.asarray(Image.open(io.BytesIO(png)).convert("RGB"), dtype=float), axis=2).mean()
        for style, png in frames.items()
    }
    assert spread["ink"] < 0.5 * spread["colour"]
    assert spread["pencil"] < 0.5 * spread["colour"]
    assert frames["ink"] != frames["pencil"]
    assert next(iter(SketchRenderer("ink").render_board([request()]))) == frames["ink"]


def test_wrong_style_and_size_are_refused() -> None:
    with pytest.raises(UsageError, match="colour, ink, pencil"):
        list(SketchRenderer().render_board([request("oil painting")]))
    with pytest.raises(UsageError, match="watercolour"):
        SketchRenderer("watercolour")
    with pytest.raises(UsageError, match="8x176"):
        list(SketchRenderer().render_board([request(width=8)]))
