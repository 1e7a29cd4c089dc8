#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drawn.py - random models against onnxruntime: an operator with random attributes, or a network of a few layers.

    drawn.py OPJIT [SEED [COUNT]]     a model is drawn by the number SEED + its own, so that a failure can be drawn
    again"""
import random as standard
import sys

import numpy as np

import made
from made import node

PAD = {"constant": 3, "reflect": 1, "edge": 2, "wrap": 2}


class Draw:
    """One model: nodes, and arrays by the names of inputs and constants."""

    def __init__(self, seed):
        self.one = standard.Random(seed)
        self.random = np.random.default_rng(seed)
        self.nodes, self.inputs, self.constants, self.outputs, self.off = [], {}, {}, ["y"], 1e-4
        self.made = 0

    def any(self, *choices):
        return self.one.choice(choices)

    def maybe(self):
        return self.one.random() < 0.5

    def number(self, least, most):
        return self.one.randint(least, most)

    def numbers(self, count, least, most):
        return [self.number(least, most) for _ in range(count)]

    def sizes(self, rank=None, most=5):
        return tuple(self.numbers(rank or self.number(1, 5), 1, most))

    def floats(self, *sizes, most=2.0):
        return self.random.uniform(-most, most, sizes).astype("f4")

    def integers(self, least, most, *sizes, dtype="i8"):
        return self.random.integers(least, most + 1, sizes).astype(dtype)

    def narrowed(self, sizes):
        """Sizes that broadcast to these."""
        sizes = [1 if self.number(0, 3) == 0 else s for s in sizes]
        return tuple(sizes[self.number(0, len(sizes) - 1):] if self.maybe() else sizes)

    def input(self, array):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = array
        return name

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def either(self, array):
        return self.constant(array) if self.inputs and self.maybe() else self.input(array)

    def add(self, op, names, outputs=None, **attributes):
        self.made += 1
        outputs = outputs or [f"t{self.made}"]
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(node(op, names, outputs, **given))
        return outputs[0]


# --- operators --------------------------------------------------------------------------------------------------------
def pointwise(d):
    sizes = d.sizes()
    kind = d.any("f4", "i4", "i8")
    if kind == "f4":
        op = d.any("Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu", "Greater", "LessOrEqual")
        a, b = d.floats(*sizes), d.floats(*d.narrowed(sizes))
        b = np.where(np.abs(b) < 0.1, np.float32(1), b)
    else:
        op = d.any("Add", "Sub", "Mul", "Div", "Max", "Min", "Mod", "Equal", "Less")
        a, b = d.integers(-20, 20, *sizes, dtype=kind), d.integers(1, 7, *d.narrowed(sizes), dtype=kind)
    d.add(op, [d.input(a), d.either(b)], ["y"])


def unary(d):
    op = d.any("Abs", "Exp", "Sigmoid", "Tanh", "Erf", "Floor", "Round", "Softplus", "Elu", "LeakyRelu", "HardSigmoid",
               "HardSwish", "Mish", "Celu", "Cos", "Sin", "Reciprocal", "Neg", "Sign")
    takes = op in ("Elu", "LeakyRelu", "HardSigmoid", "Celu") and d.maybe()
    d.add(op, [d.input(d.floats(*d.sizes(), most=4))], ["y"], alpha=d.one.uniform(0.1, 1.5) if takes else None)


def reduction(d):
    op = d.any("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
               "ReduceSumSquare", "ReduceLogSumExp")
    sizes = d.sizes()
    axes = [a - len(sizes) if d.maybe() else a for a in d.one.sample(range(len(sizes)), d.number(0, len(sizes)))]
    noop = d.any(0, 1) if not axes else None
    d.add(op, [d.input(d.floats(*sizes)), d.constant(np.array(axes, "i8"))], ["y"], keepdims=d.any(0, 1),
          noop_with_empty_axes=noop)


def window(d, dimensions):
    return dict(kernel_shape=d.numbers(dimensions, 1, 4), strides=d.numbers(dimensions, 1, 3))


def convolution(d):
    n, group = d.any(1, 2, 2, 3), d.any(1, 1, 2, 3)
    attributes = window(d, n)
    attributes.update(dilations=d.numbers(n, 1, 2), pads=d.numbers(2 * n, 0, 2), group=group)
    span = [(k - 1) * dilation + 1 for k, dilation in zip(attributes["kernel_shape"], attributes["dilations"])]
    inward, outward = group * d.number(1, 4), group * d.number(1, 6)
    names = [d.input(d.floats(d.number(1, 2), inward, *(s + d.number(0, 8) for s in span))),
             d.constant(d.floats(outward, inward // group, *attributes["kernel_shape"]))]
    names += [d.constant(d.floats(outward))] if d.maybe() else []
    d.add(d.any("Relu", "Sigmoid", "HardSwish"), [d.add("Conv", names, **attributes)], ["y"])


def transposed(d):
    n, group = d.any(1, 2, 3), d.any(1, 1, 2)
    attributes = window(d, n)
    attributes["pads"] = [d.number(0, min(1, attributes["kernel_shape"][i % n] - 1)) for i in range(2 * n)]
    inward = group * d.number(1, 3)
    d.add("ConvTranspose", [d.input(d.floats(1, inward, *d.numbers(n, 2, 7))),
                            d.constant(d.floats(inward, d.number(1, 4), *attributes["kernel_shape"]))], ["y"],
          group=group, **attributes)


def pooling(d):
    n, op = d.any(1, 2, 2, 3), d.any("MaxPool", "AveragePool")
    attributes = window(d, n)
    attributes["pads"] = [d.number(0, attributes["kernel_shape"][i % n] // 2) for i in range(2 * n)]
    d.add(op, [d.input(d.floats(2, d.number(1, 4), *d.numbers(n, 5, 11)))], ["y"], ceil_mode=d.any(0, 1),
          count_include_pad=d.any(0, 1) if op == "AveragePool" else None, **attributes)


def product(d):
    m, k, n = d.number(1, 40), d.number(1, 70), d.number(1, 40)
    if d.maybe():
        batch = d.sizes(d.number(1, 2))
        d.add("MatMul", [d.input(d.floats(*d.narrowed(batch), m, k)), d.either(d.floats(*batch, k, n))], ["y"])
        return
    left, right = d.any(0, 1), d.any(0, 1)
    c = d.floats(*d.any((n,), (1, n), (m, n), (m, 1), (1,)))
    d.add("Gemm",
          [d.input(d.floats(*((k, m) if left else (m, k)))), d.either(d.floats(*((n, k) if right else (k, n)))),
           d.constant(c)],
          ["y"], transA=left, transB=right, alpha=d.any(None, 0.5), beta=d.any(None, 0.25))


def slicing(d):
    sizes = d.sizes(most=6)
    axes = d.one.sample(range(len(sizes)), d.number(1, len(sizes)))
    steps = [d.any(1, 1, 2, -1, -2) for _ in axes]
    begin = [0 if s > 0 else sizes[a] - 1 for a, s in zip(axes, steps)]
    begin = [b + d.any(0, 0, 1 if s > 0 else -1) if sizes[a] > 1 else b for a, b, s in zip(axes, begin, steps)]
    end = [2**62 if s > 0 else -2**62 for s in steps]
    d.add("Slice", [d.input(d.floats(*sizes)), *(d.constant(np.array(v, "i8")) for v in (begin, end, axes, steps))],
          ["y"])


def gathering(d):
    sizes = d.sizes()
    axis = d.number(0, len(sizes) - 1)
    x = d.input(d.floats(*sizes))
    if d.maybe():
        at = d.integers(-sizes[axis], sizes[axis] - 1, *d.sizes(2, 4))
        d.add("Gather", [x, d.either(at)], ["y"], axis=axis)
        return
    wide = [d.number(1, 5) if i == axis else s for i, s in enumerate(sizes)]
    d.add("GatherElements", [x, d.either(d.integers(-sizes[axis], sizes[axis] - 1, *wide))], ["y"], axis=axis)


def scattering(d):
    sizes = d.sizes()
    axis, reduction = d.number(0, len(sizes) - 1), d.any("add", "mul", "max", "min")
    narrow = [d.number(1, s) for s in sizes]
    at = d.integers(-sizes[axis], sizes[axis] - 1, *narrow)
    d.add("ScatterElements", [d.input(d.floats(*sizes)), d.either(at), d.either(d.floats(*narrow))], ["y"], axis=axis,
          reduction=reduction)


def scattering_rows(d):
    sizes = d.sizes()
    length = d.number(1, len(sizes))
    count = d.sizes(1, 2)
    at = np.stack([d.integers(-s, s - 1, *count) for s in sizes[:length]], -1)
    d.add("ScatterND", [d.input(d.floats(*sizes)), d.either(at), d.either(d.floats(*count, *sizes[length:]))], ["y"],
          reduction=d.any("add", "mul", "max", "min"))


def listing(d):
    """Parts of a tensor as a sequence, which is changed and joined again."""
    sizes = d.sizes()
    axis = d.number(0, len(sizes) - 1)
    split = d.any([], [np.array(d.number(1, sizes[axis]), "i8")])
    parts = d.add("SplitToSequence", [d.input(d.floats(*sizes)), *map(d.constant, split)], axis=axis)
    first = d.constant(np.array(0, "i8"))
    one = d.add("Relu", [d.add("SequenceAt", [parts, first])])
    longer = d.add("SequenceInsert", [parts, one] + [first] * d.maybe())
    d.add("ConcatFromSequence", [d.any(longer, d.add("SequenceErase", [longer, first]))], ["y"], axis=axis)


def preparing(d):
    """Columns on their way into a model of ai.onnx.ml."""
    rows, columns = d.number(1, 9), d.number(2, 7)
    name = d.input(d.floats(rows, columns))
    numbers = lambda count: [float(v) for v in d.floats(count)]
    if d.maybe():
        count = d.any(1, columns)
        name = d.add("Scaler", [name], domain="ai.onnx.ml", offset=numbers(count), scale=numbers(count))
    if d.maybe():
        columns = d.number(1, 5)
        name = d.add("ArrayFeatureExtractor", [name, d.constant(d.integers(0, 1, columns))], domain="ai.onnx.ml")
    targets = d.number(1, 4)
    transform = d.any("NONE", "LOGISTIC" if targets > 1 else "NONE")  # ONNX Runtime leaves it out of one target
    d.add("LinearRegressor", [name], ["y"], domain="ai.onnx.ml", targets=targets,
          coefficients=numbers(targets * columns), intercepts=numbers(targets), post_transform=transform)


def padding(d):
    sizes = d.sizes(most=6)
    mode = d.any(*PAD)
    most = [PAD[mode] if mode == "constant" else min(PAD[mode], s - 1) for s in sizes]
    d.add("Pad", [d.input(d.floats(*sizes)), d.constant(np.array([d.number(0, m) for m in most * 2], "i8"))], ["y"],
          mode=mode)


def joining(d):
    sizes = d.sizes()
    axis = d.number(-len(sizes), len(sizes) - 1)
    parts = [d.floats(*[d.number(1, 4) if i == axis % len(sizes) else s for i, s in enumerate(sizes)])
             for _ in range(d.number(1, 4))]
    joined = d.add("Concat", [d.input(p) for p in parts], axis=axis)
    d.add("Transpose", [joined], ["y"], perm=d.one.sample(range(len(sizes)), len(sizes)))


def resizing(d):
    mode = d.any("nearest", "linear", "cubic")
    sizes = d.numbers(4, 1, 7)
    result = d.constant(np.array(sizes[:2] + d.numbers(2, 1, 12), "i8"))
    d.add("Resize", [d.input(d.floats(*sizes)), "", "", result], ["y"], mode=mode,
          coordinate_transformation_mode=d.any("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"),
          nearest_mode=d.any("round_prefer_floor", "round_prefer_ceil", "floor", "ceil") if mode == "nearest" else None)


def ordering(d):
    sizes = d.sizes(most=9)
    axis = d.number(-len(sizes), len(sizes) - 1)
    d.outputs = ["y", "at"]
    d.add("TopK", [d.input(d.floats(*sizes)), d.constant(np.array([d.number(1, sizes[axis])], "i8"))], d.outputs,
          axis=axis, largest=d.any(0, 1))


def recurrence(d):
    op, ways = d.any("RNN", "GRU", "LSTM"), d.any(1, 2)
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    width, wide, steps, batch = d.number(1, 9), d.number(1, 7), d.number(1, 5), d.number(1, 3)
    names = [d.input(d.floats(steps, batch, wide)), d.constant(d.floats(ways, gates * width, wide, most=1)),
             d.constant(d.floats(ways, gates * width, width, most=1)),
             d.constant(d.floats(ways, 2 * gates * width)) if d.maybe() else "",
             d.constant(d.integers(1, steps, batch, dtype="i4")) if d.maybe() else "",
             d.constant(d.floats(ways, batch, width)) if d.maybe() else ""]
    d.outputs = ["y", "last", "cells"] if op == "LSTM" else ["y", "last"]
    d.add(op, names, d.outputs, hidden_size=width,
          direction="bidirectional" if ways == 2 else d.any("forward", "reverse"),
          linear_before_reset=d.any(0, 1) if op == "GRU" else None)


def quantized(d):
    """Weights of seven bits: ONNX Runtime's sums of pairs saturate without VNNI."""
    signed = d.maybe()
    dtype, least, most = ("i1", -128, 127) if signed else ("u1", 0, 255)
    scale = lambda *sizes: np.abs(d.floats(*sizes, most=0.05)) + np.float32(0.005)
    zero = lambda: np.array(d.number(-50, 50) if signed else d.number(60, 180), dtype)
    each = d.maybe()
    if d.maybe():
        group, outward = d.any(1, 2), 2 * d.number(1, 9)
        inward, columns = 2 * d.number(1, 8), (outward,) if each else ()
        weights = d.integers(-64, 63, outward, inward // group, *d.numbers(2, 1, 3), dtype="i1")
        parameters = [scale(), zero(), weights, scale(*columns), np.zeros(columns, "i1"),
                      scale() * np.float32(inward * 30), zero()]
        parameters += [d.integers(-3000, 3000, outward, dtype="i4")] if d.maybe() else []
        x = d.integers(least, most, 2, inward, *d.numbers(2, 4, 15), dtype=dtype)
        d.add("QLinearConv", [d.input(x), *map(d.constant, parameters)], ["y"], pads=d.numbers(4, 0, 1), group=group,
              strides=d.numbers(2, 1, 2))
    else:
        k, n = d.number(1, 70), d.number(1, 40)
        columns = (n,) if each else ()
        parameters = [scale(), zero(), d.integers(-64, 63, k, n, dtype="i1"), scale(*columns),
                      np.zeros(columns, "i1"), scale() * np.float32(k * 0.4), zero()]
        d.add("QLinearMatMul",
              [d.input(d.integers(least, most, d.number(1, 30), k, dtype=dtype)), *map(d.constant, parameters)], ["y"])
    d.off = 0


# --- networks ---------------------------------------------------------------------------------------------------------
def network(d):
    """Layers on one of the last three results; each is (name, sizes)."""
    live = [("x0", (d.number(1, 2), d.any(1, 3, 8, 16), d.number(6, 40), d.number(6, 40)))]
    d.input(d.floats(*live[0][1]))
    while len(live) < d.number(3, 12) + 1:
        name, sizes = d.one.choice(live[-3:])
        made_by = d.any(convolve, convolve, depthwise, normalize, activate, activate, pool, combine, join, excite,
                        enlarge, turn, soften, weigh)
        made_by(d, live, name, sizes)
    d.outputs = [live[-1][0]]
    d.off = 3e-4


def slide(d, live, name, sizes, outward, group, size):
    batch, channels, *image = sizes
    stride = d.any(1, 1, 2)
    if min(image) + size // 2 * 2 < size:
        return
    names = [name, d.constant(d.floats(outward, channels // group, size, size, most=1)), d.constant(d.floats(outward))]
    result = tuple((s + size // 2 * 2 - size) // stride + 1 for s in image)
    live.append((d.add("Conv", names, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[size // 2] * 4, group=group),
                 (batch, outward, *result)))


def convolve(d, live, name, sizes):
    slide(d, live, name, sizes, d.any(4, 8, 16, 24, 32), 2 if sizes[1] % 2 == 0 and d.maybe() else 1,
          d.any(1, 1, 3, 3, 5))


def depthwise(d, live, name, sizes):
    slide(d, live, name, sizes, sizes[1], sizes[1], d.any(3, 5))


def normalize(d, live, name, sizes):
    vectors = [d.floats(sizes[1]) for _ in range(3)] + [np.abs(d.floats(sizes[1])) + np.float32(0.2)]
    live.append((d.add("BatchNormalization", [name, *map(d.constant, vectors)]), sizes))


def activate(d, live, name, sizes):
    live.append((d.add(d.any("Relu", "Sigmoid", "HardSwish", "Tanh", "LeakyRelu", "Erf"), [name]), sizes))


def pool(d, live, name, sizes):
    size, stride = d.any(2, 3, 5), d.any(1, 2)
    if min(sizes[2:]) < size:
        return
    result = tuple((s + size // 2 * 2 - size) // stride + 1 for s in sizes[2:])
    live.append((d.add(d.any("MaxPool", "AveragePool"), [name], kernel_shape=[size] * 2, strides=[stride] * 2,
                       pads=[size // 2] * 4),
                 (*sizes[:2], *result)))


def combine(d, live, name, sizes):
    other = d.one.choice([n for n, s in live if s == sizes])
    live.append((d.add(d.any("Add", "Mul", "Max"), [name, other]), sizes))


def join(d, live, name, sizes):
    others = [(n, s) for n, s in live if s[0] == sizes[0] and s[2:] == sizes[2:]]
    other, more = d.one.choice(others)
    live.append((d.add("Concat", [name, other], axis=1), (sizes[0], sizes[1] + more[1], *sizes[2:])))


def excite(d, live, name, sizes):
    mean = d.add("GlobalAveragePool", [name])
    factor = d.add("Conv",
                   [mean, d.constant(d.floats(sizes[1], sizes[1], 1, 1, most=1)), d.constant(d.floats(sizes[1]))])
    live.append((d.add("Mul", [name, d.add("Sigmoid", [factor])]), sizes))


def enlarge(d, live, name, sizes):
    if sizes[2] * sizes[3] > 800:
        return
    scales = d.constant(np.array([1, 1, 2, 2], "f4"))
    live.append((d.add("Resize", [name, "", scales], mode=d.any("nearest", "linear")),
                 (*sizes[:2], 2 * sizes[2], 2 * sizes[3])))


def turn(d, live, name, sizes):
    axes = d.any([0, 2, 3, 1], [0, 1, 3, 2], [0, 3, 1, 2])
    live.append((d.add("Transpose", [name], perm=axes), tuple(sizes[a] for a in axes)))


def soften(d, live, name, sizes):
    live.append((d.add("Softmax", [name], axis=d.number(1, 3)), sizes))


def weigh(d, live, name, sizes):
    columns = d.any(4, 16, 33)
    live.append((d.add("MatMul", [name, d.constant(d.floats(sizes[3], columns, most=1))]), (*sizes[:3], columns)))


MODELS = (pointwise, unary, reduction, convolution, transposed, pooling, product, slicing, gathering, scattering,
          scattering_rows, listing, preparing, padding, joining, resizing, ordering, recurrence, quantized, network,
          network, network)


def main():
    opjit = sys.argv[1]
    first, count = int(sys.argv[2]) if len(sys.argv) > 2 else 1, int(sys.argv[3]) if len(sys.argv) > 3 else 200
    failed = 0
    for seed in range(first, first + count):
        d = Draw(seed)
        kind = MODELS[seed % len(MODELS)]
        kind(d)
        opset = max(19, *(made.NEWER.get(one.op_type, 19) for one in d.nodes))
        why = made.compare(opjit, d.nodes, d.inputs, d.constants, d.outputs, d.off, opset)
        if why:
            failed += 1
            print(f"FAIL {seed} ({kind.__name__}): {why}\n  {[(n.op_type, list(n.input)) for n in d.nodes]}")
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
