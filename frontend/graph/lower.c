/* SPDX-License-Identifier: Apache-2.0 */
/* lower.c - what rows write their formulas with: the statements of outputs, inputs at a coordinate, scalar fields.
 * Formulas are literal here; the passes make them fast. */
#include <string.h>

#include "frontend/frontend.h"

/* --- for lowerings ------------------------------------------------------------------------------------------------ */

ir_ref opjit_fe_append(op_lowering *l, ir_ref statement)
{
    ir_func *f = l->f;
    ir_ref tail = l->last != 0 ? l->last : f->body;

    if (f->failed || statement == 0)
        return 0;
    while (tail != 0 && ir_at(f, tail)->next != 0)
        tail = ir_at(f, tail)->next;
    opjit_ir_append(f, 0, &tail, statement);
    l->last = tail;
    return statement;
}

ir_ref opjit_fe_output(op_lowering *l, uint32_t i)
{
    ir_func *f = l->f;
    const uint32_t tensor = l->outputs[i];

    if (f->failed)
        return 0;
    return opjit_fe_append(l, f->tensors[tensor].role == IR_OUT ? opjit_ir_yield(f, tensor) : opjit_ir_def(f, tensor));
}

ir_ref opjit_fe_output_box(op_lowering *l, uint32_t i, const uint64_t *offsets, const uint64_t *sizes)
{
    ir_func *f = l->f;
    ir_ref box[3 * OPJIT_MAX_RANK];

    for (uint32_t d = 0; d < l->op->outputs[i].rank; d++) {
        box[3 * d] = opjit_ir_index(f, (int64_t)offsets[d]);
        box[3 * d + 1] = opjit_ir_index(f, (int64_t)sizes[d]);
        box[3 * d + 2] = opjit_ir_index(f, 1);
    }
    return f->failed ? 0 : opjit_fe_append(l, opjit_ir_yield_box(f, l->outputs[i], box));
}

ir_type opjit_fe_output_type(const op_lowering *l, uint32_t i)
{
    return opjit_ir_type_of(l->op->outputs[i].dtype);
}

ir_ref opjit_fe_input_at(op_lowering *l, uint32_t i, ir_ref out)
{
    const fe_tensor *in = &l->op->inputs[i];
    ir_ref coordinates[OPJIT_MAX_RANK];

    if (l->f->failed)
        return 0;
    for (uint32_t d = 0; d < in->rank; d++)
        coordinates[d] = in->broadcasts && in->sizes[d] == 1 ? opjit_ir_index(l->f, 0)
                                                             : opjit_ir_coordinate(l->f, out, d);
    return opjit_ir_load(l->f, l->inputs[i], coordinates);
}

/* Rows name their own fields, so the search always ends at one. */
static uint32_t field_index(const op_lowering *l, const char *name)
{
    uint32_t i = 0;

    while (strcmp(l->op->def->fields[i].name, name) != 0)
        i++;
    return i;
}

static uint32_t field_bits(const op_lowering *l, uint32_t field)
{
    uint32_t bits;
    memcpy(&bits, (const uint8_t *)l->op->desc + l->op->def->fields[field].offset, sizeof bits);
    return bits;
}

ir_ref opjit_fe_int(op_lowering *l, const char *field)
{
    const uint32_t i = field_index(l, field);
    return l->late[i] != 0 ? opjit_ir_param(l->f, l->late[i]) : opjit_ir_index(l->f, (int32_t)field_bits(l, i));
}

ir_ref opjit_fe_float(op_lowering *l, const char *field)
{
    const uint32_t i = field_index(l, field);
    return l->late[i] != 0 ? opjit_ir_param(l->f, l->late[i]) : opjit_ir_const(l->f, IR_F32, field_bits(l, i));
}

ir_ref opjit_fe_scalar(op_lowering *l, const char *field)
{
    const uint32_t i = field_index(l, field);
    const ir_type type = opjit_ir_type_of(opjit_fe_scalar_type(l->op, i));
    return l->late[i] != 0 ? opjit_ir_param(l->f, l->late[i])
                           : opjit_ir_const(l->f, type, opjit_fe_scalar_bits(l->op, i));
}
