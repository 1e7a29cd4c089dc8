/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - runs value form: one definition after the other, a recurrence step by step.  Part of the interpreter. */
#include "ir/core/internal.h"
#include "ir/eval/element.h"
#include "ir/eval/interpreter.h"

#include <string.h>

/* --- memory ------------------------------------------------------------------------------------------------------- */

opjit_status opjit_ir_machine_own_values(machine *m, opjit_error *error)
{
    const ir_func *f = m->f;
    m->owned = opjit_rt_allocate(f->allocator, f->tensor_count * sizeof *m->owned, 16);
    if (!m->owned)
        return opjit_rt_no_memory(error);
    memset(m->owned, 0, f->tensor_count * sizeof *m->owned);
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        if (tensor->role != IR_VALUE)
            continue;
        if (tensor->bytes <= SIZE_MAX / 2)
            m->owned[t] = opjit_rt_allocate(f->allocator, (size_t)tensor->bytes, 64);
        if (!m->owned[t])
            return opjit_rt_no_memory(error);
        memset(m->owned[t], 0, (size_t)tensor->bytes);
    }
    return OPJIT_OK;
}

/* --- definitions -------------------------------------------------------------------------------------------------- */

/* Stores the element of a boxed yield at the coordinates in its VARs. */
static void store_boxed(machine *m, ir_ref item, uint64_t bits)
{
    const ir_func *f = m->f;
    const ir_tensor *tensor = &f->tensors[ir_at(f, item)->ref];
    const memory *target = opjit_ir_machine_memory(m, ir_at(f, item)->ref);
    const uint64_t size = opjit_ir_type_size(tensor->type);
    uint64_t offset = 0;
    for (uint32_t d = 0; d < tensor->rank && !m->wrong; d++) {
        const ir_ref *box = &f->operands[ir_at(f, item)->first + 1 + tensor->rank + 3 * d];
        const uint64_t own = *machine_value(m, ir_operand(f, item, 1 + d)), step = opjit_ir_machine_eval(m, box[2]);
        const int64_t x = (int64_t)(opjit_ir_machine_eval(m, box[0]) + own * step);
        if (x < 0 || (uint64_t)x >= tensor->sizes[d]) {
            m->wrong = item;
            m->wrong_dimension = d;
            m->wrong_coordinate = x;
        }
        offset += (uint64_t)x * tensor->strides[d];
    }
    if (!m->wrong && (offset + 1) * size <= target->bytes)
        ir_write_element(target->base + offset * size, (uint32_t)size, bits);
}

/* What a state is after the first step: what the definition that feeds it was in the step before. */
static uint64_t fed(machine *m, ir_ref item)
{
    const ir_tensor *own = &m->f->tensors[ir_at(m->f, item)->ref], *from = &m->f->tensors[own->fed_by];
    uint64_t offset = 0;
    for (uint32_t d = 0; d < own->rank; d++)
        offset += (*machine_value(m, ir_operand(m->f, item, 1 + d)) - (d == 0)) * from->strides[d];
    const uint32_t size = opjit_ir_type_size(from->type);
    return ir_read_element(opjit_ir_machine_memory(m, own->fed_by)->base + offset * size, size);
}

static uint64_t value_of(machine *m, ir_ref item)
{
    const ir_func *f = m->f;
    if (f->tensors[ir_at(f, item)->ref].fed_by != 0 && *machine_value(m, ir_operand(f, item, 1)) > 0)
        return fed(m, item);
    return ir_at(f, item)->kind ? opjit_ir_machine_reduce(m, item) : opjit_ir_machine_eval(m, ir_operand(f, item, 0));
}

/* The elements with the coordinates that are set so far, which are those before `dimension`. */
static void run_definition(machine *m, ir_ref item, uint32_t dimension)
{
    const ir_func *f = m->f;
    const ir_node *node = ir_at(f, item);
    const ir_tensor *tensor = &f->tensors[node->ref];
    if (dimension == tensor->rank) {
        const uint64_t bits = value_of(m, item);
        if (node->imm && !node->kind)
            store_boxed(m, item, bits);
        else
            opjit_ir_machine_store(m, item, bits);
        return;
    }
    uint64_t size = tensor->sizes[dimension];
    if (node->imm && !node->kind)
        size = opjit_ir_machine_eval(m, ir_operand(f, item, 1 + tensor->rank + 3 * dimension + 1));
    for (uint64_t i = 0; i < size && !m->wrong; i++) {
        *machine_value(m, ir_operand(f, item, 1 + dimension)) = i;
        run_definition(m, item, dimension + 1);
    }
}

/* All definitions of a recurrence, step by step. */
static void run_recurrence(machine *m, ir_ref first, ir_ref last)
{
    const ir_func *f = m->f;
    const uint64_t steps = f->tensors[ir_at(f, first)->ref].sizes[0];
    for (uint64_t t = 0; t < steps && !m->wrong; t++)
        for (ir_ref item = first; !m->wrong; item = ir_at(f, item)->next) {
            *machine_value(m, ir_operand(f, item, 1)) = t;
            run_definition(m, item, 1);
            if (item == last)
                break;
        }
}

void opjit_ir_machine_run_values(machine *m)
{
    const ir_func *f = m->f;
    for (ir_ref item = f->body; item && !m->wrong; item = ir_at(f, item)->next) {
        const ir_ref last = opjit_ir_recurrence_last(f, item);
        if (last == 0)
            run_definition(m, item, 0);
        else
            run_recurrence(m, item, last);
        item = last == 0 ? item : last;
    }
}
