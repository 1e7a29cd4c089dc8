/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - makes lets for values that are costly and read again, and for expressions that are nested too deep.  To the
 * interpreter, the printer and code generation's survey, statements are trees: a node that is read twice counts twice,
 * and so on upwards.  A let is evaluated whether or not a select needs it, so every load in it must be in bounds
 * without any guard. */
#include "ir/passes/pass.h"

enum { DEAR = 10, DEEP = 48 };

typedef struct shape {
    uint32_t uses, weight, depth;
    bool safe;
    ir_ref made; /* what replaces it */
} shape;

typedef struct sharer {
    ir_func *f;
    block *list;
    ir_table number; /* node to its place in order, + 1 */
    ir_ref *order;   /* operands first */
    shape *shapes;
    uint32_t count;
} sharer;

static shape *shape_of(const sharer *s, ir_ref r)
{
    return &s->shapes[opjit_ir_table_get(&s->number, r) - 1];
}

/* Lists the nodes below r, operands first, and how often each is read.  The stack holds a node until its operands are
 * listed; it has room for the operands of all nodes. */
static bool list_nodes(sharer *s, ir_ref value, uint32_t room)
{
    ir_func *f = s->f;
    ir_ref *stack = ARENA_ARRAY(&f->scratch, ir_ref, room);
    uint32_t depth = 0;
    if (stack == NULL)
        return false;
    stack[depth++] = value;
    while (depth > 0 && !f->failed) {
        const ir_ref r = stack[depth - 1];
        const ir_node *n = ir_at(f, r);
        const uint32_t before = depth;
        for (uint32_t i = n->count; opjit_ir_table_get(&s->number, r) == 0 && i-- > 0;)
            if (opjit_ir_table_get(&s->number, ir_operand(f, r, i)) == 0)
                stack[depth++] = ir_operand(f, r, i);
        if (depth > before)
            continue;
        depth--;
        if (opjit_ir_table_get(&s->number, r) != 0)
            continue;
        for (uint32_t i = 0; i < n->count; i++)
            shape_of(s, ir_operand(f, r, i))->uses++;
        s->order[s->count] = r;
        s->shapes[s->count++] = (shape){ 0 };
        opjit_ir_table_set(f, &s->number, r, s->count);
    }
    return !f->failed;
}

/* An upper bound of the nodes below value, and of their operands. */
static uint32_t count_nodes(ir_func *f, ir_ref value, uint32_t *out_operands)
{
    ir_table seen = { 0 };
    uint32_t count = 0, depth = 0, capacity = 64;
    ir_ref *stack = ARENA_ARRAY(&f->scratch, ir_ref, capacity);
    *out_operands = 1;
    if (stack != NULL)
        stack[depth++] = value;
    while (depth > 0 && !f->failed) {
        const ir_ref r = stack[--depth];
        if (opjit_ir_table_get(&seen, r) != 0)
            continue;
        opjit_ir_table_set(f, &seen, r, 1);
        count++;
        *out_operands += ir_at(f, r)->count;
        if (depth + ir_at(f, r)->count > capacity) {
            ir_ref *more = ARENA_ARRAY(&f->scratch, ir_ref, 2 * capacity + PASS_OPERANDS);
            if (more == NULL) {
                f->failed = true;
                return 0;
            }
            for (uint32_t i = 0; i < depth; i++)
                more[i] = stack[i];
            stack = more;
            capacity = 2 * capacity + PASS_OPERANDS;
        }
        for (uint32_t i = 0; i < ir_at(f, r)->count; i++)
            stack[depth++] = ir_operand(f, r, i);
    }
    f->failed = f->failed || stack == NULL;
    return count;
}

/* The node with its operands replaced. */
static ir_ref rebuilt(sharer *s, ir_ref r)
{
    ir_func *f = s->f;
    const ir_node n = *ir_at(f, r);
    ir_ref operands[PASS_OPERANDS];
    bool same = true;
    for (uint32_t i = 0; i < n.count; i++) {
        operands[i] = shape_of(s, ir_operand(f, r, i))->made;
        same = same && operands[i] == ir_operand(f, r, i);
    }
    if (same)
        return r;
    return n.op == IR_LOAD ? opjit_ir_load(f, n.ref, operands)
                           : opjit_ir_expr(f, (ir_op)n.op, (ir_type)n.type, n.count, operands);
}

static void share_node(sharer *s, ir_ref r, bool last)
{
    ir_func *f = s->f;
    shape *x = shape_of(s, r);
    const ir_node *n = ir_at(f, r);
    x->weight = 1;
    x->depth = 1;
    x->safe = n->op != IR_LOAD || opjit_ir_in_bounds(f, r);
    for (uint32_t i = 0; i < n->count; i++) {
        const shape *o = shape_of(s, ir_operand(f, r, i));
        x->weight += o->weight < 100000 ? o->weight : 100000;
        x->depth = o->depth + 1 > x->depth ? o->depth + 1 : x->depth;
        x->safe = x->safe && o->safe;
    }
    x->made = rebuilt(s, r);
    if (last || !x->safe || !ir_is_element((ir_type)n->type) || n->op == IR_LOAD ||
        !((x->uses > 1 && x->weight >= DEAR) || x->depth >= DEEP))
        return;
    const ir_ref let = opjit_ir_let(f, x->made);
    opjit_ir_block_add(f, s->list, let);
    ir_took(f, IR_STEP_SHARE);
    x->made = opjit_ir_get(f, let);
    x->weight = x->depth = 1;
}

ir_ref opjit_ir_share(ir_func *f, block *list, ir_ref value)
{
    sharer s = { .f = f, .list = list };
    uint32_t operands;
    const uint32_t count = count_nodes(f, value, &operands);
    if (count < DEAR)
        return value;
    s.order = ARENA_ARRAY(&f->scratch, ir_ref, count);
    s.shapes = ARENA_ARRAY(&f->scratch, shape, count);
    if (s.order == NULL || s.shapes == NULL || !list_nodes(&s, value, operands + 1)) {
        f->failed = true;
        return 0;
    }
    for (uint32_t i = 0; i < s.count; i++)
        share_node(&s, s.order[i], i + 1 == s.count);
    return shape_of(&s, value)->made;
}
