/* SPDX-License-Identifier: Apache-2.0 */
/* dispatchable.c - dispatchables: operators out of their descriptors, and the inputs that they own.  Graphs are
 * read in graph.c.  Other kinds of DxDispatch's dispatchables are recognised and refused; a kind that opjit gets
 * later is one more row of `kinds`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "frontend/cli/model/model.h"

static const cli_enum_name compile_type_names[] = { { "DmlCompileOp", 0 }, { "DmlCompileGraph", 1 }, { NULL, 0 } };
static const cli_enum compile_types = { "", compile_type_names };

static const cli_enum_name execution_flag_names[] = {
    { "DML_EXECUTION_FLAG_NONE", DML_EXECUTION_FLAG_NONE },
    { "DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION", DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION },
    { "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS", DML_EXECUTION_FLAG_DISABLE_META_COMMANDS },
    { "DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE", DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE },
    { NULL, 0 },
};
static const cli_enum execution_flags = { "DML_EXECUTION_FLAG_", execution_flag_names };

/* --- operators ---------------------------------------------------------------------------------------------------- */
static opjit_status read_type(cli_model *m, const json_value *name, DML_OPERATOR_TYPE type, const cli_type **out)
{
    if ((unsigned)type >= CLI_TYPES)
        return opjit_cli_fail(m, name, OPJIT_INTERNAL, "the operator has the number %u", (unsigned)type);
    if (m->types[type] == NULL)
        m->types[type] = opjit_cli_type_read(&m->arena, type);
    *out = m->types[type];
    return *out != NULL ? OPJIT_OK : opjit_cli_no_memory(m, name);
}

opjit_status opjit_cli_find_operator(cli_model *m, const json_value *name, const cli_type **out)
{
    const DML_OPERATOR_TYPE found =
        strlen(name->text) == name->length ? opjit_operator_type_find(name->text) : DML_OPERATOR_INVALID;
    *out = NULL;
    return found != DML_OPERATOR_INVALID ? read_type(m, name, found, out) : opjit_cli_no_operator(m, name);
}

/* The element of the array whose number stands in brackets at *path, which is put behind them; NULL: there is none. */
static const json_value *follow_index(const json_value *array, const char **path)
{
    char *after;
    unsigned long index = strtoul(*path + 1, &after, 10);
    const json_value *v = array->kind == JSON_ARRAY ? array->first : NULL;
    for (; v != NULL && index != 0; index--)
        v = v->next;
    *path = *after == ']' ? after + 1 : after;
    return v;
}

/* Follows the path of a field, "OutputTensor.Sizes[2]", from json as far as the model has it.  *out_rest: what is left
 * of the path then. */
static const json_value *follow(const json_value *json, const char *path, const char **out_rest)
{
    *out_rest = path;
    while (*path != '\0') {
        const size_t word = strcspn(path, ".[");
        const json_value *next;
        char key[OPJIT_ERROR_FIELD_SIZE];
        snprintf(key, sizeof key, "%.*s", (int)word, path);
        next = opjit_cli_json_get(json, key);
        if (next == NULL)
            next = opjit_cli_json_get(opjit_cli_json_get(json, "Desc"), key);
        path += word;
        while (*path == '[' && next != NULL)
            next = follow_index(next, &path);
        if (next == NULL)
            return json;
        json = next;
        path += *path == '.';
        *out_rest = path;
    }
    return json;
}

/* Puts into the report the place of the field that the error names, if it is one of op's, whose descriptor is json,
 * and leaves in the message what the place doesn't say. */
static void locate(cli_model *m, const char *op, const json_value *json)
{
    opjit_error *const error = &m->report.error;
    char path[OPJIT_ERROR_FIELD_SIZE + 16], text[OPJIT_ERROR_MESSAGE_SIZE];
    const char *rest;
    opjit_cli_at(m, json, error->status);
    if (strcmp(error->op, op) != 0 || error->field[0] == '\0')
        return;
    if (error->index < 0)
        snprintf(path, sizeof path, "%s", error->field);
    else
        snprintf(path, sizeof path, "%s[%d]", error->field, (int)error->index);
    opjit_cli_at(m, follow(json, path, &rest), error->status);
    if (error->detail == 0)
        return;
    snprintf(text, sizeof text, "%s", error->message + error->detail); /* the place says the rest */
    if (rest[0] == '\0')
        memcpy(error->message, text, sizeof text);
    else
        snprintf(error->message, sizeof error->message, "%s: %.*s", rest, (int)(sizeof text - strlen(rest) - 3), text);
}

/* --- owned inputs ------------------------------------------------------------------------------------------------- */
/* Takes the bytes of each OWNED_BY_DML input, as they are before the first command. */
static opjit_status read_constants(cli_model *m, cli_dispatchable *d)
{
    d->constants = ARENA_ARRAY(&m->arena, cli_range, (size_t)d->input_count + d->output_count + 1);
    if (d->constants == NULL)
        return opjit_cli_no_memory(m, d->json);
    TRY(opjit_cli_read_bindings(m, d, d->json, true, d->constants));
    for (uint32_t i = 0; i < d->input_count; i++) {
        cli_range *const r = &d->constants[i];
        if (r->resource == NULL)
            continue;
        r->bytes = d->ports[i].tensor->bytes;
        TRY(opjit_cli_allocate(m, r->json, r->bytes, &r->copy));
        memcpy(r->copy, r->resource->data + r->offset, (size_t)r->bytes);
    }
    return OPJIT_OK;
}

/* What the operator's tensors have become. */
static opjit_status read_tensors(cli_model *m, const json_value *json, cli_operator *out)
{
    opjit_operator_info info = OPJIT_OPERATOR_INFO_INIT;
    TRY(opjit_cli_at(m, json, opjit_operator_get_info(out->op, &info, &m->report.error)));
    out->input_count = info.input_count;
    out->output_count = info.output_count;
    out->inputs = opjit_cli_tensors(&m->arena, out->op, true, info.input_count);
    out->outputs = opjit_cli_tensors(&m->arena, out->op, false, info.output_count);
    return out->inputs != NULL && out->outputs != NULL ? OPJIT_OK : opjit_cli_no_memory(m, json);
}

/* The descriptor with OPJIT_DIM for sizes that are dimensions. */
static opjit_status read_symbolic(cli_model *m, const json_value *json, cli_operator *out)
{
    void *desc;
    m->symbolic = true;
    const opjit_status status = opjit_cli_read_desc(m, out->def, json, &desc);
    m->symbolic = false;
    if (status == OPJIT_OK)
        out->symbolic = (DML_OPERATOR_DESC){ out->def->type, desc };
    return status;
}

opjit_status opjit_cli_read_operator(cli_model *m, const json_value *json, const json_value *type, cli_operator *out)
{
    const json_value *desc_json;
    DML_OPERATOR_DESC desc;
    TRY(opjit_cli_find_operator(m, type, &out->def));
    desc_json = opjit_cli_json_get(json, "desc");
    if (desc_json == NULL)
        desc_json = opjit_cli_json_get(json, "Desc");
    if (desc_json == NULL || desc_json->kind != JSON_OBJECT)
        return opjit_cli_fail(m, desc_json != NULL ? desc_json : json, OPJIT_INVALID_ARGUMENT,
                              "an operator needs \"desc\", an object with its fields");
    TRY(opjit_cli_read_desc(m, out->def, desc_json, &out->desc));
    desc = (DML_OPERATOR_DESC){ out->def->type, out->desc };
    if (opjit_operator_create(m->context, &desc, &out->op, &m->report.error) != OPJIT_OK) {
        locate(m, out->def->name, desc_json);
        return m->report.error.status;
    }
    if (m->dim_count != 0)
        TRY(read_symbolic(m, desc_json, out));
    return read_tensors(m, json, out);
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */
static opjit_status read_operator(cli_model *m, cli_dispatchable *d, const json_value *type)
{
    const cli_operator *const op = &d->own;
    TRY(opjit_cli_read_operator(m, d->json, type, &d->own));
    d->what = op->def->name;
    d->input_count = op->input_count;
    d->output_count = op->output_count;
    d->ports = ARENA_ARRAY(&m->arena, cli_port, (size_t)op->input_count + op->output_count);
    if (d->ports == NULL)
        return opjit_cli_no_memory(m, d->json);
    for (uint32_t i = 0; i < op->input_count; i++)
        d->ports[i] = (cli_port){ op->inputs[i].name, &op->inputs[i], false };
    for (uint32_t i = 0; i < op->output_count; i++)
        d->ports[op->input_count + i] = (cli_port){ op->outputs[i].name, &op->outputs[i], false };
    return read_constants(m, d);
}

static opjit_status read_graph(cli_model *m, cli_dispatchable *d, const json_value *type)
{
    (void)type;
    TRY(opjit_cli_read_graph(m, d));
    return read_constants(m, d);
}

static opjit_status refuse_kind(cli_model *m, cli_dispatchable *d, const json_value *type)
{
    (void)d;
    return opjit_cli_fail(m, type, OPJIT_UNSUPPORTED,
                          "dispatchables of type \"%.40s\" are not supported: give an operator or a graph", type->text);
}

static const struct {
    const char *type; /* in any case; NULL: everything else, an operator's name */
    opjit_status (*read)(cli_model *m, cli_dispatchable *d, const json_value *type);
} kinds[] = {
    { "graph", read_graph }, { "hlsl", refuse_kind }, { "onnx", refuse_kind }, { "dmlSerializedGraph", refuse_kind },
    { NULL, read_operator },
};

static opjit_status read_dispatchable(cli_model *m, cli_dispatchable *d)
{
    const json_value *type, *member;
    int32_t ignored;
    size_t kind = 0;
    TRY(opjit_cli_member(m, d->json, "type", JSON_STRING, &type));
    if ((member = opjit_cli_json_get(d->json, "dmlCompileType")) != NULL)
        TRY(opjit_cli_enum(m, member, &compile_types, &ignored));
    if ((member = opjit_cli_json_get(d->json, "executionFlags")) != NULL)
        TRY(opjit_cli_flags(m, member, &execution_flags, &ignored));
    while (kinds[kind].type != NULL && strcasecmp(kinds[kind].type, type->text) != 0)
        kind++;
    m->uses_dims = false;
    TRY(kinds[kind].read(m, d, type));
    d->uses_dims = m->uses_dims;
    return OPJIT_OK;
}

opjit_status opjit_cli_read_dispatchables(cli_model *m)
{
    const json_value *all;
    uint32_t i = 0;
    TRY(opjit_cli_member(m, m->root, "dispatchables", JSON_OBJECT, &all));
    m->dispatchables = ARENA_ARRAY(&m->arena, cli_dispatchable, (size_t)all->count + 1);
    if (m->dispatchables == NULL)
        return opjit_cli_no_memory(m, all);
    for (const json_value *v = all->first; v != NULL; v = v->next) {
        m->dispatchables[i].json = v;
        m->dispatchable_count = ++i;
        TRY(read_dispatchable(m, &m->dispatchables[i - 1]));
    }
    return OPJIT_OK;
}
