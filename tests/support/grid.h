/* grid.h - stages compiled for GPUs, run by the PTX interpreter. */
#ifndef OPJIT_TESTS_SUPPORT_GRID_H
#define OPJIT_TESTS_SUPPORT_GRID_H

#include "ir/ir.h"

typedef struct grid_stage {
    const char *ptx;      /* text with the kernel in it */
    const char *name;     /* of the kernel */
    const ir_func *f;     /* after pass grid and layout */
    uint32_t stage;
    void *const *buffers; /* by slot; equal ones are one buffer */
    const uint64_t *params;
    void *shared;         /* temps: f->shared_size bytes */
    bool reversed;        /* the last block first */
} grid_stage;

/* Launches it as its metadata say, with buffers at addresses of the least alignment that is promised; false: what went wrong
 * is in the message. */
bool test_grid_run(const grid_stage *s, char *message, size_t message_size);

#endif
