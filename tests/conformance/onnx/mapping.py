# SPDX-License-Identifier: Apache-2.0
"""mapping.py - one ONNX node as one of opjit's operators: for each ONNX operator a function that takes the node and
gives the operator's name, its fields, and which array is which tensor.  What opjit cannot say in one operator raises
Skip with the reason."""
import numpy as np

NAMES = {
    np.dtype(t): n
    for t, n in {
        "float64": "FLOAT64", "float32": "FLOAT32", "float16": "FLOAT16", "int64": "INT64", "int32": "INT32",
        "int16": "INT16", "int8": "INT8", "uint64": "UINT64", "uint32": "UINT32", "uint16": "UINT16",
        "uint8": "UINT8", "bool": "UINT8",
    }.items()
}


class Skip(Exception):
    """The node has no single operator; the text says why."""


class Node:
    """A node with its attributes and arrays.  in_(i) is None for an input that is left out."""

    def __init__(self, op, attributes, inputs, outputs):
        self.op, self.attributes, self.inputs, self.outputs = op, attributes, inputs, outputs

    def attr(self, name, default=None):
        return self.attributes.get(name, default)

    def in_(self, i):
        return self.inputs[i] if i < len(self.inputs) else None

    def out(self, i=0):
        return self.outputs[i] if i < len(self.outputs) else None


def has_halves(array):
    """Whether the elements have 4 bits: NumPy has a byte for each, a tensor one for two."""
    return str(array.dtype) in ("uint4", "int4")


def packed_halves(array):
    flat = array.reshape(-1).astype(np.int8).view(np.uint8) & 15
    flat = np.append(flat, np.zeros(flat.size % 2, np.uint8))
    return flat[0::2] | flat[1::2] << 4


def unpacked_halves(data, like):
    flat = np.stack([data & 15, data >> 4], axis=1).reshape(-1)[: like.size].astype(np.int8)
    return (np.where(flat > 7, flat - 16, flat) if str(like.dtype) == "int4" else flat).reshape(like.shape)


class Tensor:
    """An array seen as a tensor: sizes and strides (in elements) may differ from the array's own."""

    def __init__(self, array, sizes=None, strides=None, dtype=None):
        if array.dtype not in NAMES and not has_halves(array):
            raise Skip(f"type {array.dtype}")
        self.array = array
        self.sizes = list(array.shape if sizes is None else sizes) or [1]
        self.strides = strides
        self.dtype = dtype or (str(array.dtype).upper() if has_halves(array) else NAMES[array.dtype])

    def json(self):
        text = {"DataType": self.dtype, "Sizes": self.sizes}
        return text if self.strides is None else text | {"Strides": self.strides}


def packed(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step *= size
    return strides


def broadcast(array, sizes):
    """The array repeated to these sizes by strides of 0."""
    sizes = list(sizes) or [1]
    own = [1] * (len(sizes) - array.ndim) + list(array.shape)
    strides = [0 if have == 1 and want != 1 else step for have, want, step in zip(own, sizes, packed(own))]
    return Tensor(array, sizes, strides)


def along(array, rank, axis, sizes):
    """A vector along one axis of these sizes."""
    return Tensor(array, sizes, [1 if d == axis else 0 for d in range(rank)])


def lifted(array, rank):
    """With ones before its sizes, up to that rank."""
    return Tensor(array, [1] * (rank - array.ndim) + list(array.shape))


# --- element by element --------------------------------------------------------------------------------------------
def unary(name, **fields):
    """fields: opjit's name = a constant, or (ONNX attribute, default)."""

    def build(n):
        values = {k: n.attr(*v) if isinstance(v, tuple) else v for k, v in fields.items()}
        return name, {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out())} | values

    return build


def binary(name, a="ATensor", b="BTensor"):
    def build(n):
        if len(n.inputs) != 2:
            raise Skip("not two inputs")
        shape = n.out().shape
        return name, {a: broadcast(n.in_(0), shape), b: broadcast(n.in_(1), shape), "OutputTensor": Tensor(n.out())}

    return build


def clip(n):
    x = n.in_(0)
    limits = np.finfo(x.dtype) if x.dtype.kind == "f" else np.iinfo(x.dtype)
    bounds = [limits.min if n.in_(1) is None else n.in_(1).item(), limits.max if n.in_(2) is None else n.in_(2).item()]
    if bounds[0] > bounds[1]:
        raise Skip("min above max")
    return "ELEMENT_WISE_CLIP1", {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out()),
                                  "MinMaxDataType": NAMES[x.dtype],
                                  "Min": number(bounds[0], x.dtype), "Max": number(bounds[1], x.dtype)}


def number(value, dtype):
    """As a model writes it: floats as floats, integers as integers."""
    if np.dtype(dtype).kind == "f":
        value = float(value)
        return value if np.isfinite(value) else "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value)


def cast(n):
    for array in (n.in_(0), n.out()):
        if array.dtype.kind == "b":
            raise Skip("CAST has no bool")
    return "CAST", {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out())}


def power(n):
    shape = n.out().shape
    return "ELEMENT_WISE_POW", {"InputTensor": broadcast(n.in_(0), shape), "ExponentTensor": broadcast(n.in_(1), shape),
                                "OutputTensor": Tensor(n.out())}


def where(n):
    shape = n.out().shape
    return "ELEMENT_WISE_IF", {"ConditionTensor": broadcast(n.in_(0), shape), "ATensor": broadcast(n.in_(1), shape),
                               "BTensor": broadcast(n.in_(2), shape), "OutputTensor": Tensor(n.out())}


def modulus(n):
    return binary("ELEMENT_WISE_MODULUS_TRUNCATE" if n.attr("fmod", 0) else "ELEMENT_WISE_MODULUS_FLOOR")(n)


def shift(n):
    return binary("ELEMENT_WISE_BIT_SHIFT_" + n.attr("direction"))(n)


def gelu(n):
    if n.attr("approximate", "none") != "none":
        raise Skip("the tanh form")
    return unary("ACTIVATION_GELU")(n)


def infinite(n):
    mode = {(1, 1): "EITHER", (1, 0): "NEGATIVE", (0, 1): "POSITIVE"}[n.attr("detect_negative", 1),
                                                                      n.attr("detect_positive", 1)]
    return unary("ELEMENT_WISE_IS_INFINITY", InfinityMode=mode)(n)


# --- along axes ----------------------------------------------------------------------------------------------------
def axes_of(n, rank, default):
    axes = n.attr("axes", None if n.in_(1) is None else n.in_(1).tolist())
    return sorted(a % rank for a in (default if not axes else axes))


def reduce(function):
    def build(n):
        x = n.in_(0)
        if x.ndim == 0 or x.size == 0:
            raise Skip("a scalar or an empty tensor")
        if n.attr("noop_with_empty_axes", 0) and not axes_of(n, x.ndim, []):
            raise Skip("no axes")
        axes = axes_of(n, x.ndim, range(x.ndim))
        sizes = [1 if d in axes else s for d, s in enumerate(x.shape)]
        return "REDUCE", {"Function": function, "InputTensor": Tensor(x), "OutputTensor": Tensor(n.out(), sizes),
                          "Axes": axes}

    return build


def arg(name):
    def build(n):
        x, axis = n.in_(0), n.attr("axis", 0) % n.in_(0).ndim
        sizes = [1 if d == axis else s for d, s in enumerate(x.shape)]
        direction = "DECREASING" if n.attr("select_last_index", 0) else "INCREASING"
        return name, {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out(), sizes), "Axes": [axis],
                      "AxisDirection": direction}

    return build


def softmax(name):
    def build(n):
        return name, {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()),
                      "Axes": [n.attr("axis", -1) % n.in_(0).ndim]}

    return build


def cumulative(name, exclusive):
    def build(n):
        return name, {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()),
                      "Axis": int(n.in_(1)) % n.in_(0).ndim,
                      "AxisDirection": "DECREASING" if n.attr("reverse", 0) else "INCREASING",
                      exclusive: bool(n.attr("exclusive", 0))}

    return build


def top_k(n):
    axis = n.attr("axis", -1) % n.in_(0).ndim
    return "TOP_K1", {"InputTensor": Tensor(n.in_(0)), "OutputValueTensor": Tensor(n.out(0)),
                      "OutputIndexTensor": Tensor(n.out(1)),
                      "Axis": axis, "K": int(n.in_(1)[0]),
                      "AxisDirection": "DECREASING" if n.attr("largest", 1) else "INCREASING"}


# --- normalisation -------------------------------------------------------------------------------------------------
def batch_normalization(n):
    if n.attr("training_mode", 0):
        raise Skip("training: several outputs")
    x = n.in_(0)
    vector = [along(n.in_(i), x.ndim, 1, x.shape) for i in range(1, 5)]
    return "BATCH_NORMALIZATION", {"InputTensor": Tensor(x), "ScaleTensor": vector[0], "BiasTensor": vector[1],
                                   "MeanTensor": vector[2],
                                   "VarianceTensor": vector[3], "OutputTensor": Tensor(n.out()), "Spatial": True,
                                   "Epsilon": n.attr("epsilon", 1e-5)}


def mean_variance(axes, scaled):
    def build(n):
        x = n.in_(0)
        over = n.attr("axes", axes) if axes else list(range(2, x.ndim))
        fields = {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out()), "Axes": over, "NormalizeVariance": True,
                  "Epsilon": n.attr("epsilon", 1e-5) if scaled else 1e-9}
        if scaled:
            fields |= {"ScaleTensor": along(n.in_(1), x.ndim, 1, x.shape),
                       "BiasTensor": along(n.in_(2), x.ndim, 1, x.shape)}
        return "MEAN_VARIANCE_NORMALIZATION1", fields

    return build


def layer_normalization(n):
    x = n.in_(0)
    fields = {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out()),
              "Axes": list(range(n.attr("axis", -1) % x.ndim, x.ndim)),
              "NormalizeVariance": True, "Epsilon": n.attr("epsilon", 1e-5)}
    for i, name in ((1, "ScaleTensor"), (2, "BiasTensor")):
        if n.in_(i) is not None:
            fields[name] = broadcast(n.in_(i), x.shape)
    return "MEAN_VARIANCE_NORMALIZATION1", fields


def lp_normalization(n):
    # ONNX gives 0 where the norm is 0, so Epsilon is not 0.
    return "LP_NORMALIZATION", {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()),
                                "Axis": n.attr("axis", -1) % n.in_(0).ndim, "Epsilon": 1e-30, "P": n.attr("p", 2)}


def local_response(n):
    return "LOCAL_RESPONSE_NORMALIZATION", {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()),
                                            "CrossChannel": True,
                                            "LocalSize": n.attr("size"), "Alpha": n.attr("alpha", 1e-4),
                                            "Beta": n.attr("beta", 0.75), "Bias": n.attr("bias", 1.0)}


# --- products ------------------------------------------------------------------------------------------------------
def matrices(n, a, b):
    """A and B with their batch sizes broadcast, and the output, all of one rank."""
    a = a.reshape(1, -1) if a.ndim == 1 else a
    b = b.reshape(-1, 1) if b.ndim == 1 else b
    batch = list(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    y = Tensor(n.out(), batch + [a.shape[-2], b.shape[-1]])
    return broadcast(a, batch + list(a.shape[-2:])), broadcast(b, batch + list(b.shape[-2:])), y


def matmul(n):
    if n.in_(0).dtype.kind != "f":
        raise Skip("GEMM has floats only")
    a, b, y = matrices(n, n.in_(0), n.in_(1))
    return "GEMM", {"ATensor": a, "BTensor": b, "OutputTensor": y, "TransA": "NONE", "TransB": "NONE", "Alpha": 1.0,
                    "Beta": 0.0}


def gemm(n):
    fields = {"ATensor": Tensor(n.in_(0)), "BTensor": Tensor(n.in_(1)), "OutputTensor": Tensor(n.out()),
              "TransA": "TRANSPOSE" if n.attr("transA", 0) else "NONE",
              "TransB": "TRANSPOSE" if n.attr("transB", 0) else "NONE",
              "Alpha": n.attr("alpha", 1.0), "Beta": n.attr("beta", 1.0)}
    if n.in_(2) is not None:
        fields["CTensor"] = broadcast(n.in_(2), n.out().shape)
    return "GEMM", fields


def scalar_like(array, sizes, axis=None):
    """A scale or zero point: one element for all, or one along an axis."""
    if array.size == 1:
        return Tensor(array, sizes, [0] * len(sizes))
    if axis is None:
        raise Skip("a scale along an axis")
    return Tensor(array.reshape(-1), sizes, [1 if d == axis else 0 for d in range(len(sizes))])


def matmul_integer(n):
    a, b, y = matrices(n, n.in_(0), n.in_(1))
    fields = {"ATensor": a, "BTensor": b, "OutputTensor": y}
    for i, name in ((2, "AZeroPointTensor"), (3, "BZeroPointTensor")):
        if n.in_(i) is not None:
            fields[name] = lifted(n.in_(i).reshape(1, -1), len(y.sizes))
    return "MATRIX_MULTIPLY_INTEGER", fields


def qlinear_matmul(n):
    if n.in_(1).dtype != np.float32:
        raise Skip("scales in FLOAT16")
    a, b, y = matrices(n, n.in_(0), n.in_(3))
    rank = len(y.sizes)
    names = {1: "AScaleTensor", 2: "AZeroPointTensor", 4: "BScaleTensor", 5: "BZeroPointTensor", 6: "OutputScaleTensor",
             7: "OutputZeroPointTensor"}
    return "QUANTIZED_LINEAR_MATRIX_MULTIPLY", {"ATensor": a, "BTensor": b, "OutputTensor": y} | {
        name: lifted(n.in_(i).reshape(1, -1), rank) for i, name in names.items()}


# --- windows -------------------------------------------------------------------------------------------------------
def pads_of(n, spatial, window, strides, dilations, sizes):
    """Padding before and after each dimension, by auto_pad or pads."""
    auto = n.attr("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        total = [max((-(-s // t) - 1) * t + (w - 1) * d + 1 - s, 0) for s, w, t, d in zip(sizes, window, strides,
                                                                                          dilations)]
        half = [p // 2 if auto == "SAME_UPPER" else p - p // 2 for p in total]
        return half, [p - h for p, h in zip(total, half)]
    pads = n.attr("pads", [0] * 2 * spatial)
    return list(pads[:spatial]), list(pads[spatial:])


def two_dimensional(array):
    """One spatial dimension becomes two, the first of size 1."""
    return array.reshape(array.shape[:2] + (1,) + array.shape[2:]) if array.ndim == 3 else array


def windows(n, x, window):
    """Strides, dilations, window and padding; one spatial dimension is two."""
    spatial = x.ndim - 2
    strides, dilations = n.attr("strides", [1] * spatial), n.attr("dilations", [1] * spatial)
    start, end = pads_of(n, spatial, window, strides, dilations, x.shape[2:])
    lists = [list(strides), list(dilations), list(window), start, end]
    return [[fill] + l if spatial == 1 else l for fill, l in zip((1, 1, 1, 0, 0), lists)]


def pooling(name, globally=False, **fields):
    def build(n):
        x = n.in_(0)
        if x.ndim not in (3, 4, 5):
            raise Skip("rank")
        strides, dilations, window, start, end = windows(n, x, x.shape[2:] if globally else n.attr("kernel_shape"))
        if n.attr("ceil_mode", 0):
            spatial = two_dimensional(n.out()).shape[2:]
            need = [(o - 1) * t + (w - 1) * d + 1 for o, t, w, d in zip(spatial, strides, window, dilations)]
            beyond = [max(0, need[i] - start[i] - two_dimensional(x).shape[2 + i] - end[i]) for i in range(len(need))]
            if any(beyond) and n.attr("count_include_pad", 0):
                raise Skip("windows that end past the padding")
            end = [e + b for e, b in zip(end, beyond)]
        values = {k: v(n) if callable(v) else v for k, v in fields.items()}
        tensors = {"InputTensor": Tensor(two_dimensional(x)), "OutputTensor": Tensor(two_dimensional(n.out()))}
        if n.out(1) is not None:
            if n.attr("storage_order", 0):
                raise Skip("indices by columns")
            tensors["OutputIndicesTensor"] = Tensor(two_dimensional(n.out(1)))
        return name, tensors | {"Strides": strides, "WindowSize": window, "StartPadding": start, "EndPadding": end,
                                "Dilations": dilations} | values

    return build


def channels(array, rank):
    """A vector of one element per channel."""
    return Tensor(array, [1, array.size] + [1] * (rank - 2))


def convolution(n):
    x, w = n.in_(0), n.in_(1)
    strides, dilations, _, start, end = windows(n, x, w.shape[2:])
    x4, w4 = two_dimensional(x), two_dimensional(w)
    fields = {"InputTensor": Tensor(x4), "FilterTensor": Tensor(w4), "OutputTensor": Tensor(two_dimensional(n.out())),
              "Mode": "CROSS_CORRELATION", "Direction": "FORWARD", "Strides": strides, "Dilations": dilations,
              "StartPadding": start,
              "EndPadding": end, "OutputPadding": [0] * len(strides), "GroupCount": n.attr("group", 1)}
    if n.in_(2) is not None:
        fields["BiasTensor"] = channels(n.in_(2), x4.ndim)
    return "CONVOLUTION", fields


def transposed_convolution(n):
    x, w, spatial = n.in_(0), n.in_(1), n.in_(0).ndim - 2
    strides, dilations = n.attr("strides", [1] * spatial), n.attr("dilations", [1] * spatial)
    extra = n.attr("output_padding", [0] * spatial)
    whole = [(s - 1) * t + (k - 1) * d + 1 + e for s, t, k, d, e in zip(x.shape[2:], strides, w.shape[2:], dilations,
                                                                        extra)]
    total = [max(0, f - o) for f, o in zip(whole, n.out().shape[2:])]
    auto = n.attr("auto_pad", "NOTSET")
    if "pads" in n.attributes:
        start, end = n.attr("pads")[:spatial], n.attr("pads")[spatial:]
    else:
        start = [t // 2 if auto != "SAME_LOWER" else t - t // 2 for t in total]
        end = [t - s for t, s in zip(total, start)]
    short = [o - (f - s - e) for o, f, s, e in zip(n.out().shape[2:], whole, start, end)]
    extra = [e + s for e, s in zip(extra, short)]
    lists = [list(strides), list(dilations), list(start), list(end), extra]
    if spatial == 1:
        lists = [[fill] + l for fill, l in zip((1, 1, 0, 0, 0), lists)]
    fields = {"InputTensor": Tensor(two_dimensional(x)), "FilterTensor": Tensor(two_dimensional(w)),
              "OutputTensor": Tensor(two_dimensional(n.out())), "Mode": "CROSS_CORRELATION", "Direction": "BACKWARD",
              "Strides": lists[0], "Dilations": lists[1], "StartPadding": lists[2], "EndPadding": lists[3],
              "OutputPadding": lists[4], "GroupCount": n.attr("group", 1)}
    if n.in_(2) is not None:
        fields["BiasTensor"] = channels(n.in_(2), len(fields["OutputTensor"].sizes))
    return "CONVOLUTION", fields


def convolution_integer(n):
    x, w = n.in_(0), n.in_(1)
    strides, dilations, _, start, end = windows(n, x, w.shape[2:])
    fields = {"InputTensor": Tensor(x), "FilterTensor": Tensor(w), "OutputTensor": Tensor(n.out()), "Strides": strides,
              "Dilations": dilations, "StartPadding": start, "EndPadding": end, "GroupCount": n.attr("group", 1)}
    for i, name in ((2, "InputZeroPointTensor"), (3, "FilterZeroPointTensor")):
        if n.in_(i) is not None:
            fields[name] = channels(n.in_(i).reshape(-1), x.ndim)
    return "CONVOLUTION_INTEGER", fields


def qlinear_convolution(n):
    x, w = n.in_(0), n.in_(3)
    strides, dilations, _, start, end = windows(n, x, w.shape[2:])
    names = {1: "InputScaleTensor", 2: "InputZeroPointTensor", 4: "FilterScaleTensor", 5: "FilterZeroPointTensor",
             6: "OutputScaleTensor", 7: "OutputZeroPointTensor", 8: "BiasTensor"}
    tensors = {name: channels(n.in_(i).reshape(-1), x.ndim) for i, name in names.items() if n.in_(i) is not None}
    return "QUANTIZED_LINEAR_CONVOLUTION", tensors | {
        "InputTensor": Tensor(x), "FilterTensor": Tensor(w), "OutputTensor": Tensor(n.out()), "Strides": strides,
        "Dilations": dilations, "StartPadding": start, "EndPadding": end, "GroupCount": n.attr("group", 1)}


def fold(n):
    spatial = len(n.in_(1))
    pads = n.attr("pads", [0] * 2 * spatial)
    return "FOLD", {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()), "WindowSizes": n.in_(2).tolist(),
                    "Strides": n.attr("strides", [1] * spatial), "Dilations": n.attr("dilations", [1] * spatial),
                    "StartPadding": list(pads[:spatial]), "EndPadding": list(pads[spatial:])}


def resize(n):
    x, y, rank = n.in_(0), n.out(), n.in_(0).ndim
    mode, place = n.attr("mode", "nearest"), n.attr("coordinate_transformation_mode", "half_pixel")
    if mode == "cubic" or place not in ("half_pixel", "asymmetric", "align_corners"):
        raise Skip(f"{mode}, {place}")
    if n.attr("antialias", 0) or n.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Skip("antialias or aspect ratio")
    given, axes = n.in_(2), n.attr("axes", list(range(rank)))
    scales = [y.shape[d] / x.shape[d] for d in range(rank)]
    if given is not None and given.size:
        for axis, scale in zip(axes, given):
            scales[axis] = float(scale)
    if place == "align_corners":
        scales = [(i * t - 1) / (i - 1) if i > 1 and i * t > 1 else 1.0 for i, t in zip(x.shape, scales)]
    pixel = 0.5 if place == "half_pixel" else 0.0
    direction, shift = "INCREASING", 0.0
    if mode == "nearest":  # halves down is ceil(x - 0.5), halves up floor(x + 0.5)
        direction, shift = {"round_prefer_floor": ("INCREASING", 0.5), "round_prefer_ceil": ("DECREASING", -0.5),
                            "floor": ("DECREASING", 0.0),
                            "ceil": ("INCREASING", 0.0)}[n.attr("nearest_mode", "round_prefer_floor")]
    return "RESAMPLE2", {"InputTensor": Tensor(x), "OutputTensor": Tensor(y),
                         "InterpolationMode": "NEAREST_NEIGHBOR" if mode == "nearest" else "LINEAR",
                         "RoundingDirection": direction, "Scales": scales, "InputPixelOffsets": [pixel + shift] * rank,
                         "OutputPixelOffsets": [-pixel] * rank}


def roi_align(n):
    x, y = n.in_(0), n.out()
    if n.attr("mode", "avg") == "max" and x.shape[-1] > 1:
        raise Skip("the greatest weighted element, not the greatest sample")
    samples, scale = n.attr("sampling_ratio", 0), n.attr("spatial_scale", 1.0)
    pixel = 0.5 if n.attr("coordinate_transformation_mode", "half_pixel") == "half_pixel" else 0.0
    return "ROI_ALIGN1", {"InputTensor": Tensor(x), "ROITensor": Tensor(n.in_(1)),
                          "BatchIndicesTensor": Tensor(n.in_(2), dtype="UINT64"),
                          "OutputTensor": Tensor(y),
                          "ReductionFunction": "MAX" if n.attr("mode", "avg") == "max" else "AVERAGE",
                          "InterpolationMode": "LINEAR", "SpatialScaleX": scale, "SpatialScaleY": scale,
                          "InputPixelOffset": pixel,
                          "OutputPixelOffset": -0.5, "OutOfBoundsInputValue": 0,
                          "MinimumSamplesPerOutput": samples or 1,
                          "MaximumSamplesPerOutput": samples or 4294967295, "AlignRegionsToCorners": False}


def upsample(n):
    x, y = n.in_(0), n.out()
    if x.ndim not in (4, 5) or x.shape[:-2] != y.shape[:-2]:
        raise Skip("other dimensions than the last two")
    return "UPSAMPLE_2D", {"InputTensor": Tensor(x), "OutputTensor": Tensor(y),
                           "InterpolationMode": "NEAREST_NEIGHBOR" if n.attr("mode", "nearest") == "nearest"
                           else "LINEAR",
                           "ScaleSize": {"Width": y.shape[-1] // x.shape[-1], "Height": y.shape[-2] // x.shape[-2]}}


# --- moving --------------------------------------------------------------------------------------------------------
def transpose(n):
    x = n.in_(0)
    order = n.attr("perm", list(reversed(range(x.ndim))))
    strides = packed(x.shape)
    return "ELEMENT_WISE_IDENTITY", {"InputTensor": Tensor(x, [x.shape[d] for d in order], [strides[d] for d in order]),
                                     "OutputTensor": Tensor(n.out())}


def same_bytes(n):
    return "ELEMENT_WISE_IDENTITY", {"InputTensor": Tensor(n.in_(0), n.out().shape), "OutputTensor": Tensor(n.out())}


def expand(n):
    return "ELEMENT_WISE_IDENTITY", {"InputTensor": broadcast(n.in_(0), n.out().shape), "OutputTensor": Tensor(n.out())}


def concat(n):
    return "JOIN", {"InputTensors": [Tensor(x) for x in n.inputs], "OutputTensor": Tensor(n.out()),
                    "Axis": n.attr("axis") % n.out().ndim}


def split(n):
    if any(y.size == 0 for y in n.outputs):
        raise Skip("empty outputs")
    return "SPLIT", {"InputTensor": Tensor(n.in_(0)), "OutputTensors": [Tensor(y) for y in n.outputs],
                     "Axis": n.attr("axis", 0) % n.in_(0).ndim}


def slice_(n):
    x, y = n.in_(0), n.out()
    if y.size == 0:
        raise Skip("an empty output")
    axes = [a % x.ndim for a in (n.in_(3).tolist() if n.in_(3) is not None else range(len(n.in_(1))))]
    steps = n.in_(4).tolist() if n.in_(4) is not None else [1] * len(axes)
    offsets, sizes, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for axis, begin, end, step in zip(axes, n.in_(1).tolist(), n.in_(2).tolist(), steps):
        first = range(*slice(begin, end, step).indices(x.shape[axis]))
        offsets[axis], sizes[axis], strides[axis] = min(first[0], first[-1]), max(first) - min(first) + 1, step
    return "SLICE1", {"InputTensor": Tensor(x), "OutputTensor": Tensor(y), "InputWindowOffsets": offsets,
                      "InputWindowSizes": sizes, "InputWindowStrides": strides}


def pad(n):
    x, rank = n.in_(0), n.in_(0).ndim
    start, end = [0] * rank, [0] * rank
    pads = n.in_(1).tolist()
    axes = [a % rank for a in n.in_(3).tolist()] if n.in_(3) is not None else list(range(rank))
    for i, axis in enumerate(axes):
        start[axis], end[axis] = pads[i], pads[i + len(axes)]
    if min(start + end) < 0:
        raise Skip("negative padding")
    value = n.in_(2).item() if n.in_(2) is not None and n.in_(2).size else 0
    mode = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}[n.attr("mode", "constant")]
    return "PADDING1", {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out()), "PaddingMode": mode,
                        "PaddingValueDataType": NAMES[x.dtype],
                        "PaddingValue": number(value, x.dtype), "StartPadding": start, "EndPadding": end}


def tile(n):
    return "TILE", {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()), "Repeats": n.in_(1).tolist()}


def blocks(name):
    def build(n):
        order = "COLUMN_ROW_DEPTH" if n.attr("mode", "DCR") == "CRD" else "DEPTH_COLUMN_ROW"
        return name, {"InputTensor": Tensor(n.in_(0)), "OutputTensor": Tensor(n.out()),
                      "BlockSize": n.attr("blocksize"), "Order": order}

    return build


def gather(n):
    x, i, y = n.in_(0), n.in_(1), n.out()
    axis, rank = n.attr("axis", 0) % x.ndim, max(x.ndim, i.ndim, y.ndim)
    return "GATHER", {"InputTensor": lifted(x, rank), "IndicesTensor": lifted(i, rank), "OutputTensor": lifted(y, rank),
                      "Axis": axis + rank - x.ndim, "IndexDimensions": i.ndim}


def gather_elements(n):
    return "GATHER_ELEMENTS", {"InputTensor": Tensor(n.in_(0)), "IndicesTensor": Tensor(n.in_(1)),
                               "OutputTensor": Tensor(n.out()), "Axis": n.attr("axis", 0) % n.in_(0).ndim}


def gather_nd(n):
    x, i, y = n.in_(0), n.in_(1), n.out()
    rank = max(x.ndim, i.ndim, y.ndim)
    return "GATHER_ND1", {"InputTensor": lifted(x, rank), "IndicesTensor": lifted(i, rank),
                          "OutputTensor": lifted(y, rank),
                          "InputDimensionCount": x.ndim, "IndicesDimensionCount": i.ndim,
                          "BatchDimensionCount": n.attr("batch_dims", 0)}


def scatter_elements(n):
    if n.attr("reduction", "none") != "none":
        raise Skip("a reduction")
    return "SCATTER_ELEMENTS", {"InputTensor": Tensor(n.in_(0)), "IndicesTensor": Tensor(n.in_(1)),
                                "UpdatesTensor": Tensor(n.in_(2)),
                                "OutputTensor": Tensor(n.out()), "Axis": n.attr("axis", 0) % n.in_(0).ndim}


def scatter_nd(n):
    if n.attr("reduction", "none") != "none":
        raise Skip("a reduction")
    x, i, u = n.in_(0), n.in_(1), n.in_(2)
    rank = max(x.ndim, i.ndim, u.ndim)
    return "SCATTER_ND", {"InputTensor": lifted(x, rank), "IndicesTensor": lifted(i, rank),
                          "UpdatesTensor": lifted(u, rank),
                          "OutputTensor": lifted(n.out(), rank), "InputDimensionCount": x.ndim,
                          "IndicesDimensionCount": i.ndim}


def one_hot(n):
    indices, values, y = n.in_(0), n.in_(2), n.out()
    axis = n.attr("axis", -1) % y.ndim
    if indices.dtype.kind == "f":
        raise Skip("indices as floats")
    sizes = list(indices.shape)
    sizes.insert(axis, 1)
    return "ONE_HOT", {"IndicesTensor": Tensor(indices, sizes), "ValuesTensor": lifted(values, y.ndim),
                       "OutputTensor": Tensor(y), "Axis": axis}


def reverse_sequence(n):
    x = n.in_(0)
    time, batch = n.attr("time_axis", 0), n.attr("batch_axis", 1)
    if time > batch:
        sizes = [1 if d == time else x.shape[d] if d == batch else 1 for d in range(x.ndim)]
    else:
        sizes = [x.shape[d] if d == batch else 1 for d in range(x.ndim)]
    return "REVERSE_SUBSEQUENCES", {"InputTensor": Tensor(x), "SequenceLengthsTensor": Tensor(n.in_(1), sizes),
                                    "OutputTensor": Tensor(n.out()), "Axis": time}


def eye(n):
    k, y = n.attr("k", 0), n.out()
    return "DIAGONAL_MATRIX", {"OutputTensor": Tensor(y), "Offset": k, "Value": 1.0}


def triangle(n):
    x = n.in_(0)
    k = int(n.in_(1)) if n.in_(1) is not None else 0
    if x.size == 0:
        raise Skip("an empty tensor")
    limit = 2**31 - 1
    begin, end = (-limit - 1, k) if n.attr("upper", 1) else (min(k + 1, limit), limit)
    return "DIAGONAL_MATRIX1", {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out()),
                                "ValueDataType": NAMES[x.dtype],
                                "Value": number(0, x.dtype), "DiagonalFillBegin": begin, "DiagonalFillEnd": end}


def max_unpool(n):
    return "MAX_UNPOOLING", {"InputTensor": Tensor(n.in_(0)), "IndicesTensor": Tensor(n.in_(1)),
                             "OutputTensor": Tensor(n.out())}


def nonzero(n):
    """ONNX has a row per dimension, DirectML one per element; rows behind the count are zeros."""
    x, y = n.in_(0), n.out()
    if x.ndim < 2:
        raise Skip("one dimension")
    rows = np.zeros((x.size, x.ndim), np.uint32)
    rows[:y.shape[1]] = y.T
    count = np.array(y.shape[1], np.uint32)
    if x.dtype == bool:
        x = x.astype(np.uint8)
    return "NONZERO_COORDINATES", {"InputTensor": Tensor(x), "OutputCountTensor": Tensor(count, [1] * x.ndim),
                                   "OutputCoordinatesTensor": Tensor(rows, [1] * (x.ndim - 2) + list(rows.shape))}


# --- quantized values ----------------------------------------------------------------------------------------------
def quantize_blocks(name, n, axis):
    x = n.in_(0)

    def blocks(array):
        sizes = [array.size if d == axis else 1 for d in range(x.ndim)]
        return Tensor(array, array.shape if array.ndim == x.ndim else sizes)

    tensors = [blocks(a) for a in (n.in_(1), n.in_(2)) if a is not None]
    return name, {"InputTensor": Tensor(x), "QuantizationType": "SCALE_ZERO_POINT" if len(tensors) == 2 else "SCALE",
                  "QuantizationTensors": tensors, "OutputTensor": Tensor(n.out())}


def quantize(name):
    def build(n):
        x, sizes = n.in_(0), n.in_(0).shape
        axis = n.attr("axis", 1) % x.ndim if x.ndim else None
        if n.attr("block_size", 0) or has_halves(x) or has_halves(n.out()):
            return quantize_blocks(name.replace("ELEMENT_WISE_", "").replace("_LINEAR", ""), n, axis)
        fields = {"InputTensor": Tensor(x), "ScaleTensor": scalar_like(n.in_(1), sizes, axis),
                  "OutputTensor": Tensor(n.out())}
        if n.in_(2) is not None:
            fields["ZeroPointTensor"] = scalar_like(n.in_(2), sizes, axis)
        return name, fields

    return build


def dynamic_quantize(n):
    x = n.in_(0)
    return "DYNAMIC_QUANTIZE_LINEAR", {"InputTensor": Tensor(x), "OutputTensor": Tensor(n.out(0)),
                                       "OutputScaleTensor": lifted(n.out(1), x.ndim),
                                       "OutputZeroPointTensor": lifted(n.out(2), x.ndim)}


# --- recurrence ----------------------------------------------------------------------------------------------------
def recurrent(name, gates, activations, more):
    """Inputs: X, W, R, B, sequence lengths, initial h[, initial c, peepholes]; outputs: Y, Y_h[, Y_c]."""

    def build(n):
        if n.attr("layout", 0):
            raise Skip("batch first")
        if "activations" in n.attributes or n.attr("clip") is not None:
            raise Skip("activations of its own, or a clip")
        direction = n.attr("direction", "forward").upper().replace("REVERSE", "BACKWARD")
        count = 2 if direction == "BIDIRECTIONAL" else 1
        tensor = lambda i: None if n.in_(i) is None else lifted(n.in_(i), 4)
        fields = {"InputTensor": tensor(0), "WeightTensor": tensor(1), "RecurrenceTensor": tensor(2),
                  "BiasTensor": tensor(3),
                  "SequenceLengthsTensor": None if n.in_(4) is None else lifted(n.in_(4).astype("uint32"), 4),
                  "HiddenInitTensor": tensor(5), "Direction": direction,
                  "ActivationDescs": [{"Type": a} for a in activations] * count}
        for i, field in enumerate(("OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor")):
            if n.out(i) is not None:
                fields[field] = lifted(n.out(i), 4)
        fields |= more(n, tensor)
        return name, {k: v for k, v in fields.items() if v is not None}

    return build


# --- attention -------------------------------------------------------------------------------------------------------
def by_head(array, heads):
    """{batch, heads, sequence, size} as {batch * heads, sequence, size}: such an array lies in memory head by head,
    which a hidden size of all heads cannot say.  Heads that share keys are one longer sequence."""
    return array.reshape(array.shape[0] * heads, -1, array.shape[3])


def attention_mask(n, shape):
    """What masks add to scores of this shape, as one array of them all, or None."""
    batch, heads, queries, keys = shape
    mask = n.in_(3)
    if mask is not None and mask.shape[-1] < keys:  # the document: keys that it lacks are masked
        none = False if mask.dtype == bool else -np.inf
        mask = np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])], constant_values=none)
    there = n.in_(6)
    before = np.array(0 if n.in_(4) is None else n.in_(4).shape[2]) if there is None else there.reshape(-1, 1, 1,
                                                                                                        1) - queries
    behind = before + np.arange(queries).reshape(-1, 1) - np.arange(keys)  # how far a key is behind the query
    left, right = n.attr("left_window_size", -1), n.attr("right_window_size", -1)
    allowed = [behind >= 0] if n.attr("is_causal", 0) else []
    allowed += [behind <= left] if left is not None and left >= 0 else []
    allowed += [-behind <= right] if right is not None and right >= 0 else []
    allowed += [np.arange(keys) < there.reshape(-1, 1, 1, 1)] if there is not None else []
    for one in allowed:
        mask = one if mask is None else mask & one if mask.dtype == bool else np.where(one, mask, -np.inf)
    if mask is not None and not (mask if mask.dtype == bool else mask > -np.inf).any(axis=-1).all():
        raise Skip("a query without a key: its weights are not 0")
    return None if mask is None else np.ascontiguousarray(np.broadcast_to(mask, shape))


def attention(n):
    q, k, v, y = n.in_(0), n.in_(1), n.in_(2), n.out()
    if n.attr("softcap", 0.0):
        raise Skip("softcap: no operator has one")
    if n.out(3) is not None:
        raise Skip("an output of scores")
    flat = q.ndim == 3
    heads, kv_heads = (n.attr("q_num_heads"), n.attr("kv_num_heads")) if flat else (q.shape[1], k.shape[1])
    size = q.shape[2] // heads if flat else q.shape[3]
    past = n.in_(4)
    keys = k.shape[-2] + (0 if past is None else past.shape[2])
    mask = attention_mask(n, (q.shape[0], heads, q.shape[-2], keys))
    fields = {"Scale": float(n.attr("scale", 1 / np.sqrt(size))), "MaskFilterValue": -3.4e38, "MaskType": "NONE"}
    if not flat:
        q, k, v, y = (by_head(a, kv_heads) for a in (q, k, v, y))
    own = (q.shape[0], heads if flat else 1, q.shape[1], keys)
    kept = lambda a: Tensor(a, a.shape if flat else [a.shape[0] * kv_heads, 1, *a.shape[2:]])
    fields |= {"QueryTensor": Tensor(q), "KeyTensor": Tensor(k), "ValueTensor": Tensor(v), "OutputTensor": Tensor(y)}
    if mask is not None and mask.dtype == bool:
        fields |= {"MaskTensor": Tensor(mask.astype(np.int32).reshape(own)), "MaskType": "BOOLEAN"}
    elif mask is not None:
        fields["RelativePositionBiasTensor"] = Tensor(mask.astype(q.dtype).reshape(own))
    if past is not None:
        fields |= {"PastKeyTensor": kept(past), "PastValueTensor": kept(n.in_(5))}
    for i, name in ((1, "OutputPresentKeyTensor"), (2, "OutputPresentValueTensor")):
        if n.out(i) is not None:
            fields[name] = kept(n.out(i))
    if not flat or heads == kv_heads:
        return "MULTIHEAD_ATTENTION", fields | {"HeadCount": heads if flat else 1}
    return "MULTIHEAD_ATTENTION1", fields | {"QueryHeadCount": heads, "KeyValueHeadCount": kv_heads}


TABLE = {
    "Abs": unary("ELEMENT_WISE_ABS"), "Acos": unary("ELEMENT_WISE_ACOS"), "Acosh": unary("ELEMENT_WISE_ACOSH"),
    "Add": binary("ELEMENT_WISE_ADD"), "And": binary("ELEMENT_WISE_LOGICAL_AND"), "ArgMax": arg("ARGMAX"),
         "ArgMin": arg("ARGMIN"),
    "Asin": unary("ELEMENT_WISE_ASIN"), "Asinh": unary("ELEMENT_WISE_ASINH"), "Atan": unary("ELEMENT_WISE_ATAN"),
    "Atanh": unary("ELEMENT_WISE_ATANH"), "Attention": attention,
         "AveragePool": pooling("AVERAGE_POOLING1", IncludePadding=lambda n: bool(n.attr("count_include_pad", 0))),
    "BatchNormalization": batch_normalization, "BitShift": shift, "BitwiseAnd": binary("ELEMENT_WISE_BIT_AND"),
    "BitwiseNot": unary("ELEMENT_WISE_BIT_NOT"), "BitwiseOr": binary("ELEMENT_WISE_BIT_OR"),
         "BitwiseXor": binary("ELEMENT_WISE_BIT_XOR"),
    "Cast": cast, "Ceil": unary("ELEMENT_WISE_CEIL"), "Celu": unary("ACTIVATION_CELU", Alpha=("alpha", 1.0)),
         "Clip": clip,
    "Col2Im": fold, "Concat": concat, "Conv": convolution, "ConvInteger": convolution_integer,
         "ConvTranspose": transposed_convolution,
    "Cos": unary("ELEMENT_WISE_COS"), "Cosh": unary("ELEMENT_WISE_COSH"),
         "CumProd": cumulative("CUMULATIVE_PRODUCT", "HasExclusiveProduct"),
    "CumSum": cumulative("CUMULATIVE_SUMMATION", "HasExclusiveSum"), "DepthToSpace": blocks("DEPTH_TO_SPACE1"),
    "DequantizeLinear": quantize("ELEMENT_WISE_DEQUANTIZE_LINEAR"), "Div": binary("ELEMENT_WISE_DIVIDE"),
    "DynamicQuantizeLinear": dynamic_quantize, "Elu": unary("ACTIVATION_ELU", Alpha=("alpha", 1.0)),
    "Equal": binary("ELEMENT_WISE_LOGICAL_EQUALS"), "Erf": unary("ELEMENT_WISE_ERF"), "Exp": unary("ELEMENT_WISE_EXP"),
         "Expand": expand,
    "EyeLike": eye, "Flatten": same_bytes, "Floor": unary("ELEMENT_WISE_FLOOR"), "Gather": gather,
         "GatherElements": gather_elements,
    "GatherND": gather_nd, "Gelu": gelu, "Gemm": gemm,
         "GlobalAveragePool": pooling("AVERAGE_POOLING1", True, IncludePadding=False),
    "GlobalMaxPool": pooling("MAX_POOLING2", True), "Greater": binary("ELEMENT_WISE_LOGICAL_GREATER_THAN"),
    "GreaterOrEqual": binary("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL"),
    "GRU": recurrent("GRU", 3, ["ACTIVATION_SIGMOID", "ACTIVATION_TANH"], lambda n,
                     t: {"LinearBeforeReset": bool(n.attr("linear_before_reset", 0))}),
    "Hardmax": softmax("ACTIVATION_HARDMAX1"),
         "HardSigmoid": unary("ACTIVATION_HARD_SIGMOID", Alpha=("alpha", 0.2), Beta=("beta", 0.5)),
    "HardSwish": unary("ACTIVATION_HARD_SWISH", Alpha=1 / 6, Beta=0.5), "Identity": same_bytes,
    "InstanceNormalization": mean_variance(None, True), "IsInf": infinite, "IsNaN": unary("ELEMENT_WISE_IS_NAN"),
    "LayerNormalization": layer_normalization, "LeakyRelu": unary("ACTIVATION_LEAKY_RELU", Alpha=("alpha", 0.01)),
    "Less": binary("ELEMENT_WISE_LOGICAL_LESS_THAN"), "LessOrEqual": binary("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"),
    "Log": unary("ELEMENT_WISE_LOG"), "LogSoftmax": softmax("ACTIVATION_LOG_SOFTMAX1"),
         "LpNormalization": lp_normalization,
    "LpPool": pooling("LP_POOLING1", P=lambda n: n.attr("p", 2)), "LRN": local_response,
    "LSTM": recurrent("LSTM", 4, ["ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ACTIVATION_TANH"],
                      lambda n,
                      t: {"CellMemInitTensor": t(6), "PeepholeTensor": t(7), "ClipThreshold": 0.0,
                          "UseClipThreshold": False, "CoupleInputForget": bool(n.attr("input_forget", 0))}),
    "MatMul": matmul, "MatMulInteger": matmul_integer, "Max": binary("ELEMENT_WISE_MAX"),
         "MaxPool": pooling("MAX_POOLING2"),
    "MaxUnpool": max_unpool, "Mean": binary("ELEMENT_WISE_MEAN"),
         "MeanVarianceNormalization": mean_variance([0, 2, 3], False),
    "Min": binary("ELEMENT_WISE_MIN"), "Mod": modulus, "Mul": binary("ELEMENT_WISE_MULTIPLY"),
         "Neg": unary("ELEMENT_WISE_NEGATE"),
    "NonZero": nonzero, "Not": unary("ELEMENT_WISE_LOGICAL_NOT"), "OneHot": one_hot,
         "Or": binary("ELEMENT_WISE_LOGICAL_OR"), "Pad": pad,
    "Pow": power, "PRelu": binary("ACTIVATION_PARAMETERIZED_RELU", "InputTensor", "SlopeTensor"),
         "QLinearConv": qlinear_convolution,
    "QLinearMatMul": qlinear_matmul, "QuantizeLinear": quantize("ELEMENT_WISE_QUANTIZE_LINEAR"),
         "Reciprocal": unary("ELEMENT_WISE_RECIP"),
    "ReduceL1": reduce("L1"), "ReduceL2": reduce("L2"), "ReduceLogSum": reduce("LOG_SUM"),
         "ReduceLogSumExp": reduce("LOG_SUM_EXP"),
    "ReduceMax": reduce("MAX"), "ReduceMean": reduce("AVERAGE"), "ReduceMin": reduce("MIN"),
         "ReduceProd": reduce("MULTIPLY"),
    "ReduceSum": reduce("SUM"), "ReduceSumSquare": reduce("SUM_SQUARE"), "Relu": unary("ACTIVATION_RELU"),
         "Reshape": same_bytes, "Resize": resize, "ReverseSequence": reverse_sequence, "RoiAlign": roi_align,
    "RNN": recurrent("RNN", 1, ["ACTIVATION_TANH"], lambda n, t: {}),
         "Round": unary("ELEMENT_WISE_ROUND", RoundingMode="HALVES_TO_NEAREST_EVEN"),
    "ScatterElements": scatter_elements, "ScatterND": scatter_nd,
    "Selu": unary("ACTIVATION_SCALED_ELU", Alpha=("alpha", 1.67326319217681884765625),
                  Gamma=("gamma", 1.05070102214813232421875)),
    "Shrink": unary("ACTIVATION_SHRINK", Bias=("bias", 0.0), Threshold=("lambd", 0.5)),
         "Sigmoid": unary("ACTIVATION_SIGMOID"),
    "Sign": unary("ELEMENT_WISE_SIGN"), "Sin": unary("ELEMENT_WISE_SIN"), "Sinh": unary("ELEMENT_WISE_SINH"),
         "Slice": slice_,
    "Softmax": softmax("ACTIVATION_SOFTMAX1"), "Softplus": unary("ACTIVATION_SOFTPLUS", Steepness=1.0),
         "Softsign": unary("ACTIVATION_SOFTSIGN"),
    "SpaceToDepth": blocks("SPACE_TO_DEPTH1"), "Split": split, "Sqrt": unary("ELEMENT_WISE_SQRT"),
         "Squeeze": same_bytes,
    "Sub": binary("ELEMENT_WISE_SUBTRACT"), "Sum": binary("ELEMENT_WISE_ADD"),
         "Swish": unary("ACTIVATION_SWISH", SigmoidInputScale=("alpha", 1.0)),
    "Tan": unary("ELEMENT_WISE_TAN"), "Tanh": unary("ELEMENT_WISE_TANH"),
         "ThresholdedRelu": unary("ACTIVATION_THRESHOLDED_RELU", Alpha=("alpha", 1.0)),
    "Tile": tile, "TopK": top_k, "Transpose": transpose, "Trilu": triangle, "Unsqueeze": same_bytes,
         "Upsample": upsample, "Where": where, "Xor": binary("ELEMENT_WISE_LOGICAL_XOR"),
}
