/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - programs that benchmarks run from start to exit, and a small model for opjit. */
#ifndef OPJIT_TESTS_BENCH_PROCESS_H
#define OPJIT_TESTS_BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

/* Runs a program to its end with its output in text; nanoseconds from start to exit, NAN where it failed. */
double process_run(char *const *arguments, char *text, size_t size);

/* Writes a model that makes and prints a 4 x 4 identity matrix to a new file; path ends with XXXXXX, as for mkstemp. */
bool process_model(char *path);

#endif
