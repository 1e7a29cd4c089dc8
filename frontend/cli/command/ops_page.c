/* SPDX-License-Identifier: Apache-2.0 */
/* ops_page.c - `opjit ops --markdown`: the page docs/OPERATORS.md, which cli.lists holds to be this. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/cli/command/ops.h"
#include "frontend/cli/model/type.h"

/* --- operators by what they take ---------------------------------------------------------------------------------- */
/* "ELEMENT_WISE_" of "ELEMENT_WISE_ADD". */
static const char *family(const opjit_operator_type_info *op)
{
    static const char *const families[] = { "ELEMENT_WISE_", "ACTIVATION_", "FILL_VALUE_", "DIAGONAL_MATRIX" };
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strncmp(op->name, families[i], strlen(families[i])) == 0)
            return families[i];
    return "";
}

/* Types of the tensors without a feature level, then ranks, then the scalars that may be late; cut off where it is
 * too long. */
static void extent(const opjit_operator_type_info *op, char *out, size_t size)
{
    const opjit_support_info common = opjit_cli_support_of(op->type, NULL);
    char types[OPJIT_DATA_TYPES_TEXT];
    const char *between = "";
    size_t used = 0;

    opjit_data_types_text(common.types, types);
    used += (size_t)snprintf(out + used, size - used, "%s", types);
    for (uint32_t i = 0; i < op->field_count && used < size; i++) {
        const opjit_field_info f = opjit_cli_field_info(op->type, i);
        const uint32_t own = f.kind > OPJIT_FIELD_OUTPUTS ? common.types : opjit_cli_support_of(op->type, f.name).types;
        if (own == common.types)
            continue;
        opjit_data_types_text(own, types);
        used += (size_t)snprintf(out + used, size - used, "; %s %s", f.name, types);
    }
    if (used < size)
        used += (size_t)snprintf(out + used, size - used, " | %u–%u | ", (unsigned)common.rank_min,
                                 (unsigned)common.rank_max);
    for (uint32_t i = 0; i < op->field_count && used < size; i++) {
        const opjit_field_info f = opjit_cli_field_info(op->type, i);
        if ((f.flags & OPJIT_FIELD_LATE) == 0)
            continue;
        used += (size_t)snprintf(out + used, size - used, "%s%s", between, f.name);
        between = ", ";
    }
    if (used < size)
        snprintf(out + used, size - used, "%s |", between[0] == '\0' ? "none" : "");
}

/* What an operator's line is made of. */
typedef struct page_row {
    opjit_operator_type_info op;
    char extent[512];
    bool written;
} page_row;

static bool same_line(const page_row *a, const page_row *b)
{
    return family(&a->op) == family(&b->op) && strcmp(a->extent, b->extent) == 0;
}

/* Operators of a family with one extent are one line, where the first of them stands. */
static void put_table(page_row *rows, uint32_t count)
{
    printf("| operators | types | ranks | late scalars |\n| --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < count; i++) {
        if (rows[i].written)
            continue;
        printf("| %s", rows[i].op.name);
        for (uint32_t k = i + 1; k < count; k++) {
            if (rows[k].written || !same_line(&rows[i], &rows[k]))
                continue;
            rows[k].written = true;
            printf(", %s", rows[k].op.name + strlen(family(&rows[k].op)));
        }
        printf(" | %s\n", rows[i].extent);
    }
}

/* --- operators one by one ----------------------------------------------------------------------------------------- */
/* A cell: in a table, a bar ends it. */
static void put_cell(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '|' || *text == '*')
            putchar('\\');
        if (*text == '<')
            fputs("&lt;", stdout);
        else
            putchar(*text);
    }
}

static void put_formulas(void)
{
    printf("| operator | since | what it computes | fields beside the tensors |\n| --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < opjit_operator_type_count(); i++) {
        const opjit_operator_type_info op = opjit_cli_type_info(opjit_operator_type_at(i));
        const char *between = "";
        if (op.feature_level == 0)
            printf("| %s | none | ", op.name);
        else
            printf("| %s | %u.%u | ", op.name, CLI_LEVEL(op.feature_level));
        put_cell(op.formula);
        printf(" | ");
        for (uint32_t k = 0; k < op.field_count; k++) {
            const opjit_field_info f = opjit_cli_field_info(op.type, k);
            if (f.kind <= OPJIT_FIELD_OUTPUTS || (f.flags & OPJIT_FIELD_COUNT) != 0)
                continue;
            printf("%s%s", between, f.name);
            between = ", ";
        }
        printf("%s |\n", between[0] == '\0' ? "none" : "");
    }
}

bool opjit_cli_put_page(void)
{
    const uint32_t count = opjit_operator_type_count();
    page_row *rows = calloc(count, sizeof *rows);
    if (rows == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        rows[i].op = opjit_cli_type_info(opjit_operator_type_at(i));
        extent(&rows[i].op, rows[i].extent, sizeof rows[i].extent);
    }
    printf("# Operators of this build\n\n"
           "Written by `opjit ops --markdown`. First one line per set of operators with the same types and ranks,\n"
           "then one per operator. `opjit ops NAME` shows an operator's fields, and its types and ranks by feature\n"
           "level; `opjit/reflect.h` tells programs the same. A scalar that may be *late* is a parameter of the\n"
           "kernel instead of a constant (`opjit_compile_options.late`, `--late`).\n\n");
    put_table(rows, count);
    printf(
        "\nAll eleven types are FLOAT64/32/16, INT64/32/16/8 and UINT64/32/16/8. Where a tensor of an operator has\n"
        "other types than the first ones, it is named. Any legal strides are taken, and inputs may be broadcast.\n\n"
        "An output may have an input's memory wherever the input has its type and layout and each element is read\n"
        "before it is replaced, as `alias_inputs` of `opjit_kernel_get_info` says: all pointwise operators, running\n"
        "sums, softmax, layer norm, and graphs of them.\n\n"
        "## One by one\n\n"
        "*Since* is the DirectML feature level; operators without one are opjit's own (`opjit/operators.h`).\n\n");
    put_formulas();
    free(rows);
    return true;
}
