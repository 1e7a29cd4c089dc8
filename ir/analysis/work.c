/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - how much it takes to run a function in value form, without running it. */
#include "ir/analysis/analysis.h"

/* Of all elements, the coordinates that each update of a SCATTER goes through. */
static uint64_t own_elements(const ir_func *f, ir_ref item)
{
    const ir_tensor *t = &f->tensors[ir_at(f, item)->ref];
    uint64_t count = 1;
    for (uint32_t d = 0; d < t->rank; d++)
        count *= opjit_ir_is_own(f, item, d) ? t->sizes[d] : 1;
    return count;
}

static uint64_t plus_product(uint64_t sum, uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(sum, product, &sum) ? UINT64_MAX : sum;
}

uint64_t opjit_ir_work(const ir_func *f)
{
    uint64_t work = 0;
    for (ir_ref item = f->body; item != 0; item = ir_at(f, item)->next) {
        const ir_node *node = ir_at(f, item);
        const ir_tensor *t = &f->tensors[node->ref];
        uint64_t elements = 1, terms = 1;
        for (uint32_t d = 0; d < t->rank; d++)
            elements *= t->sizes[d];
        if (node->op == IR_SCATTER)
            work = plus_product(work, own_elements(f, item), (uint64_t)opjit_ir_updates(f, item));
        else if (node->kind != IR_KIND_NONE && opjit_ir_scanned(f, item) < 0)
            terms = (uint64_t)opjit_ir_reduced_most(f, item);
        work = plus_product(work, elements, terms + 1);
    }
    return work;
}
