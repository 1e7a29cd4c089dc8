/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - what a model's entries in the disk cache are named after. */
#ifndef OPJIT_FRONTEND_ONNX_IDENTITY_H
#define OPJIT_FRONTEND_ONNX_IDENTITY_H

#include <opjit/model.h>

#include "frontend/onnx/files.h"
#include "runtime/cache/disk.h"

/* A model as it was given. */
typedef struct onnx_named {
    opjit_context *context;
    const opjit_model_options *options;
    wire_bytes bytes; /* the file's, or the caller's */
    const char *path; /* NULL: the bytes are the caller's */
    onnx_stamp stamp; /* of the file there */
    onnx_files *files;
    bool is_hashed, is_remembered; /* hash is there; and the cache had it */
    rt_hash hash;                  /* of the bytes */
} onnx_named;

static inline rt_disk_key onnx_disk_key(const void *bytes, size_t size)
{
    return (rt_disk_key){ bytes, size, opjit_rt_hash(bytes, size), RT_DISK_MODEL };
}
/* The name, and *out_identity, which stands for it.  make: what the cache needs to know for that is written there; else
 * it is looked up, and files of weights are mapped.  false: there is no name. */
bool opjit_onnx_name(onnx_named *n, bool make, rt_bytes *out, rt_hash *out_identity);

#endif
