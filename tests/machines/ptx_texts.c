/* SPDX-License-Identifier: Apache-2.0 */
/* ptx_texts.c - runs ptxas. */
#define _GNU_SOURCE
#include "tests/machines/ptx_texts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All that ptxas says goes to *said. */
static bool assemble(const char *options, const char *arch, const char *text, char *said, size_t size)
{
    const char *ptxas = getenv("OPJIT_TEST_PTXAS");
    char path[] = "/tmp/opjit-ptx-XXXXXX", command[512];

    if (ptxas == NULL || *ptxas == '\0')
        return false;
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    snprintf(command, sizeof command, "'%s' %s -arch=sm_%s -o /dev/null %s 2>&1", ptxas, options, arch, path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    said[fread(said, 1, size - 1, pipe)] = '\0';
    const int status = pclose(pipe);
    unlink(path);
    ck_assert_msg(status == 0, "ptxas: %.400s", said);
    return true;
}

bool ptx_texts_assemble(const char *arch, const char *text)
{
    char said[400];
    return assemble("-O0", arch, text, said, sizeof said);
}

bool ptx_texts_good(const char *arch, const char *text)
{
    char said[16384];
    if (!assemble("-v", arch, text, said, sizeof said))
        return false;
    ck_assert_msg(strstr(said, "arning") == NULL, "ptxas: %.400s", said);
    for (const char *at = said; (at = strstr(at, "bytes spill")) != NULL; at++)
        ck_assert_msg(at - said >= 3 && strncmp(at - 3, " 0 ", 3) == 0, "spills: %.60s", at - 10);
    return true;
}
