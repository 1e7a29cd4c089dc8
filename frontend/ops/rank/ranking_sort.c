/* SPDX-License-Identifier: Apache-2.0 */
/* ranking_sort.c - sorting (ranking.h).
 *
 * A key's place in the order is how many keys come before it.  For few keys that is counted; many are sorted digit by
 * digit (ranking_radix.c), or, on GPUs and of many short rows, go through a bitonic network, each step of which is a
 * definition. */
#include "frontend/ops/rank/ranking.h"

#include <string.h>

#include "frontend/ops/moves.h"
#include "frontend/ops/reduce.h"

/* How many columns are sorted side by side at least, their bytes then, and the elements from which on those of few rows
 * are. */
#define COLUMNS 16
#define COLUMN_BYTES 64
#define COLUMNS_FROM 64
/* The most keys that are counted: of few rows, the same where digits are few and quick, and of as many rows as are
 * sorted side by side. */
#define COUNTED 384
#define COUNTED_BESIDE_DIGITS 192
#define COUNTED_OF_ROWS 64
/* The most keys of such rows for which a network is quicker than digits. */
#define NETWORK_OF_ROWS 256
/* The most bytes that each step of a network moves where the same rows may be counted. */
#define NETWORK_BYTES (16 << 20)

/* --- network ------------------------------------------------------------------------------------------------------ */

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
    const ir_type type = (ir_type)f->tensors[ir_at(f, before)->ref].type;
    const ir_ref next = opjit_fe_def_to(r->l, type, &shape);
    if (f->failed)
        return 0;
    const uint32_t seen = view_of(f, before, &shape);
    for (uint32_t d = 0; d < shape.rank && !f->failed; d++) {
        other[d] = own[d] = opjit_ir_coordinate(f, next, d);
        if (d == b->pair || (b->mirrored >> d & 1) != 0)
            other[d] = ranking_op2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, (int64_t)b->sizes[d] - 1), own[d]);
    }
    if (f->failed)
        return 0;
    const ir_ref x = opjit_ir_load(f, seen, own), y = opjit_ir_load(f, seen, other);
    const ir_ref first = ranking_op2(f, IR_EQ, IR_BOOL, own[b->pair], opjit_ir_index(f, 0));
    const ir_ref most = ranking_op2(f, IR_MAX, type, x, y), least = ranking_op2(f, IR_MIN, type, x, y);
    opjit_fe_set(r->l, next, ranking_choose(f, type, first, most, least));
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

/* The least network for rows of `size` elements of the type, of which more are sorted side by side the narrower they
 * are. */
static network network_of(const ranking *r, ir_type type, uint64_t size)
{
    const uint64_t rows = r->rows->sizes[0], padded = opjit_fe_ranking_padded(size);
    uint64_t columns = COLUMNS;

    while (columns < rows && columns * opjit_ir_type_size(type) < COLUMN_BYTES)
        columns *= 2;
    if (rows >= COLUMNS)
        return (network){ (rows + columns - 1) / columns, columns, padded, false };
    if (padded >= COLUMNS_FROM)
        return (network){ rows, COLUMNS, padded / COLUMNS, true };
    return (network){ rows, 1, padded, true };
}

/* A definition of a network's elements: the row that an element is of, and its number there. */
static ir_ref network_def(const ranking *r, const network *n, ir_type type, ir_ref *row, ir_ref *number)
{
    ir_func *f = r->l->f;
    const fe_tensor merged = { .rank = 2, .sizes = { n->rows, n->columns * n->length } },
                    apart = { .rank = 3, .sizes = { n->rows, n->length, n->columns } };
    const ir_ref def = opjit_fe_def_to(r->l, type, n->merges ? &merged : &apart);

    *row = *number = 0;
    if (f->failed)
        return 0;
    *row = opjit_ir_coordinate(f, def, 0);
    *number = opjit_ir_coordinate(f, def, 1);
    if (!n->merges)
        *row = opjit_fe_inside(
            f,
            ranking_op2(f, IR_IADD, IR_INDEX, moves_mul(f, *row, (int64_t)n->columns), opjit_ir_coordinate(f, def, 2)),
            r->rows->sizes[0]);
    return def;
}

/* Sets the element of a network's definition: a key, or, behind the keys, one that comes last. */
static void set_padded(const ranking *r, ir_ref all, ir_ref own, uint64_t size, ir_type type, ir_ref key)
{
    ir_func *f = r->l->f;
    const ir_ref is_key = ranking_op2(f, IR_LT, IR_BOOL, own, opjit_ir_index(f, (int64_t)size));
    opjit_fe_set(r->l, all, ranking_choose(f, type, is_key, key, ranking_number(f, type, 0)));
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
    const ir_ref merged[] = { row, ranking_op2(f, IR_IMOD, IR_INDEX, own, length),
                              ranking_op2(f, IR_IDIV, IR_INDEX, own, length) },
                 apart[] = { ranking_op2(f, IR_IDIV, IR_INDEX, row, columns), own,
                             ranking_op2(f, IR_IMOD, IR_INDEX, row, columns) };
    return opjit_ir_load(f, view_of(f, sorted, &shape), n->merges ? merged : apart);
}

uint64_t opjit_fe_ranking_padded(uint64_t size)
{
    uint64_t padded = 1;

    while (padded < size)
        padded *= 2;
    return padded;
}

/* Sets the places of a sort: each to its own, or, unless `given` is 0, to the one that is there in it. */
static ir_ref set_places(const ranking *r, ir_ref places, ir_ref place, uint64_t size, ir_ref given)
{
    if (given != 0)
        place = opjit_fe_ranking_load(r, given, places, opjit_fe_ranking_index(r->l->f, place, size));
    opjit_fe_set(r->l, places, place);
    return places;
}

/* Places sorted by 32 bits of the keys, from bit `shift` on; of equal ones that one is first which is it in `given`, an
 * order of the places; 0: ascending. */
static ir_ref sort_by(const ranking *r, ir_ref keys, uint64_t size, uint32_t shift, ir_ref given)
{
    ir_func *f = r->l->f;
    const network n = network_of(r, IR_U64, size);
    ir_ref row, own;
    const ir_ref all = network_def(r, &n, IR_U64, &row, &own);
    if (f->failed)
        return 0;
    const ir_ref j = opjit_fe_inside(f, own, size);
    const ir_ref at = given == 0 ? j : opjit_fe_ranking_index(f, opjit_fe_ranking_at(r, given, row, j), size);
    ir_ref key = opjit_fe_ranking_at(r, keys, row, at);
    if (r->type == IR_U64)
        key = ir_expr1(f, IR_CAST, IR_U32, ranking_op2(f, IR_SHR, IR_U64, key, ranking_number(f, IR_U64, shift)));
    set_padded(r, all, own, size, IR_U64, opjit_fe_ranking_apart(f, key, own));
    const ir_ref sorted = sort_network(r, all, &n), places = opjit_fe_ranking_def(r, IR_U32, size);
    ir_ref place = sorted_at(r, sorted, &n, places);
    place = ir_expr1(f, IR_NOT, IR_U32, ir_expr1(f, IR_CAST, IR_U32, place));
    return set_places(r, places, place, size, given);
}

ir_ref opjit_fe_ranking_sort_keys(const ranking *r, ir_ref keys, uint64_t size)
{
    ir_func *f = r->l->f;
    const network n = network_of(r, r->type, size);
    ir_ref row, own;
    const ir_ref all = network_def(r, &n, r->type, &row, &own);
    if (f->failed)
        return 0;
    set_padded(r, all, own, size, r->type, opjit_fe_ranking_at(r, keys, row, opjit_fe_inside(f, own, size)));
    const ir_ref sorted = sort_network(r, all, &n), order = opjit_fe_ranking_def(r, r->type, size);
    opjit_fe_set(r->l, order, sorted_at(r, sorted, &n, order));
    return order;
}

/* --- digits ------------------------------------------------------------------------------------------------------- */

/* The same as sort_by, by digits. */
static ir_ref sort_by_digits(const ranking *r, ir_ref keys, uint64_t size, uint32_t shift, ir_ref given)
{
    ir_func *f = r->l->f;
    const ir_ref all = opjit_fe_ranking_def(r, IR_U64, size), own = opjit_fe_ranking_last(r, all);
    if (f->failed)
        return 0;
    const ir_ref at = given == 0 ? own : opjit_fe_ranking_index(f, opjit_fe_ranking_load(r, given, all, own), size);
    ir_ref key = opjit_fe_ranking_load(r, keys, all, at);
    if (r->type == IR_U64)
        key = ranking_op2(f, IR_SHR, IR_U64, key, ranking_number(f, IR_U64, shift));
    key = ir_expr1(f, IR_NOT, IR_U64, ir_expr1(f, IR_CAST, IR_U64, key)); /* the greatest first */
    key = ranking_op2(f, IR_SHL, IR_U64, key, ranking_number(f, IR_U64, 32));
    opjit_fe_set(r->l, all, ranking_op2(f, IR_OR, IR_U64, key, ir_expr1(f, IR_ELEM, IR_U64, own)));
    const ranking_elements elements = { .type = IR_U64, .shift = 32, .bits = r->bits < 32 ? r->bits : 32 };
    uint64_t from;
    const ir_ref sorted = opjit_fe_ranking_radix(r, all, size, &elements, &from),
                 places = opjit_fe_ranking_def(r, IR_U32, size);
    if (f->failed)
        return 0;
    ir_ref place = opjit_fe_ranking_load(r, sorted, places,
                                         moves_add(f, opjit_fe_ranking_last(r, places), (int64_t)from));
    place = ir_expr1(f, IR_CAST, IR_U32, place);
    return set_places(r, places, place, size, given);
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

/* The keys of 32 bits, set apart. */
static ir_ref keys_apart(const ranking *r, ir_ref keys, uint64_t size)
{
    ir_func *f = r->l->f;
    const ir_ref apart = opjit_fe_ranking_def(r, IR_U64, size), own = opjit_fe_ranking_last(r, apart);

    if (f->failed)
        return 0;
    opjit_fe_set(r->l, apart, opjit_fe_ranking_apart(f, opjit_fe_ranking_load(r, keys, apart, own), own));
    return apart;
}

/* Whether key b of the row comes before key a. */
static ir_ref comes_before(const ranking *r, ir_ref keys, ir_ref row, ir_ref b, ir_ref a)
{
    ir_func *f = r->l->f;
    const ir_ref x = opjit_fe_ranking_at(r, keys, row, b), y = opjit_fe_ranking_at(r, keys, row, a);

    if (f->failed)
        return 0;
    const ir_ref after = ranking_op2(f, IR_LT, IR_BOOL, y, x);
    if (r->type == IR_U32)
        return after;
    return ranking_op2(
        f, IR_OR, IR_BOOL, after,
        ranking_op2(f, IR_AND, IR_BOOL, ranking_op2(f, IR_EQ, IR_BOOL, x, y), ranking_op2(f, IR_LT, IR_BOOL, b, a)));
}

/* Puts each place where the number of keys that come before its own says. */
static ir_ref sort_by_counting(const ranking *r, ir_ref keys, uint64_t size)
{
    ir_func *f = r->l->f;
    keys = r->type == IR_U32 ? keys_apart(r, keys, size) : keys;
    const fe_tensor shape = ranking_shape(r, size);
    const ir_ref ranks = opjit_fe_reduce_to(r->l, IR_SUM, IR_U32, &shape, size);

    if (f->failed)
        return 0;
    const ir_ref before = comes_before(r, keys, opjit_ir_coordinate(f, ranks, 0), opjit_ir_reduced(f, ranks),
                                       opjit_fe_ranking_last(r, ranks));
    opjit_fe_set(r->l, ranks,
                 ranking_choose(f, IR_U32, before, ranking_number(f, IR_U32, 1), ranking_number(f, IR_U32, 0)));
    ir_ref own;
    const ir_ref places = opjit_fe_ranking_places(r, size, size, &own);
    if (!f->failed)
        opjit_ir_set_place(f, places, 1, opjit_fe_ranking_index(f, opjit_fe_ranking_load(r, ranks, places, own), size));
    return places;
}

/* --- choice ------------------------------------------------------------------------------------------------------- */

/* Updates one after the other are a CPU's: threads of a GPU make the steps of a network together. */
static bool has_digits(const ranking *r, uint64_t size)
{
    const char *target = r->l->f->target;
    const bool side_by_side = r->rows->sizes[0] >= COLUMNS;
    return (target == NULL || strncmp(target, "cpu", 3) == 0) && !(side_by_side && size <= NETWORK_OF_ROWS);
}

/* The most keys that are counted. */
static uint64_t counted(const ranking *r, bool digits)
{
    if (r->rows->sizes[0] >= COLUMNS)
        return COUNTED_OF_ROWS;
    return digits && r->type == IR_U32 ? COUNTED_BESIDE_DIGITS : COUNTED;
}

bool opjit_fe_ranking_has_digits(const ranking *r, uint64_t size)
{
    return has_digits(r, size) && size > counted(r, true);
}

bool opjit_fe_ranking_has_network(const ranking *r, uint64_t size)
{
    const uint64_t rows = r->rows->sizes[0], bytes = rows * opjit_fe_ranking_padded(size) * (r->bits / 8);
    return !has_digits(r, size) && (size > counted(r, false) || (rows >= COLUMNS && bytes <= NETWORK_BYTES));
}

ir_ref opjit_fe_ranking_sort(const ranking *r, ir_ref keys, uint64_t size)
{
    const bool digits = has_digits(r, size);
    if (size <= counted(r, digits))
        return sort_by_counting(r, keys, size);
    ir_ref (*const sort)(const ranking *, ir_ref, uint64_t, uint32_t, ir_ref) = digits ? sort_by_digits : sort_by;
    const ir_ref low = sort(r, keys, size, 0, 0);
    return r->type == IR_U64 ? sort(r, keys, size, 32, low) : low;
}
