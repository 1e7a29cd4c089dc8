/* SPDX-License-Identifier: Apache-2.0 */
/* guards.h - what is known at a position of a function: by the loops around it, and by the selects around it. */
#ifndef OPJIT_IR_VERIFY_GUARDS_H
#define OPJIT_IR_VERIFY_GUARDS_H

#include "ir/verify/verifier.h"

enum { GUARDS = 24 };

/* A fact that holds where the position is evaluated: expr is at least `least`.  sum: expr, lets are what they stand
 * for; var: a variable in it, or another term; divisor: that of a quotient in it, 1: none. */
typedef struct guard {
    ir_ref expr, var;
    int64_t least, divisor;
    ir_affine sum;
} guard;

typedef struct comparison { /* less + strict <= more */
    ir_ref less, more;
    int64_t strict;
    uint32_t below, above; /* of which operands of more, of less, it has said what it says */
} comparison;

typedef struct guards {
    guard at_least[GUARDS];
    ir_affine not_zero[GUARDS];
    comparison choices[GUARDS]; /* with a value that is selected */
    uint32_t count, zero_count, choice_count, changes;
    uint32_t learned; /* changes that conclusions were drawn from */
    bool conditional; /* selects say some of it, not loops alone */
} guards;

typedef struct bounds {
    verifier *v;
    guards known;
    uint32_t steps; /* left for the proof of one coordinate */
    uint32_t sums;  /* that each search of it may look at */
} bounds;

/* guards.c: the loops around the position; a condition that is `truth` there; what follows from those together, which
 * takes longer than most proofs, false: nothing that was not known. */
void opjit_ir_guards_assume_loops(bounds *b);
void opjit_ir_guards_assume(bounds *b, ir_ref condition, bool truth);
bool opjit_ir_guards_learn(bounds *b);

/* a - b: lets are what they stand for, remainders that have one quotient are differences.  false: it has too many
 * terms. */
bool opjit_ir_guards_difference(const ir_func *f, ir_affine *out, ir_ref a, ir_ref b);

/* holds.c: whether a <= c + slack is proven, by so many guards at most. */
bool opjit_ir_guards_prove(bounds *b, ir_ref a, ir_ref c, int64_t slack, uint32_t count);

#endif
