/* SPDX-License-Identifier: Apache-2.0 */
/* cg_loops.h - shared by the tests of loops: bounds of every form, targets, and short names for what builds IR. */
#ifndef OPJIT_TESTS_UNIT_CG_LOOPS_H
#define OPJIT_TESTS_UNIT_CG_LOOPS_H

#include "tests/unit/codegen/cg_harness.h"

#include <stdio.h>

enum { COLUMNS = 80, ROWS = 5, MAX_TRIP = 70 };

typedef enum bounds { STATIC, LATE_HI, LATE_LO, SEAM, FROM_ROW, BOUNDS } bounds;

static const char *const targets[] = {
    "cpu:x86-64-v1",   "cpu:x86-64-v2",          "cpu:x86-64-v3",          "cpu:x86-64-v4", "cpu:aarch64",
    "cpu:aarch64+sve", "cpu:aarch64+sve,vec=32", "cpu:aarch64+sve,vec=64", "cpu:rv64gc",    "cpu:rv64gc+zba+zbb",
    "cpu:rv64gcv",     "cpu:rv64gcv,vec=32",     "cpu:rv64gcv+zbb,vec=64"
};
enum { TARGETS = sizeof(targets) / sizeof(targets[0]) };

static inline ir_ref c(ir_func *f, int64_t v)
{
    return opjit_ir_index(f, v);
}
static inline ir_ref e1(ir_func *f, ir_op op, ir_type t, ir_ref a)
{
    return ir_expr1(f, op, t, a);
}
static inline ir_ref e2(ir_func *f, ir_op op, ir_ref a, ir_ref b)
{
    return ir_expr2(f, op, IR_NONE, a, b);
}

/* The bounds [lo, hi) of a loop of up to `trips` iterations in row p; parameter 1 is the late number. */
static inline void loop_bounds(ir_func *f, bounds form, uint32_t trips, uint32_t lanes, ir_ref p, ir_ref *lo,
                               ir_ref *hi)
{
    const ir_ref k = opjit_ir_param(f, 1), trip = c(f, trips);
    *lo = c(f, 0);
    *hi = trip;
    if (form == LATE_HI)
        *hi = ir_expr3(f, IR_CLAMP, IR_NONE, k, c(f, 0), trip);
    if (form == LATE_LO)
        *lo = ir_expr3(f, IR_CLAMP, IR_NONE, k, c(f, 0), trip);
    if (form == SEAM) {
        *lo = ir_expr3(f, IR_CLAMP, IR_NONE, e2(f, IR_DOWN, e2(f, IR_IADD, p, k), c(f, lanes)), c(f, 0), trip);
        *hi = ir_expr3(f, IR_CLAMP, IR_NONE, e2(f, IR_UP, e2(f, IR_IADD, p, k), c(f, lanes)), c(f, 0), trip);
    }
    if (form == FROM_ROW) {
        *lo = e2(f, IR_IADD, p, c(f, 2));
        *hi = e2(f, IR_IMAX, *lo, e2(f, IR_IADD, p, trip));
    }
}

#endif
