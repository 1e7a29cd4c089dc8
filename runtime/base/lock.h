/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - locks that survive fork.  A process may fork while one of its threads holds a lock; that thread does not
 * exist in the child and will never release it.  So a lock stores its holder's process, and the child takes it over. */
#ifndef OPJIT_RUNTIME_BASE_LOCK_H
#define OPJIT_RUNTIME_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A number for this process that no ancestor sharing the memory has.  Reading it costs one load: it lies in a page that
 * the system clears in a child.  Where the system can't do that, every process has the number 1. */
typedef struct rt_process {
    atomic_uint *number; /* 0: this process has none yet */
    atomic_uint given;   /* numbers so far */
    atomic_uint only;    /* the number where there is no such page */
} rt_process;
void opjit_rt_process_init(rt_process *process);
void opjit_rt_process_free(rt_process *process);
uint32_t opjit_rt_process_give(rt_process *process); /* gives a number to a process that has none */
static inline uint32_t rt_process_number(rt_process *process)
{
    const uint32_t number = atomic_load_explicit(process->number, memory_order_relaxed);
    return number != 0 ? number : opjit_rt_process_give(process);
}

typedef struct rt_lock {
    rt_process *process;
    atomic_uint word; /* the holder's process and the lock's state */
} rt_lock;
void opjit_rt_lock_init(rt_lock *lock, rt_process *process);
/* Returns true if the lock was taken over from a parent: then what it guards is in the state in which the parent's
 * thread left it. */
bool opjit_rt_lock(rt_lock *lock);
void opjit_rt_unlock(rt_lock *lock);
/* Whether a thread of this process holds it. */
static inline bool rt_lock_is_held(rt_lock *lock)
{
    const uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
    return (word & 3u) != 0 && word >> 2 == rt_process_number(lock->process);
}

/* Waiting for a change: read *count with a lock held, release the lock, wait. */
void opjit_rt_await(atomic_uint *count, uint32_t seen); /* returns once *count isn't seen, and sometimes earlier */
/* The same until CLOCK_MONOTONIC says `end`, in nanoseconds; false: it does. */
bool opjit_rt_await_until(atomic_uint *count, uint32_t seen, uint64_t end);
uint64_t opjit_rt_nanoseconds(void); /* of CLOCK_MONOTONIC */
static inline double rt_milliseconds(void)
{
    return (double)opjit_rt_nanoseconds() * 1e-6;
}
void opjit_rt_wake_all(atomic_uint *count);

#endif
