"""The kinds of text, in the order in which they are tried: what is sure by its marks first.

A kind's module is loaded where its sign is in the text, or its ending at the file's name; it then says whether the text
is of that kind. A plain story loads none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import JSONDecodeError
from typing import Any

from katha.intake.drafts import Plain, TextDraft
from katha.jsonio import loads


@dataclass(frozen=True)
class Kind:
    """A kind of text. sign: what is in every text of it, `most` times at least. endings: of files that are read as it,
    whatever is in them. read: what such a text tells; None where it is of another kind after all."""

    name: str
    read: Callable[[str, str], TextDraft | Plain | None]
    sign: re.Pattern[str] | None = None
    endings: tuple[str, ...] = ()
    least: int = 1

    def may_be(self, text: str, suffix: str) -> bool:
        """Return whether a text may be of this kind."""
        if suffix in self.endings:
            return True
        return self.sign is not None and next(self._signs(text), None) is not None

    def _signs(self, text: str) -> Iterator[re.Match[str]]:
        assert self.sign is not None
        for number, found in enumerate(self.sign.finditer(text), 1):
            if number >= self.least:
                yield found


def _final_draft(text: str, suffix: str) -> TextDraft | None:
    from katha.intake.screenplays import read_final_draft

    if suffix == ".fdx" and "<FinalDraft" not in text:
        raise ValueError("it is not a whole Final Draft document (it has no element FinalDraft)")
    return read_final_draft(text) if "<FinalDraft" in text[:4000] else None


def _fountain(text: str, _: str) -> TextDraft:
    from katha.intake.screenplays import read_fountain

    return read_fountain(text)


def _subtitles(text: str, _: str) -> TextDraft | None:
    from katha.intake import subtitles

    return subtitles.read_subtitles(text) if subtitles.looks_like_subtitles(text) else None


def _twine(text: str, suffix: str) -> Plain | None:
    from katha.intake import twine

    return twine.read_twine(text) if suffix in (".twee", ".tw") or twine.looks_like_twine(text) else None


def _html(text: str, suffix: str) -> Plain | None:
    from katha.intake import markup

    return markup.read_html(text) if suffix in (".html", ".htm") or markup.looks_like_html(text) else None


def _latex(text: str, suffix: str) -> Plain | None:
    from katha.intake import markup

    return markup.read_latex(text) if suffix == ".tex" or markup.looks_like_latex(text) else None


def _gutenberg(text: str, _: str) -> Plain:
    from katha.intake.gutenberg import read_gutenberg

    return read_gutenberg(text)


def _prompts(text: str, _: str) -> TextDraft | None:
    from katha.intake import prompts

    return prompts.read_prompts(text) if prompts.looks_like_prompts(text) else None


def _comic(text: str, _: str) -> TextDraft | None:
    from katha.intake import comics

    return comics.read_comic(text) if comics.looks_like_comic(text) else None


def _shot_lines(text: str, _: str) -> TextDraft | None:
    from katha.intake import comics

    return comics.read_shot_lines(text) if comics.looks_like_shot_lines(text) else None


def _table(text: str, _: str) -> TextDraft | None:
    from katha.intake import tables

    found, rest = tables.tables_of(text)
    read = tables.read_rows(found, rest, "shot list (a table)") if found else None
    if read is None and found and len(rest) < sum(map(len, found)):  # hardly anything but rows
        return tables.read_rows([tables.with_head(max(found, key=len))], rest, "shot list (a table)")
    return read


def _csv(text: str, suffix: str) -> TextDraft | None:
    from katha.intake import tables

    rows = tables.csv_rows(text) if suffix in _CSV or max(text.count(","), text.count(";")) > 2 else None
    read = tables.read_rows([rows], (), "shot list (CSV)") if rows else None
    if read is None and suffix in _CSV:
        rows = tables.csv_rows(text, headless=True)
        read = tables.read_rows([rows], (), "shot list (CSV)") if rows else None
    return read


def _blocks(text: str, _: str) -> TextDraft | None:
    from katha.intake import blocks

    return blocks.read_blocks(text) if blocks.looks_like_blocks(text) else None


def _cast(text: str, _: str) -> TextDraft | None:
    from katha.intake.casts import read_cast

    return read_cast(text)


def _timed(text: str, _: str) -> Plain | None:
    """Return lines without the times that they begin with ("0:05-0:10 Mia runs", "[10:02] Mia: Hi"), where most do."""
    lines = [line for line in text.split("\n") if line.strip()]
    if sum(_TIMED.match(line) is not None for line in lines) < max(2, len(lines) / 2):
        return None
    plain = "\n".join(_TIMED.sub("", line) for line in text.split("\n"))
    return Plain(plain, left_out=["Not read: the times before the lines: they are no words of the story."])


def _tagged(text: str, _: str) -> Plain | None:
    """Return what elements of XML hold as labelled lines: `<location>a market</location>` is `Location: a market`."""
    from katha.intake.fields import label_kind

    kinds = [label_kind(found["tag"].replace("_", " ")) for found in _LEAF.finditer(text)]
    if sum(kind in ("action", "dialogue", "prompt", "place", "characters") for kind in kinds) < 2:
        return None
    told = _LEAF.sub(lambda found: f"\n{found['tag'].replace('_', ' ').capitalize()}: {found['said'].strip()}\n", text)
    return Plain(re.sub(r"\n\s*\n+", "\n\n", re.sub(r"<[^<>\n]*>", "\n\n", re.sub(r"\n(?=\n)", "", told))).strip())


def _script(text: str, _: str) -> TextDraft | None:
    from katha.intake import screenplays

    return screenplays.read_fountain(text) if screenplays.looks_like_script(text) else None


def _outline(text: str, _: str) -> TextDraft | None:
    from katha.intake import outlines

    return outlines.read_outline(text) if outlines.looks_like_outline(text) else None


def _markdown(text: str, suffix: str) -> Plain | None:
    from katha.intake import markup

    marked = suffix in (".md", ".markdown") or markup.looks_like_markdown(text)
    return markup.read_markdown(text) if marked else None


def _quoted(text: str, _: str) -> Plain | None:
    """Return the text that a program's file gives to ViMax or another pipeline: script = \"\"\"...\"\"\"."""
    pattern = r"(?ms)^\s*(?:script|idea|story|screenplay)\s*(?::\s*str\s*)?=\s*\\?\s*(?:f|r)?(\"\"\"|'''|\"|')(.*?)\1"
    found = re.search(pattern, text)
    return Plain(found[2].strip("\n"), left_out=["Not read: the program around the text."]) if found else None


def _labelled_idea(text: str, _: str) -> Plain | None:
    """Return the idea or script of a text that has a label for it, and requirements and a style beside."""
    parts = re.split(
        r"(?im)^[ \t#*]*(idea|script|story|synopsis|premise|logline|user[ _]requirements?|"
        r"requirements?|style)\**[ \t]*[:=][ \t]*\**",
        text,
    )
    if len(parts) < 3 or parts[0].strip():
        return None
    told = {parts[at].lower(): parts[at + 1].strip() for at in range(1, len(parts) - 1, 2)}
    main = next(
        (told[key] for key in ("script", "story", "idea", "synopsis", "premise", "logline") if told.get(key)), None
    )
    rest = [key for key in told if told[key] != main]
    return (
        Plain(main, left_out=[f"Not read: {', '.join(rest)}: not told as a story."] if rest else []) if main else None
    )


def _json(text: str, _: str) -> TextDraft | Plain | None:
    try:
        value = loads(text)
    except (JSONDecodeError, ValueError):
        return None
    return read_object(value)


def read_object(value: Any) -> TextDraft | Plain | None:
    """Return what a JSON value tells; None where no field of it tells a story.

    Raises:
        ValueError: it is a file of a kind that is known and tells none; the message says which.
    """
    if isinstance(value, dict) and _is_workflow(value):
        raise ValueError(
            "it is a workflow of ComfyUI, which tells no story; give the prompts or the story that it draws"
        )
    from katha.intake import objects

    draft = objects.draft_of(value)
    if draft is None and isinstance(value, dict):
        whole = objects.whole_text(value)
        if whole is not None:
            return Plain(whole[1])
    return draft


def _is_workflow(value: dict[str, Any]) -> bool:
    steps = any(isinstance(one, dict) and "class_type" in one for one in value.values())
    return steps or ("nodes" in value and "links" in value)


_CSV = (".csv", ".tsv")
_CLOCK = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?"
_TIMED = re.compile(
    rf"^\s*(?:[-*\u2022]\s+)?[\[(]?(?:\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}},?\s+)?{_CLOCK}(?:\s*[-\u2013\u2014]+>?\s*{_CLOCK})?(?:\s?[ap]m)?"
    r"[\])]?(?:\s*[-\u2013\u2014:|]\s+|\s+)(?=\S)",
    re.IGNORECASE,
)
_LEAF = re.compile(r"<(?P<tag>[A-Za-z][\w-]*)(?:\s[^<>\n]*)?>(?P<said>[^<>]+)</(?P=tag)>")
_LABELLED = r"^[^\n]{1,120}?(?:[:=\uff1a]|\s[-\u2013\u2014]\s)"
_POINTED = (
    r"^[^\n]{0,60}[^\s.!?\"'\u201d\u2019]\s*$|^\s*(?:\w{1,5}[.)]|\(\w{1,3}\)|\d+(?:\.\d+)+\.?|[-*+\u2022\u2013\u25aa\u25e6\u25cb\u25cf>\u2192])\s"
    r"|^[\W_]*(?:act|part|chapter|scene|beat|section|sequence|step|day|week|stage|book|episode|volume|canto|story|plot)\s"
)
_SCRIPTED = (
    r"^(?=[^\n]*[^\W\d_])(?:\([^()\n]*\)|[^a-z\n()])+$|^\s*(?:\d+[A-Za-z]?[.)]?\s+)?(?i:int|ext|est|i/e)\b|^\s*@\w"
    r"|^\s{0,8}[A-Z][A-Z' ]{1,20}[A-Z]\.\s"
)


def _sign(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


KINDS: tuple[Kind, ...] = (
    Kind("Final Draft script", _final_draft, _sign("<FinalDraft"), (".fdx",)),
    Kind("Fountain script", _fountain, None, (".fountain", ".spmd")),
    Kind("JSON", _json, _sign(r"\A\s*[\[{]")),
    Kind("subtitles", _subtitles, _sign(r"\d:\d\d[.,]\d|\A\s*WEBVTT|\[Script Info\]")),
    Kind("Twine story", _twine, _sign(r"<tw-passagedata|^\s*::"), (".twee", ".tw")),
    Kind("lines with times", _timed, _sign(rf"^\W{{0,3}}[\d./-]*,?\s*{_CLOCK}"), (), 2),
    Kind("XML", _tagged, _sign(r"<[A-Za-z][\w-]*(?:\s[^<>\n]*)?>[^<>]+</")),
    Kind("HTML page", _html, _sign("<"), (".html", ".htm")),
    Kind("LaTeX document", _latex, _sign(r"\\"), (".tex",)),
    Kind("Project Gutenberg book", _gutenberg, _sign("(?i)project gutenberg")),
    Kind("text in a program", _quoted, _sign(r"^\s*(?:script|idea|story|screenplay)\s*(?::\s*str\s*)?=")),
    Kind(
        "idea",
        _labelled_idea,
        _sign(r"(?i)\A[\s#*]*(?:idea|script|story|synopsis|premise|logline|user[ _]requirements?|style)\**\s*[:=]"),
    ),
    Kind("list of prompts", _prompts, _sign(r"(?i)\[|settings")),
    Kind("comics script", _comic, _sign("(?i)panel"), (), 2),
    Kind("shot list", _table, _sign(r"[|\t]")),
    Kind("shot list", _csv, _sign(r"\A\s*[^\n]*[,;]"), _CSV),
    Kind("labelled blocks", _blocks, _sign(_LABELLED), (), 2),
    Kind(
        "shot list",
        _shot_lines,
        _sign(r"(?i)^[ \t*#\[(-]*(?:shot|frame|image|picture|clip|board|cut)[^\n]{0,12}\d"),
        (),
        2,
    ),
    Kind("story with a cast", _cast, _sign(r"(?i)^[\W_]*(?:main[\W_]+)?(?:characters?|cast|dramatis|people)\b")),
    Kind("script", _script, _sign(_SCRIPTED)),
    Kind("outline", _outline, _sign(f"(?i){_POINTED}|{_LABELLED}"), (), 2),
    Kind("Markdown text", _markdown, _sign(r"[#*`]|\]\(|^[=-]{3}|^>\s|<!--"), (".md", ".markdown")),
)
