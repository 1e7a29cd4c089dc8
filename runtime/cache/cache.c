/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the memory cache.  A key is either missing, being made by one thread, or ready. Bytes are bounded over
 * all shards, so a kernel may be as large as the whole cache; one that is larger is handed out and not kept.  What
 * a shard is, and who goes when there is no room, is table.c's.
 *
 * A thread that makes a kernel runs code of the host's, which may ask for others: it never waits for a thread that
 * may be waiting for it.  In a child of fork, what threads of the parent were making is made anew. */
#include "runtime/cache/table.h"

#include <string.h>

static cache_shard *shard_of(rt_cache *cache, uint64_t hash)
{
    return &cache->shards[hash >> 60];
}

/* --- who makes what ----------------------------------------------------------------------------------------------- */

/* Whether a thread of this process makes e, not one of its parent. */
static bool is_ours(const rt_cache *cache, const cache_entry *e)
{
    return e->process == rt_process_number(&cache->core->process);
}

static void lock_making(rt_cache *cache)
{
    if (opjit_rt_lock(&cache->making_lock))
        cache->making = NULL; /* the parent's threads' */
}

static void begin_making(rt_cache *cache, cache_entry *e)
{
    lock_making(cache);
    e->older = cache->making;
    cache->making = e;
    opjit_rt_unlock(&cache->making_lock);
}

static void end_making(rt_cache *cache, const cache_entry *e)
{
    lock_making(cache);
    for (cache_entry **at = &cache->making; *at != NULL; at = &(*at)->older)
        if (*at == e) {
            *at = e->older;
            break;
        }
    opjit_rt_unlock(&cache->making_lock);
}

/* Whether this thread makes a kernel: it was called by an event sink or an allocator. */
static bool is_maker(rt_cache *cache)
{
    const pthread_t self = pthread_self();
    bool found = false;

    lock_making(cache);
    for (const cache_entry *e = cache->making; e != NULL && !found; e = e->older)
        found = is_ours(cache, e) && pthread_equal(e->maker, self) != 0;
    opjit_rt_unlock(&cache->making_lock);
    return found;
}

/* --- getting ------------------------------------------------------------------------------------------------------ */

static bool same_bytes(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0;
}

static cache_entry *find(const cache_shard *s, const rt_key *key)
{
    cache_entry *e = s->buckets[key->hash & (s->bucket_count - 1)];

    while (e != NULL && (e->hash != key->hash || e->subject_size != key->subject_size ||
                         e->options_size != key->options_size || !same_bytes(e->key, key->subject, key->subject_size) ||
                         !same_bytes(e->key + key->subject_size, key->options, key->options_size)))
        e = e->chain;
    return e;
}

static opjit_kernel *take(cache_entry *e)
{
    opjit_kernel_retain(e->kernel);
    return e->kernel;
}

/* Waits until e is made or has failed; the lock is held, except for the waiting.  NULL: it failed. */
static opjit_kernel *wait_for(cache_shard *s, cache_entry *e, cache_entry **victims)
{
    opjit_kernel *kernel;

    e->waiters++;
    cache_add_to(&s->waits, 1);
    while (e->state == CACHE_MAKING) {
        const uint32_t seen = atomic_load(&s->made);
        opjit_rt_unlock(&s->lock);
        opjit_rt_await(&s->made, seen);
        cache_lock(s);
    }
    e->waiters--;
    kernel = e->state == CACHE_READY ? take(e) : NULL;
    if (!e->linked && e->waiters == 0) {
        e->chain = *victims;
        *victims = e;
    }
    return kernel;
}

/* A kernel that was optimized has two versions. */
static void count_again(cache_shard *s, cache_entry *e)
{
    const uint64_t bytes = opjit_rt_kernel_bytes(e->kernel) + cache_entry_size(e);

    if (bytes != e->bytes)
        cache_add_to(&s->bytes, (long long)(bytes - e->bytes));
    e->bytes = bytes;
}

/* Takes a ready entry's kernel, as the newest of its list. */
static inline opjit_kernel *use(cache_shard *s, cache_entry *e)
{
    cache_list *const list = cache_list_of(s, e);

    if (list->newest != e) {
        count_again(s, e);
        cache_list_remove(list, e);
        cache_list_push(list, e);
    }
    return take(e);
}

/* What there is for the caller of a look-up. */
typedef enum find_result { FOUND, TO_MAKE, TO_MAKE_ALONE, OWN_MAKING, NO_MEMORY } find_result;

/* What becomes of an entry that is in the making, with its shard's lock held. */
static bool must_wait(rt_cache *cache, cache_shard *s, cache_entry *e, find_result *out)
{
    if (!is_ours(cache, e))
        opjit_rt_cache_unlink(s, e); /* and leaves it: its maker may be this thread, forked by an event sink */
    else if (pthread_equal(e->maker, pthread_self()))
        *out = OWN_MAKING;
    else if (is_maker(cache))
        *out = TO_MAKE_ALONE; /* that one may be waiting for what this thread makes */
    else
        return true;
    return false;
}

/* FOUND, at once or after waiting; TO_MAKE: the entry in *out_making; TO_MAKE_ALONE: there is none for the caller. */
static find_result find_or_begin(rt_cache *cache, cache_shard *s, const rt_key *key, opjit_kernel **out_kernel,
                                 cache_entry **out_making)
{
    find_result result = TO_MAKE;
    opjit_kernel *kernel = NULL;
    cache_entry *victims = NULL, *e;

    cache_lock(s);
    while (kernel == NULL && result == TO_MAKE && (e = find(s, key)) != NULL) {
        if (e->state == CACHE_READY)
            kernel = use(s, e);
        else if (must_wait(cache, s, e, &result))
            kernel = wait_for(s, e, &victims);
    }
    *out_kernel = kernel;
    cache_add_to(kernel != NULL ? &s->hits : &s->misses, 1);
    *out_making = kernel == NULL && result == TO_MAKE ? opjit_rt_cache_link(cache, s, key) : NULL;
    opjit_rt_unlock(&s->lock);
    if (victims != NULL)
        opjit_rt_cache_free(cache, victims, false);
    return kernel != NULL ? FOUND : result == TO_MAKE && *out_making == NULL ? NO_MEMORY : result;
}

/* Publishes what was made (NULL: nothing) and wakes the waiters. */
static void finish(rt_cache *cache, cache_shard *s, cache_entry *e, opjit_kernel *kernel)
{
    const uint64_t bytes = kernel == NULL ? 0 : opjit_rt_kernel_bytes(kernel) + cache_entry_size(e);
    cache_entry *victims = NULL;
    bool fits;

    if (!is_ours(cache, e)) /* forked while it was made: the entry is the parent's, which this process has given up */
        return;
    end_making(cache, e);
    cache_lock(s);
    fits = kernel != NULL && bytes <= cache->capacity;
    e->state = kernel == NULL ? CACHE_FAILED : CACHE_READY;
    if (kernel != NULL) {
        opjit_kernel_retain(kernel);
        e->kernel = kernel;
        e->bytes = bytes;
        cache_add_to(&s->makes, 1);
    }
    if (fits) {
        cache_list_push(&s->used, e);
        cache_add_to(&s->ready, 1);
        cache_add_to(&s->bytes, (long long)bytes);
    } else {
        opjit_rt_cache_unlink(s, e);
        if (e->waiters == 0)
            victims = e;
    }
    opjit_rt_unlock(&s->lock);
    opjit_rt_wake_all(&s->made);
    opjit_rt_cache_free(cache, victims, false);
    if (fits)
        opjit_rt_cache_evict(cache, (size_t)(s - cache->shards), e);
}

opjit_status opjit_rt_cache_get(rt_cache *cache, const rt_key *key, rt_cache_make make, void *user,
                                opjit_kernel **out_kernel, bool *out_hit, opjit_error *error)
{
    cache_shard *s = shard_of(cache, key->hash);
    cache_entry *making;
    opjit_status status;

    const find_result found = find_or_begin(cache, s, key, out_kernel, &making);
    *out_hit = found == FOUND;
    if (found == FOUND)
        return OPJIT_OK;
    if (found == NO_MEMORY)
        return opjit_rt_no_memory(error);
    if (found == OWN_MAKING)
        return opjit_rt_refuse(
            error, OPJIT_INVALID_ARGUMENT,
            "{!argument}{!context}this thread is compiling that kernel already: an event sink can't ask for the kernel "
            "that it is told of");
    if (making != NULL)
        begin_making(cache, making);
    status = make(user, out_kernel, error);
    if (status != OPJIT_OK)
        *out_kernel = NULL;
    if (making != NULL)
        finish(cache, s, making, *out_kernel);
    return status;
}

opjit_kernel *opjit_rt_cache_find(rt_cache *cache, const rt_key *key)
{
    cache_shard *s = shard_of(cache, key->hash);
    opjit_kernel *kernel = NULL;
    cache_entry *e;

    cache_lock(s);
    e = find(s, key);
    if (e != NULL && e->state == CACHE_READY) {
        kernel = use(s, e);
        cache_add_to(&s->hits, 1);
    }
    opjit_rt_unlock(&s->lock);
    return kernel;
}

/* --- life, statistics --------------------------------------------------------------------------------------------- */

opjit_status opjit_rt_cache_create(rt_core *core, uint64_t capacity, rt_cache **out, opjit_error *error)
{
    rt_cache *cache = opjit_rt_allocate(&core->allocator, sizeof *cache, alignof(rt_cache));

    *out = NULL;
    if (cache == NULL)
        return opjit_rt_no_memory(error);
    memset(cache, 0, sizeof *cache);
    cache->core = opjit_rt_core_retain(core);
    cache->capacity = capacity;
    opjit_rt_lock_init(&cache->evicting, &core->process);
    opjit_rt_lock_init(&cache->making_lock, &core->process);
    for (size_t i = 0; i < CACHE_SHARDS; i++)
        if (opjit_rt_cache_shard_init(cache, &cache->shards[i], error) != OPJIT_OK) {
            opjit_rt_cache_destroy(cache);
            return OPJIT_OUT_OF_MEMORY;
        }
    *out = cache;
    return OPJIT_OK;
}

void opjit_rt_cache_destroy(rt_cache *cache)
{
    rt_core *core;

    if (cache == NULL)
        return;
    core = cache->core;
    for (size_t i = 0; i < CACHE_SHARDS; i++)
        opjit_rt_cache_shard_free(cache, &cache->shards[i]);
    opjit_rt_release(&core->allocator, cache, sizeof *cache);
    opjit_rt_core_release(core);
}

void opjit_rt_cache_count(rt_cache *cache, rt_cache_count what)
{
    atomic_fetch_add_explicit(&cache->counts[what], 1, memory_order_relaxed);
}

void opjit_rt_cache_stats(const rt_cache *cache, opjit_cache_stats *out)
{
    uint64_t makes = 0;

    *out = (opjit_cache_stats)OPJIT_CACHE_STATS_INIT;
    for (size_t i = 0; i < CACHE_SHARDS; i++) {
        const cache_shard *s = &cache->shards[i];
        out->entries += (uint32_t)atomic_load(&s->ready);
        out->hits += atomic_load(&s->hits);
        out->misses += atomic_load(&s->misses);
        out->evictions += atomic_load(&s->evictions);
        out->waits += atomic_load(&s->waits);
        makes += atomic_load(&s->makes);
    }
    out->bytes = opjit_rt_cache_bytes(cache);
    out->capacity = cache->capacity;
    out->disk_hits = atomic_load(&cache->counts[RT_CACHE_DISK_HIT]);
    out->disk_writes = atomic_load(&cache->counts[RT_CACHE_DISK_WRITE]);
    out->disk_rejects = atomic_load(&cache->counts[RT_CACHE_DISK_REJECT]);
    out->compiles = makes > out->disk_hits ? makes - out->disk_hits : 0;
    out->disk_hits += atomic_load(&cache->counts[RT_CACHE_DISK_HIT_APART]);
}

static const rt_struct stats_sizes = { "opjit_cache_stats", { RT_SIZE_TO(opjit_cache_stats, disk_rejects),
                                                                   RT_SIZE_TO(opjit_cache_stats, tier_failures) } };
RT_STRUCT_ENDS_WITH(opjit_cache_stats, tier_failures);

static void put_tiers(const rt_tier_counts *counts, opjit_cache_stats *out)
{
    for (uint32_t i = 0; i < RT_TIER_COUNTERS; i++)
        out->tier_calls += atomic_load(&counts->calls[i].count);
    out->tier_kernels = atomic_load(&counts->made);
    out->tier_evictions = atomic_load(&counts->evictions);
    out->tier_failures = atomic_load(&counts->failures);
}

opjit_status opjit_cache_get_stats(const opjit_context *context, opjit_cache_stats *out_stats, opjit_error *error)
{
    opjit_cache_stats stats;

    opjit_rt_error_clear(error);
    if (context == NULL || out_stats == NULL)
        return opjit_rt_refuse_null(error, context == NULL ? "context" : "out_stats");
    opjit_rt_cache_stats(context->cache, &stats);
    put_tiers(&context->core->tiers, &stats);
    return opjit_rt_struct_write(&stats_sizes, out_stats, &stats, error);
}

opjit_status opjit_cache_clear(opjit_context *context, opjit_error *error)
{
    opjit_rt_error_clear(error);
    if (context == NULL)
        return opjit_rt_refuse_null(error, "context");
    opjit_rt_cache_drop(context->cache, NULL, false);
    opjit_rt_workspace_drop(context->core);
    return OPJIT_OK;
}
