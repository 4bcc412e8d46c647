"""The trained network as ONNX, checked against the original."""

from __future__ import annotations

import io
import warnings

import numpy as np
import torch

from katha.eval_bridge.reader.pixels import HEIGHT, WIDTH
from training.reader.net import ReaderNet

__all__ = ["to_onnx"]

_TOLERANCE = 2e-3


def to_onnx(model: ReaderNet) -> bytes:
    """`model` as ONNX with half-precision weights and single-precision inputs, outputs and arithmetic.

    Raises:
        RuntimeError: the exported network's probabilities differ from the original's.
    """
    model = model.eval().float()
    for parameter in model.state_dict().values():
        if parameter.dtype.is_floating_point:
            parameter.copy_(parameter.half().float())  # what the file will hold, so that both agree
    x = torch.rand(1, 3, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(0))
    out = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter's own deprecations
        torch.onnx.export(
            model,
            (x,),
            out,
            input_names=["pixels"],
            output_names=["maps", "names", "figure", "scene"],
            dynamic_axes={name: {0: "batch"} for name in ("pixels", "maps", "names", "figure", "scene")},
            opset_version=17,
            dynamo=False,
        )
    data = _halved(out.getvalue())
    _check(model, data, x)
    return data


def _halved(data: bytes) -> bytes:
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


def _check(model: ReaderNet, data: bytes, x: torch.Tensor) -> None:
    import onnxruntime

    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    found = session.run(None, {"pixels": x.numpy()})
    with torch.no_grad():
        expected = model(x)
    for mine, theirs in zip(found, expected, strict=True):
        gap = float(np.abs(_sigmoid(mine) - _sigmoid(theirs.numpy())).max())
        if gap > _TOLERANCE:
            raise RuntimeError(f"The exported network differs from the original by {gap:.2g}.")


def _sigmoid(x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return 1 / (1 + np.exp(-x))
