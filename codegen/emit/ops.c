/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - the function that emits each op of an expression.  opjit_cg_emit remembers the results. */
#include "codegen/emit/access.h"
#include "codegen/emit/order.h"
#include "codegen/gpu/grid.h"
#include "codegen/plan.h"
#include "codegen/softops/kept.h"

/* --- leaves ------------------------------------------------------------------------------------------------------- */

static LLVMValueRef emit_param(cg_func *f, ir_ref node)
{
    const uint32_t param = ir_at(f->ir, node)->ref;
    if (!f->params[param]) {
        const ir_type type = (ir_type)ir_at(f->ir, node)->type;
        if (f->cpu->grid)
            return f->params[param] = opjit_cg_grid_param(f, param - 1, type);
        LLVMValueRef slot = opjit_cg_number(f, 64, 1, param - 1);
        LLVMValueRef p = LLVMBuildGEP2(f->entry, f->type.i64, LLVMGetParam(f->fn, 1), &slot, 1, "");
        f->params[param] = LLVMBuildLoad2(f->entry, opjit_cg_int(f, 8 * opjit_ir_type_size(type), 1), p, "");
    }
    return f->params[param];
}

/* A let's value is remembered under its statement. */
static LLVMValueRef emit_get(cg_func *f, ir_ref node)
{
    const ir_ref owner = ir_at(f->ir, node)->ref;
    if (ir_at(f->ir, owner)->op == IR_ACC)
        return opjit_cg_acc_value(f, owner);
    LLVMValueRef v = opjit_cg_recall(f, CG_VALUE, owner);
    return v ? v : opjit_cg_emit(f, ir_operand(f->ir, owner, 0)); /* an index let without a slot of its own */
}

/* --- select ------------------------------------------------------------------------------------------------------- */

/* An arm as lanes of `bits` (indices; 0: any). */
static LLVMValueRef emit_plain(cg_func *f, ir_ref arm, uint32_t lanes, uint32_t bits)
{
    return bits ? opjit_cg_index_lanes(f, arm, bits, lanes) : opjit_cg_emit_lanes(f, arm, lanes);
}

/* An arm under its part of the mask; values emitted there are valid nowhere else. */
static LLVMValueRef emit_arm(cg_func *f, ir_ref arm, uint32_t lanes, uint32_t bits, LLVMValueRef where)
{
    cg_piece own;
    LLVMValueRef sure = opjit_cg_lanes(where) == 1 ? opjit_cg_narrow(f, where) : NULL;
    cg_piece_begin(f, &own);
    if (sure && f->piece->sure)
        f->piece->sure = LLVMBuildAnd(f->b, f->piece->sure, sure, "");
    else
        f->piece->sure = !f->piece->mask || opjit_cg_is_rest(f) ? sure : NULL;
    f->piece->mask = opjit_cg_mask_where(f, where);
    opjit_cg_scope_push(f);
    LLVMValueRef v = emit_plain(f, arm, lanes, bits);
    opjit_cg_scope_pop(f);
    cg_piece_end(f);
    return v;
}

static LLVMValueRef emit_select(cg_func *f, ir_ref node)
{
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    const uint32_t bits = lanes > 1 && ir_at(f->ir, node)->type == IR_INDEX ? opjit_cg_lane_bits(f, node) : 0;
    const struct cg_plan *plan = f->loops[f->loop_count - 1].plan;
    if (plan && node == plan->point)
        return emit_plain(f, ir_operand(f->ir, node, 2), lanes, bits);
    LLVMValueRef joined = lanes > 1 ? opjit_cg_load_joined(f, node) : NULL;
    if (joined)
        return joined;
    LLVMValueRef c = opjit_cg_emit(f, ir_operand(f->ir, node, 0)), arms[2];
    for (uint32_t i = 0; i < 2; i++) {
        const ir_ref arm = ir_operand(f->ir, node, 1 + i);
        LLVMValueRef other = c;
        arms[i] = !f->info[arm].guarded ? emit_plain(f, arm, lanes, bits)
                                        : emit_arm(f, arm, lanes, bits, i == 0 ? c : opjit_cg_logic(f, IR_NOT, &other));
    }
    return opjit_cg_choose(f, c, arms[0], arms[1]);
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

static LLVMValueRef emit_arith(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    const bool simple = n->op == IR_ADD || n->op == IR_SUB || n->op == IR_MUL || n->op == IR_FMA;
    LLVMValueRef a[3] = { simple && lanes > 1 ? opjit_cg_progression(f, node) : NULL };
    if (a[0])
        return a[0];
    const cg_order order = opjit_cg_order(f, node);
    for (uint32_t i = 0; i < n->count && i < CG_ORDERED; i++)
        a[order.at[i]] = opjit_cg_emit_lanes(f, ir_operand(f->ir, node, order.at[i]), lanes);
    return opjit_cg_arith(f, (ir_op)n->op, (ir_type)n->type, a);
}

static LLVMValueRef emit_compare(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const ir_ref a = ir_operand(f->ir, node, 0), b = ir_operand(f->ir, node, 1);
    const ir_type type = (ir_type)ir_at(f->ir, a)->type;
    if (type == IR_INDEX)
        return opjit_cg_index_compare(f, node);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    LLVMValueRef c =
        opjit_cg_compare(f, (ir_op)n->op, type, opjit_cg_emit_lanes(f, a, lanes), opjit_cg_emit_lanes(f, b, lanes));
    return ir_is_float(type) && f->piece->copies <= 1 && !LLVMIsConstant(c)
               ? opjit_cg_condition_wide(f, c, type == IR_F64 ? 64 : 32)
               : c;
}

static LLVMValueRef emit_unary(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    const ir_ref x = ir_operand(f->ir, node, 0);
    if (f->piece->binade && opjit_cg_varies(f, node))
        return opjit_cg_half_lanes(f, node);
    LLVMValueRef v = opjit_cg_varies(f, node) ? opjit_cg_short_lanes(f, node) : NULL;
    if (v)
        return v;
    v = opjit_cg_emit_lanes(f, x, opjit_cg_varies(f, node) ? f->piece->lanes : 1);
    return n->op == IR_BITS ? opjit_cg_as_bits(f, v)
                            : opjit_cg_convert(f, (ir_type)ir_at(f->ir, x)->type, (ir_type)n->type, v);
}

static LLVMValueRef emit_nearest(cg_func *f, ir_ref node)
{
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    LLVMValueRef x = opjit_cg_emit_lanes(f, ir_operand(f->ir, node, 0), lanes);
    return f->cpu->nearest(f, opjit_cg_kept(f, opjit_cg_as_float(f, x)));
}

static LLVMValueRef emit_halves(cg_func *f, ir_ref node)
{
    const ir_ref x = ir_operand(f->ir, node, 0);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    return opjit_cg_halves(f, (ir_type)ir_at(f->ir, x)->type, opjit_cg_emit_lanes(f, x, lanes));
}

LLVMValueRef opjit_cg_op(cg_func *f, ir_ref node)
{
    const ir_node *n = ir_at(f->ir, node);
    LLVMValueRef read = opjit_cg_from_table(f, node);
    if (read)
        return read;
    switch ((ir_op)n->op) {
    case IR_CONST:
        return opjit_cg_number(f, n->type == IR_BOOL ? 1 : 8 * opjit_ir_type_size((ir_type)n->type), 1, n->imm);
    case IR_PARAM: return emit_param(f, node);
    case IR_GET: return emit_get(f, node);
    case IR_LOAD: return opjit_cg_load(f, node);
    case IR_HEAD: return opjit_cg_head(f, node);
    case IR_VAR:
    case IR_IADD:
    case IR_ISUB:
    case IR_IMUL:
    case IR_ISCALE:
    case IR_IQUOT:
    case IR_IREST:
    case IR_IDIV:
    case IR_IMOD:
    case IR_IMIN:
    case IR_IMAX:
    case IR_CLAMP:
    case IR_DOWN:
    case IR_UP:
    case IR_TO_INDEX: return opjit_cg_index(f, node);
    case IR_ELEM: return opjit_cg_element(f, node);
    case IR_ADD:
    case IR_SUB:
    case IR_MUL:
    case IR_DIV:
    case IR_REM:
    case IR_MIN:
    case IR_MAX:
    case IR_NEG:
    case IR_ABS:
    case IR_SQRT:
    case IR_FMA:
    case IR_SCALE:
    case IR_FLOOR:
    case IR_CEIL:
    case IR_TRUNC:
    case IR_RINT:
    case IR_AND:
    case IR_OR:
    case IR_XOR:
    case IR_NOT:
    case IR_SHL:
    case IR_SHR:
    case IR_CTPOP:
    case IR_IPOW:
    case IR_DOT4_UU:
    case IR_DOT4_US:
    case IR_DOT4_SS:
    case IR_DOT2:
    case IR_SIN_FAR:
    case IR_COS_FAR:
    case IR_TAN_FAR: return emit_arith(f, node);
    case IR_EXP:
    case IR_EXPM1:
    case IR_LOG:
    case IR_LOG1P:
    case IR_SIN:
    case IR_COS:
    case IR_TAN:
    case IR_ASIN:
    case IR_ACOS:
    case IR_ATAN:
    case IR_SINH:
    case IR_COSH:
    case IR_TANH:
    case IR_ASINH:
    case IR_ACOSH:
    case IR_ATANH:
    case IR_ERF:
    case IR_POW:
    case IR_ATAN2: return opjit_cg_math(f, node);
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: return emit_compare(f, node);
    case IR_CAST:
    case IR_BITS: return emit_unary(f, node);
    case IR_NEAREST: return emit_nearest(f, node);
    case IR_HALVES: return emit_halves(f, node);
    case IR_SELECT: return emit_select(f, node);
    case IR_PAIR: /* an update's */
    case IR_OP_NONE:
    case IR_DEF:
    case IR_SCATTER:
    case IR_YIELD:
    case IR_STAGE:
    case IR_FOR:
    case IR_LET:
    case IR_ACC:
    case IR_UPD:
    case IR_STORE:
    case IR_SYNC:
    case IR_OP_COUNT: break; /* not expressions: the survey refuses them */
    }
    return LLVMGetPoison(f->type.i64);
}
