"""What the checks find in frames and casts, each fault made by hand, and nothing in good ones."""

from __future__ import annotations

import time

import pytest

from katha.renderers.vector.checks import Gap, cast_faults, filled, frame_faults, identity
from katha.renderers.vector.svg import Drawing, read_svg

SIZE = (1280, 720)
PREFIXES = {"the man": "ma", "the dog": "do"}
MOODS = {"ma": ("calm", "glad"), "do": ("calm",)}
CAST = """<svg viewBox="0 0 1600 1240"><defs>
<linearGradient id="ma-skin"><stop offset="0" stop-color="#c86"/><stop offset="1" stop-color="#a64"/></linearGradient>
<g id="ma-skull"><ellipse cy="-70" rx="60" ry="70" fill="url(#ma-skin)"/></g>
<g id="ma-head-calm"><use href="#ma-skull"/><path d="M-20 -30H30" stroke="#000" stroke-width="6"/></g>
<g id="ma-head-glad"><use href="#ma-skull"/><path d="M-30 -50Q0 0 40 -50Z" fill="#fff"/></g>
<g id="ma-body"><path d="M-60 0L-50 -380H50L60 0Z" fill="currentColor"/></g>
<g id="do-head-calm"><circle cy="-40" r="40" fill="#333"/></g>
<g id="do-sit"><ellipse cy="-60" rx="80" ry="60" fill="#333"/></g>
<g id="rm-hut"><rect width="400" height="300" fill="#864"/></g>
</defs><rect width="1600" height="1240" fill="#eee"/><use href="#ma-body" x="300" y="700"/></svg>"""
FRAME = """<svg viewBox="0 0 1280 720"><rect width="1280" height="720" fill="#9cf"/>
<g id="hut"><use href="#rm-hut" x="800" y="300"/></g>
<g id="f-all"><g id="man-waves"><use href="#ma-body" color="#a22" x="400" y="700"/>
<use href="#ma-head-glad" x="400" y="320"/></g></g>
<g id="dog"><use href="#do-sit" x="640" y="690"/><use href="#do-head-calm" x="640" y="600"/></g></svg>"""
GROUPS = ("hut", "man-waves", "dog")


def read(text: str) -> Drawing:
    """Return a drawing."""
    return read_svg(text, most_bytes=100_000)


def faults(frame: str, cast: str = CAST, groups: tuple[str, ...] = GROUPS) -> list[str]:
    """Return what is wrong in a frame of both."""
    return frame_faults(read(frame), read(cast), size=SIZE, characters=PREFIXES, groups=groups)


def test_nothing_is_wrong_in_a_good_frame_and_a_good_cast() -> None:
    assert faults(FRAME) == []
    assert cast_faults(read(CAST), prefixes=PREFIXES, moods=MOODS) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("#rm-hut", "#rm-house", 'Nothing has the ids "rm-house"'),
        ('id="f-all"', 'id="dog"', 'the same id ("dog")'),
        ('id="f-all"', 'id="ma-skull"', 'The ids "ma-skull" are the cast\'s'),
        ("#9cf", "#9cf9cf9", 'fill="#9cf9cf9" is not a colour'),
        ("#9cf", "skyblu", 'fill="skyblu" is not a colour'),
        ("#9cf", "rgb(1,2)", 'fill="rgb(1,2)" is not a colour'),
        ('fill="#9cf"', 'fill="url(#hut)"', "fill refers to #hut, a <g>: it must be a gradient or pattern"),
        ('<g id="hut">', '<g id="hut" mask="url(#dog)">', "mask refers to #dog"),
        ('href="#do-sit"', 'href="#ma-skin"', "href refers to #ma-skin, a <linearGradient>"),
        ('id="dog"', 'id="cat"', 'Nothing has id="dog", which must be seen'),
        ('<g id="hut">', '<g id="hut" transform="translate(900 0)">', "of it is inside the picture: move it"),
        ('<g id="hut">', '<g id="hut" transform="scale(.05)">', "of the picture's pixels: draw it larger"),
        ('<g id="hut">', '<g id="hut" opacity="0">', 'id="hut" must be seen and draws nothing'),
        (
            "</svg>",
            '<rect x="700" y="250" width="580" height="400" fill="#864"/></svg>',
            "something drawn later hides it",
        ),
        ('width="1280" height="720"', 'width="1270" height="720"', "see-through in 0.78% of it (x 1270 to 1280"),
        ('fill="#9cf"', 'fill="#9cf" opacity=".9"', "see-through"),
        ("0 0 1280 720", "0 0 1280 800", 'it must be "0 0 1280 720"'),
    ],
)
def test_each_fault_is_told(old: str, new: str, said: str) -> None:
    found = faults(FRAME.replace(old, new, 1))
    assert any(said in fault for fault in found), found
    assert all(fault.endswith(".") for fault in found)


COVER = '<rect x="{0}" y="160" width="130" height="170" fill="#864"/>'


def test_a_face_of_what_must_be_seen_is_covered_by_less_than_a_fifth() -> None:
    over = FRAME.replace("</svg>", COVER.format(335) + "</svg>")
    assert [told for told in faults(over) if "ma-head-glad" in told] == [
        '100% of the head "ma-head-glad" of the man in id="man-waves" is covered by what is drawn later: move one of '
        "the two, or draw the head after it."
    ]
    assert faults(FRAME.replace("</svg>", COVER.format(451) + "</svg>")) == []  # a tenth
    twice = '<use href="#ma-head-glad" x="600" y="320"/></g></g>'
    assert faults(over.replace("</g></g>", twice, 1)) == []  # a crowd, of whom one is seen whole


def kinds(found: list[str]) -> list[str]:
    return [type(fault).__name__ for fault in found]


def test_a_hat_over_hair_is_a_doubt_and_what_hides_eyes_and_mouth_is_a_fault() -> None:
    hat = '<rect x="320" y="175" width="160" height="50" fill="#864"/>'
    told = faults(FRAME.replace("</svg>", f"{hat}</svg>"))
    assert kinds(told) == ["Doubt"]
    assert "ma-head-glad" in told[0]
    bar = '<rect x="320" y="225" width="160" height="80" fill="#864"/>'
    assert kinds(faults(FRAME.replace("</svg>", f"{bar}</svg>"))) == ["str"]
    alone = CAST.replace('<g id="ma-head-calm">', '<g id="ma-other">')  # one mood: the place of a face counts
    assert kinds(faults(FRAME.replace("</svg>", f"{hat}</svg>"), alone)) == ["Doubt"]
    assert kinds(faults(FRAME.replace("</svg>", f"{bar}</svg>"), alone)) == ["str"]


def test_eyes_that_a_frame_lays_on_a_face_do_not_cover_it() -> None:
    cast = CAST.replace("</defs>", '<g id="ma-pupils"><rect x="-45" y="-60" width="90" height="45"/></g></defs>')
    laid = '<use href="#ma-pupils" x="400" y="320"/>'
    hat = '<rect x="320" y="175" width="160" height="50" fill="#864"/>'
    assert kinds(faults(FRAME.replace("</svg>", f"{laid}{hat}</svg>"), cast)) == ["Doubt"]


def test_what_is_partly_outside_and_fills_much_of_the_picture_is_a_doubt() -> None:
    far = FRAME.replace('<g id="hut">', '<g id="hut" transform="translate(-2400 -700) scale(4)">')
    assert kinds([fault for fault in faults(far) if "inside the picture" in fault]) == ["Doubt"]


def test_whoever_is_in_a_photograph_need_not_be_made_of_the_cast() -> None:
    without = FRAME.replace('<use href="#do-sit" x="640" y="690"/><use href="#do-head-calm" x="640" y="600"/>', "")
    told = frame_faults(read(without), read(CAST), size=SIZE, characters=PREFIXES, groups=(), pictured={"the dog"})
    assert kinds(told) == ["Doubt"]


def test_small_holes_are_closed_in_the_colour_round_them_and_large_ones_are_not() -> None:
    holed = FRAME.replace('width="1280" height="720" fill="#9cf"', 'width="1270" height="720" fill="#9cf"')
    (gap,) = faults(holed)
    assert isinstance(gap, Gap)
    closed = filled(holed, read(holed), read(CAST))
    assert '<rect x="0" y="0" width="1280" height="720" fill="#99ccff"/>' in closed
    assert faults(closed) == []
    (hole,) = faults(FRAME.replace('width="1280" height="720" fill="#9cf"', 'width="1200" height="720" fill="#9cf"'))
    assert not isinstance(hole, Gap)


def test_a_thing_without_moods_needs_no_head() -> None:
    ladder = CAST.replace('<g id="do-head-calm"><circle cy="-40" r="40" fill="#333"/></g>', "")
    (told,) = cast_faults(read(ladder), prefixes=PREFIXES, moods=MOODS)
    assert "do-head-calm" in told
    assert cast_faults(read(ladder), prefixes=PREFIXES, moods=MOODS, things={"do"}) == []


def test_a_face_is_as_large_as_its_shot_needs() -> None:
    def told(shot: str) -> list[str]:
        return frame_faults(read(FRAME), read(CAST), size=SIZE, characters=PREFIXES, groups=GROUPS, shot=shot)

    assert told("wide") == told("medium") == told("") == []
    assert told("close-up") == [
        "The largest face of what must be seen is 19% of the frame's height, too small for a shot that is close-up: "
        "make it at least 25%."
    ]
    near = FRAME.replace("</svg>", '<use href="#ma-head-calm" transform="translate(1000 700) scale(2)"/></svg>')
    found = frame_faults(read(near), read(CAST), size=SIZE, characters=PREFIXES, groups=GROUPS, shot="close-up")
    assert kinds([fault for fault in found if "largest face" in fault]) == ["Doubt"], "the large face is elsewhere"
    assert frame_faults(read(FRAME), read(CAST), size=SIZE, characters=PREFIXES, groups=("hut",), shot="close-up") == []


def test_colours_that_are_some_are_no_faults() -> None:
    for colour in ("#9cf", "#9cff", "#99ccff", "#99ccffff", "SkyBlue", "rgb(150, 200,250)", "hsl(200deg 50% 70%)"):
        assert faults(FRAME.replace("#9cf", colour, 1)) == []


def test_a_character_who_is_not_drawn_is_missed_also_where_only_unused_parts_use_it() -> None:
    without = FRAME.replace('<use href="#do-sit" x="640" y="690"/><use href="#do-head-calm" x="640" y="600"/>', "")
    without = without.replace("</svg>", '<defs><g id="f-dog"><use href="#do-sit"/></g></defs></svg>')
    told = (
        'No part of the dog is drawn, who is named for this frame: use the parts "do-..." of the cast, '
        "unless they are not to be seen in it."
    )
    assert told in faults(without, groups=())
    own = without.replace("</svg>", '<use href="#f-dog" x="640" y="690"/></svg>')
    assert faults(own, groups=()) == []


def test_one_colour_all_over_is_blank() -> None:
    blank = '<svg viewBox="0 0 1280 720"><rect width="1280" height="720" fill="red"/></svg>'
    assert frame_faults(read(blank), None, size=SIZE, characters={}, groups=()) == [
        "The picture is one colour all over: draw what the frame must show."
    ]


def test_a_frame_of_many_groups_is_checked_in_little_more_than_its_pictures() -> None:
    groups = "".join(f'<g id="g{at}"><circle cx="{60 + at * 100}" cy="60" r="50"/></g>' for at in range(12))
    frame = FRAME.replace("</svg>", f"{groups}</svg>")
    faults(frame)
    begun = time.monotonic()
    assert faults(frame, groups=(*GROUPS, *(f"g{at}" for at in range(12)))) == []
    assert time.monotonic() - begun < 6  # a quarter of it on a machine that has nothing else to do


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('id="ma-head-glad"', 'id="ma-head-happy"', 'the man lacks "ma-head-glad"'),
        ('id="do-sit"', 'id="do-head-down"', 'the dog has no body: draw it as a part with id="do-body"'),
        ('id="do-sit"', 'id="ma-body"', 'the same id ("ma-body")'),
        ('href="#ma-skull"', 'href="#ma-bone"', 'Nothing has the ids "ma-bone"'),
        ('fill="#333"', 'fill="#3333333"', "is not a colour"),
        ('<circle cy="-40" r="40" fill="#333"/>', "", 'id="do-head-calm" draws nothing'),
        (
            '<path d="M-30 -50Q0 0 40 -50Z" fill="#fff"/>',
            '<path d="M-20 -30H30" stroke="#000" stroke-width="6"/>',
            "the same",
        ),
        ('<use href="#ma-body" x="300" y="700"/>', "", "The cast sheet shows nothing"),
    ],
)
def test_each_fault_of_a_cast_is_told(old: str, new: str, said: str) -> None:
    found = cast_faults(read(CAST.replace(old, new, 1)), prefixes=PREFIXES, moods=MOODS)
    assert any(said in fault for fault in found), found


def test_identity_is_the_same_in_every_frame_and_changes_with_what_a_part_uses() -> None:
    frame, cast = read(FRAME), read(CAST)
    found = identity(frame, cast)
    assert {prefix: [used.id for used in parts] for prefix, parts in found.items()} == {
        "rm": ["rm-hut"],
        "ma": ["ma-body", "ma-head-glad"],
        "do": ["do-sit", "do-head-calm"],
    }
    assert identity(read(FRAME.replace('x="400"', 'x="500"')), cast) == found
    other = identity(frame, read(CAST.replace("#a64", "#a65")))
    assert other["ma"][1] != found["ma"][1]
    assert other["ma"][0] == found["ma"][0]
    assert other["do"] == found["do"]
