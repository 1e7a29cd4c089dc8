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
from numbers import Integral as _Integral, Real as _Real

from . import _opjit
from ._opjit import Error, Kernel, __version__
from ._arrays import content as _content, dtype_name as _dtype_name, is_bool as _is_bool
from ._tensor import (Deferred as _Deferred, FLOATS as _FLOATS, Graph, Tensor, _node, add_node as _add_node,
                      as_floats as _as_floats, axes_of as _axes, common_dtype as _common_dtype, graph_of as _graph_of,
                      of_two as _of_two, tensor as _tensor)
from . import ops
from . import _counting, _generated, _numpy, _pointwise, _products, _scaling, _signals, _sorting, linalg
from ._counting import *
from ._generated import *
from ._numpy import *
from ._pointwise import *
from ._products import *
from ._scaling import *
from ._signals import *
from ._sorting import *

__all__ = [
    "Error", "Graph", "Kernel", "Tensor", "abs", "absolute", "add", "all", "amax", "amin", "any", "arange", "argmax",
    "argmin", "broadcast_to", "ceil", "clip", "compile", "concat", "concatenate", "cos", "cumsum", "divide", "equal",
    "erf", "exp", "eye", "floor", "floor_divide", "full", "gelu", "greater", "greater_equal", "inf", "isnan",
    "layer_norm", "less", "less_equal", "log", "log_softmax", "logical_and", "logical_not", "logical_or",
    "logical_xor", "max", "maximum", "mean", "min", "minimum", "multiply", "nan", "negative", "ones", "ops",
    "permute_dims", "pow", "power", "prod", "relu", "reshape", "sigmoid", "sign", "sin", "softmax", "sqrt", "square",
    "std", "subtract", "sum", "take", "tanh", "topk", "transpose", "tri", "var", "where", "zeros"]
__all__ += _counting.__all__
__all__ += _generated.__all__
__all__ += _numpy.__all__
__all__ += _pointwise.__all__
__all__ += _products.__all__
__all__ += _signals.__all__
__all__ += _sorting.__all__


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
    ranges = dict(_range(name, size) for name, size in dims.items() if not isinstance(size, _Integral))
    if isinstance(what, (str, bytes, _os.PathLike)):
        constants = {name: _content(array) for name, array in (values or {}).items()}
        known = {name: size for name, size in dims.items() if isinstance(size, _Integral)}

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
    if not isinstance(size, (tuple, list)) or len(size) not in (2, 3, 4) or [
            n for n in size if not isinstance(n, _Integral) or isinstance(n, bool)]:
        raise TypeError(f"dims[{name!r}]: a size, or (least, largest, typical), or these and a step is needed")
    size = [int(n) for n in size]
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
    shape = (shape,) if isinstance(shape, _Integral) else tuple(shape)
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
    is_whole = not [n for n in (start, stop, step) if not isinstance(n, _Integral)]
    count = len(range(start, stop, step)) if is_whole else -int(-(stop - start) // step)
    return _generate("FILL_VALUE_SEQUENCE", {"ValueStart": start, "ValueDelta": step}, (count,), dtype)


def eye(rows, columns=None, k=0, dtype=None):
    """1 where column - row is k, else 0."""
    return _generate("DIAGONAL_MATRIX1", {"Value": 1, "DiagonalFillBegin": k, "DiagonalFillEnd": k + 1},
                     (rows, columns or rows), dtype)


def tri(rows, columns=None, k=0, dtype=None):
    """1 where column - row is at most k, else 0."""
    return _generate("DIAGONAL_MATRIX1", {"Value": 1, "DiagonalFillBegin": -2**31, "DiagonalFillEnd": k + 1},
                     (rows, columns or rows), dtype)


# --- pointwise --------------------------------------------------------------------------------------------------------
def _operand(function):
    """The function, whose first operand may be a number or an array, too."""
    @_functools.wraps(function)
    def call(x, *rest, **more):
        if not isinstance(x, (Tensor, _Deferred)):
            x = _tensor(_graph_of((*rest, *more.values())), x)
        return function(x, *rest, **more)
    return call


def _unary(type, text, wholes=None):
    """The operator; wholes: what it is of whole numbers, if it has none of them."""
    @_operand
    def function(x):
        return _node(type, (x,)) if wholes is None or x.dtype in _FLOATS else wholes(x, type)
    function.__doc__ = text
    return function


def _of_floats(x, type):
    """Of whole numbers as NumPy converts them."""
    return _node(type, (_as_floats(x),))


def _binary(type, text):
    def function(a, b):
        return _of_two(type, a, b)
    function.__doc__ = text
    return function


def _truth(x):
    """x, 1 where it is not 0 unless it is uint8."""
    return x if x.dtype == "uint8" else x != 0


def _logical(type, text):
    def function(a, b):
        return _node(type, [_truth(x) for x in _numpy.together((a, b))])
    function.__doc__ = text
    return function


sign = _unary("ELEMENT_WISE_SIGN", "-1, 0 or 1", lambda x, type: (x != 0).astype(x.dtype) if x.dtype[0] == "u" else
              _node(type, (x,)))
sqrt = _unary("ELEMENT_WISE_SQRT", "Square root.", _of_floats)
exp = _unary("ELEMENT_WISE_EXP", "e to the x.", _of_floats)
log = _unary("ELEMENT_WISE_LOG", "Natural logarithm.", _of_floats)
sin = _unary("ELEMENT_WISE_SIN", "Sine.", _of_floats)
cos = _unary("ELEMENT_WISE_COS", "Cosine.", _of_floats)
tanh = _unary("ELEMENT_WISE_TANH", "Hyperbolic tangent.", _of_floats)
erf = _unary("ELEMENT_WISE_ERF", "Error function.", _of_floats)
ceil = _unary("ELEMENT_WISE_CEIL", "Rounded up; whole numbers as they are.", lambda x, type: x)
floor = _unary("ELEMENT_WISE_FLOOR", "Rounded down; whole numbers as they are.", lambda x, type: x)
isnan = _unary("ELEMENT_WISE_IS_NAN", "True for NaN.", lambda x, type: x != x)
relu = _unary("ACTIVATION_RELU", "max(x, 0)")
sigmoid = _unary("ACTIVATION_SIGMOID", "1 / (1 + exp(-x))")
gelu = _unary("ACTIVATION_GELU", "x times the normal distribution's integral up to x.")
add = _binary("ELEMENT_WISE_ADD", "a + b")
subtract = _binary("ELEMENT_WISE_SUBTRACT", "a - b")
multiply = _binary("ELEMENT_WISE_MULTIPLY", "a * b")
maximum = _binary("ELEMENT_WISE_MAX", "The greater one of two elements.")
minimum = _binary("ELEMENT_WISE_MIN", "The lesser one of two elements.")
equal = _binary("ELEMENT_WISE_LOGICAL_EQUALS", "a == b, as bool.")
greater = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN", "a > b, as bool.")
greater_equal = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL", "a >= b, as bool.")
less = _binary("ELEMENT_WISE_LOGICAL_LESS_THAN", "a < b, as bool.")
less_equal = _binary("ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL", "a <= b, as bool.")
logical_and = _logical("ELEMENT_WISE_LOGICAL_AND", "a and b, as bool.")
logical_or = _logical("ELEMENT_WISE_LOGICAL_OR", "a or b, as bool.")
logical_xor = _logical("ELEMENT_WISE_LOGICAL_XOR", "Either a or b, as bool.")


@_operand
def logical_not(x):
    """True where x is 0."""
    return _node("ELEMENT_WISE_LOGICAL_NOT", (_truth(x),))


@_operand
def abs(x):
    """|x|"""
    return x.__abs__()


def power(a, b):
    """a to the b."""
    return _tensor(_graph_of((a, b)), a, _common_dtype((a, b))) ** b


@_operand
def negative(x):
    """-x"""
    return -x


absolute, pow = abs, power


def divide(a, b):
    """a / b, float64 of whole numbers."""
    return _tensor(_graph_of((a, b)), a, _common_dtype((a, b))) / b


def floor_divide(a, b):
    """a / b rounded down."""
    return _tensor(_graph_of((a, b)), a, _common_dtype((a, b))) // b


def square(x):
    """x * x"""
    return _of_two("ELEMENT_WISE_MULTIPLY", x, x)


def where(condition, a, b):
    """a where the condition (uint8) is not 0, else b."""
    graph = _graph_of((condition, a, b))
    dtype = _common_dtype((a, b))
    return _node("ELEMENT_WISE_IF", (_tensor(graph, condition, "uint8"), _tensor(graph, a, dtype),
                                     _tensor(graph, b, dtype)))


@_operand
def clip(x, least=None, most=None):
    """x, but at least and at most these: numbers, tensors or arrays, or None."""
    if isinstance(least, _Real) and isinstance(most, _Real) and x.dtype in _FLOATS:
        return _node("ELEMENT_WISE_CLIP1", (x,), {"Min": least, "Max": most})
    least, most = (_numpy.within(x.dtype, n) for n in (least, most))
    x = x if least is None else maximum(x, least)
    return x if most is None else minimum(x, most)


# --- along axes -------------------------------------------------------------------------------------------------------
def _axis(x, axis):
    return _axes(x, axis)[0]


def _dropped(x, y, axes, keepdims):
    """y, whose axes are of size 1, without them."""
    return y if keepdims else y.reshape([n for d, n in enumerate(x.shape) if d not in axes] or [1])


def _whole(x):
    """x, whole numbers of less than 64 bits as those of 64, and bools, as NumPy sums them."""
    if isinstance(x, _Deferred) and x._dtype is None or x.dtype in (*_FLOATS, "int64", "uint64"):
        return x
    return x.astype("int64" if x.dtype[0] == "i" or x._is_bool else "uint64")


def _double(x):
    """x, whole numbers as float64."""
    return x if isinstance(x, _Deferred) and x._dtype is None else _as_floats(x, "float64")


def _reduction(function, text, prepared=lambda x: x):
    @_operand
    def reduce(x, axis=None, keepdims=False):
        axes = _axes(x, axis)
        if not axes:
            return prepared(x)
        return _dropped(x, _node("REDUCE", (prepared(x),), {"Function": function, "Axes": axes}), axes, keepdims)
    reduce.__doc__ = text + "  axis: one, several, or None: all."
    return reduce


sum = _reduction("SUM", "The sum along axes, of bools and whole numbers with 64 bits.", _whole)
mean = _reduction("AVERAGE", "The mean along axes, float64 of whole numbers.", _double)
max = _reduction("MAX", "The greatest element along axes.")
min = _reduction("MIN", "The least element along axes.")
amax, amin = max, min
prod = _reduction("MULTIPLY", "The product along axes, of bools and whole numbers with 64 bits.", _whole)


@_operand
def any(x, axis=None, keepdims=False):
    """True where an element along the axes is not 0."""
    return max(x != 0, axis, keepdims)


@_operand
def all(x, axis=None, keepdims=False):
    """True where no element along the axes is 0."""
    return min(x != 0, axis, keepdims)


@_operand
def var(x, axis=None, keepdims=False, ddof=0):
    """The variance along axes, float64 of whole numbers."""
    x = _double(x)
    if isinstance(x, Tensor) and x.dtype == "float16":  # as NumPy computes it
        return var(x.astype("float32"), axis, keepdims, ddof).astype("float16")
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
    def function(x, axis=None, keepdims=False):
        shape, x = x.shape, ravel(x) if axis is None else x
        y = _node(type, (x,), {"Axes": [_axis(x, 0 if axis is None else axis)], "AxisDirection": "INCREASING"})
        return y.reshape([1] * len(shape)) if axis is None and keepdims else _dropped(x, y, _axes(x, axis), keepdims)
    function.__doc__ = (f"The index (uint32) of the {'greatest' if type == 'ARGMAX' else 'least'} element along an "
                        "axis; axis None: in row-major order.")
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


def _running(type, exclusive, x, axis):
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    return _node(type, (_whole(x),), {"Axis": _axis(x, axis), "AxisDirection": "INCREASING", exclusive: False})


@_operand
def cumsum(x, axis=None):
    """Running sums along the axis, of bools and whole numbers with 64 bits; axis None: in row-major order."""
    return _running("CUMULATIVE_SUMMATION", "HasExclusiveSum", x, axis)


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


@_operand
def reshape(x, shape):
    """The elements in row-major order by other sizes; one of them may be -1."""
    return x.reshape(shape)


@_operand
def transpose(x, axes=None):
    """Dimension d is axes[d] of x."""
    return x.transpose(axes or ())


permute_dims = transpose


def concatenate(tensors, axis=0):
    """One behind the other along the axis; axis None: in row-major order."""
    first = next((x for x in tensors if isinstance(x, (Tensor, _Deferred))), None)
    if first is None:
        raise ValueError("concatenate: none of them is a tensor")
    if axis is None:
        return concatenate([ravel(x) for x in _numpy.together(tensors)])
    return _node("JOIN", tuple(tensors), {"Axis": _axis(first, axis)})


concat = concatenate


def take(x, indices, axis=None, mode="raise"):
    """x at the indices (int32, int64, uint32 or uint64) along the axis; axis None: in row-major order.  mode: those
    beyond the ends are these ("raise", "clip"), or begin again ("wrap")."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'take: mode {mode!r}, must be "raise", "wrap" or "clip"')
    graph = _graph_of((x, indices))
    shape = () if isinstance(indices, _Integral) else None
    x, indices = _tensor(graph, x), _tensor(graph, indices, "int64")
    x, axis = (ravel(x), 0) if axis is None else (x, _axis(x, axis))
    shape, size = indices.shape if shape is None else shape, x.shape[axis]
    if mode != "raise":
        indices = indices % size if mode == "wrap" else minimum(maximum(indices, 0), size - 1)
    flat = indices.reshape([1] * (x.ndim - 1) + [-1])
    y = _node("GATHER", (x, flat), {"Axis": axis, "IndexDimensions": 1})
    return y.reshape([*x.shape[:axis], *shape, *x.shape[axis + 1:]] or [1])
