# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that move elements, made of the package's own."""
import functools as _functools
import itertools as _itertools
import math as _math
from numbers import Integral as _Integral

import opjit

from ._tensor import FLOATS, Deferred, Tensor, axes_of, common_dtype, graph_of, tensor

__all__ = ["append", "array_split", "astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays",
           "broadcast_shapes", "column_stack", "copy", "delete", "diag", "diagflat", "diagonal", "diff", "dsplit",
           "dstack", "ediff1d", "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "insert",
           "matrix_transpose", "meshgrid", "moveaxis", "ndim", "pad", "put", "putmask", "ravel", "repeat", "resize",
           "roll", "rollaxis", "rot90", "row_stack", "shape", "size", "split", "squeeze", "stack", "swapaxes", "tile",
           "unstack", "vsplit", "vstack"]


def _of_one(function):
    """The function, whose first operand may also be a number or an array, or belong to no graph yet."""
    @_functools.wraps(function)
    def call(x, *rest, **more):
        others = [t for t in (*rest, *more.values()) if isinstance(t, Tensor)]
        if isinstance(x, Deferred) and not others:
            return x.then(lambda t: function(t, *rest, **more))
        return function(x if isinstance(x, Tensor) else tensor(graph_of(others), x), *rest, **more)
    return call


def together(operands):
    """The operands as tensors of one graph; numbers take the type of the first tensor among them, and lists of them,
    too, where that is floating-point."""
    graph, dtype = graph_of(operands), common_dtype(operands)
    return [_beside(graph, x, dtype) if isinstance(x, (list, tuple)) and dtype in FLOATS else tensor(graph, x, dtype)
            for x in operands]


def within(dtype, n):
    """n, whole numbers beyond those of the type as its last one."""
    if dtype in FLOATS or not isinstance(n, _Integral):
        return n
    bits, signed = int(dtype.lstrip("uint")), dtype[0] == "i"
    return min(max(int(n), -1 << (bits - 1) if signed else 0), (1 << (bits - signed)) - 1)


def _beside(graph, x, dtype):
    """x, an array or a list of numbers, in the type."""
    x = tensor(graph, x, dtype)
    return x if x.dtype == dtype else x.astype(dtype)


@_of_one
def ravel(x):
    """The elements in row-major order as one dimension."""
    return x.reshape([-1])


@_of_one
def expand_dims(x, axis):
    """x with dimensions of size 1 more, which are those of the result's axes."""
    axes = [axis] if isinstance(axis, _Integral) else list(axis)
    rank = x.ndim + len(axes)
    places = {a % rank for a in axes if -rank <= a < rank}
    if len(places) != len(axes):
        raise ValueError(f"expand_dims: axis {axis}, must be within {rank} dimensions, each of them once")
    sizes = iter(x.shape)
    return x.reshape([1 if d in places else next(sizes) for d in range(rank)])


@_of_one
def squeeze(x, axis=None):
    """x without its dimensions of size 1, or without those of the axes."""
    axes = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else axes_of(x, axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: dimension {a} has size {x.shape[a]}, must be 1")
    return x.reshape([n for d, n in enumerate(x.shape) if d not in axes] or [1])


@_of_one
def flip(x, axis=None):
    """x with the axes in reverse."""
    axes = axes_of(x, axis)
    return x[tuple(slice(None, None, -1 if d in axes else 1) for d in range(x.ndim))]


@_of_one
def swapaxes(x, a, b):
    """x with two dimensions in each other's place."""
    axes, a, b = list(range(x.ndim)), axes_of(x, a)[0], axes_of(x, b)[0]
    axes[a], axes[b] = b, a
    return x.transpose(axes)


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
    shifts, axes = [shift] if isinstance(shift, _Integral) else list(shift), axes_of(x, axis)
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
    y = opjit.broadcast_to(expand_dims(x, axis + 1), (*shape[:axis + 1], repeats, *shape[axis + 1:]))
    return y.reshape([*shape[:axis], shape[axis] * repeats, *shape[axis + 1:]])


@_of_one
def tile(x, repeats):
    """x repeated that often in each dimension; repeats may lack the first ones, or be a number for the last one."""
    repeats = (repeats,) if isinstance(repeats, _Integral) else tuple(repeats)
    for n in repeats:
        if n < 1:
            raise ValueError(f"tile: {n} times, must be at least 1")
    rank = max(x.ndim, len(repeats))
    return opjit.ops.tile(x.reshape([1] * (rank - x.ndim) + list(x.shape)),
                          repeats=[1] * (rank - len(repeats)) + list(repeats))


@_of_one
def diff(x, n=1, axis=-1):
    """The differences of neighbours along the axis, n times."""
    head = (slice(None),) * axes_of(x, axis)[0]
    for _ in range(n):
        after, before = x[(*head, slice(1, None))], x[(*head, slice(None, -1))]
        x = after ^ before if x._is_bool else after - before
    return x


@_of_one
def ediff1d(x, to_end=None, to_begin=None):
    """The differences of neighbours in row-major order, with these before and behind them."""
    x = ravel(x)
    parts = [ravel(_beside(x.graph, t, x.dtype)) for t in (to_begin, to_end) if t is not None]
    parts.insert(0 if to_begin is None else 1, diff(x))
    return opjit.concatenate(parts) if len(parts) > 1 else parts[0]


@_of_one
def matrix_transpose(x):
    """The last two dimensions in each other's place."""
    return swapaxes(x, -1, -2)


@_of_one
def rollaxis(x, axis, start=0):
    """x with the axis before the one that is number `start` now."""
    axis = axes_of(x, axis)[0]
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - 1 if start > axis else start)


@_of_one
def copy(x):
    """x, which never changes."""
    return x


@_of_one
def astype(x, dtype):
    """The elements in another data type."""
    return x.astype(dtype)


@_of_one
def resize(x, new_shape):
    """The elements in row-major order, again and again, or as many of them as the new shape has."""
    new_shape = (new_shape,) if isinstance(new_shape, _Integral) else tuple(new_shape)
    x, count = ravel(x), _math.prod(new_shape)
    if count < 1:
        raise ValueError(f"resize: {new_shape}, sizes must be at least 1")
    return tile(x, -(-count // x.shape[0]))[:count].reshape(list(new_shape))


# --- some elements ----------------------------------------------------------------------------------------------------
def _rows_at(name, where, size, inclusive=0):
    """The numbers, from 0 on, that a slice, a number or several of them name."""
    if isinstance(where, slice):
        return list(range(size))[where]
    if isinstance(where, Tensor):
        raise TypeError(f"{name}: a tensor given, and which elements it names is not known before the kernel runs")
    rows = [where] if isinstance(where, _Integral) else [int(n) for n in where]
    for n in rows:
        if not -size <= n < size + inclusive:
            raise IndexError(f"{name}: index {n}, must be {-size} to {size - 1 + inclusive}")
    return [int(n) % size if n < 0 else int(n) for n in rows]


@_of_one
def delete(x, obj, axis=None):
    """x without these of the axis, numbers that are known now; axis None: in row-major order."""
    x, axis = (ravel(x), 0) if axis is None else (x, axes_of(x, axis)[0])
    size = x.shape[axis]
    gone, head = set(_rows_at("delete", obj, size)), (slice(None),) * axis
    ends = [-1, *sorted(gone), size]
    parts = [x[(*head, slice(a + 1, b))] for a, b in _itertools.pairwise(ends) if b > a + 1]
    if not parts:
        raise ValueError(f"delete: all of {size} elements, must be fewer")
    return opjit.concatenate(parts, axis) if len(parts) > 1 else parts[0]


@_of_one
def insert(x, obj, values, axis=None):
    """x with values before these of the axis, numbers that are known now; axis None: in row-major order."""
    x, axis = (ravel(x), 0) if axis is None else (x, axes_of(x, axis)[0])
    size, head = x.shape[axis], (slice(None),) * axis
    rows = _rows_at("insert", obj, size, 1)
    values = _beside(x.graph, values, x.dtype)
    if isinstance(obj, _Integral):  # all values go there: their first dimension is the axis, as NumPy has it
        values = moveaxis(values.reshape([1] * (x.ndim - values.ndim) + list(values.shape)), 0, axis)
        rows = rows * values.shape[axis]
    shape = [*x.shape[:axis], len(rows), *x.shape[axis + 1:]]
    values = opjit.broadcast_to(values, shape)
    order, parts, begin = sorted(range(len(rows)), key=lambda n: rows[n]), [], 0
    for n in order:
        if rows[n] > begin:
            parts.append(x[(*head, slice(begin, rows[n]))])
            begin = rows[n]
        parts.append(values[(*head, slice(n, n + 1))])
    if begin < size:
        parts.append(x[(*head, slice(begin, None))])
    return opjit.concatenate(parts, axis)


@_of_one
def put(x, indices, values):
    """x with values, again and again, at these places in row-major order (NumPy writes into x)."""
    indices = ravel(tensor(x.graph, indices))
    values = resize(_beside(x.graph, values, x.dtype), indices.shape[0])
    return opjit.put_along_axis(ravel(x), indices, values, 0).reshape(list(x.shape))


@_of_one
def putmask(x, mask, values):
    """x with values, in row-major order again and again, where the mask is not 0 (NumPy writes into x)."""
    mask = tensor(x.graph, mask)
    return opjit.where(mask != 0, resize(_beside(x.graph, values, x.dtype), x.shape), x)


# --- around and inside ------------------------------------------------------------------------------------------------
_PADS = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "symmetric": "SYMMETRIC", "wrap": "WRAP"}


@_of_one
def pad(x, widths, mode="constant", constant_values=0):
    """x with elements around it.  widths: a number, (before, behind), or one of these for each dimension.  mode:
    "constant", "edge", "reflect", "symmetric" or "wrap"."""
    if mode not in _PADS:
        raise ValueError(f"pad: mode {mode!r}, must be one of {', '.join(_PADS)}")
    rows = [widths] if isinstance(widths, _Integral) else list(widths)
    if len(rows) == 2 and all(isinstance(n, _Integral) for n in rows):
        rows = [rows]
    rows = [(n, n) if isinstance(n, _Integral) else tuple(n) * (2 if len(n) == 1 else 1) for n in rows]
    rows = rows * x.ndim if len(rows) == 1 else rows
    if len(rows) != x.ndim or any(len(row) != 2 or min(row) < 0 for row in rows):
        raise ValueError(f"pad: widths {widths}, must be at least 0: one, (before, behind), or one for each of "
                         f"{x.ndim} dimensions")
    return opjit.ops.padding(x, padding_mode=_PADS[mode], padding_value=constant_values,
                             start_padding=[row[0] for row in rows], end_padding=[row[1] for row in rows])


@_of_one
def diagonal(x, offset=0, axis1=0, axis2=1):
    """The elements whose index on axis2 is that on axis1 plus the offset, as the last dimension."""
    first, second = axes_of(x, (axis1, axis2))
    x = moveaxis(x, (first, second), (-2, -1))
    rows, columns = x.shape[-2:]
    count = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    if count < 1:
        raise ValueError(f"diagonal: offset {offset}, must be within {rows} rows and {columns} columns")
    x = x[..., :count, offset:offset + count] if offset >= 0 else x[..., -offset:count - offset, :count]
    return x.reshape([*x.shape[:-2], -1])[..., ::count + 1]


@_of_one
def diag(x, k=0):
    """The matrix with x on the diagonal, or the diagonal of a matrix x."""
    if x.ndim > 1:
        return diagonal(x, k)
    size = x.shape[0] + abs(k)
    column = pad(x, (max(k, 0), max(-k, 0)))
    row = opjit.arange(size, dtype="int32").join(x.graph)
    return opjit.where(row[None, :] - row[:, None] == k, column, False if x._is_bool else 0)


@_of_one
def diagflat(x, k=0):
    """The matrix with the elements of x on the diagonal."""
    return diag(ravel(x), k)


@_of_one
def fliplr(x):
    """x with the second dimension in reverse."""
    return flip(x, 1)


@_of_one
def flipud(x):
    """x with the first dimension in reverse."""
    return flip(x, 0)


@_of_one
def rot90(x, k=1, axes=(0, 1)):
    """x turned k times by 90 degrees, from the first of the axes to the second."""
    first, second = axes_of(x, axes)
    if k % 4 > 1:
        x = flip(x, first if k % 4 == 3 else (first, second))
    elif k % 4 == 1:
        x = flip(x, second)
    return swapaxes(x, first, second) if k % 2 else x


# --- several together, one into several -------------------------------------------------------------------------------
@_of_one
def atleast_1d(x):
    """x, which has a dimension as all tensors."""
    return x


@_of_one
def atleast_2d(x):
    """x with a first dimension of size 1 if it has one alone."""
    return x[None] if x.ndim == 1 else x


@_of_one
def atleast_3d(x):
    """x with dimensions of size 1 around: (1, n, 1) of n, (m, n, 1) of (m, n)."""
    return x[None, :, None] if x.ndim == 1 else x[..., None] if x.ndim == 2 else x


def stack(tensors, axis=0):
    """Side by side in a new dimension, which is that of the result's axis."""
    return opjit.concatenate([expand_dims(x, axis) for x in together(tensors)], axis)


def vstack(tensors):
    """One below the other, along the first dimension; one of a dimension is a row."""
    return opjit.concatenate([atleast_2d(x) for x in together(tensors)], 0)


row_stack = vstack


def hstack(tensors):
    """Side by side, along the second dimension, or the only one."""
    tensors = together(tensors)
    return opjit.concatenate(tensors, 0 if tensors[0].ndim == 1 else 1)


def dstack(tensors):
    """One behind the other, along the third dimension."""
    return opjit.concatenate([atleast_3d(x) for x in together(tensors)], 2)


def column_stack(tensors):
    """Side by side, along the second dimension; one of a dimension is a column."""
    return opjit.concatenate([x[:, None] if x.ndim == 1 else x for x in together(tensors)], 1)


def append(x, values, axis=None):
    """values behind x along the axis; axis None: both in row-major order."""
    return opjit.concatenate((x, values), axis)


@_of_one
def unstack(x, axis=0):
    """The parts of size 1 along the axis, without it."""
    axis = axes_of(x, axis)[0]
    return tuple(x[(slice(None),) * axis + (n,)] for n in range(x.shape[axis]))


@_of_one
def array_split(x, parts, axis=0):
    """That many parts along the axis, the first ones being longer by one; or parts that begin at these indices."""
    axis = axes_of(x, axis)[0]
    size = x.shape[axis]
    if isinstance(parts, _Integral):
        if not 0 < parts <= size:
            raise ValueError(f"array_split: {parts} parts, must be 1 to {size}")
        parts = [n * (size // parts) + min(n, size % parts) for n in range(1, parts)]
    head = (slice(None),) * axis
    return tuple(x[(*head, slice(*pair))] for pair in _itertools.pairwise((0, *parts, None)))


@_of_one
def split(x, parts, axis=0):
    """That many equal parts along the axis, or parts that begin at these indices."""
    if not isinstance(parts, _Integral):
        return array_split(x, parts, axis)
    size = x.shape[axes_of(x, axis)[0]]
    if parts < 1 or size % parts:
        raise ValueError(f"split: {parts} parts, must divide {size}")
    return opjit.ops.split(x, axis=axes_of(x, axis)[0], outputs=int(parts))


@_of_one
def hsplit(x, parts):
    """opjit.split along the second dimension, or the only one."""
    return opjit.split(x, parts, 0 if x.ndim == 1 else 1)


@_of_one
def vsplit(x, parts):
    """opjit.split along the first dimension."""
    return opjit.split(x, parts, 0)


@_of_one
def dsplit(x, parts):
    """opjit.split along the third dimension."""
    return opjit.split(x, parts, 2)


def broadcast_shapes(*shapes):
    """The shape of what is computed of tensors of these shapes."""
    rank = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes)):
        size = max(sizes)
        if any(n not in (1, size) for n in sizes):
            raise ValueError(f"shapes {', '.join(map(str, shapes))}: sizes {sizes}, must be the same or 1")
        result.append(size)
    return tuple(result)


def broadcast_arrays(*tensors):
    """The tensors, each in the shape of all."""
    tensors = together(tensors)
    shape = broadcast_shapes(*(x.shape for x in tensors))
    return tuple(opjit.broadcast_to(x, shape) for x in tensors)


def meshgrid(*tensors, indexing="xy"):
    """Each of these one-dimensional tensors along a dimension of its own; "xy": the first two in each other's."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing {indexing!r}, must be "xy" or "ij"')
    tensors = [ravel(x) for x in together(tensors)]
    count = len(tensors)
    places = [1 - d if indexing == "xy" and count > 1 and d < 2 else d for d in range(count)]
    return broadcast_arrays(*(x.reshape([-1 if d == place else 1 for d in range(count)])
                              for x, place in zip(tensors, places)))


# --- of shapes --------------------------------------------------------------------------------------------------------
def shape(x):
    """The sizes."""
    return x.shape


def ndim(x):
    """How many dimensions there are."""
    return x.ndim


def size(x, axis=None):
    """How many elements there are, or how many along the axes."""
    return _math.prod(x.shape[d] for d in axes_of(x, axis))
