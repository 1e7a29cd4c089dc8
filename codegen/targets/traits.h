/* SPDX-License-Identifier: Apache-2.0 */
/* traits.h - what strategies ask about a processor.  A processor is a row of traits.c. */
#ifndef OPJIT_CODEGEN_TARGETS_TRAITS_H
#define OPJIT_CODEGEN_TARGETS_TRAITS_H

#include "runtime/target/target.h"

typedef struct cg_traits {
    bool two_streams;        /* stores beyond the first cache are faster at two places in turn */
    uint32_t read_ahead;     /* bytes from a line that is stored beyond the first cache to the one that should be
                                read meanwhile; 0: no gain */
    bool point_beside_masks; /* a row's one element is stored after the others although masks are registers */
    bool short_halves;       /* it has an instruction from short integers to halves */
    bool binades;            /* its conversions to halves are slower than additions */
} cg_traits;

const cg_traits *opjit_cg_traits(const rt_target *target); /* a constant */

#endif
