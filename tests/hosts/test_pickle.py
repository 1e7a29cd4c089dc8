# SPDX-License-Identifier: Apache-2.0
"""Copies and pickles of graphs and kernels, in this process and others, on other CPUs, by Dask and by PyTorch."""
import concurrent.futures
import copy
import gc
import multiprocessing
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import opjit
from host_support import cases, resident

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


def masked_softmax(rows=8, bias=None):
    g = opjit.Graph()
    x = g.input((rows, rows), name="scores")
    return opjit.softmax(opjit.where(opjit.tri(rows, rows), x if bias is None else x + bias, -opjit.inf))


def numbers(*shape):
    return np.random.default_rng(1).integers(-8, 8, shape).astype("f")


def elsewhere(code, *arguments, **environment):
    """What the code prints in a process of its own, which has no cache; data: what it reads from its input."""
    data = environment.pop("data", b"")
    environment = {**{k: v for k, v in os.environ.items() if k != "OPJIT_CACHE_DIR"}, **environment}
    done = subprocess.run([sys.executable, "-c", "import pickle, sys, numpy as np, opjit\n" + code, *arguments],
                          input=data, capture_output=True, env=environment, timeout=120)
    return (done.stdout + done.stderr).decode().strip()


def work(kernel, x):
    return os.getpid(), kernel(x)


class Pickles(unittest.TestCase):
    def round_trip(self, kernel, *arrays):
        other = pickle.loads(pickle.dumps(kernel))
        self.assertEqual((other.inputs, other.outputs), (kernel.inputs, kernel.outputs))
        got, want = other(*arrays), kernel(*arrays)
        for a, b in zip(got if isinstance(got, tuple) else (got,), want if isinstance(want, tuple) else (want,)):
            self.assertEqual((a.dtype, a.shape, a.tobytes()), (b.dtype, b.shape, b.tobytes()))
        return other

    def test_graphs(self):
        x = numbers(8, 8)
        self.round_trip(opjit.compile(masked_softmax()), x)
        self.round_trip(opjit.compile(opjit.eye(3, 4)))
        g = opjit.Graph()
        a, b = g.input((4, 6), "int32"), g.input((6,), "int32", name="b")
        unread = g.input((9,))
        del unread
        y = opjit.topk((a + b)[::-1, 1:5:2].astype("float32").T, 2, axis=0)
        z = opjit.ops.padding1(a, padding_mode="CONSTANT", padding_value=7,
                               start_padding=np.array([1, 0]), end_padding=[0, np.int64(2)])
        k = opjit.compile({"top": y[0], "at": y[1], "z": z}, level="peak")
        other = self.round_trip(k, np.arange(24, dtype="i").reshape(4, 6), np.arange(6, dtype="i"))
        self.assertEqual(other.info["level"], "peak")
        self.assertEqual([o[0] for o in other.outputs], ["top", "at", "z"])
        self.round_trip(other, np.arange(24, dtype="i").reshape(4, 6), np.arange(6, dtype="i"))

    def test_constants(self):
        for size in (3, 5000):  # part of the code, and beside it
            c = np.arange(size, dtype="f")
            g = opjit.Graph()
            k = opjit.compile(g.input((size,)) * g.constant(c))
            data = pickle.dumps(k)
            self.assertEqual(data.count(c.tobytes()), 1)  # binary, and once
            self.round_trip(k, c)
        weights = numbers(64, 128)
        g = opjit.Graph()
        k = opjit.compile(g.input((4, 64)) @ weights)
        self.round_trip(k, numbers(4, 64))
        del g, weights
        gc.collect()
        other = pickle.loads(pickle.dumps(k))
        del k
        gc.collect()
        self.assertEqual(other(numbers(4, 64)).shape, (4, 128))

    def test_interpreted_and_threads(self):
        x = numbers(8, 8)
        k = opjit.compile(masked_softmax(), interpret=True)
        self.assertTrue(self.round_trip(k, x).info["interpreted"])
        k = opjit.compile(masked_softmax(), threads=2)
        self.round_trip(k, x)
        told = elsewhere("k = pickle.loads(sys.stdin.buffer.read()); print(k._state()[-1], k.info['from_disk'])",
                         data=pickle.dumps(k))
        self.assertEqual(told, "2 True")

    def test_models(self):
        try:
            import onnx
        except ImportError:
            self.skipTest("onnx is not installed")
        helper = onnx.helper
        w = onnx.numpy_helper.from_array(numbers(3000, 4), "w")
        graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["p"]),
                                   helper.make_node("Greater", ["p", "l"], ["y"])], "g",
                                  [helper.make_tensor_value_info("x", 1, ["n", 3000])],
                                  [helper.make_tensor_value_info("y", 9, ["n", 4])],
                                  [w, onnx.numpy_helper.from_array(np.float32(0), "l")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        x = numbers(2, 3000)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            onnx.save(model, path)
            for source in (path, pathlib.Path(path), pathlib.Path(path).read_bytes()):
                k = opjit.compile(source, dims={"n": 2})
                data = pickle.dumps(k)
                self.assertEqual(data.count(w.raw_data), 1)
                other = self.round_trip(k, x)
                self.assertTrue(other(x=x).dtype == bool)
                self.round_trip(other, x)
            k = opjit.compile(path, dims={"n": 2})
            onnx.save(helper.make_model(graph, doc_string="another"), path)
            with self.assertRaisesRegex(ValueError, "^.*model.onnx: has changed since the model was read"):
                pickle.dumps(k)
            onnx.save(model, path, save_as_external_data=True, location="weights.bin")
            k = opjit.compile(path, dims={"n": 2})
            data = pickle.dumps(k)
            self.round_trip(k, x)
        with self.assertRaisesRegex(opjit.Error, "weights.bin"):
            pickle.loads(data)

    def test_copies(self):
        k = opjit.compile(masked_softmax())
        self.assertIs(copy.copy(k), k)
        self.assertIs(copy.deepcopy({"k": [k]})["k"][0], k)
        g = opjit.Graph()
        x = g.input((4,))
        y = x.reshape(2, 2) * 2
        h, (u, v) = copy.deepcopy((g, (x, y)))
        self.assertIs(u.graph, h)
        self.assertIsNot(h, g)
        self.assertEqual((u.shape, v.shape), ((4,), (2, 2)))
        np.testing.assert_array_equal(opjit.compile([v + 1, u])(np.arange(4, dtype="f"))[0],
                                      [[1, 3], [5, 7]])
        np.testing.assert_array_equal(opjit.compile(y)(np.arange(4, dtype="f")), [[0, 2], [4, 6]])
        with self.assertRaisesRegex(ValueError, "several graphs"):
            x + u
        with self.assertRaisesRegex(ValueError, "one of that name"):
            h.input((3,), name="x0")
        w = pickle.loads(pickle.dumps(y))  # brings its graph along
        np.testing.assert_array_equal(opjit.compile(w)(np.arange(4, dtype="f")), [[0, 2], [4, 6]])
        again = copy.copy(w.graph)
        self.assertEqual(pickle.loads(pickle.dumps(again))._outputs[0][0], None)

    def test_failed_graph(self):
        g = opjit.Graph()
        x = g.input((4,))
        with self.assertRaises(opjit.Error):
            x.reshape(3)
        with self.assertRaises(opjit.Error):
            pickle.dumps(g)

    def test_other_process(self):
        x = numbers(8, 8)
        k = opjit.compile(masked_softmax(bias=numbers(8, 8)))
        data = pickle.dumps((k, x))
        code = "k, x = pickle.loads(sys.stdin.buffer.read()); print(k(x).tobytes().hex(), k.info['from_disk'])"
        want = k(x).tobytes().hex()
        self.assertEqual(elsewhere(code, data=data), want + " True")  # compiles nothing
        if not k.info["interpreted"]:
            self.assertEqual(elsewhere(code, data=data, OPJIT_CODEGEN="/nowhere/libopjit-codegen.so"), want + " True")

    def test_shared_folder(self):
        """A disk cache serves all processes that have its folder."""
        code = "k = opjit.compile(opjit.eye(7, 9)); print(k.info['from_disk'], k.info['interpreted'])"
        with tempfile.TemporaryDirectory() as folder:
            first, second = (elsewhere(code, OPJIT_CACHE_DIR=folder) for _ in range(2))
        if first.startswith("False True"):
            self.skipTest("built without code generation")
        self.assertEqual((first, second), ("False False", "True False"))

    def test_shared_folder_at_once(self):
        """Processes that compile the same kernels at one time, into one folder."""
        if opjit.compile(opjit.eye(2, 2)).info["interpreted"]:
            self.skipTest("built without code generation")
        code = """if True:
            x = np.arange(64, dtype='f').reshape(8, 8)
            kernels = [opjit.compile(opjit.softmax(opjit.Graph().input((8, 8)) * n), level=level)
                       for n in range(1, 9) for level in ('quick', 'peak')]
            print([k(x).tobytes().hex() for k in kernels], sum(k.info['from_disk'] for k in kernels))"""
        with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(4) as threads:
            texts = list(threads.map(lambda _: elsewhere(code, OPJIT_CACHE_DIR=folder), range(4)))
            last = elsewhere(code, OPJIT_CACHE_DIR=folder)
        results = {text.rsplit(" ", 1)[0] for text in texts}
        self.assertEqual(results, {last.rsplit(" ", 1)[0]})
        self.assertEqual(last.rsplit(" ", 1)[1], "16", last[-300:])

    def test_other_cpu(self):
        """An image for another CPU, out of a process whose kernels are for that one."""
        x = numbers(8, 8)
        k = opjit.compile(masked_softmax())
        if k.info["interpreted"]:
            self.skipTest("built without code generation")
        want = k(x).tobytes().hex()
        code = "k, x = pickle.loads(sys.stdin.buffer.read())\nprint(k(x).tobytes().hex(), k.info['from_disk'])"
        older = k.graph.compile("quick", False, 1, None, "cpu:x86-64-v2")
        self.assertIn("x86-64-v2", older.info["target"])
        data = pickle.dumps((older, x))
        self.assertEqual(elsewhere(code, data=data), want + " False")  # compiled anew, for this CPU
        nowhere = {"OPJIT_CODEGEN": "/nowhere/libopjit-codegen.so"}
        self.assertEqual(elsewhere(code, data=data, **nowhere), want + " True")  # runs the image
        graph, (image, target, *rest) = older.graph.steps(), older._state()

        class Foreign:
            def __init__(self, image, target):
                self.state = graph, image, target, *rest

            def __reduce__(self):
                return opjit._pickle.load, self.state
        damaged = image[:100] + bytes([image[100] ^ 1]) + image[101:]
        self.assertEqual(elsewhere(code, data=pickle.dumps((Foreign(damaged, target), x))), want + " False")
        got = elsewhere(code, data=pickle.dumps((Foreign(damaged, target), x)), **nowhere)
        self.assertRegex(got.splitlines()[-1], "^ValueError: the kernel's image is damaged or of another build")
        got = elsewhere(code, data=pickle.dumps((Foreign(image, "cpu:power10"), x)), **nowhere)
        self.assertRegex(got.splitlines()[-1], "^opjit.Error: .*power10")
        got = elsewhere(code, data=pickle.dumps((Foreign(image, "cpu:aarch64"), x)), **nowhere)
        self.assertRegex(got.splitlines()[-1], "^opjit.Error: .*aarch64")

    def test_pools(self):
        x = numbers(8, 8)
        k = opjit.compile(masked_softmax())
        want = k(x).tobytes()
        for method in ("spawn", "fork"):
            context = multiprocessing.get_context(method)
            with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
                done = list(pool.map(work, [k] * 6, [x] * 6))
            self.assertTrue(all(pid != os.getpid() and y.tobytes() == want for pid, y in done))

    def test_many(self):
        """Kernels that come and go leave nothing."""
        data = pickle.dumps(opjit.compile(masked_softmax(bias=numbers(64, 64)[:8, :8])))
        for _ in range(300):
            pickle.loads(data)
        before = resident()
        for _ in range(3000):
            pickle.loads(data)
        self.assertLess(resident() - before, 4000 << 10)


DAMAGED = cases(600)  # pickles
DAMAGE = """if True:
    import copy, random, resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "libasan" not in open("/proc/self/maps").read():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    first, count = map(int, sys.argv[1:])
    pickles = pickle.loads(sys.stdin.buffer.read())
    loaded = refused = 0
    for number in range(first, first + count):
        r = random.Random(number)
        data, arrays = pickles[number % len(pickles)]
        data = bytearray(data)
        if number % 5 == 0:
            del data[r.randrange(len(data)):]
        elif number % 5 == 1:
            at = r.randrange(len(data))
            del data[at:at + r.randrange(1, 9)]
        else:
            for _ in range(r.choice((1, 1, 1, 2, 8))):
                data[r.randrange(len(data))] = r.choice((0, 1, 127, 128, 255, r.randrange(256)))
        print(number, file=sys.stderr, flush=True)
        try:
            k = pickle.loads(data)
            loaded += 1
            if isinstance(k, opjit.Kernel):
                k(*arrays)
            elif isinstance(k, opjit.Graph):
                copy.deepcopy(k)
        except Exception as error:
            refused += 1
            if type(error).__module__ == 'opjit' and '\\n' in str(error):
                raise SystemExit(f'{number}: {error}')
    print(loaded, refused)"""


class Damaged(unittest.TestCase):
    def test_damaged(self):
        """Bytes changed, left out or cut off: an exception in one line, or a kernel; never a crash.  A process per
        hundred; its memory is limited, as Python's own reader makes a table of four thousand million places of one
        byte."""
        g = opjit.Graph()
        a, b = g.input((4, 6), "int32"), g.input((6,), "int32", name="b")
        y = opjit.topk((a + b)[::-1, 1:5:2].astype("float32").T, 2, axis=0)
        z = opjit.ops.padding1(a, padding_mode="CONSTANT", padding_value=7, start_padding=[1, 0], end_padding=[0, 2])
        w = numbers(16, 16)
        h = opjit.Graph()
        p = h.input((4, 16)) @ h.constant(w)
        x, c = numbers(8, 8), np.arange(24, dtype="i").reshape(4, 6)
        pickles = [(opjit.compile(masked_softmax()), (x,)),
                   (opjit.compile({"top": y[0], "at": y[1], "z": z}), (c, np.arange(6, dtype="i"))),
                   (opjit.compile(p), (numbers(4, 16),)), (opjit.compile(masked_softmax(), interpret=True), (x,)),
                   (opjit.compile(opjit.eye(3, 4), threads=2), ()), (p.graph, ()), (y[0], ())]
        data = pickle.dumps([(pickle.dumps(k), arrays) for k, arrays in pickles])
        for first in range(0, DAMAGED, 100):
            told = elsewhere(DAMAGE, str(first), "100", data=data)
            self.assertRegex(told.splitlines()[0], r"^\d+ \d+$", told[-600:])


class Dask(unittest.TestCase):
    def test_map_blocks(self):
        """An array of 1 GiB through two workers that have 700 MB each."""
        try:
            import dask.array
            import distributed
        except ImportError:
            self.skipTest("dask and distributed are not installed")
        k = opjit.compile(masked_softmax(512))
        with tempfile.TemporaryDirectory() as folder, \
                distributed.LocalCluster(2, threads_per_worker=1, memory_limit="700MB", dashboard_address=None,
                                         local_directory=folder) as cluster, distributed.Client(cluster) as client:
            random = dask.array.random.default_rng(1)
            scores = random.random((16 * 1024, 16 * 1024), chunks=(512, 512), dtype="f")
            total = dask.array.map_blocks(k, scores, dtype="f").sum(dtype="f8").compute()
            pids = set(client.run(os.getpid).values())
        self.assertEqual(len(pids - {os.getpid()}), 2)
        self.assertAlmostEqual(total / 2**19, 1, places=5)  # each row of the 1024 blocks has the sum 1

    def test_page(self):
        """The ten lines of the page."""
        try:
            import distributed
        except ImportError:
            self.skipTest("dask and distributed are not installed")
        text = PAGE.read_text()
        code = next(c for c in re.findall(r"```python\n(.*?)```", text, re.S) if "map_blocks" in c)
        self.assertLessEqual(len([line for line in code.splitlines() if line.strip()]), 12)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "page.py")
            pathlib.Path(path).write_text(code)
            done = subprocess.run([sys.executable, path], capture_output=True, text=True, cwd=folder, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)


DDP = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
import opjit

class Masked(torch.autograd.Function):  # y = x * mask, of which the gradient is the same kernel
    @staticmethod
    def forward(context, x, kernel):
        context.kernel = kernel
        return kernel(x.detach())
    @staticmethod
    def backward(context, gradient):
        return context.kernel(gradient.contiguous()), None

class Model(torch.nn.Module):
    def __init__(self, kernel):
        super().__init__()
        self.kernel, self.linear = kernel, torch.nn.Linear(4, 4, bias=False)
        torch.nn.init.eye_(self.linear.weight)
    def forward(self, x):
        return Masked.apply(self.linear(x), self.kernel)

def run(rank, kernel, file):
    dist.init_process_group("gloo", init_method="file://" + file, rank=rank, world_size=2)
    model = torch.nn.parallel.DistributedDataParallel(Model(kernel))
    model(torch.eye(4) * (rank + 1)).sum().backward()
    want = torch.tril(torch.ones(4, 4)).T * 1.5  # the mean over the ranks of rank + 1
    assert torch.equal(model.module.linear.weight.grad, want), model.module.linear.weight.grad
    os.write(1, b"rank %d done\\n" % rank)  # whole lines, also of both at once
    dist.destroy_process_group()

if __name__ == "__main__":
    torch.set_num_threads(1)
    g = opjit.Graph()
    kernel = opjit.compile(g.input((4, 4)) * opjit.tri(4, 4))
    mp.start_processes(run, (kernel, sys.argv[1]), 2, start_method="spawn")
"""


class Torch(unittest.TestCase):
    def test_data_parallel(self):
        """DistributedDataParallel over gloo, two processes, a kernel in the forward pass."""
        try:
            import torch.distributed
        except ImportError:
            self.skipTest("torch is not installed")
        if not torch.distributed.is_available():
            self.skipTest("torch has no torch.distributed")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ddp.py")
            pathlib.Path(path).write_text(DDP)
            done = subprocess.run([sys.executable, path, os.path.join(folder, "meet")], capture_output=True, text=True,
                                  timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), ["rank 0 done", "rank 1 done"])


if __name__ == "__main__":
    unittest.main(verbosity=1)
