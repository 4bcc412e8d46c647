"""A study as records: what each person is asked (`study.json`, the key that stays with the researcher), what a page may
show of it, and the file that a person hands back.

A page holds nothing but what is shown: no method's name, no file's name, no accepted answer, no story's text beside
pictures that are to be judged alone. What an item is about is told by its number alone, in the key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from katha.schema import Condition
from katha.store import State, StoreKind

Task = Literal["questions", "rating", "pairs", "bridge", "scores", "vistory", "vinabench", "pictures", "review"]
ON_REQUEST: tuple[Task, ...] = ("vistory", "vinabench", "pictures")
"""Tasks of other papers, asked only where they are named."""
Design = Literal["between", "within"]
ItemKind = Literal["choice", "scale", "preference", "ranking", "note"]
Part = Literal["whole", "without"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class ShownBoard(_Frozen):
    """One board on a screen: whose it is, and whether it is shown whole or without its inserted frames; or the picture
    of one scene of it."""

    method: str
    part: Part = "whole"
    scene: int | None = Field(default=None, exclude_if=lambda value: value is None)


class StudyItem(_Frozen):
    """One thing asked. What follows `options` is the key, which no page holds.

    `options` as they are shown; a preference's and a scale's from the left or lowest. `expected`: what an attention
    check asks for, which is not a judgment. `repeats`: the item that is asked again, which is not a judgment either.
    """

    item: str
    kind: ItemKind
    text: str
    options: tuple[str, ...]
    question_id: str | None = None
    criterion: str | None = None
    expected: str | None = None
    repeats: str | None = None


class Screen(_Frozen):
    """One board, or two side by side, with what is asked about them; the first board is on the left.

    `favoured`: of a preference, the method (or part) that positive scores are for.
    """

    task: Task
    story_id: str
    condition: Condition
    boards: tuple[ShownBoard, ...]
    items: tuple[StudyItem, ...]
    favoured: ShownBoard | None = None


class StudyPage(_Frozen):
    """What one person is asked, in order; `page` is also the file's name."""

    page: str
    screens: tuple[Screen, ...]

    def items(self) -> Iterator[tuple[Screen, StudyItem]]:
        """Yield every item with its screen."""
        for screen in self.screens:
            for item in screen.items:
                yield screen, item


class Rules(_Frozen):
    """Who is left out (Sec. F.1); fixed when the study is made."""

    failed_checks: int = Field(default=0, ge=0)
    """More failed attention checks than these exclude a rater."""
    min_seconds: float = Field(default=1.5, ge=0)
    """A median time an item below this is unrealistic."""
    inconsistent: float = Field(default=0.5, ge=0, le=1)
    """A larger share of repeated items that are answered otherwise excludes a rater, from two repeats on."""
    min_answered: float = Field(default=0.5, ge=0, le=1)
    """A smaller share of items answered excludes a rater."""


class Study(State):
    """`study.json`: the pages with their key. `identity` is the hash of everything that a page is made from."""

    format: Literal[1] = 1
    identity_sha256: str
    study: str
    title: str
    design: Design
    tasks: tuple[Task, ...]
    per_item: int
    seed: int
    methods: Mapping[str, str]
    rules: Rules
    groups: tuple[str, ...] = ()
    guesses: bool = False
    """Whether questions are asked without evidence, too; studies from before this field asked none."""
    consent: str
    pages: tuple[StudyPage, ...] = ()
    notes: tuple[str, ...] = ()

    def identity(self) -> Mapping[str, object]:
        """Return the hash by the words for a difference."""
        return {"other stories, boards or settings": self.identity_sha256}


STUDY = StoreKind("study with people", "study.json", Study)
PAGES = "pages"
"""The folder of a study that holds what participants get, and nothing else."""


class GivenAnswer(_Frozen):
    """One answer as a page keeps it: an option's text, its place in a scale from 0, or a list of labels."""

    item: str
    value: str | int | tuple[str, ...]
    ms: float = Field(ge=0, default=0)


class AnswerFile(_Frozen):
    """What a page saves. `rater` is a random code; `saved` is later in a file that was saved later."""

    format: Literal[1]
    study: str
    page: str
    rater: str
    group: str | None = None
    consent: str
    saved: str
    finished: str | None = None
    answers: tuple[GivenAnswer, ...]
