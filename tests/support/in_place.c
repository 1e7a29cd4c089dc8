/* SPDX-License-Identifier: Apache-2.0 */
/* in_place.c - compares calls with separate buffers and in-place calls (in_place.h). */
#include "tests/support/in_place.h"

#include <check.h>
#include <string.h>

#include "tests/machines/emulated.h"
#include "tests/reference/reference.h"
#include "tests/support/executors.h"

static bool is_float(uint32_t dtype)
{
    return ref_dtype_is_float((DML_TENSOR_DATA_TYPE)dtype);
}

/* Small numbers, so that their sums and exponentials stay finite. */
static void fill(test_random *r, const opjit_buffer_info *info, uint8_t *data, size_t bytes)
{
    static const uint16_t halves[] = { 0, 0x3400, 0xb800, 0x3c00, 0xc000, 0x3e00, 0x4100 };
    const uint32_t size = ref_dtype_size((DML_TENSOR_DATA_TYPE)info->dtype);
    for (size_t at = 0; at + size <= bytes; at += size) {
        const int64_t whole = test_random_between(r, -6, 12);
        const float f = (float)whole / 4;
        const double d = f;
        const uint16_t h = halves[test_random_below(r, 7)];
        const void *from = !is_float(info->dtype) ? (const void *)&whole : size == 8 ? (const void *)&d
                           : size == 4            ? (const void *)&f
                                                  : (const void *)&h;
        memcpy(data + at, from, size);
    }
}

/* Draws which input each output shares memory with, and which inputs are one buffer; false: no output is in place. */
static bool draw_homes(in_place_trial *t)
{
    bool any = false, taken[IN_PLACE_BUFFERS] = { false };
    for (uint32_t i = 0; i < t->count; i++)
        t->home[i] = i;
    for (uint32_t o = t->info.inputs; o < t->count; o++) {
        const uint32_t mask = t->info.buffers[o].alias_inputs;
        const uint32_t first = (uint32_t)test_random_below(t->r, t->info.inputs + 1);
        for (uint32_t k = 0; k < t->info.inputs && t->home[o] == o; k++) {
            const uint32_t i = (first + k) % t->info.inputs;
            if ((mask >> i & 1) == 0 || taken[i] || test_random_chance(t->r, 10))
                continue;
            t->home[o] = i;
            taken[i] = any = true;
            for (uint32_t j = 0; j < t->info.inputs; j++)
                if (j != i && (mask >> j & 1) != 0 && !taken[j] && test_random_chance(t->r, 25)) {
                    t->home[j] = i;
                    taken[j] = true;
                }
        }
    }
    return any;
}

static void make_buffers(in_place_trial *t)
{
    size_t bytes[IN_PLACE_BUFFERS] = { 0 }, align[IN_PLACE_BUFFERS] = { 0 };
    for (uint32_t i = 0; i < t->count; i++) {
        const opjit_buffer_info *b = &t->info.buffers[i];
        const uint32_t h = t->home[i];
        bytes[h] = b->bytes > bytes[h] ? b->bytes : bytes[h];
        align[h] = b->align > align[h] ? b->align : align[h];
    }
    for (uint32_t i = 0; i < t->count; i++) {
        const opjit_buffer_info *b = &t->info.buffers[i];
        const uint32_t h = t->home[i];
        ck_assert(test_buffer_create(&t->apart[i], t->r, bytes[h], b->align));
        if (i < t->info.inputs)
            fill(t->r, b, t->apart[i].data, bytes[h]);
        if (h == i)
            ck_assert(test_buffer_create(&t->together[i], t->r, bytes[i], align[i]));
    }
    for (uint32_t i = 0; i < t->info.inputs; i++)
        memcpy(t->apart[i].data, t->apart[t->home[i]].data, bytes[t->home[i]]); /* one buffer has one content */
    for (uint32_t i = 0; i < t->count; i++) {
        if (t->home[i] == i && i < t->info.inputs)
            memcpy(t->together[i].data, t->apart[i].data, bytes[i]);
        if (t->home[i] == i && i >= t->info.inputs)
            memcpy(t->apart[i].data, t->together[i].data, bytes[i]);
        test_buffer_expect_unchanged(&t->apart[i]);
        if (t->home[i] == i)
            test_buffer_expect_unchanged(&t->together[i]);
    }
}

/* False: no machine here can run it. */
static bool call(in_place_trial *t, const test_buffer *buffers, const uint32_t *homes)
{
    opjit_binding bindings[IN_PLACE_BUFFERS];
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    test_executor executor;
    for (uint32_t i = 0; i < t->count; i++) {
        const test_buffer *b = &buffers[homes == NULL ? i : homes[i]];
        bindings[i] = (opjit_binding){ b->data, b->bytes };
    }
    call.binding_count = t->count;
    call.bindings = bindings;
    test_executor_init(&executor, t->r, t->mode->how == TEST_THREADS);
    if (t->mode->how != TEST_CALL)
        call.executor = &executor.executor;
    const opjit_status status = opjit_kernel_call(t->kernel, &call, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE || test_excused(t->mode, status),
                  IN_PLACE_WHERE "%s", IN_PLACE_AT(t), error.message);
    return status == OPJIT_OK;
}

/* Puts the elements of output o, as the call with separate buffers made them, where the other call should have put
 * them; NaNs may have any sign and payload. */
static void expect(in_place_trial *t, uint32_t o)
{
    const opjit_buffer_info *b = &t->info.buffers[o];
    test_buffer *own = &t->together[t->home[o]];
    ref_tensor tensor = { .dtype = (DML_TENSOR_DATA_TYPE)b->dtype, .rank = b->rank };
    uint64_t elements = 1;
    for (uint32_t d = 0; d < b->rank; d++) {
        tensor.sizes[d] = (uint32_t)b->sizes[d];
        tensor.strides[d] = b->strides[d];
        elements *= b->sizes[d];
    }
    for (uint64_t e = 0; e < elements; e++) {
        uint32_t at[8];
        ref_tensor_coordinates(&tensor, e, at);
        const uint64_t offset = ref_tensor_offset(&tensor, at);
        const uint64_t want = ref_load(&tensor, t->apart[o].data, offset), got = ref_load(&tensor, own->data, offset);
        const bool nan = is_float(b->dtype) && ref_is_nan(tensor.dtype, want) && ref_is_nan(tensor.dtype, got);
        ref_store(&tensor, own->expected, offset, nan ? got : want);
    }
}

static void compare(in_place_trial *t)
{
    int64_t at;
    for (uint32_t i = 0; i < t->count; i++) {
        ck_assert_msg(i >= t->info.inputs || test_buffer_compare(&t->apart[i], &at),
                      IN_PLACE_WHERE "input %u was changed, called apart", IN_PLACE_AT(t), i);
        if (i >= t->info.inputs)
            expect(t, i);
    }
    for (uint32_t i = 0; i < t->count; i++)
        ck_assert_msg(t->home[i] != i || test_buffer_compare(&t->together[i], &at),
                      IN_PLACE_WHERE "buffer %u in place, byte %" PRId64 " of %zu", IN_PLACE_AT(t), i, at,
                      t->together[i].bytes);
}

bool in_place_check(in_place_trial *t)
{
    bool called = false;
    t->info = (opjit_kernel_info)OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(t->kernel, &t->info, NULL), OPJIT_OK);
    t->count = t->info.inputs + t->info.outputs;
    if (t->count <= IN_PLACE_BUFFERS && t->info.inputs > 0 && draw_homes(t)) {
        make_buffers(t);
        if (call(t, t->apart, NULL) && call(t, t->together, t->home)) {
            compare(t);
            called = true;
        }
    }
    for (uint32_t i = 0; i < IN_PLACE_BUFFERS; i++) {
        test_buffer_destroy(&t->apart[i]);
        test_buffer_destroy(&t->together[i]);
    }
    opjit_kernel_release(t->kernel);
    return called;
}

void in_place_compare_lowered(in_place_trial *t, const graph_case *graph)
{
    opjit_error error = { 0 };
    test_buffer lowered[IN_PLACE_BUFFERS] = { { 0 } };
    void *pointers[IN_PLACE_BUFFERS];
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(t->kernel, &info, NULL), OPJIT_OK);
    t->info = info;
    t->count = info.inputs + info.outputs;
    for (uint32_t i = 0; i < t->count; i++)
        t->home[i] = i;
    make_buffers(t);
    for (uint32_t i = 0; i < t->count; i++) {
        ck_assert(test_buffer_create(&lowered[i], t->r, t->apart[i].bytes, 64));
        pointers[i] = i < info.inputs ? t->apart[i].data : lowered[i].data;
    }
    ck_assert_msg(graph_run_lowered(graph, pointers, &error) == OPJIT_OK, IN_PLACE_WHERE "%s", IN_PLACE_AT(t),
                  error.message);
    if (call(t, t->apart, NULL))
        for (uint32_t i = info.inputs; i < t->count; i++) {
            const ref_tensor tensor = { .dtype = (DML_TENSOR_DATA_TYPE)info.buffers[i].dtype };
            uint64_t elements = 1; /* packed */
            for (uint32_t d = 0; d < info.buffers[i].rank; d++)
                elements *= info.buffers[i].sizes[d];
            for (uint64_t e = 0; e < elements; e++) {
                const uint64_t want = ref_load(&tensor, lowered[i].data, e),
                               got = ref_load(&tensor, t->apart[i].data, e);
                ck_assert_msg(want == got || (ref_is_nan(tensor.dtype, want) && ref_is_nan(tensor.dtype, got)),
                              IN_PLACE_WHERE "output %u, element %" PRIu64 ": %#" PRIx64 ", lowered %#" PRIx64,
                              IN_PLACE_AT(t), i - info.inputs, e, got, want);
            }
        }
    for (uint32_t i = 0; i < t->count; i++) {
        test_buffer_destroy(&lowered[i]);
        test_buffer_destroy(&t->apart[i]);
        test_buffer_destroy(&t->together[i]);
    }
}
