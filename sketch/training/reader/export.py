"""The trained networks as ONNX, checked against the originals."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from katha_sketch.reader.network import (
    BODY_SIDE,
    CLOSE_SIDE,
    FINDER_OUTPUTS,
    HEIGHT,
    NAMER_INPUTS,
    NAMER_OUTPUTS,
    WIDTH,
)
from training.reader.net import FinderNet, NamerNet

__all__ = ["finder_to_onnx", "namer_to_onnx"]

_TOLERANCE = 2e-3


def finder_to_onnx(model: FinderNet) -> bytes:
    """The finder as ONNX (see `_to_onnx`)."""
    return _to_onnx(model, {"pixels": (3, HEIGHT, WIDTH)}, FINDER_OUTPUTS)


def namer_to_onnx(model: NamerNet) -> bytes:
    """The namer as ONNX (see `_to_onnx`)."""
    sides = ((3, CLOSE_SIDE, CLOSE_SIDE), (4, BODY_SIDE, BODY_SIDE), (3, CLOSE_SIDE, CLOSE_SIDE))
    return _to_onnx(model, dict(zip(NAMER_INPUTS, sides, strict=True)), NAMER_OUTPUTS)


def _to_onnx(model: nn.Module, inputs: dict[str, tuple[int, int, int]], outputs: Sequence[str]) -> bytes:
    """`model` as ONNX with half-precision weights and single-precision inputs, outputs and arithmetic.

    Raises:
        RuntimeError: the exported network's probabilities differ from the original's.
    """
    model = model.eval().float()
    for parameter in model.state_dict().values():
        if parameter.dtype.is_floating_point:
            parameter.copy_(parameter.half().float())  # what the file will hold, so that both agree
    generator = torch.Generator().manual_seed(0)
    examples = tuple(torch.rand(2, *shape, generator=generator) for shape in inputs.values())
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        torch.onnx.export(
            model,
            examples,
            out,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes={name: {0: "batch" if name != "things" else "props"} for name in (*inputs, *outputs)},
            opset_version=17,
            dynamo=False,
        )
    data = _half_weights(out.getvalue())
    _check(model, data, dict(zip(inputs, examples, strict=True)))
    return data


def _half_weights(data: bytes) -> bytes:
    """Large weights stored as half precision, each followed by a cast back."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    proto = onnx.load_model_from_string(data)
    casts = []
    for tensor in list(proto.graph.initializer):
        if tensor.data_type != TensorProto.FLOAT or int(np.prod(tensor.dims)) < 1024:
            continue
        name = tensor.name
        small = numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), f"{name}_half")
        proto.graph.initializer.remove(tensor)
        proto.graph.initializer.append(small)
        casts.append(helper.make_node("Cast", [f"{name}_half"], [name], to=TensorProto.FLOAT))
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend([*casts, *nodes])
    onnx.checker.check_model(proto)
    result: bytes = proto.SerializeToString()
    return result


def _check(model: nn.Module, data: bytes, examples: dict[str, Tensor]) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found = session.run(None, {name: x.numpy() for name, x in examples.items()})
    with torch.no_grad():
        expected = model(*examples.values())
    for mine, theirs in zip(found, expected, strict=True):
        gap = float(np.abs(_sigmoid(mine) - _sigmoid(theirs.numpy())).max())
        if gap > _TOLERANCE:
            raise RuntimeError(f"The exported network differs from the original by {gap:.2g}.")


def _sigmoid(x: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float32)
