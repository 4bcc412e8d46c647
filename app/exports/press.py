"""What makes a PDF of a laid-out board whole: its drawings, what it says of itself, and what a printer needs of it.

A book with the printer's profile is PDF/X-4 (ISO 15930-7): fonts inside, every colour of a known space, an output
intent, the edges of pages and of the trimmed paper. Transparency stays as it is, which that standard allows.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID
from xml.sax.saxutils import escape

from katha.errors import InputFileError
from katha.jsonio import read_bytes

if TYPE_CHECKING:
    from pypdf import PdfWriter

_TIME = "2000-01-01T00:00:00Z"
"""The same bytes each time: what a file says of its day is the run's to say, and it has none."""
_MOST_PROFILE = 16_000_000
_XMP = """<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:pdf="http://ns.adobe.com/pdf/1.3/" xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/"
 xmlns:pdfxid="http://www.npes.org/pdfx/ns/id/">
<dc:format>application/pdf</dc:format>
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">{title}</rdf:li></rdf:Alt></dc:title>{author}
<xmp:CreatorTool>katha</xmp:CreatorTool><xmp:CreateDate>{time}</xmp:CreateDate>
<xmp:ModifyDate>{time}</xmp:ModifyDate><xmp:MetadataDate>{time}</xmp:MetadataDate>
<xmpMM:DocumentID>uuid:{document}</xmpMM:DocumentID><xmpMM:VersionID>1</xmpMM:VersionID>
<xmpMM:RenditionClass>default</xmpMM:RenditionClass>
<pdf:Producer>katha</pdf:Producer><pdf:Trapped>False</pdf:Trapped>
<pdfxid:GTS_PDFXVersion>PDF/X-4</pdfxid:GTS_PDFXVersion>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="w"?>"""


class PageBox(NamedTuple):
    """A place on a page in points, from its lower left corner."""

    x: float
    y: float
    width: float
    height: float


class Placed(NamedTuple):
    """Where a frame's picture lies: the page from 0, the frame's number, the place on the paper; drawn: it is a drawing
    that is still to be laid there."""

    page: int
    number: int
    box: PageBox
    drawn: bool


class PdfInfo(NamedTuple):
    """What a PDF says of itself. frames: by its key in the document's information, the list of its frames."""

    title: str
    author: str
    frames: Mapping[str, str]


class Profile(NamedTuple):
    """A printer's colour profile: its name, and its bytes."""

    name: str
    data: bytes


def read_profile(path: Path) -> Profile:
    """Return a printer's colour profile.

    Raises:
        InputFileError: it is not an ICC profile, or one of another device than a printer with four inks.
    """
    data = read_bytes(path, limit=_MOST_PROFILE)
    hint = "Ask the printer for the profile of the press and the paper."
    if len(data) < 132 or data[36:40] != b"acsp" or int.from_bytes(data[:4], "big") != len(data):
        raise InputFileError(f"{str(path)!r} is not a colour profile (ICC).", hint=hint)
    kind, space = data[12:16].decode("latin-1"), data[16:20].decode("latin-1").strip()
    if kind != "prtr" or space != "CMYK":
        said = f"{str(path)!r} is a profile of {space} colours for a device {kind!r}, not of a printer in CMYK."
        raise InputFileError(said, hint=hint)
    return Profile(path.stem, data)


def whole(
    pdf: bytes, placed: Sequence[Placed], drawings: Mapping[int, bytes], told: PdfInfo, profile: Profile | None
) -> bytes:
    """Return a PDF with its drawings and what it says of itself; with a profile, as PDF/X-4."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf)))
    for at, place in enumerate(item for item in placed if item.drawn):
        _lay(writer, at, place, drawings[place.number])
    writer.add_metadata(dict(told.frames))
    if profile is not None:
        _as_x4(writer, pdf, told, profile)
    writer.compress_identical_objects(remove_unreferenced=True)
    held = io.BytesIO()
    writer.write(held)
    return held.getvalue()


def _lay(writer: PdfWriter, at: int, place: Placed, data: bytes) -> None:
    """Lay a drawing, a PDF of one page, under what stands on its page.

    It is a form, not a part of the page's own content: the matrix of a gradient counts from the stream it stands in.
    """
    from pypdf import PdfReader
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    drawing: Any = PdfReader(io.BytesIO(data)).pages[0]
    wide, tall = float(drawing.mediabox.width), float(drawing.mediabox.height)
    form = DecodedStreamObject()
    form.set_data(drawing.get_contents().get_data())
    for name, value in {"/Type": NameObject("/XObject"), "/Subtype": NameObject("/Form"),
                        "/BBox": drawing.mediabox, "/Resources": drawing["/Resources"],
                        "/Group": drawing.get("/Group")}.items():  # fmt: skip
        if value is not None:
            form[NameObject(name)] = value.clone(writer)
    paper: Any = writer.pages[place.page]
    name, box = f"/Drawing{at}", place.box
    resources = paper["/Resources"].get_object()
    forms = resources.setdefault(NameObject("/XObject"), DictionaryObject()).get_object()
    forms[NameObject(name)] = writer._add_object(form.flate_encode())
    under = DecodedStreamObject()
    move = f"{box.width / wide:.6f} 0 0 {box.height / tall:.6f} {box.x:.4f} {box.y:.4f} cm"
    under.set_data(f"q {move} {name} Do Q\n".encode() + paper.get_contents().get_data())
    paper[NameObject("/Contents")] = writer._add_object(under.flate_encode())


def _as_x4(writer: PdfWriter, pdf: bytes, told: PdfInfo, profile: Profile) -> None:
    """Give a PDF what PDF/X-4 asks for."""
    from pypdf.generic import (
        ArrayObject,
        ByteStringObject,
        DecodedStreamObject,
        DictionaryObject,
        NameObject,
        NumberObject,
        TextStringObject,
    )

    def profiled(data: bytes, inks: int) -> Any:
        stream = DecodedStreamObject()
        stream.set_data(data)
        coded = stream.flate_encode()
        coded[NameObject("/N")] = NumberObject(inks)
        return writer._add_object(coded)

    screen = files("katha.app.exports").joinpath("srgb.icc").read_bytes()
    colours = writer._add_object(ArrayObject([NameObject("/ICCBased"), profiled(screen, 3)]))
    for item in list(_dictionaries(writer)):
        for key in ("/ColorSpace", "/CS"):
            if item.get(key) == "/DeviceRGB":
                item[NameObject(key)] = colours
        resources = item.get("/Resources")
        if resources is not None:
            spaces = resources.get_object().setdefault(NameObject("/ColorSpace"), DictionaryObject()).get_object()
            spaces[NameObject("/DefaultRGB")] = colours
    intent = DictionaryObject()
    for key, value in {
        "/Type": NameObject("/OutputIntent"),
        "/S": NameObject("/GTS_PDFX"),
        "/OutputConditionIdentifier": TextStringObject(profile.name),
        "/Info": TextStringObject(profile.name),
        "/DestOutputProfile": profiled(profile.data, 4),
    }.items():
        intent[NameObject(key)] = value
    catalogue: Any = writer.root_object
    catalogue[NameObject("/OutputIntents")] = ArrayObject([writer._add_object(intent)])
    name = hashlib.sha256(pdf + profile.data).digest()[:16]
    author = f"\n<dc:creator><rdf:Seq><rdf:li>{escape(told.author)}</rdf:li></rdf:Seq></dc:creator>"
    packet = _XMP.format(
        title=escape(told.title), author=author if told.author else "", time=_TIME, document=UUID(bytes=name)
    )
    metadata = DecodedStreamObject()
    metadata.set_data(packet.encode("utf-8"))
    metadata[NameObject("/Type")], metadata[NameObject("/Subtype")] = NameObject("/Metadata"), NameObject("/XML")
    catalogue[NameObject("/Metadata")] = writer._add_object(metadata)
    writer.add_metadata({"/Trapped": NameObject("/False"), "/Producer": TextStringObject("katha")})
    writer._ID = ArrayObject([ByteStringObject(name), ByteStringObject(name)])
    writer.pdf_header = "%PDF-1.6"


def _dictionaries(writer: PdfWriter) -> Iterator[Any]:
    """Yield every dictionary of a PDF, those inside others, too."""
    from pypdf.generic import ArrayObject, DictionaryObject

    left: list[Any] = [item for item in writer._objects if item is not None]
    while left:
        item = left.pop()
        if isinstance(item, DictionaryObject):
            yield item
            left += [value for value in item.values() if isinstance(value, (DictionaryObject, ArrayObject))]
        elif isinstance(item, ArrayObject):
            left += [value for value in item if isinstance(value, (DictionaryObject, ArrayObject))]
