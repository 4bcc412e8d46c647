"""Subtitles: SubRip, WebVTT, SubViewer and SubStation, as a story without times and numbers."""

from __future__ import annotations

import re

from katha.intake.drafts import Passage, TextDraft, sentence, speech
from katha.intake.names import Names

_TIMES = re.compile(
    r"^\s*(?:\d{1,2}:)?\d{1,2}:\d{2}[.,]\d{1,3}\s*(?:-+>|,)\s*(?:\d{1,2}:)?\d{1,2}:\d{2}[.,]\d{1,3}.*$", re.MULTILINE
)
_HEARD = re.compile(r"[\[(\u266a\u266b*#][^\])\n]*(?:[\])\u266a\u266b*#]|$)")


def looks_like_subtitles(text: str) -> bool:
    """Return whether a text has times as SubRip, WebVTT, SubViewer or SubStation have them."""
    return text.lstrip().startswith("WEBVTT") or _TIMES.search(text) is not None or "[Script Info]" in text[:2000]


def read_subtitles(text: str) -> TextDraft:
    """Return what subtitles say, as a story without times and numbers."""
    from pysubs2 import SSAFile
    from pysubs2.exceptions import Pysubs2Error

    draft = TextDraft("subtitles")
    voiced = re.sub(r"<v(?:\.[\w.]+)?\s+([^>]+)>", r"\1: ", text)
    voiced = re.sub(r"(?m)^((?:\d+:)?\d+:\d\d\.\d+),((?:\d+:)?\d+:\d\d\.\d+)\s*$", r"\1 --> \2", voiced)
    voiced = re.sub(r"(?ms)^(?:NOTE|STYLE|REGION)\b.*?(?=\n\s*\n|\Z)", "", voiced)
    kind = "ass" if "[Script Info]" in voiced[:2000] else "vtt" if voiced.lstrip().startswith("WEBVTT") else "srt"
    try:
        events = list(SSAFile.from_string(voiced, format_=kind))
        lines = [(event.plaintext, event.name) for event in events if not event.is_comment]
    except (Pysubs2Error, ValueError):
        lines = []
    if not lines:
        plain = re.sub(r"(?m)^\s*\d+\s*$", "", _TIMES.sub("\n", voiced.replace("WEBVTT", "", 1)))
        lines = [(part, "") for part in re.split(r"\n\s*\n", plain)]
    _join(lines, draft)
    return draft


def _join(lines: list[tuple[str, str]], draft: TextDraft) -> None:
    """Join the words of subtitles into sentences; what is heard, and what is there twice, is left out."""
    names = Names("\n".join(text for text, _ in lines))
    heard: list[str] = []
    pending, who, before = "", "", ""
    for text, actor in lines:
        text = re.sub(r"\{\\[^}]*\}|</?\w[^>]*>", "", text)
        heard += [found[0] for found in _HEARD.finditer(text)]
        for line in re.split(r"\n(?=\s*[-\u2013\u2014])", _HEARD.sub(" ", text)):
            told = " ".join(line.split()).lstrip("-\u2013\u2014> ")
            cue = re.match(
                r"^(?P<who>[^\W\d_a-z][^a-z:\n]{1,25}|[A-Z][\w.'\u2019]+(?: [A-Z][\w.'\u2019]+)?)\s*:\s+(?=\S)", told
            )
            speaker = (
                names.add(cue["who"]) if cue is not None else names.add(actor) if actor and actor != "Default" else ""
            )
            told = told[cue.end() :] if cue is not None else told
            if not any(one.isalnum() for one in told) or told == before:
                continue
            if pending and (speaker or _begins(line)):
                _flush(pending, who, draft)
                pending = ""
            who = speaker if not pending else who
            before, pending = told, f"{pending} {told}".strip()
            if re.search(r"[.!?\u2026][\"'\u2019\u201d)]*$", told):
                _flush(pending, who, draft)
                pending = ""
    if pending:
        _flush(pending, who, draft)
    draft.cast(names)
    draft.leave("sounds", heard, "no picture shows them")


def _begins(line: str) -> bool:
    return re.match(r"^\s*[-\u2013\u2014]\s*\S", line) is not None


def _flush(text: str, who: str, draft: TextDraft) -> None:
    draft.passages.append(Passage(speech(who, text) if who else sentence(text)))
