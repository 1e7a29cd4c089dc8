/* SPDX-License-Identifier: Apache-2.0 */
/* ranking.c - selection by counting (ranking.h).
 *
 * Selection finds the least key that is chosen bit by bit, from the highest on, in the steps of a recurrence: a bit is
 * set where as many keys as are wanted are still at least as great.  A running sum of the keys above it and of the
 * first ones that are equal to it numbers the chosen ones, and each place is put where its number says.
 *
 * Of many keys few of which are wanted, blocks of neighbours are ranked first by their greatest key: the blocks that
 * come first, as many as keys are wanted, have all of these in them.  For of the keys of another block each comes after
 * the greatest key of each of these. */
#include "frontend/ops/rank/ranking.h"

#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"
#include "ir/eval/numerics.h"

/* Keys for each one wanted, and keys, from which on they are ranked in blocks. */
#define BLOCKS_FROM 16
#define BLOCKS_LEAST 4096

/* --- statements --------------------------------------------------------------------------------------------------- */

ir_ref opjit_fe_ranking_def(const ranking *r, ir_type type, uint64_t size)
{
    const fe_tensor shape = ranking_shape(r, size);
    return opjit_fe_def_to(r->l, type, &shape);
}

ir_ref opjit_fe_ranking_last(const ranking *r, ir_ref statement)
{
    return r->l->f->failed ? 0 : opjit_ir_coordinate(r->l->f, statement, 1);
}

ir_ref opjit_fe_ranking_at(const ranking *r, ir_ref def, ir_ref row, ir_ref last)
{
    ir_func *f = r->l->f;
    const ir_ref at[2] = { row, last };

    return f->failed ? 0 : opjit_ir_load(f, ir_at(f, def)->ref, at);
}

ir_ref opjit_fe_ranking_load(const ranking *r, ir_ref def, ir_ref statement, ir_ref last)
{
    return r->l->f->failed ? 0 : opjit_fe_ranking_at(r, def, opjit_ir_coordinate(r->l->f, statement, 0), last);
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

ir_ref opjit_fe_ranking_apart(ir_func *f, ir_ref key, ir_ref place)
{
    const ir_ref high =
                     ranking_op2(f, IR_SHL, IR_U64, ir_expr1(f, IR_CAST, IR_U64, key), ranking_number(f, IR_U64, 32)),
                 late = ir_expr1(f, IR_NOT, IR_U32, ir_expr1(f, IR_ELEM, IR_U32, place));

    return ranking_op2(f, IR_OR, IR_U64, high, ir_expr1(f, IR_CAST, IR_U64, late));
}

ir_ref opjit_fe_ranking_places(const ranking *r, uint64_t size, uint64_t count, ir_ref *own)
{
    ir_func *f = r->l->f;
    const fe_tensor shape = ranking_shape(r, size);
    const ir_ref places = opjit_fe_scatter(r->l, IR_KIND_NONE, IR_U32, &shape, count);

    if (f->failed)
        return *own = 0;
    *own = opjit_ir_update(f, places);
    opjit_ir_set_initial(f, places, ranking_number(f, IR_U32, 0));
    opjit_ir_set_place(f, places, 0, opjit_ir_coordinate(f, places, 0));
    opjit_ir_set_value(f, places, ir_expr1(f, IR_ELEM, IR_U32, *own));
    return places;
}

/* --- selection by counting ---------------------------------------------------------------------------------------- */

/* In each row, the number of keys that compare so with the row's element of `limit`. */
static ir_ref count_keys(const ranking *r, ir_ref keys, uint64_t size, ir_op op, ir_ref limit)
{
    ir_func *f = r->l->f;
    const fe_tensor shape = ranking_shape(r, 1);
    const ir_ref counted = opjit_fe_reduce_lanes(r->l, IR_SUM, IR_U32, &shape, IR_REDUCE_LANES, size);

    if (f->failed)
        return 0;
    const ir_ref key = opjit_fe_ranking_load(r, keys, counted, opjit_ir_reduced(f, counted));
    const ir_ref counts = ranking_op2(f, op, IR_BOOL, load_one(r, limit, counted), key);
    opjit_fe_set(r->l, counted,
                 ranking_choose(f, IR_U32, counts, ranking_number(f, IR_U32, 1), ranking_number(f, IR_U32, 0)));
    return counted;
}

/* A definition with an element for each row in each of the steps. */
static ir_ref step_def(const ranking *r, uint64_t steps, ir_ref *step, ir_ref *row)
{
    const fe_tensor shape = { .rank = 3, .sizes = { steps, r->rows->sizes[0], 1 } };
    const ir_ref def = opjit_fe_def_to(r->l, IR_U32, &shape);

    *step = r->l->f->failed ? 0 : opjit_ir_coordinate(r->l->f, def, 0);
    *row = r->l->f->failed ? 0 : opjit_ir_coordinate(r->l->f, def, 1);
    return def;
}

static ir_ref load_step(const ranking *r, ir_ref def, ir_ref step, ir_ref row)
{
    ir_func *f = r->l->f;

    return f->failed ? 0 : opjit_ir_load(f, ir_at(f, def)->ref, (ir_ref[]){ step, row, opjit_ir_index(f, 0) });
}

/* In each step and row, the number of keys that are at least `limit`. */
static ir_ref count_in_step(const ranking *r, ir_ref keys, uint64_t size, uint64_t steps, ir_ref limit)
{
    ir_func *f = r->l->f;
    const fe_tensor shape = { .rank = 3, .sizes = { steps, r->rows->sizes[0], 1 } };
    const ir_ref counted = opjit_fe_reduce_lanes(r->l, IR_SUM, IR_U32, &shape, IR_REDUCE_LANES, size);

    if (f->failed)
        return 0;
    const ir_ref step = opjit_ir_coordinate(f, counted, 0), row = opjit_ir_coordinate(f, counted, 1),
                 key = opjit_fe_ranking_at(r, keys, row, opjit_ir_reduced(f, counted));
    opjit_fe_set(r->l, counted,
                 ranking_choose(f, IR_U32, ranking_op2(f, IR_LE, IR_BOOL, load_step(r, limit, step, row), key),
                                ranking_number(f, IR_U32, 1), ranking_number(f, IR_U32, 0)));
    return counted;
}

/* The least of the `count` greatest keys of each row, which are IR_U32 below 2^bits: a step tries a bit. */
static ir_ref least_of(const ranking *r, ir_ref keys, uint32_t bits, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    ir_ref step, row;
    const ir_ref least = step_def(r, bits, &step, &row);
    opjit_fe_set(r->l, least, ranking_number(f, IR_U32, 0));

    const ir_ref tried = step_def(r, bits, &step, &row);
    const ir_ref bit = ranking_op2(f, IR_SHR, IR_U32, ranking_number(f, IR_U32, UINT64_C(1) << (bits - 1)),
                                   f->failed ? 0 : ir_expr1(f, IR_ELEM, IR_U32, step));
    opjit_fe_set(r->l, tried, ranking_op2(f, IR_OR, IR_U32, load_step(r, least, step, row), bit));

    const ir_ref counted = count_in_step(r, keys, size, bits, tried), next = step_def(r, bits, &step, &row);
    const ir_ref enough =
        ranking_op2(f, IR_LE, IR_BOOL, ranking_number(f, IR_U32, count), load_step(r, counted, step, row));
    opjit_fe_set(r->l, next,
                 ranking_choose(f, IR_U32, enough, load_step(r, tried, step, row), load_step(r, least, step, row)));
    if (!f->failed)
        opjit_ir_feed(f, next, least);

    const ir_ref last = opjit_fe_ranking_def(r, IR_U32, 1);
    opjit_fe_set(r->l, last,
                 f->failed ? 0 : load_step(r, next, opjit_ir_index(f, bits - 1), opjit_ir_coordinate(f, last, 0)));
    return last;
}

/* A half of a key of 64 bits. */
static ir_ref half_of(ir_func *f, ir_ref key, bool high)
{
    return ir_expr1(f, IR_CAST, IR_U32,
                    high ? ranking_op2(f, IR_SHR, IR_U64, key, ranking_number(f, IR_U64, 32)) : key);
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
    const ir_ref equal = ranking_choose(f, IR_U32, ranking_op2(f, IR_EQ, IR_BOOL, own, same), half_of(f, key, false),
                                        ranking_number(f, IR_U32, 0));
    opjit_fe_set(r->l, lower,
                 ranking_choose(f, IR_U32, ranking_op2(f, IR_LT, IR_BOOL, same, own),
                                ranking_number(f, IR_U32, UINT32_MAX), equal));
    const ir_ref low = least_of(r, lower, 32, size, count), least = opjit_fe_ranking_def(r, IR_U64, 1);
    const ir_ref high = ir_expr1(f, IR_CAST, IR_U64, load_one(r, limit, least));
    opjit_fe_set(r->l, least,
                 ranking_op2(f, IR_OR, IR_U64, ranking_op2(f, IR_SHL, IR_U64, high, ranking_number(f, IR_U64, 32)),
                             ir_expr1(f, IR_CAST, IR_U64, load_one(r, low, least))));
    return least;
}

/* The numbers of keys before each place that are above `least`, in the upper half, and equal to it, in the lower
 * one. */
static ir_ref run(const ranking *r, ir_ref keys, uint64_t size, ir_ref least)
{
    ir_func *f = r->l->f;
    const fe_tensor shape = ranking_shape(r, size);
    const ir_ref sums = opjit_fe_scan_to(r->l, IR_SUM, IR_U64, &shape, 1, true);

    if (f->failed)
        return 0;
    const ir_ref key = opjit_fe_ranking_load(r, keys, sums, opjit_ir_reduced(f, sums)),
                 limit = load_one(r, least, sums), none = ranking_number(f, IR_U64, 0);
    const ir_ref equal =
        ranking_choose(f, IR_U64, ranking_op2(f, IR_EQ, IR_BOOL, key, limit), ranking_number(f, IR_U64, 1), none);
    opjit_fe_set(r->l, sums,
                 ranking_choose(f, IR_U64, ranking_op2(f, IR_LT, IR_BOOL, limit, key),
                                ranking_number(f, IR_U64, UINT64_C(1) << 32), equal));
    return sums;
}

/* How many of a row's keys before place `at` are chosen; above: of the whole row, the number of keys above the least
 * chosen one. */
static ir_ref chosen_before(const ranking *r, ir_ref sums, ir_ref above, ir_ref statement, ir_ref at, uint64_t count)
{
    ir_func *f = r->l->f;
    const ir_ref both = opjit_fe_ranking_load(r, sums, statement, at);

    if (f->failed)
        return 0;
    const ir_ref room = ranking_op2(f, IR_SUB, IR_U32, ranking_number(f, IR_U32, count), load_one(r, above, statement));
    return ranking_op2(f, IR_ADD, IR_U32, half_of(f, both, true),
                       ranking_op2(f, IR_MIN, IR_U32, half_of(f, both, false), room));
}

/* Where the chosen keys are.  Each place is put where the number of chosen ones before it says: of those that are put
 * at one number the last is that of a chosen key.  Places behind all chosen keys go to one element more. */
static ir_ref find_chosen(const ranking *r, ir_ref sums, ir_ref above, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    ir_ref own;
    const ir_ref places = opjit_fe_ranking_places(r, count + 1, size, &own);

    if (!f->failed)
        opjit_ir_set_place(f, places, 1,
                           opjit_fe_ranking_index(f, chosen_before(r, sums, above, places, own, count), count + 1));
    return places;
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
    const ir_ref number = opjit_fe_inside(f, ranking_op2(f, IR_IDIV, IR_INDEX, j, size), b->wanted);
    const ir_ref own = opjit_fe_ranking_index(f, opjit_fe_ranking_load(r, found, statement, number), b->whole);
    const ir_ref place = ranking_op2(f, IR_IADD, IR_INDEX, moves_mul(f, own, (int64_t)b->block),
                                     ranking_op2(f, IR_IMOD, IR_INDEX, j, size));

    if (b->rest == 0)
        return place;
    return ranking_choose(f, IR_INDEX, ranking_op2(f, IR_LT, IR_BOOL, j, in_blocks), place,
                          moves_add(f, j, (int64_t)((b->whole - b->wanted) * b->block)));
}

static ir_ref select_in_blocks(const ranking *r, ir_ref keys, uint64_t size, uint64_t count)
{
    ir_func *f = r->l->f;
    const uint64_t block = block_of(size, count);
    const blocks b = { block, size / block, count, size % block };
    const uint64_t left = count * block + b.rest;
    const fe_tensor shape = ranking_shape(r, b.whole);
    const ir_ref most = opjit_fe_reduce_lanes(r->l, IR_KMAX, r->type, &shape, IR_REDUCE_LANES, block);

    if (f->failed)
        return 0;
    const ir_ref first = moves_mul(f, opjit_fe_ranking_last(r, most), (int64_t)block);
    opjit_fe_set(
        r->l, most,
        opjit_fe_ranking_load(r, keys, most, ranking_op2(f, IR_IADD, IR_INDEX, first, opjit_ir_reduced(f, most))));
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
    if (size / count >= BLOCKS_FROM && size >= BLOCKS_LEAST)
        return select_in_blocks(r, keys, size, count);
    const ir_ref least = least_chosen(r, keys, size, count);
    const ir_ref sums = run(r, keys, size, least), above = count_keys(r, keys, size, IR_LT, least);
    return find_chosen(r, sums, above, size, count);
}
