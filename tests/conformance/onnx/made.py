#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""made.py - models of a node or two, made here, that ONNX's node tests have not: operators of com.microsoft, padding
and modes of GridSample, transforms, loops, scattering.  Each goes through `opjit run`, and the outputs are compared
with those of onnxruntime.

    made.py OPJIT [TEXT]     TEXT: cases whose names have it"""
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import found
import learned
import placed
import rounds

random = np.random.default_rng(1)
NEWER = {"AffineGrid": 20, "DeformConv": 19, "DequantizeLinear": 21, "TensorScatter": 24,
         "BatchNormalization": 13}  # opsets that operators came with; 13: training is told by outputs
CASES = []  # name, nodes, inputs {name: array}, constants {name: array}, outputs, most difference, opset, want


def case(name, nodes, inputs, constants=None, outputs=("y",), off=1e-5, opset=None, want=None):
    """want: the one output of the inputs, where onnxruntime has no such operator."""
    CASES.append((name, nodes, inputs, constants or {}, outputs, off, opset, want))


def node(op, inputs, outputs=("y",), domain="", **attributes):
    return helper.make_node(op, list(inputs), list(outputs), domain=domain, **attributes)


def floats(*sizes, most=1.0):
    return random.uniform(-most, most, sizes).astype("f4")


def scalar(value, dtype="f4"):
    return np.array(value, dtype)


def quantized():
    a, b = random.integers(0, 256, (2, 3, 5, 6)).astype("u1"), random.integers(0, 256, (2, 3, 5, 6)).astype("u1")
    parameters = {"as": scalar(0.02), "az": scalar(120, "u1"), "bs": scalar(0.03), "bz": scalar(100, "u1"),
                  "ys": scalar(0.05), "yz": scalar(110, "u1")}
    one = {k: v for k, v in parameters.items() if k[0] != "b"}
    two = ["a", "as", "az", "b", "bs", "bz", "ys", "yz"]
    for op in ("QLinearAdd", "QLinearMul"):
        case(op, [node(op, two, domain="com.microsoft")], {"a": a, "b": b}, parameters, off=1)
    case("QLinearConcat",
         [node("QLinearConcat", ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], domain="com.microsoft", axis=1)],
         {"a": a, "b": b}, parameters, off=1)
    unary = ["a", "as", "az", "ys", "yz"]
    for op, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3}),
                           ("QLinearGlobalAveragePool", {}),
                           ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})):
        case(op, [node(op, unary, domain="com.microsoft", **attributes)], {"a": a}, one, off=1)
    for opset in (11, 13):  # whose Softmax it is
        case(f"QLinearSoftmax {opset}",
             [node("QLinearSoftmax", ["a", "as", "az", "ys", "yz"], domain="com.microsoft", axis=1, opset=opset)],
             {"a": a}, {**one, "ys": scalar(1 / 256), "yz": scalar(0, "u1")}, off=1)


def packed():
    for bits in (4, 8):
        for zeros in (False, True):
            n, k, block = 10, 40, 16  # three blocks, the last one in part
            blocks = (k + block - 1) // block
            constants = {"b": random.integers(0, 256, (n, blocks, block * bits // 8)).astype("u1"),
                         "s": floats(n * blocks)}
            if zeros:
                constants["z"] = random.integers(0, 256, n * (blocks if bits == 8 else (blocks + 1) // 2)).astype("u1")
            case(f"MatMulNBits {bits} {zeros}",
                 [node("MatMulNBits", ["x", "b", "s"] + ["z"] * zeros, domain="com.microsoft", bits=bits, K=k, N=n,
                       block_size=block)],
                 {"x": floats(2, 3, k)}, constants)


def sampled():
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                case(f"GridSample {mode} {padding} {corners}",
                     [node("GridSample", ["x", "grid"], mode=mode, padding_mode=padding, align_corners=corners)],
                     {"x": floats(2, 3, 5, 7), "grid": floats(2, 4, 6, 2, most=2.3)})
                case(f"GridSample cubic {padding} {corners}",
                     [node("GridSample", ["x", "grid"], mode="bicubic", padding_mode=padding, align_corners=corners)],
                     {"x": floats(2, 3, 5, 7), "grid": floats(2, 4, 6, 2, most=2.3)}, off=1e-4)


def unpooled():
    for sizes, kernel in (((2, 3, 8), [2]), ((2, 3, 6, 9), [2, 3]), ((1, 2, 4, 6, 8), [2, 2, 2])):
        attributes = {"kernel_shape": kernel, "strides": kernel}
        case(f"MaxUnpool {len(kernel)}",
             [node("MaxPool", ["x"], ["p", "i"], **attributes), node("MaxUnpool", ["p", "i"], **attributes)],
             {"x": floats(*sizes)}, off=0)
    for order in (0, 1):
        case(f"MaxPool indices {order}",
             [node("MaxPool", ["x"], ["y", "i"], kernel_shape=[3, 2], strides=[2, 1], pads=[1, 0, 1, 0],
                   storage_order=order)],
             {"x": floats(2, 3, 7, 5)}, outputs=("y", "i"), off=0)


def corners():
    """What the standard says of the corners of operators, and its node tests do not try."""
    empty = np.array([], "i8")
    for op in ("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp", "ReduceSum", "ReduceMax"):
        case(f"{op} of no axes", [node(op, ["x", "a"], noop_with_empty_axes=1)], {"x": floats(3, 4) + 3}, {"a": empty})
    for dtype in ("i4", "i8"):
        case(f"ReduceMean {dtype}", [node("ReduceMean", ["x", "a"])], {"x": integers(-9, 9, (3, 4, 5), dtype)}, {"a": np.int64([0, 2])}, off=0)
    for batch in (0, 1):
        case(f"ReverseSequence {batch}", [node("ReverseSequence", ["x", "l"], batch_axis=batch, time_axis=1 - batch)],
             {"x": floats(4, 4, 3)}, {"l": np.array([1, 4, 2, 3], "i8")}, off=0)
    for sizes, pads in (((2, 2, 8, 5), [0, 2, 0, 2]), ((1, 2, 7), [1, 0]), ((1, 1, 5, 6, 7), [1, 1, 0, 0, 1, 1])):
        count = len(sizes) - 2
        case(f"AveragePool up {count}",
             [node("AveragePool", ["x"], ceil_mode=1, count_include_pad=1, kernel_shape=[3] * count,
                   strides=[2] * count, pads=pads)], {"x": floats(*sizes)})
    for reduction in ("add", "mul", "min", "max"):
        case(f"ScatterElements {reduction} of few",
             [node("ScatterElements", ["x", "i", "u"], axis=1, reduction=reduction)],
             {"x": floats(4, 1, 5)}, {"i": np.zeros((2, 3, 4), "i8"), "u": floats(2, 3, 4)})
        case(f"ScatterND {reduction} of one", [node("ScatterND", ["x", "i", "u"], reduction=reduction)],
             {"x": floats(2, 2)}, {"i": np.array([[-1, -2]], "i8"), "u": floats(1)})
    for start, end, step in ((-7, -9, -1), (-7, -7, -2), (-2 ** 63, -2 ** 63, -1), (9, -7, -1), (3, -4, -2 ** 63)):
        case(f"Slice back {start} {end} {step}", [node("Slice", ["x", "s", "e", "a", "by"])],
             {"x": np.arange(24, dtype="f").reshape(4, 6)},
             {"s": np.int64([start]), "e": np.int64([end]), "a": np.int64([1]), "by": np.int64([step])}, off=0)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        case(f"{op} signed", [node(op, ["a", "b"])],
             {"a": integers(-99, 99, (3, 4), "i4"), "b": integers(-99, 99, 4, "i4")}, off=0)
    for dtype in ("u1", "i4"):
        case(f"BitwiseOr {dtype} of nothing",
             [node("BitwiseOr", ["a", "b"]), node("Concat", ["y", "c"], ["z"], axis=0)],
             {"c": integers(0, 9, (2, 3), dtype)}, {"a": np.zeros((0, 3), dtype), "b": np.ones(3, dtype)}, ("z",),
             off=0)
    case("BitwiseNot signed", [node("BitwiseNot", ["a"])], {"a": integers(-99, 99, (3, 4), "i1")}, off=0)


def diagonals():
    for equation, sizes in (("ii->i", (4, 4)), ("ii", (4, 4)), ("bii->bi", (3, 4, 4)), ("iji->j", (4, 5, 4)),
                            ("...ii->...i", (2, 3, 4, 4)), ("iijj->ij", (2, 2, 3, 3))):
        case(f"Einsum {equation}", [node("Einsum", ["x"], equation=equation)], {"x": floats(*sizes)})
    case("Einsum iij,jk->ik", [node("Einsum", ["x", "z"], equation="iij,jk->ik")],
         {"x": floats(4, 4, 3), "z": floats(3, 5)})
    case("Einsum B G H I D, B G H J D -> B G H I J",
         [node("Einsum", ["x", "z"], equation="B G H I D, B G H J D -> B G H I J")],
         {"x": floats(1, 2, 3, 4, 5), "z": floats(1, 2, 3, 6, 5)})
    case("Einsum ...aB,...Bc", [node("Einsum", ["x", "z"], equation="...aB,...Bc")],
         {"x": floats(2, 3, 4), "z": floats(2, 4, 5)})
    case("OneHot of a float depth", [node("OneHot", ["x", "d", "v"], axis=1)], {"x": np.array([[1, -2], [9, 0]], "i8")},
         {"d": np.array([5.0], "f4"), "v": np.array([2, 7], "f4")}, off=0)


def transformed():
    for axis, length in ((1, 12), (2, 5), (2, 9)):
        for parts in (1, 2):
            for inverse in (0, 1):
                case(f"DFT {axis} {length} {parts} {inverse}",
                     [node("DFT", ["x", "length"], axis=axis, inverse=inverse)], {"x": floats(2, 12, 7, parts)},
                     {"length": scalar(length, "i8")})
    case("DFT onesided", [node("DFT", ["x"], axis=1, onesided=1)], {"x": floats(2, 15, 1)})
    case("STFT", [node("STFT", ["x", "step", "window"])], {"x": floats(2, 100, 1)},
         {"step": scalar(8, "i8"), "window": np.hanning(32).astype("f4")})


def scattered():
    at = random.integers(-4, 4, (3, 9, 2))
    places = random.integers(0, 3, (11, 2))
    for reduction in ("add", "mul", "min", "max"):
        case(f"ScatterElements {reduction}", [node("ScatterElements", ["x", "at", "new"], axis=1, reduction=reduction)],
             {"x": floats(3, 4, 2), "at": at, "new": floats(3, 9, 2)})
        case(f"ScatterND {reduction}", [node("ScatterND", ["x", "at", "new"], reduction=reduction)],
             {"x": floats(3, 4, 5), "at": places, "new": floats(11, 5)})
    for reduction in ("min", "max"):
        case(f"ScatterND {reduction} of all updates", [node("ScatterND", ["x", "at", "new"], reduction=reduction)],
             {"x": np.float32([[9, 9, 9, 9], [5, 6, 7, 8]]), "at": np.int64([[1], [1]]),
              "new": np.float32([[5, 9, 3, 1], [6, 6, 6, 6]])})


def integers(least, most, sizes, dtype="i8"):
    return random.integers(least, most + 1, sizes).astype(dtype)


def microsoft(op, inputs, outputs=("y",), **attributes):
    return node(op, inputs, outputs, domain="com.microsoft", **attributes)


BATCH, ROWS, WIDTH, HEADS = 2, 7, 64, 4


def embedded():
    for segments in (False, True):
        for mask in (False, True):
            inputs = {"words": integers(0, 19, (BATCH, ROWS), "i4")}
            tables = {"table": floats(20, WIDTH), "places": floats(16, WIDTH), "g": floats(WIDTH), "b": floats(WIDTH)}
            if segments:
                inputs["parts"], tables["of_parts"] = integers(0, 1, (BATCH, ROWS), "i4"), floats(2, WIDTH)
            if mask:
                inputs["mask"] = integers(0, 1, (BATCH, ROWS), "i4")
            names = ["words", "parts" * segments, "table", "places", "of_parts" * segments, "g", "b", "mask" * mask]
            case(f"EmbedLayerNormalization {segments} {mask}",
                 [microsoft("EmbedLayerNormalization", names if mask else names[:-1], ("y", "count"))], inputs, tables,
                 ("y", "count"))
    case("EmbedLayerNormalization positions",
         [microsoft("EmbedLayerNormalization", ["words", "", "table", "places", "", "g", "b", "", "at"],
                    ("y", "count", "sum"))],
         {"words": integers(0, 19, (BATCH, ROWS), "i4"), "at": integers(0, 15, (BATCH, ROWS), "i4")},
         {"table": floats(20, WIDTH), "places": floats(16, WIDTH), "g": floats(WIDTH), "b": floats(WIDTH)},
         ("y", "count", "sum"))


def attended():
    x, weights = {"x": floats(BATCH, ROWS, WIDTH)}, {"w": floats(WIDTH, 3 * WIDTH), "b": floats(3 * WIDTH)}
    past = floats(2, BATCH, HEADS, 3, WIDTH // HEADS)

    def attention(name, inputs, more, outputs=("y",), constants=weights, **attributes):
        case(f"Attention {name}", [microsoft("Attention", inputs, outputs, num_heads=HEADS, **attributes)],
             {**x, **more}, constants, outputs)

    attention("mask", ["x", "w", "b", "m"], {"m": integers(0, 1, (BATCH, ROWS), "i4")})
    attention("lengths", ["x", "w", "b", "m"], {"m": np.array([5, 7], "i4")})
    attention("mask of pairs", ["x", "w", "b", "m"], {"m": integers(0, 1, (BATCH, ROWS, ROWS), "i4")})
    attention("past", ["x", "w", "b", "", "p"], {"p": past}, ("y", "now"), unidirectional=1)
    attention("past and mask", ["x", "w", "b", "m", "p"], {"p": past, "m": integers(0, 1, (BATCH, ROWS + 3), "i4")},
              ("y", "now"))
    attention("present", ["x", "w", "b"], {}, ("y", "now"), unidirectional=1)
    attention("widths", ["x", "w", "b"], {}, constants={"w": floats(WIDTH, 4 * WIDTH), "b": floats(4 * WIDTH)},
              qkv_hidden_sizes=[WIDTH, WIDTH, 2 * WIDTH])
    attention("bias", ["x", "w", "b", "", "", "s"], {"s": floats(BATCH, HEADS, ROWS, ROWS)})
    for mask in (False, True):
        case(f"QAttention {mask}",
             [microsoft("QAttention", ["x", "w", "b", "xs", "ws", "m" * mask, "xz", "wz"], num_heads=HEADS)],
             {"x": integers(0, 255, (BATCH, ROWS, WIDTH), "u1"),
              **({"m": integers(0, 1, (BATCH, ROWS), "i4")} if mask else {})},
             {"w": integers(-100, 100, (WIDTH, 3 * WIDTH), "i1"), "b": weights["b"], "xs": scalar(.02),
              "ws": scalar(.01), "xz": scalar(120, "u1"), "wz": scalar(0, "i1")})
    case("MultiHeadAttention lengths", [microsoft("MultiHeadAttention", ["q", "q", "q", "", "m"], num_heads=HEADS)],
         {"q": x["x"], "m": np.array([3, 7], "i4")})
    for attributes in ({}, {"local_window_size": 3}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1},
                       {"softcap": 5.0}, {"scale": .3}):
        for before in (0, 5):
            rows, tables = (1, ROWS)[before == 0], {}
            names = ["q", "k", "v", "pk", "pv", "length", "total"]
            if "do_rotary" in attributes:
                names, tables = [*names, "cosines", "sines"], {"cosines": floats(16, 8), "sines": floats(16, 8)}
            case(f"GroupQueryAttention {attributes} {before}",
                 [microsoft("GroupQueryAttention", names, ("y", "keys", "values"), num_heads=HEADS, kv_num_heads=2,
                            **attributes)],
                 {"q": floats(BATCH, rows, WIDTH), "k": floats(BATCH, rows, WIDTH // 2),
                  "v": floats(BATCH, rows, WIDTH // 2),
                  "pk": floats(BATCH, 2, before, 16), "pv": floats(BATCH, 2, before, 16),
                  "length": np.full(BATCH, before + rows - 1, "i4"), "total": scalar(before + rows, "i4")}, tables,
                 ("y", "keys", "values"))
    case("GroupQueryAttention packed",
         [microsoft("GroupQueryAttention", ["q", "", "", "", "", "length", "total"], ("y", "keys", "values"),
                    num_heads=HEADS, kv_num_heads=2)],
         {"q": floats(BATCH, ROWS, 2 * WIDTH), "length": np.full(BATCH, ROWS - 1, "i4"), "total": scalar(ROWS, "i4")},
         {}, ("y", "keys", "values"))
    case("RotaryEmbedding from", [microsoft("RotaryEmbedding", ["x", "from", "cosines", "sines"])],
         {"x": x["x"], "from": np.array([3])}, {"cosines": floats(16, 16), "sines": floats(16, 16)})


def fused():
    image, filters = {"x": floats(1, 4, 8, 8)}, {"w": floats(6, 4, 3, 3), "b": floats(6)}
    for activation, numbers in (("Relu", []), ("Tanh", []), ("Sigmoid", []), ("LeakyRelu", [.2]), ("Clip", [0., 1.]),
                                ("HardSigmoid", [.2, .5])):
        case(f"FusedConv {activation}",
             [microsoft("FusedConv", ["x", "w", "b"], activation=activation, kernel_shape=[3, 3],
                        **({"activation_params": numbers} if numbers else {}))],
             image, filters)
    case("FusedConv sum", [microsoft("FusedConv", ["x", "w", "b", "z"], activation="Relu", pads=[1, 1, 1, 1])],
         {**image, "z": floats(1, 6, 8, 8)}, filters)
    for attributes in ({"activation": "Relu"}, {"activation": "LeakyRelu", "activation_alpha": .3}):
        case(f"FusedGemm {attributes}", [microsoft("FusedGemm", ["x", "w", "b"], transB=1, **attributes)],
             {"x": floats(3, 8)}, {"w": floats(5, 8), "b": floats(5)})
    case("TransposeMatMul", [microsoft("TransposeMatMul", ["x", "w"], transB=1)],
         {"x": floats(2, 3, 8), "w": floats(2, 5, 8)})
    case("Pad", [microsoft("Pad", ["x", "p", "v"])], {"x": floats(3, 4)},
         {"p": np.array([1, 0, 2, 1]), "v": scalar(.5)})
    case("Trilu", [microsoft("Trilu", ["x"], upper=0)], {"x": floats(2, 4, 4)})
    case("ExpandDims", [microsoft("ExpandDims", ["x", "a"])], {"x": floats(3, 4)}, {"a": scalar(1, "i4")})


def sigmoids():
    """Of numbers far from 0: no denormals, which what comes behind would be slow with."""
    x = {"x": np.linspace(-300, 300, 4801, dtype="f4")}
    least = {"least": scalar(np.finfo("f4").tiny)}
    for alpha, nodes in ((1, [node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"])]),
                         (.5, [node("Swish", ["x"], alpha=.5)]), (1.702, [microsoft("QuickGelu", ["x"])])):
        case(f"sigmoids {alpha}", nodes, x, off=1e-7, opset=24,
             want=lambda x, alpha=alpha: (x / (1 + np.exp(-alpha * x.astype("f8")))).astype("f4"))
    case("sigmoids least", [node("Sigmoid", ["x"], ["s"]), node("Less", ["s", "least"])], x, least,
         want=lambda x: np.zeros(x.shape, "?"))
    case("sigmoids swish", [node("Swish", ["x"], ["s"]), node("Abs", ["s"], ["a"]), node("Less", ["a", "least"])],
         {"x": x["x"][x["x"] != 0]}, least, opset=24, want=lambda x: np.zeros(x.shape, "?"))


def empty():
    past = {"past": floats(2, BATCH, 0, 8), "x": floats(BATCH, 8, 3)}
    case("Concat with nothing",
         [node("Split", ["past"], ["a", "b"], axis=0, num_outputs=2), node("Squeeze", ["b", "zero"], ["c"]),
          node("Transpose", ["c"], ["d"], perm=[0, 2, 1]), node("Concat", ["d", "x"], axis=2)],
         past, {"zero": np.array([0])})
    case("Gather of nothing",
         [node("Gather", ["past", "one"], ["a"], axis=0), node("Transpose", ["x"], ["b"], perm=[0, 2, 1]),
          node("Concat", ["a", "b"], axis=1)], past, {"one": scalar(1, "i8")})
    case("Operators of nothing, as a memory of no steps has them",
         [node("Slice", ["x", "eight", "eight", "one_axis"], ["a"]), node("Clip", ["a", "low", "high"], ["b"]),
          node("Pow", ["b", "two"], ["c"]), node("Max", ["c", "b"], ["d"]), node("IsNaN", ["d"], ["e"]),
          node("Where", ["e", "d", "c"], ["f"]), node("Softmax", ["f"], ["g"]), node("MatMul", ["g", "w"], ["h"]),
          node("Concat", ["h", "x"], axis=1)],
         {"x": past["x"]}, {"eight": np.array([8]), "one_axis": np.array([1]), "low": scalar(-1.), "high": scalar(1.),
                            "two": scalar(2.), "w": floats(3, 3)})
    nothing = {"zero": np.array([0]), "none": np.array([0]), "axis": np.array([1])}
    for op in ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"):
        case(f"Reduce{op} of nothing",
             [node("Slice", ["x", "zero", "none", "axis"], ["a"]), node(f"Reduce{op}", ["a", "axis"], ["b"]),
              node("Concat", ["b", "x"], axis=1)], {"x": past["x"]}, nothing)
    case("MatMul of nothing",
         [node("Slice", ["x", "zero", "none", "axis"], ["a"]), node("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
          node("MatMul", ["b", "a"], ["c"]), node("Concat", ["c", "x"], axis=1)], {"x": past["x"]}, nothing)
    case("Expand to nothing", [node("Expand", ["row", "sizes"], ["a"]), node("Concat", ["x", "a"], axis=1)],
         {"x": past["x"], "row": floats(BATCH, 1, 3)}, {"sizes": np.array([1, 0, 1])})
    case("Split into nothing", [node("Split", ["x", "sizes"], ["a", "y"], axis=1)], {"x": past["x"]},
         {"sizes": np.array([0, 8])})


def small():
    xs, ys = {"xs": scalar(.02), "xz": scalar(120, "u1")}, {"ys": scalar(.05), "yz": scalar(110, "u1")}
    image = {"x": integers(0, 255, (1, 8, 8, 4), "u1")}
    filters = {"w": integers(-64, 63, (6, 4, 3, 3), "i1"), "ws": scalar(.01), "wz": scalar(0, "i1")}
    case("QLinearConv of channels last",
         [microsoft("QLinearConv", ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], channels_last=1, pads=[1, 1, 1, 1])],
         image, {**xs, **filters, **ys}, off=1)
    case("NhwcMaxPool", [microsoft("NhwcMaxPool", ["x"], kernel_shape=[3, 3], strides=[2, 2])], image, off=0)
    case("QLinearAveragePool of channels last",
         [microsoft("QLinearAveragePool", ["x", "xs", "xz", "ys", "yz"], channels_last=1, kernel_shape=[3, 3])], image,
         {**xs, **ys}, off=1)
    case("QLinearGlobalAveragePool of channels last",
         [microsoft("QLinearGlobalAveragePool", ["x", "xs", "xz", "ys", "yz"], channels_last=1)], image, {**xs, **ys},
         off=1)
    names, bias = ["x", "xs", "xz", "w", "ws", "wz", "b"], {"b": integers(-500, 500, 5, "i4")}
    matrix = {"w": integers(-100, 100, (5, 8), "i1"), "ws": np.abs(floats(5)), "wz": np.zeros(5, "i1")}
    case("QGemm", [microsoft("QGemm", names, transB=1, alpha=.5)], {"x": integers(0, 255, (3, 8), "u1")},
         {**xs, **matrix, **bias})
    case("QGemm quantized", [microsoft("QGemm", [*names, "ys", "yz"], transB=1)], {"x": integers(0, 255, (3, 8), "u1")},
         {**xs, **matrix, **bias, **ys}, off=1)
    for zero in (False, True):
        for sizes in ((), (5,)):
            case(f"DynamicQuantizeMatMul {zero} {sizes}",
                 [microsoft("DynamicQuantizeMatMul", ["x", "w", "s", "z" * zero, "b"])], {"x": floats(3, 8)},
                 {"w": integers(0, 255, (8, 5), "u1"), "s": floats(*sizes), "b": floats(5),
                  **({"z": integers(0, 255, sizes, "u1")} if zero else {})})


def between():
    """Products between DequantizeLinear and QuantizeLinear: their sums are exact, and so is what is half between two
    numbers, of which there are many: the scales' quotient is a power of two.  onnxruntime has INT8 as floats on x86, and
    rounds some of these halves otherwise."""
    def quantize(name, to, scale="ys", zero="yz"):
        return node("QuantizeLinear", [name, scale, zero], [to])

    def back(name, to, scale, zero, **attributes):
        return node("DequantizeLinear", [name, scale, zero], [to], **attributes)

    def parameters(columns, most, signed):
        w = np.full(columns, .01, "f4")
        return {"xs": scalar(.02), "xz": scalar(-3 if signed else 120, "i1" if signed else "u1"), "ws": w,
                "wz": np.zeros(columns, "i1"), "bs": scalar(.02) * w,
                "bz": np.zeros(columns, "i4"), "b": integers(-900, 900, columns, "i4"),
                "ys": (scalar(.02) * w[0] * np.float32(most)).astype("f4"),
                "yz": scalar(-10 if signed else 90, "i1" if signed else "u1")}

    for signed in (False, True):
        for relu in (False, True):
            p = parameters(16, 1024, signed)
            if relu:
                p["yz"] = scalar(-128 if signed else 0, p["yz"].dtype)
            x = {"x": floats(1, 8, 40, 40, most=2.0)}
            begin = [quantize("x", "xq", "xs", "xz"), back("xq", "xd", "xs", "xz"), back("w", "wd", "ws", "wz", axis=0),
                     back("b", "bd", "bs", "bz", axis=0), node("Conv", ["xd", "wd", "bd"], ["c"], pads=[1, 1, 1, 1])]
            last = [node("Relu", ["c"], ["r"])] if relu else []
            case(f"Conv between {signed} {relu}", [*begin, *last, quantize("r" if relu else "c", "y")], x,
                 {**p, "w": integers(-100, 100, (16, 8, 3, 3), "i1")}, off=1 * signed)
            for most in (1.0, 128.0) if relu else ():  # one that says something, and one that is the greatest number
                clip = node("Clip", ["c", "least", "most"], ["r"])
                limits = {"least": scalar(0), "most": (p["ys"] * scalar(most * 2 - 1)).astype("f4")}
                case(f"Conv between {signed}, clipped at {most}", [*begin, clip, quantize("r", "y")], x,
                     {**p, **limits, "w": integers(-100, 100, (16, 8, 3, 3), "i1")}, off=1 * signed)
        p = parameters(64, 1024, signed)
        x = {"x": floats(200, 48, most=2.0)}
        begin = [quantize("x", "xq", "xs", "xz"), back("xq", "xd", "xs", "xz")]
        for turned in (0, 1):
            w = integers(-100, 100, (64, 48) if turned else (48, 64), "i1")
            case(f"Gemm between {signed} {turned}",
                 [*begin, back("w", "wd", "ws", "wz", axis=1 - turned), back("b", "bd", "bs", "bz", axis=0),
                  node("Gemm", ["xd", "wd", "bd"], ["g"], transB=turned), quantize("g", "y")], x, {**p, "w": w}, off=1 * signed)
        p.pop("b"), p.pop("bs"), p.pop("bz")
        case(f"MatMul between {signed}",
             [*begin, back("w", "wd", "ws", "wz", axis=1), node("MatMul", ["xd", "wd"], ["g"]),
              quantize("g", "y")], x, {**p, "w": integers(-100, 100, (48, 64), "i1")}, off=1 * signed)
    c = {"as": scalar(.02), "az": scalar(120, "u1"), "bs": scalar(.04), "bz": scalar(100, "u1"), "ys": scalar(.08),
         "yz": scalar(110, "u1")}
    pair = {"a": integers(0, 255, (50, 60), "u1"), "b": integers(0, 255, 60, "u1")}
    case("Add between", [back("a", "ad", "as", "az"), back("b", "bd", "bs", "bz"), node("Add", ["ad", "bd"], ["s"]),
                         quantize("s", "y")], pair, c, off=0)
    case("QLinearAdd of halves", [microsoft("QLinearAdd", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"])], pair, c,
         off=0)
    case("Product read twice between",
         [*begin, back("w", "wd", "ws", "wz", axis=1), node("MatMul", ["xd", "wd"], ["g"]), quantize("g", "y"),
          node("Relu", ["g"], ["r"])], x, {**p, "w": integers(-100, 100, (48, 64), "i1")}, ("y", "r"), off=1)


def value(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def looped():
    body = helper.make_graph([node("Mul", ["v", "two"], ["doubled"]),
                              node("Cast", ["i"], ["real"], to=TensorProto.FLOAT),
                              node("Add", ["doubled", "real"], ["next"]), node("Add", ["next", "outer"], ["seen"]),
                              node("Less", ["i", "three"], ["go"])], "body",
                             [value("i", TensorProto.INT64, []), value("before", TensorProto.BOOL, []), value("v")],
                             [value("go", TensorProto.BOOL, []), value("next"), value("seen")],
                             [numpy_helper.from_array(scalar(2), "two"),
                              numpy_helper.from_array(scalar(3, "i8"), "three")])
    for most in (2, 10):  # the second ends by its condition
        case(f"Loop {most}", [node("Loop", ["most", "", "x"], ["y", "all"], body=body)],
             {"x": floats(2, 3), "outer": floats(3)}, {"most": scalar(most, "i8")}, ("y", "all"))
    step = helper.make_graph([node("Add", ["state", "slice"], ["sum"]), node("Relu", ["sum"], ["part"]),
                              node("Identity", ["sum"], ["out"])], "body", [value("state"), value("slice")],
                             [value("out"), value("part")])
    for backward in (0, 1):
        case(f"Scan {backward}",
             [node("Scan", ["begin", "x"], ["y", "all"], body=step, num_scan_inputs=1, scan_input_axes=[1],
                   scan_output_axes=[1], scan_input_directions=[backward], scan_output_directions=[backward])],
             {"begin": floats(2, 3), "x": floats(2, 5, 3)}, {}, ("y", "all"))


def listed():
    """Sequences and optional values, which are gone when the model has been read."""
    places = {"zero": scalar(0, "i8"), "last": scalar(-1, "i8"), "one": scalar(1, "i8")}
    x = {"x": floats(5, 4, 3)}
    for axis, split in ((0, scalar(2, "i8")), (1, np.array([1, 3], "i8")), (-1, None)):
        for keep in (0, 1) if split is None else (1,):
            constants = {**places, **({} if split is None else {"split": split})}
            names = ["x"] + ["split"] * (split is not None)
            case(f"SplitToSequence {axis} {keep}",
                 [node("SplitToSequence", names, ["s"], axis=axis, keepdims=keep), node("SequenceLength", ["s"], ["n"]),
                  node("SequenceAt", ["s", "zero"], ["a"]), node("SequenceAt", ["s", "last"], ["b"])], x, constants,
                 ("n", "a", "b"), off=0)
    for new in (0, 1):
        case(f"ConcatFromSequence {new}",
             [node("SequenceConstruct", ["x", "z"], ["s"]), node("Relu", ["x"], ["r"]),
              node("SequenceInsert", ["s", "r", "one"], ["t"]),
              node("SequenceInsert", ["t", "r"], ["u"]), node("SequenceErase", ["u", "zero"], ["v"]),
              node("SequenceErase", ["v"], ["w"]),
              node("ConcatFromSequence", ["w"], ["y"], axis=-1, new_axis=new)], {**x, "z": floats(5, 4, 3)}, places,
             off=0)
    case("ConcatFromSequence of constants",
         [node("Shape", ["x"], ["sizes"]), node("SplitToSequence", ["sizes"], ["s"]),
          node("SequenceAt", ["s", "last"], ["c"]),
          node("SequenceErase", ["s"], ["rest"]), node("SequenceInsert", ["rest", "c", "zero"], ["turned"]),
          node("ConcatFromSequence", ["turned"], ["to"], axis=0), node("Reshape", ["x", "to"])], x, places, off=0)
    body = helper.make_graph([node("Mul", ["v", "half"], ["next"]),
                              node("SequenceInsert", ["list", "next"], ["longer"]),
                              node("Identity", ["before"], ["go"])], "body",
                             [value("i", TensorProto.INT64, []), value("before", TensorProto.BOOL, []), value("v"),
                              helper.make_tensor_sequence_value_info("list", TensorProto.FLOAT, None)],
                             [value("go", TensorProto.BOOL, []), value("next"),
                              helper.make_tensor_sequence_value_info("longer", TensorProto.FLOAT, None)],
                             [numpy_helper.from_array(scalar(.5), "half")])
    case("Loop with a sequence",
         [node("SequenceEmpty", [], ["none"]), node("Loop", ["three", "", "x", "none"], ["z", "all"], body=body),
          node("ConcatFromSequence", ["all"], ["y"], axis=0)], x, {"three": scalar(3, "i8")})
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    case("Optional",
         [node("Optional", ["x"], ["o"]), node("OptionalHasElement", ["o"], ["has"]),
          node("OptionalGetElement", ["o"], ["y"])],
         x, outputs=("has", "y"), off=0)
    case("Optional of nothing", [node("Optional", [], ["o"], type=tensor), node("OptionalHasElement", ["o"], ["has"])],
         x, outputs=("has",), off=0)


def selected():
    """Outputs as long as values say, which are known."""
    x = {"x": floats(3, 4, 2)}
    for axis, holds in ((0, [1, 0, 1]), (-2, [0, 1, 1]), (1, [0, 0, 0, 1])):
        case(f"Compress {axis}", [node("Compress", ["x", "c"], axis=axis)], x, {"c": np.array(holds, "?")}, off=0)
    case("Compress of all", [node("Compress", ["x", "c"])], x, {"c": np.array([0, 1, 1, 0, 0, 1], "?")}, off=0)
    for centers in (0, 1):
        for most, least in ((3, None), (10, .5)):
            constants = {"b": np.abs(floats(2, 30, 4)), "s": np.round(np.abs(floats(2, 3, 30)), 1),
                         "most": np.array([most], "i8"),
                         "overlap": np.float32([.3])} | ({} if least is None else {"least": np.float32([least])})
            case(f"NonMaxSuppression {centers} {most}",
                 [node("NonMaxSuppression", list(constants), ["n"], center_point_box=centers),
                  node("Cast", ["n"], ["f"], to=1),
                  node("ReduceSum", ["x"], ["sum"]), node("Mul", ["sum", "zero"], ["none"]),
                  node("Add", ["f", "none"])],
                 x, {**constants, "zero": scalar(0)}, off=0)


def wrapped():
    for pads in ([2, 0, 1, 1], [0, 7, 5, 4], [-1, 2, 0, -1]):
        case(f"Pad wrap {pads}", [node("Pad", ["x", "p"], mode="wrap")], {"x": floats(3, 4)},
             {"p": np.array(pads, "i8")}, off=0)


def trained():
    attributes = {"momentum": 0.7, "epsilon": 1e-3}
    inputs = {"x": floats(4, 3, 5), "s": floats(3), "b": floats(3), "m": floats(3), "v": np.abs(floats(3))}
    case("BatchNormalization trains, five outputs",
         [node("BatchNormalization", inputs, ["y", "mean", "var", "p", "q"], **attributes)], inputs,
         outputs=("y", "mean", "var", "p", "q"))


def unsorted():
    """Nodes before those that make what they read, as float16 converters write them; the loop's body reads one, too."""
    nodes = [node("Add", ["b", "c"]), node("Neg", ["a"], ["c"]), node("Mul", ["a", "c"], ["b"]),
             node("Cast", ["x"], ["a"], to=TensorProto.FLOAT)]
    case("nodes in reverse", nodes, {"x": floats(2, 3).astype("f2")})
    body = helper.make_graph([node("Relu", ["late"], ["r"])], "body", [], [helper.make_empty_tensor_value_info("r")])
    case("a branch before what it reads",
         [node("If", ["yes"], then_branch=body, else_branch=body), node("Neg", ["x"], ["late"])],
         {"x": floats(2, 3)}, {"yes": np.array(True)})


def others():
    learned.learned(case, node, random)
    placed.placed(case, node, random)
    found.found(case, node, random)
    rounds.rounds(case, node, random)


def recurrent():
    for direction, parts in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
        for each in (False, True):
            sizes = (parts, 64) if each else (parts,)
            constants = {"w": integers(-100, 100, (parts, 12, 64), "i1"),
                         "r": integers(-100, 100, (parts, 16, 64), "i1"),
                         "b": floats(parts, 128), "ws": np.abs(floats(*sizes, most=.02)), "wz": np.zeros(sizes, "i1"),
                         "rs": np.abs(floats(*sizes, most=.02)), "rz": np.zeros(sizes, "i1")}
            states = {"h": floats(parts, 2, 16), "c": floats(parts, 2, 16)} if each else {}
            names = ["x", "w", "r", "b", "", "h" * each, "c" * each, "", "ws", "wz", "rs", "rz"]
            case(f"DynamicQuantizeLSTM {direction} {each}",
                 [microsoft("DynamicQuantizeLSTM", names, ("y", "hn", "cn"), hidden_size=16, direction=direction)],
                 {"x": floats(9, 2, 12), **states}, constants, ("y", "hn", "cn"))
            if parts == 1 and each:
                case(f"DynamicQuantizeLSTM {direction}, other functions, the end alone",
                     [microsoft("DynamicQuantizeLSTM", ["x", "w", "r", "", *names[4:]], ("", "hn", "cn"),
                                hidden_size=16, direction=direction, activations=["HardSigmoid", "Softsign", "Relu"])],
                     {"x": floats(9, 2, 12), **states}, {k: v for k, v in constants.items() if k != "b"}, ("hn", "cn"))


def many():
    halved = helper.make_graph([node("Mul", ["v", "half"], ["next"]), node("Identity", ["before"], ["go"])], "body",
                               [value("i", TensorProto.INT64, []), value("before", TensorProto.BOOL, []), value("v")],
                               [value("go", TensorProto.BOOL, []), value("next"), value("next")],
                               [numpy_helper.from_array(scalar(0.99), "half")])
    case("Loop of more rounds than JOIN has inputs", [node("Loop", ["most", "yes", "x"], ["y", "all"], body=halved)],
         {"x": floats(3)}, {"most": scalar(1030, "i8"), "yes": scalar(True, "?")}, ("y", "all"))
    places = {f"at{k}": random.permutation(9).astype("i8") for k in range(1500)}
    case("Gather after Gather", [node("Gather", [f"x{k}" if k else "x", f"at{k}"], [f"x{k + 1}"], axis=1)
                                 for k in range(1500)], {"x": floats(2, 9)}, places, ("x1500",), off=0)
    case("Concat of more inputs than JOIN has", [node("Concat", ["a", "b"] * 600 + ["c"], axis=1)],
         {"a": floats(2, 1), "b": floats(2, 3), "c": floats(2, 2)}, off=0)


def run_onnxruntime(path, nodes, outputs, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # with more, each quantizes its part of a batch's states by a range of its own
    options.log_severity_level = 3
    # Without VNNI sums of UINT8 and INT8 saturate; with this option they do not, but it knows no INT8 of QLinear's x.
    if not any(one.op_type in ("QLinearConv", "QLinearMatMul") for one in nodes):
        options.add_session_config_entry("session.x64quantprecision", "1")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(list(outputs), inputs)


def compare(opjit, nodes, inputs, constants, outputs, off, opset=None, want=None):
    types = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in inputs.items()}
    graph = helper.make_graph(nodes, "made", [value(k, types[k], v.shape) for k, v in inputs.items()],
                              [helper.make_empty_tensor_value_info(o) for o in outputs],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    ml = 5 if nodes[0].op_type == "TreeEnsemble" else 3
    model = helper.make_model(graph,
                              opset_imports=[helper.make_opsetid("", opset or NEWER.get(nodes[0].op_type, 19)),
                                             helper.make_opsetid("com.microsoft", 1),
                                             helper.make_opsetid("ai.onnx.ml", ml)])
    model.ir_version = 8
    with tempfile.TemporaryDirectory() as place:
        onnx.save(model, place + "/model.onnx")
        wants = [want(*inputs.values())] if want else run_onnxruntime(place + "/model.onnx", nodes, outputs, inputs)
        arguments = []
        for name, array in inputs.items():
            np.save(f"{place}/{name}.npy", array)
            arguments += ["--input", f"{name}={place}/{name}.npy"]
        done = subprocess.run([opjit, "run", place + "/model.onnx", "--no-cache", "--output-dir", place + "/out",
                               *arguments],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"
        for name, wanted in zip(outputs, wants):
            got = np.load(f"{place}/out/{name}.npy")
            wanted = wanted.astype("u1") if wanted.dtype == bool else wanted
            if got.shape != wanted.shape or got.dtype != wanted.dtype:
                return f"{name}: {got.dtype} {got.shape}, must be {wanted.dtype} {wanted.shape}"
            apart = got != wanted  # equal infinities are not
            worst = np.abs(got[apart].astype("f8") - wanted[apart].astype("f8")).max(initial=0)
            most = wanted[np.isfinite(wanted)].astype("f8") if wanted.dtype.kind == "f" else np.ones(1)
            if not worst <= off * max(1, np.abs(most).max(initial=0)):
                return f"{name}: off by {worst:.1e}"
    return None


def main():
    opjit, text = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for make in (quantized, packed, sampled, unpooled, corners, diagonals, transformed, trained, unsorted, scattered,
                 looped, listed, wrapped, selected, others, embedded, attended, fused, sigmoids, empty, small,
                 recurrent, between, many):
        make()
    failed, run = 0, 0
    for name, *rest in CASES:
        if text in name:
            why = compare(opjit, *rest)
            run += 1
            failed += why is not None
            if why:
                print(f"FAIL {name}: {why}")
    print(f"{run - failed} passed, {failed} failed")
    return 1 if failed or run == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
