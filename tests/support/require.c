/* SPDX-License-Identifier: Apache-2.0 */
/* require.c - an assertion for helpers (require.h). */
#include "tests/support/require.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void test_require_place(const opjit_error *error)
{
    char field[OPJIT_ERROR_FIELD_SIZE + 16];
    const size_t op = strlen(error->op);
    size_t length;

    test_require(op != 0 && error->field[0] != '\0', "\"%s\" has op \"%s\" and field \"%s\"", error->message, error->op,
                 error->field);
    test_require(error->index >= -1 && error->node >= -1, "\"%s\": index %d, node %d", error->message, error->index,
                 error->node);
    if (error->detail == 0)
        return;
    /* "GATHER Axes[1]: 9, ...": what is behind op and field is the detail. */
    if (error->index < 0)
        snprintf(field, sizeof field, "%s: ", error->field);
    else
        snprintf(field, sizeof field, "%s[%d]: ", error->field, error->index);
    length = strlen(field);
    test_require(error->detail >= length && error->detail < strlen(error->message) &&
                     memcmp(error->message + error->detail - length, field, length) == 0 &&
                     (strncmp(error->message, error->op, op) == 0 || error->detail == length),
                 "\"%s\" has op \"%s\", field \"%s\", index %d, detail %u", error->message, error->op, error->field,
                 error->index, error->detail);
}
