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
enum { CASES = 40, NETWORKS = 16, SIZES = 6, DIMS = 2, STEPS = 4, MOST_BYTES = 1200000, MOST_WEIGHTS = 40 * 40 * 9 };

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

/* What a layer of a network does with images, whose number is dynamic. */
typedef enum layer {
    LAYER_CONVOLUTION,
    LAYER_STRIDE,
    LAYER_POINTS,
    LAYER_DEPTHWISE,
    LAYER_MAX_POOL,
    LAYER_MEAN_POOL,
    LAYER_ACTIVATION,
    LAYERS_KNOWN
} layer;

/* A random graph: sizes are fixed ones, or UINT32_MAX - k for dimension k. */
typedef struct plan {
    bool is_network; /* sizes: channels, lines, columns */
    layer layers[STEPS];
    uint32_t channels[STEPS];
    uint32_t sizes[3], wide, axis[STEPS];
    step steps[STEPS];
    opjit_dim dims[DIMS];
    uint32_t dim_count;
} plan;

static opjit_context *context;
static opjit_error error;
static _Alignas(64) float weights[MOST_WEIGHTS];

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

static void draw_network(test_random *r, plan *p)
{
    const uint64_t hi = (uint64_t)test_random_between(r, 2, 100);

    *p = (plan){ .is_network = true, .dim_count = 1 };
    p->dims[0] = (opjit_dim){ "batch", 1, hi, (uint64_t)test_random_between(r, 1, (int64_t)hi) };
    p->sizes[0] = (uint32_t)test_random_between(r, 1, 40);
    p->sizes[1] = (uint32_t)test_random_between(r, 2, 20);
    p->sizes[2] = (uint32_t)test_random_between(r, 2, 20);
    for (uint32_t i = 0; i < STEPS; i++) {
        p->layers[i] = (layer)test_random_below(r, LAYERS_KNOWN);
        p->channels[i] = (uint32_t)test_random_between(r, 1, 40);
    }
    p->wide = (uint32_t)test_random_between(r, 1, 40);
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

static opjit_tensor convolve(opjit_graph *g, opjit_tensor x, uint32_t channels, uint32_t *sizes, uint32_t taps,
                             uint32_t stride, uint32_t groups)
{
    const uint32_t edge[2] = { taps / 2, taps / 2 }, strides[2] = { stride, stride }, dilations[2] = { 1, 1 };
    const uint32_t filter[4] = { channels, sizes[1] / groups, taps, taps }, row[4] = { 1, channels, 1, 1 };
    const opjit_tensor w = opjit_graph_constant(g, F32, 4, filter, weights,
                                                (uint64_t)channels * filter[1] * taps * taps * sizeof(float), 0);
    const opjit_tensor bias = opjit_graph_constant(g, F32, 4, row, weights + 7, channels * sizeof(float), 0);

    sizes[1] = channels;
    for (uint32_t i = 2; i < 4; i++)
        sizes[i] = (sizes[i] + 2 * (taps / 2) - taps) / stride + 1;
    return opjit_graph_convolution(g, x, w, bias, 2, edge, edge, strides, dilations, groups);
}

static opjit_tensor put_layer(const plan *p, opjit_graph *g, uint32_t i, opjit_tensor x, uint32_t *sizes)
{
    static const uint32_t two[2] = { 2, 2 }, none[2] = { 0, 0 };
    const bool pools = p->layers[i] == LAYER_MAX_POOL || p->layers[i] == LAYER_MEAN_POOL;

    if (pools && (sizes[2] < 2 || sizes[3] < 2))
        return x;
    for (uint32_t d = 2; d < 4 && pools; d++)
        sizes[d] /= 2;
    switch (p->layers[i]) {
    case LAYER_CONVOLUTION: return convolve(g, x, p->channels[i], sizes, 3, 1, 1);
    case LAYER_STRIDE: return convolve(g, x, p->channels[i], sizes, 3, 2, 1);
    case LAYER_POINTS: return convolve(g, x, p->channels[i], sizes, 1, 1, 1);
    case LAYER_DEPTHWISE: return convolve(g, x, sizes[1], sizes, 3, 1, sizes[1]);
    case LAYER_MAX_POOL: return opjit_graph_max_pool(g, x, 2, two, two, none, none, NULL);
    case LAYER_MEAN_POOL: return opjit_graph_average_pool(g, x, 2, two, two, none, none, 0);
    case LAYER_ACTIVATION: return opjit_graph_gelu(g, x);
    case LAYERS_KNOWN: break;
    }
    return x;
}

/* Layers, the mean of each image, and a product. */
static void put_network(const plan *p, opjit_graph *g, const uint64_t *dims)
{
    uint32_t sizes[4] = { (uint32_t)dims[0], p->sizes[0], p->sizes[1], p->sizes[2] };
    opjit_tensor x = opjit_graph_input(g, "x", F32, 4, sizes);

    for (uint32_t i = 0; i < STEPS; i++)
        x = put_layer(p, g, i, x, sizes);
    x = opjit_graph_reduce_mean(g, opjit_graph_reduce_mean(g, x, 3), 2);
    x = opjit_graph_reshape(g, x, 2, sizes);
    const uint32_t other[2] = { sizes[1], p->wide };
    const opjit_tensor w =
        opjit_graph_constant(g, F32, 2, other, weights, (uint64_t)other[0] * other[1] * sizeof(float), 0);
    opjit_graph_output(g, "y", opjit_graph_matrix_multiply(g, x, w, 0, 0));
}

static opjit_status build(void *user, const uint64_t *dims, opjit_graph **out, opjit_error *e)
{
    plan *const p = user;
    uint32_t sizes[3];
    opjit_graph *g;
    const opjit_status status = opjit_graph_create(context, &g, e);

    if (status != OPJIT_OK)
        return status;
    if (p->is_network) {
        put_network(p, g, dims);
        *out = g;
        return OPJIT_OK;
    }
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

/* How many sizes of it were tried; false: it has no kernel for all of them. */
static bool check_plan(plan *p, test_random *r, uint64_t *tried)
{
    opjit_kernel *kernels[EXECUTORS] = { NULL };
    const bool made = compile_all(p, kernels);

    for (uint32_t i = 0; i < SIZES && made; i++) {
        uint64_t dims[DIMS] = { 1, 1 };
        for (uint32_t d = 0; d < p->dim_count; d++)
            dims[d] = i == 0 ? 1
                             : (uint64_t)test_random_between(r, 1, (int64_t)p->dims[d].hi / (i % 2 == 0 ? 1 : 9) + 1);
        for (uint32_t d = 0; d < p->dim_count; d++)
            dims[d] = dims[d] > p->dims[d].hi ? p->dims[d].hi : dims[d];
        *tried += check_sizes(p, kernels, dims);
    }
    if (!made)
        printf("  refused: %s\n", error.message);
    for (uint32_t k = 0; k < EXECUTORS; k++)
        opjit_kernel_release(kernels[k]);
    return made;
}

static void check_cases(const char *name, uint64_t count, uint32_t stream, void (*draw_one)(test_random *r, plan *p))
{
    const test_cases cases = test_cases_init(name, count);
    uint64_t made = 0, tried = 0;

    for (uint64_t number = cases.first; number < cases.end; number++) {
        test_random r;
        plan p;
        test_random_init(&r, cases.seed, stream, number);
        draw_one(&r, &p);
        printf("%s, case %" PRIu64 ": steps %d %d %d %d, %s 1 to %" PRIu64 " (%" PRIu64 ")\n", name, number,
               p.is_network ? (int)p.layers[0] : (int)p.steps[0], p.is_network ? (int)p.layers[1] : (int)p.steps[1],
               p.is_network ? (int)p.layers[2] : (int)p.steps[2], p.is_network ? (int)p.layers[3] : (int)p.steps[3],
               p.dims[0].name, p.dims[0].hi, p.dims[0].typical);
        fflush(stdout);
        made += check_plan(&p, &r, &tried);
    }
    printf("%" PRIu64 " of %" PRIu64 " have a kernel for all sizes\n", made, cases.end - cases.first);
    ck_assert_msg(tried >= made, "of %" PRIu64 " kernels only %" PRIu64 " sizes were tried", made, tried);
    ck_assert_msg(cases.end - cases.first < count || 4 * made >= cases.end - cases.first, "few have one kernel");
}

START_TEST(random_graphs)
{
    check_cases("dynamic", CASES, 1, draw);
}
END_TEST

START_TEST(random_networks)
{
    test_random r;

    test_random_init(&r, 1, 3, 0);
    for (uint32_t i = 0; i < MOST_WEIGHTS; i++)
        weights[i] = (float)test_random_between(&r, -64, 64) / 256;
    check_cases("dynamic networks", NETWORKS, 2, draw_network);
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
    tcase_add_test(tcase, random_networks);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
