/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.c - PTX into machine code for GPUs, by NVIDIA's assembler where there is one: a program that is run, with
 * files in a folder of its own for the time it takes. */
#define _GNU_SOURCE
#include "frontend/artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FOLDER "/tmp/opjit-XXXXXX"

typedef struct files {
    char folder[64], ptx[96], cubin[96], log[96];
} files;

/* The first ptxas of PATH, or that of NVIDIA's usual place; false: there is none. */
static bool find_program(char *path, size_t size)
{
    const char *list = secure_getenv("PATH");
    for (const char *at = list; at != NULL && *at != '\0';) {
        const size_t length = strcspn(at, ":");
        const int n = snprintf(path, size, "%.*s/ptxas", (int)length, at);
        if (length > 0 && at[0] == '/' && n > 0 && (size_t)n < size && access(path, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    snprintf(path, size, "/usr/local/cuda/bin/ptxas");
    return access(path, X_OK) == 0;
}

static opjit_status fail(const char *what, opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_IO, "cubin: %s: %s", what, strerror(errno));
}

static opjit_status make_files(files *f, const rt_bytes *ptx, opjit_error *error)
{
    snprintf(f->folder, sizeof f->folder, "%s", FOLDER);
    if (mkdtemp(f->folder) == NULL) {
        f->folder[0] = '\0';
        return fail("a folder in /tmp", error);
    }
    snprintf(f->ptx, sizeof f->ptx, "%s/kernel.ptx", f->folder);
    snprintf(f->cubin, sizeof f->cubin, "%s/kernel.cubin", f->folder);
    snprintf(f->log, sizeof f->log, "%s/log", f->folder);
    FILE *file = fopen(f->ptx, "wb");
    const bool written = file != NULL && fwrite(ptx->data, 1, ptx->size, file) == ptx->size;
    if ((file != NULL && fclose(file) != 0) || !written)
        return fail(f->ptx, error);
    return OPJIT_OK;
}

static void remove_files(const files *f)
{
    if (f->folder[0] == '\0')
        return;
    unlink(f->ptx), unlink(f->cubin), unlink(f->log);
    rmdir(f->folder);
}

static opjit_status read_file(const char *path, rt_bytes *out, opjit_error *error)
{
    char part[4096];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return fail(path, error);
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        opjit_rt_bytes_append(out, part, n);
    const bool broken = ferror(file) != 0;
    fclose(file);
    if (broken)
        return fail(path, error);
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

/* What the program said, as far as a line of a message goes. */
static opjit_status report(const files *f, opjit_error *error)
{
    char line[200] = "it gives no reason";
    FILE *file = fopen(f->log, "rb");
    if (file != NULL) {
        const size_t n = fread(line, 1, sizeof line - 1, file);
        line[n] = '\0';
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    return opjit_rt_error_set(error, OPJIT_CODEGEN, "cubin: ptxas: %s", line);
}

static opjit_status run(const char *program, const char *arch, const files *f, opjit_error *error)
{
    char option[64];
    posix_spawn_file_actions_t actions;
    pid_t child = 0;
    int status = -1;
    snprintf(option, sizeof option, "-arch=%s", arch);
    char *const arguments[] = { "ptxas", option, "-o", (char *)(uintptr_t)f->cubin, (char *)(uintptr_t)f->ptx, NULL };
    if (posix_spawn_file_actions_init(&actions) != 0)
        return opjit_rt_no_memory(error);
    int failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    failed = failed ? failed : posix_spawn_file_actions_addopen(&actions, 1, f->log, O_WRONLY | O_CREAT, 0600);
    failed = failed ? failed : posix_spawn_file_actions_adddup2(&actions, 1, 2);
    failed = failed ? failed : posix_spawn(&child, program, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) {
        errno = failed;
        return fail(program, error);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? OPJIT_OK : report(f, error);
}

opjit_status opjit_fe_assemble(const rt_target *target, const rt_bytes *ptx, rt_bytes *out, opjit_error *error)
{
    const char *arch = target->text + strcspn(target->text, ":") + 1;
    char program[4096], name[32];
    files f = { .folder = "" };
    opjit_status status;

    if (!find_program(program, sizeof program))
        return opjit_rt_error_set(error, OPJIT_UNAVAILABLE,
                                  "cubin: the program ptxas is needed, and is neither on PATH nor in "
                                  "/usr/local/cuda/bin; PTX needs none");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arch, "+,"), arch);
    status = make_files(&f, ptx, error);
    if (status == OPJIT_OK)
        status = run(program, name, &f, error);
    if (status == OPJIT_OK)
        status = read_file(f.cubin, out, error);
    remove_files(&f);
    return status;
}
