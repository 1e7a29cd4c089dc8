/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c - the rules of single expressions: V1, and what an expression may read at its place (V2, V4, V5, V10, V11).
 * Which statement it belongs to is verify.c's business. */
#include "ir/verify/verifier.h"

#include <string.h>

enum { MOST_DEPTH = 4000 };

#define FAIL(rule, node, ...) return opjit_ir_verify_fail(v, rule, node, __VA_ARGS__)

/* --- V1: one expression node -------------------------------------------------------------------------------------- */

static bool letter_allows(char letter, ir_type type)
{
    switch (letter) {
    case 'i':
    case 'k': return type == IR_INDEX;
    case 'b': return type == IR_BOOL;
    case 'f': return ir_is_float(type);
    case 'n': return ir_is_integer(type);
    case 'e': return ir_is_element(type);
    case 'l': return ir_is_integer(type) || type == IR_BOOL;
    case 'c': return verify_is_number(type);
    default: return type != IR_NONE;
    }
}

static opjit_status check_operands(verifier *v, ir_ref expr, const char *letters)
{
    const ir_func *f = v->f;
    const uint32_t count = (uint32_t)strlen(letters);
    if (ir_at(f, expr)->count != count)
        FAIL(1, expr, "%u operands, not %u", ir_at(f, expr)->count, count);
    for (uint32_t i = 0; i < count; i++) {
        const ir_type type = (ir_type)ir_at(f, ir_operand(f, expr, i))->type;
        const char lower = (char)(letters[i] | 0x20);
        if (lower != letters[i]) { /* as an earlier operand of that letter */
            const uint32_t like = (uint32_t)(strchr(letters, lower) - letters);
            if (type != ir_at(f, ir_operand(f, expr, like))->type)
                FAIL(1, expr, "operand %u is %s, not as operand %u", i, opjit_ir_type_name(type), like);
        } else if (!letter_allows(lower, type)) {
            FAIL(1, expr, "operand %u may not be %s", i, opjit_ir_type_name(type));
        }
        if (letters[i] == 'k' && !ir_is_index_const(f, ir_operand(f, expr, i)))
            FAIL(1, expr, "operand %u is not a constant", i);
    }
    return OPJIT_OK;
}

static opjit_status check_leaf(verifier *v, ir_ref expr)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    switch ((ir_op)node->op) {
    case IR_VAR:
        if (node->ref >= v->node_count)
            FAIL(1, expr, "its owner does not exist");
        return OPJIT_OK;
    case IR_PARAM:
        if (node->ref == 0 || node->ref >= f->param_count || node->type != f->params[node->ref].type)
            FAIL(1, expr, "there is no such parameter of its type");
        return OPJIT_OK;
    case IR_GET:
        if (node->ref >= v->node_count || (ir_at(f, node->ref)->op != IR_LET && ir_at(f, node->ref)->op != IR_ACC) ||
            node->type != ir_at(f, node->ref)->type)
            FAIL(1, expr, "there is no let or acc of its type");
        return OPJIT_OK;
    case IR_LOAD:
        if (node->ref == 0 || node->ref >= f->tensor_count || node->type != f->tensors[node->ref].type)
            FAIL(1, expr, "there is no tensor of its type");
        if (node->count != f->tensors[node->ref].rank)
            FAIL(3, expr, "%u coordinates, rank %u", node->count, f->tensors[node->ref].rank);
        for (uint32_t i = 0; i < node->count; i++)
            if (ir_at(f, ir_operand(f, expr, i))->type != IR_INDEX)
                FAIL(1, expr, "coordinate %u is not an index", i);
        return OPJIT_OK;
    case IR_HEAD:
        if (node->ref == 0 || node->ref >= f->tensor_count || f->tensors[node->ref].role != IR_OUT)
            FAIL(1, expr, "there is no such output");
        return OPJIT_OK;
    default: return OPJIT_OK;
    }
}

/* Checks what the letters of the table can't express. */
static opjit_status check_op(verifier *v, ir_ref expr)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    const ir_type type = (ir_type)node->type, from = (ir_type)ir_at(f, ir_operand(f, expr, 0))->type;
    if (f->phase >= IR_GRIDDED && (opjit_ir_op_infos[node->op].flags & IR_FLAG_M))
        FAIL(4, expr, "a math op after pass grid");
    switch ((ir_op)node->op) {
    case IR_IDIV:
    case IR_IMOD:
    case IR_DOWN:
    case IR_UP: {
        const int64_t k = ir_index_value(f, ir_operand(f, expr, 1));
        if (k <= 0)
            FAIL(1, expr, "operand 1 is %lld, not above 0", (long long)k);
        if ((node->op == IR_DOWN || node->op == IR_UP) && !is_power_of_two((uint64_t)k))
            FAIL(1, expr, "operand 1 is %lld, not a power of two", (long long)k);
        return OPJIT_OK;
    }
    case IR_IQUOT:
    case IR_IREST:
        if (opjit_ir_interval(f, ir_operand(f, expr, 1)).lo < 1)
            FAIL(1, expr, "operand 1 may be below 1");
        return OPJIT_OK;
    case IR_ELEM:
        if (!ir_is_element(type))
            FAIL(1, expr, "%s is not a type of elements", opjit_ir_type_name(type));
        return OPJIT_OK;
    case IR_CAST:
        if (type == IR_NONE || type == IR_INDEX || from == IR_INDEX)
            FAIL(1, expr, "from %s to %s is not a cast", opjit_ir_type_name(from), opjit_ir_type_name(type));
        return OPJIT_OK;
    case IR_BITS:
        if (!ir_is_element(type) || opjit_ir_type_size(type) != opjit_ir_type_size(from))
            FAIL(1, expr, "%s has another width than %s", opjit_ir_type_name(type), opjit_ir_type_name(from));
        return OPJIT_OK;
    case IR_NEAREST:
        if (type != IR_I32 || from != IR_F32)
            FAIL(1, expr, "from %s to %s, not from f32 to i32", opjit_ir_type_name(from), opjit_ir_type_name(type));
        return OPJIT_OK;
    case IR_HALVES:
        if (type != IR_I32 || (from != IR_I16 && from != IR_U16))
            FAIL(1, expr, "from %s to %s, not from i16 or u16 to i32", opjit_ir_type_name(from),
                 opjit_ir_type_name(type));
        return OPJIT_OK;
    case IR_SCALE:
        if (type == IR_F16)
            FAIL(1, expr, "f16, not f32 or f64");
        return OPJIT_OK;
    case IR_DOT4_UU:
    case IR_DOT4_US:
    case IR_DOT4_SS:
    case IR_DOT2:
        if (type != IR_I32)
            FAIL(1, expr, "%s, not i32", opjit_ir_type_name(type));
        return OPJIT_OK;
    case IR_SIN_FAR:
    case IR_COS_FAR:
    case IR_TAN_FAR:
        if (type != IR_F64)
            FAIL(1, expr, "%s, not f64", opjit_ir_type_name(type));
        return OPJIT_OK;
    default: return OPJIT_OK;
    }
}

static opjit_status check_result(verifier *v, ir_ref expr)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    ir_type want = (ir_type)node->type;
    switch (opjit_ir_op_infos[node->op].result) {
    case 'I': want = IR_INDEX; break;
    case 'B': want = IR_BOOL; break;
    case 'S': want = (ir_type)ir_at(f, ir_operand(f, expr, 0))->type; break;
    case 'A': want = (ir_type)ir_at(f, ir_operand(f, expr, 1))->type; break;
    default: break;
    }
    if (node->type != want || want == IR_NONE || want >= IR_TYPE_COUNT)
        FAIL(1, expr, "its type is %s, not %s", opjit_ir_type_name((ir_type)node->type), opjit_ir_type_name(want));
    return OPJIT_OK;
}

/* --- V2, V4, V5, V10: what an expression may read here ------------------------------------------------------------ */

static opjit_status check_tensor_read(verifier *v, ir_ref expr)
{
    uint32_t t = ir_at(v->f, expr)->ref;
    for (uint32_t steps = 0; v->f->tensors[t].role == IR_VIEW; steps++) {
        v->used_tensor[t] = 1;
        t = v->f->tensors[t].of;
        if (t == 0 || t >= v->f->tensor_count || steps > v->f->tensor_count)
            FAIL(1, expr, "the view is of no tensor");
    }
    v->used_tensor[t] = 1;
    const ir_role role = v->f->tensors[t].role;
    if (v->loops && role == IR_VALUE)
        FAIL(4, expr, "a def is read in loop form");
    if (!v->loops && (ir_is_memory(role) || role == IR_OUT))
        FAIL(4, expr, "memory that is written is read in value form");
    if (role == IR_VALUE && !v->defined[t])
        FAIL(5, expr, "its def is not an earlier one");
    return OPJIT_OK;
}

static opjit_status check_read(verifier *v, ir_ref expr)
{
    const ir_func *f = v->f;
    const ir_node *node = ir_at(f, expr);
    if (node->op == IR_VAR && !v->in_scope[expr])
        FAIL(2, expr, "the variable is not in scope");
    if (node->op == IR_LOAD)
        return check_tensor_read(v, expr);
    if (node->op != IR_GET)
        return OPJIT_OK;
    if (!v->in_scope[node->ref])
        FAIL(2, expr, "it is not defined before, or not in scope");
    v->used[node->ref] = 1;
    if (ir_at(f, node->ref)->op == IR_ACC && ir_at(f, node->ref)->imm > 1)
        for (uint32_t i = 0; i < v->open_count; i++)
            if (v->in_scope[node->ref] <= i && opjit_ir_count_updates(f, ir_at(f, v->open[i])->body, node->ref) > 0)
                FAIL(10, expr, "inside the loop that updates it, with %u lanes", (uint32_t)ir_at(f, node->ref)->imm);
    return OPJIT_OK;
}

/* V11: a node whose interval reaches an end of the 64-bit range may have overflowed. */
static opjit_status check_overflow(verifier *v, ir_ref expr)
{
    const ir_op op = (ir_op)ir_at(v->f, expr)->op;
    if (op != IR_IADD && op != IR_ISUB && op != IR_IMUL && op != IR_ISCALE && op != IR_DOWN && op != IR_UP)
        return OPJIT_OK;
    const ir_interval x = opjit_ir_interval(v->f, expr);
    if (x.lo <= x.hi && (x.lo == INT64_MIN || x.hi == INT64_MAX))
        FAIL(11, expr, "may leave 64 bits");
    return OPJIT_OK;
}

enum { ON_PATH = 1, DONE = 2 };

/* Whether the statement is a dot, or a step of one. */
static bool takes_pairs(const ir_func *f, ir_ref statement)
{
    const ir_node *n = ir_at(f, statement);
    return (n->op == IR_DEF && n->kind == IR_DOT) || (n->op == IR_UPD && ir_at(f, n->ref)->kind == IR_DOT);
}

static opjit_status check_expr(verifier *v, ir_ref user, ir_ref expr, uint32_t depth)
{
    if (expr == 0 || expr >= v->node_count)
        FAIL(1, user, "an operand is missing");
    const ir_node node = *ir_at(v->f, expr);
    if (v->stamp[expr] == 2 * v->now + DONE)
        return OPJIT_OK;
    if (v->stamp[expr] == 2 * v->now + ON_PATH || depth == 0)
        FAIL(1, user, "an expression contains itself, or is nested too deep");
    if (node.op == IR_OP_NONE || node.op >= IR_OP_COUNT || !(opjit_ir_op_infos[node.op].flags & IR_FLAG_P))
        FAIL(1, user, "an operand is not an expression");
    if (node.op == IR_PAIR && !takes_pairs(v->f, user))
        FAIL(1, expr, "a pair is the value of a dot alone");
    v->stamp[expr] = 2 * v->now + ON_PATH;
    for (uint32_t i = 0; i < node.count; i++)
        TRY(check_expr(v, expr, ir_operand(v->f, expr, i), depth - 1));
    TRY(check_leaf(v, expr));
    if (node.op != IR_LOAD)
        TRY(check_operands(v, expr, opjit_ir_op_infos[node.op].operands));
    TRY(check_result(v, expr));
    if (node.count > 0 && node.op != IR_LOAD)
        TRY(check_op(v, expr));
    TRY(check_read(v, expr));
    TRY(check_overflow(v, expr));
    v->stamp[expr] = 2 * v->now + DONE;
    return OPJIT_OK;
}

opjit_status opjit_ir_verify_expr(verifier *v, ir_ref user, ir_ref expr)
{
    v->now++;
    return check_expr(v, user, expr, MOST_DEPTH);
}

opjit_status opjit_ir_verify_operands(verifier *v, ir_ref s, uint32_t first)
{
    v->now++;
    for (uint32_t i = first; i < ir_at(v->f, s)->count; i++)
        TRY(check_expr(v, s, ir_operand(v->f, s, i), MOST_DEPTH));
    return OPJIT_OK;
}

opjit_status opjit_ir_verify_order(const verifier *v, ir_ref s)
{
    const ir_node *node = ir_at(v->f, s);
    if (node->kind == IR_DOT && node->imm != 1)
        FAIL(17, s, "lanes of a dot are %u, not 1", (uint32_t)node->imm);
    if (node->imm > 1 && node->imm != IR_REDUCE_LANES)
        FAIL(17, s, "lanes are %u, not 0, 1 or %d", (uint32_t)node->imm, IR_REDUCE_LANES);
    if (node->kind == IR_DOT ? node->block == 0 || node->block > IR_REDUCE_BLOCK : node->block != IR_REDUCE_BLOCK)
        FAIL(17, s, "blocks are of %u values, not %s%d", node->block, node->kind == IR_DOT ? "1 to " : "",
             IR_REDUCE_BLOCK);
    return OPJIT_OK;
}
