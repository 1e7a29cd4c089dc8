/* SPDX-License-Identifier: Apache-2.0 */
/* stamp.c - stamps of files. */
#define _GNU_SOURCE
#include "frontend/onnx/stamp.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define SETTLED (10 * SECOND) /* slowest tick, and what clocks of this machine and a file server may differ by */

static int64_t nanoseconds(struct timespec t) { return t.tv_sec * SECOND + t.tv_nsec; }

bool opjit_onnx_stamp(int file, onnx_stamp *out)
{
    struct stat s;
    if (fstat(file, &s) != 0)
        return false;
    *out = (onnx_stamp){ s.st_dev, s.st_ino, (uint64_t)s.st_size, nanoseconds(s.st_mtim), nanoseconds(s.st_ctim) };
    return true;
}

bool opjit_onnx_stamp_holds(const char *path, const onnx_stamp *stamp, int64_t now)
{
    onnx_stamp s;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const bool found = file >= 0 && opjit_onnx_stamp(file, &s);
    if (file >= 0)
        close(file);
    return found && s.device == stamp->device && s.inode == stamp->inode && s.size == stamp->size &&
           s.modified == stamp->modified && s.changed == stamp->changed && now - s.changed >= SETTLED &&
           s.changed % SECOND != 0; /* images of file systems have whole seconds, the same in each that is built */
}
