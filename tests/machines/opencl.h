/* SPDX-License-Identifier: Apache-2.0 */
/* opencl.h - finds an OpenCL device for tests, in the library that the system's loader finds. */
#ifndef OPJIT_TEST_MACHINES_OPENCL_H
#define OPJIT_TEST_MACHINES_OPENCL_H

#include <stdbool.h>
#include <stddef.h>

/* Opens the first device that accepts SPIR-V 1.2, keeps denormals and has f64, once per process; *why says why there is
 * none. */
bool test_opencl_open(char *why, size_t size);

#endif
