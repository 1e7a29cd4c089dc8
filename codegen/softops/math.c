/* SPDX-License-Identifier: Apache-2.0 */
/* math.c - mathematical functions of vectors: their calls, and their bodies, which are the sequences of eval/math*.c.
 * A function is called at level quick, so that a kernel with exp takes as long to compile as one with an addition; its
 * code is compiled once for the process (driver/tile_code.c). */
#include "ir/eval/math.h"
#include "codegen/softops/kept.h"

#include <stdio.h>

/* --- the type ----------------------------------------------------------------------------------------------------- */

static LLVMTypeRef type_of(const cg_func *f, const cg_math *m)
{
    const ir_type type = (ir_type)m->type;
    return type == IR_F32 || type == IR_F64 ? opjit_cg_float(f, type, m->lanes)
                                            : opjit_cg_int(f, 8 * opjit_ir_type_size(type), m->lanes);
}

/* Floats as such, halves as integers. */
static LLVMValueRef as_passed(cg_func *f, ir_type type, LLVMValueRef v)
{
    return type == IR_F16 ? opjit_cg_as_bits(f, v) : opjit_cg_as_float(f, v);
}

/* Parameters of each copy. */
static uint32_t params_of(const cg_math *m)
{
    return (m->operands & 1) + (m->operands >> 1);
}

LLVMTypeRef opjit_cg_math_type(const cg_func *f, const cg_math *m)
{
    if (m->op == IR_ACC) {
        const cg_math one = { .type = m->type, .lanes = 1 };
        LLVMTypeRef memory = f->type.ptr;
        return LLVMFunctionType(type_of(f, &one), &memory, 1, 0);
    }
    LLVMTypeRef type = type_of(f, m), all[CG_MATH_COPIES * CG_MATH_OPERANDS];
    for (uint32_t i = 0; i < CG_MATH_COPIES * CG_MATH_OPERANDS; i++)
        all[i] = type;
    LLVMTypeRef result = m->copies > 1 ? LLVMStructTypeInContext(f->llvm, all, m->copies, 0) : type;
    return LLVMFunctionType(result, all, m->copies * params_of(m), 0);
}

/* --- the body ----------------------------------------------------------------------------------------------------- */

enum { MOST_PARTS = 4 /* f16 that is computed in f64 */ };

/* The sequence as steps, and by step how many read it.  Where steps have wider elements than the operands, vectors are
 * computed in parts, none of which is wider than a register. */
typedef struct sequence {
    math m;
    uint32_t *uses;
    LLVMValueRef *values[CG_MATH_COPIES * MOST_PARTS]; /* by step, of each part of each copy */
    uint32_t result, parts, lanes;                     /* lanes: of a part */
} sequence;

static val operand(math *m, const cg_math *record, uint32_t i)
{
    return (record->operands >> i & 1) != 0 ? opjit_ir_math_operand(m, (ir_type)record->type, 0, i)
                                            : opjit_ir_math_const(m, (ir_type)record->type, record->imm[i]);
}

static void find_parts(const cg_func *f, const cg_math *record, sequence *s)
{
    uint32_t widest = 1;
    for (uint32_t i = 0; i < s->m.count; i++) {
        const uint32_t size = opjit_ir_type_size((ir_type)s->m.steps[i].type);
        widest = s->uses[i] > 0 && size > widest ? size : widest;
    }
    s->parts = 1;
    while (s->parts < MOST_PARTS && record->lanes / s->parts * widest > f->target->vector_bytes)
        s->parts *= 2;
    s->lanes = record->lanes / s->parts;
}

/* false: no memory. */
static bool make_sequence(cg_func *f, const cg_math *record, sequence *s)
{
    *s = (sequence){ .m = { .steps = ARENA_ARRAY(f->arena, math_step, MATH_STEPS),
                            .capacity = MATH_STEPS,
                            .below = record->kind != 0,
                            .scales = opjit_rt_target_scales(f->target) },
                     .uses = ARENA_ARRAY(f->arena, uint32_t, MATH_STEPS) };
    if (!s->m.steps || !s->uses)
        return false;
    const bool binary = opjit_ir_op_infos[record->op].operands[1] != '\0';
    const val x = operand(&s->m, record, 0), y = binary ? operand(&s->m, record, 1) : x;
    s->result = (uint32_t)opjit_ir_math(&s->m, (ir_op)record->op, x, y).bits;
    s->uses[s->result] = 1;
    for (uint32_t i = s->m.count; i-- > 0;)
        for (uint32_t k = 0; k < s->m.steps[i].count && s->uses[i] > 0; k++)
            s->uses[s->m.steps[i].args[k]]++;
    find_parts(f, record, s);
    for (uint32_t c = 0; c < record->copies * s->parts && !s->m.failed; c++)
        s->m.failed = (s->values[c] = ARENA_ARRAY(f->arena, LLVMValueRef, MATH_STEPS)) == NULL;
    return !s->m.failed;
}

/* c: the part of a copy. */
static LLVMValueRef put_step(cg_func *f, const cg_math *record, const sequence *s, const math_step *step, uint32_t c)
{
    const uint32_t param = c / s->parts * params_of(record) + (step->imm == 0 ? 0 : record->operands & 1);
    const ir_type type = (ir_type)step->type, from = (ir_type)s->m.steps[step->args[0]].type;
    LLVMValueRef a[3] = { NULL };
    for (uint32_t k = 0; k < step->count; k++)
        a[k] = s->values[c][step->args[k]];
    switch ((ir_op)step->op) {
    case IR_OP_NONE: return opjit_cg_part(f, LLVMGetParam(f->fn, param), c % s->parts * s->lanes, s->lanes);
    case IR_CONST: return opjit_cg_number(f, type == IR_BOOL ? 1 : 8 * opjit_ir_type_size(type), s->lanes, step->imm);
    case IR_CAST: return opjit_cg_convert(f, from, type, a[0]);
    case IR_BITS: return opjit_cg_as_bits(f, a[0]);
    case IR_SELECT: return opjit_cg_choose(f, a[0], a[1], a[2]);
    case IR_EQ:
    case IR_NE:
    case IR_LT:
    case IR_LE: return opjit_cg_compare(f, (ir_op)step->op, from, a[0], a[1]);
    default: return opjit_cg_arith(f, (ir_op)step->op, type, a);
    }
}

/* Chains of steps, one for each part of each copy, that are side by side; others follow.  Those of two operands are so
 * long that processors would see no others beside them. */
static uint32_t chains_together(const cg_func *f, const cg_math *m, uint32_t chains)
{
    const bool few = rt_target_has_16_vectors(f->target) && opjit_ir_op_infos[m->op].operands[1] == '\0';
    return few && chains > CG_MATH_CHAINS ? CG_MATH_CHAINS : chains;
}

static void put_chains(cg_func *f, const cg_math *m, const sequence *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < s->m.count; i++)
        for (uint32_t c = from; c < to && s->uses[i] > 0; c++)
            s->values[c][i] = put_step(f, m, s, &s->m.steps[i], c);
}

void opjit_cg_math_body(cg_func *f, const cg_math *m)
{
    sequence s;
    if (!make_sequence(f, m, &s)) {
        f->failed = true;
        return;
    }
    f->piece->lanes = s.lanes;
    const uint32_t chains = m->copies * s.parts, together = chains_together(f, m, chains);
    for (uint32_t c = 0; c < chains; c += together)
        put_chains(f, m, &s, c, c + together);
    LLVMValueRef out[CG_MATH_COPIES];
    for (uint32_t c = 0; c < m->copies; c++) {
        LLVMValueRef parts[MOST_PARTS];
        for (uint32_t p = 0; p < s.parts; p++)
            parts[p] = as_passed(f, (ir_type)m->type, s.values[c * s.parts + p][s.result]);
        out[c] = opjit_cg_join(f, parts, s.parts);
    }
    if (m->copies > 1)
        LLVMBuildAggregateRet(f->b, out, m->copies);
    else
        LLVMBuildRet(f->b, out[0]);
}

/* --- the call ----------------------------------------------------------------------------------------------------- */

/* A vector of fewer lanes as a part of a whole one, and back: with 16 bytes or more the same register, else through
 * memory. */
static LLVMValueRef resized(cg_func *f, LLVMValueRef v, LLVMTypeRef type, LLVMTypeRef widest)
{
    enum { LEAST_BITS = 128 };
    const uint32_t lanes = opjit_cg_lanes(v), count = LLVMGetVectorSize(type);
    uint32_t places[CG_MAX_LANES];
    for (uint32_t i = 0; i < count; i++)
        places[i] = i < lanes ? i : UINT32_MAX;
    if ((lanes < count ? lanes : count) * opjit_cg_bits(v) >= LEAST_BITS)
        return opjit_cg_shuffle(f, v, LLVMGetPoison(LLVMTypeOf(v)), places, count);
    LLVMValueRef memory = opjit_cg_alloca(f, widest);
    if (LLVMTypeOf(v) != widest)
        LLVMBuildStore(f->b, LLVMConstNull(widest), memory);
    LLVMBuildStore(f->b, v, memory);
    return LLVMBuildLoad2(f->b, type, memory, "");
}

/* Its function in this module: its name says what it computes. */
static LLVMValueRef function_of(cg_func *f, const cg_math *m)
{
    static const char *const together[] = { "", "", ".pair", "", ".four" };
    char prefix[48];
    cg_made *made;
    snprintf(prefix, sizeof prefix, "math.%s_%sx%u%s", opjit_ir_op_infos[m->op].name,
             opjit_ir_type_name((ir_type)m->type), m->lanes, together[m->copies]);
    LLVMValueRef fn = opjit_cg_kept_function(f, prefix, m, sizeof *m, opjit_cg_math_type(f, m), &made);
    if (made)
        made->math = *m;
    return fn;
}

static cg_math record_of(const cg_func *f, ir_ref node, uint32_t lanes, uint32_t copies)
{
    const ir_node *n = ir_at(f->ir, node);
    cg_math m = { .op = n->op, .type = n->type, .lanes = lanes, .copies = copies };
    m.kind = opjit_ir_math_is_below(f->ir, (ir_op)n->op, ir_operand(f->ir, node, 0));
    for (uint32_t i = 0; i < n->count && i < CG_MATH_OPERANDS; i++) {
        const ir_node *x = ir_at(f->ir, ir_operand(f->ir, node, i));
        if (x->op == IR_CONST)
            m.imm[i] = x->imm;
        else
            m.operands |= 1u << i;
    }
    return m;
}

void opjit_cg_math_operands(cg_func *f, ir_ref node, cg_math_values out)
{
    const ir_node *n = ir_at(f->ir, node);
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    for (uint32_t i = 0, params = 0; i < n->count && i < CG_MATH_OPERANDS; i++) {
        const ir_ref x = ir_operand(f->ir, node, i);
        if (ir_at(f->ir, x)->op != IR_CONST)
            out[params++] = as_passed(f, (ir_type)n->type, opjit_cg_emit_lanes(f, x, lanes));
    }
}

LLVMValueRef opjit_cg_math(cg_func *f, ir_ref node)
{
    const ir_type type = (ir_type)ir_at(f->ir, node)->type;
    const uint32_t lanes = opjit_cg_varies(f, node) ? f->piece->lanes : 1;
    const uint32_t width = f->target->vector_bytes / opjit_ir_type_size(type);
    const bool part = lanes > 1 && lanes < width;
    const cg_math m = record_of(f, node, part ? width : lanes, 1), narrow = { .type = type, .lanes = lanes };
    cg_math_values given;
    opjit_cg_math_operands(f, node, given);
    for (uint32_t i = 0; i < params_of(&m) && part; i++)
        given[i] = resized(f, given[i], type_of(f, &m), type_of(f, &m));
    LLVMValueRef fn = function_of(f, &m);
    LLVMValueRef out = LLVMBuildCall2(f->b, LLVMGlobalGetValueType(fn), fn, given, params_of(&m), "");
    return part ? resized(f, out, type_of(f, &narrow), type_of(f, &m)) : out;
}

uint32_t opjit_cg_math_copies(const cg_func *f, const ir_node *n)
{
    if ((opjit_ir_op_infos[n->op].flags & IR_FLAG_M) == 0)
        return 0;
    const bool few = rt_target_has_16_vectors(f->target);
    const bool is_short = few ? n->op == IR_EXP || (n->type != IR_F64 && (n->op == IR_LOG || n->op == IR_TANH ||
                                                                          n->op == IR_ERF))
                              : n->op == IR_EXP && n->type == IR_F32;
    return is_short ? CG_CALL_MORE_COPIES : CG_CALL_COPIES;
}

void opjit_cg_math_together(cg_func *f, ir_ref node, cg_math_values *operands, uint32_t copies, LLVMValueRef *out)
{
    const cg_math m = record_of(f, node, f->piece->lanes, copies);
    LLVMValueRef given[CG_MATH_COPIES * CG_MATH_OPERANDS], fn = function_of(f, &m);
    const uint32_t params = params_of(&m);
    for (uint32_t i = 0; i < copies * params; i++)
        given[i] = operands[i / params][i % params];
    LLVMValueRef all = LLVMBuildCall2(f->b, LLVMGlobalGetValueType(fn), fn, given, copies * params, "");
    for (uint32_t c = 0; c < copies; c++)
        out[c] = LLVMBuildExtractValue(f->b, all, c, "");
}
