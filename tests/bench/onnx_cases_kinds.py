# SPDX-License-Identifier: Apache-2.0
"""onnx_cases_kinds.py - at least one case of each operator that `opjit ops --onnx` lists and onnx_cases.py does not
have: list_kinds().  UNTIMED are those of which nothing can be measured: constants, views, sequences, what is not
taken."""
import numpy as np
from onnx import TensorProto, helper

from onnx_cases import RANDOM, below, group, ints, node, reals, single

MS, ML, TRAINING = "com.microsoft", "ai.onnx.ml", "ai.onnx.preview.training"

UNTIMED = set("""Shape Size Constant ConstantOfShape Range RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike Bernoulli EyeLike Identity Dropout Reshape Flatten Squeeze Unsqueeze Scatter Upsample HannWindow
    HammingWindow BlackmanWindow MelWeightMatrix If Loop Scan SequenceConstruct SequenceEmpty SequenceInsert
    SequenceErase SequenceAt SequenceLength SplitToSequence ConcatFromSequence Optional OptionalGetElement
    OptionalHasElement com.microsoft.ExpandDims ai.onnx.ml.ZipMap ai.onnx.ml.CastMap ai.onnx.ml.DictVectorizer
    ai.onnx.ml.CategoryMapper Unique StringNormalizer TfIdfVectorizer StringConcat StringSplit RegexFullMatch
    Multinomial SequenceMap ImageDecoder NonZero""".split())


def small(*shape):
    return reals(*shape) / 16


def octets(*shape):
    return below(255, *shape).astype(np.uint8)


def number(value, kind=np.float32):
    return np.array(value, kind)


def list_elements():
    for kind in (np.float32, np.float16, np.float64):
        name, x = np.dtype(kind).name, reals(256, 784)
        inside, above, more = np.tanh(x).astype(kind), (1 + abs(x)).astype(kind), x.astype(kind)
        kinds = {"Acos": inside, "Asin": inside, "Atanh": inside, "Acosh": above, "Log": above, "Sqrt": above}
        for op in ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Log",
                   "Reciprocal", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Softsign", "Sigmoid", "Relu", "Sign"):
            single(f"{op} of {name}", op, {"x": kinds.get(op, more)})
        for op in ("Add", "Div", "Pow", "Less", "Equal", "Min"):
            single(f"{op} of {name}", op, {"x": above, "z": more})
    x = {"x": reals(256, 784)}
    for op in ("LeakyRelu", "Celu", "ThresholdedRelu", "HardSigmoid", "Shrink", "Swish", "IsInf"):
        single(op, op, x)
    z = {"x": reals(256, 784), "z": reals(256, 784)}
    for op in ("Sub", "Min", "GreaterOrEqual", "Less", "LessOrEqual", "Equal", "Sum", "Mean"):
        single(op, op, z)
    single("CastLike", "CastLike", {"x": x["x"], "z": np.zeros(1, np.float16)})
    for op in ("And", "Or", "Xor"):
        single(op, op, {"x": z["x"] > 0, "z": z["z"] > 0})
    single("Not", "Not", {"x": z["x"] > 0})
    for kind in (np.int32, np.int64, np.uint8):
        whole = {"x": below(30, 256, 784).astype(kind), "z": (below(5, 256, 784) + 1).astype(kind)}
        name = np.dtype(kind).name
        for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Add", "Sub", "Mul", "Less", "Equal", "Max", "Pow", "Mod"):
            if op != "Pow" or kind is not np.uint8:
                single(f"{op} of {name}", op, whole)
        for op in ("Abs", "BitwiseNot", "Sign", "Neg"):
            if op not in ("Neg", "Sign") or kind is not np.uint8:
                single(f"{op} of {name}", op, {"x": whole["x"]})
    for way in ("LEFT", "RIGHT"):
        for kind in (np.uint8, np.uint64):
            single(f"BitShift {way} of {np.dtype(kind).name}", "BitShift",
                   {"x": below(100, 256, 784).astype(kind), "z": below(7, 256, 784).astype(kind)}, direction=way)
    for kind in (np.float32, np.uint8, np.int64):
        name = np.dtype(kind).name
        single(f"Where of {name}", "Where", {"c": reals(256, 784) > 0, "x": below(99, 256, 784).astype(kind),
                                           "z": below(99, 256, 784).astype(kind)})
        single(f"Where of {name}, one number", "Where", {"c": reals(8, 1, 64, 64) > 0,
                                                       "x": below(99, 8, 4, 64, 64).astype(kind)}, {"z": kind(3)})
        single(f"Expand rows of {name}", "Expand", {"x": below(99, 256, 1).astype(kind)}, {"s": ints(256, 784)})
        single(f"Expand columns of {name}", "Expand", {"x": below(99, 1, 784).astype(kind)}, {"s": ints(256, 784)})
        single(f"Expand heads of {name}", "Expand", {"x": below(99, 1, 8, 1, 64, 64).astype(kind)},
               {"s": ints(1, 8, 4, 64, 64)})
        single(f"Tile of {name}", "Tile", {"x": below(99, 16, 3, 40).astype(kind)}, {"r": ints(1, 7, 3)})
        single(f"Slice by 2, 2 of {name}", "Slice", {"x": below(99, 16, 112, 112).astype(kind)},
               {"b": ints(0, 1), "e": ints(112, 112), "a": ints(1, 2), "t": ints(2, 2)})


def list_rows():
    for size in (2, 3, 5, 8, 12, 16, 24, 32, 48, 64, 100):
        x = {"x": reals(8192, size)}
        for op in ("Softmax", "LogSoftmax", "ArgMax", "Hardmax"):
            single(f"{op} of rows of {size}", op, x, axis=-1)
        for op in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL1", "ReduceLogSum"):
            single(f"{op} of rows of {size}", op, {"x": abs(x["x"])} if "Log" in op else x, {"a": ints(-1)})
        for op in ("LayerNormalization", "RMSNormalization"):
            single(f"{op} of rows of {size}", op, x, {"s": reals(size)})
        single(f"LpNormalization of rows of {size}", "LpNormalization", x, axis=-1)
        single(f"CumSum of rows of {size}", "CumSum", x, {"a": number(1, np.int64)})
        single(f"Gather rows of {size}", "Gather", {"x": reals(1000, size), "i": below(1000, 8192)})
    single("CumProd", "CumProd", {"x": reals(64, 784)}, {"a": number(1, np.int64)})
    single("CumSum of int64", "CumSum", {"x": below(9, 64, 784)}, {"a": number(1, np.int64)})
    single("ReduceMean of float64", "ReduceMean", {"x": reals(64, 784).astype(np.float64)}, {"a": ints(1)})
    single("ReduceSum of int64", "ReduceSum", {"x": below(99, 64, 784)}, {"a": ints(1)})
    single("ReduceMin of int64", "ReduceMin", {"x": below(99, 64, 784)}, {"a": ints(1)})
    single("ReduceMax of float16", "ReduceMax", {"x": reals(64, 784).astype(np.float16)}, {"a": ints(1)})
    for shape, groups in (((2, 32, 8, 8), 32), ((2, 64, 16, 16), 32), ((1, 128, 32, 32), 4)):
        s = {"s": reals(shape[1]), "b": reals(shape[1])}
        single(f"GroupNormalization {shape} {groups}", "GroupNormalization", {"x": reals(*shape)}, s, num_groups=groups)
        single(f"InstanceNormalization {shape}", "InstanceNormalization", {"x": reals(*shape)}, s)
    for k, n in ((1000, 8400), (1000, 100000), (300, 1000), (3, 16)):
        rows = 1024 if n == 16 else 1
        single(f"TopK {k} of {rows} x {n}", "TopK", {"x": reals(rows, n)}, {"k": ints(k)}, ("v", "i"))


def list_shapes():
    for size in (512, 1024, 4096):
        single(f"Transpose uint8 {size} x {size}", "Transpose", {"x": octets(size, size)}, perm=[1, 0])
        if size < 4096:
            single(f"Transpose float32 {size} x {size}", "Transpose", {"x": reals(size, size)}, perm=[1, 0])
    for shape in ((1, 28, 28, 3), (16, 28, 28, 3), (1, 224, 224, 3)):
        for kind in (np.float32, np.uint8):
            single(f"Transpose channels first {shape} {np.dtype(kind).name}", "Transpose",
                   {"x": below(255, *shape).astype(kind)}, perm=[0, 3, 1, 2])
            single(f"Transpose channels last {shape} {np.dtype(kind).name}", "Transpose",
                   {"x": below(255, *shape).astype(kind).transpose(0, 3, 1, 2).copy()}, perm=[0, 2, 3, 1])
    single("ReverseSequence", "ReverseSequence", {"x": reals(50, 16, 64), "l": below(50, 16) + 1})
    single("TensorScatter", "TensorScatter", {"p": reals(2, 8, 256, 64), "u": reals(2, 8, 4, 64), "w": ints(7, 90)})
    single("CenterCropPad", "CenterCropPad", {"x": reals(3, 256, 256)}, {"s": ints(224, 224)}, axes=[1, 2])
    single("Compress", "Compress", {"x": reals(64, 256)}, {"c": np.arange(64) % 3 == 0}, axis=0)
    single("Trilu of com.microsoft", "Trilu", {"x": reals(4, 512, 512)}, domain=MS)
    single("Pad of com.microsoft", "Pad", {"x": reals(16, 112, 112)}, {"p": ints(0, 2, 3, 0, 2, 3)}, domain=MS)
    single("OneHot along 1", "OneHot", {"i": below(21, 4, 64, 64)},
           {"d": number(21, np.int64), "v": np.array([0, 1], np.float32)}, axis=1)
    single("ScatterElements, add 256 x 784", "ScatterElements",
           {"x": reals(256, 784), "i": below(784, 256, 784), "u": reals(256, 784)}, axis=1, reduction="add")
    single("ScatterElements, add along 0", "ScatterElements",
           {"x": reals(256, 784), "i": below(256, 256, 784), "u": reals(256, 784)}, axis=0, reduction="add")
    single("ScatterND, add", "ScatterND", {"x": reals(1000, 64), "i": below(1000, 4000, 1), "u": reals(4000, 64)},
           reduction="add")
    for mode in ("reflect", "edge"):
        single(f"Pad {mode} of a signal", "Pad", {"x": reals(1, 16000)}, {"p": ints(0, 200, 0, 200)}, mode=mode)
        single(f"Pad {mode} of 3 x 224 x 224", "Pad", {"x": reals(1, 3, 224, 224)},
               {"p": ints(0, 0, 3, 3, 0, 0, 3, 3)}, mode=mode)
    shape = (1, 16, 64, 64)
    for mode in ("cubic", "linear", "nearest"):
        for rule in ("align_corners", "half_pixel", "pytorch_half_pixel"):
            for size in (150, 40):
                group(f"Resize {mode} {rule} 64 to {size}", {"x": reals(*shape)},
                      [node("Resize", "x", "", "", "s", mode=mode, coordinate_transformation_mode=rule)],
                      {"s": ints(1, 16, size, size)})
        if mode != "nearest":
            group(f"Resize {mode} antialias 64 to 40", {"x": reals(*shape)},
                  [node("Resize", "x", "", "", "s", mode=mode, antialias=1)], {"s": ints(1, 16, 40, 40)})
    group("Resize linear, channels last", {"x": octets(1, 240, 320, 3)},
          [node("Resize", "x", "", "", "s", mode="linear")], {"s": ints(1, 300, 300, 3)})
    for count, x in ((2, reals(1, 240, 320, 2)), (3, reals(1, 240, 320, 3)), (3, octets(1, 240, 320, 3))):
        group(f"Channels last, scaled: {count} of {x.dtype.name}", {"x": x},
              [node("Cast", "x", to=("c",), to_type=1), node("Sub", "c", "m", to=("d",)), node("Mul", "d", "s")],
              {"m": reals(count), "s": reals(count)})
    group("Boxes and a grid", {"x": reals(8400, 4), "g": reals(8400, 2)},
          [node("Slice", "x", "b", "e", "a", to=("c",)), node("Add", "c", "g")],
          {"b": ints(0), "e": ints(2), "a": ints(1)})
    single("Col2Im", "Col2Im", {"x": reals(1, 16 * 9, 1024)}, {"i": ints(32, 32), "b": ints(3, 3)}, pads=[1] * 4)
    single("AffineGrid", "AffineGrid", {"t": reals(2, 2, 3)}, {"s": ints(2, 3, 64, 64)})
    single("MaxRoiPool", "MaxRoiPool", {"x": reals(1, 64, 50, 50), "r": np.concatenate(
        [np.zeros((50, 1)), below(20, 50, 2), 20 + below(20, 50, 2)], 1).astype(np.float32)}, pooled_shape=[7, 7])
    group("MaxPool with places, MaxUnpool", {"x": reals(1, 32, 64, 64)},
          [node("MaxPool", "x", to=("p", "i"), kernel_shape=[2, 2], strides=[2, 2]),
           node("MaxUnpool", "p", "i", kernel_shape=[2, 2], strides=[2, 2])])
    single("GlobalLpPool", "GlobalLpPool", {"x": reals(1, 256, 14, 14)})
    single("DeformConv", "DeformConv", {"x": reals(1, 32, 28, 28)},
           {"w": small(32, 32, 3, 3), "o": reals(1, 18, 28, 28)}, pads=[1] * 4)


def list_learnt():
    single("Attention", "Attention", {"q": reals(1, 8, 128, 64), "k": reals(1, 8, 128, 64), "v": reals(1, 8, 128, 64)})
    single("RotaryEmbedding", "RotaryEmbedding", {"x": reals(1, 8, 128, 64)},
           {"c": reals(1, 128, 32), "s": reals(1, 128, 32)})
    for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"):
        for reduction in ("mean", "none"):
            single(f"{op} {reduction}", op, {"x": reals(256, 1000), "t": below(1000, 256)}, reduction=reduction)
    scale, point = {"s": number(0.1), "p": number(120, np.uint8)}, number(120, np.uint8)
    image = {"x": octets(1, 64, 28, 28)}
    single("ConvInteger", "ConvInteger", image, {"w": octets(64, 64, 3, 3)}, pads=[1] * 4)
    single("QLinearConv", "QLinearConv", image, dict(scale, w=below(99, 64, 64, 3, 3).astype(np.int8), t=number(0.02),
                                                     z=number(0, np.int8), o=number(3), e=point), pads=[1] * 4)
    single("QLinearMatMul", "QLinearMatMul", {"x": octets(128, 256)}, dict(
        scale, w=below(99, 256, 256).astype(np.int8), t=number(0.02), z=number(0, np.int8), o=number(3), e=point))
    for op in ("Adam", "Adagrad", "Momentum"):
        states = {"Adam": 2, "Adagrad": 1, "Momentum": 1}[op]
        given = {"x": reals(512, 784), "g": reals(512, 784)}
        given.update({f"s{i}": abs(reals(512, 784)) for i in range(states)})
        more = {"alpha": 0.9, "beta": 0.9, "mode": "standard", "norm_coefficient": 0.0} if op == "Momentum" else {}
        group(op, given, [node(op, "r", "t", *given, to=("y",) + tuple(f"z{i}" for i in range(states)), domain=TRAINING,
                               **more)], {"r": number(0.01), "t": number(3, np.int64)},
              ("y",) + tuple(f"z{i}" for i in range(states)))


def list_microsoft():
    x, bias = {"x": reals(128, 768)}, {"b": reals(768)}
    for op in ("Gelu", "QuickGelu", "FastGelu"):
        single(f"{op} of com.microsoft", op, x, domain=MS)
    single("BiasGelu", "BiasGelu", x, bias, domain=MS)
    for op in ("FusedMatMul", "TransposeMatMul"):
        single(op, op, {"x": reals(128, 256), "z": reals(128, 256)}, domain=MS, transA=1)
    octet, weight = {"x": octets(128, 256)}, below(99, 256, 256).astype(np.int8)
    one, none = number(0.1), number(3, np.uint8)
    single("MatMulIntegerToFloat", "MatMulIntegerToFloat", octet,
           {"w": weight, "s": one, "t": one, "p": none, "q": number(0, np.int8)}, domain=MS)
    single("DynamicQuantizeMatMul", "DynamicQuantizeMatMul", {"x": reals(128, 256)},
           {"w": weight, "t": one, "q": number(0, np.int8)}, domain=MS)
    single("QGemm", "QGemm", octet, {"s": one, "p": none, "w": weight, "t": one, "q": number(0, np.int8),
                                     "c": below(99, 256).astype(np.int32), "o": number(9), "z": none}, domain=MS)
    for op in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
        single(op, op, {"x": reals(1, 128, 768), "z": reals(1, 128, 768)}, {"g": reals(768)}, domain=MS)
    single("SimplifiedLayerNormalization", "SimplifiedLayerNormalization", x, {"g": reals(768)})
    single("QuantizeLinear of com.microsoft", "QuantizeLinear", x, {"s": one, "p": none}, domain=MS)
    single("DequantizeLinear of com.microsoft", "DequantizeLinear", octet, {"s": one, "p": none}, domain=MS)
    single("MultiHeadAttention", "MultiHeadAttention", {n: reals(1, 128, 512) for n in "qkv"}, domain=MS, num_heads=8)
    single("Attention of com.microsoft", "Attention", {"x": reals(1, 128, 256)},
           {"w": small(256, 768), "b": reals(768)}, domain=MS, num_heads=8)
    single("QAttention", "QAttention", {"x": octets(1, 128, 256)},
           {"w": below(99, 256, 768).astype(np.int8), "b": reals(768), "s": number(0.02), "t": number(0.02)}, domain=MS,
           num_heads=8)
    single("RotaryEmbedding of com.microsoft", "RotaryEmbedding", {"x": reals(1, 128, 512), "i": below(100, 1, 128)},
           {"c": reals(256, 32), "s": reals(256, 32)}, domain=MS, num_heads=8)
    single("GroupQueryAttention", "GroupQueryAttention",
           {"q": reals(1, 64, 512), "k": reals(1, 64, 128), "v": reals(1, 64, 128), "p": reals(1, 2, 64, 64) * 0,
            "o": reals(1, 2, 64, 64) * 0, "l": np.array([63], np.int32), "t": np.array(64, np.int32)}, None,
           ("y", "r", "u"), domain=MS, num_heads=8, kv_num_heads=2)
    group("DynamicQuantizeLSTM", {"x": reals(16, 1, 64)},
          [node("DynamicQuantizeLSTM", *"xwrb", "", "", "", "", *"spsp", domain=MS, hidden_size=64)],
          {"w": below(99, 1, 64, 256).astype(np.int8), "r": below(99, 1, 64, 256).astype(np.int8), "b": reals(1, 512),
           "s": np.array([0.01], np.float32), "p": np.zeros(1, np.int8)})
    single("MatMulNBits", "MatMulNBits", {"x": reals(1, 1024)},
           {"w": octets(1024, 32, 16), "s": abs(small(1024, 32))}, domain=MS, K=1024, N=1024, bits=4, block_size=32)
    for op in ("QLinearAdd", "QLinearMul"):
        group(op, {"x": octets(256, 784), "z": octets(256, 784)},
              [node(op, "x", "s", "p", "z", "s", "p", "s", "p", domain=MS)], {"s": one, "p": none})
    group("QLinearConcat", {"x": octets(1, 32, 28, 28), "z": octets(1, 64, 28, 28)},
          [node("QLinearConcat", "s", "p", "x", "s", "p", "z", "t", "p", axis=1, domain=MS)],
          {"s": one, "t": number(0.2), "p": none})
    for op, more in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {}), ("QLinearSoftmax", {"opset": 13})):
        group(op, {"x": octets(256, 784)}, [node(op, "x", "s", "p", "t", "p", domain=MS, **more)],
              {"s": one, "t": number(0.004), "p": none})
    group("QLinearAveragePool", {"x": octets(1, 64, 56, 56)}, [node(
        "QLinearAveragePool", "x", "s", "p", "s", "p", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, domain=MS)],
          {"s": one, "p": none})
    group("QLinearGlobalAveragePool", {"x": octets(1, 256, 14, 14)},
          [node("QLinearGlobalAveragePool", "x", "s", "p", "s", "p", domain=MS)], {"s": one, "p": none})
    single("NhwcMaxPool", "NhwcMaxPool", {"x": octets(1, 56, 56, 64)}, domain=MS, kernel_shape=[3, 3], strides=[2, 2],
           pads=[1] * 4)
    single("QLinearConv of com.microsoft", "QLinearConv", {"x": octets(1, 28, 28, 64)},
           {"s": one, "p": none, "w": below(99, 64, 64, 3, 3).astype(np.int8), "t": number(0.02),
            "z": number(0, np.int8), "o": number(3), "e": none}, domain=MS, pads=[1] * 4, channels_last=1)
    single("FusedConv", "FusedConv", {"x": reals(1, 64, 28, 28)}, {"w": small(64, 64, 3, 3), "b": reals(64)}, domain=MS,
           pads=[1] * 4, activation="Relu")
    single("FusedGemm", "FusedGemm", {"x": reals(128, 256)}, {"w": small(256, 512), "b": reals(512)}, domain=MS,
           activation="Relu")
    group("EmbedLayerNormalization", {"i": below(1000, 1, 128).astype(np.int32)},
          [node("EmbedLayerNormalization", "i", "", "w", "q", "", "g", "b", "", to=("y", "m"), domain=MS)],
          {"w": reals(1000, 256), "q": reals(512, 256), "g": reals(256), "b": reals(256)}, ("y",))


def list_classic():
    x, few = {"x": reals(1000, 64)}, reals(64)
    single("Scaler", "Scaler", x, domain=ML, offset=list(few), scale=list(few))
    single("Binarizer", "Binarizer", x, domain=ML, threshold=0.5)
    single("Imputer", "Imputer", x, domain=ML, imputed_value_floats=list(few), replaced_value_float=float("nan"))
    for norm in ("MAX", "L1", "L2"):
        single(f"Normalizer {norm}", "Normalizer", x, domain=ML, norm=norm)
    single("ArrayFeatureExtractor", "ArrayFeatureExtractor", x, {"i": ints(*range(0, 64, 3))}, domain=ML)
    single("LinearRegressor", "LinearRegressor", x, domain=ML, coefficients=list(few), intercepts=[0.5])
    single("LinearClassifier", "LinearClassifier", x, None, ("y", "z"), domain=ML, coefficients=list(reals(4 * 64)),
           intercepts=list(reals(4)), classlabels_ints=[0, 1, 2, 3], post_transform="SOFTMAX", multi_class=1)
    single("LabelEncoder", "LabelEncoder", {"x": below(100, 10000)}, domain=ML, keys_int64s=list(range(100)),
           values_floats=list(reals(100)))
    single("OneHotEncoder", "OneHotEncoder", {"x": below(10, 1000)}, domain=ML, cats_int64s=list(range(10)))
    depth, trees = 6, 20
    inner, leaf = 2 ** depth - 1, 2 ** depth
    nodes = inner + leaf
    tree = {"nodes_treeids": [t for t in range(trees) for _ in range(nodes)],
            "nodes_nodeids": list(range(nodes)) * trees,
            "nodes_featureids": [int(i) for i in below(64, nodes * trees)],
            "nodes_values": [float(v) for v in reals(nodes * trees)],
            "nodes_modes": (["BRANCH_LEQ"] * inner + ["LEAF"] * leaf) * trees,
            "nodes_truenodeids": ([2 * i + 1 for i in range(inner)] + [0] * leaf) * trees,
            "nodes_falsenodeids": ([2 * i + 2 for i in range(inner)] + [0] * leaf) * trees}
    for op, kind in (("TreeEnsembleRegressor", "target"), ("TreeEnsembleClassifier", "class")):
        labels = {"n_targets": 1} if kind == "target" else {"classlabels_int64s": [0, 1, 2]}
        more = {f"{kind}_treeids": [t for t in range(trees) for _ in range(leaf)],
                f"{kind}_nodeids": list(range(inner, nodes)) * trees,
                f"{kind}_ids": [0 if kind == "target" else i % 3 for i in range(leaf * trees)],
                f"{kind}_weights": [float(v) for v in reals(leaf * trees)]}
        single(op, op, x, None, ("y",) if kind == "target" else ("y", "z"), domain=ML, **tree, **more, **labels)
    tensor = helper.make_tensor
    single("TreeEnsemble", "TreeEnsemble", x, domain=ML, n_targets=1, tree_roots=[t * inner for t in range(trees)],
           nodes_featureids=[int(i) for i in below(64, inner * trees)],
           nodes_splits=tensor("s", TensorProto.FLOAT, [inner * trees], reals(inner * trees)),
           nodes_modes=tensor("m", TensorProto.UINT8, [inner * trees], [0] * (inner * trees)),
           nodes_truenodeids=[t * inner + 2 * i + 1 if 2 * i + 1 < inner else t * leaf + 2 * i + 1 - inner
                              for t in range(trees) for i in range(inner)],
           nodes_falsenodeids=[t * inner + 2 * i + 2 if 2 * i + 2 < inner else t * leaf + 2 * i + 2 - inner
                               for t in range(trees) for i in range(inner)],
           nodes_trueleafs=[int(2 * i + 1 >= inner) for i in range(inner)] * trees,
           nodes_falseleafs=[int(2 * i + 1 >= inner) for i in range(inner)] * trees,
           leaf_targetids=[0] * (leaf * trees),
           leaf_weights=tensor("w", TensorProto.FLOAT, [leaf * trees], reals(leaf * trees)))
    vectors = list(reals(50 * 64))
    single("SVMRegressor", "SVMRegressor", x, domain=ML, n_supports=50, support_vectors=vectors,
           coefficients=list(reals(50)), rho=[0.1], kernel_type="RBF", kernel_params=[0.01, 0.0, 3.0])
    single("SVMClassifier", "SVMClassifier", x, None, ("y", "z"), domain=ML, vectors_per_class=[25, 25],
           support_vectors=vectors, coefficients=list(reals(50)), rho=[0.1], kernel_type="RBF",
           kernel_params=[0.01, 0.0, 3.0], classlabels_ints=[0, 1])
    single("FeatureVectorizer", "FeatureVectorizer", {"x": reals(1000, 20), "z": reals(1000, 30)}, domain=ML,
           inputdimensions=[20, 30])


def list_kinds():
    list_elements()
    list_rows()
    list_shapes()
    list_learnt()
    list_microsoft()
    list_classic()
