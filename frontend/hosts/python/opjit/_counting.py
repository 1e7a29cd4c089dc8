# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that count elements, find places and make sets, made of the package's own.  Of what has as many
elements as there are such and such, `size` says how many are taken: the first ones, and fill_value behind the last."""
from numbers import Integral as _Integral

import opjit

from ._numpy import _of_one, append, ravel, together
from ._sorting import _sorted
from ._tensor import FLOATS, as_floats, axes_of, graph_of, tensor

__all__ = ["argpartition", "argwhere", "bincount", "compress", "extract", "flatnonzero", "histogram", "histogram2d",
           "histogram_bin_edges", "intersect1d", "isin", "lexsort", "nonzero", "partition", "ravel_multi_index",
           "setdiff1d", "setxor1d", "union1d", "unique", "unravel_index"]


# --- histograms -------------------------------------------------------------------------------------------------------
def bincount(x, weights=None, minlength=0, *, length=None):
    """How often each number from 0 on is there (int64), or the sum of the weights (float64) there.  length: how many
    numbers, of which NumPy has one more than the largest element; what is beyond or negative is not counted."""
    graph = graph_of((x, weights))
    x = ravel(tensor(graph, x))
    if x.dtype in FLOATS:
        raise TypeError(f"bincount: {x.dtype}, must be whole numbers")
    if length is None:
        raise ValueError("bincount: how many bins there are is not known before the kernel runs: length=n")
    if length < max(1, minlength):
        raise ValueError(f"bincount: length {length}, must be at least {max(1, minlength)}")
    weights = opjit.ones(x.shape, "int64").join(graph) if weights is None else ravel(
        tensor(graph, weights, "float64")).astype("float64")
    if weights.shape != x.shape:
        raise ValueError(f"bincount: {weights.shape[0]} weights, must be {x.shape[0]} as elements")
    return _summed_at(x, (x >= 0) & (x < length) if x.dtype[0] == "i" else x < length, weights, length)


def _summed_at(places, valid, values, length):
    """The sums of the values at each place, of those that are valid."""
    places = opjit.where(valid, places.astype("int64"), length)
    sums = opjit.zeros(length + 1, values.dtype).join(places.graph)
    return opjit.ops.scatter_reduce(sums, places, values, axis=0, function="SUM")[:length]


def _bin_edges(name, x, bins, span):
    """The edges of the bins."""
    if not isinstance(bins, _Integral):
        edges = tensor(x.graph, bins, x.dtype)
        if edges.ndim != 1 or edges.shape[0] < 2:
            raise ValueError(f"{name}: edges {list(edges.shape)}, must be one dimension of 2 or more")
        return edges
    if bins < 1:
        raise ValueError(f"{name}: {bins} bins, must be at least 1")
    if span is not None:
        first, last = span
        if not first <= last:
            raise ValueError(f"{name}: range {first} to {last}, must not decrease")
        if first == last:
            first, last = first - 0.5, last + 0.5
        y = opjit.linspace(first, last, bins + 1, dtype="float64").join(x.graph)
        return y.astype(x.dtype) if x.dtype in FLOATS else y
    first, last = (as_floats(f(x), "float64") for f in (opjit.min, opjit.max))
    one = first == last
    first, last = opjit.where(one, first - 0.5, first), opjit.where(one, last + 0.5, last)
    place = opjit.arange(bins + 1, dtype=first.dtype).join(x.graph)
    return opjit.where(place == bins, last, place * ((last - first) / bins) + first)


def histogram_bin_edges(x, bins=10, range=None):
    """The edges of bins: of so many equal ones from the least element to the greatest one or over the range, or these
    edges, which increase."""
    x = ravel(tensor(graph_of((x,)), x))
    return _bin_edges("histogram_bin_edges", x, bins, range)


def _bins_of(x, edges, are_equal):
    """The bin of each element, and whether it has one: the last one has its end, too."""
    dtype = edges.dtype if edges.dtype in FLOATS else x.dtype
    x, edges = x.astype(dtype), edges.astype(dtype)
    last = edges.shape[0] - 2
    if are_equal and last >= 24:  # by a quotient, which rounding may put beside its bin
        place = (x - edges[0]) * ((last + 1) / (edges[-1] - edges[0]))
        place = opjit.minimum(opjit.maximum(place, 0.0), float(last)).astype("int32")
        place = place - (x < opjit.take(edges, place)).astype("int32")
        place = place + ((x >= opjit.take(edges, place + 1)) & (place != last)).astype("int32")
    else:
        place = opjit.searchsorted(edges, x, "right") - 1
        place = opjit.where(x == edges[-1], last, place)
    return place, (x >= edges[0]) & (x <= edges[-1])


def histogram(x, bins=10, range=None, density=None, weights=None):
    """How many elements are in each bin (int64), or their weights' sum, and the bins' edges (histogram_bin_edges).
    density: as float64, so that the integral is 1."""
    graph = graph_of((x, weights))
    x = ravel(tensor(graph, x))
    edges = _bin_edges("histogram", x, bins, range)
    counts = _counted(x.shape, weights, [(x, edges, isinstance(bins, _Integral))])
    if not density:
        return counts, edges
    counts = counts.astype("float64")
    return counts / opjit.diff(edges).astype("float64") / opjit.sum(counts), edges


def _counted(shape, weights, pairs):
    """The number of elements, or the weights' sum, in the bins of these edges, each with whether they are equal."""
    graph, place, valid, length = pairs[0][0].graph, None, None, 1
    for x, edges, are_equal in pairs:
        at, inside = _bins_of(x, edges, are_equal)
        count = edges.shape[0] - 1
        place, valid = (at, inside) if place is None else (place * count + at, valid & inside)
        length *= count
    if weights is None:
        return _summed_at(place, valid, opjit.ones(shape, "int64").join(graph), length)
    weights = ravel(tensor(graph, weights))
    if weights.shape != shape:
        raise ValueError(f"histogram: {weights.shape[0]} weights, must be {shape[0]} as elements")
    return _summed_at(place, valid, weights, length)


def histogram2d(x, y, bins=10, range=None, density=None, weights=None):
    """How many points (x, y) are in each bin (float64), whose rows are bins of x; the edges of x's bins and of y's.
    bins: as histogram has them, or one of these for x and one for y."""
    graph = graph_of((x, y, weights))
    pair = [ravel(tensor(graph, t)) for t in (x, y)]
    pair = pair if pair[0].dtype == pair[1].dtype else [t.astype("float64") for t in pair]
    if pair[0].shape != pair[1].shape:
        raise ValueError(f"histogram2d: {pair[0].shape[0]} x and {pair[1].shape[0]} y, must be as many")
    bins = list(bins) if isinstance(bins, (tuple, list)) and len(bins) == 2 else [bins, bins]
    edges = [_bin_edges("histogram2d", t, b, r) for t, b, r in zip(pair, bins, range or (None, None))]
    counts = _counted(pair[0].shape, weights, [(t, e, isinstance(b, _Integral)) for t, e, b in zip(
        pair, edges, bins)]).astype("float64")
    counts = counts.reshape([e.shape[0] - 1 for e in edges])
    if density:
        wide, high = (opjit.diff(e).astype("float64") for e in edges)
        counts = counts / wide[:, None] / high / opjit.sum(counts)
    return counts, *edges


# --- places -----------------------------------------------------------------------------------------------------------
def _known(name, size):
    """Refuses a number of elements that depends on their values."""
    if size is None:
        raise ValueError(f"{name}: how many there are is not known before the kernel runs: size=n takes the first n")
    if size < 1:
        raise ValueError(f"{name}: size {size}, must be at least 1")


def _first(chosen, values, size, fill):
    """The first `size` of the values, one dimension, that are chosen, and `fill` behind them."""
    rank = opjit.cumsum(chosen).astype("int64") - 1
    places = opjit.where(chosen & (rank < size), rank, size)
    start = opjit.full(size + 1, fill, values.dtype).join(values.graph)
    return opjit.ops.scatter_elements(start, places, values, axis=0)[:size]


@_of_one
def flatnonzero(x, *, size=None, fill_value=0):
    """The places (int64) of elements that are not 0, in row-major order."""
    _known("flatnonzero", size)
    x = ravel(x)
    return _first(x != 0, opjit.arange(x.shape[0], dtype="int64").join(x.graph), size, fill_value)


@_of_one
def nonzero(x, *, size=None, fill_value=0):
    """The indices (int64) of elements that are not 0, a tensor for each dimension."""
    _known("nonzero", size)
    found, count = flatnonzero(x, size=size), opjit.count_nonzero(x)
    there = opjit.arange(size, dtype="int64").join(x.graph) < count
    return tuple(opjit.where(there, at, fill_value) for at in unravel_index(found, x.shape))


@_of_one
def argwhere(x, *, size=None, fill_value=0):
    """The indices (int64) of elements that are not 0, those of an element side by side."""
    _known("argwhere", size)
    return opjit.stack(nonzero(x, size=size, fill_value=fill_value), 1)


def compress(condition, x, axis=None, *, size=None, fill_value=0):
    """The elements, or rows along the axis, whose condition is not 0."""
    _known("compress", size)
    graph = graph_of((condition, x))
    condition, x = ravel(tensor(graph, condition)) != 0, tensor(graph, x)
    x, axis = (ravel(x), 0) if axis is None else (x, axes_of(x, axis)[0])
    if condition.shape[0] > x.shape[axis]:
        raise ValueError(f"compress: {condition.shape[0]} conditions, must be at most {x.shape[axis]}")
    places = _first(condition, opjit.arange(condition.shape[0], dtype="int64").join(graph), size, 0)
    there = opjit.arange(size, dtype="int64").join(graph) < opjit.count_nonzero(condition)
    there = there.reshape([-1] + [1] * (x.ndim - 1 - axis))
    fill_value = bool(fill_value) if x._is_bool else fill_value
    return opjit.where(there, opjit.take(x, places, axis), tensor(graph, fill_value, x.dtype))


def extract(condition, x, *, size=None, fill_value=0):
    """The elements of x, in row-major order, where the condition is not 0."""
    _known("extract", size)
    return compress(condition, x, size=size, fill_value=fill_value)


def unravel_index(indices, shape):
    """The indices, a tensor for each dimension, of numbers of elements in row-major order."""
    shape = (shape,) if isinstance(shape, _Integral) else tuple(shape)
    rest, result = tensor(graph_of((indices,)), indices), []
    for n in reversed(shape[1:]):
        result.append(rest % n)
        rest = rest // n
    return (rest, *reversed(result))


def ravel_multi_index(multi_index, dims, mode="raise"):
    """The numbers of elements in row-major order, of indices for each dimension.  mode: those beyond it are as they are
    ("raise"), begin again ("wrap"), or are the last ones ("clip")."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'ravel_multi_index: mode {mode!r}, must be "raise", "wrap" or "clip"')
    rows = together(multi_index)
    if len(rows) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(rows)} indices, must be {len(dims)} as dimensions")
    y = None
    for x, n in zip(rows, dims):
        x = x.astype("int64")
        x = x % n if mode == "wrap" else opjit.clip(x, 0, n - 1) if mode == "clip" else x
        y = x if y is None else y * n + x
    return y


# --- in order ---------------------------------------------------------------------------------------------------------
@_of_one
def partition(x, kth, axis=-1):
    """The elements along the axis in an order in which the kth one (or each of several) is in its place: in order."""
    _places("partition", x, kth, axis)
    return opjit.sort(x, axis)


@_of_one
def argpartition(x, kth, axis=-1):
    """The indices (uint32) of the elements in partition's order."""
    _places("argpartition", x, kth, axis)
    return opjit.argsort(x, axis)


def _places(name, x, kth, axis):
    """Refuses what is no place."""
    size = x.size if axis is None else x.shape[axes_of(x, axis)[0]]
    for k in [kth] if isinstance(kth, _Integral) else kth:
        if not -size <= k < size:
            raise ValueError(f"{name}: kth {k}, must be {-size} to {size - 1}")


def lexsort(keys, axis=-1):
    """The indices (uint32) that bring the last key in order, equal elements of it by the key before it, and so on."""
    keys = list(together(keys)) if isinstance(keys, (tuple, list)) else [keys[n] for n in range(keys.shape[0])]
    order = opjit.argsort(keys[0], axis)
    for key in keys[1:]:
        more = opjit.argsort(opjit.take_along_axis(key, order, axis), axis)
        order = opjit.take_along_axis(order, more, axis)
    return order


# --- sets -------------------------------------------------------------------------------------------------------------
def isin(x, values, invert=False):
    """True where x is one of the values."""
    x, values = together((x, values))
    values = opjit.sort(ravel(values))
    found = opjit.take(values, opjit.clip(opjit.searchsorted(values, x), 0, values.shape[0] - 1)) == x
    return ~found if invert else found


@_of_one
def unique(x, return_index=False, return_inverse=False, return_counts=False, *, equal_nan=True, size=None,
           fill_value=0):
    """The different elements in order, and with return_...: the place of the first one of each, the number of each
    element's own, and how many there are of each (int64), which is 0 of what is filled."""
    _known("unique", size)
    shape = x.shape
    y, order = _sorted(x, None)
    other = (y[1:] != y[:-1]).astype("bool")
    if equal_nan and x.dtype in FLOATS:
        other = other & ~((y[1:] != y[1:]) & (y[:-1] != y[:-1]))
    new = opjit.ones(y.shape, "bool").join(x.graph)
    new = append(new[:1], other) if y.shape[0] > 1 else new
    rank = opjit.cumsum(new).astype("int64") - 1
    order = order.astype("int64")
    results = [_first(new, y, size, fill_value)]
    if return_index:
        results.append(_first(new, order, size, 0))
    if return_inverse:
        zeros = opjit.zeros(y.shape, "int64").join(x.graph)
        results.append(opjit.ops.scatter_elements(zeros, order, rank, axis=0).reshape(shape))
    if return_counts:
        results.append(_summed_at(rank, rank < size, opjit.ones(y.shape, "int64").join(x.graph), size))
    return results[0] if len(results) == 1 else tuple(results)


def union1d(a, b, *, size=None, fill_value=0):
    """The different elements of both, in order."""
    _known("union1d", size)
    return unique(append(a, b), size=size, fill_value=fill_value)


def _set(name, chosen, text):
    """The function: of the different elements of both the chosen ones, in order; chosen(is in a, is in b)."""
    def call(a, b, *, size=None, fill_value=0):
        _known(name, size)
        a, b = map(ravel, together((a, b)))
        every = opjit.sort(append(a, b))
        new = append(opjit.ones(1, "bool").join(a.graph), every[1:] != every[:-1])
        return _first(new & chosen(isin(every, a), isin(every, b)), every, size, fill_value)
    call.__name__, call.__doc__ = name, text
    return call


intersect1d = _set("intersect1d", lambda a, b: a & b, "The different elements that both have, in order.")
setdiff1d = _set("setdiff1d", lambda a, b: a & ~b, "The different elements of a that b has not, in order.")
setxor1d = _set("setxor1d", lambda a, b: a ^ b, "The different elements that one of both has, in order.")
