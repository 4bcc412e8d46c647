"""Train what `katha_sketch.english.context` reads texts with, and write english/context.onnx and context.npz.

python -m training.text.context ENCODER [--epochs N] [--layers N] [--out FOLDER]

ENCODER is a folder with a transformers encoder and its tokenizer.json (sentence-transformers/all-MiniLM-L6-v2). It is
trained on with the stories of `stories/`, and with two heads: the likelihood of all namings together that a pronoun can
mean (Lee et al. 2017), and whether a picture of a sentence shows what is named. One story in ten is held back; what is
right of those is printed after each epoch. The word pieces and the first layers stay as they are, so that rare words
keep their neighbours. What places are told by is then made anew (`training.text.placing`).
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from katha_sketch.english.context import KINDS, ROLES, SINCE, apart, near, pieces
from training.text import placing
from training.text.told import FOLDER, Lesson, lesson, told

__all__ = ["Net", "export", "main", "train"]

OUT = Path(__file__).parents[2] / "src" / "katha_sketch" / "english"
HIDDEN, CROSSED = 96, 64
STEPS = 13
WEIGHTS = {"antecedents": 0.5, "shown": 2.0}
FROZEN = 3
HELD_BACK = 10
BATCH = 8
LEAST = 10_000
TOLERANCE = 0.01


class Head(nn.Module):
    """What a head takes of rows, and of the roles and kinds of namings."""

    def __init__(self, width: int, hidden: int) -> None:
        """Begin with random weights."""
        super().__init__()
        self.rows = nn.Linear(width, hidden)
        self.roles, self.kinds = nn.Embedding(len(ROLES), hidden), nn.Embedding(len(KINDS), hidden)
        for table in (self.roles, self.kinds):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, rows: Tensor, roles: Tensor, kinds: Tensor) -> Tensor:
        """Return a row of `hidden` numbers for each naming."""
        return self.rows(rows) + self.roles(roles) + self.kinds(kinds)


class Net(nn.Module):
    """The encoder and its heads, as `katha_sketch.english.context` runs them."""

    def __init__(self, encoder: nn.Module, width: int) -> None:
        """Take an encoder, and the length of its rows."""
        super().__init__()
        self.encoder = encoder
        self.pronoun, self.antecedent, self.named = Head(width, HIDDEN), Head(width, HIDDEN), Head(width, HIDDEN)
        self.since, self.steps = nn.Embedding(SINCE + 1, HIDDEN), nn.Embedding(STEPS, HIDDEN)
        self.ago = nn.Embedding(SINCE + 1, HIDDEN)
        self.pair, self.shown_out = nn.Linear(HIDDEN, 1), nn.Linear(HIDDEN, 1)
        self.sentence = nn.Linear(width, HIDDEN)
        self.crossed = nn.ModuleDict(
            {name: nn.Linear(width, CROSSED) for name in ("pronoun", "antecedent", "named", "sentence")}
        )
        self.tells = nn.Linear(width, 1, bias=False)
        self.drop = nn.Dropout(0.2)
        for table in (self.since, self.steps, self.ago):
            nn.init.normal_(table.weight, std=0.02)

    def begin(self, numbers: Sequence[int]) -> Tensor:
        """Return what the layers that are not trained make of a text's word pieces."""
        with torch.no_grad():
            rows: Tensor = self.encoder.embeddings(input_ids=torch.tensor([numbers]))
            for layer in self.encoder.encoder.layer[:FROZEN]:
                rows = layer(rows)
        return rows

    def read(self, texts: Sequence[Tensor]) -> list[Tensor]:
        """Return a row for each word piece of each text that was begun."""
        longest = max(one.shape[1] for one in texts)
        rows = torch.cat([F.pad(one, (0, 0, 0, longest - one.shape[1])) for one in texts])
        mask = torch.zeros(len(texts), 1, 1, longest)
        for at, one in enumerate(texts):
            mask[at, ..., one.shape[1] :] = -1e4
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.training):
            for layer in self.encoder.encoder.layer[FROZEN:]:
                rows = layer(rows, attention_mask=mask)
        return [rows[at, 1 : one.shape[1] - 1].float() for at, one in enumerate(texts)]

    def antecedents(self, seen: Seen, named: Tensor) -> Tensor:
        """Return the logits of `Context.meant` for all pairs of a story."""
        pronoun, antecedent = seen.pronouns, seen.among
        dropped = self.drop(named)
        sums = self.pronoun(dropped, seen.roles, seen.kinds)[pronoun]
        sums = sums + self.antecedent(dropped, seen.roles, seen.kinds)[antecedent]
        added = self.pair(F.relu(sums + self.since(seen.back) + self.steps(seen.apart)))[:, 0]
        crossed = self.crossed["antecedent"](named)[antecedent] * self.crossed["pronoun"](named)[pronoun]
        return added + crossed.sum(1) / 8

    def shown(self, seen: Seen, named: Tensor, heard: Tensor) -> Tensor:
        """Return the logits of `Context.seen` for all pairs of a story."""
        which, sentences = seen.which, seen.sentences
        own = self.named(self.drop(named), seen.roles, seen.kinds)[which]
        added = self.shown_out(F.relu(own + self.sentence(self.drop(heard))[sentences] + self.ago(seen.ago)))[:, 0]
        return added + (self.crossed["named"](named)[which] * self.crossed["sentence"](heard)[sentences]).sum(1) / 8

    def rows_of(self, seen: Seen, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return a row for each naming, and one for each sentence: its pieces by how much each tells."""
        own = F.one_hot(seen.of.clamp(min=0), seen.count).float() * (seen.of >= 0).float()[:, None]
        weights = self.tells(rows)
        weights = torch.exp(weights - weights.max()) * own
        heard = (weights / weights.sum(0, keepdim=True).clamp(min=1e-6)).T @ rows
        empty = torch.zeros(rows.shape[1])
        named = torch.stack([rows[one].mean(0) if len(one) else empty for one in seen.words] or [empty])
        return named, heard


class Seen:
    """A lesson as tensors."""

    def __init__(self, one: Lesson, vocabulary: Mapping[str, int], net: Net, most: int = 510) -> None:
        """Cut the text into pieces; what is beyond the network's longest text is left out."""
        before = f"{one.title}. " if one.title else ""
        numbers, starts = pieces(before + one.text, vocabulary)
        begins = np.array(starts[:most]) - len(before)
        self.rows = net.begin([vocabulary["[CLS]"], *numbers[:most], vocabulary["[SEP]"]])
        of = np.full(len(begins), -1)
        for at, (begin, end) in enumerate(one.sentences):
            of[(begins >= begin) & (begins < end)] = at
        self.of, self.count = torch.from_numpy(of), len(one.sentences)
        self.words = [torch.from_numpy(np.nonzero(begins == spot.start)[0]) for spot in one.spots]
        self.roles = torch.tensor([ROLES.index(spot.role) if spot.role in ROLES else 0 for spot in one.spots])
        self.kinds = torch.tensor([spot.kind for spot in one.spots])
        since = [spot.sentence for spot in one.spots]
        pairs = [(at, other, row, same) for row, (at, among, right) in enumerate(one.antecedents)
                 for other, same in zip(among, right, strict=True)]  # fmt: skip
        self.pronouns, self.among, self.row = (torch.tensor([pair[part] for pair in pairs]) for part in range(3))
        self.right = torch.tensor([pair[3] for pair in pairs])
        self.back = torch.tensor([near(since[at] - since[other]) for at, other, _, _ in pairs])
        self.apart = torch.tensor([apart(at - other) for at, other, _, _ in pairs])
        self.which, self.sentences = (torch.tensor([pair[part] for pair in one.shown]) for part in range(2))
        self.there = torch.tensor([pair[2] for pair in one.shown])
        self.ago = torch.tensor([near(sentence - since[at]) for at, sentence, _ in one.shown])
        # The pairs of each pronoun side by side, and -1 where there are no more.
        self.grid = nn.utils.rnn.pad_sequence(
            [torch.nonzero(self.row == row)[:, 0] for row in range(len(one.antecedents))] or [torch.zeros(0).long()],
            batch_first=True, padding_value=-1,
        )  # fmt: skip


def losses(net: Net, seen: Seen, rows: Tensor) -> dict[str, Tensor]:
    """Return what each head has wrong in a story."""
    named, heard = net.rows_of(seen, rows)
    found = dict[str, Tensor]()
    if len(seen.pronouns):
        logits = net.antecedents(seen, named)[seen.grid.clamp(min=0)].masked_fill(seen.grid < 0, -1e4)
        right = logits.masked_fill(~seen.right[seen.grid.clamp(min=0)], -1e4)
        found["antecedents"] = (torch.logsumexp(logits, 1) - torch.logsumexp(right, 1)).mean()
    if len(seen.which):
        found["shown"] = F.binary_cross_entropy_with_logits(net.shown(seen, named, heard), seen.there.float())
    return found


@torch.no_grad()
def right(net: Net, stories: Sequence[Seen]) -> dict[str, float]:
    """Return the shares that are right, in per cent: pronouns; of what is shown how much is found, and how
    much of what is found."""
    net.eval()
    counts: dict[str, float] = dict.fromkeys(("pronouns", "all", "hit", "found", "there"), 0)
    for seen in stories:
        named, heard = net.rows_of(seen, net.read([seen.rows])[0])
        if len(seen.pronouns):
            logits = net.antecedents(seen, named)[seen.grid.clamp(min=0)].masked_fill(seen.grid < 0, -1e4)
            best = seen.grid.gather(1, logits.argmax(1, keepdim=True))[:, 0]
            counts["pronouns"] += int(seen.right[best].sum())
            counts["all"] += len(best)
        if len(seen.which):
            found = net.shown(seen, named, heard) > 0
            for name, part in (("hit", found & seen.there), ("found", found), ("there", seen.there)):
                counts[name] += int(part.sum())
    net.train()
    pairs = (("pronouns", "all"), ("hit", "there"), ("hit", "found"))
    names = ("pronouns", "shown found", "found shown")
    return {name: round(100 * counts[a] / max(1, counts[b]), 1) for name, (a, b) in zip(names, pairs, strict=True)}


def train(net: Net, stories: Sequence[Seen], held: Sequence[Seen], epochs: int, rate: float = 5e-5) -> None:
    """Train a network, and print how it does on what is held back."""
    chance, order = random.Random(0), list(stories)
    layers = [part for name, part in net.named_parameters() if name.startswith("encoder") and part.requires_grad]
    heads = [part for name, part in net.named_parameters() if not name.startswith("encoder")]
    steps = epochs * -(-len(order) // BATCH)
    groups = [{"params": layers, "lr": rate}, {"params": heads, "lr": 20 * rate}]
    optimiser = torch.optim.AdamW(groups, weight_decay=0.01)
    pace = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min(1.0, (step + 1) / (0.1 * steps)) * max(0.02, 1 - step / steps)
    )
    for epoch in range(epochs):
        chance.shuffle(order)
        order.sort(key=lambda seen: seen.rows.shape[1] // 32)
        batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        chance.shuffle(batches)
        for batch in batches:
            optimiser.zero_grad()
            rows = net.read([seen.rows for seen in batch])
            found = [losses(net, seen, own) for seen, own in zip(batch, rows, strict=True)]
            whole = [WEIGHTS[name] * loss for one in found for name, loss in one.items()]
            (torch.stack(whole).sum() / len(batch)).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            pace.step()
        print(f"epoch {epoch + 1}: {right(net, held)}", flush=True)


def load(folder: Path, layers: int) -> tuple[Net, dict[str, int]]:
    """Return the encoder of a folder with new heads, and its vocabulary."""
    from transformers import BertModel

    vocabulary = json.loads((folder / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    encoder: Any = BertModel.from_pretrained(str(folder), add_pooling_layer=False, hidden_act="gelu_pytorch_tanh")
    encoder.encoder.layer = encoder.encoder.layer[:layers]
    encoder.embeddings.requires_grad_(False)
    for part in encoder.encoder.layer[:FROZEN]:
        part.requires_grad_(False)
    return Net(encoder, encoder.config.hidden_size), vocabulary


def export(net: Net, vocabulary: Mapping[str, int], folder: Path) -> None:
    """Write the layers as ONNX with weights of eight bits, and the heads with the vocabulary beside them.

    Raises:
        RuntimeError: what the files give differs from what the network gives.
    """
    net.eval()
    example = torch.tensor(
        [[vocabulary["[CLS]"], *sorted(vocabulary.values())[:: len(vocabulary) // 40 + 1], vocabulary["[SEP]"]]]
    )
    whole = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        torch.onnx.export(
            _Layers(net.encoder).eval(), (example,), whole, input_names=["pieces"], output_names=["rows"],
            dynamic_axes={"pieces": {1: "length"}, "rows": {1: "length"}}, opset_version=17, dynamo=False,
        )  # fmt: skip
    small = _in_bytes(whole.getvalue())
    _check(net, example, small)
    (folder / "context.onnx").write_bytes(small)
    held = {"words": _text(sorted(vocabulary, key=lambda word: vocabulary[word]))}
    renamed = {"shown_out": "shown", "tells.weight": "tells"}
    for name, part in net.state_dict().items():
        if name.startswith("encoder"):
            continue
        own = renamed.get(name, name.replace("shown_out", "shown").replace(".rows.", "."))
        if own.startswith("crossed."):
            own = own.removeprefix("crossed.").replace(".", "_by.", 1)
        own = (
            own.removesuffix(".weight")
            if own.split(".")[0] in ("since", "steps", "ago") or ".roles" in own or ".kinds" in own
            else own
        )
        held[own] = part.squeeze(0).numpy().astype(np.float16) if own == "tells" else part.numpy().astype(np.float16)
    packed = io.BytesIO()
    np.savez_compressed(packed, **held)
    (folder / "context.npz").write_bytes(packed.getvalue())


def _text(lines: Sequence[str]) -> Any:
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


class _Layers(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, numbers: Tensor) -> Tensor:
        rows: Tensor = self.encoder(input_ids=numbers, attention_mask=torch.ones_like(numbers)).last_hidden_state
        return rows


def _in_bytes(data: bytes) -> bytes:
    """A network with its large weights as whole numbers of eight bits, by a scale for each row or column."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    proto = onnx.load_model_from_string(data)
    nodes = []
    for tensor in list(proto.graph.initializer):
        weights = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or weights.ndim != 2 or weights.size < LEAST:
            continue
        axis = 0 if weights.shape[0] > len(weights.T) * 10 else 1  # the word pieces by rows, layers by columns
        scale = np.maximum(np.abs(weights).max(axis=1 - axis), 1e-8).astype(np.float32) / 127
        small = np.round(weights / (scale[:, None] if axis == 0 else scale[None])).astype(np.int8)
        proto.graph.initializer.remove(tensor)
        proto.graph.initializer.extend(
            [
                numpy_helper.from_array(small, f"{tensor.name}.small"),
                numpy_helper.from_array(scale, f"{tensor.name}.scale"),
            ]
        )
        parts = [f"{tensor.name}.small", f"{tensor.name}.scale"]
        nodes.append(helper.make_node("DequantizeLinear", parts, [tensor.name], axis=axis))
    for at, node in enumerate(nodes):
        proto.graph.node.insert(at, node)
    return bytes(proto.SerializeToString())


def _check(net: Net, example: Tensor, data: bytes) -> None:
    import onnxruntime

    found = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(
        None, {"pieces": example.numpy()}
    )[0]
    with torch.no_grad():
        wanted = _Layers(net.encoder).eval()(example).numpy()
    unlike = 1 - float((found * wanted).sum() / np.linalg.norm(found) / np.linalg.norm(wanted))
    if unlike > TOLERANCE:
        raise RuntimeError(f"The exported layers differ from the network's by {unlike:.3f} (1 - cosine).")


def main(argv: Sequence[str] | None = None) -> int:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=Path)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--stories", type=Path, default=FOLDER)
    parser.add_argument("--out", type=Path, default=OUT)
    chosen = parser.parse_args(argv)
    torch.manual_seed(0)
    chance = random.Random(0)
    net, vocabulary = load(chosen.encoder, chosen.layers)
    net.eval()
    lessons = [lesson(story, chance) for story in told(chosen.stories)]
    seen = [Seen(one, vocabulary, net) for one in lessons]
    chance.shuffle(seen)
    held, rest = seen[: len(seen) // HELD_BACK], seen[len(seen) // HELD_BACK :]
    print(f"{len(rest)} stories to learn from, {len(held)} held back")
    net.train()
    train(net, rest, held, chosen.epochs)
    export(net, vocabulary, chosen.out)
    return placing.main([]) if chosen.out == OUT else 0


if __name__ == "__main__":
    sys.exit(main())
