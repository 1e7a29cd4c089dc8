/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - `opjit ops`: the operators of this build as text, as JSON or as the page docs/OPERATORS.md, all of it by
 * opjit/reflect.h. */
#include <opjit/model.h>

#include "frontend/cli/command/ops.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "frontend/cli/cli.h"
#include "frontend/cli/options.h"

/* --- text --------------------------------------------------------------------------------------------------------- */
static void put_fields(const opjit_operator_type_info *op)
{
    printf("  fields:\n");
    for (uint32_t i = 0; i < op->field_count; i++) {
        const opjit_field_info f = opjit_cli_field_info(op->type, i);
        printf("    %-20s %s%s%s\n", f.name, opjit_cli_kind_text(f.kind),
               (f.flags & OPJIT_FIELD_OPTIONAL) != 0 ? ", optional" : "",
               (f.flags & OPJIT_FIELD_LATE) != 0 ? ", may be bound at the call" : "");
        for (uint32_t v = 0; v < f.value_count; v++)
            printf("    %-20s   %s\n", "", opjit_field_value_at(op->type, i, v, NULL));
    }
}

static void put_support(const opjit_operator_type_info *op)
{
    printf("  ranks and types:\n");
    for (uint32_t i = 0; i < op->support_count; i++) {
        const opjit_support_info s = opjit_cli_support_row(op->type, i);
        if (s.feature_level != 0)
            printf("    from feature level %u.%u", CLI_LEVEL(s.feature_level));
        else
            printf("    without a feature level");
        printf(", %s: rank %u to %u:", s.tensor != NULL ? s.tensor : "all tensors", (unsigned)s.rank_min,
               (unsigned)s.rank_max);
        for (int t = DML_TENSOR_DATA_TYPE_FLOAT32; t <= DML_TENSOR_DATA_TYPE_INT4; t++) {
            if ((s.types >> t & 1) != 0)
                printf(" %s", opjit_data_type_name((DML_TENSOR_DATA_TYPE)t));
        }
        printf("\n");
    }
}

static int count_bits(uint32_t set)
{
    int count = 0;
    for (; set != 0; set &= set - 1)
        count++;
    return count;
}

/* Name, types of the tensor that has most of them, without a feature level, formula. */
static void put_line(const opjit_operator_type_info *op)
{
    char types[OPJIT_DATA_TYPES_TEXT];
    uint32_t most = 0;

    for (uint32_t i = 0; i < op->field_count; i++) {
        const opjit_field_info f = opjit_cli_field_info(op->type, i);
        if (f.kind > OPJIT_FIELD_OUTPUTS)
            continue;
        const uint32_t own = opjit_cli_support_of(op->type, f.name).types;
        most = count_bits(own) > count_bits(most) ? own : most;
    }
    opjit_data_types_text(most, types);
    printf("%-43s %-40s %s\n", op->name, types, op->formula);
}

static void put_detail(const opjit_operator_type_info *op)
{
    if (op->feature_level == 0)
        printf("%s (OPJIT_OPERATOR_%s, number %d, without a feature level)\n  %s\n", op->name, op->name, (int)op->type,
               op->formula);
    else
        printf("%s (DML_OPERATOR_%s, number %d, since feature level %u.%u)\n  %s\n", op->name, op->name, (int)op->type,
               CLI_LEVEL(op->feature_level), op->formula);
    put_fields(op);
    put_support(op);
}

/* --- the command -------------------------------------------------------------------------------------------------- */
/* Whether the name begins at text or anywhere behind, in any case. */
static bool is_in(const char *text, const char *name)
{
    const size_t length = strlen(name);
    for (; *text != '\0'; text++)
        if (strncasecmp(text, name, length) == 0)
            return true;
    return length == 0;
}

/* The operator of that name in any case; DML_OPERATOR_INVALID: there is none. */
static DML_OPERATOR_TYPE find(const char *name)
{
    for (uint32_t i = 0; i < opjit_operator_type_count(); i++)
        if (strcasecmp(opjit_cli_type_info(opjit_operator_type_at(i)).name, name) == 0)
            return opjit_operator_type_at(i);
    return DML_OPERATOR_INVALID;
}

static int refuse(const char *name)
{
    char meant[CLI_SUGGEST_TEXT];
    opjit_error error;
    opjit_rt_error_set(&error, OPJIT_NOT_FOUND, "there is no operator %.80s%s", name,
                       opjit_cli_near_operator(name, strlen(name), meant));
    return opjit_cli_complain(NULL, NULL, &error);
}

/* ONNX's operators that name is in, those of other domains as DOMAIN.NAME; those that are refused behind the others. */
static int put_onnx(const char *name)
{
    opjit_model_operator o = OPJIT_MODEL_OPERATOR_INIT;
    bool found = false;
    for (uint32_t refused = 0; refused < 2; refused++)
        for (uint32_t i = 0; opjit_model_get_operator(i, &o, NULL) == OPJIT_OK; i++) {
            char whole[96];
            snprintf(whole, sizeof whole, "%s%s%s", o.domain, o.domain[0] == '\0' ? "" : ".", o.name);
            if (o.is_taken == refused || !is_in(whole, name))
                continue;
            printf("%-46s %s%s\n", whole, refused ? "not taken: " : "", o.text);
            found = true;
        }
    if (found)
        return EXIT_DONE;
    opjit_error error;
    opjit_rt_error_set(&error, OPJIT_NOT_FOUND, "there is no ONNX operator %.80s", name);
    return opjit_cli_complain(NULL, NULL, &error);
}

/* The operator of that name, else all that it is a part of; "": all there are. */
int opjit_cli_ops(const cli_options *options)
{
    static const char prefix[] = "DML_OPERATOR_";
    const char *name = options->argument_count != 0 ? options->arguments[0] : "";
    uint32_t found = 0;
    if (options->json + options->markdown + options->onnx > 1)
        return opjit_cli_usage("ops", ": one of --json, --markdown and --onnx at a time", "");
    if (options->markdown && *name != '\0')
        return opjit_cli_usage("--markdown", " is for all operators", "");
    if (options->onnx)
        return put_onnx(name);
    if (options->markdown)
        return opjit_cli_put_page() ? EXIT_DONE : EXIT_FAILED;
    if (strncasecmp(name, prefix, sizeof prefix - 1) == 0)
        name += sizeof prefix - 1;
    const DML_OPERATOR_TYPE exact = find(name);
    for (uint32_t i = 0; i < opjit_operator_type_count(); i++) {
        const opjit_operator_type_info op = opjit_cli_type_info(opjit_operator_type_at(i));
        if (exact != DML_OPERATOR_INVALID ? op.type != exact : !is_in(op.name, name))
            continue;
        if (options->json)
            opjit_cli_put_op_json(&op, found == 0);
        else if (exact != DML_OPERATOR_INVALID)
            put_detail(&op);
        else
            put_line(&op);
        found++;
    }
    if (found == 0)
        return refuse(name);
    if (options->json)
        printf("\n]\n");
    return EXIT_DONE;
}
