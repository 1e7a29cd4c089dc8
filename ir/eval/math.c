/* SPDX-License-Identifier: Apache-2.0 */
/* math.c - mathematical functions: evaluating and recording, the table of functions, and the arithmetic they share.
 * The functions themselves are in math_exp.c, math_log.c, math_trig.c and math_arc.c. */
#include "ir/eval/math.h"

/* --- evaluating and recording ----------------------------------------------------------------------------------- */

static val record(math *m, math_step step)
{
    if (m->count == m->capacity) {
        m->failed = true;
        return (val){ 0, (ir_type)step.type };
    }
    m->steps[m->count] = step;
    return (val){ m->count++, (ir_type)step.type };
}

val opjit_ir_math_const(math *m, ir_type type, uint64_t bits)
{
    if (m->steps == NULL)
        return (val){ bits, type };
    return record(m, (math_step){ .op = IR_CONST, .type = (uint8_t)type, .imm = bits });
}

val opjit_ir_math_operand(math *m, ir_type type, uint64_t bits, uint32_t number)
{
    if (m->steps == NULL)
        return (val){ bits, type };
    return record(m, (math_step){ .op = IR_OP_NONE, .type = (uint8_t)type, .imm = number });
}

val opjit_ir_math_op(math *m, ir_op op, ir_type type, uint32_t count, const val *args)
{
    if (m->steps == NULL) {
        uint64_t bits[3] = { 0, 0, 0 }, out = 0;
        for (uint32_t i = 0; i < count; i++)
            bits[i] = args[i].bits;
        opjit_ir_scalar(op, type, args[0].type, bits, &out);
        return (val){ out, type };
    }
    math_step step = { .op = (uint8_t)op, .type = (uint8_t)type, .count = (uint8_t)count };
    uint64_t bits[3] = { 0, 0, 0 }, out = 0;
    uint32_t constants = 0;
    for (uint32_t i = 0; i < count && !m->failed; i++) {
        const math_step *arg = &m->steps[args[i].bits];
        step.args[i] = (uint32_t)args[i].bits;
        bits[i] = arg->imm;
        constants += arg->op == IR_CONST;
        if (op == IR_SELECT && i == 0 && constants == 1)
            return args[arg->imm != 0 ? 1 : 2];
    }
    if (constants == count && opjit_ir_scalar(op, type, args[0].type, bits, &out))
        return opjit_ir_math_const(m, type, out);
    return record(m, step);
}

/* --- the table -------------------------------------------------------------------------------------------------- */

typedef struct function {
    val (*unary)(math *m, math_grade grade, val x);
    val (*binary)(math *m, math_grade grade, val x, val y);
    bool wide; /* f32 is computed in f64 */
} function;

static const function functions[IR_OP_COUNT] = {
    [IR_EXP] = { .unary = opjit_ir_math_exp },
    [IR_EXPM1] = { .unary = opjit_ir_math_expm1, .wide = true },
    [IR_LOG] = { .unary = opjit_ir_math_log },
    [IR_LOG1P] = { .unary = opjit_ir_math_log1p, .wide = true },
    [IR_TANH] = { .unary = opjit_ir_math_tanh, .wide = true },
    [IR_ERF] = { .unary = opjit_ir_math_erf, .wide = true },
    [IR_SIN] = { .unary = opjit_ir_math_sin, .wide = true },
    [IR_COS] = { .unary = opjit_ir_math_cos, .wide = true },
    [IR_TAN] = { .unary = opjit_ir_math_tan, .wide = true },
    [IR_ASIN] = { .unary = opjit_ir_math_asin, .wide = true },
    [IR_ACOS] = { .unary = opjit_ir_math_acos, .wide = true },
    [IR_ATAN] = { .unary = opjit_ir_math_atan, .wide = true },
    [IR_SINH] = { .unary = opjit_ir_math_sinh, .wide = true },
    [IR_COSH] = { .unary = opjit_ir_math_cosh, .wide = true },
    [IR_ASINH] = { .unary = opjit_ir_math_asinh, .wide = true },
    [IR_ACOSH] = { .unary = opjit_ir_math_acosh, .wide = true },
    [IR_ATANH] = { .unary = opjit_ir_math_atanh, .wide = true },
    [IR_POW] = { .binary = opjit_ir_math_pow, .wide = true },
    [IR_ATAN2] = { .binary = opjit_ir_math_atan2, .wide = true },
};

val opjit_ir_math(math *m, ir_op op, val x, val y)
{
    const function *f = &functions[op];
    const ir_type type = x.type;
    if (type == IR_F16) {
        x = m_cast(m, IR_F32, x);
        y = f->binary ? m_cast(m, IR_F32, y) : y;
    }
    const math_grade grade = type == IR_F64 ? GRADE_F64 : f->wide ? GRADE_SHORT : GRADE_F32;
    if (grade == GRADE_SHORT) {
        x = m_cast(m, IR_F64, x);
        y = f->binary ? m_cast(m, IR_F64, y) : y;
    }
    const val out = f->unary ? f->unary(m, grade, x) : f->binary(m, grade, x, y);
    return m_cast(m, type, type == IR_F16 ? m_cast(m, IR_F32, out) : out);
}

/* --- shared arithmetic ------------------------------------------------------------------------------------------ */

/* Horner's scheme; a long polynomial as its even and its odd half, which are independent of each other. */
val opjit_ir_math_poly(math *m, const math_poly *poly, val t)
{
    const double *c = poly->coefficients;
    const uint32_t n = poly->count, step = n >= 7 ? 2 : 1;
    const val by = step == 2 ? m_mul(m, t, t) : t;
    val half[2] = { t, t };
    for (uint32_t h = 0; h < step; h++) {
        uint32_t i = n - 1 - (n - 1 - h) % step;
        half[h] = m_like(m, t, c[i]);
        for (; i >= step; i -= step)
            half[h] = m_fma(m, half[h], by, m_like(m, t, c[i - step]));
    }
    return step == 2 ? m_fma(m, half[1], t, half[0]) : half[0];
}

val2 opjit_ir_math_two_sum(math *m, val a, val b)
{
    const val s = m_add(m, a, b), back = m_sub(m, s, a);
    return (val2){ s, m_add(m, m_sub(m, a, m_sub(m, s, back)), m_sub(m, b, back)) };
}

val2 opjit_ir_math_fast_two_sum(math *m, val a, val b)
{
    const val s = m_add(m, a, b);
    return (val2){ s, m_sub(m, b, m_sub(m, s, a)) };
}

val2 opjit_ir_math_two_product(math *m, val a, val b)
{
    const val p = m_mul(m, a, b);
    return (val2){ p, m_fma(m, a, b, m_neg(m, p)) };
}
