/* SPDX-License-Identifier: Apache-2.0 */
/* x86_tile_registers.c - the vector registers of a tile for x86-64: which value is in which, what leaves one when
 * another value needs it, and how it comes back: from the stack, or made again. */
#include "codegen/hold/x86_tile_state.h"

enum { SPLATS = 0x18, COPIES = 0x28, ZEROES = 0x57, INT_ZEROES = 0xef };

/* --- instructions ------------------------------------------------------------------------------------------------- */

void opjit_cg_x86_tile_copy(x86_tile *m, uint32_t bytes, uint32_t to, uint32_t from)
{
    x86_tile_put(m, &(x86_vector){ .map = X86_0F, .code = COPIES, .bytes = bytes, .reg = to, .rm = from });
}

/* Of all of the register, by its first 16 bytes. */
void opjit_cg_x86_tile_zero(x86_tile *m, uint32_t to)
{
    x86_tile_put(m, &(x86_vector){ .map = X86_0F,
                                   .prefix = to < 16 ? X86_NP : X86_66,
                                   .code = to < 16 ? ZEROES : INT_ZEROES,
                                   .bytes = 16,
                                   .reg = to,
                                   .second = to,
                                   .rm = to });
}

void opjit_cg_x86_tile_memory(x86_tile *m, uint8_t code, uint32_t bytes, uint32_t reg, const x86_mem *mem)
{
    x86_tile_put(m,
                 &(x86_vector){ .map = X86_0F, .code = code, .bytes = bytes, .reg = reg, .mem = mem, .unit = bytes });
}

void opjit_cg_x86_tile_splat(x86_tile *m, uint32_t bytes, uint32_t reg, const x86_mem *mem, uint32_t from)
{
    x86_tile_put(m, &(x86_vector){ .map = X86_0F38,
                                   .prefix = X86_66,
                                   .code = SPLATS,
                                   .bytes = bytes,
                                   .reg = reg,
                                   .rm = from,
                                   .mem = mem,
                                   .unit = sizeof(uint32_t) });
}

/* --- registers ---------------------------------------------------------------------------------------------------- */

static x86_mem stack(uint32_t slot)
{
    return (x86_mem){ .base = X86_SP, .index = X86_NO_INDEX, .offset = (int32_t)(X86_TILE_SLOT * (slot - 1)) };
}

/* Whether it is made again where it is needed, instead of being kept on the stack. */
static bool is_made_again(const x86_tile *m, uint32_t value)
{
    const cg_trace_op *o = &m->tr->op[value];
    return o->what == CG_TRACE_ZERO || cg_trace_is_fixed(m->tr, o);
}

/* The next operation from `at` on, in this part, that uses the value. */
static uint32_t next_use(const x86_tile *m, uint32_t value, uint32_t at)
{
    const uint32_t end = m->tr->first[m->part + 1];
    for (; at < end; at++) {
        const cg_trace_op *o = &m->tr->op[at];
        if (o->what != CG_TRACE_DEAD && (o->a[0] == value || o->a[1] == value || o->a[2] == value))
            break;
    }
    return at;
}

void opjit_cg_x86_tile_to_stack(x86_tile *m, uint32_t reg)
{
    const uint32_t value = m->holds[reg] - 1;
    const cg_trace_op *o = &m->tr->op[value];
    if (!is_made_again(m, value) && m->slot[value] == 0) {
        m->slot[value] = ++m->slots;
        const x86_mem to = stack(m->slot[value]);
        opjit_cg_x86_tile_memory(m, X86_TILE_STORES, x86_tile_bytes(o), reg, &to);
    }
    x86_tile_leave(m, reg);
}

/* A register for the value of operation `at`, or an operand of it: what is not needed for longest leaves its own, if
 * possible something that needs no place on the stack. */
uint32_t opjit_cg_x86_tile_take(x86_tile *m, uint32_t at, uint32_t hint)
{
    uint32_t best = X86_TILE_VECTORS, furthest = 0;
    bool again = false;
    if (hint != 0 && m->holds[hint - 1] == 0 && !(m->locked >> (hint - 1) & 1))
        return hint - 1;
    for (uint32_t i = 0; i < m->vectors; i++) {
        const uint32_t r = (i + m->homes) % m->vectors;
        if (m->locked >> r & 1)
            continue;
        if (m->holds[r] == 0)
            return r;
        const uint32_t use = next_use(m, m->holds[r] - 1, at);
        const bool is_again = is_made_again(m, m->holds[r] - 1);
        if (best == X86_TILE_VECTORS || is_again > again || (is_again == again && use > furthest)) {
            best = r;
            furthest = use;
            again = is_again;
        }
    }
    if (best == X86_TILE_VECTORS) {
        m->refused = true;
        return 0;
    }
    opjit_cg_x86_tile_to_stack(m, best);
    return best;
}

/* Puts a value that is in no register into this one. */
void opjit_cg_x86_tile_bring(x86_tile *m, uint32_t value, uint32_t reg)
{
    const cg_trace_op *o = &m->tr->op[value];
    if (o->what == CG_TRACE_ZERO) {
        opjit_cg_x86_tile_zero(m, reg);
    } else if (is_made_again(m, value)) {
        const x86_mem from = opjit_cg_x86_tile_address(m, &o->place);
        if (o->what == CG_TRACE_LOAD)
            opjit_cg_x86_tile_memory(m, X86_TILE_LOADS, x86_tile_bytes(o), reg, &from);
        else
            opjit_cg_x86_tile_splat(m, x86_tile_bytes(o), reg, &from, 0);
    } else {
        const x86_mem from = stack(m->slot[value]);
        opjit_cg_x86_tile_memory(m, X86_TILE_LOADS, x86_tile_bytes(o), reg, &from);
    }
}

/* The operand's register, which it keeps until the operation is done. */
uint32_t opjit_cg_x86_tile_need(x86_tile *m, uint32_t value, uint32_t at)
{
    if (m->where[value] == 0) {
        const uint32_t r = opjit_cg_x86_tile_take(m, at, 0);
        opjit_cg_x86_tile_bring(m, value, r);
        x86_tile_set(m, value, r);
    }
    m->locked |= 1u << (m->where[value] - 1);
    return m->where[value] - 1;
}

/* Operands that are used for the last time leave their registers. */
void opjit_cg_x86_tile_release(x86_tile *m, uint32_t at)
{
    const cg_trace_op *o = &m->tr->op[at];
    for (uint32_t k = 0; k < 3; k++)
        if (o->a[k] != CG_TRACE_NONE && m->tr->op[o->a[k]].last == at && m->where[o->a[k]] != 0) {
            m->locked &= ~(1u << (m->where[o->a[k]] - 1));
            x86_tile_leave(m, m->where[o->a[k]] - 1);
        }
}

uint32_t opjit_cg_x86_tile_result(x86_tile *m, uint32_t at)
{
    opjit_cg_x86_tile_release(m, at);
    const uint32_t r = opjit_cg_x86_tile_take(m, at, m->hint[at]);
    x86_tile_set(m, at, r);
    return r;
}
