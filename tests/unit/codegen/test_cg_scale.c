/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_scale.c - many stages, or many operators in one stage: the hook's memory grows linearly, and every stage is
 * found in the code. */
#define _GNU_SOURCE
#include "cg_harness.h"
#include "tests/support/meter.h"

enum { FEW = 100, MANY = 800, COLUMNS = 40, MOST_OF_A_STAGE = 32 * 1024 };

/* --- functions ---------------------------------------------------------------------------------------------------- */

/* Stage i adds i to input i, whose layout is the output's in every second stage, and divides by the sum of its row if
 * `sums`.  in_place: the stage that works in place, counted from 1; 0: none. */
static void build(ir_func *f, uint32_t stages, bool sums, uint32_t in_place)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "scale", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    for (uint32_t i = 0; i < stages; i++)
        harness_tensor(f, IR_IN, IR_F32, 3, COLUMNS, i, NULL);
    for (uint32_t i = 0; i < stages; i++)
        harness_tensor(f, IR_OUT, IR_F32, 3, COLUMNS + i % 2, stages + i, NULL);
    if (in_place != 0)
        f->tensors[stages + in_place].alias = in_place;
    ir_ref top = 0;
    for (uint32_t i = 0; i < stages; i++) {
        const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, 3), 1), p = ir_at(f, stage)->ref;
        const ir_ref acc = opjit_ir_acc(f, IR_F32, IR_SUM, 32);
        ir_ref tail = 0, inner = 0, sum_tail = 0;
        opjit_ir_append(f, 0, &top, stage);
        if (sums) {
            const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, COLUMNS), 1);
            const ir_ref x = opjit_ir_load(f, 1 + i, (ir_ref[]){ p, ir_at(f, loop)->ref });
            opjit_ir_append(f, stage, &tail, acc);
            opjit_ir_append(f, stage, &tail, loop);
            opjit_ir_append(f, loop, &sum_tail, opjit_ir_upd(f, acc, x, 0));
            f->nodes[loop].vec = 8;
        }
        const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, COLUMNS + i % 2), 1);
        const ir_ref j = ir_at(f, loop)->ref;
        const ir_ref last = opjit_ir_index(f, COLUMNS - 1);
        const ir_ref at = ir_expr2(f, IR_IMIN, IR_NONE, j, last);
        const ir_ref x = opjit_ir_load(f, 1 + i, (ir_ref[]){ p, i % 2 ? at : j });
        const float number = (float)i;
        uint32_t bits;
        memcpy(&bits, &number, sizeof bits);
        ir_ref v = ir_expr2(f, IR_ADD, IR_NONE, x, opjit_ir_const(f, IR_F32, bits));
        if (sums)
            v = ir_expr2(f, IR_DIV, IR_NONE, v, opjit_ir_get(f, acc));
        opjit_ir_append(f, stage, &tail, loop);
        opjit_ir_append(f, loop, &inner, opjit_ir_store(f, 1 + stages + i, v, (ir_ref[]){ p, j }));
        f->nodes[loop].vec = 8;
    }
    harness_verify(f);
}

/* One stage: x + 1 + 2 + ..., each sum in a let. */
static void build_long(ir_func *f, uint32_t operators)
{
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "scale", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t in = harness_tensor(f, IR_IN, IR_F32, 0, COLUMNS, 0, NULL);
    const uint32_t out = harness_tensor(f, IR_OUT, IR_F32, 0, COLUMNS, 1, NULL);
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, 1), 1);
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, COLUMNS), 1), j = ir_at(f, loop)->ref;
    ir_ref top = 0, tail = 0, inner = 0, v = opjit_ir_load(f, in, &j);
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, loop);
    for (uint32_t i = 0; i < operators; i++) {
        const ir_ref let = opjit_ir_let(f, ir_expr2(f, IR_ADD, IR_NONE, v, opjit_ir_const(f, IR_F32, 0x3f800000 + i)));
        opjit_ir_append(f, loop, &inner, let);
        v = opjit_ir_get(f, let);
    }
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, v, &j));
    f->nodes[loop].vec = 8;
    harness_verify(f);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

/* Compiles variants and measures the hook's peak. */
static codegen_result compile(const ir_func *const *variants, uint32_t count, uint32_t level,
                              const opjit_allocator *allocator)
{
    rt_target target;
    opjit_error error;
    codegen_result out;
    ck_assert(opjit_rt_target_parse("cpu:x86-64-v3", &target, NULL) == OPJIT_OK);
    const codegen_request request = { .variants = variants,
                                      .variant_count = count,
                                      .target = &target,
                                      .level = level,
                                      .emit = CODEGEN_CODE,
                                      .name = variants[0]->name,
                                      .allocator = allocator };
    const opjit_status status = opjit_codegen_query(CODEGEN_ABI)->compile(&request, &out, &error);
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    return out;
}

static size_t peak_of(const ir_func *f)
{
    test_meter m;
    test_meter_begin(&m);
    codegen_result out = compile(&f, 1, OPJIT_LEVEL_QUICK, &m.allocator);
    for (uint32_t i = 1; i < out.entry_count; i++)
        ck_assert_uint_gt(out.entries[i], out.entries[i - 1]);
    opjit_rt_release(&m.allocator, out.entries, out.entry_count * sizeof(uint64_t));
    opjit_rt_bytes_free(&out.bytes);
    ck_assert_uint_eq(m.live, 0);
    return m.peak;
}

static void check_peaks(const size_t *peaks)
{
    ck_assert_msg(peaks[1] / MANY <= MOST_OF_A_STAGE, "%zu bytes each", peaks[1] / MANY);
    ck_assert_msg(peaks[1] / MANY * 10 <= peaks[0] / FEW * 13, "%zu bytes each of %d, %zu of %d", peaks[1] / MANY, MANY,
                  peaks[0] / FEW, FEW);
}

START_TEST(stages)
{
    size_t peaks[2];
    for (uint32_t i = 0; i < 2; i++) {
        ir_func f;
        build(&f, i == 0 ? FEW : MANY, _i == 1, 0);
        peaks[i] = peak_of(&f);
        opjit_ir_free(&f);
    }
    check_peaks(peaks);
}
END_TEST

START_TEST(operators)
{
    size_t peaks[2];
    for (uint32_t i = 0; i < 2; i++) {
        ir_func f;
        build_long(&f, i == 0 ? FEW : MANY);
        peaks[i] = peak_of(&f);
        opjit_ir_free(&f);
    }
    check_peaks(peaks);
}
END_TEST

/* Variants differ in the one stage that works in place; the other stages appear once. */
START_TEST(variants)
{
    enum { STAGES = 20, IN_PLACE = 6 };
    ir_func f[2];
    const ir_func *const both[2] = { &f[0], &f[1] };
    build(&f[0], STAGES, false, 1 + IN_PLACE);
    build(&f[1], STAGES, false, 0);
    codegen_result out = compile(both, 2, OPJIT_LEVEL_QUICK, &opjit_rt_default_allocator);
    ck_assert_uint_eq(out.entry_count, 2 * STAGES);
    for (uint32_t i = 0; i < STAGES; i++)
        ck_assert_int_eq(out.entries[i] == out.entries[STAGES + i], i != IN_PLACE);
    for (uint32_t i = 1; i < STAGES; i++)
        ck_assert_uint_gt(out.entries[i], out.entries[i - 1]);
    harness_free_result(&out);
    opjit_ir_free(&f[0]);
    opjit_ir_free(&f[1]);
}
END_TEST

/* A stage that would take LLVM too long at peak is compiled at quick. */
START_TEST(too_large_for_peak)
{
    ir_func f;
    const ir_func *one = &f;
    build_long(&f, 6000);
    codegen_result quick = compile(&one, 1, OPJIT_LEVEL_QUICK, &opjit_rt_default_allocator);
    codegen_result peak = compile(&one, 1, OPJIT_LEVEL_PEAK, &opjit_rt_default_allocator);
    ck_assert_uint_eq(quick.bytes.size, peak.bytes.size);
    ck_assert_mem_eq(quick.bytes.data, peak.bytes.data, quick.bytes.size);
    harness_free_result(&quick);
    harness_free_result(&peak);
    opjit_ir_free(&f);
}
END_TEST

/* The same bits as the interpreter, with offsets that differ from stage to stage. */
START_TEST(results)
{
    enum { STAGES = 3 };
    ir_func f;
    test_random r;
    build(&f, STAGES, true, 0);
    test_random_init(&r, 17, 0, 0);
    harness_kernel k = harness_compile(&f, "cpu:x86-64-v3", OPJIT_LEVEL_QUICK);
    const harness_run run = { .begin = 0, .end = 3, .any_nan = true, .at_end = true, .what = "scale" };
    harness_check(&f, &k, &run, &r);
    harness_unload(&k);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.scale");
    TCase *tcase = tcase_create("scale");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, stages, 0, 2);
    tcase_add_test(tcase, operators);
    tcase_add_test(tcase, variants);
    tcase_add_test(tcase, too_large_for_peak);
    tcase_add_test(tcase, results);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
