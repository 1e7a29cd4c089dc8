/* SPDX-License-Identifier: Apache-2.0 */
/* cut_reductions.c - makes many short reductions of few long ones: the blocks of 4096 that the order prescribes anyway
 * become a definition of their own, whose elements can be computed in parallel, and the reduction becomes a fold of
 * these, one after the other.  A step of place.  The bits stay the same: a block starts at the identity, as its
 * accumulator did, and the first one that is folded is unchanged, because no block of a sum is -0.  Not for arg kinds,
 * which would need the index of each block's value. */
#include "ir/passes/pass.h"

#include <string.h>

enum {
    MOST_ROWS = 16, /* with more rows, the rows are enough parallel work */
    LEAST_LENGTH = 16 * IR_REDUCE_BLOCK,
    LEAST_BYTES = 256 * 1024, /* shorter rows stay in the second cache, where later stages want them */
};

typedef struct cutter {
    ir_func *f;
    ir_ref def;
    ir_node node;
    uint32_t free; /* a dimension of one element, which becomes that of the blocks */
    uint64_t length;
    block list;  /* the function's definitions, rebuilt */
    block later; /* folds of blocks in it: they wait for blocks of other reductions, which may be made beside these */
    uint8_t *waits; /* by tensor, of those that there were at first: its definition does */
    uint32_t count;
} cutter;

static bool is_long(cutter *c)
{
    const ir_func *f = c->f;
    const ir_node *n = &c->node;
    if (n->op != IR_DEF || n->kind == 0 || ir_kind_is_arg((ir_kind)n->kind) || n->kind == IR_DOT ||
        n->imm == 0)
        return false;
    const ir_tensor *t = &f->tensors[n->ref];
    uint64_t rows = 1;
    if (ir_is_of_recurrence(t))
        return false;
    c->length = (uint64_t)ir_index_value(f, ir_operand(f, c->def, n->count - 1));
    c->free = t->rank;
    for (uint32_t d = t->rank; d-- > 0;) {
        c->free = t->sizes[d] == 1 ? d : c->free;
        rows = rows <= MOST_ROWS ? rows * t->sizes[d] : rows;
    }
    return rows <= MOST_ROWS && c->free < t->rank && c->length >= LEAST_LENGTH &&
           c->length > LEAST_BYTES / opjit_ir_type_size(t->type);
}

/* Declares a tensor like the definition's, with `blocks` elements in the free dimension. */
static uint32_t declare(cutter *c, uint64_t blocks)
{
    const ir_tensor *like = &c->f->tensors[c->node.ref];
    ir_tensor t = { .role = IR_VALUE, .type = like->type, .rank = like->rank, .align = like->align };
    t.bytes = opjit_ir_type_size(t.type);
    for (uint32_t d = 0; d < t.rank; d++) {
        t.sizes[d] = d == c->free ? blocks : like->sizes[d];
        t.bytes *= t.sizes[d];
    }
    opjit_ir_dense_strides(&t);
    return opjit_ir_tensor(c->f, &t);
}

/* Adds a reduction of `length` values of the definition, from number `first` on, for each of `blocks` blocks, to the
 * list.  Returns its tensor. */
static uint32_t add_part(cutter *c, block *list, uint64_t blocks, uint64_t first, uint64_t length)
{
    ir_func *f = c->f;
    const uint32_t tensor = declare(c, blocks);
    const ir_ref part = opjit_ir_reduce(f, tensor, (ir_kind)c->node.kind, (uint32_t)c->node.imm, length);
    ir_map map = { 0 };
    for (uint32_t d = 0; d < f->tensors[tensor].rank; d++)
        ir_map_set(f, &map, opjit_ir_coordinate(f, c->def, d),
                         d == c->free ? opjit_ir_index(f, 0) : opjit_ir_coordinate(f, part, d));
    const ir_ref own = opjit_ir_reduced(f, part), size = opjit_ir_index(f, (int64_t)length);
    const ir_ref before = blocks == 1 ? opjit_ir_index(f, (int64_t)first)
                                      : ir_make2(f, IR_IMUL, IR_INDEX, opjit_ir_coordinate(f, part, c->free), size);
    ir_map_set(f, &map, opjit_ir_reduced(f, c->def), ir_make2(f, IR_IADD, IR_INDEX, before, own));
    opjit_ir_set_value(f, part, opjit_ir_remake(f, &map, ir_operand(f, c->def, 0)));
    opjit_ir_block_add(f, list, part);
    return tensor;
}

/* The element of the tensor at the coordinates of `of`, except in the free dimension. */
static ir_ref load(cutter *c, uint32_t tensor, ir_ref of, ir_ref at_free)
{
    ir_ref at[8] = { 0 };
    for (uint32_t d = 0; d < c->f->tensors[tensor].rank; d++)
        at[d] = d == c->free ? at_free : opjit_ir_coordinate(c->f, of, d);
    return opjit_ir_load(c->f, tensor, at);
}

/* Replaces the definition by its blocks, a fold of them, and what remains after the last whole block. */
static void cut(cutter *c)
{
    ir_func *f = c->f;
    const uint64_t count = c->length / IR_REDUCE_BLOCK, rest = c->length % IR_REDUCE_BLOCK;
    const uint32_t blocks = add_part(c, &c->list, count, 0, IR_REDUCE_BLOCK);
    const uint32_t last = rest > 0 ? add_part(c, &c->later, 1, count * IR_REDUCE_BLOCK, rest) : 0;
    const uint32_t whole = rest > 0 ? declare(c, 1) : c->node.ref;
    const ir_ref fold = opjit_ir_reduce(f, whole, (ir_kind)c->node.kind, 0, count);
    ir_took(f, IR_STEP_CUT_REDUCTIONS);
    opjit_ir_set_value(f, fold, load(c, blocks, fold, opjit_ir_reduced(f, fold)));
    opjit_ir_block_add(f, &c->later, fold);
    c->waits[c->node.ref] = 1;
    const ir_ref all = rest > 0 ? opjit_ir_def(f, c->node.ref) : 0, zero = opjit_ir_index(f, 0);
    if (all == 0)
        return;
    const ir_ref before = load(c, whole, all, zero), behind = load(c, last, all, zero);
    opjit_ir_set_value(f, all, ir_expr2(f, ir_kind_op((ir_kind)c->node.kind), (ir_type)c->node.type, before, behind));
    opjit_ir_block_add(f, &c->later, all);
}

/* Whether the statement reads what a definition that waits makes. */
static bool reads_later(const cutter *c, ir_ref statement)
{
    const ir_reach seen = opjit_ir_reach_one(c->f, statement);
    bool reads = false;
    for (uint32_t k = 0; k < seen.count && !reads; k++) {
        const ir_node *n = ir_at(c->f, seen.nodes[k]);
        reads = n->op == IR_LOAD && opjit_ir_root(c->f, n->ref) < c->count &&
                c->waits[opjit_ir_root(c->f, n->ref)] != 0;
    }
    return reads;
}

/* What waits is added to the list. */
static void add_later(cutter *c)
{
    ir_ref next;
    for (ir_ref s = c->later.first; s != 0; s = next) {
        next = ir_at(c->f, s)->next;
        opjit_ir_block_add(c->f, &c->list, s);
    }
    c->later = (block){ 0 };
    memset(c->waits, 0, c->count);
}

void opjit_ir_cut_reductions(ir_func *f)
{
    const rt_arena_mark mark = rt_arena_position(&f->scratch);
    cutter c = { .f = f, .count = f->tensor_count };
    ir_ref next;
    c.waits = ARENA_ARRAY(&f->scratch, uint8_t, c.count);
    f->failed = f->failed || c.waits == NULL;
    for (ir_ref s = f->body; s != 0 && !f->failed; s = next) {
        next = ir_at(f, s)->next;
        c.def = s;
        c.node = *ir_at(f, s);
        const bool is_cut = is_long(&c);
        if (c.later.first != 0 && (!is_cut || reads_later(&c, s)))
            add_later(&c);
        if (is_cut)
            cut(&c);
        else
            opjit_ir_block_add(f, &c.list, s);
    }
    if (f->failed)
        return;
    add_later(&c);
    f->body = c.list.first;
    opjit_rt_arena_rewind(&f->scratch, mark);
}
