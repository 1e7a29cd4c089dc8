/* SPDX-License-Identifier: Apache-2.0 */
/* test_ir_text.c - printing and parsing: every bit of every constant survives, functions print and parse back, and
 * refusals name the line. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static opjit_error error;

static opjit_status parse(const char *text, ir_func *out)
{
    opjit_rt_error_clear(&error);
    return opjit_ir_parse(text, strlen(text), &opjit_rt_default_allocator, out, &error);
}

/* The text of f, which the caller frees. */
static rt_bytes printed(const ir_func *f)
{
    rt_bytes text;
    opjit_rt_bytes_init(&text, &opjit_rt_default_allocator);
    opjit_ir_print(f, &text);
    opjit_rt_bytes_zero_end(&text);
    ck_assert(!text.failed);
    return text;
}

static void start(ir_func *f)
{
    ck_assert_int_eq(opjit_ir_init(f, &opjit_rt_default_allocator, "test", &error), OPJIT_OK);
}

/* A constant of type with these bits, through text and back. */
static void check_constant(ir_type type, uint64_t bits)
{
    ir_func f, again;
    start(&f);
    ir_tensor t = { .role = IR_OUT,
                    .type = type,
                    .rank = 1,
                    .sizes = { 1 },
                    .bytes = opjit_ir_type_size(type),
                    .align = opjit_ir_type_size(type) };
    const uint32_t out = opjit_ir_tensor(&f, &t);
    const ir_ref yield = opjit_ir_yield(&f, out);
    ir_ref tail = 0;
    opjit_ir_set_value(&f, yield, opjit_ir_const(&f, type, bits));
    opjit_ir_append(&f, 0, &tail, yield);
    ck_assert(!f.failed);
    rt_bytes text = printed(&f);
    ck_assert_msg(parse((const char *)text.data, &again) == OPJIT_OK, "%s\n%s", error.message, (const char *)text.data);
    const ir_node *value = ir_at(&again, ir_operand(&again, again.body, 0));
    ck_assert_msg(value->op == IR_CONST && value->type == type &&
                      value->imm == ir_at(&f, ir_operand(&f, yield, 0))->imm,
                  "%s", (const char *)text.data);
    opjit_rt_bytes_free(&text);
    opjit_ir_free(&again);
    opjit_ir_free(&f);
}

START_TEST(constants)
{
    static const uint64_t f32[] = {
        0,          0x80000000, 1,          0x007fffff, 0x00800000, 0x3f800000, 0x7f7fffff,
        0x7f800000, 0xff800000, 0x7f800001, 0x7fc00000, 0xffffffff, 0x3eaaaaab, 0x00400001
    };
    static const uint64_t f64[] = { 0,
                                    0x8000000000000000,
                                    1,
                                    0xfffffffffffff,
                                    0x10000000000000,
                                    0x3ff0000000000001,
                                    0x7fefffffffffffff,
                                    0x7ff0000000000000,
                                    0xfff0000000000000,
                                    0x7ff0000000000001 };
    static const uint64_t words[] = { 0,         1,          0x7f,       0x80,       0xff,      0x7fff,
                                      0x8000,    0x7fffffff, 0x80000000, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1,
                                      UINT64_MAX };
    for (uint64_t h = 0; h < 0x10000; h += 7)
        check_constant(IR_F16, h);
    for (size_t i = 0; i < sizeof(f32) / sizeof(f32[0]); i++)
        check_constant(IR_F32, f32[i]);
    for (size_t i = 0; i < sizeof(f64) / sizeof(f64[0]); i++)
        check_constant(IR_F64, f64[i]);
    for (uint32_t type = IR_I8; type <= IR_INDEX; type++)
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            check_constant((ir_type)type, words[i]);
}
END_TEST

/* Names, slots, layouts, contents of constants, aliases: everything in a function besides its nodes. */
START_TEST(declarations)
{
    static const char text[] = "kernel @k9 target \"cpu:x86-64-v3,l2=\\x01\" after schedule {\n"
                               "    in %0 \"a \\\"b\\\\\\x7f\": u8[4,5] stride [8,1] bytes 40 align 16\n"
                               "    out %1: u8[4,5] stride [8,1] bytes 40 align 16 slot 7\n"
                               "    const %2 \"c\": i16[2] = \"0100ff7f\"\n"
                               "    const %3: f32[3]\n"
                               "    temp %4: bool[3]\n"
                               "    scratch %5: index[1]\n"
                               "    param %6 \"Begin\": index in [-9223372036854775808, 9223372036854775807]\n"
                               "    param %7: f16\n"
                               "    alias %1 %0\n"
                               "}\n";
    ir_func f, copy;
    ck_assert_msg(parse(text, &f) == OPJIT_OK, "%s", error.message);
    ck_assert_str_eq(f.tensors[1].name, "a \"b\\\x7f");
    ck_assert_uint_eq(f.tensors[2].slot, 7);
    ck_assert_uint_eq(f.tensors[2].alias, 1);
    ck_assert_mem_eq(f.tensors[3].data, "\x01\x00\xff\x7f", 4);
    ck_assert_int_eq(opjit_ir_copy(&f, &copy, &error), OPJIT_OK);
    opjit_ir_free(&f);
    rt_bytes out = printed(&copy);
    ck_assert_str_eq((const char *)out.data, text);
    opjit_rt_bytes_free(&out);
    opjit_ir_free(&copy);
}
END_TEST

START_TEST(long_lines_break)
{
    ir_func f, again;
    start(&f);
    ir_tensor t = { .role = IR_OUT, .type = IR_I64, .rank = 1, .sizes = { 9 }, .bytes = 72, .align = 8 };
    const ir_ref yield = opjit_ir_yield(&f, opjit_ir_tensor(&f, &t));
    ir_ref tail = 0, sum = ir_expr1(&f, IR_ELEM, IR_I64, opjit_ir_coordinate(&f, yield, 0));
    for (int i = 0; i < 60; i++)
        sum = ir_expr2(&f, i % 2 ? IR_ADD : IR_SUB, IR_NONE, sum, opjit_ir_const(&f, IR_I64, (uint64_t)i << 50));
    opjit_ir_set_value(&f, yield, sum);
    opjit_ir_append(&f, 0, &tail, yield);
    rt_bytes text = printed(&f);
    ck_assert_ptr_nonnull(strstr((const char *)text.data, "add(\n"));
    ck_assert_int_eq(parse((const char *)text.data, &again), OPJIT_OK);
    rt_bytes same = printed(&again);
    ck_assert_str_eq((const char *)text.data, (const char *)same.data);
    ck_assert(opjit_ir_verify(&again, &error) == OPJIT_OK);
    opjit_rt_bytes_free(&text);
    opjit_rt_bytes_free(&same);
    opjit_ir_free(&f);
    opjit_ir_free(&again);
}
END_TEST

static const struct refusal {
    const char *text, *message;
} refusals[] = {
    { "", "line 1: \"kernel\" is expected, the text ends" },
    { "kernel k {}", "line 1: @name is expected, not \"k\"" },
    { "kernel @k {\n\n  out %0: f99[1]\n}", "line 3: a type is expected, not \"f99\"" },
    { "kernel @k { out %0: f32[1]\n out %0: f32[1] }", "line 2: %0 is already the id of something else" },
    { "kernel @k { out %0: f32[0] }", "line 1: size 0 is 0, or there are too many elements" },
    { "kernel @k { out %0: f32[1,1,1,1,1,1,1,1,1] }", "line 1: rank is above 8" },
    { "kernel @k { out %0: f32[4294967296,4294967296] }", "line 1: size 1 is 0, or there are too many elements" },
    { "kernel @k { out %0: f64[2305843009213693952] }", "line 1: the layout reaches beyond 63 bits" },
    { "kernel @k { out %0: f32[2] stride [1,1] }", "line 1: there must be a stride for each of 1 sizes" },
    { "kernel @k { out %0: f32[2] align 3 }", "line 1: align is 3, not a power of two" },
    { "kernel @k { yield %0 (%i) = 1 }", "line 1: %0 is not known" },
    { "kernel @k { out %0: f32[2] yield %0 (%i) = %0 }", "line 1: %0 is a tensor; load it" },
    { "kernel @k { out %0: f32[2] yield %0 (%i) = f32 0x1.0000001p+0 }",
      "line 1: \"0x1.0000001p+0\" is not an exact value of f32" },
    { "kernel @k { out %0: f32[2] yield %0 (%i) = f32 1 }", "line 1: \"1\" is not an exact value of f32" },
    { "kernel @k { out %0: u8[2] yield %0 (%i) = u8 256 }", "line 1: \"256\" is not an exact value of u8" },
    { "kernel @k { out %0: u8[2] yield %0 (%i) = u8 -1 }", "line 1: \"-1\" is not an exact value of u8" },
    { "kernel @k { out %0: f16[2] yield %0 (%i) = f16 bits 0x10000 }",
      "line 1: \"0x10000\" is not an exact value of f16" },
    { "kernel @k { out %0: u8[2] yield %0 (%i) = elem u8 (9223372036854775808) }",
      "line 1: a whole number of 64 bits is expected, not \"9223372036854775808\"" },
    { "kernel @k { out %0: u8[2] yield %0 (%i) = frob(%i) }", "line 1: an expression is expected, not \"frob\"" },
    { "kernel @k { const %0: u8[2] = \"0\" }", "line 1: a string of two hex digits a byte is expected, not \"0\"" },
    { "kernel @k { param %0: index in [2, 1] }", "line 1: the interval is empty" },
    { "kernel @k { in %0: u8[1] in %1: u8[1] alias %0 %1 }", "line 1: an alias is an output, once, and then an input" },
    { "kernel @k after place { stage @0 for %p in 0..1 { upd %p, 1 } }", "line 1: %p is not an accumulator" },
    { "kernel @k after place { stage @0 for %p in 0..1 { let %x = 1",
      "line 1: a statement is expected, the text ends" },
    { "kernel @k {} x", "line 1: the end of the text is expected, not \"x\"" },
    { "kernel @k { out %0 \"x", "line 1: \":\" is expected, not" },
    { "kernel @k after lunch {}", "line 1: the name of a pass is expected, not \"lunch\"" },
};

START_TEST(refused)
{
    const struct refusal *r = &refusals[_i];
    ir_func f;
    ck_assert_int_eq(parse(r->text, &f), OPJIT_INVALID_ARGUMENT);
    const size_t shown = strlen(r->message);
    ck_assert_msg(strncmp(error.message, r->message, shown) == 0, "\"%s\" and should be \"%s\"", error.message,
                  r->message);
    ck_assert_ptr_null(f.nodes);
}
END_TEST

START_TEST(nesting_is_bounded)
{
    static char text[1 << 16];
    ir_func f;
    strcpy(text, "kernel @k { out %0: f32[1] yield %0 (%i) = ");
    size_t size = strlen(text);
    for (int i = 0; i < 10000; i++, size += 4)
        memcpy(text + size, "neg(", 4);
    text[size] = '\0';
    ck_assert_int_eq(parse(text, &f), OPJIT_INVALID_ARGUMENT);
    ck_assert_str_eq(error.message, "line 1: nested deeper than 256");
}
END_TEST

/* --- out of memory: every allocation in turn fails -------------------------------------------------------------- */

typedef struct limited {
    int left;
} limited;

static void *limited_allocate(void *user, size_t size, size_t alignment)
{
    limited *l = user;
    if (l->left-- <= 0)
        return NULL;
    return opjit_rt_default_allocator.allocate(NULL, size, alignment);
}

static void limited_release(void *user, void *memory, size_t size)
{
    (void)user;
    opjit_rt_default_allocator.release(NULL, memory, size);
}

START_TEST(out_of_memory)
{
    static const char text[] = "kernel @k after place { in %x: f32[64] out %y: f32[64] const %c: u8[4] = \"00000000\" "
                               "stage @0 for %p in 0..64 { let %v = load %x[%p] store %y[%p], mul(%v, %v) } }";
    bool done = false;
    for (int count = 0; !done; count++) {
        limited l = { count };
        const opjit_allocator allocator = { &l, limited_allocate, limited_release };
        ir_func f;
        ck_assert_int_lt(count, 1000);
        opjit_status status = opjit_ir_parse(text, strlen(text), &allocator, &f, &error);
        if (status == OPJIT_OK) {
            status = opjit_ir_verify(&f, &error);
            rt_bytes out;
            opjit_rt_bytes_init(&out, &allocator);
            opjit_ir_print(&f, &out);
            done = status == OPJIT_OK && !out.failed;
            opjit_rt_bytes_free(&out);
        }
        ck_assert_msg(status == OPJIT_OK || status == OPJIT_OUT_OF_MEMORY, "%s", error.message);
        opjit_ir_free(&f);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir.text");
    TCase *tests = tcase_create("text");
    tcase_add_test(tests, constants);
    tcase_add_test(tests, declarations);
    tcase_add_test(tests, long_lines_break);
    tcase_add_loop_test(tests, refused, 0, (int)(sizeof(refusals) / sizeof(refusals[0])));
    tcase_add_test(tests, nesting_is_bounded);
    tcase_add_test(tests, out_of_memory);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
