/* SPDX-License-Identifier: Apache-2.0 */
/* opjit/status.h - status codes, the error record and the memory hook, which every other header stands on.
 * Codes and structures of this file are frozen: a number is never reused, and no structure grows. */
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
    OPJIT_INVALID_ARGUMENT = 1, /* the caller's value is wrong; the error says which one and what is allowed */
    OPJIT_UNSUPPORTED = 2,      /* legal, but not at this feature level, target or build */
    OPJIT_OUT_OF_MEMORY = 3,    /* the allocator gave none, or the system no mapping */
    OPJIT_IO = 4,               /* a file could not be read or written */
    OPJIT_CORRUPT = 5,          /* a file or image is damaged */
    OPJIT_UNAVAILABLE = 6,      /* no codegen library, no device, no executable memory */
    OPJIT_CODEGEN = 7,          /* LLVM refused, or made something that may not be loaded */
    OPJIT_INTERNAL = 8,         /* a broken invariant of opjit itself: please report it */
    OPJIT_CANCELLED = 9,        /* somebody who may do so ended the work: a custom operator, an executor */
    OPJIT_LIMIT = 10,           /* a stated bound of opjit was reached */
    OPJIT_NOT_FOUND = 11        /* there is nothing of that name */
} opjit_status;

/* The constant's name without its prefix, e.g. "INVALID_ARGUMENT"; "unknown" for any other number.  A static string.
 * [any thread, 0.1] */
OPJIT_API const char *opjit_status_name(opjit_status status);

/* Bytes of the texts of opjit_error, final NUL included. */
#define OPJIT_ERROR_MESSAGE_SIZE 256
#define OPJIT_ERROR_OP_SIZE 68
#define OPJIT_ERROR_FIELD_SIZE 96
#define OPJIT_ERROR_VALUE_SIZE 60

/* Whether the same call may succeed without any change of its arguments. */
typedef enum opjit_retry {
    OPJIT_RETRY_NEVER = 0, /* no: what was given has to change, or the build, or the machine */
    OPJIT_RETRY_LATER = 1  /* perhaps: memory, a file, a device or somebody's decision stood in the way */
} opjit_retry;

/* What went wrong, for people in `message` and for programs in the rest, so that nobody has to take a message apart.
 * Owned by the caller, on the stack as a rule, and may be NULL wherever it is taken.  It needs no initialisation, and
 * nothing is ever allocated for it.
 * On success status is OPJIT_OK, message is "", and the rest is what it was.  On failure all of it is set; a part that
 * the failure has none of is "" or -1.
 *
 *     message  GATHER IndicesTensor.Sizes[1]: 9, must be at most 4
 *     op       GATHER
 *     field    IndicesTensor.Sizes
 *     index    1
 *     value    9 */
typedef struct opjit_error {
    opjit_status status;                    /* what the function returned */
    char message[OPJIT_ERROR_MESSAGE_SIZE]; /* one line of UTF-8 without a final newline: operator, field, the value
                                               given, what is allowed.  Its words may change; the fields below stay */
    opjit_retry retry;                      /* whether trying again can help */
    int32_t node;                           /* of a graph: index in DML_GRAPH_DESC.Nodes of the node that is at fault,
                                               of an edge the one that it leads to; -1: none or not a graph's */
    int32_t index;                          /* element of the array `field`; -1: the field as a whole */
    char op[OPJIT_ERROR_OP_SIZE];           /* what the field belongs to: an operator ("GATHER"), a custom operator's
                                               name, "graph"; of the API "argument" (of the function), "options",
                                               "call", or a structure's name */
    char field[OPJIT_ERROR_FIELD_SIZE];     /* path of the field in its structure: "OutputTensor.Sizes",
                                               "InputTensors[2].DataType", "IntermediateEdges[7].ToNodeIndex" */
    char value[OPJIT_ERROR_VALUE_SIZE];     /* what was given, as text: "0", "NULL", "FLOAT16", "{2,3}" */
    uint32_t detail;                        /* message + detail begins behind operator and field: what is wrong, for
                                               programs that say the place in their own words.  0: the whole message */
    uint32_t reserved[3];                   /* 0; this structure has 512 bytes for good */
} opjit_error;

/* Memory hook: where the library's own memory comes from.  LLVM's own memory and executable mappings do not go through
 * it.  Both functions must be callable from any thread. */
typedef struct opjit_allocator {
    void *user;                                                    /* first argument of both */
    void *(*allocate)(void *user, size_t size, size_t alignment);  /* bytes, at least 1; alignment is a power of two.
                                                                      NULL: there is no memory */
    void (*release)(void *user, void *memory, size_t size);        /* size as it was asked for; memory is never NULL */
} opjit_allocator;

#ifdef __cplusplus
}
#endif
#endif
