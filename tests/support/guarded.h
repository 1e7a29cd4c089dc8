/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.h - buffers that notice every byte written where it may not be.  The binding lies between two guards of
 * random bytes, at an address with exactly the requested alignment and no more, or directly at an inaccessible page.  A
 * second copy of the whole allocation holds the expected contents: a reference writes into it, and then both are
 * compared, guards, gaps and padding included. */
#ifndef OPJIT_TESTS_SUPPORT_GUARDED_H
#define OPJIT_TESTS_SUPPORT_GUARDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/support/random.h"

#define TEST_GUARD_BYTES 4096u

typedef struct test_buffer {
    uint8_t *data;                   /* the binding */
    size_t bytes;
    uint8_t *expected;               /* the binding within the copy */
    uint8_t *memory, *copy;          /* everything that is accessible */
    size_t size;
    void *mapping;
    size_t mapping_size;
} test_buffer;

/* bytes at a multiple of alignment, a power of two.  False: no memory. */
bool test_buffer_create(test_buffer *b, test_random *r, size_t bytes, size_t alignment);
void test_buffer_destroy(test_buffer *b);
/* Copies the buffer's contents into the copy: the state that the next comparison starts from. */
void test_buffer_expect_unchanged(test_buffer *b);
/* Whether the buffer is as expected; if not, *out_offset is the first wrong byte, counted from the start of the
 * binding. */
bool test_buffer_compare(const test_buffer *b, int64_t *out_offset);

#endif
