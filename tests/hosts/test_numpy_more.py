# SPDX-License-Identifier: Apache-2.0
"""Functions of the package that NumPy has too, the rest: what counts, finds places and makes sets, samples along a
line, polynomials, what ignores NaN, and what puts elements among others."""
import unittest

import numpy as np

import opjit
from host_support import cases
import test_numpy
from test_numpy import FLOATS, INTEGERS, run


class More(unittest.TestCase):
    setUp, array = test_numpy.Functions.setUp, test_numpy.Functions.array
    same, every = test_numpy.Functions.same, test_numpy.Functions.every

    def all_same(self, functions, *arrays, exact=True):
        for n, f in enumerate(functions):
            with self.subTest(case=n, dtype=arrays[0].dtype):
                self.same(f, *arrays, exact=exact)

    def test_counts(self):
        for dtype in INTEGERS:
            x = self.array((4, 9), dtype)
            want = np.bincount(x[x >= 0], minlength=25)
            np.testing.assert_array_equal(run(lambda x: opjit.bincount(x, length=25), x), want)
            np.testing.assert_array_equal(run(lambda x: opjit.bincount(x, length=3), x), want[:3])
        x, w = self.random.integers(0, 9, 50), self.random.random(50)
        got = run(lambda x, w: opjit.bincount(x, w, length=12), x, w)
        np.testing.assert_allclose(got, np.bincount(x, w, 12), 1e-14)
        for dtype in ("f4", "f8", "i4", "u1"):
            x, w = self.array((200,), dtype), self.array((200,), "f8")
            self.all_same([
                lambda m, x, w: m.histogram(x, np.array([0, 0.5, 1, 4]).astype(x.dtype)),
                lambda m, x, w: m.histogram(x, 6, (0, 3)), lambda m, x, w: m.histogram(x, 5, (2, 2)),
                lambda m, x, w: m.histogram(x, 7, weights=w),
                lambda m, x, w: m.histogram(x, np.array([0, 1, 3], x.dtype), density=True),
                lambda m, x, w: m.histogram2d(x, w, 3), lambda m, x, w: m.histogram2d(x, w, [2, 5], density=True),
                lambda m, x, w: m.histogram2d(x, w, 4, [(0, 2), (-1, 1)], weights=w)], x, w, exact=False)
            for bins in (1, 3, 10):
                self.same(lambda m, x: m.histogram(x, bins), x, exact=False)
                self.same(lambda m, x: m.histogram_bin_edges(x, bins), x, exact=False)
            self.same(lambda m, x: m.histogram(x[:1], 4), x, exact=False)

    def test_random_histograms(self):
        for seed in range(cases(30)):
            r = np.random.default_rng(seed)
            x = (r.standard_normal(r.integers(1, 300)) * 10.0 ** r.integers(-3, 4)).astype("f8")
            bins = int(r.integers(1, 40))
            with self.subTest(seed=seed):
                self.same(lambda m, x: m.histogram(x, bins)[0], x)

    def test_places(self):
        for dtype in ("f4", "i8", "u1", "?"):
            x = self.array((3, 5), dtype) * (self.array((3, 5), "i4") > -5).astype(dtype)
            count = np.count_nonzero(x)
            for size in (1, count, count + 4):
                def padded(y, fill=0):
                    y = np.asarray(y)[:size]
                    return np.concatenate([y, np.full((size - len(y), *y.shape[1:]), fill, y.dtype)])
                pairs = [(lambda x: opjit.flatnonzero(x, size=size), padded(np.flatnonzero(x))),
                         (lambda x: opjit.argwhere(x, size=size, fill_value=-1), padded(np.argwhere(x), -1)),
                         (lambda x: opjit.extract(x > 0, x, size=size), padded(np.extract(x > 0, x))),
                         (lambda x: opjit.compress([0, 1, 1], x, 1, size=2, fill_value=1),
                          np.compress([0, 1, 1], x, 1))]
                pairs += [(lambda x, d=d: opjit.nonzero(x, size=size, fill_value=7)[d], padded(at, 7))
                          for d, at in enumerate(np.nonzero(x))]
                for n, (f, want) in enumerate(pairs):
                    with self.subTest(dtype=dtype, size=size, case=n):
                        got = run(f, x)
                        self.assertEqual(got.dtype, want.dtype)
                        np.testing.assert_array_equal(got, want)
        x, at = self.array((3, 4, 5), "f4"), np.array([[-1, 2], [0, 7]])
        self.all_same([lambda m, x: m.take(x, at), lambda m, x: m.take(x, at % 3, 0), lambda m, x: x.take([1, 0], 2),
                       lambda m, x: m.take(x, at, -1, mode="wrap"), lambda m, x: m.take(x, at, 1, mode="clip"),
                       lambda m, x: m.take(x, at * 40, mode="wrap"), lambda m, x: x.take(3),
                       lambda m, x: x.take(2, 1)], x)
        at = np.array([3, 0, 59, 22], "i8")
        self.all_same([lambda m, x: m.unravel_index(x, (3, 4, 5)), lambda m, x: m.unravel_index(x[1:], (2, 60)),
                       lambda m, x: m.ravel_multi_index((x[:2], x[1:3] % 5), (4, 5)),
                       lambda m, x: m.ravel_multi_index((x, x), (4, 5), mode="wrap"),
                       lambda m, x: m.ravel_multi_index((x, x), (4, 5), mode="clip")], at)

    def test_sets(self):
        for dtype in ("i4", "u8", "f4", "f8"):
            x, y = self.array((6, 5), dtype) % 5, self.array((9,), dtype) % 7
            self.all_same([lambda m, x, y: m.isin(x, y), lambda m, x, y: m.isin(x, y[:1], invert=True)], x, y)
            functions = [lambda m, x, y, **n: m.unique(x, **n), lambda m, x, y, **n: m.union1d(x, y, **n),
                         lambda m, x, y, **n: m.intersect1d(x, y, **n), lambda m, x, y, **n: m.setdiff1d(x, y, **n),
                         lambda m, x, y, **n: m.setxor1d(m.unique(x, **n), m.unique(y, **n), **n)]
            for n, f in enumerate(functions[:-1]):
                with self.subTest(dtype=dtype, case=n):
                    want = f(np, x, y)
                    for size in (len(want), len(want) + 3, len(want) - 1):
                        if size > 0:
                            got = run(lambda x, y: f(opjit, x, y, size=size, fill_value=99), x, y)
                            np.testing.assert_array_equal(got, np.append(want, [99] * 3)[:size])
            want = np.unique(x, True, True, True)
            size = len(want[0]) + 2
            got = run(lambda x: opjit.unique(x, True, True, True, size=size), x)
            for a, b in zip(got, want):
                self.assertEqual(a.dtype, b.dtype)
                b = b if b.ndim > 1 else np.pad(b, (0, 2))
                np.testing.assert_array_equal(a, b)
        x = np.array([2, np.nan, 1, np.nan, -0.0, 0.0, 2])
        got = run(lambda x: opjit.unique(x, return_counts=True, size=4), x)
        np.testing.assert_array_equal(got, np.unique(x, return_counts=True))
        got = run(lambda x: opjit.unique(x, size=5, equal_nan=False), x)
        np.testing.assert_array_equal(got, np.unique(x, equal_nan=False))

    def test_orders(self):
        for dtype in ("i4", "f4"):
            x = self.array((4, 9), dtype)
            for k in (0, 3, -1, (2, 5)):
                y, at = run(lambda x: (opjit.partition(x, k), opjit.argpartition(x, k)), x)
                np.testing.assert_array_equal(np.take_along_axis(x, at.astype("i8"), 1), y)
                columns = list(np.atleast_1d(k))
                np.testing.assert_array_equal(y[:, columns], np.partition(x, k)[:, columns])
            self.all_same([lambda m, x: m.lexsort((x[0], x[1] % 3)), lambda m, x: m.lexsort((x, x[::-1] % 2)),
                           lambda m, x: m.lexsort(x % 3), lambda m, x: m.searchsorted(
                               x[0], x, sorter=m.argsort(x[0])), lambda m, x: m.array_equal(x, x),
                           lambda m, x: m.array_equal(x, x[:1]), lambda m, x: m.array_equiv(x[:1] + 0 * x, x[:1]),
                           lambda m, x: m.array_equiv(x, x[:2])], x)

    def test_nan(self):
        for dtype in FLOATS:
            x = np.array([[1, np.nan, -3, 3, 8, 2], [np.nan] * 6, [7, 0, -0.0, 7, np.nan, np.nan], [-2, 5, 4, 5, 1, 0]],
                         dtype)
            self.all_same([
                lambda m, x: m.nancumsum(x, 1), lambda m, x: m.nancumprod(x), lambda m, x: m.nanargmax(x[2:], 1),
                lambda m, x: m.nanargmin(x), lambda m, x: m.nanmedian(x, 1), lambda m, x: m.nanmedian(x, 0),
                lambda m, x: m.nanmedian(x), lambda m, x: m.nanquantile(x, 0.3, axis=1),
                lambda m, x: m.nanquantile(x, [0, 0.25, 1], axis=1, keepdims=True),
                lambda m, x: m.nanpercentile(x, [10, 99], axis=(0, 1)), lambda m, x: m.nanpercentile(x, 50, axis=0),
                lambda m, x: m.array_equal(x, x, equal_nan=True)], x, exact=dtype == "f8")
            if dtype != "f2":
                self.all_same([lambda m, x: m.nanvar(x, 1), lambda m, x: m.nanstd(x, 0, ddof=1),
                               lambda m, x: m.nanvar(x), lambda m, x: m.nanstd(x, -1, keepdims=True, ddof=3)], x,
                              exact=False)
        self.all_same([lambda m, x: m.nanmedian(x, 1), lambda m, x: m.nancumsum(x), lambda m, x: m.nanargmax(x, 0),
                       lambda m, x: m.nanvar(x, 0)], self.array((3, 4), "i4"), exact=False)

    def test_signals(self):
        for dtype in ("f4", "f8", "i4", "u1", "i8"):
            for a, b in ((7, 3), (3, 7), (5, 5), (4, 1), (200, 90), (90, 200), (71, 70)):
                x, y = self.array((a,), dtype) % 5, self.array((b,), dtype) % 5
                self.all_same([lambda m, x, y, f=f, mode=mode: getattr(m, f)(x, y, mode) for f in (
                    "convolve", "correlate") for mode in ("valid", "same", "full")] + [
                        lambda m, x, y: m.convolve(x, y), lambda m, x, y: m.correlate(x, y)], x, y)
        for dtype in ("f8", "f4", "i4"):
            xp, fp = np.unique(self.array((9,), dtype)), self.array((9,), dtype)
            x = self.array((4, 6), dtype)
            fp = fp[:len(xp)]
            self.all_same([lambda m, x, xp, fp: m.interp(x, xp, fp), lambda m, x, xp, fp: m.interp(x, xp, fp, -99, 99),
                           lambda m, x, xp, fp: m.interp(x, xp[:1], fp[:1], left=5),
                           lambda m, x, xp, fp: m.interp(x, xp[::-1], fp, period=97)], x, xp, fp, exact=False)
            y = self.array((5, 6), dtype)
            self.all_same([
                lambda m, y: m.trapezoid(y), lambda m, y: m.trapezoid(y, axis=0, dx=0.5),
                lambda m, y: m.trapezoid(y, np.array([0, 1, 3, 4, 4.5, 7], "f4" if y.dtype == "float32" else "f8")),
                lambda m, y: m.trapezoid(y, y, axis=0), lambda m, y: m.gradient(y), lambda m, y: m.gradient(y, 2.0),
                lambda m, y: m.gradient(y, axis=1, edge_order=2), lambda m, y: m.gradient(y, 0.5, 3.0, edge_order=2),
                lambda m, y: m.gradient(y[0], np.array([0, 1, 3, 4, 4.5, 7], "f4" if y.dtype == "float32" else "f8"),
                                        edge_order=2), lambda m, y: m.gradient(y[:2], axis=0),
                lambda m, y: m.unwrap(y), lambda m, y: m.unwrap(y, axis=0, period=4),
                lambda m, y: m.unwrap(y, discont=5.0)], y, exact=False)
        x = np.array([np.nan, np.inf, -np.inf, 1, 2.5])
        self.same(lambda m, x: m.interp(x, np.array([0.0, 1, 2, 3]), np.array([np.inf, 1, np.inf, -np.inf])), x)

    def test_random_interp(self):
        for seed in range(cases(30)):
            r = np.random.default_rng(seed)
            xp = np.sort(r.integers(-50, 50, r.integers(1, 20)) / 4 + (r.random() if seed % 2 else 0))
            xp = np.unique(xp)
            fp, x = r.standard_normal(len(xp)), np.concatenate([xp, r.uniform(-15, 15, 20)])
            with self.subTest(seed=seed):
                self.same(lambda m, x, xp, fp: m.interp(x, xp, fp), x, xp, fp, exact=False)

    def test_variables(self):
        x = self.array((5, 40), "f2")
        self.all_same([lambda m, x: m.var(x, 1), lambda m, x: m.std(x, 0, ddof=1), lambda m, x: m.mean(x, 1)], x,
                      exact=False)
        for dtype in ("f4", "f8", "i4"):
            x, y = self.array((3, 8), dtype), self.array((2, 8), dtype)
            self.all_same([
                lambda m, x, y: m.cov(x), lambda m, x, y: m.cov(x, y), lambda m, x, y: m.cov(x[0], y[0]),
                lambda m, x, y: m.cov(x[0]), lambda m, x, y: m.cov(x.T, rowvar=False, bias=True),
                lambda m, x, y: m.cov(x, ddof=3), lambda m, x, y: m.corrcoef(x), lambda m, x, y: m.corrcoef(x[0], y[1]),
                lambda m, x, y: m.corrcoef(x[0])], x, y, exact=False)

    def test_polynomials(self):
        for dtype in ("f8", "f4", "i4", "i8"):
            p, q, x = self.array((4,), dtype) % 3 + 1, self.array((3,), dtype) % 3 + 1, self.array((2, 3), dtype) % 4
            self.all_same([
                lambda m, p, q, x: m.polyval(p, x), lambda m, p, q, x: m.polyadd(p, q),
                lambda m, p, q, x: m.polysub(q, p), lambda m, p, q, x: m.polymul(p, q), lambda m, p, q, x: m.polyder(p),
                lambda m, p, q, x: m.polyder(p, 2), lambda m, p, q, x: m.vander(q), lambda m, p, q, x: m.vander(q, 2),
                lambda m, p, q, x: m.vander(q, 5, increasing=True)], p, q, x)
            if dtype[0] == "f":
                self.all_same([lambda m, p, q, x: m.polyint(p), lambda m, p, q, x: m.polyint(p, 2, [3, 1])], p, q, x,
                              exact=False)

    def test_moves(self):
        functions = [
            lambda m, x: m.ediff1d(x), lambda m, x: m.ediff1d(x, [1, 2], 3), lambda m, x: m.ediff1d(x, to_end=[1]),
            lambda m, x: m.matrix_transpose(x), lambda m, x: m.rollaxis(x, 2), lambda m, x: m.rollaxis(x, 0, 3),
            lambda m, x: m.rollaxis(x, -1, 1), lambda m, x: m.resize(x, (7, 11)), lambda m, x: m.resize(x, 5),
            lambda m, x: m.delete(x, 1, 0), lambda m, x: m.delete(x, [0, -1, 3], 2), lambda m, x: m.delete(x, 7),
            lambda m, x: m.delete(x, slice(None, None, 2), 1), lambda m, x: m.insert(x, 1, 9),
            lambda m, x: m.insert(x, 2, 1, axis=1), lambda m, x: m.insert(x, [0, 3, 3], 5, axis=2),
            lambda m, x: m.insert(x, -1, x[:, :, 0], axis=2),
            lambda m, x: m.insert(x, [1, 4], x[:, :2], axis=1), lambda m, x: m.insert(x[0, 0], 5, x[0, 1]),
            lambda m, x: m.diagflat(x[0, :2]), lambda m, x: m.diagflat(x[0, 0], -1),
            lambda m, x: m.unstack(x, axis=1), lambda m, x: m.row_stack([x[0], x[1]]) if hasattr(np, "row_stack") else
            m.vstack([x[0], x[1]]), lambda m, x: m.copy(x), lambda m, x: m.astype(x, "f8"),
            lambda m, x: m.amax(x, 1), lambda m, x: m.amin(x), lambda m, x: m.conj(x), lambda m, x: m.real(x),
            lambda m, x: m.imag(x),
            lambda m, x: m.cumulative_sum(x, axis=1), lambda m, x: m.cumulative_sum(x, axis=0, include_initial=True),
            lambda m, x: m.cumulative_prod(x % 3, axis=-1, include_initial=True)]
        self.every(functions, ["f4", "i8", "i4"], (3, 4, 5))
        self.assertEqual((opjit.shape(np.ones((2, 3))), opjit.ndim(np.ones(3)), opjit.size(np.ones((2, 3)), 1)),
                         ((2, 3), 1, 3))
        x = self.array((3, 4), "f4")
        for name, args in (("put", ([1, -1, 5], [7, 8])), ("put", ([0], 3)), ("putmask", (x > 1, [1, 2, 3])),
                           ("putmask", (x < 1, 4))):
            want = x.copy()
            getattr(np, name)(want, *args)
            np.testing.assert_array_equal(run(lambda x: getattr(opjit, name)(x, *args), x), want)

    def test_elements(self):
        self.every([lambda m, x: m.gcd(x, x.T), lambda m, x: m.gcd(x, 12), lambda m, x: m.lcm(m.abs(x) % 9, x.T % 7),
                    lambda m, x: m.bitwise_count(x), lambda m, x: m.bitwise_invert(x),
                    lambda m, x: m.bitwise_left_shift(x, 1), lambda m, x: m.bitwise_right_shift(x, 1),
                    lambda m, x: m.choose((x % 3).astype("i4"), [x, x + 1, x.T])], INTEGERS, (5, 5))
        self.every([lambda m, x: m.choose(x, [x, x.T], mode="wrap"), lambda m, x: m.choose(x, [x, x.T], mode="clip")],
                   ["i4", "i8"], (5, 5))
        x = np.array([[1836311903, 0, 2**31 - 1, 12], [1134903170, 0, 2**31 - 2, -18]], "i4")
        self.same(lambda m, x: m.gcd(x[0], x[1]), x)
        x = np.array([[7540113804746346429, 2**63 - 1], [4660046610375530309, 7]], "i8")
        self.same(lambda m, x: m.gcd(x[0], x[1]), x)
        for dtype in FLOATS:
            x = np.array([1.5, -2.25, -0.0, 3, -4, np.inf, -np.inf, np.nan, 0.1], dtype)
            self.all_same([lambda m, x: m.modf(x), lambda m, x: m.divmod(x[:5], m.full_like(x[:5], 0.75))], x)
            self.assertEqual([np.signbit(a).tolist() for a in run(opjit.modf, x[:5])],
                             [np.signbit(a).tolist() for a in np.modf(x[:5])])
        self.every([lambda m, x: m.logaddexp2(x, x.T)], ["f4", "f8"], (3, 3), exact=False)

    def test_quotients(self):
        """Rounded down, without what rounding of a / b adds: 1 // 0.1 is 9."""
        for dtype in FLOATS:
            some = np.array([0, -0.0, 1, -1, 0.1, -0.1, 0.3, 3, -3, np.inf, -np.inf, np.nan, 1e4, -1e-3, 2.5], dtype)
            a = np.concatenate([np.repeat(some, len(some)), (self.random.integers(-50, 50, 500) / 10).astype(dtype)])
            b = np.concatenate([np.tile(some, len(some)), (self.random.integers(-9, 9, 500) / 10).astype(dtype)])
            self.all_same([lambda m, a, b: a // b, lambda m, a, b: m.floor_divide(a, b), lambda m, a, b: a % b,
                           lambda m, a, b: m.divmod(a, b), lambda m, a, b: 7 // b], a, b)
            got, want = run(lambda a, b: a // b, a, b), a // b
            np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))

    def test_one(self):
        """Sizes of 1, one dimension, and bounds that the type has not."""
        x = self.array((1, 3), "f8")
        self.all_same([lambda m, x: m.unwrap(x, axis=0), lambda m, x: m.trapezoid(x, axis=0), lambda m, x: m.tril(x[0]),
                       lambda m, x: m.swapaxes(x[0], 0, -1), lambda m, x: m.triu(x[0], 1)], x)
        for dtype in INTEGERS:
            x = self.array((5,), dtype)
            self.all_same([lambda m, x: m.clip(x, -2, 300), lambda m, x: m.clip(x, -1000, 2),
                           lambda m, x: m.heaviside(x, x[::-1])], x)

    def test_generated(self):
        for dtype in ("f4", "f8"):
            for f, args in ((f, args) for f, rows in (
                    ("hanning", [(1,), (2,), (8,), (9,)]), ("hamming", [(1,), (5,)]), ("blackman", [(1,), (12,)]),
                    ("bartlett", [(1,), (6,), (7,)])) for args in rows):
                np.testing.assert_allclose(opjit.compile(getattr(opjit, f)(*args, dtype=dtype))(),
                                           getattr(np, f)(*args).astype(dtype), 1e-6, 1e-9)
            for f, args in (("geomspace", (1, 1000, 7)), ("geomspace", (-8, -0.5, 5)), ("logspace", (0, 3, 9)),
                            ("logspace", (1, 4, 4, False, 2)), ("geomspace", (2, 5, 4, False))):
                np.testing.assert_allclose(opjit.compile(getattr(opjit, f)(*args, dtype=dtype))(),
                                           getattr(np, f)(*args, dtype=dtype), 1e-6)

    def test_dynamic(self):
        """With sizes that change from call to call."""
        def build(n):
            g = opjit.Graph()
            x = g.input((n,), name="x")
            return {"a": opjit.convolve(x, [0.25, 0.5, 0.25], "same"), "b": opjit.gradient(x), "c": opjit.trapezoid(x)}
        kernel = opjit.compile(build, dims={"n": (4, 40, 8)})
        for n in (4, 7, 40):
            x = self.array((n,), "f4")
            for a, b in zip(kernel(x), (np.convolve(x, np.array([0.25, 0.5, 0.25], "f"), "same"), np.gradient(x),
                                        [np.trapezoid(x)])):
                np.testing.assert_allclose(a, b, 1e-6)

    def test_refused(self):
        x = opjit.Graph().input((2, 3))
        whole = x.astype("i4")
        for wrong, kind, line in (
                (lambda: opjit.bincount(whole), ValueError, "bincount: how many bins there are is not known before"),
                (lambda: opjit.bincount(x, length=3), TypeError, "bincount: float32, must be whole numbers"),
                (lambda: opjit.bincount(whole, None, 5, length=3), ValueError, "bincount: length 3, must be at least"),
                (lambda: opjit.bincount(whole, [1.0], length=3), ValueError, "bincount: 1 weights, must be 6"),
                (lambda: opjit.nonzero(x), ValueError, "nonzero: how many there are is not known before the kernel"),
                (lambda: opjit.unique(x), ValueError, "unique: how many there are is not known before the kernel runs"),
                (lambda: opjit.intersect1d(x, x), ValueError, "intersect1d: how many there are is not known"),
                (lambda: opjit.argwhere(x, size=0), ValueError, "argwhere: size 0, must be at least 1"),
                (lambda: opjit.compress([1] * 4, x, 0, size=1), ValueError, "compress: 4 conditions, must be at "),
                (lambda: opjit.histogram(x, 0), ValueError, "histogram: 0 bins, must be at least 1"),
                (lambda: opjit.histogram(x, 3, (2, 1)), ValueError, "histogram: range 2 to 1, must not decrease"),
                (lambda: opjit.histogram(x, [1.0]), ValueError, r"histogram: edges \[1\], must be one dimension of 2"),
                (lambda: opjit.histogram(x, 2, weights=[1.0]), ValueError, "histogram: 1 weights, must be 6"),
                (lambda: opjit.histogram2d(x, x[0]), ValueError, "histogram2d: 6 x and 3 y, must be as many"),
                (lambda: opjit.partition(x, 3), ValueError, "partition: kth 3, must be -3 to 2"),
                (lambda: opjit.ravel_multi_index((x,), (2, 3)), ValueError, "ravel_multi_index: 1 indices, must be 2"),
                (lambda: opjit.nanquantile(x, -1), ValueError, "nanquantile: -1, must be 0 to 1"),
                (lambda: opjit.convolve(x, x), ValueError, "correlate: 2 dimensions, must be 1"),
                (lambda: opjit.convolve(x[0], x[0], "all"), ValueError, "convolve: mode 'all', must be"),
                (lambda: opjit.interp(x, x, x), ValueError, r"interp: xp \[2, 3\] and fp \[2, 3\], must have one"),
                (lambda: opjit.gradient(x, edge_order=3), ValueError, "gradient: edge_order 3, must be 1 or 2"),
                (lambda: opjit.gradient(x, edge_order=2), ValueError, "gradient: dimension 0 has size 2, must be at "),
                (lambda: opjit.gradient(x, [1.0, 2.0]), ValueError, "gradient: 1 distances, must be one number or 2"),
                (lambda: opjit.cov(x[0, :1]), ValueError, "cov: 1 observations, must be more than 1"),
                (lambda: opjit.polyint(x[0], 2, [1]), ValueError, "polyint: 1 constants, must be 2"),
                (lambda: opjit.vander(x[0], 0), ValueError, "vander: 0 columns, must be at least 1"),
                (lambda: opjit.delete(x, 2, 0), IndexError, "delete: index 2, must be -2 to 1"),
                (lambda: opjit.delete(x, [0, 1], 0), ValueError, "delete: all of 2 elements, must be fewer"),
                (lambda: opjit.delete(x, whole, 0), TypeError, "delete: a tensor given, and which elements it names"),
                (lambda: opjit.insert(x, 7, 1), IndexError, "insert: index 7, must be -6 to 6"),
                (lambda: opjit.resize(x, (0, 3)), ValueError, r"resize: \(0, 3\), sizes must be at least 1"),
                (lambda: opjit.gcd(x, x), TypeError, "gcd: float32, must be whole numbers"),
                (lambda: opjit.choose(whole, [x, x], "all"), ValueError, "choose: mode 'all', must be"),
                (lambda: opjit.cumulative_sum(x), ValueError, "cumulative_sum: axis None of 2 dimensions"),
                (lambda: opjit.geomspace(-1, 1), ValueError, "geomspace: -1 to 1, must have one sign and not be 0"),
                (lambda: opjit.hanning(0), ValueError, "hanning: 0 numbers, must be at least 1")):
            with self.assertRaisesRegex(kind, line):
                wrong()
        self.assertEqual((x + 1).shape, (2, 3))  # none of these reached the graph


if __name__ == "__main__":
    unittest.main()
