/* SPDX-License-Identifier: Apache-2.0 */
/* x86_tile.c - a trace as code of x86-64 with AVX2 or AVX-512.  Its parts are straight lines, so registers are given
 * while their instructions are written: what a tile holds has the same register before, in and after the loop, and any
 * other value one from where it is made to where it is last used. */
#include "codegen/hold/x86_tile_state.h"

enum {
    AT_LEAST = 3, /* vector registers beside what is held */
    SAVED = 6,    /* the first ones of opjit_cg_x86_tile_integers need not be saved */
    LOOP_ALIGN = 16,
    MOST_COPIES = 4,     /* iterations in a round of the loop, */
    MOST_IN_ROUND = 352, /* of so many operations at most, */
    FURTHEST = 1 << 28   /* whose places are at most so many bytes behind each other */
};
enum { COMPARE = 7, ADD = 0, SUBTRACT = 5 }; /* what an immediate does */

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* What the tile holds is in its own registers, and the others are free. */
static void hold_again(x86_tile *m)
{
    for (uint32_t r = 0; r < m->vectors; r++)
        m->holds[r] = 0;
    for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1]; i++)
        if (m->tr->op[i].what == CG_TRACE_IN && m->tr->op[i].uses > 0)
            x86_tile_set(m, i, m->home[m->tr->op[i].at]);
}

/* In the loop the first register counts, and the second one has what is prefetched, if anything is. */
static uint32_t x86_tile_taken(const x86_tile *m, uint32_t part)
{
    return part == CG_TRACE_LOOP ? 1 + (m->tr->t->fetch != 0) : 0;
}

/* Numbers, and rows where registers are left over. */
static void begin_part(x86_tile *m, cg_trace_part part)
{
    uint32_t taken = x86_tile_taken(m, part);
    m->part = part;
    m->row_count = m->next_row = 0;
    opjit_cg_x86_tile_numbers(m, taken);
    for (uint32_t i = 0; i < m->tr->numbers[part]; i++) {
        const cg_trace_number *n = &m->tr->number[part][i];
        taken += m->number[i] != X86_TILE_NO_NUMBER;
        if (m->number[i] != X86_TILE_NO_NUMBER)
            opjit_cg_x86_tile_load(m, n, m->number[i]);
        else if (n->kind == CG_TRACE_MOVE && n->uses > 0)
            m->refused = true;
    }
    for (uint32_t r = taken; r < SAVED + m->saved; r++)
        m->rows[m->row_count++] = (x86_tile_row){ .reg = opjit_cg_x86_tile_integers[r] };
    hold_again(m);
}

/* Whether a register of the tile that is not home yet has the value. */
static bool is_wanted(const x86_tile *m, uint32_t value, const bool *done)
{
    for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1]; i++) {
        const cg_trace_op *o = &m->tr->op[i];
        if (o->what == CG_TRACE_OUT && o->a[0] == value && !done[o->at])
            return true;
    }
    return false;
}

/* Puts a register's value where the next part expects it, if nothing else that is still wanted is there. */
static bool go_home(x86_tile *m, const cg_trace_op *o, bool *done)
{
    const uint32_t value = o->a[0], home = m->home[o->at], from = m->where[value];
    if (from != home + 1 && m->holds[home] != 0)
        return false;
    done[o->at] = true;
    if (from == home + 1)
        return true;
    if (from != 0)
        opjit_cg_x86_tile_copy(m, x86_tile_bytes(o), home, from - 1);
    else
        opjit_cg_x86_tile_bring(m, value, home);
    if (from != 0 && !is_wanted(m, value, done) && !(m->locked >> (from - 1) & 1))
        m->holds[from - 1] = 0;
    m->holds[home] = value + 1;
    return true;
}

static void end_part(x86_tile *m)
{
    bool done[CG_TILE_REGISTERS] = { false }, all = false;
    m->locked = 0;
    while (!all && !m->refused) {
        const cg_trace_op *waits = NULL;
        bool some = false;
        for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1]; i++) {
            const cg_trace_op *o = &m->tr->op[i];
            if (o->what != CG_TRACE_OUT || done[o->at])
                continue;
            if (go_home(m, o, done)) {
                m->locked |= 1u << m->home[o->at]; /* it stays there */
                some = true;
            } else {
                waits = o;
            }
        }
        all = waits == NULL;
        if (!all && !some && m->holds[m->home[waits->at]] != 0)
            opjit_cg_x86_tile_to_stack(m, m->home[waits->at]);
    }
}

static void put_part(x86_tile *m)
{
    for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1] && !m->refused; i++)
        opjit_cg_x86_tile_op(m, i);
    end_part(m);
}

/* Nothing of the iteration before is in a register but what the tile holds. */
static void begin_copy(x86_tile *m, bool moved)
{
    for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1]; i++)
        m->where[i] = 0;
    for (uint32_t r = 0; r < m->row_count && moved; r++)
        m->rows[r].place = NULL;
    hold_again(m);
}

/* After an iteration: numbers that move by an argument; after the last of `copies`: the others. */
static bool move_numbers(x86_tile *m, uint32_t copies)
{
    bool moved = false;
    for (uint32_t i = 0; i < m->tr->numbers[CG_TRACE_LOOP]; i++) {
        const cg_trace_number *n = &m->tr->number[CG_TRACE_LOOP][i];
        const x86_mem by = x86_tile_argument(n->by_arg - 1);
        const int64_t constant = n->by * copies;
        if (n->kind != CG_TRACE_MOVE || n->uses == 0)
            continue;
        moved |= n->by_arg != 0;
        if (n->by_arg)
            opjit_cg_x86_memory(m->out, X86_TILE_ADD, m->number[i], &by);
        else if (constant > INT32_MAX || constant < INT32_MIN)
            m->refused = true;
        else if (constant != 0)
            opjit_cg_x86_immediate(m->out, ADD, m->number[i], (int32_t)constant);
    }
    return moved;
}

/* The round's line of what is read next. */
static void put_fetch(x86_tile *m)
{
    const x86_mem line = { .base = opjit_cg_x86_tile_integers[1], .index = X86_NO_INDEX };
    const x86_mem by = x86_tile_argument(m->tr->t->fetch_by - 1);
    opjit_cg_x86_fetch(m->out, &line, X86_FETCH_SECOND);
    opjit_cg_x86_memory(m->out, X86_TILE_ADD, line.base, &by);
}

/* So many iterations, one after the other. */
static void put_iterations(x86_tile *m, uint32_t copies)
{
    bool moved = true;
    if (m->tr->t->fetch != 0)
        put_fetch(m);
    for (m->copy = 0; m->copy < copies; m->copy++) {
        begin_copy(m, moved);
        put_part(m);
        moved = move_numbers(m, m->copy + 1 == copies ? copies : 0);
    }
    m->copy = 0;
}

/* Rounds of several iterations, and those that are left; or all of them, one by one. */
static void put_loop(x86_tile *m)
{
    const x86_mem count = x86_tile_argument(0);
    const uint32_t left = opjit_cg_x86_tile_integers[0];
    const int32_t copies = (int32_t)m->copies;
    begin_part(m, CG_TRACE_LOOP);
    opjit_cg_x86_memory(m->out, X86_TILE_MOVE, left, &count);
    if (m->tr->t->fetch != 0) {
        const x86_mem first = x86_tile_argument(m->tr->t->fetch - 1);
        opjit_cg_x86_memory(m->out, X86_TILE_MOVE, opjit_cg_x86_tile_integers[1], &first);
    }
    if (copies > 1) {
        opjit_cg_x86_immediate(m->out, SUBTRACT, left, copies);
        const size_t over = opjit_cg_x86_jump(m->out, X86_JUMP_LESS);
        opjit_cg_x86_align(m->out, LOOP_ALIGN);
        const size_t head = m->out->size;
        put_iterations(m, m->copies);
        opjit_cg_x86_immediate(m->out, SUBTRACT, left, copies);
        opjit_cg_x86_land(m->out, opjit_cg_x86_jump(m->out, X86_JUMP_NOT_LESS), head);
        opjit_cg_x86_land(m->out, over, m->out->size);
        opjit_cg_x86_immediate(m->out, ADD, left, copies);
    }
    opjit_cg_x86_immediate(m->out, COMPARE, left, 0);
    const size_t over = opjit_cg_x86_jump(m->out, X86_JUMP_LESS_EQUAL);
    opjit_cg_x86_align(m->out, LOOP_ALIGN);
    const size_t head = m->out->size;
    put_iterations(m, 1);
    opjit_cg_x86_immediate(m->out, SUBTRACT, left, 1);
    opjit_cg_x86_land(m->out, opjit_cg_x86_jump(m->out, X86_JUMP_NOT_EQUAL), head);
    opjit_cg_x86_land(m->out, over, m->out->size);
}

static void put_after(x86_tile *m, cg_trace_part part, uint32_t frame)
{
    begin_part(m, part);
    put_part(m);
    opjit_rt_bytes_append(m->out, (const uint8_t[]){ 0xc5, 0xf8, 0x77 }, 3); /* vzeroupper */
    if (frame > 0)
        opjit_cg_x86_immediate(m->out, ADD, X86_SP, (int32_t)frame);
    for (uint32_t r = m->saved; r-- > 0;)
        opjit_cg_x86_pop(m->out, opjit_cg_x86_tile_integers[SAVED + r]);
    opjit_rt_bytes_u8(m->out, 0xc3);
}

/* --- the function ------------------------------------------------------------------------------------------------- */

/* The registers that what the tile holds has; false: there are too few, or no instructions for an operation. */
static bool give_homes(x86_tile *m)
{
    uint64_t read = 0;
    for (uint32_t i = 0; i < m->tr->count; i++) {
        const cg_trace_op *o = &m->tr->op[i];
        if (o->what == CG_TRACE_IN && o->uses > 0)
            read |= UINT64_C(1) << o->at;
        if ((o->lanes != 1 && o->lanes != 4 && o->lanes != 8 && (o->lanes != 16 || !m->wide)) ||
            (o->what == CG_TRACE_OP && o->op == IR_DOT4_US && !m->dot4))
            return false;
    }
    for (uint32_t r = 0; r < m->tr->t->registers; r++)
        m->home[r] = read >> r & 1 ? m->homes++ : 0;
    for (uint32_t i = 0; i < m->tr->count; i++)
        if (m->tr->op[i].what == CG_TRACE_OUT)
            m->hint[m->tr->op[i].a[0]] = m->home[m->tr->op[i].at] + 1;
    return m->homes + AT_LEAST <= m->vectors;
}

static void count_saved(x86_tile *m)
{
    for (uint32_t p = 0; p < CG_TRACE_PARTS; p++) {
        uint32_t used = x86_tile_taken(m, p);
        for (uint32_t i = 0; i < m->tr->numbers[p]; i++)
            used += m->tr->number[p][i].uses > 0;
        used = used > X86_TILE_INTEGERS ? X86_TILE_INTEGERS : used;
        m->saved = used > SAVED + m->saved ? used - SAVED : m->saved;
    }
}

/* Iterations in a round: of short ones more. */
static uint32_t copies_of(const cg_trace *tr)
{
    const uint32_t ops = tr->first[CG_TRACE_LOOP + 1] - tr->first[CG_TRACE_LOOP];
    uint32_t copies = MOST_COPIES;
    while (copies > 1 && copies * ops > MOST_IN_ROUND)
        copies /= 2;
    for (uint32_t i = 0; i < tr->numbers[CG_TRACE_LOOP]; i++)
        if (tr->number[CG_TRACE_LOOP][i].by > FURTHEST || tr->number[CG_TRACE_LOOP][i].by < -FURTHEST)
            copies = 1;
    return copies;
}

static void put_function(x86_tile *m, uint32_t frame)
{
    m->slots = 0;
    m->out->size = 0;
    for (uint32_t i = 0; i < m->tr->count; i++)
        m->where[i] = m->slot[i] = 0;
    for (uint32_t r = 0; r < m->saved; r++)
        opjit_cg_x86_push(m->out, opjit_cg_x86_tile_integers[SAVED + r]);
    if (frame > 0)
        opjit_cg_x86_immediate(m->out, SUBTRACT, X86_SP, (int32_t)frame);
    begin_part(m, CG_TRACE_BEFORE);
    put_part(m);
    put_loop(m);
    if (m->tr->choice) {
        const x86_mem choice = x86_tile_argument(m->tr->choice - 1);
        opjit_cg_x86_memory(m->out, 0x83, COMPARE, &choice);
        opjit_rt_bytes_u8(m->out, 0);
        const size_t other = opjit_cg_x86_jump(m->out, X86_JUMP_EQUAL);
        put_after(m, CG_TRACE_AFTER, frame);
        opjit_cg_x86_land(m->out, other, m->out->size);
        put_after(m, CG_TRACE_OTHER, frame);
    } else {
        put_after(m, CG_TRACE_AFTER, frame);
    }
}

bool opjit_cg_x86_tile(const rt_target *target, const cg_tile *t, rt_arena *arena, rt_bytes *out)
{
    x86_tile m = { .out = out };
    if (!rt_target_has(target, RT_X86_AVX2) || !rt_target_has(target, RT_X86_FMA))
        return false;
    m.wide = rt_target_has_avx512(target);
    m.dot4 = rt_target_has_dot4(target);
    m.vectors = m.wide ? X86_TILE_VECTORS : X86_TILE_VECTORS / 2;
    m.tr = opjit_cg_trace(t, arena);
    if (!m.tr)
        return false;
    m.where = ARENA_ARRAY(arena, uint32_t, m.tr->count);
    m.slot = ARENA_ARRAY(arena, uint32_t, m.tr->count);
    m.hint = ARENA_ARRAY(arena, uint32_t, m.tr->count);
    m.folded = ARENA_ARRAY(arena, bool, m.tr->count);
    if (!m.where || !m.slot || !m.hint || !m.folded || !give_homes(&m))
        return false;
    opjit_cg_x86_tile_fold(&m);
    count_saved(&m);
    m.copies = copies_of(m.tr);
    put_function(&m, 0);
    if (m.slots > 0 && m.copies > 1) { /* such values would have their places once per copy */
        m.copies = 1;
        put_function(&m, 0);
    }
    if (m.slots > 0)
        put_function(&m, X86_TILE_SLOT * m.slots); /* now that it is known how many there are */
    if (m.refused)
        out->size = 0;
    return !m.refused;
}
