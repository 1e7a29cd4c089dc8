/* SPDX-License-Identifier: Apache-2.0 */
/* constants.h - constant data that kernels of one core share: equal bytes are stored once, whichever graph they
 * come from, and freed with the last kernel that reads them. */
#ifndef OPJIT_RUNTIME_CACHE_CONSTANTS_H
#define OPJIT_RUNTIME_CACHE_CONSTANTS_H

#include <stdalign.h>

#include "runtime/base/base.h"
#include "runtime/base/lock.h"

typedef struct rt_constant {
    alignas(64) struct rt_constant *chain; /* next in the bucket */
    rt_hash hash;
    size_t size;
    uint32_t references; /* with the lock held */
    uint32_t table;      /* rt_constants.table that it was put into; 0: into none */
    alignas(64) uint8_t data[];
} rt_constant;

enum { RT_CONSTANTS_BUCKETS = 64 };

typedef struct rt_constants {
    rt_lock lock; /* of all below; not held while data is hashed, copied or compared */
    const opjit_allocator *allocator;
    rt_constant **buckets; /* first, or memory of the allocator */
    size_t bucket_count, count;
    uint32_t table; /* counts the tables that there were: a child of fork may have to begin a new one */
    rt_constant *first[RT_CONSTANTS_BUCKETS];
} rt_constants;

void opjit_rt_constants_init(rt_constants *constants, rt_process *process, const opjit_allocator *allocator);
/* Nobody holds any constant. */
void opjit_rt_constants_free(rt_constants *constants);

/* The bytes at data, at a multiple of 64, in *out with a reference for the caller. */
opjit_status opjit_rt_constant_share(rt_constants *constants, const void *data, size_t size, rt_constant **out,
                                     opjit_error *error);
void opjit_rt_constant_release(rt_constants *constants, rt_constant *constant);

#endif
