/* SPDX-License-Identifier: Apache-2.0 */
/* channels.c - makes channel by channel what is read at places from data that all channels share, as samples of an
 * image between its elements.  Where a definition's loads have such a place in some dimensions and one of its
 * coordinates, which the place does not depend on, in another, what is read is copied with that dimension last, and the
 * definition is made in that order: places and weights are computed once for all channels, which are a vector's lanes.
 * A definition of its own has the old order, for its readers.  A step of place, for CPUs. */
#include "ir/passes/pass.h"

enum {
    LEAST_CHANNELS = 8,
    LEAST_LOADS = 4, /* for each element: fewer don't pay for two transpositions */
    MOST_COPIED = 4, /* elements that are copied for one that is made */
};

/* What is known of a tensor's definition. */
typedef struct channel_def {
    uint32_t coordinate; /* the channel's, from 1 on; 0: it is not made so */
    uint32_t loads;      /* at places, of it and of what it reads in the same way */
    bool is_end;         /* somebody reads it otherwise */
    bool is_wanted;      /* part of an end that is made channel by channel */
    uint32_t copy;       /* of the tensor, with a dimension last: */
    uint32_t dimension;
} channel_def;

typedef struct channel_walk {
    ir_func *f;
    channel_def *defs; /* by tensor */
    uint32_t count;    /* tensors before */
    block list;
} channel_walk;

/* A statement's value: what of it moves with a coordinate, and what depends on data. */
typedef struct channel_body {
    ir_reach seen;
    bool *moves, *placed;
} channel_body;

static bool look_at(ir_func *f, ir_ref statement, uint32_t coordinate, channel_body *out)
{
    const ir_ref var = opjit_ir_coordinate(f, statement, coordinate);
    out->seen = opjit_ir_reach_one(f, ir_operand(f, statement, 0));
    out->moves = ARENA_ARRAY(&f->scratch, bool, out->seen.count);
    out->placed = ARENA_ARRAY(&f->scratch, bool, out->seen.count);
    const uint32_t *places = opjit_ir_reach_places(f, &out->seen);
    f->failed = f->failed || out->moves == NULL || out->placed == NULL || places == NULL;
    for (uint32_t k = 0; k < out->seen.count && !f->failed; k++) { /* operands are older than the node */
        const ir_ref r = out->seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        out->moves[k] = r == var;
        out->placed[k] = n->op == IR_TO_INDEX;
        for (uint32_t i = 0; i < n->count; i++) {
            const uint32_t part = places[ir_operand(f, r, i)];
            const bool still = n->op == IR_LOAD && f->tensors[n->ref].strides[i] == 0;
            out->moves[k] = out->moves[k] || (out->moves[part] && !still);
            out->placed[k] = out->placed[k] || (out->placed[part] && !still && n->op != IR_LOAD);
        }
    }
    return !f->failed;
}

static bool part_of(const ir_func *f, const channel_body *b, const bool *flags, ir_ref load, uint32_t d)
{
    return f->tensors[ir_at(f, load)->ref].strides[d] != 0 &&
           flags[opjit_ir_reach_place(&b->seen, ir_operand(f, load, d))];
}

static bool is_placed(const ir_func *f, const channel_body *b, ir_ref load)
{
    bool any = false;
    for (uint32_t d = 0; d < ir_at(f, load)->count; d++)
        any = any || part_of(f, b, b->placed, load, d);
    return any;
}

/* The dimension of the load at a place that the channel alone moves; -1: another form. */
static int32_t dimension_of(const ir_func *f, const channel_body *b, ir_ref statement, uint32_t coordinate, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    int32_t found = -1;
    for (uint32_t d = 0; d < t->rank; d++) {
        if (!part_of(f, b, b->moves, load, d))
            continue;
        if (found >= 0 || ir_operand(f, load, d) != opjit_ir_coordinate(f, statement, coordinate) ||
            t->strides[d] <= 1 || t->sizes[d] != f->tensors[ir_at(f, statement)->ref].sizes[coordinate])
            return -1;
        found = (int32_t)d;
    }
    return found;
}

static bool reads_own(const ir_func *f, ir_ref statement, ir_ref load)
{
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref], *own = &f->tensors[ir_at(f, statement)->ref];
    bool same = t->rank == own->rank;
    for (uint32_t d = 0; d < own->rank && same; d++)
        same = t->sizes[d] == own->sizes[d] && ir_operand(f, load, d) == opjit_ir_coordinate(f, statement, d);
    return same;
}

static uint64_t elements_of(const ir_tensor *t)
{
    return t->bytes / opjit_ir_type_size(t->type);
}

/* How often an element's loads are made; as many as counts where that is known at run time. */
static uint64_t steps_of(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    if (n->kind == 0)
        return 1;
    return opjit_ir_is_counted(f, statement)
               ? LEAST_LOADS
               : (uint64_t)ir_index_value(f, ir_operand(f, statement, n->count - 1));
}

/* Counts the loads at places; 0: some load has another form. */
static uint32_t count_loads(const channel_walk *w, ir_ref statement, uint32_t coordinate)
{
    ir_func *f = w->f;
    const ir_tensor *own = &f->tensors[ir_at(f, statement)->ref];
    channel_body b;
    uint32_t loads = 0;
    if (!look_at(f, statement, coordinate, &b))
        return 0;
    for (uint32_t k = 0; k < b.seen.count; k++) {
        const ir_ref load = b.seen.nodes[k];
        const ir_node *n = ir_at(f, load);
        if (n->op != IR_LOAD)
            continue;
        const channel_def *of = n->ref < w->count ? &w->defs[n->ref] : NULL;
        if (of != NULL && of->coordinate == coordinate + 1 && ir_at(f, statement)->kind == 0 &&
            reads_own(f, statement, load)) {
            loads += of->loads;
        } else if (is_placed(f, &b, load)) {
            if (dimension_of(f, &b, statement, coordinate, load) < 0 || n->ref >= w->count ||
                elements_of(&f->tensors[n->ref]) / MOST_COPIED > elements_of(own))
                return 0;
            loads++;
        } else if (b.moves[k]) {
            return 0;
        }
    }
    const uint64_t all = (uint64_t)loads * steps_of(f, statement);
    return all < LEAST_LOADS ? (uint32_t)all : LEAST_LOADS;
}

static bool may_be_made_so(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    if (n->op != IR_DEF || ir_is_of_recurrence(&f->tensors[n->ref]))
        return false;
    return n->kind == 0 || (n->imm <= 1 && n->kind != IR_DOT && !ir_kind_is_arg((ir_kind)n->kind) &&
                            ir_kind_op((ir_kind)n->kind) != IR_OP_NONE && opjit_ir_scanned(f, statement) < 0);
}

/* Finds the coordinate of the statement's channels, if it has any, and whose other reads make ends. */
static void find_channels(channel_walk *w, ir_ref statement)
{
    ir_func *f = w->f;
    const uint32_t own = ir_at(f, statement)->ref;
    const ir_tensor *t = &f->tensors[own];
    const bool may = may_be_made_so(f, statement);
    const uint32_t last = ir_rank_in_use(t);
    for (uint32_t d = 0; may && d + 1 < last && w->defs[own].coordinate == 0; d++) {
        const bool counted = opjit_ir_is_counted(f, statement);
        const ir_ref bound = ir_operand(f, statement, ir_at(f, statement)->count - 1);
        if (t->sizes[d] < LEAST_CHANNELS || (counted && opjit_ir_uses(f, bound, opjit_ir_coordinate(f, statement, d))))
            continue;
        w->defs[own].loads = count_loads(w, statement, d);
        w->defs[own].coordinate = w->defs[own].loads > 0 ? d + 1 : 0;
    }
    const ir_reach seen = opjit_ir_reach_one(f, statement);
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        const uint32_t root = n->op == IR_LOAD ? opjit_ir_root(f, n->ref) : w->count;
        if (root < w->count && w->defs[root].coordinate != 0)
            w->defs[root].is_end = w->defs[root].is_end || root != n->ref || ir_at(f, statement)->kind != 0 ||
                                   w->defs[own].coordinate != w->defs[root].coordinate;
    }
}

/* Ends with enough loads are wanted, and what they read in the same way; statements: last to first. */
static void want(channel_walk *w, ir_ref statement)
{
    ir_func *f = w->f;
    channel_def *own = &w->defs[ir_at(f, statement)->ref];
    if (ir_at(f, statement)->op != IR_DEF || own->coordinate == 0)
        return;
    own->is_end = own->is_end && own->loads >= LEAST_LOADS;
    own->is_wanted = own->is_wanted || own->is_end;
    const ir_reach seen = own->is_wanted ? opjit_ir_reach_one(f, statement) : (ir_reach){ 0 };
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        if (n->op == IR_LOAD && n->ref < w->count && w->defs[n->ref].coordinate == own->coordinate)
            w->defs[n->ref].is_wanted = true;
    }
}

/* --- made so ------------------------------------------------------------------------------------------------------ */

/* A tensor like that one with its dimension last; *at: which dimension each of its own is. */
static uint32_t declare(ir_func *f, uint32_t like, uint32_t dimension, uint32_t *at)
{
    ir_tensor t = { .role = IR_VALUE, .type = f->tensors[like].type, .rank = f->tensors[like].rank, .align = 64 };
    uint32_t count = 0;
    for (uint32_t d = 0; d < t.rank; d++)
        if (d != dimension)
            at[count++] = d;
    at[count] = dimension;
    t.bytes = opjit_ir_type_size(t.type);
    for (uint32_t d = 0; d < t.rank; d++) {
        t.sizes[d] = f->tensors[like].sizes[at[d]];
        t.bytes *= t.sizes[d];
    }
    opjit_ir_dense_strides(&t);
    return opjit_ir_tensor(f, &t);
}

/* The element of the tensor that has the order, for indices of one that has not. */
static ir_ref load_in_order(ir_func *f, uint32_t tensor, const uint32_t *order, ir_ref from, uint32_t first)
{
    ir_ref at[8] = { 0 };
    for (uint32_t d = 0; d < f->tensors[tensor].rank; d++)
        at[d] = ir_operand(f, from, first + order[d]);
    return opjit_ir_load(f, tensor, at);
}

/* The element in the copy, which is made if there is none. */
static ir_ref load_of_copy(channel_walk *w, ir_ref load, uint32_t dimension)
{
    ir_func *f = w->f;
    const uint32_t tensor = ir_at(f, load)->ref;
    channel_def *x = &w->defs[tensor];
    uint32_t order[8] = { 0 };
    if (x->copy != 0 && x->dimension != dimension)
        return load;
    const uint32_t made = declare(f, tensor, dimension, order);
    if (x->copy == 0) {
        x->copy = made;
        x->dimension = dimension;
        const ir_ref def = opjit_ir_def(f, made);
        ir_ref at[8] = { 0 };
        for (uint32_t d = 0; d < f->tensors[made].rank; d++)
            at[order[d]] = opjit_ir_coordinate(f, def, d);
        opjit_ir_set_value(f, def, opjit_ir_load(f, tensor, at));
        opjit_ir_block_add(f, &w->list, def);
    }
    return load_in_order(f, x->copy, order, load, 0);
}

/* The value reads copies. */
static void read_copies(channel_walk *w, ir_ref statement)
{
    ir_func *f = w->f;
    const uint32_t coordinate = w->defs[ir_at(f, statement)->ref].coordinate - 1;
    channel_body b;
    ir_map map = { 0 };
    if (!look_at(f, statement, coordinate, &b))
        return;
    for (uint32_t k = 0; k < b.seen.count && !f->failed; k++) {
        const ir_ref load = b.seen.nodes[k];
        if (ir_at(f, load)->op != IR_LOAD || !is_placed(f, &b, load))
            continue;
        const int32_t d = dimension_of(f, &b, statement, coordinate, load);
        if (d >= 0)
            ir_map_set(f, &map, load, load_of_copy(w, load, (uint32_t)d));
    }
    opjit_ir_set_value(f, statement, opjit_ir_remake(f, &map, ir_operand(f, statement, 0)));
}

/* The definition in the order of channels, and one of the old order that reads it. */
static void make_ordered(channel_walk *w, ir_ref statement)
{
    ir_func *f = w->f;
    const ir_node n = *ir_at(f, statement);
    const uint32_t rank = f->tensors[n.ref].rank;
    uint32_t order[8] = { 0 };
    ir_map map = { 0 };
    const uint32_t tensor = declare(f, n.ref, w->defs[n.ref].coordinate - 1, order);
    const ir_ref made =
        n.kind != 0 ? opjit_ir_reduce(f, tensor, (ir_kind)n.kind, (uint32_t)n.imm, 1) : opjit_ir_def(f, tensor);
    const ir_ref shown = opjit_ir_def(f, n.ref);
    if (f->failed)
        return;
    for (uint32_t d = 0; d < rank; d++)
        ir_map_set(f, &map, opjit_ir_coordinate(f, statement, order[d]), opjit_ir_coordinate(f, made, d));
    if (n.kind != 0) {
        ir_map_set(f, &map, opjit_ir_reduced(f, statement), opjit_ir_reduced(f, made));
        const ir_ref bound = opjit_ir_remake(f, &map, ir_operand(f, statement, n.count - 1));
        f->operands[ir_at(f, made)->first + ir_at(f, made)->count - 1] = bound;
        f->nodes[made].block = n.block;
        f->nodes[made].type = n.type;
    }
    opjit_ir_set_value(f, made, opjit_ir_remake(f, &map, ir_operand(f, statement, 0)));
    opjit_ir_set_value(f, shown, load_in_order(f, tensor, order, shown, 1));
    opjit_ir_block_add(f, &w->list, made);
    opjit_ir_block_add(f, &w->list, shown);
    ir_took(f, IR_STEP_CHANNELS);
}

/* All statements, first to last; NULL: there is nothing to do. */
static ir_ref *list_statements(ir_func *f, uint32_t *out_count)
{
    uint32_t count = 0;
    bool any = false;
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        count++;
    for (ir_ref r = 1; r < f->node_count && !any; r++)
        any = ir_at(f, r)->op == IR_TO_INDEX;
    ir_ref *all = any ? ARENA_ARRAY(&f->scratch, ir_ref, count + 1) : NULL;
    f->failed = f->failed || (any && all == NULL);
    *out_count = 0;
    for (ir_ref s = f->body; s != 0 && all != NULL; s = ir_at(f, s)->next)
        all[(*out_count)++] = s;
    return all;
}

void opjit_ir_channels(ir_func *f)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    channel_walk w = { .f = f, .count = f->tensor_count };
    uint32_t count;
    bool any = false;
    ir_ref *all = list_statements(f, &count);
    w.defs = all != NULL ? ARENA_ARRAY(&f->scratch, channel_def, w.count) : NULL;
    f->failed = f->failed || (all != NULL && w.defs == NULL);
    for (uint32_t i = 0; i < count && !f->failed; i++)
        find_channels(&w, all[i]);
    for (uint32_t i = count; i-- > 0 && !f->failed;) {
        want(&w, all[i]);
        any = any || w.defs[ir_at(f, all[i])->ref].is_wanted;
    }
    for (uint32_t i = 0; i < count && any && !f->failed; i++) {
        const channel_def *x = &w.defs[ir_at(f, all[i])->ref];
        const bool own = ir_at(f, all[i])->op == IR_DEF && x->is_wanted;
        if (own)
            read_copies(&w, all[i]);
        if (own && x->is_end)
            make_ordered(&w, all[i]);
        else
            opjit_ir_block_add(f, &w.list, all[i]);
    }
    if (any && !f->failed)
        f->body = w.list.first;
    opjit_rt_arena_rewind(&f->scratch, mark);
}
