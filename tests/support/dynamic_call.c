/* SPDX-License-Identifier: Apache-2.0 */
/* dynamic_call.c - see dynamic_call.h. */
#define _GNU_SOURCE
#include "tests/support/dynamic_call.h"

#include <check.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAINT = 0x5a };

bool dynamic_allocate(dynamic_memory *m, const opjit_kernel *kernel, const uint64_t *dims, uint32_t dim_count,
                      uint64_t most)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_error error = { 0 };
    uint64_t all = 0;

    *m = (dynamic_memory){ .count = 0 };
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    m->inputs = info.inputs;
    m->count = info.inputs + info.outputs;
    ck_assert_uint_le(m->count, DYNAMIC_BINDINGS);
    for (uint32_t i = 0; i < m->count; i++) {
        uint64_t sizes[8];
        ck_assert_msg(opjit_kernel_sizes(kernel, dims, dim_count, i, sizes, &m->bindings[i].bytes, &error) == OPJIT_OK,
                      "%s", error.message);
        all += m->bindings[i].bytes;
    }
    for (uint32_t i = 0; i < m->count && all <= most; i++) {
        const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)m->bindings[i].bytes;
        const size_t room = (bytes + 2 * DYNAMIC_GUARD + page - 1) / page * page;
        m->sizes[i] = room + page;
        m->mapped[i] = mmap(NULL, m->sizes[i], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(m->mapped[i], MAP_FAILED);
        memset(m->mapped[i], PAINT, room);
        ck_assert_int_eq(mprotect((uint8_t *)m->mapped[i] + room, page, PROT_NONE), 0);
        m->data[i] = (uint8_t *)m->mapped[i] + (i < m->inputs ? room - bytes - DYNAMIC_GUARD : 0);
        m->bindings[i].data = m->data[i] + DYNAMIC_GUARD;
        for (size_t k = 0; k * sizeof(float) < bytes && i < m->inputs; k++) {
            const float number = (float)((k * 2654435761u >> 7) % 257) / 67.0f - 1.9f; /* sums round */
            const size_t rest = bytes - k * sizeof number;
            memcpy((float *)m->bindings[i].data + k, &number, rest < sizeof number ? rest : sizeof number);
        }
    }
    return all <= most;
}

void dynamic_release(dynamic_memory *m)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->mapped[i] != NULL)
            (void)munmap(m->mapped[i], m->sizes[i]);
}

opjit_status dynamic_call(const dynamic_memory *m, const opjit_kernel *kernel, const uint64_t *dims, uint32_t dim_count,
                          opjit_error *error)
{
    opjit_call c = OPJIT_CALL_INIT;
    c.bindings = m->bindings;
    c.binding_count = m->count;
    c.dims = dims;
    c.dim_count = dim_count;
    return opjit_kernel_call(kernel, &c, error);
}

void dynamic_compare(const dynamic_memory *expected, const dynamic_memory *given, const char *what,
                     const uint64_t *dims)
{
    ck_assert_uint_eq(given->count, expected->count);
    for (uint32_t i = 0; i < given->count; i++) {
        const uint64_t bytes = given->bindings[i].bytes;
        ck_assert_uint_eq((bytes + 3) / 4, (expected->bindings[i].bytes + 3) / 4); /* a fixed kernel's: rounded up */
        ck_assert_msg(memcmp(given->bindings[i].data, expected->bindings[i].data, bytes) == 0,
                      "%s, sizes %" PRIu64 " and %" PRIu64 ": binding %u differs", what, dims[0], dims[1], i);
        for (uint32_t k = 0; k < DYNAMIC_GUARD; k++)
            ck_assert_msg(given->data[i][k] == PAINT &&
                              (i < given->inputs || given->data[i][DYNAMIC_GUARD + bytes + k] == PAINT),
                          "%s: bytes beside binding %u changed", what, i);
    }
}
