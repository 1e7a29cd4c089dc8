/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - the model as a whole: memory, loading, and what all of its readers share.  The parts are read in
 * resource.c, dispatchable.c and command.c. */
#define _POSIX_C_SOURCE 200809L

#include "frontend/cli/model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "frontend/cli/files/files.h"
#include "frontend/cli/text/number.h"

void opjit_cli_model_init(cli_model *m, const char *path, opjit_context *context)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);
    *m = (cli_model){ .path = path, .max_bytes = FILES_MAX_DATA, .context = context };
    /* More than the machine has would be granted, and end in being killed while it is filled. */
    m->max_total = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX;
    opjit_rt_arena_init(&m->arena, &opjit_rt_default_allocator);
    opjit_rt_bytes_init(&m->text, &opjit_rt_default_allocator);
}

void opjit_cli_model_free(cli_model *m)
{
    for (uint32_t i = 0; i < m->dispatchable_count; i++) {
        cli_dispatchable *d = &m->dispatchables[i];
        opjit_kernel_release(d->kernel);
        for (uint32_t k = 0; d->constants != NULL && k < d->input_count; k++)
            opjit_rt_release(&opjit_rt_default_allocator, d->constants[k].copy, (size_t)d->constants[k].bytes);
        for (uint32_t k = 0; d->graph != NULL && k < d->graph->count; k++)
            opjit_operator_release(d->graph->operators[k].op);
        opjit_operator_release(d->own.op);
    }
    for (uint32_t i = 0; i < m->resource_count; i++)
        opjit_rt_release(&opjit_rt_default_allocator, m->resources[i].data, (size_t)m->resources[i].bytes);
    opjit_rt_bytes_free(&m->text);
    opjit_rt_arena_free(&m->arena);
}

opjit_status opjit_cli_model_parse(cli_model *m)
{
    json_place where;
    const opjit_status status =
        opjit_cli_json_read((const char *)m->text.data, m->text.size, &m->arena, &m->root, &where, &m->report.error);
    if (status != OPJIT_OK)
        snprintf(m->report.place, sizeof m->report.place, "line %zu, column %zu", where.line, where.column);
    return status == OPJIT_OK ? opjit_cli_read_dims(m) : status;
}

opjit_status opjit_cli_model_load(cli_model *m)
{
    TRY(strcmp(m->path, "-") == 0 ? opjit_cli_read_input(FILES_MAX_MODEL, &m->text, &m->report.error)
                                  : opjit_cli_read_file(m->path, FILES_MAX_MODEL, &m->text, &m->report.error));
    return opjit_cli_model_parse(m);
}

/* --- messages ----------------------------------------------------------------------------------------------------- */
opjit_status opjit_cli_at(cli_model *m, const json_value *at, opjit_status status)
{
    if (status != OPJIT_OK)
        opjit_cli_json_path(at, m->report.place, sizeof m->report.place);
    return status;
}

opjit_status opjit_cli_at_dispatchable(cli_model *m, const cli_dispatchable *d, opjit_status status)
{
    const json_value *node = d->graph != NULL && m->report.error.node >= 0 ? d->graph->nodes->first : NULL;
    for (int32_t i = m->report.error.node; node != NULL && i > 0; i--)
        node = node->next;
    return opjit_cli_at(m, status != OPJIT_OK && node != NULL ? node : d->json, status);
}

opjit_status opjit_cli_fail(cli_model *m, const json_value *at, opjit_status status, const char *format, ...)
{
    char text[OPJIT_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return opjit_cli_at(m, at, opjit_rt_error_set(&m->report.error, status, "%s", text));
}

opjit_status opjit_cli_no_memory(cli_model *m, const json_value *at)
{
    return opjit_cli_at(m, at, opjit_rt_no_memory(&m->report.error));
}

opjit_status opjit_cli_at_file(cli_model *m, const json_value *at, const char *path, opjit_status status)
{
    size_t used;
    if (status == OPJIT_OK)
        return OPJIT_OK;
    opjit_cli_json_path(at, m->report.place, CLI_PLACE);
    used = strlen(m->report.place);
    snprintf(m->report.place + used, sizeof m->report.place - used, ": %s", path); /* longer than a message may be */
    return status;
}

/* --- members ------------------------------------------------------------------------------------------------------ */
opjit_status opjit_cli_member(cli_model *m, const json_value *object, const char *key, json_kind kind,
                              const json_value **out)
{
    const json_value *const member = opjit_cli_json_get(object, key);
    *out = NULL;
    if (object->kind != JSON_OBJECT)
        return opjit_cli_fail(m, object, OPJIT_INVALID_ARGUMENT, "this is %s, but has to be an object",
                              opjit_cli_kind_name(object->kind));
    if (member == NULL)
        return opjit_cli_missing(m, object, key);
    if (member->kind != kind)
        return opjit_cli_fail(m, member, OPJIT_INVALID_ARGUMENT, "this is %s, but has to be %s",
                              opjit_cli_kind_name(member->kind), opjit_cli_kind_name(kind));
    *out = member;
    return OPJIT_OK;
}

opjit_status opjit_cli_uint_member(cli_model *m, const json_value *object, const char *key, uint64_t hi,
                                   uint64_t otherwise, uint64_t *out)
{
    const json_value *const member = opjit_cli_json_get(object, key);
    *out = otherwise;
    if (member == NULL)
        return OPJIT_OK;
    return opjit_cli_at(m, member,
                        opjit_cli_unsigned(member, hi > UINT32_MAX ? "UINT64" : "UINT32", hi, out, &m->report.error));
}

/* --- enumerations ------------------------------------------------------------------------------------------------- */
static const cli_enum_name data_type_names[] = {
    { "DML_TENSOR_DATA_TYPE_FLOAT32", DML_TENSOR_DATA_TYPE_FLOAT32 },
    { "DML_TENSOR_DATA_TYPE_FLOAT16", DML_TENSOR_DATA_TYPE_FLOAT16 },
    { "DML_TENSOR_DATA_TYPE_UINT32", DML_TENSOR_DATA_TYPE_UINT32 },
    { "DML_TENSOR_DATA_TYPE_UINT16", DML_TENSOR_DATA_TYPE_UINT16 },
    { "DML_TENSOR_DATA_TYPE_UINT8", DML_TENSOR_DATA_TYPE_UINT8 },
    { "DML_TENSOR_DATA_TYPE_INT32", DML_TENSOR_DATA_TYPE_INT32 },
    { "DML_TENSOR_DATA_TYPE_INT16", DML_TENSOR_DATA_TYPE_INT16 },
    { "DML_TENSOR_DATA_TYPE_INT8", DML_TENSOR_DATA_TYPE_INT8 },
    { "DML_TENSOR_DATA_TYPE_FLOAT64", DML_TENSOR_DATA_TYPE_FLOAT64 },
    { "DML_TENSOR_DATA_TYPE_UINT64", DML_TENSOR_DATA_TYPE_UINT64 },
    { "DML_TENSOR_DATA_TYPE_INT64", DML_TENSOR_DATA_TYPE_INT64 },
    { "DML_TENSOR_DATA_TYPE_UINT4", DML_TENSOR_DATA_TYPE_UINT4 },
    { "DML_TENSOR_DATA_TYPE_INT4", DML_TENSOR_DATA_TYPE_INT4 },
    { "DML_TENSOR_DATA_TYPE_UNKNOWN", DML_TENSOR_DATA_TYPE_UNKNOWN },
    { NULL, 0 },
};
const cli_enum opjit_cli_data_types = { "DML_TENSOR_DATA_TYPE_", data_type_names };

static void list_names(const cli_enum *names, char *out, size_t size)
{
    size_t used = 0;
    for (const cli_enum_name *n = names->names; n->name != NULL; n++) {
        const char *const text = n->name + strlen(names->prefix);
        if (used + strlen(text) + 6 > size) {
            snprintf(out + used, size - used, " ...");
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s", used != 0 ? ", " : "", text);
    }
}

opjit_status opjit_cli_enum(cli_model *m, const json_value *value, const cli_enum *names, int32_t *out)
{
    char allowed[170];
    *out = 0;
    for (const cli_enum_name *n = names->names; n->name != NULL; n++) {
        if (opjit_cli_json_is(value, n->name) || opjit_cli_json_is(value, n->name + strlen(names->prefix))) {
            *out = n->value;
            return OPJIT_OK;
        }
    }
    list_names(names, allowed, sizeof allowed);
    if (value->kind != JSON_STRING)
        return opjit_cli_fail(m, value, OPJIT_INVALID_ARGUMENT, "this is %s, but has to be one of the names %s",
                              opjit_cli_kind_name(value->kind), allowed);
    return opjit_cli_fail(m, value, OPJIT_INVALID_ARGUMENT, CLI_QUOTED " is none of %s", CLI_QUOTE(value), allowed);
}

opjit_status opjit_cli_flags(cli_model *m, const json_value *value, const cli_enum *names, int32_t *out)
{
    int32_t flag;
    if (value->kind != JSON_ARRAY)
        return opjit_cli_enum(m, value, names, out);
    *out = 0;
    for (const json_value *v = value->first; v != NULL; v = v->next) {
        TRY(opjit_cli_enum(m, v, names, &flag));
        *out |= flag;
    }
    return OPJIT_OK;
}
