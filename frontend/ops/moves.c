/* SPDX-License-Identifier: Apache-2.0 */
/* moves.c - checks and index arithmetic shared by the operators that only move elements. */
#include "frontend/ops/moves.h"

static const op_enum_name axis_direction_names[] = {
    { "DML_AXIS_DIRECTION_INCREASING", DML_AXIS_DIRECTION_INCREASING },
    { "DML_AXIS_DIRECTION_DECREASING", DML_AXIS_DIRECTION_DECREASING },
    { NULL, 0 },
};
const op_enum opjit_fe_axis_directions = { "DML_AXIS_DIRECTION_", axis_direction_names };

/* --- checks ------------------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_check_count(const opjit_operator *op, const char *field, uint32_t count, opjit_error *error)
{
    if (count == op->inputs[0].rank)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s}: {%u}, must be %u as %s.DimensionCount",
                           op->def->name, field, count, op->inputs[0].rank, op->input_names[0]);
}

opjit_status opjit_fe_check_axis(const opjit_operator *op, uint32_t axis, opjit_error *error)
{
    if (axis < op->inputs[0].rank)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {Axis}: {%u}, must be below %u, %s.DimensionCount",
                           op->def->name, axis, op->inputs[0].rank, op->input_names[0]);
}

opjit_status opjit_fe_check_rank(const opjit_operator *op, const char *name, const fe_tensor *tensor, uint32_t rank,
                                 const char *why, opjit_error *error)
{
    if (tensor->rank == rank)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DimensionCount}: {%u}, must be %u%s", op->def->name,
                           name, tensor->rank, rank, why);
}

opjit_status opjit_fe_check_size(const opjit_operator *op, const char *name, const fe_tensor *tensor, uint32_t d,
                                 uint64_t size, const char *why, opjit_error *error)
{
    if (tensor->sizes[d] == size)
        return OPJIT_OK;
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.Sizes[%u]}: {%u}, must be %llu%s", op->def->name,
                           name, d, (unsigned)tensor->sizes[d], (unsigned long long)size, why);
}

opjit_status opjit_fe_check_pair(const opjit_operator *op, uint32_t output, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *out = &op->outputs[output];

    if (out->dtype != in->dtype)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s.DataType}: {%s}, must be %s as %s.DataType",
                               op->def->name, op->output_names[output], opjit_rt_dtype_name(out->dtype),
                               opjit_rt_dtype_name(in->dtype), op->input_names[0]);
    if (out->rank != in->rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{%s} {%s.DimensionCount}: {%u}, must be %u as %s.DimensionCount", op->def->name,
                               op->output_names[output], out->rank, in->rank, op->input_names[0]);
    return OPJIT_OK;
}

opjit_status opjit_fe_check_entry(const opjit_operator *op, const char *field, uint32_t d, uint64_t value,
                                  uint64_t least, uint64_t most, const char *why, opjit_error *error)
{
    if (value >= least && value <= most)
        return OPJIT_OK;
    if (value < least)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s[%u]}: {%llu}, must be at least %llu",
                               op->def->name, field, d, (unsigned long long)value, (unsigned long long)least);
    return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {%s[%u]}: {%llu}, must be at most %llu%s",
                           op->def->name, field, d, (unsigned long long)value, (unsigned long long)most, why);
}

/* --- for lowerings ------------------------------------------------------------------------------------------------ */

ir_ref opjit_fe_inside(ir_func *f, ir_ref x, uint64_t size)
{
    return ir_expr3(f, IR_CLAMP, IR_INDEX, x, opjit_ir_index(f, 0), opjit_ir_index(f, (int64_t)size - 1));
}

ir_ref opjit_fe_between(ir_func *f, ir_ref x, int64_t first, uint64_t size)
{
    const ir_ref from = ir_expr2(f, IR_LE, IR_BOOL, opjit_ir_index(f, first), x);
    const ir_ref below = ir_expr2(f, IR_LT, IR_BOOL, x, opjit_ir_index(f, first + (int64_t)size));
    return ir_expr2(f, IR_AND, IR_BOOL, from, below);
}

/* Clamps before it adds size: an INT64 near the end of its range would overflow. */
ir_ref opjit_fe_index_from_end(op_lowering *l, ir_ref element, uint64_t size)
{
    ir_func *f = l->f;
    const int64_t n = (int64_t)size;
    const ir_ref near = ir_expr3(f, IR_CLAMP, IR_INDEX, ir_expr1(f, IR_TO_INDEX, IR_INDEX, element),
                                 opjit_ir_index(f, -n - 1), opjit_ir_index(f, n));
    const ir_ref negative = ir_expr2(f, IR_LT, IR_BOOL, near, opjit_ir_index(f, 0));
    return ir_expr3(f, IR_SELECT, IR_INDEX, negative, moves_add(f, near, n), near);
}

ir_ref opjit_fe_index_of(op_lowering *l, ir_ref element, uint64_t size)
{
    return opjit_fe_inside(l->f, opjit_fe_index_from_end(l, element, size), size);
}
