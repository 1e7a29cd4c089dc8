/* SPDX-License-Identifier: Apache-2.0 */
/* kept_code.h - where the code of functions is kept that kernels share (softops/kept.h): for the process, and for
 * others by the request's codegen_functions. */
#ifndef OPJIT_CODEGEN_DRIVER_KEPT_CODE_H
#define OPJIT_CODEGEN_DRIVER_KEPT_CODE_H

#include "codegen/softops/kept.h"

/* The alignment that code needs: a line; a page if constants follow its instructions, because code for AArch64
 * addresses them by their place in a page. */
enum { CG_LINE = 64, CG_PAGE = 4096 };
typedef struct cg_flat {
    rt_bytes bytes;
    uint32_t align;
} cg_flat;

/* Sets *out, which is empty; false: it isn't kept, or there was no memory for it. */
bool opjit_cg_code_recall(const cg_made *made, const codegen_request *request, cg_flat *out);
void opjit_cg_code_keep(const cg_made *made, const codegen_request *request, const cg_flat *code);

#endif
