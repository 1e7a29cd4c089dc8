# SPDX-License-Identifier: Apache-2.0
"""opjit compiles graphs of tensor operators, and ONNX models, to machine code.

    g = opjit.Graph()
    x = g.input((16, 512, 512))
    y = opjit.softmax(opjit.where(opjit.tri(512, 512), x, -opjit.inf))
    k = opjit.compile(y)
    result = k(array)                  # NumPy, PyTorch, JAX, anything with a buffer or DLPack; out= takes the result

The functions of this module read like NumPy's; opjit.ops has every operator.
"""
import functools as _functools
import os as _os
import warnings as _warnings
from math import inf, nan

from . import _opjit
from ._opjit import Error, Kernel, __version__
from ._arrays import content as _content, dtype_name as _dtype_name, is_bool as _is_bool
from ._tensor import (Deferred as _Deferred, Graph, Tensor, _node, add_node as _add_node, axes_of as _axes,
                      common_dtype as _common_dtype, graph_of as _graph_of, tensor as _tensor)
from . import ops
from ._numpy import diff, moveaxis, outer, ravel, repeat, roll, round

__all__ = [
    "Error", "Graph", "Kernel", "Tensor", "abs", "add", "all", "any", "arange", "argmax", "argmin", "broadcast_to",
    "ceil", "clip", "compile", "concatenate", "cos", "cumsum", "diff", "divide", "equal", "erf", "exp", "expand_dims",
    "eye", "flip", "floor", "floor_divide", "full", "gelu", "greater", "greater_equal", "inf", "isnan", "layer_norm",
    "less", "less_equal", "log", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "matmul",
    "max", "maximum", "mean", "min", "minimum", "moveaxis", "multiply", "nan", "negative", "ones", "ops", "outer",
    "pad", "power", "prod", "ravel", "relu", "repeat", "reshape", "roll", "round", "sigmoid", "sign", "sin", "softmax",
    "split", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "tanh", "tile", "topk",
    "transpose", "tri", "tril", "triu", "var", "where", "zeros"]


# --- compiling --------------------------------------------------------------------------------------------------------
def compile(what, *, level="auto", threads=1, interpret=False, dims=None, shapes=None, values=None):
    """A kernel of a tensor, of a list of tensors, of a dictionary of them by name, or of an .onnx model (a path, or its
    bytes).  level: "quick" to compile, or "peak" of the code's speed.  threads: that a call uses, 0 for each core.
    Of a model: dims={"batch": 1} for dimensions that it only names, shapes={"x": (1, 3)} for inputs as a whole,
    values={"n": array} for inputs that are constants.
    dims={"n": (1, 4096, 512)}: one kernel for all sizes from 1 to 4096, 512 being a typical one, of a model or of a
    function that takes sizes by name and gives tensors; (32, 4096, 512, 32): for the multiples of 32 among them."""
    if not 0 <= threads <= 256:
        raise ValueError(f"threads: {threads}, must be 0 to 256")
    if what is None or isinstance(what, Graph):
        raise TypeError(f"tensors, a model or a function are compiled, {type(what)} given")
    dims = {f"{name}={size}" if isinstance(size, str) else name: 0 if isinstance(size, str) else size
            for name, size in (dims or {}).items()}
    ranges = dict(_range(name, size) for name, size in dims.items() if not isinstance(size, int))
    if isinstance(what, (str, bytes, _os.PathLike)):
        constants = {name: _content(array) for name, array in (values or {}).items()}
        known = {name: size for name, size in dims.items() if isinstance(size, int)}

        def read(*sizes):
            try:
                return _opjit.Graph(what, dims={**known, **dict(zip(ranges, sizes))}, shapes=dict(shapes or {}),
                                    values=constants, sample=bool(ranges))
            except Error as error:
                if (error.operator, error.value) == ("input", "unknown"):  # how sizes are given here
                    error.args = (f'{error}, by dims={{"NAME": 1}} or shapes={{"INPUT": (1, 3)}}',)
                raise
        if ranges:
            return _told(_opjit.compile_dynamic(read, _rows(ranges), level, interpret, threads, True), interpret)
        return _told(read().compile(level, interpret, threads), interpret)
    if callable(what) and not isinstance(what, _Deferred):
        if len(ranges) != len(dims or {}) or not ranges or shapes or values:
            raise TypeError("a function is compiled with dims={name: (least, largest, typical)} alone")

        def build(*sizes):
            graph, outputs = _outputs(what(**dict(map(_size, ranges, sizes))))
            return graph._built(outputs)
        return _told(_opjit.compile_dynamic(build, _rows(ranges), level, interpret, threads, False), interpret)
    if dims or shapes or values:
        raise TypeError("dims, shapes and values are for models, and dims for functions")
    graph, outputs = _outputs(what)
    return _told(graph._built(outputs).compile(level, interpret, threads), interpret)


def _told(kernel, interpret):
    """The kernel; a warning where it runs in the interpreter and nobody asked for that."""
    if not interpret and kernel.info["interpreted"]:
        _warnings.warn("kernels run in opjit's interpreter, a thousand times slower than code: code generation is not "
                       "there, or of another build (OPJIT_VERBOSE=1 says why; interpret=True asks for it)",
                       RuntimeWarning, stacklevel=3)
    return kernel


def _outputs(what):
    """The graph, and [(name, tensor), ...]."""
    if isinstance(what, dict):
        outputs = list(what.items())
    else:
        outputs = [(None, t) for t in (what if isinstance(what, (list, tuple)) else [what])]
    graph = _graph_of([t for _, t in outputs])
    return graph, [(n, _tensor(graph, t)) for n, t in outputs]


def _range(name, size):
    """The kernel's name of the dimension, and (least, largest, typical); without a typical size the middle.  With a
    step, all are divided by it, and the name is "name/step"."""
    if not isinstance(size, (tuple, list)) or len(size) not in (2, 3, 4) or not set(map(type, size)) <= {int}:
        raise TypeError(f"dims[{name!r}]: a size, or (least, largest, typical), or these and a step is needed")
    if len(size) < 4:
        return name, tuple(size) if len(size) == 3 else (*size, (size[0] + size[1]) // 2)
    for n in size:
        if size[3] < 1 or n % size[3] != 0:
            raise ValueError(f"dims[{name!r}]: {n} is no multiple of {size[3]}")
    return f"{name}/{size[3]}", tuple(n // size[3] for n in size[:3])


def _size(name, size):
    """The argument of a function, and its size, for one of the kernel's dimension."""
    name, _, step = name.partition("/")
    return name, size * int(step or 1)


def _rows(ranges):
    for name, numbers in ranges.items():
        for n in numbers:
            if n < 0:
                raise ValueError(f"dims[{name!r}]: {n}, must be at least 1")
    return tuple((name, *numbers) for name, numbers in ranges.items())


# --- generated tensors ------------------------------------------------------------------------------------------------
def _generate(type, values, shape, dtype):
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    is_bool = _is_bool(dtype)
    return _Deferred(lambda graph, dtype: graph._made(graph._core.node(type, (), values, [(dtype, shape)])[0], is_bool),
                     shape, _dtype_name(dtype))


def full(shape, value, dtype=None):
    """Every element is value."""
    return _generate("FILL_VALUE_CONSTANT", {"Value": value}, shape, dtype)


def zeros(shape, dtype=None):
    """Every element is 0."""
    return full(shape, 0, dtype)


def ones(shape, dtype=None):
    """Every element is 1."""
    return full(shape, 1, dtype)


def arange(start, stop=None, step=1, dtype=None):
    """start, start + step ... below stop."""
    start, stop = (0, start) if stop is None else (start, stop)
    count = -int(-(stop - start) // step) if isinstance(step, float) else len(range(start, stop, step))
    return _generate("FILL_VALUE_SEQUENCE", {"ValueStart": start, "ValueDelta": step}, (count,), dtype)


def eye(rows, columns=None, k=0, dtype=None):
    """1 where column - row is k, else 0."""
    return _generate("DIAGONAL_MATRIX1", {"Value": 1, "DiagonalFillBegin": k, "DiagonalFillEnd": k + 1},
                     (rows, columns or rows), dtype)


def tri(rows, columns=None, k=0, dtype=None):
    """1 where column - row is at most k, else 0."""
    return _generate("DIAGONAL_MATRIX1", {"Value": 1, "DiagonalFillBegin": -2**31, "DiagonalFillEnd": k + 1},
                     (rows, columns or rows), dtype)


def tril(x, k=0):
    """x where column - row is at most k, else 0."""
    return _node("DIAGONAL_MATRIX1", (x,), {"Value": 0, "DiagonalFillBegin": k + 1, "DiagonalFillEnd": 2**31 - 1})


def triu(x, k=0):
    """x where column - row is at least k, else 0."""
    return _node("DIAGONAL_MATRIX1", (x,), {"Value": 0, "DiagonalFillBegin": -2**31, "DiagonalFillEnd": k})


# --- pointwise --------------------------------------------------------------------------------------------------------
def _unary(type, text):
    def function(x):
        return _node(type, (x,))
    function.__doc__ = text
    return function


def _binary(type, text):
    def function(a, b):
        return _node(type, (a, b))
    function.__doc__ = text
    return function


abs = _unary("ELEMENT_WISE_ABS", "|x|")
negative = _unary("ELEMENT_WISE_NEGATE", "-x")
sign = _unary("ELEMENT_WISE_SIGN", "-1, 0 or 1")
sqrt = _unary("ELEMENT_WISE_SQRT", "Square root.")
exp = _unary("ELEMENT_WISE_EXP", "e to the x.")
log = _unary("ELEMENT_WISE_LOG", "Natural logarithm.")
sin = _unary("ELEMENT_WISE_SIN", "Sine.")
cos = _unary("ELEMENT_WISE_COS", "Cosine.")
tanh = _unary("ELEMENT_WISE_TANH", "Hyperbolic tangent.")
erf = _unary("ELEMENT_WISE_ERF", "Error function.")
ceil = _unary("ELEMENT_WISE_CEIL", "Rounded up.")
floor = _unary("ELEMENT_WISE_FLOOR", "Rounded down.")
isnan = _unary("ELEMENT_WISE_IS_NAN", "1 (uint8) for NaN.")
logical_not = _unary("ELEMENT_WISE_LOGICAL_NOT", "1 where x is 0.")
relu = _unary("ACTIVATION_RELU", "max(x, 0)")
sigmoid = _unary("ACTIVATION_SIGMOID", "1 / (1 + exp(-x))")
gelu = _unary("ACTIVATION_GELU", "x times the normal distribution's integral up to x.")
add = _binary("ELEMENT_WISE_ADD", "a + b")
subtract = _binary("ELEMENT_WISE_SUBTRACT", "a - b")
multiply = _binary("ELEMENT_WISE_MULTIPLY", "a * b")
maximum = _binary("ELEMENT_WISE_MAX", "The greater one of two elements.")
minimum = _binary("ELEMENT_WISE_MIN", "The lesser one of two elements.")
power = _binary("ELEMENT_WISE_POW", "a to the b.")
equal = _binary("ELEMENT_WISE_LOGICAL_EQUALS", "a == b, as uint8.")
greater = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN", "a > b, as uint8.")
greater_equal = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL", "a >= b, as uint8.")
less = _binary("ELEMENT_WISE_LOGICAL_LESS_THAN", "a < b, as uint8.")
less_equal = _binary("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "a <= b, as uint8.")
logical_and = _binary("ELEMENT_WISE_LOGICAL_AND", "a and b, as uint8.")
logical_or = _binary("ELEMENT_WISE_LOGICAL_OR", "a or b, as uint8.")
logical_xor = _binary("ELEMENT_WISE_LOGICAL_XOR", "Either a or b, as uint8.")


def divide(a, b):
    """a / b, float64 of whole numbers."""
    return _tensor(_graph_of((a, b)), a, _common_dtype((a, b))) / b


def floor_divide(a, b):
    """a / b rounded down."""
    return _tensor(_graph_of((a, b)), a, _common_dtype((a, b))) // b


def square(x):
    """x * x"""
    return _node("ELEMENT_WISE_MULTIPLY", (x, x))


def where(condition, a, b):
    """a where the condition (uint8) is not 0, else b."""
    graph = _graph_of((condition, a, b))
    dtype = _common_dtype((a, b))
    return _node("ELEMENT_WISE_IF", (_tensor(graph, condition, "uint8"), _tensor(graph, a, dtype),
                                     _tensor(graph, b, dtype)))


def clip(x, least, most):
    """x, but at least and at most these numbers."""
    return _node("ELEMENT_WISE_CLIP1", (x,), {"Min": least, "Max": most})


def _operand(function):
    """The function, whose first operand may be a number or an array, too."""
    @_functools.wraps(function)
    def call(x, *rest, **more):
        if not isinstance(x, (Tensor, _Deferred)):
            x = _tensor(_graph_of((*rest, *more.values())), x)
        return function(x, *rest, **more)
    return call


# --- along axes -------------------------------------------------------------------------------------------------------
def _axis(x, axis):
    return _axes(x, axis)[0]


def _dropped(x, y, axes, keepdims):
    """y, whose axes are of size 1, without them."""
    return y if keepdims else y.reshape([n for d, n in enumerate(x.shape) if d not in axes] or [1])


def _reduction(function, text):
    @_operand
    def reduce(x, axis=None, keepdims=False):
        axes = _axes(x, axis)
        return _dropped(x, _node("REDUCE", (x,), {"Function": function, "Axes": axes}), axes, keepdims)
    reduce.__doc__ = text + "  axis: one, several, or None: all."
    return reduce


sum = _reduction("SUM", "The sum along axes.")
mean = _reduction("AVERAGE", "The mean along axes.")
max = _reduction("MAX", "The greatest element along axes.")
min = _reduction("MIN", "The least element along axes.")
prod = _reduction("MULTIPLY", "The product along axes.")


def any(x, axis=None, keepdims=False):
    """1 (uint8) where an element along the axes is not 0."""
    return max(x != 0, axis, keepdims)


def all(x, axis=None, keepdims=False):
    """1 (uint8) where no element along the axes is 0."""
    return min(x != 0, axis, keepdims)


@_operand
def var(x, axis=None, keepdims=False, ddof=0):
    """The variance along axes."""
    centred, count = x - mean(x, axis, True), 1
    for a in _axes(x, axis):
        count *= x.shape[a]
    if ddof >= count:
        raise ValueError(f"var: ddof={ddof}, must be below the {count} elements")
    return sum(centred * centred, axis, keepdims) / (count - ddof)


def std(x, axis=None, keepdims=False, ddof=0):
    """The standard deviation along axes."""
    return sqrt(var(x, axis, keepdims, ddof))


def _arg(type):
    @_operand
    def function(x, axis, keepdims=False):
        axes = _axes(x, axis)
        y = _node(type, (x,), {"Axes": axes, "AxisDirection": "INCREASING"})
        return _dropped(x, y, axes, keepdims)
    function.__doc__ = f"The index (uint32) of the {'greatest' if type == 'ARGMAX' else 'least'} element along an axis."
    return function


argmax, argmin = _arg("ARGMAX"), _arg("ARGMIN")


@_operand
def softmax(x, axis=-1):
    """exp(x) over its sum along the axis."""
    return _node("ACTIVATION_SOFTMAX1", (x,), {"Axes": _axes(x, axis)})


@_operand
def log_softmax(x, axis=-1):
    """The logarithm of softmax."""
    return _node("ACTIVATION_LOG_SOFTMAX1", (x,), {"Axes": _axes(x, axis)})


@_operand
def layer_norm(x, scale=None, bias=None, axis=-1, epsilon=1e-5):
    """(x - mean) / sqrt(variance + epsilon) along the axes, times scale, plus bias."""
    return _node("MEAN_VARIANCE_NORMALIZATION1", (x, scale, bias),
                 {"Axes": _axes(x, axis), "NormalizeVariance": True, "Epsilon": epsilon})


@_operand
def cumsum(x, axis):
    """Running sums along the axis."""
    return _node("CUMULATIVE_SUMMATION", (x,), {"Axis": _axis(x, axis), "AxisDirection": "INCREASING",
                                                "HasExclusiveSum": False})


@_operand
def topk(x, k, axis=-1):
    """The k greatest elements along the axis, the greatest first, and their indices (uint32)."""
    return _add_node("TOP_K", (x,), {"Axis": _axis(x, axis), "K": k}, [(None, None)] * 2)


# --- products, and what moves elements --------------------------------------------------------------------------------
@_operand
def broadcast_to(x, shape):
    """x with its dimensions of size 1 repeated."""
    if isinstance(x, _Deferred):
        return x.then(lambda t: broadcast_to(t, shape))
    return x._moved(x._graph._core.broadcast(x._handle, tuple(shape)))


def matmul(a, b):
    """The products of the matrices in the last two dimensions."""
    graph = _graph_of((a, b))
    a, b = _tensor(graph, a), _tensor(graph, b)
    left, right = a.ndim == 1, b.ndim == 1
    a, b = a[None, :] if left else a, b[:, None] if right else b
    head = []
    for m, n in zip(_padded(a.shape[:-2], b.ndim - 2), _padded(b.shape[:-2], a.ndim - 2)):
        head.append(n if m == 1 else m)
    y = _node("GEMM", (broadcast_to(a, (*head, *a.shape[-2:])), broadcast_to(b, (*head, *b.shape[-2:]))),
              {"TransA": "NONE", "TransB": "NONE", "Alpha": 1, "Beta": 0})
    shape = head + ([] if left else [a.shape[-2]]) + ([] if right else [b.shape[-1]])
    return y.reshape(shape or [1]) if left or right else y


def _padded(shape, rank):
    return (1,) * (rank - len(shape)) + tuple(shape)


@_operand
def reshape(x, shape):
    """The elements in row-major order by other sizes; one of them may be -1."""
    return x.reshape(shape)


@_operand
def transpose(x, axes=None):
    """Dimension d is axes[d] of x."""
    return x.transpose(axes or ())


def concatenate(tensors, axis=0):
    """One behind the other along the axis."""
    first = next((x for x in tensors if isinstance(x, (Tensor, _Deferred))), None)
    if first is None:
        raise ValueError("concatenate: none of them is a tensor")
    return _node("JOIN", tuple(tensors), {"Axis": _axis(first, axis)})


@_operand
def expand_dims(x, axis):
    """x with a dimension of size 1 more, which is that of the result's axis."""
    axis = axis + x.ndim + 1 if axis < 0 else axis
    return x.reshape([*x.shape[:axis], 1, *x.shape[axis:]])


@_operand
def squeeze(x, axis=None):
    """x without its dimensions of size 1, or without those of the axes."""
    axes = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else _axes(x, axis)
    for a in axes:
        if x.shape[a] != 1:
            raise ValueError(f"squeeze: dimension {a} has size {x.shape[a]}, must be 1")
    return x.reshape([n for d, n in enumerate(x.shape) if d not in axes] or [1])


def stack(tensors, axis=0):
    """Side by side in a new dimension, which is that of the result's axis."""
    graph, dtype = _graph_of(tensors), _common_dtype(tensors)
    return concatenate([expand_dims(_tensor(graph, x, dtype), axis) for x in tensors], axis)


@_operand
def flip(x, axis=None):
    """x with the axes in reverse."""
    axes = _axes(x, axis)
    return x[tuple(slice(None, None, -1 if d in axes else 1) for d in range(x.ndim))]


@_operand
def swapaxes(x, a, b):
    """x with two dimensions in each other's place."""
    axes = list(range(x.ndim))
    axes[a], axes[b] = axes[b], axes[a]
    return x.transpose(axes)


@_operand
def split(x, parts, axis=0):
    """That many equal parts along the axis."""
    return _add_node("SPLIT", (x,), {"Axis": _axis(x, axis)}, [(None, None)] * parts)


@_operand
def tile(x, repeats):
    """x repeated that often in each dimension; repeats may lack the first ones, or be a number for the last one."""
    repeats = (repeats,) if isinstance(repeats, int) else repeats
    return _node("TILE", (x,), {"Repeats": _padded(repeats, x.ndim)})


@_operand
def pad(x, widths, value=0.0):
    """x with (before, behind) elements of value around each dimension; a number: that many everywhere."""
    widths = [(widths, widths)] * x.ndim if isinstance(widths, int) else widths
    return _node("PADDING", (x,), {"PaddingMode": "CONSTANT", "PaddingValue": value,
                                   "StartPadding": [w[0] for w in widths], "EndPadding": [w[1] for w in widths]})


def take(x, indices, axis=0):
    """x at the indices (int32, int64, uint32 or uint64) along the axis, each of which is clamped."""
    graph = _graph_of((x, indices))
    x, indices = _tensor(graph, x), _tensor(graph, indices)
    axis, shape = _axis(x, axis), indices.shape
    flat = indices.reshape([1] * (x.ndim - 1) + [-1])
    y = _node("GATHER", (x, flat), {"Axis": axis, "IndexDimensions": 1})
    return y.reshape([*x.shape[:axis], *shape, *x.shape[axis + 1:]])
