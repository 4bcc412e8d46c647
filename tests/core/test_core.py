"""Configuration precedence, the registry, JSON on disk, prompts, and the public surface of the core."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from katha import config, jsonio
from katha.configs import config_names, load_prompt
from katha.errors import InputFileError, StoreError, UnknownPluginError, UsageError
from katha.registry import Registry, default_registry

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


def test_a_flag_beats_the_preset_beats_the_environment_beats_the_default(tmp_path: Path) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text("mode: base\npanels: 7\n")
    environment = {"KATHA_MODE": "bridge_only", "KATHA_PANELS": "3", "KATHA_STYLE": "ink", "KATHA_CACHE": "x"}
    found = config.resolve({"mode": "full", "panels": None}, preset=str(preset), environment=environment)
    assert (found.mode, found.panels, found.style, found.renderer) == ("full", 7, "ink", "sketch")


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ({"seeds": "1,1"}, "each once"),
        ({"seeds": "-3"}, "whole number from 0"),
        ({"size": "big"}, "768x512"),
        ({"panels": 1}, "greater than or equal to 2"),
        ({"answers": "essay"}, "choice"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_bad_setting_is_named(flags: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        config.resolve(flags, environment={})
    assert next(iter(flags)) in str(caught.value)


def test_a_bad_value_of_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(UsageError, match=r"'panels' \(KATHA_PANELS\)"):
        config.resolve({}, environment={"KATHA_PANELS": "many"})
    with pytest.raises(UsageError, match=r"'panels':"):
        config.resolve({"panels": 1}, environment={"KATHA_PANELS": "many"})


def test_sizes_and_lists_are_read_from_text() -> None:
    found = config.resolve({}, environment={"KATHA_SIZE": "640X480", "KATHA_SEEDS": "1, 2", "KATHA_JUDGES": "a,b"})
    assert (found.size, found.seeds, found.judges) == ((640, 480), (1, 2), ("a", "b"))


def test_every_preset_resolves() -> None:
    assert "embedded" in config_names("presets")
    for name in config_names("presets"):
        config.resolve({}, preset=name, environment={})


def test_an_unknown_preset_and_a_preset_that_is_no_mapping_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownPluginError, match=r"Known: .*embedded"):
        config.load_preset("nothing")
    path = tmp_path / "list.yaml"
    path.write_text("- a\n")
    with pytest.raises(UsageError, match="mapping"):
        config.load_preset(str(path))
    path.write_text("a: [")
    with pytest.raises(UsageError, match="not YAML"):
        config.load_preset(str(path))


@pytest.mark.skipif(sys.platform != "linux", reason="the place of caches is the system's")
def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path))
    assert config.cache_folder() == tmp_path
    monkeypatch.setenv("KATHA_CACHE", "~/pictures")
    assert config.cache_folder() == Path.home() / "pictures"
    monkeypatch.delenv("KATHA_CACHE")
    assert config.cache_folder() == Path("/x/katha")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert config.cache_folder() == Path.home() / ".cache" / "katha"


def test_the_shipped_plugins_are_known_and_a_typo_is_helped() -> None:
    assert "sketch" in default_registry("renderers").names()
    with pytest.raises(UnknownPluginError, match="Did you mean 'sketch'"):
        default_registry("renderers").load("sketh")


def test_a_class_path_and_a_decorated_class_load() -> None:
    registry = Registry("judges")

    @registry.register("mine")
    class Mine:
        def __init__(self, argument: str | None = None) -> None:
            self.argument = argument

    assert registry.create("mine:a:b").argument == "a:b"
    assert registry.load("collections.abc:Mapping")[0] is importlib.import_module("collections.abc").Mapping
    with pytest.raises(UnknownPluginError, match="cannot be imported"):
        registry.load("no.such:Thing")


@given(JSON)
def test_canonical_json_reads_back_and_does_not_depend_on_key_order(value: Any) -> None:
    assert jsonio.loads(jsonio.canonical(value).decode()) == value
    if isinstance(value, dict):
        assert jsonio.digest(dict(reversed(value.items()))) == jsonio.digest(value)


def test_not_a_number_is_neither_written_nor_read() -> None:
    with pytest.raises(ValueError, match="JSON"):
        jsonio.dumps(float("nan"))
    with pytest.raises(ValueError, match="NaN"):
        jsonio.loads("[NaN]")
    with pytest.raises(ValueError, match="1e999 is too large"):
        jsonio.loads("[1e999]")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    jsonio.write_json(path, {"old": True})

    def full(source: str, target: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="Free some space"):
        jsonio.write_json(path, {"new": True})
    assert jsonio.read_json(path) == {"old": True}
    assert os.listdir(tmp_path) == ["a.json"]


def test_broken_json_is_named_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a":\n  oops}')
    with pytest.raises(InputFileError, match="line 2, column 3"):
        jsonio.read_json(path)


def test_an_unknown_prompt_is_an_error() -> None:
    with pytest.raises(UsageError, match="No prompt is called 'judge/nothing'"):
        load_prompt("judge/nothing")


@pytest.mark.parametrize(
    "name",
    [*(f"katha.{name}" for name in ("errors", "jsonio", "schema", "protocols", "registry", "reading", "configs",
        "config", "stories", "store", "eval_bridge.scoring.scores", "compass.repair", "agents.run",
        "planners.gemma_st", "renderers.folder"))],
)  # fmt: skip
def test_the_public_surface_is_documented(name: str) -> None:
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    own = {item for item, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__}
    public = {item: getattr(module, item) for item in listed or own if not item.startswith("_")}
    assert public
    coded = {item: thing for item, thing in public.items() if inspect.isclass(thing) or inspect.isfunction(thing)}
    assert [item for item, thing in coded.items() if not inspect.getdoc(thing)] == []


def test_tables_are_read_as_yaml_reads_them() -> None:
    shipped = Path(jsonio.__file__).resolve().parents[2]
    tables = [path for folder in ("src", "configs", "renderers") for path in (shipped / folder).rglob("*.yaml")]
    texts = [path.read_text(encoding="utf-8") for path in tables]
    assert len(texts) > 30
    own = "a: &one [1, 2.5, 'x', no, ~, 2026-11-26, 0x1F]\nb: {c: *one, 3: null}\nd: |\n  e\n"
    for text in (*texts, own, "", "- >\n  folded\n  text\n", "just a word"):
        assert repr(jsonio.parse_table(text)) == repr(yaml.load(text, Loader=yaml.CSafeLoader))
    with pytest.raises(ValueError, match="no tags: line 2"):
        jsonio.parse_table("a: 1\nb: !!str 2\n")
