/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c - the rows of MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1: fields, checks, inference.
 *
 * What the documents leave open is as in ONNX Runtime, which the second form was made for:
 * - MaskFilterValue is added to scores, as the algorithm's "Add Mask" says, for each MaskType.
 * - A BOOLEAN mask has the sizes of the scores, {batch, heads, queries, keys}, or 1 where one element stands for all;
 *   leading sizes may be left out.  So has RelativePositionBiasTensor.
 * - KEY_QUERY_SEQUENCE_LENGTH_START_END: starts count from the first sequence of the batch on; a query of sequence b is
 *   inside from queryStart[b] to the next start, the last end behind the last; so are keys, of which the first
 *   keyLength[b] are inside.
 * - QueryHeadCount / KeyValueHeadCount heads that follow each other share the keys and values of one.
 * - PastSequenceLengthsTensor {batch}: that many keys of PastKeyTensor are there, the new ones follow them, and what is
 *   left of the present ones is 0.  A query attends to keys up to its own position, other weights are 0.  The
 *   document's types for it are the other tensors'; INT32 is what callers pass. */
#include "frontend/ops/contract/attention.h"

#include <string.h>

#include "frontend/ops/infer.h"
#include "frontend/ops/moves.h"

#define ATTENTION DML_MULTIHEAD_ATTENTION_OPERATOR_DESC
#define ATTENTION1 DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC
#define ELEMENTS_MAX UINT32_MAX /* of a tensor, as of those that callers describe */

/* clang-format off */
static const op_enum_name mask_names[] = {
    { "DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE", DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE },
    { "DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH",
      DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH },
    { "DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START",
      DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START },
    { "DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END",
      DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END },
    { "DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN", DML_MULTIHEAD_ATTENTION_MASK_TYPE_BOOLEAN },
    { NULL, 0 },
};
static const op_enum mask_enum = { "DML_MULTIHEAD_ATTENTION_MASK_TYPE_", mask_names };

#define INPUT_FIELDS(DESC)                                              \
    OP_FIELD(DESC, QueryTensor, OP_INPUT, OP_OPTIONAL),                 \
    OP_FIELD(DESC, KeyTensor, OP_INPUT, OP_OPTIONAL),                   \
    OP_FIELD(DESC, ValueTensor, OP_INPUT, OP_OPTIONAL),                 \
    OP_FIELD(DESC, StackedQueryKeyTensor, OP_INPUT, OP_OPTIONAL),       \
    OP_FIELD(DESC, StackedKeyValueTensor, OP_INPUT, OP_OPTIONAL),       \
    OP_FIELD(DESC, StackedQueryKeyValueTensor, OP_INPUT, OP_OPTIONAL),  \
    OP_FIELD(DESC, BiasTensor, OP_INPUT, OP_OPTIONAL),                  \
    OP_FIELD(DESC, MaskTensor, OP_INPUT, OP_OPTIONAL),                  \
    OP_FIELD(DESC, RelativePositionBiasTensor, OP_INPUT, OP_OPTIONAL),  \
    OP_FIELD(DESC, PastKeyTensor, OP_INPUT, OP_OPTIONAL),               \
    OP_FIELD(DESC, PastValueTensor, OP_INPUT, OP_OPTIONAL)
#define OUTPUT_FIELDS(DESC)                                             \
    OP_FIELD(DESC, OutputTensor, OP_OUTPUT, 0),                         \
    OP_FIELD(DESC, OutputPresentKeyTensor, OP_OUTPUT, OP_OPTIONAL),     \
    OP_FIELD(DESC, OutputPresentValueTensor, OP_OUTPUT, OP_OPTIONAL),   \
    OP_FIELD(DESC, Scale, OP_FLOAT, 0),                                 \
    OP_FIELD(DESC, MaskFilterValue, OP_FLOAT, 0)
static const op_field fields[] = {
    INPUT_FIELDS(ATTENTION),
    OUTPUT_FIELDS(ATTENTION),
    OP_FIELD(ATTENTION, HeadCount, OP_UINT, 0),
    OP_FIELD_ENUM(ATTENTION, MaskType, &mask_enum),
};
static const op_field fields1[] = {
    INPUT_FIELDS(ATTENTION1),
    OP_FIELD(ATTENTION1, PastSequenceLengthsTensor, OP_INPUT, OP_OPTIONAL),
    OUTPUT_FIELDS(ATTENTION1),
    OP_FIELD(ATTENTION1, QueryHeadCount, OP_UINT, 0),
    OP_FIELD(ATTENTION1, KeyValueHeadCount, OP_UINT, 0),
    OP_FIELD_ENUM(ATTENTION1, MaskType, &mask_enum),
};

#define FLOATS(LEVEL, field, least, most, more)                                               \
    { field, 0, least, most, OP_TYPES_FLOAT | OP_TYPES(FLOAT64) | (more) },                   \
    { field, DML_FEATURE_LEVEL_##LEVEL, least, most, OP_TYPES_FLOAT | (more) }
#define SUPPORT(LEVEL)                                                                        \
    FLOATS(LEVEL, NULL, 3, 5, 0),                                                             \
    FLOATS(LEVEL, "StackedQueryKeyTensor", 5, 5, 0),                                          \
    FLOATS(LEVEL, "StackedKeyValueTensor", 5, 5, 0),                                          \
    FLOATS(LEVEL, "StackedQueryKeyValueTensor", 5, 5, 0),                                     \
    FLOATS(LEVEL, "BiasTensor", 1, 5, 0),                                                     \
    { "MaskTensor", 0, 1, 5, OP_TYPES(INT32) },                                               \
    { "MaskTensor", DML_FEATURE_LEVEL_##LEVEL, 1, 5, OP_TYPES(INT32) },                       \
    FLOATS(LEVEL, "RelativePositionBiasTensor", 4, 5, 0),                                     \
    FLOATS(LEVEL, "PastKeyTensor", 4, 5, 0),                                                  \
    FLOATS(LEVEL, "PastValueTensor", 4, 5, 0),                                                \
    FLOATS(LEVEL, "OutputPresentKeyTensor", 4, 5, 0),                                         \
    FLOATS(LEVEL, "OutputPresentValueTensor", 4, 5, 0)
static const op_support support[] = { SUPPORT(6_1) };
static const op_support support1[] = {
    SUPPORT(6_3),
    FLOATS(6_3, "PastSequenceLengthsTensor", 1, 5, OP_TYPES(INT32)),
};
/* clang-format on */

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* A tensor of either form of descriptions; rank 0: absent. */
typedef struct shape {
    uint32_t rank;
    const uint64_t *sizes;
} shape;

static uint64_t from_end(const shape *t, uint32_t d)
{
    return d < t->rank ? t->sizes[t->rank - 1 - d] : 1;
}

static uint64_t head_count(const op_def *def, const void *desc, bool of_keys)
{
    const uint32_t *all = opjit_fe_field(def, desc, "HeadCount");
    const uint32_t *own = opjit_fe_field(def, desc, of_keys ? "KeyValueHeadCount" : "QueryHeadCount");

    return *(all != NULL ? all : own);
}

/* What the tensors say; heads and key_heads are above 0.  present: of keys, or of values. */
static attention_sizes measure(const shape *in, const shape *present, uint64_t heads, uint64_t key_heads)
{
    attention_sizes s = { .heads = heads, .key_heads = key_heads };
    const shape *all = in[STACKED_QKV].rank != 0 ? &in[STACKED_QKV] : &in[STACKED_QK], *pair = &in[STACKED_KV];
    const bool alone = in[QUERY].rank != 0;

    s.batch = alone ? from_end(&in[QUERY], 2) : from_end(all, 4);
    s.queries = alone ? from_end(&in[QUERY], 1) : from_end(all, 3);
    s.size = alone ? from_end(&in[QUERY], 0) / heads : from_end(all, 0);
    s.added = in[KEY].rank != 0 ? from_end(&in[KEY], 1) : pair->rank != 0 ? from_end(pair, 3) : s.queries;
    s.value_size = in[VALUE].rank != 0 ? from_end(&in[VALUE], 0) / key_heads
                   : pair->rank != 0   ? from_end(pair, 0)
                                       : s.size;
    s.past = in[PAST_KEY].rank != 0 ? from_end(&in[PAST_KEY], 1) : 0;
    s.total = in[PAST_LENGTHS].rank != 0 && present->rank != 0 ? from_end(present, 1) : s.past + s.added;
    return s;
}

static shape shape_of(const fe_tensor *t)
{
    return (shape){ t->present ? t->rank : 0, t->sizes };
}

attention_sizes opjit_fe_attention_sizes(const opjit_operator *op)
{
    const uint64_t heads = head_count(op->def, op->desc, false), key_heads = head_count(op->def, op->desc, true);
    shape in[ATTENTION_INPUTS] = { { 0 } };

    for (uint32_t i = 0; i < op->input_count; i++)
        in[i] = shape_of(&op->inputs[i]);
    const shape present = shape_of(&op->outputs[op->outputs[PRESENT_KEY].present ? PRESENT_KEY : PRESENT_VALUE]);
    return measure(in, &present, heads, key_heads);
}

/* --- validation --------------------------------------------------------------------------------------------------- */

static bool is_there(const opjit_operator *op, uint32_t input)
{
    return input < op->input_count && op->inputs[input].present;
}

/* One of the tensors that have what this one has, and no other; stacked: a bit each. */
static opjit_status check_one(const opjit_operator *op, uint32_t input, uint32_t stacked, opjit_error *error)
{
    uint32_t found = ATTENTION_INPUTS;

    for (uint32_t i = 0; i < BIAS; i++) {
        if ((i != input && (stacked >> i & 1) == 0) || !is_there(op, i))
            continue;
        if (found != ATTENTION_INPUTS)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {a tensor}, must be NULL, as %s has it",
                                   op->def->name, op->input_names[found], op->input_names[i]);
        found = i;
    }
    if (found != ATTENTION_INPUTS)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                           "{%s} {%s}: {NULL}, must be a tensor, as no stacked tensor has it", op->def->name,
                           op->input_names[input]);
}

/* Two tensors of which one needs the other. */
static opjit_status check_both(const opjit_operator *op, uint32_t input, uint32_t other, opjit_error *error)
{
    if (is_there(op, input) || !is_there(op, other))
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {NULL}, must be a tensor as %s is", op->def->name,
                           op->input_names[input], op->input_names[other]);
}

static opjit_status check_presence(const opjit_operator *op, opjit_error *error)
{
    const DML_MULTIHEAD_ATTENTION_MASK_TYPE *mask = opjit_fe_field(op->def, op->desc, "MaskType");

    TRY(check_one(op, QUERY, 1u << STACKED_QK | 1u << STACKED_QKV, error));
    TRY(check_one(op, KEY, 1u << STACKED_QK | 1u << STACKED_KV | 1u << STACKED_QKV, error));
    TRY(check_one(op, VALUE, 1u << STACKED_KV | 1u << STACKED_QKV, error));
    TRY(check_both(op, PAST_KEY, PAST_VALUE, error));
    TRY(check_both(op, PAST_VALUE, PAST_KEY, error));
    if (is_there(op, MASK) == (*mask != DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE))
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {MaskTensor}: {%s}, must be %s MaskType NONE",
                           op->def->name, is_there(op, MASK) ? "a tensor" : "NULL",
                           is_there(op, MASK) ? "NULL with" : "a tensor, or");
}

static opjit_status check_types(const opjit_operator *op, opjit_error *error)
{
    const fe_tensor *out = &op->outputs[OUTPUT];

    for (uint32_t i = 0; i < op->input_count; i++)
        if (is_there(op, i) && i != MASK && (i != PAST_LENGTHS || op->inputs[i].dtype != DML_TENSOR_DATA_TYPE_INT32))
            TRY(opjit_fe_same_type(op, i, OUTPUT, error));
    for (uint32_t i = PRESENT_KEY; i < ATTENTION_OUTPUTS; i++)
        if (op->outputs[i].present && op->outputs[i].dtype != out->dtype)
            return opjit_rt_refuse(
                error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DataType}: {%s}, must be %s as OutputTensor", op->def->name,
                op->output_names[i], opjit_rt_dtype_name(op->outputs[i].dtype), opjit_rt_dtype_name(out->dtype));
    return OPJIT_OK;
}

static opjit_status check_heads(const opjit_operator *op, opjit_error *error)
{
    static const char *const names[3] = { "HeadCount", "QueryHeadCount", "KeyValueHeadCount" };
    const bool own = opjit_fe_field(op->def, op->desc, "HeadCount") == NULL;
    const uint64_t heads[2] = { head_count(op->def, op->desc, false), head_count(op->def, op->desc, true) };

    for (uint32_t i = 0; i < 2; i++)
        if (heads[i] == 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {0}, must be at least 1", op->def->name,
                                   names[own ? i + 1 : 0]);
    if (heads[0] % heads[1] != 0)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {QueryHeadCount}: {%llu}, must be a multiple of KeyValueHeadCount, %llu",
                               op->def->name, (unsigned long long)heads[0], (unsigned long long)heads[1]);
    for (uint32_t i = 0; i < 2; i++) {
        const fe_tensor *t = &op->inputs[i == 0 ? QUERY : VALUE];
        if (t->present && t->sizes[t->rank - 1] % heads[i] != 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes[%u]}: {%u}, must be a multiple of %s",
                                   op->def->name, op->input_names[i == 0 ? QUERY : VALUE], t->rank - 1,
                                   (unsigned)t->sizes[t->rank - 1], names[own ? i + 1 : 0]);
    }
    return OPJIT_OK;
}

/* The last sizes of a tensor; those before them are 1.  ones: a size of 1 stands for all. */
static opjit_status check_sizes(const opjit_operator *op, const char *name, const fe_tensor *t, uint32_t count,
                                const uint64_t *sizes, bool ones, opjit_error *error)
{
    for (uint32_t d = 0; t->present && d < t->rank; d++) {
        const bool leads = d + count < t->rank;
        if (ones && t->sizes[d] == 1)
            continue;
        TRY(opjit_fe_check_size(op, name, t, d, leads ? 1 : sizes[d + count - t->rank],
                                leads  ? ", a leading size"
                                : ones ? ", or 1"
                                       : "",
                                error));
    }
    if (t->present && t->rank < count && !ones)
        TRY(opjit_fe_check_rank(op, name, t, count, " or more", error));
    return OPJIT_OK;
}

#define SIZES(position, ...)                                                                                    \
    TRY(check_sizes(op, op->input_names[position], &op->inputs[position],                                       \
                    sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), (uint64_t[]){ __VA_ARGS__ }, false, \
                    error))

static opjit_status check_mask(const opjit_operator *op, const attention_sizes *s, opjit_error *error)
{
    const DML_MULTIHEAD_ATTENTION_MASK_TYPE *type = opjit_fe_field(op->def, op->desc, "MaskType");
    const uint64_t scores[4] = { s->batch, s->heads, s->queries, s->total };

    switch (*type) {
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_LENGTH: SIZES(MASK, s->batch); break;
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_SEQUENCE_END_START: SIZES(MASK, 2, s->batch); break;
    case DML_MULTIHEAD_ATTENTION_MASK_TYPE_KEY_QUERY_SEQUENCE_LENGTH_START_END: SIZES(MASK, 3 * s->batch + 2); break;
    default: TRY(check_sizes(op, "MaskTensor", &op->inputs[MASK], 4, scores, true, error)); break;
    }
    return check_sizes(op, "RelativePositionBiasTensor", &op->inputs[RELATIVE_BIAS], 4, scores, true, error);
}

static opjit_status check_inputs(const opjit_operator *op, const attention_sizes *s, opjit_error *error)
{
    const uint64_t hidden = s->heads * s->size, of_keys = s->key_heads * s->size;
    const uint64_t of_values = s->key_heads * s->value_size;

    SIZES(QUERY, s->batch, s->queries, hidden);
    SIZES(KEY, s->batch, s->added, of_keys);
    SIZES(VALUE, s->batch, s->added, of_values);
    SIZES(STACKED_QK, s->batch, s->added, s->key_heads, 2, s->size);
    SIZES(STACKED_QK, s->batch, s->added, s->heads, 2, s->size);
    SIZES(STACKED_KV, s->batch, s->added, s->key_heads, 2, s->size);
    SIZES(STACKED_QKV, s->batch, s->added, s->key_heads, 3, s->size);
    SIZES(STACKED_QKV, s->batch, s->added, s->heads, 3, s->size);
    SIZES(BIAS, hidden + of_keys + of_values);
    SIZES(PAST_KEY, s->batch, s->key_heads, s->past, s->size);
    SIZES(PAST_VALUE, s->batch, s->key_heads, s->past, s->value_size);
    if (is_there(op, PAST_LENGTHS))
        SIZES(PAST_LENGTHS, s->batch);
    return check_mask(op, s, error);
}

/* Present tensors hold the past and the new keys, or at least the more of these where the lengths are given. */
static opjit_status check_outputs(const opjit_operator *op, const attention_sizes *s, opjit_error *error)
{
    const uint64_t out[3] = { s->batch, s->queries, s->heads * s->value_size };
    const uint64_t key[4] = { s->batch, s->key_heads, s->total, s->size };
    const uint64_t value[4] = { s->batch, s->key_heads, s->total, s->value_size };
    const uint64_t least = s->past > s->added ? s->past : s->added;

    TRY(check_sizes(op, "OutputTensor", &op->outputs[OUTPUT], 3, out, false, error));
    TRY(check_sizes(op, "OutputPresentKeyTensor", &op->outputs[PRESENT_KEY], 4, key, false, error));
    TRY(check_sizes(op, "OutputPresentValueTensor", &op->outputs[PRESENT_VALUE], 4, value, false, error));
    if (s->total < least) {
        const uint32_t i = op->outputs[PRESENT_KEY].present ? PRESENT_KEY : PRESENT_VALUE;
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes[%u]}: {%llu}, must be at least %llu",
                               op->def->name, op->output_names[i], op->outputs[i].rank - 2,
                               (unsigned long long)s->total, (unsigned long long)least);
    }
    if (s->batch * s->heads * s->queries > ELEMENTS_MAX / s->total)
        return opjit_rt_refuse(error, OPJIT_LIMIT,
                               "{%s} {OutputTensor}: {!scores}more than %u scores of queries and keys", op->def->name,
                               ELEMENTS_MAX);
    return OPJIT_OK;
}

static opjit_status validate(const opjit_operator *op, opjit_error *error)
{
    TRY(check_presence(op, error));
    TRY(check_types(op, error));
    TRY(check_heads(op, error));
    const attention_sizes s = opjit_fe_attention_sizes(op);
    TRY(check_inputs(op, &s, error));
    return check_outputs(op, &s, error);
}

/* --- inference ---------------------------------------------------------------------------------------------------- */

static void set_shape(op_shape *output, DML_TENSOR_DATA_TYPE type, uint32_t rank, const uint64_t *sizes)
{
    op_shape made = { .dtype = type, .rank = rank };

    memcpy(made.sizes, sizes, rank * sizeof *sizes);
    infer_type(output, type);
    infer_shape(output, &made);
}

static void infer(op_inference *s)
{
    const uint64_t heads = head_count(s->def, s->desc, false), key_heads = head_count(s->def, s->desc, true);
    shape in[ATTENTION_INPUTS] = { { 0 } };
    DML_TENSOR_DATA_TYPE type = DML_TENSOR_DATA_TYPE_UNKNOWN;

    for (uint32_t i = 0; i < s->input_count; i++) {
        in[i] = (shape){ s->inputs[i].rank, s->inputs[i].sizes };
        if (i < BIAS && type == DML_TENSOR_DATA_TYPE_UNKNOWN && in[i].rank != 0)
            type = s->inputs[i].dtype;
    }
    if (heads == 0 || key_heads == 0)
        return;
    const op_shape *given = &s->outputs[s->outputs[PRESENT_KEY].rank != 0 ? PRESENT_KEY : PRESENT_VALUE];
    const attention_sizes z = measure(in, &(shape){ given->rank, given->sizes }, heads, key_heads);
    set_shape(&s->outputs[OUTPUT], type, 3, (uint64_t[]){ z.batch, z.queries, heads * z.value_size });
    set_shape(&s->outputs[PRESENT_KEY], type, 4, (uint64_t[]){ z.batch, key_heads, z.total, z.size });
    set_shape(&s->outputs[PRESENT_VALUE], type, 4, (uint64_t[]){ z.batch, key_heads, z.total, z.value_size });
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

const op_def opjit_fe_op_multihead_attention = {
    .type = DML_OPERATOR_MULTIHEAD_ATTENTION,
    .name = "MULTIHEAD_ATTENTION",
    .formula = "softmax(Query * transposed Key * Scale + RelativePositionBias + mask) * Value, for each head",
    .desc_size = sizeof(ATTENTION),
    OP_ROWS(fields, support),
    .introduced = DML_FEATURE_LEVEL_6_1,
    .validate = validate,
    .infer = infer,
    .lower = opjit_fe_lower_attention,
};

const op_def opjit_fe_op_multihead_attention1 = {
    .type = DML_OPERATOR_MULTIHEAD_ATTENTION1,
    .name = "MULTIHEAD_ATTENTION1",
    .formula = "MULTIHEAD_ATTENTION whose heads may share keys and values, with the lengths of past sequences",
    .desc_size = sizeof(ATTENTION1),
    OP_ROWS(fields1, support1),
    .introduced = DML_FEATURE_LEVEL_6_3,
    .validate = validate,
    .infer = infer,
    .lower = opjit_fe_lower_attention,
};
