/* SPDX-License-Identifier: Apache-2.0 */
/* cover.c - V6, and V7 for stores: proves by structure which coordinates the stores of a tensor reach.
 *
 * The stores of a block are pieces: per dimension a point or an interval whose ends are expressions.  Adjacent pieces
 * merge.  Closing a loop turns what depends on its variable into intervals that don't:
 *     a point j + r                             becomes  [lo + r, hi + r)
 *     consecutive intervals                     become   [first low end, last high end)       (tiles)
 *     points idiv(p, c), imod(p, c)             become   [0, n), [0, c)                       (merged dimensions)
 *     blocks that begin at a multiple of such   become   [first low end, last high end)
 *     a point p of a loop that runs at most once becomes [p, p + hi - lo)       (p has no variable any more)
 * What remains at the kernel's level must be the whole tensor.  Memory that may have gaps (aliased outputs, temps) must
 * only be disjoint: then closing a loop takes a hull, if a coordinate tells its iterations apart, or if each iteration
 * begins at or after the previous one's end.  A serial loop may store an element again, its own, by several stores, or
 * one that is stored outside of it: it must only be apart from other iterations of its stage. */
#include "ir/verify/cover.h"

#include <string.h>

#define FAIL(c, node, ...) return opjit_ir_verify_fail((c)->v, (c)->rule, node, __VA_ARGS__)

/* --- merging and disjointness ------------------------------------------------------------------------------------- */

static bool equal_extent(const cover *c, const extent *a, const extent *b)
{
    return a->point == b->point && opjit_ir_cover_equal(c->f, a->lo, b->lo) &&
           (a->point || opjit_ir_cover_equal(c->f, a->hi, b->hi));
}

/* Merges b into a if they form one box. */
static bool merge_pieces(cover *c, piece *a, const piece *b)
{
    uint32_t different = 0, dimension = 0;
    for (uint32_t d = 0; d < c->rank && different < 2; d++)
        if (!equal_extent(c, &a->d[d], &b->d[d])) {
            different++;
            dimension = d;
        }
    if (different != 1)
        return false;
    const extent x = opjit_ir_cover_interval(c, &a->d[dimension]), y = opjit_ir_cover_interval(c, &b->d[dimension]);
    if (opjit_ir_cover_equal(c->f, x.hi, y.lo))
        a->d[dimension] = (extent){ .lo = x.lo, .hi = y.hi };
    else if (opjit_ir_cover_equal(c->f, y.hi, x.lo))
        a->d[dimension] = (extent){ .lo = y.lo, .hi = x.hi };
    else
        return false;
    return true;
}

static bool is_empty(const cover *c, const piece *p)
{
    bool empty = false;
    for (uint32_t d = 0; d < c->rank && !empty; d++)
        empty = !p->d[d].point && opjit_ir_cover_equal(c->f, p->d[d].lo, p->d[d].hi);
    return empty;
}

static void merge(cover *c, uint32_t from)
{
    for (uint32_t a = from; a < c->count; a++)
        for (uint32_t b = from; b < c->count; b++)
            if (a != b && merge_pieces(c, &c->pieces[a], &c->pieces[b])) {
                c->pieces[b] = c->pieces[--c->count];
                if (a == c->count)
                    a = b;
                b = from - 1; /* the larger piece may touch others now; wraps to from */
            }
    for (uint32_t i = from; i < c->count && c->count > from + 1; i++)
        if (is_empty(c, &c->pieces[i]))
            c->pieces[i--] = c->pieces[--c->count]; /* wraps to from - 1 */
}

static bool disjoint(cover *c, const piece *a, const piece *b)
{
    for (uint32_t d = 0; d < c->rank; d++) {
        const extent x = opjit_ir_cover_interval(c, &a->d[d]), y = opjit_ir_cover_interval(c, &b->d[d]);
        if (opjit_ir_proves_le(c->f, x.hi, y.lo, 0) || opjit_ir_proves_le(c->f, y.hi, x.lo, 0))
            return true;
    }
    return false;
}

/* The first store from piece `from` on that may store what one before it does; 0: there is none. */
static ir_ref meeting(cover *c, uint32_t from)
{
    for (uint32_t a = from; a < c->count; a++)
        for (uint32_t b = a + 1; b < c->count; b++)
            if (!disjoint(c, &c->pieces[a], &c->pieces[b]))
                return c->pieces[b].store;
    return 0;
}

static opjit_status check_disjoint(cover *c, uint32_t from)
{
    const ir_ref store = meeting(c, from);
    if (store != 0)
        FAIL(c, store, "it is not proven to store other elements than the stores before it");
    return OPJIT_OK;
}

/* Whether dimension d is the same point, different in each iteration, in every piece from `from` on. */
static bool tells_apart(const cover *c, uint32_t from, uint32_t d, ir_ref var)
{
    int64_t factor;
    for (uint32_t i = from; i < c->count; i++)
        if (!c->pieces[i].d[d].point || !opjit_ir_cover_equal(c->f, c->pieces[i].d[d].lo, c->pieces[from].d[d].lo))
            return false;
    return opjit_ir_factor(c->f, c->pieces[from].d[d].lo, var, &factor) && factor != 0;
}

/* Whether in dimension d all pieces of each iteration end at or before those of the next one.  The loop's bounds are
 * constants. */
static bool follow(cover *c, uint32_t from, uint32_t d, ir_ref loop)
{
    ir_func *f = c->f;
    const ir_node node = *ir_at(f, loop);
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    const int64_t step = node.op == IR_FOR ? (int64_t)node.imm : 1;
    if (ir_index_value(f, hi) - ir_index_value(f, lo) <= step)
        return true; /* one iteration */
    const ir_ref all_but_last = opjit_ir_for(f, lo, opjit_ir_index(f, ir_index_value(f, hi) - step), (uint64_t)step);
    const ir_ref var = all_but_last ? ir_at(f, all_but_last)->ref : 0;
    for (uint32_t i = from; i < c->count; i++) {
        const extent e = opjit_ir_cover_interval(c, &c->pieces[i].d[d]);
        const ir_ref end = f->failed ? 0 : opjit_ir_cover_substitute(f, e.hi, node.ref, var);
        bool above = end != 0 && opjit_ir_proves_le(f, e.lo, e.hi, 0);
        for (uint32_t k = from; above && k < c->count; k++) {
            const ir_ref begin =
                opjit_ir_cover_substitute(f, c->pieces[k].d[d].lo, node.ref, opjit_ir_cover_plus(f, var, step));
            above = !f->failed && begin != 0 && opjit_ir_proves_le(f, end, begin, 0);
        }
        if (!above)
            return false;
    }
    return true;
}

/* Whether every piece from `from` on has the points of the first one, and what moves with var: then digits that tell
 * the iterations of one piece apart do so for all. */
static bool same_points(const cover *c, uint32_t from, ir_ref var)
{
    for (uint32_t i = from + 1; i < c->count; i++)
        for (uint32_t d = 0; d < c->rank; d++)
            if ((c->pieces[from].d[d].point || opjit_ir_cover_varies(c, &c->pieces[from].d[d], var)) &&
                !equal_extent(c, &c->pieces[from].d[d], &c->pieces[i].d[d]))
                return false;
    return true;
}

/* The hull of one piece's intervals over all iterations. */
static extent from_first_to_last(cover *c, const extent *e, ir_ref loop)
{
    ir_func *f = c->f;
    const ir_node node = *ir_at(f, loop);
    const int64_t first = ir_index_value(f, ir_operand(f, loop, 0)), end = ir_index_value(f, ir_operand(f, loop, 1));
    const int64_t step = node.op == IR_FOR ? (int64_t)node.imm : 1, last = end - 1 - (end - 1 - first) % step;
    const extent i = opjit_ir_cover_interval(c, e);
    return (
        extent){ .lo = opjit_ir_cover_tidy(f, opjit_ir_cover_substitute(f, i.lo, node.ref, opjit_ir_index(f, first))),
                 .hi = opjit_ir_cover_tidy(f, opjit_ir_cover_substitute(f, i.hi, node.ref, opjit_ir_index(f, last))) };
}

/* The hull of the pieces: a dimension that varies or differs is taken as a whole. */
static bool close_hull(cover *c, uint32_t from, ir_ref loop)
{
    const ir_ref var = ir_at(c->f, loop)->ref, lo = ir_operand(c->f, loop, 0), hi = ir_operand(c->f, loop, 1);
    const bool counts = ir_is_index_const(c->f, lo) && ir_is_index_const(c->f, hi) &&
                        ir_index_value(c->f, lo) < ir_index_value(c->f, hi);
    piece hull = c->pieces[from], whole = hull;
    bool apart = (opjit_ir_cover_close_digits(c, &whole, loop) && same_points(c, from, var)) ||
                 opjit_ir_cover_at_most_once(c, loop);
    for (uint32_t d = 0; d < c->rank; d++) {
        const bool follows = counts && follow(c, from, d, loop);
        apart = apart || follows || tells_apart(c, from, d, var);
        bool keep = !opjit_ir_cover_varies(c, &hull.d[d], var);
        for (uint32_t i = from + 1; keep && i < c->count; i++)
            keep = equal_extent(c, &hull.d[d], &c->pieces[i].d[d]);
        extent all = { .lo = 0 };
        if (!keep && follows && c->count == from + 1)
            all = from_first_to_last(c, &hull.d[d], loop);
        if (!keep && (all.lo == 0 || all.hi == 0))
            all = (extent){ .lo = opjit_ir_index(c->f, 0),
                            .hi = opjit_ir_index(c->f, (int64_t)c->f->tensors[c->tensor].sizes[d]) };
        hull.d[d] = keep ? hull.d[d] : all;
    }
    c->pieces[from] = hull;
    c->count = from + 1;
    return apart && !c->f->failed;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static opjit_status collect_block(cover *c, ir_ref first, bool again);

static bool is_serial(const ir_func *f, ir_ref loop)
{
    return ir_at(f, loop)->op == IR_FOR && (ir_at(f, loop)->flags & IR_FOR_SERIAL) != 0;
}

/* Closes all pieces from `from` on.  false, and they are as before: one can't be, or what they are then meets, as where
 * parts of a line that follow its number are taken as a whole. */
static bool close_each(cover *c, uint32_t from, ir_ref loop)
{
    piece open[PIECES];
    bool closed = true;

    memcpy(open, c->pieces, c->count * sizeof *open);
    for (uint32_t i = from; closed && i < c->count; i++)
        closed = opjit_ir_cover_close(c, &c->pieces[i], loop);
    closed = closed && (!c->gaps || meeting(c, from) == 0);
    if (!closed)
        memcpy(c->pieces, open, c->count * sizeof *open);
    return closed;
}

/* block: the first statement of the block that contains the loop; 0 for a stage. */
static opjit_status collect_loop(cover *c, ir_ref loop, ir_ref block)
{
    const uint32_t from = c->count;
    TRY(collect_block(c, ir_at(c->f, loop)->body, is_serial(c->f, loop)));
    c->block = block;
    if (c->count == from)
        return OPJIT_OK;
    if (!close_each(c, from, loop) && (!c->gaps || (!close_hull(c, from, loop) && !is_serial(c->f, loop))))
        FAIL(c, c->pieces[from].store, "the iterations of the %s around it are not proven to store %s",
             opjit_ir_op_infos[ir_at(c->f, loop)->op].name, c->gaps ? "different elements" : "each element once");
    return OPJIT_OK;
}

/* again: its statements may store elements again. */
static opjit_status collect_block(cover *c, ir_ref first, bool again)
{
    const uint32_t from = c->count;
    for (ir_ref s = first; s; s = ir_at(c->f, s)->next) {
        const ir_node *node = ir_at(c->f, s);
        if (node->op == IR_STAGE || (node->op == IR_FOR && !(c->base && is_serial(c->f, s))))
            TRY(collect_loop(c, s, first));
        if (node->op != IR_STORE || node->ref != c->tensor)
            continue;
        if (c->count == PIECES)
            FAIL(c, s, "more than %d pieces of one tensor", PIECES);
        piece *p = &c->pieces[c->count++];
        p->store = s;
        for (uint32_t d = 0; d < c->rank; d++) {
            p->d[d] = (extent){ .point = true, .lo = ir_operand(c->f, s, 1 + d) };
            if (ir_is_index_const(c->f, p->d[d].lo))
                p->d[d] = opjit_ir_cover_interval(c, &p->d[d]);
        }
    }
    merge(c, from);
    return c->gaps && !again ? check_disjoint(c, from) : OPJIT_OK;
}

/* Collects the stages that store to the tensor, as a block. */
static opjit_status collect_stages(cover *c)
{
    for (ir_ref s = c->v->first_store[c->tensor]; s; s = c->v->next_store[s])
        TRY(collect_loop(c, c->v->stage_of[s], 0));
    merge(c, 0);
    return c->gaps ? check_disjoint(c, 0) : OPJIT_OK;
}

/* Whether a serial loop of the list or below it stores to the tensor. */
static bool stores_again(const ir_func *f, ir_ref first, uint32_t tensor, bool serial)
{
    for (ir_ref s = first; s; s = ir_at(f, s)->next)
        if ((serial && ir_at(f, s)->op == IR_STORE && ir_at(f, s)->ref == tensor) ||
            stores_again(f, ir_at(f, s)->body, tensor, serial || is_serial(f, s)))
            return true;
    return false;
}

/* A stage by itself: its iterations store different elements. */
static opjit_status check_apart(verifier *v, uint32_t tensor, ir_ref stage)
{
    cover c = { .v = v, .f = v->f, .tensor = tensor, .rank = v->f->tensors[tensor].rank, .rule = 7, .gaps = true };
    return opjit_ir_verify_proof(v, collect_loop(&c, stage, 0));
}

static opjit_status check_output(verifier *v, uint32_t tensor)
{
    const ir_tensor *t = &v->f->tensors[tensor];
    cover c = {
        .v = v, .f = v->f, .tensor = tensor, .rank = t->rank, .rule = 6, .gaps = t->alias != 0, .base = true,
    };
    for (ir_ref s = v->first_store[tensor]; s; s = v->next_store[s])
        if (stores_again(v->f, ir_at(v->f, v->stage_of[s])->body, tensor, false))
            TRY(check_apart(v, tensor, v->stage_of[s]));
    TRY(collect_stages(&c));
    if (c.gaps)
        return OPJIT_OK;
    if (c.count == 0)
        FAIL(&c, 0, "the output in slot %u is not stored to", t->slot);
    if (c.count > 1)
        FAIL(&c, c.pieces[1].store, "its part and that of another store are not proven to be one box");
    for (uint32_t d = 0; d < c.rank; d++) {
        const extent whole = { .lo = opjit_ir_index(c.f, 0),
                               .hi = opjit_ir_index(c.f, (int64_t)c.f->tensors[tensor].sizes[d]) };
        const extent is = opjit_ir_cover_interval(&c, &c.pieces[0].d[d]);
        if (!equal_extent(&c, &is, &whole))
            FAIL(&c, c.pieces[0].store, "the stores are not proven to reach all of dimension %u", d);
    }
    return OPJIT_OK;
}

/* A temp's stages each by itself: they run one after the other. */
static opjit_status check_temp(verifier *v, uint32_t tensor)
{
    for (ir_ref s = v->first_store[tensor]; s; s = v->next_store[s])
        TRY(check_apart(v, tensor, v->stage_of[s]));
    return OPJIT_OK;
}

opjit_status opjit_ir_verify_cover(verifier *v)
{
    const uint32_t tensor_count = v->f->tensor_count;
    if (!v->loops)
        opjit_ir_list_yields(v);
    for (uint32_t t = 1; t < tensor_count; t++) {
        const ir_role role = v->f->tensors[t].role;
        if (role == IR_OUT)
            TRY(opjit_ir_verify_proof(v, v->loops ? check_output(v, t) : opjit_ir_verify_yields(v, t)));
        else if ((role == IR_TEMP || role == IR_KEPT) && v->loops)
            TRY(check_temp(v, t));
    }
    return OPJIT_OK;
}
