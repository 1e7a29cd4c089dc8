/* SPDX-License-Identifier: Apache-2.0 */
/* row_lanes.c - a stage of many short rows, in which each row is a lane: vectors hold the first values of neighbouring
 * rows, their second values and so on, so that none is partly empty and no lanes are folded.  Part of place, which
 * decides what belongs together.
 *
 *     for each block of rows, in parallel
 *         copies of what it reads along rows, and rows that it makes: scratch [element, row of the block]
 *         results of reductions, and single elements: scratch [row of the block]
 *         rows that it stores, out of scratch
 *
 * Sums have the order of the accumulator, as in short.c.  The first loop and the last one transpose (see schedule). */
#include "ir/passes/place/place.h"

#include <string.h>

enum {
    LEAST_LINE = 16,        /* rows that follow each other */
    LEAST_COUNT = 64,       /* rows */
    MOST_STEPS = 56,        /* of a row: more are whole vectors, mostly */
    MOST_MEMBERS = 8,       /* each is up to five loops, which may be cut */
    MOST_LONE_STEPS = 24,   /* of rows with one reduction, whose folds are fewer */
    MOST_COPIES = 4,        /* of tensors that it reads along rows */
    BLOCK_BYTES = 8 * 1024, /* of a scratch of a block's rows: several of them are in the first cache */
    MOST_BLOCK = 256,       /* rows */
    LINE = 16,              /* rows that are whole vectors everywhere */
    PIECE_BYTES = 64 * 1024,
};

typedef struct row_copy {
    ir_ref load, row, k; /* what is copied, by variables of the loops that do it */
    uint32_t scratch;
} row_copy;

typedef struct row_lanes {
    place_rows_of *r;
    ir_func *f;
    inliner in;
    block body;
    ir_ref first, here; /* the block's first row among those of the last coordinate of more than one; how many */
    uint32_t along;     /* that coordinate */
    int64_t line, length, steps; /* rows along it; of a block; elements of a row */
    row_copy copies[MOST_COPIES];
    uint32_t copy_count;
    bool refused;
} row_lanes;

static uint32_t tensor_of(const ir_func *f, ir_ref statement)
{
    return ir_at(f, statement)->ref;
}

/* --- which ---------------------------------------------------------------------------------------------------- */

static bool fits(const row_lanes *s, ir_ref statement)
{
    const ir_func *f = s->f;
    const ir_node *n = ir_at(f, statement);
    if (n->kind == 0)
        return true;
    return opjit_ir_scanned(f, statement) < 0 && !opjit_ir_is_counted(f, statement) && n->kind != IR_DOT &&
           ir_kind_op((ir_kind)n->kind) != IR_OP_NONE && n->imm <= IR_REDUCE_LANES && n->block >= MOST_STEPS;
}

/* Elements of a member's row; 1: one per row. */
static int64_t length_of(const row_lanes *s, ir_ref statement)
{
    const ir_func *f = s->f;
    const ir_tensor *t = &f->tensors[tensor_of(f, statement)];
    if (ir_at(f, statement)->kind != 0)
        return ir_index_value(f, ir_operand(f, statement, ir_at(f, statement)->count - 1));
    return s->r->rows < t->rank ? (int64_t)t->sizes[s->r->rows] : 1;
}

/* Rows of a block: a multiple of LINE, which leaves none or a LINE or more for the last block, so that what
 * transposes has whole vectors. */
static int64_t block_of(const row_lanes *s, uint64_t size)
{
    int64_t most = BLOCK_BYTES / (s->steps * (int64_t)size) / LINE * LINE;
    most = most > MOST_BLOCK ? MOST_BLOCK : most < LINE ? LINE : most;
    if (s->line <= most)
        return s->line;
    int64_t length = most;
    while (length > LINE && s->line % length != 0 && s->line % length < LINE)
        length -= LINE;
    return length;
}

static bool find(row_lanes *s)
{
    const place_rows_of *r = s->r;
    const ir_func *f = s->f;
    const ir_tensor *t = &f->tensors[tensor_of(f, r->members[0].statement)];
    int64_t rows = 1;
    uint64_t size = 1;
    uint32_t reductions = 0;
    bool stores = false; /* rows: to transpose them for results alone takes longer than their folds */
    s->along = r->rows;
    for (uint32_t d = 0; d < r->rows; d++) {
        rows *= (int64_t)t->sizes[d];
        s->along = t->sizes[d] > 1 ? d : s->along;
    }
    if (r->count > MOST_MEMBERS || r->general || r->is_step || s->along == r->rows || rows < LEAST_COUNT)
        return false;
    s->line = (int64_t)t->sizes[s->along];
    for (uint32_t i = 0; i < r->count; i++) {
        const ir_ref statement = r->members[i].statement;
        const uint64_t own = opjit_ir_type_size((ir_type)f->tensors[tensor_of(f, statement)].type);
        if (!fits(s, statement))
            return false;
        s->steps = length_of(s, statement) > s->steps ? length_of(s, statement) : s->steps;
        size = own > size ? own : size;
        reductions += ir_at(f, statement)->kind != 0;
        stores = stores || (r->members[i].outside && ir_at(f, statement)->kind == 0 && length_of(s, statement) > 1);
    }
    if (!stores || s->line < LEAST_LINE || s->steps < 2 || s->steps > (reductions > 1 ? MOST_STEPS : MOST_LONE_STEPS))
        return false;
    s->length = block_of(s, size);
    return true;
}

/* --- loops ---------------------------------------------------------------------------------------------------- */

static uint32_t declare(row_lanes *s, ir_type type, int64_t steps)
{
    const uint64_t line = ((uint64_t)s->length + LINE - 1) / LINE * LINE;
    ir_tensor t = { .role = IR_SCRATCH, .type = type, .rank = 1, .sizes = { line }, .strides = { 1 }, .align = 64 };
    if (steps > 1)
        t = (ir_tensor){ .role = IR_SCRATCH, .type = type, .rank = 2, .sizes = { (uint64_t)steps, line },
                         .strides = { line, 1 }, .align = 64 };
    t.bytes = opjit_ir_count_elements(&t) * opjit_ir_type_size(type);
    return opjit_ir_tensor(s->f, &t);
}

/* A loop at the end of the list; returns its variable. */
static ir_ref make_loop(row_lanes *s, block *list, ir_ref from, ir_ref to, block *out_inside)
{
    const ir_ref loop = opjit_ir_for(s->f, from, to, 1);
    opjit_ir_block_add(s->f, list, loop);
    *out_inside = (block){ .parent = loop };
    return s->f->failed ? 0 : ir_at(s->f, loop)->ref;
}

/* --- what is read along rows ------------------------------------------------------------------------------------- */

/* The load, of element k of the block's current row, by the variables of the copy's loops. */
static ir_ref load_by(row_lanes *s, const row_copy *c, ir_ref load, ir_ref k)
{
    ir_map map = { 0 };
    ir_map_set(s->f, &map, s->in.rows[s->along], c->row);
    ir_map_set(s->f, &map, k, c->k);
    return opjit_ir_remake(s->f, &map, load);
}

static void add_copy(row_lanes *s, ir_ref load, ir_ref k)
{
    ir_func *f = s->f;
    row_copy *c = &s->copies[s->copy_count++];
    const ir_ref most = ir_make2(f, IR_IADD, IR_INDEX, s->first, opjit_ir_index(f, s->length));
    const ir_ref end = ir_make2(f, IR_IMIN, IR_INDEX, most, opjit_ir_index(f, s->line));
    block of_k, of_row;
    c->scratch = declare(s, f->tensors[ir_at(f, load)->ref].type, s->steps);
    c->k = make_loop(s, &s->body, opjit_ir_index(f, 0), opjit_ir_index(f, s->steps), &of_k);
    c->row = make_loop(s, &of_k, s->first, end, &of_row);
    const ir_ref number = ir_make2(f, IR_ISUB, IR_INDEX, c->row, s->first);
    c->load = load_by(s, c, load, k);
    s->refused = !opjit_ir_in_bounds(f, c->load); /* what a condition guards is read where it does not hold, too */
    opjit_ir_block_add(f, &of_row, opjit_ir_store(f, c->scratch, c->load, (ir_ref[]){ c->k, number }));
}

/* Whether it is a comparison that may be another one for the next row. */
static bool is_choice(const row_lanes *s, ir_ref r, ir_ref row)
{
    const ir_func *f = s->f;
    const ir_node *n = ir_at(f, r);
    bool varies = false;
    for (uint32_t i = 0; i < n->count && n->type == IR_BOOL; i++)
        varies = varies || (ir_at(f, ir_operand(f, r, i))->type == IR_INDEX &&
                            opjit_ir_varies(f, ir_operand(f, r, i), row));
    return varies;
}

/* Replaces loads of what lies along rows by loads of copies of it.  Refused are what is apart in another way, loads
 * that a condition keeps inside of their tensor, and choices by the row, which cut loops along rows best. */
static ir_ref read_copies(row_lanes *s, ir_ref value, ir_ref row, ir_ref k)
{
    ir_func *f = s->f;
    const ir_reach seen = opjit_ir_reach_one(f, value);
    ir_map map = { 0 };
    for (uint32_t i = 0; i < seen.count && !s->refused && !f->failed; i++) {
        const ir_ref load = seen.nodes[i];
        int64_t by_row, by_step;
        uint32_t c = 0;
        s->refused = is_choice(s, load, row);
        if (ir_at(f, load)->op != IR_LOAD || s->refused)
            continue;
        s->refused = !opjit_ir_step(f, load, row, &by_row) || by_row < 0;
        if (s->refused || by_row < 2)
            continue;
        s->refused = !opjit_ir_step(f, load, k, &by_step) || by_step != 1;
        while (c < s->copy_count && !s->refused &&
               !opjit_ir_same(f, load_by(s, &s->copies[c], load, k), s->copies[c].load))
            c++;
        s->refused = s->refused || c == MOST_COPIES;
        if (s->refused)
            break;
        if (c == s->copy_count)
            add_copy(s, load, k);
        ir_map_set(f, &map, load, opjit_ir_load(f, s->copies[c].scratch, (ir_ref[]){ k, row }));
    }
    s->refused = s->refused || seen.nodes == NULL;
    return s->refused ? value : opjit_ir_remake(f, &map, value);
}

/* The member's value for row number `row` of the block and element k. */
static ir_ref value_of(row_lanes *s, ir_ref statement, ir_ref row, ir_ref k)
{
    ir_func *f = s->f;
    const bool reduces = ir_at(f, statement)->kind != 0;
    ir_ref at[PASS_OPERANDS];
    uint32_t count = s->r->rows;
    s->in.rows[s->along] = ir_make2(f, IR_IADD, IR_INDEX, s->first, row);
    s->in.number = row;
    memcpy(at, s->in.rows, count * sizeof *at);
    while (count < f->tensors[tensor_of(f, statement)].rank)
        at[count++] = reduces ? opjit_ir_index(f, 0) : k;
    if (reduces)
        at[count++] = k;
    return opjit_ir_inline(&s->in, statement, count, at);
}

/* --- members ---------------------------------------------------------------------------------------------------- */

/* Scratch with the member's values, by loops of their own unless it is a copy's. */
static uint32_t add_values(row_lanes *s, ir_ref statement, int64_t steps)
{
    ir_func *f = s->f;
    const ir_ref zero = opjit_ir_index(f, 0);
    const bool reduces = ir_at(f, statement)->kind != 0;
    const ir_type type = reduces ? (ir_type)ir_at(f, statement)->type : f->tensors[tensor_of(f, statement)].type;
    block apart = { 0 }, inside;
    const ir_ref outer = opjit_ir_for(f, zero, opjit_ir_index(f, steps), 1), inner = opjit_ir_for(f, zero, s->here, 1);
    if (f->failed)
        return 0;
    const ir_ref row = ir_at(f, inner)->ref, k = steps > 1 ? ir_at(f, outer)->ref : zero;
    const ir_ref value = read_copies(s, value_of(s, statement, row, k), row, k);
    const ir_node *n = ir_at(f, value);
    if (s->refused || s->in.refused || f->failed)
        return 0;
    if (reduces && n->op == IR_LOAD && f->tensors[n->ref].role == IR_SCRATCH && f->tensors[n->ref].rank == 2 &&
        ir_operand(f, value, 0) == k && ir_operand(f, value, 1) == row)
        return n->ref;
    inside = (block){ .parent = inner };
    const uint32_t scratch = declare(s, type, steps);
    const ir_ref shared = opjit_ir_share(f, &inside, value), at[2] = { steps > 1 ? k : row, row };
    opjit_ir_block_add(f, &inside, opjit_ir_store(f, scratch, shared, at));
    if (steps > 1) {
        apart = (block){ .parent = outer };
        opjit_ir_block_add(f, &apart, inner);
    }
    opjit_ir_block_add(f, &s->body, steps > 1 ? outer : inner);
    return scratch;
}

/* Scratch with the rows' results. */
static uint32_t add_results(row_lanes *s, ir_ref statement, uint32_t from)
{
    ir_func *f = s->f;
    const ir_node n = *ir_at(f, statement);
    const int64_t steps = length_of(s, statement);
    ir_ref part[MOST_STEPS] = { 0 };
    block inside;
    const ir_ref row = make_loop(s, &s->body, opjit_ir_index(f, 0), s->here, &inside);
    for (int64_t k = 0; k < steps; k++)
        part[k] = opjit_ir_load(f, from, (ir_ref[]){ opjit_ir_index(f, k), row });
    const uint32_t scratch = declare(s, (ir_type)n.type, 1);
    opjit_ir_block_add(f, &inside, opjit_ir_store(f, scratch, opjit_ir_fold_parts(f, &n, part, steps), &row));
    return scratch;
}

/* Stores what the scratch has: rows, or an element of each. */
static void store(row_lanes *s, ir_ref statement, uint32_t scratch, int64_t steps)
{
    ir_func *f = s->f;
    const uint32_t tensor = tensor_of(f, statement), rank = f->tensors[tensor].rank;
    const ir_ref zero = opjit_ir_index(f, 0);
    block of_row, of_k;
    ir_ref at[PASS_OPERANDS], k = zero;
    const ir_ref row = make_loop(s, &s->body, zero, s->here, &of_row);
    if (steps > 1)
        k = make_loop(s, &of_row, zero, opjit_ir_index(f, steps), &of_k);
    memcpy(at, s->in.rows, s->r->rows * sizeof *at);
    at[s->along] = ir_make2(f, IR_IADD, IR_INDEX, s->first, row);
    for (uint32_t d = s->r->rows; d < rank; d++)
        at[d] = k;
    const ir_ref value = opjit_ir_load(f, scratch, (ir_ref[]){ steps > 1 ? k : row, row });
    opjit_ir_block_add(f, steps > 1 ? &of_k : &of_row, opjit_ir_store(f, tensor, value, at));
}

static bool write_members(row_lanes *s)
{
    place_rows_of *r = s->r;
    for (uint32_t i = 0; i < r->count && !s->refused && !s->in.refused && !s->f->failed; i++) {
        const row_member *m = &r->members[i];
        const int64_t steps = length_of(s, m->statement);
        const bool reduces = ir_at(s->f, m->statement)->kind != 0;
        uint32_t scratch = add_values(s, m->statement, steps);
        if (s->refused || s->in.refused || s->f->failed)
            break;
        if (reduces && steps > 1)
            scratch = add_results(s, m->statement, scratch);
        if (m->outside)
            store(s, m->statement, scratch, reduces ? 1 : steps);
        r->sources[tensor_of(s->f, m->statement)].scratch = scratch;
    }
    for (uint32_t i = 0; i < r->count; i++)
        r->sources[tensor_of(s->f, r->members[i].statement)].scratch = 0;
    return !s->refused && !s->in.refused && !s->f->failed;
}

/* --- the stage ---------------------------------------------------------------------------------------------------- */

/* Which rows iteration p makes. */
static void set_block(row_lanes *s, const ir_tensor *t, ir_ref p, int64_t blocks)
{
    ir_func *f = s->f;
    int64_t below = blocks;
    s->in.row_count = s->r->rows;
    s->first = opjit_ir_index(f, 0);
    s->here = opjit_ir_index(f, s->length);
    if (blocks > 1) {
        const ir_ref number = ir_make2(f, IR_IMOD, IR_INDEX, p, opjit_ir_index(f, blocks));
        s->first = ir_make2(f, IR_IMUL, IR_INDEX, number, opjit_ir_index(f, s->length));
        const ir_ref left = ir_make2(f, IR_ISUB, IR_INDEX, opjit_ir_index(f, s->line), s->first);
        s->here = s->line % s->length == 0 ? s->here : ir_make2(f, IR_IMIN, IR_INDEX, s->here, left);
    }
    for (uint32_t d = s->r->rows; d-- > 0;) {
        s->in.rows[d] = opjit_ir_index(f, 0);
        if (d == s->along || t->sizes[d] == 1)
            continue;
        const ir_ref above = ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, below));
        s->in.rows[d] = ir_make2(f, IR_IMOD, IR_INDEX, above, opjit_ir_index(f, (int64_t)t->sizes[d]));
        below *= (int64_t)t->sizes[d];
    }
}

bool opjit_ir_place_row_lanes(place_rows_of *r, block *stages)
{
    ir_func *f = r->f;
    row_lanes s = { .r = r, .f = f };
    if (!find(&s))
        return false;
    const ir_tensor t = f->tensors[tensor_of(f, r->members[0].statement)];
    const int64_t blocks = (s.line + s.length - 1) / s.length;
    int64_t count = blocks, grain = PIECE_BYTES / (s.length * s.steps * (int64_t)opjit_ir_type_size(t.type));
    for (uint32_t d = 0; d < r->rows; d++)
        count *= d == s.along ? 1 : (int64_t)t.sizes[d];
    grain = grain < 1 ? 1 : grain > count ? count : grain;
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, count), (uint64_t)grain);
    if (f->failed)
        return false;
    s.body.parent = stage;
    s.in = (inliner){ .f = f, .sources = r->sources, .private_views = r->private_views, .by_lane = true };
    set_block(&s, &t, ir_at(f, stage)->ref, blocks);
    if (!write_members(&s))
        return false;
    for (uint32_t i = 0; i < r->count; i++)
        if (!r->members[i].outside)
            f->tensors[tensor_of(f, r->members[i].statement)].role = IR_VALUE;
    opjit_ir_block_add(f, stages, stage);
    return true;
}
