# SPDX-License-Identifier: Apache-2.0
"""Kernels as functions of JAX's arrays: eager, jit, vmap, loops, gradients, threads, and what is refused."""
import gc
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ["JAX_PLATFORMS"] = "cpu"
import jax
import jax.numpy as jnp
import numpy as np

import opjit
import opjit.jax
from host_support import on_threads, resident

TREE = pathlib.Path(__file__).parents[2]


def masked(x):
    return opjit.softmax(opjit.where(opjit.tri(*x.shape[-2:]), x, -opjit.inf))


def reference(x):
    return jax.nn.softmax(jnp.where(jnp.tri(*x.shape[-2:], dtype=bool), x, -jnp.inf))


def add_one(shape=(4, 4), dtype="float32"):
    return opjit.compile(opjit.Graph().input(shape, dtype) + 1)


def scores(*shape):
    return jnp.asarray(np.random.default_rng(1).standard_normal(shape).astype("f"))


class Calls(unittest.TestCase):
    def close(self, got, want):
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-7)

    def test_ways(self):
        x = scores(8, 8)
        self.close(opjit.jax.call(masked, x), reference(x))
        self.close(jax.jit(lambda a: opjit.jax.call(masked, a * 2) + 1)(x), reference(x * 2) + 1)
        xs = scores(3, 8, 8)
        self.close(jax.vmap(lambda a: opjit.jax.call(masked, a))(xs), reference(xs))
        self.close(jax.jit(jax.vmap(lambda a, b: opjit.jax.call(lambda s, t: masked(s) + t, a, b), (0, None)))(xs, x),
                   reference(xs) + x)
        self.close(jax.lax.fori_loop(0, 3, lambda i, a: opjit.jax.call(masked, a), x),
                   reference(reference(reference(x))))
        self.close(opjit.jax.call(masked, np.asarray(x)), reference(x))
        shapes = jax.eval_shape(lambda a: opjit.jax.call(lambda t: opjit.topk(t, 2), a), x)
        self.assertEqual([(s.shape, str(s.dtype)) for s in shapes], [((8, 2), "float32"), ((8, 2), "uint32")])

    def test_kernels_and_tensors(self):
        x = jnp.arange(12, dtype="f").reshape(3, 4)
        g = opjit.Graph()
        t = g.input((3, 4), name="t")
        flag = g.input((3, 4), "uint8")
        y = opjit.where(flag, t, 0)
        self.close(opjit.jax.call(y, x, x > 5), jnp.where(x > 5, x, 0))
        self.close(opjit.jax.call(y, x, (x > 5).astype("u1")), jnp.where(x > 5, x, 0))
        g = opjit.Graph()
        y = opjit.where(g.input((3, 4), "uint8", name="flag"), g.input((3, 4)), 0)
        k = opjit.compile({"a": y, "b": y * 2})
        a, b = opjit.jax.call(k, x > 5, x)
        self.close(b, a * 2)
        g = opjit.Graph()
        y = opjit.where(g.input((3, 4), bool), g.input((3, 4)), 0)
        both = [y, y * 2]
        for what in (both, tuple(both)):
            self.close(opjit.jax.call(what, x > 5, x)[1], a * 2)
        self.close(opjit.jax.call(lambda flag, t: opjit.where(~flag, t, 0), x > 5, x), jnp.where(x > 5, 0, x))
        none = opjit.compile(opjit.eye(3, 4))
        self.close(jax.jit(lambda: opjit.jax.call(none))(), jnp.eye(3, 4))
        for dtype in ("float16", "int8", "int16", "int32", "uint8", "uint16", "uint32"):
            z = jnp.arange(12, dtype=dtype)
            self.close(opjit.jax.call(add_one((12,), dtype), z), z + jnp.ones((), dtype))
        with jax.enable_x64(True):
            for dtype in ("float64", "int64", "uint64"):
                z = jnp.arange(12, dtype=dtype)
                self.close(opjit.jax.call(add_one((12,), dtype), z), z + jnp.ones((), dtype))

    def test_without_dimensions(self):
        """A number is a tensor of one element, and what jax.vmap maps over may be numbers."""
        def scaled(t, by):
            return t * by
        x, by = scores(3, 4), jnp.float32(2.5)
        self.close(opjit.jax.call(scaled, x, by), x * by)
        self.close(jax.jit(lambda x, by: opjit.jax.call(scaled, x, by))(x, by), x * by)
        mapped = jax.vmap(lambda row, by: opjit.jax.call(scaled, row, by))(x, jnp.arange(3.0))
        self.close(mapped, x * jnp.arange(3.0)[:, None])

    def test_many_arrays(self):
        def add(*tensors):
            return [tensors[0] + t for t in tensors[1:]]
        arrays = [jnp.full((3,), i, "f") for i in range(15)]
        for i, y in enumerate(opjit.jax.call(add, *arrays)):
            self.close(y, jnp.full((3,), i + 1, "f"))

    def test_gradients(self):
        x = scores(4, 4)
        with self.assertRaisesRegex(TypeError, r"^opjit.jax.call: there is no gradient of a kernel: give call"):
            jax.grad(lambda a: opjit.jax.call(masked, a).sum())(x)

        def square(t):
            return t * t

        def vjp(arrays, results, cotangents):
            return 2 * arrays[0] * cotangents,
        for f in (lambda a: opjit.jax.call(square, a, vjp=vjp).sum(),
                  jax.jit(lambda a: opjit.jax.call(square, a, vjp=vjp).sum())):
            self.close(jax.grad(f)(x), 2 * x)
        self.close(jax.grad(lambda a: (a * opjit.jax.call(masked, jax.lax.stop_gradient(a))).sum())(x), reference(x))

    def test_threads_and_growth(self):
        k, x = add_one(), jnp.zeros((4, 4))
        step = jax.jit(lambda a: opjit.jax.call(k, a))
        loop = jax.jit(lambda a: jax.lax.fori_loop(0, 12500, lambda i, z: opjit.jax.call(k, z), a))

        def work(_):
            np.testing.assert_array_equal(loop(x), jnp.full((4, 4), 12500, "f"))
            for _ in range(50):
                np.testing.assert_array_equal(step(x), 1)
        for rounds in range(2):
            before = resident() if rounds == 1 else 0
            self.assertEqual(on_threads(work), [])  # 100,000 calls
        self.assertLess(resident() - before, 8000 << 10)

    def test_life(self):
        """A program that XLA has compiled keeps its kernel."""
        def program():
            weights = np.arange(5000, dtype="f")
            g = opjit.Graph()
            k = opjit.compile(g.input((5000,)) + g.constant(weights))
            return jax.jit(lambda a: opjit.jax.call(k, a))
        f = program()
        f(jnp.zeros(5000))
        gc.collect()
        self.close(f(jnp.ones(5000)), jnp.arange(5000, dtype="f") + 1)


class Refusals(unittest.TestCase):
    def refuses(self, exception, text, function, *arrays):
        with self.assertRaises(exception) as caught:
            jax.block_until_ready(function(*arrays))
        line = str(caught.exception).splitlines()[0]
        self.assertIn(text, line)

    def test_while_tracing(self):
        k, call = add_one(), opjit.jax.call
        for run in (lambda *a: call(k, *a), jax.jit(lambda *a: call(k, *a))):
            self.refuses(opjit.Error, "buffer 0: float32 [4, 4] expected, float32 [4, 5] given", run, jnp.ones((4, 5)))
            self.refuses(opjit.Error, "buffer 0: float32 [4, 4] expected, int32 [4, 4] given", run,
                         jnp.ones((4, 4), "int32"))
            self.refuses(opjit.Error, "buffer 0: float32 [4, 4] expected, bfloat16 [4, 4] given", run,
                         jnp.ones((4, 4), "bfloat16"))
            self.refuses(opjit.Error, "buffer 0: float32 [4, 4] expected, float32 [] given", run, jnp.ones(()))
            self.refuses(TypeError, "0 arrays given, the kernel takes 1", run)
        self.refuses(TypeError, "a kernel, tensors or a function is needed, int given", call, 3)
        self.refuses(ValueError, "the function reads 1 of its 2 tensors", call, lambda a, b: a + 1, jnp.ones(2),
                     jnp.ones(2))
        self.refuses(ValueError, "result y is float64, which needs jax.config", call,
                     opjit.compile({"y": opjit.eye(3, dtype="float64")}))
        self.refuses(opjit.Error, "", call, lambda a: a.reshape(5), jnp.ones(4))

    def test_in_programs(self):
        """What reaches the handler without opjit.jax.call's checks."""
        k = add_one()
        row = jax.ShapeDtypeStruct((4, 4), "float32")
        run = jax.ffi.ffi_call("opjit", row)
        handle = np.int64(k._xla())
        x = jnp.ones((4, 4))
        self.refuses(Exception, "INVALID_ARGUMENT: buffer 0: float32 [4, 4] expected, float32 [5] given",
                     lambda: run(jnp.ones(5), kernel=handle))
        self.refuses(Exception, "buffer 0: float32 [4, 4] expected, another type [4, 4] given",
                     lambda: run(jnp.ones((4, 4), "complex64"), kernel=handle))
        self.refuses(Exception, "buffer 1: float32 [4, 4] expected, int8 [4, 4] given",
                     lambda: jax.ffi.ffi_call("opjit", jax.ShapeDtypeStruct((4, 4), "int8"))(x, kernel=handle))
        self.refuses(Exception, "opjit: 2 arrays and 1 results given, the kernel takes 1 and 1",
                     lambda: run(x, x, kernel=handle))
        for wrong in (np.int64(0), np.int64(handle + 1000), np.int64(handle ^ 1 << 40), np.int64(-1), np.int32(1),
                      "kernel", np.arange(3)):
            self.refuses(Exception, "opjit: the kernel is another process's", lambda: run(x, kernel=wrong))
        self.refuses(Exception, "opjit: the kernel is another process's", lambda: run(x))
        np.testing.assert_array_equal(run(x, kernel=handle), x + 1)


class Others(unittest.TestCase):
    def test_layout(self):
        """The declarations of ours are those of jaxlib's header."""
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            self.skipTest("no C compiler")
        done = subprocess.run([compiler, "-std=c11", "-fsyntax-only", f"-I{jax.ffi.include_dir()}", f"-I{TREE}",
                               str(TREE / "tests/hosts/xla_layout.c")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_page(self):
        """The lines of docs/jax.md, as they stand."""
        blocks = re.findall(r"```python\n(.*?)```", (TREE / "docs/jax.md").read_text(), re.S)
        self.assertGreaterEqual(len(blocks), 1)
        with tempfile.TemporaryDirectory() as folder:
            for block in blocks:
                done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, cwd=folder)
                self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
