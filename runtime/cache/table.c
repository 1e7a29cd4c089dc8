/* SPDX-License-Identifier: Apache-2.0 */
/* table.c - the memory cache's shards: tables that grow, and who goes where the sum of bytes is above the bound.
 * A shard that grows evicts its own least recently used kernels first, then those of the next shards; pinned ones stay.
 * Kernels are released, and events sent, only after the locks are. */
#include "runtime/cache/table.h"

#include <string.h>

/* Of both kinds. */
static size_t buckets_size(size_t count)
{
    return 2 * count * sizeof(cache_entry *);
}

void opjit_rt_cache_forget(cache_shard *s)
{
    memset(s->buckets, 0, buckets_size(s->bucket_count));
    s->entries = 0;
    s->used = s->pinned = (cache_list){ NULL, NULL };
    atomic_store(&s->bytes, 0);
    atomic_store(&s->ready, 0);
}

opjit_status opjit_rt_cache_shard_init(rt_cache *cache, cache_shard *s, opjit_error *error)
{
    const size_t size = buckets_size(CACHE_FIRST_BUCKETS);

    opjit_rt_lock_init(&s->lock, &cache->core->process);
    s->bucket_count = CACHE_FIRST_BUCKETS; /* marks the shard as initialised */
    s->buckets = opjit_rt_allocate(&cache->core->allocator, size, alignof(cache_entry *));
    if (s->buckets == NULL)
        return opjit_rt_no_memory(error);
    memset(s->buckets, 0, size);
    return OPJIT_OK;
}

static void entry_free(rt_cache *cache, cache_entry *e)
{
    opjit_kernel_release(e->kernel);
    opjit_rt_release(&cache->core->allocator, e, cache_entry_size(e));
}

static void list_free(rt_cache *cache, const cache_list *list)
{
    for (cache_entry *e = list->oldest, *newer; e != NULL; e = newer) {
        newer = e->newer;
        entry_free(cache, e);
    }
}

void opjit_rt_cache_shard_free(rt_cache *cache, cache_shard *s)
{
    list_free(cache, &s->used);
    list_free(cache, &s->pinned);
    if (s->bucket_count != 0)
        opjit_rt_release(&cache->core->allocator, s->buckets, buckets_size(s->bucket_count));
}

uint64_t opjit_rt_cache_bytes(const rt_cache *cache)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < CACHE_SHARDS; i++)
        sum += atomic_load_explicit(&cache->shards[i].bytes, memory_order_relaxed);
    return sum;
}

/* --- the table of one shard, with its lock held ------------------------------------------------------------------- */

static void put_in_buckets(cache_shard *s, cache_entry *e)
{
    cache_entry **const at = &s->buckets[e->hash & (s->bucket_count - 1)];
    cache_entry **const named = cache_names(s, e->name.lo);

    e->chain = *at;
    *at = e;
    e->name_chain = *named;
    *named = e;
}

cache_entry *opjit_rt_cache_named(const cache_shard *s, const rt_hash *name)
{
    cache_entry *e = *cache_names(s, name->lo);

    while (e != NULL && (e->state != CACHE_READY || e->name.lo != name->lo || e->name.hi != name->hi))
        e = e->name_chain;
    return e;
}

/* Doubles the table; without memory for that chains only get longer. */
static void grow(cache_shard *s, const opjit_allocator *a)
{
    const size_t count = s->bucket_count;
    cache_entry **const before = s->buckets;
    cache_entry **const buckets = opjit_rt_allocate(a, buckets_size(2 * count), alignof(cache_entry *));

    if (buckets == NULL)
        return;
    memset(buckets, 0, buckets_size(2 * count));
    /* In this order, for whoever is forked meanwhile (opjit_rt_cache_forget): buckets are there, and at least that
     * many. */
    s->buckets = buckets;
    s->bucket_count = 2 * count;
    for (size_t i = 0; i < count; i++) {
        for (cache_entry *e = before[i], *next; e != NULL; e = next) {
            next = e->chain;
            put_in_buckets(s, e);
        }
    }
    opjit_rt_release(a, before, buckets_size(count));
}

cache_entry *opjit_rt_cache_link(rt_cache *cache, cache_shard *s, const rt_key *key)
{
    const opjit_allocator *a = &cache->core->allocator;
    uint64_t size;
    cache_entry *e;

    if (!checked_add(key->subject_size, key->options_size, &size) || !checked_add(size, sizeof *e, &size))
        return NULL;
    e = opjit_rt_allocate(a, (size_t)size, alignof(cache_entry));
    if (e == NULL)
        return NULL;
    memset(e, 0, sizeof *e);
    e->hash = key->hash;
    e->subject_size = key->subject_size;
    e->options_size = key->options_size;
    if (key->subject_size != 0)
        memcpy(e->key, key->subject, key->subject_size);
    if (key->options_size != 0)
        memcpy(e->key + key->subject_size, key->options, key->options_size);
    e->state = CACHE_MAKING;
    e->linked = true;
    e->name = opjit_rt_hash(e->key, (size_t)size - sizeof *e);
    e->process = rt_process_number(&cache->core->process);
    e->maker = pthread_self();
    if (s->entries >= s->bucket_count)
        grow(s, a);
    put_in_buckets(s, e);
    s->entries++;
    return e;
}

void opjit_rt_cache_unlink(cache_shard *s, cache_entry *e)
{
    cache_entry **at = &s->buckets[e->hash & (s->bucket_count - 1)], **named = cache_names(s, e->name.lo);

    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    e->chain = NULL;
    while (*named != e)
        named = &(*named)->name_chain;
    *named = e->name_chain;
    e->linked = false;
    s->entries--;
}

/* Takes a ready entry out of the shard.  Who still waits for it frees it; else it goes to *victims. */
static void take_out(cache_shard *s, cache_entry *e, cache_entry **victims)
{
    cache_list_remove(cache_list_of(s, e), e);
    opjit_rt_cache_unlink(s, e);
    cache_add_to(&s->ready, -1);
    cache_add_to(&s->bytes, -(long long)e->bytes);
    if (e->waiters == 0) {
        e->chain = *victims;
        *victims = e;
    }
}

/* --- eviction ----------------------------------------------------------------------------------------------------- */

void opjit_rt_cache_free(rt_cache *cache, cache_entry *victims, bool tell)
{
    while (victims != NULL) {
        cache_entry *next = victims->chain;
        if (tell && rt_wants_events(cache->core)) {
            opjit_event event = opjit_rt_kernel_event(victims->kernel, OPJIT_EVENT_EVICT, OPJIT_EVENT_MEMORY_CACHE);
            event.bytes = victims->bytes;
            opjit_rt_event(cache->core, &event, "evict,%s,bytes=%llu", event.name, (unsigned long long)victims->bytes);
        }
        entry_free(cache, victims);
        victims = next;
    }
}

/* Least recently used entry that isn't pinned, except keep. */
static cache_entry *oldest_but(const cache_shard *s, const cache_entry *keep)
{
    return s->used.oldest != NULL && s->used.oldest == keep ? keep->newer : s->used.oldest;
}

void opjit_rt_cache_evict(rt_cache *cache, size_t first, const cache_entry *keep)
{
    cache_entry *victims = NULL;

    if (opjit_rt_cache_bytes(cache) <= cache->capacity)
        return;
    opjit_rt_lock(&cache->evicting);
    for (size_t i = 0; i < CACHE_SHARDS; i++) {
        cache_shard *s = &cache->shards[(first + i) % CACHE_SHARDS];
        uint64_t bytes; /* of all shards, of which only this one loses any meanwhile */
        cache_entry *e;
        cache_lock(s);
        bytes = opjit_rt_cache_bytes(cache);
        while (bytes > cache->capacity && (e = oldest_but(s, keep)) != NULL) {
            cache_add_to(&s->evictions, 1);
            bytes -= e->bytes;
            take_out(s, e, &victims);
        }
        opjit_rt_unlock(&s->lock);
        if (bytes <= cache->capacity)
            break;
    }
    opjit_rt_unlock(&cache->evicting);
    opjit_rt_cache_free(cache, victims, true);
}

/* --- dropping ----------------------------------------------------------------------------------------------------- */

static uint32_t remove_list(cache_shard *s, const cache_list *list, cache_entry **victims)
{
    uint32_t count = 0;

    for (; list->oldest != NULL; count++)
        take_out(s, list->oldest, victims);
    return count;
}

uint32_t opjit_rt_cache_drop(rt_cache *cache, const rt_hash *name, bool pinned_too)
{
    uint32_t count = 0;

    for (size_t i = 0; i < CACHE_SHARDS; i++) {
        cache_shard *s = &cache->shards[i];
        cache_entry *victims = NULL, *named;
        cache_lock(s);
        if (name == NULL) {
            count += remove_list(s, &s->used, &victims);
            count += pinned_too ? remove_list(s, &s->pinned, &victims) : 0;
        } else if ((named = opjit_rt_cache_named(s, name)) != NULL && (pinned_too || named->pins == 0)) {
            take_out(s, named, &victims);
            count++;
        }
        opjit_rt_unlock(&s->lock);
        opjit_rt_cache_free(cache, victims, false);
    }
    return count;
}
