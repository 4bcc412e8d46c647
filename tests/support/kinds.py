"""Which test modules are of which kind, for the marks that conftest.py sets.

`unit` runs in one process, without a browser, a graph run, torch or a whole release: `make fast` runs these within a
minute on two cores and collects nothing else.
What is in no list is `integration`. `slow` modules, over about 20 seconds on one core, are integration too. `gpu` and
`browser` stand in the files, because single tests of a module need them. Tests of `processes` begin, kill or interrupt
other processes (workers, browsers, servers, terminals), whose times are the machine's: one that fails is run once more
and told as `RERUN` at the end. No other test has a second chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

UNIT: Mapping[str, tuple[str, ...]] = {
    "agents": ("folder",),
    "app": ("errors",),
    "compass": ("compass", "compass_modes"),
    "core": (
        *(
            "border",
            "contracts",
            "core",
            "devices",
            "files",
            "ids",
            "offered",
            "ordering",
            "pictures",
            "plugin_options",
            "replies",
            "stories",
            "tables",
            "usual",
        ),
    ),
    "docs": ("docs",),
    "eval_bridge": (
        *(
            "boards",
            "brake",
            "sizes",
            "judge_entrance",
            "bench_split_match",
            "calibration",
            "gold_ensemble",
            "people_study",
        ),
        *(
            "eval_asking",
            "eval_questions",
            "eval_scores",
            "free_questions",
            "halves",
            "paper_prompts",
            "question_choices",
        ),
        *("metrics_base", "metrics_continuity", "metrics_vinabench"),
    ),
    "experiments": ("inference",),
    # The stand-in's own, in sketch/tests.
    "planner": ("rule_planner",),
    "drawing": ("figures", "figures_other", "figures_small", "props", "sketch"),
    "english": ("reading", "vocabulary"),
    "questions": ("own_questions",),
    "reader": ("similarity",),
}
SLOW: Mapping[str, tuple[str, ...]] = {
    "agents": ("shared_run",),
    "app": (
        "ablate_cli",
        "desk",
        "desk_page",
        "hostile",
        "mcp",
        "people_pages",
        "public_api",
        "received",
        "run_many",
        "store_cli",
    ),
    "core": ("plugin_package",),
    "docs": ("docs_pages", "docs_renderers", "docs_site", "packaging", "readme"),
    "eval_bridge": ("local_judge", "transformers_serve"),
    "experiments": ("cluster", "cluster_machines", "kill"),
    "planners": ("local_planner", "training_fit"),
    "training": ("training",),
    "robustness": ("cluster_kills", "robustness"),
    "renderers": (
        "vector_hostile",
        *("diffusion_checks", "diffusion_models", "diffusion_runs", "diffusion_single_file"),
        *("sharing", "sharing_run", "sharing_shapes"),
    ),
}
PROCESSES: Mapping[str, tuple[str, ...]] = {
    "agents": ("shared_run",),
    "app": (
        *("ablate_cli", "cli_terminal", "desk", "desk_page", "export", "hostile", "jobs_cli", "mcp", "people_pages"),
        *("received", "report", "run_many"),
    ),
    "core": ("store_shared",),
    "docs": ("docs_pages", "readme"),
    "eval_bridge": ("transformers_serve",),
    "experiments": ("cluster", "cluster_machines", "compare", "eval_batch", "eval_servers", "kill", "turns"),
    "robustness": ("cluster_kills",),
}


def listed(path: Path, lists: Mapping[str, tuple[str, ...]]) -> bool:
    """Return whether a test module, FOLDER/test_NAME.py in tests or sketch/tests, stands in the lists."""
    return path.stem.removeprefix("test_") in lists.get(path.parent.name, ())
