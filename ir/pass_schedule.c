/* pass_schedule.c - the target decides: lanes, unrolling, kinds of stores, and seams.
 * Needs: split loop form and a target.  Leaves: the same values; `vec`, `unroll`, `store nt` and `tail mask` on loops,
 * and no whole vector that is written in two parts.  What loops do is found in pass_work.c.
 *
 * Seams.  Neighbouring pieces [b0,b1) A, [b1,b2) B, ... of one row become loops over whole groups G: piece k runs from
 * u = up(b_k, G) to d = down(b_k+1, G), and the groups between d and the next u hold the cut and choose by element.
 * Every d and u is clamped between the one before it and the row's last whole group, so the loops meet exactly whatever
 * the distances of the cuts are; a piece narrower than a group is inside a seam and has no loop.  What is left of the
 * row after its last whole group is one more loop that chooses.
 * A group is as many vectors as a round of the unrolled loops stores, so that these have no remainders. */
#include "ir/pass_schedule.h"

#include <string.h>

enum {
    MAX_LOOPS = 24,     /* of a stage, rule V16 */
    STREAM_COST = 8,    /* of a body that takes less time than its memory, so that the round's own work shows */
    MAX_UNROLL = 16,    /* of the other loops, and of loops that are spelled out */
    STORE_UNROLL = 32,  /* of a loop that stores what costs next to nothing */
    LONE_UNROLL = 64,   /* and where that is all that an iteration of its stage does */
    SEAM_VECTORS = 8,   /* most in a group that has seams */
    SEAM_BYTES = 256,   /* and most, in rows of more than one group: a seam reads on average half of it in vain */
    FILL_VECTORS = 512, /* of a row whose pieces of one value are stored as fills */
};

/* --- stores past the caches --------------------------------------------------------------------------------------- */

bool opjit_ir_rows_are_aligned(const ir_tensor *t, uint32_t vector_bytes)
{
    bool aligned = t->align >= vector_bytes;
    for (uint32_t d = 0; d < t->rank; d++)
        aligned = aligned && (t->strides[d] == 1 || t->strides[d] * opjit_ir_type_size(t->type) % vector_bytes == 0);
    return aligned;
}

/* What a view shows, at last. */
static uint32_t root_of(const ir_func *f, uint32_t tensor)
{
    while (f->tensors[tensor].role == IR_VIEW)
        tensor = f->tensors[tensor].of;
    return tensor;
}

/* Asked of the stage as it comes: while its blocks are made anew, not all of it can be reached. */
static bool find_loads(scheduler *s)
{
    ir_func *f = s->f;
    const uint32_t count = f->node_count;
    const uint8_t *seen = opjit_ir_reach(f, ir_at(f, s->stage)->body);
    s->loaded = ARENA_ARRAY(&f->arena, bool, f->tensor_count);
    if (seen == NULL || s->loaded == NULL)
        return false;
    for (ir_ref r = 1; r < count; r++)
        if (seen[r] && ir_at(f, r)->op == IR_LOAD)
            s->loaded[root_of(f, ir_at(f, r)->ref)] = true;
    return true;
}

bool opjit_ir_loads_tensor(const scheduler *s, uint32_t tensor)
{
    const uint32_t root = root_of(s->f, tensor), alias = s->f->tensors[root].alias;
    return s->loaded[root] || (alias != 0 && s->loaded[alias]);
}

static bool store_past_caches(scheduler *s, ir_ref store)
{
    const ir_tensor *t = &s->f->tensors[ir_at(s->f, store)->ref];
    return s->beyond_caches && t->role != IR_SCRATCH && opjit_ir_rows_are_aligned(t, s->target->vector_bytes) &&
           !opjit_ir_loads_tensor(s, ir_at(s->f, store)->ref);
}

/* --- attributes --------------------------------------------------------------------------------------------------- */

static int64_t lanes_of(const scheduler *s, const work *w)
{
    return s->target->vector_bytes / w->size;
}

int64_t opjit_ir_longest(const ir_func *f, ir_ref lo, ir_ref hi)
{
    const ir_interval a = opjit_ir_interval(f, lo), b = opjit_ir_interval(f, hi);
    int64_t distance;
    return opjit_ir_distance(f, hi, lo, &distance) || checked_subi(b.hi, a.lo, &distance) ? distance : INT64_MAX;
}

bool opjit_ir_at_least(const ir_func *f, ir_ref lo, ir_ref hi, int64_t length)
{
    if (ir_at(f, hi)->op == IR_IMIN)
        return opjit_ir_at_least(f, lo, ir_operand(f, hi, 0), length) &&
               opjit_ir_at_least(f, lo, ir_operand(f, hi, 1), length);
    const ir_interval a = opjit_ir_interval(f, lo), b = opjit_ir_interval(f, hi);
    int64_t distance;
    return (opjit_ir_distance(f, hi, lo, &distance) || checked_subi(b.lo, a.hi, &distance)) && distance >= length;
}

/* On GPUs other threads hide what a thread waits for; but stores of one value that are known to be a few rounds of the
 * team are written out, and of loops that reduce a row there may be few. */
static uint16_t team_unroll(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes)
{
    const int64_t round = lanes * s->team;
    int64_t distance;
    if (w->store == 0)
        return w->cost <= 8 && opjit_ir_longest(s->f, lo, hi) >= 4 * round ? 4 : 1;
    if (w->cost == 0 && opjit_ir_distance(s->f, hi, lo, &distance) && (distance == 2 * round || distance == 4 * round))
        return (uint16_t)(distance / round);
    return 1;
}

/* Cheap bodies are repeated, as far as the loop is long enough to use it.  At quick each round loads the loop's
 * variable, its end and its address, and stores the variable, each of which takes as long as a vector of the output
 * or two, in any cache. */
static uint16_t unroll_of(const scheduler *s, ir_ref lo, ir_ref hi, const work *w, int64_t lanes)
{
    if (s->threads)
        return team_unroll(s, lo, hi, w, lanes);
    const int64_t vectors = opjit_ir_longest(s->f, lo, hi) / lanes;
    const uint32_t cost = w->cost;
    const bool stores = cost <= 1 && w->store != 0;
    const bool lone = ir_only(s->f, ir_at(s->f, s->stage)->body) != 0;
    const bool whole = /* long sums without an end: at quick each round waits for what the one before stored */
        cost <= 1 && w->store == 0 && vectors >= 8 * MAX_UNROLL &&
        opjit_ir_divisor(s->f, hi) >= (uint64_t)(MAX_UNROLL * lanes);
    /* Four copies take half as long again to compile as two, which pays where rounds of math become shorter. */
    const bool few = cost < MATH_COST || (w->math && cost <= 24);
    const bool streams = w->store != 0 && s->beyond_caches && cost <= STREAM_COST;
    int64_t unroll = cost >= SPELLED_OUT    ? MAX_UNROLL
                     : stores               ? (lone ? LONE_UNROLL : STORE_UNROLL)
                     : whole                ? MAX_UNROLL
                     : cost <= 1 || streams ? 8
                     : few                  ? 4
                     : cost <= 24           ? 2
                                            : 1;
    while (unroll > 1 && vectors < unroll)
        unroll /= 2;
    return (uint16_t)unroll;
}

/* Lanes of the loop: what a vector holds, or less for a loop that is known to be shorter and has no masks to make up
 * for it. */
static int64_t lanes_for(const scheduler *s, ir_ref loop, const work *w)
{
    int64_t lanes = lanes_of(s, w), trips;
    if (opjit_ir_distance(s->f, ir_operand(s->f, loop, 1), ir_operand(s->f, loop, 0), &trips) &&
        !opjit_rt_target_has_masks(s->target))
        while (lanes > 1 && lanes > trips)
            lanes /= 2;
    return lanes;
}

/* unroll 0: as fits the body; at_line: the loop begins at a whole vector in memory, as is known of its row's edges. */
static void set_vector(scheduler *s, ir_ref loop, const work *w, int64_t unroll, bool at_line)
{
    ir_func *f = s->f;
    const int64_t lanes = lanes_for(s, loop, w);
    if (lanes < 2)
        return;
    const ir_ref from = ir_operand(f, loop, 0), to = ir_operand(f, loop, 1);
    const uint64_t lo = opjit_ir_divisor(f, from), hi = opjit_ir_divisor(f, to);
    const bool whole = lo >= (uint64_t)lanes && hi >= (uint64_t)lanes;
    const bool past = at_line || (w->store != 0 && lo >= (uint64_t)lanes_of(s, w) && store_past_caches(s, w->store));
    f->nodes[loop].vec = (uint16_t)lanes;
    f->nodes[loop].unroll = unroll != 0 ? (uint16_t)unroll : unroll_of(s, from, to, w, lanes);
    const bool masks = !whole && opjit_rt_target_has_masks(s->target);
    f->nodes[loop].flags = (uint8_t)((past ? IR_FOR_NT : 0) | (masks ? IR_FOR_TAIL_MASK : 0));
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* Whether loop b goes on where a ends and stores to the same place. */
static bool continues(ir_func *f, ir_ref a, ir_ref b)
{
    const ir_ref x = ir_only(f, ir_at(f, a)->body), y = ir_only(f, ir_at(f, b)->body);
    if (!opjit_ir_same(f, ir_operand(f, a, 1), ir_operand(f, b, 0)) || ir_at(f, x)->ref != ir_at(f, y)->ref)
        return false;
    ir_map map;
    if (opjit_ir_map_init(f, &map) != OPJIT_OK) {
        f->failed = true;
        return false;
    }
    opjit_ir_map_set(f, &map, ir_at(f, a)->ref, ir_at(f, b)->ref);
    for (uint32_t i = 1; i < ir_at(f, x)->count; i++)
        if (!opjit_ir_same(f, opjit_ir_remake(f, &map, ir_operand(f, x, i)), ir_operand(f, y, i)))
            return false;
    return true;
}

/* The longest chain of single stores that begins with `loop`. */
static void find_chain(scheduler *s, ir_ref loop, chain *c)
{
    ir_func *f = s->f;
    work w;
    *c = (chain){ 0 };
    for (ir_ref r = loop; r != 0 && ir_at(f, r)->op == IR_FOR && c->count < MAX_CHAIN; r = ir_at(f, r)->next) {
        if (!opjit_ir_find_work(f, r, &w) || w.store == 0 || (c->count > 0 && !continues(f, c->loops[c->count - 1], r)))
            break;
        c->lanes = lanes_of(s, &w);
        c->cost = w.cost > c->cost ? w.cost : c->cost;
        c->math = c->math || w.math;
        c->loops[c->count++] = r;
        c->bounds[c->count - 1] = ir_operand(f, r, 0);
        c->bounds[c->count] = ir_operand(f, r, 1);
    }
}

typedef struct bound_parts {
    ir_ref value, limit; /* the bound is the value, or the limit, and not above the limit (0: none) */
} bound_parts;

/* Takes let-bound clamp(value, lower, limit) and imin(value, limit) apart; lower: what clamp must have there, 0: any
 * will do. */
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

/* Whether [lo, hi) has fewer elements than a group, always: lo is at least p or both are at their limit, and hi is at
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

/* Whether no group that cut k is in reaches the next one, unless both are the row's end: that is at least a group above
 * what cut k is the clamp of, and above where that is clamped to. */
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

/* The element that is [lo, hi), where that is always one or outside of the row from `first` to `end`; else 0. */
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

/* --- seams -------------------------------------------------------------------------------------------------------- */

/* What piece i of the chain stores, with var for its variable; *map then has that in it. */
static ir_ref value_of(scheduler *s, const chain *c, uint32_t i, ir_ref var, ir_map *map)
{
    ir_func *f = s->f;
    if (f->failed || opjit_ir_map_init(f, map) != OPJIT_OK) {
        f->failed = true;
        return 0;
    }
    opjit_ir_map_set(f, map, ir_at(f, c->loops[i])->ref, var);
    return opjit_ir_remake(f, map, ir_operand(f, ir_only(f, ir_at(f, c->loops[i])->body), 0));
}

/* Whether all pieces but single elements store one value. */
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

/* Elements that are stored together.  Seams cost more than what they are between, and are whole groups too. */
static int64_t group_of(scheduler *s, const chain *c)
{
    if (s->threads)
        return c->edges && c->uniform ? c->lanes : c->lanes * s->team;
    const work w = { .cost = c->uniform ? 0 : c->cost, .math = c->math, .store = c->uniform ? c->loops[0] : 0 };
    const int64_t unroll = unroll_of(s, c->bounds[0], c->bounds[c->count], &w, c->lanes);
    const int64_t vectors = opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]) / c->lanes;
    if (!c->uniform && vectors > SEAM_VECTORS && unroll * s->target->vector_bytes > SEAM_BYTES)
        return c->lanes * SEAM_BYTES / s->target->vector_bytes;
    const bool one_point = c->uniform && c->count <= 3 && !s->beyond_caches; /* stored after the row: a fill then */
    const bool is_long = vectors >= LONE_UNROLL;
    return c->lanes * (one_point && is_long ? LONE_UNROLL : unroll < STORE_UNROLL ? unroll : STORE_UNROLL);
}

/* Whether the row is so short that each element is chosen straight on, in less time than it takes to find its pieces. */
static bool is_short(const scheduler *s, const chain *c)
{
    const int64_t longest = opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]);
    return !s->threads && !c->edges && (longest == c->group || (c->cost <= 1 && longest <= c->lanes * SEAM_VECTORS));
}

/* Of three pieces, where the outer two store the same, that is computed, and chosen, once; 0: they don't. */
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

/* What pieces first to last store at var: the others by order, then pieces of a single element by their place. */
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
    for (uint32_t i = last; i-- > first && !f->failed;) {
        if (places[i] != 0)
            continue;
        const ir_ref one = value_of(s, c, i, var, &map);
        if (!f->failed && !opjit_ir_same(f, one, value))
            value = ir_make3(f, IR_SELECT, IR_NONE, ir_make2(f, IR_LT, IR_BOOL, var, c->bounds[i + 1]), one, value);
    }
    for (uint32_t i = first; i < last && !f->failed; i++)
        if (places[i] != 0)
            value = ir_make3(f, IR_SELECT, IR_NONE, ir_make2(f, IR_EQ, IR_BOOL, var, places[i]),
                             value_of(s, c, i, var, &map), value);
    return value;
}

/* Vectors that a round of one piece stores: as many as a group, or more of what costs next to nothing.  Groups of what
 * is dear have few, and where a long row goes on with one value, the rounds' own stores are a tenth of its time.  Around
 * the caches, copies wait where a round begins. */
static int64_t copies_of(const scheduler *s, const chain *c, const work *w)
{
    const int64_t group = c->group / c->lanes;
    const int64_t vectors = opjit_ir_longest(s->f, c->bounds[0], c->bounds[c->count]) / c->lanes;
    if (w->cost > 1)
        return group;
    if (s->beyond_caches)
        return w->cost == 1 && vectors >= 8 * MAX_UNROLL ? MAX_UNROLL : group;
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
    f->operands[ir_at(f, loop)->first] = lo; /* the value is right for all of the row that a vector may reach to */
    f->operands[ir_at(f, loop)->first + 1] = hi;
    const ir_ref old = ir_only(f, ir_at(f, c->loops[last])->body);
    ir_ref at[PASS_OPERANDS] = { 0 };
    ir_map map;
    value_of(s, c, last, var, &map);
    for (uint32_t i = 1; !f->failed && i < ir_at(f, old)->count; i++)
        at[i - 1] = opjit_ir_remake(f, &map, ir_operand(f, old, i));
    if (f->failed)
        return 0;
    const ir_ref store = opjit_ir_store(f, ir_at(f, old)->ref, value, at);
    block inside = { .parent = loop };
    work w;
    opjit_ir_block_add(f, &inside, store);
    opjit_ir_block_add(f, out, loop);
    const bool vectors = opjit_ir_find_work(f, loop, &w);
    const int64_t group = c->group / c->lanes;
    const int64_t rest = group > SEAM_VECTORS ? SEAM_VECTORS : 1;
    if (vectors && s->threads) /* a round of the team is the group */
        set_vector(s, loop, &w, first != last ? 1 : 0, c->edges);
    else if (vectors)
        set_vector(s, loop, &w, lo == c->end ? rest : first != last ? group : copies_of(s, c, &w), c->edges);
    return loop;
}

/* bound rounded to whole groups of elements from `from` on. */
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

/* The part of the row that a line of memory shares with another one; each of its elements is a thread's on a GPU. */
static void add_edge(scheduler *s, block *out, const chain *c, ir_ref lo, ir_ref hi, uint32_t edge)
{
    const ir_ref loop = add_loop(s, out, c, lo, hi, 0, c->count - 1);
    if (loop != 0 && s->threads)
        s->f->nodes[loop].vec = s->f->nodes[loop].unroll = s->f->nodes[loop].flags = 0;
    else if (loop != 0)
        opjit_ir_set_edge(s->f, loop, c, edge);
}

/* The row's first line, from its begin up to base. */
static void begin_row(scheduler *s, block *out, chain *c)
{
    ir_func *f = s->f;
    const ir_ref lo = c->bounds[0], head = opjit_ir_block_let(f, out, opjit_ir_chain_head(s, c));
    c->base = opjit_ir_block_let(f, out, ir_make2(f, IR_IADD, IR_INDEX, lo, head));
    add_edge(s, out, c, lo, c->base, IR_FOR_HEAD);
}

/* The loop's last vector may reach back into the row from `first` on, if that is long enough. */
static void overlap_end(ir_func *f, ir_ref loop, ir_ref first)
{
    const int64_t lanes = f->nodes[loop].vec;
    if (lanes > 1 && opjit_ir_at_least(f, first, ir_operand(f, loop, 1), lanes))
        f->nodes[loop].flags |= IR_FOR_TAIL_OVERLAP;
}

/* What is left of the row after its whole groups: whole lines, and the line that is shared with the next row; or whole
 * vectors and one that reaches back. */
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
    for (uint32_t k = 0; k < last && !c->uniform && !f->failed;) {
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

/* --- blocks ------------------------------------------------------------------------------------------------------- */

static void schedule_block(scheduler *s, ir_ref parent);

/* Copies of updates one after the other: at quick each round waits for what the one before stored, which takes as long
 * as three of them. */
static uint16_t running_unroll(const scheduler *s, ir_ref loop, uint32_t cost)
{
    const int64_t trips = opjit_ir_longest(s->f, ir_operand(s->f, loop, 0), ir_operand(s->f, loop, 1));
    uint16_t copies = cost <= 6 && trips >= 8 * MAX_UNROLL ? MAX_UNROLL : cost <= 8 ? 8 : cost <= 16 ? 4 : 1;
    while (copies > 1 && trips < copies)
        copies /= 2;
    return copies;
}

/* A loop that makes no vectors: what it holds; or copies of its one store, such as that of an input read across its
 * rows, or of running updates. */
static void schedule_inside(scheduler *s, ir_ref loop)
{
    ir_func *f = s->f;
    const ir_ref only = ir_only(f, ir_at(f, loop)->body);
    uint32_t cost;
    if (!s->threads && opjit_ir_find_running(f, loop, &cost))
        f->nodes[loop].unroll = running_unroll(s, loop, cost);
    else if (only != 0 && ir_at(f, only)->op == IR_STORE)
        f->nodes[loop].unroll = unroll_of(s, ir_operand(f, loop, 0), ir_operand(f, loop, 1), &(work){ .cost = 4 }, 1);
    else
        schedule_block(s, loop); /* as deep as loops nest: rule V16 */
}

/* A loop whose end is made of whole rounds, or that is two, with an end of its own; false: it has none. */
static bool add_ends(scheduler *s, block *out, ir_ref loop, const work *w)
{
    const int64_t lanes = lanes_for(s, loop, w);
    const int64_t copies = unroll_of(s, ir_operand(s->f, loop, 0), ir_operand(s->f, loop, 1), w, lanes);
    if (lanes < 2 || s->loops >= MAX_LOOPS)
        return false;
    const int64_t most = copies < 2 ? copies : 2; /* half a round is computed in vain */
    if (w->cost >= MATH_COST && opjit_ir_round_end(s, out, loop, lanes * most)) {
        set_vector(s, loop, w, most, false);
        opjit_ir_block_add(s->f, out, loop);
        return true;
    }
    const ir_ref rest = opjit_ir_cut_end(s, out, loop, lanes, lanes * copies);
    if (rest == 0)
        return false;
    s->loops++;
    set_vector(s, loop, w, copies, false);
    set_vector(s, rest, w, 1, false);
    opjit_ir_block_add(s->f, out, loop);
    opjit_ir_block_add(s->f, out, rest);
    return true;
}

static void schedule_block(scheduler *s, ir_ref parent)
{
    ir_func *f = s->f;
    block out = { .parent = parent };
    ir_ref next;
    for (ir_ref r = ir_at(f, parent)->body; r != 0 && !f->failed; r = next) {
        chain c = { 0 };
        next = ir_at(f, r)->next;
        if (ir_at(f, r)->op == IR_FOR)
            find_chain(s, r, &c);
        c.edges = c.count > 0 && c.lanes > 1 && opjit_ir_chain_wants_edges(s, &c);
        const uint32_t more = c.count + (c.edges ? 2 : 0); /* a seam less than pieces, and the row's end and edges */
        if ((c.count > 1 || c.edges) && c.lanes > 1 && s->loops + more <= MAX_LOOPS) {
            s->loops += more;
            c.uniform = s->threads ? is_one_round(s, &c) : is_uniform(s, &c);
            c.group = group_of(s, &c);
            next = ir_at(f, c.loops[c.count - 1])->next;
            c.carry = c.edges && parent == s->stage && opjit_ir_chain_touches(s, &c);
            add_row(s, &out, &c);
            continue;
        }
        work w;
        const bool turned = !s->threads && opjit_ir_turn(s, parent, r);
        const bool vectors = !turned && ir_at(f, r)->op == IR_FOR && opjit_ir_find_work(f, r, &w);
        if (vectors && parent == s->stage && !s->threads && add_ends(s, &out, r, &w))
            continue;
        if (vectors)
            set_vector(s, r, &w, 0, false);
        else if (!turned && ir_at(f, r)->op == IR_FOR)
            schedule_inside(s, r);
        opjit_ir_block_add(f, &out, r);
    }
}

/* Whether what is stored had better go around the caches: it does not fit the last of them, which other cores use too.
 * What a kernel only writes may take all of it.  What it reads pushes out what it writes: as soon as inputs of a
 * quarter and outputs of a quarter meet there, copies around it are faster (1.4 to 2.4 times on Zen 3). */
static bool exceeds_caches(const ir_func *f, const rt_target *target)
{
    if (rt_target_team(target) > 0)
        return false; /* stores of a GPU have no such choice */
    const uint64_t cache = target->l3 != 0 ? target->l3 : target->l2;
    uint64_t in = 0, sum = 0;
    for (uint32_t t = 1; t < f->tensor_count; t++) {
        const ir_tensor *tensor = &f->tensors[t];
        const bool is_in = tensor->role == IR_IN, is_out = tensor->role == IR_OUT && tensor->alias == 0;
        if ((is_in || is_out) && !checked_add(sum, tensor->bytes, &sum))
            return true;
        in += is_in ? tensor->bytes : 0;
    }
    return cache != 0 && (sum > cache || (in >= cache / 4 && sum >= cache / 2));
}

opjit_status opjit_ir_pass_schedule(ir_func *f, const ir_pass_env *env, bool *out_changed, opjit_error *error)
{
    *out_changed = false;
    if (f->stage >= IR_SCHEDULED)
        return OPJIT_OK; /* the loops of seams are not cut again */
    if (env->target == NULL)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT, "no target is given, and schedule needs one");
    scheduler s = { .f = f,
                    .target = env->target,
                    .threads = rt_target_team(env->target) > 0,
                    .beyond_caches = exceeds_caches(f, env->target) };
    for (s.stage = f->body; s.stage != 0 && !f->failed; s.stage = ir_at(f, s.stage)->next) {
        if (ir_at(f, s.stage)->op != IR_STAGE)
            continue;
        s.loops = opjit_ir_count_for(f, ir_at(f, s.stage)->body);
        if (!find_loads(&s)) {
            f->failed = true;
            break;
        }
        s.team = opjit_ir_team_for(&s);
        f->nodes[s.stage].vec = (uint16_t)s.team;
        schedule_block(&s, s.stage);
    }
    opjit_ir_remove_idle(f); /* bounds of pieces that became equal in their seam */
    if (f->target == NULL) {
        f->target = opjit_rt_arena_string(&f->arena, env->target->text, strlen(env->target->text));
        f->failed = f->failed || f->target == NULL;
    }
    *out_changed = true;
    return f->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}
