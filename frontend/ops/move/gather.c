/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - GATHER, GATHER_ELEMENTS, GATHER_ND, GATHER_ND1: copies elements of the input from where an index tensor
 * says.  Negative indices of signed types count from the end; then every index is clamped into its dimension, so that
 * nothing outside the input is read whatever the data are.  Shapes are aligned to the right: leading dimensions are
 * dropped or added. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

static const op_support gather_support[] = {
    { NULL, DML_FEATURE_LEVEL_1_0, MOVES_RANKS, OP_TYPES_ALL },
    { "IndicesTensor", DML_FEATURE_LEVEL_1_0, MOVES_RANKS, MOVES_INDEX_TYPES },
};
static const op_support gather_2_1_support[] = {
    { NULL, DML_FEATURE_LEVEL_2_1, MOVES_RANKS, OP_TYPES_ALL },
    { "IndicesTensor", DML_FEATURE_LEVEL_2_1, MOVES_RANKS, MOVES_INDEX_TYPES },
};
static const op_support gather_3_0_support[] = {
    { NULL, DML_FEATURE_LEVEL_3_0, MOVES_RANKS, OP_TYPES_ALL },
    { "IndicesTensor", DML_FEATURE_LEVEL_3_0, MOVES_RANKS, MOVES_INDEX_TYPES },
};

/* Input, indices and output have the same rank, input and output the same type. */
static opjit_status check_tensors(const opjit_operator *op, opjit_error *error)
{
    TRY(opjit_fe_check_pair(op, 0, error));
    return opjit_fe_check_rank(op, "IndicesTensor", &op->inputs[1], op->inputs[0].rank,
                               " as InputTensor.DimensionCount", error);
}

/* --- shapes with more dimensions than a tensor has --------------------------------------------------------------- */

/* Where a dimension of the result comes from. */
typedef struct shape {
    uint64_t sizes[2 * OPJIT_MAX_RANK];
    uint32_t rank;
} shape;

static void shape_add_sizes(shape *s, const uint64_t *sizes, uint32_t first, uint32_t end)
{
    for (uint32_t d = first; d < end; d++)
        s->sizes[s->rank++] = sizes[d];
}

static void shape_add(shape *s, const fe_tensor *t, uint32_t first, uint32_t end)
{
    shape_add_sizes(s, t->sizes, first, end);
}

/* The output of the input's rank that is the shape, aligned to the right. */
static void infer_from(op_inference *s, const shape *from)
{
    op_shape out = { .rank = s->inputs[0].rank };

    for (uint32_t d = 0; d < out.rank; d++)
        out.sizes[d] = d + from->rank < out.rank ? 1 : from->sizes[d + from->rank - out.rank];
    infer_type(&s->outputs[0], s->inputs[0].dtype);
    infer_shape(&s->outputs[0], &out);
}

/* The output has the shape, aligned to the right. */
static opjit_status check_shape(const opjit_operator *op, const shape *s, opjit_error *error)
{
    const fe_tensor *out = &op->outputs[0];

    for (uint32_t i = 0; i + out->rank < s->rank; i++)
        if (s->sizes[i] != 1)
            return opjit_rt_refuse(
                error, OPJIT_INVALID_ARGUMENT,
                "{%s} {OutputTensor.DimensionCount}: {%u}, must be %u for a result of size %llu first", op->def->name,
                out->rank, s->rank - i, (unsigned long long)s->sizes[i]);
    for (uint32_t d = 0; d < out->rank; d++) {
        const uint32_t ones = out->rank > s->rank ? out->rank - s->rank : 0;
        TRY(opjit_fe_check_size(op, "OutputTensor", out, d, d < ones ? 1 : s->sizes[d + s->rank - out->rank],
                                ", by InputTensor's and IndicesTensor's sizes", error));
    }
    return OPJIT_OK;
}

/* The coordinate of the output that is dimension i of the shape; 0 for a dropped one. */
static ir_ref shape_coordinate(op_lowering *l, ir_ref out, uint32_t rank, uint32_t i)
{
    const uint32_t out_rank = l->op->outputs[0].rank;

    return i + out_rank < rank ? opjit_ir_index(l->f, 0) : opjit_ir_coordinate(l->f, out, i + out_rank - rank);
}

/* The tensor's sizes before `first` are 1. */
static opjit_status check_ones(const opjit_operator *op, uint32_t input, uint32_t first, const char *why,
                               opjit_error *error)
{
    for (uint32_t d = 0; d < first; d++)
        TRY(opjit_fe_check_size(op, op->input_names[input], &op->inputs[input], d, 1, why, error));
    return OPJIT_OK;
}

/* --- GATHER ------------------------------------------------------------------------------------------------------- */

#define GATHER DML_GATHER_OPERATOR_DESC

/* clang-format off */
static const op_field gather_fields[] = {
    OP_FIELD(GATHER, InputTensor, OP_INPUT, 0),
    OP_FIELD(GATHER, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(GATHER, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(GATHER, Axis, OP_UINT, 0),
    OP_FIELD(GATHER, IndexDimensions, OP_UINT, 0),
};
/* clang-format on */

static opjit_status validate_gather(const opjit_operator *op, opjit_error *error)
{
    const GATHER *desc = op->desc;
    const fe_tensor *in = &op->inputs[0], *indices = &op->inputs[1];
    shape s = { .rank = 0 };

    TRY(check_tensors(op, error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    if (desc->IndexDimensions > indices->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{GATHER} {IndexDimensions}: {%u}, must be at most %u, IndicesTensor.DimensionCount",
                               desc->IndexDimensions, indices->rank);
    TRY(check_ones(op, 1, indices->rank - desc->IndexDimensions, ", it is not one of the last IndexDimensions", error));
    shape_add(&s, in, 0, desc->Axis);
    shape_add(&s, indices, indices->rank - desc->IndexDimensions, indices->rank);
    shape_add(&s, in, desc->Axis + 1, in->rank);
    return check_shape(op, &s, error);
}

static void infer_gather(op_inference *s)
{
    const GATHER *desc = s->desc;
    op_shape *in = &s->inputs[0], *indices = &s->inputs[1];
    const uint32_t after = desc->Axis < in->rank ? desc->Axis + 1 : in->rank;
    shape sizes = { .rank = 0 };

    opjit_fe_infer_rank(indices, in->rank);
    shape_add_sizes(&sizes, in->sizes, 0, after - (after != 0));
    if (desc->IndexDimensions <= indices->rank)
        shape_add_sizes(&sizes, indices->sizes, indices->rank - desc->IndexDimensions, indices->rank);
    shape_add_sizes(&sizes, in->sizes, after, in->rank);
    infer_from(s, &sizes);
}

static void lower_gather(op_lowering *l)
{
    ir_func *f = l->f;
    const GATHER *desc = l->op->desc;
    const fe_tensor *in = &l->op->inputs[0], *indices = &l->op->inputs[1];
    const uint32_t k = desc->IndexDimensions, rank = in->rank - 1 + k, ones = indices->rank - k;
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK], index_at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    for (uint32_t d = 0; d < indices->rank; d++)
        index_at[d] = d < ones ? opjit_ir_index(f, 0) : shape_coordinate(l, out, rank, desc->Axis + d - ones);
    for (uint32_t d = 0; d < in->rank; d++)
        if (d != desc->Axis)
            at[d] = shape_coordinate(l, out, rank, d < desc->Axis ? d : d - 1 + k);
    at[desc->Axis] = opjit_fe_index_of(l, opjit_ir_load(f, l->inputs[1], index_at), in->sizes[desc->Axis]);
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

const op_def opjit_fe_op_gather = {
    .type = DML_OPERATOR_GATHER,
    .name = "GATHER",
    .formula = "Output[a.., i.., b..] = Input[a.., Indices[i..], b..], the index on Axis",
    .desc_size = sizeof(GATHER),
    OP_ROWS(gather_fields, gather_support),
    .introduced = DML_FEATURE_LEVEL_1_0,
    .validate = validate_gather,
    .infer = infer_gather,
    .lower = lower_gather,
};

/* --- GATHER_ELEMENTS ---------------------------------------------------------------------------------------------- */

#define ELEMENTS DML_GATHER_ELEMENTS_OPERATOR_DESC

/* clang-format off */
static const op_field gather_elements_fields[] = {
    OP_FIELD(ELEMENTS, InputTensor, OP_INPUT, 0),
    OP_FIELD(ELEMENTS, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(ELEMENTS, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(ELEMENTS, Axis, OP_UINT, 0),
};
/* clang-format on */

static opjit_status validate_gather_elements(const opjit_operator *op, opjit_error *error)
{
    const ELEMENTS *desc = op->desc;
    const fe_tensor *in = &op->inputs[0], *indices = &op->inputs[1];

    TRY(check_tensors(op, error));
    TRY(opjit_fe_check_axis(op, desc->Axis, error));
    TRY(opjit_fe_same_sizes(op, 1, 0, error));
    for (uint32_t d = 0; d < in->rank; d++)
        if (d != desc->Axis && indices->sizes[d] > in->sizes[d])
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{GATHER_ELEMENTS} {IndicesTensor.Sizes[%u]}: {%llu}, must be at most %llu, "
                                   "InputTensor.Sizes[%u]",
                                   d, (unsigned long long)indices->sizes[d], (unsigned long long)in->sizes[d], d);
    return OPJIT_OK;
}

static void infer_gather_elements(op_inference *s)
{
    opjit_fe_infer_rank(&s->inputs[1], s->inputs[0].rank);
    infer_type(&s->outputs[0], s->inputs[0].dtype);
    infer_shape(&s->outputs[0], &s->inputs[1]);
}

static void lower_gather_elements(op_lowering *l)
{
    ir_func *f = l->f;
    const ELEMENTS *desc = l->op->desc;
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        at[d] = opjit_ir_coordinate(f, out, d);
    at[desc->Axis] = opjit_fe_index_of(l, opjit_fe_input_at(l, 1, out), l->op->inputs[0].sizes[desc->Axis]);
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

const op_def opjit_fe_op_gather_elements = {
    .type = DML_OPERATOR_GATHER_ELEMENTS,
    .name = "GATHER_ELEMENTS",
    .formula = "Output[c] = Input[c, but Indices[c] on Axis]; off Axis, Indices may be smaller than Input",
    .desc_size = sizeof(ELEMENTS),
    OP_ROWS(gather_elements_fields, gather_2_1_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_gather_elements,
    .infer = infer_gather_elements,
    .lower = lower_gather_elements,
};

/* --- GATHER_ND, GATHER_ND1 ---------------------------------------------------------------------------------------- */

/* Only the last dimensions of a tensor are meaningful: `in` of the input, `index` of the indices, whose last one holds
 * `tuple` coordinates; the first `batch` are in both. */
typedef struct nd {
    uint32_t in, index, batch, tuple;
    uint32_t in_first, index_first; /* the first meaningful dimension */
} nd;

static nd nd_of(const opjit_operator *op, uint32_t in, uint32_t index, uint32_t batch)
{
    const uint32_t rank = op->inputs[1].rank;
    return (nd){ in, index, batch, (uint32_t)op->inputs[1].sizes[rank - 1], op->inputs[0].rank - in, rank - index };
}

static opjit_status check_dimensions(const opjit_operator *op, const char *field, uint32_t count, uint32_t most,
                                     opjit_error *error)
{
    if (count >= 1 && count <= most)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{%s} {%s}: {%u}, must be 1 to %u, the tensor's DimensionCount", op->def->name, field, count,
                           most);
}

static opjit_status validate_nd(const opjit_operator *op, uint32_t in_count, uint32_t index_count, uint32_t batch,
                                opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *indices = &op->inputs[1];
    shape s = { .rank = 0 };
    nd n;

    TRY(check_tensors(op, error));
    TRY(check_dimensions(op, "InputDimensionCount", in_count, in->rank, error));
    TRY(check_dimensions(op, "IndicesDimensionCount", index_count, indices->rank, error));
    if (batch >= in_count || batch >= index_count)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {BatchDimensionCount}: {%u}, must be below InputDimensionCount (%u) and "
                               "IndicesDimensionCount (%u)",
                               op->def->name, batch, in_count, index_count);
    n = nd_of(op, in_count, index_count, batch);
    TRY(check_ones(op, 0, n.in_first, ", it is not one of the last InputDimensionCount", error));
    TRY(check_ones(op, 1, n.index_first, ", it is not one of the last IndicesDimensionCount", error));
    if (indices->sizes[indices->rank - 1] > in_count - batch)
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{%s} {IndicesTensor.Sizes[%u]}: {%u}, must be at most %u, the dimensions that can be indexed",
            op->def->name, indices->rank - 1, (unsigned)indices->sizes[indices->rank - 1], in_count - batch);
    for (uint32_t b = 0; b < batch; b++)
        TRY(opjit_fe_check_size(op, "IndicesTensor", indices, n.index_first + b, in->sizes[n.in_first + b],
                                " as InputTensor's batch dimension", error));
    shape_add(&s, indices, n.index_first, indices->rank - 1);
    shape_add(&s, in, n.in_first + batch + n.tuple, in->rank);
    return check_shape(op, &s, error);
}

static void infer_nd(op_inference *s, uint32_t in_count, uint32_t index_count, uint32_t batch)
{
    op_shape *in = &s->inputs[0], *indices = &s->inputs[1];
    shape sizes = { .rank = 0 };

    opjit_fe_infer_rank(indices, in->rank);
    if (indices->rank != 0 && in_count <= in->rank && index_count >= 1 && index_count <= indices->rank &&
        batch <= in_count) {
        const uint64_t indexed = in->rank - in_count + batch + indices->sizes[indices->rank - 1];
        shape_add_sizes(&sizes, indices->sizes, indices->rank - index_count, indices->rank - 1);
        shape_add_sizes(&sizes, in->sizes, indexed < in->rank ? (uint32_t)indexed : in->rank, in->rank);
    }
    infer_from(s, &sizes);
}

static void lower_nd(op_lowering *l, const nd *n)
{
    ir_func *f = l->f;
    const fe_tensor *in = &l->op->inputs[0], *indices = &l->op->inputs[1];
    const uint32_t indexed = n->batch + n->tuple, rank = n->index - 1 + n->in - indexed;
    const ir_ref out = opjit_fe_output(l, 0);
    ir_ref at[OPJIT_MAX_RANK], index_at[OPJIT_MAX_RANK];

    if (f->failed)
        return;
    for (uint32_t d = 0; d + 1 < indices->rank; d++)
        index_at[d] = d < n->index_first ? opjit_ir_index(f, 0) : shape_coordinate(l, out, rank, d - n->index_first);
    for (uint32_t d = 0; d < in->rank; d++) {
        const uint32_t i = d - n->in_first; /* counted from there */
        if (d < n->in_first) {
            at[d] = opjit_ir_index(f, 0);
        } else if (i < n->batch) {
            at[d] = shape_coordinate(l, out, rank, i);
        } else if (i < indexed) {
            index_at[indices->rank - 1] = opjit_ir_index(f, i - n->batch);
            at[d] = opjit_fe_index_of(l, opjit_ir_load(f, l->inputs[1], index_at), in->sizes[d]);
        } else {
            at[d] = shape_coordinate(l, out, rank, n->index - 1 + i - indexed);
        }
    }
    opjit_ir_set_value(f, out, opjit_ir_load(f, l->inputs[0], at));
}

#define ND DML_GATHER_ND_OPERATOR_DESC

/* clang-format off */
static const op_field gather_nd_fields[] = {
    OP_FIELD(ND, InputTensor, OP_INPUT, 0),
    OP_FIELD(ND, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(ND, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(ND, InputDimensionCount, OP_UINT, 0),
    OP_FIELD(ND, IndicesDimensionCount, OP_UINT, 0),
};
/* clang-format on */

static opjit_status validate_gather_nd(const opjit_operator *op, opjit_error *error)
{
    const ND *desc = op->desc;
    return validate_nd(op, desc->InputDimensionCount, desc->IndicesDimensionCount, 0, error);
}

static void infer_gather_nd(op_inference *s)
{
    const ND *desc = s->desc;
    infer_nd(s, desc->InputDimensionCount, desc->IndicesDimensionCount, 0);
}

static void lower_gather_nd(op_lowering *l)
{
    const ND *desc = l->op->desc;
    const nd n = nd_of(l->op, desc->InputDimensionCount, desc->IndicesDimensionCount, 0);
    lower_nd(l, &n);
}

const op_def opjit_fe_op_gather_nd = {
    .type = DML_OPERATOR_GATHER_ND,
    .name = "GATHER_ND",
    .formula = "Output[i.., b..] = Input[Indices[i.., 0], Indices[i.., 1], ..., b..]",
    .desc_size = sizeof(ND),
    OP_ROWS(gather_nd_fields, gather_2_1_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_gather_nd,
    .infer = infer_gather_nd,
    .lower = lower_gather_nd,
};

#define ND1 DML_GATHER_ND1_OPERATOR_DESC

/* clang-format off */
static const op_field gather_nd1_fields[] = {
    OP_FIELD(ND1, InputTensor, OP_INPUT, 0),
    OP_FIELD(ND1, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(ND1, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(ND1, InputDimensionCount, OP_UINT, 0),
    OP_FIELD(ND1, IndicesDimensionCount, OP_UINT, 0),
    OP_FIELD(ND1, BatchDimensionCount, OP_UINT, 0),
};
/* clang-format on */

static opjit_status validate_gather_nd1(const opjit_operator *op, opjit_error *error)
{
    const ND1 *desc = op->desc;
    return validate_nd(op, desc->InputDimensionCount, desc->IndicesDimensionCount, desc->BatchDimensionCount, error);
}

static void infer_gather_nd1(op_inference *s)
{
    const ND1 *desc = s->desc;
    infer_nd(s, desc->InputDimensionCount, desc->IndicesDimensionCount, desc->BatchDimensionCount);
}

static void lower_gather_nd1(op_lowering *l)
{
    const ND1 *desc = l->op->desc;
    const nd n = nd_of(l->op, desc->InputDimensionCount, desc->IndicesDimensionCount, desc->BatchDimensionCount);
    lower_nd(l, &n);
}

const op_def opjit_fe_op_gather_nd1 = {
    .type = DML_OPERATOR_GATHER_ND1,
    .name = "GATHER_ND1",
    .formula = "Output[a.., i.., b..] = Input[a.., Indices[a.., i.., 0], ..., b..], a.. the batch",
    .desc_size = sizeof(ND1),
    OP_ROWS(gather_nd1_fields, gather_3_0_support),
    .introduced = DML_FEATURE_LEVEL_3_0,
    .validate = validate_gather_nd1,
    .infer = infer_gather_nd1,
    .lower = lower_gather_nd1,
};
