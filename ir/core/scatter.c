/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - SCATTER, the definition whose elements are changed by updates at places that may come from data: its
 * builder, and where its parts are among its operands. */
#include "ir/core/internal.h"

/* Operands: value, a VAR per dimension, VAR of the update, initial value, a place per dimension, number of updates. */
static uint32_t rank_of(const ir_func *f, ir_ref scatter) { return f->tensors[ir_at(f, scatter)->ref].rank; }

static void set(ir_func *f, ir_ref scatter, uint32_t operand, ir_ref value)
{
    if (scatter != 0)
        f->operands[f->nodes[scatter].first + operand] = value;
}

ir_ref opjit_ir_scatter(ir_func *f, uint32_t tensor, ir_kind kind, uint64_t size)
{
    const uint32_t rank = f->tensors[tensor].rank;
    const ir_node node = { .op = IR_SCATTER, .kind = (uint8_t)kind, .ref = tensor };
    const ir_ref scatter = opjit_ir_node_new(f, &node, 4 + 2 * rank, NULL);
    for (uint32_t d = 0; scatter != 0 && d <= rank; d++) {
        const ir_ref var = opjit_ir_var_new(f, scatter, d);
        set(f, scatter, 1 + d, var);
        if (d < rank)
            set(f, scatter, 3 + rank + d, var);
    }
    const ir_ref count = f->failed ? 0 : opjit_ir_index(f, (int64_t)size);
    if (f->failed)
        return 0;
    set(f, scatter, 3 + 2 * rank, count);
    return scatter;
}

ir_ref opjit_ir_update(const ir_func *f, ir_ref scatter)
{
    return scatter != 0 ? ir_operand(f, scatter, 1 + rank_of(f, scatter)) : 0;
}

void opjit_ir_set_initial(ir_func *f, ir_ref scatter, ir_ref value)
{
    if (scatter != 0)
        set(f, scatter, 2 + rank_of(f, scatter), value);
}

void opjit_ir_set_place(ir_func *f, ir_ref scatter, uint32_t dimension, ir_ref place)
{
    if (scatter != 0)
        set(f, scatter, 3 + rank_of(f, scatter) + dimension, place);
}

ir_ref opjit_ir_initial(const ir_func *f, ir_ref scatter)
{
    return ir_operand(f, scatter, 2 + rank_of(f, scatter));
}

ir_ref opjit_ir_place(const ir_func *f, ir_ref scatter, uint32_t dimension)
{
    return ir_operand(f, scatter, 3 + rank_of(f, scatter) + dimension);
}

bool opjit_ir_is_own(const ir_func *f, ir_ref scatter, uint32_t dimension)
{
    return opjit_ir_place(f, scatter, dimension) == opjit_ir_coordinate(f, scatter, dimension);
}

int64_t opjit_ir_updates(const ir_func *f, ir_ref scatter)
{
    return ir_index_value(f, ir_operand(f, scatter, ir_at(f, scatter)->count - 1));
}
