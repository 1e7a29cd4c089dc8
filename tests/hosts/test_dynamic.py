# SPDX-License-Identifier: Apache-2.0
"""Kernels with dynamic dimensions in Python: bits of the kernels of one size, dimensions out of arrays' shapes, models,
what is refused."""
import copy
import gc
import pickle
import tracemalloc
import unittest

import numpy as np

import opjit


def numbers(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype("f")


def joined(n, m):
    g = opjit.Graph()
    a, b = g.input((n, 24), name="a"), g.input((m, 24), name="b")
    return {"both": opjit.concatenate([a, b], axis=0), "scaled": a * 0.5}


def causal(length):
    g = opjit.Graph()
    scores = g.input((3, length, length), name="scores")
    return opjit.softmax(opjit.where(opjit.tri(length, length), scores, -opjit.inf))


class Dynamic(unittest.TestCase):
    def same(self, function, kernel, sizes, *arrays):
        fixed = opjit.compile(function(**sizes))
        want, got = fixed(*arrays), kernel(*arrays)
        for w, g in zip(want if isinstance(want, tuple) else (want,), got if isinstance(got, tuple) else (got,)):
            self.assertEqual((g.dtype, g.shape, g.tobytes()), (w.dtype, w.shape, w.tobytes()))

    def test_one_kernel_for_many_sizes(self):
        kernel = opjit.compile(causal, dims={"length": (1, 96, 48)})
        for n in (1, 2, 7, 48, 96):
            self.same(causal, kernel, {"length": n}, numbers(3, n, n))
        self.assertEqual(kernel.dims, {"length": (1, 96)})
        self.assertEqual(kernel.inputs, (("scores", "float32", (3, "length", "length")),))
        self.assertIn("[3, length, length]", repr(kernel))
        self.assertIn("<svg", kernel._repr_svg_())

    def test_multiples(self):
        def halved(n):
            g = opjit.Graph()
            return opjit.max(g.input((n // 4, 4, 3), name="x").reshape((n // 2, 2, 3)), 1)
        kernel = opjit.compile(halved, dims={"n": (4, 400, 80, 4)})
        for n in (4, 8, 100, 400):
            self.same(halved, kernel, {"n": n}, numbers(n // 4, 4, 3))
        self.assertEqual(kernel.dims, {"n/4": (1, 100)})
        self.assertEqual(kernel(numbers(2, 4, 3), dims={"n/4": 2}).shape, (4, 3))

    def test_quotients(self):
        def halved(n):
            g = opjit.Graph()
            return opjit.maximum(g.input((n, 3), name="x")[:(n + 1) // 2], 0)
        kernel = opjit.compile(halved, dims={"n": (2, 80, 40)})
        for n in range(2, 81):
            self.same(halved, kernel, {"n": n}, numbers(n, 3))
        self.assertEqual(kernel.outputs[0][2], ("((n + 1)//2)", 3))

    def test_two_dimensions(self):
        kernel = opjit.compile(joined, dims={"n": (1, 200, 100), "m": (1, 200)}, level="peak")
        for n, m in ((1, 1), (5, 100), (200, 3)):
            self.same(joined, kernel, {"n": n, "m": m}, numbers(n, 24), numbers(m, 24, seed=2))
        both = np.empty((7, 24), "f"), np.empty((3, 24), "f")
        self.assertIs(kernel(b=numbers(4, 24), a=numbers(3, 24), out=both)[0], both[0])

    def test_parts_with_other_bounds(self):
        """Code for few rows and for more is one only where it does not rely on how many there are: the maxima's, for 32
        rows and more, wrote behind those of fewer."""
        def maxima(n, m):
            g = opjit.Graph()
            x = opjit.softmax(g.input((n, m, 4), name="x"))
            most = opjit.max(x, 1)
            return {"both": opjit.concatenate([x, x]), "means": opjit.mean(most, 1, keepdims=True),
                    "most": opjit.ops.element_wise_identity(most)}
        kernel = opjit.compile(maxima, dims={"n": (1, 300, 4), "m": (1, 300, 4)}, level="quick")
        for n, m in ((4, 3), (2, 2), (7, 3), (9, 1), (40, 2), (50, 9)):
            self.same(maxima, kernel, {"n": n, "m": m}, numbers(n, m, 4))
            memory = [np.full(size + 400, 7, "f") for size in (8 * n * m, n, 4 * n)]
            kernel(numbers(n, m, 4), dims={"n": n, "m": m}, out=tuple(
                x[:-400].reshape(shape) for x, shape in zip(memory, ((2 * n, m, 4), (n, 1), (n, 4)))))
            for x in memory:
                self.assertTrue((x[-400:] == 7).all(), (n, m))

    def test_shapes_that_follow(self):
        def flat(n):
            g = opjit.Graph()
            return opjit.relu(g.input((n, 6), name="x")).reshape((2 * n, 3))
        kernel = opjit.compile(flat, dims={"n": (1, 50, 20)})
        self.assertEqual(kernel.outputs[0][2], ("2*n", 3))
        self.same(flat, kernel, {"n": 11}, numbers(11, 6))

    def test_two_products_with_packed_weights(self):
        a, b = numbers(48, 96), numbers(96, 24, seed=2)

        def rows(n):
            return opjit.matmul(opjit.relu(opjit.matmul(opjit.Graph().input((n, 48)), a)), b)
        kernel = opjit.compile(rows, dims={"n": (1, 600, 256)})
        for n in (1, 19, 600):
            self.same(rows, kernel, {"n": n}, numbers(n, 48))

    def test_dims_by_name(self):
        def eye(n):
            return opjit.eye(n, n, dtype="float32")
        kernel = opjit.compile(eye, dims={"n": (1, 64)})
        self.assertEqual(kernel(dims={"n": 5}).tobytes(), np.eye(5, dtype="f").tobytes())
        with self.assertRaisesRegex(TypeError, "dimension n follows from no size of an input: give dims="):
            kernel()
        with self.assertRaisesRegex(TypeError, "there is no dimension 'm'"):
            kernel(dims={"m": 5})

    def test_a_decoder_compiles_once(self):
        calls = []

        def step(n):
            calls.append(n)
            g = opjit.Graph()
            return opjit.softmax(g.input((4, n), name="x"))
        kernel = opjit.compile(step, dims={"n": (1, 1000, 500)})
        built = len(calls)
        x = numbers(4, 1000)
        arrays = [(np.ascontiguousarray(x[:, :n]), np.empty((4, n), "f")) for n in range(1, 1001)]
        for given, made in arrays:  # NumPy keeps something for each array that lends its memory
            kernel(given, out=made)
        gc.collect()
        tracemalloc.start()
        for given, made in arrays:
            kernel(given, out=made)
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        self.assertEqual(len(calls), built)
        self.assertLess(kept, 1000)  # the loop's own objects, and nothing for each length
        self.assertAlmostEqual(float(arrays[776][1].sum()), 4, places=4)

    def test_what_is_refused(self):
        kernel = opjit.compile(causal, dims={"length": (1, 96, 48)})
        for bad, kind, line in (
                (lambda: kernel(numbers(3, 97, 97)), opjit.Error, "dimension 0 .length.: 97 is outside of 1 to 96"),
                (lambda: kernel(numbers(3, 4, 5)), opjit.Error, r"float32 \[3, 4, 4\] expected, float32 \[3, 4, 5\]"),
                (lambda: kernel(numbers(3, 4)), opjit.Error, r"float32 \[3, 4\] given"),
                (lambda: opjit.compile(causal, dims={"length": (9, 8, 8)}), opjit.Error, "bounds 9 to 8, must be"),
                (lambda: opjit.compile(causal, dims={"length": (1, 8, 9)}), opjit.Error, "9, must be 1 to 8"),
                (lambda: opjit.compile(causal, dims={"length": (-1, 8, 9)}), ValueError, "-1, must be at least 1"),
                (lambda: opjit.compile(causal, dims={"length": (4, 30, 8, 4)}), ValueError, "30 is no multiple of 4"),
                (lambda: opjit.compile(causal, dims={"length": (0, 0, 0, 0)}), ValueError, "0 is no multiple of 0"),
                (lambda: opjit.compile(causal, dims={"length": (1, 2, 3, 4, 5)}), TypeError, "and a step is needed"),
                (lambda: opjit.compile(causal, dims={"length": "8"}), TypeError, "a function is compiled with dims="),
                (lambda: opjit.compile(causal, dims={"length": 8}), TypeError, "a function is compiled with dims="),
                (lambda: opjit.compile(causal), TypeError, "a function is compiled with dims="),
                (lambda: opjit.compile(lambda n: 1 / 0, dims={"n": (1, 8)}), ZeroDivisionError, "division"),
                (lambda: opjit.compile(causal, dims={f"d{i}": (1, 8) for i in range(9)}), ValueError,
                 "9 ranges, must be 1 to 8"),
                (lambda: pickle.dumps(kernel), TypeError, "can't be pickled: it was made by a function"),
                (lambda: kernel.ir, ValueError, "no text of a kernel with dynamic dimensions"),
                (lambda: kernel.explain(), ValueError, "no text of a kernel with dynamic dimensions")):
            with self.assertRaisesRegex(kind, line):
                bad()
        self.assertIs(copy.copy(kernel), kernel)


if __name__ == "__main__":
    unittest.main()
