/* SPDX-License-Identifier: Apache-2.0 */
/* cache.c - the memory cache.  A key is either missing, being made by one thread, or ready.
 * Bytes are bounded over all shards by one atomic sum: a shard that grows evicts its own least recently used kernels
 * first, then those of the next shards.  So a kernel may be as large as the whole cache; one that is larger is
 * handed out and not kept.  Kernels are released, and events sent, only after the locks are.
 *
 * A thread that makes a kernel runs code of the host's, which may ask for others: it never waits for a thread that may be
 * waiting for it.  In a child of fork, what threads of the parent were making is made anew. */
#include "runtime/cache/cache.h"

#include <pthread.h>
#include <stdalign.h>
#include <string.h>

#include "runtime/call/kernel.h"

enum { SHARDS = 16, FIRST_BUCKETS = 64 };

typedef enum entry_state { ENTRY_MAKING, ENTRY_READY, ENTRY_FAILED } entry_state;

typedef struct entry {
    alignas(64) struct entry *chain; /* next in the bucket; in a list of victims: next victim */
    struct entry *newer, *older; /* list by use, of ready entries in the table; of those in the making: the cache's */
    opjit_kernel *kernel;
    uint64_t hash, bytes;
    entry_state state;
    bool linked; /* found by look-ups; an entry that is not belongs to those who wait for it */
    uint32_t waiters;
    uint32_t process; /* that it is made in */
    pthread_t maker;
    size_t subject_size, options_size;
    unsigned char key[];
} entry;

typedef struct shard {
    alignas(64) rt_lock lock; /* everything below; the counters may also be read without it */
    atomic_uint made;         /* counts; those who wait for an entry wait on it */
    entry **buckets;
    atomic_size_t bucket_count; /* never stored before the buckets */
    size_t entries;
    entry *newest, *oldest;
    atomic_ullong bytes, ready, hits, misses, makes, evictions, waits; /* written with the lock held: no locked instruction */
} shard;

struct rt_cache {
    shard shards[SHARDS];
    rt_core *core;
    uint64_t capacity;
    rt_lock making_lock; /* taken last */
    entry *making;       /* all that threads of this process make */
    atomic_ullong counts[RT_CACHE_COUNTS];
};

static void add_to(atomic_ullong *counter, long long change)
{
    const unsigned long long value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + (unsigned long long)change, memory_order_relaxed);
}

/* A shard that was locked in the parent when this process was forked may be half changed: this process forgets it. */
static void lock_shard(shard *s)
{
    if (!opjit_rt_lock(&s->lock))
        return;
    memset(s->buckets, 0, s->bucket_count * sizeof *s->buckets);
    s->entries = 0;
    s->newest = s->oldest = NULL;
    atomic_store(&s->bytes, 0);
    atomic_store(&s->ready, 0);
}

/* Bytes of all kernels that are kept. */
static uint64_t bytes_of(const rt_cache *cache)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SHARDS; i++)
        sum += atomic_load_explicit(&cache->shards[i].bytes, memory_order_relaxed);
    return sum;
}

static shard *shard_of(rt_cache *cache, uint64_t hash)
{
    return &cache->shards[hash >> 60];
}

static size_t entry_size(const entry *e)
{
    return sizeof *e + e->subject_size + e->options_size;
}

static void entry_free(rt_cache *cache, entry *e)
{
    opjit_kernel_release(e->kernel);
    opjit_rt_release(&cache->core->allocator, e, entry_size(e));
}

/* --- who makes what ------------------------------------------------------------------------------------------------ */

/* Whether a thread of this process makes e, not one of its parent. */
static bool is_ours(const rt_cache *cache, const entry *e)
{
    return e->process == rt_process_number(&cache->core->process);
}

static void lock_making(rt_cache *cache)
{
    if (opjit_rt_lock(&cache->making_lock))
        cache->making = NULL; /* the parent's threads' */
}

static void begin_making(rt_cache *cache, entry *e)
{
    lock_making(cache);
    e->older = cache->making;
    cache->making = e;
    opjit_rt_unlock(&cache->making_lock);
}

static void end_making(rt_cache *cache, const entry *e)
{
    lock_making(cache);
    for (entry **at = &cache->making; *at != NULL; at = &(*at)->older)
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
    for (const entry *e = cache->making; e != NULL && !found; e = e->older)
        found = is_ours(cache, e) && pthread_equal(e->maker, self) != 0;
    opjit_rt_unlock(&cache->making_lock);
    return found;
}

/* --- table and list of one shard, with its lock held ---------------------------------------------------------------- */

static bool same_bytes(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0;
}

static entry *find(const shard *s, const rt_key *key)
{
    entry *e = s->buckets[key->hash & (s->bucket_count - 1)];

    while (e != NULL && (e->hash != key->hash || e->subject_size != key->subject_size ||
                         e->options_size != key->options_size || !same_bytes(e->key, key->subject, key->subject_size) ||
                         !same_bytes(e->key + key->subject_size, key->options, key->options_size)))
        e = e->chain;
    return e;
}

/* Doubles the table; without memory for that chains only get longer. */
static void grow(shard *s, const opjit_allocator *a)
{
    const size_t count = s->bucket_count * 2;
    entry **buckets = opjit_rt_allocate(a, count * sizeof *buckets, alignof(entry *));

    if (buckets == NULL)
        return;
    memset(buckets, 0, count * sizeof *buckets);
    for (size_t i = 0; i < s->bucket_count; i++) {
        for (entry *e = s->buckets[i], *next; e != NULL; e = next) {
            next = e->chain;
            e->chain = buckets[e->hash & (count - 1)];
            buckets[e->hash & (count - 1)] = e;
        }
    }
    /* In this order, for whoever is forked meanwhile (lock_shard): buckets are there, and at least that many. */
    entry **const before = s->buckets;
    s->buckets = buckets;
    s->bucket_count = count;
    opjit_rt_release(a, before, count / 2 * sizeof *before);
}

static entry *link_making(rt_cache *cache, shard *s, const rt_key *key)
{
    const opjit_allocator *a = &cache->core->allocator;
    uint64_t size;
    entry *e;

    if (!checked_add(key->subject_size, key->options_size, &size) || !checked_add(size, sizeof *e, &size))
        return NULL;
    e = opjit_rt_allocate(a, (size_t)size, alignof(entry));
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
    e->state = ENTRY_MAKING;
    e->linked = true;
    e->process = rt_process_number(&cache->core->process);
    e->maker = pthread_self();
    if (s->entries >= s->bucket_count)
        grow(s, a);
    e->chain = s->buckets[e->hash & (s->bucket_count - 1)];
    s->buckets[e->hash & (s->bucket_count - 1)] = e;
    s->entries++;
    return e;
}

static void unlink_entry(shard *s, entry *e)
{
    entry **at = &s->buckets[e->hash & (s->bucket_count - 1)];

    while (*at != e)
        at = &(*at)->chain;
    *at = e->chain;
    e->chain = NULL;
    e->linked = false;
    s->entries--;
}

static void list_push(shard *s, entry *e)
{
    e->newer = NULL;
    e->older = s->newest;
    if (s->newest != NULL)
        s->newest->newer = e;
    else
        s->oldest = e;
    s->newest = e;
}

static void list_remove(shard *s, entry *e)
{
    if (e->newer != NULL)
        e->newer->older = e->older;
    else
        s->newest = e->older;
    if (e->older != NULL)
        e->older->newer = e->newer;
    else
        s->oldest = e->newer;
}

/* Takes a ready entry out of the shard.  Who still waits for it frees it; else it goes to *victims. */
static void remove_ready(shard *s, entry *e, entry **victims)
{
    list_remove(s, e);
    unlink_entry(s, e);
    add_to(&s->ready, -1);
    add_to(&s->bytes, -(long long)e->bytes);
    if (e->waiters == 0) {
        e->chain = *victims;
        *victims = e;
    }
}

/* --- eviction ----------------------------------------------------------------------------------------------------- */

static void free_victims(rt_cache *cache, entry *victims, bool tell)
{
    while (victims != NULL) {
        entry *next = victims->chain;
        if (tell && rt_wants_events(cache->core)) {
            opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
            if (opjit_kernel_get_info(victims->kernel, &info, NULL) == OPJIT_OK)
                opjit_rt_event(cache->core, OPJIT_EVENT_EVICT, "evict,%s,bytes=%llu", info.name,
                               (unsigned long long)victims->bytes);
        }
        entry_free(cache, victims);
        victims = next;
    }
}

/* Least recently used entry but for keep. */
static entry *oldest_but(const shard *s, const entry *keep)
{
    return s->oldest != NULL && s->oldest == keep ? s->oldest->newer : s->oldest;
}

/* Brings the sum below capacity, beginning with shard `first`.  Never drops keep, just inserted: alone it fits. */
static void evict(rt_cache *cache, size_t first, const entry *keep)
{
    for (size_t i = 0; i < SHARDS && bytes_of(cache) > cache->capacity; i++) {
        shard *s = &cache->shards[(first + i) % SHARDS];
        entry *victims = NULL, *e;
        lock_shard(s);
        while ((e = oldest_but(s, keep)) != NULL && bytes_of(cache) > cache->capacity) {
            add_to(&s->evictions, 1);
            remove_ready(s, e, &victims);
        }
        opjit_rt_unlock(&s->lock);
        free_victims(cache, victims, true);
    }
}

/* --- getting ------------------------------------------------------------------------------------------------------ */

static opjit_kernel *take(entry *e)
{
    opjit_kernel_retain(e->kernel);
    return e->kernel;
}

/* Waits until e is made or has failed; the lock is held, except for the waiting.  NULL: it failed. */
static opjit_kernel *wait_for(shard *s, entry *e, entry **victims)
{
    opjit_kernel *kernel;

    e->waiters++;
    add_to(&s->waits, 1);
    while (e->state == ENTRY_MAKING) {
        const uint32_t seen = atomic_load(&s->made);
        opjit_rt_unlock(&s->lock);
        opjit_rt_await(&s->made, seen);
        lock_shard(s);
    }
    e->waiters--;
    kernel = e->state == ENTRY_READY ? take(e) : NULL;
    if (!e->linked && e->waiters == 0) {
        e->chain = *victims;
        *victims = e;
    }
    return kernel;
}

/* A kernel that was optimized has two versions. */
static void count_again(shard *s, entry *e)
{
    const uint64_t bytes = opjit_rt_kernel_bytes(e->kernel) + entry_size(e);

    if (bytes != e->bytes)
        add_to(&s->bytes, (long long)(bytes - e->bytes));
    e->bytes = bytes;
}

/* What there is for the caller of a look-up. */
typedef enum find_result { FOUND, TO_MAKE, TO_MAKE_ALONE, OWN_MAKING, NO_MEMORY } find_result;

/* What becomes of an entry that is in the making, with its shard's lock held. */
static bool must_wait(rt_cache *cache, shard *s, entry *e, find_result *out)
{
    if (!is_ours(cache, e))
        unlink_entry(s, e); /* and leaves it: its maker may be this thread, forked by an event sink */
    else if (pthread_equal(e->maker, pthread_self()))
        *out = OWN_MAKING;
    else if (is_maker(cache))
        *out = TO_MAKE_ALONE; /* that one may be waiting for what this thread makes */
    else
        return true;
    return false;
}

/* FOUND, at once or after waiting; TO_MAKE: the entry in *out_making; TO_MAKE_ALONE: there is none for the caller. */
static find_result find_or_begin(rt_cache *cache, shard *s, const rt_key *key, opjit_kernel **out_kernel,
                                 entry **out_making)
{
    find_result result = TO_MAKE;
    opjit_kernel *kernel = NULL;
    entry *victims = NULL, *e;

    lock_shard(s);
    while (kernel == NULL && result == TO_MAKE && (e = find(s, key)) != NULL) {
        if (e->state == ENTRY_READY) {
            kernel = take(e);
            if (s->newest != e) {
                count_again(s, e);
                list_remove(s, e);
                list_push(s, e);
            }
        } else if (must_wait(cache, s, e, &result)) {
            kernel = wait_for(s, e, &victims);
        }
    }
    *out_kernel = kernel;
    add_to(kernel != NULL ? &s->hits : &s->misses, 1);
    *out_making = kernel == NULL && result == TO_MAKE ? link_making(cache, s, key) : NULL;
    opjit_rt_unlock(&s->lock);
    if (victims != NULL)
        free_victims(cache, victims, false);
    return kernel != NULL ? FOUND : result == TO_MAKE && *out_making == NULL ? NO_MEMORY : result;
}

/* Publishes what was made (NULL: nothing) and wakes the waiters. */
static void finish(rt_cache *cache, shard *s, entry *e, opjit_kernel *kernel)
{
    const uint64_t bytes = kernel == NULL ? 0 : opjit_rt_kernel_bytes(kernel) + entry_size(e);
    entry *victims = NULL;
    bool fits;

    if (!is_ours(cache, e)) /* forked while it was made: the entry is the parent's, which this process has given up */
        return;
    end_making(cache, e);
    lock_shard(s);
    fits = kernel != NULL && bytes <= cache->capacity;
    e->state = kernel == NULL ? ENTRY_FAILED : ENTRY_READY;
    if (kernel != NULL) {
        opjit_kernel_retain(kernel);
        e->kernel = kernel;
        e->bytes = bytes;
        add_to(&s->makes, 1);
    }
    if (fits) {
        list_push(s, e);
        add_to(&s->ready, 1);
        add_to(&s->bytes, (long long)bytes);
    } else {
        unlink_entry(s, e);
        if (e->waiters == 0)
            victims = e;
    }
    opjit_rt_unlock(&s->lock);
    opjit_rt_wake_all(&s->made);
    free_victims(cache, victims, false);
    if (fits)
        evict(cache, (size_t)(s - cache->shards), e);
}

opjit_status opjit_rt_cache_get(rt_cache *cache, const rt_key *key, rt_cache_make make, void *user,
                                opjit_kernel **out_kernel, bool *out_hit, opjit_error *error)
{
    shard *s = shard_of(cache, key->hash);
    entry *making;
    opjit_status status;

    const find_result found = find_or_begin(cache, s, key, out_kernel, &making);
    *out_hit = found == FOUND;
    if (found == FOUND)
        return OPJIT_OK;
    if (found == NO_MEMORY)
        return opjit_rt_no_memory(error);
    if (found == OWN_MAKING)
        return opjit_rt_error_set(error, OPJIT_INVALID_ARGUMENT,
                                  "this thread is compiling that kernel already: an event sink can't ask for the kernel "
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

/* --- life, clearing, statistics ----------------------------------------------------------------------------------- */

opjit_status opjit_rt_cache_create(rt_core *core, uint64_t capacity, rt_cache **out, opjit_error *error)
{
    rt_cache *cache = opjit_rt_allocate(&core->allocator, sizeof *cache, alignof(rt_cache));

    *out = NULL;
    if (cache == NULL)
        return opjit_rt_no_memory(error);
    memset(cache, 0, sizeof *cache);
    cache->core = opjit_rt_core_retain(core);
    cache->capacity = capacity;
    opjit_rt_lock_init(&cache->making_lock, &core->process);
    for (size_t i = 0; i < SHARDS; i++) {
        shard *s = &cache->shards[i];
        const size_t size = FIRST_BUCKETS * sizeof *s->buckets;
        opjit_rt_lock_init(&s->lock, &core->process);
        s->bucket_count = FIRST_BUCKETS; /* marks the shard as initialised */
        s->buckets = opjit_rt_allocate(&core->allocator, size, alignof(entry *));
        if (s->buckets == NULL)
            goto fail;
        memset(s->buckets, 0, size);
    }
    *out = cache;
    return OPJIT_OK;
fail:
    opjit_rt_cache_destroy(cache);
    return opjit_rt_no_memory(error);
}

void opjit_rt_cache_destroy(rt_cache *cache)
{
    rt_core *core;

    if (cache == NULL)
        return;
    core = cache->core;
    for (size_t i = 0; i < SHARDS; i++) {
        shard *s = &cache->shards[i];
        for (entry *e = s->oldest, *newer; e != NULL; e = newer) {
            newer = e->newer;
            entry_free(cache, e);
        }
        if (s->bucket_count == 0)
            continue;
        opjit_rt_release(&core->allocator, s->buckets, s->bucket_count * sizeof *s->buckets);
    }
    opjit_rt_release(&core->allocator, cache, sizeof *cache);
    opjit_rt_core_release(core);
}

void opjit_rt_cache_clear(rt_cache *cache)
{
    for (size_t i = 0; i < SHARDS; i++) {
        shard *s = &cache->shards[i];
        entry *victims = NULL;
        lock_shard(s);
        while (s->oldest != NULL)
            remove_ready(s, s->oldest, &victims);
        opjit_rt_unlock(&s->lock);
        free_victims(cache, victims, false);
    }
}

void opjit_rt_cache_count(rt_cache *cache, rt_cache_count what)
{
    atomic_fetch_add_explicit(&cache->counts[what], 1, memory_order_relaxed);
}

void opjit_rt_cache_stats(const rt_cache *cache, opjit_cache_stats *out)
{
    uint64_t makes = 0;

    *out = (opjit_cache_stats)OPJIT_CACHE_STATS_INIT;
    for (size_t i = 0; i < SHARDS; i++) {
        const shard *s = &cache->shards[i];
        out->entries += (uint32_t)atomic_load(&s->ready);
        out->hits += atomic_load(&s->hits);
        out->misses += atomic_load(&s->misses);
        out->evictions += atomic_load(&s->evictions);
        out->waits += atomic_load(&s->waits);
        makes += atomic_load(&s->makes);
    }
    out->bytes = bytes_of(cache);
    out->capacity = cache->capacity;
    out->disk_hits = atomic_load(&cache->counts[RT_CACHE_DISK_HIT]);
    out->disk_writes = atomic_load(&cache->counts[RT_CACHE_DISK_WRITE]);
    out->disk_rejects = atomic_load(&cache->counts[RT_CACHE_DISK_REJECT]);
    out->compiles = makes > out->disk_hits ? makes - out->disk_hits : 0;
}
