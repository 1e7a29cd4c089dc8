# SPDX-License-Identifier: Apache-2.0
"""found.py - cases of made.py that random models found: what once was wrong, or refused without need."""
import numpy as np
from onnx.reference.ops.op_attention import _compute_attention


def found(case, node, random):
    """The cases, by made.py's functions."""
    def floats(*sizes, dtype="f4"):
        return random.uniform(-3, 3, sizes).astype(dtype)

    # An element that both arms of a condition read, in vectors that are longer than the rows.
    case("Concat, the same twice",
         [node("Mul", ["x", "x"], ["a"]), node("Concat", ["c", "a", "a"], ["b"], axis=0), node("Softsign", ["b"])],
         {"x": floats(1, 100, 2)}, {"c": floats(2, 100, 2)})
    case("ScatterElements of a part", [node("ScatterElements", ["x", "i", "u"], axis=3, reduction="add")],
         {"x": np.round(floats(2, 24, 8, 2))},
         {"i": random.integers(0, 2, (1, 8, 4, 2)), "u": np.round(floats(1, 8, 4, 2))})
    # Columns that all have the value of one element.
    case("ArgMin of one element",
         [node("ArgMax", ["x"], ["a"], axis=1), node("Cast", ["a"], ["b"], to=1), node("Expand", ["b", "s"], ["c"]),
          node("ArgMin", ["c"], axis=1, keepdims=0)], {"x": floats(1, 8, 1)}, {"s": np.int64([5, 3, 16])}, off=0)
    case("Concat of one constant", [node("Concat", ["c"], ["d"], axis=0), node("Identity", ["d"], ["z"]),
                                    node("Add", ["x", "d"])], {"x": floats(4)}, {"c": floats(4)}, ("y", "z"))
    for axis in (0, -1):
        case(f"OneHot of what is outside {axis}", [node("OneHot", ["x", "d", "v"], axis=axis)],
             {"x": np.int64([[4, 5], [-5, -6], [-11, 0]])}, {"d": np.int64(5), "v": np.float32([2, 7])}, off=0)
    for opset, least, most in ((7, -1.0, 1.5), (7, None, 1.5), (10, .5, None)):
        bounds = {k: v for k, v in (("min", least), ("max", most)) if v is not None}
        case(f"Clip of float64 {bounds}", [node("Clip", ["x"], **bounds)], {"x": floats(3, 5, dtype="f8")}, opset=opset,
             want=lambda x, least=least, most=most: np.clip(x, least, most))
    for axis, block in ((0, 4), (1, 2), (-1, 3)):
        sizes = [5, 7]
        sizes[axis] = -(-sizes[axis] // block)
        constants = {"s": np.abs(floats(*sizes)) + np.float32(.1), "z": random.integers(-9, 9, sizes).astype("i1")}
        small = random.integers(-99, 99, (5, 7)).astype("i1")
        for op, x in (("QuantizeLinear", floats(5, 7)), ("DequantizeLinear", small)):
            case(f"{op} by shorter blocks {axis}", [node(op, ["x", "s", "z"], axis=axis, block_size=block)], {"x": x},
                 constants, opset=21)
    for op in ("ReduceL2", "ReduceLogSum"):
        case(f"{op} of integers", [node(op, ["x", "a"])], {"x": random.integers(1, 99, (3, 4, 5)).astype("i4")},
             {"a": np.int64([0, 2])}, off=0)
    case("Abs of uint8", [node("Abs", ["x"]), node("Add", ["x", "y"], ["z"])],
         {"x": random.integers(0, 99, (3, 4)).astype("u1")}, outputs=("y", "z"), off=0)
    for mode in ("nearest", "linear"):
        case(f"Resize of 5 by 2.6 {mode}", [node("Resize", ["x", "", "s"], mode=mode)], {"x": floats(1, 1, 5, 4)},
             {"s": np.float32([1, 1, 2.6, 1.5])})
    # Before opset 11 the element behind a place between two, where the image shrinks.
    for scales in ((1, .6), (1, .34), (.3, 2.6)):
        case(f"Resize 10 by {scales}", [node("Resize", ["x", "s"], mode="nearest")], {"x": floats(5, 7)},
             {"s": np.float32(scales)}, opset=10, off=0)
    case("ConvTranspose that leaves gaps", [node("ConvTranspose", ["x", "w"], auto_pad="SAME_UPPER", strides=[3, 2])],
         {"x": floats(1, 2, 6, 4)}, {"w": floats(2, 3, 2, 3)})
    # Queries that see no key, by the mask alone or with the causal one: rows of zeros.
    for kind in ("bool", "f4"):
        for sizes in ((5, 7), (2, 1, 5, 7), (1, 3, 5, 7)):
            sees = random.random(sizes) < .5
            sees[..., 0, :] = False
            sees[..., -1, :] = True
            mask = sees if kind == "bool" else np.where(sees, 0, -np.inf).astype(kind)
            for attributes in ({}, {"is_causal": 1}, {"softcap": 2.0}):
                case(f"Attention without keys {kind} {sizes} {attributes}",
                     [node("Attention", ["q", "k", "v", "m"], **attributes)],
                     {"q": floats(2, 3, 5, 8), "k": floats(2, 3, 7, 8), "v": floats(2, 3, 7, 4), "m": mask}, opset=23)
    seen(case, node, random, floats)
    activated(case, node, floats)
    for half in ("half_pixel", "output_half_pixel"):
        for grid, rows, columns in ((1, 2, 3), (2, 3, 2), (3, 1, 4)):
            case(f"RoiAlign max {half} {grid}",
                 [node("RoiAlign", ["x", "r", "b"], mode="max", sampling_ratio=grid,
                       coordinate_transformation_mode=half, output_height=rows, output_width=columns, spatial_scale=.5)],
                 {"x": floats(2, 3, 7, 9), "r": random.uniform(-4, 22, (5, 4)).astype("f4"),
                  "b": np.int64([1, 0, 0, 1, 1])}, opset=16)
    # auto_pad pads; where windows leave elements between them, the first one begins at the first element (ONNX Runtime
    # cuts the image at both ends, so that other elements are read).
    for pad in ("SAME_UPPER", "SAME_LOWER"):
        case(f"Conv of gaps {pad}", [node("Conv", ["x", "w"], auto_pad=pad, strides=[5])], {"x": floats(1, 1, 10)},
             {"w": np.ones((1, 1, 1), "f4")}, off=0, want=lambda x: x[:, :, ::5])
    # Windows of bytes with more remainders of their stride than there are loops for, and channels of more taps than a
    # block of sums has products.
    for channels, taps, stride, pad, kind in ((3, 7, 4, 3, "u1"), (3, 7, 4, 0, "i1"), (8, 8, 8, 0, "u1"),
                                              (3, 32, 32, 0, "u1"), (5, 11, 4, 5, "i1")):
        low, high = (0, 256) if kind == "u1" else (-128, 128)
        case(f"ConvInteger of {taps} taps, stride {stride}, {kind}",
             [node("ConvInteger", ["x", "w", "xz", "wz"], strides=[stride] * 2, pads=[pad] * 4)],
             {"x": random.integers(0, 256, (2, channels, 64, 70)).astype("u1"), "xz": np.array(9, "u1")},
             {"w": random.integers(low, high, (24, channels, taps, taps)).astype(kind), "wz": np.array(3, kind)}, off=0)
    older(case, node, floats)
    chosen(case, node, random)


def seen(case, node, random, floats):
    """What queries of Attention see: windows, masks that are shorter than the keys, lengths; and its last output."""
    sized = {"q": floats(2, 4, 5, 8), "k": floats(2, 2, 7, 8), "v": floats(2, 2, 7, 4)}
    more = {"m": ("attn_mask", random.random((5, 4)) < .8), "n": ("nonpad_kv_seqlen", np.int64([7, 3]))}
    for names, attributes in (("", {"left_window_size": 1}), ("", {"right_window_size": 2}), ("m", {}),
                              ("", {"left_window_size": 0, "right_window_size": 1}), ("m", {"is_causal": 1}),
                              ("", {"left_window_size": 1, "is_causal": 1}), ("n", {}), ("n", {"is_causal": 1}),
                              ("mn", {"softcap": 2.0}), ("mn", {"left_window_size": 2, "right_window_size": 0})):
        places = ["q", "k", "v", "m" * ("m" in names)] + ["", "", "n"] * ("n" in names)
        for mode in (None, 1, 2, 3) + (0,) * ("softcap" not in attributes):  # the reference's 0 has the soft cap
            said = attributes if mode is None else {**attributes, "qk_matmul_output_mode": mode}
            result = 0 if mode is None else 3

            def want(q, k, v, *rest, names=names, said=said, result=result):
                return _compute_attention(q, k, v, **{more[n][0]: a for n, a in zip(names, rest)}, **said)[result]
            case(f"Attention {names} {said}", [node("Attention", places, [""] * result + ["y"], **said)],
                 {**sized, **{n: more[n][1] for n in names}}, opset=25, want=want)


def activated(case, node, floats):
    """Numbers of activation functions go to those that take some, in their order."""
    for op, gates, names, count in (("RNN", 1, ["Softplus"], 1), ("GRU", 3, ["Sigmoid", "LeakyRelu"], 1),
                                    ("GRU", 3, ["tanh", "hardsigmoid"], 1), ("LSTM", 4, ["Tanh", "Elu", "Affine"], 2),
                                    ("LSTM", 4, ["Softplus", "ScaledTanh", "ThresholdedRelu"], 2)):
        for ways in (1, 2):
            case(f"{op} of {names}, {ways}",
                 [node(op, ["x", "w", "r"], hidden_size=3, activations=names * ways,
                       direction=("forward", "bidirectional")[ways - 1],
                       activation_alpha=[.3 + .1 * i for i in range(count * ways)],
                       activation_beta=[.6 + .1 * i for i in range(count * ways)])],
                 {"x": floats(3, 2, 4)},  # small weights, as some functions have no bound
                 {"w": floats(ways, gates * 3, 4) / 4, "r": floats(ways, gates * 3, 3) / 4}, off=1e-4)


def older(case, node, floats):
    """What older opsets say, and operators of types that differ or are narrow."""
    for dtype in ("f2", "f4", "f8"):
        case(f"Pad by a number {dtype}", [node("Pad", ["x"], pads=[1, 0, 2, 3], value=1.5)],
             {"x": floats(3, 4, dtype=dtype)}, opset=10, off=0, want=lambda x: np.pad(
                 x, ((1, 2), (0, 3)), constant_values=1.5))
    for opset, dtype in ((7, "f4"), (10, "?"), (12, "?")):
        case(f"Dropout's mask of opset {opset}", [node("Dropout", ["x"], ["z", "y"])], {"x": floats(3, 4)}, opset=opset,
             off=0, want=lambda x, opset=opset, dtype=dtype: np.full(x.shape, opset > 11, dtype))
    for mode in ("linear", "nearest", "cubic"):
        for of, at in (("f2", "f4"), ("f2", "f2"), ("f4", "f2")):
            case(f"GridSample {mode} of {of} at {at}", [node("GridSample", ["x", "g"], mode=mode)],
                 {"x": floats(2, 3, 5, 7, dtype=of), "g": (floats(2, 4, 3, 2) / 3).astype(at)}, opset=20, off=2e-3)
    case("DFT of float16", [node("DFT", ["x"], axis=1)], {"x": floats(2, 9, 1, dtype="f2")}, off=2e-3)
    case("STFT of float16", [node("STFT", ["x", "s", "w"])], {"x": floats(2, 40, 1, dtype="f2")},
         {"s": np.int64(8), "w": np.hanning(16).astype("f2")}, off=4e-3)
    for opset, attributes in ((21, {}), (23, {}), (23, {"precision": 1}), (23, {"precision": 10})):
        case(f"QuantizeLinear of float16 {opset} {attributes}", [node("QuantizeLinear", ["x", "s", "z"], **attributes)],
             {"x": floats(40, 50, dtype="f2")}, {"s": np.float16(.0123), "z": np.uint8(128)}, opset=opset, off=0)
    case("Resize to one of 55", [node("Resize", ["x", "", "", "s"])], {"x": floats(1, 2, 55)}, {"s": np.int64([1, 2, 1])},
         off=0)
    # An input whose memory an output may not have, since another output reads it later.
    case("Conv and ScatterElements of one input",
         [node("Conv", ["x", "w"], ["z"], group=2, pads=[1, 2, 2, 0], strides=[1, 2]),
          node("ScatterElements", ["x", "i", "u"], axis=-1, reduction="min")],
         {"x": floats(2, 16, 5, 10), "i": np.abs(floats(1, 14, 1, 2) * 3).astype("i8")},
         {"w": floats(6, 8, 3, 4), "u": floats(1, 14, 1, 2)}, ("y", "z"))
    # Squares of numbers that float16 has, but not the squares; ONNX Runtime computes them in float32.
    big, half = floats(4, 96, dtype="f2") * np.float16(200), np.float16
    case("Normalisation of float16",
         [node("ReduceMean", ["x"], ["m"], axes=[-1]), node("Sub", ["x", "m"], ["d"]), node("Pow", ["d", "two"], ["q"]),
          node("ReduceMean", ["q"], ["v"], axes=[-1]), node("Add", ["v", "e"], ["ve"]), node("Sqrt", ["ve"], ["s"]),
          node("Div", ["d", "s"], ["n"]), node("MatMul", ["n", "w"], ["p"]), node("Sigmoid", ["p"], ["g"]),
          node("Mul", ["p", "g"])],
         {"x": big}, {"two": half(2), "e": half(1e-5), "w": floats(96, 40, dtype="f2")}, opset=13)


def chosen(case, node, random):
    """As many results as values say, and n-grams."""
    for dtype in ("i1", "i8", "f4", "f8"):
        x = random.integers(-3, 3, (4, 3, 2)).astype(dtype)
        for axis in (None, 0, 1, -1):
            for ordered in (0, 1):
                case(f"Unique {dtype} {axis} {ordered}",
                     [node("Unique", ["x"], ["y", "first", "of", "counts"], sorted=ordered,
                           **({} if axis is None else {"axis": axis}))],
                     {"x": x.repeat(2, 0)}, outputs=("y", "first", "of", "counts"), off=0)
    pool, counts = [1, 2, 3, 4, 5, 1, 2, 2, 3, 3, 1, 5, 5, 1, 2, 3, 5, 5, 5], [0, 5, 13]
    places, weights = [9, 0, 1, 2, 4, 3, 5, 6, 8, 7, 11], [float(i + 1) / 4 for i in range(11)]
    for mode in ("TF", "IDF", "TFIDF"):
        for least, most, skipped in ((1, 1, 0), (1, 2, 0), (2, 2, 3), (1, 3, 1), (3, 3, 9)):
            for dtype, sizes in (("i4", (2, 20)), ("i8", (11,)), ("i8", (3, 1))):
                case(f"TfIdfVectorizer {mode} {least} {most} {skipped} {sizes}",
                     [node("TfIdfVectorizer", ["x"], mode=mode, min_gram_length=least, max_gram_length=most,
                           max_skip_count=skipped, ngram_counts=counts, ngram_indexes=places, pool_int64s=pool,
                           weights=weights)], {"x": random.integers(1, 6, sizes).astype(dtype)}, off=0)
