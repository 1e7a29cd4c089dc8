# SPDX-License-Identifier: Apache-2.0
"""The package opjit: graphs, operators, calls with arrays of all kinds, and what is refused.  References are NumPy's,
or numbers."""
import array
import ast
import contextlib
import ctypes
import gc
import inspect
import io
import math
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.dom.minidom

import numpy as np

import opjit


def run(build, *arrays):
    """The kernel of build(inputs...), called."""
    g = opjit.Graph()
    return opjit.compile(build(*[g.input(a.shape, a.dtype) for a in arrays]))(*arrays)


def numbers(*shape, dtype="f", seed=1):
    """Small whole numbers, whose sums and products are exact."""
    return np.random.default_rng(seed).integers(-8, 8, shape).astype(dtype)


class Graphs(unittest.TestCase):
    def same(self, got, want):
        want = np.asarray(want)
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        self.assertEqual(got.tobytes(), want.tobytes())

    def test_generated(self):
        self.same(opjit.compile(opjit.eye(4, 5))(), np.eye(4, 5, dtype="f"))
        self.same(opjit.compile(opjit.eye(4, 5, k=-1, dtype="int32"))(), np.eye(4, 5, k=-1, dtype="i"))
        self.same(opjit.compile(opjit.tri(4, 6, k=1))(), np.tri(4, 6, k=1, dtype="f"))
        self.same(opjit.compile(opjit.full((2, 3), -1.5, "float64"))(), np.full((2, 3), -1.5))
        self.same(opjit.compile(opjit.arange(3, 17, 4, dtype=np.int64))(), np.arange(3, 17, 4))

    def test_operators(self):
        a, b = numbers(3, 4), numbers(3, 4, seed=2)
        self.same(run(lambda x, y: (x + y) * x - y, a, b), (a + b) * a - b)
        self.same(run(lambda x: 2 - x / 4, a), 2 - a / 4)
        self.same(run(lambda x: -abs(x), a), -abs(a))
        self.same(run(lambda x, y: x > y, a, b), (a > b))
        self.same(run(lambda x, y: x <= y, a, b), (a <= b))
        self.same(run(lambda x, y: x != y, a, b), (a != b))
        self.same(run(lambda x: x + np.arange(4, dtype="f"), a), a + np.arange(4, dtype="f"))
        self.same(run(lambda x: x << 2, np.arange(5, dtype="u4")), np.arange(5, dtype="u4") << 2)
        self.same(run(lambda x: x.astype("int32"), a), a.astype("i"))
        self.same(run(lambda x: opjit.clip(x, -2, 3), a), np.clip(a, -2, 3))
        self.same(run(lambda x, y: opjit.maximum(x, y), a, b), np.maximum(a, b))

    def test_constants(self):
        a = numbers(2, 3)
        self.same(run(lambda x: x + [1, 2.5, 3], a), a + np.array([1, 2.5, 3], "f"))
        self.same(run(lambda x: a * x - np.float32(2), a), a * a - 2)
        self.same(run(lambda x: x + array.array("f", [1, 2, 3]), a), a + np.array([1, 2, 3], "f"))
        self.same(run(lambda x: x + np.asfortranarray(a), a), a + a)
        large = numbers(64, 64)  # more than is part of the code
        self.same(run(lambda x: x + large, large), large + large)
        for dtype in ">f4 >f2 >f8 >i8 >u2".split():  # as np.load() gives them
            self.same(run(lambda x: x + np.asfortranarray(a.astype(dtype)), a.astype(dtype[1:])),
                      (a + a).astype(dtype[1:]))
        for wrong in (a.astype(">c8"), a.astype("F"), np.array(["a"])):
            with self.assertRaisesRegex(TypeError, "constant: elements of format"):
                opjit.Graph().constant(wrong)

    def test_whole_numbers(self):
        """Quotients as NumPy has them, and its numbers beside a tensor."""
        for dtype in "i1 i2 i4 i8 u1 u2 u4 u8".split():
            b = np.array([3, 2, 5, 7, 1, 4], dtype)
            a = numbers(4, 6, dtype=dtype)
            a[0, :2] = np.iinfo(dtype).min, np.iinfo(dtype).max
            with self.subTest(dtype=dtype):
                self.same(run(lambda x, y: x // y, a, b), a // b)
                self.same(run(lambda x: x // 3, a), a // np.array(3, dtype))
                if dtype[0] == "i":
                    self.same(run(lambda x, y: x // y, a, -b), a // -b)
                self.same(run(lambda x, y: x / y, a, b), a / b)
                self.same(run(opjit.divide, a, b), a / b)
        a = numbers(3, 4)
        self.same(run(lambda x: x // 3 + opjit.floor_divide(7.5, opjit.maximum(x, 1)), a),
                  a // 3 + np.float32(7.5) // np.maximum(a, 1))
        self.same(run(lambda x: (x + np.int64(2)) * np.float32(0.5) + np.float64(3), a), (a + 2) * np.float32(0.5) + 3)
        self.same(run(lambda x: np.uint8(2) * x, a.astype("i")), (2 * a).astype("i"))

    def test_methods(self):
        a, b = numbers(3, 1, 4), numbers(2, 3, dtype="i")
        g = opjit.Graph()
        x = g.input((3, 1, 4))
        self.assertEqual((len(x), x.size, x.squeeze().shape, x.squeeze(1).shape), (3, 12, (3, 4), (3, 4)))
        for f in (lambda x: x.sum(-1), lambda x: x.max(axis=0, keepdims=True), lambda x: x.min(), lambda x: x.prod(1),
                  lambda x: x.mean((0, 1)), lambda x: x.cumsum(2), lambda x: x.clip(-2, 3), lambda x: x.squeeze()):
            self.same(run(lambda x: f(x) + 0, a), np.atleast_1d(f(a)))
        np.testing.assert_allclose(run(lambda x: x.var(-1, ddof=1) + x.std(-1), a), a.var(-1, ddof=1) + a.std(-1), 1e-6)
        self.same(run(lambda x: x.argmax(2), a), a.argmax(2).astype("u4"))
        self.same(run(lambda x: (x > 7).any(-1) + (x > -8).all(-1), a), (a > 7).any(-1) + (a > -8).all(-1))
        self.same(run(lambda x: opjit.stack([x, x * 2], -1), b), np.stack([b, b * 2], -1))
        self.same(run(lambda x: opjit.stack([x, x * 2]), b), np.stack([b, b * 2]))
        self.same(run(lambda x: opjit.flip(x, 1) + opjit.flip(x), b), np.flip(b, 1) + np.flip(b))
        self.same(run(lambda x: opjit.swapaxes(x, 0, -1) + 0, a), np.swapaxes(a, 0, -1))
        self.same(run(lambda x: opjit.square(opjit.expand_dims(x, -1)), b), (b * b)[..., None])
        with self.assertRaisesRegex(ValueError, "dimension 2 has size 4"):
            x.squeeze(2)

    def test_of_numpy(self):
        """Functions with NumPy's names, arguments and results."""
        a = numbers(3, 4, 5)
        cases = [lambda m, x, s=s, d=d: m.roll(x, s, d) for s, d in (
            (1, 0), (-7, 1), (4, None), ((1, 2), (0, -1)), (0, 2), (5, 2))]
        cases += [lambda m, x, n=n, d=d: m.repeat(x, n, d) for n, d in ((2, 0), (3, -1), (1, 1), (2, None))]
        cases += [lambda m, x, n=n, d=d: m.diff(x, n, d) for n, d in ((1, -1), (2, 0), (3, 1))]
        cases += [lambda m, x, s=s, d=d: m.moveaxis(x, s, d) for s, d in ((0, -1), (2, 0), ((0, 1), (-1, 0)), (1, 1))]
        cases += [lambda m, x: m.ravel(x), lambda m, x: m.outer(x, x[0])]
        for dtype in "f4 f2 f8 i1 i8 u4".split():
            for n, f in enumerate(cases):
                with self.subTest(dtype=dtype, case=n):
                    self.same(run(lambda x: f(opjit, x), a.astype(dtype)), f(np, a.astype(dtype)))
        for decimals in (0, 1, 3, -1):
            for dtype in ("f4", "f8"):
                x = (np.arange(-40, 41) / 8).astype(dtype)
                self.same(run(lambda x: opjit.round(x, decimals), x), np.round(x, decimals))
        self.same(run(lambda x: opjit.roll(opjit.arange(5), 2, 0) + opjit.outer(x, np.arange(1, 6, dtype="f")), a[0, 0, :1]),
                  np.roll(np.arange(5, dtype="f"), 2) + np.outer(a[0, 0, :1], np.arange(1, 6, dtype="f")))
        x = opjit.Graph().input((2, 3))
        for wrong, line in ((lambda: opjit.roll(x, (1, 2), 0), "roll: 2 shifts of 1 axes, must be as many"),
                            (lambda: opjit.repeat(x, 0, 0), "repeat: 0 times, must be at least 1"),
                            (lambda: opjit.moveaxis(x, (0, 1), 0), "moveaxis: 2 axes to 1 places, must be as many"),
                            (lambda: opjit.diff(x, 1, 2), "axis: 2, must be within 2 dimensions")):
            with self.assertRaisesRegex(ValueError, line):
                wrong()

    def test_where(self):
        a = numbers(2, 5, 5)
        self.same(run(lambda x: opjit.where(opjit.tri(5, 5), x, -opjit.inf), a),
                  np.where(np.tri(5, 5), a, np.float32(-math.inf)))
        self.same(run(lambda x: opjit.where(x > 0, x, 0), a), np.where(a > 0, a, np.float32(0)))
        self.same(run(lambda x: opjit.where(x > 0, opjit.tri(5, 5, dtype="int32"), 0), a),
                  np.where(a > 0, np.tri(5, 5, dtype="i"), np.int32(0)))
        self.same(run(opjit.tril, a), np.tril(a))
        self.same(run(lambda x: opjit.triu(x, 1), a), np.triu(a, 1))

    def test_bools(self):
        """~ of what is true or false is the other one, as in NumPy; of other bytes it is all of their bits."""
        a, mask = numbers(4, 4), np.tri(4, dtype=bool)
        for f in (lambda m, x: ~(x > 1), lambda m, x: ~~(x > 1), lambda m, x: ~((x > -2) & (x < 3) | (x == 5)),
                  lambda m, x: ~m.isnan(x), lambda m, x: ~(x > 1).T[1:, ::-1].reshape(2, -1),
                  lambda m, x: ~m.any(x > 5, axis=1), lambda m, x: ~(x > 1).all(0), lambda m, x: ~m.tril(x > 1),
                  lambda m, x: ~m.concatenate([x > 1, x < 0]), lambda m, x: ~m.where(x > 0, x > 1, x < 0),
                  lambda m, x: ~m.broadcast_to(x > 1, (2, 4, 4)), lambda m, x: ~((x > 1) & mask),
                  lambda m, x: ~((x > 1) ^ True), lambda m, x: ~(x / 4).astype(bool), lambda m, x: (x / 4).astype("?"),
                  lambda m, x: ~m.tri(4, 4, dtype=bool) | (x > 1), lambda m, x: ~(~m.ones(4, dtype=bool) | (x > 1))):
            self.same(run(lambda x: f(opjit, x), a), np.asarray(f(np, a)))
        self.same(run(lambda x: opjit.where(~(x > 1), x, 0), a), np.where(a > 1, np.float32(0), a))
        self.same(run(lambda m: ~m, mask), ~mask)
        self.same(run(lambda x: ~x, mask.astype("u1")), ~mask.astype("u1"))
        self.same(run(lambda x: ~(x & 3), mask.astype("u1")), ~(mask.astype("u1") & 3))
        x = pickle.loads(pickle.dumps(opjit.Graph().input((4, 4)) > 1))
        self.same(opjit.compile(~x)(a), a <= 1)

    def test_arithmetic_of_bools(self):
        """As NumPy has it: or, and, whole numbers beside those, float64 beside float, the type of a tensor beside."""
        a, b, x = np.array([True, False, True]), np.array([True, True, False]), numbers(3)
        for f in (lambda a, b, x: a + b, lambda a, b, x: a * b, lambda a, b, x: a + 1, lambda a, b, x: 1 - a,
                  lambda a, b, x: a * 2.5, lambda a, b, x: b / (a | ~a), lambda a, b, x: a / 2,
                  lambda a, b, x: a // (b | ~b), lambda a, b, x: a % (b | ~b), lambda a, b, x: a * x,
                  lambda a, b, x: x - a, lambda a, b, x: (x > 1) * x,
                  lambda a, b, x: a + True, lambda a, b, x: a * b.astype("i2"), lambda a, b, x: a < 0.5,
                  lambda a, b, x: (x > 1) + np.array([True, False, True]), lambda a, b, x: a == b,
                  lambda a, b, x: a >= b, lambda a, b, x: (x > 1) == 1, lambda a, b, x: a + np.array([1, 2, 3]),
                  lambda a, b, x: x - (x > 0), lambda a, b, x: a ** x, lambda a, b, x: (a + b).sum(),
                  lambda a, b, x: a.mean()):
            self.same(run(lambda a, b, x: [f(a, b, x), a, b, x], a, b, x)[0], np.atleast_1d(f(a, b, x)))
        self.same(run(opjit.add, a, b), a + b)
        self.same(run(opjit.square, a), a)
        self.same(run(opjit.diff, a), np.diff(a))
        for f, line in ((lambda a: a - a, "bools are not subtracted"), (lambda a: -a, "bools have no negative"),
                        (lambda a: a - True, "bools are not subtracted")):
            with self.assertRaisesRegex(TypeError, line):
                run(f, a)

    def test_results_that_are_bools(self):
        """They are an index at once; an array of uint8 may be given for them."""
        a, out = numbers(3, 4), np.empty((3, 4), "u1")
        k = opjit.compile(opjit.Graph().input(a.shape) > 1)
        self.assertEqual((k.outputs[0][1], k(a).dtype), ("bool", np.dtype(bool)))
        self.same(a[k(a)], a[a > 1])
        k(a, out=out)
        self.same(out, (a > 1).astype("u1"))
        self.same(k(a, out=np.empty((3, 4), bool)), a > 1)
        self.assertEqual(pickle.loads(pickle.dumps(k)).outputs, k.outputs)
        d = opjit.compile(lambda n: opjit.Graph().input((n,), name="x") > 1, dims={"n": (1, 9)})
        self.same(d(a[0]), a[0] > 1)

    def test_wrong_indices(self):
        x = opjit.Graph().input((3, 4))
        for index, kind, line in ((7, IndexError, "dimension 0: index 7, must be -3 to 2"),
                                  ((0, -5), IndexError, "dimension 1: index -5, must be -4 to 3"),
                                  ([0, 2], TypeError, "dimension 0: list given, an index is an integer"),
                                  (1.5, TypeError, "dimension 0: float given"), (True, TypeError, "bool given")):
            with self.assertRaisesRegex(kind, line):
                x[index]

    def test_axes(self):
        a = numbers(3, 4, 5)
        self.same(run(lambda x: opjit.sum(x, axis=-1), a), a.sum(-1))
        self.same(run(lambda x: opjit.sum(x, axis=(0, 2), keepdims=True), a), a.sum((0, 2), keepdims=True))
        self.same(run(lambda x: opjit.max(x, axis=1), a), a.max(1))
        self.same(run(lambda x: opjit.argmax(x, axis=1), a), a.argmax(1).astype("u4"))
        self.same(run(lambda x: opjit.cumsum(x, 2), a), np.cumsum(a, 2))
        self.same(opjit.compile(opjit.sum(opjit.cumsum(opjit.ones((2, 3)), 1), axis=1))(), np.full(2, 6, "f"))
        for axes in ((3, 1, 2), (-4, 0, 1)):
            with self.assertRaisesRegex(ValueError, "must be within 3 dimensions"):
                run(lambda x: x.transpose(*axes), a)
        with self.assertRaisesRegex(ValueError, "none of them is a tensor"):
            opjit.concatenate([a, a])
        s = run(opjit.softmax, a)
        e = np.exp(a.astype("d") - a.max(-1, keepdims=True))
        np.testing.assert_allclose(s, e / e.sum(-1, keepdims=True), rtol=1e-6)

    def test_moves(self):
        a = numbers(4, 6, 5)
        for index in (np.s_[1], np.s_[-1, ..., 2], np.s_[:, 1:5:2], np.s_[::-1], np.s_[..., ::-2], np.s_[None, :, 3:],
                      np.s_[2, 3, 4:5], np.s_[1:3, ::3, 4:0:-3]):
            with self.subTest(index=index):
                self.same(run(lambda x: x[index] + 0, a), a[index] + np.float32(0))
        self.same(run(lambda x: x.T, a), a.T)
        self.same(run(lambda x: x.transpose(1, 0, 2).reshape(6, -1), a), a.transpose(1, 0, 2).reshape(6, -1))
        self.same(run(lambda x: opjit.concatenate([x, x[:1]], axis=0), a), np.concatenate([a, a[:1]]))
        self.same(run(lambda x: opjit.pad(x, [(1, 0), (0, 2), (0, 0)], constant_values=7), a),
                  np.pad(a, [(1, 0), (0, 2), (0, 0)], constant_values=7))
        self.same(run(lambda x: opjit.take(x, np.array([[0, 3], [5, 5]]), axis=1), a), a[:, [[0, 3], [5, 5]]])
        self.same(run(lambda x: opjit.tile(x, (1, 2, 1)), a), np.tile(a, (1, 2, 1)))

    def test_products(self):
        for p, q in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((4,), (4, 5)), ((3, 4), (4,)),
                     ((2, 1, 3, 4), (5, 4, 2))):
            a, b = numbers(*p), numbers(*q, seed=2)
            with self.subTest(a=p, b=q):
                self.same(run(lambda x, y: x @ y, a, b), a @ b)

    def test_names_of_inputs(self):
        g = opjit.Graph()
        x, unused, y = g.input((2, 3)), g.input((7,)), g.input((3,), name="y")
        k = opjit.compile(x.T[1] + y[:2])
        self.assertEqual(k.inputs, (("x0", "float32", (2, 3)), ("y", "float32", (3,))))
        a, b = numbers(2, 3), numbers(3, seed=2)
        self.same(k(y=b, x0=a), a.T[1] + b[:2])
        for name in ("y", "out"):
            with self.assertRaisesRegex(ValueError, "one of that name already"):
                g.input((1,), name=name)

    def test_several(self):
        a = numbers(4, 6)
        g = opjit.Graph()
        x = g.input((4, 6), name="x")
        k = opjit.compile({"top": opjit.max(x, axis=1), "rest": x * 2})
        self.assertEqual(k.inputs, (("x", "float32", (4, 6)),))
        self.assertEqual(k.outputs, (("top", "float32", (4,)), ("rest", "float32", (4, 6))))
        top, rest = k(x=a)
        self.same(top, a.max(1))
        self.same(rest, a * 2)
        out = (np.empty(4, "f"), np.empty((4, 6), "f"))
        result = k(a, out=out)
        self.assertIs(result[0], out[0])
        self.same(out[1], a * 2)
        self.same(run(lambda x: list(opjit.split(x, 3, axis=1))[1], a), a[:, 2:4])

    def test_many_arrays(self):
        arrays = [numbers(3, seed=i) for i in range(12)]
        self.same(run(lambda *x: sum(x[1:], x[0]), *arrays), sum(arrays[1:], arrays[0]))

    def test_every_type(self):
        for dtype in "f4 f2 f8 u1 u2 u4 u8 i1 i2 i4 i8".split():
            a = np.arange(6).astype(dtype)
            with self.subTest(dtype=dtype):
                self.same(run(lambda x: x + x, a), a + a)
                self.assertEqual(opjit.Graph().input(2, dtype).dtype, a.dtype.name)
                self.assertEqual(opjit.Graph().input(2, a.dtype.char).dtype, a.dtype.name)
                self.same(run(lambda x: opjit.maximum(x, opjit.full(6, 3)), a), np.maximum(a, np.array(3, dtype)))

    def test_compiled_once_more(self):
        g = opjit.Graph()
        x = g.input((2,))
        y = x + 1
        opjit.compile(y)
        opjit.compile(y, level="peak")
        with self.assertRaisesRegex(ValueError, "other outputs"):
            opjit.compile(x + 2)

    def test_interpreted_and_threads(self):
        a = numbers(64, 64)
        g = opjit.Graph()
        y = g.input((64, 64)) @ a
        want = opjit.compile(y)(a)
        k = opjit.compile(y, interpret=True)
        self.assertTrue(k.info["interpreted"])
        self.same(k(a), want)
        self.same(opjit.compile(y, threads=2)(a), want)

    def test_without_code_generation(self):
        """Kernels run in the interpreter then, which a warning tells unless it was asked for."""
        code = "import opjit\nprint(opjit.compile(opjit.eye(2, 2){}).info['interpreted'])"
        environment = {k: v for k, v in os.environ.items() if k != "OPJIT_CACHE_DIR"}
        environment["OPJIT_CODEGEN"] = "/nowhere/libopjit-codegen.so"
        for asked, lines in ((", interpret=True", 0), ("", 1)):
            done = subprocess.run([sys.executable, "-c", code.format(asked)], capture_output=True, text=True,
                                  env=environment, timeout=120)
            self.assertEqual(done.stdout, "True\n", done.stderr)
            self.assertEqual(done.stderr.count("RuntimeWarning: kernels run in opjit's interpreter"), lines)


class Operators(unittest.TestCase):
    def test_all_have_functions(self):
        names = [row[0] for row in opjit._opjit.operators()]
        self.assertGreater(len(names), 100)
        for name in names:
            function = getattr(opjit.ops, name.lower())
            self.assertTrue(function.__doc__.startswith(name + ": "))
            self.assertIn("name", inspect.signature(function).parameters)

    def test_fields(self):
        a = numbers(1, 2, 4, 4)
        g = opjit.Graph()
        x = g.input(a.shape)
        ops = opjit.ops
        pooled, where = ops.max_pooling1(x, strides=[2, 2], window_size=[2, 2], start_padding=[0, 0],
                                         end_padding=[0, 0], outputs=2)
        self.assertEqual((pooled.shape, where.dtype), ((1, 2, 2, 2), "uint32"))
        y = ops.element_wise_add1(pooled, 1, fused_activation=("ACTIVATION_RELU", {}))
        y = ops.element_wise_clip1(y, min=2, max=5.5, scale_bias=(0.5, 3))
        blocks = a.reshape(1, 2, 2, 2, 2, 2).max((3, 5))
        want = np.clip(np.maximum(blocks + 1, 0) * np.float32(0.5) + 3, 2, 5.5)
        np.testing.assert_array_equal(opjit.compile(y)(a), want)
        with self.assertRaisesRegex(TypeError, "GEMM Alpha: it needs a value"):
            g._core.node("GEMM", (x._handle, x._handle), {"TransA": 0, "TransB": 0}, [(None, None)])
        with self.assertRaisesRegex(TypeError, "ACTIVATION_RELU: 'Alpha' is none of its fields"):
            g._core.node("ACTIVATION_RELU", (x._handle,), {"Alpha": 0}, [(None, None)])
        with self.assertRaisesRegex(ValueError, 'Mode: .*must be a name as "CONVOLUTION"'):
            ops.convolution(x, x, mode="SIDEWAYS", direction="FORWARD", strides=[1, 1], dilations=[1, 1],
                            start_padding=[0, 0], end_padding=[0, 0], output_padding=[0, 0], group_count=1)
        with self.assertRaisesRegex(ValueError, "EndPadding: 1 numbers, must be 2"):
            ops.max_pooling1(x, strides=[2, 2], window_size=[2, 2], start_padding=[0, 0], end_padding=[0])
        with self.assertRaisesRegex(ValueError, "ScaleBias: 1 numbers, must be 2"):
            ops.element_wise_abs(x, scale_bias=(1,))
        with self.assertRaisesRegex(ValueError, "Axis: -1 is out of range"):
            ops.join([x, x], axis=-1)
        with self.assertRaises(AttributeError):
            ops.no_such_operator

    def test_tensors_without_a_graph(self):
        """They have a tensor's operators and methods, and join the graph of what they meet."""
        a = np.arange(12, dtype="f").reshape(3, 4)
        whole = np.arange(12).reshape(3, 4)
        for build, wanted in (
                (lambda x: x + opjit.arange(12).reshape(3, 4), a + a),
                (lambda x: x.astype("int32") + opjit.arange(12).reshape(3, 4), whole + whole),
                (lambda x: x + opjit.flip(opjit.tri(3, 4), 0), a + np.tri(3, 4, dtype="f")[::-1]),
                (lambda x: x * (opjit.ones((3, 4)) * 2 - 1), a),
                (lambda x: x @ opjit.eye(4).T, a),
                (lambda x: x + -opjit.ones((5,))[1:], a - 1),
                (lambda x: opjit.where(opjit.eye(3, 4) > 0, x, 0), np.where(np.eye(3, 4) > 0, a, 0)),
                (lambda x: x + opjit.any(opjit.zeros((3, 4)) != 0).astype("float32"), a),
                (lambda x: x + opjit.all(opjit.zeros((3, 4))).astype("float32"), a),
                (lambda x: x + opjit.argmax(opjit.arange(4)[None], 1, True).astype("float32"), a + 3),
                (lambda x: x - opjit.broadcast_to(opjit.ones((1, 4)), (3, 4)), a - 1),
                (lambda x: opjit.stack([x, opjit.ones((3, 4)), a]), np.stack([a, np.ones((3, 4), "f"), a])),
                (lambda x: opjit.tile(x, 2), np.tile(a, 2)),
                (lambda x: opjit.pad(x, 1), np.pad(a, 1))):
            np.testing.assert_array_equal(run(build, a), wanted)
        y = opjit.ones((2, 2))
        for _ in range(100):
            y = opjit.square(y) * 1
        self.assertEqual(opjit.compile(y)().tolist(), [[1, 1], [1, 1]])
        with self.assertRaises(TypeError):
            opjit.softmax([None])
        with self.assertRaisesRegex(AttributeError, "nope"):
            opjit.ones((2, 2)).nope

    def test_anything(self):
        """Whatever a graph or kernel is given, it is taken, or refused in one line."""
        random = np.random.default_rng(5)
        pick = lambda *of: of[random.integers(len(of))]
        tables = {row[0]: row[3] for row in opjit._opjit.operators()}
        handles = []

        def junk(depth=0):
            kind = random.integers(10)
            if kind == 0:
                return pick(None, -1, 2**31, 2**32, 2**64, -2**63, 1e40, math.nan, True)
            if kind == 1:
                return pick("float32", "int4", "x", "", "\ud800", "asm", b"\x08\x08", b"")
            if kind == 2 and depth < 3:
                return tuple(junk(depth + 1) for _ in range(random.integers(10)))
            if kind == 3 and depth < 3:
                return {pick("Axis", "Alpha", 3): junk(depth + 1)}
            if kind == 4:
                return np.zeros(random.integers(0, 4, 2), pick("f", "d", ">f4", "F", "U1", "O", "M8[s]"))
            if kind == 5:
                return pick(memoryview(bytes(20)), object(), Ellipsis, DLPack("text"), Made(Tensor(None, 9, 9, 0)))
            if kind == 6 and handles:
                return pick(*handles)
            return pick(1, 2, (4, 5), (1, 2, 3), [0, 1])
        kernel = opjit.compile(opjit.Graph().input((4, 5)) + 1)
        for _ in range(400):
            g = opjit._opjit.Graph()
            handles[:] = [g.input((2, 3), "float32", None), g.input((4,), "uint8", None)]
            for _ in range(random.integers(1, 8)):
                name = pick(*tables)
                values = {f[0]: pick(*f[3]) if f[3] else junk() for f in tables[name] if f[1] > 4 and not f[2] & 4}
                calls = (lambda: g.node(name, [pick(*handles, None) for _ in range(random.integers(4))], values,
                                        [pick((None, None), junk())] * random.integers(3), None),
                         lambda: getattr(g, pick("input", "constant", "slice", "type"))(junk(), junk(), junk()),
                         lambda: getattr(g, pick("output", "scalar", "reshape", "transpose"))(junk(), junk()),
                         lambda: kernel(*[junk() for _ in range(random.integers(3))],
                                        **{pick("out", "x0", "z"): junk()}))
                try:
                    result = pick(*calls)()
                    handles.extend([result] if isinstance(result, int) else [])
                except (ValueError, TypeError, OverflowError, BufferError, AttributeError) as e:
                    self.assertNotIn("\n", str(e))

    def test_refused(self):
        g = opjit.Graph()
        x = g.input((2, 3))
        y = x + 1
        with self.assertRaises(opjit.Error) as caught:
            opjit.ops.join([x, y], axis=7)
        e = caught.exception
        self.assertEqual((e.status, e.operator, e.field, e.value, e.node), ("INVALID_ARGUMENT", "JOIN", "Axis", "7", 2))
        self.assertIn("JOIN Axis: 7", str(e))
        with self.assertRaises(opjit.Error):  # and so is all that follows
            x + 2
        with self.assertRaises(ValueError):
            opjit.Graph().input((2,)) + opjit.Graph().input((2,))
        with self.assertRaises(opjit.Error):
            opjit.Graph().input((2, 0))
        with self.assertRaises(TypeError):
            opjit.Graph().input((2,), "complex64")
        with self.assertRaisesRegex(TypeError, "input x0: 'batch' is no size; .*dims="):
            opjit.Graph().input(("batch", 3))
        with self.assertRaisesRegex(ValueError, r"input x0: shape \(-1, 3\), sizes must be at least 1"):
            opjit.Graph().input((-1, 3))
        with self.assertRaises(TypeError):
            bool(opjit.Graph().input((2,)) > 1)
        with self.assertRaisesRegex(TypeError, "no elements before"):
            np.asarray(opjit.Graph().input((2,)))
        for shape in ((0, 6), (-1, -1), (-2, 3)):
            with self.assertRaisesRegex(ValueError, r"reshape: \(.*\), sizes must be at least 1, and one .* -1"):
                opjit.Graph().input((2, 3)).reshape(shape)
        for threads in (-1, 257):
            with self.assertRaisesRegex(ValueError, f"threads: {threads}, must be 0 to 256"):
                opjit.compile(opjit.Graph().input((2,)) + 1, threads=threads)
        for what in (None, opjit.Graph()):
            with self.assertRaisesRegex(TypeError, "tensors, a model or a function are compiled, <class '.*'> given"):
                opjit.compile(what)


class DLPack:
    """An array that has nothing but capsules."""

    def __init__(self, a, legacy=False):
        self.a, self.legacy = a, legacy

    def __dlpack__(self, **kwargs):
        return self.a.__dlpack__() if self.legacy else self.a.__dlpack__(**kwargs)


class Tensor(ctypes.Structure):
    """DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]

    @classmethod
    def of(cls, a, **other):
        """A packed array's, without strides."""
        t = cls(a.ctypes.data, 1, 0, a.ndim, 2, a.itemsize * 8, 1, (ctypes.c_int64 * a.ndim)(*a.shape), None, 0)
        for name, value in other.items():
            setattr(t, name, value)
        t.array = a
        return t


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


def capsule(structure, name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(structure), name, None)


class Made:
    """An array that is whatever its DLTensor says."""

    def __init__(self, tensor, major=1, flags=0):
        self.managed = Versioned(major, 0, None, None, flags, tensor)
        self.tensor = tensor

    def __dlpack__(self, max_version=None):
        return capsule(self.managed, b"dltensor_versioned")


class Giving:
    """What __dlpack__ gives is this."""

    def __init__(self, what):
        self.what = what

    def __dlpack__(self, max_version=None):
        return self.what


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("prev", ctypes.c_void_p),
                ("others", ctypes.c_void_p * 3), ("view", ctypes.c_void_p), ("stream", ctypes.c_void_p)]


class Viewed:
    """An array whose type has DLPack's table of functions, as PyTorch's has."""
    views = 0

    def __init__(self, a):
        self.tensor = Tensor.of(a)

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))
    def view(self, out):
        Viewed.views += 1
        ctypes.memmove(out, ctypes.addressof(self.tensor), ctypes.sizeof(Tensor))
        return 0

    table = Exchange(1, 3, None, (ctypes.c_void_p * 3)(), ctypes.cast(view, ctypes.c_void_p), None)
    __dlpack_c_exchange_api__ = capsule(table, b"dlpack_exchange_api")


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        g = opjit.Graph()
        cls.k = opjit.compile(g.input((4, 5)) + 1)
        cls.a = numbers(4, 5)

    def refused(self, message, *args, kind=opjit.Error, **kwargs):
        with self.assertRaises(kind) as caught:
            self.k(*args, **kwargs)
        self.assertEqual(str(caught.exception), message)
        return caught.exception

    def test_without_copies(self):
        out = np.zeros((4, 5), "f")
        self.assertIs(self.k(self.a, out=out), out)
        np.testing.assert_array_equal(out, self.a + 1)
        out = array.array("f", bytes(80))
        self.k(memoryview(array.array("f", self.a.ravel())).cast("B").cast("f", (4, 5)),
               out=memoryview(out).cast("B").cast("f", (4, 5)))
        np.testing.assert_array_equal(np.array(out).reshape(4, 5), self.a + 1)
        out = np.zeros((4, 5), "f")
        self.k(DLPack(self.a), out=DLPack(out))
        np.testing.assert_array_equal(out, self.a + 1)
        np.testing.assert_array_equal(self.k(DLPack(self.a, legacy=True)), self.a + 1)
        frozen = self.a.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(self.k(frozen), self.a + 1)

    def test_in_place(self):
        a = self.a.copy()
        self.k(a, out=a)
        np.testing.assert_array_equal(a, self.a + 1)

    def test_refused(self):
        a = self.a
        e = self.refused("buffer 0: float32 [4, 5] expected, float64 [4, 5] given", a.astype("d"))
        self.assertEqual((e.status, e.operator, e.field, e.index, e.value, e.node),
                         ("INVALID_ARGUMENT", "call", "buffers", 0, "float64 [4, 5]", None))
        self.refused("buffer 1: float32 [4, 5] expected, float64 [4, 5] given", a, out=np.empty((4, 5)))
        self.refused("buffer 0: float32 [4, 5] expected, float32 [5, 4] given", a.T)
        self.refused("buffer 0: float32 [4, 5] expected, float32 [20] given", a.ravel())
        self.refused("buffer 0: float32 [4, 5] expected, float32 [] given", np.float32(1))
        self.refused("buffer 0: float32 [4, 5] expected, big-endian float32 [4, 5] given", a.astype(">f4"))
        self.refused("buffer 0: float32 [4, 5] expected, big-endian uint16 [4, 5] given", a.astype(">u2"))
        self.refused("buffer 0: float32 [4, 5] expected, bool [4, 5] given", a > 0)
        self.refused("buffer 0: float32 [4, 5] expected, complex64 [4, 5] given", DLPack(a.astype("F")))
        self.refused("buffer 0: float32 [4, 5] with strides [5, 1] expected, [1, 4] given", np.asfortranarray(a))
        self.refused("buffer 0: float32 [4, 5] with strides [5, 1] expected, [-5, -1] given", a[::-1, ::-1])
        self.refused("buffer 0: float32 [4, 5] with strides [5, 1] expected, [0, 1] given",
                     np.broadcast_to(a[:1], (4, 5)))
        fields = np.zeros((4, 5), [("v", "f"), ("flag", "u1")])["v"]
        self.refused("buffer 0: float32 [4, 5] expected, =f [4, 5] given", fields)
        self.refused("buffer 0: an array is needed, <class 'str'> given", "text", kind=TypeError)
        self.refused("buffer 0: an array is needed, <class 'NoneType'> given", None, kind=TypeError)
        self.refused("input 0 (x0) is missing", kind=TypeError)
        self.refused("2 arrays given, the kernel takes 1; results go to out=", a, a, kind=TypeError)
        self.refused("input x0 is given twice", a, x0=a, kind=TypeError)
        self.refused("there is no input 'y'", a, y=a, kind=TypeError)
        self.refused("out: 2 arrays given, 1 are needed", a, out=(a, a), kind=TypeError)

    def test_read_only_outputs(self):
        line = "buffer 1: float32 [4, 5] that may be written expected, a read-only one given"
        frozen = np.zeros((4, 5), "f")
        frozen.flags.writeable = False
        self.refused(line, self.a, out=frozen)
        self.refused(line, self.a, out=memoryview(bytes(80)).cast("f", (4, 5)))
        self.refused(line, self.a, out=DLPack(frozen))
        self.refused(line, self.a, out=DLPack(np.zeros((4, 5), "f"), legacy=True))
        self.assertEqual(frozen.tobytes(), bytes(80))

    def test_overlap_and_alignment(self):
        memory = np.zeros(64, "f")
        with self.assertRaises(opjit.Error):
            self.k(memory[:20].reshape(4, 5), out=memory[1:21].reshape(4, 5))
        bytes_ = np.zeros(96, "u1")
        with self.assertRaises(opjit.Error) as caught:
            self.k(bytes_[1:81].view("f").reshape(4, 5))
        self.assertEqual(caught.exception.operator, "call")

    def test_names_of_types(self):
        for dtype, name in (("c8", "complex64"), ("c16", "complex128"), (object, "object")):
            self.refused(f"buffer 0: float32 [4, 5] expected, {name} [4, 5] given", np.empty((4, 5), dtype))

    def test_what_dlpack_says(self):
        a, want = self.a, "buffer 0: float32 [4, 5] "
        np.testing.assert_array_equal(self.k(Made(Tensor.of(a))), a + 1)
        np.testing.assert_array_equal(self.k(Made(Tensor.of(a, device=3))), a + 1)  # pinned memory
        shifted = np.concatenate([np.zeros(4, "f"), a.ravel()])
        view = Tensor.of(a, data=shifted.ctypes.data, offset=16)
        np.testing.assert_array_equal(self.k(Made(view)), a + 1)
        self.refused(want + "in this machine's memory expected, one on device 2:1 given",
                     Made(Tensor.of(a, device=2, device_id=1)))
        self.refused(want + "expected, one without memory given", Made(Tensor.of(a, data=None)))
        self.refused(want + "expected, bfloat16 [4, 5] given", Made(Tensor.of(a, code=4, bits=16)))
        self.refused(want + "expected, float32 x 2 [4, 5] given", Made(Tensor.of(a, lanes=2)))
        self.refused(want + "expected, type 9 of 8 bits [4, 5] given", Made(Tensor.of(a, code=9, bits=8)))
        self.refused("buffer 1: float32 [4, 5] that may be written expected, a read-only one given", a,
                     out=Made(Tensor.of(np.zeros((4, 5), "f")), flags=1))
        self.refused("DLPack 2 is not known", Made(Tensor.of(a), major=2), kind=BufferError)
        taken = capsule(Made(Tensor.of(a)).managed, b"used_dltensor_versioned")
        for wrong in (None, 3, taken):
            self.refused(f"buffer 0: __dlpack__ gave no tensor that nobody took yet, {type(wrong)}", Giving(wrong),
                         kind=TypeError)

    def test_table_of_functions(self):
        before, out = Viewed.views, np.zeros((4, 5), "f")
        self.k(Viewed(self.a), out=Viewed(out))
        self.assertEqual(Viewed.views, before + 2)
        np.testing.assert_array_equal(out, self.a + 1)
        np.testing.assert_array_equal(self.k(Viewed(self.a)), self.a + 1)
        self.refused("buffer 0: float32 [4, 5] expected, float32 [20] given", Viewed(self.a.ravel()))

    def test_masked(self):
        """A mask that hides something would be lost; one that hides nothing is nothing."""
        g = opjit.Graph()
        k = opjit.compile(g.input((4,)) + 1)
        x = np.arange(4, dtype="f")
        masked = np.ma.array(x, mask=[0, 1, 0, 0])
        for call in (lambda: k(masked), lambda: k(x, out=masked), lambda: opjit.Graph().input((4,)) + masked):
            with self.assertRaisesRegex(ValueError, r"^(buffer [01]|constant): a masked array given, .*$"):
                call()
        for array in (np.ma.array(x), np.ma.array(x, mask=[0, 0, 0, 0]), masked.filled(7)):
            self.assertEqual(k(array).tolist(), (np.asarray(array) + 1).tolist())

    def test_other_elements(self):
        """What is no array of numbers is refused in one line that names the buffer."""
        g = opjit.Graph()
        k, q = opjit.compile(g.input((4,)) + 1), opjit.compile(opjit.Graph().input((4,), "int64") + 1)
        for dtype in ("datetime64[s]", "timedelta64[s]", [("a", "i8")], ">i8", object, "U1", "S8", "V8", "c8", "g"):
            with self.assertRaisesRegex(ValueError, r"^buffer 0: [^\n]+$"):
                q(np.zeros(4, dtype))
        self.assertEqual(k(np.zeros(4, [("a", "f4")])["a"]).tolist(), [1, 1, 1, 1])

    def test_freed_memory(self):
        view = memoryview(bytearray(80)).cast("f", (4, 5))
        view.release()
        with self.assertRaisesRegex(ValueError, "released"):
            self.k(view)
        # a call holds what it is given: it can't be resized or released meanwhile
        memory = bytearray(80)
        self.k(memoryview(memory).cast("f", (4, 5)))
        memory.extend(b"x")

    def test_bool(self):
        mask = np.array([True, False, True])
        got = run_mask(mask)
        np.testing.assert_array_equal(got, np.array([5, 0, 5], "f"))

    def test_tells(self):
        self.assertEqual(repr(self.k), "opjit.Kernel(x0: float32 [4, 5] -> Outputs[0]: float32 [4, 5])")
        self.assertIn("== lower", self.k.explain())
        self.assertIn("%", self.k.ir)
        self.assertEqual(set(self.k.info) >= {"name", "target", "level", "code_bytes", "compile_ms"}, True)
        with self.assertRaises(TypeError):
            opjit.Kernel()
        if not self.k.info["interpreted"]:
            self.assertIn("ret", self.k.asm)

    def test_threads(self):
        g = opjit.Graph()
        kernels = [self.k, opjit.compile(g.input((300, 301)) * 3)]  # one keeps the GIL, one gives it away
        failures = []

        def work(seed):
            try:
                small, large = numbers(4, 5, seed=seed), numbers(300, 301, seed=seed)
                for i in range(400):
                    if not np.array_equal(kernels[0](small), small + 1):
                        failures.append((seed, i))
                    if i % 20 == 0 and not np.array_equal(kernels[1](large), large * 3):
                        failures.append((seed, i))
                    if i % 100 == 0:
                        try:
                            kernels[0](large)
                            failures.append((seed, "taken"))
                        except opjit.Error:
                            pass
            except Exception as e:
                failures.append(e)
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])

    def test_gil_is_released(self):
        g = opjit.Graph()
        a = np.ones((700, 700), "f")
        k = opjit.compile(g.input(a.shape) @ a)
        if k.info["interpreted"]:
            self.skipTest("takes too long without code generation")
        out = np.empty_like(a)
        beats, done = [0], []

        def call():
            for _ in range(20):
                k(a, out=out)
            done.append(True)
        before = sys.getswitchinterval()
        sys.setswitchinterval(100)  # only who gives it away loses the GIL
        try:
            thread = threading.Thread(target=call)
            thread.start()
            while not done:
                time.sleep(1e-4)
                beats[0] += 1
        finally:
            sys.setswitchinterval(before)
        thread.join()
        self.assertGreater(beats[0], 5)

    def test_no_growth(self):
        def memory():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        a, out, wrong = self.a, np.empty((4, 5), "f"), np.empty((4, 5))

        def calls(count):
            for i in range(count):
                self.k(a, out=out)
                self.k(a)
                if i % 10 == 0:
                    try:
                        self.k(wrong)
                    except opjit.Error:
                        pass
                    self.k(DLPack(a))
        calls(2000)
        gc.collect()
        counts, before = [sys.getrefcount(x) for x in (a, out, wrong, self.k)], memory()
        calls(100000)
        gc.collect()
        self.assertEqual([sys.getrefcount(x) for x in (a, out, wrong, self.k)], counts)
        self.assertLess(memory() - before, 1 << 20)

    def test_objects_are_freed(self):
        """A kernel outlives its graph, and whatever is built is freed."""
        def memory():
            with open("/proc/self/statm") as f:
                return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def one(i):
            g = opjit.Graph()
            x = g.input((8, 8))
            y = x @ np.full((8, 8), i % 2, "f") + opjit.tri(8, 8)
            k = opjit.compile(y, interpret=True)
            del g, x, y
            return k
        for i in range(300):
            one(i)
        before = memory()
        for i in range(1000):
            one(i)
        self.assertLess(memory() - before, 2 << 20)
        np.testing.assert_array_equal(one(1)(np.ones((8, 8), "f")), 8 + np.tri(8, dtype="f"))


# --- models -----------------------------------------------------------------------------------------------------------
def field(number, value):
    """A field of a protobuf message: a number, or bytes."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def port(name, dtype, *sizes):
    """A ValueInfoProto; sizes: numbers or names."""
    dims = b"".join(field(1, field(1 if isinstance(n, int) else 2, n)) for n in sizes)
    return field(1, name) + field(2, field(1, field(1, dtype) + field(2, dims)))


def model(nodes, inputs, outputs):
    """An .onnx file of (type, inputs, outputs) rows."""
    rows = b"".join(field(1, b"".join(field(1, i) for i in reads) + b"".join(field(2, o) for o in writes) +
                          field(4, type)) for type, reads, writes in nodes)
    graph = rows + field(2, "g") + b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


FLOAT, BOOL = 1, 9
RELU = model([("Add", ["x", "x"], ["s"]), ("Relu", ["s"], ["y"])], [port("x", FLOAT, 2, 3)], [port("y", FLOAT, 2, 3)])


class Models(unittest.TestCase):
    def test_bytes_and_files(self):
        a = numbers(2, 3)
        k = opjit.compile(RELU)
        self.assertEqual((k.inputs, k.outputs), ((("x", "float32", (2, 3)),), (("y", "float32", (2, 3)),)))
        np.testing.assert_array_equal(k(a), np.maximum(a + a, 0))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.onnx"
            path.write_bytes(RELU)
            np.testing.assert_array_equal(opjit.compile(path)(x=a), np.maximum(a + a, 0))
            np.testing.assert_array_equal(opjit.compile(str(path), interpret=True)(a), np.maximum(a + a, 0))

    def test_names_scalars_bools(self):
        data = model([("Less", ["x", "t"], ["y"])], [port("x", FLOAT, "n", 3), port("t", FLOAT)],
                     [port("y", BOOL, "n", 3)])
        a = numbers(4, 3)
        for k in (opjit.compile(data, dims={"n": 4}), opjit.compile(data, shapes={"x": (4, 3)})):
            self.assertEqual(k.inputs, (("x", "float32", (4, 3)), ("t", "float32", ())))
            self.assertEqual(k.outputs, (("y", "bool", (4, 3)),))
            got = k(a, np.array(2, "f"))
            self.assertEqual(got.dtype, bool)
            np.testing.assert_array_equal(got, a < 2)
        k = opjit.compile(data, dims={"n": 4}, values={"t": np.array(2, "f")})
        self.assertEqual(len(k.inputs), 1)
        np.testing.assert_array_equal(k(a), a < 2)
        with self.assertRaisesRegex(TypeError, "there is no input 't'"):
            k(x=a, t=np.array(3, "f"))

    def test_inputs_that_nothing_reads(self):
        data = model([("Relu", ["x"], ["y"])], [port("x", FLOAT, 2, 3), port("mask", FLOAT, 2)], [port("y", FLOAT, 2, 3)])
        a = numbers(2, 3)
        k = opjit.compile(data)
        self.assertEqual([name for name, *_ in k.inputs], ["x"])
        np.testing.assert_array_equal(k(x=a, mask=numbers(2)), np.maximum(a, 0))
        with self.assertRaisesRegex(TypeError, "there is no input 'other'"):
            k(x=a, other=a)

    def test_refused(self):
        for what, status in ((b"no model", "CORRUPT"), ("/nonexistent/model.onnx", "UNAVAILABLE"),
                             (model([("Nothing", ["x"], ["y"])], [port("x", FLOAT, 2)], [port("y", FLOAT, 2)]),
                              "UNSUPPORTED"), (RELU[:-30], "CORRUPT")):
            with self.subTest(what=what), self.assertRaises(opjit.Error) as caught:
                opjit.compile(what)
            self.assertEqual(caught.exception.status, status)
        with self.assertRaises(opjit.Error):
            opjit.compile(RELU, dims={"m": 3})
        for size, line in (("n", 'dimension "n" is not known: give its size'),
                           ("", "size 0 is not known: give the input's sizes")):
            data = model([("Relu", ["x"], ["y"])], [port("x", FLOAT, size, 3)], [port("y", FLOAT, size, 3)])
            with self.assertRaises(opjit.Error) as caught:
                opjit.compile(data)
            self.assertEqual(str(caught.exception),
                             f'input "x": {line}, by dims={{"NAME": 1}} or shapes={{"INPUT": (1, 3)}}')
            e = caught.exception
            self.assertEqual((e.status, e.operator, e.field, e.index, e.value), ("UNSUPPORTED", "input", '"x"', 0,
                                                                                 "unknown"))
        g = opjit.Graph()
        with self.assertRaisesRegex(TypeError, "are for models"):
            opjit.compile(g.input((1,)) + 1, dims={"n": 1})
        with tempfile.TemporaryDirectory() as folder:  # a pipe is not waited for
            os.mkfifo(f"{folder}/pipe.onnx")
            with self.assertRaisesRegex(opjit.Error, "pipe.onnx: no regular file"):
                opjit.compile(f"{folder}/pipe.onnx")

    def test_weights_outlive_the_name(self):
        """A kernel keeps what its model borrows."""
        k = opjit.compile(bytes(bytearray(RELU)), values={})
        gc.collect()
        np.testing.assert_array_equal(k(np.ones((2, 3), "f")), np.full((2, 3), 2, "f"))


# --- the package ------------------------------------------------------------------------------------------------------
class Package(unittest.TestCase):
    def test_document(self):
        """The examples of docs/python.md, as they stand."""
        text = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text()
        names, here = {}, os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "model.onnx").write_bytes(RELU)
            os.chdir(folder)
            try:
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    for block in re.findall(r"```python\n(.*?)```", text, re.S):
                        if not block.startswith("import dask"):  # test_pickle.py's
                            exec(compile(block, "docs/python.md", "exec"), names)
            finally:
                os.chdir(here)
        self.assertIn("opjit.Kernel(x0: float32 [1, 3, 8, 8] -> pooled: float32 [1, 3, 4, 4], "
                      "where: uint32 [1, 3, 4, 4])", out.getvalue())
        np.testing.assert_array_equal(names["y"], np.full((2, 3), 2, "f"))

    def test_stubs(self):
        folder = pathlib.Path(opjit.__file__).parent
        found = {f.name: f for f in ast.parse((folder / "ops.pyi").read_text()).body if isinstance(f, ast.FunctionDef)}
        self.assertEqual(sorted(found), dir(opjit.ops))
        for name, stub in found.items():
            parameters = inspect.signature(getattr(opjit.ops, name)).parameters
            self.assertEqual([a.arg for a in stub.args.args + stub.args.kwonlyargs], list(parameters))
        core = {c.name: c for c in ast.parse((folder / "_opjit.pyi").read_text()).body if isinstance(c, ast.ClassDef)}
        for name in ("Graph", "Kernel"):
            told = {n.name if isinstance(n, ast.FunctionDef) else n.target.id for n in core[name].body
                    if isinstance(n, (ast.FunctionDef, ast.AnnAssign))}
            there = {n for n in vars(getattr(opjit._opjit, name)) if not n.startswith("__")}
            self.assertEqual(told - {"__init__", "__call__"}, there)

    def test_all_is_there(self):
        for name in opjit.__all__:
            self.assertTrue(hasattr(opjit, name), name)
            if callable(getattr(opjit, name)):
                self.assertTrue(getattr(opjit, name).__doc__, name)

    def test_pictures(self):
        g = opjit.Graph()
        x = g.input((2, 6, 6), name="a<b")
        k = opjit.compile(opjit.where(opjit.tri(6, 6), x, 0.0))
        svg = k._repr_svg_()
        xml.dom.minidom.parseString(svg)
        self.assertIn("15 of 36 elements of a matrix are filled", svg)
        for name in ("a&lt;b [2, 6, 6]", "diagonal_matrix1", "element_wise_if"):
            self.assertIn(">" + name + "<", svg)
        many = opjit.Graph()
        y = many.input((2,))
        for _ in range(100):
            y = y + y
        self.assertIn("more</text>", opjit.compile(y, interpret=True)._repr_svg_())
        xml.dom.minidom.parseString(opjit.compile(RELU)._repr_svg_())

    def test_another_process(self):
        """It ends without a word, whatever is left."""
        code = ("import opjit; g = opjit.Graph(); x = g.input((2,)); k = opjit.compile(x + 1, threads=2);"
                "import numpy; k(numpy.ones(2, 'f')); opjit.keep = k; import sys; sys.keep = (g, x, k)")
        done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_no_cache_folder(self):
        """An empty OPJIT_CACHE_DIR names none."""
        code = "import opjit; print(opjit.compile(opjit.ones((2,)))())"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={**os.environ, "OPJIT_CACHE_DIR": ""})
        self.assertEqual((done.stdout, done.stderr), ("[1. 1.]\n", ""))

    def test_buffers_without_strides(self):
        """Those of ctypes are packed, and don't say so."""
        g = opjit.Graph()
        k = opjit.compile(g.input((4, 5)) + 1)
        a, out = (ctypes.c_float * 5 * 4)(), (ctypes.c_float * 5 * 4)()
        a[3][4] = 7
        k(a, out=out)
        self.assertEqual((out[0][0], out[3][4]), (1, 8))
        for wrong, text in (((ctypes.c_float * 4 * 5)(), r"float32 \[5, 4\]"), (ctypes.c_float(), r"float32 \[\]"),
                            ((ctypes.c_double * 5 * 4)(), r"float64 \[4, 5\]"),
                            ((ctypes.c_float.__ctype_be__ * 5 * 4)(), r"big-endian float32 \[4, 5\]")):
            with self.assertRaisesRegex(opjit.Error, rf"^buffer 0: float32 \[4, 5\] expected, {text} given$"):
                k(wrong)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        g = opjit.Graph()
        k = opjit.compile(g.input((4, 5)) + 1)
        a = torch.arange(20, dtype=torch.float32).reshape(4, 5)
        self.assertTrue(torch.equal(k(a), a + 1))
        out = torch.empty(4, 5)
        self.assertIs(k(a, out=out), out)
        self.assertTrue(torch.equal(out, a + 1))
        with self.assertRaisesRegex(opjit.Error, r"float32 \[4, 5\] expected, float64 \[4, 5\] given"):
            k(a.double())
        with self.assertRaisesRegex(opjit.Error, "strides"):
            k(a.t().contiguous().t())
        for _ in range(2):  # how results are made is kept from call to call
            self.assertEqual((type(k(a)), type(k(a.numpy())), k(a).dtype), (torch.Tensor, np.ndarray, a.dtype))

    def test_torch_tensors_without_elements(self):
        """Of PyTorch's own refusals one line, without its frames of C++; gradients that would be lost are refused."""
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        g = opjit.Graph()
        k = opjit.compile(g.input((4, 5)) + 1)
        a = torch.ones(4, 5)
        for x in (a.to("meta"), a.to_sparse(), torch.quantize_per_tensor(a, 0.1, 0, torch.qint8)):
            with self.assertRaisesRegex(RuntimeError, "^buffer 0: .*") as caught:
                k(x)
            self.assertNotIn("\n", str(caught.exception))
        for transform in (torch.func.vmap(k), torch.func.grad(lambda x: k(x).sum())):
            with self.assertRaisesRegex(RuntimeError, "^buffer 0: [^\n]*$"):
                transform(torch.ones(2, 4, 5))
        part = torch.ones(8, 5)[4:]  # whose address then is the distance to a storage that is gone
        part.untyped_storage().resize_(0)
        with self.assertRaisesRegex(opjit.Error, "^buffer 0: .* one without memory given$"):
            k(part)
        with self.assertRaisesRegex(ValueError, "^constant: a tensor without memory given$"):
            opjit.Graph().input((4, 5)) + part
        for size in (79, 40, 1):
            shrunk, out = torch.ones(4, 5), torch.ones(4, 5)
            for x in (shrunk, out):
                x.untyped_storage().resize_(size)
            for call in (lambda: k(shrunk), lambda: k(a, out=out)):
                with self.assertRaisesRegex(opjit.Error, "^buffer [01]: a tensor that is larger than its storage given, "
                                                         "which was resized$"):
                    call()
        kept = torch.ones(12, 5)[4:8]  # of which a storage may have just enough
        kept.untyped_storage().resize_(4 * 8 * 5)
        self.assertTrue(torch.equal(k(kept), torch.full((4, 5), 2.0)))
        kept.untyped_storage().resize_(4 * 8 * 5 - 1)
        with self.assertRaisesRegex(opjit.Error, "larger than its storage"):
            k(kept)
        w = torch.ones(4, 5, requires_grad=True)
        with self.assertRaisesRegex(opjit.Error, r"^buffer 1: a tensor that requires grad given[^\n]*$"):
            k(a, out=w)  # PyTorch's own operators refuse it, too
        self.assertTrue(torch.equal(w, torch.ones(4, 5)))
        for out in (None, a):
            with self.assertRaisesRegex(opjit.Error, r"^buffer 0: a tensor that requires grad given[^\n]*$"):
                k(w, out=out)
            with torch.no_grad():
                self.assertTrue(torch.equal(k(w, out=out), torch.full((4, 5), 2.0)))
        with self.assertRaisesRegex(opjit.Error, r"^buffer 0: a tensor that requires grad given[^\n]*$"):
            k(torch.nn.Parameter(a))  # another type, asked by itself
        self.assertTrue(torch.equal(k(torch.nn.Parameter(torch.ones(4, 5), False)), torch.full((4, 5), 2.0)))
        self.assertTrue(torch.equal(k(torch.ones(4, 5, requires_grad=True).detach()), torch.full((4, 5), 2.0)))

    def test_torch_views_of_other_signs(self):
        """Views whose elements in memory have the other sign, or are complex."""
        try:
            import torch
        except ImportError:
            self.skipTest("no PyTorch")
        g = opjit.Graph()
        k, one = opjit.compile(g.input((4,)) + 1), opjit.compile(opjit.Graph().input((1,)) + 1)
        a = torch.arange(4.0)
        z = torch.complex(a, a)
        for call in (lambda: k(torch._neg_view(a)), lambda: k(a, out=torch._neg_view(torch.zeros(4))),
                     lambda: one(z[3:].conj().imag)):
            with self.assertRaisesRegex(opjit.Error, r"^buffer [01]: a view with the negative bit given, .*$"):
                call()
        with self.assertRaisesRegex(opjit.Error, r"^buffer 0: float32 \[4\] expected, complex64 \[4\] given$"):
            k(z.conj())
        self.assertEqual(k(torch._neg_view(a).resolve_neg()).tolist(), [1, 0, -1, -2])
        self.assertEqual(k(z.conj().imag.contiguous()).tolist(), [1, 0, -1, -2])

    def test_jax(self):
        try:
            import jax.numpy as jnp
        except ImportError:
            self.skipTest("no JAX")
        g = opjit.Graph()
        k = opjit.compile(g.input((4, 5)) + 1)
        a = jnp.arange(20, dtype="float32").reshape(4, 5)
        out = np.empty((4, 5), "f")
        np.testing.assert_array_equal(k(a), np.asarray(a) + 1)
        k(a, out=out)
        np.testing.assert_array_equal(out, np.asarray(a) + 1)
        with self.assertRaisesRegex(opjit.Error, "a read-only one given"):
            k(out, out=a)
        np.testing.assert_array_equal(np.asarray(a), np.arange(20, dtype="f").reshape(4, 5))


def run_mask(mask):
    g = opjit.Graph()
    m = g.input(mask.shape, "bool")
    return opjit.compile(opjit.where(m, 5.0, 0.0))(mask)


if __name__ == "__main__":
    unittest.main()
