# SPDX-License-Identifier: Apache-2.0
"""Kernels as functions of TVM FFI: compiled by libopjit-tvmffi.so (OPJIT_TVMFFI), and ahead of time by the program
(OPJIT_PROGRAM) and a linker, or the loader of objects tvm_ffi_orcjit."""
import gc
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tvm_ffi

try:
    import tvm_ffi_orcjit as orcjit
except ImportError:
    orcjit = None
from host_support import on_threads, resident

TREE = pathlib.Path(__file__).parents[2]
LIBRARY, PROGRAM = os.environ["OPJIT_TVMFFI"], os.environ["OPJIT_PROGRAM"]
COMPILER = shutil.which(os.environ.get("CC", "cc"))
MODULE = tvm_ffi.load_module(LIBRARY)


def tensor(*sizes, dtype="FLOAT32", **more):
    return {"DataType": dtype, "Sizes": list(sizes), **more}


def model(**dispatchables):
    return json.dumps({"resources": {}, "commands": [], "dispatchables": dispatchables})


def add(*sizes, dtype="FLOAT32", **more):
    t = tensor(*sizes, dtype=dtype)
    return {"type": "ELEMENT_WISE_ADD", "desc": {"ATensor": {**t, **more}, "BTensor": t, "OutputTensor": t}}


def product(m, k, n):
    return {"type": "GEMM", "desc": {
        "ATensor": tensor(1, 1, m, k), "BTensor": tensor(1, 1, n, k), "OutputTensor": tensor(1, 1, m, n),
        "TransA": "NONE", "TransB": "TRANSPOSE", "Alpha": 1, "Beta": 0}}


def top(rows, columns, k):
    return {"type": "TOP_K", "desc": {
        "InputTensor": tensor(1, 1, rows, columns), "OutputValueTensor": tensor(1, 1, rows, k),
        "OutputIndexTensor": tensor(1, 1, rows, k, dtype="UINT32"), "Axis": 3, "K": k}}


def numbers(*shape, dtype="f"):
    return np.random.default_rng(1).integers(-8, 8, shape).astype(dtype)


class Ways:
    """What both ways have to do: function(name, dispatchable) gives the kernel."""

    def test_results(self):
        f = self.function("sum", add(4, 5))
        a, b, y = numbers(4, 5), numbers(4, 5) + 1, np.empty((4, 5), "f")
        self.assertIsNone(f(a, b, y))
        np.testing.assert_array_equal(y, a + b)
        views = [tvm_ffi.from_dlpack(x) for x in (b, b, y)]
        f(*views)
        np.testing.assert_array_equal(y, b + b)
        wide = np.zeros((4, 8), "f")
        part = wide[:, 2:7]
        f = self.function("sum_of_rows", add(4, 5, Strides=[8, 1]))
        f(part, b, y)  # a slice: an offset and strides
        np.testing.assert_array_equal(y, b)

    def test_workspaces(self):
        for m, k, n in ((6, 8, 7), (96, 64, 80)):
            a, b, y = numbers(1, 1, m, k), numbers(1, 1, n, k), np.empty((1, 1, m, n), "f")
            self.function(f"product_{m}", product(m, k, n))(a, b, y)
            np.testing.assert_array_equal(y, a @ b.transpose(0, 1, 3, 2))
        for rows in (2, 40):
            x = np.random.default_rng(2).permutation(rows * 50).reshape(1, 1, rows, 50).astype("f")
            values, indices = np.empty((1, 1, rows, 5), "f"), np.empty((1, 1, rows, 5), "u4")
            self.function(f"top_{rows}", top(rows, 50, 5))(x, values, indices)
            np.testing.assert_array_equal(values, -np.sort(-x)[..., :5])
            np.testing.assert_array_equal(np.take_along_axis(x, indices.astype("i8"), 3), values)

    def test_types(self):
        names = {"FLOAT16": "f2", "FLOAT64": "f8", "INT8": "i1", "INT16": "i2", "INT32": "i4", "INT64": "i8",
                 "UINT8": "u1", "UINT16": "u2", "UINT32": "u4", "UINT64": "u8"}
        for name, dtype in names.items():
            f = self.function(f"sum_{name.lower()}", add(3, 2, dtype=name))
            a, y = np.arange(6, dtype=dtype).reshape(3, 2), np.empty((3, 2), dtype)
            f(a, a, y)
            np.testing.assert_array_equal(y, a + a)
            for other in set(names.values()) - {dtype}:
                with self.assertRaises((TypeError, ValueError)):
                    f(a.astype(other), a, y)

    def test_refusals(self):
        f = self.function("sum", add(4, 5))
        good, y = np.ones((4, 5), "f"), np.full((4, 5), 7, "f")
        wrong = [(good, good), (good, good, y, y), (), (3, good, y), (good, None, y), (good, "text", y),
                 (good, good.astype("f8"), y), (np.ones((5, 4), "f"), good, y), (good[None], good, y),
                 (np.ones((5, 4), "f").T, good, y), (np.ones((4, 10), "f")[:, ::2], good, y),
                 (np.ones(20, "f"), good, y), (good[::-1], good, y), (np.ones((0, 5), "f"), good, y),
                 (good, good, y.astype("i4"))]
        for arrays in wrong:
            with self.assertRaises((TypeError, ValueError)) as caught:
                f(*arrays)
            text = str(caught.exception)
            self.assertTrue("expected" in text or "takes" in text, text)
            self.assertNotIn("\n", text)
        np.testing.assert_array_equal(y, 7)
        f(good, good, y)
        one = self.function("one_row", add(1, 5))
        y = np.empty((1, 5), "f")
        one(np.ones((3, 5), "f")[1:2], np.ones((1, 5), "f"), y)  # the stride of a size of 1 says nothing
        np.testing.assert_array_equal(y, 2)

    def test_torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("torch is not installed")
        a, y = torch.arange(20.0).reshape(4, 5), torch.empty(4, 5)
        self.function("sum", add(4, 5))(a, a, y)
        self.assertTrue(torch.equal(y, a + a))

    def test_threads_and_growth(self):
        f = self.function("sum", add(4, 5))

        def work(_):
            a, y = numbers(4, 5), np.empty((4, 5), "f")
            x, z = tvm_ffi.from_dlpack(a), tvm_ffi.from_dlpack(y)
            for i in range(12500):
                f(x, x, z)
                if i % 500 == 0:
                    with self.assertRaises(TypeError):
                        f(x, x)
            np.testing.assert_array_equal(y, a + a)
        for rounds in range(2):
            before = resident() if rounds == 1 else 0
            self.assertEqual(on_threads(work), [])  # 100,000 calls
        self.assertLess(resident() - before, 4000 << 10)


class Compiled(Ways, unittest.TestCase):
    def function(self, name, dispatchable):
        return MODULE.compile(model(**{name: dispatchable}))

    def test_models(self):
        text = model(first=add(2, 2), second=add(3, 3))
        y = np.empty((3, 3), "f")
        MODULE.compile(text, "second")(np.ones((3, 3), "f"), np.ones((3, 3), "f"), y)
        np.testing.assert_array_equal(y, 2)
        for wrong, line in (((text,), "has 2 dispatchables: name one of them"),
                            ((text, "third"), 'has no dispatchable "third"'),
                            (("",), "line 1, column 1"), (("{]",), "line 1, column 2"),
                            ((text.replace("ELEMENT_WISE_ADD", "ELEMENT_WISE_AD"),), "ELEMENT_WISE_AD"),
                            ((text.replace("[2, 2]", "[2, 0]"),), "$.dispatchables.first"),
                            ((b"",), "onnx"), ((b"bytes",), "onnx"), ((b"more bytes than are small",), "onnx"),
                            ((json.dumps({"resources": {"r": {"initialValues": {"sourcePath": "/etc/passwd"}}},
                                          "commands": [], "dispatchables": {}}),), "model: ")):
            with self.assertRaises(ValueError) as caught:
                MODULE.compile(*wrong)
            self.assertIn(line, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))
        for wrong in ((), (3,), (text, 3), (text, "first", "second"), (b"bytes", "name"), (None,)):
            with self.assertRaisesRegex(TypeError, "^compile: "):
                MODULE.compile(*wrong)

    def test_onnx(self):
        try:
            import onnx
        except ImportError:
            self.skipTest("onnx is not installed")
        helper = onnx.helper
        w = numbers(3000, 4)
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["p"]),
                                   helper.make_node("Greater", ["p", "l"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", 1, [2, 3000]),
                                   helper.make_tensor_value_info("l", 1, [])],
                                  [helper.make_tensor_value_info("y", 9, [2, 4])],
                                  [onnx.numpy_helper.from_array(w, "w")])
        f = MODULE.compile(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
        gc.collect()
        x, limit, y = numbers(2, 3000), np.array(3, "f"), np.empty((2, 4), bool)
        f(x, limit, y)
        np.testing.assert_array_equal(y, x @ w > 3)

    def test_life(self):
        """Functions outlive the module; many of them come and go."""
        code = f"""if True:
            import gc, numpy, tvm_ffi
            f = tvm_ffi.load_module({LIBRARY!r}).compile({model(a=add(2, 2))!r})
            gc.collect()
            y = numpy.empty((2, 2), "f")
            f(numpy.ones((2, 2), "f"), numpy.ones((2, 2), "f"), y)
            assert (y == 2).all()"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        text = model(a=product(6, 8, 7))
        for rounds in range(2):
            before = resident() if rounds == 1 else 0
            for _ in range(1000):
                MODULE.compile(text)
        self.assertLess(resident() - before, 4000 << 10)


@unittest.skipIf(COMPILER is None, "no C compiler, which would link")
class AheadOfTime(Ways, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compile(self, *arguments):
        return subprocess.run([PROGRAM, "compile", *arguments, "-o", self.folder.name, "--quiet"], capture_output=True,
                              text=True)

    def function(self, name, dispatchable, *arguments):
        path = pathlib.Path(self.folder.name)
        (path / f"{name}.json").write_text(model(**{name: dispatchable}))
        done = self.compile(str(path / f"{name}.json"), "--emit", "obj,tvmffi", *arguments)
        if "built without code generation" in done.stderr or "no codegen" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return getattr(self.load([path / f"{name}.o", path / f"{name}.tvmffi.o"]), name)

    def load(self, objects):
        library = objects[0].with_suffix(".so")
        subprocess.run([COMPILER, "-shared", "-nostdlib", *objects, "-o", library], check=True)
        return tvm_ffi.load_module(str(library))

    def test_versions(self):
        f = self.function("either", add(4, 5), "--target", "cpu:x86-64-v1,cpu:x86-64-v3")
        a, y = numbers(4, 5), np.empty((4, 5), "f")
        f(a, a, y)
        np.testing.assert_array_equal(y, a + a)

    def test_other_cpu(self):
        """A kernel for what this CPU lacks is refused (it was an illegal instruction)."""
        lines = pathlib.Path("/proc/cpuinfo").read_text().split("\n") if sys.platform == "linux" else []
        flags = next((line.split() for line in lines if line.startswith("flags")), None)
        if flags is None or "avx512fp16" in flags:
            self.skipTest("no x86-64, or one that lacks nothing")
        more = "+avx512fp16" if "avx512f" in flags else ""
        f = self.function("beyond", add(4, 5), "--target", "cpu:x86-64-v4" + more)
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "^beyond: this CPU lacks features of the target that it was "):
                f(numbers(4, 5), numbers(4, 5), np.empty((4, 5), "f"))

    def test_bytes(self):
        """The same object twice; messages are constant."""
        self.function("sum", add(4, 5))
        path = pathlib.Path(self.folder.name, "sum.tvmffi.o")
        first = path.read_bytes()
        self.function("sum", add(4, 5))
        self.assertEqual(path.read_bytes(), first)
        self.assertIn(b"sum: argument 0 (ATensor): float32 [4, 5] expected\0", first)
        with self.assertRaisesRegex(ValueError, r"^sum: argument 1 \(BTensor\): float32 \[4, 5\] expected$"):
            self.function("sum", add(4, 5))(np.ones((4, 5), "f"), np.ones((4, 6), "f"), np.ones((4, 5), "f"))

    def test_not_for_all(self):
        mask = str(TREE / "tests/examples/models/causal_mask.json")
        done = self.compile(mask, "--emit", "tvmffi", "--late", "Value")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "kernel mask has late fields, for which TVM FFI's function has no argument\n$")
        done = self.compile(mask, "--emit", "tvmffi", "--target", "nvptx:sm_80")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tvmffi is not for target nvptx:sm_80", done.stderr)


@unittest.skipIf(orcjit is None, "no tvm_ffi_orcjit")
class WithoutLinker(AheadOfTime):
    """The objects as they are, in TVM FFI's loader of objects."""
    def load(self, objects):
        return orcjit.default_session().load_module(objects)

    def test_versions(self):
        """That loader knows no indirect functions."""
        with self.assertRaisesRegex(RuntimeError, "Failed to materialize symbols"):
            self.function("either", add(4, 5), "--target", "cpu:x86-64-v1,cpu:x86-64-v3")


class Others(unittest.TestCase):
    def test_layout(self):
        """The declarations of ours are those of the package's header."""
        if COMPILER is None:
            self.skipTest("no C compiler")
        include = pathlib.Path(tvm_ffi.__file__).parent / "include"
        done = subprocess.run([COMPILER, "-std=c11", "-fsyntax-only", f"-I{include}", f"-I{TREE}", f"-I{TREE}/include",
                               str(TREE / "tests/hosts/tvm_ffi_layout.c")], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_page(self):
        """The lines of docs/tvm-ffi.md, as they stand, with the library's path and the tree's."""
        text = (TREE / "docs/tvm-ffi.md").read_text()
        python, without_linker = re.findall(r"```python\n(.*?)```", text, re.S)
        shell = re.search(r"```sh\n(.*?)```", text, re.S)[1]
        done = subprocess.run([sys.executable, "-c", python.replace("libopjit-tvmffi.so", LIBRARY)],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        if COMPILER is None:
            self.skipTest("no C compiler")
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "tests").symlink_to(TREE / "tests")
            for name, program in (("opjit", PROGRAM), ("python3", sys.executable)):
                path = pathlib.Path(folder, "bin", name)
                path.parent.mkdir(exist_ok=True)
                path.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
                path.chmod(0o755)
            done = subprocess.run(["sh", "-e", "-c", shell], capture_output=True, text=True, cwd=folder,
                                  env={**os.environ, "PATH": f"{folder}/bin:{os.environ['PATH']}"})
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("-inf", done.stdout)
            if orcjit is None:
                self.skipTest("no tvm_ffi_orcjit")
            done = subprocess.run([sys.executable, "-c", without_linker], capture_output=True, text=True, cwd=folder)
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=1)
