/* ptx_texts.c - runs ptxas. */
#define _GNU_SOURCE
#include "tests/support/ptx_texts.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool ptx_texts_assemble(const char *arch, const char *text)
{
    const char *ptxas = getenv("OPJIT_TEST_PTXAS");
    char path[] = "/tmp/opjit-ptx-XXXXXX", command[512], line[400] = "";

    if (ptxas == NULL || *ptxas == '\0')
        return false;
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    snprintf(command, sizeof command, "'%s' -O0 -arch=sm_%s -o /dev/null %s 2>&1", ptxas, arch, path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    if (fgets(line, sizeof line, pipe) == NULL)
        line[0] = '\0';
    const int status = pclose(pipe);
    unlink(path);
    ck_assert_msg(status == 0, "ptxas: %s", line);
    return true;
}
