/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what fuzz targets share: choices read from bytes, an abort with a reason where a property is broken, and a
 * meter that holds the memory and the time of an input to its size. */
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

/* So many bytes, little-endian; zeros behind the end. */
uint64_t fuzz_take(fuzz_reader *r, size_t bytes);
/* In [0, count): one byte, or two where count is above 256. */
uint32_t fuzz_choose(fuzz_reader *r, uint32_t count);
/* One byte: true for so many of its 256 values, but never for 0, so that bytes of zeros choose what is plain. */
bool fuzz_sometimes(fuzz_reader *r, uint32_t of_256);

/* OK comes with a result; a refusal comes without one and with a message of one line. */
void fuzz_require_refusal(opjit_status status, const opjit_error *error, bool has_result, const char *what);

/* --- what an input may cost --------------------------------------------------------------------------------------- */
typedef struct fuzz_meter {
    test_meter memory; /* &memory.allocator is for opjit_context_options */
    int64_t begun;     /* CPU nanoseconds of the process */
} fuzz_meter;

void fuzz_meter_begin(fuzz_meter *m);
/* Requires that everything was released, that the peak is at most `fixed` bytes and `each` more per byte of the input,
 * and, where OPJIT_FUZZ_MS is set, that at most so many milliseconds of CPU time went by, and as many more per 4 KiB of
 * the input.  Other runs measure no time. */
void fuzz_meter_end(const fuzz_meter *m, size_t input_bytes, uint64_t fixed, uint64_t each);

/* --- memory of kernels -------------------------------------------------------------------------------------------- */
enum { FUZZ_BUFFERS = 160, FUZZ_BYTES = 1 << 20, FUZZ_ELEMENTS = 4096 };

/* One allocation per buffer of a kernel, of exactly the bytes it needs. */
typedef struct fuzz_memory {
    uint32_t count, inputs;
    opjit_binding bindings[FUZZ_BUFFERS];
    uint32_t dtypes[FUZZ_BUFFERS];
} fuzz_memory;

/* Allocates and fills every binding of the kernel from seed; false where there are more, or larger ones, than a fuzz
 * target wants to run. */
bool fuzz_memory_create(fuzz_memory *m, const opjit_kernel *kernel, uint64_t seed);
void fuzz_memory_free(fuzz_memory *m);
/* Calls the kernel on it. */
opjit_status fuzz_memory_call(const fuzz_memory *m, const opjit_kernel *kernel, opjit_error *error);
/* Requires equal bytes, except that NaNs of floating-point tensors may differ in sign and payload. */
void fuzz_memory_require_equal(const fuzz_memory *a, const fuzz_memory *b, const char *what);

#endif
