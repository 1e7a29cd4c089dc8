/* SPDX-License-Identifier: Apache-2.0 */
/* guarded.c - one mapping per buffer: an inaccessible page, accessible pages, an inaccessible page. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/support/guarded.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096u /* all page sizes are multiples of it; larger pages only move the traps away */

/* The binding's offset in the accessible memory, which starts at a multiple of PAGE and of alignment. */
static size_t place(test_random *r, size_t size, size_t bytes, size_t alignment)
{
    const size_t middle = TEST_GUARD_BYTES > alignment ? TEST_GUARD_BYTES : alignment;
    switch (test_random_below(r, 4)) {
    case 0: return 0;                                         /* accesses before it trap */
    case 1: return (size - bytes) / alignment * alignment;    /* accesses after it trap */
    case 2: return middle;
    default: return middle + alignment;                       /* aligned to no more than promised */
    }
}

static size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

bool test_buffer_create(test_buffer *b, test_random *r, size_t bytes, size_t alignment)
{
    const size_t unit = alignment > PAGE ? alignment : PAGE;
    memset(b, 0, sizeof *b);
    b->bytes = bytes;
    b->size = round_up(bytes + 2 * alignment, unit) + 2 * round_up(TEST_GUARD_BYTES, unit);
    b->mapping_size = b->size + 3 * unit;
    b->mapping = mmap(NULL, b->mapping_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->mapping == MAP_FAILED) {
        b->mapping = NULL;
        return false;
    }
    b->memory = (uint8_t *)round_up((size_t)b->mapping + PAGE, unit);
    b->copy = malloc(b->size);
    if (b->copy == NULL || mprotect(b->memory, b->size, PROT_READ | PROT_WRITE) != 0) {
        test_buffer_destroy(b);
        return false;
    }
    const size_t at = place(r, b->size, bytes, alignment);
    b->data = b->memory + at;
    b->expected = b->copy + at;
    test_random_fill(r, b->memory, b->size);
    test_buffer_expect_unchanged(b);
    return true;
}

void test_buffer_destroy(test_buffer *b)
{
    if (b->mapping != NULL)
        munmap(b->mapping, b->mapping_size);
    free(b->copy);
    memset(b, 0, sizeof *b);
}

void test_buffer_expect_unchanged(test_buffer *b) { memcpy(b->copy, b->memory, b->size); }

bool test_buffer_compare(const test_buffer *b, int64_t *out_offset)
{
    size_t i = 0;
    if (memcmp(b->memory, b->copy, b->size) == 0)
        return true;
    while (b->memory[i] == b->copy[i])
        i++;
    *out_offset = (int64_t)i - (b->data - b->memory);
    return false;
}
