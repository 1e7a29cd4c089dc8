/* SPDX-License-Identifier: Apache-2.0 */
/* range.h - floats with more than one right value.  Each operation of a formula rounds once and has one result; a
 * mathematical function may be off by its bound, and what is computed from it by a little more.  A range holds all
 * results that are allowed; it is a single number as long as only operations made it. */
#ifndef OPJIT_TESTS_REFERENCE_RANGE_H
#define OPJIT_TESTS_REFERENCE_RANGE_H

#include <stdbool.h>

typedef struct ref_range {
    double lo, hi; /* both NaN: NaN; lo alone: that, or a number up to hi */
} ref_range;

/* What it is computed in: FLOAT32, where doubles are rounded after each operation, or FLOAT64. */
typedef struct ref_floats {
    bool is_double;
} ref_floats;

double ref_round(ref_floats f, double value);
ref_range ref_exactly(double value);
ref_range ref_add(ref_floats f, ref_range a, ref_range b);
ref_range ref_sub(ref_floats f, ref_range a, ref_range b);
ref_range ref_mul(ref_floats f, ref_range a, ref_range b);
ref_range ref_div(ref_floats f, ref_range a, ref_range b);
/* (a > b or a is NaN) ? a : b, and with < */
ref_range ref_max(ref_range a, ref_range b);
ref_range ref_min(ref_range a, ref_range b);
/* function(x), which must be increasing where x is more than one number, with the margin that functions are allowed. */
ref_range ref_function(ref_floats f, long double (*function)(long double), ref_range x);
ref_range ref_function2(ref_floats f, long double (*function)(long double, long double), double x, double y);

#endif
