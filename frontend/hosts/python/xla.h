/* SPDX-License-Identifier: Apache-2.0 */
/* xla.h - the part of XLA's FFI (version 0.3 of its C API) that a handler for CPUs needs, in declarations of our own.
 * tests/hosts/xla_layout.c holds them against the header that jaxlib ships. */
#ifndef OPJIT_PYTHON_XLA_H
#define OPJIT_PYTHON_XLA_H

#include <stddef.h>
#include <stdint.h>

#define XLA_VERSION_MAJOR 0
#define XLA_VERSION_MINOR 3

typedef struct xla_error xla_error; /* XLA's */

/* What a structure is extended by. */
typedef struct xla_extension {
    size_t struct_size;
    int type; /* XLA_EXTENSION_METADATA */
    struct xla_extension *next;
} xla_extension;
#define XLA_EXTENSION_METADATA 1

typedef struct xla_version {
    size_t struct_size;
    xla_extension *extension;
    int major, minor;
} xla_version;

/* Filled by the handler when it is registered. */
typedef struct xla_metadata {
    size_t struct_size;
    xla_version version;
    uint32_t traits;
} xla_metadata;

typedef struct xla_metadata_extension {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct xla_error_args {
    size_t struct_size;
    xla_extension *extension;
    const char *message; /* copied */
    int code;            /* XLA_INVALID_ARGUMENT ... */
} xla_error_args;
#define XLA_INVALID_ARGUMENT 3
#define XLA_RESOURCE_EXHAUSTED 8
#define XLA_INTERNAL 13

typedef struct xla_api {
    size_t struct_size;
    xla_extension *extension;
    xla_version version;
    const void *internal;
    xla_error *(*error_create)(xla_error_args *args);
} xla_api;

/* An array: packed, row-major. */
typedef struct xla_buffer {
    size_t struct_size;
    xla_extension *extension;
    int type; /* XLA_PRED ... */
    void *data;
    int64_t rank;
    int64_t *sizes;
} xla_buffer;
#define XLA_PRED 1
#define XLA_S8 2 /* and 16, 32 and 64 bits behind it */
#define XLA_U8 6
#define XLA_F16 10
#define XLA_F32 11
#define XLA_F64 12

typedef struct xla_buffers {
    size_t struct_size;
    xla_extension *extension;
    int64_t count;
    int *kinds; /* all are buffers */
    void **items;
} xla_buffers;

typedef struct xla_text {
    const char *text;
    size_t length;
} xla_text;

typedef struct xla_scalar {
    int type;
    void *value;
} xla_scalar;

typedef struct xla_attributes {
    size_t struct_size;
    xla_extension *extension;
    int64_t count;
    int *kinds; /* XLA_KIND_SCALAR ... */
    xla_text **names;
    void **values;
} xla_attributes;
#define XLA_KIND_SCALAR 3

/* One call. */
typedef struct xla_frame {
    size_t struct_size;
    xla_extension *extension;
    const xla_api *api;
    void *context;
    int stage; /* XLA_STAGE_EXECUTE ... */
    xla_buffers inputs, outputs;
    xla_attributes attributes;
} xla_frame;
#define XLA_STAGE_EXECUTE 3

#endif
