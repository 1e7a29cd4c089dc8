/* SPDX-License-Identifier: Apache-2.0 */
/* code_object.h - AMDGPU objects as code objects, without a linker.  Knows no LLVM. */
#ifndef OPJIT_CODEGEN_OBJECT_CODE_OBJECT_H
#define OPJIT_CODEGEN_OBJECT_CODE_OBJECT_H

#include "runtime/base/base.h"

/* Makes a code object of a relocatable object and appends it to *out, which is empty.  Nothing in the object is
 * trusted. */
opjit_status opjit_cg_code_object(const opjit_allocator *allocator, const uint8_t *object, size_t size, rt_bytes *out,
                                  opjit_error *error);

#endif
