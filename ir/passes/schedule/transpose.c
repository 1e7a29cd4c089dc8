/* SPDX-License-Identifier: Apache-2.0 */
/* transpose.c - tiles of an input that is stored across the output are transposed in registers. Part of schedule: a
 * loop over rows around one over columns, of a store along the columns with loads along the rows, becomes `transpose R`
 * around `vec W`: blocks of R rows and W columns, which code generation loads as W short vectors along the rows and
 * stores as R vectors.  As a program it is what it was.
 *
 * Blocks are whole: where rows or columns are no multiple, the last block reaches back over what was stored before,
 * which no tensor that the stage reads may be, except for scratch that the block does not read. */
#include "ir/passes/schedule/scheduler.h"

enum {
    LANE_BYTES = 16, /* the unit of shuffles on all machines: a load along the rows */
    LEAST_ROWS = 4,  /* of a block */
    MOST_COST = 128, /* operations of a block: its body is written once per row and vector */
};

typedef struct transpose {
    ir_func *f;
    ir_ref rows, columns, store; /* the loops, and the store in them */
    uint32_t across;             /* loads along the rows */
    uint32_t least_bytes;        /* of their elements */
    uint32_t wide;               /* bytes of the largest element that is computed */
    uint32_t cost;               /* operations on elements */
    bool chooses;                /* some loads may not be done */
    bool repeats;                /* storing twice is harmless */
} transpose;

static bool find_loops(transpose *t)
{
    ir_func *f = t->f;
    ir_ref s = ir_at(f, t->rows)->body;
    if (ir_at(f, t->rows)->op != IR_FOR || ir_at(f, t->rows)->imm != 1)
        return false;
    while (s != 0 && ir_at(f, s)->op == IR_LET)
        s = ir_at(f, s)->next;
    t->columns = ir_only(f, s);
    if (t->columns == 0 || ir_at(f, t->columns)->op != IR_FOR || ir_at(f, t->columns)->imm != 1)
        return false;
    t->store = ir_only(f, ir_at(f, t->columns)->body);
    return t->store != 0 && ir_at(f, t->store)->op == IR_STORE;
}

/* Whether some coordinate of the store moves by one with `var`, and not with `other`, and the others don't contain
 * it; or, in a function for many sizes, whose tensors are their elements alone, whether it moves by a size. */
static bool is_coordinate(const transpose *t, ir_ref var, ir_ref other)
{
    const ir_tensor *out = &t->f->tensors[ir_at(t->f, t->store)->ref];
    uint32_t found = 0;
    ir_pace pace;
    if (t->f->first_dim != 0 && out->rank == 1 && out->role != IR_SCRATCH)
        return opjit_ir_pace_of(t->f, t->store, var, &pace) && (pace.size != 0 || pace.step != 0);
    for (uint32_t i = 1; i < ir_at(t->f, t->store)->count; i++) {
        const ir_ref at = ir_operand(t->f, t->store, i);
        int64_t factor;
        if (!opjit_ir_varies(t->f, at, var))
            continue;
        if (!opjit_ir_factor(t->f, at, var, &factor) || factor != 1 || opjit_ir_varies(t->f, at, other))
            return false;
        found++;
    }
    return found == 1;
}

/* Accepts loads along the rows, along the columns, or of one element for all of them. */
static bool add_load(transpose *t, ir_ref load)
{
    const ir_func *f = t->f;
    const uint32_t size = opjit_ir_type_size(f->tensors[ir_at(f, load)->ref].type);
    int64_t by_row;
    ir_pace by_column;
    if (!opjit_ir_pace_of(f, load, ir_at(f, t->columns)->ref, &by_column))
        return false;
    if (by_column.size == 0 && (by_column.step == 0 || by_column.step == 1))
        return true;
    if (!opjit_ir_step(f, load, ir_at(f, t->rows)->ref, &by_row) || by_row != 1 ||
        (t->chooses && !opjit_ir_in_bounds(f, load)))
        return false;
    t->across++;
    t->least_bytes = size < t->least_bytes ? size : t->least_bytes;
    return true;
}

/* Only loads may depend on the block's position: everything else is for loops whose conditions are bounds. */
static bool find_work(transpose *t)
{
    ir_func *f = t->f;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, t->store, 0));
    if (seen.nodes == NULL)
        return false;
    for (uint32_t k = 0; k < seen.count; k++)
        t->chooses = t->chooses || ir_at(f, seen.nodes[k])->op == IR_SELECT;
    for (uint32_t k = 0; k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        if (n->type == IR_INDEX || n->type == IR_NONE || n->count == 0)
            continue;
        t->cost += opjit_ir_op_infos[n->op].flags & IR_FLAG_M ? MOST_COST : 1;
        if (n->op == IR_LOAD && !add_load(t, r))
            return false;
        for (uint32_t i = 0; i < n->count && n->op != IR_LOAD; i++)
            if (ir_at(f, ir_operand(f, r, i))->type == IR_INDEX &&
                opjit_ir_varies(f, ir_operand(f, r, i), ir_at(f, t->columns)->ref))
                return false;
    }
    t->wide = opjit_ir_widest(f, &seen, ir_at(f, t->columns)->ref);
    return t->across > 0;
}

static bool is_multiple(const ir_func *f, ir_ref loop, int64_t of)
{
    return opjit_ir_divisor(f, ir_operand(f, loop, 0)) >= (uint64_t)of &&
           opjit_ir_divisor(f, ir_operand(f, loop, 1)) >= (uint64_t)of;
}

/* Whether the loop always has `length` iterations or more. */
static bool is_long(const ir_func *f, ir_ref loop, int64_t length)
{
    return opjit_ir_at_least(f, ir_operand(f, loop, 0), ir_operand(f, loop, 1), length);
}

/* Whether the loop may have few iterations or many, so that only when it runs is known what is left of whole blocks. */
static bool is_any(const ir_func *f, ir_ref loop, int64_t most, int64_t least)
{
    return f->first_dim != 0 && !is_long(f, loop, least) &&
           opjit_ir_longest(f, ir_operand(f, loop, 0), ir_operand(f, loop, 1)) >= most;
}

/* Whether the columns are tile number v, of exactly `length`, of a row that begins at 0, and v is the variable of the
 * loop around the rows, which contains nothing else: what is before a tile was stored by the previous tile. */
static bool is_tile(const transpose *t, ir_ref around, int64_t length)
{
    const ir_func *f = t->f;
    const ir_ref lo = ir_operand(f, t->columns, 0), hi = ir_operand(f, t->columns, 1);
    int64_t distance;
    return ir_at(f, around)->op == IR_FOR && ir_only(f, ir_at(f, around)->body) == t->rows &&
           ir_is_index_0(f, ir_operand(f, around, 0)) && ir_at(f, lo)->op == IR_IMUL &&
           ir_operand(f, lo, 0) == ir_at(f, around)->ref && ir_index_value(f, ir_operand(f, lo, 1)) == length &&
           ir_at(f, hi)->op == IR_IMIN &&
           opjit_ir_distance(f, ir_operand(f, hi, 0), lo, &distance) && distance == length &&
           opjit_ir_interval(f, ir_operand(f, hi, 1)).lo >= length;
}

/* Whether the store is to scratch that the block does not read: to store it once more changes nothing. */
static bool stays(const transpose *t)
{
    const ir_func *f = t->f;
    const uint32_t tensor = ir_at(f, t->store)->ref;
    const ir_reach seen = opjit_ir_reach_one(t->f, ir_operand(f, t->store, 0));
    bool stays = seen.nodes != NULL && f->tensors[tensor].role == IR_SCRATCH;
    for (uint32_t k = 0; k < seen.count && stays; k++) {
        const ir_node *n = ir_at(f, seen.nodes[k]);
        stays = n->op != IR_LOAD || !opjit_ir_shares(f, opjit_ir_root(f, n->ref), tensor);
    }
    return stays;
}

bool opjit_ir_transpose(scheduler *s, ir_ref around, ir_ref loop)
{
    ir_func *f = s->f;
    transpose t = { .f = f, .rows = loop, .least_bytes = LANE_BYTES };
    if (s->threads || !find_loops(&t) || !is_coordinate(&t, ir_at(f, t.rows)->ref, ir_at(f, t.columns)->ref) ||
        !is_coordinate(&t, ir_at(f, t.columns)->ref, ir_at(f, t.rows)->ref))
        return false;
    const ir_tensor *out = &f->tensors[ir_at(f, t.store)->ref];
    const uint32_t size = opjit_ir_type_size(out->type);
    int64_t step;
    if (!opjit_ir_step(f, t.store, ir_at(f, t.columns)->ref, &step) || step != 1 || !find_work(&t) ||
        opjit_ir_varies(f, ir_operand(f, t.columns, 0), ir_at(f, t.rows)->ref) ||
        opjit_ir_varies(f, ir_operand(f, t.columns, 1), ir_at(f, t.rows)->ref))
        return false;
    const bool is_loaded = opjit_ir_loads_tensor(s, ir_at(f, t.store)->ref);
    t.repeats = stays(&t) || !is_loaded;
    int64_t rows = LANE_BYTES / t.least_bytes, unroll;
    int64_t lanes = s->target->vector_bytes / (t.wide > size ? t.wide : size);
    const bool past = s->beyond_caches && !is_loaded && opjit_ir_rows_are_aligned(out, s->target->vector_bytes) &&
                      is_multiple(f, t.columns, lanes);
    const bool tile = is_tile(&t, around, IR_LINE / size);
    const bool any_columns = !tile && is_any(f, t.columns, lanes, LANE_BYTES / size);
    while (!is_long(f, t.columns, lanes) && !tile && !any_columns && lanes > LANE_BYTES / size)
        lanes /= 2;
    while (rows > LEAST_ROWS && rows > lanes)
        rows /= 2;
    rows = rows < LEAST_ROWS ? LEAST_ROWS : rows;
    unroll = IR_LINE / size / lanes;
    while (unroll > 1 && ((!tile && !any_columns && !is_long(f, t.columns, unroll * lanes)) ||
                          (!past && rows * unroll * t.cost > MOST_COST)))
        unroll /= 2;
    if (lanes < LANE_BYTES / t.least_bytes && lanes < rows)
        return false; /* nothing but short vectors */
    const bool any_rows = is_any(f, t.rows, rows, rows);
    if (rows * unroll * t.cost > MOST_COST || !(tile || any_columns || is_long(f, t.columns, lanes)) ||
        !(any_rows || is_long(f, t.rows, rows)))
        return false;
    const bool whole_rows = is_multiple(f, t.rows, rows), whole_columns = is_multiple(f, t.columns, unroll * lanes);
    const bool rows_overlap = !whole_rows && !any_rows, columns_overlap = !whole_columns && !any_columns;
    if (!t.repeats && (rows_overlap || columns_overlap))
        return false;
    ir_took(f, IR_STEP_TRANSPOSE);
    ir_node *a = &f->nodes[t.rows], *b = &f->nodes[t.columns];
    a->vec = (uint16_t)rows;
    a->flags = (uint8_t)(IR_FOR_TRANSPOSE | (rows_overlap ? IR_FOR_TAIL_OVERLAP : 0));
    b->vec = (uint16_t)lanes;
    b->unroll = (uint16_t)unroll;
    b->flags = (uint8_t)((past ? IR_FOR_NT : 0) | (columns_overlap ? IR_FOR_TAIL_OVERLAP : 0));
    return true;
}
