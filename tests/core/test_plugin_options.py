"""Options of plug-ins: from `key=value` to a class's keyword-only parameters or options record, or one sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from katha import config
from katha import registry as plugins
from katha.errors import UsageError
from katha.registry import Registry, fit_options, option_names, read_options


class Painter:
    """A plug-in with options of every kind."""

    def __init__(
        self,
        argument: str | None = None,
        *,
        steps: int = 50,
        guidance: float | None = None,
        memory: Literal["full", "quantized"] = "full",
        lora: tuple[str, ...] = (),
        tiling: bool = False,
    ) -> None:
        self.given = (argument, steps, guidance, memory, lora, tiling)


@dataclass(frozen=True, kw_only=True)
class SketchOptions:
    """Options as a record, which refuses what cannot be with a sentence of its own."""

    steps: int = 50
    lora: tuple[str, ...] = ()
    fixed: str = field(default="never told", init=False)

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise UsageError(f"steps is at least 1, not {self.steps}.")


class Sketcher:
    """A plug-in that takes its options as one record."""

    options_class: ClassVar[type[SketchOptions]] = SketchOptions

    def __init__(self, argument: str | None = None, options: SketchOptions | None = None) -> None:
        self.given = (argument, options)


@pytest.fixture
def registry() -> Registry:
    made = Registry("renderers")
    made.register("painter")(Painter)
    made.register("sketcher")(Sketcher)
    return made


def test_values_become_what_the_annotations_say(registry: Registry) -> None:
    given = read_options(["steps=4", "guidance=3.5", "memory=quantized", "lora=a:0.8", "lora=b", "tiling=yes"])
    made = registry.configure("painter:some/model", given)
    assert made.given == ("some/model", 4, 3.5, "quantized", ("a:0.8", "b"), True)
    assert registry.configure("painter", {"lora": "one"}).given[4] == ("one",)


def test_a_record_of_options_is_filled_as_keywords_are(registry: Registry) -> None:
    given = read_options(["steps=4", "lora=a:0.8", "lora=b"])
    made = registry.configure("sketcher:some/model", given)
    assert made.given == ("some/model", SketchOptions(steps=4, lora=("a:0.8", "b")))
    assert registry.create("sketcher").given == (None, SketchOptions())
    assert option_names(Sketcher) == {"steps": "int = 50", "lora": "tuple[str, ...] = ()"}
    for option, words in (("steps=0", "steps is at least 1, not 0"), ("fixed=x", "no option 'fixed'")):
        with pytest.raises(UsageError, match=words):
            registry.configure("sketcher", read_options([option]))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("stesp=4", r"no option 'stesp'.*Did you mean 'steps'"),
        ("steps=four", r"option 'steps' of the renderer 'painter' cannot be 'four': .*integer"),
        ("memory=tiny", r"'full' or 'quantized'"),
        ("argument=x", r"no option 'argument'"),
        ("steps", r"'steps' is not KEY=VALUE"),
    ],
)
def test_what_does_not_fit_is_one_sentence(registry: Registry, given: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        registry.configure("painter", read_options([given]))


def test_a_class_without_options_says_so() -> None:
    class Plain:
        pass

    with pytest.raises(UsageError, match="It has none"):
        fit_options(Plain, {"steps": 1}, "renderer 'plain'")
    assert option_names(Plain) == {}
    assert option_names(Painter)["steps"] == "int = 50"


def test_installed_packages_are_looked_through_once_and_again_when_the_path_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked: list[str] = []
    monkeypatch.setattr(plugins, "entry_points", lambda: looked.append("") or entry_points())
    plugins._installed.cache_clear()
    assert "sketch" in Registry("renderers").names()
    assert "sketch-reader" in Registry("judges").names()
    assert len(looked) == 1
    package = tmp_path / "painted-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: painted\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[katha.renderers]\npainted = painted:Painter\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "painted" in Registry("renderers").names()


def test_a_class_path_may_have_an_argument() -> None:
    made = Registry("renderers").configure(f"{__name__}:Painter:a:b", {"steps": "7"})
    assert made.given[:2] == ("a:b", 7)


def test_an_option_of_a_file_that_is_no_text_is_one_sentence() -> None:
    for odd in ([{"a": [None]}], [None], [7]):
        with pytest.raises(UsageError, match=r"The option .* is not KEY=VALUE"):
            config.resolve({"renderer_options": odd}, environment={})


def test_options_come_from_flags_files_and_the_environment_in_that_order() -> None:
    environment = {"KATHA_RENDERER_OPTIONS": "steps=1 lora='a b'", "KATHA_BRIDGE_RENDERER": "sketch"}
    found = config.resolve({}, environment=environment)
    assert found.renderer_options == {"steps": "1", "lora": "a b"}
    assert found.bridge_renderer == "sketch"
    flags: dict[str, Any] = {"renderer_options": ["steps=9"]}
    assert config.resolve(flags, environment=environment).renderer_options == {"steps": "9", "lora": "a b"}
    with pytest.raises(UsageError, match="not KEY=VALUE"):
        config.resolve({"renderer_options": ["steps"]}, environment={})
