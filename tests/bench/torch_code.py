# SPDX-License-Identifier: Apache-2.0
"""torch_code.py [--rounds N] [--only TEXT] - code that users compile, of operators that opjit takes in part or not at
all, beside eager PyTorch and Dynamo alone (backend="eager"), whose guards are in every call: the medians of the rounds'
ratios in the thread's processor time, in turns.  A line has what is taken and left of the graph, and whether the
results are eager's.

    PYTHONPATH=build/release/python python3 tests/bench/torch_code.py
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import opjit.torch
from torch_peers import keep_memory

r = torch.randn


def rope(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)


def rows(x):
    y = torch.zeros_like(x)
    y[:, 1:] = x[:, 1:] - x[:, :-1]
    y[:, 0] = x[:, 0]
    return y.abs()


def indexed(x, at, values):
    y = x.clone()
    y[at] = values
    y[:, 3:7] += 1
    return y * 2


def windows(x):
    x = torch.roll(x, (-2, -2), (1, 2)).view(1, 8, 4, 8, 4, 64)
    return x.permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 64)


def adamw(params, grads, means, squares):
    torch._foreach_mul_(means, 0.9)
    torch._foreach_add_(means, grads, alpha=0.1)
    torch._foreach_mul_(squares, 0.999)
    torch._foreach_addcmul_(squares, grads, grads, 0.001)
    roots = torch._foreach_sqrt(squares)
    torch._foreach_add_(roots, 1e-8)
    torch._foreach_addcdiv_(params, means, roots, -1e-3)
    return params


def shared_keys(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def in_bfloat16(x, w):
    with torch.autocast("cpu", torch.bfloat16):
        return F.layer_norm(F.gelu(x @ w), (512,))


def cases():
    angles = torch.arange(256)[:, None] * (10000.0 ** (-torch.arange(0, 64, 2) / 64))[None]
    yield "rotary embedding", rope, (r(1, 8, 256, 64), angles.cos(), angles.sin())
    yield "norm by root mean square", torch.nn.RMSNorm(512), (r(4, 128, 512),)
    yield "attention, 8 heads with 2 of keys", shared_keys, (r(1, 8, 128, 32), r(1, 2, 128, 32), r(1, 2, 128, 32))
    yield "bilinear upsampling and sigmoid", lambda x: F.interpolate(
        x, scale_factor=2, mode="bilinear").sigmoid(), (r(1, 16, 64, 64),)
    yield "nearest upsampling and ReLU", lambda x: F.relu(F.interpolate(x, scale_factor=2.0)), (r(1, 16, 64, 64),)
    yield "nearest upsampling alone", lambda x: F.interpolate(x, scale_factor=2.0), (r(1, 64, 32, 32),)
    yield "greatest of 2 x 2 and ReLU", lambda x: F.relu(F.max_pool2d(x, 2)), (r(1, 32, 64, 64),)
    yield "mean of 2 x 2", lambda x: F.avg_pool2d(x, 2) + 1, (r(1, 32, 64, 64),)
    yield "channels as pixels", lambda x: F.pixel_shuffle(x, 2).clamp(0, 1), (r(1, 64, 64, 64),)
    yield "ELU", lambda x: F.elu(x) * 2, (r(512, 512),)
    yield "differences of columns, by slices", rows, (r(512, 512),)
    yield "rows at indices, then columns", indexed, (r(256, 64), torch.randperm(256)[:32], r(32, 64))
    yield "windows of a shifted image", windows, (r(1, 32, 32, 64),)
    yield "norm of instances", torch.nn.InstanceNorm2d(32, affine=True), (r(2, 32, 64, 64),)
    yield "layer norm of float16", lambda x: F.layer_norm(x, (256,)) * torch.sigmoid(x), (r(64, 256).half(),)
    yield "MLP of bfloat16 by autocast", in_bfloat16, (r(64, 256), r(256, 512))
    yield "AdamW by lists", adamw, tuple([r(128, 128).abs() for _ in range(6)] for _ in range(4))
    yield "sum at indices", lambda x, i: torch.zeros(64, 32).index_add(0, i, x * 2).relu(), (
        r(512, 32), torch.randint(64, (512,)))
    yield "product of complex numbers", lambda x: torch.view_as_real(torch.view_as_complex(x) * 1j), (r(128, 64, 2),)
    yield "layer of an encoder, eval", torch.nn.TransformerEncoderLayer(
        128, 4, 256, 0.0, batch_first=True).eval(), (r(4, 64, 128),)


def copied(x):
    return [y.clone() for y in x] if isinstance(x, list) else x.clone()


def measured(ways, args, rounds):
    """Microseconds of each way in each round."""
    begin = time.thread_time()
    ways[0](*args)
    count = max(2, min(300, int(0.02 / (time.thread_time() - begin))))
    times = [[] for _ in ways]
    for _ in range(rounds):
        for f, row in zip(ways, times):
            f(*args)
            begin = time.thread_time()
            for _ in range(count):
                f(*args)
            row.append((time.thread_time() - begin) / count * 1e6)
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    keep_memory()
    print("| code | eager, µs | ÷ eager | ÷ Dynamo | taken | left | results |")
    print("| --- " * 7 + "|")
    for name, f, args in cases():
        if options.only not in name:
            continue
        ways = [f]
        with torch.no_grad():
            want = f(*map(copied, args))
            for backend in ("eager", "opjit"):
                torch._dynamo.reset()
                opjit.torch.counters.clear()
                ways.append(torch.compile(f, backend=backend))
                got = ways[-1](*map(copied, args))
            counters = dict(opjit.torch.counters)
            try:
                torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-3)
                results = "equal"
            except AssertionError:
                results = "DIFFERENT"
            opjit.torch.finish()
            plain, dynamo, ours = measured(ways, args, options.rounds)
        ratios = [statistics.median(a / b for a, b in zip(ours, theirs)) for theirs in (plain, dynamo)]
        print(f"| {name} | {min(plain):.0f} | {ratios[0]:.2f} | {ratios[1]:.2f} | {counters.get('taken', 0)} | "
              f"{counters.get('left', 0)} | {results} |", flush=True)


if __name__ == "__main__":
    main()
