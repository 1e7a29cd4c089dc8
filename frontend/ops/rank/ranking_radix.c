/* SPDX-License-Identifier: Apache-2.0 */
/* ranking_radix.c - elements in the order of some of their bits, one digit after the other, the last one first
 * (ranking.h).
 *
 * How often each digit has each value says where the first element with this value goes; each one that comes moves that
 * place on by one.  So a pass is two updates per element of a tensor that has these places first, then elements: the
 * element is put, then its digit's place counts. */
#include "frontend/ops/moves.h"
#include "frontend/ops/rank/ranking.h"
#include "frontend/ops/reduce.h"

/* Bits of a digit, and those of a digit of rows of LONG elements or more, which have fewer passes. */
#define DIGIT 8
#define LONG_DIGIT 11
#define LONG 4096

/* The digits of a sort; `values` is how many a digit has. */
typedef struct digits {
    const ranking_elements *elements;
    uint32_t width, passes;
    uint64_t values, size;
} digits;

static ir_ref index_of(ir_func *f, uint64_t value) { return opjit_ir_index(f, (int64_t)value); }

/* The element's digit, whose lowest bit is number `shift`, as a coordinate. */
static ir_ref digit_of(const ranking *r, const digits *d, ir_ref element, ir_ref shift)
{
    ir_func *f = r->l->f;
    const ir_type type = d->elements->type;
    const ir_ref number = d->elements->number == NULL ? element : d->elements->number(r, element);
    const ir_ref bits = ranking_op2(f, IR_SHR, type, number, shift);
    return opjit_fe_ranking_index(f, ranking_op2(f, IR_AND, type, bits, ranking_number(f, type, d->values - 1)),
                                  d->values);
}

/* For each row and digit, how many elements have a lower value: rows x passes x values. */
static ir_ref count_lower(const ranking *r, const digits *d, ir_ref all)
{
    ir_func *f = r->l->f;
    const ir_type type = d->elements->type;
    const fe_tensor shape = { .rank = 3, .sizes = { r->rows->sizes[0], d->passes, d->values } };
    const ir_ref counts = opjit_fe_scatter(r->l, IR_SUM, type, &shape, d->passes * d->size);
    if (f->failed)
        return 0;
    const ir_ref row = opjit_ir_coordinate(f, counts, 0), own = opjit_ir_update(f, counts),
                 pass = ranking_op2(f, IR_IMOD, IR_INDEX, own, index_of(f, d->passes)),
                 element = opjit_fe_ranking_at(r, all, row,
                                               ranking_op2(f, IR_IDIV, IR_INDEX, own, index_of(f, d->passes)));
    const ir_ref shift = ir_expr1(f, IR_ELEM, type, moves_add(f, moves_mul(f, pass, d->width), d->elements->shift));
    opjit_ir_set_initial(f, counts, ranking_number(f, type, 0));
    opjit_ir_set_place(f, counts, 1, pass);
    opjit_ir_set_place(f, counts, 2, digit_of(r, d, element, shift));
    opjit_ir_set_value(f, counts, ranking_number(f, type, 1));

    const ir_ref lower = opjit_fe_scan_to(r->l, IR_SUM, type, &shape, 2, true);
    if (f->failed)
        return 0;
    const ir_ref at[] = { opjit_ir_coordinate(f, lower, 0), opjit_ir_coordinate(f, lower, 1),
                          opjit_ir_reduced(f, lower) };
    opjit_fe_set(r->l, lower, opjit_ir_load(f, ir_at(f, counts)->ref, at));
    return lower;
}

/* The elements of `all`, which are from number `from` on in its rows, in the order of a digit: rows of places, then the
 * elements. */
static ir_ref sort_pass(const ranking *r, const digits *d, ir_ref all, uint64_t from, ir_ref lower, uint32_t pass)
{
    ir_func *f = r->l->f;
    const ir_type type = d->elements->type;
    const fe_tensor shape = ranking_shape(r, d->values + d->size);
    const ir_ref sorted = opjit_fe_scatter(r->l, IR_KIND_NONE, type, &shape, 2 * d->size);
    if (f->failed)
        return 0;
    const ir_ref row = opjit_ir_coordinate(f, sorted, 0), last = opjit_fe_ranking_last(r, sorted),
                 own = opjit_ir_update(f, sorted);
    const ir_ref at[] = { row, opjit_ir_index(f, pass), last };
    const ir_ref place = ranking_op2(f, IR_ADD, type, opjit_ir_load(f, ir_at(f, lower)->ref, at),
                                     ranking_number(f, type, d->values));
    opjit_ir_set_initial(f, sorted,
                         ranking_choose(f, type, ranking_op2(f, IR_LT, IR_BOOL, last, index_of(f, d->values)), place,
                                        ranking_number(f, type, 0)));
    const ir_ref number = ranking_op2(f, IR_IDIV, IR_INDEX, own, opjit_ir_index(f, 2)),
                 element = opjit_fe_ranking_at(r, all, row, moves_add(f, number, (int64_t)from)),
                 digit = digit_of(r, d, element, ranking_number(f, type, d->elements->shift + pass * d->width)),
                 next = opjit_fe_ranking_at(r, sorted, row, digit);
    const ir_ref puts = ranking_op2(f, IR_EQ, IR_BOOL, ranking_op2(f, IR_IMOD, IR_INDEX, own, opjit_ir_index(f, 2)),
                                    opjit_ir_index(f, 0));
    opjit_ir_set_place(
        f, sorted, 1,
        ranking_choose(f, IR_INDEX, puts, opjit_fe_ranking_index(f, next, d->values + d->size), digit));
    opjit_ir_set_value(f, sorted,
                       ranking_choose(f, type, puts, element,
                                      ranking_op2(f, IR_ADD, type, next, ranking_number(f, type, 1))));
    return sorted;
}

ir_ref opjit_fe_ranking_radix(const ranking *r, ir_ref all, uint64_t size, const ranking_elements *elements,
                              uint64_t *out_from)
{
    const uint32_t bits = elements->bits;
    const uint32_t most = size < LONG ? DIGIT : LONG_DIGIT, passes = (bits + most - 1) / most,
                   width = (bits + passes - 1) / passes;
    const digits d = { elements, width, passes, UINT64_C(1) << width, size };
    const ir_ref lower = count_lower(r, &d, all);

    *out_from = 0;
    for (uint32_t pass = 0; pass < passes && !r->l->f->failed; pass++) {
        all = sort_pass(r, &d, all, *out_from, lower, pass);
        *out_from = d.values;
    }
    return all;
}
