/* SPDX-License-Identifier: Apache-2.0 */
/* window_bytes.c - sums of products of bytes less zero points that are read through windows: steps are dot4,
 * of words of the bytes of four channels, or dot2, of two channels in 16 bits.  Part of place.
 *
 * As in bytes.c halves are less their zero points, so that padding is 0.  With dot4 zero points leave the loops: the
 * sum of (a - p) (b - q) over K bytes is, modulo 2^32,
 *
 *     sum ab - q sum a - p (sum b - K q)
 *
 * Padding is a byte that is p.  Where there are fewer than four channels, as in images, the bytes behind them are 0 in
 * both words, and so in no sum.  The windows' words are unsigned, those of the rows signed; bytes of the other kind are
 * moved by 128, and their zero point with them.  A stage before packs the words of the rows, another one makes their
 * sums, both once where the rows are constants; those of windows are made where taps are put side by side. */
#include "ir/passes/contract/window.h"

#include <string.h>

enum { BYTES = 4, ONES = 0x01010101, PARTS = 16 /* of a sum */ };
#define TOP_BITS UINT32_C(0x80808080)

/* Those bits that are of bytes of a word. */
static ir_ref bits_in_word(window *w, uint32_t bits)
{
    return opjit_ir_const(w->c.f, IR_I32, bits & (UINT32_MAX >> 8 * (BYTES - w->in_word)));
}

/* --- factors ------------------------------------------------------------------------------------------------------ */

/* A byte of a factor: `load` less `zero`, or 0 where `inside` is false.  zero, inside 0: none. */
typedef struct window_byte {
    ir_ref load, zero, inside;
} window_byte;

/* false: the factor is not of that form. */
static bool find_byte(const ir_func *f, ir_ref factor, window_byte *out)
{
    *out = (window_byte){ 0 };
    if (ir_at(f, factor)->op == IR_SELECT) {
        const ir_ref other = ir_operand(f, factor, 2);
        if (ir_at(f, other)->op != IR_CONST || ir_at(f, other)->imm != 0)
            return false;
        out->inside = ir_operand(f, factor, 0);
        factor = ir_operand(f, factor, 1);
    }
    if (ir_at(f, factor)->op == IR_SUB) {
        out->zero = ir_operand(f, factor, 1);
        factor = ir_operand(f, factor, 0);
    }
    if (ir_at(f, factor)->op != IR_CAST || ir_at(f, factor)->type != IR_I32)
        return false;
    out->load = ir_operand(f, factor, 0);
    const ir_node *n = ir_at(f, out->load);
    return n->op == IR_LOAD && (n->type == IR_I8 || n->type == IR_U8);
}

static bool is_bytes(window *w, uint32_t factor)
{
    ir_func *f = w->c.f;
    const ir_ref expr = w->values[factor];
    window_byte b;
    if (!find_byte(f, expr, &b))
        return false;
    const bool windows = factor == w->factor;
    const bool in_memory = w->c.r->sources[opjit_ir_root(f, ir_at(f, b.load)->ref)].def == 0;
    if (!windows && !in_memory)
        return false;
    for (uint32_t d = 0; !windows && d < w->c.out.rank; d++)
        if ((int32_t)d != w->rows && opjit_ir_window_moves(w, expr, (int32_t)d))
            return false;
    for (uint32_t d = 0; b.zero != 0 && d < w->c.out.rank; d++) /* the same for all windows, or all k of a row */
        if ((windows || (int32_t)d != w->rows) &&
            opjit_ir_uses(f, b.zero, opjit_ir_coordinate(f, w->c.statement, d)))
            return false;
    if ((b.zero != 0 && (opjit_ir_uses(f, b.zero, opjit_ir_reduced(f, w->c.statement)) ||
                         (w->halves && !opjit_ir_contract_is_small(f, b.zero)))) || (!windows && b.inside != 0))
        return false;
    w->zero[windows] = b.zero != 0 && !opjit_ir_contract_is_nothing(f, b.zero);
    w->moved[windows] = (ir_at(f, b.load)->type == IR_I8) == windows;
    w->flat_bytes = windows ? b.inside == 0 && in_memory : w->flat_bytes;
    return true;
}

/* Whether the four bytes of a word are padding together: taps without an axis are the first digit where there is one
 * channel, and one of them may be outside alone. */
static bool has_words(const window *w)
{
    window_byte b;
    return find_byte(w->c.f, w->probed, &b) &&
           (b.inside == 0 || !opjit_ir_uses(w->c.f, b.inside, w->digits[0].probe));
}

bool opjit_ir_window_is_bytes(window *w, const rt_target *target)
{
    window_digit *top = &w->digits[0];
    const bool halves = w->halves = !rt_target_has_dot4(target);
    if (w->c.def.type != IR_I32 || w->c.def.block == 1 || top->axis >= 0 ||
        (!halves && top->size % BYTES != 0 && top->size > BYTES) || w->rows < 0 || !is_bytes(w, w->factor) ||
        !is_bytes(w, 1 - w->factor) || !has_words(w))
        return false;
    w->in_word = halves ? 2 - top->size % 2 : top->size < BYTES ? top->size : BYTES;
    for (uint32_t i = 0; i < 2 && halves; i++)
        w->zero[i] = w->moved[i] = false;
    w->bytes = w->c.length;
    w->c.length /= w->in_word;
    top->size /= w->in_word;
    return true;
}

/* The zero point of a factor as the words have it; 0: none. */
static ir_ref zero_of(window *w, uint32_t factor, ir_ref row)
{
    ir_func *f = w->c.f;
    const bool windows = factor == w->factor;
    ir_ref at[9], digits[WINDOW_DIGITS];
    window_byte b;
    memcpy(at, w->c.at, sizeof at);
    for (uint32_t d = 0; d < WINDOW_DIGITS; d++)
        digits[d] = opjit_ir_index(f, 0);
    for (uint32_t a = 0; a < WINDOW_AXES; a++)
        if (w->axis[a].dimension >= 0)
            at[w->axis[a].dimension] = opjit_ir_index(f, 0);
    ir_ref zero = 0;
    if (w->zero[windows]) {
        if (!find_byte(f, w->values[factor], &b))
            return 0;
        zero = opjit_ir_window_made(w, b.zero, digits, row, at);
    }
    const ir_ref moved = opjit_ir_const(f, IR_I32, windows ? 128 : (uint32_t)-128);
    if (!w->moved[windows])
        return zero;
    return zero == 0 ? moved : ir_make2(f, IR_ADD, IR_I32, zero, moved);
}

ir_ref opjit_ir_window_word(window *w, uint32_t factor, const ir_ref *digits, ir_ref row, ir_ref *at)
{
    ir_func *f = w->c.f;
    window_byte b;
    ir_ref own[WINDOW_DIGITS], word = 0, padding = 0, inside = 0;
    if (!find_byte(f, w->values[factor], &b))
        return 0;
    memcpy(own, digits, w->digit_count * sizeof own[0]);
    for (int64_t i = 0; i < w->in_word; i++) {
        own[0] = contract_plus(&w->c, contract_times(&w->c, digits[0], w->in_word), opjit_ir_index(f, i));
        const ir_ref byte = opjit_ir_window_made(w, b.load, own, row, at);
        const ir_ref zero = w->halves && b.zero != 0 ? opjit_ir_window_made(w, b.zero, own, row, at) : 0;
        const ir_ref part = opjit_ir_contract_part(f, byte, zero, w->halves, i);
        word = i == 0 ? part : ir_make2(f, IR_OR, IR_I32, word, part);
    }
    if (b.inside != 0) {
        inside = opjit_ir_window_made(w, b.inside, own, row, at);
        padding = opjit_ir_const(f, IR_I32, 0);
        if (b.zero != 0 && !w->halves)
            padding = ir_make2(f, IR_MUL, IR_I32,
                               ir_make2(f, IR_AND, IR_I32, opjit_ir_window_made(w, b.zero, own, row, at),
                                        opjit_ir_const(f, IR_I32, 255)),
                               bits_in_word(w, ONES));
        word = ir_make3(f, IR_SELECT, IR_NONE, inside, word, padding);
    }
    return w->moved[factor == w->factor]
               ? ir_make2(f, IR_XOR, IR_I32, word, bits_in_word(w, TOP_BITS)) : word;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static uint32_t make_temp(window *w, uint32_t rank, int64_t rows, int64_t length)
{
    ir_tensor t = { .role = IR_TEMP, .type = IR_I32, .rank = rank, .align = 64 };
    t.sizes[0] = (uint64_t)rows;
    t.sizes[1] = rank > 1 ? (uint64_t)length : 0;
    opjit_ir_dense_strides(&t);
    return opjit_ir_span_bytes(&t, &t.bytes) ? opjit_ir_tensor(w->c.f, &t) : 0;
}

/* A stage over all rows of the temps. */
static ir_ref open_rows(window *w, int64_t all, block *body)
{
    const ir_ref stage = opjit_ir_stage(w->c.f, opjit_ir_index(w->c.f, 0), opjit_ir_index(w->c.f, all), 1);
    *body = (block){ .parent = stage };
    return stage;
}

/* The sums of the words that are packed, in a stage of their own: as many parts as a vector may have lanes. */
static void sum_rows(window *w, block *stages, int64_t all)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const int64_t parts = PARTS, whole = c->length / PARTS;
    const uint32_t sums = opjit_ir_contract_scratch(c, 1, &parts, 0);
    block body, of_v, of_l;
    const ir_ref stage = open_rows(w, all, &body), ones = opjit_ir_const(f, IR_I32, ONES);
    if (f->failed)
        return;
    const ir_ref p = ir_at(f, stage)->ref;
    ir_ref l = contract_loop(c, &body, opjit_ir_index(f, PARTS), &of_l), sum = 0;
    opjit_ir_contract_store(c, &of_l, sums, opjit_ir_const(f, IR_I32, 0), &l);
    for (int64_t last = 0; last < 2; last++) {
        const int64_t rounds = last ? 1 : whole, here = last ? c->length % PARTS : PARTS;
        if (rounds == 0 || here == 0)
            continue;
        const ir_ref v = last ? opjit_ir_index(f, whole) : contract_loop(c, &body, opjit_ir_index(f, rounds), &of_v);
        l = contract_loop(c, last ? &body : &of_v, opjit_ir_index(f, here), &of_l);
        const ir_ref k = contract_plus(c, contract_times(c, v, PARTS), l);
        const ir_ref word = opjit_ir_load(f, w->weights, (ir_ref[]){ p, k });
        opjit_ir_contract_store(c, &of_l, sums,
                                ir_make3(f, IR_DOT4_US, IR_I32, opjit_ir_load(f, sums, &l), ones, word), &l);
    }
    for (int64_t i = 0; i < PARTS; i++) {
        const ir_ref at = opjit_ir_index(f, i), part = opjit_ir_load(f, sums, &at);
        sum = i == 0 ? part : ir_make2(f, IR_ADD, IR_I32, sum, part);
    }
    opjit_ir_contract_store(c, &body, w->row_sums, sum, &p);
    opjit_ir_block_add(f, stages, stage);
}

bool opjit_ir_window_pack_rows(window *w, block *stages)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    const int64_t each = rows->blocks * rows->block, all = w->groups * each;
    const bool sums = w->zero[1] || w->moved[1];
    w->weights = make_temp(w, 2, all, c->length);
    w->row_sums = sums ? make_temp(w, 1, all, 0) : 0;
    block body, blocks[WINDOW_DIGITS];
    const ir_ref zero = opjit_ir_index(f, 0), stage = open_rows(w, all, &body);
    if (f->failed || w->weights == 0)
        return false;
    const ir_ref p = ir_at(f, stage)->ref;
    ir_ref at[9], digits[WINDOW_DIGITS], own[2] = { p, zero };
    for (uint32_t d = 0; d < 9; d++)
        at[d] = zero;
    memcpy(c->at, at, sizeof at);
    w->of_group = opjit_ir_block_let(f, &body, ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, each)));
    ir_ref row = ir_make2(f, IR_IMOD, IR_INDEX, p, opjit_ir_index(f, each));
    if (each > w->group)
        row = ir_make2(f, IR_IMIN, IR_INDEX, row, opjit_ir_index(f, w->group - 1));
    row = opjit_ir_block_let(f, &body, row);
    block *last = &body;
    for (uint32_t d = 0; d < w->digit_count; d++) {
        const int64_t size = w->digits[d].size, next = d > 0 && d + 2 == w->digit_count ? w->digits[d + 1].size : 1;
        const ir_ref t = contract_loop(c, last, opjit_ir_index(f, size * next), &blocks[d]);
        last = &blocks[d];
        own[1] = contract_plus(c, own[1], contract_times(c, t, w->digits[d].divide / next));
        digits[d] = ir_make2(f, IR_IDIV, IR_INDEX, t, opjit_ir_index(f, next));
        if (next > 1) /* the lines of taps lie one after the other */
            digits[++d] = ir_make2(f, IR_IMOD, IR_INDEX, t, opjit_ir_index(f, next));
    }
    opjit_ir_contract_store(c, last, w->weights, opjit_ir_window_word(w, 1 - w->factor, digits, row, at), own);
    opjit_ir_block_add(f, stages, stage);
    if (sums)
        sum_rows(w, stages, all);
    return !f->failed;
}

/* Row i of the block among those of the temps. */
static ir_ref packed_row(const window *w, ir_ref i)
{
    const contraction *c = &w->c;
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    return contract_plus(c, contract_plus(c, contract_times(c, w->of_group, rows->blocks * rows->block), w->first_row),
                         i);
}

ir_ref opjit_ir_window_row_word(window *w, ir_ref i, ir_ref k)
{
    return opjit_ir_load(w->c.f, w->weights, (ir_ref[]){ packed_row(w, i), contract_plus(&w->c, w->c.first_k, k) });
}

/* --- windows ------------------------------------------------------------------------------------------------------ */

static bool sums_windows(const window *w)
{
    return w->bytes > 0 && (w->zero[0] || w->moved[0]);
}

void opjit_ir_window_start_sums(window *w, block *list)
{
    const int64_t count = w->totals;
    block inside;
    if (!sums_windows(w))
        return;
    w->window_sums = opjit_ir_contract_scratch(&w->c, 1, &count, 0);
    const ir_ref j = contract_loop(&w->c, list, opjit_ir_index(w->c.f, count), &inside);
    opjit_ir_contract_store(&w->c, &inside, w->window_sums, opjit_ir_const(w->c.f, IR_I32, 0), &j);
}

void opjit_ir_window_add_sums(window *w, block *list, ir_ref first)
{
    contraction *c = &w->c;
    ir_func *f = c->f;
    block of_k, of_j;
    if (!sums_windows(w))
        return;
    const ir_ref k = contract_loop(c, list, c->here_k, &of_k);
    const ir_ref j = contract_loop(c, &of_k, opjit_ir_index(f, c->side[CONTRACT_COLUMNS].tile), &of_j);
    const ir_ref at = contract_plus(c, first, j);
    const ir_ref word = w->bare ? opjit_ir_load(f, w->copy, (ir_ref[]){ k, opjit_ir_index(f, 0), at })
                                : opjit_ir_load(f, w->panel, (ir_ref[]){ k, j });
    const ir_ref sum = opjit_ir_load(f, w->window_sums, &at);
    opjit_ir_contract_store(c, &of_j, w->window_sums,
                            ir_make3(f, IR_DOT4_US, IR_I32, sum, word, opjit_ir_const(f, IR_I32, ONES)), &at);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

void opjit_ir_window_row_zeros(window *w, block *list, ir_ref i, window_zeros *out)
{
    ir_func *f = w->c.f;
    *out = (window_zeros){ 0 };
    if (w->bytes == 0 || w->halves)
        return;
    const ir_ref q = zero_of(w, 1 - w->factor, contract_plus(&w->c, w->first_row, i)), p = zero_of(w, w->factor, i);
    out->row = q == 0 ? 0 : opjit_ir_block_let(f, list, q);
    if (p == 0)
        return;
    const ir_ref at = packed_row(w, i);
    ir_ref sum = opjit_ir_load(f, w->row_sums, &at);
    if (q != 0)
        sum = ir_make2(f, IR_SUB, IR_I32, sum,
                       ir_make2(f, IR_MUL, IR_I32, out->row, opjit_ir_const(f, IR_I32, (uint64_t)w->bytes)));
    out->all = opjit_ir_block_let(f, list, ir_make2(f, IR_MUL, IR_I32, p, sum));
}

ir_ref opjit_ir_window_less_zeros(window *w, ir_ref sum, const window_zeros *zeros, ir_ref place)
{
    ir_func *f = w->c.f;
    if (zeros->row != 0)
        sum = ir_make2(f, IR_SUB, IR_I32, sum,
                       ir_make2(f, IR_MUL, IR_I32, zeros->row, opjit_ir_load(f, w->window_sums, &place)));
    return zeros->all == 0 ? sum : ir_make2(f, IR_SUB, IR_I32, sum, zeros->all);
}
