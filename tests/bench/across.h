/* SPDX-License-Identifier: Apache-2.0 */
/* across.h - the yardstick for inputs stored across their output: square matrices of f32 whose sides are multiples of
 * 64. */
#ifndef OPJIT_TESTS_BENCH_ACROSS_H
#define OPJIT_TESTS_BENCH_ACROSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* out[y][x] = in[x][y], in registers; false: this machine has no AVX2. */
bool across_turn(const float *in, float *out, uint32_t side);
/* The same element by element, in tiles. */
void across_turn_simply(const float *in, float *out, uint32_t side);

#endif
