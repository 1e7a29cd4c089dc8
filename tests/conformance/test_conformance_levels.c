/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance_levels.c - the random suite for every CPU level, code level and vector width, and with caches so
 * small that ordinary shapes get the stores of large ones: always the same bits.  A level that this machine lacks is
 * compiled and not run, and the output says so. */
#include <check.h>
#include <stdlib.h>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "runtime/target/target.h"
#include "tests/support/checker.h"

static const struct {
    const char *text;
    uint64_t most_elements;
} targets[] = {
    { "cpu:x86-64-v1", 4096 },
    { "cpu:x86-64-v2", 4096 },
    { "cpu:x86-64-v3", 4096 },
    { "cpu:x86-64-v4", 4096 },
    { "cpu:x86-64-v3,vec=16", 4096 },
    { "cpu:x86-64-v4,vec=32", 4096 },
    { "cpu:x86-64-v1,l1=1024,l2=1024,l3=0", 1 << 15 },
    { "cpu:x86-64-v3,l1=1024,l2=1024,l3=0", 1 << 15 },
    { "cpu:x86-64-v4,l1=1024,l2=1024,l3=0", 1 << 15 },
    { NULL, 4096 },
};
#define TARGET_COUNT ((int)(sizeof targets / sizeof *targets))
#define CASES 50

static bool runs_here(const char *text)
{
    rt_target target;
    opjit_error error = { 0 };
    ck_assert_msg(opjit_rt_target_parse(text, &target, &error) == OPJIT_OK, "%s: %s", text != NULL ? text : "host",
                  error.message);
    if (opjit_rt_target_runs_here(&target, &error) == OPJIT_OK)
        return true;
    printf("skipped: running %s, because: %s\n", text, error.message);
    return false;
}

static void run_here(opjit_context *context, DML_OPERATOR_TYPE type, const char *target, uint64_t most_elements,
                     const char *title)
{
    const test_mode modes[] = {
        { .name = "quick", .target = target, .level = OPJIT_LEVEL_QUICK },
        { .name = "peak", .target = target, .level = OPJIT_LEVEL_PEAK },
        { .name = "optimized",
          .target = target,
          .level = OPJIT_LEVEL_QUICK,
          .optimize = true,
          .flags = OPJIT_COMPILE_NO_CACHE },
        { .name = "peak, late, pieces", .target = target, .level = OPJIT_LEVEL_PEAK, .late = 7, .how = TEST_PIECES },
    };
    const test_suite suite = {
        .name = title,
        .context = context,
        .type = type,
        .cases = CASES,
        .most_elements = most_elements,
        .modes = modes,
        .mode_count = sizeof modes / sizeof *modes,
    };
    test_suite_run(&suite);
}

/* A compile up to the code, for machines for which opjit_compile_operator refuses because this one can't run it. */
static opjit_status make_code(opjit_context *context, const test_case *c, const char *target, opjit_level level,
                              opjit_error *error)
{
    opjit_compile_options given = OPJIT_COMPILE_OPTIONS_INIT;
    const opjit_allocator *allocator = &context->core->allocator;
    const ir_func *variants[FE_VARIANTS_MAX];
    codegen_result code = { 0 };
    opjit_operator *op = NULL;
    fe_program program;
    fe_options options;
    fe_graph graph = { 0 };
    given.target = target;
    given.level = level;
    opjit_status status = opjit_operator_create(context, &c->op, &op, error);
    if (status == OPJIT_OK)
        status = opjit_fe_options_read(context, op, &given, &options, error);
    opjit_rt_arena_init(&graph.arena, allocator);
    if (status == OPJIT_OK)
        status = opjit_fe_graph_of(op, &options, &graph, error);
    if (status == OPJIT_OK)
        status = opjit_fe_program_make(&graph, &options, "test", allocator, NULL, NULL, &program, error);
    if (status == OPJIT_OK) {
        const codegen_request request = { .variants = variants,
                                          .variant_count = program.count,
                                          .target = options.target,
                                          .level = options.level,
                                          .emit = CODEGEN_CODE,
                                          .name = "test",
                                          .allocator = allocator,
                                          .verify = true };
        for (uint32_t i = 0; i < program.count; i++)
            variants[i] = &program.variants[i];
        opjit_rt_bytes_init(&code.bytes, allocator);
        status = opjit_codegen_query(CODEGEN_ABI)->compile(&request, &code, error);
        if (status == OPJIT_OK)
            ck_assert_uint_gt(code.bytes.size, 0);
        opjit_rt_bytes_free(&code.bytes);
        opjit_rt_release(allocator, code.entries, code.entry_count * sizeof *code.entries);
        opjit_fe_program_free(&program);
    }
    opjit_fe_graph_free(&graph);
    opjit_operator_release(op);
    return status;
}

static void compile_for(opjit_context *context, DML_OPERATOR_TYPE type, const char *target, uint64_t most_elements,
                        const char *title)
{
    const test_cases cases = test_cases_init(title, CASES);
    for (uint64_t n = cases.first; n < cases.end; n++) {
        opjit_error error = { 0 };
        test_random r;
        test_case c;
        test_random_init(&r, cases.seed, (uint64_t)type, n);
        test_case_random(&r, type, most_elements, &c);
        for (int level = OPJIT_LEVEL_QUICK; level <= OPJIT_LEVEL_PEAK; level++) {
            const opjit_status status = make_code(context, &c, target, (opjit_level)level, &error);
            if (status != OPJIT_OK)
                test_case_print(stderr, &c);
            ck_assert_msg(status == OPJIT_OK, "%s, case %d, level %d: %s: %s", title, (int)n, level,
                          opjit_status_name(status), error.message);
        }
    }
}

/* Loop index: target * operators + operator. */
START_TEST(every_target_gives_the_same_bits)
{
    const char *target = targets[_i / TEST_OPERATOR_COUNT].text;
    const uint64_t most_elements = targets[_i / TEST_OPERATOR_COUNT].most_elements;
    const DML_OPERATOR_TYPE type = test_operators[_i % TEST_OPERATOR_COUNT];
    opjit_context *context = test_context_create();
    char title[128];
    snprintf(title, sizeof title, "%s for %s", test_operator_name(type), target != NULL ? target : "this machine");
    if (!runs_here(target))
        compile_for(context, type, target, most_elements, title);
    else if (test_have_codegen(context))
        run_here(context, type, target, most_elements, title);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance.levels");
    TCase *cases = tcase_create("targets and levels");
    tcase_add_loop_test(cases, every_target_gives_the_same_bits, 0, TARGET_COUNT * TEST_OPERATOR_COUNT);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
