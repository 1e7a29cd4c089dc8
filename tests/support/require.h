/* SPDX-License-Identifier: Apache-2.0 */
/* require.h - an assertion for helpers that run in Check's tests, in fuzz targets and in benchmarks. */
#ifndef OPJIT_TESTS_SUPPORT_REQUIRE_H
#define OPJIT_TESTS_SUPPORT_REQUIRE_H

#include <stdbool.h>

/* Prints the reason and aborts unless condition holds. */
void test_require(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
