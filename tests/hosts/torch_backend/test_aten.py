# SPDX-License-Identifier: Apache-2.0
"""Each row of the table of aten beside PyTorch: types, shapes, strides, NaN and infinities; and random compositions."""
import inspect
import os
import random
import unittest

import torch
import torch.nn.functional as F

import opjit.torch
from opjit.torch import _aten
from support import Case, cases, compiled, counters, kernels_of, seen

aten = torch.ops.aten
FLOATS = (torch.float32, torch.float64, torch.float16)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
SHAPES = ((), (7,), (3, 1, 5), (2, 3, 4, 17))
SPECIAL = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5]


def drawn(shape, dtype, seed=1):
    """Random elements, special ones among those of floats."""
    g = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(shape, generator=g) < 0.5
    if dtype not in FLOATS:
        return torch.randint(0 if dtype is torch.uint8 else -9, 9, shape, generator=g).to(dtype)
    x = (torch.randn(shape, generator=g, dtype=torch.float64) * 2).to(dtype)
    if x.numel() > 30:
        x.view(-1)[:len(SPECIAL)] = torch.tensor(SPECIAL[::-1] if seed % 2 else SPECIAL, dtype=dtype)
    return x


class Pointwise(Case):
    def over(self, f, arity=1, dtypes=FLOATS, **more):
        for dtype in dtypes:
            for shape in SHAPES:
                with self.subTest(dtype=dtype, shape=shape):
                    self.check(f, *[drawn(shape, dtype, s) for s in range(1, arity + 1)], **more)
            if arity == 2:  # a dimension that is repeated, and another order in memory
                with self.subTest(dtype=dtype, shape="broadcast"):
                    self.check(f, drawn((3, 1, 5), dtype), drawn((4, 5), dtype, 2))
                with self.subTest(dtype=dtype, shape="transposed"):
                    self.check(f, drawn((5, 4), dtype).t(), drawn((5, 4), dtype, 2).t())

    def test_unary(self):
        for f in (torch.exp, torch.log, torch.sqrt, torch.rsqrt, torch.sin, torch.cos, torch.tan, torch.tanh, torch.erf,
                  torch.sigmoid, torch.asin, torch.acos, torch.atan, torch.sinh, torch.cosh, torch.asinh, torch.acosh,
                  torch.atanh, torch.ceil, torch.floor, torch.round, torch.trunc, torch.abs, torch.neg,
                  torch.reciprocal,
                  torch.relu, F.silu, torch.isnan, F.leaky_relu, F.hardtanh, F.hardsigmoid, F.hardswish):
            with self.subTest(f=f.__name__):
                self.over(lambda x: f(x), dtypes=(torch.float32,))
        self.over(lambda x: F.gelu(x.nan_to_num(posinf=9)) + x)  # PyTorch's own of inf is NaN or inf, by machine
        for f in (torch.exp, torch.tanh, torch.round, torch.abs, torch.rsqrt):
            self.over(lambda x: f(x), dtypes=(torch.float64, torch.float16))
        self.over(lambda x: F.gelu(x, approximate="tanh"))
        for f in (torch.abs, torch.neg):
            self.over(lambda x: f(x), dtypes=INTEGERS[:4])
        self.over(torch.exp, dtypes=(torch.int64, torch.bool))
        self.over(torch.logical_not, dtypes=(torch.float32, torch.int64, torch.bool))
        self.over(torch.bitwise_not, dtypes=(torch.bool,))

    def test_gelu(self):
        """As near as PyTorch's own everywhere, and x or 0 far from 0."""
        x = torch.cat([torch.linspace(-9, 9, 200001), torch.tensor([1e3, 3e38, -1e3, -3e38, -0.0, 1e-30])])
        y, want = kernels_of(F.gelu, x)(x), F.gelu(x.double())
        self.assertLess((y - want)[:200001].abs().max(), 2e-6)
        self.assertEqual(y[-6:].tolist(), [1000.0, x[-5].item(), 0.0, 0.0, 0.0, (x[-1] / 2).item()])

    def test_near_zero(self):
        """Differences of nearly the same numbers, and what becomes of the greatest and least."""
        for dtype, near in ((torch.float32, 2e-6), (torch.float64, 1e-14)):
            small = torch.logspace(-20, 0, 400, dtype=dtype)
            ends = torch.tensor([*SPECIAL, 80.0, -80.0, 3e38, -3e38, -0.999], dtype=dtype)
            x = torch.cat([small, -small * 0.99, ends])
            for f in (torch.expm1, torch.log1p, lambda x: F.elu(x), lambda x: F.selu(x), lambda x: F.celu(x, 2.0),
                      lambda x: F.elu(x, 0.5)):
                torch.testing.assert_close(kernels_of(f, x)(x), f(x), rtol=near, atol=0, equal_nan=True)
        for f in (torch.expm1, torch.log1p, lambda x: F.elu(x), lambda x: F.selu(x)):
            self.over(f, dtypes=(torch.float16,))

    def test_binary(self):
        for f in (torch.add, torch.sub, torch.mul, torch.maximum, torch.minimum, torch.eq, torch.ne, torch.lt, torch.gt,
                  torch.le, torch.ge):
            with self.subTest(f=f.__name__):
                self.over(f, 2, dtypes=(torch.float32, torch.float16, torch.int64, torch.uint8))
        self.over(torch.div, 2)
        self.over(lambda a, b: torch.pow(a.abs(), b), 2, dtypes=(torch.float32, torch.float64))
        self.over(lambda a: 2.0 ** a, dtypes=(torch.float32,))
        for f in (torch.logical_and, torch.logical_or, torch.logical_xor):
            self.over(f, 2, dtypes=(torch.bool, torch.int64, torch.float32))
        for f in (torch.bitwise_and, torch.bitwise_or, torch.bitwise_xor, torch.add, torch.mul):
            self.over(f, 2, dtypes=(torch.bool,))

    def test_windows(self):
        """Two comparisons at once, and others."""
        x = torch.randn(9, 9)
        for f in (lambda x, c, q: (c <= q) & (c > q - 3), lambda x, c, q: (c == q) & (q != 4) & (c >= 2),
                  lambda x, c, q: (c < q) | (c > q + 2) & (x > 0), lambda x, c, q: (x > 0) & (x < 0.5),
                  lambda x, c, q: (c <= q) & torch.ones(9, 9, dtype=torch.bool).triu(-2)):
            self.check(lambda x: torch.where(f(x, torch.arange(9)[None, :], torch.arange(9)[:, None]), x, -1.5), x)

    def test_numbers(self):
        for f in (lambda x: x + 2, lambda x: x * 3 - 1, lambda x: 2 - x, lambda x: x / 4, lambda x: x > 0.5,
                  lambda x: torch.add(x, x, alpha=2), lambda x: torch.sub(x, x, alpha=3), lambda x: aten.rsub(x, 2.0),
                  lambda x: torch.rsub(x, x, alpha=2), lambda x: x != 0, lambda x: x.clamp(-1, 2), lambda x: x <= 1,
                  lambda x: x.clamp_min(0), lambda x: x.clamp_max(1), lambda x: x == 1, lambda x: x < 2,
                  lambda x: x >= 0, lambda x: aten.add.Scalar(x, 2), lambda x: aten.sub.Scalar(x, 2),
                  lambda x: aten.mul.Scalar(x, 2), lambda x: aten.div.Scalar(x, 2)):
            self.over(f, dtypes=(torch.float32, torch.int32))
        for exponent in (2, 3, -1, -2, 0.5, -0.5):
            self.over(lambda x: x ** exponent, dtypes=(torch.float32, torch.float64))
        for divisor in (3, -4):
            self.over(lambda x: x % divisor, dtypes=(torch.int64, torch.int32))
        self.check(lambda x: x + (2**53 + 1), torch.tensor([1, 2]))
        self.check(lambda x, n: x + n, drawn((3, 4), torch.int32), torch.tensor(2.5))
        self.check(lambda x, a, b: torch.clamp(x, a, b), *[drawn((3, 40), torch.float32, s) for s in (1, 2, 3)])

    def test_choice(self):
        c = drawn((3, 40), torch.bool)
        for dtype in (torch.float32, torch.int64, torch.float16, torch.bool):
            a, b = drawn((3, 40), dtype), drawn((40,), dtype, 2)
            self.check(torch.where, c, a, b)
            self.check(lambda c, a: a.masked_fill(c, 1), c, a)
            self.check(lambda c, a, v: a.masked_fill(c, v), c, a, drawn((), dtype))
        x = drawn((3, 40), torch.float32)
        self.check(lambda c, x: torch.where(c, x, -1.5), c, x)
        self.check(lambda c, x: torch.where(c, 2.0, x), c, x)
        self.check(lambda c: torch.where(c, 1.0, 2.0), c)
        self.check(lambda c: torch.where(c, 1, 2), c)
        for f in (torch.addcmul, torch.addcdiv):
            self.check(lambda x: f(x, x + 1, x + 2, value=0.5), x)
            self.check(lambda x: f(x, x + 1, x + 2), x)

    def test_gradients(self):
        for dtype in (torch.float32, torch.float64):
            g, x = drawn((3, 40), dtype), drawn((3, 40), dtype, 3)
            for op in (aten.gelu_backward, aten.silu_backward, aten.sigmoid_backward, aten.tanh_backward):
                self.check(lambda g, x: op(g, x), g, x)
            self.check(lambda g, x: aten.gelu_backward(g, x.nan_to_num(0, 3, -3), approximate="tanh"), g, x)
            self.check(lambda g, x: aten.threshold_backward(g, x, 0), g, x)
            y = torch.randn(5, 7, dtype=dtype).softmax(-1)
            self.check(lambda g, y: aten._softmax_backward_data(g, y, 1, dtype), y * 2 - 1, y)
            self.check(lambda g, y: aten._log_softmax_backward_data(g, y, 1, dtype), y * 2 - 1, y.log())

    def test_casts(self):
        for source in (torch.float32, torch.float64, torch.float16, torch.bool, *INTEGERS):
            for target in (torch.float32, torch.float64, torch.float16, torch.bool, *INTEGERS):
                if source is not target and (target in FLOATS or target is torch.bool or source not in FLOATS):
                    self.check(lambda x: x.to(target), drawn((3, 40), source))
        kernels_of(lambda x: torch.ops.prims.convert_element_type(x, torch.float64), drawn((3,), torch.float32))
        self.check(lambda x: x.to(torch.int8), torch.tensor([300, -300, 127, 128, 2**40]))

    def test_left_to_pytorch(self):
        x = drawn((3, 40), torch.float32)
        for f in (lambda x: x.to(torch.int32), lambda x: x // 2, lambda x: x % 2.0, lambda x: x.to(torch.bfloat16) + 1,
                  lambda x: torch.complex(x, x) * 2, lambda x: x[:, :0] + 1, lambda x: x._neg_view().clone(),
                  lambda x: x.sign(), lambda x: x.view((1,) * 7 + (3, 40)) + 1):
            with self.subTest(f=inspect.getsource(f)):
                module = kernels_of(f, x)
                self.assertEqual(counters["kernels"], 0)
                torch.testing.assert_close(module(x), f(x), equal_nan=True)


class Moves(Case):
    def test_generated(self):
        one = torch.ones(3)
        for f in (lambda x: torch.arange(7) + torch.arange(3, 10), lambda x: torch.arange(2, 9, 3) * 2,
                  lambda x: torch.eye(4, 5),
                  lambda x: torch.arange(5, -5, -2, dtype=torch.float32) + 1, lambda x: torch.eye(3) * 2,
                  lambda x: torch.full((2, 3), -1.5).triu(1), lambda x: torch.zeros(3, 3, dtype=torch.int64) + 1,
                  lambda x: torch.ones(3, 3, dtype=torch.bool).tril(), lambda x: torch.full_like(x, 2) + x,
                  lambda x: torch.ones_like(x) + x, lambda x: torch.zeros_like(x, dtype=torch.int32) + 1,
                  lambda x: x.new_full((2, 3), 4) + 1, lambda x: x.new_zeros(2, 3) + 1, lambda x: x.new_ones(2) + x[:2],
                  lambda x: aten.scalar_tensor(2.5) + x, lambda x: aten.fill.Scalar(x, 3) + x,
                  lambda x: torch.ops.prims.iota(6, start=1, step=2, dtype=torch.int64, device="cpu",
                                                 requires_grad=False) + 1):
            self.check(f, one)

    def test_triangles(self):
        for dtype in (torch.float32, torch.int64, torch.bool, torch.float16):
            for diagonal in (0, 2, -1, 9, -9, 2**40):
                self.check(lambda x: x.tril(diagonal), drawn((2, 4, 6), dtype))
                self.check(lambda x: x.triu(diagonal), drawn((2, 4, 6), dtype))

    def test_views(self):
        x = drawn((2, 3, 4, 5), torch.float32)
        for f in (lambda x: x.view(6, 20), lambda x: x.permute(3, 1, 0, 2), lambda x: x.transpose(-1, 1),
                  lambda x: x[1], lambda x: x[:, 1:], lambda x: x[:, :, ::3], lambda x: x[..., -2],
                  lambda x: x.unsqueeze(2), lambda x: x[:, :1].squeeze(1), lambda x: x[:1, :1].squeeze(),
                  lambda x: x[:1, :1].squeeze((0, 1)), lambda x: x[:, :1].expand(2, 3, 4, 5),
                  lambda x: x.reshape(-1), lambda x: x.split(2, 1)[0], lambda x: x.split((1, 2), 1)[1],
                  lambda x: x.unbind(1)[2], lambda x: x.flatten(1).t(), lambda x: aten._unsafe_view(x, (24, 5)),
                  lambda x: aten.alias(x), lambda x: x.detach(), lambda x: aten.squeeze.dim(x[:1], 0),
                  lambda x: x.chunk(2, -1)[1], lambda x: x.reshape(-1)[3]):
            self.check(lambda x: f(x * 2 + 1), x)       # PyTorch's view of a kernel's result
            self.check(lambda x: f(x) * 2 + 1, x)       # a kernel that reads through one
            self.check(lambda x: f(x.exp()).abs() + 1, x)

    def test_copies(self):
        x, b = drawn((2, 3, 4), torch.float32), drawn((2, 3, 4), torch.bool)
        for f in (lambda x: x.clone(), lambda x: x.transpose(0, 1).contiguous(), lambda x: torch.cat([x, x], 1),
                  lambda x: torch.cat([x[:, :1], x], -2), lambda x: x.flip(0, 2), lambda x: x.repeat(2, 1, 1, 3),
                  lambda x: x.roll(5), lambda x: x.roll((1, -2, 3), (0, 2, 2)), lambda x: x.roll(-1, -1),
                  lambda x: aten.lift_fresh_copy(x)):
            self.check(f, x)
            self.check(f, b)
        self.check(lambda x: F.pad(x, (1, 2, 0, 3), value=-1.5), x)
        self.check(lambda x: F.pad(x, (1, 2)), drawn((2, 3), torch.int64))


    def test_rows(self):
        """Results in which some rows are another tensor's, which in-place operators on views become."""
        x = drawn((4, 6, 5), torch.float32)
        for start, end in ((0, 2), (1, 3), (-2, 2**63 - 1), (None, None), (3, 99)):
            self.check(lambda x: aten.slice_scatter(x, x[:, slice(start, end)] * 2 + 1, 1, start, end), x)
        for index in (0, 2, -1):
            self.check(lambda x: aten.select_scatter(x, x[:, :, 1] * 2 + 1, -1, index), x)
        self.check(lambda x: aten.slice_scatter(x, x[1:2], 0, 3), drawn((4, 6), torch.bool))
        self.check(lambda x, y: aten.copy(x, y * 2) + 1, x, drawn((6, 5), torch.float32))
        self.check(lambda x, y: aten.copy(x, y) + 1, x, drawn((4, 6, 1), torch.int32))
        for f in (lambda x: aten.slice_scatter(x, x[::2], 0, 0, 4, 2), lambda x: aten.slice_scatter(x, x[:0], 0, 4),
                  lambda x: aten.copy(x.to(torch.int64), x[0])):
            with self.subTest(f=inspect.getsource(f)):
                torch.testing.assert_close(kernels_of(f, x)(x), f(x), equal_nan=True)

    def test_nearest(self):
        """Elements repeated a power of two of times; other sizes are PyTorch's."""
        for d in (1, 2, 3):
            for name in ("upsample_nearest", "_upsample_nearest_exact"):
                op, x = getattr(aten, f"{name}{d}d").default, torch.randn(2, 3, *(3, 5, 4)[:d])
                with opjit.torch._as_one():
                    self.check(lambda x: op(x, [2 * s for s in x.shape[2:]]) + 1, x)
                    self.check(lambda x: op(x, [x.shape[2] * 4, *x.shape[3:]], *[4.0, 1.0, 1.0][:d]) + 1, x)
                    for f in (lambda x: op(x, [3 * s for s in x.shape[2:]]), lambda x: op(x, [7, 9, 3][:d]),
                              lambda x: op(x, [2 * s for s in x.shape[2:]], *[1.9] * d)):
                        self.assertEqual(kernels_of(f, x)(x).tolist(), f(x).tolist())


class Axes(Case):
    def test_sums(self):
        x = torch.randn(2, 3, 40)
        for f in (lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.sum((0, -1), keepdim=True), lambda x: x.mean(),
                  lambda x: x.mean(-1, keepdim=True), lambda x: x.amax(-1), lambda x: x.amin((0, 1)),
                  lambda x: x.cumsum(1), lambda x: x.sum(-1, dtype=torch.float64)):
            self.check(f, x)
            self.check(f, x.double())
        for f in (lambda x: x.sum(), lambda x: x.sum(1), lambda x: x.amax(1), lambda x: x.cumsum(0)):
            self.check(f, drawn((3, 40), torch.int64))
        self.check(lambda x: x.sum(-1), x.half())
        self.check(lambda x: x.mean(-1), x.half())
        self.check(lambda x: x.sum(), drawn((3, 40), torch.bool))
        self.check(lambda x: x.amax(-1), drawn((3, 40), torch.float32))
        self.check(lambda x: x.amin(0), drawn((3, 40), torch.float32))
        self.check(lambda x: x.amin(), drawn((3, 40), torch.float64))
        for f in (lambda x: x.any(), lambda x: x.all(), lambda x: x.any(1), lambda x: x.all(0, keepdim=True),
                  lambda x: torch.any(x, (0, 1)), lambda x: torch.all(x, (0, 1))):
            self.check(f, drawn((3, 4), torch.bool))
            self.check(f, drawn((3, 40), torch.float32))

    def test_softmax(self):
        masked = torch.randn(4, 5)
        masked[1] = -float("inf")  # a row without weights is NaN
        for dtype in FLOATS:
            for f in (lambda x: x.softmax(-1), lambda x: x.softmax(0), lambda x: x.log_softmax(1)):
                self.check(f, masked.to(dtype))
        self.check(lambda x: aten._softmax(x, -1, False), drawn((3, 40), torch.float32))

    def test_safe_softmax(self):
        masked = torch.randn(4, 5)
        masked[1] = -float("inf")  # here its weights are 0
        self.check(lambda x: aten._safe_softmax(x, -1), masked)
        self.check(lambda x: aten._safe_softmax(x, 0), masked)

    def test_norms(self):
        for dtype in (torch.float32, torch.float64):
            x, w, b = (torch.randn(s, dtype=dtype) for s in ((4, 3, 16), 16, 16))
            self.check(lambda x, w, b: F.layer_norm(x, (16,), w, b), x, w, b)
            self.check(lambda x: F.layer_norm(x, (3, 16)), x)
            self.check(lambda x, w: F.layer_norm(x, (16,), w, eps=0.1), x, w)
            self.check(lambda x, w, b: aten.native_layer_norm(x, (16,), w, b, 1e-5), x, w, b, tolerance=1e-4)
            _, mean, rstd = aten.native_layer_norm(x, (16,), w, b, 1e-5)
            self.check(lambda g, x, m, r, w, b: aten.native_layer_norm_backward(
                g, x, (16,), m, r, w, b, [True, True, True]), x.flip(0), x, mean, rstd, w, b, tolerance=1e-4)
            v = torch.rand(3, dtype=dtype) + 0.5
            self.check(lambda x, w, b, m, v: aten._native_batch_norm_legit_no_training(x, w, b, m, v, 0.1, 1e-5)[0], x,
                       w[:3], b[:3], w[3:6], v)

        x, w, b = (torch.randn(s).half() for s in ((4, 3, 16), 16, 16))
        self.check(lambda x, w, b: F.layer_norm(x, (16,), w, b), x, w, b)
        self.check(lambda x: F.layer_norm(x, (16,)), x)

    def test_variances(self):
        infinite = torch.randn(3, 40)
        infinite[0], infinite[1, 3], infinite[2, 5] = -float("inf"), float("inf"), float("nan")
        for dtype in (torch.float32, torch.float64):
            x = torch.randn(3, 4, 5, dtype=dtype)
            for f in (torch.var, torch.std, torch.var_mean, torch.std_mean):
                for more in ({}, {"dim": -1}, {"dim": (0, 2), "correction": 0, "keepdim": True}, {"correction": 3}):
                    self.check(lambda x: f(x, **more), x)
            for f in (lambda x: x.logsumexp(-1), lambda x: x.logsumexp((0, 1), keepdim=True), lambda x: x.norm(),
                      lambda x: x.norm(dim=-1), lambda x: F.normalize(x, dim=1)):
                self.check(f, x)
            self.check(lambda x: x.logsumexp(-1), infinite.to(dtype))
            self.assertEqual(len(kernels_of(lambda x: x.var(-1) * 1, x[..., :1]).graph.nodes), 4)  # of one: NaN
        for correction in (0, 1):  # of no dimensions (IndexError)
            self.same(compiled(lambda x: x.sum().var(0, correction=correction))(torch.ones(2)),
                      torch.ones(2).sum().var(0, correction=correction))

    def test_layers(self):
        """Norms of batches, which training has, and of groups of channels."""
        for dtype in (torch.float32, torch.float64):
            for shape in ((4, 6, 5, 3), (7, 6), (2, 6, 9)):
                x, g = (torch.randn(shape, dtype=dtype) + 1 for _ in range(2))
                w, b, m = (torch.randn(6, dtype=dtype) for _ in range(3))
                v = torch.rand(6, dtype=dtype) + 0.5
                batch = aten._native_batch_norm_legit_functional
                self.check(lambda x, w, b, m, v: batch(x, w, b, m, v, True, 0.3, 1e-3), x, w, b, m, v, tolerance=1e-4)
                self.check(lambda x, m, v: batch(x, None, None, m, v, True, 0.3, 1e-3), x, m, v, tolerance=1e-4)
                _, mean, rstd, *_ = batch(x, w, b, m, v, True, 0.3, 1e-3)
                alone = aten._native_batch_norm_legit.no_stats
                self.check(lambda x, w, b: alone(x, w, b, True, 0.3, 1e-3), x, w, b, tolerance=1e-4)
                self.check(lambda x: alone(x, None, None, True, 0.3, 1e-3), x, tolerance=1e-4)
                back = aten.native_batch_norm_backward
                self.check(lambda g, x, w, m, v, n, r: back(g, x, w, m, v, n, r, True, 1e-3, [True] * 3), g, x, w, m, v,
                           mean, rstd, tolerance=1e-4)
                for groups in (1, 2, 6):
                    size = x.numel() // (x.shape[0] * 6)
                    norm = lambda x, w, b: aten.native_group_norm(  # noqa: E731
                        x, w, b, x.shape[0], 6, size, groups, 1e-3)
                    self.check(norm, x, w, b, tolerance=1e-4)
                    self.check(lambda x: norm(x, None, None)[0], x, tolerance=1e-4)
                    _, mean, rstd = norm(x, w, b)
                    self.check(lambda g, x, n, r, w: aten.native_group_norm_backward(
                        g, x, n, r, w, x.shape[0], 6, size, groups, [True] * 3), g, x, mean, rstd, w, tolerance=1e-4)

    def test_products(self):
        for dtype in (torch.float32, torch.float64):
            a, b, c = (torch.randn(s, dtype=dtype) for s in ((32, 20), (20, 24), (24,)))
            self.check(torch.mm, a, b)
            self.check(lambda a, b: a @ b.t(), a, b.t().contiguous())
            self.check(lambda c, a, b: torch.addmm(c, a, b), c, a, b)
            self.check(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), c, a, b)
            self.check(torch.mm, torch.randn(1, 256, dtype=dtype), torch.randn(256, 256, dtype=dtype))
            self.check(torch.mm, a[:3], b)
            self.check(torch.bmm, a.view(16, 2, 20)[:, :1], torch.randn(16, 20, 3, dtype=dtype))
            self.check(torch.bmm, a.view(2, 16, 20), b.expand(2, 20, 24))
            q, k, v = (torch.randn(2, 3, 16, 8, dtype=dtype) for _ in range(3))
            attention = aten._scaled_dot_product_flash_attention_for_cpu
            for more in ({}, {"is_causal": True}, {"scale": 0.3}):
                self.check(lambda q, k, v: attention(q, k, v, **more)[0], q, k, v)
            self.check(lambda q, k, v, m: attention(q, k, v, attn_mask=m)[0], q, k, v, torch.randn(16, 16, dtype=dtype))
            q = torch.randn(2, 6, 16, 8, dtype=dtype)
            self.check(lambda q, k, v: attention(q, k, v, is_causal=True)[0], q, k, v)  # keys of two heads each


class Images(Case):
    def drawn(self):
        for shape in ((2, 3, 9, 12), (1, 1, 16, 33), (4, 8, 8)):
            yield drawn(shape, torch.float32)
            yield drawn(shape, torch.float32).transpose(-1, -2)
        yield drawn((2, 3, 9, 12), torch.float64)
        yield drawn((2, 4, 8, 8), torch.float32).to(memory_format=torch.channels_last)

    def test_pooling(self):
        for x in self.drawn():
            for f in (lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 3, 2, 1),
                      lambda x: F.max_pool2d(x, 5, 1, 2),
                      lambda x: F.max_pool2d(x, (2, 3), (1, 2), (0, 1), ceil_mode=True),
                      lambda x: F.max_pool2d(x, 3, 1, 1, dilation=2), lambda x: F.avg_pool2d(x, 2),
                      lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.avg_pool2d(x, (3, 2), (1, 2), (1, 0)),
                      lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
                      lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)):
                with self.subTest(f=inspect.getsource(f), x=x.shape):
                    self.check(f, x)
        self.check(lambda x: F.max_pool2d(x.relu() + 1, 3, 2, 1).softmax(-1), drawn((2, 3, 9, 12), torch.float16))
        x = drawn((2, 3, 6, 8, 10), torch.float32)
        for f in (lambda x: F.max_pool3d(x, 2), lambda x: F.max_pool3d(x, 3, 2, 1), lambda x: F.avg_pool3d(x, 2),
                  lambda x: F.avg_pool3d(x, 3, 2, 1, count_include_pad=False)):
            self.check(f, x)
        for size in (1, 2, (3, 4), (6, 8)):
            self.check(lambda x: F.adaptive_avg_pool2d(x, size), drawn((2, 3, 6, 8), torch.float32))

    def test_pooling_left(self):
        """Where the greatest was is PyTorch's to say; so are windows that it counts in its own ways."""
        x = drawn((2, 3, 9, 12), torch.float32)
        for f in (lambda x: F.max_pool2d(x, 2, return_indices=True)[1],
                  lambda x: F.avg_pool2d(x, 2, divisor_override=3),
                  lambda x: F.avg_pool2d(x, 2, 2, 0, True), lambda x: F.adaptive_avg_pool2d(x, 5),
                  lambda x: F.avg_pool2d(x.half(), 2)):
            with self.subTest(f=inspect.getsource(f)):
                module = kernels_of(f, x, all_parts=False)
                self.assertEqual(counters["kernels"], 0)
                torch.testing.assert_close(module(x), f(x), equal_nan=True)

    def test_gain(self):
        """A pooling, and channels as pixels, are kernels by themselves."""
        x = drawn((1, 4, 8, 8), torch.float32)
        for f in (lambda x: F.max_pool2d(x, 2), lambda x: F.avg_pool2d(x, 2), lambda x: F.pixel_shuffle(x, 2),
                  lambda x: F.interpolate(x, scale_factor=2.0)):
            self.check(f, x, all_parts=False)

    def test_pixels(self):
        for shape in ((2, 8, 3, 5), (4, 6, 6), (2, 3, 4, 2, 2)):
            x = drawn(shape, torch.float32)
            self.check(lambda x: F.pixel_shuffle(x, 2), x)
            self.check(lambda x: F.pixel_shuffle(x.transpose(-1, -2), 2), x)
        for shape in ((2, 3, 6, 4), (1, 9, 6)):
            self.check(lambda x: F.pixel_unshuffle(x, 3), drawn(shape[:-2] + (6, 9), torch.float32))


class Compositions(Case):
    ONE = (torch.exp, torch.tanh, torch.neg, lambda x: x * 0.5, lambda x: x.softmax(-1), lambda x: x.transpose(0, 1),
           lambda x: x[..., :x.shape[-1] // 2 + 1], lambda x: x.reshape(-1, x.shape[0]), lambda x: x.clone(),
           lambda x: x.sum(0, keepdim=True) * 0.1, lambda x: x.tril(), lambda x: F.layer_norm(x, x.shape[-1:]),
           lambda x: x.clamp(-2, 2), lambda x: torch.where(x > 0, x, 0.1), lambda x: x.sort(-1)[0],
           lambda x: x.sign() + x,
           lambda x: x + torch.arange(x.shape[-1]), lambda x: x.to(torch.float64).to(torch.float32), F.gelu,
           lambda x: torch.cat([x, x * 2]))

    def test_random(self):
        """Chains and trees in which some of PyTorch's own are between those in the table."""
        seed = int(os.environ.get("OPJIT_SEED", "1"))
        for case in range(cases(150)):
            r = random.Random(seed * 1000 + case)
            steps = [(r.choice(self.ONE), r.random(), r.random()) for _ in range(r.randint(2, 9))]

            def f(x):
                there = [x]
                for step, at, other in steps:
                    y = step(there[int(at * len(there))])
                    z = there[int(other * len(there))]
                    there.append((y + z if y.shape == z.shape else y).clamp(-50, 50))
                return tuple(there[-3:])
            x = torch.randn(r.randint(2, 5), r.randint(2, 9), generator=torch.Generator().manual_seed(case))
            with self.subTest(case=case, seed=seed):
                self.same(kernels_of(f, x, all_parts=r.random() < 0.5)(x), f(x), 1e-3)


class WholeTable(Case):
    def test_seen(self):
        """Behind the others: each row of the table was in a kernel; detach comes with training alone."""
        self.assertEqual({str(t) for t in _aten.TABLE} - {str(t) for t in seen} - {"aten.detach.default"}, set())


if __name__ == "__main__":
    unittest.main()
