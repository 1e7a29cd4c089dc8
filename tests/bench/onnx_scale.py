# SPDX-License-Identifier: Apache-2.0
"""onnx_scale.py - models whose import and compile have to take time in proportion to their nodes, and two of 1 GB whose
weights have to take no more memory than they are: onnx_scale.py FOLDER."""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
random = np.random.default_rng(0)


def save(name, nodes, constants=None, width=64, functions=(), external=False):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, width])],
                              [helper.make_empty_tensor_value_info("y")],
                              [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()])
    opsets = [helper.make_opsetid("", 17)] + [helper.make_opsetid("f", 1)] * bool(functions)
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    model.ir_version = 8
    onnx.save(model, f"{folder}/{name}.onnx", save_as_external_data=external, location=f"{name}.bin")


def chain(links, make):
    """Nodes of `links` links, each from the one before: make(i, from, to)."""
    names = ["x"] + [f"t{i}" for i in range(links - 1)] + ["y"]
    return [node for i in range(links) for node in make(i, names[i], names[i + 1])]


def link(i, a, b):
    return [(helper.make_node("Add", [a, "b"], [b]), helper.make_node("Relu", [a], [b]),
             helper.make_node("MatMul", [a, "w"], [b]))[i % 3]]


def sizes(i, a, b):
    return [helper.make_node("Shape", [a], [f"s{i}"]), helper.make_node("Gather", [f"s{i}", "zero"], [f"g{i}"]),
            helper.make_node("Concat", [f"g{i}", "rest"], [f"c{i}"], axis=0),
            helper.make_node("Reshape", [a, f"c{i}"], [b])]


for count in (1000, 10000):
    small = {"w": random.uniform(-.1, .1, (64, 64)).astype("f4"), "b": random.uniform(-.1, .1, 64).astype("f4")}
    save(f"chain{count}", chain(count, link), small)
    save(f"shape{count}", chain(count // 4, sizes), {"zero": np.array([0]), "rest": np.array([-1])})
    bodies = [helper.make_function("f", f"F{i}", ["a"], ["b"], [helper.make_node("Relu", ["a"], ["b"])],
                                   [helper.make_opsetid("", 17)]) for i in range(count)]
    save(f"function{count}", chain(count, lambda i, a, b: [helper.make_node(f"F{i}", [a], [b], domain="f")]),
         functions=bodies)
for external in (False, True):
    large = {f"w{i}": random.standard_normal((4096, 4096), dtype="f4") for i in range(16)}
    save("apart" if external else "inside", chain(16, lambda i, a, b: [helper.make_node("MatMul", [a, f"w{i}"], [b])]),
         large, 4096, external=external)
