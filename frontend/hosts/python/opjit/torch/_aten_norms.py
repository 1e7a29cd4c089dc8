# SPDX-License-Identifier: Apache-2.0
"""Of the table, what has a mean or a norm in it: variances, layers of norms, and their gradients."""
import math

import torch

import opjit

from ._aten import along, aten, cast, dims, dtype_at, is_float, takes, used, value_of
from ._sizes import whole

WIDE = (torch.float32, torch.float64)


# --- variances --------------------------------------------------------------------------------------------------------
def _counted(x, axes):
    return math.prod(x.shape[a] for a in axes)


def _all_axes(x, axes):
    """None or an empty list are all."""
    return tuple(a % x.ndim for a in axes) if axes else tuple(range(x.ndim))


def _variance(x, axes, correction=0):
    centred = x - along(opjit.mean, x, axes)
    square = centred * centred
    if correction == 0:
        return along(opjit.mean, square, axes)
    return along(opjit.sum, square, axes) * (1 / (_counted(x, axes) - correction))


def _has_variance(n):
    """Enough elements for the correction; fewer give NaN or infinity."""
    x, axes, correction = value_of(n.args[0]), (n.args[1:] or (None,))[0], n.kwargs.get("correction")
    shape = [whole(s) for s in x.shape] or [1]
    count = math.prod(shape[a] for a in axes) if axes else math.prod(shape)
    return x.dtype in WIDE and count > (1 if correction is None else correction)


@takes(aten.var.correction, when=_has_variance)
def _var(n, x, axes=None, correction=None, keepdim=False):
    correction = 1 if correction is None else correction
    return _variance(x, _all_axes(x, axes), correction).reshape(dims(value_of(n)))


@takes(aten.std.correction, when=_has_variance)
def _std(n, *args, **more):
    return opjit.sqrt(_var(n, *args, **more))


@takes(aten.var_mean.correction, when=_has_variance)
def _var_mean(n, x, axes=None, correction=None, keepdim=False):
    axes, correction = _all_axes(x, axes), 1 if correction is None else correction
    return [y.reshape(dims(v)) for y, v in zip((_variance(x, axes, correction), along(opjit.mean, x, axes)),
                                               value_of(n))]


@takes(aten.std_mean.correction, when=_has_variance)
def _std_mean(n, *args, **more):
    variance, mean = _var_mean(n, *args, **more)
    return [opjit.sqrt(variance), mean]


@takes(aten.logsumexp.default, when=lambda n: is_float(n) and dtype_at(n, 0) in WIDE)
def _logsumexp(n, x, axes, keepdim=False):
    """With the largest element taken away, unless it is infinite."""
    axes = _all_axes(x, axes)
    most = along(opjit.max, x, axes)
    most = opjit.where(opjit.abs(most) == opjit.inf, 0.0, most)
    return (opjit.log(along(opjit.sum, opjit.exp(x - most), axes)) + most).reshape(dims(value_of(n)))


def _is_euclidean(n):
    order = n.args[1] if len(n.args) > 1 else 2
    return order == 2 and n.kwargs.get("dtype") is None and dtype_at(n, 0) in WIDE


@takes(aten.linalg_vector_norm.default, when=_is_euclidean)
def _vector_norm(n, x, order=2, axes=None, keepdim=False, *, dtype=None):
    return opjit.sqrt(along(opjit.sum, x * x, axes)).reshape(dims(value_of(n)))


# --- layers -----------------------------------------------------------------------------------------------------------
def _one_float(n):
    return value_of(n)[0].dtype in (torch.float32, torch.float64) and all(
        a is None or value_of(a).dtype is value_of(n)[0].dtype for a in n.args[2:4])


def _halves(n):
    """Of halves, whose mean nobody reads."""
    return not used(n) & {1, 2} and all(a is None or value_of(a).dtype in (torch.float16, torch.float32) for a in (
        n.args[0], *n.args[2:4])) and value_of(n)[0].dtype is torch.float16


@takes(aten.native_layer_norm.default, when=lambda n: _one_float(n) or _halves(n))
def _layer_norm(n, x, shape, weight, bias, eps):
    if x.dtype == "float16":  # PyTorch, too, computes floats
        x, weight, bias = (None if v is None else cast(v, torch.float32) for v in (x, weight, bias))
        return [cast(_layer_norm(n, x, shape, weight, bias, eps)[0], torch.float16), None, None]
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    ahead = [1] * (x.ndim - len(shape))
    weight, bias = (None if w is None else w.reshape(ahead + list(w.shape)) for w in (weight, bias))
    wanted = used(n)
    if not wanted & {1, 2} and x.dtype == "float32":  # whose Epsilon is a float32
        return [opjit.layer_norm(x, weight, bias, axes, eps), None, None]
    rstd = 1 / opjit.sqrt(_variance(x, axes) + eps)
    mean = along(opjit.mean, x, axes)
    y = (x - mean) * rstd
    y = y if weight is None else y * weight
    return [y if bias is None else y + bias, mean, rstd]


@takes(aten._native_batch_norm_legit_no_training.default, when=lambda n: not used(n) - {0} and dtype_at(n, 0) in (
    torch.float32, torch.float64) and dtype_at(n, 3) is dtype_at(n, 0))
def _batch_norm(n, x, weight, bias, mean, variance, momentum, eps):
    mean, variance, weight, bias = (None if t is None else t.reshape([1, -1] + [1] * (x.ndim - 2))
                                    for t in (mean, variance, weight, bias))
    scale = 1 / opjit.sqrt(variance + eps)
    y = (x - mean) * (scale if weight is None else scale * weight)
    return [y if bias is None else y + bias, None, None]


@takes(aten.native_layer_norm_backward.default, when=lambda n: dtype_at(n, 0) in (torch.float32, torch.float64))
def _layer_norm_backward(n, grad, x, shape, mean, rstd, weight, bias, mask):
    split = x.ndim - len(shape)
    inner, outer = tuple(range(split, x.ndim)), tuple(range(split))
    normal = (x - mean) * rstd
    scaled = grad if weight is None else grad * weight.reshape([1] * split + list(weight.shape))
    result = [None, None, None]
    if mask[0]:
        slope = along(opjit.mean, scaled * normal, inner)
        result[0] = (scaled - along(opjit.mean, scaled, inner) - normal * slope) * rstd
    for i, product in ((1, grad * normal), (2, grad)):
        if mask[i]:
            result[i] = (along(opjit.sum, product, outer) if outer else product).reshape(dims(value_of(n)[i]))
    return result


def _is_many(x):
    """More than one number for each channel."""
    return whole(x.shape[0]) * math.prod(whole(s) for s in x.shape[2:]) > 1


def _trains(n):
    """On the numbers of this batch."""
    x = value_of(n.args[0])
    return _one_float(n) and n.args[5] is True and value_of(n.args[3]).dtype is x.dtype and _is_many(x)


def _along_channels(x, *vectors):
    """Vectors of one element for each channel, as they go with x."""
    return [None if v is None else v.reshape([1, -1] + [1] * (x.ndim - 2)) for v in vectors]


def _normal_batch(x, weight, bias, eps):
    """x in the norm of this batch; of each channel the mean, what x is multiplied by, and the variance."""
    axes = tuple(a for a in range(x.ndim) if a != 1)
    here, spread = along(opjit.mean, x, axes), _variance(x, axes)
    rstd = 1 / opjit.sqrt(spread + eps)
    scale, shift = _along_channels(x, weight, bias)
    y = (x - here) * (rstd if scale is None else rstd * scale)
    return y if shift is None else y + shift, [v.reshape([-1]) for v in (here, rstd, spread)]


def _is_alone(n):
    """On the numbers of this batch, in one type."""
    x = value_of(n.args[0])
    return n.args[3] is True and x.dtype in WIDE and _is_many(x) and all(
        a is None or value_of(a).dtype is x.dtype for a in n.args[1:3])


@takes(aten._native_batch_norm_legit.no_stats, when=_is_alone)
def _batch_norm_alone(n, x, weight, bias, training, momentum, eps):
    y, flat = _normal_batch(x, weight, bias, eps)
    return [y, *flat[:2]]


@takes(aten._native_batch_norm_legit_functional.default, when=_trains)
def _batch_norm_training(n, x, weight, bias, mean, variance, training, momentum, eps):
    y, flat = _normal_batch(x, weight, bias, eps)
    count = _counted(x, (a for a in range(x.ndim) if a != 1))
    return [y, *flat[:2], mean * (1 - momentum) + flat[0] * momentum,
            variance * (1 - momentum) + flat[2] * (momentum * count / (count - 1))]


@takes(aten.native_batch_norm_backward.default, when=lambda n: dtype_at(n, 0) in WIDE and n.args[7] is True and all(
    a is None or value_of(a).dtype is dtype_at(n, 0) for a in n.args[1:7]))
def _batch_norm_backward(n, grad, x, weight, mean, variance, saved_mean, saved_rstd, training, eps, mask):
    axes = tuple(a for a in range(x.ndim) if a != 1)
    scale, here, rstd = _along_channels(x, weight, saved_mean, saved_rstd)
    normal = (x - here) * rstd
    slope, shift, count = along(opjit.sum, grad * normal, axes), along(opjit.sum, grad, axes), _counted(x, axes)
    dx = (grad - (shift + normal * slope) * (1 / count)) * (rstd if scale is None else rstd * scale)
    return [y if wanted else None for y, wanted in zip((dx, slope.reshape([-1]), shift.reshape([-1])), mask)]


def _of_groups(v, x):
    """A number for each example and group, as it goes with the channels of x."""
    count, groups = v.shape[:2]
    rows = opjit.broadcast_to(v.reshape([count, groups, 1]), (count, groups, x.shape[1] // groups))
    return rows.reshape([count, x.shape[1], 1])


@takes(aten.native_group_norm.default, lag=2, when=lambda n: value_of(n)[0].dtype in WIDE and all(
    a is None or value_of(a).dtype is value_of(n)[0].dtype for a in n.args[1:3]))
def _group_norm(n, x, weight, bias, count, channels, places, groups, eps):
    xs, rows = x.reshape([*x.shape[:2], -1]), x.reshape([x.shape[0], groups, -1])
    mean, rstd = along(opjit.mean, rows, (2,)), 1 / opjit.sqrt(_variance(rows, (2,)) + eps)
    scale, shift = _along_channels(xs, weight, bias)
    y = (xs - _of_groups(mean, x)) * (_of_groups(rstd, x) if scale is None else _of_groups(rstd, x) * scale)
    y = y if shift is None else y + shift
    return [y.reshape(x.shape), *(v.reshape(v.shape[:2]) for v in (mean, rstd))]


@takes(aten.native_group_norm_backward.default, when=lambda n: dtype_at(n, 0) in WIDE and all(
    a is None or value_of(a).dtype is dtype_at(n, 0) for a in n.args[1:5]))
def _group_norm_backward(n, grad, x, mean, rstd, weight, count, channels, places, groups, mask):
    xs, gs = (v.reshape([*x.shape[:2], -1]) for v in (x, grad))
    here, scale = (_of_groups(v, x) for v in (mean, rstd))
    normal = (xs - here) * scale
    slope, shift = along(opjit.sum, gs * normal, (2,)), along(opjit.sum, gs, (2,))  # of each channel
    weight = None if weight is None else weight.reshape([1, -1, 1])
    result = [None, slope, shift]
    if mask[0]:
        weighted = (v if weight is None else v * weight for v in (slope, shift))
        slopes, shifts = (along(opjit.sum, v.reshape([x.shape[0], groups, -1]), (2,)) * (
            groups / _counted(x, range(1, x.ndim))) for v in weighted)
        scaled = gs if weight is None else gs * weight
        result[0] = ((scaled - _of_groups(shifts, x) - normal * _of_groups(slopes, x)) * scale).reshape(x.shape)
    return [result[0], *(opjit.sum(v, 0).reshape([-1]) if m else None for v, m in zip(result[1:], mask[1:]))]
