"""Stories of Twine, published or in Twee notation: one way through them."""

from __future__ import annotations

import re

from katha.intake.drafts import Plain

_PASSAGE = re.compile(
    r"^::[ \t]*(?P<name>[^\[{\n]+?)[ \t]*(?:\[(?P<tags>[^\]\n]*)\])?[ \t]*(?:\{.*\})?[ \t]*$", re.MULTILINE
)
_LINK = re.compile(r"\[\[(?P<inside>[^\[\]]+)\](?:\[[^\]]*\])?\]")
_SPECIAL = frozenset(
    [
        "storytitle",
        "storydata",
        "storyauthor",
        "storyinit",
        "storycaption",
        "storymenu",
        "storysettings",
        "storybanner",
        "storysubtitle",
        "storyincludes",
        "storyinterface",
        "passageheader",
        "passagefooter",
        "passageready",
        "passagedone",
        "storyshare",
        "stylesheet",
    ]
)


def looks_like_twine(text: str) -> bool:
    """Return whether a text is Twee notation or a story that Twine published."""
    return "<tw-passagedata" in text or len(_PASSAGE.findall(text)) >= 2 or re.match(r"\s*::\s*\w", text) is not None


def read_twine(text: str) -> Plain:
    """Return one way through a Twine story: from its start along the first link of each passage."""
    from html import unescape

    title, start, passages = "", "", dict[str, str]()
    if "<tw-passagedata" in text:
        named = re.search(r"<tw-storydata[^>]*\bname=\"([^\"]*)\"", text)
        first = re.search(r"<tw-storydata[^>]*\bstartnode=\"(\d+)\"", text)
        title = unescape(named[1]) if named else ""
        for tag, body in re.findall(r"<tw-passagedata([^>]*)>(.*?)</tw-passagedata>", text, re.DOTALL):
            name, number = re.search(r"\bname=\"([^\"]*)\"", tag), re.search(r"\bpid=\"(\d+)\"", tag)
            passages[unescape(name[1]) if name else ""] = unescape(body)
            if name and number and first and number[1] == first[1]:
                start = unescape(name[1])
    else:
        title, start = _twee(text, passages)
    return _walked(passages, start, title)


def _twee(text: str, passages: dict[str, str]) -> tuple[str, str]:
    title, start = "", ""
    heads = list(_PASSAGE.finditer(text))
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        name, body = head["name"].strip(), text[head.end() : after.start() if after else len(text)].strip()
        if name.lower() == "storytitle":
            title = body
        elif name.lower() == "storydata":
            found = re.search(r"\"start\"\s*:\s*\"([^\"]+)\"", body)
            start = found[1] if found else ""
        elif name.lower() not in _SPECIAL and not re.search(r"\b(?:script|stylesheet|widget)\b", head["tags"] or ""):
            passages[name] = body
    return title, start or next((name for name in passages if name.lower() == "start"), next(iter(passages), ""))


def _target(inside: str) -> tuple[str, str]:
    """Return the words of a link and the passage that it leads to."""
    for mark, turned in (("->", False), ("<-", True), ("|", False)):
        if mark in inside:
            left, _, right = inside.rpartition(mark) if mark == "->" else inside.partition(mark)
            return (right.strip(), left.strip()) if turned else (left.strip(), right.strip())
    return inside.strip(), inside.strip()


def _walked(passages: dict[str, str], start: str, title: str) -> Plain:
    parts: list[str] = []
    seen: list[str] = []
    at: str | None = start
    while at is not None and at in passages and at not in seen:
        seen.append(at)
        body = passages[at]
        links = [_target(found["inside"])[1] for found in _LINK.finditer(body)]
        at = next((name for name in links if name in passages and name not in seen), None)
        parts.append(_told_passage(body))
    left = len(passages) - len(seen)
    said = (
        [f"Not read: {left} of {len(passages)} passages: they are on other ways through the story."] if left > 0 else []
    )
    return Plain("\n\n".join(part for part in parts if part.strip()), title, said)


def _told_passage(body: str) -> str:
    lines: list[str] = []
    body = re.sub(r"<<[^>]*>>|<!--.*?-->|/\*.*?\*/|\{\{[^}]*\}\}", "", body, flags=re.DOTALL)
    body = re.sub(r"\([a-z][\w-]*:(?:[^()]|\([^()]*\))*\)(?:\[[^\[\]]*\])?", "", body)
    for line in body.split("\n"):
        if not _LINK.sub("", line).strip(" -*>.\u2022|"):
            continue  # a choice alone
        told = _LINK.sub(lambda found: _target(found["inside"])[0], line)
        told = re.sub(r"</?\w[^>]*>|''|//|\$\w+", "", told)
        lines.append(re.sub(r"^[*#>-]+\s+", "", told).strip())
    return "\n".join(line for line in lines if line)
