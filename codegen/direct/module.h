/* SPDX-License-Identifier: Apache-2.0 */
/* module.h - the code of a module that is being written: bytes, constants, calls.  object.c makes an object of it. */
#ifndef OPJIT_CODEGEN_DIRECT_MODULE_H
#define OPJIT_CODEGEN_DIRECT_MODULE_H

#include "runtime/base/base.h"

#include <llvm-c/Core.h>

typedef struct dx_symbol {
    LLVMValueRef of;
    const char *name;
    bool function, internal;
    bool defined;
    uint64_t begin, size; /* in the code, or the constants */
} dx_symbol;

/* Four bytes of code that get the distance to something. */
typedef struct dx_fix {
    uint64_t place;
    uint32_t symbol; /* a function, or DX_CONSTANTS */
    int64_t addend;
} dx_fix;
#define DX_CONSTANTS UINT32_MAX
enum { DX_CODE_ALIGN = 16, DX_DATA_ALIGN = 64 };

typedef struct dx_module {
    rt_arena *arena;
    rt_bytes code, data;
    dx_symbol *symbols;
    uint32_t symbol_count, symbol_room;
    dx_fix *fixes;
    uint32_t fix_count, fix_room;
    uint32_t *pool; /* constants by hash: place + 1 in data */
    uint32_t *pool_size, pool_room, pool_count;
    bool failed; /* no memory */
} dx_module;

/* constants.c: false: a global is of a kind that is not known, or there is no memory. */
bool opjit_dx_globals(dx_module *m, LLVMModuleRef module);
bool opjit_dx_functions(dx_module *m, LLVMModuleRef module);
uint32_t opjit_dx_symbol(dx_module *m, LLVMValueRef v);
/* Where these bytes are among the constants. */
uint32_t opjit_dx_pool(dx_module *m, const void *bytes, uint32_t size);
void opjit_dx_fix(dx_module *m, uint64_t place, uint32_t symbol, int64_t addend);
/* object.c: an ELF file. */
void opjit_dx_object(dx_module *m, rt_bytes *out);

#endif
