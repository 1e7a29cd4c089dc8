# SPDX-License-Identifier: Apache-2.0
"""A graph of aten in which parts are calls of kernels."""
import collections
import heapq
import logging
import operator

import torch

from ._aten import elements
from ._kernel import Refused, make
from ._parts import Parts, entry_of
from ._sizes import Symbols

counters = collections.Counter()
log = logging.getLogger("opjit.torch")


class Unknown(Exception):
    """No kernel for all sizes of a part."""


def is_mutable(n):
    """Does it write to what it is given?"""
    return isinstance(n.target, torch._ops.OpOverload) and n.target._schema.is_mutable


def _is_ordered(n):
    """Does its place among others of the kind matter, as that of random numbers does?"""
    if n.op != "call_function" or n.target is operator.getitem:
        return n.op in ("call_module", "call_method")
    return (not isinstance(n.target, torch._ops.OpOverload) or n.is_impure()
            or torch.Tag.nondeterministic_seeded in n.target.tags)


def _tail(nodes):
    """Where the nodes begin that write to inputs; those behind must write, too, or be results."""
    first = next((i for i, n in enumerate(nodes) if is_mutable(n)), len(nodes) - 1)
    if any(not is_mutable(n) for n in nodes[first:-1]):
        raise Refused("something is written to before the end")
    return first


def _agree(graph):
    """Keys and values have as many rows, without which the operator raises, and under a causal mask queries mostly do,
    too.  To compare them is a guard where sizes are dynamic, for then the trace may have two symbols."""
    for n in graph.nodes:
        if n.target is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default:
            q, k, v = (i.meta["val"].shape for i in n.args[:3])
            if k[2] != v[2] or (n.args[4:5] == (True,) and q[2] != k[2]):
                log.debug("%s: queries of shape %s, keys of %s, values of %s", n, q, k, v)


class _Units:
    """What is to be done in an order in which everybody has what he reads: nodes of PyTorch, and kernels."""

    def __init__(self, parts, functions, inputs):
        self.parts, self.functions, self.inputs = parts, functions, inputs
        self.kernel_of = {n: k for k, rows in enumerate(parts.wanted) for n in rows}

    def unit_of(self, n):
        """The number of a kernel for what it gives, else the node."""
        return self.kernel_of.get(n, n)

    def reads(self, unit):
        return self.inputs[unit] if isinstance(unit, int) else unit.all_input_nodes

    def sorted(self, nodes):
        """The order of the old graph where there is a choice."""
        rank = {n: i for i, n in enumerate(self.parts.nodes)}
        units = {self.unit_of(n): None for n in nodes}
        rank.update({k: max(rank[n] for n in self.parts.wanted[k]) for k in units if isinstance(k, int)})
        count, readers, last = {}, {u: [] for u in units}, None
        for u in sorted(units, key=rank.get):
            needed = {self.unit_of(i) for i in self.reads(u)} & units.keys()
            if not isinstance(u, int) and _is_ordered(u):
                needed |= {last} - {None}
                last = u
            count[u] = len(needed)
            for i in needed:
                readers[i].append(u)
        heap = [(rank[u], i, u) for i, u in enumerate(units) if count[u] == 0]
        heapq.heapify(heap)
        while heap:
            unit = heapq.heappop(heap)[2]
            yield unit
            for u in readers[unit]:
                count[u] -= 1
                if count[u] == 0:
                    heapq.heappush(heap, (rank[u], len(units) + rank[u], u))


def _rebuilt(gm, units, first):
    """The graph of the units; what begins the tail stays behind all others."""
    graph, where = torch.fx.Graph(), {}
    nodes = units.parts.nodes
    rank = {n: i for i, n in enumerate(nodes)}
    runs = units.parts.runs
    head = [n for n in nodes if (n in runs or n in units.kernel_of) and rank[n] < first and n.op != "placeholder"]
    for n in nodes:
        if n.op == "placeholder":
            where[n] = graph.node_copy(n)
    for unit in units.sorted(head):
        if not isinstance(unit, int):
            where[unit] = graph.node_copy(unit, where.__getitem__)
            continue
        rows = units.parts.wanted[unit]
        call = graph.call_function(units.functions[unit], tuple(where[i] for i in units.inputs[unit]))
        for i, n in enumerate(rows):
            where[n] = call if len(rows) == 1 else graph.call_function(operator.getitem, (call, i))
            where[n].meta["val"] = n.meta["val"]
    for n in nodes[first:]:
        where[n] = graph.node_copy(n, where.__getitem__)
    return torch.fx.GraphModule(gm, graph)


PRODUCTS = {getattr(torch.ops.aten, name).default for name in (
    "bmm", "mm", "addmm", "_scaled_dot_product_flash_attention_for_cpu")}


def _left_of(nodes):
    """What PyTorch gets of a part that is refused: the products where there are some, as one kernel often can't be for
    all their sizes; what lies between them gains without them, too.  Else all."""
    return [n for n in nodes if n.target in PRODUCTS or n.target is operator.getitem and (
        n.args[0].target in PRODUCTS)] or nodes


def _kernels(graph, symbols, threads, level, strict):
    """The parts with a function and what a call gives it for each.  Of a part that is refused some is left out, and the
    rest is tried again; a graph for which this goes on is refused."""
    left, placeholders = set(), [n for n in graph.nodes if n.op == "placeholder"]
    for _ in range(5):
        parts, functions, inputs = Parts(graph, left), [], []
        refused = len(left)
        for k in range(len(parts.wanted)):
            nodes, read = parts.body(k)
            try:
                function, given = (make(nodes, read, parts.wanted[k], placeholders, symbols, threads, level)
                                   if nodes else (None, []))
                functions.append(function)
                inputs.append(given)
            except Refused as reason:
                if strict and symbols.ranges:
                    raise Unknown(str(reason)) from reason
                log.debug("a part of %d nodes is left: %s", len(nodes), reason)
                counters["refused"] += 1
                left.update(_left_of(nodes))
        if len(left) == refused:
            return parts, functions, inputs
    raise Refused("too many parts have no kernel")


# Microseconds, measured on small models.  Of eager code: a call of PyTorch, an operator that it makes others of, an
# element of a result, and what the call and an element of what is no arithmetic take more.  Of a step of training: what
# AOTAutograd does around its two graphs, and each node that is left in them.  Of inference: the same, and a kernel.
CALL, INNER, ELEMENT, MATH, MATH_ELEMENT = 4, 2, 0.00025, 6, 0.002
AROUND, LEFT = 150, 6
AROUND_INFERENCE, LEFT_INFERENCE, KERNEL = 15, 5.5, 3


def _counted(gm):
    """The parts of the graph; what they compute but views, and the elements of each; and how many nodes are left."""
    symbols = Symbols(gm.graph)
    with symbols.at(symbols.of_trace()):
        parts = Parts(gm.graph)
        work = [n for n in parts.of if n.target is not operator.getitem and not entry_of(n).view]
        sizes = [max(elements(v) for v in (result if isinstance(result, (tuple, list)) else [result])
                     if isinstance(v, torch.Tensor)) for result in (n.meta["val"] for n in work)]
        left = sum(n.op == "call_function" and n.target is not operator.getitem for n in parts.runs)
    return parts, list(zip(work, sizes)), left


def saved(gm):
    """Microseconds that the kernels of the graph save PyTorch in training, less what the graph costs it."""
    _, work, left = _counted(gm)
    return sum(CALL + ELEMENT * size for _, size in work) - LEFT * left


def pays(gm, calls):
    """Does a graph of inference take less with its kernels than the `calls` of PyTorch that it was traced from?  What
    is left of it runs one by one, and often is more than one for a call."""
    parts, work, left = _counted(gm)
    before = max(CALL * calls, INNER * (len(work) + left)) + sum(
        ELEMENT * size if entry_of(n).light else MATH + MATH_ELEMENT * size for n, size in work)
    return left == 0 or before > AROUND_INFERENCE + LEFT_INFERENCE * left + KERNEL * len(parts.wanted)


def compiled(gm, threads, level, strict=False):
    """The module with kernels; itself, if there is nothing for them.  strict: a part whose sizes have to be known is an
    exception."""
    _agree(gm.graph)
    symbols = Symbols(gm.graph)
    try:
        first = _tail(list(gm.graph.nodes))
        with symbols.at(symbols.of_trace()):
            parts, functions, inputs = _kernels(gm.graph, symbols, threads, level, strict)
    except Refused as reason:
        log.debug("nothing is taken: %s", reason)
        counters["refused"] += 1
        return gm
    calls = [n for n in parts.nodes if n.op == "call_function"]
    left = sum(n in parts.runs for n in calls)
    made = sum(f is not None for f in functions)
    counters.update(kernels=made, taken=len(calls) - left, left=left)
    return _rebuilt(gm, _Units(parts, functions, inputs), first) if made else gm
