/* SPDX-License-Identifier: Apache-2.0 */
/* fake_files.c - a disk that fails, for programs started with it in LD_PRELOAD (tests/cli/faults.sh):
 *   FAKE_FILES_AT=N        the N-th call of a function below fails, and no other
 *   FAKE_FILES_KIND        EIO, ENOSPC, EINTR, EMFILE: it fails with that error; "short": it reads or writes one byte;
 *                          "zeros", "lost": the power fails, and what was written without an fsync becomes zeros or is
 *                          lost altogether
 *   FAKE_FILES_HIT=FILE    created where a call failed; gets another line where descriptors are left open at the end */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST_FILES = 256 };

static struct {
    long calls, at;
    const char *kind, *hit;
    bool dirty[MOST_FILES]; /* written without an fsync since */
    int lost[MOST_FILES];   /* such files after their close, opened once more */
    uint32_t lost_count;
    long open_at_first;
} state;

static long count_open(void)
{
    DIR *const directory = opendir("/proc/self/fd");
    long count = 0;
    while (directory != NULL && readdir(directory) != NULL)
        count++;
    if (directory != NULL)
        closedir(directory);
    return count - state.lost_count;
}

static void say(const char *line)
{
    const int file = (int)syscall(SYS_openat, AT_FDCWD, state.hit, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    syscall(SYS_write, file, line, strlen(line));
    syscall(SYS_close, file);
}

__attribute__((constructor)) static void begin(void)
{
    const char *const at = getenv("FAKE_FILES_AT");
    state.kind = getenv("FAKE_FILES_KIND");
    state.hit = getenv("FAKE_FILES_HIT");
    state.open_at_first = count_open();
    state.at = at != NULL && state.kind != NULL && state.hit != NULL ? atol(at) : 0;
}

__attribute__((destructor)) static void end(void)
{
    if (state.hit != NULL && count_open() > state.open_at_first)
        say("descriptors are left\n");
}

static void lose(int file)
{
    struct stat info;
    if (syscall(SYS_fstat, file, &info) != 0 || !S_ISREG(info.st_mode))
        return;
    syscall(SYS_ftruncate, file, 0);
    if (strcmp(state.kind, "zeros") == 0)
        syscall(SYS_ftruncate, file, info.st_size);
}

static void lose_power(void)
{
    for (uint32_t i = 0; i < state.lost_count; i++)
        lose(state.lost[i]);
    for (int i = 0; i < MOST_FILES; i++)
        if (state.dirty[i])
            lose(i);
    _exit(99);
}

/* Whether this call fails, with errno set; *is_short: it succeeds with one byte only. */
static bool fails(bool *is_short)
{
    static const struct {
        const char *kind;
        int error;
    } kinds[] = { { "EIO", EIO }, { "ENOSPC", ENOSPC }, { "EINTR", EINTR }, { "EMFILE", EMFILE } };
    if (++state.calls != state.at)
        return false;
    say("hit\n");
    if (strcmp(state.kind, "zeros") == 0 || strcmp(state.kind, "lost") == 0)
        lose_power();
    if (is_short != NULL)
        *is_short = strcmp(state.kind, "short") == 0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].kind, state.kind) == 0) {
            errno = kinds[i].error;
            return true;
        }
    return false;
}

static void set_dirty(int file, bool dirty)
{
    if (file >= 0 && file < MOST_FILES)
        state.dirty[file] = dirty;
}

#define OPEN(name)                                                                                    \
    int name(const char *path, int flags, ...)                                                        \
    {                                                                                                 \
        va_list arguments;                                                                            \
        va_start(arguments, flags);                                                                   \
        const mode_t mode = (mode_t)va_arg(arguments, unsigned);                                      \
        va_end(arguments);                                                                            \
        return fails(NULL) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);              \
    }
#define OPENAT(name)                                                                                  \
    int name(int folder, const char *path, int flags, ...)                                            \
    {                                                                                                 \
        va_list arguments;                                                                            \
        va_start(arguments, flags);                                                                   \
        const mode_t mode = (mode_t)va_arg(arguments, unsigned);                                      \
        va_end(arguments);                                                                            \
        return fails(NULL) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);                \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t read(int file, void *to, size_t size)
{
    bool less = false;
    return fails(&less) ? -1 : syscall(SYS_read, file, to, less && size > 1 ? 1 : size);
}

ssize_t pread(int file, void *to, size_t size, off_t at)
{
    bool less = false;
    return fails(&less) ? -1 : syscall(SYS_pread64, file, to, less && size > 1 ? 1 : size, at);
}

ssize_t write(int file, const void *from, size_t size)
{
    bool less = false;
    if (file <= 2) /* not a disk */
        return syscall(SYS_write, file, from, size);
    if (fails(&less))
        return -1;
    set_dirty(file, true);
    return syscall(SYS_write, file, from, less && size > 1 ? 1 : size);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
    bool less = false;
    if (fails(&less))
        return -1;
    set_dirty(file, true);
    return less && count > 0 && parts[0].iov_len > 1 ? syscall(SYS_write, file, parts[0].iov_base, 1)
                                                     : syscall(SYS_writev, file, parts, count);
}

int fsync(int file)
{
    if (fails(NULL))
        return -1;
    set_dirty(file, false);
    return (int)syscall(SYS_fsync, file);
}

int close(int file)
{
    const bool dirty = file >= 0 && file < MOST_FILES && state.dirty[file];
    if (dirty && state.lost_count < MOST_FILES)
        state.lost[state.lost_count++] = (int)syscall(SYS_fcntl, file, F_DUPFD_CLOEXEC, MOST_FILES);
    set_dirty(file, false);
    const int result = (int)syscall(SYS_close, file);
    return dirty && fails(NULL) ? -1 : result; /* where a full disk may be reported */
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 0);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int mkdirat(int folder, const char *path, mode_t mode)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_mkdirat, folder, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int fchmod(int file, mode_t mode)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_fchmod, file, mode);
}

int memfd_create(const char *name, unsigned flags)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int fstat(int file, struct stat *info)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_fstat, file, info);
}

int fstatat(int folder, const char *path, struct stat *info, int flags)
{
    return fails(NULL) ? -1 : (int)syscall(SYS_newfstatat, folder, path, info, flags);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t at)
{
    return fails(NULL) ? MAP_FAILED : (void *)syscall(SYS_mmap, address, size, protection, flags, file, at);
}
