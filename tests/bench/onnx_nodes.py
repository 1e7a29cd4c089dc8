#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_nodes.py - single ONNX nodes and small groups: opjit's time ÷ ONNX Runtime's on one thread, in turns in one
process, processor time, the least of all calls; and whether the results are equal.

  PYTHONPATH=build/bench/python onnx_nodes.py [TEXT] [--seconds S] [--above R]
  OPJIT=build/bench/opjit onnx_nodes.py --missing

TEXT: those whose names contain it; R: those of at least this ratio, and those whose results differ.  --missing: the
operators of `opjit ops --onnx` that no case has and that can be measured.  Needs numpy, onnx and onnxruntime, and the
package opjit."""
import argparse
import os
import subprocess
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
import opjit
from onnx import helper, numpy_helper

import onnx_cases
import onnx_cases_kinds

SINCE = {"RMSNormalization": 23, "Attention": 23, "RotaryEmbedding": 23, "Swish": 24, "TensorScatter": 24,
         "CumProd": 26, "TreeEnsemble": 5}
VERSIONS = {"com.microsoft": 1, "ai.onnx.ml": 3, "ai.onnx.preview.training": 1}


def save(path, inputs, nodes, constants, outputs):
    types = {n: helper.np_dtype_to_tensor_dtype(v.dtype) for n, v in inputs.items()}
    graph = helper.make_graph(
        nodes, "node", [helper.make_tensor_value_info(n, types[n], v.shape) for n, v in inputs.items()],
        [onnx.ValueInfoProto(name=o) for o in outputs], [numpy_helper.from_array(v, n) for n, v in constants.items()])
    version = max([21] + [SINCE.get(n.op_type, 21) for n in nodes if not n.domain])
    opsets = {"": version, **{n.domain: max(VERSIONS[n.domain], SINCE.get(n.op_type, 1)) for n in nodes if n.domain}}
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(*opset) for opset in opsets.items()])
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


def list_all():
    onnx_cases.list_cases()
    onnx_cases_kinds.list_kinds()
    return onnx_cases.CASES


def print_missing():
    listed = subprocess.check_output([os.environ["OPJIT"], "ops", "--onnx"], text=True).splitlines()
    measured = {f"{n.domain}.{n.op_type}".lstrip(".") for case in list_all() for n in case[2]}
    print(*sorted({line.split()[0] for line in listed} - measured - onnx_cases_kinds.UNTIMED))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--above", type=float, default=0)
    parser.add_argument("--missing", action="store_true")
    given = parser.parse_args()
    if given.missing:
        print_missing()
        return
    with tempfile.TemporaryDirectory() as place:
        for name, inputs, nodes, constants, outputs in list_all():
            if given.text not in name:
                continue
            save(place + "/node.onnx", inputs, nodes, constants, outputs)
            try:
                own, peer, equal = measure(place + "/node.onnx", inputs, outputs, given.seconds)
            except Exception as error:
                print(f"{name:48s} not measured: {str(error).splitlines()[0][:150]}", flush=True)
                continue
            if own < given.above * peer and equal:
                continue
            print(f"{name:48s} {own:9.1f} us, onnxruntime {peer:9.1f}, ratio {own / peer:5.2f}"
                  f"{'' if equal else ', not equal'}", flush=True)


if __name__ == "__main__":
    main()
