# SPDX-License-Identifier: Apache-2.0
"""Sizes that are expressions of symbols, where PyTorch has them dynamic: their values for some values of the symbols,
and their texts.  No comparison of PyTorch's own is used for that, as it would become a guard."""
import contextlib
import math
import threading

import torch
from torch.utils._sympy.printers import PythonPrinter

LEAST = 1024  # sizes that a kernel is for at least, and times the first one
TIMES = 16
MOST_ELEMENTS = 2**31 - 1  # of a tensor of the largest sizes

_now = threading.local()


class _Printer(PythonPrinter):
    """With Python's functions of numbers in place of PyTorch's, which take symbols, too."""

    def _print_ToFloat(self, expr):
        return f"float({self._print(expr.args[0])})"

    def _helper_sqrt(self, expr):
        return f"math.sqrt({self._print(expr)})"


class Symbols:
    """Those of a graph.  ranges: by name, the least value, the largest (None: there is none) and that of the trace."""

    def __init__(self, graph):
        self.ranges, self.marked, self.codes = {}, set(), {}
        for n in graph.nodes:
            value = n.meta.get("val") if n.op == "placeholder" else None
            for size in [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value]:
                if isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None:
                    self._enter(size.node)

    def _enter(self, node):
        for symbol in node.expr.free_symbols - self.ranges.keys():
            hint = node.shape_env.backed_var_to_val.get(symbol)
            bounds = node.shape_env.var_to_range.get(symbol)
            if hint is not None and bounds is not None and bounds.lower >= 1:
                most = int(bounds.upper) if bounds.upper < 2**31 else None
                self.ranges[str(symbol)] = int(bounds.lower), most, int(hint)

    def code(self, node):
        """What the expression is in Python, and that compiled."""
        if node not in self.codes:
            text = _Printer().doprint(node.expr)
            self.codes[node] = text, compile(text, "size", "eval"), {str(s) for s in node.expr.free_symbols}
        return self.codes[node]

    @contextlib.contextmanager
    def at(self, values):
        """Inside, sizes are those for these values by name."""
        before = getattr(_now, "symbols", None), getattr(_now, "values", None)
        _now.symbols, _now.values = self, values
        try:
            yield
        finally:
            _now.symbols, _now.values = before

    def of_trace(self):
        return {name: typical for name, (_, _, typical) in self.ranges.items()}


def whole(size):
    """A size as a number; None: it is not known."""
    if isinstance(size, int):
        return size
    known = size.node.maybe_as_int()
    if known is not None or getattr(_now, "symbols", None) is None:
        return known
    _, code, names = _now.symbols.code(size.node)
    return int(eval(code, {"math": math}, _now.values)) if names <= _now.values.keys() else None


def names_of(size):
    """The symbols in it."""
    if isinstance(size, int) or size.node.maybe_as_int() is not None:
        return set()
    return _now.symbols.code(size.node)[2]


def text(size):
    """It in Python, symbols being variables."""
    return f"({_now.symbols.code(size.node)[0]})" if names_of(size) else str(whole(size))
