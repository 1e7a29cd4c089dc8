/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - shared by fuzz targets: choices read from bytes, an abort with a reason where a property is violated, and a
 * meter that bounds an input's memory and time by its size. */
#ifndef OPJIT_TESTS_SUPPORT_FUZZ_H
#define OPJIT_TESTS_SUPPORT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opjit/opjit.h>

#include "tests/support/meter.h"
#include "tests/support/require.h"

/* --- choices ------------------------------------------------------------------------------------------------------ */
typedef struct fuzz_reader {
    const uint8_t *at;
    size_t left;
} fuzz_reader;

/* That many bytes, little-endian; zeros past the end. */
uint64_t fuzz_take(fuzz_reader *r, size_t bytes);
/* In [0, count): one byte, or two where count is above 256. */
uint32_t fuzz_choose(fuzz_reader *r, uint32_t count);
/* Reads one byte: true for that many of its 256 values, never for 0, so that zero bytes make the plain choice. */
bool fuzz_sometimes(fuzz_reader *r, uint32_t of_256);

/* OK comes with a result; a refusal comes without one and with a one-line message. */
void fuzz_require_refusal(opjit_status status, const opjit_error *error, bool has_result, const char *what);

/* --- what an input may cost --------------------------------------------------------------------------------------- */
typedef struct fuzz_meter {
    test_meter memory; /* &memory.allocator is for opjit_context_options */
    int64_t begun;     /* CPU nanoseconds of the process */
} fuzz_meter;

void fuzz_meter_begin(fuzz_meter *m);
/* Requires that everything was released, that the peak is at most `fixed` bytes plus `each` per byte of input, and, if
 * OPJIT_FUZZ_MS is set, that the CPU time is at most that many milliseconds plus as many per 4 KiB of input.  Other
 * runs measure no time. */
void fuzz_meter_end(const fuzz_meter *m, size_t input_bytes, uint64_t fixed, uint64_t each);

/* --- memory of kernels -------------------------------------------------------------------------------------------- */
enum { FUZZ_BUFFERS = 160, FUZZ_BYTES = 1 << 20, FUZZ_ELEMENTS = 4096 };

/* One allocation per buffer of a kernel, of exactly the bytes it needs. */
typedef struct fuzz_memory {
    uint32_t count, inputs;
    opjit_binding bindings[FUZZ_BUFFERS];
    uint32_t dtypes[FUZZ_BUFFERS];
} fuzz_memory;

/* Allocates every binding of the kernel and fills it from seed; false where there are more or larger ones than a fuzz
 * target wants to run. */
bool fuzz_memory_create(fuzz_memory *m, const opjit_kernel *kernel, uint64_t seed);
void fuzz_memory_free(fuzz_memory *m);
/* Calls the kernel on it. */
opjit_status fuzz_memory_call(const fuzz_memory *m, const opjit_kernel *kernel, opjit_error *error);
/* Requires equal bytes, except that NaNs of floating-point tensors may differ in sign and payload. */
void fuzz_memory_require_equal(const fuzz_memory *a, const fuzz_memory *b, const char *what);

#endif
