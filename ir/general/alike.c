/* SPDX-License-Identifier: Apache-2.0 */
/* alike.c - whether the loops for some values have the numbers that a generalization says, where they are those of its
 * samples in all else: node by node and tensor by tensor, so nothing has to be simplified first. */
#include <string.h>

#include "ir/general/finder.h"
#include "ir/general/generalizer.h"

#include "ir/core/internal.h"
#include "ir/eval/numerics.h"

uint64_t opjit_ir_shape(const ir_func *f)
{
    uint64_t hash = opjit_ir_hash(f->node_count, f->tensor_count);

    for (ir_ref r = 1; r < f->node_count; r++) {
        const ir_node *n = ir_at(f, r);
        hash = opjit_ir_hash(hash, (uint64_t)n->op << 40 | (uint64_t)n->type << 32 | n->ref);
        hash = opjit_ir_hash(hash, (uint64_t)n->count << 32 | n->flags);
        for (uint32_t i = 0; i < n->count; i++)
            hash = opjit_ir_hash(hash, ir_operand(f, r, i));
    }
    return hash;
}

/* The constant of the type that the integer makes by the rule. */
static uint64_t constant_of(ir_type type, ir_element_rule rule, int64_t value)
{
    uint64_t args[2] = { opjit_ir_element_of(type, value), opjit_ir_element_of(type, rule == IR_HALF ? 2 : 1) };

    if (type == IR_INDEX)
        return (uint64_t)value;
    if (rule == IR_INVERSE) {
        const uint64_t by = args[0];
        args[0] = args[1];
        args[1] = by;
    }
    if (rule != IR_WHOLE)
        opjit_ir_scalar(IR_DIV, type, type, args, &args[0]);
    return args[0];
}

/* A stage's immediate is a grain, which may be any. */
static bool has_node(const ir_general *g, const int64_t *values, const ir_node *own, const ir_node *other, ir_ref r)
{
    const ir_node_number *known = &g->node_numbers[r];
    uint64_t expected = own->imm;
    int64_t value;

    if (own->kind != other->kind || own->block != other->block || own->next != other->next || own->body != other->body)
        return false;
    if (own->op == IR_STAGE)
        return true;
    if (known->number != 0) {
        const ir_size_form *form = &g->numbers[known->number - 1];
        if (form->form.divisor == 0 || !opjit_ir_number_value(form, &g->space, values, &value))
            return false;
        expected = constant_of((ir_type)own->type, (ir_element_rule)known->rule, value);
    }
    return expected == other->imm;
}

static bool has_tensor(const ir_general *g, const int64_t *values, uint32_t t, const ir_tensor *other)
{
    ir_tensor own = g->shaped.tensors[t];

    if (own.role != other->role || own.type != other->type || own.rank != other->rank || own.of != other->of ||
        own.slot != other->slot || (own.data == NULL) != (other->data == NULL) ||
        !opjit_ir_general_layout(g, t, values, &own))
        return false;
    for (uint32_t d = 0; d < own.rank; d++)
        if (own.sizes[d] != other->sizes[d] || own.strides[d] != other->strides[d])
            return false;
    return own.bytes == other->bytes && own.offset == other->offset &&
           (own.data == NULL || memcmp(own.data, other->data, (size_t)own.bytes) == 0);
}

bool opjit_ir_general_has(const ir_general *g, const int64_t *values, const ir_func *sample, const ir_func *loops)
{
    bool has = loops->node_count == sample->node_count && loops->tensor_count == g->tensor_count;

    for (uint32_t t = 1; t < g->tensor_count && has; t++)
        has = has_tensor(g, values, t, &loops->tensors[t]);
    for (ir_ref r = 1; r < sample->node_count && has; r++)
        has = has_node(g, values, ir_at(sample, r), ir_at(loops, r), r);
    return has;
}
