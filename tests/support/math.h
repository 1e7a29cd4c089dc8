/* SPDX-License-Identifier: Apache-2.0 */
/* math.h - measures how far results of mathematical functions are from the exact ones, in units of the last place
 * (ulps).  MPFR decides.  If the C library's double suffices to show that an f32 result is well within the bound, it is
 * used first, because it is faster. */
#ifndef OPJIT_TESTS_SUPPORT_MATH_H
#define OPJIT_TESTS_SUPPORT_MATH_H

#include "ir/ir.h"

typedef struct test_math {
    ir_op op;
    double bound_f32, bound_f64; /* ulps that ir/README.md states */
    double lo, hi;               /* where the function is neither constant nor plain x */
} test_math;

extern const test_math test_math_functions[];
enum { TEST_MATH_COUNT = 19 };

/* The error of got = f(x, y) in ulps of the exact result.  0 where both are NaN or the same infinity; infinite where
 * only one is, or where a zero has the wrong sign.  A result that rounds to infinity counts as 2^128 (2^1024). */
double test_math_error_f32(const test_math *f, float x, float y, float got);
double test_math_error_f64(const test_math *f, double x, double y, double got);
/* As test_math_error_f32, but with the C library's function for doubles, whose own error, below 0.001 here, is
 * ignored. */
double test_math_estimate_f32(const test_math *f, float x, float y, float got);

/* Whether got is the C library's double, rounded. */
bool test_math_rounded_f32(const test_math *f, float x, float got);

#endif
