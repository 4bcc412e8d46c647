"""The pages of a study: one self-contained file a participant, which holds what is shown and nothing else."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from katha.app.reports.page import jpeg_uri, write_page
from katha.configs import load_config
from katha.eval_bridge.bench.boards import JudgedBoard
from katha.eval_bridge.packets.packets import clean_image
from katha.eval_bridge.people.study import PAGES, Screen, ShownBoard, StudyItem, StudyPage
from katha.experiments.people import Packed

_SECONDS_AN_ITEM, _SECONDS_A_SCREEN = 9, 15
_LETTERS = "AB"
_TITLES = {"none": "Guess", "text": "A story", "image": "A storyboard", "text+image": "A story and its storyboard"}
Json = dict[str, object]


class RaterPage(NamedTuple):
    """What a page's template shows; `data` is the JSON that its script reads."""

    title: str
    consent: list[str]
    groups: tuple[str, ...]
    steps: int
    data: str


def write_rater_pages(packed: Packed, out: Path) -> list[Path]:
    """Write `out/pages/NAME.html` for every participant, and return the files."""
    return [
        write_page(out / PAGES / f"{page.page}.html", "rater.html.j2", page=_page(packed, page))
        for page in packed.study.pages
    ]


def _page(packed: Packed, page: StudyPage) -> RaterPage:
    study, pictures = packed.study, _Pictures(packed)
    screens = [_screen(packed, screen, pictures) for screen in page.screens]
    items = sum(1 for _ in page.items())
    seconds = _SECONDS_AN_ITEM * items + _SECONDS_A_SCREEN * len(page.screens)
    # The text may be anybody's: only the one word is replaced.
    consent = study.consent.replace("{minutes}", str(max(5, 5 * round(seconds / 300))))
    data = {
        "study": study.study,
        "page": page.page,
        "groups": study.groups,
        "screens": screens,
        "pictures": pictures.uris,
    }
    return RaterPage(
        title=study.title,
        consent=[" ".join(part.split()) for part in consent.split("\n\n") if part.strip()],
        groups=study.groups,
        steps=sum(len(screen.items) if screen.task == "questions" else 1 for screen in page.screens),
        # Inside a script element only an angle bracket could end it.
        data=json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _screen(packed: Packed, screen: Screen, pictures: _Pictures) -> Json:
    words = {**load_config("people.yaml")["told"], "review": load_config("review.yaml")["told"]}
    several = len(screen.boards) > 1
    word = "Picture" if screen.task == "pictures" else "Storyboard"
    boards = [
        {"label": f"{word} {_LETTERS[at]}" if several else "", "pictures": pictures.of(screen.story_id, board)}
        for at, board in enumerate(screen.boards)
    ]
    told = (
        words[screen.condition]
        if screen.task == "questions"
        else words["pairs" if screen.task == "bridge" else screen.task]
    )
    return {
        "title": f"Two {word.lower()}s" if several else _TITLES[screen.condition],
        "told": told,
        "single": screen.task == "questions",
        "text": packed.records[screen.story_id].story_text if "text" in screen.condition else "",
        "boards": boards,
        "items": [_item(item) for item in screen.items],
    }


def _item(item: StudyItem) -> Json:
    """Return what is shown of an item: the rest of it is the key."""
    return {"id": item.item, "kind": item.kind, "text": item.text, "options": item.options}


class _Pictures:
    """The pictures of one page, each once, under names that say nothing."""

    def __init__(self, packed: Packed) -> None:
        self._boards: Mapping[str, Mapping[str, JudgedBoard]] = packed.boards
        self._named: dict[str, str] = {}
        self.uris: dict[str, str] = {}

    def of(self, story: str, shown: ShownBoard) -> list[str]:
        """Return the names of a board's pictures in order, without inserted ones where it is shown without them."""
        board = self._boards[shown.method][story]
        frames = [frame for frame in board.frames if shown.part == "whole" or frame.kind == "scene"]
        frames = [frame for frame in frames if shown.scene is None or frame.scene == shown.scene]
        return [self._name(frame.data, frame.path) for frame in frames]

    def _name(self, data: bytes, path: Path) -> str:
        from PIL import Image

        clean = clean_image(data, path.name)
        if clean.sha256 not in self._named:
            name = f"p{len(self.uris) + 1}"
            with Image.open(io.BytesIO(clean.png)) as picture:
                self.uris[name] = jpeg_uri(picture.convert("RGB"))
            self._named[clean.sha256] = name
        return self._named[clean.sha256]
