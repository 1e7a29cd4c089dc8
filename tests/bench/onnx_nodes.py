#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_nodes.py - single ONNX nodes and small groups: opjit's time ÷ ONNX Runtime's on one thread, in turns in one
process, processor time, the least of all calls; and whether the results are equal.

  PYTHONPATH=build/bench/python onnx_nodes.py [TEXT] [--seconds S]

TEXT: those whose names contain it.  Needs numpy, onnx and onnxruntime, and the package opjit."""
import argparse
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import opjit
from onnx import helper, numpy_helper

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


def node(kind, *inputs, to=("y",), **attributes):
    return helper.make_node(kind, list(inputs), list(to), **attributes)


def single(name, kind, inputs, constants=None, outputs=("y",), **attributes):
    group(name, inputs, [node(kind, *inputs, *(constants or {}), to=outputs, **attributes)], constants, outputs)


def list_cases():
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


def save(path, inputs, nodes, constants, outputs):
    types = {n: helper.np_dtype_to_tensor_dtype(v.dtype) for n, v in inputs.items()}
    graph = helper.make_graph(
        nodes, "node", [helper.make_tensor_value_info(n, types[n], v.shape) for n, v in inputs.items()],
        [onnx.ValueInfoProto(name=o) for o in outputs], [numpy_helper.from_array(v, n) for n, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    model.ir_version = 9
    onnx.save(onnx.shape_inference.infer_shapes(model), path)


def least(call, best):
    for _ in range(5):
        begin = time.thread_time()
        call()
        best = min(best, time.thread_time() - begin)
    return best


def measure(path, inputs, outputs, seconds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    kernel = opjit.compile(path)
    expected, made = session.run(None, inputs), kernel(**inputs)
    made = [made] if len(outputs) == 1 else list(made.values() if isinstance(made, dict) else made)
    equal = all(np.allclose(a, np.asarray(b), rtol=1e-3, atol=1e-4, equal_nan=True) for a, b in zip(expected, made))
    binding = session.io_binding()
    for name, value in inputs.items():
        binding.bind_cpu_input(name, value)
    for name, value in zip(outputs, expected):
        binding.bind_output(name, "cpu", 0, value.dtype, value.shape, value.ctypes.data)
    into = made[0] if len(outputs) == 1 else tuple(made)
    own = peer = float("inf")
    end = time.thread_time() + seconds
    while time.thread_time() < end or own == float("inf"):
        peer = least(lambda: session.run_with_iobinding(binding), peer)
        own = least(lambda: kernel(**inputs, out=into), own)
    return own * 1e6, peer * 1e6, equal


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=0.2)
    given = parser.parse_args()
    list_cases()
    with tempfile.TemporaryDirectory() as place:
        for name, inputs, nodes, constants, outputs in CASES:
            if given.text not in name:
                continue
            save(place + "/node.onnx", inputs, nodes, constants, outputs)
            own, peer, equal = measure(place + "/node.onnx", inputs, outputs, given.seconds)
            print(f"{name:48s} {own:9.1f} us, onnxruntime {peer:9.1f}, ratio {own / peer:5.2f}"
                  f"{'' if equal else ', not equal'}", flush=True)


if __name__ == "__main__":
    main()
