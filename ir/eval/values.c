/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - runs value form: each definition's elements, one after the other, into memory of its own. */
#include "ir/eval/machine.h"

#include "ir/eval/element.h"
#include "ir/eval/numerics.h"

#include <string.h>

/* Stores the element of a boxed yield at the coordinates in its VARs. */
static void store_boxed(machine *m, ir_ref item, uint64_t bits)
{
    const ir_func *f = m->f;
    const ir_tensor *tensor = &f->tensors[ir_at(f, item)->ref];
    const memory *target = opjit_ir_m_memory(m, ir_at(f, item)->ref);
    const uint64_t size = opjit_ir_type_size(tensor->type);
    uint64_t offset = 0;
    for (uint32_t d = 0; d < tensor->rank && !m->wrong; d++) {
        const ir_ref *box = &f->operands[ir_at(f, item)->first + 1 + tensor->rank + 3 * d];
        const uint64_t i = *value_of(m, ir_operand(f, item, 1 + d));
        const int64_t x = (int64_t)(opjit_ir_m_eval(m, box[0]) + i * opjit_ir_m_eval(m, box[2]));
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

/* The value of a DEF that reduces, at the coordinates in its variables. */
static uint64_t reduced(machine *m, ir_ref item)
{
    const ir_ref var = opjit_ir_reduced(m->f, item);
    const int64_t size = (int64_t)opjit_ir_m_eval(m, ir_operand(m->f, item, ir_at(m->f, item)->count - 1));
    opjit_ir_m_start(m, item);
    for (m->innermost = 0; m->innermost < size && !m->wrong; m->innermost++) {
        *value_of(m, var) = (uint64_t)m->innermost;
        opjit_ir_m_update(m, item, ir_operand(m->f, item, 0), var);
    }
    return opjit_ir_m_get(m, ir_at(m->f, item), item);
}

/* What a state is after the first step: what the definition that feeds it was in the step before. */
static uint64_t fed(machine *m, ir_ref item)
{
    const ir_tensor *own = &m->f->tensors[ir_at(m->f, item)->ref], *from = &m->f->tensors[own->fed_by];
    const uint32_t size = opjit_ir_type_size(from->type);
    uint64_t offset = 0;
    for (uint32_t d = 0; d < own->rank; d++)
        offset += (*value_of(m, ir_operand(m->f, item, 1 + d)) - (d == 0)) * from->strides[d];
    return ir_read_element(opjit_ir_m_memory(m, own->fed_by)->base + offset * size, size);
}

static uint64_t element_of(machine *m, ir_ref item)
{
    const ir_func *f = m->f;
    if (f->tensors[ir_at(f, item)->ref].fed_by != 0 && *value_of(m, ir_operand(f, item, 1)) > 0)
        return fed(m, item);
    return ir_at(f, item)->kind ? reduced(m, item) : opjit_ir_m_eval(m, ir_operand(f, item, 0));
}

/* One pass along the dimension that is scanned, at the other coordinates: each element is one value on from its
 * neighbour. */
static void scan(machine *m, ir_ref item, uint32_t along)
{
    const ir_func *f = m->f;
    const ir_ref var = opjit_ir_reduced(f, item);
    const int64_t size = (int64_t)f->tensors[ir_at(f, item)->ref].sizes[along];
    *value_of(m, ir_operand(f, item, 1 + along)) = 0;
    const ir_ref most = ir_operand(f, item, ir_at(f, item)->count - 1);
    const int64_t ahead = (int64_t)opjit_ir_m_eval(m, most); /* 0: exclusive */
    opjit_ir_m_start(m, item);
    m->innermost = 0;
    for (int64_t i = 0; i < size && !m->wrong; i++) {
        for (; m->innermost < i + ahead && !m->wrong; m->innermost++) {
            *value_of(m, var) = (uint64_t)m->innermost;
            opjit_ir_m_update(m, item, ir_operand(f, item, 0), var);
        }
        *value_of(m, ir_operand(f, item, 1 + along)) = (uint64_t)i;
        opjit_ir_m_store(m, item, 1, opjit_ir_m_get(m, ir_at(f, item), item));
    }
}

/* The elements with the coordinates that are set so far, which are those before `dimension`. */
static void run_definition(machine *m, ir_ref item, uint32_t dimension)
{
    const ir_func *f = m->f;
    const ir_node *node = ir_at(f, item);
    const ir_tensor *tensor = &f->tensors[node->ref];
    const int32_t along = opjit_ir_scanned(f, item);
    if (dimension == tensor->rank && along >= 0) {
        scan(m, item, (uint32_t)along);
        return;
    }
    if (dimension == tensor->rank) {
        const uint64_t bits = element_of(m, item);
        if (node->imm && !node->kind)
            store_boxed(m, item, bits);
        else
            opjit_ir_m_store(m, item, 1, bits);
        return;
    }
    const uint64_t size =
        node->imm && !node->kind ? opjit_ir_m_eval(m, ir_operand(f, item, 1 + tensor->rank + 3 * dimension + 1))
        : along == (int32_t)dimension ? 1
                                      : tensor->sizes[dimension];
    for (uint64_t i = 0; i < size && !m->wrong; i++) {
        *value_of(m, ir_operand(f, item, 1 + dimension)) = i;
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
            *value_of(m, ir_operand(f, item, 1)) = t;
            run_definition(m, item, 1);
            if (item == last)
                break;
        }
}

/* --- scatters ----------------------------------------------------------------------------------------------------- */

static void run_initial(machine *m, ir_ref item, uint32_t dimension)
{
    const ir_tensor *tensor = &m->f->tensors[ir_at(m->f, item)->ref];
    if (dimension == tensor->rank) {
        opjit_ir_m_store(m, item, 1, opjit_ir_m_eval(m, opjit_ir_initial(m->f, item)));
        return;
    }
    for (uint64_t i = 0; i < tensor->sizes[dimension] && !m->wrong; i++) {
        *value_of(m, ir_operand(m->f, item, 1 + dimension)) = i;
        run_initial(m, item, dimension + 1);
    }
}

/* The update whose number and own coordinates are in the variables. */
static void run_update(machine *m, ir_ref item)
{
    const ir_func *f = m->f;
    const ir_node *node = ir_at(f, item);
    const ir_tensor *tensor = &f->tensors[node->ref];
    const uint32_t size = opjit_ir_type_size(tensor->type);
    uint64_t offset = 0, args[2], out;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        const int64_t x = (int64_t)opjit_ir_m_eval(m, opjit_ir_place(f, item, d));
        if (m->wrong || x < 0 || (uint64_t)x >= tensor->sizes[d])
            return;
        offset += (uint64_t)x * tensor->strides[d];
    }
    uint8_t *const at = opjit_ir_m_memory(m, node->ref)->base + offset * size; /* the layout's span was checked */
    out = opjit_ir_m_eval(m, ir_operand(f, item, 0));
    if (node->kind != IR_KIND_NONE) {
        args[0] = ir_read_element(at, size);
        args[1] = out;
        opjit_ir_scalar(ir_kind_op((ir_kind)node->kind), tensor->type, tensor->type, args, &out);
    }
    if (!m->wrong)
        ir_write_element(at, size, out);
}

/* All updates, once for each of the coordinates that are their own places. */
static void run_updates(machine *m, ir_ref item, uint32_t dimension)
{
    const ir_func *f = m->f;
    const ir_tensor *tensor = &f->tensors[ir_at(f, item)->ref];
    const bool last = dimension == tensor->rank;
    const uint64_t count = last                                  ? (uint64_t)opjit_ir_updates(f, item)
                           : opjit_ir_is_own(f, item, dimension) ? tensor->sizes[dimension]
                                                                 : 1;
    for (uint64_t i = 0; i < count && !m->wrong; i++) {
        *value_of(m, ir_operand(f, item, 1 + dimension)) = i;
        if (last)
            run_update(m, item);
        else
            run_updates(m, item, dimension + 1);
    }
}

void opjit_ir_m_run_values(machine *m)
{
    for (ir_ref item = m->f->body; item && !m->wrong; item = ir_at(m->f, item)->next) {
        const ir_ref last = opjit_ir_recurrence_last(m->f, item);
        if (last != 0) {
            run_recurrence(m, item, last);
            item = last;
            continue;
        }
        if (ir_at(m->f, item)->op != IR_SCATTER) {
            run_definition(m, item, 0);
            continue;
        }
        run_initial(m, item, 0);
        if (!m->wrong)
            run_updates(m, item, 0);
    }
}

/* Value form: allocates memory for the definitions. */
opjit_status opjit_ir_m_own_values(machine *m, opjit_error *error)
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
