/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - shared by the files that find out where registers are in use. */
#ifndef OPJIT_CODEGEN_DIRECT_LIVE_H
#define OPJIT_CODEGEN_DIRECT_LIVE_H

#include "codegen/direct.h"

typedef struct dx_live {
    dx_func *f;
    uint32_t *loop; /* by operation: the innermost loop, + 1 */
} dx_live;

uint32_t opjit_dx_loop_at(const dx_live *l, uint32_t position);
void opjit_dx_interval(const dx_live *l, dx_virtual *v);
void opjit_dx_join(dx_live *l); /* join.c */

#endif
