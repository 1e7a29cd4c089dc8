# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's that were left: powers of two, polynomials through points, products with one vector."""
import array as _array
import math as _math

import opjit

from ._generated import full_like, zeros_like
from ._numpy import _of_one, ravel, together
from ._products import matmul
from ._signals import vander
from ._tensor import Deferred, as_floats, graph_of, tensor

__all__ = ["empty", "empty_like", "frexp", "indices", "ldexp", "matvec", "poly", "polyfit", "vecmat"]
_LEAST, _MOST = -1074, 1023  # exponents of float64


# --- elements that nobody has said ------------------------------------------------------------------------------------
def empty(shape, dtype=None):
    """Elements without a meaning, which are 0 here."""
    return opjit.zeros(shape, dtype)


def empty_like(x, dtype=None, shape=None):
    """The same in the shape and of the type of x."""
    return zeros_like(x, dtype, shape)


def indices(dimensions, dtype="int64"):
    """For each dimension a tensor of these sizes with the index in it, one behind the other in a first dimension."""
    rank = len(dimensions)

    def make(graph, dtype):
        rows = [opjit.broadcast_to(opjit.arange(n, dtype=dtype).join(graph).reshape(
            [-1 if d == at else 1 for d in range(rank)]), tuple(dimensions)) for at, n in enumerate(dimensions)]
        return opjit.stack(rows)
    return Deferred(make, (rank, *dimensions), opjit._dtype_name(dtype))


# --- powers of two ----------------------------------------------------------------------------------------------------
def _power(exponent):
    """2 to the exponent, float64: exact, of a table."""
    graph = exponent.graph
    table = graph.constant(_array.array("d", [_math.ldexp(1.0, n) for n in range(_LEAST, _MOST + 1)]))
    return opjit.take(table, opjit.clip(exponent, _LEAST, _MOST) - _LEAST)


def ldexp(x, exponent):
    """x times 2 to the exponent, whole numbers."""
    graph = graph_of((x, exponent))
    x = as_floats(tensor(graph, x, "float64"))
    exponent = opjit.clip(tensor(graph, exponent, "int64").astype("int64"), -2200, 2200)
    most = 1000 if x.dtype == "float64" else 400  # of those below, x times the power is exact
    first = opjit.clip(exponent, -most, most)
    y = x.astype("float64") * _power(first)
    if x.dtype == "float64":
        second = opjit.clip(exponent - first, -most, most)
        y = y * _power(second) * _power(exponent - first - second)
    return y.astype(x.dtype)


@_of_one
def frexp(x):
    """m and e (int32), so that x is m times 2 to the e and |m| is 0.5 or more and below 1; of 0, infinity and NaN x
    and 0."""
    x = as_floats(x)
    y = x.astype("float64")
    is_number = opjit.isfinite(y) & (y != 0)
    y = opjit.where(is_number, y, 1.0)
    is_least = opjit.abs(y) < 2.0**-1000
    y = opjit.where(is_least, y * 2.0**54, y)
    guess = opjit.floor(opjit.log2(opjit.abs(y))).astype("int64") + 1
    half = opjit.clip(guess, -1000, 1000)
    m = y * _power(-half) * _power(half - guess)
    above, below = opjit.abs(m) >= 1, opjit.abs(m) < 0.5
    m = opjit.where(above, m * 0.5, opjit.where(below, m * 2.0, m))
    e = guess + above.astype("int64") - below.astype("int64") - is_least.astype("int64") * 54
    return (opjit.where(is_number, m.astype(x.dtype), x),
            opjit.where(is_number, e.astype("int32"), full_like(x, 0, "int32")))


# --- polynomials ------------------------------------------------------------------------------------------------------
@_of_one
def poly(x):
    """The coefficients, the highest first, of the polynomial that is 0 at the elements of x."""
    x = as_floats(ravel(x), "float64")
    y = opjit.ones(1, x.dtype).join(x.graph)
    for n in range(x.shape[0]):
        y = opjit.polymul(y, opjit.concatenate([opjit.ones(1, x.dtype).join(x.graph), -x[n]]))
    return y


def polyfit(x, y, deg):
    """The coefficients, the highest first, of the polynomial of that degree that is nearest to y at x, by the least
    squares; y may have a column for each of several."""
    x, y = (as_floats(t, "float64") for t in together((x, y)))
    if not 0 <= deg < x.shape[0]:
        raise ValueError(f"polyfit: degree {deg}, must be 0 to {x.shape[0] - 1}, less than points")
    rest = y if y.ndim == 2 else y[:, None]
    powers = vander(x, deg + 1)
    size = opjit.sqrt(opjit.sum(powers * powers, 0))
    powers = powers / size
    units, above, parts = [], [], []
    for n in range(deg + 1):  # columns at right angles, twice so that they are
        column, above_n = powers[:, n], [0.0] * n
        for _ in range(2):
            for k, unit in enumerate(units):
                share = opjit.sum(unit * column)
                column, above_n[k] = column - share * unit, share + above_n[k]
        length = opjit.sqrt(opjit.sum(column * column))
        units.append(column / length)
        above.append((above_n, length))
        part = opjit.sum(units[-1][:, None] * rest, 0, True)
        rest = rest - units[-1][:, None] * part
        parts.append(part)
    found = [None] * (deg + 1)
    for n in reversed(range(deg + 1)):
        y_n = parts[n]
        for k in range(n + 1, deg + 1):
            y_n = y_n - found[k] * above[k][0][n]
        found[n] = y_n / above[n][1]
    result = opjit.concatenate(found, 0) / size[:, None]
    return result if y.ndim == 2 else result[:, 0]


# --- products ---------------------------------------------------------------------------------------------------------
def matvec(a, x):
    """The products of matrices with vectors, which are the last dimension."""
    a, x = together((a, x))
    return matmul(a, x[..., None])[..., 0]


def vecmat(x, a):
    """The products of vectors, which are the last dimension, with matrices."""
    x, a = together((x, a))
    return matmul(x[..., None, :], a)[..., 0, :]
