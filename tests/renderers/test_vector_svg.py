"""SVG is read by a list, written anew, and put together with the cast that it uses."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from katha.renderers.vector.raster import layers, rasterise
from katha.renderers.vector.svg import Drawing, DrawingFault, own_part, read_svg, self_contained

NS = 'xmlns="http://www.w3.org/2000/svg"'
BOX = 'viewBox="0 0 1280 720"'


def read(inner: str, root: str = BOX, *, lenient: bool = False) -> Drawing:
    """Return a drawing of what stands in a root."""
    return read_svg(f"<svg {NS} {root}>{inner}</svg>", most_bytes=100_000, lenient=lenient)


CAST = read(
    '<defs><linearGradient id="au-g"><stop offset="0" stop-color="red"/></linearGradient>'
    '<g id="au-eye"><circle r="3"/></g>'
    '<g id="au-skull"><rect width="9" height="9" fill="url(#au-g)"/></g>'
    '<g id="au-head-calm"><use href="#au-skull"/><use href="#au-eye"/></g>'
    '<g id="bo-all"><g id="bo-body"><rect width="9" height="9"/></g><g id="bo-hat"/></g></defs>'
    '<use href="#au-head-calm"/>'
)


def test_a_drawing_is_written_anew_without_comments_sizes_and_other_ways_to_say_it() -> None:
    drawing = read(
        '<!-- no --><defs>\n <g  id="a"/></defs><use xlink:href="#a"/>'
        '<rect style="fill: #ABC; stroke-width:2px" fill="red"/>',
        f'{BOX} width="100%" height="5" version="1.1" xmlns:xlink="http://www.w3.org/1999/xlink"',
    )
    assert drawing.source() == (
        f'<svg {NS} {BOX}>\n<defs>\n<g id="a"/>\n</defs>\n<use href="#a"/>\n'
        '<rect fill="#ABC" stroke-width="2px"/>\n</svg>'
    )


def test_ids_groups_references_and_view() -> None:
    drawing = read(
        '<g id="b"><rect id="r" fill="url(#x)"/></g><g id="a"/><use id="a" href="#b"/>', 'viewBox="1,2 30 40"'
    )
    assert list(drawing.ids) == ["b", "r", "a"]
    assert drawing.groups == ("b", "a")
    assert drawing.references == ("x", "b")
    assert drawing.repeated == ("a",)
    assert drawing.view == (1, 2, 30, 40)


def test_an_svg_without_its_namespace_is_one() -> None:
    text = f"<svg {BOX}><g/></svg>"
    assert read_svg(text, most_bytes=99).source() == read("<g/>").source()


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("<text>a</text>", "<text> is not drawn here"),
        ('<g id="hut"><path d="M0 0L1"/></g>', 'd="M0 0L1" of a <path> in <g id="hut"> has too few numbers for L'),
        ('<rect id="r" width="wide"/>', 'width="wide" of <rect id="r"> is not a number'),
        ('<g class="a"/>', "The attribute class"),
        ("<g>as before</g>", "There is text between elements"),
        ('<use href="a.svg#b"/>', "refers outside the picture"),
        ('<g id="a"><use href="#a"/></g>', '<g id="a"> is drawn within itself'),
        ('<rect style="mix-blend-mode:multiply"/>', "The attribute mix-blend-mode"),
    ],
)
def test_a_fault_says_what_where_and_what_to_do(inner: str, said: str) -> None:
    with pytest.raises(DrawingFault) as caught:
        read(inner)
    assert said in str(caught.value)
    assert ":" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "drawn"),
    [
        ("M0 0C1 1 2 2 3 3 4 4 5 5Z", "M0 0C1 1 2 2 3 3Q 4 4 5 5Z"),
        ("M0 0c1 1 2 2l1 1", "M0 0q1 1 2 2l1 1"),
        ("M0 0q5 5z", "M0 0l5 5z"),
        ("M0 0S1 1 2 2 3 3", "M0 0S1 1 2 2L 3 3"),
    ],
)
def test_a_curve_that_lacks_numbers_is_drawn_to_its_end(given: str, drawn: str) -> None:
    found = read(f'<path id="p" d="{given}"/>')
    assert found.ids["p"].get("d") == drawn
    assert len(found.mended) == 1
    assert 'of <path id="p"> had too few numbers' in found.mended[0]
    assert read_svg(found.source(), most_bytes=999).mended == ()


def test_a_part_brings_the_paints_of_the_groups_round_it() -> None:
    drawing = read(
        '<defs stroke-width="2"><g fill="none" stroke="red"><path id="a" d="M0 0"/><g id="b" stroke="blue">'
        '<g opacity=".5"><path id="c" d="M0 0"/></g></g></g></defs><g fill="red"><path id="d" d="M0 0"/></g>'
    )
    paints = {name: dict(element.attrib) for name, element in drawing.ids.items()}
    assert paints["a"] == {"id": "a", "d": "M0 0", "stroke-width": "2", "fill": "none", "stroke": "red"}
    assert paints["c"] == {"id": "c", "d": "M0 0", "stroke-width": "2", "fill": "none", "stroke": "blue"}
    assert paints["d"] == {"id": "d", "d": "M0 0"}


def test_blur_is_held_at_eight() -> None:
    drawing = read('<filter id="f"><feGaussianBlur stdDeviation="40 3"/></filter>')
    assert 'stdDeviation="8 3"' in drawing.source()


EDITED = (
    '<?xml version="1.0"?><!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/svg11.dtd">'
    f'<svg {NS} xmlns:i="http://www.inkscape.org/x" {BOX} i:version="1"><i:namedview id="n"><i:grid/></i:namedview>'
    "<metadata><i:RDF/></metadata>"
    '<g i:label="one" style="font-size:9px;-inkscape-x:1;fill:#fff" class="k"><rect width="9" height="9"/></g></svg>'
)


def test_what_an_editor_adds_is_left_out_of_a_persons_file_and_a_fault_of_a_model() -> None:
    drawing = read_svg(EDITED, most_bytes=9_999, lenient=True)
    assert drawing.source() == read('<g fill="#fff"><rect width="9" height="9"/></g>').source()
    with pytest.raises(DrawingFault):
        read_svg(EDITED, most_bytes=9_999)


@pytest.mark.parametrize("inner", ["<script/>", '<g onclick="x()"/>', '<image href="a.png"/>', "<style>a{}</style>"])
def test_a_persons_file_runs_and_loads_nothing_either(inner: str) -> None:
    with pytest.raises(DrawingFault):
        read(inner, lenient=True)


def test_a_frame_gets_the_parts_that_it_uses_in_the_casts_order_and_no_others() -> None:
    frame = read('<use href="#bo-hat"/><use href="#au-head-calm"/>')
    whole = read_svg(self_contained(frame, CAST), most_bytes=9_999)
    assert list(whole.ids) == ["au-g", "au-eye", "au-skull", "au-head-calm", "bo-hat"]
    assert own_part(whole.source(), CAST) == frame.source()


def test_a_part_within_a_part_is_there_once() -> None:
    whole = read_svg(self_contained(read('<use href="#bo-hat"/><use href="#bo-all"/>'), CAST), most_bytes=9_999)
    assert list(whole.ids) == ["bo-all", "bo-body", "bo-hat"]
    assert whole.repeated == ()


def test_what_nothing_defines_and_what_both_define_are_faults() -> None:
    with pytest.raises(DrawingFault, match="#au-hand"):
        self_contained(read('<use href="#au-hand"/>'), CAST)
    with pytest.raises(DrawingFault, match='"au-skull"'):
        self_contained(read('<g id="au-skull"/><use href="#au-head-calm"/>'), CAST)
    own = read('<g id="au-skull"/><use href="#au-skull"/>')
    assert self_contained(own, CAST) == own.source()


def test_a_frame_and_a_cast_that_come_to_too_much_together_are_a_fault() -> None:
    many = read(f'<g id="au-crowd">{"<g/>" * 1_000}</g>')
    with pytest.raises(DrawingFault, match="60,000"):
        self_contained(read('<use href="#au-crowd"/>' * 100), many)


_NAMES = st.sampled_from(["a", "b", "c", "d"])
_NUMBERS = st.one_of(st.integers(-999, 999).map(str), st.floats(-999, 999).map(lambda number: f"{number:.3f}"))
_ATTRIBUTES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from([f"i{at}" for at in range(9)]),
        "x": _NUMBERS,
        "width": _NUMBERS,
        "fill": st.sampled_from(["#fff", "none", "red", "url(#none)", "rgb(1, 2,3)"]),
        "transform": _NUMBERS.map(lambda number: f"translate({number})  rotate( 4 )"),
        "style": st.sampled_from(["fill:#123", "stroke : red;", "opacity:.5;fill:blue"]),
        "data-name": st.text(alphabet="a<&>\"'é\n", max_size=5),
        "d": st.sampled_from(["M0 0", "M1,2l3-4.5.5 6z", "m0 0a1 1 0 00 1.5.5"]),
    },
)


def _tag(name: str, attributes: dict[str, str], inner: str) -> str:
    from xml.sax.saxutils import quoteattr

    return f"<{name} {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}>{inner}</{name}>"


_TREES = st.recursive(
    st.builds(_tag, st.sampled_from(["rect", "path", "circle"]), _ATTRIBUTES, st.just("")),
    lambda inner: st.builds(
        _tag, st.sampled_from(["g", "defs", "symbol", "svg"]), _ATTRIBUTES, st.lists(inner, max_size=4).map("\n".join)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(_TREES, st.text(alphabet='ab<&>"é \n', max_size=8))
def test_what_is_written_is_read_as_the_same(inner: str, title: str) -> None:
    from xml.sax.saxutils import escape

    drawing = read(f"<title>{escape(title)}</title>{inner}")
    again = read_svg(drawing.source(), most_bytes=100_000)
    assert again.source() == drawing.source()
    assert list(again.ids) == list(drawing.ids)


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_is_a_fault_or_a_drawing(text: str) -> None:
    for whole in (text, f"<svg {NS} {BOX}>{text}</svg>", f"<svg {NS} {BOX}><rect fill='{text}'/></svg>"):
        with suppress(DrawingFault):
            read_svg(whole, most_bytes=100_000)


PICTURE = read(
    '<rect width="1280" height="720" fill="#2040c0"/><circle cx="640" cy="360" r="200" fill="#fc0"/>'
).source()


def test_a_picture_is_rgb_of_the_size_asked_without_metadata_and_always_the_same() -> None:
    png = rasterise(PICTURE, 640, 360)
    image = Image.open(io.BytesIO(png))
    assert (image.mode, image.size, image.info) == ("RGB", (640, 360), {})
    assert image.getpixel((320, 180)) == (255, 204, 0)
    assert rasterise(PICTURE, 640, 360) == png


def test_another_shape_is_filled_to_its_edges() -> None:
    image = layers([(PICTURE, 300, 300)])[0]
    assert image.size == (300, 300)
    assert image.getchannel("A").getextrema() == (255, 255)


def test_several_threads_draw_at_once() -> None:
    sizes = [(64 + 16 * (at % 5), 36 + at % 3) for at in range(40)]
    with ThreadPoolExecutor(8) as pool:
        pngs = list(pool.map(lambda size: rasterise(PICTURE, *size), sizes))
    assert [Image.open(io.BytesIO(png)).size for png in pngs] == sizes


def test_a_batch_comes_in_order() -> None:
    assert [one.size for one in layers([(PICTURE, 40 + at, 30) for at in range(11)])] == [
        (40 + at, 30) for at in range(11)
    ]


@pytest.mark.parametrize("size", [(0, 9), (9, -1), (100_000, 100_000)])
def test_a_picture_of_no_or_too_many_pixels_is_a_fault(size: tuple[int, int]) -> None:
    with pytest.raises(DrawingFault):
        rasterise(PICTURE, *size)


def test_what_is_no_svg_is_a_fault() -> None:
    for text in ("", "<html/>", f"<svg {NS}><g></svg>"):
        with pytest.raises(DrawingFault):
            rasterise(text, 9, 9)
