# SPDX-License-Identifier: Apache-2.0
"""A part as a function of tensors: the kernel, and as little Python around its call as can be.

At the level "auto" that is a kernel which was compiled quickly, and in whose place a thread soon puts the fastest one,
which has the same bits.
"""
import concurrent.futures
import logging
import operator
import os
import threading
import weakref

import torch
from torch.utils._python_dispatch import _disable_current_modes

import opjit

from ._aten import NAMES, TABLE, dims, frozen, name_of, value_of, whole

try:
    from torch._C._dynamo.guards import _empty_strided_cpu as _empty
except ImportError:
    def _empty(sizes, strides, dtype):
        return torch.empty_strided(sizes, strides, dtype=dtype)


log = logging.getLogger("opjit.torch")
behind = concurrent.futures.ThreadPoolExecutor(1, "opjit.torch")
compiling = threading.Lock()  # by the thread behind; a fork waits for it, as it would leave locks to nobody


def _after_fork():
    """The process has no thread but the one that forked."""
    global behind
    behind = concurrent.futures.ThreadPoolExecutor(1, "opjit.torch")
    compiling.release()


os.register_at_fork(before=compiling.acquire, after_in_parent=compiling.release, after_in_child=_after_fork)


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


def _read(graph, value, name):
    """An input of the kernel, and the text of how a call gets it of the tensor."""
    shape, layout = dims(value), _layout(value)
    dtype = NAMES[value.dtype]
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


def _results(nodes, values):
    """The tensors to compute in the order of memory, and the texts of how they are made and given."""
    results, made, given = {}, [], []
    for i, n in enumerate(nodes):
        value, y = value_of(n), values[n]
        layout = _layout(value)
        if layout is None or layout[1]:
            raise Refused(f"{n}: a result with strides {value.stride()}")
        order, shape = layout[0], dims(value)
        text = f"o{i}"
        there = tuple(shape[d] for d in order) if value.dim() else (1,)
        if order != list(range(value.dim())):
            y, text = y.transpose(order), f"{text}.permute({tuple(_inverse(order))})"
        elif value.dim() == 0:
            text += ".reshape(())"
        is_bool = value.dtype is torch.bool
        results[f"o{i}"] = opjit.ops.element_wise_identity(y)
        made.append(f"o{i} = empty({there}, {tuple(_packed(there))}, {'torch.uint8' if is_bool else value.dtype})")
        given.append(text + (".view(torch.bool)" if is_bool else ""))
    return results, made, given


def _again(error, kernel, inputs, out):
    """A call whose tensors have other strides than those of the trace: with copies of them."""
    packed = [x.contiguous() for x in inputs]
    if all(p is x for p, x in zip(packed, inputs)):
        raise error
    kernel(*packed, out=out)


def _put_better(function, results, threads):
    """Gives the function the fastest kernel, unless it is gone or the process ends."""
    with compiling:
        if function() is None or not threading.main_thread().is_alive():
            return
        try:
            kernel = opjit.compile(results, threads=threads, level="peak")
        except (opjit.Error, MemoryError) as error:
            log.debug("a kernel stays as it is: %s", error)
            return
    function = function()
    if function is not None:
        function.kernel = function.__globals__["kernel"] = kernel


def finish():
    """Waits until the thread behind has nothing to compile."""
    behind.submit(int).result()


def make(nodes, inputs, wanted, threads, level):
    """The function of the part's inputs that are not frozen, and these inputs; it gives what is wanted: a tensor, or a
    tuple of them."""
    graph, values, texts = opjit.Graph(), {}, {}
    read = [n for n in inputs if frozen(n) is None]
    try:
        for i, n in enumerate(read):
            values[n], texts[f"a{i}"] = _read(graph, value_of(n), f"a{i}")
        values.update((n, _constant(graph, frozen(n))) for n in inputs if frozen(n) is not None)
        _computed(graph, nodes, values)
        results, made, given = _results(wanted, values)
        kernel = opjit.compile(results, threads=threads, level=level)
    except (opjit.Error, ValueError, TypeError, IndexError, OverflowError) as error:
        raise Refused(str(error)) from error
    arrays = "".join(f"{texts[name]}, " for name, _, _ in kernel.inputs)
    out = "o0" if len(made) == 1 else "(" + ", ".join(f"o{i}" for i in range(len(made))) + ")"
    lines = [f"def opjit_kernel({', '.join(f'a{i}' for i in range(len(read)))}):", *(f"    {m}" for m in made),
             "    try:", f"        kernel({arrays}out={out})", "    except Error as error:",
             f"        again(error, kernel, ({arrays}), {out})", f"    return {', '.join(given)}"]
    scope = {"kernel": kernel, "empty": _empty, "torch": torch, "Error": opjit.Error, "again": _again,
             "__name__": __name__}
    exec("\n".join(lines), scope)
    function = scope["opjit_kernel"]
    function.kernel = kernel
    if level == "auto" and threading.main_thread().is_alive():
        behind.submit(_put_better, weakref.ref(function), results, threads)
    return function, read
