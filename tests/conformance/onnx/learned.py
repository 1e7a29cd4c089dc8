# SPDX-License-Identifier: Apache-2.0
"""learned.py - cases of made.py: operators of ai.onnx.ml, trees among them."""
import numpy as np
from onnx import TensorProto, helper


def learned(case, node, random):
    """The cases, by made.py's functions."""
    def floats(*sizes):
        return random.uniform(-1, 1, sizes).astype("f4")

    def integers(least, most, sizes):
        return random.integers(least, most, sizes)

    x = floats(5, 4)
    rows = {"x": x}

    def one(name, attributes, inputs=None, outputs=("y",), off=1e-5, constants=None):
        inputs = inputs or rows
        case(f"{name} {' '.join(map(str, attributes.values()))[:40]}",
             [node(name, [*inputs, *(constants or {})], outputs, "ai.onnx.ml", **attributes)], inputs, constants, outputs, off)

    one("Scaler", {"offset": [.5, -1.0, 2.0, 0.0], "scale": [2.0, 3.0, -1.0, .1]})
    one("Scaler", {"offset": [.5], "scale": [2.0]})
    one("Scaler", {"offset": [1.0], "scale": [.5]}, {"x": integers(-9, 9, (3, 4))})
    one("Binarizer", {"threshold": .25}, off=0)
    for norm in ("MAX", "L1", "L2"):
        one("Normalizer", {"norm": norm}, {"x": np.concatenate([np.abs(x), np.zeros((1, 4), "f4")])})
    holes = np.where(x > .3, np.float32(np.nan), x)
    one("Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}, {"x": holes}, off=0)
    one("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": float("nan")}, {"x": holes}, off=0)
    one("Imputer", {"imputed_value_int64s": [7], "replaced_value_int64": 3}, {"x": integers(0, 5, (4, 4))}, off=0)
    one("ArrayFeatureExtractor", {}, constants={"at": np.int64([[2, 0, 2]])}, off=0)
    one("ArrayFeatureExtractor", {}, {"x": floats(2, 3, 4)}, constants={"at": np.int64([1])}, off=0)
    weights, shifts = [float(v) for v in floats(12)], [float(v) for v in floats(3)]
    for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
        one("LinearRegressor", {"post_transform": transform, "coefficients": weights, "intercepts": shifts, "targets": 3})
        one("LinearClassifier", {"post_transform": transform, "coefficients": weights, "intercepts": shifts,
                                 "classlabels_ints": [7, -2, 5]}, outputs=("label", "y"))
    one("LinearRegressor", {"coefficients": weights[:4]})
    one("LabelEncoder", {"keys_int64s": [3, -2, 5], "values_int64s": [10, 20, -30], "default_int64": 99},
        {"x": integers(-4, 7, (3, 5))}, off=0)
    one("OneHotEncoder", {"cats_int64s": [1, 4, 2]}, {"x": integers(0, 5, (3, 5))}, off=0)
    one("LabelEncoder", {"keys_int64s": [3, -2, 5], "values_floats": [.5, 1.5, -2.5], "default_float": 9.0},
        {"x": integers(-4, 7, (3, 5))}, off=0)
    case("ArrayFeatureExtractor of what is computed",
         [node("ArgMax", ["x"], ["at"], axis=1, keepdims=0), node("ArrayFeatureExtractor", ["labels", "at"], ["y"], "ai.onnx.ml")],
         rows, {"labels": np.int64([[7, 5, -3, 11]])}, off=0)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        one("SVMRegressor", {"kernel_type": kernel, "kernel_params": [.3, .2, 3.0], "n_supports": 3, "rho": [.4],
                             "coefficients": [.5, -1.5, 2.0], "support_vectors": weights}, {"x": np.abs(x)}, off=1e-4)
    one("SVMRegressor", {"kernel_type": "LINEAR", "kernel_params": [.3, .2, 3.0], "rho": [.4], "coefficients": weights[:4],
                         "one_class": 1}, off=0)
    for kernel in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        for counts in ([3, 2], [2, 1, 3], [2, 2, 1, 2]):
            classes, vectors = len(counts), sum(counts)
            one("SVMClassifier", {"kernel_type": kernel, "vectors_per_class": counts, "kernel_params": [.3, .2, 3.0],
                                  "coefficients": [float(v) for v in floats((classes - 1) * vectors)],
                                  "support_vectors": [float(v) for v in floats(4 * vectors)],
                                  "rho": [float(v) for v in floats(classes * (classes - 1) // 2)],
                                  "classlabels_ints": list(range(5, 5 + classes))},
                {"x": np.abs(floats(20, 4))}, ("label", "y"), off=1e-4)
    for counts, steep in (([3, 2], 2), ([3, 2], 60), ([2, 1, 3], 2), ([2, 2, 1, 2], 5), ([1] * 7, 9)):
        classes, vectors = len(counts), sum(counts)
        count = classes * (classes - 1) // 2
        one("SVMClassifier", {"prob_a": [float(v) for v in steep * floats(count) - 1], "vectors_per_class": counts,
                              "prob_b": [float(v) for v in floats(count)], "kernel_params": [.3, .2, 3.0],
                              "kernel_type": "RBF",
                              "coefficients": [float(v) for v in floats((classes - 1) * vectors)],
                              "support_vectors": [float(v) for v in floats(4 * vectors)],
                              "rho": [float(v) for v in floats(count)], "classlabels_ints": list(range(classes))},
            {"x": floats(50, 4)}, ("label", "y"), off=1e-5)
    one("FeatureVectorizer", {"inputdimensions": [4, 2, 1]},
        {"x": integers(-9, 9, (5, 4)), "more": integers(-9, 9, (5, 2)), "last": integers(-9, 9, (5, 1))}, off=0)
    trees(one, random)
    ensembles(one, random)
    one("TreeEnsembleRegressor", {"n_targets": 1, **full(65, 13, random)}, samples(random, 30, 5, "f4"), off=1e-4)


def grow(random, depth, inner, leaf):
    """A random tree: numbers of its nodes are what inner() and leaf() give; inner's children are set by what it gave."""
    if depth == 0 or random.random() < .2:
        return leaf()
    at, lead = inner()
    lead(grow(random, depth - 1, inner, leaf), grow(random, depth - 1, inner, leaf))
    return at


def samples(random, rows, features, dtype):
    """Numbers that often are those that nodes compare with."""
    x = (random.integers(-4, 5, (rows, features)) / 2).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[random.random(x.shape) < .1] = np.nan
    return {"x": x}


def forest(random, modes, targets, what, signed=True):
    """Attributes of TreeEnsembleRegressor (what: target) and -Classifier (class)."""
    nodes = {k: [] for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
                             "missing_value_tracks_true")}
    said = {k: [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(6):
        first = len(nodes["modes"])

        def add(mode, feature=0, value=0.0):
            at = len(nodes["modes"]) - first
            row = {"treeids": tree, "nodeids": at, "featureids": feature, "values": value, "modes": mode, "truenodeids": 0,
                   "falsenodeids": 0, "missing_value_tracks_true": int(random.integers(2)) if mode != "LEAF" else 0}
            for k, v in row.items():
                nodes[k].append(v)
            return at

        def leaf():
            at = add("LEAF")
            for target in range(targets):
                if targets == 1 or random.random() < .8:
                    weight = float(random.uniform(-1 if signed else 0, 1 if signed else .16))
                    for k, v in zip(said, (tree, at, target, weight)):
                        said[k].append(v)
            return at

        def inner():
            at = add(str(random.choice(modes)), int(random.integers(5)), float(random.integers(-3, 4)) / 2)

            def lead(yes, no):
                nodes["truenodeids"][first + at], nodes["falsenodeids"][first + at] = yes, no
            return at, lead

        grow(random, 5, inner, leaf)
    return {**{"nodes_" + k: v for k, v in nodes.items()}, **{f"{what}_{k}": v for k, v in said.items()}}


def trees(one, random):
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for mode in (*([m] for m in modes), modes):
        one("TreeEnsembleRegressor", {"n_targets": 1, **forest(random, mode, 1, "target")},
            samples(random, 30, 5, "f4"))
        lost = forest(random, mode, 1, "target")  # missing values go one way in all nodes
        del lost["nodes_missing_value_tracks_true"]
        one("TreeEnsembleRegressor", {"n_targets": 1, **lost}, samples(random, 30, 5, "f4"))
    for how in ("AVERAGE", "MIN", "MAX"):
        one("TreeEnsembleRegressor", {"aggregate_function": how, **forest(random, modes, 1, "target"), "n_targets": 1},
            samples(random, 30, 5, "f4"))
    one("TreeEnsembleRegressor", {"post_transform": "SOFTMAX", "base_values": [.1, .2, .3], **forest(random, modes, 3, "target"),
                                  "n_targets": 3}, samples(random, 30, 5, "f8"))
    for transform in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        one("TreeEnsembleClassifier", {"post_transform": transform, "classlabels_int64s": [4, -1, 7],
                                       **forest(random, modes, 3, "class")}, samples(random, 30, 5, "f4"), ("label", "y"))
        for signed in (False, True):
            for base in ({}, {"base_values": [.15]}):
                two = forest(random, modes, 1, "class", signed)
                one("TreeEnsembleClassifier", {"post_transform": transform, "classlabels_int64s": [3, 9], **base, **two},
                    samples(random, 30, 5, "i8"), ("label", "y"))
            two["class_ids"] = [1] * len(two["class_ids"])
            one("TreeEnsembleClassifier", {"post_transform": transform, "classlabels_int64s": [3, 9], **two},
                samples(random, 30, 5, "f4"), ("label", "y"))


def ensembles(one, random):
    """TreeEnsemble, whose leaves have numbers of their own."""
    for dtype, how, targets in (("f4", 1, 3), ("f8", 1, 2), ("f4", 0, 1), ("f4", 2, 1), ("f4", 3, 1)):
        type_ = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        nodes = {k: [] for k in ("featureids", "truenodeids", "trueleafs", "falsenodeids", "falseleafs",
                                 "missing_value_tracks_true")}
        modes, splits, ids, weights, roots = [], [], [], [], []

        def leaf():
            ids.append(int(random.integers(targets)))
            weights.append(float(random.uniform(-1, 1)))
            return len(ids) - 1, 1

        def inner():
            at = len(modes)
            modes.append(int(random.integers(6)))
            splits.append(float(random.integers(-3, 4)) / 2)
            for k, v in zip(nodes, (int(random.integers(5)), 0, 0, 0, 0, int(random.integers(2)))):
                nodes[k].append(v)

            def lead(yes, no):
                (nodes["truenodeids"][at], nodes["trueleafs"][at]), (nodes["falsenodeids"][at], nodes["falseleafs"][at]) = yes, no
            return (at, 0), lead

        while len(roots) < 5:
            at, is_leaf = grow(random, 4, inner, leaf)
            if not is_leaf:
                roots.append(at)
        one("TreeEnsemble", {"n_targets": targets, "aggregate_function": how, "tree_roots": roots, "leaf_targetids": ids,
                             "leaf_weights": helper.make_tensor("w", type_, [len(ids)], weights),
                             "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [len(modes)], modes),
                             "nodes_splits": helper.make_tensor("s", type_, [len(splits)], splits),
                             **{"nodes_" + k: v for k, v in nodes.items()}}, samples(random, 30, 5, dtype))


def full(trees, levels, random):
    """Attributes of TreeEnsembleRegressor: trees all of whose leaves are at one level; 65 of 14 levels have more than a
    million nodes."""
    inner, each = (1 << levels) - 1, (2 << levels) - 1
    node = np.tile(np.arange(each), trees)
    is_leaf = node >= inner
    nodes = {"treeids": np.repeat(np.arange(trees), each), "nodeids": node,
             "featureids": np.where(is_leaf, 0, random.integers(0, 5, node.size)),
             "truenodeids": np.where(is_leaf, 0, 2 * node + 1), "falsenodeids": np.where(is_leaf, 0, 2 * node + 2)}
    said = {"treeids": nodes["treeids"][is_leaf], "nodeids": node[is_leaf],
            "ids": np.zeros(int(is_leaf.sum()), int)}
    return {**{f"nodes_{k}": v.tolist() for k, v in nodes.items()}, **{f"target_{k}": v.tolist() for k, v in said.items()},
            "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
            "nodes_values": np.where(is_leaf, 0, random.integers(-3, 4, node.size) / 2).tolist(),
            "target_weights": random.uniform(-1, 1, said["ids"].size).tolist()}
