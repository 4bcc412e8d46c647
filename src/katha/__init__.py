"""katha: a story in, a storyboard out whose transitions can be understood from the images alone."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from katha.errors import (
    AbsentModelError,
    BudgetError,
    InputFileError,
    JudgeError,
    KathaError,
    MissingExtraError,
    ModelError,
    OutputFolderError,
    PlanError,
    RecordError,
    RenderError,
    StoreError,
    UnknownPluginError,
    UsageError,
)

if TYPE_CHECKING:
    from katha.app.drawing import draw_cast, plan_story, redo_frame, run_story
    from katha.app.exports import ExportOptions, export
    from katha.app.many import plan_stories, run_stories
    from katha.app.measuring import measure
    from katha.app.studies import ablate, compare, evaluate, tune
    from katha.app.views import draw_views
    from katha.config import Settings
    from katha.eval_bridge.judging.budget import Budget
    from katha.experiments.offline.scoring import score
    from katha.registry import (
        register_judge,
        register_matcher,
        register_metric,
        register_planner,
        register_renderer,
    )
    from katha.schema import Answer, Board, Plan
    from katha.schema import StoryRecord as Story
    from katha.schema.scores import Scores
    from katha.stories import load_stories

    __version__: str

_PLACES = {
    "katha.app.drawing": ("draw_cast", "plan_story", "redo_frame", "run_story"),
    "katha.app.exports": ("ExportOptions", "export"),
    "katha.app.many": ("plan_stories", "run_stories"),
    "katha.app.measuring": ("measure",),
    "katha.app.studies": ("ablate", "compare", "evaluate", "tune"),
    "katha.app.views": ("draw_views",),
    "katha.config": ("Settings",),
    "katha.eval_bridge.judging.budget": ("Budget",),
    "katha.experiments.offline.scoring": ("score",),
    "katha.registry": (
        "register_judge",
        "register_matcher",
        "register_metric",
        "register_planner",
        "register_renderer",
    ),
    "katha.schema": ("Answer", "Board", "Plan", "Story"),
    "katha.schema.scores": ("Scores",),
    "katha.stories": ("load_stories",),
}
"""Where the public names are. They are imported when they are asked for: this is the ground floor, and most of them are
upstairs, behind packages that a `katha --help` does not need."""

__all__ = [
    "AbsentModelError",
    "Answer",
    "Board",
    "Budget",
    "BudgetError",
    "ExportOptions",
    "InputFileError",
    "JudgeError",
    "KathaError",
    "MissingExtraError",
    "ModelError",
    "OutputFolderError",
    "Plan",
    "PlanError",
    "RecordError",
    "RenderError",
    "Scores",
    "Settings",
    "StoreError",
    "Story",
    "UnknownPluginError",
    "UsageError",
    "__version__",
    "ablate",
    "compare",
    "draw_cast",
    "draw_views",
    "evaluate",
    "export",
    "load_stories",
    "measure",
    "plan_stories",
    "plan_story",
    "redo_frame",
    "register_judge",
    "register_matcher",
    "register_metric",
    "register_planner",
    "register_renderer",
    "run_stories",
    "run_story",
    "score",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("katha")
    place = next((module for module, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(place), "StoryRecord" if name == "Story" else name)


def __dir__() -> list[str]:
    return list(__all__)
