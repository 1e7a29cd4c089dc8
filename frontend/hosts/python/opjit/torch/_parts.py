# SPDX-License-Identifier: Apache-2.0
"""Which nodes of a graph of aten become kernels: parts, each of nodes that one kernel computes.

Every node has a level: that of the nodes it reads, one more where it is taken and reads what PyTorch computes.  Taken
nodes of one level that read each other are a part, so that nothing which PyTorch computes lies between two of them.
What is cheap and reads inputs alone, such as a mask, goes to the level of its first reader; what is generated is free,
and computed in each part that reads it.  Views that others read are PyTorch's own, of the part's results.  All is
linear.
"""
import operator

import torch

from ._aten import NAMES, RANK, TABLE, elements, used, value_of
from ._sizes import whole
from . import _aten_axes, _aten_norms, _aten_windows  # noqa: F401 (their rows of the table)


def _fits(value):
    """A tensor that a kernel may read or write, or a number that is known."""
    if not isinstance(value, torch.Tensor):
        return isinstance(value, (int, torch.SymInt)) and whole(value) is not None
    return (value.dtype in NAMES and value.device.type == "cpu" and value.layout is torch.strided
            and value.dim() <= RANK and all(whole(s) for s in value.shape) and not value.is_neg()
            and all(whole(s) is not None for s in value.stride()))


def _is_plain(x):
    if isinstance(x, (tuple, list)):
        return all(map(_is_plain, x))
    return not isinstance(x, (torch.SymFloat, torch.SymBool, complex))


def inputs_of(n):
    """The nodes whose elements it reads."""
    if n.target in TABLE and TABLE[n.target].generated:
        return []
    return [i for i in n.all_input_nodes if not isinstance(i.meta.get("val"), (int, torch.SymInt))]


def is_list(n):
    """Several results, of which others read elements."""
    return isinstance(n.meta.get("val"), (tuple, list))


def entry_of(n):
    """The row of the table of a node that is taken; of an element of several results that of what gives them."""
    return TABLE[n.args[0].target if n.target is operator.getitem else n.target]


def _is_taken(n, takes):
    """Is the node in the table, with what it reads and gives?"""
    if n.op != "call_function" or "val" not in n.meta:
        return False
    if n.target is operator.getitem:
        return n.args[0] in takes
    entry, result = TABLE.get(n.target), value_of(n)
    if entry is None:
        return False
    read = [result[i] for i in used(n)] if is_list(n) else [result]
    return (all(isinstance(v, torch.Tensor) and _fits(v) for v in read) and all(map(_is_plain, n.args))
            and all("val" in i.meta and _fits(value_of(i)) for i in n.all_input_nodes) and bool(entry.when(n)))


class Parts:
    """of: the part's number by node; wanted: by part, the nodes whose elements it gives; runs: what PyTorch runs."""

    def __init__(self, graph, left=()):
        self.nodes = list(graph.nodes)
        self.takes, self.free, self.level = set(), set(), {}
        for n in self.nodes:
            if n not in left and _is_taken(n, self.takes):
                self.takes.add(n)
        self._set_levels()
        self._lower_cheap()
        self.of, self.wanted, self.runs = {}, [], set()
        for part in self._joined():
            self._keep(part)
        self._follow()

    def _keep(self, part):
        if self._gains(part):
            for n in part:
                self.of[n] = len(self.wanted)
            self.wanted.append([])

    def _set_levels(self):
        below = {}  # levels of those that are free, too, where PyTorch runs them
        for n in self.nodes:
            is_taken, inputs = n in self.takes, inputs_of(n)
            if is_taken and entry_of(n).free and all(i in self.free for i in inputs):
                self.free.add(n)
                below[n] = max([below[i] for i in n.all_input_nodes], default=0)
            elif is_taken:
                below[n] = self.level[n] = max([self.level[i] + (i.op == "call_function" and i not in self.takes)
                                                for i in inputs if i in self.level], default=0)
            else:
                below[n] = self.level[n] = max([below[i] for i in n.all_input_nodes], default=0)

    def _lower_cheap(self):
        cheap = set()
        for n in self.nodes:
            if n in self.takes and n not in self.free and entry_of(n).free and not is_list(n) and all(
                    i in cheap or i in self.free or i.op in ("placeholder", "get_attr") for i in inputs_of(n)):
                cheap.add(n)
        for n in reversed(self.nodes):
            if n in cheap and n.users and all(u in self.level and u in self.takes for u in n.users):
                self.level[n] = min(self.level[u] for u in n.users)

    def _joined(self):
        """Nodes of one level that read each other, by union and find."""
        head = {n: n for n in self.nodes if n in self.takes and n not in self.free}

        def find(n):
            while head[n] is not n:
                head[n] = head[head[n]]
                n = head[n]
            return n
        for n in head:
            for i in inputs_of(n):
                if i in head and self.level[i] == self.level[n]:
                    head[find(i)] = find(n)
        rows = {}
        for n in head:
            rows.setdefault(find(n), []).append(n)
        return rows.values()

    def _gains(self, part):
        """Whether a kernel is faster than PyTorch: it saves a pass over memory, or does something better."""
        work = [n for n in part if n.target is not operator.getitem and not entry_of(n).view]
        generated = any(i in self.free and elements(value_of(i)) > 1 for n in work for i in inputs_of(n))
        return sum((1 if entry_of(n).light else 2) - entry_of(n).lag for n in work) + generated > 1

    def _follow(self):
        """From the results back: who has to run, and what of a part others read."""
        needed, inside = set(), set()
        for n in reversed(self.nodes):
            if n in needed and n in self.free and self._gains([n]):
                self._keep([n])
            part = self.of.get(n)
            if part is not None and n in needed and not entry_of(n).view:
                self.wanted[part].append(n)
                inside.add(n)
            elif n in needed or n.op in ("placeholder", "output") or (n not in self.takes and n.is_impure()):
                self.runs.add(n)
                needed.update(n.all_input_nodes)
            if n in inside:
                for i in inputs_of(n):
                    if i not in self.free:
                        (inside if self.of.get(i) == part else needed).add(i)

    def body(self, part):
        """What a part's kernel computes, in order, and what it reads."""
        inside, inputs, stack = set(), {}, list(self.wanted[part])
        while stack:
            n = stack.pop()
            if n not in inside:
                inside.add(n)
                for i in inputs_of(n):
                    if self.of.get(i) == part or i in self.free:
                        stack.append(i)
                    else:
                        inputs[i] = True
        return [n for n in self.nodes if n in inside], list(inputs)
