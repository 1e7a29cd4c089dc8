/* SPDX-License-Identifier: Apache-2.0 */
/* test_property_dynamic.c - random graphs with random dimensions: for each set of sizes the kernel for all of them has
 * the bits of the kernel that is made for just these, interpreted and at both levels.  Where none is made, the graph is
 * refused with a reason. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <opjit/dynamic.h>
#include <opjit/graph_ops.h>

#include "tests/support/dynamic_call.h"
#include "tests/support/random.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
enum { CASES = 40, SIZES = 6, DIMS = 2, STEPS = 4, MOST_BYTES = 1200000 };

/* What a step does with the tensor so far, which has three dimensions. */
typedef enum step {
    STEP_RELU,
    STEP_GELU,
    STEP_SOFTMAX,
    STEP_NORMALIZE,
    STEP_ADD,
    STEP_PRODUCT,
    STEP_SWAP,
    STEP_MASK,
    STEP_MEAN,
    STEP_JOIN,
    STEP_RUNNING,
    STEP_PAD,
    STEPS_KNOWN
} step;

/* A random graph: sizes are fixed ones, or UINT32_MAX - k for dimension k. */
typedef struct plan {
    uint32_t sizes[3], wide, axis[STEPS];
    step steps[STEPS];
    opjit_dim dims[DIMS];
    uint32_t dim_count;
} plan;

static opjit_context *context;
static opjit_error error;

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static void draw(test_random *r, plan *p)
{
    static const char *const names[DIMS] = { "n", "m" };

    *p = (plan){ .dim_count = 1 + (uint32_t)test_random_below(r, DIMS),
                 .wide = 8 * (uint32_t)test_random_between(r, 1, 9) };
    for (uint32_t d = 0; d < p->dim_count; d++) {
        const uint64_t hi = (uint64_t)test_random_between(r, 2, p->dim_count == 1 ? 5000 : 600);
        p->dims[d] = (opjit_dim){ names[d], 1, hi, (uint64_t)test_random_between(r, 1, (int64_t)hi) };
    }
    for (uint32_t i = 0; i < 3; i++)
        p->sizes[i] = (uint32_t)test_random_between(r, 1, i == 0 ? 3 : 40);
    for (uint32_t d = 0; d < p->dim_count; d++)
        p->sizes[d == 0 ? test_random_between(r, 1, 2) : test_random_between(r, 0, 2)] = UINT32_MAX - d;
    for (uint32_t i = 0; i < STEPS; i++) {
        p->steps[i] = (step)test_random_below(r, STEPS_KNOWN);
        p->axis[i] = (uint32_t)test_random_between(r, 1, 2);
    }
}

static uint32_t size_of(uint32_t size, const uint64_t *dims)
{
    return size > UINT32_MAX - DIMS ? (uint32_t)dims[UINT32_MAX - size] : size;
}

static opjit_tensor put_step(const plan *p, opjit_graph *g, uint32_t i, opjit_tensor x, uint32_t *sizes)
{
    char name[8];

    snprintf(name, sizeof name, "s%u", i);
    switch (p->steps[i]) {
    case STEP_RELU: return opjit_graph_relu(g, x);
    case STEP_GELU: return opjit_graph_gelu(g, x);
    case STEP_SOFTMAX: return opjit_graph_softmax(g, x, p->axis[i]);
    case STEP_ADD: return opjit_graph_add(g, x, opjit_graph_input(g, name, F32, 3, sizes));
    case STEP_MASK: return opjit_graph_fill_band(g, x, -2.5f, 1, INT32_MAX);
    case STEP_RUNNING: return opjit_graph_cumulative_sum(g, x, p->axis[i], 0);
    case STEP_NORMALIZE: {
        const uint32_t row[3] = { 1, 1, sizes[2] };
        const opjit_tensor scale = opjit_graph_input(g, name, F32, 3, row);
        return opjit_graph_layer_norm(g, x, scale, scale, 2, 1e-5f);
    }
    case STEP_PRODUCT: {
        const uint32_t other[3] = { sizes[0], sizes[2], p->wide };
        sizes[2] = p->wide;
        return opjit_graph_matrix_multiply(g, x, opjit_graph_input(g, name, F32, 3, other), 0, 0);
    }
    case STEP_SWAP: {
        const uint32_t second = sizes[1];
        sizes[1] = sizes[2];
        sizes[2] = second;
        return opjit_graph_transpose(g, x, (const uint32_t[]){ 0, 2, 1 });
    }
    case STEP_MEAN: return opjit_graph_add(g, x, opjit_graph_reduce_mean(g, x, p->axis[i]));
    case STEP_JOIN: {
        const opjit_tensor parts[2] = { x, opjit_graph_input(g, name, F32, 3, sizes) };
        sizes[p->axis[i]] *= 2;
        return opjit_graph_join(g, parts, 2, p->axis[i]);
    }
    case STEP_PAD: {
        static const uint32_t start[3] = { 0, 1, 2 }, end[3] = { 0, 0, 3 };
        sizes[1] += 1;
        sizes[2] += 5;
        return opjit_graph_pad(g, x, 3, start, end, 0.5f);
    }
    case STEPS_KNOWN: break;
    }
    return x;
}

static opjit_status build(void *user, const uint64_t *dims, opjit_graph **out, opjit_error *e)
{
    plan *const p = user;
    uint32_t sizes[3];
    opjit_graph *g;
    const opjit_status status = opjit_graph_create(context, &g, e);

    if (status != OPJIT_OK)
        return status;
    for (uint32_t i = 0; i < 3; i++)
        sizes[i] = size_of(p->sizes[i], dims);
    opjit_tensor x = opjit_graph_input(g, "x", F32, 3, sizes);
    for (uint32_t i = 0; i < STEPS; i++)
        x = put_step(p, g, i, x, sizes);
    opjit_graph_output(g, "y", x);
    *out = g;
    return OPJIT_OK;
}

/* opjit_graph_compile_dynamic leaves each graph to whoever built it. */
typedef struct builder {
    plan *p;
    opjit_graph *last;
} builder;

static opjit_status build_next(void *user, const uint64_t *dims, opjit_graph **out, opjit_error *e)
{
    builder *const b = user;

    opjit_graph_destroy(b->last);
    b->last = NULL;
    const opjit_status status = build(b->p, dims, &b->last, e);
    *out = b->last;
    return status;
}

/* --- the property ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    opjit_level level;
    uint32_t flags;
} executors[] = { { "interpreter", OPJIT_LEVEL_QUICK, OPJIT_COMPILE_INTERPRET },
                  { "quick", OPJIT_LEVEL_QUICK, 0 },
                  { "peak", OPJIT_LEVEL_PEAK, 0 } };
enum { EXECUTORS = sizeof executors / sizeof *executors };

/* Whether they were tried: calls take a limited amount of memory. */
static bool check_sizes(plan *p, opjit_kernel *const *kernels, const uint64_t *dims)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *fixed;
    opjit_graph *g;
    dynamic_memory expected, given;

    options.flags = OPJIT_COMPILE_NO_CACHE;
    ck_assert_int_eq(build(p, dims, &g, &error), OPJIT_OK);
    ck_assert_msg(opjit_graph_compile(g, &options, &fixed, &error) == OPJIT_OK, "%s", error.message);
    opjit_graph_destroy(g);
    const bool fits = dynamic_allocate(&expected, fixed, NULL, 0, MOST_BYTES);
    if (fits) {
        ck_assert_msg(dynamic_call(&expected, fixed, NULL, 0, &error) == OPJIT_OK, "%s", error.message);
        for (uint32_t k = 0; k < EXECUTORS; k++) {
            if (kernels[k] == NULL || (k == 0 && expected.bindings[expected.count - 1].bytes > 40000))
                continue; /* the interpreter takes long */
            ck_assert(dynamic_allocate(&given, kernels[k], dims, p->dim_count, MOST_BYTES));
            ck_assert_msg(dynamic_call(&given, kernels[k], dims, p->dim_count, &error) == OPJIT_OK, "%s",
                          error.message);
            dynamic_compare(&expected, &given, executors[k].name, dims);
            dynamic_release(&given);
        }
    }
    dynamic_release(&expected);
    opjit_kernel_release(fixed);
    return fits;
}

/* Whether there is a kernel for all sizes. */
static bool compile_all(plan *p, opjit_kernel **kernels)
{
    bool made = true;

    for (uint32_t k = 0; k < EXECUTORS && made; k++) {
        opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
        builder b = { p, NULL };
        options.level = executors[k].level;
        options.flags = executors[k].flags | OPJIT_COMPILE_NO_CACHE;
        const opjit_status status =
            opjit_graph_compile_dynamic(context, p->dims, p->dim_count, build_next, &b, &options, &kernels[k], &error);
        opjit_graph_destroy(b.last);
        if (status == OPJIT_UNAVAILABLE) /* no code generator */
            continue;
        made = status == OPJIT_OK;
        ck_assert_msg(made || (status == OPJIT_UNSUPPORTED && error.message[0] != '\0'), "%s", error.message);
    }
    return made;
}

START_TEST(random_graphs)
{
    const test_cases cases = test_cases_init("dynamic", CASES);
    uint64_t made = 0, tried = 0;

    for (uint64_t number = cases.first; number < cases.end; number++) {
        opjit_kernel *kernels[EXECUTORS] = { NULL };
        test_random r;
        plan p;
        test_random_init(&r, cases.seed, 1, number);
        draw(&r, &p);
        printf("case %" PRIu64 ": steps %d %d %d %d, %s 1 to %" PRIu64 " (%" PRIu64 ")\n", number, p.steps[0],
               p.steps[1], p.steps[2], p.steps[3], p.dims[0].name, p.dims[0].hi, p.dims[0].typical);
        fflush(stdout);
        if (compile_all(&p, kernels)) {
            made++;
            for (uint32_t i = 0; i < SIZES; i++) {
                uint64_t dims[DIMS] = { 1, 1 };
                for (uint32_t d = 0; d < p.dim_count; d++)
                    dims[d] = i == 0 ? 1
                                     : (uint64_t)test_random_between(
                                           &r, 1, (int64_t)p.dims[d].hi / (i % 2 == 0 ? 1 : 9) + 1);
                for (uint32_t d = 0; d < p.dim_count; d++)
                    dims[d] = dims[d] > p.dims[d].hi ? p.dims[d].hi : dims[d];
                tried += check_sizes(&p, kernels, dims);
            }
        } else {
            printf("  refused: %s\n", error.message);
        }
        for (uint32_t k = 0; k < EXECUTORS; k++)
            opjit_kernel_release(kernels[k]);
    }
    printf("%" PRIu64 " of %" PRIu64 " have a kernel for all sizes\n", made, cases.end - cases.first);
    ck_assert_msg(tried >= made, "of %" PRIu64 " kernels only %" PRIu64 " sizes were tried", made, tried);
    ck_assert_msg(cases.end - cases.first < CASES || 4 * made >= cases.end - cases.first, "few have one kernel");
}
END_TEST

static void setup(void)
{
    ck_assert_int_eq(opjit_context_create(NULL, &context, &error), OPJIT_OK);
}
static void teardown(void)
{
    opjit_context_destroy(context);
}

int main(void)
{
    Suite *suite = suite_create("property.dynamic");
    TCase *tcase = tcase_create("random");
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, random_graphs);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
