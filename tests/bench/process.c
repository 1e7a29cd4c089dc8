/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - see process.h. */
#define _GNU_SOURCE
#include "tests/bench/process.h"

#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frontend/cli/measure/measure.h"

extern char **environ;

double process_run(char *const *arguments, char *text, size_t size)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = 1;
    const double start = measure_now_ns();
    size_t used = 0;
    ssize_t got;
    pid_t pid;

    if (pipe(ends) != 0)
        return NAN;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    if (posix_spawn(&pid, arguments[0], &actions, NULL, arguments, environ) != 0)
        pid = -1;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    while (pid > 0 && (got = read(ends[0], text + used, size - 1 - used)) > 0)
        used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    if (pid > 0)
        waitpid(pid, &status, 0);
    return status == 0 ? measure_now_ns() - start : NAN;
}

static const char model_text[] =
    "{\n"
    "  \"resources\": { \"out\": { \"initialValuesDataType\": \"FLOAT32\",\n"
    "                            \"initialValues\": { \"valueCount\": 16, \"value\": 0 } } },\n"
    "  \"dispatchables\": { \"eye\": { \"type\": \"DML_OPERATOR_DIAGONAL_MATRIX\", \"desc\": {\n"
    "    \"OutputTensor\": { \"DataType\": \"FLOAT32\", \"Sizes\": [4, 4] }, \"Offset\": 0, \"Value\": 1 } } },\n"
    "  \"commands\": [ { \"type\": \"dispatch\", \"dispatchable\": \"eye\",\n"
    "                  \"bindings\": { \"OutputTensor\": \"out\" } },\n"
    "                { \"type\": \"print\", \"resource\": \"out\" } ]\n"
    "}\n";

bool process_model(char *path)
{
    const int file = mkstemp(path);
    const bool good = file >= 0 && write(file, model_text, sizeof model_text - 1) == (ssize_t)sizeof model_text - 1;

    if (file >= 0)
        close(file);
    return good;
}
