/* SPDX-License-Identifier: Apache-2.0 */
/* ops_json.c - an operator of `opjit ops --json`: its fields, and where they are supported. */
#include <stdio.h>

#include "frontend/cli/command/ops.h"
#include "frontend/cli/model/type.h"
#include "frontend/cli/text/table.h"

static void put_level(uint32_t level)
{
    if (level != 0)
        printf("\"%u.%u\"", CLI_LEVEL(level));
    else
        printf("null");
}

static void put_field(const opjit_operator_type_info *op, uint32_t index)
{
    const opjit_field_info f = opjit_cli_field_info(op->type, index);
    printf("      { \"name\": \"%s\", \"kind\": \"%s\", \"optional\": %s, \"late\": %s", f.name,
           opjit_cli_kind_text(f.kind), (f.flags & OPJIT_FIELD_OPTIONAL) != 0 ? "true" : "false",
           (f.flags & OPJIT_FIELD_LATE) != 0 ? "true" : "false");
    for (uint32_t v = 0; v < f.value_count; v++)
        printf("%s\"%s\"", v == 0 ? ", \"values\": [" : ", ", opjit_field_value_at(op->type, index, v, NULL));
    printf(f.value_count != 0 ? "] }" : " }");
}

static void put_support(const opjit_support_info *s)
{
    const char *between = "";
    printf("      { \"level\": ");
    put_level(s->feature_level);
    printf(", \"tensor\": ");
    if (s->tensor != NULL)
        printf("\"%s\"", s->tensor);
    else
        printf("null");
    printf(", \"rank_min\": %u, \"rank_max\": %u, \"types\": [", (unsigned)s->rank_min, (unsigned)s->rank_max);
    for (int t = DML_TENSOR_DATA_TYPE_FLOAT32; t <= DML_TENSOR_DATA_TYPE_INT4; t++) {
        if ((s->types >> t & 1) == 0)
            continue;
        printf("%s\"%s\"", between, opjit_data_type_name((DML_TENSOR_DATA_TYPE)t));
        between = ", ";
    }
    printf("] }");
}

void opjit_cli_put_op_json(const opjit_operator_type_info *op, bool first)
{
    printf("%s\n  { \"name\": \"%s\", \"number\": %d, \"since\": ", first ? "[" : ",", op->name, (int)op->type);
    put_level(op->feature_level);
    printf(", \"formula\": ");
    opjit_cli_put_string(stdout, op->formula);
    printf(",\n    \"fields\": [");
    for (uint32_t i = 0; i < op->field_count; i++) {
        printf(i == 0 ? "\n" : ",\n");
        put_field(op, i);
    }
    printf(" ],\n    \"support\": [");
    for (uint32_t i = 0; i < op->support_count; i++) {
        const opjit_support_info s = opjit_cli_support_row(op->type, i);
        printf(i == 0 ? "\n" : ",\n");
        put_support(&s);
    }
    printf(" ] }");
}
