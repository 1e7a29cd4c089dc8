# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that generate elements, or cut triangles, made of the package's own."""
import math as _math

import opjit

from ._numpy import _of_one
from ._tensor import FLOATS, Deferred, _node

__all__ = ["bartlett", "blackman", "full_like", "geomspace", "hamming", "hanning", "identity", "linspace", "logspace",
           "ones_like", "tril",
           "triu", "zeros_like"]


def identity(n, dtype=None):
    """1 on the diagonal of n by n, else 0."""
    return opjit.eye(n, dtype=dtype)


@_of_one
def full_like(x, value, dtype=None, shape=None):
    """value in the shape and of the type of x."""
    dtype = dtype or ("bool" if x._is_bool else x.dtype)
    return opjit.full(x.shape if shape is None else shape, value, dtype).join(x.graph)


def zeros_like(x, dtype=None, shape=None):
    """0 in the shape and of the type of x."""
    return full_like(x, 0, dtype, shape)


def ones_like(x, dtype=None, shape=None):
    """1 in the shape and of the type of x."""
    return full_like(x, 1, dtype, shape)


def linspace(start, stop, num=50, endpoint=True, dtype=None):
    """num numbers at equal distances from start to stop, which is the last one, or behind it without endpoint."""
    parts = num - 1 if endpoint else num
    if num < 1:
        raise ValueError(f"linspace: {num} numbers, must be at least 1")
    if not all(_math.isfinite(x) for x in (start, stop)):
        raise ValueError(f"linspace: {start} to {stop}, must be finite")

    def make(graph, dtype):
        place = opjit.arange(num, dtype="float64").join(graph)
        y = place * ((stop - start) / max(parts, 1)) + start
        if endpoint and num > 1:
            y = opjit.where(place == num - 1, float(stop), y)
        return (y if dtype in ("float16", "float32", "float64") else opjit.floor(y)).astype(dtype)
    return Deferred(make, (num,), opjit._dtype_name(dtype))


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None):
    """base to the powers of linspace."""
    return _of_places(lambda y: base ** y, start, stop, num, endpoint, dtype)


def geomspace(start, stop, num=50, endpoint=True, dtype=None):
    """num numbers from start to stop of equal quotients."""
    if start == 0 or stop == 0 or (start < 0) != (stop < 0):
        raise ValueError(f"geomspace: {start} to {stop}, must have one sign and not be 0")
    sign, low, high = (-1 if start < 0 else 1), abs(start), abs(stop)
    ends = {0: float(low)} | ({num - 1: float(high)} if endpoint and num > 1 else {})

    def exact(y):
        place, y = opjit.arange(num, dtype="float64").join(y.graph), 10.0 ** y
        for n, value in ends.items():
            y = opjit.where(place == n, value, y)
        return y * sign
    return _of_places(exact, _math.log10(low), _math.log10(high), num, endpoint, dtype)


def _of_places(function, start, stop, num, endpoint, dtype):
    """The function of linspace, in the type."""
    places = linspace(start, stop, num, endpoint, "float64")

    def make(graph, dtype):
        y = function(places.join(graph))
        return y.astype(dtype) if dtype in FLOATS else opjit.trunc(y).astype(dtype)
    return Deferred(make, (num,), opjit._dtype_name(dtype))


# --- triangles --------------------------------------------------------------------------------------------------------
def _matrix(x):
    """x, of one dimension as all rows of a matrix."""
    return opjit.broadcast_to(x, x.shape * 2) if x.ndim == 1 else x


def tril(x, k=0):
    """x where column - row is at most k, else 0."""
    return _node("DIAGONAL_MATRIX1", (_matrix(x),), {"Value": 0, "DiagonalFillBegin": k + 1,
                                                     "DiagonalFillEnd": 2**31 - 1})


def triu(x, k=0):
    """x where column - row is at least k, else 0."""
    return _node("DIAGONAL_MATRIX1", (_matrix(x),), {"Value": 0, "DiagonalFillBegin": -2**31, "DiagonalFillEnd": k})


# --- windows ----------------------------------------------------------------------------------------------------------
def _window(name, value, text):
    """The function of a number of places; value: at the places, from 1 - count to count - 1 in steps of 2."""
    def call(count, dtype=None):
        if count < 1:
            raise ValueError(f"{name}: {count} numbers, must be at least 1")

        def make(graph, dtype):
            place = opjit.arange(1 - count, count, 2, "float64").join(graph)
            y = value(place, count - 1) if count > 1 else opjit.ones(1, "float64").join(graph)
            return y.astype(dtype)
        return Deferred(make, (count,), opjit._dtype_name(dtype))
    call.__name__, call.__doc__ = name, text
    return call


def _cosines(*factors):
    """The sum of cosines of a turn, two turns and so on."""
    def value(place, last):
        angle = place * (_math.pi / last)
        terms = [opjit.cos(angle * n) * factor for n, factor in enumerate(factors[1:], 1)]
        return sum(terms[1:], terms[0]) + factors[0]
    return value


bartlett = _window("bartlett", lambda place, last: opjit.where(place <= 0, place / last + 1, 1 - place / last),
                   "A triangle of count numbers, 0 at its ends.")
blackman = _window("blackman", _cosines(0.42, 0.5, 0.08), "Blackman's window of count numbers.")
hamming = _window("hamming", _cosines(0.54, 0.46), "Hamming's window of count numbers.")
hanning = _window("hanning", _cosines(0.5, 0.5), "The window of von Hann of count numbers: a turn of a cosine.")
