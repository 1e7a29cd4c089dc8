/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - reading and writing whole files.  Only regular files are read: a pipe or device could block or never
 * end. */
#define _POSIX_C_SOURCE 200809L

#include "frontend/cli/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static opjit_status system_error(const char *what, opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_IO, "%s: %s", what, strerror(errno));
}

static opjit_status open_regular(const char *path, int *out_fd, uint64_t *out_size, opjit_error *error)
{
    struct stat info;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    opjit_status status = OPJIT_OK;
    *out_fd = -1;
    if (fd < 0)
        return system_error("can't be opened", error);
    if (fstat(fd, &info) != 0)
        status = system_error("can't be looked at", error);
    else if (!S_ISREG(info.st_mode))
        status = opjit_rt_error_set(error, OPJIT_IO, "not a regular file");
    if (status != OPJIT_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    *out_size = (uint64_t)info.st_size;
    return OPJIT_OK;
}

/* Reads until the end, or until limit is passed: a file may grow while it is read. */
static opjit_status read_all(int fd, uint64_t limit, rt_bytes *out, opjit_error *error)
{
    char *buffer = opjit_rt_allocate(out->allocator, 1 << 16, 1);
    ssize_t got = 1;
    if (buffer == NULL)
        return opjit_rt_no_memory(error);
    while (got != 0 && out->size <= limit && !out->failed) {
        got = read(fd, buffer, 1 << 16);
        if (got < 0 && errno != EINTR)
            break;
        if (got > 0)
            opjit_rt_bytes_append(out, buffer, (size_t)got);
    }
    opjit_rt_release(out->allocator, buffer, 1 << 16);
    if (got < 0)
        return system_error("can't be read", error);
    opjit_rt_bytes_zero_end(out);
    return out->failed ? opjit_rt_no_memory(error) : OPJIT_OK;
}

static opjit_status too_long(uint64_t limit, opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_LIMIT, "longer than %" PRIu64 " MiB", limit >> 20);
}

opjit_status opjit_cli_read_file(const char *path, uint64_t limit, rt_bytes *out, opjit_error *error)
{
    int fd = -1;
    uint64_t size = 0;
    opjit_status status;
    TRY(open_regular(path, &fd, &size, error));
    status = size > limit ? too_long(limit, error) : read_all(fd, limit, out, error);
    close(fd);
    if (status == OPJIT_OK && out->size > limit)
        status = too_long(limit, error);
    return status;
}

opjit_status opjit_cli_read_input(uint64_t limit, rt_bytes *out, opjit_error *error)
{
    TRY(read_all(STDIN_FILENO, limit, out, error));
    return out->size > limit ? too_long(limit, error) : OPJIT_OK;
}

opjit_status opjit_cli_can_write(const char *path, opjit_error *error)
{
    struct stat info;
    const char *slash = strrchr(path, '/');
    char *folder;
    bool usable;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        errno = EISDIR;
        return system_error("can't be written", error);
    }
    if (slash == NULL)
        return access(".", W_OK | X_OK) == 0 ? OPJIT_OK : system_error("can't be written", error);
    const size_t length = (size_t)(slash - path) + 1;
    folder = opjit_rt_allocate(&opjit_rt_default_allocator, length + 1, 1);
    if (folder == NULL)
        return opjit_rt_no_memory(error);
    memcpy(folder, path, length);
    folder[length] = '\0';
    usable = access(folder, W_OK | X_OK) == 0;
    opjit_rt_release(&opjit_rt_default_allocator, folder, length + 1);
    return usable ? OPJIT_OK : system_error("can't be written", error);
}

static bool write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size != 0) {
        const ssize_t put = write(fd, at, size);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}

/* Rights that a new file gets; there is no way to read the mask without setting it. */
static mode_t new_file_mode(void)
{
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

opjit_status opjit_cli_write_file(const char *path, const rt_bytes *head, const void *body, size_t size,
                                  opjit_error *error)
{
    const size_t length = strlen(path) + sizeof ".XXXXXX";
    char *temporary = opjit_rt_allocate(&opjit_rt_default_allocator, length, 1);
    opjit_status status = OPJIT_OK;
    int fd;
    if (temporary == NULL)
        return opjit_rt_no_memory(error);
    snprintf(temporary, length, "%s.XXXXXX", path);
    fd = mkstemp(temporary);
    if (fd < 0) {
        status = system_error("can't be written", error);
        goto done;
    }
    bool good = (head == NULL || write_all(fd, head->data, head->size)) && write_all(fd, body, size) &&
                fchmod(fd, new_file_mode()) == 0;
    good = close(fd) == 0 && good; /* a full disk may only show here */
    if (!good || rename(temporary, path) != 0) {
        status = system_error("can't be written", error);
        unlink(temporary);
    }
done:
    opjit_rt_release(&opjit_rt_default_allocator, temporary, length);
    return status;
}

char *opjit_cli_beside(rt_arena *arena, const char *base, const char *path)
{
    const char *slash = strrchr(base, '/');
    const size_t head = path[0] == '/' || slash == NULL ? 0 : (size_t)(slash - base) + 1;
    const size_t tail = strlen(path);
    char *out = opjit_rt_arena_allocate(arena, 1, head + tail + 1);
    if (out != NULL) {
        memcpy(out, base, head);
        memcpy(out + head, path, tail);
    }
    return out;
}
