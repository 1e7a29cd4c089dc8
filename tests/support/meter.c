/* SPDX-License-Identifier: Apache-2.0 */
/* meter.c - an allocator hook that counts (meter.h). */
#include "tests/support/meter.h"

#include "runtime/base/base.h"

static void *allocate(void *user, size_t size, size_t alignment)
{
    test_meter *m = user;
    void *memory = opjit_rt_default_allocator.allocate(NULL, size, alignment);

    if (memory == NULL)
        return NULL;
    m->blocks++;
    m->calls++;
    m->live += size;
    m->peak = m->live > m->peak ? m->live : m->peak;
    return memory;
}

static void release(void *user, void *memory, size_t size)
{
    test_meter *m = user;

    m->blocks--;
    m->live -= size;
    opjit_rt_default_allocator.release(NULL, memory, size);
}

void test_meter_begin(test_meter *m)
{
    *m = (test_meter){ .allocator = { m, allocate, release } };
}

void test_meter_reset(test_meter *m)
{
    m->peak = m->live;
    m->calls = 0;
}
