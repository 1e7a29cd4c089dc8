/* SPDX-License-Identifier: Apache-2.0 */
/* fake_hip.h - what tests share with the fake HIP driver, which they load: a launch as it arrived there. */
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
    /* Where [address, address + bytes) of the device's memory lies here; NULL: it is no memory of the device. */
    void *(*host)(uint64_t address, size_t bytes);
} fake_hip_launch;

/* Called for every launch when what stands before it in its stream is done, in place of the kernel. */
typedef void (*fake_hip_kernel)(void *user, const fake_hip_launch *launch);
typedef void (*fake_hip_on_launch_fn)(fake_hip_kernel kernel, void *user); /* fake_hip_on_launch; NULL: nothing */

#endif
