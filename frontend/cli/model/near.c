/* SPDX-License-Identifier: Apache-2.0 */
/* near.c - refusals of names that a model does not have, with the name that may have been meant. */
#include <stdio.h>
#include <string.h>

#include "frontend/cli/model/model.h"

/* The member of object that is nearest to the name. */
static void nearest_member(cli_suggestion *s, const json_value *object, const char *name, size_t length)
{
    opjit_cli_suggest_begin(s, name, length);
    for (const json_value *v = object != NULL && object->kind == JSON_OBJECT ? object->first : NULL; v != NULL;
         v = v->next)
        opjit_cli_suggest(s, v->key, v->key_length);
}

opjit_status opjit_cli_no_member(cli_model *m, const json_value *name, const char *what, const json_value *object)
{
    char meant[CLI_SUGGEST_TEXT];
    cli_suggestion s;
    nearest_member(&s, object, name->text, name->length);
    return opjit_cli_fail(m, name, OPJIT_NOT_FOUND, "there is no %s " CLI_QUOTED "%s", what, CLI_QUOTE(name),
                          opjit_cli_suggest_text(&s, "\"", "\"", meant));
}

const char *opjit_cli_near_dispatchable(const cli_model *m, const char *name, char text[static CLI_SUGGEST_TEXT])
{
    cli_suggestion s;
    nearest_member(&s, opjit_cli_json_get(m->root, "dispatchables"), name, strlen(name));
    return opjit_cli_suggest_text(&s, "\"", "\"", text);
}

opjit_status opjit_cli_missing(cli_model *m, const json_value *object, const char *key)
{
    char meant[CLI_SUGGEST_TEXT];
    cli_suggestion s;
    nearest_member(&s, object, key, strlen(key));
    return opjit_cli_fail(m, object, OPJIT_INVALID_ARGUMENT, "\"%s\" is missing%s", key,
                          opjit_cli_suggest_text(&s, "it by \"", "\"", meant));
}

static bool is_field(const cli_type *def, const json_value *member)
{
    for (uint32_t i = 0; i < def->field_count; i++)
        if (strlen(def->fields[i].name) == member->key_length &&
            memcmp(def->fields[i].name, member->key, member->key_length) == 0)
            return true;
    return false;
}

opjit_status opjit_cli_missing_field(cli_model *m, const cli_type *def, const cli_field *field, const json_value *json)
{
    char meant[CLI_SUGGEST_TEXT];
    cli_suggestion s;
    opjit_cli_suggest_begin(&s, field->name, strlen(field->name));
    for (const json_value *v = json->kind == JSON_OBJECT ? json->first : NULL; v != NULL; v = v->next)
        if (!is_field(def, v))
            opjit_cli_suggest(&s, v->key, v->key_length);
    return opjit_cli_fail(m, json, OPJIT_INVALID_ARGUMENT, "%s: \"%s\" is missing%s", def->name, field->name,
                          opjit_cli_suggest_text(&s, "it by \"", "\"", meant));
}

const char *opjit_cli_near_operator(const char *name, size_t length, char text[static CLI_SUGGEST_TEXT])
{
    DML_OPERATOR_TYPE type;
    cli_suggestion s;
    opjit_cli_suggest_begin(&s, name, memchr(name, '\0', length) == NULL ? length : 0);
    for (uint32_t i = 0; (type = opjit_operator_type_at(i)) != DML_OPERATOR_INVALID; i++) {
        const char *const known = opjit_cli_type_info(type).name;
        opjit_cli_suggest(&s, known, strlen(known));
    }
    return opjit_cli_suggest_text(&s, "", "", text);
}

opjit_status opjit_cli_no_operator(cli_model *m, const json_value *name)
{
    char meant[CLI_SUGGEST_TEXT];
    return opjit_cli_fail(m, name, OPJIT_INVALID_ARGUMENT, CLI_QUOTED " is no operator: `opjit ops` lists them%s",
                          CLI_QUOTE(name), opjit_cli_near_operator(name->text, name->length, meant));
}

opjit_status opjit_cli_no_node(cli_model *m, const json_value *end, size_t length, const json_value *nodes)
{
    char meant[CLI_SUGGEST_TEXT];
    cli_suggestion s;
    nearest_member(&s, nodes, end->text, length);
    return opjit_cli_fail(m, end, OPJIT_NOT_FOUND, CLI_QUOTED ": there is no node \"%.*s\"%s", CLI_QUOTE(end),
                          (int)(length < 60 ? length : 60), end->text, opjit_cli_suggest_text(&s, "\"", "\"", meant));
}

/* "ATensor, BTensor", of more than three the first and how many more. */
static void tensor_list(const cli_operator *op, bool is_input, char *text, size_t size)
{
    const opjit_tensor_info *const t = is_input ? op->inputs : op->outputs;
    const uint32_t count = is_input ? op->input_count : op->output_count;
    if (count == 0)
        snprintf(text, size, "none");
    else if (count > 3)
        snprintf(text, size, "%s and %u more", t[0].name, (unsigned)(count - 1));
    else
        snprintf(text, size, "%s%s%s%s%s", t[0].name, count > 1 ? ", " : "", count > 1 ? t[1].name : "",
                 count > 2 ? ", " : "", count > 2 ? t[2].name : "");
}

opjit_status opjit_cli_no_tensor(cli_model *m, const json_value *end, const json_value *node, const cli_operator *op,
                                 bool is_input)
{
    const size_t head = node->key_length < end->length ? node->key_length + 1 : end->length;
    const char *const side = is_input ? "input" : "output";
    char meant[CLI_SUGGEST_TEXT], has[120];
    cli_suggestion s;
    if (op == NULL)
        return opjit_cli_fail(m, end, OPJIT_INVALID_ARGUMENT, CLI_QUOTED ": node \"%.48s\" is a constant, %s",
                              CLI_QUOTE(end), node->key,
                              is_input ? "which has no input" : "which an edge names without a tensor");
    opjit_cli_suggest_begin(&s, end->text + head, end->length - head);
    for (uint32_t i = 0; i < (is_input ? op->input_count : op->output_count); i++) {
        const char *const name = is_input ? op->inputs[i].name : op->outputs[i].name;
        opjit_cli_suggest(&s, name, strlen(name));
    }
    tensor_list(op, is_input, has, sizeof has);
    return opjit_cli_fail(m, end, OPJIT_INVALID_ARGUMENT, CLI_QUOTED " is no %s of node \"%.32s\" (%s)%s%s",
                          CLI_QUOTE(end), side, node->key, op->def->name, s.best != NULL ? "" : ", which has ",
                          s.best != NULL ? opjit_cli_suggest_text(&s, "", "", meant) : has);
}
