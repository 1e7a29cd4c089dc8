# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="opjit") where sizes change from call to call, by themselves or as the user marked them."""
import unittest

import torch
import torch.nn.functional as F

from support import Case, compiled, counters


class Shapes(Case):
    def check_sizes(self, f, make, sizes, kernels, marked=None):
        g = compiled(f)
        with torch.no_grad():
            for n in sizes:
                args = make(n)
                if marked is not None:
                    torch._dynamo.mark_dynamic(args[0], marked)
                self.same(g(*args), f(*args))
        self.assertEqual((counters["kernels"], counters["refused"]), (kernels, 0))

    def test_several(self):
        """One kernel for the first shape, and one for all others."""
        self.check_sizes(lambda x: (x.exp() * 2 + 1).softmax(-1), lambda n: (torch.randn(3, n),), (4, 9, 17, 30, 2), 2)
        self.assertEqual(counters["left"], 0)

    def test_masks(self):
        self.check_sizes(lambda x: x.masked_fill(torch.ones([x.shape[1]] * 2, dtype=torch.bool).triu(1), -torch.inf)
                         .softmax(-1), lambda n: (torch.randn(2, n, n),), (9, 14, 40, 3, 77), 2)

    def test_decoder(self):
        """A token more in each call, whose keys and values have symbols of their own."""
        self.check_sizes(lambda q, k, v: F.scaled_dot_product_attention(q, k, v) * 2, lambda n: [
            torch.randn(2, 4, i, 16) for i in (1, n, n)], range(5, 40), 2)

    def test_causal(self):
        """Queries and keys have symbols of their own, which are held to be equal where they are."""
        for dynamic in (None, True):
            torch._dynamo.reset()
            counters.clear()
            f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)  # noqa: E731
            g = torch.compile(f, backend="opjit", dynamic=dynamic)
            with torch.no_grad():
                for n in (64, 77, 100, 33, 5):
                    args = [torch.randn(2, 4, n, 32) for _ in range(3)]
                    self.same(g(*args), f(*args))
            self.assertIn((counters["kernels"], counters["refused"]), ((1, 0), (2, 0)))

    def test_beyond(self):
        """Sizes above those of the kernel get another one, and so do single ones where one for all is refused."""
        self.check_sizes(lambda x: (x.exp() * 2 + 1).tril(), lambda n: (torch.randn(n, 3),), (4, 9, 1500, 30, 30000), 2)
        torch._dynamo.reset()
        counters.clear()
        self.check_sizes(lambda a, b: torch.cat([a, b], 1).softmax(-1) * 2, lambda n: (
            torch.randn(2, n), torch.randn(2, n + 1)), (4, 7, 9, 2500, 2500, 2501, 12), 2)

    def test_strides(self):
        """Results in the order of the trace, inputs with gaps, sizes in results alone."""
        self.check_sizes(lambda x: (x.t().exp() * 2, x[1:] * 2 + x[:-1]), lambda n: (torch.randn(n, 8).t(),), (
            4, 9, 17), 4)
        torch._dynamo.reset()
        counters.clear()
        self.check_sizes(lambda x: x.exp() * 2 + 1, lambda n: (torch.randn(n, 8)[:, ::2],), (4, 9, 17), 2)

    def test_products(self):
        """Causal attention of any length is one kernel after the first call's, of any batch and length a few as torch
        finds out what varies, and one where both are marked."""
        def f(q, k, v):
            mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
            return (q @ k.transpose(-1, -2) * 0.3).masked_fill(mask, -torch.inf).softmax(-1) @ v
        sizes = (20, 24, 31, 33, 37, 22, 40, 70)
        self.check_sizes(f, lambda n: [torch.randn(2, 3, n, 8) for _ in range(3)], sizes, 2)
        torch._dynamo.reset()
        counters.clear()
        g = compiled(f)
        with torch.no_grad():
            for n in sizes:
                args = [torch.randn(n // 3, 3, n, 8) for _ in range(3)]
                self.same(g(*args), f(*args))
        self.assertEqual(counters["refused"], 0)
        self.assertLessEqual(counters["kernels"], 4)
        torch._dynamo.reset()
        counters.clear()
        with torch.no_grad():
            for n in sizes[:3]:
                args = [torch.randn(n // 3, 3, n, 8) for _ in range(3)]
                for x in args:
                    torch._dynamo.mark_dynamic(x, (0, 2))
                self.same(compiled(f)(*args), f(*args))
        self.assertEqual((counters["kernels"], counters["refused"]), (1, 0))

    def test_needed_values(self):
        """Sizes that have to be known become known for a few calls, and then what needs them is PyTorch's."""
        f = lambda x, k: (x.exp() * 2 + 1)[:, k:].tanh() * k  # noqa: E731
        g = compiled(f)
        with torch.no_grad():
            for n in range(2, 24):
                x = torch.randn(3, n)
                self.same(g(x, n // 2), f(x, n // 2))

    def test_dynamic(self):
        f = lambda x, n: x.exp() * n + x.shape[0]  # noqa: E731
        g = torch.compile(f, backend="opjit", dynamic=True)
        for n in (4, 9):
            x = torch.randn(3, n)
            self.same(g(x, n), f(x, n))

    def test_dynamic_and_never_varied(self):
        """dynamic=True gives symbols to heads and widths, too, for which there is no kernel of all sizes: what is not
        varied is held to be fixed, once that is known."""
        def f(q, k, v):
            mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
            return (q @ k.transpose(-1, -2) * 0.3).masked_fill(mask, -torch.inf).softmax(-1) @ v
        g = torch.compile(f, backend="opjit", dynamic=True)
        with torch.no_grad():
            for n in (20, 33, 50, 24, 71):
                args = [torch.randn(1, 8, n, 64) for _ in range(3)]
                self.same(g(*args), f(*args))
        self.assertEqual((counters["kernels"], counters["refused"]), (2, 0))

    def test_marked(self):
        self.check_sizes(lambda x: x.exp() * 2 + 1, lambda n: (torch.randn(n, 3),), (4, 9, 17), 1, marked=0)

    def test_marked_in_training(self):
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32))
        g = compiled(model)
        for n in (20, 33, 50):
            x = torch.randn(n, 16)
            torch._dynamo.mark_dynamic(x, 0)
            self.same(*(torch.autograd.grad(m(x).square().sum(), list(model.parameters())) for m in (g, model)), 1e-3)

    def test_varied_in_training(self):
        """A causal block is traced for the first length, and once for all others."""
        class Block(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.qkv, self.out = torch.nn.Linear(64, 192), torch.nn.Linear(64, 64)
                self.norm = torch.nn.LayerNorm(64)

            def forward(self, x):
                q, k, v = self.qkv(self.norm(x)).unflatten(-1, (3, 4, 16)).permute(2, 0, 3, 1, 4).unbind(0)
                y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
                return x + F.gelu(self.out(y.transpose(1, 2).reshape(x.shape)))
        model, kernels = Block(), []
        g = compiled(model)
        for n in (200, 333, 250, 100, 128):
            x = torch.randn(2, n, 64)
            self.same(*(torch.autograd.grad(m(x).square().sum(), list(model.parameters())) for m in (g, model)), 1e-3)
            kernels.append(counters["kernels"])
        self.assertEqual(sorted(set(kernels)), [kernels[0], kernels[-1]])
        self.assertEqual(kernels[1], kernels[-1])

    def test_refused_in_training(self):
        """A gradient that is refused for all sizes is PyTorch's: it is compiled when it runs, where nobody waits for an
        exception."""
        model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
        g = torch.compile(model, backend="opjit", dynamic=True)
        for n in (200, 333, 100):
            x = torch.randn(8, n, 64)
            self.same(*(torch.autograd.grad(m(x).square().sum(), list(model.parameters())) for m in (g, model)), 1e-3)
        self.assertLessEqual(counters["kernels"], 4)

    def test_resampled(self):
        """To sizes that are symbols, which were refused as PyTorch traced, and by factors that are no whole numbers,
        where sizes are functions of floats."""
        def f(x):
            return F.interpolate(x * 2, size=(x.shape[2] // 2 + 3, 9), mode="bilinear").exp() * 2

        def scaled(x):
            return F.interpolate(x * 2, scale_factor=1.7, mode="nearest").exp() * 2
        for m in (f, scaled):
            torch._dynamo.reset()
            g = torch.compile(m, backend="opjit", dynamic=True)
            for n in (12, 31):
                x = torch.randn(2, 3, n, 8, requires_grad=True)
                self.same(g(x), m(x))
                self.same(*(torch.autograd.grad(h(x).sum(), x) for h in (g, m)), 1e-3)

    def test_roots_of_sizes(self):
        """What a size's root says is another size."""
        f = lambda x: x[:, :int(x.shape[1] ** 0.5)].exp() * 2 + 1  # noqa: E731
        g = torch.compile(f, backend="opjit", dynamic=True)
        for n in (16, 40, 99):
            x = torch.randn(8, n)
            self.same(g(x), f(x))

    def test_unknown(self):
        """Sizes without a value at the trace are PyTorch's."""
        f = lambda x: x.exp() * 2 + 1  # noqa: E731
        g = compiled(f)
        for n in (4, 9):
            x = torch.randn(n, 3)
            torch._dynamo.decorators.mark_unbacked(x, 0)
            self.same(g(x), f(x))

    def test_empty_and_large_ranks(self):
        for shape in ((0, 3), (1,) * 9):
            torch._dynamo.reset()
            x = torch.randn(shape)
            self.same(compiled(lambda x: x.exp() * 2 + 1)(x), x.exp() * 2 + 1)
        self.assertEqual(counters["kernels"], 0)


if __name__ == "__main__":
    unittest.main()
