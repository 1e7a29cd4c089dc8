# SPDX-License-Identifier: Apache-2.0
"""The rest of the table: what is generated, what moves elements, what goes along axes, products."""
import torch

import opjit
from opjit import ops
from opjit._tensor import Tensor

from ._aten import (FLOATS, NAMES, along, aten, cast, dims, dtype_at, gives_float, has_no_bool, is_float, name_of,
                    prims, takes, used, value_of, wide)
from ._sizes import whole


# --- generated --------------------------------------------------------------------------------------------------------
def _filled(n, graph, value):
    """Every element is the value."""
    dtype = value_of(n).dtype
    value = float(value) if dtype in FLOATS else int(bool(value)) if dtype is torch.bool else int(value)
    return opjit.full(dims(value_of(n)), value, NAMES[dtype]).join(graph)


def _fill(*targets, value=None, at=None):
    def build(n, graph, *args, **more):
        return _filled(n, graph, value if at is None else args[at])
    takes(*targets, light=True, generated=True)(build)


_fill(aten.full.default, aten.full_like.default, at=1)
_fill(aten.new_full.default, at=2)
_fill(aten.fill.Scalar, at=1)
_fill(aten.scalar_tensor.default, at=0)
_fill(aten.ones.default, aten.ones_like.default, aten.new_ones.default, value=1)
_fill(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, value=0)


def _whole_steps(n):
    """Of floats with steps of a fraction PyTorch's rounding is another."""
    return value_of(n).dtype is not torch.bool and all(
        isinstance(value_of(a) if isinstance(a, torch.fx.Node) else a, (int, torch.SymInt)) for a in n.args)


@takes(aten.arange.default, aten.arange.start, aten.arange.start_step, prims.iota.default, when=_whole_steps,
       light=True, generated=True)
def _arange(n, graph, *args, start=None, step=None, **more):
    if n.target is prims.iota.default:
        first, delta = start, step
    else:
        first, delta = (0 if len(args) == 1 else args[0]), (args[2] if len(args) > 2 else 1)
    dtype, shape = name_of(n), dims(value_of(n))
    make = float if value_of(n).dtype in FLOATS else int
    return Tensor(graph, graph._core.node("FILL_VALUE_SEQUENCE", (), {"ValueStart": make(first),
                                          "ValueDelta": make(delta)}, [(dtype, shape)])[0])


@takes(aten.eye.default, aten.eye.m, generated=True)
def _eye(n, graph, *args, **more):
    return opjit.eye(*dims(value_of(n)), dtype=name_of(n)).join(graph)


def _diagonal(value):
    """Ends of bands are INT32."""
    return max(-2**31 + 2, min(2**31 - 3, value))


@takes(aten.tril.default, free=True)
def _tril(n, x, diagonal=0):
    return opjit.tril(x, _diagonal(diagonal))


@takes(aten.triu.default, free=True)
def _triu(n, x, diagonal=0):
    return opjit.triu(x, _diagonal(diagonal))


# --- that move elements -----------------------------------------------------------------------------------------------
@takes(aten.view.default, aten._unsafe_view.default, aten.unsqueeze.default, aten.squeeze.dim,
       aten.squeeze.dims, aten.squeeze.default, view=True)
def _reshape(n, x, *args):
    return x.reshape(dims(value_of(n)))


@takes(aten.alias.default, aten.detach.default, view=True)
def _same(n, x):
    return x


@takes(aten.clone.default, aten.lift_fresh_copy.default, light=True)
def _copy(n, x, **more):
    return x


def _casts(n, index=0):
    """Floats that do not fit into an integer are anybody's guess, and PyTorch's is its own."""
    dtype = value_of(n).dtype
    return dtype in FLOATS or dtype is torch.bool or dtype_at(n, index) not in FLOATS


@takes(aten._to_copy.default, prims.convert_element_type.default, when=_casts, light=True, free=True)
def _cast(n, x, *args, **more):
    return cast(x, value_of(n).dtype, dtype_at(n, 0))


def _of_rank(x, rank):
    """x with more dimensions of size 1 before its own."""
    return x.reshape([1] * (rank - x.ndim) + list(x.shape)) if x.ndim < rank else x


@takes(aten.expand.default, view=True)
def _expand(n, x, *args, **more):
    shape = dims(value_of(n))
    return opjit.broadcast_to(_of_rank(x, len(shape)), shape)


@takes(aten.permute.default, view=True)
def _permute(n, x, axes):
    return x.transpose([a % x.ndim for a in axes]) if axes else x


@takes(aten.transpose.int, view=True)
def _transpose(n, x, a, b):
    axes = list(range(x.ndim))
    axes[a], axes[b] = axes[b], axes[a]
    return x.transpose(axes)


@takes(aten.t.default, view=True)
def _t(n, x):
    return x.transpose([1, 0]) if value_of(n).dim() == 2 else x


def _cut(x, axis, part):
    return x[(slice(None),) * (axis % x.ndim) + (part,)]


@takes(aten.slice.Tensor, view=True)
def _slice(n, x, axis=0, start=None, end=None, step=1):
    return _cut(x, axis, slice(start, end, step))


@takes(aten.select.int, view=True)
def _select(n, x, axis, index):
    return _cut(x, axis, index).reshape(dims(value_of(n)))


@takes(aten.split.Tensor, aten.split_with_sizes.default, aten.unbind.int, view=True)
def _split(n, x, sizes=None, axis=0):
    axis = (sizes or 0) if n.target is aten.unbind.int else axis
    parts, begin = [], 0
    for part in value_of(n):
        count = 1 if n.target is aten.unbind.int else whole(part.shape[axis])
        parts.append(_cut(x, axis, slice(begin, begin + count)).reshape(dims(part)))
        begin += count
    return parts


def _rows(n):
    """The first row and the last but one that are written."""
    if n.target is aten.select_scatter.default:
        x, axis, index = value_of(n), n.args[2], n.args[3]
        first = index % whole(x.shape[axis])
        return first, first + 1
    start, end = (*n.args[3:5], None, None)[:2] if len(n.args) > 3 else (None, None)
    return slice(start, end).indices(whole(value_of(n).shape[(*n.args[2:3], 0)[0]]))[:2]


def _scatters(n):
    """All rows of a range, of which there are some."""
    source = value_of(n.args[1])
    numbers = all(isinstance(a, (int, type(None))) for a in n.args[2:])
    return source.dtype is value_of(n).dtype and numbers and n.args[5:] in ((), (1,)) and _rows(n)[0] < _rows(n)[1]


@takes(aten.slice_scatter.default, aten.select_scatter.default, when=_scatters, light=True)
def _scatter(n, x, source, axis=0, *where):
    """x with the source in place of some rows."""
    axis, (first, end) = axis % x.ndim, _rows(n)
    size = [*x.shape[:axis], end - first, *x.shape[axis + 1:]]
    parts = [_cut(x, axis, slice(0, first))] if first else []
    parts.append(source.reshape(size))
    if end < x.shape[axis]:
        parts.append(_cut(x, axis, slice(end, x.shape[axis])))
    return opjit.concatenate(parts, axis) if len(parts) > 1 else parts[0]


@takes(aten.copy.default, light=True, when=lambda n: _casts(n, 1))
def _copy_of(n, x, source, *args):
    """The source in the type and shape of x."""
    source = _of_rank(cast(source, value_of(n).dtype, dtype_at(n, 1)), value_of(n).dim())
    return opjit.broadcast_to(source, dims(value_of(n)))


def _alike(n):
    return all(value_of(x).dtype is value_of(n).dtype and value_of(x).dim() == value_of(n).dim() for x in n.args[0])


@takes(aten.cat.default, light=True, when=_alike)
def _cat(n, tensors, axis=0):
    return opjit.concatenate(tensors, axis)


def _doubles(n):
    """The times that each of the last dimensions becomes larger, powers of two, whose quotients have no rounding."""
    x, y, scales = value_of(n.args[0]), value_of(n), n.args[2:]
    times = [whole(b) // whole(a) for a, b in zip(x.shape[2:], y.shape[2:])]
    exact = all(whole(b) == t * whole(a) and t & (t - 1) == 0 and t > 0
                for a, b, t in zip(x.shape[2:], y.shape[2:], times))
    return times if exact and all(s in (None, t) for s, t in zip(scales, times)) else None


@takes(*(getattr(aten, f"{name}{d}d").default for name in ("upsample_nearest", "_upsample_nearest_exact")
         for d in (1, 2, 3)), when=_doubles)
def _nearest(n, x, *args):
    """Each element repeated along each of the last dimensions."""
    apart, wide = list(x.shape[:2]), list(x.shape[:2])
    for size, times in zip(x.shape[2:], _doubles(n)):
        apart += [size, 1]
        wide += [size, times]
    return opjit.broadcast_to(x.reshape(apart), wide).reshape(dims(value_of(n)))


def _only_adds(n):
    return has_no_bool(n) and all(isinstance(p, int) and p >= 0 for p in n.args[1])


@takes(aten.constant_pad_nd.default, when=_only_adds, light=True)
def _pad(n, x, pad, value=0):
    rows = [(pad[2 * d], pad[2 * d + 1]) for d in range(len(pad) // 2)][::-1]
    rows = [(0, 0)] * (x.ndim - len(rows)) + rows
    value = float(value) if value_of(n).dtype in FLOATS else int(value)
    return ops.padding1(x, padding_mode="CONSTANT", padding_value=value, start_padding=[a for a, _ in rows],
                        end_padding=[b for _, b in rows])


@takes(aten.flip.default, light=True)
def _flip(n, x, axes):
    index = [slice(None)] * x.ndim
    for a in axes:
        index[a] = slice(None, None, -1)
    return x[tuple(index)]


@takes(aten.roll.default, light=True)
def _roll(n, x, shifts, axes=()):
    """Elements that leave at one end of an axis come in at the other; without axes, of all elements in a row."""
    shape = x.shape
    x, axes = (x, axes) if axes else (x.reshape([-1]), [0])
    for shift, axis in zip(shifts, axes):
        axis %= x.ndim
        size = x.shape[axis]
        first = -shift % size
        if first:
            x = opjit.concatenate([_cut(x, axis, slice(first, size)), _cut(x, axis, slice(0, first))], axis)
    return x.reshape(shape)


@takes(aten.repeat.default, light=True)
def _repeat(n, x, repeats):
    if not repeats:
        return x
    return opjit.tile(x.reshape([1] * (len(repeats) - x.ndim) + list(x.shape)), repeats)


# --- along axes -------------------------------------------------------------------------------------------------------
def _reduced(n, function, x, axes):
    """Over the axes, of which none or an empty list are all."""
    return along(function, x, axes).reshape(dims(value_of(n)))


@takes(aten.sum.dim_IntList, aten.sum.default, light=True)
def _sum(n, x, axes=None, keepdim=False, dtype=None):
    return cast(_reduced(n, opjit.sum, cast(x, wide(n), dtype_at(n, 0)), axes), value_of(n).dtype)


@takes(aten.mean.dim, aten.mean.default, when=is_float, light=True)
def _mean(n, x, axes=None, keepdim=False, dtype=None):
    return cast(_reduced(n, opjit.mean, cast(x, wide(n), dtype_at(n, 0)), axes), value_of(n).dtype)


def _propagating(function):
    """The greatest or least element, NaN where there is one."""
    def build(n, x, axes=None, keepdim=False):
        return _reduced(n, function, x, axes)
    return build


takes(aten.amax.default, when=has_no_bool, light=True)(_propagating(opjit.max))
takes(aten.amin.default, when=has_no_bool, light=True)(_propagating(opjit.min))


@takes(aten.cumsum.default, when=lambda n: has_no_bool(n) and value_of(n).dtype in (
    torch.float32, torch.float64, torch.int64, torch.int32), light=True)
def _cumsum(n, x, axis, dtype=None):
    return opjit.cumsum(cast(x, value_of(n).dtype, dtype_at(n, 0)), axis)


@takes(aten.any.dim, aten.any.default, aten.any.dims, light=True)
def _any(n, x, axes=None, keepdim=False):
    x = cast(x, torch.bool, dtype_at(n, 0))
    return _reduced(n, opjit.max, x, [axes] if isinstance(axes, int) else axes)


@takes(aten.all.dim, aten.all.default, aten.all.dims, light=True)
def _all(n, x, axes=None, keepdim=False):
    x = cast(x, torch.bool, dtype_at(n, 0))
    return _reduced(n, opjit.min, x, [axes] if isinstance(axes, int) else axes)


@takes(aten._softmax.default, when=gives_float)
def _softmax(n, x, axis, *more):
    return opjit.softmax(cast(x, value_of(n).dtype), axis)


def _softmax_or_none(x, axis):
    """0 where everything is masked."""
    return opjit.where(opjit.max(x, axis, True) == -opjit.inf, 0.0, opjit.softmax(x, axis))


@takes(aten._safe_softmax.default, when=gives_float)
def _safe_softmax(n, x, axis, dtype=None):
    return _softmax_or_none(cast(x, value_of(n).dtype), axis)


@takes(aten._log_softmax.default, when=gives_float)
def _log_softmax(n, x, axis, *more):
    return opjit.log_softmax(cast(x, value_of(n).dtype), axis)


@takes(aten._softmax_backward_data.default, when=gives_float)
def _softmax_backward(n, grad, y, axis, dtype):
    product = grad * y
    return cast(product - y * opjit.sum(product, axis, True), value_of(n).dtype)


@takes(aten._log_softmax_backward_data.default, when=gives_float)
def _log_softmax_backward(n, grad, y, axis, dtype):
    return cast(grad - opjit.exp(y) * opjit.sum(grad, axis, True), value_of(n).dtype)


# --- products ---------------------------------------------------------------------------------------------------------
def _is_wide(n):
    """Halves are summed in another type by PyTorch."""
    return is_float(n) and value_of(n).dtype is not torch.float16


@takes(aten.mm.default, aten.bmm.default, when=_is_wide)
def _mm(n, a, b):
    return opjit.matmul(a, b)


@takes(aten.addmm.default, when=_is_wide)
def _addmm(n, c, a, b, beta=1, alpha=1):
    y = opjit.matmul(a, b)
    y = y if alpha == 1 else y * float(alpha)
    return y + (c if beta == 1 else c * float(beta))


def _plain_attention(n):
    """Without dropout, whose numbers are PyTorch's, without what training keeps."""
    more, (q, k, _) = n.args[3:] + tuple(n.kwargs.values()), map(value_of, n.args[:3])
    return q.dtype in (torch.float32, torch.float64) and not used(n) - {0} and (
        not n.args[3:4] or n.args[3] == 0) and len(more) <= 4 and whole(q.shape[1]) % whole(k.shape[1]) == 0


def _heads(x, count):
    """x with so many heads, each of which neighbours share."""
    if x.shape[1] == count:
        return x
    apart, times = [*x.shape[:2], 1, *x.shape[2:]], count // x.shape[1]
    shape = [*x.shape[:2], times, *x.shape[2:]]
    return opjit.broadcast_to(x.reshape(apart), shape).reshape([x.shape[0], count, *x.shape[2:]])


@takes(aten._scaled_dot_product_flash_attention_for_cpu.default, when=_plain_attention)
def _attention(n, q, k, v, dropout=0.0, is_causal=False, *, attn_mask=None, scale=None):
    scale = scale if scale is not None else q.shape[-1] ** -0.5
    k, v = _heads(k, q.shape[1]), _heads(v, q.shape[1])
    scores = opjit.matmul(q, k.transpose(0, 1, 3, 2)) * float(scale)
    if is_causal:
        scores = opjit.where(opjit.tri(*scores.shape[-2:]), scores, -opjit.inf)
    if attn_mask is None:
        return [opjit.matmul(opjit.softmax(scores, -1), v), None]
    return [opjit.matmul(_softmax_or_none(scores + attn_mask, -1), v), None]
