/* SPDX-License-Identifier: Apache-2.0 */
/* require.h - an assertion for helpers that run in Check's tests, in fuzz targets and in benchmarks. */
#ifndef OPJIT_TESTS_SUPPORT_REQUIRE_H
#define OPJIT_TESTS_SUPPORT_REQUIRE_H

#include <stdbool.h>

#include <opjit/status.h>

/* Prints the reason and aborts unless condition holds. */
void test_require(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Aborts unless the refusal says where it is, in the fields of *error as in its message: an op and a field. */
void test_require_place(const opjit_error *error);

#endif
