"""How much work drawing takes, counted: transfers, rows of the UNet, decoded frames, copies; with the same pixels."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from doubles import BlockRenderer, plugins, story
from PIL import Image
from shared_boards import LION, board, frame

from benchmarks import gpu
from benchmarks.diffusion import measure_work
from katha.agents.run import run_story
from katha.config import Settings, cache_folder
from katha.errors import UsageError
from katha.protocols import BoardContext, FrameRequest, Renderer, can
from katha.renderers.consistory import ConsistoryRenderer
from katha.renderers.diffusion.flux import FluxRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.placement import ComponentMove, Parking, apply_rung
from katha.renderers.diffusion.renderer import ahead
from katha.renderers.diffusion.sdxl import SdxlRenderer
from katha.renderers.shared_attention.coupling import StepRecord
from katha.renderers.storydiffusion import StoryDiffusionRenderer
from katha.schema import Character
from katha.store import Store

Model = Callable[[str], Path]
WORDS = ("The lion roars.", "The mouse walks.", "The lion walks past the tree.", "An old woman at night.")

pytestmark = pytest.mark.usefixtures("toy_diffusion")


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    process_pool().release()
    yield
    process_pool().release()


def made(kind: Any, folder: Path, **options: Any) -> Any:
    return kind(str(folder), kind.options_class(**{"steps": 2, "device": "cpu", "any_size": True, **options}))


def frames(seed: int = 42) -> list[FrameRequest]:
    return [FrameRequest(words, seed, 32, 32, scene=number) for number, words in enumerate(WORDS, 1)]


def parking_of(renderer: Any) -> Parking:
    with renderer.pipeline(frames()) as loaded:
        assert loaded.parking is not None
        found: Parking = loaded.parking
        return found


def grey(png: bytes) -> Any:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def pixels_apart(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    return max(int(np.abs(grey(a) - grey(b)).max()) for a, b in zip(one, other, strict=True))


# --- transfers


@pytest.mark.parametrize(("kind", "family"), [(FluxRenderer, "flux"), (SdxlRenderer, "sdxl")])
def test_the_denoiser_stays_for_the_whole_board_and_for_the_next(model: Model, kind: Any, family: str) -> None:
    drawer = made(kind, model(family), memory="model-offload")
    drawn = list(drawer.render_board(frames()))
    parking = parking_of(drawer)
    denoiser = drawer.family.denoiser
    assert [(move.name, move.comes) for move in parking.transfers if move.name in (denoiser, "vae")] == [
        (denoiser, True), ("vae", True)
    ]  # fmt: skip
    assert len(parking.transfers) == 2 * len([move for move in parking.transfers if not move.comes]) + 2, (
        "encoders come once"
    )
    assert sum(move.nbytes for move in parking.transfers if not move.comes) == 0, (
        "unchanged weights are not carried back"
    )
    before = len(parking.transfers)
    again = list(drawer.render_board(frames(7)))
    assert len(parking.transfers) == before, "the prompts are known: no encoder, no transfer"
    process_pool().release()
    full = made(kind, model(family))
    assert pixels_apart(drawn, list(full.render_board(frames()))) <= 1
    assert pixels_apart(again, list(full.render_board(frames(7)))) <= 1


def test_the_old_way_moves_the_denoiser_in_and_out_for_every_frame(model: Model) -> None:
    """What diffusers' own hooks do, counted in the same way: the baseline of the test above."""
    from diffusers import FluxPipeline

    theirs = FluxPipeline.from_pretrained(model("flux"))
    theirs.set_progress_bar_config(disable=True)
    theirs.enable_model_cpu_offload(device="cpu")
    brought: list[str] = []  # the hooks bring to `cpu:0` and take back to `cpu`
    original = torch.nn.Module.to

    def counted(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        if self is theirs.transformer and str(args[0]) == "cpu:0":
            brought.append(str(args))
        return original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Module, "to", counted)
        for words in WORDS:
            theirs(words, width=32, height=32, num_inference_steps=1, output_type="pt")
    assert len(brought) == len(WORDS)


def test_an_encoder_that_is_called_again_sets_what_draws_aside(model: Model) -> None:
    drawer = made(FluxRenderer, model("flux"), memory="model-offload")
    list(drawer.render_board(frames()[:2]))
    parking = parking_of(drawer)
    first = len(parking.transfers)
    later = list(drawer.render_board(frames()))
    names = [(move.name, move.comes) for move in parking.transfers[first:]]
    assert ("transformer", False) in names
    assert names.count(("transformer", True)) == 1
    process_pool().release()
    assert pixels_apart(later, list(made(FluxRenderer, model("flux")).render_board(frames()))) <= 1


def test_quantized_weights_stay_where_they_fit_and_move_where_they_do_not(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawer = made(FluxRenderer, model("flux"), memory="quantized")
    with drawer.pipeline(frames()) as loaded:
        assert loaded.parking is None
    resident = list(drawer.render_board(frames()))
    process_pool().release()
    monkeypatch.setattr("katha.renderers.diffusion.renderer.free_bytes", lambda device: 1)
    tight = made(FluxRenderer, model("flux"), memory="quantized")
    assert pixels_apart(resident, list(tight.render_board(frames()))) <= 1
    assert [move for move in parking_of(tight).transfers if move.name == "transformer" and move.comes]


def test_a_component_that_finds_no_room_is_not_taken_for_there(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    drawer = made(FluxRenderer, model("flux"), memory="model-offload")
    parking = parking_of(drawer)
    full = [True]
    original = torch.nn.Module.to

    def crowded(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        if full and args and str(args[0]) != "cpu":
            raise torch.OutOfMemoryError("no room")
        return original(self, *args, **kwargs)

    monkeypatch.setattr(parking, "_device", torch.device("cpu", 0))
    monkeypatch.setattr(torch.nn.Module, "to", crowded)
    with pytest.raises(torch.OutOfMemoryError):
        parking.bring("transformer")
    full.clear()
    parking.bring("transformer")
    assert parking.transfers == [ComponentMove("transformer", True, parking.transfers[0].nbytes)]


def test_layers_come_by_a_stream_on_an_accelerator(model: Model) -> None:
    told: dict[str, Any] = {}

    class Pipe:
        def enable_group_offload(self, **options: Any) -> None:
            told.update(options)
            raise RuntimeError("no device here")

    with pytest.raises(UsageError, match="no device here"):
        apply_rung(Pipe(), "sequential-offload", "cuda:1", "bfloat16", "transformer")
    assert told["use_stream"] is True
    with pytest.raises(UsageError):
        apply_rung(Pipe(), "sequential-offload", "cpu", "bfloat16", "transformer")
    assert told["use_stream"] is False


# --- decoding


@pytest.mark.parametrize(("kind", "family"), [(SdxlRenderer, "sdxl"), (FluxRenderer, "flux2-dev")])
def test_frames_of_a_batch_are_decoded_one_by_one(model: Model, kind: Any, family: str) -> None:
    drawer = made(kind, model(family), batch=4)
    decoded: list[int] = []
    with drawer.pipeline(frames()) as loaded:
        loaded.pipe.vae.decoder.register_forward_pre_hook(lambda _, given: decoded.append(len(given[0])))
    drawn = list(drawer.render_board(frames()))
    assert decoded == [1, 1, 1, 1]
    process_pool().release()
    assert pixels_apart(drawn, list(made(kind, model(family)).render_board(frames()))) <= 1


# --- pictures are written while the next is drawn


def test_the_next_item_is_made_while_one_is_used() -> None:
    begun, ended = threading.Event(), threading.Event()

    def items() -> Generator[int, None, None]:
        try:
            yield 1
            begun.set()
            yield 2
            yield 3
        finally:
            ended.set()

    found = ahead(items())
    assert next(found) == 1
    assert begun.wait(30), "the second item waits until the first was used"
    assert list(found) == [2, 3]
    abandoned = ahead(items())
    ended.clear()
    next(abandoned)
    abandoned.close()
    assert ended.wait(30)


def test_what_was_made_before_a_failure_is_given_first() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("broken")

    found = ahead(items())
    assert next(found) == 1
    with pytest.raises(ValueError, match="broken"):
        next(found)


def test_who_stops_waiting_hurries_the_drawing(model: Model) -> None:
    drawer = made(FluxRenderer, model("flux"), steps=3)
    hold, at_work = threading.Event(), threading.Event()
    calls: list[int] = []
    with drawer.pipeline(frames()) as loaded:
        transformer = loaded.pipe.transformer

        def wait(*_: object) -> None:
            calls.append(1)
            if len(calls) == 4:  # the first step of the second frame
                at_work.set()
                hold.wait(30)

        transformer.register_forward_pre_hook(wait)
    drawn = drawer.render_board(frames())
    next(drawn)
    assert at_work.wait(30)
    threading.Timer(0.0, lambda: _when(loaded.pipe, hold)).start()
    drawn.close()
    assert len(calls) == 4, "steps that nobody waits for are left out"


def _when(pipe: Any, hold: threading.Event) -> None:
    """Let the step go on once the drawing was told to end."""
    for _ in range(3000):
        if pipe._interrupt:
            break
        threading.Event().wait(0.01)
    hold.set()


# --- frames added to a board


def rows_of(renderer: Any, work: Callable[[], Any]) -> tuple[int, Any]:
    rows: list[int] = []
    with renderer.pipeline(board()) as loaded:
        handle = loaded.pipe.unet.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    done = work()
    handle.remove()
    return sum(rows), done


@pytest.mark.parametrize("kind", [ConsistoryRenderer, StoryDiffusionRenderer])
def test_several_bridges_denoise_the_sources_once(model: Model, kind: Any) -> None:
    bridges = [frame("the lion walks past the tree", LION, seed=seed, kind="bridge") for seed in (42, 7, 9)]

    def drawer() -> Any:
        return made(kind, model("sdxl"), keep_gib=0.0, steps=3)

    whole = list(drawer().render_board(board()))
    context = BoardContext(tuple(board()), tuple(whole), 1)
    one, first = rows_of(drawer(), lambda: drawer().insert_frame(bridges[0], context))
    apart, single = rows_of(drawer(), lambda: [drawer().insert_frame(item, context) for item in bridges])
    together, joint = rows_of(drawer(), lambda: list(drawer().insert_frames(bridges, context)))
    assert (single[0], joint) == (first, single)
    assert apart == 3 * one
    sources = (apart - together) // 2
    assert sources > 0
    assert together == one + 2 * (one - sources)


def test_sources_that_cannot_be_kept_are_not_copied(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[int] = []
    moved = StepRecord.moved
    monkeypatch.setattr(StepRecord, "moved", lambda self, device: copied.append(self.nbytes) or moved(self, device))
    roomy = made(StoryDiffusionRenderer, model("sdxl"), steps=4)
    list(roomy.render_board(board()))
    assert roomy._kept[1].complete
    wanted, steps = roomy._kept[1].nbytes, len(copied)
    assert steps == 4
    copied.clear()
    tight = made(StoryDiffusionRenderer, model("sdxl"), steps=4, keep_gib=wanted / 3 / 2**30)
    list(tight.render_board(board()))
    assert not tight._kept[1].complete
    assert sum(copied) == 0, "a third of them fits, which helps nobody"


class Together(BlockRenderer):
    """Adds frames to a board several at a time, as renderers do that share attention."""

    blank: tuple[int, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[int]] = []

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        return next(self.insert_frames([request], context))

    def insert_frames(self, requests: Sequence[FrameRequest], context: BoardContext) -> Iterator[bytes]:
        self.asked.append([request.seed for request in requests])
        for request in requests:
            if request.seed in self.blank:
                flat = io.BytesIO()
                Image.new("RGB", (request.width, request.height), "red").save(flat, "PNG")
                yield flat.getvalue()
            else:
                yield BlockRenderer.insert_frame(self, request, context)


def run_with(renderer: Any, out: Path) -> Any:
    config = Settings(renderer="block", judges=("pixel",), mode="random_bridge", seeds=(1, 2, 3), panels=3,
                      size=(32, 32))  # fmt: skip
    return run_story(story(scenes=3), config, out, plugins=plugins(renderer=renderer))


def test_the_bridges_of_all_seeds_are_asked_for_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = Together()
    assert can(together, Renderer.insert_frames)
    done = run_with(together, tmp_path / "together")
    assert [sorted(seeds) for seeds in together.asked] == [[1, 2, 3]]
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    assert run_with(BlockRenderer(), tmp_path / "apart").board == done.board


class Pictured(Together):
    """The same as a service that is handed portraits and gives receipts."""

    concurrency = 4

    def __init__(self) -> None:
        super().__init__()
        self.portraits: list[FrameRequest] = []
        self.last = -1

    def picture_of(self, character: Character, request: FrameRequest) -> FrameRequest:
        return FrameRequest(f"a portrait of {character.name}", 0, request.width, request.height, kind="extra")

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for request in requests:
            self.last = request.seed
            self.portraits += [request] if request.kind == "extra" else []
            yield next(iter(super().render_board([request])))

    def insert_frames(self, requests: Sequence[FrameRequest], context: BoardContext) -> Iterator[bytes]:
        assert all(request.pictures for request in requests if request.characters)
        for request, png in zip(requests, super().insert_frames(requests, context), strict=True):
            self.last = request.seed
            yield png

    def receipt(self) -> dict[str, Any]:
        return {"service": "pictured", "model": f"seed {self.last}", "served": "", "date": "2026-11-22",
                "tokens": {}, "cost": 0.0}  # fmt: skip


def test_bridges_drawn_at_once_have_their_own_pictures_and_receipts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    pictured = Pictured()
    done = run_with(pictured, tmp_path / "out")
    assert [sorted(seeds) for seeds in pictured.asked] == [[1, 2, 3]]
    assert len(pictured.portraits) == len({request.prompt for request in pictured.portraits}) > 0
    inserted = [item.board for item in done.candidates.candidates if item.kind == "inserted"]
    bridges = [frame for board in inserted for frame in board.frames if frame.kind == "bridge"]
    with Store(cache_folder()) as store:
        receipts = [store.frames.receipt(frame.sha256) or {} for frame in bridges]
    assert [receipt["model"] for receipt in receipts] == [f"seed {frame.seed}" for frame in bridges]
    assert all(receipt["pictures"] for receipt in receipts)


def test_a_bridge_of_one_colour_leaves_the_others(tmp_path: Path) -> None:
    together = Together()
    together.blank = (2,)
    done = run_with(together, tmp_path / "out")
    inserted = [item.board for item in done.candidates.candidates if item.kind == "inserted"]
    drawn = sorted(frame.seed for item in inserted for frame in item.frames if frame.kind == "bridge")
    assert drawn == [1, 3, 3], "seed 2 gave one colour, so its bridge comes from the next seed"


def test_the_benchmark_counts() -> None:
    counts = measure_work()["counts"]
    assert counts["denoiser_brought"] == (10, 1)
    assert counts["decoded_at_once"] == (4, 1)
    assert counts["text_encoder_runs"] == (15, 5)
    assert counts["pictures_read"] == (9, 3)
    assert all(old > new for old, new in counts.values())


def test_the_benchmark_for_accelerators_runs_dry(capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = {}
    for name in gpu._PARTS:
        gpu.run_part(name, gpu.Place(toy=True))
        found[name] = gpu._figures(capsys.readouterr().out.encode())
        assert "failed" not in found[name], found[name]
    assert set(found["flux-dev"]) == {"steps", "exact", "batch_of_4", "fast", "part_s"}
    assert set(found["sharing"]) >= {"sdxl", "consistory", "storydiffusion"}
    assert found["judge"]["questions"] == 2
    assert {"batched", "off"} <= set(found["judge"])
    assert sum(gpu._SHARES.values()) < gpu._BUDGET_S < 600
    assert set(gpu._SHARES) == set(gpu._PARTS)


def test_a_part_of_the_benchmark_for_accelerators_loses_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that raises keeps what it had found; one that is stopped or has no time left says so."""

    def breaks(place: gpu.Place) -> gpu.Found:
        yield "exact", 1
        raise TypeError("no such thing\nand more")

    monkeypatch.setattr(gpu, "_PARTS", {"breaks": breaks})
    gpu.run_part("breaks", gpu.Place(toy=True))
    printed = capsys.readouterr().out
    assert gpu._figures(printed.encode())["failed"] == "TypeError: no such thing"
    assert gpu._figures((printed + '{"fast": [1, 2').encode())["exact"] == 1
    assert gpu._apart("sdxl", True, 0.001) == {"stopped": "after 0 s"}
    table = gpu.measure(toy=True, budget_s=0.0)
    assert all(table[name] == {"left_out": "no time is left"} for name in gpu._SHARES)
    assert len(capsys.readouterr().out.splitlines()) == len(gpu._SHARES)


def test_the_libraries_write_nothing_across_the_live_view(model: Model, capfd: pytest.CaptureFixture[str]) -> None:
    drawer, other = made(SdxlRenderer, model("sdxl"), dtype="float16", steps=1), made(FluxRenderer, model("flux"))
    capfd.readouterr()
    long = FrameRequest("the lion roars at a small grey mouse in the forest " * 12, 1, 32, 32, scene=1)
    list(drawer.render_board([long, frames()[1]]))
    other.count_tokens("the lion roars " * 600)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")
