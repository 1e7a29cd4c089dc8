/* SPDX-License-Identifier: Apache-2.0 */
/* legal.c - the table of what 64-bit CPUs can do, what GPUs can do in addition, and the search through a target's own
 * rows before both.  LLVM makes library calls of fmod, ldexp, and of whatever else a target lacks (its file says what:
 * rounding, half conversions, fma), and ends the process on what it can't select.  So what is expanded or called
 * according to this table never reaches LLVM, and what is in no row is refused.  f16 arithmetic is f32 arithmetic
 * between two conversions. */
#include "codegen/cg.h"

#include "opjit_targets.h"

static const cg_legal common[] = {
    { IR_CONST, CG_ALL, 0, CG_NATIVE, CG_NATIVE },
    { IR_VAR, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_PARAM, CG_ELEMENTS | CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_GET, CG_ALL, 0, CG_NATIVE, CG_NATIVE },
    { IR_LOAD, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_IADD, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_ISUB, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMUL, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IDIV, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMOD, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_ISCALE, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IQUOT, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IREST, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMIN, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMAX, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_CLAMP, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_DOWN, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_UP, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_HEAD, CG_INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_TO_INDEX, CG_INTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_ELEM, CG_INTS | CG_F32 | CG_F64, 0, CG_NATIVE, CG_NATIVE },
    { IR_PAIR, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE }, /* as IR_FMA, or IR_MUL, which makes a step of it */
    { IR_ADD, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_SUB, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_MUL, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_DIV, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_DIV, CG_INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_REM, CG_FLOATS, 0, CG_CALLED, CG_CALLED },
    { IR_REM, CG_INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_MIN, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_MAX, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_NEG, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_ABS, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_SQRT, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_FMA, CG_F16, 0, CG_EXPANDED, CG_EXPANDED }, /* exact in f64 */
    { IR_AND, CG_INTS | CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_OR, CG_INTS | CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_XOR, CG_INTS | CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_NOT, CG_INTS | CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_SHL, CG_INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_SHR, CG_INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_IPOW, CG_INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_DOT4_UU, CG_I32, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_DOT4_US, CG_I32, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_DOT4_SS, CG_I32, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_DOT2, CG_I32, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_HALVES, CG_I32, 0, CG_NATIVE, CG_NATIVE },
    { IR_SIN_FAR, CG_F64, 0, CG_CALLED, CG_CALLED },
    { IR_COS_FAR, CG_F64, 0, CG_CALLED, CG_CALLED },
    { IR_TAN_FAR, CG_F64, 0, CG_CALLED, CG_CALLED },
    { IR_EQ, CG_ALL & ~CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_NE, CG_ALL & ~CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_LT, CG_ALL & ~CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_LE, CG_ALL & ~CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_CAST, CG_INTS | CG_F32 | CG_F64 | CG_BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_BITS, CG_ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_SELECT, CG_ALL, 0, CG_NATIVE, CG_NATIVE },
    { .types = 0 },
};

/* What GPUs have in addition: instructions for all of this. */
static const cg_legal gpu[] = {
    { IR_ELEM, CG_F16, 0, CG_NATIVE, CG_NATIVE },
    { IR_CAST, CG_F16, 0, CG_NATIVE, CG_NATIVE },
    { IR_FMA, CG_F32 | CG_F64, 0, CG_NATIVE, CG_NATIVE },
    { IR_FLOOR, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_CEIL, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_TRUNC, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_RINT, CG_FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_CTPOP, CG_INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { .types = 0 },
};

static const cg_legal *find(const cg_legal *rows, ir_op op, ir_type type)
{
    for (; rows && rows->types != 0; rows++)
        if (rows->op == op && (rows->types >> type & 1) != 0)
            return rows;
    return NULL;
}

/* Those of the build, as CMake's OPJIT_TARGETS says. */
#define ROW(name) &opjit_cg_target_##name,
static const cg_target *const targets[] = { CG_TARGETS(ROW) };
#undef ROW

const cg_target *opjit_cg_target_find(rt_arch arch)
{
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
        if (targets[i]->arch == arch)
            return targets[i];
    return NULL;
}

cg_way opjit_cg_way(const cg_target *cpu, const rt_target *target, ir_op op, ir_type type)
{
    if ((opjit_ir_op_infos[op].flags & IR_FLAG_M) != 0)
        return !cpu->grid && opjit_rt_target_calls_math(target) ? CG_CALLED : CG_REFUSED;
    const cg_legal *row = find(cpu->legal, op, type);
    if (!row && cpu->grid)
        row = find(gpu, op, type);
    if (!row)
        row = find(common, op, type);
    if (!row)
        return CG_REFUSED;
    return (target->features & row->features) == row->features ? row->with : row->without;
}
