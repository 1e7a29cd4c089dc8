/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_reduce.c - REDUCE, ARGMIN, ARGMAX and the softmax family: messages of what they refuse, what a feature level
 * allows, and what they are lowered to. */
#include <check.h>
#include <stdlib.h>

#include "tests/support/descriptors.h"

#define TYPE(name) DML_TENSOR_DATA_TYPE_##name
#define ACTIVATION(name) DML_OPERATOR_ACTIVATION_##name

typedef struct built {
    uint32_t sizes[2][4], axes[2];
    DML_BUFFER_TENSOR_DESC buffers[2];
    DML_TENSOR_DESC tensors[2];
    DML_REDUCE_OPERATOR_DESC reduce;
    DML_ARGMIN_OPERATOR_DESC arg;
    DML_ACTIVATION_SOFTMAX_OPERATOR_DESC softmax;
    DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax1;
    DML_OPERATOR_DESC op;
} built;

static bool reduces(DML_OPERATOR_TYPE type)
{
    return type == DML_OPERATOR_REDUCE || type == DML_OPERATOR_ARGMIN || type == DML_OPERATOR_ARGMAX;
}

/* Sizes {2, 3, 4, 5}, axes {3, 1}. */
static void build(built *b, DML_OPERATOR_TYPE type, DML_TENSOR_DATA_TYPE in, DML_TENSOR_DATA_TYPE out)
{
    *b = (built){ .sizes = { { 2, 3, 4, 5 }, { 2, 3, 4, 5 } }, .axes = { 3, 1 } };
    if (reduces(type))
        b->sizes[1][1] = b->sizes[1][3] = 1;
    for (uint32_t i = 0; i < 2; i++) {
        b->buffers[i] =
            (DML_BUFFER_TENSOR_DESC){ .DataType = i == 0 ? in : out, .DimensionCount = 4, .Sizes = b->sizes[i] };
        b->tensors[i] = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &b->buffers[i] };
    }
    b->reduce = (DML_REDUCE_OPERATOR_DESC){ DML_REDUCE_FUNCTION_SUM, &b->tensors[0], &b->tensors[1], 2, b->axes };
    b->arg = (DML_ARGMIN_OPERATOR_DESC){ &b->tensors[0], &b->tensors[1], 2, b->axes, DML_AXIS_DIRECTION_INCREASING };
    b->softmax = (DML_ACTIVATION_SOFTMAX_OPERATOR_DESC){ &b->tensors[0], &b->tensors[1] };
    b->softmax1 = (DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC){ &b->tensors[0], &b->tensors[1], 2, b->axes };
    b->op.Type = type;
    switch (type) {
    case DML_OPERATOR_REDUCE: b->op.Desc = &b->reduce; break;
    case DML_OPERATOR_ARGMIN:
    case DML_OPERATOR_ARGMAX: b->op.Desc = &b->arg; break;
    case ACTIVATION(SOFTMAX):
    case ACTIVATION(LOG_SOFTMAX):
    case ACTIVATION(HARDMAX): b->op.Desc = &b->softmax; break;
    default: b->op.Desc = &b->softmax1; break;
    }
}

static void expect(uint32_t level, const built *b, const char *message)
{
    test_expect_operator(level, &b->op, message);
}

/* --- feature levels ----------------------------------------------------------------------------------------------- */

/* Types that every level has; and FLOAT64, which none has. */
static const struct {
    DML_OPERATOR_TYPE type;
    DML_TENSOR_DATA_TYPE in, out;
    uint32_t since;
    const char *f64; /* message for FLOAT64 at that level */
} levels[] = {
    { DML_OPERATOR_REDUCE, TYPE(UINT64), TYPE(UINT64), 0x1000,
      "REDUCE InputTensor.DataType: FLOAT64, must be FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, "
      "UINT64 or INT64 at feature level 1.0" },
    { DML_OPERATOR_ARGMIN, TYPE(INT8), TYPE(INT64), 0x3000,
      "ARGMIN InputTensor.DataType: FLOAT64, must be FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, "
      "UINT64 or INT64 at feature level 3.0" },
    { DML_OPERATOR_ARGMAX, TYPE(FLOAT16), TYPE(UINT32), 0x3000,
      "ARGMAX InputTensor.DataType: FLOAT64, must be FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, "
      "UINT64 or INT64 at feature level 3.0" },
    { ACTIVATION(SOFTMAX1), TYPE(FLOAT16), TYPE(FLOAT16), 0x5100,
      "ACTIVATION_SOFTMAX1 InputTensor.DataType: FLOAT64, must be FLOAT32 or FLOAT16 at feature level 5.1" },
    { ACTIVATION(LOG_SOFTMAX1), TYPE(FLOAT32), TYPE(FLOAT32), 0x5100,
      "ACTIVATION_LOG_SOFTMAX1 InputTensor.DataType: FLOAT64, must be FLOAT32 or FLOAT16 at feature level 5.1" },
    { ACTIVATION(HARDMAX1), TYPE(FLOAT32), TYPE(FLOAT32), 0x5100,
      "ACTIVATION_HARDMAX1 InputTensor.DataType: FLOAT64, must be FLOAT32 or FLOAT16 at feature level 5.1" },
};

START_TEST(types_by_level)
{
    built b;

    build(&b, levels[_i].type, levels[_i].in, levels[_i].out);
    expect(levels[_i].since, &b, "");
    expect(0, &b, "");
    b.buffers[0].DataType = TYPE(FLOAT64);
    if (b.buffers[1].DataType == levels[_i].in)
        b.buffers[1].DataType = TYPE(FLOAT64);
    expect(levels[_i].since, &b, levels[_i].f64);
    expect(0, &b, "");
}
END_TEST

/* The forms without Axes take matrices; leading sizes of 1 are allowed. */
START_TEST(matrices_by_level)
{
    static const DML_OPERATOR_TYPE types[] = { ACTIVATION(SOFTMAX), ACTIVATION(LOG_SOFTMAX), ACTIVATION(HARDMAX) };
    static const char *const messages[] = {
        "ACTIVATION_SOFTMAX InputTensor.Sizes: 3 dimensions after the leading ones, must be at most 2 at feature "
        "level 6.4",
        ("ACTIVATION_LOG_SOFTMAX InputTensor.Sizes: 3 dimensions after the leading ones, must be at most 2 at feature "
         "level 6.4"),
        "ACTIVATION_HARDMAX InputTensor.Sizes: 3 dimensions after the leading ones, must be at most 2 at feature "
        "level 6.4",
    };
    built b;

    build(&b, types[_i], TYPE(FLOAT32), TYPE(FLOAT32));
    b.sizes[0][0] = b.sizes[1][0] = 1;
    expect(0, &b, "");
    expect(0x6400, &b, messages[_i]);
    b.sizes[0][2] = b.sizes[1][2] = 1; /* {1, 3, 1, 5}: a one between others counts */
    expect(0x6400, &b, messages[_i]);
    b.sizes[0][1] = b.sizes[1][1] = 1;
    expect(0x6400, &b, "");
    b.sizes[0][2] = b.sizes[1][2] = 4;
    expect(0x1000, &b, "");
    b.sizes[0][2] = b.sizes[1][2] = b.sizes[0][3] = b.sizes[1][3] = 1;
    expect(0x1000, &b, "");
}
END_TEST

/* --- refusals ----------------------------------------------------------------------------------------------------- */

START_TEST(refusals)
{
    built b;

    build(&b, DML_OPERATOR_REDUCE, TYPE(FLOAT32), TYPE(FLOAT32));
    b.reduce.AxisCount = 0;
    expect(0, &b, "REDUCE AxisCount: 0, must be 1 to 4");
    build(&b, DML_OPERATOR_REDUCE, TYPE(FLOAT32), TYPE(FLOAT32));
    b.axes[1] = 3;
    expect(0, &b, "REDUCE Axes[1]: 3, must be there once");
    build(&b, DML_OPERATOR_ARGMAX, TYPE(FLOAT32), TYPE(INT32));
    b.axes[0] = 4;
    expect(0, &b, "ARGMAX Axes[0]: 4, must be at most 3, the last axis");
    build(&b, DML_OPERATOR_ARGMIN, TYPE(FLOAT32), TYPE(INT32));
    b.sizes[1][1] = 3;
    expect(0, &b, "ARGMIN OutputTensor.Sizes[1]: 3, must be 1, a reduced axis");
    build(&b, DML_OPERATOR_ARGMIN, TYPE(FLOAT32), TYPE(INT8));
    expect(0, &b, "ARGMIN OutputTensor.DataType: INT8, must be UINT32, INT32, UINT64 or INT64");
    build(&b, DML_OPERATOR_REDUCE, TYPE(INT32), TYPE(FLOAT32));
    expect(0, &b, "REDUCE InputTensor.DataType: INT32, must be FLOAT32 as OutputTensor.DataType");
    build(&b, DML_OPERATOR_REDUCE, TYPE(INT8), TYPE(INT8));
    expect(0, &b, "REDUCE InputTensor.DataType: INT8, must be FLOAT64/32/16, INT64/32, UINT64/32");
    build(&b, ACTIVATION(SOFTMAX1), TYPE(FLOAT32), TYPE(FLOAT32));
    b.axes[1] = 3;
    expect(0, &b, "ACTIVATION_SOFTMAX1 Axes[1]: 3, must be there once");
    build(&b, ACTIVATION(HARDMAX), TYPE(FLOAT32), TYPE(FLOAT16));
    expect(0, &b, "ACTIVATION_HARDMAX InputTensor.DataType: FLOAT32, must be FLOAT16 as OutputTensor.DataType");
}
END_TEST

/* --- what they are lowered to ------------------------------------------------------------------------------------- */

static const struct {
    DML_OPERATOR_TYPE type;
    const char *file;
} lowerings[] = {
    { DML_OPERATOR_REDUCE, "reduce" },
    { DML_OPERATOR_ARGMIN, "argmin" },
    { DML_OPERATOR_ARGMAX, "argmax" },
    { ACTIVATION(SOFTMAX), "activation_softmax" },
    { ACTIVATION(SOFTMAX1), "activation_softmax1" },
    { ACTIVATION(LOG_SOFTMAX), "activation_log_softmax" },
    { ACTIVATION(LOG_SOFTMAX1), "activation_log_softmax1" },
    { ACTIVATION(HARDMAX), "activation_hardmax" },
    { ACTIVATION(HARDMAX1), "activation_hardmax1" },
};

/* golden/lower/<operator>.ir: REDUCE with every function, the others in FLOAT32 and FLOAT16 (OPJIT_UPDATE_GOLDEN=1
 * rewrites them). */
START_TEST(lowered)
{
    const DML_OPERATOR_TYPE type = lowerings[_i].type;
    const bool arg = type == DML_OPERATOR_ARGMIN || type == DML_OPERATOR_ARGMAX;
    opjit_context *context = test_context_at(0);
    rt_bytes out;
    built b;

    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    for (int i = 0; i < (type == DML_OPERATOR_REDUCE ? 12 : 2); i++) {
        const DML_TENSOR_DATA_TYPE in = i % 2 == 0 ? TYPE(FLOAT32) : TYPE(FLOAT16);
        const bool index = arg || (type == DML_OPERATOR_REDUCE && i <= DML_REDUCE_FUNCTION_ARGMIN);
        build(&b, type, in, index ? TYPE(INT32) : in);
        b.reduce.Function = (DML_REDUCE_FUNCTION)i;
        b.arg.AxisDirection = (DML_AXIS_DIRECTION)(i % 2);
        test_append_lowered(context, &b.op, &out);
    }
    test_compare_lowered(lowerings[_i].file, &out);
    opjit_rt_bytes_free(&out);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.reduce");
    TCase *tcase = tcase_create("descriptors");
    tcase_add_loop_test(tcase, types_by_level, 0, sizeof levels / sizeof *levels);
    tcase_add_loop_test(tcase, matrices_by_level, 0, 3);
    tcase_add_test(tcase, refusals);
    tcase_add_loop_test(tcase, lowered, 0, sizeof lowerings / sizeof *lowerings);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
