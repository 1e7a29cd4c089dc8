/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - a stage that makes rows: reductions of them, and elements computed from the results, one after the other.
 * Part of place, which decides what belongs together.  What only this stage reads has no memory: a reduction is read
 * from its accumulator, one element per row from a let, and a whole row from scratch. */
#include "ir/passes/pass.h"

#include <string.h>

enum { PIECE_BYTES = 64 * 1024 };

typedef struct row_stage {
    place_rows_of *r;
    ir_func *f;
    inliner in;
    block body; /* of the stage */
    ir_ref p;
    int32_t along;  /* a coordinate before the last one that is not the row's; -1: none */
    uint32_t outer; /* loops around a row */
    const row_of_block *own; /* NULL: the stage is of rows alone */
} row_stage;

static uint32_t tensor_of(const ir_func *f, ir_ref statement) { return ir_at(f, statement)->ref; }

/* The number of elements of its row that a member has, or reduces. */
static int64_t length_of(const ir_func *f, ir_ref statement, uint32_t rows)
{
    const ir_node *n = ir_at(f, statement);
    const int32_t along = opjit_ir_scanned(f, statement);
    if (along >= 0)
        return (int64_t)f->tensors[n->ref].sizes[along];
    if (n->kind != 0)
        return opjit_ir_reduced_most(f, statement);
    return rows < f->tensors[n->ref].rank ? (int64_t)f->tensors[n->ref].sizes[rows] : 1;
}

static int64_t size_of(const row_stage *s, const ir_tensor *t, uint32_t d)
{
    return (int32_t)d == s->along ? 1 : (int64_t)t->sizes[d];
}

/* The coordinates of row p. */
static void set_rows(row_stage *s, const ir_tensor *t)
{
    ir_func *f = s->f;
    int64_t below = 1, above = 1;
    for (uint32_t d = 0; d < s->r->rows; d++)
        above *= size_of(s, t, d);
    for (uint32_t d = 0; d < s->r->rows; d++) {
        const int64_t size = size_of(s, t, d);
        above /= size;
        below = above;
        ir_ref x = size == 1 ? opjit_ir_index(f, 0) : ir_make2(f, IR_IDIV, IR_INDEX, s->p, opjit_ir_index(f, below));
        if (size > 1 && !f->failed)
            x = ir_make2(f, IR_IMOD, IR_INDEX, x, opjit_ir_index(f, size));
        s->in.rows[d] = x;
    }
    s->in.row_count = s->r->rows;
}

/* Stores value at the row's coordinates, and at `last` after them if the tensor has one more. */
static void store(row_stage *s, block *list, uint32_t tensor, ir_ref value, ir_ref last)
{
    ir_ref at[8] = { 0 };
    memcpy(at, s->in.rows, s->r->rows * sizeof *at);
    if (s->r->rows < s->f->tensors[tensor].rank)
        at[s->r->rows] = last;
    opjit_ir_block_add(s->f, list, opjit_ir_store(s->f, tensor, value, at));
}

/* Sets the loops around what follows: one more in the stage (length 1: none), or one inside another. */
static void set_loops(row_stage *s, ir_ref loop, int64_t length, ir_ref outer, int64_t count)
{
    s->in.loop_count = s->outer;
    if (outer != 0) {
        s->in.extents[s->in.loop_count] = (uint64_t)count;
        s->in.loops[s->in.loop_count++] = outer;
    }
    if (length > 1) {
        s->in.extents[s->in.loop_count] = (uint64_t)length;
        s->in.loops[s->in.loop_count++] = loop;
    }
}

/* The member's value for the row and `last`, in a block for its lets. */
static ir_ref value_of(row_stage *s, ir_ref statement, block *list, ir_ref k, int64_t length)
{
    ir_func *f = s->f;
    ir_ref at[9];
    uint32_t count = s->r->rows;
    memcpy(at, s->in.rows, count * sizeof *at);
    while (count < f->tensors[tensor_of(f, statement)].rank) /* a reduction has one element there */
        at[count++] = ir_at(f, statement)->kind != 0 || length == 1 ? opjit_ir_index(f, 0) : k;
    if (ir_at(f, statement)->kind != 0)
        at[count++] = k;
    return opjit_ir_share(f, list, opjit_ir_inline(&s->in, statement, count, at));
}

/* As many values as the member reduces in this row. */
static ir_ref count_of(row_stage *s, ir_ref statement, block *list)
{
    ir_func *f = s->f;
    ir_ref at[8];
    uint32_t count = s->r->rows;
    memcpy(at, s->in.rows, count * sizeof *at);
    while (count < f->tensors[tensor_of(f, statement)].rank)
        at[count++] = opjit_ir_index(f, 0);
    const ir_ref bound = ir_operand(f, statement, ir_at(f, statement)->count - 1);
    return opjit_ir_share(f, list, opjit_ir_inline_part(&s->in, statement, bound, count, at));
}

static ir_ref make_loop(row_stage *s, ir_ref length, block *out_inside)
{
    const ir_ref loop = opjit_ir_for(s->f, opjit_ir_index(s->f, 0), length, 1);
    *out_inside = (block){ .parent = loop };
    return loop;
}

/* A loop over `length` elements of what the member reduces, from `first` on, and its accumulator, which is returned.
 * outer: the enclosing loop, of `count` blocks; 0: there is none. */
static ir_ref add_steps(row_stage *s, const row_member *m, block *list, ir_ref first, int64_t length, ir_ref outer,
                        int64_t count)
{
    ir_func *f = s->f;
    const ir_node n = *ir_at(f, m->statement);
    block inside;
    const ir_ref acc = opjit_ir_acc(f, (ir_type)n.type, (ir_kind)n.kind, (uint32_t)n.imm);
    f->nodes[acc].block = n.block;
    if (opjit_ir_is_counted(f, m->statement))
        set_loops(s, 0, 1, 0, 0);
    const ir_ref steps =
        opjit_ir_is_counted(f, m->statement) ? count_of(s, m->statement, list) : opjit_ir_index(f, length);
    const ir_ref loop = make_loop(s, steps, &inside);
    const ir_ref own = ir_at(f, loop)->ref, k = ir_make2(f, IR_IADD, IR_INDEX, first, own);
    set_loops(s, own, length, outer, count);
    const ir_ref value = value_of(s, m->statement, &inside, k, length_of(f, m->statement, s->r->rows));
    opjit_ir_block_add(f, &inside, opjit_ir_upd(f, acc, value, ir_kind_is_arg((ir_kind)n.kind) ? own : 0));
    opjit_ir_block_add(f, list, acc);
    opjit_ir_block_add(f, list, loop);
    return acc;
}

/* Blocks of 4096, as the reduction's order prescribes: each is an accumulator of its own, whose loop needs no
 * conditions, and whose result goes into one without lanes.  Returns that one. */
static ir_ref add_blocks(row_stage *s, const row_member *m, int64_t length)
{
    ir_func *f = s->f;
    const ir_node n = *ir_at(f, m->statement);
    const int64_t count = length / IR_REDUCE_BLOCK;
    const ir_ref total = opjit_ir_acc(f, (ir_type)n.type, (ir_kind)n.kind, 0);
    const ir_ref zero = opjit_ir_index(f, 0), size = opjit_ir_index(f, IR_REDUCE_BLOCK);
    const ir_ref loop = opjit_ir_for(f, zero, opjit_ir_index(f, count), 1);
    block inside = { .parent = loop };
    const ir_ref b = ir_at(f, loop)->ref;
    opjit_ir_block_add(f, &s->body, total);
    opjit_ir_block_add(f, &s->body, loop);
    const ir_ref acc = add_steps(s, m, &inside, ir_make2(f, IR_IMUL, IR_INDEX, b, size), IR_REDUCE_BLOCK, b, count);
    opjit_ir_block_add(f, &inside, opjit_ir_upd(f, total, opjit_ir_get(f, acc), 0));
    if (length % IR_REDUCE_BLOCK == 0 || f->failed)
        return total;
    const ir_ref behind = opjit_ir_index(f, count * IR_REDUCE_BLOCK);
    const ir_ref rest = add_steps(s, m, &s->body, behind, length % IR_REDUCE_BLOCK, 0, 0);
    opjit_ir_block_add(f, &s->body, opjit_ir_upd(f, total, opjit_ir_get(f, rest), 0));
    return total;
}

static void add_reduction(row_stage *s, const row_member *m)
{
    ir_func *f = s->f;
    const ir_node n = *ir_at(f, m->statement);
    const int64_t length = length_of(f, m->statement, s->r->rows);
    const bool blocks = s->r->blocks && length > IR_REDUCE_BLOCK && !ir_kind_is_arg((ir_kind)n.kind) &&
                        n.kind != IR_DOT && n.imm != 0; /* a dot's first block may be -0, which a sum would lose */
    const ir_ref acc = blocks ? add_blocks(s, m, length)
                              : add_steps(s, m, &s->body, opjit_ir_index(f, 0), length, 0, 0);
    const ir_ref let = opjit_ir_let(f, opjit_ir_get(f, acc)); /* folds its lanes once */
    opjit_ir_block_add(f, &s->body, let);
    s->r->sources[n.ref].row_value = let;
    if (m->outside)
        store(s, &s->body, n.ref, opjit_ir_get(f, let), opjit_ir_index(f, 0));
}

static void add_element(row_stage *s, const row_member *m)
{
    ir_func *f = s->f;
    const uint32_t tensor = tensor_of(f, m->statement);
    set_loops(s, 0, 1, 0, 0);
    const ir_ref let = opjit_ir_let(f, value_of(s, m->statement, &s->body, 0, 1));
    opjit_ir_block_add(f, &s->body, let);
    s->r->sources[tensor].row_value = let;
    if (m->outside)
        store(s, &s->body, tensor, opjit_ir_get(f, let), opjit_ir_index(f, 0));
}

/* Row scratch for what a DEF has in this stage, and the store of an element in it. */
static void keep_row(row_stage *s, block *inside, uint32_t tensor, ir_ref value, ir_ref k, int64_t length)
{
    ir_func *f = s->f;
    if (s->own != NULL && s->own->tensor == tensor) {
        const ir_ref at[2] = { s->own->number, k };
        opjit_ir_block_add(f, inside, opjit_ir_store(f, s->own->scratch, value, at));
        s->r->sources[tensor].scratch = s->own->scratch;
        return;
    }
    ir_tensor row = { .role = IR_SCRATCH, .type = f->tensors[tensor].type, .rank = 1, .sizes = { (uint64_t)length },
                      .strides = { 1 }, .align = 64 };
    row.bytes = (uint64_t)length * opjit_ir_type_size(row.type);
    const uint32_t scratch = opjit_ir_tensor(f, &row);
    opjit_ir_block_add(f, inside, opjit_ir_store(f, scratch, value, &k));
    s->r->sources[tensor].scratch = scratch;
}

static void add_row(row_stage *s, const row_member *m, int64_t length)
{
    ir_func *f = s->f;
    const uint32_t tensor = tensor_of(f, m->statement);
    block inside;
    const ir_ref loop = make_loop(s, opjit_ir_index(f, length), &inside);
    const ir_ref k = ir_at(f, loop)->ref;
    set_loops(s, k, length, 0, 0);
    const ir_ref value = value_of(s, m->statement, &inside, k, length);
    if (m->outside)
        store(s, &inside, tensor, value, k);
    const bool is_own = s->own != NULL && s->own->tensor == tensor; /* behind the last member nothing else reads it */
    if (ir_at(f, m->statement)->op == IR_DEF && (is_own || !m->outside || m + 1 < s->r->members + s->r->count))
        keep_row(s, &inside, tensor, value, k, length);
    opjit_ir_block_add(f, &s->body, loop);
}

/* Whether the second of two members is an output that is the first one, which nothing else reads.  On GPUs a team's
 * threads store it side by side. */
static bool is_copied(const row_stage *s)
{
    const ir_func *f = s->f;
    const row_member *m = s->r->members;
    const ir_ref output = m[1].statement;
    if (!s->r->blocks || s->r->count != 2 || s->own != NULL || m[0].outside || ir_at(f, output)->op != IR_YIELD ||
        ir_at(f, output)->imm != 0)
        return false;
    const ir_ref load = ir_operand(f, output, 0);
    const ir_tensor *t = &f->tensors[tensor_of(f, output)];
    bool same = ir_at(f, load)->op == IR_LOAD && ir_at(f, load)->ref == tensor_of(f, m[0].statement) &&
                ir_at(f, load)->count == t->rank;
    for (uint32_t d = 0; same && d < t->rank; d++)
        same = ir_operand(f, load, d) == opjit_ir_coordinate(f, output, d) &&
               t->sizes[d] == f->tensors[ir_at(f, load)->ref].sizes[d];
    return same;
}

/* Scans along the row, or along another coordinate: each element is the accumulator's value before or after its
 * update.  copied: the output that it is, where it is stored instead; 0: there is none. */
static void add_scan(row_stage *s, const row_member *m, ir_ref copied)
{
    ir_func *f = s->f;
    const ir_node n = *ir_at(f, m->statement);
    const int64_t length = length_of(f, m->statement, s->r->rows);
    const bool exclusive = ir_at(f, ir_operand(f, m->statement, n.count - 1))->op == IR_VAR;
    const ir_ref acc = opjit_ir_acc(f, (ir_type)n.type, (ir_kind)n.kind, 0);
    block inside;
    const ir_ref loop = make_loop(s, opjit_ir_index(f, length), &inside);
    const ir_ref k = ir_at(f, loop)->ref;
    set_loops(s, k, length, 0, 0);
    const ir_ref value = value_of(s, m->statement, &inside, k, length);
    const ir_ref let = opjit_ir_let(f, opjit_ir_get(f, acc));
    if (exclusive)
        opjit_ir_block_add(f, &inside, let);
    opjit_ir_block_add(f, &inside, opjit_ir_upd(f, acc, value, 0));
    if (!exclusive)
        opjit_ir_block_add(f, &inside, let);
    const ir_ref own = opjit_ir_get(f, let);
    if (m->outside) {
        const ir_ref row = s->along >= 0 ? s->in.rows[s->along] : 0;
        if (s->along >= 0)
            s->in.rows[s->along] = k;
        store(s, &inside, n.ref, own, k);
        if (s->along >= 0)
            s->in.rows[s->along] = row;
    }
    if (copied != 0)
        store(s, &inside, tensor_of(f, copied), own, k);
    else if (s->along < 0)
        keep_row(s, &inside, n.ref, own, k, length);
    opjit_ir_block_add(f, &s->body, acc);
    opjit_ir_block_add(f, &s->body, loop);
}

static bool write_members(row_stage *s)
{
    ir_func *f = s->f;
    place_rows_of *r = s->r;
    const bool copied = opjit_ir_scanned(f, r->members[0].statement) >= 0 && is_copied(s);
    for (uint32_t i = 0; i < (copied ? 1 : r->count) && !s->in.refused; i++) {
        r->refused = i;
        const int64_t length = length_of(f, r->members[i].statement, r->rows);
        if (opjit_ir_scanned(f, r->members[i].statement) >= 0)
            add_scan(s, &r->members[i], copied ? r->members[1].statement : 0);
        else if (ir_at(f, r->members[i].statement)->kind != 0)
            add_reduction(s, &r->members[i]);
        else if (length == 1)
            add_element(s, &r->members[i]);
        else
            add_row(s, &r->members[i], length);
    }
    for (uint32_t i = 0; i < r->count; i++) {
        inline_source *source = &r->sources[tensor_of(f, r->members[i].statement)];
        source->row_value = 0;
        source->scratch = 0;
    }
    return !s->in.refused && !f->failed;
}

/* Members that only the stage reads have no memory after all. */
static void forget_memory(const place_rows_of *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        if (!r->members[i].outside)
            r->f->tensors[tensor_of(r->f, r->members[i].statement)].role = IR_VALUE;
}

bool opjit_ir_write_row(place_rows_of *r, const row_of_block *row, block *list)
{
    row_stage s = { .r = r, .f = r->f, .body = *list, .p = row->loops[0], .along = -1, .outer = 2, .own = row };
    s.in = (inliner){ .f = r->f, .sources = r->sources, .private_views = r->private_views, .number = row->number,
                      .row_count = r->rows };
    memcpy(s.in.loops, row->loops, sizeof row->loops);
    memcpy(s.in.extents, row->extents, sizeof row->extents);
    memcpy(s.in.rows, row->at, r->rows * sizeof *row->at);
    const bool written = write_members(&s);
    *list = s.body;
    if (written)
        forget_memory(r);
    return written;
}

bool opjit_ir_place_rows(place_rows_of *r, block *stages)
{
    ir_func *f = r->f;
    row_stage s = { .r = r, .f = f, .along = -1, .outer = 1 };
    const ir_tensor first = f->tensors[tensor_of(f, r->members[0].statement)];
    int64_t rows = 1, bytes = 1;
    if (r->rows == first.rank) /* a single root */
        s.along = opjit_ir_scanned(f, r->members[0].statement);
    for (uint32_t d = 0; d < r->rows; d++)
        rows *= size_of(&s, &first, d);
    for (uint32_t i = 0; i < r->count; i++)
        bytes += length_of(f, r->members[i].statement, r->rows) * (int64_t)opjit_ir_type_size(first.type);
    int64_t grain = (PIECE_BYTES + bytes - 1) / bytes;
    grain = grain > rows ? rows : grain;
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, rows), (uint64_t)grain);
    if (f->failed)
        return false;
    s.body.parent = stage;
    s.p = ir_at(f, stage)->ref;
    s.in = (inliner){ .f = f, .sources = r->sources, .private_views = r->private_views, .loops = { s.p },
                      .extents = { (uint64_t)rows } };
    set_rows(&s, &first);
    if (!write_members(&s))
        return false;
    forget_memory(r);
    opjit_ir_block_add(f, stages, stage);
    return true;
}
