# SPDX-License-Identifier: Apache-2.0
"""Each operator of ONNX with a dynamic batch and another dynamic dimension: one kernel, which gives the bytes of the
kernels of these sizes alone, or a refusal that is known.  swept.py [TEXT]: cases whose names have it; --list: all,
with their times and refusals"""
import sys
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import opjit

ROUND = "follow", "in no known way", "no proof that one kernel serves", "have another kernel"  # of a size
KINDS = "loops of too many kinds", "no proof that one kernel serves"
with open("/proc/cpuinfo") as info:
    WIDE = "avx512vl" in info.read()  # AVX-512 refuses some that AVX2 does not
TYPES = {"f": TensorProto.FLOAT, "q": TensorProto.INT64, "i": TensorProto.INT32, "?": TensorProto.BOOL,
         "B": TensorProto.UINT8, "b": TensorProto.INT8}
CASES = []
RANGES = {"b": (1, 9, 3), "n": (1, 300, 100), "h": (8, 80, 40), "w": (8, 80, 48), "t": (1, 200, 60)}
random = np.random.default_rng(1)


def case(name, nodes, inputs, constants=None, outputs=("y",), dims=None, opset=20, refused=None, sizes=None):
    """inputs: {name: (type, sizes)}, or a text for both, "f b 3 n".  refused: texts, one of
    which its refusal has."""
    CASES.append((name, nodes, inputs, constants or {}, outputs, dims or {}, opset, refused, sizes))


def node(op, inputs, outputs=("y",), domain="", **attributes):
    inputs = inputs.split() if isinstance(inputs, str) else inputs
    return helper.make_node(op, ["" if i == "_" else i for i in inputs], list(outputs), domain=domain, **attributes)


def one(op, shape="f b n 16", constants=None, name=None, more="", **attributes):
    """A node of x and constants."""
    options = {k: attributes.pop(k) for k in ("dims", "opset", "refused", "outputs", "sizes") if k in attributes}
    case(name or op, [node(op, ["x", *(constants or {}), *more.split()],
                           options.get("outputs", ("y",)), **attributes)], {"x": shape}, constants, **options)


def floats(*sizes, most=1.0):
    return random.uniform(-most, most, sizes).astype("f")


def ints(*values):
    return np.array(values, "q")


def pointwise():
    for op in "Abs Exp Tanh Erf Sigmoid Gelu Mish HardSwish Softplus Sin Round Sign".split():
        one(op)
    one("Clip", constants={"lo": np.float32(-0.5), "hi": np.float32(0.5)})
    for op in "Add Sub Mul Div Pow Max Min Mean".split():
        case(op, [node(op, "x z")], {"x": "f b n 16", "z": "f b 1 16"})
    case("Add of each", [node("Add", "x z")], {"x": "f b 1 16", "z": "f n 1"})
    case("Where", [node("Where", "c x z")], {"c": "? b n 1", "x": "f b n 16", "z": "f 16"})
    one("PRelu", "f b 4 n", {"s": floats(4, 1)})
    one("Cast", to=TensorProto.INT32)


def moves():
    one("Transpose", perm=[2, 0, 1])
    one("Transpose", perm=[1, 0, 2], name="Transpose batch")
    one("Reshape", "f b n 16", {"s": ints(0, -1, 4, 4)})
    one("Reshape", "f b n 16", {"s": ints(-1, 16)}, name="Reshape rows")
    one("Flatten")
    one("Unsqueeze", constants={"a": ints(1)})
    one("Expand", "f b 1 n", {"s": ints(1, 7, 1)})
    case("Concat", [node("Concat", "x z", axis=1)], {"x": "f b n 16", "z": "f b 5 16"})
    case("Concat of two", [node("Concat", "x z", axis=1)], {"x": "f b n 16", "z": "f b t 16"})
    one("Split", "f b n 16", outputs=("y", "z"), axis=2, num_outputs=2)
    for text, v in (("", (1, 9, 2, 1)), (" step", (1, 9, 2, 2)), (" back", (-1, -100, 2, -1))):
        one("Slice", "f b n 16", dict(zip("seak", map(ints, v))), name="Slice" + text)
    one("Slice", "f b h 16", dict(zip("seak", map(ints, (2, 1 << 60, 1, 1)))), name="Slice rows")
    one("Slice", "f b h 16", dict(zip("seak", map(ints, (0, 1 << 60, 1, 2)))), name="Slice rows step",
        dims={"h": "2*k", "k": (4, 40, 20)})
    one("Slice", "f b h 16", dict(zip("seak", map(ints, (1, 1 << 60, 1, 2)))), name="Slice rows odd",
        dims={"h": "2*k", "k": (4, 40, 20)})
    one("Slice", "f b h 16", dict(zip("seak", map(ints, (0, 1 << 60, 1, 2)))), name="Slice rows step any",
        refused=ROUND)
    one("Slice", "f b h 16", dict(zip("seak", map(ints, (-1, -(1 << 60), 1, -1)))), name="Slice rows back")
    one("Slice", "f b h 16", dict(zip("seak", map(ints, (-1, 1 << 60, 1, 1)))), name="Slice last")
    one("Gather", "f b n 16", {"i": ints(0, 3, 1)}, axis=2)
    case("Gather rows", [node("Gather", "w x")], {"x": "q b n"}, {"w": floats(50, 16)})
    case("Gather of both", [node("Gather", "x i", axis=1)], {"x": "f b n 16", "i": "q t"}, dims={"n": (50, 300, 100)})
    case("GatherElements", [node("GatherElements", "x i", axis=2)], {"x": "f b n 50", "i": "q b n 7"})
    case("GatherND", [node("GatherND", "x i", batch_dims=1)], {"x": "f b 50 n", "i": "q b t 1"})
    case("OneHot", [node("OneHot", "i d v", axis=-1)], {"i": "q b n"}, {"d": ints(50), "v": floats(2)})
    one("Tile", "f b n 16", {"r": ints(1, 3, 2)})
    one("Tile", "f 1 n 16", {"r": ints(1, 2, 1)}, name="Tile rows")
    for mode in "constant reflect edge wrap".split():
        one("Pad", "f b h 16", {"p": ints(0, 2, 0, 0, 3, 0)}, mode=mode, name="Pad " + mode)
    one("DepthToSpace", "f b 16 h w", blocksize=2)
    one("DepthToSpace", "f b 16 h w", blocksize=2, mode="CRD", name="DepthToSpace CRD")
    one("SpaceToDepth", "f b 4 h w", blocksize=2, dims={"h": "2*k", "w": "2*l", "k": (4, 40, 20), "l": (4, 40, 24)})
    case("ReverseSequence", [node("ReverseSequence", "x l", batch_axis=0, time_axis=1)],
         {"x": "f b n 8", "l": "q b"}, sizes=((3, 50), (9, 300), (1, 50)))
    case("ScatterElements", [node("ScatterElements", "x i u", axis=2)],
         {"x": "f b n 50", "i": "q b n 7", "u": "f b n 7"})
    case("ScatterND", [node("ScatterND", "x i u")], {"x": "f 50 n", "i": "q b 1", "u": "f b n"})
    one("Trilu", "f b n n", upper=0)
    one("Identity")
    one("Shape")
    one("Compress", "f b n 16", {"c": np.array([1, 0, 1, 1], bool)}, axis=2)
    case("Range", [node("Shape", "x", ["s"]), node("Gather", "s one", ["m"]), node("Range", "zero m one", ["r"]),
                   node("Cast", "r", ["c"], to=1), node("Add", "x c")],
         {"x": "f b n"}, {"one": np.array(1, "q"), "zero": np.array(0, "q")})
    case("Expand by sizes", [node("Shape", "x", ["s"]), node("Expand", "z s", ["e"]), node("Mul", "x e")],
         {"x": "f b n"}, {"z": floats(1)})
    case("EyeLike", [node("EyeLike", "x", ["e"]), node("Add", "x e")], {"x": "f n t"})


def reductions():
    for axes in ((2,), (1,), (0,), (1, 2), (0, 1), (0, 2), (0, 1, 2)):
        for op in ("ReduceMean", "ReduceMax") if axes != (2,) else "ReduceSum ReduceMean ReduceMax ReduceL2".split():
            one(op, constants={"a": ints(*axes)}, name=f"{op} {axes}",
                refused=ROUND if op == "ReduceMax" and axes == (0, 1) else None)
    one("ReduceSum", "f b n", keepdims=0, name="ReduceSum all")
    one("ReduceLogSumExp", "f b n 16", {"a": ints(1)})
    for axis in (0, 1, 2):
        one("ArgMax", axis=axis, name=f"ArgMax {axis}")
        one("Softmax", axis=axis, name=f"Softmax {axis}")
    one("LogSoftmax", "f b n", axis=-1)
    one("CumSum", "f b n", {"a": np.array(1, "q")})
    one("TopK", "f b n 50", {"k": ints(5)}, outputs=("y", "z"))
    one("TopK", "f b h", {"k": ints(5)}, outputs=("y", "z"), name="TopK of many")
    one("Hardmax", "f b n", axis=-1)


def norms():
    c = {"s": floats(6), "t": floats(6)}
    one("BatchNormalization", "f b 6 n", {**c, "m": floats(6), "v": floats(6) ** 2 + 1})
    one("InstanceNormalization", "f b 6 n", c)
    one("InstanceNormalization", "f b 6 h w", c, name="InstanceNormalization 2")
    one("GroupNormalization", "f b 6 h w", c, num_groups=2, opset=21)
    one("LayerNormalization", "f b n 6", c)
    one("RMSNormalization", "f b n 6", {"s": floats(6)}, opset=23)
    one("MeanVarianceNormalization", "f b 6 h w", axes=[2, 3])
    one("LpNormalization", "f b n 6", axis=-1)
    one("LpNormalization", "f b n 6", axis=1, name="LpNormalization n")
    one("LRN", "f b 6 h w", size=3)


def products():
    one("MatMul", "f b n 16", {"w": floats(16, 24)})
    case("MatMul of each", [node("MatMul", "x z")], {"x": "f b n 16", "z": "f b 16 n"})
    case("MatMul along n", [node("MatMul", "x z")], {"x": "f b 16 n", "z": "f b n 16"})
    one("Gemm", "f b 16", {"w": floats(16, 24), "c": floats(24)})
    case("MatMulInteger", [node("MatMulInteger", "x w")], {"x": "B b n 16"}, {"w": np.ones((16, 8), "b")})
    case("Einsum", [node("Einsum", "x z", equation="bnd,btd->bnt")], {"x": "f b n 16", "z": "f b t 16"})
    heads = {"q_num_heads": 2, "kv_num_heads": 2}
    case("Attention", [node("Attention", "q k v", **heads)], {"q": "f b n 16", "k": "f b t 16", "v": "f b t 16"},
         opset=23, refused=KINDS if WIDE else None)
    case("Attention causal", [node("Attention", "q k v", is_causal=1, **heads)],
         {"q": "f b n 16", "k": "f b n 16", "v": "f b n 16"}, opset=23)
    case("Attention causal from 16", [node("Attention", "q k v", is_causal=1, **heads)],
         {"q": "f b n 16", "k": "f b n 16", "v": "f b n 16"}, opset=23, dims={"n": (16, 300, 100)})
    case("MultiHeadAttention", [node("MultiHeadAttention", "q k v", domain="com.microsoft", num_heads=2)],
         {"q": "f b n 16", "k": "f b t 16", "v": "f b t 16"}, refused=KINDS if WIDE else None)
    case("RotaryEmbedding", [node("RotaryEmbedding", "x c s i")], {"x": "f b 2 n 8", "i": "q b n"},
         {"c": floats(50, 4), "s": floats(50, 4)}, opset=23)
    one("DynamicQuantizeLinear", "f b n", outputs=("y", "s", "z"))
    case("QuantizeLinear", [node("QuantizeLinear", "x s z")], {"x": "f b n"}, {"s": np.float32(.02), "z": np.uint8(9)})
    case("DequantizeLinear", [node("DequantizeLinear", "x s z")], {"x": "B b n"},
         {"s": np.float32(.02), "z": np.uint8(9)})


def images():
    image, even = "f b 4 h w", {"h": "2*k", "w": "2*l", "k": (4, 40, 20), "l": (4, 40, 24)}
    w = {"w": floats(8, 4, 3, 3)}
    one("Conv", image, w, pads=[1] * 4)
    one("Conv", image, {"w": floats(8, 4, 1, 1)}, name="Conv 1x1")
    one("Conv", image, w, pads=[1] * 4, strides=[2, 2], dims=even, name="Conv stride")
    one("Conv", image, w, pads=[1] * 4, strides=[2, 2], name="Conv stride any")
    one("Conv", image, {"w": floats(8, 4, 7, 7)}, pads=[3] * 4, strides=[2, 2], name="Conv 7 stride any")
    one("Conv", image, {"w": floats(8, 4, 3, 3)}, name="Conv without padding any")
    one("Conv", image, {"w": floats(4, 1, 3, 3)}, pads=[1] * 4, strides=[2, 2], group=4,
        name="Conv depthwise stride any")
    one("Conv", image, {"w": floats(4, 1, 3, 3)}, pads=[1] * 4, group=4, name="Conv depthwise")
    one("Conv", image, {"w": floats(8, 4, 4, 4)}, strides=[4, 4], name="Conv patches",
        dims={"h": "4*k", "w": "4*l", "k": (2, 20, 10), "l": (2, 20, 12)})
    one("Conv", image, w, pads=[2] * 4, dilations=[2, 2], name="Conv dilated")
    one("Conv", "f b 4 n", {"w": floats(8, 4, 3)}, pads=[1, 1], name="Conv 1")
    one("Conv", "f b 4 n", {"w": floats(8, 4, 3)}, pads=[1, 1], strides=[2], dims={"n": "2*k", "k": (1, 150, 50)},
        name="Conv 1 stride")
    one("Conv", "f b 4 n", {"w": floats(8, 4, 3)}, pads=[1, 1], strides=[2], name="Conv 1 stride any")
    one("Conv", "f b 2 h w 6", {"w": floats(4, 2, 3, 3, 3)}, pads=[1] * 6, name="Conv 3")
    one("ConvTranspose", image, {"w": floats(4, 8, 3, 3)}, pads=[1] * 4, name="ConvTranspose")
    one("ConvTranspose", image, {"w": floats(4, 8, 2, 2)}, strides=[2, 2], name="ConvTranspose 2 stride 2")
    one("ConvTranspose", image, {"w": floats(4, 8, 3, 3)}, strides=[2, 2], pads=[1] * 4, output_padding=[1, 1],
        name="ConvTranspose 3 stride 2")
    one("ConvTranspose", "f b 4 n", {"w": floats(4, 8, 4)}, strides=[2], pads=[1, 1], name="ConvTranspose 1")
    # Filters whose copy is kept, with vectors of output channels: steps that take part or not, strides, many channels.
    wide = dict(dims={"b": (1, 3, 2), "h": (4, 40, 20), "w": (4, 70, 24)}, name="ConvTranspose rows")
    one("ConvTranspose", "f b 6 h w", {"w": floats(6, 32, 3, 3)}, strides=[2, 2], pads=[1] * 4,
        output_padding=[1, 1], **wide)
    one("ConvTranspose", "f b 6 h w", {"w": floats(6, 40, 3, 3)}, pads=[1] * 4,
        **{**wide, "name": "ConvTranspose rows 1"})
    one("ConvTranspose", "f b 6 n", {"w": floats(6, 32, 6)}, strides=[3], pads=[1, 2],
        name="ConvTranspose rows of times")
    many = {"w": floats(48, 300, 3, 3)}
    one("Conv", "f b 300 h w", many, pads=[1] * 4, strides=[2, 2], name="Conv rows stride",
        dims={"b": (1, 3, 2), "h": "2*k", "w": "2*l", "k": (2, 20, 14), "l": (2, 36, 14)})
    one("Conv", "f b 300 h 9", many, pads=[1] * 4, name="Conv rows h", dims={"b": (1, 3, 2), "h": (4, 40, 20)})
    one("Conv", "f b 300 9 7", many, pads=[1] * 4, name="Conv rows b", dims={"b": (1, 40, 8)})
    one("Conv", "f b 64 n", {"w": floats(64, 64, 3)}, pads=[1, 1], strides=[2], name="Conv rows of times",
        dims={"n": "2*k", "k": (1, 150, 50)})
    for op, more in (("MaxPool", {}), ("AveragePool", {}), ("LpPool", {"p": 2})):
        one(op, image, kernel_shape=[3, 3], pads=[1] * 4, name=op, **more)
        one(op, image, kernel_shape=[2, 2], strides=[2, 2], dims=even, name=op + " stride", **more)
        one(op, image, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, dims=even, name=op + " 3 stride", **more)
        one(op, image, kernel_shape=[2, 2], strides=[2, 2], name=op + " stride any", **more)
        one(op, image, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, name=op + " 3 stride any",
            refused=ROUND + KINDS if op == "AveragePool" else None, **more)  # how many are no padding
        one(op, "f b 4 n", kernel_shape=[3], pads=[1, 1], name=op + " 1", **more)
    one("MaxPool", image, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, name="MaxPool ceil", dims=even)
    halves = dict(pads=[1] * 4, strides=[2, 2])
    case("tower any", [node("Conv", "x w", ["a"], **halves), node("Relu", "a", ["r"]),
                       node("MaxPool", "r", ["p"], kernel_shape=[3, 3], **halves),
                       node("Conv", "p v", ["c"], pads=[1] * 4), node("Add", "c p", ["s"]),
                       node("Conv", "s v", ["d"], **halves), node("GlobalAveragePool", "d")],
         {"x": "f b 4 h w"}, {**w, "v": floats(8, 8, 3, 3)},
         dims={"b": (1, 1, 1), "h": (33, 600, 200), "w": (33, 600, 240)})
    one("GlobalAveragePool", image)
    one("GlobalMaxPool", image)
    for mode in ("nearest", "linear", "cubic"):
        for way in ("half_pixel", "asymmetric", "align_corners"):
            case(f"Resize {mode} {way}", [node("Resize", "x _ s", mode=mode, coordinate_transformation_mode=way)],
                 {"x": image}, {"s": np.array([1, 1, 2, 2], "f")}, refused=ROUND if mode == "cubic" else None)
    case("Resize half", [node("Resize", "x _ s", mode="linear")], {"x": image},
         {"s": np.array([1, 1, .5, .5], "f")}, dims=even)
    case("Resize to sizes", [node("Shape", "z", ["zs"]), node("Slice", "zs two four", ["hw"]),
                             node("Shape", "x", ["xs"]), node("Slice", "xs zero two", ["bc"]),
                             node("Concat", "bc hw", ["s"], axis=0),
                             node("Resize", "x _ _ s", mode="linear", coordinate_transformation_mode="half_pixel")],
         {"x": image, "z": "f b 4 h2 w2"}, {"zero": ints(0), "two": ints(2), "four": ints(4)},
         dims={"h2": "2*h", "w2": "2*w"})
    case("GridSample", [node("GridSample", "x g")], {"x": image, "g": "f b h w 2"})
    case("GridSample nearest", [node("GridSample", "x g", mode="nearest")], {"x": image, "g": "f b 7 t 2"})
    case("RoiAlign", [node("RoiAlign", "x r i", output_height=3, output_width=3)],
         {"x": image, "r": "f t 4", "i": "q t"}, refused=KINDS + ROUND)
    case("MaxUnpool", [node("MaxPool", "x", ["p", "i"], kernel_shape=[2, 2], strides=[2, 2]),
                       node("MaxUnpool", "p i", kernel_shape=[2, 2], strides=[2, 2])], {"x": image}, dims=even)
    case("DeformConv", [node("DeformConv", "x w o", kernel_shape=[3, 3], pads=[1] * 4)],
         {"x": image, "o": "f b 18 h w"}, w)


def times():
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        weights = {"w": floats(1, gates * 8, 6), "r": floats(1, gates * 8, 8), "b": floats(1, gates * 16)}
        both = {"w": floats(2, gates * 8, 6), "r": floats(2, gates * 8, 8), "b": floats(2, gates * 16)}
        one(op, "f t 3 6", weights, hidden_size=8, name=op + " times")
        one(op, "f 5 b 6", weights, hidden_size=8, name=op + " batch")
        one(op, "f t b 6", weights, hidden_size=8, name=op)
        one(op, "f t b 6", both, hidden_size=8, direction="bidirectional", name=op + " both ways")
        one(op, "f t b 6", weights, hidden_size=8, outputs=("", "y"), name=op + " last")
        case(op + " lengths", [node(op, "x w r b l", hidden_size=8)], {"x": "f t b 6", "l": "i b"}, weights,
             sizes=((60, 3), (200, 9), (60, 1)))
    case("Conv LSTM", [node("Conv", "x k", ["c"], pads=[1, 1]), node("Transpose", "c", ["s"], perm=[2, 0, 1]),
                       node("LSTM", "s w r", hidden_size=8)], {"x": "f b 4 t"},
         {"k": floats(6, 4, 3), "w": floats(1, 32, 6), "r": floats(1, 32, 8)})
    body = helper.make_graph([node("Add", "s x", ["u"]), node("Identity", "u", ["o"])], "body",
                             [helper.make_tensor_value_info(n, 1, None) for n in "sx"],
                             [helper.make_tensor_value_info(n, 1, None) for n in "uo"])
    case("Scan batch", [node("Scan", "z x", ["f", "y"], num_scan_inputs=1, body=body)], {"z": "f b 6", "x": "f 7 b 6"})
    one("DFT", "f b n 16 1", opset=17, axis=2)


def steps():
    """A past from 0 on."""
    case("Concat past", [node("Concat", "x z", axis=1)], {"x": "f b p 16", "z": "f b 1 16"}, dims={"p": (0, 300, 100)})
    case("Concat past and both", [node("Concat", "x z", axis=1)], {"x": "f b p 16", "z": "f b n 16"},
         dims={"p": (0, 300, 100)})
    case("Attention past", [node("Concat", "k l", ["j"], axis=1), node("Concat", "v w", ["u"], axis=1),
                            node("Transpose", "j", ["t"], perm=[0, 2, 1]), node("MatMul", "q t", ["s"]),
                            node("Softmax", "s", ["p"], axis=-1), node("MatMul", "p u")],
         {"q": "f b 1 16", "k": "f b p 16", "l": "f b 1 16", "v": "f b p 16", "w": "f b 1 16"},
         dims={"p": (0, 300, 100)})


def model(nodes, inputs, constants, outputs, opset):
    shapes = {}
    for name, text in inputs.items():
        dtype, *sizes = text.split()
        shapes[name] = dtype, [int(s) if s.isdigit() else s for s in sizes]
    graph = helper.make_graph(nodes, "swept",
                              [helper.make_tensor_value_info(n, TYPES[t], s) for n, (t, s) in shapes.items()],
                              [onnx.ValueInfoProto(name=n) for n in outputs if n],
                              [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                   helper.make_opsetid("com.microsoft", 1)])
    made.ir_version = 9
    return made.SerializeToString(), shapes


def evaluate(text, sizes):
    return eval(text, {}, sizes) if isinstance(text, str) else text  # of this file


def dims_of(shapes, dims):
    """The dimensions' ranges, in order, and those that follow."""
    names = dict.fromkeys(s for _, sizes in shapes.values() for s in sizes if isinstance(s, str))
    return {n: dims.get(n, RANGES.get(n)) for n in [*names, *(d for d in dims if d not in names)]}


def sizes_of(ranges):
    free = {n: r for n, r in ranges.items() if not isinstance(r, str)}
    for k, pick in enumerate(((2, 2), (0, 0), (1, 1), (0, 1), (1, 0))):
        yield {n: r[pick[i % 2]] for i, (n, r) in enumerate(free.items())}
    one = np.random.default_rng(5)
    for k in range(4):
        yield {n: int(one.integers(r[0], r[1] + 1)) for n, r in free.items()}


def arrays(shapes, sizes):
    one = np.random.default_rng(sum(sizes.values()))
    for name, (dtype, shape) in shapes.items():
        own = [sizes.get(s, s) for s in shape]
        if dtype == "f":
            yield name, one.uniform(-1, 1, own).astype("f")
        elif dtype == "?":
            yield name, one.integers(0, 2, own).astype(bool)
        else:
            yield name, one.integers(0, 2 if name == "i" and dtype == "q" and len(own) == 1 else 50, own).astype(dtype)


def check(name, nodes, inputs, constants, outputs, dims, opset, _, given):
    """The refusal, or None, and how long the compile took."""
    data, shapes = model(nodes, inputs, constants, outputs, opset)
    ranges = dims_of(shapes, dims)
    start = time.process_time()
    try:
        k = opjit.compile(data, dims=ranges)
    except opjit.Error as error:
        return str(error), 0
    took = time.process_time() - start
    free = [n for n, r in ranges.items() if not isinstance(r, str)]
    for sizes in (dict(zip(free, s)) for s in given) if given else sizes_of(ranges):
        known = {n: sizes[n] if n in sizes else evaluate(r, sizes) for n, r in ranges.items()}
        feeds = dict(arrays(shapes, known))
        in_shapes = {n: v for n, v in known.items() if any(n in s for _, s in shapes.values())}
        want, got = opjit.compile(data, dims=in_shapes)(**feeds), k(**feeds, dims=sizes)
        want, got = (v if isinstance(v, (tuple, list)) else [v] for v in (want, got))
        for a, b in zip(want, got):
            if a.shape != b.shape or a.tobytes() != b.tobytes():
                sys.exit(f"{name}, {known}: other bytes than for these sizes alone")
    return None, took


def report(own):
    """The case's refusal, or how long its compile took."""
    refusal, took = check(*own)
    return refusal or f"{took:.2f} s"


def main():
    for make in (pointwise, moves, reductions, norms, products, images, times, steps):
        make()
    text = [a for a in sys.argv[1:] if not a.startswith("--")]
    for own in CASES:
        name, refused = own[0], own[7]
        if any(t not in name for t in text):
            continue
        if "--list" in sys.argv:
            print(f"{name:32} {report(own)}", flush=True)
            continue
        refusal, _ = check(*own)
        if refused is None and refusal is not None:
            sys.exit(f"{name}: {refusal}")
        told = refusal is None or refusal.startswith(("node ", "sizes around "))
        if not told or (refusal is not None and not any(r in refusal for r in refused)):
            sys.exit(f"{name}: {refusal!r}, not any of {refused}")
        if refused is not None and refusal is None:
            sys.exit(f"{name}: is one kernel, and listed as refused")


main()
