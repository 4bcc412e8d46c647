"""What sharing needs in memory: worked out from shapes beforehand, against the tensors that were alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from tiny_diffusion import build
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from katha.errors import UsageError
from katha.protocols import FrameRequest
from katha.renderers.consistory import ConsistoryRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.placement import Frames, MemoryNeed, needs_of
from katha.renderers.shared_attention.denoise import shared_layers
from katha.renderers.shared_attention.renderer import board_of, shown_share
from katha.renderers.storydiffusion import StoryDiffusionRenderer
from katha.schema import Character

CAST = [
    Character(name=name, kind=name, appearance=f"the {name}", anchor_prompt=f"the {name}")
    for name in ("lion", "mouse", "hare")
]


class Live(TorchDispatchMode):
    """Counts the bytes of all tensors that are alive at once, the weights of `pipe` apart."""

    def __init__(self, pipe: Any) -> None:
        super().__init__()
        self.now = self.peak = 0
        models = [part for part in pipe.components.values() if isinstance(part, torch.nn.Module)]
        self._weights = [item.untyped_storage() for part in models for item in (*part.parameters(), *part.buffers())]
        self._known = {id(storage): 0 for storage in self._weights}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for item in tree_leaves(out):
            if isinstance(item, torch.Tensor) and item.device.type != "meta":
                self._count(item.untyped_storage())
        return out

    def _count(self, storage: Any) -> None:
        if id(storage) not in self._known:
            self._known[id(storage)] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, id(storage))

    def _drop(self, key: int) -> None:
        self.now -= self._known.pop(key)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield build("sdxl", tmp_path_factory.mktemp("model") / "sdxl")
    process_pool().release()
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def board(subjects: int, side: int = 32) -> list[FrameRequest]:
    """Scenes of one or two characters each."""
    casts = [(0,), (0, 1), (1, 2), (2,)]
    chosen = [tuple(CAST[at] for at in cast if at < subjects) or (CAST[0],) for cast in casts]
    return [
        FrameRequest(
            f"{' and '.join(f'the {item.name}' for item in cast)} walks", 42, side, side, scene=number, characters=cast
        )
        for number, cast in enumerate(chosen, 1)
    ]


def made(kind: Any, folder: Path, **options: Any) -> Any:
    return kind(
        str(folder), kind.options_class(**{"device": "cpu", "steps": 3, "keep_gib": 0.0, "any_size": True, **options})
    )


def worked_out(renderer: Any, frames: list[FrameRequest]) -> MemoryNeed:
    found: MemoryNeed = renderer.work(board_of(frames), frames)
    return found


@pytest.mark.parametrize(
    ("kind", "subjects", "options"),
    [
        (ConsistoryRenderer, 1, {}),
        (ConsistoryRenderer, 3, {"injection": False}),
        (StoryDiffusionRenderer, 3, {"identity_images": 3}),
    ],
)
def test_what_is_worked_out_is_what_is_there_at_most(
    folder: Path, kind: Any, subjects: int, options: dict[str, Any]
) -> None:
    renderer, frames = made(kind, folder, **options), board(subjects)
    work = worked_out(renderer, frames)
    with renderer.pipeline(frames, work) as loaded:
        for frame in frames:
            renderer.encode(loaded, frame)
        with Live(loaded.pipe) as live:
            renderer._denoise(loaded, board_of(frames), frames)
    assert live.peak <= work.device <= 3 * live.peak


def test_the_bank_and_the_anchors_batch_count(folder: Path) -> None:
    one, two = (worked_out(made(StoryDiffusionRenderer, folder), board(count)) for count in (1, 3))
    assert one.device < two.device
    few = worked_out(made(ConsistoryRenderer, folder, anchors=1), board(3))
    assert few.device < worked_out(made(ConsistoryRenderer, folder, anchors=2), board(3)).device
    alone = worked_out(made(ConsistoryRenderer, folder, sharing=False), board(3))
    assert alone.device < few.device
    kept = worked_out(made(ConsistoryRenderer, folder, keep_gib=1.0), board(3))
    assert kept.host > alone.host == 0
    smaller = worked_out(made(StoryDiffusionRenderer, folder, bank_mib=1), board(3, 512))
    assert smaller.device < worked_out(made(StoryDiffusionRenderer, folder), board(3, 512)).device


def test_the_shapes_are_those_of_the_loaded_unet(folder: Path) -> None:
    renderer = made(ConsistoryRenderer, folder)
    frames = board(1)
    with renderer.pipeline(frames) as loaded:
        assert shared_layers(renderer.shapes, (16, 16)) == shared_layers(loaded.pipe.unet, (16, 16))
        assert renderer.shapes.dtype == loaded.pipe.unet.dtype
    assert all(weight.is_meta for weight in renderer.shapes.parameters())


def test_a_larger_board_is_checked_though_the_model_is_in_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process_pool().release()
    renderer = made(ConsistoryRenderer, folder)
    small, large = board(1), board(3, 256)
    with renderer.pipeline(small, worked_out(renderer, small)):
        pass
    loads = process_pool().loads
    work = worked_out(renderer, large)
    beside = needs_of(renderer.checkpoint, "float32", Frames(256 * 256, work=work), loaded="full")["full"].device
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"available": beside - 7})())
    with pytest.raises(UsageError, match=r"needs [\d,]+ bytes on 'cpu': 7 are missing"):
        next(iter(renderer.render_board(large)))
    assert process_pool().loads == loads
    with renderer.pipeline(small, worked_out(renderer, small)) as loaded:
        assert loaded.pipe is not None


def test_the_share_that_is_shown() -> None:
    assert shown_share(4096, 0.5) == pytest.approx(0.53125)
    assert shown_share(4, 0.5) == shown_share(4096, 1.0) == 1.0
