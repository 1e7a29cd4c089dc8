/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - makes one flat piece of code and constants of an object file in memory.  Nothing in the file is trusted.
 * Knows no LLVM. */
#ifndef OPJIT_CODEGEN_OBJECT_LINK_H
#define OPJIT_CODEGEN_OBJECT_LINK_H

#include "runtime/base/base.h"

/* Symbols that the object refers to and does not define.  find: *out_place is the symbol's place, counted from the
 * first byte of this object's code, before which it may be; false: it has none. */
typedef struct cg_outside {
    bool (*find)(const void *user, const char *name, uint64_t *out_place);
    const void *user;
} cg_outside;
/* Appends the code to *code, which must be empty and is freed by the caller, even after a failure.  outside: NULL where
 * the object must define all that it refers to. */
opjit_status opjit_cg_link(const uint8_t *object, size_t size, const cg_outside *outside, rt_bytes *code,
                           opjit_error *error);
/* A symbol that is visible to other objects. */
typedef struct cg_symbol {
    const char *name;
    uint64_t value, size; /* value: offset in the code that opjit_cg_link makes */
    uint8_t type;         /* STT_FUNC, STT_OBJECT or STT_GNU_IFUNC */
    bool hidden;          /* visible within one program or library only */
} cg_symbol;
/* Calls visit for each symbol that the object defines, in its order. */
opjit_status opjit_cg_link_symbols(const uint8_t *object, size_t size,
                                   opjit_status (*visit)(void *user, const cg_symbol *symbol), void *user,
                                   opjit_error *error);
/* Whether the code from offset begin to end of what opjit_cg_link makes refers to anything by a relocation. */
opjit_status opjit_cg_link_refers(const uint8_t *object, size_t size, uint64_t begin, uint64_t end, bool *out,
                                  opjit_error *error);
/* Returns the content of the object's first note section, inside the object. */
opjit_status opjit_cg_link_note(const uint8_t *object, size_t size, const uint8_t **out, size_t *out_size,
                                opjit_error *error);
/* Makes the same checks and nothing else: no undefined symbol, no writable data. */
opjit_status opjit_cg_link_check(const uint8_t *object, size_t size, opjit_error *error);

#endif
