# SPDX-License-Identifier: Apache-2.0
"""What stays with PyTorch costs what it costs without the backend."""
import unittest
from unittest import mock

import torch
import torch.nn.functional as F

import opjit.torch
from opjit.torch import _compile
from support import Case, compiled, counters


class Left(Case):
    def test_no_kernels(self):
        """Where there are none, forward and backward, PyTorch runs what Dynamo traced; AOTAutograd is in no call."""
        def backward_of(f, x):
            x = x.detach().requires_grad_()
            f(x).sum().backward()
            return x.grad

        def is_wrapped(gm, inputs):
            wrapped.append(not getattr(opjit.torch.backend(gm, inputs), "__self__", None) is gm)
            return gm.forward
        i, x = torch.tensor([2, 0, 0, 1]), torch.randn(4, 4)
        for f, grad, expected in ((lambda x: x[i] + 1, False, False), (lambda x: x[i] + 1, True, False),
                                  (lambda x: x[i].exp() * 2, False, True), (torch.erf, True, True),
                                  (lambda x: x.to(torch.bfloat16) @ x.to(torch.bfloat16), True, False)):
            wrapped, run = [], backward_of if grad else lambda f, x: f(x)
            torch._dynamo.reset()
            run(torch.compile(f, backend=is_wrapped), x)
            self.assertEqual(wrapped, [expected])
            self.same(run(compiled(f), x), run(f, x))

    def test_small_training(self):
        """A step in which kernels save less than AOTAutograd takes is PyTorch's, forward and backward."""
        f = lambda x: torch.sigmoid(x.exp() * 2) + x  # noqa: E731
        with mock.patch.object(_compile, "CALL", 4):
            for size, kernels in ((4, 0), (1024, 2)):
                torch._dynamo.reset()
                counters.clear()
                a, b = (torch.linspace(-1, 1, size * size).view(size, size).requires_grad_() for _ in range(2))
                for g, x in ((compiled(f), a), (f, b)):
                    g(x).sum().backward()
                self.same(a.grad, b.grad)
                self.assertEqual(counters["kernels"], kernels)

    def test_small_inference(self):
        """A kernel that saves less than the trace of what is left costs is PyTorch's, too."""
        def f(x):
            y = torch.log_softmax(x, -1)
            return (*y.topk(5, -1), y.argmax(-1), y.sort(-1)[0], x.sort(-1, descending=True)[1])
        with mock.patch.object(_compile, "CALL", 4):
            for size, kernels in ((100, 0), (100000, 1)):
                torch._dynamo.reset()
                counters.clear()
                x = torch.randn(2, size)
                with torch.no_grad():
                    self.same(compiled(f)(x), f(x))
                self.assertEqual(counters["kernels"], kernels)

    def test_resampling(self):
        """One operator, as PyTorch runs it, and not the many indices that a trace makes of it."""
        x = torch.randn(1, 2, 6, 6)
        for more in ({"mode": "bilinear"}, {"mode": "bicubic", "align_corners": True}, {"mode": "nearest"},
                     {"mode": "nearest-exact"}, {"mode": "bilinear", "antialias": True}):
            for grad in (False, True):
                torch._dynamo.reset()
                counters.clear()
                f = lambda x: F.interpolate(x, scale_factor=1.5, **more).exp() * 2  # noqa: E731, B023
                a, b = (x.detach().requires_grad_(grad) for _ in range(2))
                got, want = compiled(f)(a), f(b)
                self.same(got, want)
                self.assertTrue(grad or (counters["kernels"], counters["left"]) == (1, 1), more)
                if grad:
                    got.square().sum().backward()
                    want.square().sum().backward()
                    self.same(a.grad, b.grad, 1e-3)


if __name__ == "__main__":
    unittest.main()
