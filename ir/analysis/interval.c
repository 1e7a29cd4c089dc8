/* SPDX-License-Identifier: Apache-2.0 */
/* interval.c - intervals of index expressions.  Knows no memory: a loaded value has the range of its type. */
#include "ir/analysis/proof.h"

#include <string.h>

static const ir_interval everything = { INT64_MIN, INT64_MAX };
static const ir_interval nothing = { 1, 0 };

typedef struct ir_kept_interval {
    ir_interval interval;
    bool known;
} ir_kept_interval;

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* --- saturating arithmetic ---------------------------------------------------------------------------------------- */

static int64_t saturating_neg(int64_t a)
{
    return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a;
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

static ir_interval product_interval(ir_interval a, ir_interval b)
{
    const ir_interval x = interval_mul(a, b.lo), y = interval_mul(a, b.hi);
    return (ir_interval){ min64(x.lo, y.lo), max64(x.hi, y.hi) };
}

static ir_interval interval_mod(ir_interval a, int64_t k)
{
    if (is_end(a.lo) || is_end(a.hi) || floor_div(a.lo, k) != floor_div(a.hi, k))
        return (ir_interval){ 0, k - 1 };
    const int64_t base = floor_div(a.lo, k) * k;
    return (ir_interval){ a.lo - base, a.hi - base };
}

/* --- interval ----------------------------------------------------------------------------------------------------- */

static ir_interval of_operand(interval_walk *w, ir_ref expr, uint32_t i)
{
    return opjit_ir_walk_interval(w, ir_operand(w->f, expr, i));
}

/* The most that a loop's upper bound is where the loop runs at all, so that the bound is above `lo`: clamp(x, l, k)
 * with l <= lo is at most x then. */
static int64_t most_where_it_runs(interval_walk *w, ir_ref lo, ir_ref hi)
{
    const ir_ref value = ir_let_value(w->f, hi);
    const int64_t most = opjit_ir_walk_interval(w, value).hi;
    if (ir_at(w->f, value)->op != IR_CLAMP || !opjit_ir_ordered(w->f, ir_operand(w->f, value, 1), lo))
        return most;
    return min64(most, of_operand(w, value, 0).hi);
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
    if (owner->op == IR_SCATTER) {
        const ir_tensor *t = &w->f->tensors[owner->ref];
        return (ir_interval){ 0, var->imm < t->rank ? (int64_t)t->sizes[var->imm] - 1
                                                    : of_operand(w, var->ref, owner->count - 1).hi - 1 };
    }
    if (owner->op == IR_YIELD) { /* boxed: the size of the box stands in it */
        const uint32_t rank = w->f->tensors[owner->ref].rank;
        const ir_interval size = of_operand(w, var->ref, 1 + rank + 3 * (uint32_t)var->imm + 1);
        return (ir_interval){ 0, size.hi - 1 };
    }
    if (owner->op != IR_FOR && owner->op != IR_STAGE)
        return everything;
    const ir_interval lo = of_operand(w, var->ref, 0), hi = of_operand(w, var->ref, 1);
    if (interval_is_empty(lo) || interval_is_empty(hi))
        return nothing;
    int64_t last = most_where_it_runs(w, ir_operand(w->f, var->ref, 0), ir_operand(w->f, var->ref, 1));
    last = saturating_add(last, -1);
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
        const ir_interval inner = opjit_ir_walk_interval(w, ir_operand(w->f, operand, 0));
        if (inner.lo >= range.lo && inner.hi <= range.hi)
            return inner;
    }
    if (node->op == IR_AND && ir_is_integer(type)) { /* its bits are the mask's */
        const ir_node *mask = ir_at(w->f, ir_operand(w->f, operand, 1));
        if (mask->op == IR_CONST && opjit_ir_scalar(IR_TO_INDEX, IR_INDEX, type, &mask->imm, &value) &&
            (int64_t)value >= 0 && (int64_t)value < range.hi)
            range = (ir_interval){ 0, (int64_t)value };
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

/* What an index is less than, as a product of sizes: constant * size[0] * size[1] ... */
typedef struct size_limit {
    int64_t constant;
    ir_ref size[4];
    uint32_t count;
} size_limit;

/* Multiplies the limit by a size, or divides it by one that it is a product of; false: it isn't, or has too many. */
static bool limit_times(const ir_func *f, ir_ref size, bool divide, size_limit *l)
{
    const ir_node *n = ir_at(f, size);
    if (n->op == IR_IMUL || n->op == IR_ISCALE)
        return limit_times(f, ir_operand(f, size, 0), divide, l) && limit_times(f, ir_operand(f, size, 1), divide, l);
    if (n->op == IR_CONST) {
        const int64_t by = ir_index_value(f, size);
        if (by < 1 || (divide && l->constant % by != 0))
            return false;
        l->constant = divide ? l->constant / by : saturating_mul(l->constant, by);
        return !is_end(l->constant);
    }
    uint32_t at = 0;
    while (divide && at < l->count && !opjit_ir_same(f, l->size[at], size))
        at++;
    if (divide ? at == l->count : l->count == sizeof l->size / sizeof *l->size)
        return false;
    if (divide)
        l->size[at] = l->size[--l->count];
    else
        l->size[l->count++] = size;
    return true;
}

/* The number of a row, as of a loop over all rows of all matrices, and the parts that quotients make of it. */
static bool limit_of(const ir_func *f, ir_ref x, size_limit *l)
{
    const ir_node *n = ir_at(f, x);
    if (n->op == IR_IQUOT || n->op == IR_IDIV)
        return limit_of(f, ir_operand(f, x, 0), l) && limit_times(f, ir_operand(f, x, 1), true, l);
    *l = (size_limit){ .constant = 1 };
    if (n->op == IR_IREST || n->op == IR_IMOD)
        return limit_times(f, ir_operand(f, x, 1), false, l);
    const ir_op owner = n->op == IR_VAR ? (ir_op)ir_at(f, n->ref)->op : IR_CONST;
    return (owner == IR_FOR || owner == IR_STAGE) && limit_times(f, ir_operand(f, n->ref, 1), false, l);
}

/* At most a.hi / b.lo; of x < m * k, m of k are at most m - 1. */
static ir_interval quotient_interval(interval_walk *w, ir_ref expr, ir_interval a, ir_interval b)
{
    ir_interval q = { a.lo / b.hi, is_end(a.hi) ? a.hi : a.hi / b.lo };
    size_limit l;
    if (b.lo == b.hi || !limit_of(w->f, expr, &l))
        return q;
    int64_t limit = l.constant;
    for (uint32_t i = 0; i < l.count; i++) {
        const ir_interval size = opjit_ir_walk_interval(w, l.size[i]);
        limit = size.lo < 1 ? INT64_MAX : saturating_mul(limit, size.hi);
    }
    q.hi = is_end(limit) ? q.hi : min64(q.hi, max64(limit - 1, q.lo));
    return q;
}

/* Operands that have intervals themselves; k is the constant second one where the op has that. */
static ir_interval arithmetic_interval(interval_walk *w, ir_ref expr, ir_op op)
{
    const ir_interval a = of_operand(w, expr, 0), b = of_operand(w, expr, 1);
    const int64_t k = b.lo;
    if (interval_is_empty(a) || interval_is_empty(b))
        return nothing;
    if ((op == IR_IDIV || op == IR_IMOD || op == IR_DOWN || op == IR_UP || op == IR_IMUL) &&
        (b.lo != b.hi || (k <= 0 && op != IR_IMUL)))
        return everything;
    switch (op) {
    case IR_ISCALE: return product_interval(a, b);
    case IR_IQUOT:
        return b.lo < 1 || a.lo < 0 ? everything : quotient_interval(w, expr, a, b);
    case IR_IREST: return b.lo < 1 ? everything : (ir_interval){ 0, saturating_add(b.hi, -1) };
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
    if (interval_is_empty(x) || interval_is_empty(lo) || interval_is_empty(hi))
        return nothing;
    return (ir_interval){ min64(max64(x.lo, lo.lo), hi.lo), min64(max64(x.hi, lo.hi), hi.hi) };
}

static ir_interval select_interval(interval_walk *w, ir_ref expr)
{
    const int decided = opjit_ir_walk_decide(w, ir_operand(w->f, expr, 0));
    if (decided >= 0)
        return of_operand(w, expr, decided ? 1 : 2);
    const ir_interval a = of_operand(w, expr, 1), b = of_operand(w, expr, 2);
    if (interval_is_empty(a) || interval_is_empty(b))
        return interval_is_empty(a) ? b : a;
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

ir_interval opjit_ir_walk_interval(interval_walk *w, ir_ref expr)
{
    const uint32_t slot = expr % INTERVAL_SLOTS;
    if (!expr || ir_at(w->f, expr)->type != IR_INDEX || w->budget == 0)
        return everything;
    ir_kept_interval *kept = expr < w->f->interval_count ? &w->f->intervals[expr] : NULL;
    if (kept != NULL && kept->known)
        return kept->interval;
    if (w->node[slot] == expr)
        return w->interval[slot];
    w->budget--;
    const ir_interval result = compute_interval(w, expr);
    w->node[slot] = expr;
    w->interval[slot] = result;
    if (kept != NULL && w->budget > 0) /* else it may be wider than it has to be */
        *kept = (ir_kept_interval){ result, true };
    return result;
}

void opjit_ir_keep_intervals(ir_func *f, rt_arena *arena)
{
    f->intervals = ARENA_ARRAY(arena, ir_kept_interval, f->node_count);
    f->interval_count = f->intervals != NULL ? f->node_count : 0;
    f->failed = f->failed || f->intervals == NULL;
}

ir_interval opjit_ir_interval(const ir_func *f, ir_ref index_expr)
{
    if (ir_is_index_const(f, index_expr)) /* the common case, without the table */
        return (ir_interval){ ir_index_value(f, index_expr), ir_index_value(f, index_expr) };
    if (index_expr < f->interval_count && f->intervals[index_expr].known)
        return f->intervals[index_expr].interval;
    interval_walk w;
    interval_walk_begin(&w, f);
    return opjit_ir_walk_interval(&w, index_expr);
}

int64_t opjit_ir_reduced_most(const ir_func *f, ir_ref reduce)
{
    return opjit_ir_interval(f, ir_operand(f, reduce, ir_at(f, reduce)->count - 1)).hi;
}

bool opjit_ir_within(const ir_func *f, ir_ref index_expr, uint64_t size)
{
    const ir_interval i = opjit_ir_interval(f, index_expr);
    return i.lo >= 0 && (i.hi < 0 || (uint64_t)i.hi < size); /* an empty one, too: it is never evaluated */
}

/* The least that it may be.  Of one that follows from dimensions `sizes` is a sample's, which may be more. */
static uint64_t least_size(const ir_tensor *t, uint32_t d)
{
    static const uint8_t none[OPJIT_MAX_POWERS];
    const ir_size_form *own = t->size_forms == NULL ? NULL : &t->size_forms[d];
    const bool is_fixed = own == NULL || (own->form.factors[0] == 0 && own->form.factors[1] == 0 && own->rest == 0 &&
                                          memcmp(own->form.powers[1], none, sizeof none) == 0);
    return is_fixed ? t->sizes[d] : 1;
}

bool opjit_ir_in_bounds(const ir_func *f, ir_ref access)
{
    const ir_tensor *t = &f->tensors[ir_at(f, access)->ref];
    const uint32_t first = ir_at(f, access)->op == IR_STORE ? 1 : 0;
    bool inside = true;
    for (uint32_t d = 0; d < t->rank && inside; d++)
        inside = opjit_ir_within(f, ir_operand(f, access, first + d), least_size(t, d));
    return inside;
}
