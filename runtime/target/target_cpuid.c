/* SPDX-License-Identifier: Apache-2.0 */
/* target_cpuid.c - which bit of cpuid stands for which feature of x86-64.  Data for target_host.c, which asks this
 * machine, and for generated code, which asks the machine it runs on. */
#include "runtime/target/target.h"

/* Rows of one leaf are adjacent, so that each leaf is asked once. */
const rt_cpuid_bit opjit_rt_cpuid_bits[] = {
    { RT_X86_SSE3, 1, 'c', 0, 0 },
    { RT_X86_SSSE3, 1, 'c', 9, 0 },
    { RT_X86_SSE41, 1, 'c', 19, 0 },
    { RT_X86_SSE42, 1, 'c', 20, 0 },
    { RT_X86_POPCNT, 1, 'c', 23, 0 },
    { RT_X86_CX16, 1, 'c', 13, 0 },
    { RT_X86_AVX, 1, 'c', 28, 0x06 },
    { RT_X86_F16C, 1, 'c', 29, 0x06 },
    { RT_X86_FMA, 1, 'c', 12, 0x06 },
    { RT_X86_MOVBE, 1, 'c', 22, 0 },
    { RT_X86_XSAVE, 1, 'c', 26, 0x02 },
    { RT_X86_AVX2, 7, 'b', 5, 0x06 },
    { RT_X86_BMI, 7, 'b', 3, 0 },
    { RT_X86_BMI2, 7, 'b', 8, 0 },
    { RT_X86_AVX512F, 7, 'b', 16, 0xe6 },
    { RT_X86_AVX512BW, 7, 'b', 30, 0xe6 },
    { RT_X86_AVX512CD, 7, 'b', 28, 0xe6 },
    { RT_X86_AVX512DQ, 7, 'b', 17, 0xe6 },
    { RT_X86_AVX512VL, 7, 'b', 31, 0xe6 },
    { RT_X86_AVX512VNNI, 7, 'c', 11, 0xe6 },
    { RT_X86_AVX512VBMI, 7, 'c', 1, 0xe6 },
    { RT_X86_AVX512VBMI2, 7, 'c', 6, 0xe6 },
    { RT_X86_AVX512BITALG, 7, 'c', 12, 0xe6 },
    { RT_X86_AVX512VPOPCNTDQ, 7, 'c', 14, 0xe6 },
    { RT_X86_AVX512FP16, 7, 'd', 23, 0xe6 },
    { RT_X86_ERMS, 7, 'b', 9, 0 },
    { RT_X86_FSRM, 7, 'd', 4, 0 },
    { RT_X86_LAHF, 0x80000001, 'c', 0, 0 },
    { RT_X86_LZCNT, 0x80000001, 'c', 5, 0 },
    { RT_X86_CLZERO, 0x80000008, 'b', 0, 0 },
    { RT_FEATURE_COUNT, 0, 0, 0, 0 },
};
