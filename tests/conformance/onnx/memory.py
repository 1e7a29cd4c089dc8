#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory.py - packed weights take the place of the file's: the memory of a process that compiles a model grows with its
weights once, not twice.

    memory.py OPJIT"""
import json
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LINKS = 16


def peak_of(opjit, place, width, apart):
    """Of a chain of products with matrices of this width, whose weights may lie in a file of their own."""
    names = ["x"] + [f"t{i}" for i in range(LINKS - 1)] + ["y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(LINKS)]
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.uniform(-.1, .1, (width, width)).astype("f4"), f"w{i}")
               for i in range(LINKS)]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [40, width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [40, width])], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = f"{place}/{width}{apart}.onnx"
    onnx.save(model, path, save_as_external_data=apart, location=f"{width}.bin")
    # A process begins with what its parent had: the shell has little.
    done = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", opjit, "bench", path, "--no-cache", "--quiet", "--json"],
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["model"]["peak_bytes"]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        for apart in (False, True):
            grown = peak_of(sys.argv[1], place, 1024, apart) - peak_of(sys.argv[1], place, 64, apart)
            ratio = grown / (LINKS * 4 * 1024 * 1024)
            print(f"{'FAIL ' if ratio > 1.4 else ''}{'apart' if apart else 'inside'}: {ratio:.2f} of the weights")
            failed += ratio > 1.4
    print(f"{2 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
