/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_unaligned.c - constants that lie at any address: kernels read them there, whatever their elements are, and
 * nothing before or behind them; the bytes are those of a constant that is aligned. */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <opjit/graph_ops.h>
#include <opjit/reflect.h>

#include "tests/reference/reference.h"
#include "tests/support/checker.h"

/* ROWS x COLUMNS elements are more than 4 KiB of any type, and no whole number of vectors. */
enum { ROWS = 67, COLUMNS = 71, ELEMENTS = ROWS * COLUMNS, OFFSETS = 8, PAGE = 4096, ROOM = 16 * PAGE };

static const DML_TENSOR_DATA_TYPE types[] = {
    DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_DATA_TYPE_FLOAT16, DML_TENSOR_DATA_TYPE_FLOAT64,
    DML_TENSOR_DATA_TYPE_UINT8,   DML_TENSOR_DATA_TYPE_INT8,    DML_TENSOR_DATA_TYPE_UINT16,
    DML_TENSOR_DATA_TYPE_INT16,   DML_TENSOR_DATA_TYPE_UINT32,  DML_TENSOR_DATA_TYPE_INT32,
    DML_TENSOR_DATA_TYPE_UINT64,  DML_TENSOR_DATA_TYPE_INT64,
};

static opjit_context *context;
static opjit_error error;
static uint8_t *room; /* ROOM bytes between two pages that nobody may touch */

static void setup(void)
{
    uint8_t *const all = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(all != MAP_FAILED);
    room = all + PAGE;
    ck_assert_int_eq(mprotect(room, ROOM, PROT_READ | PROT_WRITE), 0);
    context = test_context_create();
}

static void teardown(void)
{
    opjit_context_destroy(context);
    munmap(room - PAGE, ROOM + 2 * PAGE);
}

/* Number i of the addresses: a few bytes behind the first page that may be touched, or before the last one. */
static uint8_t *address(uint32_t i, size_t bytes)
{
    return i % 2 == 0 ? room + ROOM - bytes - i : room + i;
}

/* --- elements ----------------------------------------------------------------------------------------------------- */

/* What of the constant is read: where element (r, c) of the result comes from; false: it is 0. */
typedef struct form {
    const char *name;
    uint32_t rows, columns;
    opjit_tensor (*view)(opjit_graph *g, opjit_tensor constant);
    bool (*from)(uint32_t r, uint32_t c, uint32_t *at);
} form;

static opjit_tensor plain(opjit_graph *g, opjit_tensor t)
{
    (void)g;
    return t;
}

static opjit_tensor turned(opjit_graph *g, opjit_tensor t)
{
    return opjit_graph_transpose(g, t, (const uint32_t[]){ 1, 0 });
}

static opjit_tensor second(opjit_graph *g, opjit_tensor t)
{
    return opjit_graph_slice(g, t, (const uint32_t[]){ 0, 0 }, (const uint32_t[]){ ROWS, COLUMNS / 2 },
                             (const int32_t[]){ 1, 2 });
}

static opjit_tensor third(opjit_graph *g, opjit_tensor t)
{
    return opjit_graph_slice(g, t, (const uint32_t[]){ 1, 2 }, (const uint32_t[]){ ROWS - 1, COLUMNS / 3 },
                             (const int32_t[]){ 1, 3 });
}

static opjit_tensor reversed(opjit_graph *g, opjit_tensor t)
{
    return opjit_graph_slice(g, t, (const uint32_t[]){ 0, 0 }, (const uint32_t[]){ ROWS, COLUMNS },
                             (const int32_t[]){ 1, -1 });
}

static opjit_tensor repeated(opjit_graph *g, opjit_tensor t)
{
    return opjit_graph_broadcast(
        g, opjit_graph_slice(g, t, (const uint32_t[]){ 0, 0 }, (const uint32_t[]){ ROWS, 1 }, NULL), 2,
        (const uint32_t[]){ ROWS, COLUMNS });
}

static opjit_tensor padded(opjit_graph *g, opjit_tensor t)
{
    return opjit_graph_pad(g, t, 2, (const uint32_t[]){ 1, 3 }, (const uint32_t[]){ 2, 1 }, 0);
}

static bool plain_from(uint32_t r, uint32_t c, uint32_t *at) { return *at = r * COLUMNS + c, true; }
static bool turned_from(uint32_t r, uint32_t c, uint32_t *at) { return *at = c * COLUMNS + r, true; }
static bool second_from(uint32_t r, uint32_t c, uint32_t *at) { return *at = r * COLUMNS + 2 * c, true; }
static bool third_from(uint32_t r, uint32_t c, uint32_t *at) { return *at = (r + 1) * COLUMNS + 2 + 3 * c, true; }
static bool reversed_from(uint32_t r, uint32_t c, uint32_t *at) { return *at = r * COLUMNS + COLUMNS - 1 - c, true; }
static bool repeated_from(uint32_t r, uint32_t c, uint32_t *at) { return (void)c, *at = r * COLUMNS, true; }
static bool padded_from(uint32_t r, uint32_t c, uint32_t *at)
{
    *at = (r - 1) * COLUMNS + c - 3;
    return r >= 1 && r <= ROWS && c >= 3 && c < COLUMNS + 3;
}

static const form forms[] = {
    { "plain", ROWS, COLUMNS, plain, plain_from },
    { "turned", COLUMNS, ROWS, turned, turned_from },
    { "every second", ROWS, COLUMNS / 2, second, second_from },
    { "every third", ROWS - 1, COLUMNS / 3, third, third_from },
    { "reversed", ROWS, COLUMNS, reversed, reversed_from },
    { "repeated", ROWS, COLUMNS, repeated, repeated_from },
    { "padded", ROWS + 3, COLUMNS + 4, padded, padded_from },
};

enum { MOST = (ROWS + 3) * (COLUMNS + 4) };
static _Alignas(64) uint8_t condition[MOST + 3], other[8 * MOST], out[8 * MOST];

typedef struct mode {
    const char *target;
    uint32_t flags, level;
} mode;

static const mode modes[] = {
    { "cpu", OPJIT_COMPILE_INTERPRET, 0 }, { "cpu", 0, OPJIT_LEVEL_QUICK },
    { "cpu", 0, OPJIT_LEVEL_PEAK }, { "cpu:x86-64-v1", 0, OPJIT_LEVEL_QUICK },
    { "cpu:x86-64-v2", 0, OPJIT_LEVEL_QUICK }, { "cpu:x86-64-v3", 0, OPJIT_LEVEL_QUICK },
    { "cpu:x86-64-v4", 0, OPJIT_LEVEL_QUICK },
};

/* NULL: this machine does not run such code. */
static opjit_kernel *compile(opjit_graph *g, const mode *how, uint32_t flags)
{
    opjit_compile_options options = OPJIT_COMPILE_OPTIONS_INIT;
    opjit_kernel *kernel = NULL;
    options.target = how->target;
    options.flags = how->flags | flags;
    options.level = how->level;
    const opjit_status status = opjit_graph_compile(g, &options, &kernel, &error);
    ck_assert_msg(status == OPJIT_OK || status == OPJIT_UNAVAILABLE, "%s", error.message);
    return kernel;
}

/* condition ? what the form reads of the constant : other */
static opjit_kernel *compile_form(const form *f, DML_TENSOR_DATA_TYPE type, const mode *how, const void *constant)
{
    const uint32_t sizes[] = { f->rows, f->columns };
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor c = opjit_graph_input(g, "condition", DML_TENSOR_DATA_TYPE_UINT8, 2, sizes);
    const opjit_tensor x = opjit_graph_input(g, "other", type, 2, sizes);
    const opjit_tensor t = opjit_graph_constant(g, type, 2, (const uint32_t[]){ ROWS, COLUMNS }, constant,
                                                (uint64_t)ELEMENTS * ref_dtype_size(type), OPJIT_GRAPH_BORROW);
    opjit_graph_output(g, "y", opjit_graph_where(g, c, f->view(g, t), x));
    opjit_kernel *const kernel = compile(g, how, OPJIT_COMPILE_BORROW_CONSTANTS);
    opjit_graph_destroy(g);
    return kernel;
}

static void check_form(const opjit_kernel *kernel, const form *f, DML_TENSOR_DATA_TYPE type, const uint8_t *constant,
                       const char *target)
{
    const uint32_t size = ref_dtype_size(type), count = f->rows * f->columns;
    const opjit_binding bindings[] = { { condition, sizeof condition }, { other, sizeof other }, { out, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 3;
    memset(out, 0x5a, sizeof out);
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    for (uint32_t i = 0, at; i < count; i++) {
        static const uint8_t zero[8];
        const uint8_t *const read = f->from(i / f->columns, i % f->columns, &at) ? constant + (size_t)at * size : zero;
        const uint8_t *const expected = condition[i] != 0 ? read : other + (size_t)i * size;
        if (memcmp(out + (size_t)i * size, expected, size) != 0) /* checked per element, Check takes its time */
            ck_abort_msg("%s, %s, %s, at %p: element %u", f->name, opjit_data_type_name(type), target,
                         (const void *)constant, i);
    }
}

/* Bytes that are numbers of every type, and the same after a round through it. */
static void fill(uint8_t *bytes, size_t count, uint32_t seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 9 & 0x3f);
}

START_TEST(every_element)
{
    const DML_TENSOR_DATA_TYPE type = types[_i];
    const size_t bytes = (size_t)ELEMENTS * ref_dtype_size(type);
    for (uint32_t i = 0; i < MOST; i++)
        condition[i] = i % 5 != 2;
    fill(other, sizeof other, 1);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
            for (uint32_t i = 0; i < OFFSETS; i++) {
                uint8_t *const constant = address(i, bytes);
                fill(constant, bytes, i + 7);
                opjit_kernel *const kernel = compile_form(&forms[f], type, &modes[m], constant);
                if (kernel == NULL)
                    break;
                check_form(kernel, &forms[f], type, constant, modes[m].target);
#if defined(__x86_64__) || defined(__aarch64__)
                if (f == 0) { /* read where it is: others may be made once, and kept */
                    constant[bytes / 2]++;
                    check_form(kernel, &forms[f], type, constant, modes[m].target);
                }
#endif
                opjit_kernel_release(kernel);
            }
}
END_TEST

/* --- products ----------------------------------------------------------------------------------------------------- */

enum { LENGTH = 83, WIDTH = 61 };

static opjit_tensor product(opjit_graph *g, opjit_tensor x, opjit_tensor w)
{
    return opjit_graph_matrix_multiply(g, x, w, 0, 0);
}

static opjit_tensor turned_product(opjit_graph *g, opjit_tensor x, opjit_tensor w)
{
    return opjit_graph_matrix_multiply(g, x, w, 0, 1);
}

static opjit_tensor integer_product(opjit_graph *g, opjit_tensor x, opjit_tensor w)
{
    const opjit_tensor none = { 0, 0 }, inputs[4] = { x, none, w, none };
    const DML_MATRIX_MULTIPLY_INTEGER_OPERATOR_DESC desc = { 0 };
    return opjit_graph_op(g, DML_OPERATOR_MATRIX_MULTIPLY_INTEGER, &desc, inputs, 4);
}

static opjit_tensor convolution(opjit_graph *g, opjit_tensor x, opjit_tensor w)
{
    const uint32_t one[] = { 1, 1 };
    return opjit_graph_convolution(g, x, w, (opjit_tensor){ 0, 0 }, 2, one, one, one, one, 1);
}

typedef struct factors {
    opjit_tensor (*make)(opjit_graph *g, opjit_tensor x, opjit_tensor w);
    DML_TENSOR_DATA_TYPE type;
    uint32_t rank, x[4], w[4];
} factors;

static const factors products[] = {
    { product, DML_TENSOR_DATA_TYPE_FLOAT32, 2, { 32, LENGTH }, { LENGTH, WIDTH } },
    { product, DML_TENSOR_DATA_TYPE_FLOAT32, 2, { 1, LENGTH }, { LENGTH, WIDTH } },
    { turned_product, DML_TENSOR_DATA_TYPE_FLOAT32, 2, { 5, LENGTH }, { WIDTH, LENGTH } },
    { turned_product, DML_TENSOR_DATA_TYPE_FLOAT32, 2, { 1, LENGTH }, { WIDTH, LENGTH } },
    { product, DML_TENSOR_DATA_TYPE_FLOAT16, 2, { 32, LENGTH }, { LENGTH, WIDTH } },
    { product, DML_TENSOR_DATA_TYPE_FLOAT16, 2, { 1, LENGTH }, { LENGTH, WIDTH } },
    { product, DML_TENSOR_DATA_TYPE_FLOAT64, 2, { 9, LENGTH }, { LENGTH, WIDTH } },
    { integer_product, DML_TENSOR_DATA_TYPE_UINT8, 4, { 1, 1, 32, LENGTH }, { 1, 1, LENGTH, WIDTH } },
    { integer_product, DML_TENSOR_DATA_TYPE_UINT8, 4, { 1, 1, 1, LENGTH }, { 1, 1, LENGTH, WIDTH } },
    { convolution, DML_TENSOR_DATA_TYPE_FLOAT32, 4, { 1, 16, 9, 7 }, { 24, 16, 3, 3 } },
    { convolution, DML_TENSOR_DATA_TYPE_FLOAT32, 4, { 1, 3, 9, 7 }, { 67, 3, 3, 3 } },
};

static size_t bytes_of(const factors *p, const uint32_t *sizes)
{
    size_t bytes = ref_dtype_size(p->type);
    for (uint32_t d = 0; d < p->rank; d++)
        bytes *= sizes[d];
    return bytes;
}

static void multiply(const factors *p, const mode *how, const void *constant, uint32_t flags, void *result)
{
    opjit_graph *g;
    ck_assert_int_eq(opjit_graph_create(context, &g, &error), OPJIT_OK);
    const opjit_tensor x = opjit_graph_input(g, "x", p->type, p->rank, p->x);
    const opjit_tensor w = opjit_graph_constant(g, p->type, p->rank, p->w, constant, bytes_of(p, p->w), flags);
    opjit_graph_output(g, "y", p->make(g, x, w));
    opjit_kernel *const kernel = compile(g, how, flags == 0 ? 0 : OPJIT_COMPILE_BORROW_CONSTANTS);
    opjit_graph_destroy(g);
    memset(result, 0x5a, sizeof out);
    if (kernel == NULL)
        return;
    const opjit_binding bindings[] = { { other, sizeof other }, { result, sizeof out } };
    opjit_call call = OPJIT_CALL_INIT;
    call.bindings = bindings;
    call.binding_count = 2;
    ck_assert_msg(opjit_kernel_call(kernel, &call, &error) == OPJIT_OK, "%s", error.message);
    opjit_kernel_release(kernel);
}

static void put_number(uint8_t *data, DML_TENSOR_DATA_TYPE type, uint32_t i, double number)
{
    const float single = (float)number;
    const uint16_t half = opjit_float16_from_double(number);
    const uint8_t byte = (uint8_t)number;
    const uint32_t size = ref_dtype_size(type);
    memcpy(data + (size_t)i * size, size == 8 ? (const void *)&number : size == 4 ? (const void *)&single
                                    : size == 2 ? (const void *)&half : &byte, size);
}

/* As of a copy that is aligned. */
START_TEST(factors_of_products)
{
    static _Alignas(64) uint8_t expected[sizeof out], copy[ROOM];
    const factors *const p = &products[_i];
    const size_t bytes = bytes_of(p, p->w);
    const uint32_t size = ref_dtype_size(p->type), count = sizeof other / size;
    ck_assert_uint_gt(bytes, 4096);
    for (uint32_t i = 0; i < count; i++)
        put_number(other, p->type, i, (double)(i * 7919 % 101));
    for (uint32_t i = 0; i < bytes / size; i++)
        put_number(copy, p->type, i, (double)(i * 104729 % 97));
    for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
        multiply(p, &modes[m], copy, 0, expected);
        for (uint32_t i = 0; i < OFFSETS; i++) {
            uint8_t *const constant = address(i, bytes);
            memcpy(constant, copy, bytes);
            multiply(p, &modes[m], constant, OPJIT_GRAPH_BORROW, out);
            ck_assert_msg(memcmp(out, expected, sizeof out) == 0, "%s, at %p", modes[m].target, (void *)constant);
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fe.unaligned");
    TCase *t = tcase_create("constants");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, every_element, 0, sizeof types / sizeof *types);
    tcase_add_loop_test(t, factors_of_products, 0, sizeof products / sizeof *products);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
