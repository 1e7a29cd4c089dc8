/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_artifact.c - the artifact's interface: what it accepts, the messages of what it refuses, who owns outputs,
 * and that threads make the same bytes.  What the code computes is tested by property.aot. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/artifact.h>
#include <opjit/ffi.h>

#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/support/require.h"

/* --- names -------------------------------------------------------------------------------------------------------- */
static const struct {
    const char *name;
    bool good;
} names[] = {
    { "eye", true },
    { "Eye2_x", true },
    { "a234567890123456789012345678901234567890123456789012345678901bc", true },
    { "a234567890123456789012345678901234567890123456789012345678901bcd", false },
    { "", false },
    { "2eye", false },
    { "_eye", false },
    { "an__eye", false },
    { "an eye", false },
    { "an-eye", false },
    { "\xc3\xa4ye", false },
    { "int", false },
    { "class", false },
    { "exp", false },
    { "main", false },
    { "errno", false },
    { "uint8_t", false },
    { "int_least64_t", false },
    { "intptr_t", false },
    { "INT32_MAX", false },
    { "UINT8_C", false },
    { "size_t", false },
    { "NULL", false },
    { "interp_t2", true },
    { "INTEGERS", true },
    { "INT8_MATMUL", true },
    { "u", true },
};

START_TEST(name_row)
{
    opjit_error error = { 0 };
    ck_assert_msg((opjit_artifact_check_name(names[_i].name, &error) == OPJIT_OK) == names[_i].good, "%s: %s",
                  names[_i].name, error.message);
    ck_assert_int_eq(error.message[0] == '\0', names[_i].good);
}
END_TEST

/* --- a fixture ---------------------------------------------------------------------------------------------------- */
static opjit_operator *make_eye(opjit_context *context, uint32_t rows)
{
    const uint32_t sizes[2] = { rows, 7 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX_OPERATOR_DESC eye = { &tensor, 0, 1.0f };
    opjit_operator *op = NULL;
    ck_assert_int_eq(
        opjit_operator_create(context, &(DML_OPERATOR_DESC){ DML_OPERATOR_DIAGONAL_MATRIX, &eye }, &op, NULL),
        OPJIT_OK);
    return op;
}

static opjit_status create(opjit_context *context, const char *const *targets, uint32_t count, opjit_artifact **out,
                           opjit_error *error)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    options.targets = targets;
    options.target_count = count;
    return opjit_artifact_create(context, &options, out, error);
}

static opjit_status add(opjit_artifact *artifact, opjit_operator *op, const char *name, opjit_error *error)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    options.name = name;
    return opjit_artifact_add_operator(artifact, op, &options, error);
}

/* --- refusals ----------------------------------------------------------------------------------------------------- */
static const struct {
    const char *targets[3];
    uint32_t count;
    opjit_status status;
    const char *message;
} refusals[] = {
    { { "cpu:toaster" }, 1, OPJIT_INVALID_ARGUMENT, "" },
    { { NULL }, 17, OPJIT_LIMIT, "options.target_count: 17, at most 16" },
    { { "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v2,l1=8192" },
      3,
      OPJIT_INVALID_ARGUMENT,
      "options.targets: cpu:x86-64-v2 and cpu:x86-64-v2,l1=8192 have the same features, so that there is nothing to "
      "choose by" },
};

START_TEST(targets_refused)
{
    opjit_context *context = test_context_create();
    opjit_artifact *artifact = (opjit_artifact *)(uintptr_t)1;
    opjit_error error = { 0 };
    ck_assert_int_eq(create(context, refusals[_i].targets, refusals[_i].count, &artifact, &error), refusals[_i].status);
    ck_assert_ptr_null(artifact);
    if (refusals[_i].message[0] != '\0')
        ck_assert_str_eq(error.message, refusals[_i].message);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(weights_refused)
{
    opjit_context *context = test_context_create();
    opjit_operator *op = make_eye(context, 3);
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_artifact *artifact;
    opjit_error error = { 0 };
    const void *data;
    uint64_t bytes;
    options.flags = 2;
    ck_assert_int_eq(opjit_artifact_create(context, &options, &artifact, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "options.flags: 0x2, must be 0 or 0x1");
    options.flags = OPJIT_ARTIFACT_WEIGHTS_APART;
    options.targets = (const char *[]){ "nvptx:sm_90" };
    options.target_count = 1;
    ck_assert_int_eq(opjit_artifact_create(context, &options, &artifact, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "options.flags: OPJIT_ARTIFACT_WEIGHTS_APART is not for target nvptx:sm_90");
    ck_assert_int_eq(create(context, NULL, 0, &artifact, &error), OPJIT_OK);
    ck_assert_int_eq(add(artifact, op, "eye", &error), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_WEIGHTS, &data, &bytes, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.message, "weights: they are part of the objects, without OPJIT_ARTIFACT_WEIGHTS_APART");
    opjit_artifact_destroy(artifact);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(kernels_refused)
{
    opjit_context *context = test_context_create();
    opjit_operator *op = make_eye(context, 3);
    opjit_artifact *artifact;
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_error error = { 0 };
    const void *data;
    uint64_t bytes;
    ck_assert_int_eq(create(context, NULL, 0, &artifact, &error), OPJIT_OK);
    ck_assert_int_eq(add(artifact, op, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "name is NULL");
    ck_assert_int_eq(add(artifact, op, "eye", &error), OPJIT_OK);
    ck_assert_int_eq(add(artifact, op, "eye", &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "name \"eye\": its symbols would be those of kernel 0, \"eye\"");
    ck_assert_int_eq(add(artifact, op, "eye_runs_here", &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(add(artifact, op, "eye_kernel", &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(add(artifact, op, "eyes", &error), OPJIT_OK);
    options.name = "other";
    options.target = "cpu:x86-64-v2";
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, &options, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "options.target: must be NULL, the artifact's targets hold");
    options.target = NULL;
    options.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, &options, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, op, NULL, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_add_operator(artifact, NULL, &options, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_add_operator(NULL, op, &options, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_add_graph(artifact, NULL, &options, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_uint_eq(opjit_artifact_count(artifact), 2);
    ck_assert_str_eq(opjit_artifact_name(artifact, 1), "eyes");
    ck_assert_ptr_null(opjit_artifact_name(artifact, 2));
    ck_assert_int_eq(opjit_artifact_get(artifact, 2, OPJIT_ARTIFACT_IR, &data, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, (opjit_artifact_kind)0, &data, &bytes, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, (opjit_artifact_kind)99, &data, &bytes, &error),
                     OPJIT_INVALID_ARGUMENT);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_IR, NULL, &bytes, &error), OPJIT_INVALID_ARGUMENT);
    opjit_artifact_destroy(artifact);
    opjit_artifact_destroy(NULL);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}
END_TEST

static void do_nothing(void *output)
{
    (void)output;
}

/* A function of this process can't be part of an object. */
START_TEST(custom_refused)
{
    opjit_context *context = test_context_create();
    const uint32_t sizes[1] = { 4 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const opjit_custom_arg arg = { .kind = OPJIT_CUSTOM_OUTPUT };
    opjit_custom_desc desc = OPJIT_CUSTOM_DESC_INIT;
    opjit_operator *op = NULL;
    opjit_artifact *artifact;
    opjit_error error = { 0 };
    desc.name = "nothing";
    desc.outputs = &tensor;
    desc.output_count = 1;
    desc.args = &arg;
    desc.arg_count = 1;
    desc.function = (void (*)(void))do_nothing;
    if (opjit_custom_create(context, &desc, &op, &error) == OPJIT_OK) {
        ck_assert_int_eq(create(context, NULL, 0, &artifact, &error), OPJIT_OK);
        ck_assert_int_eq(add(artifact, op, "nothing", &error), OPJIT_UNSUPPORTED);
        ck_assert_str_eq(error.message,
                         "kernel \"nothing\": has custom operators, which are functions of this process and "
                         "can't be compiled ahead of time");
        ck_assert_str_eq(error.value, "nothing");
        test_require_place(&error);
        ck_assert_uint_eq(opjit_artifact_count(artifact), 0);
        opjit_artifact_destroy(artifact);
        opjit_operator_release(op);
    }
    opjit_context_destroy(context);
}
END_TEST

/* --- outputs ------------------------------------------------------------------------------------------------------ */

/* Texts need no code generator; outputs keep their addresses. */
START_TEST(outputs)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context;
    opjit_artifact *artifact;
    const void *header, *again, *data;
    uint64_t bytes, same;
    opjit_error error = { 0 };
    options.codegen_path = "/nowhere/libopjit-codegen.so";
    ck_assert_int_eq(opjit_context_create(&options, &context, &error), OPJIT_OK);
    opjit_operator *op = make_eye(context, 3);
    ck_assert_int_eq(create(context, (const char *[]){ "cpu:x86-64-v2", "cpu:x86-64-v4" }, 2, &artifact, &error),
                     OPJIT_OK);
    ck_assert_int_eq(add(artifact, op, "eye", &error), OPJIT_OK);
    opjit_operator_release(op);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_HEADER, &header, &bytes, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_HEADER, &again, &same, &error), OPJIT_OK);
    ck_assert_ptr_eq(header, again);
    ck_assert_uint_eq(bytes, same);
    ck_assert_int_eq(((const char *)header)[bytes - 1], '\n');
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_IR, &data, &bytes, &error), OPJIT_OK);
    ck_assert_int_eq(strncmp(data, "; cpu:x86-64-v4\n", 16), 0); /* the best one comes first */
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_JSON, &data, &bytes, &error), OPJIT_OK);
#ifndef OPJIT_STATIC_CODEGEN
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_OBJECT, &data, &bytes, &error), OPJIT_UNAVAILABLE);
    ck_assert_ptr_null(data);
#endif
    opjit_artifact_destroy(artifact);
    opjit_context_destroy(context);
}
END_TEST

/* Makes a graph a - b whose inputs and output have these names, and reads its prototype from the header. */
static void prototype_of(opjit_context *context, const char *const labels[3], char *out, size_t size)
{
    static const uint32_t sizes[1] = { 4 };
    graph_tensor t;
    const DML_TENSOR_DESC *x = graph_tensor_set(&t, DML_TENSOR_DATA_TYPE_FLOAT32, 1, sizes, NULL, 0);
    const DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC subtract = { x, x, x };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_artifact *artifact;
    const void *text;
    const char *begin, *end;
    uint64_t bytes;
    opjit_error error = { 0 };
    graph_case g;
    graph_begin(&g, context, 4);
    const uint32_t node = graph_operator(&g, DML_OPERATOR_ELEMENT_WISE_SUBTRACT, &subtract, "minus");
    graph_input(&g, 0, node, 0);
    graph_input(&g, 1, node, 1);
    graph_output(&g, node, 0, 0);
    g.inputs[0].Name = labels[0];
    g.inputs[1].Name = labels[1];
    g.outputs[0].Name = labels[2];
    ck_assert_int_eq(create(context, NULL, 0, &artifact, &error), OPJIT_OK);
    options.name = "minus";
    ck_assert_msg(opjit_artifact_add_graph(artifact, &g.desc, &options, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_HEADER, &text, &bytes, &error), OPJIT_OK);
    begin = strstr(text, "void minus(");
    ck_assert_ptr_nonnull(begin);
    end = strchr(begin, '\n');
    ck_assert_uint_lt((size_t)(end - begin), size);
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = '\0';
    opjit_artifact_destroy(artifact);
    graph_end(&g);
}

/* Arguments have the graph's names as far as C allows them. */
static const struct {
    const char *names[3], *prototype;
} prototypes[] = {
    { { "Cos", "Sin", "Out" }, "void minus(const float *Cos, const float *Sin, float *Out);" },
    { { "Sin", "Cos", "Out" }, "void minus(const float *Sin, const float *Cos, float *Out);" },
    { { NULL, "", "y" }, "void minus(const float *in0, const float *in1, float *y);" },
    { { "a b", "a-b", "a_b" }, "void minus(const float *a_b, const float *in1, float *out0);" },
    { { "int", "class", "_x" }, "void minus(const float *in0, const float *in1, float *x);" },
    { { "in1", "in0", "out0" }, "void minus(const float *in1, const float *in0, float *out0);" },
    { { NULL, "in0", "" }, "void minus(const float *in3, const float *in0, float *out0);" },
    { { "in2", "x", "in0" }, "void minus(const float *in2, const float *x, float *in0);" },
    { { "2nd", "\xc3\xa4", "*/" }, "void minus(const float *in0, const float *in1, float *out0);" },
    { { "EOF", "K", "uint64_t" }, "void minus(const float *eof, const float *k, float *out0);" },
    { { "errno", "workspace", "minus_OUT0_BYTES" }, "void minus(const float *in0, const float *in1, float *out0);" },
    { { "complex", "noreturn", "y" }, "void minus(const float *in0, const float *in1, float *y);" },
    { { "x[0]", "x__1", "minus" }, "void minus(const float *x_0, const float *x_1, float *minus);" },
};

START_TEST(argument_names)
{
    opjit_context *context = test_context_create();
    char prototype[256];
    prototype_of(context, prototypes[_i].names, prototype, sizeof prototype);
    ck_assert_str_eq(prototype, prototypes[_i].prototype);
    opjit_context_destroy(context);
}
END_TEST

typedef struct made {
    opjit_context *context;
    uint8_t bytes[1 << 16];
    uint64_t size;
} made;

static void *make_object(void *arg)
{
    made *m = arg;
    opjit_artifact *artifact;
    const void *data;
    opjit_operator *op = make_eye(m->context, 300);
    opjit_error error;
    m->size = 0;
    if (create(m->context, (const char *[]){ "cpu:x86-64-v3", "cpu:x86-64-v1" }, 2, &artifact, &error) != OPJIT_OK)
        return NULL;
    if (add(artifact, op, "eye", &error) == OPJIT_OK &&
        opjit_artifact_get(artifact, 0, OPJIT_ARTIFACT_OBJECT, &data, &m->size, &error) == OPJIT_OK &&
        m->size <= sizeof m->bytes)
        memcpy(m->bytes, data, (size_t)m->size);
    opjit_artifact_destroy(artifact);
    opjit_operator_release(op);
    return NULL;
}

START_TEST(threads_make_the_same)
{
    enum { THREADS = 4 };
    opjit_context *context = test_context_create();
    made *all = calloc(THREADS, sizeof *all);
    pthread_t threads[THREADS];
    ck_assert_ptr_nonnull(all);
    if (test_have_codegen(context)) {
        for (int i = 0; i < THREADS; i++) {
            all[i].context = context;
            ck_assert_int_eq(pthread_create(&threads[i], NULL, make_object, &all[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++) {
            ck_assert_uint_gt(all[i].size, 0);
            ck_assert_uint_eq(all[i].size, all[0].size);
            ck_assert_mem_eq(all[i].bytes, all[0].bytes, all[0].size);
        }
    }
    free(all);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.artifact");
    TCase *tcase = tcase_create("artifacts");
    SRunner *runner = srunner_create(suite);
    tcase_add_loop_test(tcase, name_row, 0, (int)(sizeof names / sizeof *names));
    tcase_add_loop_test(tcase, targets_refused, 0, (int)(sizeof refusals / sizeof *refusals));
    tcase_add_test(tcase, weights_refused);
    tcase_add_test(tcase, kernels_refused);
    tcase_add_test(tcase, custom_refused);
    tcase_add_test(tcase, outputs);
    tcase_add_loop_test(tcase, argument_names, 0, (int)(sizeof prototypes / sizeof *prototypes));
    tcase_add_test(tcase, threads_make_the_same);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
