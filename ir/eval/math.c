/* SPDX-License-Identifier: Apache-2.0 */
/* math.c - the table of mathematical functions: op to function, and the grade in which a type's values are computed.
 * The functions themselves are in math_exp.c, math_log.c, math_trig.c and math_arc.c. */
#include "ir/eval/math.h"

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
    [IR_TANH] = { .unary = opjit_ir_math_tanh },
    [IR_ERF] = { .unary = opjit_ir_math_erf },
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

bool opjit_ir_math_is_below(const ir_func *f, ir_op op, ir_ref x)
{
    const ir_node *n = ir_at(f, x);
    if (op != IR_EXP)
        return false;
    if (n->op == IR_NEG)
        return ir_at(f, ir_operand(f, x, 0))->op == IR_ABS;
    if (n->op != IR_MIN)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        const ir_node *c = ir_at(f, ir_operand(f, x, i));
        if (c->op == IR_CONST && c->imm == 0)
            return true;
    }
    return false;
}
