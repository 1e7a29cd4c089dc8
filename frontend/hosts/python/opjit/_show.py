# SPDX-License-Identifier: Apache-2.0
"""What kernels tell of themselves as text."""


def text(kernel):
    """The repr of a kernel."""
    def ports(rows):
        return ", ".join(f"{name}: {dtype} {list(shape)}" for name, dtype, shape in rows)
    return f"opjit.Kernel({ports(kernel.inputs)} -> {ports(kernel.outputs)})"


def explain(kernel):
    """The IR after each pass and how each loop is done."""
    return "".join(f"== {stage}\n{text}" for stage, text in kernel.graph.explain())


def ir(kernel):
    """The IR that goes to code generation."""
    return kernel.graph.artifact("ir", kernel.info["level"], "kernel").decode()


def asm(kernel):
    """The assembly of the same code."""
    return kernel.graph.artifact("asm", kernel.info["level"], "kernel").decode()
