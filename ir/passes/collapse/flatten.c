/* SPDX-License-Identifier: Apache-2.0 */
/* flatten.c - small matrices as blocks of whole vectors.  Part of collapse: takes its nest and returns the stages that
 * replace it.
 *
 * Rows shorter than a line, stored one by one, are mostly remainders.  Where the output's inner coordinates are one run
 * of memory, the run is cut into blocks of `length` elements, and a loop with constant bounds stores a block, element e
 * of it with the coordinates idiv(e, c) and imod(e, c): because of these bounds code generation knows them for every
 * lane.
 *
 * free   the values repeat: they depend on no coordinate outside of the run's last `period` elements (a batch of small
 *        matrices, or a matrix that is small as a whole).  A block is some periods, and all blocks are alike.
 * rows   they depend on the row, too: a block is `rows` rows, and row `rows * p + idiv(e, period)` moves with block p.
 *
 * A comparison becomes V(e) REL I(p), with I clamped to the range of V, so that any lane can hold it; I is in a let. */
#include "ir/passes/collapse/nest.h"

enum {
    BLOCK_VECTORS = 32, /* per block, if there is a choice: enough to hide the enclosing loop */
    FEWER_VECTORS = 8,  /* where conditions are computed: these take far longer to compile than constants */
    MOST_VECTORS = 64,  /* per block: all of them are code */
    LEAST_VECTOR = 16,  /* bytes, without a target */
};

typedef struct flat {
    nest *n;
    uint32_t first; /* position from which on the output is one run */
    uint32_t cut;   /* first position whose coordinate depends on e; rows: that of cut - 1 depends on p and e */
    bool by_rows;
    bool computed;                             /* conditions are not constants, but depend on parameters */
    bool single;                               /* an input repeats with the period, so a block is one period */
    int64_t run, period, length, blocks, rest; /* elements, except blocks */
    int64_t unit, vector;                      /* elements of a line and of a vector */
    ir_ref p, e;                               /* block and element */
    block body;                                /* of the new stage */
} flat;

/* --- the shape ---------------------------------------------------------------------------------------------------- */

static bool is_index_comparison(const ir_func *f, ir_ref r)
{
    return ir_is_comparison((ir_op)ir_at(f, r)->op) && ir_at(f, ir_operand(f, r, 0))->type == IR_INDEX;
}

/* a - b without the variables, and their factors. */
static bool difference(const nest *n, ir_ref comparison, ir_affine *rest, int64_t factors[NEST_RANK])
{
    *rest = (ir_affine){ 0 };
    return opjit_ir_affine_add(n->f, rest, ir_operand(n->f, comparison, 0), 1) &&
           opjit_ir_affine_add(n->f, rest, ir_operand(n->f, comparison, 1), -1) &&
           opjit_ir_nest_factors(n, rest, factors);
}

/* Marks the positions that comparisons depend on, and whether they depend on parameters, too; false: an index is used
 * in another way. */
static bool find_used(const nest *n, const ir_reach *seen, bool used[NEST_RANK], bool *computed)
{
    const ir_func *f = n->f;
    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_ref r = seen->nodes[k];
        const ir_node *node = ir_at(f, r);
        ir_affine rest;
        int64_t factors[NEST_RANK];
        if (node->type == IR_INDEX || node->op == IR_LOAD)
            continue;
        if (node->count > 0 && is_index_comparison(f, r)) {
            if (!difference(n, r, &rest, factors))
                return false;
            *computed = *computed || rest.count != 0;
            for (uint32_t i = 0; i < n->count; i++)
                used[i] = used[i] || factors[n->order[i]] != 0;
            continue;
        }
        for (uint32_t i = 0; i < node->count; i++)
            if (ir_at(f, ir_operand(f, r, i))->type == IR_INDEX)
                return false;
    }
    return true;
}

static bool joins(const nest *n, uint32_t tensor, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i + 1 < end; i++)
        if (!opjit_ir_nest_joins(n, tensor, n->order[i], n->order[i + 1]))
            return false;
    return true;
}

/* Whether every input is one run where the output is, or one that repeats with the coordinates before the cut. */
static bool inputs_fit(flat *s)
{
    const nest *n = s->n;
    s->single = false;
    for (uint32_t i = 0; i < n->load_count; i++) {
        const uint32_t t = ir_at(n->f, n->loads[i])->ref;
        const uint64_t step = nest_stride(n, t, n->order[n->count - 1]);
        bool repeats = joins(n, t, s->cut, n->count);
        if (step > 1)
            return false;
        if (joins(n, t, s->first, n->count))
            continue;
        for (uint32_t k = s->first; k < s->cut; k++)
            repeats = repeats && nest_stride(n, t, n->order[k]) == 0;
        if (!repeats)
            return false;
        s->single = true;
    }
    return true;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

static bool set_blocks(flat *s, int64_t length)
{
    s->length = length;
    s->blocks = s->run / length;
    s->rest = s->run % length;
    return s->rest == 0 || s->first == 0; /* the rest is a stage of its own */
}

static bool plan_free(flat *s, const bool used[NEST_RANK])
{
    const nest *n = s->n;
    s->by_rows = false;
    for (s->cut = s->first; s->cut + 1 < n->count && !used[s->cut]; s->cut++)
        ;
    s->period = opjit_ir_nest_extent(n, s->cut, n->count);
    if (s->period > MOST_VECTORS * s->vector || !inputs_fit(s))
        return false;
    int64_t length = s->period * opjit_ir_nest_until(s->period, s->unit); /* whole periods of whole lines */
    if (s->single || s->cut == s->first || length > MOST_VECTORS * s->vector || length > s->run)
        return set_blocks(s, s->period);
    const int64_t most = (s->computed ? FEWER_VECTORS : BLOCK_VECTORS) * s->vector;
    for (int64_t times = most / length; times > 1; times--)
        if (s->run % (length * times) == 0)
            return set_blocks(s, length * times);
    return set_blocks(s, length) || set_blocks(s, s->period);
}

/* Rows of whole lines, or of whole vectors, that divide the number of rows; otherwise lines with a rest. */
static bool plan_rows(flat *s)
{
    const nest *n = s->n;
    s->by_rows = true;
    s->cut = n->inner;
    s->period = opjit_ir_nest_extent(n, s->cut, n->count);
    if (s->cut <= s->first || s->period >= s->unit || !inputs_fit(s) || s->single)
        return false;
    const int64_t rows = n->extents[n->order[s->cut - 1]], most = FEWER_VECTORS * s->vector / s->period;
    for (int64_t unit = s->unit; unit >= s->vector; unit /= 2) {
        const int64_t least = opjit_ir_nest_until(s->period, unit);
        for (int64_t m = most / least * least; m > 0; m -= least)
            if (rows % m == 0)
                return set_blocks(s, m * s->period);
    }
    const int64_t least = opjit_ir_nest_until(s->period, s->unit), m = most / least * least;
    return s->cut == 1 && m > 0 && m <= rows && set_blocks(s, m * s->period);
}

static bool make_plan(flat *s, const ir_pass_env *env)
{
    nest *n = s->n;
    ir_func *f = n->f;
    const uint32_t out = nest_output(n);
    bool used[NEST_RANK] = { false };
    if (n->first != n->store || n->inner == 0 || !n->regular || nest_stride(n, out, n->order[n->count - 1]) != 1)
        return false;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, n->store, 0));
    if (seen.nodes == NULL || !find_used(n, &seen, used, &s->computed))
        return false;
    const int64_t size = opjit_ir_type_size(f->tensors[out].type);
    s->unit = IR_LINE / size;
    s->vector = (env->target != NULL ? (int64_t)env->target->vector_bytes : LEAST_VECTOR) / size;
    for (s->first = 0; s->first < n->inner; s->first++) {
        s->run = opjit_ir_nest_extent(n, s->first, n->count);
        if (joins(n, out, s->first, n->count) && (plan_free(s, used) || plan_rows(s)))
            return true;
    }
    return false;
}

/* --- coordinates -------------------------------------------------------------------------------------------------- */

static ir_ref digit(ir_func *f, ir_ref of, int64_t below, int64_t extent)
{
    const ir_ref high = ir_make2(f, IR_IDIV, IR_INDEX, of, opjit_ir_index(f, below));
    return extent == 0 ? high : ir_make2(f, IR_IMOD, IR_INDEX, high, opjit_ir_index(f, extent));
}

/* The part of position i before the cut that block p holds, and of those up to end merged with it. */
static ir_ref block_digit(const flat *s, uint32_t i, uint32_t end)
{
    ir_func *f = s->n->f;
    const uint32_t outer = i < s->first ? s->first : s->by_rows ? s->cut - 1 : s->cut;
    const int64_t per_row = s->by_rows ? s->n->extents[s->n->order[s->cut - 1]] * s->period / s->length : 1;
    int64_t below = i < s->first ? s->blocks : per_row;
    if (s->by_rows && i + 1 == s->cut) {
        const ir_ref row = i == 0 ? s->p : digit(f, s->p, 1, per_row);
        return ir_make2(f, IR_IMUL, IR_INDEX, row, opjit_ir_index(f, s->length / s->period));
    }
    if (end < outer && !checked_muli(below, opjit_ir_nest_extent(s->n, end, outer), &below))
        return 0; /* can't be: sizes of one tensor */
    return digit(f, s->p, below, i == 0 ? 0 : opjit_ir_nest_extent(s->n, i, end));
}

static ir_ref element_digit(const flat *s, uint32_t i)
{
    const nest *n = s->n;
    return digit(n->f, s->e, opjit_ir_nest_extent(n, i + 1, n->count), i < s->cut ? 0 : n->extents[n->order[i]]);
}

/* Enters in the map what comparison r becomes. */
static void map_comparison(flat *s, ir_map *map, ir_ref r)
{
    const nest *n = s->n;
    ir_func *f = n->f;
    ir_affine of_element = { 0 }, of_block;
    int64_t factors[NEST_RANK], lo, hi;
    bool ok = difference(n, r, &of_block, factors);
    for (uint32_t i = 0; ok && i < n->count; i++) {
        const int64_t factor = factors[n->order[i]];
        if (factor == 0)
            continue;
        if (i >= s->cut || (s->by_rows && i + 1 == s->cut))
            ok = opjit_ir_affine_add(f, &of_element, element_digit(s, i), factor);
        if (ok && i < s->cut)
            ok = opjit_ir_affine_add(f, &of_block, block_digit(s, i, i + 1), factor);
    }
    ir_affine negative = { 0 };
    const ir_ref rest = ok ? opjit_ir_affine_build(f, &of_block) : 0;
    ok = rest != 0 && opjit_ir_affine_add(f, &negative, rest, -1);
    const ir_ref element = ok ? opjit_ir_affine_build(f, &of_element) : 0;
    if (element == 0) {
        f->failed = true; /* can't be: as many terms as before, and sums of numbers below 2^33 */
        return;
    }
    const ir_interval range = opjit_ir_interval(f, element);
    ir_ref limit = opjit_ir_affine_build(f, &negative);
    if (checked_subi(range.lo, 1, &lo) && checked_addi(range.hi, 1, &hi))
        limit = ir_make3(f, IR_CLAMP, IR_INDEX, limit, opjit_ir_index(f, lo), opjit_ir_index(f, hi));
    limit = opjit_ir_block_let(f, &s->body, limit);
    ir_map_set(f, map, r, ir_make2(f, (ir_op)ir_at(f, r)->op, IR_BOOL, element, limit));
}

/* --- rewrite ------------------------------------------------------------------------------------------------------ */

static void add_dimension(ir_tensor *t, int64_t size, uint64_t stride)
{
    t->sizes[t->rank] = (uint64_t)size;
    t->strides[t->rank++] = size == 1 ? 0 : stride;
}

/* Declares the outer coordinates as merged, then blocks and their elements; if there is a rest, one run. */
static void set_layout(const flat *s, uint32_t tensor)
{
    const nest *n = s->n;
    const ir_tensor old = n->f->tensors[tensor];
    const uint32_t last = n->order[n->count - 1];
    const uint64_t step = old.sizes[last] == 1 ? 0 : old.strides[last];
    const bool repeats = s->single && !joins(n, tensor, s->first, n->count);
    ir_tensor t = old;
    t.rank = 0;
    for (uint32_t g = 0, from = 0; from < s->first; from = n->group_end[g++]) {
        const uint32_t end = n->group_end[g] < s->first ? n->group_end[g] : s->first, d = n->order[end - 1];
        add_dimension(&t, opjit_ir_nest_extent(n, from, end), old.sizes[d] == 1 ? 0 : old.strides[d]);
    }
    if (s->rest == 0 && s->blocks > 1)
        add_dimension(&t, s->blocks, repeats ? 0 : step * (uint64_t)s->length);
    add_dimension(&t, s->rest == 0 ? s->length : s->run, step);
    n->f->tensors[tensor] = t;
}

static void set_layouts(const flat *s)
{
    const nest *n = s->n;
    const uint32_t out = nest_output(n), alias = n->f->tensors[out].alias;
    for (uint32_t i = 0; i < n->load_count; i++) {
        const uint32_t t = ir_at(n->f, n->loads[i])->ref;
        bool done = t == alias;
        for (uint32_t k = 0; k < i; k++)
            done = done || ir_at(n->f, n->loads[k])->ref == t;
        if (!done)
            set_layout(s, t);
    }
    if (alias != 0) /* keeps the output's layout, read or not */
        set_layout(s, alias);
    set_layout(s, out);
}

static void set_coordinates(const flat *s, ir_ref at[NEST_RANK])
{
    const nest *n = s->n;
    ir_func *f = n->f;
    uint32_t rank = 0;
    for (uint32_t g = 0, from = 0; from < s->first; from = n->group_end[g++])
        at[rank++] = block_digit(s, from, n->group_end[g] < s->first ? n->group_end[g] : s->first);
    if (s->rest == 0) {
        if (s->blocks > 1)
            at[rank++] = s->first == 0 ? s->p : digit(f, s->p, 1, s->blocks);
        at[rank] = s->e;
        return;
    }
    const ir_ref begin = ir_make2(f, IR_IMUL, IR_INDEX, s->p, opjit_ir_index(f, s->length));
    at[0] = ir_make2(f, IR_IADD, IR_INDEX, begin, s->e);
}

/* A stage of `blocks` blocks from number `begin` on, of `length` elements each; begin is 0, or blocks is 1. */
static void add_stage(flat *s, block *stages, const ir_reach *seen, int64_t begin, int64_t blocks, int64_t length)
{
    const nest *n = s->n;
    ir_func *f = n->f;
    const ir_ref zero = opjit_ir_index(f, 0);
    const uint64_t bytes = (uint64_t)s->length * opjit_ir_type_size(f->tensors[nest_output(n)].type);
    const ir_ref stage = opjit_ir_stage(f, zero, opjit_ir_index(f, blocks), opjit_ir_nest_grain(bytes, blocks));
    const ir_ref loop = opjit_ir_for(f, zero, opjit_ir_index(f, length), 1);
    ir_ref at[NEST_RANK] = { 0 };
    ir_map map = { 0 };
    s->p = blocks == 1 ? opjit_ir_index(f, begin) : ir_at(f, stage)->ref;
    s->e = ir_at(f, loop)->ref;
    s->body = (block){ .parent = stage };
    for (uint32_t k = 0; k < seen->count; k++)
        if (ir_at(f, seen->nodes[k])->count == 2 && is_index_comparison(f, seen->nodes[k]))
            map_comparison(s, &map, seen->nodes[k]);
    set_coordinates(s, at);
    for (uint32_t i = 0; i < n->load_count; i++)
        ir_map_set(f, &map, n->loads[i], opjit_ir_load(f, ir_at(f, n->loads[i])->ref, at));
    const ir_ref value = opjit_ir_remake(f, &map, ir_operand(f, n->store, 0));
    block inside = { .parent = loop };
    opjit_ir_block_add(f, &inside, opjit_ir_store(f, nest_output(n), value, at));
    opjit_ir_block_add(f, &s->body, loop);
    opjit_ir_block_add(f, stages, stage);
}

bool opjit_ir_flatten(nest *n, const ir_pass_env *env, block *stages)
{
    ir_func *f = n->f;
    flat s = { .n = n };
    if (n->tiled || !make_plan(&s, env))
        return false;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, n->store, 0));
    if (seen.nodes == NULL)
        return false;
    const int64_t outer = opjit_ir_nest_extent(n, 0, s.first);
    set_layouts(&s);
    add_stage(&s, stages, &seen, 0, outer * s.blocks, s.length);
    if (s.rest != 0)
        add_stage(&s, stages, &seen, s.blocks, 1, s.rest);
    ir_took(f, IR_STEP_FLATTEN);
    return true;
}
