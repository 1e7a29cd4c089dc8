/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c - checks and definitions of operators over axes. */
#include "frontend/ops/reduce.h"

#include <string.h>

#include "frontend/ops/moves.h"
#include "ir/eval/numerics.h"

/* --- checks ------------------------------------------------------------------------------------------------------- */

opjit_status opjit_fe_check_axes(const opjit_operator *op, const uint32_t *axes, uint32_t count, opjit_error *error)
{
    uint32_t seen = 0;

    if (count == 0 || count > op->inputs[0].rank)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {AxisCount}: {%u}, must be 1 to %u", op->def->name,
                               count, op->inputs[0].rank);
    for (uint32_t i = 0; i < count; i++) {
        TRY(opjit_fe_check_entry(op, "Axes", i, axes[i], 0, op->inputs[0].rank - 1, ", the last axis", error));
        if ((seen >> axes[i] & 1) != 0)
            return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT, "{%s} {Axes[%u]}: {%u}, must be there once",
                                   op->def->name, i, axes[i]);
        seen |= 1u << axes[i];
    }
    return OPJIT_OK;
}

opjit_status opjit_fe_check_reduced(const opjit_operator *op, const uint32_t *axes, uint32_t count, opjit_error *error)
{
    const fe_tensor *in = &op->inputs[0], *out = &op->outputs[0];

    TRY(opjit_fe_check_axes(op, axes, count, error));
    const uint32_t mask = opjit_fe_axes_mask(axes, count);
    TRY(opjit_fe_check_rank(op, "OutputTensor", out, in->rank, " as InputTensor.DimensionCount", error));
    for (uint32_t d = 0; d < in->rank; d++) {
        const bool reduced = (mask >> d & 1) != 0;
        TRY(opjit_fe_check_size(op, "OutputTensor", out, d, reduced ? 1 : in->sizes[d],
                                reduced ? ", a reduced axis" : " as InputTensor.Sizes", error));
    }
    return OPJIT_OK;
}

uint32_t opjit_fe_axes_mask(const uint32_t *axes, uint32_t count)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; i < count; i++)
        mask |= 1u << axes[i];
    return mask;
}

/* --- definitions -------------------------------------------------------------------------------------------------- */

ir_type opjit_fe_wide(ir_type type)
{
    return type == IR_F16 ? IR_F32 : type;
}

uint64_t opjit_fe_reduced_count(const op_lowering *l, uint32_t axes)
{
    uint64_t count = 1;

    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        count *= (axes >> d & 1) != 0 ? l->op->inputs[0].sizes[d] : 1;
    return count;
}

static uint32_t declare(op_lowering *l, ir_type type, const fe_tensor *in, uint32_t axes)
{
    ir_tensor t = { .role = IR_VALUE, .type = type, .rank = in->rank, .align = opjit_ir_type_size(type) };

    t.bytes = opjit_ir_type_size(type);
    for (uint32_t d = 0; d < in->rank; d++) {
        t.sizes[d] = (axes >> d & 1) != 0 ? 1 : in->sizes[d];
        t.bytes *= t.sizes[d];
    }
    opjit_ir_dense_strides(&t);
    return opjit_ir_tensor(l->f, &t);
}

ir_ref opjit_fe_def(op_lowering *l, ir_type type, uint32_t axes)
{
    const uint32_t tensor = declare(l, type, &l->op->inputs[0], axes);

    return l->f->failed ? 0 : opjit_fe_append(l, opjit_ir_def(l->f, tensor));
}

ir_ref opjit_fe_def_to(op_lowering *l, ir_type type, const fe_tensor *like)
{
    const uint32_t tensor = declare(l, type, like, 0);

    return l->f->failed ? 0 : opjit_fe_append(l, opjit_ir_def(l->f, tensor));
}

static uint32_t lanes_of(const fe_tensor *in, uint32_t axes)
{
    for (uint32_t d = in->rank; d-- > 0;)
        if (in->sizes[d] > 1)
            return (axes >> d & 1) != 0 ? IR_REDUCE_LANES : 1;
    return 1;
}

ir_ref opjit_fe_reduce(op_lowering *l, ir_kind kind, ir_type type, uint32_t axes, ir_ref at[OPJIT_MAX_RANK])
{
    const fe_tensor *in = &l->op->inputs[0];
    ir_func *f = l->f;
    const uint32_t tensor = declare(l, type, &l->op->inputs[0], axes);
    uint64_t below = opjit_fe_reduced_count(l, axes);
    ir_ref def;

    memset(at, 0, OPJIT_MAX_RANK * sizeof *at);
    if (f->failed)
        return 0;
    def = opjit_fe_append(l, opjit_ir_reduce(f, tensor, kind, lanes_of(in, axes), below));
    for (uint32_t d = 0; d < in->rank && !f->failed; d++) {
        at[d] = opjit_ir_coordinate(f, def, d);
        if ((axes >> d & 1) == 0)
            continue;
        below /= in->sizes[d];
        at[d] = ir_expr2(f, IR_IDIV, IR_INDEX, opjit_ir_reduced(f, def), opjit_ir_index(f, (int64_t)below));
        at[d] = ir_expr2(f, IR_IMOD, IR_INDEX, at[d], opjit_ir_index(f, (int64_t)in->sizes[d]));
    }
    return def;
}

ir_ref opjit_fe_reduce_lanes(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint32_t lanes,
                             uint64_t count)
{
    const uint32_t tensor = declare(l, type, like, 0);

    return l->f->failed ? 0 : opjit_fe_append(l, opjit_ir_reduce(l->f, tensor, kind, lanes, count));
}

ir_ref opjit_fe_reduce_to(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint64_t count)
{
    return opjit_fe_reduce_lanes(l, kind, type, like, 1, count);
}

ir_ref opjit_fe_scatter(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint64_t count)
{
    const uint32_t tensor = declare(l, type, like, 0);

    return l->f->failed ? 0 : opjit_fe_append(l, opjit_ir_scatter(l->f, tensor, kind, count));
}

ir_ref opjit_fe_reduce_counted(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like)
{
    const uint32_t tensor = declare(l, type, like, 0);

    return l->f->failed ? 0 : opjit_fe_append(l, opjit_ir_reduce_counted(l->f, tensor, kind));
}

ir_ref opjit_fe_scan(op_lowering *l, ir_kind kind, ir_type type, uint32_t axis, bool exclusive,
                     ir_ref at[OPJIT_MAX_RANK])
{
    const uint32_t tensor = declare(l, type, &l->op->inputs[0], 0);
    ir_ref def;

    memset(at, 0, OPJIT_MAX_RANK * sizeof *at);
    if (l->f->failed)
        return 0;
    def = opjit_fe_append(l, opjit_ir_scan(l->f, tensor, kind, axis, exclusive));
    opjit_fe_own(l, def, at);
    at[axis] = l->f->failed ? 0 : opjit_ir_reduced(l->f, def);
    return def;
}

ir_ref opjit_fe_scan_to(op_lowering *l, ir_kind kind, ir_type type, const fe_tensor *like, uint32_t dimension,
                        bool exclusive)
{
    const uint32_t tensor = declare(l, type, like, 0);

    return l->f->failed ? 0 : opjit_fe_append(l, opjit_ir_scan(l->f, tensor, kind, dimension, exclusive));
}

ir_ref opjit_fe_wide_input(op_lowering *l, const ir_ref *at)
{
    const ir_ref x = l->f->failed ? 0 : opjit_ir_load(l->f, l->inputs[0], at);

    if (l->f->failed)
        return 0;
    const ir_type type = (ir_type)ir_at(l->f, x)->type;
    return opjit_fe_wide(type) == type ? x : ir_expr1(l->f, IR_CAST, opjit_fe_wide(type), x);
}

ir_ref opjit_fe_value_at(op_lowering *l, ir_ref def, uint32_t axes, const ir_ref *at)
{
    ir_ref of[OPJIT_MAX_RANK];

    if (l->f->failed)
        return 0;
    for (uint32_t d = 0; d < l->op->inputs[0].rank; d++)
        of[d] = (axes >> d & 1) != 0 ? opjit_ir_index(l->f, 0) : at[d];
    return opjit_ir_load(l->f, ir_at(l->f, def)->ref, of);
}

void opjit_fe_own(const op_lowering *l, ir_ref statement, ir_ref at[OPJIT_MAX_RANK])
{
    for (uint32_t d = 0; d < OPJIT_MAX_RANK; d++)
        at[d] = d < l->op->inputs[0].rank && !l->f->failed ? opjit_ir_coordinate(l->f, statement, d) : 0;
}

void opjit_fe_set(op_lowering *l, ir_ref statement, ir_ref x)
{
    ir_func *f = l->f;

    if (f->failed)
        return;
    const ir_type type = f->tensors[ir_at(f, statement)->ref].type;
    opjit_ir_set_value(f, statement, ir_at(f, x)->type == type ? x : ir_expr1(f, IR_CAST, type, x));
}

ir_ref opjit_fe_real(ir_func *f, ir_type type, uint64_t value)
{
    return ir_expr1(f, IR_CAST, type, opjit_ir_const(f, IR_U64, value));
}
