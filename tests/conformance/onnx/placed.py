# SPDX-License-Identifier: Apache-2.0
"""placed.py - cases of made.py: images cut, padded and put together, grids of places, rows written into caches, and
attention whose sequences have lengths of their own, and weights of narrow types."""
import ml_dtypes
import numpy as np


def placed(case, node, random):
    """The cases, by made.py's functions."""
    def floats(*sizes):
        return random.uniform(-1, 1, sizes).astype("f4")

    for corners in (0, 1):
        for sizes in ([2, 3, 5, 7], [2, 3, 2, 4, 6]):
            axes = len(sizes) - 2
            case(f"AffineGrid {corners} {axes}", [node("AffineGrid", ["t", "s"], align_corners=corners)],
                 {"t": floats(2, axes, axes + 1)}, {"s": np.int64(sizes)})
    for sizes, axes in (([5, 9], None), ([3, 2], [-1, 0]), ([12], [1]), ([2, 2], None)):
        case(f"CenterCropPad {sizes} {axes}", [node("CenterCropPad", ["x", "s"], **({"axes": axes} if axes else {}))],
             {"x": floats(8, 5)}, {"s": np.int64(sizes)}, off=0)
    for attributes, windows in (({}, 20), ({"strides": [2, 1], "pads": [1, 0, 1, 0]}, 9), ({"dilations": [2, 3]}, 9)):
        case(f"Col2Im {attributes}", [node("Col2Im", ["x", "i", "b"], **attributes)], {"x": floats(2, 12, windows)},
             {"i": np.int64([5, 6]), "b": np.int64([2, 2] if attributes != {"strides": [2, 1], "pads": [1, 0, 1, 0]} else [3, 4])})
    regions = np.array([[0, 1, 1, 8, 9], [1, 0, 2, 5, 6], [0, 4, 4, 4, 4]], "f4")
    for scale in (1.0, .5):
        case(f"MaxRoiPool {scale}", [node("MaxRoiPool", ["x", "r"], pooled_shape=[3, 2], spatial_scale=scale)],
             {"x": floats(2, 3, 12, 13), "r": regions}, off=0)
    for mode, first in (("linear", [1, 4]), ("circular", [6, 3])):
        case(f"TensorScatter {mode}", [node("TensorScatter", ["x", "u", "w"], axis=2, mode=mode)],
             {"x": floats(2, 3, 7, 4), "u": floats(2, 3, 3, 4)}, {"w": np.int64(first)}, off=0)
    case("TensorScatter from 0", [node("TensorScatter", ["x", "u"])], {"x": floats(2, 3, 7, 4), "u": floats(2, 3, 2, 4)}, off=0)
    deformed(case, node, random, floats)
    for n in (1, 2, 5, 17):
        matrices = random.uniform(-1, 1, (6, n, n)).astype("f4")
        matrices[4] = 0  # and one that is singular, and one whose first pivot is 0
        matrices[5, 0, 0] = 0
        case(f"Det {n}", [node("Det", ["x"])], {"x": matrices})
    lengths(case, node, random, floats)
    for dtype, least, most in (("int4", -8, 8), ("uint4", 0, 16)):
        for columns in (6, 5):
            narrow = getattr(ml_dtypes, dtype)
            constants = {"w": random.integers(least, most, (3, columns)).astype(narrow), "s": np.abs(floats(columns)),
                         "z": random.integers(least, most, columns).astype(narrow)}
            case(f"DequantizeLinear {dtype} {columns}", [node("DequantizeLinear", ["w", "s", "z"], ["d"], axis=1),
                                                         node("Add", ["x", "d"])], {"x": floats(3, columns)}, constants)
    case("Cast of bfloat16", [node("Cast", ["w"], ["d"], to=1), node("MatMul", ["x", "d"])], {"x": floats(3, 8)},
         {"w": floats(8, 5).astype(ml_dtypes.bfloat16)})


def deformed(case, node, random, floats):
    """Convolutions whose taps are moved, some of them out of the image."""
    for name, attributes, window, result in (
            ("plain", {}, (3, 2), (6, 8)), ("padded", {"pads": [1, 0, 2, 1], "strides": [2, 1]}, (3, 3), (5, 8)),
            ("dilated", {"dilations": [2, 3], "pads": [2, 3, 2, 3]}, (3, 3), (8, 9)),
            ("groups", {"group": 2, "offset_group": 3, "pads": [1, 1, 1, 1]}, (3, 3), (8, 9))):
        taps, groups = window[0] * window[1], attributes.get("offset_group", 1)
        inputs = {"x": floats(2, 6, 8, 9), "o": 3 * floats(2, 2 * groups * taps, *result)}
        w = floats(4, 6 // attributes.get("group", 1), *window)
        case(f"DeformConv {name}", [node("DeformConv", ["x", "w", "o"], **attributes)], inputs, {"w": w})
        case(f"DeformConv {name}, weighed", [node("DeformConv", ["x", "w", "o", "b", "m"], **attributes)],
             {**inputs, "m": floats(2, groups * taps, *result)}, {"w": w, "b": floats(4)})


def lengths(case, node, random, floats):
    """GroupQueryAttention, by lengths that are computed in the call: one below how many keys of each sequence count."""
    heads, kv_heads, width = 4, 2, 16
    for rotary in (0, 1):
        for rows, past, total, counts, window in ((1, 6, 7, [7, 4], -1), (1, 6, 7, [6, 3], 3), (1, 12, 6, [6, 6], -1),
                                                  (3, 12, 9, [9], 4), (5, 0, 5, [5, 5], -1)):
            batch = len(counts)
            ones = (np.arange(total) < np.array(counts)[:, None]).astype("f4")
            nodes = [node("ReduceSum", ["ones", "axis"], ["sum"], keepdims=0), node("Sub", ["sum", "one"], ["last"]),
                     node("Cast", ["last"], ["lengths"], to=6)]
            angles = floats(32, width // 2)
            constants = {"axis": np.int64([1]), "one": np.float32(1), "total": np.int32(total), "cos": np.cos(angles),
                         "sin": np.sin(angles)}
            inputs = {"ones": ones, "q": floats(batch, rows, heads * width), "k": floats(batch, rows, kv_heads * width),
                      "v": floats(batch, rows, kv_heads * width)}
            if past:
                inputs |= {"pk": floats(batch, kv_heads, past, width), "pv": floats(batch, kv_heads, past, width)}
            names = ["q", "k", "v", "pk" * (past > 0), "pv" * (past > 0), "lengths", "total"] + ["cos", "sin"] * rotary
            nodes.append(node("GroupQueryAttention", names, ["y", "keys", "values"], "com.microsoft", num_heads=heads,
                              kv_num_heads=kv_heads, do_rotary=rotary, local_window_size=window))
            # The cache behind a sequence's last key is anything.
            outputs = ("y", "keys", "values") if counts == [total] * batch and past < total else ("y",)
            case(f"GroupQueryAttention of lengths {rotary} {rows} {past} {counts}", nodes, inputs, constants, outputs)
