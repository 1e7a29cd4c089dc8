/* SPDX-License-Identifier: Apache-2.0 */
/* fma.c - see fma.h. */
#include "tests/bench/fma.h"

#if defined __x86_64__
#define FMA(r, i) "vfmadd231ps %%" r "0,%%" r "0,%%" r #i "\n"
#define FMA_LOOP(suffix, isa, r)                                                                                       \
    __attribute__((target(isa), noinline)) static void fma_##suffix(uint64_t rounds)                                   \
    {                                                                                                                  \
        __asm__ volatile("1:\n" FMA(r, 4) FMA(r, 5) FMA(r, 6) FMA(r, 7) FMA(r, 8) FMA(r, 9) FMA(r, 10) FMA(r, 11)      \
                             FMA(r, 12) FMA(r, 13) FMA(r, 14) FMA(r, 15) "dec %0\njnz 1b\n"                            \
                         : "+r"(rounds)                                                                                \
                         :                                                                                             \
                         : "xmm0", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
                           "xmm14", "xmm15");                                                                          \
    }
FMA_LOOP(256, "avx2,fma", "ymm")
FMA_LOOP(512, "avx512f", "zmm")
#else
static void fma_256(uint64_t rounds) { (void)rounds; }
static void fma_512(uint64_t rounds) { (void)rounds; }
#endif

void fma_alone_run(void *arg)
{
    const fma_alone *const p = arg;
    (p->wide ? fma_512 : fma_256)(p->rounds);
}
