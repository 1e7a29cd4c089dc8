/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_byte_columns.c - few rows times a matrix of bytes less zero points, times scales of blocks of k: where the
 * bytes are constants, which products compute their columns of, results have the bits that they have where all is given
 * to each call, and the matrix is made as it is. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>

enum { COLUMNS = 192, K = 640, MOST_ROWS = 5 };

typedef struct sample {
    uint32_t rows, columns, block; /* block: k that share a scale */
    DML_TENSOR_DATA_TYPE type;
    bool zeros;
    const char *target;
} sample;

static const sample samples[] = {
    { 1, COLUMNS, 32, DML_TENSOR_DATA_TYPE_UINT8, false, NULL },
    { 1, COLUMNS, 64, DML_TENSOR_DATA_TYPE_UINT8, true, NULL },
    { 3, COLUMNS, 128, DML_TENSOR_DATA_TYPE_INT8, true, NULL },
    { 4, 176, 32, DML_TENSOR_DATA_TYPE_UINT8, true, NULL }, /* tiles of one vector */
    { 5, COLUMNS, 32, DML_TENSOR_DATA_TYPE_UINT8, true, NULL },
    { 1, COLUMNS, K, DML_TENSOR_DATA_TYPE_INT8, true, NULL },
    { 2, COLUMNS, 40, DML_TENSOR_DATA_TYPE_INT8, true, NULL }, /* blocks of the sum are not whole ones */
    { 1, 180, 32, DML_TENSOR_DATA_TYPE_UINT8, true, NULL },    /* no whole tiles */
    { 1, COLUMNS, 32, DML_TENSOR_DATA_TYPE_UINT8, true, "cpu:x86-64-v3" },
    { 2, COLUMNS, 64, DML_TENSOR_DATA_TYPE_INT8, false, "cpu:x86-64-v3" },
    { 1, COLUMNS, 32, DML_TENSOR_DATA_TYPE_UINT8, true, "cpu:x86-64-v1" },
};

static uint8_t bytes[COLUMNS * K], zeros[COLUMNS * K];
static float rows[MOST_ROWS * K], scales[COLUMNS * K], results[2][MOST_ROWS * COLUMNS];

static void fill(void)
{
    for (uint32_t i = 0; i < COLUMNS * K; i++) {
        bytes[i] = (uint8_t)(i * UINT32_C(2654435761) >> 24);
        zeros[i] = (uint8_t)(i * UINT32_C(2246822519) >> 25);
        scales[i] = (float)(i * UINT32_C(3266489917) >> 16) / 3e7f;
    }
    for (uint32_t i = 0; i < MOST_ROWS * K; i++)
        rows[i] = (float)(int32_t)(i * UINT32_C(668265263)) / 1e9f;
}

typedef struct maker {
    opjit_graph *g;
    opjit_binding bindings[6];
    uint32_t count;
} maker;

static opjit_tensor give(maker *m, const char *name, DML_TENSOR_DATA_TYPE type, const uint32_t *sizes, uint32_t rank,
                         const void *data, bool constant)
{
    uint64_t size = type == DML_TENSOR_DATA_TYPE_FLOAT32 ? sizeof(float) : 1;
    for (uint32_t d = 0; d < rank; d++)
        size *= sizes[d];
    if (constant)
        return opjit_graph_constant(m->g, type, rank, sizes, data, size, 0);
    m->bindings[m->count++] = (opjit_binding){ (void *)(uintptr_t)data, size };
    return opjit_graph_input(m->g, name, type, rank, sizes);
}

static void run(opjit_context *context, const sample *s, bool constant, float *out)
{
    const uint32_t all[3] = { s->columns, K / s->block, s->block }, by_block[3] = { s->columns, K / s->block, 1 };
    const uint32_t flat[2] = { s->columns, K }, of_rows[2] = { s->rows, K };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };
    maker m = { .count = 0 };
    options.target = s->target;
    ck_assert_int_eq(opjit_graph_create(context, &m.g, &error), OPJIT_OK);
    const opjit_tensor x = give(&m, "x", DML_TENSOR_DATA_TYPE_FLOAT32, of_rows, 2, rows, false);
    opjit_tensor w = give(&m, "w", s->type, all, 3, bytes, constant);
    w = opjit_graph_cast(m.g, w, DML_TENSOR_DATA_TYPE_FLOAT32);
    if (s->zeros) {
        opjit_tensor z =
            opjit_graph_cast(m.g, give(&m, "z", s->type, by_block, 3, zeros, constant), DML_TENSOR_DATA_TYPE_FLOAT32);
        w = opjit_graph_subtract(m.g, w, opjit_graph_broadcast(m.g, z, 3, all));
    }
    const opjit_tensor scale = give(&m, "s", DML_TENSOR_DATA_TYPE_FLOAT32, by_block, 3, scales, constant);
    w = opjit_graph_multiply(m.g, w, opjit_graph_broadcast(m.g, scale, 3, all));
    const opjit_tensor y = opjit_graph_matrix_multiply(m.g, x, opjit_graph_reshape(m.g, w, 2, flat), 0, 1);
    opjit_graph_output(m.g, "y", y);
    ck_assert_msg(opjit_graph_compile(m.g, &options, &kernel, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(m.g);
    m.bindings[m.count++] = (opjit_binding){ out, sizeof(float) * s->rows * s->columns };
    const opjit_call call = { .struct_size = sizeof call, .binding_count = m.count, .bindings = m.bindings };
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(kernel);
}

START_TEST(constants_change_no_bit)
{
    const sample *s = &samples[_i];
    const size_t size = sizeof(float) * s->rows * s->columns;
    opjit_context *context = NULL;
    fill();
    ck_assert_int_eq(opjit_context_create(NULL, &context, NULL), OPJIT_OK);
    run(context, s, true, results[0]);
    run(context, s, false, results[1]);
    for (uint32_t i = 0; i < s->rows * s->columns; i++)
        ck_assert_msg(memcmp(&results[0][i], &results[1][i], sizeof(float)) == 0, "sample %d, element %u: %a, not %a",
                      _i, i, (double)results[0][i], (double)results[1][i]);
    ck_assert(size > 0 && isfinite(results[0][0]) && results[0][0] != results[0][1]);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.byte_columns");
    TCase *tcase = tcase_create("bits");
    tcase_add_loop_test(tcase, constants_change_no_bit, 0, sizeof samples / sizeof *samples);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
