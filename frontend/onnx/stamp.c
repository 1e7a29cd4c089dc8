/* SPDX-License-Identifier: Apache-2.0 */
/* stamp.c - stamps of files. */
#define _GNU_SOURCE
#include "frontend/onnx/stamp.h"

#include <sys/stat.h>

#define SECOND INT64_C(1000000000)
#define SETTLED (10 * SECOND) /* slowest tick, and what clocks of this machine and a file server may differ by */

static int64_t nanoseconds(struct timespec t) { return t.tv_sec * SECOND + t.tv_nsec; }

onnx_stamp opjit_onnx_stamp(const struct stat *about)
{
    return (onnx_stamp){ about->st_dev, about->st_ino, (uint64_t)about->st_size, nanoseconds(about->st_mtim),
                         nanoseconds(about->st_ctim) };
}

bool opjit_onnx_stamp_holds(const char *path, const onnx_stamp *stamp, int64_t now)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return false;
    const onnx_stamp s = opjit_onnx_stamp(&about);
    return s.device == stamp->device && s.inode == stamp->inode && s.size == stamp->size &&
           s.modified == stamp->modified && s.changed == stamp->changed && now - s.changed >= SETTLED &&
           s.changed % SECOND != 0; /* images of file systems have whole seconds, the same in each that is built */
}
