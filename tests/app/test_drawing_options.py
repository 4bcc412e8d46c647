"""Options of renderers: the same on every verb that draws, one precedence, and no picture depends on memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, get_type_hints

import cli_child
import pytest
from click.testing import Result
from doubles import BlockRenderer
from typer.testing import CliRunner

from katha.agents.context import make_bridge, make_renderer
from katha.app.cli.main import app
from katha.app.cli.redo import redo
from katha.app.cli.run import run
from katha.app.cli.studies import ablate, compare, tune
from katha.config import Settings, resolve
from katha.errors import OutputFolderError, RenderError, UsageError
from katha.experiments.comparison.methods import cross_methods, read_methods
from katha.protocols import FrameRequest
from katha.registry import default_registry

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "examples" / "lion_and_mouse.txt"
SMALL = ("--judge", "pixel", "--seeds", "1", "--panels", "3", "--mode", "base")
Katha = Callable[..., Result]
Rung = Literal["full", "model-offload"]


class Heavy(BlockRenderer):
    """Draws blocks, in another shade for each `version`; `crowded` runs out of memory unless offloaded."""

    def __init__(self, argument: str | None = None, *, memory: Rung = "full", version: int = 1) -> None:
        super().__init__(version=version)
        self.memory, self.crowded = memory, argument == "crowded"

    def _draw(self, request: FrameRequest) -> bytes:
        if self.crowded and self.memory == "full" and request.scene == 2:
            raise RenderError("The device ran out of memory.", hint="Give a lower --memory rung.")
        return super()._draw(request)


@pytest.fixture
def katha(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Katha:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)
    default_registry("renderers").register("heavy")(Heavy)
    return lambda *words: CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def record(out: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((Path(out) / "run.json").read_text())
    return value


@pytest.mark.parametrize("verb", [run, redo, compare, ablate, tune])
def test_every_verb_that_draws_has_the_options_by_one_definition(verb: Callable[..., None]) -> None:
    hints = get_type_hints(verb, include_extras=True)
    fields = Settings.model_fields
    whole = () if verb is redo else ("bridge_renderer", "guide")
    for name in ("memory", "bridge_renderer_options", "guide_options", *whole):
        assert hints[name].__metadata__[0].help == f"{fields[name].description} (KATHA_{name.upper()})"
    options = {option for hint in hints.values() for item in hint.__metadata__ for option in item.param_decls or ()}
    options |= {item.default for hint in hints.values() for item in hint.__metadata__}
    assert {"--memory", "--bridge-option", "--guide-option", "--renderer-option"} <= options


@pytest.mark.parametrize(
    ("flags", "file", "environment", "rung"),
    [
        ({}, {}, {}, None),
        ({}, {}, {"KATHA_MEMORY": "a"}, "a"),
        ({}, {"memory": "b"}, {"KATHA_MEMORY": "a"}, "b"),
        ({"memory": "c"}, {"memory": "b"}, {"KATHA_MEMORY": "a"}, "c"),
        ({"memory": "c"}, {"renderer_options": {"memory": "b"}}, {}, "c"),
        ({"renderer_options": ["memory=c"]}, {"memory": "b"}, {}, "c"),
        ({"memory": "c", "renderer_options": ["memory=d"]}, {"memory": "b"}, {}, "d"),
        ({}, {"renderer_options": {"memory": "b"}}, {"KATHA_MEMORY": "a"}, "b"),
        ({}, {"memory": "b"}, {"KATHA_RENDERER_OPTIONS": "memory=a"}, "b"),
    ],
)
def test_memory_comes_from_flag_file_environment_default(
    tmp_path: Path, flags: Mapping[str, Any], file: Mapping[str, Any], environment: Mapping[str, str], rung: str | None
) -> None:
    preset = tmp_path / "preset.yaml"
    preset.write_text(json.dumps({"renderer": "heavy", **file}))
    config = resolve(flags, preset=str(preset), environment={"KATHA_RENDERER": "heavy", **environment})
    assert {"memory": config.memory, **config.renderer_options}["memory"] == rung


def test_memory_goes_to_board_and_bridge_where_they_have_it(katha: Katha) -> None:
    config = resolve({"renderer": "sketch", "bridge_renderer": "heavy", "memory": "model-offload"}, environment={})
    assert make_renderer(config).spec()["name"] == "sketch"
    bridge = make_bridge(config)
    assert isinstance(bridge, Heavy)
    assert bridge.memory == "model-offload"
    with pytest.raises(UsageError, match="The option 'memory' of the renderer 'heavy' cannot be 'tiny'"):
        make_renderer(resolve({"renderer": "heavy", "memory": "tiny"}, environment={}))


@pytest.mark.parametrize(
    "words",
    [
        ("run", TEXT, "--renderer", "block", *SMALL),
        ("compare", TEXT, "--renderer", "block", "--renderer", "sketch"),
        ("ablate", TEXT, "--renderer", "block", "--suite", "length"),
        ("tune", TEXT, "--renderer", "block"),
    ],
)
def test_a_flag_that_no_renderer_listens_to_is_refused(katha: Katha, words: tuple[object, ...]) -> None:
    with pytest.raises(UsageError, match="--memory is given, but no renderer here keeps a model in memory"):
        katha(*words, "--memory", "full", "--out", "out")
    with pytest.raises(UsageError, match="--characters is given, but no renderer here draws from pictures"):
        katha(*words, "--characters", "cast", "--out", "out")
    assert not Path("out").exists()


def test_a_run_that_ran_out_of_memory_goes_on_with_another_rung(katha: Katha) -> None:
    words = ("run", TEXT, "--renderer", "heavy:crowded", *SMALL, "--out", "out")
    with pytest.raises(RenderError, match="lower --memory rung"):
        katha(*words)
    assert katha(*words, "--memory", "model-offload", "--json").exit_code == 0
    assert (record("out")["status"], record("out")["config"]["memory"]) == ("finished", "model-offload")
    assert record("out")["paid"]["frames_rendered"] == 3
    with pytest.raises(OutputFolderError, match="another renderer"):
        katha(*words, "--renderer-option", "version=2")


def test_one_frame_is_drawn_again_with_the_run_s_options_or_another_rung(katha: Katha) -> None:
    katha("run", TEXT, "--renderer", "heavy:crowded", "--renderer-option", "version=3", *SMALL, "--out", "out",
          "--memory", "model-offload")  # fmt: skip
    before = json.loads((Path("out") / "storyboard.json").read_text())["frames"]
    with pytest.raises(RenderError, match="ran out of memory"):
        katha("redo", "out", "--frame", 2, "--seed", 9, "--memory", "full")
    assert json.loads((Path("out") / "storyboard.json").read_text())["frames"] == before
    assert katha("redo", "out", "--frame", 2, "--seed", 9, "--json").exit_code == 0
    after = json.loads((Path("out") / "storyboard.json").read_text())["frames"]
    assert [a["sha256"] == b["sha256"] for a, b in zip(before, after, strict=True)] == [True, False, True]
    assert katha("redo", "out", "--frame", 1, "--seed", 9, "--memory", "full", "--json").exit_code == 0
    with pytest.raises(OutputFolderError, match="another renderer"):
        katha("redo", "out", "--frame", 1, "--seed", 8, "--renderer-option", "version=4")
    with pytest.raises(UsageError, match="no option 'color'"):
        katha("redo", "out", "--frame", 1, "--seed", 8, "--renderer-option", "color=red")


def test_a_comparison_gives_each_renderer_the_options_that_it_has(katha: Katha, tmp_path: Path) -> None:
    config = resolve({"renderer": "heavy", "renderer_options": {"version": 7}, "mode": "base"}, environment={})
    made = cross_methods(config, renderers=["heavy:a", "block", "sketch"], options={"memory": "full"})
    found = {method.name: method.config.renderer_options for method in made}
    assert found == {"heavy:a": {"version": 7, "memory": "full"}, "block": {}, "sketch": {}}
    with pytest.raises(UsageError, match="No renderer here has an option 'steps'"):
        cross_methods(config, renderers=["heavy:a", "block"], options={"steps": "3"})
    file = tmp_path / "methods.yaml"
    file.write_text("- {name: a, renderer: sketch}\n- {name: b, renderer_options: {memory: full}}\n")
    assert [method.config.renderer_options for method in read_methods(file, config)] == [
        {}, {"version": 7, "memory": "full"},
    ]  # fmt: skip
    with pytest.raises(UsageError, match="--methods names the methods already"):
        katha("compare", TEXT, "--methods", file, "--renderer-option", "steps=3")


def test_a_comparison_draws_with_them(katha: Katha) -> None:
    words = ("compare", ROOT / "examples" / "lion_and_mouse.json", "--renderer", "heavy:crowded", "--renderer", "block")
    more = ("--judge", "pixel", "--seeds", "1", "--resamples", "0", "--json", "--out", "out")
    done = katha(*words, *more, "--memory", "model-offload", "--renderer-option", "version=5")
    table = json.loads(done.stdout)["table"]
    assert [row["invalid_rate"] for row in table["methods"]] == [0.0, 0.0]
    methods = json.loads((Path("out") / "compare.json").read_text())["methods"]
    assert [row["config"]["renderer_options"] for row in methods] == [{"version": "5"}, {}]
    assert methods[0]["plugins"]["renderer"]["version"] == 5


def test_a_suite_s_row_has_options_of_its_own(katha: Katha) -> None:
    Path("suite.yaml").write_text(
        "about: x\nbaseline: a\nrows:\n"
        "  a: {mode: base, renderer: block}\n"
        "  b: {mode: base, renderer: heavy, renderer_options: {version: 4}}\n"
        "  c: {mode: base}\n"
    )
    words = ("ablate", ROOT / "examples" / "lion_and_mouse.json", "--suite", "suite.yaml", "--renderer", "heavy")
    more = ("--judge", "pixel", "--seeds", "1", "--resamples", "0", "--json", "--out", "out", "--memory", "full")
    assert katha(*words, *more, "--renderer-option", "version=2").exit_code == 0
    rows = json.loads((Path("out") / "ablation.json").read_text())["plugins"]
    assert [rows[name]["renderer"]["version"] for name in "abc"] == [1, 4, 2]
