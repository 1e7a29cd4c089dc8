/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.h - kernels that are compiled to be shipped, and the texts that go with them.  For the files of this
 * folder. */
#ifndef OPJIT_FRONTEND_AOT_ARTIFACT_H
#define OPJIT_FRONTEND_AOT_ARTIFACT_H

#include <opjit/artifact.h>

#include "runtime/base/name_set.h"
#include "frontend/frontend.h"

#define ARTIFACT_NAME_MOST 63u /* characters of a kernel's name: the length that C guarantees to distinguish */
#define ARTIFACT_KINDS (OPJIT_ARTIFACT_TVM_FFI + 1)

/* A kernel for one of the artifact's targets. */
typedef struct fe_version {
    fe_unit *unit; /* named like its symbols */
    rt_bytes meta; /* opjit_kernel_meta, entries 0 */
} fe_version;

#define ARTIFACT_ARGUMENT_SIZE 48u
typedef struct fe_argument {
    char text[ARTIFACT_ARGUMENT_SIZE]; /* a C identifier, unique in its kernel */
} fe_argument;

typedef struct fe_shipped {
    char name[ARTIFACT_NAME_MOST + 1];
    fe_version *versions; /* one per target of the artifact */
    codegen_data *constants; /* that any version reads at each call, and what versions made of constants once */
    uint32_t constant_count;
    fe_argument *arguments; /* inputs, outputs, parameters */
    uint64_t workspace;               /* bytes that suffice for every version */
    rt_bytes outputs[ARTIFACT_KINDS]; /* made when first requested, WEIGHTS when it is added; empty: not yet */
} fe_shipped;

struct opjit_artifact {
    opjit_context *context;
    rt_arena arena;
    char name[ARTIFACT_NAME_MOST + 1];
    rt_target *targets; /* best first */
    uint32_t target_count;
    bool weights_apart;
    fe_shipped **kernels;
    uint32_t kernel_count, kernel_capacity;
    name_set names;                   /* of the kernels */
    rt_bytes outputs[ARTIFACT_KINDS]; /* of all kernels together */
};

static inline const opjit_kernel_meta *shipped_meta(const fe_shipped *k, uint32_t version)
{
    return (const opjit_kernel_meta *)(const void *)k->versions[version].meta.data;
}

/* Bytes of the weights that the kernel is given; 0: it takes none. */
static inline uint64_t shipped_weights(const fe_shipped *k)
{
    return k->outputs[OPJIT_ARTIFACT_WEIGHTS].size;
}

/* The string at an offset of the metadata; "" for 0. */
static inline const char *meta_text(const opjit_kernel_meta *m, uint32_t offset)
{
    return offset == 0 ? "" : (const char *)m + offset;
}

/* "[4, 1]" */
static inline void put_list(rt_bytes *out, const uint64_t *numbers, uint32_t count)
{
    opjit_rt_bytes_u8(out, '[');
    for (uint32_t i = 0; i < count; i++)
        opjit_rt_bytes_printf(out, "%s%llu", i == 0 ? "" : ", ", (unsigned long long)numbers[i]);
    opjit_rt_bytes_u8(out, ']');
}

/* assemble.c: appends the machine code; gives the assembler this many seconds; UNAVAILABLE where there is no
 * assembler. */
#define FE_ASSEMBLE_SECONDS 60u
opjit_status opjit_fe_assemble(const rt_target *target, const rt_bytes *ptx, unsigned seconds, rt_bytes *out,
                               opjit_error *error);
/* artifact.c: whether C, C++ or their libraries use or reserve the name. */
bool opjit_fe_artifact_is_taken(const char *name);
/* once.c: with all versions' programs, runs what runs once and makes k->constants, and all versions' buffers, slots and
 * weights accordingly. */
opjit_status opjit_fe_artifact_constants(opjit_artifact *a, const fe_subject *subject, fe_shipped *k,
                                         opjit_error *error);
/* names.c: the arguments' names in C. */
opjit_status opjit_fe_artifact_arguments(rt_arena *arena, fe_shipped *k, opjit_error *error);
/* check.c: NAME_runs_here and the includes that it needs. */
void opjit_fe_artifact_check_includes(const opjit_artifact *a, rt_bytes *out);
void opjit_fe_artifact_check(const opjit_artifact *a, const char *name, rt_bytes *out);
/* header.c, json.c: append the text; a failure is recorded in *out. */
void opjit_fe_artifact_header(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out);
/* The names are sorted in arena; false: no memory. */
bool opjit_fe_artifact_library_header(const opjit_artifact *a, rt_arena *arena, rt_bytes *out);
void opjit_fe_artifact_json(const opjit_artifact *a, const fe_shipped *k, rt_bytes *out);

#endif
