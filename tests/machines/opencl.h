/* SPDX-License-Identifier: Apache-2.0 */
/* opencl.h - the part of OpenCL that tests call, of the library that the system's loader finds. */
#ifndef OPJIT_TEST_MACHINES_OPENCL_H
#define OPJIT_TEST_MACHINES_OPENCL_H

#include <stdbool.h>
#include <stddef.h>

/* The first device of this process that takes SPIR-V 1.2, keeps denormals and has f64; *why says why there is none. */
bool test_opencl_open(char *why, size_t size);

#endif
