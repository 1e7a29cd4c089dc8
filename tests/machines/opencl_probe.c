/* SPDX-License-Identifier: Apache-2.0 */
/* opencl_probe.c - whether code for target spirv can be run here: exit status 77 and the reason, or 0. */
#include <stdio.h>

#include "tests/machines/opencl.h"

int main(void)
{
    char why[256];
    if (test_opencl_open(why, sizeof why))
        return 0;
    printf("skipped: code for spirv is not run, because: %s\n", why);
    return 77;
}
