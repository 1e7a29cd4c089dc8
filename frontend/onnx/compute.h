/* SPDX-License-Identifier: Apache-2.0 */
/* compute.h - values that are computed from what a call brings, while the model is read. */
#ifndef OPJIT_FRONTEND_ONNX_COMPUTE_H
#define OPJIT_FRONTEND_ONNX_COMPUTE_H

#include "frontend/frontend.h"
#include "frontend/onnx/call.h"

/* A value that was computed while the model was read, and the kernel that did. */
typedef struct onnx_computed {
    struct onnx_computed *next;
    opjit_kernel *kernel;
    opjit_binding *bindings; /* its inputs, then the value */
    uint32_t binding_count;
    const void *value; /* as the model was read with it */
    uint64_t bytes;
} onnx_computed;

/* An input of the graph whose elements a call brings. */
typedef struct onnx_brought {
    const void *value; /* NULL: they are not known */
    void *copy;        /* where kernels read them */
    uint64_t bytes;
} onnx_brought;

/* What values are computed from, and those that were. */
typedef struct onnx_computing {
    const opjit_compile_options *options; /* NULL: default ones */
    onnx_brought *inputs; /* in the order of the graph's */
    uint32_t input_count, count;
    onnx_computed *first, *last;
} onnx_computing;

/* By input of the graph, whether anything reads it: kernels have no binding for others. */
opjit_status opjit_onnx_find_read(opjit_graph *graph, rt_arena *arena, bool **out, uint32_t *out_count,
                                  opjit_error *error);
/* An input of the graph, after those before it, becomes known to what has to be computed; NULL: its value is not. */
void opjit_onnx_bring(onnx_import *m, const opjit_model_input *given);
/* An onnx_import's compute: a kernel of the value, which is called at once. */
opjit_status opjit_onnx_compute(onnx_import *m, onnx_value *v);
/* Computes all values again, from what is now where the inputs' values are; UNSUPPORTED: one is another. */
opjit_status opjit_onnx_compute_again(const onnx_computing *w, opjit_error *error);

#endif
