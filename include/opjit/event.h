/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/event.h - events that a host may receive: kernels compiled, found, loaded and dropped, and what was ignored.
 * Part of opjit/opjit.h; a host gives its sink in opjit_context_options.event.  Without a sink, and
 * without OPJIT_VERBOSE=1, an event costs nothing: no text, no clock, no memory. */
#ifndef OPJIT_EVENT_H
#define OPJIT_EVENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum opjit_event_kind {
    OPJIT_EVENT_COMPILE = 1, /* a kernel was compiled; sent when it is done */
    OPJIT_EVENT_HIT = 2,     /* found in the memory or disk cache */
    OPJIT_EVENT_MISS = 3,    /* not in the memory cache: it will be read from disk or compiled */
    OPJIT_EVENT_LOAD = 4,    /* code was mapped executable or brought to a device, a library was loaded */
    OPJIT_EVENT_EVICT = 5,   /* dropped from a cache for lack of room */
    OPJIT_EVENT_WARNING = 6  /* something was ignored or replaced: a damaged cache file, a missing codegen library */
} opjit_event_kind;

/* What an event is about. */
typedef enum opjit_event_subject {
    OPJIT_EVENT_OTHER = 0,
    OPJIT_EVENT_MEMORY_CACHE = 1, /* HIT, MISS, EVICT */
    OPJIT_EVENT_DISK_CACHE = 2,   /* HIT, EVICT, WARNING */
    OPJIT_EVENT_CODE = 3,         /* COMPILE, LOAD: machine code of a kernel */
    OPJIT_EVENT_INTERPRETED = 4,  /* COMPILE: a kernel for the IR interpreter.  WARNING: one runs there */
    OPJIT_EVENT_CODEGEN = 5,      /* LOAD: the codegen library */
    OPJIT_EVENT_LIBRARY = 6,      /* LOAD: a library of kernels */
    OPJIT_EVENT_DEVICE = 7,       /* LOAD: a kernel's code, on the context's device */
    OPJIT_EVENT_ARTIFACT = 8,     /* COMPILE: code of a kernel made ahead of time */
    OPJIT_EVENT_DEBUG = 9         /* WARNING: debuggers and profilers don't learn of a kernel */
} opjit_event_subject;

/* Everything is valid during the call only.  A number that says nothing of an event is 0, a text "".  What the kinds
 * fill in, subject, time_ns and line apart:
 *     COMPILE   name, target, level, key, compile_id, bytes, nodes, total_ms and its phases
 *     HIT       name, target, level, key; MEMORY_CACHE: bytes; DISK_CACHE: compile_id
 *     MISS      name, target, level, compile_id
 *     LOAD      name, bytes; CODE, DEVICE: target, level; CODE, CODEGEN: total_ms; CODE: key, compile_id
 *     EVICT     MEMORY_CACHE: name, target, level, key, bytes; DISK_CACHE: name, file_count
 *     WARNING   name, reason */
typedef struct opjit_event {
    uint32_t struct_size;     /* bytes that the library filled; fields behind them are not there */
    opjit_event_kind kind;    /* what happened */
    const char *line;         /* the same as one line, "opjit,compile,diagonal_matrix1,f32,512x512,...", printable,
                                 without newline */
    uint32_t subject;         /* opjit_event_subject */
    uint32_t level;           /* opjit_level */
    uint64_t compile_id;      /* the same for all events of one compile, from its MISS on; counts from 1 */
    uint64_t time_ns;         /* CLOCK_MONOTONIC when the event was sent; what took total_ms began so much before */
    uint64_t key_hi, key_lo;  /* opjit_cache_key of opjit/cache.h */
    const char *name;         /* of the kernel; MISS: "graph" or the operator; else the path or thing */
    const char *target;       /* canonical */
    uint64_t bytes;           /* of code; of a library's file; HIT, EVICT: all that the kernel holds */
    double total_ms;          /* milliseconds for all of it */
    double lower_ms, passes_ms, codegen_ms; /* its phases; the rest of the total lies between and after them */
    const char *const *nodes; /* what was compiled: labels of the nodes, or where they have none, operators */
    uint32_t node_count;      /* entries of nodes */
    uint32_t file_count;      /* EVICT, DISK_CACHE: how many */
    const char *reason;       /* WARNING: why */
} opjit_event;

/* An application's event callback.  It is called from the thread that caused the event, on several threads at once
 * where several cause events, and never under a lock that users of other kernels wait for.
 * It may call every function of opjit, with these exceptions: it may not destroy the context or release the last
 * reference to the operator or kernel that the interrupted function works with, and a request for the kernel whose
 * compiling it is told of is refused with INVALID_ARGUMENT.  It has to return: no longjmp, no C++ exception.
 * [any thread, 0.1] */
typedef void (*opjit_event_fn)(void *user, const opjit_event *event);

#ifdef __cplusplus
}
#endif
#endif
