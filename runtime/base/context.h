/* SPDX-License-Identifier: Apache-2.0 */
/* context.h - the context: allocator, target, sink, memory cache; and what the frontend hangs onto it.
 * Kernels and operators outlive contexts, so what they share (allocator, sink, debug switches) lives in a reference
 * counted core that each of them retains. */
#ifndef OPJIT_RUNTIME_BASE_CONTEXT_H
#define OPJIT_RUNTIME_BASE_CONTEXT_H

#include <stdalign.h>
#include <stdatomic.h>

#include <opjit/opjit.h>

#include "runtime/base/base.h"
#include "runtime/base/lock.h"
#include "runtime/cache/constants.h"
#include "runtime/device/device.h"
#include "runtime/image/image.h"
#include "runtime/target/target.h"

/* References of a core that come and go all the time, operators', are counted apart for different threads: in one
 * counter they would take its cache line from each other.  The context holds one of each counter, so that none of them
 * is zero while new ones are taken; whoever brings one to zero later gives up one of `references`. */
enum { RT_CORE_COUNTERS = 16 };
typedef struct rt_core_counter {
    alignas(64) atomic_uint references;
} rt_core_counter;

struct rt_core;
/* Compiles of a context that are under way (frontend/compile/async.c). */
typedef struct rt_jobs {
    rt_lock lock; /* of what follows */
    struct opjit_job *first;
    uint32_t list; /* counts the lists that there were, from 1: a child of fork may have to begin a new one */
    void (*close)(struct rt_core *core); /* ends all jobs; NULL: there never was one */
} rt_jobs;

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
    char *dump, *dump_dir;    /* OPJIT_DUMP, OPJIT_DUMP_DIR, or NULL; owned */
    char *codegen_path;       /* option, else OPJIT_CODEGEN, or NULL; owned.  Kernels from the disk cache need it for their peak version */
    atomic_int dump_kind_warned, dump_folder_warned;  /* OPJIT_DUMP, OPJIT_DUMP_DIR: that they are ignored was said */
    rt_disk *disk;            /* NULL: none; owned.  Kernels keep their peak versions there, after the context, too */
    rt_code_pages pages;
    rt_constants constants; /* that kernels share */
    rt_jobs jobs;
    const rt_devices *devices; /* how to do things with it */
    rt_device *device;        /* NULL: none; owned */
    rt_target device_target;  /* the best that it runs */
} rt_core;

rt_core *opjit_rt_core_retain(rt_core *core);
void opjit_rt_core_release(rt_core *core);
/* The same for what is made and gone within a microsecond, while the context lives.  Returns the counter, for leave. */
uint32_t opjit_rt_core_enter(rt_core *core);
void opjit_rt_core_leave(rt_core *core, uint32_t counter);
/* Whether an event would reach anyone: skip formatting if not. */
static inline bool rt_wants_events(const rt_core *core) { return core->event != NULL || core->verbose; }
/* Sends *event, in which texts may be NULL, with "opjit,<format...>" as its line; does nothing where nobody listens. */
void opjit_rt_event(rt_core *core, const opjit_event *event, const char *format, ...) PRINTF_LIKE(3, 4);
#define RT_WARNING(of, what, why) \
    &(const opjit_event){ .kind = OPJIT_EVENT_WARNING, .subject = (of), .name = (what), .reason = (why) }
/* For opjit_event.compile_id. */
static inline uint64_t rt_next_compile(rt_core *core) { return atomic_fetch_add(&core->compiles, 1) + 1; }

/* DirectML's feature levels in ascending order; 0 behind the last. */
uint32_t opjit_rt_feature_level(uint32_t index);
/* Refuses what is neither one of them nor 0. */
opjit_status opjit_rt_feature_level_check(uint32_t level, opjit_error *error);

/* Whether code for *target runs on this CPU, or for a GPU's target on the core's device (core may be NULL);
 * UNSUPPORTED, and what is missing. */
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
