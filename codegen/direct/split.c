/* SPDX-License-Identifier: Apache-2.0 */
/* split.c - vectors that live across calls are on the stack, as calls keep none.  Where several operations between two
 * calls, labels or jumps access one, a register of its own has the value there: what is written to it goes to the
 * stack, too, and it is loaded from there where the first of them reads it. */
#include "codegen/direct/machine.h"

/* By operation: the number of calls, labels and jumps up to it; NULL: no memory. */
static uint32_t *number_stretches(const dx_func *f)
{
    uint32_t *stretch = ARENA_ARRAY(f->arena, uint32_t, f->op_count + 1), number = 0;
    for (uint32_t i = 0; i < f->op_count && stretch; i++) {
        const uint8_t kind = f->ops[i].kind;
        number += kind == DX_CALL || kind == DX_LABEL || kind == DX_BRANCH || kind == DX_JUMP;
        stretch[i] = number;
    }
    return stretch;
}

static void rename(const dx_func *f, dx_op *o, dx_reg from, dx_reg to)
{
    dx_reg *const fields[] = { &o->dst, &o->a, &o->b, &o->c, &o->mask };
    for (uint32_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (*fields[i] && dx_root(f, *fields[i]) == from)
            *fields[i] = to;
}

/* Accesses from first to last, whose operations are in one stretch, are to a register of their own. */
static void take(dx_func *f, dx_reg r, uint32_t first, uint32_t last)
{
    const dx_reg own = opjit_dx_new(f, DX_VEC);
    if (f->refused)
        return;
    dx_virtual *v = &f->regs[r], *w = &f->regs[own];
    w->access = v->access + first;
    w->accesses = last - first + 1;
    w->weight = v->weight / v->accesses * w->accesses;
    w->start = w->access[0] >> 1;
    w->end = w->access[w->accesses - 1] >> 1;
    w->copy_of = r;
    for (uint32_t i = 0; i < w->accesses; i++)
        rename(f, &f->ops[w->access[i] >> 2], r, own);
    if (!(w->access[0] & 1))
        f->ops[w->access[0] >> 2].reloads = true;
}

/* Moves of a group are elsewhere than their accesses: they read and write the stack. */
static bool may_have(const dx_func *f, uint32_t op)
{
    return f->ops[op].kind != DX_MOVES && f->ops[op].kind != DX_NOTHING;
}

static void split(dx_func *f, const uint32_t *stretch, dx_reg r)
{
    for (uint32_t i = 0, end; i < f->regs[r].accesses && !f->refused; i = end + 1) {
        const uint32_t *access = f->regs[r].access, first = access[i] >> 2;
        for (end = i; end + 1 < f->regs[r].accesses; end++) {
            const uint32_t next = access[end + 1] >> 2;
            if (stretch[next] != stretch[first] || !may_have(f, next))
                break;
        }
        if (may_have(f, first) && access[end] >> 2 != first)
            take(f, r, i, end);
    }
}

void opjit_dx_split(dx_func *f)
{
    const uint32_t count = f->reg_count;
    uint32_t *stretch = NULL;
    for (dx_reg r = 1; r < count && !f->refused; r++) {
        const dx_virtual *v = &f->regs[r];
        if (!v->spilled || v->same || v->data || v->kind != DX_VEC) /* masks of AVX-512 stay there */
            continue;
        stretch = stretch ? stretch : number_stretches(f);
        if (stretch)
            split(f, stretch, r);
        else
            opjit_dx_refuse(f, "no memory");
    }
}

/* Of those without a register each access is one of the stack. */
void opjit_dx_unsplit(dx_func *f)
{
    for (dx_reg r = 1; r < f->reg_count; r++)
        if (f->regs[r].copy_of && f->regs[r].at < 0)
            f->regs[r].same = f->regs[r].copy_of;
}

void opjit_dx_reload(dx_writer *w, uint32_t i)
{
    const dx_op *o = &w->f->ops[i];
    const dx_reg reads[] = { o->tied ? o->dst : 0, o->a, o->b, o->c, o->mask };
    for (uint32_t k = 0; k < sizeof reads / sizeof *reads; k++) {
        const dx_virtual *v = &w->f->regs[reads[k]];
        if (!reads[k] || !v->copy_of || v->same || v->start != 2 * i)
            continue;
        const dx_spot to = opjit_dx_spot(w, reads[k]), from = opjit_dx_spot(w, v->copy_of);
        opjit_dx_move(w, DX_VEC, &to, &from);
    }
}
