/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - memory cache: key bytes to kernel.  16 shards, a lock each, held for probe, full compare and retain.
 * However many threads ask for a missing key, one of them is told to make it and the others wait for that.
 * Bounded by bytes (least recently used goes); an evicted kernel only loses the cache's own reference. */
#ifndef OPJIT_RUNTIME_CACHE_CACHE_H
#define OPJIT_RUNTIME_CACHE_CACHE_H

#include "runtime/base/context.h"

opjit_status opjit_rt_cache_create(rt_core *core, uint64_t capacity, rt_cache **out, opjit_error *error);
void opjit_rt_cache_destroy(rt_cache *cache);

/* A key is two byte strings, so that a hit needs no concatenation: the operator's or graph's own key, made and hashed
 * once at create, and the key of options and target. */
typedef struct rt_key {
    const void *subject;  size_t subject_size;
    const void *options;  size_t options_size;
    uint64_t hash;        /* of both; equal keys must have equal hashes */
} rt_key;

/* Makes the kernel of a missing key; called without any lock held.  It may ask the cache for other keys, and does not
 * wait for what another thread makes then, but makes it for itself alone; this one it is refused. */
typedef opjit_status (*rt_cache_make)(void *user, opjit_kernel **out_kernel, opjit_error *error);

/* Finds key, or makes it with make, into *out_kernel with a reference for the caller.  *out_hit tells which.  A
 * failed make is returned to its own caller; threads that waited for it then try to make it themselves, one at a
 * time. */
opjit_status opjit_rt_cache_get(rt_cache *cache, const rt_key *key, rt_cache_make make, void *user,
                                opjit_kernel **out_kernel, bool *out_hit, opjit_error *error);
/* The kernel of key with a reference for the caller, if it is there; NULL: it is not, or is being made. */
opjit_kernel *opjit_rt_cache_find(rt_cache *cache, const rt_key *key);

/* What only the maker of a kernel knows; a make that reports DISK_HIT does not count as a compile. */
typedef enum rt_cache_count {
    RT_CACHE_DISK_HIT,
    RT_CACHE_DISK_HIT_APART, /* of a kernel that this cache has no entry for */
    RT_CACHE_DISK_WRITE,
    RT_CACHE_DISK_REJECT,
    RT_CACHE_COUNTS
} rt_cache_count;
void opjit_rt_cache_count(rt_cache *cache, rt_cache_count what);
void opjit_rt_cache_stats(const rt_cache *cache, opjit_cache_stats *out);

#endif
