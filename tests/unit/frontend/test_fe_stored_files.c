/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_stored_files.c - models that the disk cache knows, and their files: weights in another file count as the
 * model's bytes do, and a file that nobody wrote to is hashed once. */
#define _GNU_SOURCE
#include "tests/unit/frontend/stored_model.h"

/* W in a file, which is part of what the model is: the model is known as long as that file says the same. */
START_TEST(weights_in_another_file)
{
    rt_bytes g = new_message(), w = new_message(), at = new_message();
    put_int(&w, 1, INNER);
    put_int(&w, 1, COLUMNS);
    put_int(&w, 2, FLOAT);
    put_text(&w, 8, "W");
    put_text(&at, 1, "location");
    put_text(&at, 2, "weights.bin");
    put_message(&w, 13, at);
    put_int(&w, 14, 1);
    put_message(&g, 1, node("MatMul", "x", "W", "y"));
    put_message(&g, 5, w);
    put_message(&g, 11, port("x", FLOAT, "16 96"));
    put_message(&g, 12, port("y", FLOAT, "16 128"));
    rt_bytes file = model_of(g);
    result r[4];
    char path[128];
    opjit_error error;
    opjit_model *model;
    opjit_context *context;
    write_whole("model.onnx", file.data, file.size);
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    for (int i = 0; i < 4; i++) {
        opjit_kernel *kernel;
        weights[1][1] += (float)(i == 2);
        write_whole("weights.bin", weights, sizeof weights);
        context = begin(NULL);
        ck_assert_msg(opjit_model_open(context, path, NULL, &model, &error) == OPJIT_OK, "%s", error.message);
        ck_assert_int_eq(model->stored.is_found, i == 1 || i == 3);
        ck_assert_int_eq(opjit_model_compile(model, NULL, &kernel, &error), OPJIT_OK);
        ck_assert_int_eq(call(kernel, ROWS, &r[i]), OPJIT_OK);
        opjit_kernel_release(kernel);
        opjit_model_close(model);
        opjit_context_destroy(context);
    }
    ck_assert(memcmp(r[0].y, r[1].y, sizeof r[0].y) == 0 && memcmp(r[0].y, r[2].y, sizeof r[0].y) != 0 &&
              memcmp(r[2].y, r[3].y, sizeof r[0].y) == 0);
    const found f = find();
    ck_assert_uint_eq(f.readings, 2);
    ck_assert_uint_eq(f.secrets, 1);
    for (int i = 0; i < 2; i++) { /* a file that is cut, or gone */
        write_whole("weights.bin", weights, sizeof weights / 2);
        snprintf(path + strlen(path) - 10, 16, "weights.bin");
        ck_assert_int_eq(i == 0 ? 0 : unlink(path), 0);
        snprintf(path + strlen(path) - 11, 16, "model.onnx");
        context = begin(NULL);
        ck_assert_int_eq(opjit_model_open(context, path, NULL, &model, &error),
                         i == 0 ? OPJIT_CORRUPT : OPJIT_UNAVAILABLE);
        opjit_context_destroy(context);
    }
    ck_assert_uint_eq(warnings, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* A stamp holds as long as nobody wrote to the file, from when later writes must give it another one. */
START_TEST(stamps_tell_writes)
{
    const int64_t second = 1000000000;
    onnx_stamp stamp;
    wire_bytes bytes;
    char path[128];
    snprintf(path, sizeof path, "%s/model.onnx", folder);
    do {
        write_whole("model.onnx", "model", 5);
        ck_assert_int_eq(opjit_onnx_map(path, &bytes, &stamp, NULL), OPJIT_OK);
        opjit_onnx_unmap(bytes);
    } while (stamp.changed % second == 0);
    ck_assert_uint_eq(stamp.size, 5);
    ck_assert(!opjit_onnx_stamp_holds(path, &stamp, stamp.changed));
    ck_assert(!opjit_onnx_stamp_holds(path, &stamp, stamp.changed + 9 * second));
    ck_assert(opjit_onnx_stamp_holds(path, &stamp, stamp.changed + 11 * second));
    for (int i = 0; i < 5; i++) { /* each part of it counts */
        onnx_stamp other = stamp;
        (i == 0 ? &other.device : i == 1 ? &other.inode : &other.size)[0] += i < 3;
        (i == 3 ? &other.modified : &other.changed)[0] -= i >= 3;
        ck_assert(!opjit_onnx_stamp_holds(path, &other, stamp.changed + 11 * second));
    }
    stamp.changed -= stamp.changed % second; /* of a file system without parts of a second */
    ck_assert(!opjit_onnx_stamp_holds(path, &stamp, stamp.changed + 11 * second));
    ck_assert(!opjit_onnx_stamp_holds("/nowhere/model.onnx", &stamp, stamp.changed + 11 * second));
}
END_TEST

/* A file that nobody wrote to is hashed once, one that was just written each time: it may be written to again without
 * another stamp. */
START_TEST(old_files_are_hashed_once)
{
    rt_bytes file = product();
    char paths[2][256];
    write_whole("new.onnx", file.data, file.size);
    snprintf(paths[0], sizeof paths[0], "%s/new.onnx", folder);
    snprintf(paths[1], sizeof paths[1], "%s/fuzz/corpus/onnx/conv.onnx", getenv("OPJIT_TEST_DATA"));
    for (int is_old = 0; is_old < 2; is_old++)
        for (int i = 0; i < 3; i++) {
            opjit_model_dim n;
            const opjit_model_options options = options_of(&n, 1);
            opjit_context *const context = begin(NULL);
            opjit_kernel *kernel;
            opjit_model *model;
            opjit_error error;
            ck_assert_msg(opjit_model_open(context, paths[is_old], &options, &model, &error) == OPJIT_OK, "%s",
                          error.message);
            ck_assert_int_eq(opjit_model_compile(model, NULL, &kernel, &error), OPJIT_OK);
            ck_assert_int_eq(model->stored.is_found, i > 0);
            ck_assert(!model->named.is_remembered || (is_old && i > 0 && model->stored.is_found));
            /* If its file system has such stamps: */
            if (opjit_onnx_stamp_holds(paths[is_old], &model->named.stamp, INT64_MAX))
                ck_assert_int_eq(model->named.is_remembered, is_old && i > 0);
            opjit_kernel_release(kernel);
            opjit_model_close(model);
            opjit_context_destroy(context);
        }
    opjit_rt_bytes_free(&file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.stored_files");
    TCase *tcase = tcase_create("stored");
    SRunner *runner;
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, weights_in_another_file);
    tcase_add_test(tcase, stamps_tell_writes);
    tcase_add_test(tcase, old_files_are_hashed_once);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
