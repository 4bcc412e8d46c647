"""`make reader` end to end at toy size: real drawings, a real network, real ONNX; and the loss against a plain one."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from katha.jsonio import loads
from katha_sketch.drawing import rasterise
from katha_sketch.drawing.scenes import Scene, SceneActor, SceneThing, frame_scene
from katha_sketch.reader import load_concepts, load_reader
from katha_sketch.reader.network import (
    HEIGHT,
    WIDTH,
    Concepts,
    Reader,
    Window,
    coarse,
    fit_into,
    moved,
    read_gallery,
)

ROOT = Path(__file__).parents[2]
FRAMES = 24
LION = SceneActor("a", "figure", concept="lion", deed="run", mood="happy", target=None)


@pytest.fixture(scope="module")
def module() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))

        def load(name: str) -> ModuleType:
            return importlib.import_module(f"training.reader.{name}")

        yield load


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `python -m training.reader` leaves after a handful of steps."""
    out = tmp_path_factory.mktemp("reader")
    command = [sys.executable, "-m", "training.reader", "--out", str(out), "--data", str(out / "data")]
    sizes = ["--frames", str(FRAMES), "--test-frames", "8", "--effort", "0.2", "--workers", "1", "--pictograms", "40"]
    sizes += ["--stories", "3", "--afresh"]
    done = subprocess.run([*command, *sizes], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def test_a_toy_run_trains_exports_and_writes_its_card(made: Path) -> None:
    card = loads((made / "card.json").read_text())
    for network in ("finder", "namer"):
        assert card[f"{network}_steps"] >= 2
        assert 0 < card[f"{network}_last_loss"] < card[f"{network}_first_loss"]
    assert card["train_frames"] == FRAMES
    files = [path for path in made.iterdir() if path.suffix in (".onnx", ".npz")]
    assert card["bytes"] == sum(path.stat().st_size for path in files) < 12_000_000
    assert set(card["prop_macro_f1"]) == {"learnt", "never learnt"}
    assert "macro-F1" in (made / "CARD.md").read_text()
    assert set(card["in_stories_f1"]) == set(card["overall_f1"])


def test_moments_of_stories_are_drawn_beside_random_ones(module: Any, made: Path, tmp_path: Path) -> None:
    """As planned; a split without stories has none, and the same stories are planned once."""
    from training.reader.told import FOLDER, told

    drawing, scenes = module("drawing"), module("scenes")
    file = drawing.told_file(made / "data", "train")
    planned = scenes.told_scenes(file)
    assert len(planned) > 12
    assert {actor.deed for scene in planned for actor in scene.actors} > {"stand"}
    assert scenes.told_scenes(drawing.told_file(made / "data", "test")) == ()
    drawn = [drawing.sample(seed, "train", [Scene("desert", actors=(LION,))]).labels for seed in range(60)]
    lions = [one for one in drawn if one is not None and [item.concept for item in one.items] == ["lion"]]
    assert len(lions) in range(15, 46)
    assert {one.setting for one in lions} == {"desert"}
    stamp = file.stat().st_mtime_ns
    scenes.tell_stories(file, list(told(FOLDER))[:3], scenes.pickle.loads(file.read_bytes())[0].rpartition("/")[0], 1)
    assert file.stat().st_mtime_ns == stamp


def test_what_it_exports_reads_pictures(made: Path) -> None:
    value = loads((made / "concepts.json").read_text())
    lists = {key: tuple(item) if isinstance(item, list) else item for key, item in value.items()}
    frame = frame_scene(Scene("forest", actors=(LION,)), 768, 512, 5)
    models = (made / "finder.onnx").read_bytes(), (made / "namer.onnx").read_bytes()
    gallery = read_gallery((made / "gallery.npz").read_bytes())
    reading = Reader(*models, Concepts(**lists), gallery).read(rasterise(frame.svg, 768, 512))
    assert sum(reading.settings.values()) == pytest.approx(1.0, abs=1e-4)
    assert set(reading.peaks) <= {
        *(f"character/{name}" for name in value["characters"]),
        *(f"prop/{name}" for name in gallery.words),
    }


def test_a_run_that_goes_on_begins_where_the_reader_was(module: Any, tmp_path: Path) -> None:
    """The network that goes on computes what the shipped one computes, before its first step."""
    import torch

    net, resume, export = module("net"), module("resume"), module("export")
    concepts, shipped = load_concepts(), ROOT / "src" / "katha_sketch" / "reader"
    torch.manual_seed(1)
    pixels = torch.rand(4, 3, HEIGHT, WIDTH)
    model = net.FinderNet(len(concepts.settings), len(concepts.times))
    resume.resumed_finder(model, shipped, concepts, [pixels])
    mine = Reader(export.finder_to_onnx(model), (shipped / "namer.onnx").read_bytes(), concepts, load_reader().gallery)
    batch = {"pixels": pixels.numpy()}
    for one, other in zip(mine._finder.run(None, batch), load_reader()._finder.run(None, batch), strict=True):
        assert np.abs(one - other).max() < 0.05


def test_a_namer_that_goes_on_learns_pictograms_from_where_the_gallery_has_them(module: Any) -> None:
    import torch

    net, resume = module("net"), module("resume")
    concepts, shipped = load_concepts(), ROOT / "src" / "katha_sketch" / "reader"
    gallery = load_reader().gallery
    props = (gallery.words[3], "no pictogram of the gallery", gallery.words[-1])
    model = net.NamerNet(*map(len, concepts.named), len(props))
    views = tuple(torch.rand(4, *shape) for shape in ((3, 64, 64), (4, 80, 80), (3, 64, 64)))
    resume.resumed_namer(model, shipped, concepts, props, [views])
    near = gallery.likeness(model.proxies.detach().numpy())
    assert [gallery.words[row.argmax()] for row in near[[0, 2]]] == [props[0], props[2]]
    assert near[0].max() > 0.9 > near[1].max()
    assert not any(weight.requires_grad for weight in model.body.grid[0].parameters())
    assert all(weight.requires_grad for weight in model.body.grid[3].parameters())


def test_the_jitter_is_whole_at_the_end_whether_steps_or_minutes_end_it(module: Any) -> None:
    """A training that its minutes end would otherwise never see windows as wrong as a finder cuts them."""
    import time

    batches = module("batches")
    by_steps = batches.Course(200, 1e9)
    assert [by_steps.done(step) for step in (0, 100, 200, 300)] == pytest.approx([0.0, 0.5, 1.0, 1.0], abs=1e-6)
    by_time = batches.Course(10**9, 60.0, begun=time.perf_counter() - 45)
    assert by_time.done(1) == pytest.approx(0.75, abs=0.05)
    assert batches.Jitter().at(by_time.done(1)) == batches.Jitter()


def test_drawings_are_made_once_and_repeat(module: Any, tmp_path: Path) -> None:
    drawing = module("drawing")
    first = drawing.draw_set(tmp_path, "train", 6, "key", workers=1)
    again = drawing.draw_set(tmp_path, "train", 6, "key", workers=1)
    assert again.labels == first.labels
    assert np.array_equal(coarse(drawing.sample(3, "train").pixels), first.pixels[3])
    assert not np.array_equal(coarse(drawing.sample(3, "test").pixels), first.pixels[3])
    assert all(np.array_equal(one, two) for one, two in zip(again.windows.heads, first.windows.heads, strict=True))
    asked = [item for label in first.labels if label is not None for item in label.items if item.counts]
    seen = [item.concept for item in asked if item.kind == "prop"]
    assert list(first.windows.things)[: len(seen)] == seen
    assert list(first.windows.things)[len(seen) :] == list(module("scenes").drawn_pictograms())
    rigged = [row[0] for row in first.windows.figures if row[0]]
    assert rigged == [item.concept for item in asked if item.kind == "character"]


def test_drawing_that_was_broken_off_goes_on_where_it_was(module: Any, tmp_path: Path) -> None:
    """More frames are drawn beside those that are there; under another key all are drawn again."""
    drawing = module("drawing")
    few = drawing.draw_set(tmp_path, "test", 2, "key", workers=1)
    before = np.array(few.pixels)
    file = next(tmp_path.glob("test-*.json"))
    stamp = file.stat().st_mtime_ns
    more = drawing.draw_set(tmp_path, "test", 3, "key", workers=1)
    assert np.array_equal(more.pixels[:2], before)
    assert more.labels[:2] == few.labels
    assert file.stat().st_mtime_ns > stamp
    held = file.read_bytes()
    assert drawing.draw_set(tmp_path, "test", 2, "key", workers=1).labels == few.labels
    assert file.read_bytes() == held
    drawing.draw_set(tmp_path, "test", 2, "other", workers=1)
    assert file.read_bytes() != held


def test_the_fast_focal_loss_has_the_plain_ones_gradient(module: Any) -> None:
    import torch
    from torch.nn import functional

    targets = module("targets")
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 6, 7, requires_grad=True)
    wanted = torch.zeros(2, 5, 6, 7)
    wanted[0, 1, 2, 3], wanted[0, 1, 2, 4], wanted[1, 1, 1, 1], wanted[1, 0, 0, 0] = 1.0, 0.5, 2.0, 1.0
    cells = torch.nonzero(wanted, as_tuple=True)
    fast = targets._Focal.apply(logits, cells, wanted[cells])
    (mine,) = torch.autograd.grad(fast, logits)
    p = torch.sigmoid(logits).detach()
    weight = torch.where(wanted == 1, (1 - p) ** 2, (1 - wanted.clamp(max=1)) ** 4 * p**2)
    plain = functional.binary_cross_entropy_with_logits(logits, (wanted == 1).float(), weight, reduction="sum")
    (theirs,) = torch.autograd.grad(plain, logits)
    assert torch.allclose(mine, theirs, atol=1e-6)


def test_targets_put_a_peak_where_the_head_is_and_mirror_it(module: Any) -> None:
    labels, targets = module("labels"), module("targets")
    main = module("__main__")
    concepts = main.drawn_concepts()
    item = labels.Item("lion", "character", 20.0, 100.0, 12.0, True, (26.0, 124.0, 48.0), "run", "happy")
    frame = labels.FrameLabels((item,), "forest", "night")
    made = targets.batch_targets([frame, frame, None], [False, True, False], concepts)
    peaks = {tuple(int(part[n]) for part in made.cells) for n in range(len(made.wanted)) if made.wanted[n] == 1}
    assert peaks == {(0, 0, 12, 2), (1, 0, 12, int((WIDTH - 20) // 8))}
    told = {tuple(cell) for cell in made.at.tolist()}
    assert {cell for cell in told if cell[0] == 0} == {(0, 12, 2), (0, 11, 2), (0, 13, 2), (0, 12, 1), (0, 12, 3)}
    shapes = dict(zip(map(tuple, made.at.tolist()), made.shapes.tolist(), strict=True))
    here, mirrored = shapes[0, 12, 2], shapes[1, 12, 39]
    assert here[:6] == pytest.approx([0.0, 0.0, np.log(12 / 8), 0.5, 2.0, np.log(4)], abs=1e-5)
    assert mirrored[:6] == pytest.approx([0.0, 0.0, np.log(12 / 8), -0.5, 2.0, np.log(4)], abs=1e-5)
    assert all(np.isnan(here[6:]))
    assert made.share.tolist() == pytest.approx([0.2] * 10)
    assert made.sketch.tolist() == [1.0, 1.0, 0.0]
    assert made.setting.tolist() == [concepts.index["setting"]["forest"]] * 2 + [-1]


def test_only_what_a_person_could_read_is_asked(module: Any) -> None:
    """A face is asked for its feeling where it is large enough and the deed leaves it alone, and only there."""
    labels = module("labels")
    mouse = SceneActor("m", "figure", concept="mouse", deed="stand", mood="happy")
    horse = SceneActor("h", "figure", concept="horse", deed="walk", mood="sad")
    asked = {"wide": [], "close": []}
    for seed in range(6):
        for shot in asked:
            scene = Scene("forest", actors=(mouse, horse), shot=shot)
            frame = frame_scene(scene, 768, 512, seed)
            items = labels.label_frame(scene, frame, 768, 512, fit_into(768, 512)).items
            asked[shot] += [item for item in items if item.kind == "character" and item.counts]
    for item in (*asked["wide"], *asked["close"]):
        assert (item.emotion is not None) == (item.radius >= labels.EMOTION_RADIUS)
        assert 0 <= item.x <= WIDTH
        assert 0 <= item.y <= HEIGHT
    assert all(item.emotion is not None for item in asked["close"])


def test_things_are_labelled_by_what_they_are(module: Any) -> None:
    """A held thing, the tool that a deed implies, an actor without a rig, and a stand-in that has no name."""
    labels = module("labels")
    girl = SceneActor("g", "person", deed="write", target="t")
    ghost = SceneActor("spirit", "pictogram", pictogram="ghost", deed="run", mood="angry")
    things = (
        SceneThing("t", "book", "open-book", "document", 30, "table", "object", "g"),
        SceneThing("s", "thingamajig", None, "thing", 60),
    )
    scene = Scene("attic", actors=(girl, ghost), things=things)
    frame = frame_scene(scene, 768, 512, 3)
    found = labels.label_frame(scene, frame, 768, 512, fit_into(768, 512))
    assert (found.setting, found.time) == ("attic", "day")
    named = {item.concept: item for item in found.items}
    assert {"man", "open-book", "pencil"} <= set(named)
    assert named["man"].kind == "character"
    alone = Scene("attic", actors=(ghost,))
    frame = frame_scene(alone, 768, 512, 3)
    (seen,) = labels.label_frame(alone, frame, 768, 512, fit_into(768, 512)).items
    assert (seen.concept, seen.kind, seen.action, seen.emotion) == ("ghost", "prop", "act:run", "angry")
    assert not any(item.counts for item in found.items if not item.concept)


def test_calibration_takes_the_threshold_of_best_f1(module: Any) -> None:
    """What is named falsely counts also where no frame shows what it is named."""
    best = module("measure").best_threshold
    assert best([(0.9, True), (0.8, True), (0.5, False), (0.2, False)]) == pytest.approx(0.65, abs=0.16)
    there, not_there = [(0.5, True)] * 10 + [(0.2, True)], [(0.3, False)] * 30
    assert best([*there, *not_there]) == pytest.approx(0.4, abs=0.1)
    assert best(there) <= 0.2


def test_the_finder_finds_what_the_targets_say(module: Any) -> None:
    """Maps made of the targets are read back as the labels they came from."""
    from katha_sketch.reader.network import find_heads, find_things

    labels, targets = module("labels"), module("targets")
    concepts = module("__main__").drawn_concepts()
    head = labels.Item("lion", "character", 83.0, 100.5, 12.0, True, (90.0, 124.0, 48.0), "run", "happy")
    thing = labels.Item("net", "prop", 201.0, 77.0, 15.0, True, (203.0, 76.0, 22.0))
    made = targets.batch_targets([labels.FrameLabels((head, thing), "forest", "day")], [False], concepts)
    heat, shapes = (
        np.zeros((2, HEIGHT // 8, WIDTH // 8), np.float32),
        np.zeros((9, HEIGHT // 8, WIDTH // 8), np.float32),
    )
    heat[tuple(part.numpy() for part in made.cells[1:])] = made.wanted.numpy()
    for (_, row, column), shape in zip(made.at.tolist(), made.shapes.numpy(), strict=True):
        shapes[:, row, column] = np.where(np.isnan(shape), shapes[:, row, column], shape)
    (found,), (seen,) = find_heads(heat[0], shapes), find_things(heat[1], shapes)
    assert (found.x, found.y, found.radius, *found.body) == pytest.approx((83, 100.5, 12, 90, 124, 48), abs=0.01)
    assert (seen.x, seen.y, seen.half) == pytest.approx((201, 77, 22), abs=0.01)


def test_a_changed_window_keeps_its_mark_on_the_head(module: Any) -> None:
    """A bright dot where the head is stays under the mark when the window is mirrored, turned, zoomed and shifted."""
    import torch

    batches, windows = module("batches"), module("windows")
    side = windows._BODY
    mark = np.array([[0.3, 0.6, 0.05]], np.float32)
    stored = np.zeros((side, side, 3), np.uint8)
    at = ((2 * mark[0, :2] - 1) / windows.ROOM + 1) / 2 * side
    stored[int(at[1]) - 1 : int(at[1]) + 2, int(at[0]) - 1 : int(at[0]) + 2] = 255
    one = torch.ones(1)
    for flip, angle in ((-1.0, 0.0), (1.0, 0.0), (1.0, 2.0), (-1.0, -0.7)):
        changes = batches._Changes(flip * one, angle * one, 1.2 * one, 0.1 * one, -0.05 * one, 0 * one, one)
        seen = batches._seen([stored], changes, torch.eye(3)[None], 80)[0, 0].numpy()
        row, column = np.unravel_index(seen.argmax(), seen.shape)
        moved = batches._marks(mark, changes, torch.Generator().manual_seed(1))[0]
        assert abs(moved[0] * 80 - column - 0.5) < 2.5
        assert abs(moved[1] * 80 - row - 0.5) < 2.5


def test_a_changed_window_says_where_it_should_have_been_cut(module: Any) -> None:
    """The place that is learnt leads from the changed window back to the true one, up to the turn and mirroring."""
    import torch

    batches, one = module("batches"), torch.ones(1)
    changes = batches._Changes(one, 0 * one, 1.2 * one, 0.1 * one, -0.05 * one, 0 * one, one)
    true, given = Window(50, 40, 20), Window(50 + 0.1 * 20, 40 - 0.05 * 20, 1.2 * 20)
    found = moved(given, batches._places(changes)[0].numpy())
    assert (found.x, found.y, found.half) == pytest.approx((true.x, true.y, true.half), abs=1e-4)


def test_a_turned_figure_is_not_asked_what_it_does(module: Any) -> None:
    import torch

    batches = module("batches")
    angles, turned = batches._angles(4000, 0.25, torch.Generator().manual_seed(1))
    assert 0.2 < turned.float().mean() < 0.3
    assert angles[~turned].abs().max() < 0.3
    assert angles[turned].max() > 3


def test_the_jitter_grows_to_the_whole(module: Any) -> None:
    most = module("batches").Jitter()
    assert most.at(1.0) == most
    assert 0 < most.at(0.0).heads[0] < most.at(0.3).heads[0] < most.heads[0]


def test_changed_colours_keep_their_lightness(module: Any) -> None:
    import torch

    batches = module("batches")
    wild = batches.Jitter((0, 0), (0, 0), (0, 0), greys=0.5, tints=0.5)
    colours = batches._colours(64, wild, torch.Generator().manual_seed(1))
    assert torch.allclose(colours.sum(1), torch.ones(64, 3), atol=1e-5)
    red = colours @ torch.tensor([1.0, 0.0, 0.0])
    grey = (red - red.mean(1, keepdim=True)).abs().amax(1) < 1e-6
    assert 15 < int(grey.sum()) < 50
    plain = batches._colours(8, batches.Jitter(greys=0, tints=0), torch.Generator().manual_seed(1))
    assert torch.equal(plain, torch.eye(3).expand(8, 3, 3))
