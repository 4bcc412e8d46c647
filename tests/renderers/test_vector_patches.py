"""Patches of a drawing, whole drawings, and frames, as models write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from katha.renderers.vector.patches import apply_patches, find_svg, split_frames

SOURCE = '<svg viewBox="0 0 9 9">\n<g id="a">\n  <rect x="1"/><rect x="2"/>\n</g>\n<use href="#b"/>\n</svg>'


def block(old: str, new: str) -> str:
    """Return a patch."""
    return f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE"


def test_a_block_is_put_in_where_it_stands_once() -> None:
    patch = block('<use href="#b"/>', '<use href="#c"/>')
    after = apply_patches(SOURCE, f"Here:\n```\n{patch}\n```")
    assert after.source == SOURCE.replace("#b", "#c")
    assert (after.applied, after.problems, after.fine) == (1, (), False)


def test_blocks_go_in_in_order_and_each_sees_those_before_it() -> None:
    reply = f"{block('#b', '#c')}\n{block('#c', '#d')}"
    assert apply_patches(SOURCE, reply).source == SOURCE.replace("#b", "#d")


@pytest.mark.parametrize(
    "old",
    [
        '<g id="a"> <rect x="1"/> <rect x="2"/> </g>',
        '<g id="a"><rect x="1"/><rect x="2"/></g>',
        '<g\n   id="a">\n\n<rect x="1"/>\n<rect   x="2"/></g>',
    ],
)
def test_other_spaces_do_no_harm(old: str) -> None:
    after = apply_patches(SOURCE, block(old, "<g/>"))
    assert after.source == '<svg viewBox="0 0 9 9">\n<g/>\n<use href="#b"/>\n</svg>'
    assert after.applied == 1


@pytest.mark.parametrize(
    ("old", "said"),
    [("<rect", "is there 2 times"), ("<circle/>", "is not in the code"), (" ", "is empty"), ("<rect\nx=", "2 times")],
)
def test_a_block_that_does_not_fit_once_is_told_with_its_first_line_and_nothing_changes(old: str, said: str) -> None:
    after = apply_patches(SOURCE, block(old, "x"))
    assert after.source == SOURCE
    assert said in after.problems[0]
    assert f'"{old.splitlines()[0].strip()}"' in after.problems[0]


def test_one_block_that_does_not_fit_keeps_no_other_out() -> None:
    after = apply_patches(SOURCE, f"{block('<circle/>', 'x')}\n{block('#b', '#c')}")
    assert after.applied == 1
    assert len(after.problems) == 1


@pytest.mark.parametrize("reply", ["<<<<<<< SEARCH\n#b\n=======\n#c", "<<<<<<< SEARCH\n#b\n"])
def test_a_block_that_was_cut_off_changes_nothing(reply: str) -> None:
    after = apply_patches(SOURCE, reply)
    assert after.source == SOURCE
    assert "has no end" in after.problems[0]


def test_a_block_that_was_cut_off_is_told_and_the_next_is_put_in() -> None:
    after = apply_patches(SOURCE, f"<<<<<<< SEARCH\n<g\n=======\n{block('#b', '#c')}")
    assert after.source == SOURCE.replace("#b", "#c")
    assert len(after.problems) == 1


def test_marks_of_other_lengths_windows_lines_and_an_empty_replacement() -> None:
    reply = '<<<<<< SEARCH\r\n<use href="#b"/>\r\n=====\r\n>>>>>> replace\r\n'
    assert apply_patches(SOURCE, reply).source == SOURCE.replace('<use href="#b"/>', "")


@pytest.mark.parametrize(("reply", "fine"), [("FINE", True), ("It is fine.", True), ("refined", False), ("", False)])
def test_fine_alone_means_no_change(reply: str, fine: bool) -> None:
    after = apply_patches(SOURCE, reply)
    assert (after.source, after.applied, after.problems, after.fine) == (SOURCE, 0, (), fine)


def test_fine_beside_a_block_is_no_word_of_its_own() -> None:
    assert not apply_patches(SOURCE, f"Otherwise fine.\n{block('#b', '#c')}").fine


@given(st.text(), st.text())
def test_no_reply_makes_it_fail(source: str, reply: str) -> None:
    apply_patches(source, reply)
    find_svg(reply)
    split_frames(reply)


@given(st.integers(0, 60), st.text(alphabet="<>=S \n#ab/"))
def test_what_is_copied_is_found_or_told(start: int, new: str) -> None:
    old = SOURCE[start : start + 12].strip("\n")
    after = apply_patches(SOURCE, block(old, new))
    assert after.applied + len(after.problems) >= 1


@pytest.mark.parametrize(
    "reply",
    [
        "<svg>x</svg>",
        "Here it is:\n```svg\n<svg>x</svg>\n```\nDone.",
        "<svg>first</svg> and better <svg>x</svg>",
        "I write an `<svg>` element: <svg>x</svg>",
        "<svg>x</svg> and then <svg>cut off",
        "<svg>x</svg></svg>",
    ],
)
def test_the_last_complete_svg_is_found(reply: str) -> None:
    assert find_svg(reply) == "<svg>x</svg>"


def test_an_svg_holds_others_comments_and_signs_in_quotes() -> None:
    whole = '<svg a="1>2"><!-- </svg> --><svg x="1"/><svg><g/></svg></svg>'
    assert find_svg(f"so {whole} it is") == whole


@pytest.mark.parametrize("reply", ["", "none", "<svg>", "</svg>", "<svgs></svgs>"])
def test_no_svg_is_none(reply: str) -> None:
    assert find_svg(reply) is None


def test_patches_of_the_first_and_the_last_line_are_no_svg() -> None:
    first, last = block('<svg a="1">', '<svg a="2">'), block("</svg>", "<g/></svg>")
    assert find_svg(f"{first}\n{last}") is None


def test_frames_are_told_apart_by_their_headers() -> None:
    reply = f"Well.\nFRAME 3\n{block('a', 'b')}\n**Frame 12:**\n{block('c', 'd')}\n### FRAME 3\nmore"
    assert split_frames(reply) == {3: f"{block('a', 'b')}\nmore", 12: block("c", "d")}


def test_a_frame_that_is_only_named_is_no_header() -> None:
    assert split_frames("In frame 3 all is well.\nFINE") == {}
