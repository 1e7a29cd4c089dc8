/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.c - PTX into machine code for GPUs, by NVIDIA's assembler where there is one: a program that is run, with
 * files in a folder of its own for the time it takes, which is bounded. */
#define _GNU_SOURCE
#include "frontend/aot/artifact.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
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
    return opjit_rt_refuse(error, OPJIT_IO, "{cubin}: {!file}{%s}: %s", what, strerror(errno));
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
    FILE *file = fopen(f->ptx, "wbe");
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

/* The first line of the program's log, or `otherwise` where there is none. */
static opjit_status report(const files *f, const char *otherwise, opjit_error *error)
{
    char line[200] = "";
    FILE *file = fopen(f->log, "rbe");
    if (file != NULL) {
        const size_t n = fread(line, 1, sizeof line - 1, file);
        line[n] = '\0';
        fclose(file);
    }
    line[strcspn(line, "\n")] = '\0';
    return opjit_rt_refuse(error, OPJIT_CODEGEN, "{cubin}: {ptxas}: %s", line[0] != '\0' ? line : otherwise);
}

/* --- the program -------------------------------------------------------------------------------------------------- */

/* Starts it in a process group of its own, with no signal blocked or ignored. */
static int start(const char *program, const char *arch, const files *f, pid_t *out_child)
{
    char option[64];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int failed = posix_spawn_file_actions_init(&actions);
    if (failed != 0)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return failed;
    }
    snprintf(option, sizeof option, "-arch=%s", arch);
    char *const arguments[] = { "ptxas", option, "-o", (char *)(uintptr_t)f->cubin, (char *)(uintptr_t)f->ptx, NULL };
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    failed = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    failed = failed ? failed : posix_spawn_file_actions_addopen(&actions, 1, f->log, O_WRONLY | O_CREAT, 0600);
    failed = failed ? failed : posix_spawn_file_actions_adddup2(&actions, 1, 2);
    failed = failed ? failed : posix_spawn(out_child, program, &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return failed;
}

/* Waits for the program to end, and ends it where it takes longer than seconds.  A host that ignores SIGCHLD, or waits
 * for any child, takes the exit status away: then it is 0 here, and what the program wrote has to tell. */
static opjit_status wait_for(pid_t child, unsigned seconds, int *out_status, opjit_error *error)
{
    const struct timespec pause = { 0, 2000000 };
    struct timespec now, end;
    pid_t got;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    *out_status = 0;
    while ((got = waitpid(child, out_status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec >= end.tv_nsec)) {
            kill(-child, SIGKILL); /* and what it has started */
            while (waitpid(child, out_status, 0) < 0 && errno == EINTR)
                continue;
            return opjit_rt_later(error, opjit_rt_refuse(error, OPJIT_CODEGEN,
                                                         "{cubin}: {ptxas} was stopped: it took longer than {%u} "
                                                         "seconds",
                                                         seconds));
        }
        nanosleep(&pause, NULL);
    }
    return OPJIT_OK;
}

static opjit_status run(const char *program, const char *arch, const files *f, unsigned seconds, opjit_error *error)
{
    char reason[64] = "it gives no reason";
    pid_t child = 0;
    int status = start(program, arch, f, &child);
    if (status != 0) {
        errno = status;
        return fail(program, error);
    }
    TRY(wait_for(child, seconds, &status, error));
    if (WIFSIGNALED(status))
        snprintf(reason, sizeof reason, "it was ended by signal %d", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? OPJIT_OK : report(f, reason, error);
}

/* --- its output --------------------------------------------------------------------------------------------------- */

/* Whether the bytes are a complete ELF file of machine code for CUDA: a program that was ended early, or a full disk,
 * leaves less. */
static bool is_whole(const rt_bytes *file)
{
    Elf64_Ehdr header;
    Elf64_Shdr section;
    if (file->size < sizeof header)
        return false;
    memcpy(&header, file->data, sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_machine != EM_CUDA || header.e_shnum == 0 || header.e_shentsize != sizeof section)
        return false;
    if (header.e_phoff > file->size || header.e_phnum * (uint64_t)header.e_phentsize > file->size - header.e_phoff ||
        header.e_shoff > file->size || header.e_shnum * (uint64_t)header.e_shentsize > file->size - header.e_shoff)
        return false;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        memcpy(&section, file->data + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS &&
            (section.sh_offset > file->size || section.sh_size > file->size - section.sh_offset))
            return false;
    }
    return true;
}

static opjit_status read_output(const files *f, rt_bytes *out, opjit_error *error)
{
    char part[4096];
    FILE *file = fopen(f->cubin, "rbe");
    if (file == NULL)
        return report(f, "it has written nothing", error);
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        opjit_rt_bytes_append(out, part, n);
    const bool broken = ferror(file) != 0;
    fclose(file);
    if (broken)
        return fail(f->cubin, error);
    if (out->failed)
        return opjit_rt_no_memory(error);
    return is_whole(out) ? OPJIT_OK : report(f, "what it has written is not whole", error);
}

opjit_status opjit_fe_assemble(const rt_target *target, const rt_bytes *ptx, unsigned seconds, rt_bytes *out,
                               opjit_error *error)
{
    const char *arch = target->text + strcspn(target->text, ":") + 1;
    char program[4096], name[32];
    files f = { .folder = "" };
    opjit_status status;

    if (!find_program(program, sizeof program))
        return opjit_rt_refuse(error, OPJIT_UNAVAILABLE,
                               "{cubin}: the program {ptxas} is needed, and is neither on PATH nor in "
                               "/usr/local/cuda/bin; PTX needs none");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arch, "+,"), arch);
    status = make_files(&f, ptx, error);
    if (status == OPJIT_OK)
        status = run(program, name, &f, seconds, error);
    if (status == OPJIT_OK)
        status = read_output(&f, out, error);
    remove_files(&f);
    return status;
}
