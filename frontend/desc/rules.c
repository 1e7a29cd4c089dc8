/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c - what operators' rows and their own checks are made of: ranks and types that a feature level allows, tensors
 * that have to agree in type or sizes, and the scalars of a checked operator. */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

fe_level_text opjit_fe_level_text(uint32_t feature_level)
{
    fe_level_text text;
    if (feature_level == 0)
        snprintf(text.text, sizeof text.text, "none");
    else
        snprintf(text.text, sizeof text.text, "%u.%u", feature_level >> 12 & 0xf, feature_level >> 8 & 0xf);
    return text;
}

/* --- what the level allows ---------------------------------------------------------------------------------------- */

/* "FLOAT32, FLOAT16 or UINT8" of a set of types. */
static void types_text(uint32_t types, char text[static 160])
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t t = 1; types >> t != 0; t++) {
        const bool last = types >> t == 1;
        if ((types >> t & 1) != 0)
            used += (size_t)snprintf(text + used, 160 - used, "%s%s",
                                     used == 0 ? ""
                                     : last    ? " or "
                                               : ", ",
                                     opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t));
    }
}

/* INVALID_ARGUMENT where no level allows it, UNSUPPORTED where another level, or none, does. */
static opjit_status refuse_support(const op_def *def, const char *field, const char *name, uint32_t level,
                                   const fe_tensor *tensor, opjit_error *error)
{
    const op_support *row = opjit_fe_op_support(def, field, level), *newest = opjit_fe_op_support(def, field, 0);
    char at[48] = "", allowed[160];
    bool legal;

    if (level != 0)
        snprintf(at, sizeof at, " at feature level %s", opjit_fe_level_text(level).text);
    if (tensor->rank < row->rank_min || tensor->rank > row->rank_max) {
        legal = tensor->rank >= newest->rank_min && tensor->rank <= newest->rank_max;
        if (row->rank_min == row->rank_max)
            snprintf(allowed, sizeof allowed, "%u", row->rank_min);
        else
            snprintf(allowed, sizeof allowed, "%u to %u", row->rank_min, row->rank_max);
        return opjit_rt_refuse(error, legal ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DimensionCount}: {%u}, must be %s%s", def->name, name, tensor->rank, allowed,
                               at);
    }
    legal = (newest->types >> tensor->dtype & 1) != 0;
    types_text(row->types, allowed);
    return opjit_rt_refuse(error, legal ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
                           "{%s} {%s.DataType}: {%s}, must be %s%s", def->name, name,
                           opjit_rt_dtype_name(tensor->dtype), allowed, at);
}

opjit_status opjit_fe_check_support(const op_def *def, const char *field, const char *name, uint32_t level,
                                    const fe_tensor *tensor, opjit_error *error)
{
    const op_support *row = opjit_fe_op_support(def, field, level);

    if (tensor->rank >= row->rank_min && tensor->rank <= row->rank_max && (row->types >> tensor->dtype & 1) != 0)
        return OPJIT_OK;
    return refuse_support(def, field, name, level, tensor, error);
}

/* --- tensors that agree ------------------------------------------------------------------------------------------- */

static opjit_status type_error(const opjit_operator *op, uint32_t input, DML_TENSOR_DATA_TYPE want, const char *as,
                               opjit_error *error)
{
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DataType}: {%s}, must be %s as %s.DataType",
                           op->def->name, op->input_names[input], opjit_rt_dtype_name(op->inputs[input].dtype),
                           opjit_rt_dtype_name(want), as);
}

opjit_status opjit_fe_same_type(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    const DML_TENSOR_DATA_TYPE want = op->outputs[output].dtype;

    if (op->inputs[input].dtype == want)
        return OPJIT_OK;
    return type_error(op, input, want, op->output_names[output], error);
}

opjit_status opjit_fe_same_input_type(const opjit_operator *op, uint32_t input, uint32_t as, opjit_error *error)
{
    const fe_tensor *a = &op->inputs[input], *b = &op->inputs[as];

    if (!a->present || !b->present || a->dtype == b->dtype)
        return OPJIT_OK;
    return type_error(op, input, b->dtype, op->input_names[as], error);
}

opjit_status opjit_fe_same_sizes(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[input], *out = &op->outputs[output];
    const char *what = op->def->name, *name = op->input_names[input], *as = op->output_names[output];

    if (in->rank != out->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DimensionCount}: {%u}, must be %u as %s.DimensionCount", what, name, in->rank,
                               out->rank, as);
    for (uint32_t i = 0; i < in->rank; i++)
        if (in->sizes[i] != out->sizes[i])
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes[%u]}: {%u}, must be %u as %s.Sizes[%u]", what, name, i,
                                   (unsigned)in->sizes[i], (unsigned)out->sizes[i], as, i);
    return OPJIT_OK;
}

opjit_status opjit_fe_same_shape(const opjit_operator *op, uint32_t input, uint32_t output, opjit_error *error)
{
    TRY(opjit_fe_same_type(op, input, output, error));
    return opjit_fe_same_sizes(op, input, output, error);
}

opjit_status opjit_fe_broadcast_sizes(const opjit_operator *op, uint32_t input, opjit_error *error)
{
    const fe_tensor *t = &op->inputs[input], *in = &op->inputs[0];
    const char *what = op->def->name, *name = op->input_names[input], *as = op->input_names[0];

    if (t->rank != in->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DimensionCount}: {%u}, must be %u as %s's",
                               what, name, t->rank, in->rank, as);
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && t->sizes[d] != in->sizes[d])
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                                   "{%s} {%s.Sizes[%u]}: {%u}, must be 1 or %u as %s.Sizes", what, name, d,
                                   (unsigned)t->sizes[d], (unsigned)in->sizes[d], as);
    return OPJIT_OK;
}

/* --- scalars ------------------------------------------------------------------------------------------------------ */

DML_TENSOR_DATA_TYPE opjit_fe_scalar_type(const opjit_operator *op, uint32_t field)
{
    while (op->def->fields[field].kind != OP_DTYPE) /* rows put one before every scalar; a test checks it */
        field--;
    uint32_t type;
    memcpy(&type, (const uint8_t *)op->desc + op->def->fields[field].offset, sizeof type);
    return (DML_TENSOR_DATA_TYPE)type;
}

uint64_t opjit_fe_scalar_bits(const opjit_operator *op, uint32_t field)
{
    DML_SCALAR_UNION value;

    memcpy(&value, (const uint8_t *)op->desc + op->def->fields[field].offset, sizeof value);
    switch (opjit_rt_dtype_size(opjit_fe_scalar_type(op, field))) {
    case 1: return value.UInt8;
    case 2: return value.UInt16;
    case 4: return value.UInt32;
    default: return value.UInt64;
    }
}
