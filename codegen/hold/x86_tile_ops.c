/* SPDX-License-Identifier: Apache-2.0 */
/* x86_tile_ops.c - the operations of a tile as instructions of x86-64: which operand is part of an instruction as
 * memory, and in whose register the result is. */
#include "codegen/hold/x86_tile_state.h"

enum { UNORDERED = 3 }; /* of comparisons: one is a NaN */

/* Operands of which an instruction can have one in memory, one bit each. */
static uint32_t in_memory(const cg_trace_op *o)
{
    switch ((ir_op)o->op) {
    case IR_FMA:
    case IR_ADD:
    case IR_MUL: return 1 << 1 | 1 << 0;
    case IR_DOT4_US: return 1 << 2;
    case IR_DOT2: return 1 << 2 | 1 << 1;
    default: return 1 << 1;
    }
}

/* A load that one operation of the same statement uses is part of it, if it can be. */
void opjit_cg_x86_tile_fold(x86_tile *m)
{
    for (uint32_t i = 0; i < m->tr->count; i++) {
        const cg_trace_op *o = &m->tr->op[i];
        bool folded = o->what != CG_TRACE_OP;
        for (uint32_t k = 0; k < 3 && !folded; k++) {
            const cg_trace_op *l = o->a[k] != CG_TRACE_NONE && in_memory(o) >> k & 1 ? &m->tr->op[o->a[k]] : NULL;
            folded = l && (l->what == CG_TRACE_LOAD || (l->what == CG_TRACE_SPLAT && m->wide && o->op != IR_DOT2)) &&
                     l->uses == 1 && l->step == o->step;
            if (folded)
                m->folded[o->a[k]] = true;
        }
    }
}

/* Whether an instruction loads the value itself: it is in no register, but still in memory. */
static bool is_memory(const x86_tile *m, uint32_t value)
{
    const cg_trace_op *o = &m->tr->op[value];
    return m->folded[value] ||
           (m->where[value] == 0 && cg_trace_is_fixed(m->tr, o) && (o->what == CG_TRACE_LOAD ? o->lanes > 1 : m->wide));
}

/* RM of the instruction: a register, or what is loaded by it. */
static void put_operand(x86_tile *m, uint32_t value, uint32_t at, x86_vector *v, x86_mem *mem)
{
    const cg_trace_op *o = &m->tr->op[value];
    if (!is_memory(m, value)) {
        v->rm = opjit_cg_x86_tile_need(m, value, at);
        return;
    }
    *mem = opjit_cg_x86_tile_address(m, &o->place);
    v->mem = mem;
    v->unit = v->bytes;
    v->splat = o->what == CG_TRACE_SPLAT;
}

/* a * b + c, in the register of c or else, of an fma, that of a factor, if it is not used again. */
static void put_sum(x86_tile *m, uint32_t at)
{
    enum { ADDEND = 0xb8, FACTOR = 0x98, BYTES = 0x50 }; /* of an fma: what the result replaces */
    const cg_trace_op *o = &m->tr->op[at];
    const bool fma = o->op == IR_FMA;
    x86_vector v = { .map = X86_0F38, .prefix = X86_66, .code = fma ? ADDEND : BYTES, .bytes = x86_tile_bytes(o) };
    x86_mem mem;
    const uint32_t c = fma ? o->a[2] : o->a[0];
    uint32_t a = fma ? o->a[0] : o->a[1], b = fma ? o->a[1] : o->a[2];
    if (fma && (is_memory(m, a) || (m->tr->op[b].last == at && !is_memory(m, b)))) {
        a = o->a[1];
        b = o->a[0];
    }
    v.avx512 = !fma;
    const bool ends = m->tr->op[c].last == at, zero = !ends && m->tr->op[c].what == CG_TRACE_ZERO;
    const uint32_t ra = opjit_cg_x86_tile_need(m, a, at), rc = zero ? 0 : opjit_cg_x86_tile_need(m, c, at);
    put_operand(m, b, at, &v, &mem);
    v.second = ra;
    if (ends) {
        opjit_cg_x86_tile_release(m, at);
        v.reg = rc;
        x86_tile_set(m, at, rc);
    } else if (fma && m->tr->op[a].last == at && !zero) {
        opjit_cg_x86_tile_release(m, at);
        v.code = FACTOR;
        v.reg = ra;
        v.second = rc;
        x86_tile_set(m, at, ra);
    } else {
        v.reg = opjit_cg_x86_tile_take(m, at, m->hint[at]);
        if (zero)
            opjit_cg_x86_tile_zero(m, v.reg);
        else
            opjit_cg_x86_tile_copy(m, v.bytes, v.reg, rc);
        opjit_cg_x86_tile_release(m, at);
        x86_tile_set(m, at, v.reg);
    }
    x86_tile_put(m, &v);
}

/* VPMADDWD loads whole vectors, but repeats no element. */
static bool is_memory_of_pairs(const x86_tile *m, uint32_t value)
{
    return is_memory(m, value) && m->tr->op[value].what != CG_TRACE_SPLAT;
}

/* The products of pairs of halves in a register of their own, and the sum. */
static void put_pairs(x86_tile *m, uint32_t at)
{
    enum { MULTIPLIES = 0xf5, ADDS = 0xfe };
    const cg_trace_op *o = &m->tr->op[at];
    const bool swapped = is_memory_of_pairs(m, o->a[1]);
    const uint32_t last = o->a[swapped ? 1 : 2];
    x86_vector v = { .map = X86_0F, .prefix = X86_66, .code = MULTIPLIES, .bytes = x86_tile_bytes(o) };
    x86_mem mem;
    const uint32_t sum = opjit_cg_x86_tile_need(m, o->a[0], at);
    v.second = opjit_cg_x86_tile_need(m, o->a[swapped ? 2 : 1], at);
    if (is_memory_of_pairs(m, last))
        put_operand(m, last, at, &v, &mem);
    else
        v.rm = opjit_cg_x86_tile_need(m, last, at);
    v.reg = opjit_cg_x86_tile_take(m, at, 0);
    x86_tile_put(m, &v);
    m->locked |= 1u << v.reg;
    x86_tile_put(m, &(x86_vector){ .map = X86_0F,
                                   .prefix = X86_66,
                                   .code = ADDS,
                                   .bytes = v.bytes,
                                   .reg = opjit_cg_x86_tile_result(m, at),
                                   .second = sum,
                                   .rm = v.reg });
}

static void put_arith(x86_tile *m, uint32_t at)
{
    static const uint8_t floats[] = {
        [IR_ADD] = 0x58, [IR_MUL] = 0x59, [IR_SUB] = 0x5c, [IR_MIN] = 0x5d, [IR_DIV] = 0x5e, [IR_MAX] = 0x5f
    };
    const cg_trace_op *o = &m->tr->op[at];
    const bool is_signed = o->type == IR_I32;
    x86_vector v = { .map = X86_0F, .code = floats[o->op], .bytes = x86_tile_bytes(o) };
    x86_mem mem;
    if (o->type != IR_F32) {
        v.prefix = X86_66;
        v.map = o->op == IR_ADD || o->op == IR_SUB ? X86_0F : X86_0F38;
        v.code = o->op == IR_ADD   ? 0xfe
                 : o->op == IR_SUB ? 0xfa
                 : o->op == IR_MUL ? 0x40
                 : o->op == IR_MIN ? (is_signed ? 0x39 : 0x3b)
                 : is_signed       ? 0x3d
                                   : 0x3f;
    }
    const bool swapped = in_memory(o) & 1 && is_memory(m, o->a[0]);
    v.second = opjit_cg_x86_tile_need(m, o->a[swapped], at);
    put_operand(m, o->a[!swapped], at, &v, &mem);
    v.reg = opjit_cg_x86_tile_result(m, at);
    x86_tile_put(m, &v);
}

/* Operand 0 where operand 1 is a number. */
static void put_number(x86_tile *m, uint32_t at)
{
    enum { COMPARES = 0xc2, BLENDS_MASK = 0x65, BLENDS = 0x4a };
    const cg_trace_op *o = &m->tr->op[at];
    const uint32_t a = opjit_cg_x86_tile_need(m, o->a[0], at), x = opjit_cg_x86_tile_need(m, o->a[1], at);
    const uint32_t mask = m->wide ? 1 : opjit_cg_x86_tile_take(m, at, 0);
    m->locked |= m->wide ? 0 : 1u << mask;
    x86_tile_put(m, &(x86_vector){ .map = X86_0F,
                                   .code = COMPARES,
                                   .bytes = x86_tile_bytes(o),
                                   .reg = mask,
                                   .second = x,
                                   .rm = x,
                                   .avx512 = m->wide });
    opjit_rt_bytes_u8(m->out, UNORDERED);
    const uint32_t to = opjit_cg_x86_tile_result(m, at);
    x86_tile_put(m, &(x86_vector){ .map = m->wide ? X86_0F38 : X86_0F3A,
                                   .prefix = X86_66,
                                   .code = m->wide ? BLENDS_MASK : BLENDS,
                                   .bytes = x86_tile_bytes(o),
                                   .reg = to,
                                   .second = a,
                                   .rm = x,
                                   .mask = m->wide ? mask : 0 });
    if (!m->wide)
        opjit_rt_bytes_u8(m->out, (uint8_t)(mask << 4));
}

/* Lanes of two vectors. */
static void put_pair(x86_tile *m, uint32_t at)
{
    enum { BLOCKS = 0x23, HALVES = 0x06 /* for AVX2 */, LOW = 0x14, HIGH = 0x15 };
    static const uint8_t numbers[2][3] = { { 0x20, 0x00, 0x88 }, { 0x31, 0x03, 0xdd } }; /* blocks: AVX2; of 2; of 4 */
    const cg_trace_op *o = &m->tr->op[at];
    const bool blocks = o->op == CG_PAIR_EVEN || o->op == CG_PAIR_ODD, two = o->op >= CG_PAIR_LOW_TWO;
    const bool high = o->op == CG_PAIR_HIGH || o->op == CG_PAIR_HIGH_TWO;
    x86_vector v = { .map = blocks ? X86_0F3A : X86_0F,
                     .prefix = two ? X86_66 : X86_NP,
                     .code = blocks ? (m->wide ? BLOCKS : HALVES)
                             : high ? HIGH
                                    : LOW,
                     .bytes = x86_tile_bytes(o),
                     .w = two && !blocks,
                     .avx512 = blocks && m->wide };
    v.second = opjit_cg_x86_tile_need(m, o->a[0], at);
    v.rm = opjit_cg_x86_tile_need(m, o->a[1], at);
    v.reg = opjit_cg_x86_tile_result(m, at);
    x86_tile_put(m, &v);
    if (blocks)
        opjit_rt_bytes_u8(m->out, numbers[o->op == CG_PAIR_ODD][m->wide ? o->lanes / 8 : 0]);
}

static void put_bytes(x86_tile *m, uint32_t at)
{
    enum { U8_TO_I32 = 0x31, I8_TO_I32 = 0x21, I32_TO_F32 = 0x5b, U8_TO_I16 = 0x30, I8_TO_I16 = 0x20 };
    const cg_trace_op *o = &m->tr->op[at];
    const bool halves = o->what == CG_TRACE_U8_HALVES || o->what == CG_TRACE_I8_HALVES;
    const x86_mem from = opjit_cg_x86_tile_address(m, &o->place);
    const uint32_t to = opjit_cg_x86_tile_result(m, at);
    x86_vector v = { .map = X86_0F38,
                     .prefix = X86_66,
                     .code = o->what == CG_TRACE_U8          ? U8_TO_I32
                             : o->what == CG_TRACE_I8        ? I8_TO_I32
                             : o->what == CG_TRACE_U8_HALVES ? U8_TO_I16
                                                             : I8_TO_I16,
                     .bytes = x86_tile_bytes(o),
                     .reg = to,
                     .mem = &from,
                     .unit = halves ? 2 * o->lanes : o->lanes };
    x86_tile_put(m, &v);
    if (halves)
        return;
    v = (x86_vector){ .map = X86_0F, .code = I32_TO_F32, .bytes = x86_tile_bytes(o), .reg = to, .rm = to };
    x86_tile_put(m, &v);
}

static void put_store(x86_tile *m, uint32_t at)
{
    const cg_trace_op *o = &m->tr->op[at];
    const uint32_t reg = opjit_cg_x86_tile_need(m, o->a[0], at);
    const x86_mem to = opjit_cg_x86_tile_address(m, &o->place);
    if (o->lanes > 1)
        opjit_cg_x86_tile_memory(m, X86_TILE_STORES, x86_tile_bytes(o), reg, &to);
    else
        x86_tile_put(m, &(x86_vector){ .map = X86_0F,
                                       .prefix = X86_F3,
                                       .code = X86_TILE_STORES,
                                       .bytes = 16,
                                       .reg = reg,
                                       .mem = &to,
                                       .unit = sizeof(uint32_t) });
    opjit_cg_x86_tile_release(m, at);
}

void opjit_cg_x86_tile_op(x86_tile *m, uint32_t at)
{
    const cg_trace_op *o = &m->tr->op[at];
    m->locked = 0;
    switch ((cg_trace_what)o->what) {
    case CG_TRACE_LOAD:
    case CG_TRACE_SPLAT: {
        if (m->folded[at])
            return;
        const x86_mem from = opjit_cg_x86_tile_address(m, &o->place);
        const uint32_t to = opjit_cg_x86_tile_result(m, at);
        if (o->what == CG_TRACE_LOAD)
            opjit_cg_x86_tile_memory(m, X86_TILE_LOADS, x86_tile_bytes(o), to, &from);
        else
            opjit_cg_x86_tile_splat(m, x86_tile_bytes(o), to, &from, 0);
        return;
    }
    case CG_TRACE_U8:
    case CG_TRACE_I8:
    case CG_TRACE_U8_HALVES:
    case CG_TRACE_I8_HALVES: put_bytes(m, at); return;
    case CG_TRACE_BROADCAST: {
        const uint32_t from = opjit_cg_x86_tile_need(m, o->a[0], at), to = opjit_cg_x86_tile_result(m, at);
        opjit_cg_x86_tile_splat(m, x86_tile_bytes(o), to, NULL, from);
        return;
    }
    case CG_TRACE_OP:
        if (o->op == IR_DOT2)
            put_pairs(m, at);
        else if (o->op == IR_FMA || o->op == IR_DOT4_US)
            put_sum(m, at);
        else
            put_arith(m, at);
        return;
    case CG_TRACE_NUMBER: put_number(m, at); return;
    case CG_TRACE_PAIR: put_pair(m, at); return;
    case CG_TRACE_STORE: put_store(m, at); return;
    case CG_TRACE_FETCH: {
        const x86_mem line = opjit_cg_x86_tile_address(m, &o->place);
        opjit_cg_x86_fetch(m->out, &line, o->at ? X86_FETCH_SECOND : X86_FETCH_FIRST);
        return;
    }
    default: return; /* IN and OUT are the part's, ZERO is made where it is used */
    }
}
