/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_onnx_refused.c - ONNX models that are refused, and with which words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/base.h"
#include "tests/unit/frontend/onnx_models.h"

/* The model is refused with that line. */
static void refuse(rt_bytes file, const opjit_model_options *options, opjit_status status, const char *message)
{
    opjit_model *model;
    opjit_error error;
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, options, &model, &error), status);
    ck_assert_ptr_null(model);
    ck_assert_str_eq(error.message, message);
    opjit_rt_bytes_free(&file);
}

/* Hosts ask for sizes in their own words, and know by the fields that some are needed. */
START_TEST(open_sizes)
{
    rt_bytes file = model_of(reshaping_graph());
    opjit_model *model;
    opjit_error error;
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, NULL, &model, &error), OPJIT_UNSUPPORTED);
    ck_assert_str_eq(error.op, "input");
    ck_assert_str_eq(error.field, "\"x\"");
    ck_assert_str_eq(error.value, "unknown");
    ck_assert_int_eq(error.index, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(models_that_are_refused)
{
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    const opjit_model_dim other = { "batch", 1 };
    rt_bytes g;

    refuse(model_of(reshaping_graph()), NULL, OPJIT_UNSUPPORTED,
           "input \"x\": dimension \"n\" is not known: give its size");
    options.dims = &other;
    options.dim_count = 1;
    refuse(model_of(reshaping_graph()), &options, OPJIT_INVALID_ARGUMENT,
           "no input of the model has a dimension \"batch\"");
    g = new_message();
    put_message(&g, 1, node("Add", "x", "nothing", "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT,
           "node 0 (Add): input 1: \"nothing\" is made by no node before it");
    g = new_message();
    put_message(&g, 1, node("Abs", "x", NULL, "y"));
    put_message(&g, 11, port("x", 17, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_UNSUPPORTED, "input \"x\": float8e4m3fn is not taken");
    g = new_message(); /* a circle */
    put_message(&g, 1, node("Add", "x", "y", "z"));
    put_message(&g, 1, node("Abs", "z", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT, "node 1 (Abs): input 0: \"z\" is made by no node before it");
    g = new_message();
    put_message(&g, 1, node("Frobnicate", "x", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_UNSUPPORTED, "node 0 (Frobnicate): there is no such operator");
    g = new_message();
    put_message(&g, 1, node("Add", "x", "w", "y"));
    put_message(&g, 5, initializer("w", FLOAT, 6, "12345678", 8));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_CORRUPT,
           "node 0 (Add): tensor \"w\": 2 elements are in the file, its sizes say 6");
    static const struct {
        const char *op, *message;
    } empty[] = { { "LRN", "output \"y\": a tensor without elements" },
                  { "GlobalLpPool",
                    "node 0 (GlobalLpPool): the size of the window along spatial dimension 0: 0, must be at least 1" },
                  { "Softmax", "output \"y\": a tensor without elements" },
                  { "Transpose", "output \"y\": a tensor without elements" } };
    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        rt_bytes n = node(empty[i].op, "x", NULL, "y"), a = new_message();
        put_text(&a, 1, "size");
        put_int(&a, 3, 3);
        put_message(&n, 5, a);
        g = new_message();
        put_message(&g, 1, n);
        put_message(&g, 11, port("x", FLOAT, "2 3 0"));
        put_message(&g, 12, port("y", FLOAT, "2 3 0"));
        refuse(model_of(g), NULL, i == 1 ? OPJIT_INVALID_ARGUMENT : OPJIT_UNSUPPORTED, empty[i].message);
    }
}
END_TEST

/* A node with inputs x {2,3} and w {4}, INT64 numbers, and one attribute, of the kind that is asked for or of another:
 * each message says what it was and what is allowed. */
START_TEST(nodes_that_are_refused)
{
    enum { NONE, INT = 2, TEXT = 3, INTS = 7 };
    static const struct {
        const char *op, *second, *attribute;
        uint32_t kind;
        int64_t value;
        const char *message;
    } rows[] = {
        { "Softmax", NULL, "axis", TEXT, 0, "node 0 (Softmax): attribute axis is a text, must be an integer" },
        { "Elu", NULL, "alpha", INT, 1, "node 0 (Elu): attribute alpha is an integer, must be a float" },
        { "Gelu", NULL, "approximate", INT, 1, "node 0 (Gelu): attribute approximate is an integer, must be a text" },
        { "ReduceMax", NULL, "axes", INT, 1, "node 0 (ReduceMax): attribute axes is an integer, must be integers" },
        { "Softmax", NULL, "axis", INT, 2, "node 0 (Softmax): axis 2, must be -2 to 1" },
        { "Flatten", NULL, "axis", INT, -3, "node 0 (Flatten): attribute axis: -3, must be -2 to 2" },
        { "Reshape", "w", NULL, NONE, 0, "node 0 (Reshape): sizes 0 and 1 of input 1 are -1, one may be" },
        { "Reshape", "long", NULL, NONE, 0, "node 0 (Reshape): size 0 of input 1: 4294967296, must be -1 to 2^32 - 1" },
        { "MatMul", "x", NULL, NONE, 0,
          "node 0 (MatMul): input 0 has rows of 3 elements, input 1 columns of 2: must be equal" },
        { "Tile", "w", NULL, NONE, 0, "node 0 (Tile): 4 repeats, must be 2, one for each dimension" },
        { "TopK", NULL, "k", INT, 9, "node 0 (TopK): k: 9, must be 0 to 3" },
    };
    const int64_t w[4] = { -1, -1, 2, 3 }, too_long = INT64_C(1) << 32;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_bytes g = new_message(), n = node(rows[i].op, "x", rows[i].second, "y"), a = new_message();
        if (rows[i].attribute != NULL) {
            put_text(&a, 1, rows[i].attribute);
            put_int(&a, 3, (uint64_t)rows[i].value);
            put_int(&a, 20, rows[i].kind);
            put_data(&n, 5, a.data, a.size);
        }
        opjit_rt_bytes_free(&a);
        put_message(&g, 1, n);
        put_message(&g, 5, initializer("w", INT64, 4, w, sizeof w));
        put_message(&g, 5, initializer("long", INT64, 1, &too_long, sizeof too_long));
        put_message(&g, 11, port("x", FLOAT, "2 3"));
        put_message(&g, 12, port("y", FLOAT, "2 3"));
        refuse(model_of(g), NULL, i == sizeof rows / sizeof *rows - 1 ? OPJIT_UNSUPPORTED : OPJIT_INVALID_ARGUMENT,
               rows[i].message);
    }
}
END_TEST

static void put_ints(rt_bytes *n, const char *name, const int64_t *values, uint32_t count)
{
    rt_bytes a = new_message();
    put_text(&a, 1, name);
    for (uint32_t i = 0; i < count; i++)
        put_int(&a, 8, (uint64_t)values[i]);
    put_int(&a, 20, 7);
    put_message(n, 5, a);
}

/* A result has as many columns as the greatest place says, for which a file needs few bytes. */
START_TEST(places_of_n_grams)
{
    static const struct {
        int64_t place;
        const char *message;
    } rows[] = {
        { -1, "node 0 (TfIdfVectorizer): attribute ngram_indexes: -1, must be 0 to 16777215" },
        { INT32_MAX, "node 0 (TfIdfVectorizer): attribute ngram_indexes: 2147483647, must be 0 to 16777215" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_bytes g = new_message(), n = node("TfIdfVectorizer", "x", NULL, "y");
        put_ints(&n, "pool_int64s", (const int64_t[]){ 7 }, 1);
        put_ints(&n, "ngram_counts", (const int64_t[]){ 0 }, 1);
        put_ints(&n, "ngram_indexes", &rows[i].place, 1);
        for (int k = 0; k < 2; k++) {
            rt_bytes a = new_message();
            put_text(&a, 1, k == 0 ? "min_gram_length" : "max_gram_length");
            put_int(&a, 3, 1);
            put_int(&a, 20, 2);
            put_message(&n, 5, a);
        }
        put_message(&g, 1, n);
        put_message(&g, 11, port("x", INT64, "1 4"));
        put_message(&g, 12, port("y", FLOAT, "1 1"));
        refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT, rows[i].message);
    }
}
END_TEST

/* Two nodes may not make one name, even if nobody reads it: which one would it be? */
START_TEST(names_made_twice)
{
    rt_bytes g = new_message();
    put_message(&g, 1, node("Relu", "x", NULL, "y"));
    put_message(&g, 1, node("Abs", "x", NULL, "y"));
    put_message(&g, 11, port("x", FLOAT, "6"));
    put_message(&g, 12, port("y", FLOAT, "6"));
    refuse(model_of(g), NULL, OPJIT_INVALID_ARGUMENT, "graph: \"y\" is made by node 0 and by node 1");
}
END_TEST

/* A tensor in another file: a place that is no number is refused, and not taken for 0. */
START_TEST(places_in_other_files)
{
    static const struct {
        const char *key, *value, *message;
    } rows[] = {
        { "offset", "-5", "tensor \"w\": external_data offset: \"-5\", must be a number of bytes" },
        { "offset", "", "tensor \"w\": external_data offset: \"\", must be a number of bytes" },
        { "length", "12x", "tensor \"w\": external_data length: \"12x\", must be a number of bytes" },
        { "length", "99999999999999999999",
          "tensor \"w\": external_data length: \"99999999999999999999\", must be a number of bytes" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rt_bytes g = new_message(), t = new_message(), entry = new_message();
        put_int(&t, 1, 6);
        put_int(&t, 2, FLOAT);
        put_text(&t, 8, "w");
        put_text(&entry, 1, rows[i].key);
        put_text(&entry, 2, rows[i].value);
        put_message(&t, 13, entry);
        put_int(&t, 14, 1);
        put_message(&g, 1, node("Add", "x", "w", "y"));
        put_message(&g, 5, t);
        put_message(&g, 11, port("x", FLOAT, "6"));
        put_message(&g, 12, port("y", FLOAT, "6"));
        refuse(model_of(g), NULL, OPJIT_CORRUPT, rows[i].message);
    }
}
END_TEST

/* y = Loop(M, cond, x) with a body whose condition is a name of it, and whose state is the input or its absolute
 * value. */
static rt_bytes loop_model(int64_t most, const char *condition, const char *state)
{
    rt_bytes g = new_message(), body = new_message(), a = new_message(), n = new_message();
    put_message(&body, 1, node("Abs", "v", NULL, "positive"));
    put_message(&body, 1, node("IsNaN", "v", NULL, "late"));
    put_message(&body, 11, port("round", INT64, ""));
    put_message(&body, 11, port("before", 9, ""));
    put_message(&body, 11, port("v", FLOAT, "1"));
    put_message(&body, 12, port(condition, 9, ""));
    put_message(&body, 12, port(state, FLOAT, "1"));
    put_text(&a, 1, "body");
    put_message(&a, 6, body);
    put_int(&a, 20, 5);
    put_text(&n, 1, "most");
    put_text(&n, 1, "");
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 4, "Loop");
    put_message(&n, 5, a);
    put_message(&g, 1, n);
    put_message(&g, 5, initializer("most", INT64, 1, &most, sizeof most));
    put_message(&g, 11, port("x", FLOAT, "1"));
    put_message(&g, 12, port("y", FLOAT, "1"));
    return model_of(g);
}

START_TEST(loops_that_are_refused)
{
    opjit_model *model;
    opjit_error error;
    rt_bytes file = loop_model(20, "before", "positive");
    ck_assert_msg(opjit_model_read(context, file.data, file.size, NULL, &model, &error) == OPJIT_OK, "%s",
                  error.message);
    opjit_model_close(model);
    opjit_rt_bytes_free(&file);
    refuse(loop_model(20, "late", "positive"), NULL, OPJIT_UNSUPPORTED,
           "node 0 (Loop): a loop whose length is known at run time only");
    refuse(loop_model(INT64_MAX, "before", "v"), NULL, OPJIT_LIMIT, /* rounds without nodes */
           "node 0 (Loop): more than 1000000 nodes, with those of all rounds");
    refuse(loop_model(20, "before", "nothing"), NULL, OPJIT_INVALID_ARGUMENT,
           "node 0 (Loop): output \"nothing\" of body is made by no node");
}
END_TEST

/* y = Scan(x), a slice of three of x in each round, and the operator of that and of what is stored as w. */
static rt_bytes scan_model(const char *op, uint32_t type, uint64_t elements, const void *w, size_t bytes)
{
    rt_bytes g = new_message(), body = new_message(), a = new_message(), count = new_message(), n = new_message();
    put_message(&body, 1, node(op, "slice", "w", "part"));
    put_message(&body, 5, initializer("w", type, elements, w, bytes));
    put_message(&body, 11, port("slice", FLOAT, "3"));
    put_message(&body, 12, port("part", FLOAT, "3"));
    put_text(&a, 1, "body");
    put_message(&a, 6, body);
    put_int(&a, 20, 5);
    put_text(&count, 1, "num_scan_inputs");
    put_int(&count, 3, 1);
    put_int(&count, 20, 2);
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 4, "Scan");
    put_message(&n, 5, a);
    put_message(&n, 5, count);
    put_message(&g, 1, n);
    put_message(&g, 11, port("x", FLOAT, "5 3"));
    put_message(&g, 12, port("y", FLOAT, "5 3"));
    return model_of(g);
}

START_TEST(scans_that_are_refused)
{
    const float five[5] = { 0 };
    const int64_t axis = 7;
    refuse(scan_model("Add", FLOAT, 5, five, sizeof five), NULL, OPJIT_INVALID_ARGUMENT,
           "node 0 (Scan): node 0 (Add): ELEMENT_WISE_ADD ATensor.Sizes[1]: 3, must be 5 as OutputTensor.Sizes[1]");
    refuse(scan_model("ReduceSum", INT64, 1, &axis, sizeof axis), NULL, OPJIT_INVALID_ARGUMENT,
           "node 0 (Scan): node 0 (ReduceSum): axis 7, must be -1 to 0");
}
END_TEST

/* y, all = Loop("", "", x), which goes on while x is no number, and keeps a value of 8 GiB of each round. */
START_TEST(loop_that_keeps_too_much)
{
    const int64_t sizes[1] = { INT64_C(1) << 31 };
    rt_bytes g = new_message(), body = new_message(), a = new_message(), n = new_message();
    put_message(&body, 1, node("Abs", "v", NULL, "positive"));
    put_message(&body, 1, node("IsNaN", "v", NULL, "on"));
    put_message(&body, 1, node("Expand", "positive", "sizes", "wide"));
    put_message(&body, 11, port("round", INT64, ""));
    put_message(&body, 11, port("before", 9, ""));
    put_message(&body, 11, port("v", FLOAT, "1"));
    put_message(&body, 12, port("on", 9, ""));
    put_message(&body, 12, port("positive", FLOAT, "1"));
    put_message(&body, 12, port("wide", FLOAT, "w"));
    put_text(&a, 1, "body");
    put_message(&a, 6, body);
    put_int(&a, 20, 5);
    put_text(&n, 1, "");
    put_text(&n, 1, "");
    put_text(&n, 1, "x");
    put_text(&n, 2, "y");
    put_text(&n, 2, "all");
    put_text(&n, 4, "Loop");
    put_message(&n, 5, a);
    put_message(&g, 1, n);
    put_message(&g, 5, initializer("sizes", INT64, 1, sizes, sizeof sizes));
    put_message(&g, 11, port("x", FLOAT, "1"));
    put_message(&g, 12, port("y", FLOAT, "1"));
    put_message(&g, 12, port("all", FLOAT, "rounds w"));
    const float x[1] = { NAN };
    const opjit_model_input given = {
        "x", NULL, x, sizeof x, 0, DML_TENSOR_DATA_TYPE_FLOAT32, OPJIT_MODEL_INPUT_OF_CALL, 0
    };
    opjit_compile_options compile = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    compile.flags = OPJIT_COMPILE_INTERPRET;
    options.computing = &compile;
    options.inputs = &given;
    options.input_count = 1;
    refuse(model_of(g), &options, OPJIT_LIMIT,
           "node 0 (Loop): more than 4294967296 bytes of values that later nodes have yet to read, behind 0 computed "
           "ones");
}
END_TEST

/* Every beginning of a model, and every model with one byte changed, is refused or read; nothing is lost. */
START_TEST(damaged_models)
{
    rt_bytes whole = model_of(reshaping_graph());
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    const opjit_model_dim n = { "n", 4 };
    opjit_model *model;
    opjit_error error;

    options.dims = &n;
    options.dim_count = 1;
    for (size_t size = 0; size < whole.size; size++)
        ck_assert_int_ne(opjit_model_read(context, whole.data, size, &options, &model, &error), OPJIT_OK);
    for (size_t at = 0; at < whole.size; at++)
        for (uint32_t bit = 0; bit < 8; bit++) {
            whole.data[at] ^= (uint8_t)(1u << bit);
            if (opjit_model_read(context, whole.data, whole.size, &options, &model, &error) == OPJIT_OK)
                opjit_model_close(model);
            else
                ck_assert_uint_gt(strlen(error.message), 0);
            whole.data[at] ^= (uint8_t)(1u << bit);
        }
    opjit_rt_bytes_free(&whole);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fe.onnx.refused");
    TCase *t = tcase_create("refused");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, open_sizes);
    tcase_add_test(t, models_that_are_refused);
    tcase_add_test(t, nodes_that_are_refused);
    tcase_add_test(t, places_of_n_grams);
    tcase_add_test(t, names_made_twice);
    tcase_add_test(t, places_in_other_files);
    tcase_add_test(t, loops_that_are_refused);
    tcase_add_test(t, scans_that_are_refused);
    tcase_add_test(t, loop_that_keeps_too_much);
    tcase_add_test(t, damaged_models);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    return run_suite(suite());
}
