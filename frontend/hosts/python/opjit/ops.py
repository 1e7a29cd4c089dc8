# SPDX-License-Identifier: Apache-2.0
"""Every operator of this build as a function, by DirectML's name in lower case: opjit.ops.element_wise_add(a, b).

Tensors come first and in order; the other fields of the descriptor are keywords, whose names are the fields' in lower
case ("InputWindowSizes" is input_window_sizes).  Arrays and numbers stand for constants.  Three more keywords:

    dtype, shape   of the (first) output, where they do not follow from the inputs
    outputs        how many of the outputs there are, or a list of (dtype, shape), each of which may be None
    name           of the node, in messages
"""
import functools as _functools
import re as _re

from . import _opjit
from ._tensor import add_node as _add_node

_INPUT, _OUTPUT, _INPUTS, _OUTPUTS, _DATA_TYPE = range(5)
_OPTIONAL, _COUNT = 1, 4
_KINDS = {5: "float", 6: "int", 7: "int", 8: "float", 9: "bool", 10: "str", 11: "Sequence[int]", 12: "Sequence[int]",
          13: "Sequence[float]", 14: "tuple[float, float]", 15: "tuple[str, dict]", 16: "tuple[int, int]",
          17: "Sequence[tuple[str, dict]]"}


def _snake(name):
    """input_window_sizes of InputWindowSizes, a of ATensor."""
    name = _re.sub(r"Tensors?$", "", name) or name
    name = _re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return _re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name).lower()


class Operator:
    """What a function is made of: a row of opjit/reflect.h's tables."""

    def __init__(self, row):
        self.name, self.formula, self.flags, self.fields = row
        self.inputs = [f for f in self.fields if f[1] in (_INPUT, _INPUTS)]
        self.outputs = [f for f in self.fields if f[1] in (_OUTPUT, _OUTPUTS)]
        counts = [f for f in self.fields if f[2] & _COUNT]
        self.values = [f for f in self.fields if f[1] > _DATA_TYPE and f not in counts]
        self.python_name = self.name.lower()

    def annotation(self, field):
        name, kind, flags, values = field
        text = ("Operand" if kind == _INPUT else "Sequence[Operand]" if kind == _INPUTS else
                "Literal[" + ", ".join(f'"{v}"' for v in values) + "]" if values else _KINDS[kind])
        return text + " | None" if flags & _OPTIONAL else text

    def parameters(self):
        """(name, annotation, is optional, is keyword): those that are not optional first among the tensors."""
        needed = [f for f in self.inputs if not f[2] & _OPTIONAL]
        tail = self.inputs.index(needed[-1]) + 1 if needed else 0
        for i, field in enumerate(self.inputs):
            yield _snake(field[0]), self.annotation(field), i >= tail, False
        for field in self.values:
            yield _snake(field[0]), self.annotation(field), bool(field[2] & _OPTIONAL), True
        for name, annotation in (("dtype", "DType | None"), ("shape", "Sequence[int] | None"),
                                 ("outputs", "int | Sequence[tuple] | None"), ("name", "str | None")):
            yield name, annotation, True, True

    def result(self):
        needed = sum(not f[2] & _OPTIONAL for f in self.outputs)
        return "Tensor" if needed == 1 and self.outputs[0][1] == _OUTPUT else "tuple[Tensor, ...]"

    def document(self):
        return f"{self.name}: {self.formula}"

    def function(self):
        import inspect as _inspect  # takes longer to import than all of this package
        fields = {_snake(f[0]): f for f in self.values}
        names = [_snake(f[0]) for f in self.inputs]
        signature = _inspect.Signature([_inspect.Parameter(
            name, _inspect.Parameter.KEYWORD_ONLY if keyword else _inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None if optional else _inspect.Parameter.empty, annotation=annotation)
            for name, annotation, optional, keyword in self.parameters()], return_annotation=self.result())

        def call(*args, **kwargs):
            bound = signature.bind(*args, **kwargs).arguments
            operands = []
            for field, name in zip(self.inputs, names):
                value = bound.get(name)
                operands.extend(value if field[1] == _INPUTS else [value])
            outputs = bound.get("outputs")
            if outputs is None:
                outputs = max([1] + [i + 1 for i, f in enumerate(self.outputs) if not f[2] & _OPTIONAL])
            rows = [(None, None)] * outputs if isinstance(outputs, int) else list(outputs)
            if rows and (bound.get("dtype") is not None or bound.get("shape") is not None):
                rows[0] = (bound.get("dtype"), bound.get("shape"))
            values = {fields[key][0]: value for key, value in bound.items() if key in fields}
            results = _add_node(self.name, operands, values, rows, bound.get("name"))
            return results[0] if len(results) == 1 and self.outputs[0][1] == _OUTPUT else results

        call.__name__ = call.__qualname__ = self.python_name
        call.__doc__ = self.document()
        call.__signature__ = signature
        call.__module__ = __name__
        return call


@_functools.cache
def _operators():
    return {row[0].lower(): Operator(row) for row in _opjit.operators()}


def __getattr__(name):
    if name.startswith("_") or name not in _operators():
        raise AttributeError(f"module {__name__!r} has no operator {name!r}")
    function = globals()[name] = _operators()[name].function()
    return function


def __dir__():
    return sorted(_operators())
