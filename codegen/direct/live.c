/* SPDX-License-Identifier: Apache-2.0 */
/* live.c - from where to where a register holds a value: operations that nothing needs go away, then each register has
 * one interval of positions, which spans every loop that it lives around. */
#include "codegen/direct/live.h"

#include <string.h>

/* --- what operations read and write ------------------------------------------------------------------------------- */

enum { DX_READS = 6 };

/* Registers that an operation reads, except for one that it writes, too.  Without jumps, as each register is one that
 * some operations have, and others have not. */
static inline uint32_t reads_of(const dx_func *f, const dx_op *o, dx_reg out[DX_READS])
{
    const dx_reg own[] = { o->a, o->b, o->c, o->mask };
    uint32_t count = 0;
    for (uint32_t i = 0; i < sizeof own / sizeof *own; i++) {
        out[count] = own[i];
        count += own[i] != 0;
    }
    if (o->mem) {
        const dx_mem *const mem = &f->mems[o->mem - 1];
        out[count] = mem->base;
        count += mem->base != 0;
        out[count] = mem->index;
        count += mem->index != 0;
    }
    return count;
}

static bool has_effect(const dx_op *o)
{
    switch (o->kind) {
    case DX_PUT:
    case DX_STORE:
    case DX_BRANCH:
    case DX_JUMP:
    case DX_LABEL:
    case DX_CALL:
    case DX_RETURN:
    case DX_FETCH:
    case DX_FENCE: return true;
    case DX_MOVES: return (o->fixed & DX_TO_FIXED) != 0;
    default: return false;
    }
}

/* Marks the groups of moves, which are read all before any is written. */
static void find_groups(dx_func *f)
{
    for (uint32_t i = 0; i < f->op_count; i++) {
        uint32_t end = i;
        if (f->ops[i].kind != DX_MOVES)
            continue;
        while (!f->ops[end].last)
            end++;
        for (uint32_t k = i; k <= end; k++) {
            f->ops[k].first = i;
            f->ops[k].end = end;
        }
        i = end;
    }
}

/* Counts reads in `accesses`.  Backwards, so that what only dead operations read is dead, too. */
static void drop_dead(dx_func *f)
{
    dx_reg reads[DX_READS];
    for (uint32_t i = 0; i < f->op_count; i++) {
        const uint32_t count = reads_of(f, &f->ops[i], reads);
        for (uint32_t k = 0; k < count; k++)
            f->regs[reads[k]].accesses++;
    }
    for (uint32_t i = f->op_count; i-- > 0;) {
        dx_op *o = &f->ops[i];
        if (has_effect(o) || (o->dst && f->regs[o->dst].accesses > 0))
            continue;
        const uint32_t count = reads_of(f, o, reads);
        for (uint32_t k = 0; k < count; k++)
            f->regs[reads[k]].accesses--;
        o->kind = DX_NOTHING;
    }
}

/* --- positions ---------------------------------------------------------------------------------------------------- */

static uint32_t read_position(const dx_op *o, uint32_t i)
{
    return 2 * (o->kind == DX_MOVES ? o->first : i);
}

static uint32_t write_position(const dx_op *o, uint32_t i)
{
    return o->kind == DX_MOVES ? 2 * o->end + 1 : 2 * i + !o->early;
}

/* The innermost loop of a position, + 1. */
uint32_t opjit_dx_loop_at(const dx_live *l, uint32_t position)
{
    const uint32_t op = position / 2;
    return op < l->f->op_count ? l->loop[op] : 0;
}

static void note(dx_live *l, dx_reg reg, uint32_t position, bool write)
{
    dx_virtual *v = &l->f->regs[reg];
    v->access[v->accesses++] = position << 1 | write;
    v->defs += write;
    const uint32_t loop = opjit_dx_loop_at(l, position);
    const uint32_t depth = loop ? l->f->loops[loop - 1].depth : 0;
    v->weight += (uint64_t)1 << (depth < 8 ? 3 * depth : 24);
}

static void note_all(dx_live *l)
{
    dx_func *f = l->f;
    dx_reg reads[DX_READS];
    for (uint32_t i = 0; i < f->op_count; i++) {
        const dx_op *o = &f->ops[i];
        if (o->kind == DX_NOTHING)
            continue;
        const uint32_t reading = reads_of(f, o, reads);
        for (uint32_t k = 0; k < reading; k++)
            note(l, reads[k], read_position(o, i), false);
        if (o->dst && o->tied)
            note(l, o->dst, read_position(o, i), false);
        if (o->dst)
            note(l, o->dst, write_position(o, i), true);
    }
}

static int by_position(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

/* Groups of moves read earlier and write later than their neighbours: their accesses are put in order. */
static void sort(dx_virtual *v)
{
    for (uint32_t i = 1; i < v->accesses; i++) {
        const uint32_t x = v->access[i];
        uint32_t k = i;
        for (; k > 0 && by_position(v->access[k - 1], x) > 0; k--)
            v->access[k] = v->access[k - 1];
        v->access[k] = x;
    }
}

static void find_accesses(dx_live *l)
{
    dx_func *f = l->f;
    uint64_t total = 0;
    for (uint32_t i = 0; i < f->op_count; i++) /* reads are counted */
        if (f->ops[i].kind != DX_NOTHING && f->ops[i].dst)
            f->regs[f->ops[i].dst].accesses += 1 + (f->ops[i].tied != 0);
    for (dx_reg r = 1; r < f->reg_count; r++)
        total += f->regs[r].accesses;
    uint32_t *all = ARENA_ARRAY(f->arena, uint32_t, total + 1);
    if (!all || total > UINT32_MAX / 4) {
        opjit_dx_refuse(f, "no memory");
        return;
    }
    for (dx_reg r = 1; r < f->reg_count; r++) {
        f->regs[r].access = all;
        all += f->regs[r].accesses;
        f->regs[r].accesses = 0;
    }
    note_all(l);
    for (dx_reg r = 1; r < f->reg_count; r++)
        sort(&f->regs[r]);
}

/* --- intervals ---------------------------------------------------------------------------------------------------- */

void opjit_dx_interval(const dx_live *l, dx_virtual *v)
{
    const dx_func *f = l->f;
    if (v->accesses == 0) {
        v->start = v->end = 0;
        return;
    }
    v->start = v->access[0] >> 1 < v->least ? v->access[0] >> 1 : v->least;
    v->end = v->access[v->accesses - 1] >> 1 > v->most ? v->access[v->accesses - 1] >> 1 : v->most;
    for (uint32_t i = 0; i < v->accesses; i++) {
        uint32_t loop = opjit_dx_loop_at(l, v->access[i] >> 1);
        for (; loop && f->loops[loop - 1].start > v->start; loop = f->loops[loop - 1].outer)
            if (f->loops[loop - 1].end > v->end)
                v->end = f->loops[loop - 1].end;
    }
}

/* --- variables ---------------------------------------------------------------------------------------------------- */

/* Of the stack's variables, one bit each: what a block reads before it writes it; what it writes. */
typedef struct flow {
    uint64_t reads, writes, in;
} flow;

static uint64_t bit_of(const uint8_t *number, dx_reg reg)
{
    return number[reg] ? (uint64_t)1 << (number[reg] - 1) : 0;
}

static void find_flow(const dx_func *f, const uint8_t *number, flow *flows)
{
    dx_reg reads[DX_READS];
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++) {
            const dx_op *o = &f->ops[i];
            if (o->kind == DX_NOTHING)
                continue;
            const uint32_t count = reads_of(f, o, reads);
            for (uint32_t k = 0; k < count; k++)
                flows[b].reads |= bit_of(number, reads[k]) & ~flows[b].writes;
            flows[b].writes |= o->dst ? bit_of(number, o->dst) : 0;
        }
}

static void spread_flow(const dx_func *f, flow *flows)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = f->block_count; b-- > 0;) {
            uint64_t in = 0;
            for (uint32_t k = 0; k < f->blocks[b].nexts; k++)
                in |= flows[f->blocks[b].next[k]].in;
            in = (in & ~flows[b].writes) | flows[b].reads;
            changed = changed || in != flows[b].in;
            flows[b].in = in;
        }
    }
}

/* A variable that a loop's first block is entered with lives around all of that loop. */
static void span_loops(dx_func *f)
{
    uint8_t *number = ARENA_ARRAY(f->arena, uint8_t, f->reg_count + 1);
    flow *flows = ARENA_ARRAY(f->arena, flow, f->block_count);
    if (!number || !flows) {
        opjit_dx_refuse(f, "no memory");
        return;
    }
    for (uint32_t i = 0; i < f->slot_count; i++)
        number[f->slots[i]] = (uint8_t)(i + 1);
    find_flow(f, number, flows);
    spread_flow(f, flows);
    for (uint32_t k = 0; k < f->loop_count; k++)
        for (uint32_t i = 0; i < f->slot_count; i++) {
            dx_virtual *v = &f->regs[f->slots[i]];
            const dx_loop *loop = &f->loops[k];
            if (!(flows[loop->first].in >> i & 1))
                continue;
            v->least = loop->start < v->least ? loop->start : v->least;
            v->most = loop->end > v->most ? loop->end : v->most;
        }
}

static void place_loops(dx_live *l)
{
    dx_func *f = l->f;
    for (uint32_t i = 0; i < f->loop_count; i++) {
        f->loops[i].start = 2 * f->blocks[f->loops[i].first].first;
        f->loops[i].end = 2 * f->blocks[f->loops[i].last].end;
    }
    for (uint32_t b = 0; b < f->block_count; b++)
        for (uint32_t i = f->blocks[b].first; i < f->blocks[b].end; i++)
            l->loop[i] = f->blocks[b].loop;
}

void opjit_dx_live(dx_func *f)
{
    dx_live l = { .f = f, .loop = ARENA_ARRAY(f->arena, uint32_t, f->op_count + 1) };
    if (!l.loop) {
        opjit_dx_refuse(f, "no memory");
        return;
    }
    find_groups(f);
    drop_dead(f);
    place_loops(&l);
    find_accesses(&l);
    if (f->slot_count > 0 && !f->refused)
        span_loops(f);
    for (dx_reg r = 1; r < f->reg_count && !f->refused; r++)
        opjit_dx_interval(&l, &f->regs[r]);
    if (!f->refused)
        opjit_dx_join(&l);
}
