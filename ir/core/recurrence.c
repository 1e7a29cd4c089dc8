/* SPDX-License-Identifier: Apache-2.0 */
/* recurrence.c - definitions that are made step by step: which feeds which state, and where the last of them is. */
#include "ir/core/internal.h"

void opjit_ir_feed(ir_func *f, ir_ref feeder, ir_ref state)
{
    if (f->failed || feeder == 0 || state == 0)
        return;
    f->tensors[ir_at(f, feeder)->ref].feeds = ir_at(f, state)->ref;
    f->tensors[ir_at(f, state)->ref].fed_by = ir_at(f, feeder)->ref;
}

ir_ref opjit_ir_recurrence_last(const ir_func *f, ir_ref first)
{
    uint32_t open = 0; /* states that are not fed yet */
    for (ir_ref s = first; s != 0; s = ir_at(f, s)->next) {
        const ir_tensor *t = &f->tensors[ir_at(f, s)->ref];
        if (ir_at(f, s)->op == IR_DEF && t->fed_by != 0)
            open++;
        else if (ir_at(f, s)->op == IR_DEF && t->feeds != 0)
            open--;
        if (open == 0)
            return s == first ? 0 : s;
    }
    return 0;
}
