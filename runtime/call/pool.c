/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - opjit_pool: an executor with threads of our own.
 *
 * A run is cut into units of one grain, the units into one contiguous share per thread, so that a thread writes pages
 * next to each other.  Whoever is done with its share takes from the others'.  Pieces are a quarter of what a share
 * still holds: few calls while there is much to do, and single units in the end, when uneven work has to come out even.
 *
 * The caller needs nobody: helpers join a run through `gate` while it is open, and the caller waits for those who did.
 * So a helper that is late, missing or left behind by fork costs time, never a result.  A second run at the same
 * time, from another thread or from inside a body, has its work done by its own thread. */
#define _GNU_SOURCE
#if !defined(__x86_64__)
#include <fenv.h>
#endif
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <opjit/opjit.h>

#include "runtime/call/kernel_object.h"

enum {
    LINE = 128, /* two cache lines: processors fetch them in pairs */
    SPIN_NS = 30000,
    SPIN_IN_CALL_NS = 2000000, /* while a call has steps to come; one thread may be at work on the steps between */
    SPINS_A_CLOCK = 64,        /* reading the clock takes as long as several pauses */
    WAKE_NS = 10000            /* a thread that sleeps is worth waking for so much work of one thread */
};

/* The gate's bits.  The generation only tells one run from the next: that it wraps around does no harm. */
#define COUNT 0x7ffu /* helpers in the run; OPJIT_POOL_MAX_THREADS fits */
#define OPEN 0x800u
#define WAITED 0x1000u /* the caller sleeps until COUNT is 0 */
#define STOP 0x2000u
#define GENERATION 0x4000u
#define NO_GENERATION 1u /* equal to none, as these are multiples of GENERATION */

/* Who sleeps on the gate: bits of the futex. */
enum { HELPERS = 1, CALLER = 2 };

typedef void (*body_fn)(void *arg, uint32_t worker, uint64_t begin, uint64_t end);

#if defined(__x86_64__)
typedef unsigned rounding; /* MXCSR alone: saving the x87 unit takes ten times as long, and no kernel uses it */
static inline void get_rounding(rounding *out)
{
    *out = __builtin_ia32_stmxcsr();
}
static inline void set_rounding(const rounding *r)
{
    __builtin_ia32_ldmxcsr(*r);
}
#else
typedef fenv_t rounding;
static inline void get_rounding(rounding *out)
{
    fegetenv(out);
}
static inline void set_rounding(const rounding *r)
{
    fesetenv(r);
}
#endif

/* A thread's share of the units, of which [next, end) is left, and the thread.  Member 0 is the caller. */
typedef struct member {
    alignas(LINE) atomic_ullong next;
    uint64_t end;
    opjit_pool *pool;
    uint32_t number;
    pthread_t handle;
} member;

typedef struct job {
    body_fn body;
    void *arg;
    uint64_t extent, grain, units;
    uint32_t shares;
    rounding rounding; /* the caller's holds for all of its pieces, with what it does to subnormals */
} job;

struct opjit_pool {
    opjit_executor executor;
    opjit_allocator allocator;
    uint32_t threads;      /* the caller included */
    bool spins;            /* there is a core for each thread */
    atomic_uint calls;     /* of several steps, that are being made */
    atomic_bool heavy;     /* the last run that found helpers asleep was worth waking them from its first unit on */
    atomic_int holder;     /* process whose thread has the run; 0: none.  Who has it writes job to owner */
    alignas(LINE) job job; /* read by helpers that joined */
    uint32_t usable;       /* threads that can be had */
    atomic_uint started;   /* helpers there are */
    pid_t owner;           /* the process that they are in */
    alignas(LINE) atomic_uint gate;
    alignas(LINE) atomic_uint sleepers;
    member members[];
};

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static inline void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_on(opjit_pool *p, uint32_t gate, uint32_t as)
{
    syscall(SYS_futex, &p->gate, FUTEX_WAIT_BITSET_PRIVATE, gate, NULL, NULL, as);
}

static void wake(opjit_pool *p, uint32_t whom, int count)
{
    syscall(SYS_futex, &p->gate, FUTEX_WAKE_BITSET_PRIVATE, count, NULL, NULL, whom);
}

static inline bool is_for(uint32_t gate, uint32_t seen)
{
    return (gate & STOP) != 0 || ((gate & OPEN) != 0 && (gate & ~(GENERATION - 1)) != seen);
}

static inline bool is_left(uint32_t gate, uint32_t unused)
{
    (void)unused;
    return (gate & COUNT) == 0;
}

/* Looks at the gate until it is ready, or SPIN_NS or SPIN_IN_CALL_NS are over.  Gives what it saw last. */
static uint32_t spin(opjit_pool *p, bool (*ready)(uint32_t gate, uint32_t seen), uint32_t seen)
{
    uint32_t gate = atomic_load_explicit(&p->gate, memory_order_acquire);
    uint64_t since = 0;

    while (p->spins && !ready(gate, seen)) {
        const uint64_t now = opjit_rt_nanoseconds();
        since = since == 0 ? now : since;
        if (now - since >= SPIN_NS) {
            if (now - since >= SPIN_IN_CALL_NS || atomic_load_explicit(&p->calls, memory_order_relaxed) == 0)
                break;
            sched_yield(); /* the core may be another's by now, even that of the thread that is waited for */
        }
        for (int i = 0; i < SPINS_A_CLOCK && !ready(gate, seen); i++) {
            pause_cpu();
            gate = atomic_load_explicit(&p->gate, memory_order_acquire);
        }
    }
    return gate;
}

/* --- work --------------------------------------------------------------------------------------------------------- */

/* Takes units [*begin, *end) from what is left; false: nothing is.  The gate orders the units' memory, not this. */
static inline bool cut(member *m, uint64_t *begin, uint64_t *end)
{
    unsigned long long at = atomic_load_explicit(&m->next, memory_order_relaxed), after;

    do {
        const uint64_t left = m->end - at;
        if (left == 0)
            return false;
        after = at + left / 4 + (left % 4 != 0);
    } while (!atomic_compare_exchange_weak_explicit(&m->next, &at, after, memory_order_relaxed, memory_order_relaxed));
    *begin = at;
    *end = after;
    return true;
}

static inline void run_units(const job *j, uint32_t worker, uint64_t begin, uint64_t end)
{
    j->body(j->arg, worker, begin * j->grain, end == j->units ? j->extent : end * j->grain);
}

static void work(opjit_pool *p, uint32_t worker)
{
    const uint32_t shares = p->job.shares;
    uint64_t begin, end;

    for (uint32_t i = 0; i < shares; i++)
        while (cut(&p->members[(worker + i) % shares], &begin, &end))
            run_units(&p->job, worker, begin, end);
}

static void *help(void *argument)
{
    const member *self = argument;
    opjit_pool *p = self->pool;
    uint32_t seen = NO_GENERATION;

    pthread_setname_np(pthread_self(), "opjit");
    for (;;) {
        uint32_t gate = spin(p, is_for, seen);
        if (!is_for(gate, seen)) {
            atomic_fetch_add(&p->sleepers, 1);
            gate = atomic_load(&p->gate); /* once more: whoever opened it before did not see this sleeper */
            if (!is_for(gate, seen))
                sleep_on(p, gate, HELPERS);
            atomic_fetch_sub(&p->sleepers, 1);
            continue;
        }
        if ((gate & STOP) != 0)
            return NULL;
        if (!atomic_compare_exchange_strong(&p->gate, &gate, gate + 1))
            continue;
        seen = gate & ~(GENERATION - 1);
        set_rounding(&p->job.rounding);
        work(p, self->number);
        gate = atomic_fetch_sub(&p->gate, 1);
        if ((gate & WAITED) != 0 && (gate & COUNT) == 1)
            wake(p, CALLER, 1);
    }
}

/* --- the caller --------------------------------------------------------------------------------------------------- */

/* A process that was forked has its own lock: the holder that it inherited is a thread it does not have, and so are the
 * helpers. */
static bool acquire(opjit_pool *p)
{
    const pid_t process = getpid();
    int holder = 0;

    if (!atomic_compare_exchange_strong(&p->holder, &holder, process) &&
        (holder == process || !atomic_compare_exchange_strong(&p->holder, &holder, process)))
        return false;
    if (p->owner != process) {
        p->owner = process;
        atomic_store(&p->started, 0);
        p->usable = p->threads;
        atomic_store(&p->sleepers, 0);
        atomic_store(&p->gate, 0);
    }
    return true;
}

/* Helpers block all signals, so that the host's handlers run on the host's threads, but for those that a fault in the
 * thread itself raises: with them blocked a crash handler would never know.  Where no thread is to be had, the pool
 * makes do with those it has, and does not ask again. */
static void start_helpers(opjit_pool *p, uint32_t count)
{
    static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };
    sigset_t blocked, before;

    if (atomic_load(&p->started) >= count)
        return;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    for (uint32_t n = atomic_load(&p->started); n < count; n++) {
        member *m = &p->members[n + 1];
        if (pthread_create(&m->handle, NULL, help, m) != 0) {
            p->usable = n + 1;
            break;
        }
        atomic_store(&p->started, n + 1);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* How many helpers a run of so many units could have and would have to wake or start.  An estimate without the lock. */
static uint32_t missing(opjit_pool *p, uint64_t units)
{
    const uint32_t most = p->threads - 1, wanted = units - 1 < most ? (uint32_t)(units - 1) : most;
    const uint32_t started = atomic_load(&p->started), absent = wanted + atomic_load(&p->sleepers);

    return absent > started ? absent - started : 0;
}

/* While helpers are missing: single units by the clock, until what is left is worth the trouble of getting them.  Short
 * work is done before that, without as much as taking the lock.  Gives the first unit that is left.  Two long units
 * would never be shared: so after one the next run wakes helpers at once, until one is short. */
static uint64_t run_while_short(opjit_pool *p, const job *j)
{
    const uint64_t start = opjit_rt_nanoseconds();
    uint64_t done = 0;

    do {
        run_units(j, 0, done, done + 1);
        if (done == 0 && opjit_rt_nanoseconds() - start >= WAKE_NS)
            atomic_store_explicit(&p->heavy, true, memory_order_relaxed);
        done++;
    } while (done < j->units &&
             (double)(opjit_rt_nanoseconds() - start) * (double)(j->units - done) < WAKE_NS * (double)done);
    return done;
}

static void get_helpers(opjit_pool *p, uint64_t units)
{
    const uint32_t before = atomic_load(&p->started);

    start_helpers(p, p->job.shares - 1);
    if (before != 0)
        wake(p, HELPERS, (int)missing(p, units));
}

/* Lets nobody else in and waits for those who are. */
static void close_gate(opjit_pool *p)
{
    uint32_t gate = atomic_fetch_and(&p->gate, ~OPEN);

    if (!is_left(gate, 0))
        gate = spin(p, is_left, 0);
    while (!is_left(gate, 0)) {
        gate = atomic_fetch_or(&p->gate, WAITED) | WAITED;
        if (!is_left(gate, 0))
            sleep_on(p, gate, CALLER);
        gate = atomic_load(&p->gate);
    }
}

/* Units [begin, job.units); the lock is held. */
static void run_together(opjit_pool *p, uint64_t begin)
{
    const uint64_t units = p->job.units - begin;
    const uint32_t shares = units < p->usable ? (uint32_t)units : p->usable;

    for (uint32_t i = 0; i < shares; i++) {
        atomic_store_explicit(&p->members[i].next, begin, memory_order_relaxed);
        begin += units / shares + (i < units % shares);
        p->members[i].end = begin;
    }
    p->job.shares = shares;
    get_rounding(&p->job.rounding);
    atomic_store(&p->gate, ((atomic_load(&p->gate) & ~(GENERATION - 1)) + GENERATION) | OPEN);
    if (missing(p, units) != 0)
        get_helpers(p, units);
    work(p, 0);
    close_gate(p);
}

static opjit_status run(void *user, uint64_t extent, uint64_t grain, body_fn body, void *arg)
{
    opjit_pool *p = user;
    job j = { .body = body, .arg = arg, .extent = extent, .grain = grain };
    uint64_t done = 0;

    if (grain == 0)
        return OPJIT_INVALID_ARGUMENT;
    j.units = extent / grain + (extent % grain != 0);
    if (j.units > 1 && p->threads > 1) {
        const bool asleep = missing(p, j.units) != 0;
        const bool at_once = asleep && atomic_load_explicit(&p->heavy, memory_order_relaxed);
        const uint64_t start = at_once ? opjit_rt_nanoseconds() : 0;
        if (asleep && !at_once)
            done = run_while_short(p, &j);
        if (j.units - done > 1 && acquire(p)) {
            p->job = j;
            run_together(p, done);
            atomic_store(&p->holder, 0);
            if (at_once && opjit_rt_nanoseconds() - start < WAKE_NS)
                atomic_store_explicit(&p->heavy, false, memory_order_relaxed);
            return OPJIT_OK;
        }
    }
    if (done != j.units)
        run_units(&j, 0, done, j.units);
    return OPJIT_OK;
}

void opjit_rt_pool_count_call(const opjit_executor *e, unsigned by)
{
    if (e->run == run)
        atomic_fetch_add_explicit(&((opjit_pool *)e->user)->calls, by, memory_order_relaxed);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

/* Cores that this thread may run on. */
static uint32_t count_cores(void)
{
    cpu_set_t sets[8]; /* one is for 1024; the kernel refuses a set smaller than its own */
    int count;

    if (sched_getaffinity(0, sizeof sets, sets) != 0)
        return 1;
    count = CPU_COUNT_S(sizeof sets, sets);
    return count < 1 ? 1 : (uint32_t)count;
}

static size_t pool_size(uint32_t threads)
{
    return sizeof(opjit_pool) + threads * sizeof(member);
}

opjit_status opjit_pool_create(const opjit_allocator *allocator, uint32_t threads, opjit_pool **out_pool,
                               opjit_error *error)
{
    const opjit_allocator a = allocator == NULL ? opjit_rt_default_allocator : *allocator;
    const uint32_t cores = count_cores();
    opjit_pool *p;

    opjit_rt_error_clear(error);
    if (out_pool == NULL)
        return opjit_rt_refuse_null(error, "out_pool");
    *out_pool = NULL;
    TRY(opjit_rt_check_allocator(&a, error));
    if (threads > OPJIT_POOL_MAX_THREADS)
        return opjit_rt_refuse(error, OPJIT_INVALID_ARGUMENT,
                               "{!argument}{threads}: {%u}, must be 1 to %u, or 0 for one per core", threads,
                               OPJIT_POOL_MAX_THREADS);
    if (threads == 0)
        threads = cores < OPJIT_POOL_MAX_THREADS ? cores : OPJIT_POOL_MAX_THREADS;
    p = opjit_rt_allocate(&a, pool_size(threads), alignof(opjit_pool));
    if (p == NULL)
        return opjit_rt_no_memory(error);
    memset(p, 0, pool_size(threads));
    p->executor = (opjit_executor){ .user = p, .workers = threads, .run = run };
    p->allocator = a;
    p->threads = p->usable = threads;
    p->spins = threads <= cores;
    p->owner = getpid();
    for (uint32_t i = 0; i < threads; i++) {
        p->members[i].pool = p;
        p->members[i].number = i;
    }
    *out_pool = p;
    return OPJIT_OK;
}

const opjit_executor *opjit_pool_executor(const opjit_pool *pool)
{
    return pool == NULL ? NULL : &pool->executor;
}

void opjit_pool_destroy(opjit_pool *pool)
{
    if (pool == NULL)
        return;
    const opjit_allocator a = pool->allocator;
    if (pool->owner == getpid()) { /* else the helpers are another process's */
        atomic_fetch_or(&pool->gate, STOP);
        wake(pool, HELPERS, INT32_MAX);
        for (uint32_t i = 1; i <= atomic_load(&pool->started); i++)
            pthread_join(pool->members[i].handle, NULL);
    }
    opjit_rt_release(&a, pool, pool_size(pool->threads));
}
