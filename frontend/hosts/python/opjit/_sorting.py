# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that sort, find, count and average, made of the package's own."""
import math as _math
from numbers import Real as _Real

import opjit

from ._numpy import _of_one, broadcast_shapes, ravel, together
from ._tensor import FLOATS, as_floats, axes_of, graph_of, tensor

__all__ = ["argsort", "average", "count_nonzero", "cumprod", "digitize", "median", "nanmax", "nanmean", "nanmin",
           "nanprod", "nansum", "percentile", "ptp", "put_along_axis", "quantile", "searchsorted", "sort",
           "take_along_axis"]


def _sorted(x, axis):
    """The elements in order, and their indices (uint32)."""
    x, axis = (ravel(x), 0) if axis is None else (x, axes_of(x, axis)[0])
    return opjit.ops.top_k1(x, axis=axis, k=x.shape[axis], axis_direction="INCREASING", outputs=2)


@_of_one
def sort(x, axis=-1):
    """The elements along the axis in order, NaN last; axis None: all of them."""
    return x._moved(_sorted(x, axis)[0]._handle)


@_of_one
def argsort(x, axis=-1):
    """The indices (uint32) of the elements along the axis in order; of equal ones the first is first."""
    return _sorted(x, axis)[1]


@_of_one
def take_along_axis(x, indices, axis=-1):
    """x at the indices along the axis, which are those of each place in the other dimensions."""
    x, indices, axis = _along(x, indices, axis)
    return opjit.ops.gather_elements(x, indices, axis=axis)


@_of_one
def put_along_axis(x, indices, values, axis):
    """x with values at the indices along the axis (NumPy writes into x): of equal indices the last one is there."""
    x, indices, axis = _along(x, indices, axis)
    values = opjit.broadcast_to(tensor(x.graph, values, x.dtype), indices.shape)
    return opjit.ops.scatter_elements(x, indices, values, axis=axis)


def _along(x, indices, axis):
    """x and indices in the same shape but along the axis; the axis."""
    indices = tensor(x.graph, indices)
    x, axis = (ravel(x), 0) if axis is None else (x, axes_of(x, axis)[0])
    if indices.ndim != x.ndim:
        raise ValueError(f"indices: {indices.ndim} dimensions, must be {x.ndim} as those of x")
    shape = broadcast_shapes(*([n for d, n in enumerate(t.shape) if d != axis] for t in (x, indices)))
    x, indices = (opjit.broadcast_to(t, (*shape[:axis], t.shape[axis], *shape[axis:])) for t in (x, indices))
    return x, indices, axis


def searchsorted(a, values, side="left"):
    """How many elements of a, which are in order, are before each value: less ("left"), or not greater ("right")."""
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side {side!r}, must be "left" or "right"')
    a, values = together((a, values))
    if a.ndim != 1:
        raise ValueError(f"searchsorted: a has {a.ndim} dimensions, must be 1")
    size = a.shape[0]
    count = opjit.full(values.shape, 0, "int32" if size < 2**30 else "int64").join(a.graph)
    for bit in reversed(range(size.bit_length())):
        probe = count + (1 << bit)
        found = opjit.take(a, probe - 1)
        before = found < values if side == "left" else found <= values
        if a.dtype in FLOATS:  # NaN is last
            before |= (values != values) & (1 if side == "right" else found == found)
        count = opjit.where((probe <= size) & before, probe, count)
    return count.astype("int64")


def digitize(x, bins, right=False):
    """The number of the bin of each element: how many limits, in increasing order, are not above it."""
    return searchsorted(bins, x, "left" if right else "right")


# --- along axes -------------------------------------------------------------------------------------------------------
@_of_one
def count_nonzero(x, axis=None, keepdims=False):
    """How many elements along axes are not 0 (int64)."""
    return opjit.sum(x != 0, axis, keepdims)


@_of_one
def ptp(x, axis=None, keepdims=False):
    """The greatest element less the least one along axes."""
    return opjit.max(x, axis, keepdims) - opjit.min(x, axis, keepdims)


@_of_one
def cumprod(x, axis=None):
    """Running products along the axis; axis None: in row-major order."""
    return opjit._running("CUMULATIVE_PRODUCT", "HasExclusiveProduct", x, axis)


@_of_one
def average(x, axis=None, weights=None, keepdims=False):
    """The mean along axes, of elements that count as much as their weights, whose shape is that of x or of the axis."""
    if weights is None:
        return opjit.mean(x, axis, keepdims)
    x = as_floats(x, "float64")
    weights = tensor(x.graph, weights, x.dtype)
    weights = weights if weights.dtype in FLOATS else weights.astype(x.dtype)
    if weights.ndim != x.ndim:
        at = axes_of(x, axis)
        if len(at) != 1 or weights.shape != (x.shape[at[0]],):
            raise ValueError(f"average: weights {list(weights.shape)}, must be {list(x.shape)} or of one axis")
        weights = weights.reshape([-1 if d == at[0] else 1 for d in range(x.ndim)])
    weights = opjit.broadcast_to(weights, x.shape)
    return opjit.sum(x * weights, axis, keepdims) / opjit.sum(weights, axis, keepdims)


def _without_nan(function, name, other, text):
    """The function of what is not NaN; other: what NaN counts as."""
    @_of_one
    def call(x, axis=None, keepdims=False):
        if x.dtype not in FLOATS:
            return function()(x, axis, keepdims)
        nan = opjit.isnan(x)
        y = function()(opjit.where(nan, other, x), axis, keepdims)
        return y if _math.isfinite(other) else opjit.where(opjit.all(nan, axis, keepdims), opjit.nan, y)
    call.__name__, call.__doc__ = name, text + " of what is not NaN along axes."
    return call


nansum = _without_nan(lambda: opjit.sum, "nansum", 0.0, "The sum")
nanprod = _without_nan(lambda: opjit.prod, "nanprod", 1.0, "The product")
nanmax = _without_nan(lambda: opjit.max, "nanmax", -_math.inf, "The greatest element")
nanmin = _without_nan(lambda: opjit.min, "nanmin", _math.inf, "The least element")


@_of_one
def nanmean(x, axis=None, keepdims=False):
    """The mean of what is not NaN along axes."""
    count = opjit.sum(x == x, axis, keepdims)
    x = as_floats(x, "float64")
    return nansum(x, axis, keepdims) / count.astype(x.dtype)


@_of_one
def quantile(x, q, axis=None, keepdims=False):
    """The element (or what is between two) below which a part q of the elements along axes is; q: a number from 0 to 1,
    or a list of them, whose results (float64) are side by side in a first dimension."""
    parts = [q] if isinstance(q, _Real) else [float(part) for part in q]
    for part in parts:
        if not 0 <= part <= 1:
            raise ValueError(f"quantile: {part}, must be 0 to 1")
    x, axes = as_floats(x, "float64"), axes_of(x, axis)
    rest = [d for d in range(x.ndim) if d not in axes]
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)] if keepdims else [x.shape[d] for d in rest] or [1]
    x = x.transpose([*rest, *axes]).reshape([*(x.shape[d] for d in rest), -1])
    at = _ordered(x, [place for part in parts for place in _between(part, x.shape[-1])[:2]])
    if not isinstance(q, _Real):
        at = {place: y.astype("float64") for place, y in at.items()}
    is_nan = opjit.any(x != x, -1)
    results = [opjit.where(is_nan, opjit.nan, _quantile(at, part, x.shape[-1])).reshape(shape) for part in parts]
    return results[0] if isinstance(q, _Real) else opjit.stack(results)


def _between(q, count):
    """The two places of ordered elements between which the quantile is, and how far it is from the first one."""
    place = q * (count - 1)
    low = _math.floor(place)
    return low, min(low + 1, count - 1), place - low


def _ordered(x, places):
    """By place, the elements that are there when those of the last dimension are in order: only the rows' shorter end
    with all of them is sorted."""
    count = x.shape[-1]
    below, above = max(places) + 1, count - min(places)
    y, _ = opjit.ops.top_k1(x, axis=x.ndim - 1, k=min(below, above), outputs=2,
                            axis_direction="INCREASING" if below <= above else "DECREASING")
    return {n: y[..., n if below <= above else count - 1 - n] for n in places}


def _quantile(at, q, count):
    """Between the elements of two places."""
    low, high, part = _between(q, count)
    a, b = at[low], at[high]
    return a if part == 0 else a + (b - a) * part if part < 0.5 else b - (b - a) * (1 - part)


def percentile(x, q, axis=None, keepdims=False):
    """quantile of q percent."""
    return quantile(x, q / 100 if isinstance(q, _Real) else [n / 100 for n in q], axis, keepdims)


def median(x, axis=None, keepdims=False):
    """The element in the middle of those along axes, or the mean of the two that are there."""
    return quantile(x, 0.5, axis, keepdims)
