/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_spirv.c - modules as LLVM writes them, some with blocks that share numbers with other values: each block gets
 * a number of its own wherever it is referred to, and ambiguous modules are to be made again. */
#include <check.h>
#include <string.h>

#include "codegen/object/spirv_blocks.h"
#include "tests/support/require.h"

#define OP(code, length) ((uint32_t)(length) << 16 | (code))
enum {
    NAME = 5,
    FUNCTION = 54,
    FUNCTION_END = 56,
    PHI = 245,
    LABEL = 248,
    BRANCH = 249,
    BRANCH_IF = 250,
    SWITCH = 251,
    RETURN = 253,
    BOUND = 9
};
#define HEADER 0x07230203, 0x00010200, 43, BOUND, 0
#define BEGIN OP(FUNCTION, 5), 1, 2, 0, 3

static opjit_error error;

static opjit_status renumber(const uint32_t *words, size_t count, rt_bytes *out)
{
    memset(&error, 0, sizeof error);
    opjit_rt_bytes_init(out, &opjit_rt_default_allocator);
    return opjit_cg_spirv(&opjit_rt_default_allocator, (const uint8_t *)words, count * sizeof *words, out, &error);
}

static const struct {
    uint32_t in[40], count, out[40], out_count;
} rows[] = {
    /* 5 is a block and, in the phi, a value; the blocks' numbers begin at the bound */
    { { HEADER,
        BEGIN,
        OP(LABEL, 2),
        5,
        OP(BRANCH, 2),
        6,
        OP(LABEL, 2),
        6,
        OP(PHI, 7),
        1,
        5,
        5,
        5,
        8,
        6,
        OP(BRANCH_IF, 4),
        5,
        6,
        5,
        OP(FUNCTION_END, 1) },
      28,
      { 0x07230203,
        0x00010200,
        43,
        11,
        0,
        BEGIN,
        OP(LABEL, 2),
        9,
        OP(BRANCH, 2),
        10,
        OP(LABEL, 2),
        10,
        OP(PHI, 7),
        1,
        5,
        5,
        9,
        8,
        10,
        OP(BRANCH_IF, 4),
        5,
        10,
        9,
        OP(FUNCTION_END, 1) },
      28 },
    /* one number in two functions, and one beyond the bound; names go */
    { { HEADER, OP(NAME, 3), 700, 0x61, BEGIN, OP(LABEL, 2), 700, OP(RETURN, 1), OP(FUNCTION_END, 1), BEGIN,
        OP(LABEL, 2), 700, OP(RETURN, 1), OP(FUNCTION_END, 1) },
      26,
      { 0x07230203, 0x00010200, 43, 11, 0, BEGIN, OP(LABEL, 2), 9, OP(RETURN, 1), OP(FUNCTION_END, 1), BEGIN,
        OP(LABEL, 2), 10, OP(RETURN, 1), OP(FUNCTION_END, 1) },
      23 },
};

START_TEST(blocks)
{
    rt_bytes out;
    ck_assert_msg(renumber(rows[_i].in, rows[_i].count, &out) == OPJIT_OK, "%s", error.message);
    ck_assert_uint_eq(out.size, rows[_i].out_count * sizeof(uint32_t));
    ck_assert_mem_eq(out.data, rows[_i].out, out.size);
    opjit_rt_bytes_free(&out);
}
END_TEST

static const struct {
    uint32_t words[24], count;
    opjit_status status;
    const char *part;
} refusals[] = {
    { { HEADER, BEGIN, OP(LABEL, 2), 5, OP(LABEL, 2), 5, OP(FUNCTION_END, 1) }, 15, OPJIT_UNAVAILABLE, "two blocks" },
    { { HEADER, BEGIN, OP(LABEL, 2), 5, OP(BRANCH, 2), 6, OP(FUNCTION_END, 1) },
      15,
      OPJIT_CODEGEN,
      "a branch to no block" },
    { { HEADER, BEGIN, OP(LABEL, 2), 5, OP(BRANCH, 2), 70000, OP(FUNCTION_END, 1) }, 15, OPJIT_CODEGEN, "no block" },
    { { HEADER, BEGIN, OP(LABEL, 2), 5, OP(BRANCH_IF, 2), 5, OP(FUNCTION_END, 1) }, 15, OPJIT_CODEGEN, "too short" },
    { { HEADER, BEGIN, OP(LABEL, 2), 5, OP(SWITCH, 3), 5, 5, OP(FUNCTION_END, 1) }, 16, OPJIT_CODEGEN, "a switch" },
    { { HEADER, BEGIN, OP(LABEL, 2), 0x400000, OP(FUNCTION_END, 1) }, 13, OPJIT_CODEGEN, "without a number" },
    { { HEADER, BEGIN, OP(LABEL, 1), OP(FUNCTION_END, 1) }, 12, OPJIT_CODEGEN, "without a number" },
    { { HEADER, BEGIN, OP(LABEL, 9), 5 }, 12, OPJIT_CODEGEN, "cut off" },
    { { HEADER, BEGIN, 0 }, 11, OPJIT_CODEGEN, "cut off" },
    { { 0x07230203, 0x00010200, 43, BOUND }, 4, OPJIT_CODEGEN, "header" },
    { { 0x03022307, 0x00010200, 43, BOUND, 0 }, 5, OPJIT_CODEGEN, "header" },
};

START_TEST(refused)
{
    rt_bytes out;
    ck_assert_int_eq(renumber(refusals[_i].words, refusals[_i].count, &out), refusals[_i].status);
    ck_assert_msg(strstr(error.message, refusals[_i].part) != NULL, "%s", error.message);
    test_require_place(&error);
    ck_assert_uint_eq(out.size, 0);
    opjit_rt_bytes_free(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.spirv");
    TCase *t = tcase_create("modules");
    tcase_add_loop_test(t, blocks, 0, (int)(sizeof rows / sizeof *rows));
    tcase_add_loop_test(t, refused, 0, (int)(sizeof refusals / sizeof *refusals));
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
