#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""weights.py - weights that lie in other files: names and links that stay in the model's folder are taken, others are
refused, as ONNX Runtime does.

    weights.py OPJIT"""
import os
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper

OUTSIDE = "is not inside of the model's folder"
# Model, the name that it has for its weights, what a refusal says.
ROWS = [
    ("models/a.onnx", "weights", None),
    ("models/b.onnx", "./weights", None),
    ("models/c.onnx", "deeper/../weights", None),
    ("models/d.onnx", "deeper/weights", None),  # a folder that is a link within
    ("models/e.onnx", "link_inside", None),
    ("models/f.onnx", "link_outside", OUTSIDE),
    ("models/g.onnx", "folder_outside/weights", OUTSIDE),
    ("models/h.onnx", "../other/weights", OUTSIDE),
    ("models/i.onnx", "deeper/../../other/weights", OUTSIDE),
    ("models/j.onnx", os.devnull, OUTSIDE),
    ("models/k.onnx", ".", OUTSIDE),
    ("models/l.onnx", "", OUTSIDE),
    ("models/m.onnx", "deeper", "no regular file"),
    ("models/n.onnx", "nowhere", "No such file or directory"),
    ("models/o.onnx", "link_nowhere", "No such file or directory"),
    ("models/p.onnx", "link_round", "Too many levels of symbolic links"),
]


def model(path, location):
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", "0"), ("length", "16")):
        entry = weights.external_data.add()
        entry.key, entry.value = key, value
    value = helper.make_tensor_value_info
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [value("x", TensorProto.FLOAT, [4])],
                              [value("y", TensorProto.FLOAT, [4])], [weights])
    with open(path, "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]).SerializeToString())


def run(opjit, path):
    done = subprocess.run([opjit, "run", path, "--no-cache", "--input", "x=x.npy"], capture_output=True, text=True)
    return done.stdout + done.stderr if done.returncode == 0 else done.stderr.strip(), done.returncode


def main():
    opjit, failed = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for folder in ("models/within", "other", "blobs", "snapshots/one"):
            os.makedirs(folder)
        for path in ("models/weights", "models/within/weights", "other/weights", "blobs/2"):
            np.arange(4, dtype="f4").tofile(path)
        np.save("x.npy", np.ones(4, "f4"))
        for target, link in (("within", "models/deeper"), ("weights", "models/link_inside"),
                             ("../other/weights", "models/link_outside"), ("../other", "models/folder_outside"),
                             ("absent", "models/link_nowhere"), ("link_round", "models/link_round"),
                             ("../../blobs/1", "snapshots/one/model.onnx"),
                             ("../../blobs/2", "snapshots/one/model.data")):
            os.symlink(target, link)
        for path, location, _ in ROWS:
            model(path, location)
        model("blobs/1", "model.data")  # files by content, and names that are links to them
        for path, location, why in ROWS + [("snapshots/one/model.onnx", "model.data", None)]:
            text, status = run(opjit, path)
            if ("1, 2, 3, 4" not in text or status != 0) if why is None else (why not in text or "\n" in text):
                failed += 1
                print(f"FAIL {path}, weights in \"{location}\": {text}")
    print(f"{len(ROWS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
