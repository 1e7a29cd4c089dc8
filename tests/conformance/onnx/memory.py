#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memory.py - packed weights take the place of the file's: the memory of a process that compiles a model grows with its
weights once, not twice.  And of a model whose sizes values decide, what one part hands on has memory as long as another
one reads it.

    memory.py OPJIT"""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LINKS = 16
PARTS = 24
BYTES = 4 << 20  # of what a part hands on
ROUNDS = 48
ROW = 256 << 10  # of a state that grows by as much in each round


def peak_of_model(opjit, place, name, graph, inputs=None, apart=None):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path = f"{place}/{name}.onnx"
    onnx.save(model, path, save_as_external_data=bool(apart), location=f"{name}.bin")
    given = []
    for key, array in (inputs or {}).items():
        np.save(f"{place}/{name}.{key}.npy", array)
        given += ["--input", f"{key}={place}/{name}.{key}.npy"]
    # A process begins with what its parent had: the shell has little.  A sanitizer keeps what was freed, unless told.
    options = ":".join([os.environ.get("ASAN_OPTIONS", ""), "quarantine_size_mb=0", "thread_local_quarantine_size_kb=0"])
    done = subprocess.run(["sh", "-c", '"$@"; exit $?', "sh", opjit, "bench", path, *given, "--no-cache", "--quiet",
                           "--quick", "--json"], env={**os.environ, "ASAN_OPTIONS": options.strip(":")},
                          capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["model"]["peak_bytes"]


def peak_of(opjit, place, width, apart):
    """Of a chain of products with matrices of this width, whose weights may lie in a file of their own."""
    names = ["x"] + [f"t{i}" for i in range(LINKS - 1)] + ["y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(LINKS)]
    random = np.random.default_rng(1)
    weights = [numpy_helper.from_array(random.uniform(-.1, .1, (width, width)).astype("f4"), f"w{i}")
               for i in range(LINKS)]
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [40, width])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [40, width])], weights)
    return peak_of_model(opjit, place, f"{width}{apart}", graph, apart=apart)


def value(name, dtype, shape):
    return helper.make_tensor_value_info(name, dtype, shape)


def peak_of_parts(opjit, place, parts):
    """Each part hands a tensor to the next one, and asks where one of its rows is positive."""
    nodes = []
    for i in range(parts):
        nodes += [helper.make_node("Tanh", [f"t{i}"], [f"t{i + 1}"]),
                  helper.make_node("Gather", [f"t{i + 1}", "first"], [f"r{i}"]),
                  helper.make_node("NonZero", [f"r{i}"], [f"n{i}"]), helper.make_node("Shape", [f"n{i}"], [f"s{i}"])]
    nodes += [helper.make_node("Concat", [f"s{i}" for i in range(parts)], ["count"], axis=0),
              helper.make_node("ReduceSum", [f"t{parts}"], ["y"])]
    rows = BYTES // 4096
    graph = helper.make_graph(nodes, "parts", [value("t0", TensorProto.FLOAT, [rows, 1024])],
                              [value("y", TensorProto.FLOAT, None), value("count", TensorProto.INT64, None)],
                              [helper.make_tensor("first", TensorProto.INT64, [], [0])])
    x = np.random.default_rng(2).uniform(-1, 1, (rows, 1024)).astype("f4")
    return peak_of_model(opjit, place, f"parts{parts}", graph, {"t0": x})


def peak_of_rounds(opjit, place, rounds):
    """Each round appends rows to its state, as many as a value says: one."""
    body = helper.make_graph(
        [helper.make_node("ReduceMax", ["row"], ["m"], keepdims=0),
         helper.make_node("Clip", ["m", "one", "one"], ["c"]),
         helper.make_node("Cast", ["c"], ["k"], to=TensorProto.INT64),
         helper.make_node("Reshape", ["k", "list"], ["n"]), helper.make_node("Concat", ["n", "list"], ["size"], axis=0),
         helper.make_node("Tile", ["row", "size"], ["rows"]),
         helper.make_node("Concat", ["state", "rows"], ["longer"], axis=0),
         helper.make_node("Identity", ["on"], ["still"])], "body",
        [value("round", TensorProto.INT64, []), value("on", TensorProto.BOOL, []),
         value("state", TensorProto.FLOAT, None)],
        [value("still", TensorProto.BOOL, []), value("longer", TensorProto.FLOAT, None)])
    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["row"]), helper.make_node("Loop", ["rounds", "", "row"], ["all"], body=body),
         helper.make_node("ReduceSum", ["all"], ["y"])], "rounds",
        [value("x", TensorProto.FLOAT, [1, ROW // 4])], [value("y", TensorProto.FLOAT, None)],
        [helper.make_tensor("rounds", TensorProto.INT64, [], [rounds]),
         helper.make_tensor("one", TensorProto.FLOAT, [], [1]), helper.make_tensor("list", TensorProto.INT64, [1], [1])])
    return peak_of_model(opjit, place, f"rounds{rounds}", graph, {"x": np.ones((1, ROW // 4), "f4")})


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as place:
        for apart in (False, True):
            grown = peak_of(sys.argv[1], place, 1024, apart) - peak_of(sys.argv[1], place, 64, apart)
            ratio = grown / (LINKS * 4 * 1024 * 1024)
            print(f"{'FAIL ' if ratio > 1.4 else ''}{'apart' if apart else 'inside'}: {ratio:.2f} of the weights")
            failed += ratio > 1.4
        for name, make, few, many, unit, most in (("parts", peak_of_parts, 2, PARTS, BYTES, 3),
                                                  ("rounds", peak_of_rounds, 2, ROUNDS, ROW * ROUNDS, 6)):
            ratio = (make(sys.argv[1], place, many) - make(sys.argv[1], place, few)) / unit
            print(f"{'FAIL ' if ratio > most else ''}{name}: {ratio:.2f} of what is handed on, at most {most}")
            failed += ratio > most
    print(f"{4 - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
