/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_cache.c - the memory cache: one make per key, bounds, least recently used, failures, clearing, threads. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cache/table.h"
#include "tests/unit/runtime/rt_sample.h"

enum { THREADS = 8 };

static counting memory;
static opjit_context *context;

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_error error;
    options.allocator = &a;
    options.target = "cpu:x86-64-v1";
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
}

static void teardown(void)
{
    opjit_context_destroy(context);
    ck_assert_int_eq(memory.live, 0);
    ck_assert_int_eq(memory.bytes, 0);
}

static opjit_status no_interpreter(void *user, uint32_t step, void *const *buffers, const uint64_t *params,
                                   void *shared, void *scratch, uint64_t begin, uint64_t end, opjit_error *error)
{
    (void)user, (void)step, (void)buffers, (void)params, (void)shared, (void)scratch, (void)begin, (void)end;
    return opjit_rt_error_set(error, OPJIT_INTERNAL, "not to be run");
}

/* What a make does, and how often it ran. */
typedef struct maker {
    atomic_int calls;
    atomic_int failures_left; /* the next makes fail */
    bool slow;
} maker;

static opjit_status make(void *user, opjit_kernel **out, opjit_error *error)
{
    static const rt_kernel_hooks hooks = { .interpret = no_interpreter };
    maker *m = user;
    sample s;

    atomic_fetch_add(&m->calls, 1);
    if (m->slow)
        for (volatile int i = 0; i < 3000000; i++)
            continue;
    if (atomic_fetch_sub(&m->failures_left, 1) > 0)
        return opjit_rt_error_set(error, OPJIT_CODEGEN, "made to fail");
    sample_init(&s);
    s.code_size = 0;
    return sample_kernel(&s, context->core, NULL, &hooks, out, error);
}

static rt_key key_of(const uint64_t *number)
{
    const rt_hash hash = opjit_rt_hash(number, sizeof *number);
    return (rt_key){ number, sizeof *number, "opt", 3, hash.lo };
}

static opjit_kernel *get(rt_cache *cache, uint64_t number, maker *m, bool *hit)
{
    const rt_key key = key_of(&number);
    opjit_kernel *kernel;
    opjit_error error;
    ck_assert_msg(opjit_rt_cache_get(cache, &key, make, m, &kernel, hit, &error) == OPJIT_OK, "%s", error.message);
    return kernel;
}

START_TEST(hit_and_miss)
{
    maker m = { 0 };
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    bool hit;
    opjit_kernel *a = get(context->cache, 1, &m, &hit), *b, *c;
    ck_assert(!hit);
    b = get(context->cache, 1, &m, &hit);
    ck_assert(hit);
    ck_assert_ptr_eq(a, b);
    c = get(context->cache, 2, &m, &hit);
    ck_assert(!hit);
    ck_assert_ptr_ne(a, c);
    ck_assert_int_eq(m.calls, 2);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(stats.entries == 2 && stats.hits == 1 && stats.misses == 2 && stats.compiles == 2 &&
              stats.evictions == 0);
    ck_assert_uint_ge(stats.bytes, 2 * opjit_rt_kernel_bytes(a));
    ck_assert_uint_eq(stats.capacity, UINT64_C(64) << 20);
    opjit_kernel_release(a);
    opjit_kernel_release(b);
    opjit_kernel_release(c);
}
END_TEST

/* Equal hashes, and bytes that are equal only if the two halves of the key are concatenated. */
START_TEST(keys_are_compared_whole)
{
    static const rt_key keys[] = { { "ab", 2, "c", 1, 42 },
                                   { "a", 1, "bc", 2, 42 },
                                   { "abc", 3, NULL, 0, 42 },
                                   { NULL, 0, "abc", 3, 42 },
                                   { "ab", 2, "d", 1, 42 } };
    maker m = { 0 };
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            opjit_kernel *kernel;
            bool hit;
            ck_assert_int_eq(opjit_rt_cache_get(context->cache, &keys[i], make, &m, &kernel, &hit, NULL), OPJIT_OK);
            ck_assert(hit == (round == 1));
            opjit_kernel_release(kernel);
        }
    ck_assert_int_eq(m.calls, 5);
}
END_TEST

START_TEST(failed_make)
{
    maker m = { .failures_left = 1 };
    const uint64_t number = 7;
    const rt_key key = key_of(&number);
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_kernel *kernel = (opjit_kernel *)&m;
    opjit_error error;
    bool hit = true;
    ck_assert_int_eq(opjit_rt_cache_get(context->cache, &key, make, &m, &kernel, &hit, &error), OPJIT_CODEGEN);
    ck_assert_str_eq(error.message, "made to fail");
    ck_assert_ptr_null(kernel);
    ck_assert(!hit);
    kernel = get(context->cache, number, &m, &hit);
    ck_assert(!hit);
    ck_assert_int_eq(m.calls, 2);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(stats.entries == 1 && stats.misses == 2 && stats.compiles == 1);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(eviction_is_bounded_and_in_order)
{
    maker m = { 0 };
    rt_cache *cache;
    opjit_cache_stats stats;
    opjit_kernel *kernel, *held;
    uint64_t one;
    bool hit;

    ck_assert_int_eq(opjit_rt_cache_create(context->core, UINT64_C(1) << 40, &cache, NULL), OPJIT_OK);
    opjit_kernel_release(get(cache, 0, &m, &hit));
    opjit_rt_cache_stats(cache, &stats);
    one = stats.bytes;
    opjit_rt_cache_destroy(cache);

    ck_assert_int_eq(opjit_rt_cache_create(context->core, 10 * one, &cache, NULL), OPJIT_OK);
    held = get(cache, 0, &m, &hit);
    for (uint64_t i = 1; i < 200; i++) {
        opjit_kernel_release(get(cache, i, &m, &hit));
        ck_assert(!hit);
        opjit_rt_cache_stats(cache, &stats);
        ck_assert_uint_le(stats.bytes, 10 * one);
        ck_assert_uint_eq(stats.bytes, stats.entries * one);
        ck_assert_uint_eq(stats.entries, i < 9 ? i + 1 : 10);
        kernel = get(cache, i, &m, &hit); /* the one just made is never the one that goes */
        ck_assert(hit);
        opjit_kernel_release(kernel);
    }
    ck_assert_uint_eq(stats.evictions, 190);
    ck_assert_uint_gt(opjit_rt_kernel_bytes(held), 0); /* evicted or not, the holder's reference counts */
    opjit_kernel_release(held);
    opjit_rt_cache_destroy(cache);
}
END_TEST

/* Within one shard the least recently used one goes first. */
START_TEST(least_recently_used)
{
    static const rt_key keys[] = {
        { "a", 1, NULL, 0, 1 }, { "b", 1, NULL, 0, 2 }, { "c", 1, NULL, 0, 3 }, { "d", 1, NULL, 0, 4 }
    };
    maker m = { 0 };
    rt_cache *cache;
    opjit_cache_stats stats;
    opjit_kernel *kernel;
    bool hit;

    ck_assert_int_eq(opjit_rt_cache_create(context->core, UINT64_C(1) << 40, &cache, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_rt_cache_get(cache, &keys[0], make, &m, &kernel, &hit, NULL), OPJIT_OK);
    opjit_kernel_release(kernel);
    opjit_rt_cache_stats(cache, &stats);
    opjit_rt_cache_destroy(cache);
    ck_assert_int_eq(opjit_rt_cache_create(context->core, 3 * stats.bytes, &cache, NULL), OPJIT_OK);
    static const struct {
        int key;
        bool hit;
    } uses[] = { { 0, false }, { 1, false }, { 2, false }, { 0, true },  { 3, false }, /* b goes */
                 { 0, true },  { 2, true },  { 3, true },  { 1, false }, { 0, false } };
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        ck_assert_int_eq(opjit_rt_cache_get(cache, &keys[uses[i].key], make, &m, &kernel, &hit, NULL), OPJIT_OK);
        ck_assert_msg(hit == uses[i].hit, "use %zu", i);
        opjit_kernel_release(kernel);
    }
    opjit_rt_cache_destroy(cache);
}
END_TEST

START_TEST(larger_than_the_cache)
{
    maker m = { 0 };
    rt_cache *cache;
    opjit_cache_stats stats;
    bool hit;
    ck_assert_int_eq(opjit_rt_cache_create(context->core, 100, &cache, NULL), OPJIT_OK);
    for (int i = 0; i < 3; i++) {
        opjit_kernel_release(get(cache, 1, &m, &hit));
        ck_assert(!hit);
    }
    opjit_rt_cache_stats(cache, &stats);
    ck_assert(stats.entries == 0 && stats.bytes == 0 && stats.evictions == 0);
    ck_assert_int_eq(m.calls, 3);
    opjit_rt_cache_destroy(cache);
}
END_TEST

START_TEST(clearing)
{
    maker m = { 0 };
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    bool hit;
    opjit_kernel *held = get(context->cache, 5, &m, &hit);
    for (uint64_t i = 0; i < 1500; i++) /* makes the tables grow, too */
        opjit_kernel_release(get(context->cache, i, &m, &hit));
    ck_assert_int_eq(m.calls, 1500);
    ck_assert_int_eq(opjit_cache_clear(context, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(stats.entries == 0 && stats.bytes == 0 && stats.evictions == 0);
    opjit_kernel_release(get(context->cache, 5, &m, &hit));
    ck_assert(!hit);
    ck_assert_uint_gt(opjit_rt_kernel_bytes(held), 0);
    opjit_kernel_release(held);
}
END_TEST

START_TEST(disk_counts)
{
    maker m = { 0 };
    opjit_cache_stats stats;
    bool hit;
    opjit_kernel_release(get(context->cache, 5, &m, &hit));
    opjit_rt_cache_count(context->cache, RT_CACHE_DISK_HIT);
    opjit_rt_cache_count(context->cache, RT_CACHE_DISK_REJECT);
    opjit_rt_cache_stats(context->cache, &stats);
    ck_assert(stats.disk_hits == 1 && stats.disk_rejects == 1 && stats.disk_writes == 0 && stats.compiles == 0);
}
END_TEST

START_TEST(no_memory)
{
    const uint64_t number = 3;
    const rt_key key = key_of(&number);
    bool done = false;
    for (int n = 1; !done; n++) {
        maker m = { 0 };
        opjit_kernel *kernel = NULL;
        opjit_status status;
        bool hit;
        memory.fail_at = memory.calls + n;
        status = opjit_rt_cache_get(context->cache, &key, make, &m, &kernel, &hit, NULL);
        done = status == OPJIT_OK;
        ck_assert(done || (status == OPJIT_OUT_OF_MEMORY && kernel == NULL));
        memory.fail_at = 0;
        opjit_kernel_release(kernel);
        ck_assert_int_lt(n, 20);
    }
}
END_TEST

/* --- threads ------------------------------------------------------------------------------------------------------ */

typedef struct team {
    rt_cache *cache;
    maker maker;
    atomic_int ready, hits, failures;
    uint64_t keys; /* numbers below this are asked for */
    int rounds;
    opjit_kernel *first[THREADS];
} team;

typedef struct member {
    team *team;
    int index;
} member;

static void *work(void *arg)
{
    const member *me = arg;
    team *t = me->team;
    uint64_t seed = (uint64_t)me->index;
    atomic_fetch_add(&t->ready, 1);
    while (atomic_load(&t->ready) < THREADS)
        continue;
    for (int i = 0; i < t->rounds; i++) {
        const uint64_t number =
            (seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u, seed >> 33) % t->keys;
        const rt_key key = key_of(&number);
        opjit_kernel *kernel;
        bool hit;
        if (opjit_rt_cache_get(t->cache, &key, make, &t->maker, &kernel, &hit, NULL) != OPJIT_OK) {
            atomic_fetch_add(&t->failures, 1);
            continue;
        }
        if (hit)
            atomic_fetch_add(&t->hits, 1);
        if (i == 0)
            t->first[me->index] = kernel;
        else
            opjit_kernel_release(kernel);
        if (t->keys > 1 && i % 97 == 0 && me->index == 0)
            opjit_rt_cache_drop(t->cache, NULL, false);
    }
    return NULL;
}

static void run_team(team *t)
{
    pthread_t threads[THREADS];
    member members[THREADS];
    for (int i = 0; i < THREADS; i++) {
        members[i] = (member){ t, i };
        ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &members[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(threads_one_key)
{
    team t = { .cache = context->cache, .maker = { .slow = true }, .keys = 1, .rounds = 200 };
    run_team(&t);
    ck_assert_int_eq(t.maker.calls, 1);
    ck_assert_int_eq(t.hits, THREADS * 200 - 1);
    for (int i = 0; i < THREADS; i++) {
        ck_assert_ptr_eq(t.first[i], t.first[0]);
        opjit_kernel_release(t.first[i]);
    }
}
END_TEST

/* Each failure is reported to exactly one caller; the others try again. */
START_TEST(threads_and_failures)
{
    team t = { .cache = context->cache, .maker = { .slow = true, .failures_left = 5 }, .keys = 1, .rounds = 1 };
    run_team(&t);
    ck_assert_int_eq(t.failures, 5);
    ck_assert_int_eq(t.maker.calls, 6);
    ck_assert_int_eq(t.hits, 2);
    for (int i = 0; i < THREADS; i++)
        opjit_kernel_release(t.first[i]);
}
END_TEST

/* A kernel that is not kept still serves those who wait for it. */
START_TEST(threads_and_no_room)
{
    team t = { .maker = { .slow = true }, .keys = 1, .rounds = 20 };
    opjit_cache_stats stats;
    ck_assert_int_eq(opjit_rt_cache_create(context->core, 64, &t.cache, NULL), OPJIT_OK);
    run_team(&t);
    opjit_rt_cache_stats(t.cache, &stats);
    ck_assert_uint_eq(stats.hits + stats.misses, THREADS * 20);
    ck_assert_uint_eq(stats.misses, (uint64_t)atomic_load(&t.maker.calls));
    ck_assert_uint_eq(stats.hits, stats.waits);
    ck_assert(stats.entries == 0 && stats.bytes == 0);
    for (int i = 0; i < THREADS; i++)
        opjit_kernel_release(t.first[i]);
    opjit_rt_cache_destroy(t.cache);
}
END_TEST

START_TEST(threads_many_keys)
{
    team t = { .keys = 64, .rounds = 2000 };
    opjit_cache_stats stats;
    ck_assert_int_eq(opjit_rt_cache_create(context->core, 30000, &t.cache, NULL), OPJIT_OK); /* about 20 of them */
    run_team(&t);
    opjit_rt_cache_stats(t.cache, &stats);
    ck_assert_int_eq(t.failures, 0);
    ck_assert_uint_eq(stats.hits + stats.misses, THREADS * 2000);
    ck_assert_uint_eq(stats.misses, (uint64_t)atomic_load(&t.maker.calls));
    ck_assert_uint_le(stats.bytes, stats.capacity);
    ck_assert_uint_gt(stats.evictions, 0);
    for (int i = 0; i < THREADS; i++)
        opjit_kernel_release(t.first[i]);
    opjit_rt_cache_destroy(t.cache);
}
END_TEST

/* --- makers that ask for more, and forks -------------------------------------------------------------------------- */

/* A make that requests another key while it runs, as an event sink may. */
typedef struct asker {
    uint64_t other;
    maker maker;
    struct asker *partner;
    atomic_bool began;
    opjit_status status; /* of what it asked for */
    opjit_error error;
} asker;

static opjit_status make_and_ask(void *user, opjit_kernel **out, opjit_error *error)
{
    asker *a = user;
    const rt_key key = key_of(&a->other);
    opjit_kernel *kernel;
    bool hit;

    atomic_store(&a->began, true);
    while (a->partner != NULL && !atomic_load(&a->partner->began))
        continue;
    a->status = opjit_rt_cache_get(context->cache, &key, make, &a->maker, &kernel, &hit, &a->error);
    opjit_kernel_release(kernel);
    return make(&a->maker, out, error);
}

START_TEST(makers_that_ask_for_their_own_key)
{
    asker a = { .other = 5 };
    const rt_key key = key_of(&a.other);
    opjit_kernel *kernel;
    opjit_error error;
    bool hit;
    ck_assert_int_eq(opjit_rt_cache_get(context->cache, &key, make_and_ask, &a, &kernel, &hit, &error), OPJIT_OK);
    opjit_kernel_release(kernel);
    ck_assert_int_eq(a.status, OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(a.error.message, "this thread is compiling that kernel already: an event sink can't ask for the "
                                      "kernel that it is told of");
    ck_assert_int_eq(a.maker.calls, 1);
    opjit_kernel_release(get(context->cache, 5, &a.maker, &hit));
    ck_assert(hit);
}
END_TEST

static void *ask(void *user)
{
    asker *a = user;
    const rt_key key = key_of(&a->partner->other);
    opjit_kernel *kernel;
    bool hit;
    if (opjit_rt_cache_get(context->cache, &key, make_and_ask, a, &kernel, &hit, &a->error) != OPJIT_OK)
        a->status = OPJIT_INTERNAL;
    opjit_kernel_release(kernel);
    return NULL;
}

/* Two makers that each request the other's key: neither waits, both are served. */
START_TEST(makers_that_ask_each_other)
{
    asker a = { .other = 1 }, b = { .other = 2, .partner = &a };
    pthread_t thread;
    a.partner = &b;
    ck_assert_int_eq(pthread_create(&thread, NULL, ask, &b), 0);
    ask(&a);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_int_eq(a.status, OPJIT_OK);
    ck_assert_int_eq(b.status, OPJIT_OK);
}
END_TEST

/* Forks; the child exits with what run returns.  An alarm ends a child that hangs. */
static pid_t begin_child(int (*run)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(run());
    }
    ck_assert_int_gt(child, 0);
    return child;
}

static void end_child(pid_t child)
{
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

/* A make that takes as long as the test wants. */
static struct held_make {
    maker maker;
    atomic_bool began, may_end, forks;
    pid_t child;
} held;

/* Returns 0 if all is well.  Without assertions, because Check's use a lock that does not survive a fork. */
static int use_the_cache(void)
{
    maker m = { 0 };
    for (uint64_t number = 0; number < 200; number++) {
        const rt_key key = key_of(&number);
        for (int turn = 0; turn < 2; turn++) {
            opjit_kernel *kernel;
            bool hit;
            if (opjit_rt_cache_get(context->cache, &key, make, &m, &kernel, &hit, NULL) != OPJIT_OK)
                return 1;
            opjit_kernel_release(kernel);
            if (turn == 1 && !hit)
                return 2;
        }
    }
    return 0;
}

static opjit_status hold_make(void *user, opjit_kernel **out, opjit_error *error)
{
    (void)user;
    if (atomic_load(&held.forks)) {
        held.child = fork();
        if (held.child == 0)
            alarm(20);
    }
    atomic_store(&held.began, true);
    while (!atomic_load(&held.may_end))
        continue;
    return make(&held.maker, out, error);
}

static void *get_held(void *user)
{
    const uint64_t number = 7;
    const rt_key key = key_of(&number);
    opjit_kernel *kernel;
    bool hit;
    (void)user;
    if (opjit_rt_cache_get(context->cache, &key, hold_make, NULL, &kernel, &hit, NULL) == OPJIT_OK)
        opjit_kernel_release(kernel);
    return NULL;
}

START_TEST(forked_while_a_key_is_made)
{
    pthread_t threads[2];
    memset(&held, 0, sizeof held);
    for (int i = 0; i < 2; i++) /* a maker and one who waits for it */
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_held, NULL), 0);
    while (!atomic_load(&held.began))
        continue;
    end_child(begin_child(use_the_cache));
    atomic_store(&held.may_end, true);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(held.maker.calls, 1);
}
END_TEST

/* The child continues what its only thread was doing: it gets its kernel, and can use the cache. */
START_TEST(forked_by_a_maker)
{
    memset(&held, 0, sizeof held);
    atomic_store(&held.forks, true);
    atomic_store(&held.may_end, true);
    get_held(NULL);
    if (held.child == 0)
        _exit(held.maker.calls == 1 ? use_the_cache() : 2);
    end_child(held.child);
    ck_assert_int_eq(use_the_cache(), 0);
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void *use_until_told(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        use_the_cache();
    return NULL;
}

START_TEST(forked_while_others_use_it)
{
    pthread_t threads[3];
    atomic_bool stop = false;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_until_told, &stop), 0);
    for (int i = 0; i < 10; i++)
        end_child(begin_child(use_the_cache));
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("rt.cache");
    TCase *tc = tcase_create("cache");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, hit_and_miss);
    tcase_add_test(tc, keys_are_compared_whole);
    tcase_add_test(tc, failed_make);
    tcase_add_test(tc, eviction_is_bounded_and_in_order);
    tcase_add_test(tc, least_recently_used);
    tcase_add_test(tc, larger_than_the_cache);
    tcase_add_test(tc, clearing);
    tcase_add_test(tc, disk_counts);
    tcase_add_test(tc, no_memory);
    tcase_add_test(tc, threads_one_key);
    tcase_add_test(tc, threads_and_failures);
    tcase_add_test(tc, threads_and_no_room);
    tcase_add_test(tc, threads_many_keys);
    tcase_add_test(tc, makers_that_ask_for_their_own_key);
    tcase_add_test(tc, makers_that_ask_each_other);
    tcase_add_test(tc, forked_while_a_key_is_made);
    tcase_add_test(tc, forked_by_a_maker);
/* gcc 12's allocators: a child may inherit them locked, by a thread that allocates. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    puts("skipped: forked_while_others_use_it, as the sanitizer's allocator does not survive a fork");
#else
    tcase_add_test(tc, forked_while_others_use_it);
#endif
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
