# SPDX-License-Identifier: Apache-2.0
"""onnx_cases.py - the single nodes and small groups that onnx_nodes.py measures: list_cases() gives the name, inputs,
nodes, constants and names of outputs of each."""
import itertools

import numpy as np
from onnx import helper

RANDOM = np.random.default_rng(3)
CASES = []


def reals(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def below(limit, *shape):
    return RANDOM.integers(0, limit, shape)


def group(name, inputs, nodes, constants=None, outputs=("y",)):
    CASES.append((name, inputs, nodes, constants or {}, outputs))


def node(kind, *inputs, to=("y",), to_type=None, **attributes):
    if to_type is not None:
        attributes["to"] = int(to_type)
    return helper.make_node(kind, list(inputs), list(to), **attributes)


def single(name, kind, inputs, constants=None, outputs=("y",), **attributes):
    group(name, inputs, [node(kind, *inputs, *(constants or {}), to=outputs, **attributes)], constants, outputs)


def list_groups():
    for size, channels in ((56, 96), (14, 384), (7, 768)):
        turned = node("Transpose", "x", to=("t",), perm=[0, 2, 3, 1])
        x, scale = {"x": reals(1, channels, size, size)}, {"s": reals(channels), "b": reals(channels)}
        group(f"Transpose, LayerNormalization {channels}", x, [turned, node("LayerNormalization", "t", "s", "b")],
              scale)
        group(f"Transpose, LayerNormalization, Transpose {channels}", x,
              [turned, node("LayerNormalization", "t", "s", "b", to=("u",)), node("Transpose", "u", perm=[0, 3, 1, 2])],
              scale)
        group(f"Transpose, Softmax {channels}", x, [turned, node("Softmax", "t", axis=-1)])
    for kind in ("ReduceMean", "ReduceMax"):
        for axes in ((1,), (3,), (0, 2), (1, 2), (1, 3), (0, 2, 3), (1, 2, 3)):
            single(f"{kind} {axes}", kind, {"x": reals(8, 32, 28, 28)}, {"a": ints(*axes)}, keepdims=1)
    single("MeanVarianceNormalization", "MeanVarianceNormalization", {"x": reals(4, 32, 28, 28)})
    for shape in ((1, 64, 56, 56), (1, 3, 480, 640)):
        for mode in ("linear", "nearest"):
            for scale in (2, 0.5, 1.7):
                rule = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
                resize = node("Resize", "x", "", "s", mode=mode, **(rule if mode == "nearest" else {}))
                group(f"Resize {mode} {scale} {shape}", {"x": reals(*shape)}, [resize],
                      {"s": np.array([1, 1, scale, scale], np.float32)})
    single("Gather rows 30522 x 768", "Gather", {"x": reals(30522, 768), "i": below(30522, 1, 128)})
    single("Gather along 1 8 x 512 x 64", "Gather", {"x": reals(8, 512, 64), "i": below(512, 256)}, axis=1)
    single("GatherElements", "GatherElements", {"x": reals(512, 512), "i": below(512, 512, 512)}, axis=1)
    single("Tile 64 x 64 by 4, 4", "Tile", {"x": reals(64, 64)}, {"r": ints(4, 4)})
    single("Tile 3 x 50 x 50 by 1, 2, 2", "Tile", {"x": reals(3, 50, 50)}, {"r": ints(1, 2, 2)})
    for k, axis, shape in ((1, 1, (1, 21, 64, 64)), (5, -1, (64, 1000)), (5, 1, (8, 256, 64)), (5, 0, (256, 128))):
        single(f"TopK {k} along {axis} {shape}", "TopK", {"x": reals(*shape)}, {"k": ints(k)}, ("v", "i"), axis=axis)
    for axis in (1, 3):
        single(f"ArgMax {axis}", "ArgMax", {"x": reals(8, 32, 28, 28)}, axis=axis)
    boxes = (np.abs(reals(100, 4)) * 60).astype(np.float32)
    boxes[:, 2:] += boxes[:, :2] + 10
    single("RoiAlign", "RoiAlign", {"x": reals(1, 64, 50, 50), "r": boxes}, {"b": np.zeros(100, np.int64)},
           output_height=7, output_width=7, sampling_ratio=2, spatial_scale=0.25)
    grid = (RANDOM.random((1, 64, 64, 2)) * 2 - 1).astype(np.float32)
    single("GridSample", "GridSample", {"x": reals(1, 32, 64, 64), "g": grid}, mode="linear")


def list_windows():
    for kind in ("MaxPool", "AveragePool"):
        for window in (9, 64, 200):
            single(f"{kind} 1-D of {window}", kind, {"x": reals(4, 32, 1000)}, kernel_shape=[window], strides=[1])
            single(f"{kind} 1-D of {window}, alone", kind, {"x": reals(4, 32, 1000)}, kernel_shape=[window],
                   strides=[window])
        for size in (7, 28, 56):
            single(f"{kind} of all {size} x {size}", kind, {"x": reals(1, 256, size, size)}, kernel_shape=[size, size])
        single(f"{kind} 3 x 3 / 2", kind, {"x": reals(1, 64, 112, 112)}, kernel_shape=[3, 3], strides=[2, 2],
               pads=[1, 1, 1, 1])
        single(f"{kind} 2 x 2 x 2 / 2", kind, {"x": reals(1, 16, 32, 32, 32)}, kernel_shape=[2, 2, 2],
               strides=[2, 2, 2])
        single(f"Global{kind} 512 x 7 x 7", f"Global{kind}", {"x": reals(1, 512, 7, 7)})
        single(f"Global{kind} 64 x 112 x 112", f"Global{kind}", {"x": reals(1, 64, 112, 112)})
    single("MaxPool 13 x 13, same", "MaxPool", {"x": reals(1, 128, 20, 20)}, kernel_shape=[13, 13], pads=[6, 6, 6, 6])
    single("LpPool 3 x 3", "LpPool", {"x": reals(1, 32, 56, 56)}, kernel_shape=[3, 3], strides=[2, 2])
    for taken, given, size in ((64, 64, 28), (256, 128, 16), (32, 16, 64)):
        for tap, pad in ((2, 0), (3, 1), (4, 1)):
            single(f"ConvTranspose {taken} to {given} {tap} x {tap} / 2", "ConvTranspose",
                   {"x": reals(1, taken, size, size)}, {"w": reals(taken, given, tap, tap)}, kernel_shape=[tap, tap],
                   strides=[2, 2], pads=[pad] * 4, output_padding=[tap % 2] * 2)
    single("ConvTranspose 1-D 256 to 128 16 / 8", "ConvTranspose", {"x": reals(1, 256, 128)},
           {"w": reals(256, 128, 16)}, kernel_shape=[16], strides=[8], pads=[4, 4])
    for taken, given, tap, step, length in ((1, 512, 10, 5, 16000), (512, 512, 3, 2, 1600), (80, 384, 3, 1, 3000)):
        single(f"Conv 1-D {taken} to {given} {tap} / {step}", "Conv", {"x": reals(1, taken, length)},
               {"w": reals(given, taken, tap)}, kernel_shape=[tap], strides=[step])
    for tap in (3, 7, 31):
        single(f"Conv 1-D depthwise 256 of {tap}", "Conv", {"x": reals(1, 256, 400)}, {"w": reals(256, 1, tap)},
               kernel_shape=[tap], pads=[tap // 2] * 2, group=256)
    single("Conv 3 x 3 64", "Conv", {"x": reals(1, 64, 56, 56)}, {"w": reals(64, 64, 3, 3)}, pads=[1] * 4)
    single("Conv 3 x 3 64, dilated", "Conv", {"x": reals(1, 64, 56, 56)}, {"w": reals(64, 64, 3, 3)}, pads=[2] * 4,
           dilations=[2, 2])
    for channels, size, apart in ((256, 28, 2), (512, 28, 4), (256, 28, 12), (256, 28, 24), (256, 28, 36),
                                  (256, 33, 12), (256, 64, 12), (256, 64, 24), (256, 64, 36), (64, 33, 18)):
        single(f"Conv 3 x 3 {channels} of {size}, dilated {apart}", "Conv", {"x": reals(1, channels, size, size)},
               {"w": reals(channels, channels, 3, 3)}, pads=[apart] * 4, dilations=[apart] * 2)
    for channels, length in ((32, 16000), (64, 4096), (128, 4096)):
        for apart in (1, 2, 8, 32, 128, 512):
            single(f"Conv 1-D {channels} of {length}, dilated {apart}", "Conv", {"x": reals(1, channels, length)},
                   {"w": reals(channels, channels, 3)}, pads=[apart] * 2, dilations=[apart])
    single("Conv 3 x 3 x 3 16", "Conv", {"x": reals(1, 16, 16, 32, 32)}, {"w": reals(16, 16, 3, 3, 3)}, pads=[1] * 6)
    single("Conv 3 x 3 32 groups of 4", "Conv", {"x": reals(1, 128, 28, 28)}, {"w": reals(128, 4, 3, 3)}, pads=[1] * 4,
           group=32)


def list_norms():
    for channels, size in ((32, 16), (128, 64)):
        x = {"x": reals(1, channels, size, size)}
        factors = {"s": reals(channels), "b": reals(channels)}
        single(f"InstanceNormalization {channels} {size}", "InstanceNormalization", x, factors)
        single(f"GroupNormalization {channels} {size}", "GroupNormalization", x, factors, num_groups=8)
        single(f"BatchNormalization {channels} {size}", "BatchNormalization", x,
               dict(factors, m=reals(channels), v=abs(reals(channels))))
        single(f"LRN {channels} {size}", "LRN", x, size=5)
        single(f"LpNormalization {channels} {size}", "LpNormalization", x, axis=1)
    single("LayerNormalization 128 x 768", "LayerNormalization", {"x": reals(128, 768)},
           {"s": reals(768), "b": reals(768)})
    for axis in (0, 1, 2, 3):
        for shape in ((2, 8, 8, 8), (4, 32, 48, 48)):
            x = {"x": reals(*shape)}
            single(f"Softmax along {axis} {shape}", "Softmax", x, axis=axis)
            single(f"LogSoftmax along {axis} {shape}", "LogSoftmax", x, axis=axis)
            single(f"CumSum along {axis} {shape}", "CumSum", x, {"a": np.array(axis, np.int64)})
            single(f"ArgMax along {axis} {shape}", "ArgMax", x, axis=axis)
            single(f"ArgMin along {axis} {shape}", "ArgMin", x, axis=axis)
            single(f"ReduceSum along {axis} {shape}", "ReduceSum", x, {"a": ints(axis)})
            single(f"Hardmax along {axis} {shape}", "Hardmax", x, axis=axis)
    for axes in ((0, 3), (0, 1, 3), (0, 2), (1, 2, 3), (2, 3), (0, 1, 2, 3)):
        for kind in ("ReduceSum", "ReduceL2", "ReduceMin", "ReduceProd", "ReduceLogSumExp", "ReduceSumSquare"):
            single(f"{kind} over {axes}", kind, {"x": reals(16, 24, 32, 20)}, {"a": ints(*axes)})
    single("ReduceMax of bytes", "ReduceMax", {"x": below(255, 8, 64, 784).astype(np.uint8)}, {"a": ints(2)})


def list_places():
    for axis in (0, 1, 2):
        i = below(40, 40, 40, 64)
        single(f"GatherElements along {axis}", "GatherElements", {"x": reals(40, 40, 64), "i": i}, axis=axis)
        single(f"ScatterElements along {axis}", "ScatterElements",
               {"x": reals(40, 40, 64), "i": i, "u": reals(*i.shape)}, axis=axis)
    single("ScatterElements, add", "ScatterElements", {"x": reals(40, 40), "i": below(40, 40, 40), "u": reals(40, 40)},
           axis=1, reduction="add")
    for taken in (1, 2, 3):
        shape = (40, 40, 64)
        i = np.stack([below(shape[d], 500) for d in range(taken)], -1)
        single(f"GatherND of {taken}", "GatherND", {"x": reals(*shape), "i": i})
        single(f"ScatterND of {taken}", "ScatterND", {"x": reals(*shape), "i": i, "u": reals(500, *shape[taken:])})
    boxes = RANDOM.random((1, 1000, 4)).astype(np.float32) * 100
    boxes[:, :, 2:] += boxes[:, :, :2]
    single("NonMaxSuppression 1000", "NonMaxSuppression", {"b": boxes, "s": reals(1, 2, 1000)},
           {"n": ints(50), "u": np.array([0.5], np.float32)})
    single("OneHot 256 x 1000", "OneHot", {"i": below(1000, 256)},
           {"d": np.array(1000, np.int64), "v": np.array([0, 1], np.float32)})
    for mode in ("constant", "edge", "reflect", "wrap"):
        for shape in ((3, 8, 8), (16, 112, 112)):
            single(f"Pad {mode} {shape}", "Pad", {"x": reals(*shape)}, {"p": ints(0, 2, 3, 0, 2, 3)}, mode=mode)
    for shape in ((1, 3, 32, 32), (1, 16, 128, 128)):
        for scale in (2, 0.6):
            group(f"Resize cubic {scale} {shape}", {"x": reals(*shape)},
                  [node("Resize", "x", "", "s", mode="cubic")], {"s": np.array([1, 1, scale, scale], np.float32)})
    flow = (RANDOM.random((1, 64, 64, 2)) * 2 - 1).astype(np.float32)
    for mode in ("nearest", "cubic"):
        single(f"GridSample {mode}", "GridSample", {"x": reals(1, 32, 64, 64), "g": flow}, mode=mode)
    single("GridSample linear, border", "GridSample", {"x": reals(1, 3, 64, 64), "g": flow}, mode="linear",
           padding_mode="border")
    single("GridSample 3-D", "GridSample", {"x": reals(1, 8, 16, 16, 16), "g": flow.reshape(1, 16, 16, 16, 2)[
        ..., [0, 1, 0]].copy()}, mode="linear")
    for shape in ((1, 16, 16, 16), (1, 64, 96, 96)):
        for mode in ("DCR", "CRD"):
            single(f"DepthToSpace {mode} {shape}", "DepthToSpace", {"x": reals(*shape)}, blocksize=2, mode=mode)
        single(f"SpaceToDepth {shape}", "SpaceToDepth", {"x": reals(*shape)}, blocksize=2)
    single("Trilu 512", "Trilu", {"x": reals(4, 512, 512)}, upper=0)
    single("Concat last", "Concat", {"x": reals(200, 60), "z": reals(200, 37)}, axis=1)
    single("Concat channels", "Concat", {"x": reals(2, 32, 56, 56), "z": reals(2, 64, 56, 56)}, axis=1)
    single("Split last", "Split", {"x": reals(200, 96)}, {"s": ints(32, 40, 24)}, ("y", "z", "w"), axis=1)
    single("Split channels", "Split", {"x": reals(2, 96, 28, 28)}, {"s": ints(32, 64)}, ("y", "z"), axis=1)
    for axis, step in ((2, 2), (1, 2), (2, 3), (2, -1), (1, -1)):
        single(f"Slice along {axis} by {step}", "Slice", {"x": reals(32, 112, 112)},
               {"s": ints(0 if step > 0 else 200), "e": ints(200 if step > 0 else -200), "a": ints(axis),
                "t": ints(step)})
    for perm in itertools.permutations(range(4)):
        for kind in (np.float32, np.uint8):
            single(f"Transpose {perm} {np.dtype(kind).name}", "Transpose", {"x": below(99, 4, 24, 32, 40).astype(kind)},
                   perm=list(perm))


def list_pointwise():
    for shape in ((8, 8), (256, 784)):
        x, z = {"x": reals(*shape)}, {"x": abs(reals(*shape)) + np.float32(0.1), "z": reals(*shape)}
        for kind in ("Erf", "Exp", "Log", "Tanh", "Sigmoid", "Gelu", "Softplus", "Sin", "Cos", "Tan", "Atan", "Sinh",
                     "Sqrt", "Floor", "Round", "Sign", "Mish", "HardSwish", "Elu", "Selu", "Relu", "IsNaN", "Neg"):
            single(f"{kind} {shape}", kind, {"x": z["x"]} if kind in ("Log", "Sqrt") else x)
        for kind in ("Add", "Mul", "Div", "Pow", "Max", "Greater", "PRelu"):
            single(f"{kind} {shape}", kind, z)
        single(f"Pow 2 {shape}", "Pow", x, {"e": np.array(2, np.float32)})
        single(f"Mod of floats {shape}", "Mod", z, fmod=1)
        for kind in (np.int32, np.int64, np.uint8):
            whole = {"x": below(100, *shape).astype(kind), "z": (below(9, *shape) + 1).astype(kind)}
            single(f"Div {np.dtype(kind).name} {shape}", "Div", whole)
            if kind is not np.uint8:
                single(f"Mod {np.dtype(kind).name} {shape}", "Mod", whole)
        kinds = (np.float32, np.float16, np.float64, np.int8, np.uint8, np.int32, np.int64, np.bool_)
        for kind, other in itertools.permutations(kinds, 2):
            single(f"Cast {np.dtype(kind).name} to {np.dtype(other).name} {shape}", "Cast",
                   {"x": below(100, *shape).astype(kind)}, to_type=helper.np_dtype_to_tensor_dtype(np.dtype(other)))
        group(f"Cast to bfloat16 and back {shape}", x, [node("Cast", "x", to=("t",), to_type=16),
                                                        node("Cast", "t", to_type=1)])
        single(f"Where {shape}", "Where", {"c": reals(*shape) > 0, "x": reals(*shape), "z": reals(*shape)})
        single(f"Where, broadcast {shape}", "Where", {"c": reals(shape[0], 1) > 0, "x": reals(*shape),
                                                     "z": reals(shape[1])})
        single(f"Add, broadcast {shape}", "Add", {"x": reals(*shape), "z": reals(shape[0], 1)})
        single(f"DynamicQuantizeLinear {shape}", "DynamicQuantizeLinear", x, None, ("y", "s", "p"))
        scale = {"s": np.array(0.1, np.float32), "p": np.array(3, np.uint8)}
        single(f"QuantizeLinear {shape}", "QuantizeLinear", x, scale)
        single(f"DequantizeLinear {shape}", "DequantizeLinear", {"x": below(255, *shape).astype(np.uint8)}, scale)
        single(f"Clip {shape}", "Clip", x, {"l": np.array(0, np.float32), "h": np.array(6, np.float32)})
        single(f"BitShift {shape}", "BitShift", {"x": below(100, *shape).astype(np.uint32),
                                                 "z": below(9, *shape).astype(np.uint32)}, direction="LEFT")


def list_products():
    for kind, gates in (("LSTM", 4), ("GRU", 3), ("RNN", 1)):
        for steps, batch, taken, kept in ((8, 1, 32, 32), (50, 1, 128, 128), (32, 16, 256, 256), (100, 1, 40, 512)):
            single(f"{kind} {steps} x {batch} x {taken} to {kept}", kind, {"x": reals(steps, batch, taken)},
                   {"w": reals(1, gates * kept, taken) / 16, "r": reals(1, gates * kept, kept) / 16}, hidden_size=kept)
    for rule, shapes in (("ij,jk->ik", ((64, 64), (64, 64))), ("bhqd,bhkd->bhqk", ((2, 8, 64, 32), (2, 8, 96, 32))),
                         ("bqhd,bkhd->bhqk", ((2, 64, 8, 32), (2, 96, 8, 32))), ("bij->bji", ((8, 64, 96),)),
                         ("bij,bj->bi", ((8, 64, 96), (8, 96))), ("ij->i", ((300, 200),)), ("ij,ij->", ((99, 99),) * 2),
                         ("ii->i", ((300, 300),)), ("bhwc,hkc->bhwk", ((2, 14, 14, 64), (14, 14, 64)))):
        single(f"Einsum {rule}", "Einsum", dict(zip("xz", (reals(*s) for s in shapes))), equation=rule)
    for shape in ((8, 8, 8), (128, 768, 768), (1, 768, 3072)):
        m, k, n = shape
        single(f"MatMul {shape}", "MatMul", {"x": reals(m, k), "z": reals(k, n)})
        single(f"MatMul {shape}, constant", "MatMul", {"x": reals(m, k)}, {"w": reals(k, n)})
        single(f"MatMulInteger {shape}", "MatMulInteger", {"x": below(255, m, k).astype(np.uint8)},
               {"w": below(100, k, n).astype(np.int8)})
    single("Gemm, transposed", "Gemm", {"x": reals(64, 256)}, {"w": reals(512, 256), "b": reals(512)}, transB=1)
    single("DFT 16 x 512", "DFT", {"x": reals(16, 512, 1)},
           {"n": np.array(512, np.int64), "a": np.array(1, np.int64)}, onesided=1)
    single("STFT 16000", "STFT", {"x": reals(1, 16000, 1)},
           {"s": np.array(160, np.int64), "w": reals(400), "l": np.array(400, np.int64)})
    single("Det 100 of 4 x 4", "Det", {"x": reals(100, 4, 4)})
    single("Det 32 x 32", "Det", {"x": reals(32, 32)})


def list_cases():
    list_groups()
    list_windows()
    list_norms()
    list_places()
    list_pointwise()
    list_products()
    return CASES
