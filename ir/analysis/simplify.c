/* SPDX-License-Identifier: Apache-2.0 */
/* simplify.c - makes one new node simpler: constants, bool algebra, index identities, comparisons that intervals
 * decide, sequences without rounding.  Exact: floats fold only where opjit_ir_scalar computes the same bits, and x + 0
 * stays, because it turns -0 into +0.  Local: looks at the operands and at their operands, not at whole trees. */
#include "ir/analysis/analysis.h"
#include "ir/core/internal.h"

#include <math.h>
#include <string.h>

static bool is_const(const ir_func *f, ir_ref r)
{
    return ir_at(f, r)->op == IR_CONST;
}

static ir_ref boolean(ir_func *f, bool value)
{
    return opjit_ir_const(f, IR_BOOL, value);
}

static ir_ref plus_constant(ir_func *f, ir_ref x, int64_t c)
{
    return ir_make2(f, IR_IADD, IR_INDEX, x, opjit_ir_index(f, c));
}

/* --- constants -------------------------------------------------------------------------------------------------- */

/* Index sums and products that overflow are not folded, so that rule V11 can name them. */
static bool index_fits(const ir_func *f, ir_op op, const ir_ref *operands)
{
    int64_t unused;
    const int64_t a = ir_index_value(f, operands[0]), b = ir_index_value(f, operands[1]);
    switch (op) {
    case IR_IADD: return checked_addi(a, b, &unused);
    case IR_ISUB: return checked_subi(a, b, &unused);
    case IR_IMUL: return checked_muli(a, b, &unused);
    case IR_UP: return checked_addi(a, b, &unused);
    default: return true;
    }
}

static ir_ref fold_constants(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands)
{
    uint64_t args[3] = { 0, 0, 0 }, bits;
    if (count == 0 || count > 3 || op == IR_LOAD || op == IR_HEAD)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_const(f, operands[i]))
            return 0;
        args[i] = ir_at(f, operands[i])->imm;
    }
    const ir_type from = (ir_type)ir_at(f, operands[0])->type;
    if (count == 2 && from == IR_INDEX && !index_fits(f, op, operands))
        return 0;
    switch (opjit_ir_op_infos[op].result) {
    case 'I': type = IR_INDEX; break;
    case 'B': type = IR_BOOL; break;
    case 'S': type = from; break;
    case 'A': type = (ir_type)ir_at(f, operands[count > 1])->type; break; /* has two; gcc at -O3 can't see that */
    default: break;
    }
    return opjit_ir_scalar(op, type, from, args, &bits) ? opjit_ir_const(f, type, bits) : 0;
}

/* --- index ------------------------------------------------------------------------------------------------------ */

/* q*c + r with q = idiv(x, c) and r = imod(x, c) is x. */
static ir_ref join_quotient(const ir_func *f, ir_ref a, ir_ref b)
{
    const ir_node *product = ir_at(f, a), *rest = ir_at(f, b);
    if (product->op != IR_IMUL || rest->op != IR_IMOD)
        return 0;
    const ir_ref quotient = ir_operand(f, a, 0), by = ir_operand(f, a, 1);
    if (ir_at(f, quotient)->op != IR_IDIV || !opjit_ir_same(f, ir_operand(f, quotient, 1), by) ||
        !opjit_ir_same(f, ir_operand(f, b, 1), by) ||
        !opjit_ir_same(f, ir_operand(f, quotient, 0), ir_operand(f, b, 0)))
        return 0;
    return ir_operand(f, b, 0);
}

static ir_ref simplify_add(ir_func *f, ir_ref a, ir_ref b)
{
    int64_t sum;
    if (is_const(f, a) && !is_const(f, b))
        return ir_make2(f, IR_IADD, IR_INDEX, b, a);
    if (!is_const(f, b))
        return join_quotient(f, a, b);
    if (ir_index_value(f, b) == 0)
        return a;
    if (ir_at(f, a)->op == IR_IADD && is_const(f, ir_operand(f, a, 1)) &&
        checked_addi(ir_index_value(f, ir_operand(f, a, 1)), ir_index_value(f, b), &sum))
        return plus_constant(f, ir_operand(f, a, 0), sum);
    return 0;
}

static ir_ref simplify_sub(ir_func *f, ir_ref a, ir_ref b)
{
    if (is_const(f, b) && ir_index_value(f, b) != INT64_MIN)
        return plus_constant(f, a, -ir_index_value(f, b));
    return opjit_ir_same(f, a, b) ? opjit_ir_index(f, 0) : 0;
}

static ir_ref simplify_mul(ir_func *f, ir_ref a, ir_ref b)
{
    const int64_t k = ir_index_value(f, b);
    int64_t product;
    if (k == 0)
        return opjit_ir_index(f, 0);
    if (k == 1)
        return a;
    if (ir_at(f, a)->op == IR_IMUL && checked_muli(ir_index_value(f, ir_operand(f, a, 1)), k, &product))
        return ir_make2(f, IR_IMUL, IR_INDEX, ir_operand(f, a, 0), opjit_ir_index(f, product));
    return 0;
}

/* Quotient or rest of y * k + c by k, c being one of the rests; 0: x is no such sum. */
static ir_ref divide_multiple(ir_func *f, ir_op op, ir_ref x, int64_t k)
{
    ir_ref product = x;
    int64_t rest = 0;
    if (ir_at(f, x)->op == IR_IADD && is_const(f, ir_operand(f, x, 1))) {
        product = ir_operand(f, x, 0);
        rest = ir_index_value(f, ir_operand(f, x, 1));
    }
    if (ir_at(f, product)->op != IR_IMUL || ir_index_value(f, ir_operand(f, product, 1)) != k || rest < 0 || rest >= k)
        return 0;
    return op == IR_IDIV ? ir_operand(f, product, 0) : op == IR_IMOD ? opjit_ir_index(f, rest) : 0;
}

/* idiv, imod, down and up of x by a constant: 0 where a dimension leaves a stage no iteration that would compute it. */
static ir_ref simplify_quotient(ir_func *f, ir_op op, ir_ref x, ir_ref by)
{
    const int64_t k = ir_index_value(f, by);
    const ir_interval i = opjit_ir_interval(f, x);
    if (k < 1)
        return 0;
    if (k == 1)
        return op == IR_IMOD ? opjit_ir_index(f, 0) : x;
    if (i.lo >= 0 && i.hi < k && op == IR_IMOD)
        return x;
    if (i.lo >= 0 && i.hi < k && (op == IR_IDIV || op == IR_DOWN))
        return opjit_ir_index(f, 0);
    const bool one = f->phase >= IR_COLLAPSED && i.lo >= 0 && i.hi < INT64_MAX && i.lo / k == i.hi / k;
    if (one && op == IR_IMOD) /* before that a remainder may meet its quotient again, as a coordinate of a view */
        return plus_constant(f, x, -(i.lo / k * k));
    if ((op == IR_DOWN || op == IR_UP) && opjit_ir_divisor(f, x) % (uint64_t)k == 0)
        return x;
    return divide_multiple(f, op, x, k);
}

/* imin, imax and clamp whose operands have a known order. */
static ir_ref simplify_choice(ir_func *f, ir_op op, const ir_ref *operands)
{
    const ir_ref x = operands[0], y = operands[1];
    if (op == IR_CLAMP) {
        const ir_ref hi = operands[2];
        if (opjit_ir_at_most(f, hi, x) || opjit_ir_at_most(f, hi, y))
            return hi;
        if (opjit_ir_at_most(f, x, y))
            return ir_make2(f, IR_IMIN, IR_INDEX, y, hi);
        return opjit_ir_at_most(f, y, x) ? ir_make2(f, IR_IMIN, IR_INDEX, x, hi) : 0;
    }
    if (opjit_ir_at_most(f, x, y))
        return op == IR_IMIN ? x : y;
    if (opjit_ir_at_most(f, y, x))
        return op == IR_IMIN ? y : x;
    /* imin(imin(x, a), b) is imin(x, b), as b is below a here; likewise imax. */
    if (is_const(f, y) && ir_at(f, x)->op == op && is_const(f, ir_operand(f, x, 1)))
        return ir_make2(f, op, IR_INDEX, ir_operand(f, x, 0), y);
    return 0;
}

static ir_ref simplify_index(ir_func *f, ir_op op, const ir_ref *operands)
{
    switch (op) {
    case IR_IADD: return simplify_add(f, operands[0], operands[1]);
    case IR_ISUB: return simplify_sub(f, operands[0], operands[1]);
    case IR_IMUL: return simplify_mul(f, operands[0], operands[1]);
    case IR_IDIV:
    case IR_IMOD:
    case IR_DOWN:
    case IR_UP: return simplify_quotient(f, op, operands[0], operands[1]);
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP: return simplify_choice(f, op, operands);
    default: return 0;
    }
}

/* --- bool ------------------------------------------------------------------------------------------------------- */

/* The comparison that is true exactly where r is false; 0: there is none (floats: a NaN makes both lt and le false). */
static ir_ref negated_comparison(ir_func *f, ir_ref r)
{
    const ir_op op = (ir_op)ir_at(f, r)->op;
    if (op != IR_EQ && op != IR_NE && op != IR_LT && op != IR_LE)
        return 0;
    const ir_ref a = ir_operand(f, r, 0), b = ir_operand(f, r, 1);
    const bool ordered = !ir_is_float((ir_type)ir_at(f, a)->type);
    if (op == IR_EQ || op == IR_NE)
        return ir_make2(f, op == IR_EQ ? IR_NE : IR_EQ, IR_BOOL, a, b);
    return ordered ? ir_make2(f, op == IR_LT ? IR_LE : IR_LT, IR_BOOL, b, a) : 0;
}

static ir_ref simplify_not(ir_func *f, ir_ref a)
{
    return ir_at(f, a)->op == IR_NOT ? ir_operand(f, a, 0) : negated_comparison(f, a);
}

static ir_ref simplify_bool(ir_func *f, ir_op op, ir_ref a, ir_ref b)
{
    if (is_const(f, a)) {
        const ir_ref swap = a;
        a = b;
        b = swap;
    }
    if (is_const(f, b)) {
        const bool value = ir_at(f, b)->imm != 0;
        switch (op) {
        case IR_AND: return value ? a : b;
        case IR_OR: return value ? b : a;
        default: return value ? ir_make1(f, IR_NOT, IR_BOOL, a) : a;
        }
    }
    if (opjit_ir_same(f, a, b))
        return op == IR_XOR ? boolean(f, false) : a;
    return 0;
}

/* Comparisons of indices. */
static ir_ref simplify_comparison(ir_func *f, ir_op op, const ir_ref *operands)
{
    int64_t distance;
    if (opjit_ir_distance(f, operands[0], operands[1], &distance)) {
        switch (op) {
        case IR_EQ: return boolean(f, distance == 0);
        case IR_NE: return boolean(f, distance != 0);
        case IR_LT: return boolean(f, distance < 0);
        default: return boolean(f, distance <= 0);
        }
    }
    const ir_interval a = opjit_ir_interval(f, operands[0]), b = opjit_ir_interval(f, operands[1]);
    if (a.lo > a.hi || b.lo > b.hi)
        return 0;
    const bool apart = a.hi < b.lo || b.hi < a.lo;
    switch (op) {
    case IR_EQ: return apart ? boolean(f, false) : 0;
    case IR_NE: return apart ? boolean(f, true) : 0;
    case IR_LT: return a.hi < b.lo ? boolean(f, true) : b.hi <= a.lo ? boolean(f, false) : 0;
    default: return a.hi <= b.lo ? boolean(f, true) : b.hi < a.lo ? boolean(f, false) : 0;
    }
}

static ir_ref simplify_select(ir_func *f, ir_ref c, ir_ref a, ir_ref b)
{
    if (is_const(f, c))
        return ir_at(f, c)->imm != 0 ? a : b;
    if (opjit_ir_same(f, a, b))
        return a;
    if (ir_at(f, c)->op == IR_NOT)
        return ir_make3(f, IR_SELECT, IR_NONE, ir_operand(f, c, 0), b, a);
    if (ir_at(f, a)->type == IR_BOOL && is_const(f, a) && is_const(f, b)) /* they differ: true, false or the reverse */
        return ir_at(f, a)->imm != 0 ? c : ir_make1(f, IR_NOT, IR_BOOL, c);
    return 0;
}

/* Whether a bool as a number is 0, or is not, is said by the bool.  0: it is no such comparison. */
static ir_ref simplify_truth(ir_func *f, ir_op op, ir_ref x, ir_ref zero)
{
    if ((op != IR_NE && op != IR_EQ) || !is_const(f, zero) || ir_at(f, zero)->imm != 0 || ir_at(f, x)->op != IR_CAST)
        return 0;
    const ir_ref value = ir_operand(f, x, 0);
    if (ir_at(f, value)->type != IR_BOOL)
        return 0;
    return op == IR_NE ? value : ir_make1(f, IR_NOT, IR_BOOL, value);
}

/* A comparison or conversion of a select between constants is itself a select between constants, or the condition. */
static ir_ref simplify_chosen(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands)
{
    ir_ref arms[2], condition = 0;
    for (uint32_t arm = 0; arm < 2; arm++) {
        ir_ref chosen[2];
        for (uint32_t i = 0; i < count; i++) {
            const bool choice = ir_at(f, operands[i])->op == IR_SELECT;
            chosen[i] = choice ? ir_operand(f, operands[i], 1 + arm) : operands[i];
            if (choice && condition != 0 && condition != ir_operand(f, operands[i], 0))
                return 0;
            condition = choice ? ir_operand(f, operands[i], 0) : condition;
        }
        arms[arm] = condition == 0 ? 0 : fold_constants(f, op, type, count, chosen);
        if (arms[arm] == 0)
            return 0;
    }
    return ir_make3(f, IR_SELECT, IR_NONE, condition, arms[0], arms[1]);
}

/* --- sequences that are exact in floats -------------------------------------------------------------------------- */

/* The largest whole number up to which all whole numbers are values of the type. */
static int64_t exact_limit(ir_type type)
{
    return type == IR_F32 ? (int64_t)1 << 24 : type == IR_F64 ? (int64_t)1 << 53 : 0;
}

static double constant_value(const ir_func *f, ir_ref node)
{
    const uint64_t bits = ir_at(f, node)->imm;
    const uint32_t low = (uint32_t)bits;
    float narrow;
    double wide;
    memcpy(&narrow, &low, sizeof narrow);
    memcpy(&wide, &bits, sizeof wide);
    return ir_at(f, node)->type == IR_F32 ? (double)narrow : wide;
}

/* Whether the constant is a whole number within the limit; -0 is none. */
static bool is_whole(const ir_func *f, ir_ref node, int64_t *out)
{
    const int64_t limit = exact_limit((ir_type)ir_at(f, node)->type);
    if (!is_const(f, node) || limit == 0)
        return false;
    const double value = constant_value(f, node);
    if (!(value >= -(double)limit && value <= (double)limit) || value != (double)(int64_t)value)
        return false;
    *out = (int64_t)value;
    return *out != 0 || !signbit(value);
}

/* Whether d * x + s and every intermediate step are whole numbers of the type, for d above 0 or, if a zero is added,
 * any d except 0 (a product may be -0). */
static bool is_exact(const ir_func *f, ir_type type, ir_ref x, int64_t d, int64_t s)
{
    const ir_interval i = opjit_ir_interval(f, x);
    const int64_t limit = exact_limit(type), ends[2] = { i.lo, i.hi };
    for (uint32_t k = 0; k < 2; k++) {
        int64_t product, sum;
        if (!checked_muli(ends[k], d, &product) || !checked_addi(product, s, &sum) || product < -limit ||
            product > limit || sum < -limit || sum > limit)
            return false;
    }
    return d != 0;
}

static ir_ref sequence(ir_func *f, ir_type type, ir_ref x, int64_t d, int64_t s)
{
    x = ir_make2(f, IR_IMUL, IR_INDEX, x, opjit_ir_index(f, d));
    return ir_make1(f, IR_ELEM, type, ir_make2(f, IR_IADD, IR_INDEX, x, opjit_ir_index(f, s)));
}

/* The difference or sum of two indices as elements, if none of the three is rounded.  Equal ones differ by 0, which is
 * not -0 in either form. */
static ir_ref sequence_of_both(ir_func *f, ir_op op, ir_type type, const ir_ref *operands)
{
    ir_ref x[2];
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = ir_at(f, operands[i])->op == IR_ELEM ? ir_operand(f, operands[i], 0) : 0;
        if (x[i] == 0 || !is_exact(f, type, x[i], 1, 0))
            return 0;
    }
    const ir_ref index = ir_make2(f, op == IR_ADD ? IR_IADD : IR_ISUB, IR_INDEX, x[0], x[1]);
    return index != 0 && is_exact(f, type, index, 1, 0) ? ir_make1(f, IR_ELEM, type, index) : 0;
}

/* Whether elem(x) * d is exact: the bits of both factors fit, and d is far from the limits of the exponent. */
static bool product_is_exact(const ir_func *f, ir_type type, ir_ref x, ir_ref d)
{
    const ir_interval i = opjit_ir_interval(f, x);
    const int64_t limit = exact_limit(type);
    int exponent;
    if (!is_const(f, d) || limit == 0 || !isfinite(constant_value(f, d)))
        return false;
    const double fraction = frexp(constant_value(f, d), &exponent);
    for (int bits = 1; bits < 53; bits++) {
        const double whole = ldexp(fraction, bits);
        const int64_t most = limit >> bits;
        if (whole == trunc(whole))
            return fraction != 0 && exponent > -64 && exponent < 64 && i.lo >= -most && i.hi <= most;
    }
    return false;
}

/* Sums and products of an element that is an index: computes with the index if nothing is rounded; if only the product
 * is exact, fma is a product and a sum. */
static ir_ref simplify_sequence(ir_func *f, ir_op op, ir_type type, const ir_ref *operands)
{
    const uint32_t at = ir_at(f, operands[0])->op == IR_ELEM ? 0 : 1;
    const ir_ref elem = operands[at], other = operands[1 - at];
    int64_t d, s;
    const ir_ref both = op == IR_ADD || op == IR_SUB ? sequence_of_both(f, op, type, operands) : 0;
    if (both != 0 || op == IR_SUB || ir_at(f, elem)->op != IR_ELEM)
        return both;
    const ir_ref x = ir_operand(f, elem, 0);
    if (op == IR_MUL)
        return is_whole(f, other, &d) && d > 0 && is_exact(f, type, x, d, 0) ? sequence(f, type, x, d, 0) : 0;
    if (op == IR_ADD)
        return is_whole(f, other, &s) && is_exact(f, type, x, 1, s) ? sequence(f, type, x, 1, s) : 0;
    if (is_whole(f, other, &d) && is_whole(f, operands[2], &s) && is_exact(f, type, x, d, s))
        return sequence(f, type, x, d, s);
    if (!product_is_exact(f, type, x, other))
        return 0;
    return ir_make2(f, IR_ADD, type, ir_make2(f, IR_MUL, type, elem, other), operands[2]);
}

/* exp(x + 0) and exp(x + 0 - y) without the zero, which only turns -0 into 0; exp is 1 for both. */
static ir_ref simplify_exp(ir_func *f, ir_type type, ir_ref x)
{
    const ir_node *n = ir_at(f, x);
    const ir_ref sum = n->op == IR_SUB ? ir_operand(f, x, 0) : x;
    if ((n->op != IR_SUB && n->op != IR_ADD) || ir_at(f, sum)->op != IR_ADD)
        return 0;
    const ir_ref a = ir_operand(f, sum, 0), b = ir_operand(f, sum, 1);
    const bool first = is_const(f, a) && ir_at(f, a)->imm == 0;
    if (!first && !(is_const(f, b) && ir_at(f, b)->imm == 0))
        return 0;
    const ir_ref rest = first ? b : a;
    return ir_make1(f, IR_EXP, type, sum == x ? rest : ir_make2(f, IR_SUB, type, rest, ir_operand(f, x, 1)));
}

/* What a min or max of floats reads whose constant is no nearer than an end of the type, which the conversion to that
 * type saturates to; so a NaN stays one, and becomes 0.  0: it is none. */
static ir_ref simplify_clip(const ir_func *f, ir_type type, ir_ref x)
{
    const ir_node *n = ir_at(f, x);
    const uint32_t bits = 8 * opjit_ir_type_size(type);
    if ((n->op != IR_MIN && n->op != IR_MAX) || !ir_is_float((ir_type)n->type) || !ir_is_integer(type) ||
        bits > 16 || !is_const(f, ir_operand(f, x, 1)))
        return 0;
    const double all = (double)(1 << bits), lo = ir_is_signed(type) ? -all / 2 : 0;
    const double end = constant_value(f, ir_operand(f, x, 1));
    return (n->op == IR_MIN ? end >= lo + all - 1 : end <= lo) ? ir_operand(f, x, 0) : 0;
}

/* --- one node --------------------------------------------------------------------------------------------------- */

/* x of x * 1: the same bits, as a NaN that arithmetic makes may be any.  0: neither operand is 1. */
static ir_ref simplify_product(const ir_func *f, ir_type type, const ir_ref *operands)
{
    const uint64_t one = opjit_ir_identity(type, IR_PROD);
    for (uint32_t i = 0; i < 2; i++)
        if (ir_at(f, operands[i])->op == IR_CONST && ir_at(f, operands[i])->imm == one)
            return operands[1 - i];
    return 0;
}

static ir_ref simplify_copy(ir_func *f, ir_op op, ir_type type, const ir_ref *operands)
{
    return ir_at(f, operands[0])->type == type ? operands[0] : simplify_chosen(f, op, type, 1, operands);
}

ir_ref opjit_ir_simplify(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands)
{
    for (uint32_t i = 0; i < count; i++)
        if (operands[i] == 0)
            return 0; /* out of memory: the operands are incomplete */
    const ir_ref constant = fold_constants(f, op, type, count, operands);
    if (constant != 0 || count == 0)
        return constant;
    const bool is_bool = ir_at(f, operands[0])->type == IR_BOOL;
    switch (op) {
    case IR_AND:
    case IR_OR:
    case IR_XOR: return is_bool ? simplify_bool(f, op, operands[0], operands[1]) : 0;
    case IR_NOT: return is_bool ? simplify_not(f, operands[0]) : 0;
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: {
        if (ir_at(f, operands[0])->type == IR_INDEX)
            return simplify_comparison(f, op, operands);
        const ir_ref truth = simplify_truth(f, op, operands[0], operands[1]);
        return truth != 0 ? truth : simplify_chosen(f, op, type, count, operands);
    }
    case IR_SELECT: return simplify_select(f, operands[0], operands[1], operands[2]);
    case IR_EXP: return simplify_exp(f, type, operands[0]);
    case IR_CAST: {
        const ir_ref x = simplify_clip(f, type, operands[0]);
        return x != 0 ? ir_make1(f, op, type, x) : simplify_copy(f, op, type, operands);
    }
    case IR_BITS: return simplify_copy(f, op, type, operands);
    case IR_MUL: {
        const ir_ref x = simplify_product(f, type, operands);
        return x != 0 ? x : simplify_sequence(f, op, (ir_type)ir_at(f, operands[0])->type, operands);
    }
    case IR_ADD:
    case IR_SUB:
    case IR_FMA: return simplify_sequence(f, op, (ir_type)ir_at(f, operands[0])->type, operands);
    default: return simplify_index(f, op, operands);
    }
}

ir_ref opjit_ir_make(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands)
{
    if (f->failed)
        return 0;
    const ir_ref simpler = opjit_ir_simplify(f, op, type, count, operands);
    return simpler != 0 || f->failed ? simpler : opjit_ir_expr(f, op, type, count, operands);
}
