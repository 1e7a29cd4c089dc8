/* SPDX-License-Identifier: Apache-2.0 */
/* aot.h - ahead-of-time kernels in tests: a folder of objects, the system's compilers, and calls of the results,
 * compared with the interpreter. */
#ifndef OPJIT_TESTS_SUPPORT_AOT_H
#define OPJIT_TESTS_SUPPORT_AOT_H

#include <opjit/artifact.h>
#include <opjit/opjit.h>

#include "tests/support/random.h"

#define AOT_BUFFERS 64

/* An operator or graph that is compiled ahead of time.  The interpreted kernel of it is the oracle. */
typedef struct aot_subject {
    char name[64];
    opjit_operator *op;         /* NULL: a graph */
    const DML_GRAPH_DESC *desc; /* borrowed */
    const char *late[4];
    uint64_t params[4];
    uint32_t late_count;
    uint32_t flags; /* OPJIT_COMPILE_... */
    opjit_kernel *oracle;
    int index_input; /* the input that holds small numbers as indices; -1: none */
} aot_subject;

/* Makes the oracle of a subject whose other fields are set.  False: opjit refuses the layout for its limits. */
bool aot_subject_begin(aot_subject *s, opjit_context *context);
void aot_subject_end(aot_subject *s);
/* Adds the subject to the artifact under its name. */
void aot_subject_add(const aot_subject *s, opjit_artifact *artifact, opjit_level level);

/* The memory of one call: filled inputs; sometimes an output shares an input's memory. */
typedef struct aot_memory {
    void *buffers[AOT_BUFFERS];
    uint8_t *before[AOT_BUFFERS], *expected[AOT_BUFFERS], *actual[AOT_BUFFERS]; /* by buffer */
    void *workspace;
    int shared[AOT_BUFFERS]; /* the input whose memory the buffer is; -1: its own */
    opjit_kernel_info info;
} aot_memory;
void aot_memory_begin(aot_memory *m, test_random *r, const aot_subject *s, uint64_t workspace_bytes);
void aot_memory_end(aot_memory *m);
/* Sets buffers to fresh copies, to be written by what is tested. */
void aot_memory_reset(aot_memory *m);
/* Fails the Check test if the memory differs from the oracle's; all NaNs count as equal. */
void aot_memory_compare(const aot_memory *m, const aot_subject *s, const char *how);

/* --- files -------------------------------------------------------------------------------------------------------- */
typedef struct aot_folder {
    char path[64];
} aot_folder;
void aot_folder_begin(aot_folder *folder);
void aot_folder_end(const aot_folder *folder); /* removes it with its contents */
void aot_write(const aot_folder *folder, const char *name, const char *extension, const void *data, uint64_t bytes);
/* Runs a command of the shell in the folder; false: its status is not 0. */
bool aot_shell(const aot_folder *folder, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
