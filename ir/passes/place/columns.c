/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - a stage that reduces many columns side by side, so that neighbours are a vector's lanes.  Part of place.
 * For a reduction with one lane whose elements lie far apart while the next column is the next element in memory: it
 * uses a scratch row of results instead of an accumulator.  The reduced coordinate is the outer loop, ascending, and
 * the columns are the inner one, so that each column sees what its accumulator would have seen, in the same order and
 * in the same blocks.  A scan along one dimension, while the next column is the next element, is the same without a
 * fold: each step stores its result.  Arg kinds have a second row, of the values that the results are the places of. */
#include "ir/passes/pass.h"

#include <string.h>

enum {
    PIECE_BYTES = 64 * 1024,
    TILE_BYTES = 8 * 1024,      /* of the scratch row, which stays in the first cache together with what is read */
    MOST_BYTES = 256 * 1024,    /* if no tile fits: of a row that is a single tile */
    LEAST_BYTES = 512,          /* of tiles that are the only iterations */
    TASKS = 64,                 /* enough parallel iterations */
    TILE_UNIT = 16,             /* elements */
    FEWEST = 4,                 /* the fewest columns for which it pays */
    STREAM_BYTES = 1024 * 1024, /* of larger tensors, adjacent rows are read one after the other, as one stream, */
    STREAM_LEAST = 512,         /* if they are longer than this, */
    STREAM_MOST = 4096,         /* and shorter than this (bytes) */
    AT_ONCE = 4,                /* steps of a column between a load and a store of its result; */
    NARROW_AT_ONCE = 16,        /* in rows of so few bytes, which wait for what the last round stored */
    NARROW_BYTES = 128,
    MOST_STRIDE = 4,
    DEPTH = 6, /* of an index that is looked at */
};

typedef struct column_stage {
    place_rows_of *r;
    ir_func *f;
    inliner in;
    ir_ref statement;
    ir_node def;
    ir_tensor out;
    uint32_t dimension;                   /* of the columns */
    int32_t along;                        /* dimension that a scan runs along; -1: not a scan */
    int64_t rows, tiles, columns, length; /* columns: of a tile; length: reduced elements */
    ir_ref at[9];                         /* the row's coordinates, 0 for the others */
    ir_ref first;                         /* column of the tile */
    uint32_t row, total;                  /* scratch; total 0: there is one block, or the order does not matter */
    uint32_t best;                        /* scratch, of arg kinds: values; 0: another kind */
    bool counted;                         /* length: the most of them */
    bool windows;                         /* as a pool reads: all steps are one expression */
} column_stage;

/* --- decide ------------------------------------------------------------------------------------------------------- */

/* Whether index d of the load moves with the column and with what is reduced. */
static bool slides(const column_stage *s, ir_ref load, uint32_t d)
{
    const ir_ref index = ir_operand(s->f, load, d);
    return opjit_ir_uses(s->f, index, opjit_ir_coordinate(s->f, s->statement, s->dimension)) &&
           opjit_ir_uses(s->f, index, opjit_ir_reduced(s->f, s->statement));
}

/* Elements that the load moves by from column to column, -1: not by a number; through a window up to its bounds. */
static int64_t step_of(column_stage *s, ir_ref load)
{
    ir_func *f = s->f;
    const ir_ref var = opjit_ir_coordinate(f, s->statement, s->dimension);
    const ir_tensor *t = &f->tensors[ir_at(f, load)->ref];
    int64_t all = 0, factor, part;
    for (uint32_t d = 0; d < t->rank; d++) {
        ir_ref index = ir_operand(f, load, d);
        if (!opjit_ir_uses(f, index, var))
            continue; /* whatever it is, a place from data, too */
        if (slides(s, load, d))
            index = opjit_ir_without_bounds(f, index, DEPTH);
        if (!opjit_ir_factor(f, index, var, &factor) || !checked_muli(factor, (int64_t)t->strides[d], &part) ||
            !checked_addi(all, part, &all))
            return -1;
    }
    return all;
}

/* Whether what the definition itself reads from memory moves by 0 or 1 element from column to column; through windows,
 * by a few. */
static bool reads_neighbours(column_stage *s)
{
    ir_func *f = s->f;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, s->statement, 0));
    int64_t most = 1;
    for (uint32_t i = 0; i < seen.count; i++) {
        const ir_node *n = ir_at(f, seen.nodes[i]);
        for (uint32_t d = 0; n->op == IR_LOAD && d < n->count; d++)
            s->windows = s->windows || slides(s, seen.nodes[i], d);
        if (n->op != IR_LOAD || s->r->sources[opjit_ir_root(f, n->ref)].def != 0)
            continue;
        const int64_t step = step_of(s, seen.nodes[i]);
        if (step < 0)
            return false;
        most = step > most ? step : most;
    }
    s->windows = s->windows && s->def.kind != IR_DOT && !ir_kind_is_arg((ir_kind)s->def.kind) && s->along < 0 &&
                 s->length <= COLUMN_TAPS && s->length <= (int64_t)s->def.block && !s->counted;
    return seen.nodes != NULL && most <= (s->windows ? MOST_STRIDE : 1);
}

/* The columns of a tile: all, or a divisor; 0: none fits. */
static int64_t tile_of(int64_t columns, int64_t size, int64_t most)
{
    if (columns * size <= most)
        return columns;
    for (int64_t tile = most / size / TILE_UNIT * TILE_UNIT; tile > 0; tile -= TILE_UNIT)
        if (columns % tile == 0)
            return tile;
    return columns * size <= MOST_BYTES ? columns : 0;
}

static bool plan(column_stage *s)
{
    const ir_func *f = s->f;
    const ir_node *n = &s->def;
    const bool arg = ir_kind_is_arg((ir_kind)n->kind);
    s->along = opjit_ir_scanned(f, s->statement);
    if (n->op != IR_DEF || (n->imm > 1 && s->along < 0 && !arg) ||
        (arg ? s->along >= 0 || n->type == IR_INDEX : ir_kind_op((ir_kind)n->kind) == IR_OP_NONE) || s->out.rank == 0)
        return false;
    for (s->dimension = s->out.rank - 1; s->dimension > 0 && s->out.sizes[s->dimension] == 1;)
        s->dimension--;
    const int64_t all = (int64_t)s->out.sizes[s->dimension], size = opjit_ir_type_size((ir_type)n->type);
    const ir_ref bound = ir_operand(f, s->statement, n->count - 1);
    s->counted = opjit_ir_is_counted(f, s->statement);
    if (s->counted && (n->imm != 0 || opjit_ir_uses(f, bound, opjit_ir_coordinate(f, s->statement, s->dimension))))
        return false;
    s->length = s->along >= 0 ? (int64_t)s->out.sizes[s->along] : opjit_ir_reduced_most(f, s->statement);
    s->rows = 1;
    for (uint32_t d = 0; d < s->dimension; d++)
        s->rows *= (int32_t)d == s->along ? 1 : (int64_t)s->out.sizes[d];
    if (s->along >= (int32_t)s->dimension || all < FEWEST || all > INT64_MAX / size || s->length < 2)
        return false;
    int64_t most = TILE_BYTES, part = all * size / TASKS; /* in a single row, tiles are what can run in parallel */
    if (s->rows == 1 && part < most)
        most = part > LEAST_BYTES ? part : LEAST_BYTES;
    s->columns = tile_of(all, size, most);
    s->tiles = s->columns == 0 ? 0 : all / s->columns;
    return s->columns != 0 && reads_neighbours(s);
}

/* --- write -------------------------------------------------------------------------------------------------------- */

static uint32_t scratch_row(column_stage *s, ir_type type)
{
    ir_tensor row = { .role = IR_SCRATCH, .type = type, .rank = 1, .strides = { 1 }, .align = 64 };
    row.sizes[0] = (uint64_t)s->columns;
    row.bytes = (uint64_t)s->columns * opjit_ir_type_size(row.type);
    return opjit_ir_tensor(s->f, &row);
}

/* A loop in the list; *out: its empty block.  Returns the variable. */
static ir_ref add_loop(column_stage *s, block *list, ir_ref lo, ir_ref hi, block *out)
{
    const ir_ref loop = opjit_ir_for(s->f, lo, hi, 1);
    *out = (block){ .parent = loop };
    opjit_ir_block_add(s->f, list, loop);
    return ir_at(s->f, loop)->ref;
}

static ir_ref add_columns(column_stage *s, block *list, block *out)
{
    return add_loop(s, list, opjit_ir_index(s->f, 0), opjit_ir_index(s->f, s->columns), out);
}

/* The loop's variable is around what follows, until it is taken off. */
static void enter(column_stage *s, ir_ref var, int64_t count)
{
    s->in.loops[s->in.loop_count] = var;
    s->in.extents[s->in.loop_count++] = (uint64_t)count;
}

static void store(column_stage *s, block *list, uint32_t tensor, ir_ref value, const ir_ref *at)
{
    opjit_ir_block_add(s->f, list, opjit_ir_store(s->f, tensor, value, at));
}

/* The column's value after one more, or after what a block of it has. */
static ir_ref step(column_stage *s, ir_ref before, ir_ref value)
{
    ir_func *f = s->f;
    const ir_type type = (ir_type)s->def.type;
    if (!f->failed && ir_at(f, value)->op == IR_PAIR)
        return ir_dot_step(f, type, ir_operand(f, value, 0), ir_operand(f, value, 1), before);
    return ir_expr2(f, ir_kind_op((ir_kind)s->def.kind), type, before, value);
}

static void fill(column_stage *s, block *list, uint32_t row, uint64_t bits)
{
    block inside;
    const ir_ref j = add_columns(s, list, &inside);
    store(s, &inside, row, opjit_ir_const(s->f, (ir_type)s->def.type, bits), &j);
}

static uint64_t identity(const column_stage *s)
{
    return opjit_ir_identity((ir_type)s->def.type, (ir_kind)s->def.kind);
}

/* The value that column j reduces for k; around: loops outside of the one over k. */
static ir_ref value_at(column_stage *s, block *list, ir_ref k, ir_ref j)
{
    ir_ref at[9];
    memcpy(at, s->at, sizeof at);
    at[s->dimension] = ir_make2(s->f, IR_IADD, IR_INDEX, s->first, j);
    at[s->out.rank] = k;
    return opjit_ir_share(s->f, list, opjit_ir_inline(&s->in, s->statement, s->out.rank + 1, at));
}

/* For the loop's variable v in lo..hi: `steps` of every column, for k from first + v * steps on. */
static void add_rounds(column_stage *s, block *list, ir_ref lo, ir_ref hi, ir_ref first, int64_t steps)
{
    ir_func *f = s->f;
    block of_k, of_j;
    const ir_ref v = add_loop(s, list, lo, hi, &of_k), j = add_columns(s, &of_k, &of_j);
    const uint32_t around = s->in.loop_count;
    enter(s, v, s->length);
    enter(s, j, s->columns);
    ir_ref sum = opjit_ir_load(f, s->row, &j);
    for (int64_t i = 0; i < steps; i++) {
        ir_ref k = ir_make2(f, IR_IADD, IR_INDEX, first, ir_make2(f, IR_IMUL, IR_INDEX, v, opjit_ir_index(f, steps)));
        k = ir_make2(f, IR_IADD, IR_INDEX, k, opjit_ir_index(f, i));
        sum = step(s, sum, value_at(s, &of_j, k, j));
    }
    s->in.loop_count = around;
    store(s, &of_j, s->row, sum, &j);
}

/* Whether rows `step` elements apart are read from memory one after the other. */
static bool is_stream(const column_stage *s, uint32_t tensor, int64_t step)
{
    const ir_tensor *t = &s->f->tensors[tensor];
    const int64_t bytes = step * opjit_ir_type_size(t->type);
    return t->bytes > STREAM_BYTES && step == s->columns && bytes > STREAM_LEAST && bytes < STREAM_MOST;
}

/* Whether several steps per round pay: there is little to do with the loaded values beside loading and storing the
 * result, and the processor's read-ahead does not suffer. */
static bool takes_several(column_stage *s)
{
    ir_func *f = s->f;
    const ir_reach seen = opjit_ir_reach_one(f, ir_operand(f, s->statement, 0));
    const ir_ref var = opjit_ir_reduced(f, s->statement);
    const ir_ref column = opjit_ir_coordinate(f, s->statement, s->dimension);
    uint32_t loads = 0, others = 0;
    bool good = seen.nodes != NULL;
    for (uint32_t k = 0; good && k < seen.count; k++) {
        const ir_ref r = seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        others += n->op != IR_LOAD && n->op != IR_PAIR && n->type != IR_INDEX && n->count > 0;
        if (n->op != IR_LOAD)
            continue;
        int64_t step = s->columns, own = 1;
        good = s->r->sources[opjit_ir_root(f, n->ref)].def == 0 &&
               (opjit_ir_step(f, r, var, &step) || opjit_ir_moves_by_digits(f, r, var)) && !is_stream(s, n->ref, step);
        if (s->def.kind == IR_DOT) /* one factor is often the same for all columns */
            good = good && opjit_ir_step(f, r, column, &own);
        loads += own != 0;
    }
    return good && loads == 1 && others <= 2;
}

/* One step of every column for each of `length` k from first on. */
static void add_steps(column_stage *s, block *list, ir_ref first, int64_t length)
{
    ir_func *f = s->f;
    const int64_t bytes = s->columns * opjit_ir_type_size((ir_type)s->def.type);
    const bool narrow = bytes <= NARROW_BYTES && !s->r->general; /* lengths that differ would be loops of more kinds */
    int64_t done = 0, steps = !takes_several(s) ? 1 : narrow ? NARROW_AT_ONCE : AT_ONCE;
    for (; steps > 1; steps /= AT_ONCE) {
        const int64_t rounds = (length - done) / steps;
        const ir_ref from = ir_make2(f, IR_IADD, IR_INDEX, first, opjit_ir_index(f, done));
        if (rounds > 0)
            add_rounds(s, list, opjit_ir_index(f, 0), opjit_ir_index(f, rounds), from, steps);
        done += rounds * steps;
    }
    if (done < length)
        add_rounds(s, list, opjit_ir_index(f, done), opjit_ir_index(f, length), first, 1);
}

/* Whether an arg kind takes the next value: NaN before all others, and the first NaN. */
static ir_ref is_better(column_stage *s, ir_ref value, ir_ref best)
{
    ir_func *f = s->f;
    const bool least = ir_arg_is_least((ir_kind)s->def.kind);
    const ir_op op = ir_arg_is_first((ir_kind)s->def.kind) ? IR_LT : IR_LE;
    const ir_ref better = ir_make2(f, op, IR_BOOL, least ? value : best, least ? best : value);
    if (f->failed || !ir_is_float((ir_type)ir_at(f, value)->type))
        return better;
    const ir_ref nan = ir_make2(f, IR_NE, IR_BOOL, value, value), number = ir_make2(f, IR_EQ, IR_BOOL, best, best);
    return ir_make2(f, IR_OR, IR_BOOL, better, ir_make2(f, IR_AND, IR_BOOL, nan, number));
}

/* The place of the best value of each column. */
static void add_places(column_stage *s, block *list)
{
    ir_func *f = s->f;
    const ir_type type = (ir_type)s->def.type;
    const uint32_t around = s->in.loop_count;
    block of_k, of_j, of_first;
    ir_ref j = add_columns(s, list, &of_first);
    enter(s, j, s->columns);
    store(s, &of_first, s->best, value_at(s, &of_first, opjit_ir_index(f, 0), j), &j);
    store(s, &of_first, s->row, opjit_ir_const(f, type, 0), &j);
    const ir_ref k = add_loop(s, list, opjit_ir_index(f, 1), opjit_ir_index(f, s->length), &of_k);
    j = add_columns(s, &of_k, &of_j);
    s->in.loop_count = around;
    enter(s, k, s->length);
    enter(s, j, s->columns);
    const ir_ref value = value_at(s, &of_j, k, j), best = opjit_ir_load(f, s->best, &j);
    const ir_ref better = is_better(s, value, best), place = ir_make1(f, IR_ELEM, type, k);
    store(s, &of_j, s->row, ir_make3(f, IR_SELECT, IR_NONE, better, place, opjit_ir_load(f, s->row, &j)), &j);
    store(s, &of_j, s->best, ir_make3(f, IR_SELECT, IR_NONE, better, value, best), &j);
    s->in.loop_count = around;
}

/* Block after block.  The sum of a block is never -0, so +0 before the first block needs no special case. */
static void add_blocks(column_stage *s, block *list)
{
    ir_func *f = s->f;
    block of_b, of_j;
    fill(s, list, s->total, s->def.kind == IR_DOT ? ir_dot_total((ir_type)s->def.type) : identity(s));
    const int64_t size = s->def.block, blocks = (s->length + size - 1) / size;
    const ir_ref b = add_loop(s, list, opjit_ir_index(f, 0), opjit_ir_index(f, blocks), &of_b);
    fill(s, &of_b, s->row, identity(s));
    const ir_ref block_length = opjit_ir_index(f, size);
    const ir_ref lo = ir_make2(f, IR_IMUL, IR_INDEX, b, block_length);
    const ir_ref hi = ir_make2(f, IR_IADD, IR_INDEX, lo, block_length), end = opjit_ir_index(f, s->length);
    if (s->length % size == 0)
        add_steps(s, &of_b, lo, size);
    else /* the last one is shorter */
        add_rounds(s, &of_b, lo, ir_make2(f, IR_IMIN, IR_INDEX, hi, end), opjit_ir_index(f, 0), 1);
    const ir_ref j = add_columns(s, &of_b, &of_j);
    store(s, &of_j, s->total, step(s, opjit_ir_load(f, s->total, &j), opjit_ir_load(f, s->row, &j)), &j);
}

/* Stores the element of the output, which reads the column's result and no other. */
static void add_output(column_stage *s, block *list, ir_ref result, ir_ref j, const ir_ref *at)
{
    ir_func *f = s->f;
    const ir_ref output = s->r->members[1].statement;
    inline_source *source = &s->r->sources[s->def.ref];
    const bool is_let = ir_at(f, result)->op == IR_GET;
    const ir_ref let = is_let ? ir_at(f, result)->ref : opjit_ir_let(f, result);
    if (!is_let)
        opjit_ir_block_add(f, list, let);
    source->row_value = let;
    enter(s, j, s->columns);
    s->in.row_count = s->out.rank < 8 ? s->out.rank : 8;
    memcpy(s->in.rows, at, s->in.row_count * sizeof *at);
    const ir_ref value = opjit_ir_share(f, list, opjit_ir_inline(&s->in, output, s->out.rank, at));
    store(s, list, ir_at(f, output)->ref, value, at);
    s->in.loop_count--;
    s->in.row_count = 0;
    source->row_value = 0;
}

/* Stores a column's result, in the definition's memory or as the output. */
static void add_result(column_stage *s, block *list, ir_ref result, ir_ref j)
{
    ir_ref at[9];
    memcpy(at, s->at, sizeof at);
    at[s->dimension] = ir_make2(s->f, IR_IADD, IR_INDEX, s->first, j);
    if (s->r->count == 1)
        store(s, list, s->def.ref, result, at);
    else
        add_output(s, list, result, j, at);
}

/* All steps of every column, each in one expression. */
static void add_windows(column_stage *s, block *list)
{
    ir_func *f = s->f;
    block of_j;
    const ir_ref j = add_columns(s, list, &of_j);
    ir_ref sum = opjit_ir_const(f, (ir_type)s->def.type, identity(s));
    enter(s, j, s->columns);
    for (int64_t k = 0; k < s->length; k++)
        sum = step(s, sum, value_at(s, &of_j, opjit_ir_index(f, k), j));
    s->in.loop_count--;
    add_result(s, &of_j, sum, j);
}

/* Does one step of every column after the other, and stores each: after it, or before. */
static void add_running(column_stage *s, block *list)
{
    ir_func *f = s->f;
    const bool exclusive = ir_at(f, ir_operand(f, s->statement, s->def.count - 1))->op == IR_VAR;
    const uint32_t around = s->in.loop_count;
    block of_k, of_j;
    const ir_ref k = add_loop(s, list, opjit_ir_index(f, 0), opjit_ir_index(f, s->length), &of_k);
    const ir_ref j = add_columns(s, &of_k, &of_j);
    enter(s, k, s->length);
    enter(s, j, s->columns);
    s->at[s->along] = k;
    const ir_ref before = opjit_ir_load(f, s->row, &j), after = step(s, before, value_at(s, &of_j, k, j));
    const ir_ref let = opjit_ir_let(f, exclusive ? before : after), result = opjit_ir_get(f, let);
    opjit_ir_block_add(f, &of_j, let);
    store(s, &of_j, s->row, exclusive ? after : result, &j);
    s->in.loop_count--; /* add_output counts that over j */
    add_result(s, &of_j, result, j);
    s->in.loop_count = around;
}

/* As many steps as an index says that all columns share. */
static void add_counted(column_stage *s, block *list)
{
    ir_func *f = s->f;
    const ir_ref bound = ir_operand(f, s->statement, s->def.count - 1), zero = opjit_ir_index(f, 0);
    const ir_ref count = opjit_ir_inline_part(&s->in, s->statement, bound, s->out.rank, s->at);
    if (!f->failed)
        add_rounds(s, list, zero, opjit_ir_block_let(f, list, opjit_ir_share(f, list, count)), zero, 1);
}

static void add_tile(column_stage *s, block *list)
{
    ir_func *f = s->f;
    block inside;
    if (s->windows) {
        add_windows(s, list);
        return;
    }
    if (s->best == 0 && s->total == 0)
        fill(s, list, s->row, identity(s));
    if (s->along >= 0) {
        add_running(s, list);
        return;
    }
    if (s->best != 0)
        add_places(s, list);
    else if (s->total != 0)
        add_blocks(s, list);
    else if (s->counted)
        add_counted(s, list);
    else
        add_steps(s, list, opjit_ir_index(f, 0), s->length);
    const ir_ref j = add_columns(s, list, &inside);
    add_result(s, &inside, opjit_ir_load(f, s->total != 0 ? s->total : s->row, &j), j);
}

/* The coordinates of row p before the column's, and 0 after it. */
static void set_rows(column_stage *s, ir_ref p)
{
    ir_func *f = s->f;
    int64_t below = s->rows;
    for (uint32_t d = 0; d < s->out.rank; d++) {
        const int64_t size = (int64_t)s->out.sizes[d];
        s->at[d] = opjit_ir_index(f, 0);
        if (d >= s->dimension || size == 1 || (int32_t)d == s->along)
            continue;
        below /= size;
        s->at[d] = ir_make2(f, IR_IMOD, IR_INDEX, ir_make2(f, IR_IDIV, IR_INDEX, p, opjit_ir_index(f, below)),
                            opjit_ir_index(f, size));
    }
}

bool opjit_ir_place_columns(place_rows_of *r, block *stages)
{
    ir_func *f = r->f;
    column_stage s = { .r = r, .f = f, .statement = r->members[0].statement };
    s.def = *ir_at(f, s.statement);
    s.out = f->tensors[s.def.ref];
    if (!plan(&s))
        return false;
    const bool inner = s.rows > 1; /* tiles, if any, are a loop in each row */
    const int64_t size = opjit_ir_type_size((ir_type)s.def.type), count = inner ? s.rows : s.tiles;
    const int64_t least = PIECE_BYTES / size / s.columns / (inner ? s.tiles : 1) / s.length + 1;
    const ir_ref stage =
        opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, count), (uint64_t)(least < count ? least : count));
    s.row = s.windows ? 0 : scratch_row(&s, (ir_type)s.def.type);
    if ((s.def.kind == IR_SUM || s.def.kind == IR_PROD || s.def.kind == IR_DOT) && s.length > s.def.block &&
        s.along < 0 && s.def.imm > 0)
        s.total = scratch_row(&s, (ir_type)s.def.type);
    if (ir_kind_is_arg((ir_kind)s.def.kind))
        s.best = scratch_row(&s, (ir_type)ir_at(f, ir_operand(f, s.statement, 0))->type);
    if (f->failed)
        return false;
    block body = { .parent = stage }, *list = &body, tile;
    ir_ref t = ir_at(f, stage)->ref;
    s.in = (inliner){ .f = f,
                      .sources = r->sources,
                      .private_views = r->private_views,
                      .loops = { t },
                      .loop_count = 1,
                      .extents = { (uint64_t)count } };
    set_rows(&s, t);
    if (inner && s.tiles > 1) {
        t = add_loop(&s, &body, opjit_ir_index(f, 0), opjit_ir_index(f, s.tiles), &tile);
        list = &tile;
        enter(&s, t, s.tiles);
    }
    s.first = s.tiles == 1 ? opjit_ir_index(f, 0) : ir_make2(f, IR_IMUL, IR_INDEX, t, opjit_ir_index(f, s.columns));
    add_tile(&s, list);
    if (s.in.refused)
        return false;
    opjit_ir_block_add(f, stages, stage);
    if (r->count > 1)
        f->tensors[s.def.ref].role = IR_VALUE;
    return !f->failed;
}
