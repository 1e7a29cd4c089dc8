/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_verify.c - the verifier on every file of golden/verify: a file with a line that ends in "; error: MESSAGE" is
 * refused with exactly this message; any other file is accepted.  Each file also prints, parses and prints again to the
 * same text. */
#define _POSIX_C_SOURCE 200809L

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

#ifndef TEST_DATA_DIR
#define TEST_DATA_DIR "tests"
#endif

enum { TEXT_MAX = 1 << 16, PATH_LENGTH = 1024 };

static const char *folder(void)
{
    static char path[PATH_LENGTH];
    const char *data = getenv("OPJIT_TEST_DATA");
    snprintf(path, sizeof(path), "%s/golden/verify", data ? data : TEST_DATA_DIR);
    return path;
}

static size_t read_text(const char *name, char *text)
{
    char path[2 * PATH_LENGTH];
    snprintf(path, sizeof(path), "%s/%s", folder(), name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s can't be opened", path);
    const size_t size = fread(text, 1, TEXT_MAX - 1, file);
    fclose(file);
    text[size] = '\0';
    return size;
}

static void check_round_trip(const ir_func *f, const char *name)
{
    opjit_error error = { 0 };
    rt_bytes first, second;
    ir_func again;
    opjit_rt_bytes_init(&first, &opjit_rt_default_allocator);
    opjit_rt_bytes_init(&second, &opjit_rt_default_allocator);
    opjit_ir_print(f, &first);
    ck_assert_msg(opjit_ir_parse((const char *)first.data, first.size, &opjit_rt_default_allocator, &again, &error) ==
                      OPJIT_OK,
                  "%s, printed: %s", name, error.message);
    opjit_ir_print(&again, &second);
    ck_assert_msg(first.size == second.size && memcmp(first.data, second.data, first.size) == 0, "%s changes", name);
    opjit_ir_free(&again);
    opjit_rt_bytes_free(&first);
    opjit_rt_bytes_free(&second);
}

static void check_file(const char *name)
{
    static char text[TEXT_MAX];
    const size_t size = read_text(name, text);
    opjit_error error = { 0 };
    char expected[OPJIT_ERROR_MESSAGE_SIZE] = "";
    ir_func f;
    const char *comment = strstr(text, "; error: ");
    if (comment != NULL)
        snprintf(expected, sizeof(expected), "%.*s", (int)strcspn(comment + 9, "\n"), comment + 9);
    ck_assert_msg(opjit_ir_parse(text, size, &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s: %s", name,
                  error.message);
    check_round_trip(&f, name);
    const opjit_status status = opjit_ir_verify(&f, &error);
    ck_assert_msg(strcmp(error.message, expected) == 0, "%s:\n  %s\nand should be\n  %s", name, error.message,
                  expected);
    const uint32_t rule = (uint32_t)atoi(name);
    const bool proof = (rule >= 6 && rule <= 8) || rule == 12 || rule == 15;
    ck_assert_msg(status == (!comment ? OPJIT_OK : proof ? OPJIT_LIMIT : OPJIT_INTERNAL), "%s: status %d", name,
                  (int)status);
    uint32_t unproven = 0;
    const opjit_status counted = opjit_ir_count_unproven(&f, &unproven, &error);
    ck_assert_msg(counted == (status == OPJIT_LIMIT ? OPJIT_OK : status), "%s, counted: status %d", name, (int)counted);
    ck_assert_msg((unproven > 0) == (status == OPJIT_LIMIT), "%s: %u not proven", name, unproven);
    if (comment != NULL) /* the rule in the name is the rule that is broken */
        ck_assert_msg(atoi(name) == atoi(expected + 1), "%s breaks %s", name, expected);
    opjit_ir_free(&f);
}

START_TEST(golden)
{
    DIR *files = opendir(folder());
    uint32_t count = 0, rules = 0;
    ck_assert_msg(files != NULL, "%s can't be opened", folder());
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
        const size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 3, ".ir") != 0)
            continue;
        check_file(entry->d_name);
        rules |= 1u << (atoi(entry->d_name) & 31);
        count++;
    }
    closedir(files);
    ck_assert_uint_gt(count, 40);
    ck_assert_msg((rules & 0xffffe) == 0xffffe, "a rule of V1 to V19 has no file: %x", rules);
}
END_TEST

static size_t allocated; /* bytes, in all */

static void *count_bytes(void *user, size_t size, size_t alignment)
{
    (void)user;
    allocated += size;
    return opjit_rt_allocate(&opjit_rt_default_allocator, size, alignment);
}

static void release(void *user, void *memory, size_t size)
{
    (void)user;
    opjit_rt_release(&opjit_rt_default_allocator, memory, size);
}

/* A row of joined tensors with limits that are the larger of two: what else these say is not worked out for each of
 * them, where that they are limits suffices. */
START_TEST(joined)
{
    enum { TENSORS = 16, BYTES_EACH = 6400 };
    const opjit_allocator counting = { NULL, count_bytes, release };
    static char text[TEXT_MAX];
    opjit_error error = { 0 };
    size_t used = 0;
    ir_func f;
    used += (size_t)snprintf(text + used, sizeof text - used, "kernel @joined after collapse {\n");
    for (int i = 0; i < TENSORS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "    in %%%d: f32[4]\n", i);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             "    out %%%d: f32[6,%d]\n    stage @0 for %%%d in 0..6 {\n"
                             "        let %%%d = clamp(iadd(%%%d, -2), 0, 3)\n        for %%%d in 0..%d {\n"
                             "            store %%%d[%%%d,%%%d], select(lt(%%%d, imax(1, %%%d)), f32 0x0p+0, ",
                             TENSORS, 4 * TENSORS, TENSORS + 1, TENSORS + 2, TENSORS + 1, TENSORS + 3, 4 * TENSORS,
                             TENSORS, TENSORS + 1, TENSORS + 3, TENSORS + 3, TENSORS + 2);
    for (int i = 0; i < TENSORS - 1; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "select(lt(%%%d, imax(%d, %%%d)), load %%%d[iadd(%%%d, %d)], ", TENSORS + 3, 4 * i + 4,
                                 TENSORS + 2, i, TENSORS + 3, -4 * i);
    used += (size_t)snprintf(text + used, sizeof text - used, "load %%%d[iadd(%%%d, %d)]", TENSORS - 1, TENSORS + 3,
                             -4 * (TENSORS - 1));
    for (int i = 0; i < TENSORS; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, ")");
    used += (size_t)snprintf(text + used, sizeof text - used, "\n        }\n    }\n}\n");
    ck_assert_uint_lt(used, sizeof text);
    ck_assert_msg(opjit_ir_parse(text, used, &counting, &f, &error) == OPJIT_OK, "%s\n%s", error.message,
                  text);
    const size_t before = allocated;
    ck_assert_msg(opjit_ir_verify(&f, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_lt(allocated - before, TENSORS * BYTES_EACH);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.verify");
    TCase *files = tcase_create("files");
    tcase_add_test(files, golden);
    tcase_add_test(files, joined);
    suite_add_tcase(suite, files);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
