/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/cache.h - control of the caches: which kernels they have, whether these are damaged, which are pinned, and
 * which are dropped.  Compiling needs nothing of it: opjit_compile_operator and opjit_compile_graph use the caches by
 * themselves.
 *
 *     opjit_cache_key key;
 *     opjit_kernel_get_cache_key(kernel, &key, &error);
 *     opjit_cache_pin(context, &key, &error);                              // stays, however full the cache is
 *     opjit_cache_enumerate(context, OPJIT_CACHE_DISK, show, NULL, &error);
 *     opjit_cache_drop(context, OPJIT_CACHE_MEMORY | OPJIT_CACHE_DISK, &key, NULL, &error);
 *
 * All of this is in libopjit.  libopjit-runtime, which compiles nothing, has none of it.
 *
 * A context has a memory cache, and a disk cache where opjit_context_options.cache_dir names a folder.  Without one
 * the functions here find nothing on disk, which is no error.
 *
 * Kernels that the memory cache drops stay valid for whoever holds them.  Bound constants (graphs' constants above
 * 4 KiB) are no part of a cached kernel: kernels of one context that have equal ones share one copy of them,
 * whichever graph they come from, and the last of these kernels frees it.
 *
 * Each comment ends with [threads, since].  A child of fork has the memory cache of its parent, pins included, and
 * shares the folder with it. */
#ifndef OPJIT_CACHE_H
#define OPJIT_CACHE_H

#include <opjit/opjit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- keys --------------------------------------------------------------------------------------------------------- */
/* Names what a kernel was compiled from: the canonical graph, options, target, and the build of opjit and LLVM.
 * Opaque; equal keys have equal halves.  The same in every process and on every machine with the same build, and
 * the name of the kernel's file in the disk cache. */
typedef struct opjit_cache_key {
    uint64_t hi, lo; /* halves of a hash of 128 bits */
} opjit_cache_key;

/* Bytes of a key as text, NUL included: 32 digits of "0123456789abcdef". */
#define OPJIT_CACHE_KEY_TEXT_SIZE 33u

/* Writes the key's digits and a NUL to text, which has OPJIT_CACHE_KEY_TEXT_SIZE bytes. [any thread, 0.1] */
OPJIT_API void opjit_cache_key_to_text(const opjit_cache_key *key, char *text);
/* The key whose digits text has.  INVALID_ARGUMENT: text isn't 32 lower-case hexadecimal digits. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_key_from_text(const char *text, opjit_cache_key *out_key,
                                                                 opjit_error *error);
/* The key that the kernel was compiled for; kernels that differ in bound constants alone have one key.  A kernel
 * has it whether or not it is in a cache.  NOT_FOUND: a kernel of a library or of opjit_kernel_load has none.
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_kernel_get_cache_key(const opjit_kernel *kernel, opjit_cache_key *out_key,
                                                                  opjit_error *error);

/* --- enumerating -------------------------------------------------------------------------------------------------- */
#define OPJIT_CACHE_MEMORY 1u
#define OPJIT_CACHE_DISK 2u

#define OPJIT_CACHE_ENTRY_PINNED 1u      /* MEMORY: by opjit_cache_pin */
#define OPJIT_CACHE_ENTRY_INTERPRETED 2u /* MEMORY: runs in the IR interpreter */
#define OPJIT_CACHE_ENTRY_FUNCTION 4u    /* DISK: no kernel, but code that kernels share (see below) */
#define OPJIT_CACHE_ENTRY_MODEL 8u       /* DISK: no kernel, but what is known of a model (see below) */

/* One kernel in one cache.
 * Of the kernels that it compiles, opjit keeps apart what takes LLVM longest: inner loops of products, and
 * mathematical functions.  Kernels of other shapes and other models then are compiled sooner, by other processes, too:
 * each such function has a file of its own in the disk cache, and is bounded, enumerated, verified and dropped like a
 * kernel.  So is what opjit keeps of a model (opjit/model.h), so that it is not read again: "reading", what the file
 * said, and "weights", what a kernel made of them; and "secret", a random number without which nobody can make a file
 * that is taken for another model's. */
typedef struct opjit_cache_entry {
    uint32_t struct_size;     /* bytes that the library filled */
    uint32_t where;           /* OPJIT_CACHE_MEMORY or OPJIT_CACHE_DISK */
    opjit_cache_key key;      /* the kernel's */
    const char *name;         /* the kernel's or the function's, or which of a model's; "" where damaged is set */
    const char *target;       /* canonical target; "" where damaged is set, and of what is no kernel */
    const char *damaged;      /* what is wrong: "its checksum is wrong"; NULL: nothing.  In memory only verify looks */
    uint64_t bytes;           /* MEMORY: all that the kernel holds; DISK: of the file */
    int64_t used;             /* DISK: when it was last used, to a minute, in seconds since 1970; MEMORY: 0 */
    opjit_kernel *kernel;     /* MEMORY: the kernel, to be retained by whoever keeps it; DISK: NULL */
    uint32_t flags;           /* OPJIT_CACHE_ENTRY_... */
    uint32_t level;           /* opjit_level of the code; 0 where damaged is set, and of what is no kernel */
} opjit_cache_entry;

/* Called once for each kernel; *entry and what it points to are valid during the call.  false ends the
 * enumeration.  Holds no lock, and may call every function of opjit. [calling thread, 0.1] */
typedef bool (*opjit_cache_visit_fn)(void *user, const opjit_cache_entry *entry);

/* Calls visit for all kernels that were there at the beginning: of the memory cache (where: OPJIT_CACHE_MEMORY), in
 * no particular order, then of the disk cache (OPJIT_CACHE_DISK), in the order of their keys.  Each file is read
 * and checked as a use of it would; damaged ones stay where they are.  Kernels that are being compiled are left out.
 * Errors: INVALID_ARGUMENT (where is neither one of the two nor both), IO (the folder is not this user's alone, or
 * can't be read).  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_enumerate(opjit_context *context, uint32_t where,
                                                             opjit_cache_visit_fn visit, void *user,
                                                             opjit_error *error);

/* Checks kernels, those with *key, or all (key NULL): in memory their images, checksums included (of interpreted
 * kernels the metadata); on disk the files as a use of them would, and that they are the user's alone.  Calls visit
 * (may be NULL) for each of them; entry->damaged says what is wrong, or is NULL.  Removes nothing: opjit_cache_drop
 * does.
 * Errors: CORRUPT (some are damaged, and the message says how many of how many), NOT_FOUND (there is no kernel with
 * *key), INVALID_ARGUMENT and IO as above.  [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_verify(opjit_context *context, uint32_t where,
                                                          const opjit_cache_key *key, opjit_cache_visit_fn visit,
                                                          void *user, opjit_error *error);

/* --- pinning and dropping ---------------------------------------------------------------------------------------- */
/* Keeps a kernel in the memory cache until it is unpinned as often as it was pinned, or dropped: neither the bound
 * (opjit_context_options.cache_bytes) nor opjit_cache_clear removes it.  Its bytes count, so that pinned kernels leave
 * the others less room.  Finds the kernel by its key, as unpin, drop and verify do, in a time that does not depend on
 * how many there are.
 * Errors: NOT_FOUND (it isn't in the memory cache; a kernel that is larger than the bound never is).
 * [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_pin(opjit_context *context, const opjit_cache_key *key,
                                                       opjit_error *error);
/* NOT_FOUND: it isn't in the memory cache.  INVALID_ARGUMENT: it isn't pinned. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_unpin(opjit_context *context, const opjit_cache_key *key,
                                                         opjit_error *error);

/* Removes the kernel with *key, or all (key NULL), pinned ones too, from the caches that where names.  *out_count
 * (may be NULL): how many went; none is no error.  What is being compiled meanwhile may be there afterwards.  IO: a
 * file can't be removed, or the folder is not this user's alone; what can go is gone. [any thread, 0.1] */
OPJIT_API OPJIT_NODISCARD opjit_status opjit_cache_drop(opjit_context *context, uint32_t where,
                                                        const opjit_cache_key *key, uint32_t *out_count,
                                                        opjit_error *error);

#ifdef __cplusplus
}
#endif
#endif
