/* SPDX-License-Identifier: Apache-2.0 */
/* target_table.c - the targets that exist, as tables: levels, features, named CPUs, tunings; and what a set of features
 * says of a target. */
#include "runtime/target/target_table.h"

#include <stdio.h>
#include <string.h>

#define X86 RT_ARCH_X86_64
#define ARM RT_ARCH_AARCH64
#define RISCV RT_ARCH_RISCV64
#define NV RT_ARCH_NVPTX
#define AMD RT_ARCH_AMDGPU
#define SPV RT_ARCH_SPIRV
#define BIT(feature) RT_FEATURE_BIT(feature)
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

/* RV64 without V has no vectors: LLVM splits those of the schedule into scalars. */
static const rt_level_row levels[] = {
    { X86, 1, "x86-64-v1", 16, 32 * KIB, 256 * KIB, 8 * MIB },
    { X86, 2, "x86-64-v2", 16, 32 * KIB, 256 * KIB, 8 * MIB },
    { X86, 3, "x86-64-v3", 32, 32 * KIB, 512 * KIB, 8 * MIB },
    { X86, 4, "x86-64-v4", 64, 32 * KIB, 512 * KIB, 8 * MIB },
    { ARM, 1, "aarch64", 16, 32 * KIB, 512 * KIB, 8 * MIB },
    { RISCV, 1, "rv64gc", 16, 32 * KIB, 512 * KIB, 8 * MIB },
    { RISCV, 2, "rv64gcv", 16, 32 * KIB, 512 * KIB, 8 * MIB },
    { NV, 1, "sm_80", 16, 128 * KIB, 40 * MIB, 0 },
    { NV, 2, "sm_90", 16, 128 * KIB, 50 * MIB, 0 },
    { NV, 3, "sm_100", 16, 128 * KIB, 64 * MIB, 0 },
    { NV, 4, "sm_120", 16, 128 * KIB, 64 * MIB, 0 },
    { AMD, 1, "gfx90a", 16, 16 * KIB, 8 * MIB, 0 },
    { AMD, 2, "gfx942", 16, 32 * KIB, 4 * MIB, 256 * MIB },
    { AMD, 3, "gfx1100", 16, 32 * KIB, 6 * MIB, 96 * MIB },
    { AMD, 4, "gfx1201", 16, 32 * KIB, 8 * MIB, 64 * MIB },
    { SPV, 1, "opencl", 16, 32 * KIB, 1 * MIB, 0 },
};
enum { LEVEL_COUNT = sizeof levels / sizeof *levels };

/* The features that AVX-512 builds on; LLVM assumes them once it is told the feature. */
#define AVX512_BASE (BIT(RT_X86_AVX2) | BIT(RT_X86_F16C) | BIT(RT_X86_FMA))
#define AVX512_FP16_BASE (BIT(RT_X86_AVX512BW) | BIT(RT_X86_AVX512DQ) | BIT(RT_X86_AVX512VL))

const rt_feature_row opjit_rt_features[RT_FEATURE_COUNT] = {
    [RT_X86_SSE3] = { "sse3", X86, 2, 0, 0, false },
    [RT_X86_SSSE3] = { "ssse3", X86, 2, BIT(RT_X86_SSE3), 0, false },
    [RT_X86_SSE41] = { "sse4.1", X86, 2, BIT(RT_X86_SSSE3), 0, false },
    [RT_X86_SSE42] = { "sse4.2", X86, 2, BIT(RT_X86_SSE41), 0, false },
    [RT_X86_POPCNT] = { "popcnt", X86, 2, 0, 0, false },
    [RT_X86_CX16] = { "cx16", X86, 2, 0, 0, false },
    [RT_X86_LAHF] = { "sahf", X86, 2, 0, 0, false },
    [RT_X86_AVX] = { "avx", X86, 3, BIT(RT_X86_SSE42), 0, false },
    [RT_X86_AVX2] = { "avx2", X86, 3, BIT(RT_X86_AVX), 0, false },
    [RT_X86_BMI] = { "bmi", X86, 3, 0, 0, false },
    [RT_X86_BMI2] = { "bmi2", X86, 3, 0, 0, false },
    [RT_X86_F16C] = { "f16c", X86, 3, BIT(RT_X86_AVX), 0, false },
    [RT_X86_FMA] = { "fma", X86, 3, BIT(RT_X86_AVX), 0, false },
    [RT_X86_LZCNT] = { "lzcnt", X86, 3, 0, 0, false },
    [RT_X86_MOVBE] = { "movbe", X86, 3, 0, 0, false },
    [RT_X86_XSAVE] = { "xsave", X86, 3, 0, 0, false },
    [RT_X86_AVX512F] = { "avx512f", X86, 4, AVX512_BASE, 0, false },
    [RT_X86_AVX512BW] = { "avx512bw", X86, 4, BIT(RT_X86_AVX512F), 0, false },
    [RT_X86_AVX512CD] = { "avx512cd", X86, 4, BIT(RT_X86_AVX512F), 0, false },
    [RT_X86_AVX512DQ] = { "avx512dq", X86, 4, BIT(RT_X86_AVX512F), 0, false },
    [RT_X86_AVX512VL] = { "avx512vl", X86, 4, BIT(RT_X86_AVX512F), 0, false },
    [RT_X86_AVX512VNNI] = { "avx512vnni", X86, 0, BIT(RT_X86_AVX512F), 0, false },
    [RT_X86_AVX512VBMI] = { "avx512vbmi", X86, 0, BIT(RT_X86_AVX512BW), 0, false },
    [RT_X86_AVX512VBMI2] = { "avx512vbmi2", X86, 0, BIT(RT_X86_AVX512BW), 0, false },
    [RT_X86_AVX512BITALG] = { "avx512bitalg", X86, 0, BIT(RT_X86_AVX512BW), 0, false },
    [RT_X86_AVX512VPOPCNTDQ] = { "avx512vpopcntdq", X86, 0, BIT(RT_X86_AVX512F), 0, false },
    [RT_X86_AVX512FP16] = { "avx512fp16", X86, 0, AVX512_FP16_BASE, 0, false },
    [RT_X86_CLZERO] = { "clzero", X86, 0, 0, 0, false },
    [RT_X86_ERMS] = { "ermsb", X86, 0, 0, 0, false },
    [RT_X86_FSRM] = { "fsrm", X86, 0, 0, 0, false },
    [RT_ARM_NEON] = { "neon", ARM, 1, 0, 0, false },
    [RT_ARM_SVE] = { "sve", ARM, 0, BIT(RT_ARM_NEON), 0, false },
    [RT_ARM_SVE2] = { "sve2", ARM, 0, BIT(RT_ARM_SVE), 0, false },
    [RT_ARM_SVE_256] = { "sve256", ARM, 0, BIT(RT_ARM_SVE), 32, true },
    [RT_ARM_SVE_512] = { "sve512", ARM, 0, BIT(RT_ARM_SVE_256), 64, true },
    [RT_RISCV_M] = { "m", RISCV, 1, 0, 0, false },
    [RT_RISCV_A] = { "a", RISCV, 1, 0, 0, false },
    [RT_RISCV_F] = { "f", RISCV, 1, 0, 0, false },
    [RT_RISCV_D] = { "d", RISCV, 1, BIT(RT_RISCV_F), 0, false },
    [RT_RISCV_C] = { "c", RISCV, 1, 0, 0, false },
    [RT_RISCV_V] = { "v", RISCV, 2, BIT(RT_RISCV_D), 0, false },
    [RT_RISCV_ZVL256B] = { "zvl256b", RISCV, 0, BIT(RT_RISCV_V), 32, false },
    [RT_RISCV_ZVL512B] = { "zvl512b", RISCV, 0, BIT(RT_RISCV_ZVL256B), 64, false },
    [RT_RISCV_ZBA] = { "zba", RISCV, 0, 0, 0, false },
    [RT_RISCV_ZBB] = { "zbb", RISCV, 0, 0, 0, false },
    [RT_RISCV_ZBS] = { "zbs", RISCV, 0, 0, 0, false },
    [RT_RISCV_ZFHMIN] = { "zfhmin", RISCV, 0, BIT(RT_RISCV_F), 0, false },
    [RT_RISCV_ZVFHMIN] = { "zvfhmin", RISCV, 0, BIT(RT_RISCV_V) | BIT(RT_RISCV_ZFHMIN), 0, false },
    [RT_NV_SM80] = { "sm_80", NV, 1, 0, 0, true },
    [RT_NV_SM90] = { "sm_90", NV, 2, BIT(RT_NV_SM80), 0, true },
    [RT_NV_SM100] = { "sm_100", NV, 3, BIT(RT_NV_SM90), 0, true },
    [RT_NV_SM120] = { "sm_120", NV, 4, BIT(RT_NV_SM100), 0, true },
    [RT_AMD_GFX90A] = { "gfx90a", AMD, 1, 0, 0, true },
    [RT_AMD_GFX942] = { "gfx942", AMD, 2, BIT(RT_AMD_GFX90A), 0, true },
    [RT_AMD_GFX1100] = { "gfx1100", AMD, 3, BIT(RT_AMD_GFX942), 0, true },
    [RT_AMD_GFX1201] = { "gfx1201", AMD, 4, BIT(RT_AMD_GFX1100), 0, true },
    [RT_SPIRV_OPENCL] = { "opencl", SPV, 1, 0, 0, true },
};

#define ZEN3_EXTRA (BIT(RT_X86_CLZERO) | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM))
#define ICELAKE_VECTOR                                                                                      \
    (BIT(RT_X86_AVX512VNNI) | BIT(RT_X86_AVX512VBMI) | BIT(RT_X86_AVX512VBMI2) | BIT(RT_X86_AVX512BITALG) | \
     BIT(RT_X86_AVX512VPOPCNTDQ))
#define RISCV_B (BIT(RT_RISCV_ZBA) | BIT(RT_RISCV_ZBB) | BIT(RT_RISCV_ZBS))

/* l3 is what the cores of a typical part of the family share. */
static const rt_cpu_row cpus[] = {
    { "haswell", X86, 3, BIT(RT_X86_ERMS), 32 * KIB, 256 * KIB, 8 * MIB },
    { "skylake", X86, 3, BIT(RT_X86_ERMS), 32 * KIB, 256 * KIB, 8 * MIB },
    { "skylake-avx512", X86, 4, BIT(RT_X86_ERMS), 32 * KIB, 1 * MIB, 22 * MIB },
    { "icelake-server", X86, 4, ICELAKE_VECTOR | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM), 48 * KIB, 1280 * KIB, 36 * MIB },
    { "sapphirerapids", X86, 4, ICELAKE_VECTOR | BIT(RT_X86_AVX512FP16) | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM), 48 * KIB,
      2 * MIB, 60 * MIB },
    { "graniterapids", X86, 4, ICELAKE_VECTOR | BIT(RT_X86_AVX512FP16) | BIT(RT_X86_ERMS) | BIT(RT_X86_FSRM), 48 * KIB,
      2 * MIB, 288 * MIB },
    { "znver2", X86, 3, BIT(RT_X86_CLZERO), 32 * KIB, 512 * KIB, 16 * MIB },
    { "znver3", X86, 3, ZEN3_EXTRA, 32 * KIB, 512 * KIB, 32 * MIB },
    { "znver4", X86, 4, ICELAKE_VECTOR | ZEN3_EXTRA, 32 * KIB, 1 * MIB, 32 * MIB },
    { "znver5", X86, 4, ICELAKE_VECTOR | ZEN3_EXTRA, 48 * KIB, 1 * MIB, 32 * MIB },
    { "cortex-a72", ARM, 1, 0, 32 * KIB, 1 * MIB, 0 },
    { "cortex-a76", ARM, 1, 0, 64 * KIB, 512 * KIB, 2 * MIB },
    { "neoverse-n1", ARM, 1, 0, 64 * KIB, 1 * MIB, 32 * MIB },
    { "neoverse-n2", ARM, 1, BIT(RT_ARM_SVE2), 64 * KIB, 1 * MIB, 32 * MIB },
    { "neoverse-v1", ARM, 1, BIT(RT_ARM_SVE_256), 64 * KIB, 1 * MIB, 32 * MIB },
    { "neoverse-v2", ARM, 1, BIT(RT_ARM_SVE2), 64 * KIB, 2 * MIB, 36 * MIB },
    { "a64fx", ARM, 1, BIT(RT_ARM_SVE_512), 64 * KIB, 8 * MIB, 0 },
    { "apple-m1", ARM, 1, 0, 128 * KIB, 12 * MIB, 0 },
    { "sifive-u74", RISCV, 1, BIT(RT_RISCV_ZBA) | BIT(RT_RISCV_ZBB), 32 * KIB, 2 * MIB, 0 },
    { "sifive-p670", RISCV, 2, RISCV_B, 32 * KIB, 512 * KIB, 16 * MIB },
    { "sifive-x280", RISCV, 2, BIT(RT_RISCV_ZVL512B) | BIT(RT_RISCV_ZBA) | BIT(RT_RISCV_ZBB) | BIT(RT_RISCV_ZVFHMIN),
      32 * KIB, 512 * KIB, 8 * MIB },
    { "spacemit-x60", RISCV, 2, BIT(RT_RISCV_ZVL256B) | RISCV_B | BIT(RT_RISCV_ZVFHMIN), 32 * KIB, 512 * KIB, 0 },
};
enum { CPU_COUNT = sizeof cpus / sizeof *cpus };

/* LLVM prints a warning to standard error for an unknown tuning, so only these names are accepted. */
static const char x86_tunes[] =
    " generic nehalem westmere sandybridge ivybridge haswell broadwell skylake skylake-avx512 cascadelake "
    "cooperlake cannonlake tigerlake icelake-client icelake-server rocketlake alderlake raptorlake meteorlake "
    "arrowlake arrowlake-s lunarlake sapphirerapids emeraldrapids sierraforest graniterapids graniterapids-d "
    "grandridge gracemont clearwaterforest silvermont goldmont goldmont-plus tremont bdver1 bdver2 bdver3 bdver4 "
    "btver2 znver1 znver2 znver3 znver4 znver5 ";
static const char arm_tunes[] =
    " generic a64fx ampere1 ampere1a apple-m1 apple-m2 apple-m3 apple-m4 cortex-a53 cortex-a55 cortex-a57 "
    "cortex-a72 cortex-a76 cortex-a78 cortex-a510 cortex-a710 cortex-a720 cortex-x1 cortex-x2 cortex-x3 cortex-x4 "
    "grace neoverse-e1 neoverse-n1 neoverse-n2 neoverse-n3 neoverse-v1 neoverse-v2 neoverse-v3 oryon-1 thunderx2t99 ";
static const char riscv_tunes[] =
    " generic rocket sifive-7-series sifive-p450 sifive-p470 sifive-p550 sifive-p670 sifive-u74 sifive-x280 "
    "spacemit-x60 tt-ascalon-d8 veyron-v1 xiangshan-kunminghu ";

const rt_level_row *opjit_rt_level(rt_arch arch, uint32_t level)
{
    for (uint32_t i = 0; i < LEVEL_COUNT; i++)
        if (levels[i].arch == arch && levels[i].level == level)
            return &levels[i];
    return NULL;
}

const rt_level_row *opjit_rt_named_level(uint32_t index)
{
    return index < LEVEL_COUNT ? &levels[index] : NULL;
}

const rt_cpu_row *opjit_rt_named_cpu(uint32_t index)
{
    return index < CPU_COUNT ? &cpus[index] : NULL;
}

const char *opjit_rt_target_family(rt_arch arch)
{
    return arch == NV ? "nvptx" : arch == AMD ? "amdgpu" : arch == SPV ? "spirv" : "cpu";
}

/* CPUs before GPUs; within each, levels before named ones. */
bool opjit_rt_target_name(uint32_t index, char *text, size_t size)
{
    enum { ALL = LEVEL_COUNT + CPU_COUNT };
    for (uint32_t i = 0; i < 2 * ALL; i++) {
        const uint32_t row = i % ALL;
        const rt_arch arch = row < LEVEL_COUNT ? levels[row].arch : cpus[row - LEVEL_COUNT].arch;
        const char *family = opjit_rt_target_family(arch);
        if ((strcmp(family, "cpu") == 0) != (i < ALL) || index-- != 0)
            continue;
        snprintf(text, size, "%s:%s", family, row < LEVEL_COUNT ? levels[row].name : cpus[row - LEVEL_COUNT].name);
        return true;
    }
    return false;
}

bool opjit_rt_tune_known(rt_arch arch, const char *name, size_t length)
{
    static const char only_generic[] = " generic ";
    const char *const words = arch == X86     ? x86_tunes
                              : arch == ARM   ? arm_tunes
                              : arch == RISCV ? riscv_tunes
                                              : only_generic;

    return opjit_rt_word_is_in(words, name, length);
}

uint64_t opjit_rt_level_features(rt_arch arch, uint32_t level)
{
    uint64_t set = 0;
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if (opjit_rt_features[f].arch == arch && opjit_rt_features[f].level != 0 && opjit_rt_features[f].level <= level)
            set |= BIT(f);
    return set;
}

const char *opjit_rt_feature_name(rt_feature feature)
{
    return opjit_rt_features[feature].name;
}

uint64_t opjit_rt_feature_needs(rt_feature feature)
{
    return opjit_rt_features[feature].needs;
}

/* --- what follows from a set of features -------------------------------------------------------------------------- */

rt_arch opjit_rt_target_arch(uint64_t set)
{
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((set & BIT(f)) != 0)
            return opjit_rt_features[f].arch;
    return RT_ARCH_X86_64;
}

uint32_t opjit_rt_default_vector_bytes(const rt_target *t)
{
    uint32_t bytes = opjit_rt_level(t->arch, t->level)->vector_bytes;
    for (unsigned f = 0; f < RT_FEATURE_COUNT; f++)
        if ((t->features & BIT(f)) != 0 && opjit_rt_features[f].vector_bytes > bytes)
            bytes = opjit_rt_features[f].vector_bytes;
    return bytes;
}

void opjit_rt_target_set_features(rt_target *target, uint64_t set)
{
    const rt_level_row *row;

    target->arch = opjit_rt_target_arch(set);
    target->features = set;
    target->level = 1;
    for (uint32_t level = 2; opjit_rt_level(target->arch, level) != NULL; level++) {
        const uint64_t wanted = opjit_rt_level_features(target->arch, level);
        if ((set & wanted) == wanted)
            target->level = level;
    }
    row = opjit_rt_level(target->arch, target->level);
    target->vector_bytes = opjit_rt_default_vector_bytes(target);
    target->l1 = row->l1;
    target->l2 = row->l2;
    target->l3 = row->l3;
}

bool opjit_rt_target_calls_math(const rt_target *t)
{
    return rt_target_has(t, RT_X86_FMA);
}

bool opjit_rt_target_scales(const rt_target *t)
{
    return rt_target_has(t, RT_X86_AVX512VL);
}

bool opjit_rt_target_has_masks(const rt_target *t)
{
    return rt_target_has_avx512(t) || rt_target_has(t, RT_ARM_SVE) || rt_target_has(t, RT_RISCV_V);
}
