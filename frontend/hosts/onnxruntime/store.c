/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - bytes in files: a checksum, reading, and writing so that readers see a whole file or none. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/hosts/onnxruntime/provider.h"

uint64_t opjit_ort_hash(uint64_t before, const void *data, size_t size)
{
    const unsigned char *const from = data;
    uint64_t h = before == 0 ? 0xcbf29ce484222325u : before, word;
    size_t at = 0;
    for (; size - at >= sizeof word; at += sizeof word) {
        memcpy(&word, from + at, sizeof word);
        h = (h ^ word) * 0x100000001b3u;
        h ^= h >> 29;
    }
    for (; at < size; at++)
        h = (h ^ from[at]) * 0x100000001b3u;
    return h;
}

const char *opjit_ort_read_file(const char *path, stored *out)
{
    struct stat info;
    *out = (stored){ NULL, 0, true };
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0)
        return strerror(errno);
    const char *reason = NULL;
    if (fstat(file, &info) != 0) {
        reason = strerror(errno);
    } else if (!S_ISREG(info.st_mode) || info.st_size == 0) {
        reason = "it is no file, or an empty one";
    } else {
        void *const data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED)
            reason = strerror(errno);
        else
            *out = (stored){ data, (size_t)info.st_size, true };
    }
    close(file);
    return reason;
}

void opjit_ort_free_stored(stored *s)
{
    if (s->data != NULL && s->is_mapped)
        munmap(s->data, s->size);
    else
        free(s->data);
    *s = (stored){ NULL, 0, false };
}

static const char *write_all(int file, const unsigned char *data, size_t size)
{
    while (size > 0) {
        const ssize_t done = write(file, data, size);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? strerror(errno) : "the file takes no more";
        data += done;
        size -= (size_t)done;
    }
    return NULL;
}

const char *opjit_ort_write_file(const char *path, const void *data, size_t size)
{
    char unfinished[ORT_PATH + 32];
    if (snprintf(unfinished, sizeof unfinished, "%s.%ld", path, (long)getpid()) >= (int)sizeof unfinished)
        return strerror(ENAMETOOLONG);
    const int file = open(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0)
        return strerror(errno);
    const char *reason = write_all(file, data, size);
    if (close(file) != 0 && reason == NULL)
        reason = strerror(errno);
    if (reason == NULL && rename(unfinished, path) != 0)
        reason = strerror(errno);
    if (reason != NULL)
        (void)unlink(unfinished);
    return reason;
}
