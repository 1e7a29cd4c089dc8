# SPDX-License-Identifier: Apache-2.0
"""torch.compile(f, backend="opjit"): what opjit computes faster becomes kernels, and the rest stays with PyTorch.

counters says what was made: kernels, the nodes of aten that they compute (taken), those that PyTorch runs (left), and
parts that have no kernel after all (refused), whose reasons go to the log "opjit.torch" at the level DEBUG.
"""
import functools

import torch
from torch._decomp import get_decompositions
from torch._dynamo import list_backends, register_backend
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition

from ._compile import compiled, counters

__all__ = ["backend", "counters"]

@functools.cache
def _decompositions():
    """Of what consists of operators in the table, and is none."""
    aten = torch.ops.aten
    return get_decompositions([
        aten.elu, aten.elu_backward, aten.hardswish_backward, aten.hardsigmoid_backward, aten.hardtanh_backward,
        aten.leaky_relu_backward, aten.softplus, aten.softplus_backward, aten.mish, aten.log_sigmoid_forward,
        aten.log_sigmoid_backward, aten.mse_loss, aten.mse_loss_backward, aten.smooth_l1_loss,
        aten.smooth_l1_loss_backward, aten.huber_loss, aten.native_dropout_backward, aten.std, aten.var,
        aten.var_mean, aten.std_mean, aten.lerp, aten.square, aten.masked_fill_, aten.stack, aten.glu,
        aten.glu_backward, aten.logaddexp, aten.baddbmm, aten._prelu_kernel, aten.rot90, aten.roll])


def _compiler(threads, level):
    def compile(gm, inputs):
        return make_boxed_func(compiled(gm, threads, level).forward)
    return compile


def _marked(shape_env):
    """The symbols of sizes that the user marked as dynamic."""
    symbols = set()
    for tracked in getattr(shape_env, "tracked_fakes", None) or []:
        wanted = getattr(tracked.symbolic_context, "constraint_sizes", None) or []
        for size, constraint in zip(getattr(tracked.fake, "shape", ()), wanted):
            if isinstance(size, torch.SymInt) and not getattr(constraint, "warn_only", constraint is None):
                symbols |= size.node.expr.free_symbols
    return symbols


def _specialise(inputs):
    """A kernel is for one shape: sizes that Dynamo holds to be dynamic become those of this call, and guards."""
    for x in inputs:
        for size in (x.shape if isinstance(x, torch.Tensor) else [x]):
            if isinstance(size, torch.SymInt) and not size.node.expr.free_symbols & _marked(size.node.shape_env):
                int(size)


def backend(gm, inputs, *, options=None):
    """The backend; options={"level": "peak"} is that of opjit.compile, {"threads": n} instead of
    torch.get_num_threads()."""
    options = {"level": "auto", "threads": torch.get_num_threads(), **(options or {})}
    unknown = options.keys() - {"level", "threads"}
    if unknown:
        raise ValueError(f"options: {sorted(unknown)[0]!r}, must be 'level' or 'threads'")
    _specialise(inputs)
    return aot_autograd(fw_compiler=_compiler(**options), decompositions=_decompositions(),
                        partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True)(
                            gm, inputs)


if "opjit" not in list_backends(exclude_tags=()):  # it is there where the package is installed
    register_backend(backend, "opjit")
