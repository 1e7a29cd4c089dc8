/* SPDX-License-Identifier: Apache-2.0 */
/* trace_uses.c - what of a tile's operations is used, how often, and where last; what is not is dropped. */
#include "codegen/hold/trace.h"

static void count_uses(cg_trace *tr)
{
    for (uint32_t i = 0; i < tr->count; i++)
        tr->op[i].uses = 0;
    for (uint32_t i = 0; i < tr->count; i++)
        for (uint32_t k = 0; k < 3 && tr->op[i].what != CG_TRACE_DEAD; k++)
            if (tr->op[i].a[k] != CG_TRACE_NONE) {
                tr->op[tr->op[i].a[k]].uses++;
                tr->op[tr->op[i].a[k]].last = i;
            }
}

static void count_numbers(cg_trace *tr)
{
    for (uint32_t p = 0; p < CG_TRACE_PARTS; p++) {
        for (uint32_t i = 0; i < tr->numbers[p]; i++)
            tr->number[p][i].uses = 0;
        for (uint32_t i = tr->first[p]; i < tr->first[p + 1]; i++) {
            const cg_trace_op *o = &tr->op[i];
            if (!cg_trace_has_place(o) || o->place.base == CG_TRACE_ARGS)
                continue;
            tr->number[p][o->place.base].uses++;
            for (uint32_t k = 0; k < o->place.terms; k++)
                tr->number[p][o->place.term[k]].uses++;
        }
    }
}

static void drop(cg_trace *tr, uint32_t i)
{
    for (uint32_t k = 0; k < 3; k++)
        if (tr->op[i].a[k] != CG_TRACE_NONE)
            tr->op[tr->op[i].a[k]].uses--;
    tr->op[i].what = CG_TRACE_DEAD;
}

/* Registers that neither the next iteration nor what follows the loop reads are none. */
static void drop_unused(cg_trace *tr)
{
    uint64_t read = 0;
    for (uint32_t i = 0; i < tr->count; i++)
        if (tr->op[i].what == CG_TRACE_IN && tr->op[i].uses > 0)
            read |= UINT64_C(1) << tr->op[i].at;
    for (uint32_t i = tr->count; i-- > 0;) {
        const cg_trace_op *o = &tr->op[i];
        if ((o->what == CG_TRACE_OUT && !(read >> o->at & 1)) ||
            (o->what < CG_TRACE_STORE && o->what != CG_TRACE_DEAD && o->uses == 0))
            drop(tr, i);
    }
}

void opjit_cg_trace_finish(cg_trace *tr)
{
    count_uses(tr);
    drop_unused(tr);
    count_uses(tr);
    count_numbers(tr);
}
