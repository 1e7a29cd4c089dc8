#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dynamic_nodes.py - ONNX nodes whose kernels are for many sizes beside those of one size, by CPU time of calls in
turns: windows of any height and width, pools, recurrent nets, attention.

    PYTHONPATH=build/release/python dynamic_nodes.py [TEXT] [--seconds S] [--above R]

Rows are as in dynamic_sweep.py.  Needs numpy, onnx, and the package opjit."""
import os
import tempfile

import numpy as np
import onnx
from onnx import helper, numpy_helper

import dynamic_sweep
import opjit

IMAGE = {"h": (8, 256, 40, 2), "w": (8, 256, 48, 2)}
IMAGES = ((40, 48), (56, 56), (112, 112), (28, 28), (160, 160))
TIMES = {"n": (1, 512, 64)}
RANDOM = np.random.default_rng(1)
CASES = []


def weights(*shape, fan=8):
    return (RANDOM.standard_normal(shape) / fan).astype("f")


def add(name, dims, sizes, shapes, nodes, constants):
    """shapes: of the inputs, in numbers and names of dims; the last node's first output is the model's."""
    CASES.append((name, dims, sizes, shapes, nodes, constants))


def one(op, inputs, **attributes):
    return [helper.make_node(op, inputs, ["y"], **attributes)]


def windows(name, channels, op, taps=None, dims=IMAGE, sizes=IMAGES, batch=1, **attributes):
    constants = {} if taps is None else {"w": weights(*taps)}
    add(name, dims, sizes, {"x": (batch, channels, "h", "w")}, one(op, ["x", *constants], **attributes), constants)


PAD1 = [1, 1, 1, 1]
for c in (32, 64):
    windows(f"depthwise 3x3 of {c}", c, "Conv", (c, 1, 3, 3), group=c, pads=PAD1)
windows("depthwise 3x3 of 64, stride 2", 64, "Conv", (64, 1, 3, 3), group=64, pads=PAD1, strides=[2, 2])
windows("depthwise 5x5 of 64", 64, "Conv", (64, 1, 5, 5), group=64, pads=[2] * 4)
windows("depthwise 3x3 of 64, batch", 64, "Conv", (64, 1, 3, 3), group=64, pads=PAD1, batch="b",
        dims={"b": (1, 16, 4), **IMAGE}, sizes=((1, 40, 48), (4, 56, 56), (2, 112, 112)))
windows("MaxPool 3x3", 64, "MaxPool", kernel_shape=[3, 3], pads=PAD1)
windows("MaxPool 3x3, stride 2", 64, "MaxPool", kernel_shape=[3, 3], pads=PAD1, strides=[2, 2])
windows("MaxPool 2x2, stride 2", 64, "MaxPool", kernel_shape=[2, 2], strides=[2, 2])
windows("MaxPool 5x5", 64, "MaxPool", kernel_shape=[5, 5], pads=[2] * 4)
windows("AveragePool 3x3", 64, "AveragePool", kernel_shape=[3, 3], pads=PAD1)
windows("AveragePool 2x2, stride 2", 64, "AveragePool", kernel_shape=[2, 2], strides=[2, 2])
windows("GlobalAveragePool", 64, "GlobalAveragePool")
windows("Conv 3x3, 3 to 32, stride 2", 3, "Conv", (32, 3, 3, 3), pads=PAD1, strides=[2, 2])
windows("Conv 3x3, 16 to 16", 16, "Conv", (16, 16, 3, 3), pads=PAD1)
windows("Conv 3x3, 64 to 64", 64, "Conv", (64, 64, 3, 3), pads=PAD1)
windows("Conv 3x3, 64 to 128, stride 2", 64, "Conv", (128, 64, 3, 3), pads=PAD1, strides=[2, 2])
windows("Conv 1x1, 64 to 64", 64, "Conv", (64, 64, 1, 1))
windows("Conv 1x1, 64 to 256", 64, "Conv", (256, 64, 1, 1))
windows("Conv 1x1, 256 to 64", 256, "Conv", (64, 256, 1, 1))
windows("ConvTranspose 2x2, 64 to 32, stride 2", 64, "ConvTranspose", (64, 32, 2, 2), strides=[2, 2])
windows("ConvTranspose 2x2, 3 to 4, stride 2", 3, "ConvTranspose", (3, 4, 2, 2), strides=[2, 2])
windows("ConvTranspose 3x3, 32 to 32, stride 2", 32, "ConvTranspose", (32, 32, 3, 3), strides=[2, 2])
windows("ConvTranspose 4x4, 32 to 16, stride 2", 32, "ConvTranspose", (32, 16, 4, 4), strides=[2, 2], pads=PAD1)
for mode in ("linear", "nearest"):
    add(f"Resize to twice, {mode}", IMAGE, IMAGES, {"x": (1, 16, "h", "w")}, one("Resize", ["x", "", "s"], mode=mode),
        {"s": np.array([1, 1, 2, 2], "f")})
for c, k, to in ((64, 3, 64), (256, 5, 256), (1, 10, 64)):
    add(f"Conv of times, {c} to {to}, {k}", {"n": (16, 4096, 600)}, ((600,), (128,), (1500,)), {"x": (1, c, "n")},
        one("Conv", ["x", "w"], pads=[k // 2] * 2), {"w": weights(to, c, k)})

for op, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
    for batch, hidden in ((1, 64), (3, 64), (1, 256)):
        add(f"{op} of {hidden}, batch of {batch}, n times", TIMES, ((64,), (1,), (2,), (10,), (200,), (500,)),
            {"x": ("n", batch, hidden)}, one(op, ["x", "w", "r"], hidden_size=hidden),
            {"w": weights(1, gates * hidden, hidden), "r": weights(1, gates * hidden, hidden)})
    add(f"{op} of 64, 20 times, n rows", {"n": (1, 64, 8)}, ((8,), (1,), (2,), (5,), (32,), (64,)),
        {"x": (20, "n", 64)}, one(op, ["x", "w", "r"], hidden_size=64),
        {"w": weights(1, gates * 64, 64), "r": weights(1, gates * 64, 64)})


def attention(scores_extra=()):
    return [helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("MatMul", ["q", "t"], ["s"]),
            helper.make_node("Mul", ["s", "scale"], ["u"]), *scores_extra,
            helper.make_node("Softmax", ["u" if not scores_extra else "v"], ["p"], axis=-1)]


SCALE = {"scale": np.array(0.125, "f")}
LENGTHS = ((512,), (1,), (17,), (64,), (128,), (300,), (1024,), (1500,))
N = {"n": (1, 1500, 512)}
for heads in (12, 32):
    shape = (1, heads, "n", 64)
    add(f"one query of {heads} heads, n keys", N, LENGTHS, {"q": (1, heads, 1, 64), "k": shape, "z": shape},
        [*attention(), helper.make_node("MatMul", ["p", "z"], ["y"])], SCALE)
past = (1, 12, "n", 64)
add("one query, n keys of a past and one", N, LENGTHS,
    {"q": (1, 12, 1, 64), "past": past, "new": (1, 12, 1, 64), "z": past, "znew": (1, 12, 1, 64)},
    [helper.make_node("Concat", ["past", "new"], ["k"], axis=2),
     helper.make_node("Concat", ["z", "znew"], ["zz"], axis=2),
     *attention(), helper.make_node("MatMul", ["p", "zz"], ["y"])], SCALE)
add("attention of all, 8 heads", N, ((512,), (1,), (17,), (64,), (128,), (300,)),
    {"q": (1, 8, "n", 64), "k": (1, 8, "n", 64), "z": (1, 8, "n", 64)},
    [*attention(), helper.make_node("MatMul", ["p", "z"], ["y"])], SCALE)
add("attention of all with a mask, 8 heads", N, ((512,), (1,), (17,), (64,), (128,), (300,)),
    {"q": (1, 8, "n", 64), "k": (1, 8, "n", 64), "z": (1, 8, "n", 64), "m": (1, 1, 1, "n")},
    [*attention([helper.make_node("Add", ["u", "m"], ["v"])]), helper.make_node("MatMul", ["p", "z"], ["y"])], SCALE)
for causal in (0, 1):
    add(f"Attention, is_causal {causal}, 8 heads", {"n": (1, 300, 64)}, ((64,), (1,), (17,), (128,), (256,), (300,)),
        {"q": (1, 8, "n", 64), "k": (1, 8, "n", 64), "z": (1, 8, "n", 64)},
        one("Attention", ["q", "k", "z"], is_causal=causal), {})


def save(path, shapes, nodes, constants):
    graph = helper.make_graph(
        nodes, "node", [helper.make_tensor_value_info(n, 1, shape) for n, shape in shapes.items()],
        [onnx.ValueInfoProto(name="y")], [numpy_helper.from_array(v, n) for n, v in constants.items()])
    version = 23 if any(n.op_type == "Attention" for n in nodes) else 21
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9)
    onnx.save(model, path)


def compiled(path, dims, given):
    return dynamic_sweep.compile_ms(lambda: opjit.compile(path, dims=dims, level=given.level), given.compiles)


def measure(folder, case, given):
    name, dims, sizes, shapes, nodes, constants = case
    path = os.path.join(folder, "node.onnx")
    save(path, shapes, nodes, constants)
    dynamic_sweep.measure_pair(name, dims, sizes, lambda d: compiled(path, d, given), given)


def main():
    given = dynamic_sweep.parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if not given.text or any(t in case[0] for t in given.text):
                measure(folder, case, given)


if __name__ == "__main__":
    main()
