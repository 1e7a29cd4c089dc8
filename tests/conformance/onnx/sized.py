#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sized.py - models whose sizes depend on what a call brings: predicted lengths, boxes that are left, loops that end
when their values say so.  `opjit run` computes what has to be known from the files that it is given; the outputs are
compared with those of onnxruntime.

    sized.py OPJIT [TEXT]     TEXT: cases whose names have it"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made import CASES, case, compare, floats, integers, node, scalar, value  # noqa: E402


def predicted():
    """Each of 24 letters lasts as long as a product says; its features are repeated for that long."""
    lengths = [
        node("MatMul", ["x", "w"], ["m"]), node("Exp", ["m"], ["e"]),
               node("ReduceSum", ["e", "last"], ["s"], keepdims=0),
        node("Round", ["s"], ["r"]), node("Cast", ["r"], ["n"], to=TensorProto.INT64),
               node("CumSum", ["n", "zero"], ["ends"]),
        node("ReduceMax", ["ends"], ["all"], keepdims=0), node("Range", ["zero", "all", "one"], ["places"]),
        node("Unsqueeze", ["ends", "last"], ["column"]), node("Less", ["places", "column"], ["before"]),
        node("Cast", ["before"], ["b"], to=TensorProto.FLOAT),
        node("Transpose", ["b"], ["t"]), node("MatMul", ["t", "x"], ["y"]), node("Mul", ["y", "y"], ["z"]),
    ]
    constants = {"w": floats(16, 3), "last": scalar([-1], "i8"), "zero": scalar(0, "i8"), "one": scalar(1, "i8")}
    case("predicted length", lengths, {"x": floats(24, 16)}, constants, ("z", "n"))


def chosen():
    places = [node("Mul", ["x", "x"], ["q"]), node("Greater", ["q", "half"], ["g"]), node("NonZero", ["g"], ["n"]),
              node("Transpose", ["n"], ["at"]), node("GatherND", ["q", "at"], ["y"])]
    half = {"half": scalar(0.5)}
    case("NonZero", places, {"x": floats(9, 20)}, half, ("y", "n"))
    case("NonZero of none", places, {"x": np.zeros((9, 20), "f4")}, half, ("y", "n"))
    case("Compress", [node("Less", ["x", "zero"], ["c"]), node("Compress", ["x", "c"], ["y"], axis=0)],
         {"x": floats(100)}, {"zero": scalar(0)})
    case("TopK",
         [node("ReduceSum", ["c"], ["s"], keepdims=0), node("Reshape", ["s", "one"], ["k"]),
          node("TopK", ["x", "k"], ["y", "i"], axis=0)],
         {"x": floats(100), "c": np.ones((1, 70), "i8")},
         {"one": scalar([1], "i8")}, outputs=("y", "i"))
    picked = [node("Sigmoid", ["x"], ["s"]), node("Relu", ["b"], ["r"]),
              node("NonMaxSuppression", ["r", "s", "most", "overlap", "least"], ["i"]),
              node("Slice", ["i", "two", "three", "one"], ["which"]), node("Squeeze", ["which", "one"], ["k"]),
              node("Squeeze", ["r", "zero"], ["all"]), node("Gather", ["all", "k"], ["y"])]
    corner = np.abs(floats(1, 50, 2))
    boxes = np.concatenate([corner, corner + 0.3], 2)
    numbers = {"most": scalar(5, "i8"), "overlap": scalar(0.4), "two": scalar([2], "i8"), "three": scalar([3], "i8"),
               "one": scalar([1], "i8"), "zero": scalar([0], "i8")}
    for name, least in (("", 0.5), (" of none", 2.0)):
        case("NonMaxSuppression" + name, picked, {"x": floats(1, 3, 50), "b": boxes},
             {**numbers, "least": scalar(least)}, ("y", "i"))


def repeated():
    body = helper.make_graph(
        [node("Add", ["v", "v"], ["w"]), node("ReduceSum", ["w"], ["s"], keepdims=0),
         node("Less", ["s", "limit"], ["on"]), node("Identity", ["w"], ["shown"])], "body",
        [value("round", TensorProto.INT64, []), value("before", TensorProto.BOOL, []),
         value("v", TensorProto.FLOAT, [70])],
        [value("on", TensorProto.BOOL, []), value("w", TensorProto.FLOAT, [70]),
         value("shown", TensorProto.FLOAT, [70])])
    case("Loop", [node("Loop", ["", "yes", "x"], ["y", "all"], body=body)],
         {"x": np.abs(floats(70)), "limit": scalar(900)}, {"yes": scalar(True, "?")}, ("y", "all"))
    branches = [helper.make_graph([node("Slice", ["x", "from", "to"], [name])], name, [],
                                  [value(name, TensorProto.FLOAT, None)],
                                  [helper.make_tensor("to", TensorProto.INT64, [1], [to])])
                for name, to in (("few", 3), ("many", 60))]
    case("If", [node("ReduceSum", ["x"], ["s"], keepdims=0), node("Less", ["s", "zero"], ["c"]),
                node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])],
         {"x": floats(70)}, {"zero": scalar(0), "from": scalar([0], "i8")})


def parted():
    """What was made before a value is read after it: each value ends a part of the model."""
    nodes, parts = [node("MatMul", ["x", "w"], ["s"]), node("Softmax", ["s"], ["p"])], []
    for k in range(90):
        nodes += [node("Gather", ["p", f"k{k}"], [f"c{k}"], axis=1), node("Greater", [f"c{k}", "least"], [f"g{k}"]),
                  node("NonZero", [f"g{k}"], [f"n{k}"]), node("Transpose", [f"n{k}"], [f"t{k}"]),
                  node("GatherND", [f"c{k}", f"t{k}"], [f"y{k}"])]
        parts.append(f"y{k}")
    case("90 NonZero", nodes + [node("Concat", parts, axis=0), node("Mul", ["s", "s"], ["z"])], {"x": floats(70, 16)},
         {"w": floats(16, 90), "least": scalar(0.012), **{f"k{k}": scalar(k, "i8") for k in range(90)}}, ("y", "z"))
    body = helper.make_graph(
        [node("Mul", ["a", "b"], ["d"]), node("Add", ["a", "d"], ["e"]), node("Tanh", ["d"], ["f"]),
         node("ReduceMax", ["e"], ["s"], keepdims=0), node("Less", ["s", "limit"], ["on"]),
         node("Identity", ["f"], ["shown"])], "body",
        [value("round", TensorProto.INT64, []), value("before", TensorProto.BOOL, []),
         value("a", TensorProto.FLOAT, [70]), value("b", TensorProto.FLOAT, [70])],
        [value(k, TensorProto.BOOL if k == "on" else TensorProto.FLOAT, [] if k == "on" else [70])
         for k in ("on", "e", "f", "shown")])
    case("Loop of several states",
         [node("Exp", ["x"], ["u"]), node("Cos", ["x"], ["v"]),
          node("Loop", ["", "yes", "u", "v"], ["y", "w", "all"], body=body), node("Add", ["u", "w"], ["z"])],
         {"x": np.abs(floats(70)), "limit": scalar(9)}, {"yes": scalar(True, "?")}, ("y", "z", "all"))
    # What is large has blocks, which go to others: a state that is the other one before, and one that goes on as it is.
    later = helper.make_graph(
        [node("Tanh", ["a"], ["s"]), node("Add", ["s", "b"], ["e"]), node("ReduceMax", ["e"], ["m"], keepdims=0),
         node("Less", ["m", "limit"], ["on"]), node("Mul", ["e", "c"], ["shown"])], "later",
        [value("round", TensorProto.INT64, []), value("before", TensorProto.BOOL, [])] +
        [value(k, TensorProto.FLOAT, [3000]) for k in "abc"],
        [value("on", TensorProto.BOOL, [])] +
        [value(k, TensorProto.FLOAT, [3000]) for k in ("e", "a", "c", "shown")])
    case("Loop of large states",
         [node("Exp", ["x"], ["u"]), node("Cos", ["x"], ["v"]), node("Neg", ["x"], ["n"]),
          node("Loop", ["", "yes", "u", "v", "n"], ["y", "w", "o", "all"], body=later),
          node("Greater", ["y", "limit"], ["g"]), node("NonZero", ["g"], ["at"]), node("Add", ["u", "w"], ["z"]),
          node("Add", ["o", "v"], ["q"])],
         {"x": np.abs(floats(3000)), "limit": scalar(9)}, {"yes": scalar(True, "?")}, ("y", "z", "q", "all", "at"))
    chain = []
    for k in range(12):
        chain += [node("Sin", [f"x{k}"], [f"x{k + 1}"]), node("Gather", [f"x{k + 1}", "first"], [f"r{k}"]),
                  node("Greater", [f"r{k}", "zero"], [f"g{k}"]), node("NonZero", [f"g{k}"], [f"n{k}"]),
                  node("Shape", [f"n{k}"], [f"s{k}"]),
                  node("Add", [f"x{max(k - 4, 0)}", f"x{k + 1}"], [f"a{k}"])]
    case("what several parts later read", chain + [node("Sum", [f"a{k}" for k in range(12)], ["y"]),
                                                   node("Concat", [f"s{k}" for k in range(12)], ["z"], axis=0)],
         {"x0": floats(40, 90)}, {"first": scalar(0, "i8"), "zero": scalar(0)}, ("y", "z"))
    listed = [node("Greater", ["q", "zero"], ["g"]), node("NonZero", ["g"], ["n"]),
              node("Gather", ["q", "n"], ["m"], axis=0)]
    case("a list across parts",
         [node("Exp", ["x"], ["e"]), node("Neg", ["x"], ["q"]), node("SequenceConstruct", ["e", "q"], ["l"])] + listed +
         [node("SequenceInsert", ["l", "m"], ["k"]), node("SequenceAt", ["k", "first"], ["a"]),
          node("SequenceAt", ["k", "last"], ["b"]), node("Add", ["a", "one"], ["y"]), node("Add", ["b", "one"], ["z"])],
         {"x": floats(70)}, {"zero": scalar(0), "one": scalar(1), "first": scalar(0, "i8"), "last": scalar(-1, "i8")},
         ("y", "z"))
    case("the input itself", [node("Cast", ["x"], ["c"], to=TensorProto.BOOL), node("NonZero", ["x"], ["n"]),
                              node("NonZero", ["c"], ["k"]), node("Add", ["n", "k"], ["y"]), node("Neg", ["x"], ["z"])],
         {"x": np.round(floats(9, 20))}, outputs=("y", "z"))


def without_boxes():
    """A detector that finds nothing goes on with tensors that have no elements."""
    nodes = [node("Relu", ["x"], ["f"]), node("Greater", ["s", "high"], ["g"]), node("NonZero", ["g"], ["n"]),
             node("Squeeze", ["n", "zero"], ["k"]), node("Gather", ["b", "k"], ["r"], axis=0),
             node("Mul", ["k", "none"], ["i"]), node("RoiAlign", ["f", "r", "i"], ["p"], output_height=2,
                                                     output_width=2, sampling_ratio=2),
             node("Conv", ["p", "w"], ["q"]), node("MaxPool", ["q"], ["o"], kernel_shape=[1, 1]),
             node("ConvTranspose", ["o", "t"], ["y"], strides=[2, 2]), node("ArgMax", ["y"], ["z"], axis=1, keepdims=0)]
    best = [node("Greater", ["s", "high"], ["g"]), node("NonZero", ["g"], ["n"]), node("Squeeze", ["n", "zero"], ["k"]),
            node("Gather", ["s", "k"], ["v"]), node("Shape", ["v"], ["count"]), node("Min", ["count", "most"], ["few"]),
            node("TopK", ["v", "few"], ["y", "z"])]
    case("the best of none", best, {"s": floats(80)}, {"high": scalar(2), "zero": scalar([0], "i8"),
                                                       "most": scalar([20], "i8")}, ("y", "z"))
    case("no best", [node("Min", ["count", "most"], ["few"]), node("TopK", ["x", "few"], ["y", "z"])],
         {"x": floats(7, 80), "count": scalar([0], "i8")}, {"most": scalar([20], "i8")}, ("y", "z"))
    case("no boxes", nodes, {"x": floats(1, 4, 9, 9), "s": floats(80), "b": floats(80, 4)},
         {"high": scalar(2), "zero": scalar([0], "i8"), "none": scalar([0], "i8"), "w": floats(5, 4, 1, 1),
          "t": floats(5, 3, 2, 2)}, ("y", "z", "f"))


def many_boxes():
    grid = np.stack(np.meshgrid(np.arange(130), np.arange(130)), -1).reshape(1, -1, 2).astype("f4")
    case("NonMaxSuppression of many", [node("NonMaxSuppression", ["b", "s", "most", "overlap"])],
         {"b": np.concatenate([grid, grid + .9], 2), "s": floats(1, 1, 130 * 130)},
         {"most": scalar(20000, "i8"), "overlap": scalar(.5)})


def refused(opjit):
    """Ahead of time nothing is known of a call: the refusal names the node."""
    graph = helper.make_graph([node("NonZero", ["x"])], "g", [value("x", TensorProto.FLOAT, [70])],
                              [value("y", TensorProto.INT64, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    with tempfile.TemporaryDirectory() as place:
        onnx.save(model, place + "/model.onnx")
        np.save(place + "/x.npy", np.ones(70, "f4"))
        done = subprocess.run([opjit, "compile", place + "/model.onnx", "--input", f"x={place}/x.npy", "-o",
                               place + "/out"],
                              capture_output=True, text=True)
    said = "node 0 (NonZero): input 0 (\"x\") depends on values that are known at run time only"
    return None if done.returncode == 1 and said in done.stderr else done.stderr


def main():
    opjit, text = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    for make in (predicted, chosen, repeated, parted, without_boxes, many_boxes):
        make()
    results = {name: compare(opjit, *rest) for name, *rest in CASES if text in name}
    results["ahead of time"] = refused(opjit)
    for name, why in results.items():
        if why is not None:
            print(f"FAIL {name}: {why}")
    failed = sum(why is not None for why in results.values())
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
