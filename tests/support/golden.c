/* SPDX-License-Identifier: Apache-2.0 */
/* golden.c - see golden.h. */
#include "tests/support/golden.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RULER "; ---\n"

char *golden_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s can't be opened", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    const long size = ftell(file);
    ck_assert_int_ge(size, 0);
    rewind(file);
    char *text = malloc((size_t)size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_uint_eq(fread(text, 1, (size_t)size, file), (size_t)size);
    text[size] = '\0';
    fclose(file);
    return text;
}

size_t golden_input_size(const char *text)
{
    const char *ruler = strstr(text, RULER);
    return ruler != NULL ? (size_t)(ruler - text) : strlen(text);
}

const char *golden_output(const char *text)
{
    const char *ruler = strstr(text, RULER);
    return ruler != NULL ? ruler + strlen(RULER) : NULL;
}

void golden_check(const char *path, const char *text, const char *output, const char *what)
{
    const char *expected = golden_output(text);

    if (getenv("OPJIT_UPDATE_GOLDEN") == NULL) {
        ck_assert_msg(expected != NULL && strcmp(expected, output) == 0, "%s: %s\n%.4000s", path, what, output);
        return;
    }
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "%s can't be written", path);
    fprintf(file, "%.*s" RULER "%s", (int)golden_input_size(text), text, output);
    ck_assert_int_eq(fclose(file), 0);
}
