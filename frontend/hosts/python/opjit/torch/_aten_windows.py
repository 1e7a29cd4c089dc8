# SPDX-License-Identifier: Apache-2.0
"""Of the table, what goes over the last dimensions of an image: pooling, channels that become pixels, and back."""
import torch

from opjit import ops

from ._aten import FLOATS, aten, dims, is_float, takes, used, value_of
from ._sizes import whole

WIDE = (torch.float32, torch.float64)  # halves are averaged in another type by PyTorch


def _each(value, count, default=None):
    """One number for each dimension; an empty list is the default."""
    if isinstance(value, int):
        return [value] * count
    return list(value) * (count if len(value) == 1 else 1) if len(value) else list(default)


class _Windows:
    """Those of a pooling node over its last `count` dimensions."""

    def __init__(self, n, count, size, stride=(), padding=0, dilation=1):
        self.size = _each(size, count)
        self.stride = _each(stride, count, self.size)
        self.start, self.dilation = _each(padding, count), _each(dilation, count)
        before = [whole(s) for s in value_of(n.args[0]).shape[-count:]]
        result = value_of(n)[0] if isinstance(value_of(n), tuple) else value_of(n)
        self.shape = dims(result)
        ends = zip(self.shape[-count:], before, self.size, self.stride, self.start, self.dilation)
        self.end = [max(0, (after - 1) * stride + (size - 1) * dilation + 1 - s - start)
                    for after, s, size, stride, start, dilation in ends]

    def pool(self, function, x, **more):
        """The dimensions before the windows' are two, of which there may be one."""
        given = x.reshape([1] * (2 + len(self.size) - x.ndim) + list(x.shape))
        y = function(given, strides=self.stride, window_size=self.size, start_padding=self.start,
                     end_padding=self.end, dilations=self.dilation, **more)
        return y.reshape(self.shape)


def _with_defaults(n, *defaults):
    """The arguments behind the tensor."""
    return [*n.args[1:], *defaults[len(n.args) - 1:]]


def _is_greatest_alone(n):
    """Nobody reads where it was."""
    return used(n) <= {0} and value_of(n)[0].dtype in FLOATS and not n.kwargs


@takes(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default, when=_is_greatest_alone)
def _greatest(n, x, *args):
    count = 2 if n.target is aten.max_pool2d_with_indices.default else 3
    size, stride, padding, dilation, _ = _with_defaults(n, None, (), 0, 1, False)
    return [_Windows(n, count, size, stride, padding, dilation).pool(ops.max_pooling2, x), None]


def _is_mean(n):
    """Of all of a window, or of what of it lies in the image; where windows stick out at the end (ceil_mode) PyTorch
    has a third way."""
    _, _, _, ceil, with_padding, divisor = _with_defaults(n, None, (), 0, False, True, None)
    return value_of(n).dtype in WIDE and divisor is None and not (ceil and with_padding) and not n.kwargs


@takes(aten.avg_pool2d.default, aten.avg_pool3d.default, when=_is_mean)
def _mean_of(n, x, *args):
    count = 2 if n.target is aten.avg_pool2d.default else 3
    size, stride, padding, _, with_padding, _ = _with_defaults(n, None, (), 0, False, True, None)
    return _Windows(n, count, size, stride, padding).pool(ops.average_pooling1, x, include_padding=with_padding)


def _is_divided(n):
    """All windows have one size."""
    x, y = value_of(n.args[0]), value_of(n)
    return x.dtype in WIDE and all(whole(a) % whole(b) == 0 for a, b in zip(x.shape[-2:], y.shape[-2:]))


@takes(aten._adaptive_avg_pool2d.default, when=_is_divided)
def _adaptive(n, x, sizes):
    size = [a // b for a, b in zip(x.shape[-2:], dims(value_of(n))[-2:])]
    return _Windows(n, 2, size).pool(ops.average_pooling1, x, include_padding=False)


@takes(aten.pixel_shuffle.default, when=is_float)
def _shuffle(n, x, times):
    *front, channels, height, width = x.shape
    count = len(front)
    x = x.reshape([*front, channels // times**2, times, times, height, width])
    x = x.transpose([*range(count), *(count + i for i in (0, 3, 1, 4, 2))])
    return x.reshape(dims(value_of(n)))


@takes(aten.pixel_unshuffle.default, when=is_float)
def _unshuffle(n, x, times):
    *front, channels, height, width = x.shape
    count = len(front)
    x = x.reshape([*front, channels, height // times, times, width // times, times])
    x = x.transpose([*range(count), *(count + i for i in (0, 2, 4, 1, 3))])
    return x.reshape(dims(value_of(n)))
