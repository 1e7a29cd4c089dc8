/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c - the loop over random cases, for tests written with Check. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/checker.h"

/* With more refusals per hundred cases the property would say little. */
#define MOST_REFUSED_PERCENT 10u

typedef struct progress {
    const test_suite *suite;
    test_cases cases;
    uint64_t checked, refused;
} progress;

static void check_in_mode(progress *p, test_random *r, test_case *c, const test_mode *mode, uint64_t number)
{
    char message[512] = "";
    const test_outcome result = test_check(p->suite->context, r, c, mode, message, sizeof message);
    p->checked++;
    if (result == TEST_REFUSED)
        p->refused++;
    if (result != TEST_FAILED)
        return;
    fprintf(stderr, "%s, case %" PRIu64 ", mode %s, late scalars 0x%x: %s\n", p->suite->name, number, mode->name,
            mode->late, message);
    test_case_print(stderr, c);
    ck_abort_msg("%s: OPJIT_SEED=0x%" PRIx64 " OPJIT_CASE=%" PRIu64 ", mode %s: %s", p->suite->name, p->cases.seed,
                 number, mode->name, message);
}

void test_suite_run(const test_suite *suite)
{
    progress p = { .suite = suite, .cases = test_cases_init(suite->name, suite->cases) };
    for (uint64_t n = p.cases.first; n < p.cases.end; n++) {
        test_random r;
        test_case c;
        test_random_init(&r, p.cases.seed, (uint64_t)suite->type, n);
        test_case_random(&r, suite->type, suite->most_elements, &c);
        const uint32_t only = (uint32_t)test_random_below(&r, suite->mode_count);
        for (uint32_t m = 0; m < suite->mode_count; m++) {
            if (!suite->one_mode_each || m == only)
                check_in_mode(&p, &r, &c, &suite->modes[m], n);
        }
    }
    printf("%s: %" PRIu64 " checks, %" PRIu64 " refused\n", suite->name, p.checked, p.refused);
    fflush(stdout);
    if (p.cases.end - p.cases.first > 1)
        ck_assert_uint_le(p.refused * 100, p.checked * MOST_REFUSED_PERCENT);
}

opjit_context *test_context_create(void)
{
    opjit_context *context = NULL;
    opjit_error error = { 0 };
    const opjit_status status = opjit_context_create(NULL, &context, &error);
    ck_assert_msg(status == OPJIT_OK, "context: %s", error.message);
    return context;
}

bool test_have_codegen(opjit_context *context)
{
    opjit_error error = { 0 };
    const opjit_status status = opjit_context_warm(context, &error);
    if (status == OPJIT_UNAVAILABLE)
        printf("skipped: compiled code, because: %s\n", error.message);
    else
        ck_assert_msg(status == OPJIT_OK, "warm: %s", error.message);
    return status == OPJIT_OK;
}
