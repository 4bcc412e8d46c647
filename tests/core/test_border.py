"""Plug-ins at the border: what they are and say is checked, what they raise is named, and files name no code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import BlockRenderer

from katha.agents.context import make_planner, make_renderer, make_similarity
from katha.config import Settings, refuse_code, resolve
from katha.errors import KathaError, PlanError, UnknownPluginError, UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.plugin_boundary import CheckedSimilarity, named_failures, spec_of
from katha.protocols import Capabilities, Similarity

PLUGIN = """
import sys
from katha.protocols import Capabilities, Judge, Planner, Renderer, Similarity

class Good(Renderer, Planner, Judge, Similarity):
    capabilities = Capabilities()
    concurrency = 1
    def spec(self): return {"name": "good"}
    def render_board(self, requests): return iter(())
    def insert_frame(self, request, context): return b""
    def plan(self, story, request): return None
    def ask(self, evidence, prompts): return iter(())
    def encode_image(self, png): return [1.0]
    def encode_text(self, text): return [1.0]

class Empty: pass
class Looks(Empty):
    capabilities = Capabilities()
    def spec(self): return {"name": "looks"}
    def render_board(self, requests): return iter(())
    def plan(self, story, request): return None
    def ask(self, evidence, prompts): return iter(())
class Lacking(Renderer, Planner, Judge):
    def plan(self, story, request): return None
class Silent(Renderer):
    def spec(self): return {"name": "silent"}
    def render_board(self, requests): return iter(())
class Raises(Good):
    def __init__(self): raise RuntimeError("half made\\nand more")
class Quits(Good):
    def __init__(self): sys.exit(0)
class NoCapabilities(Good): capabilities = None
class NoMultiple(Good): capabilities = Capabilities(size_multiple=0)
class OddSize(Good): capabilities = Capabilities(default_size=("a", "b"))
class NoSize(Good): capabilities = Capabilities(sizes=())
class OddIdentity(Good): capabilities = Capabilities(identity="soul")
class RaisesLater(Good):
    @property
    def capabilities(self): raise RuntimeError("later")
class OddThreads(Good): concurrency = "many"
def number(): return 3
thing = 3
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "oddplug.py").write_text(PLUGIN)
    (tmp_path / "quitsplug.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("oddplug", "quitsplug"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "oddplug"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Empty", r"its class does not inherit katha\.protocols\.Renderer\."),
        ("Looks", r"its class does not inherit katha\.protocols\.Renderer\."),
        ("Lacking", "is none: it has no ask and no render_board and no spec"),
        ("Silent", "not Capabilities"),
        ("Raises", "cannot be made: RuntimeError: half made"),
        ("Quits", "would end the program"),
        ("NoCapabilities", "not Capabilities"),
        ("NoMultiple", "no size that can be drawn"),
        ("OddSize", "default_size.0"),
        ("NoSize", "no size that can be drawn"),
        ("OddIdentity", "identity"),
        ("RaisesLater", "RuntimeError: later"),
        ("number", "does not inherit"),
        ("thing", "is a int, not a class"),
        ("Absent", "cannot be imported"),
    ],
)
def test_what_is_no_renderer_is_refused_with_its_name(plugin: str, name: str, says: str) -> None:
    with pytest.raises(UnknownPluginError, match=says) as caught:
        make_renderer(Settings(renderer=f"{plugin}:{name}"))
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["Empty", "Looks", "Lacking", "Raises", "Quits", "number"])
def test_what_is_no_planner_or_judge_is_refused(plugin: str, name: str) -> None:
    with pytest.raises(UnknownPluginError, match=name):
        make_planner(Settings(planner=f"{plugin}:{name}"))
    with pytest.raises(UnknownPluginError, match=name):
        make_judges([f"{plugin}:{name}"])


def test_a_module_that_quits_and_a_judge_of_odd_abilities_are_refused(plugin: str) -> None:
    with pytest.raises(UnknownPluginError, match="would end the program"):
        make_planner(Settings(planner="quitsplug:Planner"))
    with pytest.raises(UnknownPluginError, match="what it can do: ValueError"):
        make_judges([f"{plugin}:OddThreads"])
    assert make_renderer(Settings(renderer=f"{plugin}:Good")).capabilities == Capabilities()


@pytest.mark.parametrize(
    "spec", [None, 3, {"x": object()}, {"x": float("nan")}, {"x": "\ud800"}, {"x": "y" * 2_000_000}]
)
def test_what_a_plugin_says_it_is_can_be_hashed(spec: object) -> None:
    renderer = BlockRenderer()
    renderer.spec = lambda: spec  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(UnknownPluginError, match="cannot say what it is"):
        spec_of(renderer, "renderer 'block'")


def test_errors_keep_their_kind_and_a_person_s_interrupt_passes() -> None:
    with (
        pytest.raises(PlanError, match=r"^The planner 'x' failed: SystemError: odd\.$"),
        named_failures("planner 'x'", PlanError),
    ):
        raise SystemError("odd.")
    with pytest.raises(UsageError, match="known"), named_failures("planner 'x'", PlanError):
        raise UsageError("known")
    with pytest.raises(KeyboardInterrupt), named_failures("planner 'x'", PlanError):
        raise KeyboardInterrupt


@pytest.mark.parametrize("vector", [None, "x", [], [float("nan"), 1.0], [3.0, 4.0], [[1.0]], [1.0, 0.0, 0.0]])
def test_the_vectors_of_a_similarity_are_looked_at(vector: object) -> None:
    class Odd(Similarity):
        def spec(self) -> dict[str, str]:
            return {"name": "odd"}

        def encode_image(self, png: bytes) -> np.ndarray:
            return np.array([0.0, 1.0])

        def encode_text(self, text: str) -> Any:
            return vector

    looked_at = CheckedSimilarity(Odd(), "similarity 'odd'")
    looked_at.encode_image(b"")
    with pytest.raises(UnknownPluginError, match="gave no vector"):
        looked_at.encode_text("x")


def test_a_similarity_of_one_s_own_is_checked(plugin: str) -> None:
    assert isinstance(make_similarity(Settings(similarity=f"{plugin}:Good")), CheckedSimilarity)


NAMED = [{"renderer": "os:system:touch X"}, {"judges": ["pixel", "os:system:X"]}, {"judges": "a,os:system"}]
NAMED += [{name: "os:system"} for name in ("planner", "bridge_renderer", "guide", "similarity")]
NAMED += [{"steering_judges": ["os:system"]}, {"steering_judges": "a,os:system"}, {"planner": "constrained:os:system"}]


@pytest.mark.parametrize("values", NAMED)
def test_a_file_names_no_code(values: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="because a file names it"):
        refuse_code(values, "The run")
    monkeypatch.setenv("KATHA_ALLOW_CODE", "a:b os:system")
    refuse_code(values, "The run")


def test_a_received_file_names_no_server_to_send_a_key_to(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "https://evil.example/v1"
    options: list[dict[str, object]] = [
        {f"{name}_options": given}
        for name in ("judge", "renderer", "planner", "guide")
        for given in ({"base_url": url}, [f"base_url={url}"], f"base_url={url}", {"server": url}, {"servers": [url]})
    ]
    for values in ({"base_url": url}, *options):
        with pytest.raises(UsageError, match="no key is sent"):
            refuse_code(values, "The run", received=True)
    refuse_code({"base_url": "http://127.0.0.1:8000/v1", "renderer": "sketch:ink"}, "The run", received=True)
    refuse_code({"base_url": url}, "Preset 'mine.yaml'")
    monkeypatch.setenv("KATHA_BASE_URL", url)
    refuse_code({"base_url": url}, "The run", received=True)


def test_a_preset_names_code_only_if_the_command_line_does(tmp_path: Path) -> None:
    preset = tmp_path / "mine.yaml"
    preset.write_text("renderer: oddplug:Good\n")
    with pytest.raises(KathaError, match="because a file names it"):
        resolve({}, preset=str(preset), environment={})
    assert resolve({"renderer": "oddplug:Good"}, preset=str(preset), environment={}).renderer == "oddplug:Good"


@pytest.mark.parametrize(
    "url",
    [
        *("http://host:abc", "http://host:0", "http://host:99999", "http://", "ftp://host", "host", "http://[::1"),
        *("http://a b", "http://a..b", "http://" + "a" * 70, "http://host/#x", "http://host\\x", "http://u:p@host"),
    ],
)
def test_an_address_that_can_be_none_is_refused_at_once_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="base_url") as caught:
        resolve({"base_url": url}, environment={})
    assert "u:p" not in f"{caught.value}{caught.value.__cause__}"


def test_what_freezes_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="KATHA_LOCK freezes nothing"):
        resolve({}, environment={"KATHA_LOCK": "/nosuch.yaml"})
    (tmp_path / "p.yaml").write_text("lock: abc\n")
    with pytest.raises(UsageError, match="names a lock"):
        resolve({}, preset=str(tmp_path / "p.yaml"), environment={})
