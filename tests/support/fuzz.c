/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c - see fuzz.h. */
#define _POSIX_C_SOURCE 200809L

#include "tests/support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/reference/reference.h"
#include "tests/support/random.h"

/* --- choices ------------------------------------------------------------------------------------------------------ */

uint64_t fuzz_take(fuzz_reader *r, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes && r->left != 0; i++, r->at++, r->left--)
        value |= (uint64_t)*r->at << (8 * i);
    return value;
}

uint32_t fuzz_choose(fuzz_reader *r, uint32_t count)
{
    return (uint32_t)(fuzz_take(r, count > 256 ? 2 : 1) % count);
}

bool fuzz_sometimes(fuzz_reader *r, uint32_t of_256)
{
    return fuzz_take(r, 1) > 255 - of_256;
}

void fuzz_require_refusal(opjit_status status, const opjit_error *error, bool has_result, const char *what)
{
    if (status == OPJIT_OK) {
        test_require(has_result, "%s: OK without a result", what);
        return;
    }
    test_require(!has_result, "%s: %s with a result", what, opjit_status_name(status));
    test_require(status != OPJIT_INTERNAL, "%s: INTERNAL: %s", what, error->message);
    test_require(error->status == status && error->message[0] != '\0' && strchr(error->message, '\n') == NULL,
                 "%s: the message of %s is \"%s\"", what, opjit_status_name(status), error->message);
}

/* --- what an input may cost --------------------------------------------------------------------------------------- */

static int64_t cpu_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void fuzz_meter_begin(fuzz_meter *m)
{
    test_meter_begin(&m->memory);
    m->begun = cpu_now();
}

void fuzz_meter_end(const fuzz_meter *m, size_t input_bytes, uint64_t fixed, uint64_t each)
{
    const uint64_t bytes = fixed + each * input_bytes;
    const char *text = getenv("OPJIT_FUZZ_MS");
    const int64_t most = text != NULL ? atol(text) * (1 + (int64_t)input_bytes / 4096) : INT64_MAX;
    const int64_t ms = (cpu_now() - m->begun) / 1000000;
    test_require(m->memory.blocks == 0 && m->memory.live == 0, "%zu blocks of %zu bytes are left", m->memory.blocks,
                 m->memory.live);
    test_require(m->memory.peak <= bytes, "the input took %zu bytes; %llu are allowed", m->memory.peak,
                 (unsigned long long)bytes);
    test_require(ms <= most, "the input took %lld ms; %lld are allowed", (long long)ms, (long long)most);
}

/* --- memory of kernels -------------------------------------------------------------------------------------------- */

/* Elements that are meaningful to most operators, or any bits. */
static void fill(test_random *r, uint32_t dtype, uint8_t *data, uint64_t bytes)
{
    const uint32_t size = ref_dtype_size((DML_TENSOR_DATA_TYPE)dtype);
    const bool wild = test_random_chance(r, 25);
    for (uint64_t at = 0; at + size <= bytes; at += size) {
        const float small = (float)test_random_between(r, -8, 24) / (test_random_chance(r, 50) ? 4 : 1);
        const uint64_t bits = wild && test_random_chance(r, 50)
                                  ? test_random_u64(r)
                                  : ref_element_of_float((DML_TENSOR_DATA_TYPE)dtype, small);
        memcpy(data + at, &bits, size);
    }
}

bool fuzz_memory_create(fuzz_memory *m, const opjit_kernel *kernel, uint64_t seed)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    test_random r;
    uint64_t total = 0;

    test_require(opjit_kernel_get_info(kernel, &info, NULL) == OPJIT_OK, "a kernel has no information");
    *m = (fuzz_memory){ .inputs = info.inputs };
    if (info.inputs + info.outputs > FUZZ_BUFFERS || info.workspace_bytes > FUZZ_BYTES)
        return false;
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++)
        if ((total += info.buffers[i].bytes) > FUZZ_BYTES)
            return false;
    test_random_init(&r, seed, 1, 1);
    for (uint32_t i = 0; i < info.inputs + info.outputs; i++, m->count++) {
        const opjit_buffer_info *b = &info.buffers[i];
        void *data = NULL;
        test_require(posix_memalign(&data, b->align < 8 ? 8 : b->align, (size_t)b->bytes) == 0, "no memory");
        memset(data, 0, (size_t)b->bytes);
        fill(&r, b->dtype, data, b->bytes);
        m->bindings[i] = (opjit_binding){ data, b->bytes };
        m->dtypes[i] = b->dtype;
    }
    return true;
}

void fuzz_memory_free(fuzz_memory *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        free(m->bindings[i].data);
    m->count = 0;
}

opjit_status fuzz_memory_call(const fuzz_memory *m, const opjit_kernel *kernel, opjit_error *error)
{
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = m->bindings;
    call.binding_count = m->count;
    return opjit_kernel_call(kernel, &call, error);
}

static bool equal_element(DML_TENSOR_DATA_TYPE dtype, const uint8_t *a, const uint8_t *b)
{
    const uint32_t size = ref_dtype_size(dtype);
    uint64_t x = 0, y = 0;
    memcpy(&x, a, size);
    memcpy(&y, b, size);
    return x == y || (ref_dtype_is_float(dtype) && ref_is_nan(dtype, x) && ref_is_nan(dtype, y));
}

void fuzz_memory_require_equal(const fuzz_memory *a, const fuzz_memory *b, const char *what)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const DML_TENSOR_DATA_TYPE dtype = (DML_TENSOR_DATA_TYPE)a->dtypes[i];
        const uint8_t *x = a->bindings[i].data, *y = b->bindings[i].data;
        const uint64_t bytes = a->bindings[i].bytes, size = ref_dtype_size(dtype);
        uint64_t at = 0;
        if (memcmp(x, y, (size_t)bytes) == 0)
            continue;
        for (; at + size <= bytes; at += size)
            test_require(equal_element(dtype, x + at, y + at), "%s: binding %u differs at byte %llu", what, i,
                         (unsigned long long)at);
        test_require(memcmp(x + at, y + at, (size_t)(bytes - at)) == 0, "%s: padding of binding %u differs", what, i);
    }
}
