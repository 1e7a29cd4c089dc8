/* SPDX-License-Identifier: Apache-2.0 */
/* join.c - copies whose two registers may be one.  A loop's variable and its next value are such registers, and so are
 * the first operand and the result of an instruction that overwrites it.  Whatever is not sure stays a copy. */
#include "codegen/direct/live.h"

enum { MOST_ACCESSES = 1024 };

static uint32_t position(uint32_t access)
{
    return access >> 1;
}

/* Whether v is accessed between two positions, ends excluded; writes: only those count. */
static bool accessed(const dx_virtual *v, uint32_t after, uint32_t before, bool writes)
{
    for (uint32_t i = 0; i < v->accesses && position(v->access[i]) < before; i++)
        if (position(v->access[i]) > after && (!writes || (v->access[i] & 1)))
            return true;
    return false;
}

/* Whether operations from one position to another run one after the other. */
static bool straight(const dx_func *f, uint32_t from, uint32_t to)
{
    enum { MOST = 4096 };
    if (to / 2 - from / 2 > MOST)
        return false;
    for (uint32_t i = from / 2 + 1; i <= to / 2; i++)
        if (f->ops[i].kind == DX_LABEL || f->ops[i].kind == DX_BRANCH || f->ops[i].kind == DX_JUMP)
            return false;
    return true;
}

/* d = s at [read, write]: s is made where d's old value is not needed any more, and while s lives, d is not written. */
static bool can_become(const dx_live *l, const dx_virtual *d, const dx_virtual *s, uint32_t read, uint32_t write)
{
    if (s->least != UINT32_MAX || opjit_dx_loop_at(l, s->start) != opjit_dx_loop_at(l, read))
        return false;
    if (accessed(s, read, UINT32_MAX, true) || accessed(d, s->start - 1, write, false))
        return false;
    if (accessed(d, write, s->end + 1, true))
        return false;
    return straight(l->f, s->start, read) || !accessed(d, write, UINT32_MAX, false);
}

/* d = s, and d is no more than another name: s is not written as long as d lives. */
static bool is_name(const dx_virtual *d, const dx_virtual *s, uint32_t write)
{
    return d->defs == 1 && d->least == UINT32_MAX && !accessed(s, write - 1, d->end + 1, true) &&
           !accessed(s, d->start - 1, write, true);
}

static void merge(dx_live *l, dx_reg into, dx_reg from)
{
    dx_virtual *a = &l->f->regs[into], *b = &l->f->regs[from];
    uint32_t *all = ARENA_ARRAY(l->f->arena, uint32_t, a->accesses + b->accesses), i = 0, k = 0, n = 0;
    if (!all) {
        opjit_dx_refuse(l->f, "no memory");
        return;
    }
    while (i < a->accesses || k < b->accesses)
        all[n++] =
            k == b->accesses || (i < a->accesses && a->access[i] <= b->access[k]) ? a->access[i++] : b->access[k++];
    a->access = all;
    a->accesses = n;
    a->defs += b->defs;
    a->weight += b->weight;
    a->least = b->least < a->least ? b->least : a->least;
    a->most = b->most > a->most ? b->most : a->most;
    a->data = 0;
    if (!a->fixed_hint && b->fixed_hint) {
        a->fixed_hint = true;
        a->hint = b->hint;
    }
    b->same = into;
    opjit_dx_interval(l, a);
}

void opjit_dx_join(dx_live *l)
{
    dx_func *f = l->f;
    for (uint32_t i = 0; i < f->op_count; i++) {
        dx_op *o = &f->ops[i];
        if ((o->kind != DX_COPY && o->kind != DX_MOVES) || o->fixed)
            continue;
        const dx_reg dst = dx_root(f, o->dst), src = dx_root(f, o->a);
        dx_virtual *d = &f->regs[dst], *s = &f->regs[src];
        const uint32_t read = 2 * (o->kind == DX_MOVES ? o->first : i);
        const uint32_t write = o->kind == DX_MOVES ? 2 * o->end + 1 : 2 * i + 1;
        if (dst != src && d->kind == s->kind && d->accesses + s->accesses <= MOST_ACCESSES) {
            if (can_become(l, d, s, read, write))
                merge(l, dst, src);
            else if (is_name(d, s, write))
                merge(l, src, dst);
            else if (!d->fixed_hint && !d->hint)
                d->hint = src;
        }
        if (o->kind == DX_COPY && dx_root(f, o->dst) == dx_root(f, o->a))
            o->kind = DX_NOTHING;
    }
}
