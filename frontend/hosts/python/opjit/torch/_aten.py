# SPDX-License-Identifier: Apache-2.0
"""What opjit takes of aten: a table from an overload to a function that says the same with a graph's tensors.

A function gets the node and its arguments, with tensors of opjit in the place of nodes.  A tensor without dimensions
has one of size 1 here, and booleans are uint8.  What opjit computes in another way than PyTorch for some input (NaN
among it) is not in the table, or is refused by the `when` of its entry, and stays with PyTorch.
"""
import math
from dataclasses import dataclass
from typing import Callable

import torch

import opjit
from opjit import ops
from opjit._tensor import Tensor

from ._sizes import whole

aten, prims = torch.ops.aten, torch.ops.prims

NAMES = {torch.float32: "float32", torch.float64: "float64", torch.float16: "float16", torch.bool: "uint8",
         torch.uint8: "uint8", torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64"}
FLOATS = (torch.float32, torch.float64, torch.float16)
RANK = 8


@dataclass(frozen=True)
class Entry:
    """build: makes the tensor.  when(node): is it taken.  view: PyTorch's own where a result would be one.  light: by
    itself it gains nothing, since PyTorch moves the same bytes.  free: costs nothing when computed again beside others.
    generated: reads no tensor, and build has the graph as second argument.  lag: how many passes over memory PyTorch's
    own is ahead."""
    build: Callable
    when: Callable
    view: bool
    light: bool
    free: bool
    generated: bool
    lag: int


TABLE = {}


def takes(*targets, when=lambda n: True, view=False, light=False, free=False, generated=False,
          lag=0):
    """The function is for these overloads."""
    def keep(build):
        for target in targets:
            TABLE[target] = Entry(build, when, view, light or view, free or view or generated, generated, lag)
        return build
    return keep


def value_of(n):
    """What PyTorch would have there: a tensor without memory."""
    return n.meta["val"]


def frozen(n):
    """The tensor that an input of the graph is in all calls, if there is one."""
    return n.meta.get("opjit_frozen")


def elements(x):
    """How many a tensor has."""
    return math.prod(whole(s) for s in x.shape)


def dims(x):
    """The shape in opjit."""
    return tuple(whole(s) for s in x.shape) or (1,)


def name_of(n):
    """The data type in opjit of what the node gives."""
    return NAMES[value_of(n).dtype]


def dtype_at(n, index):
    """The data type of an argument that is a tensor."""
    return value_of(n.args[index]).dtype


def cast(x, dtype, source=None):
    """x in the type; source: what it is for PyTorch, whose booleans are 0 and 1."""
    if dtype is torch.bool and source is not torch.bool:
        return x != 0
    return x if x.dtype == NAMES[dtype] else x.astype(NAMES[dtype])


def number(graph, value, dtype):
    """One element."""
    value = float(value) if dtype in FLOATS else int(value)
    return opjit.full((1,), value, NAMES[dtype]).join(graph)


def promoted(n, args, dtype=None):
    """The arguments, which begin the node's, in the type in which PyTorch computes."""
    graph = next(a._graph for a in args if isinstance(a, Tensor))
    given = [value_of(a) if isinstance(a, torch.fx.Node) else a for a in n.args[:len(args)]]
    given = [whole(g) if isinstance(g, torch.SymInt) else g for g in given]
    if dtype is None:
        dtype = torch.result_type(given[0], given[1])
    return [cast(a, dtype, g.dtype) if isinstance(a, Tensor) else number(graph, a, dtype)
            for a, g in zip(args, given)]


def used(n):
    """Which of a node's results somebody reads."""
    return {user.args[1] for user in n.users if user.users}


def along(function, x, axes):
    """A sum or the like over the axes, none of which is all, with axes of size 1 in their places.  The last axes go
    first, rows of which have vectors; the rest, with a kept one between, is done with their results."""
    axes = {a % x.ndim for a in axes} if axes else set(range(x.ndim))
    end = x.ndim
    while end - 1 in axes:
        end -= 1
    for some in (tuple(range(end, x.ndim)), tuple(sorted(a for a in axes if a < end))):
        x = function(x, some, True) if some else x
    return x


def has_no_bool(n):
    """add and the like of booleans are other functions."""
    return value_of(n).dtype is not torch.bool


def is_float(n):
    return value_of(n).dtype in FLOATS


def wide(n):
    """In what PyTorch computes: halves as floats."""
    dtype = value_of(n).dtype
    return torch.float32 if dtype is torch.float16 else dtype


def gives_float(n):
    """The result is, and so is the first argument."""
    return is_float(n) and dtype_at(n, 0) in FLOATS


# --- of one -----------------------------------------------------------------------------------------------------------
def _unary(function, *targets, when=is_float, light=False, free=False, lag=0):
    def build(n, x):
        return function(cast(x, value_of(n).dtype, dtype_at(n, 0)))
    takes(*targets, when=when, light=light, free=free, lag=lag)(build)


def _sigmoid(x):
    """Of float32 as PyTorch has it, with hardly any denormals: e^-x is infinite where they would begin.  Products with
    denormals take a hundred times as long on Intel's CPUs."""
    return 1 / (1 + opjit.exp(-opjit.minimum(x, 87.33654))) if x.dtype == "float32" else opjit.sigmoid(x)


_unary(_sigmoid, aten.sigmoid.default)
for _name in ("exp", "log", "sqrt", "tanh"):
    _unary(getattr(opjit, _name), getattr(aten, _name).default)
for _name, _lag in (("sin", 1), ("cos", 1), ("erf", 3)):
    _unary(getattr(opjit, _name), getattr(aten, _name).default, light=True, lag=_lag)
for _name in ("tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"):
    _unary(getattr(ops, "element_wise_" + _name), getattr(aten, _name).default)
_unary(opjit.ceil, aten.ceil.default, light=True)
_unary(opjit.floor, aten.floor.default, light=True)
_unary(lambda x: ops.element_wise_round(x, rounding_mode="HALVES_TO_NEAREST_EVEN"), aten.round.default, light=True)
_unary(lambda x: ops.element_wise_round(x, rounding_mode="TOWARD_ZERO"), aten.trunc.default, light=True)
_unary(opjit.abs, aten.abs.default, when=lambda n: value_of(n).dtype not in (torch.bool, torch.uint8), light=True)
_unary(opjit.negative, aten.neg.default, when=lambda n: value_of(n).dtype not in (torch.bool, torch.uint8), light=True,
       free=True)
_unary(lambda x: 1 / opjit.sqrt(x), aten.rsqrt.default)
_unary(lambda x: 1 / x, aten.reciprocal.default, light=True)
_unary(opjit.relu, aten.relu.default, light=True)
_unary(lambda x: x * _sigmoid(x), aten.silu.default)


# Half of erf(x / sqrt(2)) is x times a quotient of polynomials in x * x, whose coefficients these are, lowest first:
# the one of these degrees whose error, times x, is least where |x| is at most 5.66.  At NORMAL_END the quotient times x
# is 0.5 exactly, as float32 has it, so that the integral is 0 and 1 beyond.
NORMAL_END = 5.6409287
NORMAL_ABOVE = (0.398941842, 0.0362964964, 0.00483393371, 0.000194880112, 6.63637818e-06, 2.14360026e-08)
NORMAL_BELOW = (1.0, 0.257643984, 0.0300638285, 0.00202984585, 8.26014114e-05, 1.18055994e-06)


def _polynomial(coefficients, x):
    y = coefficients[-1]
    for c in coefficients[-2::-1]:
        y = y * x + c
    return y


def _normal_integral(n, x):
    """Of the normal distribution, up to x; times x as near as PyTorch's own in float32."""
    if value_of(n).dtype is torch.float64:
        return 0.5 * (1 + opjit.erf(x * 0.7071067811865476))
    x = opjit.minimum(opjit.maximum(x, -NORMAL_END), NORMAL_END)
    square = x * x
    return 0.5 + x * _polynomial(NORMAL_ABOVE, square) / _polynomial(NORMAL_BELOW, square)


@takes(aten.gelu.default, when=is_float)
def _gelu(n, x, approximate="none"):
    x = cast(x, wide(n))
    y = x * _normal_integral(n, x) if approximate == "none" else 0.5 * x * (1 + opjit.tanh(_gelu_inner(x)))
    return cast(y, value_of(n).dtype)


def _gelu_inner(x):
    return 0.7978845608028654 * (x + 0.044715 * x * x * x)


@takes(aten.gelu_backward.default, when=is_float)
def _gelu_backward(n, grad, x, approximate="none"):
    grad, x = cast(grad, wide(n)), cast(x, wide(n))
    if approximate == "none":
        y = grad * (_normal_integral(n, x) + x * opjit.exp(-0.5 * x * x) * 0.3989422804014327)
    else:
        t = opjit.tanh(_gelu_inner(x))
        slope = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x)
        y = grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope)
    return cast(y, value_of(n).dtype)


@takes(aten.silu_backward.default, when=is_float)
def _silu_backward(n, grad, x):
    s = _sigmoid(x)
    return grad * s * (1 + x * (1 - s))


@takes(aten.sigmoid_backward.default, when=is_float)
def _sigmoid_backward(n, grad, y):
    return grad * (1 - y) * y


@takes(aten.tanh_backward.default, when=is_float)
def _tanh_backward(n, grad, y):
    return grad * (1 - y * y)


@takes(aten.threshold_backward.default, when=is_float, light=True)
def _threshold_backward(n, grad, x, threshold):
    return opjit.where(x <= float(threshold), 0.0, grad)


@takes(aten.leaky_relu.default, when=is_float)
def _leaky_relu(n, x, slope=0.01):
    return opjit.where(x > 0.0, x, x * float(slope))


@takes(aten.hardtanh.default, when=is_float)
def _hardtanh(n, x, least=-1.0, most=1.0):
    return _bounded(n, x, least, most)


@takes(aten.hardsigmoid.default, when=is_float)
def _hardsigmoid(n, x):
    return _bounded(n, x + 3.0, 0.0, 6.0) / 6.0


@takes(aten.hardswish.default, when=is_float)
def _hardswish(n, x):
    return x * _bounded(n, x + 3.0, 0.0, 6.0) / 6.0


def _exp_less_1(x):
    """exp(x) - 1 of what is not positive; near 0 the difference would have few digits."""
    t = opjit.tanh(x * 0.5)
    return 2.0 * t / (1.0 - t)


@takes(aten.expm1.default, when=is_float)
def _expm1(n, x):
    y = cast(x, wide(n), dtype_at(n, 0))
    return cast(opjit.where(y > 0.5, opjit.exp(y) - 1.0, _exp_less_1(y)), value_of(n).dtype)


@takes(aten.log1p.default, when=is_float)
def _log1p(n, x):
    """log(1 + x), whose rounding of the sum is made good by a quotient."""
    x = cast(x, wide(n), dtype_at(n, 0))
    more = x + 1.0
    y = opjit.where(more == 1.0, x, opjit.log(more) * (x / (more - 1.0)))
    return cast(opjit.where(x == opjit.inf, x, y), value_of(n).dtype)


@takes(aten.elu.default, when=is_float)
def _elu(n, x, alpha=1.0, scale=1.0, input_scale=1.0):
    y = cast(x, wide(n))
    below = _exp_less_1(y if input_scale == 1 else y * float(input_scale)) * float(alpha * scale)
    return cast(opjit.where(y > 0.0, y if scale == 1 else y * float(scale), below), value_of(n).dtype)


# --- of two -----------------------------------------------------------------------------------------------------------
def _scaled(n, a, b, alpha):
    a, b = promoted(n, (a, b))
    return a, b if alpha == 1 else b * number(b._graph, alpha, value_of(n).dtype)


def _all_bools(n):
    return value_of(n).dtype is torch.bool and all(isinstance(a, torch.fx.Node) for a in n.args)


def _sums(n):
    """Sums and products of booleans are or and and."""
    return has_no_bool(n) or _all_bools(n)


@takes(aten.add.Tensor, aten.add.Scalar, when=_sums, light=True, free=True)
def _add(n, a, b, alpha=1):
    if not has_no_bool(n):
        return opjit.logical_or(a, b)
    a, b = _scaled(n, a, b, alpha)
    return a + b


@takes(aten.sub.Tensor, aten.sub.Scalar, when=has_no_bool, light=True, free=True)
def _sub(n, a, b, alpha=1):
    a, b = _scaled(n, a, b, alpha)
    return a - b


@takes(aten.rsub.Scalar, aten.rsub.Tensor, when=has_no_bool, light=True, free=True)
def _rsub(n, a, b, alpha=1):
    a, b = promoted(n, (a, b))
    return b - (a if alpha == 1 else a * number(a._graph, alpha, value_of(n).dtype))


@takes(aten.mul.Tensor, aten.mul.Scalar, when=_sums, light=True, free=True)
def _mul(n, a, b):
    if not has_no_bool(n):
        return opjit.logical_and(a, b)
    a, b = promoted(n, (a, b))
    return a * b


@takes(aten.div.Tensor, aten.div.Scalar, when=is_float, light=True)
def _div(n, a, b):
    a, b = promoted(n, (a, b), value_of(n).dtype)
    return a / b


@takes(aten.pow.Tensor_Tensor, aten.pow.Scalar, when=is_float, light=True, lag=5)
def _pow(n, a, b):
    a, b = promoted(n, (a, b))
    return a ** b


POWERS = {2: lambda x: x * x, 3: lambda x: x * x * x, -1: lambda x: 1 / x, -2: lambda x: 1 / (x * x),
          0.5: lambda x: opjit.sqrt(x), -0.5: lambda x: 1 / opjit.sqrt(x)}


@takes(aten.pow.Tensor_Scalar, when=lambda n: gives_float(n) and n.args[1] in POWERS, light=True)
def _power(n, x, exponent):
    return POWERS[exponent](x)


def _binary(function, *targets, when=lambda n: True, free=False):
    def build(n, a, b):
        return function(*promoted(n, (a, b)))
    takes(*targets, when=when, light=True, free=free)(build)


_binary(opjit.maximum, aten.maximum.default)
_binary(opjit.minimum, aten.minimum.default)
for _name, _function in (("eq", opjit.equal), ("ne", lambda a, b: a != b), ("lt", opjit.less), ("gt", opjit.greater),
                         ("le", opjit.less_equal), ("ge", opjit.greater_equal)):
    _binary(_function, getattr(aten, _name).Tensor, getattr(aten, _name).Scalar, free=True)


@takes(aten.remainder.Scalar, light=True, free=True,
       when=lambda n: value_of(n).dtype in (torch.int32, torch.int64) and n.args[1] != 0)
def _remainder(n, a, b):
    a, b = promoted(n, (a, b))
    return a % b


def _of_bools(function, *targets, when=lambda n: True):
    def build(n, *args):
        return function(*(cast(a, torch.bool, dtype_at(n, i)) for i, a in enumerate(args)))
    takes(*targets, when=when, light=True, free=True)(build)


_of_bools(opjit.logical_not, aten.logical_not.default)
_of_bools(opjit.logical_and, aten.logical_and.default)
_of_bools(opjit.logical_or, aten.logical_or.default)
_of_bools(opjit.logical_xor, aten.logical_xor.default)
_of_bools(opjit.logical_not, aten.bitwise_not.default, when=_all_bools)
_of_bools(opjit.logical_or, aten.bitwise_or.Tensor, when=_all_bools)
_of_bools(opjit.logical_xor, aten.bitwise_xor.Tensor, when=_all_bools)
COMPARISONS = {getattr(getattr(aten, name), kind) for name in ("eq", "ne", "lt", "gt", "le", "ge")
               for kind in ("Tensor", "Scalar")}


@takes(aten.bitwise_and.Tensor, when=_all_bools, light=True, free=True)
def _bitwise_and(n, a, b):
    """Of two comparisons by their bits, which need not be compared with 0; other masks may become bounds of loops."""
    return a & b if all(i.target in COMPARISONS for i in n.args) else opjit.logical_and(a, b)


# --- that choose ------------------------------------------------------------------------------------------------------
@takes(aten.where.self, light=True, free=True, when=lambda n: dtype_at(n, 0) is torch.bool)
def _where(n, condition, a, b):
    dtype = value_of(n).dtype
    return opjit.where(condition, cast(a, dtype, dtype_at(n, 1)), cast(b, dtype, dtype_at(n, 2)))


@takes(aten.masked_fill.Scalar, aten.masked_fill.Tensor, light=True, free=True)
def _masked_fill(n, x, mask, value):
    dtype = value_of(n).dtype
    value = cast(value, dtype, dtype_at(n, 2)) if isinstance(value, Tensor) else number(x._graph, value, dtype)
    return opjit.where(mask, value, x)


def _bounded(n, x, least, most):
    """A NaN stays one."""
    dtype = value_of(n).dtype
    if least is not None:
        least = cast(least, dtype) if isinstance(least, Tensor) else number(x._graph, least, dtype)
        x = opjit.maximum(x, least)
    if most is not None:
        most = cast(most, dtype) if isinstance(most, Tensor) else number(x._graph, most, dtype)
        x = opjit.minimum(x, most)
    return x


@takes(aten.clamp.default, aten.clamp.Tensor, when=has_no_bool, light=True)
def _clamp(n, x, min=None, max=None):
    return _bounded(n, cast(x, value_of(n).dtype, dtype_at(n, 0)), min, max)


@takes(aten.clamp_min.default, when=has_no_bool, light=True)
def _clamp_min(n, x, min):
    return _bounded(n, cast(x, value_of(n).dtype, dtype_at(n, 0)), min, None)


@takes(aten.clamp_max.default, when=has_no_bool, light=True)
def _clamp_max(n, x, max):
    return _bounded(n, cast(x, value_of(n).dtype, dtype_at(n, 0)), None, max)


@takes(aten.isnan.default, when=lambda n: dtype_at(n, 0) in FLOATS, light=True)
def _isnan(n, x):
    return opjit.isnan(x)


@takes(aten.addcmul.default, when=is_float)
def _addcmul(n, x, a, b, value=1):
    return x + a * b if value == 1 else x + float(value) * a * b


@takes(aten.addcdiv.default, when=is_float)
def _addcdiv(n, x, a, b, value=1):
    return x + a / b if value == 1 else x + float(value) * (a / b)
