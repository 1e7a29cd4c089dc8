# SPDX-License-Identifier: Apache-2.0
"""Bools, which are uint8 in a graph: which operators make them, and what they are beside numbers."""
from numbers import Integral, Real

_KEEP = {"ELEMENT_WISE_BIT_AND", "ELEMENT_WISE_BIT_OR", "ELEMENT_WISE_BIT_XOR", "ELEMENT_WISE_MIN", "ELEMENT_WISE_MAX",
         "ELEMENT_WISE_IF", "DIAGONAL_MATRIX1", "JOIN", "GATHER", "GATHER_ELEMENTS", "SCATTER_ELEMENTS", "TILE",
         "SPLIT", "PADDING", "TOP_K", "TOP_K1"}  # of bools they make bools
_ASIDE = {"ELEMENT_WISE_IF": 0, "GATHER": 1, "GATHER_ELEMENTS": 1, "SCATTER_ELEMENTS": 1}  # an operand that may be none
_OF_BOOLS = {"ELEMENT_WISE_ADD": "ELEMENT_WISE_BIT_OR", "ELEMENT_WISE_MULTIPLY": "ELEMENT_WISE_BIT_AND"}


def makes_bools(type, values, handles, bools):
    """Whether the operator's results are bools, of handles of which those of `bools` are some."""
    if type.startswith(("ELEMENT_WISE_LOGICAL_", "ELEMENT_WISE_IS_")):
        return True
    keeps = type in _KEEP or type == "REDUCE" and values["Function"] in ("MIN", "MAX")
    value = values.get("Value", values.get("PaddingValue", 0))
    handles = [h for n, h in enumerate(handles) if n != _ASIDE.get(type)]
    return keeps and bool(handles) and bools.issuperset(handles) and value in (0, 1)


def _is_known(x):
    return isinstance(x, bool) or getattr(x, "_is_bool", False)


def are_bools(operands):
    """Whether there is a tensor among them, and all are bools."""
    return any(hasattr(x, "_handle") for x in operands) and all(map(_is_known, operands))


def keeps_bools(type):
    """Whether the operator has bools beside each other as they are."""
    return "LOGICAL" in type or type[13:] in ("ADD", "MULTIPLY", "SUBTRACT", "MIN", "MAX")


def of_bools(type):
    """The operator that does it with bools."""
    if type == "ELEMENT_WISE_SUBTRACT":
        raise TypeError("bools are not subtracted: a ^ b, or x.astype(...)")
    return _OF_BOOLS.get(type, type)


def as_numbers(a, b, tensor, keeps):
    """The operands, bools in the type of the tensor beside them, in int64 or float64 beside a number, and beside bools
    in int8, unless the operator keeps these.  tensor: makes a tensor of an array."""
    if not any(hasattr(x, "_handle") for x in (a, b)) or not any(map(_is_known, (a, b))):
        return a, b
    pair = [x if hasattr(x, "_handle") or isinstance(x, Real) else tensor(x) for x in (a, b)]
    others = [x for x in pair if not _is_known(x)]
    if not others and keeps:
        return pair
    dtype = "int8" if not others else others[0].dtype if hasattr(others[0], "_handle") else \
        "int64" if isinstance(others[0], Integral) else "float64"
    return [x.astype(dtype) if getattr(x, "_is_bool", False) else x for x in pair]
