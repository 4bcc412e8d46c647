"""Comics scripts: pages and panels, balloons, captions and sounds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from katha.intake.drafts import Passage, TextDraft, plain_marks, sentence, speech
from katha.intake.fields import CAMERA, NUMBER, finished, label_kind
from katha.intake.names import Names, looks_of, word_set, words
from katha.intake.prose import title_page
from katha.intake.screenplays import aged, is_cue, is_look

_PANEL = re.compile(
    rf"^\W*panels?\s+(?P<number>{NUMBER})\b\W*?(?:\([^)]*\))?\s*[:.\u2013\u2014-]*\s*(?P<rest>.*)$", re.IGNORECASE
)
_PAGE = re.compile(
    rf"^\W*(?:page|pages|spread|splash page)\s+(?:{NUMBER})\b.*$|^\W*{NUMBER}\s+panels?\W*$", re.IGNORECASE
)
_BALLOON = re.compile(
    r"^\s*(?:\d+[.)]?\s+)?(?P<who>[^\W\d_][\w .'\u2019#/&-]{0,30}?)\s*(?P<how>\([^()\n]*\))?\s*:\s*(?P<said>.*)$"
)


_BYLINE = re.compile(r"^(?:by|written by|art by|story by)\b", re.IGNORECASE)
_SHOT = re.compile(r"(?im)^[ \t*#\[(-]*(?:shot|frame|image|picture|clip|board|cut)\s*(?:no\.?|#)?\s*(?=\d+\b)")
_SEVERAL = re.compile(r"\s*(?:/|&|\+|\band\b)\s*", re.IGNORECASE)
_TITLE, _LONGEST_CUE = 100, 3


def looks_like_comic(text: str) -> bool:
    """Return whether a text has two panels or more by their numbers."""
    return sum(_PANEL.match(line) is not None for line in text.split("\n")) > 1


def looks_like_shot_lines(text: str) -> bool:
    """Return whether a text has two lines or more that begin with a shot's number: "Shot 1 - WS - A girl enters"."""
    return len(_SHOT.findall(text)) > 1


def read_shot_lines(text: str) -> TextDraft:
    """Return a list of numbered shots, one a line."""
    draft = read_comic(_SHOT.sub("Panel ", text))
    draft.kind = "shot list"
    return draft


def read_comic(text: str) -> TextDraft:
    """Return a comics script: a shot a panel; captions tell, sounds are left out."""
    front, body = title_page(text)
    reading = _Comic(Names(body), front.get("title", ""))
    lines = [line for line in body.split("\n") if line.strip()]
    _comic_names(lines, reading.names)
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        reading.take(plain_marks(line).strip(" #"), after)
    draft, heads = reading.draft, reading.heads
    title = next((one for one in heads if not _BYLINE.match(one)), "")
    draft.title = draft.title or (title.strip(' *_"') if len(title) < _TITLE else "")
    heads = [f"{key}: {said}" for key, said in front.items() if key != "title"] + [one for one in heads if one != title]
    draft.leave("lines before the first panel", heads, "they are about the script")
    draft.leave("sounds", reading.sounds, "no picture shows them")
    for one in draft.passages:
        present = (name for name in reading.names.cast if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", one.text))
        one.characters = list(present)
    return finished(draft, reading.names)


class _Comic:
    """A comics script while it is read, line by line."""

    def __init__(self, names: Names, title: str) -> None:
        self.names, self.draft = names, TextDraft("comics script", title, shots=True)
        self.sounds: list[str] = []
        self.heads: list[str] = []
        self._cue = ""

    def take(self, line: str, after: str) -> None:
        """Take a line in; `after` is the one below it."""
        panel, balloon = _PANEL.match(line), _BALLOON.match(line)
        cue, self._cue = self._cue, ""
        if panel is not None:
            self.draft.passages.append(Passage("", number=panel["number"], begins=True))
            _add_shown(panel["rest"], self.draft, self.names)
        elif _PAGE.match(line) or line.lower().strip(" .()[]") in word_set("unsaid"):
            return
        elif not self.draft.passages:
            self.heads.append(line)
        elif balloon is not None and _is_speaker(balloon["who"]):
            self._cue = "" if balloon["said"] else balloon["who"]
            _add_said(balloon["who"], balloon["how"] or "", balloon["said"], self.draft, self.names, self.sounds)
        elif is_cue(line) and after and not _PANEL.match(after.strip()) and len(line.split()) <= _LONGEST_CUE:
            self._cue = line
        elif cue:
            _add_said(re.sub(r"\([^)]*\)", "", cue), "", line, self.draft, self.names, self.sounds)
        else:
            _add_shown(line, self.draft, self.names)


def _is_speaker(who: str) -> bool:
    lower = " ".join(who.lower().split())
    known = lower in word_set("narrators") or lower in word_set("sounds")
    titled = all(part[:1].isupper() or not part[:1].isalpha() or part in ("and", "the") for part in who.split())
    return known or (len(who.split()) <= 4 and titled and label_kind(who) in (None, "characters", "narration"))


def _comic_names(lines: Sequence[str], names: Names) -> None:
    unseen = word_set("narrators") | word_set("sounds") | word_set("everyone")
    for line in lines:
        for name, look in looks_of(line):
            head = _PANEL.match(name) or _PAGE.match(name) or _BALLOON.match(line)
            if head is None and is_look(look) and len(name.split()) <= 3 and name.lower() not in unseen:
                names.add(name, look)
        balloon = _BALLOON.match(plain_marks(line))
        lower = balloon["who"].lower() if balloon is not None else ""
        head = _PANEL.match(line) or _PAGE.match(line)
        if balloon is not None and head is None and _is_speaker(balloon["who"]) and lower not in unseen:
            for part in _SEVERAL.split(balloon["who"]):
                names.add(part)


def _add_shown(text: str, draft: TextDraft, names: Names) -> None:
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z\"'(])", text.strip())
    kept = [CAMERA.sub("", part) for part in parts if CAMERA.sub("", part).strip()]
    told = " ".join(map(sentence, kept))
    told = aged(told, names)
    _add(names.told(told), draft)


def _add_said(who: str, how: str, said: str, draft: TextDraft, names: Names, sounds: list[str]) -> None:
    lower = " ".join(who.lower().split())
    if not said.strip():
        return
    if lower in word_set("sounds"):
        sounds.append(said)
    elif lower in word_set("narrators"):
        _add(sentence(said.strip(' "\u201c\u201d')), draft)
    else:
        several = [name for part in _SEVERAL.split(who) if (name := names.add(part))]
        person = "everyone" if lower in word_set("everyone") else " and ".join(dict.fromkeys(several))
        manner = how.strip("() ").lower()
        _add(speech(person or "somebody", said.strip('"\u201c\u201d '), manner), draft)
        if manner.endswith("ing") and manner not in words()["spoken"] and person and manner not in word_set("unsaid"):
            _add(sentence(f"{person} is {manner}"), draft)


def _add(told: str, draft: TextDraft) -> None:
    if told.strip() and draft.passages:
        draft.passages[-1].text = f"{draft.passages[-1].text} {told}".strip()
