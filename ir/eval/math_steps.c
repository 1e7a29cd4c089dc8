/* SPDX-License-Identifier: Apache-2.0 */
/* math_steps.c - evaluating and recording the steps of mathematical functions, and the arithmetic that they share. */
#include "ir/eval/math_steps.h"

#include "ir/eval/arithmetic.h"

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
        opjit_ir_arithmetic(op, type, args[0].type, bits, &out);
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
    if (constants == count && opjit_ir_arithmetic(op, type, args[0].type, bits, &out))
        return opjit_ir_math_const(m, type, out);
    return record(m, step);
}

/* --- shared arithmetic ------------------------------------------------------------------------------------------ */

/* From coefficient `first` on, by Horner's scheme; a long polynomial as its even and its odd half, which are
 * independent of each other. */
static val poly_from(math *m, const math_poly *poly, uint32_t first, val t)
{
    const double *c = poly->coefficients + first;
    const uint32_t n = poly->count - first, step = n >= 7 ? 2 : 1;
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

val opjit_ir_math_poly(math *m, const math_poly *poly, val t)
{
    return poly_from(m, poly, 0, t);
}

val opjit_ir_math_poly_last(math *m, const math_poly *poly, val t)
{
    return m_fma(m, poly_from(m, poly, 1, t), t, m_like(m, t, poly->coefficients[0]));
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
