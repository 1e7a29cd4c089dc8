/* SPDX-License-Identifier: Apache-2.0 */
/* tiers.c - kernels of one size beside a kernel with dynamic dimensions.
 *
 * A call takes no lock.  It looks for a slot with its sizes, enters it by a counter, and only then reads the slot's
 * kernel.  A kernel that is to go leaves its slot before the slot's counters are read, and stays unless all are zero.
 * So the call sees that the kernel has left, or whoever removes it sees the call.  Each thread uses one of several
 * counters, so that calls of many threads don't contend for one cache line.
 *
 * Calls with sizes that no slot has are counted in a small table, by a hash of the sizes.  Where more sets of sizes
 * take turns than it has room for, those that are rare give way: their counts go down as others come.  Threads that
 * count at one time may count once.
 *
 * In a child of fork, calls that the parent's other threads were in never end: their kernels stay. */
#include "runtime/call/tiers.h"

#include <string.h>

#include "runtime/call/kernel_object.h"

enum { COUNTERS = RT_TIER_COUNTERS, SETS = 64, WAYS = 4, FAILED_MOST = 64 };

/* A word of the table of counts: the upper bits of the sizes' hash, whether a kernel was wanted, and calls. */
#define COUNT_BITS 23
#define WANTED (UINT64_C(1) << COUNT_BITS)
#define COUNT_MASK (WANTED - 1)
#define TAG_SHIFT (COUNT_BITS + 1)
_Static_assert(RT_TIER_CALLS_MOST < COUNT_MASK, "a count stays below the flag");

typedef struct counter {
    alignas(64) atomic_uint calls; /* under way */
} counter;

typedef struct tier {
    counter counters[COUNTERS];
    _Atomic(opjit_kernel *) kernel; /* NULL: none */
    uint64_t dims[OPJIT_MAX_DIMS];  /* of the kernel; change only while there is none */
    atomic_uint used;               /* twice rt_tiers.made when it was made or last called, and 1 if called */
} tier;

struct rt_tiers {
    rt_tiers_base base;
    atomic_ullong hashes[RT_TIERS_MOST]; /* of each slot's sizes; 0: none */
    tier *slots;
    uint32_t most, dims, calls;
    atomic_uint made; /* kernels so far: the clock of tier.used */
    rt_core *core;
    rt_tiers_desc desc;
    atomic_uint references;
    alignas(64) atomic_ullong counts[SETS][WAYS];
    rt_lock lock;                      /* of what follows, and of changes of slots */
    const opjit_kernel *kernel;        /* NULL: it went */
    atomic_uint failed_count;          /* read without the lock */
    atomic_ullong failed[FAILED_MOST]; /* hashes */
};

/* Never 0. */
static inline uint64_t hash_of(const rt_tiers *t, const uint64_t *dims)
{
    uint64_t hash = 0;

    for (uint32_t d = 0; d < t->dims; d++) {
        hash = (hash ^ dims[d]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash != 0 ? hash : 1;
}

static inline bool same_dims(const rt_tiers *t, const uint64_t *a, const uint64_t *b)
{
    bool same = true;

    for (uint32_t d = 0; d < t->dims; d++)
        same = same && a[d] == b[d];
    return same;
}

/* --- slots, as calls see them ------------------------------------------------------------------------------------- */

static inline uint32_t counter_of_thread(void)
{
    return rt_thread_hash() % COUNTERS;
}

static inline void leave(tier *s, uint32_t index)
{
    atomic_fetch_sub_explicit(&s->counters[index].calls, 1, memory_order_release);
}

/* The slot with a kernel of these sizes, which stays until leave; NULL: none. */
static inline tier *enter(rt_tiers *t, const uint64_t *dims, uint64_t hash, uint32_t index, opjit_kernel **out)
{
    for (uint32_t i = 0; i < t->most; i++) {
        tier *const s = &t->slots[i];
        if (atomic_load_explicit(&t->hashes[i], memory_order_relaxed) != hash)
            continue;
        atomic_fetch_add(&s->counters[index].calls, 1); /* before the kernel is read, for all threads */
        *out = atomic_load(&s->kernel);
        if (*out != NULL && same_dims(t, s->dims, dims))
            return s;
        leave(s, index);
    }
    return NULL;
}

/* --- counting calls ----------------------------------------------------------------------------------------------- */

/* The word for this hash: its own, or the least one, whose sizes give way where their count is 0; else NULL. */
static atomic_ullong *word_of(rt_tiers *t, uint64_t hash)
{
    atomic_ullong *const set = t->counts[hash % SETS];
    uint32_t least = 0;

    for (uint32_t i = 0; i < WAYS; i++) {
        if (atomic_load_explicit(&set[i], memory_order_relaxed) >> TAG_SHIFT == hash >> TAG_SHIFT)
            return &set[i];
        if ((atomic_load_explicit(&set[i], memory_order_relaxed) & COUNT_MASK) <
            (atomic_load_explicit(&set[least], memory_order_relaxed) & COUNT_MASK))
            least = i;
    }
    const uint64_t word = atomic_load_explicit(&set[least], memory_order_relaxed);
    if ((word & COUNT_MASK) != 0) {
        atomic_store_explicit(&set[least], word - 1, memory_order_relaxed);
        return NULL;
    }
    atomic_store_explicit(&set[least], hash >> TAG_SHIFT << TAG_SHIFT, memory_order_relaxed);
    return &set[least];
}

/* Counts a call; true: these sizes are wanted from now on. */
static bool count_call(rt_tiers *t, uint64_t hash)
{
    atomic_ullong *const at = word_of(t, hash);
    unsigned long long word;

    if (at == NULL)
        return false;
    word = atomic_load_explicit(at, memory_order_relaxed);
    if ((word & WANTED) != 0)
        return false;
    if ((word & COUNT_MASK) + 1 < t->calls) {
        atomic_store_explicit(at, word + 1, memory_order_relaxed);
        return false;
    }
    return atomic_compare_exchange_strong_explicit(at, &word, (word & ~COUNT_MASK) | WANTED, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* Calls of these sizes count again, from 0. */
static void count_anew(rt_tiers *t, uint64_t hash)
{
    atomic_ullong *const at = word_of(t, hash);

    if (at != NULL)
        atomic_store_explicit(at, hash >> TAG_SHIFT << TAG_SHIFT, memory_order_relaxed);
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static bool workspace_fits(const opjit_kernel *fixed, const opjit_call *call)
{
    uint64_t needed;

    return call->workspace.data == NULL ||
           (opjit_rt_workspace_needed(atomic_load(&fixed->active), call_workers(call), &needed) &&
            needed <= call->workspace.bytes);
}

/* Whether one of these sizes could not be made, or so many others that no more are tried. */
static bool has_failed(rt_tiers *t, const uint64_t *dims)
{
    const uint64_t hash = hash_of(t, dims);
    const uint32_t count = atomic_load(&t->failed_count);
    bool failed = count == FAILED_MOST;

    for (uint32_t i = 0; i < count; i++)
        failed = failed || atomic_load(&t->failed[i]) == hash;
    return failed;
}

static bool call_one(const opjit_kernel *k, const opjit_call *call, const uint64_t *dims, opjit_status *out_status,
                     opjit_error *error)
{
    rt_tiers *const t = opjit_rt_kernel_tiers(k);
    const uint64_t hash = hash_of(t, dims);
    const uint32_t index = counter_of_thread();
    opjit_kernel *fixed;
    tier *const s = enter(t, dims, hash, index, &fixed);

    if (s == NULL) {
        if (count_call(t, hash) && !has_failed(t, dims) && !t->desc.want(t->desc.user, t, dims, t->dims))
            count_anew(t, hash);
        return false;
    }
    const bool fits = workspace_fits(fixed, call);
    if (fits) {
        opjit_call own = *call;
        own.dims = NULL;
        own.dim_count = 0;
        const uint32_t now = 2 * atomic_load_explicit(&t->made, memory_order_relaxed) + 1;
        if (atomic_load_explicit(&s->used, memory_order_relaxed) != now)
            atomic_store_explicit(&s->used, now, memory_order_relaxed);
        atomic_fetch_add_explicit(&t->core->tiers.calls[index].count, 1, memory_order_relaxed);
        *out_status = opjit_kernel_call(fixed, &own, error);
    }
    leave(s, index);
    return fits;
}

/* --- making, with the lock held ----------------------------------------------------------------------------------- */

static bool has_calls(const tier *s)
{
    for (uint32_t i = 0; i < COUNTERS; i++)
        if (atomic_load(&s->counters[i].calls) != 0)
            return true;
    return false;
}

/* Whether calls with these sizes of k, which are checked against k, may run fixed instead. */
static bool is_fit(const opjit_kernel *k, const uint64_t *dims, const opjit_kernel *fixed)
{
    const program *const p = atomic_load(&k->active);
    const opjit_size_form *const forms = rt_meta_forms(p->meta);
    const rt_space space = rt_meta_space(p->meta);

    if (fixed->dims != 0 || fixed->params != k->params || fixed->inputs != k->inputs ||
        fixed->bindings != k->bindings || fixed->buffers != k->buffers)
        return false;
    for (uint32_t i = 0; i < k->buffers; i++) {
        const slot *const own = &k->slots[i], *const other = &fixed->slots[i];
        if (i < k->bindings) {
            if (other->bytes == 0 ||
                other->bytes != opjit_rt_form_value(&space, &forms[i * OPJIT_BUFFER_FORMS], dims) ||
                (other->align_mask & ~own->align_mask) != 0)
                return false;
        } else if (other->bytes != own->bytes || (other->constant != own->constant && own->bytes != 0 &&
                                                  memcmp(other->constant, own->constant, (size_t)own->bytes) != 0)) {
            return false;
        }
    }
    return true;
}

/* Takes the kernel out of the slot where no call is in it; NULL: one is.  What calls it is counted again. */
static opjit_kernel *take_out(rt_tiers *t, uint32_t index)
{
    tier *const s = &t->slots[index];
    opjit_kernel *const old = atomic_exchange(&s->kernel, NULL); /* before the counters are read, for all threads */

    if (has_calls(s)) {
        atomic_store(&s->kernel, old);
        return NULL;
    }
    count_anew(t, atomic_load_explicit(&t->hashes[index], memory_order_relaxed));
    atomic_store_explicit(&t->hashes[index], 0, memory_order_relaxed);
    return old;
}

/* A slot without a kernel, of *out_old where that had to go; RT_TIERS_MOST: calls are in all of them. */
static uint32_t make_room(rt_tiers *t, opjit_kernel **out_old)
{
    uint64_t tried = 0;

    for (uint32_t i = 0; i < t->most; i++)
        if (atomic_load(&t->slots[i].kernel) == NULL)
            return i;
    for (uint32_t round = 0; round < t->most; round++) {
        uint32_t oldest = RT_TIERS_MOST;
        for (uint32_t i = 0; i < t->most; i++)
            if ((tried >> i & 1) == 0 &&
                (oldest == RT_TIERS_MOST || atomic_load(&t->slots[i].used) < atomic_load(&t->slots[oldest].used)))
                oldest = i;
        tried |= UINT64_C(1) << oldest;
        *out_old = take_out(t, oldest);
        if (*out_old != NULL)
            return oldest;
    }
    return RT_TIERS_MOST;
}

static opjit_status put_locked(rt_tiers *t, const uint64_t *dims, opjit_kernel *fixed, opjit_kernel **out_old,
                               opjit_error *error)
{
    if (t->kernel == NULL)
        return opjit_rt_later(error,
                              opjit_rt_refuse(error, OPJIT_UNAVAILABLE, "{!argument}the {kernel} was {released}"));
    if (!is_fit(t->kernel, dims, fixed))
        return opjit_rt_refuse(error, OPJIT_INTERNAL,
                               "{!argument}{kernel}: the one of these sizes has {other buffers or constants}");
    const uint32_t index = make_room(t, out_old);
    if (index == RT_TIERS_MOST)
        return opjit_rt_later(
            error, opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                                   "{!argument}{kernel}: calls are {in all of its %u kernels} of one size", t->most));
    tier *const s = &t->slots[index];
    memcpy(s->dims, dims, t->dims * sizeof *dims);
    atomic_store(&s->used, 2 * (atomic_fetch_add(&t->made, 1) + 1));
    atomic_store(&s->kernel, fixed);
    atomic_store(&t->hashes[index], hash_of(t, dims)); /* calls find it from here on */
    return OPJIT_OK;
}

/* Makes *kernel, of which the caller has a reference, one that nobody else has: with the code and the constants of one
 * that a cache may have, too. */
static opjit_status own(opjit_kernel **kernel, opjit_error *error)
{
    opjit_kernel *const shared = *kernel;
    const uint32_t count = shared->buffers - shared->bindings;
    const size_t room = (count + (size_t)1) * sizeof(void *);
    void **constants;

    if (shared->base != NULL) /* it is bound to constants, which makes it the caller's own */
        return OPJIT_OK;
    constants = opjit_rt_allocate(&shared->core->allocator, room, alignof(void *));
    if (constants == NULL)
        return opjit_rt_no_memory(error);
    for (uint32_t i = 0; i < count; i++)
        constants[i] = shared->slots[shared->bindings + i].constant;
    opjit_kernel *bound;
    const opjit_status status = opjit_rt_kernel_bind(shared, constants, NULL, NULL, NULL, &bound, error);
    opjit_rt_release(&shared->core->allocator, constants, room);
    if (status == OPJIT_OK) {
        opjit_kernel_release(shared);
        *kernel = bound;
    }
    return status;
}

opjit_status opjit_rt_tiers_put(rt_tiers *t, const uint64_t *dims, opjit_kernel *fixed, opjit_error *error)
{
    opjit_kernel *old = NULL;
    opjit_status status = own(&fixed, error);

    if (status == OPJIT_OK) {
        for (uint32_t i = 0; i < fixed->bindings; i++)
            fixed->slots[i].alias_inputs = 0; /* the tiers' kernel refuses such calls, so they always are */
        opjit_rt_lock(&t->lock);
        status = put_locked(t, dims, fixed, &old, error);
        opjit_rt_unlock(&t->lock);
    }
    if (status == OPJIT_OK)
        atomic_fetch_add(&t->core->tiers.made, 1);
    else
        opjit_kernel_release(fixed);
    if (old != NULL)
        atomic_fetch_add(&t->core->tiers.evictions, 1);
    opjit_kernel_release(old);
    return status;
}

void opjit_rt_tiers_give_up(rt_tiers *t, const uint64_t *dims, bool is_final)
{
    const uint64_t hash = hash_of(t, dims);

    if (!is_final) {
        count_anew(t, hash);
        return;
    }
    opjit_rt_lock(&t->lock);
    const uint32_t count = atomic_load(&t->failed_count);
    if (!has_failed(t, dims)) {
        atomic_store(&t->failed[count], hash);
        atomic_store(&t->failed_count, count + 1);
    }
    opjit_rt_unlock(&t->lock);
    atomic_fetch_add(&t->core->tiers.failures, 1);
}

bool opjit_rt_tiers_have(rt_tiers *t, const uint64_t *dims)
{
    const uint32_t index = counter_of_thread();
    opjit_kernel *kernel;
    tier *const s = enter(t, dims, hash_of(t, dims), index, &kernel);

    if (s != NULL)
        leave(s, index);
    return s != NULL;
}

/* --- life --------------------------------------------------------------------------------------------------------- */

rt_tiers *opjit_rt_kernel_tiers(const opjit_kernel *kernel)
{
    return (rt_tiers *)(void *)kernel->tiers; /* the base is the first member */
}

void *opjit_rt_tiers_user(const rt_tiers *t)
{
    return t->desc.user;
}

void opjit_rt_tiers_retain(rt_tiers *t)
{
    atomic_fetch_add_explicit(&t->references, 1, memory_order_relaxed);
}

static void tiers_free(rt_tiers *t)
{
    rt_core *const core = t->core;

    opjit_rt_release(&core->allocator, t->slots, t->slots == NULL ? 0 : t->most * sizeof *t->slots);
    opjit_rt_release(&core->allocator, t, sizeof *t);
    opjit_rt_core_release(core);
}

void opjit_rt_tiers_release(rt_tiers *t)
{
    if (atomic_fetch_sub_explicit(&t->references, 1, memory_order_acq_rel) != 1)
        return;
    t->desc.destroy(t->desc.user);
    tiers_free(t);
}

static void close(rt_tiers_base *base)
{
    rt_tiers *const t = (rt_tiers *)(void *)base;

    opjit_rt_lock(&t->lock);
    t->kernel = NULL;
    opjit_rt_unlock(&t->lock);
    for (uint32_t i = 0; i < t->most; i++)
        opjit_kernel_release(atomic_exchange(&t->slots[i].kernel, NULL)); /* nobody calls the kernel any more */
    t->desc.close(t->desc.user);
    opjit_rt_tiers_release(t);
}

static opjit_status tiers_create(rt_core *core, const rt_tiers_desc *desc, rt_tiers **out, opjit_error *error)
{
    rt_tiers *t = opjit_rt_allocate(&core->allocator, sizeof *t, alignof(rt_tiers));

    if (t == NULL)
        return opjit_rt_no_memory(error);
    memset(t, 0, sizeof *t);
    atomic_init(&t->references, 1);
    opjit_rt_lock_init(&t->lock, &core->process);
    t->core = opjit_rt_core_retain(core);
    t->base = (rt_tiers_base){ call_one, close };
    t->desc = *desc;
    t->most = desc->most;
    t->calls = desc->calls;
    t->slots = opjit_rt_allocate(&core->allocator, t->most * sizeof *t->slots, alignof(tier));
    if (t->slots == NULL) {
        tiers_free(t);
        return opjit_rt_no_memory(error);
    }
    memset(t->slots, 0, t->most * sizeof *t->slots);
    *out = t;
    return OPJIT_OK;
}

opjit_status opjit_rt_kernel_set_tiers(opjit_kernel **kernel, const rt_tiers_desc *desc, opjit_error *error)
{
    rt_tiers *t = NULL;

    TRY(own(kernel, error));
    TRY(tiers_create((*kernel)->core, desc, &t, error));
    t->dims = (*kernel)->dims;
    t->kernel = *kernel;
    (*kernel)->tiers = &t->base;
    return OPJIT_OK;
}
