# SPDX-License-Identifier: Apache-2.0
"""What a call of a small kernel costs from Python, of PyTorch's tensors and in JAX where they are installed:
PYTHONPATH=build/release/python python3 tests/bench/python_calls.py"""
import pickle
import timeit

import numpy
import opjit

graph = opjit.Graph()
k = opjit.compile(graph.input((4, 5)) + 1)
e = opjit.compile(opjit.eye(4, 5))
d = opjit.compile(lambda n: opjit.Graph().input((n, 5)) + 1, dims={"n": (1, 4096, 512)})
x, y, f4 = numpy.ones((4, 5), "f"), numpy.empty((4, 5), "f"), numpy.dtype("f4")


def measure(lines, names):
    for line in lines:
        time = min(timeit.repeat(line, globals=names, number=500, repeat=4000)) / 500
        print(f"{line:24} {time * 1e9:5.0f} ns")


measure(("e(out=y)", "e()", "k(x, out=y)", "k(x)", "d(x, out=y)", "d(x)", "numpy.empty((4, 5), f4)",
         "numpy.add(x, 1, out=y)", "len(x)"), globals())
data = pickle.dumps(k)
for line in ("pickle.dumps(k)", "pickle.loads(data)"):
    time = min(timeit.repeat(line, globals=globals(), number=50, repeat=400)) / 50
    print(f"{line:24} {time * 1e6:5.1f} us, {len(data)} bytes")

try:
    import torch
except ImportError:
    print("no PyTorch")
else:
    print("PyTorch:")
    tensors = {"torch": torch, "k": k, "e": e, "x": torch.ones(4, 5), "y": torch.empty(4, 5)}
    measure(("e(out=y)", "k(x, out=y)", "k(x)", "torch.empty((4, 5))", "torch.add(x, 1, out=y)"), tensors)

try:
    import jax
    import opjit.jax
except ImportError:
    raise SystemExit("no JAX")
jax.config.update("jax_platforms", "cpu")
z, steps = jax.numpy.ones((4, 5)), 100000


def loop(body):
    """Nanoseconds of body in a loop that XLA has compiled."""
    f = jax.jit(lambda z: jax.lax.fori_loop(0, steps, lambda i, z: body(z), z))
    jax.block_until_ready(f(z))
    return min(timeit.repeat(lambda: jax.block_until_ready(f(z)), number=1, repeat=20)) / steps * 1e9


print(f"{'jax: k in a loop':24} {loop(lambda z: opjit.jax.call(k, z)):5.0f} ns, z + 1 {loop(lambda z: z + 1):.0f} ns")
for line in ("opjit.jax.call(k, z)", "f(z)"):
    names = {"opjit": opjit, "k": k, "z": z, "f": jax.jit(lambda z: z + 1)}
    time = min(timeit.repeat(line, globals=names, number=50, repeat=100)) / 50
    print(f"{line:24} {time * 1e6:5.1f} us")
