/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_cache_control.c - opjit/cache.h on the memory cache: enumerating, checking, pinning and dropping, by
 * threads at once and without memory.  The disk's part is in test_fe_cache_control.c. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>

#include <opjit/cache.h>

#include "runtime/cache/table.h"
#include "tests/unit/runtime/rt_sample.h"

enum { THREADS = 6 };

static counting memory;
static opjit_context *context;

static void open_context(uint64_t bytes)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_error error;
    options.allocator = &a;
    options.target = "cpu:x86-64-v1";
    options.cache_bytes = bytes;
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
}

static void setup(void)
{
    open_context(0);
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

/* Of a kernel that is made for the number. */
static rt_hash name_of(uint64_t number)
{
    uint8_t whole[sizeof number + 3];
    memcpy(whole, &number, sizeof number);
    memcpy(whole + sizeof number, "opt", 3);
    return opjit_rt_hash(whole, sizeof whole);
}

static opjit_cache_key key_of(uint64_t number)
{
    return (opjit_cache_key){ name_of(number).hi, name_of(number).lo };
}

static opjit_status make(void *user, opjit_kernel **out, opjit_error *error)
{
    const rt_kernel_hooks hooks = { .interpret = no_interpreter, .key = name_of(*(const uint64_t *)user) };
    sample s;
    sample_init(&s);
    s.code_size = 0;
    return sample_kernel(&s, context->core, NULL, &hooks, out, error);
}

/* Requests the kernel of the number; returns whether it was present. */
static bool ask(uint64_t number, opjit_kernel **out)
{
    const rt_key key = { &number, sizeof number, "opt", 3, opjit_rt_hash64(&number, sizeof number) };
    opjit_kernel *kernel;
    opjit_error error;
    bool hit;
    ck_assert_msg(opjit_rt_cache_get(context->cache, &key, make, &number, &kernel, &hit, &error) == OPJIT_OK, "%s",
                  error.message);
    if (out != NULL)
        *out = kernel;
    else
        opjit_kernel_release(kernel);
    return hit;
}

typedef struct seen {
    uint32_t count, pinned, damaged, most; /* most: ends the enumeration; 0: nothing does */
    uint64_t bytes, numbers;
    bool drops;
} seen;

static bool see(void *user, const opjit_cache_entry *entry)
{
    seen *s = user;
    ck_assert_uint_eq(entry->struct_size, sizeof *entry);
    ck_assert_uint_eq(entry->where, OPJIT_CACHE_MEMORY);
    ck_assert_str_eq(entry->name, "sample");
    ck_assert_str_eq(entry->target, "cpu:x86-64-v1");
    ck_assert_uint_eq(entry->level, OPJIT_LEVEL_QUICK);
    ck_assert((entry->flags & OPJIT_CACHE_ENTRY_INTERPRETED) != 0);
    ck_assert_int_eq(entry->used, 0);
    ck_assert_uint_ge(entry->bytes, opjit_rt_kernel_bytes(entry->kernel));
    for (uint64_t number = 0; number < 64; number++)
        if (name_of(number).hi == entry->key.hi && name_of(number).lo == entry->key.lo) {
            ck_assert((s->numbers >> number & 1) == 0);
            s->numbers |= UINT64_C(1) << number;
        }
    s->count++;
    s->bytes += entry->bytes;
    s->pinned += (entry->flags & OPJIT_CACHE_ENTRY_PINNED) != 0;
    s->damaged += entry->damaged != NULL;
    if (s->drops)
        ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY, &entry->key, NULL, NULL), OPJIT_OK);
    return s->count != s->most;
}

static uint32_t entries(void)
{
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    return stats.entries;
}

START_TEST(enumerating)
{
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    const opjit_cache_key pinned = key_of(7);
    seen s = { 0 };
    for (uint64_t i = 0; i < 40; i++)
        ck_assert(!ask(i, NULL));
    ck_assert_int_eq(opjit_cache_pin(context, &pinned, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY, see, &s, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(s.count == 40 && s.pinned == 1 && s.numbers == (UINT64_C(1) << 40) - 1 && s.bytes == stats.bytes);
    s = (seen){ .most = 3 };
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY | OPJIT_CACHE_DISK, see, &s, NULL), OPJIT_OK);
    ck_assert_uint_eq(s.count, 3);
    s = (seen){ .drops = true };
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY, see, &s, NULL), OPJIT_OK);
    ck_assert(s.count == 40 && entries() == 0);
    s = (seen){ 0 };
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_DISK, see, &s, NULL), OPJIT_OK); /* it has none */
    ck_assert_uint_eq(s.count, 0);
}
END_TEST

START_TEST(dropping)
{
    const opjit_cache_key two = key_of(2), absent = key_of(63);
    opjit_kernel *held;
    opjit_cache_key key;
    uint32_t count = 9;
    for (uint64_t i = 0; i < 5; i++)
        ask(i, NULL);
    ck_assert(ask(2, &held));
    ck_assert_int_eq(opjit_kernel_get_cache_key(held, &key, NULL), OPJIT_OK);
    ck_assert(key.hi == two.hi && key.lo == two.lo);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY, &two, &count, NULL), OPJIT_OK);
    ck_assert(count == 1 && entries() == 4);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY | OPJIT_CACHE_DISK, &absent, &count, NULL), OPJIT_OK);
    ck_assert(count == 0 && entries() == 4);
    ck_assert_uint_gt(opjit_rt_kernel_bytes(held), 0);
    opjit_kernel_release(held);
    ck_assert(!ask(2, NULL));
    ck_assert_int_eq(opjit_cache_pin(context, &two, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY, NULL, &count, NULL), OPJIT_OK); /* that one, too */
    ck_assert(count == 5 && entries() == 0);
    ck_assert_int_eq(opjit_cache_unpin(context, &two, NULL), OPJIT_NOT_FOUND);
}
END_TEST

/* Pinned kernels stay whatever is added, in every shard; unpinned they are evicted like any other. */
START_TEST(pinned_ones_stay)
{
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    uint64_t one;
    ask(0, NULL);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    one = stats.bytes;
    teardown();
    open_context(40 * one);
    for (uint64_t i = 0; i < 32; i++) {
        const opjit_cache_key key = key_of(i);
        ask(i, NULL);
        for (uint64_t pins = 0; pins <= i % 2; pins++)
            ck_assert_int_eq(opjit_cache_pin(context, &key, NULL), OPJIT_OK);
    }
    for (uint64_t i = 100; i < 400; i++) {
        ask(i, NULL);
        ck_assert(ask(i, NULL));
        ck_assert_uint_le(entries(), 40);
    }
    for (uint64_t i = 0; i < 32; i++)
        ck_assert_msg(ask(i, NULL), "%u", (unsigned)i);
    ck_assert_int_eq(opjit_cache_clear(context, NULL), OPJIT_OK);
    ck_assert_uint_eq(entries(), 32);
    for (uint64_t i = 0; i < 32; i++) { /* the odd ones are pinned twice */
        const opjit_cache_key key = key_of(i);
        ck_assert_int_eq(opjit_cache_unpin(context, &key, NULL), OPJIT_OK);
        ck_assert_int_eq(opjit_cache_unpin(context, &key, NULL), i % 2 == 1 ? OPJIT_OK : OPJIT_INVALID_ARGUMENT);
    }
    for (uint64_t i = 100; i < 400; i++)
        ask(i, NULL);
    ck_assert_uint_eq(entries(), 40);
    ck_assert(!ask(0, NULL) && !ask(1, NULL));
}
END_TEST

/* Pinned beyond the bound: nothing else is kept until something is unpinned. */
START_TEST(pins_above_the_bound)
{
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    const opjit_cache_key keys[] = { key_of(0), key_of(1), key_of(2) };
    ask(0, NULL);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    const uint64_t one = stats.bytes;
    teardown();
    open_context(2 * one);
    for (uint64_t i = 0; i < 3; i++) {
        ask(i, NULL);
        if (i < 2)
            ck_assert_int_eq(opjit_cache_pin(context, &keys[i], NULL), OPJIT_OK);
    }
    ck_assert_uint_eq(entries(), 3); /* the one just made is never the one that goes */
    ask(3, NULL);
    ck_assert(entries() == 3 && ask(3, NULL) && ask(0, NULL) && ask(1, NULL));
    ck_assert_int_eq(opjit_cache_unpin(context, &keys[0], NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert_uint_le(stats.bytes, 2 * one);
}
END_TEST

START_TEST(damage_in_memory_is_found)
{
    const opjit_cache_key keys[] = { key_of(0), key_of(1), key_of(60) };
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel;
    opjit_error error;
    seen s = { 0 };
    ask(0, &kernel);
    ask(1, NULL);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, NULL, see, &s, &error), OPJIT_OK);
    ck_assert(s.count == 2 && s.damaged == 0);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ((opjit_kernel_meta *)(uintptr_t)info.meta)->bytes_read ^= 1; /* an interpreted kernel's lies in writable memory */
    s = (seen){ 0 };
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, NULL, see, &s, &error), OPJIT_CORRUPT);
    ck_assert_str_eq(error.message, "1 of 2 kernels are damaged");
    ck_assert(s.count == 2 && s.damaged == 1);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, &keys[0], NULL, NULL, NULL), OPJIT_CORRUPT);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, &keys[1], NULL, NULL, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, &keys[2], NULL, NULL, NULL), OPJIT_NOT_FOUND);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(keys_as_text)
{
    static const char *const wrong[] = { "", "0123", "0123456789abcdef0123456789abcdeF",
                                         "0123456789abcdef0123456789abcdef0", "0123456789abcdef 123456789abcdef" };
    const opjit_cache_key key = { UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210) };
    char text[OPJIT_CACHE_KEY_TEXT_SIZE];
    opjit_cache_key read;
    opjit_error error;
    opjit_cache_key_to_text(&key, text);
    ck_assert_str_eq(text, "0123456789abcdeffedcba9876543210");
    ck_assert_int_eq(opjit_cache_key_from_text(text, &read, NULL), OPJIT_OK);
    ck_assert(read.hi == key.hi && read.lo == key.lo);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(opjit_cache_key_from_text(wrong[i], &read, &error) == OPJIT_INVALID_ARGUMENT, "%s", wrong[i]);
        ck_assert(read.hi == 0 && read.lo == 0 && strstr(error.message, "32 digits") != NULL);
    }
}
END_TEST

START_TEST(refusals)
{
    const opjit_cache_key key = key_of(1);
    opjit_cache_key out;
    opjit_kernel *kernel;
    opjit_error error;
    sample s;
    uint32_t count;
    ck_assert_int_eq(opjit_cache_enumerate(NULL, 1, see, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_enumerate(context, 0, see, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_enumerate(context, 4, see, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "where is 0x4; allowed: OPJIT_CACHE_MEMORY, OPJIT_CACHE_DISK, or both");
    ck_assert_int_eq(opjit_cache_enumerate(context, 1, NULL, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_verify(NULL, 1, NULL, see, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_pin(context, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_pin(context, &key, &error), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_cache_unpin(NULL, &key, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_drop(context, 7, NULL, &count, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_cache_key_from_text(NULL, &out, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_kernel_get_cache_key(NULL, &out, &error), OPJIT_INVALID_ARGUMENT);
    sample_init(&s);
    ck_assert_int_eq(sample_kernel(&s, context->core, NULL, NULL, &kernel, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_cache_key(kernel, &out, &error), OPJIT_NOT_FOUND);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(no_memory_to_enumerate)
{
    seen s = { 0 };
    for (uint64_t i = 0; i < 20; i++)
        ask(i, NULL);
    memory.fail_at = memory.calls + 1;
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY, see, &s, NULL), OPJIT_OUT_OF_MEMORY);
    memory.fail_at = 0;
    ck_assert(s.count == 0 && entries() == 20);
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY, see, &s, NULL), OPJIT_OK);
    ck_assert_uint_eq(s.count, 20);
}
END_TEST

/* --- threads ------------------------------------------------------------------------------------------------------ */

static bool count_only(void *user, const opjit_cache_entry *entry)
{
    ++*(uint32_t *)user;
    return entry->kernel != NULL;
}

static atomic_int broken; /* Check's assertions belong to the main thread */

static void *work(void *arg)
{
    uint64_t seed = (uintptr_t)arg;
    for (int i = 0; i < 3000; i++) {
        const uint64_t number = (seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u, seed >> 33) % 24;
        const opjit_cache_key key = key_of(number);
        const rt_key wanted = { &number, sizeof number, "opt", 3, opjit_rt_hash64(&number, sizeof number) };
        opjit_kernel *kernel = NULL;
        uint32_t count = 0;
        bool hit;
        broken += opjit_rt_cache_get(context->cache, &wanted, make, (void *)(uintptr_t)wanted.subject, &kernel, &hit,
                                     NULL) != OPJIT_OK &&
                  kernel != NULL;
        if (opjit_cache_pin(context, &key, NULL) == OPJIT_OK && i % 3 != 0) {
            const opjit_status status = opjit_cache_unpin(context, &key, NULL);
            broken += status != OPJIT_OK && status != OPJIT_NOT_FOUND && status != OPJIT_INVALID_ARGUMENT;
        }
        if (i % 7 == 0)
            broken += opjit_cache_drop(context, OPJIT_CACHE_MEMORY, &key, NULL, NULL) != OPJIT_OK;
        if (i % 50 == 0)
            broken += opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY, count_only, &count, NULL) != OPJIT_OK;
        if (i % 50 == 25)
            broken += opjit_cache_verify(context, OPJIT_CACHE_MEMORY, NULL, count_only, &count, NULL) != OPJIT_OK;
        if (i % 200 == 0)
            broken += opjit_cache_clear(context, NULL) != OPJIT_OK;
        opjit_kernel_release(kernel);
    }
    return NULL;
}

START_TEST(threads)
{
    pthread_t handles[THREADS];
    teardown();
    open_context(30000); /* about 20 kernels */
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&handles[i], NULL, work, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(handles[i], NULL);
    ck_assert_int_eq(broken, 0);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY, NULL, NULL, NULL), OPJIT_OK);
    ck_assert_uint_eq(entries(), 0);
}
END_TEST

/* Kernels are found by key in chains whose length does not grow with the cache, and by no list of all kernels: these
 * are taken away meanwhile. */
START_TEST(finds_by_key_without_a_walk)
{
    enum { COUNT = 20000 };
    cache_list used[CACHE_SHARDS];
    uint64_t entries_seen = 0, longest = 0;
    uint32_t dropped;

    for (uint64_t number = 0; number < COUNT; number++)
        ask(number, NULL);
    for (size_t i = 0; i < CACHE_SHARDS; i++) {
        cache_shard *const s = &context->cache->shards[i];
        for (size_t bucket = 0; bucket < s->bucket_count; bucket++) {
            uint64_t steps = 0;
            for (const cache_entry *e = *cache_names(s, bucket); e != NULL; e = e->name_chain)
                steps++;
            entries_seen += steps;
            longest = steps > longest ? steps : longest;
        }
        used[i] = s->used;
        s->used = (cache_list){ NULL, NULL };
    }
    ck_assert_uint_eq(entries_seen, COUNT);
    ck_assert_uint_le(longest, 12);
    for (uint64_t number = 1000; number < 19000; number += 2500) {
        const opjit_cache_key key = key_of(number);
        ck_assert_int_eq(opjit_cache_pin(context, &key, NULL), OPJIT_OK);
        ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, &key, NULL, NULL, NULL), OPJIT_OK);
        ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY, &key, &dropped, NULL), OPJIT_OK);
        ck_assert_uint_eq(dropped, 1);
        ck_assert_int_eq(opjit_cache_pin(context, &key, NULL), OPJIT_NOT_FOUND);
    }
    for (size_t i = 0; i < CACHE_SHARDS; i++)
        context->cache->shards[i].used = used[i];
    ck_assert_int_eq(opjit_cache_clear(context, NULL), OPJIT_OK);
    ck_assert_uint_eq(entries(), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rt.cache_control");
    TCase *tcase = tcase_create("control");
    SRunner *runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, finds_by_key_without_a_walk);
    tcase_add_test(tcase, enumerating);
    tcase_add_test(tcase, dropping);
    tcase_add_test(tcase, pinned_ones_stay);
    tcase_add_test(tcase, pins_above_the_bound);
    tcase_add_test(tcase, damage_in_memory_is_found);
    tcase_add_test(tcase, keys_as_text);
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, no_memory_to_enumerate);
    tcase_add_test(tcase, threads);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
