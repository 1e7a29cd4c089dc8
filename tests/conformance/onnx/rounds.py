# SPDX-License-Identifier: Apache-2.0
"""rounds.py - cases of made.py: Scans whose rounds do not wait for each other, which are made at once, and some that
look like such."""
import numpy as np
from onnx import TensorProto, helper, numpy_helper


def rounds(case, node, random):
    """The cases, by made.py's functions."""
    def floats(*sizes):
        return random.uniform(-1, 1, sizes).astype("f4")

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)

    def scan(name, nodes, inputs, states, outputs, stored=(), **more):
        """Inputs of the body are s and t, the states, then a and b, which are read a slice in each round."""
        slices = [n for n in inputs if n in ("a", "b")]
        body = helper.make_graph(nodes, "body", [value("in_" + n) for n in [*states, *slices]],
                                 [value(n) for n in outputs],
                                 [numpy_helper.from_array(np.asarray(v), n) for n, v in dict(stored).items()])
        given = ["end_" + n for n in states] + [f"y{i}" for i in range(len(outputs) - len(states))]
        case(f"Scan at once, {name}", [node("Scan", [*states, *slices], given, body=body,
                                            num_scan_inputs=len(slices))],
             inputs, {}, tuple(given), **more)

    keep = node("Identity", ["in_s"], ["kept"])
    less = node("Sub", ["in_s", "in_a"], ["d"])
    points = {"s": floats(7, 12), "a": floats(90, 12)}
    for axes in ([1], [-1], [0], [0, 1]):
        for keepdims in (0, 1):
            scan(f"distances {axes} {keepdims}",
                 [keep, less, node("ReduceSumSquare", ["d", "axes"], ["r"], keepdims=keepdims),
                  node("Identity", ["r"], ["out"])], points, "s", ["kept", "out"], {"axes": np.int64(axes)}, opset=18)
    scan("distances, old", [keep, less, node("ReduceSumSquare", ["d"], ["r"], axes=[1], keepdims=0)], points, "s",
         ["kept", "r"], opset=11)
    scan("all axes", [keep, less, node("ReduceL1", ["d"], ["r"], keepdims=0)], points, "s", ["kept", "r"])
    scan("no axes", [keep, less, node("ReduceL1", ["d", "none"], ["r"], noop_with_empty_axes=1)], points, "s",
         ["kept", "r"], {"none": np.zeros(0, "i8")}, opset=18)
    scan("a number in each round", [node("ReduceL2", ["in_a"], ["r"], keepdims=0), node("Neg", ["r"], ["out"])],
         {"a": floats(9)}, "", ["r", "out"])
    scan("ranks", [node("Add", ["in_a", "in_b"], ["m"]), node("Mul", ["m", "outer"], ["n"]),
                   node("Where", ["c", "n", "in_a"], ["w"]), node("Max", ["w", "m", "in_b"], ["out"]),
                   node("Identity", ["in_b"], ["as_it_is"])],
         {"a": floats(6, 3), "b": floats(6, 4, 1), "outer": floats(2, 1, 3), "c": floats(4, 3) > 0}, "",
         ["m", "out", "as_it_is"])
    three = helper.make_tensor("three", TensorProto.FLOAT, [], [3.0])
    scan("a constant", [node("Constant", [], ["three"], value=three), node("Pow", ["in_a", "three"], ["p"]),
                        node("Less", ["p", "in_b"], ["l"]), node("Cast", ["l"], ["out"], to=TensorProto.FLOAT)],
         {"a": floats(6, 3), "b": floats(6, 3)}, "", ["p", "out"])
    scan("more rounds than could be made one by one", [keep, less], {"s": floats(2), "a": floats(100000, 2)}, "s",
         ["kept", "d"], off=0)
    # rounds that wait, or give what is the same in all
    two = {"s": floats(3), "t": floats(3), "a": floats(5, 3)}
    sums = node("Add", ["in_s", "in_a"], ["sum"])
    scan("states that change places", [sums, node("Identity", ["in_s"], ["x"]), node("Identity", ["in_t"], ["z"])], two,
         "st", ["z", "x", "sum"])
    scan("a state of the round", [sums, node("Identity", ["in_t"], ["z"]), node("Identity", ["sum"], ["x"])], two,
         "st", ["x", "z", "sum"])
    scan("what is the same", [keep, sums, node("Add", ["in_s", "in_s"], ["twice"])],
         {"s": floats(3), "a": floats(5, 3)}, "s", ["kept", "sum", "twice"])
    scan("a product", [keep, node("MatMul", ["in_s", "in_a"], ["m"])], {"s": floats(4, 3), "a": floats(5, 3, 2)}, "s",
         ["kept", "m"])
