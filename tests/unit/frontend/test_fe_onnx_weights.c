/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_onnx_weights.c - constants of ONNX models: where their elements are read, what is made of them, and in which
 * type what they take part in is computed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/reflect.h>

#include "tests/unit/frontend/onnx_models.h"

enum { WEIGHTS = 1 << 19, FLOAT16 = 10, DOUBLE = 11, UINT8 = 2, PLACES = 8 };

/* A tensor of WEIGHTS numbers i % 50, as raw bytes or in a field of their own. */
static rt_bytes weights(uint32_t type, uint32_t size, bool typed)
{
    uint8_t *const data = malloc((size_t)WEIGHTS * size);
    ck_assert_ptr_nonnull(data);
    for (uint32_t i = 0; i < WEIGHTS; i++) {
        const float single = (float)(i % 50);
        const double wide = i % 50;
        const int64_t integer = i % 50;
        const uint16_t half = opjit_float16_from_double(wide);
        memcpy(data + (size_t)i * size,
               type == FLOAT     ? (const void *)&single
               : type == DOUBLE  ? (const void *)&wide
               : type == FLOAT16 ? (const void *)&half
                                 : &integer, /* of UINT8 its lowest byte */
               size);
    }
    rt_bytes t = new_message();
    put_int(&t, 1, WEIGHTS);
    put_int(&t, 2, type);
    put_text(&t, 8, "w");
    put_data(&t, !typed ? 9 : type == FLOAT ? 4 : 10, data, (size_t)WEIGHTS * size);
    free(data);
    return t;
}

/* The file moved by so many bytes, behind a text that nobody reads. */
static rt_bytes moved(rt_bytes file, size_t by)
{
    rt_bytes out = new_message();
    char text[PLACES + 1] = "";
    memset(text, 'd', by);
    put_text(&out, 6, text);
    opjit_rt_bytes_append(&out, file.data, file.size);
    return out;
}

/* y = x + w, elements of `size` bytes; with reshape, of w through { 512, 1024 } and back. */
static rt_bytes sum_with_weights(uint32_t type, uint32_t size, bool typed, bool reshape)
{
    static const int64_t square[2] = { 512, -1 }, flat[1] = { -1 };
    rt_bytes g = new_message();
    if (reshape) {
        put_message(&g, 1, node("Reshape", "w", "square", "there"));
        put_message(&g, 1, node("Reshape", "there", "flat", "back"));
        put_message(&g, 5, initializer("square", INT64, 2, square, sizeof square));
        put_message(&g, 5, initializer("flat", INT64, 1, flat, sizeof flat));
    }
    put_message(&g, 1, node("Add", "x", reshape ? "back" : "w", "y"));
    put_message(&g, 5, weights(type, size, typed));
    put_message(&g, 11, port("x", type, "524288"));
    put_message(&g, 12, port("y", type, "524288"));
    return model_of(g);
}

/* Raw weights and packed floats are read where the file has them, at whatever address that is. */
START_TEST(weights_anywhere)
{
    static const struct {
        uint32_t type, size;
        bool typed, reshape;
    } rows[] = {
        { FLOAT, 4, false, false },  { FLOAT, 4, true, false },    { FLOAT, 4, false, true },
        { DOUBLE, 8, false, false }, { DOUBLE, 8, true, false },   { FLOAT16, 2, false, false },
        { INT64, 8, false, true },   { UINT8, 1, false, false },
    };
    static _Alignas(64) uint8_t x[WEIGHTS * 8], y[WEIGHTS * 8];
    const uint32_t type = rows[_i].type, size = rows[_i].size;
    rt_bytes file = sum_with_weights(type, size, rows[_i].typed, rows[_i].reshape);
    opjit_binding bindings[2] = { { x, (uint64_t)WEIGHTS * size }, { y, (uint64_t)WEIGHTS * size } };

    for (size_t by = 0; by < PLACES; by++) {
        opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
        opjit_context *metered;
        test_meter meter;
        rt_bytes there = moved(file, by);
        size_t most = SIZE_MAX;
        test_meter_begin(&meter);
        options.allocator = &meter.allocator;
        ck_assert_int_eq(opjit_context_create(&options, &metered, NULL), OPJIT_OK);
#if defined(__x86_64__) || defined(__aarch64__)
        most = WEIGHTS; /* the least weights have as many bytes */
#endif
        memset(y, 0x5a, sizeof y);
        run_model(metered, there, bindings, 2, &meter, most);
        for (uint32_t i = 0; i < WEIGHTS; i++) { /* x is 0 */
            const float single = (float)(i % 50);
            const double wide = i % 50;
            const uint64_t integer = i % 50;
            const uint16_t half = opjit_float16_from_double(wide);
            const void *const expected = type == FLOAT     ? (const void *)&single
                                         : type == DOUBLE  ? (const void *)&wide
                                         : type == FLOAT16 ? (const void *)&half
                                                           : &integer;
            if (memcmp(y + (size_t)i * size, expected, size) != 0)
                ck_abort_msg("moved by %zu: element %u", by, i);
        }
        opjit_context_destroy(metered);
        ck_assert_uint_eq(meter.live, 0);
        opjit_rt_bytes_free(&there);
    }
    opjit_rt_bytes_free(&file);
}
END_TEST

/* Says of how many operators and constants the graph is that the model becomes, y of x; the file is freed. */
static void count_nodes(rt_bytes file, uint32_t out_counts[2])
{
    const DML_GRAPH_DESC *desc;
    opjit_model *model;
    opjit_error error;

    ck_assert_msg(opjit_model_read(context, file.data, file.size, NULL, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_int_eq(opjit_graph_get_desc(opjit_model_graph(model), &desc, &error), OPJIT_OK);
    out_counts[0] = out_counts[1] = 0;
    for (uint32_t i = 0; i < desc->NodeCount; i++)
        out_counts[desc->Nodes[i].Type == DML_GRAPH_NODE_TYPE_CONSTANT]++;
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
}

/* Layers that share their weights read them through Identity: what is made of these is made once. */
START_TEST(weights_of_many_names)
{
    /* those of float16 become FLOAT32 once, as x does, and y is rounded */
    static const struct {
        uint32_t type, size, operators;
    } rows[] = { { FLOAT, 4, 3 }, { FLOAT16, 2, 6 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t counts[2];
        rt_bytes g = new_message();
        put_message(&g, 1, node("Identity", "w", NULL, "v"));
        put_message(&g, 1, node("Identity", "v", NULL, "u"));
        put_message(&g, 1, node("Add", "x", "w", "a"));
        put_message(&g, 1, node("Add", "a", "v", "b"));
        put_message(&g, 1, node("Add", "b", "u", "y"));
        put_message(&g, 5, weights(rows[i].type, rows[i].size, false));
        put_message(&g, 11, port("x", rows[i].type, "524288"));
        put_message(&g, 12, port("y", rows[i].type, "524288"));
        count_nodes(model_of(g), counts);
        ck_assert_uint_eq(counts[0], rows[i].operators);
        ck_assert_uint_eq(counts[1], 1);
    }
}
END_TEST

/* Between nodes float16 is FLOAT32, as in ONNX Runtime: 300 * 300, which is no number of float16, goes on as 90,000,
 * in the graph as in constants.  Casts to float16 and outputs are rounded. */
START_TEST(float16_between_nodes)
{
    const uint16_t eighth = opjit_float16_from_double(.125), factor = opjit_float16_from_double(300);
    const float big = 90000;
    rt_bytes g = new_message(), cast = node("Cast", "big", NULL, "rounded"), to = new_message();
    uint16_t x[2] = { factor, factor }, y[4][2];
    opjit_binding bindings[5] = { { x, sizeof x } };
    put_text(&to, 1, "to");
    put_int(&to, 3, FLOAT16);
    put_int(&to, 20, 2);
    put_message(&cast, 5, to);
    put_message(&g, 1, node("Mul", "x", "x", "square"));
    put_message(&g, 1, node("Mul", "square", "eighth", "y0"));
    put_message(&g, 1, node("Mul", "factor", "factor", "of_constants"));
    put_message(&g, 1, node("Mul", "of_constants", "eighth", "y1"));
    put_message(&g, 1, cast);
    put_message(&g, 1, node("Mul", "rounded", "eighth", "y2"));
    put_message(&g, 1, node("Identity", "square", NULL, "y3"));
    put_message(&g, 5, initializer("eighth", FLOAT16, 1, &eighth, sizeof eighth));
    put_message(&g, 5, initializer("factor", FLOAT16, 1, &factor, sizeof factor));
    put_message(&g, 5, initializer("big", FLOAT, 1, &big, sizeof big));
    put_message(&g, 11, port("x", FLOAT16, "2"));
    for (int i = 0; i < 4; i++) {
        bindings[1 + i] = (opjit_binding){ y[i], sizeof y[i] };
        put_message(&g, 12, port((const char *const[]){ "y0", "y1", "y2", "y3" }[i], FLOAT16, i % 3 == 0 ? "2" : "1"));
    }
    rt_bytes file = model_of(g);
    run_model(context, file, bindings, 5, NULL, 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(y[0][i], opjit_float16_from_double(90000 * .125));
        ck_assert_uint_eq(y[3][i], opjit_float16_from_double(INFINITY));
    }
    ck_assert_uint_eq(y[1][0], y[0][0]);
    ck_assert_uint_eq(y[2][0], y[3][0]);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* Few numbers are computed while the model is read; weights, which many models store in another way, by the kernel. */
START_TEST(weights_are_left_to_the_kernel)
{
    static const struct {
        uint32_t elements, operators;
        const char *sizes;
    } rows[] = { { 512, 1, "512" }, { 513, 2, "513" }, { 65536, 2, "65536" } };
    static float numbers[65536];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t counts[2];
        rt_bytes g = new_message();
        put_message(&g, 1, node("Neg", "w", NULL, "negative"));
        put_message(&g, 1, node("Add", "x", "negative", "y"));
        put_message(&g, 5, initializer("w", FLOAT, rows[i].elements, numbers, rows[i].elements * sizeof *numbers));
        put_message(&g, 11, port("x", FLOAT, rows[i].sizes));
        put_message(&g, 12, port("y", FLOAT, rows[i].sizes));
        count_nodes(model_of(g), counts);
        ck_assert_uint_eq(counts[0], rows[i].operators);
        ck_assert_uint_eq(counts[1], 1);
    }
}
END_TEST

static rt_bytes tensor_of(const char *name, const uint32_t *sizes, uint32_t rank, const float *data)
{
    rt_bytes t = new_message();
    size_t bytes = sizeof *data;
    for (uint32_t d = 0; d < rank; d++) {
        put_int(&t, 1, sizes[d]);
        bytes *= sizes[d];
    }
    put_int(&t, 2, FLOAT);
    put_text(&t, 8, name);
    put_data(&t, 9, data, bytes);
    return t;
}

/* BatchNormalization scales the weights of the convolution before it, wherever these lie. */
START_TEST(scaled_weights_anywhere)
{
    enum { OUT = 3, IN = 2 };
    static const uint32_t of_filter[] = { OUT, IN, 1, 1 }, of_each[] = { OUT };
    static const float filter[] = { 1, 2, 3, 4, 5, 6 }, scale[] = { 2, 4, 8 }, zeros[OUT], mean[] = { 1, 0, 2 },
                       variance[] = { 1, 1, 1 };
    static const char *const names[] = { "scale", "bias", "mean", "variance" };
    static const float *const each[] = { scale, zeros, mean, variance };
    rt_bytes g = new_message(), normalization = node("BatchNormalization", "c", "scale", "y");
    float x[] = { 10, 1 }, y[OUT];
    opjit_binding bindings[2] = { { x, sizeof x }, { y, sizeof y } };

    for (int i = 1; i < 4; i++)
        put_text(&normalization, 1, names[i]);
    put_message(&normalization, 5, float_attribute("epsilon", 0, NULL));
    put_message(&g, 1, node("Conv", "x", "filter", "c"));
    put_message(&g, 1, normalization);
    put_message(&g, 5, tensor_of("filter", of_filter, 4, filter));
    for (int i = 0; i < 4; i++)
        put_message(&g, 5, tensor_of(names[i], of_each, 1, each[i]));
    put_message(&g, 11, port("x", FLOAT, "1 2 1 1"));
    put_message(&g, 12, port("y", FLOAT, "1 3 1 1"));
    rt_bytes file = model_of(g);
    for (size_t by = 0; by < PLACES; by++) {
        rt_bytes there = moved(file, by);
        memset(y, 0x5a, sizeof y);
        run_model(context, there, bindings, 2, NULL, 0);
        for (int o = 0; o < OUT; o++)
            ck_assert_float_eq(y[o], (filter[2 * o] * x[0] + filter[2 * o + 1] * x[1] - mean[o]) * scale[o]);
        opjit_rt_bytes_free(&there);
    }
    opjit_rt_bytes_free(&file);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fe.onnx.weights");
    TCase *t = tcase_create("weights");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, weights_anywhere, 0, 8);
    tcase_add_test(t, weights_of_many_names);
    tcase_add_test(t, float16_between_nodes);
    tcase_add_test(t, weights_are_left_to_the_kernel);
    tcase_add_test(t, scaled_weights_anywhere);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
