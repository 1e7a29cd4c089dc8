/* SPDX-License-Identifier: Apache-2.0 */
/* test_cg_cpus.c - LLVM knows the named CPUs of runtime/target: code is generated for each of them, and LLVM prints
 * nothing (it warns on standard error about an unknown name or feature). */
#define _GNU_SOURCE
#include "cg_harness.h"

#include <stdio.h>
#include <unistd.h>

#include "runtime/target/target_table.h"

/* out[p, j] = in[p, j] + in[p, j] */
static void build(ir_func *f)
{
    enum { ROWS = 3, COLUMNS = 70 };
    ir_ref top = 0, tail = 0, inner = 0;
    ck_assert(opjit_ir_init(f, &opjit_rt_default_allocator, "sample", NULL) == OPJIT_OK);
    f->phase = IR_SCHEDULED;
    const uint32_t in = harness_tensor(f, IR_IN, IR_F32, ROWS, COLUMNS, 0, "in");
    const uint32_t out = harness_tensor(f, IR_OUT, IR_F32, ROWS, COLUMNS, 1, "out");
    const ir_ref stage = opjit_ir_stage(f, opjit_ir_index(f, 0), opjit_ir_index(f, ROWS), 1);
    const ir_ref loop = opjit_ir_for(f, opjit_ir_index(f, 0), opjit_ir_index(f, COLUMNS), 1);
    const ir_ref at[] = { ir_at(f, stage)->ref, ir_at(f, loop)->ref };
    f->nodes[loop].vec = 4;
    opjit_ir_append(f, 0, &top, stage);
    opjit_ir_append(f, stage, &tail, loop);
    const ir_ref x = opjit_ir_load(f, in, at);
    opjit_ir_append(f, loop, &inner, opjit_ir_store(f, out, ir_expr2(f, IR_ADD, IR_NONE, x, x), at));
    harness_verify(f);
}

START_TEST(known_to_llvm)
{
    const rt_cpu_row *cpu;
    for (uint32_t i = 0; (cpu = opjit_rt_named_cpu(i)) != NULL; i++) {
        char target[64], said[256];
        ir_func f;
        FILE *file = tmpfile();
        ck_assert_ptr_nonnull(file);
        snprintf(target, sizeof target, "%s:%s", opjit_rt_target_family(cpu->arch), cpu->name);
        build(&f);
        fflush(stderr);
        const int before = dup(STDERR_FILENO);
        ck_assert(before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
        codegen_result r = harness_emit(&f, target, OPJIT_LEVEL_QUICK, CODEGEN_CODE);
        ck_assert(dup2(before, STDERR_FILENO) >= 0);
        close(before);
        ck_assert_uint_gt(r.bytes.size, 0);
        rewind(file);
        ck_assert_msg(fgets(said, sizeof said, file) == NULL, "%s: %s", target, said);
        fclose(file);
        harness_free_result(&r);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cg.cpus");
    TCase *tcase = tcase_create("named CPUs");
    tcase_add_test(tcase, known_to_llvm);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
