/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - commands: dispatch, print, writeFile, and the storage of deferred resources, whose size is what the
 * commands bind. */
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include "frontend/cli/files/files.h"
#include "frontend/cli/model/model.h"
#include "frontend/cli/text/number.h"

/* --- deferred resources ------------------------------------------------------------------------------------------- */
/* Grows a deferred resource to what the range needs, and takes its type from the tensor where the model says none.
 * read_range has checked that no sum here is beyond 64 bits. */
static void extend(cli_range *r, const opjit_tensor_info *tensor)
{
    cli_resource *const resource = r->resource;
    const uint64_t end = r->offset + r->bytes;
    if (resource->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        resource->dtype = cli_kept_type(tensor->dtype);
    const uint32_t size = opjit_data_type_size(resource->dtype);
    const uint64_t used = r->offset + cli_bytes(tensor->dtype, opjit_cli_span(tensor));
    if (resource->bytes < end)
        resource->bytes = resource->said = end;
    if (resource->elements < used / size)
        resource->elements = used / size;
}

static opjit_status need_contents(cli_model *m, const cli_resource *resource, const json_value *at)
{
    if (!resource->written)
        return opjit_cli_fail(m, at, OPJIT_INVALID_ARGUMENT,
                              "the resource is deferred, and no dispatch before this command writes it");
    return OPJIT_OK;
}

/* --- commands ----------------------------------------------------------------------------------------------------- */
static opjit_status find_resource(cli_model *m, cli_command *c, const json_value **out_name)
{
    TRY(opjit_cli_member(m, c->json, "resource", JSON_STRING, out_name));
    c->resource = opjit_cli_find_resource(m, *out_name);
    if (c->resource == NULL)
        return opjit_cli_no_member(m, *out_name, "resource", opjit_cli_json_get(m->root, "resources"));
    return need_contents(m, c->resource, *out_name);
}

static opjit_status read_dispatch(cli_model *m, cli_command *c)
{
    const json_value *name, *found;
    TRY(opjit_cli_member(m, c->json, "dispatchable", JSON_STRING, &name));
    found = opjit_cli_json_find(opjit_cli_json_get(m->root, "dispatchables"), name->text, name->length);
    if (found == NULL)
        return opjit_cli_no_member(m, name, "dispatchable", opjit_cli_json_get(m->root, "dispatchables"));
    c->dispatchable = &m->dispatchables[found->index];
    const uint32_t inputs = c->dispatchable->input_count, all = inputs + c->dispatchable->output_count;
    c->ranges = ARENA_ARRAY(&m->arena, cli_range, (size_t)all + 1);
    if (c->ranges == NULL)
        return opjit_cli_no_memory(m, c->json);
    TRY(opjit_cli_read_bindings(m, c->dispatchable, c->json, false, c->ranges));
    for (uint32_t i = 0; i < all; i++) {
        cli_range *const r = &c->ranges[i];
        const opjit_tensor_info *const tensor = c->dispatchable->ports[i].tensor;
        if (r->resource == NULL || !r->resource->deferred)
            continue;
        if (i < inputs)
            TRY(need_contents(m, r->resource, r->json));
        extend(r, tensor);
        if (r->resource->bytes > m->max_bytes)
            return opjit_cli_fail(m, r->json, OPJIT_LIMIT,
                                  "the range ends beyond what a resource may have, %" PRIu64 " bytes", m->max_bytes);
    }
    for (uint32_t i = inputs; i < all; i++) {
        if (c->ranges[i].resource != NULL)
            c->ranges[i].resource->written = true;
    }
    return OPJIT_OK;
}

static opjit_status read_print(cli_model *m, cli_command *c)
{
    const json_value *name;
    TRY(find_resource(m, c, &name));
    if (c->resource->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN && c->resource->types == NULL)
        return opjit_cli_fail(m, name, OPJIT_INVALID_ARGUMENT,
                              "the resource can't be printed: without \"initialValuesDataType\" it has no elements");
    return OPJIT_OK;
}

static opjit_status read_dimensions(cli_model *m, cli_command *c, const json_value *array)
{
    if (array->kind != JSON_ARRAY || array->count == 0 || array->count > sizeof c->shape / sizeof *c->shape)
        return opjit_cli_fail(m, array, OPJIT_INVALID_ARGUMENT, "this has to be an array of 1 to %zu sizes",
                              sizeof c->shape / sizeof *c->shape);
    for (const json_value *v = array->first; v != NULL; v = v->next) {
        uint64_t *const size = &c->shape[c->rank++];
        TRY(opjit_cli_at(m, v, opjit_cli_unsigned(v, "UINT32", UINT32_MAX, size, &m->report.error)));
    }
    return OPJIT_OK;
}

/* Dimensions must cover the whole buffer, but for the bytes that its size was rounded up by.  Asked once all
 * commands are read, because a deferred resource has no size before. */
static opjit_status check_dimensions(cli_model *m, const cli_command *c)
{
    uint64_t bytes = opjit_data_type_size(c->resource->dtype);
    bool fits = true;
    for (uint32_t i = 0; i < c->rank; i++)
        fits = fits && checked_mul(bytes, c->shape[i], &bytes);
    if (fits && (bytes == c->resource->said || (bytes <= UINT64_MAX - 3 && align_up(bytes, 4) == c->resource->bytes)))
        return OPJIT_OK;
    return opjit_cli_fail(m, opjit_cli_json_get(c->json, "dimensions"), OPJIT_INVALID_ARGUMENT,
                          "the dimensions are not those of the buffer's %" PRIu64 " bytes", c->resource->bytes);
}

static opjit_status read_write_file(cli_model *m, cli_command *c)
{
    const json_value *const dimensions = opjit_cli_json_get(c->json, "dimensions");
    const json_value *path, *name;
    cli_file file;
    opjit_status status;
    TRY(find_resource(m, c, &name));
    TRY(opjit_cli_member(m, c->json, "targetPath", JSON_STRING, &path));
    if (path->length == 0 || memchr(path->text, '\0', path->length) != NULL)
        return opjit_cli_fail(m, path, OPJIT_INVALID_ARGUMENT, "this is no path");
    if (path->length > 4 && strcasecmp(path->text + path->length - 4, ".npy") == 0 &&
        c->resource->dtype == DML_TENSOR_DATA_TYPE_UNKNOWN)
        return opjit_cli_fail(m, name, OPJIT_INVALID_ARGUMENT,
                              "an .npy file needs to know its elements: \"initialValuesDataType\" is missing");
    if (dimensions != NULL)
        TRY(read_dimensions(m, c, dimensions));
    if (m->no_files)
        return OPJIT_OK;
    c->path = opjit_cli_beside(&m->arena, m->path, path->text);
    if (c->path == NULL)
        return opjit_cli_no_memory(m, path);
    status = opjit_cli_file_find(m->path, path->text, m->outside, &file, &m->report.error);
    if (status == OPJIT_OK)
        status = opjit_cli_file_can_write(&file, &m->report.error);
    opjit_cli_file_close(&file);
    return opjit_cli_at_file(m, path, c->path, status);
}

static const struct {
    const char *type; /* in any case */
    cli_command_kind kind;
    opjit_status (*read)(cli_model *m, cli_command *c);
} kinds[] = {
    { "dispatch", CLI_DISPATCH, read_dispatch },
    { "print", CLI_PRINT, read_print },
    { "writeFile", CLI_WRITE_FILE, read_write_file },
};

static opjit_status read_command(cli_model *m, cli_command *c)
{
    const json_value *type;
    TRY(opjit_cli_member(m, c->json, "type", JSON_STRING, &type));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcasecmp(kinds[i].type, type->text) == 0) {
            c->kind = kinds[i].kind;
            return kinds[i].read(m, c);
        }
    }
    return opjit_cli_fail(m, type, OPJIT_INVALID_ARGUMENT, CLI_QUOTED " is none of dispatch, print, writeFile",
                          CLI_QUOTE(type));
}

opjit_status opjit_cli_read_commands(cli_model *m)
{
    const json_value *all;
    uint32_t i = 0;
    TRY(opjit_cli_member(m, m->root, "commands", JSON_ARRAY, &all));
    m->commands = ARENA_ARRAY(&m->arena, cli_command, (size_t)all->count + 1);
    if (m->commands == NULL)
        return opjit_cli_no_memory(m, all);
    for (const json_value *v = all->first; v != NULL; v = v->next) {
        m->commands[i].json = v;
        m->command_count = ++i;
        TRY(read_command(m, &m->commands[i - 1]));
    }
    for (i = 0; i < m->resource_count; i++) {
        if (m->resources[i].deferred && m->resources[i].bytes != 0)
            TRY(opjit_cli_allocate(m, m->resources[i].json, m->resources[i].bytes, &m->resources[i].data));
    }
    for (i = 0; i < m->command_count; i++) {
        if (m->commands[i].rank != 0)
            TRY(check_dimensions(m, &m->commands[i]));
    }
    return OPJIT_OK;
}
