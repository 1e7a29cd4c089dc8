#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""made.py - models of a node or two, made here, that ONNX's node tests have not: operators of com.microsoft, padding and
modes of GridSample, transforms, loops, scattering.  Each goes through `opjit run`, and the outputs are compared with
those of onnxruntime.

    made.py OPJIT [TEXT]     TEXT: cases whose names have it"""
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(1)
CASES = []  # name, nodes, inputs {name: array}, constants {name: array}, outputs, most difference


def case(name, nodes, inputs, constants=None, outputs=("y",), off=1e-5):
    CASES.append((name, nodes, inputs, constants or {}, outputs, off))


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
    case("QLinearConcat", [node("QLinearConcat", ["ys", "yz", "a", "as", "az", "b", "bs", "bz"], domain="com.microsoft", axis=1)],
         {"a": a, "b": b}, parameters, off=1)
    unary = ["a", "as", "az", "ys", "yz"]
    for op, attributes in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.3}),
                           ("QLinearGlobalAveragePool", {}),
                           ("QLinearAveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]})):
        case(op, [node(op, unary, domain="com.microsoft", **attributes)], {"a": a}, one, off=1)


def packed():
    for bits in (4, 8):
        for zeros in (False, True):
            n, k, block = 10, 40, 16  # three blocks, the last one in part
            blocks = (k + block - 1) // block
            constants = {"b": random.integers(0, 256, (n, blocks, block * bits // 8)).astype("u1"), "s": floats(n * blocks)}
            if zeros:
                constants["z"] = random.integers(0, 256, n * (blocks if bits == 8 else (blocks + 1) // 2)).astype("u1")
            case(f"MatMulNBits {bits} {zeros}",
                 [node("MatMulNBits", ["x", "b", "s"] + ["z"] * zeros, domain="com.microsoft", bits=bits, K=k, N=n, block_size=block)],
                 {"x": floats(2, 3, k)}, constants)


def sampled():
    for mode in ("bilinear", "nearest"):
        for padding in ("zeros", "border", "reflection"):
            for corners in (0, 1):
                case(f"GridSample {mode} {padding} {corners}",
                     [node("GridSample", ["x", "grid"], mode=mode, padding_mode=padding, align_corners=corners)],
                     {"x": floats(2, 3, 5, 7), "grid": floats(2, 4, 6, 2, most=2.3)})


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


def value(name, dtype=TensorProto.FLOAT, shape=None):
    return helper.make_tensor_value_info(name, dtype, shape)


def looped():
    body = helper.make_graph([node("Mul", ["v", "two"], ["doubled"]), node("Cast", ["i"], ["real"], to=TensorProto.FLOAT),
                              node("Add", ["doubled", "real"], ["next"]), node("Add", ["next", "outer"], ["seen"]),
                              node("Less", ["i", "three"], ["go"])], "body",
                             [value("i", TensorProto.INT64, []), value("before", TensorProto.BOOL, []), value("v")],
                             [value("go", TensorProto.BOOL, []), value("next"), value("seen")],
                             [numpy_helper.from_array(scalar(2), "two"), numpy_helper.from_array(scalar(3, "i8"), "three")])
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


def compare(opjit, nodes, inputs, constants, outputs, off):
    types = {k: helper.np_dtype_to_tensor_dtype(v.dtype) for k, v in inputs.items()}
    graph = helper.make_graph(nodes, "made", [value(k, types[k], v.shape) for k, v in inputs.items()],
                              [helper.make_empty_tensor_value_info(o) for o in outputs],
                              [numpy_helper.from_array(v, k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8
    with tempfile.TemporaryDirectory() as place:
        onnx.save(model, place + "/model.onnx")
        session = onnxruntime.InferenceSession(place + "/model.onnx", providers=["CPUExecutionProvider"])
        arguments = []
        for name, array in inputs.items():
            np.save(f"{place}/{name}.npy", array)
            arguments += ["--input", f"{name}={place}/{name}.npy"]
        done = subprocess.run([opjit, "run", place + "/model.onnx", "--no-cache", "--output-dir", place + "/out", *arguments],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return f"exit status {done.returncode}: {done.stderr.strip()[-300:]}"
        for name, want in zip(outputs, session.run(list(outputs), inputs)):
            got = np.load(f"{place}/out/{name}.npy")
            if got.shape != want.shape or got.dtype != want.dtype:
                return f"{name}: {got.dtype} {got.shape}, must be {want.dtype} {want.shape}"
            worst = np.abs(got.astype("f8") - want.astype("f8")).max()
            if not worst <= off * max(1, np.abs(want.astype("f8")).max() if want.dtype.kind == "f" else 1):
                return f"{name}: off by {worst:.1e}"
    return None


def main():
    opjit, text = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for make in (quantized, packed, sampled, transformed, scattered, looped):
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


sys.exit(main())
