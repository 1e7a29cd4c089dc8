/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.c - calls of a benchmark's kernel. */
#include <stdio.h>

#include "tests/bench/kernel.h"

void kernel_run(void *arg)
{
    kernel *k = arg;
    opjit_error error;
    if (opjit_kernel_call(k->kernel, &k->call, &error) == OPJIT_OK || k->failed)
        return;
    fprintf(stderr, "%s\n", error.message);
    k->failed = true;
}
