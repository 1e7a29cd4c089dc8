/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.c - selection by counting and sorting by a network (ranking.h).
 *
 * Selection finds the least key that is chosen bit by bit, from the highest on: a bit is set where as many keys as are
 * wanted are still at least as great.  A running sum of the keys above it and of the first ones that are equal to it
 * numbers the chosen ones; a binary search in that sum finds each.
 *
 * Of many keys few of which are wanted, blocks of neighbours are ranked first by their greatest key: the blocks that
 * come first, as many as keys are wanted, have all of these in them.  For of the keys of another block each comes after
 * the greatest key of each of these. */
#include "frontend/ops/ranking.h"

#include <string.h>

#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"
#include "ir/eval/numerics.h"

/* Keys for each one wanted from which on they are ranked in blocks. */
#define BLOCKS_FROM 64
/* How many columns are sorted side by side, and the elements from which on those of few rows are. */
#define COLUMNS 16
#define COLUMNS_FROM 64

/* --- statements --------------------------------------------------------------------------------------------------- */

static ir_ref number(ir_func *f, ir_type type, uint64_t value)
{
    return opjit_ir_const(f, type, value);
}

static ir_ref op2(ir_func *f, ir_op op, ir_type type, ir_ref a, ir_ref b)
{
    return ir_expr2(f, op, type, a, b);
}

static ir_ref choose(ir_func *f, ir_type type, ir_ref condition, ir_ref x, ir_ref y)
{
    return ir_expr3(f, IR_SELECT, type, condition, x, y);
}

static fe_tensor shape_of(const ranking *r, uint64_t size)
{
    fe_tensor shape = *r->rows;

    shape.sizes[1] = size;
    return shape;
}

ir_ref opjit_fe_ranking_def(const ranking *r, ir_type type, uint64_t size)
{
    const fe_tensor shape = shape_of(r, size);
    return opjit_fe_def_to(r->l, type, &shape);
}

/* Reduces `count` values for each element, in lanes: each element's are side by side. */
static ir_ref reduce(const ranking *r, ir_kind kind, ir_type type, uint64_t size, uint64_t count)
{
    const fe_tensor shape = shape_of(r, size);
    const ir_ref def = opjit_fe_reduce_to(r->l, kind, type, &shape, count);

    if (!r->l->f->failed)
        r->l->f->nodes[def].imm = IR_REDUCE_LANES;
    return def;
}

ir_ref opjit_fe_ranking_last(const ranking *r, ir_ref statement)
{
    return r->l->f->failed ? 0 : opjit_ir_coordinate(r->l->f, statement, 1);
}

static ir_ref load_in(const ranking *r, ir_ref def, ir_ref row, ir_ref last)
{
    ir_func *f = r->l->f;
    const ir_ref at[2] = { row, last };

    return f->failed ? 0 : opjit_ir_load(f, ir_at(f, def)->ref, at);
}

ir_ref opjit_fe_ranking_load(const ranking *r, ir_ref def, ir_ref statement, ir_ref last)
{
    return r->l->f->failed ? 0 : load_in(r, def, opjit_ir_coordinate(r->l->f, statement, 0), last);
}

/* The one element that a row of `def` has. */
static ir_ref load_one(const ranking *r, ir_ref def, ir_ref statement)
{
    return opjit_fe_ranking_load(r, def, statement, opjit_ir_index(r->l->f, 0));
}

ir_ref opjit_fe_ranking_index(ir_func *f, ir_ref x, uint64_t size)
{
    return opjit_fe_inside(f, ir_expr1(f, IR_TO_INDEX, IR_INDEX, x), size);
}

/* --- selection by counting ---------------------------------------------------------------------------------------- */

/* In each row, the number of keys that compare so with the row's element of `limit`. */
static ir_ref count_keys(const ranking *r, ir_ref keys, uint64_t size, ir_op op, ir_ref limit)
{
    ir_func *f = r->l->f;
    const ir_ref counted = reduce(r, IR_SUM, IR_U32, 1, size);

    if (f->failed)
        return 0;
    const ir_ref key = opjit_fe_ranking_load(r, keys, counted, opjit_ir_reduced(f, counted));
    const ir_ref counts = op2(f, op, IR_BOOL, load_one(r, limit, counted), key);
    opjit_fe_set(r->l, counted, choose(f, IR_U32, counts, number(f, IR_U32, 1), number(f, IR_U32, 0)));
    return counted;
}

/* The least of the `count` greatest keys of each row, which are IR_U32 below 2^bits. */
static ir_ref least_of(const ranking *r, ir_ref keys, uint32_t bits, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    ir_ref least = opjit_fe_ranking_def(r, IR_U32, 1);

    opjit_fe_set(r->l, least, number(f, IR_U32, 0));
    for (uint32_t bit = bits; bit-- > 0 && !f->failed;) {
        const ir_ref tried = opjit_fe_ranking_def(r, IR_U32, 1);
        opjit_fe_set(r->l, tried,
                     op2(f, IR_OR, IR_U32, load_one(r, least, tried), number(f, IR_U32, UINT64_C(1) << bit)));
        const ir_ref counted = count_keys(r, keys, size, IR_LE, tried), next = opjit_fe_ranking_def(r, IR_U32, 1);
        const ir_ref enough = op2(f, IR_LE, IR_BOOL, number(f, IR_U32, count), load_one(r, counted, next));
        opjit_fe_set(r->l, next, choose(f, IR_U32, enough, load_one(r, tried, next), load_one(r, least, next)));
        least = next;
    }
    return least;
}

/* A half of a key of 64 bits. */
static ir_ref half_of(ir_func *f, ir_ref key, bool high)
{
    return ir_expr1(f, IR_CAST, IR_U32, high ? op2(f, IR_SHR, IR_U64, key, number(f, IR_U64, 32)) : key);
}

/* The least of the `count` greatest keys.  Of keys of 64 bits the upper half is found first; then keys with a greater
 * one count as if their lower half were the greatest, and those with a less one as 0. */
static ir_ref least_chosen(const ranking *r, ir_ref keys, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;

    if (r->type == IR_U32)
        return least_of(r, keys, r->bits, size, count);
    const ir_ref upper = opjit_fe_ranking_def(r, IR_U32, size);
    const ir_ref whole = opjit_fe_ranking_load(r, keys, upper, opjit_fe_ranking_last(r, upper));
    opjit_fe_set(r->l, upper, f->failed ? 0 : half_of(f, whole, true));
    const ir_ref limit = least_of(r, upper, 32, size, count), lower = opjit_fe_ranking_def(r, IR_U32, size);
    const ir_ref key = opjit_fe_ranking_load(r, keys, lower, opjit_fe_ranking_last(r, lower)),
                 own = f->failed ? 0 : half_of(f, key, true), same = f->failed ? 0 : load_one(r, limit, lower);
    const ir_ref equal = choose(f, IR_U32, op2(f, IR_EQ, IR_BOOL, own, same), half_of(f, key, false),
                                number(f, IR_U32, 0));
    opjit_fe_set(r->l, lower,
                 choose(f, IR_U32, op2(f, IR_LT, IR_BOOL, same, own), number(f, IR_U32, UINT32_MAX), equal));
    const ir_ref low = least_of(r, lower, 32, size, count), least = opjit_fe_ranking_def(r, IR_U64, 1);
    const ir_ref high = ir_expr1(f, IR_CAST, IR_U64, load_one(r, limit, least));
    opjit_fe_set(r->l, least,
                 op2(f, IR_OR, IR_U64, op2(f, IR_SHL, IR_U64, high, number(f, IR_U64, 32)),
                     ir_expr1(f, IR_CAST, IR_U64, load_one(r, low, least))));
    return least;
}

/* The running numbers of keys above `least`, in the upper half, and of those equal to it, in the lower one. */
static ir_ref run(const ranking *r, ir_ref keys, uint64_t size, ir_ref least)
{
    ir_func *f = r->l->f;
    const fe_tensor shape = shape_of(r, size);
    const ir_ref sums = opjit_fe_scan_to(r->l, IR_SUM, IR_U64, &shape, 1, false);

    if (f->failed)
        return 0;
    const ir_ref key = opjit_fe_ranking_load(r, keys, sums, opjit_ir_reduced(f, sums)),
                 limit = load_one(r, least, sums), none = number(f, IR_U64, 0);
    const ir_ref equal = choose(f, IR_U64, op2(f, IR_EQ, IR_BOOL, key, limit), number(f, IR_U64, 1), none);
    opjit_fe_set(r->l, sums,
                 choose(f, IR_U64, op2(f, IR_LT, IR_BOOL, limit, key), number(f, IR_U64, UINT64_C(1) << 32), equal));
    return sums;
}

/* How many of a row's keys up to each place are chosen; above: of the whole row, the number of keys above the least
 * chosen one. */
static ir_ref chosen_until(const ranking *r, ir_ref sums, ir_ref above, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    const ir_ref until = opjit_fe_ranking_def(r, IR_U32, size);
    const ir_ref both = opjit_fe_ranking_load(r, sums, until, opjit_fe_ranking_last(r, until));

    if (f->failed)
        return 0;
    const ir_ref room = op2(f, IR_SUB, IR_U32, number(f, IR_U32, count), load_one(r, above, until));
    opjit_fe_set(r->l, until,
                 op2(f, IR_ADD, IR_U32, half_of(f, both, true), op2(f, IR_MIN, IR_U32, half_of(f, both, false), room)));
    return until;
}

/* Where the chosen keys are: of each one's number, how many places have at most as many chosen ones up to them. */
static ir_ref find_chosen(const ranking *r, ir_ref until, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    ir_ref place = opjit_fe_ranking_def(r, IR_U32, count);
    uint64_t step = 1;

    opjit_fe_set(r->l, place, number(f, IR_U32, 0));
    while (step < size)
        step *= 2;
    for (; step > 0 && !f->failed; step /= 2) {
        const ir_ref next = opjit_fe_ranking_def(r, IR_U32, count), own = opjit_fe_ranking_last(r, next),
                     before = opjit_fe_ranking_load(r, place, next, own);
        const ir_ref last = moves_add(f, ir_expr1(f, IR_TO_INDEX, IR_INDEX, before), (int64_t)step - 1);
        const ir_ref chosen = opjit_fe_ranking_load(r, until, next, opjit_fe_inside(f, last, size));
        const ir_ref behind = op2(f, IR_LE, IR_BOOL, chosen, ir_expr1(f, IR_ELEM, IR_U32, own));
        opjit_fe_set(
            r->l, next,
            op2(f, IR_ADD, IR_U32, before, choose(f, IR_U32, behind, number(f, IR_U32, step), number(f, IR_U32, 0))));
        place = next;
    }
    return place;
}

/* --- selection in blocks ------------------------------------------------------------------------------------------ */

/* A power of two near the root of how many keys there are for each one wanted. */
static uint64_t block_of(uint64_t size, uint64_t count)
{
    uint64_t block = 2;

    while (block * block < size / count)
        block *= 2;
    return block;
}

/* A row as whole blocks, and the rest of it, which is ranked with the keys of the blocks that are found. */
typedef struct blocks {
    uint64_t block, whole, wanted, rest;
} blocks;

/* Where the j-th of these keys is in its row. */
static ir_ref place_in(const ranking *r, const blocks *b, ir_ref found, ir_ref statement, ir_ref j)
{
    ir_func *f = r->l->f;
    const ir_ref size = opjit_ir_index(f, (int64_t)b->block),
                 in_blocks = opjit_ir_index(f, (int64_t)(b->wanted * b->block));
    const ir_ref number = opjit_fe_inside(f, op2(f, IR_IDIV, IR_INDEX, j, size), b->wanted);
    const ir_ref own = opjit_fe_ranking_index(f, opjit_fe_ranking_load(r, found, statement, number), b->whole);
    const ir_ref place =
        op2(f, IR_IADD, IR_INDEX, moves_mul(f, own, (int64_t)b->block), op2(f, IR_IMOD, IR_INDEX, j, size));

    if (b->rest == 0)
        return place;
    return choose(f, IR_INDEX, op2(f, IR_LT, IR_BOOL, j, in_blocks), place,
                  moves_add(f, j, (int64_t)((b->whole - b->wanted) * b->block)));
}

static ir_ref select_in_blocks(const ranking *r, ir_ref keys, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    const uint64_t block = block_of(size, count);
    const blocks b = { block, size / block, count, size % block };
    const uint64_t left = count * block + b.rest;
    const ir_ref most = reduce(r, IR_KMAX, r->type, b.whole, block);

    if (f->failed)
        return 0;
    const ir_ref first = moves_mul(f, opjit_fe_ranking_last(r, most), (int64_t)block);
    opjit_fe_set(r->l, most,
                 opjit_fe_ranking_load(r, keys, most, op2(f, IR_IADD, IR_INDEX, first, opjit_ir_reduced(f, most))));
    const ir_ref found = opjit_fe_ranking_select(r, most, b.whole, count),
                 in_found = opjit_fe_ranking_def(r, r->type, left);
    if (f->failed)
        return 0;
    const ir_ref place = place_in(r, &b, found, in_found, opjit_fe_ranking_last(r, in_found));
    opjit_fe_set(r->l, in_found, opjit_fe_ranking_load(r, keys, in_found, opjit_fe_inside(f, place, size)));
    const ir_ref chosen = opjit_fe_ranking_select(r, in_found, left, count),
                 places = opjit_fe_ranking_def(r, IR_U32, count);
    if (f->failed)
        return 0;
    const ir_ref j = opjit_fe_ranking_load(r, chosen, places, opjit_fe_ranking_last(r, places));
    opjit_fe_set(r->l, places,
                 ir_expr1(f, IR_ELEM, IR_U32, place_in(r, &b, found, places, opjit_fe_ranking_index(f, j, left))));
    return places;
}

ir_ref opjit_fe_ranking_select(const ranking *r, ir_ref keys, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;

    if (f->failed)
        return 0;
    if (count == size) {
        const ir_ref all = opjit_fe_ranking_def(r, IR_U32, count);
        opjit_fe_set(r->l, all, ir_expr1(f, IR_ELEM, IR_U32, opjit_fe_ranking_last(r, all)));
        return all;
    }
    if (size / count >= BLOCKS_FROM && size >= BLOCKS_FROM * BLOCKS_FROM)
        return select_in_blocks(r, keys, size, count);
    const ir_ref least = least_chosen(r, keys, size, count);
    const ir_ref sums = run(r, keys, size, least), above = count_keys(r, keys, size, IR_LT, least);
    return find_chosen(r, chosen_until(r, sums, above, size, count), size, count);
}

/* --- order -------------------------------------------------------------------------------------------------------- */

/* A network of `columns` columns of `length` elements: the elements at one place of all columns are side by side in
 * memory, so that all columns are sorted at a time.  They are rows of their own, `rows` times as many, or columns of
 * one row, which are merged when each is sorted. */
typedef struct network {
    uint64_t rows, columns, length;
    bool merges;
} network;

/* A step of a network: its elements as a row-major box, in one dimension of which, of size 2, partners lie; in other
 * dimensions they have the same coordinate, or, where `mirrored` has a bit, the one counted from the end. */
typedef struct box {
    uint64_t sizes[5]; /* the first: rows */
    uint32_t pair, mirrored;
} box;

/* Partners that are `apart` in the order, or that mirror each other in runs of twice as many. */
static box box_of(const network *n, uint64_t apart, bool mirror)
{
    const uint64_t across = apart / n->length;

    if (across == 0)
        return (box){ { n->rows, n->length / (2 * apart), 2, apart, n->columns }, 2, mirror ? 1u << 3 : 0 };
    return (box){ { n->rows, n->length, n->columns / (2 * across), 2, across }, 3, mirror ? 1u << 1 | 1u << 4 : 0 };
}

/* A definition's elements seen in another shape of as many. */
static uint32_t view_of(ir_func *f, ir_ref def, const fe_tensor *shape)
{
    ir_tensor view = f->tensors[ir_at(f, def)->ref];

    view.role = IR_VIEW;
    view.of = ir_at(f, def)->ref;
    view.rank = shape->rank;
    memcpy(view.sizes, shape->sizes, sizeof view.sizes);
    opjit_ir_dense_strides(&view);
    return opjit_ir_tensor(f, &view);
}

/* The greater of two partners comes first. */
static ir_ref exchange(const ranking *r, ir_ref before, const box *b)
{
    ir_func *f = r->l->f;
    fe_tensor shape = { .rank = 5 };
    ir_ref own[OPJIT_MAX_RANK], other[OPJIT_MAX_RANK];

    memcpy(shape.sizes, b->sizes, sizeof b->sizes);
    const ir_ref next = opjit_fe_def_to(r->l, IR_U64, &shape);
    if (f->failed)
        return 0;
    const uint32_t seen = view_of(f, before, &shape);
    for (uint32_t d = 0; d < shape.rank && !f->failed; d++) {
        other[d] = own[d] = opjit_ir_coordinate(f, next, d);
        if (d == b->pair || (b->mirrored >> d & 1) != 0)
            other[d] = op2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, (int64_t)b->sizes[d] - 1), own[d]);
    }
    if (f->failed)
        return 0;
    const ir_ref x = opjit_ir_load(f, seen, own), y = opjit_ir_load(f, seen, other);
    const ir_ref first = op2(f, IR_EQ, IR_BOOL, own[b->pair], opjit_ir_index(f, 0));
    opjit_fe_set(r->l, next, choose(f, IR_U64, first, op2(f, IR_MAX, IR_U64, x, y), op2(f, IR_MIN, IR_U64, x, y)));
    return next;
}

/* The bitonic network: the elements of each row of `all` in descending order. */
static ir_ref sort_network(const ranking *r, ir_ref all, const network *n)
{
    const uint64_t size = n->merges ? n->columns * n->length : n->length;

    for (uint64_t half = 1; half < size; half *= 2)
        for (uint64_t apart = half; apart > 0 && !r->l->f->failed; apart /= 2) {
            const box b = box_of(n, apart, apart == half);
            all = exchange(r, all, &b);
        }
    return all;
}

/* The least network for rows of `size` elements. */
static network network_of(const ranking *r, uint64_t size)
{
    const uint64_t rows = r->rows->sizes[0], padded = opjit_fe_ranking_padded(size);

    if (rows >= COLUMNS)
        return (network){ (rows + COLUMNS - 1) / COLUMNS, COLUMNS, padded, false };
    if (padded >= COLUMNS_FROM)
        return (network){ rows, COLUMNS, padded / COLUMNS, true };
    return (network){ rows, 1, padded, true };
}

/* A definition of a network's elements: the row that an element is of, and its number there. */
static ir_ref network_def(const ranking *r, const network *n, ir_ref *row, ir_ref *number)
{
    ir_func *f = r->l->f;
    const fe_tensor merged = { .rank = 2, .sizes = { n->rows, n->columns * n->length } },
                    apart = { .rank = 3, .sizes = { n->rows, n->length, n->columns } };
    const ir_ref def = opjit_fe_def_to(r->l, IR_U64, n->merges ? &merged : &apart);

    *row = *number = 0;
    if (f->failed)
        return 0;
    *row = opjit_ir_coordinate(f, def, 0);
    *number = opjit_ir_coordinate(f, def, 1);
    if (!n->merges)
        *row = opjit_fe_inside(f,
                               op2(f, IR_IADD, IR_INDEX, moves_mul(f, *row, (int64_t)n->columns),
                                   opjit_ir_coordinate(f, def, 2)),
                               r->rows->sizes[0]);
    return def;
}

/* Element j in the order that a network has made, for a statement with one element for each. */
static ir_ref sorted_at(const ranking *r, ir_ref sorted, const network *n, ir_ref statement)
{
    ir_func *f = r->l->f;
    const fe_tensor shape = { .rank = 3, .sizes = { n->rows, n->length, n->columns } };

    if (f->failed)
        return 0;
    const ir_ref row = opjit_ir_coordinate(f, statement, 0), own = opjit_fe_ranking_last(r, statement),
                 length = opjit_ir_index(f, (int64_t)n->length), columns = opjit_ir_index(f, (int64_t)n->columns);
    const ir_ref merged[] = { row, op2(f, IR_IMOD, IR_INDEX, own, length), op2(f, IR_IDIV, IR_INDEX, own, length) },
                 apart[] = { op2(f, IR_IDIV, IR_INDEX, row, columns), own, op2(f, IR_IMOD, IR_INDEX, row, columns) };
    return opjit_ir_load(f, view_of(f, sorted, &shape), n->merges ? merged : apart);
}

uint64_t opjit_fe_ranking_padded(uint64_t size)
{
    uint64_t padded = 1;

    while (padded < size)
        padded *= 2;
    return padded;
}

/* Places sorted by 32 bits of the keys, from bit `shift` on; of equal ones that one is first which is it in `given`, an
 * order of the places; 0: ascending. */
static ir_ref sort_by(const ranking *r, ir_ref keys, uint64_t size, uint32_t shift, ir_ref given)
{
    ir_func *f = r->l->f;
    const network n = network_of(r, size);
    ir_ref row, own;
    const ir_ref all = network_def(r, &n, &row, &own);
    if (f->failed)
        return 0;
    const ir_ref j = opjit_fe_inside(f, own, size);
    const ir_ref at = given == 0 ? j : opjit_fe_ranking_index(f, load_in(r, given, row, j), size);
    ir_ref key = load_in(r, keys, row, at);
    if (r->type == IR_U64)
        key = ir_expr1(f, IR_CAST, IR_U32, op2(f, IR_SHR, IR_U64, key, number(f, IR_U64, shift)));
    key = op2(f, IR_SHL, IR_U64, ir_expr1(f, IR_CAST, IR_U64, key), number(f, IR_U64, 32));
    const ir_ref late = ir_expr1(f, IR_NOT, IR_U32, ir_expr1(f, IR_ELEM, IR_U32, own));
    key = op2(f, IR_OR, IR_U64, key, ir_expr1(f, IR_CAST, IR_U64, late));
    opjit_fe_set(
        r->l, all,
        choose(f, IR_U64, op2(f, IR_LT, IR_BOOL, own, opjit_ir_index(f, (int64_t)size)), key, number(f, IR_U64, 0)));
    const ir_ref sorted = sort_network(r, all, &n), places = opjit_fe_ranking_def(r, IR_U32, size);
    ir_ref place = sorted_at(r, sorted, &n, places);
    place = ir_expr1(f, IR_NOT, IR_U32, ir_expr1(f, IR_CAST, IR_U32, place));
    if (given != 0)
        place = opjit_fe_ranking_load(r, given, places, opjit_fe_ranking_index(f, place, size));
    opjit_fe_set(r->l, places, place);
    return places;
}

ir_ref opjit_fe_ranking_sort(const ranking *r, ir_ref keys, uint64_t size)
{
    const ir_ref low = sort_by(r, keys, size, 0, 0);
    return r->type == IR_U64 ? sort_by(r, keys, size, 32, low) : low;
}
