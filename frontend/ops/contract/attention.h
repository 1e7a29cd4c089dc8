/* SPDX-License-Identifier: Apache-2.0 */
/* attention.h - shared by attention.c, which checks MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1, and
 * attention_lower.c. */
#ifndef OPJIT_FRONTEND_OPS_ATTENTION_H
#define OPJIT_FRONTEND_OPS_ATTENTION_H

#include "frontend/ops/op.h"

/* Positions; the first form lacks PAST_LENGTHS. */
enum {
    QUERY, KEY, VALUE, STACKED_QK, STACKED_KV, STACKED_QKV, BIAS, MASK, RELATIVE_BIAS, PAST_KEY, PAST_VALUE,
    PAST_LENGTHS, ATTENTION_INPUTS
};
enum { OUTPUT, PRESENT_KEY, PRESENT_VALUE, ATTENTION_OUTPUTS };

typedef struct attention_sizes {
    uint64_t batch, queries;  /* queries: of a sequence */
    /* keys that are new, and that PastKeyTensor has; total: of both, or of the present ones */
    uint64_t added, past;
    uint64_t total;
    uint64_t heads, key_heads; /* heads / key_heads queries share the keys and values of a head */
    uint64_t size, value_size; /* of a head: elements of a query and key, of a value */
} attention_sizes;

/* Of a checked operator. */
attention_sizes opjit_fe_attention_sizes(const opjit_operator *op);
void opjit_fe_lower_attention(op_lowering *l);

#endif
