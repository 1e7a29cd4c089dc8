# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that sort, find, count and average, made of the package's own."""
import functools as _functools
import math as _math
from numbers import Real as _Real

import opjit

from ._numpy import _of_one, broadcast_shapes, ravel, together
from ._tensor import FLOATS, as_floats, axes_of, graph_of, tensor

__all__ = ["argsort", "array_equal", "array_equiv", "average", "count_nonzero", "cumprod", "cumulative_prod",
           "cumulative_sum", "digitize", "median", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax",
           "nanmean", "nanmedian", "nanmin", "nanpercentile", "nanprod", "nanquantile", "nanstd", "nansum", "nanvar",
           "percentile", "ptp", "put_along_axis", "quantile", "searchsorted", "sort", "take_along_axis"]

_FEW = 32  # of so many elements each is compared, which takes less than a search


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


def searchsorted(a, values, side="left", sorter=None):
    """How many elements of a, which are in order, are before each value: less ("left"), or not greater ("right").
    sorter: the indices that bring a in order."""
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side {side!r}, must be "left" or "right"')
    a, values = together((a, values))
    if a.ndim != 1:
        raise ValueError(f"searchsorted: a has {a.ndim} dimensions, must be 1")
    a = a if sorter is None else opjit.take(a, sorter)
    size = a.shape[0]

    def before(found):
        return found < values if side == "left" else found <= values
    if size <= _FEW:
        count = _functools.reduce(lambda x, y: x + y, [before(a[n]).astype("int32") for n in range(size)])
    else:
        count = opjit.full(values.shape, 0, "int32" if size < 2**30 else "int64").join(a.graph)
        for bit in reversed(range(size.bit_length())):
            probe = count + (1 << bit)
            count = opjit.where((probe <= size) & before(opjit.take(a, probe - 1)), probe, count)
    count = count.astype("int64")
    if a.dtype not in FLOATS:
        return count
    return opjit.where(values == values, count, size if side == "right" else count_nonzero(a == a))  # NaN is last


def digitize(x, bins, right=False):
    """The number of the bin of each element: how many limits, in increasing order, are not above it."""
    return searchsorted(bins, x, "left" if right else "right")


# --- along axes -------------------------------------------------------------------------------------------------------
@_of_one
def count_nonzero(x, axis=None, keepdims=False):
    """How many elements along axes are not 0 (int64)."""
    return opjit.sum(x != 0, axis, keepdims)


def array_equal(a, b, equal_nan=False):
    """True if both have one shape and the same elements."""
    a, b = together((a, b))
    if a.shape != b.shape:
        return opjit.zeros(1, "bool").join(a.graph)
    same = a == b
    return opjit.all(same | (a != a) & (b != b) if equal_nan else same)


def array_equiv(a, b):
    """True if both have the same elements where they are broadcast to one shape."""
    a, b = together((a, b))
    try:
        broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return opjit.zeros(1, "bool").join(a.graph)
    return opjit.all(a == b)


@_of_one
def ptp(x, axis=None, keepdims=False):
    """The greatest element less the least one along axes."""
    return opjit.max(x, axis, keepdims) - opjit.min(x, axis, keepdims)


@_of_one
def cumprod(x, axis=None):
    """Running products along the axis; axis None: in row-major order."""
    return opjit._running("CUMULATIVE_PRODUCT", "HasExclusiveProduct", x, axis)


def _with_first(name, value):
    """The function of NumPy's whose running sums or products may begin with the neutral element."""
    @_of_one
    def call(x, *, axis=None, include_initial=False):
        if axis is None and x.ndim > 1:
            raise ValueError(f"{name}: axis None of {x.ndim} dimensions, must be one of them")
        axis = axes_of(x, 0 if axis is None else axis)[0]
        y = getattr(opjit, "cumsum" if value == 0 else "cumprod")(x, axis)
        if not include_initial:
            return y
        first = [1 if d == axis else n for d, n in enumerate(x.shape)]
        return opjit.concatenate([opjit.full(first, value, y.dtype).join(y.graph), y], axis)
    call.__name__, call.__doc__ = name, (f"Running {'sums' if value == 0 else 'products'} along the axis; "
                                         f"include_initial: behind {value}.")
    return call


cumulative_sum, cumulative_prod = _with_first("cumulative_sum", 0), _with_first("cumulative_prod", 1)


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


def _places_without_nan(function, name, other):
    @_of_one
    def call(x, axis=None, keepdims=False):
        return function()(opjit.where(x != x, other, x) if x.dtype in FLOATS else x, axis, keepdims)
    call.__name__, call.__doc__ = name, (f"The index (uint32) of opjit.{name[3:]} among what is not NaN; 0 where all "
                                         "is.")
    return call


nanargmax = _places_without_nan(lambda: opjit.argmax, "nanargmax", -_math.inf)
nanargmin = _places_without_nan(lambda: opjit.argmin, "nanargmin", _math.inf)


@_of_one
def nancumsum(x, axis=None):
    """Running sums along the axis, NaN being 0; axis None: in row-major order."""
    return opjit.cumsum(opjit.where(x != x, 0.0, x) if x.dtype in FLOATS else x, axis)


@_of_one
def nancumprod(x, axis=None):
    """Running products along the axis, NaN being 1; axis None: in row-major order."""
    return cumprod(opjit.where(x != x, 1.0, x) if x.dtype in FLOATS else x, axis)


@_of_one
def nanvar(x, axis=None, keepdims=False, ddof=0):
    """The variance of what is not NaN along axes; NaN where there are ddof elements or fewer."""
    x = as_floats(x, "float64")
    count = opjit.sum(x == x, axis, keepdims).astype(x.dtype) - ddof
    centred = x - nanmean(x, axis, True)
    return opjit.where(count > 0, nansum(centred * centred, axis, keepdims) / count, opjit.nan)


def nanstd(x, axis=None, keepdims=False, ddof=0):
    """The standard deviation of what is not NaN along axes."""
    return opjit.sqrt(nanvar(x, axis, keepdims, ddof))


@_of_one
def quantile(x, q, axis=None, keepdims=False):
    """The element (or what is between two) below which a part q of the elements along axes is; q: a number from 0 to 1,
    or a list of them, whose results (float64) are side by side in a first dimension."""
    parts = [q] if isinstance(q, _Real) else [float(part) for part in q]
    for part in parts:
        if not 0 <= part <= 1:
            raise ValueError(f"quantile: {part}, must be 0 to 1")
    x, shape = _rows(as_floats(x, "float64"), axis, keepdims)
    at = _ordered(x, [place for part in parts for place in _between(part, x.shape[-1])[:2]])
    if not isinstance(q, _Real):
        at = {place: y.astype("float64") for place, y in at.items()}
    is_nan = opjit.any(x != x, -1)
    results = [opjit.where(is_nan, opjit.nan, _quantile(at, part, x.shape[-1])).reshape(shape) for part in parts]
    return _of_parts(results, q, x.ndim == 1 and not keepdims)


@_of_one
def nanquantile(x, q, axis=None, keepdims=False):
    """quantile of what is not NaN."""
    if x.dtype not in FLOATS:
        return quantile(x, q, axis, keepdims)
    parts = [q] if isinstance(q, _Real) else [float(part) for part in q]
    for part in parts:
        if not 0 <= part <= 1:
            raise ValueError(f"nanquantile: {part}, must be 0 to 1")
    y, shape = _rows(x, axis, keepdims)
    y = sort(y)
    last = opjit.maximum(opjit.count_nonzero(y == y, -1, True) - 1, 0)
    results = []
    for part in parts:
        place = last.astype("float64") * part
        low = opjit.floor(place)
        a, b = (take_along_axis(y, opjit.minimum(low.astype("int64") + n, last), -1) for n in (0, 1))
        if not isinstance(q, _Real):
            a, b = a.astype("float64"), b.astype("float64")
        part = (place - low).astype(a.dtype)
        between = opjit.where(part < 0.5, a + (b - a) * part, b - (b - a) * (1 - part))
        results.append(opjit.where(part == 0, a, between).reshape(shape))
    return _of_parts(results, q, y.ndim == 1 and not keepdims)


def nanpercentile(x, q, axis=None, keepdims=False):
    """nanquantile of q percent."""
    return nanquantile(x, q / 100 if isinstance(q, _Real) else [n / 100 for n in q], axis, keepdims)


def nanmedian(x, axis=None, keepdims=False):
    """The median of what is not NaN."""
    return nanquantile(x, 0.5, axis, keepdims)


def _rows(x, axis, keepdims):
    """x with the axes as one last dimension; the shape of what has one element of each row."""
    axes = axes_of(x, axis)
    rest = [d for d in range(x.ndim) if d not in axes]
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)] if keepdims else [x.shape[d] for d in rest] or [1]
    return x.transpose([*rest, *axes]).reshape([*(x.shape[d] for d in rest), -1]), shape


def _of_parts(results, q, are_numbers):
    """The only result, or those of several parts side by side in a first dimension."""
    return results[0] if isinstance(q, _Real) else opjit.concatenate(results) if are_numbers else opjit.stack(results)


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
