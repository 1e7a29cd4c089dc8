/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_artifact.c - descriptors, compiles, and processes that read files. */
#define _GNU_SOURCE
#include "tests/support/gpu_artifact.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/cases.h"

opjit_artifact *gpu_artifact_make(opjit_context *context, const DML_OPERATOR_DESC *desc, const char *target)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact *artifact = NULL;
    opjit_operator *op = NULL;
    opjit_error error;
    ck_assert_msg(opjit_operator_create(context, desc, &op, &error) == OPJIT_OK, "%s", error.message);
    options.target_count = 1;
    options.targets = &target;
    compile.name = "made";
    ck_assert_msg(opjit_artifact_create(context, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_artifact_add_operator(artifact, op, &compile, &error) == OPJIT_OK, "%s", error.message);
    opjit_operator_release(op);
    return artifact;
}

static void make_and_check(opjit_context *context, const DML_OPERATOR_DESC *desc, const char *target,
                           gpu_artifact_check *check, void *user)
{
    opjit_artifact *artifact = gpu_artifact_make(context, desc, target);
    check(artifact, desc, user);
    opjit_artifact_destroy(artifact);
}

void gpu_artifact_pointwise(opjit_context *context, const ref_pointwise_row *row, const char *const *targets,
                            uint32_t count, uint32_t first, gpu_artifact_check *check, void *user)
{
    for (uint32_t a = 0; a < TEST_TYPE_COUNT; a++) {
        DML_TENSOR_DATA_TYPE types[2] = { test_types[a], test_types[a] };
        pointwise_case c;
        if (!ref_pointwise_allows(row, 'a', 0, types[0]))
            continue;
        for (uint32_t b = 0; row->types[1] != NULL && !ref_pointwise_allows(row, 'b', 0, types[1]); b++)
            types[1] = test_types[b];
        pointwise_case_plain(row, types, 2, &c);
        make_and_check(context, &c.op, targets[(a + first) % count], check, user);
    }
}

void gpu_artifact_others(opjit_context *context, const char *target, gpu_artifact_check *check, void *user)
{
    static const uint32_t sizes[] = { 3, 512, 1024 }, row_sizes[] = { 3, 512, 1 }, axes[] = { 2 };
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_FLOAT64 };
    for (uint32_t i = 0; i < 3; i++) {
        const DML_BUFFER_TENSOR_DESC buffer = { types[i], DML_TENSOR_FLAG_NONE, 3, sizes, NULL, 0, 0 },
                                     rows = { types[i], DML_TENSOR_FLAG_NONE, 3, row_sizes, NULL, 0, 0 };
        const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer }, row = { DML_TENSOR_TYPE_BUFFER, &rows };
        const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &tensor, &tensor, 1, axes };
        const DML_REDUCE_OPERATOR_DESC sum = { DML_REDUCE_FUNCTION_SUM, &tensor, &row, 1, axes };
        const DML_CUMULATIVE_SUMMATION_OPERATOR_DESC scan = { &tensor, &tensor, 2, DML_AXIS_DIRECTION_INCREASING, 0 };
        const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { &tensor, 0, 1.0f };
        const DML_OPERATOR_DESC descs[] = { { DML_OPERATOR_ACTIVATION_SOFTMAX1, &softmax },
                                            { DML_OPERATOR_REDUCE, &sum },
                                            { DML_OPERATOR_CUMULATIVE_SUMMATION, &scan },
                                            { DML_OPERATOR_DIAGONAL_MATRIX, &eye } };
        for (uint32_t k = 0; k < sizeof descs / sizeof *descs; k++)
            make_and_check(context, &descs[k], target, check, user);
    }
}

bool gpu_artifact_read_by(const char *variable, const char *options, const void *data, size_t bytes, char *said,
                          size_t size)
{
    const char *tool = getenv(variable);
    char path[] = "/tmp/opjit-gpu-XXXXXX", command[512];
    if (tool == NULL || *tool == '\0')
        return false;
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, data, bytes), (ssize_t)bytes);
    close(file);
    snprintf(command, sizeof command, "'%s' %s %s 2>&1", tool, options, path);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    said[fread(said, 1, size - 1, pipe)] = '\0';
    while (fgetc(pipe) != EOF)
        ;
    const int status = pclose(pipe);
    unlink(path);
    ck_assert_msg(status == 0 && strstr(said, "arning") == NULL && strstr(said, "error:") == NULL, "%s: %.400s", tool,
                  said);
    return true;
}
