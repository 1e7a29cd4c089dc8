/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_once.c - products with constants: kernels keep a packed copy of these, made once, and write the bytes that a
 * kernel writes to which the same factor is given at each call. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opjit/artifact.h>
#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/support/checker.h"

static opjit_context *context;
static opjit_error error;

typedef struct product {
    uint32_t rows, columns, length;
    bool turned;
    DML_TENSOR_DATA_TYPE type;
} product;

enum { MOST = 64 * 300 };
static _Alignas(64) float a[MOST], b[2][MOST], out[2][MOST];

static opjit_graph *describe(opjit_context *in, const product *p, const void *constant)
{
    const uint32_t of_a[] = { p->rows, p->length };
    const uint32_t of_b[] = { p->turned ? p->columns : p->length, p->turned ? p->length : p->columns };
    const uint64_t bytes = (uint64_t)p->columns * p->length * (p->type == DML_TENSOR_DATA_TYPE_FLOAT32 ? 4 : 2);
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(in, &g, &error), OPJIT_OK);
    const opjit_tensor x = opjit_graph_input(g, "a", p->type, 2, of_a);
    const opjit_tensor y = constant == NULL ? opjit_graph_input(g, "b", p->type, 2, of_b)
                                            : opjit_graph_constant(g, p->type, 2, of_b, constant, bytes, 0);
    opjit_graph_output(g, "y", opjit_graph_relu(g, opjit_graph_matrix_multiply(g, x, y, 0, p->turned)));
    return g;
}

static opjit_kernel *compile(const product *p, const void *constant, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_graph *const g = describe(context, p, constant);
    opjit_kernel *kernel;
    options.flags = flags;
    ck_assert_msg(opjit_graph_compile(g, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(g);
    return kernel;
}

static void call(const opjit_kernel *kernel, const void *factor, void *result)
{
    const opjit_binding bindings[3] = { { a, sizeof a },
                                        { (void *)(uintptr_t)(factor == NULL ? result : factor), sizeof out[0] },
                                        { result, sizeof out[0] } };
    opjit_call c = OPJIT_CALL_INIT;
    c.bindings = bindings;
    c.binding_count = factor == NULL ? 2 : 3;
    memset(result, 0x5a, sizeof out[0]);
    ck_assert_msg(opjit_kernel_call(kernel, &c, &error) == OPJIT_OK, "%s", error.message);
}

static uint64_t kept_bytes(const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    return info.kept_bytes;
}

static void check_call(const opjit_kernel *kernel, const char *what)
{
    call(kernel, NULL, out[1]);
    ck_assert_msg(memcmp(out[0], out[1], sizeof out[0]) == 0, "%s: other bytes", what);
}

static void setup(void)
{
    context = test_context_create();
    for (int i = 0; i < MOST; i++) {
        a[i] = (float)((i * 7919) % 1013 - 500) / 64;
        b[0][i] = (float)((i * 104729) % 907 - 450) / 128;
        b[1][i] = (float)((i * 15485863LL) % 811 - 400) / 32;
    }
}

static void teardown(void)
{
    opjit_context_destroy(context);
}

/* f16: the floats' halves are numbers as good as any other. */
START_TEST(same_bytes)
{
    static const product rows[] = {
        { 1, 64, 300, true, DML_TENSOR_DATA_TYPE_FLOAT32 },   { 4, 64, 300, true, DML_TENSOR_DATA_TYPE_FLOAT32 },
        { 16, 50, 257, true, DML_TENSOR_DATA_TYPE_FLOAT32 },  { 64, 64, 300, true, DML_TENSOR_DATA_TYPE_FLOAT32 },
        { 64, 33, 300, false, DML_TENSOR_DATA_TYPE_FLOAT32 }, { 17, 40, 20, false, DML_TENSOR_DATA_TYPE_FLOAT32 },
        { 8, 64, 300, true, DML_TENSOR_DATA_TYPE_FLOAT16 },
    };
    const product *p = &rows[_i];
    opjit_kernel *reference = compile(p, NULL, 0), *kernel = compile(p, b[0], 0), *other, *loaded;
    const void *constant = b[0], *image;
    uint64_t bytes;
    call(reference, b[0], out[0]);
    ck_assert_uint_eq(kept_bytes(reference), 0);
    if (p->turned)
        ck_assert_uint_ge(kept_bytes(kernel), (uint64_t)p->columns * p->length * 2);
    check_call(kernel, "kernel");
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    check_call(kernel, "at level peak");
    ck_assert_msg(opjit_kernel_get_image(kernel, &image, &bytes, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_kernel_load(context, image, bytes, &constant, 1, &loaded, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_uint_eq(kept_bytes(loaded), kept_bytes(kernel));
    check_call(loaded, "loaded");
    other = compile(p, b[1], OPJIT_COMPILE_BORROW_CONSTANTS); /* the same code */
    check_call(kernel, "beside another");
    call(reference, b[1], out[0]);
    check_call(other, "other constants");
    opjit_kernel_release(loaded);
    opjit_kernel_release(other);
    opjit_kernel_release(kernel);
    opjit_kernel_release(reference);
}
END_TEST

/* An artifact with the product as its one kernel, and that kernel's output of the kind. */
static opjit_artifact *ahead(opjit_context *in, const product *p, const char *const *targets, uint32_t count,
                             uint32_t flags, opjit_artifact_kind kind, const void **data, uint64_t *bytes)
{
    opjit_artifact_options options = OPJIT_ARTIFACT_OPTIONS_INIT;
    opjit_compile_options compiled = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_graph *const g = describe(in, p, b[0]);
    const DML_GRAPH_DESC *desc;
    opjit_artifact *artifact;
    options.targets = targets;
    options.target_count = count;
    options.flags = flags;
    compiled.name = "product";
    ck_assert_int_eq(opjit_graph_get_desc(g, &desc, &error), OPJIT_OK);
    ck_assert_msg(opjit_artifact_create(in, &options, &artifact, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_artifact_add_graph(artifact, desc, &compiled, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(g);
    ck_assert_msg(opjit_artifact_get(artifact, 0, kind, data, bytes, &error) == OPJIT_OK, "%s", error.message);
    return artifact;
}

/* What is made once lies in the library, and the factor does not. */
START_TEST(same_ahead)
{
    static const char *const targets[] = { "cpu:x86-64-v2", "cpu:x86-64-v3", "cpu:x86-64-v4" };
    static const product p = { 64, 64, 300, true, DML_TENSOR_DATA_TYPE_FLOAT32 };
    const uint32_t count = _i == 0 ? 0 : 3;
    char path[] = "/tmp/opjit-once-XXXXXX";
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *reference = compile(&p, NULL, 0), *kernel;
    opjit_library *library;
    const void *data;
    uint64_t bytes;
    opjit_artifact *const artifact = ahead(context, &p, targets, count, 0, OPJIT_ARTIFACT_SHARED, &data, &bytes);
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_uint_eq((uint64_t)write(file, data, bytes), bytes);
    close(file);
    ck_assert_msg(opjit_library_open(context, path, &library, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_msg(opjit_library_find(library, "product", &kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_uint_eq(info.kept_bytes, 0);
    ck_assert_uint_ge(info.buffer_count, 3); /* b, packed for each version or for several of them */
    for (uint32_t i = 2; i < info.buffer_count; i++)
        ck_assert_uint_eq(info.buffers[i].dtype, DML_TENSOR_DATA_TYPE_UINT8);
    call(reference, b[0], out[0]);
    check_call(kernel, "ahead");
    opjit_kernel_release(kernel);
    opjit_library_close(library);
    opjit_artifact_destroy(artifact);
    opjit_kernel_release(reference);
    unlink(path);
}
END_TEST

/* For targets that this CPU does not run, and without code generation, the interpreter makes it. */
START_TEST(interpreted_ahead)
{
    static const char *const targets[] = { "cpu:x86-64-v2", "cpu:neoverse-v1" };
    static const product p = { 64, 40, 300, true, DML_TENSOR_DATA_TYPE_FLOAT32 };
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *without;
    const void *data[2];
    uint64_t bytes[2];
    options.codegen_path = "/nowhere/libopjit-codegen.so";
    ck_assert_int_eq(opjit_context_create(&options, &without, &error), OPJIT_OK);
    opjit_artifact *artifacts[2];
    for (int i = 0; i < 2; i++)
        artifacts[i] = ahead(i == 0 ? context : without, &p, &targets[_i], 1, OPJIT_ARTIFACT_WEIGHTS_APART,
                             OPJIT_ARTIFACT_WEIGHTS, &data[i], &bytes[i]);
    ck_assert_uint_ge(bytes[0], (uint64_t)p.columns * p.length * 4);
    ck_assert_uint_eq(bytes[0], bytes[1]);
    ck_assert_int_eq(memcmp(data[0], data[1], bytes[0]), 0);
    ck_assert_int_ne(memcmp(data[0], b[0], sizeof(float) * p.columns * p.length), 0);
    for (int i = 0; i < 2; i++)
        opjit_artifact_destroy(artifacts[i]);
    opjit_context_destroy(without);
}
END_TEST

/* Two products with one factor: its packed copy is made, and kept, for both. */
START_TEST(equal_ones)
{
    static const product p = { 64, 64, 300, true, DML_TENSOR_DATA_TYPE_FLOAT32 };
    const uint32_t of_a[] = { 64, 300 }, of_b[] = { 64, 300 };
    opjit_kernel *kernel, *one = compile(&p, b[0], 0);
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor x = opjit_graph_input(g, "a", p.type, 2, of_a);
    const opjit_tensor y = opjit_graph_constant(g, p.type, 2, of_b, b[0], sizeof(float) * 64 * 300, 0);
    const opjit_tensor first = opjit_graph_matrix_multiply(g, x, y, 0, 1);
    const opjit_tensor again = opjit_graph_matrix_multiply(g, opjit_graph_relu(g, x), y, 0, 1);
    opjit_graph_output(g, "y", opjit_graph_relu(g, opjit_graph_add(g, first, again)));
    ck_assert_msg(opjit_graph_compile(g, NULL, &kernel, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(g);
    ck_assert_uint_eq(kept_bytes(kernel), kept_bytes(one));
    opjit_kernel_release(kernel);
    opjit_kernel_release(one);
}
END_TEST

/* Words of four bytes, less zero points, and sums over columns: K is a multiple of four, or not. */
START_TEST(bytes)
{
    const uint32_t length = _i == 0 ? 300 : 299, rows = 3, columns = 37;
    const uint32_t of_a[] = { 1, 1, rows, length }, of_b[] = { 1, 1, length, columns }, of_one[] = { 1, 1, 1, 1 };
    const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC desc = { 0 };
    static const uint8_t zeros[2] = { 131, 251 };
    opjit_kernel *kernels[2];
    for (int constant = 0; constant < 2; constant++) {
        opjit_graph *g;
        ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
        const DML_TENSOR_DATA_TYPE u8 = DML_TENSOR_DATA_TYPE_UINT8, i8 = DML_TENSOR_DATA_TYPE_INT8;
        const opjit_tensor inputs[] = {
            opjit_graph_input(g, "a", u8, 4, of_a), opjit_graph_constant(g, u8, 4, of_one, &zeros[0], 1, 0),
            constant ? opjit_graph_constant(g, i8, 4, of_b, b[0], (uint64_t)length * columns, 0)
                     : opjit_graph_input(g, "b", i8, 4, of_b),
            opjit_graph_constant(g, i8, 4, of_one, &zeros[1], 1, 0)
        };
        opjit_graph_output(g, "y", opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, &desc, inputs, 4));
        ck_assert_msg(opjit_graph_compile(g, NULL, &kernels[constant], &error) == OPJIT_OK, "%s", error.message);
        opjit_graph_destroy(g);
    }
    call(kernels[0], b[0], out[0]);
    check_call(kernels[1], "bytes");
    ck_assert_uint_eq(kept_bytes(kernels[0]), 0);
#if defined(__x86_64__)
    ck_assert_int_eq(kept_bytes(kernels[1]) >= length * columns, _i == 0);
#endif
    opjit_kernel_release(kernels[0]);
    opjit_kernel_release(kernels[1]);
}
END_TEST

/* What is small is a part of the kernel's key. */
START_TEST(small_constants)
{
    const product p = { 4, 16, 20, true, DML_TENSOR_DATA_TYPE_FLOAT32 };
    opjit_kernel *reference = compile(&p, NULL, 0), *kernel = compile(&p, b[0], 0);
    call(reference, b[0], out[0]);
    check_call(kernel, "small");
    opjit_kernel_release(kernel);
    opjit_kernel_release(reference);
}
END_TEST

/* The interpreter has no use for packed factors. */
START_TEST(interpreted)
{
    const product p = { 2, 64, 30, true, DML_TENSOR_DATA_TYPE_FLOAT32 };
    opjit_kernel *kernel = compile(&p, b[0], OPJIT_COMPILE_INTERPRET);
    ck_assert_uint_eq(kept_bytes(kernel), 0);
    opjit_kernel_release(kernel);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.once");
    TCase *tcase = tcase_create("kept");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, same_bytes, 0, 7);
    tcase_add_loop_test(tcase, same_ahead, 0, 2);
    tcase_add_loop_test(tcase, interpreted_ahead, 0, 2);
    tcase_add_test(tcase, equal_ones);
    tcase_add_loop_test(tcase, bytes, 0, 2);
    tcase_add_test(tcase, small_constants);
    tcase_add_test(tcase, interpreted);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
