/* SPDX-License-Identifier: Apache-2.0 */
/* scatter.c - the rules of a SCATTER: its operands and their types, and which of its variables each of them may read.
 * Places need no proof: an update outside changes nothing. */
#include "ir/verify/verifier.h"

#define FAIL(rule, node, ...) return opjit_ir_verify_fail(v, rule, node, __VA_ARGS__)

static opjit_status check_operands(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, s);
    if (node->ref == 0 || node->ref >= f->tensor_count || f->tensors[node->ref].role != IR_VALUE)
        FAIL(1, s, "there is no such tensor, or it has another role");
    const ir_kind kind = (ir_kind)node->kind;
    if (kind >= IR_KIND_COUNT || (kind != IR_KIND_NONE && (ir_kind_op(kind) == IR_OP_NONE || kind == IR_DOT)))
        FAIL(1, s, "its kind has no op of an element and a value");
    const uint32_t rank = f->tensors[node->ref].rank;
    if (node->count != 4 + 2 * rank)
        FAIL(3, s, "its variables or places are not of rank %u", rank);
    for (uint32_t d = 0; d <= rank; d++) {
        const ir_ref var = ir_operand(f, s, 1 + d);
        if (var == 0 || var >= v->node_count || ir_at(f, var)->op != IR_VAR || ir_at(f, var)->ref != s ||
            ir_at(f, var)->imm != d)
            FAIL(1, s, "variable %u is missing", d);
    }
    const ir_ref count = ir_operand(f, s, node->count - 1);
    if (count == 0 || count >= v->node_count || !ir_is_index_const(f, count) || ir_index_value(f, count) < 1)
        FAIL(1, s, "it has no constant number of updates");
    return OPJIT_OK;
}

static void set_scope(verifier *v, ir_ref s, uint32_t variable, bool open)
{
    v->in_scope[ir_operand(v->f, s, 1 + variable)] = open;
}

/* Whether what the expression loads of the scatter itself is of the elements that the update's own coordinates tell
 * apart; through a view it may not load them. */
static bool reads_own_elements(verifier *v, ir_ref s, ir_ref expr)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    if (v->walked[expr] == v->walk)
        return true;
    v->walked[expr] = v->walk;
    if (node->op == IR_LOAD && opjit_ir_root(f, node->ref) == ir_at(f, s)->ref) {
        if (node->ref != ir_at(f, s)->ref)
            return false;
        for (uint32_t d = 0; d < node->count; d++)
            if (opjit_ir_is_own(f, s, d) && ir_operand(f, expr, d) != opjit_ir_coordinate(f, s, d))
                return false;
    }
    for (uint32_t i = 0; i < node->count; i++)
        if (!reads_own_elements(v, s, ir_operand(f, expr, i)))
            return false;
    return true;
}

/* A place or the value of an update. */
static opjit_status check_update(verifier *v, ir_ref s, ir_ref expr)
{
    TRY(opjit_ir_verify_expr(v, s, expr));
    v->walk++;
    if (!reads_own_elements(v, s, expr))
        FAIL(2, s, "an update reads what the updates of other coordinates change");
    return OPJIT_OK;
}

/* The initial value is one of all coordinates; an update's place and value know only those that are places, and the
 * scatter as it is before the update. */
static opjit_status check_parts(verifier *v, ir_ref s, uint32_t rank)
{
    const ir_func *f = v->f;
    for (uint32_t d = 0; d < rank; d++)
        set_scope(v, s, d, true);
    TRY(opjit_ir_verify_expr(v, s, opjit_ir_initial(f, s)));
    for (uint32_t d = 0; d < rank; d++)
        set_scope(v, s, d, opjit_ir_is_own(f, s, d));
    set_scope(v, s, rank, true);
    v->defined[ir_at(f, s)->ref] = 1;
    TRY(check_update(v, s, ir_operand(f, s, 0)));
    for (uint32_t d = 0; d < rank; d++) {
        TRY(check_update(v, s, opjit_ir_place(f, s, d)));
        if (ir_at(f, opjit_ir_place(f, s, d))->type != IR_INDEX)
            FAIL(1, s, "place %u is not an index", d);
    }
    for (uint32_t d = 0; d <= rank; d++)
        set_scope(v, s, d, false);
    return OPJIT_OK;
}

opjit_status opjit_ir_verify_scatter(verifier *v, ir_ref s)
{
    const ir_func *f = v->f;
    TRY(check_operands(v, s));
    const ir_tensor *t = &f->tensors[ir_at(f, s)->ref];
    TRY(check_parts(v, s, t->rank));
    for (uint32_t i = 0; i < 2; i++) {
        const ir_type type = (ir_type)ir_at(f, i == 0 ? ir_operand(f, s, 0) : opjit_ir_initial(f, s))->type;
        if (type != t->type)
            FAIL(1, s, "its %s is %s, the tensor %s", i == 0 ? "value" : "initial value", opjit_ir_type_name(type),
                 opjit_ir_type_name(t->type));
    }
    return opjit_ir_verify_proof(v, opjit_ir_verify_bounds(v, s));
}
