/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_mean_variance.c - MEAN_VARIANCE_NORMALIZATION and MEAN_VARIANCE_NORMALIZATION1: messages of what they refuse,
 * and what they are lowered to. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/descriptors.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32

typedef struct built {
    uint32_t sizes[4][4]; /* input, scale, bias, output */
    uint32_t axes[2];
    DML_BUFFER_TENSOR_DESC buffers[4];
    DML_TENSOR_DESC tensors[4];
    DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC desc;
    DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC desc1;
    DML_ACTIVATION_RELU_OPERATOR_DESC relu_desc;
    DML_OPERATOR_DESC op, relu;
} built;

static void build(built *b, bool with_axes, DML_TENSOR_DATA_TYPE type)
{
    *b = (built){ .sizes = { { 2, 3, 4, 5 }, { 1, 3, 1, 1 }, { 1, 3, 1, 5 }, { 2, 3, 4, 5 } }, .axes = { 3, 1 } };
    for (uint32_t i = 0; i < 4; i++) {
        b->buffers[i] = (DML_BUFFER_TENSOR_DESC){
            .DataType = type, .DimensionCount = 4, .Sizes = b->sizes[i], .TotalTensorSizeInBytes = 960
        };
        b->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &b->buffers[i] };
    }
    b->relu = (DML_OPERATOR_DESC){ DML_OPERATOR_ACTIVATION_RELU, &b->relu_desc };
    b->desc = (DML_MEAN_VARIANCE_NORMALIZATION_OPERATOR_DESC){
        &b->tensors[0], &b->tensors[1], &b->tensors[2], &b->tensors[3], 0, 1, 0.5f, &b->relu
    };
    b->desc1 = (DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC){
        &b->tensors[0], &b->tensors[1], &b->tensors[2], &b->tensors[3], 2, b->axes, 1, 0.5f, NULL
    };
    b->op = with_axes ? (DML_OPERATOR_DESC){ DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION1, &b->desc1 }
                      : (DML_OPERATOR_DESC){ DML_OPERATOR_MEAN_VARIANCE_NORMALIZATION, &b->desc };
}

static void expect(DML_FEATURE_LEVEL level, const built *b, const char *message)
{
    test_expect_operator(level, &b->op, message);
}

START_TEST(refusals)
{
    built b;

    build(&b, false, F32);
    b.sizes[1][1] = 2;
    expect(0, &b, "MEAN_VARIANCE_NORMALIZATION ScaleTensor.Sizes[1]: 2, must be 1 or 3 as InputTensor.Sizes");
    build(&b, true, F32);
    b.buffers[2].DataType = DML_TENSOR_DATA_TYPE_FLOAT16;
    expect(0, &b,
           "MEAN_VARIANCE_NORMALIZATION1 BiasTensor.DataType: FLOAT16, must be FLOAT32 as OutputTensor.DataType");
    build(&b, true, F32);
    b.buffers[1].DimensionCount = 3;
    expect(0, &b, "MEAN_VARIANCE_NORMALIZATION1 ScaleTensor.DimensionCount: 3, must be 4 as InputTensor's");
    build(&b, true, F32);
    b.axes[1] = 3;
    expect(0, &b, "MEAN_VARIANCE_NORMALIZATION1 Axes[1]: 3, must be there once");
    build(&b, false, F32);
    b.buffers[0].DimensionCount = 3;
    expect(0, &b, "MEAN_VARIANCE_NORMALIZATION InputTensor.DimensionCount: 3, must be 4");
    build(&b, false, DML_TENSOR_DATA_TYPE_INT32);
    expect(0, &b, "MEAN_VARIANCE_NORMALIZATION InputTensor.DataType: INT32, must be FLOAT32, FLOAT16 or FLOAT64");
    build(&b, false, F32);
    b.sizes[3][0] = 1;
    expect(0, &b, "MEAN_VARIANCE_NORMALIZATION InputTensor.Sizes[0]: 2, must be 1 as OutputTensor.Sizes[0]");
}
END_TEST

START_TEST(feature_levels)
{
    built b;

    build(&b, false, F32);
    expect(DML_FEATURE_LEVEL_1_0, &b, "");
    b.desc.ScaleTensor = NULL;
    expect(0, &b, "");
    expect(DML_FEATURE_LEVEL_5_2, &b, "");
    expect(DML_FEATURE_LEVEL_5_1, &b,
           "MEAN_VARIANCE_NORMALIZATION ScaleTensor: NULL, must be there where BiasTensor is, "
           "before feature level 5.2");
    build(&b, true, F32);
    expect(DML_FEATURE_LEVEL_2_1, &b, "");
    expect(DML_FEATURE_LEVEL_2_0, &b, "MEAN_VARIANCE_NORMALIZATION1 needs feature level 2.1, this context has 2.0");
}
END_TEST

/* --- what they are lowered to ------------------------------------------------------------------------------------- */

/* golden/lower/mean_variance_*.ir: FLOAT32; and FLOAT16 over all channels or without a division (OPJIT_UPDATE_GOLDEN=1
 * rewrites it). */
START_TEST(lowered)
{
    static const char *const files[] = { "mean_variance_normalization", "mean_variance_normalization1" };
    opjit_context *context = test_context_at(0);
    rt_bytes out;
    built b;

    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    build(&b, _i == 1, F32);
    test_append_lowered(context, &b.op, &out);
    build(&b, _i == 1, DML_TENSOR_DATA_TYPE_FLOAT16);
    b.desc.CrossChannel = 1;
    b.desc1.NormalizeVariance = 0;
    test_append_lowered(context, &b.op, &out);
    test_compare_lowered(files[_i], &out);
    opjit_rt_bytes_free(&out);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.mean_variance");
    TCase *tcase = tcase_create("descriptors");
    tcase_add_test(tcase, refusals);
    tcase_add_test(tcase, feature_levels);
    tcase_add_loop_test(tcase, lowered, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
