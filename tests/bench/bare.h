/* SPDX-License-Identifier: Apache-2.0 */
/* bare.h - a kernel's machine code without opjit_kernel_call: the cost of the call is measured against it, and code is
 * compared with code.  Uses the internals of the kernel object; not for applications. */
#ifndef OPJIT_TESTS_BENCH_BARE_H
#define OPJIT_TESTS_BENCH_BARE_H

#include <opjit/opjit.h>

/* The one stage of a kernel that needs no parameters and no workspace, and its arguments. */
typedef struct bare {
    opjit_stage_fn fn;
    void *buffers[2];
    uint64_t extent;
} bare;

/* The first step of the variant without aliasing (the last one), with the call's buffers, at most two. */
bare bare_of(const opjit_kernel *kernel, const opjit_call *call);
void bare_run(void *b); /* a measure_fn */

#endif
