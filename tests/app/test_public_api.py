"""The public Python API: exactly the documented names, imported lazily, with sections in their docstrings."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import katha
from katha.app.cli.main import VERBS, app
from katha.app.cli.options import GivenOptions, options_from
from katha.config import Settings
from katha.experiments.offline.scoring import ScoreOptions

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "python.md"
TUTORIAL = ROOT / "docs" / "tutorial" / "python-api.md"
FUNCTIONS = {
    *(
        "run_story",
        "plan_story",
        "draw_cast",
        "draw_views",
        "redo_frame",
        "evaluate",
        "score",
        "ablate",
        "compare",
        "tune",
        "load_stories",
    ),
    *("export", "measure", "plan_stories", "run_stories"),
    *("register_renderer", "register_planner", "register_judge", "register_matcher", "register_metric"),
}
RECORDS = {"ExportOptions", "Story", "Plan", "Board", "Answer", "Scores", "Settings", "Budget"}
ERRORS = {
    *("KathaError", "UsageError", "InputFileError", "RecordError", "PlanError", "UnknownPluginError"),
    *("MissingExtraError", "AbsentModelError", "OutputFolderError", "StoreError", "RenderError", "BudgetError"),
    *("ModelError", "JudgeError"),
}
HEAVY = ("torch", "langgraph", "pydantic", "numpy", "jinja2", "typer", "PIL")


def test_the_exported_names_are_the_documented_ones() -> None:
    assert set(katha.__all__) == FUNCTIONS | RECORDS | ERRORS | {"__version__"}
    assert sorted(katha.__all__) == katha.__all__ == dir(katha)
    page = PAGE.read_text(encoding="utf-8")
    named = re.findall(r"^::: katha\.(\w+)$", page, flags=re.M)
    assert sorted(named) == sorted(FUNCTIONS | RECORDS | {"errors"})  # the errors are rendered from their module


def test_every_name_is_there_and_no_other() -> None:
    for name in katha.__all__:
        assert getattr(katha, name) is not None
    assert all(issubclass(getattr(katha, name), katha.KathaError) for name in ERRORS)
    with pytest.raises(AttributeError, match="no attribute 'StoryRecord'"):
        katha.StoryRecord  # noqa: B018
    with pytest.raises(ImportError):
        exec("from katha import no_such_name")


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_s_docstring_has_sections_that_name_every_parameter(name: str) -> None:
    function: Callable[..., object] = getattr(katha, name)
    text = inspect.getdoc(function) or ""
    places = [text.find(f"\n{section}:\n") for section in ("Args", "Returns", "Raises", "Example")]
    assert -1 not in places, places
    assert places == sorted(places)
    told = re.findall(r"^    \*{0,2}(\w+): ", text[places[0] : places[1]], flags=re.M)
    assert told == list(inspect.signature(function).parameters)
    assert ">>> " in text[places[3] :]


def test_importing_katha_imports_nothing_heavy() -> None:
    code = f"import sys, katha; print([name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_help_imports_no_verb() -> None:
    code = (
        "import sys; from katha.app.cli.main import app\n"
        "app(args=['--help'], standalone_mode=False)\n"
        "print([name for name in sys.modules if name.startswith('katha.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = done.stdout.strip().splitlines()[-1]
    assert sorted(re.findall(r"katha\.[\w.]+", loaded)) == [
        "katha.app", "katha.app.cli", "katha.app.cli.main", "katha.errors",
    ]  # fmt: skip


def test_the_list_of_verbs_says_what_the_verbs_say() -> None:
    from typer.main import get_command

    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, verb in VERBS.items():
        assert commands[name].help.partition("\n")[0].strip() == verb.summary, name


def test_every_setting_has_a_description_and_its_own_flag() -> None:
    from typer.main import get_command

    known = {option for item in get_command(app).commands["run"].params for option in item.opts}  # type: ignore[attr-defined]
    assert all(field.description for field in Settings.model_fields.values())
    assert {"--planner-option", "--bridge-option", "--judge", "--seeds", "--verify-reuse"} <= known
    assert not {"--candidates", "--compass"} & known


def test_a_zero_that_was_given_is_no_absent_flag() -> None:
    heard: list[GivenOptions] = []

    @options_from(ScoreOptions, preset=False, limits=False)
    def verb(given: GivenOptions) -> None:
        heard.append(given)

    names = inspect.signature(verb).parameters
    verb(
        **dict.fromkeys(names),
    )
    verb(**{**dict.fromkeys(names), "resamples": 0, "seed": 0, "decide": False, "verdicts": []})
    assert [given.changes for given in heard] == [{}, {"resamples": 0, "seed": 0}]


@pytest.mark.timeout(600)
def test_the_tutorial_s_code_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), flags=re.S)
    assert len(blocks) >= 8
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(TUTORIAL), "exec"), names)
    frames = json.loads((tmp_path / "out" / "crow" / "storyboard.json").read_text())["frames"]
    assert len(frames) >= 4
    assert not (tmp_path / "out" / "never").exists()
