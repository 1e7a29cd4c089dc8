# SPDX-License-Identifier: Apache-2.0
"""Kernels as functions of JAX's arrays: call(what, *arrays), eagerly, in jax.jit and in jax.vmap, on CPUs."""
import functools

import jax as _jax
import jax.numpy as _jnp
import numpy as _numpy

from . import Graph, Kernel, Tensor, _opjit, compile as _compile

__all__ = ["call"]

_jax.ffi.register_ffi_target("opjit", _opjit.xla_handler(), platform="cpu")


def call(what, *arrays, level="auto", threads=1, vjp=None):
    """The results of a kernel, of tensors (of one graph, whose inputs the arrays are), or of a function that makes
    tensors of tensors, with the arrays; of one without dimensions the tensor has one element.  A function is built and
    compiled once for each set of shapes and types, and what was compiled stays for the process's life: pass the same
    function again, not a new one each time.
    vjp(arrays, results, cotangents) gives the arrays' cotangents; without it there is no jax.grad."""
    arrays = tuple(_jnp.asarray(a) for a in arrays)
    if not isinstance(what, Kernel):  # a graph has no tensors without dimensions
        arrays = tuple(a if a.ndim > 0 else a.reshape(1) for a in arrays)
    types = tuple((str(a.dtype), a.shape) for a in arrays)
    what = tuple(what) if isinstance(what, list) else what
    if isinstance(what, Kernel):
        kernel = what
    elif isinstance(what, Tensor) or (isinstance(what, tuple) and what and all(isinstance(t, Tensor) for t in what)):
        kernel = _of_tensors(what, level, threads)
    elif callable(what):
        kernel = _of_function(what, types, level, threads)
    else:
        raise TypeError(f"opjit.jax.call: a kernel, tensors or a function is needed, {type(what).__name__} given")
    kernel._check(types)
    return _function(kernel, vjp)(*arrays)


@functools.lru_cache(maxsize=None)
def _of_tensors(what, level, threads):
    return _compile(what, level=level, threads=threads)


@functools.lru_cache(maxsize=None)
def _of_function(function, types, level, threads):
    graph = Graph()
    inputs = [graph.input(shape, dtype) for dtype, shape in types]
    kernel = _compile(function(*inputs), level=level, threads=threads)
    if len(kernel.inputs) != len(inputs):
        raise ValueError(f"opjit.jax.call: the function reads {len(kernel.inputs)} of its {len(inputs)} tensors")
    return kernel


def _result(name, dtype, shape):
    """An array that JAX will make; without jax_enable_x64 it would quietly be one of 32 bits."""
    if _jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise ValueError(f"opjit.jax.call: result {name or ''} is {dtype}, which needs "
                         'jax.config.update("jax_enable_x64", True)')
    return _jax.ShapeDtypeStruct(shape, dtype)


@functools.lru_cache(maxsize=None)
def _function(kernel, vjp):
    """The kernel as a jitted function of arrays that were checked."""
    rows = [_result(*row) for row in kernel.outputs]
    target = _jax.ffi.ffi_call("opjit", rows[0] if len(rows) == 1 else tuple(rows), vmap_method="sequential")
    handle = _numpy.int64(kernel._xla())

    def run(*arrays):
        return target(*arrays, kernel=handle)
    if vjp is None:
        function = _jax.custom_jvp(run)
        function.defjvp(_refuse_gradient)
    else:
        function = _jax.custom_vjp(run)
        function.defvjp(lambda *arrays: ((result := run(*arrays)), (arrays, result)),
                        lambda saved, cotangents: tuple(vjp(*saved, cotangents)))
    return _jax.jit(function)


def _refuse_gradient(primals, tangents):
    raise TypeError("opjit.jax.call: there is no gradient of a kernel: give call(..., vjp=function), or use "
                    "jax.lax.stop_gradient")
