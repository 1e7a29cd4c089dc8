/* SPDX-License-Identifier: Apache-2.0 */
/* conv.h - shared by bench_conv and its reference: a convolution of FLOAT32 tensors, and oneDNN's. */
#ifndef OPJIT_TESTS_BENCH_CONV_H
#define OPJIT_TESTS_BENCH_CONV_H

#include <stdbool.h>
#include <stdint.h>

/* What is computed of each result, after the bias. */
typedef enum conv_end { CONV_PLAIN, CONV_RELU, CONV_HARD_SWISH, CONV_RESIDUAL_RELU } conv_end;

/* out = end(in * filter + bias): {1, in_channels, height, width} and {out_channels, in_channels / groups, taps, taps},
 * dense. */
typedef struct conv {
    uint32_t in_channels, out_channels, size, taps, stride, pad, groups;
    conv_end end;
    uint32_t out_size;
    float *in, *filter, *bias, *residual, *out;
} conv;

/* conv_peers.c: loads oneDNN where it is installed, on one thread.  Once, before the first call. */
void conv_peers_open(bool wide);
/* oneDNN's convolution; blocked: on data in the layouts of its choice, which are not filled.  NULL: not installed, or
 * it has none. */
struct conv_dnn;
struct conv_dnn *conv_dnn_make(const conv *c, bool blocked);
void conv_dnn_run(void *dnn);
void conv_dnn_free(struct conv_dnn *dnn);

#endif
