/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_cumulative.c - CUMULATIVE_SUMMATION and CUMULATIVE_PRODUCT: messages of what they refuse, the feature level
 * that introduces them, what they are lowered to. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/descriptors.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32

typedef struct built {
    uint32_t in_sizes[4], out_sizes[4];
    DML_BUFFER_TENSOR_DESC buffers[2];
    DML_TENSOR_DESC tensors[2];
    DML_CUMULATIVE_SUMMATION_OPERATOR_DESC desc; /* CUMULATIVE_PRODUCT has the same fields */
    DML_OPERATOR_DESC op;
} built;

static void build(built *b, bool product, DML_TENSOR_DATA_TYPE type)
{
    *b = (built){ .in_sizes = { 2, 5 }, .out_sizes = { 2, 5 } };
    for (uint32_t i = 0; i < 2; i++) {
        b->buffers[i] = (DML_BUFFER_TENSOR_DESC){ .DataType = type, .DimensionCount = 2,
                                                  .Sizes = i == 0 ? b->in_sizes : b->out_sizes,
                                                  .TotalTensorSizeInBytes = 80 };
        b->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &b->buffers[i] };
    }
    b->desc = (DML_CUMULATIVE_SUMMATION_OPERATOR_DESC){ &b->tensors[0], &b->tensors[1], 1,
                                                        DML_AXIS_DIRECTION_INCREASING, 0 };
    b->op = (DML_OPERATOR_DESC){ product ? DML_OPERATOR_CUMULATIVE_PRODUCT : DML_OPERATOR_CUMULATIVE_SUMMATION,
                                 &b->desc };
}

static void expect(DML_FEATURE_LEVEL level, const built *b, const char *message)
{
    test_expect_operator(level, &b->op, message);
}

START_TEST(refusals)
{
    built b;

    build(&b, false, F32);
    b.desc.Axis = 2;
    expect(0, &b, "CUMULATIVE_SUMMATION Axis: 2, must be below 2, InputTensor.DimensionCount");
    build(&b, true, F32);
    b.desc.Axis = 4000000000u;
    expect(0, &b, "CUMULATIVE_PRODUCT Axis: 4000000000, must be below 2, InputTensor.DimensionCount");
    build(&b, true, F32);
    b.out_sizes[0] = 3;
    expect(0, &b, "CUMULATIVE_PRODUCT InputTensor.Sizes[0]: 2, must be 3 as OutputTensor.Sizes[0]");
    build(&b, false, F32);
    b.buffers[1].DataType = DML_TENSOR_DATA_TYPE_FLOAT16;
    expect(0, &b, "CUMULATIVE_SUMMATION InputTensor.DataType: FLOAT32, must be FLOAT16 as OutputTensor.DataType");
    build(&b, false, DML_TENSOR_DATA_TYPE_UINT8);
    expect(0, &b, "CUMULATIVE_SUMMATION InputTensor.DataType: UINT8, must be FLOAT32, FLOAT16, UINT32, INT32, FLOAT64, "
                  "UINT64 or INT64");
    build(&b, false, F32);
    b.desc.AxisDirection = (DML_AXIS_DIRECTION)2;
    expect(0, &b, "CUMULATIVE_SUMMATION AxisDirection: 2, must be a DML_AXIS_DIRECTION (0 to 1)");
}
END_TEST

START_TEST(feature_levels)
{
    built b;

    build(&b, false, F32);
    expect(DML_FEATURE_LEVEL_2_1, &b, "");
    expect(DML_FEATURE_LEVEL_2_0, &b, "CUMULATIVE_SUMMATION needs feature level 2.1, this context has 2.0");
    build(&b, true, F32);
    expect(DML_FEATURE_LEVEL_3_1, &b, "");
    expect(DML_FEATURE_LEVEL_3_0, &b, "CUMULATIVE_PRODUCT needs feature level 3.1, this context has 3.0");
    build(&b, true, DML_TENSOR_DATA_TYPE_FLOAT64);
    expect(0, &b, "");
    expect(DML_FEATURE_LEVEL_3_1, &b,
           "CUMULATIVE_PRODUCT InputTensor.DataType: FLOAT64, must be FLOAT32, FLOAT16, UINT32, INT32, "
           "UINT64 or INT64 at feature level 3.1");
}
END_TEST

/* --- what they are lowered to ------------------------------------------------------------------------------------- */

/* golden/lower/cumulative_*.ir: forward; and backward, exclusive, in FLOAT16 (OPJIT_UPDATE_GOLDEN=1 rewrites it). */
START_TEST(lowered)
{
    static const char *const files[] = { "cumulative_summation", "cumulative_product" };
    opjit_context *context = test_context_at(0);
    rt_bytes out;
    built b;

    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    build(&b, _i == 1, F32);
    test_append_lowered(context, &b.op, &out);
    build(&b, _i == 1, DML_TENSOR_DATA_TYPE_FLOAT16);
    b.desc.Axis = 0;
    b.desc.AxisDirection = DML_AXIS_DIRECTION_DECREASING;
    b.desc.HasExclusiveSum = 1;
    test_append_lowered(context, &b.op, &out);
    test_compare_lowered(files[_i], &out);
    opjit_rt_bytes_free(&out);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.cumulative");
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
