/* SPDX-License-Identifier: Apache-2.0 */
/* interval.c - what is known of index expressions without running them: intervals, decided comparisons, linear
 * forms. Knows no memory: a loaded value has the range of its type. */
#include "ir/core/internal.h"

/* Walks remember a few nodes and count their steps, so that shared nodes can't make them exponential. */
enum { SLOTS = 64, BUDGET = 20000 };

typedef struct interval_walk {
    const ir_func *f;
    uint32_t budget;
    ir_ref node[SLOTS];
    ir_interval interval[SLOTS];
} interval_walk;

static const ir_interval everything = { INT64_MIN, INT64_MAX };
static const ir_interval nothing = { 1, 0 };

static bool is_empty(ir_interval x)
{
    return x.lo > x.hi;
}
static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- saturating arithmetic: an end that is at the end of int64 stays there ---------------------------------------- */

static bool is_end(int64_t x)
{
    return x == INT64_MIN || x == INT64_MAX;
}

static int64_t saturating_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (is_end(a))
        return a;
    if (is_end(b))
        return b;
    return checked_addi(a, b, &sum) ? sum : a < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t saturating_neg(int64_t a)
{
    return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a;
}

static int64_t saturating_mul(int64_t a, int64_t k)
{
    int64_t product;
    if (k == 0)
        return 0;
    if (!is_end(a) && checked_muli(a, k, &product))
        return product;
    return (a < 0) == (k < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t floor_div(int64_t a, int64_t k)
{
    return is_end(a) ? a : a / k - (a % k < 0);
}

static ir_interval interval_add(ir_interval a, ir_interval b)
{
    return (ir_interval){ saturating_add(a.lo, b.lo), saturating_add(a.hi, b.hi) };
}

static ir_interval interval_neg(ir_interval a)
{
    return (ir_interval){ saturating_neg(a.hi), saturating_neg(a.lo) };
}

static ir_interval interval_mul(ir_interval a, int64_t k)
{
    const int64_t x = saturating_mul(a.lo, k), y = saturating_mul(a.hi, k);
    return (ir_interval){ min64(x, y), max64(x, y) };
}

static ir_interval interval_mod(ir_interval a, int64_t k)
{
    if (is_end(a.lo) || is_end(a.hi) || floor_div(a.lo, k) != floor_div(a.hi, k))
        return (ir_interval){ 0, k - 1 };
    const int64_t base = floor_div(a.lo, k) * k;
    return (ir_interval){ a.lo - base, a.hi - base };
}

/* --- interval ----------------------------------------------------------------------------------------------------- */

static ir_interval walk_interval(interval_walk *w, ir_ref expr);

static ir_interval of_operand(interval_walk *w, ir_ref expr, uint32_t i)
{
    return walk_interval(w, ir_operand(w->f, expr, i));
}

/* Of a variable, by the statement that owns it. */
static ir_interval var_interval(interval_walk *w, ir_ref expr)
{
    const ir_node *var = ir_at(w->f, expr), *owner = ir_at(w->f, var->ref);
    if (owner->op == IR_DEF || (owner->op == IR_YIELD && !owner->imm)) {
        const ir_tensor *t = &w->f->tensors[owner->ref];
        const int32_t along = opjit_ir_scanned(w->f, var->ref);
        if (along >= 0 && var->imm == t->rank)
            return (ir_interval){ 0, (int64_t)t->sizes[along] - 1 }; /* also where it excludes its own */
        if (owner->kind && var->imm == t->rank)
            return (ir_interval){ 0, of_operand(w, var->ref, owner->count - 1).hi - 1 };
        return (ir_interval){ 0, var->imm < t->rank ? (int64_t)t->sizes[var->imm] - 1 : 0 };
    }
    if (owner->op == IR_YIELD) { /* boxed: the size of the box stands in it */
        const uint32_t rank = w->f->tensors[owner->ref].rank;
        const ir_interval size = of_operand(w, var->ref, 1 + rank + 3 * (uint32_t)var->imm + 1);
        return (ir_interval){ 0, size.hi - 1 };
    }
    if (owner->op != IR_FOR && owner->op != IR_STAGE)
        return everything;
    const ir_interval lo = of_operand(w, var->ref, 0), hi = of_operand(w, var->ref, 1);
    if (is_empty(lo) || is_empty(hi))
        return nothing;
    int64_t last = saturating_add(hi.hi, -1);
    const int64_t step = owner->op == IR_FOR ? (int64_t)owner->imm : 1;
    if (step > 1 && lo.lo == lo.hi && !is_end(last) && last >= lo.lo && lo.lo >= 0)
        last -= (last - lo.lo) % step;
    return (ir_interval){ lo.lo, last };
}

static ir_interval element_interval(interval_walk *w, ir_ref expr)
{
    const ir_ref operand = ir_operand(w->f, expr, 0);
    const ir_node *node = ir_at(w->f, operand);
    const ir_type type = (ir_type)node->type;
    const uint32_t bits = 8 * opjit_ir_type_size(type);
    ir_interval range = everything;
    uint64_t value;
    if (ir_is_signed(type) && bits < 64)
        range = (ir_interval){ -((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1 };
    else if (ir_is_integer(type) && !ir_is_signed(type))
        range = (ir_interval){ 0, bits < 64 ? ((int64_t)1 << bits) - 1 : INT64_MAX };
    if (node->op == IR_CONST && opjit_ir_scalar(IR_TO_INDEX, IR_INDEX, type, &node->imm, &value))
        return (ir_interval){ (int64_t)value, (int64_t)value };
    if (node->op == IR_ELEM) { /* and back: the index itself where it fits */
        const ir_interval inner = walk_interval(w, ir_operand(w->f, operand, 0));
        if (inner.lo >= range.lo && inner.hi <= range.hi)
            return inner;
    }
    return range;
}

/* down(c - x, k) + x is at most c. */
static ir_interval plus_interval(interval_walk *w, ir_ref expr, ir_interval a, ir_interval b)
{
    const ir_func *f = w->f;
    const ir_ref down = ir_operand(f, expr, 0);
    ir_interval sum = interval_add(a, b);
    if (ir_at(f, down)->op != IR_DOWN || ir_at(f, ir_operand(f, down, 0))->op != IR_ISUB ||
        !opjit_ir_same(f, ir_operand(f, ir_operand(f, down, 0), 1), ir_operand(f, expr, 1)))
        return sum;
    const ir_interval c = of_operand(w, ir_operand(f, down, 0), 0);
    sum.hi = c.hi < sum.hi && c.hi >= sum.lo ? c.hi : sum.hi;
    return sum;
}

/* Operands that have intervals themselves; k is the constant second one where the op has that. */
static ir_interval arithmetic_interval(interval_walk *w, ir_ref expr, ir_op op)
{
    const ir_interval a = of_operand(w, expr, 0), b = of_operand(w, expr, 1);
    const int64_t k = b.lo;
    if (is_empty(a) || is_empty(b))
        return nothing;
    if ((op == IR_IDIV || op == IR_IMOD || op == IR_DOWN || op == IR_UP || op == IR_IMUL) &&
        (b.lo != b.hi || (k <= 0 && op != IR_IMUL)))
        return everything;
    switch (op) {
    case IR_IADD: return plus_interval(w, expr, a, b);
    case IR_ISUB: return interval_add(a, interval_neg(b));
    case IR_IMUL: return interval_mul(a, k);
    case IR_IDIV: return (ir_interval){ floor_div(a.lo, k), floor_div(a.hi, k) };
    case IR_IMOD: return interval_mod(a, k);
    case IR_IMIN: return (ir_interval){ min64(a.lo, b.lo), min64(a.hi, b.hi) };
    case IR_IMAX: return (ir_interval){ max64(a.lo, b.lo), max64(a.hi, b.hi) };
    case IR_DOWN: return (ir_interval){ saturating_mul(floor_div(a.lo, k), k), saturating_mul(floor_div(a.hi, k), k) };
    case IR_UP:
        return interval_neg((ir_interval){ saturating_mul(floor_div(saturating_neg(a.hi), k), k),
                                           saturating_mul(floor_div(saturating_neg(a.lo), k), k) });
    default: return everything;
    }
}

static ir_interval clamp_interval(interval_walk *w, ir_ref expr)
{
    const ir_interval x = of_operand(w, expr, 0), lo = of_operand(w, expr, 1), hi = of_operand(w, expr, 2);
    if (is_empty(x) || is_empty(lo) || is_empty(hi))
        return nothing;
    return (ir_interval){ min64(max64(x.lo, lo.lo), hi.lo), min64(max64(x.hi, lo.hi), hi.hi) };
}

static int walk_decide(interval_walk *w, ir_ref expr);

static ir_interval select_interval(interval_walk *w, ir_ref expr)
{
    const int decided = walk_decide(w, ir_operand(w->f, expr, 0));
    if (decided >= 0)
        return of_operand(w, expr, decided ? 1 : 2);
    const ir_interval a = of_operand(w, expr, 1), b = of_operand(w, expr, 2);
    if (is_empty(a) || is_empty(b))
        return is_empty(a) ? b : a;
    return (ir_interval){ min64(a.lo, b.lo), max64(a.hi, b.hi) };
}

static ir_interval compute_interval(interval_walk *w, ir_ref expr)
{
    const ir_node *node = ir_at(w->f, expr);
    switch ((ir_op)node->op) {
    case IR_CONST: return (ir_interval){ (int64_t)node->imm, (int64_t)node->imm };
    case IR_VAR: return var_interval(w, expr);
    case IR_PARAM: return (ir_interval){ w->f->params[node->ref].lo, w->f->params[node->ref].hi };
    case IR_GET: return ir_at(w->f, node->ref)->op == IR_LET ? of_operand(w, node->ref, 0) : everything;
    case IR_TO_INDEX: return element_interval(w, expr);
    case IR_HEAD: return (ir_interval){ 1, IR_LINE / opjit_ir_type_size(w->f->tensors[node->ref].type) };
    case IR_CLAMP: return clamp_interval(w, expr);
    case IR_SELECT: return select_interval(w, expr);
    default: return node->count == 2 ? arithmetic_interval(w, expr, (ir_op)node->op) : everything;
    }
}

static ir_interval walk_interval(interval_walk *w, ir_ref expr)
{
    const uint32_t slot = expr % SLOTS;
    if (!expr || ir_at(w->f, expr)->type != IR_INDEX || w->budget == 0)
        return everything;
    if (w->node[slot] == expr)
        return w->interval[slot];
    w->budget--;
    const ir_interval result = compute_interval(w, expr);
    w->node[slot] = expr;
    w->interval[slot] = result;
    return result;
}

ir_interval opjit_ir_interval(const ir_func *f, ir_ref index_expr)
{
    if (ir_is_index_const(f, index_expr)) /* the common case, without the table */
        return (ir_interval){ ir_index_value(f, index_expr), ir_index_value(f, index_expr) };
    interval_walk w = { .f = f, .budget = BUDGET };
    return walk_interval(&w, index_expr);
}

/* --- sums of terms: a - b with equal terms cancelled -------------------------------------------------------------- */

enum { TERMS = 8 };
typedef struct sum {
    ir_ref term[TERMS];
    int64_t factor[TERMS];
    uint32_t count;
    int64_t constant;
    bool failed; /* overflow or too many terms */
} sum;

static void sum_term(const ir_func *f, sum *s, ir_ref expr, int64_t factor)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (opjit_ir_same(f, s->term[i], expr)) {
            s->failed |= !checked_addi(s->factor[i], factor, &s->factor[i]);
            return;
        }
    if (s->count == TERMS) {
        s->failed = true;
        return;
    }
    s->term[s->count] = expr;
    s->factor[s->count++] = factor;
}

static void sum_add(const ir_func *f, sum *s, ir_ref expr, int64_t factor, uint32_t depth)
{
    const ir_node *node = ir_at(f, expr);
    int64_t product;
    if (s->failed || depth == 0) {
        s->failed = true;
        return;
    }
    switch ((ir_op)node->op) {
    case IR_CONST:
        s->failed |=
            !checked_muli((int64_t)node->imm, factor, &product) || !checked_addi(s->constant, product, &s->constant);
        return;
    case IR_IADD:
    case IR_ISUB:
        sum_add(f, s, ir_operand(f, expr, 0), factor, depth - 1);
        if (node->op == IR_ISUB && factor == INT64_MIN)
            s->failed = true;
        else
            sum_add(f, s, ir_operand(f, expr, 1), node->op == IR_ISUB ? -factor : factor, depth - 1);
        return;
    case IR_IMUL:
        if (!ir_is_index_const(f, ir_operand(f, expr, 1)) ||
            !checked_muli(factor, ir_index_value(f, ir_operand(f, expr, 1)), &product))
            break;
        sum_add(f, s, ir_operand(f, expr, 0), product, depth - 1);
        return;
    case IR_GET:
        if (ir_at(f, node->ref)->op != IR_LET)
            break;
        sum_add(f, s, ir_operand(f, node->ref, 0), factor, depth - 1);
        return;
    default: break;
    }
    sum_term(f, s, expr, factor);
}

bool opjit_ir_is_constant(const ir_func *f, ir_ref expr, int64_t *out)
{
    sum s = { .constant = 0 };
    sum_add(f, &s, expr, 1, 64);
    for (uint32_t i = 0; i < s.count; i++)
        s.failed |= s.factor[i] != 0;
    *out = s.constant;
    return !s.failed;
}

static ir_interval sum_interval(interval_walk *w, const sum *s)
{
    ir_interval total = { s->constant, s->constant };
    if (s->failed)
        return everything;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->factor[i] == 0)
            continue;
        const ir_interval x = walk_interval(w, s->term[i]);
        if (is_empty(x))
            return nothing;
        total = interval_add(total, interval_mul(x, s->factor[i]));
    }
    return total;
}

/* --- proofs that a sum is at most 0 ------------------------------------------------------------------------------- */

typedef struct proof {
    interval_walk *w;
    uint32_t budget; /* sums looked at */
} proof;

static bool prove(proof *p, const sum *s, uint32_t depth);

/* s with term i replaced by `by` + plus. */
static bool prove_with(proof *p, const sum *s, uint32_t i, ir_ref by, int64_t plus, uint32_t depth)
{
    sum changed = *s;
    int64_t product;
    changed.factor[i] = 0;
    sum_add(p->w->f, &changed, by, s->factor[i], 64);
    if (!checked_muli(plus, s->factor[i], &product) || !checked_addi(changed.constant, product, &changed.constant))
        return false;
    return prove(p, &changed, depth - 1);
}

/* Replaces term i by an expression that is no smaller (factor > 0) or no larger (factor < 0). */
static bool prove_by_term(proof *p, const sum *s, uint32_t i, uint32_t depth)
{
    const ir_func *f = p->w->f;
    const ir_ref term = s->term[i];
    const ir_node *node = ir_at(f, term), *owner = ir_at(f, node->ref);
    const bool up = s->factor[i] > 0;
#define WITH(operand, plus) prove_with(p, s, i, ir_operand(f, term, operand), plus, depth)
    switch ((ir_op)node->op) {
    case IR_VAR:
        if (owner->op != IR_FOR && owner->op != IR_STAGE)
            return false;
        return up ? prove_with(p, s, i, ir_operand(f, node->ref, 1), -1, depth)
                  : prove_with(p, s, i, ir_operand(f, node->ref, 0), 0, depth);
    case IR_IMIN: return up ? WITH(0, 0) || WITH(1, 0) : WITH(0, 0) && WITH(1, 0);
    case IR_IMAX: return up ? WITH(0, 0) && WITH(1, 0) : WITH(0, 0) || WITH(1, 0);
    case IR_CLAMP: return up ? WITH(2, 0) || (WITH(0, 0) && WITH(1, 0)) : WITH(2, 0) && (WITH(1, 0) || WITH(0, 0));
    case IR_DOWN: return WITH(0, up ? 0 : 1 - ir_index_value(f, ir_operand(f, term, 1)));
    case IR_UP: return WITH(0, up ? ir_index_value(f, ir_operand(f, term, 1)) - 1 : 0);
    case IR_IDIV: { /* k * idiv(x, k) is between x - k + 1 and x */
        const int64_t k = ir_index_value(f, ir_operand(f, term, 1));
        sum scaled = *s;
        if (k <= 0 || s->factor[i] % k != 0)
            return false;
        scaled.factor[i] /= k;
        return prove_with(p, &scaled, i, ir_operand(f, term, 0), up ? 0 : 1 - k, depth);
    }
    default: return false;
    }
#undef WITH
}

static bool prove(proof *p, const sum *s, uint32_t depth)
{
    const ir_interval known = sum_interval(p->w, s);
    if (known.hi <= 0 || is_empty(known))
        return true;
    if (s->failed || depth == 0 || p->budget == 0)
        return false;
    p->budget--;
    for (uint32_t i = s->count; i-- > 0;)
        if (s->factor[i] != 0 && prove_by_term(p, s, i, depth))
            return true;
    return false;
}

static bool walk_proves_le(interval_walk *w, ir_ref a, ir_ref b, int64_t slack)
{
    sum s = { .constant = 0 };
    proof p = { .w = w, .budget = 64 };
    sum_add(w->f, &s, a, 1, 64);
    sum_add(w->f, &s, b, -1, 64);
    s.failed |= slack == INT64_MIN || !checked_subi(s.constant, slack, &s.constant);
    return !s.failed && prove(&p, &s, 6);
}

bool opjit_ir_proves_le(const ir_func *f, ir_ref a, ir_ref b, int64_t slack)
{
    interval_walk w = { .f = f, .budget = BUDGET };
    return (slack >= 0 && opjit_ir_ordered(f, a, b)) || walk_proves_le(&w, a, b, slack);
}

/* --- decide ------------------------------------------------------------------------------------------------------- */

static int decide_comparison(interval_walk *w, ir_op op, ir_ref a, ir_ref b)
{
    switch (op) {
    case IR_LT: return walk_proves_le(w, a, b, -1) ? 1 : walk_proves_le(w, b, a, 0) ? 0 : -1;
    case IR_LE: return walk_proves_le(w, a, b, 0) ? 1 : walk_proves_le(w, b, a, -1) ? 0 : -1;
    default: break;
    }
    const bool different = walk_proves_le(w, a, b, -1) || walk_proves_le(w, b, a, -1);
    const bool equal = !different && walk_proves_le(w, a, b, 0) && walk_proves_le(w, b, a, 0);
    return !different && !equal ? -1 : equal == (op == IR_EQ);
}

static int decide_logic(ir_op op, int a, int b)
{
    switch (op) {
    case IR_AND: return a == 0 || b == 0 ? 0 : a == 1 && b == 1 ? 1 : -1;
    case IR_OR: return a == 1 || b == 1 ? 1 : a == 0 && b == 0 ? 0 : -1;
    default: return a < 0 || b < 0 ? -1 : a ^ b;
    }
}

static int walk_decide(interval_walk *w, ir_ref expr)
{
    const ir_func *f = w->f;
    const ir_node *node = ir_at(f, expr);
    if (node->type != IR_BOOL || w->budget == 0)
        return -1;
    w->budget--;
    switch ((ir_op)node->op) {
    case IR_CONST: return node->imm != 0;
    case IR_GET: return ir_at(f, node->ref)->op == IR_LET ? walk_decide(w, ir_operand(f, node->ref, 0)) : -1;
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: {
        const ir_ref a = ir_operand(f, expr, 0), b = ir_operand(f, expr, 1);
        return ir_at(f, a)->type == IR_INDEX ? decide_comparison(w, (ir_op)node->op, a, b) : -1;
    }
    case IR_AND:
    case IR_OR:
    case IR_XOR:
        return decide_logic((ir_op)node->op, walk_decide(w, ir_operand(f, expr, 0)),
                            walk_decide(w, ir_operand(f, expr, 1)));
    case IR_NOT: {
        const int inner = walk_decide(w, ir_operand(f, expr, 0));
        return inner < 0 ? -1 : !inner;
    }
    case IR_SELECT: {
        const int choice = walk_decide(w, ir_operand(f, expr, 0));
        if (choice >= 0)
            return walk_decide(w, ir_operand(f, expr, choice ? 1 : 2));
        const int a = walk_decide(w, ir_operand(f, expr, 1));
        return a >= 0 && a == walk_decide(w, ir_operand(f, expr, 2)) ? a : -1;
    }
    default: return -1;
    }
}

int opjit_ir_decide(const ir_func *f, ir_ref bool_expr)
{
    interval_walk w = { .f = f, .budget = BUDGET };
    return walk_decide(&w, bool_expr);
}
