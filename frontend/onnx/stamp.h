/* SPDX-License-Identifier: Apache-2.0 */
/* stamp.h - what the file system says of a file, by which its bytes are known again without reading them. */
#ifndef OPJIT_FRONTEND_ONNX_STAMP_H
#define OPJIT_FRONTEND_ONNX_STAMP_H

#include <stdbool.h>
#include <stdint.h>

struct stat;

typedef struct onnx_stamp {
    uint64_t device, inode, size;
    int64_t modified, changed; /* nanoseconds since 1970; every write moves `changed`, and nobody can set it */
} onnx_stamp;

onnx_stamp opjit_onnx_stamp(const struct stat *about);
/* Whether the file at path has this stamp now, at time `now` (nanoseconds since 1970), and any write from now on gives
 * it another one: the last one was so long ago that the clocks of file systems, which tick slowly, have moved on. */
bool opjit_onnx_stamp_holds(const char *path, const onnx_stamp *stamp, int64_t now);

#endif
