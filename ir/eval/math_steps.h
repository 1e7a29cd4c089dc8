/* SPDX-License-Identifier: Apache-2.0 */
/* math_steps.h - mathematical functions as sequences of simpler ops: what the files math_*.c are written with.  Others
 * use math.h.
 *
 * Each function is written once, as a C function that asks a `math` for one op after the other.  A math that evaluates
 * computes each result at once (arithmetic.c; for the interpreter and for folding); a math that records notes the ops,
 * from which pass expand makes nodes.  So both execute the same steps, and their results have the same bits by
 * construction.
 *
 * Sequences are straight-line code: no branches on values; both arms of a select are computed.  A function comes in
 * three grades:
 *   GRADE_F32    all in f32
 *   GRADE_SHORT  in f64, to about 2^-33: for f32 results, rounded once at the end
 *   GRADE_F64    in f64, within the bound that ir/README.md states */
#ifndef OPJIT_IR_EVAL_MATH_STEPS_H
#define OPJIT_IR_EVAL_MATH_STEPS_H

#include "ir/ir.h"

#include <string.h>

typedef enum math_grade { GRADE_F32, GRADE_SHORT, GRADE_F64, GRADE_COUNT } math_grade;

/* A value: its bits if the math evaluates, the number of its step if it records. */
typedef struct val {
    uint64_t bits;
    ir_type type;
} val;

typedef struct math_step {
    uint8_t op; /* IR_OP_NONE: operand number imm of the function */
    uint8_t type, count;
    uint32_t args[3]; /* steps */
    uint64_t imm;     /* CONST: bits */
} math_step;

typedef struct math {
    math_step *steps; /* NULL: evaluates */
    uint32_t count, capacity;
    bool failed; /* more steps than there is room for */
    bool below;  /* exp, recorded: its operand is at most 0 or a NaN, so that fewer steps give the same bits */
    bool scales; /* recorded: the target has IR_SCALE, which gives the same bits as the steps that it replaces */
} math;

enum { MATH_STEPS = 1024 /* room for the longest function */ };

val opjit_ir_math_op(math *m, ir_op op, ir_type type, uint32_t count, const val *args);
val opjit_ir_math_const(math *m, ir_type type, uint64_t bits);
val opjit_ir_math_operand(math *m, ir_type type, uint64_t bits, uint32_t number); /* an operand of the function */

/* --- ops -------------------------------------------------------------------------------------------------------- */

static inline val m_op1(math *m, ir_op op, val a)
{
    return opjit_ir_math_op(m, op, a.type, 1, &a);
}
static inline val m_op2(math *m, ir_op op, val a, val b)
{
    return opjit_ir_math_op(m, op, a.type, 2, (val[2]){ a, b });
}
static inline val m_add(math *m, val a, val b)
{
    return m_op2(m, IR_ADD, a, b);
}
static inline val m_sub(math *m, val a, val b)
{
    return m_op2(m, IR_SUB, a, b);
}
static inline val m_mul(math *m, val a, val b)
{
    return m_op2(m, IR_MUL, a, b);
}
static inline val m_div(math *m, val a, val b)
{
    return m_op2(m, IR_DIV, a, b);
}
static inline val m_min(math *m, val a, val b)
{
    return m_op2(m, IR_MIN, a, b);
}
static inline val m_max(math *m, val a, val b)
{
    return m_op2(m, IR_MAX, a, b);
}
static inline val m_and(math *m, val a, val b)
{
    return m_op2(m, IR_AND, a, b);
}
static inline val m_or(math *m, val a, val b)
{
    return m_op2(m, IR_OR, a, b);
}
static inline val m_xor(math *m, val a, val b)
{
    return m_op2(m, IR_XOR, a, b);
}
static inline val m_neg(math *m, val a)
{
    return m_op1(m, IR_NEG, a);
}
static inline val m_abs(math *m, val a)
{
    return m_op1(m, IR_ABS, a);
}
static inline val m_sqrt(math *m, val a)
{
    return m_op1(m, IR_SQRT, a);
}
static inline val m_rint(math *m, val a)
{
    return m_op1(m, IR_RINT, a);
}
static inline val m_trunc(math *m, val a)
{
    return m_op1(m, IR_TRUNC, a);
}
static inline val m_fma(math *m, val a, val b, val c)
{
    return opjit_ir_math_op(m, IR_FMA, a.type, 3, (val[3]){ a, b, c });
}
static inline val m_lt(math *m, val a, val b)
{
    return opjit_ir_math_op(m, IR_LT, IR_BOOL, 2, (val[2]){ a, b });
}
static inline val m_eq(math *m, val a, val b)
{
    return opjit_ir_math_op(m, IR_EQ, IR_BOOL, 2, (val[2]){ a, b });
}
static inline val m_ne(math *m, val a, val b)
{
    return opjit_ir_math_op(m, IR_NE, IR_BOOL, 2, (val[2]){ a, b });
}
static inline val m_select(math *m, val c, val a, val b)
{
    return opjit_ir_math_op(m, IR_SELECT, a.type, 3, (val[3]){ c, a, b });
}
static inline val m_cast(math *m, ir_type type, val a)
{
    return a.type == type ? a : opjit_ir_math_op(m, IR_CAST, type, 1, &a);
}
static inline val m_bits(math *m, ir_type type, val a)
{
    return opjit_ir_math_op(m, IR_BITS, type, 1, &a);
}

/* --- constants -------------------------------------------------------------------------------------------------- */

/* x rounded to f32 or f64. */
static inline val m_num(math *m, ir_type type, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return opjit_ir_math_const(m, type, type == IR_F64 ? bits : opjit_ir_convert(IR_F64, type, bits));
}

static inline bool m_is_f64(val x)
{
    return x.type == IR_F64;
}
static inline val m_like(math *m, val x, double value)
{
    return m_num(m, x.type, value);
}
/* f32 or f64, depending on the type of x. */
static inline val m_pick(math *m, val x, double f32, double f64)
{
    return m_num(m, x.type, m_is_f64(x) ? f64 : f32);
}

/* --- bits ------------------------------------------------------------------------------------------------------- */

static inline ir_type m_word_type(val x)
{
    return m_is_f64(x) ? IR_U64 : IR_U32;
}
static inline uint32_t m_fraction(val x)
{
    return m_is_f64(x) ? 52 : 23;
} /* bits of the fraction */
static inline val m_word(math *m, val x)
{
    return m_bits(m, m_word_type(x), x);
}
static inline val m_float(math *m, val word)
{
    return m_bits(m, word.type == IR_U64 ? IR_F64 : IR_F32, word);
}
static inline val m_word_const(math *m, val like, uint64_t bits)
{
    return opjit_ir_math_const(m, like.type == IR_F64 || like.type == IR_U64 ? IR_U64 : IR_U32, bits);
}
static inline val m_shl(math *m, val word, uint32_t count)
{
    return m_op2(m, IR_SHL, word, m_word_const(m, word, count));
}
static inline val m_shr(math *m, val word, uint32_t count)
{
    return m_op2(m, IR_SHR, word, m_word_const(m, word, count));
}
static inline uint64_t m_sign_mask(val x)
{
    return m_is_f64(x) ? (uint64_t)1 << 63 : (uint64_t)1 << 31;
}
/* The sign bit of x, as a word. */
static inline val m_sign(math *m, val x)
{
    return m_and(m, m_word(m, x), m_word_const(m, x, m_sign_mask(x)));
}
/* x, which is not negative, with the sign from m_sign. */
static inline val m_with_sign(math *m, val x, val sign)
{
    return m_float(m, m_or(m, m_word(m, x), sign));
}
static inline val m_flip_sign(math *m, val x, val sign)
{
    return m_float(m, m_xor(m, m_word(m, x), sign));
}

/* --- shared parts ----------------------------------------------------------------------------------- */

typedef struct math_poly {
    const double *coefficients; /* of t^0, t^1, ... */
    uint32_t count;
} math_poly;
#define MATH_POLY(table)                          \
    {                                             \
        table, sizeof(table) / sizeof((table)[0]) \
    }

val opjit_ir_math_poly(math *m, const math_poly *poly, val t);
/* With the first coefficient in a last step of its own: one step more behind the others, and a smaller error. */
val opjit_ir_math_poly_last(math *m, const math_poly *poly, val t);

/* A sum of two values; the second is below half an ulp of the first. */
typedef struct val2 {
    val hi, lo;
} val2;
val2 opjit_ir_math_two_sum(math *m, val a, val b);      /* exactly a + b */
val2 opjit_ir_math_fast_two_sum(math *m, val a, val b); /* likewise, |a| >= |b| or a = 0 */
val2 opjit_ir_math_two_product(math *m, val a, val b);  /* exactly a * b, except for underflow */

/* --- functions -------------------------------------------------------------------------------------------------- */

val opjit_ir_math_exp(math *m, math_grade grade, val x);
val opjit_ir_math_exp_sum(math *m, math_grade grade, val x, val lo); /* exp(x + lo), lo small */
val opjit_ir_math_expm1(math *m, math_grade grade, val x);
val opjit_ir_math_sinh(math *m, math_grade grade, val x);
val opjit_ir_math_cosh(math *m, math_grade grade, val x);
val opjit_ir_math_tanh(math *m, math_grade grade, val x);
val opjit_ir_math_erf(math *m, math_grade grade, val x);
val opjit_ir_math_log(math *m, math_grade grade, val x);
val opjit_ir_math_log1p(math *m, math_grade grade, val x);
val opjit_ir_math_asinh(math *m, math_grade grade, val x);
val opjit_ir_math_acosh(math *m, math_grade grade, val x);
val opjit_ir_math_atanh(math *m, math_grade grade, val x);
val opjit_ir_math_pow(math *m, math_grade grade, val x, val y);
val opjit_ir_math_sin(math *m, math_grade grade, val x);
val opjit_ir_math_cos(math *m, math_grade grade, val x);
val opjit_ir_math_tan(math *m, math_grade grade, val x);
val opjit_ir_math_asin(math *m, math_grade grade, val x);
val opjit_ir_math_acos(math *m, math_grade grade, val x);
val opjit_ir_math_atan(math *m, math_grade grade, val x);
val opjit_ir_math_atan2(math *m, math_grade grade, val y, val x);
val opjit_ir_math_far(math *m, ir_op op, val x, val y); /* op: sin_far, cos_far or tan_far */

#endif
