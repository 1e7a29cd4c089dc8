# SPDX-License-Identifier: Apache-2.0
"""stubs.py FILE - writes the type stub of opjit.ops, a function for each operator of the tables."""
import sys

from opjit import ops

lines = ['"""Every operator of this build.  Written by stubs.py out of opjit/reflect.h\'s tables."""',
         "from collections.abc import Sequence", "from typing import Any, Literal", "",
         "from ._tensor import Deferred, Tensor", "",
         "Operand = Tensor | Deferred | float | Any", "DType = str | Any", ""]
for name in dir(ops):
    operator = ops._operators()[name]
    parameters, star = [], False
    for parameter, annotation, optional, keyword in operator.parameters():
        if keyword and not star:
            parameters.append("*")
            star = True
        parameters.append(f"{parameter}: {annotation}" + (" = ..." if optional else ""))
    lines.append(f"def {name}({', '.join(parameters)}) -> {operator.result()}:")
    lines.append(f"    {operator.document()!r}")
    lines.append("    ...")
with open(sys.argv[1], "w", encoding="utf-8") as file:
    file.write("\n".join(lines) + "\n")
