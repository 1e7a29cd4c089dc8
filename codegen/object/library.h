/* SPDX-License-Identifier: Apache-2.0 */
/* library.h - objects as the file of a static or a shared library. */
#ifndef OPJIT_CODEGEN_OBJECT_LIBRARY_H
#define OPJIT_CODEGEN_OBJECT_LIBRARY_H

#include "codegen/codegen.h"

/* archive.c, shared_library.c: the two kinds of file, appended to *out. */
typedef struct cg_archived {
    const char *name; /* of the file, without ".o" */
    const void *object;
    size_t bytes;
} cg_archived;
opjit_status opjit_cg_archive(const cg_archived *members, uint32_t count, rt_bytes *out, opjit_error *error);
opjit_status opjit_cg_shared(const codegen_library *request, rt_bytes *registry, rt_bytes *out, opjit_error *error);

#endif
