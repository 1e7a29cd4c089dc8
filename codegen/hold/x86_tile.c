/* SPDX-License-Identifier: Apache-2.0 */
/* x86_tile.c - a trace as code of x86-64 with AVX2 or AVX-512.  Its parts are straight lines, so registers are given
 * while their instructions are written: what a tile holds has the same register before, in and after the loop, and any
 * other value one from where it is made to where it is last used. */
#include "codegen/hold/trace.h"
#include "codegen/x86/x86_code.h"

enum {
    MOST_VECTORS = 32,
    SLOT = 64, /* bytes of a vector on the stack */
    AT_LEAST = 3, /* vector registers beside what is held */
    NO_NUMBER = INT32_MAX,
    SAVED = 6, /* the first ones of `integers` need not be saved */
    INTEGERS = 12,
    UNORDERED = 3,
    LOOP_ALIGN = 16
};

/* All but the stack's, the arguments' and two for addresses. */
static const uint8_t integers[INTEGERS] = { X86_SI, X86_DX, 8, 9, 10, 11, X86_BX, X86_BP, 12, 13, 14, 15 };

/* A sum that is in a register: the first terms of a place. */
typedef struct row {
    const cg_trace_place *place; /* NULL: none */
    uint32_t terms, reg;
} row;

typedef struct maker {
    const cg_trace *tr;
    rt_bytes *out;
    bool wide, dots;                 /* AVX-512; its products of bytes */
    uint32_t vectors;                /* registers */
    uint32_t *where, *slot;          /* by operation: register, place on the stack, + 1; 0: none */
    uint32_t *hint;                  /* by operation: the register that its value should be in, + 1 */
    bool *folded;                    /* by operation: a load that is part of the instruction that uses it */
    uint32_t holds[MOST_VECTORS];    /* by register: operation + 1 */
    uint32_t locked;                 /* registers, one bit each */
    uint32_t home[CG_TILE_REGISTERS], homes;
    uint32_t slots, saved;           /* of the stack; integer registers */
    cg_trace_part part;
    uint32_t number[CG_TRACE_NUMBERS]; /* of the part: registers, or NO_NUMBER */
    row rows[INTEGERS];
    uint32_t row_count, next_row;
    bool refused;
} maker;

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static x86_mem argument(uint32_t arg)
{
    return (x86_mem){ .base = X86_DI, .index = X86_NO_INDEX, .offset = (int32_t)(8 * arg) };
}

enum { MOVE_CODE = 0x8b, LEA_CODE = 0x8d, ADD_CODE = 0x03, COMPARE = 7, ADD = 0, SUBTRACT = 5 };

static void load_number(maker *m, const cg_trace_number *n, uint32_t reg)
{
    const x86_mem from = argument(n->arg);
    if (n->kind == CG_TRACE_FACTOR)
        opjit_cg_x86_multiply(m->out, reg, &from, (int32_t)n->by);
    else
        opjit_cg_x86_memory(m->out, MOVE_CODE, reg, &from);
}

/* The register that a number is in: its own, or this one, which it is loaded into. */
static uint32_t number_in(maker *m, uint32_t number, uint32_t otherwise)
{
    if (m->number[number] != NO_NUMBER)
        return m->number[number];
    load_number(m, &m->tr->number[m->part][number], otherwise);
    return otherwise;
}

static bool same_terms(const cg_trace_place *a, const cg_trace_place *b, uint32_t terms)
{
    bool same = a->base == b->base;
    for (uint32_t i = 0; i < terms && same; i++)
        same = a->term[i] == b->term[i] && a->shift[i] == b->shift[i];
    return same;
}

static const row *find_row(const maker *m, const cg_trace_place *p, uint32_t terms)
{
    for (uint32_t i = 0; i < m->row_count; i++)
        if (m->rows[i].place && m->rows[i].terms == terms && same_terms(m->rows[i].place, p, terms))
            return &m->rows[i];
    return NULL;
}

/* The sum of base, which has the terms before it, and a term. */
static uint32_t add_row(maker *m, const cg_trace_place *p, uint32_t term, uint32_t base)
{
    const x86_mem sum = { .base = base, .index = number_in(m, p->term[term], X86_CX), .shift = p->shift[term] };
    uint32_t reg = X86_AX;
    if (m->row_count > 0) {
        row *r = &m->rows[m->next_row];
        m->next_row = (m->next_row + 1) % m->row_count;
        r->place = p;
        r->terms = term + 1;
        reg = r->reg;
    }
    opjit_cg_x86_memory(m->out, LEA_CODE, reg, &sum);
    return reg;
}

static x86_mem address(maker *m, const cg_trace_place *p)
{
    x86_mem mem = { .base = X86_DI, .index = X86_NO_INDEX, .offset = p->offset };
    const row *known = NULL;
    uint32_t done = p->terms;
    if (p->base == CG_TRACE_ARGS)
        return mem;
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

/* --- instructions ------------------------------------------------------------------------------------------------- */

static uint32_t bytes_of(const cg_trace_op *o)
{
    return o->lanes == 1 ? 16 : 4 * o->lanes;
}

enum { LOADS = 0x10, STORES = 0x11, SPLATS = 0x18, COPIES = 0x28, ZEROES = 0x57, INT_ZEROES = 0xef };

static void put(maker *m, const x86_vector *v)
{
    opjit_cg_x86_vector(m->out, v);
}

static void put_copy(maker *m, uint32_t bytes, uint32_t to, uint32_t from)
{
    put(m, &(x86_vector){ .map = X86_0F, .code = COPIES, .bytes = bytes, .reg = to, .rm = from });
}

/* Of all of the register, by its first 16 bytes. */
static void put_zero(maker *m, uint32_t to)
{
    put(m, &(x86_vector){ .map = X86_0F,
                          .prefix = to < 16 ? X86_NP : X86_66,
                          .code = to < 16 ? ZEROES : INT_ZEROES,
                          .bytes = 16,
                          .reg = to,
                          .second = to,
                          .rm = to });
}

static void put_memory(maker *m, uint8_t code, uint32_t bytes, uint32_t reg, const x86_mem *mem)
{
    put(m, &(x86_vector){ .map = X86_0F, .code = code, .bytes = bytes, .reg = reg, .mem = mem, .unit = bytes });
}

static void put_splat(maker *m, uint32_t bytes, uint32_t reg, const x86_mem *mem, uint32_t from)
{
    put(m, &(x86_vector){ .map = X86_0F38,
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
    return (x86_mem){ .base = X86_SP, .index = X86_NO_INDEX, .offset = (int32_t)(SLOT * (slot - 1)) };
}

/* Whether it is made again where it is needed, instead of being kept on the stack. */
static bool is_made_again(const maker *m, uint32_t value)
{
    const cg_trace_op *o = &m->tr->op[value];
    return o->what == CG_TRACE_ZERO || cg_trace_is_fixed(m->tr, o);
}

static void set(maker *m, uint32_t op, uint32_t reg)
{
    m->where[op] = reg + 1;
    m->holds[reg] = op + 1;
}

static void leave(maker *m, uint32_t reg)
{
    if (m->holds[reg] != 0)
        m->where[m->holds[reg] - 1] = 0;
    m->holds[reg] = 0;
}

/* The next operation from `at` on, in this part, that uses the value. */
static uint32_t next_use(const maker *m, uint32_t value, uint32_t at)
{
    const uint32_t end = m->tr->first[m->part + 1];
    for (; at < end; at++) {
        const cg_trace_op *o = &m->tr->op[at];
        if (o->what != CG_TRACE_DEAD && (o->a[0] == value || o->a[1] == value || o->a[2] == value))
            break;
    }
    return at;
}

static void to_stack(maker *m, uint32_t reg)
{
    const uint32_t value = m->holds[reg] - 1;
    const cg_trace_op *o = &m->tr->op[value];
    if (!is_made_again(m, value) && m->slot[value] == 0) {
        m->slot[value] = ++m->slots;
        const x86_mem to = stack(m->slot[value]);
        put_memory(m, STORES, bytes_of(o), reg, &to);
    }
    leave(m, reg);
}

/* A register for the value of operation `at`, or an operand of it: what is not needed for longest leaves its own, if
 * possible something that needs no place on the stack. */
static uint32_t take(maker *m, uint32_t at, uint32_t hint)
{
    uint32_t best = MOST_VECTORS, furthest = 0;
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
        if (best == MOST_VECTORS || is_again > again || (is_again == again && use > furthest)) {
            best = r;
            furthest = use;
            again = is_again;
        }
    }
    if (best == MOST_VECTORS) {
        m->refused = true;
        return 0;
    }
    to_stack(m, best);
    return best;
}

/* Puts a value that is in no register into this one. */
static void bring(maker *m, uint32_t value, uint32_t reg)
{
    const cg_trace_op *o = &m->tr->op[value];
    if (o->what == CG_TRACE_ZERO) {
        put_zero(m, reg);
    } else if (is_made_again(m, value)) {
        const x86_mem from = address(m, &o->place);
        if (o->what == CG_TRACE_LOAD)
            put_memory(m, LOADS, bytes_of(o), reg, &from);
        else
            put_splat(m, bytes_of(o), reg, &from, 0);
    } else {
        const x86_mem from = stack(m->slot[value]);
        put_memory(m, LOADS, bytes_of(o), reg, &from);
    }
}

/* The operand's register, which it keeps until the operation is done. */
static uint32_t need(maker *m, uint32_t value, uint32_t at)
{
    if (m->where[value] == 0) {
        const uint32_t r = take(m, at, 0);
        bring(m, value, r);
        set(m, value, r);
    }
    m->locked |= 1u << (m->where[value] - 1);
    return m->where[value] - 1;
}

/* Operands that are used for the last time leave their registers. */
static void release(maker *m, uint32_t at)
{
    const cg_trace_op *o = &m->tr->op[at];
    for (uint32_t k = 0; k < 3; k++)
        if (o->a[k] != CG_TRACE_NONE && m->tr->op[o->a[k]].last == at && m->where[o->a[k]] != 0) {
            m->locked &= ~(1u << (m->where[o->a[k]] - 1));
            leave(m, m->where[o->a[k]] - 1);
        }
}

static uint32_t result(maker *m, uint32_t at)
{
    release(m, at);
    const uint32_t r = take(m, at, m->hint[at]);
    set(m, at, r);
    return r;
}

/* --- operations --------------------------------------------------------------------------------------------------- */

/* Operands of which an instruction can have one in memory, one bit each. */
static uint32_t in_memory(const cg_trace_op *o)
{
    switch ((ir_op)o->op) {
    case IR_FMA:
    case IR_ADD:
    case IR_MUL: return 1 << 1 | 1 << 0;
    case IR_DOT4_US: return 1 << 2;
    default: return 1 << 1;
    }
}

/* Whether an instruction loads the value itself: it is in no register, but still in memory. */
static bool is_memory(const maker *m, uint32_t value)
{
    const cg_trace_op *o = &m->tr->op[value];
    return m->folded[value] || (m->where[value] == 0 && cg_trace_is_fixed(m->tr, o) &&
                                (o->what == CG_TRACE_LOAD ? o->lanes > 1 : m->wide));
}

/* RM of the instruction: a register, or what is loaded by it. */
static void put_operand(maker *m, uint32_t value, uint32_t at, x86_vector *v, x86_mem *mem)
{
    const cg_trace_op *o = &m->tr->op[value];
    if (!is_memory(m, value)) {
        v->rm = need(m, value, at);
        return;
    }
    *mem = address(m, &o->place);
    v->mem = mem;
    v->unit = v->bytes;
    v->splat = o->what == CG_TRACE_SPLAT;
}

/* a * b + c, in the register of c or else, of an fma, that of a factor, if it is not used again. */
static void put_sum(maker *m, uint32_t at)
{
    enum { ADDEND = 0xb8, FACTOR = 0x98, BYTES = 0x50 }; /* of an fma: what the result replaces */
    const cg_trace_op *o = &m->tr->op[at];
    const bool fma = o->op == IR_FMA;
    x86_vector v = { .map = X86_0F38, .prefix = X86_66, .code = fma ? ADDEND : BYTES, .bytes = bytes_of(o) };
    x86_mem mem;
    const uint32_t c = fma ? o->a[2] : o->a[0];
    uint32_t a = fma ? o->a[0] : o->a[1], b = fma ? o->a[1] : o->a[2];
    if (fma && (is_memory(m, a) || (m->tr->op[b].last == at && !is_memory(m, b)))) {
        a = o->a[1];
        b = o->a[0];
    }
    v.avx512 = !fma;
    const bool ends = m->tr->op[c].last == at, zero = !ends && m->tr->op[c].what == CG_TRACE_ZERO;
    const uint32_t ra = need(m, a, at), rc = zero ? 0 : need(m, c, at);
    put_operand(m, b, at, &v, &mem);
    v.second = ra;
    if (ends) {
        release(m, at);
        v.reg = rc;
        set(m, at, rc);
    } else if (fma && m->tr->op[a].last == at && !zero) {
        release(m, at);
        v.code = FACTOR;
        v.reg = ra;
        v.second = rc;
        set(m, at, ra);
    } else {
        v.reg = take(m, at, m->hint[at]);
        if (zero)
            put_zero(m, v.reg);
        else
            put_copy(m, v.bytes, v.reg, rc);
        release(m, at);
        set(m, at, v.reg);
    }
    put(m, &v);
}

static void put_arith(maker *m, uint32_t at)
{
    static const uint8_t floats[] = {
        [IR_ADD] = 0x58, [IR_MUL] = 0x59, [IR_SUB] = 0x5c, [IR_MIN] = 0x5d, [IR_DIV] = 0x5e, [IR_MAX] = 0x5f
    };
    const cg_trace_op *o = &m->tr->op[at];
    const bool is_signed = o->type == IR_I32;
    x86_vector v = { .map = X86_0F, .code = floats[o->op], .bytes = bytes_of(o) };
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
    const bool turned = in_memory(o) & 1 && is_memory(m, o->a[0]);
    v.second = need(m, o->a[turned], at);
    put_operand(m, o->a[!turned], at, &v, &mem);
    v.reg = result(m, at);
    put(m, &v);
}

/* Operand 0 where operand 1 is a number. */
static void put_number(maker *m, uint32_t at)
{
    enum { COMPARES = 0xc2, BLENDS_MASK = 0x65, BLENDS = 0x4a };
    const cg_trace_op *o = &m->tr->op[at];
    const uint32_t a = need(m, o->a[0], at), x = need(m, o->a[1], at), mask = m->wide ? 1 : take(m, at, 0);
    m->locked |= m->wide ? 0 : 1u << mask;
    put(m, &(x86_vector){ .map = X86_0F,
                          .code = COMPARES,
                          .bytes = bytes_of(o),
                          .reg = mask,
                          .second = x,
                          .rm = x,
                          .avx512 = m->wide });
    opjit_rt_bytes_u8(m->out, UNORDERED);
    const uint32_t to = result(m, at);
    put(m, &(x86_vector){ .map = m->wide ? X86_0F38 : X86_0F3A,
                          .prefix = X86_66,
                          .code = m->wide ? BLENDS_MASK : BLENDS,
                          .bytes = bytes_of(o),
                          .reg = to,
                          .second = a,
                          .rm = x,
                          .mask = m->wide ? mask : 0 });
    if (!m->wide)
        opjit_rt_bytes_u8(m->out, (uint8_t)(mask << 4));
}

/* Lanes of two vectors. */
static void put_pair(maker *m, uint32_t at)
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
                     .bytes = bytes_of(o),
                     .w = two && !blocks,
                     .avx512 = blocks && m->wide };
    v.second = need(m, o->a[0], at);
    v.rm = need(m, o->a[1], at);
    v.reg = result(m, at);
    put(m, &v);
    if (blocks)
        opjit_rt_bytes_u8(m->out, numbers[o->op == CG_PAIR_ODD][m->wide ? o->lanes / 8 : 0]);
}

static void put_store(maker *m, uint32_t at)
{
    const cg_trace_op *o = &m->tr->op[at];
    const uint32_t reg = need(m, o->a[0], at);
    const x86_mem to = address(m, &o->place);
    if (o->lanes > 1)
        put_memory(m, STORES, bytes_of(o), reg, &to);
    else
        put(m, &(x86_vector){ .map = X86_0F,
                              .prefix = X86_F3,
                              .code = STORES,
                              .bytes = 16,
                              .reg = reg,
                              .mem = &to,
                              .unit = sizeof(uint32_t) });
    release(m, at);
}

static void put_op(maker *m, uint32_t at)
{
    const cg_trace_op *o = &m->tr->op[at];
    m->locked = 0;
    switch ((cg_trace_what)o->what) {
    case CG_TRACE_LOAD:
    case CG_TRACE_SPLAT: {
        if (m->folded[at])
            return;
        const x86_mem from = address(m, &o->place);
        const uint32_t to = result(m, at);
        if (o->what == CG_TRACE_LOAD)
            put_memory(m, LOADS, bytes_of(o), to, &from);
        else
            put_splat(m, bytes_of(o), to, &from, 0);
        return;
    }
    case CG_TRACE_SPREAD: {
        const uint32_t from = need(m, o->a[0], at), to = result(m, at);
        put_splat(m, bytes_of(o), to, NULL, from);
        return;
    }
    case CG_TRACE_OP: o->op == IR_FMA || o->op == IR_DOT4_US ? put_sum(m, at) : put_arith(m, at); return;
    case CG_TRACE_NUMBER: put_number(m, at); return;
    case CG_TRACE_PAIR: put_pair(m, at); return;
    case CG_TRACE_STORE: put_store(m, at); return;
    case CG_TRACE_FETCH: {
        const x86_mem line = address(m, &o->place);
        opjit_cg_x86_fetch(m->out, &line, o->at ? X86_FETCH_SECOND : X86_FETCH_FIRST);
        return;
    }
    default: return; /* IN and OUT are the part's, ZERO is made where it is used */
    }
}

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* What is used most has a register of its own, but first of all what moves. */
static void give_numbers(maker *m, uint32_t begin)
{
    const cg_trace_number *all = m->tr->number[m->part];
    const uint32_t count = m->tr->numbers[m->part];
    for (uint32_t i = 0; i < count; i++)
        m->number[i] = NO_NUMBER;
    for (uint32_t r = begin; r < INTEGERS; r++) {
        uint32_t best = NO_NUMBER;
        for (uint32_t i = 0; i < count; i++) {
            const bool moves = all[i].kind == CG_TRACE_MOVE;
            const bool other = best != NO_NUMBER && all[best].kind == CG_TRACE_MOVE;
            if (m->number[i] == NO_NUMBER && all[i].uses > 0 &&
                (best == NO_NUMBER || moves > other || (moves == other && all[i].uses > all[best].uses)))
                best = i;
        }
        if (best == NO_NUMBER)
            break;
        m->number[best] = integers[r];
    }
}

/* Numbers, and rows where registers are left over. */
static void begin_part(maker *m, cg_trace_part part)
{
    uint32_t taken = part == CG_TRACE_LOOP; /* the first one counts */
    m->part = part;
    m->row_count = m->next_row = 0;
    give_numbers(m, taken);
    for (uint32_t i = 0; i < m->tr->numbers[part]; i++) {
        const cg_trace_number *n = &m->tr->number[part][i];
        taken += m->number[i] != NO_NUMBER;
        if (m->number[i] != NO_NUMBER)
            load_number(m, n, m->number[i]);
        else if (n->kind == CG_TRACE_MOVE && n->uses > 0)
            m->refused = true;
    }
    for (uint32_t r = taken; r < SAVED + m->saved; r++)
        m->rows[m->row_count++] = (row){ .reg = integers[r] };
    for (uint32_t r = 0; r < m->vectors; r++)
        m->holds[r] = 0;
    for (uint32_t i = m->tr->first[part]; i < m->tr->first[part + 1]; i++)
        if (m->tr->op[i].what == CG_TRACE_IN && m->tr->op[i].uses > 0)
            set(m, i, m->home[m->tr->op[i].at]);
}

/* Whether a register of the tile that is not home yet has the value. */
static bool is_wanted(const maker *m, uint32_t value, const bool *done)
{
    for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1]; i++) {
        const cg_trace_op *o = &m->tr->op[i];
        if (o->what == CG_TRACE_OUT && o->a[0] == value && !done[o->at])
            return true;
    }
    return false;
}

/* Puts a register's value where the next part expects it, if nothing else that is still wanted is there. */
static bool go_home(maker *m, const cg_trace_op *o, bool *done)
{
    const uint32_t value = o->a[0], home = m->home[o->at], from = m->where[value];
    if (from != home + 1 && m->holds[home] != 0)
        return false;
    done[o->at] = true;
    if (from == home + 1)
        return true;
    if (from != 0)
        put_copy(m, bytes_of(o), home, from - 1);
    else
        bring(m, value, home);
    if (from != 0 && !is_wanted(m, value, done) && !(m->locked >> (from - 1) & 1))
        m->holds[from - 1] = 0;
    m->holds[home] = value + 1;
    return true;
}

static void end_part(maker *m)
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
            to_stack(m, m->home[waits->at]);
    }
}

static void put_part(maker *m)
{
    for (uint32_t i = m->tr->first[m->part]; i < m->tr->first[m->part + 1] && !m->refused; i++)
        put_op(m, i);
    end_part(m);
}

static void put_loop(maker *m)
{
    const x86_mem count = argument(0);
    begin_part(m, CG_TRACE_LOOP);
    opjit_cg_x86_memory(m->out, MOVE_CODE, integers[0], &count);
    opjit_cg_x86_immediate(m->out, COMPARE, integers[0], 0);
    const size_t over = opjit_cg_x86_jump(m->out, X86_JUMP_LESS_EQUAL);
    opjit_cg_x86_align(m->out, LOOP_ALIGN);
    const size_t head = m->out->size;
    put_part(m);
    for (uint32_t i = 0; i < m->tr->numbers[CG_TRACE_LOOP]; i++) {
        const cg_trace_number *n = &m->tr->number[CG_TRACE_LOOP][i];
        const x86_mem by = argument(n->by_arg - 1);
        if (n->kind != CG_TRACE_MOVE || n->uses == 0)
            continue;
        if (n->by_arg)
            opjit_cg_x86_memory(m->out, ADD_CODE, m->number[i], &by);
        else if (n->by <= INT32_MAX && n->by >= INT32_MIN)
            opjit_cg_x86_immediate(m->out, ADD, m->number[i], (int32_t)n->by);
        else
            m->refused = true;
    }
    opjit_cg_x86_immediate(m->out, SUBTRACT, integers[0], 1);
    opjit_cg_x86_land(m->out, opjit_cg_x86_jump(m->out, X86_JUMP_NOT_EQUAL), head);
    opjit_cg_x86_land(m->out, over, m->out->size);
}

static void put_after(maker *m, cg_trace_part part, uint32_t frame)
{
    begin_part(m, part);
    put_part(m);
    opjit_rt_bytes_append(m->out, (const uint8_t[]){ 0xc5, 0xf8, 0x77 }, 3); /* vzeroupper */
    if (frame > 0)
        opjit_cg_x86_immediate(m->out, ADD, X86_SP, (int32_t)frame);
    for (uint32_t r = m->saved; r-- > 0;)
        opjit_cg_x86_pop(m->out, integers[SAVED + r]);
    opjit_rt_bytes_u8(m->out, 0xc3);
}

/* --- the function ------------------------------------------------------------------------------------------------- */

/* A load that one operation of the same statement uses is part of it, if it can be. */
static void fold_loads(maker *m)
{
    for (uint32_t i = 0; i < m->tr->count; i++) {
        const cg_trace_op *o = &m->tr->op[i];
        bool folded = o->what != CG_TRACE_OP;
        for (uint32_t k = 0; k < 3 && !folded; k++) {
            const cg_trace_op *l = o->a[k] != CG_TRACE_NONE && in_memory(o) >> k & 1 ? &m->tr->op[o->a[k]] : NULL;
            folded = l && (l->what == CG_TRACE_LOAD || (l->what == CG_TRACE_SPLAT && m->wide)) && l->uses == 1 &&
                     l->step == o->step;
            if (folded)
                m->folded[o->a[k]] = true;
        }
    }
}

/* The registers that what the tile holds has; false: there are too few, or no instructions for an operation. */
static bool give_homes(maker *m)
{
    uint64_t read = 0;
    for (uint32_t i = 0; i < m->tr->count; i++) {
        const cg_trace_op *o = &m->tr->op[i];
        if (o->what == CG_TRACE_IN && o->uses > 0)
            read |= UINT64_C(1) << o->at;
        if ((o->lanes != 1 && o->lanes != 4 && o->lanes != 8 && (o->lanes != 16 || !m->wide)) ||
            (o->what == CG_TRACE_OP && o->op == IR_DOT4_US && !m->dots))
            return false;
    }
    for (uint32_t r = 0; r < m->tr->t->registers; r++)
        m->home[r] = read >> r & 1 ? m->homes++ : 0;
    for (uint32_t i = 0; i < m->tr->count; i++)
        if (m->tr->op[i].what == CG_TRACE_OUT)
            m->hint[m->tr->op[i].a[0]] = m->home[m->tr->op[i].at] + 1;
    return m->homes + AT_LEAST <= m->vectors;
}

static void count_saved(maker *m)
{
    for (uint32_t p = 0; p < CG_TRACE_PARTS; p++) {
        uint32_t used = p == CG_TRACE_LOOP;
        for (uint32_t i = 0; i < m->tr->numbers[p]; i++)
            used += m->tr->number[p][i].uses > 0;
        used = used > INTEGERS ? INTEGERS : used;
        m->saved = used > SAVED + m->saved ? used - SAVED : m->saved;
    }
}

static void put_function(maker *m, uint32_t frame)
{
    m->slots = 0;
    m->out->size = 0;
    for (uint32_t i = 0; i < m->tr->count; i++)
        m->where[i] = m->slot[i] = 0;
    for (uint32_t r = 0; r < m->saved; r++)
        opjit_cg_x86_push(m->out, integers[SAVED + r]);
    if (frame > 0)
        opjit_cg_x86_immediate(m->out, SUBTRACT, X86_SP, (int32_t)frame);
    begin_part(m, CG_TRACE_BEFORE);
    put_part(m);
    put_loop(m);
    if (m->tr->choice) {
        const x86_mem choice = argument(m->tr->choice - 1);
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
    maker m = { .out = out };
    if (!rt_target_has(target, RT_X86_AVX2) || !rt_target_has(target, RT_X86_FMA))
        return false;
    m.wide = rt_target_has(target, RT_X86_AVX512F) && rt_target_has(target, RT_X86_AVX512BW) &&
             rt_target_has(target, RT_X86_AVX512VL);
    m.dots = m.wide && rt_target_has(target, RT_X86_AVX512VNNI);
    m.vectors = m.wide ? MOST_VECTORS : MOST_VECTORS / 2;
    m.tr = opjit_cg_trace(t, arena);
    if (!m.tr)
        return false;
    m.where = ARENA_ARRAY(arena, uint32_t, m.tr->count);
    m.slot = ARENA_ARRAY(arena, uint32_t, m.tr->count);
    m.hint = ARENA_ARRAY(arena, uint32_t, m.tr->count);
    m.folded = ARENA_ARRAY(arena, bool, m.tr->count);
    if (!m.where || !m.slot || !m.hint || !m.folded || !give_homes(&m))
        return false;
    fold_loads(&m);
    count_saved(&m);
    put_function(&m, 0);
    if (m.slots > 0)
        put_function(&m, SLOT * m.slots); /* now that it is known how many there are */
    if (m.refused)
        out->size = 0;
    return !m.refused;
}
