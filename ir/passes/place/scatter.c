/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - the stages of a SCATTER: a nest that stores initial values, and one that makes the updates.  Part of
 * place.
 *
 * Coordinates that are their own places are independent: those before the first other one are the parallel loop (on a
 * GPU all of them), then come the updates one after the other, in a serial loop, and in it the other coordinates that
 * are their own.  A place that may lie outside of the tensor is the variable of a loop that runs once, or not at all.
 * Where an output alone reads the result as it is, both stages store in the output's memory.
 *
 * Updates that differ by their number modulo a few, as those that take a place from a counter and then count, are made
 * so many at a time: each one's choice is made here, and what they have in common is read before the first (common.c).
 */
#include "ir/passes/place/place.h"

#include <string.h>

enum {
    UPDATE_BYTES = 64 * 1024, /* of the updates of a task */
    MOST_APART = 8            /* updates that are made at a time */
};

typedef struct update_nest {
    placer *p;
    ir_func *f;
    ir_ref statement;
    uint32_t tensor, rank; /* the tensor is where elements are stored */
    inliner in;
    ir_ref at[9];          /* in place of the statement's variables */
    ir_ref loop;           /* of the updates */
    int64_t apart;         /* how many of them an iteration makes */
    ir_ref inner[8];       /* loops in it */
    uint32_t inner_count;
    ir_ref coordinates[8]; /* of the element that an update changes */
} update_nest;

/* --- the output ------------------------------------------------------------------------------------------------- */

static bool is_dense(const ir_tensor *t)
{
    ir_tensor dense = *t;
    opjit_ir_dense_strides(&dense);
    return memcmp(dense.strides, t->strides, t->rank * sizeof *t->strides) == 0;
}

/* Whether the tensor is the scatter's, or shows all of it, both being dense, in an output that may have its shape. */
static bool shows(const ir_func *f, uint32_t tensor, uint32_t scatter, const ir_tensor *out)
{
    const ir_tensor *t = &f->tensors[tensor], *of = &f->tensors[scatter];
    if (tensor == scatter)
        return true;
    return t->role == IR_VIEW && t->of == scatter && t->offset == 0 && is_dense(t) && is_dense(of) && is_dense(out) &&
           t->bytes == of->bytes && out->alias == 0;
}

/* Whether the load is of a tensor of the output's sizes, at the statement's own coordinates. */
static bool reads_own(const ir_func *f, ir_ref statement, ir_ref load, const ir_tensor *out)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    if (t->rank != out->rank || memcmp(t->sizes, out->sizes, t->rank * sizeof *t->sizes) != 0)
        return false;
    for (uint32_t d = 0; d < t->rank; d++)
        if (t->sizes[d] != 1 && ir_operand(f, load, d) != opjit_ir_coordinate(f, statement, d))
            return false;
    return true;
}

/* The item of the output that alone reads the scatter, copies it, and is the next root; 0: there is none. */
static uint32_t output_of(const placer *p, uint32_t number)
{
    const ir_func *f = p->f;
    const item *x = &p->items[number];
    uint32_t next = number + 1;
    while (next < p->count && !p->items[next].is_root)
        next++;
    if (next == p->count || x->reads != 1 || x->reads_itself || x->first_root != next || x->last_root != next)
        return 0;
    const ir_ref output = p->items[next].statement;
    const ir_tensor *out = &f->tensors[ir_at(f, output)->ref];
    if (ir_at(f, output)->op != IR_YIELD || ir_at(f, output)->imm != 0)
        return 0;
    for (ir_ref s = output;;) {
        const ir_ref load = ir_operand(f, s, 0);
        if (ir_at(f, load)->op != IR_LOAD || !reads_own(f, s, load, out))
            return 0;
        const uint32_t tensor = ir_at(f, load)->ref;
        if (shows(f, tensor, ir_at(f, x->statement)->ref, out))
            return next;
        s = p->sources[tensor].def; /* a copy that is written where it is read */
        if (s == 0)
            return 0;
    }
}

/* --- initial values --------------------------------------------------------------------------------------------- */

static void place_initial(update_nest *n, block *stages)
{
    ir_func *f = n->f;
    const ir_tensor t = f->tensors[n->tensor];
    inliner in = { .f = f, .sources = n->p->sources, .private_views = n->p->roots > 1, .loop_count = n->rank };
    ir_ref parent = 0;
    for (uint32_t d = 0; d < n->rank && !f->failed; d++) {
        const ir_ref lo = opjit_ir_index(f, 0), hi = opjit_ir_index(f, (int64_t)t.sizes[d]);
        const ir_ref loop = d == 0 ? opjit_ir_stage(f, lo, hi, 1) : opjit_ir_for(f, lo, hi, 1);
        block inside = { .parent = parent };
        if (f->failed)
            return;
        opjit_ir_block_add(f, d == 0 ? stages : &inside, loop);
        parent = loop;
        in.extents[d] = t.sizes[d];
        in.loops[d] = ir_at(f, loop)->ref;
    }
    block innermost = { .parent = parent };
    const ir_ref first = opjit_ir_inline_part(&in, n->statement, opjit_ir_initial(f, n->statement), n->rank, in.loops);
    const ir_ref value = f->failed ? 0 : opjit_ir_share(f, &innermost, first);
    if (!f->failed)
        opjit_ir_block_add(f, &innermost, opjit_ir_store(f, n->tensor, value, in.loops));
}

/* --- updates ---------------------------------------------------------------------------------------------------- */

static int64_t size_of(const update_nest *n, uint32_t d) { return (int64_t)n->f->tensors[n->tensor].sizes[d]; }

/* Whether the coordinate belongs to the parallel loop. */
static bool is_outer(const update_nest *n, uint32_t d)
{
    bool before = opjit_ir_is_own(n->f, n->statement, d);
    for (uint32_t i = 0; i < d && before && !n->p->threads; i++)
        before = opjit_ir_is_own(n->f, n->statement, i);
    return before;
}

static void add_variable(update_nest *n, ir_ref var, int64_t extent)
{
    if (extent == 1 || n->f->failed)
        return;
    n->in.extents[n->in.loop_count] = (uint64_t)extent;
    n->in.loops[n->in.loop_count++] = var;
}

/* Makes the parallel loop, sets what its coordinates are, and returns it. */
static ir_ref make_stage(update_nest *n)
{
    ir_func *f = n->f;
    const int64_t updates = opjit_ir_updates(f, n->statement);
    int64_t rows = 1, each = updates < UPDATE_BYTES ? updates : UPDATE_BYTES;
    for (uint32_t d = 0; d < n->rank; d++) {
        if (is_outer(n, d))
            rows *= size_of(n, d);
        else if (opjit_ir_is_own(f, n->statement, d))
            each = size_of(n, d) < UPDATE_BYTES / each ? each * size_of(n, d) : UPDATE_BYTES;
    }
    const int64_t grain = UPDATE_BYTES / each < rows ? UPDATE_BYTES / each : rows;
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, rows), (uint64_t)grain);
    if (f->failed)
        return 0;
    const ir_ref var = ir_at(f, stage)->ref;
    add_variable(n, var, rows);
    for (uint32_t d = 0; d < n->rank && !f->failed; d++) {
        n->at[d] = opjit_ir_index(f, 0);
        if (!is_outer(n, d) || size_of(n, d) == 1)
            continue;
        rows /= size_of(n, d);
        n->at[d] = ir_make2(f, IR_IDIV, IR_INDEX, var, opjit_ir_index(f, rows));
        if (!f->failed)
            n->at[d] = ir_make2(f, IR_IMOD, IR_INDEX, n->at[d], opjit_ir_index(f, size_of(n, d)));
    }
    return stage;
}

static ir_ref make_loop(ir_func *f, ir_ref lo, ir_ref hi, bool serial)
{
    const ir_ref loop = opjit_ir_for(f, lo, hi, 1);
    if (loop != 0 && serial)
        f->nodes[loop].flags |= IR_FOR_SERIAL;
    return loop;
}

/* Makes the loops of the updates and of the other coordinates that are their own. */
static void make_loops(update_nest *n)
{
    ir_func *f = n->f;
    const int64_t updates = opjit_ir_updates(f, n->statement) / n->apart;
    n->loop = make_loop(f, opjit_ir_index(f, 0), opjit_ir_index(f, updates), true);
    n->at[n->rank] = f->failed ? 0 : ir_at(f, n->loop)->ref;
    add_variable(n, n->at[n->rank], updates);
    for (uint32_t d = 0; d < n->rank && !f->failed; d++) {
        if (!opjit_ir_is_own(f, n->statement, d) || is_outer(n, d) || size_of(n, d) == 1)
            continue;
        const ir_ref loop = make_loop(f, opjit_ir_index(f, 0), opjit_ir_index(f, size_of(n, d)), false);
        n->at[d] = f->failed ? 0 : ir_at(f, loop)->ref;
        n->inner[n->inner_count++] = loop;
        add_variable(n, n->at[d], size_of(n, d));
    }
}

/* The number whose rest the expression is, or chooses by: of the update's number by it; 1: it does neither. */
static int64_t rest_of(const ir_func *f, ir_ref expr, ir_ref update)
{
    if (ir_at(f, expr)->op == IR_SELECT && ir_at(f, ir_operand(f, expr, 0))->count > 0)
        expr = ir_operand(f, ir_operand(f, expr, 0), 0);
    const bool is_rest = ir_at(f, expr)->op == IR_IMOD && ir_operand(f, expr, 0) == update;
    return is_rest ? ir_index_value(f, ir_operand(f, expr, 1)) : 1;
}

/* How many updates are made at a time, each of which has the same rest in all iterations. */
static int64_t updates_apart(const update_nest *n)
{
    const ir_func *f = n->f;
    const ir_ref update = opjit_ir_update(f, n->statement);
    int64_t apart = rest_of(f, ir_operand(f, n->statement, 0), update);
    for (uint32_t d = 0; d < n->rank && apart == 1; d++)
        apart = rest_of(f, opjit_ir_place(f, n->statement, d), update);
    for (uint32_t d = 0; d < n->rank; d++)
        if (opjit_ir_is_own(f, n->statement, d) && !is_outer(n, d) && size_of(n, d) > 1)
            return 1; /* there are loops in that of the updates */
    return apart <= MOST_APART && opjit_ir_updates(f, n->statement) % apart == 0 ? apart : 1;
}

/* Whether the expression changes in the loops inside of that of the updates. */
static bool varies(const update_nest *n, ir_ref expr)
{
    for (uint32_t i = 0; i < n->inner_count; i++)
        if (opjit_ir_uses(n->f, expr, ir_at(n->f, n->inner[i])->ref))
            return true;
    return false;
}

/* Adds the loop to **list; what follows goes into it: into *inside, which *list becomes. */
static void enter(ir_func *f, block **list, block *inside, ir_ref loop)
{
    opjit_ir_block_add(f, *list, loop);
    *inside = (block){ .parent = loop };
    *list = inside;
}

/* Sets the coordinate to the place, in a let; one that may be outside, to the variable of a loop around the rest. */
static void add_place(update_nest *n, block **list, block *inside, uint32_t d, ir_ref place)
{
    ir_func *f = n->f;
    const ir_interval range = opjit_ir_interval(f, place);
    const int64_t size = size_of(n, d);
    if (range.lo >= 0 && range.hi < size) {
        n->coordinates[d] = range.lo == range.hi ? opjit_ir_index(f, range.lo) : opjit_ir_block_let(f, *list, place);
        return;
    }
    const ir_ref zero = opjit_ir_index(f, 0), end = opjit_ir_index(f, size);
    const ir_ref bounded = ir_make3(f, IR_CLAMP, IR_INDEX, place, opjit_ir_index(f, -1), end);
    const ir_ref near = opjit_ir_block_let(f, *list, bounded);
    if (f->failed)
        return;
    const ir_ref after = ir_make2(f, IR_IADD, IR_INDEX, near, opjit_ir_index(f, 1));
    const ir_ref lo = ir_make2(f, IR_IMAX, IR_INDEX, near, zero), hi = ir_make2(f, IR_IMIN, IR_INDEX, after, end);
    const ir_ref loop = f->failed ? 0 : make_loop(f, lo, hi, true);
    if (f->failed)
        return;
    enter(f, list, inside, loop);
    n->coordinates[d] = ir_at(f, loop)->ref;
}

/* Adds the places that change in the inner loops, or those that don't. */
static void add_places(update_nest *n, block **list, block *inside, const ir_ref *parts, bool varying)
{
    ir_func *f = n->f;
    for (uint32_t d = 0; d < n->rank && !f->failed; d++) {
        if (opjit_ir_is_own(f, n->statement, d))
            n->coordinates[d] = parts[d];
        else if (varies(n, parts[d]) == varying)
            add_place(n, list, inside, d, opjit_ir_share(f, *list, parts[d]));
    }
}

/* The parts of one of the updates of an iteration: its place, and the value. */
static void write_parts(update_nest *n, ir_ref *parts)
{
    ir_func *f = n->f;
    for (uint32_t d = 0; d <= n->rank && !f->failed; d++) {
        const ir_ref expr = d == n->rank ? ir_operand(f, n->statement, 0) : opjit_ir_place(f, n->statement, d);
        parts[d] = d < n->rank && opjit_ir_is_own(f, n->statement, d)
                       ? n->at[d]
                       : opjit_ir_inline_part(&n->in, n->statement, expr, n->rank + 1, n->at);
    }
}

/* One of the updates of an iteration, at the end of *body.  Its lets are its own: what it reads of the tensor, the one
 * before may have stored. */
static void place_update(update_nest *n, block *body, const ir_ref *parts)
{
    ir_func *f = n->f;
    const ir_kind kind = (ir_kind)ir_at(f, n->statement)->kind;
    block head = { 0 }, *list = &head, inside;
    add_places(n, &list, &inside, parts, false);
    for (uint32_t i = 0; i < n->inner_count && !f->failed; i++)
        enter(f, &list, &inside, n->inner[i]);
    add_places(n, &list, &inside, parts, true);
    ir_ref value = f->failed ? 0 : opjit_ir_share(f, list, parts[n->rank]);
    if (kind != IR_KIND_NONE && !f->failed)
        value = ir_expr2(f, ir_kind_op(kind), IR_NONE, opjit_ir_load(f, n->tensor, n->coordinates), value);
    if (!f->failed)
        opjit_ir_block_add(f, list, opjit_ir_store(f, n->tensor, value, n->coordinates));
    opjit_ir_block_move(f, &head, body);
}

static void place_updates(update_nest *n, block *stages)
{
    ir_func *f = n->f;
    n->in = (inliner){ .f = f, .sources = n->p->sources, .private_views = n->p->roots > 1 };
    n->apart = updates_apart(n);
    const ir_ref stage = make_stage(n);
    make_loops(n);
    if (f->failed)
        return;
    block list = { .parent = stage }, body = { .parent = n->loop };
    opjit_ir_block_add(f, stages, stage);
    opjit_ir_block_add(f, &list, n->loop);
    const ir_ref first = n->at[n->rank];
    const uint32_t each = n->rank + 1;
    ir_ref parts[MOST_APART * 9] = { 0 };
    for (int64_t i = 0; i < n->apart && !f->failed; i++) {
        if (n->apart > 1) {
            const ir_ref from = ir_make2(f, IR_IMUL, IR_INDEX, first, opjit_ir_index(f, n->apart));
            n->at[n->rank] = f->failed ? 0 : ir_make2(f, IR_IADD, IR_INDEX, from, opjit_ir_index(f, i));
        }
        write_parts(n, &parts[i * each]);
    }
    if (n->apart > 1 && f->tensors[n->tensor].alias == 0 && !f->failed)
        opjit_ir_share_between(f, &body, n->tensor, parts, (uint32_t)n->apart * each);
    for (int64_t i = 0; i < n->apart && !f->failed; i++)
        place_update(n, &body, &parts[i * each]);
}

/* Nothing else reads or stores an output: it is dense and may have another rank. */
static void take_shape(ir_tensor *out, const ir_tensor *scatter)
{
    if (out->rank == scatter->rank && memcmp(out->sizes, scatter->sizes, out->rank * sizeof *out->sizes) == 0)
        return;
    out->rank = scatter->rank;
    memcpy(out->sizes, scatter->sizes, sizeof out->sizes);
    memcpy(out->strides, scatter->strides, sizeof out->strides);
}

uint32_t opjit_ir_place_scatter(placer *p, uint32_t first, block *stages)
{
    ir_func *f = p->f;
    const uint32_t output = output_of(p, first);
    const ir_ref statement = p->items[first].statement;
    const uint32_t own = ir_at(f, statement)->ref;
    update_nest n = { .p = p, .f = f, .statement = statement, .tensor = own, .rank = f->tensors[own].rank };
    if (output != 0) {
        n.tensor = ir_at(f, p->items[output].statement)->ref;
        f->tensors[own].role = IR_VALUE; /* no memory after all */
        take_shape(&f->tensors[n.tensor], &f->tensors[own]);
    }
    ir_took(f, IR_STEP_SCATTER);
    place_initial(&n, stages);
    p->sources[own].aliased = true;
    if (!f->failed)
        place_updates(&n, stages);
    p->sources[own].aliased = false;
    return (output != 0 ? output : first) + 1;
}
