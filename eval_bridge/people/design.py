"""Who is asked what, in which order: balanced and random by seed (Secs. F.1 and H.1, Table 49).

A page goes from the least evidence to the most, over all its stories: questions that have to be guessed without any,
questions about pictures alone, ratings, pairs and bridges, then questions about texts, then about both, then ratings
beside the text. So no text is read before the pictures have been judged, and no picture is seen before the guesses.
`between`: a person meets each story under one condition only, and rates or compares only stories whose text was not
asked about. `within`: everybody meets each story under every condition, in that order; for few people.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from katha.configs import load_config
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.people.preferences import criteria
from katha.eval_bridge.people.study import Design, Screen, ShownBoard, StudyItem, StudyPage, Task
from katha.schema import MORAL_LABELS, Condition, Question, StoryRecord

_PHASES: Mapping[tuple[Task, Condition], int] = {
    ("questions", "none"): 0,
    ("questions", "image"): 1,
    ("rating", "image"): 2,
    ("pairs", "image"): 3,
    ("bridge", "image"): 3,
    ("questions", "text"): 4,
    ("questions", "text+image"): 5,
    ("scores", "text+image"): 6,
    ("vistory", "text+image"): 6,
    ("vinabench", "text+image"): 6,
    ("pictures", "text+image"): 6,
}
_RATED = 3
"""Ratings and preferences are one stretch, which ends with this phase."""
_APART = 2
"""A repeated item comes at least so many screens after the first time."""


@dataclass(frozen=True)
class Cell:
    """One thing to be judged by several people: a task about a story under a condition, with these boards."""

    task: Task
    story_id: str
    condition: Condition
    boards: tuple[ShownBoard, ...] = ()

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what is balanced over a person's stories."""
        return (self.task, self.condition, self.boards)


@dataclass(frozen=True)
class Material:
    """What there is to judge: stories with the questions that are asked and their options; by method, which stories it
    has boards of, which of those hold an inserted frame, and the scenes of each. guesses: whether
    questions are asked without evidence, too."""

    records: Sequence[StoryRecord]
    boards: Mapping[str, frozenset[str]]
    bridged: Mapping[str, frozenset[str]]
    guesses: bool = True
    scenes: Mapping[str, Mapping[str, frozenset[int]]] = field(default_factory=dict)

    def cells(self, task: Task) -> list[Cell]:
        """Return what a task asks about, story by story."""
        found: list[Cell] = []
        for record in self.records:
            story = record.story_id
            methods = [name for name, has in self.boards.items() if story in has]
            if task == "questions" and methods and record.recoverability_questions:
                found += [Cell(task, story, "none")] if self.guesses else []
                found.append(Cell(task, story, "text"))
                found += [Cell(task, story, "image", (ShownBoard(method=name),)) for name in methods]
                found += [Cell(task, story, "text+image", (ShownBoard(method=name),)) for name in methods]
            elif task in ("rating", "scores", "vistory", "vinabench"):
                under: Condition = "image" if task == "rating" else "text+image"
                found += [Cell(task, story, under, (ShownBoard(method=name),)) for name in methods]
            elif task == "pairs":
                pairs = combinations(methods, 2)
                found += [Cell(task, story, "image", (ShownBoard(method=a), ShownBoard(method=b))) for a, b in pairs]
            elif task == "pictures":
                found += [
                    Cell(
                        task,
                        story,
                        "text+image",
                        (ShownBoard(method=a, scene=scene), ShownBoard(method=b, scene=scene)),
                    )
                    for a, b in combinations(methods, 2)
                    for scene in sorted(self._scenes(a, story) & self._scenes(b, story))
                ]
            elif task == "bridge":
                own = [name for name in methods if story in self.bridged[name]]
                found += [
                    Cell(task, story, "image", (ShownBoard(method=name), ShownBoard(method=name, part="without")))
                    for name in own
                ]
        return found

    def _scenes(self, method: str, story: str) -> frozenset[int]:
        return self.scenes.get(method, {}).get(story, frozenset())


@dataclass
class _Person:
    """What one page has been given so far."""

    cells: list[Cell] = field(default_factory=list)
    load: int = 0

    def on(self, story: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.story_id == story]

    def may(self, cell: Cell, design: Design) -> bool:
        """Return whether the cell can be judged by a person who was given these."""
        own = self.on(cell.story_id)
        same = [other for other in own if other.task == cell.task]
        if cell in own:
            return False
        if cell.task == "questions":
            methods = {board.method for other in same for board in other.boards}
            one_board = not cell.boards or not methods or cell.boards[0].method in methods
            alike = any(other.condition == cell.condition for other in same)
            return one_board and not alike if design == "within" else not own
        if design == "within":
            return True
        if any(other.task == "questions" and "text" in other.condition for other in own) and cell.condition == "image":
            return False
        return cell.task in ("pairs", "bridge", "pictures") or not same


@dataclass(frozen=True)
class StudyPlan:
    """How a study is laid out. criteria: the names of Table 51's that are asked. words: `configs/people.yaml`."""

    design: Design
    tasks: Sequence[Task]
    people: int
    per_item: int
    criteria: Sequence[str]
    checks: int
    repeats: int
    moral: bool
    seed: int

    def pages(self, material: Material) -> tuple[list[StudyPage], list[str]]:
        """Return a page for each person, and what has to be said about the balance."""
        people, notes = self._assigned(material)
        width = max(2, len(str(self.people)))
        pages = []
        for number, person in enumerate(people, 1):
            draw = random.Random(f"{self.seed}:page:{number}")
            name = f"rater-{number:0{width}}"
            pages.append(StudyPage(page=name, screens=tuple(_Drawn(self, material, draw).screens(person.cells))))
        short = sum(
            sum(item.repeats is not None for _, item in page.items()) < self.repeats
            or sum(item.expected is not None for _, item in page.items()) < self.checks
            for page in pages
        )
        if short:
            notes.append(f"{short} pages show too little for all attention checks and repeated items.")
        return pages, notes

    def _assigned(self, material: Material) -> tuple[list[_Person], list[str]]:
        """Give every cell to so many people: those who have least of its kind, then least at all, then by lot."""
        draw = random.Random(f"{self.seed}:assign")
        people, notes = [_Person() for _ in range(self.people)], []
        for task in self.tasks:
            cells = material.cells(task)
            given: Counter[Cell] = Counter()
            for turn in range(self.per_item):
                order = list(cells)
                draw.shuffle(order)
                order.sort(key=lambda cell: cell.condition == "text+image")  # who saw the pictures sees them again
                for cell in order:
                    able = [person for person in people if person.may(cell, self.design)]
                    if able and given[cell] == turn:
                        chosen = min(able, key=lambda person: (*_taken(person, cell), draw.random()))
                        chosen.cells.append(cell)
                        chosen.load += 1
                        given[cell] += 1
            short = [cell for cell in cells if given[cell] < self.per_item]
            if short:
                least = min(given[cell] for cell in cells)
                notes.append(
                    f"{task}: {len(short)} of {len(cells)} get fewer than {self.per_item} judgments (at least "
                    f"{least}): more raters give more."
                )
        return people, notes


def _taken(person: _Person, cell: Cell) -> tuple[bool, int, int]:
    """Return how little a person is the one for a cell: others have seen its pictures, it has many of its kind, or
    many."""
    own = [other for other in person.on(cell.story_id) if other.task == cell.task == "questions" and other.boards]
    stranger = cell.condition == "text+image" and not any(other.boards == cell.boards for other in own)
    return stranger, sum(other.kind == cell.kind for other in person.cells), person.load


def needed(material: Material) -> int:
    """Return how many people a `between` study needs so that each question is asked under every condition once."""
    counts = Counter(cell.story_id for cell in material.cells("questions"))
    return max(counts.values(), default=0)


@dataclass
class _Drawn:
    """Makes the screens of one page; items are numbered as they are made."""

    plan: StudyPlan
    material: Material
    draw: random.Random
    made: int = 0

    def screens(self, cells: Iterable[Cell]) -> list[Screen]:
        """Return the screens in order: phases in turn, stories in random order within each."""
        records = {record.story_id: record for record in self.material.records}
        phases: dict[int, list[Screen]] = {}
        ordered = sorted(cells, key=lambda cell: (cell.story_id, str(cell.kind)))
        self.draw.shuffle(ordered)
        for cell in sorted(ordered, key=_phase):
            screen = self._screen(cell, records[cell.story_id])
            if screen.items:
                phases.setdefault(_phase(cell), []).append(screen)
        self._repeat(phases)
        flat = [screen for _, screens in sorted(phases.items()) for screen in screens]
        return self._checked(flat)

    def _screen(self, cell: Cell, record: StoryRecord) -> Screen:
        boards, favoured = list(cell.boards), None
        if cell.task in ("pairs", "bridge", "pictures"):
            favoured = boards[0]
            self.draw.shuffle(boards)
        make: Mapping[Task, Callable[[], list[StudyItem]]] = {
            "questions": lambda: self._questions(cell, record),
            "rating": lambda: [*self._scales(cell), *self._ratings("rating")],
            "pairs": lambda: self._preferences("pairs"),
            "bridge": lambda: self._preferences("bridge"),
            "scores": lambda: self._ratings("scores"),
            "vistory": lambda: self._ratings("vistory"),
            "vinabench": lambda: self._ratings("vinabench"),
            "pictures": lambda: [self._picture(cell, record)],
        }
        return Screen(
            task=cell.task,
            story_id=cell.story_id,
            condition=cell.condition,
            boards=tuple(boards),
            items=tuple(make[cell.task]()),
            favoured=favoured,
        )

    def _number(self) -> str:
        self.made += 1
        return f"i{self.made:04}"

    def _questions(self, cell: Cell, record: StoryRecord) -> list[StudyItem]:
        asked = [item for item in record.recoverability_questions if item.options]
        self.draw.shuffle(asked)
        items = [self._choice(question, cell.condition) for question in asked]
        if self.plan.moral and cell.condition == "image" and record.moral_label in MORAL_LABELS:
            labels = tuple(label.replace("_", " ") for label in MORAL_LABELS)
            items.append(StudyItem(item=self._number(), kind="ranking", text=_words()["moral"], options=labels))
        return items

    def _choice(self, question: Question, condition: Condition) -> StudyItem:
        """Return a question with its options; who has to guess gets no `Unclear`."""
        options = [option for option in question.options or () if option != UNCLEAR]
        self.draw.shuffle(options)
        return StudyItem(
            item=self._number(),
            kind="choice",
            text=question.question,
            options=tuple(options) if condition == "none" else (*options, UNCLEAR),
            question_id=question.question_id,
        )

    def _scales(self, cell: Cell) -> list[StudyItem]:
        bridged = cell.story_id in self.material.bridged[cell.boards[0].method]
        return [
            self._scale(name, text, "criterion") for name, text in self._criteria("rating") if name != "Q14" or bridged
        ]

    def _criteria(self, task: str) -> list[tuple[str, str]]:
        known = [item for item in criteria() if task in item.tasks and item.name in self.plan.criteria]
        self.draw.shuffle(known)
        return [(item.name, item.question) for item in sorted(known, key=lambda item: item.name == "Q15")]

    def _ratings(self, task: str) -> list[StudyItem]:
        return [
            self._scale(row["name"], row["question"], row["scale"])
            for row in _words()["ratings"]
            if row["task"] == task
        ]

    def _scale(self, name: str, text: str, scale: str, repeats: str | None = None) -> StudyItem:
        options = tuple(_words()["scales"][scale])
        return StudyItem(item=self._number(), kind="scale", text=text, options=options, criterion=name, repeats=repeats)

    def _picture(self, cell: Cell, record: StoryRecord) -> StudyItem:
        """Return the question which of two pictures of a scene is better, with the scene's own words."""
        told = next((scene.scene_text for scene in record.scenes if scene.scene_index == cell.boards[0].scene), "")
        text = _words()["pictures"].format(scene=" ".join(told.split()))
        return StudyItem(
            item=self._number(), kind="preference", text=text, options=tuple(_words()["scales"]["pictures"])
        )

    def _preferences(self, task: str) -> list[StudyItem]:
        return [self._preference(name, text) for name, text in self._criteria(task)]

    def _preference(self, name: str, text: str, repeats: str | None = None) -> StudyItem:
        options = tuple(_words()["scales"]["preference"])
        return StudyItem(
            item=self._number(), kind="preference", text=text, options=options, criterion=name, repeats=repeats
        )

    def _repeat(self, phases: dict[int, list[Screen]]) -> None:
        """Ask something again at the end of its stretch, with options in another order or sides changed."""
        # Ratings and preferences are one stretch. Questions are repeated before more pictures of their story are seen.
        stretches: dict[int, list[tuple[int, Screen]]] = {}
        for phase, screens in sorted(phases.items()):
            end = max(phase, _RATED) if phase > _PHASES["questions", "image"] else phase
            stretches.setdefault(end, []).extend((phase, screen) for screen in screens)
        could = [
            (max(phase for phase, _ in stretch), screen)
            for stretch in stretches.values()
            for _, screen in stretch[:-_APART]
            if any(item.kind != "ranking" for item in screen.items)
        ]
        for phase, screen in self.draw.sample(could, min(self.plan.repeats, len(could))):
            item = self.draw.choice([item for item in screen.items if item.kind != "ranking"])
            again = item.model_copy(update={"item": self._number(), "repeats": item.item})
            if item.kind == "choice":
                options = [option for option in item.options if option != UNCLEAR]
                self.draw.shuffle(options)
                last = (UNCLEAR,) if UNCLEAR in item.options else ()
                again = again.model_copy(update={"options": (*options, *last)})
            boards = screen.boards[::-1] if item.kind == "preference" else screen.boards
            phases[phase].append(screen.model_copy(update={"items": (again,), "boards": boards}))

    def _checked(self, screens: list[Screen]) -> list[Screen]:
        """Put attention checks between the items of screens that are spread over the page."""
        could = [at for at, screen in enumerate(screens) if any(_can_check(item) for item in screen.items)]
        count = min(self.plan.checks, len(could))
        spread = [could[(2 * place + 1) * len(could) // (2 * count)] for place in range(count)]
        for at in spread:
            screen = screens[at]
            like = self.draw.choice([item for item in screen.items if _can_check(item)])
            expected = self.draw.choice([option for option in like.options if option != UNCLEAR])
            text = _words()["attention"].format(option=expected)
            asked = StudyItem(item=self._number(), kind=like.kind, text=text, options=like.options, expected=expected)
            items = list(screen.items)
            items.insert(self.draw.randrange(len(items) + 1), asked)
            screens[at] = screen.model_copy(update={"items": tuple(items)})
        return screens


def _can_check(item: StudyItem) -> bool:
    return item.kind in ("choice", "scale", "preference") and item.repeats is None and len(item.options) > 2


def _phase(cell: Cell) -> int:
    return _PHASES[cell.task, cell.condition]


def _words() -> Any:
    return load_config("people.yaml")
