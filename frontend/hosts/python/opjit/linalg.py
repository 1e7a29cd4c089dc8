# SPDX-License-Identifier: Apache-2.0
"""opjit.linalg - functions of numpy.linalg's, made of the package's own: norms, products, and of small matrices what
elimination gives.  Matrices are the last two dimensions, those before are batches."""
import math as _math

import opjit

from ._numpy import _of_one, together
from ._products import cross, matmul, outer, tensordot, vecdot
from ._tensor import as_floats, axes_of

__all__ = ["cross", "det", "diagonal", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_transpose", "multi_dot",
           "norm", "outer", "slogdet", "solve", "tensordot", "trace", "vecdot", "vector_norm"]

_MOST = 16  # rows that elimination takes: its steps are written one after the other


def diagonal(x, offset=0):
    """The elements of matrices whose column is `offset` more than their row."""
    return opjit.diagonal(x, offset, -2, -1)


def matrix_transpose(x):
    """The last two dimensions in each other's place."""
    return opjit.matrix_transpose(x)


def trace(x, offset=0):
    """The sum of each matrix's diagonal."""
    return opjit.sum(diagonal(x, offset), -1)


# --- norms ------------------------------------------------------------------------------------------------------------
@_of_one
def vector_norm(x, axis=None, keepdims=False, ord=2):
    """The norm of vectors along axes, axis None: of all elements.  ord: 1, 2, any number, inf, -inf, or 0: how many are
    not 0."""
    size, axis = opjit.abs(as_floats(x, "float64")), axes_of(x, axis)
    if ord == _math.inf or ord == -_math.inf:
        return (opjit.max if ord > 0 else opjit.min)(size, axis, keepdims)
    if ord == 0:
        return opjit.sum((size != 0).astype(size.dtype), axis, keepdims)
    if ord == 1:
        return opjit.sum(size, axis, keepdims)
    if ord == 2:
        return opjit.sqrt(opjit.sum(size * size, axis, keepdims))
    return opjit.sum(size ** float(ord), axis, keepdims) ** (1 / ord)


@_of_one
def matrix_norm(x, keepdims=False, ord="fro", axis=(-2, -1)):
    """The norm of matrices: "fro", 1, -1, inf or -inf."""
    rows, columns = axes_of(x, axis)
    if ord == "fro":
        return vector_norm(x, (rows, columns), keepdims)
    if ord not in (1, -1, _math.inf, -_math.inf):
        raise ValueError(f'norm: ord {ord!r} of matrices, must be "fro", 1, -1, inf or -inf')
    along, most = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = opjit.sum(opjit.abs(as_floats(x, "float64")), along, True)
    y = (opjit.max if ord > 0 else opjit.min)(sums, most, True)
    return y if keepdims else y.reshape([n for d, n in enumerate(x.shape) if d not in (rows, columns)] or [1])


@_of_one
def norm(x, ord=None, axis=None, keepdims=False):
    """The norm of all elements, of vectors along an axis, or of matrices along two: vector_norm, matrix_norm."""
    if axis is None and ord is not None and x.ndim > 2:
        raise ValueError(f"norm: ord {ord!r} of {x.ndim} dimensions, axis must be one or two of them")
    axes = axes_of(x, axis)
    if len(axes) == 2 and ord is not None:
        return matrix_norm(x, keepdims, ord, axes)
    return vector_norm(x, axes, keepdims, 2 if ord is None or ord == "fro" and len(axes) == 2 else ord)


# --- products ---------------------------------------------------------------------------------------------------------
@_of_one
def matrix_power(x, n):
    """Products of n times x; of inv(x) where n is negative."""
    _square("matrix_power", x)
    x, n = (inv(x), -n) if n < 0 else (x, n)
    if n == 0:
        return opjit.broadcast_to(opjit.eye(x.shape[-1], dtype=x.dtype).join(x.graph), x.shape)
    y = None
    while True:
        if n % 2:
            y = x if y is None else matmul(y, x)
        n //= 2
        if n == 0:
            return y
        x = matmul(x, x)


def multi_dot(tensors):
    """The product of matrices, of which the first and last may be vectors, in the order of the fewest operations."""
    tensors = together(tensors)
    if len(tensors) < 2:
        raise ValueError(f"multi_dot: {len(tensors)} matrices, must be at least 2")
    first, last = tensors[0].ndim == 1, tensors[-1].ndim == 1
    names = [(("" if first and n == 0 else chr(97 + n)) + ("" if last and n + 1 == len(tensors) else chr(98 + n)))
             for n in range(len(tensors))]
    if first:
        names[0] = "b"
    if last:
        names[-1] = chr(96 + len(tensors))
    result = ("" if first else "a") + ("" if last else chr(97 + len(tensors)))
    return opjit.einsum(f"{','.join(names)}->{result}", *tensors)


# --- elimination ------------------------------------------------------------------------------------------------------
def _square(name, x):
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{name}: {list(x.shape)}, must be square matrices")


def _eliminated(name, a, b):
    """a^-1 b, and the pivots with the determinant's sign in the last one: a step for each row, the greatest element of
    its column being exchanged for it.  b None: the pivots alone."""
    _square(name, a)
    size = a.shape[-1]
    if size > _MOST:
        raise ValueError(f"{name}: {size} rows, must be at most {_MOST}")
    row = opjit.arange(size, dtype="int32").join(a.graph).reshape([size, 1])
    pivots, swaps = [], None
    m = a if b is None else opjit.concatenate([a, b], -1)
    for k in range(size):
        column = m[..., k:k + 1]
        chosen = opjit.argmax(opjit.where(row < k, -1.0, opjit.abs(column)), -2, True).astype("int32")
        is_chosen, is_own = row == chosen, row == k
        pivot_row = opjit.sum(opjit.where(is_chosen, m, 0.0), -2, True)
        m = opjit.where(is_own, pivot_row, opjit.where(is_chosen, m[..., k:k + 1, :], m))
        pivot = pivot_row[..., k:k + 1]
        pivots.append(pivot)
        swap = (chosen != k).astype("int32")
        swaps = swap if swaps is None else swaps + swap
        if b is None:
            own = opjit.where(pivot == 0, 0.0, pivot_row / pivot)
            m = opjit.where(row > k, m - m[..., k:k + 1] * own, m)
        else:
            own = pivot_row / pivot
            m = opjit.where(is_own, own, m - m[..., k:k + 1] * own)
    sign = 1 - 2 * (swaps % 2)
    return None if b is None else m[..., size:], pivots, sign.astype(a.dtype)


def _small(name, x):
    x = as_floats(x, "float64")
    if x.dtype == "float16":
        raise TypeError(f"{name}: float16, must be float32 or float64")
    return x


@_of_one
def inv(x):
    """The inverse of matrices of up to 16 rows; without one NaN or infinite."""
    x = _small("inv", x)
    _square("inv", x)
    eye = opjit.eye(x.shape[-1], dtype=x.dtype).join(x.graph)
    return _eliminated("inv", x, opjit.broadcast_to(eye, x.shape))[0]


def solve(a, b):
    """x with a x = b, of up to 16 rows: b is matrices, or one vector."""
    a, b = together((a, b))
    a, b = (_small("solve", x) for x in (a, b))
    _square("solve", a)
    is_vector = b.ndim == 1
    b = b.reshape([-1, 1]) if is_vector else b
    if b.shape[-2] != a.shape[-1]:
        raise ValueError(f"solve: {b.shape[-2]} rows of b, must be {a.shape[-1]} as those of a")
    batch = opjit.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (opjit.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    x = _eliminated("solve", a, b)[0]
    return x[..., 0] if is_vector else x


@_of_one
def slogdet(x):
    """The sign of the determinant of matrices of up to 16 rows, and the logarithm of its size."""
    _, pivots, sign = _eliminated("slogdet", _small("slogdet", x), None)
    pivots = opjit.concatenate([sign, *pivots], -1)
    return opjit.prod(opjit.sign(pivots), (-2, -1)), opjit.sum(opjit.log(opjit.abs(pivots)), (-2, -1))


@_of_one
def det(x):
    """The determinant of matrices of up to 16 rows."""
    _, pivots, sign = _eliminated("det", _small("det", x), None)
    return opjit.prod(opjit.concatenate([sign, *pivots], -1), (-2, -1))
