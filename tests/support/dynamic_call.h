/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_call.h - calls of kernels with dynamic dimensions, or of one size: memory for all bindings with guard bytes
 * around it, of inputs before it and an inaccessible page behind; the call, and whether another kernel gave the same
 * bytes. */
#ifndef OPJIT_TESTS_SUPPORT_DYNAMIC_CALL_H
#define OPJIT_TESTS_SUPPORT_DYNAMIC_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opjit/dynamic.h>

enum { DYNAMIC_BINDINGS = 8, DYNAMIC_GUARD = 64 };

typedef struct dynamic_memory {
    uint8_t *data[DYNAMIC_BINDINGS]; /* DYNAMIC_GUARD bytes before each binding's, and after those of outputs */
    void *mapped[DYNAMIC_BINDINGS];  /* what they lie in */
    size_t sizes[DYNAMIC_BINDINGS];
    opjit_binding bindings[DYNAMIC_BINDINGS];
    uint32_t count, inputs;
} dynamic_memory;

/* Memory for a call with these sizes; inputs are FLOAT32, between -2 and 2, the same ones each time.  Returns false
 * where all bindings together have more than `most` bytes, and then allocates none; the caller releases the memory in
 * either case. */
bool dynamic_allocate(dynamic_memory *m, const opjit_kernel *kernel, const uint64_t *dims, uint32_t dim_count,
                      uint64_t most);
void dynamic_release(dynamic_memory *m);
opjit_status dynamic_call(const dynamic_memory *m, const opjit_kernel *kernel, const uint64_t *dims, uint32_t dim_count,
                          opjit_error *error);
/* Fails the test unless all bytes are the expected ones, and the guards are what they were. */
void dynamic_compare(const dynamic_memory *expected, const dynamic_memory *given, const char *what,
                     const uint64_t *dims);

#endif
