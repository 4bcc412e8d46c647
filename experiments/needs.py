"""What run, ablate, compare and tune would draw and ask at most, counted without a key, a model or a call.

A plan that a model would write is not there yet, so stories are read by the rule planner to know their panels and
questions. What a judge would decide is not known either, so every repair that could be tried is counted. What the cache
holds is not looked for: it takes away from these numbers and never adds to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict

from katha.agents.context import (
    WRITER_TOKENS,
    judges_address,
    make_guide,
    make_planner,
    make_renderer,
    panel_count,
    prepare_story,
)
from katha.agents.fitting import require_fitting
from katha.compass.modes import Mode, Suite, SuiteRow, load_mode
from katha.config import Settings, require_chosen
from katha.errors import AbsentModelError, MissingExtraError, ModelError, UsageError
from katha.eval_bridge.judges.none import NOBODY
from katha.eval_bridge.judging.abilities import make_judges, price_of
from katha.eval_bridge.judging.budget import expected_cost, picture_tokens, portions, written_tokens
from katha.eval_bridge.packets.sizes import fitted
from katha.eval_bridge.questions.build import made_by_rule
from katha.eval_bridge.questions.free import EACH
from katha.eval_bridge.questions.halves import assign_roles
from katha.eval_bridge.questions.rows import MOST_QUESTION
from katha.experiments.ablate.job import drawn_by
from katha.experiments.comparison.methods import Method
from katha.models.client import keyless
from katha.models.registry import make_model
from katha.protocols import (
    Capabilities,
    Evidence,
    Judge,
    JudgePrompt,
    JudgeReply,
    Planner,
    Renderer,
    Span,
    can,
)
from katha.reading import story_reader
from katha.registry import default_registry, option_names
from katha.schema import DIMENSIONS, Plan, Question, StoryRecord

_ABSENT = (AbsentModelError, MissingExtraError, ModelError)
# As in `judging.budget`, so that plans and answers are priced alike.
_LETTERS_PER_TOKEN = 4
_INSTRUCTION_TOKENS = 150
_TOGETHER_TOKENS = 150
"""What the words around numbered questions are reckoned at, and each question's own with `_NUMBERED_TOKENS`."""
_NUMBERED_TOKENS = 30
_VERDICTS_TOKENS, _VERDICT_READ, _VERDICT_WRITTEN = 200, 60, 12
"""What comparing answers is reckoned at: the words around them, and each answer beside its question."""
_FALLBACK_SIZE = (1024, 1024)
_NO_STYLE = "No style is given, so that each frame may come out in another: --style 'soft watercolour', for one."
DRAWN_ONLY = "Nobody judges: the board is planned and drawn, and not measured (--judge names a judge)."
AT_MOST = "At most: what is in the cache, and repairs that need not be tried, come off."

T = TypeVar("T")
Kind = Literal["plans", "pictures", "moves", "answers", "verdicts", "metrics"]


class PluginNeed(BaseModel):
    """One plug-in: how often it would be called. cost: US dollars; 0 on this machine, None where the price is unknown.

    note: why it could not be used as things are now (no weights, no package); it is counted all the same.
    """

    model_config = ConfigDict(frozen=True)

    kind: Kind
    name: str
    calls: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = 0.0
    note: str = ""


class Needs(BaseModel):
    """Everything that a command would call, and the notes that its counts need."""

    model_config = ConfigDict(frozen=True)

    dry_run: Literal[True] = True
    stories: int
    needs: tuple[PluginNeed, ...]
    notes: tuple[str, ...] = ()

    @property
    def cost(self) -> float | None:
        """Dollars in all; None where one price is unknown."""
        costs = [need.cost for need in self.needs if need.calls]
        return None if None in costs else sum(cost for cost in costs if cost is not None)

    @property
    def unjudged(self) -> str:
        """Return the note where there is no judge; "" where there is one."""
        return DRAWN_ONLY if DRAWN_ONLY in self.notes else ""

    @classmethod
    def total(cls, stories: int, needs: Iterable[PluginNeed], notes: Iterable[str] = ()) -> Self:
        """Return the needs with those of one plug-in added up, in the order in which they come first."""
        summed: dict[tuple[Kind, str], PluginNeed] = {}
        for need in needs:
            known = summed.get((need.kind, need.name))
            summed[need.kind, need.name] = need if known is None else _added(known, need)
        return cls(stories=stories, needs=tuple(summed.values()), notes=tuple(dict.fromkeys(notes)))


def _added(a: PluginNeed, b: PluginNeed) -> PluginNeed:
    cost = None if a.cost is None or b.cost is None else a.cost + b.cost
    return a.model_copy(
        update={
            "calls": a.calls + b.calls,
            "input_tokens": a.input_tokens + b.input_tokens,
            "output_tokens": a.output_tokens + b.output_tokens,
            "cost": cost,
            "note": a.note or b.note,
        }
    )


@dataclass(frozen=True)
class StoryShape:
    """One story as it would be drawn and asked: panels, and how many questions choose, bind to a transition, report.

    joints: how many transitions have questions that choose. heaviest: the most of one transition. by_rule: nobody wrote
    the questions, so that a judge that reads pictures back is not asked them.
    """

    panels: int
    letters: int
    steering: int
    bound: int
    reporting: int
    question_letters: int
    characters: int = 0
    joints: int = 0
    heaviest: int = 0
    by_rule: bool = False


@dataclass(frozen=True)
class Counts:
    """Frames drawn at once and inserted, boards that are measured for choosing, and boards that are reported.

    texts: how often questions are asked from the text alone, and as often without evidence. asked: how many questions
    report a board; None: the story's reporting ones. own: whether the judges that choose are asked these, too.
    again: boards that are measured in a second prompt variant. rounds: how often a writer proposes moves.
    """

    frames: int = 0
    inserted: int = 0
    measured: int = 0
    reported: int = 0
    texts: int = 1
    asked: int | None = None
    own: bool = False
    again: int = 0
    rounds: int = 0


def shape_of(record: StoryRecord, panels: int, given: Plan | None = None) -> StoryShape | str:
    """Return what drawing and asking a story takes; or why it cannot be planned. given: its plan, if it has one."""
    wanted = len(record.scenes) or panels
    try:
        plan = given or story_reader().outline(record, wanted)
        if plan is None:
            return _guessed(record, wanted)
        questions = prepare_story(record, plan).recoverability_questions
    except UsageError as error:
        return error.message
    steering = [item for item in questions if item.role == "steering"]
    joints = Counter(item.target_transition for item in steering if item.target_transition is not None)
    return StoryShape(
        panels=len(plan.panels),
        letters=len(record.story_text),
        steering=len(steering),
        bound=joints.total(),
        reporting=sum(item.role == "reporting" for item in questions),
        question_letters=max(map(_letters, questions), default=0),
        characters=len(plan.characters),
        joints=len(joints),
        heaviest=max(joints.values(), default=0),
        by_rule=made_by_rule(questions),
    )


def _guessed(record: StoryRecord, panels: int) -> StoryShape:
    """Return the shape of a story that is not read before a model plans it: its questions are those of its record, or
    as many as a model is asked to write, half of them to choose by."""
    own = assign_roles(record.recoverability_questions)
    reporting = sum(item.role == "reporting" for item in own) if own else EACH * len(DIMENSIONS) // 2
    steering = len(own) - reporting if own else reporting
    joints = min(panels - 1, steering)
    return StoryShape(
        panels=panels,
        letters=len(record.story_text),
        steering=steering,
        bound=steering,
        reporting=reporting,
        question_letters=max(map(_letters, own), default=MOST_QUESTION),
        joints=joints,
        heaviest=-(-steering // max(joints, 1)),
    )


def _letters(question: Question) -> int:
    return len(question.question) + sum(map(len, question.options or ()))


def run_needs(
    records: Sequence[StoryRecord],
    config: Settings,
    plans: Mapping[str, Plan | str] = MappingProxyType({}),
    seen: Mapping[str, Plan] = MappingProxyType({}),
) -> Needs:
    """Return what `katha run` would take. plans: by the story's id, the plan that it is given, or why there is none.
    seen: the plans that will be made, where they are known already."""
    mode, seeds = load_mode(config.mode), config.seeds[: config.candidates]

    def counts(shape: StoryShape) -> Counts:
        return _mode_counts(mode, shape, len(seeds), config.moves, boards=1, plain=True)

    return _needs(records, config, counts, plans, seen)


def fitting_needs(
    records: Sequence[StoryRecord],
    config: Settings,
    plans: Mapping[str, Plan | str] = MappingProxyType({}),
    seen: Mapping[str, Plan] = MappingProxyType({}),
) -> Needs:
    """Return what `katha run` would take, with judges that can read the pictures.

    Raises:
        UsageError: they cannot; one that can is named, with its price.
    """

    def answers(other: Settings) -> float | None:
        asked = [need.cost for need in run_needs(records, other, plans, seen).needs if need.kind in _ASKED]
        return None if None in asked else sum(cost for cost in asked if cost is not None)

    require_fitting(config, answers)
    return run_needs(records, config, plans, seen)


_ASKED = ("answers", "verdicts")


def suite_needs(records: Sequence[StoryRecord], config: Settings, suite: Suite) -> Needs:
    """Return what `katha ablate` would take: base boards once for all rows that share planner and renderer."""
    parts: list[Needs] = []
    folds = 1 if config.steering_judges else len(config.judges)
    for rows in _drawn_alike(config, suite).values():
        own = config.with_plugins(**{key: value for key in _OF_ROW if (value := getattr(rows[0], key))})

        def counts(shape: StoryShape, rows: Sequence[SuiteRow] = rows, first: bool = not parts) -> Counts:
            made = _rows_counts(rows, shape, config, folds)
            return made if first else replace(made, texts=0)

        parts.append(_needs(records, own, counts))
    return _joined(records, parts)


_OF_ROW = ("planner", "renderer", "renderer_options")


def _drawn_alike(config: Settings, suite: Suite) -> dict[str, list[SuiteRow]]:
    """Return the suite's rows by planner and renderer."""
    found: dict[str, list[SuiteRow]] = {}
    for row in suite.rows:
        own = config.with_plugins(**{key: value for key in _OF_ROW if (value := getattr(row, key))})
        found.setdefault(drawn_by(own), []).append(row)
    return found


def _rows_counts(rows: Sequence[SuiteRow], shape: StoryShape, config: Settings, folds: int) -> Counts:
    """Return the counts of rows that share their base boards; rows that only score otherwise cost nothing.

    folds: how often a row that chooses is run, each of several judges left out once.
    """
    seeds = len(config.seeds)
    modes = {row.build_mode().model_copy(update={"name": "", "about": ""}) for row in rows}
    protocols = {(row.prompts, row.questions) for row in rows}
    same = any(row.questions == "same" for row in rows)
    total = Counts(
        frames=seeds * shape.panels,
        measured=seeds,
        reported=seeds * len(protocols),
        texts=len(protocols),
        asked=max(shape.reporting, shape.steering) if same else None,
        own=True,
    )
    for mode in modes:
        boards = 1 if mode.report == "selected" else seeds
        own = _mode_counts(mode, shape, seeds, config.moves, boards=boards, plain=False)
        times = folds if mode.steers else 1
        total = replace(
            total,
            inserted=total.inserted + times * own.inserted,
            measured=total.measured + times * own.measured,
            reported=total.reported + times * own.reported * len(protocols),
            again=total.again + times * own.again,
            rounds=total.rounds + times * own.rounds,
        )
    return total


def compare_needs(records: Sequence[StoryRecord], config: Settings, methods: Sequence[Method]) -> Needs:
    """Return what `katha compare` would take."""
    parts: list[Needs] = []
    every = not any(method.repairs for method in methods)
    for method in methods:

        def counts(shape: StoryShape, method: Method = method, first: bool = not parts) -> Counts:
            seeds, asked = len(method.config.seeds), shape.reporting + (shape.steering if every else 0)
            made = Counts(frames=seeds * shape.panels, reported=seeds, asked=asked)
            if method.repairs:
                made = _mode_counts(
                    load_mode(method.config.mode), shape, seeds, method.config.moves, boards=1, plain=True
                )
            return made if first else replace(made, texts=0)

        parts.append(_needs(records, method.config, counts))
    return _joined(records, parts)


def tune_needs(records: Sequence[StoryRecord], config: Settings) -> Needs:
    """Return what `katha tune` would take: every seed's board, and a repair at every transition that some weights call
    the weakest, with every seed."""
    seeds = len(config.seeds)

    def counts(shape: StoryShape) -> Counts:
        inserted = seeds * (shape.panels - 1) * seeds
        boards = seeds + inserted
        return Counts(frames=seeds * shape.panels, inserted=inserted, measured=boards, reported=boards, own=True)

    return _needs(records, config, counts)


def _mode_counts(mode: Mode, shape: StoryShape, seeds: int, move_frames: int, *, boards: int, plain: bool) -> Counts:
    """Return what one mode takes on one story. move_frames: how many frames a repair by moves may draw with each seed.
    boards: how many it reports. plain: its base boards are its own, and the first of them is reported, too."""
    candidates = 1 if mode.select == "first" else seeds
    draws = (seeds if mode.draws == "every" else 1) if mode.insert != "none" else 0
    inserted = boards * draws * (move_frames if mode.insert == "moves" else mode.budget)
    own = Counts(
        frames=candidates * shape.panels if plain else 0,
        inserted=inserted,
        measured=mode.readings * ((candidates if plain else 0) + inserted),
        reported=(1 if plain else 0) + (boards if inserted or (plain and candidates > 1) else 0),
        again=(mode.readings - 1) * (candidates + inserted),
        rounds=boards * mode.budget if mode.writes else 0,
    )
    return own


def _needs(
    records: Iterable[StoryRecord],
    config: Settings,
    count: Callable[[StoryShape], Counts],
    plans: Mapping[str, Plan | str] = MappingProxyType({}),
    seen: Mapping[str, Plan] = MappingProxyType({}),
) -> Needs:
    """Return the calls of one planner, renderer and set of judges; a plan that is given needs no planner."""
    needs, notes, stories = [], [AT_MOST], 0
    with keyless():
        renderer, why = _made(lambda: make_renderer(config))
        size = config.size or (renderer.capabilities.default_size if renderer is not None else _FALLBACK_SIZE)
        guide, unguided = _made(lambda: make_guide(config))
        asked = (name for name in (*config.judges, *config.steering_judges) if name != NOBODY)
        judges = {name: _judge(name, config) for name in asked}
        notes += [] if judges else [DRAWN_ONLY]
        decider = _decider(config)
        planner, planless = _made(lambda: make_planner(config))
        able = renderer.capabilities if renderer is not None else Capabilities()
        if not able.panel and able.source == "drawn" and renderer is not None:
            notes.append(f"Style: {config.style}." if config.style else _NO_STYLE)
        for record in records:
            stories += 1
            given = plans.get(record.story_id)
            shape = (
                given if isinstance(given, str) else _shape(record, config, able, given or seen.get(record.story_id))
            )
            if isinstance(shape, str):
                notes.append(f"{record.story_id}: not counted. {shape}")
                continue
            counts = count(shape)
            asks = renderer is not None and can(renderer, Renderer.picture_of)
            portraits = shape.characters if asks else 0
            frames = counts.frames + counts.inserted + portraits
            cost = _drawing_cost(renderer, counts, portraits, config, size)
            if given is None:
                needs.append(_plans(config, planner, planless, record, shape))
            needs.append(PluginNeed(kind="pictures", name=config.renderer, calls=frames, cost=cost, note=why))
            if config.guide is not None:
                needs.append(_layouts(config.guide, guide, unguided, counts.frames + counts.inserted))
            if counts.rounds:
                needs.append(_proposals(config, planner, shape, counts.rounds))
            needs += _answers(config, shape, counts, judges, size, decider)
    return Needs.total(stories, needs, notes)


def _shape(record: StoryRecord, config: Settings, able: Capabilities, plan: Plan | None) -> StoryShape | str:
    panels = panel_count(record, config, able) if plan is None else len(plan.panels)
    most = shape_of(record, panels.most, plan) if isinstance(panels, Span) else ""
    return most if isinstance(most, StoryShape) else shape_of(record, int(panels), plan)


def _plans(config: Settings, planner: Planner | None, note: str, record: StoryRecord, shape: StoryShape) -> PluginNeed:
    """Return what planning one story takes: its questions are written by the planner's model, too."""
    if planner is None:
        return PluginNeed(kind="plans", name=config.planner, calls=1, note=note)
    told = planner.expected(record, shape.panels)
    return PluginNeed(
        kind="plans",
        name=config.planner,
        calls=told.calls,
        input_tokens=told.tokens.get("input", 0),
        output_tokens=told.tokens.get("output", 0),
        cost=planner.cost(told.tokens),
        note=note,
    )


def _proposals(config: Settings, planner: Planner | None, shape: StoryShape, rounds: int) -> PluginNeed:
    """Return what proposing moves takes: a call a round, by the writer or the planner's model, or by nobody."""
    model = planner.question_writer if planner is not None else None
    if config.writer is None and model is None:
        return PluginNeed(kind="moves", name="fields", calls=0)
    tokens = {"input": WRITER_TOKENS["input"] + shape.letters // _LETTERS_PER_TOKEN, "output": WRITER_TOKENS["output"]}
    vendor = getattr(make_model(config.writer) if config.writer is not None else model, "vendor", None)
    price = 0.0 if vendor is None else vendor.cost(tokens)
    return PluginNeed(
        kind="moves",
        name=config.writer or config.planner,
        calls=rounds,
        input_tokens=rounds * tokens["input"],
        output_tokens=rounds * tokens["output"],
        cost=None if price is None else rounds * price,
    )


def _layouts(name: str, guide: Renderer | None, note: str, frames: int) -> PluginNeed:
    """Return what the layouts of so many frames take; the price of a guide that is not on this machine is unknown."""
    price = _frame_price(guide) if guide is not None else None
    return PluginNeed(
        kind="pictures", name=name, calls=frames, cost=None if price is None else frames * price, note=note
    )


def _answers(
    config: Settings,
    shape: StoryShape,
    counts: Counts,
    judges: Mapping[str, tuple[Judge, str]],
    size: tuple[int, int],
    decider: tuple[str, Judge, str] | None,
) -> Iterator[PluginNeed]:
    """Yield each judge's calls for one story, and those of who says whether its free answers are right.

    A picture-only call sees every frame, one for a transition two. A board that differs from another by one frame has
    two transitions at most that were not measured before.
    """
    asked = shape.reporting if counts.asked is None else counts.asked
    steer = set(config.steering_judges or config.judges)
    report = {*config.judges, *(config.steering_judges if counts.own else ())}
    text, words = shape.letters // _LETTERS_PER_TOKEN, shape.question_letters // _LETTERS_PER_TOKEN
    fresh = max(0, counts.measured - counts.inserted)
    for name, (judge, note) in judges.items():
        if shape.by_rule and can(judge, Judge.read_back):
            yield PluginNeed(kind="answers", name=name, calls=0, note=note)
            continue
        frame = picture_tokens(*fitted(*size, judge.picture_side))
        board, pair = (frame * frames for frames in (shape.panels + (1 if counts.inserted else 0), 2))
        asking = _Asking(words, together=judge.asks_together and config.ask == "together")
        if name in report:
            asking.add(counts.texts, asked, 0)
            asking.add(counts.texts, asked, text)
            asking.add(counts.reported, asked, board)
            asking.add(counts.reported, asked, board + text)
        asking.together = judge.asks_together
        if name in steer:
            asking.add(counts.measured + counts.again, shape.steering, board)
            asking.spread(fresh, shape.bound, shape.joints, pair)
            asking.add(2 * counts.inserted, shape.heaviest, pair + (frame if counts.inserted else 0))
        price = price_of(judge)
        written = written_tokens(asking.replies, judge.thoughts, asking.calls)
        cost = None if price is None else expected_cost(price, asking.tokens, written)
        yield PluginNeed(
            kind="answers",
            name=name,
            calls=asking.calls,
            input_tokens=asking.tokens,
            output_tokens=written,
            cost=cost,
            note=note,
        )
        if decider is not None and not judge.always_chooses:
            yield _verdicts(*decider, asking)


def _decider(config: Settings) -> tuple[str, Judge, str] | None:
    """Return who says whether free answers are right, where that is a judge (`llm:JUDGE`), and why it is not there."""
    family, _, name = config.matching.partition(":")
    if family != "llm" or config.answers != "free":
        return None
    return (config.matching, *_judge(name, config))


def _verdicts(name: str, judge: Judge, note: str, asking: _Asking) -> PluginNeed:
    """Return the verdicts on everything that a judge answered, those of a packet in one call."""
    read = asking.packets * _VERDICTS_TOKENS + asking.replies * (asking.words + _VERDICT_READ)
    written = asking.replies * _VERDICT_WRITTEN + asking.packets * judge.thoughts
    price = price_of(judge)
    return PluginNeed(
        kind="verdicts",
        name=name,
        calls=asking.packets,
        input_tokens=read,
        output_tokens=written,
        cost=None if price is None else expected_cost(price, read, written),
        note=note,
    )


@dataclass
class _Asking:
    """What one judge is asked about a story, added up. words: tokens of a question. together: those of a packet are one
    call, or one for each of its portions."""

    words: int
    together: bool
    calls: int = 0
    tokens: int = 0
    replies: int = 0
    packets: int = 0

    def add(self, packets: int, questions: int, evidence: int) -> None:
        """Add so many packets, each with as many questions and tokens of evidence."""
        self.spread(packets, questions, min(1, questions), evidence)

    def spread(self, times: int, questions: int, packets: int, evidence: int) -> None:
        """Add questions that are spread over packets, so often."""
        if not questions or not packets:
            return
        calls, head, each = questions, _INSTRUCTION_TOKENS + self.words, 0
        if self.together and questions > packets:
            calls = len(portions(questions)) if packets == 1 else packets
            head, each = _INSTRUCTION_TOKENS + _TOGETHER_TOKENS, self.words + _NUMBERED_TOKENS
        self.calls += times * calls
        self.tokens += times * (calls * (head + evidence) + questions * each)
        self.replies += times * questions
        self.packets += times * packets


def _judge(name: str, config: Settings) -> tuple[Judge, str]:
    """Return a judge with the settings' options that it has, or a stand-in and why it could not be asked now."""

    def make() -> Judge:
        known = option_names(default_registry("judges").load(name)[0])
        options = {key: value for key, value in config.judge_options.items() if key in known}
        return make_judges([name], options=options)[0][1]

    made, why = _made(make)
    if made is not None:
        return made, why
    return Absent(name, price={} if name.startswith("local:") else None), why


class Absent(Judge):
    """Stands in for a judge that is not on this machine, so that its questions are counted; it cannot be asked."""

    def __init__(self, name: str, price: Mapping[str, float] | None) -> None:
        self.name, self.price = name, price

    def spec(self) -> Mapping[str, object]:
        """Return its name."""
        return {"name": self.name}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield `not_asked` for each prompt."""
        for _ in prompts:
            yield JudgeReply("not_asked", error="the judge is not on this machine")


def countable_judges(config: Settings, concurrency: int | None = None) -> list[tuple[str, Judge]]:
    """Return the judges of the settings, made without a key; one that is not on this machine has a stand-in.

    Raises:
        UsageError: there is no such judge, or none has an option that was given.
    """
    require_chosen(config, ("judges",))
    with keyless():
        here = [name for name in config.judges if not _judge(name, config)[1]]
        made = dict(
            make_judges(
                here,
                base_url=judges_address(config),
                verify_reuse=config.verify_reuse,
                concurrency=concurrency,
                patience=config.patience,
                options=config.judge_options,
            )
            if len(here) == len(config.judges)
            else make_judges(here)
        )
    return [(name, made.get(name, Absent(name, {}))) for name in config.judges]


def _drawing_cost(
    renderer: Renderer | None, counts: Counts, portraits: int, config: Settings, size: tuple[int, int]
) -> float | None:
    """Return dollars for a story's frames: portraits from words, scenes from these, inserted ones from their neighbours
    too; a layout is one picture more."""
    if renderer is None:
        return 0.0
    drawn_from = portraits + (config.guide is not None)
    each = ((portraits, 0), (counts.frames, drawn_from), (counts.inserted, drawn_from + 2))
    prices = [(number, renderer.price_of(pictures, size)) for number, pictures in each if number]
    return None if any(price is None for _, price in prices) else sum(n * price for n, price in prices if price)


def _frame_price(renderer: Renderer | None) -> float | None:
    """Return dollars a frame: none for what draws on this machine."""
    return renderer.frame_price if renderer is not None else 0.0


def _made(make: Callable[[], T]) -> tuple[T | None, str]:
    """Return a plug-in, or None and why it is not there."""
    try:
        return make(), ""
    except _ABSENT as error:
        return None, str(error)


def _joined(records: Sequence[StoryRecord], parts: Sequence[Needs]) -> Needs:
    needs = [need for part in parts for need in part.needs]
    return Needs.total(len(records), needs, [note for part in parts for note in part.notes])
