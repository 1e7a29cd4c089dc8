/* cg_legal.c - the table of what x86-64 can do: op x type x features.  LLVM makes library calls of fmod, ldexp,
 * rounding below SSE4.1, half conversions without F16C and fma without FMA, and ends the process on what it can't
 * select; so what stands here as expanded or called never reaches it, and what stands nowhere is refused. */
#include "codegen/cg.h"

enum {
    F16 = 1u << IR_F16,
    F32 = 1u << IR_F32,
    F64 = 1u << IR_F64,
    FLOATS = F16 | F32 | F64,
    INTS = 1u << IR_I8 | 1u << IR_I16 | 1u << IR_I32 | 1u << IR_I64 | 1u << IR_U8 | 1u << IR_U16 | 1u << IR_U32 |
           1u << IR_U64,
    BOOL = 1u << IR_BOOL,
    INDEX = 1u << IR_INDEX,
    ELEMENTS = FLOATS | INTS,
    ALL = ELEMENTS | BOOL | INDEX
};

/* Types are those of the result, of operand 0 for comparisons and TO_INDEX, of the conversion's target for CAST and
 * ELEM. f16 arithmetic is f32 arithmetic between two conversions. */
typedef struct legal_row {
    ir_op op;
    uint32_t types;
    uint64_t features; /* all of them: with, else without */
    cg_way with, without;
} legal_row;

#define NEEDS(feature) ((uint64_t)1 << (feature))

static const legal_row rows[] = {
    { IR_CONST, ALL, 0, CG_NATIVE, CG_NATIVE },
    { IR_VAR, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_PARAM, ELEMENTS | INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_GET, ALL, 0, CG_NATIVE, CG_NATIVE },
    { IR_LOAD, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_IADD, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_ISUB, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMUL, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IDIV, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMOD, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMIN, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_IMAX, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_CLAMP, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_DOWN, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_UP, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_HEAD, INDEX, 0, CG_NATIVE, CG_NATIVE },
    { IR_TO_INDEX, INTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_ELEM, F16, NEEDS(RT_X86_F16C), CG_NATIVE, CG_EXPANDED },
    { IR_ELEM, INTS | F32 | F64, 0, CG_NATIVE, CG_NATIVE },
    { IR_ADD, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_SUB, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_MUL, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_DIV, FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_DIV, INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_REM, FLOATS, 0, CG_CALLED, CG_CALLED },
    { IR_REM, INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_MIN, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_MAX, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_NEG, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_ABS, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_SQRT, FLOATS, 0, CG_NATIVE, CG_NATIVE },
    { IR_FMA, F16, 0, CG_EXPANDED, CG_EXPANDED }, /* exact in f64 */
    { IR_FMA, F32 | F64, NEEDS(RT_X86_FMA), CG_NATIVE, CG_CALLED },
    { IR_LDEXP, FLOATS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_FLOOR, FLOATS, NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_CEIL, FLOATS, NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_TRUNC, FLOATS, NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_RINT, FLOATS, NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_AND, INTS | BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_OR, INTS | BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_XOR, INTS | BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_NOT, INTS | BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_SHL, INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_SHR, INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_CTPOP, INTS, NEEDS(RT_X86_POPCNT), CG_NATIVE, CG_EXPANDED },
    { IR_IPOW, INTS, 0, CG_EXPANDED, CG_EXPANDED },
    { IR_EQ, ALL & ~BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_NE, ALL & ~BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_LT, ALL & ~BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_LE, ALL & ~BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_CAST, F16, NEEDS(RT_X86_F16C), CG_NATIVE, CG_EXPANDED },
    { IR_CAST, INTS | F32 | F64 | BOOL, 0, CG_NATIVE, CG_NATIVE },
    { IR_BITS, ELEMENTS, 0, CG_NATIVE, CG_NATIVE },
    { IR_SELECT, ALL, 0, CG_NATIVE, CG_NATIVE },
};

cg_way opjit_cg_way_x86(const rt_target *target, ir_op op, ir_type type)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const legal_row *row = &rows[i];
        if (row->op == op && (row->types >> type & 1))
            return (target->features & row->features) == row->features ? row->with : row->without;
    }
    return CG_REFUSED;
}
