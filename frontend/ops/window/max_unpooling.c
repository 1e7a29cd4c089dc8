/* SPDX-License-Identifier: Apache-2.0 */
/* max_unpooling.c - MAX_UNPOOLING: elements of the input where an index tensor says, in zeros.
 *
 * An index is the number of an element of the packed output, as MAX_POOLING1 gives it.  One that is none of the output
 * writes nothing; of equal ones the last one in the order of the input wins, which the document leaves open. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

#define DESC DML_MAX_UNPOOLING_OPERATOR_DESC

enum { INPUT, INDICES }; /* inputs */

/* clang-format off */
static const op_field fields[] = {
    OP_FIELD(DESC, InputTensor, OP_INPUT, 0),
    OP_FIELD(DESC, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),
};
static const op_support support[] = {
    { NULL, 0, 4, 4, OP_TYPES_ALL },
    { NULL, DML_FEATURE_LEVEL_2_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_5_0, 4, 4, OP_TYPES_ALL & ~OP_TYPES(FLOAT64) },
    { "IndicesTensor", 0, 4, 4, OP_TYPES(UINT32) | OP_TYPES(UINT64) },
    { "IndicesTensor", DML_FEATURE_LEVEL_2_0, 4, 4, OP_TYPES(UINT32) },
    { "IndicesTensor", DML_FEATURE_LEVEL_5_0, 4, 4, OP_TYPES(UINT32) | OP_TYPES(UINT64) },
};
/* clang-format on */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[INPUT];

    TRY(opjit_fe_check_pair(op, 0, error));
    for (uint32_t d = 0; d < in->rank; d++)
        TRY(opjit_fe_check_size(op, "IndicesTensor", &op->inputs[INDICES], d, in->sizes[d], " as InputTensor.Sizes",
                                error));
    return OPJIT_OK;
}

static void infer(op_inference *s)
{
    infer_type(&s->outputs[0], s->inputs[INPUT].dtype); /* the sizes are the caller's */
}

/* The packed elements with the output's sizes. */
static uint32_t shaped(op_lowering *l, ir_ref flat, const fe_tensor *out)
{
    if (l->f->failed)
        return 0;
    const uint32_t of = ir_at(l->f, flat)->ref;
    ir_tensor view = l->f->tensors[of];
    view.role = IR_VIEW;
    view.of = of;
    view.rank = out->rank;
    memcpy(view.sizes, out->sizes, sizeof view.sizes);
    opjit_ir_dense_strides(&view);
    return opjit_ir_tensor(l->f, &view);
}

static void lower(op_lowering *l)
{
    ir_func *f = l->f;
    const fe_tensor *in = &l->op->inputs[INPUT], *out = &l->op->outputs[0];
    const fe_tensor packed = { .rank = 1, .sizes = { out->elements } };
    const ir_type type = opjit_ir_type_of(in->dtype);
    const ir_ref scatter = opjit_fe_scatter(l, IR_KIND_NONE, type, &packed, in->elements);
    const uint32_t view = shaped(l, scatter, out);
    ir_ref at[OPJIT_MAX_RANK];
    uint64_t below = in->elements;

    if (f->failed)
        return;
    opjit_ir_set_initial(f, scatter, opjit_ir_const(f, type, 0));
    for (uint32_t d = 0; d < in->rank; d++) {
        below /= in->sizes[d];
        at[d] = moves_digit(f, opjit_ir_update(f, scatter), below, in->sizes[d]);
    }
    opjit_ir_set_value(f, scatter, opjit_ir_load(f, l->inputs[INPUT], at));
    const ir_ref number = opjit_ir_load(f, l->inputs[INDICES], at);
    opjit_ir_set_place(f, scatter, 0, ir_expr1(f, IR_TO_INDEX, IR_INDEX, number));
    const ir_ref yield = opjit_fe_output(l, 0);
    opjit_fe_own(l, yield, at);
    if (!f->failed)
        opjit_fe_set(l, yield, opjit_ir_load(f, view, at));
}

const op_def opjit_fe_op_max_unpooling = {
    .type = DML_OPERATOR_MAX_UNPOOLING,
    .name = "MAX_UNPOOLING",
    .formula = "Output = 0; then element number Indices[c] of Output = Input[c], the last one wins",
    .desc_size = sizeof(DESC),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_2_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
