/* SPDX-License-Identifier: Apache-2.0 */
/* fused.h - a fused node, for fused.c, which calls it, and fused_compile.c, which makes it. */
#ifndef OPJIT_HOSTS_ONNXRUNTIME_FUSED_H
#define OPJIT_HOSTS_ONNXRUNTIME_FUSED_H

#include <pthread.h>

#include "frontend/hosts/onnxruntime/provider.h"

/* Memory of one call, kept for the next. */
typedef struct frame {
    struct frame *next;
    shape *shapes;
    opjit_binding *bindings;
    void **copies; /* of inputs that lie where no element may */
    void *workspace;
    uint64_t workspace_bytes;
} frame;

typedef struct fused {
    ort_compute_info info;
    const provider *p;
    bytes model;    /* in `context`, if there is one */
    stored context; /* of an EPContext node */
    arena memory;
    const char *const *names;   /* of inputs */
    uint32_t *inputs, *outputs; /* the fused node's, of the model's */
    int *types;                 /* of inputs */
    uint32_t input_count, output_count;
    uint32_t workers;
    pthread_mutex_t lock; /* of what follows */
    frame *frames;
    entry *entries[ORT_ENTRIES]; /* the last used first */
    uint32_t entry_count;
} fused;

/* A node without names, ports and model, which opjit_ort_release_compute frees. */
void opjit_ort_init_fused(fused *f, const provider *p, uint32_t workers);
/* The kernel for inputs of these sizes, which was kept, or is made, of the image `from` unless that is NULL; the caller
 * releases it. */
opjit_status opjit_ort_find_entry(fused *f, const shape *shapes, const image *from, entry **out, opjit_error *error);

#endif
