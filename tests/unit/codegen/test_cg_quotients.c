/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_quotients.c - quotients and rests by sizes, which a kernel for many sizes computes by a multiplication: sizes
 * from 1 on, numbers at both sides of multiples, intervals up to and beyond those that 64 bits have room for. */
#define _GNU_SOURCE
#include "tests/unit/codegen/cg_loops.h"

enum { NUMBERS = 64, TRIES = 40 };

/* Number i is q * n + r, from parameters: multiples of n, and what is beside them. */
static void build(ir_func *f, uint32_t size_bits, uint32_t number_bits)
{
    const int64_t most = (int64_t)1 << size_bits, multiples = (int64_t)1 << (number_bits - size_bits);
    ir_ref top = 0, tail = 0;
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "quotients", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t q = harness_tensor(f, IR_OUT, IR_I64, 0, NUMBERS, 1, "q"),
                   r = harness_tensor(f, IR_OUT, IR_I64, 0, NUMBERS, 1, "r");
    f->first_dim = opjit_ir_param_add(f, IR_INDEX, 1, most, "n");
    const ir_ref n = opjit_ir_param(f, f->first_dim);
    const ir_ref from = opjit_ir_param(f, opjit_ir_param_add(f, IR_INDEX, 0, multiples - NUMBERS, "from"));
    const ir_ref stage = opjit_ir_stage(f, c(f, 0), c(f, NUMBERS), 1), i = ir_at(f, stage)->ref;
    ir_ref x = e2(f, IR_ISCALE, e2(f, IR_IADD, i, from), n);
    x = e2(f, IR_IADD, e2(f, IR_IADD, x, e2(f, IR_IMOD, i, c(f, 3))), c(f, -1)); /* one less, that, one more */
    x = e2(f, IR_IMAX, x, c(f, 0));
    opjit_ir_append(f, 0, &top, stage);
    const ir_ref at[] = { e1(f, IR_ELEM, IR_I64, e2(f, IR_IQUOT, x, n)), e1(f, IR_ELEM, IR_I64, e2(f, IR_IREST, x, n)) };
    opjit_ir_append(f, stage, &tail, opjit_ir_store(f, q, at[0], &i));
    opjit_ir_append(f, stage, &tail, opjit_ir_store(f, r, at[1], &i));
}

START_TEST(by_sizes)
{
    static const struct {
        uint32_t size, number; /* bits */
    } bits[] = { { 1, 8 }, { 5, 12 }, { 11, 20 }, { 13, 25 }, { 15, 24 }, { 20, 30 }, { 30, 50 } };
    test_random random;
    test_random_init(&random, 1, 0, (uint64_t)_i);
    for (uint32_t target = 0; target < TARGETS; target++) {
        ir_func f;
        build(&f, bits[_i].size, bits[_i].number);
        harness_kernel k = harness_compile(&f, targets[target], OPJIT_LEVEL_QUICK + target % 2);
        const uint64_t most = (uint64_t)1 << bits[_i].size, multiples = (uint64_t)1 << (bits[_i].number - bits[_i].size);
        for (uint32_t i = 0; i < TRIES && test_can_run(targets[target], false); i++) {
            const uint64_t n = i % 4 == 0   ? most - i / 4 % most
                               : i % 4 == 1 ? 1 + i / 4 % most
                                            : 1 + test_random_below(&random, most);
            const uint64_t from = i % 2 ? multiples - NUMBERS : test_random_below(&random, multiples - NUMBERS + 1);
            const harness_run run = { .params = { n, from }, .end = NUMBERS, .at_end = true, .what = targets[target] };
            harness_check(&f, &k, &run, &random);
        }
        harness_unload(&k);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.quotients");
    TCase *tcase = tcase_create("quotients");
    tcase_set_timeout(tcase, 300);
    tcase_add_loop_test(tcase, by_sizes, 0, 7);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
