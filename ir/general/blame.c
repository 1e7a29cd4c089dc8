/* SPDX-License-Identifier: Apache-2.0 */
/* blame.c - which of the graph's nodes a refusal is about: whose loops differ between two sizes, or have a number that
 * nothing is known of; and sizes as a text. */
#include "ir/general/finder.h"

#include "ir/core/internal.h"

#include <stdio.h>

/* The node that the stage stores something of, or the first one behind it: a stage without one prepares what others
 * read. */
static uint32_t origin_from(const ir_func *f, uint32_t stage)
{
    for (; stage < f->section_count; stage++)
        for (ir_ref r = f->sections[stage].first; r < f->sections[stage].end; r++) {
            const bool stores = ir_at(f, r)->op == IR_STORE;
            const uint32_t origin = stores ? f->tensors[opjit_ir_root(f, ir_at(f, r)->ref)].origin : 0;
            if (origin != 0)
                return origin;
        }
    return 0;
}

uint32_t opjit_ir_blame_node(const ir_func *f, ir_ref r)
{
    for (uint32_t s = 0; s < f->section_count; s++)
        if (r < f->sections[s].end)
            return origin_from(f, s);
    return 0;
}

uint32_t opjit_ir_blame_tensor(const ir_func *f, uint32_t t)
{
    const uint32_t root = opjit_ir_root(f, t);

    if (f->tensors[root].origin != 0)
        return f->tensors[root].origin;
    for (ir_ref r = 1; r < f->node_count; r++) {
        const ir_node *n = ir_at(f, r);
        if ((n->op == IR_LOAD || n->op == IR_STORE) && opjit_ir_root(f, n->ref) == root)
            return opjit_ir_blame_node(f, r);
    }
    return 0;
}

static bool same_stage(const ir_func *a, const ir_func *b, uint32_t stage)
{
    const ir_section *x = &a->sections[stage], *y = &b->sections[stage];
    bool same = x->end - x->first == y->end - y->first;

    for (uint32_t k = 0; same && k < x->end - x->first; k++) {
        const ir_node *n = ir_at(a, x->first + k), *m = ir_at(b, y->first + k);
        same = n->op == m->op && n->type == m->type && n->count == m->count && n->flags == m->flags;
    }
    return same;
}

uint32_t opjit_ir_blame_loops(const ir_func *a, const ir_func *b)
{
    uint32_t stage = 0;

    while (stage < a->section_count && stage < b->section_count && same_stage(a, b, stage))
        stage++;
    return stage == a->section_count && stage == b->section_count ? 0 : origin_from(a, stage);
}

size_text opjit_ir_size_text(const ir_dim *dims, const int64_t *values, uint32_t count)
{
    size_text out = { "" };
    size_t used = 0;

    for (uint32_t d = 0; d < count && used < sizeof out.text; d++)
        used += (size_t)snprintf(out.text + used, sizeof out.text - used, "%s%.20s = %lld", d == 0 ? "" : ", ",
                                 dims[d].name, (long long)values[d]);
    return out;
}
