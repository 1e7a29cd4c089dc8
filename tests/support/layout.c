/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c - random sizes and strides. */
#include <stdlib.h>
#include <string.h>

#include "tests/reference/reference.h"
#include "tests/support/cases.h"

#define LARGEST_BINDING (16u << 20)

void test_tensor_link(test_tensor *t, DML_TENSOR_DATA_TYPE type, uint32_t rank)
{
    memset(&t->buffer, 0, sizeof t->buffer);
    t->buffer.DataType = type;
    t->buffer.DimensionCount = rank;
    t->buffer.Sizes = t->sizes;
    t->desc.Type = DML_TENSOR_TYPE_BUFFER;
    t->desc.Desc = &t->buffer;
    t->interleaved = false;
}

/* The span, ignoring the strides of dimensions of size 1, which may be anything. */
static uint64_t span_of(const test_tensor *t)
{
    const ref_tensor r = ref_tensor_of(&t->desc);
    uint64_t last = 0;
    for (uint32_t i = 0; i < r.rank; i++)
        last += (r.sizes[i] - 1u) * r.strides[i];
    return last + 1;
}

void test_tensor_measure(test_tensor *t)
{
    const uint32_t size = ref_dtype_size(t->buffer.DataType);
    t->span = span_of(t);
    t->bytes = t->buffer.TotalTensorSizeInBytes;
    if (t->bytes == 0)
        t->bytes = (ref_dtype_bytes(t->buffer.DataType, t->span) + 3) / 4 * 4;
    t->alignment = size;
    if (t->buffer.GuaranteedBaseOffsetAlignment > size)
        t->alignment = t->buffer.GuaranteedBaseOffsetAlignment;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */
static uint32_t random_size(test_random *r, uint64_t most)
{
    static const uint32_t primes[] = { 2, 3, 5, 7, 11, 13, 17, 31, 61, 67, 127, 251, 509, 1021, 2039 };
    uint64_t size;
    switch (test_random_below(r, 9)) {
    case 0:
    case 1: size = 1; break;
    case 2: size = primes[test_random_below(r, sizeof primes / sizeof *primes)]; break;
    /* 2^n - 1 to 2^n + 1 */
    case 3: size = (UINT64_C(1) << test_random_below(r, 13)) + test_random_below(r, 3) - 1; break;
    case 4: size = test_random_between(r, 4090, 4100); break;
    case 5: size = most; break;
    case 6: size = 32 * (1 + test_random_below(r, 12)); break;
    default: size = 1 + test_random_below(r, 20); break;
    }
    if (size > most)
        size = 1 + test_random_below(r, most);
    return size != 0 ? (uint32_t)size : 1;
}

/* A permutation of 0 to count - 1. */
static void shuffle(test_random *r, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)test_random_below(r, i + 1);
        order[i] = order[at];
        order[at] = i;
    }
}

void test_tensor_random_sizes(test_random *r, test_tensor *t, uint64_t most_elements)
{
    const uint32_t rank = t->buffer.DimensionCount;
    uint64_t left = most_elements;
    uint32_t order[8] = { 0 };
    shuffle(r, order, rank);
    for (uint32_t i = 0; i < rank; i++) {
        t->sizes[order[i]] = random_size(r, left);
        left /= t->sizes[order[i]];
    }
}

/* --- strides ------------------------------------------------------------------------------------------------------ */
/* Packed in the given order of dimensions, order[0] outermost; each stride may be up to pad percent larger.  A stride
 * that doesn't fit 32 bits becomes one that is too large for a binding. */
static void strides_in_order(test_random *r, test_tensor *t, const uint32_t *order, uint32_t pad)
{
    uint64_t stride = 1;
    for (uint32_t i = t->buffer.DimensionCount; i-- != 0;) {
        const uint32_t d = order[i];
        if (pad != 0 && test_random_chance(r, 50))
            stride += test_random_below(r, stride * pad / 100 + 4);
        t->strides[d] = stride < UINT32_MAX ? (uint32_t)stride : UINT32_MAX;
        stride *= t->sizes[d];
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whether no two coordinates share an element, by checking all of them. */
static bool is_injective(const test_tensor *t)
{
    const ref_tensor r = ref_tensor_of(&t->desc);
    const uint64_t elements = ref_tensor_elements(&r);
    uint64_t *offsets = malloc(elements * sizeof *offsets);
    bool injective = offsets != NULL;
    for (uint64_t e = 0; offsets != NULL && e < elements; e++) {
        uint32_t c[8];
        ref_tensor_coordinates(&r, e, c);
        offsets[e] = ref_tensor_offset(&r, c);
    }
    if (offsets != NULL)
        qsort(offsets, elements, sizeof *offsets, by_value);
    for (uint64_t e = 1; injective && e < elements; e++)
        injective = offsets[e] != offsets[e - 1];
    free(offsets);
    return injective;
}

/* Tries small random strides until no coordinates collide: finds layouts like sizes {2,3} with strides {3,2}. */
static bool strides_interleaved(test_random *r, test_tensor *t)
{
    const ref_tensor plain = ref_tensor_of(&t->desc);
    if (ref_tensor_elements(&plain) > 512)
        return false;
    for (int tries = 0; tries < 20; tries++) {
        for (uint32_t i = 0; i < t->buffer.DimensionCount; i++)
            t->strides[i] = 1 + (uint32_t)test_random_below(r, 40);
        if (is_injective(t))
            return true;
    }
    return false;
}

static void strides_of_output(test_random *r, test_tensor *t, uint32_t *order)
{
    switch (test_random_below(r, 6)) {
    case 0: strides_in_order(r, t, order, 0); break;
    case 1: strides_in_order(r, t, order, 40); break;
    case 2: shuffle(r, order, t->buffer.DimensionCount); strides_in_order(r, t, order, 0); break;
    case 3: shuffle(r, order, t->buffer.DimensionCount); strides_in_order(r, t, order, 40); break;
    case 4: strides_in_order(r, t, order, 300); break;
    default:
        t->interleaved = strides_interleaved(r, t);
        if (!t->interleaved)
            strides_in_order(r, t, order, 0);
        break;
    }
}

static void strides_of_input(test_random *r, test_tensor *t, uint32_t *order)
{
    const uint32_t rank = t->buffer.DimensionCount;
    switch (test_random_below(r, 4)) {
    case 0: /* broadcast some dimensions, or all */
        strides_in_order(r, t, order, 20);
        for (uint32_t i = 0; i < rank; i++) {
            if (test_random_chance(r, 60))
                t->strides[i] = 0;
        }
        break;
    case 1: /* overlapping windows */
        for (uint32_t i = 0; i < rank; i++)
            t->strides[i] = (uint32_t)test_random_below(r, 4);
        break;
    default: strides_of_output(r, t, order); break;
    }
}

/* Rows that begin at multiples of 64 bytes, where stores around the caches may be used. */
static void strides_of_lines(test_tensor *t, uint32_t size)
{
    const uint32_t line = 64 / size;
    uint64_t stride = 1;
    for (uint32_t i = t->buffer.DimensionCount; i-- != 0;) {
        t->strides[i] = stride < UINT32_MAX ? (uint32_t)stride : UINT32_MAX;
        stride = (stride * t->sizes[i] + line - 1) / line * line;
    }
    t->buffer.GuaranteedBaseOffsetAlignment = 64;
}

static void random_strides(test_random *r, test_tensor *t, bool is_output)
{
    uint32_t order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    t->buffer.Strides = t->strides;
    if (test_random_chance(r, 25))
        strides_of_lines(t, ref_dtype_size(t->buffer.DataType));
    else if (is_output)
        strides_of_output(r, t, order);
    else
        strides_of_input(r, t, order);
    for (uint32_t i = 0; i < t->buffer.DimensionCount; i++) {
        if (t->sizes[i] == 1 && test_random_chance(r, 30))
            t->strides[i] = test_random_chance(r, 50) ? 0 : (uint32_t)test_random_u64(r);
    }
}

/* Packed, padded, or with rows that begin at whole lines, in any order; across: the last two dimensions are swapped. */
void test_tensor_matrix_layout(test_random *r, test_tensor *t, bool across)
{
    const uint32_t rank = t->buffer.DimensionCount, size = ref_dtype_size(t->buffer.DataType), line = 64 / size;
    const bool lines = test_random_chance(r, 40);
    uint32_t order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    uint64_t stride = 1;
    if (across) {
        order[rank - 1] = rank - 2;
        order[rank - 2] = rank - 1;
    }
    t->buffer.Strides = t->strides;
    t->buffer.GuaranteedBaseOffsetAlignment = lines ? 64 : 0;
    strides_in_order(r, t, order, test_random_chance(r, 50) ? 0 : 30);
    for (uint32_t i = rank; lines && i-- != 0;) {
        t->strides[order[i]] = (uint32_t)stride;
        stride = (stride * t->sizes[order[i]] + line - 1) / line * line;
    }
    test_tensor_measure(t);
}

void test_tensor_random_layout(test_random *r, test_tensor *t, bool is_output)
{
    const uint32_t size = ref_dtype_size(t->buffer.DataType);
    if (test_random_chance(r, 70))
        random_strides(r, t, is_output);
    if (span_of(t) * size > LARGEST_BINDING) {
        t->buffer.Strides = NULL;
        t->interleaved = false;
    }
    if (t->buffer.GuaranteedBaseOffsetAlignment == 0 && test_random_chance(r, 50))
        t->buffer.GuaranteedBaseOffsetAlignment = size << test_random_below(r, test_random_chance(r, 5) ? 14 : 5);
    test_tensor_measure(t);
    if (test_random_chance(r, 40)) {
        t->buffer.TotalTensorSizeInBytes = t->bytes + (test_random_chance(r, 50) ? 4 * test_random_below(r, 100) : 0);
        test_tensor_measure(t);
    }
}
