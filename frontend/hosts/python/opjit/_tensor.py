# SPDX-License-Identifier: Apache-2.0
"""Graphs and tensors that read like NumPy, over opjit._opjit.Graph, whose tensors are numbers."""
import math
import numbers

from . import _opjit
from ._arrays import FLOATS, as_floats, content, dtype_name, is_bool
from ._bools import are_bools, as_numbers, keeps_bools, makes_bools, of_bools
from ._pickle import build
from ._show import stages as _stages


class Graph:
    """A graph that is being built.  Tensors come from input() and from functions of them; opjit.compile() makes a
    kernel of those that are results.  The first operator that is refused raises opjit.Error, and the graph is no good
    any more.  One thread at a time."""

    __slots__ = ("_core", "_inputs", "_outputs", "_counted", "_bools")

    def __init__(self):
        self._core = _opjit.Graph()
        self._bools = set()  # handles of uint8 that are 0 or 1, which ~ turns into each other
        self._counted = None
        self._inputs = set()
        self._outputs = None

    def input(self, shape, dtype="float32", name=None):
        """An array of each call, packed, in the order of these calls; none of the kernel's where nothing reads it."""
        shape = (shape,) if isinstance(shape, numbers.Integral) else tuple(shape)
        name = name or f"x{len(self._inputs)}"
        for n in shape:
            if isinstance(n, str):
                raise TypeError(f"input {name}: {n!r} is no size; one that changes is an argument of a function that "
                                f"makes the graph: opjit.compile(function, dims={{{n!r}: (least, largest)}})")
            if n < 0:
                raise ValueError(f"input {name}: shape {shape}, sizes must be at least 1")
        if name in self._inputs or name == "out":
            raise ValueError(f"input {name}: there is one of that name already")
        self._inputs.add(name)
        return self._made(self._core.input(shape, dtype_name(dtype), name), is_bool(dtype))

    def constant(self, array):
        """An array that is known now: a copy of anything with the buffer protocol, __dlpack__ or __array__."""
        dtype, shape, data = content(array)
        handle = self._core.constant(dtype, shape or (1,), data)
        return self._made(handle, is_bool(getattr(array, "dtype", None)))

    def scalar(self, value, dtype="float32"):
        """One number, to be broadcast."""
        return self._made(self._core.scalar(dtype_name(dtype), value), is_bool(dtype))

    def _made(self, handle, is_bool):
        """The tensor."""
        if is_bool:
            self._bools.add(handle)
        return Tensor(self, handle)

    def explain(self):
        """The IR after each pass and how each loop will be done, as text; outputs are those of the last compile."""
        return _stages(self._core, "auto")

    def _numbers(self):
        """The handles in the order in which they were made, each with its number."""
        steps = self._core.steps()
        if self._counted is None or self._counted[0] != len(steps):
            handles = (h for _, _, result in steps for h in (result if isinstance(result, tuple) else (result,)))
            self._counted = len(steps), {h: n for n, h in enumerate(dict.fromkeys(handles))}
        return self._counted[1]

    def __reduce__(self):
        numbers = self._numbers()
        outputs = self._outputs and [(name, numbers[handle]) for name, handle in self._outputs]
        return _copy_graph, (self._core.steps(), frozenset(self._inputs), outputs, [numbers[h] for h in self._bools])

    def _built(self, outputs):
        row = [(name, tensor._handle) for name, tensor in outputs]
        if self._outputs is None:
            for name, handle in row:
                self._core.output(handle, name, handle in self._bools)
            self._outputs = row
        elif self._outputs != row:
            raise ValueError("the graph was compiled with other outputs: make another graph for these")
        return self._core


def _copy_graph(steps, inputs, outputs, bools=()):
    graph = Graph()
    graph._core, handles = build(steps)
    graph._inputs = set(inputs)
    made = [handles[h] for h in dict.fromkeys(handles) if h is not None]
    graph._outputs = outputs and [(name, made[number]) for name, number in outputs]
    graph._bools = {made[number] for number in bools}
    graph._counted = len(steps), {h: n for n, h in enumerate(made)}
    return graph


def _copy_tensor(graph, number):
    return Tensor(graph, list(graph._numbers())[number])


class Deferred:
    """A tensor that belongs to no graph yet, such as opjit.tri(4, 4): it joins that of what it is used with."""

    __slots__ = ("_make", "_dtype", "_steps", "ndim", "shape")
    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(self, make, shape, dtype, steps=0):
        self._make, self.shape, self._dtype, self._steps = make, shape, dtype, steps
        self.ndim = len(shape)

    def join(self, graph, dtype=None):
        """The tensor; dtype: what is wanted where nobody has said one."""
        return self._make(graph, self._dtype or dtype or "float32")

    def then(self, function):
        """What the function makes of the tensor: it belongs to no graph yet either, unless it is a long way to it."""
        return _later(function, (self,))

    def __getattr__(self, name):
        """Methods of Tensor."""
        found = getattr(Tensor, name) if name[0] != "_" else None
        if found is None:
            raise AttributeError(f"a tensor without a graph has no {name}")
        if name in ("T", "mT"):
            return self.then(lambda x: getattr(x, name))
        if isinstance(found, property):
            return getattr(self.join(Graph()), name)
        return lambda *operands, **more: self.then(lambda x: found(x, *operands, **more))


def _later(function, operands):
    """What the function makes of the operands, none of which belongs to a graph: neither does it, unless it is a long
    way to it."""
    known, open_ones = common_dtype(operands), [x for x in operands if isinstance(x, Deferred)]

    def made(graph, dtype=None):
        return function(*(x.join(graph, known or dtype) if isinstance(x, Deferred) else x for x in operands))
    after, steps = made(Graph()), sum(x._steps for x in open_ones) + 1
    if steps > 16 or not isinstance(after, Tensor):
        return after
    kept = after.dtype == (known or "float32")
    return Deferred(lambda graph, dtype: made(graph, dtype if kept else None), after.shape,
                    known if kept else after.dtype, steps)


def graph_of(operands):
    """The graph of the first tensor among them; a new one where all are deferred or constants."""
    graphs = [x._graph for x in operands if isinstance(x, Tensor)]
    if any(g is not graphs[0] for g in graphs):
        raise ValueError("the tensors are of several graphs; tensors of ones() and the like alone may have one")
    return graphs[0] if graphs else Graph()


def tensor(graph, x, dtype=None):
    """x as a tensor of the graph; dtype: of numbers, and of deferred tensors without their own."""
    if isinstance(x, Tensor):
        return x
    if isinstance(x, Deferred):
        return x.join(graph, dtype)
    if isinstance(x, numbers.Real):
        is_bool = isinstance(x, bool) and dtype == "uint8"
        x = int(x) if isinstance(x, numbers.Integral) else float(x)  # NumPy's numbers too
        if dtype is None or (isinstance(x, float) and dtype not in FLOATS):
            dtype = "float32"
        return graph.scalar(x, "bool" if is_bool else dtype)
    return graph.constant(x)


def common_dtype(operands):
    """Of the first tensor among the operands that has one; None: there is none."""
    types = (x.dtype if isinstance(x, Tensor) else x._dtype for x in operands if isinstance(x, (Tensor, Deferred)))
    return next((t for t in types if t is not None), None)


def axes_of(x, axis):
    """The dimensions of x that `axis` names: one, several, or None: all."""
    rank = x.ndim
    axes = range(rank) if axis is None else axis if isinstance(axis, (tuple, list, range)) else [axis]
    for a in axes:
        if not isinstance(a, numbers.Integral):
            raise TypeError(f"axis: {a!r}, must be a whole number")
        if not -rank <= a < rank:
            raise ValueError(f"axis: {a}, must be within {rank} dimensions")
    axes = [int(a) % rank for a in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"axis: {axis}, each dimension must be there once")
    return axes


def add_node(type, operands, values=None, outputs=((None, None),), name=None):
    """The operator's outputs, as a tuple of tensors."""
    graph = graph_of(operands)
    dtype = (outputs[0][0] if outputs else None) or common_dtype(operands)
    handles = [None if x is None else tensor(graph, x, dtype_name(dtype))._handle for x in operands]
    rows = [(dtype_name(d), None if s is None else tuple(s)) for d, s in outputs]
    made = graph._core.node(type, handles, values or {}, rows, name)
    if makes_bools(type, values or {}, handles, graph._bools):
        graph._bools.update(made[:1] if type in ("TOP_K", "TOP_K1") else made)
    return tuple(Tensor(graph, h) for h in made)


def _node(type, operands, values=None, dtype=None, shape=None):
    if any(isinstance(x, Deferred) for x in operands) and not any(isinstance(x, Tensor) for x in operands):
        return _later(lambda *joined: _node(type, joined, values, dtype, shape), operands)
    return add_node(type, operands, values, [(dtype, shape)])[0]


def _numbers(a, b, keeps=False):
    """The operands, bools as NumPy converts them."""
    return as_numbers(a, b, lambda x: tensor(graph_of((a, b)), x), keeps)


def of_two(type, a, b):
    """The operator of two operands: of bools as NumPy has it."""
    pair = _numbers(a, b, keeps_bools(type))
    return _node(of_bools(type) if are_bools(pair) else type, pair)


def _binary(type):
    def forward(self, other):
        return of_two(type, self, other)

    def backward(self, other):
        return of_two(type, other, self)
    return forward, backward


def _bits(type):
    """The operator, which has whole numbers without a sign, of others too."""
    def operate(a, b):
        graph, dtype = graph_of((a, b)), common_dtype((a, b))
        a, b = tensor(graph, a, dtype), tensor(graph, b, dtype)
        if a.dtype != b.dtype or a.dtype[0] != "i":
            return _node(type, (a, b))
        own, whole = a.dtype, "u" + a.dtype
        if type == "ELEMENT_WISE_BIT_SHIFT_RIGHT":  # what is negative is shifted as ~a
            flip = (0 - (a < 0).astype(own)).astype(whole)
            return (_node(type, (a.astype(whole) ^ flip, b.astype(whole))) ^ flip).astype(own)
        return _node(type, (a.astype(whole), b.astype(whole))).astype(own)
    return operate, lambda a, b: operate(b, a)


def _quotient(a, b):
    """a / b, float64 of whole numbers."""
    a, b = _numbers(a, b)
    graph, dtype = graph_of((a, b)), common_dtype((a, b))
    a, b = tensor(graph, a, dtype), tensor(graph, b, dtype)
    if a.dtype == b.dtype and a.dtype not in FLOATS:
        a, b = a.astype("float64"), b.astype("float64")
    return _node("ELEMENT_WISE_DIVIDE", (a, b))


def _floor_quotient(a, b):
    """a / b rounded down."""
    a, b = _numbers(a, b)
    graph, dtype = graph_of((a, b)), common_dtype((a, b))
    a, b = tensor(graph, a, dtype), tensor(graph, b, dtype)
    if a.dtype in FLOATS and b.dtype == a.dtype:
        from ._pointwise import floor_quotient
        return floor_quotient(a, b)
    quotient = _node("ELEMENT_WISE_DIVIDE", (a, b))  # toward 0 of integers
    if a.dtype[0] == "u":
        return quotient
    return quotient - ((a % b != 0) & ((a < 0) ^ (b < 0))).astype(a.dtype)


def _method(name):
    """The function of the package as a method."""
    def method(self, *args, **more):
        import opjit
        return getattr(opjit, name)(self, *args, **more)
    method.__name__ = name
    method.__doc__ = f"opjit.{name} of it."
    return method


class Tensor:
    """A tensor of a graph.  Operators and indices are NumPy's; bools are uint8, 0 or 1."""

    __slots__ = ("_graph", "_handle")
    __array_priority__ = 1000  # numpy.ndarray + tensor asks the tensor
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, graph, handle):
        self._graph, self._handle = graph, handle

    def __reduce__(self):
        return _copy_tensor, (self._graph, self._graph._numbers()[self._handle])

    @property
    def graph(self):
        """The graph that it belongs to."""
        return self._graph

    @property
    def dtype(self):
        """"float32" and the like."""
        return self._graph._core.type(self._handle)[0]

    @property
    def shape(self):
        """Its sizes."""
        return self._graph._core.type(self._handle)[1]

    @property
    def ndim(self):
        """How many sizes it has."""
        return len(self.shape)

    @property
    def size(self):
        """How many elements it has."""
        return math.prod(self.shape)

    def __len__(self):
        return self.shape[0]

    @property
    def T(self):
        """The dimensions in reverse."""
        return self.transpose()

    @property
    def mT(self):
        """The last two dimensions in each other's place."""
        return self.swapaxes(-1, -2)

    def __repr__(self):
        return f"opjit.Tensor({self.dtype} {list(self.shape)})"

    __add__, __radd__ = _binary("ELEMENT_WISE_ADD")
    __sub__, __rsub__ = _binary("ELEMENT_WISE_SUBTRACT")
    __mul__, __rmul__ = _binary("ELEMENT_WISE_MULTIPLY")
    __mod__, __rmod__ = _binary("ELEMENT_WISE_MODULUS_FLOOR")
    _pow, __rpow__ = _binary("ELEMENT_WISE_POW")
    __and__, __rand__ = _bits("ELEMENT_WISE_BIT_AND")
    __or__, __ror__ = _bits("ELEMENT_WISE_BIT_OR")
    __xor__, __rxor__ = _bits("ELEMENT_WISE_BIT_XOR")
    __lshift__, __rlshift__ = _bits("ELEMENT_WISE_BIT_SHIFT_LEFT")
    __rshift__, __rrshift__ = _bits("ELEMENT_WISE_BIT_SHIFT_RIGHT")
    __gt__, __lt__ = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN")
    __ge__, __le__ = _binary("ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL")
    __eq__ = _binary("ELEMENT_WISE_LOGICAL_EQUALS")[0]
    __truediv__, __floordiv__ = _quotient, _floor_quotient
    sum, mean, max, min, prod = map(_method, ("sum", "mean", "max", "min", "prod"))
    var, std, any, all = map(_method, ("var", "std", "any", "all"))
    argmax, argmin, cumsum, clip, squeeze = map(_method, ("argmax", "argmin", "cumsum", "clip", "squeeze"))
    argsort, cumprod, diagonal, dot, sort = map(_method, ("argsort", "cumprod", "diagonal", "dot", "sort"))
    ravel, repeat, swapaxes, take, trace = map(_method, ("ravel", "repeat", "swapaxes", "take", "trace"))
    compress, nonzero, partition, searchsorted = map(_method, ("compress", "nonzero", "partition", "searchsorted"))
    round = __round__ = _method("round")
    flatten = _method("ravel")

    def __pow__(self, other):
        self, other = _numbers(self, other)
        if self.dtype not in ("int64", "uint64") or not isinstance(other, numbers.Integral) or other < 1:
            return self._pow(other)
        half = self ** (other // 2) if other > 1 else 1  # the operator has none of 64 bits
        return half * half if other % 2 == 0 else half * half * self if other > 1 else self

    def __rtruediv__(self, other):
        return _quotient(other, self)

    def __rfloordiv__(self, other):
        return _floor_quotient(other, self)

    def __ne__(self, other):
        return _node("ELEMENT_WISE_LOGICAL_NOT", (self == other,))

    def __neg__(self):
        if self._is_bool:
            raise TypeError("bools have no negative: ~x, or x.astype(...)")
        return 0 - self if self.dtype[0] == "u" else _node("ELEMENT_WISE_NEGATE", (self,))

    def __pos__(self):
        return self

    def __abs__(self):
        return self if self.dtype[0] == "u" else _node("ELEMENT_WISE_ABS", (self,))

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __invert__(self):
        if self.dtype[0] == "i":
            return -1 - self
        return _node("ELEMENT_WISE_LOGICAL_NOT" if self._is_bool else "ELEMENT_WISE_BIT_NOT", (self,))

    @property
    def _is_bool(self):
        return self._handle in self._graph._bools

    def _moved(self, handle):
        """The elements in other places."""
        return self._graph._made(handle, self._is_bool)

    def __bool__(self, *more):
        raise TypeError("a tensor of a graph has no value before the kernel runs")

    __float__ = __int__ = __index__ = item = tolist = __setitem__ = __bool__

    def __array__(self, *args, **more):
        raise TypeError("a tensor of a graph has no elements before the kernel runs")

    __matmul__ = _method("matmul")

    def __rmatmul__(self, other):
        from . import matmul
        return matmul(other, self)

    def astype(self, dtype):
        """The elements in another data type; of bool 1 where they are not 0."""
        if is_bool(dtype):
            return self if self._is_bool else self != 0
        return _node("CAST", (self,), {}, dtype)

    def reshape(self, *shape):
        """The elements in row-major order by other sizes; one of them may be -1: what is left."""
        shape = tuple(shape[0] if len(shape) == 1 and not isinstance(shape[0], numbers.Integral) else shape)
        if any(n < 1 and n != -1 for n in shape) or shape.count(-1) > 1:
            raise ValueError(f"reshape: {shape}, sizes must be at least 1, and one of them may be -1")
        return self._moved(self._graph._core.reshape(self._handle, [0 if n == -1 else n for n in shape]))

    def transpose(self, *axes):
        """Dimension d is axes[d] of this one; without axes in reverse."""
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], numbers.Integral) else axes
        axes = axes or range(self.ndim)[::-1]
        return self._moved(self._graph._core.transpose(self._handle, axes_of(self, axes)))

    def __getitem__(self, index):
        shape = self.shape
        index = index if isinstance(index, tuple) else (index,)
        taken = sum(i is not None and i is not Ellipsis for i in index)
        if taken > len(shape):
            raise IndexError(f"{taken} indices for {len(shape)} dimensions")
        if not any(i is Ellipsis for i in index):
            index += (Ellipsis,)
        at = next(n for n, i in enumerate(index) if i is Ellipsis)
        index = index[:at] + (slice(None),) * (len(shape) - taken) + index[at + 1:]
        offsets, sizes, strides, result = [], [], [], []
        for i in index:
            if i is None:
                result.append(1)
                continue
            size = shape[len(offsets)]
            if isinstance(i, slice):
                values = range(size)[i]
                if not values:
                    raise IndexError(f"dimension {len(offsets)}: {i} takes none of {size} elements")
                count, step = len(values), values.step
                low, span = min(values[0], values[-1]), abs(values[-1] - values[0]) + 1
                result.append(count)
            else:
                low, span, step = _position(i, len(offsets), size), 1, 1
            offsets.append(low)
            sizes.append(span)
            strides.append(step)
        out = self
        if any(offsets) or sizes != list(shape) or any(s != 1 for s in strides):
            counts = [-(-n // abs(s)) for n, s in zip(sizes, strides)]
            out = self._moved(self._graph._core.slice(self._handle, offsets, counts, strides))
        return out if tuple(result) == out.shape else out.reshape(result or [1])


def _position(index, dimension, size):
    """The index from 0 on."""
    if isinstance(index, Tensor) and index._is_bool or "bool" in str(getattr(index, "dtype", "")):
        raise TypeError(f"dimension {dimension}: a mask given, and how many elements it takes is not known before the "
                        "kernel runs: opjit.where")
    if isinstance(index, bool) or not hasattr(index, "__index__") or getattr(index, "ndim", 0):
        raise TypeError(f"dimension {dimension}: {type(index).__name__} given, an index is an integer, a slice, ... or "
                        "None (opjit.take has indices in an array)")
    if not -size <= index < size:
        raise IndexError(f"dimension {dimension}: index {index}, must be {-size} to {size - 1}")
    return range(size)[index]


def _operator(name):
    """Tensor's, of one that joins the graph of the other operand, if that has one."""
    function = vars(Tensor)[name]

    def method(self, *operands):
        if any(isinstance(x, Tensor) for x in operands):
            return function(self.join(graph_of(operands), common_dtype(operands)), *operands)
        return _later(function, (self, *operands))
    return method


for _name in vars(Tensor):
    if _name[:2] == "__" and callable(vars(Tensor)[_name]) and _name not in vars(Deferred) and _name not in (
            "__hash__", "__len__", "__reduce__", "__repr__"):
        setattr(Deferred, _name, _operator(_name))
