# SPDX-License-Identifier: Apache-2.0
"""A part as a function of tensors: the kernel, and as little Python around its call as can be.

At the level "auto" that is a kernel which was compiled quickly, and in whose place a thread soon puts the fastest one,
which has the same bits.
"""
import concurrent.futures
import logging
import math
import operator
import os
import threading
import weakref

import torch
from torch.utils._python_dispatch import _disable_current_modes

import opjit
from opjit._arrays import torch_empty

from ._aten import NAMES, TABLE, dims, elements, frozen, name_of, value_of
from ._sizes import LEAST, MOST_ELEMENTS, TIMES, names_of, text as text_of, whole

log = logging.getLogger("opjit.torch")
behind = concurrent.futures.ThreadPoolExecutor(1, "opjit.torch")
compiling = threading.Lock()  # by the thread behind; a fork waits for it, as it would leave locks to nobody


def _after_fork():
    """The process has no thread but the one that forked."""
    global behind, growing
    behind, growing = concurrent.futures.ThreadPoolExecutor(1, "opjit.torch"), threading.RLock()
    compiling.release()


os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=_after_fork)


ERRORS = opjit.Error, ValueError, TypeError, IndexError, OverflowError
KEPT = 32  # kernels for one size of a part
growing = threading.RLock()  # of a function: its kernel and the sizes that this is for


class Refused(Exception):
    """The part has no kernel."""


def _packed(sizes):
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= size
    return strides[::-1]


def _layout(value):
    """The order of dimensions in memory, slowest first, and which are repeated; None: it has gaps."""
    sizes, strides = [whole(s) for s in value.shape], [whole(s) for s in value.stride()]
    repeated = [d for d, s in enumerate(strides) if s == 0 and sizes[d] > 1]
    packed = _packed(sizes)
    if all(n == 1 or s == p for n, s, p in zip(sizes, strides, packed)):
        return list(range(len(sizes))), []
    order = sorted(range(len(sizes)), key=lambda d: (sizes[d] > 1 and d not in repeated, -strides[d]))
    there = [1 if d in repeated else sizes[d] for d in order]
    if all(n == 1 or strides[d] == p for n, d, p in zip(there, order, _packed(there))):
        return order, repeated
    return None


def _inverse(order):
    return [order.index(d) for d in range(len(order))]


def _read(graph, value, name, layout):
    """An input of the kernel, and the text of how a call gets it of the tensor."""
    shape, dtype = dims(value), NAMES[value.dtype]
    if value.dim() == 0:
        return graph.input(shape, dtype, name), f"{name}.reshape(1)"
    if layout is None:
        return graph.input(shape, dtype, name), f"{name}.contiguous()"
    order, repeated = layout
    there = [1 if d in repeated else shape[d] for d in order]
    x, text = graph.input(there, dtype, name), name
    if order != list(range(len(shape))):
        x, text = x.transpose(_inverse(order)), f"{text}.permute({tuple(order)})"
    for d in repeated:
        text += f".narrow({order.index(d)}, 0, 1)"
    return opjit.broadcast_to(x, shape) if repeated else x, text


def _constant(graph, x):
    """A copy of the tensor, which is in the kernel."""
    with _disable_current_modes():  # it has elements, as those that are traced here have not
        x = x.detach().reshape(dims(x)).contiguous()
        return graph.constant(x.view(torch.uint8) if x.dtype is torch.bool else x)


def _mapped(of, x):
    """The function of each argument, in lists too."""
    return [_mapped(of, each) for each in x] if isinstance(x, (tuple, list)) else of(x)


def _computed(graph, nodes, values):
    def of(x):
        if not isinstance(x, torch.fx.Node):
            return whole(x) if isinstance(x, torch.SymInt) else x
        return values[x] if x in values else whole(value_of(x)) if not isinstance(value_of(x), torch.Tensor) else None
    for n in nodes:
        args, kwargs = _mapped(of, n.args), {key: _mapped(of, x) for key, x in n.kwargs.items()}
        if n.target is operator.getitem:
            values[n] = args[0][args[1]]
        elif TABLE[n.target].generated:
            values[n] = TABLE[n.target].build(n, graph, *args, **kwargs)
        else:
            values[n] = TABLE[n.target].build(n, *args, **kwargs)
        if not isinstance(values[n], list) and (values[n].shape, values[n].dtype) != (dims(value_of(n)), name_of(n)):
            raise Refused(f"{n}: {values[n]}, {name_of(n)} {dims(value_of(n))} is needed")


def _results(nodes, values, layouts):
    """The tensors to compute in the order of memory, and the texts of how they are made and given."""
    results, made, given = {}, [], []
    for i, n in enumerate(nodes):
        value, y, layout = value_of(n), values[n], layouts[n]
        if layout is None or layout[1]:
            raise Refused(f"{n}: a result with strides {value.stride()}")
        order, text = layout[0], f"o{i}"
        there = [text_of(value.shape[d]) for d in order] if value.dim() else ["1"]
        strides = ["*".join(there[d + 1:] or ["1"]) for d in range(len(there))]
        if order != list(range(value.dim())):
            y, text = y.transpose(order), f"{text}.permute({tuple(_inverse(order))})"
        elif value.dim() == 0:
            text += ".reshape(())"
        is_bool = value.dtype is torch.bool
        results[f"o{i}"] = opjit.ops.element_wise_identity(y)
        made.append(f"o{i} = empty(({', '.join(there)},), ({', '.join(strides)},), "
                    f"{'torch.uint8' if is_bool else value.dtype})")
        given.append(text + (".view(torch.bool)" if is_bool else ""))
    return results, made, given


def _elements_of(n):
    """Of the node's result, or of the scores behind that of attention."""
    if n.target is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default:
        q, k = (dims(value_of(i)) for i in n.args[:2])
        return math.prod(q[:-1]) * k[-2]
    value = n.meta.get("val")
    return elements(value) if isinstance(value, torch.Tensor) else 0


def _again(error, kernel, inputs, **more):
    """A call whose tensors have other strides than those of the trace: with copies of them."""
    packed = [x.contiguous() for x in inputs]
    if all(p is x for p, x in zip(packed, inputs)):
        raise error
    kernel(*packed, **more)


def _put_better(function, compile_at):
    """Gives the function the fastest kernel, unless it is gone or has another one by now, or the process ends."""
    with compiling:
        if function() is None or not threading.main_thread().is_alive():
            return
        try:
            kernel = compile_at("peak")
        except (*ERRORS, MemoryError) as error:
            log.debug("a kernel stays as it is: %s", error)
            return
    function = function()
    with growing:
        if function is not None and function.compile_at is compile_at:
            function.kernel = function.__globals__["kernel"] = kernel


def _set_kernel(function, kernel, compile_at, level):
    """And the fastest one soon."""
    function.kernel = function.__globals__["kernel"] = kernel
    function.compile_at = compile_at
    if level == "auto" and threading.main_thread().is_alive():
        behind.submit(_put_better, weakref.ref(function), compile_at)


def finish():
    """Waits until the thread behind has nothing to compile."""
    behind.submit(int).result()


class _Part:
    """What becomes a kernel: nodes, the inputs that they read, and whose results are wanted."""

    def __init__(self, nodes, inputs, wanted, symbols):
        self.nodes, self.wanted, self.symbols = nodes, wanted, symbols
        self.read = [n for n in inputs if frozen(n) is None]
        self.given = list(self.read)  # to a call: symbols, too, which no tensor's size is
        self.fixed = [n for n in inputs if frozen(n) is not None]
        self.names = self._names()
        with symbols.at({name: size + 61 + 6 * i for i, (name, size) in enumerate(symbols.of_trace().items())}):
            self.layouts = {n: _layout(value_of(n)) for n in [*self.read, *wanted]}  # no size is 1 by accident

    def _names(self):
        """Of the symbols of its sizes."""
        names, looked_at = set(), dict.fromkeys([*self.nodes, *self.read])
        looked_at.update(dict.fromkeys(i for n in self.nodes for i in n.all_input_nodes))
        for n in looked_at:
            value = n.meta.get("val")
            for each in value if isinstance(value, (tuple, list)) else [value]:
                sizes = [*each.shape, *each.stride()] if isinstance(each, torch.Tensor) else [each]
                names.update(*(names_of(s) for s in sizes if isinstance(s, torch.SymInt)))
        return sorted(names)

    def graph(self):
        """Its results for the sizes that are known, and the texts."""
        graph, values, texts = opjit.Graph(), {}, {}
        for i, n in enumerate(self.read):
            values[n], texts[f"a{i}"] = _read(graph, value_of(n), f"a{i}", self.layouts[n])
        values.update((n, _constant(graph, frozen(n))) for n in self.fixed)
        _computed(graph, self.nodes, values)
        return (*_results(self.wanted, values, self.layouts), texts)

    def ranges(self, values):
        """Of the sizes, for a kernel that is made for these."""
        for times in (TIMES, 4, 2, 1):
            most = {name: self._most(name, values[name], times) for name in self.names}
            with self.symbols.at(most):
                if all(_elements_of(n) <= MOST_ELEMENTS for n in [*self.nodes, *self.read]):
                    break
        return {name: (self.symbols.ranges[name][0], most[name], values[name]) for name in self.names}

    def _most(self, name, value, times):
        most = value * times if times < TIMES else max(LEAST, value * times)
        return most if self.symbols.ranges[name][1] is None else min(most, self.symbols.ranges[name][1])

    def compiler(self, values, results, threads):
        """The function that compiles at a level, for all sizes around these; and the largest."""
        if not self.names:
            return lambda level: opjit.compile(results, threads=threads, level=level), {}
        ranges = self.ranges(values)

        def build(**sizes):
            with self.symbols.at(sizes):
                return self.graph()[0]
        return (lambda level: opjit.compile(build, threads=threads, level=level, dims=ranges),
                {name: most for name, (_, most, _) in ranges.items()})

    def sources(self, placeholders):
        """Lines that give the symbols, by a tensor's size or an input of its own."""
        lines = []
        for name in self.names:
            at = next((f"a{i}.shape[{d}]" for i, n in enumerate(self.read) if isinstance(value_of(n), torch.Tensor)
                       for d, size in enumerate(value_of(n).shape) if text_of(size) == f"({name})"), None)
            own = next((n for n in placeholders if isinstance(n.meta.get("val"), torch.SymInt)
                        and text_of(n.meta["val"]) == f"({name})"), None)
            if at is None and own is None:
                raise Refused(f"nothing gives {name}")
            if at is None:
                at = f"a{len(self.given)}"
                self.given.append(own)
            lines.append(f"    {name} = {at}")
        return lines


def _larger(function, part, threads, level):
    """The function that gives the kernel for sizes beyond those of the function's: one for even larger ones, which it
    has from now on, or else one for just these."""
    single, scope = {}, function.__globals__

    def larger(**values):
        key = tuple(values.values())
        with growing:
            if all(values[name] <= scope["most"][name] for name in values):
                return scope["kernel"]
            try:
                compile_at, most = part.compiler(values, None, threads)
                _set_kernel(function, compile_at(level), compile_at, level)
                scope["most"] = most
                return scope["kernel"]
            except ERRORS as error:
                log.debug("a kernel for one size: %s", error)
            if key not in single:
                if len(single) == KEPT:
                    single.clear()
                with part.symbols.at(values):
                    kernel = opjit.compile(part.graph()[0], threads=threads, level=level)
                single[key] = lambda *arrays, out, dims: kernel(*arrays, out=out)
            return single[key]
    return larger


def make(nodes, inputs, wanted, placeholders, symbols, threads, level):
    """The function of the part's inputs that are not frozen, and these inputs; it gives what is wanted: a tensor, or a
    tuple of them."""
    try:
        part = _Part(nodes, inputs, wanted, symbols)
        results, made, given, texts = part.graph()
        sources = part.sources(placeholders)
        compile_at, most = part.compiler(symbols.of_trace(), results, threads)
        kernel = compile_at(level)
        arrays = "".join(f"{texts[name]}, " for name, _, _ in kernel.inputs)  # others are not read after all
        run = "kernel"
        out = more = "out=" + ("o0" if len(made) == 1 else "(" + ", ".join(f"o{i}" for i in range(len(made))) + ")")
        if part.names:
            is_small = " and ".join(f"{name} <= most['{name}']" for name in part.names)
            values = ", ".join(f"{name}={name}" for name in part.names)
            sources.append(f"    run = kernel if {is_small} else larger({values})")
            more, run = f"{out}, dims=dict({values})", "run"
        lines = [f"def opjit_kernel({', '.join(f'a{i}' for i in range(len(part.given)))}):", *sources,
                 *(f"    {m}" for m in made),
                 "    try:", f"        {run}({arrays}{more})", "    except Error as error:",
                 f"        again(error, {run}, ({arrays}), {more})", f"    return {', '.join(given)}"]
        scope = {"empty": torch_empty(torch), "torch": torch, "Error": opjit.Error, "again": _again, "most": most, "math": math,
                 "__name__": __name__}
        exec("\n".join(lines), scope)
    except ERRORS as error:
        raise Refused(str(error)) from error
    function = scope["opjit_kernel"]
    _set_kernel(function, kernel, compile_at, level)
    if part.names:
        scope["larger"] = _larger(function, part, threads, level)
    return function, part.given
