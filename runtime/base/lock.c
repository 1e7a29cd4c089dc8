/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - mutual exclusion and waiting on futexes, for processes that fork. */
#define _GNU_SOURCE
#include "runtime/base/lock.h"
#include "runtime/base/base.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FREE = 0, HELD = 1, AWAITED = 2, HOW = 3 }; /* the word's lowest bits; the other bits are the process's number */
#define NUMBER(process_number) ((uint32_t)(process_number) << 2)

void opjit_rt_process_init(rt_process *process)
{
    const size_t bytes = opjit_rt_page_size();
    void *const page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    atomic_init(&process->given, 1);
    atomic_init(&process->only, 1);
    process->number = &process->only;
    if (page != MAP_FAILED && madvise(page, bytes, MADV_WIPEONFORK) != 0)
        munmap(page, bytes);
    else if (page != MAP_FAILED)
        process->number = page;
    atomic_init(process->number, 1);
}

void opjit_rt_process_free(rt_process *process)
{
    if (process->number != &process->only)
        munmap(process->number, opjit_rt_page_size());
}

uint32_t opjit_rt_process_give(rt_process *process)
{
    uint32_t none = 0, number = atomic_fetch_add(&process->given, 1) + 1;

    /* Another thread of this process may have given the number meanwhile. */
    return atomic_compare_exchange_strong(process->number, &none, number) ? number : none;
}

void opjit_rt_lock_init(rt_lock *lock, rt_process *process)
{
    lock->process = process;
    atomic_init(&lock->word, FREE);
}

/* most: how long; NULL: until it is woken. */
static void wait_on(atomic_uint *word, uint32_t while_it_is, const struct timespec *most)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, while_it_is, most, NULL, 0);
}

bool opjit_rt_lock(rt_lock *lock)
{
    const uint32_t mine = NUMBER(rt_process_number(lock->process));
    uint32_t seen = atomic_load_explicit(&lock->word, memory_order_relaxed), how = HELD;

    for (;;) {
        const bool is_free = (seen & HOW) == FREE, is_left = !is_free && (seen & ~(uint32_t)HOW) != mine;
        if (is_free || is_left) {
            if (atomic_compare_exchange_weak_explicit(&lock->word, &seen, mine | how, memory_order_acquire,
                                                      memory_order_relaxed))
                return is_left;
            continue;
        }
        if (seen == (mine | AWAITED) ||
            atomic_compare_exchange_weak_explicit(&lock->word, &seen, mine | AWAITED, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            wait_on(&lock->word, mine | AWAITED, NULL);
            how = AWAITED; /* others may be waiting */
            seen = atomic_load_explicit(&lock->word, memory_order_relaxed);
        }
    }
}

void opjit_rt_unlock(rt_lock *lock)
{
    const uint32_t before = atomic_fetch_sub_explicit(&lock->word, 1, memory_order_release);

    if ((before & HOW) == HELD)
        return;
    atomic_store_explicit(&lock->word, before & ~(uint32_t)HOW, memory_order_release);
    syscall(SYS_futex, &lock->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void opjit_rt_await(atomic_uint *count, uint32_t seen)
{
    wait_on(count, seen, NULL);
}

uint64_t opjit_rt_nanoseconds(void)
{
    struct timespec now = { 0 };

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool opjit_rt_await_until(atomic_uint *count, uint32_t seen, uint64_t end)
{
    const uint64_t now = opjit_rt_nanoseconds(), left = end > now ? end - now : 0;
    const struct timespec most = { (time_t)(left / 1000000000u), (long)(left % 1000000000u) };

    if (left != 0)
        wait_on(count, seen, &most);
    return left != 0;
}

void opjit_rt_wake_all(atomic_uint *count)
{
    atomic_fetch_add(count, 1);
    syscall(SYS_futex, count, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}
