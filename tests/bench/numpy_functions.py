# SPDX-License-Identifier: Apache-2.0
"""numpy_functions.py [--rounds N] [--only TEXT] - functions that the package has as NumPy has them, beside NumPy:
microseconds of a call on one thread, in turns, the least of the rounds in the thread's processor time, and the time it
took to compile.  Of einsum the third number is NumPy's with optimize=True.

    OPENBLAS_NUM_THREADS=1 PYTHONPATH=build/release/python python3 tests/bench/numpy_functions.py
"""
import argparse
import time

import numpy as np

import opjit

R = np.random.default_rng(1)


def f(*shape):
    return R.standard_normal(shape).astype("f")


def whole(least, most, *shape, dtype="i8"):
    return R.integers(least, most, shape).astype(dtype)


def named(name, *arrays, **more):
    """The case of a function of that name."""
    return name, lambda m, *x: getattr(m, name)(*x, **more), *arrays


def einsum(text, *arrays):
    return f"einsum {text}", lambda m, *x: m.einsum(text, *x), *arrays


def bounded(name, said, *arrays):
    """The case of a function that opjit is told a size of."""
    return name, lambda m, *x: getattr(m, name)(*x, **(said if m is opjit else {})), *arrays


def cases():
    yield einsum("bij,bjk->bik", f(32, 64, 64), f(32, 64, 64))
    yield einsum("bihd,bjhd->bhij", f(2, 64, 8, 64), f(2, 64, 8, 64))
    yield einsum("nb,nb->n", f(1000, 64), f(1000, 64))
    yield einsum("nb,nb->b", f(1000, 64), f(1000, 64))
    yield einsum("ab,cb,b->ac", f(100, 100), f(100, 100), f(100))
    yield "median of 10^6", lambda m, x: m.median(x), f(10**6)
    yield named("median", f(1000, 1000), axis=1)
    yield "percentiles 10, 50, 90", lambda m, x: m.percentile(x, [10, 50, 90]), f(100000)
    yield named("nanmedian", np.where(f(1000, 100) > 1, np.nan, f(1000, 100)), axis=1)
    yield named("sort", f(1000, 1000))
    yield named("argsort", f(1000, 1000))
    yield "partition", lambda m, x: m.partition(x, 100, 1), f(1000, 1000)
    yield "take, e^x", lambda m, x, at: m.exp(m.take(x, at)), f(100), whole(-100, 100, 100000)
    for size in (10, 100, 10000):
        yield f"searchsorted in {size}", lambda m, a, x: m.searchsorted(a, x), np.sort(f(size)), f(100000)
    yield named("isin", whole(0, 1000, 100000), whole(0, 1000, 100))
    yield bounded("unique", {"size": 1000}, whole(0, 1000, 10000))
    yield bounded("nonzero", {"size": 50000}, f(1000, 100) > 0)
    yield bounded("bincount", {"length": 100}, whole(0, 100, 100000))
    yield "histogram of 10 bins", lambda m, x: m.histogram(x, 10)[0], f(100000)
    yield "histogram of 100 bins from -3 to 3", lambda m, x: m.histogram(x, 100, (-3, 3))[0], f(100000)
    yield named("interp", R.random(100000), np.sort(R.random(1000)), R.random(1000))
    for size in (5, 31, 1000):
        yield f"convolve with {size}", lambda m, x, y: m.convolve(x, y), f(100000 if size < 100 else 10000), f(size)
    yield named("gradient", f(1000, 1000))
    yield named("trapezoid", f(1000, 1000))
    yield named("unwrap", R.random(100000) * 20)
    yield named("cov", R.random((50, 2000)))
    yield named("polyval", f(8), f(100000))
    yield named("gcd", whole(0, 1000, 100000, dtype="i4"), whole(0, 1000, 100000, dtype="i4"))
    yield named("cbrt", f(100000))
    yield named("hypot", f(100000), f(100000))
    yield named("cumsum", f(10**6))
    yield named("var", f(1000, 1000), axis=1)
    yield named("nanvar", f(1000, 1000), axis=1)


def kernel(function, arrays):
    graph = opjit.Graph()
    y = function(opjit, *[graph.input(a.shape, a.dtype) for a in arrays])
    return opjit.compile(list(y) if isinstance(y, tuple) else y, level="peak")


def measured(ways, rounds):
    """The least microseconds of each way."""
    counts, least = [], [float("inf")] * len(ways)
    for way in ways:
        way()
        begin = time.thread_time()
        way()
        counts.append(max(1, int(0.015 / max(1e-7, time.thread_time() - begin))))
    for _ in range(rounds):
        for n, way in enumerate(ways):
            begin = time.thread_time()
            for _ in range(counts[n]):
                way()
            least[n] = min(least[n], (time.thread_time() - begin) / counts[n] * 1e6)
    return least


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    np.seterr(all="ignore")
    print("| function | opjit, us | NumPy | ratio | compile, ms |\n| --- | --- | --- | --- | --- |")
    for name, function, *arrays in cases():
        if options.only not in name:
            continue
        begin = time.perf_counter()
        k = kernel(function, arrays)
        compiling = time.perf_counter() - begin
        ways = [lambda: k(*arrays), lambda: function(np, *arrays)]
        if name.startswith("einsum"):
            ways.append(lambda: np.einsum(name.split()[1], *arrays, optimize=True))
        ours, *theirs = measured(ways, options.rounds)
        print(f"| {name} | {ours:.0f} | {'; '.join(f'{t:.0f}' for t in theirs)} | {ours / min(theirs):.2f} | "
              f"{compiling * 1e3:.0f} |", flush=True)


if __name__ == "__main__":
    main()
