/* SPDX-License-Identifier: Apache-2.0 */
/* analysis.h - what is known of index expressions without running them: the only implementation of each kind of
 * reasoning, for passes, the verifier and code generation.
 *
 * Everything here takes a function and one of its expressions; nothing recurses without a bound, and nothing fails
 * for lack of memory.  Only simplification, opjit_ir_affine_build and opjit_ir_linear append nodes.  An answer is
 * exact, or it is "not known": false, 1, or the ends of int64.  A let stands for its value, which may be evaluated
 * earlier than where it is read; so an answer about an expression that loads memory holds where its lets are
 * evaluated. */
#ifndef OPJIT_IR_ANALYSIS_ANALYSIS_H
#define OPJIT_IR_ANALYSIS_ANALYSIS_H

#include "ir/ir.h"

/* The value of the let that expr reads; else expr itself. */
static inline ir_ref ir_let_value(const ir_func *f, ir_ref expr)
{
    const ir_node *n = ir_at(f, expr);
    return n->op == IR_GET && ir_at(f, n->ref)->op == IR_LET ? ir_operand(f, n->ref, 0) : expr;
}

/* --- simplification (simplify.c) ---------------------------------------------------------------------------------- */
/* As opjit_ir_make, but 0 if nothing can be simplified. */
ir_ref opjit_ir_simplify(ir_func *f, ir_op op, ir_type type, uint32_t count, const ir_ref *operands);

/* --- intervals (interval.c, prove.c) ----------------------------------------------------------------------------- */

typedef struct ir_interval {
    int64_t lo, hi;
} ir_interval; /* both ends included; lo > hi: never evaluated */
/* Of an index expression, from the bounds of the loops and definitions that own its variables; saturates at the ends of
 * int64 (a saturated end means: may overflow). */
ir_interval opjit_ir_interval(const ir_func *f, ir_ref index_expr);
/* From now on the interval of each node that f has is computed once, as long as the arena has the table.  For functions
 * whose statements no longer change: new nodes may be appended.  Without memory f has failed. */
void opjit_ir_keep_intervals(ir_func *f, rt_arena *arena);
/* How many values an element of a DEF that reduces, and does not scan, is made of: at most. */
int64_t opjit_ir_reduced_most(const ir_func *f, ir_ref reduce);
/* Of a bool expression by intervals: 0 false, 1 true, -1 unknown. */
int opjit_ir_decide(const ir_func *f, ir_ref bool_expr);
/* Whether the index expression is in [0, size) by its interval. */
bool opjit_ir_within(const ir_func *f, ir_ref index_expr, uint64_t size);
/* Whether all coordinates of a load or store are inside of its tensor by their intervals, whatever selects choose. */
bool opjit_ir_in_bounds(const ir_func *f, ir_ref access);

/* --- elements (limits.c) ------------------------------------------------------------------------------------------ */

typedef struct ir_limits {
    double lo, hi;
} ir_limits; /* both ends included */
/* Of an expression of elements in value form; defs: by tensor, the DEF that makes it, or 0.  false: not known, or it
 * may be a NaN or infinite.  What constants hold counts only where it is part of the function. */
bool opjit_ir_limits(const ir_func *f, const ir_ref *defs, ir_ref expr, ir_limits *out);

/* --- sums (linear.c) ---------------------------------------------------------------------------------------------- */

/* Walks an index expression as a sum of factor * term.  Every other form below is this walk with a rule for what is a
 * term:
 *     opjit_ir_terms_begin(&t, f, expr, 1);
 *     while (opjit_ir_terms_next(&t))
 *         if (!opjit_ir_terms_open(&t))
 *             ... t.factor * t.expr is a term of the sum ...
 * Terms come in the order of the text. */
enum { IR_TERMS_PENDING = 64 };
typedef struct ir_terms {
    const ir_func *f;
    ir_ref expr; /* the part of the sum that the walk is at, and how often it is added */
    int64_t factor;
    uint32_t depth, budget;
    struct {
        ir_ref expr;
        int64_t factor;
    } pending[IR_TERMS_PENDING];
} ir_terms;
void opjit_ir_terms_begin(ir_terms *t, const ir_func *f, ir_ref expr, int64_t factor);
bool opjit_ir_terms_next(ir_terms *t); /* false: the sum has no more parts */
/* Goes on with the operands of a sum, a difference, or a product by a constant; false: t->expr is none of these, or has
 * to stay a term, since a factor would overflow or there is no room. */
bool opjit_ir_terms_open(ir_terms *t);
bool opjit_ir_terms_put(ir_terms *t, ir_ref value); /* goes on with value in place of t->expr */

/* constant + sum of factors[i] * atoms[i] */
enum { IR_AFFINE_TERMS = 16 };
typedef struct ir_affine {
    int64_t constant;
    uint32_t count;
    int64_t factors[IR_AFFINE_TERMS]; /* none is 0 */
    ir_ref atoms[IR_AFFINE_TERMS];    /* anything but constants, sums, differences and constant multiples */
} ir_affine;
/* *out += factor * expr; false where a number overflows or there are too many terms (*out is then unusable). */
bool opjit_ir_affine_add(const ir_func *f, ir_affine *out, ir_ref expr, int64_t factor);
/* The same with the value in place of each let. */
bool opjit_ir_affine_add_values(const ir_func *f, ir_affine *out, ir_ref expr, int64_t factor);
/* The same of a sum. */
bool opjit_ir_affine_add_sum(const ir_func *f, ir_affine *out, const ir_affine *sum, int64_t factor);
/* Takes the term of atom out of *form and gives its factor, 0 where there is none. */
int64_t opjit_ir_affine_take(const ir_func *f, ir_affine *form, ir_ref atom);
void opjit_ir_affine_remove(ir_affine *form, uint32_t i);        /* term i; the order of the others stays */
ir_ref opjit_ir_affine_build(ir_func *f, const ir_affine *form); /* as an expression */
/* Whether a - b is the same number whatever the variables are, and that number. */
bool opjit_ir_distance(const ir_func *f, ir_ref a, ir_ref b, int64_t *out);
/* Whether expr is one constant after cancelling equal terms, through lets: "x - x + 3". */
bool opjit_ir_is_constant(const ir_func *f, ir_ref expr, int64_t *out);

/* --- one variable (linear.c) -------------------------------------------------------------------------------------- */

/* Whether expr may have another value for another var, through lets; loads of memory that is written, and
 * accumulators, may. */
bool opjit_ir_varies(const ir_func *f, ir_ref expr, ir_ref var);

/* A variable, and what depends on it: as opjit_ir_varies finds, or as code generation has noted by node. */
typedef struct ir_moving {
    const ir_func *f;
    ir_ref var;
    bool (*varies)(const struct ir_moving *m, ir_ref expr); /* NULL: opjit_ir_varies */
    ir_ref (*value)(const struct ir_moving *m, ir_ref get); /* of the let that is read, 0: not known; NULL: any let's */
} ir_moving;
/* The same as opjit_ir_varies in a loop that changes no memory that expr reads: for ir_moving.varies. */
bool opjit_ir_depends(const ir_moving *m, ir_ref expr);
/* expr = *factor * var + something that does not vary; false: not so. */
bool opjit_ir_factor_of(const ir_moving *m, ir_ref expr, int64_t *factor);
static inline bool opjit_ir_factor(const ir_func *f, ir_ref expr, ir_ref var, int64_t *factor)
{
    return opjit_ir_factor_of(&(ir_moving){ .f = f, .var = var }, expr, factor);
}
/* The same with the rest as an expression, which does not vary with var. */
typedef struct ir_linear {
    int64_t factor;
    ir_ref rest;
} ir_linear;
bool opjit_ir_linear(ir_func *f, ir_ref expr, ir_ref var, ir_linear *out); /* false: not of that form; appends nodes */
/* Elements that a load or store moves by when var moves by one (false: not by a constant), and whether an expression
 * is factor * var + rest.  Both look only at what reads var itself: for loops without lets of indices. */
bool opjit_ir_step(const ir_func *f, ir_ref access, ir_ref var, int64_t *out);
/* The same of an access that may move by a size, an expression of parameters, times a constant. */
typedef struct ir_pace {
    int64_t step;
    ir_ref size; /* 0: none */
} ir_pace;
bool opjit_ir_pace_add(const ir_moving *m, ir_ref expr, int64_t factor, ir_pace *io); /* false: not of that form */
bool opjit_ir_pace_of(const ir_func *f, ir_ref access, ir_ref var, ir_pace *out);
bool opjit_ir_is_affine(const ir_func *f, ir_ref index_expr, ir_ref var);

/* expr = (var / divide) % modulo + offset: one digit of a number that a loop counts.  modulo 0: the highest. */
typedef struct ir_digit {
    int64_t divide, modulo, offset;
} ir_digit;
bool opjit_ir_digit(const ir_func *f, ir_ref expr, ir_ref var, ir_digit *out); /* false: not of that form */
/* Whether all coordinates of a load that move with var are such digits. */
bool opjit_ir_moves_by_digits(const ir_func *f, ir_ref load, ir_ref var);

/* A sum of whole * (var / divisor), rest * (var % divisor) and terms that do not vary: elements that alternate
 * between a few rows.  scale: a size that the rest is multiplied by, too; 0: none. */
typedef struct ir_turns {
    int64_t divisor /* 0: none yet */, whole, rest;
    ir_ref scale;
} ir_turns;
/* *io += factor * expr; false: not of that form. */
bool opjit_ir_turns_add(const ir_moving *m, ir_ref expr, int64_t factor, ir_turns *io);

/* The largest power of two known to divide an index expression (2^62 for 0); looks through lets (divisor.c). */
uint64_t opjit_ir_divisor(const ir_func *f, ir_ref index_expr);

/* --- order (order.c, prove.c, span.c), cheap ones first ----------------------------------------------------------- */

/* What b - a is by cancelling equal terms, or else by intervals; an end of int64: not known. */
ir_interval opjit_ir_gap(const ir_func *f, ir_ref a, ir_ref b);
bool opjit_ir_at_most(const ir_func *f, ir_ref a, ir_ref b);      /* a <= b by their gap */
int64_t opjit_ir_longest(const ir_func *f, ir_ref lo, ir_ref hi); /* most of hi - lo; INT64_MAX: not known */
/* Whether hi - lo is `length` or more, always. */
bool opjit_ir_at_least(const ir_func *f, ir_ref lo, ir_ref hi, int64_t length);
bool opjit_ir_runs_never(const ir_func *f, ir_ref lo, ir_ref hi); /* whether [lo, hi) is empty */
/* a <= b by the shape of bounds: chains of clamp, imin and imax through lets, as split and schedule make them. */
bool opjit_ir_ordered(const ir_func *f, ir_ref a, ir_ref b);
/* The most that hi - lo can be, by intervals and by what clamps, choices and roundings are made of; false: unknown. */
bool opjit_ir_span(const ir_func *f, ir_ref lo, ir_ref hi, int64_t *out);
/* Whether a <= b + slack is proven wherever both are evaluated: a search, by all of the above and by the bounds of the
 * loops around.  false: not proven. */
bool opjit_ir_proves_le(const ir_func *f, ir_ref a, ir_ref b, int64_t slack);
/* The same by a search that ends after so many sums, at most IR_SUMS. */
enum { IR_SUMS = 128 };
bool opjit_ir_proves_within(const ir_func *f, ir_ref a, ir_ref b, int64_t slack, uint32_t sums);
/* What a remainder with one quotient is its operand less; -1: it may have several, or r is none. */
int64_t opjit_ir_only_multiple(const ir_func *f, ir_ref r);
/* Whether the intervals of its terms say that a sum is at most 0: the first step of that search. */
bool opjit_ir_sum_is_at_most_0(const ir_func *f, const ir_affine *sum);

#endif
