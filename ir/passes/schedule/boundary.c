/* SPDX-License-Identifier: Apache-2.0 */
/* boundary.c - rows of several pieces: turns a chain of loops that each store a part of one row into loops over whole
 * groups, so that no whole vector is written in two parts.
 *
 * Neighbouring pieces [b0,b1) A, [b1,b2) B, ... of one row become loops over whole groups G: piece k runs from
 * u = up(b_k, G) to d = down(b_k+1, G), and the groups between d and the next u contain the cut and choose by element.
 * Every d and u is clamped between the previous one and the row's last whole group, so the loops meet exactly whatever
 * the distances of the cuts are; a piece narrower than a group is inside a boundary and has no loop.  What remains of
 * the row after its last whole group is one more loop that chooses.
 * A group is as many vectors as a round of the unrolled loops stores, so that these have no remainders. */
#include "ir/passes/schedule/scheduler.h"

enum {
    BOUNDARY_VECTORS = 8, /* the most in a group that has boundaries */
    BOUNDARY_BYTES = 256, /* the most in rows of more than one group: on average half of a boundary is read in vain */
    APART = 8,            /* constant pieces of fewer elements that are loaded are stored by themselves */
    FILL_VECTORS = 512,   /* of a row whose pieces of one value are stored as fills */
};

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* Whether loop b continues where a ends and stores to the same place. */
static bool continues(ir_func *f, ir_ref a, ir_ref b)
{
    const ir_ref x = ir_only(f, ir_at(f, a)->body), y = ir_only(f, ir_at(f, b)->body);
    if (!opjit_ir_same(f, ir_operand(f, a, 1), ir_operand(f, b, 0)) || ir_at(f, x)->ref != ir_at(f, y)->ref)
        return false;
    ir_map map = { 0 };
    ir_map_set(f, &map, ir_at(f, a)->ref, ir_at(f, b)->ref);
    for (uint32_t i = 1; i < ir_at(f, x)->count; i++)
        if (!opjit_ir_same(f, opjit_ir_remake(f, &map, ir_operand(f, x, i)), ir_operand(f, y, i)))
            return false;
    return true;
}

/* Whether the loop is always the same few elements that are loaded, as those of padding that repeats others: to load
 * and choose them for the vectors beside them takes longer. */
static bool is_apart(const scheduler *s, ir_ref loop)
{
    ir_func *f = s->f;
    const ir_ref lo = ir_operand(f, loop, 0), hi = ir_operand(f, loop, 1);
    bool loads = false;
    if (s->threads || s->beyond_caches || !ir_is_index_const(f, lo) || !ir_is_index_const(f, hi) ||
        ir_index_value(f, hi) - ir_index_value(f, lo) >= APART)
        return false;
    const ir_reach seen = opjit_ir_reach(f, ir_at(f, loop)->body);
    for (uint32_t k = 0; k < seen.count; k++)
        loads = loads || ir_at(f, seen.nodes[k])->op == IR_LOAD;
    return loads;
}

/* The longest chain of single stores that begins with `loop`. */
static void find_chain(scheduler *s, ir_ref loop, chain *c)
{
    ir_func *f = s->f;
    work w;
    *c = (chain){ 0 };
    for (ir_ref r = loop; r != 0 && ir_at(f, r)->op == IR_FOR && c->count < MAX_CHAIN; r = ir_at(f, r)->next) {
        if (is_apart(s, r) || !opjit_ir_find_work(s, r, &w) || w.store == 0 ||
            (c->count > 0 && !continues(f, c->loops[c->count - 1], r)))
            break;
        c->lanes = opjit_ir_lanes_of(s, &w);
        c->cost = w.cost > c->cost ? w.cost : c->cost;
        c->math = c->math || w.math;
        c->loops[c->count++] = r;
        c->bounds[c->count - 1] = ir_operand(f, r, 0);
        c->bounds[c->count] = ir_operand(f, r, 1);
    }
}

typedef struct bound_parts {
    ir_ref value, limit; /* the bound is the value or the limit, and at most the limit (0: none) */
} bound_parts;

/* Takes let-bound clamp(value, lower, limit) and imin(value, limit) apart; lower: the lower bound that clamp must have,
 * 0: any. */
static bound_parts parts_of(const ir_func *f, ir_ref bound, ir_ref lower)
{
    const ir_node *n = ir_at(f, bound);
    if (n->op == IR_GET && ir_at(f, n->ref)->op == IR_LET) {
        const ir_ref value = ir_operand(f, n->ref, 0);
        if (ir_at(f, value)->op == IR_IMIN)
            return (bound_parts){ ir_operand(f, value, 0), ir_operand(f, value, 1) };
        if (ir_at(f, value)->op == IR_CLAMP && (lower == 0 || opjit_ir_same(f, ir_operand(f, value, 1), lower)))
            return (bound_parts){ ir_operand(f, value, 0), ir_operand(f, value, 2) };
        return (bound_parts){ value, 0 };
    }
    return (bound_parts){ bound, 0 };
}

/* Whether [lo, hi) always has fewer elements than a group: lo is at least p or both are at their limit, and hi is at
 * most max(q, lo), where q - p is a small constant. */
static bool is_narrow(const ir_func *f, ir_ref lo, ir_ref hi, int64_t group)
{
    int64_t distance;
    if (opjit_ir_distance(f, hi, lo, &distance))
        return distance < group;
    const bound_parts p = parts_of(f, lo, 0), q = parts_of(f, hi, lo);
    if (p.limit != 0 && (q.limit == 0 || !opjit_ir_same(f, p.limit, q.limit)))
        return false;
    return (opjit_ir_distance(f, q.value, p.value, &distance) || opjit_ir_distance(f, q.value, lo, &distance)) &&
           distance < group;
}

/* Whether no group that contains cut k reaches the next one, unless both are the row's end: the next cut is at least a
 * group above the value of which cut k is the clamp, and above the bound that it is clamped to. */
static bool is_wide(const ir_func *f, const chain *c, uint32_t k)
{
    const ir_ref first = c->bounds[0], end = c->bounds[c->count];
    const bound_parts p = parts_of(f, c->bounds[k], first), q = parts_of(f, c->bounds[k + 1], c->bounds[k]);
    int64_t distance;
    if ((p.limit != 0 && !opjit_ir_same(f, p.limit, end)) || (q.limit != 0 && !opjit_ir_same(f, q.limit, end)))
        return false;
    return opjit_ir_distance(f, q.value, p.value, &distance) && distance >= c->group &&
           (p.limit == 0 || opjit_ir_at_least(f, first, q.value, c->group));
}

/* The element of [lo, hi), if that is always a single one, or outside of the row from `first` to `end`; else 0. */
static ir_ref single(const ir_func *f, ir_ref lo, ir_ref hi, ir_ref first, ir_ref end)
{
    int64_t distance;
    if (opjit_ir_distance(f, hi, lo, &distance))
        return distance == 1 ? lo : 0;
    const bound_parts p = parts_of(f, lo, first), q = parts_of(f, hi, lo);
    if ((p.limit != 0 && !opjit_ir_same(f, p.limit, end)) || (q.limit != 0 && !opjit_ir_same(f, q.limit, end)))
        return 0;
    if (opjit_ir_distance(f, q.value, lo, &distance) && distance == 1)
        return lo;
    return opjit_ir_distance(f, q.value, p.value, &distance) && distance == 1 ? p.value : 0;
}

/* --- boundaries --------------------------------------------------------------------------------------------------- */

/* What piece i of the chain stores, with var as its variable; enters that in *map. */
static ir_ref value_of(scheduler *s, const chain *c, uint32_t i, ir_ref var, ir_map *map)
{
    ir_func *f = s->f;
    *map = (ir_map){ 0 };
    ir_map_set(f, map, ir_at(f, c->loops[i])->ref, var);
    return opjit_ir_remake(f, map, ir_operand(f, ir_only(f, ir_at(f, c->loops[i])->body), 0));
}

/* Whether all pieces except single elements store one value. */
static bool is_uniform(scheduler *s, const chain *c)
{
    ir_func *f = s->f;
    ir_ref value = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        if (single(f, c->bounds[i], c->bounds[i + 1], c->bounds[0], c->bounds[c->count]) != 0)
            continue;
        const ir_ref one = ir_operand(f, ir_only(f, ir_at(f, c->loops[i])->body), 0);
        if (ir_at(f, one)->count > 0 || ir_at(f, one)->op == IR_VAR || (value != 0 && !opjit_ir_same(f, one, value)))
            return false;
        value = one;
    }
    return value != 0;
}

/* Whether a team stores the row in one round: no thread stores more than one vector. */
static bool is_one_round(const scheduler *s, const chain *c)
{
    return opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]) <= c->lanes * s->team;
}

/* Elements that are stored together.  Boundaries cost more than the loops between them, and are whole groups, too. */
static int64_t group_of(scheduler *s, const chain *c)
{
    if (s->threads)
        return c->edges && c->uniform ? c->lanes : c->lanes * s->team;
    const work w = { .cost = c->uniform ? 0 : c->cost, .math = c->math, .store = c->uniform ? c->loops[0] : 0 };
    const int64_t unroll = opjit_ir_unroll_of(s, c->bounds[0], c->bounds[c->count], &w, c->lanes);
    const int64_t vectors = opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]) / c->lanes;
    if (!c->uniform && vectors > BOUNDARY_VECTORS && unroll * s->target->vector_bytes > BOUNDARY_BYTES)
        return c->lanes * BOUNDARY_BYTES / s->target->vector_bytes;
    const bool one_point = c->uniform && c->count <= 3 && !s->beyond_caches; /* stored after the row, then a fill */
    const bool is_long = vectors >= LONE_UNROLL;
    return c->lanes * (one_point && is_long ? LONE_UNROLL : unroll < STORE_UNROLL ? unroll : STORE_UNROLL);
}

/* Whether the row is so short that each element is chosen straight on, in less time than finding its pieces takes. */
static bool is_short(const scheduler *s, const chain *c)
{
    const int64_t longest = opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]);
    return !s->threads && !c->edges &&
           (longest == c->group || (c->cost <= 1 && longest <= c->lanes * BOUNDARY_VECTORS));
}

/* For three pieces whose outer two store the same: computes and chooses that once; 0: they differ. */
static ir_ref chosen_between(scheduler *s, const chain *c, uint32_t first, ir_ref var)
{
    ir_func *f = s->f;
    ir_map map;
    const ir_ref outer = value_of(s, c, first, var, &map), same = value_of(s, c, first + 2, var, &map);
    if (f->failed || !opjit_ir_same(f, outer, same))
        return 0;
    const ir_ref inner = value_of(s, c, first + 1, var, &map);
    const ir_ref between = ir_make2(f, IR_XOR, IR_BOOL, ir_make2(f, IR_LT, IR_BOOL, var, c->bounds[first + 1]),
                                    ir_make2(f, IR_LT, IR_BOOL, var, c->bounds[first + 2]));
    return ir_make3(f, IR_SELECT, IR_NONE, between, inner, outer);
}

/* What pieces first to last store at var: by their order, except pieces of a single element, by their place. */
static ir_ref chosen(scheduler *s, const chain *c, uint32_t first, uint32_t last, ir_ref var)
{
    ir_func *f = s->f;
    ir_map map;
    ir_ref places[MAX_CHAIN] = { 0 };
    for (uint32_t i = first + 1; i < last; i++)
        places[i] = single(f, c->bounds[i], c->bounds[i + 1], c->bounds[0], c->bounds[c->count]);
    ir_ref value = last == first + 2 && places[first + 1] == 0 ? chosen_between(s, c, first, var) : 0;
    if (value != 0)
        return value;
    value = value_of(s, c, last, var, &map);
    for (uint32_t i = last; i-- > first;) {
        if (places[i] != 0)
            continue;
        const ir_ref one = value_of(s, c, i, var, &map);
        if (!opjit_ir_same(f, one, value))
            value = ir_make3(f, IR_SELECT, IR_NONE, ir_make2(f, IR_LT, IR_BOOL, var, c->bounds[i + 1]), one, value);
    }
    for (uint32_t i = first; i < last; i++)
        if (places[i] != 0)
            value = ir_make3(f, IR_SELECT, IR_NONE, ir_make2(f, IR_EQ, IR_BOOL, var, places[i]),
                             value_of(s, c, i, var, &map), value);
    return value;
}

/* Vectors that a round of one piece stores: as many as a group, or more if they cost next to nothing.  Groups of costly
 * values have few vectors, and where a long row continues with one value, the rounds' own stores take a noticeable part
 * of its time.  Around the caches, copies of an input wait where a round begins: so up to an eighth of the row is one
 * round. */
static int64_t copies_of(const scheduler *s, const chain *c, const work *w)
{
    const int64_t group = c->group / c->lanes;
    const int64_t vectors = opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]) / c->lanes;
    if (w->cost > 1 || (s->beyond_caches && w->cost == 0))
        return group;
    if (s->beyond_caches) {
        int64_t copies = group;
        while (copies < STORE_UNROLL && vectors >= 16 * copies)
            copies *= 2;
        return copies;
    }
    return w->cost == 0 && vectors >= FILL_VECTORS && group < STORE_UNROLL ? STORE_UNROLL : 2 * group;
}

/* A loop over [lo, hi) that stores what pieces first to last of the chain store, chosen by element. */
static ir_ref add_loop(scheduler *s, block *out, const chain *c, ir_ref lo, ir_ref hi, uint32_t first, uint32_t last)
{
    ir_func *f = s->f;
    if (f->failed || opjit_ir_runs_never(f, lo, hi))
        return 0;
    const bool whole_row = first == 0 && last + 1 == c->count;
    const ir_ref loop = opjit_ir_for(f, whole_row ? c->bounds[0] : lo, whole_row ? c->bounds[c->count] : hi, 1);
    if (loop == 0)
        return 0;
    const ir_ref var = ir_at(f, loop)->ref, value = chosen(s, c, first, last, var);
    f->operands[ir_at(f, loop)->first] = lo; /* the value is right for all of the row that a vector may reach */
    f->operands[ir_at(f, loop)->first + 1] = hi;
    const ir_ref old = ir_only(f, ir_at(f, c->loops[last])->body);
    ir_ref at[PASS_OPERANDS] = { 0 };
    ir_map map;
    value_of(s, c, last, var, &map);
    for (uint32_t i = 1; i < ir_at(f, old)->count; i++)
        at[i - 1] = opjit_ir_remake(f, &map, ir_operand(f, old, i));
    const ir_ref store = opjit_ir_store(f, ir_at(f, old)->ref, value, at);
    block inside = { .parent = loop };
    work w;
    opjit_ir_block_add(f, &inside, store);
    opjit_ir_block_add(f, out, loop);
    const bool vectors = opjit_ir_find_work(s, loop, &w);
    const int64_t group = c->group / c->lanes;
    const int64_t rest = group > BOUNDARY_VECTORS ? BOUNDARY_VECTORS : 1;
    if (vectors && s->threads) /* a round of the team is the group */
        opjit_ir_set_vector(s, loop, &w, first != last ? 1 : 0, c->edges);
    else if (vectors)
        opjit_ir_set_vector(s, loop, &w, lo == c->end ? rest : first != last ? group : copies_of(s, c, &w), c->edges);
    return loop;
}

/* bound, rounded to whole groups of elements counted from `from`. */
static ir_ref in_groups(scheduler *s, const chain *c, ir_op op, ir_ref bound, ir_ref from, int64_t group)
{
    ir_func *f = s->f;
    const ir_ref size = opjit_ir_index(f, group);
    if (!c->edges)
        return ir_make2(f, op, IR_INDEX, bound, size);
    return ir_make2(f, IR_IADD, IR_INDEX, ir_make2(f, op, IR_INDEX, ir_make2(f, IR_ISUB, IR_INDEX, bound, from), size),
                    from);
}

static ir_ref rounded(scheduler *s, block *out, const chain *c, ir_op op, ir_ref bound, ir_ref lower)
{
    ir_func *f = s->f;
    return opjit_ir_block_let(
        f, out, ir_make3(f, IR_CLAMP, IR_INDEX, in_groups(s, c, op, bound, c->base, c->group), lower, c->end));
}

/* The part of the row in a line of memory that another row shares; on a GPU each of its elements is a thread's. */
static void add_edge(scheduler *s, block *out, const chain *c, ir_ref lo, ir_ref hi, uint32_t edge)
{
    const ir_ref loop = add_loop(s, out, c, lo, hi, 0, c->count - 1);
    if (loop != 0 && s->threads)
        s->f->nodes[loop].vec = s->f->nodes[loop].unroll = s->f->nodes[loop].flags = 0;
    else if (loop != 0)
        opjit_ir_set_edge(s->f, loop, c, edge);
}

/* The row's first line, from its start to base. */
static void begin_row(scheduler *s, block *out, chain *c)
{
    ir_func *f = s->f;
    const ir_ref lo = c->bounds[0], head = opjit_ir_block_let(f, out, opjit_ir_chain_head(s, c));
    c->base = opjit_ir_block_let(f, out, ir_make2(f, IR_IADD, IR_INDEX, lo, head));
    add_edge(s, out, c, lo, c->base, IR_FOR_HEAD);
}

/* The loop's last vector may reach back into the row as far as `first`, if that is long enough. */
static void overlap_end(ir_func *f, ir_ref loop, ir_ref first)
{
    const int64_t lanes = f->nodes[loop].vec;
    if (lanes > 1 && opjit_ir_at_least(f, first, ir_operand(f, loop, 1), lanes))
        f->nodes[loop].flags |= IR_FOR_TAIL_OVERLAP;
}

/* What remains of the row after its whole groups: whole lines, and the line that the next row shares; or whole vectors
 * and one that reaches back. */
static void end_row(scheduler *s, block *out, chain *c)
{
    ir_func *f = s->f;
    const ir_ref hi = c->bounds[c->count];
    const uint32_t last = c->count - 1;
    const int64_t line = s->threads ? c->lanes : opjit_ir_chain_line(s, c);
    if (!c->edges) {
        const ir_ref loop = add_loop(s, out, c, c->end, hi, 0, last);
        if (loop != 0 && c->repeats && opjit_ir_at_least(f, c->base, hi, c->lanes))
            f->nodes[loop].vec = (uint16_t)c->lanes;
        if (loop != 0 && c->repeats)
            overlap_end(f, loop, c->base);
        return;
    }
    ir_ref rest = c->end;
    if (c->group > line) {
        const ir_ref lines = in_groups(s, c, IR_DOWN, hi, c->end, line);
        rest = opjit_ir_block_let(f, out, ir_make2(f, IR_IMAX, IR_INDEX, lines, c->end));
        add_loop(s, out, c, c->end, rest, 0, last);
    }
    add_edge(s, out, c, rest, hi, IR_FOR_TAIL);
}

static void add_row(scheduler *s, block *out, chain *c)
{
    ir_func *f = s->f;
    const uint32_t last = c->count - 1;
    c->uniform = s->threads ? is_one_round(s, c) : is_uniform(s, c);
    c->group = group_of(s, c);
    c->bounds[0] = c->base = opjit_ir_block_let(f, out, c->bounds[0]);
    c->bounds[c->count] = opjit_ir_block_let(f, out, c->bounds[c->count]);
    const ir_ref hi = c->bounds[c->count];
    c->repeats = !c->edges && !s->threads && !opjit_rt_target_has_masks(s->target) && opjit_ir_chain_repeats(s, c);
    if (is_short(s, c)) {
        const ir_ref loop = add_loop(s, out, c, c->base, hi, 0, last);
        if (loop != 0 && c->repeats)
            overlap_end(f, loop, c->base);
        return;
    }
    if (c->edges)
        begin_row(s, out, c);
    const ir_ref whole = in_groups(s, c, IR_DOWN, hi, c->base, c->group);
    const bool is_whole = opjit_ir_same(f, whole, hi);
    c->end = is_whole ? hi : opjit_ir_block_let(f, out, ir_make2(f, IR_IMAX, IR_INDEX, whole, c->base));
    ir_ref up = c->base;
    if (c->uniform)
        add_loop(s, out, c, c->base, c->end, 0, last);
    for (uint32_t k = 0; k < last && !c->uniform;) {
        uint32_t e = k + 1;
        const ir_ref down = rounded(s, out, c, IR_DOWN, c->bounds[e], up);
        add_loop(s, out, c, up, down, k, k);
        while (e < last && is_narrow(f, c->bounds[e], c->bounds[e + 1], c->group))
            e++;
        up = rounded(s, out, c, IR_UP, c->bounds[e], down);
        const bool alone = e < last && is_wide(f, c, e);
        add_loop(s, out, c, down, up, k, alone ? e : last);
        k = e;
    }
    if (!c->uniform)
        add_loop(s, out, c, up, c->end, last, last);
    end_row(s, out, c);
}

bool opjit_ir_add_row(scheduler *s, block *out, ir_ref loop, ir_ref *next)
{
    chain c;
    find_chain(s, loop, &c);
    if (c.count == 0 || c.lanes < 2)
        return false;
    c.edges = opjit_ir_chain_wants_edges(s, &c);
    const uint32_t more = c.count + (c.edges ? 2 : 0); /* a boundary fewer than pieces; the row's end and edges */
    if ((c.count == 1 && !c.edges) || s->loops + more > MAX_LOOPS)
        return false;
    s->loops += more;
    *next = ir_at(s->f, c.loops[c.count - 1])->next;
    ir_took(s->f, c.edges ? IR_STEP_EDGES : IR_STEP_BOUNDARIES);
    c.carry = c.edges && out->parent == s->stage && opjit_ir_chain_touches(s, &c);
    add_row(s, out, &c);
    return true;
}
