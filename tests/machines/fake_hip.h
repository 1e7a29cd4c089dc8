/* SPDX-License-Identifier: Apache-2.0 */
/* fake_hip.h - shared by tests and the fake HIP driver that they load: a launch as the driver received it. */
#ifndef OPJIT_TEST_MACHINES_FAKE_HIP_H
#define OPJIT_TEST_MACHINES_FAKE_HIP_H

#include <stddef.h>
#include <stdint.h>

typedef struct fake_hip_launch {
    const char *name;
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;     /* of a block, as the code object says */
    uint32_t argument_count;   /* of 8 bytes, likewise */
    const uint64_t *arguments; /* valid during the call only */
    const void *stream;
    /* The host memory behind [address, address + bytes) of the device; NULL: not device memory. */
    void *(*host)(uint64_t address, size_t bytes);
} fake_hip_launch;

/* Called in place of the kernel for every launch, once the work before it in its stream is done. */
typedef void (*fake_hip_kernel)(void *user, const fake_hip_launch *launch);
typedef void (*fake_hip_on_launch_fn)(fake_hip_kernel kernel, void *user); /* fake_hip_on_launch; NULL: nothing */

#endif
