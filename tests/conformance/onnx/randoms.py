#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""randoms.py - random numbers of a model: their averages and spreads, that each node has others, and each run the same.

    randoms.py OPJIT"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

node = helper.make_node
NODES = [
    node("RandomNormalLike", ["x"], ["a"]), node("RandomNormalLike", ["x"], ["b"], mean=3.0, scale=0.5),
    node("RandomUniform", [], ["c"], shape=[50, 400], low=-1.0, high=3.0),
    node("RandomUniformLike", ["x"], ["d"], dtype=TensorProto.FLOAT16),
         node("Bernoulli", ["p"], ["e"], dtype=TensorProto.BOOL),
    node("RandomNormal", [], ["f"], shape=[3, 5], seed=1.0), node("RandomNormalLike", ["x"], ["g"], seed=1.0),
]
# Output: type, sizes, average, spread, least, most.
WANTED = {
    "a": ("f4", (100, 200), 0, 1, -9, 9), "b": ("f4", (100, 200), 3, 0.5, -1.5, 7.5),
    "c": ("f4", (50, 400), 1, 4 / 12**0.5, -1, 3), "d": ("f2", (100, 200), 0.5, 1 / 12**0.5, 0, 1),
    "e": ("u1", (100, 200), 0.25, 0.1875**0.5, 0, 1), "f": ("f4", (3, 5), 0, 1, -9, 9),
          "g": ("f4", (100, 200), 0, 1, -9, 9), }


def run(opjit, place, *options):
    subprocess.run([opjit, "run", place + "/model.onnx", "--input", f"x={place}/x.npy", "--input", f"p={place}/p.npy",
                    "--no-cache", "--output-dir", place + "/out", *options], check=True)
    return {name: np.load(f"{place}/out/{name}.npy") for name in WANTED}


def main():
    opjit = sys.argv[1]
    inputs = {"x": np.zeros((100, 200), "f4"), "p": np.full((100, 200), 0.25, "f4")}
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in inputs.items()]
    graph = helper.make_graph(NODES, "g", ports, [helper.make_empty_tensor_value_info(name) for name in WANTED])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    with tempfile.TemporaryDirectory() as place:
        onnx.save(model, place + "/model.onnx")
        for name, array in inputs.items():
            np.save(os.path.join(place, name + ".npy"), array)
        numbers, again = run(opjit, place), run(opjit, place, "--executor", "interp")
    for name, (dtype, sizes, average, spread, least, most) in WANTED.items():
        x = numbers[name].astype("f8")
        assert (numbers[name].dtype, x.shape) == (np.dtype(dtype), sizes), name
        assert x.min() >= least and x.max() <= most, (name, x.min(), x.max())
        near = 4 * spread / x.size**0.5  # a ten-thousandth of averages are farther away
        assert abs(x.mean() - average) < near and abs(x.std() - spread) < 2 * near, (name, x.mean(), x.std())
        assert numbers[name].tobytes() == again[name].tobytes(), name
    for a, b in (("a", "b"), ("a", "g"), ("b", "g")):
        assert abs(np.corrcoef(numbers[a].ravel(), numbers[b].ravel())[0, 1]) < 0.03, (a, b)
    print(f"{len(WANTED)} passed")


main()
