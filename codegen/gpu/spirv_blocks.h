/* SPDX-License-Identifier: Apache-2.0 */
/* spirv_blocks.h - LLVM's SPIR-V as a module that devices take. */
#ifndef OPJIT_CODEGEN_GPU_SPIRV_BLOCKS_H
#define OPJIT_CODEGEN_GPU_SPIRV_BLOCKS_H

#include "runtime/base/base.h"

/* Appends it to *out.  UNAVAILABLE: LLVM has mixed up blocks, and is to make it again at other addresses. */
opjit_status opjit_cg_spirv(const opjit_allocator *allocator, const uint8_t *object, size_t size, rt_bytes *out,
                            opjit_error *error);

#endif
