/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_cache_control.c - opjit/cache.h on compiled kernels: one key in both caches and in the kernel, files that are
 * checked and dropped. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opjit/cache.h>

static char folder[64];
static opjit_context *context;

static void setup(void)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    strcpy(folder, "/tmp/opjit-control-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    options.cache_dir = folder;
    ck_assert_int_eq(opjit_context_create(&options, &context, NULL), OPJIT_OK);
}

static void teardown(void)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    opjit_context_destroy(context);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(folder);
}

/* A 4 x 4 band, different for each value; NULL: there is no code generator. */
static opjit_kernel *compile(float value, uint32_t flags)
{
    static const uint32_t sizes[] = { 4, 4 };
    const DML_BUFFER_TENSOR_DESC buffer = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 2, sizes, NULL, 0, 0 };
    const DML_TENSOR_DESC tensor = { DML_TENSOR_TYPE_BUFFER, &buffer };
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC band = { .OutputTensor = &tensor,
                                                      .ValueDataType = DML_TENSOR_DATA_TYPE_FLOAT32,
                                                      .Value.Float32 = value,
                                                      .DiagonalFillEnd = 1 };
    const DML_OPERATOR_DESC desc = { DML_OPERATOR_DIAGONAL_MATRIX1, &band };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_operator *op;
    opjit_kernel *kernel = NULL;
    opjit_error error;
    opjit_status status;
    options.flags = flags;
    ck_assert_int_eq(opjit_operator_create(context, &desc, &op, NULL), OPJIT_OK);
    status = opjit_compile_operator(context, op, &options, &kernel, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, "%s", error.message);
    if (status != OPJIT_OK)
        printf("skipped: %s\n", error.message);
    opjit_operator_release(op);
    return kernel;
}

typedef struct seen {
    uint32_t memory, disk, damaged;
    opjit_cache_key memory_key, disk_key; /* of the last one */
    char name[96], reason[64];
} seen;

static bool see(void *user, const opjit_cache_entry *entry)
{
    seen *s = user;
    if (entry->where == OPJIT_CACHE_MEMORY) {
        s->memory++;
        s->memory_key = entry->key;
    } else {
        s->disk++;
        s->disk_key = entry->key;
        ck_assert(entry->used > 0 && entry->bytes > 0 && entry->kernel == NULL);
    }
    if (entry->damaged != NULL) {
        s->damaged++;
        snprintf(s->reason, sizeof s->reason, "%s", entry->damaged);
    } else {
        snprintf(s->name, sizeof s->name, "%s", entry->name);
        ck_assert_uint_eq(entry->level, OPJIT_LEVEL_QUICK);
    }
    return true;
}

static bool same(const opjit_cache_key *a, const opjit_cache_key *b)
{
    return a->hi == b->hi && a->lo == b->lo;
}

START_TEST(one_key_everywhere)
{
    opjit_kernel *kernel = compile(1, 0), *other;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_cache_stats stats = OPJIT_CACHE_STATS_INIT;
    opjit_cache_key key, second;
    char path[160], text[OPJIT_CACHE_KEY_TEXT_SIZE];
    uint32_t count;
    seen s = { 0 };
    if (kernel == NULL)
        return;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_cache_key(kernel, &key, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_enumerate(context, OPJIT_CACHE_MEMORY | OPJIT_CACHE_DISK, see, &s, NULL), OPJIT_OK);
    ck_assert(s.memory == 1 && s.disk == 1 && s.damaged == 0);
    ck_assert(same(&key, &s.memory_key) && same(&key, &s.disk_key));
    ck_assert_str_eq(s.name, info.name);
    opjit_cache_key_to_text(&key, text);
    snprintf(path, sizeof path, "%s/%s.opjit", folder, text);
    ck_assert_int_eq(access(path, F_OK), 0);

    other = compile(2, 0);
    ck_assert_int_eq(opjit_kernel_get_cache_key(other, &second, NULL), OPJIT_OK);
    ck_assert(!same(&key, &second));
    opjit_kernel_release(other);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY | OPJIT_CACHE_DISK, &key, NULL, NULL, NULL),
                     OPJIT_OK);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_MEMORY, &key, &count, NULL), OPJIT_OK);
    ck_assert_uint_eq(count, 1);
    opjit_kernel_release(kernel);
    kernel = compile(1, 0); /* from the file */
    ck_assert_int_eq(opjit_cache_get_stats(context, &stats, NULL), OPJIT_OK);
    ck_assert(stats.disk_hits == 1 && stats.compiles == 2);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, &key, &count, NULL), OPJIT_OK);
    ck_assert(count == 1 && access(path, F_OK) != 0);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_DISK, &key, NULL, NULL, NULL), OPJIT_NOT_FOUND);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, NULL, &count, NULL), OPJIT_OK);
    ck_assert_uint_eq(count, 1);
    opjit_kernel_release(kernel);
}
END_TEST

START_TEST(damaged_files)
{
    opjit_kernel *kernel = compile(1, 0);
    opjit_cache_key key;
    char path[160], text[OPJIT_CACHE_KEY_TEXT_SIZE];
    opjit_error error;
    uint32_t count;
    seen s = { 0 };
    FILE *file;
    if (kernel == NULL)
        return;
    ck_assert_int_eq(opjit_kernel_get_cache_key(kernel, &key, NULL), OPJIT_OK);
    opjit_cache_key_to_text(&key, text);
    snprintf(path, sizeof path, "%s/%s.opjit", folder, text);
    file = fopen(path, "r+b");
    ck_assert(file != NULL && fseek(file, 60, SEEK_SET) == 0 && fputc(0xff, file) == 0xff && fclose(file) == 0);
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_DISK, &key, see, &s, &error), OPJIT_CORRUPT);
    ck_assert_str_eq(error.message, "1 of 1 kernels are damaged");
    ck_assert_str_eq(s.reason, "its checksum is wrong");
    ck_assert_int_eq(opjit_cache_verify(context, OPJIT_CACHE_MEMORY, &key, NULL, NULL, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_cache_drop(context, OPJIT_CACHE_DISK, &key, &count, NULL), OPJIT_OK);
    ck_assert(count == 1 && access(path, F_OK) != 0);
    opjit_kernel_release(kernel);
}
END_TEST

/* The folder is writable by others, too. */
START_TEST(folder_that_is_not_used)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *other;
    opjit_error error;
    seen s = { 0 };
    options.cache_dir = "/proc";
    ck_assert_int_eq(opjit_context_create(&options, &other, NULL), OPJIT_OK);
    const opjit_status status = opjit_cache_enumerate(other, OPJIT_CACHE_DISK, see, &s, &error);
    ck_assert(status == OPJIT_IO || geteuid() == 0); /* root's is root's */
    opjit_context_destroy(other);
}
END_TEST

START_TEST(uncached_and_interpreted_kernels_have_keys)
{
    opjit_kernel *a = compile(1, OPJIT_COMPILE_INTERPRET),
                 *b = compile(1, OPJIT_COMPILE_INTERPRET | OPJIT_COMPILE_NO_CACHE);
    opjit_cache_key x, y;
    ck_assert_int_eq(opjit_kernel_get_cache_key(a, &x, NULL), OPJIT_OK);
    ck_assert_int_eq(opjit_kernel_get_cache_key(b, &y, NULL), OPJIT_OK);
    ck_assert(same(&x, &y));
    ck_assert_int_eq(opjit_cache_pin(context, &y, NULL), OPJIT_OK); /* the kernel that is in the cache */
    ck_assert_int_eq(opjit_cache_unpin(context, &y, NULL), OPJIT_OK);
    opjit_kernel_release(a);
    opjit_kernel_release(b);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.cache_control");
    TCase *tcase = tcase_create("control");
    SRunner *runner = srunner_create(suite);
    int failed;
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, one_key_everywhere);
    tcase_add_test(tcase, damaged_files);
    tcase_add_test(tcase, folder_that_is_not_used);
    tcase_add_test(tcase, uncached_and_interpreted_kernels_have_keys);
    suite_add_tcase(suite, tcase);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
