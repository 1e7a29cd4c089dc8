/* SPDX-License-Identifier: Apache-2.0 */
/* registers.c - a register or a place on the stack for each interval: in the order of their starts, each gets a free
 * register, or that of the one that is used least for its length. */
#include "codegen/direct/machine.h"

#include <stdlib.h>

static const uint8_t integers[] = { X86_DI, X86_SI, X86_DX, X86_CX, 8, 9, X86_BX, 12, 13, 14, 15 };

enum { IN_PLACE = 2 /* instructions that read a constant in memory, in place of loading it first */ };

typedef struct pool {
    dx_func *f;
    dx_reg holds[DX_CLASSES][DX_MOST_REGISTERS];
    uint32_t *calls, call_count; /* positions */
} pool;

static uint32_t count_of(const dx_func *f, dx_class kind)
{
    const uint32_t vectors = (f->wide ? 32 : 16) - DX_SCRATCH;
    return kind == DX_INT ? sizeof integers : kind == DX_VEC ? vectors : DX_MASK_SCRATCH - 1;
}

/* The i-th to be given: of vectors short encodings first. */
static uint32_t register_of(dx_class kind, uint32_t i)
{
    return kind == DX_INT ? integers[i] : kind == DX_VEC ? i : i + 1;
}

static bool is_kept_by_calls(dx_class kind, uint32_t reg)
{
    return kind == DX_INT && (reg == X86_BX || reg >= 12);
}

static void spill(dx_virtual *v)
{
    v->spilled = true;
    v->at = -1;
}

/* Whether a weighs less for its length than b. */
static bool is_lighter(const dx_virtual *a, const dx_virtual *b)
{
    const uint64_t x = a->data ? a->weight / 2 : a->weight, y = b->data ? b->weight / 2 : b->weight;
    return (double)x * (double)(b->end - b->start + 1) < (double)y * (double)(a->end - a->start + 1);
}

/* Whether a constant is no more than the last operand of a few instructions, which read it where it lies. */
static bool is_read_in_place(const dx_func *f, dx_reg r)
{
    const dx_virtual *v = &f->regs[r];
    if (!v->data || v->accesses > 1 + IN_PLACE)
        return false;
    const dx_op *load = &f->ops[v->access[0] >> 2];
    for (uint32_t i = 1; i < v->accesses; i++) {
        const dx_op *o = &f->ops[v->access[i] >> 2];
        if (o->kind != DX_VECTOR || o->mem || o->bytes > load->bytes || !opjit_dx_may_read_memory(f, o) ||
            dx_root(f, o->b) != r || (o->a && dx_root(f, o->a) == r) || (o->mask && dx_root(f, o->mask) == r))
            return false;
    }
    return true;
}

static bool is_free(const pool *p, dx_class kind, uint32_t reg, uint32_t start)
{
    const dx_reg held = p->holds[kind][reg];
    return !held || p->f->regs[held].end < start || p->f->regs[held].spilled;
}

static bool may_have(const dx_virtual *v, uint32_t reg)
{
    return !v->crosses || is_kept_by_calls((dx_class)v->kind, reg);
}

static int hinted(const pool *p, const dx_virtual *v)
{
    const dx_func *f = p->f;
    if (v->fixed_hint)
        return (int)v->hint;
    return v->hint ? f->regs[dx_root(f, v->hint)].at : -1;
}

static void give(pool *p, dx_reg r)
{
    dx_func *f = p->f;
    dx_virtual *v = &f->regs[r];
    const dx_class kind = (dx_class)v->kind;
    const uint32_t count = count_of(f, kind);
    int best = -1, lightest = -1;
    const int hint = hinted(p, v);
    for (uint32_t i = 0; i < count && (best < 0 || (hint >= 0 && best != hint)); i++) {
        const uint32_t reg = register_of(kind, i);
        if (!may_have(v, reg))
            continue;
        if (is_free(p, kind, reg, v->start)) {
            if (best < 0 || (int)reg == hint)
                best = (int)reg;
            continue;
        }
        dx_virtual *other = &f->regs[p->holds[kind][reg]];
        if (lightest < 0 || is_lighter(other, &f->regs[p->holds[kind][lightest]]))
            lightest = (int)reg;
    }
    if (best < 0 && lightest >= 0 && is_lighter(&f->regs[p->holds[kind][lightest]], v)) {
        spill(&f->regs[p->holds[kind][lightest]]);
        best = lightest;
    }
    if (best < 0) {
        spill(v);
        return;
    }
    v->at = (int8_t)best;
    p->holds[kind][best] = r;
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* The registers by the starts of their intervals: counted, so that time is linear. */
static dx_reg *in_order(dx_func *f, uint32_t *out_count)
{
    const uint32_t positions = 2 * f->op_count + 2;
    uint32_t *first = ARENA_ARRAY(f->arena, uint32_t, positions + 1), count = 0;
    dx_reg *order = ARENA_ARRAY(f->arena, dx_reg, f->reg_count + 1);
    if (!first || !order)
        return NULL;
    for (dx_reg r = 1; r < f->reg_count; r++)
        if (!f->regs[r].same && f->regs[r].accesses > 0) {
            first[f->regs[r].start + 1]++;
            count++;
        }
    for (uint32_t i = 0; i < positions; i++)
        first[i + 1] += first[i];
    for (dx_reg r = 1; r < f->reg_count; r++)
        if (!f->regs[r].same && f->regs[r].accesses > 0)
            order[first[f->regs[r].start]++] = r;
    *out_count = count;
    return order;
}

static bool find_calls(pool *p)
{
    const dx_func *f = p->f;
    p->calls = ARENA_ARRAY(f->arena, uint32_t, f->op_count + 1);
    for (uint32_t i = 0; i < f->op_count && p->calls; i++)
        if (f->ops[i].kind == DX_CALL)
            p->calls[p->call_count++] = 2 * i;
    return p->calls != NULL;
}

/* Whether a call lies inside the interval. */
static bool crosses(const pool *p, const dx_virtual *v)
{
    uint32_t low = 0, high = p->call_count;
    while (low < high) { /* the first call behind the start */
        const uint32_t middle = low + (high - low) / 2;
        if (p->calls[middle] > v->start)
            high = middle;
        else
            low = middle + 1;
    }
    return low < p->call_count && p->calls[low] < v->end;
}

static void spill_across_calls(pool *p)
{
    dx_func *f = p->f;
    for (dx_reg r = 1; r < f->reg_count; r++) {
        dx_virtual *v = &f->regs[r];
        v->crosses = !v->same && v->accesses > 0 && crosses(p, v);
        if (v->crosses && v->kind != DX_INT)
            spill(v);
    }
    opjit_dx_split(f);
}

static void place_spilled(dx_func *f)
{
    const uint32_t vector = f->bytes;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (dx_reg r = 1; r < f->reg_count; r++) {
            dx_virtual *v = &f->regs[r];
            if (!v->spilled || v->data || v->same || (v->kind == DX_VEC) != (pass == 0))
                continue;
            const uint32_t size = v->kind == DX_VEC ? vector : 8;
            f->frame = (f->frame + size - 1) / size * size;
            v->slot = f->frame;
            f->frame += size;
        }
}

void opjit_dx_allocate(dx_func *f)
{
    pool p = { .f = f };
    uint32_t count = 0;
    if (find_calls(&p) && p.call_count > 0)
        spill_across_calls(&p);
    dx_reg *order = in_order(f, &count);
    if (!order || !p.calls) {
        opjit_dx_refuse(f, "no memory");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        dx_virtual *v = &f->regs[order[i]];
        if (v->spilled || is_read_in_place(f, order[i]))
            spill(v);
        else
            give(&p, order[i]);
    }
    opjit_dx_unsplit(f);
    place_spilled(f);
}
