/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c - products of bytes less zero points: steps are dot4, of words of four bytes, or dot2.  Part of place.
 *
 * Words of dot2 are of two bytes: those of rows each less its zero point, in 16 bits; those of columns as they are,
 * which the tile widens, and their zero point leaves the loops: the sum of (a - p) (b - q) is
 *
 *     sum (a - p) b - q sum (a - p)
 *
 * With dot4 both leave the loops, as the sum of (a - p) (b - q) over K bytes is, modulo 2^32,
 *
 *     sum ab - q sum a - p sum b + K p q
 *
 * with sums over rows and columns that are made where these are packed.  The words of one side are unsigned, those of
 * the other one signed: where both factors are of one type, one of them is moved by 128, and its zero point with it.
 * From here on c's k are words. */
#include "ir/passes/contract/contract.h"

enum {
    MOST_BYTES = 4, /* of a word */
    PARTIAL = 16, /* parts of a row's sum side by side */
    ONES = 0x01010101,
    HALF_ONES = 0x00010001,
};
#define TOP_BITS UINT32_C(0x80808080)

/* --- factors ------------------------------------------------------------------------------------------------------ */

/* The load that the factor casts; *zero: what is subtracted, 0: nothing.  0: it is no byte less a zero point. */
static ir_ref byte_of(const ir_func *f, ir_ref factor, ir_ref *zero)
{
    *zero = 0;
    if (ir_at(f, factor)->op == IR_SUB) {
        *zero = ir_operand(f, factor, 1);
        factor = ir_operand(f, factor, 0);
    }
    if (ir_at(f, factor)->op != IR_CAST || ir_at(f, factor)->type != IR_I32)
        return 0;
    const ir_ref load = ir_operand(f, factor, 0);
    const ir_type type = (ir_type)ir_at(f, load)->type;
    return ir_at(f, load)->op == IR_LOAD && (type == IR_I8 || type == IR_U8) ? load : 0;
}

bool opjit_ir_contract_is_small(const ir_func *f, ir_ref zero)
{
    enum { MOST = INT16_MAX - UINT8_MAX };
    const ir_node *n = ir_at(f, zero);
    const int32_t value = (int32_t)n->imm;
    if (n->op == IR_CONST)
        return value >= -MOST && value <= MOST;
    return n->op == IR_CAST && opjit_ir_type_size((ir_type)ir_at(f, ir_operand(f, zero, 0))->type) == 1;
}

bool opjit_ir_contract_is_nothing(const ir_func *f, ir_ref zero)
{
    while (ir_at(f, zero)->op == IR_CAST)
        zero = ir_operand(f, zero, 0);
    if (ir_at(f, zero)->op != IR_LOAD)
        return false;
    const ir_tensor *t = &f->tensors[opjit_ir_root(f, ir_at(f, zero)->ref)];
    const uint8_t *data = t->data;
    uint64_t i = 0;
    while (t->role == IR_CONSTANT && data != NULL && i < t->bytes && data[i] == 0)
        i++;
    return i > 0 && i == t->bytes;
}

/* Whether words are of two bytes, which steps multiply in 16 bits. */
static bool has_halves(const contraction *c)
{
    return c->bytes > 0 && c->in_word < MOST_BYTES;
}

ir_type opjit_ir_contract_column_type(const contraction *c)
{
    if (!has_halves(c))
        return (ir_type)c->def.type;
    return c->side[CONTRACT_COLUMNS].is_signed ? IR_I16 : IR_U16;
}

static bool is_bytes(const contraction *c, contract_side *s)
{
    ir_func *f = c->f;
    ir_ref zero;
    const bool halves = c->in_word < MOST_BYTES, rows = s == &c->side[CONTRACT_ROWS];
    const ir_ref load = byte_of(f, ir_operand(f, ir_operand(f, c->statement, 0), s->factor), &zero);
    if (load == 0 || c->r->sources[opjit_ir_root(f, ir_at(f, load)->ref)].def != 0 ||
        (zero != 0 && (opjit_ir_uses(f, zero, opjit_ir_reduced(f, c->statement)) ||
                       (halves && rows && !opjit_ir_contract_is_small(f, zero)))))
        return false;
    s->zero = zero != 0 && !(halves && (rows || opjit_ir_contract_is_nothing(f, zero)));
    s->is_signed = ir_at(f, load)->type == IR_I8;
    return true;
}

bool opjit_ir_contract_is_bytes(contraction *c, const rt_target *target)
{
    contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    c->in_word = rt_target_has_dot4(target) ? MOST_BYTES : MOST_BYTES / 2;
    if (c->def.type != IR_I32 || c->def.block == 1 || !is_bytes(c, rows) || !is_bytes(c, columns))
        return false;
    if (c->in_word == MOST_BYTES && rows->is_signed == columns->is_signed) {
        rows->moved = true;
        rows->is_signed = !rows->is_signed;
    }
    c->bytes = c->length;
    c->length = (c->length + c->in_word - 1) / c->in_word;
    return true;
}

/* The load of the byte for k of row or column `own`, and its zero point as the words have it. */
static ir_ref factor_at(contraction *c, uint32_t side, ir_ref own, ir_ref k, ir_ref *zero)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[side];
    const ir_ref factor = opjit_ir_contract_factor_at(c, side, own, k);
    const ir_ref load = factor == 0 ? 0 : byte_of(f, factor, zero);
    c->in.refused = c->in.refused || load == 0;
    if (load == 0)
        return 0;
    const ir_ref moved = opjit_ir_const(f, IR_I32, s->is_signed ? (uint32_t)-128 : 128);
    if (s->moved)
        *zero = *zero == 0 ? moved : ir_make2(f, IR_ADD, IR_I32, *zero, moved);
    return load;
}

ir_ref opjit_ir_contract_part(ir_func *f, ir_ref byte, ir_ref zero, bool halves, int64_t i)
{
    const bool is_signed = ir_at(f, byte)->type == IR_I8;
    const uint64_t bits = halves ? 16 : 8;
    ir_ref part = is_signed && !halves ? ir_make1(f, IR_BITS, IR_U8, byte) : byte;
    part = ir_make1(f, IR_CAST, IR_I32, part);
    if (halves && zero != 0)
        part = ir_make2(f, IR_SUB, IR_I32, part, zero);
    if (halves && i == 0 && (is_signed || zero != 0))
        part = ir_make2(f, IR_AND, IR_I32, part, opjit_ir_const(f, IR_I32, UINT16_MAX));
    return i == 0 ? part : ir_make2(f, IR_SHL, IR_I32, part, opjit_ir_const(f, IR_I32, bits * (uint64_t)i));
}

/* Part i of a column's two bytes. */
static ir_ref byte_part(contraction *c, ir_ref byte, int64_t i)
{
    ir_func *f = c->f;
    const ir_type type = opjit_ir_contract_column_type(c);
    const ir_ref bits = ir_at(f, byte)->type == IR_I8 ? ir_make1(f, IR_BITS, IR_U8, byte) : byte;
    const ir_ref part = ir_make1(f, IR_CAST, type, bits);
    return i == 0 ? part : ir_make2(f, IR_SHL, type, part, opjit_ir_const(f, type, 8));
}

/* Word w; partial: the last one, whose parts behind the last k are zeros. */
static ir_ref word_at(contraction *c, uint32_t side, ir_ref own, ir_ref w, bool partial)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[side];
    const bool halves = has_halves(c), bytes = halves && side == CONTRACT_COLUMNS;
    const int64_t count = partial ? c->bytes % c->in_word : c->in_word;
    ir_ref word = 0;
    for (int64_t i = 0; i < count; i++) {
        const ir_ref k = contract_plus(c, contract_times(c, w, c->in_word), opjit_ir_index(f, i));
        ir_ref zero;
        const ir_ref byte = factor_at(c, side, own, k, &zero);
        if (byte == 0)
            return 0;
        const ir_ref part = bytes ? byte_part(c, byte, i) : opjit_ir_contract_part(f, byte, zero, halves, i);
        word = i == 0 ? part : ir_make2(f, IR_OR, (ir_type)ir_at(f, part)->type, word, part);
    }
    const uint32_t top = TOP_BITS & (partial ? (UINT32_C(1) << 8 * count) - 1 : UINT32_MAX);
    return s->moved ? ir_make2(f, IR_XOR, IR_I32, word, opjit_ir_const(f, IR_I32, top)) : word;
}

/* sum + the products of the words of rows and columns, in either order. */
static ir_ref dot4(ir_func *f, const contract_side *s, ir_ref word, ir_ref other, ir_ref sum)
{
    return s->is_signed ? ir_make3(f, IR_DOT4_US, IR_I32, sum, other, word)
                        : ir_make3(f, IR_DOT4_US, IR_I32, sum, word, other);
}

ir_ref opjit_ir_contract_step(contraction *c, ir_ref row, ir_ref column, ir_ref sum)
{
    const contract_side *rows = &c->side[CONTRACT_ROWS];
    if (c->bytes > 0)
        return has_halves(c) ? ir_make3(c->f, IR_DOT2, IR_I32, sum, row, ir_make1(c->f, IR_HALVES, IR_I32, column))
                             : dot4(c->f, rows, row, column, sum);
    return rows->factor == 0 ? ir_dot_step(c->f, (ir_type)c->def.type, row, column, sum)
                             : ir_dot_step(c->f, (ir_type)c->def.type, column, row, sum);
}

/* --- sums over rows and columns ----------------------------------------------------------------------------------- */

/* Whether the side's sums are needed: the other one has a zero point. */
static bool has_sums(const contraction *c, uint32_t side)
{
    return c->side[1 - side].zero || c->side[1 - side].moved;
}

/* sum + the parts of a word of the side. */
static ir_ref with_parts(contraction *c, uint32_t side, ir_ref word, ir_ref sum)
{
    ir_func *f = c->f;
    return has_halves(c) ? ir_make3(f, IR_DOT2, IR_I32, sum, word, opjit_ir_const(f, IR_I32, HALF_ONES))
                         : dot4(f, &c->side[side], word, opjit_ir_const(f, IR_I32, ONES), sum);
}

/* Adds those of the word to the element of the side's sums. */
static void add_to_sums(contraction *c, block *list, uint32_t side, ir_ref word, const ir_ref *at)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[side];
    const ir_ref sum = opjit_ir_load(f, s->sums, at);
    opjit_ir_contract_store(c, list, s->sums, with_parts(c, side, word, sum), at);
}

/* The sums of all columns that are in a temp, in another: a stage after the one that makes it. */
void opjit_ir_contract_share_sums(contraction *c, block *stages, int64_t matrices, int64_t tiles)
{
    ir_func *f = c->f;
    contract_side *s = &c->side[CONTRACT_COLUMNS];
    ir_tensor t = { .role = IR_TEMP, .type = IR_I32, .rank = 3, .align = 64,
                    .sizes = { (uint64_t)matrices, (uint64_t)tiles, (uint64_t)s->tile } };
    if (!has_sums(c, CONTRACT_COLUMNS))
        return;
    opjit_ir_dense_strides(&t);
    if (!opjit_ir_span_bytes(&t, &t.bytes))
        return;
    c->column_sums = opjit_ir_tensor(f, &t);
    const int64_t used = (s->size + s->tile - 1) / s->tile;
    const uint32_t sums = opjit_ir_contract_scratch(c, 1, &s->tile, 0);
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, matrices * used), 1);
    if (f->failed)
        return;
    const ir_ref p = ir_at(f, stage)->ref;
    block body = { .parent = stage }, of_j, of_q, of_k;
    const ir_ref m = opjit_ir_block_let(f, &body, opjit_ir_contract_digit(c, p, used, matrices));
    const ir_ref n = opjit_ir_block_let(f, &body, opjit_ir_contract_digit(c, p, 1, used));
    ir_ref j = contract_loop(c, &body, opjit_ir_index(f, s->tile), &of_j);
    opjit_ir_contract_store(c, &of_j, sums, opjit_ir_const(f, IR_I32, 0), &j);
    const ir_ref q = contract_loop(c, &body, opjit_ir_index(f, contract_blocks_of_k(c)), &of_q);
    opjit_ir_contract_set_k(c, &of_q, q);
    const ir_ref k = contract_loop(c, &of_q, c->here_k, &of_k);
    j = contract_loop(c, &of_k, opjit_ir_index(f, s->tile), &of_j);
    const ir_ref word = opjit_ir_load(f, s->scratch, (ir_ref[]){ m, q, n, k, j });
    const ir_ref sum = opjit_ir_load(f, sums, &j);
    opjit_ir_contract_store(c, &of_j, sums, with_parts(c, CONTRACT_COLUMNS, word, sum), &j);
    j = contract_loop(c, &body, opjit_ir_index(f, s->tile), &of_j);
    opjit_ir_contract_store(c, &of_j, c->column_sums, opjit_ir_load(f, sums, &j), (ir_ref[]){ m, n, j });
    opjit_ir_block_add(f, stages, stage);
}

/* Those of the block, out of that temp. */
static void take_sums(contraction *c, block *list)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    block of_n, of_j;
    const ir_ref n = contract_loop(c, list, opjit_ir_index(f, s->block / s->tile), &of_n);
    const ir_ref j = contract_loop(c, &of_n, opjit_ir_index(f, s->tile), &of_j);
    const ir_ref sum = opjit_ir_load(f, c->column_sums, (ir_ref[]){ c->matrix, contract_plus(c, s->first_tile, n), j });
    const ir_ref at = contract_plus(c, contract_times(c, n, s->tile), j);
    opjit_ir_contract_store(c, &of_j, s->sums, sum, &at);
}

void opjit_ir_contract_byte_sums(contraction *c, block *list)
{
    for (uint32_t side = 0; side < CONTRACT_SIDES; side++) {
        contract_side *s = &c->side[side];
        const int64_t count = side == CONTRACT_ROWS ? s->block * PARTIAL : s->block;
        block inside;
        if (!has_sums(c, side))
            continue;
        s->sums = opjit_ir_contract_scratch(c, 1, &count, 0);
        if (side == CONTRACT_COLUMNS && s->shared) {
            take_sums(c, list);
            continue;
        }
        const ir_ref i = contract_loop(c, list, opjit_ir_index(c->f, count), &inside);
        opjit_ir_contract_store(c, &inside, s->sums, opjit_ir_const(c->f, IR_I32, 0), &i);
    }
}

/* Where part l of the row's sum is. */
static ir_ref part_of(contraction *c, ir_ref row, ir_ref l)
{
    return contract_plus(c, contract_times(c, row, PARTIAL), l);
}

/* --- packing ------------------------------------------------------------------------------------------------------ */

/* The words of a block of k, counted from the first one of all.  Whole ones end at `whole`; the partial one is number
 * `last`, if that is below `end`. */
typedef struct words {
    ir_ref first, whole, last, end;
    bool partial;
} words;

static words words_of(contraction *c, block *list)
{
    ir_func *f = c->f;
    const ir_ref full = contract_plus(c, c->first_k, opjit_ir_index(f, c->def.block));
    const ir_ref whole = opjit_ir_index(f, c->bytes / c->in_word), all = opjit_ir_index(f, c->length);
    words w = { .first = c->first_k, .last = whole, .partial = c->bytes % c->in_word != 0 };
    if (c->length <= c->def.block) {
        w.whole = whole;
        w.end = all;
    } else {
        const bool even = c->length % c->def.block == 0;
        w.end = opjit_ir_block_let(f, list, even ? full : ir_make2(f, IR_IMIN, IR_INDEX, full, all));
        w.whole = w.partial ? opjit_ir_block_let(f, list, ir_make2(f, IR_IMIN, IR_INDEX, full, whole)) : w.end;
    }
    return w;
}

/* A loop over words; *at: the word's place in scratch.  For the partial one the loop is a condition. */
static ir_ref word_loop(contraction *c, block *list, const words *w, bool partial, ir_ref *at, block *out)
{
    const ir_ref loop = opjit_ir_for(c->f, partial ? w->last : w->first, partial ? w->end : w->whole, 1);
    *out = (block){ .parent = loop };
    opjit_ir_block_add(c->f, list, loop);
    const ir_ref var = partial ? w->last : ir_at(c->f, loop)->ref;
    if (partial)
        *at = opjit_ir_index(c->f, c->bytes / c->in_word % c->def.block);
    else
        *at = ir_make2(c->f, IR_ISUB, IR_INDEX, var, w->first);
    return var;
}

/* The words of tile n; tiles: 0, or how many whole tiles, of which the same word of all comes before the next one. */
static void pack_columns(contraction *c, block *list, ir_ref n, ir_ref tiles, const words *of_block, bool partial,
                         bool past)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_COLUMNS];
    block of_w, of_n, of_j;
    ir_ref at[5], k;
    const ir_ref w = word_loop(c, list, of_block, partial, &k, &of_w);
    if (tiles != 0)
        n = contract_loop(c, &of_w, tiles, &of_n);
    const ir_ref here = contract_times(c, n, s->tile);
    const ir_ref j = contract_loop(c, tiles != 0 ? &of_n : &of_w, opjit_ir_index(f, s->tile), &of_j);
    opjit_ir_contract_copied_at(c, n, k, j, at);
    const ir_ref own = contract_plus(c, contract_plus(c, s->first, here), j);
    ir_ref word = word_at(c, CONTRACT_COLUMNS, own, w, partial);
    if (word == 0)
        return;
    if (past) {
        const ir_ref inside = ir_make2(f, IR_LT, IR_BOOL, own, opjit_ir_index(f, s->size));
        word = ir_make3(f, IR_SELECT, IR_NONE, inside, word,
                         opjit_ir_const(f, opjit_ir_contract_column_type(c), 0));
    }
    word = opjit_ir_block_let(f, &of_j, word);
    opjit_ir_contract_store(c, &of_j, s->scratch, word, at);
    if (s->sums != 0)
        add_to_sums(c, &of_j, CONTRACT_COLUMNS, word, (ir_ref[]){ contract_plus(c, here, j) });
}

static void pack_words(contraction *c, block *list, ir_ref n, ir_ref tiles, bool past)
{
    const words w = words_of(c, list);
    pack_columns(c, list, n, tiles, &w, false, past);
    if (w.partial)
        pack_columns(c, list, n, tiles, &w, true, past);
}

void opjit_ir_contract_pack_column_words(contraction *c, block *list, ir_ref n, bool past)
{
    pack_words(c, list, n, 0, past);
}

void opjit_ir_contract_pack_lines_of_words(contraction *c, block *list, ir_ref tiles)
{
    pack_words(c, list, 0, tiles, false);
}

static void pack_row(contraction *c, block *list, ir_ref i, ir_ref row, const words *of_block, bool partial)
{
    block inside;
    ir_ref at[2] = { i };
    const ir_ref w = word_loop(c, list, of_block, partial, &at[1], &inside);
    const ir_ref word = word_at(c, CONTRACT_ROWS, row, w, partial);
    if (word != 0)
        opjit_ir_contract_store(c, &inside, c->side[CONTRACT_ROWS].scratch, word, at);
}

/* Adds words from `from` to from + here of packed row i of the tile, which is `row` of the block, to its sums. */
static void sum_parts(contraction *c, block *list, ir_ref i, ir_ref row, ir_ref from, ir_ref here)
{
    block inside;
    const ir_ref l = contract_loop(c, list, here, &inside);
    const ir_ref word = opjit_ir_load(c->f, c->side[CONTRACT_ROWS].scratch, (ir_ref[]){ i, contract_plus(c, from, l) });
    add_to_sums(c, &inside, CONTRACT_ROWS, word, (ir_ref[]){ part_of(c, row, l) });
}

static void sum_row(contraction *c, block *list, ir_ref i, ir_ref row)
{
    ir_func *f = c->f;
    const int64_t most = c->length < c->def.block ? c->length : c->def.block;
    const ir_ref parts = opjit_ir_index(f, PARTIAL), up = contract_plus(c, c->here_k, opjit_ir_index(f, PARTIAL - 1));
    block of_v;
    if (most <= PARTIAL) {
        sum_parts(c, list, i, row, opjit_ir_index(f, 0), c->here_k);
        return;
    }
    const ir_ref rounds = opjit_ir_block_let(f, list, ir_make2(f, IR_IDIV, IR_INDEX, up, parts));
    const ir_ref done = contract_times(c, contract_loop(c, list, rounds, &of_v), PARTIAL);
    ir_ref here = parts;
    if (most % PARTIAL != 0 || c->length % most % PARTIAL != 0)
        here = ir_make2(f, IR_IMIN, IR_INDEX, parts, ir_make2(f, IR_ISUB, IR_INDEX, c->here_k, done));
    sum_parts(c, &of_v, i, row, done, opjit_ir_block_let(f, &of_v, here));
}

void opjit_ir_contract_pack_row_words(contraction *c, block *list, ir_ref first, ir_ref in_block)
{
    ir_func *f = c->f;
    const contract_side *s = &c->side[CONTRACT_ROWS];
    block of_i;
    const words w = words_of(c, list);
    const ir_ref i = contract_loop(c, list, opjit_ir_index(f, s->tile), &of_i);
    ir_ref row = contract_plus(c, first, i);
    if (!contract_is_even(s))
        row = opjit_ir_block_let(f, &of_i, ir_make2(f, IR_IMIN, IR_INDEX, row, opjit_ir_index(f, s->size - 1)));
    pack_row(c, &of_i, i, row, &w, false);
    if (w.partial)
        pack_row(c, &of_i, i, row, &w, true);
    if (s->sums != 0)
        sum_row(c, &of_i, i, contract_plus(c, in_block, i));
}

/* --- results ------------------------------------------------------------------------------------------------------ */

/* The zero point of the side as the words have it; 0: none. */
static ir_ref zero_of(contraction *c, uint32_t side, ir_ref own)
{
    ir_ref zero = 0;
    factor_at(c, side, own, opjit_ir_index(c->f, 0), &zero);
    return zero;
}

void opjit_ir_contract_row_zeros(contraction *c, block *list, ir_ref i, contract_zeros *out)
{
    ir_func *f = c->f;
    const contract_side *rows = &c->side[CONTRACT_ROWS], *columns = &c->side[CONTRACT_COLUMNS];
    *out = (contract_zeros){ 0 };
    if (rows->sums == 0 && columns->sums == 0)
        return;
    const ir_ref zero = has_halves(c) ? 0 : zero_of(c, CONTRACT_ROWS, contract_plus(c, rows->first, i));
    if (columns->sums != 0)
        out->zero = zero == 0 ? opjit_ir_const(f, IR_I32, 0) : opjit_ir_block_let(f, list, zero);
    ir_ref sum = 0;
    for (int64_t l = 0; l < PARTIAL && rows->sums != 0; l++) {
        const ir_ref at = part_of(c, i, opjit_ir_index(f, l)), part = opjit_ir_load(f, rows->sums, &at);
        sum = l == 0 ? part : ir_make2(f, IR_ADD, IR_I32, sum, part);
    }
    if (sum != 0 && zero != 0)
        sum = ir_make2(f, IR_SUB, IR_I32, sum,
                       ir_make2(f, IR_MUL, IR_I32, zero, opjit_ir_const(f, IR_I32, (uint64_t)c->bytes)));
    out->sum = sum == 0 ? 0 : opjit_ir_block_let(f, list, sum);
}

ir_ref opjit_ir_contract_less_zeros(contraction *c, ir_ref sum, const contract_zeros *row, ir_ref j)
{
    ir_func *f = c->f;
    const contract_side *columns = &c->side[CONTRACT_COLUMNS];
    if (row->sum != 0) {
        const ir_ref zero = zero_of(c, CONTRACT_COLUMNS, contract_plus(c, columns->first, j));
        sum = zero == 0 ? sum : ir_make2(f, IR_SUB, IR_I32, sum, ir_make2(f, IR_MUL, IR_I32, row->sum, zero));
    }
    if (row->zero != 0) {
        const ir_ref column = opjit_ir_load(f, columns->sums, &j);
        sum = ir_make2(f, IR_SUB, IR_I32, sum, ir_make2(f, IR_MUL, IR_I32, column, row->zero));
    }
    return sum;
}
