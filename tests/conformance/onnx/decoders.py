# SPDX-License-Identifier: Apache-2.0
"""Decoders with past keys, written as exporters write them: one kernel for all lengths of the past, through `opjit
run`, gives for each the bytes of the model with just this length.  decoders.py PROGRAM"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPJIT = sys.argv[1]
MOST = 1000
LEAST = float(np.finfo("f").min)
LENGTHS = 0, 1, 2, 7, 14, 15, 16, 64, 127, 255, 256, 512, 999, MOST


class Graph:
    """Nodes with a name for each output; numbers and arrays as operands become initializers."""

    def __init__(self):
        self.nodes, self.constants, self.random = [], [], np.random.default_rng(3)

    def operand(self, x):
        if isinstance(x, str):
            return x
        array = np.asarray(x)
        array = array.astype("f") if array.dtype == np.float64 else array
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name

    def add(self, op, *operands, out=None, count=1, **attributes):
        out = [out] if out else [f"{op}{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(op, [self.operand(x) for x in operands], out, **attributes))
        return out[0] if count == 1 else out

    def weights(self, *shape):
        return self.operand(self.random.standard_normal(shape) / np.sqrt(shape[0]))

    def size(self, x, d):
        return self.add("Gather", self.add("Shape", x), d, axis=0)

    def shape(self, *sizes):
        parts = (self.add("Unsqueeze", s, [0]) if isinstance(s, str) else [s] for s in sizes)
        return self.add("Concat", *parts, axis=0)

    def reshape(self, x, *sizes):
        return self.add("Reshape", x, self.shape(*sizes))

    def number(self, x):
        return self.add("Cast", x, to=TensorProto.FLOAT)

    def heads(self, x, d):
        return self.add("Transpose", self.reshape(x, self.size(x, 0), self.size(x, 1), -1, d), perm=[0, 2, 1, 3])

    def attend(self, layer, q, k, v, repeat, masked):
        """The new keys and values go behind those of the past, and are outputs."""
        d = 16
        k, v = (self.add("Concat", f"past.{layer}.{n}", x, out=f"present.{layer}.{n}", axis=-2)
                for n, x in (("key", k), ("value", v)))
        k, v = repeat(k), repeat(v)
        scores = self.add("MatMul", q, self.add("Transpose", k, perm=[0, 1, 3, 2]))
        shares = self.add("Softmax", masked(self.add("Div", scores, float(np.sqrt(d))), q, k), axis=-1)
        o = self.add("Transpose", self.add("MatMul", shares, v), perm=[0, 2, 1, 3])
        return self.reshape(o, self.size(o, 0), self.size(o, 1), -1)

    def save(self, path, inputs, layers, heads, d=16):
        kv = [(layer, n) for layer in range(layers) for n in ("key", "value")]
        info = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "decoder",
            [info(n, TensorProto.INT64, s) for n, s in inputs] +
            [info(f"past.{i}.{n}", TensorProto.FLOAT, [1, heads, "past", d]) for i, n in kv],
            [info("y", TensorProto.FLOAT, [1, 1, 50])] +
            [info(f"present.{i}.{n}", TensorProto.FLOAT, [1, heads, "total", d]) for i, n in kv], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 9
        onnx.save(model, path)


def gpt2(path, layers=2, heads=4, d=16):
    """Positions by Range, learned; the causal mask is a slice of a buffer; one product for q, k and v."""
    g, e = Graph(), heads * d
    past = g.size("past.0.key", 2)
    at = g.add("Unsqueeze", g.add("Range", past, g.add("Add", past, g.size("ids", 1)), 1), [0])
    h = g.add("Add", g.add("Gather", g.weights(50, e), "ids"), g.add("Gather", g.weights(MOST + 24, e), at))
    hidden = g.add("Mul", g.add("Sub", 1.0, g.number(g.add("Unsqueeze", "mask", [1, 2]))), LEAST)
    causal = g.operand(np.tril(np.ones((1, 1, MOST + 24, MOST + 24), bool)))

    def masked(scores, q, k):
        all_, own = g.size(k, 2), g.size(q, 2)
        rows = g.add("Slice", causal, g.shape(g.add("Sub", all_, own)), g.shape(all_), [2], [1])
        mask = g.add("Slice", rows, [0], g.shape(all_), [3], [1])
        return g.add("Add", g.add("Where", mask, scores, LEAST), hidden)

    def linear(x, rows, columns):
        y = g.add("Gemm", g.reshape(x, -1, g.size(x, 2)), g.weights(rows, columns), g.weights(columns))
        return g.reshape(y, g.size(x, 0), g.size(x, 1), columns)

    def norm(x):
        centred = g.add("Sub", x, g.add("ReduceMean", x, axes=[-1]))
        variance = g.add("ReduceMean", g.add("Pow", centred, 2.0), axes=[-1])
        return g.add("Mul", g.add("Div", centred, g.add("Sqrt", g.add("Add", variance, 1e-5))), g.weights(e))

    for layer in range(layers):
        q, k, v = (g.heads(x, d) for x in g.add("Split", linear(norm(h), e, 3 * e), [e] * 3, count=3, axis=2))
        h = g.add("Add", h, linear(g.attend(layer, q, k, v, lambda x: x, masked), e, e))
        h = g.add("Add", h, linear(g.add("Tanh", linear(norm(h), e, 4 * e)), 4 * e, e))
    g.add("MatMul", norm(h), g.weights(e, 50), out="y")
    g.save(path, [("ids", [1, 1]), ("mask", [1, "total"])], layers, heads)


def llama(path, layers=2, heads=4, kv=2, d=16):
    """Rotary embedding by given positions, keys and values that several heads share, RMSNorm; the causal mask by
    comparing ranges."""
    g, e = Graph(), heads * d
    past = g.size("past.0.key", 2)
    total = g.add("Add", past, g.size("ids", 1))
    h = g.add("Gather", g.weights(50, e), "ids")
    later = g.add("Greater", g.add("Range", 0, total, 1), g.add("Reshape", g.add("Range", past, total, 1), [-1, 1]))
    full = g.add("ConstantOfShape", g.shape(g.size("ids", 1), total),
                 value=numpy_helper.from_array(np.array([LEAST], "f")))
    mask = g.add("Unsqueeze", g.add("Mul", full, g.number(later)), [0, 1])
    kept = g.number(g.add("Unsqueeze", "mask", [1, 2]))
    mask = g.add("Where", g.add("Equal", g.add("Add", mask, kept), 0.0), LEAST, mask)
    position = g.number(g.add("Unsqueeze", "at", [1]))
    angles = g.add("MatMul", (1e4 ** (-np.arange(0, d, 2) / d)).reshape(1, -1, 1), position)
    angles = g.add("Transpose", angles, perm=[0, 2, 1])
    angles = g.add("Unsqueeze", g.add("Concat", angles, angles, axis=-1), [1])
    cos, sin = g.add("Cos", angles), g.add("Sin", angles)

    def turn(x):
        half = g.add("Div", g.size(x, 3), 2)
        low = g.add("Slice", x, [0], g.shape(half), [3], [1])
        high = g.add("Neg", g.add("Slice", x, g.shape(half), [2**63 - 1], [3], [1]))
        return g.add("Add", g.add("Mul", x, cos), g.add("Mul", g.add("Concat", high, low, axis=-1), sin))

    def repeat(x):
        many = g.add("Expand", g.add("Unsqueeze", x, [2]), g.shape(1, kv, heads // kv, g.size(x, 2), d))
        return g.reshape(many, 1, heads, g.size(x, 2), d)

    def norm(x):
        mean = g.add("ReduceMean", g.add("Pow", x, 2.0), axes=[-1])
        return g.add("Mul", g.weights(e), g.add("Mul", x, g.add("Reciprocal", g.add("Sqrt", g.add("Add", mean, 1e-6)))))

    for layer in range(layers):
        x = norm(h)
        q, k, v = (g.heads(g.add("MatMul", x, g.weights(e, n * d)), d) for n in (heads, kv, kv))
        o = g.attend(layer, turn(q), turn(k), v, repeat, lambda scores, q, k: g.add("Add", scores, mask))
        h = g.add("Add", h, g.add("MatMul", o, g.weights(e, e)))
        x, gate = norm(h), g.weights(e, 3 * e)
        x = g.add("Mul", g.add("Sigmoid", g.add("MatMul", x, gate)), g.add("MatMul", x, g.weights(e, 3 * e)))
        h = g.add("Add", h, g.add("MatMul", x, g.weights(3 * e, e)))
    g.add("MatMul", norm(h), g.weights(e, 50), out="y")
    g.save(path, [("ids", [1, 1]), ("mask", [1, "total"]), ("at", [1, 1])], layers, kv)


def run(path, folder, inputs, *args):
    given = [a for name in inputs for a in ("--input", f"{name}={folder / name}.npy")]
    done = subprocess.run([OPJIT, "run", path, *given, "--output-dir", folder / "out", *args], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{path.name} {args}: {done.stderr}")
    return {file.name: file.read_bytes() for file in (folder / "out").iterdir()}


def check(path, folder):
    ports = onnx.load(path).graph.input
    for past in LENGTHS:
        random = np.random.default_rng(past)
        for port in ports:
            kind = port.type.tensor_type
            sizes = [{"past": past, "total": past + 1}.get(d.dim_param, d.dim_value) for d in kind.shape.dim]
            x = random.standard_normal(sizes).astype("f") if kind.elem_type == TensorProto.FLOAT else \
                np.ones(sizes, "q") if port.name == "mask" else np.full(sizes, past % 50, "q")
            np.save(folder / f"{port.name}.npy", x)
        names = [port.name for port in ports]
        want = run(path, folder, names)
        for way in ([], ["--executor", "interp"])[:2 if past < 100 else 1]:
            got = run(path, folder, names, "--dim", f"past=0..{MOST}:256", "--dim", "total=past+1", *way)
            other = [name for name in want if want[name] != got[name]]
            if other:
                sys.exit(f"{path.name}, past={past}, {way}: other bytes in {other} than for this length alone")


def main(folder):
    for make in (gpt2, llama):
        path = folder / f"{make.__name__}.onnx"
        make(path)
        (folder / "inputs").mkdir(exist_ok=True)
        check(path, folder / "inputs")
        for file in (folder / "inputs" / "out").iterdir():
            file.unlink()


with tempfile.TemporaryDirectory() as work:
    main(pathlib.Path(work))
