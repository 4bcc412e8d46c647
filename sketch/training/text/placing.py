"""Train what `katha_sketch.planner.placing` tells places by, and write planners/placing.npz.

python -m training.text.placing [--epochs N] [--out FOLDER]

Each story of `stories/` is read as the planner reads it. Learned is how much each clue counts, the same for all places,
and in which directions a sentence and a place lie near each other; of no place its own weights, since most places have
few stories, and an unseen one may be anywhere. `python -m training.text.context` runs it too: its network is what
sentences and the words of places.yaml are read with. Printed is what is right, wrong and left open in stories/unseen.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from katha_sketch.english.context import rows_of
from katha_sketch.english.reading import read_story
from katha_sketch.planner.heard import heard
from katha_sketch.planner.moments import Story
from katha_sketch.planner.placing import CLUES, STEPS, clues, near, rows_in, steps
from katha_sketch.planner.settings import Setting, settings
from training.text.told import FOLDER, NOWHERE, Told, aligned, told

__all__ = ["Example", "Net", "described", "example", "main", "train", "write"]

OUT = Path(__file__).parents[2] / "src" / "katha_sketch" / "planner"
RANK, INNER = 32, 16
BATCH = 32
RATES = {"clues": (5e-2, 1e-3), "inner": (1e-2, 1e-2), "rows": (2e-3, 0.1), "toward": (2e-3, 0.1)}
"""How fast each part is learned, and how much of it decays."""
LISTED, ALONE = 60, 25
"""How many of a place's words describe it together, and how many one by one."""
SURE = 0.6
UNKNOWN = -1
ENTERS = [CLUES.index("firm"), CLUES.index("unfirm"), CLUES.index("here")]


@dataclass(frozen=True)
class Example:
    """A story as `likely` meets it, and the number of each sentence's place."""

    words: Any
    rows: Any
    steps: Any
    right: Any


def example(one: Told) -> Example:
    """Read a story."""
    story, known = Story(read_story(one.text(random.Random(one.name)))), set[str]()
    found = [heard(story, at, known) for at in range(len(story.reading.sentences))]
    lines = aligned(one.lines, [sentence.text for sentence in story.reading.sentences])
    right = [UNKNOWN if line is None else number(line.place) for line in lines]
    return Example(clues(found), rows_in(story), steps(story, found), np.array(right))


def number(place: str) -> int:
    """The number of a place of the table; of all others the one behind them."""
    names = [one.place.removeprefix("the ") for one in settings()]
    own = place.removeprefix("the ")
    return names.index(own) if own in names and place not in NOWHERE else len(names)


def described() -> Any:
    """Two rows of each place, its words read together and one by one, as they differ from those of other places."""
    rows = np.array([(_read(_together(one)), np.mean([_read(word) for word in _words(one)[:ALONE]], axis=0))
                     for one in settings()])  # fmt: skip
    rows -= rows.mean(axis=0)
    return np.moveaxis(rows / np.linalg.norm(rows, axis=2, keepdims=True), 1, 0)


def _read(text: str) -> Any:
    return rows_of(text, "", [(0, len(text))])[0, 2]


def _words(place: Setting) -> list[str]:
    """What a place is called and the words that tell it, the surest first; what is said there is left out."""
    best = sorted(place.weights, key=lambda word: (-place.weights[word], word))
    return [place.place.removeprefix("the "), *(word for word in best if '"' not in word)]


def _together(place: Setting) -> str:
    return f"{place.place}. {', '.join(_words(place)[1 : LISTED + 1])}"


class Net(nn.Module):
    """What `likely` weighs with. centre: the means of rows; places: their descriptions."""

    def __init__(self, centre: Any, places: Any) -> None:
        """Begin with random weights."""
        super().__init__()
        self.centre, self.places = centre, places
        width = len(CLUES) + 5 * len(places)
        self.clues = nn.Parameter(torch.zeros(width))
        self.steps = nn.Parameter(torch.tensor([-3.0] + [0.0] * (len(STEPS) - 1)))
        self.enters = nn.Parameter(torch.zeros(len(ENTERS)))
        self.inner = nn.Sequential(nn.Linear(width, INNER), nn.ReLU(), nn.Dropout(0.1), nn.Linear(INNER, 1))
        self.rows = nn.Linear(centre.size, RANK, bias=False)
        self.toward = nn.Linear(places[:, 0].size, RANK, bias=False)
        for one in (self.rows, self.toward):
            nn.init.normal_(one.weight, std=0.02)
        self.drop = nn.Dropout(0.5)

    def directions(self) -> Tensor:
        """Return a few numbers for each place."""
        both = torch.from_numpy(np.concatenate(list(self.places), axis=1)).float()
        found: Tensor = self.toward(self.drop(5 * both))
        return found

    def forward(self, words: Tensor, rows: Tensor, told: Tensor) -> tuple[Tensor, Tensor]:
        """Return what speaks for each place in each sentence, and what for being there after another place."""
        speaks = words @ self.clues + self.inner(words)[..., 0]
        speaks = speaks + F.pad(self.rows(self.drop(5 * rows)) @ self.directions().T, (0, 1))
        return speaks, (told @ self.steps)[..., None] + words[..., ENTERS] @ self.enters - np.log(words.shape[2])


def whole(speaks: Tensor, moves: Tensor, there: Tensor) -> Tensor:
    """Return the logarithm of the sum of all ways through each story."""
    ahead = speaks[:, 0]
    for at in range(1, speaks.shape[1]):
        new = torch.logaddexp(ahead, torch.logsumexp(ahead, 1, keepdim=True) + moves[:, at]) + speaks[:, at]
        ahead = torch.where(there[:, at, None], new, ahead)
    return torch.logsumexp(ahead, 1)


def _stacked(stories: Sequence[Example], net: Net) -> list[Tensor]:
    """Stories side by side: words and nearness, rows, steps, right places, and which sentences there are."""
    parts = [
        (np.concatenate([one.words, near(one.rows, net.centre, net.places)], axis=2), _directed(one.rows - net.centre),
         one.steps, one.right, np.ones(len(one.right), dtype=bool))
        for one in stories
    ]  # fmt: skip
    empty = (0, 0, 0, UNKNOWN, False)
    return [
        nn.utils.rnn.pad_sequence([torch.from_numpy(part[at]) for part in parts], batch_first=True, padding_value=fill)
        for at, fill in enumerate(empty)
    ]


def _directed(rows: Any) -> Any:
    return (rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + 1e-6)).reshape(len(rows), -1)


def train(stories: Sequence[Example], epochs: int) -> Net:
    """Learn from stories."""
    torch.manual_seed(0)
    net = Net(np.concatenate([one.rows for one in stories]).mean(axis=0), described())
    rates = [RATES.get(name.split(".")[0], RATES["clues"]) for name, _ in net.named_parameters()]
    groups = [{"params": [part], "lr": rate, "weight_decay": decay}
              for part, (rate, decay) in zip(net.parameters(), rates, strict=True)]  # fmt: skip
    optimiser = torch.optim.AdamW(groups)
    whole_steps = epochs * -(-len(stories) // BATCH)
    pace = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: max(0.02, 1 - step / whole_steps))
    for _ in range(epochs):
        order = torch.randperm(len(stories)).tolist()
        for at in range(0, len(order), BATCH):
            words, rows, told_, right, there = _stacked([stories[one] for one in order[at : at + BATCH]], net)
            speaks, moves = net(words.float(), rows.float(), told_.float())
            others = torch.full_like(speaks, -1e4).scatter(2, right.clamp(min=0)[..., None], 0.0)
            only = torch.where((right >= 0)[..., None], speaks + others, speaks)
            optimiser.zero_grad()
            loss = (whole(speaks, moves, there) - whole(only, moves, there)).sum() / (right >= 0).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            pace.step()
    return net.eval()


def counts(net: Net, stories: Sequence[Example]) -> str:
    """Return what is right, wrong and left open, in per cent of the sentences in places of the table."""
    words, rows, told_, right, there = _stacked(stories, net)
    speaks, moves = (part.detach() for part in net(words.float(), rows.float(), told_.float()))
    speaks.requires_grad_()
    (likely,) = torch.autograd.grad(whole(speaks, moves, there).sum(), speaks)
    best, known = likely.max(2), (right >= 0) & (right < len(settings()))
    sure = (best.values >= SURE) & (best.indices < len(settings())) & known
    hit, all_ = int((sure & (best.indices == right)).sum()), int(known.sum()) or 1
    shares = (hit / all_, (int(sure.sum()) - hit) / all_, 1 - int(sure.sum()) / all_)
    return " / ".join(f"{100 * share:.1f}" for share in shares)


def write(net: Net, folder: Path) -> None:
    """Write placing.npz."""
    inner, bias, outer, _ = net.inner.parameters()
    parts = {
        "centre": net.centre, "described": net.places, "clues": net.clues, "steps": net.steps, "enters": net.enters,
        "inner": inner, "inner_bias": bias, "outer": outer[0], "rows": 5 * net.rows.weight,
        "places": net.directions(),
    }  # fmt: skip
    held = {name: np.asarray(part.detach() if isinstance(part, Tensor) else part) for name, part in parts.items()}
    small = {name: part.astype(np.float16 if part.size > 1000 else np.float32) for name, part in held.items()}
    names = "\n".join(place.place for place in settings()).encode()
    packed = io.BytesIO()
    np.savez_compressed(packed, names=np.frombuffer(names, dtype=np.uint8), **small)  # type: ignore[arg-type]
    (folder / "placing.npz").write_bytes(packed.getvalue())


def _examples(folder: Path) -> Iterator[Example]:
    return (example(one) for one in told(folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--stories", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(argv)
    net = train(list(_examples(chosen.stories)), chosen.epochs)
    write(net, chosen.out)
    unseen = list(_examples(chosen.stories / "unseen"))
    if unseen:
        print(f"right, wrong, left open in stories/unseen: {counts(net, unseen)} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
