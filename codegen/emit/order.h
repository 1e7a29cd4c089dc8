/* SPDX-License-Identifier: Apache-2.0 */
/* order.h - in which order operands are emitted (expr.c), for the files of this folder. */
#ifndef OPJIT_CODEGEN_EMIT_ORDER_H
#define OPJIT_CODEGEN_EMIT_ORDER_H

#include "codegen/cg.h"

enum { CG_ORDERED = 3 };

/* A node's first three operands: that of most operations comes first, as a chain's other factors would all be in
 * registers before it begins. */
typedef struct cg_order {
    uint32_t at[CG_ORDERED];
} cg_order;
cg_order opjit_cg_order(const cg_func *f, ir_ref node);

#endif
