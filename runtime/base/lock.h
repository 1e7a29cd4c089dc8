/* SPDX-License-Identifier: Apache-2.0 */
/* lock.h - locks that outlive fork: a child may have been forked while a thread of its parent held one.  That thread is
 * not there to release it, so the lock says in which process its holder is, and the child takes it over. */
#ifndef OPJIT_RUNTIME_BASE_LOCK_H
#define OPJIT_RUNTIME_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Which process this is, as a number that no ancestor with the same memory has.  Asking costs a load: the number lies in
 * a page that the system clears in a child (where it can't, 1 is every process's). */
typedef struct rt_process {
    atomic_uint *number; /* 0: not given yet in this process */
    atomic_uint given;   /* numbers so far */
    atomic_uint only;    /* the number where there is no such page */
} rt_process;
void opjit_rt_process_init(rt_process *process);
void opjit_rt_process_free(rt_process *process);
uint32_t opjit_rt_process_give(rt_process *process); /* a number to a process that has none */
static inline uint32_t rt_process_number(rt_process *process)
{
    const uint32_t number = atomic_load_explicit(process->number, memory_order_relaxed);
    return number != 0 ? number : opjit_rt_process_give(process);
}

typedef struct rt_lock {
    rt_process *process;
    atomic_uint word; /* the holder's process and how it is held */
} rt_lock;
void opjit_rt_lock_init(rt_lock *lock, rt_process *process);
/* true: it was taken over, and what it guards is as the holder in the parent left it at that moment. */
bool opjit_rt_lock(rt_lock *lock);
void opjit_rt_unlock(rt_lock *lock);
/* Whether some thread of this process holds it. */
static inline bool rt_lock_is_held(rt_lock *lock)
{
    const uint32_t word = atomic_load_explicit(&lock->word, memory_order_relaxed);
    return (word & 3u) != 0 && word >> 2 == rt_process_number(lock->process);
}

/* Threads that wait for something to change: read *count with a lock held, release the lock, wait. */
void opjit_rt_await(atomic_uint *count, uint32_t seen); /* returns where *count isn't seen; also for no reason */
void opjit_rt_wake_all(atomic_uint *count);

#endif
