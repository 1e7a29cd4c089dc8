/* SPDX-License-Identifier: Apache-2.0 */
/* infer.h - what rows say about outputs that a caller of the graph builder leaves open: rules that many operators
 * share, and the pieces that a family's own rule is made of.  A rule reads what it is given as a caller's: axes may be
 * out of range, counts may differ from ranks.  Where nothing sensible follows it gives any shape; validation refuses
 * that. */
#ifndef OPJIT_FRONTEND_OPS_INFER_H
#define OPJIT_FRONTEND_OPS_INFER_H

#include "frontend/ops/op.h"

/* --- pieces ------------------------------------------------------------------------------------------------------- */
static inline void infer_type(op_shape *output, DML_TENSOR_DATA_TYPE type)
{
    if (output->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        output->dtype = type;
}

static inline void infer_shape(op_shape *output, const op_shape *from)
{
    if (output->rank != 0)
        return;
    output->rank = from->rank;
    memcpy(output->sizes, from->sizes, sizeof output->sizes);
}

/* Leading sizes of 1, up to the rank. */
void opjit_fe_infer_rank(op_shape *shape, uint32_t rank);

/* --- rules -------------------------------------------------------------------------------------------------------- */
/* The first output is as the first input. */
void opjit_fe_infer_same(op_inference *s);
/* All inputs are broadcast to each other's sizes, which the first output has; its type is the first input's.  Inputs
 * with OP_BROADCAST keep sizes of 1. */
void opjit_fe_infer_pointwise(op_inference *s);
/* The sizes of that alone. */
void opjit_fe_infer_sizes(op_inference *s);
/* The same, the output's type is UINT8. */
void opjit_fe_infer_truth(op_inference *s);
/* The first input with sizes of 1 on the axes. */
void opjit_fe_infer_reduced(op_inference *s, const uint32_t *axes, uint32_t count);

#endif
