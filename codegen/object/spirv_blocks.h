/* SPDX-License-Identifier: Apache-2.0 */
/* spirv_blocks.h - turns LLVM's SPIR-V into a module that devices accept. */
#ifndef OPJIT_CODEGEN_OBJECT_SPIRV_BLOCKS_H
#define OPJIT_CODEGEN_OBJECT_SPIRV_BLOCKS_H

#include "runtime/base/base.h"

/* Appends it to *out.  UNAVAILABLE: LLVM has mixed up blocks; the caller must compile again at other addresses. */
opjit_status opjit_cg_spirv(const opjit_allocator *allocator, const uint8_t *object, size_t size, rt_bytes *out,
                            opjit_error *error);

#endif
