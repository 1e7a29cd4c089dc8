/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_graph.c - graphs: what edges carry, keys, constants, late fields, and that the order of a description makes
 * no difference.  Results are those of the value form; passes are tested elsewhere. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/checker.h"
#include "tests/unit/frontend/small_graphs.h"

/* --- what edges carry --------------------------------------------------------------------------------------------- */

static void check_lowered(const graph_case *g, void *const *buffers, const int32_t *out, const int32_t *expected,
                          uint32_t count)
{
    opjit_error error = { 0 };

    ck_assert_msg(graph_run_lowered(g, buffers, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t i = 0; i < count; i++)
        ck_assert_msg(out[i] == expected[i], "element %u is %d, not %d", i, (int)out[i], (int)expected[i]);
}

/* The sequence as `to` sees it, negated into packed tensors. */
static void check_view(opjit_context *context, graph_tensor *from, graph_tensor *to, const int32_t *expected)
{
    int32_t out[COUNT] = { 0 };
    void *const buffers[] = { out };
    graph_tensor plain;
    graph_case g;

    graph_tensor_set(&plain, DML_TENSOR_DATA_TYPE_INT32, to->buffer.DimensionCount, to->sizes, NULL, 0);
    graph_begin(&g, context, CAPACITY);
    sequence(&g, &from->desc, NULL);
    negate(&g, &to->desc, &plain.desc, NULL);
    graph_edge(&g, 0, 0, 1, 0);
    graph_output(&g, 1, 0, 0);
    check_lowered(&g, buffers, out, expected, COUNT);
    graph_end(&g);
}

START_TEST(edges_carry_bytes)
{
    opjit_context *context = test_context_create();
    int32_t expected[COUNT];
    graph_tensor part;

    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i);
    check_view(context, &packed, &packed, expected);
    check_view(context, &packed, &flat, expected); /* reshape */
    check_view(context, &padded, &padded, expected);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i % ROWS * COLUMNS + i / ROWS);
    check_view(context, &packed, &transposed, expected);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i % COLUMNS);
    check_view(context, &vector, &wide, expected); /* broadcast */
    /* Rows of a padded tensor, each element three times. */
    graph_tensor_set(&part, DML_TENSOR_DATA_TYPE_INT32, 3, (uint32_t[]){ 2, 2, 3 }, (uint32_t[]){ COLUMNS + 1, 2, 0 },
                     0);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i / 6 * COLUMNS + i / 3 % 2 * 2);
    check_view(context, &padded, &part, expected);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(one_value_feeds_many)
{
    opjit_context *context = test_context_create();
    int32_t in[COUNT], out[2][COUNT] = { { 0 } }, bytes[3] = { 0 }, expected[COUNT];
    const int32_t data[] = { 5, 6, 7, 8 };
    void *const buffers[] = { in, out[0], out[1], bytes };
    graph_case g;

    for (int i = 0; i < COUNT; i++)
        in[i] = 100 * i;
    graph_begin(&g, context, CAPACITY);
    add(&g, &packed.desc, &wide.desc, &packed.desc, "sum");
    add(&g, &packed.desc, &packed.desc, &packed.desc, "twice");
    graph_constant(&g, data, sizeof data - 4, "c");
    graph_constant(&g, data, sizeof data, "d");
    graph_input(&g, 3, 0, 0); /* inputs 0 to 2 are not used and have no binding */
    graph_edge(&g, 3, 0, 0, 1);
    graph_edge(&g, 0, 0, 1, 0);
    graph_edge(&g, 0, 0, 1, 1);
    graph_output(&g, 0, 0, 1); /* read by other nodes as well */
    graph_output(&g, 1, 0, 0);
    graph_output(&g, 2, 0, 2); /* a constant, as it is */
    for (int i = 0; i < COUNT; i++)
        expected[i] = 2 * (in[i] + data[i % COLUMNS]);
    check_lowered(&g, buffers, out[0], expected, COUNT);
    for (int i = 0; i < COUNT; i++)
        expected[i] /= 2;
    check_lowered(&g, buffers, out[1], expected, COUNT);
    check_lowered(&g, buffers, bytes, data, 3);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* Views where layouts differ, an inline constant, one value with two readers: as in golden/graph. */
START_TEST(lowered_text)
{
    const char *data = getenv("OPJIT_TEST_DATA");
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    const int32_t bias[] = { 5, 6, 7, 8 };
    char path[1024], got[8192], want[8192] = "";
    graph_case g;
    FILE *file;

    options.target = "cpu:x86-64-v1";
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
    graph_begin(&g, context, CAPACITY);
    band(&g, &packed.desc, "mask");
    add(&g, &transposed.desc, &transposed.desc, &transposed.desc, "square");
    add(&g, &packed.desc, &wide.desc, &packed.desc, "bias");
    graph_constant(&g, bias, sizeof bias, "values");
    graph_input(&g, 0, 1, 1);
    graph_edge(&g, 0, 0, 1, 0);
    graph_edge(&g, 1, 0, 2, 0);
    graph_edge(&g, 3, 0, 2, 1);
    graph_output(&g, 1, 0, 1);
    graph_output(&g, 2, 0, 0);
    graph_print_lowered(&g, got, sizeof got);
    snprintf(path, sizeof path, "%s/golden/graph/views.ir", data == NULL ? "tests" : data);
    if (getenv("OPJIT_UPDATE_GOLDEN") != NULL) {
        file = fopen(path, "w");
        ck_assert(file != NULL && fputs(got, file) >= 0 && fclose(file) == 0);
    }
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s can't be read", path);
    want[fread(want, 1, sizeof want - 1, file)] = '\0';
    fclose(file);
    ck_assert_str_eq(got, want);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

/* --- keys --------------------------------------------------------------------------------------------------------- */

static uint64_t key_of(const graph_case *g, rt_bytes *out)
{
    const fe_subject subject = { .desc = &g->desc };
    fe_graph graph = { 0 };

    opjit_rt_arena_init(&graph.arena, &opjit_rt_default_allocator);
    ck_assert_int_eq(opjit_fe_graph_read(g->context, &subject, false, &graph, NULL), OPJIT_OK);
    opjit_rt_bytes_init(out, &opjit_rt_default_allocator);
    const uint64_t hash = opjit_fe_graph_key(&graph, out);
    ck_assert(!out->failed);
    opjit_fe_graph_free(&graph);
    return hash;
}

static bool equal_keys(const graph_case *a, const graph_case *b)
{
    rt_bytes x, y;
    bool equal;

    const bool equal_hashes = key_of(a, &x) == key_of(b, &y);
    equal = x.size == y.size && memcmp(x.data, y.data, x.size) == 0;
    ck_assert(equal == equal_hashes);
    opjit_rt_bytes_free(&x);
    opjit_rt_bytes_free(&y);
    return equal;
}

START_TEST(order_and_labels_are_not_in_the_key)
{
    opjit_context *context = test_context_create();
    graph_case a, b, c;

    begin_sum(&a, context);
    begin_other(&b, context, false);
    begin_other(&c, context, true);
    ck_assert(equal_keys(&a, &b));
    ck_assert(!equal_keys(&a, &c));
    graph_end(&a);
    graph_end(&b);
    graph_end(&c);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(contents_of_small_constants_are_in_the_key)
{
    enum { LARGE = FE_FOLDED_BYTES / 4 + 1 };
    opjit_context *context = test_context_create();
    int32_t *data = calloc(LARGE, sizeof *data), *other = calloc(LARGE, sizeof *other);
    graph_tensor large;
    graph_case a, b;

    ck_assert(data != NULL && other != NULL);
    for (uint32_t count = LARGE - 1; count <= LARGE; count++) {
        graph_tensor_set(&large, DML_TENSOR_DATA_TYPE_INT32, 1, &count, NULL, 0);
        graph_begin(&a, context, CAPACITY);
        negate(&a, &large.desc, &large.desc, NULL);
        graph_constant(&a, data, count * sizeof *data, NULL);
        graph_edge(&a, 1, 0, 0, 0);
        graph_output(&a, 0, 0, 0);
        b = a;
        b.nodes =
            (DML_GRAPH_NODE_DESC[]){ a.nodes[0],
                                     { DML_GRAPH_NODE_TYPE_CONSTANT,
                                       &(DML_CONSTANT_DATA_GRAPH_NODE_DESC){ other, count * sizeof *data, "b" } } };
        b.desc.Nodes = b.nodes;
        other[count - 1] = 0;
        ck_assert(equal_keys(&a, &b));
        other[count - 1] = 1;
        ck_assert(equal_keys(&a, &b) == (count == LARGE));
        graph_end(&a);
    }
    free(data);
    free(other);
    opjit_context_destroy(context);
}
END_TEST

/* --- kernels ------------------------------------------------------------------------------------------------------ */

static opjit_kernel *compile(const graph_case *g, opjit_compile_options options)
{
    opjit_kernel *kernel = NULL;
    opjit_error error = { 0 };

    options.struct_size = sizeof options;
    options.flags |= OPJIT_COMPILE_INTERPRET;
    ck_assert_msg(opjit_compile_graph(g->context, &g->desc, &options, &kernel, &error) == OPJIT_OK, "%s",
                  error.message);
    return kernel;
}

static void call(const opjit_kernel *kernel, const opjit_binding *bindings, uint32_t count, const uint64_t *params,
                 uint32_t param_count)
{
    opjit_call c = OPJIT_CALL_INIT;
    opjit_error error = { 0 };

    c.bindings = bindings;
    c.binding_count = count;
    c.params = params;
    c.param_count = param_count;
    ck_assert_msg(opjit_kernel_call(kernel, &c, &error) == OPJIT_OK, "%s", error.message);
}

START_TEST(kernels_come_from_the_cache)
{
    opjit_context *context = test_context_create();
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernels[2];
    int32_t out[COUNT] = { 0 };
    const opjit_binding binding = { out, sizeof out };
    graph_case a, b;

    begin_sum(&a, context);
    begin_other(&b, context, false);
    kernels[0] = compile(&a, (opjit_compile_options){ 0 });
    kernels[1] = compile(&b, (opjit_compile_options){ 0 });
    ck_assert_ptr_eq(kernels[0], kernels[1]);
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert_uint_eq(stats.compiles, 1);
    ck_assert_uint_eq(stats.hits, 1);
    call(kernels[0], &binding, 1, NULL, 0);
    for (int i = 0; i < COUNT; i++) {
        const int t = i % COLUMNS - i / COLUMNS;
        ck_assert_int_eq(out[i], 10 + i + (t >= 0 && t < 2 ? 7 : 0));
    }
    ck_assert_int_eq(opjit_kernel_get_info(kernels[0], &info, NULL), OPJIT_OK);
    ck_assert_str_eq((const char *)info.meta + info.buffers[0].name, "Outputs[0]");
    ck_assert_int_eq(strncmp(info.name, "graph_i32_", 10), 0);
    opjit_kernel_release(kernels[0]);
    opjit_kernel_release(kernels[1]);
    graph_end(&a);
    graph_end(&b);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(fields_are_late_by_node)
{
    opjit_context *context = test_context_create();
    const char *const names[] = { "b.DiagonalFillEnd", "0.ValueStart" };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const uint64_t params[] = { 1, 40 };
    int32_t out[COUNT] = { 0 };
    const opjit_binding binding = { out, sizeof out };
    opjit_kernel *kernel;
    graph_case g;

    begin_sum(&g, context);
    options.late = names;
    options.late_count = 2;
    kernel = compile(&g, options);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_str_eq((const char *)info.meta + info.params[i].name, names[i]);
    call(kernel, &binding, 1, params, 2);
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(out[i], 40 + i + (i % COLUMNS == i / COLUMNS ? 7 : 0));
    opjit_kernel_release(kernel);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

START_TEST(large_constants_are_bound)
{
    enum { LARGE = 2048 };
    opjit_context *context = test_context_create();
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    static _Alignas(64) int32_t data[2][LARGE];
    static int32_t out[LARGE];
    const opjit_binding binding = { out, sizeof out };
    opjit_kernel *kernels[3];
    graph_tensor large;
    graph_case g;

    graph_tensor_set(&large, DML_TENSOR_DATA_TYPE_INT32, 1, (uint32_t[]){ LARGE }, NULL, 0);
    graph_begin(&g, context, CAPACITY);
    negate(&g, &large.desc, &large.desc, NULL);
    graph_constant(&g, data[0], sizeof data[0], NULL);
    graph_edge(&g, 1, 0, 0, 0);
    graph_output(&g, 0, 0, 0);
    for (int i = 0; i < LARGE; i++) {
        data[0][i] = i;
        data[1][i] = 5 * i;
    }
    kernels[0] = compile(&g, options);
    g.constants[1].Data = data[1];
    kernels[1] = compile(&g, options);
    options.flags = OPJIT_COMPILE_BORROW_CONSTANTS;
    kernels[2] = compile(&g, options);
    graph_end(&g);
    opjit_context_destroy(context);
    data[0][3] = data[1][3] = 1000;
    for (int k = 0; k < 3; k++) {
        call(kernels[k], &binding, 1, NULL, 0);
        ck_assert_int_eq(out[LARGE - 1], -(k == 0 ? 1 : 5) * (LARGE - 1));
        ck_assert_int_eq(out[3], k == 0 ? -3 : k == 1 ? -15 : -1000);
        ck_assert_int_eq(opjit_kernel_optimize(kernels[k], NULL), OPJIT_OK);
        opjit_kernel_release(kernels[k]);
    }
}
END_TEST

/* --- size --------------------------------------------------------------------------------------------------------- */

START_TEST(long_chains_are_read)
{
    enum { NODES = 20000 };
    opjit_context *context = test_context_create();
    int32_t out[COUNT] = { 0 }, expected[COUNT];
    void *const buffers[] = { out };
    graph_case g;

    graph_begin(&g, context, NODES);
    sequence(&g, &packed.desc, NULL);
    for (uint32_t i = 1; i < NODES; i++) {
        negate(&g, &packed.desc, &packed.desc, NULL);
        graph_edge(&g, i - 1, 0, i, 0);
    }
    graph_output(&g, NODES - 1, 0, 0);
    for (int i = 0; i < COUNT; i++)
        expected[i] = -(10 + i);
    check_lowered(&g, buffers, out, expected, COUNT);
    graph_end(&g);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.graph");
    TCase *edges = tcase_create("edges"), *kernels = tcase_create("kernels");
    SRunner *runner = srunner_create(suite);

    set_tensors();
    tcase_add_test(edges, edges_carry_bytes);
    tcase_add_test(edges, one_value_feeds_many);
    tcase_add_test(edges, lowered_text);
    tcase_add_test(edges, long_chains_are_read);
    tcase_set_timeout(edges, 60);
    suite_add_tcase(suite, edges);
    tcase_add_test(kernels, order_and_labels_are_not_in_the_key);
    tcase_add_test(kernels, contents_of_small_constants_are_in_the_key);
    tcase_add_test(kernels, kernels_come_from_the_cache);
    tcase_add_test(kernels, fields_are_late_by_node);
    tcase_add_test(kernels, large_constants_are_bound);
    suite_add_tcase(suite, kernels);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
