/* SPDX-License-Identifier: Apache-2.0 */
/* attention_forms.h - what the forms of attention have in common: the products, the softmax and its masks. */
#ifndef OPJIT_FRONTEND_ONNX_ATTENTION_FORMS_H
#define OPJIT_FRONTEND_ONNX_ATTENTION_FORMS_H

#include "frontend/onnx/ops/ops.h"

/* Tensors are {batch, heads, rows, width}. */
typedef struct attention {
    opjit_tensor q, k, v;
    opjit_tensor mask; /* FLOAT, broadcast to {batch, heads, queries, keys}; null: none */
    uint64_t batch, heads, kv_heads, queries, keys, width, v_width;
    double scale, softcap;
    bool causal;      /* a query sees no later keys than its own, */
    uint64_t ahead;   /* or as many behind it */
    bool zero_unseen; /* a query whose keys are all masked gives zeros; else softmax's NaN */
    uint64_t window;  /* keys that a query sees at most; 0: all */
    uint64_t past;    /* keys that come before the first query's own */
    bool is_prompt;   /* none does */
    int32_t type;
    opjit_tensor made[4]; /* by attend: products, with the soft cap, with masks, their softmax */
} attention;

/* {batch, rows, heads * width} as {batch, heads, rows, width}. */
opjit_tensor opjit_onnx_split_heads(onnx_import *m, opjit_tensor t, uint64_t batch, uint64_t rows, uint64_t heads,
                                    uint64_t width);
/* The inverse. */
opjit_tensor opjit_onnx_join_heads(onnx_import *m, opjit_tensor t, uint64_t batch, uint64_t rows, uint64_t heads,
                                   uint64_t width);
/* Softmax of scale * q * k^T and the masks, times v: {batch, heads, queries, v_width}. */
opjit_tensor opjit_onnx_attend(onnx_import *m, attention *a);
/* Input i as a mask: one of bool becomes 0 where it is true, -inf elsewhere; null where there is none. */
opjit_tensor opjit_onnx_attention_mask(onnx_import *m, const onnx_call *c, uint32_t i, int32_t type);
/* Keys or values behind those of the past, along their rows; the sum is the output `present`. */
opjit_status opjit_onnx_add_past(onnx_import *m, onnx_call *c, uint32_t past, uint32_t present, opjit_tensor *t,
                                 int32_t type);
/* The scale that the node says, or one over the root of the width. */
double opjit_onnx_attention_scale(const onnx_import *m, const onnx_call *c, uint64_t width);

#endif
