/* SPDX-License-Identifier: Apache-2.0 */
/* x86_tile_address.c - the addresses of a tile for x86-64: which of the numbers that they are made of have general
 * registers of their own, and sums of them that are kept for the next address. */
#include "codegen/hold/x86_tile_state.h"

/* All but the stack's, the arguments' and two for addresses. */
const uint8_t opjit_cg_x86_tile_integers[X86_TILE_INTEGERS] = { X86_SI, X86_DX, 8,  9,  10, 11,
                                                                X86_BX, X86_BP, 12, 13, 14, 15 };

/* What is used most has a register of its own, but first of all what moves. */
void opjit_cg_x86_tile_numbers(x86_tile *m, uint32_t begin)
{
    const cg_trace_number *all = m->tr->number[m->part];
    const uint32_t count = m->tr->numbers[m->part];
    for (uint32_t i = 0; i < count; i++)
        m->number[i] = X86_TILE_NO_NUMBER;
    for (uint32_t r = begin; r < X86_TILE_INTEGERS; r++) {
        uint32_t best = X86_TILE_NO_NUMBER;
        for (uint32_t i = 0; i < count; i++) {
            const bool moves = all[i].kind == CG_TRACE_MOVE;
            const bool other = best != X86_TILE_NO_NUMBER && all[best].kind == CG_TRACE_MOVE;
            if (m->number[i] == X86_TILE_NO_NUMBER && all[i].uses > 0 &&
                (best == X86_TILE_NO_NUMBER || moves > other || (moves == other && all[i].uses > all[best].uses)))
                best = i;
        }
        if (best == X86_TILE_NO_NUMBER)
            break;
        m->number[best] = opjit_cg_x86_tile_integers[r];
    }
}

void opjit_cg_x86_tile_load(x86_tile *m, const cg_trace_number *n, uint32_t reg)
{
    const x86_mem from = x86_tile_argument(n->arg);
    if (n->kind == CG_TRACE_FACTOR)
        opjit_cg_x86_multiply(m->out, reg, &from, (int32_t)n->by);
    else
        opjit_cg_x86_memory(m->out, X86_TILE_MOVE, reg, &from);
}

/* The register that a number is in: its own, or this one, which it is loaded into. */
static uint32_t number_in(x86_tile *m, uint32_t number, uint32_t otherwise)
{
    if (m->number[number] != X86_TILE_NO_NUMBER)
        return m->number[number];
    opjit_cg_x86_tile_load(m, &m->tr->number[m->part][number], otherwise);
    return otherwise;
}

static bool same_terms(const cg_trace_place *a, const cg_trace_place *b, uint32_t terms)
{
    bool same = a->base == b->base;
    for (uint32_t i = 0; i < terms && same; i++)
        same = a->term[i] == b->term[i] && a->shift[i] == b->shift[i];
    return same;
}

static const x86_tile_row *find_row(const x86_tile *m, const cg_trace_place *p, uint32_t terms)
{
    for (uint32_t i = 0; i < m->row_count; i++)
        if (m->rows[i].place && m->rows[i].terms == terms && same_terms(m->rows[i].place, p, terms))
            return &m->rows[i];
    return NULL;
}

/* The sum of base, which has the terms before it, and a term. */
static uint32_t add_row(x86_tile *m, const cg_trace_place *p, uint32_t term, uint32_t base)
{
    const x86_mem sum = { .base = base, .index = number_in(m, p->term[term], X86_CX), .shift = p->shift[term] };
    uint32_t reg = X86_AX;
    if (m->row_count > 0) {
        x86_tile_row *r = &m->rows[m->next_row];
        m->next_row = (m->next_row + 1) % m->row_count;
        r->place = p;
        r->terms = term + 1;
        reg = r->reg;
    }
    opjit_cg_x86_memory(m->out, X86_TILE_LEA, reg, &sum);
    return reg;
}

x86_mem opjit_cg_x86_tile_address(x86_tile *m, const cg_trace_place *p)
{
    x86_mem mem = { .base = X86_DI, .index = X86_NO_INDEX, .offset = p->offset };
    const x86_tile_row *known = NULL;
    uint32_t done = p->terms;
    if (p->base == CG_TRACE_ARGS)
        return mem;
    mem.offset += (int32_t)(m->copy * m->tr->number[m->part][p->base].by); /* 0, or where the loop moves it */
    while (done > 1 && !known)
        known = find_row(m, p, --done);
    done = known ? known->terms : 0;
    mem.base = known ? known->reg : number_in(m, p->base, X86_AX);
    for (; done + 1 < p->terms; done++)
        mem.base = add_row(m, p, done, mem.base);
    if (p->terms > 0) {
        mem.index = number_in(m, p->term[done], X86_CX);
        mem.shift = p->shift[done];
    }
    return mem;
}
