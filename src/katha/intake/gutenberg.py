"""Books of Project Gutenberg without what stands around them."""

from __future__ import annotations

import re

from katha.intake.drafts import Plain

_START = re.compile(r"^\W*(?:START OF (?:THE|THIS) PROJECT GUTENBERG|\*\*\* ?START).*$", re.MULTILINE | re.IGNORECASE)
_END = re.compile(
    r"^\W*(?:END OF (?:THE|THIS) PROJECT GUTENBERG|END OF PROJECT GUTENBERG|End of (?:the )?Project Gutenberg).*",
    re.MULTILINE | re.IGNORECASE,
)
_PRODUCED = re.compile(
    r"^(?:Produced by|E-?text prepared by|Transcribed (?:from|by)|This (?:e-?text|file) was).*?(?:\n\s*\n|\Z)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)


def looks_like_gutenberg(text: str) -> bool:
    """Return whether Project Gutenberg's head or foot is in a text."""
    return "PROJECT GUTENBERG" in text.upper()


def read_gutenberg(text: str) -> Plain:
    """Return the book without Project Gutenberg's head, licence and notes."""
    named = re.search(r"^Title:\s*(.+)$", text, re.MULTILINE)
    begin, end = _START.search(text), _END.search(text)
    body = text[
        begin.end() if begin else 0 : end.start() if end and (not begin or end.start() > begin.end()) else len(text)
    ]
    if begin is None:
        body = re.sub(r"(?im)^.*project gutenberg.*(?:\n(?!\s*\n).*)*", "", body)
        body = re.sub(
            r"(?m)^(?:Title|Author|Release Date|Language|Character set encoding|Credits|Illustrator|"
            r"Translator|Posting Date|Last Updated|Most recently updated|Original publication)\s*:.*(?:\n[ \t]+\S.*)*$",
            "",
            body,
        )
    body = _PRODUCED.sub("", body)
    body = re.sub(r"\[Illustration[^\]]*\]|\[Transcriber'?s? [Nn]ote[^\]]*\]|\{\d+\}|\[(?:Pg|Page)?\s*\d+\]", "", body)
    body = re.sub(r"(?<!\w)_(?=\S)(.+?)(?<=\S)_(?!\w)", r"\1", body, flags=re.DOTALL)
    title = named[1].strip() if named else ""
    return Plain(body.strip(), title, ["Not read: Project Gutenberg's head and foot: they are about the book."])
