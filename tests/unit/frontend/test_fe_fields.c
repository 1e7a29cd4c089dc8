/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_fields.c - every kind of field, including those that no operator of this build uses, by a row made for the
 * test: what is copied, what is refused, what is in the key. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

typedef struct all_kinds {
    const DML_TENSOR_DESC *OptionalTensor;
    uint32_t InputCount;
    const DML_TENSOR_DESC *InputTensors;
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t OutputCount;
    const DML_TENSOR_DESC *OutputTensors;
    DML_AXIS_DIRECTION Direction;
    int32_t Flag;
    uint32_t AxisCount;
    const uint32_t *Axes;
    const float *Weights;
    const DML_SCALE_BIAS *ScaleBias;
    const DML_SCALE_BIAS *OtherScaleBias;
    const DML_OPERATOR_DESC *FusedActivation;
    uint32_t Group;
    DML_SIZE_2D Size;
} all_kinds;

static const op_enum_name direction_names[] = { { "DML_AXIS_DIRECTION_INCREASING", 0 },
                                                { "DML_AXIS_DIRECTION_DECREASING", 1 },
                                                { NULL, 0 } };
static const op_enum directions = { "DML_AXIS_DIRECTION_", direction_names };

/* clang-format off */
static const op_field all_fields[] = {
    OP_FIELD(all_kinds, OptionalTensor, OP_INPUT, OP_OPTIONAL),
    OP_FIELD(all_kinds, InputCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(all_kinds, InputTensors, InputCount, OP_INPUTS, 0),
    OP_FIELD(all_kinds, OutputTensor, OP_OUTPUT, 0),
    OP_FIELD(all_kinds, OutputCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(all_kinds, OutputTensors, OutputCount, OP_OUTPUTS, 0),
    OP_FIELD_ENUM(all_kinds, Direction, &directions),
    OP_FIELD(all_kinds, Flag, OP_BOOL, 0),
    OP_FIELD(all_kinds, AxisCount, OP_UINT, OP_COUNT),
    OP_FIELD_ARRAY(all_kinds, Axes, AxisCount, OP_UINTS, 0),
    OP_FIELD_ARRAY(all_kinds, Weights, AxisCount, OP_FLOATS, OP_OPTIONAL),
    OP_FIELD(all_kinds, ScaleBias, OP_SCALE_BIAS, OP_OPTIONAL),
    OP_FIELD(all_kinds, OtherScaleBias, OP_SCALE_BIAS, 0),
    OP_FIELD(all_kinds, FusedActivation, OP_ACTIVATION, OP_OPTIONAL),
    OP_FIELD(all_kinds, Group, OP_UINT, 0),
    OP_FIELD(all_kinds, Size, OP_SIZE_2D, 0),
};
/* clang-format on */
static const op_support all_support[] = { { NULL, 0x1000, 1, 8, OP_TYPES_ALL },
                                          { "OptionalTensor", 0x1000, 2, 2, OP_TYPES(INT32) } };
static const op_def all_def = {
    .type = DML_OPERATOR_JOIN,
    .name = "ALL_KINDS",
    .desc_size = sizeof(all_kinds),
    OP_ROWS(all_fields, all_support),
    .introduced = 0x1000,
};

typedef struct all_built {
    uint32_t sizes[2];
    DML_BUFFER_TENSOR_DESC buffer;
    DML_TENSOR_DESC tensor, inputs[3], outputs[2];
    uint32_t axes[2];
    float weights[2];
    DML_SCALE_BIAS scale_bias;
    DML_OPERATOR_DESC activation;
    all_kinds desc;
} all_built;

static void build_all(all_built *a)
{
    memset(a, 0, sizeof *a);
    a->sizes[0] = a->sizes[1] = 2;
    a->buffer = (DML_BUFFER_TENSOR_DESC){ DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, a->sizes, NULL, 0, 0 };
    a->tensor = (DML_TENSOR_DESC){ DML_TENSOR_TYPE_BUFFER, &a->buffer };
    for (int i = 0; i < 3; i++)
        a->inputs[i] = a->tensor;
    a->outputs[0] = a->outputs[1] = a->tensor;
    a->axes[0] = 1;
    a->weights[1] = -0.0f;
    a->scale_bias.Bias = 3;
    a->activation.Type = DML_OPERATOR_ACTIVATION_RELU;
    a->desc = (all_kinds){ NULL, 3, a->inputs, &a->tensor, 2,    a->outputs,     DML_AXIS_DIRECTION_DECREASING,
                           7,    2, a->axes,   a->weights, NULL, &a->scale_bias, NULL,
                           1,    { 3, 4 } };
}

static opjit_operator *make_all(all_built *a, opjit_status want, const char *message)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_operator *op = NULL;
    opjit_error error = { 0 };

    options.target = "cpu:x86-64-v1";
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    ck_assert_msg(opjit_fe_operator_make(context->core, 0, &all_def, &a->desc, &op, &error) == want, "%s",
                  error.message);
    ck_assert_str_eq(error.message, message);
    opjit_context_destroy(context);
    return op;
}

START_TEST(every_kind_is_copied)
{
    const all_kinds *copy;
    opjit_operator *op;
    all_built a;

    build_all(&a);
    op = make_all(&a, OPJIT_OK, "");
    memset(&a, 0x5a, sizeof a);
    copy = op->desc;
    ck_assert(op->input_count == 4 && op->output_count == 3);
    ck_assert(!op->inputs[0].present && op->inputs[1].present && op->inputs[3].present && op->outputs[2].present);
    ck_assert_str_eq(op->input_names[0], "OptionalTensor");
    ck_assert_str_eq(op->input_names[3], "InputTensors[2]");
    ck_assert_str_eq(op->output_names[0], "OutputTensor");
    ck_assert_str_eq(op->output_names[2], "OutputTensors[1]");
    ck_assert(copy->Axes[0] == 1 && copy->Axes[1] == 0 && copy->OtherScaleBias->Bias == 3 && copy->ScaleBias == NULL);
    ck_assert(copy->Size.Width == 3 && copy->Size.Height == 4);
    ck_assert(((const DML_BUFFER_TENSOR_DESC *)copy->InputTensors[2].Desc)->Sizes[1] == 2);
    opjit_operator_release(op);
}
END_TEST

static void all_direction(all_built *a)
{
    a->desc.Direction = (DML_AXIS_DIRECTION)2;
}
static void all_direction_minus(all_built *a)
{
    a->desc.Direction = (DML_AXIS_DIRECTION)-1;
}
static void all_inputs_null(all_built *a)
{
    a->desc.InputTensors = NULL;
}
static void all_inputs_0(all_built *a)
{
    a->desc.InputCount = 0;
}
static void all_inputs_many(all_built *a)
{
    a->desc.InputCount = UINT32_MAX;
}
static void all_input_wrong(all_built *a)
{
    a->inputs[1].Desc = NULL;
}
static void all_outputs_null(all_built *a)
{
    a->desc.OutputTensors = NULL;
}
static void all_axes_null(all_built *a)
{
    a->desc.Axes = NULL;
}
static void all_scale_null(all_built *a)
{
    a->desc.OtherScaleBias = NULL;
}
static void all_activation(all_built *a)
{
    a->activation.Type = DML_OPERATOR_ACTIVATION_SOFTMAX1;
    a->desc.FusedActivation = &a->activation;
}
static void all_activation_desc(all_built *a)
{
    a->desc.FusedActivation = &a->activation;
}
static void all_optional_rank(all_built *a)
{
    a->buffer.DimensionCount = 1;
    a->desc.OptionalTensor = &a->tensor;
}
static void all_optional_type(all_built *a)
{
    a->desc.OptionalTensor = &a->tensor;
}

/* clang-format off */
static const struct { void (*spoil)(all_built *); opjit_status status; const char *message; } all_rows[] = {
    { all_direction, OPJIT_INVALID_ARGUMENT, "ALL_KINDS Direction: 2, must be a DML_AXIS_DIRECTION (0 to 1)" },
    { all_direction_minus, OPJIT_INVALID_ARGUMENT, "ALL_KINDS Direction: -1, must be a DML_AXIS_DIRECTION (0 to 1)" },
    { all_inputs_null, OPJIT_INVALID_ARGUMENT, "ALL_KINDS InputTensors: NULL, must be an array of tensors" },
    { all_inputs_0, OPJIT_INVALID_ARGUMENT, "ALL_KINDS InputTensors: 0 tensors, must be 1 to 1024" },
    { all_inputs_many, OPJIT_INVALID_ARGUMENT, "ALL_KINDS InputTensors: 4294967295 tensors, must be 1 to 1024" },
    { all_input_wrong, OPJIT_INVALID_ARGUMENT,
      "ALL_KINDS InputTensors[1].Desc: NULL, must be a DML_BUFFER_TENSOR_DESC" },
    { all_outputs_null, OPJIT_INVALID_ARGUMENT, "ALL_KINDS OutputTensors: NULL, must be an array of tensors" },
    { all_axes_null, OPJIT_INVALID_ARGUMENT, "ALL_KINDS Axes: NULL, must be an array of 2" },
    { all_scale_null, OPJIT_INVALID_ARGUMENT, "ALL_KINDS OtherScaleBias: NULL, must be a DML_SCALE_BIAS" },
    { all_activation, OPJIT_INVALID_ARGUMENT,
      "ALL_KINDS FusedActivation: operator type 158 (ACTIVATION_SOFTMAX1), must be an activation that can be fused" },
    { all_activation_desc, OPJIT_INVALID_ARGUMENT,
      "ALL_KINDS FusedActivation: its Desc is NULL, must be its descriptor struct" },
    { all_optional_rank, OPJIT_INVALID_ARGUMENT, "ALL_KINDS OptionalTensor.DimensionCount: 1, must be 2" },
    { all_optional_type, OPJIT_INVALID_ARGUMENT, "ALL_KINDS OptionalTensor.DataType: FLOAT32, must be INT32" },
};
/* clang-format on */

START_TEST(every_kind_is_checked)
{
    all_built a;

    build_all(&a);
    all_rows[_i].spoil(&a);
    ck_assert_ptr_null(make_all(&a, all_rows[_i].status, all_rows[_i].message));
}
END_TEST

static void key_flag(all_built *a)
{
    a->desc.Flag = 0;
}
static void key_axis(all_built *a)
{
    a->axes[1] = 5;
}
static void key_weight(all_built *a)
{
    a->weights[1] = 0.0f;
}
static void key_no_weights(all_built *a)
{
    a->desc.Weights = NULL;
}
static void key_scale(all_built *a)
{
    a->scale_bias.Scale = 1;
}
static void key_scale_there(all_built *a)
{
    a->desc.ScaleBias = &a->scale_bias;
}
static void key_group(all_built *a)
{
    a->desc.Group = 2;
}
static void key_direction(all_built *a)
{
    a->desc.Direction = DML_AXIS_DIRECTION_INCREASING;
}
static void key_inputs(all_built *a)
{
    a->desc.InputCount = 2;
}
static void key_outputs(all_built *a)
{
    a->desc.OutputCount = 1;
}
static void (*const key_rows[])(all_built *) = {
    key_flag,        key_axis,  key_weight,    key_no_weights, key_scale,
    key_scale_there, key_group, key_direction, key_inputs,     key_outputs
};

static bool same_key(const opjit_operator *a, const opjit_operator *b)
{
    return a->key.size == b->key.size && memcmp(a->key.data, b->key.data, a->key.size) == 0;
}

START_TEST(every_kind_is_in_the_key)
{
    opjit_operator *base, *other;
    all_built a;

    build_all(&a);
    base = make_all(&a, OPJIT_OK, "");
    key_rows[_i](&a);
    other = make_all(&a, OPJIT_OK, "");
    ck_assert_msg(!same_key(base, other), "row %d", _i);
    opjit_operator_release(other);
    build_all(&a);
    a.desc.Flag = 1; /* as true as 7 */
    other = make_all(&a, OPJIT_OK, "");
    ck_assert(same_key(base, other) && base->hash == other->hash);
    opjit_operator_release(other);
    opjit_operator_release(base);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.fields");
    TCase *tcase = tcase_create("fields");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, every_kind_is_copied);
    tcase_add_loop_test(tcase, every_kind_is_checked, 0, sizeof all_rows / sizeof *all_rows);
    tcase_add_loop_test(tcase, every_kind_is_in_the_key, 0, sizeof key_rows / sizeof *key_rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
