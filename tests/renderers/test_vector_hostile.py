"""Over 300 hostile SVGs: each is a typed fault or a picture, within the time and the memory that a drawing may cost."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from katha.renderers.vector.raster import MOST_MEMORY, _processes, rasterise
from katha.renderers.vector.svg import DrawingFault, read_svg, self_contained

NS = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
BOX = 'viewBox="0 0 1280 720"'
RECT = '<rect width="9" height="9"/>'
MOST_BYTES = 8_000_000
MOST_SECONDS = 2.0
Case = tuple[str, str | bytes, bool]
"""A name, an SVG, and whether it must be refused (else a picture will do)."""


def svg(inner: str, root: str = BOX) -> str:
    """Return a whole SVG."""
    return f"<svg {NS} {root}>{inner}</svg>"


def laughs() -> Iterator[Case]:
    """Yield parts of parts: few bytes, many shapes."""
    for tag in ("g", "symbol", "svg"):
        for fan, levels in ((2, 8), (2, 14), (2, 40), (4, 8), (4, 20), (10, 4), (10, 9), (40, 3), (300, 2), (3000, 2)):
            parts = [f'<{tag} id="p0">{RECT}</{tag}>']
            for level in range(1, levels + 1):
                parts.append(f'<{tag} id="p{level}">{f"""<use href="#p{level - 1}"/>""" * fan}</{tag}>')
            text = svg(f'<defs>{"".join(parts)}</defs><use href="#p{levels}"/>')
            yield f"laughs {tag} {fan}^{levels}", text, fan**levels > 60_000
    for count in (2, 10, 60, 140, 150, 500, 5000):
        chain = "".join(f'<g id="c{at}"><use href="#c{at + 1}"/></g>' for at in range(count))
        yield f"chain {count}", svg(f'<defs>{chain}<g id="c{count}">{RECT}</g></defs><use href="#c0"/>'), count > 150
    for effect, tag in (("mask", "mask"), ("clip-path", "clipPath")):
        for levels in (3, 20, 60, 200):
            inner = '<rect width="1280" height="720" fill="#fff"/>'
            made = "".join(f'<{tag} id="m{at}" {effect}="url(#m{at + 1})">{inner}</{tag}>' for at in range(levels))
            text = svg(f'<{tag} id="m{levels}">{inner}</{tag}>{made}<rect {effect}="url(#m0)" width="99" height="99"/>')
            yield f"{tag} of {tag} {levels}", text, levels > 150
    heavy = "<g opacity='.9'>" * 50 + '<rect width="1280" height="720"/>' + "</g>" * 50
    yield "layers", svg(heavy * 8), False
    pattern = f'<pattern id="p" width="60" height="60" patternUnits="userSpaceOnUse">{RECT * 500}</pattern>'
    yield "pattern on many", svg(f'{pattern}<g fill="url(#p)">{RECT * 500}</g>'), True
    both = f'{pattern}<g id="a" fill="url(#p)">{RECT}</g>'
    yield "pattern through use", svg(f'<defs>{both}</defs>{"""<use href="#a"/>""" * 5000}'), True
    masks = f'<mask id="m">{RECT * 1000}</mask>' + "".join(f'<g mask="url(#m)">{RECT}</g>' for _ in range(500))
    yield "mask on many", svg(masks), True
    groups = '<g id="a"><g fill="url(#g)"><use href="#b"/></g></g><g id="b"/><linearGradient id="g"/>'
    yield "harmless", svg(groups), False


def entities() -> Iterator[Case]:
    """Yield DOCTYPEs and entities of every form."""
    for levels in (2, 5, 10, 20):
        lines = ['<!ENTITY e0 "lol">', *(f'<!ENTITY e{at} "{f"&e{at - 1};" * 10}">' for at in range(1, levels))]
        yield f"entities {levels}", f"<!DOCTYPE svg [{''.join(lines)}]>{svg(f'<desc>&e{levels - 1};</desc>')}", True
    yield (
        "quadratic",
        f'<!DOCTYPE svg [<!ENTITY a "{"a" * 50_000}">]>{svg("<desc>" + "&a;" * 50_000 + "</desc>")}',
        True,
    )
    for said in ('SYSTEM "file:///etc/passwd"', 'SYSTEM "http://127.0.0.1:9/x"', 'PUBLIC "a" "http://127.0.0.1:9/x"'):
        yield f"external {said}", f"<!DOCTYPE svg [<!ENTITY x {said}>]>{svg('<desc>&x;</desc>')}", True
        yield f"doctype {said}", f"<!DOCTYPE svg {said}>{svg(RECT)}", True
        yield f"parameter {said}", f"<!DOCTYPE svg [<!ENTITY % x {said}> %x;]>{svg(RECT)}", True
    for text in ("&nbsp;", "&x;", "&#0;", "&#xFFFFFFFF;", "&lt;!ENTITY x>"):
        yield f"reference {text}", svg(f"<desc>{text}</desc>"), not text.startswith("&lt;")
    yield "attlist", f'<!DOCTYPE svg [<!ATTLIST rect onload CDATA "x()">]>{svg(RECT)}', True


OUTSIDE = (
    "http://127.0.0.1:9/a.svg#b",
    "//127.0.0.1/a.svg",
    "file:///etc/passwd",
    "/etc/passwd#a",
    "a.svg#b",
    "data:image/svg+xml;base64,PHN2Zy8+",
    "data:text/html,<x>".replace("<", "&lt;"),
    "javascript:alert(1)",
    "java&#10;script:alert(1)",
    "\\\\127.0.0.1\\share#a",
    "#a b",
    "#a')",
    "#",
    "##a",
    "",
)


def references() -> Iterator[Case]:
    """Yield references to what is outside."""
    for to in OUTSIDE:
        for tag in ("use", "linearGradient", "pattern", "image", "a", "feImage", "script", "mpath"):
            name = "href" if len(to) % 2 else "xlink:href"
            yield f"{tag} {name} {to}", svg(f'<defs><g id="a"/></defs><{tag} {name}="{to}"/>'), True
    for to in ("http://127.0.0.1:9/a#b", "//x#a", "file:///etc/passwd", "a.svg#a", "data:,x", "#a) url(http://x"):
        for name in (
            "fill",
            "stroke",
            "filter",
            "mask",
            "clip-path",
            "marker-start",
            "cursor",
            "stop-color",
            "d",
            "id",
        ):
            yield f"{name} url({to})", svg(f'<path {name}="url({to})"/>'), True
        yield f"style url({to})", svg(f'<rect style="fill:url({to})"/>'), True
        yield f"style unknown url({to})", svg(f'<rect style="background:url({to})"/>'), True
        yield f"import {to}", svg(f"<style>@import url({to})</style>"), True
    for trick in ("u\\72l(http://x)", "URL(http://x)", "url (http://x)", "url(#a)url(http://x)", "image(http://x)"):
        yield f"fill {trick}", svg(f'<rect fill="{trick}"/>'), True
    yield "base", svg('<use href="#a"/><g id="a"/>', f'{BOX} xml:base="http://127.0.0.1:9/"'), True


def active() -> Iterator[Case]:
    """Yield scripts, handlers, words, foreign elements and processing instructions."""
    tags = "script foreignObject image text tspan textPath animate set animateMotion animateTransform style iframe a "
    tags += "switch video audio canvas object embed link meta font marker view cursor feImage feTurbulence feTile body"
    for tag in tags.split():
        yield f"<{tag}>", svg(f"<g><{tag}>x</{tag}></g>"), True
    for name in ("onload", "onclick", "ONLOAD", "onbegin", "onmouseover", "onfocusin", "onerror", "onrepeat"):
        yield name, svg(RECT, f'{BOX} {name}="x()"'), True
        yield f"rect {name}", svg(f'<rect {name}="x()" width="9" height="9"/>'), True
    for space in ("http://www.w3.org/2001/XInclude", "http://www.w3.org/1999/xhtml", "http://x", "urn:a"):
        yield f"namespace {space}", svg(f'<q:include xmlns:q="{space}" href="file:///etc/passwd" parse="text"/>'), True
        yield f"attribute {space}", svg(f'<rect xmlns:q="{space}" q:href="file:///etc/passwd"/>'), True
    for said in ('xml-stylesheet href="http://127.0.0.1:9/a.css"', "php echo 1", 'xml-model href="x"'):
        yield f"<?{said}", f"<?{said}?>{svg(RECT)}", False
    yield "cdata", svg("<![CDATA[<script>x()</script>]]>"), True
    yield "not svg", f"<html {NS}><svg {BOX}/></html>", True
    yield "two roots", svg(RECT) + svg(RECT), True
    yield "cut off", svg(RECT)[:-8], True


def encodings() -> Iterator[Case]:
    """Yield bytes that are no UTF-8, and none at all."""
    whole = svg("<title>é</title>" + RECT)
    for at, data in enumerate((b"", b" \n", b"\xff\xfe<svg/>", b"\x80", b"\xc3\x28", b"\xed\xa0\x80", b"\x00" * 99)):
        yield f"bytes {at}", data, True
    for name in ("utf-16", "utf-32", "latin-1", "utf-7", "cp037"):
        yield f"as {name}", whole.encode(name), name != "utf-7"
        declared = f'<?xml version="1.0" encoding="{name}"?>{whole}'
        yield f"declared {name}", declared.encode(), False
    yield "surrogate", svg("<title>\ud800</title>"), True
    yield "nul", svg("<title>\x00</title>"), True
    yield "too long", svg(RECT * 500_000), True
    yield "mark", b"\xef\xbb\xbf" + whole.encode(), False


def paths() -> Iterator[Case]:
    """Yield path data that are long, broken or lead away."""
    bad = ("M0 0L1", "L1 1", "M0 0A1 1 0 2 0 9 9", "M0 0LNaN 1", "M0 0L1e999 0", "M0 0L1e6 0", "M0 0L--1 2", "M0,0,,;")
    bad += ("M0 0C1 2 3 4 5", "M Infinity 0", "M0 0Lx", "M0 0" + "l99999 0" * 2, "M0x10 0", "M0 0l1e5 1e5l1e5 1")
    for at, data in enumerate(bad):
        yield f"path {at} {data[:20]}", svg(f'<path d="{data}"/>'), True
    for count in (1_000, 20_000, 60_000):
        yield f"zigzag {count}", svg(f'<path d="M0 0{"l9 700l1-700" * count}"/>'), count > 1_000
    spiral = "".join(f"A{at} {at} 0 1 1 {at} {at * 7 % 720}" for at in range(1, 8000))
    yield "arcs", svg(f'<path stroke="red" stroke-width="50" d="M0 0{spiral}"/>'), False
    crossing = "".join(f"L{at * 7919 % 1280} {at * 104729 % 720}" for at in range(30_000))
    yield "crossing", svg(f'<path stroke="red" stroke-width="9" d="M0 0{crossing}"/>'), False
    for dash in (".0001", "0 1e-9", ".5", "-1", "nan", "0", "0 0 .3", "1e-40 1e-40"):
        line = f'<path d="M0 0H90000{"V90000H0V0H90000" * 20}" stroke="red" stroke-dasharray="{dash}"/>'
        yield f"dash {dash}", svg(line), dash not in (".5", "0")
    points = " ".join(f"{at * 7919 % 1280},{at * 104729 % 720}" for at in range(9_000))
    yield "polygon", svg(f'<polygon points="{points}"/>'), False
    yield "points", svg('<polygon points="1,2 3,x"/>'), True


def sizes() -> Iterator[Case]:
    """Yield too many, too deep, too far, and numbers that are none."""
    yield "100,000 nodes", svg(RECT * 100_000), True
    yield "20,000 nodes", svg(RECT * 19_000), False
    for depth in (40, 58, 61, 1_000, 100_000):
        yield f"deep {depth}", svg("<g>" * depth + RECT + "</g>" * depth), depth > 60
    for name in ("x", "width", "r", "cx", "rx", "x1", "stroke-width", "opacity", "stroke-dashoffset", "offset"):
        for value in ("1e6", "-1e30", "1e999", "NaN", "Infinity", "calc(1px*9)", "1e9%", "99999%", "0x10", "--1"):
            yield f"{name}={value}", svg(f'<circle {name}="{value}"/>'), True
    boxes = ("", "0 0", "0 0 0 0", "0 0 -9 9", "0 0 nan 9", "0 0 1e30 9", "0 0 100% 9", "0 0 9 9 9", "0 0 1e5 1", "a")
    for box in boxes:
        yield f"viewBox {box}", svg(RECT, f'viewBox="{box}"'), True
    yield "no viewBox", svg(RECT, 'width="9" height="9"'), True
    yield "root of many pixels", svg(RECT, f'{BOX} width="99999" height="99999"'), False
    for value in (
        "scale(1e9)",
        "scale(nan)",
        "rotate(1e400)",
        "matrix(1 2",
        "translate(1,x)",
        "scale(1)url(x)",
        "f(1)",
    ):
        yield f"transform {value}", svg(f'<g transform="{value}">{RECT}</g>'), True
    for value in ("scale(99999)", "matrix(0 0 0 0 0 0)", "scale(1e-30)", "skewX(90)", "rotate(99999)"):
        nested = f'<g transform="{value}">' * 40 + '<circle r="9" stroke="red"/>' + "</g>" * 40
        yield f"transforms {value}", svg(nested), False


def circles() -> Iterator[Case]:
    """Yield references that lead back to themselves."""
    kinds = {"use": "href", "mask": "mask", "clipPath": "clip-path", "pattern": "fill", "linearGradient": "href"}
    for tag, name in kinds.items():
        for count in (1, 2, 3, 5, 20):
            parts = []
            for at in range(count):
                to = f"#r{(at + 1) % count}"
                to = to if name == "href" else f"url({to})"
                inner = RECT if tag == "use" else f'<rect {name}="{to}" width="9" height="9"/>'
                if tag == "use":
                    parts.append(f'<g id="r{at}"><use href="{to}"/></g>')
                elif tag == "linearGradient":
                    parts.append(f'<linearGradient id="r{at}" href="{to}"/>')
                else:
                    parts.append(f'<{tag} id="r{at}" width="90" height="90">{inner}</{tag}>')
            yield f"circle of {count} {tag}", svg("".join(parts)), True
    yield "use of root", svg('<use href="#a"/>', f'{BOX} id="a"'), True
    yield "use of parent", svg('<g id="a"><g><use href="#a"/></g></g>'), True
    yield "use of itself", svg('<use id="a" href="#a"/>'), True
    yield "symbol", svg('<symbol id="a"><use href="#a"/></symbol>'), True
    ring = '<pattern id="p" width="9" height="9"><g mask="url(#m)"/></pattern>'
    ring += '<mask id="m"><g clip-path="url(#c)"/></mask><clipPath id="c"><rect fill="url(#p)"/></clipPath>'
    yield "pattern mask clip", svg(ring), True
    yield "inherited", svg(f'<g fill="url(#p)"><pattern id="p" width="90" height="90">{RECT}</pattern></g>'), True
    twice = '<g id="a"><use href="#b"/></g><g id="a"/><g id="b"><use href="#a"/></g>'
    yield "with an id twice", svg(twice), True


def effects() -> Iterator[Case]:
    """Yield filters and patterns that cost much."""
    full = 'x="-1000%" y="-1000%" width="1000%" height="1000%"'
    for blur in ("1e4", "99999", "8", "1000 1000", "nan", "-5", "1e9"):
        one = f'<filter id="f" {full}><feGaussianBlur stdDeviation="{blur}"/></filter>'
        yield f"blur {blur}", svg(f'{one}<rect filter="url(#f)" width="1280" height="720"/>'), blur in ("nan", "1e9")
    units = '<filter id="f" primitiveUnits="objectBoundingBox"><feGaussianBlur stdDeviation="8"/></filter>'
    yield "blur of boxes", svg(f'{units}<rect filter="url(#f)" width="1280" height="720"/>'), True
    for count in (10, 200, 1000):
        many = f'<filter id="f" {full}>{"""<feGaussianBlur stdDeviation="8"/>""" * count}</filter>'
        yield f"{count} blurs", svg(f'{many}<rect filter="url(#f)" width="1280" height="720"/>'), count > 120
        one = f'<filter id="f" {full}><feGaussianBlur stdDeviation="8"/></filter>'
        rows = '<rect filter="url(#f)" width="1280" height="720"/>' * count
        yield f"{count} filtered", svg(one + rows), count > 120
    huge = '<filter id="f" filterUnits="userSpaceOnUse" x="-99999" y="-99999" width="99999" height="99999">'
    huge += '<feFlood flood-color="red"/></filter>'
    huge += '<g transform="scale(99999)"><rect filter="url(#f)" width="9" height="9"/></g>'
    yield "filter of many pixels", svg(huge), False
    tiles = (("0", "0"), ("0", "9"), ("-9", "9"), (".001", ".001"), ("1e-9", "99"), ("99999", "99999"), ("nan", "9"))
    tiles += (("1e5", "1"), ("0%", "0%"), ("1000%", "1000%"), ("", ""))
    for width, height in tiles:
        for units in ("userSpaceOnUse", "objectBoundingBox"):
            made = f'<pattern id="p" width="{width}" height="{height}" patternUnits="{units}">{RECT}</pattern>'
            yield (
                f"tile {width} x {height} {units}",
                svg(f'{made}<rect fill="url(#p)" width="1280" height="720"/>'),
                True,
            )
    for move in ("scale(.00001)", "scale(9999)", "rotate(45) scale(300)", "matrix(0 0 0 0 0 0)", "skewX(89.9999)"):
        made = f'<pattern id="p" width="60" height="60" patternUnits="userSpaceOnUse" patternTransform="{move}">{RECT}'
        yield f"tile {move}", svg(f'{made}</pattern><rect fill="url(#p)" width="1280" height="720"/>'), False
    inner = f'<pattern id="q" width="60" height="60" patternUnits="userSpaceOnUse">{RECT}</pattern>'
    for held in ('<rect fill="url(#q)"/>', '<use href="#u"/>', '<g mask="url(#m)"/>', '<g stroke="url(#q)"><g/></g>'):
        parts = f'{inner}<g id="u"><rect stroke="url(#q)"/></g><mask id="m"><rect fill="url(#q)"/></mask>'
        made = f'<pattern id="p" width="60" height="60" patternUnits="userSpaceOnUse">{held}</pattern>'
        yield f"pattern in pattern by {held}", svg(f'{parts}{made}<rect fill="url(#p)"/>'), True


def damaged() -> Iterator[Case]:
    """Yield a good drawing with letters, attributes and elements changed at random, always the same."""
    good = svg(
        '<defs><linearGradient id="g"><stop offset="0" stop-color="#fff"/></linearGradient>'
        '<g id="a"><path d="M0 0C1 2 3 4 5 6Z" fill="url(#g)"/></g></defs>'
        '<rect width="1280" height="720" fill="#abc"/><use href="#a" transform="translate(9 9) scale(40)"/>'
    )
    dice = random.Random(7)
    pieces = ["<", ">", '"', "&", "#", "url(", "1e9", "NaN", "use", "</g>", "\x07", "%", "é", "<!--", "]]>", "()"]
    for number in range(80):
        text = good
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(text))
            text = text[:at] + dice.choice(pieces) + text[at + dice.randint(0, 6) :]
        yield f"damaged {number}", text, False


CASES = [
    *(case for made in (laughs, entities, references, active, encodings, paths) for case in made()),
    *(case for made in (sizes, circles, effects, damaged) for case in made()),
]


def drawn(text: str | bytes) -> bytes | None:
    """Return the picture of an SVG, or None where it is a typed fault."""
    try:
        drawing = read_svg(text, most_bytes=MOST_BYTES)
        return rasterise(self_contained(drawing, None), 640, 360, seconds=MOST_SECONDS)
    except DrawingFault as fault:
        if not (20 < len(str(fault)) < 400 and str(fault).endswith(".")):
            raise ValueError("That is no sentence.") from fault
        return None


def test_over_300_hostile_drawings_are_faults_or_pictures_within_two_seconds_of_work() -> None:
    assert len(CASES) > 300
    kept, slow, memory = [], [], _most_resident()
    for name, text, refused in CASES:
        before, begun = time.process_time(), time.monotonic()
        png = drawn(text)
        if time.process_time() - before > MOST_SECONDS or time.monotonic() - begun > 4 * MOST_SECONDS:
            slow.append(name)
        if png is not None and refused:
            kept.append(name)
        assert png is None or png.startswith(b"\x89PNG")
    assert kept == []
    assert slow == []
    assert _most_resident() - memory < MOST_MEMORY
    assert drawn(svg(RECT)) is not None


def test_what_refers_outside_runs_or_leads_back_is_refused_where_it_is_read() -> None:
    kept = []
    for name, text, refused in (case for made in (entities, references, active, circles) for case in made()):
        with suppress(DrawingFault):
            read_svg(text, most_bytes=MOST_BYTES)
            kept += [name] if refused else []
    assert kept == []


def test_no_handler_and_no_reference_to_outside_is_left_of_a_persons_file() -> None:
    for name, text, _ in (case for made in (references, active) for case in made()):
        with suppress(DrawingFault):
            left = (
                read_svg(text, most_bytes=MOST_BYTES, lenient=True).source().replace("http://www.w3.org/2000/svg", "")
            )
            assert not re.search(r"//|file:|data:|passwd|java|onload|script|import", left), name


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_process_that_draws_never_has_more_than_300_mb() -> None:
    drawn(svg(RECT))
    for process in _processes()._all:
        if process._process is not None and process._process.poll() is None:
            status = Path(f"/proc/{process._process.pid}/status").read_text()
            peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmPeak"))
            assert peak * 1024 <= MOST_MEMORY


def _slow() -> str:
    """Return what `read_svg` would refuse: a minute's work."""
    blur = '<filter id="f"><feGaussianBlur stdDeviation="8"/></filter>'
    return svg(blur + '<rect filter="url(#f)" width="1280" height="720" fill="red"/>' * 2_000)


def test_what_no_check_has_seen_is_ended_by_the_clock_and_the_next_is_drawn() -> None:
    begun = time.monotonic()
    with pytest.raises(DrawingFault, match=r"more than 0[.]3 seconds"):
        rasterise(_slow(), 320, 180, seconds=0.3)
    assert time.monotonic() - begun < 4
    assert rasterise(svg(RECT), 320, 180).startswith(b"\x89PNG")


def test_the_time_is_that_of_the_processor() -> None:
    resource = pytest.importorskip("resource")
    _processes().close()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with pytest.raises(DrawingFault, match=r"more than 1 seconds"):
        rasterise(_slow(), 320, 180, seconds=1.0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.8


def test_a_drawing_of_much_memory_is_ended_and_the_next_is_drawn() -> None:
    layers = "<g opacity='.9'>" * 300 + '<rect width="1280" height="720"/>' + "</g>" * 300
    with pytest.raises(DrawingFault, match=r"memory|seconds"):
        rasterise(svg(layers), 2560, 1440)
    assert rasterise(svg(RECT), 320, 180).startswith(b"\x89PNG")


def _most_resident() -> int:
    """Return the most memory that this process has had so far, in bytes; 0 where that cannot be told."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
