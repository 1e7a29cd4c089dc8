/* SPDX-License-Identifier: Apache-2.0 */
/* list_json.c - an operator of `opjit ops --json`: its fields, and where they are supported. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/table.h"

static void put_level(uint32_t level)
{
    if (level != 0)
        printf("\"%u.%u\"", (unsigned)(level >> 12), (unsigned)(level >> 8 & 15));
    else
        printf("null");
}

static void put_field(const op_field *f)
{
    const char *between = "";
    printf("      { \"name\": \"%s\", \"kind\": \"%s\", \"optional\": %s, \"late\": %s", f->name,
           opjit_cli_kind_text(f), (f->flags & OP_OPTIONAL) != 0 ? "true" : "false",
           (f->flags & OP_LATE) != 0 ? "true" : "false");
    if (f->kind == OP_ENUM) {
        printf(", \"values\": [");
        for (const op_enum_name *n = f->enumeration->names; n->name != NULL; n++, between = ", ")
            printf("%s\"%s\"", between, n->name + strlen(f->enumeration->prefix));
        printf("]");
    }
    printf(" }");
}

static void put_support(const op_support *s)
{
    const char *between = "";
    printf("      { \"level\": ");
    put_level(s->level);
    printf(", \"tensor\": ");
    if (s->field != NULL)
        printf("\"%s\"", s->field);
    else
        printf("null");
    printf(", \"rank_min\": %u, \"rank_max\": %u, \"types\": [", (unsigned)s->rank_min, (unsigned)s->rank_max);
    for (int t = DML_TENSOR_DATA_TYPE_FLOAT32; t <= DML_TENSOR_DATA_TYPE_INT4; t++) {
        if ((s->types >> t & 1) == 0)
            continue;
        printf("%s\"%s\"", between, opjit_rt_dtype_name((DML_TENSOR_DATA_TYPE)t));
        between = ", ";
    }
    printf("] }");
}

void opjit_cli_put_op_json(const op_def *def, bool first)
{
    printf("%s\n  { \"name\": \"%s\", \"number\": %d, \"since\": ", first ? "[" : ",", def->name, (int)def->type);
    put_level(def->introduced);
    printf(", \"formula\": ");
    opjit_cli_put_string(stdout, def->formula);
    printf(",\n    \"fields\": [");
    for (uint32_t i = 0; i < def->field_count; i++) {
        printf(i == 0 ? "\n" : ",\n");
        put_field(&def->fields[i]);
    }
    printf(" ],\n    \"support\": [");
    for (uint32_t i = 0; i < def->support_count; i++) {
        printf(i == 0 ? "\n" : ",\n");
        put_support(&def->support[i]);
    }
    printf(" ] }");
}
