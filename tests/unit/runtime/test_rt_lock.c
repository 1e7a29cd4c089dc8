/* SPDX-License-Identifier: Apache-2.0 */
/* test_rt_lock.c - locks that outlive fork: one holder at a time, taken over in children, and told so. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/lock.h"

enum { THREADS = 4, TURNS = 20000 };

static rt_process process;
static rt_lock lock;
static uint64_t count; /* guarded by lock */

static void setup(void)
{
    opjit_rt_process_init(&process);
    opjit_rt_lock_init(&lock, &process);
    count = 0;
}

static void teardown(void)
{
    opjit_rt_process_free(&process);
}

static void *add(void *unused)
{
    for (int i = 0; i < TURNS; i++) {
        if (opjit_rt_lock(&lock))
            abort();
        count++;
        opjit_rt_unlock(&lock);
    }
    return unused;
}

START_TEST(one_holder)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_uint_eq(count, THREADS * TURNS);
    ck_assert(!rt_lock_is_held(&lock));
}
END_TEST

/* Forks; the child's exit status is what run returns.  One that hangs is ended by an alarm. */
static void in_child(int (*run)(void))
{
    int status;
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(run());
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static bool wipes(void)
{
    if (process.number != &process.only)
        return true;
    puts("skipped: this system clears no page in a child");
    return false;
}

static int lock_twice(void)
{
    if (rt_lock_is_held(&lock) || !opjit_rt_lock(&lock) || !rt_lock_is_held(&lock))
        return 1;
    opjit_rt_unlock(&lock);
    if (opjit_rt_lock(&lock)) /* nobody of another process had it */
        return 2;
    opjit_rt_unlock(&lock);
    add(NULL);
    return 0;
}

static int lock_a_free_one(void)
{
    if (opjit_rt_lock(&lock))
        return 4;
    opjit_rt_unlock(&lock);
    return 0;
}

static int lock_in_grandchild(void)
{
    if (!opjit_rt_lock(&lock))
        return 3;
    in_child(lock_twice);
    opjit_rt_unlock(&lock);
    return 0;
}

START_TEST(taken_over_in_a_child)
{
    if (!wipes())
        return;
    ck_assert(!opjit_rt_lock(&lock)); /* this thread is in the child, but the lock doesn't know */
    in_child(lock_twice);
    in_child(lock_in_grandchild);
    ck_assert(rt_lock_is_held(&lock));
    opjit_rt_unlock(&lock);
    in_child(lock_a_free_one);
}
END_TEST

static void *hold_now_and_then(void *stop)
{
    while (!atomic_load((atomic_bool *)stop)) {
        opjit_rt_lock(&lock);
        count++;
        opjit_rt_unlock(&lock);
    }
    return NULL;
}

static int lock_any(void)
{
    opjit_rt_lock(&lock); /* taken over or not, as it was */
    opjit_rt_unlock(&lock);
    return lock_a_free_one();
}

/* Children that are forked while another thread has the lock, waits for it, or neither. */
START_TEST(forked_at_any_time)
{
    pthread_t threads[2];
    atomic_bool stop = false;
    if (!wipes())
        return;
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hold_now_and_then, &stop), 0);
    for (int i = 0; i < 100; i++)
        in_child(lock_any);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("rt.lock");
    TCase *const tcase = tcase_create("lock");
    SRunner *const runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_holder);
    tcase_add_test(tcase, taken_over_in_a_child);
    tcase_add_test(tcase, forked_at_any_time);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
