/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_stored.c - models that the disk cache knows: another context, as in another process, gets inputs, outputs and
 * kernel without reading the model, and the bits are the same; nothing of it is taken for another model, other options
 * or other weights, whatever was done to the files. */
#define _GNU_SOURCE
#include "tests/unit/frontend/stored_model.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

START_TEST(a_model_is_read_once)
{
    rt_bytes file = product();
    result first;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    ck_assert(!first.is_found && !first.from_disk);
    for (int i = 0; i < 3; i++) {
        result r;
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        ck_assert(r.is_found && r.from_disk && memcmp(r.y, first.y, sizeof r.y) == 0);
    }
    const found f = find();
    ck_assert_uint_eq(f.readings, 1);
    ck_assert_uint_eq(f.weights, 1);
    ck_assert_uint_eq(f.secrets, 1);
    ck_assert_uint_eq(warnings, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* One bit of the weights anywhere, sizes, or what is around the weights, is another model. */
START_TEST(another_model_is_not_found)
{
    static const size_t places[][2] = { { 0, 0 }, { 0, 1 }, { 40, 3 }, { INNER - 1, COLUMNS - 1 } };
    rt_bytes file = product();
    result first, other;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        float *const w = &weights[places[i][0]][places[i][1]];
        const float before = *w;
        *w += 0.5f;
        rt_bytes changed = product();
        ck_assert_int_eq(run(&changed, ROWS, 0, NULL, &other), OPJIT_OK);
        ck_assert(!other.is_found && memcmp(other.y, first.y, sizeof other.y) != 0);
        expect(&changed, true, &other);
        opjit_rt_bytes_free(&changed);
        *w = before;
    }
    ck_assert_int_eq(run(&file, 1, 0, NULL, &other), OPJIT_OK);
    ck_assert(!other.is_found && memcmp(other.y[0], first.y[0], sizeof other.y[0]) == 0);
    expect(&file, true, &first);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(the_option_turns_it_off)
{
    rt_bytes file = product();
    opjit_model_options options = OPJIT_MODEL_OPTIONS_INIT;
    opjit_model *model;
    result r;
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_NO_CACHE, NULL, &r), OPJIT_OK);
    ck_assert_uint_eq(find().count, 0);
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_NO_CACHE, NULL, &r), OPJIT_OK);
    ck_assert(!r.is_found && r.from_disk);
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_SAMPLE, NULL, &r), OPJIT_OK); /* another graph has other constants */
    ck_assert(!r.is_found);
    options.flags = 8;
    opjit_context *const context = begin(NULL);
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, &options, &model, NULL), OPJIT_INVALID_ARGUMENT);
    opjit_context_destroy(context);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* What was not read can be, when somebody asks for more than the kernel. */
START_TEST(all_else_of_it_works)
{
    rt_bytes file = product();
    result first, r;
    opjit_model_dim n;
    const opjit_model_options options = options_of(&n, ROWS);
    opjit_model_port in = OPJIT_MODEL_PORT_INIT, out = OPJIT_MODEL_PORT_INIT;
    const opjit_dim dim = { "n", 1, 64, 4 };
    opjit_kernel *kernel, *other;
    const DML_GRAPH_DESC *desc;
    opjit_model *model;
    opjit_error error;
    uint64_t size;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    opjit_context *const context = begin(NULL);
    ck_assert_int_eq(opjit_model_read(context, file.data, file.size, &options, &model, &error), OPJIT_OK);
    ck_assert(model->stored.is_found && model->graph == NULL);
    ck_assert_int_eq(opjit_model_get_input(model, 0, &in, &error), OPJIT_OK);
    ck_assert_int_eq(opjit_model_get_output(model, 0, &out, &error), OPJIT_OK);
    ck_assert_str_eq(in.name, "x");
    ck_assert_str_eq(out.name, "y");
    ck_assert(in.binding == 0 && out.binding == 1 && in.rank == 2 && in.sizes[1] == INNER && out.sizes[0] == ROWS);
    ck_assert(opjit_model_get_dim(model, "n", &size, &error) == OPJIT_OK && size == ROWS);
    ck_assert_int_eq(opjit_model_get_dim(model, "m", &size, &error), OPJIT_INVALID_ARGUMENT);
    static const char *const none[] = { "n/0", "n/", "n/x", "n/4x", "n/99999999999999999999", "m/1", "/1" };
    for (uint32_t i = 0; i < sizeof none / sizeof *none; i++)
        ck_assert_msg(opjit_model_get_dim(model, none[i], &size, &error) == OPJIT_INVALID_ARGUMENT, "%s", none[i]);
    ck_assert(opjit_model_get_dim(model, "n/1", &size, &error) == OPJIT_OK && size == ROWS);
    ck_assert(opjit_model_get_dim(model, "n/97", &size, &error) == OPJIT_INVALID_ARGUMENT && size == 0);
    ck_assert_ptr_nonnull(strstr(error.message, "must be a multiple of 97 (n/97)"));
    ck_assert_int_eq(opjit_model_compile(model, NULL, &kernel, &error), OPJIT_OK);
    ck_assert_ptr_null(model->whole);
    ck_assert_msg(opjit_kernel_optimize(kernel, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(call(kernel, ROWS, &r), OPJIT_OK);
    ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
    opjit_kernel_release(kernel);

    ck_assert_int_eq(opjit_graph_get_desc(opjit_model_graph(model), &desc, &error), OPJIT_OK);
    ck_assert(!model->stored.is_found); /* the host may add to the graph, which then counts */
    ck_assert_int_eq(opjit_graph_compile(opjit_model_graph(model), NULL, &other, &error), OPJIT_OK);
    ck_assert_int_eq(call(other, ROWS, &r), OPJIT_OK);
    ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
    opjit_kernel_release(other);
    opjit_compile_options interpret = OPJIT_COMPILE_OPTIONS_INIT;
    interpret.flags = OPJIT_COMPILE_INTERPRET;
    ck_assert_int_eq(opjit_model_compile(model, &interpret, &other, &error), OPJIT_OK);
    ck_assert_int_eq(call(other, ROWS, &r), OPJIT_OK);
    ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
    opjit_kernel_release(other);
    ck_assert_msg(opjit_model_compile_dynamic(model, &dim, 1, NULL, &other, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(other);
    opjit_model_close(model);
    opjit_context_destroy(context);
    opjit_rt_bytes_free(&file);
}
END_TEST

static void damage(const char *path, uint32_t number, bool cut)
{
    const int file = open(path, O_RDWR);
    struct stat about;
    uint8_t byte;
    ck_assert_int_eq(fstat(file, &about), 0);
    const off_t at = (off_t)number % about.st_size;
    ck_assert_int_eq(pread(file, &byte, 1, at), 1);
    byte ^= 16;
    ck_assert_int_eq(cut ? ftruncate(file, at) : pwrite(file, &byte, 1, at), cut ? 0 : 1);
    close(file);
}

/* Files that are cut, changed, or another's, are found out: the bits are right, and the files are written anew. */
START_TEST(damaged_files)
{
    rt_bytes file = product();
    uint32_t state = 4711, rejected = 0;
    result first;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    for (int round = 0; round < 60; round++) {
        result r;
        opjit_context *const context = begin(NULL);
        ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, NULL, NULL), OPJIT_OK);
        opjit_context_destroy(context);
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        const found f = find();
        ck_assert_uint_eq(f.count, 3);
        state = state * 1664525 + 1013904223;
        const bool emptied = round < 3; /* each of the files */
        damage(f.paths[emptied ? (uint32_t)round : (state >> 16) % f.count], emptied ? 0 : state >> 4,
               emptied || round % 4 == 0);
        const uint32_t before = warnings;
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        ck_assert(memcmp(r.y, first.y, sizeof r.y) == 0);
        rejected += warnings != before;
        ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
        ck_assert(r.is_found && memcmp(r.y, first.y, sizeof r.y) == 0);
    }
    ck_assert_uint_eq(rejected, 60);
    opjit_rt_bytes_free(&file);
}
END_TEST

START_TEST(nothing_can_be_written)
{
    rt_bytes file = product();
    const struct rlimit none = { 10, RLIM_INFINITY };
    struct rlimit old;
    result first, r;
    getrlimit(RLIMIT_FSIZE, &old);
    setrlimit(RLIMIT_FSIZE, &none);
    const opjit_status status = run(&file, ROWS, 0, NULL, &first);
    setrlimit(RLIMIT_FSIZE, &old); /* Check writes files, too */
    ck_assert_int_eq(status, OPJIT_OK);
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(find().count, 0);
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
    ck_assert(!r.is_found && memcmp(r.y, first.y, sizeof r.y) == 0);
    expect(&file, true, &first);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* The n-th allocation fails: the right bits or OUT_OF_MEMORY, and nothing is lost, in memory or on disk. */
START_TEST(without_memory)
{
    rt_bytes file = product();
    counting memory;
    result first, r;
    uint32_t failed = 0;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &first), OPJIT_OK);
    for (int at = 1;; at++) {
        const opjit_allocator allocator = counting_allocator(&memory, at);
        const opjit_status status = run(&file, ROWS, 0, &allocator, &r);
        ck_assert_int_eq(memory.live, 0);
        ck_assert(status == OPJIT_OUT_OF_MEMORY ||
                  (status == OPJIT_OK && memcmp(r.y, first.y, sizeof r.y) == 0));
        failed += status != OPJIT_OK;
        if (memory.calls < at)
            break;
    }
    ck_assert_uint_gt(failed, 5);
    expect(&file, true, &first);
    ck_assert_uint_eq(warnings, 0);
    opjit_rt_bytes_free(&file);
}
END_TEST

/* --- processes ---------------------------------------------------------------------------------------------------- */

START_TEST(processes_at_the_same_time)
{
    rt_bytes file = product();
    pid_t children[6];
    result first;
    ck_assert_int_eq(run(&file, ROWS, OPJIT_MODEL_NO_CACHE, NULL, &first), OPJIT_OK);
    for (int i = 0; i < 6; i++) {
        children[i] = fork();
        ck_assert_int_ge(children[i], 0);
        if (children[i] != 0)
            continue;
        for (int k = 0; k < 5; k++) {
            result r;
            opjit_context *const context = begin(NULL);
            if (i == 5 && opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, NULL, NULL) != OPJIT_OK)
                _exit(2);
            opjit_context_destroy(context);
            if (run(&file, ROWS, 0, NULL, &r) != OPJIT_OK || memcmp(r.y, first.y, sizeof r.y) != 0)
                _exit(1);
        }
        _exit(warnings == 0 ? 0 : 3);
    }
    for (int i = 0; i < 6; i++) {
        int status;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    result r;
    ck_assert_int_eq(run(&file, ROWS, 0, NULL, &r), OPJIT_OK);
    expect(&file, true, &first);
    opjit_rt_bytes_free(&file);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.stored");
    TCase *tcase = tcase_create("stored");
    SRunner *runner;
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, a_model_is_read_once);
    tcase_add_test(tcase, another_model_is_not_found);
    tcase_add_test(tcase, the_option_turns_it_off);
    tcase_add_test(tcase, all_else_of_it_works);
    tcase_add_test(tcase, damaged_files);
    tcase_add_test(tcase, nothing_can_be_written);
    tcase_add_test(tcase, without_memory);
    tcase_add_test(tcase, processes_at_the_same_time);
    suite_add_tcase(suite, tcase);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
