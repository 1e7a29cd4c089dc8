/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - a function of LLVM's as operations on virtual registers: its blocks, loops and variables, then its
 * instructions in order. */
#include "codegen/direct.h"

#include "codegen/llvm_compat.h"

enum { PARAMETERS = 6, VECTOR_PARAMETERS = 8, MOST_BLOCKS = 4096 };

/* --- blocks and loops --------------------------------------------------------------------------------------------- */

static void read_blocks(dx_func *f)
{
    f->block_count = LLVMCountBasicBlocks(f->fn);
    f->label_count = f->block_count;
    f->blocks = ARENA_ARRAY(f->arena, dx_block, f->block_count);
    f->loops = ARENA_ARRAY(f->arena, dx_loop, f->block_count);
    if (!f->blocks || !f->loops || f->block_count > MOST_BLOCKS) {
        opjit_dx_refuse(f, f->block_count > MOST_BLOCKS ? "blocks" : "no memory");
        return;
    }
    uint32_t i = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f->fn); b; b = LLVMGetNextBasicBlock(b), i++) {
        f->blocks[i].block = b;
        dx_value *value = opjit_dx_enter(f, LLVMBasicBlockAsValue(b));
        value->how = DX_V_BLOCK;
        value->block = i;
    }
    for (i = 0; i < f->block_count; i++) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(f->blocks[i].block);
        const unsigned count = end ? LLVMGetNumSuccessors(end) : 3;
        if (count > 2) {
            opjit_dx_refuse(f, "terminator");
            return;
        }
        f->blocks[i].nexts = count;
        for (unsigned k = 0; k < count; k++)
            f->blocks[i].next[k] = opjit_dx_block_of(f, LLVMGetSuccessor(end, k));
    }
}

/* The latest block that jumps back to each block is the end of a loop.  Loops are nested, or refused. */
static void find_loops(dx_func *f)
{
    uint32_t *last = ARENA_ARRAY(f->arena, uint32_t, f->block_count);
    uint32_t open = 0;
    if (!last) {
        opjit_dx_refuse(f, "no memory");
        return;
    }
    for (uint32_t i = 0; i < f->block_count; i++)
        for (uint32_t k = 0; k < f->blocks[i].nexts; k++)
            if (f->blocks[i].next[k] <= i)
                last[f->blocks[i].next[k]] = i + 1;
    for (uint32_t i = 0; i < f->block_count; i++) {
        while (open && f->loops[open - 1].last < i)
            open = f->loops[open - 1].outer;
        if (last[i]) {
            dx_loop *l = &f->loops[f->loop_count++];
            *l = (dx_loop){ .first = i, .last = last[i] - 1, .outer = open, .inner = true };
            l->depth = open ? f->loops[open - 1].depth + 1 : 1;
            if (open && f->loops[open - 1].last < l->last)
                opjit_dx_refuse(f, "loops that overlap");
            if (open)
                f->loops[open - 1].inner = false;
            open = f->loop_count;
        }
        f->blocks[i].loop = open;
    }
}

/* --- instructions ------------------------------------------------------------------------------------------------- */

/* Whether the instruction, and what it reads, is no vector that is larger than any register: tables of lanes have
 * places for one. */
static bool fits(dx_func *f, LLVMValueRef v)
{
    enum { MOST = 64 }; /* lanes, bytes */
    dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    bool small = !t.lanes || (t.lanes <= MOST && dx_bytes(t) <= MOST);
    for (int i = 0; i < LLVMGetNumOperands(v) && small; i++) {
        LLVMValueRef x = LLVMGetOperand(v, (unsigned)i);
        t = opjit_dx_type(f, LLVMTypeOf(x));
        small = !t.lanes || (t.lanes <= MOST && dx_bytes(t) <= MOST) ||
                opjit_dx_is_wide(f, t) || (LLVMIsAInstruction(x) && opjit_dx_is_late(f, x));
    }
    return small;
}

/* Whether the instruction neither makes nor reads a vector, as most don't: what results in a number or an address reads
 * such ones, but for a few. */
static bool is_scalar(dx_func *f, LLVMValueRef v, LLVMOpcode op)
{
    const dx_type t = opjit_dx_type(f, LLVMTypeOf(v));
    return (t.kind == DX_T_INT || t.kind == DX_T_FLOAT || t.kind == DX_T_PTR) && !t.lanes && op != LLVMCall &&
           op != LLVMExtractElement && op != LLVMExtractValue && op != LLVMBitCast;
}

static void select_one(dx_func *f, LLVMValueRef v)
{
    const LLVMOpcode op = LLVMGetInstructionOpcode(v);
    const bool scalar = is_scalar(f, v, op);
    if (!scalar && (opjit_dx_is_late(f, v) || opjit_dx_select_wide(f, v, op)))
        return;
    if (!scalar && !fits(f, v)) {
        opjit_dx_refuse(f, "vector type");
        return;
    }
    if (LLVMIsATerminatorInst(v))
        opjit_dx_put_now(f);
    switch (op) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMUDiv:
    case LLVMSDiv:
    case LLVMURem:
    case LLVMSRem:
        if (opjit_dx_type(f, LLVMTypeOf(v)).lanes)
            opjit_dx_select_vector(f, v, op);
        else
            opjit_dx_select_integer(f, v, op);
        break;
    case LLVMFAdd:
    case LLVMFSub:
    case LLVMFMul:
    case LLVMFDiv: opjit_dx_select_vector(f, v, op); break;
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMFPToSI:
    case LLVMFPToUI:
    case LLVMSIToFP:
    case LLVMUIToFP:
    case LLVMFPTrunc:
    case LLVMFPExt:
    case LLVMBitCast:
    case LLVMPtrToInt:
    case LLVMIntToPtr:
    case LLVMFreeze: opjit_dx_select_cast(f, v, op); break;
    case LLVMICmp:
    case LLVMFCmp:
    case LLVMSelect: opjit_dx_select_choice(f, v, op); break;
    case LLVMShuffleVector:
    case LLVMInsertElement:
    case LLVMExtractElement:
    case LLVMExtractValue: opjit_dx_select_lanes(f, v, op); break;
    case LLVMLoad:
    case LLVMStore:
    case LLVMGetElementPtr:
    case LLVMAlloca: opjit_dx_select_memory(f, v, op); break;
    case LLVMCall: opjit_dx_select_call(f, v); break;
    case LLVMRet:
    case LLVMUnreachable: opjit_dx_select_flow(f, v, op); break;
    case LLVMPHI:
    case LLVMInsertValue: break; /* of what is returned, which the return looks for */
    default:
        if (compat_is_branch(op))
            opjit_dx_select_flow(f, v, op);
        else
            opjit_dx_refuse(f, "instruction");
        break;
    }
}

/* In the registers of the calling convention. */
static void read_parameters(dx_func *f)
{
    static const uint8_t integers[PARAMETERS] = { X86_DI, X86_SI, X86_DX, X86_CX, 8, 9 };
    const unsigned count = LLVMCountParams(f->fn);
    uint32_t ints = 0, vectors = 0;
    for (unsigned i = 0; i < count && !f->refused; i++) {
        LLVMValueRef p = LLVMGetParam(f->fn, i);
        const dx_class kind = opjit_dx_class(f, opjit_dx_type(f, LLVMTypeOf(p)));
        const bool vector = kind == DX_VEC;
        if (kind == DX_MASK || (vector ? vectors == VECTOR_PARAMETERS : ints == PARAMETERS)) {
            opjit_dx_refuse(f, "parameters");
            return;
        }
        const uint32_t fixed = vector ? vectors++ : integers[ints++];
        dx_reg reg = opjit_dx_result(f, p);
        dx_op *o = opjit_dx_op(f, DX_MOVES);
        o->dst = reg;
        o->fixed = DX_FROM_FIXED;
        o->imm = fixed;
        o->last = i == count - 1;
        if (!f->refused) {
            f->regs[reg].fixed_hint = true;
            f->regs[reg].hint = fixed;
        }
    }
}

static void enter_phis(dx_func *f, LLVMBasicBlockRef block)
{
    for (LLVMValueRef v = LLVMGetFirstInstruction(block); v && LLVMGetInstructionOpcode(v) == LLVMPHI;
         v = LLVMGetNextInstruction(v))
        opjit_dx_result(f, v);
}

void opjit_dx_read(dx_func *f)
{
    read_blocks(f);
    if (!f->refused)
        find_loops(f);
    for (f->block = 0; f->block < f->block_count && !f->refused; f->block++)
        enter_phis(f, f->blocks[f->block].block);
    for (f->block = 0; f->block < f->block_count && !f->refused; f->block++) {
        dx_block *b = &f->blocks[f->block];
        b->first = f->op_count;
        dx_forget_constants(f);
        opjit_dx_op(f, DX_LABEL)->imm = f->block;
        if (f->block == 0)
            read_parameters(f);
        for (LLVMValueRef v = LLVMGetFirstInstruction(b->block); v && !f->refused; v = LLVMGetNextInstruction(v))
            select_one(f, v);
        b->end = f->op_count;
    }
}
