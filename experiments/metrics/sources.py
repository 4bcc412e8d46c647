"""Where boards come from: a folder with a folder a story, a run, an evaluation, a comparison, an ablation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from katha.errors import InputFileError, UsageError
from katha.eval_bridge.bench.boards import (
    BoardProblem,
    JudgedFrame,
    MethodBoards,
    parse_boards,
    read_board,
    tell_orders,
)
from katha.eval_bridge.matching.match import usual_rule
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.experiments.ablate.job import AblationFolder, AblationState, StoryResult
from katha.experiments.evaluation.eval_folder import EvalFolder, EvalState
from katha.experiments.runner import read_kept, read_records
from katha.jsonio import digest, read_json, read_record, sha256_hex
from katha.pictures import ENDINGS, read_picture
from katha.schema import Answer, Board, Plan, StoryRecord
from katha.schema.narratives import Narrative


@dataclass(frozen=True)
class Beside:
    """What lies beside the boards: gold pictures, pictures of characters, VinaBench's annotations."""

    references: Path | None = None
    characters: Path | None = None
    narratives: Mapping[str, Narrative] = field(default_factory=dict)

    def gold(self, record: StoryRecord) -> tuple[bytes, ...]:
        """Return the story's gold pictures, scene by scene; none where there are none that can be used."""
        if self.references is None:
            return ()
        try:
            board = read_board(MethodBoards("references", self.references), record, checked=False)
        except BoardProblem:
            return ()
        return tuple(frame.data for frame in board.frames if frame.kind == "scene")

    def people(self, record: StoryRecord) -> dict[str, tuple[bytes, ...]]:
        """Return pictures by character: `CHARACTERS/STORY/NAME.png`, or several in a folder `NAME`."""
        folder = self.characters / record.story_id if self.characters is not None else None
        if folder is None or not folder.is_dir():
            return {}
        found: dict[str, tuple[bytes, ...]] = {}
        for place in sorted(folder.iterdir()):
            paths = sorted(place.iterdir()) if place.is_dir() else [place]
            pictures = [read_picture(path, repr(str(path))) for path in paths if path.suffix.lower() in ENDINGS]
            if pictures:
                found[place.name if place.is_dir() else place.stem] = tuple(pictures)
        return found


@dataclass(frozen=True)
class BoardPlace:
    """One board that can be read: whose, of which story, and what its files are (to know whether it changed)."""

    method: str
    record: StoryRecord
    read: Callable[[], MetricBoard]
    mark: str


@dataclass(frozen=True)
class BoardSource:
    """The boards of one place, and where judges have answered about them: rows, and the rule that reads them."""

    name: str
    boards: tuple[BoardPlace, ...]
    answers: Callable[[], Iterator[Answer]] | None = None
    matching: str = field(default_factory=usual_rule)
    verdicts: Path | None = None


def find_sources(
    given: Sequence[str],
    stories: Sequence[StoryRecord] | None,
    beside: Beside,
    order: str | None = None,
    tell: Callable[[str], None] | None = None,
) -> list[BoardSource]:
    """Return the boards that `DIR` or `NAME=DIR` name.

    stories: what the boards of a plain folder are of; the others bring their own, of which these are the ones taken.
    order: what the names of a plain folder's pictures are ordered by; tell: hears in which order they are taken.

    Raises:
        UsageError: no board, a plain folder without stories, a method twice. InputFileError: a file is broken.
    """
    wanted = {record.story_id for record in stories} if stories is not None else None
    folders = [Path(value if Path(value).exists() else value.rpartition("=")[2]) for value in given]
    kinds = [_kind(folder) for folder in folders]
    plain = [value for value, kind in zip(given, kinds, strict=True) if kind is None]
    if order is not None and not plain:
        raise UsageError("--order is of pictures in plain folders; runs and studies say theirs.", hint="Leave it out.")
    known = zip(folders, kinds, strict=True)
    sources = [_KINDS[kind](folder, wanted, beside) for folder, kind in known if kind is not None]
    if plain:
        sources += _plain(plain, stories, beside, order, tell)
    names = Counter((item.method, item.record.story_id) for source in sources for item in source.boards)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"Two boards of the story {twice[1]!r} are of a method {twice[0]!r}.", hint="Give NAME=DIR.")
    if not names:
        raise UsageError("There is no board to measure.", hint="Give the folder of boards, a run, or a comparison.")
    return sources


def _kind(folder: Path) -> str | None:
    """Return the file by which a folder is known as a run, an evaluation, a comparison or an ablation."""
    return next((name for name in _KINDS if (folder / name).is_file()), None)


def _plain(
    values: Sequence[str],
    stories: Sequence[StoryRecord] | None,
    beside: Beside,
    order: str | None,
    tell: Callable[[str], None] | None,
) -> list[BoardSource]:
    methods = parse_boards(values, order=order)
    if stories is None:
        raise UsageError(
            f"{values[0]!r} is a folder of pictures, and nobody says of which stories.", hint="Give --stories FILE."
        )
    if tell is not None:
        tell_orders(methods, stories, tell)
    return [
        BoardSource(method.name, tuple(_place(method, record, beside) for record in stories if _there(method, record)))
        for method in methods
    ]


def _there(method: MethodBoards, record: StoryRecord) -> bool:
    return method.place(record.story_id).is_dir()


def _place(method: MethodBoards, record: StoryRecord, beside: Beside) -> BoardPlace:
    asked = [] if method.order is None else [{"order": method.order}]
    mark = digest([str(method.folder.resolve()), [list(row) for row in method.files(record.story_id)], *asked])
    return BoardPlace(method.name, record, partial(_read, method, record, beside), mark)


def _read(method: MethodBoards, record: StoryRecord, beside: Beside) -> MetricBoard:
    board = read_board(method, record)
    plan = read_kept(method.place(record.story_id) / "plan.json", Plan)
    return _board(method.name, record, board.frames, plan, beside)


def _board(
    method: str, record: StoryRecord, frames: Sequence[JudgedFrame], plan: Plan | None, beside: Beside
) -> MetricBoard:
    return MetricBoard(
        method=method,
        record=record,
        frames=tuple(frames),
        plan=plan,
        references=beside.gold(record),
        characters=beside.people(record),
        narrative=beside.narratives.get(record.story_id),
    )


def _evaluation(folder: Path, wanted: set[str] | None, beside: Beside, whole: Path | None = None) -> BoardSource:
    """Return the boards that an evaluation judged; those of the comparison in `whole` are found where it lies now."""
    state = read_record(folder / "eval.json", EvalState)
    place = EvalFolder(folder)
    records = _chosen(read_records(place.stories, StoryRecord), wanted)
    folders = {name: Path(at) for name, at in state.boards.items()}
    if whole is not None:
        folders = {name: whole.joinpath(*at.parts[-3:]) for name, at in folders.items()}
    methods = [MethodBoards(name, at, state.config.order) for name, at in folders.items()]
    boards = [_place(method, record, beside) for method in methods for record in records if _there(method, record)]
    return BoardSource(folder.name, tuple(boards), place.rows, state.config.matching, place.verdicts)


def _comparison(folder: Path, wanted: set[str] | None, beside: Beside) -> BoardSource:
    """Return the boards of a comparison with the plans that they were drawn from."""
    judged = folder / "judging"
    if not (judged / "eval.json").is_file():
        raise InputFileError(f"The comparison in {str(folder)!r} has not come to its end.", hint="Finish it first.")
    made = _evaluation(judged, wanted, beside, folder)
    plans = {path.parent.name: path.parent for path in (folder / "plans").glob("*/*.json")}

    def read(place: BoardPlace) -> MetricBoard:
        board = place.read()
        kept = [read_kept(at / f"{board.story_id}.json", Plan) for at in plans.values()] if not board.plan else []
        found = [plan for plan in kept if plan is not None]
        return board if len(found) != 1 else _board(board.method, board.record, board.frames, found[0], beside)

    boards = tuple(BoardPlace(one.method, one.record, partial(read, one), one.mark) for one in made.boards)
    return BoardSource(folder.name, boards, made.answers, made.matching, made.verdicts)


def _ablation(folder: Path, wanted: set[str] | None, beside: Beside) -> BoardSource:
    place = AblationFolder(folder)
    state = read_record(place.state_file, AblationState)
    boards = []
    for story_id in state.stories:
        result = read_kept(place.story(story_id) / "result.json", StoryResult)
        records = _chosen(place.prepared(story_id), wanted)
        for item in result.boards if result is not None and records else ():
            read = partial(_drawn, folder, item.method, records[0], item.board, beside)
            boards.append(BoardPlace(item.method, records[0], read, digest(item.board.model_dump(mode="json"))))
    matching = str(state.config.get("matching", usual_rule()))
    return BoardSource(
        folder.name, tuple(boards), lambda: iter(read_records(folder / "answers.jsonl", Answer)), matching
    )


def _run(folder: Path, wanted: set[str] | None, beside: Beside) -> BoardSource:
    from_run = read_json(folder / "run.json")
    records = _chosen(read_records(folder / "story.jsonl", StoryRecord), wanted)
    board = read_kept(folder / "storyboard.json", Board)
    if board is None:
        raise InputFileError(f"The run in {str(folder)!r} has no storyboard.", hint="Give the same command again.")
    plan = read_kept(folder / "plan.json", Plan)
    config = from_run.get("config") if isinstance(from_run, dict) else None
    matching = str(config.get("matching", usual_rule())) if isinstance(config, dict) else usual_rule()
    boards = [
        BoardPlace(
            board.method,
            record,
            partial(_drawn, folder, board.method, record, board, beside, plan),
            digest(board.model_dump(mode="json")),
        )
        for record in records
    ]
    return BoardSource(
        folder.name, tuple(boards), lambda: iter(read_records(folder / "answers.jsonl", Answer)), matching
    )


def _drawn(
    folder: Path, method: str, record: StoryRecord, board: Board, beside: Beside, plan: Plan | None = None
) -> MetricBoard:
    """Return a board that katha drew: its pictures are named by their contents.

    Raises:
        BoardProblem: a picture is missing or is another one.
    """
    frames = []
    for frame in board.frames:
        path = folder / "panels" / f"{frame.sha256}.png"
        if not frame.sha256.isalnum():
            raise BoardProblem(f"frame {frame.index} has no name of a picture")
        try:
            data = read_picture(path, f"frame {frame.index} ({path.name})")
        except InputFileError as error:
            raise BoardProblem(error.message.rstrip(".")) from error
        if sha256_hex(data) != frame.sha256:
            raise BoardProblem(f"frame {frame.index} ({path.name}) is not the picture that was drawn")
        frames.append(JudgedFrame(data, frame.kind, frame.scene, path))
    return _board(method, record, frames, plan, beside)


def _chosen(records: Sequence[StoryRecord], wanted: set[str] | None) -> list[StoryRecord]:
    return [record for record in records if wanted is None or record.story_id in wanted]


_KINDS: Mapping[str, Callable[[Path, set[str] | None, Beside], BoardSource]] = {
    "ablation.json": _ablation,
    "compare.json": _comparison,
    "eval.json": _evaluation,
    "run.json": _run,
}
"""What a folder is, by the file that every folder of its kind has."""
