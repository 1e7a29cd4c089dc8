#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_turns.py - any models beside ONNX Runtime in one process, on a machine with other work: largest difference of
results, CPU time of calls in turns, CPU time of reading and compiling beside that of a session.

    PYTHONPATH=build/release/python onnx_turns.py MODEL.onnx... [--seconds S]

A model's inputs are the arrays of MODEL.npz, whose names are the inputs'.  A second model of the same process may find
kernels of the first in the cache of memory."""
import argparse
import os
import time

import numpy as np
import opjit

import onnx_peers


def difference(mine, theirs):
    """Part of the largest value; of integers, of all elements."""
    if theirs.dtype.kind in "biu" or theirs.size == 0:
        return float(np.mean(mine != theirs)) if theirs.size else 0.0
    return float(np.abs(mine.astype("f8") - theirs).max() / max(np.abs(theirs).max(), 1e-30))


def measure(model, seconds):
    begin = time.process_time()
    session = onnx_peers.session_of(model, 1)
    created = time.process_time() - begin
    stored = np.load(os.path.splitext(model)[0] + ".npz")
    feed = {i.name: stored[i.name].astype(onnx_peers.TYPES[i.type]) for i in session.get_inputs()}
    begin = time.process_time()
    kernel = opjit.compile(model, shapes={name: array.shape for name, array in feed.items()})
    compiled = time.process_time() - begin
    known = {name for name, *_ in kernel.inputs}
    given = {name: array for name, array in feed.items() if name in known}
    results, expected = kernel(**given), session.run(None, feed)
    off = max(map(difference, results if isinstance(results, (list, tuple)) else [results], expected))
    mine, theirs, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(mine) < 5:
        begin = time.process_time()
        session.run(None, feed)
        between = time.process_time()
        kernel(out=results, **given)
        mine.append(time.process_time() - between)
        theirs.append(between - begin)
    run, peer = (sorted(times)[len(times) // 4] * 1e3 for times in (mine, theirs))
    print(f"{os.path.basename(model):32s} off {off:.1e}, run {run:.3f} ms, onnxruntime {peer:.3f}, ratio "
          f"{run / peer:.2f}; read and compile {compiled * 1e3:.0f} ms, session {created * 1e3:.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=1)
    given = parser.parse_args()
    for model in given.models:
        try:
            measure(model, given.seconds)
        except opjit.Error as why:
            print(f"{os.path.basename(model)}: {why}")


if __name__ == "__main__":
    main()
