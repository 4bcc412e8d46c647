"""Texts in a markup: Markdown, HTML and LaTeX. Each becomes plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any

from katha.intake.drafts import Plain

# Markdown.


def looks_like_markdown(text: str) -> bool:
    """Return whether a text has headings, fences, pictures, links or emphasis of Markdown."""
    marks = (
        r"^#{1,6}\s+\S", r"^```", r"!\[[^\]\n]*\]\(", r"(?<!!)\[[^\]\n]+\]\([^)\s]+\)", r"(?<!\w)\*\*\S.*?\S\*\*(?!\w)",
        r"^---\s*\n(?:.*\n)*?---\s*$", r"^\S.*\n(?:={3,}|-{3,})\s*$", r"^>\s+\S", r"<!--",
        r"(?<![\w*])\*[^\s*][^*\n]*\*(?![\w*])",
    )  # fmt: skip
    return any(re.search(mark, text, re.MULTILINE) for mark in marks)


_PART = re.compile(r"^\W*(?:act|chapter|part|scene|section|book|episode|page|beat)\s+\w+", re.IGNORECASE)
"""How the heading of a part begins, which is not a title."""


def read_markdown(text: str) -> Plain:
    """Return the words of a Markdown text; its first heading is the title."""
    from markdown_it import MarkdownIt

    left: list[str] = []
    front = re.match(r"\A---\s*\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|\Z)", text, re.DOTALL)
    named = re.search(r"^title:\s*[\"']?(.*?)[\"']?\s*$", front[1], re.MULTILINE | re.IGNORECASE) if front else None
    title = named[1] if named else ""
    body = text[front.end() :] if front else text
    left += ["Not read: the front matter: it is about the text."] if front else []
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    parts: list[str] = []
    dropped: list[str] = []
    heading, item = "", 0
    for token in MarkdownIt("commonmark").parse(body):
        if token.type == "heading_open":
            heading = token.tag
        elif token.type == "heading_close":
            heading = ""
        elif token.type == "list_item_open":
            item += 1
        elif token.type == "list_item_close":
            item -= 1
        elif token.type in ("fence", "code_block"):
            if token.type == "fence" and token.info.strip():
                dropped.append(token.content)
            else:
                parts.append("\n".join(line.strip() for line in token.content.strip().split("\n")))
        elif token.type == "html_block":
            parts.append(read_html(token.content).text)
        elif token.type == "inline":
            told = _inline(token.children or [])
            if heading and not title and not parts and not _PART.match(told):
                title = " ".join(told.split())
            elif heading:
                dropped.append(told)
            elif told.strip():
                parts.append(f"- {told}" if item else told)
    told = "\n\n".join(parts)
    told = re.sub(r"(?m)^(- .*)\n\n(?=- )", r"\1\n", told)
    if dropped:
        left.append(f"Not read: {len(dropped)} headings and blocks of code (the first: {dropped[0].strip()[:60]!r}).")
    return Plain(told, title, left)


def _inline(children: Sequence[Any]) -> str:
    told = ""
    for one in children:
        kind, content = one.type, one.content
        if kind in ("text", "code_inline"):
            told += content
        elif kind in ("softbreak", "hardbreak"):
            told += "\n"
    return told


# HTML.

_BLOCKS = frozenset(
    [
        "p",
        "div",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "li",
        "ul",
        "ol",
        "blockquote",
        "section",
        "article",
        "pre",
        "hr",
        "main",
        "table",
        "figure",
        "dd",
        "dt",
        "dl",
        "body",
    ]
)
_UNREAD = frozenset(
    (
        "script",
        "style",
        "nav",
        "header",
        "footer",
        "aside",
        "form",
        "button",
        "svg",
        "noscript",
        "figcaption",
        "template",
    )
)


class _Page(HTMLParser):
    """The words of a page, a paragraph a block; a table row by row."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title = self.heading = ""
        self._inside: list[str] = []
        self._naming = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNREAD:
            self._inside.append(tag)
        elif tag in ("title", "h1", "h2", "h3", "h4", "h5", "h6"):
            self._naming = tag
        if tag in _BLOCKS:
            self.parts.append("\n\n")
        elif tag == "br":
            self.parts.append("\n")
        elif tag == "tr":
            self.parts.append("\n| ")
        if tag == "li":
            self.parts.append("- ")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            while self._inside and self._inside.pop() != tag:
                pass
        elif tag == self._naming:
            self._naming = ""
        if tag in _BLOCKS and tag != "li":
            self.parts.append("\n\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")

    def handle_data(self, data: str) -> None:
        if self._naming == "title":
            self.title += data
        elif self._inside:
            return
        elif self._naming == "h1" and not self.heading.strip():
            self.heading += data
        elif self._naming and self._naming != "h1":
            self.parts.append(f"## {' '.join(data.split())}" if data.strip() else "")
        else:
            self.parts.append(re.sub(r"\s+", " ", data))


def looks_like_html(text: str) -> bool:
    """Return whether a text is a page of HTML or has paragraphs of it."""
    head = text[:3000].lower()
    if re.search(r"<!doctype html|<html[\s>]|<body[\s>]", head):
        return True
    return len(re.findall(r"</(?:p|div|span|li|h[1-6]|td|em|strong|b|i)>|<br\s*/?>|<p>", text, re.IGNORECASE)) >= 2


def read_html(text: str) -> Plain:
    """Return the words of a page; its first heading is the title."""
    page = _Page()
    page.feed(text)
    page.close()
    told = re.sub(r"[ \t]*\n[ \t]*", "\n", "".join(page.parts))
    heads = re.findall(r"(?m)^## .*$", told)
    told = (
        re.sub(r"(?m)^## .*$", "", told)
        if "|" not in told and not re.search(r"(?i)^## (?:scene|shot|panel)", told, re.M)
        else told
    )
    left = [f"Not read: {len(heads)} headings (the first: {heads[0][3:60]!r})."] if heads and "## " not in told else []
    title = " ".join((page.heading or page.title).split())
    return Plain(re.sub(r"\n{3,}", "\n\n", told).strip(), title, left)


# LaTeX.


def looks_like_latex(text: str) -> bool:
    """Return whether a text has LaTeX's commands for documents or parts of them."""
    return (
        re.search(
            r"\\(?:documentclass|begin\{|section\*?\{|chapter\*?\{|title\{|emph\{|textit\{|textbf\{|usepackage)", text
        )
        is not None
    )


def read_latex(text: str) -> Plain:
    """Return the words of a LaTeX document."""
    from pylatexenc.latex2text import LatexNodes2Text

    plain = re.sub(r"(?<!\\)%.*", "", text)
    named = re.search(r"\\title\*?\{((?:[^{}]|\{[^{}]*\})*)\}", plain)
    inside = re.search(r"\\begin\{document\}(.*?)(?:\\end\{document\}|\Z)", plain, re.DOTALL)
    body = inside[1] if inside else plain
    heads = re.findall(r"\\(?:part|chapter|(?:sub)*section|paragraph)\*?\{([^{}]*)\}", body)
    body = re.sub(r"\\(?:part|chapter|(?:sub)*section|paragraph)\*?\{[^{}]*\}", "\n\n", body)
    body = re.sub(
        r"\\(?:title|author|date|label|ref|cite|footnote|thanks|maketitle|tableofcontents|usepackage|documentclass|includegraphics)\*?(?:\[[^\]]*\])?(?:\{(?:[^{}]|\{[^{}]*\})*\})?",
        " ",
        body,
    )
    body = re.sub(
        r"\\begin\{(?:figure|table|equation|align|tikzpicture|thebibliography)\*?\}.*?\\end\{(?:figure|table|equation|align|tikzpicture|thebibliography)\*?\}",
        " ",
        body,
        flags=re.DOTALL,
    )
    told = LatexNodes2Text(math_mode="text").latex_to_text(re.sub(r"\n[ \t]*\n+", "\n\n\x02\n\n", body))
    told = re.sub(r"\s*\x02\s*", "\n\n", told)
    told = "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", told) if part.strip())
    told = re.sub(r"\u2018\u2018|``", "\u201c", re.sub(r"\u2019\u2019|''", "\u201d", told))
    title = LatexNodes2Text().latex_to_text(named[1]).strip() if named else (heads[0] if heads else "")
    rest = [head for head in heads if head != title]
    return Plain(told, title, [f"Not read: {len(rest)} headings (the first: {rest[0]!r})."] if rest else [])
