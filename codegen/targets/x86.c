/* SPDX-License-Identifier: Apache-2.0 */
/* x86.c - x86-64 as a target: names, attributes and what its features allow.  The CPU name given to LLVM is always the
 * plain level's; features and tuning are spelled out, so that code for any target can be generated on any machine. */
#include "codegen/cg.h"

#include <llvm-c/Target.h>

static void setup(void)
{
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); /* for cpuid in objects that check the CPU (cpu_check.c) */
}

static const char *cpu(const rt_target *target)
{
    static const char *const levels[] = { "x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4" };
    return levels[target->level >= 1 && target->level <= 4 ? target->level - 1 : 0];
}

/* AVX2 has vpmaskmov for 32 and 64 bits; without AVX-512 LLVM makes one branch per lane for all other widths. */
static bool masked(const rt_target *t, uint32_t bits)
{
    return rt_target_has_avx512(t) || (rt_target_has(t, RT_X86_AVX2) && bits >= 32);
}

/* --- products of bytes and halves --------------------------------------------------------------------------------- */

/* dot4 is one instruction with VNNI, dot2 one that multiplies pairs of halves and adds them, exactly, and an addition.
 * The one that multiplies pairs of bytes saturates. */
static LLVMValueRef dots(cg_func *f, ir_op op, LLVMValueRef *a)
{
    enum { WIDTHS = 3 };
    static const char *const bytes[WIDTHS] = { "llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256",
                                               "llvm.x86.avx512.vpdpbusd.512" };
    static const char *const pairs[WIDTHS] = { "llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd",
                                               "llvm.x86.avx512.pmaddw.d.512" };
    const uint32_t lanes = opjit_cg_lanes(a[0]), width = lanes == 4 ? 0 : lanes == 8 ? 1 : 2;
    const rt_target *t = f->target;
    if ((lanes != 4 && lanes != 8 && lanes != 16) || (lanes == 8 && !rt_target_has(t, RT_X86_AVX2)) ||
        (lanes == 16 && !rt_target_has_avx512(t)) || (op != IR_DOT2 && (op != IR_DOT4_US || !rt_target_has_dot4(t))))
        return NULL;
    LLVMTypeRef type = opjit_cg_int(f, op == IR_DOT2 ? 16 : 8, (op == IR_DOT2 ? 2 : 4) * lanes);
    LLVMValueRef x = LLVMBuildBitCast(f->b, a[1], type, ""), y = LLVMBuildBitCast(f->b, a[2], type, "");
    if (op != IR_DOT2)
        return opjit_cg_call_plain(f, bytes[width], 3, (LLVMValueRef[]){ a[0], x, y });
    return LLVMBuildAdd(f->b, a[0], opjit_cg_call_plain(f, pairs[width], 2, (LLVMValueRef[]){ x, y }), "");
}

/* Of whole 512-bit vectors of 32 or 64 bits, one instruction whatever the lanes. */
static LLVMValueRef permute(cg_func *f, LLVMValueRef a, LLVMValueRef b, LLVMValueRef places)
{
    const uint32_t bits = opjit_cg_bits(a);
    if (!rt_target_has_avx512(f->target) || opjit_cg_lanes(a) * bits != 512 || (bits != 32 && bits != 64) ||
        LLVMTypeOf(a) != LLVMTypeOf(places))
        return NULL;
    return opjit_cg_call_plain(f, bits == 32 ? "llvm.x86.avx512.vpermi2var.d.512" : "llvm.x86.avx512.vpermi2var.q.512",
                               3, (LLVMValueRef[]){ a, places, b });
}

/* Whether these are numbers in whole 512-bit vectors. */
static bool whole_floats(const cg_func *f, LLVMValueRef v)
{
    return rt_target_has_avx512(f->target) && opjit_cg_lanes(v) * opjit_cg_bits(v) == 512 &&
           (LLVMTypeOf(v) == opjit_cg_float(f, IR_F32, 16) || LLVMTypeOf(v) == opjit_cg_float(f, IR_F64, 8));
}

enum { CURRENT_ROUNDING = 4, NOT_GREATER = 0x12, NOT_LESS = 0x1d /* ordered, quiet */ };

static LLVMValueRef beyond(cg_func *f, bool max, LLVMValueRef x, LLVMValueRef y)
{
    static const char *const names[2][2] = { { "llvm.x86.avx512.min.ps.512", "llvm.x86.avx512.max.ps.512" },
                                             { "llvm.x86.avx512.min.pd.512", "llvm.x86.avx512.max.pd.512" } };
    LLVMValueRef args[] = { x, y, opjit_cg_number(f, 32, 1, CURRENT_ROUNDING) };
    return whole_floats(f, x) ? opjit_cg_call_plain(f, names[opjit_cg_bits(x) == 64][max], 3, args) : NULL;
}

static LLVMValueRef lanes_where(cg_func *f, uint32_t how, LLVMValueRef x, LLVMValueRef y)
{
    const bool wide = opjit_cg_bits(x) == 64;
    LLVMValueRef args[] = { x, y, opjit_cg_number(f, 32, 1, how), opjit_cg_number(f, 1, opjit_cg_lanes(x), 1),
                            opjit_cg_number(f, 32, 1, CURRENT_ROUNDING) };
    return opjit_cg_call_plain(f, wide ? "llvm.x86.avx512.mask.cmp.pd.512" : "llvm.x86.avx512.mask.cmp.ps.512", 5,
                               args);
}

static LLVMValueRef limit(cg_func *f, bool max, LLVMValueRef x, LLVMValueRef y, LLVMValueRef address)
{
    if (!whole_floats(f, x))
        return NULL;
    return opjit_cg_load_where(f, address, lanes_where(f, max ? NOT_GREATER : NOT_LESS, x, y), x, 64);
}

static bool compares(const rt_target *t, uint32_t bits, uint32_t lanes)
{
    return rt_target_has_avx512(t) && rt_target_has(t, RT_X86_AVX512DQ) && bits >= 32 && lanes * bits == 512;
}

static LLVMValueRef compare(cg_func *f, LLVMRealPredicate how, LLVMValueRef x, LLVMValueRef y)
{
    static const uint32_t quiet[] = {
        [LLVMRealOEQ] = 0x00, [LLVMRealOLT] = 0x11, [LLVMRealOLE] = 0x12, [LLVMRealUNO] = 0x03, [LLVMRealUNE] = 0x04
    };
    return lanes_where(f, quiet[how], x, y);
}

static LLVMValueRef repeat(cg_func *f, LLVMValueRef v)
{
    static const char *const names[2][2] = { { "llvm.x86.avx512.permvar.si.512", "llvm.x86.avx512.permvar.sf.512" },
                                             { "llvm.x86.avx512.permvar.di.512", "llvm.x86.avx512.permvar.df.512" } };
    const uint32_t bits = opjit_cg_bits(v), lanes = opjit_cg_lanes(v);
    LLVMValueRef args[] = { v, opjit_cg_number(f, bits, lanes, 0) };
    return opjit_cg_call_plain(f, names[bits == 64][LLVMTypeOf(v) != opjit_cg_int(f, bits, lanes)], 2, args);
}

/* Of the kinds of number that a table has an answer for, those of a NaN are "the second operand". */
static LLVMValueRef unless_nan(cg_func *f, LLVMValueRef x, LLVMValueRef y)
{
    enum { NAN_KINDS = 0x11 };
    const uint32_t lanes = opjit_cg_lanes(x), bits = opjit_cg_bits(x);
    if (!whole_floats(f, x))
        return NULL;
    LLVMValueRef args[] = { x,
                            y,
                            opjit_cg_kept(f, opjit_cg_number(f, bits, lanes, NAN_KINDS)),
                            opjit_cg_number(f, 32, 1, 0),
                            opjit_cg_number(f, lanes, 1, UINT64_MAX),
                            opjit_cg_number(f, 32, 1, CURRENT_ROUNDING) };
    return opjit_cg_call_plain(
        f, bits == 64 ? "llvm.x86.avx512.mask.fixupimm.pd.512" : "llvm.x86.avx512.mask.fixupimm.ps.512", 6, args);
}

static bool gathers(const rt_target *t, uint32_t bits, uint32_t lanes)
{
    return rt_target_gathers(t) && ((bits == 32 && (lanes == 8 || lanes == 16)) || (bits == 64 && lanes == 8));
}

static LLVMValueRef gather(cg_func *f, LLVMTypeRef type, LLVMValueRef address, LLVMValueRef offsets, LLVMValueRef mask)
{
    const bool half = type == opjit_cg_int(f, 32, 8), whole = type == opjit_cg_int(f, 32, 16);
    if (!half && !whole && type != opjit_cg_int(f, 64, 8))
        return NULL;
    LLVMValueRef args[] = { LLVMConstNull(type), address, offsets, mask,
                            opjit_cg_number(f, 32, 1, half || whole ? 4 : 8) };
    const char *name = half    ? "llvm.x86.avx512.mask.gather3siv8.si"
                       : whole ? "llvm.x86.avx512.mask.gather.dpi.512"
                               : "llvm.x86.avx512.mask.gather.dpq.512";
    return opjit_cg_call_plain(f, name, 5, args);
}

/* Each half of the table is two registers, of which an instruction takes what seven bits say; the eighth chooses. */
static LLVMValueRef look_up(cg_func *f, LLVMValueRef address, LLVMValueRef places)
{
    enum { LANES = 64 };
    LLVMTypeRef type = opjit_cg_int(f, 8, LANES);
    LLVMValueRef parts[4], halves[2];
    if (!rt_target_looks_up(f->target) || LLVMTypeOf(places) != type)
        return NULL;
    for (uint32_t i = 0; i < 4; i++) {
        parts[i] = LLVMBuildLoad2(
            f->b, type, opjit_cg_offset(f, f->type.i8, address, opjit_cg_number(f, 64, 1, (uint64_t)i * LANES)), "");
        LLVMSetAlignment(parts[i], 1);
    }
    for (uint32_t i = 0; i < 2; i++)
        halves[i] = opjit_cg_call_plain(f, "llvm.x86.avx512.vpermi2var.qi.512", 3,
                                        (LLVMValueRef[]){ parts[2 * i], places, parts[2 * i + 1] });
    LLVMValueRef upper = LLVMBuildICmp(f->b, LLVMIntSLT, places, opjit_cg_number(f, 8, LANES, 0), "");
    return LLVMBuildSelect(f->b, upper, halves[1], halves[0], "");
}

/* In whole vectors of 128 to 512 bits. */
static LLVMValueRef scale(cg_func *f, LLVMValueRef x, LLVMValueRef n)
{
    enum { LEAST = 128, MOST = 512 };
    static const char *const names[2][3] = {
        { "llvm.x86.avx512.mask.scalef.ps.128", "llvm.x86.avx512.mask.scalef.ps.256",
          "llvm.x86.avx512.mask.scalef.ps.512" },
        { "llvm.x86.avx512.mask.scalef.pd.128", "llvm.x86.avx512.mask.scalef.pd.256",
          "llvm.x86.avx512.mask.scalef.pd.512" }
    };
    const uint32_t bits = opjit_cg_bits(x), lanes = opjit_cg_lanes(x), all = lanes * bits;
    LLVMValueRef a[2] = { x, n }, halves[2];
    if (all > MOST) {
        for (uint32_t i = 0; i < 2; i++)
            halves[i] =
                scale(f, opjit_cg_part(f, x, i * lanes / 2, lanes / 2), opjit_cg_part(f, n, i * lanes / 2, lanes / 2));
        return opjit_cg_join(f, halves, 2);
    }
    for (uint32_t i = 0; i < 2 && all < LEAST; i++)
        a[i] = opjit_cg_part(f, a[i], 0, LEAST / bits);
    const uint32_t width = all < LEAST ? LEAST : all, mask = width / bits < 8 ? 8 : width / bits;
    LLVMValueRef args[] = { a[0], a[1], a[0], opjit_cg_number(f, mask, 1, UINT64_MAX),
                            opjit_cg_number(f, 32, 1, CURRENT_ROUNDING) };
    return opjit_cg_part(f, opjit_cg_call_plain(f, names[bits == 64][width / 256], width == MOST ? 5 : 4, args), 0,
                         lanes);
}

/* In whole vectors of 128 to 512 bits. */
static LLVMValueRef nearest(cg_func *f, LLVMValueRef x)
{
    enum { LEAST = 4, MOST = 16 };
    const uint32_t lanes = opjit_cg_lanes(x);
    const uint32_t most = rt_target_has_avx512(f->target)         ? MOST
                          : rt_target_has(f->target, RT_X86_AVX2) ? MOST / 2
                                                                  : LEAST;
    LLVMValueRef halves[2];
    if (lanes > most) {
        for (uint32_t i = 0; i < 2; i++)
            halves[i] = nearest(f, opjit_cg_part(f, x, i * lanes / 2, lanes / 2));
        return opjit_cg_join(f, halves, 2);
    }
    LLVMValueRef whole = lanes < LEAST ? opjit_cg_part(f, x, 0, LEAST) : x;
    LLVMValueRef args[] = { whole, opjit_cg_number(f, 32, MOST, 0), opjit_cg_number(f, MOST, 1, UINT64_MAX),
                            opjit_cg_number(f, 32, 1, CURRENT_ROUNDING) };
    if (lanes == MOST)
        return opjit_cg_call_plain(f, "llvm.x86.avx512.mask.cvtps2dq.512", 4, args);
    whole = opjit_cg_call_plain(f, lanes > LEAST ? "llvm.x86.avx.cvt.ps2dq.256" : "llvm.x86.sse2.cvtps2dq", 1, args);
    return opjit_cg_part(f, whole, 0, lanes);
}

static const cg_legal legal[] = {
    { IR_ELEM, CG_F16, CG_NEEDS(RT_X86_F16C), CG_NATIVE, CG_EXPANDED },
    { IR_CAST, CG_F16, CG_NEEDS(RT_X86_F16C), CG_NATIVE, CG_EXPANDED },
    { IR_FMA, CG_F32 | CG_F64, CG_NEEDS(RT_X86_FMA), CG_NATIVE, CG_CALLED },
    { IR_NEAREST, CG_I32, 0, CG_NATIVE, CG_NATIVE },
    { IR_SCALE, CG_F32 | CG_F64, CG_NEEDS(RT_X86_AVX512VL), CG_NATIVE, CG_REFUSED },
    { IR_FLOOR, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_CEIL, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_TRUNC, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_RINT, CG_FLOATS, CG_NEEDS(RT_X86_SSE41), CG_NATIVE, CG_EXPANDED },
    { IR_CTPOP, CG_INTS, CG_NEEDS(RT_X86_POPCNT), CG_NATIVE, CG_EXPANDED },
    { .types = 0 },
};

const cg_target opjit_cg_target_x86 = {
    .arch = RT_ARCH_X86_64,
    .name = "x86-64",
    .triple = "x86_64-unknown-linux-gnu",
    .layout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128",
    .machine_cpu = "x86-64",
    .setup = setup,
    .cpu = cpu,
    .legal = legal,
    .masked = masked,
    .dots = dots,
    .permute = permute,
    .beyond = beyond,
    .limit = limit,
    .compares = compares,
    .compare = compare,
    .repeat = repeat,
    .unless_nan = unless_nan,
    .gathers = gathers,
    .gather = gather,
    .look_up = look_up,
    .scale = scale,
    .nearest = nearest,
    .tile = opjit_cg_x86_tile,
    .half_bits = true,
    .fence = "llvm.x86.sse.sfence",
};
