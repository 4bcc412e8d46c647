"""A model's reply as its server shaped it: what stands around its one JSON object is transport, and is cut off.

Models that think aloud, and servers that do not hold them to a schema, put thoughts, fences, sentences and end marks
around the object. The object itself is read strictly: nothing in it is mended.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from katha.jsonio import loads

LONGEST = 20_000
"""Letters that are read of a reply without its thoughts."""
_LONGEST_THOUGHT = 2_000_000
_NAMES = r"think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad|seed:think"
_CLOSED = re.compile(
    rf"<(?P<name>{_NAMES})\b[^<>]{{0,80}}>.*?</(?P=name)\s*>"
    r"|\[THINK\].*?\[/THINK\]"
    r"|◁think▷.*?◁/think▷"
    r"|<\|begin_of_thought\|>.*?<\|end_of_thought\|>"
    r"|<\|START_THINKING\|>.*?<\|END_THINKING\|>"
    r"|<\|channel\|?>\s*(?:analysis|thought|commentary).*?(?:<\|end\|>|<channel\|>|(?=<\|channel\|>))"
    r"|<unused94>.*?<unused95>",
    re.DOTALL | re.IGNORECASE,
)
_END = re.compile(rf"</(?:{_NAMES})\s*>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>", re.IGNORECASE)
_OPEN = re.compile(
    rf"<(?:{_NAMES})\b[^<>]{{0,80}}>|\[THINK\]|◁think▷|<\|START_THINKING\|>|<\|channel\|?>\s*(?:analysis|thought)",
    re.IGNORECASE,
)
_SCANNER = json.JSONDecoder()
# A reply with more braces than this was not meant as JSON, and each try reads to its end.
_MOST_OBJECTS = 64
_UNTOLD = ("thinking", "reasoning", "reasoning_content", "redacted_thinking", "thought")
"""Kinds of parts that are thoughts."""


def without_thoughts(text: str) -> str | None:
    """Return a reply without its closed thoughts, and without what stands before a thought's end whose beginning the
    server kept; None where a thought does not end."""
    bare = _CLOSED.sub(" ", text[:_LONGEST_THOUGHT])
    ends = list(_END.finditer(bare))
    bare = bare[ends[-1].end() :] if ends else bare
    return None if _OPEN.search(bare) else bare


def read_object(text: str, most: int = LONGEST, fields: Collection[str] = ()) -> tuple[str | None, Any]:
    """Return what is wrong with a reply, and its JSON value: the whole reply's, or that of the one object in it.

    most: letters that are read beside thoughts. fields: those of the object that is wanted, where there are others.
    """
    if not text.strip():
        return "the reply is empty", None
    bare: str | None = text.strip("\ufeff\u200b \t\r\n")
    whole, value = _whole(str(bare)) if len(text) <= most else (False, None)
    if whole:
        return None, value
    bare = without_thoughts(text)
    if bare is None:
        return "the reply is a thought that does not end", None
    if len(bare.strip()) > most:
        return f"the reply has {len(bare.strip()):,} characters; at most {most:,} are read", None
    found = list(_objects(bare))
    wanted = [one for one in found if fields and set(fields) <= one.keys()] or found
    if not wanted:
        return ("the reply is not JSON" if bare.strip() else "the reply is a thought and nothing else"), None
    if any(one != wanted[0] for one in wanted):
        return f"the reply holds {len(wanted)} JSON objects that differ", None
    return None, wanted[0]


def object_of(text: str) -> Any:
    """Return the JSON value of a reply of any length, as `read_object` reads it.

    Raises:
        ValueError: there is none, or more than one; the message says so.
    """
    problem, value = read_object(text, _LONGEST_THOUGHT)
    if problem is not None:
        raise ValueError(problem)
    return value


def _whole(text: str) -> tuple[bool, Any]:
    try:
        value = loads(text)
        inner = loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return False, None
    if isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict):
        inner = inner[0]
    return isinstance(inner, dict | list), inner


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, outermost ones."""
    at, tried = text.find("{"), 0
    while at >= 0 and tried < _MOST_OBJECTS:
        tried += 1
        try:
            _, end = _SCANNER.raw_decode(text, at)
            value = loads(text[at:end])
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(value, dict):
            yield value
        at = text.find("{", end)


def joined_parts(content: object) -> tuple[str, str]:
    """Return the words and the thoughts of a message's content: a text, a list of parts, an object, or nothing.

    Raises:
        TypeError: it is of no such shape.
    """
    if content is None or isinstance(content, str):
        return content or "", ""
    if isinstance(content, Mapping) and "type" not in content:
        return json.dumps(dict(content), ensure_ascii=False), ""
    words: list[str] = []
    thoughts: list[str] = []
    for part in [content] if isinstance(content, Mapping) else list(_listed(content)):
        kind, said = _part(part)
        (thoughts if kind in _UNTOLD else words).append(said)
    return "".join(words), "".join(thoughts)


def _listed(content: object) -> Sequence[object]:
    if not isinstance(content, list | tuple):
        raise TypeError(f"a message's content is a {type(content).__name__}")
    return content


def _part(part: object) -> tuple[str, str]:
    if isinstance(part, str):
        return "text", part
    fields = part if isinstance(part, Mapping) else getattr(part, "__dict__", {})
    kind = str(fields.get("type", "text"))
    said = next((fields[name] for name in (kind, "text", "content", "value") if fields.get(name)), "")
    if isinstance(said, Mapping):
        said = said.get("value", "")
    return kind, said if isinstance(said, str) else "".join(joined_parts(said))
