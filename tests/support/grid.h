/* grid.h - stages compiled for GPUs, run by the PTX interpreter, or on a device. */
#ifndef OPJIT_TESTS_SUPPORT_GRID_H
#define OPJIT_TESTS_SUPPORT_GRID_H

#include "ir/ir.h"
#include "runtime/target.h"

typedef struct grid_stage {
    const rt_target *target;
    const char *ptx;      /* text with the kernel in it */
    const char *name;     /* of the kernel */
    const ir_func *f;     /* after pass grid and layout */
    uint32_t stage;
    void *const *buffers; /* by slot; equal ones are one buffer */
    const uint64_t *params;
    void *shared;         /* temps: f->shared_size bytes */
    bool reversed;        /* the last block first; the PTX interpreter only */
} grid_stage;

/* Launches it as its metadata say, with buffers at addresses of the least alignment that is promised: in the PTX interpreter, or
 * where OPJIT_TEST_DEVICE names one ("cuda:0"), on a device.  UNAVAILABLE: the device runs no code for that target. */
opjit_status test_grid_run(const grid_stage *s, opjit_error *error);

/* --- what the two share ------------------------------------------------------------------------------------------- */
enum { GRID_BUFFERS = 64, GRID_ARGUMENTS = 96 };

typedef struct grid_range { /* memory that the kernel may touch */
    void *host;
    uint64_t bytes, align;
    uint64_t at;            /* device address, of the one who runs it */
    uint64_t behind;        /* follows: this far behind the range before, whose alignment it has */
    bool follows, writable;
    const char *what;
} grid_range;

typedef struct grid_argument {
    uint32_t range; /* 1 and up: the address of ranges[range - 1]; 0: value */
    uint64_t value;
} grid_argument;

typedef struct grid_launch {
    const grid_stage *s;
    ir_launch info;
    grid_range ranges[GRID_BUFFERS + 2];
    grid_argument arguments[GRID_ARGUMENTS];
    uint32_t range_count, count;
} grid_launch;

/* Arguments' values, and a pointer to each, once ranges have addresses. */
void test_grid_arguments(const grid_launch *l, uint64_t values[GRID_ARGUMENTS], void *pointers[GRID_ARGUMENTS]);
opjit_status test_grid_run_on_device(grid_launch *l, opjit_error *error);

#endif
