"""Lists of prompts as StoryDiffusion and ConsiStory take them: a shot a line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from katha.intake.drafts import Passage, TextDraft, plain_marks, sentence
from katha.intake.fields import LABEL, MARKER, finished, label_kind
from katha.intake.names import Names, bare

_NAMED = re.compile(
    r"^\s*(?:\d+[.)]\s*)?(?P<who>(?:\[(?=[^\]\n]*[^\W\d_]{2})[^\[\]\n:]{1,40}\]\s*(?:and|&|,)?\s*)+)\s*(?P<rest>.*)$"
)
_SETTINGS = re.compile(r"(?im)^[ \t-]*settings\s*:")
_INSIDE = re.compile(r"\[([^\[\]\n]{1,40})\]")
_LOOK = re.compile(r"^\s*[:,=-]?\s*(?:an?\s|the\s|\d+|(?:wo)?man\b|girl\b|boy\b|.*\bimg\b)", re.IGNORECASE)
_QUALITY = re.compile(
    r",?\s*\b(?:masterpiece|best quality|high(?:ly)? (?:quality|detailed|resolution)|(?:4|8)k|"
    r"ultra[- ]?hd|hdr|trending on \w+|"
    r"(?:comic book|japanese anime|disney charactor|photographic|line art|digital art|"
    r"cinematic)\s*style|<lora:[^>]*>|img)\b",
    re.IGNORECASE,
)


def looks_like_prompts(text: str) -> bool:
    """Return whether lines begin with [Name] or [NC], or a text calls ConsiStory."""
    lines = [line for line in text.split("\n") if line.strip()]
    named = sum(_NAMED.match(line) is not None and not MARKER.match(line) for line in lines)
    return (
        (named >= 2 and named >= 0.4 * len(lines))
        or any(re.search(r"\[NC\]", line) for line in lines)
        or "--settings" in text
        or (_SETTINGS.search(text) is not None and "subject" in text)
    )


def read_prompts(text: str) -> TextDraft:
    """Return a list of prompts of StoryDiffusion ([Name] does ... #caption) or ConsiStory: a shot a line."""
    if "--settings" in text or _SETTINGS.search(text):
        return _consistory(text)
    reading = _Prompts(text)
    for line in (line.strip() for line in text.split("\n") if line.strip()):
        reading.take(line)
    draft = reading.draft
    if reading.general:
        _with_general(reading.general, draft)
    draft.leave("captions after '#'", reading.captions, "they are words beside the picture")
    draft.leave("other lines", reading.others, "they are no prompts")
    return finished(draft, reading.names)


class _Prompts:
    """A list of prompts while it is read: first who is in it, then a shot a line."""

    def __init__(self, text: str) -> None:
        self.names, self.draft = Names(text), TextDraft("list of prompts", shots=True)
        self.captions: list[str] = []
        self.others: list[str] = []
        self.general = ""

    def take(self, line: str) -> None:
        """Take a line in."""
        body, _, caption = line.partition("#")
        label = LABEL.match(plain_marks(line))
        kind = label_kind(label["label"]) if label is not None else None
        found = _NAMED.match(body.strip())
        if not body.strip() or (found is None and kind in ("aside", "title", "camera")):
            self.others.append(line)
            self.draft.title = label["said"] if label is not None and kind == "title" else self.draft.title
            return
        self.captions += [caption] if caption.strip() else []
        who = [bare(one) for one in _INSIDE.findall(found["who"])] if found is not None else []
        who = [part for one in who for part in re.split(r"\s+(?:and|&)\s+|\s*[,&]\s*", one) if part.upper() != "NC"]
        rest = _QUALITY.sub("", found["rest"] if found is not None else body).strip(" ;,:")
        if not (self._introduces(who, rest, caption) or self._is_general(found is not None, rest, caption)):
            self._shot(who, rest or caption)

    def _introduces(self, who: list[str], rest: str, caption: str) -> bool:
        """Return whether a line at the head describes a character, who is known from now on."""
        opens = len(who) == 1 and not self.draft.passages and _LOOK.match(rest) is not None and not caption
        if opens and self.names.known(who[0]) is None:
            self.names.add(who[0], rest)
            return True
        return False

    def _is_general(self, named: bool, rest: str, caption: str) -> bool:
        """Return whether a line says whom all prompts are about."""
        begun = self.draft.passages or self.names.cast or self.general
        if named or caption or begun or _LOOK.match(rest) is None:
            return False
        self.general = rest
        return True

    def _shot(self, who: list[str], rest: str) -> None:
        doers = [name for one in who if (name := self.names.add(one))]
        inside = [name for one in _INSIDE.findall(rest) if one.upper() != "NC" and (name := self.names.add(one))]
        told = _INSIDE.sub(lambda inner: self.names.known(inner[1]) or "", rest)
        self.draft.passages.append(
            Passage(prompt_sentence(told, doers), characters=list(dict.fromkeys([*doers, *inside])))
        )


def _with_general(general: str, draft: TextDraft) -> None:
    """Give prompts that name nobody the one whom the list is about."""
    who = re.split(r",|\b(?:wearing|with|in)\b", general)[0].strip()
    who = re.sub(r"^an?\s+", "the ", who, flags=re.IGNORECASE)
    for one in draft.passages:
        first = one.text.split(maxsplit=1)[0].lower() if one.text else ""
        if not one.characters and first not in ("a", "an", "the", "in", "on", "at"):
            one.text = sentence(f"{who} {one.text[:1].lower()}{one.text[1:]}")


def prompt_sentence(text: str, who: Sequence[str]) -> str:
    """Return a prompt as a sentence with its people as the subject."""
    plain = " ".join(text.split()).strip(" ,;:")
    several = " and ".join(who)
    if not who:
        return sentence(plain)
    first = plain.split(maxsplit=1)[0].lower() if plain else ""
    if first.endswith("ing") or first in (
        "in",
        "on",
        "at",
        "under",
        "by",
        "near",
        "with",
        "behind",
        "happy",
        "sad",
        "angry",
    ):
        return sentence(f"{several} {'are' if len(who) > 1 else 'is'} {plain}")
    if first in ("a", "an", "the"):
        return sentence(f"{several}, {plain}")
    if len(who) == 1 and first and not first.endswith("s") and first.isalpha() and not first.endswith("ed"):
        plain = f"{_third(first)}{plain[len(first) :]}"
    return sentence(f"{several} {plain}")


def _third(verb: str) -> str:
    if verb in ("have", "do", "go", "be"):
        return {"have": "has", "do": "does", "go": "goes", "be": "is"}[verb]
    if re.search(r"(?:s|x|z|ch|sh|o)$", verb):
        return f"{verb}es"
    return f"{verb[:-1]}ies" if re.search(r"[^aeiou]y$", verb) else f"{verb}s"


def _listed(text: str) -> dict[str, list[str]]:
    """Return subject, style and settings where each is a label with what stands below it."""
    found: dict[str, list[str]] = {}
    key = ""
    for line in text.split("\n"):
        told = re.match(r"^[ \t-]*(subject|style|settings|prompts|concept_tokens?)\s*:\s*(.*)$", line, re.IGNORECASE)
        if told is not None:
            key = told[1].lower()
            found.setdefault(key, []).extend([told[2].strip(" '\"")] if told[2].strip() else [])
        elif key and line.strip():
            found[key].append(re.sub(r"^\s*(?:[-*]|\d+[.)])\s+", "", line).strip(" '\""))
    return found


def _consistory(text: str) -> TextDraft:
    """Return the settings of a call of ConsiStory's command line, a shot each."""
    names, draft = Names(text), TextDraft("list of prompts", shots=True)
    try:
        parts = shlex.split(text.replace("\\\n", " "))
    except ValueError:
        parts = text.split()
    options: dict[str, list[str]] = _listed(text) if "--settings" not in text else {}
    option = ""
    for part in parts if not options else ():
        if part.startswith("--"):
            option = part.lstrip("-").partition("=")[0]
            options[option] = [part.partition("=")[2]] if "=" in part else []
        elif option:
            options[option].append(part)
    subject = " ".join(options.get("subject", ["somebody"]))
    style = " ".join(options.get("style", []))
    for number, setting in enumerate(options.get("settings", []), 1):
        who = subject if number == 1 else re.sub(r"^an?\s+", "the ", subject)
        draft.passages.append(
            Passage(prompt_sentence(setting, [who]).replace(" , ", ", "), prompt=f"{style} {subject} {setting}".strip())
        )
    draft.leave("the style", [style], "it is --style's")
    return finished(draft, names)
