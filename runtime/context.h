/* context.h - the context: allocator, target, sink, memory cache; and what the frontend hangs onto it.
 * Kernels and operators outlive contexts, so what they share (allocator, sink, debug switches) lives in a reference
 * counted core that each of them retains. */
#ifndef OPJIT_RUNTIME_CONTEXT_H
#define OPJIT_RUNTIME_CONTEXT_H

#include <stdatomic.h>

#include <opjit/opjit.h>

#include "runtime/base.h"
#include "runtime/target.h"

typedef struct rt_core {
    atomic_uint references;
    opjit_allocator allocator;
    opjit_event_fn event;     /* NULL: no sink */
    void *event_user;
    bool verbose;             /* OPJIT_VERBOSE=1 and no sink: lines go to standard error */
    uint32_t flags;           /* OPJIT_CONTEXT_..., environment included */
} rt_core;

rt_core *opjit_rt_core_retain(rt_core *core);
void opjit_rt_core_release(rt_core *core);
/* Whether an event would reach anyone: skip formatting if not. */
static inline bool rt_wants_events(const rt_core *core) { return core->event != NULL || core->verbose; }
/* Sends "opjit,<format...>"; does nothing where nobody listens. */
void opjit_rt_event(rt_core *core, opjit_event_kind kind, const char *format, ...) PRINTF_LIKE(3, 4);

typedef struct rt_cache rt_cache;

struct opjit_context {
    rt_core *core;
    rt_target target;
    uint32_t feature_level;
    rt_cache *cache;
    char *codegen_path;       /* option, or NULL; owned */
    char *cache_dir;          /* owned */
};

/* opjit_context_create, _destroy, _target, opjit_cache_get_stats and _clear are in context.c. */

#endif
