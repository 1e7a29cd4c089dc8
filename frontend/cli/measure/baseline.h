/* SPDX-License-Identifier: Apache-2.0 */
/* baseline.h - what the machine can do: plain fills and copies, hand-written with vectors, that benchmarks divide
 * by. */
#ifndef OPJIT_CLI_BASELINE_H
#define OPJIT_CLI_BASELINE_H

#include <stddef.h>

/* 64-byte aligned destination (and source), bytes a multiple of 64. */
typedef struct baseline {
    const char *name;
    void (*fill)(void *to, int byte, size_t bytes);              /* ordinary vector stores */
    void (*fill_nt)(void *to, int byte, size_t bytes);           /* non-temporal ones, fenced */
    void (*copy)(void *to, const void *from, size_t bytes);
    void (*copy_nt)(void *to, const void *from, size_t bytes);
} baseline;

/* The widest vectors of this machine; functions fall back to memset and memcpy where there are none. */
const baseline *baseline_get(void);

#endif
