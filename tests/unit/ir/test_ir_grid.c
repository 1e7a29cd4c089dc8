/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_grid.c - the simulated grid: kernels whose work is distributed correctly compute the same as in order, and
 * every incorrect distribution that is tried here is found and named.  And the numbers of launches. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static opjit_error error;

/* Runs stage 0 of the text, whose buffers are bytes enough for all cases here. */
static opjit_status run_text(const char *text, float *in, float *out)
{
    ir_func f;
    opjit_rt_error_clear(&error);
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_int_eq(opjit_ir_layout(&f, &error), OPJIT_OK);
    void *shared = malloc((size_t)f.shared_size + 1), *scratch = malloc((size_t)f.scratch_size + 1);
    const ir_run run = { .buffers = (void *[]){ in, out }, .shared = shared, .scratch = scratch,
                         .end = (uint64_t)ir_index_value(&f, ir_operand(&f, f.body, 1)) };
    const opjit_status status = opjit_ir_interpret(&f, &run, &error);
    opjit_ir_free(&f);
    free(shared);
    free(scratch);
    return status;
}

#define HEAD "kernel @k after grid { in %x: f32[4,64] out %y: f32[4,64] scratch %s: f32[64]\n"

START_TEST(right)
{
    static const char text[] =
        HEAD "stage @0 for %p in 0..4 team 32 { acc %a: f32 sum lanes 32 sync\n"
             "for %i in 0..64 distribute { store %s[%i], load %x[%p,%i] upd %a, load %x[%p,%i] } let %t = get %a sync\n"
             "for %j in 0..64 vec 4 distribute { store %y[%p,%j], add(load %s[isub(63, %j)], %t) } } }";
    float x[256], y[256] = { 0 };
    for (int i = 0; i < 256; i++)
        x[i] = (float)(i % 7);
    ck_assert_msg(run_text(text, x, y) == OPJIT_OK, "%s", error.message);
    for (int p = 0; p < 4; p++) {
        float sum = 0;
        for (int i = 0; i < 64; i++)
            sum += x[64 * p + i];
        for (int i = 0; i < 64; i++)
            ck_assert(y[64 * p + i] == x[64 * p + 63 - i] + sum);
    }
}
END_TEST

static const struct {
    const char *text, *part; /* of the message */
} wrong[] = {
    /* no sync before what another thread has stored is read */
    { HEAD "stage @0 for %p in 0..4 team 32 { sync for %i in 0..64 distribute { store %s[%i], load %x[%p,%i] }\n"
           "for %j in 0..64 vec 4 distribute { store %y[%p,%j], load %s[%j] } } }",
      "load: a race" },
    /* nor before it is stored again, by the team's next iteration */
    { HEAD "stage @0 for %p in 0..4 team 32 { for %i in 0..64 distribute { store %s[%i], load %x[%p,%i] } sync\n"
           "for %j in 0..64 vec 4 distribute { store %y[%p,%j], load %s[%j] } } }",
      "store: a race" },
    /* thread 0 stores, all read */
    { HEAD "stage @0 for %p in 0..4 team 32 { sync store %s[0], load %x[%p,0]\n"
           "for %j in 0..64 vec 4 distribute { store %y[%p,%j], load %s[0] } } }",
      "load: a race" },
    /* two iterations of a distributed loop store one element */
    { HEAD
      "stage @0 for %p in 0..4 team 32 { for %j in 0..64 distribute { store %y[%p,idiv(%j, 2)], load %x[%p,%j] } } }",
      "store: a race" },
    /* two teams store one element */
    { HEAD "stage @0 for %p in 0..4 team 32 { for %j in 0..64 distribute { store %y[0,%j], load %x[%p,%j] } } }",
      "store: a race" },
    { HEAD "stage @0 for %p in 0..4 team 1 { store %y[idiv(%p, 2),0], load %x[%p,0] } }", "store: a race" },
    /* a thread updates another one's lane */
    { HEAD "stage @0 for %p in 0..4 team 32 { acc %a: f32 sum lanes 32 for %i in 0..64 vec 4 distribute {\n"
           "upd %a, load %x[%p,%i] } let %t = get %a store %y[%p,0], %t } }",
      "a lane is updated by a thread" },
    { HEAD "stage @0 for %p in 0..4 team 32 { acc %a: f32 sum lanes 1 for %i in 0..64 distribute {\n"
           "upd %a, load %x[%p,%i] } let %t = get %a store %y[%p,0], %t } }",
      "a lane is updated by a thread" },
    /* one thread folds what all have */
    { HEAD "stage @0 for %p in 0..4 team 32 { acc %a: f32 sum lanes 32 for %i in 0..64 distribute {\n"
           "upd %a, load %x[%p,%i] } for %j in 0..64 distribute { store %y[%p,%j], get %a } } }",
      "one thread folds" },
    /* threads wait in a loop that they don't all run alike */
    { HEAD "stage @0 for %p in 0..4 team 32 { for %j in 0..64 distribute { store %y[%p,%j], load %x[%p,%j] sync } } }",
      "not all come to" },
    /* outside of the tensor */
    { HEAD "stage @0 for %p in 0..4 team 32 { for %j in 0..65 distribute { store %y[%p,%j], load %x[%p,%j] } } }",
      "coordinate 1 is 64, size 64" },
};

START_TEST(found)
{
    float x[512] = { 0 }, y[512];
    ck_assert_int_eq(run_text(wrong[_i].text, x, y), OPJIT_INTERNAL);
    ck_assert_msg(strstr(error.message, wrong[_i].part) != NULL, "%s", error.message);
}
END_TEST

static const struct {
    const char *text;
    ir_launch launch;
} launches[] = {
    { "kernel @k after grid { out %y: f32[1000,8] stage @0 for %p in 0..1000 team 32 { for %j in 0..8 distribute {\n"
      "store %y[%p,%j], f32 0x0p+0 } } }",
      { 32, 256, 125, 0, 0, 0, 0 } },
    { "kernel @k after grid { out %y: f32[1000] stage @0 for %p in 0..1000 team 1 { store %y[%p], f32 0x0p+0 } }",
      { 1, 256, 4, 0, 0, 0, 0 } },
    /* 16 KiB of scratch a team: three teams a block */
    { "kernel @k after grid { out %y: f32[1000] scratch %s: f32[4096] stage @0 for %p in 0..1000 team 32 {\n"
      "sync for %j in 0..4096 distribute { store %s[%j], f32 0x0p+0 } sync store %y[%p], load %s[0] } }",
      { 32, 96, 334, 49152, 0, 16384, 0 } },
    /* more than a block has: in the workspace, of as many teams as may be there at a time */
    { "kernel @k after grid { out %y: f32[100000] scratch %s: f32[16384] stage @0 for %p in 0..100000 team 32 {\n"
      "sync for %j in 0..16384 distribute { store %s[%j], f32 0x0p+0 } sync store %y[%p], load %s[0] } }",
      { 32, 256, 1024, 0, UINT64_C(65536) * 8192, 65536, 0 } },
    /* a team that is a block, with and without as much scratch as OpenCL's devices have */
    { "kernel @k after grid { out %y: f32[1000] stage @0 for %p in 0..1000 team 32 alone { acc %a: f32 sum lanes 32\n"
      "for %j in 0..8 distribute { upd %a, f32 0x1p+0 } store %y[%p], get %a } }",
      { 32, 32, 1000, 0, 0, 0, 0 } },
    { "kernel @k after grid { out %y: f32[1000] scratch %s: f32[8192] stage @0 for %p in 0..1000 team 32 alone {\n"
      "sync for %j in 0..8192 distribute { store %s[%j], f32 0x0p+0 } sync store %y[%p], load %s[0] } }",
      { 32, 32, 1000, 0, UINT64_C(32768) * 1000, 32768, 0 } },
    /* rows of five blocks of 4096, for eight warps */
    { "kernel @k after grid { in %x: f32[8,20000] out %y: f32[8] stage @0 for %p in 0..8 team 256 {\n"
      "acc %a: f32 sum lanes 32 for %k in 0..20000 distribute { upd %a, load %x[%p,%k] } store %y[%p], get %a } }",
      { 256, 256, 8, 192, 0, 0, 192 } },
    /* more iterations than 2^31 */
    { "kernel @k after grid { out %y: u8[5000000000] stage @0 for %p in 0..5000000000 team 1 {\n"
      "store %y[%p], u8 0 } }",
      { 1, 256, 19531250, 0, 0, 0, 0 } },
};

START_TEST(launch)
{
    ir_func f;
    ir_launch l;
    const char *text = launches[_i].text;
    ck_assert_msg(opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, &f, &error) == OPJIT_OK, "%s",
                  error.message);
    ck_assert_msg(opjit_ir_verify(&f, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_ir_layout(&f, &error), OPJIT_OK);
    opjit_ir_launch_of(&f, f.body, &l);
    ck_assert_uint_eq(l.team, launches[_i].launch.team);
    ck_assert_uint_eq(l.block, launches[_i].launch.block);
    ck_assert_uint_eq(l.grid, launches[_i].launch.grid);
    ck_assert_uint_eq(l.shared, launches[_i].launch.shared);
    ck_assert_uint_eq(l.scratch, launches[_i].launch.scratch);
    ck_assert_uint_eq(l.team_scratch, launches[_i].launch.team_scratch);
    ck_assert_uint_eq(l.folds, launches[_i].launch.folds);
    ck_assert_uint_eq(opjit_ir_grid_workspace(&f), l.scratch);
    opjit_ir_free(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.grid");
    TCase *t = tcase_create("grid");
    tcase_add_test(t, right);
    tcase_add_loop_test(t, found, 0, (int)(sizeof wrong / sizeof *wrong));
    tcase_add_loop_test(t, launch, 0, (int)(sizeof launches / sizeof *launches));
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
