/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - what a kernel is compiled for, as data: architecture, features, tuning, cache sizes.  The text is
 * canonical: equal targets have equal text, and the text is part of every cache key.
 *     cpu:x86-64-v3[+feature...][,tune=NAME][,vec=BYTES][,l1=BYTES][,l2=BYTES][,l3=BYTES]
 * Likewise cpu:aarch64, cpu:rv64gc and cpu:rv64gcv.  SVE and V have vectors of a minimum length: vec=32 asks for at
 * least 256 bits and implies the feature +sve256 or +zvl256b; the code runs on machines with longer vectors, too.
 * GPUs: nvptx:sm_80, nvptx:sm_90, ..., amdgpu:gfx90a, ..., spirv (short for spirv:opencl).  Named targets
 * ("cpu:znver4") take features, tuning and cache sizes from a table, never from the host. */
#ifndef OPJIT_RUNTIME_TARGET_TARGET_H
#define OPJIT_RUNTIME_TARGET_TARGET_H

#include "runtime/base/base.h"

typedef enum rt_arch {
    RT_ARCH_X86_64 = 1, RT_ARCH_AARCH64, RT_ARCH_RISCV64, RT_ARCH_NVPTX, RT_ARCH_AMDGPU, RT_ARCH_SPIRV,
    RT_ARCH_END
} rt_arch;

/* Feature bits.  Their order is frozen, because kernel metadata stores features[]. */
typedef enum rt_feature {
    RT_X86_SSE3, RT_X86_SSSE3, RT_X86_SSE41, RT_X86_SSE42, RT_X86_POPCNT, RT_X86_CX16, RT_X86_LAHF,   /* v2 */
    RT_X86_AVX, RT_X86_AVX2, RT_X86_BMI, RT_X86_BMI2, RT_X86_F16C, RT_X86_FMA, RT_X86_LZCNT, RT_X86_MOVBE,
    RT_X86_XSAVE,                                                                                     /* v3 */
    RT_X86_AVX512F, RT_X86_AVX512BW, RT_X86_AVX512CD, RT_X86_AVX512DQ, RT_X86_AVX512VL,               /* v4 */
    RT_X86_AVX512VNNI, RT_X86_AVX512VBMI, RT_X86_AVX512VBMI2, RT_X86_AVX512BITALG, RT_X86_AVX512VPOPCNTDQ,
    RT_X86_AVX512FP16,
    RT_X86_CLZERO, RT_X86_ERMS, RT_X86_FSRM,
    RT_ARM_NEON, RT_ARM_SVE, RT_ARM_SVE2, RT_ARM_SVE_256, RT_ARM_SVE_512,                             /* NEON: all */
    RT_RISCV_M, RT_RISCV_A, RT_RISCV_F, RT_RISCV_D, RT_RISCV_C,                                       /* rv64gc */
    RT_RISCV_V, RT_RISCV_ZVL256B, RT_RISCV_ZVL512B, RT_RISCV_ZBA, RT_RISCV_ZBB, RT_RISCV_ZBS, RT_RISCV_ZFHMIN,
    RT_RISCV_ZVFHMIN,
    RT_NV_SM80, RT_NV_SM90, RT_NV_SM100, RT_NV_SM120, /* each stands for all architectures up to it */
    RT_AMD_GFX90A, RT_AMD_GFX942, RT_AMD_GFX1100, RT_AMD_GFX1201, /* the last one set is the architecture */
    RT_SPIRV_OPENCL,
    RT_FEATURE_COUNT
} rt_feature;

/* Where cpuid (subleaf 0) reports a feature.  The table ends with leaf 0. */
typedef struct rt_cpuid_bit {
    rt_feature feature;
    uint32_t leaf;
    char reg; /* 'b', 'c' or 'd' */
    uint8_t bit;
    uint8_t state; /* register state that the system must save: bits of xgetbv(0) */
} rt_cpuid_bit;
extern const rt_cpuid_bit opjit_rt_cpuid_bits[];

#define RT_TARGET_TEXT_SIZE 384 /* fits the longest canonical text, with every feature and option */

typedef struct rt_target {
    rt_arch arch;
    uint32_t level;        /* x86-64, NVPTX, AMDGPU: 1 to 4; RISC-V: 1, with V 2; AArch64, SPIR-V: 1 */
    uint64_t features;     /* bits by rt_feature; contains the level's, and only this architecture's */
    uint32_t vector_bytes; /* 16, 32 or 64: the schedule's vector width */
    uint64_t l1, l2, l3;   /* bytes of data cache available to one core; l3 0: none */
    char tune[32];         /* LLVM's -mtune name; "generic" */
    char text[RT_TARGET_TEXT_SIZE]; /* canonical */
} rt_target;

/* The features that a level guarantees; LLVM's name of a feature; the features it builds on. */
uint64_t opjit_rt_level_features(rt_arch arch, uint32_t level);
const char *opjit_rt_feature_name(rt_feature feature);
uint64_t opjit_rt_feature_needs(rt_feature feature);
/* The architecture of a set of features.  The empty set is x86-64's. */
rt_arch opjit_rt_target_arch(uint64_t features);
/* Sets architecture and level from the features, then vector_bytes and cache sizes to that level's defaults. */
void opjit_rt_target_set_features(rt_target *target, uint64_t features);
/* Writes target->text from the other fields. */
void opjit_rt_target_write_text(rt_target *target);

/* Describes the machine this runs on: features from cpuid and /sys, the level from the features, tuning from family and
 * model. */
void opjit_rt_target_host(rt_target *out);
/* "cpu" or NULL is the host.  Refuses unknown names, features and malformed numbers with a message that lists what is
 * allowed. */
opjit_status opjit_rt_target_parse(const char *text, rt_target *out, opjit_error *error);
/* Whether this machine runs code for *target; if not, *error names the missing feature. */
opjit_status opjit_rt_target_runs_here(const rt_target *target, opjit_error *error);
static inline bool rt_target_has(const rt_target *t, rt_feature f) { return (t->features >> f & 1) != 0; }
/* Whether masked loads and stores are as fast as plain ones for every element type, so that a loop's remainder is one
 * masked vector. */
bool opjit_rt_target_has_masks(const rt_target *target);
/* Whether code at level quick calls functions for mathematical ops, rather than having their sequences in place. */
bool opjit_rt_target_calls_math(const rt_target *target);
/* Whether it has AVX-512 for all integers, and for short vectors, too. */
static inline bool rt_target_has_avx512(const rt_target *t)
{
    return rt_target_has(t, RT_X86_AVX512BW) && rt_target_has(t, RT_X86_AVX512VL); /* which both include F */
}
/* Whether it has instructions that load lanes of 32 and 64 bits from places that other lanes say. */
static inline bool rt_target_gathers(const rt_target *t) { return rt_target_has_avx512(t); }
/* Whether it has an instruction that looks up a vector of bytes in half of a table of 256. */
static inline bool rt_target_looks_up(const rt_target *t)
{
    return rt_target_has_avx512(t) && rt_target_has(t, RT_X86_AVX512VBMI);
}
/* Whether there are 16 vector registers, not 32. */
static inline bool rt_target_has_16_vectors(const rt_target *t)
{
    return t->arch == RT_ARCH_X86_64 && !rt_target_has(t, RT_X86_AVX512VL);
}
/* Bytes that the place of an extreme (argmin, argmax) counts as where lanes are chosen; 0: any lanes will do.  With
 * AVX-512 vectors of places, which have 64 bits, may take two registers. */
static inline uint32_t rt_target_place_bytes(const rt_target *t)
{
    return t->arch != RT_ARCH_X86_64 ? 0 : rt_target_has_avx512(t) ? 4 : 8;
}
/* Whether it has an instruction that adds the products of four bytes (IR_DOT4_US). */
static inline bool rt_target_has_dot4(const rt_target *t)
{
    return rt_target_has_avx512(t) && rt_target_has(t, RT_X86_AVX512VNNI);
}
/* Whether it has an instruction that multiplies floats by powers of two (IR_SCALE). */
bool opjit_rt_target_scales(const rt_target *target);
/* Whether it has an instruction that rounds FLOAT32 to INT32, as IR_NEAREST does. */
static inline bool rt_target_rounds(const rt_target *t) { return t->arch == RT_ARCH_X86_64; }
/* Whether loads of every type may be at any address, and are as fast as others where that is a multiple of the type's
 * size. */
static inline bool rt_target_loads_anywhere(const rt_target *t)
{
    return t->arch == RT_ARCH_X86_64 || t->arch == RT_ARCH_AARCH64;
}
/* Writes LLVM's names ("+avx2"), comma-separated and in bit order, of all features that LLVM knows; NUL-terminated. */
void opjit_rt_target_features_text(const rt_target *t, char *text, size_t size);
static inline bool rt_arch_is_gpu(rt_arch arch) { return arch >= RT_ARCH_NVPTX; }
/* Threads that execute one iteration of a stage together; 0: not a GPU. */
static inline uint32_t rt_target_team(const rt_target *t) { return rt_arch_is_gpu(t->arch) ? 32 : 0; }
/* Whether a team runs in lock step regardless of the rest of its block; if not, it synchronises at barriers of the
 * whole block. */
static inline bool rt_target_lock_step(const rt_target *t) { return t->arch != RT_ARCH_SPIRV; }
/* The word before the colon: "cpu", "nvptx", "amdgpu", "spirv". */
const char *opjit_rt_target_family(rt_arch arch);
/* Writes the index-th known target name ("cpu:x86-64-v1", ..., "cpu:znver4", "nvptx:sm_80", ...) into text (size
 * bytes); false: no more.  For `opjit targets` and messages. */
bool opjit_rt_target_name(uint32_t index, char *text, size_t size);

#endif
