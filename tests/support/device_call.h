/* SPDX-License-Identifier: Apache-2.0 */
/* device_call.h - makes and calls kernels for a device as applications do, for tests whose buffers are on the host. */
#ifndef OPJIT_TESTS_SUPPORT_DEVICE_CALL_H
#define OPJIT_TESTS_SUPPORT_DEVICE_CALL_H

#include <opjit/opjit.h>

/* The context of the device in OPJIT_TEST_DEVICE, one per process. */
opjit_status test_device_context(opjit_context **out, opjit_error *error);
/* Calls a kernel of that context with copies of the buffers (inputs, then outputs, in the metadata's order) between
 * guards on the device, and copies the outputs back.  INTERNAL: a guard or an input was written to. */
opjit_status test_device_call(const opjit_kernel *kernel, void *const *buffers, const uint64_t *params,
                              opjit_error *error);
/* Whether `step` is the first of a variant. */
bool test_device_begins(const opjit_kernel *kernel, uint32_t step);

#endif
