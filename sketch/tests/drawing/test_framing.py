"""Framing rules: faces whole, the object in the frame, headroom, sizes, no equal neighbours, screen direction kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from katha_sketch.drawing.scenes.framing import Box, Framing, Shot, Subject, choose_framing, keep_direction

SIZES = [(768, 512), (512, 768), (640, 640), (1280, 540)]


def person(name: str, x: float, tall: float = 100.0, facing: int = 1) -> Subject:
    """Somebody standing at x."""
    r = 0.24 * tall
    return Subject(name, (x - 0.3 * tall, -tall, x + 0.3 * tall, 0.0), (x, -tall + r, r), acts=True, key=True,
                   facing=facing)  # fmt: skip


def thing(x: float, size: float) -> Subject:
    """The object of the sentence on the ground at x."""
    return Subject("thing", (x - size / 2, -size, x + size / 2, 0.0), key=True)


def inside(box: Box, width: float, height: float, slack: float = 1.0) -> bool:
    """Whether a box in pixels is in the frame."""
    x0, y0, x1, y1 = box
    return x0 >= -slack and y0 >= -slack and x1 <= width + slack and y1 <= height + slack


def face_box(subject: Subject) -> Box:
    """The box of a face."""
    assert subject.face is not None
    cx, cy, r = subject.face
    return (cx - r, cy - r, cx + r, cy + r)


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("asked", [None, "wide", "medium", "close"])
def test_faces_are_whole_and_the_object_is_in_the_frame(width: int, height: int, asked: Shot | None) -> None:
    casts = [
        [person("a", 0)],
        [person("a", 0), thing(45, 15)],
        [person("a", 0), person("b", 80, 72, -1)],
        [person("a", 0), person("b", 90, 40, -1), thing(50, 20)],
        [person("a", 0, 140), person("b", 150, 70, -1)],
        [person("a", 0), thing(120, 160)],
    ]
    for cast in casts:
        framing = choose_framing(cast, width, height, asked=asked)
        for subject in cast:
            if subject.face is not None:
                assert inside(framing.box(face_box(subject)), width, height), (asked, subject.id)
            if subject.key and not subject.acts:
                assert inside(framing.box(subject.box), width, height), (asked, subject.id)


@given(
    talls=st.lists(st.floats(40, 150), min_size=1, max_size=4),
    gap=st.floats(4, 60),
    size=st.sampled_from(SIZES),
    asked=st.sampled_from([None, "wide", "medium", "close"]),
)
def test_no_face_is_cut_whoever_stands_there(
    talls: list[float], gap: float, size: tuple[int, int], asked: Shot | None
) -> None:
    x, cast = 0.0, []
    for nth, tall in enumerate(talls):
        x += 0.3 * tall
        cast.append(person(f"p{nth}", x, tall))
        x += 0.3 * tall + gap
    framing = choose_framing(cast, *size, asked=asked)
    assert all(inside(framing.box(face_box(subject)), *size) for subject in cast)
    if framing.shot != "close":
        for subject in cast:
            x0, _, x1, _ = framing.box(subject.box)
            assert x0 >= -1
            assert x1 <= size[0] + 1


@given(wide=st.floats(20, 600), size=st.sampled_from(SIZES))
def test_what_is_huge_may_be_cut_but_never_who_acts(wide: float, size: tuple[int, int]) -> None:
    cast = [person("a", 0), thing(40 + wide / 2, wide)]
    framing = choose_framing(cast, *size)
    x0, y0, x1, y1 = framing.box(cast[0].box)
    assert inside((x0, y0, x1, y1), *size)
    assert y1 - y0 >= 0.2 * size[1] or wide > 300


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_sizes_and_headroom(width: int, height: int) -> None:
    alone = [person("a", 0)]
    wide, medium, close = (choose_framing(alone, width, height, asked=shot) for shot in ("wide", "medium", "close"))
    assert wide.k < medium.k < close.k
    for framing in (wide, medium):
        _, top, _, foot = framing.box(alone[0].box)
        assert top >= 0.08 * height
        assert foot <= 0.97 * height
    assert medium.k * 100 >= 0.22 * height
    eyes = close.ground + close.k * -76
    assert 0.2 * height < eyes < 0.5 * height


def test_who_acts_alone_has_room_where_they_look() -> None:
    right = choose_framing([person("a", 0, facing=1)], 768, 512, asked="medium")
    left = choose_framing([person("a", 0, facing=-1)], 768, 512, asked="medium")
    assert right.left < 384 < left.left


def test_two_neighbours_are_never_the_same_picture() -> None:
    cast = [person("a", 0), person("b", 80, facing=-1)]
    seen: list[Framing] = []
    previous = None
    for asked in (None, None, None, "medium", "medium", "wide", "wide", None):
        framing = choose_framing(cast, 768, 512, asked=asked, previous=previous)
        if previous is not None:
            assert (framing.shot, round(framing.k, 3)) != (previous.shot, round(previous.k, 3))
            assert framing.shot != previous.shot or abs(framing.k / previous.k - 1) > 0.1
        seen.append(framing)
        previous = framing
    assert [framing.shot for framing in seen[3:7]] == ["medium", "medium", "wide", "wide"]


def test_the_usual_shot_follows_what_is_told() -> None:
    assert choose_framing([], 768, 512).shot == "wide"
    assert choose_framing([person("a", 0)], 768, 512).shot == "medium"
    assert choose_framing([person("a", 0)], 768, 512, felt=True).shot == "close"
    assert choose_framing([person("a", 0), thing(40, 10)], 768, 512, felt=True).shot == "medium"
    assert choose_framing([person(str(n), 70 * n) for n in range(5)], 768, 512).shot == "wide"


def test_screen_direction_is_kept_unless_asked_otherwise() -> None:
    before = choose_framing([person("a", 0, facing=-1)], 768, 512)
    assert keep_direction("a", None, before) == -1
    assert keep_direction("a", 1, before) == 1
    assert keep_direction("b", None, before) is None
    assert keep_direction("a", None, None) is None


def test_what_hands_do_is_seen_from_nearer_unless_something_lies_lower() -> None:
    actor, held = person("a", 0), Subject("cup", (20.0, -60.0, 40.0, -35.0), key=True)
    far, near = (choose_framing([actor, held], 768, 512, hands=hands) for hands in (False, True))
    assert near.k > 1.1 * far.k
    for subject in (actor, held):
        x0, y0, x1, y1 = near.box(subject.box if subject.face is None else face_box(subject))
        assert inside((x0, y0, x1, y1), 768, 512)
    low = [actor, thing(45, 15)]
    assert choose_framing(low, 768, 512, hands=True) == choose_framing(low, 768, 512)
    crowd = [person(name, 60.0 * nth) for nth, name in enumerate("abc")]
    assert choose_framing(crowd, 768, 512, hands=True) == choose_framing(crowd, 768, 512)
