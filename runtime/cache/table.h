/* SPDX-License-Identifier: Apache-2.0 */
/* table.h - the memory cache's shards and entries, for cache.c (look-ups), table.c (shards, eviction) and control.c
 * (enumerating, pinning, dropping); everyone else uses cache.h. */
#ifndef OPJIT_RUNTIME_CACHE_TABLE_H
#define OPJIT_RUNTIME_CACHE_TABLE_H

#include <pthread.h>

#include "runtime/cache/cache.h"
#include "runtime/call/kernel.h"

enum { CACHE_SHARDS = 16, CACHE_FIRST_BUCKETS = 64 };

typedef enum cache_state { CACHE_MAKING, CACHE_READY, CACHE_FAILED } cache_state;

typedef struct cache_entry {
    alignas(64) struct cache_entry *chain; /* next in the bucket; in a list of victims: next victim */
    struct cache_entry *name_chain;        /* next in the bucket of its name */
    struct cache_entry *newer, *older;     /* of its list; of those in the making: the cache's */
    opjit_kernel *kernel;
    uint64_t hash, bytes;
    cache_state state;
    bool linked; /* found by look-ups; an entry that is not belongs to those who wait for it */
    uint32_t waiters;
    uint32_t pins;    /* above 0: it is in the list of pinned ones */
    uint32_t process; /* that it is made in */
    pthread_t maker;
    rt_hash name; /* of the whole key: what the host knows it by, and its file on disk */
    size_t subject_size, options_size;
    unsigned char key[];
} cache_entry;

/* Ready entries in the table, by use. */
typedef struct cache_list {
    cache_entry *newest, *oldest;
} cache_list;

typedef struct cache_shard {
    alignas(64) rt_lock lock; /* everything below; the counters may also be read without it */
    atomic_uint made;         /* counts; those who wait for an entry wait on it */
    cache_entry **buckets;    /* bucket_count of them by hash, then as many by name */
    atomic_size_t bucket_count; /* never stored before the buckets */
    size_t entries;
    cache_list used, pinned;
    atomic_ullong bytes, ready, hits, misses, makes, evictions, waits; /* written with the lock held, by plain stores */
} cache_shard;

struct rt_cache {
    cache_shard shards[CACHE_SHARDS];
    rt_core *core;
    uint64_t capacity;
    rt_lock evicting;     /* one at a time, so that two don't make room for the same kernel; taken before a shard's */
    rt_lock making_lock;  /* taken last */
    cache_entry *making;  /* all that threads of this process make */
    atomic_ullong counts[RT_CACHE_COUNTS];
};

static inline void cache_add_to(atomic_ullong *counter, long long change)
{
    const unsigned long long value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + (unsigned long long)change, memory_order_relaxed);
}

static inline size_t cache_entry_size(const cache_entry *e)
{
    return sizeof *e + e->subject_size + e->options_size;
}

/* --- the lists of one shard, with its lock held ------------------------------------------------------------------- */

static inline cache_list *cache_list_of(cache_shard *s, const cache_entry *e)
{
    return e->pins != 0 ? &s->pinned : &s->used;
}

static inline void cache_list_push(cache_list *list, cache_entry *e)
{
    e->newer = NULL;
    e->older = list->newest;
    if (list->newest != NULL)
        list->newest->newer = e;
    else
        list->oldest = e;
    list->newest = e;
}

static inline void cache_list_remove(cache_list *list, cache_entry *e)
{
    if (e->newer != NULL)
        e->newer->older = e->older;
    else
        list->newest = e->older;
    if (e->older != NULL)
        e->older->newer = e->newer;
    else
        list->oldest = e->newer;
}

/* --- table.c ------------------------------------------------------------------------------------------------------ */
void opjit_rt_cache_forget(cache_shard *s);
/* A shard that was locked in the parent when this process was forked may be half changed: this process forgets it. */
static inline void cache_lock(cache_shard *s)
{
    if (opjit_rt_lock(&s->lock))
        opjit_rt_cache_forget(s);
}
opjit_status opjit_rt_cache_shard_init(rt_cache *cache, cache_shard *s, opjit_error *error);
void opjit_rt_cache_shard_free(rt_cache *cache, cache_shard *s); /* one that was never initialised, too */
/* Bytes of all kernels that are kept. */
uint64_t opjit_rt_cache_bytes(const rt_cache *cache);

/* With the shard's lock held.  The bucket of all entries whose names have that half. */
static inline cache_entry **cache_names(const cache_shard *s, uint64_t lo)
{
    return &s->buckets[s->bucket_count + (lo & (s->bucket_count - 1))];
}
/* The ready entry of that name; NULL: the shard has none. */
cache_entry *opjit_rt_cache_named(const cache_shard *s, const rt_hash *name);
/* link: a new entry that is in the making; NULL: no memory. */
cache_entry *opjit_rt_cache_link(rt_cache *cache, cache_shard *s, const rt_key *key);
void opjit_rt_cache_unlink(cache_shard *s, cache_entry *e);

/* Drops the ready entries of one name, or all (NULL); how many.  pinned_too: also those. */
uint32_t opjit_rt_cache_drop(rt_cache *cache, const rt_hash *name, bool pinned_too);

/* Without any lock.  tell: that they were evicted. */
void opjit_rt_cache_free(rt_cache *cache, cache_entry *victims, bool tell);
/* Brings the sum below the capacity, beginning with shard `first`.  Never drops keep, just inserted: alone it fits. */
void opjit_rt_cache_evict(rt_cache *cache, size_t first, const cache_entry *keep);

#endif
