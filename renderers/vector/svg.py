"""SVG written by a model or a person: the one place where it is read, within limits that are counted.

Nothing reaches the rasteriser but elements and attributes of a list, references to ids of the same picture, and finite
numbers. What references multiply (`use` within `use`, masks, patterns) is counted on the graph, never expanded. What is
kept is written anew, so that comments, entities and other namespaces are gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from xml.etree.ElementTree import Element, ParseError

from katha.errors import RenderError, first_line

__all__ = ["Drawing", "DrawingFault", "own_part", "read_svg", "self_contained", "write_svg"]

# A frame drawn by a model has hundreds; many times that is a loop or an attack.
MOST_NODES = 20_000
MOST_EXPANDED = 60_000
"""Elements that are drawn when every reference is followed."""
MOST_DEPTH = 60
MOST_REFERENCE_DEPTH = 150
MOST_FILTER_STEPS = 120
"""Steps of filters (a blur, an offset) that are run when every reference is followed."""
MOST_PATH_LETTERS = 500_000
# Wider blurs cost seconds a frame and show nothing that eight pixels do not.
MOST_BLUR = 8.0
FARTHEST = 1e5
MOST_PERCENT = 1_000.0
MOST_TILES = 100_000
LARGEST_TILE = 8.0
"""How many times a pattern's tile may be as wide or high as the picture."""

_SVG = "http://www.w3.org/2000/svg"
_XLINK_HREF = "{http://www.w3.org/1999/xlink}href"
_XML = "{http://www.w3.org/XML/1998/namespace}"

GRADIENTS = frozenset({"linearGradient", "radialGradient"})
PAINTS = GRADIENTS | {"pattern"}
ASIDE = PAINTS | {"defs", "symbol", "clipPath", "mask", "filter", "title", "desc"}
"""What is drawn only where something refers to it, or never."""
SHAPES = frozenset({"path", "rect", "circle", "ellipse", "line", "polyline", "polygon"})
_SHAPED = SHAPES | {"g", "use", "symbol"}
_PRIMITIVES = {"feGaussianBlur", "feColorMatrix", "feOffset", "feMerge", "feMergeNode", "feFlood", "feComposite"}
ELEMENTS = ASIDE | SHAPES | _PRIMITIVES | {"svg", "g", "use", "stop"}


def _named(names: str) -> frozenset[str]:
    return frozenset(names.split())


_LENGTHS = _named(
    "x y width height cx cy r rx ry fx fy fr x1 y1 x2 y2 dx dy k1 k2 k3 k4 offset opacity fill-opacity stroke-opacity "
    "stop-opacity flood-opacity stroke-width stroke-miterlimit stroke-dashoffset pathLength"
)
_LISTS = frozenset({"points", "stroke-dasharray", "viewBox", "values", "stdDeviation"})
_TRANSFORMS = frozenset({"transform", "gradientTransform", "patternTransform"})
FILLS = ("fill", "stroke")
COLOURS = frozenset({"color", "stop-color", "flood-color", *FILLS})
EFFECTS = ("clip-path", "mask", "filter")
_HANDED = _named("fill fill-opacity fill-rule stroke stroke-width stroke-linecap stroke-linejoin stroke-opacity color")
_WORDS = _named(
    "fill-rule clip-rule stroke-linecap stroke-linejoin display visibility overflow gradientUnits patternUnits "
    "patternContentUnits clipPathUnits maskUnits maskContentUnits filterUnits primitiveUnits spreadMethod "
    "preserveAspectRatio in in2 result operator mode type color-interpolation-filters color-interpolation paint-order "
    "shape-rendering vector-effect mask-type transform-origin"
)
ATTRIBUTES = _LENGTHS | _LISTS | _TRANSFORMS | COLOURS | _WORDS | {*EFFECTS, "d", "href", "id"}
_IGNORED = frozenset({"version", "baseProfile", "role", "focusable", "tabindex", "lang", f"{_XML}space", f"{_XML}lang"})
"""Attributes without any effect, left out silently."""
_OF_THE_ROOT = frozenset({"width", "height", "x", "y", "preserveAspectRatio"})
"""What a picture's size would be read from: that is the caller's to say."""

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_LENGTH = re.compile(rf"({_NUMBER})(%|px|pt|pc|mm|cm|in|em|ex|rem)?")
_ONE_NUMBER = re.compile(_NUMBER)
_BETWEEN_NUMBERS = re.compile(r"(?:[\s,]|px)*")
_TRANSFORM = re.compile(r"(matrix|translate|scale|rotate|skewX|skewY)\s*\(([^()]*)\)[\s,]*")
_LOCAL = re.compile(r"url\(\s*(?:#([\w.:-]+)|'#([\w.:-]+)'|\"#([\w.:-]+)\")\s*\)")
_COLOUR_TEXT = re.compile(r"[#\w\s.,%+/-]*(?:\([\w\s.,%+/-]*\))?")
_WORD_TEXT = re.compile(r"[\w\s.,%+-]*")
_ID = re.compile(r"[\w.:-]{1,120}")
_FLAG = re.compile(r"[\s,]*([01])")
_PATH_NUMBER = re.compile(rf"[\s,]*({_NUMBER})")
_PATH_COMMAND = re.compile(r"[\s,]*([MmZzLlHhVvCcSsQqTtAa])")
_ARITY = {"M": 2, "L": 2, "T": 2, "H": 1, "V": 1, "C": 6, "S": 4, "Q": 4, "A": 7, "Z": 0}
_SIMPLER = {("C", 4): "Q", ("C", 2): "L", ("S", 2): "L", ("Q", 2): "L"}
"""A curve with so few numbers, and what is drawn to its end by those."""
_DOCTYPE = re.compile(r"<!DOCTYPE[^\[<>]*>")
_XML_DECLARATION = re.compile(r"<\?xml\b[^<>]*\?>\s*")


class DrawingFault(RenderError):
    """An SVG that is not drawn: what is wrong, where, and what to do, in one sentence for whoever wrote it."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """An SVG that was read: elements without namespaces, only those and only the attributes that may be drawn. mended:
    what was made right while it was read, a sentence each."""

    root: Element
    mended: tuple[str, ...] = ()

    @cached_property
    def ids(self) -> Mapping[str, Element]:
        """Every id, in order, and the first element that has it."""
        found: dict[str, Element] = {}
        for element in self.root.iter():
            name = element.get("id")
            if name is not None:
                found.setdefault(name, element)
        return found

    @cached_property
    def repeated(self) -> tuple[str, ...]:
        """Ids that several elements have."""
        names = [element.get("id") for element in self.root.iter()]
        return tuple(name for name in self.ids if names.count(name) > 1)

    @cached_property
    def references(self) -> tuple[str, ...]:
        """The ids that something refers to, each once, in order."""
        return tuple(dict.fromkeys(name for element in self.root.iter() for _, name in references_of(element)))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The ids of groups, in order."""
        return tuple(name for name, element in self.ids.items() if element.tag == "g")

    @cached_property
    def parents(self) -> Mapping[Element, Element]:
        """The parent of every element but the root."""
        return {child: parent for parent in self.root.iter() for child in parent}

    @cached_property
    def view(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of what is seen, in its own units."""
        return _view(self.root)

    def source(self) -> str:
        """Return the SVG's text, always the same for the same drawing."""
        return write_svg(self.root)


def read_svg(text: str | bytes, *, most_bytes: int, lenient: bool = False) -> Drawing:
    """Return an SVG as a drawing that is safe to rasterise. lenient: leave out what an editor's file has beside it.

    Raises:
        DrawingFault: it is not an SVG, holds what is not on the list, refers outside itself, or is over a limit.
    """
    whole = _decoded(text, most_bytes)
    if lenient:
        whole = _DOCTYPE.sub("", whole)
    reader = _Reader(lenient)
    root = reader.read(_parsed(whole))
    _Expansion(root).check()
    return Drawing(root, tuple(reader.mended))


def self_contained(frame: Drawing, cast: Drawing | None) -> str:
    """Return the frame's SVG with the parts of the cast that it uses, and what these use, in its `defs`.

    Raises:
        DrawingFault: an id is nowhere defined, is defined twice, or the whole is over a limit.
    """
    return write_svg(merged(frame, cast).root)


def merged(frame: Drawing, cast: Drawing | None) -> Drawing:
    """Return `self_contained` as a drawing, which shares its elements with both.

    Raises:
        DrawingFault: see `self_contained`.
    """
    parts, missing, taken = _borrowed(frame, cast)
    if missing:
        named = ", ".join(f"#{name}" for name in missing[:8])
        raise DrawingFault(f"Nothing has the id that is referred to by {named}: define it, or use one of the cast's.")
    if taken:
        named = ", ".join(f'"{name}"' for name in taken[:8])
        raise DrawingFault(f"The ids {named} are the cast's, and the frame uses these parts: rename its own ids.")
    if not parts:
        return frame
    root = Element(frame.root.tag, frame.root.attrib)
    holder = Element("defs")
    holder.extend(parts)
    root.append(holder)
    root.extend(frame.root)
    _Expansion(root).check()
    return Drawing(root)


def own_part(source: str | bytes, cast: Drawing) -> str:
    """Return a self-contained frame without the definitions that were copied from the cast.

    Raises:
        DrawingFault: see `read_svg`.
    """
    frame = read_svg(source, most_bytes=4_000_000)
    root = Element(frame.root.tag, frame.root.attrib)
    for child in frame.root:
        if child.tag != "defs":
            root.append(child)
            continue
        own = Element(child.tag, child.attrib)
        own.extend(item for item in child if not _is_copy(item, cast))
        if len(own):
            root.append(own)
    return write_svg(root)


def _is_copy(element: Element, cast: Drawing) -> bool:
    known = cast.ids.get(element.get("id") or "")
    return known is not None and write_svg(known) == write_svg(element)


def unresolved(frame: Drawing, cast: Drawing | None) -> list[str]:
    """Return the ids that something refers to and nothing has."""
    return _borrowed(frame, cast)[1]


def collisions(frame: Drawing, cast: Drawing | None) -> list[str]:
    """Return the frame's own ids that parts of the cast which it uses have, too."""
    return _borrowed(frame, cast)[2]


def references_of(element: Element) -> Iterator[tuple[str, str]]:
    """Yield which attributes of an element refer to what id."""
    for name, value in element.attrib.items():
        if name == "href":
            yield name, value[1:]
        elif name in FILLS or name in EFFECTS:
            found = _LOCAL.match(value)
            if found is not None:
                yield name, found[1] or found[2] or found[3]


def write_svg(root: Element, changed: Mapping[Element, Mapping[str, str]] | None = None) -> str:
    """Return the text of a tree, one element a line down to those in `defs`. changed: attributes put on elements."""
    out: list[str] = []
    _write(root, changed or {}, 0, out)
    return "".join(out)


def within(element: Element) -> set[str]:
    """Return the ids of an element and of all that it holds."""
    return {name for item in element.iter() if (name := item.get("id")) is not None}


def alone(whole: Drawing, element: Element, view: str, also: Iterable[str] = ()) -> Element:
    """Return an element where it stands, without what is drawn beside it, with the definitions that it uses. also: ids
    of more definitions."""
    path = [element]
    while path[-1] in whole.parents:
        path.append(whole.parents[path[-1]])
    more = [Element("use", {"href": f"#{name}"}) for name in also]
    needed = closure([element, *more, *(Element(above.tag, above.attrib) for above in path)], whole)
    kept = element
    for above in path[1:]:
        copy = Element(above.tag, above.attrib)
        copy.append(kept)
        kept = copy
    root = Element(kept.tag, {**kept.attrib, "viewBox": view})
    holder = Element("defs")
    holder.extend(needed)
    root.append(holder)
    root.extend(kept)
    return root


def closure(elements: Iterable[Element], whole: Drawing) -> list[Element]:
    """Return what elements refer to, and what that refers to, in the drawing's order."""
    waiting, found = list(elements), set[str]()
    while waiting:
        for item in waiting.pop().iter():
            fresh = [to for _, to in references_of(item) if to in whole.ids and to not in found]
            found.update(fresh)
            waiting += [whole.ids[to] for to in fresh]
    return [element for name, element in whole.ids.items() if name in found]


def _borrowed(frame: Drawing, cast: Drawing | None) -> tuple[list[Element], list[str], list[str]]:
    """Return the cast's elements that a frame uses, in order; ids that nothing has; ids that both have."""
    known = cast.ids if cast is not None else {}
    needed: dict[str, Element] = {}
    missing: dict[str, None] = {}
    waiting = [name for name in frame.references if name not in frame.ids]
    while waiting:
        name = waiting.pop()
        if name in needed or name in missing:
            continue
        if name not in known:
            missing[name] = None
            continue
        needed[name] = known[name]
        waiting += [to for item in known[name].iter() for _, to in references_of(item)]
    chosen = set(needed.values())
    parts = [element for name, element in known.items() if name in needed and not _held(element, chosen, cast)]
    names = set().union(*(within(part) for part in parts))
    return parts, list(missing), [name for name in frame.ids if name in names]


def _held(element: Element, chosen: set[Element], cast: Drawing | None) -> bool:
    """Return whether something that is chosen holds an element."""
    parents = cast.parents if cast is not None else {}
    while element in parents:
        element = parents[element]
        if element in chosen:
            return True
    return False


def _write(element: Element, changed: Mapping[Element, Mapping[str, str]], depth: int, out: list[str]) -> None:
    attributes = {**element.attrib, **changed[element]} if element in changed else element.attrib
    out.append(f"<{element.tag}")
    if depth == 0 and element.tag == "svg":
        out.append(f' xmlns="{_SVG}"')
    out += [f' {name}="{_escaped(value)}"' for name, value in attributes.items()]
    if not len(element) and not element.text:
        out.append("/>")
        return
    out.append(">")
    lines = depth == 0 or (depth == 1 and element.tag == "defs")
    if element.text:
        out.append(_escaped(element.text))
    for child in element:
        if lines:
            out.append("\n")
        _write(child, changed, depth + 1, out)
    out.append(f"\n</{element.tag}>" if lines and len(element) else f"</{element.tag}>")


def _escaped(text: str) -> str:
    if not any(letter in text for letter in '&<>"'):
        return text
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def _decoded(text: str | bytes, most_bytes: int) -> str:
    try:
        data = text if isinstance(text, bytes) else text.encode("utf-8")
        if len(data) > most_bytes:
            said = f"The SVG has {len(data):,} bytes and at most {most_bytes:,} are read"
            raise DrawingFault(f"{said}: draw the same with fewer and simpler shapes.")
        whole = data.decode("utf-8-sig").strip()
    except UnicodeError:
        raise DrawingFault("The SVG is not in UTF-8: write it again as plain text.") from None
    if not whole:
        raise DrawingFault("The SVG is empty: write one whole <svg> element.")
    return _XML_DECLARATION.sub("", whole, count=1) if whole.startswith("<?xml") else whole


def _parsed(text: str) -> Element:
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root: Element = fromstring(text, forbid_dtd=True)
    except ParseError as error:
        said = first_line(error)
        raise DrawingFault(f"The SVG is not well-formed XML ({said}): write the whole of it again.") from None
    except DefusedXmlException:
        raise DrawingFault("The SVG has a DOCTYPE or entities: leave these out.") from None
    except (ValueError, LookupError, RecursionError, MemoryError) as error:  # of expat's and of codecs
        raise DrawingFault(f"The SVG cannot be read as XML ({first_line(error)[:80]}): write it again.") from None
    return root


class _Reader:
    """Makes a clean tree of a parsed one, or says what must not be in it."""

    def __init__(self, lenient: bool) -> None:
        self._lenient = lenient
        self._letters = 0
        self.mended: list[str] = []

    def read(self, parsed: Element) -> Element:
        """Return the clean tree.

        Raises:
            DrawingFault: see `read_svg`.
        """
        if self._name(parsed.tag) != "svg":
            raise DrawingFault(f"The root element is <{_local(parsed.tag)}>: it must be <svg>.")
        _check_shape(parsed)
        root = self._element(parsed, "<svg>")
        for name in _OF_THE_ROOT & set(root.attrib):
            del root.attrib[name]
        _check_patterns(root, _view(root))
        for holder in root.iter("defs"):
            _hand_down(holder, {})
        return root

    def _element(self, parsed: Element, where: str) -> Element:
        tag = self._name(parsed.tag) or ""
        element = Element(tag, self._attributes(parsed, tag, where))
        if tag in ("title", "desc"):
            element.text = " ".join("".join(parsed.itertext()).split())
            return element
        self._refuse_text(parsed, where)
        for child in parsed:
            self._refuse_text(child, where, tail=True)
            inside = _place(child, where)
            name = self._name(child.tag)
            if name in ELEMENTS:
                element.append(self._element(child, inside))
            elif not (self._lenient and (name is None or name in ("metadata", "switch"))):
                said = f"<{_local(child.tag)}> is not drawn here ({where})"
                raise DrawingFault(f"{said}: use shapes, groups, gradients and <use> alone.")
        return element

    def _name(self, tag: object) -> str | None:
        """Return the name of an SVG element; None for one of another namespace."""
        if not isinstance(tag, str):
            return None
        space, closed, name = tag.rpartition("}")
        return name if not closed or space == f"{{{_SVG}" else None

    def _refuse_text(self, parsed: Element, where: str, *, tail: bool = False) -> None:
        text = ((parsed.tail if tail else parsed.text) or "").strip()
        if text and not self._lenient:
            raise DrawingFault(f"There is text between elements in {where} ({text[:40]!r}): take it away.")

    def _attributes(self, parsed: Element, tag: str, where: str) -> dict[str, str]:
        kept: dict[str, str] = {}
        for name, value in parsed.attrib.items():
            if name == "style":
                continue
            self._take(kept, name, " ".join(value.split()), tag, where)
        for declaration in parsed.get("style", "").split(";"):
            name, colon, value = declaration.partition(":")
            if colon and name.strip() not in ("id", "href", "d", "style"):
                value = " ".join(value.replace("!important", "").split())
                self._take(kept, name.strip(), value, tag, where)
            elif declaration.strip() and not self._lenient:
                raise DrawingFault(f"style={declaration.strip()[:40]!r} of {where} has no effect: leave it out.")
        return kept

    def _take(self, kept: dict[str, str], name: str, value: str, tag: str, where: str) -> None:
        """Keep an attribute that is on the list and has a value of its kind."""
        name = "href" if name == _XLINK_HREF else name
        if name.lower().startswith("on"):
            raise DrawingFault(f"{where} has the event handler {name[:40]}: a picture has none, leave it out.")
        if name in _IGNORED or name.startswith(("aria-", "data-")):
            return
        if name not in ATTRIBUTES:
            if self._lenient:
                return
            raise DrawingFault(f"The attribute {_local(name)[:40]} of {where} is not drawn here: leave it out.")
        checked = self._value(name, value, where)
        if checked is not None:
            if tag == "svg" and name == "viewBox" and len(_numbers(checked)) != 4:
                raise DrawingFault(f'The viewBox="{value[:40]}" needs four numbers, such as "0 0 1280 720".')
            kept[name] = checked

    def _value(self, name: str, value: str, where: str) -> str | None:
        """Return an attribute's value when it is of its kind; None for one that may be left out."""
        told = f'{name}="{value[:40]}{"..." if len(value) > 40 else ""}" of {where}'
        if name in EFFECTS or name in COLOURS:
            return _checked_paint(name, value, told)
        if name == "href":
            if not value.startswith("#") or not _ID.fullmatch(value[1:]):
                raise DrawingFault(f"{told} refers outside the picture: only to '#id' is allowed.")
            return value
        if name == "d":
            self._letters += len(value)
            if self._letters > MOST_PATH_LETTERS:
                raise DrawingFault(f"The paths have over {MOST_PATH_LETTERS:,} letters: draw them simpler.")
            whole = _whole_path(value, told)
            if whole != value:
                self.mended.append(f"{told} had too few numbers for a curve, which is drawn with those that it has.")
            return whole
        if not value and self._lenient:
            return None
        fit, wished = _KINDS[_kind(name)]
        if not fit(name, value):
            raise DrawingFault(f"{told} is not {wished}: correct it.")
        return _clamped(value) if name == "stdDeviation" else value


def _hand_down(group: Element, paints: Mapping[str, str]) -> None:
    """Give the paints of groups in `defs` to the parts in them, which a `use` would draw without these."""
    paints = {**paints, **{name: value for name, value in group.attrib.items() if name in _HANDED}}
    for part in group:
        if part.get("id") is not None and part.tag in _SHAPED:
            for name, value in paints.items():
                part.attrib.setdefault(name, value)
        if part.tag == "g":
            _hand_down(part, paints)


def _kind(name: str) -> str:
    if name in _LENGTHS:
        return "length"
    if name in _LISTS:
        return "list"
    if name in _TRANSFORMS:
        return "transform"
    return "id" if name == "id" else "word"


def _checked_paint(name: str, value: str, told: str) -> str:
    """Return the value of what may be a colour or `url(#id)`."""
    found = _LOCAL.match(value)
    rest = value[found.end() :] if found is not None else value
    if "url" in rest.lower() or (found is not None and name not in FILLS and (name not in EFFECTS or rest.strip())):
        raise DrawingFault(f"{told} refers outside the picture: only url(#id) is allowed.")
    if found is None and name in EFFECTS and value not in ("none", "inherit", ""):
        raise DrawingFault(f"{told} must be url(#id) or none.")
    if not _COLOUR_TEXT.fullmatch(rest):
        raise DrawingFault(f"{told} is not a colour: write #rrggbb, a name, or url(#id).")
    return value


def _fits_length(name: str, value: str) -> bool:
    found = _LENGTH.fullmatch(value)
    if found is None:
        return value in ("auto", "inherit")
    most = MOST_PERCENT if found[2] == "%" else FARTHEST
    return abs(float(found[1])) <= most


def _fits_list(name: str, value: str) -> bool:
    if name == "stroke-dasharray":
        value = value.replace("%", "")
        if value in ("none", "inherit"):
            return True
        numbers = _numbers(value)
        if any(number < 0 for number in numbers) or 0 < sum(numbers) < 0.5:
            return False
    return len(value) <= MOST_PATH_LETTERS and _is_list(value) and _near(_numbers(value))


def _fits_transform(name: str, value: str) -> bool:
    position = 0
    while position < len(value):
        found = _TRANSFORM.match(value, position)
        if found is None or not _is_list(found[2]) or not _near(_numbers(found[2])):
            return value == "none"
        position = found.end()
    return True


def _fits_word(name: str, value: str) -> bool:
    if name == "primitiveUnits" and value != "userSpaceOnUse":  # a blur would be as many times the box
        return False
    return len(value) <= 200 and _WORD_TEXT.fullmatch(value) is not None


_KINDS: Mapping[str, tuple[Callable[[str, str], bool], str]] = {
    "length": (_fits_length, f"a number within {FARTHEST:,.0f}"),
    "list": (_fits_list, f"a list of numbers within {FARTHEST:,.0f} (dashes at least half a unit together)"),
    "transform": (_fits_transform, f"a transform such as translate(10 20) scale(.5), numbers within {FARTHEST:,.0f}"),
    "id": (lambda name, value: _ID.fullmatch(value) is not None, "an id of letters, digits and hyphens"),
    "word": (_fits_word, "a value that is drawn here"),
}


def _numbers(text: str) -> list[float]:
    return [float(number) for number in _ONE_NUMBER.findall(text)]


def _is_list(text: str) -> bool:
    return _BETWEEN_NUMBERS.fullmatch(_ONE_NUMBER.sub("", text)) is not None


def _near(numbers: Sequence[float]) -> bool:
    return all(abs(number) <= FARTHEST for number in numbers)


def _clamped(value: str) -> str:
    """Return a blur's numbers, none above the limit."""
    numbers = _numbers(value)[:2]
    if not any(number > MOST_BLUR for number in numbers):
        return value
    return " ".join(f"{min(number, MOST_BLUR):g}" for number in numbers)


def _whole_path(data: str, told: str) -> str:
    """Return path data; a curve that lacks control points becomes a simpler one to the same end.

    Raises:
        DrawingFault: they break off otherwise, are no path data, or lead too far.
    """
    position, at, start = 0, (0.0, 0.0), (0.0, 0.0)
    data = data.rstrip(" ,")
    if data and data != "none" and data[0] not in "Mm":
        raise DrawingFault(f"{told} must begin with M: correct it.")
    while position < len(data) and data != "none":
        found = _PATH_COMMAND.match(data, position)
        if found is None:
            raise DrawingFault(f"{told} is broken at {data[position : position + 12]!r}: correct it.")
        letter, position, many = found[1], found.end(), 0
        kind, arity = letter.upper(), _ARITY[letter.upper()]
        while arity:
            begun = position
            values, position = _arguments(data, position, kind)
            if not values and many:
                break
            simpler = _SIMPLER.get((kind, len(values)))
            if simpler is not None:
                letter = simpler if letter.isupper() else simpler.lower()
                kept = data[:begun] if many else data[: found.start(1)]
                data, position = f"{kept}{letter}{data[begun:]}", position + bool(many)
            elif len(values) < arity:
                rest = data[max(0, position - 12) : position]
                raise DrawingFault(f"{told} has too few numbers for {letter} after {rest!r}: correct it.")
            at = _moved(letter, kind, values, at)
            if not _near((*at, *values)):
                raise DrawingFault(f"{told} leads beyond {FARTHEST:,.0f}: keep to the picture.")
            if kind == "M" and not many:
                start = at
            many += 1
        if kind == "Z":
            at = start
    return data


def _arguments(data: str, position: int, kind: str) -> tuple[list[float], int]:
    values: list[float] = []
    for place in range(_ARITY[kind]):
        found = (_FLAG if kind == "A" and place in (3, 4) else _PATH_NUMBER).match(data, position)
        if found is None:
            break
        values.append(float(found[1]))
        position = found.end()
    return values, position


def _moved(letter: str, kind: str, values: Sequence[float], at: tuple[float, float]) -> tuple[float, float]:
    base = at if letter.islower() else (0.0, 0.0)
    if kind == "H":
        return base[0] + values[0], at[1]
    if kind == "V":
        return at[0], base[1] + values[0]
    return base[0] + values[-2], base[1] + values[-1]


def _check_shape(parsed: Element) -> None:
    """Refuse too many elements, and elements too deep in each other, before anything goes down the tree."""
    waiting, count = [(parsed, 1)], 0
    while waiting:
        element, depth = waiting.pop()
        count += 1
        if depth > MOST_DEPTH:
            raise DrawingFault(f"Elements stand more than {MOST_DEPTH} deep in each other: use fewer groups.")
        if count > MOST_NODES:
            raise DrawingFault(f"The SVG has more than {MOST_NODES:,} elements: draw the same with fewer.")
        waiting += [(child, depth + 1) for child in element]


def _view(root: Element) -> tuple[float, float, float, float]:
    numbers = _numbers(root.get("viewBox", ""))
    if len(numbers) != 4:
        raise DrawingFault('The <svg> has no viewBox: give it one, such as viewBox="0 0 1280 720".')
    left, top, width, height = numbers
    if min(width, height) < 1 or not 1 / 20 <= width / height <= 20:
        raise DrawingFault(f'The viewBox="{root.get("viewBox")}" has no usable size: such as "0 0 1280 720".')
    return left, top, width, height


def _check_patterns(root: Element, view: tuple[float, float, float, float]) -> None:
    """Refuse patterns whose tile is nothing, a speck, or far larger than the picture."""
    for pattern in root.iter("pattern"):
        user = pattern.get("patternUnits") == "userSpaceOnUse"
        shares = []
        for name, whole in (("width", view[2]), ("height", view[3])):
            value = pattern.get(name)
            if value is None and pattern.get("href") is not None:
                continue
            found = _LENGTH.fullmatch(value or "0")
            number = float(found[1]) if found is not None else 0.0
            shares.append(number / 100 if found is not None and found[2] == "%" else number / (whole if user else 1.0))
        area = shares[0] * shares[1] if len(shares) == 2 else 1.0
        if any(not 0 < share <= LARGEST_TILE for share in shares) or area * MOST_TILES < 1:
            what = f'pattern id="{pattern.get("id", "")}"'
            raise DrawingFault(f"<{what}> has tiles too small or too large: 50 units or more wide and high are good.")


class _Cost(NamedTuple):
    """What drawing an element comes to: elements, steps of filters, depth below it, whether patterns paint in it,
    shapes."""

    nodes: int
    steps: int
    depth: int
    patterned: bool
    shapes: int


class _Expansion:
    """Counts what is drawn when every reference is followed, each element once."""

    def __init__(self, root: Element) -> None:
        self._root = root
        self._ids: dict[str, list[Element]] = {}
        self._above: dict[Element, Element] = {}
        for element in root.iter():
            name = element.get("id")
            if name is not None:
                self._ids.setdefault(name, []).append(element)
            self._above.update(dict.fromkeys(element, element))
        self._known: dict[Element, _Cost] = {}
        self._under_way: set[Element] = set()

    def check(self) -> None:
        """Refuse cycles, patterns within patterns, and what comes to too much.

        Raises:
            DrawingFault: one of these.
        """
        self._cost(self._root, 1)
        for element in self._root.iter():
            self._cost(element, 1)

    def _cost(self, element: Element, depth: int) -> _Cost:
        found = self._known.get(element)
        if depth + (found.depth if found is not None else 0) > MOST_REFERENCE_DEPTH:
            raise DrawingFault(f"References lead more than {MOST_REFERENCE_DEPTH} deep: use fewer parts of parts.")
        if found is not None:
            return found
        if element in self._under_way:
            raise DrawingFault(f"{_told(element)} is drawn within itself by its references: break the circle.")
        self._under_way.add(element)
        nodes, steps, below, patterned, shapes = (
            1,
            int(element.tag in _PRIMITIVES),
            0,
            False,
            int(element.tag in SHAPES),
        )
        for child in element:
            if child.tag not in ASIDE:
                part = self._cost(child, depth + 1)
                nodes, steps, shapes = nodes + part.nodes, steps + part.steps, shapes + part.shapes
                below, patterned = max(below, part.depth), patterned or part.patterned
        for attribute, target in self._targets(element):
            part = self._cost(target, depth + 1)
            below = max(below, part.depth)
            patterned = patterned or part.patterned or (attribute in FILLS and target.tag == "pattern")
            if attribute == "href":
                shapes += part.shapes
        for attribute, target in self._targets(element):
            part = self._known[target]
            times = max(1, shapes) if attribute in FILLS else 1
            nodes, steps = nodes + times * part.nodes, steps + times * part.steps
        if element.tag == "pattern" and patterned:
            raise DrawingFault(f"{_told(element)} is painted with a pattern itself: fill it with plain colours.")
        if nodes > MOST_EXPANDED:
            said = f"{_told(element)} comes to more than {MOST_EXPANDED:,} shapes with what it refers to"
            raise DrawingFault(f"{said}: use fewer parts of parts.")
        if steps > MOST_FILTER_STEPS:
            said = f"{_told(element)} runs more than {MOST_FILTER_STEPS} steps of filters with what it refers to"
            raise DrawingFault(f"{said}: use fewer filters.")
        self._under_way.discard(element)
        cost = self._known[element] = _Cost(nodes, steps, below + 1, patterned, shapes)
        return cost

    def _targets(self, element: Element) -> Iterator[tuple[str, Element]]:
        """Yield what an element refers to; of what stands aside also the paints that it inherits."""
        for attribute, name in references_of(element):
            for target in self._ids.get(name, ()):
                yield attribute, target
        if element.tag in ("pattern", "mask", "clipPath"):
            above = self._above.get(element)
            while above is not None:
                for attribute, name in references_of(above):
                    if attribute in FILLS:
                        yield from ((attribute, target) for target in self._ids.get(name, ()))
                above = self._above.get(above)


def _told(element: Element) -> str:
    name = element.get("id")
    return f'<{element.tag} id="{name}">' if name is not None else f"<{element.tag}>"


def _place(parsed: Element, where: str) -> str:
    """Return how an element is named: by its id, else by the one that it stands in."""
    tag, name = _local(parsed.tag), parsed.get("id")
    if name is not None:
        return f'<{tag} id="{name[:40]}">'
    return f"a <{tag}> in {where.rpartition(' in ')[2]}"


def _local(tag: object) -> str:
    return str(tag).rpartition("}")[2][:40]
