#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dynamic_sweep.py - kernels for many sizes beside those of one size, at several sizes of each, by CPU time of calls in
turns: masks, sequences, softmax, pointwise chains, layer norm, reductions, copies, products.

    PYTHONPATH=build/release/python dynamic_sweep.py [TEXT] [--seconds S] [--above R]

A row: static ns and dynamic ÷ static for each size.  --above shows only rows with a ratio above R."""
import argparse
import math
import time

import numpy as np
import opjit

CASES = []
RANDOM = np.random.default_rng(1)


def case(kind, name, dims, sizes):
    """A function of dims and of the graph's inputs: dims={"n": (least, largest, typical)}, sizes to measure."""
    def keep(function):
        CASES.append((f"{kind}: {name}", dims, [s if isinstance(s, tuple) else (s,) for s in sizes], function))
        return function
    return keep


def many(kind, names, dims, sizes):
    """The same of a function of an index and dims, for each name."""
    def keep(function):
        for i, name in enumerate(names):
            case(kind, name, dims, sizes)(lambda i=i, **d: function(i, **d))
        return function
    return keep


N = {"n": (1, 1500, 512)}
LONG = {"n": (1, 200000, 65536)}
ROWS = {"n": (1, 512, 64)}


def x(*shape, name="x", graph=None):
    return (graph or opjit.Graph()).input(shape, name=name)


def weights(graph, *shape):
    return (RANDOM.standard_normal(shape) / 8).astype("f")


# --- masks and sequences ----------------------------------------------------------------------------------------------
SQUARES = (512, 130, 1024, 511, 257, 1400)


@many("mask", ["lower triangle n x n", "upper triangle n x n", "tri n x n, where -inf", "causal softmax 4 x n x n",
               "band of 65 n x n"], N, SQUARES)
def masks(i, n):
    a = x(4, n, n) if i == 3 else x(n, n)
    if i == 0:
        return opjit.tril(a)
    if i == 1:
        return opjit.triu(a, 1)
    if i == 2:
        return opjit.where(opjit.tri(n, n), a, -opjit.inf)
    if i == 3:
        return opjit.softmax(opjit.where(opjit.tri(n, n), a, -opjit.inf))
    return opjit.tril(opjit.triu(a, -32), 32)


@case("mask", "lower triangle 8 x n x n", N, (512, 130, 511))
def triangles(n):
    return opjit.tril(x(8, n, n))


@case("mask", "keys up to a length, 8 x n x n", N, (512, 130, 511))
def lengths(n):
    a = x(8, n, n)
    return opjit.where(opjit.arange(n).reshape(1, 1, n) < a.graph.input((8, 1, 1), "float32", name="length"), a, -1e9)


@case("mask", "causal of m queries and n keys, 8 x m x n", {"m": (1, 512, 128), "n": (1, 1500, 512)},
      ((128, 512), (31, 700), (511, 511)))
def rectangles(m, n):
    return opjit.where(opjit.tri(m, n), x(8, m, n), -opjit.inf)


@many("sequence", ["arange n", "half of arange, plus 1", "ones n"], LONG, (65536, 20000, 131072, 100003))
def sequences(i, n):
    g = opjit.Graph()
    a = opjit.arange(n, dtype="float32") if i < 2 else opjit.ones((n,))
    a = a * 0.5 + 1.0 if i == 1 else a
    return [a, g.input((n,), name="x") + 1.0]


@many("sequence", ["eye n x n", "positions n x 64, sine"], N, (512, 300, 1024, 511))
def grids(i, n):
    if i == 0:
        return [opjit.eye(n), x(n) + 1.0]
    a = x(n, 1)
    return opjit.sin(opjit.arange(n, dtype="float32").reshape(n, 1) * a.graph.input((1, 64), name="z")) + a


# --- softmax and layer norm -------------------------------------------------------------------------------------------
@many("softmax", ["n x 512, rows", "512 x n, rows", "n x 768, along n", "768 x n, down", "8 x n x 31, along n",
                  "31 x n, down", "4 x n x 64, along n", "n x 100, rows", "n x n, rows", "12 x n x n, rows",
                  "log, n x 512, rows",
                  "log, 64 x n, rows"],
      N, (512, 130, 1024, 511, 1001))
def softmaxes(i, n):
    shape, axis = [((n, 512), 1), ((512, n), 1), ((n, 768), 0), ((768, n), 0), ((8, n, 31), 1), ((31, n), 0),
                   ((4, n, 64), 1), ((n, 100), 1), ((n, n), 1), ((12, n, n), 2), ((n, 512), 1), ((64, n), 1)][i]
    return (opjit.softmax if i < 10 else opjit.log_softmax)(x(*shape), axis)


@many("layer norm", ["n x 768, rows", "n x 100, rows", "n x 384, rows", "768 x n, rows", "n x 768, along n",
                     "8 x n x 64, over n", "residual, n x 768", "4 x n x 512, mean and variance by hand"],
      N, (512, 170, 1024, 511, 1001))
def norms(i, n):
    shape, axis = [((n, 768), 1), ((n, 100), 1), ((n, 384), 1), ((768, n), 1), ((n, 768), 0), ((8, n, 64), 1),
                   ((n, 768), 1), ((4, n, 512), 2)][i]
    a = x(*shape)
    if i == 7:
        c = a - opjit.mean(a, 2, True)
        return c / opjit.sqrt(opjit.mean(c * c, 2, True) + 1e-5)
    along = [s if d == axis else 1 for d, s in enumerate(shape)]
    b = a.graph.input(shape, name="b") + a if i == 6 else a
    return opjit.layer_norm(b, a.graph.input(along, name="scale"), a.graph.input(along, name="bias"), axis)


# --- pointwise chains -------------------------------------------------------------------------------------------------
@many("chain", ["n x 768, relu and sum", "n x 768, a row's bias, gelu", "n x 768, a column's scale", "n, 3 operations",
                "n x 1 + 1 x n", "4 x n x 64, two broadcasts", "n x 7, a row's bias", "n x 100, a row's bias",
                "n x 31 x n, a middle one's bias", "768 x n, a column's bias", "768 x n, a row's bias"], N,
      (512, 130, 1024, 511, 1001))
def chains(i, n):
    shape = [(n, 768), (n, 768), (n, 768), (n * 64,), (n, 1), (4, n, 64), (n * 64, 7), (n, 100), (n, 31, n), (768, n),
             (768, n)][i]
    a = x(*shape)
    b = [shape, (1, 768), (n, 1), shape, (1, n), (1, n, 64), (1, 7), (1, 100), (1, 31, 1), (768, 1), (1, n)][i]
    b = a.graph.input(b, name="b")
    if i == 0:
        return opjit.relu(a) + b
    if i == 1:
        return opjit.gelu(a + b)
    if i == 3:
        return opjit.sqrt(a * b + a)
    if i == 5:
        return opjit.tanh(a * b + a.graph.input((4, 1, 64), name="c"))
    return a * b + b


@many("chain", ["b x n x 96, a bias", "b x n x 96, of each batch", "b x 96 x n, of each row"],
      {"b": (1, 64, 8), "n": (1, 512, 128)}, ((8, 128), (3, 77), (64, 512), (1, 500), (17, 131)))
def batches(i, b, n):
    a = x(*((b, 96, n) if i == 2 else (b, n, 96)))
    return opjit.relu(a + a.graph.input([(1, 1, 96), (b, 1, 96), (1, 96, 1)][i], name="b"))


# --- reductions -------------------------------------------------------------------------------------------------------
@many("reduction", ["sum, n x 768, rows", "sum, n x 768, along n", "sum, 768 x n, rows", "sum, 768 x n, down",
                    "max, n x 768, rows", "max, 8 x n x 64, along n", "max, 768 x n, rows", "mean, n x n, down",
                    "argmax, n x 768", "argmax, 768 x n", "sum of all, n x 768", "cumsum, 64 x n", "cumsum, n x 64",
                    "sum, 8 x n x 31, along n", "sum of squares, n x 100"],
      N, (512, 170, 1024, 511, 1001))
def reductions(i, n):
    shape, axis = [((n, 768), 1), ((n, 768), 0), ((768, n), 1), ((768, n), 0), ((n, 768), 1), ((8, n, 64), 1),
                   ((768, n), 1), ((n, n), 0), ((n, 768), 1), ((768, n), 1), ((n, 768), None), ((64, n), 1),
                   ((n, 64), 0), ((8, n, 31), 1), ((n, 100), 1)][i]
    a = x(*shape)
    if i in (8, 9):
        return opjit.argmax(a, axis)
    if i in (11, 12):
        return opjit.cumsum(a, axis)
    if i == 14:
        return opjit.sum(a * a, axis)
    return (opjit.max if i in (4, 5, 6) else opjit.mean if i == 7 else opjit.sum)(a, axis)


# --- copies -----------------------------------------------------------------------------------------------------------
@many("copy", ["transposed n x 768", "transposed n x n", "heads, 4 x n x 12 x 64", "heads back, 4 x 12 x n x 64",
               "joined, n x 768 twice across", "joined, 2n x 768", "a part, n x 768", "padded, n x 768",
               "reversed, n x 768", "reversed, 64 x n", "rows by places, 3000 x 768", "tiled, 96 x n twice",
               "3 x n x 100 to 100 x n x 3", "joined, 64 x n and 64 x 65", "padded, 64 x n by 1 around"],
      N, (512, 130, 1024, 511, 1001))
def copies(i, n):
    if i in (0, 1):
        return opjit.transpose(x(n, [768, n][i]), (1, 0))
    if i in (2, 3):
        return opjit.transpose(x(*[(4, n, 12, 64), (4, 12, n, 64)][i - 2]), (0, 2, 1, 3))
    if i == 4:
        a = x(n, 768)
        return opjit.concatenate([a, a.graph.input((n, 768), name="b")], 1)
    if i == 5:
        a = x(n, 768)
        return opjit.concatenate([a, a.graph.input((n, 768), name="b")], 0)
    if i == 6:
        return x(n, 768)[:, 100:700]
    if i == 7:
        return opjit.pad(x(n, 768), [(1, 1), (3, 3)])
    if i in (8, 9):
        return opjit.flip(x(*[(n, 768), (64, n)][i - 8]), 1)
    if i == 10:
        a = x(3000, 768)
        return opjit.take(a, a.graph.input((n,), "int32", name="places"), 0)
    if i == 11:
        return opjit.tile(x(96, n), (1, 2))
    if i == 12:
        return opjit.transpose(x(3, n, 100), (2, 1, 0))
    if i == 13:
        a = x(64, n)
        return opjit.concatenate([a, a.graph.input((64, 65), name="b")], 1)
    return opjit.pad(x(64, n), [(1, 1), (1, 1)])


# --- products ---------------------------------------------------------------------------------------------------------
WIDTHS = [(768, 768), (768, 3072), (512, 1000), (4096, 4096), (64, 64), (100, 10)]


@many("product", [f"n x {k} x {c}, constant weights, bias" for k, c in WIDTHS], ROWS,
      (64, 1, 2, 3, 4, 5, 6, 7, 8, 17, 33, 128, 300, 512))
def layers(i, n):
    k, c = WIDTHS[i]
    a = x(n, k)
    return opjit.relu(a @ WEIGHTS[i] + a.graph.input((1, c), name="bias"))


WEIGHTS = [weights(None, k, c) for k, c in WIDTHS]


@many("product", ["n x 768 x 768", "768 x n x 768", "768 x 768 x n", "n x n x n", "n x 64 x n", "n x n x 64",
                  "n x 768 times 768 x 768 transposed", "64 x 768 times n x 768 transposed"], N,
      (512, 64, 130, 511, 1001))
def products(i, n):
    shapes = [((n, 768), (768, 768)), ((768, n), (n, 768)), ((768, 768), (768, n)), ((n, n), (n, n)),
              ((n, 64), (64, n)), ((n, n), (n, 64)),
              ((n, 768), (768, 768)), ((64, 768), (n, 768))][i]
    a = x(*shapes[0])
    b = a.graph.input(shapes[1], name="z")
    return a @ (opjit.transpose(b, (1, 0)) if i > 5 else b)


@many("product", ["m x k x n", "m x k x n, transposed"], {d: (1, 1024, 256) for d in "mkn"},
      ((256, 256, 256), (64, 300, 1000), (5, 512, 512), (511, 130, 77), (1000, 64, 64), (33, 1000, 129)))
def all_three(i, m, k, n):
    a = x(m, k)
    b = a.graph.input((n, k) if i else (k, n), name="z")
    return a @ (opjit.transpose(b, (1, 0)) if i else b)


@many("product", ["b x n x 64 x n, transposed", "b x n x n x 64", "b x n x 256 times constant 256 x 256"],
      {"b": (1, 32, 8), "n": (1, 512, 128)},
      ((8, 128), (12, 64), (3, 300), (32, 33), (1, 511)))
def batched(i, b, n):
    if i == 2:
        return x(b, n, 256) @ SQUARE
    a = x(b, n, 64 if i == 0 else n)
    z = a.graph.input((b, n, 64), name="z")
    return a @ (opjit.transpose(z, (0, 2, 1)) if i == 0 else z)


SQUARE = weights(None, 256, 256)


# --- measuring --------------------------------------------------------------------------------------------------------
def arrays(kernel):
    """Inputs of a kernel of one size."""
    made = {}
    for name, kind, shape in kernel.inputs:
        a = RANDOM.standard_normal(shape) if "float" in kind else RANDOM.integers(0, 100, shape)
        made[name] = np.asarray(a, kind)
    return made


def in_turns(one, other, seconds):
    """Median of ratios other ÷ one, least ns of one."""
    rounds = 1
    while True:
        begin = time.process_time_ns()
        for _ in range(rounds):
            one()
        if time.process_time_ns() - begin > 2e5:
            break
        rounds *= 2
    ratios, least, end = [], math.inf, time.process_time() + seconds
    while time.process_time() < end or len(ratios) < 7:
        a = time.process_time_ns()
        for _ in range(rounds):
            one()
        b = time.process_time_ns()
        for _ in range(rounds):
            other()
        c = time.process_time_ns()
        ratios.append((c - b) / (b - a))
        least = min(least, (b - a) / rounds)
    return sorted(ratios)[len(ratios) // 2], least


def compile_ms(make, times=3):
    least = math.inf
    for _ in range(times):
        begin = time.process_time()
        kernel = make()
        least = min(least, time.process_time() - begin)
    return kernel, least * 1e3


def measure(name, dims, sizes, function, given):
    def make(known):
        if known is dims:
            return compile_ms(lambda: opjit.compile(function, dims=dims, level=given.level), given.compiles)
        return compile_ms(lambda: opjit.compile(function(**known), level=given.level), given.compiles)

    measure_pair(name, dims, sizes, make, given)


def measure_pair(name, dims, sizes, make, given):
    """make(dims): a kernel for them and its compile in ms; with a number for each dimension one of one size."""
    try:
        dynamic, ms = make(dims)
    except opjit.Error as why:
        print(f"{name}: {why}", flush=True)
        return
    cells, worst = [], 0
    for size in sizes:
        known = dict(zip(dims, size))
        static, static_ms = make(known)
        feed = arrays(static)
        results = static(**feed)
        missing = {} if all(d in str(dynamic.inputs) for d in dims) else {"dims": known}
        same = dynamic(**feed, **missing)
        one, two = (r if isinstance(r, (list, tuple)) else [r] for r in (results, same))
        equal = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(one, two))
        one = two = same = None
        ratio, ns = in_turns(lambda: static(**feed, out=results), lambda: dynamic(**feed, out=results, **missing),
                             given.seconds)
        worst = max(worst, ratio)
        cells.append(f"{'x'.join(map(str, size))}: {ratio:.2f} ({ns / 1e3:.0f} us){'' if equal else ' DIFFERS'}")
    if worst > given.above:
        print(f"{name} [{ms:.1f} ms; {static_ms:.1f}]\n    " + ", ".join(cells), flush=True)


def parser():
    made = argparse.ArgumentParser()
    made.add_argument("text", nargs="*")
    made.add_argument("--seconds", type=float, default=0.1)
    made.add_argument("--above", type=float, default=0)
    made.add_argument("--level", default="quick")
    made.add_argument("--compiles", type=int, default=1)
    return made


def main():
    given = parser().parse_args()
    for name, dims, sizes, function in CASES:
        if not given.text or any(t in name for t in given.text):
            measure(name, dims, sizes, function, given)


if __name__ == "__main__":
    main()
