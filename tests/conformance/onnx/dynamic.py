# SPDX-License-Identifier: Apache-2.0
"""Models with dynamic dimensions through `opjit run`, `bench` and `explain`: for each size the bytes that the model
with just this size gives; what is refused.  dynamic.py PROGRAM"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPJIT = sys.argv[1]
FLOAT = TensorProto.FLOAT


def weights(name, *shape, seed=1):
    values = np.random.default_rng(seed).standard_normal(shape).astype("f") / 8
    return numpy_helper.from_array(values, name)


def save(path, nodes, inputs, outputs, initializers=(), **options):
    graph = helper.make_graph([helper.make_node(*node[:3], **(node[3] if len(node) > 3 else {})) for node in nodes],
                              "dynamic", [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs],
                              [helper.make_tensor_value_info(n, FLOAT, s) for n, s in outputs], list(initializers))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
    model.ir_version = 9
    onnx.save(model, path, **options)


def models(folder):
    """(path, shape of x with the dimension's name, dimension's range)"""
    save(folder / "mlp.onnx", [("Gemm", ["x", "a", "p"], ["h"]), ("Relu", ["h"], ["r"]), ("MatMul", ["r", "b"], ["y"])],
         [("x", ["n", 48])], [("y", ["n", 24])], [weights("a", 48, 96), weights("p", 96), weights("b", 96, 24, seed=2)])
    yield folder / "mlp.onnx", ["n", 48], "n=1..600:256"
    save(folder / "outside.onnx", [("MatMul", ["x", "a"], ["y"])], [("x", ["n", 48])], [("y", ["n", 96])],
         [weights("a", 48, 96)], save_as_external_data=True, location="outside.bin", size_threshold=0)
    yield folder / "outside.onnx", ["n", 48], "n=1..600:256"
    save(folder / "norm.onnx", [("LayerNormalization", ["x", "s", "t"], ["l"], {"axis": -1}), ("Gelu", ["l"], ["g"]),
                                ("Add", ["g", "x"], ["y"])],
         [("x", ["n", 64])], [("y", ["n", 64])], [weights("s", 64), weights("t", 64, seed=2)])
    yield folder / "norm.onnx", ["n", 64], "n=1..500"
    save(folder / "chain.onnx", [("Mul", ["x", "s"], ["m"]), ("Tanh", ["m"], ["t"]), ("Sub", ["x", "t"], ["y"])],
         [("x", [3, "n"])], [("y", [3, "n"])], [weights("s", 1)])
    yield folder / "chain.onnx", [3, "n"], "n=1..2000:700"
    save(folder / "softmax.onnx", [("Softmax", ["x"], ["y"], {"axis": -1})], [("x", [2, "rows", "n"])],
         [("y", [2, "rows", "n"])])
    yield folder / "softmax.onnx", [2, "rows", "n"], "n=1..300:100"
    pads = {"pads": [1, 1, 1, 1]}
    save(folder / "images.onnx",
         [("Conv", ["x", "a"], ["h"], pads), ("Relu", ["h"], ["r"]), ("Conv", ["r", "d"], ["s"], {**pads, "group": 16}),
          ("Conv", ["s", "p"], ["t"], {"strides": [2, 2]}), ("MaxPool", ["t"], ["m"], {"kernel_shape": [2, 2]}),
          ("GlobalAveragePool", ["m"], ["g"]), ("Flatten", ["g"], ["f"]), ("MatMul", ["f", "b"], ["y"])],
         [("x", ["n", 3, 14, 14])], [("y", ["n", 10])],
         [weights("a", 16, 3, 3, 3), weights("d", 16, 1, 3, 3, seed=2), weights("p", 24, 16, 1, 1, seed=3),
          weights("b", 24, 10, seed=4)])
    yield folder / "images.onnx", ["n", 3, 14, 14], "n=1..64:8"
    depth = 24  # a function of so many nodes that it is packed between passes
    save(folder / "deep.onnx",
         [node for i in range(depth) for node in (
             ("LayerNormalization", [f"x{i}" if i else "x", "s", "t"], [f"l{i}"], {"axis": -1}),
             ("MatMul", [f"l{i}", "a"], [f"h{i}"]), ("Gelu", [f"h{i}"], [f"g{i}"]),
             ("MatMul", [f"g{i}", "b"], [f"m{i}"]),
             ("Add", [f"m{i}", f"x{i}" if i else "x"], ["y" if i == depth - 1 else f"x{i + 1}"]))],
         [("x", ["n", 48])], [("y", ["n", 48])],
         [weights("s", 48), weights("t", 48, seed=2), weights("a", 48, 96), weights("b", 96, 48, seed=2)])
    yield folder / "deep.onnx", ["n", 48], "n=1..600:256"
    one = numpy_helper.from_array(np.int64(1), "one")
    save(folder / "positions.onnx",
         [("Shape", ["x"], ["s"]), ("Gather", ["s", "last"], ["n"]), ("Range", ["zero", "n", "one"], ["r"]),
          ("Expand", ["r", "s"], ["e"]), ("Cast", ["e"], ["f"], {"to": FLOAT}), ("Cast", ["n"], ["c"], {"to": FLOAT}),
          ("Div", ["f", "c"], ["d"]), ("Add", ["x", "d"], ["y"])],
         [("x", [2, "rows", "n"])], [("y", [2, "rows", "n"])],
         [one, numpy_helper.from_array(np.int64(0), "zero"), numpy_helper.from_array(np.int64(2), "last")])
    yield folder / "positions.onnx", [2, "rows", "n"], "n=1..300:100"
    yield encoder(folder), ["rows", "n", 16], "n=1..300:100"
    yield sentences(folder), [1, "n", 384], "n=1..128:32"


def encoder(folder):
    """Attention over a table of positions, which ends the sizes, and of which one position is a number."""
    ints = {name: numpy_helper.from_array(np.array(v, np.int64), name) for name, v in
            (("all", [np.arange(300)]), ("zero", [0]), ("one", [1]))}
    save(folder / "encoder.onnx",
         [("Shape", ["x"], ["s"]), ("Gather", ["s", "one"], ["n"]), ("Slice", ["all", "zero", "n", "one"], ["p"]),
          ("Gather", ["table", "p"], ["e"]), ("Add", ["x", "e"], ["h"]), ("MatMul", ["h", "a"], ["q"]),
          ("Transpose", ["h"], ["k"], {"perm": [0, 2, 1]}), ("MatMul", ["q", "k"], ["c"]),
          ("Softmax", ["c"], ["w"], {"axis": -1}), ("MatMul", ["w", "h"], ["y"])],
         [("x", ["rows", "n", 16])], [("y", ["rows", "n", 16])],
         [*ints.values(), weights("table", 300, 16), weights("a", 16, 16, seed=2)])
    return folder / "encoder.onnx"


def sentences(folder):
    """Attention whose tokens are an output, and their sum one, too: samples of one kind have two quotients by 16."""
    ints = {name: numpy_helper.from_array(np.array(v, np.int64), name) for name, v in
            (("parts", [0, 0, 4, 96]), ("whole", [0, 0, 384]), ("one", [1]))}
    heads = [node for t in "qkv" for node in (("MatMul", ["l", "w" + t], [t + "0"]),
                                              ("Reshape", [t + "0", "parts"], [t + "1"]))]
    save(folder / "sentences.onnx",
         [("LayerNormalization", ["x", "s"], ["l"]), *heads, ("Transpose", ["q1"], ["q"], {"perm": [0, 2, 1, 3]}),
          ("Transpose", ["k1"], ["k"], {"perm": [0, 2, 3, 1]}), ("Transpose", ["v1"], ["v"], {"perm": [0, 2, 1, 3]}),
          ("MatMul", ["q", "k"], ["c"]), ("Softmax", ["c"], ["p"], {"axis": -1}), ("MatMul", ["p", "v"], ["o"]),
          ("Transpose", ["o"], ["t"], {"perm": [0, 2, 1, 3]}), ("Reshape", ["t", "whole"], ["r"]),
          ("MatMul", ["r", "wo"], ["a"]), ("Add", ["a", "l"], ["b"]), ("LayerNormalization", ["b", "s"], ["y"]),
          ("ReduceSum", ["y", "one"], ["z"], {"keepdims": 0})],
         [("x", [1, "n", 384])], [("y", [1, "n", 384]), ("z", [1, 384])],
         [*ints.values(), weights("s", 384), *(weights("w" + t, 384, 384, seed=i) for i, t in enumerate("qkvo"))])
    return folder / "sentences.onnx"


def images(folder):
    """(path, shape of x, how its dimensions follow from n and m): convolutions of images of any size"""
    pads = {"pads": [1, 1, 1, 1]}
    save(folder / "wide.onnx", [("Relu", ["x"], ["r"]), ("Conv", ["r", "a"], ["y"], pads)],
         [("x", [1, 3, "n", "m"])], [("y", [1, 16, "n", "m"])], [weights("a", 16, 3, 3, 3)])
    yield folder / "wide.onnx", [1, 3, "n", "m"], {}
    save(folder / "unet.onnx",
         [("Conv", ["x", "a"], ["c"], pads), ("Relu", ["c"], ["l"]),
          ("Conv", ["l", "d"], ["s"], {**pads, "group": 16, "strides": [2, 2]}), ("Conv", ["s", "p"], ["t"]),
          ("AveragePool", ["t"], ["v"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
          ("GlobalAveragePool", ["v"], ["g"]), ("Mul", ["v", "g"], ["e"]),
          ("Resize", ["e", "", "four"], ["u"], {"mode": "nearest"}), ("Concat", ["u", "l"], ["j"], {"axis": 1}),
          ("Conv", ["j", "b"], ["y"], pads)],
         [("x", [1, 3, "height", "width"])], [("y", [1, 8, "height", "width"])],
         [weights("a", 16, 3, 3, 3), weights("d", 16, 1, 3, 3, seed=2), weights("p", 24, 16, 1, 1, seed=3),
          weights("b", 8, 40, 3, 3, seed=4), numpy_helper.from_array(np.array([1, 1, 4, 4], "f"), "four")])
    yield folder / "unet.onnx", [1, 3, "height", "width"], {"height": (16, "n"), "width": (8, "m")}
    save(folder / "pools.onnx",
         [("AveragePool", ["x"], ["v"], {**pads, "kernel_shape": [3, 3]}), ("MaxPool", ["v"], ["m"],
          {**pads, "kernel_shape": [3, 3]}), ("Add", ["v", "m"], ["y"])],
         [("x", [1, 5, "n", "m"])], [("y", [1, 5, "n", "m"])])
    yield folder / "pools.onnx", [1, 5, "n", "m"], {}
    save(folder / "sound.onnx",
         [("Conv", ["x", "a"], ["c"], {"pads": [2, 2], "dilations": [1]}), ("Relu", ["c"], ["r"]),
          ("Conv", ["r", "d"], ["s"], {"pads": [2, 2], "group": 24}), ("MaxPool", ["s"], ["q"], {"kernel_shape": [1]}),
          ("Conv", ["q", "b"], ["y"], {"pads": [2, 2], "strides": [2]})],
         [("x", [1, 12, "length"])], [("y", [1, 16, "half"])],
         [weights("a", 24, 12, 5), weights("d", 24, 1, 5, seed=2), weights("b", 16, 24, 5, seed=3)])
    yield folder / "sound.onnx", [1, 12, "length"], {"length": (2, "n")}


def check_images(folder):
    for path, shape, follow in images(folder):
        ranges = [a for name, (by, of) in follow.items() for a in ("--dim", f"{name}={by}*{of}")]
        ranges += ["--dim", "n=3..40:20"] + (["--dim", "m=3..40:24"] if len(shape) > 3 else [])
        for n, m in ((20, 24), (3, 40), (16, 32), (40, 3), (33, 17)):
            sizes = {"n": n, "m": m} | {name: by * {"n": n, "m": m}[of] for name, (by, of) in follow.items()}
            x = np.random.default_rng(n).standard_normal([sizes.get(s, s) for s in shape]).astype("f")
            if run(path, x, folder, *ranges) != run(path, x, folder):
                sys.exit(f"{path.name}, n={n}, m={m}: other bytes than for this size alone")


def check_multiples(model, folder):
    """A name that the model has not, which a size of it reads; and multiples of a step."""
    ranges = ["--dim", "n=3*k", "--dim", "k=1..200:80"]
    for n in (3, 57, 600):
        x = np.random.default_rng(n).standard_normal((n, 48)).astype("f")
        if run(model, x, folder, *ranges) != run(model, x, folder):
            sys.exit(f"{model.name}, n={n}: other bytes than for this size alone")
    np.save(folder / "x.npy", np.zeros((100, 48), "f"))
    given = ["run", model, "--input", f"x={folder / 'x.npy'}"]
    refused('input "x": size 0 is 100, which 3*k never is', *given, *ranges)
    np.save(folder / "x.npy", np.zeros((99, 48), "f"))
    refused('no input of the model has a dimension "h"', *given, *ranges, "--dim", "h=1..9")
    refused('size 0 is 99, must be a multiple of 12 (n/12)', *given, "--dim", "n=12..600/12")
    refused("--dim n: 3 is no multiple of 2", *given, "--dim", "n=3..600/2")
    refused("--dim n: 0 is no multiple of 0", *given, "--dim", "n=0..600/0")
    refused('--dim: ":9" behind the step', *given, "--dim", "n=3..600/3:9")
    refused('no input of the model has a dimension "m/3"', *given, "--dim", "m=3..600/3")
    for ways in (ranges, ["--dim", "n=3..600:240/3"], ["--dim", "n=3..600/3"]):  # without a file, which says one size
        done = call("compile", model, *ways, "-o", folder / "made", "--quiet")
        header = (folder / "made" / "mlp.h").read_text() if done.returncode == 0 else done.stderr
        if "_DIM0_MOST 200\n" not in header or "FLOAT32 [3 * " not in header:
            sys.exit(f"compile {ways}: {header}")
        done = call("bench", model, *ways, "--quick")
        if done.returncode != 0 or ": 1 to 200, " not in done.stdout:
            sys.exit(f"bench {ways}: {done.stdout}{done.stderr}")


def check_towers(folder):
    """Images that are halved three times: of multiples of 8 there is one kernel."""
    pads = {"pads": [1, 1, 1, 1]}
    halves = {"strides": [2, 2], **pads}
    model = folder / "tower.onnx"
    save(model, [("Conv", ["x", "a"], ["c"], halves), ("Relu", ["c"], ["r"]), ("Conv", ["r", "b"], ["d"], halves),
                 ("MaxPool", ["d"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
                 ("Resize", ["p", "", "twice"], ["u"], {"mode": "nearest"}), ("Conv", ["u", "b"], ["e"], pads),
                 ("Concat", ["d", "e"], ["y"], {"axis": 1})],
         [("x", [1, 3, "h", "w"])], [("y", [1, 16, "p", "q"])],
         [weights("a", 8, 3, 3, 3), weights("b", 8, 8, 3, 3, seed=2),
          numpy_helper.from_array(np.float32([1, 1, 2, 2]), "twice")])
    ranges = ["--dim", "h=8..320:80/8", "--dim", "w=8..320:96/8"]
    for h, w in ((8, 8), (16, 320), (80, 96), (320, 24), (104, 40)):
        x = np.random.default_rng(h).standard_normal((1, 3, h, w)).astype("f")
        if run(model, x, folder, *ranges) != run(model, x, folder):
            sys.exit(f"{model.name}, h={h}, w={w}: other bytes than for this size alone")


def check_signals(folder):
    """Frames of a signal, which has multiples of their step."""
    model = folder / "signal.onnx"
    numbers = [numpy_helper.from_array(np.int64(v), n) for n, v in (("step", 160), ("length", 400))]
    save(model, [("STFT", ["x", "step", "window", "length"], ["f"]), ("ReduceSumSquare", ["f", "last"], ["p"],
                                                                       {"keepdims": 0}),
                 ("MatMul", ["p", "m"], ["q"]), ("Log", ["q"], ["y"])],
         [("x", [1, "n"])], [("y", [1, "frames", 20])],
         [weights("window", 400), weights("m", 201, 20, seed=2), numpy_helper.from_array(np.int64([-1]), "last"),
          *numbers])
    for n in (800, 960, 16000, 31840, 32000):
        x = np.random.default_rng(n).standard_normal((1, n)).astype("f")
        if run(model, x, folder, "--dim", "n=800..32000:16000/160") != run(model, x, folder):
            sys.exit(f"{model.name}, n={n}: other bytes than for this size alone")
    for n in (800, 801, 959, 16001, 31999):  # and without a step
        x = np.random.default_rng(n).standard_normal((1, n)).astype("f")
        if run(model, x, folder, "--dim", "n=800..32000:16000") != run(model, x, folder):
            sys.exit(f"{model.name}, n={n}: other bytes without a step")


def check_halves(folder):
    """Images and signals that are halved, of any size."""
    save(folder / "halved.onnx",
         [("MaxPool", ["x"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}), ("Relu", ["p"], ["y"])],
         [("x", [1, 3, "n", "m"])], [("y", [1, 3, "p", "q"])])
    save(folder / "thinned.onnx", [("Conv", ["x", "a"], ["y"], {"pads": [1, 1], "strides": [2]})],
         [("x", [1, 3, "n"])], [("y", [1, 8, "p"])], [weights("a", 8, 3, 3)])
    save(folder / "frames.onnx", [("Conv", ["x", "a"], ["y"], {"strides": [4]})],
         [("x", [1, 3, "n"])], [("y", [1, 8, "p"])], [weights("a", 8, 3, 5)])
    for name, lo, *more in (("halved", 2, "--dim", "m=2..96:32"), ("thinned", 1), ("frames", 5)):
        for n, m in ((lo, 2), (lo + 1, 96), (lo + 2, 3), (33, 17), (64, 64), (127, 95), (256, 31), (255, 32)):
            x = np.random.default_rng(n).standard_normal([1, 3, n, m][:4 if more else 3]).astype("f")
            if run(folder / f"{name}.onnx", x, folder, "--dim", f"n={lo}..256:64", *more) != \
                    run(folder / f"{name}.onnx", x, folder):
                sys.exit(f"{name}, n={n}, m={m}: other bytes than for this size alone")
    done = call("compile", folder / "halved.onnx", "--dim", "n=2..256:64", "--dim", "m=2..96:32", "-o",
                folder / "made", "--quiet")
    header = (folder / "made" / "halved.h").read_text() if done.returncode == 0 else done.stderr
    if "[1, 3, (n / 2), (m / 2)]" not in header:
        sys.exit(f"halved: {header}")


def has_avx2():
    flags = pathlib.Path("/proc/cpuinfo")
    return flags.exists() and " avx2 " in flags.read_text()


def call(*args):
    return subprocess.run([OPJIT, *map(str, args)], capture_output=True, text=True, check=False)


def run(model, x, folder, *args):
    np.save(folder / "x.npy", x)
    done = call("run", model, "--input", f"x={folder / 'x.npy'}", "--output-dir", folder / "out", *args)
    if done.returncode != 0:
        sys.exit(f"{model.name} {x.shape} {args}: {done.stderr}")
    return (folder / "out" / "y.npy").read_bytes()


def refused(text, *args):
    done = call(*args)
    if done.returncode != 1 or text not in done.stderr or done.stderr.count("\n") != 1:
        sys.exit(f"{args}: status {done.returncode}, {done.stderr!r}, not {text!r}")


def main(folder):
    for path, shape, text in models(folder):
        hi = int(text.partition("..")[2].partition(":")[0])
        rows = 1 if path.stem == "encoder" else 16
        ranges = ["--dim", text] + (["--dim", f"rows=1..40:{rows}"] if "rows" in shape else [])
        for n in (1, 2, 19, hi):
            x = np.random.default_rng(n).standard_normal([{"n": n, "rows": 5}.get(s, s) for s in shape]).astype("f")
            want = run(path, x, folder)
            # Tiles of six rows, the last ones of fewer: of 16 rows, as AVX-512 has them, others would be asked.
            ways = [[]] + ([["--target", "cpu:x86-64-v3"]] if path.stem == "images" and has_avx2() else [])
            for way in ways + ([["--executor", "interp"]] if n < 30 else []):
                if run(path, x, folder, *ranges, *way) != want:
                    sys.exit(f"{path.name}, n={n}, {way}: other bytes than for this size alone")
        done = call("bench", path, "--quick", *ranges)
        if done.returncode != 0 or f"dimension n: 1 to {hi}, " not in done.stdout:
            sys.exit(f"bench {path.name}: {done.stdout}{done.stderr}")
    model = folder / "mlp.onnx"
    done = call("bench", model, "--quick", "--json", "--dim", "n=1..600:256")
    if '"dims": { "n": 256 }, "read_ms"' not in done.stdout:
        sys.exit(f"bench --json: {done.stdout}{done.stderr}")
    done = call("explain", model, "--dim", "n=1..600:256")
    if "dimension n: 1 to 600, 256 here\n" not in done.stdout:
        sys.exit(f"explain: {done.stdout}{done.stderr}")
    (folder / "dump").mkdir()
    dump = {"OPJIT_DUMP": "ir", "OPJIT_DUMP_DIR": str(folder / "dump")}
    subprocess.run([OPJIT, "bench", model, "--quick", "--no-cache", "--quiet", "--dim", "n=1..600:256"], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, **dump})
    if not any("param " in file.read_text() for file in (folder / "dump").iterdir()):
        sys.exit("OPJIT_DUMP: no kernel with a size")
    np.save(folder / "x.npy", np.zeros((601, 48), "f"))
    given = ["run", model, "--input", f"x={folder / 'x.npy'}"]
    refused("dimension 0 (n): 601 is outside of 1 to 600", *given, "--dim", "n=1..600:256")
    refused('no input of the model has a dimension "m"', *given, "--dim", "m=1..9")
    refused("dims[0] (n): bounds 9 to 8, must be", *given, "--dim", "n=9..8:8")
    refused("dims[0].typical (n): 9, must be 1 to 8", *given, "--dim", "n=1..8:9")
    refused('--dim: ":" behind the range', *given, "--dim", "n=1..8:4:")
    refused('--dim: "x" is no size from 0', *given, "--dim", "n=1..x")
    refused('--dim: more than 8 ranges', *given, *(a for i in range(9) for a in ("--dim", f"d{i}=1..8")))
    check_multiples(model, folder)
    check_towers(folder)
    check_signals(folder)
    check_halves(folder)
    check_images(folder)
    joined = folder / "joined.onnx"
    save(joined, [("Concat", ["x", "z", "w"], ["y"], {"axis": 0})],
         [("x", ["n", 4]), ("z", ["n + 1", 4]), ("w", ["m", 4])], [("y", ["rows", 4])])
    refused('dimension "m" is not known', "compile", joined, "--dim", "n=1..300:64", "-o", folder, "--quiet")
    refused('dimension "m" is "2*k", must be a size', "compile", joined, "--dim", "n=1..300:64", "--dim", "m=2*k", "-o", folder)
    subprocess.run([OPJIT, "compile", joined, "--dim", "n=1..300:64", "--dim", "m=2 * n - 1", "-o", folder, "--quiet"],
                   check=True)
    for n in (1, 19, 300):  # files of a size that follows from another one's
        given = []
        for name, rows in (("x", n), ("z", n + 1), ("w", 2 * n - 1)):
            np.save(folder / f"{name}.npy", np.random.default_rng(rows).standard_normal((rows, 4)).astype("f"))
            given += ["--input", f"{name}={folder / name}.npy"]
        subprocess.run([OPJIT, "run", joined, *given, "--dim", "n=1..300:64", "--dim", "m=2 * n - 1", "--output-dir",
                        folder / "out"], check=True)
        parts = [np.load(folder / f"{name}.npy") for name in "xzw"]
        assert np.array_equal(np.load(folder / "out" / "y.npy"), np.concatenate(parts)), n
    subprocess.run([OPJIT, "compile", model, "--dim", "n=1..600:256", "-o", folder, "--quiet"], check=True)
    header = (folder / f"{model.stem}.h").read_text()
    assert f"int {model.stem}(const float *x, float *y, int64_t n" in header, header
    try:
        import opjit
    except ImportError:
        return
    k = opjit.compile(str(joined), dims={"n": (1, 300, 64), "m": "2 * n - 1"})
    for n in (1, 19, 300):
        parts = [np.random.default_rng(i).standard_normal((rows, 4)).astype("f")
                 for i, rows in enumerate((n, n + 1, 2 * n - 1))]
        assert np.array_equal(k(*parts), np.concatenate(parts)), n
    for dims in ({"n": "3*k", "k": (1, 200, 80)}, {"n": (3, 600, 240, 3)}):
        k = opjit.compile(str(model), dims=dims)
        for n in (3, 57, 600):
            x = np.random.default_rng(n).standard_normal((n, 48)).astype("f")
            assert k(x=x).tobytes() == opjit.compile(str(model), dims={"n": n})(x).tobytes(), n
    k = opjit.compile(str(folder / "encoder.onnx"), dims={"n": (1, 300, 100), "rows": (1, 40, 1)})
    for rows, n in ((1, 1), (9, 2), (1, 300), (3, 257), (2, 64)):
        x = np.random.default_rng(n).standard_normal((rows, n, 16)).astype("f")
        want = opjit.compile(str(folder / "encoder.onnx"), dims={"rows": rows, "n": n})
        assert k(x=x).tobytes() == want(x).tobytes(), (rows, n)
    k = opjit.compile(str(model), dims={"n": (1, 600, 256)})
    assert (k.inputs, k.outputs) == ((("x", "float32", ("n", 48)),), (("y", "float32", ("n", 24)),)), repr(k)
    for n in (1, 77, 600):
        x = np.random.default_rng(n).standard_normal((n, 48)).astype("f")
        assert k(x=x).tobytes() == opjit.compile(str(model), dims={"n": n})(x).tobytes(), n


with tempfile.TemporaryDirectory() as work:
    main(pathlib.Path(work))
