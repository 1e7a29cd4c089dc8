# SPDX-License-Identifier: Apache-2.0
"""Copies and pickles.  A graph is the calls that built it, or its model; a kernel is its graph with the image of its
code.  A pickle is as good as a program: load only what you trust, as with every pickle."""
import os

from . import _opjit


def model_bytes(path, seconds, nanoseconds, size):
    """The file's bytes, if it is what it was when the model was read."""
    with open(path, "rb") as file:
        now = os.fstat(file.fileno())
        if (now.st_mtime_ns, now.st_size) != (seconds * 10**9 + nanoseconds, size):
            raise ValueError(f"{path}: has changed since the model was read, so it can't be copied")
        return file.read()


def portable(steps):
    """The steps, with a model's bytes instead of its path."""
    if len(steps) != 1 or steps[0][0] != "model" or isinstance(steps[0][1][0], bytes):
        return steps
    source, dims, shapes, values, folder = steps[0][1]
    return (("model", (model_bytes(*source), dims, shapes, values, folder or os.path.dirname(source[0])), None),)


def build(steps):
    """The graph that the steps make, and what each handle of theirs is there."""
    if len(steps) == 1 and steps[0][0] == "model":
        source, dims, shapes, values, folder = steps[0][1]
        return _opjit.Graph(source, dims=dims, shapes=shapes, values=values, folder=folder), {}
    core, handles = _opjit.Graph(), {None: None}
    for method, args, result in steps:
        if method == "node":
            args = (args[0], tuple(handles[h] for h in args[1]), *args[2:])
        elif method not in ("input", "constant", "scalar"):
            args = (handles[args[0]], *args[1:])
        made = getattr(core, method)(*args)
        handles.update(zip(result, made) if isinstance(made, tuple) else [(result, made)])
    return core, handles


def graph(steps):
    """_opjit.Graph."""
    return build(steps)[0]


def reduce_graph(core):
    """For pickle and copy."""
    return graph, (portable(core.steps()),)


def reduce_kernel(kernel):
    """For pickle; an interpreted kernel has no image."""
    return load, (portable(kernel.graph.steps()), *kernel._state())


def load(steps, image, target, level, interpret, threads):
    """The kernel: its image where that is this CPU's and this build's, else compiled anew; where nothing can compile,
    the image if it runs here, or opjit.Error with what is missing."""
    core = graph(steps)
    if threads != 1 and _opjit.threads() is not None:
        threads = _opjit.threads()  # one pool a process
    kernel = core.compile(level, interpret, threads, image)
    if image is None or interpret or not kernel.info["interpreted"]:
        return kernel
    _opjit.runs_here(target)
    kernel = core.compile(level, False, threads, image, target)
    if kernel.info["interpreted"]:
        raise ValueError("the kernel's image is damaged or of another build of opjit, and without code generation it "
                         "can't be compiled anew")
    return kernel
