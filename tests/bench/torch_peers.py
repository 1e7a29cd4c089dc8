# SPDX-License-Identifier: Apache-2.0
"""torch_peers.py [--threads N] [--rounds N] [--only TEXT] [--cpu] - torch.compile(backend="opjit") beside PyTorch and
its inductor: microseconds of a call, interleaved, the least of the rounds (the thread's processor time on one thread;
with --cpu that of all threads on several, which wait asleep, where the environment says GOMP_SPINCOUNT=0),
the medians of the rounds' ratios, to Dynamo alone (backend="eager"), too, and the first call, with nothing cached.  The
C library is told to keep memory that is freed: otherwise new pages, which whoever allocates at a bad moment pays for,
cost as much as a mask.  Calls are timed when opjit's fastest kernels are in place.  Needs PyTorch, g++ for inductor,
and opjit in PYTHONPATH.

    PYTHONPATH=build/release/python python3 tests/bench/torch_peers.py --threads 2
"""
import argparse
import ctypes
import os
import statistics
import time

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
import torch.nn.functional as F

import opjit.torch

N = 1024


class Block(torch.nn.Module):
    """A layer of a transformer: attention, and two products with GELU."""

    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.first(x)).view(b, n, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, d))
        return x + self.narrow(F.gelu(self.wide(self.second(x))))


def window(scores, width=256):
    column, row = torch.arange(N)[None, :], torch.arange(N)[:, None]
    return torch.where((column <= row) & (column > row - width), scores, float("-inf"))


def alibi(scores, slopes):
    distance = (torch.arange(N)[None, :] - torch.arange(N)[:, None])[None].float()
    return torch.softmax((scores + slopes[:, None, None] * distance).masked_fill(
        torch.ones(N, N, dtype=torch.bool).triu(1), float("-inf")), -1)


def attention(q, k, v):
    return torch.softmax((q @ k.transpose(-1, -2)) * 0.125 + torch.full((N, N), float("-inf")).triu(1), -1) @ v


def trained(model, x):
    model.zero_grad(set_to_none=True)
    model(x).square().mean().backward()


def cases():
    r = torch.randn
    square, heads = r(N, N), [r(1, 8, N, 64) for _ in range(3)]
    yield "causal mask added to scores", lambda s: s + torch.full((N, N), float("-inf")).triu(1), (square,)
    yield "tril", lambda s: torch.tril(s, 2), (square,)
    yield "sliding window", window, (square,)
    yield "ALiBi + causal mask + softmax, 4 heads", alibi, (r(4, N, N), torch.rand(4))
    yield "sliding window + softmax", lambda s: torch.softmax(window(s), -1), (square,)
    yield "layer norm + GELU", lambda x, w, b: F.gelu(F.layer_norm(x, (N,), w, b)), (square, r(N), r(N))
    yield "attention by hand, causal, 8 heads of 64", attention, heads
    yield "scaled_dot_product_attention, causal", lambda q, k, v: F.scaled_dot_product_attention(
        q, k, v, is_causal=True), heads
    yield "transformer block, 1024 x 512", Block(512, 8, True), (r(1, N, 512),)
    yield "MLP 256 x 512 x 2048", torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(),
                                                      torch.nn.Linear(2048, 512)), (r(256, 512),)
    yield "convolutions", torch.nn.Sequential(
        torch.nn.Conv2d(16, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.Conv2d(
            32, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU()).eval(), (r(1, 16, 64, 64),)
    yield "training step, block, 256 x 256", Block(256, 4, True), (r(1, 256, 256),)


def first_call(f, args):
    torch._dynamo.reset()
    begin = time.perf_counter()
    f(*args)
    return time.perf_counter() - begin


def keep_memory():
    """Tells glibc's malloc neither to map blocks below 32 MiB nor to give the heap's end back."""
    libc = ctypes.CDLL(None)
    trim_threshold, mmap_threshold = -1, -3
    libc.mallopt(trim_threshold, 2**31 - 1)
    libc.mallopt(mmap_threshold, 32 << 20)


def measured(ways, args, rounds, cpu):
    """Microseconds of each way in each round, one way after the other."""
    clock = time.thread_time if torch.get_num_threads() == 1 else time.process_time if cpu else time.perf_counter
    begin = clock()
    ways[0](*args)
    count = max(2, min(300, int(0.03 / (clock() - begin))))
    times = [[] for _ in ways]
    for _ in range(rounds):
        for f, row in zip(ways, times):
            f(*args)
            begin = clock()
            for _ in range(count):
                f(*args)
            row.append((clock() - begin) / count * 1e6)
    return times


def ratio(ours, theirs):
    return statistics.median(a / b for a, b in zip(ours, theirs))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--cpu", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_memory()
    warm = torch.nn.Linear(2, 2)
    for name in ("eager", "opjit", "inductor"):  # what is imported and made once in a process
        torch.compile(lambda x: warm(x).sum(), backend=name)(torch.ones(2, 2)).backward()
    print("| case | eager µs | inductor | opjit | opjit ÷ eager | ÷ inductor | ÷ Dynamo | first call, ms: inductor | "
          "opjit | Dynamo |")
    print("| --- " * 10 + "|")
    for name, f, args in cases():
        if options.only not in name:
            continue
        is_training = name.startswith("training")
        with torch.set_grad_enabled(is_training):
            step = (lambda m: lambda x: trained(m, x)) if is_training else (lambda m: m)
            opjit.torch.counters.clear()
            ways, firsts = [step(f)], []
            for backend in ("inductor", "opjit", "eager"):
                torch._dynamo.reset()
                made = step(torch.compile(f, backend=backend))
                firsts.append(first_call(made, args) * 1e3)
                ways.append(made)
            opjit.torch.finish()
            plain, inductor, ours, dynamo = measured(ways, args, options.rounds, options.cpu)
        print(f"| {name} | {min(plain):.0f} | {min(inductor):.0f} | {min(ours):.0f} | {ratio(ours, plain):.2f} | "
              f"{ratio(ours, inductor):.2f} | {ratio(ours, dynamo):.2f} | {firsts[0]:.0f} | {firsts[1]:.0f} | "
              f"{firsts[2]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
