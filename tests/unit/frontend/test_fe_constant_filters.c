/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_constant_filters.c - convolutions with a constant filter of which a copy is kept: of few positions, which are
 * made as products of matrices, of short lines, whose vectors are channels, of taps far apart, which are left out where
 * they are padding, and transposed ones: the bits of the same convolution whose filter is an input, interpreted. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opjit/graph_ops.h>
#include <opjit/opjit.h>

#include "tests/support/checker.h"
#include "tests/support/random.h"

#define F32 DML_TENSOR_DATA_TYPE_FLOAT32
enum { CASES = 40, CASES_OF_LINES = 20, CASES_OF_FAR = 10, MOST = 1 << 17, GUARD = 16 };

static opjit_context *context;
static opjit_error error;
static _Alignas(64) float data[MOST], filter[MOST], expected[MOST], given[MOST];

typedef struct shape {
    uint32_t x[4], w[4], start[2], end[2], strides[2], dilations[2];
    bool transposed;
} shape;

static uint32_t between(test_random *r, uint32_t lo, uint32_t hi)
{
    return (uint32_t)test_random_between(r, lo, hi);
}

/* Windows that fit, of up to seven positions, or of lines of so many. */
static shape draw(test_random *r, bool lines)
{
    static const uint32_t channels[] = { 3, 31, 32, 33, 64, 80 };
    shape s = { .x = { between(r, 1, lines ? 2 : 5), between(r, 1, lines ? 50 : 150) },
                .w = { channels[between(r, lines ? 1 : 0, 5)] } };

    s.w[1] = s.x[1];
    for (uint32_t a = 0; a < 2; a++) {
        const bool single = a == 0 && between(r, 0, 2) != 0;
        const uint32_t positions = lines ? between(r, 4, a == 0 ? 9 : 18) : single ? 1 : between(r, 1, 7);
        s.w[2 + a] = a == 0 && positions == 1 ? 1 : between(r, 1, lines ? 3 : 4);
        s.strides[a] = between(r, 1, 3);
        s.dilations[a] = between(r, 1, 2);
        const uint32_t reach = (positions - 1) * s.strides[a] + (s.w[2 + a] - 1) * s.dilations[a] + 1;
        s.start[a] = between(r, 0, reach > 3 ? 2 : 0);
        s.end[a] = reach - s.start[a] > 1 ? between(r, 0, 1) : 0;
        s.x[2 + a] = reach - s.start[a] - s.end[a];
    }
    return s;
}

static size_t elements(const uint32_t *sizes)
{
    return (size_t)sizes[0] * sizes[1] * sizes[2] * sizes[3];
}

static opjit_tensor convolve(opjit_graph *g, const shape *s, opjit_tensor x, opjit_tensor w)
{
    static const uint32_t none[2];
    const DML_CONVOLUTION_OPERATOR_DESC desc = {
        NULL, NULL, NULL, NULL, DML_CONVOLUTION_MODE_CROSS_CORRELATION,
        s->transposed ? DML_CONVOLUTION_DIRECTION_BACKWARD : DML_CONVOLUTION_DIRECTION_FORWARD,
        2, s->strides, s->dilations, s->start, s->end, none, 1, NULL
    };
    return opjit_graph_op(g, DML_OPERATOR_CONVOLUTION, &desc, (opjit_tensor[]){ x, w, { 0, 0 } }, 3);
}

/* blocks: receives the iterations of the last step, if not NULL. */
static bool run(const shape *s, bool constant, uint32_t flags, float *out, uint64_t *blocks)
{
    opjit_step_time steps[8];
    uint32_t count = 0;

    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_call call = OPJIT_CALL_INIT;
    opjit_kernel_info info = OPJIT_KERNEL_INFO_INIT;
    opjit_kernel *kernel;
    opjit_graph *g;

    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor x = opjit_graph_input(g, "x", F32, 4, s->x);
    const opjit_tensor w = constant ? opjit_graph_constant(g, F32, 4, s->w, filter, elements(s->w) * sizeof(float), 0)
                                    : opjit_graph_input(g, "w", F32, 4, s->w);
    opjit_graph_output(g, "y", convolve(g, s, x, w));
    options.flags = flags;
    const opjit_status status = opjit_graph_compile(g, &options, &kernel, &error);
    opjit_graph_destroy(g);
    if (status == OPJIT_UNAVAILABLE)
        return false;
    ck_assert_msg(status == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_kernel_get_info(kernel, &info, NULL), OPJIT_OK);
    memset(out, 0x5a, sizeof expected);
    const opjit_binding bindings[] = { { data, sizeof data },
                                       { constant ? out + GUARD : filter,
                                         constant ? sizeof expected / 2 : sizeof filter },
                                       { out + GUARD, sizeof expected / 2 } };
    call.bindings = bindings;
    call.binding_count = info.inputs + info.outputs;
    ck_assert_msg(opjit_kernel_call_timed(kernel, &call, steps, 8, &count, &error) == OPJIT_OK, "%s", error.message);
    ck_assert(count >= 1 && count <= 8);
    if (blocks != NULL)
        *blocks = steps[count - 1].extent;
    opjit_kernel_release(kernel);
    return true;
}

/* Windows of strides that leave more remainders than there are planes for, as patches of images have. */
static shape draw_strides(test_random *r)
{
    static const uint32_t channels[] = { 5, 32, 48 };
    shape s = { .x = { 1, between(r, 1, 5) }, .w = { channels[between(r, 0, 2)] } };

    s.w[1] = s.x[1];
    for (uint32_t a = 0; a < 2; a++) {
        s.w[2 + a] = between(r, 3, 9);
        s.strides[a] = between(r, 3, 6);
        s.dilations[a] = between(r, 0, 9) == 0 ? 2 : 1;
        s.start[a] = between(r, 0, 2);
        const uint32_t positions = between(r, 3, 20);
        s.x[2 + a] = (positions - 1) * s.strides[a] + (s.w[2 + a] - 1) * s.dilations[a] + 1 - s.start[a];
    }
    return s;
}

/* Windows many of whose taps are padding. */
static shape draw_far(test_random *r)
{
    static const uint32_t channels[] = { 32, 40, 64 };
    shape s = { .x = { 1, between(r, 0, 2) == 0 ? between(r, 29, 33) : between(r, 1, 6) } };

    s.w[0] = channels[between(r, 0, 2)];
    s.w[1] = s.x[1];
    for (uint32_t a = 0; a < 2; a++) {
        s.x[2 + a] = between(r, 5, a == 0 ? 12 : 18);
        s.w[2 + a] = between(r, 0, 9) == 0 ? 2 : 3;
        s.strides[a] = 1;
        s.dilations[a] = between(r, 0, 9) == 0 ? 1 : between(r, s.x[2 + a] / 3, s.x[2 + a] + 2);
        s.start[a] = s.end[a] = s.dilations[a] * (s.w[2 + a] - 1) / 2;
        if (between(r, 0, 3) == 0)
            s.start[a] += between(r, 0, s.dilations[a] / 2);
        s.end[a] += s.w[2 + a] == 2;
    }
    return s;
}

/* Transposed ones, whose phases have different taps. */
static shape draw_phases(test_random *r)
{
    static const uint32_t channels[] = { 7, 11, 16, 32, 40, 64 };
    shape s = { .x = { 1, between(r, 0, 2) == 0 ? between(r, 29, 70) : between(r, 1, 6) }, .transposed = true };

    s.w[0] = s.x[1];
    s.w[1] = channels[between(r, 0, 5)];
    for (uint32_t a = 0; a < 2; a++) {
        s.x[2 + a] = between(r, 3, a == 0 ? 8 : 15);
        s.w[2 + a] = between(r, 2, 4);
        s.strides[a] = between(r, 1, 3);
        s.dilations[a] = 1;
        s.start[a] = between(r, 0, 1);
        s.end[a] = between(r, 0, 1);
    }
    return s;
}

/* Numbers with which a step of padding changes a sum: products that round to -0, and what is not finite. */
static void make_hard(test_random *r)
{
    const bool tiny = between(r, 0, 1) == 0;
    float *one = between(r, 0, 1) == 0 ? data : filter;

    for (uint32_t i = 0; i < MOST && tiny; i++) {
        data[i] = ldexpf(data[i], -(int)between(r, 60, 90));
        filter[i] = ldexpf(filter[i], -80);
    }
    for (uint32_t i = between(r, 0, 500); i < MOST; i += between(r, 100, 3000))
        one[i] = tiny ? -0.0f : between(r, 0, 1) == 0 ? INFINITY : NAN;
}

/* A NaN has any bits. */
static bool same(void)
{
    for (uint32_t i = 0; i < MOST; i++)
        if (memcmp(&given[i], &expected[i], sizeof *given) != 0 && !(isnan(given[i]) && isnan(expected[i])))
            return false;
    return true;
}

enum { OF_FEW_POSITIONS, OF_LINES, OF_STRIDES, OF_FAR, OF_FAR_HARD, OF_PHASES, OF_PHASES_HARD };

static void check_case(uint64_t seed, uint64_t number, uint32_t kind)
{
    test_random r;
    test_random_init(&r, seed, 0, number);
    const shape s = kind >= OF_PHASES    ? draw_phases(&r)
                    : kind >= OF_FAR     ? draw_far(&r)
                    : kind == OF_STRIDES ? draw_strides(&r)
                                         : draw(&r, kind == OF_LINES);

    ck_assert_uint_le(elements(s.x), MOST);
    ck_assert_uint_le(elements(s.w), MOST);
    for (uint32_t i = 0; i < MOST; i++) {
        data[i] = (float)(test_random_u64(&r) % 2001) / 256.0f - 4.0f;
        filter[i] = (float)(test_random_u64(&r) % 2001) / 512.0f - 2.0f;
    }
    if (kind == OF_FAR_HARD || kind == OF_PHASES_HARD)
        make_hard(&r);
    run(&s, false, OPJIT_COMPILE_INTERPRET, expected, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        if (run(&s, i != 2, i == 0 ? OPJIT_COMPILE_INTERPRET : 0, given, NULL))
            ck_assert_msg(same(),
                          "case %llu, %s: x %u,%u,%u,%u, w %u,%u,%u,%u, strides %u,%u, dilations %u,%u, start %u,%u",
                          (unsigned long long)number,
                          i == 0   ? "interpreted"
                          : i == 1 ? "compiled"
                                   : "compiled, filter given",
                          s.x[0], s.x[1], s.x[2], s.x[3], s.w[0], s.w[1], s.w[2], s.w[3], s.strides[0], s.strides[1],
                          s.dilations[0], s.dilations[1], s.start[0], s.start[1]);
    }
}

static const struct {
    const char *name;
    uint32_t cases;
} kinds[] = { [OF_FEW_POSITIONS] = { "few_positions", CASES },
              [OF_LINES] = { "short_lines", CASES_OF_LINES },
              [OF_STRIDES] = { "large_strides", CASES_OF_LINES },
              [OF_FAR] = { "far_apart", CASES_OF_FAR },
              [OF_FAR_HARD] = { "far_apart_of_hard_numbers", CASES_OF_LINES },
              [OF_PHASES] = { "phases", CASES_OF_FAR },
              [OF_PHASES_HARD] = { "phases_of_hard_numbers", CASES_OF_LINES } };

START_TEST(windows)
{
    const test_cases cases = test_cases_init(kinds[_i].name, kinds[_i].cases);
    for (uint64_t i = cases.first; i < cases.end; i++)
        check_case(cases.seed, i, (uint32_t)_i);
}
END_TEST

/* Much work is more than one block, for threads, with few rows or lines too, and never as many as results. */
START_TEST(several_blocks)
{
    static const shape shapes[] = {
        { { 1, 96, 13, 13 }, { 96, 96, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
        { { 1, 96, 26, 26 }, { 96, 96, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
        { { 1, 192, 26, 26 }, { 75, 192, 3, 3 }, { 1, 1 }, { 1, 1 }, { 2, 2 }, { 1, 1 }, false },
        { { 1, 128, 7, 7 }, { 96, 128, 3, 3 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, { 1, 1 }, false },
        { { 1, 3, 128, 128 }, { 64, 3, 4, 4 }, { 0, 0 }, { 0, 0 }, { 4, 4 }, { 1, 1 }, false },
        { { 1, 3, 179, 179 }, { 32, 3, 11, 11 }, { 0, 0 }, { 0, 0 }, { 4, 4 }, { 1, 1 }, false },
    };

    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        uint64_t blocks = 0;
        for (uint32_t constant = 0; constant < 2; constant++)
            if (run(&shapes[i], constant != 0, 0, given, &blocks))
                ck_assert_msg(blocks > 1 && blocks < 100, "case %zu: %llu blocks", i, (unsigned long long)blocks);
    }
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
    Suite *suite = suite_create("fe.constant_filters");
    TCase *tcase = tcase_create("few positions");
    tcase_set_timeout(tcase, 600);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, windows, 0, sizeof kinds / sizeof *kinds);
    tcase_add_test(tcase, several_blocks);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
