/* SPDX-License-Identifier: Apache-2.0 */
/* require.c - an assertion for helpers (require.h). */
#include "tests/support/require.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void test_require(bool condition, const char *format, ...)
{
    va_list args;

    if (condition)
        return;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
