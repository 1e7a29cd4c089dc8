# SPDX-License-Identifier: Apache-2.0
"""Sorts whose places nobody asks for, which move elements alone: the same bytes as the elements at the places."""
import unittest

import numpy as np

import opjit
from host_support import cases

UNSIGNED = {1: "u1", 2: "u2", 4: "u4", 8: "u8"}


def sorted_by(axis, direction, k, x):
    return opjit.ops.top_k1(x, axis=axis, k=k, axis_direction=direction, outputs=2)


def kernel_of(make, x):
    graph = opjit.Graph()
    return opjit.compile(make(graph.input(x.shape, x.dtype)))


class Sorting(unittest.TestCase):
    def drawn(self, random, shape, dtype):
        """Elements of which many are equal; floats with both zeros, infinities and NaN of several bits."""
        if dtype[0] != "f":
            few = random.integers(0, 2, shape, dtype=bool)
            info = np.iinfo(dtype)
            return np.where(few, random.integers(0, 5, shape), random.integers(
                info.min, info.max, shape, dtype=dtype, endpoint=True)).astype(dtype)
        x = (random.standard_normal(shape) * 10.0 ** random.integers(-4, 4, shape)).astype(dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], dtype)
        x = np.where(random.random(shape) < 0.3, special[random.integers(0, len(special), shape)], x)
        bits = x.view(UNSIGNED[x.itemsize])
        bits[np.isnan(x)] ^= random.integers(0, 7, np.isnan(x).sum()).astype(bits.dtype)  # the payload
        return x

    def test_same_bytes_as_at_the_places(self):
        for seed in range(cases(80)):
            random = np.random.default_rng(seed)
            dtype = random.choice(["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
            if seed % 2:  # digits, and many short rows side by side
                size, rows = int(random.choice([193, 300, 385, 1000, 4096, 5000])), int(random.choice([1, 3, 17]))
            else:
                size, rows = int(random.choice([17, 50, 64, 65, 100, 256])), int(random.choice([15, 16, 17, 70]))
            shape = [rows, size, int(random.choice([1, 2]))]
            axis, direction = 1, str(random.choice(["INCREASING", "DECREASING"]))
            k = size if seed % 3 else size - int(random.integers(0, size // 3))
            x = self.drawn(random, shape, dtype)
            alone = kernel_of(lambda t: sorted_by(axis, direction, k, t)[0], x)(x)
            values, places = kernel_of(lambda t: list(sorted_by(axis, direction, k, t)), x)(x)
            with self.subTest(seed=seed, dtype=dtype, shape=shape, k=k, direction=direction):
                self.assertEqual(alone.tobytes(), values.tobytes())
                self.assertEqual(alone.tobytes(), np.take_along_axis(x, places.astype("i8"), axis).tobytes())
                wanted = np.sort(x, axis)
                if k == size and direction == "INCREASING":
                    np.testing.assert_array_equal(alone, wanted)


if __name__ == "__main__":
    unittest.main()
