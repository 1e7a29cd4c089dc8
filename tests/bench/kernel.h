/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - shared by the benchmark programs: a kernel and what it is called with. */
#ifndef OPJIT_TESTS_BENCH_KERNEL_H
#define OPJIT_TESTS_BENCH_KERNEL_H

#include <opjit/opjit.h>

#define KERNEL_BINDINGS 16

typedef struct kernel {
    opjit_kernel *kernel;
    opjit_call call;
    opjit_binding bindings[KERNEL_BINDINGS];
    bool failed; /* a call has */
} kernel;

/* Calls the kernel; for measure_run.  The first failure is printed. */
void kernel_run(void *kernel);

#endif
