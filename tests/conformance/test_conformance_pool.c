/* SPDX-License-Identifier: Apache-2.0 */
/* test_conformance_pool.c - a kernel on opjit's pool writes the same bytes as on one thread, for any number of threads,
 * compiled and interpreted, gaps of the layout included.  Which bytes are right is tested elsewhere. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"

#define CASES 40
#define ELEMENTS (UINT64_C(1) << 17) /* of most types more than one piece */
#define POOLS 3

static const uint32_t threads[POOLS] = { 2, 3, 8 };

typedef struct bed {
    opjit_context *context;
    opjit_pool *pools[POOLS];
    uint32_t flags;
    uint64_t pieces; /* cases with work to share */
    uint64_t cases;  /* of all operators */
} bed;

/* Page-aligned, which is more than any descriptor here guarantees. */
static void *make_memory(uint64_t bytes)
{
    void *memory = aligned_alloc(4096, (size_t)((bytes + 4095) / 4096 * 4096));
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void count_pieces(bed *b, const opjit_kernel *kernel)
{
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    const opjit_step_info *step;
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    step = (const opjit_step_info *)((const char *)info.meta + info.meta->step_info);
    b->pieces += step->extent > step->grain;
}

static void check_case(bed *b, test_random *r, const test_case *c, const opjit_kernel *kernel, uint64_t number)
{
    const uint64_t bytes = c->in_place && c->input.bytes > c->output.bytes ? c->input.bytes : c->output.bytes;
    const uint64_t in_bytes = c->has_input ? c->input.bytes : 1;
    uint8_t *in = make_memory(in_bytes), *before = make_memory(bytes), *expected = make_memory(bytes);
    uint8_t *out = make_memory(bytes);
    opjit_binding bindings[2] = { { c->in_place ? expected : in, bytes }, { expected, bytes } };
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    test_random_fill(r, in, (size_t)in_bytes);
    test_random_fill(r, before, (size_t)bytes);
    memcpy(expected, before, (size_t)bytes);
    bindings[0].bytes = c->in_place ? bytes : in_bytes;
    call.bindings = c->has_input ? bindings : bindings + 1;
    call.binding_count = c->has_input ? 2 : 1;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (int i = 0; i < POOLS; i++) {
        memcpy(out, before, (size_t)bytes);
        bindings[0].data = c->in_place ? out : in;
        bindings[1].data = out;
        call.executor = opjit_pool_executor(b->pools[i]);
        ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
        if (memcmp(out, expected, (size_t)bytes) == 0)
            continue;
        test_case_print(stderr, c);
        ck_abort_msg("case %u differs on %u threads", (unsigned)number, threads[i]);
    }
    free(in);
    free(before);
    free(expected);
    free(out);
}

static void check_operator(bed *b, DML_OPERATOR_TYPE type)
{
    const test_cases cases = test_cases_init(test_operator_name(type), CASES);
    b->cases += cases.end - cases.first;
    for (uint64_t n = cases.first; n < cases.end; n++) {
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        opjit_operator *op = NULL;
        opjit_kernel *kernel = NULL;
        opjit_error error = { 0 };
        test_random r;
        test_case c;
        test_random_init(&r, cases.seed, (uint64_t)type, n);
        test_case_random(&r, type, ELEMENTS, &c);
        const opjit_status status = opjit_operator_create(b->context, &c.op, &op, &error);
        if (status == OPJIT_LIMIT && c.output.interleaved)
            continue;
        options.flags = b->flags;
        ck_assert_msg(status == OPJIT_OK &&
                          opjit_compile_operator(b->context, op, &options, &kernel, &error) == OPJIT_OK,
                      "case %u: %s", (unsigned)n, error.message);
        count_pieces(b, kernel);
        check_case(b, &r, &c, kernel, n);
        opjit_kernel_release(kernel);
        opjit_operator_release(op);
    }
}

static void check_all(uint32_t flags)
{
    bed b = { .context = test_context_create(), .flags = flags };
    if (flags == 0 && !test_have_codegen(b.context)) {
        opjit_context_destroy(b.context);
        return;
    }
    for (int i = 0; i < POOLS; i++)
        ck_assert_int_eq(opjit_pool_create(NULL, threads[i], &b.pools[i], NULL), OPJIT_OK);
    for (int i = 0; i < TEST_OPERATOR_COUNT; i++)
        check_operator(&b, test_operators[i]);
    if (getenv("OPJIT_CASE") == NULL)
        ck_assert_uint_gt(b.pieces, b.cases / 8);
    for (int i = 0; i < POOLS; i++)
        opjit_pool_destroy(b.pools[i]);
    opjit_context_destroy(b.context);
}

START_TEST(compiled_kernels)
{
    check_all(0);
}
END_TEST

START_TEST(interpreted_kernels)
{
    check_all(OPJIT_COMPILE_INTERPRET);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conformance.pool");
    TCase *cases = tcase_create("pool");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, compiled_kernels);
    tcase_add_test(cases, interpreted_kernels);
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failures = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
