/* SPDX-License-Identifier: Apache-2.0 */
/* orient.c - takes transpositions out of chains of definitions: where all that a definition reads of others lies with
 * its coordinates in another order, and the last one is another, the definition takes that order, and its readers
 * change their coordinates.  It begins at reductions, whose order stays, except that of one lane, as a pool is, which
 * takes the order that has neighbours in memory last.  So what follows a convolution is computed where that stores its
 * sums, and a chain that transposes forth and back has one order.  A step of place, for CPUs. */
#include "ir/passes/pass.h"

enum { RANK = 8, LEAST_LINE = 8 };

typedef struct order {
    uint32_t dimension[RANK]; /* of the definition, by that of what it reads */
} order;

typedef struct orienter {
    ir_func *f;
    ir_map map;
    ir_ref *defs;       /* by tensor: its definition */
    uint32_t *oriented; /* by tensor: the one that has taken its place */
    order *orders;      /* by tensor, of those */
    bool *anchored;     /* by tensor: its order follows from a reduction's */
    uint32_t count;     /* tensors before */
    bool *divided;      /* by tensor: a view of it needs quotients; it keeps its order */
    block list;         /* the function's definitions, rebuilt */
} orienter;

/* The tensor whose element the load reads, in its definition's own order, and the coordinates: of a view's definition,
 * if they are no quotients, else what the load has. */
static uint32_t find_place(const orienter *o, ir_ref load, ir_ref *out)
{
    ir_func *f = o->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    ir_ref at[PASS_OPERANDS];
    bool divided = false;
    for (uint32_t d = 0; d < f->tensors[tensor].rank; d++)
        at[d] = out[d] = ir_operand(f, load, d);
    if (tensor == root || root >= o->count || o->defs[root] == 0)
        return tensor;
    return opjit_ir_view_coordinates(f, tensor, at, out, &divided) && !divided ? root : tensor;
}

/* The only coordinate of more than one value that the index has; -1: none, -2: several. */
static int32_t coordinate_in(const ir_func *f, ir_ref statement, ir_ref index)
{
    int32_t found = -1;
    for (uint32_t d = 0; d < f->tensors[ir_at(f, statement)->ref].rank; d++)
        if (f->tensors[ir_at(f, statement)->ref].sizes[d] > 1 &&
            opjit_ir_uses(f, index, opjit_ir_coordinate(f, statement, d)))
            found = found == -1 ? (int32_t)d : -2;
    return found;
}

/* The order in which the load has all coordinates of the definition, one in each dimension.  false: it has not. */
static bool find_order(const orienter *o, ir_ref statement, uint32_t root, const ir_ref *at, order *out)
{
    const ir_func *f = o->f;
    const ir_tensor *t = &f->tensors[root], *own = &f->tensors[ir_at(f, statement)->ref];
    uint32_t seen = 0, single = 0;
    if (t->rank != own->rank)
        return false;
    for (uint32_t i = 0; i < own->rank; i++) {
        const uint32_t j = o->oriented[root] != 0 ? o->orders[root].dimension[i] : i;
        const int32_t d = t->strides[j] == 0 ? -1 : coordinate_in(f, statement, at[j]);
        if (d < -1 || (d >= 0 && (seen >> d & 1)))
            return false;
        out->dimension[i] = d < 0 ? RANK : (uint32_t)d;
        seen |= d < 0 ? 0 : 1u << d;
    }
    for (uint32_t i = 0; i < own->rank; i++) { /* those of one element, in their order */
        while (single < own->rank && (seen >> single & 1))
            single++;
        if (out->dimension[i] == RANK && (own->sizes[single] != 1))
            return false;
        if (out->dimension[i] == RANK)
            out->dimension[i] = single++;
    }
    return true;
}

/* Whether the last coordinate of more than one value is another in this order. */
static bool moves_last(const ir_tensor *t, const order *x)
{
    const uint32_t last = ir_rank_in_use(t);
    uint32_t other = t->rank;
    while (other > 0 && t->sizes[x->dimension[other - 1]] == 1)
        other--;
    return last > 0 && other > 0 && x->dimension[other - 1] != last - 1;
}

static bool equal_orders(const order *a, const order *b, uint32_t rank)
{
    for (uint32_t d = 0; d < rank; d++)
        if (a->dimension[d] != b->dimension[d])
            return false;
    return true;
}

static bool is_elementwise(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    return n->op == IR_DEF && n->kind == 0 && !ir_is_of_recurrence(&f->tensors[n->ref]);
}

/* Whether all loads that have all coordinates of the definition have them in one order, and which; whether one of them
 * has it from a reduction. */
static bool choose_order(orienter *o, ir_ref statement, const ir_reach *seen, order *out)
{
    const ir_func *f = o->f;
    const uint32_t own = ir_at(f, statement)->ref, rank = f->tensors[own].rank;
    bool any = false, one = true;
    for (uint32_t k = 0; k < seen->count; k++) {
        ir_ref at[PASS_OPERANDS];
        order x;
        if (ir_at(f, seen->nodes[k])->op != IR_LOAD)
            continue;
        const uint32_t tensor = find_place(o, seen->nodes[k], at);
        if (tensor >= o->count || !find_order(o, statement, tensor, at, &x))
            continue;
        o->anchored[own] = o->anchored[own] || o->anchored[tensor];
        one = one && (!any || equal_orders(out, &x, rank));
        *out = x;
        any = true;
    }
    return any && one && o->anchored[own];
}

/* A definition like the statement with its coordinates in the order. */
static ir_ref make_oriented(orienter *o, ir_ref statement, const order *x)
{
    ir_func *f = o->f;
    const uint32_t own = ir_at(f, statement)->ref;
    ir_tensor t = f->tensors[own];
    for (uint32_t d = 0; d < t.rank; d++)
        t.sizes[d] = f->tensors[own].sizes[x->dimension[d]];
    opjit_ir_dense_strides(&t);
    o->oriented[own] = opjit_ir_tensor(f, &t);
    o->orders[own] = *x;
    const ir_node n = *ir_at(f, statement);
    const ir_ref made = n.kind == 0 ? opjit_ir_def(f, o->oriented[own])
                                    : opjit_ir_reduce(f, o->oriented[own], (ir_kind)n.kind, (uint32_t)n.imm, 1);
    if (n.kind != 0 && !f->failed) {
        f->operands[ir_at(f, made)->first + ir_at(f, made)->count - 1] = ir_operand(f, statement, n.count - 1);
        f->nodes[made].block = n.block;
        f->nodes[made].type = n.type;
        ir_map_set(f, &o->map, opjit_ir_reduced(f, statement), opjit_ir_reduced(f, made));
    }
    for (uint32_t d = 0; d < t.rank; d++)
        ir_map_set(f, &o->map, opjit_ir_coordinate(f, statement, x->dimension[d]), opjit_ir_coordinate(f, made, d));
    opjit_ir_set_value(f, made, ir_operand(f, statement, 0));
    ir_took(f, IR_STEP_ORIENT);
    return made;
}

/* Whether a reduction of one lane, as a pool is, reads neighbours where a coordinate moves that is not its last one, as
 * channels that come last in memory; and its order with that coordinate last. */
static bool reads_across(orienter *o, ir_ref statement, const ir_reach *seen, order *out)
{
    ir_func *f = o->f;
    const ir_node *n = ir_at(f, statement);
    const ir_tensor *own = &f->tensors[n->ref];
    const uint32_t last = ir_rank_in_use(own);
    uint32_t beside = own->rank, loads = 0;
    if (n->op != IR_DEF || n->kind == 0 || n->imm != 1 || n->kind == IR_DOT || ir_is_of_recurrence(own) || last < 2 ||
        opjit_ir_is_counted(f, statement) || opjit_ir_scanned(f, statement) >= 0)
        return false;
    for (uint32_t k = 0; k < seen->count; k++) {
        const ir_ref load = seen->nodes[k];
        const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
        if (ir_at(f, load)->op != IR_LOAD)
            continue;
        loads++;
        for (uint32_t d = 0; d < t->rank; d++) {
            const int32_t c = coordinate_in(f, statement, ir_operand(f, load, d));
            if (c == (int32_t)last - 1 && t->strides[d] == 1)
                return false;
            const bool plain = c >= 0 && ir_operand(f, load, d) == opjit_ir_coordinate(f, statement, (uint32_t)c);
            if (plain && t->strides[d] == 1)
                beside = (uint32_t)c;
        }
    }
    if (loads != 1 || beside == own->rank || own->sizes[beside] < LEAST_LINE)
        return false;
    for (uint32_t d = 0, i = 0; d < own->rank; d++)
        if (d != beside)
            out->dimension[i++] = d;
    out->dimension[own->rank - 1] = beside;
    return true;
}

/* Loads in the statement of definitions that have taken another order, and, where it has itself, of views of others. */
static void map_loads(orienter *o, const ir_reach *seen, bool oriented)
{
    ir_func *f = o->f;
    for (uint32_t k = 0; k < seen->count && !f->failed; k++) {
        const ir_ref load = seen->nodes[k];
        ir_ref own[PASS_OPERANDS], at[PASS_OPERANDS];
        if (ir_at(f, load)->op != IR_LOAD || ir_at(f, load)->ref >= o->count)
            continue;
        const uint32_t root = find_place(o, load, own), to = o->oriented[root];
        if (to == 0 && (!oriented || root == ir_at(f, load)->ref))
            continue;
        for (uint32_t d = 0; d < f->tensors[root].rank; d++)
            at[d] = opjit_ir_remake(f, &o->map, own[to != 0 ? o->orders[root].dimension[d] : d]);
        ir_map_set(f, &o->map, load, opjit_ir_load(f, to != 0 ? to : root, at));
    }
}

/* Lists definitions; those that are read with quotients keep their order, as those of reductions. */
static bool begin(orienter *o)
{
    ir_func *f = o->f;
    o->count = f->tensor_count;
    o->defs = ARENA_ARRAY(&f->scratch, ir_ref, o->count);
    o->oriented = ARENA_ARRAY(&f->scratch, uint32_t, o->count);
    o->orders = ARENA_ARRAY(&f->scratch, order, o->count);
    o->anchored = ARENA_ARRAY(&f->scratch, bool, o->count);
    o->divided = ARENA_ARRAY(&f->scratch, bool, o->count);
    if (o->defs == NULL || o->oriented == NULL || o->orders == NULL || o->anchored == NULL || o->divided == NULL) {
        f->failed = true;
        return false;
    }
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        if (ir_is_definition(f, s))
            o->defs[ir_at(f, s)->ref] = s;
    for (uint32_t t = 1; t < o->count; t++) {
        bool divided = false;
        if (f->tensors[t].role == IR_VIEW && o->defs[opjit_ir_root(f, t)] != 0 &&
            (!opjit_ir_view_coordinates(f, t, NULL, NULL, &divided) || divided))
            o->divided[opjit_ir_root(f, t)] = true;
    }
    return true;
}

/* The statement, or the definition in its place. */
static ir_ref orient(orienter *o, ir_ref statement)
{
    ir_func *f = o->f;
    const uint32_t own = ir_at(f, statement)->ref;
    const ir_reach seen = opjit_ir_reach_one(f, statement);
    ir_ref made = statement;
    order x = { 0 };
    if (is_elementwise(f, statement)) {
        if (choose_order(o, statement, &seen, &x) && !o->divided[own] && moves_last(&f->tensors[own], &x))
            made = make_oriented(o, statement, &x);
    } else if (ir_is_definition(f, statement)) {
        o->anchored[own] = true;
        if (!o->divided[own] && reads_across(o, statement, &seen, &x))
            made = make_oriented(o, statement, &x);
    }
    map_loads(o, &seen, made != statement);
    return made;
}

void opjit_ir_orient(ir_func *f)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    orienter o = { .f = f };
    ir_ref next;
    if (!begin(&o))
        return;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        opjit_ir_block_add(f, &o.list, orient(&o, s));
    }
    f->body = o.list.first;
    if (f->steps[IR_STEP_ORIENT] > 0 && !f->failed)
        opjit_ir_remake_operands(f, &o.map, f->body);
    opjit_rt_arena_rewind(&f->scratch, mark);
}
