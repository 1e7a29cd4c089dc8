#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_made.py - networks of usual kinds with random weights, which no list of published models has: opjit's time ÷
ONNX Runtime's, in turns, and whether their results are equal.

  onnx_made.py OPJIT [TEXT] [--threads N] [--rounds N] [--keep DIR]

OPJIT: the program; TEXT: those whose names contain it.  Needs numpy, onnx and onnxruntime.
"""
import argparse
import math
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_peers

OPSET = 20


class Net:
    """A graph that grows: methods add a node and give its output's name."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.random = [], [], [], np.random.default_rng(7)

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}_{len(self.nodes)}_{k}" for k in range(outputs)]
        given = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        self.nodes.append(helper.make_node(kind, given, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value):
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def weight(self, *shape, scale=None):
        fan = math.prod(shape[1:]) if len(shape) > 1 else shape[0]
        return (self.random.standard_normal(shape) * (scale or fan ** -0.5)).astype(np.float32)

    def input(self, name, shape, dtype=np.float32):
        self.inputs.append((name, shape, dtype))
        return name

    def save(self, path, *outputs):
        types = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64}
        graph = helper.make_graph(self.nodes, "made",
                                  [helper.make_tensor_value_info(n, types[t], s) for n, s, t in self.inputs],
                                  [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs],
                                  self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
        model.ir_version = 9
        onnx.save(model, path)

    # --- layers -------------------------------------------------------------------------------------------------------

    def conv(self, x, into, out, kernel=3, stride=1, groups=1, activation="Relu", bias=True):
        pad = (kernel - 1) // 2
        y = self.op("Conv", x, self.weight(out, into // groups, kernel, kernel), *([self.weight(out)] if bias else []),
                    kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4, group=groups)
        if activation == "Silu":
            return self.op("Mul", y, self.op("Sigmoid", y))
        return self.op(activation, y) if activation else y

    def norm(self, x, width):
        return self.op("LayerNormalization", x, np.ones(width, np.float32), np.zeros(width, np.float32))

    def dense(self, x, into, out, bias=True):
        y = self.op("MatMul", x, self.weight(into, out, scale=into ** -0.5))
        return self.op("Add", y, self.weight(out)) if bias else y

    def gelu(self, x):
        erf = self.op("Add", self.op("Erf", self.op("Div", x, np.float32(math.sqrt(2)))), np.float32(1))
        return self.op("Mul", self.op("Mul", x, erf), np.float32(0.5))

    def heads(self, x, tokens, heads, width, order=(0, 2, 1, 3)):
        return self.op("Transpose", self.op("Reshape", x, np.array([1, tokens, heads, width // heads])), perm=list(order))

    def attention(self, x, tokens, width, heads, mask=None):
        q, k, v = (self.dense(x, width, width) for _ in range(3))
        q, v = self.heads(q, tokens, heads, width), self.heads(v, tokens, heads, width)
        k = self.heads(k, tokens, heads, width, (0, 2, 3, 1))
        scores = self.op("Div", self.op("MatMul", q, k), np.float32(math.sqrt(width // heads)))
        if mask is not None:
            scores = self.op("Add", scores, mask)
        y = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        y = self.op("Reshape", self.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([1, tokens, width]))
        return self.dense(y, width, width)

    def block(self, x, tokens, width, heads, mask=None):
        x = self.op("Add", x, self.attention(self.norm(x, width), tokens, width, heads, mask))
        h = self.gelu(self.dense(self.norm(x, width), width, 4 * width))
        return self.op("Add", x, self.dense(h, 4 * width, width))


# --- networks ---------------------------------------------------------------------------------------------------------

def bert(n, tokens=128, width=768, layers=2):
    ids = n.input("ids", [1, tokens], np.int64)
    x = n.op("Add", n.op("Gather", n.weight(3000, width), ids), n.weight(1, tokens, width))
    for _ in range(layers):
        x = n.block(x, tokens, width, 12)
    return [n.norm(x, width)]


def gpt(n, tokens=256, width=384, layers=3):
    ids = n.input("ids", [1, tokens], np.int64)
    x = n.op("Add", n.op("Gather", n.weight(5000, width), ids), n.weight(1, tokens, width))
    mask = n.constant(np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1))
    for _ in range(layers):
        x = n.block(x, tokens, width, 6, mask)
    last = n.op("Gather", n.norm(x, width), np.array([tokens - 1]), axis=1)
    return [n.dense(last, width, 5000, bias=False)]


def decoder(n, past=511, width=768, heads=12, layers=2):
    """One token beside the keys and values of those before, which grow by it."""
    x, outputs = n.input("x", [1, 1, width]), []
    for layer in range(layers):
        h = n.norm(x, width)
        q, k, v = (n.heads(n.dense(h, width, width), 1, heads, width) for _ in range(3))
        pasts = [n.input(f"{name}{layer}", [1, heads, past, width // heads]) for name in "kv"]
        keys, values = n.op("Concat", pasts[0], k, axis=2), n.op("Concat", pasts[1], v, axis=2)
        scores = n.op("Mul", n.op("MatMul", q, n.op("Transpose", keys, perm=[0, 1, 3, 2])), np.float32(0.125))
        y = n.op("MatMul", n.op("Softmax", scores, axis=-1), values)
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([1, 1, width]))
        x = n.op("Add", x, n.dense(y, width, width))
        x = n.op("Add", x, n.dense(n.gelu(n.dense(n.norm(x, width), width, 4 * width)), 4 * width, width))
        outputs += [keys, values]
    return [x] + outputs


def llama(n, tokens=64, width=512, heads=8, groups=4, layers=2):
    """RMS normalization, rotated queries and keys of fewer heads, gated SiLU, all of them written out."""
    x, each = n.input("x", [1, tokens, width]), width // heads
    angles = np.outer(np.arange(tokens), 10000.0 ** (-np.arange(0, each, 2) / each))
    cos, sin = (n.constant(np.concatenate([f(angles)] * 2, 1).astype(np.float32)) for f in (np.cos, np.sin))
    mask = n.constant(np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1))

    def rms(v):
        mean = n.op("ReduceMean", n.op("Mul", v, v), np.array([-1]), keepdims=1)
        return n.op("Mul", n.op("Div", v, n.op("Sqrt", n.op("Add", mean, np.float32(1e-5)))), n.weight(width))

    def rotated(v):
        low, high = n.op("Split", v, outputs=2, axis=-1, num_outputs=2)
        return n.op("Add", n.op("Mul", v, cos), n.op("Mul", n.op("Concat", n.op("Neg", high), low, axis=-1), sin))

    def repeated(v):
        v = n.op("Expand", n.op("Unsqueeze", v, np.array([2])), np.array([1, groups, heads // groups, tokens, each]))
        return n.op("Reshape", v, np.array([1, heads, tokens, each]))

    for _ in range(layers):
        h = rms(x)
        q = rotated(n.heads(n.dense(h, width, width, False), tokens, heads, width))
        k, v = (n.heads(n.dense(h, width, groups * each, False), tokens, groups, groups * each) for _ in range(2))
        k, v = repeated(rotated(k)), repeated(v)
        s = n.op("Mul", n.op("MatMul", q, n.op("Transpose", k, perm=[0, 1, 3, 2])), np.float32(each ** -0.5))
        y = n.op("MatMul", n.op("Softmax", n.op("Add", s, mask), axis=-1), v)
        y = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([1, tokens, width]))
        x = n.op("Add", x, n.dense(y, width, width, False))
        h, wide = rms(x), 1376
        gate = n.dense(h, width, wide, False)
        h = n.op("Mul", n.op("Mul", gate, n.op("Sigmoid", gate)), n.dense(h, width, wide, False))
        x = n.op("Add", x, n.dense(h, wide, width, False))
    return [rms(x)]


def vit(n, width=384, layers=3):
    x = n.op("Conv", n.input("x", [1, 3, 224, 224]), n.weight(width, 3, 16, 16), n.weight(width), strides=[16, 16])
    x = n.op("Transpose", n.op("Reshape", x, np.array([1, width, 196])), perm=[0, 2, 1])
    x = n.op("Add", n.op("Concat", n.weight(1, 1, width), x, axis=1), n.weight(1, 197, width))
    for _ in range(layers):
        x = n.block(x, 197, width, 6)
    return [n.dense(n.op("Squeeze", n.op("Slice", n.norm(x, width), np.array([0]), np.array([1]), np.array([1])),
                         np.array([1])), width, 1000)]


def resnet(n):
    x = n.op("MaxPool", n.conv(n.input("x", [1, 3, 224, 224]), 3, 64, 7, 2), kernel_shape=[3, 3], strides=[2, 2],
             pads=[1] * 4)
    into = 64
    for width, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        for k in range(2):
            s = stride if k == 0 else 1
            y = n.conv(n.conv(n.conv(x, into, width, 1), width, width, 3, s), width, 4 * width, 1, activation=None)
            x = n.op("Relu", n.op("Add", y, n.conv(x, into, 4 * width, 1, s, activation=None) if k == 0 else x))
            into = 4 * width
    return [n.op("Gemm", n.op("Flatten", n.op("GlobalAveragePool", x)), n.weight(1000, 2048), n.weight(1000), transB=1)]


def mobilenet(n):
    """Inverted residuals with squeeze and excitation, as MobileNet-v3 and EfficientNet have them."""
    x, into = n.conv(n.input("x", [1, 3, 224, 224]), 3, 16, 3, 2, activation="HardSwish"), 16
    for wide, out, kernel, stride in ((16, 16, 3, 2), (72, 24, 3, 2), (88, 24, 3, 1), (96, 40, 5, 2), (240, 40, 5, 1),
                                      (120, 48, 5, 1), (288, 96, 5, 2), (576, 96, 5, 1)):
        y = n.conv(x, into, wide, 1, activation="HardSwish")
        y = n.conv(y, wide, wide, kernel, stride, groups=wide, activation="HardSwish")
        s = n.conv(n.op("GlobalAveragePool", y), wide, wide // 4, 1)
        s = n.conv(s, wide // 4, wide, 1, activation="HardSigmoid")
        y = n.conv(n.op("Mul", y, s), wide, out, 1, activation=None)
        x, into = n.op("Add", x, y) if stride == 1 and into == out else y, out
    return [n.dense(n.op("Flatten", n.op("GlobalAveragePool", n.conv(x, into, 576, 1))), 576, 1000)]


def unet(n):
    x, skips, into = n.input("x", [1, 3, 128, 128]), [], 3
    for width in (16, 32, 64):
        x = n.conv(n.conv(x, into, width), width, width)
        skips.append((x, width))
        x, into = n.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]), width
    x = n.conv(x, into, 128)
    into = 128
    for skip, width in reversed(skips):
        x = n.op("ConvTranspose", x, n.weight(into, width, 2, 2, scale=into ** -0.5), strides=[2, 2])
        x = n.conv(n.conv(n.op("Concat", skip, x, axis=1), 2 * width, width), width, width)
        into = width
    return [n.op("Sigmoid", n.conv(x, into, 1, 1, activation=None))]


def yolo(n):
    x, into, maps = n.input("x", [1, 3, 256, 256]), 3, []
    for width in (16, 32, 64, 128):
        x, into = n.conv(x, into, width, 3, 2, activation="Silu"), width
        low, high = n.op("Split", n.conv(x, into, width, 1, activation="Silu"), outputs=2, axis=1, num_outputs=2)
        y = n.conv(n.conv(high, width // 2, width // 2, activation="Silu"), width // 2, width // 2, activation="Silu")
        x = n.conv(n.op("Concat", low, high, n.op("Add", high, y), axis=1), width * 3 // 2, width, 1, activation="Silu")
        maps.append(x)
    up = n.op("Resize", maps[3], "", np.array([1, 1, 2, 2], np.float32), mode="nearest")
    x = n.conv(n.op("Concat", up, maps[2], axis=1), 192, 64, activation="Silu")
    boxes = n.op("Reshape", n.conv(x, 64, 85, 1, activation=None), np.array([1, 85, 1024]))
    return [n.op("Sigmoid", n.op("Transpose", boxes, perm=[0, 2, 1]))]


def convnext(n):
    x, width = n.op("Conv", n.input("x", [1, 3, 128, 128]), n.weight(96, 3, 4, 4), n.weight(96), strides=[4, 4]), 96
    for _ in range(3):
        y = n.conv(x, width, width, 7, groups=width, activation=None)
        y = n.norm(n.op("Transpose", y, perm=[0, 2, 3, 1]), width)
        y = n.dense(n.gelu(n.dense(y, width, 4 * width)), 4 * width, width)
        x = n.op("Add", x, n.op("Transpose", n.op("Mul", y, n.weight(width)), perm=[0, 3, 1, 2]))
    return [n.op("GlobalAveragePool", x)]


def speech(n, time_steps=400, width=256):
    """Convolutions along time and blocks of a transformer."""
    x = n.input("x", [1, 80, time_steps])
    for into, stride in ((80, 1), (width, 2)):
        x = n.gelu(n.op("Conv", x, n.weight(width, into, 3), n.weight(width), strides=[stride], pads=[1, 1]))
    tokens = time_steps // 2
    x = n.op("Add", n.op("Transpose", x, perm=[0, 2, 1]), n.weight(1, tokens, width))
    for _ in range(2):
        x = n.block(x, tokens, width, 4)
    return [n.norm(x, width)]


def lstm(n, tokens=64, width=128):
    x = n.op("Transpose", n.op("Gather", n.weight(2000, width), n.input("ids", [1, tokens], np.int64)), perm=[1, 0, 2])
    for into in (width, 2 * width):
        y = n.op("LSTM", x, n.weight(2, 4 * width, into), n.weight(2, 4 * width, width), n.weight(2, 8 * width),
                 outputs=3, hidden_size=width, direction="bidirectional")[0]
        x = n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1, 3]), np.array([tokens, 1, 2 * width]))
    return [n.op("Softmax", n.dense(x, 2 * width, 20), axis=-1)]


def recommender(n, batch=64):
    """Embeddings, their products with each other, and layers of few columns."""
    dense = n.input("dense", [batch, 13])
    rows = [n.op("Gather", n.weight(1000, 32, scale=1), n.input(f"id{k}", [batch], np.int64)) for k in range(8)]
    h = n.op("Relu", n.dense(n.op("Relu", n.dense(dense, 13, 128)), 128, 32))
    all_rows = n.op("Concat", *[n.op("Unsqueeze", r, np.array([1])) for r in [h] + rows], axis=1)
    pairs = n.op("MatMul", all_rows, n.op("Transpose", all_rows, perm=[0, 2, 1]))
    x = n.op("Concat", h, n.op("Reshape", pairs, np.array([batch, 81])), axis=1)
    for into, out in ((113, 256), (256, 128), (128, 1)):
        x = n.dense(x, into, out)
        x = n.op("Relu", x) if out > 1 else n.op("Sigmoid", x)
    return [x]


def denoiser(n, width=64):
    """A residual block of a diffusion network with attention over its positions."""
    x, time_of = n.input("x", [1, 4, 32, 32]), n.input("t", [1, 128])
    x = n.conv(x, 4, width, activation=None)
    for _ in range(2):
        h = n.op("GroupNormalization", x, np.ones(8, np.float32), np.zeros(8, np.float32), num_groups=8)
        h = n.conv(n.op("Mul", h, n.op("Sigmoid", h)), width, width, activation=None)
        h = n.op("Add", h, n.op("Reshape", n.dense(time_of, 128, width), np.array([1, width, 1, 1])))
        h = n.op("Mul", h, n.op("Sigmoid", h))
        x = n.op("Add", x, n.conv(h, width, width, activation=None))
        y = n.op("Transpose", n.op("Reshape", x, np.array([1, width, 1024])), perm=[0, 2, 1])
        y = n.attention(n.norm(y, width), 1024, width, 4)
        x = n.op("Add", x, n.op("Reshape", n.op("Transpose", y, perm=[0, 2, 1]), np.array([1, width, 32, 32])))
    return [n.conv(x, width, 4, activation=None)]


def sound(n):
    """Dilated gated convolutions along time, as WaveNet has them."""
    x, width, skip = n.input("x", [1, 1, 4000]), 32, None
    x = n.op("Conv", x, n.weight(width, 1, 1), n.weight(width))
    for dilation in (1, 2, 4, 8, 16, 32):
        y = n.op("Pad", x, np.array([0, 0, 2 * dilation, 0, 0, 0]))
        f, g = (n.op("Conv", y, n.weight(width, width, 3), n.weight(width), dilations=[dilation]) for _ in range(2))
        y = n.op("Mul", n.op("Tanh", f), n.op("Sigmoid", g))
        y = n.op("Conv", y, n.weight(width, width, 1), n.weight(width))
        x, skip = n.op("Add", x, y), y if skip is None else n.op("Add", skip, y)
    return [n.op("Conv", n.op("Relu", skip), n.weight(64, width, 1), n.weight(64))]


def shuffle(n):
    """Channels split and shuffled, as ShuffleNet has them."""
    x = n.conv(n.input("x", [1, 3, 224, 224]), 3, 24, 3, 2)
    x = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    x, width, size = n.conv(x, 24, 116, 1), 116, 56
    for _ in range(4):
        low, high = n.op("Split", x, outputs=2, axis=1, num_outputs=2)
        half = width // 2
        y = n.conv(high, half, half, 1)
        y = n.conv(n.conv(y, half, half, 3, groups=half, activation=None), half, half, 1)
        x = n.op("Reshape", n.op("Concat", low, y, axis=1), np.array([1, 2, half, size, size]))
        x = n.op("Reshape", n.op("Transpose", x, perm=[0, 2, 1, 3, 4]), np.array([1, width, size, size]))
    return [n.op("ReduceMean", x, np.array([2, 3]), keepdims=0)]


NETWORKS = [bert, gpt, decoder, llama, vit, resnet, mobilenet, unet, yolo, convnext, speech, lstm, recommender, denoiser,
            sound, shuffle]


# --- comparison -------------------------------------------------------------------------------------------------------

def feed_of(net):
    random = np.random.default_rng(1)
    return {name: (random.integers(0, 1000, shape) if dtype == np.int64 else random.standard_normal(shape)).astype(dtype)
            for name, shape, dtype in net.inputs}


def opjit_outputs(opjit, model, arguments, place, names):
    os.makedirs(place, exist_ok=True)
    subprocess.run([opjit, "run", model, *arguments, "--no-cache", "--quiet", "--output-dir", place], check=True,
                   stdout=subprocess.DEVNULL)
    return [np.load(f"{place}/{name}.npy") for name in names]


def compare(opjit, make, threads, rounds, folder):
    net = Net()
    outputs = make(net)
    model = f"{folder}/{make.__name__}.onnx"
    net.save(model, *outputs)
    begin = time.perf_counter()
    session = onnx_peers.session_of(model, threads)
    created = (time.perf_counter() - begin) * 1e3
    feed, arguments = feed_of(net), []
    for name, array in feed.items():
        np.save(f"{folder}/{name}.npy", array)
        arguments += ["--input", f"{name}={folder}/{name}.npy"]
    expected = session.run(None, feed)
    given = opjit_outputs(opjit, model, arguments, f"{folder}/out", outputs)
    error = max(float(np.max(np.abs(e - g)) / max(1e-6, np.max(np.abs(e)))) for e, g in zip(expected, given))
    best, peer = {"run_ms": math.inf, "compile_ms": math.inf}, math.inf
    more = ["--threads", str(threads)] if threads > 1 else []
    for _ in range(rounds):
        peer = min(peer, onnx_peers.median_call(session, feed))
        result = onnx_peers.bench(opjit, model, arguments, "--no-cache", *more)
        best = {key: min(best[key], result[key]) for key in best}
    ratio = best["run_ms"] / peer
    print(f"{make.__name__:12s} run {best['run_ms']:8.3f} ms, onnxruntime {peer:8.3f}, ratio {ratio:.2f}; compile "
          f"{best['compile_ms']:.0f} ms, session {created:.0f}; largest difference {error:.1e}", flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("opjit")
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", help="a folder that keeps the models")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = given.keep or place
        os.makedirs(folder, exist_ok=True)
        ratios = [compare(given.opjit, make, given.threads, given.rounds, folder)
                  for make in NETWORKS if given.text in make.__name__]
    if ratios:
        print(f"geometric mean of {len(ratios)}: {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, "
              f"largest {max(ratios):.2f}")


if __name__ == "__main__":
    sys.exit(main())
