/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - reading and writing whole files.  Only regular files are read and replaced: a pipe or device could block or
 * never end.  The way to files that a model names is way.c's. */
#define _GNU_SOURCE

#include "frontend/cli/files/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_SIZE = 48, MOST_TEMPORARIES = 1000 };

static opjit_status system_error(const char *what, opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_IO, "%s: %s", what, strerror(errno));
}

static opjit_status not_regular(opjit_error *error)
{
    return opjit_rt_error_set(error, OPJIT_IO, "not a regular file");
}

/* Opens a regular file for reading.  It is looked at before it is opened, as opening a device can do something. */
static opjit_status open_regular(int folder, const char *name, int flags, int *out_fd, uint64_t *out_size,
                                 opjit_error *error)
{
    struct stat info;
    int fd;
    *out_fd = -1;
    if (fstatat(folder, name, &info, (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0) != 0)
        return system_error("can't be opened", error);
    if (!S_ISREG(info.st_mode))
        return not_regular(error);
    fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd < 0)
        return system_error("can't be opened", error);
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(fd);
        return not_regular(error);
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

static opjit_status read_at(int folder, const char *name, int flags, uint64_t limit, rt_bytes *out, opjit_error *error)
{
    int fd = -1;
    uint64_t size = 0;
    opjit_status status;
    TRY(open_regular(folder, name, flags, &fd, &size, error));
    if (size <= limit && opjit_rt_bytes_extend(out, (size_t)size + 1) != NULL) /* room, so that it need not grow */
        out->size -= (size_t)size + 1;
    status = size > limit ? too_long(limit, error) : read_all(fd, limit, out, error);
    close(fd);
    if (status == OPJIT_OK && out->size > limit)
        status = too_long(limit, error);
    return status;
}

opjit_status opjit_cli_map_file(const char *path, uint64_t limit, cli_mapped *out, opjit_error *error)
{
    int fd = -1;
    uint64_t size = 0;
    opjit_status status = OPJIT_OK;
    *out = (cli_mapped){ NULL, 0 };
    TRY(open_regular(AT_FDCWD, path, 0, &fd, &size, error));
    if (size > limit) {
        status = too_long(limit, error);
    } else if (size != 0) { /* all of it will be read: in one piece sooner than page by page */
        void *const memory = mmap(NULL, (size_t)size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        if (memory == MAP_FAILED)
            status = system_error("can't be mapped", error);
        else
            *out = (cli_mapped){ memory, (size_t)size };
    }
    close(fd);
    return status;
}

void opjit_cli_unmap(cli_mapped *file)
{
    if (file->data != NULL)
        munmap((void *)(uintptr_t)file->data, file->size);
    *file = (cli_mapped){ NULL, 0 };
}

opjit_status opjit_cli_read_input(uint64_t limit, rt_bytes *out, opjit_error *error)
{
    TRY(read_all(STDIN_FILENO, limit, out, error));
    return out->size > limit ? too_long(limit, error) : OPJIT_OK;
}

opjit_status opjit_cli_read_file(const char *path, uint64_t limit, rt_bytes *out, opjit_error *error)
{
    return read_at(AT_FDCWD, path, 0, limit, out, error);
}

opjit_status opjit_cli_file_read(const cli_file *file, uint64_t limit, rt_bytes *out, opjit_error *error)
{
    return read_at(file->folder, file->name, O_NOFOLLOW, limit, out, error);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */
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

/* What is there of the file; *out_there: something. */
static opjit_status look(const cli_file *file, struct stat *info, bool *out_there, opjit_error *error)
{
    *out_there = fstatat(file->folder, file->name, info, AT_SYMLINK_NOFOLLOW) == 0;
    if (!*out_there)
        return errno == ENOENT ? OPJIT_OK : system_error("can't be written", error);
    if (!S_ISREG(info->st_mode))
        return not_regular(error);
    if (faccessat(file->folder, file->name, W_OK, AT_EACCESS) != 0)
        return system_error("can't be written", error);
    return OPJIT_OK;
}

opjit_status opjit_cli_file_can_write(const cli_file *file, opjit_error *error)
{
    struct stat info;
    bool there;
    TRY(look(file, &info, &there, error));
    if (faccessat(file->folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return system_error("can't be written", error);
    return OPJIT_OK;
}

/* Some file systems and files have nothing to wait for, and say so. */
static bool sync_file(int fd)
{
    int result;
    do
        result = fsync(fd);
    while (result != 0 && errno == EINTR);
    return result == 0 || errno == EINVAL || errno == EROFS;
}

opjit_status opjit_cli_folder_sync(int folder, opjit_error *error)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool good;
    if (fd < 0) /* may be written to, and not read */
        return errno == EACCES ? OPJIT_OK : system_error("its folder can't be opened", error);
    good = sync_file(fd);
    if (!good)
        system_error("its folder can't be written", error);
    close(fd);
    return good ? OPJIT_OK : OPJIT_IO;
}

/* A new file beside another one; its name doesn't tell of whom, as that may be as long as names can be. */
static int open_temporary(int folder, mode_t mode, char name[static TEMPORARY_SIZE])
{
    int fd = -1;
    for (unsigned i = 0; i < MOST_TEMPORARIES && fd < 0; i++) {
        snprintf(name, TEMPORARY_SIZE, ".opjit-%ld-%u", (long)getpid(), i);
        fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd;
}

/* The new file gets the old one's owner, where this process may say so, and its rights. */
static bool take_over(int fd, const struct stat *old)
{
    if (fchown(fd, old->st_uid, old->st_gid) != 0 && errno != EPERM && errno != EINVAL)
        return false;
    return fchmod(fd, old->st_mode & 0777) == 0;
}

opjit_status opjit_cli_file_write(const cli_file *file, const rt_bytes *head, const void *body, size_t size,
                                  opjit_error *error)
{
    char temporary[TEMPORARY_SIZE];
    struct stat old;
    opjit_status status = OPJIT_OK;
    bool there, good;
    int fd;
    TRY(look(file, &old, &there, error));
    fd = open_temporary(file->folder, there ? 0600 : 0666, temporary);
    if (fd < 0)
        return system_error("can't be written", error);
    good = (head == NULL || write_all(fd, head->data, head->size)) && write_all(fd, body, size) &&
           (!there || take_over(fd, &old)) && sync_file(fd);
    if (!good)
        status = system_error("can't be written", error);
    if (close(fd) != 0 && good) /* a full disk may only show here */
        status = system_error("can't be written", error);
    if (status == OPJIT_OK && renameat(file->folder, temporary, file->folder, file->name) != 0)
        status = system_error("can't be written", error);
    if (status != OPJIT_OK)
        unlinkat(file->folder, temporary, 0);
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
