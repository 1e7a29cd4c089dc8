/* SPDX-License-Identifier: Apache-2.0 */
/* recurrence.c - V21: the definitions of a recurrence have as many steps as each other, read one another at their own
 * step, and feed states of their own type and sizes. */
#include "ir/verify/verifier.h"

#include <string.h>

#define FAIL(rule, node, ...) return opjit_ir_verify_fail(v, rule, node, __VA_ARGS__)

typedef struct recurrence {
    ir_ref first, last;
    uint32_t *of; /* by tensor: `first` of the recurrence that its definition belongs to */
} recurrence;

/* Members read each other at their own step, and states read none. */
static opjit_status check_member_reads(const verifier *v, const recurrence *r, ir_ref item)
{
    ir_func *f = v->f;
    const ir_reach seen = opjit_ir_reach_one(f, item);
    if (seen.nodes == NULL)
        return opjit_rt_no_memory(v->error);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref load = seen.nodes[k];
        if (ir_at(f, load)->op != IR_LOAD || r->of[opjit_ir_root(f, ir_at(f, load)->ref)] != r->first)
            continue;
        if (f->tensors[ir_at(f, load)->ref].role == IR_VIEW || f->tensors[ir_at(f, item)->ref].fed_by != 0 ||
            (f->tensors[ir_at(f, item)->ref].sizes[0] > 1 &&
             ir_operand(f, load, 0) != opjit_ir_coordinate(f, item, 0)))
            FAIL(21, load, "a def of a recurrence reads another one at its own step alone, and a state none");
    }
    return OPJIT_OK;
}

static opjit_status check_member(const verifier *v, const recurrence *r, ir_ref item)
{
    const ir_func *f = v->f;
    const ir_tensor *t = &f->tensors[ir_at(f, item)->ref], *first = &f->tensors[ir_at(f, r->first)->ref];
    if (ir_at(f, item)->op != IR_DEF || opjit_ir_scanned(f, item) >= 0 || opjit_ir_is_counted(f, item) || t->rank < 2 ||
        t->sizes[0] != first->sizes[0])
        FAIL(21, item,
             "an item of a recurrence is a def, no scan or of a counted length, of as many steps as the others");
    if (t->feeds == 0)
        return OPJIT_OK;
    const ir_tensor *state = &f->tensors[t->feeds];
    if (t->fed_by != 0 || r->of[t->feeds] != r->first || state->type != t->type || state->rank != t->rank ||
        memcmp(state->sizes, t->sizes, sizeof t->sizes) != 0)
        FAIL(21, item, "it feeds no earlier state of its recurrence, type and sizes");
    return OPJIT_OK;
}

static opjit_status check_recurrence(const verifier *v, recurrence *r)
{
    const ir_func *f = v->f;
    for (ir_ref s = r->first;; s = ir_at(f, s)->next) {
        const rt_arena_mark mark = rt_arena_position(&v->f->scratch);
        TRY(check_member(v, r, s));
        r->of[ir_at(f, s)->ref] = r->first;
        TRY(check_member_reads(v, r, s));
        opjit_rt_arena_rewind(&v->f->scratch, mark);
        if (s == r->last)
            return OPJIT_OK;
    }
}

opjit_status opjit_ir_verify_recurrences(const verifier *v)
{
    ir_func *f = v->f;
    recurrence r = { .of = ARENA_ARRAY(&f->arena, uint32_t, f->tensor_count) };
    if (r.of == NULL)
        return opjit_rt_no_memory(v->error);
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next) {
        const ir_tensor *t = &f->tensors[ir_at(f, s)->ref];
        if (ir_at(f, s)->op != IR_DEF || (t->feeds == 0 && t->fed_by == 0))
            continue;
        r.first = s;
        r.last = opjit_ir_recurrence_last(f, s);
        if (t->fed_by == 0 || r.last == 0)
            FAIL(21, s, "a state is fed by a def behind it, and what feeds one is behind it");
        TRY(check_recurrence(v, &r));
        s = r.last;
    }
    return OPJIT_OK;
}
