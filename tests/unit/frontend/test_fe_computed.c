/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_computed.c - the operators of support/computed.c: ranks and types by feature level against the documents'
 * table, and what each one is lowered to: golden/lower/<operator>.ir (OPJIT_UPDATE_GOLDEN=1 rewrites them).  What they
 * refuse is in cli/refusals/. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/computed.h"
#include "tests/support/descriptors.h"

static const uint32_t levels[] = { 0,      0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100,
                                   0x5000, 0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400 };

/* What is legal at another level is unsupported. */
static void check_status(opjit_context *context, const computed_row *row, uint32_t level, uint32_t rank,
                         DML_TENSOR_DATA_TYPE type, const computed_case *c)
{
    const bool want = computed_allows(row, level, rank, type), ever = computed_allows(row, 0, rank, type);
    opjit_error error = { 0 };
    opjit_operator *op = NULL;
    const opjit_status status = opjit_operator_create(context, &c->op, &op, &error);
    ck_assert_msg((status == OPJIT_OK) == want, "%s at level %x, rank %u, %s: %s", row->name, (unsigned)level,
                  (unsigned)rank, test_type_name(type), error.message);
    if (!want && ever)
        ck_assert_msg(status == OPJIT_UNSUPPORTED, "%s", error.message);
    opjit_operator_release(op);
}

/* The least rank at any level. */
static uint32_t least_rank(const computed_row *row)
{
    uint32_t least = row->support[0].rank_min;
    for (uint32_t i = 1; i < sizeof row->support / sizeof *row->support && row->support[i].types != NULL; i++)
        least = row->support[i].rank_min < least ? row->support[i].rank_min : least;
    return least;
}

START_TEST(feature_levels)
{
    opjit_context *context = test_context_at(levels[_i]);
    computed_case *c = malloc(sizeof *c);
    ck_assert_ptr_nonnull(c);
    for (uint32_t i = 0; i < computed_row_count; i++)
        for (uint32_t rank = least_rank(&computed_rows[i]); rank <= 8; rank++)
            for (uint32_t t = 0; t < TEST_TYPE_COUNT; t++) {
                computed_case_plain(&computed_rows[i], rank, test_types[t], c);
                check_status(context, &computed_rows[i], levels[_i], rank, test_types[t], c);
            }
    free(c);
    opjit_context_destroy(context);
}
END_TEST

/* In FLOAT32 and FLOAT16, or the next two types that there are, with four dimensions.  The first rows' goldens are
 * other descriptors: test_fe_cumulative.c, test_fe_mean_variance.c. */
START_TEST(lowered)
{
    static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16,
                                                  DML_TENSOR_DATA_TYPE_UINT32, DML_TENSOR_DATA_TYPE_UINT8,
                                                  DML_TENSOR_DATA_TYPE_INT8 };
    opjit_context *context = test_context_at(0);
    computed_case *c = malloc(sizeof *c);
    rt_bytes out;
    ck_assert_ptr_nonnull(c);
    opjit_rt_bytes_init(&out, &opjit_rt_default_allocator);
    for (uint32_t i = 0, count = 0; i < sizeof types / sizeof *types && count < 2; i++) {
        if (!computed_allows(&computed_rows[_i], 0, 4, types[i]))
            continue;
        computed_case_plain(&computed_rows[_i], 4, types[i], c);
        test_append_lowered(context, &c->op, &out);
        count++;
    }
    test_compare_lowered(computed_rows[_i].name, &out);
    opjit_rt_bytes_free(&out);
    free(c);
    opjit_context_destroy(context);
}
END_TEST

/* golden/lower/max_pooling_lines.ir: windows that are taken one dimension after the other; max_pooling_passes.ir: those
 * of 20 taps as 4 of 5 taps, which are made first. */
static const struct pooled {
    const char *name;
    uint32_t window[2], start[2], end[2], of[4], to[4];
} pools[] = {
    { "max_pooling_lines", { 3, 5 }, { 1, 2 }, { 0, 2 }, { 1, 2, 6, 7 }, { 1, 2, 5, 7 } },
    { "max_pooling_passes", { 1, 20 }, { 0, 0 }, { 0, 0 }, { 1, 2, 1, 80 }, { 1, 2, 1, 61 } },
};

START_TEST(lowered_by_dimension)
{
    static const uint32_t strides[] = { 1, 1 };
    const struct pooled *p = &pools[_i];
    opjit_context *context = test_context_at(0);
    test_tensor in, out;
    rt_bytes text;
    test_tensor_link(&in, DML_TENSOR_DATA_TYPE_FLOAT32, 4);
    test_tensor_link(&out, DML_TENSOR_DATA_TYPE_FLOAT32, 4);
    memcpy(in.sizes, p->of, sizeof p->of);
    memcpy(out.sizes, p->to, sizeof p->to);
    test_tensor_measure(&in);
    test_tensor_measure(&out);
    const DML_MAX_POOLING_OPERATOR_DESC desc = { &in.desc, &out.desc, 2, strides, p->window, p->start, p->end };
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    test_append_lowered(context, &(DML_OPERATOR_DESC){ DML_OPERATOR_MAX_POOLING, &desc }, &text);
    test_compare_lowered(p->name, &text);
    opjit_rt_bytes_free(&text);
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    enum { OTHER_GOLDENS = 4 };
    Suite *suite = suite_create("fe.computed");
    TCase *tcase = tcase_create("computed");
    tcase_add_loop_test(tcase, feature_levels, 0, sizeof levels / sizeof *levels);
    tcase_add_loop_test(tcase, lowered, OTHER_GOLDENS, (int)computed_row_count);
    tcase_add_loop_test(tcase, lowered_by_dimension, 0, sizeof pools / sizeof *pools);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
