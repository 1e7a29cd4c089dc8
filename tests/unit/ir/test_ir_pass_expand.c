/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_pass_expand.c - pass expand: the interpreter computes the same bits before and after it, for every math op
 * and type, also where a select keeps a load in bounds and where the argument is a constant. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/support/math.h"
#include "tests/support/random.h"

enum { COLUMNS = 64, BEYOND = 8 };

/* out[j] = j < 64 ? 1 + op(in[j], in[63 - j]) : op(in[0], constant), which pass split would cut, and schedule
 * choose. */
static const char text[] =
    "kernel @sample after schedule {\n"
    "    in %%0: %s[64]\n"
    "    out %%1: %s[72]\n"
    "    stage @0 for %%2 in 0..72 {\n"
    "        store %%1[%%2], select(lt(%%2, 64), add(%s 0x1p+0, %s(load %%0[%%2]%s)), %s(load %%0[0]%s))\n"
    "    }\n"
    "}\n";

static void interpret(const ir_func *f, const uint64_t *in, uint64_t *out)
{
    uint64_t source[COLUMNS]; /* the interpreter takes what is not const */
    opjit_error error;
    memcpy(source, in, sizeof(source));
    const ir_run run = { .buffers = (void *[]){ source, out }, .begin = 0, .end = COLUMNS + BEYOND };
    ck_assert_msg(opjit_ir_interpret(f, &run, &error) == OPJIT_OK, "%s", error.message);
}

static bool has_math(const ir_func *f)
{
    rt_bytes printed;
    opjit_rt_bytes_init(&printed, &opjit_rt_default_allocator);
    opjit_ir_print(f, &printed);
    opjit_rt_bytes_zero_end(&printed);
    bool found = false;
    for (uint32_t i = 0; i < TEST_MATH_COUNT; i++) {
        char call[16];
        snprintf(call, sizeof(call), "%s(", opjit_ir_op_infos[test_math_functions[i].op].name);
        found = found || strstr((const char *)printed.data, call) != NULL;
    }
    opjit_rt_bytes_free(&printed);
    return found;
}

static void check_type(ir_op op, ir_type type, test_random *r)
{
    char kernel[512], more[64] = "", constant[64] = "";
    uint64_t in[COLUMNS], before[COLUMNS + BEYOND] = { 0 }, after[COLUMNS + BEYOND] = { 0 };
    const char *t = opjit_ir_type_name(type), *name = opjit_ir_op_infos[op].name;
    const ir_pass_env env = { .verify = true };
    opjit_error error;
    ir_func f;
    if (opjit_ir_op_infos[op].operands[1] != '\0') {
        snprintf(more, sizeof(more), ", load %%0[isub(63, %%2)]");
        snprintf(constant, sizeof(constant), ", %s 0x1.8p+1", t);
    }
    snprintf(kernel, sizeof(kernel), text, t, t, t, name, more, name, constant);
    for (uint32_t i = 0; i < COLUMNS; i++)
        in[i] = test_random_u64(r);
    ck_assert_msg(opjit_ir_parse(kernel, strlen(kernel), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    interpret(&f, in, before);
    ck_assert(has_math(&f));
    ck_assert_msg(opjit_ir_run_passes(&f, &env, IR_EXPANDED, &error) == OPJIT_OK, "%s", error.message);
    ck_assert(!has_math(&f));
    interpret(&f, in, after);
    ck_assert_msg(memcmp(before, after, sizeof(before)) == 0, "%s of %s", name, t);
    opjit_ir_free(&f);
}

START_TEST(same_bits)
{
    test_random r;
    const ir_op op = test_math_functions[_i].op;
    test_random_init(&r, 1, (uint64_t)op, 0);
    for (uint32_t i = 0; i < 20; i++)
        for (ir_type type = IR_F16; type <= IR_F64; type++)
            check_type(op, type, &r);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ir.pass_expand");
    TCase *t = tcase_create("expand");
    tcase_add_loop_test(t, same_bits, 0, TEST_MATH_COUNT);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
