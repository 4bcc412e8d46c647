"""Labelled blocks (Location: / Characters: / Action:), a scene or shot each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from katha.intake.drafts import TextDraft, plain_marks
from katha.intake.fields import BULLET, LABEL, MARKER, finished, label_kind, passage_of, people
from katha.intake.names import Names

_TOLD = frozenset(("action", "prompt", "narration", "dialogue"))


def looks_like_blocks(text: str) -> bool:
    """Return whether half of a text's lines are labels that are known, of two kinds or more."""
    kinds, lines, marked, markers = set[str](), 0, 0, 0
    for line in text.split("\n"):
        plain = _bare_line(line)
        markers += MARKER.match(plain) is not None
        if not plain or MARKER.match(plain):
            continue
        lines += 1
        found = LABEL.match(plain)
        kind = label_kind(found["label"]) if found else None
        if kind is not None:
            kinds.add(kind)
            marked += 1
    of_scene = kinds & {"place", "characters", "action", "dialogue", "narration", "prompt", "time"}
    told = bool(kinds & _TOLD) and marked >= 2 and marked >= 0.3 * lines
    return told and (len(of_scene) > 1 or (markers > 1 and marked >= markers))


def _bare_line(line: str) -> str:
    told = BULLET.sub("", line) if LABEL.match(plain_marks(BULLET.sub("", line))) else line
    return plain_marks(re.sub(r"^\s*(?:#+\s+|>\s?)", "", told)).strip()


def read_blocks(text: str) -> TextDraft:
    """Return a text of labelled blocks (Location: / Characters: / Action:), a scene or shot each."""
    reading = _Blocks(Names(text))
    for line in text.split("\n"):
        reading.take(_bare_line(line))
    draft = TextDraft("labelled blocks", shots=reading.shots)
    _take_blocks(reading.blocks, reading.names, draft)
    draft.leave("other labels", reading.asides, "they are not of what is told")
    return finished(draft, reading.names)


class _Blocks:
    """Labelled lines while they are read: by block and label, what stands there."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.blocks: list[dict[str, list[str]]] = [{}]
        self.asides: list[str] = []
        self.shots = False
        self._kind, self._head = "", True

    def take(self, line: str) -> None:
        """Take a line in."""
        marker, found = MARKER.match(line), LABEL.match(line)
        label = label_kind(found["label"]) if found is not None else None
        if not line or set(line) <= set("-=*_~ "):
            self._kind = self._kind if self._kind == "characters" else ""
        elif marker is not None and label in (None, "number"):
            self._begin(marker)
        elif found is not None and label is not None:
            self._labelled(label, found["said"].strip(), line)
        else:
            self._other(line, found)

    def _begin(self, marker: re.Match[str]) -> None:
        self.blocks.append({"number": [marker["number"]]})
        self.shots |= marker["what"].lower() in ("shot", "panel", "frame", "image", "picture", "clip", "cut")
        if marker["rest"]:
            self.blocks[-1]["title"] = [marker["rest"]]
        self._kind, self._head = "", False

    def _labelled(self, label: str, said: str, line: str) -> None:
        now = self.blocks[-1]
        again = label in now and label in ("place", "action", "characters", "time") and not _more(label, now)
        if again or (label in ("title", "number") and now.keys() & _TOLD):
            self.blocks.append({})
        self._kind = label
        if label in ("aside", "camera"):
            self.asides.append(line)
        else:
            self.blocks[-1].setdefault(label, []).extend([said] if said else [])

    def _other(self, line: str, found: re.Match[str] | None) -> None:
        """Take in a line without a label: it goes on with the one above, is spoken, or is told."""
        now, kind = self.blocks[-1], self._kind
        if not kind and found is not None and (found["label"].isupper() or self.names.known(found["label"])):
            kind = "dialogue"
        elif not kind:
            kind = "title" if self._head and len(self.blocks) == 1 and not now else "action"
        if kind not in ("aside", "camera"):
            now.setdefault(kind, []).append(line)


def _more(label: str, block: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a label that comes again goes on with its block: several lines of action one after the other."""
    return label == "action" and "place" not in block and "characters" not in block and list(block)[-1] == "action"


def _take_blocks(blocks: Sequence[Mapping[str, Sequence[str]]], names: Names, draft: TextDraft) -> None:
    for block in blocks:
        for line in block.get("characters", ()):
            _member(line, names)
    for at, block in enumerate(blocks):
        told = block.keys() & _TOLD
        if not told and "title" in block and at < len(blocks) - 1 and not draft.title and "number" not in block:
            draft.title = " ".join(block["title"]).strip()
            continue
        fields = {kind: [line for line in lines if line] for kind, lines in block.items()}
        if "title" in fields and at == 0 and "number" not in fields and not draft.title:
            draft.title = fields.pop("title")[0]
        fields["characters"] = [re.split(r":\s|\s[-\u2013\u2014]\s", line)[0] for line in fields.get("characters", [])]
        passage = passage_of(fields, names)
        if passage.text and (told or "number" in block):
            draft.passages.append(passage)
        elif passage.text:
            draft.leave("a block", [passage.text], "it has no action")


def _member(line: str, names: Names) -> None:
    """Take a line of a cast in: "Mia: a girl with red hair", or names alone."""
    found = re.match(
        r"^(?P<name>[^:\u2013\u2014(]{1,40}?)\s*(?:\([^)]*\))?\s*(?::|\s[-\u2013\u2014]\s)\s*(?P<look>.+)$", line
    )
    if found is not None:
        names.add(found["name"], found["look"])
    else:
        people(line, names)
