/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_functions.c - functions that kernels share, in the disk cache: other kernels of other processes find them,
 * and are the same as without.  Each process is a child, as a process finds what it has compiled itself in its
 * memory. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <opjit/cache.h>

#include "runtime/cache/disk.h"
#include "tests/support/checker.h"
#include "tests/support/graph_case.h"
#include "tests/unit/runtime/rt_sample.h"

enum { LONG_AGO = 1000 };

static char folder[64], other_folder[64];
static uint32_t warnings;

static void on_event(void *user, const opjit_event *event)
{
    (void)user;
    warnings += event->kind == OPJIT_EVENT_WARNING;
}

static opjit_context *begin(const char *cache, const opjit_allocator *allocator)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;

    options.cache_dir = cache;
    options.allocator = allocator;
    options.event = on_event;
    warnings = 0;
    return opjit_context_create(&options, &context, NULL) == OPJIT_OK ? context : NULL;
}

/* exp of rows x 48 floats. */
static opjit_status compile_exp(opjit_context *context, uint32_t rows, uint32_t flags)
{
    const uint32_t sizes[] = { rows, 48 };
    graph_tensor t;
    const DML_TENSOR_DESC *const x = graph_tensor_set(&t, DML_TENSOR_DATA_TYPE_FLOAT32, 2, sizes, NULL, 0);
    const DML_ELEMENT_WISE_EXP_OPERATOR_DESC exp = { .InputTensor = x, .OutputTensor = x };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_ELEMENT_WISE_EXP, &exp };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op = NULL;
    opjit_kernel *kernel = NULL;
    opjit_status status = opjit_operator_create(context, &desc, &op, NULL);

    options.flags = flags;
    if (status == OPJIT_OK)
        status = opjit_compile_operator(context, op, &options, &kernel, NULL);
    opjit_operator_release(op);
    opjit_kernel_release(kernel);
    return status;
}

/* A process: compiles one kernel with a cache folder.  How many warnings it got. */
static uint32_t compile_in_child(const char *cache, uint32_t rows, uint32_t flags)
{
    int status;
    const pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        opjit_context *const context = begin(cache, NULL);
        _exit(context != NULL && compile_exp(context, rows, flags) == OPJIT_OK ? (int)warnings : 100);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) < 100);
    return (uint32_t)WEXITSTATUS(status);
}

/* --- the folder --------------------------------------------------------------------------------------------------- */

typedef struct files {
    uint32_t kernels, functions, damaged;
    char function[512]; /* the path of one */
    opjit_cache_key key;
} files;

static bool see(void *user, const opjit_cache_entry *entry)
{
    files *const f = user;
    char name[OPJIT_CACHE_KEY_TEXT_SIZE];

    if (entry->damaged != NULL) {
        f->damaged++;
    } else if ((entry->flags & OPJIT_CACHE_ENTRY_FUNCTION) == 0) {
        f->kernels++;
        ck_assert(entry->target[0] != '\0' && entry->level == OPJIT_LEVEL_QUICK);
    } else {
        f->functions++;
        f->key = entry->key;
        opjit_cache_key_to_text(&entry->key, name);
        snprintf(f->function, sizeof f->function, "%s/%s.opjit", folder, name);
        ck_assert_int_eq(strncmp(entry->name, "math.exp_f32x", 13), 0);
        ck_assert(entry->target[0] == '\0' && entry->level == 0 && entry->kernel == NULL && entry->bytes != 0);
    }
    return true;
}

static files list(opjit_context *context)
{
    files f = { .kernels = 0 };

    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_DISK, see, &f, NULL), OPJIT_OK);
    return f;
}

static opjit_context *context; /* of this process, which compiles nothing */

static bool have_functions(void)
{
    if (test_have_codegen(context) && opjit_rt_target_calls_math(&context->target))
        return true;
    printf("skipped: kernels share no functions here\n");
    return false;
}

static void setup(void)
{
    strcpy(folder, "/tmp/opjit-kept-XXXXXX");
    strcpy(other_folder, "/tmp/opjit-kept-XXXXXX");
    ck_assert(mkdtemp(folder) != NULL && mkdtemp(other_folder) != NULL);
    context = begin(folder, NULL);
    ck_assert_ptr_nonnull(context);
}

static void teardown(void)
{
    char command[256];

    opjit_context_destroy(context);
    snprintf(command, sizeof command, "rm -rf '%s' '%s'", folder, other_folder);
    ck_assert_int_eq(system(command), 0);
}

static void make_old(const char *path)
{
    const struct timespec times[2] = { { LONG_AGO, 0 }, { LONG_AGO, 0 } };
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_old(const char *path)
{
    struct stat info;
    ck_assert_int_eq(stat(path, &info), 0);
    return info.st_mtime == LONG_AGO;
}

/* --- tests -------------------------------------------------------------------------------------------------------- */

static bool see_function(void *user, const rt_disk_entry *entry)
{
    ck_assert(entry->kind == RT_DISK_FUNCTION && entry->damaged == NULL && entry->level == 0);
    ck_assert_str_eq(entry->name, "function");
    ck_assert_str_eq(entry->target, "");
    ++*(uint32_t *)user;
    return true;
}

static rt_disk_result load(const rt_disk_key *key, size_t expected)
{
    rt_bytes out;
    opjit_rt_bytes_init(&out, &context->core->allocator);
    const rt_disk_result result = opjit_rt_disk_load(context->core->disk, key, &out);
    ck_assert_uint_eq(out.size, result == RT_DISK_FOUND ? expected : 0);
    ck_assert(out.size == 0 || memcmp(out.data, "ab", out.size) == 0);
    opjit_rt_bytes_free(&out);
    return result;
}

/* A function's code is any bytes, and nothing that a kernel's key finds; its key begins with a name. */
START_TEST(functions_are_no_kernels)
{
    static const char text[] = "function";
    const rt_disk_key key = { text, sizeof text, opjit_rt_hash(text, sizeof text), RT_DISK_FUNCTION };
    const rt_disk_key as_kernel = { text, sizeof text, key.hash, RT_DISK_KERNEL };
    const rt_disk_key nameless = { text, 8, opjit_rt_hash(text, 8), RT_DISK_FUNCTION };
    const rt_disk_key empty = { text, 0, opjit_rt_hash(text, 0), RT_DISK_FUNCTION };
    rt_disk *const disk = context->core->disk;
    uint32_t seen = 0;

    for (size_t size = 0; size < 3; size++) {
        ck_assert_int_eq(load(&key, size), RT_DISK_ABSENT);
        ck_assert(opjit_rt_disk_store(disk, &key, "ab", size));
        ck_assert_int_eq(load(&key, size), RT_DISK_FOUND);
        ck_assert_int_eq(opjit_rt_disk_visit(disk, NULL, see_function, &seen, NULL), OPJIT_OK);
        ck_assert_int_eq(load(&as_kernel, 0), RT_DISK_REJECTED);
    }
    ck_assert_uint_eq(seen, 3);
    ck_assert(opjit_rt_disk_store(disk, &nameless, "ab", 2) && opjit_rt_disk_store(disk, &empty, "ab", 2));
    ck_assert_int_eq(load(&nameless, 2), RT_DISK_REJECTED);
    ck_assert_int_eq(load(&empty, 2), RT_DISK_REJECTED);
    ck_assert_uint_eq(warnings, 5);
}
END_TEST

START_TEST(another_kernel_finds_them)
{
    char command[256];

    if (!have_functions())
        return;
    ck_assert_uint_eq(compile_in_child(folder, 64, 0), 0);
    const files one = list(context);
    ck_assert_uint_eq(one.kernels, 1);
    ck_assert_uint_ge(one.functions, 1);
    make_old(one.function);
    ck_assert_uint_eq(compile_in_child(folder, 96, 0), 0);
    const files two = list(context);
    ck_assert(two.kernels == 2 && two.functions == one.functions && two.damaged == 0);
    ck_assert(!is_old(one.function));                            /* it was used */
    ck_assert_uint_eq(compile_in_child(other_folder, 96, 0), 0); /* with functions that are compiled there */
    ck_assert_uint_eq(compile_in_child(other_folder, 64, 0), 0);
    snprintf(command, sizeof command, "diff -r '%s' '%s'", folder, other_folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

static void cut(const char *path)
{
    ck_assert_int_eq(truncate(path, 60), 0);
}
static void empty(const char *path)
{
    ck_assert_int_eq(truncate(path, 0), 0);
}
static void remove_it(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}
static void share(const char *path)
{
    ck_assert_int_eq(chmod(path, 0666), 0);
}

static void change(const char *path)
{
    struct stat info;
    uint8_t byte = 0;
    const int file = open(path, O_RDWR);

    ck_assert_int_eq(fstat(file, &info), 0);
    ck_assert_int_eq(pread(file, &byte, 1, info.st_size - 9), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(file, &byte, 1, info.st_size - 9), 1);
    close(file);
}

/* A kernel's file under the name of the function's. */
static void replace(const char *path)
{
    char command[1200];

    snprintf(command, sizeof command, "cp \"$(grep -l opjitkc %s/*.opjit | head -n 1)\" %s", folder, path);
    ck_assert_int_eq(system(command), 0);
}

static const struct {
    void (*spoil)(const char *path);
    uint32_t warnings;
} spoils[] = { { cut, 1 }, { empty, 1 }, { remove_it, 0 }, { share, 1 }, { change, 1 }, { replace, 1 } };

/* What is damaged or foreign is compiled again, and stored again. */
START_TEST(what_is_damaged_is_made_again)
{
    char command[256];

    if (!have_functions())
        return;
    compile_in_child(folder, 64, 0);
    const files before = list(context);
    spoils[_i].spoil(before.function);
    ck_assert_uint_eq(compile_in_child(folder, 96, 0), spoils[_i].warnings);
    const files after = list(context);
    ck_assert(after.kernels == 2 && after.functions == before.functions && after.damaged == 0);
    compile_in_child(other_folder, 64, 0);
    compile_in_child(other_folder, 96, 0);
    snprintf(command, sizeof command, "diff -r '%s' '%s'", folder, other_folder);
    ck_assert_int_eq(system(command), 0);
}
END_TEST

/* Functions are dropped one by one or with all; without a cache nothing is written. */
START_TEST(dropping)
{
    uint32_t gone = 0;

    if (!have_functions())
        return;
    compile_in_child(folder, 64, OPJIT_COMPILE_NO_CACHE);
    compile_in_child(NULL, 64, 0);
    ck_assert_uint_eq(list(context).functions, 0);
    compile_in_child(folder, 64, 0);
    const files f = list(context);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_DISK, &f.key, NULL, NULL, NULL), OPJIT_OK);
    change(f.function);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_DISK, &f.key, NULL, NULL, NULL), OPJIT_CORRUPT);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, &f.key, &gone, NULL), OPJIT_OK);
    ck_assert_uint_eq(gone, 1);
    ck_assert_uint_eq(list(context).functions, f.functions - 1);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, &gone, NULL), OPJIT_OK);
    ck_assert_uint_eq(gone, f.kernels + f.functions - 1);
    ck_assert_uint_eq(list(context).kernels, 0);
}
END_TEST

/* Compiles while allocation number `at` fails.  0: there were not so many; 100: what must not be. */
static int compile_without_memory(int at)
{
    counting memory;
    const opjit_allocator a = counting_allocator(&memory, 0);
    opjit_context *const small = begin(folder, &a);

    memory.calls = 0;
    memory.fail_at = at;
    const opjit_status status = compile_exp(small, 96, 0);
    const bool failed = memory.calls >= at;
    memory.fail_at = 0;
    opjit_context_destroy(small);
    if (memory.live != 0 || warnings != 0 || (status != OPJIT_OK && status != OPJIT_OUT_OF_MEMORY))
        return 100;
    return failed ? 1 : 0;
}

/* Lack of memory loses nothing, and removes no good file. */
START_TEST(without_memory)
{
    int status = 1;

    if (!have_functions())
        return;
    compile_in_child(folder, 64, 0);
    const files before = list(context);
    for (int at = 1; status != 0; at++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(compile_without_memory(at));
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        const files f = list(context);
        ck_assert(f.functions == before.functions && f.damaged == 0);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("fe.functions");
    TCase *const tcase = tcase_create("functions");
    SRunner *const runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, functions_are_no_kernels);
    tcase_add_test(tcase, another_kernel_finds_them);
    tcase_add_loop_test(tcase, what_is_damaged_is_made_again, 0, (int)(sizeof spoils / sizeof *spoils));
    tcase_add_test(tcase, dropping);
    tcase_add_test(tcase, without_memory);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
