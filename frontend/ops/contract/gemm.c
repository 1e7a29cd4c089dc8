/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c - GEMM: products of matrices, in a batch, with a matrix added and an activation behind.  An element is one
 * dot along K in the order of ir/README.md, whatever the other sizes are.  FLOAT16 is computed in FLOAT32. */
#include <string.h>

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/pointwise.h"
#include "frontend/ops/reduce.h"

#define GEMM DML_GEMM_OPERATOR_DESC

enum { A, B, C }; /* positions */

/* clang-format off */
static const op_enum_name transform_names[] = {
    { "DML_MATRIX_TRANSFORM_NONE", DML_MATRIX_TRANSFORM_NONE },
    { "DML_MATRIX_TRANSFORM_TRANSPOSE", DML_MATRIX_TRANSFORM_TRANSPOSE },
    { NULL, 0 },
};
static const op_enum transform_enum = { "DML_MATRIX_TRANSFORM_", transform_names };

static const op_field fields[] = {
    OP_FIELD(GEMM, ATensor, OP_INPUT, 0),
    OP_FIELD(GEMM, BTensor, OP_INPUT, 0),
    OP_FIELD(GEMM, CTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(GEMM, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD_ENUM(GEMM, TransA, &transform_enum),
    OP_FIELD_ENUM(GEMM, TransB, &transform_enum),
    OP_FIELD(GEMM, Alpha, OP_FLOAT, 0),
    OP_FIELD(GEMM, Beta, OP_FLOAT, 0),
    OP_FIELD(GEMM, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
};
/* clang-format on */

static const op_support support[] = {
    { NULL, 0, 2, OPJIT_MAX_RANK, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) },
    { NULL, DML_FEATURE_LEVEL_1_0, 4, 4, OP_TYPES_FLOAT },
    { NULL, DML_FEATURE_LEVEL_4_0, 2, 4, OP_TYPES_FLOAT },
};

/* Where a matrix has its rows and its columns. */
typedef struct places {
    uint32_t row, column;
} places;

static places places_of(uint32_t rank, DML_MATRIX_TRANSFORM transform)
{
    return transform == DML_MATRIX_TRANSFORM_NONE ? (places){ rank - 2, rank - 1 } : (places){ rank - 1, rank - 2 };
}

/* --- validation --------------------------------------------------------------------------------------------------- */

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    const GEMM *desc = op->desc;
    const fe_tensor *a = &op->inputs[A], *b = &op->inputs[B], *out = &op->outputs[0];
    const uint32_t rank = out->rank;

    for (uint32_t i = A; i <= C; i++)
        if (op->inputs[i].present)
            TRY(opjit_fe_same_type(op, i, 0, error));
    TRY(opjit_fe_check_rank(op, "ATensor", a, rank, " as OutputTensor.DimensionCount", error));
    TRY(opjit_fe_check_rank(op, "BTensor", b, rank, " as OutputTensor.DimensionCount", error));
    const places of_a = places_of(rank, desc->TransA), of_b = places_of(rank, desc->TransB);
    for (uint32_t d = 0; d + 2 < rank; d++) {
        TRY(opjit_fe_check_size(op, "ATensor", a, d, out->sizes[d], " as OutputTensor.Sizes", error));
        TRY(opjit_fe_check_size(op, "BTensor", b, d, out->sizes[d], " as OutputTensor.Sizes", error));
    }
    TRY(opjit_fe_check_size(op, "ATensor", a, of_a.row, out->sizes[rank - 2], ", the output's rows", error));
    TRY(opjit_fe_check_size(op, "BTensor", b, of_b.column, out->sizes[rank - 1], ", the output's columns", error));
    TRY(opjit_fe_check_size(op, "BTensor", b, of_b.row, a->sizes[of_a.column], " as ATensor has it", error));
    return op->inputs[C].present ? opjit_fe_same_sizes(op, C, 0, error) : OPJIT_OK;
}

/* The batch and rows of A, the columns of B; C has the sizes of the output. */
static void infer(op_inference *s)
{
    const GEMM *desc = s->desc;
    const op_shape *a = &s->inputs[A], *b = &s->inputs[B];
    op_shape made = *a;

    infer_type(&s->outputs[0], a->dtype);
    if (a->rank < 2 || b->rank != a->rank)
        return;
    made.sizes[a->rank - 2] = a->sizes[places_of(a->rank, desc->TransA).row];
    made.sizes[a->rank - 1] = b->sizes[places_of(a->rank, desc->TransB).column];
    infer_shape(&s->outputs[0], &made);
}

/* --- formula ------------------------------------------------------------------------------------------------------ */

static ir_ref load_wide(op_lowering *l, const op_element *e, uint32_t input, const ir_ref *at)
{
    const ir_ref x = l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[input], at);
    return e->type == e->result ? x : cast_to(e, e->type, x);
}

/* The products of rows of A and columns of B, in a tensor of the output's sizes. */
static ir_ref lower_product(op_lowering *l, const op_element *e)
{
    const GEMM *desc = l->op->desc;
    const fe_tensor *out = &l->op->outputs[0];
    const uint32_t rank = out->rank;
    const places of_a = places_of(rank, desc->TransA), of_b = places_of(rank, desc->TransB);
    ir_func *f = l->f;
    ir_ref at[OPJIT_MAX_RANK], of[OPJIT_MAX_RANK];
    const ir_ref dot = opjit_fe_reduce_to(l, IR_DOT, e->type, out, l->op->inputs[A].sizes[of_a.column]);

    opjit_fe_own(l, dot, at);
    const ir_ref k = f->failed ? 0 : opjit_ir_reduced(f, dot);
    memcpy(of, at, sizeof of);
    of[of_a.row] = at[rank - 2];
    of[of_a.column] = k;
    const ir_ref a = load_wide(l, e, A, of);
    memcpy(of, at, sizeof of);
    of[of_b.row] = k;
    of[of_b.column] = at[rank - 1];
    opjit_fe_set(l, dot, op2(e, IR_PAIR, a, load_wide(l, e, B, of)));
    return dot;
}

/* FusedActivation(Alpha * the product + Beta * C) */
static void lower(op_lowering *l)
{
    const GEMM *desc = l->op->desc;
    op_element e = { .f = l->f, .desc = desc, .result = opjit_fe_output_type(l, 0), .masks = l->masks };
    ir_ref at[OPJIT_MAX_RANK];

    e.type = opjit_fe_wide(e.result);
    const ir_ref product = lower_product(l, &e), out = opjit_fe_output(l, 0);
    opjit_fe_own(l, out, at);
    ir_ref x = op2(&e, IR_MUL, opjit_fe_number(&e, desc->Alpha), opjit_fe_value_at(l, product, 0, at));
    if (l->op->inputs[C].present)
        x = op2(&e, IR_ADD, x, op2(&e, IR_MUL, opjit_fe_number(&e, desc->Beta), load_wide(l, &e, C, at)));
    opjit_fe_set(l, out, l->f->failed ? 0 : opjit_fe_activate(&e, desc->FusedActivation, x));
}

const op_def opjit_fe_op_gemm = {
    .type = DML_OPERATOR_GEMM,
    .name = "GEMM",
    .formula = "FusedActivation(Alpha * A * B + Beta * C), products of matrices",
    .desc_size = sizeof(GEMM),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate,
    .infer = infer,
    .lower = lower,
};
