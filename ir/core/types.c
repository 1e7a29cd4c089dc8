/* SPDX-License-Identifier: Apache-2.0 */
/* types.c - the constant tables of the IR: element types, ops, kinds of accumulators, stages.  No logic: what an
 * op means is in ir/eval/arithmetic.c and math.c. */
#include "ir/ir.h"

/* --- types -------------------------------------------------------------------------------------------------------- */

static const struct {
    char name[8];
    uint32_t size;
    DML_TENSOR_DATA_TYPE dtype;
} types[IR_TYPE_COUNT] = {
    [IR_NONE] = { "none", 0, DML_TENSOR_DATA_TYPE_UNKNOWN }, [IR_F16] = { "f16", 2, DML_TENSOR_DATA_TYPE_FLOAT16 },
    [IR_F32] = { "f32", 4, DML_TENSOR_DATA_TYPE_FLOAT32 },   [IR_F64] = { "f64", 8, DML_TENSOR_DATA_TYPE_FLOAT64 },
    [IR_I8] = { "i8", 1, DML_TENSOR_DATA_TYPE_INT8 },        [IR_I16] = { "i16", 2, DML_TENSOR_DATA_TYPE_INT16 },
    [IR_I32] = { "i32", 4, DML_TENSOR_DATA_TYPE_INT32 },     [IR_I64] = { "i64", 8, DML_TENSOR_DATA_TYPE_INT64 },
    [IR_U8] = { "u8", 1, DML_TENSOR_DATA_TYPE_UINT8 },       [IR_U16] = { "u16", 2, DML_TENSOR_DATA_TYPE_UINT16 },
    [IR_U32] = { "u32", 4, DML_TENSOR_DATA_TYPE_UINT32 },    [IR_U64] = { "u64", 8, DML_TENSOR_DATA_TYPE_UINT64 },
    [IR_BOOL] = { "bool", 1, DML_TENSOR_DATA_TYPE_UNKNOWN }, [IR_INDEX] = { "index", 8, DML_TENSOR_DATA_TYPE_UNKNOWN },
};

uint32_t opjit_ir_type_size(ir_type t)
{
    return (uint32_t)t < IR_TYPE_COUNT ? types[t].size : 0;
}

const char *opjit_ir_type_name(ir_type t)
{
    return (uint32_t)t < IR_TYPE_COUNT ? types[t].name : "?";
}

ir_type opjit_ir_type_of(DML_TENSOR_DATA_TYPE t)
{
    for (uint32_t i = IR_F16; i <= IR_U64; i++)
        if (types[i].dtype == t)
            return (ir_type)i;
    return IR_NONE;
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

/* The flag letters of ops.def. */
enum { P = IR_FLAG_P, M = IR_FLAG_M, V = IR_FLAG_V, L = IR_FLAG_L, S = IR_FLAG_S, K = IR_FLAG_K };

const ir_op_info opjit_ir_op_infos[IR_OP_COUNT] = {
    [IR_OP_NONE] = { "none", "", 'N', 0 },
#define IR_OP(op, text, operands, result, flags) [IR_##op] = { text, operands, #result[0], flags },
#include "ir/core/ops.def"
#undef IR_OP
};

/* --- kinds and stages --------------------------------------------------------------------------------------------- */

const char *opjit_ir_kind_name(ir_kind k)
{
    static const char *const names[IR_KIND_COUNT] = {
        "none",
#define IR_REDUCTION(kind, text, op) text,
#include "ir/core/kinds.def"
#undef IR_REDUCTION
    };
    return (uint32_t)k < IR_KIND_COUNT ? names[k] : "?";
}

const char *opjit_ir_phase_name(ir_phase stage)
{
    static const char *const names[IR_PHASE_COUNT] = {
        "lower", "fold", "place", "collapse", "split", "cleanup", "schedule", "expand", "grid",
    };
    return (uint32_t)stage < IR_PHASE_COUNT ? names[stage] : "?";
}
