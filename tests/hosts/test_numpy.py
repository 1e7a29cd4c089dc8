# SPDX-License-Identifier: Apache-2.0
"""Functions of the package that NumPy has too: the same results, for many shapes, types and axes, and what is refused.
Of an array without dimensions opjit has one of one element, and its indices are uint32."""
import unittest
import warnings

import numpy as np

import opjit
from host_support import cases

INTEGERS, FLOATS = "i1 i2 i4 i8 u1 u2 u4 u8".split(), "f2 f4 f8".split()


def run(build, *arrays):
    """The kernel of build(inputs...), called."""
    g = opjit.Graph()
    y = build(*[g.input(a.shape, a.dtype) for a in arrays])
    k = opjit.compile(list(y) if isinstance(y, tuple) else y, level="quick")
    return k(*[arrays[int(name[1:])] for name, _, _ in k.inputs])


class Functions(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(1)
        warnings.simplefilter("ignore")
        np.seterr(all="ignore")

    def array(self, shape, dtype):
        """Small whole numbers; of floating-point types quarters."""
        if dtype == "?":
            return self.random.integers(0, 2, shape).astype(bool)
        x = self.random.integers(0 if dtype[0] == "u" else -20, 21, shape).astype(dtype)
        return x / np.array(4, dtype) if dtype[0] == "f" else x

    def same(self, function, *arrays, exact=True):
        """The function of the package, and of NumPy."""
        got, want = run(lambda *x: function(opjit, *x), *arrays), function(np, *arrays)
        rows = zip(got, want, strict=True) if isinstance(want, (tuple, list)) else [(got, want)]
        for y, z in rows:
            z = np.atleast_1d(z)
            self.assertEqual(y.shape, z.shape)
            if y.dtype == np.uint32 and z.dtype == np.int64:  # indices
                z = z.astype("u4")
            self.assertEqual(y.dtype, z.dtype)
            if exact or z.dtype.kind != "f":
                np.testing.assert_array_equal(y, z)
            else:
                eps = np.finfo(z.dtype).eps
                np.testing.assert_allclose(y.astype("d"), z.astype("d"), 8 * eps, 8 * eps)

    def every(self, functions, types, shape, exact=True):
        for dtype in types:
            x = self.array(shape, dtype)
            for n, f in enumerate(functions):
                with self.subTest(dtype=dtype, shape=shape, case=n):
                    self.same(f, x, exact=exact)

    def test_moves(self):
        functions = [
            lambda m, x: m.tile(x, 2), lambda m, x: m.tile(x, (2, 1, 1, 3)), lambda m, x: m.fliplr(x),
            lambda m, x: m.flipud(x), lambda m, x: m.rot90(x), lambda m, x: m.rot90(x, 2), lambda m, x: m.rot90(x, -1),
            lambda m, x: m.rot90(x, 5, (2, 0)), lambda m, x: m.diagonal(x), lambda m, x: m.diagonal(x, 1, -1, 0),
            lambda m, x: m.diagonal(x, -2, 1, 2), lambda m, x: m.diag(x[0]), lambda m, x: m.diag(x[0, 0]),
            lambda m, x: m.diag(x[0, 0], -2), lambda m, x: m.diag(x[0, 0], 1), lambda m, x: m.vstack([x[0], x[1, :2]]),
            lambda m, x: m.vstack([x[0, 0], x[1, 2]]), lambda m, x: m.hstack([x, x[:, :1]]),
            lambda m, x: m.hstack([x[0, 0], x[0, 1, :2]]), lambda m, x: m.dstack([x[0], x[1]]),
            lambda m, x: m.dstack([x[0, 0], x[0, 1]]), lambda m, x: m.column_stack([x[0, 0], x[1, :, :].T]),
            lambda m, x: m.append(x, x[:1], 0), lambda m, x: m.append(x, x[:1]),
            lambda m, x: m.concatenate([x, x], None),
            lambda m, x: m.array_split(x, 3, 1), lambda m, x: m.array_split(x, 4, -1),
            lambda m, x: m.split(x, [1, 2], 2),
            lambda m, x: m.hsplit(x, 2), lambda m, x: m.vsplit(x, 3), lambda m, x: m.dsplit(x, [2]),
            lambda m, x: m.atleast_2d(x[0, 0]), lambda m, x: m.atleast_3d(x[0]), lambda m, x: m.atleast_3d(x[0, 0]),
            lambda m, x: m.broadcast_arrays(x[:, :1], x[0]), lambda m, x: m.expand_dims(x, (0, -1)),
            lambda m, x: m.meshgrid(x[0, 0], x[0, 1, :2]), lambda m, x: m.meshgrid(x[0, 0], x[:, 0, 0], indexing="ij"),
            lambda m, x: m.meshgrid(x[0, 0], x[:, 0, 0], x[0, 1, :2]), lambda m, x: m.zeros_like(x),
            lambda m, x: m.full_like(x, 3, dtype="i4"), lambda m, x: m.ones_like(x, shape=(2, 2)),
            lambda m, x: m.swapaxes(x, -1, 0), lambda m, x: x.swapaxes(1, 2), lambda m, x: x.mT,
            lambda m, x: x.flatten(),
            lambda m, x: x.repeat(2, 1), lambda m, x: x.diagonal(), lambda m, x: m.permute_dims(x, (2, 0, 1))]
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap"):
            functions += [lambda m, x, w=w, mode=mode: m.pad(x, w, mode) for w in (
                1, (2, 1), ((0, 1), (2, 0), (1, 1)), ((1,), (0,), (2,)))]
        functions.append(lambda m, x: m.pad(x, 1, constant_values=1))
        self.every(functions, ["f4", "i8", "u1", "?"], (3, 4, 5))

    def test_sums(self):
        functions = [lambda m, x, f=f, a=a, k=k: getattr(m, f)(x, axis=a, keepdims=k) for f in (
            "sum", "prod", "max", "min", "any", "all", "count_nonzero", "nansum", "nanmax", "nanmin") for a, k in (
            (None, False), (-1, True), ((0, 2), False))]
        functions += [lambda m, x, f=f, a=a: getattr(m, f)(x, axis=a) for f in ("cumsum", "cumprod", "argmax", "argmin")
                      for a in (None, 0, -1)]
        functions += [lambda m, x: m.trace(x), lambda m, x: m.trace(x, -1, 2, 0), lambda m, x: x.trace(1),
                      lambda m, x: x.cumprod(1) if hasattr(x, "cumprod") else m.cumprod(x, 1)]
        self.every(functions, INTEGERS + ["?"], (2, 3, 4))
        self.every([lambda m, x: x.sum(), lambda m, x: (x > 0).sum(0)], FLOATS, (20, 40))
        self.every([lambda m, x: (x > 0).sum(), lambda m, x: m.mean(x > 0, 1)], ["i1"], (30, 40))
        self.every([lambda m, x: m.argmax(x, keepdims=True), lambda m, x: m.ptp(x, 1)], ["i4", "f4"], (3, 4))
        functions = [lambda m, x: m.mean(x), lambda m, x: m.mean(x, (0, -1)), lambda m, x: m.var(x, 1, ddof=1),
                     lambda m, x: m.std(x, -1, keepdims=True), lambda m, x: m.median(x), lambda m, x: m.median(x, 0),
                     lambda m, x: m.average(x, 0),
                     lambda m, x: m.average(x, -1, np.array([1, 2, 3, 1], "f") if x.dtype == "float32" else [1, 2, 3,
                     1]),
                     lambda m, x: m.average(x, weights=m.abs(x) + 1), lambda m, x: m.nanmean(x, 1)]
        self.every(functions, "i1 i4 u8 f4 f8".split(), (2, 3, 4), exact=False)

    def test_nan(self):
        for dtype in FLOATS:
            x = np.array([[1, np.nan, -np.inf, 3], [np.nan] * 4, [np.inf, 0, -0.0, 7], [-2, 5, np.nan, 5]], dtype)
            for n, f in enumerate([
                    lambda m, x: m.nan_to_num(x),
                    lambda m, x: m.nan_to_num(x, nan=1.5, posinf=7.0, neginf=-3.0), lambda m, x: m.isnan(x),
                    lambda m, x: m.isinf(x), lambda m, x: m.isposinf(x), lambda m, x: m.isneginf(x),
                    lambda m, x: m.isfinite(x), lambda m, x: m.signbit(x[2:]), lambda m, x: m.fmax(x, x.T),
                    lambda m, x: m.fmin(x, x.T), lambda m, x: m.sort(x), lambda m, x: m.argsort(x[2:], stable=True)
                    if m is np else m.argsort(x[2:]), lambda m, x: m.nansum(x, 1), lambda m, x: m.nanmax(x, 1),
                    lambda m, x: m.nanmin(x), lambda m, x: m.nanprod(x, 0), lambda m, x: m.median(x, 1),
                    lambda m, x: m.isclose(x, x.T), lambda m, x: m.isclose(x, x + m.zeros_like(x), equal_nan=True),
                    lambda m, x: m.allclose(x[2], x[2]), lambda m, x: m.allclose(x, x), lambda m, x: m.max(x, 1),
                    lambda m, x: m.searchsorted(m.sort(x[3]), x), lambda m, x: m.searchsorted(m.sort(x[3]), x, "right"),
                    lambda m, x: m.copysign(x[3], x[2]), lambda m, x: m.any(x, 1), lambda m, x: m.heaviside(x, x.T),
                    lambda m, x: m.clip(x, x.T, None), lambda m, x: m.percentile(x, 30),
                    lambda m, x: m.quantile(x[:, 1:], [0.75, 1.0], 1), lambda m, x: m.quantile(x[1:], 0.0, 1)]):
                with self.subTest(dtype=dtype, case=n):
                    self.same(f, x)

    def test_sorted(self):
        functions = [
            lambda m, x: m.sort(x), lambda m, x: m.sort(x, 0), lambda m, x: m.sort(x, None), lambda m, x: m.argsort(
                x, 1, kind="stable") if m is np else m.argsort(x, 1), lambda m, x: m.take_along_axis(
                x, np.array([[[0, 2, 1, 0]]]), 1), lambda m, x: m.take_along_axis(x, np.argsort(np.zeros(24)), None),
            lambda m, x: m.searchsorted(m.sort(x[0, 0]), x),
            lambda m, x: m.searchsorted(m.sort(x[0, 0]), x[1], "right"),
            lambda m, x: m.digitize(x, m.sort(x[0, 0])), lambda m, x: m.digitize(x, m.sort(x[0, 0]), right=True),
            lambda m, x: m.take_along_axis(x, np.array([[[-1]], [[1]]]), -1)]
        self.every(functions, INTEGERS + FLOATS, (2, 3, 4))
        for dtype in ("i4", "f8"):
            x, at, values = self.array((3, 5), dtype), np.array([[4, 0], [1, 2], [3, 0]]), self.array((3, 2), dtype)
            for v in (values, 7, values[:1]):
                want = x.copy()
                np.put_along_axis(want, at, v, 1)
                np.testing.assert_array_equal(run(lambda x: opjit.put_along_axis(x, at, v, 1), x), want)
        x = self.array((4, 7), "f8")
        for q in (0, 0.1, 0.5, 0.77, 1, [0.2, 0.9], [1, 0.95], [0, 1]):
            self.same(lambda m, x: m.quantile(x, q, axis=1), x, exact=False)
            self.same(lambda m, x: m.quantile(x, q), x, exact=False)
            self.same(lambda m, x: m.percentile(x, np.multiply(q, 100).tolist(), keepdims=True), x, exact=False)

    def test_pointwise(self):
        whole = [lambda m, x: m.abs(x), lambda m, x: m.negative(x), lambda m, x: m.sign(x), lambda m, x: m.floor(x),
                 lambda m, x: m.trunc(x), lambda m, x: m.round(x), lambda m, x: m.clip(x, 1, None),
                 lambda m, x: m.clip(x, x.T, 3), lambda m, x: m.bitwise_and(x, x.T), lambda m, x: m.bitwise_xor(x, 3),
                 lambda m, x: m.invert(x), lambda m, x: m.left_shift(x, 1), lambda m, x: m.right_shift(x, 2),
                 lambda m, x: m.not_equal(x, x.T),
                 lambda m, x: m.isnan(x), lambda m, x: m.isfinite(x), lambda m, x: m.signbit(x),
                 lambda m, x: m.logical_xor(x, x.T), lambda m, x: m.nan_to_num(x), lambda m, x: m.isclose(x, x.T, 0.5),
                 lambda m, x: m.select([x > 2, x > 1], [x, x.T], 5), lambda m, x: m.mod(x, m.abs(x.T) + 1),
                 lambda m, x: m.fmod(x, m.abs(x.T) + 1), lambda m, x: divmod(x, 3)[1], lambda m, x: +x,
                 lambda m, x: m.positive(x), lambda m, x: m.round(x, 2)]
        self.every(whole, INTEGERS, (5, 5))
        some = [w for n, w in enumerate(whole) if n not in range(8, 13)]
        self.every(some, FLOATS, (5, 5))
        self.every([lambda m, x: m.reciprocal(x)], ["f4", "f8"], (5, 5))
        functions = [lambda m, x, f=f: getattr(m, f)(x) for f in (
            "sin cos tan arctan arcsinh sinh cosh tanh expm1 exp2 degrees radians sinc fabs rint exp asinh "
            "atan deg2rad rad2deg".split())]
        functions += [lambda m, x, f=f: getattr(m, f)(m.abs(x) + 1) for f in (
            "cbrt sqrt log log2 log10 log1p arccosh".split())]
        functions += [lambda m, x, f=f: getattr(m, f)(x / 24) for f in "asin acos atanh arcsin arccos arctanh".split()]
        functions += [lambda m, x: m.arctan2(x, x.T), lambda m, x: m.hypot(x, x.T), lambda m, x: m.logaddexp(x, x.T),
                      lambda m, x: m.float_power(m.abs(x) + 1, 2), lambda m, x: m.around(m.sin(x), 1)]
        self.every(functions, ["f4", "f8", "i4"], (3, 3), exact=False)
        for dtype in ("f4", "f8"):
            x = np.array([1e-9, -1e-5, 0, -0.0, 1e-3, 3, 80, np.inf, np.nan, 1e-30], dtype)
            self.same(lambda m, x: m.log1p(x), x, exact=False)
            self.same(lambda m, x: m.expm1(x), x[:6], exact=False)
            self.same(lambda m, x: m.expm1(-x), x[6:], exact=False)
            self.same(lambda m, x: m.cbrt(x), np.concatenate([x, -x, np.array([-1e-40, 7e37, 27], dtype)]), exact=False)
            self.same(lambda m, x: m.hypot(x, 1e30), np.array([1e30, 3e30, 1, np.inf], dtype), exact=False)

    def test_products(self):
        for dtype in FLOATS + INTEGERS:
            x, y = self.array((3, 4, 5), dtype) % 4, self.array((3, 5, 4), dtype) % 4
            for n, f in enumerate([
                    lambda m, x, y: x @ y, lambda m, x, y: m.matmul(x[0, 0], y[0]), lambda m, x, y: x @ y[1, :, 2],
                    lambda m, x, y: m.dot(x[0], y[0]), lambda m, x, y: m.dot(x, y),
                    lambda m, x, y: m.dot(x[0, 0], y[0, :, 0]),
                    lambda m, x, y: m.inner(x, y[..., 0]), lambda m, x, y: m.dot(x, y[0, :, 0]),
                    lambda m, x, y: m.vdot(x, y), lambda m, x, y: m.tensordot(x, y, ([1, 2], [2, 1])),
                    lambda m, x, y: m.tensordot(x, y[0], 1), lambda m, x, y: m.tensordot(x[0], y[0], 0),
                    lambda m, x, y: m.tensordot(x, y, ([0, -1], [0, 1])), lambda m, x, y: m.kron(x[0], y[0, 0]),
                    lambda m, x, y: m.kron(x[:, :2], y[0]), lambda m, x, y: m.vecdot(x, x),
                    lambda m, x, y: x[0].dot(y[1]),
                    lambda m, x, y: m.cross(x, x[:, :1] + 1, axis=0), lambda m, x, y: m.outer(x[0], y[0]),
                    lambda m, x, y: m.cross(x.T, x.T[:1] + 1)]):
                with self.subTest(dtype=dtype, case=n):
                    self.same(f, x, y)

    def test_einsum(self):
        sizes = dict(a=2, b=3, c=4, d=5, i=3, j=3, o=1)
        for text in ("ab,bc->ac", "ab,bc", "ba,bc->ca", "abc,acd->abd", "ab->ba", "ab->", "ii", "ii->i", "iij->j",
        "iji->ij",
                     "a,b->ab", "a,a->a", "a,a", "ab,b,cb->ac", "abc,abc->abc", "abc,abd,acd->", "ab,cd->", "ao,ob->ab",
                     "ao,bo->ab", "iii->i", "ii,jj->ij", "bda,acb->cd", "ab,ab->b", "oab,oab->o", "abcd->dacb",
                     "a,b,c,d",
                     " ab , bc -> ac ", "ijk,ijk->", "ba,ca,da->bcd"):
            terms = text.partition("->")[0].split(",")
            shapes = [tuple(sizes.get(x, 4) for x in term.strip()) for term in terms]
            for dtype in ("f8", "f4", "i4", "i1"):
                arrays = [self.array(s, dtype) % 3 for s in shapes]
                with self.subTest(text=text, dtype=dtype):
                    self.same(lambda m, *x: m.einsum(text, *x), *arrays)
        x, y = self.array((2, 3, 4), "f8"), self.array((4, 5), "f8")
        self.same(lambda m, x, y: m.einsum("...a,ab->...b", x, y), x, y)
        self.same(lambda m, x, y: m.einsum("...a,ab", x, y), x, y)
        self.same(lambda m, x, y: m.einsum("a...b,b...->a...", x, y[:, :3]), x, y)
        self.same(lambda m, x: m.einsum("...ab->...ba", x), x)
        self.same(lambda m, x: m.einsum("a...->...", x), x)
        self.same(lambda m, x, y: m.einsum("...,...->...", x, y[:, 0]), x, y)
        self.same(lambda m, x, y: m.einsum("ab,ab->ab", x[0], x[1, :1]), x, y)

    def test_random_einsum(self):
        for seed in range(cases(60)):
            random = np.random.default_rng(seed)
            sizes = {c: int(random.choice([1, 2, 3, 5])) for c in "abcdef"}
            terms = ["".join(random.choice(list("abcdef"), random.integers(1, 4))) for _ in range(
                random.integers(1, 5))]
            every = sorted(set("".join(terms)))
            result = "".join(random.permutation(every)[:random.integers(0, min(5, len(every) + 1))])
            arrays = [random.integers(-3, 4, [sizes[c] for c in t]).astype("f8") for t in terms]
            with self.subTest(seed=seed, text=",".join(terms) + "->" + result):
                self.same(lambda m, *x: m.einsum(",".join(terms) + "->" + result, *x), *arrays)

    def test_generated(self):
        for args in ((0, 1), (2, 9, 7), (0, 1, 11), (3, -5, 9), (0, 1, 4, False), (1, 2, 1), (0.1, 1e6, 1000)):
            for dtype in ("f4", "f8", "i4", "f2"):
                got = opjit.compile(opjit.linspace(*args, dtype=dtype))()
                np.testing.assert_array_equal(got, np.linspace(*args, dtype=dtype))
        np.testing.assert_array_equal(opjit.compile(opjit.identity(3))(), np.identity(3, "f"))
        x = self.array((3,), "f8")
        np.testing.assert_array_equal(run(lambda x: x + opjit.linspace(0, 1, 3), x), x + np.linspace(0, 1, 3))
        np.testing.assert_array_equal(run(lambda x: opjit.sum(opjit.arange(5)) + x, x.astype("i")), x.astype("i") + 10)

    def test_without_a_graph(self):
        """Numbers, arrays, and tensors that belong to no graph yet."""
        x = self.array((3, 4), "f4")
        for f in (lambda m, a: m.sort(a), lambda m, a: m.clip(a, -1, m.abs(a)), lambda m, a: m.einsum("ab->b", a),
                  lambda m, a: m.median(a), lambda m, a: m.vstack([a, a]), lambda m, a: m.isclose(a, 0), lambda m, a:
                  m.pad(a, 1, "edge"), lambda m, a: m.log1p(m.abs(a)), lambda m, a: m.sqrt(m.abs(a))):
            np.testing.assert_allclose(opjit.compile(f(opjit, x))(), f(np, x), 1e-6)
        y = opjit.ones((3, 4))
        np.testing.assert_array_equal(run(lambda x: opjit.vstack([y, x]) + opjit.sort(opjit.tile(y, (2, 1))), x),
                                      np.vstack([np.ones_like(x), x]) + 1)
        np.testing.assert_array_equal(opjit.compile(opjit.einsum("ab,cb->ac", y, y))(), np.full((3, 3), 4, "f"))
        self.assertEqual([t.shape for t in opjit.split(y, 2, 1)], [(3, 2)] * 2)
        for f in (lambda m, x: x + m.arange(3, dtype=x.dtype)[:, None] * m.arange(4, dtype=x.dtype),
                  lambda m, x: m.where(m.arange(4) > m.arange(3)[:, None], x, 0 * x),
                  lambda m, x: x / (2 / (m.ones(4, x.dtype) + m.arange(4, dtype=x.dtype)))):
            for dtype in ("f4", "f8"):
                self.same(f, x.astype(dtype))
        self.same(lambda m, x: x + m.arange(3, dtype="i4")[:, None] * m.arange(4, dtype="i4"), x.astype("i4"))
        np.testing.assert_array_equal(run(lambda x: x + opjit.arange(3)[:, None] * opjit.arange(4), x.astype("i8")),
                                      x.astype("i8") + np.arange(3)[:, None] * np.arange(4))
        for _ in range(40):  # each of them twice: it joins a graph of its own before that takes long
            y = y + y
        self.assertEqual(y.shape, (3, 4))

    def test_numbers_of_numpy(self):
        """NumPy's numbers as axes, counts and bounds; powers of 64 bits."""
        x, one, two = self.array((4, 6), "f8"), np.int64(1), np.int32(2)
        for n, f in enumerate((
                lambda m, x: m.sum(x, one), lambda m, x: m.sum(x, ()), lambda m, x: m.roll(x, two, one),
                lambda m, x: m.repeat(x, two, one), lambda m, x: m.split(x, two, one), lambda m, x: m.pad(x, two),
                lambda m, x: m.moveaxis(x, one, 0), lambda m, x: m.tile(x, two), lambda m, x: m.expand_dims(x, one),
                lambda m, x: m.percentile(x, np.int64(50)), lambda m, x: m.clip(x, np.float32(-1), np.int64(1)),
                lambda m, x: m.tensordot(x, x.T, one), lambda m, x: m.dot(x, np.float32(2)))):
            with self.subTest(case=n):
                self.same(f, x)
        for dtype in ("i8", "u8", "i4"):
            for n in (1, 2, 3, 7, 8):
                self.same(lambda m, x: x ** n + m.power(x, n), self.array((9,), dtype))
        for n, y in enumerate((opjit.ones(np.int64(3)), opjit.arange(np.int32(0), np.float32(3), np.float32(1)),
                               opjit.ones(6).reshape(np.int64(3), two)[:, 0], opjit.full((np.int64(3),), 1),
                               opjit.ones((3, 1)).transpose(one, np.int64(0))[0])):
            with self.subTest(case=n):
                self.assertEqual(opjit.compile(y)().shape, (3,))
        self.assertEqual(opjit.Graph().input(np.int64(3)).shape, (3,))
        k = opjit.compile(lambda n: opjit.Graph().input((n,)) + 1, dims={"n": (np.int64(1), np.int64(9))})
        self.assertEqual(k(np.ones(3, "f")).shape, (3,))
        y = opjit.Graph().input((2, 3))
        for axis in (1.0, "a", (0, None)):
            with self.assertRaisesRegex(TypeError, "axis: .*, must be a whole number"):
                opjit.sum(y, axis)

    def test_dynamic(self):
        """With sizes that change from call to call."""
        def build(n):
            g = opjit.Graph()
            x, y = g.input((n, 4), name="x"), g.input((n, 4), name="y")
            return {"a": opjit.einsum("na,nb->ab", x, y), "b": opjit.vstack([x, y]), "c": opjit.isclose(x, y),
                    "d": opjit.count_nonzero(x > 0, 0), "e": opjit.pad(x, 1, "edge")}
        k = opjit.compile(build, dims={"n": (1, 40, 8)})
        for n in (1, 7, 40):
            x, y = self.array((n, 4), "f4"), self.array((n, 4), "f4")
            got = k(x, y)
            for a, b in zip(got, (np.einsum("na,nb->ab", x, y), np.vstack([x, y]), np.isclose(x, y),
                                  np.count_nonzero(x > 0, 0), np.pad(x, 1, "edge"))):
                np.testing.assert_array_equal(a, b)

    def test_refused(self):
        x = opjit.Graph().input((2, 3))
        m = x > 0
        for wrong, kind, line in (
                (lambda: x[m], TypeError, "dimension 0: a mask given, and how many elements it takes is not known"),
                (lambda: x[np.array([True, False])], TypeError, "dimension 0: a mask given"),
                (lambda: x[np.array([1, 0])], TypeError, "dimension 0: ndarray given, an index is an integer"),
                (lambda: float(x), TypeError, "has no value before the kernel runs"),
                (lambda: x.__setitem__(0, 1), TypeError, "has no value before the kernel runs"),
                (lambda: opjit.pad(x, 1, "mean"), ValueError, "pad: mode 'mean', must be one of constant, edge"),
                (lambda: opjit.pad(x, (1, 2, 3)), ValueError, r"pad: widths \(1, 2, 3\), must be at least 0"),
                (lambda: opjit.pad(x, -1), ValueError, "pad: widths -1, must be at least 0"),
                (lambda: opjit.max(x, (1, -1)), ValueError, r"axis: \(1, -1\), each dimension must be there once"),
                (lambda: opjit.diagonal(x, 3), ValueError, "diagonal: offset 3, must be within 2 rows and 3 columns"),
                (lambda: opjit.diagonal(x, 0, 1, 1), ValueError, "axis: .1, 1., each dimension must be there once"),
                (lambda: opjit.array_split(x, 3), ValueError, "array_split: 3 parts, must be 1 to 2"),
                (lambda: opjit.split(x, 2, 1), ValueError, "split: 2 parts, must divide 3"),
                (lambda: opjit.tile(x, 0), ValueError, "tile: 0 times, must be at least 1"),
                (lambda: opjit.expand_dims(x, 3), ValueError, "expand_dims: axis 3, must be within 3 dimensions"),
                (lambda: opjit.linspace(0, 1, 0), ValueError, "linspace: 0 numbers, must be at least 1"),
                (lambda: opjit.linspace(0, opjit.inf), ValueError, "linspace: 0 to inf, must be finite"),
                (lambda: opjit.meshgrid(x, indexing="ji"), ValueError, "meshgrid: indexing 'ji', must be"),
                (lambda: opjit.broadcast_arrays(x, x.T), ValueError, r"sizes \(2, 3\), must be the same or 1"),
                (lambda: opjit.searchsorted(x, x), ValueError, "searchsorted: a has 2 dimensions, must be 1"),
                (lambda: opjit.searchsorted(x[0], x, "up"), ValueError, "searchsorted: side 'up'"),
                (lambda: opjit.quantile(x, 2), ValueError, "quantile: 2, must be 0 to 1"),
                (lambda: opjit.take_along_axis(x, [1], 0), ValueError, "indices: 1 dimensions, must be 2"),
                (lambda: opjit.average(x, None, [1, 2]), ValueError, r"average: weights \[2\], must be \[2, 3\]"),
                (lambda: opjit.tensordot(x, x, 1), ValueError, r"tensordot: sizes \[3\] of a's axes and \[2\] of b's"),
                (lambda: opjit.cross(x.T, x.T), ValueError, "cross: 2 elements along the axis, must be 3"),
                (lambda: opjit.einsum("ab", x, x), ValueError, "einsum: 1 groups of labels in 'ab', must be 2"),
                (lambda: opjit.einsum("a", x), ValueError, "einsum: labels 'a' of operand 0, which has 2 dimensions"),
                (lambda: opjit.einsum("a1", x), ValueError, "einsum: labels 'a1' of operand 0"),
                (lambda: opjit.einsum("ab->c", x), ValueError, "einsum: label 'c' of the result"),
                (lambda: opjit.einsum("ab->aa", x), ValueError, "einsum: label 'a' of the result"),
                (lambda: opjit.einsum("ab,ba", x, x), ValueError, "einsum: label 'b' has sizes 3 and 2"),
                (lambda: opjit.matmul(m, m.T), TypeError, "matmul: bool, must be numbers"),
                (lambda: opjit.matmul(x.astype("i4"), x.astype("i4")), ValueError, "matmul: 2 rows of b, must be 3"),
                (lambda: opjit.select([], []), ValueError, "select: 0 conditions and 0 choices, must be as many")):
            with self.assertRaisesRegex(kind, line):
                wrong()
        self.assertEqual((x + 1).shape, (2, 3))  # none of these reached the graph


if __name__ == "__main__":
    unittest.main()
