/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - the context: target, feature level, memory cache; and its core.  Kernels and operators may outlive their
 * context, so what they share with it (allocator, event sink, debug switches, device) is in a reference-counted core
 * that each of them retains. */
#ifndef OPJIT_RUNTIME_BASE_CONTEXT_H
#define OPJIT_RUNTIME_BASE_CONTEXT_H

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>

#include <opjit/opjit.h>

#include "runtime/base/base.h"
#include "runtime/base/lock.h"
#include "runtime/base/mapped.h"
#include "runtime/cache/constants.h"
#include "runtime/device/device.h"
#include "runtime/image/image.h"
#include "runtime/target/target.h"

/* Operators take and give up references of the core so often that threads would contend for one counter's cache line.
 * So each thread uses one of several counters.  Each counter above zero holds one of the core's `references`, which the
 * thread that brings it to zero releases.  While the context lives, it holds one reference in every counter, so that no
 * counter in use is zero. */
enum { RT_CORE_COUNTERS = 16 };
typedef struct rt_core_counter {
    alignas(64) atomic_uint references;
} rt_core_counter;

/* A hash of the thread's id, which is the address of its control block: the product spreads all of its bits to the
 * upper half. */
static inline uint32_t rt_thread_hash(void)
{
    return (uint32_t)((uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* What opjit_cache_stats says of kernels of one size (runtime/call/tiers.c).  Threads count their calls apart, as
 * they do references. */
enum { RT_TIER_COUNTERS = 8 };
typedef struct rt_tier_counts {
    struct {
        alignas(64) atomic_ullong count;
    } calls[RT_TIER_COUNTERS];
    atomic_ullong made, evictions, failures;
} rt_tier_counts;

struct rt_core;
/* Compiles of a context that are under way (frontend/compile/async.c). */
typedef struct rt_jobs {
    rt_lock lock; /* of what follows */
    struct opjit_job *first;
    uint32_t list; /* number of the list, from 1; a child of fork begins a new one if it can't take over the old one */
    void (*close)(struct rt_core *core); /* ends all jobs; NULL: no job was ever made */
    bool closed; /* the context goes: no more jobs */
} rt_jobs;

/* Memory that no call uses; its own first bytes say how much it is. */
typedef struct rt_spare {
    size_t bytes;
} rt_spare;

typedef struct rt_disk rt_disk;
typedef struct rt_core {
    rt_core_counter counters[RT_CORE_COUNTERS];
    atomic_uint references; /* kernels', caches', the context's, and one for each counter above zero */
    rt_process process;
    opjit_allocator allocator;
    opjit_event_fn event;     /* NULL: no sink */
    void *event_user;
    atomic_ullong compiles;   /* ids given to compiles so far; only where events are wanted */
    bool verbose;             /* OPJIT_VERBOSE=1 and no sink: lines go to standard error */
    uint32_t flags;           /* OPJIT_CONTEXT_..., environment included */
    bool verify;              /* OPJIT_VERIFY=1: IR is verified after every pass (always where assertions are on) */
    bool llvm_only;           /* OPJIT_DIRECT=0: all code is LLVM's */
    char *dump, *dump_dir;    /* OPJIT_DUMP, OPJIT_DUMP_DIR, or NULL; owned */
    char *codegen_path;       /* option, else OPJIT_CODEGEN, or NULL; owned.  Kernels that come from the disk cache load
                                 the library when their peak version is made */
    atomic_int dump_kind_warned, dump_folder_warned; /* the event sink was told that OPJIT_DUMP, OPJIT_DUMP_DIR are
                                                        ignored */
    rt_disk *disk;            /* NULL: none; owned.  Kernels store their peak versions here, even without the context */
    rt_code_pages pages;
    rt_constants constants;   /* that kernels share */
    rt_jobs jobs;
    rt_mapped_files mapped;   /* that models have their weights in */
    rt_tier_counts tiers;
    _Atomic(rt_spare *) spare; /* the workspace for the next call that brings none, or NULL; owned */
    const rt_devices *devices; /* the functions for `device` */
    rt_device *device;        /* NULL: none; owned */
    rt_target device_target;  /* the best target that the device runs */
} rt_core;

rt_core *opjit_rt_core_retain(rt_core *core);
void opjit_rt_core_release(rt_core *core);
/* The same for short-lived objects, made and released while the context lives.  Returns the counter that
 * opjit_rt_core_leave takes. */
uint32_t opjit_rt_core_enter(rt_core *core);
void opjit_rt_core_leave(rt_core *core, uint32_t counter);
/* At least *bytes, which are not 0, of memory for a call, aligned for workspaces: the spare one where it is large
 * enough, else new memory; *bytes is then how much it is.  NULL: out of memory.  Two calls never get the same. */
void *opjit_rt_workspace_take(rt_core *core, size_t *bytes);
/* Gives back what was taken, as the spare one where there is none and this is no larger than RT_SPARE_MOST. */
enum { RT_SPARE_MOST = 1 << 30 };
void opjit_rt_workspace_give(rt_core *core, void *memory, size_t bytes);
/* Frees the spare one. */
void opjit_rt_workspace_drop(rt_core *core);
/* Whether anybody receives events; if not, callers skip making them. */
static inline bool rt_wants_events(const rt_core *core) { return core->event != NULL || core->verbose; }
/* Sends *event, whose texts may be NULL, with "opjit,<format...>" as its line; does nothing if nobody receives it. */
void opjit_rt_event(rt_core *core, const opjit_event *event, const char *format, ...) PRINTF_LIKE(3, 4);
#define RT_WARNING(of, what, why) \
    &(const opjit_event){ .kind = OPJIT_EVENT_WARNING, .subject = (of), .name = (what), .reason = (why) }
/* For opjit_event.compile_id. */
static inline uint64_t rt_next_compile(rt_core *core) { return atomic_fetch_add(&core->compiles, 1) + 1; }

/* DirectML's feature levels in ascending order; 0 after the last. */
uint32_t opjit_rt_feature_level(uint32_t index);
/* Refuses a level that is neither one of them nor 0. */
opjit_status opjit_rt_feature_level_check(uint32_t level, opjit_error *error);

/* OK if code for *target runs on this CPU or, for a GPU's target, on the core's device (core may be NULL); else
 * UNSUPPORTED with what is missing. */
opjit_status opjit_rt_core_runs(const rt_core *core, const rt_target *target, opjit_error *error);

typedef struct rt_cache rt_cache;

struct opjit_context {
    rt_core *core;
    rt_target target;
    uint32_t feature_level;
    rt_cache *cache;
};

/* opjit_context_create, _destroy and _target are in context.c. */

#endif
