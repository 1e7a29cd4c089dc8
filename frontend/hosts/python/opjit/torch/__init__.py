# SPDX-License-Identifier: Apache-2.0
"""torch.compile(f, backend="opjit"): what opjit computes faster becomes kernels, and the rest stays with PyTorch.

counters says what was made: kernels, the nodes of aten that they compute (taken), those that PyTorch runs (left), and
parts that have no kernel after all (refused), whose reasons go to the log "opjit.torch" at the level DEBUG.  finish()
returns when all kernels are the fastest ones.
"""
import collections
import contextlib
import functools
import operator

import torch
from torch._decomp import get_decompositions
from torch._dynamo import list_backends, register_backend
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._subclasses import FakeTensor

import opjit

from . import _compile
from ._compile import Unknown, compiled, counters, is_mutable, log, pays, saved
from ._kernel import finish

__all__ = ["backend", "counters", "finish"]

_refused = collections.Counter()  # how often a graph had no kernels for all sizes, by what it calls
_seen = {}  # and the sizes of the tensors that it was traced with
SPECIAL = 4  # so often the sizes are those of the call
TRACES, GRAPHS = 16, 1000  # of a graph, and graphs, whose sizes are kept


@functools.cache
def _decompositions():
    """Of what consists of operators in the table, and is none."""
    aten = torch.ops.aten
    return get_decompositions([
        aten.elu_backward, aten.hardswish_backward, aten.hardsigmoid_backward, aten.hardtanh_backward,
        aten.leaky_relu_backward, aten.softplus, aten.softplus_backward, aten.mish, aten.log_sigmoid_forward,
        aten.log_sigmoid_backward, aten.mse_loss, aten.mse_loss_backward, aten.smooth_l1_loss,
        aten.smooth_l1_loss_backward, aten.huber_loss, aten.native_dropout_backward, aten.lerp, aten.square,
        aten.masked_fill_, aten.stack, aten.glu, aten.glu_backward, aten.logaddexp, aten.baddbmm,
        aten._prelu_kernel, aten.rot90])


@functools.cache
def _resampling():
    """Overloads for which tracing has Python functions of many operators, slower than PyTorch's kernels of one."""
    aten = torch.ops.aten
    names = [f"{kind}{d}d" for d in (1, 2, 3) for kind in ("upsample_nearest", "_upsample_nearest_exact")]
    names += ["upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d",
              "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"]
    packets = [getattr(aten, name) for name in names if hasattr(aten, name)]
    return [getattr(packet, name) for packet in packets for name in packet.overloads() if name in ("default", "vec")]


def _resamples_symbols(gm):
    """Does the graph resample to sizes that are symbols?  PyTorch's kernels of one operator take none as it traces."""
    return any(isinstance(size, torch.SymInt) for n in gm.graph.nodes
               if any(name in str(n.target) for name in ("interpolate", "upsample", "Upsample"))
               for size in getattr(n.meta.get("example_value", n.meta.get("val")), "shape", ())[2:])


@contextlib.contextmanager
def _as_one(of_symbols=False):
    """Inside, a trace has these as they are, unless sizes are symbols.  Dynamo compiles one function at a time."""
    before = [] if of_symbols else [(op, dict(op.py_kernels)) for op in _resampling()]
    try:
        for op, _ in before:
            op.py_kernels.clear()
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in before:
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def _compiler(threads, level, fixed, strict, made, gains):
    """fixed: the tensors, by the number of the graph's input, that are the same in all calls.  made: takes the module
    with kernels, or None.  gains(graph): shall there be kernels?"""
    def compile(gm, inputs):
        if fixed:
            _freeze([n for n in gm.graph.nodes if n.op == "placeholder"], fixed)
        module = compiled(gm, threads, level, strict) if gains(gm) else gm
        made.append(module if module is not gm else None)
        return make_boxed_func(module.forward)
    return compile


def _partition(gains):
    """AOTAutograd's way of cutting a graph in two; gains: takes whether kernels of both, of which those of the second
    are made much later, save more in a step of training than AOTAutograd takes."""
    def partition(*args, **more):
        forward, backward = min_cut_rematerialization_partition(*args, **more)
        gains.append(saved(forward) + saved(backward) > _compile.AROUND)
        return forward, backward
    return partition


def _is_kernels(module, gm, inputs):
    """Does the module consist of kernels whose results are those of gm, of the same inputs?  Then nothing is an alias
    or written to, and what AOTAutograd does around a call has nothing to do."""
    nodes = list(module.graph.nodes)
    results, wanted = nodes[-1].args[0], next(n for n in gm.graph.nodes if n.op == "output").args[0]
    calls = {n for n in nodes if n.op == "call_function"}
    return (len(nodes) == len(inputs) + len(calls) + 1 and len(set(results)) == len(results) == len(wanted)
            and all(n in calls for n in results)
            and all(n.target is operator.getitem or hasattr(n.target, "compile_at") for n in calls))


def _weights(inputs):
    """Parameters and buffers of modules, by number."""
    return {i: x for i, x in enumerate(inputs) if isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor)
            and (isinstance(x, torch.nn.Parameter) or hasattr(x, "_dynamo_static_input_type"))}


def _freeze(nodes, fixed):
    """Notes which inputs are fixed, but for those that the graph writes to."""
    for i, x in fixed.items():
        if i < len(nodes) and not any(is_mutable(u) for u in nodes[i].users):
            value = nodes[i].meta.get("val")
            if isinstance(value, torch.Tensor) and (value.shape, value.dtype) == (x.shape, x.dtype):
                nodes[i].meta["opjit_frozen"] = x


def _marked(shape_env):
    """The symbols of sizes that the user marked as dynamic."""
    symbols = set()
    for tracked in getattr(shape_env, "tracked_fakes", None) or []:
        wanted = getattr(tracked.symbolic_context, "constraint_sizes", None) or []
        for size, constraint in zip(getattr(tracked.fake, "shape", ()), wanted):
            if isinstance(size, torch.SymInt) and not getattr(constraint, "warn_only", constraint is None):
                symbols |= size.node.expr.free_symbols
    return symbols


def _specialise(inputs, kept=frozenset()):
    """Sizes that Dynamo holds to be dynamic become those of this call, and guards, but for those of the symbols."""
    for x in inputs:
        for size in (x.shape if isinstance(x, torch.Tensor) else [x]):
            if (isinstance(size, torch.SymInt) and size.node.has_hint()
                    and not size.node.expr.free_symbols & (_marked(size.node.shape_env) | kept)):
                int(size)


def _varied(gm, key):
    """The symbols of sizes that were not the same in all traces of what has the key, the most varied ones first: with
    dynamic=True Dynamo gives each size a symbol, such as those of heads, which never change."""
    tensors = [x for n in gm.graph.nodes if n.op == "placeholder"
               and isinstance(x := n.meta.get("example_value"), torch.Tensor)]
    sizes = [size for x in tensors for size in x.shape]
    hints = tuple(s.node.hint if isinstance(s, torch.SymInt) else s for s in sizes)
    rows = _seen.setdefault((key, tuple(x.dim() for x in tensors)), {})
    if len(rows) < TRACES:
        rows[hints] = True
    counts = collections.Counter()
    for size, values in zip(sizes, zip(*rows, hints)):
        if isinstance(size, torch.SymInt) and len(set(values)) > 1:
            counts.update({s: len(set(values)) for s in size.node.expr.free_symbols})
    return [s for s, _ in counts.most_common()]


def _threads(wanted):
    """Kernels of a process share one pool: the first number above 1 that was wanted is that of all."""
    there = opjit._opjit.threads()
    return wanted if there is None or wanted == 1 else there


def backend(gm, inputs, *, options=None):
    """The backend; options={"level": "peak"} is that of opjit.compile, {"threads": n} instead of
    torch.get_num_threads(), {"freeze": True}: modules keep their weights, where there are no gradients."""
    options = {"level": "auto", "threads": torch.get_num_threads(), "freeze": False, **(options or {})}
    unknown = options.keys() - {"level", "threads", "freeze"}
    if unknown:
        raise ValueError(f"options: {sorted(unknown)[0]!r}, must be 'level', 'threads' or 'freeze'")
    fixed = _weights(inputs) if options["freeze"] and not torch.is_grad_enabled() else {}

    is_training = torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)

    def made(strict):
        training, inference, gains = [], [], []
        calls = sum(n.op in ("call_function", "call_method", "call_module") and n.target is not operator.getitem
                    for n in gm.graph.nodes)
        forward, backward, only = (  # a backward graph of dynamic sizes is compiled when it runs: too late to refuse
            _compiler(_threads(options["threads"]), options["level"], fixed, is_strict, modules, pay)
            for is_strict, modules, pay in ((strict, training, lambda graph: all(gains)),
                                            (False, training, lambda graph: all(gains)),
                                            (strict, inference, lambda graph: pays(graph, calls))))
        with _as_one(_resamples_symbols(gm)):
            function = aot_autograd(fw_compiler=forward, bw_compiler=backward, inference_compiler=only,
                                    decompositions=_decompositions(), partition_fn=_partition(gains),
                                    keep_inference_input_mutations=True)(gm, inputs)
        if not any(training + inference + gains):
            return gm.forward  # PyTorch's own operators, not those into which AOTAutograd takes them apart
        is_all = len(inference) == 1 and not is_training and _is_kernels(inference[0], gm, inputs)
        return inference[0].forward if is_all else function
    key = is_training, *(str(n.target) for n in gm.graph.nodes if n.op not in ("placeholder", "output"))
    if len(_refused) > GRAPHS:
        _refused.clear()
        _seen.clear()
    varied = _varied(gm, key)
    kept = [varied, varied[:1]] if len(varied) > 1 else [varied] if varied else []
    if _refused[key] == 0:
        kept = [None, *kept]
    for symbols in kept:
        if symbols is not None:
            _specialise(inputs, set(symbols))
        try:
            return made(True)
        except Unknown as reason:
            log.debug("not for all sizes: %s", reason)
    if _refused[key] < SPECIAL:
        _refused[key] += 1
        _specialise(inputs)
    return made(False)


if "opjit" not in list_backends(exclude_tags=()):  # it is there where the package is installed
    register_backend(backend, "opjit")
