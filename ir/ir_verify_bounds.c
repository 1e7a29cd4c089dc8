/* ir_verify_bounds.c - V8: each coordinate of a load, under the guards of the selects around it, and of a store is inside
 * its tensor.  By proof, not by running: what can't be proven is an error. */
#include "ir/ir_verify.h"

enum { GUARDS = 16 };

/* Comparisons known to hold where the position is evaluated: left + slack <= right. */
typedef struct guard {
    ir_ref left, right;
    int64_t slack;
} guard;

typedef struct bounds {
    verifier *v;
    guard guards[GUARDS];
    uint32_t count;
    ir_ref seen[256]; /* nodes checked without any guard: they hold under every guard */
} bounds;

static void push(bounds *b, ir_ref left, ir_ref right, int64_t slack)
{
    if (b->count < GUARDS)
        b->guards[b->count++] = (guard){ left, right, slack };
}

/* Enters what a condition that is `truth` says about indices. */
static void assume(bounds *b, ir_ref condition, bool truth)
{
    const ir_func *f = b->v->f;
    const ir_node node = *ir_at(f, condition);
    if (node.op == IR_GET) {
        if (ir_at(f, node.ref)->op == IR_LET)
            assume(b, ir_operand(f, node.ref, 0), truth);
        return;
    }
    if (node.count == 0)
        return;
    const ir_ref x = ir_operand(f, condition, 0), y = node.count > 1 ? ir_operand(f, condition, 1) : 0;
    const bool index = ir_at(f, x)->type == IR_INDEX;
    if (node.op == IR_NOT) {
        assume(b, x, !truth);
    } else if (node.op == IR_AND || node.op == IR_OR) {
        if (truth == (node.op == IR_AND)) {
            assume(b, x, truth);
            assume(b, y, truth);
        }
    } else if (index && (node.op == IR_LT || node.op == IR_LE)) {
        const int64_t strict = (node.op == IR_LT) == truth;
        if (truth)
            push(b, x, y, strict);
        else
            push(b, y, x, strict);
    } else if (index && (node.op == IR_EQ || node.op == IR_NE) && truth == (node.op == IR_EQ)) {
        push(b, x, y, 0);
        push(b, y, x, 0);
    }
}

/* a <= c + slack, with the help of one or two guards.  A guard adds right - left - slack >= 0 to the left side. */
static bool holds(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t depth)
{
    ir_func *f = b->v->f;
    if (opjit_ir_proves_le(f, a, c, slack))
        return true;
    for (uint32_t i = 0; depth > 0 && i < b->count; i++) {
        const guard *g = &b->guards[i];
        const ir_ref more = ir_expr2(f, IR_IADD, IR_INDEX, a, ir_expr2(f, IR_ISUB, IR_INDEX, g->right, g->left));
        int64_t changed;
        if (!f->failed && checked_addi(slack, g->slack, &changed) && holds(b, more, c, changed, depth - 1))
            return true;
    }
    return false;
}

static opjit_status check_coordinates(bounds *b, ir_ref node, uint32_t first)
{
    verifier *v = b->v;
    ir_func *f = v->f;
    const ir_tensor t = f->tensors[ir_at(f, node)->ref];
    for (uint32_t d = 0; d < t.rank; d++) {
        const ir_ref x = ir_operand(f, node, first + d);
        const ir_interval known = opjit_ir_interval(f, x);
        if (known.lo > known.hi || (known.lo >= 0 && known.hi < (int64_t)t.sizes[d]))
            continue;
        const ir_ref zero = opjit_ir_index(f, 0), last = opjit_ir_index(f, (int64_t)t.sizes[d] - 1);
        if (!holds(b, zero, x, 0, 2) || !holds(b, x, last, 0, 2))
            return opjit_ir_verify_fail(v, 8, node, "coordinate %u is in [%lld, %lld], size %llu", d,
                                        (long long)known.lo, (long long)known.hi, (unsigned long long)t.sizes[d]);
    }
    return OPJIT_OK;
}

static opjit_status check_loads(bounds *b, ir_ref expr)
{
    const ir_node node = *ir_at(b->v->f, expr);
    if (node.count == 0 || b->seen[expr % 256] == expr)
        return OPJIT_OK;
    if (node.op == IR_LOAD)
        TRY(check_coordinates(b, expr, 0));
    if (node.op == IR_SELECT) {
        const ir_ref condition = ir_operand(b->v->f, expr, 0);
        const int decided = opjit_ir_decide(b->v->f, condition);
        const uint32_t count = b->count;
        TRY(check_loads(b, condition));
        for (uint32_t arm = 1; arm <= 2; arm++) {
            if (decided == (arm == 1 ? 0 : 1))
                continue; /* never evaluated */
            assume(b, condition, arm == 1);
            TRY(check_loads(b, ir_operand(b->v->f, expr, arm)));
            b->count = count;
        }
    } else {
        for (uint32_t i = 0; i < node.count; i++)
            TRY(check_loads(b, ir_operand(b->v->f, expr, i)));
    }
    if (b->count == 0)
        b->seen[expr % 256] = expr;
    return OPJIT_OK;
}

/* A boxed yield stores offset + i * step for i below the size. */
static opjit_status check_box(bounds *b, ir_ref yield)
{
    verifier *v = b->v;
    ir_func *f = v->f;
    const ir_tensor t = f->tensors[ir_at(f, yield)->ref];
    for (uint32_t d = 0; d < t.rank; d++) {
        const uint32_t first = 1 + t.rank + 3 * d;
        const ir_interval offset = opjit_ir_interval(f, ir_operand(f, yield, first));
        int64_t reach, last;
        if (!checked_muli(ir_index_value(f, ir_operand(f, yield, first + 1)) - 1,
                          ir_index_value(f, ir_operand(f, yield, first + 2)), &reach) ||
            !checked_addi(reach, offset.hi, &last) || offset.lo < 0 || last >= (int64_t)t.sizes[d])
            return opjit_ir_verify_fail(v, 8, yield, "box %u leaves size %llu", d, (unsigned long long)t.sizes[d]);
    }
    return OPJIT_OK;
}

opjit_status opjit_ir_verify_bounds(verifier *v, ir_ref statement)
{
    bounds b = { .v = v };
    const ir_node node = *ir_at(v->f, statement);
    for (uint32_t i = 0; i < node.count; i++)
        TRY(check_loads(&b, ir_operand(v->f, statement, i)));
    if (node.op == IR_STORE)
        TRY(check_coordinates(&b, statement, 1));
    return node.op == IR_YIELD && node.imm ? check_box(&b, statement) : OPJIT_OK;
}
