"""What a command would draw and ask, before it does: the same stories, settings and suites as the command itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from katha.app.drawing import load_plan, load_plans, read_story, settings_for
from katha.app.presets import choose_countable
from katha.app.studies import Stories, choose_methods, choose_suite, read_records
from katha.config import Settings, split_settings
from katha.experiments.ablate.power import planned
from katha.experiments.inputs.stories import RunOptions, StudyOptions, choose_stories
from katha.experiments.needs import Needs, compare_needs, fitting_needs, suite_needs, tune_needs
from katha.schema import Plan, StoryRecord
from katha.stories import check_scene_count


def needs_of_run(
    story: StoryRecord | Path | str,
    settings: Settings | str | None = None,
    *,
    plan: Path | None = None,
    seen: Plan | None = None,
    **changes: Any,
) -> Needs:
    """Return what `run_story` would take at most. Needs no key, calls nothing and writes nothing.

    seen: the plan that the run will make, where it is known, so that the story is not planned again to be counted.

    Raises:
        UsageError: the story, the plan or a setting is wrong.
    """
    config = settings_for(settings, changes, choose=choose_countable)
    record = read_story(story, config.mapping)
    given = load_plan(plan, record) if plan is not None else None
    panels = len(given.panels) if given is not None else config.panels
    if panels is not None:
        check_scene_count(record, panels)
    known = {record.story_id: seen} if seen is not None else {}
    return fitting_needs([record], config, {record.story_id: given} if given is not None else {}, known)


def needs_of_runs(
    stories: Stories, settings: Settings | str | None = None, *, plans: Path | None = None, **changes: Any
) -> Needs:
    """Return what `run_stories` would take at most.

    Raises:
        UsageError: stories, the folder of plans or a setting are wrong.
    """
    own, rest = split_settings(RunOptions, changes)
    config = settings_for(settings, rest, choose=choose_countable)
    records = choose_stories(read_records(stories, config.mapping), own.split, own.ids, stories)
    return fitting_needs(records, config, load_plans(plans, records) if plans is not None else {})


def needs_of_ablation(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    suite: str = "length",
    rows: Sequence[str] | None = None,
    **changes: Any,
) -> Needs:
    """Return what `ablate` would take at most.

    Raises:
        UsageError: stories, suite or a setting are wrong.
    """
    own, rest = split_settings(StudyOptions, changes)
    config = settings_for(settings, rest, choose=choose_countable)
    records = choose_stories(read_records(stories, config.mapping), own.split, own.ids, stories)
    chosen = choose_suite(suite, config, rows, own.reference)
    needs = suite_needs(records, config, chosen)
    return needs.model_copy(update={"notes": (*needs.notes, planned(chosen, len(records)))})


def needs_of_comparison(
    stories: Stories,
    settings: Settings | str | None = None,
    *,
    varied: tuple[Sequence[str], Sequence[str], Sequence[str]] = ((), (), ()),
    methods: Path | str | None = None,
    **changes: Any,
) -> Needs:
    """Return what `compare` would take at most. varied: planners, renderers and modes.

    Raises:
        UsageError: stories, methods or a setting are wrong.
    """
    own, rest = split_settings(StudyOptions, changes)
    options = rest.pop("renderer_options", None)
    config = settings_for(settings, {**rest, "mode": "base"}, choose=choose_countable)
    records = choose_stories(read_records(stories, config.mapping), own.split, own.ids, stories)
    return compare_needs(records, config, choose_methods(config, methods, varied, options))


def needs_of_tuning(
    stories: Stories, settings: Settings | str | None = None, *, split: str | None = None, **changes: Any
) -> Needs:
    """Return what `tune` would take at most.

    Raises:
        UsageError: stories or a setting are wrong.
    """
    config = settings_for(settings, changes, choose=choose_countable)
    records = read_records(stories, config.mapping)
    wanted = split or ("validation" if any(record.split for record in records) else None)
    return tune_needs(choose_stories(records, wanted, source=stories), config)
