/* SPDX-License-Identifier: Apache-2.0 */
/* read_ahead.c - stores to memory that the first cache does not hold: each line is read a few lines before it is
 * stored. Lines that stores miss come one after the other, and a store that hits, such as that of a loop's variable
 * to the stack, waits for all of them; reads go on.  Nothing is done with what is read, which is the tensor's own.
 * A read takes no longer to compile than a store; a `prefetch` takes as long as 30.  Nothing is read from a page
 * before it is stored to: memory that nobody has touched yet would be mapped twice, which takes twice as long as
 * all else. Measured on Emerald Rapids, where rounds of 16 lines are then as fast as any; Zen has two streams
 * instead (two_streams.c). */
#include "codegen/stores/pieces.h"

enum { PAGE = 4096 };

/* The most bytes that the loop stores. */
static uint64_t most_stored(const cg_facts *is, const ir_tensor *t)
{
    return (uint64_t)is->most * opjit_ir_type_size(t->type);
}

/* In place, what the loop loads has been read already.  There, the memory after the row may not be the kernel's: the
 * line one row ahead is read, if the stores of two rows fit into the first cache together. */
uint32_t opjit_cg_find_read_ahead(const cg_func *f, const cg_facts *is)
{
    const uint32_t distance = f->traits->read_ahead;
    if (is->store.value == 0 || distance == 0 || f->streams || is->in_block)
        return 0;
    const ir_tensor *t = &f->ir->tensors[is->store.tensor];
    const cg_info *value = &f->info[is->store.value];
    if (t->role != IR_OUT || t->offset != 0 || t->bytes <= f->target->l1 || t->bytes <= 2 * PAGE ||
        value->weight > CG_READ_WEIGHT || value->stays ||
        (t->alias != 0 && (value->loads || most_stored(is, t) < CG_READ_LEAST)))
        return 0;
    const uint64_t row = t->rank > 1 ? t->strides[t->rank - 2] * opjit_ir_type_size(t->type) : 0;
    const bool by_row = t->alias != 0 && row > distance && most_stored(is, t) <= f->target->l1 / 4;
    return by_row ? (uint32_t)row : distance;
}

uint32_t opjit_cg_read_ahead_copies(const cg_facts *is)
{
    return CG_READ_GROUP / (is->lanes * is->bits / 8);
}
