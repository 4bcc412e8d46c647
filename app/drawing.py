"""One story at a time, as Python and the command line call it: plan it, draw and repair it, draw a frame again."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.agents.context import frame_size, freeze, load_plugins, make_plan, make_renderer, require_drawers
from katha.agents.fitting import unfit_judge
from katha.agents.requests import panel_request
from katha.agents.state import OF_ONE_STORY, ReviewChoice, ReviewRequest, RunResult
from katha.app.presets import choose_here
from katha.app.recording import note_settings, recordable, settings_of_replay
from katha.app.reports.page import finished_run
from katha.app.reports.run_page import write_report
from katha.config import Choose, Settings, resolve
from katha.errors import PlanError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.eval_bridge.matching.match import require_rule
from katha.eval_bridge.packets.instructions import require_variant
from katha.jsonio import MOST_JSON, read_json
from katha.mapping import RecordMapping
from katha.planners.base import validate_plan
from katha.planners.plan_revision import read_plan
from katha.protocols import Renderer, can
from katha.schema import Event, Plan, StoryRecord
from katha.stories import check_scene_count, load_story, story_of_text

_SENTENCE_END = re.compile(r"[.!?]['\"\u2019\u201d)]*\s*$")


@recordable
def run_story(
    story: StoryRecord | Path | str,
    settings: Settings | str | None = None,
    *,
    out: Path | str | None = None,
    plan: Plan | Path | str | None = None,
    lock: Path | str | None = None,
    budget: Budget | None = None,
    on_event: Callable[[Event], None] | None = None,
    reviewer: Callable[[ReviewRequest], ReviewChoice] | None = None,
    **changes: Any,
) -> RunResult:
    """Draw a story, find the transition that cannot be read from the images, and repair it.

    The same call again does nothing twice: what is drawn and asked is kept in `out` and in the cache. After a kill it
    goes on where it stopped.

    Args:
        story: A text file, a record (`.json`), `FILE.jsonl#story_id`, the story's own words, or a record.
        settings: Settings, or the name of a preset; else the environment's (`KATHA_...`) and the defaults.
        out: The run's folder; `out/STORY_ID` unless told.
        plan: Draw this plan instead of the planner's. A folder is that of `plan_stories`: the story's own is taken.
        lock: The lock that `tune` wrote: the frozen weights, thresholds and seeds.
        budget: Limits over the calls and dollars of judges and image services.
        on_event: Hears what is being planned, drawn, asked and decided.
        reviewer: Decides on the repair, where the settings ask for review (`review=True`).
        **changes: Single settings by name, over `settings`: `mode="base"`, `seeds=(1, 2)`; and `record="FILE"`, to
            write every call of a language model into a file, or `replay="FILE"`, to take every reply from one.

    Returns:
        The accepted board, every candidate and the scores before and after; the files, with `report.html`, are in
        `result.out`.

    Raises:
        UsageError: The story, a setting or the folder is wrong; nothing was drawn or asked.
        KathaError: The work failed (RenderError, JudgeError, BudgetError, StoreError); call again to go on.

    Example:
        >>> result = run_story("examples/lion_and_mouse.txt", out="out/lion", seeds=(42,))
        >>> result.candidates.decision.reason
    """
    config = settings_for(settings, changes)
    require_drawers(changes, [config.renderer, config.bridge_renderer])
    record = read_story(story, config.mapping)
    given = plan if plan is None or isinstance(plan, Plan) else load_plan(Path(plan), record)
    if given is not None:
        config = config.model_copy(update={"panels": len(given.panels)})
    if config.panels is not None:
        check_scene_count(record, config.panels)
    require_readers(config, [record], {record.story_id: given} if given is not None else {})
    plugins = load_plugins(config, budget)
    if lock is not None:
        config = freeze(config, Path(lock), plugins, [record], given_names(changes))
    from katha.agents import run as machine  # and its state machine: an edit of a board needs none of it

    folder = Path(out) if out is not None else Path("out") / record.story_id
    result = machine.run_story(record, config, folder, plan=given, on_event=on_event, review=reviewer, plugins=plugins)
    write_report(result.out)
    return result


def require_readers(config: Settings, records: Sequence[StoryRecord], plans: Mapping[str, Plan | str]) -> None:
    """Refuse a judge that cannot read the renderer's pictures; one that can is named, with its price for these stories.

    Raises:
        UsageError: it cannot.
    """
    if unfit_judge(config) is not None:
        from katha.experiments.needs import fitting_needs  # and all that counts: a run needs none of it

        fitting_needs(records, config, plans)


@recordable
def plan_story(
    story: StoryRecord | Path | str,
    settings: Settings | str | None = None,
    *,
    on_event: Callable[[Event], None] | None = None,
    **changes: Any,
) -> Plan:
    """Plan a story: characters, one prompt a frame, and the transitions that must be readable. Draws nothing.

    Args:
        story: A text file, a record (`.json`), `FILE.jsonl#story_id`, the story's own words, or a record.
        settings: Settings, or the name of a preset; else the environment's and the defaults.
        on_event: Hears how far a plan is that takes long.
        **changes: Single settings by name, over `settings`: `planner="caption"`, `panels=4`; `record`, `replay`.

    Returns:
        The plan that `run_story` would draw; change it and hand it to `run_story(..., plan=plan)`.

    Raises:
        UsageError: The story cannot be read or planned, or a setting is wrong.

    Example:
        >>> plan = plan_story("examples/fox_and_crow.txt", panels=4)
        >>> [panel.prompt for panel in plan.panels]
    """
    config = settings_for(settings, changes)
    record = read_story(story, config.mapping)
    if config.panels is not None:
        check_scene_count(record, config.panels)
    if on_event is None:
        return make_plan(record, config)
    on_event(Event(stage="plan", kind="started", total=1))
    made = make_plan(record, config, lambda said: on_event(Event(stage="plan", kind="progress", message=said)))
    on_event(Event(stage="plan", kind="finished"))
    return made


@recordable
def draw_cast(
    story: StoryRecord | Path | str,
    settings: Settings | str | None = None,
    *,
    plan: Plan | Path | str | None = None,
    on_event: Callable[[Event], None] | None = None,
    **changes: Any,
) -> bytes:
    """Draw the cast sheet of a story: everybody and every prop as named parts, and no frame.

    Args:
        story: A text file, a record (`.json`), `FILE.jsonl#story_id`, the story's own words, or a record.
        settings: Settings, or the name of a preset; else the environment's and the defaults. The renderer is `vector`.
        plan: Whose cast it is, instead of the planner's: a plan, or a file of `katha plan`.
        on_event: Hears how far a plan is that takes long.
        **changes: Single settings by name, over `settings`: `style="ink"`; `record`, `replay`.

    Returns:
        The sheet as SVG; change it and hand it to `run_story(..., renderer_options={"cast": "cast.svg"})`.

    Raises:
        UsageError: The story cannot be planned, or the renderer draws from no cast. RenderError: no cast was drawn.

    Example:
        >>> sheet = draw_cast("story.txt", renderer="vector:anthropic:MODEL")
    """
    config = settings_for(settings, changes)
    record = read_story(story, config.mapping)
    given = plan if plan is None or isinstance(plan, Plan) else load_plan(Path(plan), record)
    renderer = make_renderer(config)
    if not can(renderer, Renderer.draw_cast):
        raise UsageError(
            f"The renderer {config.renderer!r} draws from no cast sheet.", hint="Name vector:MODEL as --renderer."
        )
    made = given if given is not None else plan_story(record, config, on_event=on_event)
    asked = panel_request(made, made.panels[0], config.seeds[0], frame_size(config, renderer))
    return renderer.draw_cast(replace(asked, plan=made))


@recordable
def redo_frame(
    run: Path | str,
    frame: int,
    seed: int,
    *,
    on_event: Callable[[Event], None] | None = None,
    **changes: Any,
) -> RunResult:
    """Draw one frame of a finished run again; every other frame keeps its bytes, and what depends on it is judged anew.

    Args:
        run: The folder of a finished run; its old version is kept in `versions/`.
        frame: Which frame of the storyboard, counted from 1.
        seed: The seed to draw it with.
        on_event: Hears what is being drawn and asked.
        **changes: Settings that go over the run's own and change no picture: `memory`, `renderer_options`; `record`,
            `replay`.

    Returns:
        The run as it is now.

    Raises:
        UsageError: There is no such frame or run, or its plug-ins have changed since.
        KathaError: The work failed; the old version or the new one is there, and the same call finishes it.

    Example:
        >>> redo_frame("out/lion", frame=3, seed=7)
    """
    from katha.agents.editor import editing  # and all that changes boards: a run needs none of it

    result = editing.redo_frame(finished_run(Path(run)), frame, seed, on_event=on_event, changes=changes)
    write_report(result.out)
    return result


def resume_run(
    run: Path | str,
    *,
    on_event: Callable[[Event], None] | None = None,
    reviewer: Callable[[ReviewRequest], ReviewChoice] | None = None,
    budget: Budget | None = None,
) -> RunResult:
    """Go on with a run from what is in its folder, whoever began it, here or at the desk: its story is not needed.

    Args:
        run: The folder of a run that was stopped, or that is finished (it is returned as it is).
        on_event: Hears what is being planned, drawn, asked and decided.
        reviewer: Decides on the repair, where the run asks for review.
        budget: Limits what services may still cost.

    Returns:
        The run, finished.

    Raises:
        UsageError: There is no run, it was never planned, its plug-ins have changed, or it needs a reviewer.
        KathaError: The work failed; call again to go on.
    """
    from katha.agents import run as machine

    result = machine.resume_run(Path(run), on_event=on_event, review=reviewer, budget=budget)
    write_report(result.out)
    return result


def given_names(changes: Mapping[str, Any]) -> set[str]:
    """Return the settings that a command or a call names itself."""
    return {name for name, value in changes.items() if value is not None}


def settings_for(
    settings: Settings | str | None,
    changes: Mapping[str, Any],
    *,
    reporting: bool = True,
    choose: Choose = choose_here,
) -> Settings:
    """Return `settings` (or those of the preset of that name) with `changes` over them, checked.

    Where a recording is replayed, its settings are the defaults below the preset's.

    choose: takes one of what a preset proposes.

    Raises:
        UsageError: A setting, matching rule or prompt variant is wrong; with `reporting`, a variant that steers is.
    """
    if isinstance(settings, Settings):
        config = resolve(changes, base=settings)
    else:
        config = resolve(changes, preset=settings, recorded=settings_of_replay(changes), choose=choose)
    note_settings(config)
    require_rule(config.matching)
    require_variant(config.variant, reporting=reporting)
    return config


def read_story(story: StoryRecord | Path | str, mapping: Path | None = None) -> StoryRecord:
    """Return the story that is meant: a record as it is, a path (with `#story_id`), or a text of whole sentences.

    Raises:
        InputFileError: There is no such file, or it holds no story. RecordError: A record breaks the schema.
    """
    if isinstance(story, StoryRecord):
        return story
    if isinstance(story, str) and ("\n" in story.strip() or (" " in story and _SENTENCE_END.search(story))):
        return story_of_text(story)
    return load_story(str(story), RecordMapping(mapping) if mapping is not None else None)


def load_plan(path: Path, record: StoryRecord) -> Plan:
    """Return the plan in `path`, checked against the story it is for. Of a folder it is `STORY_ID/plan.json`.

    Raises:
        PlanError: it is not there, not a plan of this version, or does not fit the story; the field is named.
    """
    if os.path.isdir(path):  # where pathlib would raise (a name that is too long), this is False
        folder, path = path, plan_path(path, record)
        if not path.is_file():
            raise PlanError(
                f"{str(folder)!r} holds no plan of the story {record.story_id!r}.",
                hint=f"`katha plan STORIES --out {folder}` makes {str(path)!r}.",
            )
    value = read_json(path, limit=MOST_JSON)
    try:
        plan = read_plan(value, record)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        raise PlanError(f"{str(path)!r} is not a plan of this version: {field}: {first['msg']}.") from error
    validate_plan(plan, record)
    return plan


def plan_path(folder: Path, record: StoryRecord) -> Path:
    """Return where a folder of plans has that of a story."""
    return folder / record.story_id / "plan.json"


def load_plans(folder: Path, records: Iterable[StoryRecord]) -> dict[str, Plan | str]:
    """Return the plan of each story in a folder of plans, or why it has none there, by the story's id.

    Raises:
        UsageError: there is no such folder.
    """
    if not os.path.isdir(folder):
        raise UsageError(
            f"{str(folder)!r} is not a folder, and many stories have many plans.",
            hint=f"Give the folder of `katha plan STORIES --out {folder}`.",
        )
    found: dict[str, Plan | str] = {}
    for record in records:
        try:
            found[record.story_id] = load_plan(folder, record)
        except OF_ONE_STORY as error:
            found[record.story_id] = str(error)
    return found
