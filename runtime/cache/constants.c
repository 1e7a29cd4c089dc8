/* SPDX-License-Identifier: Apache-2.0 */
/* constants.c - a table of constant data by hash.  Equal hashes are compared, so that sharing can't change a result. */
#include "runtime/cache/constants.h"

#include <string.h>

/* A table that a thread of the parent was changing when this process was forked is given up; who holds constants of it
 * keeps them. */
static void lock(rt_constants *c)
{
    if (!opjit_rt_lock(&c->lock))
        return;
    memset(c->first, 0, sizeof c->first);
    c->buckets = c->first;
    c->bucket_count = RT_CONSTANTS_BUCKETS;
    c->count = 0;
    c->table++;
}

void opjit_rt_constants_init(rt_constants *constants, rt_process *process, const opjit_allocator *allocator)
{
    *constants = (rt_constants){ .allocator = allocator, .bucket_count = RT_CONSTANTS_BUCKETS, .table = 1 };
    constants->buckets = constants->first;
    opjit_rt_lock_init(&constants->lock, process);
}

void opjit_rt_constants_free(rt_constants *constants)
{
    if (constants->buckets != constants->first)
        opjit_rt_release(constants->allocator, constants->buckets,
                         constants->bucket_count * sizeof *constants->buckets);
}

/* --- the table, with its lock held -------------------------------------------------------------------------------- */

static rt_constant **bucket_of(const rt_constants *c, rt_hash hash)
{
    return &c->buckets[hash.lo & (c->bucket_count - 1)];
}

/* With one more reference; NULL: there is none. */
static rt_constant *find(const rt_constants *c, rt_hash hash, size_t size)
{
    rt_constant *found = *bucket_of(c, hash);

    while (found != NULL && (found->hash.lo != hash.lo || found->hash.hi != hash.hi || found->size != size))
        found = found->chain;
    if (found != NULL)
        found->references++;
    return found;
}

/* Doubles the table; without memory for that chains only get longer. */
static void grow(rt_constants *c)
{
    rt_constants next = *c;

    next.bucket_count *= 2;
    next.buckets = opjit_rt_allocate(c->allocator, next.bucket_count * sizeof *next.buckets, alignof(rt_constant *));
    if (next.buckets == NULL)
        return;
    memset(next.buckets, 0, next.bucket_count * sizeof *next.buckets);
    for (size_t i = 0; i < c->bucket_count; i++)
        for (rt_constant *e = c->buckets[i], *chain; e != NULL; e = chain) {
            rt_constant **const bucket = bucket_of(&next, e->hash);
            chain = e->chain;
            e->chain = *bucket;
            *bucket = e;
        }
    opjit_rt_constants_free(c);
    c->buckets = next.buckets;
    c->bucket_count = next.bucket_count;
}

static void link_constant(rt_constants *c, rt_constant *constant)
{
    rt_constant **bucket;

    if (c->count++ >= c->bucket_count)
        grow(c);
    bucket = bucket_of(c, constant->hash);
    constant->chain = *bucket;
    *bucket = constant;
    constant->table = c->table;
}

static void unlink_constant(rt_constants *c, const rt_constant *constant)
{
    rt_constant **at = bucket_of(c, constant->hash);

    while (*at != constant)
        at = &(*at)->chain;
    *at = constant->chain;
    c->count--;
}

/* --- sharing ------------------------------------------------------------------------------------------------------ */

/* A copy that is in no table, with one reference; NULL: no memory. */
static rt_constant *copy_of(const rt_constants *c, const void *data, size_t size, rt_hash hash)
{
    rt_constant *copy;
    uint64_t bytes;

    if (!checked_add(sizeof *copy, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    copy = opjit_rt_allocate_data(c->allocator, (size_t)bytes, alignof(rt_constant));
    if (copy == NULL)
        return NULL;
    *copy = (rt_constant){ .hash = hash, .size = size, .references = 1 };
    memcpy(copy->data, data, size);
    return copy;
}

static void free_constant(const rt_constants *c, rt_constant *constant)
{
    opjit_rt_release(c->allocator, constant, sizeof *constant + constant->size);
}

opjit_status opjit_rt_constant_share(rt_constants *constants, const void *data, size_t size, rt_constant **out,
                                     opjit_error *error)
{
    const rt_hash hash = opjit_rt_hash(data, size);
    rt_constant *mine = NULL, *found;

    lock(constants);
    found = find(constants, hash, size);
    opjit_rt_unlock(&constants->lock);
    if (found == NULL || memcmp(found->data, data, size) != 0) {
        mine = copy_of(constants, data, size, hash);
        if (mine == NULL) {
            if (found != NULL)
                opjit_rt_constant_release(constants, found);
            return opjit_rt_no_memory(error);
        }
    }
    if (found == NULL) { /* once more: another thread may have put one there while this one copied */
        lock(constants);
        found = find(constants, hash, size);
        if (found == NULL)
            link_constant(constants, mine);
        opjit_rt_unlock(&constants->lock);
    }
    if (mine != NULL && found != NULL && memcmp(found->data, data, size) == 0) {
        free_constant(constants, mine);
        mine = NULL;
    } else if (mine != NULL && found != NULL) { /* of the same hash, and another one: this one is not shared */
        opjit_rt_constant_release(constants, found);
    }
    *out = mine != NULL ? mine : found;
    return OPJIT_OK;
}

void opjit_rt_constant_release(rt_constants *constants, rt_constant *constant)
{
    bool last;

    lock(constants);
    last = --constant->references == 0;
    if (last && constant->table == constants->table)
        unlink_constant(constants, constant);
    opjit_rt_unlock(&constants->lock);
    if (last)
        free_constant(constants, constant);
}
