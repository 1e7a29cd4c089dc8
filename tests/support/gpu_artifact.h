/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_artifact.h - makes artifacts of many kinds of kernels for a GPU, and runs programs that read them. */
#ifndef OPJIT_TESTS_SUPPORT_GPU_ARTIFACT_H
#define OPJIT_TESTS_SUPPORT_GPU_ARTIFACT_H

#include <opjit/artifact.h>
#include <opjit/opjit.h>
#include <stdbool.h>
#include <stddef.h>

#include "tests/support/pointwise_case.h"

/* An artifact of one operator, named "made". */
opjit_artifact *gpu_artifact_make(opjit_context *context, const DML_OPERATOR_DESC *desc, const char *target);

typedef void gpu_artifact_check(opjit_artifact *artifact, const DML_OPERATOR_DESC *desc, void *user);

/* The operator with every type of its first input, for the targets in turn, starting at `first`. */
void gpu_artifact_pointwise(opjit_context *context, const ref_pointwise_row *row, const char *const *targets,
                            uint32_t count, uint32_t first, gpu_artifact_check *check, void *user);
/* Softmax, a sum, a scan and a matrix with ones, of f32, f16 and f64: rows by teams, columns by threads. */
void gpu_artifact_others(opjit_context *context, const char *target, gpu_artifact_check *check, void *user);

/* Fails where the tool ($variable, set by the build where one is found) fails or warns; *said holds its output.  False:
 * there is no tool. */
bool gpu_artifact_read_by(const char *variable, const char *options, const void *data, size_t bytes, char *said,
                          size_t size);

#endif
