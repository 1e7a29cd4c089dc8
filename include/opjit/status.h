/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/status.h - status codes, the error record and the small types that every part shares.
 * Codes are frozen: a number is never reused. */
#ifndef OPJIT_STATUS_H
#define OPJIT_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define OPJIT_API
#elif defined(__GNUC__)
#define OPJIT_API __attribute__((visibility("default")))
#else
#define OPJIT_API
#endif

#if defined(__cplusplus) && __cplusplus >= 201703L
#define OPJIT_NODISCARD [[nodiscard]]
#elif defined(__GNUC__)
#define OPJIT_NODISCARD __attribute__((warn_unused_result))
#else
#define OPJIT_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum opjit_status {
    OPJIT_OK = 0,
    OPJIT_INVALID_ARGUMENT = 1, /* the caller's value is wrong; the message says which one and what is allowed */
    OPJIT_UNSUPPORTED = 2,      /* legal, but not at this feature level, target or build */
    OPJIT_OUT_OF_MEMORY = 3,
    OPJIT_IO = 4,
    OPJIT_CORRUPT = 5,          /* a file or image is damaged */
    OPJIT_UNAVAILABLE = 6,      /* no codegen library, no device, no executable memory */
    OPJIT_CODEGEN = 7,          /* LLVM refused, or made something that may not be loaded */
    OPJIT_INTERNAL = 8,         /* a broken invariant of opjit itself: please report it */
    OPJIT_CANCELLED = 9,
    OPJIT_LIMIT = 10,           /* a stated bound of opjit was reached */
    OPJIT_NOT_FOUND = 11
} opjit_status;

/* Bytes of opjit_error.message, final NUL included. */
#define OPJIT_ERROR_MESSAGE_SIZE 256

/* Caller-owned, on the stack as a rule; may be NULL wherever it is taken.  Nothing is ever allocated for it.
 * message is one line without a final newline: operator, field, the value given, what is allowed. */
typedef struct opjit_error {
    opjit_status status;
    char message[OPJIT_ERROR_MESSAGE_SIZE];
} opjit_error;

/* The constant's name without its prefix, e.g. "INVALID_ARGUMENT"; "unknown" for any other number. */
OPJIT_API const char *opjit_status_name(opjit_status status);

/* Memory hook.  allocate returns NULL when there is no memory; alignment is a power of two.  release is told the
 * size that was asked for and is never called with NULL.  Both must be callable from any thread.  LLVM's own memory
 * and executable mappings do not go through it. */
typedef struct opjit_allocator {
    void *user;
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *memory, size_t size);
} opjit_allocator;

#ifdef __cplusplus
}
#endif
#endif
