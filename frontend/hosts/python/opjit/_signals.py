# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's of samples along a line and of polynomials, made of the package's own."""
import math as _math
from numbers import Integral as _Integral, Real as _Real

import opjit

from ._numpy import _of_one, append, diff, flip, moveaxis, pad, ravel, together
from ._products import _numbers, _sum
from ._tensor import FLOATS, as_floats, axes_of, graph_of, tensor

__all__ = ["convolve", "corrcoef", "correlate", "cov", "gradient", "interp", "polyadd", "polyder", "polyint", "polymul",
           "polysub", "polyval", "trapezoid", "unwrap", "vander"]
_SHIFTS = 64  # products of so many shifted copies are faster than of windows


# --- sums of shifted products -----------------------------------------------------------------------------------------
def correlate(a, v, mode="valid"):
    """The sums of products of v and what of a is beside it, for each place of v.  mode: "valid": all of v has elements
    beside it, "same": as many as the longer one has, "full": all places where one has."""
    if mode not in ("valid", "same", "full"):
        raise ValueError(f'correlate: mode {mode!r}, must be "valid", "same" or "full"')
    a, v = _numbers("correlate", *together((a, v)))
    for x in (a, v):
        if x.ndim != 1:
            raise ValueError(f"correlate: {x.ndim} dimensions, must be 1")
    if v.shape[0] > a.shape[0]:
        return flip(_beside(v, a, mode))
    return _beside(a, v, mode)


def _beside(a, v, mode):
    """correlate, v being the shorter one."""
    size = v.shape[0]
    a = a if mode == "valid" else pad(a, (size - 1, size - 1) if mode == "full" else (size // 2, (size - 1) // 2))
    count = a.shape[0] - size + 1
    if a.dtype in FLOATS and size > _SHIFTS:
        y = opjit.ops.convolution(a[None, None], v[None, None], mode="CROSS_CORRELATION", direction="FORWARD",
                                  strides=[1], dilations=[1], start_padding=[0], end_padding=[0], output_padding=[0],
                                  group_count=1)
        return y.reshape([count])
    if size > _SHIFTS:
        places = (opjit.arange(count, dtype="int64")[:, None] + opjit.arange(size, dtype="int64")).join(a.graph)
        return _sum(opjit.take(a, places) * v, -1)
    y = a[:count] * v[0]
    for n in range(1, size):
        y = y + a[n:n + count] * v[n]
    return y


def convolve(a, v, mode="full"):
    """The sums of products of a and v, one of them reversed, for each place of it: as correlate has them."""
    if mode not in ("valid", "same", "full"):
        raise ValueError(f'convolve: mode {mode!r}, must be "valid", "same" or "full"')
    a, v = together((a, v))
    a, v = (a, v) if v.shape[0] <= a.shape[0] else (v, a)
    return correlate(a, flip(v), mode)


# --- between samples --------------------------------------------------------------------------------------------------
def interp(x, xp, fp, left=None, right=None, period=None):
    """The values (float64) at x of the line through the points (xp, fp), xp increasing: beyond its ends left and right,
    or the values there.  period: that of xp, which need not increase then."""
    graph = graph_of((x, xp, fp))
    x, xp, fp = (tensor(graph, t, "float64").astype("float64") for t in (x, xp, fp))
    if xp.ndim != 1 or fp.shape != xp.shape:
        raise ValueError(f"interp: xp {list(xp.shape)} and fp {list(fp.shape)}, must have one dimension and size")
    if period is not None:
        if period == 0:
            raise ValueError("interp: period 0, must be another number")
        period = float(abs(period))
        x, xp = x % period, xp % period
        order = opjit.argsort(xp)
        xp, fp = opjit.take(xp, order), opjit.take(fp, order)
        xp = opjit.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp, left, right = opjit.concatenate([fp[-1:], fp, fp[:1]]), None, None
    count = xp.shape[0]
    at = opjit.searchsorted(xp, x, "right") - 1
    x0, x1, y0, y1 = (opjit.take(t, opjit.clip(at + n, 0, count - 1)) for t in (xp, fp) for n in (0, 1))
    slope = (y1 - y0) / (x1 - x0)
    y = slope * (x - x0) + y0
    y = opjit.where(y == y, y, slope * (x - x1) + y1)
    y = opjit.where((y != y) & (y0 == y1), y0, y)
    y = opjit.where((x == x0) | (at == count - 1), y0, y)
    y = opjit.where(x < xp[0], fp[0] if left is None else left, y)
    y = opjit.where(x > xp[-1], fp[-1] if right is None else right, y)
    return opjit.where(x == x, y, x)


@_of_one
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral along the axis of the lines between samples, at x or at equal distances."""
    axis = axes_of(y, axis)[0]
    y = as_floats(y, "float64")
    if y.shape[axis] == 1:
        return opjit.sum(y * 0.0, axis)
    head = (slice(None),) * axis
    steps = dx
    if x is not None:
        x = tensor(y.graph, x, y.dtype)
        x = x if x.dtype in FLOATS else x.astype(y.dtype)
        steps = diff(x, axis=axis) if x.ndim > 1 else diff(x).reshape([-1] + [1] * (y.ndim - 1 - axis))
    return opjit.sum(steps * (y[(*head, slice(1, None))] + y[(*head, slice(None, -1))]) / 2.0, axis)


@_of_one
def gradient(f, *spacing, axis=None, edge_order=1):
    """The slopes along the axes, of each a tensor: half of the differences of both neighbours; at the ends that of one
    (edge_order 1) or of two.  spacing: the distance of samples, or where they are; one, or one for each axis."""
    axes = axes_of(f, axis)
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order {edge_order}, must be 1 or 2")
    if len(spacing) not in (0, 1, len(axes)) or len(spacing) == 1 < len(axes) and not isinstance(spacing[0], _Real):
        raise ValueError(f"gradient: {len(spacing)} distances, must be one number or {len(axes)} as axes")
    spacing = spacing or (1.0,)
    f = as_floats(f, "float64")
    results = []
    for n, d in enumerate(axes):
        if f.shape[d] < edge_order + 1:
            raise ValueError(f"gradient: dimension {d} has size {f.shape[d]}, must be at least {edge_order + 1}")
        y = moveaxis(f, d, 0)
        results.append(moveaxis(_slopes(y, _steps(y, spacing[n if len(spacing) > 1 else 0]), edge_order), 0, d))
    return results[0] if len(axes) == 1 else tuple(results)


def _steps(y, spacing):
    """The distance between samples of the first dimension: a number, or each as it goes with its rows."""
    if isinstance(spacing, _Real):
        return float(spacing)
    x = tensor(y.graph, spacing, y.dtype)
    if x.shape != y.shape[:1]:
        raise ValueError(f"gradient: places {list(x.shape)}, must be {[y.shape[0]]} as samples")
    return diff(x if x.dtype in FLOATS else x.astype(y.dtype)).reshape([-1] + [1] * (y.ndim - 1))


def _slopes(y, h, edge_order):
    """Along the first dimension, whose samples have this distance or these."""
    def at(part):
        return h if isinstance(h, float) else h[part]
    first, last = at(slice(0, 1)), at(slice(-1, None))
    if edge_order == 1:
        parts = [(y[1:2] - y[:1]) / first, (y[-1:] - y[-2:-1]) / last]
    else:
        parts = [_edge(y[:1], y[1:2], y[2:3], first, at(slice(1, 2))),
                 -_edge(y[-1:], y[-2:-1], y[-3:-2], last, at(slice(-2, -1)))]
    if y.shape[0] > 2:
        parts.insert(1, _inner_slopes(y, h))
    return opjit.concatenate(parts, 0)


def _inner_slopes(y, h):
    """At samples that have two neighbours."""
    if isinstance(h, float):
        return (y[2:] - y[:-2]) / (2 * h)
    before, behind = h[:-1], h[1:]
    both = before + behind
    return (y[2:] * (before / (behind * both)) + y[1:-1] * ((behind - before) / (before * behind))
            - y[:-2] * (behind / (before * both)))


def _edge(y0, y1, y2, h0, h1):
    """The slope at the first of three samples."""
    both = h0 + h1
    return y1 * (both / (h0 * h1)) - y0 * ((h0 + both) / (h0 * both)) - y2 * (h0 / (h1 * both))


@_of_one
def unwrap(x, discont=None, axis=-1, period=2 * _math.pi):
    """x with multiples of the period added, so that neighbours along the axis are at most half of it apart; those that
    are less than discont apart stay so."""
    axis = axes_of(x, axis)[0]
    if x.shape[axis] == 1:
        return as_floats(x, "float64")
    head, step = (slice(None),) * axis, diff(x, axis=axis)
    if isinstance(period, _Integral) and x.dtype not in FLOATS:
        half = period // 2
    else:
        x, step, half = as_floats(x, "float64"), as_floats(step, "float64"), period / 2
    near = (step + half) % period - half
    threshold = period / 2 if discont is None else discont
    threshold = threshold if x.dtype in FLOATS else _math.ceil(threshold)
    if half * 2 == period:
        near = opjit.where((near == -half) & (step > 0), half, near)
    more = opjit.where(opjit.abs(step) < threshold, 0, near - step)
    rest = x[(*head, slice(1, None))] + opjit.cumsum(more, axis).astype(x.dtype)
    return opjit.concatenate([x[(*head, slice(None, 1))], rest], axis)


# --- of several variables ---------------------------------------------------------------------------------------------
def cov(m, y=None, rowvar=True, bias=False, ddof=None):
    """The covariances (float64) of the rows of m, or of its columns, and of y's: each is a variable."""
    together_ = together((m,) if y is None else (m, y))
    rows = [x.astype("float64").reshape([1, -1]) if x.ndim == 1 else x.astype("float64") for x in together_]
    if any(x.ndim > 2 for x in rows):
        raise ValueError("cov: more than 2 dimensions, must be 1 or 2")
    rows = [x if rowvar or given.ndim == 1 else x.T for x, given in zip(rows, together_)]
    x = opjit.concatenate(rows, 0) if len(rows) > 1 else rows[0]
    count = x.shape[1] - ((0 if bias else 1) if ddof is None else ddof)
    if count <= 0:
        raise ValueError(f"cov: {x.shape[1]} observations, must be more than {x.shape[1] - count}")
    x = x - opjit.mean(x, 1, True)
    c = opjit.matmul(x, x.T) * (1 / count)
    return c if c.shape[0] > 1 else c.reshape([1])


def corrcoef(x, y=None, rowvar=True):
    """The covariances over the products of the standard deviations: -1 to 1."""
    c = cov(x, y, rowvar)
    if c.ndim == 1:
        return c / c
    deviation = opjit.sqrt(opjit.diagonal(c))
    return opjit.clip(c / deviation[:, None] / deviation[None, :], -1.0, 1.0)


# --- polynomials, the coefficient of the highest power first ----------------------------------------------------------
def polyval(p, x):
    """The polynomial's value at x."""
    p, x = together((p, x))
    y = opjit.zeros(x.shape, x.dtype).join(x.graph)
    for n in range(p.shape[0]):
        y = y * x + p[n]
    return y


def _aligned(a, b):
    """The coefficients with zeros before those of the shorter one."""
    a, b = together((a, b))
    size = max(a.shape[0], b.shape[0])
    return (pad(x, (size - x.shape[0], 0)) for x in (a, b))


def polyadd(a, b):
    """The sum's coefficients."""
    a, b = _aligned(a, b)
    return a + b


def polysub(a, b):
    """The difference's coefficients."""
    a, b = _aligned(a, b)
    return a - b


def polymul(a, b):
    """The product's coefficients."""
    return convolve(a, b)


def _with_whole(x):
    """x in the type that NumPy has for it and int64."""
    return x.astype("float64" if x.dtype in (*FLOATS, "uint64") else "int64")


@_of_one
def polyder(p, m=1):
    """The coefficients of the m-th derivative, of which there is one at least."""
    p = _with_whole(p) if m else p
    for _ in range(m):
        if p.shape[0] == 1:
            return p * 0
        p = p[:-1] * opjit.arange(p.shape[0] - 1, 0, -1, p.dtype).join(p.graph)
    return p


@_of_one
def polyint(p, m=1, k=0):
    """The coefficients of the m-th integral, whose constants are k: one number, or one for each."""
    p, constants = p.astype("float64") if m else p, [k] * m if isinstance(k, _Real) else list(k)
    if len(constants) != m:
        raise ValueError(f"polyint: {len(constants)} constants, must be {m}")
    for constant in constants:
        p = append(p / opjit.arange(p.shape[0], 0, -1, p.dtype).join(p.graph),
                   opjit.full(1, float(constant), p.dtype).join(p.graph))
    return p


@_of_one
def vander(x, N=None, increasing=False):
    """The powers of each element of x side by side, N of them, the lowest one last unless increasing."""
    x, count = _with_whole(ravel(x)), x.shape[0] if N is None else N
    if count < 1:
        raise ValueError(f"vander: {count} columns, must be at least 1")
    powers = [opjit.ones(x.shape, x.dtype).join(x.graph)]
    for _ in range(count - 1):
        powers.append(powers[-1] * x)
    return opjit.stack(powers if increasing else powers[::-1], 1)
