# SPDX-License-Identifier: Apache-2.0
"""nodes.py OPJIT [NAME...] - runs the node tests of the ONNX package through `opjit run` and compares the results
within the package's own tolerance: every case of an operator that mapping.py knows and opjit has, or those whose names
contain a NAME.  Exits with 77 where the package is missing.  --list also prints what is skipped and why."""
import collections
import json
import os
import subprocess
import sys
import tempfile
import warnings

SKIPPED = 77

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    from onnx.backend.test.case.node import collect_testcases
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(SKIPPED)

import mapping  # beside this file


def arrays(values):
    """None for what is left out or is no tensor of numbers.  Of the types that NumPy lacks, those of 4 bits are
    numbers."""
    halves = (TensorProto.UINT4, TensorProto.INT4)
    values = [numpy_helper.to_array(v) if isinstance(v, TensorProto) and v.data_type in halves else v for v in values]
    return [np.array(v) if isinstance(v, (np.ndarray, np.generic, int, float)) else None for v in values]


def node_of(case, inputs, outputs):
    """The case's one node, its inputs and outputs in the node's order; names that are empty are None."""
    graph = case.model.graph
    if len(graph.node) != 1:
        raise mapping.Skip("several nodes")
    proto = graph.node[0]
    given = dict(zip((i.name for i in graph.input), inputs))
    given |= {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    made = dict(zip((o.name for o in graph.output), outputs))
    attributes = {}
    for a in proto.attribute:
        value = helper.get_attribute_value(a)
        attributes[a.name] = value.decode() if isinstance(value, bytes) else value
    ins = arrays(given.get(name) for name in proto.input)
    outs = arrays(made.get(name) for name in proto.output)
    while outs and outs[-1] is None:
        outs.pop()
    if not outs or all(o is None for o in outs) or (ins and ins[0] is None):
        raise mapping.Skip("no tensors of numbers")
    if any(a is not None and a.size == 0 for a in outs):
        raise mapping.Skip("an empty output")
    return mapping.Node(proto.op_type, attributes, ins, outs)


def model_of(operator, fields, node, folder):
    """The model's text; writes its inputs as .npy files.  Outputs are o0.npy, o1.npy ... in the node's order."""
    resources, bindings, commands, desc = {}, {}, [], {}

    def bind(tensor, name):
        for i, array in enumerate(node.outputs):
            if tensor.array is array or (array is not None and tensor.array.base is not None
                                         and np.shares_memory(tensor.array, array)):
                resources[f"o{i}"] = {"initialValues": "deferred"}
                sizes = [(array.size + 1) // 2] if mapping.has_halves(array) else tensor.sizes
                commands.append({"type": "writeFile", "resource": f"o{i}", "targetPath": f"o{i}.npy",
                                 "dimensions": sizes})
                return f"o{i}"
        halves = mapping.has_halves(tensor.array)
        array = mapping.packed_halves(tensor.array) if halves else np.ascontiguousarray(tensor.array)
        np.save(os.path.join(folder, name + ".npy"), array.view(np.uint8) if array.dtype == bool else array)
        resources[name] = {"initialValues": {"sourcePath": name + ".npy"}}
        return name

    for field, value in fields.items():
        if isinstance(value, mapping.Tensor):
            desc[field], bindings[field] = value.json(), bind(value, field)
        elif isinstance(value, list) and value and isinstance(value[0], mapping.Tensor):
            desc[field] = [t.json() for t in value]
            bindings[field] = [bind(t, f"{field}{i}") for i, t in enumerate(value)]
        else:
            desc[field] = value
    dispatch = {"type": "dispatch", "dispatchable": "node", "bindings": bindings}
    return {"resources": resources, "dispatchables": {"node": {"type": operator, "desc": desc}},
            "commands": [dispatch] + commands}


def run_case(opjit, known, case, inputs, outputs):
    """Raises Skip, or AssertionError with what is wrong."""
    if case.model.graph.node[0].op_type not in mapping.TABLE:
        raise mapping.Skip("no mapping")
    node = node_of(case, inputs, outputs)
    operator, fields = mapping.TABLE[node.op](node)
    if operator not in known:
        raise mapping.Skip("opjit has no " + operator)
    with tempfile.TemporaryDirectory() as folder:
        model = model_of(operator, fields, node, folder)
        path = os.path.join(folder, "model.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(model, f, default=lambda v: v.item())
        done = subprocess.run([opjit, "run", path], capture_output=True, text=True, timeout=60, check=False)
        if ".DataType: " in done.stderr:
            raise mapping.Skip("a type that " + operator + " does not take")
        if done.returncode != 0:
            raise AssertionError(done.stderr.strip().replace(folder + "/", ""))
        for i, want in enumerate(node.outputs):
            if want is None or f"o{i}" not in model["resources"]:
                continue
            got = np.load(os.path.join(folder, f"o{i}.npy"))
            if mapping.has_halves(want):
                got, want = mapping.unpacked_halves(got, want), want.astype(np.int8)
            got = got.reshape(want.shape)
            np.testing.assert_allclose(got.astype(want.dtype), want, rtol=case.rtol, atol=case.atol,
                                       err_msg=f"output {i}")


def main(arguments):
    listing = "--list" in arguments
    arguments = [a for a in arguments if a != "--list"]
    opjit, names = arguments[0], arguments[1:]
    known = set(line.split()[0] for line in subprocess.run([opjit, "ops"], capture_output=True, text=True,
                                                           check=True).stdout.splitlines())
    warnings.simplefilter("ignore")
    np.random.seed(0)
    passed, skipped, failed = collections.Counter(), collections.Counter(), []
    for case in collect_testcases(None):
        if names and not any(n in case.name for n in names):
            continue
        op = case.model.graph.node[0].op_type
        for inputs, outputs in case.data_sets:
            try:
                run_case(opjit, known, case, inputs, outputs)
                passed[op] += 1
            except mapping.Skip as why:
                skipped[str(why)] += 1
                if listing:
                    print(f"skipped {case.name}: {why}")
            except AssertionError as wrong:
                failed.append(case.name)
                print(f"FAILED {case.name}: {str(wrong).strip()}")
    for why, count in skipped.most_common(None if listing else 8):
        print(f"skipped {count}: {why}")
    print(f"onnx {onnx.__version__}: {sum(passed.values())} cases of {len(passed)} operators passed, "
          f"{len(failed)} failed, {sum(skipped.values())} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
