/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_masks.c - rows masked by a band and then reduced or made a softmax, as one graph: through the passes
 * and as code, bit for bit what the nodes' formulas give as lowered.  Bands and row lengths are arbitrary: loops end
 * where the mask cuts, in the middle of vectors, before the first element or after the last one.  To run one case of a
 * failure again: OPJIT_SEED=<seed> OPJIT_CASE=<number> ./property_masks. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/checker.h"
#include "tests/support/executors.h"
#include "tests/support/graph_case.h"

enum { CASES = 120, MOST_ROWS = 24, MOST_COLUMNS = 150, GUARD = 64, POISON = 0xa5 };

static const DML_TENSOR_DATA_TYPE types[] = { DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT32,
                                              DML_TENSOR_DATA_TYPE_FLOAT64, DML_TENSOR_DATA_TYPE_FLOAT16 };
static const DML_REDUCE_FUNCTION functions[] = { DML_REDUCE_FUNCTION_SUM, DML_REDUCE_FUNCTION_MAX,
                                                 DML_REDUCE_FUNCTION_MIN, DML_REDUCE_FUNCTION_ARGMAX };

static const test_mode modes[] = {
    { .name = "interpreted", .flags = OPJIT_COMPILE_INTERPRET },
    { .name = "quick", .level = OPJIT_LEVEL_QUICK },
    { .name = "peak", .level = OPJIT_LEVEL_PEAK },
    { .name = "x86-64-v1", .level = OPJIT_LEVEL_QUICK, .target = "cpu:x86-64-v1" },
    { .name = "past caches", .level = OPJIT_LEVEL_QUICK, .target = "cpu:x86-64-v3,l1=1024,l2=2048,l3=4096" },
};

typedef struct trial {
    DML_TENSOR_DATA_TYPE type, out_type;
    uint32_t sizes[3], out_sizes[3], size, out_size; /* bytes of an element */
    size_t in_bytes, out_bytes;
    graph_case graph;
    uint8_t *in, *expected, *out;
} trial;

static uint32_t element_size(DML_TENSOR_DATA_TYPE type)
{
    return type == DML_TENSOR_DATA_TYPE_FLOAT64 ? 8 : type == DML_TENSOR_DATA_TYPE_FLOAT16 ? 2 : 4;
}

/* --- the graph ---------------------------------------------------------------------------------------------------- */

/* Scores outside of the band, else -inf or 0: one node, or a condition and IF.  Returns the node. */
static uint32_t add_mask(trial *t, test_random *r, graph_tensor *tensor)
{
    static graph_tensor condition;
    const int32_t reach = (int32_t)t->sizes[2] + 8;
    const int32_t begin = (int32_t)test_random_below(r, (uint64_t)(2 * reach)) - reach;
    const int32_t end =
        test_random_below(r, 3) == 0 ? INT32_MAX : begin + (int32_t)test_random_below(r, (uint64_t)reach);
    const bool low = test_random_below(r, 4) != 0;
    DML_SCALAR_UNION value = { .Float32 = low ? -INFINITY : 0 };

    if (t->type == DML_TENSOR_DATA_TYPE_FLOAT64)
        value.Float64 = low ? -INFINITY : 0;
    if (t->type == DML_TENSOR_DATA_TYPE_FLOAT16)
        value.UInt16 = low ? 0xfc00 : 0;
    graph_tensor_set(tensor, t->type, 3, t->sizes, NULL, 0);
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC band = { &tensor->desc, &tensor->desc, t->type, value, begin, end };
    if (test_random_below(r, 2) == 0) {
        const uint32_t node = graph_operator(&t->graph, DML_OPERATOR_DIAGONAL_MATRIX1, &band, "mask");
        graph_input(&t->graph, 0, node, 0);
        return node;
    }
    graph_tensor_set(&condition, DML_TENSOR_DATA_TYPE_UINT8, 3, t->sizes, NULL, 0);
    const DML_DIAGONAL_MATRIX1_OPERATOR_DESC where = { NULL,           &condition.desc, DML_TENSOR_DATA_TYPE_UINT8,
                                                       { .UInt8 = 1 }, begin,           end };
    const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC fill = { &tensor->desc, t->type, value };
    const DML_ELEMENT_WISE_IF_OPERATOR_DESC choice = { &condition.desc, &tensor->desc, &tensor->desc, &tensor->desc };
    const uint32_t seen = graph_operator(&t->graph, DML_OPERATOR_DIAGONAL_MATRIX1, &where, "where");
    const uint32_t never = graph_operator(&t->graph, DML_OPERATOR_FILL_VALUE_CONSTANT, &fill, "fill");
    const uint32_t node = graph_operator(&t->graph, DML_OPERATOR_ELEMENT_WISE_IF, &choice, "if");
    graph_edge(&t->graph, seen, 0, node, 0);
    graph_edge(&t->graph, never, 0, node, 1);
    graph_input(&t->graph, 0, node, 2);
    return node;
}

static void add_reader(trial *t, test_random *r, const graph_tensor *in, uint32_t mask)
{
    static const uint32_t axes[] = { 2 };
    const uint32_t kind = (uint32_t)test_random_below(r, 3);
    graph_tensor out;
    uint32_t node;

    memcpy(t->out_sizes, t->sizes, sizeof t->sizes);
    t->out_type = t->type;
    if (kind == 0) {
        const DML_REDUCE_FUNCTION function = functions[test_random_below(r, sizeof functions / sizeof *functions)];
        t->out_sizes[2] = 1;
        if (function == DML_REDUCE_FUNCTION_ARGMAX)
            t->out_type = DML_TENSOR_DATA_TYPE_UINT32;
        graph_tensor_set(&out, t->out_type, 3, t->out_sizes, NULL, 0);
        const DML_REDUCE_OPERATOR_DESC reduce = { function, &in->desc, &out.desc, 1, axes };
        node = graph_operator(&t->graph, DML_OPERATOR_REDUCE, &reduce, "reduce");
    } else {
        graph_tensor_set(&out, t->type, 3, t->sizes, NULL, 0);
        const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC softmax = { &in->desc, &out.desc, 1, axes };
        node = graph_operator(&t->graph,
                              kind == 1 ? DML_OPERATOR_ACTIVATION_SOFTMAX1 : DML_OPERATOR_ACTIVATION_LOG_SOFTMAX1,
                              &softmax, "softmax");
    }
    graph_edge(&t->graph, mask, 0, node, 0);
    graph_output(&t->graph, node, 0, 0);
    t->out_size = element_size(t->out_type);
    t->out_bytes = (size_t)t->out_sizes[0] * t->out_sizes[1] * t->out_sizes[2] * t->out_size;
}

/* --- data --------------------------------------------------------------------------------------------------------- */

/* Small numbers of either sign; now and then a zero, an infinity, a NaN. */
static void put_number(trial *t, test_random *r, size_t at)
{
    const uint64_t rare = test_random_below(r, 200);
    const double x = rare == 0   ? -INFINITY
                     : rare == 1 ? NAN
                     : rare == 2 ? -0.0
                                 : (double)test_random_below(r, 4000) / 250 - 8;
    const float single = (float)x;
    /* f16: exponents from 2^-14 to 2^3 with any fraction, or what is not finite */
    const uint16_t half = (uint16_t)(rare == 0   ? 0xfc00
                                     : rare == 1 ? 0x7e00
                                                 : test_random_below(r, 0x4800) | test_random_below(r, 2) << 15);

    if (t->size == 8)
        memcpy(t->in + at * 8, &x, 8);
    else
        memcpy(t->in + at * t->size, t->size == 4 ? (const void *)&single : (const void *)&half, t->size);
}

static bool is_nan(const trial *t, const uint8_t *p)
{
    uint64_t bits = 0;
    memcpy(&bits, p, t->out_size);
    switch (t->out_type) {
    case DML_TENSOR_DATA_TYPE_FLOAT64: return (bits & INT64_MAX) > UINT64_C(0x7ff) << 52;
    case DML_TENSOR_DATA_TYPE_FLOAT32: return (bits & INT32_MAX) > 0x7f800000;
    case DML_TENSOR_DATA_TYPE_FLOAT16: return (bits & 0x7fff) > 0x7c00;
    default: return false;
    }
}

/* --- a case ------------------------------------------------------------------------------------------------------- */

static void check_mode(trial *t, const test_mode *mode, uint64_t number)
{
    opjit_binding bindings[2] = { { t->in, (t->in_bytes + 3) / 4 * 4 }, { t->out, (t->out_bytes + 3) / 4 * 4 } };
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_error error = { 0 };
    opjit_kernel *kernel;

    options.flags = mode->flags;
    options.level = mode->level;
    options.target = mode->target;
    ck_assert_msg(opjit_compile_graph(t->graph.context, &t->graph.desc, &options, &kernel, &error) == OPJIT_OK,
                  "case %" PRIu64 ", %s: %s", number, mode->name, error.message);
    call.bindings = bindings;
    call.binding_count = 2;
    memset(t->out, POISON, t->out_bytes + GUARD);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "case %" PRIu64 ", %s: %s", number, mode->name,
                  error.message);
    opjit_kernel_release(kernel);
    for (size_t at = 0; at < t->out_bytes; at += t->out_size)
        ck_assert_msg(memcmp(t->out + at, t->expected + at, t->out_size) == 0 ||
                          (is_nan(t, t->out + at) && is_nan(t, t->expected + at)),
                      "case %" PRIu64 ", %s: %u x %u x %u: element %zu differs", number, mode->name,
                      (unsigned)t->sizes[0], (unsigned)t->sizes[1], (unsigned)t->sizes[2], at / t->out_size);
    for (size_t at = t->out_bytes; at < t->out_bytes + GUARD; at++)
        ck_assert_msg(t->out[at] == POISON, "case %" PRIu64 ", %s: written behind the output", number, mode->name);
}

static void run_trial(opjit_context *context, const test_mode *mode, uint64_t number, test_random *r)
{
    trial t = { .type = types[test_random_below(r, sizeof types / sizeof *types)] };
    opjit_error error = { 0 };
    graph_tensor tensor = { 0 };

    t.size = element_size(t.type);
    t.sizes[0] = 1 + (uint32_t)test_random_below(r, 3);
    t.sizes[1] = 1 + (uint32_t)test_random_below(r, MOST_ROWS);
    t.sizes[2] = 1 + (uint32_t)test_random_below(r, MOST_COLUMNS);
    if (test_random_below(r, 2) == 0) /* rows of whole vectors, as is common */
        t.sizes[2] = (t.sizes[2] + 31) / 32 * 32;
    graph_begin(&t.graph, context, 8);
    add_reader(&t, r, &tensor, add_mask(&t, r, &tensor));
    const size_t count = (size_t)t.sizes[0] * t.sizes[1] * t.sizes[2];
    t.in_bytes = count * t.size;
    t.in = malloc(t.in_bytes + GUARD);
    t.expected = malloc(t.out_bytes + GUARD);
    t.out = malloc(t.out_bytes + GUARD);
    ck_assert(t.in != NULL && t.expected != NULL && t.out != NULL);
    for (size_t at = 0; at < count; at++)
        put_number(&t, r, at);
    void *buffers[] = { t.in, t.expected };
    ck_assert_msg(graph_run_lowered(&t.graph, buffers, &error) == OPJIT_OK, "case %" PRIu64 ": %s", number,
                  error.message);
    check_mode(&t, &modes[0], number);
    if (mode != &modes[0])
        check_mode(&t, mode, number);
    graph_end(&t.graph);
    free(t.in);
    free(t.expected);
    free(t.out);
}

START_TEST(masked_rows)
{
    const test_cases cases = test_cases_init("masks", CASES);
    opjit_context *context = test_context_create();
    const bool codegen = test_have_codegen(context);

    for (uint64_t i = cases.first; i < cases.end; i++) {
        test_random r;
        test_random_init(&r, cases.seed, 0, i);
        run_trial(context, &modes[codegen ? 1 + i % (sizeof modes / sizeof *modes - 1) : 0], i, &r);
    }
    opjit_context_destroy(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("property.masks");
    TCase *tcase = tcase_create("masks");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_set_timeout(tcase, 280);
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, masked_rows);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
