/* SPDX-License-Identifier: Apache-2.0 */
/* test_fe_readme.c - the table in docs/OPERATORS.md is what the operators' rows say; OPJIT_UPDATE_GOLDEN=1 rewrites it. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/ops/op.h"

#define HEAD "| operators | types | ranks | late scalars |\n| --- | --- | --- | --- |\n"

typedef char text[4096];

static void add(char *to, const char *more)
{
    ck_assert_uint_lt(strlen(to) + strlen(more), sizeof(text));
    strcat(to, more);
}

/* "ELEMENT_WISE_" of "ELEMENT_WISE_ADD". */
static const char *family(const op_def *def)
{
    static const char *const families[] = { "ELEMENT_WISE_", "ACTIVATION_", "FILL_VALUE_", "DIAGONAL_MATRIX" };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(def->name, families[i], strlen(families[i])) == 0)
            return families[i];
    return "";
}

/* The types of the tensors without a feature level, then ranks, then the scalars that may be late. */
static void extent(const op_def *def, char *out)
{
    char types[FE_TYPES_TEXT], ranks[32];
    const op_support *common = opjit_fe_op_support(def, NULL, 0);
    const char *separator = " | ";

    opjit_fe_types_text(common->types, types);
    add(out, types);
    for (uint32_t i = 0; i < def->field_count; i++) {
        const op_field *field = &def->fields[i];
        const op_support *row;
        if (field->kind > OP_OUTPUTS || (row = opjit_fe_op_support(def, field->name, 0))->types == common->types)
            continue;
        opjit_fe_types_text(row->types, types);
        add(out, "; ");
        add(out, field->name);
        add(out, " ");
        add(out, types);
    }
    snprintf(ranks, sizeof ranks, " | %u–%u", common->rank_min, common->rank_max);
    add(out, ranks);
    for (uint32_t i = 0; i < def->field_count; i++) {
        if ((def->fields[i].flags & OP_LATE) == 0)
            continue;
        add(out, separator);
        add(out, def->fields[i].name);
        separator = ", ";
    }
    add(out, strcmp(separator, " | ") == 0 ? " | none |\n" : " |\n");
}

/* Operators of a family with the same extent share a line. */
static void make_table(char *table, size_t size)
{
    const op_def *first, *def;
    bool written[256] = { false };

    snprintf(table, size, "%s", HEAD);
    for (uint32_t i = 0; (first = opjit_fe_op_at(i)) != NULL; i++) {
        text line = "| ", mine = "", other;
        if (written[i])
            continue;
        add(line, first->name);
        extent(first, mine);
        for (uint32_t k = i + 1; (def = opjit_fe_op_at(k)) != NULL; k++) {
            ck_assert_uint_lt(k, 256);
            other[0] = '\0';
            extent(def, other);
            if (family(def) != family(first) || strcmp(mine, other) != 0)
                continue;
            written[k] = true;
            add(line, ", ");
            add(line, def->name + strlen(family(first)));
        }
        add(line, " | ");
        add(line, mine);
        ck_assert_uint_lt(strlen(table) + strlen(line), size);
        strcat(table, line);
    }
}

static void read_file(const char *path, char *out, size_t size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s can't be opened", path);
    out[fread(out, 1, size - 1, file)] = '\0';
    ck_assert_int_eq(fclose(file), 0);
}

START_TEST(table_of_operators)
{
    static char readme[1 << 17], table[1 << 15], path[1024];
    const char *data = getenv("OPJIT_TEST_DATA");
    char *begin, *end;

    snprintf(path, sizeof path, "%s/../docs/OPERATORS.md", data != NULL ? data : "tests");
    read_file(path, readme, sizeof readme);
    make_table(table, sizeof table);
    begin = strstr(readme, HEAD);
    ck_assert_msg(begin != NULL, "docs/OPERATORS.md has no line\n%s", HEAD);
    end = strstr(begin, "|\n\n");
    ck_assert_ptr_nonnull(end);
    end += 2;
    if (getenv("OPJIT_UPDATE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "wb");
        ck_assert_ptr_nonnull(file);
        fprintf(file, "%.*s%s%s", (int)(begin - readme), readme, table, end);
        ck_assert_int_eq(fclose(file), 0);
        return;
    }
    ck_assert_msg(strlen(table) == (size_t)(end - begin) && memcmp(table, begin, strlen(table)) == 0,
                  "docs/OPERATORS.md's table must be\n%s", table);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fe.readme");
    TCase *tcase = tcase_create("readme");
    SRunner *runner = srunner_create(suite);
    int failed;

    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, table_of_operators);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
