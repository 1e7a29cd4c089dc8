# SPDX-License-Identifier: Apache-2.0
"""Functions of NumPy's of one element, or of two, made of the package's own."""
import math as _math

import opjit

from ._numpy import _of_one, together
from ._tensor import FLOATS, as_floats, graph_of, tensor

__all__ = ["acos", "acosh", "allclose", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
           "around", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count", "bitwise_invert",
           "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "cbrt", "choose",
           "conj", "conjugate", "copysign", "cosh", "deg2rad", "degrees", "divmod", "exp2", "expm1", "fabs", "fix",
           "float_power", "fmax", "fmin", "fmod", "gcd", "heaviside", "hypot", "imag", "invert", "isclose", "isfinite",
           "isinf", "isneginf", "isposinf", "lcm", "left_shift", "log10", "log1p", "log2", "logaddexp", "logaddexp2",
           "mod", "modf", "nan_to_num", "not_equal", "positive", "rad2deg", "radians", "real", "reciprocal",
           "remainder", "right_shift", "rint", "round", "select", "signbit", "sinc", "sinh", "tan", "true_divide",
           "trunc"]
_LARGEST = {"float16": 65504.0, "float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308}


# --- of one -----------------------------------------------------------------------------------------------------------
def _function(name, text):
    """The operator of that name, of floating-point numbers; of whole numbers as NumPy converts them."""
    @_of_one
    def function(x):
        return getattr(opjit.ops, "element_wise_" + name)(as_floats(x))
    function.__name__, function.__doc__ = name, text
    return function


tan, sinh, cosh = _function("tan", "Tangent."), _function("sinh", "Hyperbolic sine."), _function(
    "cosh", "Hyperbolic cosine.")
asin = arcsin = _function("asin", "The angle whose sine is x.")
acos = arccos = _function("acos", "The angle whose cosine is x.")
atan = arctan = _function("atan", "The angle whose tangent is x.")
asinh = arcsinh = _function("asinh", "The number whose hyperbolic sine is x.")
acosh = arccosh = _function("acosh", "The number whose hyperbolic cosine is x.")
atanh = arctanh = _function("atanh", "The number whose hyperbolic tangent is x.")


@_of_one
def reciprocal(x):
    """1 / x"""
    return opjit.ops.element_wise_recip(x)


@_of_one
def round(x, decimals=0):
    """The nearest number of that many decimals, halves to the even one; whole numbers as they are."""
    if x.dtype not in FLOATS and decimals >= 0:
        return x
    scale = 10.0 ** abs(decimals)
    scaled = x if decimals == 0 else x * scale if decimals > 0 else x / scale
    y = opjit.ops.element_wise_round(scaled, rounding_mode="HALVES_TO_NEAREST_EVEN")
    return y if decimals == 0 else y / scale if decimals > 0 else y * scale


around = round


@_of_one
def rint(x):
    """The nearest whole number, halves to the even one."""
    return round(as_floats(x))


@_of_one
def trunc(x):
    """x without what is behind the point."""
    return opjit.ops.element_wise_round(x, rounding_mode="TOWARD_ZERO") if x.dtype in FLOATS else x


fix = trunc


@_of_one
def fabs(x):
    """|x| as a floating-point number."""
    return opjit.abs(as_floats(x))


@_of_one
def positive(x):
    """x"""
    return x


real = conj = conjugate = positive


@_of_one
def imag(x):
    """0, as of all that is real."""
    return opjit.zeros_like(x)


@_of_one
def modf(x):
    """What is behind the point, and the rest, both with the sign of x."""
    x = as_floats(x)
    whole = trunc(x)
    return copysign(opjit.where(isinf(x), 0.0, x - whole), x), whole


@_of_one
def bitwise_count(x):
    """How many bits of |x| are 1 (uint8)."""
    x = opjit.abs(x).astype("u" + x.dtype if x.dtype[0] == "i" else x.dtype)
    return opjit.ops.element_wise_bit_count(x, dtype="uint8")


@_of_one
def expm1(x):
    """exp(x) - 1, exact for small numbers too."""
    x = as_floats(x)
    u = opjit.exp(x)
    return opjit.where(u == 1, x, opjit.where((u - 1 == -1) | (u == opjit.inf), u - 1, (u - 1) * x / opjit.log(u)))


@_of_one
def log1p(x):
    """log(1 + x), exact for small numbers too."""
    x = as_floats(x)
    u = x + 1
    return opjit.where((u == 1) | (u == opjit.inf), x, opjit.log(u) * x / (u - 1))


@_of_one
def cbrt(x):
    """The number whose cube is x."""
    x = as_floats(x)
    if x.dtype == "float16":
        return cbrt(x.astype("float32")).astype("float16")
    y = opjit.sign(x) * opjit.exp(opjit.log(opjit.abs(x)) * (1 / 3))
    better = y - (y - x / (y * y)) * (1 / 3)  # a step of Newton's, which has the last bits
    return opjit.where((x == 0) | (x - x != 0), x, better)


@_of_one
def exp2(x):
    """2 to the x."""
    return 2.0 ** as_floats(x)


@_of_one
def log2(x):
    """Logarithm to the base 2."""
    return opjit.log(x) / _math.log(2)


@_of_one
def log10(x):
    """Logarithm to the base 10."""
    return opjit.log(x) / _math.log(10)


@_of_one
def degrees(x):
    """Degrees of radians."""
    return as_floats(x) * (180 / _math.pi)


@_of_one
def radians(x):
    """Radians of degrees."""
    return as_floats(x) * (_math.pi / 180)


rad2deg, deg2rad = degrees, radians


@_of_one
def sinc(x):
    """sin(pi x) / (pi x), 1 of 0."""
    y = as_floats(x) * _math.pi
    return opjit.where(y == 0, 1.0, opjit.sin(y) / y)


@_of_one
def isinf(x):
    """True for infinity of either sign."""
    return opjit.ops.element_wise_is_infinity(as_floats(x), infinity_mode="EITHER")


@_of_one
def isposinf(x):
    """True for infinity."""
    return opjit.ops.element_wise_is_infinity(as_floats(x), infinity_mode="POSITIVE")


@_of_one
def isneginf(x):
    """True for -infinity."""
    return opjit.ops.element_wise_is_infinity(as_floats(x), infinity_mode="NEGATIVE")


@_of_one
def isfinite(x):
    """True for what is neither infinite nor NaN."""
    return ~(isinf(x) | opjit.isnan(x))


@_of_one
def signbit(x):
    """True for negative numbers and -0."""
    return (x < 0) | (x == 0) & (1 / x < 0) if x.dtype in FLOATS else x < 0


@_of_one
def nan_to_num(x, *, nan=0.0, posinf=None, neginf=None):
    """x with these numbers for NaN, infinity and -infinity, the latter two by default the largest of the type."""
    if x.dtype not in FLOATS:
        return x
    most = _LARGEST[x.dtype]
    y = opjit.where(isposinf(x), most if posinf is None else posinf, opjit.where(opjit.isnan(x), nan, x))
    return opjit.where(isneginf(x), -most if neginf is None else neginf, y)


# --- of two -----------------------------------------------------------------------------------------------------------
def _of_two(function, text):
    def call(a, b):
        return function(*together((a, b)))
    call.__doc__ = text
    return call


bitwise_and = _of_two(lambda a, b: a & b, "a & b")
bitwise_or = _of_two(lambda a, b: a | b, "a | b")
bitwise_xor = _of_two(lambda a, b: a ^ b, "a ^ b")
left_shift = _of_two(lambda a, b: a << b, "a << b")
right_shift = _of_two(lambda a, b: a >> b, "a >> b")
not_equal = _of_two(lambda a, b: a != b, "a != b, as bool.")
mod = remainder = _of_two(lambda a, b: a % b, "What is left of a, with the sign of b.")
fmod = _of_two(lambda a, b: opjit.ops.element_wise_modulus_truncate(a, b), "What is left of a, with the sign of a.")
true_divide = _of_two(lambda a, b: a / b, "a / b, float64 of whole numbers.")
atan2 = arctan2 = _of_two(lambda a, b: opjit.ops.element_wise_atan_yx(as_floats(a), as_floats(b)),
                          "The angle of the point (b, a).")
fmax = _of_two(lambda a, b: opjit.where(_isnan(a), b, opjit.where(_isnan(b), a, opjit.maximum(a, b))),
               "The greater one of two elements, the other one where one is NaN.")
fmin = _of_two(lambda a, b: opjit.where(_isnan(a), b, opjit.where(_isnan(b), a, opjit.minimum(a, b))),
               "The lesser one of two elements, the other one where one is NaN.")
float_power = _of_two(lambda a, b: opjit.power(a.astype("float64"), b.astype("float64")), "a to the b, as float64.")
copysign = _of_two(lambda a, b: opjit.where(signbit(b), -fabs(a), fabs(a)), "|a| with the sign of b.")
heaviside = _of_two(lambda a, b: _step(as_floats(a), as_floats(b)),
                    "0 of negative numbers, b of 0, 1 of positive ones.")


def _step(a, b):
    return opjit.where(a == 0, b, opjit.where(a > 0, 1.0, opjit.where(a < 0, 0.0, a)))


@_of_one
def bitwise_not(x):
    """~x: all bits; of what is true or false the other one."""
    return ~x


invert = bitwise_invert = bitwise_not
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
_STEPS = {1: 12, 2: 24, 4: 47, 8: 93}  # of Euclid's for the largest numbers of so many bytes


def divmod(a, b):
    """a / b rounded down, and what is left of a."""
    a, b = together((a, b))
    return a // b, a % b


def floor_quotient(a, b):
    """a / b of floating-point numbers rounded down, without the rounding of the quotient: 1 // 0.1 is 9."""
    if a.dtype == "float16":
        return floor_quotient(a.astype("float32"), b.astype("float32")).astype("float16")
    rest = opjit.ops.element_wise_modulus_truncate(a, b)
    quotient = (a - rest) / b
    quotient = opjit.where((rest != 0) & ((b < 0) ^ (rest < 0)), quotient - 1, quotient)
    y = opjit.floor(quotient)
    y = opjit.where(quotient - y > 0.5, y + 1, y)
    return opjit.where(b == 0, a / b, opjit.where(quotient == 0, a / b * 0, y))


def gcd(a, b):
    """The greatest number that divides both."""
    a, b = (opjit.abs(x) for x in together((a, b)))
    if a.dtype in FLOATS or b.dtype in FLOATS:
        raise TypeError(f"gcd: {a.dtype}, must be whole numbers")
    for _ in range(_STEPS[int(a.dtype.lstrip("uint")) // 8]):
        a, b = opjit.where(b == 0, a, b), opjit.where(b == 0, b, a % opjit.where(b == 0, 1, b))
    return a


def lcm(a, b):
    """The least number that both divide."""
    a, b = together((a, b))
    divisor = gcd(a, b)
    return opjit.where(divisor == 0, 0, opjit.abs(a) // opjit.where(divisor == 0, 1, divisor) * opjit.abs(b))


def _isnan(x):
    """x != x"""
    return x != x


def hypot(a, b):
    """sqrt(a * a + b * b), whose squares may be larger than the type has."""
    a, b = map(fabs, together((a, b)))
    most, least = opjit.maximum(a, b), opjit.minimum(a, b)
    ratio = least / opjit.where(most == 0, 1.0, most)
    return opjit.where(isinf(a) | isinf(b), opjit.inf, most * opjit.sqrt(1 + ratio * ratio))


def logaddexp(a, b):
    """log(exp(a) + exp(b))"""
    a, b = map(as_floats, together((a, b)))
    if a.dtype == "float16":
        return logaddexp(a.astype("float32"), b.astype("float32")).astype("float16")
    return opjit.where(a == b, a + _math.log(2), opjit.maximum(a, b) + log1p(opjit.exp(-opjit.abs(a - b))))


def logaddexp2(a, b):
    """log2(2**a + 2**b)"""
    a, b = map(as_floats, together((a, b)))
    return opjit.where(a == b, a + 1, opjit.maximum(a, b) + log1p(exp2(-opjit.abs(a - b))) * (1 / _math.log(2)))


def isclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """True where |a - b| is at most atol + rtol * |b|."""
    a, b = map(as_floats, together((a, b)))
    close = (opjit.abs(a - b) <= atol + rtol * opjit.abs(b)) & isfinite(b) | (a == b)
    return close | opjit.isnan(a) & opjit.isnan(b) if equal_nan else close


def allclose(a, b, rtol=1e-5, atol=1e-8, equal_nan=False):
    """True if all elements are close (isclose)."""
    return opjit.all(isclose(a, b, rtol, atol, equal_nan))


def select(conditions, choices, default=0):
    """The element of the choice whose condition is the first that is not 0, or the default."""
    if len(conditions) != len(choices) or not conditions:
        raise ValueError(f"select: {len(conditions)} conditions and {len(choices)} choices, must be as many")
    *choices, result = together((*choices, default))
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        result = opjit.where(condition, choice, result)
    return result


def choose(indices, choices, mode="raise"):
    """The element of the choice that the index says.  mode: indices beyond them begin again ("wrap"), or are those of
    the first or last one."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f'choose: mode {mode!r}, must be "raise", "wrap" or "clip"')
    indices = tensor(graph_of((indices, *choices)), indices)
    indices = indices % len(choices) if mode == "wrap" else indices
    first, *others = together([tensor(indices.graph, x) for x in choices])
    for n, choice in enumerate(others, 1):
        first = opjit.where(indices >= n, choice, first)
    return first
