"""What a run begins with: its plug-ins, its plan, its settings under a lock, and the context of the machine's nodes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from katha.agents.asking import as_placed, placing, with_questions, written_questions
from katha.agents.editor.imported_boards import with_scenes, with_words
from katha.agents.folder import MemoryFiles, RunFolder, prompt_hashes
from katha.agents.planned import kept_or_made
from katha.compass.lock import read_lock, require_tested
from katha.compass.modes import Mode, load_mode
from katha.compass.repair import BoardFeatures, BoardKey, TransitionFeatures, TransitionKey
from katha.compass.writer import FieldsWriter, ModelWriter, Writer
from katha.config import UNMEASURED, Settings, require_chosen
from katha.configs import load_config
from katha.errors import KathaError, OutputFolderError, PlanError, ReplyError, UsageError
from katha.eval_bridge.judges.none import NoJudge
from katha.eval_bridge.judging.abilities import make_judges
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.judging.budget import require_prices as require_judge_prices
from katha.eval_bridge.judging.engine import JudgingEngine
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import kept_rule
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.eval_bridge.questions.build import build_questions, made_by_rule, prepare_questions
from katha.eval_bridge.questions.free import FreeQuestions
from katha.jsonio import digest
from katha.models.base import PaidModel
from katha.models.calls import forgetting_calls
from katha.models.registry import make_model
from katha.planners.plan_revision import with_hash
from katha.plugin_boundary import CheckedSimilarity, checked, named_failures, spec_of
from katha.protocols import (
    Capabilities,
    FrameRequest,
    Judge,
    PanelWords,
    Planner,
    PlanRequest,
    Renderer,
    Similarity,
    Span,
    allows,
    can,
)
from katha.reading import story_reader
from katha.registry import default_registry, option_names
from katha.schema import Answer, Plan, Question, Role, StoryRecord, Transition
from katha.store import PlanIndex, Store

# Planners and renderers made from a run's settings: each with its options, and `memory` for those that have it.


def make_planner(config: Settings) -> Planner:
    """Return the planner.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made. UsageError: none is chosen, or it has no such option.
    """
    require_chosen(config, ("planner",))
    told = {**_called_at(config, "planners", config.planner), **config.planner_options}
    made = default_registry("planners").configure(config.planner, told)
    planner: Planner = checked(made, Planner, f"planner {config.planner!r}")
    return planner


def make_renderer(config: Settings) -> Renderer:
    """Return the board's renderer; errors are those of `make_planner`."""
    require_chosen(config, ("renderer",))
    given = {"memory": config.memory, "patience": config.patience, "characters": config.characters}
    known = _options(config.renderer) if any(value is not None for value in given.values()) else set[str]()
    told = {name: value for name, value in given.items() if value is not None and name in known}
    told |= _called_at(config, "renderers", config.renderer)
    made = default_registry("renderers").configure(config.renderer, {**told, **config.renderer_options})
    renderer: Renderer = checked(made, Renderer, f"renderer {config.renderer!r}")
    return renderer


def make_bridge(config: Settings) -> Renderer | None:
    """Return who draws inserted frames, if that is not the board's renderer; errors are those of `make_planner`."""
    drawer = {"renderer": config.bridge_renderer, "renderer_options": config.bridge_renderer_options}
    return make_renderer(config.model_copy(update=drawer)) if config.bridge_renderer is not None else None


def make_guide(config: Settings) -> Renderer | None:
    """Return who draws the layouts, if anybody does; errors are those of `make_planner`.

    It gets no pictures of characters: these say how they look, and are the board's renderer's to follow.
    """
    drawer = {"renderer": config.guide, "renderer_options": config.guide_options, "characters": None}
    return make_renderer(config.model_copy(update=drawer)) if config.guide is not None else None


def make_writer(config: Settings, planner: Planner, budget: Budget | None = None) -> Writer | None:
    """Return who proposes moves in a mode that has them written: the model that is named, else the planner's, else the
    plan's own fields; None in other modes.

    Raises:
        UsageError: the model cannot be used, or the budget is in dollars and its price is unknown.
    """
    if not load_mode(config.mode).writes:
        return None
    if config.writer is None:
        return ModelWriter(planner.question_writer) if planner.question_writer is not None else FieldsWriter()
    model = make_model(config.writer, base_url=config.base_url if _is_called(config.writer) else None)
    if budget is None:
        return ModelWriter(model)
    vendor = getattr(model, "vendor", None)
    price = 0.0 if vendor is None else vendor.cost(WRITER_TOKENS)
    if price is None and budget.max_cost is not None:
        raise UsageError(
            f"The price of the writer {config.writer!r} is unknown, so --max-cost cannot hold.",
            hint="Limit it by --max-calls.",
        )
    return ModelWriter(model if price == 0.0 else PaidModel(model, budget, price or 0.0))


def _is_called(model: str) -> bool:
    """Return whether a model's name has a provider of language models, which is called over the network."""
    return "text" in load_config("providers.yaml").get(model.partition(":")[0], {})


def _called_at(config: Settings, family: Literal["planners", "renderers"], name: str | None) -> dict[str, str]:
    """Return where a plug-in calls its language model, as an option, if `base_url` names a place and it has a model
    that is called."""
    if config.base_url is None or name is None:
        return {}
    factory, argument = default_registry(family).load(name)
    takes = _is_called(argument or "") and "base_url" in option_names(factory)
    return {"base_url": config.base_url} if takes else {}


def judges_address(config: Settings) -> str | None:
    """Return `base_url` for the judges: None where none of them takes it and another model does, so that nothing is
    amiss."""
    judges = (*config.judges, *config.steering_judges)
    if config.base_url is None or any("base_url" in _judge_options(name) for name in judges):
        return config.base_url
    drawn = (config.renderer, config.bridge_renderer, config.guide)
    models = (config.writer or "", config.matching.removeprefix("llm:"))
    others = any(map(_is_called, models)) or _called_at(config, "planners", config.planner)
    return None if others or any(_called_at(config, "renderers", name) for name in drawn) else config.base_url


def _judge_options(name: str) -> Mapping[str, str]:
    return option_names(default_registry("judges").load(name)[0])


def make_similarity(config: Settings) -> Similarity:
    """Return the similarity; one that is named by its class path is looked at whenever it gives a vector.

    Raises:
        UnknownPluginError, MissingExtraError: it cannot be made.
    """
    who = f"similarity {config.similarity!r}"
    registry = default_registry("similarities")
    made: Similarity = checked(registry.create(config.similarity), Similarity, who)
    return made if config.similarity.partition(":")[0] in registry.names() else CheckedSimilarity(made, who)


def _options(spec: str) -> set[str]:
    return set(option_names(default_registry("renderers").load(spec)[0]))


def fitting_options(specs: Iterable[str], given: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return by renderer those of the options `given` that it has.

    Raises:
        UsageError: none of the renderers has one of them.
    """
    known = {spec: _options(spec) if given else set[str]() for spec in specs}
    stray = next((name for name in given if not any(name in names for names in known.values())), None)
    if stray is not None:
        raise UsageError(f"No renderer here has an option {stray!r}.", hint="See `katha renderers`.")
    return {spec: {name: value for name, value in given.items() if name in names} for spec, names in known.items()}


def require_drawers(changes: Mapping[str, Any], specs: Iterable[str | None]) -> None:
    """Refuse a `--memory` or `--characters` (in `changes`) that none of the renderers `specs` would listen to.

    Raises:
        UsageError: no renderer (None: there is none) keeps a model in memory, or draws from pictures of characters.
    """
    given = [name for name in ("memory", "characters") if changes.get(name) is not None]
    known = {name for spec in specs if spec is not None for name in _options(spec)} if given else set()
    if "memory" in given and "memory" not in known:
        raise UsageError(
            "--memory is given, but no renderer here keeps a model in memory.", hint="Use --renderer sdxl:MODEL."
        )
    if "characters" in given and "characters" not in known:
        raise UsageError(
            "--characters is given, but no renderer here draws from pictures of characters.",
            hint="Use kontext, an SDXL renderer, openai, gemini or comfyui.",
        )


# Pictures within a command's budget: asked for before each one, settled with what it did cost.

T = TypeVar("T")
WRITER_TOKENS = {"input": 2_500, "output": 900}
"""What a proposal of moves is reckoned at."""


def paid(
    budget: Budget | None,
    renderer: Renderer,
    draw: Callable[[], T],
    request: FrameRequest | None = None,
    neighbours: int = 0,
) -> T:
    """Return what `draw` gives, which asks `renderer` for one frame; free where no frame of it costs anything.

    request, neighbours: what it is drawn from, for the price that it is expected to have; else the dearest frame's.

    Raises:
        BudgetError: the frame could cost more than is left; it was not asked for.
    """
    if budget is None or not renderer.metered:
        return draw()
    each = renderer.frame_price or 0.0
    if request is not None:
        sent = len(request.pictures) + (request.guide is not None) + neighbours
        each = renderer.price_of(sent, (request.width, request.height)) or 0.0
    if not budget.grant_in_turn(each):
        could = f", and a picture can cost ${each:.2f}" if each else ""
        raise budget.used_up(could)
    cost = 0.0  # a call that failed is a call; a service charges for pictures
    try:
        drawn = draw()
        receipt = renderer.receipt()
        known = receipt.get("paid", receipt.get("cost"))
        cost = each if known is None else float(known)
    finally:
        budget.settle(each, cost)
    return drawn


def require_prices(budget: Budget | None, renderers: Mapping[str, Renderer | None]) -> None:
    """Refuse a budget in dollars over pictures whose price is unknown; `renderers` by the names they were asked for.

    Raises:
        UsageError: the renderer is named.
    """
    for name, renderer in renderers.items() if budget is not None and budget.max_cost is not None else ():
        if renderer is not None and renderer.frame_price is None:
            raise UsageError(
                f"The price of a picture by {name!r} is unknown, so --max-cost cannot hold.",
                hint="Give --renderer-option price=DOLLARS, or limit it by --max-calls.",
            )


# All plug-ins of a run, and whether they can do what it asks.


@dataclass(frozen=True)
class Plugins:
    """The planner, renderer, judges (by the name they were asked for) and similarity of a run.

    `bridge` draws inserted frames; None when the renderer does. `budget` limits what frames may cost. `steering` names
    the judges that choose boards where they are others than those that report; None: all do both. `guide` draws each
    frame's layout before the renderer does; None: there are no layouts. `writer` proposes moves; None in modes that
    have none written.
    """

    planner: Planner
    renderer: Renderer
    judges: Mapping[str, Judge]
    similarity: Similarity
    bridge: Renderer | None = None
    budget: Budget | None = None
    steering: tuple[str, ...] | None = None
    guide: Renderer | None = None
    writer: Writer | None = None

    def asked(self, role: Role) -> tuple[str, ...]:
        """Return the judges that are asked the questions of one half."""
        if self.steering is None:
            return tuple(self.judges)
        return tuple(name for name in self.judges if (name in self.steering) == (role == "steering"))

    def part(self) -> Plugins:
        """Return the same plug-ins for one of several runs, whose pictures and answers are counted apart."""
        return self if self.budget is None else replace(self, budget=self.budget.part())

    @property
    def inserter(self) -> Renderer:
        """Return who draws inserted frames."""
        return self.renderer if self.bridge is None else self.bridge

    def guide_of(self, renderer: Renderer) -> Renderer | None:
        """Return who draws the layouts of a renderer's frames; None where it follows none."""
        return self.guide if renderer.capabilities.guide else None

    def specs(self) -> dict[str, object]:
        """Return everything of theirs that can change a result, for `run.json`."""
        guided = {}
        if self.guide is not None:
            followed = dict(self.renderer.guided_spec())
            guided = {"guide": {"renderer": spec_of(self.guide, "guide"), "followed": followed}}
        return {
            "planner": spec_of(self.planner, "planner"),
            "renderer": {**spec_of(self.renderer, "renderer"), **guided},
            "bridge_renderer": spec_of(self.bridge, "bridge renderer") if self.bridge is not None else None,
            "judges": [spec_of(judge, f"judge {name!r}") for name, judge in self.judges.items()],
            "similarity": spec_of(self.similarity, "similarity"),
            **({"writer": dict(self.writer.spec())} if self.writer is not None else {}),
        }


def load_plugins(config: Settings, budget: Budget | None = None) -> Plugins:
    """Make the plug-ins that `config` names, their pictures and replies within `budget`; without one they are counted.

    Raises:
        UnknownPluginError: there is no such plug-in. MissingExtraError: a package that it needs is missing.
        UsageError: nobody plans, draws or judges, or the budget is in dollars and a price is unknown.
    """
    require_chosen(config)
    both = set(config.judges) & set(config.steering_judges)
    if both:
        raise UsageError(
            f"The judge {min(both)!r} is to choose the boards and to report them: it is no fair judge of its choice.",
            hint="Name it as --judge or as --steering-judge; without the latter all judges do both, and it is said.",
        )
    made = make_judges(
        (*config.judges, *config.steering_judges),
        base_url=judges_address(config),
        verify_reuse=config.verify_reuse,
        patience=config.patience,
        keep_going=config.keep_going,
        options=config.judge_options,
    )
    judges, budget = dict(made), budget if budget is not None else Budget()
    require_judge_prices(judges, budget)
    planner = make_planner(config)
    pay_planner(config.planner, planner, budget)
    renderer, bridge, guide = make_renderer(config), make_bridge(config), make_guide(config)
    require_prices(budget, {config.renderer: renderer, str(config.bridge_renderer): bridge, str(config.guide): guide})
    similarity, writer = make_similarity(config), make_writer(config, planner, budget)
    return Plugins(planner, renderer, judges, similarity, bridge, budget, config.steering_judges or None, guide, writer)


def pay_planner(name: str, planner: Planner, budget: Budget) -> None:
    """Have a planner's calls, its questions' too, paid from the budget. name: as it was asked for.

    Raises:
        UsageError: the budget is in dollars, and the model's price is unknown.
    """
    some = planner.expected(StoryRecord(story_id="some", story_text=""), PlanRequest().panels)
    cost = planner.cost(some.tokens)
    if cost is None and budget.max_cost is not None:
        raise UsageError(
            f"The price of the planner {name!r} is unknown, so --max-cost cannot hold.",
            hint="Limit it by --max-calls N: --dry-run instead of --max-cost says how many.",
        )
    if cost != 0.0:  # a model on this machine is paid nothing, and its calls are not counted
        planner.pay_from(budget, (cost or 0.0) / some.calls)


def check_able(config: Settings, plugins: Plugins) -> None:
    """Refuse a run whose renderers cannot do what it asks, before anything is drawn.

    Raises:
        UsageError: a size that cannot be drawn, a mode that inserts a frame and nobody who can draw it, a mode that
            chooses by what nobody measures, or a layout that nobody draws or follows.
    """
    frame_size(config, plugins.renderer)
    if plugins.guide is not None:
        _check_guide(config, plugins.guide, plugins.renderer)
    mode = load_mode(config.mode)
    if mode.adds and plugins.inserter.capabilities.insertion == "none":
        who = config.bridge_renderer or config.renderer
        raise UsageError(
            f"The mode {config.mode!r} inserts a frame, and the renderer {who!r} cannot draw one.",
            hint="Give --bridge-renderer NAME, or --mode base.",
        )
    if config.similarity == UNMEASURED:
        _check_unmeasured(mode, config.mode, plugins)


def _check_unmeasured(mode: Mode, name: str, plugins: Plugins) -> None:
    """Refuse a mode that holds texts or pictures against each other, or that has nothing at all to choose by."""
    if mode.steers and all(isinstance(plugins.judges[judge], NoJudge) for judge in plugins.asked("steering")):
        raise UsageError(
            f"The mode {name!r} chooses by what is measured, but nobody judges and no similarity is chosen.",
            hint="Give --mode base, or name a judge with --judge or a similarity with --similarity.",
        )


def _check_guide(config: Settings, guide: Renderer, renderer: Renderer) -> None:
    """Refuse a guide that draws no board or no bridges, and a renderer that cannot follow one (UsageError)."""
    if guide.capabilities.source == "found" or guide.capabilities.insertion == "none":
        raise UsageError(f"{config.guide!r} can be no guide: it draws no boards and bridges.", hint="Use vector:MODEL.")
    if not renderer.capabilities.guide:
        raise UsageError(
            f"The renderer {config.renderer!r} cannot follow a guide, as {', '.join(_followers())} can.",
            hint="Leave --guide out, or name one of those with --renderer (flux: FLUX.1 and Z-Image).",
        )


def _followers() -> list[str]:
    """Return the names of the renderers that say of themselves that they can follow a guide."""
    registry, found = default_registry("renderers"), []
    for name in registry.names():
        with suppress(KathaError):  # one that cannot be imported follows nothing
            able = getattr(registry.load(name)[0], "capabilities", None)
            found += [name] if isinstance(able, Capabilities) and able.guide else []
    return found


def frame_size(config: Settings, renderer: Renderer) -> tuple[int, int]:
    """Return the frames' width and height in pixels.

    Raises:
        UsageError: the renderer cannot draw that size.
    """
    able = renderer.capabilities
    if able.source == "found" and config.size is not None:
        raise UsageError(f"The pictures of {config.renderer!r} have their own size.", hint="Leave --size out.")
    size = config.size or able.default_size
    if able.sizes is not None:
        fits, known = size in able.sizes, ", ".join(f"{width}x{height}" for width, height in able.sizes)
    else:
        fits, known = (
            all(side > 0 and side % able.size_multiple == 0 for side in size),
            f"multiples of {able.size_multiple}",
        )
    if not fits:
        raise UsageError(f"The renderer {config.renderer!r} cannot draw {size[0]}x{size[1]}.", hint=f"Use {known}.")
    return size


# Before anything is drawn: the plan, its fit with the story, and the questions with their halves and options.


def make_plan(record: StoryRecord, config: Settings, heard: Callable[[str], None] | None = None) -> Plan:
    """Return the plan that a run with `config` would draw. heard: told how far a plan is that takes long.

    Raises:
        UsageError: the story cannot be planned, with what to do.
    """
    able, words = limits_of(config)
    counted = config.model_copy(update={"panels": panel_count(record, config, able, words)})
    return plan_within(make_planner(config), record, counted, able.prompt_tokens, heard, words)


def limits_of(config: Settings) -> tuple[Capabilities, tuple[PanelWords, ...]]:
    """Return what the renderer can do and the words beside its pictures: a plan is made within them.

    Where no renderer is chosen a plan is made without limits, for whoever will draw it.
    """
    if not config.renderer:
        return Capabilities(), ()
    renderer = make_renderer(config)
    return renderer.capabilities, tuple(renderer.panel_words())


def panel_count(record: StoryRecord, config: Settings, able: Capabilities, words: Sequence[PanelWords] = ()) -> int:
    """Return how many panels a plan of `record` has: as many as are asked for, as it has scenes, as there are pictures
    with `words` of their own, or as a plain text calls for; pictures that are there already are the usual number.

    A planner that divides a text itself (`chooses_scenes`) gets the range that is asked for, or the usual number.
    """
    usual, given = PlanRequest().panels, config.panels
    known = len(record.scenes) or len(words) or (usual if able.source == "found" else 0)
    if given is not None and not isinstance(given, Span):
        return given
    if not known and _chooses_scenes(default_registry("planners").load(config.planner)[0]):
        return given or usual
    count = known or story_reader().panels_for(record.story_text, usual)
    return count if given is None else given.nearest(count)


def _chooses_scenes(planner: object) -> bool:
    """Return whether a planner, or a class of planners, divides a plain text itself: the rule reader
    need not read it."""
    return bool(getattr(planner, "chooses_scenes", False))


def plan_within(
    planner: Planner,
    record: StoryRecord,
    config: Settings,
    prompt_tokens: int | None,
    heard: Callable[[str], None] | None = None,
    words: Sequence[PanelWords] = (),
    questions: Sequence[Question] = (),
    plans: PlanIndex | None = None,
) -> Plan:
    """Return the plan of `record` by `planner`, within a prompt limit in tokens, checked.

    words: what stands beside each picture of a found board; it goes into the panels, and where it is the whole story,
    each panel is planned from its own. questions: what viewers will be asked, for planners that plan for them.
    plans: where plans are kept that no model is called for.

    Some planners know no transitions. Where the record has none either, they are read from the story by rule, so that
    every planner's board of a plain text is asked the same questions; `transitions_from` says so.
    """
    story = with_scenes(record, words) if words else record
    writes = planner.question_writer is not None and not questions
    asked = written_questions(planner, record, heard) if writes else FreeQuestions(tuple(questions))
    panels = config.panels or len(story.scenes) or PlanRequest().panels
    if isinstance(panels, Span) and (story.scenes or not _chooses_scenes(planner)):
        panels = panels.nearest(len(story.scenes) or story_reader().panels_for(story.story_text, PlanRequest().panels))
    most = panels.most if isinstance(panels, Span) else None
    request = PlanRequest(
        panels=int(panels),
        most_panels=most,
        style=config.style,
        prompt_tokens=prompt_tokens,
        questions=tuple(item for item in asked.kept if item.role == "steering"),
        heard=heard,
    )
    # What a model wrote in vain is not kept: it is asked anew.
    with named_failures(f"planner {config.planner!r}", PlanError), forgetting_calls(ReplyError):
        plan = kept_or_made(planner, story, request, plans, partial(_made, planner, story, request))
    if not plan.transitions and not record.transitions:
        derived = _derived_transitions(story, len(plan.panels))
        plan = plan.model_copy(update={"transitions": derived, "transitions_from": "rule" if derived else ""})
    plan = with_questions(plan, asked) if writes or questions else plan
    plan = with_words(plan, words) if words else plan
    plan = placing(planner, record, plan, heard) if writes else plan
    check_plan(plan, record, config)
    return with_hash(plan)


def _made(planner: Planner, story: StoryRecord, request: PlanRequest) -> Plan:
    plan = planner.plan(story, request)
    if not isinstance(plan, Plan):
        raise TypeError(f"it gave a {type(plan).__name__}, not a Plan")
    return Plan.model_validate(plan.model_dump())


def _derived_transitions(record: StoryRecord, panels: int) -> list[Transition]:
    """Return what the installed reader reads; nothing where it cannot read the story, or none is installed."""
    try:
        outline = story_reader().outline(record, panels)
    except PlanError:
        return []
    return outline.transitions if outline is not None else []


def check_plan(plan: Plan, record: StoryRecord, config: Settings) -> None:
    """Refuse a plan that does not fit its story.

    Raises:
        PlanError: another story's, panels or transitions out of order, or an unknown character; the place is named.
    """
    what, indices = f"The plan of {plan.story_id!r}", [panel.index for panel in plan.panels]
    if plan.story_id != record.story_id:
        raise PlanError(f"{what} is not of the story {record.story_id!r}.", hint="Give the plan of this story.")
    if indices != list(range(1, len(indices) + 1)) or len(indices) < 2:
        raise PlanError(f"{what} numbers its panels {indices}; at least two are needed, from 1, in order.")
    if config.panels is not None and not allows(config.panels, len(indices)):
        raise PlanError(f"{what} has {len(indices)} panels, the run {config.panels}.", hint="Set --panels to match.")
    blank = next((panel.index for panel in plan.panels if not panel.prompt.strip()), None)
    if blank is not None:
        raise PlanError(f"{what}, panel {blank}, has no prompt.", hint="Say what the panel shows.")
    pairs = [item.pair for item in plan.transitions]
    wrong = next((pair for pair in pairs if pair[0] not in indices[:-1] or pair[1] != pair[0] + 1), None)
    if wrong is not None:
        raise PlanError(f"{what} has a transition {wrong[0]} to {wrong[1]}, which joins no adjacent panels.")
    if len(set(pairs)) != len(pairs):
        raise PlanError(f"{what} has a transition twice.")
    known = {character.name for character in plan.characters}
    named = ((panel.index, name) for panel in plan.panels for name in panel.characters)
    index, stranger = next((item for item in named if item[1] not in known), (0, None))
    if stranger is not None:
        hint = "Add it to the plan's characters."
        raise PlanError(f"{what}, panel {index}, names the unknown character {stranger!r}.", hint=hint)


def prepare_story(record: StoryRecord, plan: Plan) -> StoryRecord:
    """Return the story with the questions that will be asked: its own, or built from the transitions; with options."""
    annotated = plan.model_copy(update={"transitions": record.transitions}) if record.transitions else plan
    own = record.recoverability_questions
    questions = as_placed(own, plan) if own else plan.questions or build_questions(record, annotated)
    prepared = prepare_questions(questions, (), seed=42)
    return record.model_copy(update={"recoverability_questions": prepared})


def plan_sha256(plan: Plan) -> str:
    """Return the hash of a plan's content."""
    return digest(plan.model_dump(mode="json"))


# A run under a lock: its settings are the frozen ones, and everything that they were chosen with must be the same.


def protocol_of_config(config: Settings) -> dict[str, str]:
    """Return how frames are drawn and questions asked and matched, as a lock holds it."""
    return {
        "answers": config.answers,
        "ask": config.ask,
        "matching": config.matching,
        "steering_prompts": STEERING_VARIANT,
        "reporting_prompts": config.variant,
        "style": config.style,
        "size": "its own" if config.size is None else f"{config.size[0]}x{config.size[1]}",
        "panels": str(config.panels),
        "steering_judges": ", ".join(config.steering_judges) or "the judges",
        "judge_options": digest(config.judge_options)[:12] if config.judge_options else "none",
    }


def models_of(plugins: Plugins) -> dict[str, str]:
    """Return the hash of each kind of plug-in's specification."""
    return {name: digest(spec) for name, spec in plugins.specs().items()}


def freeze(
    config: Settings, path: Path, plugins: Plugins, records: Sequence[StoryRecord], given: Collection[str] = ()
) -> Settings:
    """Return `config` with the weights, thresholds, seeds and candidate count that the lock at `path` froze.

    given: the settings that the command names; one that the lock fixes otherwise is refused. The stories' records are
    kept beside the lock when they are first tested under it.

    Raises:
        InputFileError: no lock, or an edited one. UsageError: models, prompts, protocol, code or a story's questions
            are not those of the lock, or a story is one that was tuned on; what differs is named.
    """
    lock = read_lock(path)
    lock.require_options(config, given, str(path))
    lock.require(protocol_of_config(config), models_of(plugins), prompt_hashes(), str(path))
    lock.require_stories(records, str(path))
    require_tested(lock, path, records)
    frozen = {"compass": lock.settings, "seeds": lock.seeds, "candidates": lock.candidates, "lock": lock.sha256}
    return config.model_copy(update=frozen)


# The surroundings of one run: what its nodes work with and never keep in the state.


@dataclass(frozen=True)
class MeasuredBoards:
    """What was measured, by the frames that it was measured on.

    boards: features of whole boards, for the other modes of a suite; None: each board is measured under its own name.
    transitions: features and answers of a transition's frames, for all boards that share them.
    """

    boards: dict[BoardKey, BoardFeatures] | None = None
    transitions: dict[TransitionKey, tuple[TransitionFeatures, list[Answer]]] = field(default_factory=dict)


@dataclass
class PreparedStory:
    """The plan and the story with its questions; None until the machine has made them or read them from a folder."""

    plan: Plan | None = None
    story: StoryRecord | None = None


@dataclass(frozen=True)
class RunContext:
    """The surroundings of one run; `RunContext.open` makes one.

    record: the story as given. size: of the frames, width and height in pixels. matching: the rule that matches
    answers. engine: asks the judges. given_plan: drawn instead of the planner's. given_up: set when whoever
    listens has stopped the run, which then ends behind the picture or answer that is under way.
    """

    record: StoryRecord
    config: Settings
    plugins: Plugins
    store: Store
    files: RunFolder | MemoryFiles
    mode: Mode
    size: tuple[int, int]
    matching: Rule
    engine: JudgingEngine
    given_plan: Plan | None = None
    measured: MeasuredBoards = field(default_factory=MeasuredBoards, repr=False)
    ready: PreparedStory = field(default_factory=PreparedStory, repr=False)
    renderer_lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    given_up: threading.Event = field(default_factory=threading.Event, repr=False)

    @classmethod
    def open(
        cls,
        record: StoryRecord,
        config: Settings,
        plugins: Plugins,
        store: Store,
        files: RunFolder | MemoryFiles,
        *,
        given_plan: Plan | None = None,
        mode: Mode | None = None,
        matching: Rule | None = None,
        measured: MeasuredBoards | None = None,
        ready: PreparedStory | None = None,
    ) -> Self:
        """Return the surroundings of a run of `record` by `config`.

        mode, matching: instead of those that `config` names. measured: what runs over the same frames share. ready:
        a plan and story that are prepared already.

        Raises:
            UsageError: the renderer cannot draw that size. UnknownPluginError: no such mode or matching rule.
        """
        return cls(
            record=record,
            config=config,
            plugins=plugins,
            store=store,
            files=files,
            mode=mode or load_mode(config.mode),
            size=frame_size(config, plugins.renderer),
            matching=matching or kept_rule(config.matching, files.path, config.base_url, plugins.budget),
            engine=JudgingEngine(plugins.judges, store, budget=plugins.budget, when_spent="stop"),
            given_plan=given_plan,
            measured=measured or MeasuredBoards(),
            ready=ready or PreparedStory(),
        )

    @property
    def folder(self) -> RunFolder:
        """The run's folder; rows of a suite have none, and their machine ends before anything is written."""
        if not isinstance(self.files, RunFolder):
            raise TypeError(f"{str(self.files.path)!r} is not a run's folder.")
        return self.files

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of base boards: the run's, or the first where a story has one board whatever the seed."""
        found = self.plugins.renderer.capabilities.source == "found"
        return self.config.seeds[:1] if found else self.config.seeds

    @property
    def candidate_seeds(self) -> tuple[int, ...]:
        """The seeds whose boards are candidates in this mode."""
        return self.mode.candidate_seeds(self.seeds)[: self.config.candidates]

    def plan(self, sha256: str | None = None) -> Plan:
        """Return the plan in use; with `sha256`, checked against the one that the run began with.

        Raises:
            OutputFolderError: `plan.json` was changed since.
        """
        if self.ready.plan is None:
            self.ready.plan = self.folder.load_plan()
        if sha256 is not None and plan_sha256(self.ready.plan) != sha256:
            raise OutputFolderError(
                f"{str(self.files.path / 'plan.json')!r} was changed while the run was under way.",
                hint="Copy it elsewhere and run it with --plan into another --out.",
            )
        return self.ready.plan

    def story(self) -> StoryRecord:
        """Return the story with its questions as used (`story.jsonl`)."""
        if self.ready.story is None:
            self.ready.story = self.folder.load_story()
        return self.ready.story

    def trajectory(self) -> list[Transition]:
        """Return the transitions that a board is measured and repaired by: the record's own, else the plan's."""
        return self.record.transitions or self.plan().transitions

    def asked(self, role: Role) -> tuple[str, ...]:
        """Return the judges that are asked the questions of one half: of those that were made by rule, none that reads
        pictures back instead."""
        names = self.plugins.asked(role)
        if not made_by_rule(self.story().recoverability_questions):
            return names
        return tuple(name for name in names if not can(self.plugins.judges[name], Judge.read_back))

    def reading_back(self, role: Role) -> str | None:
        """Return the judge by which pictures are read back in place of a half's questions; None where some judge is
        asked these."""
        return None if self.asked(role) else next(iter(self.plugins.asked(role)), None)

    def questions(self, role: Role) -> list[Question]:
        """Return the steering or the reporting questions, in order."""
        return [item for item in self.story().recoverability_questions if item.role == role]
