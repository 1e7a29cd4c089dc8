/* SPDX-License-Identifier: Apache-2.0 */
/* infer.c - rules for outputs that many operators share (infer.h).  Others are beside the check of the same sizes, in
 * the operator's file. */
#include "frontend/ops/infer.h"

void opjit_fe_infer_rank(op_shape *shape, uint32_t rank)
{
    const uint32_t ones = rank > shape->rank ? rank - shape->rank : 0;

    if (shape->rank == 0 || ones == 0 || rank > OPJIT_MAX_RANK)
        return;
    for (uint32_t d = rank; d-- > 0;)
        shape->sizes[d] = d < ones ? 1 : shape->sizes[d - ones];
    shape->rank = rank;
}

void opjit_fe_infer_same(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[0].dtype);
    infer_shape(&s->outputs[0], &s->inputs[0]);
}

/* Shapes are aligned to the right.  Of sizes that differ and are not 1 the largest stands for all: the inputs that have
 * others are refused then. */
static void add_shape(op_shape *all, const op_shape *one)
{
    const uint32_t rank = all->rank > one->rank ? all->rank : one->rank;
    op_shape aligned = *one;

    if (one->rank == 0)
        return;
    opjit_fe_infer_rank(&aligned, rank);
    if (all->rank == 0)
        *all = aligned;
    opjit_fe_infer_rank(all, rank);
    for (uint32_t d = 0; d < rank; d++)
        all->sizes[d] = aligned.sizes[d] > all->sizes[d] ? aligned.sizes[d] : all->sizes[d];
}

void opjit_fe_infer_sizes(op_inference *s)
{
    op_shape all = { .rank = 0 };

    for (uint32_t i = 0; i < s->input_count; i++)
        add_shape(&all, &s->inputs[i]);
    infer_shape(&s->outputs[0], &all);
    for (uint32_t i = 0; i < s->input_count; i++) {
        opjit_fe_infer_rank(&s->inputs[i], s->outputs[0].rank);
        for (uint32_t d = 0; d < s->inputs[i].rank && d < s->outputs[0].rank; d++)
            if (s->inputs[i].sizes[d] == 1 && !s->inputs[i].broadcasts)
                s->inputs[i].sizes[d] = s->outputs[0].sizes[d];
    }
}

void opjit_fe_infer_pointwise(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[0].dtype);
    opjit_fe_infer_sizes(s);
}

void opjit_fe_infer_truth(op_inference *s)
{
    infer_type(&s->outputs[0], DML_TENSOR_DATA_TYPE_UINT8);
    opjit_fe_infer_sizes(s);
}

void opjit_fe_infer_reduced(op_inference *s, const uint32_t *axes, uint32_t count)
{
    op_shape reduced = s->inputs[0];

    for (uint32_t i = 0; i < count; i++)
        if (axes[i] < reduced.rank)
            reduced.sizes[axes[i]] = 1;
    infer_shape(&s->outputs[0], &reduced);
}
