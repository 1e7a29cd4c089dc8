# SPDX-License-Identifier: Apache-2.0
"""What the tests of the backend for PyTorch share."""
import os
import unittest
from unittest import mock

import torch
from torch.fx.experimental.proxy_tensor import make_fx

import opjit.torch
from opjit.torch import _compile, _parts

counters = opjit.torch.counters
seen = set()  # targets of aten that kernels had


def compiled(f, **options):
    return torch.compile(f, backend="opjit", options=options or None)


def cases(count):
    """OPJIT_CASES of them: a number, or a percentage."""
    text = os.environ.get("OPJIT_CASES", "")
    return max(1, count * int(text[:-1]) // 100) if text.endswith("%") else int(text or count)


def everything(self, part):
    """Takes what gains nothing, too."""
    return any(not _parts.entry_of(n).view for n in part)


def kernels_of(f, *args, all_parts=True, level="quick"):
    """f as a module in which parts are kernels, without Dynamo; of PyTorch's nodes only views are left."""
    counters.clear()
    module = make_fx(f, tracing_mode="fake")(*args)
    gains = everything if all_parts else _parts.Parts._gains
    with mock.patch.object(_parts.Parts, "_gains", gains):
        result = _compile.compiled(module, 1, level)
        parts = _parts.Parts(module.graph)
    seen.update(n.target for n in parts.nodes if n in parts.takes)
    return result


TOLERANCE = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3}


class Case(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        counters.clear()
        opjit.torch._refused.clear()
        opjit.torch._seen.clear()
        torch.set_num_threads(1)
        self.enterContext(mock.patch.object(_compile, "CALL", 1e6))  # kernels in training of any size

    def same(self, got, want, tolerance=None):
        if isinstance(want, (tuple, list)):
            self.assertEqual(len(got), len(want))
            for g, w in zip(got, want):
                self.same(g, w, tolerance)
            return
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        near = tolerance or TOLERANCE.get(want.dtype, 0)
        torch.testing.assert_close(got, want, rtol=near, atol=near, equal_nan=True)

    def check(self, f, *args, tolerance=None, all_parts=True):
        """f by kernels is f, and there were kernels."""
        module = kernels_of(f, *args, all_parts=all_parts)
        self.assertGreater(counters["kernels"], 0, "no kernel")
        self.assertEqual(counters["refused"], 0)
        got, want = module(*args), f(*args)
        self.same(got, want, tolerance)
        if isinstance(want, torch.Tensor):
            self.assertEqual([s for s, n in zip(got.stride(), got.shape) if n > 1],
                             [s for s, n in zip(want.stride(), want.shape) if n > 1])
