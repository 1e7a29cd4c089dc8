# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="opjit") as users have it: inference, training, aliases, changed inputs, shapes, threads."""
import contextlib
import copy
import gc
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import tomllib
import unittest
from unittest import mock

import torch
import torch.nn.functional as F

import opjit
import opjit.torch
from support import Case, compiled, counters

ROOT = pathlib.Path(__file__).parents[3]
N = 64


class Block(torch.nn.Module):
    """Attention and two products with GELU, each behind a layer norm."""

    def __init__(self, width=32, heads=4, causal=True, dropout=0.0):
        super().__init__()
        self.heads, self.causal, self.dropout = heads, causal, dropout
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2)) * (d // self.heads) ** -0.5
        if self.causal:
            scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -float("inf"))
        weights = F.dropout(scores.softmax(-1), self.dropout, self.training)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(b, n, d))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


def window(scores, width=16):
    column, row = torch.arange(N)[None, :], torch.arange(N)[:, None]
    return torch.where((column <= row) & (column > row - width), scores, float("-inf"))


def alibi(scores, slopes):
    return scores + slopes[:, None, None] * (torch.arange(N)[None, :] - torch.arange(N)[:, None])[None].float()


class Inference(Case):
    def whole(self, f, *args, kernels=1, tolerance=None):
        """One kernel takes all of it."""
        with torch.no_grad():
            self.same(compiled(f)(*args), f(*args), tolerance)
        self.assertEqual((counters["kernels"], counters["left"], counters["refused"]), (kernels, 0, 0))

    def test_masks(self):
        self.whole(lambda s: torch.tril(s, 2), torch.randn(4, N, N))

    def test_identity(self):
        self.whole(lambda: torch.eye(N))

    def test_causal_mask(self):
        self.whole(lambda s: s + torch.full((N, N), float("-inf")).triu(1), torch.randn(4, N, N))

    def test_window(self):
        self.whole(lambda s: window(s).softmax(-1), torch.randn(4, N, N))

    def test_alibi(self):
        self.whole(lambda s, m: alibi(s, m).softmax(-1), torch.randn(4, N, N), torch.rand(4))

    def test_padding_mask(self):
        """A mask of the input goes where it is read, behind a product."""
        def f(a, b, keep):
            keep = keep[:, None, :]
            return torch.where(keep, torch.einsum("bik,bjk->bij", a, b), -float("inf")).softmax(-1)
        a, b = torch.randn(2, 8, 5), torch.randn(2, 8, 5)
        with torch.no_grad():
            self.same(compiled(f)(a, b, torch.arange(8)[None] < torch.tensor([[5], [8]])),
                      f(a, b, torch.arange(8)[None] < torch.tensor([[5], [8]])))
        self.assertEqual(counters["kernels"], 1)

    def test_layer_norm_gelu(self):
        self.whole(lambda x, y, w, b: F.gelu(F.layer_norm(x + y, (N,), w, b)), *[
            torch.randn(s) for s in ((9, N), (9, N), N, N)])

    def test_block(self):
        self.whole(Block().eval(), torch.randn(2, 24, 32))

    def test_scaled_dot_product(self):
        q, k, v = (torch.randn(2, 4, 32, 16) for _ in range(3))
        self.whole(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v)

    def test_masked_rows(self):
        """A query that sees no key gets 0, from a mask of booleans and of numbers."""
        q, k, v = (torch.randn(2, 4, 32, 16) for _ in range(3))
        keep = torch.rand(2, 1, 32, 32) > 0.3
        keep[0, :, 3] = False
        for mask in (keep, torch.where(keep, torch.randn(keep.shape), -float("inf"))):
            torch._dynamo.reset()
            counters.clear()
            self.whole(lambda q, k, v, mask=mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask), q, k, v)

    def test_fewer_heads(self):
        """Keys that queries share."""
        q, k, v = (torch.randn(2, heads, 32, 16) for heads in (8, 2, 2))
        f = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True).exp() * 2  # noqa: E731
        with torch.no_grad():
            self.same(compiled(f)(q, k, v), f(q, k, v))
        self.assertEqual((counters["kernels"], counters["left"], counters["refused"]), (1, 0, 0))

    def test_models(self):
        models = [
            (torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(32, 4, 64, dropout=0, batch_first=True), 2,
                                         enable_nested_tensor=False), torch.randn(2, 20, 32)),
            (torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Hardswish(),
                                 torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 8, 3, groups=8), torch.nn.SiLU(),
                                 torch.nn.Flatten(), torch.nn.Linear(200, 10), torch.nn.Softmax(-1)),
             torch.randn(2, 3, 16, 16)),
            (torch.nn.Sequential(torch.nn.Embedding(50, 32), Block(), torch.nn.Linear(32, 50)),
             torch.randint(0, 50, (2, 20))),
            (torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.GELU(approximate="tanh"), torch.nn.Linear(64, 8),
                                 torch.nn.LogSoftmax(-1)).double(), torch.randn(20, 32).double()),
        ]
        for model, x in models:
            with self.subTest(model=type(model).__name__), torch.no_grad():
                torch._dynamo.reset()
                counters.clear()
                if not isinstance(model, torch.nn.TransformerEncoder):  # whose eval() is one operator
                    model.eval()
                for _ in range(2):
                    self.same(compiled(model)(x), model(x), 1e-4)
                self.assertGreater(counters["kernels"], 0)

    def test_changed_weights(self):
        """Weights are inputs, not constants."""
        model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU())
        f, x = compiled(model), torch.randn(20, 32)
        with torch.no_grad():
            f(x)
            model[0].weight.mul_(2)
            self.same(f(x), model(x))

    def test_frozen_weights(self):
        """With the option they are constants of the kernels, where there are no gradients."""
        model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.GELU(), torch.nn.BatchNorm1d(32)).eval()
        before, x = copy.deepcopy(model), torch.randn(20, 32)
        f = compiled(model, freeze=True)
        with torch.no_grad():
            self.same(f(x), model(x))
            model[0].weight.mul_(2)
            model[2].running_mean.add_(1)
            self.same(f(x), before(x))
            self.assertEqual((counters["kernels"], counters["left"]), (1, 0))
        self.same(f(x), model(x))  # another graph: gradients are on

    def test_frozen_attention(self):
        model, x = Block().eval(), torch.randn(2, 24, 32)
        with torch.no_grad():
            self.same(compiled(model, freeze=True)(x), model(x), 1e-5)

    def test_frozen_inputs_that_change(self):
        """What the graph writes to is no constant."""
        class Counting(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("calls", torch.zeros(4))
                self.register_buffer("scale", torch.full((4,), 2.0))

            def forward(self, x):
                self.calls.add_(1)
                return (x.exp() * self.scale + self.calls).tanh()
        model, x = Counting(), torch.randn(4)
        f = compiled(model, freeze=True)
        with torch.no_grad():
            for i in range(1, 4):
                self.same(f(x), (x.exp() * 2 + i).tanh())

    def test_half(self):
        self.whole(lambda x: (x * 2 + 1).softmax(-1), torch.randn(5, N).half())

    def test_bfloat16(self):
        """PyTorch runs what has tensors of it, and so gives the same bits."""
        model, x = Block(causal=False).eval().bfloat16(), torch.randn(2, 24, 32).bfloat16()
        with torch.no_grad():
            self.assertTrue(torch.equal(compiled(model)(x), model(x)))
            self.assertEqual((counters["kernels"], counters["refused"]), (0, 0))
            torch._dynamo.reset()
            self.same(compiled(lambda x, y: ((x * 2 + 1).softmax(-1), (y * 2 + 1).softmax(-1)))(x, x.float()),
                      ((x * 2 + 1).softmax(-1), (x.float() * 2 + 1).softmax(-1)), 2e-5)
            self.assertEqual(counters["kernels"], 1)  # what is float32 is taken all the same

    def test_autocast(self):
        model, x = Block().eval(), torch.randn(2, 24, 32)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            self.same(compiled(model)(x), model(x), 0.05)

    def test_channels_last(self):
        x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
        f = compiled(lambda x: x.sigmoid() * 2 + 1)
        self.assertTrue(f(x).is_contiguous(memory_format=torch.channels_last))
        self.same(f(x), x.sigmoid() * 2 + 1)

    def test_inputs_with_strides(self):
        f = lambda x: x.exp() * 2 + 1  # noqa: E731
        x = torch.randn(6, 8, 10)
        for y in (x.permute(2, 0, 1), x[:, ::2], x[1:, :, 3:7], x[:, :1].expand(6, 8, 10), x.transpose(0, 2)[::3]):
            torch._dynamo.reset()
            self.same(compiled(f)(y), f(y))

    def test_other_strides_than_traced(self):
        from support import kernels_of
        module = kernels_of(lambda x: x.exp() * 2 + 1, torch.randn(6, 8))
        x = torch.randn(8, 6)
        self.same(module(x.t()), x.t().exp() * 2 + 1)

    def test_refused(self):
        from support import kernels_of
        module = kernels_of(lambda x: x.exp() * 2 + 1, torch.randn(6, 8))
        freed = torch.randn(6, 8)
        freed.untyped_storage().resize_(0)
        for wrong, text in ((torch.randn(6, 9), r"buffer 0: float32 \[6, 8\] expected, float32 \[6, 9\] given"),
                            (torch.randn(6, 8).double(), "float64 .* given"), (torch.randn(8), "given"),
                            (freed, "one without memory given"), (torch.ones(6, 8).bfloat16(), "bfloat16")):
            with self.assertRaisesRegex(opjit.Error, text) as caught:
                module(wrong)
            self.assertEqual(str(caught.exception).count("\n"), 0)

    def test_options(self):
        f = lambda x: x.exp() * 2  # noqa: E731
        x = torch.randn(300, 300)
        self.same(compiled(f, level="peak", threads=2)(x), f(x))
        torch._dynamo.reset()
        with self.assertRaisesRegex(Exception, "options: 'speed', must be 'level', 'threads' or 'freeze'"):
            compiled(f, speed=1)(x)

    def test_two_threads(self):
        torch.set_num_threads(2)
        self.whole(Block(64).eval(), torch.randn(2, 48, 64), tolerance=1e-4)
        torch._dynamo.reset()
        counters.clear()
        torch.set_num_threads(3)  # another number than that of the kernels that there are
        self.whole(Block(64).eval(), torch.randn(2, 48, 64), tolerance=1e-4)


class Training(Case):
    def steps(self, model, x, rate=0.1, count=4):
        losses, optimizer = [], torch.optim.SGD(model.parameters(), rate)
        f = compiled(model)
        for _ in range(count):
            want = torch.autograd.grad(model(x).square().mean(), list(model.parameters()))
            loss = f(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            self.same([p.grad for p in model.parameters()], list(want), 2e-4)
            optimizer.step()
            losses.append(loss.item())
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(counters["kernels"], 1)

    def test_mlp(self):
        torch.manual_seed(1)
        self.steps(torch.nn.Sequential(torch.nn.Linear(24, 48), torch.nn.GELU(), torch.nn.LayerNorm(48),
                                       torch.nn.Linear(48, 8), torch.nn.Tanh()), torch.randn(20, 24))

    def test_block(self):
        torch.manual_seed(1)
        self.steps(Block(), torch.randn(2, 20, 32))

    def test_convolutions(self):
        """With norms of batches, whose running means are the same, too, and of groups."""
        torch.manual_seed(1)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, bias=False), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 12, 3),
            torch.nn.GroupNorm(3, 12), torch.nn.SiLU(), torch.nn.Flatten(), torch.nn.Linear(12 * 36, 10))
        other, x = copy.deepcopy(model), torch.randn(4, 3, 10, 10)
        for f, m in ((compiled(model), model), (other, other)):
            for _ in range(3):
                loss = f(x).square().mean()
                m.zero_grad()
                loss.backward()
                with torch.no_grad():
                    for p in m.parameters():
                        p -= 0.05 * p.grad
        self.same(list(model.state_dict().values()), list(other.state_dict().values()), 1e-4)
        self.assertGreater(counters["kernels"], 2)
        model.eval()
        other.eval()
        self.same(compiled(model)(x), other(x), 1e-4)

    def test_scaled_dot_product(self):
        q, k, v = (torch.randn(2, 4, 32, 16, requires_grad=True) for _ in range(3))
        f = lambda q, k, v: (F.scaled_dot_product_attention(q, k, v, is_causal=True) * 2).tanh()  # noqa: E731
        for backend in (f, compiled(f)):
            grads = torch.autograd.grad(backend(q, k, v).sum(), (q, k, v))
            want = grads if backend is f else want
        self.same(list(grads), list(want), 1e-4)

    def test_losses(self):
        x = torch.randn(20, 9, requires_grad=True)
        y, t = torch.randn(20, 9), torch.randint(0, 9, (20,))
        for f in (lambda x: F.mse_loss(x.sigmoid(), y), lambda x: F.cross_entropy(x, t),
                  lambda x: F.smooth_l1_loss(x.exp(), y), lambda x: F.softplus(x).sum() + F.elu(x).mean(),
                  lambda x: (x.std(-1) / x.var()).sum()):
            torch._dynamo.reset()
            self.same(torch.autograd.grad(compiled(f)(x), x)[0], torch.autograd.grad(f(x), x)[0], 1e-4)

    def test_dropout(self):
        """The same random numbers as without kernels."""
        model, x = Block(dropout=0.4), torch.randn(2, 20, 32)
        results = []
        for backend in ("aot_eager", "opjit"):
            torch._dynamo.reset()
            torch.manual_seed(5)
            results.append(torch.compile(model, backend=backend)(x))
        self.same(results[1], results[0], 1e-4)


class Aliases(Case):
    def test_views_of_inputs(self):
        f = compiled(lambda x: (x.view(-1), x[1:3], x.t() + 1 + x.t(), x))
        x = torch.randn(8, 8)
        a, b, c, d = f(x)
        x.add_(1)
        self.assertEqual([t.data_ptr() == x.data_ptr() for t in (a, d)], [True, True])
        self.same([a, b, d], [x.view(-1), x[1:3], x])

    def test_views_of_results(self):
        a, b = compiled(lambda x: (y := x.exp() * 2, y.view(-1)))(torch.randn(4, 5))
        a.zero_()
        self.same(b, torch.zeros(20))
        c, d = compiled(lambda x: (x.exp() + 1, x.exp() + 1))(torch.randn(4, 5))
        c.zero_()
        self.assertGreater(d.min(), 0)

    def test_changed_inputs(self):
        def f(x, y):
            x.mul_(2).add_(y.exp())
            return x.tanh() * y
        for grad in (False, True):
            torch._dynamo.reset()
            x, y = torch.randn(5, 5), torch.randn(5, 5, requires_grad=grad)
            x2 = x.clone()
            self.same([compiled(f)(x, y), x], [f(x2, y), x2])

    def test_random_order(self):
        def f(x):
            a = torch.rand(5)
            b = x.exp() * 2 + a
            return b, torch.rand(5) + b.tanh(), torch.randn(5)
        x = torch.randn(5)
        results = []
        for g in (f, compiled(f)):
            torch.manual_seed(3)
            results.append(g(x))
        self.same(results[1], results[0])

    def test_generated_between(self):
        """PyTorch's node reads the shape of what a kernel computes that waits for it."""
        def f(x):
            a = x.exp() * 2
            b = F.dropout(a, 0.5) * 2 + a
            return b.tanh() * 3 + torch.bernoulli(torch.full_like(b, 0.5)), torch.randperm(5)
        x, results = torch.randn(20, 20), []
        for backend in ("aot_eager", "opjit"):
            torch._dynamo.reset()
            torch.manual_seed(3)
            results.append(torch.compile(f, backend=backend)(x))
        self.same(results[1], results[0])

    def test_written_before_the_end(self):
        from support import kernels_of
        def f(x):  # noqa: E306
            y = x.exp()
            y.add_(1)
            return y * 2
        x = torch.randn(5)
        self.same(kernels_of(f, x)(x), f(x))


class Calls(Case):
    def test_kernels_alone(self):
        """Where kernels are all that there is, a call goes to them; aliases and changed inputs are AOTAutograd's."""
        def gone(*args):
            raise AssertionError("AOTAutograd is called")

        def without(**more):
            return lambda gm, inputs: (original(**more)(gm, inputs), gone)[1]
        original, x = opjit.torch.aot_autograd, torch.randn(8, 8)
        for f, is_direct in ((lambda x: (x * 2).softmax(-1), True), (lambda x: (x.exp() + 1, x.t().tril() * 2), True),
                             (lambda x: (y := x.exp() * 2, y.view(-1)), False), (lambda x: (x.exp() * 2, x), False),
                             (lambda x: (x.exp() * 2, x.t()), False), (lambda x: x.mul_(0.5).exp() * 2, False)):
            torch._dynamo.reset()
            a, b = x.clone(), x.clone()
            with torch.no_grad():
                self.same(compiled(f)(a), f(b))
                self.same(a, b)
                torch._dynamo.reset()
                with mock.patch.object(opjit.torch, "aot_autograd", without):
                    try:
                        compiled(f)(x.clone())
                        self.assertTrue(is_direct)
                    except AssertionError as error:
                        self.assertEqual(is_direct, False, error)

    def test_threads(self):
        f = lambda x: (x.exp() * 2 + 1).softmax(-1)  # noqa: E731
        g, wrong = compiled(f), []
        g(torch.randn(40, 40))

        def work(seed):
            x = torch.randn(40, 40, generator=torch.Generator().manual_seed(seed))
            want = f(x)
            wrong.extend(seed for _ in range(300) if not torch.allclose(g(x), want, atol=1e-5))
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_growth(self):
        """100,000 calls take no memory."""
        from support import kernels_of
        x = torch.randn(16, 16)
        module = kernels_of(lambda x: (x.t().exp() * 2 + 1, x > 0), x)
        f = compiled(lambda x: x.exp() * 2 + 1)

        def resident():
            gc.collect()
            return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        def many(count):
            for _ in range(count):
                module(x)
                f(x)
        many(10000)
        before = resident()
        many(100000)
        self.assertLess(resident() - before, 4 << 20)

    def test_better_kernels(self):
        """Behind a call the kernel becomes the fastest one, which has the same bits."""
        from support import kernels_of
        x = torch.randn(40, 70)
        for level, is_better in (("auto", True), ("quick", False), ("peak", False)):
            module = kernels_of(lambda x: F.gelu(x * 2).softmax(-1), x, level=level)
            function, = (n.target for n in module.graph.nodes if n.name.startswith("opjit"))
            first, before = function.kernel, module(x)
            if is_better:
                opjit.torch.finish()
            self.assertEqual(function.kernel is not first, is_better)
            self.assertEqual(function.kernel.info["level"], "quick" if level == "quick" else "peak")
            self.assertTrue(torch.equal(module(x), before))

    def test_processes_with_better_kernels(self):
        """A process ends, and another is forked, while a thread compiles."""
        code = ("import os, torch, opjit.torch\n"
                "f = torch.compile(lambda x: (x @ x).softmax(-1) * 2, backend='opjit')\n"
                "x = torch.ones(64, 64)\nf(x)\n"
                "child = os.fork()\n"
                "if not child: opjit.torch.finish()\n"
                "os.write(1, f'{f(x)[0, 0].item()}\\n'.encode())\n"
                "if child: assert os.waitpid(child, 0)[1] == 0")
        path = os.pathsep.join(sys.path)
        result = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path},
                                capture_output=True, text=True, timeout=300)
        self.assertEqual((result.returncode, result.stdout), (0, "0.03125\n0.03125\n"), result.stderr)

    def test_compiling_again(self):
        """Kernels go with the functions that had them."""
        import weakref
        from support import kernels_of
        module = kernels_of(lambda x: x.exp() * 2 + 1, torch.randn(5))
        kernels = [weakref.ref(n.target) for n in module.graph.nodes if n.name.startswith("opjit")]
        self.assertEqual(len(kernels), 1)
        del module
        gc.collect()
        self.assertEqual([k() for k in kernels], [None])


class Documents(Case):
    def test_examples(self):
        """docs/torch.md works when pasted."""
        blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/torch.md").read_text(), re.S)
        self.assertGreater(len(blocks), 0)
        for text in blocks:
            torch._dynamo.reset()
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "docs/torch.md", "exec"), {"__name__": "example"})

    def test_entry_point(self):
        """As pip installs it, the backend has a name without any import of opjit."""
        project = tomllib.loads((ROOT / "frontend/hosts/python/pyproject.toml").read_text())["project"]
        points = project["entry-points"]["torch_dynamo_backends"]
        with tempfile.TemporaryDirectory() as folder:
            info = pathlib.Path(folder) / "opjit-0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: opjit\nVersion: 0\n")
            (info / "entry_points.txt").write_text(
                "[torch_dynamo_backends]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()))
            code = ("import torch, sys\nassert 'opjit' not in sys.modules\n"
                    "print(torch.compile(lambda x: x.exp() * 2, backend='opjit')(torch.zeros(3)).tolist())\n"
                    "import opjit.torch\nprint(opjit.torch.counters['kernels'])")
            path = os.pathsep.join([folder, *sys.path])
            result = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path},
                                    capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (0, "[2.0, 2.0, 2.0]\n1\n"), result.stderr)


if __name__ == "__main__":
    unittest.main()
