/* SPDX-License-Identifier: Apache-2.0 */
/* inline.c - writes values with the definitions that they read in place.  A definition read at certain coordinates is
 * an instance; a node in an instance is written once.  The work is linear in what is written and does not recurse:
 * chains of a thousand definitions are usual.  Equal nodes are one node, so that different readers of one element share
 * it. */
#include "ir/passes/pass.h"

#include <string.h>

struct inline_instance {
    ir_ref def;
    uint32_t next;    /* the next one with the same hash, + 1 */
    uint32_t count;   /* of at */
    const ir_ref *at; /* in place of the variables; behind them the loops around it, through which memory is read */
};

/* --- one node a value ------------------------------------------------------------------------------------------- */

static bool equal_nodes(const ir_func *f, ir_ref a, ir_ref b)
{
    const ir_node *x = ir_at(f, a), *y = ir_at(f, b);
    return x->op == y->op && x->type == y->type && x->count == y->count && x->ref == y->ref && x->imm == y->imm &&
           memcmp(&f->operands[x->first], &f->operands[y->first], x->count * sizeof(ir_ref)) == 0;
}

/* r, or an existing node like it. */
static ir_ref unique(inliner *in, ir_ref r)
{
    const ir_func *f = in->f;
    if (ir_at(f, r)->op == IR_VAR)
        return r;
    const ir_node *n = ir_at(f, r);
    uint64_t key = opjit_ir_hash(n->op * 64u + n->type, n->imm);
    key = opjit_ir_hash(key, (uint64_t)n->ref << 8 | n->count);
    for (uint32_t i = 0; i < n->count; i++)
        key = opjit_ir_hash(key, ir_operand(f, r, i));
    const uint32_t known = opjit_ir_table_get(&in->known, key);
    if (known != 0 && equal_nodes(f, known, r))
        return known;
    if (known == 0)
        opjit_ir_table_set(in->f, &in->known, key, r);
    return r;
}

/* The same for new nodes, from `first` on, and their operands. */
static ir_ref unique_tree(inliner *in, ir_ref r, ir_ref first)
{
    ir_func *f = in->f;
    if (r < first)
        return r;
    for (uint32_t i = 0; i < ir_at(f, r)->count; i++) { /* as deep as one coordinate of a view */
        const ir_ref operand = unique_tree(in, ir_operand(f, r, i), first);
        f->operands[ir_at(f, r)->first + i] = operand;
    }
    return unique(in, r);
}

/* --- instances -------------------------------------------------------------------------------------------------- */

/* The number of the instance of def at these coordinates and in these loops, + 1. */
static uint32_t instance_of(inliner *in, ir_ref def, uint32_t rank, const ir_ref *coordinates)
{
    ir_func *f = in->f;
    const uint32_t count = rank + in->loop_count;
    ir_ref at[PASS_OPERANDS + sizeof in->loops / sizeof *in->loops];
    memcpy(at, coordinates, rank * sizeof *at);
    memcpy(at + rank, in->loops, in->loop_count * sizeof *at);
    uint64_t key = opjit_ir_hash(def, count);
    for (uint32_t i = 0; i < count; i++)
        key = opjit_ir_hash(key, at[i]);
    const uint32_t first = opjit_ir_table_get(&in->instances, key);
    for (uint32_t i = first; i != 0; i = in->instance[i - 1].next)
        if (in->instance[i - 1].def == def && in->instance[i - 1].count == count &&
            memcmp(in->instance[i - 1].at, at, count * sizeof *at) == 0)
            return i;
    if (in->instance_count == in->instance_capacity) {
        const uint32_t capacity = in->instance_capacity == 0 ? 16 : 2 * in->instance_capacity;
        struct inline_instance *more = ARENA_ARRAY(&f->scratch, struct inline_instance, capacity);
        if (more != NULL && in->instance_count > 0)
            memcpy(more, in->instance, in->instance_count * sizeof *more);
        f->failed = f->failed || more == NULL;
        in->instance = more;
        in->instance_capacity = capacity;
    }
    ir_ref *copy = f->failed ? NULL : opjit_rt_arena_copy(&f->scratch, at, count, sizeof *at);
    if (copy == NULL) {
        f->failed = true;
        return 0;
    }
    in->instance[in->instance_count++] =
        (struct inline_instance){ .def = def, .next = first, .count = count, .at = copy };
    opjit_ir_table_set(f, &in->instances, key, in->instance_count);
    return in->instance_count;
}

/* --- the walk --------------------------------------------------------------------------------------------------- */

static void push(inliner *in, uint32_t instance, ir_ref node)
{
    if (in->depth == in->capacity) {
        const uint32_t capacity = in->capacity == 0 ? 256 : 2 * in->capacity;
        uint64_t *more = ARENA_ARRAY(&in->f->scratch, uint64_t, capacity);
        if (more == NULL) {
            in->f->failed = true;
            return;
        }
        if (in->depth > 0)
            memcpy(more, in->stack, in->depth * sizeof *more);
        in->stack = more;
        in->capacity = capacity;
    }
    in->stack[in->depth++] = (uint64_t)instance << 32 | node;
}

enum { PENDING = 0x40000000 }; /* marks, in a memo's key, the instance whose value a load waits for */

static ir_ref written(const inliner *in, uint32_t instance, ir_ref node)
{
    return opjit_ir_table_get(&in->memo, (uint64_t)instance << 32 | node);
}

/* The instance that the load reads, + 1; 0: no memory. */
static uint32_t instance_read(inliner *in, ir_ref load, const ir_ref *coordinates)
{
    ir_func *f = in->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const ir_ref first = f->node_count;
    ir_ref at[PASS_OPERANDS];
    bool divided;
    if (tensor == root)
        memcpy(at, coordinates, f->tensors[root].rank * sizeof *at);
    else if (!opjit_ir_view_coordinates(f, tensor, coordinates, at, &divided))
        f->failed = true; /* place has checked this */
    for (uint32_t d = 0; d < f->tensors[root].rank && !f->failed; d++)
        at[d] = f->tensors[root].sizes[d] == 1 ? unique(in, opjit_ir_index(f, 0)) : unique_tree(in, at[d], first);
    return f->failed ? 0 : instance_of(in, in->sources[root].def, f->tensors[root].rank, at);
}

/* The element that a row of the same stage has at these coordinates; 0: the tensor has no row there. */
static ir_ref load_row(inliner *in, uint32_t tensor, const ir_ref *at)
{
    ir_func *f = in->f;
    const inline_source *s = &in->sources[opjit_ir_root(f, tensor)];
    if (s->row_value == 0 && s->scratch == 0)
        return 0;
    in->refused = in->refused || f->tensors[tensor].role == IR_VIEW;
    for (uint32_t d = 0; d < in->row_count && !in->refused; d++)
        in->refused = f->tensors[tensor].sizes[d] > 1 && at[d] != in->rows[d];
    if (in->refused || s->row_value != 0)
        return in->refused ? opjit_ir_const(f, f->tensors[tensor].type, 0) : opjit_ir_get(f, s->row_value);
    const ir_ref element = at[f->tensors[tensor].rank - 1];
    const bool single = f->tensors[s->scratch].rank == 1;
    if (in->by_lane)
        return opjit_ir_load(f, s->scratch, (const ir_ref[]){ single ? in->number : element, in->number });
    return opjit_ir_load(f, s->scratch, (const ir_ref[]){ single ? element : in->number, element });
}

/* A load whose coordinates are written: from memory, or the value of a definition, which may have to be written first
 * (0). */
static ir_ref write_load(inliner *in, uint32_t reader, ir_ref load, const ir_ref *coordinates)
{
    ir_func *f = in->f;
    const uint32_t tensor = ir_at(f, load)->ref, root = opjit_ir_root(f, tensor);
    const ir_ref first = f->node_count;
    if (in->sources[root].def == 0) {
        ir_ref at[PASS_OPERANDS];
        memcpy(at, coordinates, f->tensors[tensor].rank * sizeof *at);
        const ir_ref row = load_row(in, tensor, at);
        if (row != 0)
            return unique(in, row);
        return unique_tree(in, opjit_ir_load_memory(in, tensor, at), first);
    }
    const uint64_t key = (uint64_t)(reader | PENDING) << 32 | load;
    uint32_t instance = opjit_ir_table_get(&in->memo, key);
    if (instance == 0) {
        instance = instance_read(in, load, coordinates);
        ir_took(f, IR_STEP_INLINE);
        opjit_ir_table_set(f, &in->memo, key, instance);
    }
    if (instance == 0)
        return 0;
    const ir_ref value = ir_operand(f, in->sources[root].def, 0), known = written(in, instance, value);
    if (known == 0)
        push(in, instance, value);
    return known;
}

/* The node in the instance; 0: something had to be pushed on the stack first. */
static ir_ref write_node(inliner *in, uint32_t instance, ir_ref r)
{
    ir_func *f = in->f;
    const ir_node n = *ir_at(f, r);
    if (n.op == IR_VAR && n.ref == in->instance[instance - 1].def)
        return in->instance[instance - 1].at[n.imm];
    if (n.count == 0)
        return unique(in, r);
    ir_ref operands[PASS_OPERANDS];
    const uint32_t before = in->depth;
    for (uint32_t i = n.count; i-- > 0;) {
        operands[i] = written(in, instance, ir_operand(f, r, i));
        if (operands[i] == 0)
            push(in, instance, ir_operand(f, r, i));
    }
    if (in->depth > before || f->failed)
        return 0;
    if (n.op == IR_LOAD)
        return write_load(in, instance, r, operands);
    for (uint32_t i = 0; i < n.count; i++)
        operands[i] = opjit_ir_single_value(f, operands[i]);
    return unique(in, opjit_ir_make(f, (ir_op)n.op, (ir_type)n.type, n.count, operands));
}

ir_ref opjit_ir_inline(inliner *in, ir_ref statement, uint32_t count, const ir_ref *at)
{
    return opjit_ir_inline_part(in, statement, ir_operand(in->f, statement, 0), count, at);
}

ir_ref opjit_ir_inline_part(inliner *in, ir_ref statement, ir_ref value, uint32_t count, const ir_ref *at)
{
    ir_func *f = in->f;
    const uint32_t instance = instance_of(in, statement, count, at);
    if (instance == 0)
        return 0;
    in->depth = 0;
    push(in, instance, value);
    while (in->depth > 0 && !f->failed) {
        const uint64_t top = in->stack[in->depth - 1];
        const uint32_t depth = in->depth;
        ir_ref made = opjit_ir_table_get(&in->memo, top);
        if (made == 0) {
            made = write_node(in, (uint32_t)(top >> 32), (ir_ref)top);
            opjit_ir_table_set(f, &in->memo, top, made);
        }
        if (made != 0 && in->depth == depth)
            in->depth--;
    }
    return written(in, instance, value);
}
