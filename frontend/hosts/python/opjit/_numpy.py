# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that are made of the package's own."""
import functools as _functools

import opjit

from ._tensor import Deferred, Tensor, axes_of, graph_of, tensor


def _of_one(function):
    """The function, whose operand may also be a number or an array, or belong to no graph yet."""
    @_functools.wraps(function)
    def call(x, *rest, **more):
        if isinstance(x, Deferred):
            return x.then(lambda t: function(t, *rest, **more))
        return function(x if isinstance(x, Tensor) else tensor(graph_of(()), x), *rest, **more)
    return call


@_of_one
def round(x, decimals=0):
    """The nearest number of that many decimals, halves to the even one."""
    scale = 10.0 ** abs(decimals)
    scaled = x if decimals == 0 else x * scale if decimals > 0 else x / scale
    y = opjit.ops.element_wise_round(scaled, rounding_mode="HALVES_TO_NEAREST_EVEN")
    return y if decimals == 0 else y / scale if decimals > 0 else y * scale


@_of_one
def ravel(x):
    """The elements in row-major order as one dimension."""
    return x.reshape([-1])


@_of_one
def moveaxis(x, source, destination):
    """x with the axes of source in the places of destination, and the others in their order."""
    source, destination = axes_of(x, source), axes_of(x, destination)
    if len(source) != len(destination):
        raise ValueError(f"moveaxis: {len(source)} axes to {len(destination)} places, must be as many")
    axes = [d for d in range(x.ndim) if d not in source]
    for place, axis in sorted(zip(destination, source)):
        axes.insert(place, axis)
    return x.transpose(axes)


@_of_one
def roll(x, shift, axis=None):
    """The elements so many places further along the axis, those at the end first; axis None: in row-major order."""
    if axis is None:
        return roll(ravel(x), shift, 0).reshape(list(x.shape))
    shifts, axes = [shift] if isinstance(shift, int) else list(shift), axes_of(x, axis)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts of {len(axes)} axes, must be as many")
    for shift, axis in zip(shifts, axes):
        at = -shift % x.shape[axis]
        if at:
            head = (slice(None),) * axis
            x = opjit.concatenate([x[(*head, slice(at, None))], x[(*head, slice(None, at))]], axis)
    return x


@_of_one
def repeat(x, repeats, axis=None):
    """Each element along the axis so many times, one beside the other; axis None: in row-major order."""
    if axis is None:
        return repeat(ravel(x), repeats, 0)
    axis, shape = axes_of(x, axis)[0], list(x.shape)
    if repeats < 1:
        raise ValueError(f"repeat: {repeats} times, must be at least 1")
    y = opjit.broadcast_to(opjit.expand_dims(x, axis + 1), (*shape[:axis + 1], repeats, *shape[axis + 1:]))
    return y.reshape([*shape[:axis], shape[axis] * repeats, *shape[axis + 1:]])


def outer(a, b):
    """The product of each element of a and each of b."""
    graph = graph_of((a, b))
    return ravel(tensor(graph, a))[:, None] * ravel(tensor(graph, b))[None, :]


@_of_one
def diff(x, n=1, axis=-1):
    """The differences of neighbours along the axis, n times."""
    head = (slice(None),) * axes_of(x, axis)[0]
    for _ in range(n):
        x = x[(*head, slice(1, None))] - x[(*head, slice(None, -1))]
    return x
