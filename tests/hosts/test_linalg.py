# SPDX-License-Identifier: Apache-2.0
"""opjit.linalg beside numpy.linalg, and functions of powers, polynomials and products beside NumPy's."""
import unittest

import numpy as np

import opjit
from host_support import cases


def run(f, *arrays):
    graph = opjit.Graph()
    return opjit.compile(f(*[graph.input(a.shape, a.dtype) for a in arrays]))(*arrays)


class Linalg(unittest.TestCase):
    def close(self, f, *arrays, tolerance=1e-9):
        got, want = run(lambda *x: f(opjit.linalg, *x), *arrays), f(np.linalg, *arrays)
        self.assertEqual((got.shape, got.dtype), (np.atleast_1d(want).shape, np.asarray(want).dtype))
        np.testing.assert_allclose(got, np.atleast_1d(want), tolerance, tolerance)

    def test_norms(self):
        x = np.random.default_rng(1).standard_normal((3, 4, 5))
        for f in [lambda m, x: m.norm(x), lambda m, x: m.norm(x[0]), lambda m, x: m.norm(x[0], "fro"),
                  lambda m, x: m.norm(x, axis=(0, 2)), lambda m, x: m.vector_norm(x, axis=(0, 1)),
                  lambda m, x: m.matrix_norm(x), lambda m, x: m.matrix_norm(x, keepdims=True, ord=1),
                  lambda m, x: m.norm(x.astype("int32"), axis=1)] + [
                lambda m, x, ord=ord: m.norm(x, ord, 1, True) for ord in (0, 1, 2, 3, 0.5, np.inf, -np.inf)] + [
                lambda m, x, ord=ord: m.norm(x, ord, (2, 0)) for ord in (1, -1, np.inf, -np.inf, "fro")]:
            self.close(f, x)

    def test_products(self):
        r = np.random.default_rng(1)
        x = r.standard_normal((2, 4, 4))
        for n in (0, 1, 2, 5, -1, -3):
            self.close(lambda m, x: m.matrix_power(x, n) + x, x, tolerance=1e-6)
        a, b, c, v, w = (r.standard_normal(s) for s in ((3, 4), (4, 5), (5, 2), 3, 2))
        self.close(lambda m, a, b, c: m.multi_dot([a, b, c]), a, b, c)
        self.close(lambda m, a, b, c, v: m.multi_dot([v, a, b, c]), a, b, c, v)
        self.close(lambda m, a, b, c, v, w: m.multi_dot([v, a, b, c, w]), a, b, c, v, w)
        self.close(lambda m, a, b: m.multi_dot([a, b]), a, b)
        self.close(lambda m, x: m.matrix_transpose(x) + m.diagonal(x)[:, None] + m.trace(x)[:, None, None], x)

    def test_elimination(self):
        for seed in range(cases(12)):
            r = np.random.default_rng(seed)
            size, batch = int(r.integers(1, 9 if seed else 17)), ((), (3,), (2, 3))[seed % 3]
            a = r.standard_normal((*batch, size, size))
            if seed % 2 and size > 1:
                a[..., 0, 0] = 0  # so that rows are exchanged
            with self.subTest(seed=seed, shape=a.shape):
                self.close(lambda m, a: m.inv(a), a, tolerance=1e-7)
                self.close(lambda m, a: m.det(a), a, tolerance=1e-9)
                self.close(lambda m, a: m.slogdet(a)[0], a)
                self.close(lambda m, a: m.slogdet(a)[1], a, tolerance=1e-9)
                self.close(lambda m, a, b: m.solve(a, b), a, r.standard_normal((*batch, size, 2)), tolerance=1e-7)
                self.close(lambda m, a, b: m.solve(a, b), a, r.standard_normal(size), tolerance=1e-7)
        self.close(lambda m, a: m.det(a), np.zeros((3, 3)) + [[1], [0], [2]] * np.eye(3))
        f = np.eye(3, dtype="f") * 4
        self.close(lambda m, a: m.inv(a), f)

    def test_powers_of_two(self):
        r = np.random.default_rng(1)
        for dtype, least, most in (("f2", -24, 15), ("f4", -149, 127), ("f8", -1074, 1023)):
            x = np.ldexp(r.standard_normal(2000), r.integers(least, most, 2000)).astype(dtype)
            x[:9] = [0, -0.0, np.inf, -np.inf, np.nan, 1, 0.5, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal]
            for got, want in zip(run(opjit.frexp, x), np.frexp(x)):
                np.testing.assert_array_equal(got, want)
                self.assertEqual(got.dtype, want.dtype)
            e = r.integers(-40, 40, 2000).astype("i4")
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(run(opjit.ldexp, x, e), np.ldexp(x, e))
                np.testing.assert_array_equal(run(lambda x: opjit.ldexp(x, 3), x), np.ldexp(x, 3))
                np.testing.assert_array_equal(run(lambda x: opjit.ldexp(x, 5000), x), np.ldexp(x, 5000))

    def test_polynomials(self):
        r = np.random.default_rng(1)
        x, y = np.sort(r.standard_normal(50)), r.standard_normal(50)
        for deg in (0, 1, 3, 7):
            np.testing.assert_allclose(run(lambda x, y: opjit.polyfit(x, y, deg), x, y), np.polyfit(x, y, deg), 1e-9)
        z = r.standard_normal((50, 3))
        np.testing.assert_allclose(run(lambda x, z: opjit.polyfit(x, z, 2), x, z), np.polyfit(x, z, 2), 1e-9)
        np.testing.assert_allclose(run(opjit.poly, x[:5]), np.poly(x[:5]), 1e-12)
        with self.assertRaisesRegex(ValueError, "polyfit: degree 50, must be 0 to 49"):
            run(lambda x, y: opjit.polyfit(x, y, 50), x, y)

    def test_others(self):
        a, x = np.arange(24.0).reshape(2, 3, 4), np.arange(4.0)
        np.testing.assert_array_equal(run(opjit.matvec, a, x), np.matvec(a, x))
        np.testing.assert_array_equal(run(opjit.vecmat, x[:3], a), np.vecmat(x[:3], a))
        np.testing.assert_array_equal(opjit.compile(opjit.indices((2, 3)).join(opjit.Graph()))(), np.indices((2, 3)))
        self.assertEqual(run(lambda x: x + opjit.empty_like(x) + opjit.empty(4), x).tolist(), x.tolist())

    def test_refusals(self):
        x = opjit.Graph().input((2, 3, 4))
        for wrong, line in ((lambda: opjit.linalg.inv(x), r"inv: \[2, 3, 4\], must be square matrices"),
                            (lambda: opjit.linalg.norm(x, 1), "norm: ord 1 of 3 dimensions"),
                            (lambda: opjit.linalg.matrix_norm(x, ord="nuc"), "norm: ord 'nuc' of matrices"),
                            (lambda: opjit.linalg.det(opjit.Graph().input((17, 17))), "det: 17 rows, must be at most"),
                            (lambda: opjit.linalg.multi_dot([x]), "multi_dot: 1 matrices, must be at least 2")):
            with self.assertRaisesRegex(ValueError, line):
                wrong()


if __name__ == "__main__":
    unittest.main()
