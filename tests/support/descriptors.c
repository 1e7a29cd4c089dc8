/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - creates operators, expects refusals, and compares lowered text with a golden file. */
#include "tests/support/descriptors.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "frontend/frontend.h"
#include "tests/support/require.h"

opjit_context *test_context_at(uint32_t level)
{
    opjit_context_options options = OPJIT_CONTEXT_OPTIONS_INIT;
    opjit_context *context = NULL;
    opjit_error error;

    options.feature_level = level;
    options.target = "cpu:x86-64-v1";
    ck_assert_msg(opjit_context_create(&options, &context, &error) == OPJIT_OK, "%s", error.message);
    return context;
}

void test_expect_operator(uint32_t level, const DML_OPERATOR_DESC *desc, const char *message)
{
    opjit_context *context = test_context_at(level);
    opjit_operator *op = NULL;
    opjit_error error = { 0 };

    ck_assert_int_eq(opjit_operator_create(context, desc, &op, &error) == OPJIT_OK, message[0] == '\0');
    ck_assert_str_eq(error.message, message);
    if (message[0] != '\0')
        test_require_place(&error);
    opjit_operator_release(op);
    opjit_context_destroy(context);
}

void test_lower(opjit_operator *op, const fe_options *options, const char *name, ir_func *out)
{
    const opjit_allocator *const allocator = &opjit_rt_default_allocator;
    fe_graph graph = { 0 };
    opjit_error error;

    opjit_rt_arena_init(&graph.arena, allocator);
    ck_assert_msg(opjit_fe_graph_of(op, options, &graph, &error) == OPJIT_OK &&
                      opjit_fe_graph_lower(&graph, options, name, allocator, out, &error) == OPJIT_OK,
                  "%s", error.message);
    opjit_fe_graph_free(&graph);
}

void test_append_lowered(opjit_context *context, const DML_OPERATOR_DESC *desc, rt_bytes *out)
{
    fe_options options;
    opjit_operator *op;
    opjit_error error;
    ir_func f;

    ck_assert_msg(opjit_operator_create(context, desc, &op, &error) == OPJIT_OK, "%s", error.message);
    ck_assert_int_eq(opjit_fe_options_read(context, op, NULL, &options, &error), OPJIT_OK);
    test_lower(op, &options, "test", &f);
    opjit_ir_print(&f, out);
    opjit_ir_free(&f);
    opjit_operator_release(op);
}

void test_compare_lowered(const char *name, rt_bytes *text)
{
    static char want[1 << 19];
    const char *data = getenv("OPJIT_TEST_DATA");
    const bool update = getenv("OPJIT_UPDATE_GOLDEN") != NULL;
    char file[64], path[1024];

    snprintf(file, sizeof file, "%s", name);
    for (char *p = file; *p != '\0'; p++)
        *p = (char)tolower((unsigned char)*p);
    snprintf(path, sizeof path, "%s/golden/lower/%s.ir", data != NULL ? data : "tests", file);
    opjit_rt_bytes_zero_end(text);
    ck_assert(!text->failed);
    FILE *stream = fopen(path, update ? "wb" : "rb");
    ck_assert_msg(stream != NULL, "%s can't be opened", path);
    if (update) {
        fputs((const char *)text->data, stream);
    } else {
        want[fread(want, 1, sizeof want - 1, stream)] = '\0';
        ck_assert_str_eq((const char *)text->data, want);
    }
    ck_assert_int_eq(fclose(stream), 0);
}
