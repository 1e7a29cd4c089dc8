/* SPDX-License-Identifier: Apache-2.0 */
/* traits.c - what processors do differently with stores and conversions, as a table: a row for each CPU that was
 * measured, by the name that it is tuned for, and one for all others of its kind.  The measurements are in
 * tests/bench/README.md. */
#include "codegen/targets/traits.h"

#include <string.h>

enum {
    ANY = -1,
    READ_AHEAD = 256, /* bytes; bench_generators, Emerald Rapids */
};

typedef struct row {
    rt_arch arch;
    const char *tune; /* NULL: any other */
    int feature;      /* that the target must have; ANY: no condition */
    cg_traits traits;
} row;

#define X86 RT_ARCH_X86_64
/* Stores beyond the first cache: on Zen two streams gain, and reading ahead loses; on the others that were measured it
 * is the other way round (bench_generators, Zen 3 and 4, Emerald Rapids). */
#define ZEN(name)                                                                                                \
    { X86, name, RT_X86_AVX512FP16, { .two_streams = true, .point_beside_masks = true, .short_halves = true } }, \
    {                                                                                                            \
        X86, name, ANY,                                                                                          \
        {                                                                                                        \
            .two_streams = true, .point_beside_masks = true, .binades = true                                     \
        }                                                                                                        \
    }

static const row rows[] = {
    ZEN("znver1"),
    ZEN("znver2"),
    ZEN("znver3"),
    ZEN("znver4"),
    ZEN("znver5"),
    { X86, NULL, RT_X86_AVX512FP16, { .read_ahead = READ_AHEAD, .short_halves = true } },
    { X86, NULL, ANY, { .read_ahead = READ_AHEAD, .binades = true } },
};

const cg_traits *opjit_cg_traits(const rt_target *target)
{
    static const cg_traits none = { .read_ahead = 0 };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].arch == target->arch && (rows[i].tune == NULL || strcmp(rows[i].tune, target->tune) == 0) &&
            (rows[i].feature == ANY || (target->features >> rows[i].feature & 1) != 0))
            return &rows[i].traits;
    return &none;
}
