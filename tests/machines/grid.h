/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h - stages compiled for GPUs, run by the PTX interpreter, or on a device. */
#ifndef OPJIT_TEST_MACHINES_GRID_H
#define OPJIT_TEST_MACHINES_GRID_H

#include "ir/ir.h"
#include "runtime/target/target.h"

typedef struct grid_stage {
    const rt_target *target;
    const char *code;     /* PTX or SPIR-V with the kernel in it */
    size_t size;          /* of it, without PTX's NUL */
    const char *name;     /* of the kernel */
    const ir_func *f;     /* after pass grid and layout */
    uint32_t stage;
    void *const *buffers; /* by slot; equal ones are one buffer */
    const uint64_t *params;
    void *shared;         /* temps: f->shared_size bytes */
    bool reversed;        /* the last block first; the PTX interpreter only */
} grid_stage;

/* Launches the stage as its metadata says, with buffers at addresses of the smallest alignment that is promised: SPIR-V
 * by OpenCL; PTX in the interpreter, or on the device in OPJIT_TEST_DEVICE ("cuda:0").  UNAVAILABLE: the device runs no
 * code for that target. */
opjit_status test_grid_run(const grid_stage *s, opjit_error *error);

/* --- shared by the ways to run it -------------------------------------------------------------------------------- */
enum { GRID_BUFFERS = 64, GRID_ARGUMENTS = 96 };

typedef struct grid_range { /* memory that the kernel may touch */
    void *host;
    uint64_t bytes, align;
    uint64_t at;            /* device address, set by the file that runs it */
    uint64_t behind;        /* follows: this far after the previous range, whose alignment it has */
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
/* A device's functions. */
typedef struct grid_memory {
    void *device;
    opjit_status (*allocate)(void *device, uint64_t bytes, uint64_t *out, opjit_error *error);
    void (*free)(void *device, uint64_t base);
    opjit_status (*write)(void *device, uint64_t base, const void *bytes, uint64_t size, opjit_error *error);
    opjit_status (*read)(void *device, void *bytes, uint64_t base, uint64_t size, opjit_error *error);
    opjit_status (*launch)(void *device, const grid_launch *l, opjit_error *error); /* ranges have addresses */
} grid_memory;
/* Copies the ranges to the device, launches, and copies them back; stores beside ranges and to inputs are errors. */
opjit_status test_grid_run_copied(const grid_memory *m, grid_launch *l, opjit_error *error);
opjit_status test_grid_run_on_device(grid_launch *l, opjit_error *error);
opjit_status test_grid_run_on_opencl(grid_launch *l, opjit_error *error);

#endif
