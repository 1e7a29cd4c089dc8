/* SPDX-License-Identifier: Apache-2.0 */
/* expand.c - replaces math ops by the sequences of simpler ops that eval/math*.c define.  Needs: scheduled loop form,
 * because schedule looks at loops around one store.  Leaves: no math op.  What a sequence reads more than once is in
 * lets before the statement, so that the function's text stays a tree.
 *
 * A select evaluates one arm, but a let is always evaluated: loads that feed math in an arm, and that only the select
 * keeps in bounds, get clamped coordinates, which change nothing where the arm is chosen. */
#include "ir/eval/math.h"
#include "ir/passes/pass.h"

typedef struct expander {
    ir_func *f;
    opjit_error *error;
    math_step *steps;
    uint32_t *uses; /* by step */
    block *out;     /* where lets go */
    bool scales;    /* the target does */
} expander;

/* Facts about a node that a statement's operand reads. */
typedef struct tree_node {
    bool always, feeds; /* evaluated whatever selects choose; operand of math, at any depth */
    ir_ref made;        /* what replaces it; 0: itself */
} tree_node;
typedef struct operand_tree {
    ir_reach seen;
    tree_node *nodes; /* in the order of seen */
} operand_tree;

static tree_node *in_tree(const operand_tree *t, ir_ref r)
{
    return &t->nodes[opjit_ir_reach_place(&t->seen, r)];
}

static bool is_math(const ir_func *f, ir_ref r)
{
    return (opjit_ir_op_infos[ir_at(f, r)->op].flags & IR_FLAG_M) != 0;
}

static bool is_leaf(const ir_func *f, ir_ref r)
{
    const ir_op op = (ir_op)ir_at(f, r)->op;
    return op == IR_CONST || op == IR_VAR || op == IR_PARAM || op == IR_GET;
}

/* --- one op ----------------------------------------------------------------------------------------------------- */

static ir_ref named(expander *e, ir_ref value)
{
    if (is_leaf(e->f, value))
        return value;
    const ir_ref let = opjit_ir_let(e->f, value);
    opjit_ir_block_add(e->f, e->out, let);
    return opjit_ir_get(e->f, let);
}

static val operand(expander *e, math *m, ir_ref x, uint32_t number)
{
    const ir_node *n = ir_at(e->f, x);
    return n->op == IR_CONST ? opjit_ir_math_const(m, (ir_type)n->type, n->imm)
                             : opjit_ir_math_operand(m, (ir_type)n->type, 0, number);
}

static ir_ref emit_step(expander *e, const ir_ref *nodes, uint32_t i, const ir_ref *args)
{
    const math_step *step = &e->steps[i];
    ir_ref operands[3] = { 0 };
    if (step->op == IR_OP_NONE)
        return args[step->imm];
    if (step->op == IR_CONST)
        return opjit_ir_const(e->f, (ir_type)step->type, step->imm);
    for (uint32_t k = 0; k < step->count; k++)
        operands[k] = nodes[step->args[k]];
    return opjit_ir_expr(e->f, (ir_op)step->op, (ir_type)step->type, step->count, operands);
}

/* The sequence for op of args; steps with several readers are named. */
static opjit_status expand(expander *e, ir_op op, const ir_ref *args, ir_ref *out)
{
    math m = { .steps = e->steps,
               .capacity = MATH_STEPS,
               .below = opjit_ir_math_is_below(e->f, op, args[0]),
               .scales = e->scales };
    const val x = operand(e, &m, args[0], 0), y = args[1] != 0 ? operand(e, &m, args[1], 1) : x;
    const val result = opjit_ir_math(&m, op, x, y);
    ir_ref *nodes = ARENA_ARRAY(&e->f->scratch, ir_ref, m.count);
    if (m.failed)
        return opjit_rt_error_set(e->error, OPJIT_INTERNAL, "%s has more than %u steps", opjit_ir_op_infos[op].name,
                                  MATH_STEPS);
    if (nodes == NULL)
        return opjit_rt_no_memory(e->error);
    memset(e->uses, 0, m.count * sizeof(*e->uses));
    e->uses[result.bits] = 1;
    for (uint32_t i = m.count; i-- > 0;)
        for (uint32_t k = 0; k < e->steps[i].count && e->uses[i] > 0; k++)
            e->uses[e->steps[i].args[k]]++;
    for (uint32_t i = 0; i < m.count; i++) {
        if (e->uses[i] == 0)
            continue;
        nodes[i] = emit_step(e, nodes, i, args);
        if (e->uses[i] > 1)
            nodes[i] = named(e, nodes[i]);
    }
    *out = nodes[result.bits];
    return e->f->failed ? opjit_rt_no_memory(e->error) : OPJIT_OK;
}

/* --- one operand of a statement --------------------------------------------------------------------------------- */

static bool look_at(ir_func *f, ir_ref root, operand_tree *t)
{
    t->seen = opjit_ir_reach_one(f, root);
    t->nodes = ARENA_ARRAY(&f->scratch, tree_node, t->seen.count);
    if (t->seen.nodes == NULL || t->nodes == NULL) {
        f->failed = true;
        return false;
    }
    bool found = false;
    in_tree(t, root)->always = true;
    for (uint32_t k = t->seen.count; k-- > 0;) { /* operands are older than their users */
        const ir_ref r = t->seen.nodes[k];
        const ir_node *n = ir_at(f, r);
        const bool math_op = is_math(f, r);
        found = found || math_op;
        for (uint32_t i = 0; i < n->count; i++) {
            tree_node *x = in_tree(t, ir_operand(f, r, i));
            x->always = x->always || (t->nodes[k].always && (n->op != IR_SELECT || i == 0));
            x->feeds = x->feeds || t->nodes[k].feeds || math_op;
        }
    }
    return found;
}

static ir_ref inside(ir_func *f, const ir_tensor *t, uint32_t d, ir_ref coordinate)
{
    const ir_ref zero = opjit_ir_index(f, 0),
                 size = t->size_forms == NULL ? opjit_ir_index(f, (int64_t)t->sizes[d])
                                              : opjit_ir_size(f, &t->size_forms[d]),
                 last = ir_make2(f, IR_ISUB, IR_INDEX, size, opjit_ir_index(f, 1));
    if (opjit_ir_proves_le(f, zero, coordinate, 0) && opjit_ir_proves_le(f, coordinate, last, 0))
        return coordinate;
    return ir_make3(f, IR_CLAMP, IR_INDEX, coordinate, zero, last);
}

static opjit_status replace(expander *e, operand_tree *t, uint32_t place, bool is_root)
{
    ir_func *f = e->f;
    tree_node *own = &t->nodes[place];
    const ir_ref r = t->seen.nodes[place];
    const ir_node n = *ir_at(f, r);
    ir_ref operands[PASS_OPERANDS] = { 0 };
    bool same = true;
    for (uint32_t i = 0; i < n.count; i++) { /* loads have at most 8 coordinates, ops fewer operands */
        const ir_ref old = ir_operand(f, r, i);
        operands[i] = in_tree(t, old)->made != 0 ? in_tree(t, old)->made : old;
        if (n.op == IR_LOAD && own->feeds && !own->always)
            operands[i] = inside(f, &f->tensors[n.ref], i, operands[i]);
        same = same && operands[i] == old;
    }
    if (is_math(f, r)) {
        TRY(expand(e, (ir_op)n.op, operands, &own->made));
        own->made = is_root ? own->made : named(e, own->made);
    } else if (!same) {
        own->made = n.op == IR_LOAD ? opjit_ir_load(f, n.ref, operands)
                                    : opjit_ir_expr(f, (ir_op)n.op, (ir_type)n.type, n.count, operands);
    }
    return f->failed ? opjit_rt_no_memory(e->error) : OPJIT_OK;
}

static opjit_status expand_statement(expander *e, ir_ref s)
{
    ir_func *f = e->f;
    for (uint32_t i = 0; i < ir_at(f, s)->count; i++) {
        const ir_ref root = ir_operand(f, s, i);
        const rt_arena_mark mark = rt_arena_position(&f->scratch);
        operand_tree t;
        const bool found = look_at(f, root, &t);
        for (uint32_t k = 0; found && k < t.seen.count; k++)
            if (ir_at(f, t.seen.nodes[k])->count > 0)
                TRY(replace(e, &t, k, t.seen.nodes[k] == root));
        const ir_ref made = found ? in_tree(&t, root)->made : 0;
        f->operands[ir_at(f, s)->first + i] = made != 0 ? made : root;
        opjit_rt_arena_rewind(&f->scratch, mark);
    }
    return f->failed ? opjit_rt_no_memory(e->error) : OPJIT_OK;
}

static opjit_status expand_block(expander *e, ir_ref parent)
{
    ir_func *f = e->f;
    block out = { .parent = parent };
    ir_ref next, s = ir_at(f, parent)->body;
    f->nodes[parent].body = 0;
    for (; s != 0; s = next) {
        next = ir_at(f, s)->next;
        e->out = &out;
        TRY(expand_statement(e, s));
        if (ir_at(f, s)->op == IR_FOR)
            TRY(expand_block(e, s)); /* as deep as loops nest: rule V16 */
        opjit_ir_block_add(f, &out, s);
    }
    return f->failed ? opjit_rt_no_memory(e->error) : OPJIT_OK;
}

opjit_status opjit_ir_expand_math(ir_func *f, const rt_target *target, opjit_error *error)
{
    bool found = false;
    for (ir_ref r = 1; r < f->node_count && !found; r++)
        found = is_math(f, r);
    if (!found)
        return OPJIT_OK;
    expander e = { .f = f,
                   .error = error,
                   .scales = target && opjit_rt_target_scales(target),
                   .steps = ARENA_ARRAY(&f->scratch, math_step, MATH_STEPS),
                   .uses = ARENA_ARRAY(&f->scratch, uint32_t, MATH_STEPS) };
    if (e.steps == NULL || e.uses == NULL)
        return opjit_rt_no_memory(error);
    for (ir_ref s = f->body; s != 0; s = ir_at(f, s)->next)
        if (ir_at(f, s)->op == IR_STAGE)
            TRY(expand_block(&e, s));
    return OPJIT_OK;
}
