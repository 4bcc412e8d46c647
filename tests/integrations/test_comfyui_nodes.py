"""The nodes of `integrations/comfyui`, registered and executed as ComfyUI does it, with a stand-in for its types."""

from __future__ import annotations

import asyncio
import importlib.util
import io
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from katha import Plan, run_story
from katha.errors import PlanError, UsageError

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "integrations" / "comfyui"
STORY = (ROOT / "examples" / "fox_and_crow.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The nodes by their ids, as ComfyUI finds them in its folder `custom_nodes`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "tests" / "support" / "comfyui"))
        patch.setenv("COMFYUI_OUTPUT", str(tmp_path_factory.mktemp("comfyui")))
        spec = importlib.util.spec_from_file_location("katha_nodes", PACKAGE / "__init__.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        patch.setitem(sys.modules, "katha_nodes", module)
        spec.loader.exec_module(module)

        async def registered() -> dict[str, Any]:
            extension = await module.comfy_entrypoint()
            await extension.on_load()
            return {node.GET_SCHEMA().node_id: node for node in await extension.get_node_list()}

        yield asyncio.run(registered())
        for name in [name for name in sys.modules if name.startswith(("katha_nodes", "comfy_api", "folder_paths"))]:
            del sys.modules[name]


@pytest.fixture(scope="module")
def planned(nodes: dict[str, Any]) -> tuple[list[str], str]:
    """The prompts of a story and its plan."""
    prompts, plan = nodes["KathaPlan"].call(story=STORY, panels=4)
    return prompts, plan


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory, planned: tuple[list[str], str]) -> torch.Tensor:
    """Four drawn frames as ComfyUI passes them on: [frames, height, width, channels] in 0..1."""
    plan = Plan.model_validate_json(planned[1])
    run = run_story(STORY, out=tmp_path_factory.mktemp("drawn") / "run", plan=plan, mode="base", seeds=(42,))
    arrays = [np.asarray(Image.open(run.out / frame.image).convert("RGB")) for frame in run.board.frames]
    return torch.from_numpy(np.stack(arrays).astype(np.float32) / 255.0)


def test_three_nodes_are_registered_under_one_menu(nodes: dict[str, Any]) -> None:
    assert set(nodes) == {"KathaPlan", "KathaJudge", "KathaBridgePrompt"}
    schemas = [node.GET_SCHEMA() for node in nodes.values()]
    assert {schema.category for schema in schemas} == {"katha"}
    assert all(item.tooltip for schema in schemas for item in (*schema.inputs, *schema.outputs))
    kinds = [(item.id, item.io_type) for item in nodes["KathaJudge"].GET_SCHEMA().outputs]
    assert kinds == [("weakest", "INT"), ("stg", "FLOAT"), ("report", "STRING"), ("reason", "STRING")]


def test_a_story_becomes_a_list_of_prompts(nodes: dict[str, Any], planned: tuple[list[str], str]) -> None:
    prompts, plan = planned
    assert nodes["KathaPlan"].GET_SCHEMA().outputs[0].is_output_list
    assert prompts == [panel.prompt for panel in Plan.model_validate_json(plan).panels]
    styled, _ = nodes["KathaPlan"].call(story=STORY, panels=4, style="watercolour")
    assert styled == [f"watercolour. {prompt}" for prompt in prompts]


def test_a_batch_is_judged_once_and_its_bridge_has_a_prompt(
    nodes: dict[str, Any], planned: tuple[list[str], str], batch: torch.Tensor
) -> None:
    weakest, stg, report, reason = nodes["KathaJudge"].call(images=batch, story=STORY, plan=planned[1])
    assert 1 <= weakest <= 3
    assert stg == -1.0, "the stand-in measures no STG of a plain text"
    assert f"scenes {weakest} and {weakest + 1}" in reason
    page = Path(report)
    assert page.is_file()
    first = page.parent.parent / "frames" / "1.png"
    with Image.open(io.BytesIO(first.read_bytes())) as kept:
        assert np.abs(np.asarray(kept) / 255.0 - batch[0].numpy()).max() < 1e-3
    state = (page.parent / "run.json").read_bytes()
    assert nodes["KathaJudge"].call(images=batch, story=STORY, plan=planned[1])[:2] == (weakest, stg)
    assert (page.parent / "run.json").read_bytes() == state

    prompt, negative = nodes["KathaBridgePrompt"].call(plan=planned[1], weakest=weakest)
    assert prompt
    assert prompt not in planned[0]
    assert isinstance(negative, str)


def test_what_cannot_be_done_gets_a_sentence(nodes: dict[str, Any], planned: tuple[list[str], str]) -> None:
    judge, bridge = nodes["KathaJudge"], nodes["KathaBridgePrompt"]
    with pytest.raises(UsageError, match="at least two frames"):
        judge.call(images=torch.zeros(1, 8, 8, 3), story=STORY)
    with pytest.raises(UsageError, match="have the shape"):
        judge.call(images=torch.zeros(4, 8, 8), story=STORY)
    with pytest.raises(UsageError, match="story is empty"):
        nodes["KathaPlan"].call(story="  ", panels=4)
    with pytest.raises(PlanError, match="no plan"):
        bridge.call(plan="{}", weakest=1)
    with pytest.raises(UsageError, match="follows scene 9"):
        bridge.call(plan=planned[1], weakest=9)


def test_the_package_names_what_it_needs() -> None:
    known = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))
    assert [item.split(">=")[0] for item in known["project"]["dependencies"]] == ["katha[sketch]"]
    assert known["tool"]["comfy"]["DisplayName"] == "katha"
