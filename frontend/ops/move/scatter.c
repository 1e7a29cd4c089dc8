/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - SCATTER_ELEMENTS (SCATTER), SCATTER_ND: a copy of the input, in which the elements that an index tensor
 * names are replaced by updates; SCATTER_REDUCE, opjit's own: combined with them.
 *
 * Negative indices of signed types count from the end; then every index is clamped into its dimension, as those of
 * GATHER are.  Of updates with the same place the last one wins, in the order of the update elements: the documents
 * leave that open, or say that the last write takes effect.  Shapes are aligned to the right. */
#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

enum { INPUT, INDICES, UPDATES }; /* inputs */

/* clang-format off */
#define TYPES_32 (OP_TYPES_FLOAT | OP_TYPES_INT_TO_32)
#define SUPPORT(name, LEVEL, EARLY)                                          \
    { name, 0, MOVES_RANKS, OP_TYPES_ALL },                                  \
    { name, DML_FEATURE_LEVEL_##LEVEL, 4, 4, EARLY },                        \
    { name, DML_FEATURE_LEVEL_3_0, MOVES_RANKS, TYPES_32 },                  \
    { name, DML_FEATURE_LEVEL_4_1, MOVES_RANKS, OP_TYPES_ALL }
#define INDEX_SUPPORT(LEVEL)                                                 \
    { "IndicesTensor", 0, MOVES_RANKS, MOVES_INDEX_TYPES },                  \
    { "IndicesTensor", DML_FEATURE_LEVEL_##LEVEL, 4, 4, OP_TYPES(UINT32) },  \
    { "IndicesTensor", DML_FEATURE_LEVEL_3_0, MOVES_RANKS, MOVES_INDEX_TYPES }
/* clang-format on */

/* All tensors have the same rank; output and updates have the input's type, the output its sizes. */
static opjit_status check_tensors(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[INPUT], *updates = &op->inputs[UPDATES];

    TRY(opjit_fe_same_shape(op, INPUT, 0, error));
    for (uint32_t i = INDICES; i <= UPDATES; i++)
        TRY(opjit_fe_check_rank(op, op->input_names[i], &op->inputs[i], in->rank, " as InputTensor.DimensionCount",
                                error));
    if (updates->dtype != in->dtype)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {UpdatesTensor.DataType}: {%s}, must be %s as InputTensor.DataType",
                               op->def->name, opjit_rt_dtype_name(updates->dtype), opjit_rt_dtype_name(in->dtype));
    return OPJIT_OK;
}

/* The input's elements and what replaces them (or is combined with them), `count` updates; at receives the
 * coordinates. */
static ir_ref begin(op_lowering *l, ir_kind kind, uint64_t count, ir_ref at[OPJIT_MAX_RANK])
{
    const fe_tensor *in = &l->op->inputs[INPUT];
    const ir_ref scatter = opjit_fe_scatter(l, kind, opjit_ir_type_of(in->dtype), in, count);

    opjit_fe_own(l, scatter, at);
    if (!l->f->failed)
        opjit_ir_set_initial(l->f, scatter, opjit_ir_load(l->f, l->inputs[INPUT], at));
    return scatter;
}

static void yield(op_lowering *l, ir_ref scatter)
{
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref out = opjit_fe_output(l, 0);

    opjit_fe_own(l, out, at);
    opjit_fe_set(l, out, opjit_fe_value_at(l, scatter, 0, at));
}

/* --- SCATTER_ELEMENTS, SCATTER_REDUCE ----------------------------------------------------------------------------- */

#define ELEMENTS DML_SCATTER_ELEMENTS_OPERATOR_DESC
#define REDUCE OPJIT_SCATTER_REDUCE_OPERATOR_DESC

/* clang-format off */
static const op_field elements_fields[] = {
    OP_FIELD(ELEMENTS, InputTensor, OP_INPUT, 0),
    OP_FIELD(ELEMENTS, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(ELEMENTS, UpdatesTensor, OP_INPUT, 0),
    OP_FIELD(ELEMENTS, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(ELEMENTS, Axis, OP_UINT, 0),
};
static const op_support elements_support[] = { SUPPORT(NULL, 2_0, TYPES_32), INDEX_SUPPORT(2_0) };

static const op_enum_name function_names[] = {
    { "DML_REDUCE_FUNCTION_MAX", DML_REDUCE_FUNCTION_MAX },
    { "DML_REDUCE_FUNCTION_MIN", DML_REDUCE_FUNCTION_MIN },
    { "DML_REDUCE_FUNCTION_MULTIPLY", DML_REDUCE_FUNCTION_MULTIPLY },
    { "DML_REDUCE_FUNCTION_SUM", DML_REDUCE_FUNCTION_SUM },
    { NULL, 0 },
};
static const op_enum function_enum = { "DML_REDUCE_FUNCTION_", function_names };
static const op_field reduce_fields[] = {
    OP_FIELD(REDUCE, InputTensor, OP_INPUT, 0),
    OP_FIELD(REDUCE, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(REDUCE, UpdatesTensor, OP_INPUT, 0),
    OP_FIELD(REDUCE, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(REDUCE, Axis, OP_UINT, 0),
    OP_FIELD_ENUM(REDUCE, Function, &function_enum),
};
static const op_support reduce_support[] = {
    { NULL, 0, MOVES_RANKS, OP_TYPES_ALL },
    { "IndicesTensor", 0, MOVES_RANKS, MOVES_INDEX_TYPES },
};
/* clang-format on */

static uint32_t axis_of(const opjit_operator *op)
{
    return *(const uint32_t *)opjit_fe_field(op->def, op->desc, "Axis");
}

static opjit_status validate_elements(const opjit_operator *op, opjit_error *error)
{
    const uint32_t axis = axis_of(op);
    const fe_tensor *in = &op->inputs[INPUT], *indices = &op->inputs[INDICES], *updates = &op->inputs[UPDATES];

    TRY(check_tensors(op, error));
    TRY(opjit_fe_check_axis(op, axis, error));
    for (uint32_t d = 0; d < in->rank; d++) {
        if (d != axis)
            TRY(opjit_fe_check_size(op, "IndicesTensor", indices, d, in->sizes[d], " as InputTensor.Sizes", error));
        TRY(opjit_fe_check_size(op, "UpdatesTensor", updates, d, indices->sizes[d], " as IndicesTensor.Sizes", error));
    }
    return OPJIT_OK;
}

static void lower_along(op_lowering *l, ir_kind kind)
{
    ir_func *f = l->f;
    const uint32_t axis = axis_of(l->op);
    ir_ref at[OPJIT_MAX_RANK];
    const ir_ref scatter = begin(l, kind, l->op->inputs[INDICES].sizes[axis], at);

    if (f->failed)
        return;
    at[axis] = opjit_ir_update(f, scatter);
    opjit_ir_set_value(f, scatter, opjit_ir_load(f, l->inputs[UPDATES], at));
    const ir_ref index = opjit_ir_load(f, l->inputs[INDICES], at);
    opjit_ir_set_place(f, scatter, axis, opjit_fe_index_of(l, index, l->op->inputs[INPUT].sizes[axis]));
    yield(l, scatter);
}

static void lower_elements(op_lowering *l) { lower_along(l, IR_KIND_NONE); }

static void lower_reduce(op_lowering *l)
{
    switch (((const REDUCE *)l->op->desc)->Function) {
    case DML_REDUCE_FUNCTION_MAX: lower_along(l, IR_KMAX); break;
    case DML_REDUCE_FUNCTION_MIN: lower_along(l, IR_KMIN); break;
    case DML_REDUCE_FUNCTION_MULTIPLY: lower_along(l, IR_PROD); break;
    default: lower_along(l, IR_SUM); break;
    }
}

const op_def opjit_fe_op_scatter_elements = {
    .type = DML_OPERATOR_SCATTER_ELEMENTS,
    .name = "SCATTER_ELEMENTS",
    .formula = "Output = Input; then Output[c, but Indices[c] on Axis] = Updates[c], the last one wins",
    .desc_size = sizeof(ELEMENTS),
    OP_ROWS(elements_fields, elements_support),
    .introduced = DML_FEATURE_LEVEL_2_0,
    .validate = validate_elements,
    .infer = opjit_fe_infer_same,
    .lower = lower_elements,
};

const op_def opjit_fe_op_scatter_reduce = {
    .type = OPJIT_OPERATOR_SCATTER_REDUCE,
    .name = "SCATTER_REDUCE",
    .formula =
        "Output = Input; then x = f(x, Updates[c]), x being Output[c, but Indices[c] on Axis], one after the other",
    .desc_size = sizeof(REDUCE),
    OP_ROWS(reduce_fields, reduce_support),
    .validate = validate_elements,
    .infer = opjit_fe_infer_same,
    .lower = lower_reduce,
};

/* --- SCATTER_ND --------------------------------------------------------------------------------------------------- */

#define ND DML_SCATTER_ND_OPERATOR_DESC

/* clang-format off */
static const op_field nd_fields[] = {
    OP_FIELD(ND, InputTensor, OP_INPUT, 0),
    OP_FIELD(ND, IndicesTensor, OP_INPUT, 0),
    OP_FIELD(ND, UpdatesTensor, OP_INPUT, 0),
    OP_FIELD(ND, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(ND, InputDimensionCount, OP_UINT, 0),
    OP_FIELD(ND, IndicesDimensionCount, OP_UINT, 0),
};
static const op_support nd_support[] = { SUPPORT(NULL, 2_1, TYPES_32), INDEX_SUPPORT(2_1) };
/* clang-format on */

/* Only the last dimensions of a tensor are meaningful.  The indices' last one holds the coordinates of the input's
 * dimensions [first, slice); those from slice on are a slice, which an update replaces as a whole.  The updates have
 * the indices' dimensions without the last, and a slice's, aligned to the right. */
typedef struct nd {
    uint32_t rank, first, slice; /* of the input */
    uint32_t index_first;        /* of the indices, whose last dimension is the tuple's */
    uint32_t tuples, slices;     /* dimensions */
} nd;

static nd nd_of(const opjit_operator *op)
{
    const ND *desc = op->desc;
    const uint32_t rank = op->inputs[INPUT].rank, tuple = (uint32_t)op->inputs[INDICES].sizes[rank - 1];

    return (nd){ .rank = rank,
                 .first = rank - desc->InputDimensionCount,
                 .slice = rank - desc->InputDimensionCount + tuple,
                 .index_first = rank - desc->IndicesDimensionCount,
                 .tuples = desc->IndicesDimensionCount - 1,
                 .slices = desc->InputDimensionCount - tuple };
}

/* The indices' dimension that is dimension d of the updates, which is none of a slice's; UINT32_MAX: it is 1. */
static uint32_t tuple_dimension(const nd *n, uint32_t d)
{
    const uint32_t from_end = n->rank - n->slices - d;
    return from_end <= n->tuples ? n->rank - 1 - from_end : UINT32_MAX;
}

static opjit_status check_dimensions(const opjit_operator *op, const char *field, uint32_t count, uint32_t input,
                                     opjit_error *error)
{
    const fe_tensor *t = &op->inputs[input];

    if (count < 1 || count > t->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{SCATTER_ND} {%s}: {%u}, must be 1 to %u, the tensor's DimensionCount", field, count,
                               t->rank);
    for (uint32_t d = 0; d + count < t->rank; d++)
        TRY(opjit_fe_check_size(op, op->input_names[input], t, d, 1, ", it is not one of the last dimensions", error));
    return OPJIT_OK;
}

static opjit_status validate_nd(const opjit_operator *op, opjit_error *error)
{
    const ND *desc = op->desc;
    const fe_tensor *in = &op->inputs[INPUT], *indices = &op->inputs[INDICES];

    TRY(check_tensors(op, error));
    TRY(check_dimensions(op, "InputDimensionCount", desc->InputDimensionCount, INPUT, error));
    TRY(check_dimensions(op, "IndicesDimensionCount", desc->IndicesDimensionCount, INDICES, error));
    if (indices->sizes[in->rank - 1] > desc->InputDimensionCount)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{SCATTER_ND} {IndicesTensor.Sizes[%u]}: {%llu}, must be at most %u, "
                               "InputDimensionCount",
                               in->rank - 1, (unsigned long long)indices->sizes[in->rank - 1],
                               desc->InputDimensionCount);
    const nd n = nd_of(op);
    for (uint32_t i = n.rank; i < n.tuples + n.slices; i++) /* more dimensions than the updates have: the first ones */
        TRY(opjit_fe_check_size(op, "IndicesTensor", indices, n.index_first + i - n.rank, 1,
                                ", UpdatesTensor has no dimension for it", error));
    for (uint32_t d = 0; d < n.rank; d++) {
        const bool slice = d + n.slices >= n.rank;
        const uint32_t tuple = slice ? UINT32_MAX : tuple_dimension(&n, d);
        const uint64_t size = slice ? in->sizes[d] : tuple < n.rank ? indices->sizes[tuple] : 1;
        TRY(opjit_fe_check_size(op, "UpdatesTensor", &op->inputs[UPDATES], d, size,
                                ", by InputTensor's and IndicesTensor's sizes", error));
    }
    return OPJIT_OK;
}

static void lower_nd(op_lowering *l)
{
    ir_func *f = l->f;
    const nd n = nd_of(l->op);
    const fe_tensor *in = &l->op->inputs[INPUT], *indices = &l->op->inputs[INDICES];
    ir_ref at[OPJIT_MAX_RANK], index_at[OPJIT_MAX_RANK], update_at[OPJIT_MAX_RANK];
    uint64_t below = indices->elements / indices->sizes[n.rank - 1];
    const ir_ref scatter = begin(l, IR_KIND_NONE, below, at);

    if (f->failed)
        return;
    for (uint32_t d = 0; d + 1 < n.rank; d++) {
        below /= indices->sizes[d];
        index_at[d] = indices->sizes[d] == 1
                          ? opjit_ir_index(f, 0)
                          : moves_digit(f, opjit_ir_update(f, scatter), below, indices->sizes[d]);
    }
    for (uint32_t d = 0; d < n.rank; d++) {
        const uint32_t tuple = d + n.slices >= n.rank ? UINT32_MAX : tuple_dimension(&n, d);
        update_at[d] = d + n.slices >= n.rank ? at[d] : tuple < n.rank ? index_at[tuple] : opjit_ir_index(f, 0);
    }
    for (uint32_t d = n.first; d < n.slice && !f->failed; d++) {
        index_at[n.rank - 1] = opjit_ir_index(f, d - n.first);
        const ir_ref index = opjit_ir_load(f, l->inputs[INDICES], index_at);
        opjit_ir_set_place(f, scatter, d, opjit_fe_index_of(l, index, in->sizes[d]));
    }
    if (!f->failed)
        opjit_ir_set_value(f, scatter, opjit_ir_load(f, l->inputs[UPDATES], update_at));
    yield(l, scatter);
}

const op_def opjit_fe_op_scatter_nd = {
    .type = DML_OPERATOR_SCATTER_ND,
    .name = "SCATTER_ND",
    .formula = "Output = Input; then Output[Indices[i.., 0], ..., b..] = Updates[i.., b..], the last one wins",
    .desc_size = sizeof(ND),
    OP_ROWS(nd_fields, nd_support),
    .introduced = DML_FEATURE_LEVEL_2_1,
    .validate = validate_nd,
    .infer = opjit_fe_infer_same,
    .lower = lower_nd,
};
