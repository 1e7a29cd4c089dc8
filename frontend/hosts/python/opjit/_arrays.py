# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries: data types by name, contents of constants, results."""
import math
import sys

_FORMATS = {"f": "float32", "d": "float64", "e": "float16", "b": "int8", "h": "int16", "i": "int32", "l": "int64",
            "q": "int64", "B": "uint8", "H": "uint16", "I": "uint32", "L": "uint64", "Q": "uint64", "?": "uint8"}

FLOATS = ("float32", "float16", "float64")
_FLOATS_OF = {"int8": "float16", "uint8": "float16", "int16": "float32", "uint16": "float32"}  # as NumPy has them
_KINDS = {"f": "float", "i": "int", "u": "uint"}


def as_floats(x, dtype=None):
    """x, whole numbers as floating-point ones; without a type of that which NumPy has for functions of them."""
    return x if x.dtype in FLOATS else x.astype(dtype or _FLOATS_OF.get(x.dtype, "float64"))


def dtype_name(dtype):
    """"float32" of "float32", "f4", "f", numpy.float32, numpy.dtype("f4"), torch.float32, float."""
    if dtype is None:
        return None
    builtin = {float: "float32", int: "int64", bool: "uint8"}
    if isinstance(dtype, type) and dtype in builtin:
        return builtin[dtype]
    name = dtype if isinstance(dtype, str) else \
        getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype).rpartition(".")[2]
    if name[:1] in _KINDS and name[1:] in ("1", "2", "4", "8"):
        return f"{_KINDS[name[0]]}{8 * int(name[1])}"
    return "uint8" if name in ("bool", "bool_") else _FORMATS.get(name, name)


def is_bool(dtype):
    """Whether "bool" and the like is meant, whose elements are uint8, 0 or 1."""
    return dtype is bool or dtype_name(dtype) == "uint8" and "bool" in str(dtype) or dtype == "?"


def _check_whole(array):
    """Refuses what NumPy would read in silence: under a mask, and where a tensor of PyTorch has no memory any more."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and numpy.ma.is_masked(array):
        raise ValueError("constant: a masked array given, kernels have no masks: filled() it")
    if torch is not None and isinstance(array, torch.Tensor) and array.layout == torch.strided and array.numel() > 0:
        last = array.storage_offset() + sum((n - 1) * stride for n, stride in zip(array.shape, array.stride()))
        if (last + 1) * array.element_size() > array.untyped_storage().nbytes():
            raise ValueError("constant: a tensor without memory given")


def content(array):
    """(dtype, shape, bytes) of an array, packed.  Numbers of lists are int64 or float32."""
    _check_whole(array)
    try:
        view = memoryview(array)
    except TypeError:  # no buffer: lists, and arrays with __array__
        import numpy
        is_list = isinstance(array, (list, tuple))
        array = numpy.asarray(array)
        view = memoryview(array.astype(numpy.float32) if is_list and array.dtype == numpy.float64 else array)
    if view.format[:1] in ">!" and view.format[1:] in _FORMATS:  # of another byte order, as files may have it
        import numpy
        array = numpy.asarray(array)
        view = memoryview(array.astype(array.dtype.newbyteorder("=")))
    if view.format not in _FORMATS:
        raise TypeError(f"constant: elements of format {view.format!r} are not taken")
    return _FORMATS[view.format], view.shape, view.tobytes()


def torch_empty(torch):
    """The function of a shape, strides and a type that makes a tensor: the fastest that PyTorch has."""
    try:
        from torch._C._dynamo.guards import _empty_strided_cpu
    except ImportError:
        return lambda shape, strides, dtype: torch.empty_strided(shape, strides, dtype=dtype)
    return _empty_strided_cpu


def maker(like, shape_and_dtype):
    """A function and its arguments that make new arrays for a result, of the library that `like` is of."""
    shape, dtype = shape_and_dtype
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        strides = [math.prod(shape[d + 1:]) for d in range(len(shape))]
        return torch_empty(torch), (shape, tuple(strides), getattr(torch, dtype.name))
    import numpy
    return numpy.empty, (shape, dtype)
